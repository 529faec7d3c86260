/* bytes.h: numbers as little-endian bytes, as the state file and the side file have them. */
#ifndef PAWL_NODE_BYTES_H
#define PAWL_NODE_BYTES_H

#include "slice.h"

/* Writes at a place that has enough room; the caller makes sure of that. */
struct bytes_writer {
	uint8_t *at;
};

static inline void bytes_put(struct bytes_writer *w, const void *data, size_t size) {
	memcpy(w->at, data, size);
	w->at += size;
}

static inline void bytes_put_number(struct bytes_writer *w, uint64_t v, unsigned size) {
	for (unsigned i = 0; i < size; i++) {
		*w->at++ = (uint8_t)(v >> (8 * i));
	}
}

/* Reads from a slice, and notes when it is too short. */
struct bytes_reader {
	struct slice rest;
	/* More was asked for than there was. */
	bool bad;
};

static inline bool bytes_get(struct bytes_reader *r, void *out, size_t size) {
	if (r->bad || r->rest.size < size) {
		r->bad = true;
		return false;
	}
	memcpy(out, r->rest.data, size);
	r->rest = slice_of(r->rest.data + size, r->rest.size - size);
	return true;
}

static inline uint64_t bytes_get_number(struct bytes_reader *r, unsigned size) {
	uint8_t b[8] = { 0 };
	uint64_t v = 0;
	if (bytes_get(r, b, size)) {
		for (unsigned i = 0; i < size; i++) {
			v |= (uint64_t)b[i] << (8 * i);
		}
	}
	return v;
}

#endif
