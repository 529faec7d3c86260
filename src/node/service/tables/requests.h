/* requests.h: which answer of the core belongs to which request of which client; and batches, which
 * need many answers.
 */
#ifndef PAWL_NODE_REQUESTS_H
#define PAWL_NODE_REQUESTS_H

#include "client_pieces.h"
#include "list.h"
#include "map.h"
#include "parties.h"
#include "request_counts.h"
#include "request_note.h"
#include "shares.h"

/* The largest number of requests under way in all. */
#define REQUESTS_MAX (1u << 20)

struct request;
/* The requests of clients that the core has not answered yet. */
struct requests {
	/* `client_alloc` is for answers that are not whole yet. */
	const struct allocator *alloc, *client_alloc;
	struct map by_id, by_client;
	uint64_t last_id;
	/* What the requests that wait are waiting for: in `fresh` or `waits` if the present rules
	 * have judged it, and otherwise in `doubted`. Most requests get what they ask for at once.
	 * So what is in `fresh` is in no list below yet: requests_enter_waits puts it there. */
	struct list fresh, waits, doubted;
	/* The same, of requests for several keys alone. */
	struct list several;
	/* Those that acquire, in the order in which a deadlock is to be looked for. */
	struct list due;
	struct parties parties;
	/* A random number, by which the parties of this node's connections are named. */
	uint64_t salt;
	struct request_counts counts;
	/* Called for a request with a note that its client has left. May be NULL. */
	void (*forgotten)(void *ctx, const struct request *request);
	void *ctx;
};

/* An `extend` with `locks`. */
struct requests_batch;

/* What is kept of a client. */
struct requests_client;

/* One request of a client. */
struct request {
	struct map_node node;

	/* Linked to the other requests of its client, which `of` keeps. */
	struct list among;
	struct requests_client *of;
	uint64_t id, client;
	uint32_t msgid;

	/* What the counts know of the request. Its owner begins it and says how it was answered. */
	struct request_count count;

	/* NULL means that the request is not part of a batch. */
	struct requests_batch *batch;
	/* The index in the batch. */
	uint32_t index;
	/* The request may stay for as long as others hold the key. */
	bool waiting;

	/* The identity is NULL if nothing is counted for the request. */
	struct share_pair share;
	/* How many locks the request may get, and how many bytes of values it brings. Both count
	 * for the share until the request is closed, and so does `waiting`. */
	uint32_t locks;
	uint64_t bytes;

	/* How many bytes of values it brings or asks for that are under way. */
	uint64_t values;

	/* The lock of the request, as the holdings know it. */
	uint64_t held;

	/* The party that asks for a lock, or extends one; NULL if that is not known. */
	struct party *party;

	/* What the request waits for, which is judged again when the rules change; NULL if it does
	 * not wait. */
	struct requests_wait *wait;
	/* The watch that begins when the answer comes; NULL if there is none. */
	struct requests_watch *watch;
	/* The part of a list that has come so far; NULL if there is none. */
	struct client_list *list;
	/* What its lines in the audit file and the log need; NULL if there are none. */
	struct request_note *note;
	/* Its number among the orders of operators; 0 if it is none. */
	uint64_t order;
};

/* The watch that begins with the answer to a request. */
struct requests_watch {
	/* The watch begins after this position. */
	uint64_t log, number;
	uint16_t size;
	uint8_t key[];
};

/* What a request waits for. */
struct requests_wait {
	struct list in;
	struct request *request;
	const struct allocator *alloc;
	enum right right;
	int32_t priority;
	/* Links in requests.due, party.waits and requests.several, where they apply. */
	struct list due, of_party, several;
	/* The request is for several keys. */
	bool has_several;
	/* When a deadlock is to be looked for: an instant of CLOCK_BOOTTIME. */
	int64_t due_at;
	/* When the request arrived, by the wall clock: milliseconds since 1970; 0 as long as nobody
	 * has asked. */
	uint64_t since_ms;
	/* The deadlock that the request is part of has been reported. */
	bool reported;
	/* Why the request is ended before its wait is over, as a text of `why_size` bytes; NULL: it
	 * is not. */
	char *why;
	uint32_t why_size;
	uint16_t owner_size;
	uint32_t size;
	/* The locks, each as it is packed in requests.c; and behind them the owner. */
	uint8_t locks[];
};

/* A batch of requests that have one answer. */
struct requests_batch {
	uint64_t client;
	uint32_t msgid;
	/* How many requests there are, and how many of them have no answer yet. */
	uint32_t count, left;
	struct client_extended *results;
	struct request *requests;
	/* The items of the answer: the first results, as far as they have come. */
	struct buffer items;
	/* The number of results in `items`. */
	uint32_t encoded;
};

/* The allocators are borrowed. `hash_key` is random and secret. Returns 0 or PAWL_ENOMEM. */
int requests_init(struct requests *r, const struct allocator *alloc,
	const struct allocator *client_alloc, struct siphash_key hash_key);
/* Locks must be gone before, with the parties that hold them. Accepts zeroed memory. */
void requests_done(struct requests *r);

/* Returns 0, PAWL_ENOMEM or PAWL_EBUSY. */
int requests_open(struct requests *r, uint64_t client, uint32_t msgid, struct request **out);
/* Opens a batch, whose requests have consecutive ids. Memory for the answer comes from `alloc`,
 * which must outlive the batch; NULL means the allocator of all clients. Returns the same
 * errors. */
int requests_open_batch(struct requests *r, uint64_t client, uint32_t msgid, uint32_t count,
	const struct allocator *alloc, struct requests_batch **out);

/* When the request is answered, it begins a watch of the key. Returns 0 or PAWL_ENOMEM. The watch
 * is gone with the request. */
int requests_keep_watch(struct requests *r, struct request *request, struct slice key, uint64_t log,
	uint64_t number);

/* Adds a piece to the part of the answer that has come so far, which is gone with the request.
 * `alloc` is as above. Returns 0 or PAWL_ENOMEM. */
int requests_keep_list(struct requests *r, struct request *request, const struct core_reply *reply,
	const struct allocator *alloc);

/* The request waits for others, and counts as waiting until it is closed. */
void requests_mark_waiting(struct request *request);

/* Keeps what the request waits for until it is closed. `alloc` is as above. Returns 0 or
 * PAWL_ENOMEM. */
int requests_keep_wait(struct requests *r, struct request *request,
	const struct core_request *asked, const struct allocator *alloc);

/* Other rules hold from now on: all requests that wait must be judged again. */
void requests_doubt(struct requests *r);
/* Puts what is waited for where deadlocks are looked for: the lists of its party, of what is due,
 * and of requests for several keys. Those that have come since the last call are visited. */
void requests_enter_waits(struct requests *r);
/* Returns the next one to judge, or NULL if none is left. */
const struct requests_wait *requests_doubted(const struct requests *r);
/* It was judged, and may go on waiting. */
void requests_trust(struct requests *r, const struct requests_wait *wait);
/* Gives the key at *at, and moves *at to the next one. Returns false if there is none. */
bool requests_wait_key(const struct requests_wait *wait, size_t *at, struct slice *out);
/* Does the same for the lock; the key points into `wait`. */
bool requests_wait_lock(const struct requests_wait *wait, size_t *at, struct core_lock *out);
static inline struct slice requests_wait_owner(const struct requests_wait *wait) {
	return slice_of(wait->locks + wait->size, wait->owner_size);
}
/* The request is to be ended for that reason, and no longer for an earlier one. Without memory,
 * nothing is kept. */
void requests_wait_end(struct requests_wait *wait, const char *why);

/* The request is one of this party, or, if that is zero, of its connection. */
void requests_of_party(struct requests *r, struct request *request, struct id128 party);

/* Returns how many of the client's requests wait. */
uint32_t requests_waiting(const struct requests *r, uint64_t client);

/* Returns NULL if the client is gone. */
struct request *requests_find(const struct requests *r, uint64_t id);

/* Closes a request that is not part of a batch. */
void requests_close(struct requests *r, struct request *request);
/* Closes one request of a batch and keeps its result. Returns the batch if that was the last one,
 * and otherwise NULL; then encode the batch and free it. Results are encoded in order as they come,
 * so that not all of them are left for the last one. */
struct requests_batch *requests_close_part(struct requests *r, struct request *request,
	const struct client_extended *result, const struct client_context *context);
/* Appends the answer to a batch whose results have all come. Returns 0, PAWL_ENOMEM or
 * PAWL_ETOOLARGE. */
int requests_batch_encode(struct requests_batch *batch, const struct client_context *context,
	struct buffer *out);
void requests_batch_free(struct requests *r, struct requests_batch *batch);

/* Closes at most that many of the client's requests, and returns how many. */
uint32_t requests_forget(struct requests *r, uint64_t client, uint32_t most);

#endif
