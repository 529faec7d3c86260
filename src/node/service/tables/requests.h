/* requests.h: which answer of the core belongs to which request of which client; and batches, whose answer is many. */
#ifndef PAWL_NODE_REQUESTS_H
#define PAWL_NODE_REQUESTS_H

#include "client_pieces.h"
#include "list.h"
#include "map.h"
#include "shares.h"

#define REQUESTS_MAX (1u << 20) /* under way in all */

struct requests {
	const struct allocator *alloc, *client_alloc; /* client_alloc: of answers that are not whole yet */
	struct map by_id, by_client;
	uint64_t last_id;
	struct list waits;   /* of requests that wait, by what they wait for: judged by the present rules, */
	struct list doubted; /* and not yet */
};

struct requests_batch; /* an `extend` with `locks` */

struct request {
	struct map_node node;
	struct list among; /* of its client */
	uint64_t id, client;
	uint32_t msgid;
	struct requests_batch *batch; /* NULL: a request of its own */
	uint32_t index;               /* in the batch */
	bool waiting;                 /* it may stay for as long as others hold the key */
	struct share_pair share;      /* identity NULL: nothing is counted for it */
	uint32_t locks;               /* that it may get, and bytes of values: both count for the share */
	uint64_t bytes;
	uint64_t held;                /* its lock, as the holdings know it */
	struct requests_wait *wait;   /* NULL: it does not wait; for what, to be judged again when the rules change */
	struct requests_watch *watch; /* NULL: none; what is to be watched from when the answer is there */
	struct client_list *list; /* NULL: none; the part of its answer that is there */
};

struct requests_watch {
	uint64_t log, number; /* from behind this position */
	uint16_t size;
	uint8_t key[];
};

struct requests_wait {
	struct list in;
	struct request *request;
	const struct allocator *alloc;
	enum right right;
	int32_t priority;
	uint32_t size;
	uint8_t keys[]; /* each its size in two bytes, and itself */
};

struct requests_batch {
	uint64_t client;
	uint32_t msgid;
	uint32_t count, left;
	struct client_extended *results;
	struct request *requests;
	struct buffer items; /* of the answer: the first results, as far as they are there */
	uint32_t encoded;
};

/* 0 or PAWL_ENOMEM; allocators borrowed. */
int requests_init(struct requests *r, const struct allocator *alloc, const struct allocator *client_alloc);
void requests_done(struct requests *r); /* accepts zeroed memory */

/* 0, PAWL_ENOMEM or PAWL_EBUSY. */
int requests_open(struct requests *r, uint64_t client, uint32_t msgid, struct request **out);
/* Their ids follow each other. `alloc`: for the answer; it outlives the batch; NULL: as all clients. */
int requests_open_batch(struct requests *r, uint64_t client, uint32_t msgid, uint32_t count, const struct allocator *alloc, struct requests_batch **out);

/* The request begins a watch of the key when it is answered. 0 or PAWL_ENOMEM; gone with the request. */
int requests_keep_watch(struct requests *r, struct request *request, struct slice key, uint64_t log, uint64_t number);

/* Adds to the part of its answer that is there. 0 or PAWL_ENOMEM; gone with the request. `alloc`: as above. */
int requests_keep_list(struct requests *r, struct request *request, const struct core_reply *reply, const struct allocator *alloc);

/* The request waits for others, and counts as such until it is closed. */
void requests_mark_waiting(struct requests *r, struct request *request);
/* What the request waits for is known until it is closed. 0 or PAWL_ENOMEM. `alloc`: as above. */
int requests_keep_wait(struct requests *r, struct request *request, const struct core_request *asked, const struct allocator *alloc);
void requests_doubt(struct requests *r); /* other rules hold: all that wait are to be judged again */
const struct requests_wait *requests_doubted(const struct requests *r); /* the next one; NULL: none is left */
void requests_trust(struct requests *r, const struct requests_wait *wait); /* it was judged, and may go on */
/* The key at *at, which goes on to the next; false: there is none. */
bool requests_wait_key(const struct requests_wait *wait, size_t *at, struct slice *out);

/* So much counts for the share until the request is closed. */
void requests_charge(struct requests *r, struct request *request, const struct share_pair *share, bool waits, uint32_t locks, uint64_t bytes);
uint32_t requests_waiting(const struct requests *r, uint64_t client); /* how many of the client's do */

struct request *requests_find(const struct requests *r, uint64_t id); /* NULL: its client is gone */

/* Closes a request of its own. */
void requests_close(struct requests *r, struct request *request);
/* Closes one of a batch and keeps its result; the batch when it was the last, else NULL: encode it, then free it. All but the
 * results that came before an earlier one are encoded by then, so that the last one need not wait for all. */
struct requests_batch *requests_close_part(struct requests *r, struct request *request, const struct client_extended *result,
	const struct client_facts *facts);
/* Appends the answer to a batch whose results are all there: 0, PAWL_ENOMEM or PAWL_ETOOLARGE. */
int requests_batch_encode(struct requests_batch *batch, const struct client_facts *facts, struct buffer *out);
void requests_batch_free(struct requests *r, struct requests_batch *batch);

/* Closes all of a client's. */
void requests_forget(struct requests *r, uint64_t client);

#endif
