/* downgrade.c: an exclusive lock becomes a shared one without being let go (section 10). It takes
 * one round like a release, and is sent again like one. A master that missed it is stricter than
 * need be, nothing else. */
#include "operation.h"
#include "operations.h"

void downgrade_start(struct core *core, struct op *op) {
	op->until = longest_lease(core);
	/* A master that is sent the record from now on learns a shared lock. */
	op_lock_downgraded(core, op->key, op->lock_id);
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_DOWNGRADE);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	downgrade_evaluate(core, op, false);
}

static int outcome(const struct core *core, const struct op *op, uint32_t answered) {
	if (op_votes(core, op, VOTE_BIT(VOTE_REFUSED))) {
		/* The lock is a semaphore's. */
		return PAWL_EMISMATCH;
	}
	if (answered < core->quorum) {
		return PAWL_ENOQUORUM;
	}
	return op_downgrade(op)->had_any ? PAWL_OK
		: op_lacked(op, VOTE_BIT(VOTE_ABSENT)) >= core->quorum ? PAWL_ELOST
		: PAWL_ENOQUORUM;
}

void downgrade_evaluate(struct core *core, struct op *op, bool over) {
	const uint32_t answers = VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_ABSENT) | VOTE_BIT(VOTE_REFUSED);
	uint32_t answered = op_votes(core, op, answers),
		open = op_votes(core, op, VOTE_BIT(VOTE_ASKED));
	if (answered < core->quorum && !over && answered + open >= core->quorum) {
		return;
	}
	int error = outcome(core, op, answered);
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link), error);
		r->token = op_downgrade(op)->best_token;
		r->terms.of = MODE_SHARED;
		r->field = error == PAWL_EMISMATCH ? "mode" : NULL;
		r->acks = op_votes(core, op, VOTE_BIT(VOTE_OK));
	}
	catch_up_begin(core, op);
}

void downgrade_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct downgrade_state *downgrade = op_downgrade(op);
	struct vote *v = &op->votes[from];
	v->status = m->status;
	v->had_when_asked = op_had_when_asked(core, op, m);
	switch (m->status) {
	case STATUS_OK: v->state = VOTE_OK; break;
	case STATUS_ABSENT: v->state = VOTE_ABSENT; break;
	case STATUS_TERMS: v->state = VOTE_REFUSED; break;
	case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_NEED: case STATUS_HELD:
	case STATUS_PROMISED: case STATUS_QUEUED: case STATUS_STALE: case STATUS_RELEASED:
	case STATUS_TOO_LONG: case STATUS_CLOCK: case STATUS_RECOVERING: case STATUS_EPOCH:
	case STATUS_DENIED: case STATUS_FULL: case STATUS_BARRED: case STATUS_BALLOT:
	case STATUS_CONTESTED: case STATUS_LATER:
		v->state = VOTE_GONE;
		break;
	}
	downgrade->had_any = downgrade->had_any || m->status == STATUS_OK;
	downgrade->best_token = m->status == STATUS_OK && m->token > downgrade->best_token
		? m->token : downgrade->best_token;
	downgrade_evaluate(core, op, false);
}

static void downgrade_clear(struct core *core, struct op *op) {
	(void)core;
	op_downgrade(op)->best_token = 0;
}

const struct operation downgrade_operation = { .needs_lock_id = true, .of_holder = true,
	.start = downgrade_start, .answer = downgrade_answer,
	.evaluate = downgrade_evaluate, .clear = downgrade_clear, .catch_up = catch_up_send_again };
