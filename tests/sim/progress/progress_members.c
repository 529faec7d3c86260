/* progress_members.c: after the heal (docs/protocol.md, section 6) operators are answered, and a
 * node that lost its files gets its place back. Then all members have the same configuration, its
 * masters vote, its replicas follow, and the others know that they are out. A change that is asked
 * for now is made. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "faults.h"
#include "progress.h"

bool members_node(struct run *run, uint32_t at, uint32_t *out_node) {
	const struct config *newest = checker_newest(run->checker);
	if (at >= newest->node_count) {
		return false;
	}
	*out_node = sim_node_named(run->sim, newest->nodes[at].name);
	return true;
}

uint32_t members_any(struct run *run) {
	uint32_t node = 0;
	CHECK(members_node(run,
		(uint32_t)prng_below(&run->prng, checker_newest(run->checker)->node_count), &node));
	return node;
}

/* Only masters propose changes. */
static uint32_t a_master(struct run *run) {
	uint32_t node = 0;
	do {
		CHECK(members_node(run, (uint32_t)prng_below(&run->prng,
			config_masters(checker_newest(run->checker))), &node));
	} while (run->destroyed & 1u << node);
	return node;
}

static span_ns lease_over(const struct run *run) {
	return span_grow(2 * run->born.max_lease, 3 * run->born.drift_ppm);
}

/* A member that has another identity than the configuration says; TRACE_NONE: there is none. */
static uint32_t stranger(const struct run *run, bool masters_only) {
	const struct config *newest = checker_newest(run->checker);
	bool master;
	for (uint32_t i = 0; newest && i < newest->node_count; i++) {
		uint32_t node = sim_node_named(run->sim, newest->nodes[i].name);
		if (!checker_in_config(run->checker, newest, node, &master) &&
			(!masters_only || newest->nodes[i].master)) {
			return node;
		}
	}
	return TRACE_NONE;
}

struct trouble {
	struct run *run;
	uint32_t node;
	/* NULL: there is no trouble. */
	const char *text;
};

static const char *member_trouble(struct run *run, uint32_t node, const struct config *newest,
	bool master) {
	struct core_status s;
	core_status(sim_node_core(run->sim, node), sim_node_clock(run->sim, node), &s);
	const struct config *own = core_config(sim_node_core(run->sim, node));
	if (s.epoch != newest->epoch || s.config_hash != config_hash(newest) ||
		!id128_equal(own->cluster_id, newest->cluster_id)) {
		return "has not adopted the newest configuration";
	}
	if (s.change.step) {
		/* What the change decides would come later. */
		return "still makes a change, whose operator may have left";
	}
	if (master && sim_node_durable(run->sim, node)->decree_config.epoch > newest->epoch) {
		/* It finishes that itself, and would take nodes out while they are examined. */
		return "has accepted a configuration that nobody has finished yet";
	}
	if (master) {
		return s.state != CORE_VOTING ? "does not vote" : !(s.settled && s.complete)
			? "does not know that the configuration is complete" : NULL;
	}
	return s.state != CORE_FOLLOWING ? "is a replica and not in the state following"
		: s.following < 0 ? "follows nobody" :
		s.catching_up ? "still catches up" : NULL;
}

/* There is too little proof (section 6): fewer than a quorum of the masters that this node knows
 * have kept their files, and nobody else is believed. A node that is no master counts itself. */
static bool cannot_know(struct run *run, uint32_t node) {
	const struct config *own = core_config(sim_node_core(run->sim, node));
	bool master = false;
	uint32_t left = !(checker_in_config(run->checker, own, node, &master) && master);
	for (uint32_t i = 0; i < config_masters(own); i++) {
		uint32_t other = sim_node_named(run->sim, own->nodes[i].name);
		left += other != TRACE_NONE && !(run->destroyed & 1u << other) &&
			checker_in_config(run->checker, own, other, &master);
	}
	return left < config_quorum(own);
}

static bool all_agree(void *ctx) {
	struct trouble *t = ctx;
	struct run *run = t->run;
	const struct config *newest = checker_newest(run->checker);
	t->text = "was never born";
	for (t->node = 0; newest && t->node < sim_nodes(run->sim); t->node++) {
		bool master;
		struct core *core = sim_node_core(run->sim, t->node);
		if (run->destroyed & 1u << t->node) {
			continue;
		}
		if (checker_in_config(run->checker, newest, t->node, &master)) {
			t->text = core ? member_trouble(run, t->node, newest, master)
				: "does not run";
		} else if (run->profile.theme != THEME_forced) {
			struct core_status s;
			core_status(core, sim_node_clock(run->sim, t->node), &s);
			t->text = s.state != CORE_OUTSIDE &&
				!cannot_know(run, t->node) ? "does not know that it is out" : NULL;
		} else {
			t->text = NULL;
		}
		if (t->text) {
			return false;
		}
	}
	return newest != NULL;
}

static _Noreturn void members_violation(struct run *run, const char *check,
	const struct trouble *t) {
	struct core_status s = { 0 };
	if (t->node < sim_nodes(run->sim) && sim_node_core(run->sim, t->node)) {
		core_status(sim_node_core(run->sim, t->node), sim_node_clock(run->sim, t->node),
			&s);
	}
	const struct config *newest = checker_newest(run->checker);
	checker_violation(run->checker, check, TRACE_NONE, "n%" PRIu32 " %s: state %d, epoch %"
		PRIu64 " of %" PRIu64 ", waits for %s, %.3f s left, missing %" PRIx64
		", following %d, change under way there: %s",
		t->node + 1, t->text, (int)s.state, s.epoch, newest ? newest->epoch : 0,
		s.waits_for ? s.waits_for : "nothing", (double)s.left / 1e9, s.missing, s.following,
		s.change.step ? s.change.step : "none");
}

static bool operators_done(void *ctx) {
	const struct run *run = ctx;
	for (uint32_t i = 0; i < run->profile.operators; i++) {
		if (run->operators[i].pending) {
			return false;
		}
	}
	return true;
}

static bool driven_answered(void *ctx) {
	const struct operator *op = ctx;
	return op->answered || op->pending == 0;
}

/* Asks until the change is done, because others may be under way, and a change is not complete at
 * once. One of those may take out the node that this change is about; then there is nothing left to
 * ask for. */
static void drive(struct run *run, struct operator *op, uint32_t number, span_ns limit,
	const char *check) {
	struct wanted_change wanted = op->wanted;
	operator_init(op, run, number);
	op->wanted = wanted;
	int64_t end = sim_now(run->sim) + limit;
	do {
		if (!liar_master_outvoted(run)) {
			/* What a lying master has proposed has come into force, perhaps without any
			 * other master. */
			return;
		}
		operator_ask(op, a_master(run));
		if (!sim_run_until(run->sim, driven_answered, op, limit)) {
			checker_violation(run->checker, check, TRACE_NONE,
				"a change asked of n%" PRIu32 " is not answered", op->node + 1);
		}
		const char *name = wanted.name == TRACE_NONE ? NULL
			: sim_node_name(run->sim, wanted.name);
		if (op->error == 0 ||
			(name && config_find_name(checker_newest(run->checker), name) < 0)) {
			return;
		}
		sim_run_for(run->sim, run->born.request_timeout);
	} while (sim_now(run->sim) < end);
	checker_violation(run->checker, check, TRACE_NONE,
		"a change of kind %d is still refused: %s", (int)wanted.kind,
		pawl_error_code(op->error));
}

static void repair(struct run *run) {
	struct operator op;
	/* Masters come back without an operator. Replicas do not, because the risk of a mistake is
	 * not worth it. */
	if (run->profile.sim.auto_replace) {
		for (int i = 0; i < 40 && stranger(run, true) != TRACE_NONE; i++) {
			sim_run_for(run->sim, lease_over(run) / 4 + run->born.request_timeout);
		}
		if (stranger(run, true) != TRACE_NONE) {
			checker_violation(run->checker,
				"masters without files come back by themselves", TRACE_NONE,
				"n%" PRIu32 " has not", stranger(run, true) + 1);
		}
	}
	for (uint32_t node; (node = stranger(run, false)) != TRACE_NONE;) {
		op.wanted = (struct wanted_change){ .kind = CHANGE_REPLACE, .name = node,
			.other = node };
		drive(run, &op, 300, 10 * lease_over(run) + 20 * SPAN_S,
			"progress (a node that lost its files is replaced)");
		if (op.error == 0 && stranger(run, false) == node) {
			checker_violation(run->checker, "honest answers (changes)", TRACE_NONE,
				"n%" PRIu32 " said that n%" PRIu32
				" has its place back, but it has not", op.node + 1, node + 1);
		}
	}
}

void members_remove(struct run *run, uint32_t node) {
	struct operator op =
		{ .wanted = { .kind = CHANGE_REMOVE, .name = node, .other = TRACE_NONE } };
	drive(run, &op, 302, 10 * lease_over(run) + 20 * SPAN_S,
		"progress (a node that lies is taken out)");
}

/* What operators asked for holds from now on. */
static void take_timing(struct run *run) {
	const struct config *newest = checker_newest(run->checker);
	struct sim_options *o = &run->profile.sim;
	o->max_lease = newest->max_lease;
	o->request_timeout = newest->request_timeout;
	o->promise_timeout = newest->promise_timeout;
	o->drift_ppm = newest->drift_ppm;
}

static void demand_agreement(struct run *run) {
	struct trouble t = { .run = run };
	if (!sim_run_until(run->sim, all_agree, &t,
		3 * lease_over(run) + 40 * run->born.request_timeout + 4 * SPAN_S)) {
		members_violation(run, "progress (members agree)", &t);
	}
	take_timing(run);
}

void members_demand(struct run *run) {
	if (!sim_run_until(run->sim, operators_done, run, 6 * lease_over(run) + 30 * SPAN_S)) {
		checker_violation(run->checker, "progress (every change is answered)", TRACE_NONE,
			"an operator still waits");
	}
	if (run->profile.lying_master) {
		/* An operator who still waited may have let the liar in again. */
		liar_master_remove(run);
	}
	if (run->profile.operators) {
		sim_run_for(run->sim, 4 * run->born.request_timeout);
	}
	if (!sim_run_until(run->sim, disaster_over, run, 10 * lease_over(run) + 10 * SPAN_S)) {
		checker_violation(run->checker, "progress (force)", TRACE_NONE,
			"the operator could not start over");
	}
	repair(run);
	demand_agreement(run);
}

static bool is_master(const struct config *config, uint32_t at) {
	return config->nodes[at].master;
}

/* Each call makes another kind of change, always one that keeps a quorum of the nodes that are
 * there. */
static struct wanted_change next_wanted(struct run *run) {
	const struct config *newest = checker_newest(run->checker);
	struct wanted_change wanted = { .kind = CHANGE_SET_TIMING, .name = TRACE_NONE,
		.other = TRACE_NONE, .promise_timeout = newest->promise_timeout + SPAN_MS };
	uint32_t at = (uint32_t)prng_below(&run->prng, newest->node_count),
		masters = config_masters(newest);
	uint32_t node = sim_node_named(run->sim, newest->nodes[at].name);
	if (!is_master(newest, at) && prng_chance(&run->prng, 1, 2)) {
		return (struct wanted_change){ .kind = CHANGE_REPLACE,
			.name = sim_node_named(run->sim, newest->nodes[0].name), .other = node };
	}
	if (!is_master(newest, at) && masters < MASTERS_MAX) {
		return (struct wanted_change){ .kind = CHANGE_PROMOTE, .name = node,
			.other = TRACE_NONE };
	}
	if (is_master(newest, at) && masters > 1 && prng_chance(&run->prng, 2, 3)) {
		return (struct wanted_change){ .kind = CHANGE_DEMOTE, .name = node,
			.other = TRACE_NONE };
	}
	return wanted;
}

void members_demand_change(struct run *run) {
	struct operator op = { .wanted = next_wanted(run) };
	struct pulse pulse;
	uint32_t node = members_any(run);
	while (node == op.wanted.name && checker_newest(run->checker)->node_count > 1) {
		node = members_any(run);
	}
	bool stays = node != op.wanted.name;
	if (stays) {
		pulse_start(&pulse, run, node);
	}
	drive(run, &op, 301, 4 * run->profile.sim.request_timeout + 2 * SPAN_S,
		"progress (a change asked for now is made)");
	if (stays) {
		pulse_end(&pulse, 12 * progress_hop(run) + 2 * run->profile.sim.session_delay_max +
			4 * run->profile.sim.disk_max + 5 * SPAN_MS);
	}
	demand_agreement(run);
}
