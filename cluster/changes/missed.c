/* missed.c: tells those who watch of each change, and before it what they would miss (section 3,
 * Watching). What this master refuses, others may have accepted. So a refused commit or write is an
 * open question, which is kept until the answer comes: the record or the value itself, the end of
 * the lock, or the time by which either would have come. The answer is told in the order of the
 * key's tokens. Where that is too late, or the time is over, those who watch are told that events
 * of the key were missed, but not before the others can no longer accept what was refused, because
 * whoever reads anew before that does not find it.
 *
 * While nobody watches, here or at a follower, nothing is kept but one instant, by which all
 * questions of that time have had their answers. Then events of all keys were missed. */
#include "changes.h"

/* How many questions are kept in all and of one key, and the most bytes of their records. */
#define REFUSED_MAX 1024u
#define REFUSED_KEY_MAX 16u
#define REFUSED_BYTES_MAX ((size_t)4 << 20)
/* How long they are kept, in request_timeouts. A master learns what it has missed from the others
 * in less time (sync.c). */
#define WAITS 6

/* A commit or a write that was refused here and may count elsewhere. */
struct refused {
	/* Element of core->changes.refused, by the name of the key. */
	struct map_node node;
	/* Link in core->changes.refused_all, which is in the order of the refusals. */
	struct list link;
	/* The record that the commit would have made. Its end is not used. NULL: it is a write. */
	struct record *record;
	struct id128 lock_id;
	/* Of a write. */
	struct ballot ballot;
	/* When the round of the commit is over, so that nobody accepts it any more; and when those
	 * who watch are told instead that events of the key were missed. */
	struct instant over, due;
	/* The latest connection of the holder, as far as this master was told. */
	uint32_t binding;
	/* The end of the lock has been heard of; `how` says what it was. */
	bool ended;
	enum core_watch_event_kind how;
	/* It cannot be told as it was. Once it is answered, events of the key were missed. */
	bool put_off;
	/* The name of the key, and its size in bytes. */
	uint16_t size;
	uint8_t name[];
};

/* ---- questions ---- */

static struct slice name_of(const struct refused *q) {
	return slice_of(q->name, q->size);
}

static void drop(struct core *core, struct refused *q) {
	map_remove(&core->changes.refused, &q->node);
	list_remove(&q->link);
	core->changes.refused_bytes -= q->record ? record_size(q->record) : 0;
	record_free(core, q->record);
	alloc_free(&core->alloc, q, sizeof *q + q->size);
}

static void drop_all(struct core *core) {
	struct list *first;
	while ((first = list_first(&core->changes.refused_all)) != NULL) {
		drop(core, CONTAINER_OF(first, struct refused, link));
	}
}

static struct refused *next_of(struct map_node *n, struct slice name) {
	for (; n; n = map_next(n)) {
		struct refused *q = CONTAINER_OF(n, struct refused, node);
		if (slice_equal(name_of(q), name)) {
			return q;
		}
	}
	return NULL;
}

static struct refused *first_of(const struct core *core, struct slice name) {
	return missed_any(core)
		? next_of(map_first(&core->changes.refused, table_hash(core, name)), name) : NULL;
}

static struct refused *after(const struct refused *q) {
	return next_of(map_next(&q->node), name_of(q));
}

static struct refused *find(const struct core *core, struct slice name, struct id128 lock_id,
	bool write) {
	struct refused *q = first_of(core, name);
	while (q && !(id128_equal(q->lock_id, lock_id) && write == (q->record == NULL))) {
		q = after(q);
	}
	return q;
}

static struct refused *commit_of(const struct core *core, struct slice name, struct id128 lock_id) {
	return find(core, name, lock_id, false);
}

/* ---- answers ---- */

/* Tells whether the value was written after the lock's first one. */
static bool written_later(const struct core *core, const struct record *r) {
	return r->wrote_clock > 0 && !(record_wrote(core, r).boot & BALLOT_FIRST);
}

/* Tells whether a record of the key other than `but` excludes `r`. */
static bool stands_here(const struct key *key, const struct record *but, const struct record *r) {
	const struct id128 none = { { 0 } };
	const struct terms terms = record_terms(r);
	return key && key_excluding(key, but ? but->lock_id : none, &terms) != NULL;
}

/* Tells whether something newer has been told. */
static bool is_late(const struct core *core, const struct refused *q) {
	return watch_event_late(core, key_number_of(core, name_of(q)), q->record);
}

static void tell_missed(struct core *core, struct slice name) {
	COUNT(core, unseen_missed);
	watch_events_missed_of(core, name);
}

/* When the round of what was begun by now is over, and when this master has learned what came of
 * it. */
static struct instant round_over(const struct core *core) {
	return instant_add(core->now, span_grow(core->config.request_timeout,
		2 * core->config.drift_ppm));
}

static struct instant learned(const struct core *core) {
	return instant_add(core->now, WAITS * core->config.request_timeout);
}

/* Those who watch have been told that events were missed, and are told again when others can no
 * longer accept those. Whoever begins to watch soon is told when this master has learned them. */
void missed_under_way(struct core *core) {
	const struct instant at = watch_event_wanted(core) ? round_over(core) : learned(core);
	core->changes.missed_over = core->changes.missed_under_way
		? instant_later(core->changes.missed_over, at) : at;
	core->changes.missed_under_way = true;
}

void missed_of(struct core *core, struct slice name) {
	watch_events_missed_of(core, name);
	missed_under_way(core);
}

/* Tells of a lock that came and perhaps went. Where its release is still on its way, but a lock
 * that excludes it has come, that counts as its release. `but` is a record that is about to be
 * dropped, or has just come, and is in nobody's way. */
static void answer(struct core *core, const struct key *key, struct refused *q,
	const struct record *but) {
	const struct slice name = name_of(q);
	const uint64_t number = key_number_of(core, name);
	q->put_off = q->put_off || is_late(core, q) || stands_here(key, but, q->record);
	if (q->put_off && !q->ended && !instant_expired(core->now, q->over)) {
		return;
	}
	if (q->put_off) {
		tell_missed(core, name);
	} else {
		COUNT(core, unseen_told);
		if (core->changes.event_feeds == 0) {
			/* A replica at which somebody begins to watch just now is to hear that
			 * events were missed. */
			log_append(core, name, q->lock_id, NULL);
		}
		watch_event_of(core, WATCH_EVENT_ACQUIRED, name, number, q->record);
		watch_event_of(core, q->ended ? q->how : WATCH_EVENT_RELEASED, name, number,
			q->record);
		watch_event_told_without(core, q->record);
	}
	drop(core, q);
}

/* Returns the refused commit of the key with the lowest token that `r` excludes and that came
 * before `r`, or NULL. */
static struct refused *first_before(const struct core *core, struct slice name,
	const struct record *r) {
	struct refused *first = NULL;
	for (struct refused *q = first_of(core, name); q; q = after(q)) {
		const struct terms terms = record_terms(q->record ? q->record : r);
		const bool before = q->record && !q->put_off && q->record->token < r->token &&
			record_excludes(r, &terms);
		first = before && (!first || q->record->token < first->record->token) ? q : first;
	}
	return first;
}

static void answer_before(struct core *core, const struct key *key, const struct record *r,
	struct slice name, const struct record *but) {
	struct refused *before;
	while ((before = first_before(core, name, r)) != NULL) {
		answer(core, key, before, but);
	}
}

/* Returns the refused commit of the key with the lowest token whose lock has ended and that can be
 * told now, because nothing stands in its way, or can never be told. NULL: there is none. */
static struct refused *first_to_tell(const struct core *core, const struct key *key,
	struct slice name, const struct record *ends) {
	struct refused *first = NULL;
	for (struct refused *q = first_of(core, name); q; q = after(q)) {
		const bool may = q->ended &&
			(is_late(core, q) || !stands_here(key, ends, q->record));
		first = may && (!first || q->record->token < first->record->token) ? q : first;
	}
	return first;
}

/* Tells what can be told of the key now. `ends`: NULL, or a record that is about to be dropped. */
static void go_on(struct core *core, const struct key *key, struct slice name,
	const struct record *ends) {
	struct refused *q;
	while ((q = first_to_tell(core, key, name, ends)) != NULL) {
		answer_before(core, key, q->record, name, ends);
		answer(core, key, q, ends);
	}
}

static void forget_commit(struct core *core, struct slice name, struct id128 lock_id) {
	struct refused *q = commit_of(core, name, lock_id);
	if (q) {
		drop(core, q);
	}
}

/* The next value that is told, or the end of the lock, answers a refused write. */
static void answer_write(struct core *core, enum core_watch_event_kind kind, struct slice name,
	const struct record *r) {
	struct refused *q = kind == WATCH_EVENT_DOWNGRADED ? NULL
		: find(core, name, r->lock_id, true);
	const int newer = q && !q->put_off && kind == WATCH_EVENT_UPDATED
		? ballot_compare(q->ballot, record_wrote(core, r)) : -1;
	/* While a newer write was refused, its value may still come. */
	if (q && newer <= 0) {
		drop(core, q);
		if (newer < 0) {
			COUNT(core, unwritten_missed);
			watch_events_missed_of(core, name);
		}
	}
}

/* What comes before this change is told first. */
static void tell_before(struct core *core, enum core_watch_event_kind kind, const struct key *key,
	const struct record *r) {
	const struct slice name = key_name(key);
	const bool acquired = kind == WATCH_EVENT_ACQUIRED;
	if (missed_any(core)) {
		answer_write(core, kind, name, r);
		if (acquired) {
			forget_commit(core, name, r->lock_id);
			answer_before(core, key, r, name, r);
		}
	}
	if (acquired && watch_event_late(core, key_number(key), r)) {
		tell_missed(core, name);
	}
	if (acquired && written_later(core, r)) {
		COUNT(core, value_missed);
		watch_events_missed_of(core, name);
	}
}

/* If a commit was refused because of the record that ends, and its lock lives on elsewhere, the
 * other masters have it. So the next comparison, which learns it, is due at once (sync.c). If the
 * record's own commit was refused, a merge has brought the record, and the missed events that were
 * told then stand for its acquisition. */
static void tell_after_end(struct core *core, const struct key *key, const struct record *ends) {
	const struct slice name = key_name(key);
	forget_commit(core, name, ends->lock_id);
	core->changes.sync_hurry = core->changes.sync_hurry || first_of(core, name) != NULL;
	go_on(core, key, name, ends);
}

void missed_tell(struct core *core, enum core_watch_event_kind kind, struct key *key,
	struct record *r) {
	if (!watch_event_tells(core) || !key_is_live(core, key)) {
		return;
	}
	tell_before(core, kind, key, r);
	watch_event_of(core, kind, key_name(key), key_number(key), r);
	const bool ends = kind == WATCH_EVENT_RELEASED || kind == WATCH_EVENT_EXPIRED ||
		kind == WATCH_EVENT_LOST;
	if (ends && missed_any(core)) {
		tell_after_end(core, key, r);
	}
}

void missed_lock_ended(struct core *core, const struct key *key, struct slice name,
	struct id128 lock_id, enum core_watch_event_kind how) {
	struct refused *q = commit_of(core, name, lock_id);
	if (q && key && key_record(key, lock_id)) {
		/* The end of its record is told. */
		drop(core, q);
	} else if (q) {
		q->how = q->ended ? q->how : how;
		q->ended = true;
		go_on(core, key, name, NULL);
	}
}

bool missed_rests_on(const struct core *core, struct slice name, struct id128 lock_id,
	uint64_t request_name) {
	const struct refused *q = commit_of(core, name, lock_id);
	return q && q->record->rests_on == request_name;
}

void missed_bound(struct core *core, struct slice name, struct id128 lock_id, uint32_t binding) {
	struct refused *q = commit_of(core, name, lock_id);
	if (q) {
		q->binding = binding > q->binding ? binding : q->binding;
	}
}

bool missed_bound_to(const struct core *core, struct slice name, struct id128 lock_id,
	uint32_t binding) {
	const struct refused *q = commit_of(core, name, lock_id);
	return q && q->binding && q->binding <= binding;
}

/* ---- refusals ---- */

/* Tells whether somebody else may accept what was refused with this status. */
static bool may_be_elsewhere(enum status status) {
	switch (status) {
	case STATUS_HELD: case STATUS_CONTESTED: case STATUS_FULL: case STATUS_STALE:
	case STATUS_RELEASED: case STATUS_BARRED: case STATUS_CLOCK: case STATUS_EPOCH:
	case STATUS_TOO_LONG:
		return true;
	case STATUS_OK: case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_NEED:
	case STATUS_PROMISED: case STATUS_QUEUED: case STATUS_RECOVERING:
	case STATUS_DENIED: case STATUS_BALLOT: case STATUS_ABSENT: case STATUS_TERMS:
	case STATUS_LATER:
		return false;
	}
	return false;
}

/* Nothing is kept while nobody watches. */
static bool has_room(const struct core *core, struct slice name) {
	uint32_t of_key = 0;
	for (const struct refused *q = first_of(core, name); q; q = after(q)) {
		of_key++;
	}
	return watch_event_wanted(core) && core->changes.refused.count < REFUSED_MAX &&
		core->changes.refused_bytes < REFUSED_BYTES_MAX && of_key < REFUSED_KEY_MAX;
}

static void not_kept(struct core *core, struct slice name) {
	COUNT(core, unseen_missed);
	missed_of(core, name);
}

/* NULL: it is not kept. */
static struct refused *add(struct core *core, const struct message *m, bool write) {
	const bool room = has_room(core, m->key);
	struct record *r = room && !write ? record_new(core, m) : NULL;
	struct refused *q = r || (room && write) ? alloc_new(&core->alloc, sizeof *q + m->key.size)
		: NULL;
	if (q == NULL) {
		record_free(core, r);
		not_kept(core, m->key);
		return NULL;
	}
	q->record = r;
	q->lock_id = m->lock_id;
	q->ballot = m->ballot;
	q->binding = m->terms.binding;
	q->over = round_over(core);
	q->due = learned(core);
	q->size = (uint16_t)m->key.size;
	memcpy(q->name, m->key.data, m->key.size);
	core->changes.refused_bytes += r ? record_size(r) : 0;
	map_insert(&core->changes.refused, &q->node, table_hash(core, m->key));
	list_append(&core->changes.refused_all, &q->link);
	return q;
}

void missed_refused(struct core *core, const struct message *m, const struct key *key,
	enum status status) {
	struct refused *q = commit_of(core, m->key, m->lock_id);
	if (!may_be_elsewhere(status) || (key && key_record(key, m->lock_id)) ||
		watch_event_told_already(core, m)) {
		return;
	}
	const bool ended = status == STATUS_RELEASED || (q && q->ended);
	/* If the commit comes under another token, the later one counts. */
	forget_commit(core, m->key, m->lock_id);
	if (status == STATUS_CLOCK) {
		not_kept(core, m->key);
	} else if ((q = add(core, m, false)) != NULL) {
		q->record->rests_on = m->name;
		q->put_off = written_later(core, q->record);
		if (ended) {
			missed_lock_ended(core, key, m->key, m->lock_id,
				tombstone_released(core, m->lock_id) ? WATCH_EVENT_RELEASED
					: WATCH_EVENT_LOST);
		}
	}
}

void missed_write_refused(struct core *core, const struct message *m, const struct record *r) {
	const int newer = ballot_compare(m->ballot, record_wrote(core, r));
	struct refused *q = newer > 0 ? find(core, m->key, m->lock_id, true) : NULL;
	if (q) {
		/* Only the last of several values comes by a repair. */
		q->put_off = q->put_off || ballot_compare(q->ballot, m->ballot) != 0;
	} else if (newer > 0) {
		(void)add(core, m, true);
	} else if (newer < 0) {
		COUNT(core, unwritten_missed);
		watch_events_missed_of(core, m->key);
	}
}

void missed_write_to_refused(struct core *core, const struct message *m) {
	struct refused *q = commit_of(core, m->key, m->lock_id);
	if (q) {
		q->put_off = true;
	}
}

void missed_of_epoch(struct core *core, const struct message *m) {
	if (m->kind == MESSAGE_COMMIT && core_votes(core)) {
		missed_refused(core, m, table_find(core, m->key), STATUS_EPOCH);
	} else if (m->kind == MESSAGE_WRITE && core_votes(core)) {
		missed_of(core, m->key);
	}
}

/* ---- times ---- */

void missed_beat(struct core *core) {
	struct list *first;
	while ((first = list_first(&core->changes.refused_all)) != NULL &&
		instant_expired(core->now, CONTAINER_OF(first, struct refused, link)->due)) {
		struct refused *q = CONTAINER_OF(first, struct refused, link);
		tell_missed(core, name_of(q));
		drop(core, q);
	}
	if (core->changes.missed_under_way &&
		instant_expired(core->now, core->changes.missed_over)) {
		core->changes.missed_under_way = false;
		if (core_votes(core)) {
			watch_events_missed(core);
		}
	}
}

/* Somebody watches now, here or at a follower, or nobody does any more. */
static void wanted_changed(struct core *core, bool was_wanted) {
	if (!was_wanted && watch_event_wanted(core)) {
		watch_event_order_begins(core);
	} else if (was_wanted && !watch_event_wanted(core) && missed_any(core)) {
		drop_all(core);
		missed_under_way(core);
	}
}

void missed_follower(struct core *core, bool watches) {
	const bool was_wanted = watch_event_wanted(core);
	core->changes.event_feeds += watches ? 1 : UINT32_MAX;
	wanted_changed(core, was_wanted);
}

void core_want_watch_events(struct core *core, bool wants) {
	const bool was_wanted = watch_event_wanted(core);
	if (wants && !core->changes.watch_event_wanted) {
		core->observers->watched(core);
	}
	core->changes.watch_event_wanted = wants;
	wanted_changed(core, was_wanted);
}

int missed_init(struct core *core) {
	list_init(&core->changes.refused_all);
	return watch_event_init(core) ? map_init(&core->changes.refused, &core->alloc)
		: PAWL_ENOMEM;
}

void missed_done(struct core *core) {
	if (core->changes.told) {
		drop_all(core);
		map_done(&core->changes.refused);
		watch_event_done(core);
	}
}
