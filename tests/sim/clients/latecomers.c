/* latecomers.c: clients that use the lock_ids of others at any time, like a process that was
 * started again with the lock_id that it had written down, or a request whose answer was lost long
 * ago. They extend without keeping a deadline, with and without the token, and repeat acquires,
 * also after the lock was lost, ended with its connection, was rolled back, or was held by others
 * meanwhile. They believe what is answered as held. */
#include <inttypes.h>

#include "check.h"
#include "pawl/error.h"
#include "run.h"

/* How many of the last locks are within reach; seldom all of them. */
#define REACH 24

static void think(void *ctx, uint64_t arg);

static void again(struct latecomer *l) {
	struct run *run = l->run;
	span_ns most = run->profile.think_max < 100 * SPAN_MS ? 2 * run->profile.think_max
		: 200 * SPAN_MS;
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->late, run->profile.think_min, most),
		think, l, ++l->turn);
}

bool latecomer_done(const struct latecomer *l) {
	return l->pending == 0 && !l->holds;
}

static uint32_t any_node(struct run *run) {
	return (uint32_t)prng_below(&run->late, sim_nodes(run->sim));
}

/* It no longer takes the lock for its own. A lock that ended with its connection may be used again
 * by anybody who has the lock_id. */
static void leave(struct latecomer *l) {
	struct run *run = l->run;
	if (l->holds && caller_info(run, l->lock)->bound_locks) {
		checker_lock_gone(run->checker, l->lock);
	} else if (l->holds) {
		checker_forget(run->checker, &l->actor, l->lock);
	}
	l->holds = false;
	l->pending = 0;
}

static void replied(void *ctx, const struct sim_reply *reply);
static void closed(void *ctx);

static void connect(struct latecomer *l) {
	struct run *run = l->run;
	if (l->session && sim_session_open(l->session)) {
		sim_session_close(l->session);
	}
	l->session = sim_connect(run->sim, &l->actor, any_node(run),
		(struct sim_handler){ replied, closed, l });
}

static void sent(struct latecomer *l, const struct core_request *request,
	const struct checker_op *op, bool deadline_kept) {
	struct run *run = l->run;
	struct core_request r = *request;
	char identity[8], key[16], owner[8];
	const struct lock_info *info = caller_info(run, l->lock);
	r.key = sim_name_key(key, op->key);
	snprintf(owner, sizeof owner, "o%u", (unsigned)(info->owner % 100));
	r.owner = slice_str(owner);
	if (run->profile.identities) {
		snprintf(identity, sizeof identity, "id%u", (unsigned)(info->identity % 10));
		r.identity = slice_str(identity);
	}
	l->op = op->op;
	l->deadline_kept = deadline_kept;
	l->sent = sim_actor_clock(run->sim, &l->actor);
	l->pending = sim_send(l->session, &r);
	checker_invoked(run->checker, l->pending, op);
}

static span_ns lease_of(struct run *run, const struct lock_info *info) {
	const struct profile *p = &run->profile;
	span_ns most = p->lease_max - info->terms.delay;
	return prng_between(&run->late, p->lease_min < most ? p->lease_min : most, most);
}

static void extend(struct latecomer *l, bool deadline_kept) {
	struct run *run = l->run;
	struct lock_info *info = caller_info(run, l->lock);
	struct core_request r = { .op = CORE_EXTEND,
		.lock_id = checker_lock_id(run->checker, l->lock), .lease = lease_of(run, info),
		.deadline_kept = deadline_kept };
	if (prng_chance(&run->late, 1, 2)) {
		r.token = checker_lock_token(run->checker, l->lock);
	}
	if (info->bound_locks && !deadline_kept) {
		r.binding = l->binding = ++info->binding_top;
	} else if (info->bound_locks) {
		r.binding = l->binding;
	}
	run->counts[RUN_LATE_COMER_EXTENDS]++;
	sent(l, &r, &(struct checker_op){ .op = CORE_EXTEND, .client = l->actor.number,
		.key = checker_lock_key(run->checker, l->lock), .lock = l->lock, .lease = r.lease,
		.deadline_kept = deadline_kept, .binding = r.binding }, deadline_kept);
}

static void repeat(struct latecomer *l) {
	struct run *run = l->run;
	struct lock_info *info = caller_info(run, l->lock);
	char value[16];
	snprintf(value, sizeof value, "v%" PRIu32, info->first_value);
	struct core_request r = { .op = CORE_ACQUIRE, .lock_id = checker_lock_id(run->checker,
		l->lock), .lease = lease_of(run, info), .wait = prng_chance(&run->late, 1, 2)
		? prng_between(&run->late, SPAN_MS, 4 * run->profile.sim.request_timeout) : 0,
		.value = slice_str(value), .terms = info->terms };
	r.terms.binding = info->bound_locks ? l->binding = ++info->binding_top : 0;
	run->counts[RUN_LATE_COMER_REPEATS]++;
	sent(l, &r, &(struct checker_op){ .op = CORE_ACQUIRE, .client = l->actor.number,
		.key = checker_lock_key(run->checker, l->lock), .lock = l->lock, .lease = r.lease,
		.wait = r.wait, .expect = CHECKER_NO_VALUE, .value = info->first_value,
		.priority = info->terms.priority, .binding = r.terms.binding }, false);
}

bool latecomers_use(const struct run *run, uint32_t lock, const struct latecomer *but) {
	for (uint32_t i = 0; i < LATECOMERS_MAX; i++) {
		const struct latecomer *l = &run->latecomers[i];
		if (l != but && l->run && l->lock == lock && !latecomer_done(l)) {
			return true;
		}
	}
	return false;
}

/* A lock that ends with its connection may be used by another client only when its holder has given
 * it up. Otherwise the holder would lose it with our connection. */
static bool choose(struct latecomer *l) {
	struct run *run = l->run;
	uint32_t count = checker_locks(run->checker),
		reach = prng_chance(&run->late, 1, 2) ? REACH / 4 : REACH;
	if (count == 0) {
		return false;
	}
	l->lock = count - 1 - (uint32_t)prng_below(&run->late, count < reach ? count : reach);
	const struct lock_info *info = caller_info(run, l->lock);
	if (!info->known || info->own) {
		return false;
	}
	return !info->bound_locks ||
		(checker_lock_is_gone(run->checker, l->lock) && !latecomers_use(run, l->lock, l));
}

static void use_one(struct latecomer *l) {
	struct run *run = l->run;
	if (!choose(l)) {
		return;
	}
	const struct lock_info *info = caller_info(run, l->lock);
	if (!l->session || !sim_session_open(l->session) || prng_chance(&run->late, 1, 4)) {
		connect(l);
	}
	bool may_repeat = !info->grouped && !checker_lock_released(run->checker, l->lock) &&
		checker_updates_left(run->checker, l->lock);
	if (may_repeat && prng_chance(&run->late, 1, 3)) {
		repeat(l);
	} else {
		extend(l, false);
	}
}

static void release(struct latecomer *l) {
	struct run *run = l->run;
	struct core_request r = { .op = CORE_RELEASE,
		.lock_id = checker_lock_id(run->checker, l->lock) };
	struct checker_op op = { .op = CORE_RELEASE, .client = l->actor.number,
		.key = checker_lock_key(run->checker, l->lock), .lock = l->lock };
	checker_forget(run->checker, &l->actor, l->lock);
	checker_lock_end(run->checker, l->lock);
	l->holds = false;
	sent(l, &r, &op, false);
}

static void replied(void *ctx, const struct sim_reply *reply) {
	struct latecomer *l = ctx;
	struct run *run = l->run;
	bool uses = reply->r.id == l->pending && l->op != CORE_RELEASE && !reply->r.error;
	bool gone = uses && checker_lock_is_gone(run->checker, l->lock);
	if (gone) {
		checker_lock_again(run->checker, l->lock);
	}
	checker_returned(run->checker, reply->r.id, reply, CHECKER_NO_VALUE);
	if (reply->r.id != l->pending || l->op == CORE_RELEASE) {
		l->pending = reply->r.id == l->pending ? 0 : l->pending;
		return;
	}
	l->pending = 0;
	struct instant now = sim_actor_clock(run->sim, &l->actor),
		deadline = instant_add(l->sent, reply->r.valid);
	if (reply->r.error) {
		if (l->holds && reply->r.error == PAWL_ELOST) {
			leave(l);
		}
		return;
	}
	bool late = instant_distrusted(now, deadline) ||
		(l->deadline_kept && (!l->holds || instant_distrusted(now, l->deadline)));
	if (late && gone) {
		checker_lock_gone(run->checker, l->lock);
	}
	if (late) {
		leave(l);
		return;
	}
	run->counts[RUN_LATE_COMER_HELD]++;
	checker_believe(run->checker, &l->actor, l->lock, deadline, reply->r.token);
	l->deadline = !l->holds || instant_left_short(now, deadline) > instant_left_short(now,
		l->deadline) ? deadline : l->deadline;
	l->holds = !checker_lock_ended(run->checker, l->lock);
	if (l->holds && caller_info(run, l->lock)->bound_locks) {
		checker_binding_held(run->checker, l->lock, l->binding);
	}
}

/* A bound lock lives on when its node dies: here it is left to its lease. */
static void closed(void *ctx) {
	leave(ctx);
}

static void hold(struct latecomer *l) {
	struct run *run = l->run;
	bool past = instant_distrusted(sim_actor_clock(run->sim, &l->actor), l->deadline) ||
		checker_lock_ended(run->checker, l->lock);
	uint64_t what = prng_below(&run->late, 8);
	if (past || (what == 0 && !run->healing)) {
		leave(l);
		connect(l);
	} else if ((run->healing && !run->renewing) || what == 1) {
		release(l);
	} else if (what < 5) {
		extend(l, true);
	}
}

static void think(void *ctx, uint64_t arg) {
	struct latecomer *l = ctx;
	struct run *run = l->run;
	if (l->turn != arg) {
		return;
	}
	/* The client dies. */
	if (l->pending && prng_chance(&run->late, 1, 8)) {
		leave(l);
		connect(l);
	} else if (l->pending == 0 && l->session && !sim_session_open(l->session)) {
		connect(l);
	} else if (l->pending == 0 && l->holds) {
		hold(l);
	} else if (l->pending == 0 && !run->healing) {
		use_one(l);
	}
	if (!run->healing || !latecomer_done(l)) {
		again(l);
	}
}

void latecomer_start(struct run *run, uint32_t number) {
	struct latecomer *l = &run->latecomers[number];
	*l = (struct latecomer){ .run = run, .lock = TRACE_NONE };
	sim_actor_init(run->sim, &l->actor, 700 + number);
	again(l);
}
