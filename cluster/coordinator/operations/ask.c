/* ask.c: asking a holder to let go: an event for those who watch the key, at whichever node. */
#include "operation.h"
#include "operations.h"

void ask_start(struct core *core, struct op *op) {
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_ASK);
	m.value = op->to;
	op->asked = 0;
	op->reached = 0;
	/* Clients are connected to replicas, too. */
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (peer_reachable(core, i)) {
			op->asked |= (uint64_t)1 << i;
			out_send(core, i, &m);
		}
	}
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
}

void ask_evaluate(struct core *core, struct op *op, bool over) {
	if (op->asked && !over) {
		return;
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link),
			PAWL_OK);
		r->reached = op->reached;
	}
	op_free(core, op);
}

void ask_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	const uint64_t bit = (uint64_t)1 << from;
	if (m->kind == MESSAGE_ASK_ANSWER && (op->asked & bit)) {
		op->asked &= ~bit;
		op->reached += m->number < UINT32_MAX - op->reached
			? (uint32_t)m->number : UINT32_MAX - op->reached;
	}
	ask_evaluate(core, op, false);
}

const struct operation ask_operation = { .start = ask_start, .answer = ask_answer,
	.evaluate = ask_evaluate };
