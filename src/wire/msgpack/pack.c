#include "pack.h"

#include "check.h"
#include "pawl/error.h"

uint8_t *pack_put_uint_long(uint8_t *p, uint64_t value) {
	if (value <= UINT8_MAX) {
		*p = 0xcc;
		return pack_put_be(p + 1, value, 1);
	}
	if (value <= UINT16_MAX) {
		*p = 0xcd;
		return pack_put_be(p + 1, value, 2);
	}
	if (value <= UINT32_MAX) {
		*p = 0xce;
		return pack_put_be(p + 1, value, 4);
	}
	*p = 0xcf;
	return pack_put_be(p + 1, value, 8);
}

uint8_t *pack_put_bin_head(uint8_t *p, uint32_t size) {
	if (size <= UINT8_MAX) {
		*p = 0xc4;
		return pack_put_be(p + 1, size, 1);
	}
	if (size <= UINT16_MAX) {
		*p = 0xc5;
		return pack_put_be(p + 1, size, 2);
	}
	*p = 0xc6;
	return pack_put_be(p + 1, size, 4);
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

static void pack_bytes(struct pack *k, const void *data, size_t size) {
	if (!k->error) {
		k->error = buffer_append(k->out, data, size);
	}
}

static void pack_to(struct pack *k, const uint8_t *head, const uint8_t *end) {
	pack_bytes(k, head, (size_t)(end - head));
}

void pack_raw(struct pack *k, struct slice s) {
	pack_bytes(k, s.data, s.size);
}

void pack_nil(struct pack *k) {
	pack_bytes(k, "\xc0", 1);
}

void pack_bool(struct pack *k, bool value) {
	pack_bytes(k, value ? "\xc3" : "\xc2", 1);
}

void pack_uint(struct pack *k, uint64_t value) {
	uint8_t head[PACK_HEAD_MAX];
	pack_to(k, head, pack_put_uint(head, value));
}

void pack_int(struct pack *k, int64_t value) {
	if (value >= 0) {
		pack_uint(k, (uint64_t)value);
	} else if (value >= -32) {
		pack_bytes(k, &(uint8_t){ (uint8_t)value }, 1);
	} else {
		uint8_t head[PACK_HEAD_MAX] = { 0xd3 };
		pack_to(k, head, pack_put_be(head + 1, (uint64_t)value, 8));
	}
}

void pack_array(struct pack *k, uint32_t count) {
	uint8_t head[PACK_HEAD_MAX];
	pack_to(k, head, pack_put_array(head, count));
}

void pack_map(struct pack *k, uint32_t pairs) {
	CHECK(pairs <= UINT16_MAX);
	uint8_t head[PACK_HEAD_MAX] = { (uint8_t)(0x80 | pairs) };
	if (pairs <= 15) {
		pack_bytes(k, head, 1);
		return;
	}
	head[0] = 0xde;
	pack_to(k, head, pack_put_be(head + 1, pairs, 2));
}

static uint8_t *pack_str_head(uint8_t *p, size_t size) {
	if (size <= 31) {
		*p = (uint8_t)(0xa0 | size);
		return p + 1;
	}
	if (size <= UINT8_MAX) {
		*p = 0xd9;
		return pack_put_be(p + 1, size, 1);
	}
	if (size <= UINT16_MAX) {
		*p = 0xda;
		return pack_put_be(p + 1, size, 2);
	}
	*p = 0xdb;
	return pack_put_be(p + 1, size, 4);
}

void pack_str(struct pack *k, struct slice s) {
	CHECK(s.size <= UINT32_MAX);
	uint8_t head[PACK_HEAD_MAX];
	pack_to(k, head, pack_str_head(head, s.size));
	pack_bytes(k, s.data, s.size);
}

void pack_text(struct pack *k, const char *s) {
	pack_str(k, slice_str(s));
}

void pack_bin(struct pack *k, struct slice s) {
	CHECK(s.size <= UINT32_MAX);
	uint8_t head[PACK_HEAD_MAX];
	pack_to(k, head, pack_put_bin_head(head, (uint32_t)s.size));
	pack_bytes(k, s.data, s.size);
}

struct pack_open pack_map_open(struct pack *k) {
	struct pack_open map = { .at = k->out->size };
	pack_bytes(k, "\xde\0\0", 3);
	return map;
}

struct pack_open pack_array_open(struct pack *k) {
	struct pack_open array = { .at = k->out->size };
	pack_bytes(k, "\xdd\0\0\0\0", 5);
	return array;
}

void pack_key(struct pack *k, struct pack_open *map, const char *key) {
	map->count++;
	pack_text(k, key);
}

void pack_map_close(struct pack *k, const struct pack_open *map) {
	CHECK(map->count <= UINT16_MAX);
	if (!k->error) {
		pack_put_be(k->out->data + map->at + 1, map->count, 2);
	}
}

void pack_array_close(struct pack *k, const struct pack_open *array) {
	if (!k->error) {
		pack_put_be(k->out->data + array->at + 1, array->count, 4);
	}
}
