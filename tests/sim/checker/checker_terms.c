/* checker_terms.c: what excludes what, as the table of docs/protocol.md, section 10, says it: who
 * may believe at the same time, whose tokens have an order, and for how long a key stays closed
 * after a lease that ended without a release. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"

bool terms_exclusive(const struct terms *a, const struct terms *b) {
	if (a->of == MODE_EXCLUSIVE || b->of == MODE_EXCLUSIVE || a->of != b->of) {
		return true;
	}
	return a->of != MODE_SHARED &&
		((a->set.w[0] & b->set.w[0]) || (a->set.w[1] & b->set.w[1]));
}

void checker_lock_terms(struct checker *c, uint32_t lock, const struct terms *terms) {
	c->locks[lock].terms = c->locks[lock].wanted = *terms;
	c->locks[lock].terms.set = (struct permits){ { 0, 0 } };
}

const struct terms *checker_terms(const struct checker *c, uint32_t lock) {
	return &c->locks[lock].terms;
}

/* A client that acquires has all the permit numbers that it was told while it believed to have
 * some; after that it may be told others. An extension says which numbers it is for, and its holder
 * has no others from then on. What an answer told counts when it makes a client believe, which is
 * at once or never. `*set` is what this client believes in. */
void checker_terms_believed(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct permits *set) {
	struct lock_state *l = &c->locks[lock];
	*set = (struct permits){ { 0, 0 } };
	if (l->given_at != sim_now(c->sim) || permits_count(l->given) == 0) {
		return;
	}
	struct permits all = l->given;
	*set = l->given;
	for (const struct granted *b = checker_key(c, c->locks[lock].key)->granted_leases; b;
		b = b->next) {
		if (b->lock == lock && !b->over &&
			!instant_distrusted(sim_actor_clock(c->sim, b->actor), b->deadline)) {
			bool stays = b->actor != actor || !l->given_only;
			*set = b->actor == actor && stays ? permits_or(*set, b->set) : *set;
			all = stays ? permits_or(all, b->set) : all;
		}
	}
	l->terms.set = all;
}

void checker_terms_answered(struct checker *c, uint32_t lock, const struct terms *got, bool only) {
	struct lock_state *l = &c->locks[lock];
	if (l->ended) {
		return;
	}
	/* It was asked for before it was downgraded. */
	bool older = l->downgraded && got->of == MODE_EXCLUSIVE;
	if (got->of != l->terms.of && !older) {
		checker_violation(c, "terms", l->key,
			"L%" PRIu32 " asks for %u, and is answered with %u", lock,
			(unsigned)l->terms.of, (unsigned)got->of);
	}
	bool semaphore = got->of != MODE_EXCLUSIVE && got->of != MODE_SHARED;
	l->given = got->set;
	l->given_at = sim_now(c->sim);
	l->given_only = only;
	struct permits all = semaphore ? permits_all(got->of) : (struct permits){ { 0, 0 } };
	if ((got->set.w[0] & ~all.w[0]) || (got->set.w[1] & ~all.w[1]) ||
		(semaphore && permits_count(got->set) < l->terms.count)) {
		checker_violation(c, "permits", l->key, "L%" PRIu32
			" asks for %u of %u permits, and is answered with the set %" PRIx64, lock,
			(unsigned)l->terms.count, (unsigned)l->terms.of, got->set.w[0]);
	}
}

void checker_downgrade(struct checker *c, uint32_t lock) {
	c->locks[lock].terms.of = MODE_SHARED;
	c->locks[lock].downgraded = true;
}

void checker_hand_over(struct checker *c, uint32_t lock, bool perhaps) {
	c->locks[lock].leaving = perhaps;
	for (struct granted *b = checker_key(c, c->locks[lock].key)->granted_leases; b && perhaps;
		b = b->next) {
		b->over = b->over || b->lock == lock;
	}
}

/* ---- the order of tokens among those that exclude one another ---- */

uint64_t checker_believed_before(const struct key_state *key, const struct terms *terms,
	uint32_t lock) {
	uint64_t highest = 0;
	for (const struct best_class *b = key->believed; b; b = b->next) {
		uint64_t token = best_of_others(&b->best, lock);
		if (token > highest &&
			terms_exclusive(&(struct terms){ .of = b->of, .set = b->set }, terms)) {
			highest = token;
		}
	}
	return highest;
}

void checker_believed_add(struct key_state *key, const struct terms *terms, uint32_t lock,
	uint64_t token) {
	struct best_class *b = key->believed;
	while (b && (b->of != terms->of || b->set.w[0] != terms->set.w[0] ||
		b->set.w[1] != terms->set.w[1])) {
		b = b->next;
	}
	if (!b) {
		b = calloc(1, sizeof *b);
		CHECK(b != NULL);
		*b = (struct best_class){ .next = key->believed, .of = terms->of, .set = terms->set,
			.best = { 0, 0, TRACE_NONE, TRACE_NONE } };
		key->believed = b;
	}
	best_add(&b->best, lock, token);
}

/* ---- lock delay ---- */

void checker_ghost(struct checker *c, struct key_state *key, const struct granted *b) {
	const struct lock_state *lock = &c->locks[b->lock];
	if (lock->terms.delay == 0 || lock->ended || lock->leaving || c->options.forced) {
		return;
	}
	struct ghost *g = calloc(1, sizeof *g);
	CHECK(g != NULL);
	*g = (struct ghost){ .next = key->ghosts, .actor = b->actor, .lock = b->lock,
		.deadline = b->deadline, .delay = lock->terms.delay };
	key->ghosts = g;
}

/* The key is closed for lease + delay by the clocks of q masters, since before the holder began to
 * count its lease, less the drift. */
void checker_ghosts_look(struct checker *c, struct key_state *key, uint32_t lock) {
	for (struct ghost **at = &key->ghosts; *at;) {
		struct ghost *g = *at;
		const struct lock_state *of = &c->locks[g->lock];
		span_ns since = instant_elapsed_long(sim_actor_clock(c->sim, g->actor),
			g->deadline);
		span_ns least = g->delay - span_grow(g->delay,
			2 * c->options.drift_ppm) + g->delay - SPAN_MS;
		if (of->ended || of->leaving || since > g->delay) {
			*at = g->next;
			free(g);
			continue;
		}
		if (g->lock != lock && since < least &&
			terms_exclusive(&of->terms, &c->locks[lock].terms)) {
			checker_violation(c, "lock delay", of->key,
				"L%" PRIu32 " is believed %.3f ms after L%" PRIu32
				" ended without a release, which asked for a delay of %.3f ms",
				lock, (double)since / 1e6, g->lock, (double)g->delay / 1e6);
		}
		at = &g->next;
	}
}

/* ---- a key that stays closed after a release ---- */

void checker_closing(struct checker *c, const struct op_state *op) {
	struct key_state *key = checker_key(c, op->op.key);
	const uint16_t of = c->locks[op->op.lock].terms.of;
	if (key->broken || (of != MODE_EXCLUSIVE && of != MODE_SHARED)) {
		/* Each master closes the permit numbers that its own record had. */
		return;
	}
	struct closing *closing = calloc(1, sizeof *closing);
	CHECK(closing != NULL);
	*closing = (struct closing){ .next = key->closings, .lock = op->op.lock,
		.asked = op->invoked, .closes = c->locks[op->op.lock].closes };
	key->closings = closing;
}

/* The time counts from the request, and runs by the clocks of q masters. */
void checker_closings_look(struct checker *c, struct key_state *key, uint32_t lock) {
	for (struct closing *closing = key->closings; closing; closing = closing->next) {
		const struct lock_state *of = &c->locks[closing->lock];
		const span_ns since = sim_now(c->sim) - closing->asked,
			least = 2 * closing->closes - SPAN_MS -
				span_grow(closing->closes, 2 * c->options.drift_ppm);
		if (closing->lock != lock && since < least && !c->options.forced &&
			terms_exclusive(&of->terms, &c->locks[lock].terms)) {
			checker_violation(c, "closing", of->key,
				"L%" PRIu32 " is believed %.3f ms after the release of L%" PRIu32
				" that keeps the key closed for %.3f ms", lock,
				(double)since / 1e6, closing->lock,
				(double)closing->closes / 1e6);
		}
	}
}

void checker_closings_forget(struct key_state *key) {
	while (key->closings) {
		struct closing *next = key->closings->next;
		free(key->closings);
		key->closings = next;
	}
}
