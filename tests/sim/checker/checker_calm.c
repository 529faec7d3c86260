/* checker_calm.c: what is judged while nothing is wrong any more: the renewals of those who hold,
 * and who holds what, so that the rest is free. */
#include <inttypes.h>

#include "checker_impl.h"
#include "pawl/error.h"

void checker_calm(struct checker *c, bool calm) {
	c->calm_since = calm ? sim_now(c->sim) : 0;
}

/* The client's node ends what the client has bound to the connection, also where the client no
 * longer takes the lock for its own. A lock with a later session binding goes on. */
void checker_closed(struct checker *c, uint32_t client, uint32_t connection) {
	checker_history_closed(c, client, connection);
	for (uint32_t i = 0; i < c->lock_count; i++) {
		struct lock_state *lock = &c->locks[i];
		if (lock->binding_by == client && connection <= lock->binding_named &&
			connection > lock->binding_gone) {
			lock->binding_gone = connection;
		}
	}
}

/* Whether the lock ends with a connection that is closed, or that may be closed by a client which
 * does not hold it. The release of that connection ends the lock until somebody holds it under a
 * greater session binding (section 2, Release on disconnect). */
static bool may_end(const struct lock_state *lock) {
	return lock->binding_held < lock->binding_named ||
		(lock->binding_gone && lock->binding_held <= lock->binding_gone);
}

/* A caller that keeps its deadline trusts an answer only while an earlier one holds. Its clocks may
 * be as fast as the drift allows. */
void checker_held(struct checker *c, const struct op_state *op, uint32_t number, span_ns valid,
	struct permits numbers) {
	struct lock_state *lock = &c->locks[number];
	int64_t now = sim_now(c->sim),
		until = op->invoked + span_shrink(valid, c->options.drift_ppm);
	if ((now >= lock->held_until && op->op.deadline_kept) || op->op.order < lock->order) {
		return;
	}
	if (now >= lock->held_until) {
		lock->held_since = now;
		lock->held_numbers = numbers;
	}
	lock->held_numbers = permits_and(lock->held_numbers, numbers);
	lock->held_until = until > lock->held_until ? until : lock->held_until;
}

static const char *asks_for(const struct op_state *op) {
	return op->op.op == CORE_EXTEND ? "an extension" : op->op.op == CORE_UPDATE ? "an update"
		: "a downgrade";
}

/* What a node has answered still holds, and did so when this was asked. A lock of a semaphore may
 * lose permit numbers that an earlier holding had. */
static void check_lost(struct checker *c, uint32_t node, const struct op_state *op, int error) {
	const struct lock_state *lock = &c->locks[op->op.lock];
	bool lost = error == PAWL_ELOST || error == PAWL_ENOTFOUND;
	bool held = lock->held_since < op->invoked && sim_now(c->sim) < lock->held_until;
	if (lost && held && permits_within(op->op.numbers, lock->held_numbers)) {
		checker_violation(c, "lost is certain", op->op.key, "n%" PRIu32
			" answers %s of L%" PRIu32 " with %s, although an answer from %.6f on "
			"holds for %.3f ms more", node + 1, asks_for(op),
			op->op.lock, pawl_error_code(error), (double)lock->held_since / 1e9,
			(double)(lock->held_until - sim_now(c->sim)) / 1e6);
	}
}

/* Section 6: a node says that a lock was not held only where that is certain. If a request arrives
 * twice, the second answer may come alone. */
void checker_end_answered(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply) {
	const struct lock_state *lock = &c->locks[op->op.lock];
	if (!c->options.unkind && !reply->released && op->ends_first && lock->ends == 1 &&
		!lock->barred && !may_end(lock) && sim_now(c->sim) < lock->held_until) {
		checker_violation(c, "not held is certain", op->op.key, "n%" PRIu32
			" answers that L%" PRIu32 " was not held when it was to end, although "
			"an answer from %.6f on holds for %.3f ms more",
			node + 1, op->op.lock, (double)lock->held_since / 1e9,
			(double)(lock->held_until - sim_now(c->sim)) / 1e6);
	}
}

/* Called when the answer leaves the node: for an extension any error is judged, for other requests
 * only that the lock is lost. */
void checker_renewed(struct checker *c, uint32_t node, const struct op_state *op, int error) {
	const struct lock_state *lock = &c->locks[op->op.lock];
	const struct config *newest = checker_newest(c);
	bool member, master;
	if (lock->ended || may_end(lock) || lock->leaving || lock->barred ||
		error == PAWL_ETOOLONG || !newest) {
		return;
	}
	check_lost(c, node, op, error);
	/* Until q masters of a change have marked their vote, for which their disks may take longer
	 * than request_timeout, nobody can renew. */
	bool calm = c->calm_since && op->invoked >= c->calm_since &&
		checker_config_votes(c, newest);
	member = checker_in_config(c, newest, node, &master);
	bool lost = error == PAWL_ELOST || error == PAWL_ENOTFOUND;
	bool wrong = lost || (calm && member && op->op.deadline_kept &&
		(error == PAWL_EUNSURE || error == PAWL_ENOQUORUM));
	for (const struct granted *b = checker_key(c, op->op.key)->granted_leases; b && wrong;
		b = b->next) {
		if (b->lock == op->op.lock && (lost || b->actor->number == op->op.client) &&
			permits_within(op->op.numbers, b->set) && b->since < op->invoked &&
			belief_live(c, b)) {
			checker_violation(c, "rightful renewals", op->op.key, "n%" PRIu32
				" answers %s of L%" PRIu32 " with %s, although client %" PRIu32
				" believes in it for %.3f ms more", node + 1,
				asks_for(op), op->op.lock, pawl_error_code(error), b->actor->number,
				(double)instant_left_short(sim_actor_clock(c->sim, b->actor),
				b->deadline) / 1e6);
		}
	}
}

/* Every master answers, so an acquire may be refused for another reason, but not for that one. */
void checker_refused(struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply) {
	bool quiet = c->options.order_slack && op->invoked >= 3 * SPAN_S,
		calm = c->calm_since && op->invoked >= c->calm_since;
	const struct config *newest = checker_newest(c);
	bool master;
	if ((quiet || calm) && newest && checker_in_config(c, newest, node, &master)) {
		checker_violation(c, "there is a quorum", op->op.key, "n%" PRIu32 " refuses L%"
			PRIu32 ", asked for at %.6f, for want of a quorum (votes %" PRIu32
			", acks %" PRIu32 "), although nothing is wrong", node + 1, op->op.lock,
			(double)op->invoked / 1e9, reply->votes, reply->acks);
	}
}

/* ---- what is free ---- */

void checker_lock_ends_at(struct checker *c, uint32_t lock, uint32_t node) {
	c->locks[lock].ended_by = node + 1;
	c->locks[lock].ended_by_incarnation = sim_node_incarnation(c->sim, node);
}

/* The client's node heard that the connection was closed, and has lived on. */
static bool ended_with_connection(const struct checker *c, const struct lock_state *lock) {
	return lock->gone && lock->ended && lock->ended_by &&
		sim_node_running(c->sim, lock->ended_by - 1) &&
		sim_node_incarnation(c->sim, lock->ended_by - 1) == lock->ended_by_incarnation;
}

static bool nothing_left(const struct checker *c, const struct lock_state *lock) {
	return lock->spent || lock->may_last < sim_now(c->sim) ||
		(lock->asking + lock->extending == 0 && !lock->granted && !lock->unclear) ||
		(lock->asking + lock->extending == 0 && !lock->unclear &&
		ended_with_connection(c, lock));
}

static const struct granted *holder_of(const struct checker *c, uint32_t number) {
	for (const struct granted *b = c->keys[c->locks[number].key].granted_leases; b;
		b = b->next) {
		if (b->lock == number && belief_live(c, b)) {
			return b;
		}
	}
	return NULL;
}

bool checker_lock_left(const struct checker *c, uint32_t lock) {
	return !nothing_left(c, &c->locks[lock]) && !holder_of(c, lock);
}

bool checker_key_free(const struct checker *c, uint32_t key, struct terms *out_terms) {
	struct terms terms = { .of = MODE_EXCLUSIVE };
	struct permits taken = { { 0, 0 } };
	if (key < c->key_count && c->keys[key].may_be_closed) {
		return false;
	}
	for (uint32_t i = 0; i < c->lock_count; i++) {
		const struct lock_state *lock = &c->locks[i];
		if (lock->key != key || nothing_left(c, lock)) {
			continue;
		}
		if (!holder_of(c, i) || lock->ended || lock->leaving || lock->asking > 0 ||
			lock->terms.of == MODE_EXCLUSIVE || lock->downgraded ||
			(terms.of != MODE_EXCLUSIVE && terms.of != lock->terms.of)) {
			/* The key is held, or nobody knows. */
			return false;
		}
		terms.of = lock->terms.of;
		taken = permits_or(taken, lock->terms.set);
	}
	if (terms.of != MODE_EXCLUSIVE && terms.of != MODE_SHARED) {
		uint32_t left = terms.of - permits_count(taken);
		terms.count = (uint16_t)left;
		if (left == 0) {
			return false;
		}
	}
	*out_terms = terms;
	return true;
}
