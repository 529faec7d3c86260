/* grants.c: what is remembered of keys, locks and streams, and the judgement (see grants.h).
 *
 * A FEED_RECORD says how a record is at the moment at which it is sent, a watch event what happened
 * when it got its number. So a record of a later life may come in front of the end of an earlier
 * one. Therefore two records that stand in the table at once are a breach only when everything has
 * come that happened before the second one was sent, and none of it ended the first. */
#include "grants.h"

#include "list.h"
#include "map.h"
#include "slice.h"

/* The stream of one master. */
struct stream {
	/* It grows whenever the stream does not go on where it was. */
	uint32_t session;
	/* The log, and the number of the entry that comes next. */
	uint64_t log, next;
	/* The whole table has come. */
	bool whole;
	/* How often the master has not told an event: an end may have been among them. */
	uint32_t untold;
};

enum verdict { VERDICT_NONE, VERDICT_WAITS, VERDICT_OVERLAP, VERDICT_EARLY, VERDICT_TOKEN };

/* What one master has told of one lock. */
struct sight {
	/* The session of the stream; 0: the master has never told of the lock. */
	uint32_t session;
	/* The record is in the table; its lease has ended there before `until`; and a commit has
	 * made it, not a repair, which may bring a lock of before. */
	bool live, early, by_commit;
	enum verdict verdict;
	/* The log, and the number of the entry that told of the lock first; 0: it was in the
	 * snapshot. */
	uint64_t log, number;
	/* The lease does not end before, unless the master has not told an event since, or its
	 * holder has shortened it under a greater order. */
	struct instant until;
	uint32_t order;
	/* stream.untold at that time. */
	uint32_t untold;
	/* What `verdict` says, it says of this lock and its token. */
	struct id128 against;
	uint64_t against_token;
	/* VERDICT_WAITS: since when. */
	struct instant since;
};

struct lock {
	struct lock *next;
	struct id128 lock_id;
	uint64_t token;
	/* A quorum of the masters has accepted it; and it is part of a reported breach. */
	bool granted, told;
	uint8_t owner_size;
	uint8_t owner[GRANTS_OWNER_MAX];
	/* By peer index: as many as there are masters. */
	struct sight at[];
};

struct granted_key {
	struct map_node node;
	/* All keys, the one that was granted least lately first. */
	struct list all;
	/* Linked while a verdict waits. */
	struct list waits;
	/* The newest first. */
	struct lock *locks;
	uint16_t size;
	uint8_t name[];
};

struct grants {
	struct grants_options options;
	struct map keys;
	struct list all, waits;
	uint32_t masters, quorum, drift_ppm;
	struct stream streams[MASTERS_MAX];
};

const char *grants_why_text(enum grants_why why) {
	static const char *const texts[] = {
		[GRANTS_OVERLAP] = "a master had both locks at once",
		[GRANTS_EARLY] = ("the earlier lease ended at a master before its time, and the "
			"later lock was granted there within that time"),
		[GRANTS_TOKEN] = "the later lock does not have the greater token",
	};
	return texts[why];
}

/* ---- memory ---- */

static size_t lock_bytes(const struct grants *a) {
	return sizeof(struct lock) + a->masters * sizeof(struct sight);
}

static void drop_lock(struct grants *a, struct granted_key *key, struct lock *lock) {
	struct lock **at = &key->locks;
	while (*at != lock) {
		at = &(*at)->next;
	}
	*at = lock->next;
	alloc_free(a->options.alloc, lock, lock_bytes(a));
}

static void drop_key(struct grants *a, struct granted_key *key) {
	while (key->locks) {
		drop_lock(a, key, key->locks);
	}
	list_remove(&key->all);
	list_remove(&key->waits);
	map_remove(&a->keys, &key->node);
	alloc_free(a->options.alloc, key, sizeof *key + key->size);
}

static void drop_all(struct grants *a) {
	struct list *first;
	while ((first = list_first(&a->all)) != NULL) {
		drop_key(a, CONTAINER_OF(first, struct granted_key, all));
	}
}

struct grants *grants_new(const struct grants_options *options) {
	struct grants *a = alloc_new(options->alloc, sizeof *a);
	if (a == NULL) {
		return NULL;
	}
	a->options = *options;
	list_init(&a->all);
	list_init(&a->waits);
	if (map_init(&a->keys, options->alloc) != 0) {
		alloc_free(options->alloc, a, sizeof *a);
		return NULL;
	}
	return a;
}

void grants_free(struct grants *a) {
	if (a) {
		drop_all(a);
		map_done(&a->keys);
		alloc_free(a->options.alloc, a, sizeof *a);
	}
}

size_t grants_keys(const struct grants *a) {
	return a->keys.count;
}

static struct granted_key *find_key(const struct grants *a, struct slice name) {
	const uint64_t hash = siphash(a->options.hash_key, name.data, name.size);
	for (struct map_node *n = map_first(&a->keys, hash); n; n = map_next(n)) {
		struct granted_key *key = CONTAINER_OF(n, struct granted_key, node);
		if (slice_equal(slice_of(key->name, key->size), name)) {
			return key;
		}
	}
	return NULL;
}

/* Returns NULL if there is no memory: what is not remembered is not judged. */
static struct granted_key *find_or_add_key(struct grants *a, struct slice name) {
	struct granted_key *key = find_key(a, name);
	if (key == NULL) {
		if (a->keys.count >= GRANTS_KEYS_MAX) {
			drop_key(a, CONTAINER_OF(list_first(&a->all), struct granted_key, all));
		}
		key = alloc_new(a->options.alloc, sizeof *key + name.size);
		if (key == NULL) {
			return NULL;
		}
		key->size = (uint16_t)name.size;
		slice_put(key->name, name);
		map_insert(&a->keys, &key->node,
			siphash(a->options.hash_key, name.data, name.size));
	}
	list_remove(&key->all);
	list_append(&a->all, &key->all);
	return key;
}

static struct lock *find_lock(const struct granted_key *key, struct id128 lock_id) {
	struct lock *lock = key->locks;
	while (lock && !id128_equal(lock->lock_id, lock_id)) {
		lock = lock->next;
	}
	return lock;
}

/* The lock comes to the front, and where there are too many, the one that came least lately goes.
 * Returns NULL if there is no memory. */
static struct lock *add_lock(struct grants *a, struct granted_key *key, const struct message *m) {
	struct lock *lock = alloc_new(a->options.alloc, lock_bytes(a)), *last = key->locks;
	if (lock == NULL) {
		return NULL;
	}
	uint32_t count = 1;
	for (; last && last->next; last = last->next) {
		count++;
	}
	if (count >= GRANTS_LOCKS_MAX) {
		drop_lock(a, key, last);
	}
	lock->lock_id = m->lock_id;
	lock->token = m->token;
	lock->owner_size = (uint8_t)(m->owner.size < GRANTS_OWNER_MAX ? m->owner.size
		: GRANTS_OWNER_MAX);
	slice_put(lock->owner, slice_of(m->owner.data, lock->owner_size));
	lock->next = key->locks;
	key->locks = lock;
	return lock;
}

/* ---- the judgement ---- */

static bool before(struct instant now, struct instant end) {
	return !instant_distrusted(now, end);
}

static bool told_now(const struct grants *a, const struct lock *lock, uint32_t master) {
	return lock->at[master].session != 0 &&
		lock->at[master].session == a->streams[master].session;
}

static struct core_note_holder holder(const struct lock *lock) {
	return (struct core_note_holder){ lock->token, slice_of(lock->owner, lock->owner_size) };
}

/* Reports the pair once a quorum has accepted both. */
static void report(struct grants *a, struct granted_key *key, struct lock *lock, uint32_t master) {
	const struct sight *s = &lock->at[master];
	struct lock *other = find_lock(key, s->against);
	if (other == NULL || other->token != s->against_token || !other->granted ||
		!lock->granted || (lock->told && other->told)) {
		return;
	}
	const bool first = s->verdict == VERDICT_OVERLAP && lock->token < other->token;
	lock->told = other->told = true;
	a->options.breach(a->options.ctx, &(struct grants_breach){
		.why = s->verdict == VERDICT_OVERLAP ? GRANTS_OVERLAP
			: s->verdict == VERDICT_EARLY ? GRANTS_EARLY : GRANTS_TOKEN,
		.master = master, .key = slice_of(key->name, key->size),
		.holders = { holder(first ? lock : other), holder(first ? other : lock) } });
}

static void report_all(struct grants *a, struct granted_key *key) {
	for (struct lock *lock = key->locks; lock; lock = lock->next) {
		for (uint32_t i = 0; i < a->masters; i++) {
			if (lock->at[i].verdict > VERDICT_WAITS) {
				report(a, key, lock, i);
			}
		}
	}
}

static void judge(struct sight *s, const struct lock *other, enum verdict verdict) {
	s->verdict = verdict;
	s->against = other->lock_id;
	s->against_token = other->token;
}

/* The master tells that it has the lock; `fresh`: for the first time. Compares it with another lock
 * of the key. */
static void compare(struct grants *a, struct granted_key *key, struct lock *lock,
	const struct lock *other, uint32_t master, bool fresh, struct instant now) {
	const struct stream *stream = &a->streams[master];
	const struct sight *o = &other->at[master];
	struct sight *s = &lock->at[master];
	const bool same = told_now(a, other, master);
	if (s->verdict != VERDICT_NONE || o->session == 0) {
		return;
	}
	if (same && o->live) {
		judge(s, other, VERDICT_WAITS);
		s->since = now;
		if (!list_linked(&key->waits)) {
			list_append(&a->waits, &key->waits);
		}
	} else if (fresh && same && o->early && before(now, o->until)) {
		judge(s, other, VERDICT_EARLY);
	} else if (fresh && s->by_commit && lock->token <= other->token &&
		(same ? stream->whole && s->number > o->number
			: stream->log >> 32 > o->log >> 32)) {
		/* The upper half of a log's id is the boot. What a master has accepted since it
		 * started is later than what it accepted before. */
		judge(s, other, VERDICT_TOKEN);
	}
}

/* The lock is over at the master: nothing that waits for more about it will come. */
static void over(struct granted_key *key, struct lock *lock, uint32_t master) {
	lock->at[master].live = false;
	for (struct lock *l = key->locks; l; l = l->next) {
		struct sight *s = &l->at[master];
		if (s->verdict == VERDICT_WAITS && id128_equal(s->against, lock->lock_id)) {
			s->verdict = VERDICT_NONE;
		}
	}
}

/* ---- what comes ---- */

static void record_came(struct grants *a, uint32_t master, const struct message *m,
	struct instant sent, struct instant now) {
	const struct stream *stream = &a->streams[master];
	struct granted_key *key = find_key(a, m->key);
	struct lock *lock = key ? find_lock(key, m->lock_id) : NULL;
	if (m->terms.of != MODE_EXCLUSIVE || !(m->flags & FLAG_BY_RULES)) {
		/* A lock that was downgraded is exclusive no more. What came by a merge says
		 * nothing about a grant. */
		if (lock && m->terms.of != MODE_EXCLUSIVE) {
			drop_lock(a, key, lock);
		}
		return;
	}
	if (lock && m->token > lock->token) {
		drop_lock(a, key, lock);
		lock = NULL;
	}
	key = find_or_add_key(a, m->key);
	lock = lock || key == NULL ? lock : add_lock(a, key, m);
	if (lock == NULL || m->token < lock->token) {
		return;
	}
	struct sight *s = &lock->at[master];
	const bool fresh = !told_now(a, lock, master) || !s->live;
	if (fresh) {
		*s = (struct sight){ .session = stream->session, .live = true,
			.by_commit = (m->flags & FLAG_BY_COMMIT) != 0, .log = stream->log,
			.number = m->number, .untold = stream->untold };
	}
	/* Durations of another clock, and rounded up to microseconds. */
	const struct instant until = instant_add(sent,
		span_shrink(span_from_us(m->left_us), 2 * a->drift_ppm) - 2 * SPAN_US);
	s->until = s->untold == stream->untold && m->terms.binding <= s->order
		? instant_later(s->until, until) : until;
	s->order = m->terms.binding > s->order ? m->terms.binding : s->order;
	s->untold = stream->untold;
	uint32_t accepted = 0;
	for (uint32_t i = 0; i < a->masters; i++) {
		accepted += lock->at[i].session != 0;
	}
	lock->granted = lock->granted || accepted >= a->quorum;
	for (const struct lock *other = key->locks; other; other = other->next) {
		if (other != lock) {
			compare(a, key, lock, other, master, fresh, now);
		}
	}
	report_all(a, key);
}

/* The lease is over at the master before its time. Whoever has the key there now has been accepted
 * within that time. */
static void expired_early(struct grants *a, struct granted_key *key, struct lock *lock,
	uint32_t master) {
	lock->at[master].early = true;
	for (struct lock *l = key->locks; l; l = l->next) {
		struct sight *s = &l->at[master];
		if (l != lock && told_now(a, l, master) && s->live && s->verdict <= VERDICT_WAITS) {
			judge(s, lock, VERDICT_EARLY);
		}
	}
	report_all(a, key);
}

/* The master does not tell an event. What waits for the end of a lock would wait in vain. And a
 * lease may have been lost, of which only the end of its lock delay will be told. */
static void blind(struct grants *a, uint32_t master) {
	a->streams[master].untold++;
	for (struct list *at = list_first(&a->waits); at; at = list_after(&a->waits, at)) {
		struct granted_key *key = CONTAINER_OF(at, struct granted_key, waits);
		for (struct lock *lock = key->locks; lock; lock = lock->next) {
			if (lock->at[master].verdict == VERDICT_WAITS) {
				lock->at[master].verdict = VERDICT_NONE;
			}
		}
	}
}

static void event_came(struct grants *a, uint32_t master, const struct message *m,
	struct instant now) {
	if (m->parts == 0 || m->part == (uint32_t)WATCH_EVENT_MISSED) {
		blind(a, master);
		return;
	}
	struct granted_key *key = find_key(a, m->key);
	struct lock *lock = key ? find_lock(key, m->lock_id) : NULL;
	if (lock == NULL || lock->token != m->token || !told_now(a, lock, master)) {
		return;
	}
	switch ((enum core_watch_event_kind)m->part) {
	case WATCH_EVENT_RELEASED: case WATCH_EVENT_LOST:
		over(key, lock, master);
		/* If only its lock delay is left, that is shorter than the lease was. */
		lock->at[master].until = (struct instant){ 0, 0 };
		break;
	case WATCH_EVENT_EXPIRED:
		over(key, lock, master);
		if (lock->at[master].untold == a->streams[master].untold &&
			m->terms.binding <= lock->at[master].order &&
			before(now, lock->at[master].until)) {
			expired_early(a, key, lock, master);
		}
		break;
	case WATCH_EVENT_DOWNGRADED:
		drop_lock(a, key, lock);
		break;
	case WATCH_EVENT_ACQUIRED: case WATCH_EVENT_UPDATED: case WATCH_EVENT_ASKED:
	case WATCH_EVENT_MISSED:
		break;
	}
}

void grants_entry(struct grants *a, uint32_t master, const struct message *m, struct instant sent,
	struct instant now) {
	if (m->number) {
		a->streams[master].next = m->number + 1;
	}
	if (m->kind == MESSAGE_FEED_RECORD) {
		record_came(a, master, m, sent, now);
	} else if (m->kind == MESSAGE_FEED_WATCH_EVENT) {
		event_came(a, master, m, now);
	} else {
		struct granted_key *key = find_key(a, m->key);
		struct lock *lock = key ? find_lock(key, m->lock_id) : NULL;
		if (lock && told_now(a, lock, master)) {
			over(key, lock, master);
		}
	}
}

/* ---- streams ---- */

void grants_epoch(struct grants *a, uint32_t masters, uint32_t quorum, uint32_t drift_ppm) {
	drop_all(a);
	a->masters = masters;
	a->quorum = quorum;
	a->drift_ppm = drift_ppm;
	for (uint32_t i = 0; i < MASTERS_MAX; i++) {
		a->streams[i] = (struct stream){ .session = a->streams[i].session };
	}
}

void grants_begins(struct grants *a, uint32_t master, uint64_t log, uint64_t number,
	bool snapshot) {
	struct stream *s = &a->streams[master];
	if (!snapshot && s->log == log && s->next == number) {
		return;
	}
	*s = (struct stream){ .session = s->session + 1, .log = log, .next = number };
}

/* Everything has come that happened at the master before it heard what was said at this moment. */
static void heard_until(struct grants *a, struct granted_key *key, uint32_t master,
	struct instant heard) {
	for (struct lock *lock = key->locks; lock; lock = lock->next) {
		struct sight *s = &lock->at[master];
		if (s->verdict != VERDICT_WAITS || !instant_expired(heard, s->since)) {
			continue;
		}
		const struct lock *other = find_lock(key, s->against);
		const bool both = other && other->token == s->against_token &&
			told_now(a, other, master) && other->at[master].live &&
			told_now(a, lock, master);
		s->verdict = both ? VERDICT_OVERLAP : VERDICT_NONE;
	}
	report_all(a, key);
}

static bool still_waits(const struct grants *a, const struct granted_key *key) {
	for (const struct lock *lock = key->locks; lock; lock = lock->next) {
		for (uint32_t i = 0; i < a->masters; i++) {
			if (lock->at[i].verdict == VERDICT_WAITS) {
				return true;
			}
		}
	}
	return false;
}

void grants_batch(struct grants *a, uint32_t master, bool whole, const struct instant *heard) {
	struct stream *stream = &a->streams[master];
	stream->whole = stream->whole || whole;
	for (struct list *at = list_first(&a->waits), *next; at && heard; at = next) {
		struct granted_key *key = CONTAINER_OF(at, struct granted_key, waits);
		next = list_after(&a->waits, at);
		heard_until(a, key, master, *heard);
		if (!still_waits(a, key)) {
			list_remove(at);
		}
	}
}
