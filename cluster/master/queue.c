/* queue.c: the queue of the keys whose home this node is (section 5). The home only keeps the order
 * and gives the turn (turns.c); it is the quorum that grants the lock. */
#include "master.h"
#include "first.h"

/* More queues of a greater length than this are not told apart. */
#define LENGTHS_MAX 65536

int queue_init(struct core *core) {
	struct master_state *m = &core->master;
	m->lengths_size = core->limits.waiters_per_key < LENGTHS_MAX
		? core->limits.waiters_per_key + 1 : LENGTHS_MAX;
	m->lengths = alloc_new(&core->alloc, m->lengths_size * sizeof *m->lengths);
	return m->lengths ? 0 : PAWL_ENOMEM;
}

void queue_done(struct core *core) {
	struct master_state *m = &core->master;
	alloc_free(&core->alloc, m->lengths, m->lengths_size * sizeof *m->lengths);
}

/* ---- the order ---- */

static struct waiter *waiter_of(struct queued *q) {
	return q ? CONTAINER_OF(q, struct waiter, q) : NULL;
}

bool waiter_lost(const struct core *core, const struct waiter *w) {
	return w->q.lost != core->peers[w->q.peer].lost;
}

static struct tree_node **part_of(const struct waiter *w) {
	return &key_more(w->q.key)->queue[(w->turn ? PART_TURN : 0) | (w->waits ? PART_WAITS : 0)];
}

/* The largest number of lost entries in a row that are passed over at once. The entry behind them
 * is returned like any other, even if it is lost, too. */
#define LOST_PASSED 64

struct waiter *queue_next(const struct core *core, const struct key_more *more,
	const struct queued *behind, uint32_t parts) {
	struct queued *first = NULL;
	for (uint32_t part = 0; part < QUEUE_PARTS; part++) {
		struct queued *q = !(parts >> part & 1) ? NULL
			: behind ? queued_after(core, more->queue[part], behind)
			: queued_first(more->queue[part]);
		for (int passed = 0; q && waiter_lost(core, waiter_of(q)) && passed < LOST_PASSED;
			passed++) {
			q = queued_after(core, more->queue[part], q);
		}
		first = q && (first == NULL || queued_sooner(core, q, first)) ? q : first;
	}
	return waiter_of(first);
}

/* A queue that had `before` entries has `after` from now on, which is one more or one less. */
static void length_changed(struct core *core, uint32_t before, uint32_t after) {
	struct master_state *m = &core->master;
	const uint32_t last = m->lengths_size - 1;
	before = before < last ? before : last;
	after = after < last ? after : last;
	m->lengths[before]--;
	m->lengths[after]++;
	if (after > m->longest || (before == m->longest && m->lengths[before] == 0)) {
		m->longest = after;
	}
}

/* Puts the entry into the queue of its key. */
static void enter(struct core *core, struct waiter *w) {
	struct key_more *more = key_more(w->q.key);
	if (more->waiters++ == 0) {
		queued_key_enter(core, more);
	}
	length_changed(core, more->waiters - 1, more->waiters);
	core->master.waiter_count++;
	queued_enter(core, &core->master.queues.waiters, part_of(w), &w->q);
	queued_owner_enter(core, w);
	list_append(&core->peers[w->q.peer].waiters, &w->q.by_peer);
}

static void waiter_free(struct core *core, struct waiter *w) {
	struct key_more *more = key_more(w->q.key);
	queued_leave(core, &core->master.queues.waiters, part_of(w), &w->q);
	queued_owner_leave(core, w);
	list_remove(&w->q.by_peer);
	core->master.waiter_count--;
	more->turns -= w->turn;
	if (--more->waiters == 0) {
		list_remove(&more->moved);
		queued_key_leave(core, more);
	}
	length_changed(core, more->waiters + 1, more->waiters);
	alloc_free(&core->alloc, w, sizeof *w + w->owner_size + w->identity_size + w->label_size);
}

void queue_mark_turn(struct core *core, struct waiter *w) {
	if (!w->turn) {
		struct tree_node **from = part_of(w);
		w->turn = true;
		key_more(w->q.key)->turns++;
		queued_move(core, from, part_of(w), &w->q);
	}
}

struct waiter *queue_first_other(const struct core *core, const struct key_more *more,
	struct id128 lock_id, uint32_t parts) {
	struct waiter *w = queue_next(core, more, NULL, parts);
	/* Each coordinator has at most one entry for a lock_id. */
	while (w && id128_equal(w->q.lock_id, lock_id)) {
		w = queue_next(core, more, &w->q, parts);
	}
	return w;
}

/* ---- entering and leaving ---- */

bool queue_drop_lost(struct core *core, struct key_more *more) {
	for (uint32_t part = 0; part < QUEUE_PARTS; part++) {
		struct waiter *w;
		while ((w = waiter_of(queued_first(more->queue[part]))) != NULL &&
			waiter_lost(core, w)) {
			if (turn_pieces(core)->lost == 0) {
				return false;
			}
			turn_pieces(core)->lost--;
			COUNT(core, waiter_dropped);
			waiter_free(core, w);
		}
	}
	return true;
}

struct waiter *queue_find(const struct core *core, const struct key *key, uint32_t peer,
	struct id128 lock_id) {
	return key_more(key)
		? waiter_of(queued_find(core, &core->master.queues.waiters, key, peer, lock_id))
		: NULL;
}

struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner,
	struct id128 but) {
	const struct key_more *more = key_more(key);
	struct waiter *w = more ? queued_owner_next(core, more, owner, NULL) : NULL;
	for (int passed = 0; w && passed < LOST_PASSED; passed++) {
		if (!waiter_lost(core, w) && !id128_equal(w->q.lock_id, but)) {
			return w;
		}
		w = queued_owner_next(core, more, owner, w);
	}
	return NULL;
}

/* A try-lock is refused when an entry with a wait time is ahead of it, or when a record that
 * excludes it is held here. */
static enum status rule_enqueue(struct core *core, const struct key *key, uint32_t from,
	const struct message *m) {
	if (!core_votes(core)) {
		return STATUS_RECOVERING;
	}
	if (!(m->flags & FLAG_WAIT) && key) {
		if (key_more(key) && queue_waits_ahead(core, key_more(key), from, m)) {
			return STATUS_QUEUED;
		}
		if (key_other(key, m->lock_id, &m->terms)) {
			return STATUS_HELD;
		}
	}
	if (core->master.waiter_count >= core->limits.waiters ||
		(key && key_more(key) && key_more(key)->waiters >= core->limits.waiters_per_key)) {
		COUNT(core, queue_refused_full);
		return STATUS_FULL;
	}
	return STATUS_OK;
}

static struct waiter *waiter_new(struct core *core, struct key *key, uint32_t from,
	const struct message *m) {
	if (table_more(core, key) == NULL) {
		return NULL;
	}
	struct waiter *w = alloc_new(&core->alloc,
		sizeof *w + m->owner.size + m->identity.size + m->label.size);
	if (w == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	w->q = (struct queued){ .key = key, .lock_id = m->lock_id, .attempt = m->attempt,
		.round = m->round, .ticket = m->ticket, .peer = from,
		.lost = core->peers[from].lost, .terms = m->terms, .first = m->ballot };
	w->since = instant_add(core->now, -span_from_us(m->left_us));
	w->waits = (m->flags & FLAG_WAIT) != 0;
	w->moved = (m->flags & FLAG_MOVED) != 0;
	w->owner_size = (uint16_t)m->owner.size;
	w->identity_size = (uint8_t)m->identity.size;
	w->label_size = (uint16_t)m->label.size;
	if (m->owner.size) {
		memcpy(w->bytes, m->owner.data, m->owner.size);
	}
	if (m->identity.size) {
		memcpy(w->bytes + m->owner.size, m->identity.data, m->identity.size);
	}
	if (m->label.size) {
		memcpy(w->bytes + m->owner.size + m->identity.size, m->label.data, m->label.size);
	}
	return w;
}

void queue_enqueue(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_ENQUEUE_ANSWER, .round = m->round };
	struct key *key = table_find(core, m->key);
	struct waiter *old = key ? queue_find(core, key, from, m->lock_id) : NULL;
	if (old) {
		waiter_free(core, old);
	}
	answer.status = rule_enqueue(core, key, from, m);
	struct waiter *w = NULL;
	if (answer.status == STATUS_OK) {
		key = key ? key : table_make(core, m->key);
		w = key ? waiter_new(core, key, from, m) : NULL;
		answer.status = w ? STATUS_OK : STATUS_FULL;
	} else {
		master_blocker(core, key, m->lock_id, &m->terms, &answer);
	}
	bool turn = false;
	if (w) {
		turn = queue_stamp(core, w);
		answer.ticket = w->q.ticket;
		enter(core, w);
		queue_moved_enter(core, w);
	}
	out_send(core, from, &answer);
	if (w && (turn || key_record(key, w->q.lock_id))) {
		/* The request has a turn already, or its lock_id is held here. */
		core->counts[COUNT_turn_again] += turn;
		queue_turn_again(core, w);
	}
	if (key) {
		queue_give_turn(core, key);
		table_settle(core, key);
	}
}

/* Withdraw drops the promise, the parked request or the queue entry that this attempt made, and
 * nothing else. It never drops a held record. */
void queue_withdraw(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find(core, m->key);
	if (key == NULL) {
		return;
	}
	bool gone = false;
	struct promise *p = m->attempt ? key_promise(key, m->lock_id) : NULL;
	if (p) {
		if (p->peer == from && p->attempt == m->attempt) {
			COUNT(core, withdraw_found);
			/* The ballot that the promise noted is another attempt's, which has not
			 * been given up. */
			if (p->first.node != id128_word(core->peers[from].node.id)) {
				first_lost(core, p->lock_id, p->first);
			}
			key_drop_promise(core, key, p);
			gone = true;
		} else {
			COUNT(core, withdraw_replaced);
		}
	}
	gone = (m->attempt && queue_parked_withdrawn(core, key, from, m)) || gone;
	if (gone) {
		queue_parked_again(core, key);
	}
	if (m->ticket.seq) {
		queue_drop_ticket(core, key, from, m);
	}
	table_settle(core, key);
}

void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, const struct message *m) {
	struct waiter *w = queue_find(core, key, from, m->lock_id);
	if (w && w->q.ticket.seq == m->ticket.seq) {
		queue_note_returned(core, w);
		waiter_free(core, w);
		queue_give_turn(core, key);
	}
}

/* A release drops everything of the lock_id and ends its wait, whichever node the wait came through
 * (section 2, Release). Few keys have anything of it. */
static __attribute__((noinline)) void drop_lock(struct core *core, struct key *key,
	struct id128 lock_id) {
	struct queued *q;
	while ((q = queued_of_lock(core, &core->master.queues.parked, key, lock_id)) != NULL) {
		queue_parked_free(core, CONTAINER_OF(q, struct parked, q));
	}
	while ((q = queued_of_lock(core, &core->master.queues.waiters, key, lock_id)) != NULL) {
		out_send(core, q->peer,
			&(struct message){ .kind = MESSAGE_ENQUEUE_ANSWER, .round = q->round,
				.status = STATUS_RELEASED });
		waiter_free(core, waiter_of(q));
	}
}

void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id) {
	if (key_more(key)) {
		drop_lock(core, key, lock_id);
	}
}

/* A record has become held. Try-locks in the queue that it excludes are refused; an entry for the
 * record's own lock_id gets its turn at once. */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by) {
	if (key_more(key) == NULL || key_more(key)->waiters == 0) {
		return;
	}
	for (struct queued *q = queued_of_lock(core, &core->master.queues.waiters, key, lock_id); q;
		q = queued_of_lock_next(q)) {
		/* The coordinator that sent the commit has its entry dropped anyway. */
		if (q->peer != by && !waiter_lost(core, waiter_of(q))) {
			queue_turn_again(core, waiter_of(q));
		}
	}
	for (struct waiter *w = queue_next(core, key_more(key), NULL, PARTS_TRIES), *next; w;
		w = next) {
		next = queue_next(core, key_more(key), &w->q, PARTS_TRIES);
		if (!id128_equal(w->q.lock_id, lock_id) &&
			key_other(key, w->q.lock_id, &w->q.terms)) {
			struct message refused = { .kind = MESSAGE_ENQUEUE_ANSWER,
				.round = w->q.round, .status = STATUS_HELD };
			master_blocker(core, key, w->q.lock_id, &w->q.terms, &refused);
			out_send(core, w->q.peer, &refused);
			waiter_free(core, w);
		}
	}
	queue_give_turn(core, key);
}

/* ---- links ---- */

/* Promises and parked requests end with the link to their coordinator. */
static void drop_claims(struct core *core, struct peer *p) {
	struct list *n;
	while ((n = list_first(&p->parked)) != NULL) {
		struct queued *q = CONTAINER_OF(n, struct queued, by_peer);
		struct key *key = q->key;
		queue_parked_free(core, CONTAINER_OF(q, struct parked, q));
		queue_parked_again(core, key);
		table_settle(core, key);
	}
	while ((n = list_first(&p->promises)) != NULL) {
		struct promise *promise = CONTAINER_OF(n, struct promise, by_peer);
		struct key *key = promise->key;
		first_lost(core, promise->lock_id, promise->first);
		key_drop_promise(core, key, promise);
		queue_parked_again(core, key);
		table_settle(core, key);
	}
}

/* Queue entries end with the link as well. They stop counting at once; because there may be many,
 * they are freed in pieces. */
static void lose(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	/* These are the entries that this node made in its own queue. */
	p->stopped += peer == core->self;
	p->lost++;
	list_splice(&core->master.queues.lost, &p->waiters);
	drop_claims(core, p);
}

void queue_lost_go_on(struct core *core) {
	struct list *n;
	while (turn_pieces(core)->lost > 0 && (n = list_first(&core->master.queues.lost)) != NULL) {
		struct waiter *w = waiter_of(CONTAINER_OF(n, struct queued, by_peer));
		struct key *key = w->q.key;
		turn_pieces(core)->lost--;
		COUNT(core, waiter_dropped);
		waiter_free(core, w);
		queue_give_turn(core, key);
		table_settle(core, key);
	}
}

void queue_peer_lost(struct core *core, uint32_t peer) {
	lose(core, peer);
	queue_lost_go_on(core);
}

/* Drops all promises and queues, because the node stops voting. */
void queue_forget_all(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		lose(core, i);
	}
	const uint32_t left = turn_pieces(core)->lost;
	turn_pieces(core)->lost = UINT32_MAX;
	queue_lost_go_on(core);
	turn_pieces(core)->lost = left;
}

void queue_free_all(struct core *core, struct key *key) {
	struct queued *q;
	while ((q = queued_first(key_more(key)->parked)) != NULL) {
		queue_parked_free(core, CONTAINER_OF(q, struct parked, q));
	}
	for (uint32_t part = 0; part < QUEUE_PARTS; part++) {
		while ((q = queued_first(key_more(key)->queue[part])) != NULL) {
			waiter_free(core, waiter_of(q));
		}
	}
}
