/* groupers.c: clients that want several keys at once (docs/protocol.md, section 11). They ask for
 * them as libpawl would, and again at other nodes. */
#include <inttypes.h>

#include "pawl/error.h"
#include "run.h"

static void think(void *ctx, uint64_t arg);

static void again(struct grouper *g, span_ns after) {
	sim_at(g->run->sim, sim_now(g->run->sim) + after, think, g, ++g->turn);
}

static span_ns pause_of(struct run *run) {
	return run_scale(run, run->profile.think_min, run->profile.think_max);
}

static uint32_t open_requests(const struct grouper *g) {
	uint32_t open = 0;
	for (int i = 0; i < 4; i++) {
		open += g->pending[i] != 0 && g->sets[i] == g->set;
	}
	return open;
}

bool grouper_done(const struct grouper *g) {
	return g->state == GROUPER_IDLE && open_requests(g) == 0;
}

/* ---- connections ---- */

static void replied(void *ctx, const struct sim_reply *reply);
static void closed(void *ctx);

static void forget(struct grouper *g, bool behind) {
	for (int i = 0; i < 4; i++) {
		g->pending[i] = g->behind[i] == behind ? 0 : g->pending[i];
	}
}

/* What was under way at the old node is forgotten with its connection. What is under way over a
 * connection that is left open goes on. */
static void connect(struct grouper *g, bool leave_open) {
	struct run *run = g->run;
	for (uint32_t i = 0; i < g->count && g->bound_locks && g->state == GROUPER_HOLDING; i++) {
		/* The client does not take the trouble of naming the next connection first. */
		checker_lock_gone(run->checker, g->locks[i]);
	}
	g->connections++;
	if (g->second) {
		checker_closed(run->checker, g->actor.number, g->connections - 2);
		sim_session_close(g->second);
		g->second = NULL;
	}
	forget(g, true);
	if (g->session && leave_open && sim_session_open(g->session)) {
		g->second = g->session;
		for (int i = 0; i < 4; i++) {
			g->behind[i] = true;
		}
	} else {
		if (g->session && sim_session_open(g->session)) {
			checker_closed(run->checker, g->actor.number, g->connections - 1);
			sim_session_close(g->session);
		}
		forget(g, false);
	}
	uint32_t node = (uint32_t)prng_below(&run->prng, sim_nodes(run->sim));
	g->session = sim_connect(run->sim, &g->actor, node,
		(struct sim_handler){ replied, closed, g });
}

/* ---- requests ---- */

static void ask(struct grouper *g) {
	struct run *run = g->run;
	char keys[CHECKER_MEMBERS][16];
	struct core_lock locks[CHECKER_MEMBERS];
	struct checker_op op = { .op = CORE_ACQUIRE_ALL, .client = g->actor.number,
		.key = checker_lock_key(run->checker, g->locks[0]),
		.lock = g->locks[0], .lease = g->lease, .wait = g->wait, .expect = CHECKER_NO_VALUE,
		.member_count = g->count };
	struct core_request r = { .op = CORE_ACQUIRE_ALL, .owner = slice_str("grouper"),
		.value = slice_str("v0"), .lease = g->lease, .wait = g->wait, .locks = locks,
		.lock_count = g->count };
	for (uint32_t i = 0; i < g->count; i++) {
		const struct terms *terms = checker_terms(run->checker, g->locks[i]);
		locks[i] = (struct core_lock){
			.key = sim_name_key(keys[i], checker_lock_key(run->checker, g->locks[i])),
			.lock_id = checker_lock_id(run->checker, g->locks[i]), .of = terms->of,
			.count = terms->count };
		op.members[i] = g->locks[i];
		r.terms.priority = terms->priority;
		r.terms.delay = terms->delay;
	}
	op.binding = r.terms.binding = g->bound_locks ? g->connections : 0;
	for (uint32_t i = 0; i < g->count; i++) {
		struct lock_info *info = caller_info(run, g->locks[i]);
		info->binding_top = r.terms.binding > info->binding_top ? r.terms.binding
			: info->binding_top;
	}
	int slot = 0;
	while (slot < 4 && g->pending[slot]) {
		slot++;
	}
	g->state = GROUPER_ASKING;
	if (slot < 4) {
		g->sets[slot] = g->set;
		g->bindings[slot] = op.binding;
		g->behind[slot] = false;
		g->pending[slot] = sim_send(g->session, &r);
		g->sent[slot] = sim_actor_clock(run->sim, &g->actor);
		checker_invoked(run->checker, g->pending[slot], &op);
	}
	span_ns patience = g->wait + run_scale(run, run->profile.sim.request_timeout,
		12 * run->profile.sim.request_timeout);
	if (prng_below(&run->prng, 100) < run->profile.repeat_percent) {
		patience = run_scale(run, SPAN_MS, patience);
	}
	again(g, patience);
}

static void ask_new(struct grouper *g) {
	struct run *run = g->run;
	const struct profile *p = &run->profile;
	struct terms common;
	uint32_t most = p->keys < CHECKER_MEMBERS ? p->keys : CHECKER_MEMBERS;
	uint32_t first = (uint32_t)prng_below(&run->prng, p->keys),
		step = prng_chance(&run->prng, 1, 2) ? 1 : p->keys - 1;
	caller_draw_terms(run, &common);
	g->set++;
	g->count = (uint32_t)prng_between(&run->prng, most > 1 ? 2 : 1, most);
	/* The keys are neighbours, upwards or downwards. */
	for (uint32_t i = 0; i < g->count; i++) {
		struct terms terms;
		caller_draw_terms(run, &terms);
		terms.priority = common.priority;
		terms.delay = common.delay;
		g->locks[i] = checker_lock_new(run->checker, (first + i * step) % p->keys, 0);
		*caller_info(run, g->locks[i]) = (struct lock_info){ .seen_value = CHECKER_NO_VALUE,
			.seq_value = CHECKER_NO_VALUE, .terms = terms, .known = true,
			.grouped = true };
		checker_lock_terms(run->checker, g->locks[i], &terms);
	}
	g->bound_locks = prng_below(&run->prng, 100) < p->binding_percent;
	for (uint32_t i = 0; i < g->count; i++) {
		caller_info(run, g->locks[i])->bound_locks = g->bound_locks;
	}
	g->lease = run_scale(run, p->lease_min, p->lease_max - common.delay);
	g->wait = prng_below(&run->prng, 100) < p->wait_percent
		? run_scale(run, SPAN_MS, p->wait_max) : 0;
	if (!g->session || !sim_session_open(g->session) || prng_chance(&run->prng, 1, 8)) {
		connect(g, false);
	}
	ask(g);
}

static void end_all(struct grouper *g) {
	for (uint32_t i = 0; i < g->count; i++) {
		checker_forget(g->run->checker, &g->actor, g->locks[i]);
		checker_lock_gone(g->run->checker, g->locks[i]);
	}
	g->state = GROUPER_IDLE;
	again(g, pause_of(g->run));
}

/* A client that has been told that it holds the locks releases them one by one. */
static void release_all(struct grouper *g) {
	struct run *run = g->run;
	for (uint32_t i = 0; i < g->count && sim_session_open(g->session); i++) {
		char key[16];
		uint32_t number = checker_lock_key(run->checker, g->locks[i]);
		struct core_request r = { .op = CORE_RELEASE, .key = sim_name_key(key, number),
			.lock_id = checker_lock_id(run->checker, g->locks[i]) };
		struct checker_op op = { .op = CORE_RELEASE, .client = g->actor.number,
			.key = number, .lock = g->locks[i] };
		checker_forget(run->checker, &g->actor, g->locks[i]);
		checker_lock_end(run->checker, g->locks[i]);
		checker_invoked(run->checker, sim_send(g->session, &r), &op);
	}
	end_all(g);
}

/* ---- answers ---- */

static void held(struct grouper *g, const struct sim_reply *reply, struct instant sent,
	uint32_t binding) {
	struct run *run = g->run;
	struct instant deadline = instant_add(sent, reply->r.valid);
	if (g->state == GROUPER_IDLE) {
		/* The locks were given up: nobody believes in them, as long as no answer counts. */
		return;
	}
	const bool again_held = g->state == GROUPER_HOLDING;
	run->counts[RUN_GROUP_TWICE] += again_held;
	if (again_held && binding < g->named) {
		run->counts[RUN_EARLIER_CONNECTION]++;
		return;
	}
	if (instant_distrusted(sim_actor_clock(run->sim, &g->actor), deadline)) {
		if (g->state == GROUPER_ASKING && open_requests(g) == 0) {
			release_all(g);
		}
		return;
	}
	run->counts[RUN_GROUP_HELD] += g->state == GROUPER_ASKING;
	g->state = GROUPER_HOLDING;
	for (uint32_t i = 0; i < g->count; i++) {
		(again_held && binding > g->named ? checker_believe_only : checker_believe)(
			run->checker, &g->actor, g->locks[i], deadline, reply->got[i].token);
		checker_binding_held(run->checker, g->locks[i], binding);
	}
	g->named = binding;
	again(g, run_scale(run, SPAN_MS, g->lease));
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct grouper *g = ctx;
	checker_returned(g->run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	int slot = 0;
	while (slot < 4 && g->pending[slot] != reply->r.id) {
		slot++;
	}
	if (slot == 4 || reply->r.op != CORE_ACQUIRE_ALL) {
		return;
	}
	g->pending[slot] = 0;
	if (g->sets[slot] != g->set) {
		/* It is about locks that were given up. */
		return;
	}
	if (reply->r.error == 0) {
		held(g, reply, g->sent[slot], g->bindings[slot]);
	} else if (g->state == GROUPER_ASKING && open_requests(g) == 0) {
		g->run->counts[RUN_GROUP_REFUSED]++;
		/* All or none: nothing has to be released. */
		end_all(g);
	}
}

static void closed(void *ctx) {
	struct grouper *g = ctx;
	struct run *run = g->run;
	if (g->second && !sim_session_open(g->second)) {
		g->second = NULL;
		forget(g, true);
	}
	if (sim_session_open(g->session)) {
		return;
	}
	connect(g, false);
	if (g->state == GROUPER_ASKING) {
		if (!run->healing && prng_chance(&run->prng, 3, 4)) {
			run->counts[RUN_GROUP_REPEATED]++;
			ask(g);
		} else {
			release_all(g);
		}
	}
}

/* There was no answer for a while. */
static void impatient(struct grouper *g) {
	struct run *run = g->run;
	uint64_t choice = prng_below(&run->prng, 8);
	if (run->healing && open_requests(g) > 0) {
		again(g, 2 * run->profile.sim.request_timeout);
	} else if (run->healing || choice == 7) {
		/* Its connection closes, and what it has over it is rolled back. */
		connect(g, false);
		if (prng_chance(&run->prng, 1, 2)) {
			release_all(g);
		} else {
			end_all(g);
		}
	} else if (choice < 2) {
		run->counts[RUN_GROUP_REPEATED]++;
		ask(g);
	} else {
		run->counts[RUN_GROUP_REPEATED]++;
		connect(g, choice < 5);
		ask(g);
	}
}

static void think(void *ctx, uint64_t arg) {
	struct grouper *g = ctx;
	struct run *run = g->run;
	if (g->turn != arg) {
		return;
	}
	if (sim_actor_paused(run->sim, &g->actor)) {
		sim_at(run->sim, g->actor.paused_until, think, g, arg);
		return;
	}
	if (g->state == GROUPER_ASKING) {
		impatient(g);
	} else if (g->state == GROUPER_HOLDING &&
		(run->healing || !prng_chance(&run->prng, 1, 8))) {
		release_all(g);
	} else if (g->state == GROUPER_HOLDING) {
		/* The client dies. */
		connect(g, false);
		for (uint32_t i = 0; i < g->count; i++) {
			checker_forget(run->checker, &g->actor, g->locks[i]);
		}
		g->state = GROUPER_IDLE;
		again(g, pause_of(run));
	} else if (!run->healing) {
		ask_new(g);
	}
}

void grouper_start(struct run *run, uint32_t number) {
	struct grouper *g = &run->groupers[number];
	*g = (struct grouper){ .run = run, .number = number };
	sim_actor_init(run->sim, &g->actor, 300 + number);
	again(g, prng_between(&run->prng, 0, 100 * SPAN_MS));
}
