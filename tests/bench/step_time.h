/* step_time.h: takes the processor time of every core_step of a benchmark, which wraps the function
 * (meson.build). The benchmark defines LONG_MS: from how many milliseconds on a step is long. */
#ifndef PAWL_TESTS_STEP_TIME_H
#define PAWL_TESTS_STEP_TIME_H

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "stage.h"

void __wrap_core_step(struct core *core, const struct core_event *event, struct instant now,
	struct core_out *out);
void __real_core_step(struct core *core, const struct core_event *event, struct instant now,
	struct core_out *out);

static const char *const events[] = { [CORE_START] = "start", [CORE_RESTORE] = "restore",
	[CORE_TICK] = "tick", [CORE_FRAME] = "frame", [CORE_PEER_UP] = "link up",
	[CORE_PEER_DOWN] = "link down", [CORE_REQUEST] = "request",
	[CORE_CLIENT_GONE] = "client gone", [CORE_PERSISTED] = "persisted",
	[CORE_DRAIN] = "drain" };

static struct { double longest, sum; enum core_event_kind kind; uint64_t steps, long_ones; } phase;

static double cpu_ms(void) {
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

void __wrap_core_step(struct core *core, const struct core_event *event, struct instant now,
	struct core_out *out) {
	double began = cpu_ms();
	__real_core_step(core, event, now, out);
	double took = cpu_ms() - began;
	phase.steps++;
	phase.sum += took;
	phase.long_ones += took > LONG_MS;
	if (took > phase.longest) {
		phase.longest = took;
		phase.kind = event->kind;
	}
}

static void report(const char *what) {
	printf("| %s | %.1f ms (%s) | %llu | %llu | %.0f ms |\n", what, phase.longest,
		events[phase.kind], (unsigned long long)phase.long_ones,
		(unsigned long long)phase.steps, phase.sum);
	fflush(stdout);
	memset(&phase, 0, sizeof phase);
}

static struct id128 lock_of(uint64_t n) {
	struct id128 id = { { 1 } };
	memcpy(id.b + 8, &n, sizeof n);
	return id;
}

#endif
