/* pack.h: writes MessagePack with msgpack-c's packer. There are two ways in. pack_put_* writes into
 * room that the caller has made (the peers' hot path). struct pack appends to a bounded buffer and
 * keeps its first error, so that a whole message is written before anybody looks. */
#ifndef PAWL_WIRE_PACK_H
#define PAWL_WIRE_PACK_H

#include <msgpack/pack_define.h>
#include <msgpack/timestamp.h>
#include <stdbool.h>

#include "buffer.h"

/* What is so small and so frequent that it must be inline. The compiler has other measures when it
 * sees the whole program. */
#define PACK_INLINE static inline __attribute__((always_inline))

/* ---- into room that is there ---- */

/* Bytes of the largest head or number. */
#define PACK_HEAD_MAX 9

/* The packer's template, once for a place in memory: each function writes at *at and moves it. */
static inline int pack_put_bytes(uint8_t **at, const void *data, size_t size) {
	memcpy(*at, data, size);
	*at += size;
	return 0;
}

#define msgpack_pack_inline_func(name) static inline int pack_room##name
#define msgpack_pack_user uint8_t **
#define msgpack_pack_append_buffer(at, data, size) return pack_put_bytes(at, data, size)
#include <msgpack/pack_template.h>

/* Each of these returns the end of what it wrote. */

/* As pack_put_uint, for a number that takes more than one byte. */
uint8_t *pack_put_uint_long(uint8_t *p, uint64_t value);

/* Most numbers between nodes are small. The others are not worth a copy of the template at each
 * place that writes a number. */
PACK_INLINE uint8_t *pack_put_uint(uint8_t *p, uint64_t value) {
	if (value < 0x80) {
		*p = (uint8_t)value;
		return p + 1;
	}
	return pack_put_uint_long(p, value);
}

static inline uint8_t *pack_put_array(uint8_t *p, uint32_t count) {
	(void)pack_room_array(&p, count);
	return p;
}

static inline uint8_t *pack_put_bin(uint8_t *p, struct slice s) {
	(void)pack_room_bin(&p, s.size);
	if (s.size) {
		(void)pack_put_bytes(&p, s.data, s.size);
	}
	return p;
}

/* Writes the lowest `bytes` bytes of a number, the highest of them first: for what is not
 * MessagePack itself, such as the length in front of a packet. */
static inline uint8_t *pack_put_be(uint8_t *p, uint64_t value, unsigned bytes) {
	for (unsigned i = bytes; i-- > 0; value >>= 8) {
		p[i] = (uint8_t)value;
	}
	return p + bytes;
}

/* ---- onto a buffer ---- */

struct pack {
	struct buffer *out;

	/* Where the message begins in the buffer. */
	size_t start;

	/* The first error. Nothing is written after it. */
	int error;
};

void pack_begin(struct pack *k, struct buffer *out);

/* Returns 0, or the first error, after which the buffer is as it was at pack_begin. */
int pack_end(struct pack *k);

void pack_nil(struct pack *k);
void pack_bool(struct pack *k, bool value);

/* As pack_uint, for a number that takes more than one byte. */
void pack_uint_long(struct pack *k, uint64_t value);

PACK_INLINE void pack_uint(struct pack *k, uint64_t value) {
	struct buffer *out = k->out;
	if (value < 0x80 && !k->error && out->size < out->capacity) {
		out->data[out->size++] = (uint8_t)value;
	} else {
		pack_uint_long(k, value);
	}
}
void pack_int(struct pack *k, int64_t value);
void pack_array(struct pack *k, uint32_t count);
void pack_map(struct pack *k, uint32_t pairs);

/* A map or an array whose size is known only when it is written. Its head has the longest form, in
 * which any size fits, and is filled in at the end. */
struct pack_open {
	/* Where the head begins in the buffer. */
	size_t at;
	uint32_t count;
};

/* Opens a map of at most 65,535 pairs. */
struct pack_open pack_map_open(struct pack *k);
struct pack_open pack_array_open(struct pack *k);

/* Counts an item of the array. Call it before each item. */
static inline void pack_item(struct pack_open *array) {
	array->count++;
}

void pack_map_close(struct pack *k, const struct pack_open *map);
void pack_array_close(struct pack *k, const struct pack_open *array);
void pack_str(struct pack *k, struct slice s);


/* Writes a C string as str. The names in answers are constants, so the compiler knows their sizes,
 * and copies them with a few instructions where there is room. */
PACK_INLINE void pack_text(struct pack *k, const char *s) {
	struct buffer *out = k->out;
	const size_t size = strlen(s);
	if (size < 0x20 && !k->error && out->capacity - out->size > size) {
		uint8_t *p = out->data + out->size;
		*p = (uint8_t)(0xa0 | size);
		memcpy(p + 1, s, size);
		out->size += 1 + size;
	} else {
		pack_str(k, slice_of(s, size));
	}
}

/* Writes a key of the map. Exactly one value has to follow. */
PACK_INLINE void pack_key(struct pack *k, struct pack_open *map, const char *key) {
	map->count++;
	pack_text(k, key);
}

void pack_bin(struct pack *k, struct slice s);

/* Appends bytes that are MessagePack already. */
void pack_raw(struct pack *k, struct slice s);

#endif
