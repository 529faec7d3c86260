/* watcher.c: a replica in runs whose theme has none, so that somebody checks for double grants in
 * each theme. It joins before the clients begin. */
#include "core.h"
#include "run.h"

void watcher_profile(struct profile *p) {
	if (p->sim.further == 0 && p->sim.masters < SIM_NODES_MAX) {
		p->sim.further = 1;
		p->watcher = true;
	}
}

static bool answered(void *ctx) {
	const struct operator *op = ctx;
	return op->answered || op->session == NULL;
}

static bool follows(void *ctx) {
	const struct run *run = ctx;
	const uint32_t node = sim_nodes(run->sim) - 1;
	struct core_status status = { 0 };
	core_status(sim_node_core(run->sim, node), sim_node_clock(run->sim, node), &status);
	return status.state == CORE_FOLLOWING;
}

void watcher_join(struct run *run) {
	struct operator *op = &run->watcher;
	operator_init(op, run, 300);
	for (uint32_t tries = 0; run->profile.watcher && tries < 20 && !follows(run); tries++) {
		sim_run_for(run->sim, run->profile.sim.request_timeout);
		op->wanted = (struct wanted_change){ .kind = CHANGE_ADD_REPLICA,
			.name = sim_nodes(run->sim) - 1, .other = TRACE_NONE };
		operator_ask(op, 0);
		sim_run_until(run->sim, answered, op, 4 * run->profile.sim.request_timeout);
		sim_run_until(run->sim, follows, run, 4 * run->profile.sim.request_timeout);
	}
}
