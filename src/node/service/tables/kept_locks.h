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

/* Who has a lock, as far as rights depend on it. */
struct kept_holder {
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
	/* When it is to be extended. */
	struct instant due;
	struct kept_holder holder;
	struct slice key;
	/* The size of this struct with the bytes behind it. */
	size_t bytes;
};

/* Returns 0 or PAWL_ENOMEM. The allocator is borrowed. */
int kept_locks_init(struct kept_locks *k, const struct allocator *alloc);
/* Accepts zeroed memory. */
void kept_locks_done(struct kept_locks *k);

/* Keeps a lock, which is to be extended at `due`, unless there are `most` locks already. Returns 0,
 * PAWL_EFULL or PAWL_ENOMEM. */
int kept_locks_add(struct kept_locks *k, struct slice key, struct id128 lock_id,
	const struct kept_holder *holder, struct instant due, uint32_t most);
/* Returns how many locks are kept. */
uint32_t kept_locks_count(const struct kept_locks *k);
/* Returns NULL if the lock is not kept. */
struct kept_lock *kept_locks_find(const struct kept_locks *k, struct id128 lock_id);
/* Does nothing if the lock is not kept. */
void kept_locks_drop(struct kept_locks *k, struct id128 lock_id);
/* Returns the lock that is to be extended next, or NULL. */
struct kept_lock *kept_locks_next(const struct kept_locks *k);
/* The lock is to be extended again at `due`. */
void kept_locks_again(struct kept_locks *k, struct kept_lock *kept, struct instant due);

#endif
