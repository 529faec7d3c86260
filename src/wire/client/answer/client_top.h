/* client_top.h: the answer to `top`: what a node has counted, and the keys that stand out. */
#ifndef PAWL_WIRE_CLIENT_TOP_H
#define PAWL_WIRE_CLIENT_TOP_H

#include "client.h"

enum client_top_list { TOP_QUEUES, TOP_WAITERS, TOP_HOLDERS, TOP_GRANTED, TOP_LISTS };

struct client_top {
	const char *node;
	/* Since the start of the node: requests that were answered, and those of them that were
	 * answered with an error; locks that were granted to its clients; leases of its table that
	 * were released, and that ended otherwise. */
	uint64_t requests, refusals, grants, releases, losses;
	/* Requests of its clients that wait. */
	uint64_t waiting;
	/* The numbers of TOP_WAITERS and TOP_HOLDERS are nanoseconds. */
	struct {
		uint32_t count;
		struct hot_key keys[HOT_KEYS_MAX];
	} lists[TOP_LISTS];
};

/* Appends the answer. Returns 0, PAWL_ENOMEM or PAWL_ETOOLARGE; after an error the buffer is as it
 * was before. */
int client_top_encode(uint32_t msgid, const struct client_top *top, struct buffer *out);

#endif
