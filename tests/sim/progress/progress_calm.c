/* progress_calm.c: what is demanded before leases are over (docs/protocol.md, sections 8.3 and
 * 8.4). The network is whole again, and holders go on renewing: every renewal is answered as held,
 * also while the set changes. What nobody holds is granted to a client that asks for it, however
 * long the leases of its former holders were. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "faults.h"
#include "progress.h"

struct contender {
	struct run *run;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t key, lock;
	struct terms terms;
	struct instant sent;
	enum core_op op;
	int error;
	/* For how many answers to releases it waits. */
	uint32_t waiting;
	bool answered;
};

/* After this span everything is gone that stood in the way for good reasons: promises, rounds that
 * began before, and one renewal of everybody. */
span_ns calm_settles(const struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	span_ns renewal = run->profile.think_max + 2 * o->session_delay_max;
	return 4 * span_grow(o->request_timeout, o->drift_ppm) + o->promise_timeout + 2 * renewal +
		2 * o->disk_max;
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct contender *c = ctx;
	struct run *run = c->run;
	checker_returned(run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	c->answered = true;
	c->error = reply->r.error;
	if (c->op == CORE_ACQUIRE && reply->r.error == 0) {
		checker_believe(run->checker, &c->actor, c->lock,
			instant_add(c->sent, reply->r.valid), reply->r.token);
	}
}

static void closed(void *ctx) {
	struct contender *c = ctx;
	checker_violation(c->run->checker, "progress", c->key,
		"a connection broke although nothing was wrong any more");
}

static bool answered(void *ctx) {
	return ((struct contender *)ctx)->answered;
}

static void send(struct contender *c, struct core_request *r, struct checker_op *op) {
	struct run *run = c->run;
	char key[16];
	r->op = op->op = c->op;
	r->key = sim_name_key(key, c->key);
	r->lock_id = checker_lock_id(run->checker, c->lock);
	r->owner = slice_str("contender");
	op->client = c->actor.number;
	op->key = c->key;
	op->lock = c->lock;
	c->answered = false;
	c->sent = sim_actor_clock(run->sim, &c->actor);
	checker_invoked(run->checker, sim_send(c->session, r), op);
	if (!sim_run_until(run->sim, answered, c,
		10 * run->profile.sim.request_timeout + op->wait)) {
		checker_violation(run->checker, "progress (every request is answered)", c->key,
			"a contender for what nobody holds waits");
	}
}

static void let_go(struct contender *c) {
	checker_forget(c->run->checker, &c->actor, c->lock);
	checker_lock_end(c->run->checker, c->lock);
	c->op = CORE_RELEASE;
	send(c, &(struct core_request){ .op = CORE_RELEASE },
		&(struct checker_op){ .op = CORE_RELEASE });
}

/* It waits a moment, far less than a lease, because other masters may be about to hear of a
 * release. */
void calm_contend(struct run *run, uint32_t key, const struct terms *terms) {
	struct contender c = { .run = run, .key = key, .terms = *terms, .op = CORE_ACQUIRE };
	uint32_t node = TRACE_NONE, value = ++run->values;
	const struct config *newest = checker_newest(run->checker);
	CHECK(members_node(run, (uint32_t)prng_below(&run->late, newest->node_count), &node));
	sim_actor_init(run->sim, &c.actor, 800);
	c.session = sim_connect(run->sim, &c.actor, node,
		(struct sim_handler){ replied, closed, &c });
	c.lock = checker_lock_new(run->checker, key, value);
	checker_lock_terms(run->checker, c.lock, terms);
	span_ns wait = calm_settles(run);
	send(&c, &(struct core_request){ .lease = run->profile.sim.max_lease, .wait = wait,
		.terms = *terms }, &(struct checker_op){ .lease = run->profile.sim.max_lease,
		.wait = wait, .expect = CHECKER_NO_VALUE, .value = value });
	if (c.error) {
		checker_violation(run->checker, "progress (what nobody holds is free)", key,
			"asked for at n%" PRIu32 " (of %u, count %u): %s after %.3f ms", node + 1,
			(unsigned)terms->of, (unsigned)terms->count, pawl_error_code(c.error),
			(double)wait / 1e6);
	}
	run->counts[RUN_CALM_CONTENDED]++;
	run->counts[RUN_CALM_BESIDE] += terms->of != MODE_EXCLUSIVE;
	let_go(&c);
	sim_session_close(c.session);
}

static bool swept(void *ctx) {
	return ((struct contender *)ctx)->waiting == 0;
}

static void sweep_reply(void *ctx, const struct sim_reply *reply) {
	struct contender *c = ctx;
	checker_returned(c->run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	c->waiting--;
	if (reply->r.error) {
		checker_violation(c->run->checker, "progress (a release is answered)", TRACE_NONE,
			"%s", pawl_error_code(reply->r.error));
	}
}

/* A release whose client was not told that it was done is sent again, as the library does. */
static void sweep(struct run *run) {
	struct contender c = { .run = run };
	uint32_t node = TRACE_NONE;
	CHECK(members_node(run,
		(uint32_t)prng_below(&run->late, checker_newest(run->checker)->node_count), &node));
	sim_actor_init(run->sim, &c.actor, 801);
	c.session = sim_connect(run->sim, &c.actor, node,
		(struct sim_handler){ sweep_reply, closed, &c });
	for (uint32_t lock = 0, count = checker_locks(run->checker); lock < count; lock++) {
		if (checker_lock_left(run->checker, lock)) {
			char key[16];
			uint32_t of = checker_lock_key(run->checker, lock);
			struct core_request r = { .op = CORE_RELEASE, .key = sim_name_key(key, of),
				.lock_id = checker_lock_id(run->checker, lock) };
			checker_lock_end(run->checker, lock);
			checker_invoked(run->checker, sim_send(c.session, &r), &(struct checker_op){
				.op = CORE_RELEASE, .client = 801, .key = of, .lock = lock });
			c.waiting++;
		}
	}
	if (!sim_run_until(run->sim, swept, &c, 10 * run->profile.sim.request_timeout)) {
		checker_violation(run->checker, "progress (every request is answered)", TRACE_NONE,
			"%" PRIu32 " releases are not", c.waiting);
	}
	sim_session_close(c.session);
}

static void free_keys(struct run *run) {
	if (faults_worse_than_tcp(&run->profile.adversary)) {
		/* What was lost within a link that lived on is never sent again, so a lease has to
		 * end. */
		return;
	}
	for (uint32_t key = 0, asked = 0; key < run->profile.keys && asked < 4; key++) {
		struct terms terms;
		if (checker_key_free(run->checker, key, &terms)) {
			calm_contend(run, key, &terms);
			asked++;
		}
	}
}

void calm_demand(struct run *run) {
	sim_run_for(run->sim, faults_last_write(run) + calm_settles(run));
	checker_calm(run->checker, true);
	sweep(run);
	sim_run_for(run->sim, calm_settles(run) + run->profile.pause_max);
	free_keys(run);
	if (run->profile.sim.masters < MASTERS_MAX && prng_chance(&run->late, 2, 3)) {
		members_demand_change(run);
		sim_run_for(run->sim, calm_settles(run));
		free_keys(run);
	}
	episodes_demand(run);
	checker_calm(run->checker, false);
	run->renewing = false;
}
