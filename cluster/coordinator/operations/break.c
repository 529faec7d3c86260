/* break.c: an administrator bars a holder from extending, or takes the lock away by force
 * (section 9). First the masters are asked which lock_id stands behind the key and token; then the
 * break is sent like a release. */
#include "operation.h"
#include "operations.h"

void break_start(struct core *core, struct op *op) {
	report_begin(core, op);
	report_ask_all(core, op, true);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	break_evaluate(core, op, false);
}

/* Returns the record of the lock_id that was named by its token, or without a token the one that
 * most masters report. *several: q masters report each of two, which hold the key together, so that
 * only a token can say which of them is meant. */
static const struct record *choose(const struct core *core, struct op *op, bool *several) {
	struct reports *reports = op_reports(op);
	struct break_state *breaking = op_break(op);
	const struct record *best = NULL;
	uint32_t most = 0;
	*several = false;
	op_replies_sort(op);
	for (uint32_t first = 0, i = 0; first < reports->replies_count; first = i) {
		bool named = breaking->token == 0;
		for (; i < reports->replies_count &&
			id128_equal(reports->replies[i].record->lock_id,
				reports->replies[first].record->lock_id); i++) {
			named = named || reports->replies[i].record->token == breaking->token;
		}
		*several = *several || (named && most >= core->quorum && i - first >= core->quorum);
		if (named && i - first > most) {
			most = i - first;
			best = reports->replies[first].record;
		}
	}
	return best;
}

static void answer_all(struct core *core, struct op *op, int error) {
	struct break_state *breaking = op_break(op);
	uint32_t acks = op_votes(core, op, VOTE_BIT(VOTE_OK));
	struct list *n;
	while ((n = list_first(&op->callers)) != NULL) {
		struct core_reply *r = op_reply(core, CONTAINER_OF(n, struct caller, link), error);
		memset(r->lock_id.b, 0, sizeof r->lock_id.b);
		r->released = breaking->had_any;
		r->forced = breaking->now;
		r->acks = acks;
		r->token = breaking->best_token;
		r->field = error == PAWL_EBADREQUEST ? "token" : NULL;
		r->entry.remaining = instant_left_long(core->now, op->until);
	}
}

static void send_break(struct core *core, struct op *op, const struct record *r) {
	struct reports *reports = op_reports(op);
	struct break_state *breaking = op_break(op);
	op->lock_id = r->lock_id;
	breaking->best_token = r->token;
	op->until = instant_add(core->now, SPAN_MS);
	/* The break is kept until the record ends. */
	for (uint32_t i = 0; i < reports->replies_count; i++) {
		if (id128_equal(reports->replies[i].record->lock_id, op->lock_id)) {
			op->until = instant_later(op->until, reports->replies[i].record->end);
		}
	}
	out_note(core, NOTE_BROKEN, core->self, r->token,
		breaking->now ? "now" : "barred from extending", op->key);
	op_replies_clear(core, op);
	op->state = OP_SECOND;
	op_next_round(core, op);
	if (breaking->now) {
		granted_drop(core, op->key_hash, op->lock_id);
		op_lock_released(core, op->key, op->lock_id, true);
	}
	struct message m = op_message(op, MESSAGE_BREAK);
	m.flags = breaking->now ? FLAG_NOW : 0;
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
}

void break_evaluate(struct core *core, struct op *op, bool over) {
	struct break_state *breaking = op_break(op);
	uint32_t acks = op_votes(core, op, VOTE_BIT(VOTE_OK)),
		open = op_votes(core, op, VOTE_BIT(VOTE_ASKED));
	if (op->state == OP_SECOND) {
		if (acks >= core->quorum || over || acks + open < core->quorum) {
			answer_all(core, op, acks >= core->quorum ? PAWL_OK : PAWL_ENOQUORUM);
			catch_up_begin(core, op);
		}
		return;
	}
	if (open > 0 && !over) {
		return;
	}
	bool several;
	const struct record *r = choose(core, op, &several);
	if (acks >= core->quorum && several) {
		breaking->best_token = breaking->token;
		answer_all(core, op, PAWL_EBADREQUEST);
		op_free(core, op);
	} else if (acks < core->quorum || r == NULL) {
		breaking->best_token = breaking->token;
		answer_all(core, op, acks < core->quorum ? PAWL_ENOQUORUM
			: breaking->had_any ? PAWL_OK
			: PAWL_ENOTFOUND);
		op_free(core, op);
	} else {
		send_break(core, op, r);
	}
}

void break_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct break_state *breaking = op_break(op);
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_READ_ANSWER && op->state == OP_ROUND && v->state == VOTE_ASKED) {
		report_part(core, op, from, m);
	} else if (m->kind == MESSAGE_BREAK_ANSWER && op->state == OP_SECOND) {
		breaking->had_any = breaking->had_any || (m->flags & FLAG_HAD);
		v->state = m->status == STATUS_OK ? VOTE_OK : VOTE_GONE;
	}
	break_evaluate(core, op, false);
}

/* In its second round the operation has told masters to end the lock. It goes on with the lock that
 * it found, not with the one that may have the key by now. */
static bool break_epoch(struct core *core, struct op *op) {
	struct break_state *breaking = op_break(op);
	(void)core;
	if (op->state == OP_SECOND) {
		breaking->had_any = true;
		breaking->token = breaking->best_token;
	}
	return true;
}

static bool break_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_break(op)->now = r->now;
	op_break(op)->token = r->token;
	return true;
}

const struct operation break_operation = { .of_holder = true,
	.make = break_make, .start = break_start,
	.answer = break_answer, .evaluate = break_evaluate, .epoch = break_epoch,
	.clear = op_replies_clear, .catch_up = catch_up_send_again, .release = reports_free };
