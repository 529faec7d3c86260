/* watch_event.c: tells the driver, for those who watch, what has happened to keys, and remembers
 * the order of what it told: the highest tokens of each key, in a small cache of the latest keys. A
 * watch event leaves no earlier than an answer would. Where one had to be left out, the driver is
 * told that events were missed, so that whoever watches reads anew and misses nothing. */
#include "changes.h"

#include "event_box.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))
/* The cache has TOLD_SETS sets of TOLD_WAYS keys each. */
#define TOLD_SETS 512u
#define TOLD_WAYS 4u
#define TOLD_BYTES (TOLD_SETS * TOLD_WAYS * sizeof(struct told))

/* The highest tokens that were told of a key. */
struct told {
	/* The key's number (key_number); the highest token of all its locks; and the highest one of
	 * its exclusive locks. */
	uint64_t key, any, exclusive;
	/* The lock that `any` is the token of: the first word of its lock_id. */
	uint64_t lock;
};

/* ---- telling ---- */

/* Makes the box larger. False: it is as large as it may be, or there is no memory. */
static bool grow(struct core *core, struct event_box *box) {
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
	if (box->lost || (box->count == box->capacity && !grow(core, box))) {
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
 * cannot be kept for those who watch here are logged nevertheless, because the replicas have not
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

/* A node that recovers does not tell one by one what snapshots bring, and so it does not tell the
 * end of that either; nor does a node that is in the cluster no more tell what ends there. A node
 * that votes or follows again tells first that events were missed. A replica repeats what its
 * master tells; while it follows nobody, it tells what ends in its own table. */
bool watch_event_tells(const struct core *core) {
	return core_votes(core) || (core->state == CORE_FOLLOWING && !follow_tells(core));
}

void watch_events_missed_of(struct core *core, struct slice name) {
	const struct core_watch_event n = { .kind = WATCH_EVENT_MISSED, .key = name };
	if (watch_event_tells(core)) {
		watch_event_tell(core, &n);
	}
}

void watch_events_missed(struct core *core) {
	const struct core_watch_event n = { .kind = WATCH_EVENT_MISSED };
	watch_event_tell(core, &n);
}

void watch_events_another_table(struct core *core) {
	log_new_id(core);
	watch_events_missed(core);
}

/* ---- the order of what was told ---- */

static struct told *told_find(const struct core *core, uint64_t key) {
	struct told *set = &core->changes.told[key % TOLD_SETS * TOLD_WAYS];
	for (uint32_t i = 0; i < TOLD_WAYS; i++) {
		if (set[i].key == key && set[i].any) {
			return &set[i];
		}
	}
	return NULL;
}

/* The highest token that was forgotten counts for every key that is not in the cache. */
static struct told told_of(const struct core *core, uint64_t key) {
	const struct told *at = told_find(core, key);
	return at ? *at : (struct told){ .key = key, .any = core->changes.told_before,
		.exclusive = core->changes.told_before };
}

/* Makes room for a key that is not in the cache: the one of its set whose tokens are lowest is
 * forgotten. */
static struct told *told_add(struct core *core, uint64_t key) {
	struct told *set = &core->changes.told[key % TOLD_SETS * TOLD_WAYS], *at = &set[0];
	for (uint32_t i = 1; i < TOLD_WAYS; i++) {
		at = set[i].any < at->any ? &set[i] : at;
	}
	core->changes.told_before = at->any > core->changes.told_before
		? at->any : core->changes.told_before;
	*at = (struct told){ .key = key, .any = core->changes.told_before,
		.exclusive = core->changes.told_before };
	return at;
}

static void told_raise(struct core *core, uint64_t key, const struct record *r) {
	struct told *at = told_find(core, key);
	at = at ? at : told_add(core, key);
	at->lock = r->token >= at->any ? id128_word(r->lock_id) : at->lock;
	at->any = r->token > at->any ? r->token : at->any;
	at->exclusive = r->of == MODE_EXCLUSIVE && r->token > at->exclusive
		? r->token : at->exclusive;
}

/* A permit of a semaphore counts as a key of its own here, because one holder after the other has
 * it. */
static uint64_t told_permit(uint64_t key, uint32_t number) {
	return key ^ (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

static struct permits permits_of(const struct record *r) {
	return terms_of_numbers(r->of) ? record_set(r) : (struct permits){ { 0, 0 } };
}

/* The value is told only where it is new. Whoever hears of an end knows the value, or has no use
 * for it. */
void watch_event_of(struct core *core, enum core_watch_event_kind kind, struct slice name,
	uint64_t number, const struct record *r) {
	const bool has_value = kind == WATCH_EVENT_ACQUIRED || kind == WATCH_EVENT_UPDATED;
	const struct core_watch_event n = { .kind = kind, .key = name, .owner = record_owner(r),
		.identity = record_identity(r),
		.value = has_value ? record_value(r) : slice_of(NULL, 0),
		.label = record_label(r), .lock_id = r->lock_id, .token = r->token,
		.value_seq = record_wrote(core, r), .terms = record_terms(r) };
	if (!watch_event_tells(core)) {
		return;
	}
	watch_event_tell(core, &n);
	told_raise(core, number, r);
	struct permits set = permits_of(r);
	while (!permits_none(set)) {
		told_raise(core, told_permit(number, permits_take_first(&set)), r);
	}
}

/* Of two commits with the same token at most one was granted. */
static bool told_rival(const struct told *told, const struct record *r) {
	return r->token == told->any && told->lock && told->lock != id128_word(r->lock_id) &&
		(r->of == MODE_EXCLUSIVE || told->any == told->exclusive);
}

/* The tokens of those who share a key have no order. */
bool watch_event_late(const struct core *core, uint64_t number, const struct record *r) {
	const struct told told = told_of(core, number);
	bool late = r->token < (r->of == MODE_EXCLUSIVE ? told.any : told.exclusive) ||
		told_rival(&told, r);
	struct permits set = permits_of(r);
	while (!late && !permits_none(set)) {
		late = r->token < told_of(core, told_permit(number, permits_take_first(&set))).any;
	}
	return late;
}

/* The lock may come by a repair, or its commit may be sent again, after it was told of. When it is
 * had at a second try it has a greater token. */
bool watch_event_told_already(const struct core *core, const struct message *m) {
	for (uint32_t i = 0; i < COUNT_OF(core->changes.told_lately); i++) {
		if (core->changes.told_lately[i].lock == id128_word(m->lock_id) &&
			m->token <= core->changes.told_lately[i].token) {
			return true;
		}
	}
	const struct told *at = told_find(core, key_number_of(core, m->key));
	return at && at->any == m->token && at->lock == id128_word(m->lock_id);
}

void watch_event_told_without(struct core *core, const struct record *r) {
	const uint32_t at = core->changes.told_lately_next++ % COUNT_OF(core->changes.told_lately);
	core->changes.told_lately[at] = (struct told_once){ id128_word(r->lock_id), r->token };
}

void watch_event_order_begins(struct core *core) {
	memset(core->changes.told, 0, TOLD_BYTES);
	core->changes.told_before = core->clock + 1;
}

bool watch_event_init(struct core *core) {
	core->changes.told = alloc_new(&core->alloc, TOLD_BYTES);
	return core->changes.told != NULL;
}

void watch_event_done(struct core *core) {
	alloc_free(&core->alloc, core->changes.told, TOLD_BYTES);
}

void core_count_watchers(struct core *core, uint32_t (*count)(void *ctx, struct slice key),
	void *ctx) {
	core->changes.count_watchers = count;
	core->changes.count_watchers_ctx = ctx;
}
