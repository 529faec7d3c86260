/* table.c: the keys that a node knows, and what stands on them (section 1). A record past its end
 * does not exist: whoever looks a key up sees only what is alive at the time of this step. */
#include "store.h"

struct key *table_peek_hashed(const struct table *t, struct slice name, uint64_t hash) {
	for (struct map_node *n = map_first(&t->keys, hash); n; n = map_next(n)) {
		struct key *key = CONTAINER_OF(n, struct key, node);
		if (key->size == name.size && memcmp(key->name, name.data, name.size) == 0) {
			return key;
		}
	}
	return NULL;
}

const struct key *table_peek(const struct core *core, struct slice name) {
	return table_peek_hashed(core->store.live, name, table_hash(core, name));
}

struct key *table_find_hashed(struct core *core, struct slice name, uint64_t hash) {
	struct key *key = table_peek_hashed(core->store.live, name, hash);
	if (key && core->store.finish.active) {
		finish_key(core, key);
	}
	return key && table_expire(core, key) ? key : NULL;
}

struct key *table_find(struct core *core, struct slice name) {
	return table_find_hashed(core, name, table_hash(core, name));
}

static struct key *find_in(struct core *core, struct table *t, struct slice name, uint64_t hash) {
	if (t == core->store.live) {
		return table_find_hashed(core, name, hash);
	}
	struct key *key = table_peek_hashed(t, name, hash);
	return key && table_expire(core, key) ? key : NULL;
}

struct key *table_find_in(struct core *core, struct table *t, struct slice name) {
	return find_in(core, t, name, table_hash(core, name));
}

/* The name begins in the padding of the struct, of which no key has less. */
static size_t key_bytes(size_t name_size) {
	const size_t bytes = offsetof(struct key, name) + name_size;
	return bytes > sizeof(struct key) ? bytes : sizeof(struct key);
}

struct key *table_add(struct core *core, struct table *t, struct slice name, uint64_t hash) {
	if (t->keys.count >= core->limits.keys) {
		COUNT(core, full);
		return NULL;
	}
	struct key *key = alloc_new(&core->alloc, key_bytes(name.size));
	if (key == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	key->size = name.size & 0x3ff;
	key->timer.wheel.own = (digest_leaf_of(name) |
		(unsigned)(t - core->store.tables) * DIGEST_LEAVES) & UINT16_MAX;
	key->group = key_groups_find(&core->store.groups, name) & 0x3f;
	memcpy(key->name, name.data, name.size);
	if (!digest_add_key(core, t, key, hash)) {
		alloc_free(&core->alloc, key, key_bytes(key->size));
		return NULL;
	}
	map_insert(&t->keys, &key->node, hash);
	return key;
}

struct key *table_make_in(struct core *core, struct table *t, struct slice name) {
	uint64_t hash = table_hash(core, name);
	struct key *key = find_in(core, t, name, hash);
	return key ? key : table_add(core, t, name, hash);
}

struct key *table_make(struct core *core, struct slice name) {
	return table_make_in(core, core->store.live, name);
}

/* Tells whether anybody waits for a key that has this, in any way. */
static bool awaited(const struct key_more *more) {
	return more->waiters > 0 || more->parked_count > 0 ||
		!list_empty(&more->waits[WAITS_HELD]) || !list_empty(&more->waits[WAITS_FREE]);
}

/* Few keys have a struct key_more, and the others are to cost little. */
static __attribute__((noinline)) void free_more(struct core *core, struct key *key) {
	struct key_more *more = key_more(key);
	/* A key whose count goes up and down a little keeps its index. */
	if (more->index && more->index->count < (core->limits.indexed + 1) / 2) {
		index_free(core, key);
	}
	if (!awaited(more) && more->index == NULL) {
		key->rare = (uintptr_t)more->promises;
		alloc_free(&core->alloc, more, sizeof *more);
	}
}

/* Returns the first end of all records and promises of a key that has some. */
static __attribute__((noinline)) struct instant first_end(const struct key *key) {
	const struct promise *promises = key_promises(key);
	struct instant first = promises ? promises->end : key->held->end;
	for (const struct promise *p = promises; p; p = p->next) {
		first = p->end.boot < first.boot ? p->end : first;
	}
	if (key_index(key) && key->held) {
		const struct instant end = index_first_end(key_index(key));
		return end.boot < first.boot ? end : first;
	}
	for (const struct record *r = key->held; r; r = r->next) {
		const struct lapsing l = record_lapsing(r);
		first = r->end.boot < first.boot ? r->end : first;
		first = !permits_none(l.set) && l.end.boot < first.boot ? l.end : first;
	}
	return first;
}

bool table_settle(struct core *core, struct key *key) {
	if (key_more(key)) {
		free_more(core, key);
	}
	const struct promise *p = key_promises(key);
	const struct record *r = key->held;
	if (r || p) {
		/* A timer that is set fires at or before the first end (key_ends_by). */
		if (!wheel_armed(&key->timer.wheel)) {
			/* Most keys have one promise, or one record. */
			const struct instant first = r == NULL && p->next == NULL ? p->end
				: p == NULL && r->next == NULL && !terms_of_numbers(r->of) ? r->end
				: first_end(key);
			timer_at(core, &key->timer, TIMER_KEY, first);
		}
		return true;
	}
	timer_stop(core, &key->timer);
	if (key_more(key)) {
		return true;
	}
	digest_drop_key(core, key);
	map_remove(&key_table(core, key)->keys, &key->node);
	alloc_free(&core->alloc, key, key_bytes(key->size));
	return false;
}

void key_ends_by(struct core *core, struct key *key, struct instant end) {
	/* A timer that is not armed is set when the key is settled. */
	if (wheel_armed(&key->timer.wheel)) {
		timer_by(core, &key->timer, TIMER_KEY, end);
	}
}

/* It is rare, and its caller is to cost little. */
static bool drop_ended(struct core *core, struct key *key) __attribute__((noinline));

static bool drop_ended(struct core *core, struct key *key) {
	struct record_index *x = key_index(key);
	bool ended = false;
	for (struct promise *p = key_promises(key), *after; p; p = after) {
		after = p->next;
		if (instant_expired(core->now, p->end)) {
			first_lost(core, p->lock_id, p->first);
			key_drop_promise(core, key, p);
			ended = true;
		}
	}
	for (struct record *r = x ? index_due(core, x, NULL) : key->held, *next; r; r = next) {
		next = x ? index_due(core, x, r) : r->next;
		bool over = instant_expired(core->now, r->end);
		if (!over && terms_of_numbers(r->of)) {
			ended = record_run_out(core, key, r) || ended;
			/* A record without a number is nobody's (section 10), however long its
			 * lease is. */
			over = permits_none(record_set(r));
		}
		if (over) {
			COUNT(core, expired);
			core->counts[COUNT_delay_closed] += record_delay(r) > 0;
			core->observers->record_changed(core, key, r, RECORD_EXPIRED);
			first_ended(core, r);
			key_drop_record(core, key, r);
			ended = true;
		}
	}
	if (ended && key_is_live(core, key)) {
		core->observers->key_ended(core, key);
	}
	bool left = key->held || key_promises(key) || (key_more(key) && awaited(key_more(key)));
	if (ended || !left) {
		table_settle(core, key);
	}
	return left;
}

bool table_expire(struct core *core, struct key *key) {
	/* Each message looks a key up, and mostly nothing of it has ended. Of a key with more than
	 * that drop_ended finds out. */
	bool ended = key_more(key) || (key->held == NULL && key_promises(key) == NULL);
	for (const struct promise *p = key_promises(key); p && !ended; p = p->next) {
		ended = instant_expired(core->now, p->end);
	}
	for (const struct record *r = key->held; r && !ended; r = r->next) {
		ended = instant_expired(core->now, r->end) || record_has_lapsing(r);
	}
	return !ended || drop_ended(core, key);
}

void table_count(struct core *core, const struct key *key, uint16_t of, uint64_t by) {
	struct table *t = key_table(core, key);
	t->held_count += by;
	t->held_modes[figure_mode_of(of)] += by;
	if (key->group < KEY_GROUPS_MAX) {
		t->held_groups[key->group] += by;
	}
}

void table_free_key(struct core *core, struct key *key) {
	timer_stop(core, &key->timer);
	key_table(core, key)->contested_count -= key_contested(key);
	if (key_index(key)) {
		index_free(core, key);
	}
	while (key->held) {
		struct record *r = key->held;
		key->held = r->next;
		digest_leave(core, key, r);
		table_count(core, key, r->of, (uint64_t)-1);
		record_free(core, r);
	}
	while (key_promises(key)) {
		key_drop_promise(core, key, key_promises(key));
	}
	if (key_more(key)) {
		core->observers->key_freed(core, key);
		alloc_free(&core->alloc, key_more(key), sizeof(struct key_more));
	}
	digest_drop_key(core, key);
	map_remove(&key_table(core, key)->keys, &key->node);
	alloc_free(&core->alloc, key, key_bytes(key->size));
}

static void table_key_drained(void *core, struct map_node *node) {
	table_free_key(core, CONTAINER_OF(node, struct key, node));
}

void table_clear(struct core *core, struct table *t) {
	map_drain(&t->keys, table_key_drained, core);
}

/* ---- the staging table ---- */
#define EMPTY_KEYS_A_STEP 64
#define EMPTY_BUCKETS_A_STEP 1024
#define EMPTY_GROUPS_A_STEP 4

bool table_staging_free(const struct core *core) {
	return core->store.staging_use == STAGING_FREE;
}

bool table_staging_take(struct core *core) {
	if (!table_staging_free(core)) {
		return false;
	}
	core->store.staging_use = STAGING_BUILDING;
	return true;
}

void table_staging_drop(struct core *core) {
	CHECK(core->store.staging_use == STAGING_BUILDING);
	core->store.staging_use = STAGING_EMPTYING;
	pending_add(core, PENDING_EMPTYING);
	core->store.empty_bucket = core->store.staging->keys.bucket_count;
}

/* Goes from the last bucket down. While the table shrinks, its elements only move to buckets that
 * are still to come. */
void table_empty_go_on(struct core *core) {
	struct table *t = core->store.staging;
	uint32_t keys = 0, buckets = 0;
	while (t->keys.count > 0 && keys < EMPTY_KEYS_A_STEP && buckets++ < EMPTY_BUCKETS_A_STEP) {
		CHECK(core->store.empty_bucket > 0);
		size_t bucket = core->store.empty_bucket < t->keys.bucket_count
			? core->store.empty_bucket : t->keys.bucket_count;
		core->store.empty_bucket = bucket - 1;
		struct map_node *n;
		while (bucket <= t->keys.bucket_count &&
			(n = map_bucket(&t->keys, bucket - 1)) != NULL) {
			table_free_key(core, CONTAINER_OF(n, struct key, node));
			keys++;
		}
	}
	if (t->keys.count == 0 && digest_done(core, t, EMPTY_GROUPS_A_STEP)) {
		t->tries = 0;
		t->latest = (struct instant){ 0, 0 };
		core->store.staging_use = STAGING_FREE;
		pending_left(core, PENDING_EMPTYING, false);
		core->observers->table_emptied(core);
	}
}

void table_swap(struct core *core) {
	CHECK(core->store.staging_use == STAGING_BUILDING && core->store.promise_count == 0);
	struct table *old = core->store.live;
	core->observers->table_ends(core, old);
	core->store.live = core->store.staging;
	core->store.staging = old;
	table_staging_drop(core);
	COUNT(core, table_swapped);
	core->observers->table_swapped(core, old);
}

/* ---- records ---- */

/* Returns the pointer that points at the record. */
static struct record **link_of(struct key *key, const struct record *r) {
	struct record **at = &key->held;
	if (*at != r && key_index(key)) {
		return index_link(key, r);
	}
	while (*at != r) {
		at = &(*at)->next;
	}
	return at;
}

/* The record was at `r` before. Returns where it is now. */
static struct record *moved(struct key *key, const struct record *r, struct record **at) {
	if (*at != r && key_index(key)) {
		index_moved(key_index(key), *at);
	}
	return *at;
}

/* style: record, because whoever sets ballots and values says so. */
struct record *key_write(struct core *core, struct key *key, struct record *r,
	const struct slice *value, struct ballot wrote, struct ballot prepared) {
	struct record **at = link_of(key, r);
	if (ballot_compare(wrote, record_wrote(core, r)) != 0) {
		digest_leave(core, key, r);
	}
	if (record_write(core, at, value, wrote, prepared)) {
		return moved(key, r, at);
	}
	if (!r->digested) {
		digest_join(core, key, r);
	}
	return NULL;
}

struct record *key_bind(struct core *core, struct key *key, struct record *r, uint32_t binding) {
	if (binding <= record_binding(r)) {
		return r;
	}
	struct record **at = link_of(key, r);
	return record_bind(core, at, binding) ? moved(key, r, at) : NULL;
}

void key_note_contested(struct core *core, const struct key *key, bool before) {
	bool after = key_contested(key);
	if (after && !before) {
		COUNT(core, contested);
		key_table(core, key)->contested_count++;
		out_note(core, NOTE_CONTESTED, core->self, 0, NULL, key_name(key));
	} else if (before && !after) {
		COUNT(core, contested_ended);
		key_table(core, key)->contested_count--;
		out_note(core, NOTE_CONTESTED_ENDED, core->self, 0, NULL, key_name(key));
	}
}

void key_add_record(struct core *core, struct key *key, struct record *r) {
	CHECK(key_record(key, r->lock_id) == NULL);
	bool several = key->held != NULL, contested = several && table_contested(core, key);
	r->next = key->held;
	key->held = r;
	table_count(core, key, r->of, 1);
	if (several || key_index(key)) {
		index_added(core, key);
	}
	if (several) {
		key_note_contested(core, key, contested);
		core->counts[COUNT_key_several] += !table_contested(core, key);
	}
	key_ends_by(core, key, r->end);
}

void key_drop_record(struct core *core, struct key *key, struct record *r) {
	bool contested = table_contested(core, key);
	*link_of(key, r) = r->next;
	if (key_index(key)) {
		index_drop(core, key, r);
	}
	if (core->copied && key_is_live(core, key)) {
		core->observers->record_lost(core, key, r,
			instant_expired(core->now, r->end) ? record_delay(r) : 0);
	}
	lacked_since(core, r->lock_id, instant_expired(core->now, r->end) ? r->end : core->now);
	digest_leave(core, key, r);
	table_count(core, key, r->of, (uint64_t)-1);
	record_free(core, r);
	if (contested) {
		key_note_contested(core, key, true);
	}
}

void record_shorten(struct core *core, struct key *key, struct record *r, span_ns left) {
	const struct instant end = instant_add(core->now, left);
	r->end.boot = end.boot < r->end.boot ? end.boot : r->end.boot;
	r->end.raw = end.raw < r->end.raw ? end.raw : r->end.raw;
	/* The end is an earlier one now. The caller settles the key. */
	key_ends_earlier(core, key, r);
}

void key_ends_earlier(struct core *core, struct key *key, const struct record *r) {
	key_ends_by(core, key, r->end);
	if (key_index(key)) {
		index_ends_earlier(key_index(key), r);
	}
}
