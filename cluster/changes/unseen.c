/* unseen.c: locks that came, and perhaps went, without this master: commits that it refused
 * although a quorum of the others may have accepted them (section 3, Watching). Each is kept until
 * the lock is learned, or its end is heard of. Then those who watch are told of it, in the order of
 * the key's tokens. Where that is too late, or takes too long, they are told that events of the key
 * were missed, but not before the others can no longer accept the commit, because whoever reads
 * anew before that does not find it. */
#include "changes.h"

/* How many are kept in all, how many of one key, and how many bytes their records may have. */
#define UNSEEN_MAX 1024u
#define UNSEEN_KEY_MAX 16u
#define UNSEEN_BYTES_MAX ((size_t)4 << 20)
/* How long they are kept, in request_timeouts. A master learns what it has missed from the others
 * in less time (sync.c). */
#define WAITS 6

/* A commit that was refused here and may count elsewhere. */
struct unseen {
	/* Element of core->changes.unseen, by the name of the key. */
	struct map_node node;
	/* Link in core->changes.unseen_all, which is in the order of the refusals. */
	struct list link;
	/* The record that the commit would have made. Its end is not used. */
	struct record *record;
	/* When the round of the commit is over. Nobody accepts it from then on. */
	struct instant over;
	/* When those who watch are told instead that events of the key were missed. */
	struct instant due;
	/* The end of the lock has been heard of; `how` says what it was. */
	bool ended;
	/* It is too late to tell of the lock. Those who watch are told that events of the key were
	 * missed, once the lock has ended or is due. */
	bool put_off;
	enum core_watch_event_kind how;
	/* The name of the key, and its size in bytes. */
	uint16_t size;
	uint8_t name[];
};

int unseen_init(struct core *core) {
	list_init(&core->changes.unseen_all);
	return told_init(core) ? map_init(&core->changes.unseen, &core->alloc) : PAWL_ENOMEM;
}

static struct slice name_of(const struct unseen *u) {
	return slice_of(u->name, u->size);
}

static void drop(struct core *core, struct unseen *u) {
	map_remove(&core->changes.unseen, &u->node);
	list_remove(&u->link);
	core->changes.unseen_bytes -= record_size(u->record);
	record_free(core, u->record);
	alloc_free(&core->alloc, u, sizeof *u + u->size);
}

static bool is_over(const struct core *core, const struct unseen *u) {
	return u->ended || instant_expired(core->now, u->over);
}

void unseen_missed_by_all(struct core *core) {
	struct list *at = core->changes.unseen_all.next;
	while (at != &core->changes.unseen_all) {
		struct unseen *u = CONTAINER_OF(at, struct unseen, link);
		at = at->next;
		if (is_over(core, u)) {
			drop(core, u);
		}
	}
}

void unseen_done(struct core *core) {
	if (core->changes.told) {
		struct list *first;
		while ((first = list_first(&core->changes.unseen_all)) != NULL) {
			drop(core, CONTAINER_OF(first, struct unseen, link));
		}
		map_done(&core->changes.unseen);
		told_done(core);
	}
}

/* ---- finding ---- */

static struct unseen *next_of(struct map_node *n, struct slice name) {
	for (; n; n = map_next(n)) {
		struct unseen *u = CONTAINER_OF(n, struct unseen, node);
		if (slice_equal(name_of(u), name)) {
			return u;
		}
	}
	return NULL;
}

static struct unseen *first_of(const struct core *core, struct slice name) {
	return core->changes.unseen.count
		? next_of(map_first(&core->changes.unseen, table_hash(core, name)), name)
		: NULL;
}

static struct unseen *after(const struct unseen *u) {
	return next_of(map_next(&u->node), name_of(u));
}

static struct unseen *find(const struct core *core, struct slice name, struct id128 lock_id) {
	struct unseen *u = first_of(core, name);
	while (u && !id128_equal(u->record->lock_id, lock_id)) {
		u = after(u);
	}
	return u;
}

static void drop_key(struct core *core, struct slice name) {
	for (struct unseen *u = first_of(core, name), *next; u; u = next) {
		next = after(u);
		if (is_over(core, u)) {
			drop(core, u);
		}
	}
}

/* ---- telling ---- */

static bool excludes(const struct record *r, const struct record *other) {
	const struct terms terms = record_terms(other);
	return record_excludes(r, &terms);
}

/* The functions that are not inline here are for refused commits that are kept, which is rare. */

/* Tells whether a record other than `but` stands on the key that excludes `r`, and whose token is
 * higher; with `higher` false, one whose token is not higher. Two commits that fail may both have
 * the same token. */
static bool stands_here(const struct key *key, const struct record *but, const struct record *r,
	bool higher) {
	const struct id128 none = { { 0 } };
	const struct terms terms = record_terms(r);
	/* Of a key with an index, most answers are known without a look at the records. */
	const bool any = key && (key_index(key) == NULL ||
		index_excludes(key_index(key), none, &terms));
	for (const struct record *other = any ? key->held : NULL; other; other = other->next) {
		if (other != but && (other->token > r->token) == higher && excludes(other, r)) {
			return true;
		}
	}
	return false;
}

/* Tells that events of the key were missed. */
static void tell_missed(struct core *core, struct slice name) {
	COUNT(core, unseen_missed);
	watch_events_missed_of(core, name);
}

/* Tells the same for a commit that is not kept. Others may accept that commit after this was told,
 * so missed events are told once more later. */
static void missed(struct core *core, struct slice name) {
	COUNT(core, unseen_missed);
	counted_key_missed(core, name);
}

/* Tells of a lock that came and perhaps went. Where its release is still on its way, but a lock
 * that excludes it has come, that counts as its release. `but` is a record that is about to be
 * dropped, or has just come, and is in nobody's way. */
static void tell(struct core *core, const struct key *key, struct unseen *u,
	const struct record *but) {
	const struct slice name = name_of(u);
	u->put_off = u->put_off || told_late(core, key_number_of(core, name_of(u)), u->record) ||
		stands_here(key, but, u->record, true) || stands_here(key, but, u->record, false);
	if (u->put_off && !is_over(core, u)) {
		return;
	}
	if (u->put_off) {
		tell_missed(core, name);
	} else {
		COUNT(core, unseen_told);
		if (core->changes.event_feeds == 0) {
			/* A replica at which somebody begins to watch just now is to hear that
			 * events were missed. */
			log_append(core, name, u->record->lock_id);
		}
		watch_event_first_value(core, name, u->record);
		watch_event_of(core, WATCH_EVENT_ACQUIRED, name, u->record);
		watch_event_of(core, u->ended ? u->how : WATCH_EVENT_RELEASED, name, u->record);
		told_record(core, key_number_of(core, name), u->record);
		told_without(core, u->record);
	}
	drop(core, u);
}

/* Returns the refused commit of the key with the lowest token that `r` excludes and that came
 * before `r`, or NULL. */
static struct unseen *first_before(const struct core *core, struct slice name,
	const struct record *r) {
	struct unseen *first = NULL;
	for (struct unseen *u = first_of(core, name); u; u = after(u)) {
		bool before = !u->put_off && u->record->token < r->token && excludes(r, u->record);
		first = before && (!first || u->record->token < first->record->token) ? u : first;
	}
	return first;
}

/* Returns the refused commit of the key with the lowest token whose lock has ended and that nothing
 * earlier stands in the way of, or NULL. */
static struct unseen *first_to_tell(const struct core *core, const struct key *key,
	struct slice name, const struct record *ends) {
	struct unseen *first = NULL;
	for (struct unseen *u = first_of(core, name); u; u = after(u)) {
		bool may = u->ended && !stands_here(key, ends, u->record, false);
		first = may && (!first || u->record->token < first->record->token) ? u : first;
	}
	return first;
}

/* Tells what can be told of the key now. `ends` is NULL, or a record of the key that is about to be
 * dropped. */
static void go_on(struct core *core, const struct key *key, struct slice name,
	const struct record *ends) {
	struct unseen *u, *before;
	while ((u = first_to_tell(core, key, name, ends)) != NULL) {
		while ((before = first_before(core, name, u->record)) != NULL) {
			tell(core, key, before, ends);
		}
		tell(core, key, u, ends);
	}
}

/* If a commit was refused because of this record, and its lock lives on elsewhere, the other
 * masters have it. So the next comparison, which learns it, is due at once (sync.c). If the
 * record's own commit was refused, a merge has brought the record, and the missed events that were
 * told then stand for its acquisition. */
static __attribute__((noinline)) void record_ended(struct core *core, const struct key *key,
	const struct record *ends) {
	struct unseen *same = find(core, key_name(key), ends->lock_id);
	if (same) {
		drop(core, same);
	}
	if (core->changes.unseen.count) {
		core->changes.sync_hurry = core->changes.sync_hurry ||
			first_of(core, key_name(key)) != NULL;
		go_on(core, key, key_name(key), ends);
	}
}

void unseen_record_ended(struct core *core, const struct key *key, const struct record *ends) {
	if (core->changes.unseen.count > 0) {
		record_ended(core, key, ends);
	}
}

static __attribute__((noinline)) void record_came(struct core *core, const struct key *key,
	const struct record *r) {
	const struct slice name = key_name(key);
	struct unseen *u = find(core, name, r->lock_id);
	if (u) {
		drop(core, u);
	}
	while (core->changes.unseen.count && (u = first_before(core, name, r)) != NULL) {
		tell(core, key, u, r);
	}
}

void unseen_record_came(struct core *core, const struct key *key, const struct record *r) {
	if (core->changes.unseen.count > 0) {
		record_came(core, key, r);
	}
	if (told_late(core, key_number(key), r)) {
		tell_missed(core, key_name(key));
	}
}

static __attribute__((noinline)) void lock_ended(struct core *core, const struct key *key,
	struct slice name, struct id128 lock_id, enum core_watch_event_kind how) {
	struct unseen *u = find(core, name, lock_id);
	if (u && key && key_record(key, lock_id)) {
		/* The end of its record is told (unseen_record_ended). */
		drop(core, u);
	} else if (u) {
		u->how = u->ended ? u->how : how;
		u->ended = true;
		if (u->put_off) {
			tell(core, key, u, NULL);
		} else {
			go_on(core, key, name, NULL);
		}
	}
}

void unseen_ended(struct core *core, const struct key *key, struct slice name, struct id128 lock_id,
	enum core_watch_event_kind how) {
	if (core->changes.unseen.count > 0) {
		lock_ended(core, key, name, lock_id, how);
	}
}

bool unseen_rests_on(const struct core *core, struct slice name, struct id128 lock_id,
	uint64_t request_name) {
	const struct unseen *u = find(core, name, lock_id);
	return u && u->record->rests_on == request_name;
}

/* style: record, because the record is that of a refused commit, and in no table. */
void unseen_written(struct core *core, const struct message *m) {
	struct unseen *u = find(core, m->key, m->lock_id);
	if (u == NULL || ballot_compare(m->ballot, record_wrote(core, u->record)) <= 0) {
		return;
	}
	core->changes.unseen_bytes -= record_size(u->record);
	const bool taken = core->changes.unseen_bytes + m->value.size < UNSEEN_BYTES_MAX &&
		record_write(core, &u->record, &m->value, m->ballot, m->ballot);
	core->changes.unseen_bytes += record_size(u->record);
	if (!taken) {
		drop(core, u);
		missed(core, m->key);
	}
}

void unseen_bound(struct core *core, struct slice name, struct id128 lock_id, uint32_t binding) {
	struct unseen *u = find(core, name, lock_id);
	if (u == NULL) {
		return;
	}
	core->changes.unseen_bytes -= record_size(u->record);
	const bool bound = record_bind(core, &u->record, binding);
	core->changes.unseen_bytes += record_size(u->record);
	if (!bound) {
		drop(core, u);
		missed(core, name);
	}
}

bool unseen_bound_to(const struct core *core, struct slice name, struct id128 lock_id,
	uint32_t binding) {
	const struct unseen *u = find(core, name, lock_id);
	const uint32_t has = u ? record_binding(u->record) : 0;
	return has && has <= binding;
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

static bool room(const struct core *core, struct slice name) {
	uint32_t of_key = 0;
	for (const struct unseen *u = first_of(core, name); u; u = after(u)) {
		of_key++;
	}
	return core->changes.unseen.count < UNSEEN_MAX &&
		core->changes.unseen_bytes < UNSEEN_BYTES_MAX && of_key < UNSEEN_KEY_MAX;
}

static struct unseen *add(struct core *core, const struct message *m) {
	struct record *r = room(core, m->key) ? record_new(core, m) : NULL;
	struct unseen *u = r ? alloc_new(&core->alloc, sizeof *u + m->key.size) : NULL;
	if (u == NULL) {
		record_free(core, r);
		return NULL;
	}
	r->rests_on = m->name;
	u->record = r;
	u->over = instant_add(core->now, span_grow(core->config.request_timeout,
		2 * core->config.drift_ppm));
	u->due = instant_add(core->now, WAITS * core->config.request_timeout);
	u->size = (uint16_t)m->key.size;
	memcpy(u->name, m->key.data, m->key.size);
	core->changes.unseen_bytes += record_size(r);
	map_insert(&core->changes.unseen, &u->node, table_hash(core, m->key));
	list_append(&core->changes.unseen_all, &u->link);
	return u;
}

void unseen_refused(struct core *core, const struct message *m, const struct key *key,
	enum status status) {
	if (!may_be_elsewhere(status) || (key && key_record(key, m->lock_id)) ||
		told_already(core, m)) {
		return;
	}
	struct unseen *u = find(core, m->key, m->lock_id);
	const bool ended = status == STATUS_RELEASED || (u && u->ended);
	/* If the commit comes under another token, the later one counts. */
	if (u) {
		drop(core, u);
	}
	u = status == STATUS_CLOCK ? NULL : add(core, m);
	if (u == NULL) {
		missed(core, m->key);
		return;
	}
	u->put_off = told_late(core, key_number_of(core, name_of(u)), u->record) ||
		stands_here(key, NULL, u->record, true);
	if (ended) {
		unseen_ended(core, key, m->key, m->lock_id,
			tombstone_released(core, m->lock_id) ? WATCH_EVENT_RELEASED
				: WATCH_EVENT_LOST);
	}
}

/* They stand in the order of their times. The missed events that are told are all of the key's. */
void unseen_beat(struct core *core) {
	struct list *first;
	while ((first = list_first(&core->changes.unseen_all)) != NULL &&
			instant_expired(core->now, CONTAINER_OF(first, struct unseen, link)->due)) {
		const struct unseen *u = CONTAINER_OF(first, struct unseen, link);
		const uint16_t size = u->size;
		uint8_t name[KEY_MAX];
		memcpy(name, u->name, size);
		drop_key(core, slice_of(name, size));
		tell_missed(core, slice_of(name, size));
	}
}

void unseen_of_epoch(struct core *core, const struct message *m) {
	if (m->kind == MESSAGE_COMMIT && core_votes(core)) {
		unseen_refused(core, m, table_find(core, m->key), STATUS_EPOCH);
	} else if (m->kind == MESSAGE_WRITE && core_votes(core)) {
		counted_key_missed(core, m->key);
	}
}
