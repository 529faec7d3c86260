/* round.c: the rounds of an operation: which masters it has asked, and what each has answered. */
#include "coordinator.h"

uint64_t op_next_round(struct core *core, struct op *op) {
	op->round = (op->id << 16) | ((op->round + 1) & 0xffff);
	op->sent = core->now;
	memset(op->votes, 0, core->masters_most * sizeof *op->votes);
	return op->round;
}

void op_ask(struct core *core, struct op *op, uint32_t index, struct message *m) {
	struct vote *v = &op->votes[index];
	counted_asked(core, index, m);
	if (!peer_reachable(core, index)) {
		v->state = VOTE_GONE;
		return;
	}
	v->state = VOTE_ASKED;
	m->round = op->round;
	out_send(core, index, m);
	if (index != core->self) {
		peer_expect(core, index, op->round);
	}
}

void op_ask_all(struct core *core, struct op *op, struct message *m) {
	out_keep(core, m);
	for (uint32_t i = 0; i < core->masters; i++) {
		op_ask(core, op, i, m);
	}
}

uint32_t op_votes(const struct core *core, const struct op *op, uint32_t states) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		n += (states >> op->votes[i].state) & 1;
	}
	return n;
}

/* Section 2, Extend: unless q masters still vote in this epoch, the next epoch may have granted the
 * lock, unknown to the masters that lack it here. */
bool op_epoch_stands(const struct core *core, const struct op *op) {
	return core->masters - op_votes(core, op, VOTE_BIT(VOTE_NONE) | VOTE_BIT(VOTE_ASKED) |
		VOTE_BIT(VOTE_GONE)) >= core->quorum;
}

/* Section 2, Extend: the master may have lost the record only after the round was sent. If so, it
 * may still have had the record when another master had already answered that it lacks it. */
bool op_had_when_asked(const struct core *core, const struct op *op, const struct message *m) {
	return instant_elapsed_long(core->now, op->sent) >
		span_shrink(span_from_us(m->age_us), core->config.drift_ppm);
}

uint32_t op_lacked(const struct op *op, uint32_t states) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < MASTERS_MAX; i++) {
		n += ((states >> op->votes[i].state) & 1) && !op->votes[i].had_when_asked;
	}
	return n;
}

bool op_late(const struct core *core, const struct op *op) {
	return instant_distrusted(core->now, instant_add(op->sent, core->config.request_timeout));
}

/* Tells whether the operation has no answer of this master. This node's own vote may not be in yet,
 * but it is not missing; nor is that of another master that votes, as long as its answer is not
 * due. */
static bool missing(const struct core *core, const struct op *op, uint32_t index) {
	const enum vote_state s = op->votes[index].state;
	if (!peer_votes(core, index)) {
		return s == VOTE_ASKED || s == VOTE_GONE || s == VOTE_NONE;
	}
	const bool due = peer_suspect(core, index) || op_late(core, op);
	return index != core->self && (s == VOTE_GONE || (s == VOTE_ASKED && due));
}

/* Tells whether the master is there, but does not vote. */
static bool there(const struct core *core, uint32_t index) {
	return !peer_votes(core, index) && (index == core->self || peer_reachable(core, index));
}

uint64_t op_silent(const struct core *core, const struct op *op) {
	uint64_t silent = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		silent |= (uint64_t)(missing(core, op, i) && !there(core, i)) << i;
	}
	return silent;
}

uint64_t op_not_voting(const struct core *core, const struct op *op) {
	uint64_t there_only = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		there_only |= (uint64_t)(missing(core, op, i) && there(core, i)) << i;
	}
	return there_only;
}
