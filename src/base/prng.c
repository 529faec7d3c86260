/* prng.c: xoshiro256**, seeded by splitmix64. */
#include "prng.h"

#include "check.h"

static uint64_t splitmix64(uint64_t *state) {
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

void prng_init(struct prng *p, uint64_t seed) {
	for (int i = 0; i < 4; i++) {
		p->s[i] = splitmix64(&seed);
	}
}

uint64_t prng_next(struct prng *p) {
	uint64_t *s = p->s;
	/* The terms with two shifts rotate to the left. */
	uint64_t x = s[1] * 5, t = s[1] << 17;
	uint64_t result = (x << 7 | x >> 57) * 9;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = s[3] << 45 | s[3] >> 19;
	return result;
}

uint64_t prng_below(struct prng *p, uint64_t bound) {
	CHECK(bound > 0);
	/* 2^64 mod bound numbers at the low end would make small results likelier, so they are
	 * drawn again. */
	uint64_t reject = (UINT64_MAX - bound + 1) % bound;
	uint64_t r;
	do {
		r = prng_next(p);
	} while (r < reject);
	return r % bound;
}

int64_t prng_between(struct prng *p, int64_t low, int64_t high) {
	CHECK(low <= high);
	uint64_t span = (uint64_t)high - (uint64_t)low;
	uint64_t r = span == UINT64_MAX ? prng_next(p) : prng_below(p, span + 1);
	return (int64_t)((uint64_t)low + r);
}

bool prng_chance(struct prng *p, uint32_t numerator, uint32_t denominator) {
	return prng_below(p, denominator) < numerator;
}
