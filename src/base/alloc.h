/* alloc.h: memory is handed in. Whoever allocates names the allocator, and running out is a refusal, never a crash. */
#ifndef PAWL_BASE_ALLOC_H
#define PAWL_BASE_ALLOC_H

#include <stddef.h>

struct allocator {
	void *(*resize)(void *ctx, void *p, size_t old_size, size_t new_size); /* realloc; new_size 0 frees, returns NULL */
	void *ctx;
};

/* Zeroed memory or NULL. */
void *alloc_new(const struct allocator *a, size_t size);
/* As realloc; the old block stays on failure (NULL). Grown bytes are not zeroed. */
void *alloc_resize(const struct allocator *a, void *p, size_t old_size, size_t new_size);
void alloc_free(const struct allocator *a, void *p, size_t size); /* p may be NULL */

/* malloc, with an optional limit: refuses what would take `used` above `max` (0: no limit). ctx of alloc_libc(). */
struct alloc_counter {
	size_t used;
	size_t max;
};
struct allocator alloc_libc(struct alloc_counter *counter); /* counter is borrowed; NULL: neither count nor limit */

#endif
