/* attempt.c: acquiring, up to the commit: promises, the queue, the turn (sections 2 and 5); and the
 * row of the operation, which hands what happens after that to commit.c.
 *
 *   ASKING --q promises--> COMMITTING (commit.c)
 *     | refused
 *   QUEUED --turn--> TURN --q promises--> COMMITTING
 *     ^               |  \--a rival's promise--> PAUSED --> TURN
 *     \---returned----/
 *
 * In every state before COMMITTING everything is withdrawn when the wait ends or the last caller
 * leaves.
 */
#include "operation.h"
#include "acquire.h"

/* ---- asking for promises ---- */

void attempt_ask(struct core *core, struct op *op, uint32_t indexes, bool turn) {
	struct acquire_state *acquire = op_acquire(op);
	struct message m = op_message(op, MESSAGE_PROMISE);
	m.attempt = acquire->attempt;
	m.ticket = acquire->ticket;
	m.ballot = acquire->ballot;
	out_keep(core, &m);
	const uint64_t same = m.same;
	for (; indexes; indexes &= indexes - 1) {
		int index = __builtin_ctz(indexes);
		const bool home = acquire->home == index;
		const bool tell = turn && acquire->told >> index & 1;
		m.flags = (turn ? FLAG_TURN : 0) | (home ? FLAG_HOME : 0) | (tell ? FLAG_TELL : 0);
		m.same = home || tell ? 0 : same;
		op_ask(core, op, (uint32_t)index, &m);
	}
}

void attempt_ask_again(struct core *core, struct op *op, uint32_t index) {
	enum vote_state was = op->votes[index].state;
	attempt_ask(core, op, 1u << index, true);
	if (op->votes[index].state == VOTE_ASKED &&
		(was == VOTE_OK || was == VOTE_SELF || was == VOTE_PARKED)) {
		op->votes[index].state = was;
	}
}

void attempt_be_told(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	for (uint32_t i = 0; i < core->masters; i++) {
		const bool later = acquire->home == (int)i && !acquire->home_waited;
		if (op->votes[i].state == VOTE_OK && !later && !(acquire->told >> i & 1)) {
			acquire->told |= (uint16_t)(1u << i);
			attempt_ask_again(core, op, i);
		}
	}
}

static void forget_value(struct core *core, struct acquire_state *acquire) {
	record_free(core, acquire->reported);
	acquire->reported = NULL;
}

static void ask_all(struct core *core, struct op *op, bool turn) {
	struct acquire_state *acquire = op_acquire(op);
	if (acquire->reported) {
		forget_value(core, acquire);
	}
	acquire->attempt = op_next_round(core, op);
	acquire->since = core->now;
	op->state = turn ? OP_TURN : OP_ASKING;
	acquire->rival_waiting = false;
	acquire->told = 0;
	acquire->home_waited = false;
	attempt_ask(core, op, (1u << core->masters) - 1, turn);
	struct instant at = instant_add(core->now, core->config.request_timeout);
	timer_at(core, &op->timer, TIMER_OP, instant_expired(at, op->until) ? op->until : at);
	/* It may be that no master is linked. */
	attempt_evaluate(core, op);
}

void attempt_ask_all(struct core *core, struct op *op, bool turn) {
	op_acquire(op)->ballot = first_draw(core);
	ask_all(core, op, turn);
}

/* Begins the attempt. Under a new epoch it begins again, with the ticket it has drawn, which is its
 * place in the order. */
static void attempt_start(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	if (clock_saturating_add(op->lease, op->terms.delay) > core->config.max_lease) {
		/* R5: the new epoch allows less than the one in which the lock was asked for. */
		attempt_fail(core, op, PAWL_ETOOLONG);
		return;
	}
	if (!peers_listen(core)) {
		COUNT(core, removed_while_waiting);
		/* No master listens to this node any more (section 6, Operations across a
		 * change). */
		attempt_fail(core, op, PAWL_ERECOVERING);
		return;
	}
	op->until = op->until.boot ? op->until
		: op->wait > 0 ? instant_add(core->now, op->wait)
		: INSTANT_FOREVER;
	attempt_home_again(core, op);
	if (!list_linked(&op->waiting)) {
		attempt_waits(core, op);
		core->coordinator.waiting_count++;
	}
	bool resumes = acquire->resumes;
	acquire->ballot = first_draw(core);
	/* Section 5, Entering: it comes after one of this node, and would be refused. */
	const bool queues = acquire->ticket.seq ||
		(!acquire->try_lock && attempt_queues(core, op));
	if (queues) {
		attempt_enqueue(core, op);
	}
	/* This must come before the questions: if no master is linked, they may end the attempt. */
	acquire->resumes = false;
	/* The home may have given the turn to the next request. The masters park this one before
	 * it, by its stamp. */
	if (!queues || resumes) {
		ask_all(core, op, resumes);
	}
}

/* ---- votes on promises ---- */

/* Keeps the value with the highest ballot that a master reports, for masters that lack the record.
 * False: no memory. */
static bool note_value(struct core *core, struct op *op, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	if (acquire->reported && ballot_compare(m->ballot,
		record_wrote(core, acquire->reported)) <= 0) {
		return true;
	}
	struct record *r = record_with_value(core, m->value, m->ballot);
	if (r) {
		record_free(core, acquire->reported);
		acquire->reported = r;
	}
	return r != NULL;
}

/* The master has parked the request, until what is in its way ends. */
static void note_parked(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	const span_ns left = span_grow(span_from_us(m->left_us), core->config.drift_ppm);
	acquire->told &= (uint16_t)~(1u << from);
	acquire->parked_until =
		instant_later(acquire->parked_until, instant_add(core->now, left));
}

static void take_vote(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	struct vote *v = &op->votes[from];
	v->status = m->status;
	v->fresh = true;
	v->token = m->token;
	v->noted = m->noted;
	v->set = m->terms.set;
	/* A master of an earlier version names nobody, because it promises permits to one
	 * coordinator at a time. */
	v->alone = terms_semaphore(&op->terms) && id128_zero(m->by);
	v->lapsed = false;
	v->state = VOTE_REFUSED;
	switch (m->status) {
	case STATUS_OK:
		v->state = VOTE_OK;
		/* The master has lacked the lock_id since the attempt began, until it promised. */
		v->lapsed = instant_elapsed_long(core->now, acquire->since) <=
			span_shrink(span_from_us(m->age_us), core->config.drift_ppm);
		break;
	case STATUS_HELD_SELF:
		v->state = note_value(core, op, m) ? VOTE_SELF : VOTE_GONE;
		break;
	case STATUS_PARKED:
		v->state = VOTE_PARKED;
		note_parked(core, op, from, m);
		break;
	case STATUS_HELD: case STATUS_CONTESTED:
		v->state = VOTE_HELD;
		attempt_note_holder(core, op, m);
		break;
	case STATUS_PROMISED: v->state = VOTE_RIVAL; break;
	case STATUS_QUEUED: v->state = VOTE_QUEUED; break;
	case STATUS_RECOVERING: case STATUS_EPOCH: case STATUS_CLOCK: v->state = VOTE_GONE; break;
	case STATUS_NEED: case STATUS_STALE: case STATUS_RELEASED: case STATUS_TOO_LONG:
	case STATUS_DENIED: case STATUS_FULL: case STATUS_BARRED: case STATUS_BALLOT:
	case STATUS_ABSENT: case STATUS_TERMS: case STATUS_LATER:
		break;
	}
}

/* The first promise of a turn is there. The other masters are asked now. */
static void turn_begins(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	op->state = OP_TURN;
	op->sent = core->now;
	acquire->parked_until = core->now;
	acquire->told = 0;
	acquire->home_waited = false;
	if (acquire->reported) {
		forget_value(core, acquire);
	}
	/* A home that promises has drawn a ballot for the attempt. */
	acquire->ballot = m->status == STATUS_HELD_SELF ? first_draw(core) : m->ballot;
	take_vote(core, op, from, m);
	/* The home lacked the lock_id when it promised. The other masters lacked it at that moment,
	 * too, if they have lacked it since before then. */
	op->votes[from].lapsed = m->status == STATUS_OK;
	attempt_ask(core, op, ((1u << core->masters) - 1) & ~(1u << from), true);
	struct instant at = instant_add(core->now, core->config.request_timeout);
	timer_at(core, &op->timer, TIMER_OP, instant_expired(at, op->until) ? op->until : at);
	attempt_evaluate(core, op);
}

/* A turn has arrived, which is the home's promise, too. */
static void turn_arrived(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if ((int)from != op_acquire(op)->home) {
		return;
	}
	if (op->state == OP_QUEUED) {
		turn_begins(core, op, from, m);
	} else if (op->state == OP_TURN) {
		/* This is a second turn: it comes from a new home, or because the lock_id has
		 * become held. */
		for (uint32_t i = 0; i < core->masters; i++) {
			if (i == from || m->status == STATUS_HELD_SELF) {
				attempt_ask(core, op, 1u << i, true);
			}
		}
	}
}

static void attempt_answer(struct core *core, struct op *op, uint32_t from,
	const struct message *m) {
	if (op->state == OP_COMMITTING) {
		commit_answer(core, op, from, m);
	} else if (m->kind == MESSAGE_ENQUEUE_ANSWER) {
		if ((int)from == op_acquire(op)->home &&
			(op->state == OP_QUEUED || op->state == OP_TURN ||
				op->state == OP_PAUSED)) {
			attempt_queue_answer(core, op, m);
		}
	} else if (m->kind == MESSAGE_TURN) {
		turn_arrived(core, op, from, m);
	} else if (m->kind == MESSAGE_PROMISE_ANSWER &&
		(op->state == OP_ASKING || op->state == OP_TURN)) {
		take_vote(core, op, from, m);
		attempt_evaluate(core, op);
	} else if (m->kind == MESSAGE_PROMISE_ANSWER && op->state == OP_QUEUED &&
		m->status == STATUS_OK) {
		/* The lock was handed over to this attempt, which did not have to ask. */
		turn_begins(core, op, from, m);
	}
}

/* A held record has displaced this attempt's promise at that master. */
void attempt_displaced(struct core *core, uint32_t from, const struct message *m) {
	struct op *op = from < core->masters ? op_find(core, m->attempt) : NULL;
	if (op == NULL || op->kind != CORE_ACQUIRE || op_acquire(op)->attempt != m->attempt ||
		op->votes[from].state != VOTE_OK) {
		return;
	}
	if (op->state == OP_ASKING && op->terms.of == MODE_EXCLUSIVE) {
		op->votes[from].state = VOTE_HELD;
		attempt_evaluate(core, op);
	} else if (op->state == OP_ASKING) {
		/* This request may be able to share the key with the record that is held now. */
		attempt_ask(core, op, 1u << from, false);
		attempt_evaluate(core, op);
	} else if (op->state == OP_TURN) {
		/* The request will be parked there. */
		attempt_ask(core, op, 1u << from, true);
		attempt_evaluate(core, op);
	}
}

/* A master is linked or votes again. Every request with a turn asks it at once, so that a release
 * finds the request parked there, too. */
void attempt_peer_changed(struct core *core, uint32_t peer) {
	if (peer >= core->masters || !peer_votes(core, peer)) {
		return;
	}
	for (struct list *n = list_first(&core->coordinator.waiting); n;
		n = list_after(&core->coordinator.waiting, n)) {
		struct op *op = CONTAINER_OF(n, struct op, waiting);
		if (op->state == OP_TURN && op->votes[peer].state == VOTE_GONE) {
			attempt_ask(core, op, 1u << peer, true);
		}
	}
}

/* ---- time ---- */

static void wait_ended(struct core *core, struct op *op) {
	COUNT(core, wait_ended);
	attempt_fail(core, op, epoch_voters(core) < core->quorum && !epoch_passes(core)
		? PAWL_ENOQUORUM : PAWL_ETIMEOUT);
}

/* Gives a turn back that q masters have not answered within request_timeout: the entry goes behind
 * the others. Otherwise renews the promises of the turn. */
static void turn_check(struct core *core, struct op *op) {
	uint32_t answered = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		answered += op->votes[i].fresh;
	}
	if (answered < core->quorum) {
		COUNT(core, turn_given_back);
		attempt_withdraw(core, op, true);
		op_acquire(op)->ticket = (struct ticket){ 0, 0 };
		attempt_enqueue(core, op);
		return;
	}
	struct instant renew = instant_add(op->sent, core->config.promise_timeout / 2);
	if (!instant_expired(core->now, renew)) {
		timer_at(core, &op->timer, TIMER_OP,
			instant_expired(renew, op->until) ? op->until : renew);
		return;
	}
	/* Promises that wait until there are q of them are renewed with the turn. */
	op->sent = core->now;
	for (uint32_t i = 0; i < core->masters; i++) {
		op->votes[i].fresh = false;
		attempt_ask_again(core, op, i);
	}
	struct instant at = instant_add(core->now, core->config.request_timeout);
	timer_at(core, &op->timer, TIMER_OP, instant_expired(at, op->until) ? op->until : at);
}

void attempt_go_on(struct core *core, struct op *op) {
	struct instant at = instant_add(op->sent, core->config.request_timeout);
	if (instant_expired(core->now, at)) {
		turn_check(core, op);
	} else {
		timer_at(core, &op->timer, TIMER_OP,
			instant_expired(at, op->until) ? op->until : at);
	}
}

static void attempt_timer(struct core *core, struct op *op) {
	if (instant_expired(core->now, op->until)) {
		wait_ended(core, op);
		return;
	}
	switch (op->state) {
	case OP_ASKING:
		for (uint32_t i = 0; i < core->masters; i++) {
			if (op->votes[i].state == VOTE_ASKED) {
				/* A master that has not answered within request_timeout cannot be
				 * had. */
				op->votes[i].state = VOTE_GONE;
			}
		}
		attempt_evaluate(core, op);
		break;
	case OP_QUEUED:
		timer_at(core, &op->timer, TIMER_OP, op->until);
		break;
	case OP_TURN:
		if (op_acquire(op)->rival_waiting) {
			attempt_rival_waited(core, op);
		} else {
			turn_check(core, op);
		}
		break;
	case OP_PAUSED:
		attempt_ask_all(core, op, true);
		break;
	case OP_COMMITTING: case OP_ROUND: case OP_SECOND: case OP_LOCAL: case OP_IN_LINE:
	case OP_SHOWING: case OP_WEIGHING: case OP_SUSPENDED: case OP_BINDING:
	case OP_CATCHING_UP:
		/* There is no such state before the commit. */
		CHECK(false);
	}
}

/* ---- the row of the operation ---- */

static void acquire_evaluate(struct core *core, struct op *op, bool over) {
	if (op->state == OP_COMMITTING) {
		commit_evaluate(core, op, over);
	} else if (op->state == OP_ASKING || op->state == OP_TURN) {
		attempt_evaluate(core, op);
	}
}

static void acquire_timer(struct core *core, struct op *op) {
	if (op->state == OP_COMMITTING) {
		op_round_timer(core, op);
	} else {
		attempt_timer(core, op);
	}
}

static bool acquire_epoch(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	/* The commit was on its way when the last caller left, and nobody wants it again. */
	if (list_empty(&op->callers)) {
		commit_roll_back(core, op);
		op_free(core, op);
		return false;
	}
	if (op->state == OP_COMMITTING) {
		acquire->committed = !commit_roll_back(core, op) || acquire->committed;
	}
	return true;
}

static bool acquire_forget(struct core *core, struct op *op) {
	if (op->state == OP_COMMITTING) {
		return false;
	}
	COUNT(core, waiter_dropped);
	attempt_give_up(core, op);
	op_free(core, op);
	return true;
}

static void acquire_lock_released(struct core *core, struct op *op, bool broken) {
	(void)broken;
	if (op->state != OP_COMMITTING) {
		attempt_fail(core, op, PAWL_ELOST);
	}
}

static bool acquire_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_acquire(op)->try_lock = r->wait <= 0;
	op_acquire(op)->home = -1;
	return true;
}

/* Frees what masters have reported. The request does not wait any more. */
static void acquire_release(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	attempt_queued_ends(core, op);
	if (acquire->reported) {
		forget_value(core, acquire);
	}
	if (acquire->holder) {
		record_free(core, acquire->holder);
		acquire->holder = NULL;
	}
}

static void acquire_clear(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	acquire_release(core, op);
	acquire->attempt = 0;
	acquire->rival_waiting = acquire->contested_seen = false;
}

const struct operation acquire_operation = { .by_lock = true, .needs_lock_id = true,
	.make = acquire_make,
	.start = attempt_start,
	.answer = attempt_answer,
	.evaluate = acquire_evaluate,
	.timer = acquire_timer,
	.epoch = acquire_epoch,
	.clear = acquire_clear,
	.forget = acquire_forget,
	.lock_released = acquire_lock_released,
	.catch_up = acquire_catch_up,
	.late_answer = acquire_late_answer,
	.late_end = acquire_late_end,
	.release = acquire_release };
