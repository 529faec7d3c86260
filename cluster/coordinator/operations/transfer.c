/* transfer.c: a lock is handed over to a waiter that its holder names (section 10, Hand-over).
 * First the masters are asked who waits under that name; the home of the waiter's coordinator
 * knows. Then the hand-over is a release that says who is next. */
#include "operations.h"
#include "operation.h"

static void nominate(struct core *core, struct op *op) {
	op->state = OP_ROUND;
	op_transfer(op)->home = attempt_home(core, op->key);
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_NOMINATE);
	m.owner = op->to;
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	transfer_evaluate(core, op, false);
}

static void hand_over(struct core *core, struct op *op) {
	struct transfer_state *transfer = op_transfer(op);
	/* A hand-over is sent again for as long as a release is. */
	op->until = longest_lease(core);
	granted_drop(core, op->key_hash, op->lock_id);
	op_lock_released(core, op->key, op->lock_id, false);
	COUNT(core, handed_over);
	op->state = OP_SECOND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_HAND_OVER);
	m.by = transfer->successor.lock_id;
	m.attempt = transfer->successor.attempt;
	m.ballot = transfer->successor.first;
	m.blob = slice_of(transfer->successor.node.b, sizeof transfer->successor.node.b);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	transfer_evaluate(core, op, false);
}

/* Begins the transfer. Under a new epoch it goes on with the waiter that was found. */
void transfer_start(struct core *core, struct op *op) {
	if (id128_zero(op_transfer(op)->successor.lock_id)) {
		nominate(core, op);
	} else {
		hand_over(core, op);
	}
}

/* The word of the home is enough. Without it, a waiter in the queue of another master will do,
 * which is then the home of that waiter's coordinator. */
static void evaluate_nominees(struct core *core, struct op *op, bool over) {
	struct transfer_state *transfer = op_transfer(op);
	uint32_t open = op_votes(core, op, VOTE_BIT(VOTE_ASKED)),
		named = op_votes(core, op, VOTE_BIT(VOTE_OK));
	const enum vote_state home = transfer->home >= 0 ? op->votes[transfer->home].state
		: VOTE_GONE;
	bool by_home = home == VOTE_OK;
	if (named > 0 && (by_home || over || open == 0)) {
		hand_over(core, op);
	} else if (over || open == 0) {
		/* Those who wait are in the home's queue, so nobody else can say that there is no
		 * such waiter. */
		COUNT(core, nominate_none);
		op_reply_all(core, op, home == VOTE_ABSENT &&
			op_votes(core, op, VOTE_BIT(VOTE_ABSENT)) >= core->quorum
			? PAWL_ENOTFOUND : PAWL_ENOQUORUM);
		op_finish(core, op);
	}
}

void transfer_evaluate(struct core *core, struct op *op, bool over) {
	if (op->state == OP_SECOND) {
		release_evaluate(core, op, over);
	} else {
		evaluate_nominees(core, op, over);
	}
}

void transfer_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct transfer_state *transfer = op_transfer(op);
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_NOMINATE_ANSWER && op->state == OP_ROUND) {
		v->state = m->status == STATUS_OK ? VOTE_OK
			: m->status == STATUS_ABSENT ? VOTE_ABSENT
			: VOTE_GONE;
		if (m->status == STATUS_OK &&
			(id128_zero(transfer->successor.lock_id) || (int)from == transfer->home)) {
			transfer->successor = (struct successor){ .lock_id = m->lock_id,
				.node = m->by, .attempt = m->attempt, .first = m->ballot };
		}
	} else if (m->kind == MESSAGE_RELEASE_ANSWER && op->state == OP_SECOND) {
		release_answer(core, op, from, m);
		/* This may have been the last answer, so the operation may have been freed. */
		return;
	}
	transfer_evaluate(core, op, false);
}

static bool transfer_epoch(struct core *core, struct op *op) {
	struct transfer_state *transfer = op_transfer(op);
	(void)core;
	/* The operation has told masters to end the lock. */
	transfer->release.had_any = transfer->release.had_any || op->state == OP_SECOND;
	return true;
}

const struct operation transfer_operation = { .needs_lock_id = true, .of_holder = true,
	.start = transfer_start, .answer = transfer_answer,
	.evaluate = transfer_evaluate, .epoch = transfer_epoch };
