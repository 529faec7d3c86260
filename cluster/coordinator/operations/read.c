/* read.c: quorum reads: all masters are asked for their records of a key (section 3). */
#include "operation.h"
#include "operations.h"

#define ANSWERED VOTE_BIT(VOTE_OK)

void read_start(struct core *core, struct op *op) {
	report_begin(core, op);
	op_read(op)->contested_seen = false;
	report_ask_all(core, op, op_reports(op)->reporting);
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	read_evaluate(core, op, false);
}

/* The read begins again as one of those that may ask for more. */
static void widen(struct core *core, struct op *op) {
	if (report_may_begin(core, op)) {
		read_start(core, op);
	}
}

struct verdict {
	/* Lists the holders that q masters report. Each is the report with the highest ballot among
	 * those that count. */
	struct record *holders;
	bool free, undetermined;

	/* A lock_id that fewer than q masters report, or that none reports, may be held, too, if
	 * masters that are silent have it. A master counts as silent if there was no memory for a
	 * part of its report. */
	bool others;
};

/* Returns for how long q masters have the lock_id by their own word, from the moment at which they
 * were asked: the q-th latest end of its lease, less the drift (section 3, What a reader may count
 * on). */
static span_ns certain(const struct core *core, const struct op *op, const struct report_walk *w) {
	span_ns longest[MASTERS_MAX];
	uint32_t n = 0;
	for (uint32_t told = w->told; told; told &= told - 1) {
		const struct record *r =
			op_reports(op)->replies[w->next[__builtin_ctz(told)]].record;
		const span_ns left = r->left - record_delay(r);
		uint32_t at = n++;
		for (; at > 0 && longest[at - 1] < left; at--) {
			longest[at] = longest[at - 1];
		}
		longest[at] = left;
	}
	const span_ns least = longest[core->quorum - 1];
	return least > 0 ? span_shrink(least, core->config.drift_ppm) : 0;
}

/* Weighs all reports of one lock_id. */
static void weigh_one(const struct core *core, struct op *op, const struct report_walk *w,
	uint32_t silent, struct verdict *v) {
	const struct master_reply *replies = op_reports(op)->replies;
	uint32_t counting = 0, ordered = 0;
	struct record *best = NULL;
	struct terms terms = record_terms(replies[w->next[__builtin_ctz(w->told)]].record);
	/* The record was live where it was reported. */
	struct instant end = instant_add(core->now, 1);
	for (uint32_t left = w->told; left; left &= left - 1) {
		const struct master_reply *f = &replies[w->next[__builtin_ctz(left)]];
		counting |= f->counts ? 1u << f->from : 0;
		const struct terms reported = record_terms(f->record);
		terms = terms_both(&terms, &reported);
		/* Some masters may have missed an extension. */
		end = instant_later(end, f->record->end);
		best = f->counts && report_better(core, f->record, best) ? f->record : best;
	}
	for (uint32_t left = w->told; left; left &= left - 1) {
		ordered += record_binding(replies[w->next[__builtin_ctz(left)]].record) ==
			terms.binding;
	}
	uint32_t n = (uint32_t)__builtin_popcount(w->told);
	v->free = v->free && n + silent < core->quorum;
	v->others = v->others || (n < core->quorum && n + silent >= core->quorum);
	if (n >= core->quorum && (uint32_t)__builtin_popcount(counting) < core->quorum) {
		v->undetermined = true;
	} else if (n >= core->quorum) {
		record_put_terms(best, &terms);
		best->end = end;
		best->left = certain(core, op, w);
		best->noted = terms.binding;
		best->uneven = ordered < core->quorum;
		best->next = v->holders;
		v->holders = best;
	}
}

static struct verdict weigh(const struct core *core, struct op *op, uint32_t silent) {
	/* The key is free only if q masters say so. */
	const bool answered = core->masters - silent >= core->quorum;
	struct verdict v = { NULL, answered, false, !answered };
	struct report_walk w = report_walk_begin(core, op);
	while (report_walk_on(core, op, &w)) {
		weigh_one(core, op, &w, silent, &v);
	}
	const struct key holders = { .held = v.holders };
	bool held = false;
	for (const struct record *r = v.holders; r; r = r->next) {
		held = held || !record_closing(r, core->now);
	}
	/* Each of two records that exclude one another is reported by q masters. */
	v.undetermined = v.undetermined || key_contested(&holders);
	/* The key may be contested, and the other record may be the one that is trusted. */
	v.undetermined = v.undetermined || (v.holders && !held && v.others);
	return v;
}

static void undetermined(struct core *core, struct op *op, uint32_t silent) {
	struct read_state *read = op_read(op);
	if (!read->again) {
		COUNT(core, read_again);
		read->again = true;
		read_start(core, op);
		return;
	}
	COUNT(core, read_indeterminate);
	op_reply_all(core, op,
		core->masters - silent < core->quorum ? PAWL_ENOQUORUM : PAWL_EINDETERMINATE);
	op_free(core, op);
}

/* Counts the values that were shown for what one turn of the loop may show. */
static void count_shown(struct core *core, const struct shown *shown) {
	pieces_take(&turn_pieces(core)->shown, entry_value_bytes(shown));
}

static void show(struct core *core, struct op *op, const struct key *key) {
	struct list *n;
	COUNT(core, read_quorum);
	while ((n = list_first(&op->callers)) != NULL) {
		struct shown shown;
		struct core_reply *reply = entry_answer(core,
			CONTAINER_OF(n, struct caller, link), op, key, PAWL_OK, &shown);
		if (reply->error == PAWL_OK) {
			count_shown(core, &shown);
		}
		reply->cost += report_cost(op);
	}
	op_free(core, op);
}

/* The answers to many reads may come in one step. Each turn of the loop shows some of what they
 * found. No later answer changes what was found. */
static void show_later(struct core *core, struct op *op) {
	COUNT(core, read_put_off);
	report_close(core, op);
	timer_stop(core, &op->timer);
	op->state = OP_SHOWING;
	list_append(&core->coordinator.showing, &op->waiting);
	pending_add(core, PENDING_SHOWING);
}

void read_show_go_on(struct core *core) {
	struct list *n;
	while (turn_pieces(core)->shown > 0 &&
		(n = list_first(&core->coordinator.showing)) != NULL) {
		struct op *op = CONTAINER_OF(n, struct op, waiting);
		list_remove(n);
		op->state = OP_ROUND;
		read_evaluate(core, op, true);
	}
	pending_left(core, PENDING_SHOWING, !list_empty(&core->coordinator.showing));
}

static void answer_holders(struct core *core, struct op *op, struct record *holders,
	uint32_t silent) {
	const struct key key = { .held = holders };
	const struct record *lacks = entry_lacks(core, op, &key);
	/* Few values are fetched at one time. */
	if (lacks && !report_may_begin(core, op)) {
		return;
	}
	if (lacks && report_fetch(core, op, lacks)) {
		return;
	}
	if (lacks) {
		undetermined(core, op, silent);
		return;
	}
	if (holders && turn_pieces(core)->shown == 0) {
		show_later(core, op);
	} else {
		show(core, op, &key);
	}
}

void read_evaluate(struct core *core, struct op *op, bool over) {
	struct read_state *read = op_read(op);
	uint32_t answered = op_votes(core, op, ANSWERED), silent = core->masters - answered;
	bool open = !over && op_votes(core, op, VOTE_BIT(VOTE_ASKED) | VOTE_BIT(VOTE_LEARNING)) > 0;
	if (op->state == OP_WEIGHING || (op->state == OP_SECOND && open)) {
		return;
	}
	/* The master has not answered the fetch. */
	if (op->state == OP_SECOND && over) {
		undetermined(core, op, silent);
		return;
	}
	/* A master that has not answered yet may decide it. */
	if (open && read->contested_seen) {
		return;
	}
	if (!open && report_weigh_later(core, op)) {
		return;
	}
	struct verdict v = weigh(core, op, silent);
	if (open && v.undetermined) {
		return;
	}
	/* The key seems free although a master reported a record. While the answers came, an
	 * extension may have moved the lease to other masters. */
	bool doubtful = v.free && op_reports(op)->replies_count > 0 && !read->again;
	if (v.holders && !v.undetermined) {
		answer_holders(core, op, v.holders, silent);
	} else if (v.free && !doubtful) {
		answer_holders(core, op, NULL, silent);
	} else if (!open || doubtful) {
		undetermined(core, op, silent);
	}
}

void read_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct read_state *read = op_read(op);
	struct vote *v = &op->votes[from];
	if (m->kind == MESSAGE_FETCH_ANSWER && op->state == OP_SECOND &&
		v->state == VOTE_LEARNING) {
		if (!report_fetched(core, op, from, m)) {
			undetermined(core, op, core->masters - op_votes(core, op, ANSWERED));
			return;
		}
		v->state = VOTE_OK;
		read_evaluate(core, op, false);
		return;
	}
	if (m->kind != MESSAGE_READ_ANSWER || op->state != OP_ROUND || v->state != VOTE_ASKED) {
		return;
	}
	/* A report of several parts says that the key is contested or has several holders. A master
	 * that has not answered yet may know more. */
	read->contested_seen = read->contested_seen || m->parts > 1;
	if ((m->flags & FLAG_REST) && !op_reports(op)->reporting) {
		widen(core, op);
		return;
	}
	report_part(core, op, from, m);
	if (v->state != VOTE_ASKED) {
		read_evaluate(core, op, false);
	}
}

static bool read_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_read(op)->quorum = r->quorum;
	return true;
}

/* Only a quorum read asks the masters. */
static void read_begin(struct core *core, struct op *op) {
	if (op_read(op)->quorum) {
		restart_begin(core, op);
	} else {
		local_get(core, op);
	}
}

const struct operation read_operation = { .begin = read_begin, .make = read_make,
	.start = read_start,
	.answer = read_answer, .evaluate = read_evaluate, .forget = report_forget,
	.clear = op_replies_clear, .release = reports_free };
