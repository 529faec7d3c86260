/* fair.h: decides whose turn it is, by deficit round robin (Shreedhar and Varghese), with those
 * first that have asked for little lately.
 *
 * Each flow has a credit, and its work is charged against that. A flow without credit goes to the
 * end of the queue, where it gets a quantum. So all flows that wait get the same share of the work,
 * whatever the single pieces cost. A flow that comes with credit left is served before those that
 * have already had more than their share. So a flow that asks for one thing at a time does not
 * queue up behind one that asks for a thousand.
 */
#ifndef PAWL_NET_FAIR_H
#define PAWL_NET_FAIR_H

#include "list.h"

/* One flow. While it is zeroed, it does not wait, and it is owed a quantum. */
struct fair_flow {
	/* Linked while the flow waits. */
	struct list among;
	/* How much work the flow may still ask for; negative if it is in debt. */
	int64_t credit;
	/* The turn up to which the flow has been given its quanta. */
	uint64_t turn;
};

/* The flows that wait. */
struct fair_queue {
	/* Flows that came with credit, and flows that are in debt. */
	struct list fresh, rest;
	/* The credit for each turn and for each round. */
	int64_t quantum;
};

void fair_init(struct fair_queue *q, int64_t quantum);
/* Makes the flow wait; returns false if it waits already. For each turn that has passed without it,
 * it gets a quantum; its credit does not grow above one quantum. `turn` counts up. */
bool fair_wait(struct fair_queue *q, struct fair_flow *flow, uint64_t turn);
/* The flow no longer waits, if it has waited. Its credit stays as it is. */
void fair_leave(struct fair_flow *flow, uint64_t turn);
/* Returns the flow that is next, or NULL if none waits. The flow stays in the queue, and stays next
 * until its credit is used up. */
struct fair_flow *fair_next(struct fair_queue *q);
/* Returns whether the flow is in debt, or would be if it waited from now on. */
bool fair_owes(const struct fair_queue *q, const struct fair_flow *flow, uint64_t turn);
/* Charges work to the flow, whether it waits or not. */
void fair_charge(struct fair_flow *flow, int64_t cost);
/* Returns whether the flow waits. */
static inline bool fair_waits(const struct fair_flow *flow) {
	return list_linked(&flow->among);
}

#endif
