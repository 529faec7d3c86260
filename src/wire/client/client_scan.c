/* client_scan.c: finds where a message ends. Of a request that is not short and right
 * (client_request_decode_short), this is the first look at bytes from a stranger. They are given to
 * msgpack-c's parser in pieces, as they come. Nothing is allocated, and no announced size is
 * trusted. */
#include "client.h"
#include "unpack.h"

/* The template checks its arguments with assert, which NDEBUG switches off. */
#define NDEBUG
#define MSGPACK_EMBED_STACK_SIZE CLIENT_DEPTH_MAX
#include <msgpack/unpack.h>
#include <msgpack/unpack_define.h>

/* A callback returns this to stop the parser. */
enum { SCAN_STOPS = -3 };

/* What the callbacks know of the message. */
struct scan_account {
	/* How many objects were found, and how many there may be. */
	uint32_t items, items_max;
};

/* Counts an object. */
static inline int scan_item(struct scan_account *a) {
	if (a->items == a->items_max) {
		return SCAN_STOPS;
	}
	a->items++;
	return 0;
}

/* Counts an object that holds others. Those are counted when they come, but their number must be
 * within the limits already now. */
static inline int scan_container(struct scan_account *a, uint64_t objects) {
	const int result = scan_item(a);
	return result == 0 && objects > a->items_max - a->items ? SCAN_STOPS : result;
}

/* Counts an ext. The template adds 1 to the size, for the byte of the ext's kind; for an ext of
 * 2^32 - 1 bytes the sum wraps around to 0, and the ext is refused. */
static inline int scan_ext(struct scan_account *a, uint32_t size) {
	return size == 0 ? SCAN_STOPS : scan_item(a);
}

/* These are the callbacks, by the names that the template gives them. `o` would be an object of a
 * tree, which we do not build. */
#define scan_on_root(a) ((void)(a), 0)
#define scan_on_nil(a, o) (*(o) = 0, scan_item(a))
#define scan_on_true scan_on_nil
#define scan_on_false scan_on_nil
#define scan_on_uint8(a, n, o) ((void)(n), *(o) = 0, scan_item(a))
#define scan_on_uint16 scan_on_uint8
#define scan_on_uint32 scan_on_uint8
#define scan_on_uint64 scan_on_uint8
#define scan_on_int8 scan_on_uint8
#define scan_on_int16 scan_on_uint8
#define scan_on_int32 scan_on_uint8
#define scan_on_int64 scan_on_uint8
#define scan_on_float scan_on_uint8
#define scan_on_double scan_on_uint8
#define scan_on_array(a, n, o) (*(o) = 0, scan_container(a, n))
#define scan_on_map(a, n, o) (*(o) = 0, scan_container(a, 2 * (uint64_t)(n)))
#define scan_on_array_item(a, c, o) ((void)(c), (void)(o), 0)
#define scan_on_map_item(a, c, k, o) ((void)(c), (void)(k), (void)(o), 0)
#define scan_on_str(a, b, p, n, o) ((void)(b), (void)(p), (void)(n), *(o) = 0, scan_item(a))
#define scan_on_bin scan_on_str
#define scan_on_ext(a, b, p, n, o) ((void)(b), (void)(p), *(o) = 0, scan_ext(a, n))

#define msgpack_unpack_func(type, name) static inline type scan##name
#define msgpack_unpack_callback(name) scan_on##name
#define msgpack_unpack_struct(name) struct scan##name
#define msgpack_unpack_object char
#define msgpack_unpack_user struct scan_account
#include <msgpack/unpack_template.h>

/* A request and a response have four parts, a notification three. */
static bool scan_is_message(struct slice in) {
	struct unpack_head h;
	const enum unpack_found found = unpack_head(in, &h);
	return found == UNPACK_SHORT ||
		(found == UNPACK_FOUND && h.type == UNPACK_ARRAY && (h.size == 3 || h.size == 4));
}

/* Sets the parser to where it stopped. For an open container it matters only how many objects are
 * still missing, so a map goes on as if it were an array. */
static void scan_resume(struct scan_context *parser, const struct client_scanner *s,
	uint32_t items_max) {
	scan_init(parser);
	parser->user = (struct scan_account){ s->items, items_max };
	parser->cs = s->state;
	parser->trail = s->needs;
	parser->top = s->depth;
	for (uint32_t i = 0; i < s->depth; i++) {
		parser->stack[i].ct = MSGPACK_CT_ARRAY_ITEM;
		parser->stack[i].count = s->left[i];
	}
}

/* Keeps where the parser has stopped. */
static void scan_suspend(struct client_scanner *s, const struct scan_context *parser,
	size_t position) {
	s->position = position;
	s->items = parser->user.items;
	s->state = parser->cs;
	s->needs = parser->cs == MSGPACK_CS_HEADER ? 0 : parser->trail;
	s->depth = parser->top;
	for (uint32_t i = 0; i < s->depth; i++) {
		const uint32_t count = (uint32_t)parser->stack[i].count;
		const unsigned part = parser->stack[i].ct;
		s->left[i] = part == MSGPACK_CT_ARRAY_ITEM
			? count
			: 2 * count - (part == MSGPACK_CT_MAP_VALUE);
	}
}

enum client_scan client_scan(struct client_scanner *s, const struct client_limits *limits,
	struct slice in, size_t *out_size) {
	if (in.size <= s->position) {
		return CLIENT_SCAN_MORE;
	}
	if (s->items == 0 && !scan_is_message(in)) {
		return CLIENT_SCAN_GARBAGE;
	}
	struct scan_context parser;
	size_t position = s->position;
	const size_t size = in.size < limits->bytes ? in.size : limits->bytes;
	scan_resume(&parser, s, limits->items);
	const int result = scan_execute(&parser, (const char *)in.data, size, &position);
	if (result < 0) {
		return result == SCAN_STOPS ? CLIENT_SCAN_TOO_LARGE : CLIENT_SCAN_GARBAGE;
	}
	if (result > 0) {
		*out_size = position;
		*s = (struct client_scanner){ 0 };
		return CLIENT_SCAN_COMPLETE;
	}
	scan_suspend(s, &parser, position);
	return in.size >= limits->bytes || position + s->needs > limits->bytes
		? CLIENT_SCAN_TOO_LARGE
		: CLIENT_SCAN_MORE;
}
