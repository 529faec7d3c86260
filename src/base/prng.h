/* prng.h: deterministic pseudo-random numbers from a seed (xoshiro256**, Blackman and Vigna). They
 * are not for secrets. */
#ifndef PAWL_BASE_PRNG_H
#define PAWL_BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t s[4];
};

/* Expands the seed to the whole state by splitmix64. */
void prng_init(struct prng *p, uint64_t seed);

/* Returns 64 random bits. */
uint64_t prng_next(struct prng *p);

/* Returns a number that is uniform in 0 .. bound-1, without bias; bound > 0. */
uint64_t prng_below(struct prng *p, uint64_t bound);

/* Returns a number that is uniform in low .. high, both included. */
int64_t prng_between(struct prng *p, int64_t low, int64_t high);

/* Returns true with a probability of numerator / denominator. */
bool prng_chance(struct prng *p, uint32_t numerator, uint32_t denominator);

#endif
