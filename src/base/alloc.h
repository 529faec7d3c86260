/* alloc.h: memory is handed in. Whoever allocates names the allocator. Running out of memory is a
 * refusal, never a crash. */
#ifndef PAWL_BASE_ALLOC_H
#define PAWL_BASE_ALLOC_H

#include <stddef.h>

struct allocator {
	/* As realloc. With new_size 0 it frees the block and returns NULL. */
	void *(*resize)(void *ctx, void *p, size_t old_size, size_t new_size);
	void *ctx;
};

/* Returns zeroed memory, which alloc_free frees; NULL: there is no memory. size > 0. */
void *alloc_new(const struct allocator *a, size_t size);

/* As realloc, with new_size > 0. On failure it returns NULL and the old block stays. Grown bytes
 * are not zeroed. */
void *alloc_resize(const struct allocator *a, void *p, size_t old_size, size_t new_size);

/* Frees a block of this size. p may be NULL. */
void alloc_free(const struct allocator *a, void *p, size_t size);

/* The context of alloc_libc. `used` counts bytes, and what would take it above `max` is refused; 0:
 * there is no limit. */
struct alloc_counter {
	size_t used;
	size_t max;
};

/* Returns an allocator that uses malloc. The counter is borrowed; NULL: bytes are neither counted
 * nor limited. */
struct allocator alloc_libc(struct alloc_counter *counter);

#endif
