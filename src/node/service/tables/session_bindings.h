/* session_bindings.h: locks that end with the connection of their holder (docs/protocol.md section 2, Release on disconnect): which locks
 * are to be released, and under which bond, when the other side closes a connection. */
#ifndef PAWL_NODE_SESSION_BINDINGS_H
#define PAWL_NODE_SESSION_BINDINGS_H

#include "clock.h"
#include "list.h"
#include "map.h"
#include "siphash.h"
#include "slice.h"
#include "types.h"

struct session_bindings {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	struct map by_client, by_lock;
	struct list gone; /* clients that are gone, and have bindings yet */
};

struct session_binding {
	struct map_node by_lock;
	struct list among; /* of its client */
	struct session_bindings_client *client;
	uint64_t asked;       /* the request that is to get the lock, as long as it has no answer; 0: the lock was got */
	struct id128 lock_id;
	uint32_t binding;
	bool again;           /* another request asks for it as well: it may get the lock where `asked` does not */
	struct instant until; /* nobody trusts the lock any more: what its holder does not release is forgotten then */
	uint16_t size;
	uint8_t key[];
};

int session_bindings_init(struct session_bindings *l, const struct allocator *alloc, struct siphash_key hash_key); /* 0 or PAWL_ENOMEM */
void session_bindings_done(struct session_bindings *l); /* accepts zeroed memory */

/* The client asks for a lock under this bond, or names the bond for one that it has. 0 or PAWL_ENOMEM. `alloc`: for what is kept of the
 * client, until all of it is given back; always the same one. */
int session_bindings_put(struct session_bindings *l, const struct allocator *alloc, uint64_t client, uint64_t request,
	struct slice key, struct id128 lock_id, uint32_t binding, struct instant now, struct instant until);
/* It has the lock until then, at most; does nothing where the lock is not bound to its connection. */
void session_bindings_got(struct session_bindings *l, uint64_t client, struct id128 lock_id, struct instant until);
/* The request did not get it, or (NULL) any of them; what the client had before stays, and what another request of it asks for. */
void session_bindings_refused(struct session_bindings *l, uint64_t client, uint64_t request, const struct id128 *lock_id);
/* The client has it no more. */
void session_bindings_drop(struct session_bindings *l, uint64_t client, struct id128 lock_id);

/* Another client of this node has named a later bond: the lock does not end with this one. */
bool session_bindings_moved(const struct session_bindings *l, const struct session_binding *bound);
const struct session_binding *session_bindings_first(const struct session_bindings *l, uint64_t client); /* NULL: none */

/* The client is gone: what it has is dropped one by one by the owner. `release`: its locks end. */
void session_bindings_go(struct session_bindings *l, uint64_t client, bool release);
/* Of those that are gone the first one that has a binding yet; false: none has. */
bool session_bindings_gone(const struct session_bindings *l, uint64_t *out_client, bool *out_release);

#endif
