/* reduce.c: finds the deadlocks among the facts of a look. */
#include "reduce.h"

/* So many waits are tried as the first of a ring. */
#define RINGS_TRIED 16

/* How many locks, or waits, there are for one key, by mode. */
struct load {
	uint32_t all, shared;
	/* Those of a semaphore of `of` permits, and the permits of these. */
	uint32_t numbered, permits;
	uint16_t of;
	/* There are semaphores of several sizes, so the sums mean nothing. */
	bool mixed;
};

/* What is left while the facts are reduced. */
struct reduction {
	const struct facts *f;
	uint32_t left;
	bool party_left[FACTS_MAX];
	/* Of the parties that are left: what they hold, and what they wait for, by key. */
	struct load holds[FACTS_MAX], waits[FACTS_MAX];
	/* What the party of a wait holds of the key itself; and what the party of a lock waits for
	 * of the key itself. It does not count as another's. */
	struct load own_holds[FACTS_MAX], own_waits[FACTS_MAX];
	/* The wait stands for its request: the first of the same request. */
	uint32_t request[FACTS_MAX];
	/* The request cannot be served; by the index of its first wait. */
	bool request_stuck[FACTS_MAX];
	/* Of the search for a ring: the wait by which a party was reached, and the parties in the
	 * order in which they were. */
	uint32_t reached_by[FACTS_MAX], reached[FACTS_MAX];
};

static bool semaphore(uint16_t of) {
	return terms_of_numbers(of);
}

static void load_add(struct load *l, uint16_t of, uint16_t count) {
	l->all++;
	l->shared += of == MODE_SHARED;
	if (semaphore(of)) {
		l->of = l->of ? l->of : of;
		l->mixed = l->mixed || l->of != of;
		l->numbered += l->of == of;
		l->permits += l->of == of ? count : 0;
	}
}

/* Tells whether what others hold of the key keeps the wait from being served. */
static bool wait_blocked(const struct reduction *r, uint32_t wait) {
	const struct fact_wait *w = &r->f->waits[wait];
	const struct load *held = &r->holds[w->key], *own = &r->own_holds[wait];
	uint32_t others = held->all - own->all;
	if (w->of == MODE_EXCLUSIVE) {
		return others > 0;
	}
	if (w->of == MODE_SHARED) {
		return others > held->shared - own->shared;
	}
	if (held->mixed) {
		return false;
	}
	if (held->of != w->of) {
		return others > 0;
	}
	return others > held->numbered - own->numbered ||
		held->permits - own->permits + w->count > w->of;
}

/* Tells whether one of the others that are left waits for the lock. */
static bool hold_blocks(const struct reduction *r, uint32_t hold) {
	const struct fact_hold *h = &r->f->holds[hold];
	const struct load *asked = &r->waits[h->key], *own = &r->own_waits[hold];
	uint32_t others = asked->all - own->all;
	return h->of == MODE_SHARED ? others > asked->shared - own->shared : others > 0;
}

/* Tells whether the lock is one that keeps the wait from being served. */
static bool hold_in_way(const struct fact_hold *h, const struct fact_wait *w) {
	return !h->disputed && h->party != w->party &&
		!(h->of == MODE_SHARED && w->of == MODE_SHARED);
}

/* ---- the start ---- */

static uint32_t first_of_request(const struct facts *f, uint32_t wait) {
	const struct fact_wait *w = &f->waits[wait];
	uint32_t i = 0;
	while (f->waits[i].node != w->node || f->waits[i].request != w->request) {
		i++;
	}
	return i;
}

static void reduction_own(struct reduction *r) {
	const struct facts *f = r->f;
	for (uint32_t i = 0; i < f->wait_count; i++) {
		const struct fact_wait *w = &f->waits[i];
		for (uint32_t h = f->parties[w->party].holds; h != FACT_NONE;
			h = f->holds[h].next_of_party) {
			if (f->holds[h].key == w->key && !f->holds[h].disputed) {
				load_add(&r->own_holds[i], f->holds[h].of, f->holds[h].count);
				load_add(&r->own_waits[h], w->of, w->count);
			}
		}
	}
}

static void reduction_begin(struct reduction *r, const struct facts *f) {
	r->f = f;
	r->left = f->party_count;
	for (uint32_t p = 0; p < f->party_count; p++) {
		r->party_left[p] = true;
	}
	for (uint32_t h = 0; h < f->hold_count; h++) {
		if (!f->holds[h].disputed) {
			load_add(&r->holds[f->holds[h].key], f->holds[h].of, f->holds[h].count);
		}
	}
	for (uint32_t i = 0; i < f->wait_count; i++) {
		/* Both sums are of the same semaphore. */
		r->own_holds[i].of = r->holds[f->waits[i].key].of;
		r->request[i] = first_of_request(f, i);
	}
	reduction_own(r);
}

/* ---- who can proceed ---- */

static void load_take(struct load *l, uint16_t of, uint16_t count) {
	l->all--;
	l->shared -= of == MODE_SHARED;
	l->numbered -= semaphore(of) && l->of == of;
	l->permits -= semaphore(of) && l->of == of ? count : 0;
}

static void remove_party(struct reduction *r, uint32_t party) {
	const struct facts *f = r->f;
	r->party_left[party] = false;
	r->left--;
	for (uint32_t h = f->parties[party].holds; h != FACT_NONE; h = f->holds[h].next_of_party) {
		if (!f->holds[h].disputed) {
			load_take(&r->holds[f->holds[h].key], f->holds[h].of, f->holds[h].count);
		}
	}
}

/* Removes whoever can proceed with what the others hold. Returns false if nobody can. */
static bool remove_free(struct reduction *r) {
	const struct facts *f = r->f;
	bool any = false, stuck[FACTS_MAX] = { false };
	memset(r->request_stuck, 0, sizeof r->request_stuck);
	for (uint32_t i = 0; i < f->wait_count; i++) {
		if (r->party_left[f->waits[i].party] && !f->waits[i].free && wait_blocked(r, i)) {
			r->request_stuck[r->request[i]] = true;
			stuck[f->waits[i].party] = true;
		}
	}
	for (uint32_t i = 0; i < f->wait_count; i++) {
		if (!r->request_stuck[r->request[i]]) {
			stuck[f->waits[i].party] = false;
		}
	}
	for (uint32_t p = 0; p < f->party_count; p++) {
		if (r->party_left[p] && !stuck[p]) {
			remove_party(r, p);
			any = true;
		}
	}
	return any;
}

/* Removes those for whom none of the others waits. Returns false if there are none. */
static bool remove_tails(struct reduction *r) {
	const struct facts *f = r->f;
	bool any = false, waited[FACTS_MAX] = { false };
	memset(r->waits, 0, sizeof r->waits);
	for (uint32_t i = 0; i < f->wait_count; i++) {
		if (r->party_left[f->waits[i].party]) {
			load_add(&r->waits[f->waits[i].key], f->waits[i].of, f->waits[i].count);
		}
	}
	for (uint32_t h = 0; h < f->hold_count; h++) {
		const struct fact_hold *hold = &f->holds[h];
		if (r->party_left[hold->party] && !hold->disputed && hold_blocks(r, h)) {
			waited[hold->party] = true;
		}
	}
	for (uint32_t p = 0; p < f->party_count; p++) {
		if (r->party_left[p] && !waited[p]) {
			remove_party(r, p);
			any = true;
		}
	}
	return any;
}

/* ---- a ring ---- */

bool deadlock_younger(const struct fact_wait *a, const struct fact_wait *b) {
	return a->since_ms != b->since_ms ? a->since_ms > b->since_ms
		: id128_compare(a->lock_id, b->lock_id) > 0;
}

/* Goes on from one wait to the parties that stand in its way. Returns true if `goal` is one. */
static bool reach(struct reduction *r, uint32_t wait, uint32_t goal, uint32_t *count) {
	const struct fact_wait *w = &r->f->waits[wait];
	for (uint32_t h = r->f->keys[w->key].holds; h != FACT_NONE;
		h = r->f->holds[h].next_of_key) {
		uint32_t party = r->f->holds[h].party;
		if (!r->party_left[party] || r->reached_by[party] != FACT_NONE ||
			!hold_in_way(&r->f->holds[h], w)) {
			continue;
		}
		r->reached_by[party] = wait;
		r->reached[(*count)++] = party;
		if (party == goal) {
			return true;
		}
	}
	return false;
}

/* Finds the shortest ring through the wait. */
static bool search(struct reduction *r, uint32_t from) {
	const struct facts *f = r->f;
	const uint32_t goal = f->waits[from].party;
	uint32_t count = 0;
	memset(r->reached_by, 0xff, sizeof r->reached_by);
	if (reach(r, from, goal, &count)) {
		return true;
	}
	for (uint32_t at = 0; at < count; at++) {
		for (uint32_t i = 0; i < f->wait_count; i++) {
			if (f->waits[i].party == r->reached[at] && wait_blocked(r, i) &&
				reach(r, i, goal, &count)) {
				return true;
			}
		}
	}
	return false;
}

/* Writes the ring that `search` found, from its first wait on. */
static void write_ring(const struct reduction *r, uint32_t from, struct deadlock *out) {
	uint32_t backwards[FACTS_MAX], at = r->reached_by[r->f->waits[from].party];
	out->count = 0;
	while (at != from) {
		backwards[out->count++] = at;
		at = r->reached_by[r->f->waits[at].party];
	}
	backwards[out->count++] = from;
	out->told = out->count < RING_MEMBERS_MAX ? out->count : RING_MEMBERS_MAX;
	for (uint32_t i = 0; i < out->told; i++) {
		out->ring[i] = backwards[out->count - 1 - i];
	}
}

/* Returns the youngest stuck wait that is older than `than`; FACT_NONE: there is none. */
static uint32_t next_younger(const struct reduction *r, uint32_t than) {
	const struct facts *f = r->f;
	uint32_t best = FACT_NONE;
	for (uint32_t i = 0; i < f->wait_count; i++) {
		if (r->party_left[f->waits[i].party] && wait_blocked(r, i) && (than == FACT_NONE ||
				deadlock_younger(&f->waits[than], &f->waits[i]))
			&& (best == FACT_NONE ||
				deadlock_younger(&f->waits[i], &f->waits[best]))) {
			best = i;
		}
	}
	return best;
}

static bool find_ring(struct reduction *r, struct deadlock *out) {
	uint32_t wait = FACT_NONE;
	for (uint32_t tried = 0; tried < RINGS_TRIED; tried++) {
		wait = next_younger(r, wait);
		if (wait == FACT_NONE) {
			return false;
		}
		if (search(r, wait)) {
			write_ring(r, wait, out);
			return true;
		}
	}
	return false;
}

bool deadlock_find(const struct facts *f, struct deadlock *out) {
	struct reduction *r = f->cut ? NULL : alloc_new(f->alloc, sizeof *r);
	if (!r) {
		return false;
	}
	reduction_begin(r, f);
	while (r->left > 0 && remove_free(r)) {
	}
	while (r->left > 0 && remove_tails(r)) {
	}
	out->party_count = r->left;
	bool found = r->left > 0 && find_ring(r, out);
	alloc_free(f->alloc, r, sizeof *r);
	return found;
}
