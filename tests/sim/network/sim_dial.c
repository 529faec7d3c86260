/* sim_dial.c: which node dials which: the core says by name what it wants to be linked with, and
 * the name in an address leads to the node. */
#include <stdlib.h>

#include "check.h"
#include "sim_impl.h"

static bool leads_to(const char *address, const char *name) {
	size_t size = strcspn(address, ":");
	return strlen(name) == size && memcmp(address, name, size) == 0;
}

static bool wants(const struct sim *sim, uint32_t from, uint32_t to) {
	const struct sim_node *node = &sim->nodes[from];
	uint32_t peer = node->core ? node->peer_of[to] : TRACE_NONE;
	return peer != TRACE_NONE && core_peer_dialled(node->core, peer) &&
		leads_to(core_peer(node->core, peer)->address, sim->nodes[to].name);
}

static void open_end(struct sim *sim, struct sim_link *link, uint32_t number, uint32_t node) {
	struct sim_end *end = &link->ends[number];
	*end = (struct sim_end){ .sim = sim, .node = node, .number = number, .link = link,
		.incarnation = sim->nodes[node].incarnation, .open = true };
	buffer_init(&end->partial, &sim->alloc, 2 * (PEER_PREFIX_BYTES + PEER_BODY_BYTES_MAX));
}

static void send_hello(struct sim_end *end) {
	const struct sim_node *node = &end->sim->nodes[end->node];
	struct core_status status;
	core_status(node->core, sim_node_clock(end->sim, node->index), &status);
	sim_link_hello(&end->link->ends[!end->number], node->disk.node_id, status.boot);
}

static void dial(void *ctx, uint64_t arg) {
	struct sim *sim = ctx;
	uint32_t a = (uint32_t)(arg >> 32), b = (uint32_t)arg;
	struct sim_pair *pair = &sim->pairs[a][b];
	pair->dialling = false;
	if (!sim->nodes[a].core || !sim->nodes[b].core || !(wants(sim, a, b) || wants(sim, b, a))) {
		/* A node that starts, or whose table of peers changes, dials again. */
		return;
	}
	if (pair->link && sim_link_alive(&pair->link->ends[0]) &&
		sim_link_alive(&pair->link->ends[1])) {
		return;
	}
	if (sim->cut[a][b] || sim->cut[b][a] || sim_node_paused(&sim->nodes[a]) ||
		sim_node_paused(&sim->nodes[b])) {
		sim_link_dial(sim, a, b);
		return;
	}
	struct sim_link *link = calloc(1, sizeof *link);
	CHECK(link != NULL);
	open_end(sim, link, 0, a);
	open_end(sim, link, 1, b);
	link->next = sim->links;
	sim->links = pair->link = link;
	send_hello(&link->ends[0]);
	send_hello(&link->ends[1]);
}

void sim_link_dial(struct sim *sim, uint32_t x, uint32_t y) {
	uint32_t a = x < y ? x : y, b = x < y ? y : x;
	if (a == b || sim->pairs[a][b].dialling) {
		return;
	}
	sim->pairs[a][b].dialling = true;
	sim_at(sim,
		sim->now + sim_between(sim, sim->options.reconnect_min, sim->options.reconnect_max),
		dial, sim, (uint64_t)a << 32 | b);
}
