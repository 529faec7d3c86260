/* events_impl.h: what the parts of the events share; nobody else includes this. */
#ifndef PAWL_NODE_EVENTS_IMPL_H
#define PAWL_NODE_EVENTS_IMPL_H

#include "events.h"

/* A client that watches something. */
struct events_client {
	struct map_node node;
	struct list watches, lagging, doubted;
	uint64_t id;
	bool admin;

	/* While the client is in `lagging`: the first number of which it may not have been told. */
	uint64_t next;
	uint32_t count, stamp;

	/* How many bytes its watches take. */
	size_t bytes;
	/* The turn in which it was last told something. */
	uint64_t turn;
	/* While the client is behind: it is in `full`, and is tried again when there is room again,
	 * or no doubt any more. */
	bool full;

	uint8_t identity_size;
	uint8_t identity[IDENTITY_MAX];
};

/* A key or prefix that somebody watches. */
struct events_subject {
	struct map_node node;
	struct list watches;
	/* Every client that watches this is behind, so there is nobody to be told at once. */
	bool all_behind;
	bool prefix;
	uint16_t size;
	uint8_t bytes[];
};

/* One watch. */
struct events_one {
	struct map_node by_own;

	/* Linked to the other watches of its client. */
	struct list among;
	struct list of_subject;

	struct events_client *client;
	struct events_subject *subject;

	uint64_t id;
	/* Events with lower numbers are not for this watch, or it has been told of them. */
	uint64_t since;
	/* The rules by which the watch was judged. In its client's list, watches that were judged
	 * by older rules are in front. */
	uint32_t rules;
};

/* Returns NULL if the client watches nothing. */
struct events_client *events_client(const struct events *e, uint64_t id);

/* Visits each watch of one client that matches the key, until `visit` returns false; then the
 * result is false. */
typedef bool events_visit(struct events *e, struct events_one *w, const void *arg);
bool events_each_of(struct events *e, const struct events_client *c, struct slice key,
	events_visit *visit, const void *arg);
/* Visits the key and each prefix of it, if somebody watches them. */
typedef void events_visit_subject(struct events *e, struct events_subject *s, const void *arg);
void events_each(struct events *e, struct slice key, events_visit_subject *visit, const void *arg);

/* The client is behind from the number `next` on (events_tell.c). */
void events_lag(struct events *e, struct events_client *c, uint64_t next);

#endif
