/* orders.h: what operators have asked this node for last, and what became of it: breaks of locks,
 * changes of the cluster, planned stops. A ring of bounded size. */
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
	/* It has been answered, with this PAWL_E... or 0. */
	bool answered;
	int result;
};

struct orders {
	/* How many there have been, which is the number of the last one. */
	uint64_t count;
	struct order ring[ORDERS_MAX];
};

/* Returns the number of the order. It is 0 for none. */
uint64_t orders_note(struct orders *o, const char *method, struct slice subject, struct slice who,
	struct instant now);
/* The order was answered with the PAWL_E... or 0. Does nothing for the number 0, or if the ring has
 * forgotten the order. */
void orders_answer(struct orders *o, uint64_t number, int result);
/* Returns the order with the number `back` before the last one, or NULL. */
const struct order *orders_last(const struct orders *o, uint32_t back);

#endif
