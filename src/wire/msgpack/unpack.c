/* unpack.c: reads MessagePack head by head, with msgpack-c's parser. The parser's template is made
 * for one object at a time. It stops at the head of a container, and says how many bytes a string
 * needs also when they are not all there. */
#include "unpack.h"

/* The template checks its arguments with assert, which NDEBUG switches off. */
#define NDEBUG
/* Containers are not entered. */
#define MSGPACK_EMBED_STACK_SIZE 1
#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

/* The answer to a container, which stops the parser at its head. */
enum { HEAD_IS_ALL = -3 };

/* Notes what the parser has found. A number has no size, and what has a size is no number. */
static inline int head_found(struct unpack_head *h, enum unpack_type type, uint64_t number,
	uint32_t size) {
	h->type = type;
	h->number = number;
	h->size = size;
	return type >= UNPACK_ARRAY ? HEAD_IS_ALL : 0;
}

/* These are the callbacks, by the names that the template gives them. `o` would be an object of a
 * tree, which we do not build. */
#define head_on_root(h) ((void)(h), 0)
#define head_on_nil(h, o) (*(o) = 0, 0)
#define head_on_true(h, o) (*(o) = 0, head_found(*(h), UNPACK_BOOL, 1, 0))
#define head_on_false(h, o) (*(o) = 0, head_found(*(h), UNPACK_BOOL, 0, 0))
#define head_on_uint8(h, n, o) (*(o) = 0, head_found(*(h), UNPACK_UINT, n, 0))
#define head_on_uint16 head_on_uint8
#define head_on_uint32 head_on_uint8
#define head_on_uint64 head_on_uint8
#define head_on_int8(h, n, o) \
	(*(o) = 0, head_found(*(h), (n) < 0 ? UNPACK_NEGATIVE : UNPACK_UINT, (uint64_t)(n), 0))
#define head_on_int16 head_on_int8
#define head_on_int32 head_on_int8
#define head_on_int64 head_on_int8
#define head_on_float(h, n, o) ((void)(n), *(o) = 0, head_found(*(h), UNPACK_FLOAT, 0, 0))
#define head_on_double head_on_float
#define head_on_array(h, n, o) (*(o) = 0, head_found(*(h), UNPACK_ARRAY, 0, n))
#define head_on_map(h, n, o) (*(o) = 0, head_found(*(h), UNPACK_MAP, 0, n))
#define head_on_array_item(h, c, o) ((void)(c), (void)(o), 0)
#define head_on_map_item(h, c, k, o) ((void)(c), (void)(k), (void)(o), 0)
#define head_on_str(h, b, p, n, o) \
	((void)(b), (void)(p), *(o) = 0, head_found(*(h), UNPACK_STR, 0, n))
#define head_on_bin(h, b, p, n, o) \
	((void)(b), (void)(p), *(o) = 0, head_found(*(h), UNPACK_BIN, 0, n))
/* The parser counts the byte of the kind. */
#define head_on_ext(h, b, p, n, o) \
	((void)(b), (void)(p), *(o) = 0, head_found(*(h), UNPACK_EXT, 0, (uint32_t)(n)-1))

#define msgpack_unpack_func(type, name) static inline type head##name
#define msgpack_unpack_callback(name) head_on##name
#define msgpack_unpack_struct(name) struct head##name
#define msgpack_unpack_object char
#define msgpack_unpack_user struct unpack_head *
#include <msgpack/unpack_template.h>

/* A string whose bytes are not all there. */
static enum unpack_found head_of_string(
	const struct head_context *parser, size_t size, struct unpack_head *out) {
	out->size = parser->trail;
	if (parser->cs != MSGPACK_ACS_EXT_VALUE) {
		out->type = parser->cs == MSGPACK_ACS_STR_VALUE ? UNPACK_STR : UNPACK_BIN;
		return UNPACK_FOUND;
	}
	out->type = UNPACK_EXT;
	out->size--;
	out->head_bytes++;
	return out->head_bytes <= size ? UNPACK_FOUND : UNPACK_SHORT;
}

enum unpack_found unpack_head_long(struct slice in, struct unpack_head *out) {
	struct head_context parser;
	parser.user = out;
	size_t used = 0;
	*out = (struct unpack_head){ .type = UNPACK_NIL };
	head_init(&parser);
	const int result = head_execute(&parser, (const char *)in.data, in.size, &used);
	out->head_bytes = (uint32_t)used;
	if (result > 0) {
		out->head_bytes -=
			out->type == UNPACK_EXT && out->size == UINT32_MAX ? 0 : out->size;
		return UNPACK_FOUND;
	}
	if (result == 0 && parser.cs >= MSGPACK_ACS_STR_VALUE) {
		return head_of_string(&parser, in.size, out);
	}
	/* The parser stands on the last byte of a container's head. */
	out->head_bytes++;
	return result == 0 ? UNPACK_SHORT : result == HEAD_IS_ALL ? UNPACK_FOUND : UNPACK_INVALID;
}

/* Takes the next head. The reader is bad when the head is cut off, or when what it announces cannot
 * be there. */
static bool unpack_take(struct unpack *u, struct unpack_head *h) {
	if (u->bad || unpack_head(slice_of(u->p, unpack_left(u)), h) != UNPACK_FOUND) {
		u->bad = true;
		return false;
	}
	u->p += h->head_bytes;
	/* An object takes at least one byte. */
	size_t need = h->type == UNPACK_MAP ? (size_t)h->size * 2 : h->size;
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

/* Takes the next head if it is of that type. */
static bool unpack_expect(struct unpack *u, enum unpack_type type, struct unpack_head *h) {
	if (!unpack_take(u, h)) {
		return false;
	}
	u->bad = h->type != type;
	return !u->bad;
}

/* Not inline, because the function below would then pay for what this one has on the stack. */
static __attribute__((noinline)) uint64_t unpack_uint_parsed(struct unpack *u) {
	struct unpack_head h;
	return unpack_expect(u, UNPACK_UINT, &h) ? h.number : 0;
}

/* Times, tokens and round numbers take more than one byte, and are half of the numbers between
 * nodes. They are read with msgpack-c's loads alone, the longest of them first, as it is the most
 * frequent one. The parser judges of everything else. */
uint64_t unpack_uint_long(struct unpack *u) {
	const uint8_t *p = u->p;
	const size_t left = u->bad ? 0 : unpack_left(u);
	if (left >= 9 && *p == 0xcf) {
		uint64_t n64;
		u->p += 9;
		_msgpack_load64(uint64_t, p + 1, &n64);
		return n64;
	}
	if (left >= 5 && *p == 0xce) {
		uint32_t n32;
		u->p += 5;
		_msgpack_load32(uint32_t, p + 1, &n32);
		return n32;
	}
	if (left >= 3 && *p == 0xcd) {
		u->p += 3;
		return unpack_be(p + 1, 2);
	}
	if (left >= 2 && *p == 0xcc) {
		u->p += 2;
		return p[1];
	}
	return unpack_uint_parsed(u);
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

/* Takes a byte string below 256 bytes: ids, keys and owners are short. Returns false, and takes
 * nothing, if the next object is none, or is not all there. */
static inline bool unpack_short_bin(struct unpack *u, size_t max, struct slice *out) {
	const size_t left = unpack_left(u);
	if (u->bad || left < 2 || u->p[0] != 0xc4 || u->p[1] > left - 2 || u->p[1] > max) {
		return false;
	}
	*out = slice_of(u->p + 2, u->p[1]);
	u->p += 2 + out->size;
	return true;
}

/* The same for a string, as the names in maps are, and lock ids as text. */
static inline bool unpack_short_str(struct unpack *u, size_t max, struct slice *out) {
	const size_t left = unpack_left(u);
	if (u->bad || left < 2) {
		return false;
	}
	const bool fixed = (u->p[0] & 0xe0) == 0xa0;
	const size_t head = fixed ? 1 : 2, size = fixed ? u->p[0] & 0x1fu : u->p[1];
	if ((!fixed && u->p[0] != 0xd9) || size > left - head || size > max) {
		return false;
	}
	*out = slice_of(u->p + head, size);
	u->p += head + size;
	return true;
}

/* Takes a string of whatever size by the parser. Not inline, because its callers would then pay for
 * what it has on the stack. */
static __attribute__((noinline)) struct slice unpack_string_parsed(struct unpack *u, size_t max,
	bool bin, bool str) {
	struct unpack_head h;
	if (unpack_take(u, &h)) {
		u->bad = h.size > max ||
			(!(bin && h.type == UNPACK_BIN) && !(str && h.type == UNPACK_STR));
	}
	if (u->bad) {
		return slice_of(NULL, 0);
	}
	u->p += h.size;
	return slice_of(u->p - h.size, h.size);
}

struct slice unpack_bin(struct unpack *u, size_t max) {
	struct slice s;
	return unpack_short_bin(u, max, &s) ? s : unpack_string_parsed(u, max, true, false);
}

struct slice unpack_str(struct unpack *u, size_t max) {
	struct slice s;
	return unpack_short_str(u, max, &s) ? s : unpack_string_parsed(u, max, false, true);
}

struct slice unpack_bytes(struct unpack *u, size_t max) {
	struct slice s;
	return unpack_short_bin(u, max, &s) || unpack_short_str(u, max, &s)
		? s
		: unpack_string_parsed(u, max, true, true);
}

/* As for strings, not inline. */
static __attribute__((noinline)) uint32_t unpack_container_parsed(struct unpack *u,
	enum unpack_type type) {
	struct unpack_head h;
	return unpack_expect(u, type, &h) ? h.size : 0;
}

/* Takes the head of three bytes whose first one is given. Returns false, and takes nothing, if the
 * next object has another head, or `each` times as many objects cannot be there. */
static inline bool unpack_container16(struct unpack *u, uint8_t first, unsigned each,
	uint32_t *out) {
	const size_t left = unpack_left(u);
	if (u->bad || left < 3 || *u->p != first || each * unpack_be(u->p + 1, 2) > left - 3) {
		return false;
	}
	*out = (uint32_t)unpack_be(u->p + 1, 2);
	u->p += 3;
	return true;
}

uint32_t unpack_array(struct unpack *u) {
	const size_t left = unpack_left(u);
	uint32_t count;
	if (!u->bad && left > 0 && (*u->p & 0xf0) == 0x90 && (*u->p & 0x0fu) < left) {
		return *u->p++ & 0x0f;
	}
	/* A commit, and a promise, have more than 15 elements. */
	return unpack_container16(u, 0xdc, 1, &count) ? count
		: unpack_container_parsed(u, UNPACK_ARRAY);
}

uint32_t unpack_map(struct unpack *u) {
	const size_t left = unpack_left(u);
	uint32_t count;
	if (!u->bad && left > 0 && (*u->p & 0xf0) == 0x80 && 2 * (*u->p & 0x0fu) < left) {
		return *u->p++ & 0x0f;
	}
	/* The head that libpawl writes in front of the parameters of a request. */
	return unpack_container16(u, 0xde, 2, &count) ? count
		: unpack_container_parsed(u, UNPACK_MAP);
}

void unpack_skip(struct unpack *u) {
	/* How many objects are still to come at each depth. */
	uint64_t left[UNPACK_DEPTH_MAX];
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
