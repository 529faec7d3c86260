/* wire_random.h: random values for the tests of the codecs, and bytes that end where their
 * allocation ends. */
#ifndef PAWL_TESTS_WIRE_RANDOM_H
#define PAWL_TESTS_WIRE_RANDOM_H

#include <stdlib.h>

#include "buffer.h"
#include "message.h"
#include "prng.h"

/* The number of bytes for random strings: slices point into this pool. */
#define WIRE_POOL_BYTES (1u << 16)
static uint8_t wire_pool[WIRE_POOL_BYTES];

static inline void wire_pool_fill(struct prng *p) {
	for (size_t i = 0; i < sizeof wire_pool; i++) {
		wire_pool[i] = (uint8_t)prng_next(p);
	}
}

static inline struct slice wire_bytes(struct prng *p, size_t min, size_t max) {
	size_t size = min + prng_below(p, max - min + 1);
	return slice_of(wire_pool + prng_below(p, WIRE_POOL_BYTES - size), size);
}

/* Returns small and large numbers, and the edges. */
static inline uint64_t wire_number(struct prng *p, uint64_t max) {
	uint64_t value = prng_next(p) >> prng_below(p, 64);
	if (prng_chance(p, 1, 16)) {
		return prng_chance(p, 1, 2) ? max : 0;
	}
	return value <= max ? value : max;
}

static inline struct id128 wire_id(struct prng *p) {
	struct id128 id;
	do {
		memcpy(id.b, wire_bytes(p, sizeof id.b, sizeof id.b).data, sizeof id.b);
	} while (id128_zero(id));
	return id;
}

static inline struct ballot wire_ballot(struct prng *p) {
	return (struct ballot){ wire_number(p, TOKEN_MAX), wire_number(p, UINT64_MAX),
		(uint32_t)wire_number(p, UINT32_MAX) };
}

static inline struct terms wire_terms(struct prng *p) {
	struct terms t = { .priority = (int32_t)(uint32_t)wire_number(p, UINT32_MAX),
		.delay = (span_ns)wire_number(p, 1000000) * SPAN_US,
		.binding = (uint32_t)wire_number(p, UINT32_MAX) };
	switch (prng_below(p, 3)) {
	case 0: break;
	case 1: t.of = MODE_SHARED; break;
	default:
		t.of = (uint16_t)(1 + prng_below(p, PERMITS_MAX));
		t.count = (uint16_t)prng_below(p, t.of + 1u);
		t.set = permits_all(t.of);
		t.set.w[0] &= wire_number(p, UINT64_MAX);
		t.set.w[1] &= wire_number(p, UINT64_MAX);
	}
	return t;
}

/* Returns a copy on the heap of exactly that size, so that a sanitizer sees a read behind it. The
 * caller frees it. */
static inline uint8_t *wire_exact(const uint8_t *data, size_t size) {
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy) {
		abort();
	}
	if (size) {
		memcpy(copy, data, size);
	}
	return copy;
}

#endif
