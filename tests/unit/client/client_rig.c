/* client_rig.c: the client with clocks that the test moves, see client_rig.h. */
#include "client_rig.h"

#include <stdio.h>

#include "check.h"

static struct instant rig_now(void *ctx) {
	return ((struct rig *)ctx)->now;
}

static void *rig_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct rig *r = ctx;
	if (new_size > old_size) {
		r->allocations++;
		if (r->allocations >= r->fail_from &&
			r->allocations - r->fail_from < r->fail_count) {
			r->failed++;
			return NULL;
		}
	}
	return r->counted.resize(r->counted.ctx, p, old_size, new_size);
}

static int rig_begin(struct rig *r, const struct pawl_options *options, size_t nodes) {
	r->now = (struct instant){ 1000 * SPAN_S, 900 * SPAN_S };
	r->counted = alloc_libc(&r->counter);
	r->alloc = (struct allocator){ rig_resize, r };
	r->env = (struct env){ .alloc = &r->alloc, .now = rig_now, .ctx = r, .manual = true };
	r->base = event_base_new();
	CHECK(r->base);
	char endpoints[128];
	for (size_t i = 0; i < RIG_NODES; i++) {
		fake_open(&r->nodes[i]);
		fake_attach(&r->nodes[i], r->base);
	}
	(void)snprintf(endpoints, sizeof(endpoints), "%s,%s%s%s", r->nodes[0].endpoint,
		r->nodes[1].endpoint, nodes > 2 ? "," : "", nodes > 2 ? r->nodes[2].endpoint : "");
	struct pawl_options o = options ? *options : (struct pawl_options){ 0 };
	o.endpoints = o.endpoints ? r->nodes[0].endpoint : endpoints;
	o.base = r->base;
	/* The tests know which node is asked first. */
	o.prefer_first = true;
	const char *problem;
	return client_core_new(&o, &r->env, &r->client, &problem);
}

void rig_open(struct rig *r, const struct pawl_options *options) {
	*r = (struct rig){ 0 };
	CHECK(rig_begin(r, options, RIG_ENDPOINTS) == 0);
}

void rig_open_all(struct rig *r) {
	*r = (struct rig){ 0 };
	CHECK(rig_begin(r, NULL, RIG_NODES) == 0);
}

int rig_open_short(struct rig *r, uint64_t fail_from, uint64_t fail_count) {
	*r = (struct rig){ .fail_from = fail_from, .fail_count = fail_count };
	return rig_begin(r, NULL, RIG_ENDPOINTS);
}

void rig_close(struct rig *r) {
	pawl_free(r->client);
	for (size_t i = 0; i < RIG_NODES; i++) {
		fake_close(&r->nodes[i]);
	}
	event_base_free(r->base);
	CHECK(r->counter.used == 0);
}

/* Loopback delivers within the call that sends. So when a few rounds bring nothing, nothing is
 * under way. */
void rig_settle(struct rig *r) {
	for (int i = 0; i < 16; i++) {
		CHECK(event_base_loop(r->base, EVLOOP_NONBLOCK) >= 0);
	}
}

void rig_pass(struct rig *r, span_ns time) {
	const span_ns step = 5 * SPAN_MS;
	while (time > 0) {
		span_ns by = time < step ? time : step;
		rig_jump(r, by, by);
		client_core_tick(r->client);
		rig_settle(r);
		time -= by;
	}
}

void rig_creep(struct rig *r, span_ns time) {
	for (; time > 0; time -= SPAN_MS) {
		rig_jump(r, SPAN_MS, SPAN_MS);
		client_core_tick(r->client);
		rig_settle(r);
	}
}

void rig_jump(struct rig *r, span_ns boot, span_ns raw) {
	r->now.boot += boot;
	r->now.raw += raw;
}

void rig_done(struct pawl_result *take_result, void *arg) {
	struct pawl_result **to = arg;
	pawl_result_free(*to);
	*to = take_result;
}

struct pawl_result *rig_ask(struct rig *r, const struct pawl_request *request) {
	struct pawl_result *result = NULL;
	CHECK(pawl_start(r->client, request, rig_done, &result, NULL) == 0);
	rig_settle(r);
	return result;
}
