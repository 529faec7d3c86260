/* release.c: releasing: one round, which is answered after q masters, and is sent again to the
 * others until they have acknowledged it (section 2, Release). */
#include "operation.h"
#include "operations.h"

void release_start(struct core *core, struct op *op) {
	struct release_state *release = op_release(op);
	op->until = longest_lease(core);
	if (op->part_of == 0) {
		granted_drop(core, op->key_hash, op->lock_id);
		op_lock_released(core, op->key, op->lock_id, false);
	} else {
		if (granted_of(core, op->key_hash, op->lock_id, op->part_of)) {
			granted_drop(core, op->key_hash, op->lock_id);
		}
		op_lock_rolled_back(core, op->key, op->lock_id, op->part_of);
	}
	if (release->closes > 0 && release->closed_until.boot == 0) {
		release->closed_until = instant_add(core->now, release->closes);
	}
	op->state = OP_ROUND;
	op_next_round(core, op);
	release->fetch_from = 0;
	struct message m = release_message(core, op);
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	release_evaluate(core, op, false);
}

/* ---- a key that stays closed (section 10, Closing) ---- */

/* The masters that lack what keeps the key closed can be sent it no more. */
static void give_up_closing(struct core *core, struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		v->state = v->state == VOTE_NEED ? VOTE_HELD : v->state;
	}
}

/* Sends the record that keeps the key closed to the masters that lack it, for what is left of the
 * time. */
static void send_closing(struct core *core, struct op *op, const struct message *record) {
	const uint64_t left = (uint64_t)(release_closes(core, op) / SPAN_US);
	struct message m = *record;
	m.kind = MESSAGE_LEARN;
	m.key = op->key;
	m.key_hash = op->key_hash;
	m.lock_id = record_closing_id(op->lock_id);
	m.lease_us = record->left_us < left ? record->left_us : left;
	m.left_us = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (op->votes[i].state == VOTE_NEED) {
			COUNT(core, release_closed_later);
			op_ask(core, op, i, &m);
			op->votes[i].state = op->votes[i].state == VOTE_ASKED
				? VOTE_LEARNING : op->votes[i].state;
		}
	}
}

/* Asks a master that keeps the key closed for the record that does so. */
static void close_elsewhere(struct core *core, struct op *op) {
	struct release_state *release = op_release(op);
	if (release->fetch_from || !release->closed_any ||
		op_votes(core, op, VOTE_BIT(VOTE_NEED)) == 0) {
		return;
	}
	struct message m = op_message(op, MESSAGE_FETCH);
	m.lock_id = record_closing_id(op->lock_id);
	for (uint32_t i = 0; release_closes(core, op) > 0 && i < core->masters; i++) {
		if (op->votes[i].state == VOTE_OK && peer_reachable(core, i)) {
			release->fetch_from = (uint8_t)(i + 1);
			out_send(core, i, &m);
			return;
		}
	}
	give_up_closing(core, op);
}

/* What a master says counts: OK: it has released the lock, and keeps the key closed if that was
 * asked for; NEED: it lacks what keeps the key closed; HELD: it cannot have that. */
static void vote(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct release_state *release = op_release(op);
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_FETCH_ANSWER) {
		if (release->fetch_from != from + 1) {
			return;
		}
		release->fetch_from = 0;
		if (m->status == STATUS_OK) {
			send_closing(core, op, m);
		} else {
			v->state = VOTE_HELD;
		}
	} else if (m->kind == MESSAGE_LEARN_ANSWER) {
		/* A record that is barred is here already, and keeps its end. */
		v->state = m->status == STATUS_OK || m->status == STATUS_BARRED ? VOTE_OK
			: m->status == STATUS_RECOVERING || m->status == STATUS_EPOCH ? VOTE_GONE
			: VOTE_HELD;
	} else {
		const bool closes = release_closes(core, op) > 0;
		release->closed_any = release->closed_any || (m->flags & FLAG_CLOSED);
		v->state = m->status != STATUS_OK ? VOTE_GONE
			: closes && !(m->flags & FLAG_CLOSED) ? VOTE_NEED
			: VOTE_OK;
	}
	close_elsewhere(core, op);
}

/* ---- judging ---- */

static void answer_callers(struct core *core, struct op *op, bool done, uint32_t acks) {
	const struct release_state *release = op_release(op);
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link),
			done ? PAWL_OK : PAWL_ENOQUORUM);
		r->released = release->had_any && (release->closes == 0 || release->closed_any);
		r->acks = acks;
	}
}

/* Judges a release, or the second round of a transfer. */
void release_evaluate(struct core *core, struct op *op, bool over) {
	const struct release_state *release = op_release(op);
	/* Where no master closes the key, q masters lacked the lock. */
	const bool closes = release->closes > 0 && release->closed_any;
	const uint32_t lacks = VOTE_BIT(VOTE_NEED) | VOTE_BIT(VOTE_LEARNING);
	const uint32_t counts = VOTE_BIT(VOTE_OK) | (closes ? 0 : lacks | VOTE_BIT(VOTE_HELD));
	uint32_t acks = op_votes(core, op, counts);
	bool done = acks >= core->quorum;
	if (!done && !over && acks + op_votes(core, op, VOTE_BIT(VOTE_ASKED) |
		(closes ? lacks : 0)) >= core->quorum) {
		return;
	}
	answer_callers(core, op, done, acks);
	if (!closes) {
		give_up_closing(core, op);
	}
	/* What is sent again is a release, even where a successor was named. By then the successor
	 * has other means. */
	op->kind = CORE_RELEASE;
	catch_up_begin(core, op);
}

void release_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct release_state *release = op_release(op);
	if (release->closes > 0 && op_late(core, op)) {
		COUNT(core, answer_late);
		release_evaluate(core, op, true);
		return;
	}
	if (m->kind == MESSAGE_RELEASE_ANSWER) {
		release->had_any = release->had_any || (m->flags & FLAG_HAD) ||
			op_had_when_asked(core, op, m);
	}
	vote(core, op, from, m);
	release_evaluate(core, op, false);
}

static void release_late_answer(struct core *core, struct op *op, uint32_t from,
	const struct message *m) {
	vote(core, op, from, m);
}

static bool release_link_lost(struct core *core, struct op *op, uint32_t peer, bool closed) {
	(void)closed;
	if (op_release(op)->fetch_from == peer + 1) {
		op_release(op)->fetch_from = 0;
		close_elsewhere(core, op);
	}
	return true;
}

/* The operation has told masters to end the lock. A master that has ended it, and whose answer was
 * not heard, lacks the lock when it is asked again. */
static bool release_epoch(struct core *core, struct op *op) {
	(void)core;
	op_release(op)->had_any = true;
	return true;
}

/* A release that expects a value begins as an update, which writes the last value (section 2,
 * Compare and release). */
static bool release_make(struct core *core, struct op *op, const struct core_request *r) {
	const bool expects = r->expect_value || r->expect_seq;
	op->kind = expects ? CORE_UPDATE : CORE_RELEASE;
	if (expects) {
		return update_make(core, op, r);
	}
	op_release(op)->closes = r->closes;
	return true;
}

const struct operation release_operation = { .needs_lock_id = true, .of_holder = true,
	.make = release_make, .start = release_start, .answer = release_answer,
	.evaluate = release_evaluate, .epoch = release_epoch, .link_lost = release_link_lost,
	.catch_up = catch_up_send_again, .late_answer = release_late_answer };
