/* caller_answers.c: what answers mean to a client: the rules of libpawl (docs/protocol.md, What the
 * holder may count on; Extend; Release). */
#include <stdlib.h>

#include "check.h"
#include "pawl/error.h"
#include "run.h"

static bool drops_lock_id(int error) {
	return error == PAWL_EHELD || error == PAWL_ETIMEOUT || error == PAWL_EDENIED ||
		error == PAWL_ETOOLONG || error == PAWL_EBADREQUEST;
}

static void idle(struct caller *c) {
	c->state = CALLER_IDLE;
	c->lock = TRACE_NONE;
}

/* docs/protocol.md, Release on disconnect: an answer under a later connection takes the place of
 * those under earlier ones, which count no more. Returns whether this one counts. */
static bool believe(struct caller *c, const struct pending *p, bool held, struct instant deadline,
	uint64_t token) {
	struct run *run = c->run;
	const struct instant now = sim_actor_clock(run->sim, &c->actor);
	const bool moves = held && p->binding > c->named;
	if (held && p->binding < c->named) {
		run->counts[RUN_EARLIER_CONNECTION]++;
		return false;
	}
	if (moves) {
		run->counts[RUN_MOVED_SHORTER] += instant_left_short(now, deadline) <
			instant_left_short(now, c->deadline);
		checker_believe_only(run->checker, &c->actor, p->lock, deadline, token);
	} else {
		checker_believe(run->checker, &c->actor, p->lock, deadline, token);
	}
	checker_binding_held(run->checker, p->lock, p->binding);
	if (!held || moves ||
		instant_left_short(now, deadline) > instant_left_short(now, c->deadline)) {
		c->deadline = deadline;
	}
	c->named = p->binding;
	return true;
}

/* docs/protocol.md, Shorten: no answer to what was asked before counts any more. */
static bool shortened_since(struct run *run, const struct pending *p) {
	const struct lock_info *info = caller_info(run, p->lock);
	return info->own && p->binding < info->order;
}

static void acquired(struct caller *c, const struct pending *p, const struct core_reply *r) {
	struct run *run = c->run;
	struct instant now = sim_actor_clock(run->sim, &c->actor),
		deadline = instant_add(p->sent, r->valid);
	if (shortened_since(run, p)) {
		return;
	}
	/* A client that joins in later may believe in a lock that has been given to another
	 * identity meanwhile, or to one that never heard of it. */
	if (p->stolen) {
		struct lock_info *info = caller_info(run, p->lock);
		if (!info->stolen && checker_lock_believed_since(run->checker, p->lock, p->id)) {
			checker_violation(run->checker, "identities",
				checker_lock_key(run->checker, p->lock),
				"L%u was given to another identity", (unsigned)p->lock);
		}
		/* The belief may have ended between the request and its answer. */
		info->stolen = true;
		/* The lease had run out, so nobody knows who holds the lock now. */
		checker_lock_end(run->checker, p->lock);
		return;
	}
	if (p->lock != c->lock) {
		/* It was given up meanwhile, and released or left to run out. */
		return;
	}
	if (instant_distrusted(now, deadline)) {
		run->counts[RUN_LATE_ACQUIRE]++;
		if (c->state == CALLER_ACQUIRING && !caller_awaits(c, CORE_ACQUIRE, p->lock)) {
			caller_release(c, p->lock);
		}
		return;
	}
	bool held = c->state == CALLER_HOLDING && !instant_distrusted(now, c->deadline);
	if (!believe(c, p, held, deadline, r->token)) {
		return;
	}
	c->numbers = held ? permits_or(c->numbers, r->terms.set) : r->terms.set;
	c->state = CALLER_HOLDING;
	c->token = r->token > c->token ? r->token : c->token;
	if (r->waited > c->lease / 2) {
		/* So that the drift over the waiting time does not use up the lease. */
		caller_extend(c, c->lock, true);
	}
}

/* A client that dies before it releases leaves behind what some masters accepted. */
static void acquire_failed(struct caller *c, const struct pending *p, int error) {
	struct run *run = c->run;
	if (p->lock != c->lock || c->state != CALLER_ACQUIRING) {
		return;
	}
	if (error == PAWL_EUNSURE && !run->healing && prng_chance(&run->prng, 1, 2)) {
		run->counts[RUN_UNSURE_REPEATED]++;
		caller_acquire_send(c);
		return;
	}
	c->refused_badly = c->refused_badly || !drops_lock_id(error);
	if (caller_awaits(c, CORE_ACQUIRE, p->lock)) {
		/* Another request for the same lock is under way. */
		return;
	}
	if (c->refused_badly && prng_below(&run->prng, 100) >= run->profile.silent_percent) {
		caller_release(c, p->lock);
	} else {
		idle(c);
	}
}

void caller_lost(struct caller *c, uint32_t lock, bool before_deadline) {
	c->run->counts[RUN_LOST_BEFORE_DEADLINE] += before_deadline;
	checker_forget(c->run->checker, &c->actor, lock);
	if (caller_info(c->run, lock)->bound_locks) {
		/* From now on nobody takes care of its connection. */
		checker_lock_gone(c->run->checker, lock);
	}
	if (lock == c->lock && c->state == CALLER_HOLDING) {
		idle(c);
	}
}

static void extended(struct caller *c, const struct pending *p, const struct core_reply *r) {
	struct run *run = c->run;
	struct instant now = sim_actor_clock(run->sim, &c->actor),
		deadline = instant_add(p->sent, r->valid);
	bool own = p->lock == c->lock && c->state == CALLER_HOLDING;
	bool past = own && instant_distrusted(now, c->deadline);
	if (shortened_since(run, p)) {
		return;
	}
	if (p->deadline_kept && (!own || past)) {
		/* A deadline that has passed is final. */
		run->counts[RUN_LATE_EXTENSION]++;
		if (own) {
			caller_lost(c, p->lock, false);
		}
		return;
	}
	if (instant_distrusted(now, deadline) || (!own && caller_info(run, p->lock)->bound_locks)) {
		/* Somebody else's lock that ends with their connection cannot be relied on, because
		 * they may close it at any time. */
		return;
	}
	if (!own) {
		checker_believe(run->checker, &c->actor, p->lock, deadline, r->token);
	} else if (believe(c, p, !past, deadline, r->token)) {
		c->token = r->token > c->token ? r->token : c->token;
		c->numbers = r->terms.set;
	}
}

static void extension_failed(struct caller *c, const struct pending *p, int error) {
	struct run *run = c->run;
	bool own = p->lock == c->lock && c->state == CALLER_HOLDING;
	bool past = own && instant_distrusted(sim_actor_clock(run->sim, &c->actor), c->deadline);
	if (error == PAWL_ELOST || error == PAWL_ENOTFOUND) {
		caller_lost(c, p->lock, own && !past);
	} else if (own && error == PAWL_EUNSURE && past && !run->healing &&
		!checker_lock_ended(run->checker, p->lock)) {
		/* The same lock_id may be asked for again. */
		run->counts[RUN_UNSURE_REPEATED]++;
		caller_acquire_send(c);
	} else if (own && past) {
		caller_release(c, p->lock);
	}
}

static void learn_value(struct run *run, uint32_t lock, uint32_t value, struct ballot seq) {
	struct lock_info *info = caller_info(run, lock);
	if (value == CHECKER_NO_VALUE || prng_chance(&run->prng, 1, 6)) {
		/* Sometimes it goes on with what it knew before. */
		return;
	}
	info->seen_value = value;
	if (seq.clock) {
		info->seq = seq;
		info->seq_value = value;
	}
}

static uint32_t shown_value(const struct sim_reply *reply) {
	if (reply->entry_value_size < 2 || reply->entry_value_size >= 12 ||
		reply->entry_value[0] != 'v') {
		return CHECKER_NO_VALUE;
	}
	char text[12] = { 0 };
	memcpy(text, reply->entry_value + 1, reply->entry_value_size - 1);
	return (uint32_t)strtoul(text, NULL, 10);
}

static void dispatch(struct caller *c, const struct pending *p, const struct sim_reply *reply,
	uint32_t shown) {
	const struct core_reply *r = &reply->r;
	switch (p->op) {
	case CORE_ACQUIRE:
		if (r->error) {
			acquire_failed(c, p, r->error);
		} else {
			acquired(c, p, r);
		}
		break;
	case CORE_EXTEND:
		if (r->error) {
			extension_failed(c, p, r->error);
		} else {
			extended(c, p, r);
		}
		break;
	case CORE_UPDATE:
		if (r->error == 0) {
			learn_value(c->run, p->lock, p->value, r->value_seq);
		} else if (r->error == PAWL_EMISMATCH) {
			learn_value(c->run, p->lock, shown, r->entry.value_seq);
		}
		break;
	case CORE_GET:
		if (r->error == 0 && r->held &&
			sim_name_lock_number(r->entry.lock_id) < c->run->lock_capacity) {
			learn_value(c->run, sim_name_lock_number(r->entry.lock_id), shown,
				r->entry.value_seq);
		}
		break;
	case CORE_NONE:
	case CORE_RELEASE:
	case CORE_LIST:
	case CORE_WAIT:
	case CORE_WAITERS:
	case CORE_BREAK:
	case CORE_BINDING:
	case CORE_CHANGE:
	case CORE_ASK: case CORE_EXPLAIN: case CORE_ACQUIRE_ALL:
		break;
	case CORE_DOWNGRADE:
		caller_downgraded(c, p, r->error);
		break;
	case CORE_TRANSFER:
		caller_transferred(c, p, r->error);
		break;
	}
}

void caller_reply(void *ctx, const struct sim_reply *reply) {
	struct caller *c = ctx;
	struct pending *slot = caller_pending(c, reply->r.id);
	bool shows = reply->r.op == CORE_GET || reply->r.op == CORE_WAIT ? reply->r.held
		: reply->r.error == PAWL_EMISMATCH;
	uint32_t shown = shows ? shown_value(reply) : CHECKER_NO_VALUE;
	checker_returned(c->run->checker, reply->r.id, reply, shown);
	if (!slot) {
		return;
	}
	struct pending p = *slot;
	slot->id = 0;
	dispatch(c, &p, reply, shown);
	bool useless = reply->r.error == PAWL_ENOQUORUM || reply->r.error == PAWL_ERECOVERING;
	if (c->run->profile.sim.further && useless && c->state == CALLER_IDLE &&
		prng_chance(&c->run->prng, 1, 3)) {
		/* Perhaps the node is not in the cluster, or not any more. */
		caller_connect(c, false);
	}
}

/* The older connection, which was left open, broke. */
static void second_closed(struct caller *c) {
	c->second = NULL;
	for (int i = 0; i < CALLER_PENDING; i++) {
		if (c->pending[i].second) {
			caller_forget(c, &c->pending[i]);
		}
	}
}

/* An acquire whose answer was lost may be repeated elsewhere. */
static void repeat_or_give_up(struct caller *c) {
	struct run *run = c->run;
	if (c->state == CALLER_ACQUIRING && !caller_awaits(c, CORE_ACQUIRE, c->lock)) {
		if (!run->healing && prng_chance(&run->prng, 3, 4)) {
			caller_acquire_send(c);
		} else {
			caller_release(c, c->lock);
		}
	}
}

/* The outcome of what was under way is unknown. A release has to be sent again. */
void caller_closed(void *ctx) {
	struct caller *c = ctx;
	uint32_t releases[CALLER_PENDING];
	size_t count = 0;
	if (c->second && !sim_session_open(c->second)) {
		second_closed(c);
	}
	if (!sim_session_open(c->session)) {
		for (int i = 0; i < CALLER_PENDING; i++) {
			if (c->pending[i].id && !c->pending[i].second && !c->pending[i].compares &&
				(c->pending[i].op == CORE_RELEASE ||
				c->pending[i].op == CORE_TRANSFER)) {
				releases[count++] = c->pending[i].lock;
			}
		}
		caller_connect(c, false);
	}
	for (size_t i = 0; i < count; i++) {
		if (prng_chance(&c->run->prng, 3, 4)) {
			caller_release(c, releases[i]);
		}
	}
	repeat_or_give_up(c);
}
