/* report.c: what masters report of a key's records, for quorum reads and breaks (section 3, Reports): a little at once, so that one holder needs
 * no second question, and the rest in pieces that are asked for. Values are left out where there are several, and are
 * fetched from the master that has the newest. Of operations that ask for more than a little, only a few are under way; the others stand in line.
 * So what an ordinary client may ask for fills neither a link nor a coordinator's memory. */
#include "state.h"

#define REPORTS_A_STEP 4 /* of those in line, that begin in one step */

/* ---- a master's side ---- */

static int by_lock_id(const struct record *a, struct id128 b) {
	return memcmp(a->lock_id.b, b.b, sizeof b.b);
}

/* The first of the key's records in the order of their lock_ids, from the one after the cursor on. *left: how many there are from there. */
uint32_t report_pick(const struct key *key, const struct message *m, uint32_t most, const struct record *piece[REPORT_PIECE_MAX], uint32_t *left) {
	uint32_t count = 0;
	*left = 0;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		if (m->number > 0 && by_lock_id(r, m->lock_id) <= 0) {
			continue;
		}
		(*left)++;
		uint32_t at = count;
		while (at > 0 && by_lock_id(piece[at - 1], r->lock_id) > 0) {
			at--;
		}
		if (at == most) {
			continue;
		}
		count -= count == most;
		memmove(&piece[at + 1], &piece[at], (count - at) * sizeof *piece);
		piece[at] = r;
		count++;
	}
	return count;
}

bool report_value_left_out(const struct core *core, const struct record *r, bool alone, enum out_backlog backlog) {
	return r->value_size > core->limits.report_value && (!alone || backlog != BACKLOG_SMALL);
}

/* A contested master reports all its records. */
void master_read(struct core *core, uint32_t from, const struct message *m) {
	const enum out_backlog backlog = out_backlog(core, from);
	const bool rest = (m->flags & FLAG_REST) != 0;
	struct message answer = { .kind = MESSAGE_READ_ANSWER, .round = m->round, .status = rule_votes(core), .number = m->number };
	struct key *key = table_find(core, m->key);
	const struct record *piece[REPORT_PIECE_MAX]; /* limits.report_first and report_piece are not above it */
	uint32_t left, count = report_pick(key, m, rest ? core->limits.report_piece : backlog == BACKLOG_SMALL ? core->limits.report_first : 1, piece, &left);
	if (answer.status == STATUS_OK && backlog == BACKLOG_LARGE) {
		answer.status = STATUS_FULL;
	}
	if (answer.status != STATUS_OK || left == 0) {
		answer.status = answer.status == STATUS_OK ? STATUS_ABSENT : answer.status;
		out_send(core, from, &answer);
		return;
	}
	const uint32_t before = m->number < UINT32_MAX / 2 ? (uint32_t)m->number : 0;
	for (uint32_t i = 0; i < count; i++) {
		answer.part = before + i;
		answer.parts = before + left;
		answer.flags = rule_value_counts(piece[i]) ? FLAG_COUNTS : 0;
		record_describe(core, piece[i], &answer);
		if (report_value_left_out(core, piece[i], before + left == 1, rest ? BACKLOG_SMALL : backlog)) {
			answer.value = slice_of(NULL, 0);
			answer.flags |= FLAG_SAME;
		}
		answer.flags |= i + 1 == count && count < left ? FLAG_REST : 0;
		out_send(core, from, &answer);
	}
}

/* ---- the coordinator's: a piece after the other ---- */

static void ask(struct core *core, struct op *op, uint32_t slot, struct id128 after, bool rest) {
	struct message m = op_message(op, MESSAGE_READ);
	m.flags = rest ? FLAG_REST : 0;
	m.number = op->parts_seen[slot];
	m.lock_id = after;
	op_ask(core, op, slot, &m);
}

void report_ask_all(struct core *core, struct op *op, bool rest) {
	const struct id128 none = { { 0 } };
	for (uint32_t i = 0; i < core->masters; i++) {
		ask(core, op, i, none, rest);
	}
}

/* Parts come in order, each counts once; what is no part of what was asked for last is late, or came twice. */
void report_part(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	if (m->status == STATUS_ABSENT) { /* nothing, or nothing more */
		v->state = m->number == op->parts_seen[from] ? VOTE_OK : v->state;
	} else if (m->status != STATUS_OK) {
		v->state = VOTE_GONE; /* does not vote in this epoch, or has too much to say: silent */
	} else if (m->part == op->parts_seen[from]) {
		op->parts_seen[from]++;
		struct record *r = op_found(core, op, from, m);
		if (r == NULL) {
			v->state = VOTE_GONE;
			return;
		}
		r->uneven = (m->flags & FLAG_SAME) != 0;
		if (m->flags & FLAG_REST) {
			op->sent = core->now;
			ask(core, op, from, m->lock_id, true);
			timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
		} else if (m->part + 1 == m->parts) {
			v->state = VOTE_OK;
		}
	}
}

/* ---- values that were left out ---- */

/* Asks for the value of one that is to be shown where its newest write was reported. False: nobody can be asked. */
bool report_fetch(struct core *core, struct op *op, const struct record *lacks) {
	uint32_t at = 0;
	while (at < op->found_count && op->found[at].record != lacks) {
		at++;
	}
	const uint32_t from = at < op->found_count ? op->found[at].from : 0;
	if (at == op->found_count || !peer_reachable(core, from)) {
		return false;
	}
	op->state = OP_SECOND;
	op->fetching = lacks->lock_id;
	op->sent = core->now;
	op->round = (op->id << 16) | ((op->round + 1) & 0xffff); /* the votes stay */
	struct message m = op_message(op, MESSAGE_FETCH);
	m.lock_id = lacks->lock_id;
	op_ask(core, op, from, &m);
	op->votes[from].state = VOTE_LEARNING;
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	return true;
}

/* False: it is not there any more, or not as it was reported. */
bool report_fetched(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	for (uint32_t i = 0; i < op->found_count; i++) {
		struct found *f = &op->found[i];
		if (f->from == from && f->record->uneven && id128_equal(f->record->lock_id, op->fetching)) { /* a promise may have its lock_id, too */
			if (m->status != STATUS_OK || ballot_compare(m->ballot, f->record->wrote) < 0 || !record_set_value(core, &f->record, m->value)) {
				return false;
			}
			f->record->wrote = m->ballot;
			f->record->uneven = false;
			return true;
		}
	}
	return false;
}

/* ---- in line ---- */

bool report_may_begin(struct core *core, struct op *op) {
	if (op->reporting) {
		return true;
	}
	if (core->reporting < core->limits.reports) {
		core->reporting++;
		op->reporting = true;
		return true;
	}
	COUNT(core, report_waited);
	op_found_clear(core, op);
	op_next_round(core, op); /* what is still answered is late */
	timer_stop(core, &op->timer);
	op->state = OP_IN_LINE;
	list_append(&core->in_line, &op->waiting);
	return false;
}

void report_over(struct core *core, struct op *op) {
	core->reporting -= op->reporting;
	op->reporting = false;
}

bool report_due(const struct core *core) {
	return !list_empty(&core->in_line) && core->reporting < core->limits.reports;
}

/* Begins one that stands in line; false: none may, or enough have in this step. */
bool report_run(struct core *core) {
	struct list *n = list_first(&core->in_line);
	if (n == NULL || core->reporting >= core->limits.reports || core->reports_begun >= REPORTS_A_STEP) {
		return false;
	}
	core->reports_begun++;
	struct op *op = CONTAINER_OF(n, struct op, waiting);
	list_remove(n);
	core->reporting++;
	op->reporting = true;
	restart_begin(core, op);
	return true;
}
