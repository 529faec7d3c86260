/* progress.c: after the heal (docs/protocol.md, section 8.4) every node votes, every request is
 * answered, a single contender has a free key within two rounds, a queue is served to the end, and
 * a release wakes the next within two round trips. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "faults.h"
#include "progress.h"

struct probe {
	struct progress *all;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t lock;
	span_ns wait;
	struct instant sent;
	/* In true time. */
	int64_t asked, granted;
	int error;
	bool answered, released, releases_failed;
};
#define PROBES 5
struct progress {
	struct run *run;
	struct probe probes[PROBES];
	uint32_t count, served;
	uint32_t key;
	/* The first one holds the key for this much longer, in nanoseconds. */
	span_ns first_holds;
	int64_t last_release;
	span_ns worst_hand_off;
	/* A commit failed and was tried again. */
	bool disturbed;
};

/* ---- bounds ---- */

span_ns progress_hop(const struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	return o->delay_max + o->loop_lag_max + 20 * SPAN_US;
}

static span_ns session_hop(const struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	return o->session_delay_max + o->loop_lag_max + 20 * SPAN_US;
}

/* Two rounds. A vote may have to wait until the clock reservation is raised. */
static span_ns single_bound(const struct run *run) {
	return 2 * session_hop(run) + 4 * progress_hop(run) + 2 * run->profile.sim.disk_max +
		4 * SPAN_MS;
}

static span_ns hold(const struct run *run) {
	return 12 * progress_hop(run) + 3 * SPAN_MS;
}

static span_ns hand_off_bound(const struct run *run) {
	return 2 * session_hop(run) + 4 * progress_hop(run) + 2 * run->profile.sim.disk_max +
		4 * SPAN_MS;
}

/* ---- probes ---- */

static void release(void *ctx, uint64_t arg) {
	(void)arg;
	struct probe *p = ctx;
	struct run *run = p->all->run;
	char key[16];
	struct core_request r = { .op = CORE_RELEASE, .key = sim_name_key(key, p->all->key),
		.lock_id = checker_lock_id(run->checker, p->lock) };
	struct checker_op op = { .op = CORE_RELEASE, .client = p->actor.number, .key = p->all->key,
		.lock = p->lock };
	checker_forget(run->checker, &p->actor, p->lock);
	checker_lock_end(run->checker, p->lock);
	p->all->last_release = sim_now(run->sim);
	checker_invoked(run->checker, sim_send(p->session, &r), &op);
}

static void ask(struct probe *p);

static void ask_again(void *ctx, uint64_t arg) {
	(void)arg;
	ask(ctx);
}

/* A commit may meet a release that is still on its way. Then the lock is released, and asked for
 * again as another acquisition. */
static void try_again(struct probe *p) {
	release(p, 0);
	p->answered = false;
	p->releases_failed = true;
	p->all->last_release = 0;
	p->all->disturbed = true;
	sim_at(p->all->run->sim, sim_now(p->all->run->sim) + SPAN_MS, ask_again, p, 0);
}

static void probe_reply(void *ctx, const struct sim_reply *reply) {
	struct probe *p = ctx;
	struct run *run = p->all->run;
	checker_returned(run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	if (reply->r.op == CORE_RELEASE && p->releases_failed) {
		p->releases_failed = false;
		return;
	}
	if (reply->r.op == CORE_RELEASE) {
		p->released = reply->r.error == 0;
		if (!p->released) {
			sim_at(run->sim, sim_now(run->sim) + 5 * SPAN_MS, release, p, 0);
		}
		return;
	}
	p->answered = true;
	p->error = reply->r.error;
	p->granted = sim_now(run->sim);
	if (p->error == PAWL_ENOQUORUM && p->wait > 0) {
		try_again(p);
		return;
	}
	/* Where little fits, some are turned away. */
	if (p->error) {
		p->all->served += run->profile.theme == THEME_limits &&
			(p->error == PAWL_EFULL || p->error == PAWL_EBUSY);
		return;
	}
	checker_believe(run->checker, &p->actor, p->lock, instant_add(p->sent, reply->r.valid),
		reply->r.token);
	if (p->all->last_release) {
		span_ns took = p->granted - p->all->last_release;
		p->all->worst_hand_off = took > p->all->worst_hand_off ? took
			: p->all->worst_hand_off;
	}
	p->all->served++;
	/* It holds the lock long enough for the next in the queue to be known everywhere, also
	 * after a pause for a rival. */
	span_ns more = p == p->all->probes ? p->all->first_holds : 0;
	sim_at(run->sim, sim_now(run->sim) + hold(run) + more, release, p, 0);
}

static void probe_closed(void *ctx) {
	struct probe *p = ctx;
	checker_violation(p->all->run->checker, "progress", p->all->key,
		"a connection broke although nothing was wrong any more");
}

static void ask(struct probe *p) {
	struct progress *all = p->all;
	struct run *run = all->run;
	char key[16];
	span_ns wait = p->wait;
	uint32_t value = ++run->values;
	p->lock = checker_lock_new(run->checker, all->key, value);
	span_ns lease = run->profile.sim.max_lease;
	struct core_request r = { .op = CORE_ACQUIRE, .key = sim_name_key(key, all->key),
		.lock_id = checker_lock_id(run->checker, p->lock), .lease = lease, .wait = wait,
		.owner = slice_str("probe") };
	struct checker_op op = { .op = CORE_ACQUIRE, .client = p->actor.number, .key = all->key,
		.lock = p->lock, .lease = lease, .wait = wait, .expect = CHECKER_NO_VALUE,
		.value = value };
	p->sent = sim_actor_clock(run->sim, &p->actor);
	checker_invoked(run->checker, sim_send(p->session, &r), &op);
}

static void probe_start(struct progress *all, uint32_t number, uint32_t node, span_ns wait) {
	struct run *run = all->run;
	struct probe *p = &all->probes[number];
	*p = (struct probe){ .all = all, .wait = wait, .asked = sim_now(run->sim) };
	sim_actor_init(run->sim, &p->actor, 100 + number);
	p->session = sim_connect(run->sim, &p->actor, node,
		(struct sim_handler){ probe_reply, probe_closed, p });
	ask(p);
}

static bool probes_done(void *ctx) {
	const struct progress *all = ctx;
	for (uint32_t i = 0; i < all->count; i++) {
		if (!all->probes[i].answered ||
			(!all->probes[i].error && !all->probes[i].released)) {
			return false;
		}
	}
	return true;
}

/* ---- demands ---- */

static bool callers_done(void *ctx) {
	struct run *run = ctx;
	shortage_look(run);
	for (uint32_t i = 0; i < run->profile.clients; i++) {
		if (!caller_done(&run->callers[i])) {
			return false;
		}
	}
	for (uint32_t i = 0; i < run->profile.groupers; i++) {
		if (!grouper_done(&run->groupers[i])) {
			return false;
		}
	}
	for (uint32_t i = 0; i < run->profile.latecomers; i++) {
		if (!latecomer_done(&run->latecomers[i])) {
			return false;
		}
	}
	return true;
}

static void demand_answers(struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	span_ns limit = run->profile.wait_max + 2 * o->max_lease + 20 * o->request_timeout +
		2 * o->promise_timeout + run->profile.pause_max + 2 * SPAN_S;
	if (sim_run_until(run->sim, callers_done, run, limit)) {
		return;
	}
	for (uint32_t i = 0; i < run->profile.clients; i++) {
		const struct caller *c = &run->callers[i];
		for (int j = 0; j < CALLER_PENDING; j++) {
			const struct pending *p = &c->pending[j];
			if (p->id) {
				uint32_t key = p->lock == TRACE_NONE ? TRACE_NONE
					: checker_lock_key(run->checker, p->lock);
				checker_violation(run->checker,
					"progress (every request is answered)",
					key, "client %" PRIu32 " waits for request %" PRIu64
					" (operation %d, L%" PRIu32 ") at n%" PRIu32, i, p->id,
					(int)p->op, p->lock, c->node + 1);
			}
		}
		CHECK(c->state == CALLER_IDLE);
	}
	checker_violation(run->checker, "progress (every request is answered)", TRACE_NONE,
		"a client of several keys waits");
}

static void demand_single(struct run *run) {
	struct progress all = { .run = run, .count = 1, .key = run->profile.keys + 1 };
	for (uint32_t at = 0, node; at < 4 && members_node(run, at, &node); at++) {
		all.key = (uint32_t)prng_below(&run->prng, run->profile.keys + 2);
		probe_start(&all, 0, node, 0);
		sim_run_until(run->sim, probes_done, &all, 10 * run->profile.sim.request_timeout);
		const struct probe *p = &all.probes[0];
		if (!p->answered || p->error) {
			checker_violation(run->checker, "progress (a free key is had)", all.key,
				"asked at n%" PRIu32 ": %s", node + 1,
				p->answered ? pawl_error_code(p->error) : "no answer");
		}
		if (!p->released) {
			checker_violation(run->checker, "progress (a release is done)", all.key,
				"asked at n%" PRIu32, node + 1);
		}
		if (p->granted - p->asked > single_bound(run)) {
			checker_violation(run->checker, "progress (two rounds)", all.key,
				"a free key was had after %.3f ms, at most %.3f are allowed",
				(double)(p->granted - p->asked) / 1e6,
				(double)single_bound(run) / 1e6);
		}
		all.last_release = 0;
		/* The release reaches everybody. Where only few keys fit, it makes room. */
		sim_run_for(run->sim, 4 * progress_hop(run));
	}
}

/* Whatever was kept for nobody has had the time to go. */
static void demand_old_keys(struct run *run) {
	for (uint32_t key = 0; key < run->profile.keys; key++) {
		struct progress all = { .run = run, .count = 1, .key = key };
		uint32_t node;
		if (!members_node(run, key % 3, &node) && !members_node(run, 0, &node)) {
			return;
		}
		probe_start(&all, 0, node, 0);
		sim_run_until(run->sim, probes_done, &all, 10 * run->profile.sim.request_timeout);
		const struct probe *p = &all.probes[0];
		if (!p->answered || p->error || !p->released) {
			checker_violation(run->checker, "progress (an old key is had)", key,
				"asked at n%" PRIu32 ": %s", node + 1, !p->answered ? "no answer"
				: p->error ? pawl_error_code(p->error) : "no release");
		}
		sim_run_for(run->sim, 4 * progress_hop(run));
	}
}

static void demand_queue(struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	struct progress all = { .run = run, .count = PROBES,
		.key = (uint32_t)prng_below(&run->prng, run->profile.keys) };
	for (uint32_t i = 0; i < PROBES; i++) {
		probe_start(&all, i, members_any(run), 30 * SPAN_S);
	}
	span_ns limit = PROBES * (hand_off_bound(run) + hold(run) + 10 * SPAN_MS) +
		8 * progress_hop(run) + 2 * o->promise_timeout + 2 * o->request_timeout;
	if (!sim_run_until(run->sim, probes_done, &all, limit) || all.served != PROBES) {
		checker_violation(run->checker, "progress (the queue is served)", all.key,
			"%" PRIu32 " of %d waiters had the key within %.3f ms", all.served, PROBES,
			(double)limit / 1e6);
	}
	if (run->profile.theme != THEME_limits && !all.disturbed &&
		all.worst_hand_off > hand_off_bound(run)) {
		checker_violation(run->checker, "progress (a release wakes the next)", all.key,
			"it took %.3f ms, at most %.3f are allowed",
			(double)all.worst_hand_off / 1e6, (double)hand_off_bound(run) / 1e6);
	}
}

/* Section 5, Silence: how long a master is silent before it is suspect, if nobody has been
 * suspected wrongly for a while; and how long its queue takes to move. */
static span_ns suspicion_bound(const struct run *run) {
	const span_ns slowest = 4 * (2 * progress_hop(run) + SPAN_MS);
	return 2 * (slowest > 6 * SPAN_MS ? slowest : 6 * SPAN_MS);
}

static span_ns move_bound(const struct run *run) {
	return 5 * SPAN_MS + 8 * progress_hop(run);
}

static void check_order(const struct progress *all, bool known) {
	for (uint32_t i = 1; i < PROBES && known && !all->disturbed; i++) {
		if (all->probes[i].granted < all->probes[i - 1].granted) {
			checker_violation(all->run->checker, "progress (order at the next home)",
				all->key, "L%" PRIu32 " has the key before L%" PRIu32,
				all->probes[i].lock, all->probes[i - 1].lock);
		}
	}
}

/* A master hangs while others wait at the other nodes for a key whose home it may be. If the key is
 * held until all nodes know of that, they are served in their order, too. */
static void demand_silent_home(struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	const span_ns most = span_grow(hand_off_bound(run) + suspicion_bound(run) +
		move_bound(run), 3 * o->drift_ppm), apart = 8 * progress_hop(run) + 6 * SPAN_MS;
	bool known = prng_chance(&run->late, 1, 2);
	const uint32_t masters = config_masters(checker_newest(run->checker));
	uint32_t hangs = 0;
	if (run->profile.theme != THEME_hangs || masters < 3 || 2 * most > o->request_timeout ||
		!members_node(run, (uint32_t)prng_below(&run->late, masters), &hangs)) {
		return;
	}
	/* What wrong suspicions have doubled is halved again. */
	sim_run_for(run->sim, 10 * SPAN_S);
	struct progress all = { .run = run, .count = PROBES,
		.key = (uint32_t)prng_below(&run->late, run->profile.keys),
		.first_holds = PROBES * apart + (known ? o->request_timeout / 4 + most : 0) };
	for (uint32_t i = 0; i < PROBES; i++) {
		uint32_t node = hangs;
		while (node == hangs) {
			node = members_any(run);
		}
		probe_start(&all, i, node, 30 * SPAN_S);
		sim_run_for(run->sim, apart);
	}
	sim_node_pause(run->sim, hangs, INT64_MAX);
	const span_ns limit = PROBES * (most + hold(run)) + all.first_holds;
	if (!sim_run_until(run->sim, probes_done, &all, limit) || all.served != PROBES ||
		(!all.disturbed && all.worst_hand_off > most)) {
		checker_violation(run->checker, "progress (nobody waits for a silent home)",
			all.key, "n%" PRIu32 " hangs, and %" PRIu32 " of %d had the key within "
			"%.3f ms; a hand-off took %.3f ms, at most %.3f are allowed", hangs + 1,
			all.served, PROBES, (double)limit / 1e6, (double)all.worst_hand_off / 1e6,
			(double)most / 1e6);
	}
	check_order(&all, known);
	run->counts[RUN_HOME_SILENT]++;
	sim_node_continue(run->sim, hangs);
	sim_run_for(run->sim, 2 * o->request_timeout);
}

/* What was granted while a master lied is over; from now on locks are judged. */
static void demand_after_lies(struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	span_ns longest = run->born.max_lease > o->max_lease ? run->born.max_lease : o->max_lease;
	members_demand(run);
	demand_answers(run);
	sim_run_for(run->sim, run->profile.pause_max + span_grow(2 * longest, 3 * o->drift_ppm) +
		run->profile.active);
	checker_honest(run->checker);
	demand_single(run);
	demand_queue(run);
	terms_demand(run);
	replicas_demand(run);
	members_demand_change(run);
	replicas_demand(run);
	demand_single(run);
}

void progress_demand(struct run *run) {
	if (!liar_master_over(run)) {
		return;
	}
	if (run->profile.lying_master) {
		demand_after_lies(run);
		return;
	}
	members_demand(run);
	if (run->renewing) {
		calm_demand(run);
	}
	sim_run_for(run->sim, faults_last_write(run));
	demand_answers(run);
	sim_run_for(run->sim, 2 * run->profile.sim.request_timeout);
	checker_settled(run->checker);
	masters_demand(run);
	/* Requests in connections that were cut arrive. */
	sim_run_for(run->sim, run->profile.pause_max);
	span_ns longest = run->born.max_lease > run->profile.sim.max_lease ? run->born.max_lease
		: run->profile.sim.max_lease;
	/* Old leases end, also those from before a change of the timing. */
	sim_run_for(run->sim, span_grow(longest, 3 * run->profile.sim.drift_ppm));
	demand_single(run);
	demand_queue(run);
	terms_demand(run);
	watch_event_demand(run);
	replicas_demand(run);
	if (run->profile.operators && run->profile.theme != THEME_forced) {
		members_demand_change(run);
		replicas_demand(run);
		demand_single(run);
	}
	demand_old_keys(run);
	demand_silent_home(run);
}
