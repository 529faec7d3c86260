/* order.h: a request as the library keeps it: checked, and with its own copy of every byte, so that it can be repeated. */
#ifndef PAWL_CLIENT_ORDER_H
#define PAWL_CLIENT_ORDER_H

#include "client.h"
#include "hub.h"

#define ORDER_LOCKS_MAX 1000
#define ORDER_BYTES_MAX ((size_t)3 << 20) /* fits into a frame of the client protocol with what surrounds it */

struct order {
	const struct allocator *alloc;
	size_t size; /* of this block, bytes and locks included */
	enum pawl_method method;
	bool drawn; /* the lock_ids are the library's, not the caller's */
	struct core_lock *group; /* several keys: wire.core.locks, to be changed; else NULL */
	struct client_request wire; /* msgid and wait are set anew for each sending */
};

/* 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EIO (no lock_id could be drawn), PAWL_ENOMEM. */
int order_new(const struct allocator *alloc, const struct pawl_request *request, const struct order_self *self, struct order **out);
void order_free(struct order *order);
/* order_check.c: 0, PAWL_EINVAL or PAWL_ETOOLARGE; *bytes: to be copied. */
int order_check(const struct pawl_request *request, const struct order_self *self, size_t *bytes);
int order_draw(struct order *order); /* other lock_ids; 0 or PAWL_EIO */

/* May be sent again when its answer was lost (docs/protocol.md: repeats with the same lock_id are safe). An update may not: it
 * could undo what others wrote since; nor a transfer, which could find that its successor is gone, and not say that it was done;
 * nor a drain, which would stop the next node as well, or a forced new start; nor a kick, which would meet somebody else there. */
bool order_repeatable(const struct order *order);

/* Sent and not answered it may have taken effect, or may yet. */
bool order_unsure(const struct order *order);

/* What it acquires: one lock, or several. */
size_t order_locks(const struct order *order);
struct pawl_bytes order_key(const struct order *order, size_t n);
struct pawl_id order_lock_id(const struct order *order, size_t n);
struct terms order_terms(const struct order *order, size_t n); /* of an acquire: what it excludes */

#define ORDER_SEQ_BYTES CLIENT_VALUE_SEQ_BYTES
#define ORDER_POSITION_BYTES CLIENT_POSITION_BYTES
void order_seq_write(struct ballot ballot, uint8_t out[ORDER_SEQ_BYTES]);
void order_position_write(struct client_position position, uint8_t out[ORDER_POSITION_BYTES]);

#endif
