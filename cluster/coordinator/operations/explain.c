/* explain.c: what each master reports of a key: its records, its promise, the requests that it has
 * parked, and how many requests wait. An explanation decides nothing, so a master that has not
 * answered in time is shown as silent. */
#include "operation.h"
#include "operations.h"

void explain_start(struct core *core, struct op *op) {
	if (!report_may_begin(core, op)) {
		return;
	}
	COUNT(core, explained);
	report_begin(core, op);
	struct message m = op_message(op, MESSAGE_READ);
	m.flags = FLAG_EXPLAIN;
	op_ask_all(core, op, &m);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	explain_evaluate(core, op, false);
}

/* A value is no longer where it was reported, or nobody can tell whether the key is held. The
 * explanation begins again, once. */
static void begin_again(struct core *core, struct op *op) {
	struct read_state *read = op_read(op);
	if (!read->again) {
		read->again = true;
		explain_start(core, op);
		return;
	}
	op_reply_all(core, op, PAWL_EINDETERMINATE);
	op_free(core, op);
}

void explain_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct reports *reports = op_reports(op);
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_FETCH_ANSWER && op->state == OP_SECOND &&
		v->state == VOTE_LEARNING) {
		v->state = VOTE_OK;
		if (report_fetched(core, op, from, m)) {
			explain_evaluate(core, op, false);
		} else {
			begin_again(core, op);
		}
		return;
	}
	if (m->kind != MESSAGE_READ_ANSWER || op->state != OP_ROUND || v->state != VOTE_ASKED) {
		return;
	}
	v->status = m->status == STATUS_ABSENT ? STATUS_OK : m->status;
	v->token = m->number;
	/* Parts come in order, and each counts once. */
	if (m->status == STATUS_OK && m->part == reports->parts_seen[from]) {
		reports->parts_seen[from]++;
		struct record *kept = op_reply_add(core, op, from, m);
		if (kept) {
			kept->value_left_out = (m->flags & FLAG_SAME) != 0;
		}
		v->state = !kept ? VOTE_GONE : m->part + 1 == m->parts ? VOTE_OK : VOTE_ASKED;
	} else if (m->status != STATUS_OK) {
		v->state = m->status == STATUS_ABSENT ? VOTE_OK : VOTE_GONE;
	}
	if (v->state != VOTE_ASKED) {
		explain_evaluate(core, op, false);
	}
}

static bool reported_of(struct core *core, const struct op *op, const struct caller *c,
	const struct master_reply *f, struct core_reported *item) {
	const struct record *r = f->record;
	*item = (struct core_reported){ .kind = f->flags & FLAG_PROMISE ? REPORTED_PROMISE
		: f->flags & FLAG_PARKED ? REPORTED_PARKED
		: REPORTED_RECORD };
	if (item->kind == REPORTED_RECORD) {
		item->barred = (f->flags & FLAG_BARRED) != 0;
		return local_entry(core, c, op->identity, op->key, r, &item->entry);
	}
	item->entry = (struct core_entry){ .lock_id = r->lock_id, .show_lock_id = c->admin,
		.terms = record_terms(r) };
	if (item->kind == REPORTED_PROMISE) {
		item->entry.remaining = instant_left_long(core->now, r->end);
	}
	return true;
}

static bool report_of(struct core *core, const struct op *op, const struct caller *c,
	uint32_t index, struct core_report *report) {
	const struct reports *reports = op_reports(op);
	const struct vote *v = &op->votes[index];
	bool answered = v->state == VOTE_OK || (v->state == VOTE_GONE && v->status != STATUS_OK);
	*report = (struct core_report){ .peer = index,
		.status = answered ? v->status : STATUS_ABSENT,
		.home = attempt_home(core, op->key) == (int)index };
	report->waiting = v->state == VOTE_OK && report->home ? (uint32_t)v->token : 0;
	uint32_t count = 0;
	for (uint32_t i = 0; i < reports->replies_count; i++) {
		count += reports->replies[i].from == index;
		report->more = report->more ||
			(reports->replies[i].from == index &&
				(reports->replies[i].flags & FLAG_REST) != 0);
	}
	report->more = report->more && v->state == VOTE_OK;
	if (v->state != VOTE_OK || count == 0) {
		return true;
	}
	struct core_reported *items = out_room(core, count * sizeof *items);
	for (uint32_t i = 0; items && i < reports->replies_count; i++) {
		if (reports->replies[i].from == index &&
			!reported_of(core, op, c, &reports->replies[i], &items[report->count++])) {
			return false;
		}
	}
	report->items = items;
	return items != NULL;
}

/* Returns the report with the highest ballot, and gives it the latest end of all reports. */
static struct record *best_of(const struct core *core, const struct op *op,
	const struct report_walk *w) {
	struct record *best = NULL;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (w->told >> i & 1) {
			struct record *r = op_reports(op)->replies[w->next[i]].record;
			const struct instant end = best ? instant_later(best->end, r->end) : r->end;
			best = report_better(core, r, best) ? r : best;
			best->end = end;
		}
	}
	return best;
}

/* Returns the records that q masters report and that have not ended since, in a list, as a quorum
 * read would show them. */
static struct record *holders(const struct core *core, const struct op *op) {
	struct record *list = NULL;
	struct report_walk w = report_walk_begin(core, op);
	while (report_walk_on(core, op, &w)) {
		struct record *best = best_of(core, op, &w);
		if ((uint32_t)__builtin_popcount(w.told) >= core->quorum &&
			!instant_expired(core->now, best->end)) {
			best->next = list;
			list = best;
		}
	}
	return list;
}

/* Tells whether there may be a holder that fewer than q masters have told. That takes q masters
 * that have told it, or have left out what comes at its lock_id. */
static bool may_have_more(const struct core *core, const struct op *op) {
	struct report_walk w = report_walk_begin(core, op);
	bool may = false;
	while (!may && report_walk_on(core, op, &w)) {
		may = (uint32_t)__builtin_popcount(w.told) < core->quorum &&
			(uint32_t)__builtin_popcount(w.told | w.cut) >= core->quorum;
	}
	return may || (uint32_t)__builtin_popcount(w.cut) >= core->quorum;
}

static void reply_to(struct core *core, struct op *op, struct caller *c, const struct key *key,
	bool more) {
	struct core_report *list = out_room(core, core->masters * sizeof *list);
	struct shown shown;
	bool copied = list != NULL && entry_show(core, c, op, key, &shown);
	for (uint32_t i = 0; copied && i < core->masters; i++) {
		copied = report_of(core, op, c, i, &list[i]);
	}
	struct core_reply *r = op_reply(core, c, copied ? PAWL_OK : PAWL_EBUSY);
	if (copied) {
		r->reports = list;
		r->count = core->masters;
		entry_reply(r, &shown);
		r->more = r->more || more;
	}
	r->cost += report_cost(op);
}

void explain_evaluate(struct core *core, struct op *op, bool over) {
	if (op->state == OP_WEIGHING ||
		(!over && op_votes(core, op, VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_LEARNING)) > 0)) {
		return;
	}
	if (report_weigh_later(core, op)) {
		return;
	}
	const struct key key = { .held = holders(core, op) };
	const struct record *lacks = entry_lacks(core, op, &key);
	const bool more = may_have_more(core, op);
	uint32_t hold;
	entry_shown(&key, core->now, &hold);
	if (lacks && !(over && op->state == OP_SECOND) && report_fetch(core, op, lacks)) {
		return;
	}
	struct list *n;
	/* That no master told of a holder does not make the key free. */
	if (lacks || (more && hold == 0)) {
		begin_again(core, op);
		return;
	}
	while ((n = list_first(&op->callers)) != NULL) {
		reply_to(core, op, CONTAINER_OF(n, struct caller, link), &key, more);
	}
	op_free(core, op);
}

const struct operation explain_operation = { .start = explain_start, .answer = explain_answer,
	.evaluate = explain_evaluate, .forget = report_forget, .clear = op_replies_clear,
	.release = reports_free };
