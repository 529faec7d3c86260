/* repair_missing.c: an acquire after its answer: masters that missed the commit are sent the record
 * while the lock may be trusted (section 2). */
#include "acquire.h"

/* Sends the record with its remaining time. The master accepts it like an extension. */
static void repair(struct core *core, struct op *op, uint32_t index) {
	struct message m = op_message(op, MESSAGE_LEARN);
	m.name = op->part_of;
	m.token = op_acquire(op)->token;
	span_ns lasts = clock_saturating_add(op->lease, op->terms.delay);
	m.lease_us =
		(uint64_t)(instant_left_long(core->now, instant_add(op->sent, lasts)) / SPAN_US);
	commit_put_value(core, op, &m);
	COUNT(core, repair_sent);
	op_ask(core, op, index, &m);
}

/* Repairs a master that missed the commit and can be reached by now. That includes a master that
 * refused its token as stale, and, once, a master where the record of another lock stood in the
 * way: the release of that lock had overtaken the commit elsewhere, and has arrived there by
 * now. */
void acquire_catch_up(struct core *core, struct op *op, uint32_t peer) {
	repair(core, op, peer);
}

/* A turn, or a promise for the place that was kept, says nothing about the record. */
void acquire_late_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	if (m->kind != MESSAGE_COMMIT_ANSWER && m->kind != MESSAGE_LEARN_ANSWER) {
		return;
	}
	const bool refused = m->status == STATUS_STALE || m->status == STATUS_HELD ||
		(m->status == STATUS_HELD_SELF && !acquire->reported);
	if (m->kind == MESSAGE_COMMIT_ANSWER && refused) {
		if ((int)from == acquire->home) {
			attempt_leave_home(core, op);
		}
		repair(core, op, from);
	} else {
		catch_up_vote(op, from, m);
	}
}

/* A home that has not answered the commit yet may still refuse it, and then goes on keeping the
 * place. */
void acquire_late_end(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	if (acquire->home >= 0 && op->votes[acquire->home].state == VOTE_ASKED) {
		attempt_leave_home(core, op);
	}
}
