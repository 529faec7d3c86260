/* checker_settled.c: once the network is whole again, what was released is gone everywhere, and no
 * clock has jumped. */
#include <inttypes.h>

#include "checker_impl.h"

/* Section 2, Release: the coordinator goes on until all masters have it. */
static void check_released(struct checker *c, uint32_t number) {
	const struct lock_state *lock = &c->locks[number];
	uint64_t token, noted;
	char key[16];
	const struct config *newest = checker_newest(c);
	if (!lock->release_incarnation ||
		lock->release_incarnation != sim_node_incarnation(c->sim, lock->release_node) ||
		!newest || lock->release_epoch != newest->epoch) {
		return;
	}
	for (uint32_t i = 0; i < sim_nodes(c->sim); i++) {
		bool master = false;
		if (checker_in_config(c, newest, i, &master) && master &&
			core_peek(sim_node_core(c->sim, i), sim_name_key(key, lock->key), lock->id,
			&token, &noted)) {
			checker_violation(c, "releases reach everybody", lock->key,
				"n%" PRIu32 " still has L%" PRIu32 ", although n%" PRIu32
				" answered its release and has been linked with it again", i + 1,
				number, lock->release_node + 1);
		}
	}
}

void checker_settled(struct checker *c) {
	for (uint32_t i = 0; i < c->lock_count && !c->options.forgets_releases; i++) {
		check_released(c, i);
	}
	for (uint32_t i = 0; i < sim_nodes(c->sim) && !c->options.forced; i++) {
		struct core_status status;
		core_status(sim_node_core(c->sim, i), sim_node_clock(c->sim, i), &status);
		if (status.clock >= CLOCK_JUMP_MAX) {
			checker_violation(c, "bounds of clocks", TRACE_NONE, "the clock of n%"
				PRIu32 " has jumped to %" PRIu64, i + 1, status.clock);
		}
	}
}
