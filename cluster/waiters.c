/* waiters.c: who waits: for one key in the order of its home, or for all keys with a prefix, as all masters know them. */
#include "state.h"

/* ---- a master's side ---- */

/* The first keys with the prefix, in order, that somebody waits for. */
struct choice {
	uint32_t count, capacity;
	struct key *keys[];
};

static void choose(struct choice *c, struct key *key) {
	uint32_t low = 0, high = c->count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		int order = slice_compare(key_name(c->keys[middle]), key_name(key));
		if (order == 0) {
			return;
		}
		*(order < 0 ? &low : &high) = order < 0 ? middle + 1 : middle;
	}
	if (low == c->capacity) {
		return;
	}
	c->count -= c->count == c->capacity;
	memmove(&c->keys[low + 1], &c->keys[low], (c->count - low) * sizeof c->keys[0]);
	c->keys[low] = key;
	c->count++;
}

static void fill(const struct core *core, const struct waiter *w, struct message *answer) {
	answer->key = key_name(w->key);
	answer->lock_id = w->lock_id;
	answer->owner = slice_of(w->bytes, w->owner_size);
	answer->identity = slice_of(w->bytes + w->owner_size, w->identity_size);
	answer->left_us = (uint64_t)instant_elapsed_long(core->now, w->since) / 1000;
	answer->label = slice_of(w->bytes + w->owner_size + w->identity_size, w->label_size);
	answer->terms = w->terms;
	answer->by = core->peers[w->peer].node.id;
}

static uint32_t choice_waiters(const struct choice *c) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		n += c->keys[i]->more->waiters;
	}
	return n;
}

static void say_chosen(struct core *core, uint32_t from, const struct choice *c, struct message *answer) {
	uint32_t all = choice_waiters(c);
	answer->parts = all < c->capacity ? all : c->capacity;
	for (uint32_t i = 0; i < c->count; i++) {
		const struct list *queue = &c->keys[i]->more->queue;
		for (const struct list *n = list_first(queue); n && answer->part < answer->parts; n = list_after(queue, n)) {
			fill(core, CONTAINER_OF(n, struct waiter, link), answer);
			out_send(core, from, answer);
			answer->part++;
		}
	}
	if (answer->parts == 0) {
		out_send(core, from, answer);
	}
}

/* All who wait stand in the lists of their coordinators, so nobody has to walk the keys. One more than asked for says that there are more. */
static void list_prefix(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_WAITERS_ANSWER, .round = m->round, .status = rule_votes(core), .key = m->key };
	uint32_t limit = m->number < WAITERS_MAX ? (uint32_t)m->number + 1 : WAITERS_MAX + 1;
	size_t size = sizeof(struct choice) + limit * sizeof(struct key *);
	struct choice *c = alloc_new(&core->alloc, size);
	if (c == NULL || answer.status != STATUS_OK) {
		answer.status = answer.status == STATUS_OK ? STATUS_FULL : answer.status;
		out_send(core, from, &answer);
		alloc_free(&core->alloc, c, size);
		return;
	}
	c->capacity = limit;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		for (struct list *n = list_first(&core->peers[i].waiters); n; n = list_after(&core->peers[i].waiters, n)) {
			struct key *key = CONTAINER_OF(n, struct waiter, by_peer)->key;
			if (slice_has_prefix(key_name(key), m->key)) {
				choose(c, key);
			}
		}
	}
	say_chosen(core, from, c, &answer);
	alloc_free(&core->alloc, c, size);
}

void waiters_list(struct core *core, uint32_t from, const struct message *m) {
	if (m->flags & FLAG_PREFIX) {
		list_prefix(core, from, m);
		return;
	}
	struct message answer = { .kind = MESSAGE_WAITERS_ANSWER, .round = m->round, .status = rule_votes(core), .key = m->key };
	struct key *key = table_find(core, m->key);
	if (answer.status != STATUS_OK || key == NULL || key->more == NULL || key->more->waiters == 0) {
		out_send(core, from, &answer);
		return;
	}
	answer.parts = key->more->waiters;
	for (struct list *n = list_first(&key->more->queue); n; n = list_after(&key->more->queue, n)) {
		fill(core, CONTAINER_OF(n, struct waiter, link), &answer);
		out_send(core, from, &answer);
		answer.part++;
	}
}

/* ---- the coordinator's ---- */

void waiters_start(struct core *core, struct op *op) {
	if (!report_may_begin(core, op)) {
		return;
	}
	op_found_clear(core, op);
	memset(op->parts_seen, 0, sizeof op->parts_seen);
	op->state = OP_ROUND;
	op_next_round(core, op);
	op->home = op->prefix ? -1 : attempt_home(core, op->key);
	struct message m = op_message(op, MESSAGE_WAITERS);
	m.flags = op->prefix ? FLAG_PREFIX : 0;
	m.number = op->limit;
	if (op->prefix) {
		op_ask_all(core, op, &m);
	} else if (op->home >= 0) {
		op_ask(core, op, (uint32_t)op->home, &m);
	}
	timer_at(core, &op->timer, TIMER_OP, instant_add(core->now, core->config.request_timeout));
	waiters_judge(core, op, false);
}

static bool copy_waiter(struct core *core, const struct op *op, const struct caller *c, const struct found *f, struct core_waiter *w) {
	struct slice identity = record_identity(f->record);
	*w = (struct core_waiter){ .lock_id = f->record->lock_id, .node = f->node, .since = instant_left_long(core->now, f->record->end),
		.terms = record_terms(f->record) };
	w->show_lock_id = c->admin || slice_equal(identity, op->identity);
	return out_copy(core, record_owner(f->record), &w->owner) && out_copy(core, identity, &w->identity) &&
		out_copy(core, record_label(f->record), &w->label) && (!op->prefix || out_copy(core, record_value(f->record), &w->key));
}

/* The key of a found entry is kept as its value. */
static struct slice found_key(const struct op *op, uint32_t i) {
	return record_value(op->found[i].record);
}

/* The next entry of this master's list, or found_count. */
static uint32_t next_of(const struct op *op, uint32_t from, uint32_t at) {
	while (at < op->found_count && op->found[at].from != from) {
		at++;
	}
	return at;
}

static bool shown_already(const struct op *op, const uint32_t *order, uint32_t count, uint32_t i) {
	for (uint32_t n = count; n > 0 && slice_equal(found_key(op, order[n - 1]), found_key(op, i)); n--) {
		if (id128_equal(op->found[order[n - 1]].record->lock_id, op->found[i].record->lock_id)) {
			return true; /* its home has changed, and both know it */
		}
	}
	return false;
}

/* The masters' lists, each of which is in order, into one; of one key the home's entries come first. */
static uint32_t merge(const struct core *core, const struct op *op, uint32_t *order) {
	uint32_t at[MASTERS_MAX], count = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		at[i] = next_of(op, i, 0);
	}
	for (;;) {
		int best = -1;
		for (uint32_t i = 0; i < core->masters; i++) {
			if (at[i] == op->found_count) {
				continue;
			}
			int c = best < 0 ? -1 : slice_compare(found_key(op, at[i]), found_key(op, at[best]));
			if (c < 0 || (c == 0 && attempt_home(core, found_key(op, at[i])) == (int)i)) {
				best = (int)i;
			}
		}
		if (best < 0) {
			return count;
		}
		if (!shown_already(op, order, count, at[best])) {
			order[count++] = at[best];
		}
		at[best] = next_of(op, (uint32_t)best, at[best] + 1);
	}
}

static void reply_to(struct core *core, struct op *op, struct caller *c, bool done) {
	uint32_t *order = out_room(core, op->found_count * sizeof *order + 1), count = op->found_count;
	struct core_waiter *list = out_room(core, op->found_count * sizeof *list + 1);
	bool copied = list != NULL && order != NULL, more = false;
	if (copied && op->prefix) {
		count = merge(core, op, order);
		more = count > op->limit;
		count = more ? op->limit : count;
	}
	for (uint32_t i = 0; copied && i < count; i++) {
		copied = copy_waiter(core, op, c, &op->found[op->prefix ? order[i] : i], &list[i]);
	}
	struct core_reply *r = op_reply(core, c, !done ? PAWL_ENOQUORUM : copied ? PAWL_OK : PAWL_EBUSY);
	r->waiters = done && copied ? list : NULL;
	r->count = done && copied ? count : 0;
	r->more = done && copied && more;
}

void waiters_judge(struct core *core, struct op *op, bool over) {
	bool open = op_votes(core, op, VOTE_BIT(VOTE_ASKED)) > 0 && !over;
	bool done = op_votes(core, op, VOTE_BIT(VOTE_OK)) >= (op->prefix ? core->quorum : 1);
	struct list *n;
	while (!open && (n = list_first(&op->callers)) != NULL) {
		reply_to(core, op, CONTAINER_OF(n, struct caller, link), done);
	}
	if (!open) {
		op_free(core, op);
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
	} else if (m->part == op->parts_seen[from]++) { /* in order, each once */
		struct message entry = *m;
		entry.value = op->prefix ? m->key : entry.value;
		if (op_found(core, op, from, &entry) == NULL) {
			v->state = VOTE_GONE;
		} else if (m->part + 1 == m->parts) {
			v->state = VOTE_OK;
		}
	}
	waiters_judge(core, op, false);
}
