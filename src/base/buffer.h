/* buffer.h: a growing byte buffer and an arena, each with a mandatory limit. */
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

/* Makes an empty buffer of at most `max` bytes; max > 0. The allocator is borrowed. */
void buffer_init(struct buffer *b, const struct allocator *alloc, size_t max);

/* Frees the buffer's memory. */
void buffer_done(struct buffer *b);

/* Makes room for `size` bytes at the end. Returns 0, PAWL_ENOMEM, or PAWL_ETOOLARGE if that would
 * exceed the limit. */
int buffer_room(struct buffer *b, size_t size);

/* As buffer_room, but returns the room; NULL: there is none. */
uint8_t *buffer_reserve(struct buffer *b, size_t size);

/* Returns how much more memory the buffer would take for room for `size` bytes. */
size_t buffer_growth(const struct buffer *b, size_t size);

/* Adds bytes that were written into the room. */
void buffer_commit(struct buffer *b, size_t size);

/* Drops bytes at the front. */
void buffer_consume(struct buffer *b, size_t size);

/* Empties the buffer and keeps its memory. */
void buffer_clear(struct buffer *b);

/* If the buffer is empty and has more than `keep` bytes of memory, gives that back. */
void buffer_trim(struct buffer *b, size_t keep);
/* Empties the buffer and gives at most `most` bytes of its memory back, but not the first `keep`.
 * Returns how many bytes it gave back. */
size_t buffer_shed(struct buffer *b, size_t most, size_t keep);
static inline struct slice buffer_slice(const struct buffer *b) {
	return slice_of(b->data, b->size);
}

/* Returns 0, PAWL_ENOMEM or PAWL_ETOOLARGE, and changes nothing on error. It is inline for the case
 * that the room is there. */
static inline int buffer_append(struct buffer *b, const void *data, size_t size) {
	const int error = size > b->capacity - b->size ? buffer_room(b, size) : 0;
	if (!error && size) {
		memcpy(b->data + b->size, data, size);
		b->size += size;
	}
	return error;
}

/* An arena for bytes that live until the next reset. It keeps one block for reuse, unless that is
 * large. */
struct arena_block;
struct arena {
	const struct allocator *alloc;
	struct arena_block *blocks;
	/* Bytes that were taken since the last reset, and how many may be. */
	size_t used, max;
};

/* Makes an empty arena; max > 0. The allocator is borrowed. */
void arena_init(struct arena *a, const struct allocator *alloc, size_t max);

/* Frees the arena's memory. */
void arena_done(struct arena *a);

/* Returns memory of this size and alignment, which is not zeroed; NULL: there is no memory, or the
 * limit is exceeded. Size 0 gives a pointer of its own, too. */
void *arena_take(struct arena *a, size_t size, size_t align);

/* Copies bytes into the arena. Returns 0 or PAWL_ENOMEM. */
int arena_copy(struct arena *a, struct slice from, struct slice *out);

/* Everything that was taken is gone. */
void arena_reset(struct arena *a);

#endif
