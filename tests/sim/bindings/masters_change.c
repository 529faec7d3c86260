/* masters_change.c: an operator who asks any node, again and again, to make some three of the nodes
 * the masters, and does not care for the answer. */
#include "masters_change.h"

static void replied(void *ctx, const struct sim_reply *reply) {
	(void)ctx;
	(void)reply;
}

static void closed(void *ctx) {
	(void)ctx;
}

static void change(void *ctx, uint64_t arg) {
	struct masters_change *c = ctx;
	struct core_change_node nodes[SIM_NODES_MAX];
	char names[SIM_NODES_MAX][8], addresses[SIM_NODES_MAX][16];
	uint32_t first = (uint32_t)prng_below(c->prng, c->nodes),
		step = 1 + (uint32_t)prng_below(c->prng, 2);
	(void)arg;
	for (uint32_t i = 0; i < c->nodes; i++) {
		uint32_t at = (first + i * step) % c->nodes;
		snprintf(names[i], sizeof names[i], "n%u", (at + 1) % 100);
		snprintf(addresses[i], sizeof addresses[i], "n%u:7700", (at + 1) % 100);
		nodes[i] = (struct core_change_node){ slice_str(names[i]), slice_str(addresses[i]),
			i < 3 };
	}
	if (c->session && sim_session_open(c->session)) {
		sim_session_close(c->session);
	}
	c->session = sim_connect(c->sim, &c->actor, (uint32_t)prng_below(c->prng, c->nodes),
		(struct sim_handler){ replied, closed, NULL });
	const struct core_change set = { .kind = CHANGE_SET_NODES, .nodes = nodes,
		.node_count = c->nodes, .anyway = true };
	sim_send(c->session,
		&(struct core_request){ .op = CORE_CHANGE, .change = &set, .admin = true });
	sim_at(c->sim, sim_now(c->sim) + prng_between(c->prng, 50 * SPAN_MS, 2 * SPAN_S), change, c,
		0);
}

void masters_change_start(struct masters_change *c, struct sim *sim, struct prng *prng,
	uint32_t nodes) {
	*c = (struct masters_change){ .sim = sim, .prng = prng, .nodes = nodes };
	sim_actor_init(sim, &c->actor, 101);
	sim_at(sim, sim_now(sim) + SPAN_S, change, c, 0);
}
