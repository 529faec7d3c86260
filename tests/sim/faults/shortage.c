/* shortage.c: nodes that run short of memory, and links whose backlogs are full. All is drawn by a
 * generator of its own, so that the rest of a seed stays what it is. */
#include "faults.h"

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

static void next(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	const struct shortage *s = &run->profile.shortage;
	struct prng *r = &run->shortage_prng;
	const uint32_t total = s->memory_weight + s->backlog_weight;
	(void)arg;
	if (run->healing || total == 0) {
		return;
	}
	uint32_t node = (uint32_t)prng_below(r, sim_nodes(run->sim)),
		other = (uint32_t)prng_below(r, sim_nodes(run->sim));
	span_ns span = prng_between(r, 0, s->span_most);
	if (prng_below(r, total) < s->memory_weight) {
		uint32_t ppm = prng_chance(r, 1, 2) ? 1000000 : 10000 + weight(r, 500000);
		sim_node_short(run->sim, node, span, ppm);
	} else {
		sim_link_full(run->sim, node, other, span);
	}
	sim_at(run->sim, sim_now(run->sim) + prng_between(r, s->every / 4, 2 * s->every), next, run,
		0);
}

void shortage_start(struct run *run) {
	const struct shortage *s = &run->profile.shortage;
	prng_init(&run->shortage_prng, run->profile.sim.seed ^ UINT64_C(0x7a6e5407));
	if (s->every) {
		sim_shortage_set(run->sim, &s->always);
		sim_at(run->sim, sim_now(run->sim) + prng_between(&run->shortage_prng, 0, SPAN_S),
			next, run, 0);
	}
}

void shortage_heal(struct run *run) {
	sim_shortage_set(run->sim, NULL);
}
