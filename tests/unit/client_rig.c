#include "client_rig.h"

#include <stdio.h>

#include "check.h"

static struct instant rig_now(void *ctx) {
	return ((struct rig *)ctx)->now;
}

void rig_open(struct rig *r, const struct pawl_options *options) {
	*r = (struct rig){ .now = { 1000 * SPAN_S, 900 * SPAN_S } };
	r->alloc = alloc_libc(&r->counter);
	r->env = (struct env){ .alloc = &r->alloc, .now = rig_now, .ctx = r, .manual = true };
	r->base = event_base_new();
	CHECK(r->base);
	char endpoints[128];
	for (size_t i = 0; i < RIG_NODES; i++) {
		fake_open(&r->nodes[i]);
		fake_attach(&r->nodes[i], r->base);
	}
	(void)snprintf(endpoints, sizeof(endpoints), "%s,%s", r->nodes[0].endpoint, r->nodes[1].endpoint);
	struct pawl_options o = options ? *options : (struct pawl_options){ 0 };
	o.endpoints = endpoints;
	o.base = r->base;
	const char *problem;
	CHECK(hub_new(&o, &r->env, &r->client, &problem) == 0);
}

void rig_close(struct rig *r) {
	pawl_free(r->client);
	for (size_t i = 0; i < RIG_NODES; i++) {
		fake_close(&r->nodes[i]);
	}
	event_base_free(r->base);
	CHECK(r->counter.used == 0);
}

/* Loopback delivers within the call that sends: when a few rounds bring nothing, nothing is under way. */
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
		hub_tick(r->client);
		rig_settle(r);
		time -= by;
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
