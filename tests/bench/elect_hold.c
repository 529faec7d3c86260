/* elect_hold.c: many idle holders whose leases the library renews; and cycles on one key that is
 * exclusive, shared, or a semaphore. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elect_bench.h"
#include "pawl/pawl.h"

/* How many are asked for at a time; a node takes that many of one connection. */
#define AT_ONCE 256

/* Writes the endpoints, beginning with another one for each client. */
static void endpoints_from(const char *all, size_t first, char *out, size_t size) {
	const char *at = all;
	size_t count = 1;
	for (const char *c = all; *c; c++) {
		count += *c == ',';
	}
	for (first %= count; first > 0; first--) {
		at = strchr(at, ',') + 1;
	}
	snprintf(out, size, "%s%s%.*s", at, at == all ? "" : ",",
		at == all ? 0 : (int)(at - all - 1), all);
}

static struct pawl *client_new(struct event_base *base, const char *endpoints, size_t number) {
	struct pawl *client = NULL;
	char text[512];
	endpoints_from(endpoints, number, text, sizeof text);
	struct pawl_options o = { .endpoints = text, .base = base, .timeout_ms = 20000,
		.prefer_first = true };
	int error = pawl_new(&o, &client, NULL);
	if (error) {
		load_fail("a client", error);
	}
	return client;
}

/* ---- idle holders ---- */

static struct {
	struct event_base *base;
	struct pawl **clients;
	uint32_t lease_ms;
	size_t client_count, wanted, asked, held, lost, renewed;
} crowd;

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	(void)lock, (void)cause, (void)arg;
	crowd.lost++;
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	(void)lock, (void)arg;
	crowd.renewed++;
}

static void ask_next(void);

static void on_held(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	(void)arg;
	if (!take_lock) {
		load_fail(take_result->message, take_result->error);
	}
	pawl_result_free(take_result);
	if (++crowd.held == crowd.wanted) {
		event_base_loopbreak(crowd.base);
	}
	ask_next();
}

static void ask_next(void) {
	char key[32];
	if (crowd.asked == crowd.wanted) {
		return;
	}
	snprintf(key, sizeof key, "holder/%zu/%zu", crowd.client_count, crowd.asked);
	struct pawl_lock_options o = { .key = pawl_str(key), .lease_ms = crowd.lease_ms,
		.on_lost = on_lost, .on_renewed = on_renewed };
	int error = pawl_lock_start(crowd.clients[crowd.asked++ % crowd.client_count], &o, on_held,
		NULL, NULL);
	if (error) {
		load_fail("a lock", error);
	}
}

/* Prints "ready" when all are held, and after the given number of seconds how many are still
 * held. */
int hold_main(char **argv) {
	struct timeval time = { strtol(argv[4], NULL, 10), 0 };
	crowd.wanted = strtoul(argv[1], NULL, 10);
	crowd.client_count = strtoul(argv[2], NULL, 10);
	crowd.lease_ms = (uint32_t)strtoul(argv[3], NULL, 10);
	crowd.clients = calloc(crowd.client_count, sizeof(struct pawl *));
	crowd.base = event_base_new();
	for (size_t i = 0; i < crowd.client_count; i++) {
		crowd.clients[i] = client_new(crowd.base, argv[0], i);
	}
	for (size_t i = 0; i < AT_ONCE; i++) {
		ask_next();
	}
	event_base_dispatch(crowd.base);
	crowd.renewed = 0;
	printf("ready\n");
	fflush(stdout);
	event_base_loopexit(crowd.base, &time);
	event_base_dispatch(crowd.base);
	printf("{\"held\": %zu, \"lost\": %zu, \"renewed\": %zu, \"errors\": %zu}\n", crowd.held,
		crowd.lost, crowd.renewed, crowd.lost);
	return 0;
}

/* ---- one key for many ---- */

struct slot {
	struct load *load;
	struct pawl *client;
	const char *key;
	struct pawl_terms terms;
	int64_t asked;
};

static void take(struct slot *s);

static void on_released(struct pawl_result *take_result, void *arg) {
	struct slot *s = arg;
	s->load->done++;
	s->load->errors += take_result->error != 0;
	pawl_result_free(take_result);
	take(s);
}

static void on_taken(struct pawl_result *take_result, void *arg) {
	struct slot *s = arg;
	if (take_result->error) {
		s->load->errors++;
		take(s);
	} else {
		const struct pawl_request r = { .method = PAWL_RELEASE, .key = pawl_str(s->key),
			.lock_id = take_result->lock_id };
		histogram_add(&s->load->latency, load_now() - s->asked);
		/* Without memory this one stands still, and the figure shows it. */
		(void)pawl_start(s->client, &r, on_released, s, NULL);
	}
	pawl_result_free(take_result);
}

static void take(struct slot *s) {
	const struct pawl_request r = { .method = PAWL_ACQUIRE, .key = pawl_str(s->key),
		.lease_ms = 10000, .wait_ms = 60000, .terms = s->terms };
	s->asked = load_now();
	if (!s->load->stopping) {
		(void)pawl_start(s->client, &r, on_taken, s, NULL);
	}
}

/* TERMS is exclusive, shared, or PERMITS/OF. The clients ask at different nodes, and as many cycles
 * as OUTSTANDING are spread over them. */
int cycle_main(char **argv) {
	static struct load l;
	size_t clients = strtoul(argv[1], NULL, 10), outstanding = strtoul(argv[4], NULL, 10);
	struct slot *slots = calloc(outstanding, sizeof *slots);
	struct pawl_terms terms = { .mode = strcmp(argv[2], "shared") == 0 ? PAWL_SHARED
		: PAWL_EXCLUSIVE };
	const char *of = strchr(argv[2], '/');
	if (of) {
		terms.permits = (uint32_t)strtoul(argv[2], NULL, 10);
		terms.of = (uint32_t)strtoul(of + 1, NULL, 10);
	}
	l.base = event_base_new();
	for (size_t i = 0; i < outstanding; i++) {
		struct pawl *client = i < clients ? client_new(l.base, argv[0], i)
			: slots[i - clients].client;
		slots[i] = (struct slot){ &l, client, argv[3], terms, 0 };
		take(&slots[i]);
	}
	if (load_run(&l, strtod(argv[5], NULL), NULL, NULL) != 0) {
		load_fail("no timer", 0);
	}
	load_print(&l, "cycles");
	return 0;
}
