/* watches.c: watches that begin and end. Whoever begins to watch is to miss nothing from then on,
 * although a node keeps nothing while nobody watches (docs/protocol.md, section 3, Watching). */
#include "faults.h"

static void turn(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	if (run->healing) {
		return;
	}
	const uint32_t node = (uint32_t)prng_below(&run->watches, sim_nodes(run->sim));
	if (run->profile.theme == THEME_quiet && sim_node_watched(run->sim, node)) {
		/* Where nothing is wrong, all has been told soon. */
		checker_watched_judge(run->checker, node, 8 * run->profile.sim.request_timeout);
	}
	sim_node_watch(run->sim, node, !sim_node_watched(run->sim, node));
	if (sim_node_watched(run->sim, node)) {
		checker_watch_begins(run->checker, node);
	}
	/* Most of what matters is over within a few messages. */
	const span_ns most = prng_chance(&run->watches, 1, 2) ? 2 * SPAN_S : 50 * SPAN_MS;
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->watches, SPAN_MS, most), turn, run,
		0);
}

/* In half of these runs nobody watches while there are faults. */
void watches_start(struct run *run) {
	if (!run->profile.watches_change) {
		return;
	}
	if (prng_chance(&run->watches, 1, 2)) {
		turn(run, 0);
		return;
	}
	for (uint32_t node = 0; node < sim_nodes(run->sim); node++) {
		sim_node_watch(run->sim, node, false);
	}
}

void watches_heal(struct run *run) {
	for (uint32_t node = 0; node < sim_nodes(run->sim); node++) {
		if (!sim_node_watched(run->sim, node)) {
			sim_node_watch(run->sim, node, true);
			checker_watch_begins(run->checker, node);
		}
	}
}
