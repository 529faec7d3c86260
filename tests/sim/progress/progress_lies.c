/* progress_lies.c: after a master has lied and is gone, it is taken out of the set, unless it has
 * done damage after which nothing is promised any more. */
#include "faults.h"
#include "progress.h"

/* Each master of the newest configuration must be a node that exists. Without the liar they must be
 * a quorum; and there must always have been so many masters that one of them alone could not
 * decide. */
bool liar_master_outvoted(const struct run *run) {
	if (!run->profile.lying_master) {
		return true;
	}
	const struct config *newest = checker_newest(run->checker);
	uint32_t masters = 0;
	for (uint32_t i = 0; i < newest->node_count; i++) {
		const uint32_t node = sim_node_named(run->sim, newest->nodes[i].name);
		bool master = false;
		if (node == TRACE_NONE || !checker_in_config(run->checker, newest, node, &master)) {
			/* The liar made this node up, or the node lost its files. */
			return false;
		}
		masters += master && node != liar_master(run);
	}
	return masters >= config_quorum(newest) && !run->too_few;
}

/* Each start gives a node the margin anew by which others may raise its clock at once
 * (docs/protocol.md, section 9). A node that was started again and again while the liar spoke is
 * refused until the others' limits have come to its clock. That takes as many nanoseconds as its
 * clock is ahead. */
static span_ns clocks_apart(const struct run *run) {
	uint64_t lowest = TOKEN_MAX, highest = 0;
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		struct core_status status;
		if (i != liar_master(run) && sim_node_running(run->sim, i)) {
			core_status(sim_node_core(run->sim, i), sim_node_clock(run->sim, i),
				&status);
			lowest = status.clock < lowest ? status.clock : lowest;
			highest = status.clock > highest ? status.clock : highest;
		}
	}
	return highest > lowest ? span_grow((span_ns)(highest - lowest), run->profile.sim.drift_ppm)
		: 0;
}

void liar_master_remove(struct run *run) {
	/* It may have given the name to another identity. */
	const char *name = sim_node_name(run->sim, liar_master(run));
	if (config_find_name(checker_newest(run->checker), name) >= 0) {
		members_remove(run, liar_master(run));
		run->counts[RUN_LIAR_REMOVED]++;
	}
}

/* What somebody has accepted may still be chosen. */
static bool decrees_over(void *ctx) {
	const struct run *run = ctx;
	bool over = true;
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		const struct durable *d = sim_node_durable(run->sim, i);
		over = over && (i == liar_master(run) || d->decree_config.epoch <= d->config.epoch);
	}
	return over;
}

/* False: the liar has proposed what the others accepted, or has given one epoch to two
 * configurations. Nothing is promised then. */
bool liar_master_over(struct run *run) {
	if (!run->profile.lying_master) {
		return true;
	}
	sim_run_for(run->sim, 4 * run->born.request_timeout + clocks_apart(run));
	(void)sim_run_until(run->sim, decrees_over, run,
		40 * run->born.request_timeout + 20 * SPAN_S);
	if (!checker_newest(run->checker)) {
		/* The cluster was not born, and the liar's vote would be needed for that. */
		return false;
	}
	if (liar_master_outvoted(run) && !checker_parted(run->checker)) {
		liar_master_remove(run);
	}
	/* That may be so only now, because of what another master had accepted. */
	if (checker_parted(run->checker) || !liar_master_outvoted(run)) {
		run->counts[checker_parted(run->checker) ? RUN_PARTED : RUN_TAKEN]++;
		return false;
	}
	return true;
}
