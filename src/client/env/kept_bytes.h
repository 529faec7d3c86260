/* kept_bytes.h: copies of bytes that a client keeps for as long as it needs them. */
#ifndef PAWL_CLIENT_KEPT_BYTES_H
#define PAWL_CLIENT_KEPT_BYTES_H

#include "alloc.h"
#include "pawl/pawl.h"

/* Returns whether a program may have passed these: no data only without a size. */
static inline bool kept_bytes_valid(struct pawl_bytes bytes) {
	return bytes.data || bytes.size == 0;
}

/* Copies the bytes. No bytes become { NULL, 0 }. Returns 0 or PAWL_ENOMEM. Free the copy with
 * kept_bytes_free. */
int kept_bytes_copy(const struct allocator *alloc, struct pawl_bytes from, struct pawl_bytes *out);
/* Accepts { NULL, 0 }. */
void kept_bytes_free(const struct allocator *alloc, struct pawl_bytes bytes);

#endif
