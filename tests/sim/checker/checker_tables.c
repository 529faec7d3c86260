/* checker_tables.c: what the checker keeps of keys, lock_ids and operations, and the tokens that
 * were answered. It knows nothing of nodes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "checker_impl.h"
#include "pawl/error.h"

struct key_state *checker_key(struct checker *c, uint32_t key) {
	if (key >= c->key_count) {
		size_t count = (size_t)key + 64;
		c->keys = realloc(c->keys, count * sizeof *c->keys);
		CHECK(c->keys != NULL);
		for (size_t i = c->key_count; i < count; i++) {
			c->keys[i] = (struct key_state){ .granted_leases = NULL };
		}
		c->key_count = count;
	}
	return &c->keys[key];
}

struct op_state *checker_op_of(struct checker *c, uint64_t id) {
	if (id >= c->op_capacity) {
		size_t capacity = c->op_capacity ? 2 * c->op_capacity : 1024;
		c->ops = realloc(c->ops, capacity * sizeof *c->ops);
		CHECK(c->ops != NULL && id < capacity);
		memset(c->ops + c->op_capacity, 0, (capacity - c->op_capacity) * sizeof *c->ops);
		c->op_capacity = capacity;
	}
	return &c->ops[id];
}

uint32_t checker_lock_new(struct checker *c, uint32_t key, uint32_t value) {
	if (c->lock_count == c->lock_capacity) {
		c->lock_capacity = c->lock_capacity ? 2 * c->lock_capacity : 256;
		c->locks = realloc(c->locks, c->lock_capacity * sizeof *c->locks);
		CHECK(c->locks != NULL);
	}
	uint32_t lock = (uint32_t)c->lock_count++;
	c->locks[lock] =
		(struct lock_state){ .id = sim_name_lock(lock, prng_next(sim_prng(c->sim))),
		.key = key, .value = value };
	checker_key(c, key);
	return lock;
}

struct id128 checker_lock_id(const struct checker *c, uint32_t lock) {
	return c->locks[lock].id;
}

uint32_t checker_locks(const struct checker *c) {
	return (uint32_t)c->lock_count;
}

uint32_t checker_lock_key(const struct checker *c, uint32_t lock) {
	return c->locks[lock].key;
}

void checker_lock_bar(struct checker *c, uint32_t lock) {
	c->locks[lock].barred = true;
}

bool checker_lock_ended(const struct checker *c, uint32_t lock) {
	return c->locks[lock].ended;
}

uint64_t checker_lock_token(const struct checker *c, uint32_t lock) {
	return c->locks[lock].answered;
}

/* ---- tokens ---- */

/* No two lock_ids that exclude each other are answered with the same token (sections 8.2 and 10).
 * Returns the lock that has it already. */
static uint32_t token_claim(struct checker *c, const struct token_entry *claim) {
	if (2 * (c->token_count + 1) > c->token_capacity) {
		struct token_entry *old = c->tokens;
		size_t count = c->token_capacity;
		c->token_capacity = count ? 2 * count : 1024;
		c->tokens = calloc(c->token_capacity, sizeof *c->tokens);
		CHECK(c->tokens != NULL);
		c->token_count = 0;
		for (size_t i = 0; i < count; i++) {
			if (old[i].token) {
				token_claim(c, &old[i]);
			}
		}
		free(old);
	}
	size_t mask = c->token_capacity - 1, i = (claim->token * UINT64_C(0x9e3779b97f4a7c15) >>
		20 ^ claim->key * 2654435761u) & mask;
	for (; c->tokens[i].token; i = (i + 1) & mask) {
		const struct token_entry *e = &c->tokens[i];
		bool same = e->token == claim->token && e->key == claim->key;
		if (same && (e->lock == claim->lock || terms_exclusive(&e->terms, &claim->terms))) {
			return e->lock;
		}
	}
	c->tokens[i] = *claim;
	c->token_count++;
	return claim->lock;
}

static void check_claimed(struct checker *c, const struct op_state *op, uint64_t token) {
	uint32_t owner = token_claim(c, &(struct token_entry){ token, op->op.key, op->op.lock,
		c->locks[op->op.lock].terms });
	if (owner != op->op.lock && !checker_bears(c)) {
		checker_violation(c, "fencing (unique tokens)", op->op.key, "L%" PRIu32 " and L%"
			PRIu32 " are both answered with token %" PRIu64, owner, op->op.lock, token);
	}
}

static void add_grant(struct grant **grants, size_t *count, size_t *capacity,
	const struct grant *grant) {
	if (*count == *capacity) {
		*capacity = *capacity ? 2 * *capacity : 64;
		*grants = realloc(*grants, *capacity * sizeof **grants);
		CHECK(*grants != NULL);
	}
	(*grants)[(*count)++] = *grant;
}

/* ---- extensions ---- */

void checker_begun(struct checker *c, uint32_t lock, uint64_t token) {
	struct key_state *key = checker_key(c, c->locks[lock].key);
	for (size_t i = key->begun_count; i-- > 0;) {
		if (key->begun[i].lock == lock && key->begun[i].token == token) {
			return;
		}
	}
	add_grant(&key->begun, &key->begun_count, &key->begun_capacity,
		&(struct grant){ sim_now(c->sim), token, lock, c->locks[lock].terms });
}

void checker_extended(struct checker *c, const struct op_state *op,
	const struct core_reply *reply) {
	const struct key_state *key = checker_key(c, op->op.key);
	struct terms terms = c->locks[op->op.lock].terms;
	/* The answer says which permit numbers it is for. */
	terms.set = permits_none(reply->terms.set) ? terms.set : reply->terms.set;
	for (size_t i = 0; i < key->begun_count; i++) {
		const struct grant *g = &key->begun[i];
		if (g->lock != op->op.lock && g->at < op->invoked && g->token > reply->token &&
			terms_exclusive(&g->terms, &terms)) {
			checker_violation(c, "honest extensions", op->op.key,
				"an extension that keeps no deadline says that L%" PRIu32
				" is held, with token %" PRIu64 ", but before it was asked for L%"
				PRIu32 " was believed (since %.6f, with token %" PRIu64 ")",
				op->op.lock, reply->token, g->lock, (double)g->at / 1e9, g->token);
		}
	}
}

/* All locks that exclude it and had been answered when it was asked for have smaller tokens. (Of
 * several tokens of one lock_id the holder uses the highest.) */
void checker_answered(struct checker *c, const struct op_state *op, uint64_t token,
	const struct terms *terms) {
	if (op->op.op == CORE_EXTEND) {
		check_claimed(c, op, token);
	}
	if (op->op.op != CORE_ACQUIRE) {
		/* Of a group each member comes as an acquire of its own. */
		return;
	}
	struct lock_state *lock = &c->locks[op->op.lock];
	struct key_state *key = checker_key(c, op->op.key);
	for (size_t i = 0; i < key->grant_count; i++) {
		const struct grant *g = &key->grants[i];
		if (g->at < op->invoked && g->lock != op->op.lock && token <= g->token &&
			terms_exclusive(&g->terms, terms) && !checker_bears(c)) {
			checker_violation(c, "fencing (order of answers)", op->op.key,
				"L%" PRIu32 " is answered with token %" PRIu64 ", but when it "
				"was asked for (%.6f) L%" PRIu32 " had been answered with %" PRIu64,
				op->op.lock, token, (double)op->invoked / 1e9, g->lock, g->token);
		}
	}
	add_grant(&key->grants, &key->grant_count, &key->grant_capacity,
		&(struct grant){ sim_now(c->sim), token, op->op.lock, *terms });
	lock->answered = token > lock->answered ? token : lock->answered;
	check_claimed(c, op, token);
}

/* ---- what may be left of a lock_id ---- */

void checker_spent_invoked(struct checker *c, const struct op_state *op) {
	bool all = op->op.op == CORE_ACQUIRE_ALL;
	if (!all && op->op.op != CORE_ACQUIRE && op->op.op != CORE_EXTEND) {
		return;
	}
	for (uint32_t i = 0; i < (all ? op->op.member_count : 1); i++) {
		struct lock_state *lock = &c->locks[all ? op->op.members[i] : op->op.lock];
		int64_t until = sim_now(c->sim) +
			2 * (op->op.lease + op->op.wait + lock->terms.delay);
		lock->may_last = until > lock->may_last ? until : lock->may_last;
		lock->binding_by = op->op.binding > lock->binding_named ? op->op.client
			: lock->binding_by;
		lock->binding_named = op->op.binding > lock->binding_named ? op->op.binding
			: lock->binding_named;
		lock->asking += op->op.op != CORE_EXTEND;
		lock->extending += op->op.op == CORE_EXTEND;
		/* Each of two attempts leaves what the other may have made (section 11). */
		lock->unclear = lock->unclear || (all && lock->asked);
		lock->asked = lock->asked || all;
		lock->ended_by = 0;
	}
}

void checker_ending(struct checker *c, struct op_state *op) {
	if (op->op.lock == TRACE_NONE ||
		(op->op.op != CORE_RELEASE && op->op.op != CORE_TRANSFER)) {
		return;
	}
	struct lock_state *lock = &c->locks[op->op.lock];
	if (op->op.op == CORE_RELEASE && (lock->ends == 0 || op->op.closes < lock->closes)) {
		lock->closes = op->op.closes;
	}
	op->ends_first = lock->ends++ == 0 && !lock->gone && !lock->barred &&
		lock->held_since < op->invoked && op->invoked < lock->held_until;
}

void checker_spent_returned(struct checker *c, const struct op_state *op, int error) {
	bool all = op->op.op == CORE_ACQUIRE_ALL;
	if (op->op.op == CORE_RELEASE) {
		c->locks[op->op.lock].spent = c->locks[op->op.lock].spent ||
			(error == 0 && !op->op.compares);
		return;
	}
	/* Where the lock was to be rolled back, it may have stayed. */
	if (op->op.op == CORE_EXTEND) {
		struct lock_state *lock = &c->locks[op->op.lock];
		lock->extending--;
		lock->granted = lock->granted || error == 0;
		lock->unclear = lock->unclear || error == PAWL_EUNSURE || error == PAWL_ENOQUORUM ||
			error == PAWL_ERECOVERING;
	}
	if (!all && op->op.op != CORE_ACQUIRE) {
		return;
	}
	/* After any other error something may be left at some masters until it is released. That
	 * holds for "full", too: a master that had room has accepted the commit, and a master
	 * without room has refused it. */
	bool nothing = error == PAWL_EHELD || error == PAWL_ETIMEOUT || error == PAWL_EDENIED ||
		error == PAWL_ETOOLONG || error == PAWL_EBADREQUEST || error == PAWL_EBUSY;
	for (uint32_t i = 0; i < (all ? op->op.member_count : 1); i++) {
		struct lock_state *lock = &c->locks[all ? op->op.members[i] : op->op.lock];
		lock->asking--;
		lock->granted = lock->granted || error == 0;
		lock->unclear = lock->unclear || (error && !nothing);
	}
}
