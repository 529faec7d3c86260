/* sim_shortage.c: what may run short: the memory of a node's core, and the room for what is to
 * leave over a link. It is drawn by a generator of its own. */
#include "check.h"
#include "sim_impl.h"

static bool falls_short(struct sim *sim, uint32_t ppm) {
	return ppm && prng_below(&sim->shortage_prng, 1000000) < ppm;
}

static void *resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct sim_node *node = ctx;
	struct sim *sim = node->sim;
	/* Nothing is short while the core is being made. */
	if (node->out && new_size > old_size) {
		uint32_t ppm = sim->now < node->short_until ? node->short_ppm
			: sim->shortage.alloc_ppm;
		if (falls_short(sim, ppm)) {
			sim->shortages++;
			return NULL;
		}
	}
	return node->libc.resize(node->libc.ctx, p, old_size, new_size);
}

struct allocator sim_shortage_allocator(struct sim_node *node) {
	node->libc = alloc_libc(&node->memory);
	return (struct allocator){ resize, node };
}

bool sim_shortage_full(struct sim_node *node, uint32_t to) {
	struct sim *sim = node->sim;
	if (sim->now < node->full_until[to] || falls_short(sim, sim->shortage.full_ppm)) {
		sim->shortages++;
		return true;
	}
	return false;
}

void sim_shortage_set(struct sim *sim, const struct sim_shortage *shortage) {
	sim->shortage = shortage ? *shortage : (struct sim_shortage){ 0, 0 };
	for (uint32_t i = 0; i < sim->n && !shortage; i++) {
		sim->nodes[i].short_until = 0;
		memset(sim->nodes[i].full_until, 0, sizeof sim->nodes[i].full_until);
	}
}

void sim_node_short(struct sim *sim, uint32_t node, span_ns span, uint32_t ppm) {
	sim_trace_fault(sim, "short of memory, us", node, TRACE_NONE, (uint64_t)span / 1000);
	sim->nodes[node].short_until = sim->now + span;
	sim->nodes[node].short_ppm = ppm;
}

void sim_link_full(struct sim *sim, uint32_t from, uint32_t to, span_ns span) {
	sim_trace_fault(sim, "backlog is full to", from, to, (uint64_t)span / 1000);
	sim->nodes[from].full_until[to] = sim->now + span;
}

uint64_t sim_shortages(const struct sim *sim) {
	return sim->shortages;
}
