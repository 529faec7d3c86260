/* index.c: an index over the records of a key that has many, so that no message looks at all of
 * them. It has three orders of the records, and sums that say what excludes what. A key with few
 * records has none, and neither has one that there was no memory for: its records are examined one
 * after the other. */
#include "store.h"

/* ---- the three orders ---- */

static const struct record_place *lock_place(const struct tree_node *n) {
	return CONTAINER_OF(n, const struct record_place, by_lock);
}

static bool lock_before(const void *ctx, const struct tree_node *a, const struct tree_node *b) {
	(void)ctx;
	return id128_compare(lock_place(a)->lock_id, lock_place(b)->lock_id) < 0;
}

static bool end_before(const void *ctx, const struct tree_node *a, const struct tree_node *b) {
	(void)ctx;
	const struct record_place *p = CONTAINER_OF(a, const struct record_place, by_end),
		*q = CONTAINER_OF(b, const struct record_place, by_end);
	return p->due != q->due ? p->due < q->due : id128_compare(p->lock_id, q->lock_id) < 0;
}

static bool token_before(const void *ctx, const struct tree_node *a, const struct tree_node *b) {
	(void)ctx;
	const struct record_place *p = CONTAINER_OF(a, const struct record_place, by_token),
		*q = CONTAINER_OF(b, const struct record_place, by_token);
	return p->token != q->token ? p->token > q->token
		: id128_compare(p->lock_id, q->lock_id) < 0;
}

static struct record_place *find(const struct record_index *x, struct id128 lock_id) {
	const struct record_place probe = { .lock_id = lock_id };
	struct tree_node *n = tree_from(x->by_lock, &probe.by_lock, lock_before, NULL);
	struct record_place *p = n ? CONTAINER_OF(n, struct record_place, by_lock) : NULL;
	return p && id128_equal(p->lock_id, lock_id) ? p : NULL;
}

/* Returns the end that comes first: that of the record, or that of permit numbers which run out. */
static struct instant first_end(const struct record *r) {
	const struct lapsing l = record_lapsing(r);
	return !permits_none(l.set) && l.end.raw < r->end.raw ? l.end : r->end;
}

static void put_by_end(struct record_index *x, struct record_place *p) {
	p->due = first_end(p->record).raw;
	tree_insert(&x->by_end, &p->by_end, end_before, NULL);
}

static void move_by_end(struct record_index *x, struct record_place *p) {
	tree_remove(&x->by_end, &p->by_end, end_before, NULL);
	put_by_end(x, p);
}

/* ---- sums ---- */

static void put_number(struct permits *set, uint32_t n, bool in) {
	*set = in ? permits_or(*set, permits_one(n)) : permits_but(*set, permits_one(n));
}

void index_count(struct record_index *x, const struct record *r, bool more) {
	const uint32_t one = more ? 1 : UINT32_MAX;
	struct permits set = record_set(r);
	x->count += one;
	*(r->of == MODE_SHARED ? &x->shared : &x->of[r->of]) += one;
	while (!permits_none(set)) {
		const uint32_t n = permits_take_first(&set);
		x->having[n] += one;
		put_number(&x->had, n, x->having[n] > 0);
		put_number(&x->doubled, n, x->having[n] > 1);
	}
}

static uint32_t count_of(const struct record_index *x, uint16_t of) {
	return of == MODE_SHARED ? x->shared : of <= PERMITS_MAX ? x->of[of] : 0;
}

bool index_all_of(const struct record_index *x, uint16_t of) {
	return count_of(x, of) == x->count;
}

bool index_contested(const struct record_index *x, uint16_t of) {
	return x->count > 1 && (of == MODE_EXCLUSIVE || !index_all_of(x, of) ||
		!permits_none(x->doubled));
}

/* Tells whether all records but `own`, which may be NULL, are of this mode. */
static bool others_are_of(const struct record_index *x, const struct record *own, uint16_t of) {
	return count_of(x, of) - (own && own->of == of) == x->count - (own != NULL);
}

struct permits index_taken(const struct record_index *x, struct id128 lock_id, uint32_t of,
	bool *room) {
	const struct record *own = index_record(x, lock_id);
	const struct permits set = own ? record_set(own) : (struct permits){ { 0, 0 } };
	*room = others_are_of(x, own, (uint16_t)of);
	return permits_or(permits_but(x->had, set), x->doubled);
}

bool index_excludes(const struct record_index *x, struct id128 lock_id, const struct terms *terms) {
	const struct record *own = index_record(x, lock_id);
	if (terms->of == MODE_EXCLUSIVE || !others_are_of(x, own, terms->of)) {
		return x->count > (own != NULL);
	}
	bool room;
	return terms_semaphore(terms) &&
		permits_meet(index_taken(x, lock_id, terms->of, &room), terms->set);
}

bool index_other_exclusive(const struct record_index *x, struct id128 lock_id) {
	const struct record *own = x->of[MODE_EXCLUSIVE] ? index_record(x, lock_id) : NULL;
	return x->of[MODE_EXCLUSIVE] > (own && own->of == MODE_EXCLUSIVE);
}

/* ---- looking up ---- */

struct record *index_record(const struct record_index *x, struct id128 lock_id) {
	const struct record_place *p = find(x, lock_id);
	return p ? p->record : NULL;
}

struct record **index_link(struct key *key, const struct record *r) {
	const struct record_place *p = find(key_index(key), r->lock_id);
	CHECK(p && p->record == r);
	return p->before ? &p->before->record->next : &key->held;
}

struct record *index_after(const struct record_index *x, struct id128 lock_id) {
	const struct record_place probe = { .lock_id = lock_id };
	struct tree_node *n = tree_after(x->by_lock, &probe.by_lock, lock_before, NULL);
	return n ? CONTAINER_OF(n, struct record_place, by_lock)->record : NULL;
}

struct record *index_first(const struct record_index *x) {
	struct tree_node *n = tree_first(x->by_lock);
	return n ? CONTAINER_OF(n, struct record_place, by_lock)->record : NULL;
}

uint64_t index_highest_token(const struct record_index *x, const struct record *but) {
	struct tree_node *n = tree_first(x->by_token);
	if (n && CONTAINER_OF(n, struct record_place, by_token)->record == but) {
		n = tree_after(x->by_token, n, token_before, NULL);
	}
	return n ? CONTAINER_OF(n, struct record_place, by_token)->token : 0;
}

bool index_has_token(const struct record_index *x, uint64_t token) {
	const struct record_place probe = { .token = token };
	struct tree_node *n = tree_from(x->by_token, &probe.by_token, token_before, NULL);
	return n && CONTAINER_OF(n, struct record_place, by_token)->token == token;
}

struct record *index_due(const struct core *core, struct record_index *x,
	const struct record *behind) {
	const struct record_place *last = behind ? find(x, behind->lock_id) : NULL;
	struct tree_node *n;
	while ((n = last ? tree_after(x->by_end, &last->by_end, end_before, NULL)
			: tree_first(x->by_end)) != NULL) {
		struct record_place *p = CONTAINER_OF(n, struct record_place, by_end);
		if (p->due > core->now.raw) {
			return NULL;
		}
		if (p->due == first_end(p->record).raw) {
			return p->record;
		}
		move_by_end(x, p);
	}
	return NULL;
}

struct instant index_first_end(struct record_index *x) {
	for (;;) {
		struct tree_node *n = tree_first(x->by_end);
		struct record_place *p = CONTAINER_OF(n, struct record_place, by_end);
		const struct instant end = first_end(p->record);
		if (p->due == end.raw) {
			return end;
		}
		move_by_end(x, p);
	}
}

/* ---- changes ---- */

void index_ends_earlier(struct record_index *x, const struct record *r) {
	struct record_place *p = find(x, r->lock_id);
	if (first_end(r).raw < p->due) {
		move_by_end(x, p);
	}
}

void index_token(struct record_index *x, const struct record *r) {
	struct record_place *p = find(x, r->lock_id);
	if (p->token != r->token) {
		tree_remove(&x->by_token, &p->by_token, token_before, NULL);
		p->token = r->token;
		tree_insert(&x->by_token, &p->by_token, token_before, NULL);
	}
}

void index_moved(struct record_index *x, struct record *r) {
	find(x, r->lock_id)->record = r;
}

void index_free(struct core *core, struct key *key) {
	struct record_index *x = key_index(key);
	struct tree_node *n;
	while ((n = x->by_lock) != NULL) {
		struct record_place *p = CONTAINER_OF(n, struct record_place, by_lock);
		tree_remove(&x->by_lock, n, lock_before, NULL);
		alloc_free(&core->alloc, p, sizeof *p);
	}
	alloc_free(&core->alloc, x, sizeof *x);
	key_more(key)->index = NULL;
}

/* Adds a record that stands behind that of `before` in key.held. NULL: no memory. */
static struct record_place *add(struct core *core, struct record_index *x, struct record *r,
	struct record_place *before) {
	struct record_place *p = alloc_new(&core->alloc, sizeof *p);
	if (p == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	p->record = r;
	p->before = before;
	p->lock_id = r->lock_id;
	p->token = r->token;
	tree_insert(&x->by_lock, &p->by_lock, lock_before, NULL);
	tree_insert(&x->by_token, &p->by_token, token_before, NULL);
	put_by_end(x, p);
	index_count(x, r, true);
	return p;
}

static void build(struct core *core, struct key *key) {
	if (table_more(core, key) == NULL) {
		return;
	}
	struct record_index *x = key_more(key)->index = alloc_new(&core->alloc, sizeof *x);
	struct record_place *last = NULL;
	COUNT(core, record_index_made);
	for (struct record *r = x ? key->held : NULL; r; r = r->next) {
		last = add(core, x, r, last);
		if (last == NULL) {
			index_free(core, key);
			return;
		}
	}
}

void index_added(struct core *core, struct key *key) {
	struct record_index *x = key_index(key);
	if (x) {
		struct record_place *p = add(core, x, key->held, NULL);
		/* All others may have been dropped since the key was last settled. */
		if (p && key->held->next) {
			find(x, key->held->next->lock_id)->before = p;
		}
		if (p == NULL) {
			index_free(core, key);
		}
		return;
	}
	uint32_t count = 0;
	for (const struct record *r = key->held; r && count < core->limits.indexed; r = r->next) {
		count++;
	}
	if (count >= core->limits.indexed) {
		build(core, key);
	}
}

void index_drop(struct core *core, struct key *key, const struct record *r) {
	struct record_index *x = key_index(key);
	struct record_place *p = find(x, r->lock_id);
	if (r->next) {
		find(x, r->next->lock_id)->before = p->before;
	}
	tree_remove(&x->by_lock, &p->by_lock, lock_before, NULL);
	tree_remove(&x->by_end, &p->by_end, end_before, NULL);
	tree_remove(&x->by_token, &p->by_token, token_before, NULL);
	index_count(x, r, false);
	alloc_free(&core->alloc, p, sizeof *p);
}

/* ---- what must hold ---- */

void index_check(const struct key *key) {
	const struct record_index *x = key_index(key);
	struct record_index sums = { .by_lock = NULL };
	uint32_t by_lock = 0, by_end = 0, by_token = 0;
	const struct record_place *before = NULL;
	for (const struct record *r = key->held; r; r = r->next) {
		const struct record_place *p = find(x, r->lock_id);
		CHECK(p && p->record == r && p->before == before && p->token == r->token);
		/* Whoever lets a record end earlier has said so. */
		CHECK(p->due <= first_end(r).raw);
		index_count(&sums, r, true);
		before = p;
	}
	for (struct tree_node *n = tree_first(x->by_lock); n; by_lock++) {
		n = tree_after(x->by_lock, n, lock_before, NULL);
	}
	for (struct tree_node *n = tree_first(x->by_end); n; by_end++) {
		n = tree_after(x->by_end, n, end_before, NULL);
	}
	for (struct tree_node *n = tree_first(x->by_token); n; by_token++) {
		n = tree_after(x->by_token, n, token_before, NULL);
	}
	CHECK(by_lock == x->count && by_end == x->count && by_token == x->count);
	sums.by_lock = x->by_lock;
	sums.by_end = x->by_end;
	sums.by_token = x->by_token;
	CHECK(memcmp(&sums, x, sizeof sums) == 0);
}
