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

/* Hashes prefixes of the same bytes, one longer than the other, for little more than one hash of
 * all bytes costs. */
struct siphash_prefixes {
	uint64_t v0, v1, v2, v3;
	/* How many bytes the state stands for. */
	size_t done;
};
void siphash_prefixes_begin(struct siphash_prefixes *p, struct siphash_key key);
/* Returns siphash_short of the first `size` bytes. Neither may `size` be less than in the call
 * before, nor may the bytes have changed since. */
uint64_t siphash_prefixes_next(struct siphash_prefixes *p, const void *data, size_t size);

#endif
