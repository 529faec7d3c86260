/* siphash.h: SipHash-2-4 (Aumasson and Bernstein, 2012), 64-bit result. */
#ifndef PAWL_BASE_SIPHASH_H
#define PAWL_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k0, k1;
};

uint64_t siphash(struct siphash_key key, const void *data, size_t size);

#endif
