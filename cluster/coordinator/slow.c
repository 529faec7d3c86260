/* slow.c: where the time of an operation went, for the log of requests that were slow. */
#include "coordinator.h"

void core_time_slow(struct core *core, span_ns after) {
	core->coordinator.slow_after = after;
}

void slow_queued(const struct core *core, struct op *op) {
	const uint64_t after = span_ms_down(core->now.boot - op->arrived.boot);
	op_acquire(op)->queued_after = after < UINT32_MAX ? (uint32_t)after + 1 : UINT32_MAX;
}

/* A master is late if it answers after more than half of the time that makes a request slow. */
static bool over(const struct core *core, const struct op *op) {
	return instant_elapsed_short(core->now, op->sent) > core->coordinator.slow_after / 2;
}

/* In a queue, and with a turn, an answer may wait for other holders. */
static bool asks_masters(const struct op *op) {
	return op->state == OP_ASKING || op->state == OP_COMMITTING || op->state == OP_ROUND ||
		op->state == OP_SECOND;
}

void slow_answer(struct core *core, struct op *op, uint32_t from) {
	/* A replica may answer an ask. */
	if (from < core->masters && asks_masters(op) && over(core, op)) {
		op->late |= (uint16_t)(1u << from);
	}
}

/* Returns the masters from which an answer is missing. */
static uint64_t unanswered(const struct core *core, const struct op *op) {
	uint64_t set = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		const enum vote_state s = op->votes[i].state;
		set |= (uint64_t)(s == VOTE_ASKED || s == VOTE_GONE) << i;
	}
	return set;
}

struct core_times *slow_times(struct core *core, const struct op *op, struct instant arrived) {
	const span_ns all = instant_elapsed_short(core->now, arrived);
	const bool asks = asks_masters(op);
	struct core_times *times = out_room(core, sizeof *times);
	if (times == NULL) {
		return NULL;
	}
	*times = (struct core_times){ .late = op->late };
	if (op->kind == CORE_ACQUIRE_ALL) {
		times->queued = op_group(op)->queued;
		times->late |= op_group(op)->late;
	} else if (op->kind == CORE_ACQUIRE && op_acquire(op)->queued_after) {
		const int64_t since = op->arrived.boot +
			(int64_t)(op_acquire(op)->queued_after - 1) * SPAN_MS;
		times->queued = (asks ? op->sent.boot : core->now.boot) - since;
	}
	/* The caller may have repeated the request while it was under way. */
	const span_ns round = asks ? instant_elapsed_short(core->now, op->sent) : 0;
	times->round = round < all ? round : all;
	times->queued = times->queued < all - times->round ? times->queued : all - times->round;
	times->before = all - times->queued - times->round;
	if (asks && over(core, op)) {
		times->late |= unanswered(core, op);
	}
	return times;
}
