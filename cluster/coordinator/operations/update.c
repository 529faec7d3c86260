/* update.c: compare-and-set of a held record's value, in two phases under a ballot (section 2,
 * Update). A release that expects a value writes a last value in the same way, and goes on as a
 * release (section 2, Compare and release). */
#include "operation.h"
#include "operations.h"

/* Frees the copies of values. */
static void update_forget_values(struct core *core, struct op *op) {
	struct update_state *update = op_update(op);
	record_free(core, update->record);
	record_free(core, update->own_value);
	update->record = update->own_value = NULL;
}

/* Tells whether the present value is to be tested. Otherwise it is of no use here, and large values
 * are not copied in vain. */
static bool expects(const struct op *op) {
	const struct update_state *update = op_update(op);
	return update->expect_value || update->expect_seq;
}

static bool is_last(struct ballot b) {
	return (b.boot & BALLOT_LAST) != 0;
}

static enum vote_state vote_of(enum status s) {
	switch (s) {
	case STATUS_OK: return VOTE_OK;
	case STATUS_NEED: return VOTE_NEED;
	case STATUS_BALLOT: return VOTE_BALLOT;
	case STATUS_HELD: case STATUS_CONTESTED: return VOTE_HELD;
	case STATUS_RECOVERING: case STATUS_EPOCH: case STATUS_CLOCK: return VOTE_GONE;
	case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_PROMISED: case STATUS_QUEUED:
	case STATUS_STALE: case STATUS_RELEASED: case STATUS_TOO_LONG: case STATUS_DENIED:
	case STATUS_FULL: case STATUS_BARRED: case STATUS_ABSENT: case STATUS_TERMS:
	case STATUS_LATER:
		return VOTE_REFUSED;
	}
	return VOTE_REFUSED;
}

/* Prepares under a ballot above this node's clock and above what stood in the way. This is also the
 * next try after a pause. */
void update_start(struct core *core, struct op *op) {
	struct update_state *update = op_update(op);
	uint64_t above = update->seen.clock > core->clock ? update->seen.clock : core->clock;
	if (above >= TOKEN_MAX) {
		op_reply_all(core, op, PAWL_EFULL);
		op_free(core, op);
		return;
	}
	clock_raise(core, above + 1);
	update->ballot = (struct ballot){ core->clock, id128_word(core->durable.node_id),
		(uint32_t)core->durable.boot & ~(BALLOT_FIRST | BALLOT_LAST) };
	update_forget_values(core, op);
	update->error = PAWL_OK;
	struct key *key = table_find(core, op->key);
	const struct record *own = key ? key_record(key, op->lock_id) : NULL;
	const struct slice none = slice_of(NULL, 0);
	const struct ballot nobody = { 0, 0, 0 };
	update->record = record_with_value(core, none, nobody);
	const bool wants_own = own && (expects(op) || is_last(record_wrote(core, own)));
	update->own_value = wants_own ? record_with_value(core, record_value(own), nobody) : NULL;
	if (update->record == NULL || (wants_own && update->own_value == NULL)) {
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
		return;
	}
	struct message m = op_message(op, MESSAGE_PREPARE);
	m.ballot = update->ballot;
	/* A master that has the same value leaves it out of its report. */
	m.prepared = own ? record_wrote(core, own) : nobody;
	op->state = OP_ROUND;
	m.round = op_next_round(core, op);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	update_evaluate(core, op, false);
}

/* Returns the value to be written: the new one, or the present one. That is written back where the
 * expectation failed, and is the last value of a lock. */
static struct slice value_to_write(const struct op *op) {
	const struct update_state *update = op_update(op);
	return update->error || is_last(update->ballot) ? record_value(update->record) : op->value;
}

static void write_round(struct core *core, struct op *op) {
	op->state = OP_SECOND;
	op_next_round(core, op);
	struct message m = op_message(op, MESSAGE_WRITE);
	m.value = value_to_write(op);
	m.ballot = op_update(op)->ballot;
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	update_evaluate(core, op, false);
}

/* Tests the expectation on the report with the highest ballot among q masters. */
static void prepared(struct core *core, struct op *op) {
	struct update_state *update = op_update(op);
	bool fits = !expects(op) ||
		(update->expect_value && slice_equal(record_value(update->record), op->expected)) ||
		(update->expect_seq &&
			ballot_compare(record_wrote(core, update->record),
				update->expected_seq) == 0);
	if (is_last(record_wrote(core, update->record))) {
		/* Another release has tested its expectation, and perhaps q masters have its last
		 * value. So the lock has ended, whatever this operation expects. */
		update->error = PAWL_ELOST;
		update->ballot.boot |= BALLOT_LAST;
	} else if (!fits) {
		COUNT(core, update_mismatch);
		update->error = PAWL_EMISMATCH;
	} else if (update->ends) {
		update->ballot.boot |= BALLOT_LAST;
	}
	write_round(core, op);
}

/* Counts the votes towards success. A master that counts knows the value. An update that expects
 * nothing needs no master to know it: such a write gives the value a fresh start at masters that
 * have learned the record anew. */
static uint32_t good_votes(const struct core *core, const struct op *op) {
	bool any = op->state == OP_ROUND && !expects(op);
	return op_votes(core, op, VOTE_BIT(VOTE_OK) | (any ? VOTE_BIT(VOTE_ABSENT) : 0));
}

/* Says that nothing will be written under this ballot, so that other updates need not wait for
 * that. */
static void withdraw(struct core *core, const struct op *op) {
	struct message m = op_message(op, MESSAGE_WITHDRAW);
	m.attempt = op->round;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state != VOTE_BALLOT && peer_reachable(core, i)) {
			out_send(core, i, &m);
		}
	}
}

static void pause_and_retry(struct core *core, struct op *op) {
	if (instant_elapsed_long(core->now, op->arrived) > 2 * core->config.promise_timeout) {
		/* Nothing was written. */
		op_reply_all(core, op, PAWL_EBUSY);
		op_free(core, op);
		return;
	}
	withdraw(core, op);
	span_ns most = peers_pause_most(core, op_update(op)->pauses++);
	op->state = OP_PAUSED;
	op_next_round(core, op);
	timer_at(core, &op->timer, TIMER_OP,
		instant_add(core->now, prng_between(&core->prng, 0, most)));
}

/* Answers. A release of a lock that is held no more is done (`released` is false). */
static void reply(struct core *core, struct op *op, int error) {
	struct update_state *update = op_update(op);
	core->counts[COUNT_update_ok] += error == PAWL_OK;
	core->counts[COUNT_update_unsure] += error == PAWL_EUNSURE;
	core->counts[COUNT_update_mismatch_written_back] += error == PAWL_EMISMATCH;
	uint32_t acks = op_votes(core, op, VOTE_BIT(VOTE_OK));
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct slice present = slice_of(NULL, 0);
		bool shows = error == PAWL_EMISMATCH &&
			out_copy(core, record_value(update->record), &present);
		/* Nothing was changed. Without memory for the present value the caller may ask
		 * again. */
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link),
			error == PAWL_EMISMATCH && !shows ? PAWL_EBUSY
			: error == PAWL_ELOST && update->ends ? PAWL_OK
			: error);
		r->op = update->ends ? CORE_RELEASE : CORE_UPDATE;
		r->acks = acks;
		r->value_seq = update->ballot;
		if (shows) {
			r->held = true;
			r->entry.value = present;
			r->entry.value_seq = update->ballot;
		}
	}
}

static void finish(struct core *core, struct op *op, int error) {
	reply(core, op, error);
	op_free(core, op);
}

/* ---- after the answer ---- */

/* Sends a master the record, as it is described by `record`. */
static void learn(struct core *core, struct op *op, uint32_t index, const struct message *record) {
	struct message m = *record;
	m.kind = MESSAGE_LEARN;
	m.key = op->key;
	m.key_hash = op->key_hash;
	m.lock_id = op->lock_id;
	m.lease_us = record->left_us;
	m.left_us = 0;
	COUNT(core, update_repaired);
	op_ask(core, op, index, &m);
	if (op->votes[index].state == VOTE_ASKED) {
		op->votes[index].state = VOTE_LEARNING;
	}
}

static void write_again(struct core *core, struct op *op, uint32_t index) {
	struct message m = op_message(op, MESSAGE_WRITE);
	m.value = value_to_write(op);
	m.ballot = op_update(op)->ballot;
	op_ask(core, op, index, &m);
}

/* Asks a master that has taken the write for the record, which is then sent to those that lack
 * it: this node's own table need not have it. */
static void fetch(struct core *core, struct op *op) {
	struct update_state *update = op_update(op);
	struct message m = op_message(op, MESSAGE_FETCH);
	for (uint32_t i = 0; !update->fetching && i < core->masters; i++) {
		if (op->votes[i].state == VOTE_OK && peer_reachable(core, i)) {
			update->fetching = true;
			out_send(core, i, &m);
		}
	}
}

/* Section 2, Update, after the answer: a master that lacks the record, or has another's in its
 * place, may still take the earlier value with the commit. So it is sent the record once. */
static void write_missed(struct core *core, struct op *op, uint32_t index) {
	struct vote *v = &op->votes[index];
	if (v->state == VOTE_NEED || v->state == VOTE_HELD) {
		v->state = VOTE_NEED;
		fetch(core, op);
	}
}

/* Q masters have the write. */
static void written(struct core *core, struct op *op) {
	reply(core, op, op_update(op)->error);
	if (!op_update(op)->error) {
		update_forget_values(core, op);
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		write_missed(core, op, i);
	}
	op_finish(core, op);
}

static void fetched(struct core *core, struct op *op, const struct message *record) {
	op_update(op)->fetching = false;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state != VOTE_NEED) {
			continue;
		}
		op->votes[i].state = VOTE_REFUSED;
		if (record->status == STATUS_OK) {
			learn(core, op, i, record);
		}
	}
}

static void update_late_answer(struct core *core, struct op *op, uint32_t from,
	const struct message *m) {
	if (m->kind == MESSAGE_FETCH_ANSWER) {
		fetched(core, op, m);
	} else if (m->kind == MESSAGE_LEARN_ANSWER && m->status == STATUS_OK) {
		/* What it was sent before the answer has the earlier value. */
		write_again(core, op, from);
	} else if (m->kind == MESSAGE_WRITE_ANSWER) {
		op->votes[from].state = vote_of(m->status);
		write_missed(core, op, from);
	} else {
		catch_up_vote(op, from, m);
	}
}

/* Q masters have a last value, so no update succeeds any more, and the lock is released. */
static void end_lock(struct core *core, struct op *op) {
	if (op_update(op)->error) {
		reply(core, op, op_update(op)->error);
	}
	update_forget_values(core, op);
	op->kind = CORE_RELEASE;
	*op_release(op) = (struct release_state){ .had_any = true };
	release_start(core, op);
}

#define LACKS (VOTE_BIT(VOTE_HELD) | VOTE_BIT(VOTE_REFUSED) | VOTE_BIT(VOTE_NEED))

/* Tells whether fewer than q masters of this epoch have the lock, because the others lack it. */
static bool lacking(const struct core *core, const struct op *op) {
	return op_votes(core, op, LACKS) > core->masters - core->quorum;
}

/* Tells whether the answers still to come decide if the lock is lost for certain. */
static bool loss_open(const struct core *core, const struct op *op) {
	return op->state == OP_ROUND && lacking(core, op) && !op_epoch_stands(core, op) &&
		op_votes(core, op, VOTE_BIT(VOTE_ASKED)) > 0;
}

static void prepare_failed(struct core *core, struct op *op) {
	const bool lost = lacking(core, op) && op_epoch_stands(core, op);
	if (lost && op_lacked(op, LACKS) > core->masters - core->quorum) {
		finish(core, op, PAWL_ELOST);
	} else if (lost || op_votes(core, op, VOTE_BIT(VOTE_BALLOT))) {
		/* If the masters have not all lacked the lock at one moment, the next round says
		 * whether it is lost. */
		pause_and_retry(core, op);
	} else {
		/* Fewer than q masters count. */
		withdraw(core, op);
		finish(core, op,
			op_votes(core, op, VOTE_BIT(VOTE_ABSENT)) ? PAWL_EUNSURE : PAWL_ENOQUORUM);
	}
}

/* A write that a master may have taken must not be tried again, because the operation's own value
 * would fail the expectation. */
static void write_failed(struct core *core, struct op *op) {
	struct update_state *update = op_update(op);
	const uint32_t perhaps = VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_GONE) |
		VOTE_BIT(VOTE_LEARNING);
	bool again = update->error || op_votes(core, op, perhaps) == 0;
	/* Nothing of this operation was written where its expectation failed. Where masters lack
	 * the lock by now, the next try finds out whether it is lost. */
	const uint32_t stands = VOTE_BIT(VOTE_BALLOT) | (update->error ? LACKS : 0);
	if (again && op_votes(core, op, stands)) {
		pause_and_retry(core, op);
	} else {
		finish(core, op, update->error ? PAWL_ENOQUORUM : PAWL_EUNSURE);
	}
}

void update_evaluate(struct core *core, struct op *op, bool over) {
	const uint32_t open = VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_LEARNING);
	if (op->state != OP_ROUND && op->state != OP_SECOND) {
		return;
	}
	uint32_t good = good_votes(core, op);
	bool failed = over ||
		(good + op_votes(core, op, open) < core->quorum && !loss_open(core, op));
	if (good >= core->quorum) {
		if (op->state == OP_ROUND) {
			prepared(core, op);
		} else if (is_last(op_update(op)->ballot)) {
			end_lock(core, op);
		} else {
			written(core, op);
		}
	} else if (failed) {
		if (op->state == OP_ROUND) {
			prepare_failed(core, op);
		} else {
			write_failed(core, op);
		}
	}
}

/* Only masters count whose value has a ballot above what their record noted. */
static void take_report(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct update_state *update = op_update(op);
	struct vote *v = &op->votes[from];
	v->state = m->flags & FLAG_COUNTS ? VOTE_OK : VOTE_ABSENT;
	if (v->state != VOTE_OK ||
		ballot_compare(m->ballot, record_wrote(core, update->record)) <= 0) {
		return;
	}
	if (!expects(op) && !is_last(m->ballot)) {
		if (!record_write(core, &update->record, NULL, m->ballot, m->ballot)) {
			v->state = VOTE_GONE;
		}
		return;
	}
	bool same = (m->flags & FLAG_SAME) && update->own_value;
	struct record *better = record_with_value(core,
		same ? record_value(update->own_value) : m->value, m->ballot);
	if (better == NULL) {
		v->state = VOTE_GONE;
		return;
	}
	record_free(core, update->record);
	update->record = better;
}

/* A master that lacks the record is sent it first, from this node's table. */
static void repair(struct core *core, struct op *op, uint32_t index) {
	struct key *key = table_find(core, op->key);
	const struct record *own = key ? key_record(key, op->lock_id) : NULL;
	if (own) {
		struct message m;
		message_clear(&m);
		record_describe(core, own, &m);
		learn(core, op, index, &m);
	}
}

void update_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct update_state *update = op_update(op);
	struct vote *v = &op->votes[from];
	if (op_late(core, op)) {
		COUNT(core, answer_late);
		update_evaluate(core, op, true);
		return;
	}
	if (m->status == STATUS_BALLOT && ballot_compare(m->prepared, update->seen) > 0) {
		update->seen = m->prepared;
	}
	if (m->kind == MESSAGE_PREPARE_ANSWER && op->state == OP_ROUND) {
		/* A master without memory to note the ballot does not count, and has the lock. */
		v->state = m->status == STATUS_FULL ? VOTE_GONE : vote_of(m->status);
		v->had_when_asked = m->status != STATUS_RELEASED && op_had_when_asked(core, op, m);
		if (m->status == STATUS_OK) {
			take_report(core, op, from, m);
		}
	} else if (m->kind == MESSAGE_WRITE_ANSWER && op->state == OP_SECOND) {
		v->state = vote_of(m->status);
		if (v->state == VOTE_NEED) {
			repair(core, op, from);
		}
	} else if (m->kind == MESSAGE_LEARN_ANSWER && op->state == OP_SECOND) {
		if (m->status == STATUS_OK) {
			write_again(core, op, from);
		} else {
			v->state = vote_of(m->status);
		}
	}
	update_evaluate(core, op, false);
}

static void update_timer(struct core *core, struct op *op) {
	if (op->state == OP_PAUSED) {
		update_start(core, op);
	} else {
		op_round_timer(core, op);
	}
}

/* In its second round the write may still take effect, so it must not be tried again. */
static bool update_epoch(struct core *core, struct op *op) {
	if (op->state != OP_SECOND) {
		return true;
	}
	COUNT(core, update_unsure_by_epoch);
	op_reply_all(core, op, PAWL_EUNSURE);
	op_free(core, op);
	return false;
}

bool update_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_update(op)->ends = r->op == CORE_RELEASE;
	op_update(op)->expect_value = r->expect_value;
	op_update(op)->expect_seq = r->expect_seq;
	op_update(op)->expected_seq = r->expected_seq;
	return true;
}

const struct operation update_operation = { .needs_lock_id = true, .of_holder = true,
	.make = update_make, .start = update_start,
	.answer = update_answer, .evaluate = update_evaluate, .timer = update_timer,
	.epoch = update_epoch, .clear = update_forget_values,
	.late_answer = update_late_answer, .release = update_forget_values };
