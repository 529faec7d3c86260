/* events_impl.h: inside the events: what their parts share. */
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
	size_t bytes; /* of its watches */
	uint64_t turn; /* in which it was told something last */
	bool full;     /* while it is behind: it is in `full`, and tried again when there is room again, or no doubt any more */
	uint8_t identity_size;
	uint8_t identity[IDENTITY_MAX];
};

struct events_subject { /* a key or prefix that somebody watches */
	struct map_node node;
	struct list watches;
	bool all_behind; /* every client that watches it is: there is nobody to be told at once */
	bool prefix;
	uint16_t size;
	uint8_t bytes[];
};

struct events_one { /* a watch */
	struct map_node by_own;
	struct list among; /* of its client */
	struct list of_subject;
	struct events_client *client;
	struct events_subject *subject;
	uint64_t id;
	uint64_t since; /* numbers below are not for it, or it was told */
	uint32_t rules; /* which ones it was judged by; in its client's list those of older ones are in front */
};

struct events_client *events_client(const struct events *e, uint64_t id); /* NULL: it watches nothing */

/* Calls for each watch of one client that the key meets, until it returns false; false then. */
typedef bool events_visit(struct events *e, struct events_one *w, const void *arg);
bool events_each_of(struct events *e, const struct events_client *c, struct slice key, events_visit *visit, const void *arg);
/* Calls for the key, and for each prefix of it, that somebody watches. */
typedef void events_visit_subject(struct events *e, struct events_subject *s, const void *arg);
void events_each(struct events *e, struct slice key, events_visit_subject *visit, const void *arg);

/* events_tell.c: the client is behind: from the number `next` on. */
void events_lag(struct events *e, struct events_client *c, uint64_t next);

#endif
