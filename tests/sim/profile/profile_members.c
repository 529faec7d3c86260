/* profile_members.c: the themes of replicas and of changes of the set. */
#include "profile.h"

#define KIND(name) MESSAGE_BIT(MESSAGE_##name)

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

static void sizes(struct profile *p, struct prng *r) {
	struct sim_options *o = &p->sim;
	o->delay_min = 100 * SPAN_US;
	o->delay_max = prng_between(r, 200 * SPAN_US, 3 * SPAN_MS);
	o->session_delay_max = prng_between(r, 40 * SPAN_US, SPAN_MS);
	o->request_timeout = prng_between(r, 20 * SPAN_MS, 60 * SPAN_MS);
	o->promise_timeout = 2 * o->request_timeout + prng_between(r, 0, 20 * SPAN_MS);
	o->max_lease = prng_between(r, 100 * SPAN_MS, 600 * SPAN_MS);
	o->reconnect_max = prng_between(r, 2 * SPAN_MS, 10 * SPAN_MS);
	o->disk_max = prng_between(r, 200 * SPAN_US, 4 * SPAN_MS);
	o->limits.lease_min = p->lease_min = 20 * SPAN_MS;
	o->replication_interval = prng_between(r, SPAN_MS, 10 * SPAN_MS);
	p->lease_max = prng_chance(r, 1, 2) ? o->max_lease
		: prng_between(r, 30 * SPAN_MS, o->max_lease);
	p->clients = 2 + weight(r, 3);
	p->keys = 1 + weight(r, 3);
	p->think_min = 100 * SPAN_US;
	p->think_max = prng_between(r, 2 * SPAN_MS, 20 * SPAN_MS);
	p->wait_max = prng_between(r, 5 * SPAN_MS, 500 * SPAN_MS);
	p->active = prng_between(r, 2 * SPAN_S, 5 * SPAN_S);
	p->idle_weight[HABIT_GET] = 6 + weight(r, 10);
	p->idle_weight[HABIT_MOVE] = p->hold_weight[HABIT_MOVE] = 3 + weight(r, 5);
	p->down_max = prng_between(r, SPAN_MS,
		prng_chance(r, 1, 3) ? 2 * o->max_lease : 30 * SPAN_MS);
	p->cut_max = p->pause_max = prng_between(r, 10 * SPAN_MS, 2 * o->max_lease);
	p->fault_every = prng_between(r, 2 * o->request_timeout, 20 * o->request_timeout);
	p->operate_every = prng_between(r, 2 * o->request_timeout, 12 * o->request_timeout);
}

static void set(struct profile *p, struct prng *r, uint32_t least, uint32_t most,
	uint32_t further_most) {
	p->sim.masters = least + weight(r, most - least);
	p->sim.further = weight(r, further_most);
	p->masters_least = least;
	p->masters_most = most;
}

static void any_change(struct profile *p, struct prng *r) {
	p->change_weight[CHANGE_ADD_REPLICA] = 8;
	p->change_weight[CHANGE_PROMOTE] = 2 + weight(r, 6);
	p->change_weight[CHANGE_DEMOTE] = 1 + weight(r, 4);
	p->change_weight[CHANGE_REMOVE] = weight(r, 2);
	p->change_weight[CHANGE_REPLACE] = 1 + weight(r, 5);
	p->change_weight[CHANGE_SET_NODES] = weight(r, 3);
	p->change_weight[CHANGE_SET_TIMING] = weight(r, 3);
}

static void target(struct profile *p, struct prng *r, uint32_t most_ppm) {
	static const message_set kinds[] = { KIND(COPY_AHEAD), KIND(COPY_AHEAD_ANSWER),
		KIND(SNAPSHOT) | KIND(SNAPSHOT_RECORD),
		KIND(SNAPSHOT_END), KIND(DECREE_PREPARE), KIND(DECREE_PROMISE), KIND(DECREE_ACCEPT),
		KIND(DECREE_ACCEPT), KIND(DECREE_ACCEPTED), KIND(DECREE_ACCEPTED),
		KIND(CONFIG), KIND(CONFIG), KIND(SNAPSHOT_READY), KIND(COMMIT), KIND(EXTEND),
		KIND(SNAPSHOT) | KIND(SNAPSHOT_END) };
	struct sim_adversary *a = &p->adversary;
	a->kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
	a->action = (enum sim_target_action)(1 + prng_below(r, SIM_TARGET_ACTIONS - 1));
	a->target_ppm = 20000 + weight(r, most_ppm);
	a->target_max = prng_between(r, p->sim.request_timeout / 2, 2 * p->sim.max_lease);
	a->late_max = p->sim.max_lease;
}

static void some_faults(struct profile *p, struct prng *r) {
	static const enum fault faults[] = { FAULT_KILL, FAULT_KILL_SOME, FAULT_ROLLING,
		FAULT_DRAIN, FAULT_PAUSE, FAULT_CUT, FAULT_ISOLATE, FAULT_SPLIT, FAULT_CLOSE,
		FAULT_SLOW_LINK, FAULT_DISK, FAULT_CLIENT_PAUSE };
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		p->fault_weight[faults[i]] = prng_chance(r, 1, 3) ? 1 + weight(r, 4) : 0;
	}
}

/* Leases are as long as they may be, and used to their end, while operators make them shorter and
 * replace every node that knows them. */
static void shorten(struct profile *p, struct prng *r) {
	p->sim.max_lease = p->lease_min = p->lease_max = prng_between(r, 400 * SPAN_MS,
		800 * SPAN_MS);
	p->change_weight[CHANGE_SET_TIMING] = 10;
	p->operate_every = 4 * p->sim.request_timeout;
	p->operators = 1;
	p->epoch_percent = 70 + weight(r, 30);
	p->down_max = 5 * SPAN_MS;
	p->keys = 1;
	p->hold_on_percent = 0;
	p->hold_weight[HABIT_EXTEND] = p->hold_weight[HABIT_RELEASE] = 1;
	p->hold_weight[HABIT_IDLE] = 100;
	p->wait_percent = 70;
	/* So that many nodes die with the new configuration on disk, but not in force yet. */
	p->sim.disk_max = 8 * SPAN_MS;
	p->adversary.kinds = KIND(CONFIG);
	p->adversary.action = SIM_TARGET_KILL_RECEIVER;
	p->adversary.target_ppm = 100000 + weight(r, 300000);
}

/* There are several decrees for one epoch. Their proposers hear few answers, or die, or find
 * acceptors that forgot what was not on disk. */
static void rivals(struct profile *p, struct prng *r) {
	static const message_set kinds[] = { KIND(DECREE_ACCEPTED), KIND(DECREE_ACCEPT),
		KIND(DECREE_ACCEPTED) | KIND(DECREE_ACCEPT), KIND(DECREE_ACCEPTED) | KIND(CONFIG),
		KIND(DECREE_PROMISE) | KIND(DECREE_ACCEPTED) };
	static const enum sim_target_action actions[] = { SIM_TARGET_LOSE, SIM_TARGET_LOSE,
		SIM_TARGET_LATE, SIM_TARGET_DELAY, SIM_TARGET_CLOSE, SIM_TARGET_KILL_RECEIVER,
		SIM_TARGET_KILL_SENDER };
	set(p, r, 3, 5, 2);
	p->operators = 3;
	p->operate_every = p->sim.request_timeout / 2;
	/* Such a change is never the same twice. */
	p->change_weight[CHANGE_SET_TIMING] = 10;
	p->sim.disk_max = prng_chance(r, 1, 2) ? 10 * SPAN_MS : p->sim.disk_max;
	p->down_max = 10 * SPAN_MS;
	p->adversary.kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
	p->adversary.action = actions[prng_below(r, sizeof actions / sizeof *actions)];
	p->adversary.target_ppm = 100000 + weight(r, 500000);
	p->adversary.target_max = prng_between(r, p->sim.request_timeout,
		4 * p->sim.request_timeout);
}

static void draw_restarts_in_change(struct profile *p, struct prng *r) {
	bool files = prng_chance(r, 2, 3);
	set(p, r, files ? 3 : 1, files ? 5 : 3, 3);
	p->operators = 1;
	any_change(p, r);
	p->change_weight[CHANGE_REPLACE] += 4;
	p->fault_weight[FAULT_KILL] = 4;
	p->fault_weight[FAULT_KILL_SOME] = weight(r, 2);
	p->fault_weight[FAULT_ROLLING] = weight(r, 2);
	p->fault_weight[FAULT_DRAIN] = weight(r, 2);
	p->fault_weight[FAULT_LOSE_FILES] = files ? 4 : 0;
	p->sim.auto_replace = files && prng_chance(r, 1, 3);
	p->epoch_percent = prng_chance(r, 2, 3) ? 20 + weight(r, 60) : 0;
	/* Some nodes are away for several changes, and are replaced meanwhile. */
	if (p->epoch_percent && prng_chance(r, 1, 2)) {
		p->down_long = 3 * p->sim.max_lease;
		p->change_weight[CHANGE_REPLACE] += 8;
		p->sim.further += p->sim.further == 0;
	}
	if (prng_chance(r, 1, 2)) {
		target(p, r, 200000);
		p->adversary.action = prng_chance(r, 1, 2) ? SIM_TARGET_KILL_RECEIVER
			: SIM_TARGET_KILL_SENDER;
	}
}

/* Writes are so frequent that the log runs over while a follower's link is slow. */
static void flood(struct profile *p, struct prng *r) {
	p->sim.limits.log_bytes = 2048;
	p->sim.delay_max = 300 * SPAN_US;
	p->sim.session_delay_max = 100 * SPAN_US;
	p->sim.request_timeout = 60 * SPAN_MS;
	p->sim.promise_timeout = 120 * SPAN_MS;
	p->active = prng_between(r, SPAN_S / 2, SPAN_S);
	p->clients = 8;
	p->keys = 40;
	p->think_max = 300 * SPAN_US;
	p->wait_percent = p->hold_on_percent = 0;
	p->hold_weight[HABIT_RELEASE] = 100;
	p->fault_weight[FAULT_SLOW_LINK] = 30;
	p->fault_every = 50 * SPAN_MS;
}

/* Called last in profile_draw: what was drawn before is a mix that these themes sharpen. */
void profile_members(struct profile *p, struct prng *r) {
	sizes(p, r);
	if (p->theme == THEME_restarts_in_change) {
		draw_restarts_in_change(p, r);
	} else if (p->theme == THEME_forced) {
		set(p, r, 3, 5, 2);
		p->operators = 1;
		p->change_weight[CHANGE_ADD_REPLICA] = 1;
		p->fault_weight[FAULT_KILL] = weight(r, 1);
	} else if (p->theme == THEME_replicas) {
		set(p, r, 1, 3, 4);
		p->sim.further += p->sim.further == 0;
		p->operators = 1;
		p->operate_every = p->sim.request_timeout;
		p->change_weight[CHANGE_ADD_REPLICA] = 10;
		p->change_weight[CHANGE_REMOVE] = weight(r, 1);
		p->sim.limits.log_bytes = prng_chance(r, 1, 2) ? 4096 : 0;
		some_faults(p, r);
		if (prng_chance(r, 1, 4)) {
			flood(p, r);
		}
	} else if (p->theme == THEME_whole_set) {
		set(p, r, 1, 3, 4);
		p->sim.further += p->sim.masters;
		p->operators = 1 + weight(r, 1);
		p->change_weight[CHANGE_SET_NODES] = 10;
		p->change_weight[CHANGE_SET_TIMING] = weight(r, 6);
		if (prng_chance(r, 1, 2)) {
			target(p, r, 200000);
		}
		p->epoch_percent = prng_chance(r, 1, 2) ? weight(r, 60) : 0;
		some_faults(p, r);
		if (prng_chance(r, 1, 3)) {
			shorten(p, r);
		}
	} else if (p->theme == THEME_operators) {
		set(p, r, 1, 5, 3);
		p->operators = 2 + weight(r, 1);
		any_change(p, r);
		target(p, r, 400000);
		if (prng_chance(r, 1, 2)) {
			rivals(p, r);
		}
		p->fault_weight[FAULT_KILL] = weight(r, 2);
		p->fault_weight[FAULT_CLOSE] = weight(r, 2);
		p->fault_weight[FAULT_SPLIT] = weight(r, 2);
	} else {
		set(p, r, 1, 5, 4);
		p->operators = 1;
		any_change(p, r);
		p->fault_weight[FAULT_CLOSE] = 1;
		p->fault_weight[FAULT_KILL] = weight(r, 1);
		p->fault_every *= 3;
	}
}

/* For themes of other faults: nodes come and go as well. */
void profile_some_members(struct profile *p, struct prng *r) {
	p->sim.further = 1 + weight(r, 2);
	p->sim.replication_interval = prng_between(r, SPAN_MS, 10 * SPAN_MS);
	p->masters_least = p->sim.masters > 2 ? 2 : 1;
	p->masters_most = p->sim.masters + 1;
	p->operators = 1;
	p->operate_every = prng_between(r, 2 * p->sim.request_timeout, 20 * p->sim.request_timeout);
	p->idle_weight[HABIT_MOVE] += 3;
	p->hold_weight[HABIT_MOVE] += 3;
	any_change(p, r);
	/* What these themes aim at depends on the timing. */
	p->change_weight[CHANGE_SET_TIMING] = 0;
}
