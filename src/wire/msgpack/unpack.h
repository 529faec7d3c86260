/* unpack.h: the bounded reader of MessagePack, on top of msgpack-c's parser. It allocates nothing,
 * builds no tree, and never believes an announced size: bytes must be there, and a count of objects
 * must be possible with the bytes that are left. What is frequent between nodes (short strings,
 * small numbers and arrays) is read inline, without the parser: see
 * docs/decisions/0025-msgpack-c-by-its-templates.md. */
#ifndef PAWL_WIRE_UNPACK_H
#define PAWL_WIRE_UNPACK_H

#include "slice.h"

/* What is so small and so frequent that it must be inline. The compiler has other measures when it
 * sees the whole program. */
#define UNPACK_INLINE static inline __attribute__((always_inline))

enum unpack_type {
	UNPACK_NIL,
	UNPACK_BOOL,

	/* Any integer that is not negative, in whatever form. */
	UNPACK_UINT,
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

	/* Bytes of the head, with the number where the object is one. */
	uint32_t head_bytes;

	/* Bytes that follow a head of STR, BIN or EXT; objects in an ARRAY; pairs in a MAP. */
	uint32_t size;

	/* The number of UINT; of NEGATIVE, in two's complement of 64 bits; of BOOL, 0 or 1. */
	uint64_t number;
};

enum unpack_found {
	UNPACK_FOUND,

	/* The head is cut off. */
	UNPACK_SHORT,

	/* A byte begins nothing (0xc1). */
	UNPACK_INVALID
};

/* Reads a head with msgpack-c's parser. */
enum unpack_found unpack_head_long(struct slice in, struct unpack_head *out);

/* Reads a head. That of a short string, the most frequent one, is read inline. */
static inline enum unpack_found unpack_head(struct slice in, struct unpack_head *out) {
	if (in.size && (*in.data & 0xe0) == 0xa0) {
		*out = (struct unpack_head){
			.type = UNPACK_STR, .head_bytes = 1, .size = *in.data & 0x1fu };
		return UNPACK_FOUND;
	}
	return unpack_head_long(in, out);
}

/* A reader over bytes that are all there. The first thing that is wrong makes it bad for good: from
 * then on every call returns zero or nothing, so that a whole message is read before looking. */
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

/* Returns the type of the next object. At the end the reader is bad, and the answer is NIL. */
UNPACK_INLINE enum unpack_type unpack_peek(struct unpack *u) {
	if (!u->bad && u->p < u->end) {
		const uint8_t first = *u->p;
		if (first < 0xc0) {
			return first < 0x80 ? UNPACK_UINT : first >= 0xa0 ? UNPACK_STR :
				first < 0x90 ? UNPACK_MAP : UNPACK_ARRAY;
		}
		if (first == 0xc4) {
			return UNPACK_BIN;
		}
		if (first == 0xd9) {
			return UNPACK_STR;
		}
		if (first >= 0xcc && first <= 0xcf) {
			return UNPACK_UINT;
		}
		if (first == 0xde) {
			return UNPACK_MAP;
		}
	}
	return unpack_peek_long(u);
}

uint64_t unpack_uint_long(struct unpack *u);

/* Takes a whole number in 0 .. max. */
UNPACK_INLINE uint64_t unpack_uint(struct unpack *u, uint64_t max) {
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

/* If the next object is a nil, takes it and returns true. */
UNPACK_INLINE bool unpack_nil(struct unpack *u) {
	if (u->bad || u->p == u->end || *u->p != 0xc0) {
		return false;
	}
	u->p++;
	return true;
}

/* Takes any whole number that fits. */
int64_t unpack_int(struct unpack *u);
bool unpack_bool(struct unpack *u);

/* Take a bin, a str, or either, of at most max bytes. The slice points into what is read. */
struct slice unpack_bin(struct unpack *u, size_t max);
struct slice unpack_str(struct unpack *u, size_t max);
struct slice unpack_bytes(struct unpack *u, size_t max);

/* Takes the head of an array and returns its count, which is never more than the bytes that are
 * left. */
uint32_t unpack_array(struct unpack *u);

/* Takes the head of a map and returns its pairs: never more than half of the bytes that are
 * left. */
uint32_t unpack_map(struct unpack *u);

/* Reads a number whose highest byte comes first, out of bytes that are not MessagePack themselves
 * (pack_put_be). */
static inline uint64_t unpack_be(const uint8_t *p, unsigned bytes) {
	uint64_t value = 0;
	for (unsigned i = 0; i < bytes; i++) {
		value = value << 8 | p[i];
	}
	return value;
}

/* Takes one object, whose containers are nested at most UNPACK_DEPTH_MAX deep. */
void unpack_skip(struct unpack *u);
#define UNPACK_DEPTH_MAX 16

#endif
