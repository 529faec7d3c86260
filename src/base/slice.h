/* slice.h: borrowed bytes. They belong to somebody else and must outlive the slice. */
#ifndef PAWL_BASE_SLICE_H
#define PAWL_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct slice {
	/* The bytes; NULL only if size is 0. */
	const uint8_t *data;
	size_t size;
};

static inline struct slice slice_of(const void *data, size_t size) {
	return (struct slice){ (const uint8_t *)data, size };
}

static inline struct slice slice_str(const char *s) {
	return slice_of(s, strlen(s));
}

static inline bool slice_equal(struct slice a, struct slice b) {
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Compares by bytes, with a prefix before what it begins. Returns <0, 0 or >0, as memcmp does. */
static inline int slice_compare(struct slice a, struct slice b) {
	size_t n = a.size < b.size ? a.size : b.size;
	int c = n ? memcmp(a.data, b.data, n) : 0;
	return c ? c : (a.size > b.size) - (a.size < b.size);
}

static inline bool slice_has_prefix(struct slice s, struct slice prefix) {
	return s.size >= prefix.size &&
		(prefix.size == 0 || memcmp(s.data, prefix.data, prefix.size) == 0);
}

/* Copies the bytes to where there is room for them, and returns the place behind them. */
static inline uint8_t *slice_put(uint8_t *to, struct slice from) {
	if (from.size) {
		memcpy(to, from.data, from.size);
	}
	return to + from.size;
}

#endif
