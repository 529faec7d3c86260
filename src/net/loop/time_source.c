#include "time_source.h"

#include <time.h>

#include "check.h"

static int64_t time_source_read(clockid_t id) {
	struct timespec t;
	CHECK(clock_gettime(id, &t) == 0);
	return (int64_t)t.tv_sec * SPAN_S + (int64_t)t.tv_nsec;
}

struct instant time_source_now(void) {
	/* Between the two reads the process may be stopped: RAW is then the later one. Whatever was stamped so was received
	 * before either read, which is all that the protocol asks for. */
	int64_t boot = time_source_read(CLOCK_BOOTTIME);
	return (struct instant){ boot, time_source_read(CLOCK_MONOTONIC_RAW) };
}
