/* crowd.c: many clients hold one key together with leases of all lengths, and release them or let
 * them run out. Others read the key by quorum and have it explained, many at a time, also while
 * masters are silent. */
#include <inttypes.h>

#include "check.h"
#include "run.h"

#define READS_MAX 8

static void think(void *ctx, uint64_t arg);

static void again(struct crowd *g) {
	struct run *run = g->run;
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->late, SPAN_MS, 8 * SPAN_MS), think,
		g, 0);
}

/* The crowd has a key of its own, so that nobody believes in these locks. */
static uint32_t crowd_key(const struct run *run) {
	return run->profile.keys + 50;
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct crowd *g = ctx;
	checker_returned(g->run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
}

static void closed(void *ctx) {
	(void)ctx;
}

static void send(struct crowd *g, struct core_request *r, struct checker_op *op) {
	char key[16];
	r->key = sim_name_key(key, crowd_key(g->run));
	r->owner = slice_str("crowd");
	op->op = r->op;
	op->client = g->actor.number;
	op->key = crowd_key(g->run);
	op->expect = CHECKER_NO_VALUE;
	checker_invoked(g->run->checker, sim_send(g->session, r), op);
}

static void join_in(struct crowd *g) {
	struct run *run = g->run;
	const struct terms shared = { .of = MODE_SHARED };
	for (uint32_t i = 0, count = (uint32_t)prng_between(&run->late, 2, 10); i < count; i++) {
		uint32_t at = g->next++ % CROWD_MAX;
		span_ns lease = prng_between(&run->late, run->profile.lease_min,
			run->profile.lease_max);
		g->locks[at] = checker_lock_new(run->checker, crowd_key(run), 0);
		checker_lock_terms(run->checker, g->locks[at], &shared);
		send(g, &(struct core_request){ .op = CORE_ACQUIRE,
			.lock_id = checker_lock_id(run->checker, g->locks[at]),
			.lease = lease, .value = slice_str("v0"), .terms = shared },
			&(struct checker_op){ .lock = g->locks[at], .lease = lease });
	}
	run->counts[RUN_CROWD_JOINED]++;
}

static void leave(struct crowd *g) {
	struct run *run = g->run;
	for (uint32_t i = 0, count = g->next < CROWD_MAX ? g->next : CROWD_MAX; i < count; i++) {
		if (prng_chance(&run->late, 1, 8) &&
			!checker_lock_ended(run->checker, g->locks[i])) {
			checker_lock_end(run->checker, g->locks[i]);
			send(g, &(struct core_request){ .op = CORE_RELEASE,
				.lock_id = checker_lock_id(run->checker, g->locks[i]) },
				&(struct checker_op){ .lock = g->locks[i] });
		}
	}
}

static void look(struct crowd *g) {
	struct run *run = g->run;
	for (uint32_t i = 0, count = (uint32_t)prng_between(&run->late, 1, READS_MAX); i < count;
		i++) {
		bool explain = prng_chance(&run->late, 1, 2);
		send(g, &(struct core_request){ .op = explain ? CORE_EXPLAIN : CORE_GET,
			.admin = true, .quorum = !explain },
			&(struct checker_op){ .lock = TRACE_NONE, .quorum = !explain });
		run->counts[RUN_CROWD_LOOKED]++;
	}
}

static void think(void *ctx, uint64_t arg) {
	(void)arg;
	struct crowd *g = ctx;
	struct run *run = g->run;
	if (run->healing) {
		return;
	}
	if (!g->session || !sim_session_open(g->session) || prng_chance(&run->late, 1, 16)) {
		if (g->session && sim_session_open(g->session)) {
			sim_session_close(g->session);
		}
		g->session = sim_connect(run->sim, &g->actor,
			(uint32_t)prng_below(&run->late, sim_nodes(run->sim)),
			(struct sim_handler){ replied, closed, g });
	}
	uint64_t what = prng_below(&run->late, 8);
	if (what < 3) {
		join_in(g);
	} else if (what < 4) {
		leave(g);
	} else {
		look(g);
	}
	again(g);
}

void crowd_start(struct run *run, uint32_t number) {
	struct crowd *g = &run->crowds[number];
	*g = (struct crowd){ .run = run };
	sim_actor_init(run->sim, &g->actor, 750 + number);
	again(g);
}
