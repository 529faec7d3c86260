/* ask_promises.c: asks masters to promise, again where need be (sections 2 and 5). */
#include "acquire.h"

void attempt_ask(struct core *core, struct op *op, uint32_t indexes, bool turn) {
	struct acquire_state *acquire = op_acquire(op);
	struct message m = op_message(op, MESSAGE_PROMISE);
	m.attempt = acquire->attempt;
	m.ticket = acquire->ticket;
	m.ballot = acquire->ballot;
	out_keep(core, &m);
	const uint64_t same = out_same(core);
	for (; indexes; indexes &= indexes - 1) {
		int index = __builtin_ctz(indexes);
		const bool home = acquire->home == index;
		const bool tell = turn && acquire->told >> index & 1;
		m.flags = (turn ? FLAG_TURN : 0) | (home ? FLAG_HOME : 0) | (tell ? FLAG_TELL : 0);
		m.same = home || tell ? 0 : same;
		op_ask(core, op, (uint32_t)index, &m);
	}
}

void attempt_ask_again(struct core *core, struct op *op, uint32_t index) {
	enum vote_state was = op->votes[index].state;
	attempt_ask(core, op, 1u << index, true);
	if (op->votes[index].state == VOTE_ASKED &&
		(was == VOTE_OK || was == VOTE_SELF || was == VOTE_PARKED)) {
		op->votes[index].state = was;
	}
}

void attempt_be_told(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	for (uint32_t i = 0; i < core->masters; i++) {
		const bool later = acquire->home == (int)i && !acquire->home_waited;
		if (op->votes[i].state == VOTE_OK && !later && !(acquire->told >> i & 1)) {
			acquire->told |= (uint16_t)(1u << i);
			attempt_ask_again(core, op, i);
		}
	}
}
