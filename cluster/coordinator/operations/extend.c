/* extend.c: extending a lease: one round to every master (section 2, Extend). */
#include "operations.h"
#include "operation.h"
#include "extend.h"

/* Tells whether what is asked for rests on an answer of this node whose deadline has not passed. */
static bool vouched(const struct core *core, const struct op *op, const struct granted *b) {
	return b && (permits_none(op->terms.set) ||
		permits_within(op->terms.set, granted_numbers(core, b)));
}

uint64_t extend_name(const struct op *op) {
	return op->part_of ? op->part_of : op_extend(op)->roll_back_name;
}

/* The permit numbers are named only where somebody trusts them. Numbers that nobody trusts run out
 * (section 10). */
static struct message question(const struct op *op) {
	const struct extend_state *extend = op_extend(op);
	const bool named = !extend->blind && !permits_none(op->terms.set);
	struct message m = op_message(op, named ? MESSAGE_EXTEND_PERMITS : MESSAGE_EXTEND);
	m.name = extend_name(op);
	m.token = extend->token;
	/* The order that masters report may be that of something that was asked for later. */
	m.number = extend->shortens ? extend->shortens | NUMBER_SHORTENS : op->terms.binding;
	if (named) {
		m.terms = (struct terms){ .of = PERMITS_MAX, .set = op->terms.set };
	}
	return m;
}

static struct instant deadline_of(const struct core *core, const struct op *op) {
	return instant_add(op->sent, span_shrink(op->lease, core->config.drift_ppm));
}

void extend_start(struct core *core, struct op *op) {
	struct extend_state *extend = op_extend(op);
	/* The lease may have been shortened through another node since this node answered. */
	const struct granted *b = extend->ordered ? NULL
		: extend->deadline_kept
		? granted_find(core, op->key_hash, op->lock_id)
		: granted_of(core, op->key_hash, op->lock_id, op_asker(op));
	/* Under a new epoch the extension keeps the deadline that it began with. */
	if (!extend->backed) {
		/* This node answered the lock to this caller, and its deadline has not passed. */
		extend->backed = !extend->deadline_kept && vouched(core, op, b);
		/* Nobody keeps the deadline, so only masters that had the lock count. */
		extend->blind = !extend->deadline_kept && !extend->backed;
		op->until = b ? granted_deadline(b) : INSTANT_FOREVER;
		extend->roll_back_name = extend->blind && extend->roll_back_name == 0
			? name_draw_extension(core) : extend->roll_back_name;
	}
	if (b && permits_none(op->terms.set)) {
		op->terms.set = granted_numbers(core, b);
	}
	op->state = OP_ROUND;
	extend->later = INSTANT_FOREVER;
	op_next_round(core, op);
	if (extend->shortens) {
		/* The holder has given up its trust in any later end. */
		granted_shorten(core, op->key_hash, op->lock_id, deadline_of(core, op));
		binding_shortened(core, op, deadline_of(core, op));
	}
	struct message m = question(op);
	op_ask_all(core, op, &m);
	struct instant over = instant_add(core->now, core->config.request_timeout);
	timer_at(core, &op->timer, TIMER_OP, over);
	extend_evaluate(core, op, false);
}

/* Section 10: this is for the lock of a semaphore. A master counts for the permit numbers that it
 * has. It is sent those that are meant and that it lacks. */
static void take_numbers(struct op *op, struct vote *v, const struct message *m) {
	op->terms.of = m->terms.of;
	op->terms.count = m->terms.count;
	v->set = m->terms.set;
	v->more = (m->flags & FLAG_MORE) != 0;
	v->had = m->had;
	if (!op_extend(op)->blind && !permits_within(op->terms.set, v->set)) {
		v->state = VOTE_NEED;
	}
}

/* A caller that keeps a deadline and names no permit numbers trusts as many as it asked for. At
 * least one of any q masters knows each of them. So when q masters have answered and know no other
 * numbers, it is these. */
static void find_numbers(struct core *core, struct op *op) {
	const uint32_t answers = EXTEND_ACCEPTED | VOTE_BIT(VOTE_NEED) | VOTE_BIT(VOTE_LEARNING) |
		VOTE_BIT(VOTE_BEHIND);
	struct permits all = { { 0, 0 } };
	bool more = op_extend(op)->blind || !terms_semaphore(&op->terms) ||
		!permits_none(op->terms.set);
	for (uint32_t i = 0; i < core->masters && !more; i++) {
		all = permits_or(all, op->votes[i].set);
		more = op->votes[i].more;
	}
	if (more || op_votes(core, op, answers) < core->quorum ||
		permits_count(all) != op->terms.count) {
		return;
	}
	op->terms.set = all;
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		v->state = ((EXTEND_ACCEPTED >> v->state) & 1) && !permits_within(all, v->set)
			? VOTE_NEED : v->state;
	}
}

/* Sets the timer to the end of the round, or to the time before it at which a master may be asked
 * again. */
static void arm(struct core *core, struct op *op) {
	struct extend_state *extend = op_extend(op);
	struct instant over = instant_add(op->sent, core->config.request_timeout);
	if (op->state == OP_ROUND) {
		timer_at(core, &op->timer, TIMER_OP,
			instant_expired(over, extend->later) ? extend->later : over);
	}
}

static void ask_again(struct core *core, struct op *op) {
	struct message m = question(op);
	op_extend(op)->later = INSTANT_FOREVER;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state == VOTE_LATER) {
			COUNT(core, extend_asked_again);
			op_ask(core, op, i, &m);
		}
	}
}

void extend_timer(struct core *core, struct op *op) {
	if (op->state == OP_PAUSED) {
		COUNT(core, extend_asked_again);
		extend_start(core, op);
		return;
	}
	if (op_late(core, op)) {
		extend_evaluate(core, op, true);
		return;
	}
	if (instant_expired(core->now, op_extend(op)->later)) {
		ask_again(core, op);
	}
	arm(core, op);
	extend_evaluate(core, op, false);
}

/* Section 4: the master has the record, and may lengthen it soon. Until then it has not refused. */
static void come_back(struct core *core, struct op *op, const struct message *m) {
	struct extend_state *extend = op_extend(op);
	struct instant later = instant_add(core->now,
		span_grow(span_from_us(m->left_us), core->config.drift_ppm));
	if (!instant_expired(later, extend->later)) {
		extend->later = later;
		arm(core, op);
	}
}

static enum vote_state vote_of(const struct message *m) {
	switch (m->status) {
	case STATUS_OK: return m->flags & FLAG_HAD ? VOTE_HAD : VOTE_OK;
	case STATUS_NEED: return VOTE_NEED;
	case STATUS_HELD: case STATUS_CONTESTED: return VOTE_HELD;
	case STATUS_LATER: return VOTE_LATER;
	case STATUS_RECOVERING: case STATUS_EPOCH: return VOTE_GONE;
	case STATUS_FULL:
		/* A master that has the record has no memory for the binding. */
		return m->kind == MESSAGE_EXTEND_ANSWER ? VOTE_GONE : VOTE_REFUSED;
	case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_PROMISED: case STATUS_QUEUED:
	case STATUS_STALE: case STATUS_RELEASED: case STATUS_TOO_LONG: case STATUS_CLOCK:
	case STATUS_DENIED: case STATUS_BARRED: case STATUS_BALLOT: case STATUS_ABSENT:
	case STATUS_TERMS:
		return VOTE_REFUSED;
	}
	return VOTE_REFUSED;
}

/* Tells whether the master has the record, even if it cannot take what it is sent after that. For
 * permit numbers this is decided one by one (lacking). */
static bool has_whole(const struct op *op, const struct message *m) {
	return !terms_semaphore(&m->terms) || (op_extend(op)->blind && permits_none(op->terms.set));
}

void extend_vote(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct extend_state *extend = op_extend(op);
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_FETCH_ANSWER) {
		if ((int)from == extend->fetch_from) {
			extend_fetched(core, op, m);
		}
		extend_send_record(core, op);
		return;
	}
	const bool behind = v->state == VOTE_BEHIND;
	v->status = m->status;
	v->state = vote_of(m);
	v->token = m->token;
	v->had_when_asked = m->kind == MESSAGE_EXTEND_ANSWER
		? m->status != STATUS_RELEASED && op_had_when_asked(core, op, m)
		: v->had_when_asked;
	if (m->kind == MESSAGE_LEARN_ANSWER && m->status == STATUS_OK) {
		/* The master learned the record, so it did not have it. */
		v->state = behind ? VOTE_HAD : VOTE_OK;
		v->binding = v->repaired_binding;
		v->set = permits_or(v->set, permits_and(op->terms.set, permits_all(op->terms.of)));
	} else if (m->kind == MESSAGE_EXTEND_ANSWER && m->status == STATUS_OK) {
		extend->best_token = m->token > extend->best_token ? m->token : extend->best_token;
		v->binding = m->terms.binding;
		op->terms.binding = v->binding > op->terms.binding ? v->binding : op->terms.binding;
		v->had_when_asked = v->had_when_asked || has_whole(op, m);
		if (terms_semaphore(&m->terms)) {
			take_numbers(op, v, m);
		}
	} else if (m->status == STATUS_LATER) {
		come_back(core, op, m);
	}
	find_numbers(core, op);
	if ((EXTEND_ACCEPTED >> v->state) & 1) {
		binding_extended(core, op, from);
	}
	extend_raise_behind(core, op);
	extend_send_record(core, op);
}

/* If a semaphore's lock names no permit numbers, nobody knows which ones its holder trusts. The
 * holder is told those that q masters had. */
static bool only_had(const struct op *op) {
	return op_extend(op)->blind || (terms_semaphore(&op->terms) && permits_none(op->terms.set));
}

/* Tells whether q masters have lengthened the lock, or may still do so. Masters in the states
 * `perhaps` count as well. *numbers: the permits that were, or may be, lengthened. */
static bool enough(const struct core *core, const struct op *op, uint32_t perhaps,
	struct permits *numbers) {
	const bool had = only_had(op);
	*numbers = (struct permits){ { 0, 0 } };
	if (!terms_semaphore(&op->terms)) {
		return op_votes(core, op, (had ? VOTE_BIT(VOTE_HAD) : EXTEND_ACCEPTED) | perhaps) >=
			core->quorum;
	}
	*numbers = extend_numbers(core, op, had, perhaps);
	if (!permits_none(op->terms.set)) {
		return permits_within(op->terms.set, *numbers);
	}
	return permits_count(*numbers) >= (op->terms.count ? op->terms.count : 1);
}

static void extended(struct core *core, struct op *op, struct permits numbers) {
	struct extend_state *extend = op_extend(op);
	const struct instant deadline = deadline_of(core, op);
	op->terms.set = permits_none(op->terms.set) ? numbers : permits_and(op->terms.set, numbers);
	/* A caller that keeps its own deadline may drop this answer. Therefore the answer only
	 * moves a granted lease that has not ended meanwhile. */
	if (extend->deadline_kept) {
		granted_renew(core, op->key_hash, op->lock_id, deadline, op_asker(op),
			op->terms.set);
	} else {
		granted_set(core, op->key_hash, op->lock_id, deadline, op_asker(op),
			op->terms.set);
	}
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link),
			PAWL_OK);
		r->valid = span_shrink(op->lease, core->config.drift_ppm);
		r->token = extend->best_token;
		r->acks = op_votes(core, op, EXTEND_ACCEPTED);
		if (terms_semaphore(&op->terms)) {
			r->terms = op->terms;
		}
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

/* Tells whether fewer than q masters of this epoch have the lock, or one of its permit numbers,
 * because the others lack it. A master that may not lengthen the record yet has it. `already`: only
 * masters that lacked it when they were asked count, so that all of them lacked it at once. */
static bool lacking(const struct core *core, const struct op *op, bool already) {
	const uint32_t without = VOTE_BIT(VOTE_HELD) | VOTE_BIT(VOTE_REFUSED) |
		(extend_any_has(core, op) ? 0 : VOTE_BIT(VOTE_NEED));
	if (!terms_semaphore(&op->terms) || permits_none(op->terms.set)) {
		return (already ? op_lacked(op, without) : op_votes(core, op, without)) >
			core->masters - core->quorum;
	}
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		uint32_t lack = 0;
		for (uint32_t i = 0; i < core->masters && permits_has(op->terms.set, n); i++) {
			const struct vote *v = &op->votes[i];
			lack += ((without >> v->state) & 1) && !(already && v->had_when_asked) &&
				!permits_has(v->set, n);
		}
		if (lack > core->masters - core->quorum) {
			return true;
		}
	}
	return false;
}

static int extend_error(const struct core *core, const struct op *op) {
	const uint32_t learners = VOTE_BIT(VOTE_LEARNING) | VOTE_BIT(VOTE_NEED);
	if (lacking(core, op, false)) {
		/* The lock is barred by a break (section 9), or the lease with its lock delay is
		 * longer than R5 allows. The holder may use what is left of its lease. */
		return refused_as(core, op, STATUS_BARRED) ? PAWL_EDENIED
			: refused_as(core, op, STATUS_TOO_LONG) ? PAWL_ETOOLONG
			: op_epoch_stands(core, op) && lacking(core, op, true) ? PAWL_ELOST
			: PAWL_ENOQUORUM;
	}
	if (only_had(op) && op_votes(core, op, EXTEND_ACCEPTED | learners) >= core->quorum) {
		/* Fewer than q masters had the lock, or the same permit numbers. Another lock's
		 * lease may have come between. */
		return PAWL_EUNSURE;
	}
	return PAWL_ENOQUORUM;
}

/* The deadline that this node answered for has passed, which is final, whatever arrives later.
 * Another extension through this node may have moved the deadline. If not, the lock may still be
 * held because of what another node has answered, and this node does not know. */
static int late_error(struct core *core, const struct op *op) {
	int error = extend_error(core, op);
	if (error != PAWL_ENOQUORUM) {
		return error;
	}
	return granted_of(core, op->key_hash, op->lock_id, op_asker(op))
		? PAWL_ENOQUORUM : PAWL_EUNSURE;
}

/* A request that gives the lock back must find its own name where this extension has arrived
 * (section 11). */
static void take_back(struct core *core, struct op *op) {
	struct extend_state *extend = op_extend(op);
	if (extend->roll_back_name) {
		release_roll_back(core, op->key, op->lock_id, extend->roll_back_name);
	}
}

static void fail(struct core *core, struct op *op, int error) {
	core->counts[COUNT_extend_unsure] += error == PAWL_EUNSURE;
	uint32_t acks = op_votes(core, op, EXTEND_ACCEPTED);
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link), error);
		r->acks = acks;
		/* The limit covers the lease and the lock delay. */
		r->limit = error == PAWL_ETOOLONG ? core->config.max_lease : 0;
		r->field = error != PAWL_ETOOLONG ? NULL
			: op->lease > core->config.max_lease ? "lease_ms"
			: "lock_delay_ms";
	}
	/* Perhaps nobody holds the lock, so masters that lack it are not sent the record any
	 * more. */
	if (error == PAWL_ELOST || error == PAWL_EUNSURE) {
		take_back(core, op);
		op_free(core, op);
	} else {
		op_finish(core, op);
	}
}

/* The round is over, and it would have succeeded with the masters that may lengthen the lock soon.
 * A new round begins then. */
static bool wait_for_later(struct core *core, struct op *op) {
	struct permits numbers;
	if (op_votes(core, op, VOTE_BIT(VOTE_LATER)) == 0 ||
		!enough(core, op, VOTE_BIT(VOTE_LATER), &numbers)) {
		return false;
	}
	op_next_round(core, op);
	op->state = OP_PAUSED;
	timer_at(core, &op->timer, TIMER_OP, op_extend(op)->later);
	return true;
}

void extend_evaluate(struct core *core, struct op *op, bool over) {
	struct extend_state *extend = op_extend(op);
	const uint32_t asked = VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_LATER),
		hopeful = asked | VOTE_BIT(VOTE_BEHIND);
	if (extend->backed && instant_distrusted(core->now, op->until)) {
		COUNT(core, extend_late);
		fail(core, op, late_error(core, op));
		return;
	}
	struct permits numbers;
	if (enough(core, op, 0, &numbers)) {
		extended(core, op, numbers);
		return;
	}
	bool any_asked = op_votes(core, op, asked) > 0,
		source = any_asked || extend_any_has(core, op) || extend->record;
	uint32_t perhaps = only_had(op) ? hopeful
		: source ? hopeful | VOTE_BIT(VOTE_LEARNING) | VOTE_BIT(VOTE_NEED)
		: 0;
	if (!over && enough(core, op, perhaps, &numbers)) {
		return;
	}
	int error = extend_error(core, op);
	if (over && wait_for_later(core, op)) {
		return;
	}
	/* The answers to come decide whether the lock is only unsure or lost for certain. */
	const bool decides = only_had(op) || lacking(core, op, false);
	if (over || !decides || !any_asked || error != PAWL_ENOQUORUM) {
		fail(core, op, error);
	}
}

void extend_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if (op->state != OP_ROUND) {
		return;
	}
	/* An answer counts only before request_timeout has passed since the round was sent. */
	if (op_late(core, op)) {
		COUNT(core, answer_late);
		extend_evaluate(core, op, true);
		return;
	}
	extend_vote(core, op, from, m);
	extend_evaluate(core, op, false);
}

static bool extend_link_lost(struct core *core, struct op *op, uint32_t peer, bool closed) {
	(void)closed;
	extend_peer_lost(core, op, peer);
	return true;
}

static bool extend_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_extend(op)->deadline_kept = r->deadline_kept;
	op_extend(op)->ordered = r->ordered;
	op_extend(op)->shortens = r->shorten ? r->binding : 0;
	op_extend(op)->token = r->token;
	op_extend(op)->fetch_from = -1;
	return true;
}

/* Frees the copy of the record. */
static void extend_release(struct core *core, struct op *op) {
	record_free(core, op_extend(op)->record);
	op_extend(op)->record = NULL;
}

static void extend_clear(struct core *core, struct op *op) {
	struct extend_state *extend = op_extend(op);
	extend_release(core, op);
	extend->fetch_from = -1;
	extend->fetch_tried = 0;
	extend->best_token = 0;
}

const struct operation extend_operation = { .needs_lock_id = true, .of_holder = true,
	.make = extend_make, .start = extend_start,
	.answer = extend_answer, .evaluate = extend_evaluate, .timer = extend_timer,
	.link_lost = extend_link_lost, .clear = extend_clear, .late_answer = extend_vote,
	.release = extend_release };
