/* checker_beliefs.c: who believes to hold what, and since when: mutual exclusion, the order of
 * tokens, and what reads may say meanwhile. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"
#include "pawl/error.h"

/* A belief is what the client's own clocks say: it is over as soon as either of them has reached
 * the deadline. */
bool belief_live(const struct checker *c, const struct granted *b) {
	return !b->over && !instant_distrusted(sim_actor_clock(c->sim, b->actor), b->deadline);
}

static void trace_belief(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	uint64_t token, const char *text, span_ns left) {
	sim_trace_add(sim_trace(c->sim),
		&(struct sim_trace_record){ .at = sim_now(c->sim), .kind = TRACE_CLIENT,
		.node = actor->number, .other = TRACE_NONE, .key = c->locks[lock].key, .lock = lock,
		.token = token, .text = text, .a = (uint64_t)left / 1000 });
}

static struct granted *granted_of(struct key_state *key, const struct sim_actor *actor,
	uint32_t lock) {
	for (struct granted *b = key->granted_leases; b; b = b->next) {
		if (b->actor == actor && b->lock == lock) {
			return b;
		}
	}
	return NULL;
}

/* Forgets beliefs that are over. Their tokens live on in key->believed. */
static void prune(struct checker *c, struct key_state *key) {
	for (struct granted **at = &key->granted_leases; *at;) {
		struct granted *b = *at;
		if (belief_live(c, b)) {
			at = &b->next;
		} else {
			*at = b->next;
			checker_ghost(c, key, b);
			free(b);
		}
	}
}

void checker_believe(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct instant deadline, uint64_t token) {
	uint32_t number = c->locks[lock].key;
	struct key_state *key = checker_key(c, number);
	struct instant now = sim_actor_clock(c->sim, actor);
	if (c->liar.lies || c->locks[lock].ended || c->locks[lock].leaving ||
		instant_distrusted(now, deadline)) {
		return;
	}
	prune(c, key);
	checker_history_believed(c, actor->number);
	if (!checker_lock_believed(c, lock)) {
		checker_value_held(c, lock);
	}
	struct permits set;
	checker_terms_believed(c, actor, lock, &set);
	trace_belief(c, actor, lock, token, "believes, us", instant_left_short(now, deadline));
	for (const struct granted *b = key->granted_leases; b; b = b->next) {
		if (b->lock != lock &&
			terms_exclusive(&c->locks[b->lock].terms, &c->locks[lock].terms) &&
			!checker_bears(c)) {
			checker_violation(c, "mutual exclusion", number, "client %" PRIu32
				" begins to believe in L%" PRIu32 " (token %" PRIu64
				") while client %" PRIu32 " believes in L%" PRIu32 " (token %"
				PRIu64 ", since %.6f, for %.3f ms more)", actor->number, lock,
				token, b->actor->number, b->lock, b->token, (double)b->since / 1e9,
				(double)instant_left_short(sim_actor_clock(c->sim, b->actor),
				b->deadline) / 1e6);
		}
	}
	checker_ghosts_look(c, key, lock);
	checker_closings_look(c, key, lock);
	uint64_t others = checker_believed_before(key, &c->locks[lock].terms, lock);
	struct granted *b = granted_of(key, actor, lock);
	/* Of several tokens of its lock_id a holder uses the highest. */
	token = b && b->token > token ? b->token : token;
	if (token <= others && !checker_bears(c)) {
		checker_violation(c, "fencing (order of beliefs)", number,
			"L%" PRIu32 " is believed with token %" PRIu64
			", but an earlier belief in another lock_id had %" PRIu64, lock, token,
			others);
	}
	checker_believed_add(key, &c->locks[lock].terms, lock, token);
	if (!b) {
		b = calloc(1, sizeof *b);
		CHECK(b != NULL);
		*b = (struct granted){ .next = key->granted_leases, .actor = actor, .lock = lock,
			.since = sim_now(c->sim), .deadline = deadline };
		key->granted_leases = b;
	}
	if (instant_left_short(now, deadline) > instant_left_short(now, b->deadline)) {
		/* Every answer may be trusted to its own end, so the latest end counts. */
		b->deadline = deadline;
	}
	b->token = token > b->token ? token : b->token;
	b->set = permits_none(set) ? b->set : set;
	checker_begun(c, lock, b->token);
}

void checker_believe_only(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct instant deadline, uint64_t token) {
	checker_believe(c, actor, lock, deadline, token);
	struct granted *b = granted_of(checker_key(c, c->locks[lock].key), actor, lock);
	if (b) {
		b->deadline = deadline;
	}
}

void checker_shortened(struct checker *c, const struct sim_actor *actor, uint32_t lock,
	struct instant deadline, span_ns lease) {
	struct lock_state *l = &c->locks[lock];
	struct granted *b = granted_of(checker_key(c, l->key), actor, lock);
	const struct instant now = sim_actor_clock(c->sim, actor);
	const int64_t until = sim_now(c->sim) + span_shrink(lease, c->options.drift_ppm);
	l->order++;
	l->held_until = until < l->held_until ? until : l->held_until;
	/* Nobody here knows which masters shorten it. */
	memset(l->accepted_until, 0, sizeof l->accepted_until);
	if (b && !b->over && instant_left_short(now, deadline) <
		instant_left_short(now, b->deadline)) {
		trace_belief(c, actor, lock, b->token, "believes only, us",
			instant_left_short(now, deadline));
		b->deadline = deadline;
		/* The history goes on with the next answer. */
		checker_history_forgot(c, actor->number, lock);
	}
}

void checker_forget(struct checker *c, const struct sim_actor *actor, uint32_t lock) {
	struct granted *b = granted_of(checker_key(c, c->locks[lock].key), actor, lock);
	if (b && !b->over) {
		trace_belief(c, actor, lock, b->token, "believes no more", 0);
		checker_history_forgot(c, actor->number, lock);
		b->over = true;
	}
}

void checker_lock_end_by_value(struct checker *c, uint32_t lock) {
	const bool by_value = !c->locks[lock].ended || c->locks[lock].ended_by_value;
	checker_lock_end(c, lock);
	c->locks[lock].ended_by_value = by_value;
}

bool checker_lock_ended_by_value(const struct checker *c, uint32_t lock) {
	return c->locks[lock].ended && c->locks[lock].ended_by_value;
}

void checker_lock_end(struct checker *c, uint32_t lock) {
	if (!c->locks[lock].ended) {
		c->locks[lock].ended_at = sim_now(c->sim);
	}
	c->locks[lock].ended = true;
	c->locks[lock].ended_by_value = c->locks[lock].gone = false;
	for (struct granted *b = checker_key(c, c->locks[lock].key)->granted_leases; b;
		b = b->next) {
		if (b->lock == lock && !b->over) {
			checker_history_forgot(c, b->actor->number, lock);
			b->over = true;
		}
	}
}

void checker_lock_gone(struct checker *c, uint32_t lock) {
	bool released = c->locks[lock].ended && !c->locks[lock].gone;
	checker_lock_end(c, lock);
	c->locks[lock].gone = !released;
	c->locks[lock].held_until = 0;
	c->locks[lock].binding_gone = c->locks[lock].binding_named;
}

void checker_binding_held(struct checker *c, uint32_t lock, uint32_t binding) {
	struct lock_state *l = &c->locks[lock];
	l->binding_held = binding > l->binding_held ? binding : l->binding_held;
}

bool checker_lock_is_gone(const struct checker *c, uint32_t lock) {
	return c->locks[lock].ended && c->locks[lock].gone;
}

void checker_lock_again(struct checker *c, uint32_t lock) {
	if (checker_lock_is_gone(c, lock)) {
		c->locks[lock].ended = c->locks[lock].gone = false;
	}
}

bool checker_lock_released(const struct checker *c, uint32_t lock) {
	return (c->locks[lock].ended && !c->locks[lock].gone) || c->locks[lock].leaving;
}

const struct granted *checker_find_believed(const struct checker *c, uint32_t key) {
	if (key >= c->key_count) {
		return NULL;
	}
	for (const struct granted *b = c->keys[key].granted_leases; b; b = b->next) {
		if (belief_live(c, b)) {
			return b;
		}
	}
	return NULL;
}

bool checker_believed(const struct checker *c, uint32_t key) {
	return checker_find_believed(c, key) != NULL;
}

bool checker_lock_believed(const struct checker *c, uint32_t lock) {
	for (const struct granted *b = c->keys[c->locks[lock].key].granted_leases; b; b = b->next) {
		if (b->lock == lock && belief_live(c, b)) {
			return true;
		}
	}
	return false;
}

bool checker_lock_believed_since(struct checker *c, uint32_t lock, uint64_t id) {
	for (const struct granted *b = c->keys[c->locks[lock].key].granted_leases; b; b = b->next) {
		if (b->lock == lock && b->since < checker_op_of(c, id)->invoked &&
			belief_live(c, b)) {
			return true;
		}
	}
	return false;
}

/* ---- operations ---- */

void checker_invoked(struct checker *c, uint64_t id, const struct checker_op *op) {
	struct op_state *state = checker_op_of(c, id);
	struct key_state *key = checker_key(c, op->key);
	key->named_at = op->op == CORE_TRANSFER ? sim_now(c->sim) : key->named_at;
	*state = (struct op_state){ .op = *op, .invoked = sim_now(c->sim), .known = true,
		.believed_lock = TRACE_NONE };
	c->operations++;
	key->may_be_closed = key->may_be_closed || op->closes > 0;
	if (op->op == CORE_BREAK) {
		/* It may end what keeps the key closed. */
		checker_closings_forget(key);
		key->broken = true;
	}
	if (c->liar.lies) {
		return;
	}
	checker_spent_invoked(c, state);
	checker_ending(c, state);
	const struct granted *b = op->op == CORE_GET &&
		op->quorum ? checker_find_believed(c, op->key) : NULL;
	if (b) {
		state->believed_lock = b->lock;
		state->believer = b->actor;
		state->believed_until = b->deadline;
		state->clean = checker_value_quiet(&c->locks[b->lock]);
	}
	if (op->lock != TRACE_NONE && checker_on_value(op)) {
		checker_value_invoked(c, id, state);
	}
}

/* A quorum read that says free is wrong if a belief that was there when the read began lasted until
 * its end, without any extension on the way: the masters that the belief rests on had the record
 * all the time (section 3). */
static void check_read(struct checker *c, uint64_t id, const struct op_state *op,
	const struct core_reply *reply, uint32_t value) {
	const struct granted *b = checker_find_believed(c, op->op.key);
	if (reply->error || !b || b->lock != op->believed_lock || b->actor != op->believer ||
			b->since > op->invoked ||
			instant_distrusted(sim_actor_clock(c->sim, b->actor), op->believed_until)) {
		return;
	}
	if (!reply->held) {
		checker_violation(c, "honest answers (quorum read)", op->op.key,
			"the key is said to be free while client %" PRIu32 " believes in L%" PRIu32
			" since %.6f", b->actor->number, b->lock, (double)b->since / 1e9);
	}
	if (op->clean && id128_equal(reply->entry.lock_id, c->locks[b->lock].id)) {
		checker_value_returned(c, id, op, 0, value);
	}
}

void checker_returned(struct checker *c, uint64_t id, const struct sim_reply *reply,
	uint32_t value) {
	struct op_state *op = checker_op_of(c, id);
	CHECK(op->known && !op->returned);
	op->returned = true;
	if (checker_unjudged(c, op)) {
		return;
	}
	checker_spent_returned(c, op, reply->r.error);
	if (op->op.op == CORE_ACQUIRE && reply->r.error == 0) {
		checker_terms_answered(c, op->op.lock, &reply->r.terms, false);
	}
	if (op->op.op == CORE_EXTEND && reply->r.error == 0 && op->op.lock != TRACE_NONE &&
		terms_semaphore(checker_terms(c, op->op.lock))) {
		checker_terms_answered(c, op->op.lock, &reply->r.terms, true);
	}
	for (uint32_t i = 0; op->op.op == CORE_ACQUIRE_ALL && reply->r.error == 0 &&
		i < op->op.member_count; i++) {
		checker_terms_answered(c, op->op.members[i], &reply->got[i].terms, false);
	}
	if (op->op.op == CORE_GET && op->op.quorum) {
		check_read(c, id, op, &reply->r, value);
	} else if (op->op.lock != TRACE_NONE && checker_on_value(&op->op)) {
		/* What has not released may have written its last value. */
		const bool in_doubt = op->op.compares && !reply->r.error && !reply->r.released;
		checker_value_returned(c, id, op, in_doubt ? PAWL_EUNSURE : reply->r.error, value);
	}
	checker_history(c, id, op, reply, value);
}
