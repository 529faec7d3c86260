/* reports.c: how a coordinator asks masters what they report of a key's records, one piece after
 * the other (section 3, Reports). Of the operations that ask for more than the first piece only a
 * few are under way; the others stand in line. */
#include "operation.h"
#include "coordinator.h"

/* At most this many operations in line begin in one step. */
#define REPORTS_A_STEP 4
/* The number of reports that cost as much as a simple request. */
#define REPORTS_A_COST 4
/* After many reports were weighed, so much time for each of them is left to others. */
#define WEIGH_PACE (5 * SPAN_US)

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

void report_begin(struct core *core, struct op *op) {
	struct reports *reports = op_reports(op);
	list_remove(&op->waiting);
	op_replies_clear(core, op);
	memset(reports->parts_seen, 0, sizeof reports->parts_seen);
	op->state = OP_ROUND;
	op_next_round(core, op);
	reports->asked = op->sent;
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
			if (from != core->self) {
				ask(core, op, from, m->lock_id, true);
			} else if (!list_linked(&op->waiting)) {
				/* What this node tells itself takes one turn of the loop for each
				 * piece, as it would over a link. */
				list_append(&core->coordinator.asking, &op->waiting);
				pending_add(core, PENDING_ASKING);
			}
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

void report_ask_on(struct core *core, struct op *op) {
	const struct reports *reports = op_reports(op);
	uint32_t last = reports->replies_count;
	while (last > 0 && reports->replies[last - 1].from != core->self) {
		last--;
	}
	if (last > 0 && op->state == OP_ROUND && op->votes[core->self].state == VOTE_ASKED) {
		ask(core, op, core->self, reports->replies[last - 1].record->lock_id, true);
	}
}

/* ---- weighing ---- */

bool report_weigh_later(struct core *core, struct op *op) {
	const uint32_t count = op_reports(op)->replies_count;
	if (count <= core->limits.weighed_at_once || op->state != OP_ROUND) {
		return false;
	}
	if (!instant_expired(core->now, core->coordinator.weigh_at)) {
		COUNT(core, report_put_off);
		timer_stop(core, &op->timer);
		/* This node's own report may be under way. */
		list_remove(&op->waiting);
		op->state = OP_WEIGHING;
		list_append(&core->coordinator.weighing, &op->waiting);
		pending_add(core, PENDING_WEIGHING);
		return true;
	}
	core->coordinator.weigh_at = instant_add(core->now, count * WEIGH_PACE);
	return false;
}

int64_t report_weigh_deadline(const struct core *core) {
	return list_empty(&core->coordinator.weighing) ? INT64_MAX
		: clock_saturating_add(core->now.boot,
			instant_left_long(core->now, core->coordinator.weigh_at));
}

void report_weigh_go_on(struct core *core) {
	struct list *n = list_first(&core->coordinator.weighing);
	if (n && instant_expired(core->now, core->coordinator.weigh_at)) {
		struct op *op = CONTAINER_OF(n, struct op, waiting);
		list_remove(n);
		op->state = OP_ROUND;
		core->operations[op->kind]->evaluate(core, op, true);
	}
	pending_left(core, PENDING_WEIGHING, !list_empty(&core->coordinator.weighing));
}

uint32_t report_cost(const struct op *op) {
	return op_reports(op)->replies_count / REPORTS_A_COST;
}

bool report_forget(struct core *core, struct op *op) {
	op_free(core, op);
	return true;
}

static bool is_record(const struct master_reply *f) {
	return !(f->flags & (FLAG_PROMISE | FLAG_PARKED));
}

/* Returns the master's first record from there on; replies_count: the master told no more. */
static uint32_t record_from(const struct op *op, uint32_t index, uint32_t i) {
	const struct reports *reports = op_reports(op);
	while (i < reports->replies_count &&
		!(reports->replies[i].from == index && is_record(&reports->replies[i]))) {
		i++;
	}
	return i;
}

struct report_walk report_walk_begin(const struct core *core, const struct op *op) {
	struct report_walk w = { .told = 0 };
	for (uint32_t i = 0; i < core->masters; i++) {
		w.next[i] = record_from(op, i, 0);
	}
	return w;
}

static void step_over(const struct op *op, struct report_walk *w, uint32_t index) {
	w->cut |= op_reports(op)->replies[w->next[index]].flags & FLAG_REST ? 1u << index : 0;
	w->next[index] = record_from(op, index, w->next[index] + 1);
}

bool report_walk_on(const struct core *core, const struct op *op, struct report_walk *w) {
	const struct reports *reports = op_reports(op);
	const struct record *least = NULL;
	const uint32_t before = w->told;
	w->told = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		if (before >> i & 1) {
			step_over(op, w, i);
		}
		const struct record *r = w->next[i] < reports->replies_count
			? reports->replies[w->next[i]].record : NULL;
		int c = r == NULL ? 1
			: least ? id128_compare(r->lock_id, least->lock_id)
			: -1;
		least = c < 0 ? r : least;
		w->told = c < 0 ? 1u << i : w->told | (uint32_t)(c == 0) << i;
	}
	return least != NULL;
}

bool report_better(const struct core *core, const struct record *r, const struct record *best) {
	const int newer = best
		? ballot_compare(record_wrote(core, r), record_wrote(core, best)) : 1;
	return newer > 0 || (newer == 0 && best->value_left_out && !r->value_left_out);
}

/* ---- values that were left out ---- */

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
				ballot_compare(m->ballot, record_wrote(core, f->record)) < 0 ||
				!record_write(core, &f->record, &m->value, m->ballot, m->ballot)) {
				return false;
			}
			f->record->value_left_out = false;
			return true;
		}
	}
	return false;
}

/* ---- the line ---- */

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
	list_remove(&op->waiting);
	list_append(&core->coordinator.in_line, &op->waiting);
	return false;
}

void reports_free(struct core *core, struct op *op) {
	op_replies_clear(core, op);
	if (op_reports(op)->reporting) {
		core->coordinator.reporting--;
		pending_add(core, PENDING_LINE);
	}
}

bool report_due(const struct core *core) {
	return !list_empty(&core->coordinator.in_line) &&
		core->coordinator.reporting < core->limits.reports;
}

/* Begins an operation that stands in line. False: none may begin, or enough of them have in this
 * step. */
bool report_run(struct core *core) {
	if (!report_due(core)) {
		pending_left(core, PENDING_LINE, false);
		return false;
	}
	if (core->coordinator.reports_begun >= REPORTS_A_STEP) {
		return false;
	}
	struct list *n = list_first(&core->coordinator.in_line);
	core->coordinator.reports_begun++;
	struct op *op = CONTAINER_OF(n, struct op, waiting);
	list_remove(n);
	core->coordinator.reporting++;
	op_reports(op)->reporting = true;
	restart_begin(core, op);
	return true;
}

/* ---- copies of what masters reported: records, or entries of a queue ---- */

struct record *op_reply_add(struct core *core, struct op *op, uint32_t from,
	const struct message *m) {
	struct reports *reports = op_reports(op);
	if (reports->replies_count == reports->replies_capacity) {
		uint32_t old = reports->replies_capacity, wanted = old ? 2 * old : 8;
		struct master_reply *more = alloc_resize(&core->alloc, reports->replies,
			old * sizeof *more, wanted * sizeof *more);
		if (more == NULL) {
			return NULL;
		}
		reports->replies = more;
		reports->replies_capacity = wanted;
	}
	struct record *r = record_new(core, m);
	if (r == NULL) {
		return NULL;
	}
	r->left = span_from_us(m->left_us);
	r->end = instant_add(core->now, r->left);
	reports->replies[reports->replies_count++] = (struct master_reply){ .record = r,
		.from = from, .counts = (m->flags & FLAG_COUNTS) != 0, .node = m->by,
		.flags = m->flags };
	return r;
}

static bool before(const struct master_reply *a, const struct master_reply *b) {
	int c = id128_compare(a->record->lock_id, b->record->lock_id);
	return c != 0 ? c < 0 : a->from < b->from;
}

static void swap(struct master_reply *a, struct master_reply *b) {
	struct master_reply kept = *a;
	*a = *b;
	*b = kept;
}

static void sift(struct master_reply *found, uint32_t root, uint32_t count) {
	for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
		child += child + 1 < count && before(&found[child], &found[child + 1]);
		if (!before(&found[root], &found[child])) {
			return;
		}
		swap(&found[root], &found[child]);
	}
}

/* Brings the reports of each lock_id together. It is a heapsort because a key may have many
 * holders, and a heapsort needs no memory. */
void op_replies_sort(struct op *op) {
	struct reports *reports = op_reports(op);
	for (uint32_t i = reports->replies_count / 2; i-- > 0;) {
		sift(reports->replies, i, reports->replies_count);
	}
	for (uint32_t last = reports->replies_count; last-- > 1;) {
		swap(&reports->replies[0], &reports->replies[last]);
		sift(reports->replies, 0, last);
	}
}

void op_replies_clear(struct core *core, struct op *op) {
	struct reports *reports = op_reports(op);
	for (uint32_t i = 0; i < reports->replies_count; i++) {
		record_free(core, reports->replies[i].record);
	}
	alloc_free(&core->alloc, reports->replies,
		reports->replies_capacity * sizeof *reports->replies);
	reports->replies = NULL;
	reports->replies_count = reports->replies_capacity = 0;
}
