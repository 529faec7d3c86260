/* queued.h: requests in the order in which they are served (section 10, Order): entries of a home's
 * queue, and parked requests. Part of state.h, in the middle of it. */
#ifndef PAWL_CLUSTER_QUEUED_H
#define PAWL_CLUSTER_QUEUED_H

#include "treap.h"

/* What a queue entry and a parked request have in common. */
struct queued {
	/* Element of key_more.queue or key_more.parked. */
	struct tree_node order;
	/* Element of core->master.queues.waiters or .parked. */
	struct map_node by_lock;
	/* Link in peer.waiters or peer.parked of its coordinator. */
	struct list by_peer;
	/* The key that the request is for. */
	struct key *key;
	/* The lock_id of the request. */
	struct id128 lock_id;
	/* The attempt; and the round under which the coordinator knows the request. */
	uint64_t attempt, round;
	/* Its place in the order. */
	struct ticket ticket;
	/* The ballot of its first value. An entry that has had no turn has none yet. */
	struct ballot first;
	/* The peer index of its coordinator. */
	uint32_t peer;
	/* peer.lost of the coordinator when the request came. A higher number there says that the
	 * link has been lost since (queue.c). */
	uint32_t lost;
	/* The lock terms that it wants. */
	struct terms terms;
};

/* A request that has a turn and is parked behind a held record or a promise (section 5). */
struct parked {
	struct queued q;
};

/* An entry of the queue of a key whose home this node is (section 5). */
struct waiter {
	/* What it has in common with a parked request. */
	struct queued q;
	/* Element of key_more.owners. */
	struct tree_node by_owner;
	/* Since when the request has waited. */
	struct instant since;
	/* It has the turn; it has a wait time, while an entry without one is a try-lock in a tie;
	 * and another coordinator has withdrawn its entry for the request, which had a turn. */
	bool turn, waits, returned;
	/* It has come from another home. */
	bool moved;
	/* The sizes in bytes of the parts of `bytes`. */
	uint8_t identity_size;
	uint16_t owner_size, label_size;
	/* Owner, identity, label. */
	uint8_t bytes[];
};

/* The waiter that is to be next because the holder says so (section 10, Hand-over). */
struct successor {
	/* The waiter's lock_id, and the identity of its coordinator. */
	struct id128 lock_id, node;
	/* The name of its attempt there. */
	uint64_t attempt;
	/* The ballot of its first value, as its home has drawn it. */
	struct ballot first;
};

/* A key's queue is in parts, so that the entries that have a turn, and those that are try-locks,
 * are found without the others. The number of a part is made of these bits. */
enum { PART_WAITS = 1, PART_TURN = 2, QUEUE_PARTS = 4 };
/* Sets of parts. */
enum {
	PARTS_ALL = 15, PARTS_TRIES = 1 << 0 | 1 << 2, PARTS_WAITS = 1 << 1 | 1 << 3,
	PARTS_NO_TURN = 1 << 0 | 1 << 1, PARTS_TURN = 1 << 2 | 1 << 3
};

/* What a local wait is for: that the key is held, or that it is free. */
enum { WAITS_HELD, WAITS_FREE, WAITS_KINDS };

/* What few keys have. */
struct key_more {
	/* Element of core->master.queues.keys, as long as there are waiters. */
	struct tree_node by_name;
	/* The name of the key. */
	struct slice name;
	/* The key. */
	struct key *key;
	/* The first promise of the key (key_promises). */
	struct promise *promises;
	/* struct waiter: the queue, by the number of the part. */
	struct tree_node *queue[QUEUE_PARTS];
	/* struct waiter: the same entries by their owners, and those of one owner in the order in
	 * which they are served. */
	struct tree_node *owners;
	/* struct parked. */
	struct tree_node *parked;
	/* struct op: local waits, by what they are for, in the order of op.id. */
	struct list waits[WAITS_KINDS];
	/* Link in core->coordinator.due_waits, as long as some of these waits are due: their change
	 * has come, and they are yet to be answered. */
	struct list due;
	/* The waits for the key to be free are due whose op.id is below this. */
	uint64_t freed;
	/* The waits for the key to be held are due, as long as it is held. */
	bool taken;
	/* The index over the records of a key that has many; or NULL. */
	struct record_index *index;
	/* Link in core->master.queues.moved, as long as no turn is given before `turn_at`, because
	 * others may be coming from another home. */
	struct list moved;
	/* When the first turn may be given. */
	struct instant turn_at;
	/* Link in core->master.queues.refusing, as long as a record that has become held may
	 * exclude try-locks of the queue; and the next of these. */
	struct list refusing;
	struct waiter *next_try;
	/* How many entries the queue has; and how many of these have a turn. */
	uint32_t waiters, turns;
	/* How many requests are parked. */
	uint32_t parked_count;
	/* The peer index of the coordinator whose request was parked while no other one was; and
	 * how many of the parked requests are of other coordinators. */
	uint32_t parked_peer, parked_others;
};

/* The queues of all keys. */
struct queues {
	/* struct waiter and struct parked, by key and lock_id. */
	struct map waiters, parked;
	/* struct key_more: the keys that somebody waits for, by their names. */
	struct tree_node *keys;
	/* struct promise, and struct queued of parked requests and of entries: those whose link is
	 * gone, and that are not freed yet. */
	struct list lost_promises, lost_parked, lost;
	/* struct key_more: keys whose try-locks are being refused. */
	struct list refusing;
	/* struct key_more: keys that wait for their turn_at; and the timer for the first of
	 * them. */
	struct list moved;
	struct timer moved_timer;
};

/* How much of the work that is done in pieces may still be done in this turn of the loop. */
struct pieces {
	/* Entries, parked requests and promises whose link is gone; requests of clients that are
	 * gone; and requests that look for their home. */
	uint32_t lost, leaving, homes;
	/* Try-locks in a tie that may have to be refused. */
	uint32_t tries;
	/* Bytes of values that quorum reads show. */
	uint32_t shown;
	/* Answers to local waits that are due. */
	uint32_t waits;
	/* Locks that are bound to a node, of which some may have ended. */
	uint32_t bound;
	/* Records that are judged after a comparison of tables. */
	uint32_t judged;
	/* Timers that fire, and answers. */
	uint32_t timers;
	/* Sets of peers that may be sent a piece of a snapshot, and a batch of a feed. */
	uint64_t snapshots, feeds;
	/* A piece of a list; and the next part of a report of this node to itself. */
	bool list, asked;
};

#endif
