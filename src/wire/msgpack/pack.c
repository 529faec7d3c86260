/* pack.c: appends MessagePack to a bounded buffer, with msgpack-c's packer. */
#include "pack.h"

#include "check.h"
#include "pawl/error.h"

uint8_t *pack_put_uint_long(uint8_t *p, uint64_t value) {
	(void)pack_room_uint64(&p, value);
	return p;
}

void pack_begin(struct pack *k, struct buffer *out) {
	*k = (struct pack){ .out = out, .start = out->size };
}

int pack_end(struct pack *k) {
	if (k->error) {
		k->out->size = k->start;
	}
	return k->error;
}

static inline int pack_bytes(struct pack *k, const void *data, size_t size) {
	if (!k->error) {
		k->error = buffer_append(k->out, data, size);
	}
	return k->error;
}

/* The packer's template, once for a buffer. */
#define msgpack_pack_inline_func(name) static inline int pack_buffer##name
#define msgpack_pack_user struct pack *
#define msgpack_pack_append_buffer(k, data, size) return pack_bytes(k, data, size)
#include <msgpack/pack_template.h>

void pack_raw(struct pack *k, struct slice s) {
	(void)pack_bytes(k, s.data, s.size);
}

void pack_nil(struct pack *k) {
	(void)pack_buffer_nil(k);
}

void pack_bool(struct pack *k, bool value) {
	(void)(value ? pack_buffer_true(k) : pack_buffer_false(k));
}

void pack_uint_long(struct pack *k, uint64_t value) {
	(void)pack_buffer_uint64(k, value);
}

void pack_int(struct pack *k, int64_t value) {
	(void)pack_buffer_int64(k, value);
}

void pack_array(struct pack *k, uint32_t count) {
	(void)pack_buffer_array(k, count);
}

void pack_map(struct pack *k, uint32_t pairs) {
	(void)pack_buffer_map(k, pairs);
}

void pack_str(struct pack *k, struct slice s) {
	CHECK(s.size <= UINT32_MAX);
	struct buffer *out = k->out;
	/* Nearly always there is room, and what is written in place needs no calls. */
	if (!k->error && s.size > 0 && out->capacity - out->size >= PACK_HEAD_MAX + s.size) {
		uint8_t *p = out->data + out->size;
		(void)pack_room_str(&p, s.size);
		(void)pack_put_bytes(&p, s.data, s.size);
		out->size = (size_t)(p - out->data);
	} else {
		(void)pack_buffer_str(k, s.size);
		(void)pack_bytes(k, s.data, s.size);
	}
}

void pack_bin(struct pack *k, struct slice s) {
	CHECK(s.size <= UINT32_MAX);
	(void)pack_buffer_bin(k, s.size);
	(void)pack_bytes(k, s.data, s.size);
}

struct pack_open pack_map_open(struct pack *k) {
	struct pack_open map = { .at = k->out->size };
	(void)pack_buffer_map(k, UINT16_MAX);
	return map;
}

struct pack_open pack_array_open(struct pack *k) {
	struct pack_open array = { .at = k->out->size };
	(void)pack_buffer_array(k, UINT32_MAX);
	return array;
}

void pack_map_close(struct pack *k, const struct pack_open *map) {
	CHECK(map->count <= UINT16_MAX);
	if (!k->error) {
		_msgpack_store16(k->out->data + map->at + 1, map->count);
	}
}

void pack_array_close(struct pack *k, const struct pack_open *array) {
	if (!k->error) {
		_msgpack_store32(k->out->data + array->at + 1, array->count);
	}
}
