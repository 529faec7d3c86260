/* patience.h: how long a client lets a node be silent before it asks whether the node is still
 * there, and whether the client may leave the node for that. These are decisions alone, without any
 * connection (docs/decisions/0027). */
#ifndef PAWL_CLIENT_PATIENCE_H
#define PAWL_CLIENT_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "clock.h"

struct patience {
	/* The time of the slowest recent answer: a maximum that decays with each answer. Before the
	 * first answer it is a guess. */
	span_ns slowest;
	bool answered;

	/* How often the time is doubled. */
	unsigned doublings;

	/* When `doublings` changed last, in ns of CLOCK_BOOTTIME. */
	int64_t doubled_at;

	/* What is left of the budget for requests that are sent again, in tenths of one. */
	unsigned budget;
};

void patience_init(struct patience *p);

/* Notes an answer that came `took` after its request, to a request that does not wait. */
void patience_answered(struct patience *p, span_ns took, int64_t now);
/* Notes that this process stood still for the time `late`. It is likely to do so again, and the
 * client must not take that for the silence of a node. */
void patience_late(struct patience *p, span_ns late);
/* Notes that the client has left a silent node, and sends `repeated` requests again. */
void patience_switched(struct patience *p, size_t repeated, int64_t now);
/* Notes that the node which was left has answered nevertheless, soon after that. */
void patience_too_short(struct patience *p, int64_t now);

/* Returns how long a node may be silent before it is pinged, and then how long it may take to
 * answer the ping. `longest` is an upper bound. */
span_ns patience_time(const struct patience *p, span_ns longest);
/* Returns whether enough of the budget is left to leave a node before the whole silence is over. */
bool patience_allows(const struct patience *p);

#endif
