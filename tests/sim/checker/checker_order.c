/* checker_order.c: those who wait are served in order (section 5; section 10, Order). */
#include <inttypes.h>

#include "checker_impl.h"
#include "pawl/error.h"

/* The turn answers the message with which the request entered the queue. It comes without a message
 * to a coordinator that is the home itself, and that asks the other masters in the same step. */
void checker_turn_seen(struct checker *c, uint32_t node, uint32_t to, const struct message *m) {
	const uint32_t lock = sim_name_lock_number(m->lock_id);
	if (m->kind == MESSAGE_TURN) {
		for (size_t i = 0; i < c->lock_count; i++) {
			struct lock_state *l = &c->locks[i];
			if (l->queue_round == m->round && l->queue_node == to) {
				l->turn_at = sim_now(c->sim);
			}
		}
	} else if (m->kind == MESSAGE_ENQUEUE && lock < c->lock_count) {
		c->locks[lock].queue_round = m->round;
		c->locks[lock].queue_node = node;
	} else if (m->kind == MESSAGE_PROMISE && lock < c->lock_count &&
		(m->flags & FLAG_TURN) && c->locks[lock].turn_at == 0) {
		c->locks[lock].turn_at = sim_now(c->sim);
	}
}

/* Tells whether both requests have permits from one turn on, and one needed some messages more:
 * because another lock_id with its place in the masters' tables of what they lack has just ended
 * (section 2), or the other one was quicker to take a number that no home had reserved, and that
 * both tried to take. */
static bool at_once(const struct checker *c, const struct op_state *w,
	const struct op_state *other) {
	return terms_semaphore(&c->locks[w->op.lock].wanted) &&
		terms_semaphore(&c->locks[other->op.lock].wanted) &&
		sim_now(c->sim) <= w->passed_at + c->options.order_slack;
}

/* Its answer came after the answer of a request that was made later. That is right only if it was
 * granted before, and merely heard of it later, or if both have permits at once. */
void checker_passed(struct checker *c, const struct op_state *w,
	const struct core_reply *reply) {
	if (w->passed_by == 0 || (reply->error == PAWL_OK && reply->token < w->passed_token)) {
		return;
	}
	const struct op_state *other = &c->ops[w->passed_by - 1];
	if (reply->error == PAWL_OK && at_once(c, w, other)) {
		return;
	}
	checker_violation(c, "order of waiting", w->op.key, "L%" PRIu32
		" (asked for at %.6f) is granted with token %" PRIu64 " before L%" PRIu32
		", which has waited since %.6f and is answered %d with token %" PRIu64,
		other->op.lock, (double)other->invoked / 1e9, w->passed_token, w->op.lock,
		(double)w->invoked / 1e9, reply->error, reply->token);
}

/* Tells whether the turn of `w` had been given too short a time before that of the other one for
 * all masters to have heard of it. Of turns that are given in one step none may pass another. */
static bool turns_cross(const struct checker *c, const struct op_state *w,
	const struct op_state *other) {
	const int64_t first = c->locks[w->op.lock].turn_at, then = c->locks[other->op.lock].turn_at;
	return first && then > first && sim_now(c->sim) < first + c->options.order_slack;
}

static bool both_share(const struct checker *c, uint32_t a, uint32_t b) {
	return c->locks[a].wanted.of == MODE_SHARED && c->locks[b].wanted.of == MODE_SHARED;
}

/* Section 5: the request that came first to the home is served first. There are exceptions. A try
 * has no place in the queue: it may find the key free at q masters while the release is still on
 * its way to the home. A client that repeats what a master still has is no newcomer. A waiter whom
 * the holder names goes before all others (section 10, Hand-over). A waiter whose turn is taken by
 * a lease that comes back may lose it to the next. A turn counts from one round trip after it was
 * given. Those who share the key hold it at once: neither waits for the other. */
void checker_order(struct checker *c, const struct op_state *granted,
	const struct core_reply *reply) {
	span_ns slack = c->options.order_slack;
	struct key_state *key = checker_key(c, granted->op.key);
	/* It was asked for right after the turn had passed to the next one, and was granted at
	 * once: the masters may not have heard yet whose turn it is. */
	bool close = granted->invoked < key->turn_passed_at + slack &&
		sim_now(c->sim) < granted->invoked + slack;
	bool named = key->named_at && granted->invoked < key->named_at;
	key->turn_passed_at = sim_now(c->sim);
	key->named_at = 0;
	for (uint64_t id = 0; slack && !close && !named && !granted->again &&
		granted->op.wait > 0 && id < c->op_capacity; id++) {
		struct op_state *w = &c->ops[id];
		if (w->known && !w->answered && w->op.op == CORE_ACQUIRE &&
			w->op.key == granted->op.key && w->op.wait > 0 &&
			w->invoked >= 3 * SPAN_S && w->op.priority >= granted->op.priority &&
			w->invoked + slack < granted->invoked && w->passed_by == 0 &&
			c->locks[w->op.lock].displaced_at + slack < sim_now(c->sim) &&
			!both_share(c, w->op.lock, granted->op.lock) &&
			!turns_cross(c, w, granted)) {
			w->passed_by = (uint64_t)(granted - c->ops) + 1;
			w->passed_token = reply->token;
			w->passed_at = sim_now(c->sim);
		}
	}
}
