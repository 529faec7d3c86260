/* load.h: reads numbers out of bytes, the same ones on every machine. */
#ifndef PAWL_BASE_LOAD_H
#define PAWL_BASE_LOAD_H

#include <stdint.h>
#include <string.h>

/* Reads eight bytes of which the first is the least significant. */
static inline uint64_t load_le64(const uint8_t *p) {
	uint64_t x;
	memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	x = __builtin_bswap64(x);
#endif
	return x;
}

/* Reads eight bytes of which the first is the most significant: the number is the greater one where
 * memcmp says that the bytes are. */
static inline uint64_t load_be64(const uint8_t *p) {
	return __builtin_bswap64(load_le64(p));
}

#endif
