/* unpack.h: the bounded reader of MessagePack. It allocates nothing, builds no tree, and never believes an announced size:
 * bytes must be there, and a count of objects must be possible with the bytes that are left. */
#ifndef PAWL_WIRE_UNPACK_H
#define PAWL_WIRE_UNPACK_H

#include "slice.h"

enum unpack_type {
	UNPACK_NIL,
	UNPACK_BOOL,
	UNPACK_UINT, /* any integer that is not negative, in whatever form */
	UNPACK_NEGATIVE,
	UNPACK_FLOAT,
	UNPACK_STR,
	UNPACK_BIN,
	UNPACK_EXT,
	UNPACK_ARRAY,
	UNPACK_MAP
};

/* What stands at the front of an object. */
struct unpack_head {
	enum unpack_type type;
	uint32_t head_bytes; /* with the number, for those that are one */
	uint32_t size;       /* bytes that follow: STR, BIN, EXT; objects that follow: ARRAY; pairs: MAP */
	uint64_t number;     /* UINT; NEGATIVE: in two's complement of 64 bits; BOOL: 0 or 1 */
};
enum unpack_found { UNPACK_FOUND, UNPACK_SHORT, UNPACK_INVALID };
enum unpack_found unpack_head_long(struct slice in, struct unpack_head *out);
/* SHORT: the head is cut off; INVALID: a byte that begins nothing (0xc1). Inline for short strings, the most frequent head. */
static inline enum unpack_found unpack_head(struct slice in, struct unpack_head *out) {
	if (in.size && (*in.data & 0xe0) == 0xa0) {
		*out = (struct unpack_head){ .type = UNPACK_STR, .head_bytes = 1, .size = *in.data & 0x1fu };
		return UNPACK_FOUND;
	}
	return unpack_head_long(in, out);
}

/* A reader over bytes that are all there. The first thing that is wrong makes it bad for good: from then on every call
 * returns zero or nothing, so that a whole message is read before looking. */
struct unpack {
	const uint8_t *p, *end;
	bool bad;
};

static inline struct unpack unpack_of(struct slice in) {
	return (struct unpack){ in.data, in.size ? in.data + in.size : in.data, false };
}

static inline size_t unpack_left(const struct unpack *u) {
	return (size_t)(u->end - u->p);
}

enum unpack_type unpack_peek_long(struct unpack *u);
/* The next object's type; bad (and NIL) at the end. */
static inline enum unpack_type unpack_peek(struct unpack *u) {
	if (!u->bad && u->p < u->end && *u->p < 0xc0) {
		return *u->p < 0x80 ? UNPACK_UINT : *u->p >= 0xa0 ? UNPACK_STR : *u->p < 0x90 ? UNPACK_MAP : UNPACK_ARRAY;
	}
	return unpack_peek_long(u);
}

uint64_t unpack_uint_long(struct unpack *u);
/* A whole number in 0 .. max. */
static inline uint64_t unpack_uint(struct unpack *u, uint64_t max) {
	uint64_t value = 0;
	if (u->p < u->end && *u->p <= 0x7f && !u->bad) {
		value = *u->p++;
	} else {
		value = unpack_uint_long(u);
	}
	if (value > max) {
		u->bad = true;
		return 0;
	}
	return value;
}

int64_t unpack_int(struct unpack *u); /* any whole number that fits */
bool unpack_bool(struct unpack *u);
struct slice unpack_bin(struct unpack *u, size_t max);   /* bin of at most max bytes */
struct slice unpack_str(struct unpack *u, size_t max);   /* str of at most max bytes */
struct slice unpack_bytes(struct unpack *u, size_t max); /* either */
uint32_t unpack_array(struct unpack *u);                 /* the count; never more than bytes are left */
uint32_t unpack_map(struct unpack *u);                   /* the pairs; never more than half of the bytes that are left */
void unpack_skip(struct unpack *u);                      /* one object, nested at most UNPACK_DEPTH_MAX deep */
#define UNPACK_DEPTH_MAX 16

#endif
