/* reports.c: how a coordinator asks masters what they report of a key's records, one piece after
 * the other (section 3, Reports). Of the operations that ask for more than the first piece only a
 * few are under way; the others stand in line. */
#include "coordinator.h"

/* At most this many operations in line begin in one step. */
#define REPORTS_A_STEP 4

static void ask(struct core *core, struct op *op, uint32_t index, struct id128 after, bool rest) {
	struct message m = op_message(op, MESSAGE_READ);
	m.flags = rest ? FLAG_REST : 0;
	m.number = op_reports(op)->parts_seen[index];
	m.lock_id = after;
	op_ask(core, op, index, &m);
}

void report_ask_all(struct core *core, struct op *op, bool rest) {
	const struct id128 none = { { 0 } };
	for (uint32_t i = 0; i < core->masters; i++) {
		ask(core, op, i, none, rest);
	}
}

/* Takes one part of a master's report. Parts come in order, and each counts once. A part that does
 * not belong to what was asked for last is late, or came twice. */
void report_part(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct reports *reports = op_reports(op);
	struct vote *v = &op->votes[from];
	/* The master has nothing, or nothing more. */
	if (m->status == STATUS_ABSENT) {
		v->state = m->number == reports->parts_seen[from] ? VOTE_OK : v->state;
	} else if (m->status != STATUS_OK) {
		/* The master does not vote in this epoch, or has too much to say. It counts as
		 * silent. */
		v->state = VOTE_GONE;
	} else if (m->part == reports->parts_seen[from]) {
		reports->parts_seen[from]++;
		struct record *r = op_reply_add(core, op, from, m);
		if (r == NULL) {
			v->state = VOTE_GONE;
			return;
		}
		r->value_left_out = (m->flags & FLAG_SAME) != 0;
		if (m->flags & FLAG_REST) {
			op->sent = core->now;
			ask(core, op, from, m->lock_id, true);
			timer_at(core, &op->timer, TIMER_OP,
				instant_add(core->now, core->config.request_timeout));
		} else if (m->part + 1 == m->parts) {
			v->state = VOTE_OK;
		}
	}
}

void report_close(const struct core *core, struct op *op) {
	for (uint32_t i = 0; i < core->masters; i++) {
		struct vote *v = &op->votes[i];
		v->state = vote_open(v) ? VOTE_GONE : v->state;
	}
}

/* Fetches the value of a record that is to be shown, from the master that reported its newest
 * write. False: no master can be asked. */
bool report_fetch(struct core *core, struct op *op, const struct record *lacks) {
	struct reports *reports = op_reports(op);
	uint32_t at = 0;
	while (at < reports->replies_count && reports->replies[at].record != lacks) {
		at++;
	}
	const uint32_t from = at < reports->replies_count ? reports->replies[at].from : 0;
	if (at == reports->replies_count || !peer_reachable(core, from)) {
		return false;
	}
	op->state = OP_SECOND;
	reports->fetching = lacks->lock_id;
	op->sent = core->now;
	report_close(core, op);
	op->round = (op->id << 16) | ((op->round + 1) & 0xffff);
	struct message m = op_message(op, MESSAGE_FETCH);
	m.lock_id = lacks->lock_id;
	op_ask(core, op, from, &m);
	op->votes[from].state = VOTE_LEARNING;
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	return true;
}

/* False: the record is not there any more, or its value is older than what was reported. */
bool report_fetched(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct reports *reports = op_reports(op);
	for (uint32_t i = 0; i < reports->replies_count; i++) {
		struct master_reply *f = &reports->replies[i];
		/* A promise may have the same lock_id. */
		if (f->from == from && f->record->value_left_out &&
			id128_equal(f->record->lock_id, reports->fetching)) {
			if (m->status != STATUS_OK ||
				ballot_compare(m->ballot, f->record->wrote) < 0 ||
				!record_set_value(core, &f->record, m->value)) {
				return false;
			}
			f->record->wrote = m->ballot;
			f->record->value_left_out = false;
			return true;
		}
	}
	return false;
}

bool report_may_begin(struct core *core, struct op *op) {
	struct reports *reports = op_reports(op);
	if (reports->reporting) {
		return true;
	}
	if (core->coordinator.reporting < core->limits.reports) {
		core->coordinator.reporting++;
		reports->reporting = true;
		return true;
	}
	COUNT(core, report_waited);
	op_replies_clear(core, op);
	/* This makes answers that are still to come late. */
	op_next_round(core, op);
	timer_stop(core, &op->timer);
	op->state = OP_IN_LINE;
	list_append(&core->coordinator.in_line, &op->waiting);
	return false;
}

void reports_free(struct core *core, struct op *op) {
	op_replies_clear(core, op);
	core->coordinator.reporting -= op_reports(op)->reporting;
}

bool report_due(const struct core *core) {
	return !list_empty(&core->coordinator.in_line) &&
		core->coordinator.reporting < core->limits.reports;
}

/* Begins an operation that stands in line. False: none may begin, or enough of them have in this
 * step. */
bool report_run(struct core *core) {
	struct list *n = list_first(&core->coordinator.in_line);
	if (n == NULL || core->coordinator.reporting >= core->limits.reports ||
		core->coordinator.reports_begun >= REPORTS_A_STEP) {
		return false;
	}
	core->coordinator.reports_begun++;
	struct op *op = CONTAINER_OF(n, struct op, waiting);
	list_remove(n);
	core->coordinator.reporting++;
	op_reports(op)->reporting = true;
	restart_begin(core, op);
	return true;
}
