/* full.h: finds limits of a node that are nearly, or quite, reached, and who has filled them.
 *
 * Once a second the limits are compared with what is in use. The status of the node shows those
 * that are near. For the limits that clients fill, the log has a line when one is reached, again
 * every minute while that lasts, and when there is room again.
 */
#ifndef PAWL_NODE_FULL_H
#define PAWL_NODE_FULL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"

struct event;
struct service;

/* The limits that are compared. The log tells of those before FULL_LOGGED. */
enum full_what { FULL_CLIENTS, FULL_WAITERS, FULL_KEYS, FULL_MEMORY, FULL_CLIENT_MEMORY,
	FULL_LOGGED, FULL_WAITERS_PER_KEY = FULL_LOGGED, FULL_ROUNDS, FULL_LINGERING,
	FULL_HANDSHAKES, FULL_KEPT_LOCKS, FULL_KINDS };

/* A limit is near when more than this part of it is used, in percent. */
#define FULL_NEAR 80
/* Room for the text that says who has filled a limit, in bytes with the 0 at the end. */
#define FULL_WHOSE_BYTES 512

/* One limit as it was a second ago at most. */
struct full_row {
	uint64_t used, limit;
	bool near, reached;
	/* For the log: it was reached, and there is little room again. */
	bool lasts;
	/* If it is reached: how many belong at least to one party, and which one this is, as
	 * UTF-8 without control characters; 0 and "" if nobody stands out. */
	uint64_t most;
	char whose[FULL_WHOSE_BYTES];
	/* When the two were found out, and when the log last said so. */
	struct instant found, said;
};

/* What is remembered of the limits of a node. */
struct full {
	struct service *service;
	/* Compares every second. */
	struct event *look;
	struct full_row rows[FULL_KINDS];
};

/* Returns 0 or PAWL_ENOMEM. The service is borrowed. */
int full_init(struct full *f, struct service *service);
/* Accepts zeroed memory. */
void full_done(struct full *f);

/* Returns the name of the limit in [limits], in static storage. */
const char *full_name(enum full_what what);

/* Writes "NAME", or "NAME from WHERE" if `from` is not NULL, for people: what is no UTF-8, and each
 * control character, becomes '?', and what has no room is cut off. */
void full_whose(const uint8_t *name, size_t size, const char *from, char out[FULL_WHOSE_BYTES]);

#endif
