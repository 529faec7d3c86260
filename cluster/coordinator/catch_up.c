/* catch_up.c: an operation after its answer. Masters that missed a commit are sent the record while
 * the lock may be trusted. A release is sent again until every master has acknowledged it, or the
 * lease would be over (section 2). That goes for a master that has started anew, too: after a
 * planned stop it still has the record, and otherwise it may have merged it. */
#include "operation.h"
#include "coordinator.h"

/* Frees the operation when nothing is left to be done. */
void catch_up_settle(struct core *core, struct op *op) {
	uint32_t goes_on = VOTES_OPEN;
	if (core->operations[op->kind]->catch_up) {
		/* These masters are sent what they have missed. */
		goes_on |= VOTE_BIT(VOTE_GONE) | VOTE_BIT(VOTE_STALE);
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		if (goes_on >> op->votes[i].state & 1) {
			return;
		}
	}
	op_free(core, op);
}

/* Ends the operation before everything is done. */
void catch_up_end(struct core *core, struct op *op) {
	if (core->operations[op->kind]->late_end) {
		core->operations[op->kind]->late_end(core, op);
	}
	op_free(core, op);
}

/* Sends a release, a break or a downgrade once more. */
void catch_up_send_again(struct core *core, struct op *op, uint32_t peer) {
	struct message m = op->kind == CORE_RELEASE
		? release_message(core, op)
		: op_message(op, op->kind == CORE_BREAK ? MESSAGE_BREAK : MESSAGE_DOWNGRADE);
	m.flags |= op->kind == CORE_BREAK && op_break(op)->now ? FLAG_NOW : 0;
	COUNT(core, release_resent);
	op_ask(core, op, peer, &m);
}

/* Sends what a master has missed, once the master can be reached. (acquire/commit.c says what an
 * acquire sends.) */
void catch_up(struct core *core, struct op *op, uint32_t peer) {
	enum vote_state s = op->votes[peer].state;
	if (!peer_votes(core, peer) || (s != VOTE_GONE && s != VOTE_STALE && s != VOTE_HELD)) {
		return;
	}
	if (core->operations[op->kind]->catch_up) {
		core->operations[op->kind]->catch_up(core, op, peer);
	}
}

/* The operation has been answered. A master may have come back while the answers of the others were
 * awaited. */
void catch_up_begin(struct core *core, struct op *op) {
	op_enter_catching_up(core, op);
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		/* A master that is not in this epoch yet may not have heard the question. */
		v->state = v->state == VOTE_ASKED && !peer_votes(core, i) ? VOTE_GONE : v->state;
		catch_up(core, op, i);
	}
	catch_up_settle(core, op);
}

/* A link is up again, or the master votes now. */
void catch_up_peer_changed(struct core *core, struct op *op, uint32_t peer) {
	if (peer < core->masters) {
		catch_up(core, op, peer);
		catch_up_settle(core, op);
	}
}

void catch_up_vote(struct op *op, uint32_t from, const struct message *m) {
	const bool stopped = m->status == STATUS_RECOVERING || m->status == STATUS_EPOCH;
	op->votes[from].state = stopped ? VOTE_GONE
		: m->status == STATUS_OK ? VOTE_OK
		: VOTE_REFUSED;
}

void catch_up_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if (core->operations[op->kind]->late_answer) {
		core->operations[op->kind]->late_answer(core, op, from, m);
	} else {
		catch_up_vote(op, from, m);
	}
	catch_up_settle(core, op);
}
