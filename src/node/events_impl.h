/* events_impl.h: what the parts of events share. */
#ifndef PAWL_NODE_EVENTS_IMPL_H
#define PAWL_NODE_EVENTS_IMPL_H

#include "events.h"

struct events_client {
	struct map_node node;
	struct list watches, lagging, doubted;
	uint64_t id;
	bool admin;
	uint64_t next;  /* while it is in `lagging`: the first number that it may not have been told of */
	uint32_t count, stamp;
	uint8_t identity_size;
	uint8_t identity[IDENTITY_MAX];
};

struct events_one { /* a watch */
	struct map_node by_subject, by_own;
	struct list among; /* of its client */
	struct events_client *client;
	uint64_t id;
	uint64_t since;    /* numbers below are not for it, or it was told */
	uint32_t rules;    /* which ones it was judged by; in its client's list those of older ones are in front */
	bool prefix;
	uint16_t size;
	uint8_t subject[];
};

#endif
