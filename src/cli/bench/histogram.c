/* histogram.c: counts durations in buckets of about 1 % and reads quantiles from them. */
#include "histogram.h"

#include <stddef.h>

#define PARTS (1u << HISTOGRAM_PART_BITS)

static size_t bucket_of(uint64_t ns) {
	if (ns < PARTS) {
		return (size_t)ns;
	}
	unsigned shift = 63u - (unsigned)__builtin_clzll(ns) - HISTOGRAM_PART_BITS;
	return ((size_t)(shift + 1) << HISTOGRAM_PART_BITS) + (size_t)((ns >> shift) - PARTS);
}

/* Returns the greatest duration that falls into the bucket. */
static uint64_t bucket_end(size_t bucket) {
	if (bucket < PARTS) {
		return bucket;
	}
	unsigned shift = (unsigned)(bucket >> HISTOGRAM_PART_BITS) - 1;
	return (((uint64_t)(bucket & (PARTS - 1)) + PARTS + 1) << shift) - 1;
}

void histogram_add(struct histogram *h, int64_t ns) {
	uint64_t n = ns > 0 ? (uint64_t)ns : 0;
	h->count++;
	h->sum_ns += n;
	h->max_ns = n > h->max_ns ? n : h->max_ns;
	h->buckets[bucket_of(n)]++;
}

uint64_t histogram_quantile(const struct histogram *h, double part) {
	uint64_t wanted = (uint64_t)(part * (double)h->count + 0.5), seen = 0;
	wanted = wanted < 1 ? 1 : wanted;
	for (size_t i = 0; i < sizeof h->buckets / sizeof *h->buckets && h->count; i++) {
		seen += h->buckets[i];
		if (seen >= wanted) {
			uint64_t end = bucket_end(i);
			return end < h->max_ns ? end : h->max_ns;
		}
	}
	return h->max_ns;
}
