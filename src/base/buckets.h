/* buckets.h: a histogram of durations with fixed buckets. Counting one more takes a few
 * nanoseconds, so that every request can be counted. */
#ifndef PAWL_BASE_BUCKETS_H
#define PAWL_BASE_BUCKETS_H

#include "clock.h"

/* The bounds of the buckets: 0.1 ms, 0.2 ms, and so on, doubling up to 104.8576 s. */
#define BUCKETS_FIRST (SPAN_MS / 10)
#define BUCKETS_BOUNDS 21

struct buckets {
	/* How many durations each bucket has got. The last one is for those above all bounds. */
	uint64_t counts[BUCKETS_BOUNDS + 1];
	/* The sum of all durations, in nanoseconds. */
	uint64_t sum;
};

/* Returns the upper bound of a bucket, in nanoseconds, which belongs to the bucket itself. */
static inline span_ns buckets_bound(unsigned bucket) {
	return BUCKETS_FIRST << bucket;
}

/* Returns the bucket for a duration. One that is negative counts as 0. */
static inline unsigned buckets_of(span_ns d) {
	uint64_t units = d > 0 ? ((uint64_t)d - 1) / (uint64_t)BUCKETS_FIRST : 0;
	unsigned bucket = units ? 64 - (unsigned)__builtin_clzll(units) : 0;
	return bucket < BUCKETS_BOUNDS ? bucket : BUCKETS_BOUNDS;
}

static inline void buckets_add(struct buckets *b, span_ns d) {
	b->counts[buckets_of(d)]++;
	b->sum += d > 0 ? (uint64_t)d : 0;
}

#endif
