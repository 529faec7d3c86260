/* bench_fill.c: the modes fill and extend: many leases are held at once. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

static void key_of(const struct bench *b, uint64_t index, char out[BENCH_KEY_BYTES]) {
	snprintf(out, BENCH_KEY_BYTES, "%s/%08llu", b->prefix, (unsigned long long)index);
}

/* ---- fill ---- */

struct filler {
	struct bench *bench;
	struct pawl *client;
	uint64_t index;
	int64_t sent_ns;
};

static void fill_next(struct filler *f);
static void extend_begin(struct bench *b);

/* Ends a filler. If it is the last one, fill is over, or everything that extend needs is there. */
static void fill_ended(struct filler *f) {
	struct bench *b = f->bench;
	free(f);
	if (b->running == 1 && b->mode->start == bench_extend_start && !b->stopping) {
		extend_begin(b);
	}
	bench_slot_ended(b);
}

static void fill_again(int fd, short what, void *arg) {
	(void)fd, (void)what;
	fill_next(arg);
}

static void on_filled(struct pawl_result *take_result, void *arg) {
	struct filler *f = arg;
	struct bench *b = f->bench;
	if (take_result->error) {
		bench_failed(b, take_result->error, take_result->message);
		bench_pause(b, fill_again, f);
	} else {
		b->ids[f->index] = take_result->lock_id;
		b->filled++;
		if (b->mode->start == bench_fill_start) {
			b->done++;
			histogram_add(&b->latency, bench_now() - f->sent_ns);
		}
		fill_next(f);
	}
	pawl_result_free(take_result);
}

static void fill_next(struct filler *f) {
	struct bench *b = f->bench;
	char key[BENCH_KEY_BYTES];
	if (b->next == b->leases || b->stopping) {
		fill_ended(f);
		return;
	}
	/* A lease that has failed is left out. */
	f->index = b->next++;
	key_of(b, f->index, key);
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str(key),
		.lease_ms = b->lease_ms, .value = pawl_str(b->value), .owner = pawl_str("bench") };
	f->sent_ns = bench_now();
	int error = pawl_start(f->client, &request, on_filled, f, NULL);
	if (error) {
		bench_failed(b, error, pawl_error_message(error));
		bench_pause(b, fill_again, f);
	}
}

static void fill_begin(struct bench *b, uint64_t outstanding) {
	b->ids = calloc(b->leases, sizeof *b->ids);
	for (uint64_t i = 0; b->ids && i < outstanding && i < b->leases; i++) {
		struct filler *f = calloc(1, sizeof *f);
		if (!f) {
			break;
		}
		f->bench = b;
		f->client = bench_client(b, i);
		b->running++;
		fill_next(f);
	}
	if (b->running == 0) {
		bench_failed(b, PAWL_ENOMEM, "out of memory");
	}
}

void bench_fill_start(struct bench *b) {
	bench_begin(b);
	fill_begin(b, b->outstanding);
}

/* ---- extend ---- */

struct extender {
	struct bench *bench;
	struct pawl *client;
	int64_t sent_ns;
	size_t count;
	struct pawl_extend_item items[BENCH_BATCH_MAX];
	char keys[BENCH_BATCH_MAX][BENCH_KEY_BYTES];
};

static void extend_next(struct extender *e);

static void extend_again(int fd, short what, void *arg) {
	(void)fd, (void)what;
	extend_next(arg);
}

static void on_extended(struct pawl_result *take_result, void *arg) {
	struct extender *e = arg;
	struct bench *b = e->bench;
	uint64_t lost = 0;
	for (size_t i = 0; i < take_result->extended_count; i++) {
		int error = take_result->extended[i].error;
		lost += error != 0;
		b->done += error == 0;
		if (error) {
			bench_failed(b, error, pawl_error_message(error));
		}
	}
	if (take_result->error) {
		bench_failed(b, take_result->error, take_result->message);
	} else {
		histogram_add(&b->latency, bench_now() - e->sent_ns);
	}
	if (take_result->error || lost == e->count) {
		bench_pause(b, extend_again, e);
	} else {
		extend_next(e);
	}
	pawl_result_free(take_result);
}

static void extend_next(struct extender *e) {
	struct bench *b = e->bench;
	if (bench_enough(b)) {
		free(e);
		bench_slot_ended(b);
		return;
	}
	const struct pawl_request request = { .method = PAWL_EXTEND, .locks = e->items,
		.lock_count = e->count, .deadline_kept = true };
	e->sent_ns = bench_now();
	int error = pawl_start(e->client, &request, on_extended, e, NULL);
	if (error) {
		bench_failed(b, error, pawl_error_message(error));
		bench_pause(b, extend_again, e);
	}
}

/* Starts the extenders. Each of them has a batch of its own. */
static void extend_begin(struct bench *b) {
	uint64_t index = 0;
	bench_begin(b);
	for (uint64_t i = 0; i < b->outstanding; i++) {
		struct extender *e = calloc(1, sizeof *e);
		if (!e) {
			bench_failed(b, PAWL_ENOMEM, "out of memory");
			return;
		}
		e->bench = b;
		e->client = bench_client(b, i);
		for (; e->count < b->batch && index < b->leases; index++) {
			if (pawl_id_none(&b->ids[index])) {
				continue;
			}
			key_of(b, index, e->keys[e->count]);
			e->items[e->count] = (struct pawl_extend_item){
				.key = pawl_str(e->keys[e->count]), .lock_id = b->ids[index],
				.lease_ms = b->lease_ms
			};
			e->count++;
		}
		if (e->count == 0) {
			free(e);
			return;
		}
		b->running++;
		extend_next(e);
	}
}

void bench_extend_start(struct bench *b) {
	b->leases = b->batch * b->outstanding;
	fill_begin(b, 256);
}
