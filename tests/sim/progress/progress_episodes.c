/* progress_episodes.c: once nothing is wrong any more, a request for several keys fails, or a
 * holder's connection closes, while the set changes or not. What was held is free at once, however
 * long its lease was, also next to others who hold permits of the same key. And updates under one
 * lock_id do not defeat each other (docs/protocol.md, sections 2, 10 and 11). */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "progress.h"

#define PARTS 4
struct episode;
/* A client of the episode. */
struct part {
	struct episode *all;
	struct sim_actor actor;
	struct sim_session *session;
	uint32_t locks[2], count, binding;
	struct instant sent;
	int error;
	bool answered;
	/* How many updates have no answer yet. */
	uint32_t updates;
};
struct episode {
	struct run *run;
	/* The first of two keys; the other one is the next. */
	uint32_t key;
	struct part parts[PARTS];
	bool over;
};

/* Section 2, Update: where a master has promised the ballot of an update, the update is prepared
 * elsewhere, answered from there and written here within three ways of a message. That has to be
 * less than the time for which the master protects it, also on a fast clock. */
static bool protected(const struct run *run) {
	return 3 * run->profile.sim.delay_max < span_shrink(run->profile.sim.request_timeout / 4,
		2 * run->profile.sim.drift_ppm);
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct part *p = ctx;
	struct run *run = p->all->run;
	const struct core_reply *r = &reply->r;
	checker_returned(run->checker, r->id, reply, CHECKER_NO_VALUE);
	if (r->op == CORE_UPDATE) {
		p->updates--;
		if (r->error && protected(run)) {
			checker_violation(run->checker, "updates at once", p->all->key, "an update "
				"that expects nothing is answered %s, although nothing is wrong",
				pawl_error_code(r->error));
		}
		return;
	}
	p->answered = true;
	p->error = r->error;
	for (uint32_t i = 0; r->error == 0 &&
		(r->op == CORE_ACQUIRE || r->op == CORE_ACQUIRE_ALL) && i < p->count; i++) {
		checker_believe(run->checker, &p->actor, p->locks[i],
			instant_add(p->sent, r->valid),
			p->count > 1 ? reply->got[i].token : r->token);
	}
}

static void closed(void *ctx) {
	struct part *p = ctx;
	checker_violation(p->all->run->checker, "progress", p->all->key,
		"a connection broke although nothing was wrong any more");
}

/* Any member but the first, which a change may take out of the set. */
static uint32_t some_member(struct run *run) {
	uint32_t node = 0, count = checker_newest(run->checker)->node_count;
	CHECK(members_node(run, count > 1 ? 1 + (uint32_t)prng_below(&run->late, count - 1) : 0,
		&node));
	return node;
}

static void ask(struct episode *e, uint32_t number, uint32_t first, uint32_t count,
	const struct terms *terms, span_ns wait, uint32_t binding) {
	struct run *run = e->run;
	struct part *p = &e->parts[number];
	char keys[2][16];
	struct core_lock locks[2];
	struct checker_op op = { .op = count > 1 ? CORE_ACQUIRE_ALL : CORE_ACQUIRE,
		.client = 810 + number, .key = first, .lease = run->profile.sim.max_lease,
		.wait = wait, .expect = CHECKER_NO_VALUE, .member_count = count > 1 ? count : 0,
		.binding = binding };
	*p = (struct part){ .all = e, .count = count, .binding = binding };
	sim_actor_init(run->sim, &p->actor, 810 + number);
	p->session = sim_connect(run->sim, &p->actor, some_member(run),
		(struct sim_handler){ replied, closed, p });
	for (uint32_t i = 0; i < count; i++) {
		const struct terms plain = { .of = MODE_EXCLUSIVE },
			*mine = i == 0 ? terms : &plain;
		op.value = ++run->values;
		p->locks[i] = op.members[i] = checker_lock_new(run->checker, first + i, op.value);
		checker_lock_terms(run->checker, p->locks[i], mine);
		locks[i] = (struct core_lock){ .key = sim_name_key(keys[i], first + i),
			.lock_id = checker_lock_id(run->checker, p->locks[i]), .of = mine->of,
			.count = mine->count };
	}
	op.lock = p->locks[0];
	char value[16];
	snprintf(value, sizeof value, "v%" PRIu32, op.value);
	struct core_request r = { .op = op.op, .key = locks[0].key, .lock_id = locks[0].lock_id,
		.lease = op.lease, .wait = wait,
		.owner = slice_str("episode"), .value = slice_str(value),
		.terms = { .of = terms->of, .count = terms->count, .binding = binding },
		.locks = locks, .lock_count = count > 1 ? count : 0 };
	if (count > 1) {
		r.terms = (struct terms){ .binding = binding };
	}
	p->sent = sim_actor_clock(run->sim, &p->actor);
	checker_invoked(run->checker, sim_send(p->session, &r), &op);
}

static bool answered(void *ctx) {
	return ((struct part *)ctx)->answered;
}

static void must_have(struct part *p) {
	struct run *run = p->all->run;
	if (!sim_run_until(run->sim, answered, p, 10 * run->profile.sim.request_timeout) ||
		p->error) {
		checker_violation(run->checker, "progress (a free key is had)", p->all->key,
			"for an episode: %s",
			p->answered ? pawl_error_code(p->error) : "no answer");
	}
}

/* The client's connection is closed, in whatever state its request is. */
static void ends(void *ctx, uint64_t arg) {
	(void)arg;
	struct part *p = ctx;
	for (uint32_t i = 0; i < p->count; i++) {
		checker_lock_gone(p->all->run->checker, p->locks[i]);
	}
	sim_session_close(p->session);
	p->answered = true;
}

static void finish(struct episode *e) {
	for (uint32_t i = 0; i < PARTS; i++) {
		struct part *p = &e->parts[i];
		for (uint32_t j = 0; p->session && sim_session_open(p->session) && j < p->count;
			j++) {
			char key[16];
			uint32_t of = checker_lock_key(e->run->checker, p->locks[j]);
			struct core_request r = { .op = CORE_RELEASE, .key = sim_name_key(key, of),
				.lock_id = checker_lock_id(e->run->checker, p->locks[j]) };
			checker_lock_end(e->run->checker, p->locks[j]);
			checker_invoked(e->run->checker, sim_send(p->session, &r),
				&(struct checker_op){ .op = CORE_RELEASE, .client = 810 + i,
				.key = of, .lock = p->locks[j] });
		}
	}
	sim_run_for(e->run->sim, calm_settles(e->run));
	for (uint32_t i = 0; i < PARTS; i++) {
		if (e->parts[i].session) {
			sim_session_close(e->parts[i].session);
		}
	}
}

static void change(struct run *run) {
	if (run->profile.theme != THEME_forced && prng_chance(&run->late, 2, 3)) {
		members_demand_change(run);
	}
}

/* A request for two keys has taken the first one, and the second cannot be had; or what is held is
 * bound to a connection. */
static void rolls_back(struct run *run, uint32_t first) {
	const struct terms plain = { .of = MODE_EXCLUSIVE }, three = { .of = 10, .count = 3 };
	struct episode e = { .run = run, .key = first };
	bool permits = prng_chance(&run->late, 1, 2), bound = prng_chance(&run->late, 1, 2),
		cut = bound || prng_chance(&run->late, 1, 2);
	span_ns about = 4 * run->profile.sim.request_timeout + 8 * progress_hop(run) +
		4 * run->profile.sim.disk_max;
	if (permits) {
		ask(&e, 0, first, 1, &three, 0, 0);
		must_have(&e.parts[0]);
	}
	if (!bound) {
		ask(&e, 1, first + 1, 1, &plain, 0, 0);
		must_have(&e.parts[1]);
	}
	ask(&e, 2, first, 2, permits ? &three : &plain,
		cut ? 60 * SPAN_S : prng_between(&run->late, SPAN_MS, about), bound);
	if (bound) {
		must_have(&e.parts[2]);
	}
	if (cut) {
		sim_at(run->sim, sim_now(run->sim) + prng_between(&run->late, SPAN_MS, about), ends,
			&e.parts[2], 0);
	}
	change(run);
	if (!sim_run_until(run->sim, answered, &e.parts[2],
		about + 10 * run->profile.sim.request_timeout) || (!cut && !e.parts[2].error)) {
		checker_violation(run->checker, "progress (every request is answered)", first,
			"a request for two keys, of which one is held: %s",
			e.parts[2].answered ? "held" : "no answer");
	}
	run->counts[RUN_EPISODES]++;
	struct terms rest = permits ? (struct terms){ .of = 10, .count = 7 } : plain;
	calm_contend(run, first, &rest);
	if (bound) {
		calm_contend(run, first + 1, &plain);
	}
	finish(&e);
}

/* Three updates at once, through three nodes. */
static void updates(struct run *run, uint32_t first) {
	const struct terms plain = { .of = MODE_EXCLUSIVE };
	struct episode e = { .run = run, .key = first };
	char key[16];
	ask(&e, 0, first, 1, &plain, 0, 0);
	must_have(&e.parts[0]);
	for (uint32_t i = 1; i < PARTS; i++) {
		struct part *p = &e.parts[i];
		*p = (struct part){ .all = &e };
		sim_actor_init(run->sim, &p->actor, 810 + i);
		p->session = sim_connect(run->sim, &p->actor, some_member(run),
			(struct sim_handler){ replied, closed, p });
		uint32_t value = ++run->values;
		char text[16];
		snprintf(text, sizeof text, "v%" PRIu32, value);
		struct core_request r = { .op = CORE_UPDATE, .key = sim_name_key(key, first),
			.lock_id = checker_lock_id(run->checker, e.parts[0].locks[0]),
			.value = slice_str(text) };
		struct checker_op op = { .op = CORE_UPDATE, .client = 810 + i, .key = first,
			.lock = e.parts[0].locks[0], .expect = CHECKER_NO_VALUE, .value = value };
		p->updates++;
		checker_invoked(run->checker, sim_send(p->session, &r), &op);
	}
	sim_run_for(run->sim, 20 * run->profile.sim.request_timeout);
	for (uint32_t i = 1; i < PARTS; i++) {
		if (e.parts[i].updates) {
			checker_violation(run->checker, "progress (every request is answered)",
				first, "%" PRIu32 " updates are not", e.parts[i].updates);
		}
	}
	finish(&e);
}

void episodes_demand(struct run *run) {
	if (run->profile.sim.max_lease < 12 * calm_settles(run)) {
		/* Leases would end meanwhile. */
		return;
	}
	for (uint32_t i = 0; i < 3; i++) {
		rolls_back(run, 5000 + 4 * i);
	}
	updates(run, 5012);
}
