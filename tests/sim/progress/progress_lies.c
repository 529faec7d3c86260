/* After a master has lied and is gone: it is taken out of the set, unless it has done damage after
 * which nothing is promised any more.
 */
#include "faults.h"
#include "progress.h"

/* Each of its masters is one that there is, and without the liar they are enough; and one of them that lies was always fewer than they need. */
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
			return false; /* a node that the liar made up, or that lost its files */
		}
		masters += master && node != liar_master(run);
	}
	return masters >= config_quorum(newest) && !run->too_few;
}

/* Each start gives a node the margin anew by which others may raise its clock at once (docs/protocol.md, section 9). One that was started again and
 * again while the liar spoke is refused until the others' limits have come to its clock, which takes as many nanoseconds as it is ahead. */
static span_ns clocks_apart(const struct run *run) {
	uint64_t lowest = TOKEN_MAX, highest = 0;
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		struct core_status status;
		if (i != liar_master(run) && sim_node_running(run->sim, i)) {
			core_status(sim_node_core(run->sim, i), sim_node_clock(run->sim, i), &status);
			lowest = status.clock < lowest ? status.clock : lowest;
			highest = status.clock > highest ? status.clock : highest;
		}
	}
	return highest > lowest ? span_grow((span_ns)(highest - lowest), run->profile.sim.drift_ppm) : 0;
}

void liar_master_remove(struct run *run) {
	const char *name = sim_node_name(run->sim, liar_master(run)); /* perhaps it has given that to another identity */
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

/* False: the liar has proposed what the others accepted, or has given an epoch to two configurations: nothing is promised any more. */
bool liar_master_over(struct run *run) {
	if (!run->profile.lying_master) {
		return true;
	}
	sim_run_for(run->sim, 4 * run->born.request_timeout + clocks_apart(run));
	(void)sim_run_until(run->sim, decrees_over, run, 40 * run->born.request_timeout + 20 * SPAN_S);
	if (!checker_newest(run->checker)) {
		return false; /* the cluster was not born, and the liar's vote would be needed for that */
	}
	if (liar_master_outvoted(run) && !checker_parted(run->checker)) {
		liar_master_remove(run);
	}
	if (checker_parted(run->checker) || !liar_master_outvoted(run)) { /* perhaps only now, by what another one had accepted */
		run->counts[checker_parted(run->checker) ? RUN_PARTED : RUN_TAKEN]++;
		return false;
	}
	return true;
}
