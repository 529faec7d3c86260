/* disaster.c: a majority of the masters is lost for good. The operator, who knows that, starts over
 * from one of the masters that are left (docs/protocol.md, section 6, force). */
#include "check.h"
#include "faults.h"

static bool started_over(const struct run *run) {
	const struct config *newest = checker_newest(run->checker);
	return newest && run->survivor != TRACE_NONE &&
		!id128_equal(newest->cluster_id, run->old_cluster);
}

static void force(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	struct operator *op = &run->operators[0];
	if (!started_over(run)) {
		op->wanted = (struct wanted_change){ .kind = CHANGE_FORCE, .name = TRACE_NONE,
			.other = TRACE_NONE, .anyway = true };
		if (sim_node_running(run->sim, run->survivor)) {
			operator_ask(op, run->survivor);
		}
		sim_at(run->sim, sim_now(run->sim) + 4 * run->born.request_timeout, force, run, 0);
	}
}

/* All but fewer than a quorum of the masters are lost at one instant. Clients go on believing what
 * they were answered. */
static void destroy(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	const struct config *newest = checker_newest(run->checker);
	if (!newest || !checker_config_complete(run->checker, newest)) {
		sim_at(run->sim, sim_now(run->sim) + run->born.request_timeout, destroy, run, 0);
		return;
	}
	uint32_t masters = config_masters(newest), gone = masters - config_quorum(newest) + 1,
		first = (uint32_t)prng_below(&run->prng, masters);
	run->old_cluster = newest->cluster_id;
	for (uint32_t i = 0; i < masters; i++) {
		uint32_t node = sim_node_named(run->sim, newest->nodes[(first + i) % masters].name);
		if (i < gone) {
			run->destroyed |= 1u << node;
			sim_node_kill(run->sim, node, true);
		} else {
			run->survivor = node;
		}
	}
	run->operators[0].driven = true;
	run->operators[0].turn++;
	sim_at(run->sim, sim_now(run->sim) + run_scale(run, SPAN_MS, run->born.max_lease), force,
		run, 0);
}

void disaster_start(struct run *run) {
	run->survivor = TRACE_NONE;
	if (run->profile.theme == THEME_forced) {
		sim_at(run->sim, sim_now(run->sim) + run->profile.active / 2, destroy, run, 0);
	}
}

bool disaster_over(void *ctx) {
	const struct run *run = ctx;
	return run->profile.theme != THEME_forced || started_over(run);
}
