/* kept_locks.h: the locks that the node itself extends, because their holders speak a protocol in
 * which a lock may have no end ([redis] without_end). It says whose they are, and which of them is
 * to be extended next. This is pure: time is an argument. */
#ifndef PAWL_NODE_KEPT_LOCKS_H
#define PAWL_NODE_KEPT_LOCKS_H

#include "clock.h"
#include "map.h"
#include "slice.h"
#include "treap.h"
#include "types.h"

struct kept_locks {
	const struct allocator *alloc;
	/* struct kept_lock, by lock_id. */
	struct map by_lock;
	/* All of them, in the order in which they are to be extended. */
	struct tree_node *due;
};

/* What a lock's holder may count on. */
struct kept_lease {
	/* Nobody else gets the lock before this. */
	struct instant until;
	/* How long the lease was when it was last granted. */
	span_ns length;
};

/* Who has a lock, as far as rights depend on it. */
struct kept_holder {
	/* The number of the connection that took the lock, which may be gone. */
	uint64_t client;
	/* The identity of the connection, and the one under which it holds locks. */
	struct slice identity, owner;
	bool local, inside;
	int64_t uid;
	/* The groups of the process at the other end, and whether it is in further ones. */
	const uint32_t *gids;
	uint32_t gid_count;
	bool more_gids;
};

/* One lock, with a copy of everything. */
struct kept_lock {
	struct map_node by_lock;
	struct tree_node due_node;
	struct id128 lock_id;
	/* When it is to be extended; when an extension was last asked for, and by which request. */
	struct instant due, asked;
	uint64_t request;
	struct kept_lease lease;
	struct kept_holder holder;
	struct slice key;
	/* The size of this struct with the bytes behind it. */
	size_t bytes;
};

/* Returns 0 or PAWL_ENOMEM. The allocator is borrowed. */
int kept_locks_init(struct kept_locks *k, const struct allocator *alloc);
/* Accepts zeroed memory. */
void kept_locks_done(struct kept_locks *k);

/* Keeps a lock, unless there are `most` locks already. It is due at once, until kept_locks_again
 * says otherwise. Returns 0, PAWL_EFULL or PAWL_ENOMEM. */
int kept_locks_add(struct kept_locks *k, struct slice key, struct id128 lock_id,
	const struct kept_holder *holder, struct kept_lease lease, uint32_t most);
/* Returns how many locks are kept. */
uint32_t kept_locks_count(const struct kept_locks *k);
/* Returns NULL if the lock is not kept. */
struct kept_lock *kept_locks_find(const struct kept_locks *k, struct id128 lock_id);
/* Does nothing if the lock is not kept. */
void kept_locks_drop(struct kept_locks *k, struct id128 lock_id);
/* Returns the lock that is to be extended next, or NULL. */
struct kept_lock *kept_locks_next(const struct kept_locks *k);
/* The lock is to be looked at again when it is time to extend it, which leases of `max_lease` say,
 * or its own if that is shorter; or when it is over (below). */
void kept_locks_again(struct kept_locks *k, struct kept_lock *kept, struct instant now,
	span_ns max_lease);
/* Request number `request` is about to extend the lock. */
void kept_lock_asked(struct kept_lock *kept, uint64_t request, struct instant now);
/* The extension of that number has succeeded: the lock is valid for so long from its sending on. */
void kept_lock_extended(struct kept_lock *kept, uint64_t request, span_ns valid);
/* Returns whether the holder has to be told that it has lost the lock, because no extension has
 * succeeded for so long that somebody else may soon have it. */
bool kept_lock_over(const struct kept_lock *kept, struct instant now);

#endif
