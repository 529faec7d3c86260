/* elect_bench.c: load that "pawl bench" does not make, for tests/bench/elections and
 * tests/bench/run. The modes are described in elect_bench.h. */
#include "elect_bench.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int64_t load_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void load_stamp(char out_text[STAMP_BYTES + 1]) {
	snprintf(out_text, STAMP_BYTES + 1, "%016" PRIx64, load_now());
}

void load_heard(struct load *l, const void *stamp) {
	char text[STAMP_BYTES + 1] = "";
	memcpy(text, stamp, STAMP_BYTES);
	int64_t at = (int64_t)strtoull(text, NULL, 16);
	if (l->begin != 0 && !l->stopping && at >= l->begin) {
		l->heard++;
		histogram_add(&l->latency, load_now() - at);
	}
}

void load_fail(const char *what, int error) {
	fprintf(stderr, "elect-bench: %s: %d\n", what, error);
	exit(1);
}

/* ---- running ---- */

struct run {
	struct load *load;
	double seconds;
	void (*pace)(void *arg);
	void *arg;
};

static void on_over(evutil_socket_t fd, short what, void *arg) {
	struct run *r = arg;
	struct load *l = r->load;
	(void)fd, (void)what;
	if (l->begin == 0) {
		struct timeval tv = { (long)r->seconds,
			(long)((r->seconds - (double)(long)r->seconds) * 1e6) };
		l->begin = load_now();
		l->done = 0;
		evtimer_add(l->over, &tv);
		return;
	}
	l->end = load_now();
	l->stopping = true;
	event_base_loopbreak(l->base);
}

static void on_pace(evutil_socket_t fd, short what, void *arg) {
	const struct run *r = arg;
	struct load *l = r->load;
	(void)fd, (void)what;
	if (l->begin != 0) {
		uint64_t due = (uint64_t)((double)(load_now() - l->begin) / 1e9 * l->rate);
		for (; l->paced < due; l->paced++) {
			r->pace(r->arg);
		}
	}
}

int load_run(struct load *l, double seconds, void (*pace)(void *arg), void *arg) {
	static const struct timeval warm_up = { 0, WARM_UP_MS * 1000 }, beat = { 0, 1000 };
	struct run r = { l, seconds, pace, arg };
	l->over = evtimer_new(l->base, on_over, &r);
	l->pace = event_new(l->base, -1, EV_PERSIST, on_pace, &r);
	if (!l->over || !l->pace) {
		return -1;
	}
	evtimer_add(l->over, &warm_up);
	if (l->rate) {
		event_add(l->pace, &beat);
	}
	event_base_dispatch(l->base);
	event_free(l->over);
	event_free(l->pace);
	return 0;
}

void load_print(const struct load *l, const char *done) {
	double seconds = (double)(l->end - l->begin) / 1e9;
	printf("{\"seconds\": %.3f, \"%s\": %" PRIu64 ", \"per_second\": %.1f, \"heard\": %" PRIu64
		", \"heard_per_second\": %.1f, " "\"p50_ms\": %.4f, \"p99_ms\": %.4f, \"errors\": %"
		PRIu64 "}\n", seconds, done, l->done, (double)l->done / seconds, l->heard,
		(double)l->heard / seconds, (double)histogram_quantile(&l->latency, 0.5) / 1e6,
		(double)histogram_quantile(&l->latency, 0.99) / 1e6, l->errors);
	fflush(stdout);
}

int main(int argc, char **argv) {
	static const struct { const char *name; int words; int (*run)(char **argv); } modes[] = {
		{ "hold", 5, hold_main }, { "cycle", 6, cycle_main }, { "watch", 5, watch_main },
		{ "redis-handoff", 3, redis_handoff_main },
		{ "redis-publish", 5, redis_publish_main },
		{ "redis-cycle", 3, redis_cycle_main } };
	signal(SIGPIPE, SIG_IGN); /* style: signal, because it only ignores */
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		if (argc == modes[i].words + 2 && strcmp(argv[1], modes[i].name) == 0) {
			return modes[i].run(argv + 2);
		}
	}
	fprintf(stderr, "elect-bench: no such mode, or not its words\n");
	return 2;
}
