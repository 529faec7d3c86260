#include "unpack.h"

static uint32_t unpack_be4(const uint8_t *p) {
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Of 1, 2, 4 or 8 bytes. */
static uint64_t unpack_be(const uint8_t *p, unsigned bytes) {
	if (bytes >= 4) {
		return bytes == 4 ? unpack_be4(p) : (uint64_t)unpack_be4(p) << 32 | unpack_be4(p + 4);
	}
	return bytes == 1 ? p[0] : (uint64_t)p[0] << 8 | p[1];
}

/* What the first byte says: the type, the bytes of number or size behind it, and for EXT the byte of its kind. */
struct unpack_row {
	uint8_t type;
	uint8_t width; /* bytes of the number or the size */
	uint8_t extra; /* further bytes of the head: an EXT's kind */
	uint8_t fixed; /* fixext: the size; without a width: the bits of the first byte that are number or size */
};

#define UNPACK_ROW_NONE 0xff
#define UNPACK_LONG(first) (16 + (first) - 0xc0)
/* By the first four bits; from 0xc0 to 0xdf by the first byte (UNPACK_LONG). */
static const struct unpack_row unpack_rows[48] = {
	[0x0] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x1] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x2] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x3] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x4] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x5] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x6] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x7] = { UNPACK_UINT, 0, 0, 0x7f },
	[0x8] = { UNPACK_MAP, 0, 0, 0x0f },
	[0x9] = { UNPACK_ARRAY, 0, 0, 0x0f },
	[0xa] = { UNPACK_STR, 0, 0, 0x1f },
	[0xb] = { UNPACK_STR, 0, 0, 0x1f },
	[0xe] = { UNPACK_NEGATIVE, 0, 0, 0xff },
	[0xf] = { UNPACK_NEGATIVE, 0, 0, 0xff },
	[UNPACK_LONG(0xc0)] = { UNPACK_NIL, 0, 0, 0 },
	[UNPACK_LONG(0xc1)] = { UNPACK_ROW_NONE, 0, 0, 0 },
	[UNPACK_LONG(0xc2)] = { UNPACK_BOOL, 0, 0, 1 },
	[UNPACK_LONG(0xc3)] = { UNPACK_BOOL, 0, 0, 1 },
	[UNPACK_LONG(0xc4)] = { UNPACK_BIN, 1, 0, 0 },
	[UNPACK_LONG(0xc5)] = { UNPACK_BIN, 2, 0, 0 },
	[UNPACK_LONG(0xc6)] = { UNPACK_BIN, 4, 0, 0 },
	[UNPACK_LONG(0xc7)] = { UNPACK_EXT, 1, 1, 0 },
	[UNPACK_LONG(0xc8)] = { UNPACK_EXT, 2, 1, 0 },
	[UNPACK_LONG(0xc9)] = { UNPACK_EXT, 4, 1, 0 },
	[UNPACK_LONG(0xca)] = { UNPACK_FLOAT, 4, 0, 0 },
	[UNPACK_LONG(0xcb)] = { UNPACK_FLOAT, 8, 0, 0 },
	[UNPACK_LONG(0xcc)] = { UNPACK_UINT, 1, 0, 0 },
	[UNPACK_LONG(0xcd)] = { UNPACK_UINT, 2, 0, 0 },
	[UNPACK_LONG(0xce)] = { UNPACK_UINT, 4, 0, 0 },
	[UNPACK_LONG(0xcf)] = { UNPACK_UINT, 8, 0, 0 },
	[UNPACK_LONG(0xd0)] = { UNPACK_NEGATIVE, 1, 0, 0 },
	[UNPACK_LONG(0xd1)] = { UNPACK_NEGATIVE, 2, 0, 0 },
	[UNPACK_LONG(0xd2)] = { UNPACK_NEGATIVE, 4, 0, 0 },
	[UNPACK_LONG(0xd3)] = { UNPACK_NEGATIVE, 8, 0, 0 },
	[UNPACK_LONG(0xd4)] = { UNPACK_EXT, 0, 1, 1 },
	[UNPACK_LONG(0xd5)] = { UNPACK_EXT, 0, 1, 2 },
	[UNPACK_LONG(0xd6)] = { UNPACK_EXT, 0, 1, 4 },
	[UNPACK_LONG(0xd7)] = { UNPACK_EXT, 0, 1, 8 },
	[UNPACK_LONG(0xd8)] = { UNPACK_EXT, 0, 1, 16 },
	[UNPACK_LONG(0xd9)] = { UNPACK_STR, 1, 0, 0 },
	[UNPACK_LONG(0xda)] = { UNPACK_STR, 2, 0, 0 },
	[UNPACK_LONG(0xdb)] = { UNPACK_STR, 4, 0, 0 },
	[UNPACK_LONG(0xdc)] = { UNPACK_ARRAY, 2, 0, 0 },
	[UNPACK_LONG(0xdd)] = { UNPACK_ARRAY, 4, 0, 0 },
	[UNPACK_LONG(0xde)] = { UNPACK_MAP, 2, 0, 0 },
	[UNPACK_LONG(0xdf)] = { UNPACK_MAP, 4, 0, 0 },
};

/* A number written as signed: it may not be negative after all. */
static void unpack_head_signed(struct unpack_head *h, unsigned width, uint64_t number) {
	const unsigned bits = 8 * width;
	const bool negative = number >> (bits - 1);
	h->type = negative ? UNPACK_NEGATIVE : UNPACK_UINT;
	h->number = negative && bits < 64 ? ~(uint64_t)0 << bits | number : number;
}

enum unpack_found unpack_head_long(struct slice in, struct unpack_head *out) {
	const uint8_t first = in.size ? in.data[0] : 0xc0;
	if (first < 0xc0 || first >= 0xe0) {
		const struct unpack_row row = unpack_rows[first >> 4];
		*out = (struct unpack_head){ .type = (enum unpack_type)row.type, .head_bytes = 1 };
		out->size = row.type >= UNPACK_STR ? first & row.fixed : 0;
		out->number = row.type == UNPACK_UINT ? first : row.type == UNPACK_NEGATIVE ? ~(uint64_t)0 << 8 | first : 0;
		return UNPACK_FOUND;
	}
	const struct unpack_row row = unpack_rows[UNPACK_LONG(first)];
	*out = (struct unpack_head){ .type = (enum unpack_type)row.type, .head_bytes = 1u + row.width + row.extra };
	if (row.type == UNPACK_ROW_NONE || in.size < out->head_bytes) {
		return row.type == UNPACK_ROW_NONE ? UNPACK_INVALID : UNPACK_SHORT;
	}
	const uint64_t number = row.width ? unpack_be(in.data + 1, row.width) : row.extra ? row.fixed : first & row.fixed;
	if (row.type >= UNPACK_STR) {
		out->size = (uint32_t)number;
	} else if (row.type == UNPACK_NEGATIVE) {
		unpack_head_signed(out, row.width, number);
	} else if (row.type != UNPACK_FLOAT) {
		out->number = number;
	}
	return UNPACK_FOUND;
}

/* The next head, taken; bad when it is cut off, or when what it announces cannot be there. */
static bool unpack_take(struct unpack *u, struct unpack_head *h) {
	if (u->bad || unpack_head(slice_of(u->p, unpack_left(u)), h) != UNPACK_FOUND) {
		u->bad = true;
		return false;
	}
	u->p += h->head_bytes;
	size_t need = h->type == UNPACK_MAP ? (size_t)h->size * 2 : h->size; /* an object takes at least one byte */
	if (need > unpack_left(u)) {
		u->bad = true;
		return false;
	}
	return true;
}

enum unpack_type unpack_peek_long(struct unpack *u) {
	struct unpack_head h;
	if (u->bad || unpack_head(slice_of(u->p, unpack_left(u)), &h) != UNPACK_FOUND) {
		u->bad = true;
		return UNPACK_NIL;
	}
	return h.type;
}

/* The next head if it is of that type. */
static bool unpack_expect(struct unpack *u, enum unpack_type type, struct unpack_head *h) {
	if (!unpack_take(u, h)) {
		return false;
	}
	u->bad = h->type != type;
	return !u->bad;
}

uint64_t unpack_uint_long(struct unpack *u) {
	struct unpack_head h;
	if (!u->bad && unpack_left(u) > 8 && (*u->p & 0xfc) == 0xcc) { /* the usual forms, of 1 to 8 bytes */
		const unsigned width = 1u << (*u->p & 3);
		const uint64_t number = unpack_be(u->p + 1, width);
		u->p += 1 + width;
		return number;
	}
	return unpack_expect(u, UNPACK_UINT, &h) ? h.number : 0;
}

int64_t unpack_int(struct unpack *u) {
	struct unpack_head h;
	if (!unpack_take(u, &h)) {
		return 0;
	}
	if (h.type == UNPACK_NEGATIVE) {
		return -(int64_t)(~h.number) - 1;
	}
	u->bad = h.type != UNPACK_UINT || h.number > INT64_MAX;
	return u->bad ? 0 : (int64_t)h.number;
}

bool unpack_bool(struct unpack *u) {
	struct unpack_head h;
	return unpack_expect(u, UNPACK_BOOL, &h) && h.number;
}

/* The bytes behind a head. */
static struct slice unpack_body(struct unpack *u, const struct unpack_head *h, size_t max) {
	if (h->size > max) {
		u->bad = true;
		return slice_of(NULL, 0);
	}
	struct slice s = slice_of(u->p, h->size);
	u->p += h->size;
	return s;
}

struct slice unpack_bin(struct unpack *u, size_t max) {
	struct unpack_head h;
	const size_t left = unpack_left(u);
	if (!u->bad && left >= 2 && u->p[0] == 0xc4 && u->p[1] <= left - 2 && u->p[1] <= max) { /* short: ids, keys, owners */
		const struct slice s = slice_of(u->p + 2, u->p[1]);
		u->p += 2 + s.size;
		return s;
	}
	return unpack_expect(u, UNPACK_BIN, &h) ? unpack_body(u, &h, max) : slice_of(NULL, 0);
}

struct slice unpack_str(struct unpack *u, size_t max) {
	struct unpack_head h;
	return unpack_expect(u, UNPACK_STR, &h) ? unpack_body(u, &h, max) : slice_of(NULL, 0);
}

struct slice unpack_bytes(struct unpack *u, size_t max) {
	struct unpack_head h;
	if (unpack_take(u, &h)) {
		u->bad = h.type != UNPACK_STR && h.type != UNPACK_BIN;
	}
	return u->bad ? slice_of(NULL, 0) : unpack_body(u, &h, max);
}

uint32_t unpack_array(struct unpack *u) {
	struct unpack_head h;
	const size_t left = unpack_left(u);
	if (!u->bad && left > 0 && (*u->p & 0xf0) == 0x90 && (*u->p & 0x0fu) < left) {
		return *u->p++ & 0x0f;
	}
	return unpack_expect(u, UNPACK_ARRAY, &h) ? h.size : 0;
}

uint32_t unpack_map(struct unpack *u) {
	struct unpack_head h;
	return unpack_expect(u, UNPACK_MAP, &h) ? h.size : 0;
}

void unpack_skip(struct unpack *u) {
	uint64_t left[UNPACK_DEPTH_MAX]; /* objects still to come at each depth */
	unsigned depth = 0;
	left[0] = 1;
	for (;;) {
		while (left[depth] == 0) {
			if (depth == 0) {
				return;
			}
			depth--;
		}
		left[depth]--;
		struct unpack_head h;
		if (!unpack_take(u, &h)) {
			return;
		}
		if (h.type != UNPACK_ARRAY && h.type != UNPACK_MAP) {
			u->p += h.size;
			continue;
		}
		if (depth + 1 == UNPACK_DEPTH_MAX) {
			u->bad = true;
			return;
		}
		left[++depth] = h.type == UNPACK_MAP ? (uint64_t)h.size * 2 : h.size;
	}
}
