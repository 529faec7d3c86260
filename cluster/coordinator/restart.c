/* restart.c: operations that are under way when the epoch changes. They go on under the new epoch
 * as if they had been asked now. While fewer than q masters vote in it they are suspended, for
 * request_timeout at most (section 6). */
#include "operation.h"
#include "coordinator.h"

static void suspend(struct core *core, struct op *op) {
	COUNT(core, suspended);
	if (list_linked(&op->waiting)) {
		list_remove(&op->waiting);
	} else {
		core->coordinator.waiting_count += op->kind == CORE_ACQUIRE;
	}
	op->state = OP_SUSPENDED;
	list_append(&core->coordinator.suspended, &op->waiting);
	timer_at(core, &op->timer, TIMER_OP,
		instant_add(core->adopted_at, core->config.request_timeout));
}

/* Begins an operation that needs the masters: now, or as soon as they vote if the epoch has just
 * changed and fewer than q of them vote in it yet. */
void restart_begin(struct core *core, struct op *op) {
	if (epoch_fresh(core) && epoch_voters(core) < core->quorum) {
		suspend(core, op);
	} else {
		core->operations[op->kind]->start(core, op);
	}
}

static void resume(struct core *core, struct op *op) {
	list_remove(&op->waiting);
	core->coordinator.waiting_count -= op->kind == CORE_ACQUIRE;
	core->operations[op->kind]->start(core, op);
}

void restart_timer(struct core *core, struct op *op) {
	COUNT(core, suspended_expired);
	resume(core, op);
}

void restart_suspended(struct core *core) {
	struct list *n;
	while ((n = list_first(&core->coordinator.suspended)) != NULL) {
		COUNT(core, suspended_resumed);
		resume(core, CONTAINER_OF(n, struct op, waiting));
	}
}

static void forget_round(struct core *core, struct op *op) {
	timer_stop(core, &op->timer);
	if (op->state == OP_WEIGHING || op->state == OP_SHOWING) {
		list_remove(&op->waiting);
	}
	if (core->operations[op->kind]->clear) {
		core->operations[op->kind]->clear(core, op);
	}
	/* An extension is for the same permit numbers under any epoch. */
	if (op->kind != CORE_EXTEND) {
		op->terms.set = (struct permits){ { 0, 0 } };
	}
	memset(op->votes, 0, sizeof op->votes);
}

void restart_again(struct core *core, struct op *op) {
	forget_round(core, op);
	/* This makes answers to earlier questions stale. */
	op_next_round(core, op);
	restart_begin(core, op);
}

static void restart(struct core *core, struct op *op) {
	const struct operation *row = core->operations[op->kind];
	if (op->kind == CORE_ACQUIRE) {
		/* The queues of the previous epoch are gone, and masters have other peer
		 * indexes. */
		op_acquire(op)->home = -1;
	}
	if (op->state == OP_SUSPENDED || op->state == OP_IN_LINE || row->start == NULL) {
		if (row->epoch && row->start == NULL) {
			(void)row->epoch(core, op);
		}
		return;
	}
	if (row->epoch == NULL || row->epoch(core, op)) {
		COUNT(core, restarted_by_epoch);
		restart_again(core, op);
	}
}

void restart_all(struct core *core) {
	for (struct op *op = op_first(core); op; op = op_following(core)) {
		restart(core, op);
	}
}

/* Moves the masters that were late (slow.c), which are the first ones of all peers. */
static void late_permute(struct op *op, const int from[NODES_MAX]) {
	const uint32_t masters = MASTERS_MAX < NODES_MAX ? MASTERS_MAX : NODES_MAX;
	const uint64_t late = op->late;
	const bool group = op->kind == CORE_ACQUIRE_ALL;
	const uint64_t late_parts = group ? op_group(op)->late : 0;
	uint64_t parts = 0;
	op->late = 0;
	for (uint32_t i = 0; i < masters; i++) {
		if (from[i] >= 0) {
			op->late |= (uint16_t)((late >> from[i] & 1) << i);
			parts |= (late_parts >> from[i] & 1) << i;
		}
	}
	if (group) {
		op_group(op)->late = parts;
	}
}

/* Moves the votes of answered operations, because peers have new indexes. from[i] is the former
 * index of peer i, or -1 if it had none. All other operations begin anew. */
void op_permute(struct core *core, const int from[NODES_MAX]) {
	for (struct list *n = list_first(&core->coordinator.ops); n;
		n = list_after(&core->coordinator.ops, n)) {
		late_permute(CONTAINER_OF(n, struct op, link), from);
	}
	for (struct list *n = list_first(&core->coordinator.catching_up); n;
		n = list_after(&core->coordinator.catching_up, n)) {
		struct op *op = CONTAINER_OF(n, struct op, link);
		struct vote votes[MASTERS_MAX];
		memcpy(votes, op->votes, sizeof votes);
		memset(op->votes, 0, sizeof op->votes);
		for (uint32_t i = 0; i < core->masters; i++) {
			if (from[i] >= 0 && from[i] < MASTERS_MAX &&
				votes[from[i]].state != VOTE_NONE) {
				op->votes[i] = votes[from[i]];
			} else {
				/* A new master is sent the record like one that was away. */
				op->votes[i].state = VOTE_GONE;
			}
			if (vote_open(&op->votes[i])) {
				op->votes[i].state = VOTE_GONE;
			}
		}
	}
}
