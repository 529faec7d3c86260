/* clock.c: durations by a faster or a slower clock. */
#include "clock.h"

#include "check.h"

#define PPM 1000000

/* Returns d * ppm / 10^6 without a wider type. No product overflows, because ppm <= 10^6. */
static int64_t clock_share(span_ns d, uint32_t ppm, bool round_up) {
	CHECK(d >= 0 && ppm <= PPM);
	int64_t whole = d / PPM * (int64_t)ppm;
	int64_t rest = d % PPM * (int64_t)ppm;
	return whole + rest / PPM + (round_up && rest % PPM != 0);
}

span_ns span_shrink(span_ns d, uint32_t ppm) {
	return d - clock_share(d, ppm, true);
}

span_ns span_cover(span_ns d, uint32_t ppm) {
	const int64_t kept = PPM - ppm;
	const int64_t whole = d / kept, rest = d % kept * PPM;
	return whole > (SPAN_MAX - PPM) / PPM ? SPAN_MAX
		: whole * PPM + rest / kept + (rest % kept != 0);
}

span_ns span_grow(span_ns d, uint32_t ppm) {
	return clock_saturating_add(d, clock_share(d, ppm, true));
}
