/* bench_cycle.c: the modes cycle, handoff and gap: they acquire, release, and begin again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* For handoff; each request is served long before this time is over. */
#define WAIT_MS 60000

struct slot {
	struct bench *bench;
	struct pawl *client;

	/* For the first slot of each connection: the endpoint of the last grant. */
	bool first;
	char *endpoint;
	char key[BENCH_KEY_BYTES];
	struct pawl_id lock_id;
	/* When the acquire was sent, in ns. */
	int64_t acquire_ns;
};

static void slot_acquire(struct slot *s);

static void slot_again(int fd, short what, void *arg) {
	(void)fd, (void)what;
	slot_acquire(arg);
}

static void slot_failed(struct slot *s, int error, const char *message) {
	bench_failed(s->bench, error, message);
	bench_pause(s->bench, slot_again, s);
}

static void on_released(struct pawl_result *take_result, void *arg) {
	struct slot *s = arg;
	struct bench *b = s->bench;
	int error = take_result->error;
	if (error) {
		slot_failed(s, error, take_result->message);
	} else {
		b->done++;
		histogram_add(&b->cycle, bench_now() - s->acquire_ns);
		slot_acquire(s);
	}
	pawl_result_free(take_result);
}

static void note_grant(struct bench *b, int64_t now) {
	int64_t gap = now - b->last_grant_ns;
	if (gap > b->longest_gap_ns) {
		b->longest_gap_ns = gap;
		b->gap_at_ns = b->last_grant_ns;
	}
	b->last_grant_ns = now;
}

static void note_endpoint(struct slot *s) {
	const char *endpoint = pawl_endpoint(s->client);
	if (s->first && *endpoint && !(s->endpoint && strcmp(s->endpoint, endpoint) == 0)) {
		s->bench->moves += s->endpoint != NULL;
		free(s->endpoint);
		s->endpoint = strdup(endpoint);
	}
}

static void on_acquired(struct pawl_result *take_result, void *arg) {
	struct slot *s = arg;
	struct bench *b = s->bench;
	int64_t now = bench_now();
	if (take_result->error) {
		slot_failed(s, take_result->error, take_result->message);
		pawl_result_free(take_result);
		return;
	}
	note_grant(b, now);
	note_endpoint(s);
	if (!b->mode->one_key) {
		histogram_add(&b->latency, now - s->acquire_ns);
	} else if (b->released_ns > s->acquire_ns) {
		/* This request was waiting when the last holder let go. */
		histogram_add(&b->latency, now - b->released_ns);
	}
	const struct pawl_request request = { .method = PAWL_RELEASE, .key = pawl_str(s->key),
		.lock_id = take_result->lock_id };
	b->released_ns = now;
	int error = pawl_start(s->client, &request, on_released, s, NULL);
	if (error) {
		slot_failed(s, error, pawl_error_message(error));
	}
	pawl_result_free(take_result);
}

static void slot_acquire(struct slot *s) {
	struct bench *b = s->bench;
	if (bench_enough(b)) {
		free(s->endpoint);
		free(s);
		bench_slot_ended(b);
		return;
	}
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str(s->key),
		.lease_ms = b->lease_ms, .wait_ms = b->mode->one_key ? WAIT_MS : 0,
		.value = pawl_str(b->value), .owner = pawl_str("bench") };
	s->acquire_ns = bench_now();
	int error = pawl_start(s->client, &request, on_acquired, s, NULL);
	if (error) {
		slot_failed(s, error, pawl_error_message(error));
	}
}

void bench_cycle_start(struct bench *b) {
	bench_begin(b);
	b->last_grant_ns = b->begin_ns;
	for (uint64_t i = 0; i < b->outstanding; i++) {
		struct slot *s = calloc(1, sizeof *s);
		if (!s) {
			bench_failed(b, PAWL_ENOMEM, "out of memory");
			break;
		}
		s->bench = b;
		s->client = bench_client(b, i);
		s->first = i < b->connections;
		snprintf(s->key, sizeof s->key, "%s/%llu", b->prefix,
			b->mode->one_key ? 0ULL : (unsigned long long)i);
		b->running++;
		slot_acquire(s);
	}
}
