/* elect_watch.c: many watch, each on a connection of its own, and are told what few write. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elect_bench.h"
#include "pawl/watch.h"

#define PREFIX "told/"

struct publisher {
	struct load *load;
	struct pawl_lock *lock;
	/* An update is under way. */
	bool busy;
};

static struct {
	struct load load;
	struct publisher *publishers;
	size_t publisher_count, next, watcher_count, current;
	uint64_t overflows;
} bench;

static void publish(struct publisher *p);

static void on_updated(struct pawl_result *take_result, void *arg) {
	struct publisher *p = arg;
	p->busy = false;
	p->load->done++;
	p->load->errors += take_result->error != 0;
	pawl_result_free(take_result);
	if (!p->load->rate && !p->load->stopping) {
		publish(p);
	}
}

static void publish(struct publisher *p) {
	char stamp[STAMP_BYTES + 1];
	load_stamp(stamp);
	p->busy = pawl_lock_update_start(p->lock, pawl_str(stamp), NULL, on_updated, p, NULL) == 0;
}

/* One update is due. A publisher that has no update under way makes it. */
static void pace(void *arg) {
	(void)arg;
	for (size_t i = 0; i < bench.publisher_count; i++) {
		struct publisher *p = &bench.publishers[bench.next++ % bench.publisher_count];
		if (!p->busy) {
			publish(p);
			return;
		}
	}
	/* The rate is too high: this update could not be made in time. */
	bench.load.errors++;
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	(void)watch, (void)arg;
	if (event->type == PAWL_EVENT_UPDATED && event->entry.value.size == STAMP_BYTES) {
		load_heard(&bench.load, event->entry.value.data);
	} else if (event->type == PAWL_EVENT_CURRENT && ++bench.current == bench.watcher_count) {
		event_base_loopbreak(bench.load.base);
	} else if (event->type == PAWL_EVENT_OVERFLOW) {
		bench.overflows++;
	}
}

static void on_held(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct publisher *p = arg;
	if (!take_lock) {
		load_fail(take_result->message, take_result->error);
	}
	pawl_result_free(take_result);
	p->lock = take_lock;
	if (++bench.next == bench.publisher_count) {
		event_base_loopbreak(bench.load.base);
	}
}

/* Makes a client at one node: each client has one of the endpoints. */
static struct pawl *client_at(char **endpoints, size_t count, size_t number) {
	struct pawl *client = NULL;
	struct pawl_options o = { .endpoints = endpoints[number % count], .base = bench.load.base,
		.timeout_ms = 20000, .silence_ms = 20000 };
	int error = pawl_new(&o, &client, NULL);
	if (error) {
		load_fail("a client", error);
	}
	return client;
}

static void begin_publishers(char **endpoints, size_t count) {
	for (size_t i = 0; i < bench.publisher_count; i++) {
		char key[32];
		struct publisher *p = &bench.publishers[i];
		p->load = &bench.load;
		snprintf(key, sizeof key, PREFIX "%zu", i);
		/* The next run takes them again. */
		struct pawl_lock_options o = { .key = pawl_str(key), .lease_ms = 60000,
			.wait_ms = 60000, .terms = { .release_on_disconnect = true } };
		int error = pawl_lock_start(client_at(endpoints, count, i), &o, on_held, p, NULL);
		if (error) {
			load_fail("a lock", error);
		}
	}
	event_base_dispatch(bench.load.base);
}

static void begin_watchers(char **endpoints, size_t count) {
	for (size_t i = 0; i < bench.watcher_count; i++) {
		struct pawl_watch *watch = NULL;
		struct pawl_watch_options o = { .key = pawl_str(PREFIX), .prefix = true,
			.on_event = on_event };
		int error = pawl_watch_start(client_at(endpoints, count, i), &o, &watch);
		if (error) {
			load_fail("a watch", error);
		}
	}
	event_base_dispatch(bench.load.base);
}

int watch_main(char **argv) {
	char *endpoints[16], *rest = argv[0], *word;
	size_t count = 0;
	while (count < sizeof endpoints / sizeof *endpoints &&
		(word = strtok_r(rest, ",", &rest)) != NULL) {
		endpoints[count++] = word;
	}
	bench.watcher_count = strtoul(argv[1], NULL, 10);
	bench.publisher_count = strtoul(argv[2], NULL, 10);
	bench.load.rate = (uint32_t)strtoul(argv[3], NULL, 10);
	bench.load.base = event_base_new();
	bench.publishers = calloc(bench.publisher_count, sizeof *bench.publishers);
	begin_publishers(endpoints, count);
	begin_watchers(endpoints, count);
	for (size_t i = 0; !bench.load.rate && i < bench.publisher_count; i++) {
		publish(&bench.publishers[i]);
	}
	if (load_run(&bench.load, strtod(argv[4], NULL), pace, NULL) != 0) {
		load_fail("no timer", 0);
	}
	bench.load.errors += bench.overflows;
	load_print(&bench.load, "updates");
	return 0;
}
