/* linger.c: after the answer: masters that missed a commit are taught while the lock is believed; a release is sent again until
 * every master has acknowledged it, or the lease would be over (section 2). Also to one that has started anew: after a planned
 * stop it still has the record, and otherwise it may have merged it. */
#include "state.h"

static bool goes_on(const struct op *op, const struct vote *v) {
	switch (v->state) {
	case VOTE_ASKED: case VOTE_LEARNING: case VOTE_NEED: case VOTE_BEHIND:
		return true;
	case VOTE_GONE: case VOTE_STALE:
		return op->kind == CORE_ACQUIRE || op->kind == CORE_RELEASE || op->kind == CORE_BREAK || op->kind == CORE_DOWNGRADE;
	case VOTE_NONE: case VOTE_OK: case VOTE_SELF: case VOTE_KEPT: case VOTE_HAD: case VOTE_LATER: case VOTE_HELD: case VOTE_RIVAL: case VOTE_QUEUED:
	case VOTE_BALLOT: case VOTE_ABSENT: case VOTE_REFUSED:
		return false;
	}
	return false;
}

/* Frees the operation when nothing is left to be done. */
void linger_settle(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (goes_on(op, &op->votes[i])) {
			return;
		}
	}
	op_free(core, op);
}

/* Before everything is done. A home that has not answered the commit yet may still refuse it, and go on keeping the place. */
void linger_end(struct core *core, struct op *op) {
	if (op->kind == CORE_ACQUIRE && op->home >= 0 && op->votes[op->home].state == VOTE_ASKED) {
		attempt_leave_home(core, op);
	}
	op_free(core, op);
}

/* The record with its remaining time, accepted like an extension. */
static void teach(struct core *core, struct op *op, uint32_t slot) {
	struct message m = op_message(op, MESSAGE_LEARN);
	m.attempt = op->part_of;
	m.token = op->token;
	span_ns lasts = clock_saturating_add(op->lease, op->terms.delay);
	m.lease_us = (uint64_t)(instant_left_long(core->now, instant_add(op->sent, lasts)) / SPAN_US);
	commit_put_value(op, &m);
	COUNT(core, teach_sent);
	op_ask(core, op, slot, &m);
}

static void send_again(struct core *core, struct op *op, uint32_t slot) {
	struct message m = op->kind == CORE_RELEASE ? release_message(op) : op_message(op, op->kind == CORE_BREAK ? MESSAGE_BREAK : MESSAGE_DOWNGRADE);
	m.flags |= op->now_flag ? FLAG_NOW : 0;
	COUNT(core, release_resent);
	op_ask(core, op, slot, &m);
}

/* Those that missed it and can be reached by now; of an acquire also those that refused its token as stale, and, once, those where somebody
 * else's record stood in its way: whose release had overtaken the commit elsewhere, and is there by now. */
static void catch_up(struct core *core, struct op *op, uint32_t peer) {
	enum vote_state s = op->votes[peer].state;
	if (!peer_votes(core, peer) || (s != VOTE_GONE && s != VOTE_STALE && s != VOTE_HELD)) {
		return;
	}
	switch (op->kind) {
	case CORE_ACQUIRE: teach(core, op, peer); break;
	case CORE_RELEASE: case CORE_BREAK: case CORE_DOWNGRADE: send_again(core, op, peer); break;
	case CORE_EXTEND: case CORE_UPDATE: case CORE_GET: case CORE_LIST: case CORE_WAIT: case CORE_WAITERS: case CORE_BOND:
	case CORE_CHANGE: case CORE_TRANSFER: case CORE_ASK: case CORE_EXPLAIN: case CORE_ACQUIRE_ALL: break;
	}
}

/* The operation has been answered. A master may have come back while the others' answers were waited for. */
void linger_begin(struct core *core, struct op *op) {
	op_linger(core, op);
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		v->state = v->state == VOTE_ASKED && !peer_votes(core, i) ? VOTE_GONE : v->state; /* not in this epoch yet, it may not have heard */
		catch_up(core, op, i);
	}
	linger_settle(core, op);
}

/* A link is up again, or the master votes now. */
void linger_peer_changed(struct core *core, struct op *op, uint32_t peer) {
	if (peer < core->masters) {
		catch_up(core, op, peer);
		linger_settle(core, op);
	}
}

void linger_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	if (op->kind == CORE_ACQUIRE && m->kind != MESSAGE_COMMIT_ANSWER && m->kind != MESSAGE_LEARN_ANSWER) {
		return; /* a turn, or a promise for the place that was kept, says nothing of the record */
	}
	if (op->kind == CORE_EXTEND) {
		extend_vote(core, op, from, m); /* those that lack the record still get it */
	} else if (m->status == STATUS_RECOVERING || m->status == STATUS_EPOCH) {
		v->state = VOTE_GONE;
	} else if (op->kind == CORE_ACQUIRE && m->kind == MESSAGE_COMMIT_ANSWER &&
		(m->status == STATUS_STALE || m->status == STATUS_HELD || (m->status == STATUS_HELD_SELF && !op->own_value))) {
		if ((int)from == op->home) {
			attempt_leave_home(core, op);
		}
		teach(core, op, from);
	} else {
		v->state = m->status == STATUS_OK ? VOTE_OK : VOTE_REFUSED;
	}
	linger_settle(core, op);
}
