/* profile_crossed.c: the themes `crossed`, any three features at once, and `turns`, many who wait
 * long while what is said of turns and commits comes late. */
#include "profile.h"

#include <string.h>

#define KIND(name) MESSAGE_BIT(MESSAGE_##name)

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

/* No worse than TCP, and no fault that is not asked for. */
static void draw_quiet_links(struct profile *p) {
	memset(p->fault_weight, 0, sizeof p->fault_weight);
	p->adversary.lose_ppm = p->adversary.duplicate_ppm = p->adversary.reorder_ppm = 0;
	p->adversary.clock_ppm = p->adversary.lease_ppm = 0;
	p->adversary.action = SIM_TARGET_NONE;
}

/* ---- three features at once ---- */

static void set_changes(struct profile *p, struct prng *r) {
	p->theme = THEME_membership;
	profile_members(p, r);
	p->theme = THEME_crossed;
	draw_quiet_links(p);
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 2 + weight(r, 3);
	p->sim.further = 1 + weight(r, 2);
	p->masters_least = p->sim.masters > 1 ? p->sim.masters - 1 : 1;
	p->masters_most = p->sim.masters + 1;
	p->operators = 1 + weight(r, 1);
}

static void nodes_hang(struct profile *p, struct prng *r) {
	p->switches = true;
	p->sim.request_timeout = prng_between(r, 60, 200) * SPAN_MS;
	p->sim.promise_timeout = 2 * p->sim.request_timeout + SPAN_MS;
	p->sim.max_lease = p->lease_max = prng_between(r, 2, 10) * p->sim.request_timeout;
	p->lease_min = p->lease_max / 3;
	p->fault_weight[FAULT_PAUSE] = 10;
}

static void permits(struct profile *p, struct prng *r) {
	p->permits_percent = 50 + weight(r, 50);
	p->permits_of = 1 + weight(r, 5);
	p->permits_most = 1 + weight(r, 2);
}

static void shared_locks(struct profile *p, struct prng *r) {
	const uint32_t others = (100 - p->permits_percent) / 2;
	p->shared_percent = others + weight(r, others);
	p->hold_weight[HABIT_DOWNGRADE] = 3 + weight(r, 10);
}

static void session_bindings(struct profile *p, struct prng *r) {
	p->binding_percent = 50 + weight(r, 50);
	p->hold_weight[HABIT_VANISH] = 8 + weight(r, 10);
	p->hold_weight[HABIT_MOVE] = weight(r, 15);
}

static void lock_delays(struct profile *p, struct prng *r) {
	p->delay_percent = 60 + weight(r, 40);
	p->delay_max = (p->lease_max - p->lease_min) / 2;
	p->hold_weight[HABIT_VANISH] += 5;
	p->hold_weight[HABIT_ABANDON] = 5;
}

static void hand_overs(struct profile *p, struct prng *r) {
	p->priority_percent = weight(r, 100);
	p->hold_weight[HABIT_TRANSFER] = 10 + weight(r, 20);
	p->idle_weight[HABIT_ASK] = 1;
}

static void several_keys(struct profile *p, struct prng *r) {
	p->keys = 2 + weight(r, 2);
	p->groupers = 2 + weight(r, 1);
}

static void planned_stops(struct profile *p, struct prng *r) {
	p->fault_weight[FAULT_DRAIN] = 5;
	p->fault_weight[FAULT_ROLLING_DRAIN] = weight(r, 3);
}

static void restarts(struct profile *p, struct prng *r) {
	p->fault_weight[FAULT_KILL] = 5;
	p->fault_weight[FAULT_ROLLING] = weight(r, 3);
	p->fault_weight[FAULT_KILL_SOME] = weight(r, 1);
}

static void contested_keys(struct profile *p, struct prng *r) {
	const bool closes = prng_chance(r, 1, 2);
	p->silent_percent = 50 + weight(r, 40);
	p->hold_weight[HABIT_VANISH] += 10;
	p->fault_weight[FAULT_ROLLING] += 2;
	p->fault_weight[FAULT_KILL] += 1;
	p->adversary.kinds = KIND(COMMIT);
	p->adversary.action = closes ? SIM_TARGET_CLOSE : SIM_TARGET_KILL_SENDER;
	p->adversary.target_ppm = closes ? 100000 + weight(r, 200000) : 10000 + weight(r, 40000);
}

static void clocks_drift(struct profile *p, struct prng *r) {
	(void)r;
	p->sim.drift_ppm = 10000;
	p->fault_weight[FAULT_RATE] = 6;
	p->hold_on_percent = 60;
}

static void answers_late(struct profile *p, struct prng *r) {
	static const message_set answers[] = { KIND(COMMIT_ANSWER), KIND(PROMISE_ANSWER),
		KIND(TURN), KIND(ENQUEUE_ANSWER) | KIND(TURN), KIND(WITHDRAW), KIND(EXTEND_ANSWER),
		KIND(RELEASE), KIND(LEARN), KIND(DISPLACED), KIND(ENQUEUE) };
	const size_t count = sizeof answers / sizeof *answers;
	p->adversary.kinds |= answers[prng_below(r, count)] | answers[prng_below(r, count)];
	p->fault_weight[FAULT_SLOW_LINK] = 4;
	/* A key is contested only where commits are cut off. */
	if (p->adversary.action == SIM_TARGET_NONE) {
		p->adversary.action = SIM_TARGET_DELAY;
		p->adversary.target_ppm = 50000 + weight(r, 450000);
	}
}

static void memory_short(struct profile *p, struct prng *r) {
	p->shortage.always.alloc_ppm = prng_chance(r, 2, 3) ? 10 + weight(r, 3000) : 0;
	p->shortage.always.full_ppm = prng_chance(r, 1, 3) ? 10 + weight(r, 1000) : 0;
	p->shortage.memory_weight = 1 + weight(r, 3);
	p->shortage.every = prng_between(r, 20 * SPAN_MS, SPAN_S);
	p->shortage.span_most = prng_between(r, SPAN_MS, 50 * SPAN_MS);
}

static void latecomers(struct profile *p, struct prng *r) {
	p->latecomers = 1 + weight(r, 2);
	p->hold_weight[HABIT_BLIND_EXTEND] = 5 + weight(r, 10);
	p->hold_weight[HABIT_MOVE] += 5;
	p->repeat_percent = 40 + weight(r, 60);
}

static void links_cut(struct profile *p, struct prng *r) {
	p->fault_weight[FAULT_CUT] = 5;
	p->fault_weight[FAULT_CLOSE] = 5;
	p->fault_weight[FAULT_ISOLATE] = weight(r, 3);
	p->fault_weight[FAULT_SPLIT] = weight(r, 2);
}

static void updates(struct profile *p, struct prng *r) {
	(void)r;
	p->idle_weight[HABIT_SHARED_UPDATE] = 15;
	p->hold_weight[HABIT_UPDATE] = 20;
	p->hold_weight[HABIT_READ_OWN] = 10;
}

static void long_waits(struct profile *p, struct prng *r) {
	(void)r;
	p->wait_max = 8 * SPAN_S;
	p->wait_percent = 90;
}

/* In the order in which they are drawn: the first two set the sizes that the others use. */
static void (*const features[])(struct profile *p, struct prng *r) = { set_changes, nodes_hang,
	permits, shared_locks, session_bindings, lock_delays, hand_overs, several_keys,
	planned_stops, restarts, contested_keys, clocks_drift, answers_late, memory_short,
	latecomers, links_cut, updates, long_waits };
#define FEATURES (sizeof features / sizeof *features)

/* Few clients and few keys, and nothing of any feature. */
static void draw_plain(struct profile *p, struct prng *r) {
	profile_dense(p, r);
	draw_quiet_links(p);
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 2 + weight(r, 3);
	p->sim.further = weight(r, 1);
	p->adversary.late_max = p->sim.request_timeout;
	p->keys = 1 + weight(r, 1);
	p->clients = 4 + weight(r, 4);
	p->wait_percent = 40 + weight(r, 60);
	p->wait_max = prng_between(r, 1, 12) * p->sim.request_timeout;
	p->silent_percent = weight(r, 50);
	p->shared_percent = p->permits_percent = p->priority_percent = 0;
	p->delay_percent = p->binding_percent = 0;
	p->groupers = p->latecomers = 0;
	p->sim.max_lease = p->lease_max = prng_between(r, 3, 20) * p->sim.request_timeout;
	p->lease_min = p->lease_max / 3;
	p->hold_weight[HABIT_VANISH] = weight(r, 5);
	p->hold_weight[HABIT_RELEASE] = 5 + weight(r, 20);
	p->hold_weight[HABIT_EXTEND] = 5 + weight(r, 20);
}

void profile_crossed(struct profile *p, struct prng *r) {
	uint32_t has = 0;
	while (__builtin_popcount(has) < 3) {
		has |= 1u << prng_below(r, FEATURES);
	}
	draw_plain(p, r);
	for (size_t i = 0; i < FEATURES; i++) {
		if (has >> i & 1) {
			features[i](p, r);
		}
	}
	p->adversary.target_max = prng_between(r, p->sim.request_timeout / 8,
		p->sim.request_timeout);
	p->think_max = prng_between(r, 2 * SPAN_MS, p->sim.request_timeout);
	p->fault_every = prng_between(r, 1, 12) * p->sim.request_timeout;
	p->down_max = prng_between(r, SPAN_MS, 2 * p->sim.request_timeout);
	p->cut_max = prng_between(r, p->sim.request_timeout / 4, 3 * p->sim.request_timeout);
	p->pause_max = prng_between(r, 20 * SPAN_MS, 2 * p->sim.request_timeout);
	p->active = prng_between(r, 2 * SPAN_S, 4 * SPAN_S);
	p->calm = prng_chance(r, 1, 3);
}

/* ---- turns ---- */

/* Coordinators die between two commit messages, and a restart merges what they have left: the key
 * is contested. */
static void contest(struct profile *p, struct prng *r) {
	p->sim.masters = 3;
	p->sim.further = 2;
	p->keys = 1;
	p->sim.drift_ppm = 10000;
	p->shared_percent = p->permits_percent = 0;
	p->sim.delay_max = prng_between(r, 1, 10) * SPAN_MS;
	p->lease_min = p->lease_max = p->sim.max_lease =
		prng_between(r, 3, 10) * p->sim.request_timeout;
	p->silent_percent = 80;
	p->hold_weight[HABIT_VANISH] = p->hold_weight[HABIT_ABANDON] = 30;
	p->fault_weight[FAULT_KILL] = 2;
	p->fault_weight[FAULT_RATE] = 3;
	p->fault_weight[FAULT_SLOW_LINK] = 5;
	p->down_max = prng_between(r, SPAN_MS, 10 * SPAN_MS);
	p->adversary.kinds = KIND(COMMIT);
	p->adversary.action = SIM_TARGET_KILL_SENDER;
	p->adversary.target_ppm = 50000 + weight(r, 150000);
	p->active = prng_between(r, 4 * SPAN_S, 8 * SPAN_S);
}

/* Many wait long for few keys, and often leave without a word. */
static void draw_waiters(struct profile *p, struct prng *r) {
	p->sim.masters = prng_chance(r, 4, 5) ? 3 : 5;
	p->sim.further = weight(r, 1);
	p->keys = 1 + weight(r, 1);
	p->clients = 5 + weight(r, 5);
	p->sim.max_lease = p->lease_max = prng_between(r, 1, 6) * p->sim.request_timeout;
	p->lease_min = 20 * SPAN_MS;
	p->wait_percent = 80;
	p->wait_max = 8 * SPAN_S;
	p->silent_percent = 60;
	p->shared_percent = prng_chance(r, 1, 3) ? weight(r, 70) : 0;
	p->permits_percent = prng_chance(r, 1, 3) ? weight(r, 100 - p->shared_percent) : 0;
	p->permits_of = 1 + weight(r, 4);
	p->binding_percent = prng_chance(r, 1, 3) ? weight(r, 100) : 0;
	p->priority_percent = prng_chance(r, 1, 4) ? weight(r, 100) : 0;
	p->hold_weight[HABIT_ABANDON] = 20;
	p->hold_weight[HABIT_VANISH] = 20;
	p->hold_weight[HABIT_RELEASE] = 5;
	p->hold_weight[HABIT_EXTEND] = 10;
}

void profile_turns(struct profile *p, struct prng *r) {
	static const message_set answers[] = { KIND(COMMIT_ANSWER), KIND(COMMIT_ANSWER),
		KIND(PROMISE_ANSWER), KIND(TURN), KIND(ENQUEUE_ANSWER), KIND(RELEASE), KIND(COMMIT),
		KIND(COMMIT_ANSWER) | KIND(RELEASE), KIND(WITHDRAW) };
	profile_dense(p, r);
	draw_quiet_links(p);
	p->sim.request_timeout = prng_between(r, 40, 150) * SPAN_MS;
	p->sim.promise_timeout = 2 * p->sim.request_timeout + SPAN_MS;
	draw_waiters(p, r);
	p->fault_weight[FAULT_KILL] = 2;
	p->fault_weight[FAULT_PAUSE] = weight(r, 6);
	p->fault_weight[FAULT_RATE] = weight(r, 3);
	p->fault_weight[FAULT_SLOW_LINK] = weight(r, 4);
	p->fault_every = prng_between(r, 3, 12) * p->sim.request_timeout;
	p->down_max = prng_between(r, SPAN_MS, p->sim.request_timeout);
	p->pause_max = p->cut_max = p->sim.request_timeout / 2;
	p->adversary.late_max = p->sim.request_timeout / 2;
	p->adversary.kinds = answers[prng_below(r, sizeof answers / sizeof *answers)];
	const bool late = prng_chance(r, 3, 4);
	p->adversary.action = late ? SIM_TARGET_DELAY : SIM_TARGET_CLOSE;
	p->adversary.target_ppm = late ? 100000 + weight(r, 500000) : 10000 + weight(r, 60000);
	p->adversary.target_max = prng_between(r, p->sim.request_timeout / 8,
		p->sim.request_timeout - SPAN_MS);
	p->active = prng_between(r, 3 * SPAN_S, 6 * SPAN_S);
	if (prng_chance(r, 2, 3)) {
		contest(p, r);
	}
}
