/* session_bindings.h: locks that end with the connection of their holder (docs/protocol.md section
 * 2, Release on disconnect). It says which locks must be released, and under which session binding,
 * when the other side closes a connection.
 */
#ifndef PAWL_NODE_SESSION_BINDINGS_H
#define PAWL_NODE_SESSION_BINDINGS_H

#include "clock.h"
#include "list.h"
#include "map.h"
#include "siphash.h"
#include "slice.h"
#include "types.h"

/* The session bindings of all clients of a node. */
struct session_bindings {
	const struct allocator *alloc;
	struct siphash_key hash_key;
	struct map by_client, by_lock;
	/* The bindings whose request is not answered yet, by the id of that request. */
	struct map by_request;
	/* The clients that are gone and still have bindings. */
	struct list gone;
};

/* The session binding of one lock. */
struct session_binding {
	struct map_node by_lock;
	/* In the map while `asked` is not 0. */
	struct map_node by_request;

	/* Linked to the other bindings of its client. */
	struct list among;
	struct session_bindings_client *client;

	/* The request that asks for the lock, until it is answered; 0 means that the client has the
	 * lock. */
	uint64_t asked;
	struct id128 lock_id;

	/* The number of the holder's connection that ends the lock (docs/protocol.md, section 2,
	 * Release on disconnect). */
	uint32_t binding;
	/* Another request asks for the lock, too, and may get it even if `asked` does not. */
	bool again;
	/* From then on nobody trusts the lock any more. If its holder has not released it, the
	 * binding is forgotten then. */
	struct instant until;

	uint16_t size;
	uint8_t key[];
};

/* Returns 0 or PAWL_ENOMEM. */
int session_bindings_init(struct session_bindings *l, const struct allocator *alloc,
	struct siphash_key hash_key);
/* Accepts zeroed memory. */
void session_bindings_done(struct session_bindings *l);

/* The client asks for a lock under this binding, or names the binding for a lock that it has. What
 * is kept of the client comes from `alloc`, until all of it is given back; it must always be the
 * same allocator for a client. Returns 0 or PAWL_ENOMEM. */
int session_bindings_put(struct session_bindings *l, const struct allocator *alloc, uint64_t client,
	uint64_t request, struct slice key, struct id128 lock_id, uint32_t binding,
	struct instant now, struct instant until);
/* The client has the lock until then at most. This does nothing if the lock is not bound to the
 * client's connection. */
void session_bindings_got(struct session_bindings *l, uint64_t client, struct id128 lock_id,
	struct instant until);
/* The request did not get this lock or, if lock_id is NULL, any lock. What the client had before
 * stays, and so does what another request of the client asks for. */
void session_bindings_refused(struct session_bindings *l, uint64_t client, uint64_t request,
	const struct id128 *lock_id);
/* The client no longer has the lock. */
void session_bindings_drop(struct session_bindings *l, uint64_t client, struct id128 lock_id);

/* Returns whether another client of this node has named a later binding, so that the lock does not
 * end with this one. */
bool session_bindings_moved(const struct session_bindings *l, const struct session_binding *bound);

/* Returns NULL if the client has none. */
const struct session_binding *session_bindings_first(const struct session_bindings *l,
	uint64_t client);

/* The client is gone. The owner drops its bindings one by one; with `release`, its locks end. */
void session_bindings_go(struct session_bindings *l, uint64_t client, bool release);
/* Finds the first client that is gone and still has a binding. Returns false if there is none. */
bool session_bindings_gone(const struct session_bindings *l, uint64_t *out_client,
	bool *out_release);

#endif
