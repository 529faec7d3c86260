/* Runs that are short of memory, or whose backlogs are full: in a theme of its own, and now and then in others. What is drawn here is
 * drawn by generators of its own, so that the rest of a seed stays what it is. */
#include "run.h"

#include <inttypes.h>

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

/* Small pieces, so that the few holders of a run are reported in several. */
static void small_reports(struct profile *p, struct prng *r) {
	p->sim.limits.report_first = 1 + weight(r, 2);
	p->sim.limits.report_piece = 1 + weight(r, 2);
	p->sim.limits.report_value = 1;
	p->sim.limits.reports = 1 + weight(r, 2);
	p->sim.limits.list_piece = 1;
}

/* Many share a key for a short while and go without a word, and everybody asks what masters say that are slow to answer. */
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
	bool own = p->theme == THEME_shortage, kept_out = p->theme == THEME_quiet || p->theme == THEME_limits || p->theme == THEME_forced;
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

static void next(void *ctx, uint64_t arg) {
	struct run *run = ctx;
	const struct shortage *s = &run->profile.shortage;
	struct prng *r = &run->shortage_prng;
	const uint32_t total = s->memory_weight + s->backlog_weight;
	(void)arg;
	if (run->healing || total == 0) {
		return;
	}
	uint32_t node = (uint32_t)prng_below(r, sim_nodes(run->sim)), other = (uint32_t)prng_below(r, sim_nodes(run->sim));
	span_ns span = prng_between(r, 0, s->span_most);
	if (prng_below(r, total) < s->memory_weight) {
		uint32_t ppm = prng_chance(r, 1, 2) ? 1000000 : 10000 + weight(r, 500000);
		sim_node_short(run->sim, node, span, ppm);
	} else {
		sim_link_full(run->sim, node, other, span);
	}
	sim_at(run->sim, sim_now(run->sim) + prng_between(r, s->every / 4, 2 * s->every), next, run, 0);
}

void shortage_start(struct run *run) {
	const struct shortage *s = &run->profile.shortage;
	prng_init(&run->shortage_prng, run->profile.sim.seed ^ UINT64_C(0x7a6e5407));
	if (s->every) {
		sim_shortage_set(run->sim, &s->always);
		sim_at(run->sim, sim_now(run->sim) + prng_between(&run->shortage_prng, 0, SPAN_S), next, run, 0);
	}
}

void shortage_heal(struct run *run) {
	sim_shortage_set(run->sim, NULL);
}

/* ---- after the heal: who waits for what nobody has does not wait for leases to end ---- */

static bool held_anywhere(struct run *run, uint32_t key) {
	char name[16];
	const struct slice k = sim_name_key(name, key);
	for (uint32_t i = 0; i < sim_nodes(run->sim); i++) {
		struct core_inspect look;
		struct core *core = sim_node_core(run->sim, i);
		if (core && core_inspect(core, k, sim_node_clock(run->sim, i), &look)) {
			return true;
		}
	}
	return false;
}

static uint64_t waits_for(struct run *run, const struct caller *c, uint32_t *key) {
	for (int i = 0; i < CALLER_PENDING && c->wait > 0; i++) {
		const struct pending *p = &c->pending[i];
		if (p->id && p->op == CORE_ACQUIRE && p->lock == c->lock && !p->stolen && !p->second && sim_session_flows(c->session) && !sim_actor_paused(run->sim, &c->actor)) {
			*key = checker_lock_key(run->checker, p->lock);
			return p->id;
		}
	}
	return 0;
}

/* A promise of a coordinator that died may stand in the way, and so may a turn that nobody uses. */
static span_ns free_bound(const struct run *run) {
	const struct sim_options *o = &run->profile.sim;
	return 3 * o->promise_timeout + 4 * o->request_timeout + 20 * progress_hop(run) + 4 * o->disk_max + 200 * SPAN_MS;
}

void shortage_look(struct run *run) {
	struct vain *v = &run->vain;
	const int64_t now = sim_now(run->sim);
	if (!run->profile.shortage.every || now < v->next) {
		return;
	}
	v->next = now + 2 * SPAN_MS;
	for (uint32_t i = 0; i < run->profile.clients; i++) {
		uint32_t key = 0;
		uint64_t id = waits_for(run, &run->callers[i], &key);
		if (id == 0 || id != v->request[i] || held_anywhere(run, key)) {
			v->request[i] = id;
			v->since[i] = now;
		} else if (now - v->since[i] > free_bound(run)) {
			checker_violation(run->checker, "progress (who waits for a free key has it)", key,
				"client %" PRIu32 " waits at n%" PRIu32 " for what nobody has had for %.0f ms", i, run->callers[i].node + 1, (double)(now - v->since[i]) / 1e6);
		}
	}
}
