/* buffer.c: a byte buffer that doubles up to its limit. */
#include "buffer.h"

#include "check.h"
#include "pawl/error.h"

#define CAPACITY_MIN 256

void buffer_init(struct buffer *b, const struct allocator *alloc, size_t max) {
	CHECK(max > 0);
	*b = (struct buffer){ .alloc = alloc, .max = max };
}

void buffer_done(struct buffer *b) {
	if (b->data) {
		alloc_free(b->alloc, b->data, b->capacity);
	}
	*b = (struct buffer){ 0 };
}

static size_t buffer_grown_capacity(const struct buffer *b, size_t need) {
	size_t capacity = b->capacity ? b->capacity : CAPACITY_MIN;
	while (capacity < need) {
		capacity = capacity > b->max / 2 ? b->max : capacity * 2;
	}
	return capacity < b->max ? capacity : b->max;
}

size_t buffer_growth(const struct buffer *b, size_t size) {
	size_t need = b->size + size;
	return need <= b->capacity ? 0
		: buffer_grown_capacity(b, need < b->max ? need : b->max) - b->capacity;
}

int buffer_room(struct buffer *b, size_t size) {
	/* The limit may have been lowered below what the buffer has. */
	if (b->size > b->max || size > b->max - b->size) {
		return PAWL_ETOOLARGE;
	}
	size_t need = b->size + size;
	if (b->data && need <= b->capacity) {
		return 0;
	}
	size_t capacity = buffer_grown_capacity(b, need);
	uint8_t *data = alloc_resize(b->alloc, b->data, b->capacity, capacity);
	if (!data) {
		return PAWL_ENOMEM;
	}
	b->data = data;
	b->capacity = capacity;
	return 0;
}

uint8_t *buffer_reserve(struct buffer *b, size_t size) {
	return buffer_room(b, size) == 0 ? b->data + b->size : NULL;
}

void buffer_commit(struct buffer *b, size_t size) {
	CHECK(size <= b->capacity - b->size);
	b->size += size;
}

void buffer_consume(struct buffer *b, size_t size) {
	CHECK(size <= b->size);
	b->size -= size;
	if (size && b->size) {
		memmove(b->data, b->data + size, b->size);
	}
}

void buffer_clear(struct buffer *b) {
	b->size = 0;
}

size_t buffer_shed(struct buffer *b, size_t most, size_t keep) {
	const size_t before = b->capacity, spare = before > keep ? before - keep : 0,
		shed = spare < most ? spare : most;
	buffer_clear(b);
	uint8_t *data = shed && shed < before
		? alloc_resize(b->alloc, b->data, before, before - shed) : NULL;
	if (data) {
		b->data = data;
		b->capacity = before - shed;
	}
	return before - b->capacity;
}

void buffer_trim(struct buffer *b, size_t keep) {
	if (b->size == 0 && b->capacity > keep) {
		const struct allocator *alloc = b->alloc;
		size_t max = b->max;
		buffer_done(b);
		buffer_init(b, alloc, max);
	}
}
