/* time_source.c: reads both clocks; nothing else in the node reads them for the protocol. */
#include "time_source.h"

#include <time.h>

#include "check.h"

static int64_t time_source_read(clockid_t id) {
	struct timespec t;
	CHECK(clock_gettime(id, &t) == 0);
	return (int64_t)t.tv_sec * SPAN_S + (int64_t)t.tv_nsec;
}

struct instant time_source_now(void) {
	/* The process may be stopped between the two reads; then RAW is the later one. A message
	 * that gets this stamp was received before either read, and the protocol asks for no more
	 * than that. */
	int64_t boot = time_source_read(CLOCK_BOOTTIME);
	return (struct instant){ boot, time_source_read(CLOCK_MONOTONIC_RAW) };
}
