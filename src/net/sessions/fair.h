/* fair.h: whose turn it is, by deficit round robin (Shreedhar and Varghese), with those that asked for little lately first.
 *
 * Each flow has a credit. Work is charged against it; a flow without credit goes to the end of the queue, where it gets a
 * quantum. So everyone who waits gets the same share of the work, whatever the single pieces cost. A flow that comes with
 * credit left is served before those that have waited with more than their share: so who asks one thing at a time does not
 * queue up behind who asks a thousand.
 */
#ifndef PAWL_NET_FAIR_H
#define PAWL_NET_FAIR_H

#include "list.h"

struct fair_flow { /* zeroed: not waiting, and owed a quantum */
	struct list among; /* linked while it waits */
	int64_t credit;
	uint64_t turn; /* up to which it has been given its quanta */
};

struct fair_queue {
	struct list fresh, rest; /* flows that came with credit; those that are in debt */
	int64_t quantum;         /* credit for each turn and each round */
};

void fair_init(struct fair_queue *q, int64_t quantum);
/* The flow waits from now on. For each turn that has passed without it, it gets a quantum, up to one. `turn` counts up. */
void fair_wait(struct fair_queue *q, struct fair_flow *flow, uint64_t turn);
void fair_leave(struct fair_flow *flow, uint64_t turn); /* it waits no more; its credit stays */
/* Who is next: it stays in the queue and stays next until its credit is used up. NULL: nobody waits. */
struct fair_flow *fair_next(struct fair_queue *q);
void fair_charge(struct fair_flow *flow, int64_t cost); /* waiting or not */
static inline bool fair_waits(const struct fair_flow *flow) {
	return list_linked(&flow->among);
}

#endif
