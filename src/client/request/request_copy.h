/* request_copy.h: a request as the library keeps it: checked, and with its own copy of every byte, so that it can be repeated. */
#ifndef PAWL_CLIENT_REQUEST_COPY_H
#define PAWL_CLIENT_REQUEST_COPY_H

#include "client.h"
#include "client_core.h"

#define REQUEST_COPY_LOCKS_MAX 1000
#define REQUEST_COPY_BYTES_MAX ((size_t)3 << 20) /* fits into a frame of the client protocol with what surrounds it */

struct request_copy {
	const struct allocator *alloc;
	size_t size; /* of this block, bytes and locks included */
	enum pawl_method method;
	bool drawn; /* the lock_ids are the library's, not the caller's */
	struct core_lock *group; /* several keys: wire.core.locks, to be changed; else NULL */
	struct client_request wire; /* msgid and wait are set anew for each sending */
};

/* 0, PAWL_EINVAL, PAWL_ETOOLARGE, PAWL_EIO (no lock_id could be drawn), PAWL_ENOMEM. */
int request_copy_new(const struct allocator *alloc, const struct pawl_request *request, const struct request_self *self,
	struct request_copy **out);
void request_copy_free(struct request_copy *request);
/* request_check.c: 0, PAWL_EINVAL or PAWL_ETOOLARGE; *bytes: to be copied. */
int request_check(const struct pawl_request *request, const struct request_self *self, size_t *bytes);
int request_copy_draw(struct request_copy *request); /* other lock_ids; 0 or PAWL_EIO */

/* May be sent again when its answer was lost (docs/protocol.md: repeats with the same lock_id are safe). An update may not: it
 * could undo what others wrote since; nor a transfer, which could find that its successor is gone, and not say that it was done;
 * nor a drain, which would stop the next node as well, or a forced new start; nor a kick, which would meet somebody else there. */
bool request_copy_repeatable(const struct request_copy *request);

/* Sent and not answered it may have taken effect, or may yet. */
bool request_copy_unsure(const struct request_copy *request);

/* What it acquires: one lock, or several. */
size_t request_copy_locks(const struct request_copy *request);
struct pawl_bytes request_copy_key(const struct request_copy *request, size_t n);
struct pawl_id request_copy_lock_id(const struct request_copy *request, size_t n);
struct terms request_copy_terms(const struct request_copy *request, size_t n); /* of an acquire: what it excludes */

#define SEQ_BYTES CLIENT_VALUE_SEQ_BYTES
#define POSITION_BYTES CLIENT_POSITION_BYTES
void seq_write(struct ballot ballot, uint8_t out[SEQ_BYTES]);
void position_write(struct client_position position, uint8_t out[POSITION_BYTES]);

#endif
