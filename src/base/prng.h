/* prng.h: deterministic pseudo-random numbers from a seed (xoshiro256**, Blackman and Vigna). Not for secrets. */
#ifndef PAWL_BASE_PRNG_H
#define PAWL_BASE_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t s[4];
};

void prng_init(struct prng *p, uint64_t seed); /* the state is expanded by splitmix64 */
uint64_t prng_next(struct prng *p);
uint64_t prng_below(struct prng *p, uint64_t bound);                /* uniform in 0 .. bound-1, without bias; bound > 0 */
int64_t prng_between(struct prng *p, int64_t low, int64_t high);    /* uniform in low .. high, both included */
bool prng_chance(struct prng *p, uint32_t numerator, uint32_t denominator);

#endif
