/* profile_terms.c: what the locks of a run exclude (docs/protocol.md, sections 10 and 11): drawn
 * for themes of their own, and here and there in the others. */
#include "profile.h"

#define KIND(name) MESSAGE_BIT(MESSAGE_##name)

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

static void press(struct profile *p, struct prng *r) {
	p->keys = 1 + weight(r, 2);
	p->clients = 4 + weight(r, 4);
	p->wait_percent = 40 + weight(r, 60);
	p->think_max = prng_between(r, 5 * SPAN_MS, 60 * SPAN_MS);
	p->idle_weight[HABIT_BREAK] = prng_chance(r, 1, 4);
	p->hold_weight[HABIT_RELEASE] = 5 + weight(r, 20);
}

static void some(struct profile *p, struct prng *r) {
	if (prng_chance(r, 1, 4)) {
		p->shared_percent = weight(r, 80);
	}
	if (prng_chance(r, 1, 5)) {
		p->permits_percent = weight(r, 100 - p->shared_percent);
	}
	if (prng_chance(r, 1, 6)) {
		p->hold_weight[HABIT_DOWNGRADE] = weight(r, 4);
		p->hold_weight[HABIT_TRANSFER] = weight(r, 4);
		p->idle_weight[HABIT_ASK] = weight(r, 2);
		p->idle_weight[HABIT_EXPLAIN] = weight(r, 2);
	}
	if (prng_chance(r, 1, 6)) {
		p->priority_percent = weight(r, 100);
	}
	if (prng_chance(r, 1, 8)) {
		p->delay_percent = weight(r, 50);
	}
	if (prng_chance(r, 1, 5)) {
		p->binding_percent = weight(r, 100);
	}
	if (prng_chance(r, 1, 8)) {
		p->groupers = 1 + weight(r, 1);
		p->keys = p->keys > 1 ? p->keys : 2;
	}
}

/* Trouble around the messages that the theme is about, much of it close together. */
static void aim(struct profile *p, struct prng *r) {
	static const message_set common[] = { KIND(COMMIT), KIND(EXTEND), KIND(PROMISE_ANSWER),
		KIND(RELEASE), KIND(LEARN) | KIND(COMMIT), KIND(TURN) };
	static const message_set succession[] = { KIND(HAND_OVER), KIND(NOMINATE),
		KIND(NOMINATE_ANSWER), KIND(DOWNGRADE), KIND(DOWNGRADE_ANSWER), KIND(TURN) };
	if (prng_chance(r, 1, 2)) {
		span_ns lease = prng_between(r, 50 * SPAN_MS, 250 * SPAN_MS);
		uint32_t clients = p->clients;
		profile_dense(p, r);
		p->clients = clients;
		/* A disk's retry would take longer than all of this. */
		p->fault_weight[FAULT_DISK] = 0;
		p->sim.max_lease = p->lease_max = lease;
		p->fault_every = prng_between(r, 5 * SPAN_MS, 100 * SPAN_MS);
		p->down_max = prng_between(r, SPAN_MS, 20 * SPAN_MS);
		p->cut_max = p->pause_max = prng_between(r, p->sim.request_timeout / 2, 2 * lease);
	}
	if (prng_chance(r, 2, 3)) {
		const message_set *kinds = p->theme == THEME_succession ? succession : common;
		p->adversary.kinds = kinds[prng_below(r, 6)];
		p->adversary.action =
			(enum sim_target_action)(1 + prng_below(r, SIM_TARGET_ACTIONS - 1));
		bool mild = p->adversary.action == SIM_TARGET_DELAY || p->adversary.action ==
			SIM_TARGET_LATE || p->adversary.action == SIM_TARGET_LOSE;
		p->adversary.target_ppm = mild ? 50000 + weight(r, 450000)
			: 2000 + weight(r, 30000);
		p->adversary.target_max = prng_between(r, p->sim.request_timeout / 2,
			p->sim.request_timeout + p->lease_max);
	}
}

static void theme(struct profile *p, struct prng *r) {
	press(p, r);
	aim(p, r);
	if (p->theme == THEME_shared) {
		p->shared_percent = 30 + weight(r, 60);
		p->hold_weight[HABIT_DOWNGRADE] = weight(r, 10);
	} else if (p->theme == THEME_permits) {
		p->permits_percent = 60 + weight(r, 40);
		p->shared_percent = weight(r, 100 - p->permits_percent);
	} else if (p->theme == THEME_groups) {
		p->keys = 2 + weight(r, 4);
		p->clients = 2 + weight(r, 3);
		p->groupers = 2 + weight(r, 1);
		p->binding_percent = prng_chance(r, 1, 2) ? weight(r, 100) : 0;
		p->shared_percent = prng_chance(r, 1, 3) ? weight(r, 60) : 0;
		p->permits_percent = prng_chance(r, 1, 4) ? weight(r, 40) : 0;
	} else if (p->theme == THEME_succession) {
		p->priority_percent = weight(r, 100);
		p->binding_percent = prng_chance(r, 1, 2) ? weight(r, 100) : 0;
		p->shared_percent = prng_chance(r, 1, 3) ? weight(r, 60) : 0;
		p->hold_weight[HABIT_TRANSFER] = 10 + weight(r, 20);
		p->hold_weight[HABIT_DOWNGRADE] = weight(r, 10);
		p->idle_weight[HABIT_ASK] = 1 + weight(r, 4);
		p->idle_weight[HABIT_EXPLAIN] = 1 + weight(r, 4);
	} else {
		p->delay_percent = 40 + weight(r, 60);
		p->binding_percent = prng_chance(r, 1, 2) ? weight(r, 100) : 0;
		p->hold_weight[HABIT_MOVE] = weight(r, 10);
		p->shared_percent = prng_chance(r, 1, 3) ? weight(r, 60) : 0;
		p->hold_weight[HABIT_ABANDON] = 10 + weight(r, 10);
		p->hold_weight[HABIT_VANISH] = 5 + weight(r, 10);
	}
}

/* Nothing but a queue: many clients want one key that is held for long. So little else happens that
 * no node hears of the others' clocks between two requests; and it is not in doubt which request
 * came first. */
static void calm(struct profile *p, struct prng *r) {
	static const uint32_t masters[] = { 2, 3, 3, 3, 5, 5, 7 };
	p->sim.masters = masters[prng_below(r, sizeof masters / sizeof *masters)];
	p->sim.delay_max = p->sim.delay_min + prng_between(r, 50 * SPAN_US, 300 * SPAN_US);
	p->sim.session_delay_max = 100 * SPAN_US;
	p->sim.disk_max = 200 * SPAN_US;
	p->sim.request_timeout = prng_between(r, 300 * SPAN_MS, SPAN_S);
	p->sim.promise_timeout = 2 * p->sim.request_timeout;
	p->sim.max_lease = 3 * SPAN_S;
	p->keys = 1;
	p->clients = 8;
	p->think_min = 5 * SPAN_MS;
	p->think_max = prng_between(r, 20 * SPAN_MS, 60 * SPAN_MS);
	p->hold_on_percent = 0;
	p->active = 12 * SPAN_S;
	p->lease_min = p->lease_max = p->sim.max_lease;
	p->wait_percent = 100;
	for (int i = 0; i < HABITS; i++) {
		/* So that some requests come while one client holds the key. */
		p->idle_weight[i] = i == HABIT_ACQUIRE ? 2 : i == HABIT_MOVE ? 5 : i == HABIT_IDLE
			? 20 : 0;
		p->hold_weight[i] = i == HABIT_RELEASE ? 1 : i == HABIT_IDLE ? 3 : 0;
	}
}

void profile_terms(struct profile *p) {
	struct prng r;
	prng_init(&r, p->sim.seed ^ UINT64_C(0x7e525));
	p->permits_of = prng_chance(&r, 1, 8) ? (uint32_t)prng_between(&r, 60, PERMITS_MAX)
		: (uint32_t)prng_between(&r, 1, 5);
	/* A lease and its delay have a common limit (R5), and are not drawn with regard to each
	 * other: so half of the longest lease is left for delays. */
	span_ns room = p->lease_max - p->lease_min;
	p->delay_max = room > 2 * SPAN_MS ? room / 2 : 0;
	switch (p->theme) {
	case THEME_shared:
	case THEME_permits:
	case THEME_groups:
	case THEME_succession:
	case THEME_delays:
		theme(p, &r);
		break;
	case THEME_quiet:
		if (prng_chance(&r, 1, 2)) {
			p->shared_percent = weight(&r, 80);
			p->permits_percent = weight(&r, 100 - p->shared_percent);
			p->priority_percent = weight(&r, 50);
		}
		if (prng_chance(&r, 1, 4)) {
			calm(p, &r);
		}
		break;
	case THEME_mixed: case THEME_restarts: case THEME_drains: case THEME_partition:
	case THEME_clocks: case THEME_pauses: case THEME_unkind: case THEME_targeted:
	case THEME_updates: case THEME_blind: case THEME_contested: case THEME_moving:
	case THEME_late: case THEME_repeats: case THEME_overlap: case THEME_disks: case THEME_duel:
	case THEME_replicas: case THEME_membership: case THEME_operators:
	case THEME_restarts_in_change: case THEME_whole_set: case THEME_shortage:
		some(p, &r);
		break;
	case THEME_limits: case THEME_forced: case THEME_bound: case THEME_prompt:
	case THEME_renewed: case THEME_crowd: case THEME_lies: case THEME_lying_master:
	case THEME_hangs: case THEME_crossed: case THEME_turns: case THEMES:
		break;
	}
	p->delay_percent = p->delay_max ? p->delay_percent : 0;
}
