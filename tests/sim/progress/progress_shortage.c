/* progress_shortage.c: after the heal of a run that was short of something: a client that waits for
 * a key that nobody has gets it soon, and does not wait for leases to end. */
#include <inttypes.h>

#include "progress.h"

static bool held_anywhere(struct run *run, uint32_t key) {
	char name[16];
	const struct slice k = sim_name_key(name, key);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		struct core_inspect look;
		struct core *core = sim_node_core(run->sim, i);
		if (core && core_inspect(core, k, sim_node_clock(run->sim, i), &look)) {
			return true;
		}
	}
	return false;
}

static uint64_t waits_for(struct run *run, const struct caller *c, uint32_t *key) {
	for (int i = 0; i < CALLER_PENDING && c->wait > 0; i++) {
		const struct pending *p = &c->pending[i];
		if (p->id && p->op == CORE_ACQUIRE && p->lock == c->lock && !p->stolen &&
			!p->second && sim_session_flows(c->session) &&
			!sim_actor_paused(run->sim, &c->actor)) {
			*key = checker_lock_key(run->checker, p->lock);
			return p->id;
		}
	}
	return 0;
}

/* A promise of a coordinator that died may stand in the way, and so may a turn that nobody uses. */
static span_ns free_bound(const struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	return 3 * o->promise_timeout + 4 * o->request_timeout + 20 * progress_hop(run) +
		4 * o->disk_max + 200 * SPAN_MS;
}

void shortage_look(struct run *run) {
	struct vain *v = &run->vain;
	const int64_t now = sim_now(run->sim);
	if (!run->profile.shortage.every || now < v->next) {
		return;
	}
	v->next = now + 2 * SPAN_MS;
	for (uint32_t i = 0; i < run->profile.clients; i++) {
		uint32_t key = 0;
		uint64_t id = waits_for(run, &run->callers[i], &key);
		if (id == 0 || id != v->request[i] || held_anywhere(run, key)) {
			v->request[i] = id;
			v->since[i] = now;
		} else if (now - v->since[i] > free_bound(run)) {
			checker_violation(run->checker,
				"progress (who waits for a free key has it)", key, "client %" PRIu32
				" waits at n%" PRIu32 " for what nobody has had for %.0f ms", i,
				run->callers[i].node + 1, (double)(now - v->since[i]) / 1e6);
		}
	}
}
