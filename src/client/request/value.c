/* value.c: reads MessagePack as a tree. It never takes more memory than the bytes of the message
 * justify. */
#include "value.h"

#include <string.h>

#include "unpack.h"

int value_bytes(struct arena *arena, struct slice from, struct pawl_bytes *out) {
	char *to = arena_take(arena, from.size + 1, 1);
	if (!to) {
		return PAWL_ENOMEM;
	}
	if (from.size) {
		memcpy(to, from.data, from.size);
	}
	to[from.size] = '\0';
	*out = (struct pawl_bytes){ to, from.size };
	return 0;
}

int value_text(struct arena *arena, struct slice from, const char **out) {
	struct pawl_bytes bytes;
	int error = from.size ? value_bytes(arena, from, &bytes) : 0;
	if (!error && from.size) {
		*out = bytes.data;
	}
	return error;
}

static struct slice behind(struct slice in, size_t bytes) {
	return slice_of(in.data + bytes, in.size - bytes);
}

/* Returns the number behind the first byte of a head, which is in network byte order. */
static uint64_t head_number(const uint8_t *head, uint32_t head_bytes) {
	uint64_t value = 0;
	for (uint32_t i = 1; i < head_bytes; i++) {
		value = value << 8 | head[i];
	}
	return value;
}

static int64_t head_negative(const uint8_t *head, uint32_t head_bytes) {
	if (head_bytes == 1) {
		return (int8_t)head[0];
	}
	unsigned unused = 64 - 8 * (head_bytes - 1);
	return (int64_t)(head_number(head, head_bytes) << unused) >> unused;
}

static double head_real(const uint8_t *head, uint32_t head_bytes) {
	uint64_t bits = head_number(head, head_bytes);
	double value = 0;
	if (head_bytes == 5) {
		uint32_t narrow = (uint32_t)bits;
		float f;
		memcpy(&f, &narrow, sizeof(f));
		value = (double)f;
	} else {
		memcpy(&value, &bits, sizeof(value));
	}
	return value;
}

static int read_object(struct arena *arena, struct slice *in, struct pawl_value *out,
	unsigned depth);

static int read_items(struct arena *arena, struct slice *in, size_t count, struct pawl_value *out,
	unsigned depth) {
	if (depth == 0 || count > in->size) {
		return PAWL_EPROTOCOL;
	}
	struct pawl_value *items = arena_take(arena, count * sizeof(*items),
		_Alignof(struct pawl_value));
	if (!items) {
		return PAWL_ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		int error = read_object(arena, in, &items[i], depth - 1);
		if (error) {
			return error;
		}
	}
	out->items = items;
	return 0;
}

static int read_bytes(struct arena *arena, struct slice *in, uint32_t size,
	struct pawl_value *out) {
	if (size > in->size) {
		return PAWL_EPROTOCOL;
	}
	struct slice bytes = slice_of(in->data, size);
	*in = behind(*in, size);
	return value_bytes(arena, bytes, &out->bytes);
}

static int read_object(struct arena *arena, struct slice *in, struct pawl_value *out,
	unsigned depth) {
	struct unpack_head h;
	if (unpack_head(*in, &h) != UNPACK_FOUND) {
		return PAWL_EPROTOCOL;
	}
	const uint8_t *head = in->data;
	*in = behind(*in, h.head_bytes);
	*out = (struct pawl_value){ .kind = PAWL_NIL };
	switch (h.type) {
	case UNPACK_NIL:
		return 0;
	case UNPACK_BOOL:
		out->kind = PAWL_BOOL;
		out->boolean = h.number != 0;
		return 0;
	case UNPACK_UINT:
		out->kind = PAWL_INT;
		out->above = h.number > INT64_MAX;
		out->integer = (int64_t)h.number;
		return 0;
	case UNPACK_NEGATIVE:
		out->kind = PAWL_INT;
		out->integer = head_negative(head, h.head_bytes);
		return 0;
	case UNPACK_FLOAT:
		out->kind = PAWL_REAL;
		out->real = head_real(head, h.head_bytes);
		return 0;
	case UNPACK_STR:
		out->kind = PAWL_TEXT;
		return read_bytes(arena, in, h.size, out);
	case UNPACK_BIN:
	case UNPACK_EXT:
		out->kind = PAWL_BYTES;
		return read_bytes(arena, in, h.size, out);
	case UNPACK_ARRAY:
		out->kind = PAWL_ARRAY;
		out->count = h.size;
		return read_items(arena, in, h.size, out, depth);
	case UNPACK_MAP:
		out->kind = PAWL_MAP;
		out->count = h.size;
		return read_items(arena, in, (size_t)h.size * 2, out, depth);
	}
	return PAWL_EPROTOCOL;
}

int value_read(struct arena *arena, struct slice *in, struct pawl_value *out) {
	return read_object(arena, in, out, VALUE_DEPTH_MAX);
}

const struct pawl_value *pawl_value_get(const struct pawl_value *map, const char *key) {
	if (!map || map->kind != PAWL_MAP) {
		return NULL;
	}
	for (size_t i = 0; i < map->count; i++) {
		const struct pawl_value *k = &map->items[2 * i];
		if ((k->kind == PAWL_TEXT || k->kind == PAWL_BYTES) && k->bytes.size == strlen(key)
			&& memcmp(k->bytes.data, key, k->bytes.size) == 0) {
			return k + 1;
		}
	}
	return NULL;
}
