/* fair.c: the two queues of flows, and their credits. */
#include "fair.h"

/* The largest debt, in quanta. It bounds how long a flow may need to get out of debt. */
#define DEBT_QUANTA 1024

void fair_init(struct fair_queue *q, int64_t quantum) {
	list_init(&q->fresh);
	list_init(&q->rest);
	q->quantum = quantum;
}

/* Its credit with what it has earned in the turns that it did not wait. */
static int64_t fair_credit(const struct fair_queue *q, const struct fair_flow *flow,
	uint64_t turn) {
	uint64_t passed = turn - flow->turn;
	int64_t earned = passed < DEBT_QUANTA + 1
		? (int64_t)passed * q->quantum : (DEBT_QUANTA + 1) * q->quantum;
	int64_t least = -DEBT_QUANTA * q->quantum;
	int64_t credit = (flow->credit > least ? flow->credit : least) + earned;
	return credit < q->quantum ? credit : q->quantum;
}

bool fair_owes(const struct fair_queue *q, const struct fair_flow *flow, uint64_t turn) {
	return (fair_waits(flow) ? flow->credit : fair_credit(q, flow, turn)) < 0;
}

bool fair_wait(struct fair_queue *q, struct fair_flow *flow, uint64_t turn) {
	if (list_linked(&flow->among)) {
		return false;
	}
	flow->credit = fair_credit(q, flow, turn);
	flow->turn = turn;
	list_append(flow->credit > 0 ? &q->fresh : &q->rest, &flow->among);
	return true;
}

void fair_leave(struct fair_flow *flow, uint64_t turn) {
	if (list_linked(&flow->among)) {
		list_remove(&flow->among);
		/* The quanta that the flow got while it waited must not be given to it again. */
		flow->turn = turn;
	}
}

struct fair_flow *fair_next(struct fair_queue *q) {
	for (;;) {
		struct list *first = list_first(&q->fresh);
		first = first ? first : list_first(&q->rest);
		if (!first) {
			return NULL;
		}
		struct fair_flow *flow = CONTAINER_OF(first, struct fair_flow, among);
		if (flow->credit > 0) {
			return flow;
		}
		flow->credit += q->quantum;
		list_remove(first);
		list_append(&q->rest, first);
	}
}

void fair_charge(struct fair_flow *flow, int64_t cost) {
	flow->credit -= cost;
}
