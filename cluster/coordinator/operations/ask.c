/* ask.c: asking a holder to let go: an event for those who watch the key, at whichever node. */
#include "operation.h"
#include "operations.h"

void ask_start(struct core *core, struct op *op) {
	struct ask_state *ask = op_ask_state(op);
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_ASK);
	m.value = op->to;
	ask->asked = 0;
	ask->reached = 0;
	/* Clients are connected to replicas, too. */
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (peer_reachable(core, i)) {
			ask->asked |= (uint64_t)1 << i;
			out_send(core, i, &m);
		}
	}
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
}

void ask_evaluate(struct core *core, struct op *op, bool over) {
	struct ask_state *ask = op_ask_state(op);
	if (ask->asked && !over) {
		return;
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link),
			PAWL_OK);
		r->reached = ask->reached;
	}
	op_free(core, op);
}

void ask_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct ask_state *ask = op_ask_state(op);
	const uint64_t bit = (uint64_t)1 << from;
	if (m->kind == MESSAGE_ASK_ANSWER && (ask->asked & bit)) {
		ask->asked &= ~bit;
		ask->reached += m->number < UINT32_MAX - ask->reached
			? (uint32_t)m->number : UINT32_MAX - ask->reached;
	}
	ask_evaluate(core, op, false);
}

const struct operation ask_operation = { .start = ask_start, .answer = ask_answer,
	.evaluate = ask_evaluate };
