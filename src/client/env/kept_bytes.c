/* kept_bytes.c: copies bytes into memory of their own, and frees them. */
#include "kept_bytes.h"

#include <string.h>

int kept_bytes_copy(const struct allocator *alloc, struct pawl_bytes from, struct pawl_bytes *out) {
	*out = (struct pawl_bytes){ NULL, 0 };
	if (from.size == 0) {
		return 0;
	}
	void *copy = alloc_new(alloc, from.size);
	if (!copy) {
		return PAWL_ENOMEM;
	}
	memcpy(copy, from.data, from.size);
	*out = (struct pawl_bytes){ copy, from.size };
	return 0;
}

void kept_bytes_free(const struct allocator *alloc, struct pawl_bytes bytes) {
	if (bytes.data) {
		union { const void *from; void *to; } owned = { .from = bytes.data };
		alloc_free(alloc, owned.to, bytes.size);
	}
}
