/* order.h: a request as the library keeps it: checked, and with its own copy of every byte, so that it can be repeated. */
#ifndef PAWL_CLIENT_ORDER_H
#define PAWL_CLIENT_ORDER_H

#include "client.h"
#include "pawl/pawl.h"

#define ORDER_LOCKS_MAX 1000
#define ORDER_BYTES_MAX ((size_t)3 << 20) /* fits into a frame of the client protocol with what surrounds it */

struct order {
	const struct allocator *alloc;
	size_t size; /* of this block, bytes and locks included */
	enum pawl_method method;
	bool drawn; /* the lock_id is the library's, not the caller's */
	struct client_request wire; /* msgid and wait are set anew for each sending */
};

/* `owner`: for an acquire that names none. 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EIO (no lock_id could be drawn), PAWL_ENOMEM. */
int order_new(const struct allocator *alloc, const struct pawl_request *request, struct pawl_bytes owner,
	struct order **out);
void order_free(struct order *order);
int order_draw(struct order *order); /* another lock_id; 0 or PAWL_EIO */

/* May be sent again when its answer was lost (docs/protocol.md: repeats with the same lock_id are safe). An update may not: it
 * could undo what others wrote since; nor a drain, which would stop the next node as well, or a forced new start. */
bool order_repeatable(const struct order *order);

struct pawl_bytes order_key(const struct order *order);
struct pawl_id order_lock_id(const struct order *order);

#define ORDER_SEQ_BYTES CLIENT_VALUE_SEQ_BYTES
void order_seq_write(struct ballot ballot, uint8_t out[ORDER_SEQ_BYTES]);

#endif
