/* sim_adversary.c: what goes wrong with single frames and turns, at random or where it hurts. */
#include "sim_impl.h"

void sim_adversary_set(struct sim *sim, const struct sim_adversary *adversary) {
	sim->adversary = adversary ? *adversary : (struct sim_adversary){ 0 };
}

static void kill_soon(void *ctx, uint64_t arg) {
	struct sim_node *node = ctx;
	if (node->incarnation == arg) {
		sim_node_kill(node->sim, node->index, prng_chance(&node->sim->prng, 1, 4));
	}
}

static void pause_soon(void *ctx, uint64_t arg) {
	struct sim_node *node = ctx;
	if (node->incarnation == arg) {
		sim_node_pause(node->sim, node->index,
			sim_between(node->sim, 0, node->sim->adversary.target_max));
	}
}

static bool meets_target(struct sim *sim, message_set kinds) {
	return (sim->adversary.kinds & kinds) && sim_ppm(sim, sim->adversary.target_ppm);
}

static struct sim_fate chance_fate(struct sim *sim) {
	const struct sim_adversary *a = &sim->adversary;
	struct sim_fate fate = { 0 };
	fate.lost = sim_ppm(sim, a->lose_ppm);
	fate.twice = sim_ppm(sim, a->duplicate_ppm);
	fate.overtaken = sim_ppm(sim, a->reorder_ppm);
	fate.split = sim_ppm(sim, a->split_ppm);
	if (fate.overtaken || sim_ppm(sim, a->spike_ppm)) {
		fate.late = sim_between(sim, 0, a->late_max);
	}
	return fate;
}

/* A snapshot is a stream: it relies on a link that, as TCP, loses and reorders nothing unless it
 * breaks. */
static struct sim_fate as_tcp(struct sim_fate fate, message_set kinds) {
	static const message_set stream = MESSAGE_BIT(MESSAGE_SNAPSHOT_RECORD) |
		MESSAGE_BIT(MESSAGE_SNAPSHOT_RELEASED) | MESSAGE_BIT(MESSAGE_SNAPSHOT_LOST) |
		MESSAGE_BIT(MESSAGE_SNAPSHOT_CHUNK) | MESSAGE_BIT(MESSAGE_SNAPSHOT_END) |
		MESSAGE_BIT(MESSAGE_SNAPSHOT_READY);
	if (kinds & stream) {
		fate.closes = fate.closes || fate.lost;
		fate.lost = fate.twice = fate.overtaken = false;
	}
	return fate;
}

static struct sim_fate choose_fate(struct sim_node *node, message_set kinds) {
	struct sim *sim = node->sim;
	struct sim_fate fate = chance_fate(sim);
	if (!meets_target(sim, kinds)) {
		return fate;
	}
	switch (sim->adversary.action) {
	case SIM_TARGET_LATE:
		fate.overtaken = true;
		fate.late = sim_between(sim, 0, sim->adversary.target_max);
		break;
	case SIM_TARGET_DELAY:
		fate.late = sim_between(sim, 0, sim->adversary.target_max);
		break;
	case SIM_TARGET_LOSE:
		fate.lost = true;
		break;
	case SIM_TARGET_CLOSE:
		fate.closes = true;
		fate.split = prng_chance(&sim->prng, 1, 2);
		break;
	case SIM_TARGET_KILL_SENDER:
		sim_at(sim, sim->now, kill_soon, node, node->incarnation);
		break;
	case SIM_TARGET_PAUSE_SENDER:
		sim_at(sim, sim->now, pause_soon, node, node->incarnation);
		break;
	case SIM_TARGET_NONE:
	case SIM_TARGET_KILL_RECEIVER:
	case SIM_TARGET_PAUSE_RECEIVER:
		break;
	}
	return fate;
}

struct sim_fate sim_adversary_sends(struct sim_node *node, uint32_t to, message_set kinds) {
	struct sim *sim = node->sim;
	struct sim_fate fate = as_tcp(choose_fate(node, kinds), kinds);
	if (fate.lost || fate.late > sim->options.request_timeout / 2 || fate.closes) {
		sim_trace_fault(sim, fate.lost ? "lose frame to" : fate.closes
			? "break behind frame to" : "late frame to, us", node->index, to,
			(uint64_t)fate.late / 1000);
	}
	return fate;
}

void sim_adversary_handled(struct sim_node *node, message_set kinds) {
	struct sim *sim = node->sim;
	bool kills = sim->adversary.action == SIM_TARGET_KILL_RECEIVER;
	if (!(kills || sim->adversary.action == SIM_TARGET_PAUSE_RECEIVER) ||
		!meets_target(sim, kinds)) {
		return;
	}
	/* It stands still either before its answer leaves or after. */
	node->stall = prng_chance(&sim->prng, 1, 2);
	sim_at(sim, sim->now + 1, kills ? kill_soon : pause_soon, node, node->incarnation);
}
