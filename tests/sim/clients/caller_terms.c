/* caller_terms.c: what a client does where a key may have several holders (docs/protocol.md,
 * section 10): the terms that it draws, downgrades, hand-overs, and requests to let go. */
#include "pawl/error.h"
#include "run.h"

void caller_draw_terms(struct run *run, struct terms *terms) {
	const struct profile *p = &run->profile;
	uint64_t kind = prng_below(&run->prng, 100);
	*terms = (struct terms){ .of = MODE_EXCLUSIVE };
	if (kind < p->shared_percent) {
		terms->of = MODE_SHARED;
	} else if (kind < p->shared_percent + p->permits_percent) {
		terms->of = (uint16_t)p->permits_of;
		uint32_t most = p->permits_most ? p->permits_most : p->permits_of > 2
			? p->permits_of - 1 : p->permits_of;
		terms->count = (uint16_t)prng_between(&run->prng, 1, most);
	}
	if (prng_below(&run->prng, 100) < p->priority_percent) {
		terms->priority = (int32_t)prng_between(&run->prng, -2, 2);
	}
	if (prng_below(&run->prng, 100) < p->delay_percent) {
		terms->delay = run_scale(run, SPAN_MS, p->delay_max);
	}
}

/* ---- release on disconnect (section 2) ---- */

bool caller_bound(const struct caller *c) {
	return c->lock != TRACE_NONE && c->run->locks[c->lock].bound_locks;
}

/* A client stops believing in a lock before it closes the connection that the lock ends with. */
void caller_before_closing(struct caller *c, bool leave_open) {
	bool holds = c->state == CALLER_HOLDING && caller_bound(c);
	bool closes_second = c->second && sim_session_open(c->second) &&
		c->named <= c->second_number;
	bool closes_this = !leave_open && c->session && sim_session_open(c->session);
	if (holds && (closes_second || closes_this)) {
		c->run->counts[RUN_BINDING_DROPPED]++;
		checker_lock_gone(c->run->checker, c->lock);
		if (closes_this && c->named == c->connections) {
			checker_lock_ends_at(c->run->checker, c->lock, c->node);
		}
		c->lock = TRACE_NONE;
		c->state = CALLER_IDLE;
	}
}

/* The next session binding is named through the other node first. */
void caller_move(struct caller *c, bool leave_open) {
	bool holds = c->state == CALLER_HOLDING && caller_bound(c);
	caller_connect(c, leave_open || (holds && prng_chance(&c->run->prng, 3, 4)));
	if (c->state == CALLER_HOLDING && caller_bound(c)) {
		c->run->counts[RUN_BINDING_MOVED]++;
		caller_extend(c, c->lock, false);
	}
}

/* The client goes on with this lock. What it knew of the lock that it had in between must not stay:
 * its next extension would name the permit numbers of that one, and be answered for these alone
 * (section 10). */
static void take_up(struct caller *c, uint32_t lock, struct instant deadline, uint64_t token,
	struct permits numbers) {
	c->state = CALLER_HOLDING;
	c->lock = lock;
	c->deadline = deadline;
	c->token = token;
	c->numbers = numbers;
	c->named = 0;
}

/* The process has started again. It knows key and lock_id, but neither deadline nor permit numbers.
 * The lock ends with the connection over which it now asks. */
static void lives_again(void *ctx, uint64_t lock) {
	struct caller *c = ctx;
	if (c->died_with != lock) {
		return;
	}
	c->died_with = TRACE_NONE;
	if (c->run->healing || c->state != CALLER_IDLE ||
		sim_actor_paused(c->run->sim, &c->actor) ||
		!caller_pending(c, 0) || !checker_lock_is_gone(c->run->checker, (uint32_t)lock) ||
		latecomers_use(c->run, (uint32_t)lock, NULL)) {
		/* Two clients at once would end the lock for each other. */
		return;
	}
	/* Others may have tried to use it meanwhile. */
	const struct lock_info *info = caller_info(c->run, (uint32_t)lock);
	c->connections = info->binding_top >= c->connections ? info->binding_top + 1
		: c->connections;
	checker_lock_again(c->run->checker, (uint32_t)lock);
	c->run->counts[RUN_BINDING_REVIVED]++;
	take_up(c, (uint32_t)lock, (struct instant){ 0, 0 }, 0, (struct permits){ { 0, 0 } });
	caller_extend(c, c->lock, false);
}

/* The process of a client that holds a bound lock dies. True: it will ask for the lock again,
 * perhaps after somebody else has had the key. */
bool caller_dies(struct caller *c) {
	/* A generator of its own, so that the other choices of the run do not depend on this
	 * one. */
	struct prng own;
	prng_init(&own, c->run->profile.sim.seed ^ (uint64_t)sim_now(c->run->sim));
	if (!caller_bound(c) || caller_info(c->run, c->lock)->terms.delay ||
		prng_chance(&own, 1, 4)) {
		/* A lock delay counts from the moment at which a master hears of the end, and
		 * nobody here knows that moment. */
		return false;
	}
	uint32_t lock = c->lock;
	checker_lock_gone(c->run->checker, lock);
	if (c->named == c->connections && c->session && sim_session_open(c->session)) {
		checker_lock_ends_at(c->run->checker, lock, c->node);
	}
	c->lock = TRACE_NONE;
	c->state = CALLER_IDLE;
	caller_connect(c, false);
	c->died_with = lock;
	sim_at(c->run->sim, sim_now(c->run->sim) + prng_between(&own, SPAN_MS, c->lease),
		lives_again, c, lock);
	return true;
}

/* A client that names a successor stops believing first, because the lock may be released. */
void caller_transfer(struct caller *c) {
	struct run *run = c->run;
	char to[8];
	uint32_t lock = c->lock;
	snprintf(to, sizeof to, "o%u", (unsigned)prng_below(&run->prng, run->profile.clients));
	struct core_request r = { .op = CORE_TRANSFER,
		.lock_id = checker_lock_id(run->checker, lock), .to = slice_str(to) };
	struct checker_op op = { .op = CORE_TRANSFER, .client = c->number,
		.key = checker_lock_key(run->checker, lock), .lock = lock };
	struct pending pending = { .op = CORE_TRANSFER, .lock = lock, .deadline = c->deadline,
		.token = c->token, .numbers = c->numbers };
	if (caller_pending(c, 0)) {
		checker_hand_over(run->checker, lock, true);
		caller_send(c, &r, pending, &op);
		c->lock = TRACE_NONE;
		c->state = CALLER_IDLE;
	}
}

/* Nobody waits under that name: nothing was released, and the old deadline counts. */
void caller_transferred(struct caller *c, const struct pending *p, int error) {
	struct run *run = c->run;
	if (error == PAWL_ENOTFOUND && !checker_lock_ended(run->checker, p->lock)) {
		run->counts[RUN_NOT_TRANSFERRED]++;
		checker_hand_over(run->checker, p->lock, false);
		if (c->state != CALLER_IDLE || caller_info(run, p->lock)->bound_locks ||
			instant_distrusted(sim_actor_clock(run->sim, &c->actor), p->deadline)) {
			caller_release(c, p->lock);
			return;
		}
		checker_believe(run->checker, &c->actor, p->lock, p->deadline, p->token);
		take_up(c, p->lock, p->deadline, p->token, p->numbers);
	} else if (error == PAWL_OK) {
		run->counts[RUN_TRANSFERRED]++;
		checker_lock_end(run->checker, p->lock);
	} else {
		/* The lock may have been handed over. */
		caller_release(c, p->lock);
	}
}

void caller_downgrade(struct caller *c) {
	struct run *run = c->run;
	struct lock_info *info = caller_info(run, c->lock);
	if (info->terms.of != MODE_EXCLUSIVE || !caller_pending(c, 0)) {
		return;
	}
	/* The client first stops trusting that the lock is exclusive. */
	info->terms.of = MODE_SHARED;
	checker_downgrade(run->checker, c->lock);
	struct core_request r = { .op = CORE_DOWNGRADE,
		.lock_id = checker_lock_id(run->checker, c->lock) };
	struct checker_op op = { .op = CORE_DOWNGRADE, .client = c->number,
		.key = checker_lock_key(run->checker, c->lock), .lock = c->lock };
	caller_send(c, &r, (struct pending){ .op = CORE_DOWNGRADE, .lock = c->lock }, &op);
}

void caller_downgraded(struct caller *c, const struct pending *p, int error) {
	if (error == PAWL_ELOST || error == PAWL_ENOTFOUND) {
		bool own = p->lock == c->lock && c->state == CALLER_HOLDING;
		caller_lost(c, p->lock, own &&
			!instant_distrusted(sim_actor_clock(c->run->sim, &c->actor), c->deadline));
	} else {
		c->run->counts[RUN_DOWNGRADED] += error == PAWL_OK;
	}
}

void caller_ask(struct caller *c, uint32_t key) {
	struct core_request r = { .op = CORE_ASK, .to = slice_str("o1"),
		.terms = { .priority = 1 } };
	struct checker_op op = { .op = CORE_ASK, .client = c->number, .key = key,
		.lock = TRACE_NONE, .expect = CHECKER_NO_VALUE };
	caller_send(c, &r, (struct pending){ .op = CORE_ASK, .lock = TRACE_NONE }, &op);
}
