/* profile_shortage.c: which runs are short of memory, or have links with full backlogs: those of a
 * theme of its own, and now and then others. All is drawn by a generator of its own, so that the
 * rest of a seed stays what it is. */
#include "profile.h"

static uint32_t weight(struct prng *r, uint32_t max) {
	return (uint32_t)prng_below(r, max + 1);
}

static uint32_t magnitude(struct prng *r, uint32_t top) {
	uint32_t ppm = 10;
	while (ppm < top && prng_chance(r, 3, 4)) {
		ppm *= 3;
	}
	return ppm;
}

/* Small pieces, so that the few holders of a run are reported in several of them. */
static void small_reports(struct profile *p, struct prng *r) {
	p->sim.limits.report_first = 1 + weight(r, 2);
	p->sim.limits.report_piece = 1 + weight(r, 2);
	p->sim.limits.report_value = 1;
	p->sim.limits.shown_a_turn = 1;
	p->sim.limits.waits_a_turn = 1;
	p->sim.limits.reports = 1 + weight(r, 2);
	p->sim.limits.list_piece = 1;
	p->sim.limits.weighed_at_once = 1;
}

/* Many share a key for a short while and go without a word, and everybody asks for explanations
 * while masters are slow to answer. */
static void crowd(struct profile *p, struct prng *r) {
	p->keys = 1;
	p->clients = 6 + weight(r, 2);
	p->shared_percent = 90;
	p->permits_percent = 0;
	p->wait_percent = 100;
	p->lease_max = p->lease_min + prng_between(r, 0, p->sim.request_timeout);
	p->idle_weight[HABIT_EXPLAIN] = 20;
	p->idle_weight[HABIT_GET] = 10;
	p->hold_weight[HABIT_ABANDON] = 20;
	p->hold_weight[HABIT_VANISH] = 10;
	p->fault_weight[FAULT_SLOW_LINK] = 6;
	p->fault_weight[FAULT_PAUSE] = 6;
	p->fault_weight[FAULT_CUT] = 6;
	p->pause_max = p->cut_max = 2 * p->sim.request_timeout;
	p->fault_every = 2 * p->sim.request_timeout;
}

void profile_shortage(struct profile *p) {
	struct prng r;
	prng_init(&r, p->sim.seed ^ UINT64_C(0x5407a6e));
	bool own = p->theme == THEME_shortage, kept_out = p->theme == THEME_quiet ||
		p->theme == THEME_limits || p->theme == THEME_forced;
	if (!own && (kept_out || !prng_chance(&r, 1, 24))) {
		return;
	}
	struct shortage *s = &p->shortage;
	s->always.alloc_ppm = prng_chance(&r, 1, 2) ? magnitude(&r, 5000) : 0;
	s->always.full_ppm = prng_chance(&r, 1, 2) ? magnitude(&r, 5000) : 0;
	s->memory_weight = weight(&r, 4);
	s->backlog_weight = weight(&r, 4);
	s->every = prng_between(&r, 20 * SPAN_MS, SPAN_S);
	s->span_most = prng_between(&r, SPAN_MS, prng_chance(&r, 1, 2) ? 20 * SPAN_MS : SPAN_S);
	if (!own) {
		return;
	}
	p->wait_max = prng_between(&r, 4 * SPAN_S, 8 * SPAN_S);
	p->wait_percent = p->wait_percent > 50 ? p->wait_percent : 50;
	if (prng_chance(&r, 1, 2)) {
		small_reports(p, &r);
		p->shared_percent = p->shared_percent > 40 ? p->shared_percent : 40;
		p->idle_weight[HABIT_GET] += 4;
		p->idle_weight[HABIT_EXPLAIN] += 2;
		p->idle_weight[HABIT_WAITERS] += 1;
	}
	if (prng_chance(&r, 1, 3)) {
		crowd(p, &r);
	}
	p->binding_percent = prng_chance(&r, 1, 2) ? weight(&r, 100) : p->binding_percent;
	p->fault_weight[FAULT_KILL] += 2;
}
