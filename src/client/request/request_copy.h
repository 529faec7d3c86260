/* request_copy.h: a request as the library keeps it. It has been checked, and it has its own copy
 * of every byte, so that it can be repeated. */
#ifndef PAWL_CLIENT_REQUEST_COPY_H
#define PAWL_CLIENT_REQUEST_COPY_H

#include "client.h"
#include "client_core.h"

#define REQUEST_COPY_LOCKS_MAX 1000
/* A request of this size fits into a frame of the client protocol, with everything that surrounds
 * it. */
#define REQUEST_COPY_BYTES_MAX ((size_t)3 << 20)

struct request_copy {
	const struct allocator *alloc;

	/* The size of this block in bytes, including the bytes and locks behind this structure. */
	size_t size;
	enum pawl_method method;

	/* The library has drawn the lock_ids; otherwise they are the caller's. */
	bool drawn;

	/* The caller has left the lease open, or that of some of the locks that are extended
	 * together. */
	bool default_lease;

	/* What the lease is where it was left open: set by request_copy_set_lease. */
	span_ns lease;

	/* Which of the locks that are extended together have their leases left open: not 0. */
	uint8_t *lease_open;

	/* The locks if the request has several keys, the same as wire.core.locks but writable;
	 * otherwise NULL. */
	struct core_lock *group;

	/* msgid and wait are set each time the request is sent. */
	struct client_request wire;
};

/* Makes a copy, which the caller frees with request_copy_free. Returns 0, PAWL_EINVAL,
 * PAWL_ETOOLARGE, PAWL_EIO (no lock_id could be drawn) or PAWL_ENOMEM. */
int request_copy_new(const struct allocator *alloc, const struct pawl_request *request,
	const struct request_self *self, struct request_copy **out);
void request_copy_free(struct request_copy *request);
/* request_check.c: returns 0, PAWL_EINVAL or PAWL_ETOOLARGE, and sets *bytes to the number of bytes
 * to copy. */
int request_check(const struct pawl_request *request, const struct request_self *self,
	size_t *bytes);
/* Returns how many objects a lock in a list to extend is at most: a map of up to six pairs, one of
 * which lists the permit numbers. A list has at most REQUEST_LOCK_ITEMS_MAX of them, so that the
 * rest of the request fits into what else a node reads (client_request_limits). */
uint32_t request_lock_items(struct permits numbers);
#define REQUEST_LOCK_ITEMS_MAX ((1u << 16) - 256)
/* Draws new lock_ids. Returns 0 or PAWL_EIO. */
int request_copy_draw(struct request_copy *request);

/* request_check.c: returns whether the method takes what is given besides. */
bool request_with_valid(const struct pawl_request *request, const struct pawl_with *with);
/* Adds what is given besides. */
void request_copy_with(struct request_copy *request, const struct pawl_with *with);
/* The request names this order, unless it names a greater one. */
void request_copy_set_order(struct request_copy *request, uint32_t order);
/* For an extension of several locks: sets the order of one of them; or says that all numbers of
 * session bindings in it are orders. */
void request_copy_set_order_of(struct request_copy *request, size_t n, uint32_t order);
void request_copy_orders(struct request_copy *request);
/* Returns the order that the request names; 0: none. */
uint32_t request_copy_order(const struct request_copy *request);

/* Returns whether the request may be sent again when its answer was lost. Repeats with the same
 * lock_id are safe (docs/protocol.md), but some methods must not be repeated. An update could undo
 * what others have written since. A transfer could find that its successor is gone, and could not
 * say that the first try has worked. A drain would stop the next node as well, and so would a
 * forced new start. A kick would end somebody else's connection there. */
bool request_copy_repeatable(const struct request_copy *request);

/* Returns whether the request, when it was sent and not answered, may have taken effect or may
 * still take effect. */
bool request_copy_unsure(const struct request_copy *request);

/* Sets the lease, in nanoseconds, where the caller has left it open. */
void request_copy_set_lease(struct request_copy *request, span_ns lease);

/* Returns how many locks the request asks for. The functions below take the number of one of
 * them. */
size_t request_copy_locks(const struct request_copy *request);
struct pawl_bytes request_copy_key(const struct request_copy *request, size_t n);
struct pawl_id request_copy_lock_id(const struct request_copy *request, size_t n);
/* For an acquire: returns what lock n excludes. */
struct terms request_copy_terms(const struct request_copy *request, size_t n);

/* Returns a wait_ms as a time. PAWL_FOREVER is the longest wait of the protocol, of
 * many years. */
span_ns request_wait(uint32_t wait_ms);

#define SEQ_BYTES CLIENT_VALUE_SEQ_BYTES
#define POSITION_BYTES CLIENT_POSITION_BYTES
void seq_write(struct ballot ballot, uint8_t out[SEQ_BYTES]);
void position_write(struct client_position position, uint8_t out[POSITION_BYTES]);

#endif
