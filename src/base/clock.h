/* clock.h: instants and durations as values. Nothing here reads a clock.
 *
 * Two clocks are always read together (docs/protocol.md, Time): `boot` counts suspend but is
 * slewed, `raw` is not slewed but stops in suspend. Trust ends when EITHER says so; waits and
 * expiry end when BOTH do. Instants never go on the wire. */
#ifndef PAWL_BASE_CLOCK_H
#define PAWL_BASE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* A duration in nanoseconds. Arithmetic saturates. */
typedef int64_t span_ns;

#define SPAN_US ((span_ns)1000)
#define SPAN_MS ((span_ns)1000000)
#define SPAN_S ((span_ns)1000000000)
#define SPAN_MAX INT64_MAX

struct instant {
	/* CLOCK_BOOTTIME in nanoseconds. */
	int64_t boot;
	/* CLOCK_MONOTONIC_RAW in nanoseconds. */
	int64_t raw;
};

/* Turns microseconds from the wire into nanoseconds. Whatever a peer says, the result saturates. */
static inline span_ns span_from_us(uint64_t us) {
	return us > (uint64_t)(SPAN_MAX / SPAN_US) ? SPAN_MAX : (span_ns)us * SPAN_US;
}

#define INSTANT_FOREVER ((struct instant){ INT64_MAX, INT64_MAX })

static inline int64_t clock_saturating_add(int64_t a, int64_t b) {
	int64_t r;
	if (__builtin_add_overflow(a, b, &r)) {
		return b > 0 ? INT64_MAX : INT64_MIN;
	}
	return r;
}

static inline struct instant instant_add(struct instant t, span_ns d) {
	return (struct instant){ clock_saturating_add(t.boot, d), clock_saturating_add(t.raw, d) };
}

/* Returns the later of each clock. An end that is kept as "the later" never comes before either of
 * the two. */
static inline struct instant instant_later(struct instant a, struct instant b) {
	return (struct instant){ a.boot > b.boot ? a.boot : b.boot, a.raw > b.raw ? a.raw : b.raw };
}

/* Returns the earlier of each clock. */
static inline struct instant instant_earlier(struct instant a, struct instant b) {
	return (struct instant){ a.boot < b.boot ? a.boot : b.boot, a.raw < b.raw ? a.raw : b.raw };
}

/* Waits and expiry are over only when both clocks have reached the end. */
static inline bool instant_expired(struct instant now, struct instant end) {
	return now.boot >= end.boot && now.raw >= end.raw;
}

/* Trust is over as soon as either clock has reached the end. */
static inline bool instant_distrusted(struct instant now, struct instant end) {
	return now.boot >= end.boot || now.raw >= end.raw;
}

/* Returns the time since `then` by the clock that says more, or by the one that says less. It is
 * never negative. */
static inline span_ns instant_elapsed_long(struct instant now, struct instant then) {
	int64_t b = clock_saturating_add(now.boot, -then.boot),
		r = clock_saturating_add(now.raw, -then.raw);
	int64_t m = b > r ? b : r;
	return m > 0 ? m : 0;
}

static inline span_ns instant_elapsed_short(struct instant now, struct instant then) {
	int64_t b = clock_saturating_add(now.boot, -then.boot),
		r = clock_saturating_add(now.raw, -then.raw);
	int64_t m = b < r ? b : r;
	return m > 0 ? m : 0;
}

/* Returns what is left until `end` by the longer clock, which is for handing a lease on, or by the
 * shorter, which is for trusting it. */
static inline span_ns instant_left_long(struct instant now, struct instant end) {
	return instant_elapsed_long(end, now);
}

static inline span_ns instant_left_short(struct instant now, struct instant end) {
	return instant_elapsed_short(end, now);
}

/* These return whole milliseconds: rounded down, or up. A negative span counts as 0. */
static inline uint64_t span_ms_down(span_ns span) {
	return span > 0 ? (uint64_t)(span / SPAN_MS) : 0;
}

static inline uint64_t span_ms_up(span_ns span) {
	return span_ms_down(span) + (span > 0 && span % SPAN_MS != 0);
}

static inline span_ns span_longer(span_ns a, span_ns b) {
	return a > b ? a : b;
}

/* Return d * (1 - ppm/10^6), rounded down, and d * (1 + ppm/10^6), rounded up; d >= 0, ppm in 0 ..
 * 10^6. */
span_ns span_shrink(span_ns d, uint32_t ppm);
span_ns span_grow(span_ns d, uint32_t ppm);
/* Returns the least span of which at least d is left by span_shrink; d >= 0, ppm below 10^6. */
span_ns span_cover(span_ns d, uint32_t ppm);

#endif
