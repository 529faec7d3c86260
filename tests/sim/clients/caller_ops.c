/* caller_ops.c: the requests of a client. */
#include <inttypes.h>

#include "check.h"
#include "run.h"

static void out_of_patience(void *ctx, uint64_t arg);

static void publish(struct run *run, uint32_t lock) {
	if (caller_info(run, lock)->own) {
		return;
	}
	run->public_locks[prng_below(&run->prng, PUBLIC_LOCKS)] = lock;
}

static uint32_t public_lock(struct run *run) {
	uint32_t lock = run->public_locks[prng_below(&run->prng, PUBLIC_LOCKS)];
	return lock != TRACE_NONE && !checker_lock_ended(run->checker, lock) ? lock : TRACE_NONE;
}

/* Returns a lock whose value may be acted on: a release that expects a value may be under way. */
static uint32_t public_value(struct run *run) {
	uint32_t lock = run->public_locks[prng_below(&run->prng, PUBLIC_LOCKS)];
	return lock != TRACE_NONE && (!checker_lock_ended(run->checker, lock) ||
		checker_lock_ended_by_value(run->checker, lock)) ? lock : TRACE_NONE;
}

void caller_acquire_send(struct caller *c) {
	struct run *run = c->run;
	const struct checker *checker = run->checker;
	char value[16];
	struct lock_info *info = caller_info(run, c->lock);
	uint32_t key = checker_lock_key(checker, c->lock);
	snprintf(value, sizeof value, "v%" PRIu32, info->first_value);
	struct core_request r = { .op = CORE_ACQUIRE, .lock_id = checker_lock_id(checker, c->lock),
		.lease = c->lease, .wait = c->wait, .value = slice_str(value),
		.terms = info->terms };
	if (!c->session || !sim_session_open(c->session)) {
		caller_connect(c, false);
	}
	const uint32_t binding = info->bound_locks ? c->connections : 0;
	info->binding_top = binding > info->binding_top ? binding : info->binding_top;
	r.ordered = info->order > 0;
	r.terms.binding = r.ordered ? info->order : binding;
	struct checker_op op = { .op = CORE_ACQUIRE, .client = c->number, .key = key,
		.lock = c->lock, .lease = c->lease, .wait = c->wait, .expect = CHECKER_NO_VALUE,
		.value = info->first_value, .priority = info->terms.priority,
		.binding = binding, .order = info->order };
	c->state = CALLER_ACQUIRING;
	caller_send(c, &r,
		(struct pending){ .op = CORE_ACQUIRE, .lock = c->lock, .binding = r.terms.binding },
		&op);
	span_ns patience = c->wait + run_scale(run, run->profile.sim.request_timeout / 4,
		6 * run->profile.sim.request_timeout);
	if (prng_below(&run->prng, 100) < run->profile.repeat_percent) {
		patience = run_scale(run, SPAN_MS, patience);
	}
	sim_at(run->sim, sim_now(run->sim) + patience, out_of_patience, c, ++c->patience);
}

void caller_acquire_new(struct caller *c) {
	struct run *run = c->run;
	const struct profile *p = &run->profile;
	uint32_t value = ++run->values;
	c->lock = checker_lock_new(run->checker, (uint32_t)prng_below(&run->prng, p->keys), value);
	*caller_info(run, c->lock) = (struct lock_info){ .seen_value = value,
		.seq_value = CHECKER_NO_VALUE, .first_value = value, .identity = c->identity,
		.known = true, .owner = c->number };
	caller_draw_terms(run, &caller_info(run, c->lock)->terms);
	checker_lock_terms(run->checker, c->lock, &caller_info(run, c->lock)->terms);
	caller_info(run, c->lock)->bound_locks = prng_below(&run->prng, 100) < p->binding_percent;
	caller_info(run, c->lock)->own = !caller_bound(c) && prng_chance(&run->late, 1, 4);
	c->lease = run_scale(run, p->lease_min,
		p->lease_max - caller_info(run, c->lock)->terms.delay);
	if (p->theme == THEME_limits && prng_chance(&run->prng, 1, 20)) {
		c->lease = p->sim.max_lease + SPAN_S;
	}
	c->wait = prng_below(&run->prng, 100) < p->wait_percent
		? run_scale(run, SPAN_MS, p->wait_max) : 0;
	c->refused_badly = false;
	c->token = 0;
	caller_acquire_send(c);
}

/* There was no answer for a while. The client repeats the request here, where it joins the first
 * one; or elsewhere, while the first one goes on or not; or it gives up. */
static void out_of_patience(void *ctx, uint64_t arg) {
	struct caller *c = ctx;
	struct run *run = c->run;
	if (c->patience != arg || c->state != CALLER_ACQUIRING) {
		return;
	}
	if (sim_actor_paused(run->sim, &c->actor)) {
		sim_at(run->sim, c->actor.paused_until, out_of_patience, c, arg);
		return;
	}
	uint64_t choice = run->profile.theme == THEME_quiet ? 7 : prng_below(&run->prng, 8);
	if (run->healing || choice == 7) {
		if (caller_awaits(c, CORE_ACQUIRE, c->lock) &&
			(run->healing || run->profile.theme == THEME_quiet)) {
			sim_at(run->sim, sim_now(run->sim) + 2 * run->profile.sim.request_timeout,
				out_of_patience, c, arg);
			return;
		}
		caller_release(c, c->lock);
	} else if (choice < 2 && caller_pending(c, 0)) {
		run->counts[RUN_REPEATED_SAME]++;
		caller_acquire_send(c);
	} else {
		run->counts[RUN_REPEATED_OTHER]++;
		caller_connect(c, choice < 5);
		caller_acquire_send(c);
	}
}

/* The holder may shorten its lease instead. It gives up its trust in any later end before it asks,
 * whatever the answer will be. */
static void shorten(struct caller *c, struct core_request *r) {
	struct run *run = c->run;
	struct lock_info *info = caller_info(run, c->lock);
	const struct instant now = sim_actor_clock(run->sim, &c->actor);
	if (run->healing || c->state != CALLER_HOLDING || instant_distrusted(now, c->deadline) ||
		prng_chance(&run->late, 1, 2)) {
		return;
	}
	info->order++;
	r->shorten = true;
	const span_ns least = run->profile.lease_min,
		left = instant_left_short(now, c->deadline);
	r->lease = prng_between(&run->late, least, left > least ? left : least);
	const struct instant deadline = instant_add(now,
		span_shrink(r->lease, run->profile.sim.drift_ppm));
	if (instant_left_short(now, deadline) < instant_left_short(now, c->deadline)) {
		run->counts[RUN_SHORTENED]++;
		c->deadline = deadline;
	}
	c->named = info->order;
	checker_shortened(run->checker, &c->actor, c->lock, c->deadline, r->lease);
}

void caller_extend(struct caller *c, uint32_t lock, bool deadline_kept) {
	struct run *run = c->run;
	span_ns lease = run_scale(run, run->profile.lease_min,
		run->profile.lease_max - caller_info(run, lock)->terms.delay);
	if (run->profile.theme == THEME_limits && prng_chance(&run->prng, 1, 20)) {
		lease = run->profile.sim.max_lease + SPAN_S;
	}
	struct core_request r = { .op = CORE_EXTEND, .lock_id = checker_lock_id(run->checker, lock),
		.lease = lease, .deadline_kept = deadline_kept };
	if (lock == c->lock && c->token && prng_chance(&run->prng, 1, 2)) {
		r.token = c->token;
	}
	/* Some extensions name no permit numbers. */
	if (lock == c->lock && (c->number + lock) % 4) {
		r.terms.set = c->numbers;
	}
	if (!c->session || !sim_session_open(c->session)) {
		caller_connect(c, false);
	}
	/* Over another connection than the one that the lock is bound to, it asks as a caller that
	 * does not keep the deadline. Over the one that it is bound to, some name none. */
	uint32_t binding = 0;
	if (lock == c->lock && caller_bound(c)) {
		binding = c->connections;
		caller_info(run, lock)->binding_top = binding > caller_info(run,
			lock)->binding_top ? binding : caller_info(run, lock)->binding_top;
		r.deadline_kept = deadline_kept = deadline_kept && c->named == binding;
		r.binding = c->named == binding && (c->number + lock) % 4 < 2 ? 0 : binding;
	}
	struct checker_op op = { .op = CORE_EXTEND, .client = c->number,
		.key = checker_lock_key(run->checker, lock), .lock = lock,
		.deadline_kept = deadline_kept, .binding = r.binding, .numbers = r.terms.set };
	if (lock == c->lock && caller_info(run, lock)->own) {
		shorten(c, &r);
		op.order = r.binding = binding = caller_info(run, lock)->order;
		r.ordered = r.binding > 0;
	}
	op.lease = r.lease;
	caller_send(c, &r, (struct pending){ .op = CORE_EXTEND, .lock = lock,
		.deadline_kept = deadline_kept, .binding = binding }, &op);
	if (r.shorten && c->lock == lock && prng_chance(&run->late, 1, 2)) {
		/* It goes on elsewhere at once: what comes late must not cut what that answers. */
		caller_connect(c, true);
		caller_extend(c, lock, true);
	}
}

void caller_update(struct caller *c, uint32_t lock) {
	struct run *run = c->run;
	if (!checker_updates_left(run->checker, lock)) {
		return;
	}
	struct lock_info *info = caller_info(run, lock);
	uint32_t value = ++run->values;
	char text[16], expected[16];
	snprintf(text, sizeof text, "v%" PRIu32, value);
	struct core_request r = { .op = CORE_UPDATE, .lock_id = checker_lock_id(run->checker, lock),
		.value = slice_str(text) };
	struct checker_op op = { .op = CORE_UPDATE, .client = c->number,
		.key = checker_lock_key(run->checker, lock), .lock = lock,
		.expect = CHECKER_NO_VALUE, .value = value };
	uint64_t how = prng_below(&run->prng, 5);
	if (how < 2 && info->seen_value != CHECKER_NO_VALUE) {
		op.expect = prng_chance(&run->prng, 1, 10) ? 0 : info->seen_value;
		snprintf(expected, sizeof expected, "v%" PRIu32, op.expect);
		r.expect_value = true;
		r.expected = slice_str(expected);
	} else if (how < 4 && info->seq_value != CHECKER_NO_VALUE) {
		op.expect = info->seq_value;
		op.by_seq = true;
		r.expect_seq = true;
		r.expected_seq = info->seq;
	}
	caller_send(c, &r, (struct pending){ .op = CORE_UPDATE, .lock = lock, .value = value },
		&op);
}

static void read_key(struct caller *c, enum core_op kind, uint32_t key, bool quorum) {
	struct run *run = c->run;
	struct core_request r = { .op = kind, .admin = true, .quorum = quorum,
		.prefix = kind == CORE_WAITERS && prng_chance(&run->prng, 1, 2) };
	struct checker_op op = { .op = kind, .client = c->number, .key = key, .lock = TRACE_NONE,
		.quorum = quorum, .expect = CHECKER_NO_VALUE };
	if (kind == CORE_WAIT) {
		r.for_free = op.for_free = prng_chance(&run->prng, 1, 2);
		r.wait = op.wait = run_scale(run, SPAN_MS,
			run->profile.wait_max < SPAN_S ? run->profile.wait_max : SPAN_S);
	}
	caller_send(c, &r, (struct pending){ .op = kind, .lock = TRACE_NONE }, &op);
}

/* An administrator names the token that it saw. */
static void break_lock(struct caller *c) {
	struct run *run = c->run;
	uint32_t lock = public_lock(run);
	uint64_t token = lock == TRACE_NONE ? 0 : checker_lock_token(run->checker, lock);
	if (token == 0) {
		return;
	}
	struct core_request r = { .op = CORE_BREAK, .admin = true,
		.now = prng_chance(&run->prng, 1, 2), .token = token };
	struct checker_op op = { .op = CORE_BREAK, .client = c->number,
		.key = checker_lock_key(run->checker, lock), .lock = TRACE_NONE };
	checker_lock_bar(run->checker, lock);
	if (r.now) {
		checker_lock_end(run->checker, lock);
	}
	caller_send(c, &r, (struct pending){ .op = CORE_BREAK, .lock = TRACE_NONE }, &op);
}

/* Asks under its own identity for a lock_id that somebody else drew. */
static void steal(struct caller *c) {
	uint32_t lock = public_lock(c->run);
	if (lock == TRACE_NONE || caller_info(c->run, lock)->identity == c->identity) {
		return;
	}
	struct core_request r = { .op = CORE_ACQUIRE, .lock_id = checker_lock_id(c->run->checker,
		lock), .lease = c->run->profile.lease_min, .value = slice_str("v0"),
		.terms = caller_info(c->run, lock)->terms };
	struct checker_op op = { .op = CORE_ACQUIRE, .client = c->number,
		.key = checker_lock_key(c->run->checker, lock), .lock = lock, .lease = r.lease,
		.expect = CHECKER_NO_VALUE, .value = 0 };
	struct lock_info *info = caller_info(c->run, lock);
	info->stolen = info->stolen || !checker_lock_believed(c->run->checker, lock);
	caller_send(c, &r, (struct pending){ .op = CORE_ACQUIRE, .lock = lock, .stolen = true },
		&op);
}

static void shared_extend(struct caller *c) {
	uint32_t lock = public_lock(c->run);
	if (lock != TRACE_NONE) {
		c->run->counts[RUN_SHARED]++;
		caller_extend(c, lock, false);
	}
}

static void shared_value(struct caller *c, void act(struct caller *c, uint32_t lock)) {
	uint32_t lock = public_value(c->run);
	if (lock != TRACE_NONE) {
		c->run->counts[RUN_SHARED]++;
		act(c, lock);
	}
}

static void give_up_quietly(struct caller *c, bool dies) {
	if (caller_bound(c)) {
		/* The lock ends when the connection does, whenever that is. */
		checker_lock_gone(c->run->checker, c->lock);
		if (dies && c->named == c->connections && c->session &&
			sim_session_open(c->session)) {
			checker_lock_ends_at(c->run->checker, c->lock, c->node);
		}
	}
	if (dies) {
		checker_forget(c->run->checker, &c->actor, c->lock);
		c->lock = TRACE_NONE;
		caller_connect(c, false);
	}
	c->lock = TRACE_NONE;
	c->state = CALLER_IDLE;
}

void caller_habit(struct caller *c, enum client_habit habit) {
	uint32_t key = (uint32_t)prng_below(&c->run->prng, c->run->profile.keys);
	if (c->state == CALLER_HOLDING) {
		publish(c->run, c->lock);
	}
	switch (habit) {
	case HABIT_ACQUIRE: caller_acquire_new(c); break;
	case HABIT_GET: read_key(c, CORE_GET, key, prng_chance(&c->run->prng, 2, 3)); break;
	case HABIT_WAIT: read_key(c, CORE_WAIT, key, false); break;
	case HABIT_LIST: read_key(c, CORE_LIST, key, false); break;
	case HABIT_WAITERS: read_key(c, CORE_WAITERS, key, false); break;
	case HABIT_BREAK: break_lock(c); break;
	case HABIT_ASK: caller_ask(c, key); break;
	case HABIT_EXPLAIN: read_key(c, CORE_EXPLAIN, key, false); break;
	case HABIT_TRANSFER: caller_transfer(c); break;
	case HABIT_DOWNGRADE: caller_downgrade(c); break;
	case HABIT_STEAL: steal(c); break;
	case HABIT_SHARED_UPDATE: shared_value(c, caller_update); break;
	case HABIT_SHARED_RELEASE: shared_value(c, caller_release_by_value); break;
	case HABIT_SHARED_EXTEND: shared_extend(c); break;
	case HABIT_EXTEND: caller_extend(c, c->lock, true); break;
	case HABIT_BLIND_EXTEND: caller_extend(c, c->lock, false); break;
	case HABIT_UPDATE: caller_update(c, c->lock); break;
	case HABIT_READ_OWN: read_key(c, CORE_GET, checker_lock_key(c->run->checker, c->lock),
		true); break;
	case HABIT_RELEASE: caller_release(c, c->lock); break;
	case HABIT_RELEASE_BY_VALUE: caller_release_by_value(c, c->lock); break;
	case HABIT_ABANDON:
		/* It lets the lock run out, and goes on believing until then. */
		give_up_quietly(c, false);
		break;
	case HABIT_VANISH:
		if (!caller_dies(c)) {
			give_up_quietly(c, true);
		}
		break;
	case HABIT_MOVE: caller_move(c, prng_chance(&c->run->prng, 1, 2)); break;
	case HABIT_IDLE:
	case HABITS:
		break;
	}
}
