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

/* What the machine does to any program: counts for as long as the steps of the phase took, but for
 * at most five seconds, and times pieces of a few microseconds as if they were steps. A piece that
 * takes long is one in which the processor was not there, or not as fast: on a machine that is
 * shared, processor time has such gaps. */
static void measure_machine(double ms, double *longest, uint64_t *long_ones) {
	volatile uint64_t sum = 0;
	const double end = cpu_ms() + (ms < 5000 ? ms : 5000);
	*longest = 0;
	*long_ones = 0;
	for (double began = cpu_ms(), now; began < end; began = now) {
		for (uint64_t i = 0; i < 5000; i++) {
			sum += i;
		}
		now = cpu_ms();
		*longest = now - began > *longest ? now - began : *longest;
		*long_ones += now - began > LONG_MS;
	}
	/* Or a compiler says that nobody reads it. */
	(void)sum;
}

static void report(const char *what) {
	double longest;
	uint64_t long_ones;
	measure_machine(phase.sum, &longest, &long_ones);
	printf("| %s | %.1f ms (%s) | %llu | %llu | %.0f ms | %.1f ms, %llu |\n", what,
		phase.longest, events[phase.kind], (unsigned long long)phase.long_ones,
		(unsigned long long)phase.steps, phase.sum, longest,
		(unsigned long long)long_ones);
	fflush(stdout);
	memset(&phase, 0, sizeof phase);
}

static struct id128 lock_of(uint64_t n) {
	struct id128 id = { { 1 } };
	memcpy(id.b + 8, &n, sizeof n);
	return id;
}

#endif
