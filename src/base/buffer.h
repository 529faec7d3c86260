/* buffer.h: a growing byte buffer with a mandatory limit. */
#ifndef PAWL_BASE_BUFFER_H
#define PAWL_BASE_BUFFER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "alloc.h"
#include "slice.h"

struct buffer {
	const struct allocator *alloc;
	uint8_t *data;
	size_t size, capacity, max;
};

void buffer_init(struct buffer *b, const struct allocator *alloc, size_t max); /* allocator borrowed; max > 0 */
void buffer_done(struct buffer *b);
int buffer_append_long(struct buffer *b, const void *data, size_t size);
uint8_t *buffer_reserve(struct buffer *b, size_t size);             /* room for size bytes at the end, or NULL */
size_t buffer_growth(const struct buffer *b, size_t size);            /* memory that room for so many bytes would take in addition */
void buffer_commit(struct buffer *b, size_t size);                  /* the bytes written into the room */
void buffer_consume(struct buffer *b, size_t size);                 /* drops bytes at the front */
void buffer_clear(struct buffer *b);                                /* keeps the memory */
void buffer_trim(struct buffer *b, size_t keep);                    /* an empty one gives back its memory if that is more than `keep` bytes */
static inline struct slice buffer_slice(const struct buffer *b) {
	return slice_of(b->data, b->size);
}

/* 0, PAWL_ENOMEM or PAWL_ETOOLARGE; unchanged on error. Inline where the room is there. */
static inline int buffer_append(struct buffer *b, const void *data, size_t size) {
	if (size == 0 || size > b->capacity - b->size) {
		return buffer_append_long(b, data, size);
	}
	memcpy(b->data + b->size, data, size);
	b->size += size;
	return 0;
}

/* Bump arena for bytes that live until the next reset; blocks are kept for reuse up to `keep` bytes. */
struct arena_block;
struct arena {
	const struct allocator *alloc;
	struct arena_block *blocks;
	size_t used, max; /* max bytes between resets */
};
void arena_init(struct arena *a, const struct allocator *alloc, size_t max);
void arena_done(struct arena *a);
void *arena_take(struct arena *a, size_t size, size_t align); /* NULL: no memory or above max; size 0 gives a non-NULL pointer */
int arena_copy(struct arena *a, struct slice from, struct slice *out); /* 0 or PAWL_ENOMEM */
void arena_reset(struct arena *a); /* everything taken is gone; keeps one block */

#endif
