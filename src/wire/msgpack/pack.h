/* pack.h: writes MessagePack. Two ways in: pack_put_* writes into room that the caller has made (the peers' hot path),
 * struct pack appends to a buffer and keeps its first error, so that a whole message is written before looking. */
#ifndef PAWL_WIRE_PACK_H
#define PAWL_WIRE_PACK_H

#include <stdbool.h>

#include "buffer.h"

/* ---- into room that is there: each returns the end of what it wrote ---- */

#define PACK_HEAD_MAX 9 /* bytes of the largest head or number */

static inline uint8_t *pack_put_be(uint8_t *p, uint64_t value, unsigned bytes) {
	for (unsigned i = bytes; i-- > 0; value >>= 8) {
		p[i] = (uint8_t)value;
	}
	return p + bytes;
}

uint8_t *pack_put_uint_long(uint8_t *p, uint64_t value); /* value > 0x7f */

static inline uint8_t *pack_put_uint(uint8_t *p, uint64_t value) {
	if (value <= 0x7f) {
		*p = (uint8_t)value;
		return p + 1;
	}
	return pack_put_uint_long(p, value);
}

static inline uint8_t *pack_put_array(uint8_t *p, uint32_t count) {
	if (count <= 15) {
		*p = (uint8_t)(0x90 | count);
		return p + 1;
	}
	if (count <= UINT16_MAX) {
		*p = 0xdc;
		return pack_put_be(p + 1, count, 2);
	}
	*p = 0xdd;
	return pack_put_be(p + 1, count, 4);
}

uint8_t *pack_put_bin_head(uint8_t *p, uint32_t size);

static inline uint8_t *pack_put_bin(uint8_t *p, struct slice s) {
	p = pack_put_bin_head(p, (uint32_t)s.size);
	if (s.size) {
		memcpy(p, s.data, s.size);
	}
	return p + s.size;
}

/* ---- onto a buffer ---- */

struct pack {
	struct buffer *out;
	size_t start; /* where the message begins in the buffer */
	int error;    /* the first one; nothing is written after it */
};

void pack_begin(struct pack *k, struct buffer *out);
/* 0, or the first error, after which the buffer is as it was at pack_begin. */
int pack_end(struct pack *k);

void pack_nil(struct pack *k);
void pack_bool(struct pack *k, bool value);
void pack_uint(struct pack *k, uint64_t value);
void pack_int(struct pack *k, int64_t value);
void pack_array(struct pack *k, uint32_t count);
void pack_map(struct pack *k, uint32_t pairs);

/* A map or array whose size is known only when it is written. */
struct pack_open {
	size_t at; /* of its head in the buffer */
	uint32_t count;
};
struct pack_open pack_map_open(struct pack *k); /* at most 65535 pairs */
struct pack_open pack_array_open(struct pack *k);
void pack_key(struct pack *k, struct pack_open *map, const char *key); /* then exactly one value */
static inline void pack_item(struct pack_open *array) {                /* before each item */
	array->count++;
}
void pack_map_close(struct pack *k, const struct pack_open *map);
void pack_array_close(struct pack *k, const struct pack_open *array);
void pack_str(struct pack *k, struct slice s);
void pack_text(struct pack *k, const char *s); /* as str */
void pack_bin(struct pack *k, struct slice s);
void pack_raw(struct pack *k, struct slice s); /* bytes that are MessagePack already */

#endif
