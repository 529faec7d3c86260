/* sim_world.c: makes the simulated cluster and its clocks, and moves true time. */
#include <stdlib.h>

#include "check.h"
#include "sim_impl.h"

struct sim_options sim_options_plain(void) {
	return (struct sim_options){
		.seed = 1,
		.masters = 3,
		.max_lease = 10 * SPAN_S,
		.request_timeout = 100 * SPAN_MS,
		.promise_timeout = 200 * SPAN_MS,
		.drift_ppm = 10000,
		.delay_min = SPAN_MS,
		.delay_max = SPAN_MS,
		.session_delay_min = SPAN_MS / 10,
		.session_delay_max = SPAN_MS / 10,
		.disk_min = SPAN_MS,
		.disk_max = SPAN_MS,
		.reconnect_min = 5 * SPAN_MS,
		.reconnect_max = 5 * SPAN_MS,
		.check_every = 1,
		.plain_clocks = true,
	};
}

static void name_birth(struct sim *sim) {
	struct config *c = &sim->birth;
	snprintf(c->cluster, sizeof c->cluster, "sim");
	c->max_lease = sim->options.max_lease;
	c->request_timeout = sim->options.request_timeout;
	c->promise_timeout = sim->options.promise_timeout;
	c->drift_ppm = sim->options.drift_ppm;
	c->node_count = sim->options.masters;
	for (uint32_t i = 0; i < c->node_count; i++) {
		snprintf(c->nodes[i].name, sizeof c->nodes[i].name, "n%u", i + 1);
		snprintf(c->nodes[i].address, sizeof c->nodes[i].address, "n%u:7700", i + 1);
		c->nodes[i].master = true;
	}
}

struct sim *sim_new(const struct sim_options *options) {
	CHECK(options->masters >= 1 && options->masters <= MASTERS_MAX &&
		options->masters + options->further <= SIM_NODES_MAX);
	struct sim *sim = calloc(1, sizeof *sim);
	CHECK(sim != NULL);
	sim->options = *options;
	sim->n = options->masters + options->further;
	/* So that a clock that starts with the machine has a past. */
	sim->now = SPAN_S;
	prng_init(&sim->prng, options->seed ^ UINT64_C(0x51b0a7d));
	prng_init(&sim->shortage_prng, options->seed ^ UINT64_C(0x5407));
	prng_init(&sim->pieces_prng, options->seed ^ UINT64_C(0x91ece5));
	sim->alloc = alloc_libc(NULL);
	buffer_init(&sim->scratch, &sim->alloc, PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX);
	peer_decoder_init(&sim->decoder, &sim->alloc);
	sim_trace_init(&sim->trace, options->trace_records ? options->trace_records : 4096);
	name_birth(sim);
	for (uint32_t i = 0; i < sim->n; i++) {
		sim_node_init(sim, i);
	}
	return sim;
}

void sim_free(struct sim *sim) {
	if (!sim) {
		return;
	}
	for (uint32_t i = 0; i < sim->n; i++) {
		sim_node_done(&sim->nodes[i]);
	}
	sim_link_free_all(sim);
	sim_session_free_all(sim);
	sim_queue_done(&sim->queue);
	sim_trace_done(&sim->trace);
	buffer_done(&sim->scratch);
	peer_decoder_done(&sim->decoder);
	free(sim);
}

uint32_t sim_nodes(const struct sim *sim) {
	return sim->n;
}

uint32_t sim_node_named(const struct sim *sim, const char *name) {
	for (uint32_t i = 0; i < sim->n; i++) {
		if (strcmp(sim->nodes[i].name, name) == 0) {
			return i;
		}
	}
	return TRACE_NONE;
}

const char *sim_node_name(const struct sim *sim, uint32_t node) {
	return sim->nodes[node].name;
}

uint32_t sim_node_at_peer(const struct sim *sim, uint32_t node, uint32_t peer) {
	return sim->nodes[node].core && peer < NODES_MAX ? sim->nodes[node].node_of[peer]
		: TRACE_NONE;
}

int64_t sim_now(const struct sim *sim) {
	return sim->now;
}

struct prng *sim_prng(struct sim *sim) {
	return &sim->prng;
}

bool sim_step(struct sim *sim) {
	struct sim_event e;
	if (!sim_queue_take(&sim->queue, &e)) {
		return false;
	}
	CHECK(e.at >= sim->now);
	sim->now = e.at;
	e.fn(e.ctx, e.arg);
	return true;
}

void sim_run_for(struct sim *sim, span_ns span) {
	int64_t end = sim->now + span;
	while (sim_queue_next(&sim->queue) <= end) {
		sim_step(sim);
	}
	sim->now = end;
}

bool sim_run_until(struct sim *sim, bool (*condition)(void *ctx), void *ctx, span_ns limit) {
	int64_t end = sim->now + limit;
	while (!condition(ctx)) {
		if (sim_queue_next(&sim->queue) > end) {
			sim->now = end;
			return condition(ctx);
		}
		sim_step(sim);
	}
	return true;
}

void sim_at(struct sim *sim, int64_t at, void (*fn)(void *ctx, uint64_t arg), void *ctx,
	uint64_t arg) {
	sim_queue_put(&sim->queue, at > sim->now ? at : sim->now, fn, ctx, arg);
}

span_ns sim_between(struct sim *sim, span_ns min, span_ns max) {
	return max > min ? prng_between(&sim->prng, min, max) : min;
}

bool sim_ppm(struct sim *sim, uint32_t ppm) {
	return ppm && prng_below(&sim->prng, 1000000) < ppm;
}

struct sim_item *sim_item_new(enum sim_item_kind kind, size_t size) {
	struct sim_item *item = calloc(1, sizeof *item + size);
	CHECK(item != NULL);
	item->kind = kind;
	item->size = size;
	return item;
}

void sim_fifo_put(struct sim_fifo *f, struct sim_item *item) {
	item->next = NULL;
	if (f->tail) {
		f->tail->next = item;
	} else {
		f->head = item;
	}
	f->tail = item;
}

struct sim_item *sim_fifo_take(struct sim_fifo *f) {
	struct sim_item *item = f->head;
	if (item) {
		f->head = item->next;
		if (!f->head) {
			f->tail = NULL;
		}
	}
	return item;
}

void sim_fifo_clear(struct sim_fifo *f) {
	for (struct sim_item *item; (item = sim_fifo_take(f));) {
		free(item);
	}
}

/* Half of the rates lie at an edge of what is allowed, because that is where the margins of the
 * protocol are used up. */
static int64_t draw_rate(struct sim *sim) {
	/* A little below the bound, because times are rounded to whole nanoseconds. */
	int64_t top = (int64_t)sim->options.drift_ppm * 1000 - 1000;
	if (top <= 0) {
		return 0;
	}
	uint64_t edge = prng_below(&sim->prng, 4);
	return edge == 0 ? 0 : edge == 1 ? top : prng_between(&sim->prng, 0, top);
}

void sim_clock_draw(struct sim *sim, struct sim_clock *clock, bool fresh_boot) {
	if (sim->options.plain_clocks) {
		sim_clock_init(clock, sim->now, sim->now, sim->now, 0, 0);
		return;
	}
	int64_t boot = fresh_boot ? sim_between(sim, 0, SPAN_S)
		: sim_between(sim, 0, 1000000 * SPAN_S);
	int64_t raw = sim_between(sim, boot / 2, boot);
	int64_t boot_rate = draw_rate(sim);
	int64_t raw_rate = prng_chance(&sim->prng, 1, 2) ? boot_rate : draw_rate(sim);
	sim_clock_init(clock, sim->now, boot, raw, boot_rate, raw_rate);
}

void sim_observe(struct sim *sim, struct sim_observer observer) {
	sim->observer = observer;
}

void sim_follow(struct sim *sim, struct sim_follower follower) {
	sim->follower = follower;
}

struct sim_trace *sim_trace(struct sim *sim) {
	return &sim->trace;
}

uint64_t sim_frames(const struct sim *sim) {
	return sim->frames;
}

uint64_t sim_steps(const struct sim *sim) {
	return sim->steps;
}
