/* extend.c: extending a lease: one round to every master; those that lack the record learn it (section 2, Extend). */
#include "state.h"

#define ACCEPTED (VOTE_BIT(VOTE_HAD) | VOTE_BIT(VOTE_OK))

void extend_start(struct core *core, struct op *op) {
	const struct belief *b = op->kept ? belief_find(core, op->lock_id) : belief_of(core, op->lock_id, op_asker(op));
	if (!op->backed) { /* under a new epoch it keeps the deadline that it began with */
		op->backed = !op->kept && b;  /* this node answered it to this caller, and its deadline is not past */
		op->blind = !op->kept && !b;  /* nobody keeps the deadline: only masters that had it count */
		op->until = b ? b->deadline : INSTANT_FOREVER;
	}
	op->state = OP_ROUND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_EXTEND);
	m.attempt = op->part_of;
	m.token = op->token;
	m.number = op->terms.bond;
	op_ask_all(core, op, &m);
	struct instant over = instant_add(core->now, core->config.request_timeout);
	timer_at(core, &op->timer, TIMER_OP, over);
	extend_judge(core, op, false);
}

static void learn(struct core *core, struct op *op, uint32_t slot, const struct record *r) {
	struct message m = op_message(op, MESSAGE_LEARN);
	record_describe(core, r, &m);
	m.attempt = op->part_of;
	m.terms.set = permits_or(m.terms.set, op->terms.set);
	m.lease_us = (uint64_t)(clock_saturating_add(op->lease, record_delay(r)) / SPAN_US);
	m.terms.bond = op->terms.bond > m.terms.bond ? op->terms.bond : m.terms.bond;
	op_ask(core, op, slot, &m);
	if (op->votes[slot].state == VOTE_ASKED) {
		op->votes[slot].state = VOTE_LEARNING;
		op->votes[slot].set = m.terms.set;
	}
}

/* It accepted the extension: as a whole, or of permits that are fewer than others say that the lock has. */
static bool has_record(const struct vote *v) {
	return ((ACCEPTED >> v->state) & 1) || (v->state == VOTE_NEED && v->status == STATUS_OK);
}

static bool any_has_record(const struct core *core, const struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (has_record(&op->votes[i])) {
			return true;
		}
	}
	return false;
}

/* Section 10: only masters count that have all the permits that any of them reports; the others learn them. */
static void need_permits(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		op->terms.set = has_record(&op->votes[i]) ? permits_or(op->terms.set, op->votes[i].set) : op->terms.set;
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		if (((ACCEPTED >> v->state) & 1) && !permits_within(op->terms.set, v->set)) {
			COUNT(core, extend_permits_missing);
			v->state = VOTE_NEED;
		}
	}
}

/* Those that want the record get it: from this node's table, or from a master that has it. */
static void feed(struct core *core, struct op *op) {
	if (op_votes(core, op, VOTE_BIT(VOTE_NEED)) == 0) {
		return;
	}
	struct key *key = table_find(core, op->key);
	const struct record *r = key ? key_record(key, op->lock_id) : NULL;
	r = r ? r : op->record;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (r && op->votes[i].state == VOTE_NEED) {
			learn(core, op, i, r);
		} else if (!r && op->fetch_from < 0 && has_record(&op->votes[i]) && !(op->fetch_tried >> i & 1) && peer_reachable(core, i)) {
			struct message m = op_message(op, MESSAGE_FETCH);
			op->fetch_from = (int)i;
			op->fetch_tried |= 1u << i;
			out_send(core, i, &m);
		}
	}
}

/* Whoever could not give it: another one that accepted is asked next. */
static void fetched(struct core *core, struct op *op, const struct message *m) {
	op->fetch_from = -1;
	if (m->status == STATUS_OK && op->record == NULL) {
		struct message copy = *m;
		copy.lock_id = op->lock_id;
		op->record = record_new(core, &copy);
	}
}

static enum vote_state vote_of(const struct message *m) {
	switch (m->status) {
	case STATUS_OK: return m->flags & FLAG_HAD ? VOTE_HAD : VOTE_OK;
	case STATUS_NEED: return VOTE_NEED;
	case STATUS_HELD: case STATUS_CONTESTED: return VOTE_HELD;
	case STATUS_RECOVERING: case STATUS_EPOCH: return VOTE_GONE;
	case STATUS_HELD_SELF: case STATUS_KEPT: case STATUS_PROMISED: case STATUS_QUEUED: case STATUS_STALE: case STATUS_RELEASED:
	case STATUS_TOO_LONG: case STATUS_CLOCK: case STATUS_DENIED: case STATUS_FULL: case STATUS_BARRED: case STATUS_BALLOT:
	case STATUS_ABSENT: case STATUS_TERMS: return VOTE_REFUSED;
	}
	return VOTE_REFUSED;
}

void extend_vote(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_FETCH_ANSWER) {
		if ((int)from == op->fetch_from) {
			fetched(core, op, m);
		}
		feed(core, op);
		return;
	}
	if (m->kind == MESSAGE_LEARN_ANSWER) {
		v->state = m->status == STATUS_OK ? VOTE_OK : vote_of(m); /* learned: it did not have it */
	} else if (m->kind == MESSAGE_EXTEND_ANSWER) {
		v->state = vote_of(m);
		op->best_token = m->status == STATUS_OK && m->token > op->best_token ? m->token : op->best_token;
		v->set = m->terms.set;
	}
	v->status = m->status;
	if (!permits_none(v->set) || !permits_none(op->terms.set)) {
		need_permits(core, op);
	}
	if ((ACCEPTED >> v->state) & 1) {
		bond_extended(core, op, from);
	}
	feed(core, op);
}

/* The master that was asked for the record is gone. */
void extend_peer_lost(struct core *core, struct op *op, uint32_t peer) {
	if (op->fetch_from == (int)peer) {
		op->fetch_from = -1;
		feed(core, op);
	}
}

static void extended(struct core *core, struct op *op) {
	struct instant deadline = instant_add(op->sent, span_shrink(op->lease, core->config.drift_ppm));
	/* a caller that keeps its own deadline may drop this answer: then it only moves a belief that has not ended meanwhile */
	if (!op->kept || belief_find(core, op->lock_id)) {
		belief_set(core, op->lock_id, deadline, op_asker(op));
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link), PAWL_OK);
		r->valid = span_shrink(op->lease, core->config.drift_ppm);
		r->token = op->best_token;
		r->acks = op_votes(core, op, ACCEPTED);
	}
	op_finish(core, op);
}

static bool refused_as(const struct core *core, const struct op *op, enum status status) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state == VOTE_REFUSED && op->votes[i].status == status) {
			return true;
		}
	}
	return false;
}

static int extend_error(const struct core *core, const struct op *op) {
	const uint32_t learners = VOTE_BIT(VOTE_LEARNING) | VOTE_BIT(VOTE_NEED);
	uint32_t accepted = op_votes(core, op, ACCEPTED);
	bool known = any_has_record(core, op);
	uint32_t lost = op_votes(core, op, VOTE_BIT(VOTE_HELD) | VOTE_BIT(VOTE_REFUSED) | (known ? 0 : VOTE_BIT(VOTE_NEED)));
	if (lost > core->masters - core->quorum) {
		/* barred by a break (section 9), or longer than R5 allows with its lock delay: the holder may use what is left of its lease */
		return refused_as(core, op, STATUS_BARRED) ? PAWL_EDENIED : refused_as(core, op, STATUS_TOO_LONG) ? PAWL_ETOOLONG : PAWL_ELOST;
	}
	if (op->blind && accepted + op_votes(core, op, learners) >= core->quorum) {
		return PAWL_EUNSURE; /* fewer than q had it: somebody else's may have come between */
	}
	return PAWL_ENOQUORUM;
}

static void fail(struct core *core, struct op *op, int error) {
	core->counts[COUNT_extend_unsure] += error == PAWL_EUNSURE;
	uint32_t acks = op_votes(core, op, ACCEPTED);
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link), error);
		r->acks = acks;
		r->limit = error == PAWL_ETOOLONG ? core->config.max_lease : 0; /* with the delay */
		r->field = error == PAWL_ETOOLONG ? "lock_delay_ms" : NULL;
	}
	op_finish(core, op);
}

void extend_judge(struct core *core, struct op *op, bool over) {
	const uint32_t hopeful = VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_LEARNING) | VOTE_BIT(VOTE_NEED);
	if (op->backed && instant_distrusted(core->now, op->until)) {
		COUNT(core, extend_late); /* a deadline that has passed is final, whatever arrives later */
		fail(core, op, PAWL_ELOST);
		return;
	}
	uint32_t counted = op_votes(core, op, op->blind ? VOTE_BIT(VOTE_HAD) : ACCEPTED);
	if (counted >= core->quorum) {
		extended(core, op);
		return;
	}
	uint32_t asked = op_votes(core, op, VOTE_BIT(VOTE_ASKED));
	bool source = asked || any_has_record(core, op) || op->record;
	uint32_t possible = counted + (op->blind ? asked : source ? op_votes(core, op, hopeful) : 0);
	if (over || possible < core->quorum) {
		int error = extend_error(core, op);
		if (over || !op->blind || !asked || error != PAWL_ENOQUORUM) { /* else who answers yet decides whether it is only unsure */
			fail(core, op, error);
		}
	}
}

void extend_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if (op_late(core, op)) { /* counted only before request_timeout has passed since the round was sent */
		COUNT(core, answer_late);
		extend_judge(core, op, true);
		return;
	}
	extend_vote(core, op, from, m);
	extend_judge(core, op, false);
}
