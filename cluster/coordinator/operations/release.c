/* release.c: releasing: one round, which is answered after q masters, and is sent again to the
 * others until they have acknowledged it (section 2, Release). */
#include "operation.h"
#include "operations.h"

void release_start(struct core *core, struct op *op) {
	op->until = longest_lease(core);
	if (op->part_of == 0) {
		granted_drop(core, op->key_hash, op->lock_id);
		op_lock_released(core, op->key, op->lock_id, false);
	} else {
		if (granted_of(core, op->key_hash, op->lock_id, op->part_of)) {
			granted_drop(core, op->key_hash, op->lock_id);
		}
		op_lock_rolled_back(core, op->key, op->lock_id, op->part_of);
	}
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = release_message(op);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	release_evaluate(core, op, false);
}

/* Judges a release, or the second round of a transfer. */
void release_evaluate(struct core *core, struct op *op, bool over) {
	uint32_t acks = op_votes(core, op, VOTE_BIT(VOTE_OK));
	bool done = acks >= core->quorum;
	if (!done && !over && acks + op_votes(core, op, VOTE_BIT(VOTE_ASKED)) >= core->quorum) {
		return;
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link),
			done ? PAWL_OK : PAWL_ENOQUORUM);
		r->released = op_release(op)->had_any;
		r->acks = acks;
	}
	/* What is sent again is a release, even where a successor was named. By then the successor
	 * has other means. */
	op->kind = CORE_RELEASE;
	catch_up_begin(core, op);
}

void release_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct release_state *release = op_release(op);
	release->had_any = release->had_any || (m->flags & FLAG_HAD) ||
		op_had_when_asked(core, op, m);
	op->votes[from].state = m->status == STATUS_OK ? VOTE_OK : VOTE_GONE;
	release_evaluate(core, op, false);
}

/* The operation has told masters to end the lock. A master that has ended it, and whose answer was
 * not heard, lacks the lock when it is asked again. */
static bool release_epoch(struct core *core, struct op *op) {
	(void)core;
	op_release(op)->had_any = true;
	return true;
}

/* A release that expects a value begins as an update, which writes the last value (section 2,
 * Compare and release). */
static bool release_make(struct core *core, struct op *op, const struct core_request *r) {
	const bool expects = r->expect_value || r->expect_seq;
	op->kind = expects ? CORE_UPDATE : CORE_RELEASE;
	return !expects || update_make(core, op, r);
}

const struct operation release_operation = { .needs_lock_id = true, .of_holder = true,
	.make = release_make, .start = release_start, .answer = release_answer,
	.evaluate = release_evaluate, .epoch = release_epoch, .catch_up = catch_up_send_again };
