/* queued.h: requests in the order in which they are served (section 10, Order): entries of a home's queue, and kept requests. Part of
 * state.h, in the middle of it. */
#ifndef PAWL_CLUSTER_QUEUED_H
#define PAWL_CLUSTER_QUEUED_H

#include "treap.h"

struct queued {
	struct tree_node order;   /* in its key's */
	struct map_node by_lock;  /* core->master.queues.waiters or .parked */
	struct list by_peer;
	struct key *key;
	struct id128 lock_id;
	uint64_t attempt, round;
	struct ticket ticket;
	struct ballot first; /* of its first value; an entry that has had no turn: none yet */
	uint32_t peer; /* its coordinator */
	uint32_t lost; /* of the peer, when it came: whether it was lost since (queue_lost.c) */
	struct terms terms;
};

struct parked { /* a request that has a turn, kept behind a held record or a promise (section 5) */
	struct queued q;
};

struct waiter { /* an entry of the queue of which this node is the home (section 5) */
	struct queued q;
	struct instant since;
	bool turn, waits; /* waits: has a wait time; otherwise a try-lock in a tie */
	uint8_t identity_size;
	uint16_t owner_size, label_size;
	uint8_t bytes[]; /* owner, identity, label */
};

/* A key's queue is in parts, so that those with a turn, and those that are try-locks, are found without the others. */
enum { PART_WAITS = 1, PART_TURN = 2, QUEUE_PARTS = 4 }; /* bits of a part's number */
enum { PARTS_ALL = 15, PARTS_TRIES = 1 << 0 | 1 << 2, PARTS_WAITS = 1 << 1 | 1 << 3, PARTS_TURN = 1 << 2 | 1 << 3 };

struct key_more { /* what few keys have */
	struct tree_node by_name; /* core->master.queues.keys, while there are waiters */
	struct slice name;          /* the key's */
	struct key *key;
	struct tree_node *queue[QUEUE_PARTS]; /* struct waiter; by the number of the part */
	struct tree_node *parked; /* struct parked */
	struct list waits; /* struct op: local waits for a change */
	uint32_t waiters;
	uint32_t parked_count;
};

struct queues { /* of all keys */
	struct map waiters, parked; /* by key and lock_id */
	struct tree_node *keys;   /* struct key_more: those that somebody waits for, by their names */
	struct list lost;         /* struct waiter: of links that are gone, and not yet freed */
};

/* How much of what is done in pieces may still be done in this turn of the loop. */
struct pieces {
	uint32_t lost, leaving, homes;
	bool list, asked; /* a piece of a list may be, and the next part of a report of this node */
};

#endif
