/* time_source.c: reads both clocks; nothing else in the node reads them for the protocol. */
#include "time_source.h"

#include <time.h>

#include "check.h"

struct instant time_source_now(void) {
	struct timespec boot, raw;
	/* The process may be stopped between the two reads; then RAW is the later one. A message
	 * that gets this stamp was received before either read, and the protocol asks for no more
	 * than that. */
	CHECK(clock_gettime(CLOCK_BOOTTIME, &boot) == 0
		&& clock_gettime(CLOCK_MONOTONIC_RAW, &raw) == 0);
	return (struct instant){ (int64_t)boot.tv_sec * SPAN_S + (int64_t)boot.tv_nsec,
		(int64_t)raw.tv_sec * SPAN_S + (int64_t)raw.tv_nsec };
}
