/* histogram.h: how often which duration occurred, to about 1 %, in fixed memory (as HdrHistogram by Gil Tene: each power of
 * two is cut into equal parts). */
#ifndef PAWL_CLI_HISTOGRAM_H
#define PAWL_CLI_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_PART_BITS 6

struct histogram {
	uint64_t count, sum_ns, max_ns;
	uint64_t buckets[(64 - HISTOGRAM_PART_BITS + 1) << HISTOGRAM_PART_BITS];
};

void histogram_add(struct histogram *h, int64_t ns); /* negative ones count as 0 */
/* The duration that `part` (0 .. 1) of all do not exceed; 0 when there are none. */
uint64_t histogram_quantile(const struct histogram *h, double part);

#endif
