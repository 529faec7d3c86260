/* watch_event.c: tells the driver, for those who watch, what has happened to keys. A watch event
 * leaves no earlier than an answer would. Where one had to be left out, the driver is told that
 * events were missed, so that whoever watches reads anew and misses nothing. */
#include "changes.h"

#include "event_box.h"

static bool room(struct core *core, struct event_box *box) {
	if (box->count < box->capacity) {
		return true;
	}
	size_t wanted = box->capacity ? 2 * box->capacity : 16;
	struct core_watch_event *p = wanted > WATCH_EVENT_MAX ? NULL
		: alloc_resize(&core->alloc, box->watch_event, box->capacity * sizeof *p,
			wanted * sizeof *p);
	if (p == NULL) {
		return false;
	}
	box->watch_event = p;
	box->capacity = wanted;
	return true;
}

static bool copy(struct event_box *box, struct slice *bytes) {
	struct slice from = *bytes;
	*bytes = slice_of(NULL, 0);
	return from.size == 0 || arena_copy(&box->bytes, from, bytes) == 0;
}

static void keep(struct core *core, const struct core_watch_event *watch_event) {
	struct event_box *box = core->changes.watch_event_wanted ? out_event_box(core) : NULL;
	if (box == NULL) {
		return;
	}
	if (box->lost || !room(core, box)) {
		/* In its place the driver is told that events were missed. */
		box->lost++;
		return;
	}
	struct core_watch_event *n = &box->watch_event[box->count];
	*n = *watch_event;
	box->lost = !(copy(box, &n->key) && copy(box, &n->owner) && copy(box, &n->identity) &&
		copy(box, &n->value) && copy(box, &n->label));
	box->count += !box->lost;
}

/* A request to let go of a key is not logged, because it goes to all nodes by itself. Events that
 * cannot be kept for those who watch here are logged all the same, because the replicas have not
 * missed them (section 7, Events for those who watch at a replica). */
void watch_event_tell(struct core *core, const struct core_watch_event *watch_event) {
	if (watch_event->kind == WATCH_EVENT_MISSED ? core->changes.feeds > 0
		: core->changes.event_feeds &&
			watch_event->kind != WATCH_EVENT_ASKED) {
		/* It is logged that events were missed, even if no follower has said yet that
		 * somebody watches there, so that the log's number goes up. */
		log_append_watch_event(core, watch_event);
	}
	keep(core, watch_event);
}

/* Tells whether somebody watches, here or at a replica. */
static bool wanted(const struct core *core) {
	return core->changes.watch_event_wanted || core->changes.event_feeds;
}

/* The value is told only where it is new. Whoever hears of an end knows the value, or has no use
 * for it. */
static bool has_value(enum core_watch_event_kind kind) {
	switch (kind) {
	case WATCH_EVENT_ACQUIRED: case WATCH_EVENT_UPDATED:
		return true;
	case WATCH_EVENT_DOWNGRADED: case WATCH_EVENT_RELEASED:
	case WATCH_EVENT_EXPIRED: case WATCH_EVENT_LOST: case WATCH_EVENT_ASKED:
	case WATCH_EVENT_MISSED:
		return false;
	}
	return false;
}

/* A node that recovers does not tell one by one what snapshots bring, and so it does not tell the
 * end of that either; nor does a node that is in the cluster no more tell what ends there. A node
 * that votes or follows again tells first that events were missed. A replica repeats what its
 * master tells; while it follows nobody, it tells what ends in its own table. */
static bool tells(const struct core *core) {
	return core_votes(core) || (core->state == CORE_FOLLOWING && !follow_tells(core));
}

static bool is_end(enum core_watch_event_kind kind) {
	switch (kind) {
	case WATCH_EVENT_RELEASED: case WATCH_EVENT_EXPIRED: case WATCH_EVENT_LOST:
		return true;
	case WATCH_EVENT_ACQUIRED: case WATCH_EVENT_UPDATED:
	case WATCH_EVENT_DOWNGRADED: case WATCH_EVENT_ASKED: case WATCH_EVENT_MISSED:
		return false;
	}
	return false;
}

void watch_events_missed_of(struct core *core, struct slice name) {
	const struct core_watch_event n = { .kind = WATCH_EVENT_MISSED, .key = name };
	if (tells(core)) {
		watch_event_tell(core, &n);
	}
}

/* Not inline, because mostly nobody watches, and then its caller is to cost little. */
static __attribute__((noinline)) void tell_of(struct core *core, enum core_watch_event_kind kind,
	struct slice name, const struct record *r) {
	const struct core_watch_event n = { .kind = kind, .key = name, .owner = record_owner(r),
		.identity = record_identity(r),
		.value = has_value(kind) ? record_value(r) : slice_of(NULL, 0),
		.label = record_label(r), .lock_id = r->lock_id, .token = r->token,
		.value_seq = record_wrote(core, r), .terms = record_terms(r) };
	watch_event_tell(core, &n);
}

void watch_event_of(struct core *core, enum core_watch_event_kind kind, struct slice name,
	const struct record *r) {
	if (wanted(core) && tells(core)) {
		tell_of(core, kind, name, r);
	}
}

void watch_event_first_value(struct core *core, struct slice name, const struct record *r) {
	if (r->wrote_clock > 0 && !(record_wrote(core, r).boot & BALLOT_FIRST)) {
		COUNT(core, value_missed);
		watch_events_missed_of(core, name);
	}
}

/* This goes on even where nobody watches, because somebody may begin to watch before the lock has
 * ended. */
void watch_event_record(struct core *core, enum core_watch_event_kind kind, struct key *key,
	struct record *r) {
	if (!tells(core) || !key_is_live(core, key)) {
		return;
	}
	if (kind == WATCH_EVENT_ACQUIRED) {
		unseen_record_came(core, key, r);
		watch_event_first_value(core, key_name(key), r);
	}
	if (r->unwritten) {
		unwritten_told(core, kind, key, r);
	}
	watch_event_of(core, kind, key_name(key), r);
	if (core_votes(core)) {
		told_record(core, key_number(key), r);
	}
	if (is_end(kind)) {
		unseen_record_ended(core, key, r);
	}
}

/* The commits that were refused here count as told (unseen.c). */
void watch_events_missed(struct core *core) {
	const struct core_watch_event n = { .kind = WATCH_EVENT_MISSED };
	unseen_missed_by_all(core);
	watch_event_tell(core, &n);
}

/* ---- the driver's side ---- */

void core_want_watch_events(struct core *core, bool wants) {
	if (wants && !core->changes.watch_event_wanted) {
		core->observers->watched(core);
	}
	core->changes.watch_event_wanted = wants;
}

const struct core_watch_event *core_out_watch_event(struct core_out *out) {
	struct core *core = out_core(out);
	struct event_box *box = out_box(out);
	if (!persist_may_leave(core)) {
		return NULL;
	}
	if (box->read < box->count) {
		return &box->watch_event[box->read++];
	}
	if (box->lost) {
		core->counts[COUNT_watch_event_lost] += box->lost;
		box->lost = 0;
		return &box->missed;
	}
	return NULL;
}

void core_count_watchers(struct core *core, uint32_t (*count)(void *ctx, struct slice key),
	void *ctx) {
	core->changes.count_watchers = count;
	core->changes.count_watchers_ctx = ctx;
}
