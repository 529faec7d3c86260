/* commit.c: the second phase of an acquire: the token, the acceptances and the answer. After the
 * answer, masters that missed the commit are sent the record while the lock may be trusted
 * (section 2). */
#include "acquire.h"

/* Returns the next token above `highest`. Those who hold together have different tokens, so each
 * master draws tokens of its own for them, and all other nodes draw those that are left (section 5,
 * Together). */
static uint64_t next_token(const struct core *core, const struct op *op, uint64_t highest) {
	const uint64_t share = op->terms.of == MODE_EXCLUSIVE ? 1 : core->masters + (uint64_t)1,
		behind = (highest + 1) % share,
		own = (core->self < core->masters ? core->self : core->masters) % share;
	return highest + 1 + (own + share - behind) % share;
}

/* Returns 1 + the highest number that the q masters reported, and not below 1 + this node's clock.
 * There is one exception, so that a repeat gives the same answer: if q masters answered "held by
 * yourself" with one token and these permits, and that token is above every noted clock and not
 * below any other token, it is used again. */
static uint64_t choose_token(struct core *core, const struct op *op, bool *reused) {
	uint64_t highest = core->clock, token = 0, noted = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct vote *v = &op->votes[i];
		if (v->state != VOTE_OK && v->state != VOTE_SELF) {
			continue;
		}
		noted = v->noted > noted ? v->noted : noted;
		token = v->state == VOTE_SELF && v->token > token ? v->token : token;
	}
	uint32_t same = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct vote *v = &op->votes[i];
		same += v->state == VOTE_SELF && v->token == token &&
			permits_within(op->terms.set, v->set);
	}
	*reused = same >= core->quorum && token > noted;
	highest = noted > highest ? noted : highest;
	highest = token > highest ? token : highest;
	return *reused ? token : next_token(core, op, highest);
}

/* A master that lacks the lock_id gets the value that other masters have (section 2, Acquire); if
 * no master has one, it gets the first value. */
void commit_put_value(const struct core *core, const struct op *op, struct message *m) {
	const struct acquire_state *acquire = op_acquire(op);
	const struct record *there = acquire->reported;
	m->value = there ? record_value(there) : op->value;
	m->ballot = there ? record_wrote(core, there) : acquire->ballot;
}

void commit_start(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	bool reused;
	clock_raise(core, acquire->ballot.clock);
	acquire->token = choose_token(core, op, &reused);
	if (acquire->token > TOKEN_MAX) {
		attempt_fail(core, op, PAWL_EFULL);
		return;
	}
	core->counts[COUNT_token_reused] += reused;
	clock_raise(core, acquire->token);
	list_remove(&op->waiting);
	core->coordinator.waiting_count--;
	attempt_queued_ends(core, op);
	op_next_round(core, op);
	op->state = OP_COMMITTING;
	struct message m = op_message(op, MESSAGE_COMMIT);
	acquire->commit_name = name_next(core, acquire->commit_name);
	m.name = op->part_of ? op->part_of : acquire->commit_name;
	acquire->roll_back_name = terms_semaphore(&op->terms) ? m.name : 0;
	m.lease_us = (uint64_t)(clock_saturating_add(op->lease, op->terms.delay) / SPAN_US);
	m.token = acquire->token;
	commit_put_value(core, op, &m);
	m.prepared = acquire->reported ? m.ballot : (struct ballot){ 0, 0, 0 };
	m.ticket = acquire->ticket;
	counted_commit_begun(core);
	op_ask_all(core, op, &m);
	timer_by(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
}

static void held(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	struct instant deadline = instant_add(op->sent,
		span_shrink(op->lease, core->config.drift_ppm));
	if (instant_distrusted(core->now, deadline)) {
		/* The lease was over before it was known to be held. */
		attempt_fail(core, op, PAWL_ENOQUORUM);
		return;
	}
	granted_set(core, op->key_hash, op->lock_id, deadline, op_asker(op), op->terms.set);
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct caller *c = CONTAINER_OF(n, struct caller, link);
		span_ns waited = instant_elapsed_short(core->now, c->arrived),
			asked_for = instant_elapsed_short(op->sent, c->arrived);
		struct core_reply *r = op_reply(core, c, PAWL_OK);
		r->token = acquire->token;
		r->terms = op->terms;
		/* From the instant at which the caller sent the request. None joins once the commit
		 * is sent (section 5, Repeats). */
		r->valid = span_shrink(clock_saturating_add(asked_for, op->lease),
			core->config.drift_ppm);
		r->waited = waited;
		r->votes = core->quorum;
		r->acks = op_votes(core, op, VOTE_BIT(VOTE_OK));
	}
	acquire->roll_back_name = 0;
	op->until = deadline;
	catch_up_begin(core, op);
}

static int commit_error(const struct core *core, const struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state == VOTE_REFUSED && op->votes[i].status == STATUS_DENIED) {
			return PAWL_EDENIED;
		}
		if (op->votes[i].state == VOTE_REFUSED && op->votes[i].status == STATUS_TERMS) {
			return PAWL_EMISMATCH;
		}
	}
	return op_votes(core, op, VOTE_BIT(VOTE_REFUSED)) > core->masters - core->quorum
		? PAWL_EFULL : PAWL_ENOQUORUM;
}

/* Limits how often an attempt begins again; each time somebody else has got the key. Where many
 * coordinators want permits of one semaphore, one in two may be overtaken each time. */
#define OVERTAKEN_MAX 64

static bool may_ask_again(struct op *op) {
	return !list_empty(&op->callers) && op_acquire(op)->overtaken++ < OVERTAKEN_MAX;
}

/* Tells whether another attempt for the lock_id was faster, and where the record is, the value has
 * been updated since. This attempt then asks again, and is told the value. What it has left where
 * there was no record must go, because that has the first value. */
static bool met_itself(const struct core *core, const struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state == VOTE_HELD && op->votes[i].status == STATUS_HELD_SELF) {
			return true;
		}
	}
	return false;
}

/* The commit was refused for its token or for another lock's record: the other commit was faster,
 * or its release is still on its way there (section 2, Acquire). Asked again, the masters promise,
 * or say that the key is held. */
static bool overtaken(const struct core *core, const struct op *op) {
	const uint32_t refused = VOTE_BIT(VOTE_STALE) | VOTE_BIT(VOTE_HELD);
	return op_votes(core, op, refused) > 0 &&
		op_votes(core, op, refused | VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_ASKED)) >=
		core->quorum;
}

void commit_evaluate(struct core *core, struct op *op, bool over) {
	struct acquire_state *acquire = op_acquire(op);
	uint32_t acks = op_votes(core, op, VOTE_BIT(VOTE_OK)),
		open = op_votes(core, op, VOTE_BIT(VOTE_ASKED));
	if (acks >= core->quorum) {
		held(core, op);
		return;
	}
	/* The other masters are not waited for: where the commit was accepted, an old value counts
	 * (section 2, Acquire). */
	bool itself = acks + open < core->masters && met_itself(core, op);
	if (!over && !itself && acks + open >= core->quorum) {
		return;
	}
	bool again = !over && (itself || overtaken(core, op)) && may_ask_again(op);
	core->counts[COUNT_commit_met_itself] += itself;
	if (itself || again) {
		/* What the commit has left must go: the key may be another lock's, and the value
		 * may be an old one. */
		acquire->roll_back_name = op->part_of ? op->part_of : acquire->commit_name;
	}
	if (again) {
		COUNT(core, commit_overtaken);
		acquire->committed = !commit_roll_back(core, op) || acquire->committed;
		acquire->resumes = acquire->ticket.seq != 0;
		restart_again(core, op);
	} else {
		/* The answer is never "held", because nobody releases after that, and some masters
		 * may have accepted (section 2, Release). */
		attempt_fail(core, op, commit_error(core, op));
	}
}

void commit_vote(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	v->status = m->status;
	v->state = VOTE_REFUSED;
	switch (m->status) {
	case STATUS_OK: v->state = VOTE_OK; break;
	case STATUS_STALE:
		v->state = VOTE_STALE;
		clock_raise(core, m->token);
		break;
	case STATUS_HELD: case STATUS_CONTESTED: case STATUS_HELD_SELF:
		v->state = VOTE_HELD;
		break;
	case STATUS_RECOVERING: case STATUS_EPOCH: case STATUS_CLOCK: v->state = VOTE_GONE; break;
	case STATUS_PARKED: case STATUS_NEED: case STATUS_PROMISED: case STATUS_QUEUED:
	case STATUS_RELEASED: case STATUS_TOO_LONG: case STATUS_DENIED: case STATUS_FULL:
	case STATUS_BARRED: case STATUS_BALLOT: case STATUS_ABSENT: case STATUS_TERMS:
	case STATUS_LATER:
		break;
	}
}

void commit_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if (m->kind != MESSAGE_COMMIT_ANSWER) {
		return;
	}
	/* An answer counts only before request_timeout has passed since the round was sent. */
	if (op_late(core, op)) {
		COUNT(core, answer_late);
		commit_evaluate(core, op, true);
		return;
	}
	commit_vote(core, op, from, m);
	commit_evaluate(core, op, false);
}

/* ---- after the answer ---- */

/* Sends the record with its remaining time. The master accepts it like an extension. */
static void repair(struct core *core, struct op *op, uint32_t index) {
	struct message m = op_message(op, MESSAGE_LEARN);
	m.name = op->part_of;
	m.token = op_acquire(op)->token;
	span_ns lasts = clock_saturating_add(op->lease, op->terms.delay);
	m.lease_us =
		(uint64_t)(instant_left_long(core->now, instant_add(op->sent, lasts)) / SPAN_US);
	commit_put_value(core, op, &m);
	COUNT(core, repair_sent);
	op_ask(core, op, index, &m);
}

/* Repairs a master that missed the commit and can be reached by now. That includes a master that
 * refused its token as stale, and, once, a master where the record of another lock stood in the
 * way: the release of that lock had overtaken the commit elsewhere, and has arrived there by
 * now. A master that refused the commit keeps the request's place unless it takes the record
 * (section 5, Ending).
 *
 * Where too much waits for the link, it would be lost with all of it, and so would the next one:
 * the master pulls what is left over (section 7, No more than a link holds). */
void acquire_catch_up(struct core *core, struct op *op, uint32_t peer) {
	const bool refused = op->votes[peer].state != VOTE_GONE;
	if (out_backlog(core, peer) != BACKLOG_LARGE) {
		repair(core, op, peer);
	}
	if (refused) {
		attempt_leave(core, op, peer);
	}
}

/* A turn, or a promise for the place that was kept, says nothing about the record. */
void acquire_late_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	if (m->kind == MESSAGE_COMMIT_ANSWER) {
		commit_vote(core, op, from, m);
		catch_up(core, op, from);
	} else if (m->kind == MESSAGE_LEARN_ANSWER) {
		catch_up_vote(op, from, m);
	}
}

/* A master that has not answered the commit yet may still refuse it, and then goes on keeping the
 * place. */
void acquire_late_end(struct core *core, struct op *op) {
	for (uint32_t i = 0; op_acquire(op)->ticket.seq && i < core->masters; i++) {
		if (op->votes[i].state == VOTE_ASKED) {
			attempt_leave(core, op, i);
		}
	}
}
