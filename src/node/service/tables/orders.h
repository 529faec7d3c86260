/* orders.h: what operators have asked this node for last: locks that were broken, changes of the
 * cluster, planned stops. A ring of bounded size. */
#ifndef PAWL_NODE_ORDERS_H
#define PAWL_NODE_ORDERS_H

#include "core.h"

#define ORDERS_MAX 200
#define ORDER_NAME_BYTES 128

struct order {
	/* When, in nanoseconds of CLOCK_BOOTTIME. */
	int64_t at;
	/* The name of the method, in static storage. */
	const char *method;
	/* The key, or the node; and the identity of who asked. They are cut off if they are too
	 * long. */
	uint16_t subject_size, who_size;
	uint8_t subject[KEY_MAX], who[ORDER_NAME_BYTES];
};

struct orders {
	/* How many there have been. */
	uint64_t count;
	struct order ring[ORDERS_MAX];
};

void orders_note(struct orders *o, const char *method, struct slice subject, struct slice who,
	struct instant now);
/* Returns the order with the number `back` before the last one, or NULL. */
const struct order *orders_last(const struct orders *o, uint32_t back);

#endif
