/* queue.c: the queue of the keys whose home this node is (section 5). The home only keeps the order
 * and gives the turn (turns.c); it is the quorum that grants the lock. */
#include "master.h"

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
		queue_entry_free(core, old);
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
		queue_entry_enter(core, w);
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
			/* The ballot that the promise noted is another attempt's, or that of a
			 * commit, and may still count elsewhere. */
			if (p->committed ||
				p->first.node != id128_word(core->peers[from].node.id)) {
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
		queue_entry_free(core, w);
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
		queue_entry_free(core, waiter_of(q));
	}
}

void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id) {
	if (key_more(key)) {
		drop_lock(core, key, lock_id);
	}
}

/* Goes on with the try-locks of a key that a held record may exclude. True: no more are to be
 * looked at. */
static bool refuse_tries(struct core *core, struct key *key) {
	struct key_more *more = key_more(key);
	struct waiter *w;
	while (key->held && (w = more->next_try) != NULL) {
		if (turn_pieces(core)->tries == 0) {
			return false;
		}
		turn_pieces(core)->tries--;
		more->next_try = queue_next(core, more, &w->q, PARTS_TRIES);
		if (!key_record(key, w->q.lock_id) &&
			key_other(key, w->q.lock_id, &w->q.terms)) {
			struct message refused = { .kind = MESSAGE_ENQUEUE_ANSWER,
				.round = w->q.round, .status = STATUS_HELD };
			master_blocker(core, key, w->q.lock_id, &w->q.terms, &refused);
			out_send(core, w->q.peer, &refused);
			queue_entry_free(core, w);
		}
	}
	more->next_try = NULL;
	list_remove(&more->refusing);
	return true;
}

void queue_tries_go_on(struct core *core) {
	struct list *n;
	while ((n = list_first(&core->master.queues.refusing)) != NULL) {
		struct key *key = CONTAINER_OF(n, struct key_more, refusing)->key;
		if (!refuse_tries(core, key)) {
			return;
		}
		queue_give_turn(core, key);
		table_settle(core, key);
	}
	pending_left(core, PENDING_TRIES, false);
}

/* A record has become held. Try-locks in the queue that it excludes are refused, in pieces, before
 * anybody else has a turn; an entry for the record's own lock_id gets its turn at once. */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by) {
	if (key_more(key)->waiters == 0) {
		return;
	}
	for (struct queued *q = queued_of_lock(core, &core->master.queues.waiters, key, lock_id); q;
		q = queued_of_lock_next(q)) {
		/* The coordinator that sent the commit has its entry dropped anyway. */
		if (q->peer != by && !waiter_lost(core, waiter_of(q))) {
			queue_turn_again(core, waiter_of(q));
		}
	}
	struct key_more *more = key_more(key);
	more->next_try = queue_next(core, more, NULL, PARTS_TRIES);
	if (more->next_try && !list_linked(&more->refusing)) {
		list_append(&core->master.queues.refusing, &more->refusing);
		pending_add(core, PENDING_TRIES);
	}
	if (more->next_try == NULL || refuse_tries(core, key)) {
		queue_give_turn(core, key);
	}
}

/* ---- links ---- */

/* Promises, parked requests and queue entries end with the link to their coordinator. There may be
 * many, so they are freed in pieces. Until its turn has come, a promise stands in the way of others
 * as if the link were lost only then. A parked request and an entry count no more, except that
 * others may stand behind them. What is asked for again over the next link belongs to that one. */
static void lose(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	/* These are the entries that this node made in its own queue. */
	p->stopped += peer == core->self;
	p->lost++;
	list_splice(&core->master.queues.lost_parked, &p->parked);
	list_splice(&core->master.queues.lost_promises, &p->promises);
	list_splice(&core->master.queues.lost, &p->waiters);
	pending_add(core, PENDING_LOST);
}

static void lose_parked(struct core *core, struct queued *q) {
	struct key *key = q->key;
	COUNT(core, claim_dropped);
	queue_parked_free(core, CONTAINER_OF(q, struct parked, q));
	queue_parked_again(core, key);
	table_settle(core, key);
}

static void lose_promise(struct core *core, struct promise *p) {
	struct key *key = p->key;
	COUNT(core, claim_dropped);
	first_lost(core, p->lock_id, p->first);
	key_drop_promise(core, key, p);
	queue_parked_again(core, key);
	table_settle(core, key);
}

static void lose_entry(struct core *core, struct waiter *w) {
	struct key *key = w->q.key;
	COUNT(core, waiter_dropped);
	queue_entry_free(core, w);
	queue_give_turn(core, key);
	table_settle(core, key);
}

void queue_lost_go_on(struct core *core) {
	const struct queues *queues = &core->master.queues;
	while (turn_pieces(core)->lost > 0 && queue_lost_left(core)) {
		struct list *n;
		turn_pieces(core)->lost--;
		if ((n = list_first(&queues->lost_parked)) != NULL) {
			lose_parked(core, CONTAINER_OF(n, struct queued, by_peer));
		} else if ((n = list_first(&queues->lost_promises)) != NULL) {
			lose_promise(core, CONTAINER_OF(n, struct promise, by_peer));
		} else {
			n = list_first(&queues->lost);
			lose_entry(core, waiter_of(CONTAINER_OF(n, struct queued, by_peer)));
		}
	}
	pending_left(core, PENDING_LOST, queue_lost_left(core));
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
			queue_entry_free(core, waiter_of(q));
		}
	}
}
