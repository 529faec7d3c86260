/* full.h: logs when a node has reached one of its limits, and who has filled it.
 *
 * Once a second the limits are compared with what is in use. A line is written when one is reached,
 * again every minute while that lasts, and when there is room again.
 */
#ifndef PAWL_NODE_FULL_H
#define PAWL_NODE_FULL_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

struct event;
struct service;

/* The limits that are compared. */
enum full_what { FULL_CLIENTS, FULL_WAITERS, FULL_KEYS, FULL_MEMORY,
	FULL_CLIENT_MEMORY, FULL_KINDS };

/* What is remembered of the limits of a node. */
struct full {
	struct service *service;
	/* Compares every second. */
	struct event *look;
	/* Whether each limit is reached, and when the log last said so. */
	bool reached[FULL_KINDS];
	struct instant said[FULL_KINDS];
};

/* Returns 0 or PAWL_ENOMEM. The service is borrowed. */
int full_init(struct full *f, struct service *service);
/* Accepts zeroed memory. */
void full_done(struct full *f);

#endif
