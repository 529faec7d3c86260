/* full.h: a node that has reached one of its limits says so, and who filled it.
 *
 * Once a second the limits are compared with what is in use. A line is written when one is reached, again each minute while it lasts,
 * and when there is room again.
 */
#ifndef PAWL_NODE_FULL_H
#define PAWL_NODE_FULL_H

#include <stdbool.h>
#include <stdint.h>

#include "clock.h"

struct event;
struct service;

enum full_what { FULL_CLIENTS, FULL_WAITERS, FULL_KEYS, FULL_MEMORY, FULL_CLIENT_MEMORY, FULL_KINDS };

struct full {
	struct service *service;
	/* Every second. */
	struct event *look;
	bool reached[FULL_KINDS];
	struct instant said[FULL_KINDS];
};

int full_init(struct full *f, struct service *service); /* 0 or PAWL_ENOMEM; borrows */
void full_done(struct full *f);                       /* accepts zeroed memory */

#endif
