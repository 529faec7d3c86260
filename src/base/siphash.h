/* siphash.h: SipHash (Aumasson and Bernstein, 2012) with a result of 64 bits. */
#ifndef PAWL_BASE_SIPHASH_H
#define PAWL_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
	uint64_t k0, k1;
};

/* SipHash-2-4, for what is written down or compared between nodes. */
uint64_t siphash(struct siphash_key key, const void *data, size_t size);

/* SipHash-1-3, for tables in memory under a secret key, where nobody sees the hashes (as in the
 * tables of Python and Rust). */
uint64_t siphash_short(struct siphash_key key, const void *data, size_t size);

#endif
