/* caller.c: a client. It has a machine of its own, and uses the cluster as libpawl would, and
 * sometimes as nobody should. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "run.h"

static void think(void *ctx, uint64_t arg);

struct lock_info *caller_info(struct run *run, uint32_t lock) {
	if (lock >= run->lock_capacity) {
		size_t capacity = (size_t)lock + 256;
		run->locks = realloc(run->locks, capacity * sizeof *run->locks);
		CHECK(run->locks != NULL);
		for (size_t i = run->lock_capacity; i < capacity; i++) {
			run->locks[i] = (struct lock_info){ .seen_value = CHECKER_NO_VALUE,
				.seq_value = CHECKER_NO_VALUE };
		}
		run->lock_capacity = capacity;
	}
	return &run->locks[lock];
}

/* Nodes that are not in the cluster are seldom asked, because they can only say so. */
static uint32_t any_node(struct run *run) {
	uint32_t node = (uint32_t)prng_below(&run->prng, sim_nodes(run->sim));
	const struct config *newest = checker_newest(run->checker);
	bool master;
	for (int tries = 0; newest && tries < 4 &&
		!checker_in_config(run->checker, newest, node, &master); tries++) {
		node = (uint32_t)prng_below(&run->prng, sim_nodes(run->sim));
	}
	return node;
}

void caller_start(struct run *run, uint32_t number) {
	struct caller *c = &run->callers[number];
	*c = (struct caller){ .run = run, .number = number, .lock = TRACE_NONE,
		.died_with = TRACE_NONE };
	sim_actor_init(run->sim, &c->actor, number);
	c->identity = run->profile.identities ? (uint32_t)prng_below(&run->prng, 2) : 0;
	c->node = any_node(run);
	sim_at(run->sim, sim_now(run->sim) + prng_between(&run->prng, 0, 100 * SPAN_MS), think, c,
		0);
}

struct pending *caller_pending(struct caller *c, uint64_t id) {
	for (int i = 0; i < CALLER_PENDING; i++) {
		if (c->pending[i].id == id) {
			return &c->pending[i];
		}
	}
	return NULL;
}

bool caller_awaits(const struct caller *c, enum core_op op, uint32_t lock) {
	for (int i = 0; i < CALLER_PENDING; i++) {
		if (c->pending[i].id && c->pending[i].op == op && c->pending[i].lock == lock) {
			return true;
		}
	}
	return false;
}

bool caller_done(const struct caller *c) {
	bool idle = c->state == CALLER_IDLE;
	for (int i = 0; i < CALLER_PENDING; i++) {
		idle = idle && c->pending[i].id == 0;
	}
	return idle;
}

void caller_forget(struct caller *c, struct pending *p) {
	if (p->id && p->stolen) {
		/* Perhaps it was handled when the belief had ended. */
		caller_info(c->run, p->lock)->stolen = true;
	}
	p->id = 0;
}

/* Goes on to another node. What is under way at the old one is forgotten, or goes on over the
 * connection that is left open. */
void caller_connect(struct caller *c, bool leave_open) {
	struct run *run = c->run;
	caller_before_closing(c, leave_open);
	if (c->second) {
		checker_closed(run->checker, c->actor.number, c->second_number);
		sim_session_close(c->second);
		c->second = NULL;
	}
	for (int i = 0; i < CALLER_PENDING; i++) {
		bool gone = c->pending[i].second || !leave_open;
		if (gone) {
			caller_forget(c, &c->pending[i]);
		}
		c->pending[i].second = !gone;
	}
	if (c->session && sim_session_open(c->session)) {
		if (leave_open) {
			c->second = c->session;
			c->second_number = c->connections;
		} else {
			checker_closed(run->checker, c->actor.number, c->connections);
			sim_session_close(c->session);
		}
	}
	c->node = any_node(run);
	c->connections++;
	c->session = sim_connect(run->sim, &c->actor, c->node,
		(struct sim_handler){ caller_reply, caller_closed, c });
}

bool caller_send(struct caller *c, const struct core_request *request, struct pending pending,
	const struct checker_op *op) {
	if (!c->session || !sim_session_open(c->session)) {
		caller_connect(c, false);
	}
	struct pending *free_one = caller_pending(c, 0);
	if (!free_one) {
		return false;
	}
	struct core_request r = *request;
	char identity[8], key[16], owner[8];
	r.key = op->op == CORE_LIST ? slice_str("k") : sim_name_key(key, op->key);
	snprintf(owner, sizeof owner, "o%u", (unsigned)(c->number % 100));
	r.owner = slice_str(owner);
	if (c->run->profile.identities) {
		snprintf(identity, sizeof identity, "id%u", (unsigned)(c->identity % 10));
		r.identity = slice_str(identity);
	}
	pending.id = sim_send(c->session, &r);
	pending.sent = sim_actor_clock(c->run->sim, &c->actor);
	*free_one = pending;
	checker_invoked(c->run->checker, pending.id, op);
	caller_mind_silence(c, pending.id);
	return true;
}

void caller_release(struct caller *c, uint32_t lock) {
	checker_forget(c->run->checker, &c->actor, lock);
	checker_lock_end(c->run->checker, lock);
	struct core_request r = { .op = CORE_RELEASE,
		.lock_id = checker_lock_id(c->run->checker, lock) };
	const struct profile *p = &c->run->profile;
	if (p->delay_percent > 0 && !c->run->healing && prng_chance(&c->run->prng, 1, 3)) {
		r.closes = run_scale(c->run, SPAN_MS, p->delay_max);
		c->run->counts[RUN_CLOSINGS]++;
	}
	struct checker_op op = { .op = CORE_RELEASE, .client = c->number, .closes = r.closes,
		.key = checker_lock_key(c->run->checker, lock), .lock = lock };
	caller_send(c, &r, (struct pending){ .op = CORE_RELEASE, .lock = lock }, &op);
	if (c->lock == lock) {
		c->lock = TRACE_NONE;
		c->state = CALLER_IDLE;
	}
}

void caller_release_by_value(struct caller *c, uint32_t lock) {
	struct run *run = c->run;
	const struct lock_info *info = caller_info(run, lock);
	char expected[16];
	if (!checker_updates_left(run->checker, lock)) {
		return;
	}
	checker_lock_end_by_value(run->checker, lock);
	struct core_request r = { .op = CORE_RELEASE,
		.lock_id = checker_lock_id(run->checker, lock) };
	struct checker_op op = { .op = CORE_RELEASE, .client = c->number, .compares = true,
		.key = checker_lock_key(run->checker, lock), .lock = lock,
		.value = CHECKER_ENDED };
	r.expect_seq = op.by_seq = info->seq_value != CHECKER_NO_VALUE &&
		prng_chance(&run->prng, 1, 2);
	r.expect_value = !r.expect_seq;
	op.expect = r.expect_seq ? info->seq_value
		: info->seen_value != CHECKER_NO_VALUE ? info->seen_value : info->first_value;
	snprintf(expected, sizeof expected, "v%" PRIu32, op.expect);
	r.expected_seq = info->seq;
	r.expected = r.expect_value ? slice_str(expected) : slice_of(NULL, 0);
	run->counts[RUN_RELEASES_BY_VALUE]++;
	caller_send(c, &r, (struct pending){ .op = CORE_RELEASE, .lock = lock, .compares = true },
		&op);
	if (c->lock == lock) {
		c->lock = TRACE_NONE;
		c->state = CALLER_IDLE;
	}
}

static enum client_habit draw_habit(struct prng *prng, const uint32_t *weights) {
	uint64_t total = 0;
	for (int i = 0; i < HABITS; i++) {
		total += weights[i];
	}
	uint64_t at = prng_below(prng, total);
	int i = 0;
	for (; at >= weights[i]; i++) {
		at -= weights[i];
	}
	return (enum client_habit)i;
}

/* Extends only shortly before the end, because there a lease that ends too early or too late shows
 * best. */
static void hold_on(struct caller *c) {
	struct run *run = c->run;
	span_ns left = instant_left_short(sim_actor_clock(run->sim, &c->actor), c->deadline);
	span_ns margin = prng_between(&run->prng, 0,
		4 * run->profile.sim.delay_max + 2 * run->profile.sim.session_delay_max + SPAN_MS);
	if (left > margin) {
		sim_at(run->sim, sim_now(run->sim) + left - margin, think, c, 1);
	} else {
		caller_habit(c, prng_chance(&run->prng, 2, 3) ? HABIT_EXTEND : HABIT_ABANDON);
		sim_at(run->sim, sim_now(run->sim) + run_scale(run, run->profile.think_min,
			run->profile.think_max), think, c, 0);
	}
}

static void renew(struct caller *c) {
	if (!caller_awaits(c, CORE_EXTEND, c->lock)) {
		c->run->counts[RUN_CALM_RENEWED]++;
		caller_extend(c, c->lock, true);
	}
}

/* Returns true when it has set the timer of its next thought itself. */
static bool act(struct caller *c, bool awaited) {
	struct run *run = c->run;
	switch (c->state) {
	case CALLER_IDLE:
		if (!run->healing) {
			caller_habit(c, draw_habit(&run->prng, run->profile.idle_weight));
		}
		return false;
	case CALLER_ACQUIRING:
		/* The client's patience has a timer of its own. */
		return false;
	case CALLER_HOLDING:
		if (run->renewing) {
			renew(c);
		} else if (run->healing) {
			caller_release(c, c->lock);
		} else if (awaited || prng_below(&run->prng, 100) < run->profile.hold_on_percent) {
			hold_on(c);
			return true;
		} else {
			caller_habit(c, draw_habit(&run->prng, run->profile.hold_weight));
		}
		return false;
	}
	return false;
}

static void think(void *ctx, uint64_t arg) {
	struct caller *c = ctx;
	struct run *run = c->run;
	if (sim_actor_paused(run->sim, &c->actor)) {
		sim_at(run->sim, c->actor.paused_until, think, c, arg);
		return;
	}
	if (run->healing && !run->renewing && caller_done(c)) {
		/* It has done its part. */
		return;
	}
	if (!act(c, arg == 1)) {
		sim_at(run->sim, sim_now(run->sim) + run_scale(run, run->profile.think_min,
			run->profile.think_max), think, c, 0);
	}
}
