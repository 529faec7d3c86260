/* profile.c: draws what a seed expands to: sizes, habits, and the faults of the first themes. */
#include "profile.h"

#include <inttypes.h>
#include <stdlib.h>

static int64_t between(struct prng *r, int64_t low, int64_t high) {
	return prng_between(r, low, high);
}

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

/* Draws evenly in magnitude rather than in size. */
static span_ns scale(struct prng *r, span_ns low, span_ns high) {
	span_ns span = low;
	while (span * 2 < high && prng_chance(r, 2, 3)) {
		span *= 2;
	}
	return between(r, span, span * 2 < high ? span * 2 : high);
}

static void draw_sizes(struct profile *p, struct prng *r) {
	static const uint32_t masters[] = { 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 5, 5, 7 };
	static const uint32_t drifts[] = { 1000, 10000, 10000, 50000, 100000 };
	struct sim_options *o = &p->sim;
	*o = sim_options_plain();
	o->plain_clocks = false;
	o->masters = masters[prng_below(r, sizeof masters / sizeof *masters)];
	o->drift_ppm = drifts[prng_below(r, sizeof drifts / sizeof *drifts)];
	o->delay_min = scale(r, SPAN_US * 50, SPAN_MS);
	o->delay_max = o->delay_min + scale(r, SPAN_US * 50, 5 * SPAN_MS);
	o->session_delay_min = SPAN_US * 20;
	o->session_delay_max = scale(r, SPAN_US * 40, 5 * SPAN_MS);
	o->loop_lag_max = scale(r, SPAN_US * 10, SPAN_US * 200);
	o->request_timeout = scale(r, 40 * SPAN_MS, 150 * SPAN_MS);
	/* The core's default. It is set here, because the bound of staleness counts with it. */
	o->replication_interval = 5 * SPAN_MS;
	o->promise_timeout = o->request_timeout * 2 + scale(r, SPAN_MS, 300 * SPAN_MS);
	o->max_lease = scale(r, 500 * SPAN_MS, 3 * SPAN_S);
	o->disk_min = SPAN_US * 100;
	o->disk_max = scale(r, SPAN_MS, 20 * SPAN_MS);
	o->reconnect_min = SPAN_MS;
	o->reconnect_max = scale(r, 5 * SPAN_MS, 60 * SPAN_MS);
	p->clients = (uint32_t)between(r, 2, 8);
	p->keys = prng_chance(r, 1, 8) ? (uint32_t)between(r, 10, 40) : (uint32_t)between(r, 1, 4);
	p->active = scale(r, 4 * SPAN_S, 12 * SPAN_S);
}

static void draw_habits(struct profile *p, struct prng *r) {
	p->think_min = SPAN_MS;
	p->think_max = scale(r, 20 * SPAN_MS, 200 * SPAN_MS);
	p->lease_min = 100 * SPAN_MS;
	p->lease_max = prng_chance(r, 1, 3) ? p->sim.max_lease
		: scale(r, 110 * SPAN_MS, p->sim.max_lease);
	p->wait_max = scale(r, 50 * SPAN_MS, 4 * SPAN_S);
	p->wait_percent = (uint32_t)between(r, 0, 100);
	p->repeat_percent = (uint32_t)between(r, 0, 60);
	p->silent_percent = (uint32_t)between(r, 0, 30);
	p->hold_on_percent = (uint32_t)between(r, 0, 80);
	p->idle_weight[HABIT_ACQUIRE] = 30;
	p->idle_weight[HABIT_GET] = weight(r, 8);
	p->idle_weight[HABIT_WAIT] = weight(r, 4);
	p->idle_weight[HABIT_LIST] = weight(r, 1);
	p->idle_weight[HABIT_WAITERS] = weight(r, 1);
	p->idle_weight[HABIT_BREAK] = prng_chance(r, 1, 4) ? 1 : 0;
	p->idle_weight[HABIT_SHARED_UPDATE] = weight(r, 4);
	p->idle_weight[HABIT_SHARED_EXTEND] = weight(r, 3);
	p->idle_weight[HABIT_MOVE] = weight(r, 3);
	p->hold_weight[HABIT_EXTEND] = 5 + weight(r, 30);
	p->hold_weight[HABIT_BLIND_EXTEND] = weight(r, 5);
	p->hold_weight[HABIT_UPDATE] = weight(r, 8);
	p->hold_weight[HABIT_READ_OWN] = weight(r, 6);
	p->hold_weight[HABIT_RELEASE] = 1 + weight(r, 12);
	p->hold_weight[HABIT_ABANDON] = weight(r, 4);
	p->hold_weight[HABIT_VANISH] = weight(r, 2);
	p->hold_weight[HABIT_MOVE] = weight(r, 4);
	p->hold_weight[HABIT_IDLE] = weight(r, 20);
}

static void some_faults(struct profile *p, struct prng *r, const enum fault *faults, size_t count) {
	for (size_t i = 0; i < count; i++) {
		p->fault_weight[faults[i]] = 1 + weight(r, 9);
	}
}

static void draw_adversary(struct profile *p, struct prng *r, bool unkind) {
	struct sim_adversary *a = &p->adversary;
	a->late_max = scale(r, 10 * SPAN_MS, p->sim.max_lease);
	a->split_ppm = weight(r, 20000);
	a->spike_ppm = prng_chance(r, 1, 3) ? weight(r, 5000) : 0;
	a->stall_ppm = prng_chance(r, 1, 4) ? weight(r, 2000) : 0;
	a->clock_ppm = prng_chance(r, 1, 12) ? 500 : 0;
	a->lease_ppm = prng_chance(r, 1, 12) ? 2000 : 0;
	if (unkind) {
		a->lose_ppm = prng_chance(r, 2, 3) ? weight(r, 100000) : 0;
		a->duplicate_ppm = prng_chance(r, 2, 3) ? weight(r, 100000) : 0;
		a->reorder_ppm = prng_chance(r, 2, 3) ? weight(r, 100000) : 0;
	}
}

static void draw_target(struct profile *p, struct prng *r) {
	static const enum message_kind kinds[] = { MESSAGE_PROMISE, MESSAGE_PROMISE_ANSWER,
		MESSAGE_COMMIT, MESSAGE_COMMIT, MESSAGE_COMMIT_ANSWER, MESSAGE_WITHDRAW,
		MESSAGE_EXTEND, MESSAGE_EXTEND, MESSAGE_EXTEND_ANSWER, MESSAGE_EXTEND_ANSWER,
		MESSAGE_FETCH, MESSAGE_FETCH_ANSWER, MESSAGE_LEARN, MESSAGE_LEARN_ANSWER,
		MESSAGE_RELEASE, MESSAGE_RELEASE_ANSWER, MESSAGE_PREPARE, MESSAGE_PREPARE_ANSWER,
		MESSAGE_WRITE, MESSAGE_WRITE, MESSAGE_WRITE_ANSWER, MESSAGE_READ, MESSAGE_ENQUEUE,
		MESSAGE_TURN, MESSAGE_DISPLACED, MESSAGE_SNAPSHOT, MESSAGE_SNAPSHOT_RECORD,
		MESSAGE_SNAPSHOT_END, MESSAGE_DOWNGRADE, MESSAGE_NOMINATE_ANSWER,
		MESSAGE_HAND_OVER };
	struct sim_adversary *a = &p->adversary;
	uint32_t count = 1 + weight(r, 2);
	for (uint32_t i = 0; i < count; i++) {
		a->kinds |= MESSAGE_BIT(kinds[prng_below(r, sizeof kinds / sizeof *kinds)]);
	}
	a->action = (enum sim_target_action)(1 + prng_below(r, SIM_TARGET_ACTIONS - 1));
	bool mild = a->action == SIM_TARGET_DELAY || a->action == SIM_TARGET_LATE ||
		a->action == SIM_TARGET_LOSE;
	a->target_ppm = mild ? 50000 + weight(r, 450000) : 2000 + weight(r, 30000);
	a->target_max = scale(r, p->sim.request_timeout / 2, 2 * p->sim.max_lease);
}

/* The faults of some themes. */
static const enum fault restarts[] = { FAULT_KILL, FAULT_KILL, FAULT_KILL_SOME,
	FAULT_ROLLING };
static const enum fault drains[] = { FAULT_DRAIN, FAULT_ROLLING_DRAIN, FAULT_KILL };
static const enum fault cuts[] = { FAULT_CUT, FAULT_ISOLATE, FAULT_SPLIT, FAULT_CLOSE,
	FAULT_SLOW_LINK, FAULT_CLIENT_CUT };
static const enum fault pauses[] = { FAULT_PAUSE, FAULT_SUSPEND, FAULT_CLIENT_PAUSE,
	FAULT_CLIENT_SUSPEND };
static const enum fault light[] = { FAULT_CLOSE, FAULT_KILL, FAULT_SLOW_LINK };

static void theme_faults(struct profile *p, struct prng *r) {
#define SOME(list) some_faults(p, r, list, sizeof list / sizeof *list)
	switch (p->theme) {
	case THEME_quiet:
		break;
	case THEME_mixed: case THEME_duel: case THEME_shortage:
		for (size_t i = 0; i < FAULTS; i++) {
			p->fault_weight[i] = prng_chance(r, 1, 3) ? 1 + weight(r, 9) : 0;
		}
		break;
	case THEME_restarts:
		SOME(restarts);
		break;
	case THEME_contested:
		p->fault_weight[FAULT_KILL] = 1;
		p->fault_weight[FAULT_ROLLING] = 3;
		break;
	case THEME_drains:
		SOME(drains);
		break;
	case THEME_partition:
		SOME(cuts);
		break;
	case THEME_clocks:
		p->fault_weight[FAULT_RATE] = 5;
		p->fault_weight[FAULT_SLOW_LINK] = weight(r, 3);
		p->fault_weight[FAULT_KILL] = weight(r, 3);
		break;
	case THEME_pauses:
		SOME(pauses);
		break;
	case THEME_disks:
		p->fault_weight[FAULT_DISK] = 8;
		p->fault_weight[FAULT_KILL] = 4;
		p->fault_weight[FAULT_KILL_SOME] = 3;
		break;
	case THEME_overlap: case THEME_moving: case THEME_late: case THEME_repeats:
		/* Drawn by profile_sharpen. */
		break;
	case THEME_unkind: case THEME_targeted: case THEME_updates: case THEME_blind:
	case THEME_limits:
		SOME(light);
		break;
	case THEME_replicas: case THEME_membership: case THEME_operators:
	case THEME_restarts_in_change: case THEME_whole_set: case THEME_forced: case THEME_bound:
	case THEME_prompt: case THEME_renewed: case THEME_crowd: case THEME_lies:
	case THEME_lying_master: case THEME_hangs: case THEME_crossed: case THEME_turns:
		/* Drawn by profile_members and profile_later. */
		break;
	case THEME_shared: case THEME_permits: case THEME_groups: case THEME_succession:
	case THEME_delays:
		for (size_t i = 0; i < FAULTS; i++) {
			p->fault_weight[i] = i != FAULT_LOSE_FILES &&
				prng_chance(r, 1, 4) ? 1 + weight(r, 9) : 0;
		}
		break;
	case THEMES:
		break;
	}
#undef SOME
	p->fault_every = scale(r, 100 * SPAN_MS, 3 * SPAN_S);
	p->down_max = prng_chance(r, 1, 2) ? scale(r, 5 * SPAN_MS, 100 * SPAN_MS)
		: scale(r, 50 * SPAN_MS, 2 * p->sim.max_lease);
	p->cut_max = scale(r, 50 * SPAN_MS, 2 * p->sim.max_lease);
	p->pause_max = scale(r, 20 * SPAN_MS, 2 * p->sim.max_lease);
}

static void theme_habits(struct profile *p, struct prng *r) {
	switch (p->theme) {
	case THEME_updates:
		p->idle_weight[HABIT_SHARED_UPDATE] = 40;
		p->hold_weight[HABIT_UPDATE] = 30;
		p->hold_weight[HABIT_EXTEND] = 20;
		p->hold_weight[HABIT_READ_OWN] = 10;
		p->think_max = scale(r, 5 * SPAN_MS, 40 * SPAN_MS);
		p->repeat_percent += 20;
		break;
	case THEME_blind:
		p->idle_weight[HABIT_SHARED_EXTEND] = 20;
		p->hold_weight[HABIT_BLIND_EXTEND] = 20;
		p->hold_weight[HABIT_MOVE] = 10;
		p->hold_weight[HABIT_ABANDON] = 10;
		break;
	case THEME_limits:
		p->identities = prng_chance(r, 1, 2);
		p->idle_weight[HABIT_STEAL] = p->identities ? 10 : 0;
		p->keys = (uint32_t)between(r, 2, 12);
		p->sim.limits.keys = (uint64_t)between(r, 1, 8);
		p->sim.limits.waiters_per_key = (uint32_t)between(r, 1, 3);
		p->sim.limits.released = (uint32_t)between(r, 2, 8);
		p->sim.limits.rounds = (uint32_t)between(r, 2, 8);
		p->sim.limits.catching_up = (uint32_t)between(r, 1, 4);
		p->wait_percent = 60;
		break;
	case THEME_clocks:
		p->sim.drift_ppm = 100000;
		p->lease_min = p->lease_max = scale(r, 300 * SPAN_MS, p->sim.max_lease);
		p->keys = (uint32_t)between(r, 1, 2);
		p->wait_percent = 90;
		p->hold_on_percent = 90;
		p->astray = prng_chance(r, 1, 2);
		break;
	case THEME_restarts:
		p->keys = (uint32_t)between(r, 1, 3);
		p->lease_max = p->sim.max_lease;
		break;
	case THEME_quiet:
		p->idle_weight[HABIT_BREAK] = 0;
		p->hold_weight[HABIT_VANISH] = 0;
		p->repeat_percent = p->silent_percent = 0;
		p->wait_percent = 80;
		p->wait_max = 60 * SPAN_S;
		break;
	case THEME_mixed: case THEME_drains: case THEME_partition: case THEME_pauses:
	case THEME_unkind: case THEME_targeted: case THEME_disks: case THEME_contested:
	case THEME_overlap: case THEME_moving: case THEME_late: case THEME_repeats: case THEME_duel:
	case THEME_replicas: case THEME_membership: case THEME_operators:
	case THEME_restarts_in_change: case THEME_whole_set: case THEME_forced: case THEME_shared:
	case THEME_permits: case THEME_groups: case THEME_succession: case THEME_delays:
	case THEME_bound: case THEME_prompt: case THEME_renewed: case THEME_shortage:
	case THEME_crowd: case THEME_lies: case THEME_lying_master: case THEME_hangs:
	case THEME_crossed: case THEME_turns: case THEMES:
		break;
	}
}

/* Everything lies within a few messages of everything else: what needs three accidents in a row
 * happens here. */
static void draw_duel(struct profile *p, struct prng *r) {
	static const uint32_t masters[] = { 3, 3, 3, 3, 3, 2, 4, 5 };
	struct sim_options *o = &p->sim;
	o->masters = masters[prng_below(r, sizeof masters / sizeof *masters)];
	o->delay_min = 100 * SPAN_US;
	o->delay_max = scale(r, 200 * SPAN_US, 3 * SPAN_MS);
	o->session_delay_max = scale(r, 40 * SPAN_US, SPAN_MS);
	o->request_timeout = scale(r, 15 * SPAN_MS, 40 * SPAN_MS);
	o->promise_timeout = 2 * o->request_timeout + scale(r, SPAN_MS, 20 * SPAN_MS);
	o->max_lease = scale(r, 60 * SPAN_MS, 250 * SPAN_MS);
	o->limits.lease_min = p->lease_min = 20 * SPAN_MS;
	o->disk_max = scale(r, 200 * SPAN_US, 2 * SPAN_MS);
	o->reconnect_max = scale(r, 2 * SPAN_MS, 10 * SPAN_MS);
	/* A disk's retry would take longer than all of this. */
	p->fault_weight[FAULT_DISK] = 0;
	p->lease_max = prng_chance(r, 1, 2) ? o->max_lease : scale(r, 30 * SPAN_MS, o->max_lease);
	p->clients = (uint32_t)between(r, 2, 4);
	p->keys = prng_chance(r, 3, 4) ? 1 : 2;
	p->think_min = 100 * SPAN_US;
	p->think_max = scale(r, SPAN_MS, 10 * SPAN_MS);
	p->wait_max = scale(r, 5 * SPAN_MS, 200 * SPAN_MS);
	p->repeat_percent = (uint32_t)between(r, 0, 80);
	p->fault_every = scale(r, 2 * o->request_timeout, 40 * o->request_timeout);
	p->down_max = scale(r, SPAN_MS, prng_chance(r, 1, 4) ? 2 * o->max_lease : 20 * SPAN_MS);
	p->cut_max = p->pause_max = scale(r, 10 * SPAN_MS, 2 * o->max_lease);
	p->active = scale(r, 3 * SPAN_S, 8 * SPAN_S);
}

void profile_draw(struct profile *p, uint64_t seed, enum profile_theme theme) {
	struct prng r;
	prng_init(&r, seed);
	/* Keys become contested too seldom to be left to an even draw. */
	uint64_t drawn = prng_below(&r, PROFILE_FIRST_LATER + 4);
	enum profile_theme later = profile_later_theme(seed);
	*p = (struct profile){ .theme = theme != THEMES ? theme : later != THEMES ? later :
		drawn < PROFILE_FIRST_LATER ? (enum profile_theme)drawn : THEME_contested };
	draw_sizes(p, &r);
	draw_habits(p, &r);
	theme_habits(p, &r);
	theme_faults(p, &r);
	if (p->theme == THEME_duel) {
		draw_duel(p, &r);
	}
	if (p->theme != THEME_quiet) {
		bool plain = p->theme == THEME_restarts || p->theme == THEME_drains ||
			p->theme == THEME_clocks;
		draw_adversary(p, &r, p->theme == THEME_unkind || (p->theme == THEME_duel &&
			prng_chance(&r, 1, 2)) || (!plain && prng_chance(&r, 1, 4)));
	}
	if (p->theme == THEME_targeted || (p->theme == THEME_duel && prng_chance(&r, 3, 4)) ||
		(p->theme != THEME_quiet && prng_chance(&r, 1, 5))) {
		draw_target(p, &r);
	}
	profile_sharpen(p, &r);
	if (p->theme != THEME_quiet && p->theme != THEME_limits && p->theme < THEME_replicas &&
		p->sim.masters < MASTERS_MAX && prng_chance(&r, 1, 6)) {
		profile_some_members(p, &r);
	}
	p->sim.seed = seed;
	if (p->sim.limits.released == 0) {
		/* This is more than a run releases (2,400 were seen). Each start of a node clears
		 * them all. */
		p->sim.limits.released = 4096;
	}
	/* In three of four runs the few holders of a key are enough for an index over them. */
	p->sim.limits.indexed = seed % 4 ? 1 + (uint32_t)(seed % 4) : 0;
	/* In two of three runs every value counts as a large one, which reports leave out. */
	p->sim.limits.report_value = seed % 3 ? 1 : 0;
	/* In two of three runs the second wait that is due in a turn of the loop is put off. */
	p->sim.limits.waits_a_turn = seed % 3 ? 1 : 0;
	/* In two of three runs the second key that is judged is put off. */
	p->sim.limits.judged_a_turn = seed % 3 ? 1 : 0;
	/* In every second run masters remember hardly any of the lock_ids that they lack. */
	p->sim.limits.lacked = seed % 2 ? 1 : 64;
	profile_terms(p);
	profile_later(p);
	profile_shortage(p);
}

static const char *const themes[] = {
#define PROFILE_NAME(name) #name,
	PROFILE_THEMES(PROFILE_NAME)
#undef PROFILE_NAME
};

enum profile_theme profile_theme_named(const char *name) {
	int theme = 0;
	while (theme < THEMES && strcmp(themes[theme], name) != 0) {
		theme++;
	}
	return (enum profile_theme)theme;
}

const char *profile_theme_name(enum profile_theme theme) {
	return themes[theme];
}

void profile_print(const struct profile *p, char *out, size_t size) {
	snprintf(out, size, "%s, %" PRIu32 " masters and %" PRIu32 " further nodes, %" PRIu32
		" clients, %" PRIu32 " keys, drift %.1f %%, request_timeout %.0f ms, "
		"promise_timeout %.0f ms, " "max_lease %.0f ms, delay %.2f to %.2f ms, lose %.1f "
		"%% double %.1f %% overtake %.1f %%, target action %d kinds %" PRIx64 "%016" PRIx64,
		themes[p->theme], p->sim.masters, p->sim.further,
		p->clients, p->keys, p->sim.drift_ppm / 1e4, (double)p->sim.request_timeout / 1e6,
		(double)p->sim.promise_timeout / 1e6, (double)p->sim.max_lease / 1e6,
		(double)p->sim.delay_min / 1e6, (double)p->sim.delay_max / 1e6,
		p->adversary.lose_ppm / 1e4, p->adversary.duplicate_ppm / 1e4,
		p->adversary.reorder_ppm / 1e4, (int)p->adversary.action,
		(uint64_t)(p->adversary.kinds >> 64), (uint64_t)p->adversary.kinds);
}
