/* profile_later.c: themes that came later, and habits that every theme may have. All of them are
 * drawn by generators of their own, so that a seed remains what it was before. */
#include "profile.h"

#define KIND(name) MESSAGE_BIT(MESSAGE_##name)

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

enum profile_theme profile_later_theme(uint64_t seed) {
	struct prng r;
	prng_init(&r, seed ^ UINT64_C(0x1a7e57));
	uint64_t later = THEME_lies - PROFILE_FIRST_LATER;
	/* Each comes up as often as one of the first themes, and a little more. */
	uint64_t drawn = prng_below(&r, later + 12);
	if (prng_chance(&r, 1, 20)) {
		return THEME_lies;
	}
	if (prng_chance(&r, 1, 30)) {
		return THEME_lying_master;
	}
	struct prng newest;
	prng_init(&newest, seed ^ UINT64_C(0x4a965));
	if (prng_chance(&newest, 1, 40)) {
		return THEME_hangs;
	}
	prng_init(&newest, seed ^ UINT64_C(0xc4055ed));
	if (prng_chance(&newest, 1, 20)) {
		return prng_chance(&newest, 1, 2) ? THEME_crossed : THEME_turns;
	}
	return drawn < later ? (enum profile_theme)(PROFILE_FIRST_LATER + drawn) : THEMES;
}

/* Holders whose connections end, requests for several keys that fail, and permits, while one change
 * follows the other. Clients that have one of these lock_ids use it again, before, during and after
 * the change. */
static void draw_bound(struct profile *p, struct prng *r) {
	static const message_set kinds[] = { KIND(SNAPSHOT_RECORD), KIND(SNAPSHOT_END),
		KIND(SNAPSHOT) | KIND(SNAPSHOT_END), KIND(RELEASE), KIND(COPY_AHEAD),
		KIND(DECREE_ACCEPT), KIND(DECREE_ACCEPTED), KIND(CONFIG), KIND(COMMIT),
		KIND(EXTEND) };
	static const enum sim_target_action actions[] = { SIM_TARGET_DELAY, SIM_TARGET_DELAY,
		SIM_TARGET_DELAY, SIM_TARGET_CLOSE, SIM_TARGET_KILL_SENDER };
	p->theme = THEME_membership;
	profile_members(p, r);
	p->theme = THEME_bound;
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 1 + weight(r, 4);
	p->sim.further = 2 + weight(r, 2);
	p->masters_least = p->sim.masters > 1 ? p->sim.masters - 1 : 1;
	p->masters_most = p->sim.masters + 1;
	p->change_weight[CHANGE_SET_NODES] += weight(r, 6);
	p->change_weight[CHANGE_REPLACE] += weight(r, 6);
	p->operators = 1 + weight(r, 1);
	p->operate_every = prng_between(r, p->sim.request_timeout / 2, 4 * p->sim.request_timeout);
	p->sim.max_lease = p->lease_max = prng_between(r, 10, 40) * p->sim.request_timeout;
	p->lease_min = p->lease_max / 4;
	p->delay_max = p->delay_percent = 0;
	p->clients = 2 + weight(r, 3);
	p->latecomers = 1 + weight(r, 2);
	p->keys = 1 + weight(r, 2);
	p->groupers = p->keys > 1 && prng_chance(r, 1, 2) ? 1 + weight(r, 1) : 0;
	p->binding_percent = prng_chance(r, 3, 4) ? 40 + weight(r, 60) : 0;
	p->permits_percent = prng_chance(r, 1, 4) ? weight(r, 100) : 0;
	p->shared_percent = prng_chance(r, 1, 5) ? weight(r, 60) : 0;
	p->permits_of = 2 + weight(r, 6);
	p->wait_percent = 60;
	p->wait_max = prng_between(r, 1, 10) * p->sim.request_timeout;
	p->think_max = prng_between(r, 2 * SPAN_MS, p->sim.request_timeout);
	p->repeat_percent = weight(r, 30);
	p->hold_on_percent = weight(r, 20);
	p->hold_weight[HABIT_VANISH] = 8 + weight(r, 10);
	p->hold_weight[HABIT_RELEASE] = 3 + weight(r, 10);
	p->hold_weight[HABIT_EXTEND] = 5 + weight(r, 10);
	p->hold_weight[HABIT_ABANDON] = weight(r, 3);
	p->fault_weight[FAULT_SLOW_LINK] = weight(r, 6);
	p->fault_every = prng_between(r, 1, 10) * p->sim.request_timeout;
	p->adversary.kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
	p->adversary.action = actions[prng_below(r, sizeof actions / sizeof *actions)];
	p->adversary.target_ppm = p->adversary.action == SIM_TARGET_DELAY
		? 100000 + weight(r, 600000) : 20000 + weight(r, 100000);
	p->adversary.target_max = prng_between(r, p->sim.request_timeout / 8,
		p->sim.request_timeout);
	/* Holders go from node to node while links between nodes are cut, and end there. */
	if (prng_chance(r, 1, 2)) {
		p->hold_weight[HABIT_MOVE] = 10 + weight(r, 10);
		p->hold_weight[HABIT_VANISH] += 10;
		p->fault_weight[FAULT_CUT] = 5 + weight(r, 10);
		p->cut_max = prng_between(r, 4, 16) * p->sim.request_timeout;
		p->binding_percent = 100;
		p->keys = 1;
		p->groupers = 0;
	}
}

/* Faults of all kinds, provided that everybody lets go in the end. Then nothing may stand in
 * anybody's way, however long the leases were. */
static void draw_prompt(struct profile *p, struct prng *r) {
	static const enum fault faults[] = { FAULT_KILL, FAULT_KILL_SOME, FAULT_ROLLING,
		FAULT_DRAIN, FAULT_PAUSE, FAULT_CUT, FAULT_ISOLATE, FAULT_SPLIT, FAULT_CLOSE,
		FAULT_SLOW_LINK };
	static const enum sim_target_action actions[] = { SIM_TARGET_DELAY, SIM_TARGET_CLOSE,
		SIM_TARGET_KILL_SENDER, SIM_TARGET_KILL_RECEIVER, SIM_TARGET_PAUSE_SENDER,
		SIM_TARGET_PAUSE_RECEIVER };
	static const message_set kinds[] = { KIND(COMMIT), KIND(EXTEND), KIND(RELEASE),
		KIND(COMMIT_ANSWER), KIND(PROMISE_ANSWER), KIND(SNAPSHOT_RECORD) };
	if (prng_chance(r, 1, 2)) {
		p->theme = THEME_membership;
		profile_members(p, r);
		p->theme = THEME_prompt;
	} else {
		profile_dense(p, r);
	}
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 5;
	p->masters_least = 2;
	p->masters_most = p->sim.masters + 1;
	p->sim.max_lease = p->lease_max = prng_between(r, 3 * SPAN_S, 8 * SPAN_S);
	p->lease_min = p->lease_max / 2;
	p->calm = true;
	p->clients = 3 + weight(r, 4);
	p->keys = 2 + weight(r, 5);
	p->groupers = weight(r, 2);
	p->latecomers = weight(r, 1);
	p->wait_percent = 30 + weight(r, 60);
	p->wait_max = prng_between(r, 1, 10) * p->sim.request_timeout;
	p->think_max = prng_between(r, 2 * SPAN_MS, p->sim.request_timeout);
	p->silent_percent = 0;
	p->hold_on_percent = 0;
	p->shared_percent = prng_chance(r, 1, 4) ? weight(r, 80) : 0;
	p->permits_percent = prng_chance(r, 1, 3) ? weight(r, 100 - p->shared_percent) : 0;
	p->permits_of = 2 + weight(r, 8);
	p->permits_most = 1 + p->permits_of / 3;
	p->hold_weight[HABIT_ABANDON] = p->hold_weight[HABIT_VANISH] = 0;
	p->hold_weight[HABIT_RELEASE] = 5 + weight(r, 20);
	p->hold_weight[HABIT_EXTEND] = 10 + weight(r, 20);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
		p->fault_weight[faults[i]] = prng_chance(r, 1, 3) ? 1 + weight(r, 4) : 0;
	}
	p->fault_every = prng_between(r, 2, 20) * p->sim.request_timeout;
	p->down_max = prng_between(r, SPAN_MS, 2 * p->sim.request_timeout);
	p->cut_max = p->pause_max = prng_between(r, 10 * SPAN_MS, 6 * p->sim.request_timeout);
	/* No worse than TCP. */
	p->adversary.lose_ppm = p->adversary.duplicate_ppm = p->adversary.reorder_ppm = 0;
	p->adversary.clock_ppm = p->adversary.lease_ppm = 0;
	p->adversary.action = SIM_TARGET_NONE;
	if (prng_chance(r, 1, 2)) {
		p->adversary.kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
		p->adversary.action = actions[prng_below(r, sizeof actions / sizeof *actions)];
		p->adversary.target_ppm = 5000 + weight(r, 60000);
		p->adversary.target_max = prng_between(r, p->sim.request_timeout / 4,
			2 * p->sim.request_timeout);
	}
}

/* A permit number that a coordinator left behind when it died stays with its holder, who renews.
 * Then one master after the other learns the records of the others. */
static void draw_renewed(struct profile *p, struct prng *r) {
	static const message_set kinds[] = { KIND(COMMIT), KIND(COMMIT), KIND(COMMIT_ANSWER),
		KIND(EXTEND), KIND(PROMISE_ANSWER) };
	static const enum sim_target_action actions[] = { SIM_TARGET_KILL_SENDER,
		SIM_TARGET_KILL_SENDER, SIM_TARGET_KILL_SENDER, SIM_TARGET_CLOSE,
		SIM_TARGET_DELAY };
	profile_dense(p, r);
	p->adversary.lose_ppm = p->adversary.duplicate_ppm = p->adversary.reorder_ppm =
		p->adversary.clock_ppm = 0;
	p->sim.masters = prng_chance(r, 4, 5) ? 3 : 5;
	p->sim.max_lease = p->lease_max = prng_between(r, SPAN_S, 4 * SPAN_S);
	p->lease_min = p->lease_max / 2;
	p->calm = true;
	p->clients = 3 + weight(r, 5);
	p->keys = 1 + weight(r, 1);
	p->permits_percent = 100;
	p->permits_most = 1 + weight(r, 1);
	p->permits_of = p->permits_most * p->clients + 1 + weight(r, 4);
	p->wait_percent = weight(r, 60);
	p->wait_max = prng_between(r, 1, 10) * p->sim.request_timeout;
	p->repeat_percent = weight(r, 60);
	p->think_max = prng_between(r, 2 * SPAN_MS, p->sim.request_timeout);
	p->silent_percent = weight(r, 20);
	p->hold_on_percent = 0;
	p->latecomers = weight(r, 1);
	p->idle_weight[HABIT_BREAK] = 0;
	p->hold_weight[HABIT_ABANDON] = p->hold_weight[HABIT_VANISH] = 0;
	p->hold_weight[HABIT_RELEASE] = 1;
	p->hold_weight[HABIT_EXTEND] = 40;
	p->hold_weight[HABIT_BLIND_EXTEND] = weight(r, 10);
	p->fault_weight[FAULT_KILL] = 1;
	p->fault_weight[FAULT_ROLLING] = 1 + weight(r, 1);
	p->fault_weight[FAULT_CLOSE] = weight(r, 3);
	p->fault_weight[FAULT_CLIENT_CUT] = weight(r, 2);
	p->fault_every = prng_between(r, 8, 30) * p->sim.request_timeout;
	/* One master is back before the next one goes. */
	p->down_max = prng_between(r, SPAN_MS, p->sim.request_timeout / 2);
	p->adversary.kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
	p->adversary.action = actions[prng_below(r, sizeof actions / sizeof *actions)];
	bool mild = p->adversary.action != SIM_TARGET_KILL_SENDER;
	p->adversary.target_ppm = mild ? 5000 + weight(r, 100000) : 1000 + weight(r, 15000);
	p->adversary.target_max = prng_between(r, p->sim.request_timeout / 4,
		2 * p->sim.request_timeout);
}

static void draw_crowd(struct profile *p, struct prng *r) {
	static const message_set kinds[] = { KIND(READ), KIND(READ_ANSWER), KIND(COMMIT),
		KIND(RELEASE) };
	profile_dense(p, r);
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 5;
	p->sim.max_lease = p->lease_max = prng_between(r, 3, 20) * p->sim.request_timeout;
	p->active = prng_between(r, SPAN_S / 4, 3 * SPAN_S / 4);
	p->clients = 2;
	p->crowds = prng_chance(r, 1, 4) ? 2 : 1;
	p->fault_weight[FAULT_CUT] = 4;
	p->fault_weight[FAULT_PAUSE] = 3;
	p->fault_weight[FAULT_SLOW_LINK] = weight(r, 4);
	p->fault_weight[FAULT_CLOSE] = weight(r, 2);
	p->fault_weight[FAULT_KILL] = weight(r, 1);
	p->fault_every = prng_between(r, 10 * SPAN_MS, 100 * SPAN_MS);
	p->cut_max = p->pause_max = prng_between(r, p->sim.request_timeout / 2,
		2 * p->sim.request_timeout);
	p->down_max = prng_between(r, SPAN_MS, p->sim.request_timeout);
	p->adversary.kinds = kinds[prng_below(r, sizeof kinds / sizeof *kinds)];
	p->adversary.action = prng_chance(r, 1, 2) ? SIM_TARGET_DELAY : SIM_TARGET_NONE;
	p->adversary.target_ppm = 50000 + weight(r, 400000);
	p->adversary.target_max = p->sim.request_timeout;
}

/* Nothing is wrong, and many clients want few keys for a moment each. Their commits and releases
 * cross on links that are not equally fast. */
static void draw_rush(struct profile *p, struct prng *r) {
	p->rush = true;
	p->sim.masters = prng_chance(r, 3, 4) ? 3 : 5;
	p->sim.delay_min = 50 * SPAN_US;
	p->sim.delay_max = prng_between(r, SPAN_MS, 6 * SPAN_MS);
	p->sim.session_delay_max = 100 * SPAN_US;
	p->clients = 6 + weight(r, 6);
	p->keys = 2 + weight(r, 4);
	p->think_min = 50 * SPAN_US;
	p->think_max = prng_between(r, SPAN_MS, 6 * SPAN_MS);
	p->hold_on_percent = 0;
	p->active = 5 * SPAN_S;
	p->lease_min = p->lease_max = p->sim.max_lease;
	for (int i = 0; i < HABITS; i++) {
		p->idle_weight[i] = i == HABIT_ACQUIRE ? 20 : i == HABIT_MOVE ? 1 : 0;
		p->hold_weight[i] = i == HABIT_RELEASE ? 1 : 0;
	}
	/* A client that waits may be passed only by those that come before it is known to wait. */
	const uint32_t waits[] = { 0, 100, weight(r, 100) };
	p->wait_percent = waits[prng_below(r, 3)];
}

static void draw_lies(struct profile *p, struct prng *r) {
	p->theme = prng_chance(r, 1, 3) ? THEME_operators : THEME_membership;
	profile_members(p, r);
	p->theme = THEME_lies;
	p->liars = 1;
	p->sim.further += 1;
	p->change_weight[CHANGE_ADD_REPLICA] += 6;
	p->change_weight[CHANGE_REMOVE] += 4;
}

/* The set changes or not. One of at least three masters lies, and no other loses its files
 * meanwhile. */
static void draw_lying_master(struct profile *p, struct prng *r) {
	p->theme = prng_chance(r, 1, 3) ? THEME_operators : THEME_membership;
	profile_members(p, r);
	p->theme = THEME_lying_master;
	p->sim.masters = prng_chance(r, 2, 3) ? 3 : 5;
	p->sim.further = weight(r, 2);
	p->masters_least = 3;
	p->masters_most = p->sim.masters + 1;
	p->operators = weight(r, 1);
	/* Such a change may name any nodes, perhaps those that belong to no cluster. */
	p->change_weight[CHANGE_SET_NODES] = 0;
	p->fault_weight[FAULT_LOSE_FILES] = 0;
	p->sim.auto_replace = false;
	p->calm = false;
	p->lying_master = 1 + weight(r, p->sim.masters - 1);
	p->latecomers = weight(r, 1);
	p->permits_percent = prng_chance(r, 1, 3) ? weight(r, 100) : 0;
	p->permits_of = 2 + weight(r, 6);
	p->shared_percent = prng_chance(r, 1, 4) ? weight(r, 60) : 0;
	p->binding_percent = prng_chance(r, 1, 3) ? weight(r, 100) : 0;
	p->groupers = prng_chance(r, 1, 3) && p->keys > 1;
}

/* Nodes stand still and go on, and clients leave them within a moment for others, where they may
 * have let go of the key before the first one works off what waits in its sockets. */
static void draw_hangs(struct profile *p, struct prng *r) {
	profile_dense(p, r);
	p->switches = true;
	/* Links that are kept for long show what silent masters hold up meanwhile. */
	bool patient = prng_chance(r, 1, 2);
	if (patient) {
		p->sim.request_timeout = prng_between(r, 100, 400) * SPAN_MS;
		p->sim.promise_timeout = 2 * p->sim.request_timeout + SPAN_MS;
		p->sim.delay_max = prng_between(r, 200 * SPAN_US, SPAN_MS);
	}
	p->sim.masters = prng_chance(r, 4, 5) ? 3 : 5;
	p->sim.further = weight(r, 1);
	p->keys = 1 + weight(r, 1);
	p->clients = 3 + weight(r, 4);
	p->sim.max_lease = p->lease_max = prng_between(r, 2, 20) * p->sim.request_timeout;
	p->lease_min = p->lease_max / 4;
	p->wait_percent = 30 + weight(r, 60);
	p->wait_max = prng_between(r, 2, 10) * p->sim.request_timeout;
	p->repeat_percent = weight(r, 20);
	p->binding_percent = prng_chance(r, 1, 2) ? weight(r, 100) : 0;
	p->shared_percent = prng_chance(r, 1, 4) ? weight(r, 60) : 0;
	p->permits_percent = prng_chance(r, 1, 4) ? weight(r, 60) : 0;
	p->permits_of = 2 + weight(r, 4);
	p->hold_on_percent = weight(r, 20);
	p->hold_weight[HABIT_RELEASE] = 10 + weight(r, 10);
	p->hold_weight[HABIT_EXTEND] = 5 + weight(r, 10);
	p->hold_weight[HABIT_UPDATE] = weight(r, 5);
	p->fault_weight[FAULT_PAUSE] = 10;
	p->fault_weight[FAULT_SLOW_LINK] = weight(r, 3);
	p->fault_weight[FAULT_KILL] = weight(r, 1);
	p->fault_every = prng_between(r, 1, 12) * p->sim.request_timeout;
	p->pause_max = prng_between(r, 1, 8) * p->sim.request_timeout / (patient ? 4 : 1);
	p->down_max = p->sim.request_timeout;
}

/* Some clients release a lock, which may be another's, only if it has a value that they know. */
static void draw_releases_by_value(struct profile *p) {
	struct prng r;
	prng_init(&r, p->sim.seed ^ UINT64_C(0xc05e1a57));
	const bool often = p->theme == THEME_updates && prng_chance(&r, 1, 2);
	if (often || (p->idle_weight[HABIT_SHARED_UPDATE] > 0 && prng_chance(&r, 1, 8))) {
		p->idle_weight[HABIT_SHARED_RELEASE] = 1 + weight(&r, often ? 15 : 3);
		p->hold_weight[HABIT_RELEASE_BY_VALUE] = 1 + weight(&r, often ? 10 : 3);
	}
}

void profile_later(struct profile *p) {
	struct prng r;
	prng_init(&r, p->sim.seed ^ UINT64_C(0x1a7ec03e));
	bool some = prng_chance(&r, 1, 4);
	uint32_t count = 1 + weight(&r, 1);
	bool calm = prng_chance(&r, 1, 6), plain = p->theme != THEME_quiet &&
		p->theme != THEME_limits && p->theme != THEME_forced;
	p->calm = calm && plain;
	if (p->theme == THEME_bound) {
		draw_bound(p, &r);
	} else if (p->theme == THEME_prompt) {
		draw_prompt(p, &r);
	} else if (p->theme == THEME_renewed) {
		draw_renewed(p, &r);
	} else if (p->theme == THEME_crowd) {
		draw_crowd(p, &r);
	} else if (p->theme == THEME_lies) {
		draw_lies(p, &r);
	} else if (p->theme == THEME_lying_master) {
		draw_lying_master(p, &r);
	} else if (p->theme == THEME_hangs) {
		draw_hangs(p, &r);
	} else if (p->theme == THEME_crossed) {
		profile_crossed(p, &r);
	} else if (p->theme == THEME_turns) {
		profile_turns(p, &r);
	} else if (some && plain) {
		p->latecomers = count;
	} else if (p->theme == THEME_quiet && prng_chance(&r, 1, 4)) {
		draw_rush(p, &r);
	}
	draw_releases_by_value(p);
}
