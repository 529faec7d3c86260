/* histogram.h: how often each duration has occurred, to about 1 %, in memory of fixed size. As in
 * HdrHistogram by Gil Tene, each power of two is cut into equal parts. */
#ifndef PAWL_CLI_HISTOGRAM_H
#define PAWL_CLI_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_PART_BITS 6

struct histogram {
	uint64_t count, sum_ns, max_ns;
	uint64_t buckets[(64 - HISTOGRAM_PART_BITS + 1) << HISTOGRAM_PART_BITS];
};

/* Adds a duration in ns. Negative ones count as 0. */
void histogram_add(struct histogram *h, int64_t ns);
/* Returns the duration, in ns, that the part `part` (0 .. 1) of all durations do not exceed; 0 if
 * there are none. */
uint64_t histogram_quantile(const struct histogram *h, double part);

#endif
