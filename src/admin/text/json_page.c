/* json_page.c: from MessagePack to JSON. */
#include "json_page.h"

#include "json_text.h"

static void json_page_value(struct page *p, struct unpack *u, unsigned depth);

static void json_page_bytes(struct page *p, struct slice bytes) {
	page_text(p, "\"");
	page_hex(p, bytes);
	page_text(p, "\"");
}

static void json_page_hash(struct page *p, uint64_t hash) {
	uint8_t bytes[sizeof hash];
	for (size_t i = 0; i < sizeof bytes; i++) {
		bytes[i] = (uint8_t)(hash >> 8 * (sizeof bytes - 1 - i));
	}
	json_page_bytes(p, slice_of(bytes, sizeof bytes));
}

/* Returns whether bytes of this name never stand for a text. */
static bool json_page_opaque(struct slice name) {
	return slice_equal(name, slice_str("value_seq"))
		|| slice_equal(name, slice_str("position"));
}

/* Writes a name and bytes that usually are a text. If they are not, the name ends with "_hex". */
static void json_page_text(struct page *p, struct slice name, struct slice bytes) {
	const bool text = json_text_valid(bytes);
	page_text(p, "\"");
	page_slice(p, name);
	page_text(p, text ? "\":" : "_hex\":");
	if (text) {
		page_json(p, bytes);
	} else {
		json_page_bytes(p, bytes);
	}
}

static void json_page_map(struct page *p, struct unpack *u, unsigned depth) {
	uint32_t pairs = unpack_map(u);
	page_text(p, "{");
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		page_text(p, i ? "," : "");
		if (unpack_peek(u) == UNPACK_BIN && !json_page_opaque(name)) {
			json_page_text(p, name, unpack_bin(u, SIZE_MAX));
			continue;
		}
		page_json(p, name);
		page_text(p, ":");
		if (slice_equal(name, slice_str("config_hash"))) {
			json_page_hash(p, unpack_uint(u, UINT64_MAX));
		} else {
			json_page_value(p, u, depth);
		}
	}
	page_text(p, "}");
}

static void json_page_array(struct page *p, struct unpack *u, unsigned depth) {
	uint32_t count = unpack_array(u);
	page_text(p, "[");
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		page_text(p, i ? "," : "");
		json_page_value(p, u, depth);
	}
	page_text(p, "]");
}

/* Writes an object that is neither a map nor an array. */
static void json_page_scalar(struct page *p, struct unpack *u, enum unpack_type type) {
	switch (type) {
	case UNPACK_BOOL:
		page_text(p, unpack_bool(u) ? "true" : "false");
		return;
	case UNPACK_UINT:
		page_number(p, unpack_uint(u, UINT64_MAX));
		return;
	case UNPACK_NEGATIVE:
		page_signed(p, unpack_int(u));
		return;
	case UNPACK_STR:
		page_json(p, unpack_str(u, SIZE_MAX));
		return;
	case UNPACK_BIN:
		json_page_bytes(p, unpack_bin(u, SIZE_MAX));
		return;
	case UNPACK_NIL:
	case UNPACK_FLOAT:
	case UNPACK_EXT:
	case UNPACK_ARRAY:
	case UNPACK_MAP:
		page_text(p, "null");
		unpack_skip(u);
		return;
	}
}

static void json_page_value(struct page *p, struct unpack *u, unsigned depth) {
	enum unpack_type type = unpack_peek(u);
	if (depth == UNPACK_DEPTH_MAX) {
		u->bad = true;
	} else if (type == UNPACK_MAP) {
		json_page_map(p, u, depth + 1);
	} else if (type == UNPACK_ARRAY) {
		json_page_array(p, u, depth + 1);
	} else {
		json_page_scalar(p, u, type);
	}
}

void json_page_object(struct page *p, struct unpack *u) {
	json_page_value(p, u, 0);
	p->bad = p->bad || u->bad;
}
