#include "unpack.h"

static uint32_t unpack_be4(const uint8_t *p) {
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Of 0, 1, 2, 4 or 8 bytes. */
static uint64_t unpack_be(const uint8_t *p, unsigned bytes) {
	if (bytes >= 4) {
		return bytes == 4 ? unpack_be4(p) : (uint64_t)unpack_be4(p) << 32 | unpack_be4(p + 4);
	}
	return bytes == 0 ? 0 : bytes == 1 ? p[0] : (uint64_t)p[0] << 8 | p[1];
}

/* What the first byte says: the type, the bytes of number or size behind it, and for EXT the byte of its kind. */
struct unpack_row {
	uint8_t type;
	uint8_t width;  /* bytes of the number or the size */
	uint8_t extra;  /* further bytes of the head: an EXT's kind */
	uint8_t fixed;  /* fixext: the size */
};

#define UNPACK_ROW_NONE 0xff
static const struct unpack_row unpack_rows[32] = {
	[0xc0 - 0xc0] = { UNPACK_NIL, 0, 0, 0 },
	[0xc1 - 0xc0] = { UNPACK_ROW_NONE, 0, 0, 0 },
	[0xc2 - 0xc0] = { UNPACK_BOOL, 0, 0, 0 },
	[0xc3 - 0xc0] = { UNPACK_BOOL, 0, 0, 0 },
	[0xc4 - 0xc0] = { UNPACK_BIN, 1, 0, 0 },
	[0xc5 - 0xc0] = { UNPACK_BIN, 2, 0, 0 },
	[0xc6 - 0xc0] = { UNPACK_BIN, 4, 0, 0 },
	[0xc7 - 0xc0] = { UNPACK_EXT, 1, 1, 0 },
	[0xc8 - 0xc0] = { UNPACK_EXT, 2, 1, 0 },
	[0xc9 - 0xc0] = { UNPACK_EXT, 4, 1, 0 },
	[0xca - 0xc0] = { UNPACK_FLOAT, 4, 0, 0 },
	[0xcb - 0xc0] = { UNPACK_FLOAT, 8, 0, 0 },
	[0xcc - 0xc0] = { UNPACK_UINT, 1, 0, 0 },
	[0xcd - 0xc0] = { UNPACK_UINT, 2, 0, 0 },
	[0xce - 0xc0] = { UNPACK_UINT, 4, 0, 0 },
	[0xcf - 0xc0] = { UNPACK_UINT, 8, 0, 0 },
	[0xd0 - 0xc0] = { UNPACK_NEGATIVE, 1, 0, 0 },
	[0xd1 - 0xc0] = { UNPACK_NEGATIVE, 2, 0, 0 },
	[0xd2 - 0xc0] = { UNPACK_NEGATIVE, 4, 0, 0 },
	[0xd3 - 0xc0] = { UNPACK_NEGATIVE, 8, 0, 0 },
	[0xd4 - 0xc0] = { UNPACK_EXT, 0, 1, 1 },
	[0xd5 - 0xc0] = { UNPACK_EXT, 0, 1, 2 },
	[0xd6 - 0xc0] = { UNPACK_EXT, 0, 1, 4 },
	[0xd7 - 0xc0] = { UNPACK_EXT, 0, 1, 8 },
	[0xd8 - 0xc0] = { UNPACK_EXT, 0, 1, 16 },
	[0xd9 - 0xc0] = { UNPACK_STR, 1, 0, 0 },
	[0xda - 0xc0] = { UNPACK_STR, 2, 0, 0 },
	[0xdb - 0xc0] = { UNPACK_STR, 4, 0, 0 },
	[0xdc - 0xc0] = { UNPACK_ARRAY, 2, 0, 0 },
	[0xdd - 0xc0] = { UNPACK_ARRAY, 4, 0, 0 },
	[0xde - 0xc0] = { UNPACK_MAP, 2, 0, 0 },
	[0xdf - 0xc0] = { UNPACK_MAP, 4, 0, 0 },
};

/* Heads of one byte that hold their number or size themselves; false: not one of them. */
static bool unpack_head_fixed(uint8_t first, struct unpack_head *out) {
	*out = (struct unpack_head){ .head_bytes = 1 };
	if (first <= 0x7f) {
		out->type = UNPACK_UINT;
		out->number = first;
	} else if (first <= 0x8f) {
		out->type = UNPACK_MAP;
		out->size = first & 0x0fu;
	} else if (first <= 0x9f) {
		out->type = UNPACK_ARRAY;
		out->size = first & 0x0fu;
	} else if (first <= 0xbf) {
		out->type = UNPACK_STR;
		out->size = first & 0x1fu;
	} else if (first >= 0xe0) {
		out->type = UNPACK_NEGATIVE;
		out->number = ~(uint64_t)0 << 8 | first;
	} else {
		return false;
	}
	return true;
}

enum unpack_found unpack_head(struct slice in, struct unpack_head *out) {
	if (in.size == 0) {
		return UNPACK_SHORT;
	}
	uint8_t first = in.data[0];
	if (unpack_head_fixed(first, out)) {
		return UNPACK_FOUND;
	}
	struct unpack_row row = unpack_rows[first - 0xc0];
	if (row.type == UNPACK_ROW_NONE) {
		return UNPACK_INVALID;
	}
	out->type = (enum unpack_type)row.type;
	out->head_bytes = 1u + row.width + row.extra;
	if (in.size < out->head_bytes) {
		return UNPACK_SHORT;
	}
	uint64_t number = unpack_be(in.data + 1, row.width);
	if (out->type == UNPACK_UINT) {
		out->number = number;
	} else if (out->type == UNPACK_NEGATIVE) {
		if (number >> (8u * row.width - 1) == 0) { /* written as signed, but not negative */
			out->type = UNPACK_UINT;
			out->number = number;
		} else {
			out->number = row.width < 8 ? ~(uint64_t)0 << 8u * row.width | number : number;
		}
	} else if (out->type == UNPACK_BOOL) {
		out->number = first & 1u;
	} else if (out->type != UNPACK_FLOAT) {
		out->size = row.fixed ? row.fixed : (uint32_t)number;
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

enum unpack_type unpack_peek(struct unpack *u) {
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
