/* caller_switch.c: a client that leaves a silent node after a moment, as libpawl does (the client
 * guide, What happens on the network). What was under way is sent again at another node, while the
 * first one still has it; and when that one goes on, it works off all that waits in its sockets. */
#include "run.h"

/* Sends a request of the old connection again. Updates and hand-overs are not repeated. */
static void repeat(struct caller *c, const struct pending *p) {
	bool own = p->lock == c->lock;
	if (p->op == CORE_RELEASE && !p->compares) {
		caller_release(c, p->lock);
	} else if (p->op == CORE_EXTEND && own && c->state == CALLER_HOLDING) {
		caller_extend(c, p->lock, p->deadline_kept);
	} else if (p->op == CORE_ACQUIRE && own && !p->stolen && c->state == CALLER_ACQUIRING) {
		caller_acquire_send(c);
	}
}

static void leave(struct caller *c) {
	struct pending under_way[CALLER_PENDING];
	for (int i = 0; i < CALLER_PENDING; i++) {
		under_way[i] = c->pending[i];
	}
	c->run->counts[RUN_SWITCHED]++;
	caller_connect(c, true);
	for (int i = 0; i < CALLER_PENDING; i++) {
		if (under_way[i].id && !under_way[i].second) {
			repeat(c, &under_way[i]);
		}
	}
	if (c->state == CALLER_HOLDING && caller_bound(c)) {
		/* The lock moves before the old connection is closed. */
		caller_extend(c, c->lock, false);
	}
}

/* A node that does not stand still answers the client's ping, and is seldom left. */
static void on_silence(void *ctx, uint64_t id) {
	struct caller *c = ctx;
	struct run *run = c->run;
	const struct pending *p = caller_pending(c, id);
	if (!p || p->second || run->healing || !c->session || !sim_session_open(c->session)
		|| sim_actor_paused(run->sim, &c->actor)) {
		return;
	}
	if (sim_node_stands_still(run->sim, c->node) || prng_chance(&run->late, 1, 20)) {
		leave(c);
	} else {
		caller_mind_silence(c, id);
	}
}

void caller_mind_silence(struct caller *c, uint64_t id) {
	struct run *run = c->run;
	if (run->profile.switches) {
		sim_at(run->sim, sim_now(run->sim) + prng_between(&run->late, SPAN_MS,
			run->profile.sim.request_timeout / 2), on_silence, c, id);
	}
}
