/* profile_sharpen.c: themes that aim: what has to come together for one rule to matter is drawn
 * together, and often. */
#include "profile.h"

#define KIND(name) MESSAGE_BIT(MESSAGE_##name)

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

void profile_dense(struct profile *p, struct prng *r) {
	struct sim_options *o = &p->sim;
	o->delay_min = 100 * SPAN_US;
	o->delay_max = prng_between(r, 200 * SPAN_US, 2 * SPAN_MS);
	o->session_delay_max = prng_between(r, 40 * SPAN_US, SPAN_MS);
	o->request_timeout = prng_between(r, 15 * SPAN_MS, 40 * SPAN_MS);
	o->promise_timeout = 2 * o->request_timeout + SPAN_MS;
	o->reconnect_max = 3 * SPAN_MS;
	o->disk_max = 2 * SPAN_MS;
	o->limits.lease_min = p->lease_min = 20 * SPAN_MS;
	p->think_min = 100 * SPAN_US;
	p->think_max = prng_between(r, SPAN_MS, 10 * SPAN_MS);
	p->wait_max = prng_between(r, 5 * SPAN_MS, 300 * SPAN_MS);
	p->active = prng_between(r, 2 * SPAN_S, 4 * SPAN_S);
	p->clients = 2 + weight(r, 3);
}

/* Commits reach few masters, clients say nothing any more, and restarts merge what is left. */
static void sharpen_contested(struct profile *p, struct prng *r) {
	profile_dense(p, r);
	p->keys = 1 + weight(r, 1);
	p->sim.max_lease = prng_between(r, 4, 20) * p->sim.request_timeout;
	p->lease_min = p->lease_max = p->sim.max_lease;
	static const uint32_t masters[] = { 3, 3, 5, 5, 5, 7, 7 };
	p->sim.masters = masters[prng_below(r, sizeof masters / sizeof *masters)];
	p->wait_percent = 30;
	p->silent_percent = 70;
	bool extends = prng_chance(r, 1, 2);
	p->hold_weight[HABIT_RELEASE] = extends ? 2 : 15;
	p->hold_weight[HABIT_EXTEND] = extends ? 60 : 25;
	p->hold_weight[HABIT_IDLE] = 0;
	p->hold_on_percent = extends ? 0 : p->hold_on_percent;
	p->fault_every = prng_between(r, 3, 10) * p->sim.request_timeout;
	p->down_max = prng_between(r, SPAN_MS, 5 * SPAN_MS);
	p->adversary.kinds = KIND(COMMIT);
	p->adversary.action = prng_chance(r, 3, 4) ? SIM_TARGET_LOSE : SIM_TARGET_CLOSE;
	p->adversary.target_ppm = (p->sim.masters == 7 ? 500000 : 300000) + weight(r, 400000);
}

/* There is one key, leases last about as long as a round may take, and every way is slow or cut for
 * about that long. */
static void sharpen_moving(struct profile *p, struct prng *r, bool blind) {
	static const message_set kinds[] = { KIND(EXTEND), KIND(EXTEND), KIND(COMMIT),
		KIND(DISPLACED) | KIND(EXTEND),
		KIND(LEARN) | KIND(COMMIT), KIND(EXTEND) | KIND(COMMIT) | KIND(RELEASE),
		KIND(COMMIT_ANSWER) | KIND(EXTEND_ANSWER), KIND(PROMISE_ANSWER) | KIND(DISPLACED) };
	profile_dense(p, r);
	p->keys = 1;
	p->sim.masters = prng_chance(r, 1, 4) ? 5 : 3;
	p->sim.max_lease = prng_between(r, 50 * SPAN_MS, 200 * SPAN_MS);
	p->lease_max = prng_between(r, p->lease_min, p->sim.max_lease);
	p->wait_percent = 70;
	p->hold_on_percent = blind ? 20 : 50;
	p->hold_weight[HABIT_EXTEND] = 20;
	p->hold_weight[HABIT_BLIND_EXTEND] = blind ? 40 : 5;
	p->hold_weight[HABIT_MOVE] = blind ? 20 : 4;
	p->idle_weight[HABIT_SHARED_EXTEND] = blind ? 30 : 4;
	p->hold_weight[HABIT_RELEASE] = 10;
	p->fault_weight[FAULT_CUT] = 5;
	p->fault_weight[FAULT_SLOW_LINK] = 5;
	p->fault_weight[FAULT_CLOSE] = weight(r, 3);
	p->fault_every = prng_between(r, 5 * SPAN_MS, 50 * SPAN_MS);
	p->cut_max = prng_between(r, p->sim.request_timeout / 2, 2 * p->lease_max);
	p->adversary.kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
	p->adversary.action = prng_chance(r, 1, 3) ? SIM_TARGET_LOSE : prng_chance(r, 1, 2)
		? SIM_TARGET_LATE : SIM_TARGET_DELAY;
	p->adversary.target_ppm = 100000 + weight(r, 500000);
	p->adversary.target_max = prng_between(r, p->sim.request_timeout / 2,
		p->sim.request_timeout + p->lease_max);
}

/* A master that accepted forgets at once. What it said, and what the round says to others, comes
 * about a request_timeout late. */
static void sharpen_late(struct profile *p, struct prng *r) {
	profile_dense(p, r);
	p->keys = 1;
	p->sim.masters = 3;
	p->sim.max_lease = prng_between(r, 4, 15) * p->sim.request_timeout;
	p->lease_min = p->lease_max = p->sim.max_lease;
	p->hold_weight[HABIT_RELEASE] = 10;
	p->wait_percent = 60;
	p->fault_weight[FAULT_SLOW_LINK] = 8;
	p->fault_weight[FAULT_KILL] = 1 + weight(r, 3);
	p->fault_every = prng_between(r, 5 * SPAN_MS, 50 * SPAN_MS);
	p->down_max = prng_between(r, SPAN_MS, 4 * SPAN_MS);
	p->adversary.kinds = prng_chance(r, 2, 3) ? KIND(COMMIT) : KIND(EXTEND) | KIND(LEARN);
	p->adversary.action = SIM_TARGET_KILL_RECEIVER;
	p->adversary.target_ppm = 20000 + weight(r, 150000);
	p->adversary.spike_ppm = weight(r, 20000);
	p->adversary.late_max = 2 * p->sim.request_timeout;
}

static void sharpen_repeats(struct profile *p, struct prng *r) {
	profile_dense(p, r);
	p->keys = 1 + weight(r, 1);
	p->sim.max_lease = p->lease_max = prng_between(r, 50 * SPAN_MS, 300 * SPAN_MS);
	p->sim.session_delay_max = prng_between(r, SPAN_MS, 10 * SPAN_MS);
	p->repeat_percent = 100;
	p->wait_percent = 50;
	p->idle_weight[HABIT_MOVE] = 5;
	p->fault_weight[FAULT_CLIENT_CUT] = 5;
	p->fault_weight[FAULT_SLOW_LINK] = 3;
	p->fault_weight[FAULT_CLOSE] = 2;
	p->fault_every = prng_between(r, 10 * SPAN_MS, 60 * SPAN_MS);
	p->adversary.spike_ppm = weight(r, 20000);
	p->adversary.late_max = p->sim.request_timeout;
}

/* A link breaks behind the promise, the commit to another master is slow, and somebody else
 * acquires and releases meanwhile. */
static void sharpen_overlap(struct profile *p, struct prng *r) {
	profile_dense(p, r);
	p->keys = 1;
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 5;
	p->clients = 3 + weight(r, 2);
	p->sim.delay_max = 300 * SPAN_US;
	p->sim.max_lease = p->lease_max = prng_between(r, 40 * SPAN_MS, 200 * SPAN_MS);
	p->think_max = SPAN_MS;
	p->wait_percent = weight(r, 50);
	p->repeat_percent = 60;
	p->hold_weight[HABIT_RELEASE] = 60;
	p->fault_weight[FAULT_CLOSE] = 10;
	p->fault_weight[FAULT_CUT] = weight(r, 2);
	p->fault_every = prng_between(r, 2 * SPAN_MS, 15 * SPAN_MS);
	p->cut_max = 2 * p->sim.request_timeout;
	p->adversary.kinds = KIND(COMMIT);
	p->adversary.action = prng_chance(r, 1, 2) ? SIM_TARGET_DELAY : SIM_TARGET_LATE;
	p->adversary.target_ppm = 200000 + weight(r, 300000);
	p->adversary.target_max = p->sim.request_timeout;
}

/* Disks are slower than everything else: what left a node before it was synced shows after the next
 * start. */
static void sharpen_disks(struct profile *p, struct prng *r) {
	static const uint32_t masters[] = { 1, 1, 2, 3, 3 };
	p->sim.masters = masters[prng_below(r, sizeof masters / sizeof *masters)];
	p->sim.disk_max = 2 * SPAN_MS;
	p->disk_slow = prng_between(r, 20 * SPAN_MS, 1500 * SPAN_MS);
	p->sim.max_lease = prng_between(r, 150 * SPAN_MS, 500 * SPAN_MS);
	p->lease_min = 100 * SPAN_MS;
	p->lease_max = prng_between(r, 100 * SPAN_MS, p->sim.max_lease);
	p->sim.request_timeout = prng_between(r, 30 * SPAN_MS, 60 * SPAN_MS);
	p->sim.promise_timeout = 2 * p->sim.request_timeout;
	p->fault_every = prng_between(r, 200 * SPAN_MS, 1500 * SPAN_MS);
	p->down_max = prng_between(r, 2 * SPAN_MS, 50 * SPAN_MS);
	p->down_long = prng_chance(r, 1, 2) ? 4 * p->sim.max_lease : 0;
	p->think_max = 20 * SPAN_MS;
	p->keys = 1 + weight(r, 1);
	p->hold_weight[HABIT_RELEASE] = 20;
}

/* Restarts by waiting, and leases that are used to their end. */
static void sharpen_clocks(struct profile *p, struct prng *r) {
	static const uint32_t masters[] = { 1, 1, 3, 3, 5 };
	profile_dense(p, r);
	p->keys = 1;
	p->sim.masters = masters[prng_below(r, sizeof masters / sizeof *masters)];
	p->sim.drift_ppm = prng_chance(r, 1, 2) ? 10000 : 100000;
	p->sim.max_lease = prng_between(r, 60 * SPAN_MS, 300 * SPAN_MS);
	p->lease_min = p->lease_max = p->sim.max_lease;
	p->fault_weight[FAULT_KILL_SOME] = weight(r, 3);
	p->fault_every = prng_between(r, p->sim.max_lease / 2, 4 * p->sim.max_lease);
	p->down_max = prng_between(r, SPAN_MS, 5 * SPAN_MS);
}

void profile_sharpen(struct profile *p, struct prng *r) {
	switch (p->theme) {
	case THEME_contested:
		sharpen_contested(p, r);
		break;
	case THEME_moving:
		sharpen_moving(p, r, prng_chance(r, 1, 3));
		break;
	case THEME_blind:
		sharpen_moving(p, r, true);
		break;
	case THEME_late:
		sharpen_late(p, r);
		break;
	case THEME_overlap:
		sharpen_overlap(p, r);
		break;
	case THEME_repeats:
		sharpen_repeats(p, r);
		break;
	case THEME_disks:
		sharpen_disks(p, r);
		break;
	case THEME_clocks:
		sharpen_clocks(p, r);
		break;
	case THEME_quiet:
	case THEME_mixed:
	case THEME_restarts:
	case THEME_drains:
	case THEME_partition:
	case THEME_pauses:
	case THEME_unkind:
	case THEME_targeted:
	case THEME_updates:
	case THEME_limits:
	case THEME_duel:
	case THEME_shared:
	case THEME_permits:
	case THEME_groups:
	case THEME_succession:
	case THEME_delays:
	case THEME_bound:
	case THEME_prompt:
	case THEME_renewed:
	case THEME_shortage:
	case THEME_crowd: case THEME_lies: case THEME_lying_master:
	case THEME_hangs: case THEME_crossed: case THEME_turns:
	case THEMES:
		/* Drawn by profile_terms and profile_later. */
		break;
	case THEME_replicas:
	case THEME_membership:
	case THEME_operators:
	case THEME_restarts_in_change:
	case THEME_whole_set:
	case THEME_forced:
		profile_members(p, r);
		break;
	}
}
