/* clock.c: durations by a faster or a slower clock. */
#include "clock.h"

#include "check.h"

#define PPM 1000000

/* Below, the whole millions of a span and its rest are multiplied apart. So no product overflows,
 * because ppm <= 10^6. */

span_ns span_shrink(span_ns d, uint32_t ppm) {
	CHECK(d >= 0 && ppm <= PPM);
	const int64_t kept = PPM - (int64_t)ppm;
	return d / PPM * kept + d % PPM * kept / PPM;
}

span_ns span_cover(span_ns d, uint32_t ppm) {
	const int64_t kept = PPM - ppm;
	const int64_t whole = d / kept, rest = d % kept * PPM;
	return whole > (SPAN_MAX - PPM) / PPM ? SPAN_MAX
		: whole * PPM + rest / kept + (rest % kept != 0);
}

span_ns span_grow(span_ns d, uint32_t ppm) {
	CHECK(d >= 0 && ppm <= PPM);
	const int64_t rest = d % PPM * (int64_t)ppm;
	return clock_saturating_add(d,
		d / PPM * (int64_t)ppm + rest / PPM + (rest % PPM != 0));
}
