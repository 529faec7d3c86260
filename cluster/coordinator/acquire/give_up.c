/* give_up.c: what ends an attempt without the lock: it withdraws what masters keep of it, and tells
 * its callers why, and who holds the key (sections 2 and 5). */
#include "acquire.h"

#define ALIVE (VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_SELF))
#define OPEN VOTE_BIT(VOTE_ASKED)
/* A node with less memory left than this may have no room for another key. */
#define FULL_MEMORY_SLACK 65536

void attempt_withdraw_at(struct core *core, struct op *op, uint32_t index, bool promise,
	bool entry) {
	struct acquire_state *acquire = op_acquire(op);
	struct message m = op_message(op, MESSAGE_WITHDRAW);
	m.attempt = promise ? acquire->attempt : 0;
	m.ticket = entry ? acquire->ticket : (struct ticket){ 0, 0 };
	if (peer_reachable(core, index)) {
		out_send(core, index, &m);
	}
}

/* A request that has waited keeps its place at a master that has refused its commit, under the name
 * of that commit (section 2, Acquire). */
void attempt_leave(struct core *core, struct op *op, uint32_t index) {
	struct acquire_state *acquire = op_acquire(op);
	if (acquire->ticket.seq) {
		struct message m = op_message(op, MESSAGE_WITHDRAW);
		m.attempt = op->round;
		COUNT(core, place_left);
		if (peer_reachable(core, index)) {
			out_send(core, index, &m);
		}
	}
	attempt_withdraw_at(core, op, index, true, acquire->home == (int)index);
}

void attempt_withdraw(struct core *core, struct op *op, bool entry) {
	struct acquire_state *acquire = op_acquire(op);
	const uint32_t asked = OPEN | VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_PARKED) |
		VOTE_BIT(VOTE_GONE);
	for (uint32_t i = 0; i < core->masters; i++) {
		bool promise = acquire->attempt && ((asked >> op->votes[i].state) & 1);
		bool home = entry && acquire->ticket.seq && acquire->home == (int)i;
		if (promise || home) {
			/* A turn may be on its way. The home's promise that comes with it is this
			 * attempt's, too. */
			attempt_withdraw_at(core, op, i, promise || home, home);
		}
	}
}

/* After a commit nobody knows what a master keeps unless it has accepted. */
void attempt_give_up(struct core *core, struct op *op) {
	if (op->state != OP_COMMITTING) {
		attempt_withdraw(core, op, true);
		return;
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state != VOTE_OK) {
			attempt_leave(core, op, i);
		}
	}
}

/* Section 10: where a commit that failed was accepted, the permits that it took would be this
 * lock's, and every extension would want them everywhere, whoever has them by then. So the commit
 * is rolled back under its name (section 11). False: not every master can be told. */
bool commit_roll_back(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	const uint64_t name = acquire->roll_back_name;
	if (name == 0) {
		return false;
	}
	COUNT(core, commit_rolled_back);
	acquire->roll_back_name = 0;
	if (op->part_of) {
		/* A name under which something was rolled back is not used again. */
		op->part_of = group_rename(core, op);
	}
	return release_roll_back(core, op->key, op->lock_id, name);
}

static void fill_holder(struct core *core, const struct op *op, struct core_reply *r) {
	const struct acquire_state *acquire = op_acquire(op);
	if (acquire->holder == NULL || (r->error == PAWL_ETIMEOUT &&
		instant_expired(core->now, acquire->holder->end))) {
		return;
	}
	const struct core_entry known = entry_of(core, acquire->holder, core->now);
	r->contested = acquire->contested_seen;
	r->entry.token = known.token;
	r->entry.remaining = known.remaining;
	r->entry.terms = known.terms;
	r->entry.closing = known.closing;
	r->entry.closed_for = known.closed_for;
	r->held = out_copy(core, known.owner, &r->entry.owner) &&
		out_copy(core, op->key, &r->entry.key) && !known.closing;
}

/* Shows all holders if this node itself knows several. What masters told of the holder at the
 * beginning of a wait may be over at its end, so after that also the only one that this node
 * knows. */
static bool show_known(struct core *core, const struct caller *c, const struct op *op, int error,
	struct shown *shown) {
	const struct key *key = table_find(core, op->key);
	const bool late = error == PAWL_ETIMEOUT;
	return key && key->held && (late || key->held->next) &&
		entry_show(core, c, op, key, shown) &&
		(shown->holder_count > 0 || (late && (shown->held || shown->entry.closing)));
}

/* Says who holds the key that the attempt could not get. */
static void say_holder(struct core *core, const struct op *op, const struct shown *shown,
	struct core_reply *r) {
	if (shown) {
		entry_reply(r, shown);
	} else {
		fill_holder(core, op, r);
	}
	const uint16_t of = r->entry.terms.of;
	const bool other = r->held && terms_of_numbers(of) && terms_semaphore(&op->terms) &&
		of != op->terms.of;
	r->other_of = other ? of : 0;
}

/* Returns which limit was reached at the masters, as far as this node can tell by its own table,
 * which has nearly the same in it; NULL if it cannot. */
static const char *full_limit(struct core *core, const struct op *op) {
	const struct key *key = table_find(core, op->key);
	const uint32_t holders = core->limits.holders_per_key;
	if (key && key_count(key, holders) >= holders) {
		return "holders_per_key";
	}
	if (table_live(core)->keys.count >= core->limits.keys) {
		return "keys";
	}
	return core->memory_used + FULL_MEMORY_SLACK > core->limits.memory_bytes ? "memory" : NULL;
}

void attempt_fail(struct core *core, struct op *op, int error) {
	struct acquire_state *acquire = op_acquire(op);
	uint32_t votes = op->state == OP_COMMITTING ? core->quorum : op_votes(core, op, ALIVE);
	uint32_t acks = op->state == OP_COMMITTING ? op_votes(core, op, VOTE_BIT(VOTE_OK)) : 0;
	/* An error after a commit is PAWL_ENOQUORUM, after which the client releases the lock. A
	 * request for several keys itself rolls back what may have been accepted (section 11). */
	if (acquire->committed && !op->part_of) {
		error = PAWL_ENOQUORUM;
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		span_ns waited = instant_elapsed_short(core->now, c->arrived);
		struct shown shown = { .held = false };
		bool others = error == PAWL_EHELD || error == PAWL_ETIMEOUT;
		bool known = others && show_known(core, c, op, error, &shown);
		struct core_reply *r = op_reply(core, c, error);
		r->field = error == PAWL_EMISMATCH ? "mode"
			: error == PAWL_ETOOLONG ? "lease_ms"
			: error == PAWL_EFULL ? full_limit(core, op)
			: NULL;
		/* The limit covers the lease and the lock delay. */
		r->limit = error == PAWL_ETOOLONG ? core->config.max_lease : 0;
		r->votes = votes;
		r->acks = acks;
		/* This tells a group what it may have committed. */
		r->token = acquire->token;
		r->waited = waited;
		if (others) {
			say_holder(core, op, known ? &shown : NULL, r);
		}
	}
	commit_roll_back(core, op);
	attempt_give_up(core, op);
	op_free(core, op);
}
