/* faults.c: what goes wrong in a cluster, at times drawn from the seed. */
#include "faults.h"

static uint32_t any_node(struct run *run) {
	return (uint32_t)prng_below(&run->prng, sim_nodes(run->sim));
}

static void start_again(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	uint32_t node = (uint32_t)arg;
	if (!sim_node_running(run->sim, node) && !(run->destroyed & 1u << node)) {
		sim_node_start(run->sim, node);
	}
}

static void start_later(struct run *run, uint32_t node) {
	span_ns down = run->profile.down_long &&
		prng_chance(&run->prng, 1, 3) ? run->profile.down_long : run->profile.down_max;
	sim_at(run->sim, sim_now(run->sim) + run_scale(run, SPAN_MS, down), start_again, run, node);
}

static void kill(struct run *run, uint32_t node) {
	sim_node_kill(run->sim, node, prng_chance(&run->prng, 1, 4));
	start_later(run, node);
}

/* Whether another initial master is born, too. If the only one that is born loses its files, the
 * others have pledged its former identity, and the cluster is never born. */
static bool another_is_born(const struct run *run, uint32_t node) {
	const struct config *newest = checker_newest(run->checker);
	for (uint32_t i = 0; i < newest->node_count; i++) {
		const uint32_t other = sim_node_named(run->sim, newest->nodes[i].name);
		const struct durable *disk = sim_node_durable(run->sim, other);
		if (other != node && disk->config.epoch > 0 && !disk->pledged) {
			return true;
		}
	}
	return false;
}

/* Whether the cluster can bear the loss of the node's files. At most one may be lost of every set
 * of masters that may still be asked for what it knows, or that is being proposed. If operators go
 * below that, the protocol promises nothing. */
static bool may_lose(const struct run *run, uint32_t node) {
	const struct config *newest = checker_newest(run->checker);
	if (!newest || run->profile.masters_least < 3 || newest->epoch == run->lost_in) {
		return false;
	}
	for (uint32_t i = 0; i < newest->node_count; i++) {
		bool master;
		if (!checker_in_config(run->checker, newest,
			sim_node_named(run->sim, newest->nodes[i].name), &master)) {
			/* A master that lost its files has not been replaced. */
			return false;
		}
	}
	bool complete = checker_config_complete(run->checker, newest);
	/* The handover still asks these masters. */
	for (uint32_t i = 0; i < newest->previous_master_count && !complete; i++) {
		const struct durable *disk = sim_node_durable(run->sim,
			sim_node_named(run->sim, newest->previous_masters[i].name));
		if (!id128_equal(disk->node_id, newest->previous_masters[i].id)) {
			return false;
		}
	}
	return sim_node_durable(run->sim, node)->config.epoch > 0 && another_is_born(run, node);
}

static void lose_files(struct run *run, uint32_t node) {
	if (!may_lose(run, node)) {
		return;
	}
	run->lost_in = checker_newest(run->checker)->epoch;
	run->counts[RUN_FILES_LOST]++;
	sim_node_kill(run->sim, node, prng_chance(&run->prng, 1, 4));
	sim_node_lose_files(run->sim, node);
	start_later(run, node);
}

static void kill_later(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	if (!run->healing && sim_node_running(run->sim, (uint32_t)arg)) {
		kill(run, (uint32_t)arg);
	}
}

static void drain(struct run *run, uint32_t node) {
	if (!sim_node_running(run->sim, node)) {
		return;
	}
	sim_node_drain(run->sim, node,
		prng_chance(&run->prng, 1, 6) ? (uint32_t)prng_below(&run->prng, 3) : UINT32_MAX);
	if (prng_chance(&run->prng, 1, 8)) {
		sim_node_lose_side_file(run->sim, node);
	}
	start_later(run, node);
	/* The node dies again soon after, because a side file serves only one start. */
	if (prng_chance(&run->prng, 1, 8)) {
		start_later(run, node);
	}
}

/* Each call restarts the next node, with about the same pause before the one that follows. */
static void rolling(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	uint32_t left = (uint32_t)(arg >> 1);
	bool drains = arg & 1;
	if (run->healing || left == 0) {
		return;
	}
	uint32_t node = run->rolling++ % sim_nodes(run->sim);
	if (drains) {
		drain(run, node);
	} else {
		kill(run, node);
	}
	span_ns gap = run_scale(run, run->profile.sim.request_timeout,
		run->profile.down_max + 3 * run->profile.sim.request_timeout);
	sim_at(run->sim, sim_now(run->sim) + gap, rolling, run, (uint64_t)(left - 1) << 1 | drains);
}

static void uncut(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	sim_cut(run->sim, (uint32_t)(arg >> 32), (uint32_t)arg, false);
}

static void cut_for(struct run *run, uint32_t from, uint32_t to, span_ns span) {
	if (from != to) {
		sim_cut(run->sim, from, to, true);
		sim_at(run->sim, sim_now(run->sim) + span, uncut, run, (uint64_t)from << 32 | to);
	}
}

static void split(struct run *run) {
	uint64_t side = prng_next(&run->prng);
	span_ns span = run_scale(run, 10 * SPAN_MS, run->profile.cut_max);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		for (uint32_t j = 0; j < sim_nodes(run->sim); j++) {
			if ((side >> i & 1) != (side >> j & 1)) {
				cut_for(run, i, j, span);
			}
		}
	}
}

static void isolate(struct run *run) {
	uint32_t node = any_node(run);
	span_ns span = run_scale(run, 10 * SPAN_MS, run->profile.cut_max);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		cut_for(run, i, node, span);
		cut_for(run, node, i, span);
	}
}

static void disk_mends(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	span_ns slow = run->healing ? 0 : run->profile.disk_slow;
	sim_node_disk(run->sim, (uint32_t)arg, run->profile.sim.disk_min,
		slow ? slow : run->profile.sim.disk_max, false);
}

/* The longest time that a write takes while the disk is in trouble. */
#define DISK_TROUBLE (500 * SPAN_MS)
/* When a node repeats a write that failed. */
#define DISK_AGAIN (100 * SPAN_MS)

span_ns faults_last_write(const struct run *run) {
	span_ns last = run->profile.fault_weight[FAULT_DISK]
		? DISK_TROUBLE + DISK_AGAIN + run->profile.sim.disk_max : 0;
	return last > run->profile.disk_slow ? last : run->profile.disk_slow;
}

static void disk(struct run *run) {
	uint32_t node = any_node(run);
	bool fails = prng_chance(&run->prng, 1, 2);
	sim_trace_fault(run->sim, fails ? "disk fails" : "disk is slow", node, TRACE_NONE, 0);
	sim_node_disk(run->sim, node, SPAN_MS, DISK_TROUBLE, fails);
	sim_at(run->sim, sim_now(run->sim) + run_scale(run, 50 * SPAN_MS, SPAN_S), disk_mends, run,
		node);
}

/* Rates stay within the bound. Where a node may go astray, one of its two clocks, always the same
 * one, leaves it. */
static void rate(struct run *run, bool heal) {
	uint32_t node = any_node(run);
	int64_t top = (int64_t)run->profile.sim.drift_ppm * 1000 - 1000;
	int64_t boot = prng_chance(&run->prng, 1, 2) ? 0 : top;
	int64_t raw = prng_chance(&run->prng, 1, 2) ? boot : prng_between(&run->prng, 0, top);
	if (run->profile.astray && !heal) {
		int64_t far = prng_between(&run->prng, -200000000, 600000000);
		if (node % 2) {
			boot = far;
		} else {
			raw = far;
		}
	}
	sim_node_rates(run->sim, node, boot, raw);
}

static void slow_link(struct run *run) {
	uint32_t from = any_node(run);
	uint32_t to = any_node(run);
	sim_link_delay(run->sim, from, to, prng_chance(&run->prng, 1, 3) ? 0
		: run_scale(run, 0, run->profile.sim.request_timeout));
}

static void kill_some(struct run *run) {
	bool all = prng_chance(&run->prng, 1, 3);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		if (all || prng_chance(&run->prng, 1, 2)) {
			kill(run, i);
		}
	}
}

static void client_fault(struct run *run, enum fault fault) {
	struct caller *c = &run->callers[prng_below(&run->prng, run->profile.clients)];
	span_ns span = run_scale(run, SPAN_MS, run->profile.pause_max);
	if (fault == FAULT_CLIENT_PAUSE) {
		sim_actor_pause(run->sim, &c->actor, span);
	} else if (fault == FAULT_CLIENT_SUSPEND) {
		sim_actor_suspend(run->sim, &c->actor, span);
	} else if (c->session) {
		sim_session_cut(c->session, span);
	}
}

/* The two nodes are drawn in statements of their own: the compiler chooses the order in which
 * arguments are evaluated, and a seed has to be one run. */
static void befall(struct run *run, enum fault fault) {
	struct sim *sim = run->sim;
	uint32_t node = any_node(run);
	uint32_t other = any_node(run);
	switch (fault) {
	case FAULT_KILL:
		kill(run, node);
		break;
	case FAULT_KILL_SOME:
		kill_some(run);
		break;
	case FAULT_ROLLING:
	case FAULT_ROLLING_DRAIN:
		rolling(run, (uint64_t)(sim_nodes(run->sim) + prng_below(&run->prng, 3)) << 1 |
			(fault == FAULT_ROLLING_DRAIN));
		break;
	case FAULT_DRAIN:
		drain(run, node);
		break;
	case FAULT_PAUSE:
		sim_node_pause(sim, node, run_scale(run, SPAN_MS, run->profile.pause_max));
		break;
	case FAULT_SUSPEND:
		sim_node_suspend(sim, node, run_scale(run, SPAN_MS, run->profile.pause_max));
		break;
	case FAULT_CUT:
		cut_for(run, node, other, run_scale(run, 10 * SPAN_MS, run->profile.cut_max));
		break;
	case FAULT_ISOLATE:
		isolate(run);
		break;
	case FAULT_SPLIT:
		split(run);
		break;
	case FAULT_CLOSE:
		sim_link_close(sim, node, other, prng_chance(&run->prng, 1, 2));
		break;
	case FAULT_SLOW_LINK:
		slow_link(run);
		break;
	case FAULT_DISK:
		disk(run);
		break;
	case FAULT_RATE:
		rate(run, false);
		break;
	case FAULT_CLIENT_PAUSE:
	case FAULT_CLIENT_SUSPEND:
	case FAULT_CLIENT_CUT:
		client_fault(run, fault);
		break;
	case FAULT_LOSE_FILES:
		lose_files(run, node);
		break;
	case FAULTS:
		break;
	}
}

/* A node that adopts the new epoch forgets; a node that remembers is killed before it is asked; and
 * a node that begins to vote in the epoch has to begin again. */
static void new_epoch(struct run *run, const struct config *newest) {
	span_ns about = 2 * run->profile.sim.disk_max + 4 * run->profile.sim.delay_max;
	for (uint32_t i = 0; i < newest->previous_master_count + config_masters(newest); i++) {
		const struct config_node *node = i < newest->previous_master_count
			? &newest->previous_masters[i]
			: &newest->nodes[i - newest->previous_master_count];
		uint32_t at = sim_node_named(run->sim, node->name);
		if (prng_chance(&run->prng, 1, 2)) {
			sim_at(run->sim, sim_now(run->sim) + run_scale(run, 0, about), kill_later,
				run, at);
		}
	}
}

/* Adoption takes a few messages. This runs often enough to be in the middle of it. */
static void watch_epochs(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	const struct config *newest = checker_newest(run->checker);
	if (run->healing) {
		return;
	}
	if (newest && newest->epoch > run->epoch_seen) {
		run->epoch_seen = newest->epoch;
		if (newest->epoch > 1 && prng_below(&run->prng, 100) < run->profile.epoch_percent) {
			new_epoch(run, newest);
		}
	}
	sim_at(run->sim, sim_now(run->sim) + 200 * SPAN_US, watch_epochs, run, 0);
}

static void next_fault(void *ctx, uint64_t arg) {
	(void)arg;
	struct run *run = ctx;
	const struct profile *p = &run->profile;
	uint64_t total = 0;
	for (int i = 0; i < FAULTS; i++) {
		total += p->fault_weight[i];
	}
	if (run->healing || total == 0) {
		return;
	}
	uint64_t at = prng_below(&run->prng, total);
	int fault = 0;
	for (; at >= p->fault_weight[fault]; fault++) {
		at -= p->fault_weight[fault];
	}
	befall(run, (enum fault)fault);
	sim_at(run->sim, sim_now(run->sim) + run_scale(run, p->fault_every / 4, 2 * p->fault_every),
		next_fault, run, 0);
}

void faults_start(struct run *run) {
	sim_adversary_set(run->sim, &run->profile.adversary);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		disk_mends(run, i);
	}
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->prng, 0, SPAN_S), next_fault, run,
		0);
	if (run->profile.epoch_percent) {
		watch_epochs(run, 0);
	}
}

/* What was lost or overtaken within a link is made good when links break, as after any failure of
 * TCP. */
bool faults_worse_than_tcp(const struct sim_adversary *a) {
	return a->lose_ppm || a->clock_ppm || a->duplicate_ppm || a->reorder_ppm ||
		a->action == SIM_TARGET_LOSE || a->action == SIM_TARGET_LATE;
}

void faults_heal(struct run *run) {
	struct sim *sim = run->sim;
	bool links = faults_worse_than_tcp(&run->profile.adversary);
	sim_trace_fault(sim, "HEAL", TRACE_NONE, TRACE_NONE, 0);
	sim_adversary_set(sim, NULL);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		for (uint32_t j = 0; j < sim_nodes(run->sim); j++) {
			sim_cut(sim, i, j, false);
			sim_link_delay(sim, i, j, 0);
			if (links && i < j) {
				sim_link_close(sim, i, j, false);
			}
		}
		disk_mends(run, i);
		sim_node_continue(sim, i);
		start_again(run, i);
		if (run->profile.astray) {
			sim_node_rates(sim, i, 0, 0);
		}
	}
}
