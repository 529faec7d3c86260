/* Where a message ends: the first look at bytes from a stranger. Nothing is allocated, nothing announced is believed. */
#include "client.h"
#include "unpack.h"

/* A request and a response have four parts, a notification three. */
static bool scan_is_message(const struct unpack_head *h) {
	return h->type == UNPACK_ARRAY && (h->size == 3 || h->size == 4);
}

/* Takes the head into the account. COMPLETE: go on. */
static enum client_scan scan_open(struct client_scanner *s, const struct client_limits *limits, const struct unpack_head *h) {
	uint64_t objects = h->type == UNPACK_MAP ? (uint64_t)h->size * 2 : h->size;
	if (objects > limits->items - s->items) {
		return CLIENT_SCAN_TOO_LARGE;
	}
	if (s->depth == CLIENT_DEPTH_MAX) {
		return CLIENT_SCAN_GARBAGE;
	}
	s->left[s->depth++] = (uint32_t)objects;
	return CLIENT_SCAN_COMPLETE;
}

/* After an object: closes everything that is full. True: the message is complete. */
static bool scan_close(struct client_scanner *s) {
	while (s->depth > 0 && s->left[s->depth - 1] == 0) {
		s->depth--;
	}
	return s->depth == 0;
}

/* One object, or the head of one that holds others. COMPLETE: taken. */
static enum client_scan scan_object(struct client_scanner *s, const struct client_limits *limits, struct slice in) {
	struct unpack_head h;
	enum unpack_found found = unpack_head(slice_of(in.data + s->position, in.size - s->position), &h);
	if (found == UNPACK_SHORT) {
		return in.size >= limits->bytes ? CLIENT_SCAN_TOO_LARGE : CLIENT_SCAN_MORE;
	}
	if (found == UNPACK_INVALID || (s->items == 0 && !scan_is_message(&h))) {
		return CLIENT_SCAN_GARBAGE;
	}
	bool container = h.type == UNPACK_ARRAY || h.type == UNPACK_MAP;
	uint64_t bytes = h.head_bytes + (container ? 0 : (uint64_t)h.size);
	if (s->position + bytes > limits->bytes || s->items == limits->items) {
		return CLIENT_SCAN_TOO_LARGE;
	}
	if (s->position + bytes > in.size) {
		return CLIENT_SCAN_MORE;
	}
	s->position += bytes;
	s->items++;
	if (s->depth > 0) {
		s->left[s->depth - 1]--;
	}
	return container ? scan_open(s, limits, &h) : CLIENT_SCAN_COMPLETE;
}

enum client_scan client_scan(struct client_scanner *s, const struct client_limits *limits, struct slice in,
	size_t *out_size) {
	if (in.size <= s->position) {
		return CLIENT_SCAN_MORE;
	}
	for (;;) {
		enum client_scan result = scan_object(s, limits, in);
		if (result != CLIENT_SCAN_COMPLETE) {
			return result;
		}
		if (scan_close(s)) {
			*out_size = s->position;
			*s = (struct client_scanner){ 0 };
			return CLIENT_SCAN_COMPLETE;
		}
	}
}
