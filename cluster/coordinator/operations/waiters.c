/* waiters.c: which requests wait: for one key in the order of its home, or for all keys with a
 * prefix, as all masters know them. Masters tell them in pieces. Each piece is asked for by the
 * last entry of the previous one (section 3, Lists of who waits). */
#include "operation.h"
#include "operations.h"

/* Asks for the next piece of a master's list. `last`: the last entry so far, as the master told it,
 * or NULL. */
static void ask(struct core *core, struct op *op, uint32_t index, const struct master_reply *last) {
	struct message m = op_message(op, MESSAGE_WAITERS);
	m.flags = op_waiters(op)->prefix ? FLAG_PREFIX : 0;
	m.number = op_reports(op)->parts_seen[index];
	m.value = slice_of(NULL, 0);
	if (last) {
		m.lock_id = last->record->lock_id;
		m.ticket = (struct ticket){ last->record->token, last->record->noted };
		m.terms = record_terms(last->record);
		m.by = last->node;
		m.value = record_value(last->record);
	}
	op_ask(core, op, index, &m);
}

void waiters_start(struct core *core, struct op *op) {
	struct waiters_state *waiters = op_waiters(op);
	if (!report_may_begin(core, op)) {
		return;
	}
	report_begin(core, op);
	const int home = waiters->prefix ? -1 : attempt_home(core, op->key);
	for (uint32_t i = 0; i < core->masters; i++) {
		if (waiters->prefix || home == (int)i) {
			ask(core, op, i, NULL);
		}
	}
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	waiters_evaluate(core, op, false);
}

/* What this node tells itself takes one turn of the loop for each piece, as it would over a link.
 * One list comes after the other. */
static void ask_self(struct core *core, struct op *op) {
	uint32_t last = op_reports(op)->replies_count;
	if (op->kind != CORE_WAITERS) {
		report_ask_on(core, op);
		return;
	}
	while (last > 0 && op_reports(op)->replies[last - 1].from != core->self) {
		last--;
	}
	if (op->votes[core->self].state == VOTE_ASKED) {
		ask(core, op, core->self, last ? &op_reports(op)->replies[last - 1] : NULL);
		waiters_evaluate(core, op, false);
	}
}

void waiters_go_on(struct core *core) {
	struct list *n = turn_pieces(core)->asked ? list_first(&core->coordinator.asking) : NULL;
	if (n) {
		turn_pieces(core)->asked = false;
		list_remove(n);
		ask_self(core, CONTAINER_OF(n, struct op, waiting));
	}
	pending_left(core, PENDING_ASKING, !list_empty(&core->coordinator.asking));
}

static bool copy_waiter(struct core *core, const struct op *op, const struct caller *c,
	const struct master_reply *f, struct core_waiter *w) {
	struct slice identity = record_identity(f->record);
	*w = (struct core_waiter){ .lock_id = f->record->lock_id, .node = f->node,
		.since = instant_left_long(core->now, f->record->end),
		.terms = record_terms(f->record) };
	w->show_lock_id = c->admin || slice_equal(identity, op->identity);
	return out_copy(core, record_owner(f->record), &w->owner) &&
		out_copy(core, identity, &w->identity) &&
		out_copy(core, record_label(f->record), &w->label) &&
		(!op_waiters(op)->prefix || out_copy(core, record_value(f->record), &w->key));
}

/* The key of an entry is kept as the value of its copy. */
static struct slice entry_key(const struct op *op, uint32_t i) {
	return record_value(op_reports(op)->replies[i].record);
}

/* Returns the next entry of this master's list, or replies_count. */
static uint32_t next_of_master(const struct op *op, uint32_t from, uint32_t at) {
	const struct reports *reports = op_reports(op);
	while (at < reports->replies_count && reports->replies[at].from != from) {
		at++;
	}
	return at;
}

static uint64_t entry_hash(const struct core *core, const struct op *op, uint32_t i) {
	return table_hash(core, entry_key(op, i)) ^
		hash_lock_id(core, op_reports(op)->replies[i].record->lock_id);
}

/* Holds the entries that were taken, by key and lock_id. `slots` is a power of two, and at least
 * half of the slots are free. A slot has the number of an entry plus 1; 0: it is free. */
struct taken {
	uint32_t *entries, slots;
};

/* Takes an entry. False: it was taken before, because its home has changed and both homes know
 * it. */
static bool take(const struct core *core, const struct op *op, struct taken *t, uint32_t i) {
	const struct reports *reports = op_reports(op);
	uint32_t at = (uint32_t)entry_hash(core, op, i) & (t->slots - 1);
	for (; t->entries[at]; at = (at + 1) & (t->slots - 1)) {
		const uint32_t other = t->entries[at] - 1;
		if (id128_equal(reports->replies[other].record->lock_id,
			reports->replies[i].record->lock_id) &&
			slice_equal(entry_key(op, other), entry_key(op, i))) {
			return false;
		}
	}
	t->entries[at] = i + 1;
	return true;
}

/* Merges the masters' lists, each of which is in order, into one. Of each key the entries of its
 * home come first. */
static uint32_t merge(const struct core *core, const struct op *op, uint32_t *order,
	struct taken *t) {
	uint32_t at[MASTERS_MAX], count = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		at[i] = next_of_master(op, i, 0);
	}
	while (count <= op_waiters(op)->limit) {
		int best = -1;
		for (uint32_t i = 0; i < core->masters; i++) {
			if (at[i] == op_reports(op)->replies_count) {
				continue;
			}
			int c = best < 0
				? -1 : slice_compare(entry_key(op, at[i]), entry_key(op, at[best]));
			if (c < 0 ||
				(c == 0 && attempt_home(core, entry_key(op, at[i])) == (int)i)) {
				best = (int)i;
			}
		}
		if (best < 0) {
			return count;
		}
		if (take(core, op, t, at[best])) {
			order[count++] = at[best];
		}
		at[best] = next_of_master(op, (uint32_t)best, at[best] + 1);
	}
	return count;
}

/* Makes one list of those of several masters. *more: the list goes on. False: no memory. */
static bool merged(struct core *core, const struct op *op, uint32_t **order, uint32_t *count,
	bool *more) {
	const struct reports *reports = op_reports(op);
	struct taken t = { NULL, 16 };
	while (t.slots < 2 * reports->replies_count) {
		t.slots *= 2;
	}
	t.entries = out_room(core, t.slots * sizeof *t.entries);
	*order = out_room(core, (reports->replies_count + 1) * sizeof **order);
	if (t.entries == NULL || *order == NULL) {
		return false;
	}
	memset(t.entries, 0, t.slots * sizeof *t.entries);
	*count = merge(core, op, *order, &t);
	*more = *count > op_waiters(op)->limit;
	*count -= *more;
	return true;
}

static void reply_to(struct core *core, struct op *op, struct caller *c, bool done) {
	struct reports *reports = op_reports(op);
	struct waiters_state *waiters = op_waiters(op);
	uint32_t *order = NULL, count = reports->replies_count;
	bool more = false, copied = !waiters->prefix || merged(core, op, &order, &count, &more);
	struct core_waiter *list = copied ? out_room(core, (count + 1) * sizeof *list) : NULL;
	copied = list != NULL;
	for (uint32_t i = 0; copied && i < count; i++) {
		copied = copy_waiter(core, op, c, &reports->replies[waiters->prefix ? order[i] : i],
			&list[i]);
	}
	struct core_reply *r = op_reply(core, c,
		!done ? PAWL_ENOQUORUM
			: copied ? PAWL_OK
		: PAWL_EBUSY);
	r->waiters = done && copied ? list : NULL;
	r->count = done && copied ? count : 0;
	r->more = done && copied && more;
}

void waiters_evaluate(struct core *core, struct op *op, bool over) {
	bool open = op_votes(core, op, VOTE_BIT(VOTE_ASKED)) > 0 && !over;
	const uint32_t enough = op_waiters(op)->prefix ? core->quorum : 1;
	bool done = op_votes(core, op, VOTE_BIT(VOTE_OK)) >= enough;
	struct list *n;
	while (!open && (n = list_first(&op->callers)) != NULL) {
		reply_to(core, op, CONTAINER_OF(n, struct caller, link), done);
	}
	if (!open) {
		op_free(core, op);
	}
}

static void take_entry(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct reports *reports = op_reports(op);
	struct waiters_state *waiters = op_waiters(op);
	struct message entry = *m;
	entry.value = waiters->prefix ? m->key : entry.value;
	/* The entry's place is kept, too, to go on from there. */
	entry.token = m->ticket.clock;
	reports->parts_seen[from]++;
	/* One entry more than is asked for says that there are more. */
	const bool enough = waiters->prefix && reports->parts_seen[from] > waiters->limit;
	struct record *r = op_reply_add(core, op, from, &entry);
	if (r == NULL) {
		op->votes[from].state = VOTE_GONE;
		return;
	}
	r->noted = m->ticket.seq;
	if (enough || (m->part + 1 == m->parts && !(m->flags & FLAG_REST))) {
		op->votes[from].state = VOTE_OK;
	} else if (m->flags & FLAG_REST) {
		op->sent = core->now;
		timer_at(core, &op->timer, TIMER_OP,
			instant_add(core->now, core->config.request_timeout));
		if (from != core->self) {
			ask(core, op, from, &reports->replies[reports->replies_count - 1]);
		} else if (!list_linked(&op->waiting)) {
			list_append(&core->coordinator.asking, &op->waiting);
			pending_add(core, PENDING_ASKING);
		}
	}
}

void waiters_answer(struct core *core, struct op *op, uint32_t from, const struct message *m) {
	struct vote *v = &op->votes[from];
	if (m->kind != MESSAGE_WAITERS_ANSWER || v->state != VOTE_ASKED) {
		return;
	}
	if (m->status != STATUS_OK) {
		v->state = VOTE_GONE;
	} else if (m->parts == 0) {
		v->state = VOTE_OK;
	} else if (m->part == op_reports(op)->parts_seen[from]) {
		/* Parts come in order, and each counts once. */
		take_entry(core, op, from, m);
	}
	waiters_evaluate(core, op, false);
}

static bool waiters_make(struct core *core, struct op *op, const struct core_request *r) {
	(void)core;
	op_waiters(op)->prefix = r->prefix;
	op_waiters(op)->limit = limit_of(r);
	return true;
}

const struct operation waiters_operation = { .make = waiters_make, .start = waiters_start,
	.answer = waiters_answer, .evaluate = waiters_evaluate, .clear = op_replies_clear,
	.release = reports_free };
