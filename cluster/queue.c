/* queue.c: the home's queue (section 5). The quorum grants; this node, where it is a key's home, only keeps the order, gives the
 * turn, and keeps the requests of those who have one behind a held record. */
#include "state.h"

/* Section 10, Order: the more important one first, and of those that are alike the one with the earlier ticket: by its stamp, and where two
 * homes gave the same one, by the node that drew it and its number there. */
bool queue_before(const struct core *core, const struct place *a, const struct place *b) {
	if (a->priority != b->priority) {
		return a->priority > b->priority;
	}
	if (a->ticket.clock != b->ticket.clock) {
		return a->ticket.clock - 1 < b->ticket.clock - 1; /* without a stamp: behind those that have one */
	}
	if (a->peer != b->peer) {
		return memcmp(core->peers[a->peer].node.id.b, core->peers[b->peer].node.id.b, sizeof core->peers[a->peer].node.id.b) < 0;
	}
	return a->ticket.seq < b->ticket.seq;
}

struct place queue_place(const struct waiter *w) {
	return (struct place){ w->terms.priority, w->ticket, w->peer };
}

/* Section 5: the home stamps who arrives for the first time, above all stamps that it has seen; who comes from another home keeps its own. */
static void stamp(struct core *core, struct waiter *w) {
	master_raise_clock(core, w->ticket.clock ? w->ticket.clock : core->clock + 1);
	w->ticket.clock = w->ticket.clock ? w->ticket.clock : core->clock;
}

static void waiter_free(struct core *core, struct waiter *w) {
	list_remove(&w->link);
	list_remove(&w->by_peer);
	w->key->more->waiters--;
	core->waiter_count--;
	alloc_free(&core->alloc, w, sizeof *w + w->owner_size + w->identity_size + w->label_size);
}

bool queue_ahead(const struct key *key, struct id128 lock_id) {
	if (key->more == NULL) {
		return false;
	}
	for (const struct list *n = list_first(&key->more->queue); n; n = list_after(&key->more->queue, n)) {
		if (!id128_equal(CONTAINER_OF(n, struct waiter, link)->lock_id, lock_id)) {
			return true;
		}
	}
	return false;
}

/* Somebody with a wait time is in the queue, who is not this lock_id. */
static bool waits_ahead(const struct key_more *more, struct id128 lock_id) {
	for (const struct list *n = list_first(&more->queue); n; n = list_after(&more->queue, n)) {
		const struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (w->waits && !id128_equal(w->lock_id, lock_id)) {
			return true;
		}
	}
	return false;
}

/* ---- turns ---- */

/* "Your turn" is the home's promise, if it is free there; otherwise it says what stands in the way, and keeps the request. */
static void turn_to(struct core *core, struct waiter *w) {
	struct key *key = w->key;
	struct message ask = { .kind = MESSAGE_PROMISE, .round = w->round, .key = key_name(key), .lock_id = w->lock_id, .attempt = w->attempt,
		.identity = slice_of(w->bytes + w->owner_size, w->identity_size), .flags = FLAG_TURN, .terms = w->terms, .ticket = w->ticket };
	struct message turn = { .kind = MESSAGE_TURN, .round = w->round };
	w->turn = true;
	COUNT(core, turn_given);
	turn.status = rule_promise(core, key, &ask, w->peer);
	if (turn.status == STATUS_OK) {
		master_grant(core, key, &ask, w->peer, &turn);
		queue_promise_changed(core, key);
	} else if (turn.status == STATUS_HELD_SELF) {
		master_held_self(key, key_record(key, w->lock_id), &turn);
	} else {
		master_blocker(core, key, w->lock_id, &w->terms, &turn);
		if (queue_keep(core, key, w->peer, &ask, turn.status)) {
			turn.status = STATUS_KEPT;
		}
	}
	out_send(core, w->peer, &turn);
}

/* The first of the queue has the turn, whether the key is free or not, when none is out to one that is as important (section 10, Order). */
void queue_give_turn(struct core *core, struct key *key) {
	if (key->more == NULL || !core_votes(core)) {
		return;
	}
	struct waiter *first = NULL;
	bool out = false; /* a turn, to one that is less important */
	for (struct list *n = list_first(&key->more->queue); n; n = list_after(&key->more->queue, n)) {
		struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (w->turn && (first == NULL || w->terms.priority == first->terms.priority)) {
			return;
		}
		out = out || w->turn;
		/* the other entries of a coordinator that is just being lost are dropped next */
		first = first ? first : peer_reachable(core, w->peer) ? w : NULL;
	}
	if (first) {
		core->counts[COUNT_turn_overtaken] += out;
		turn_to(core, first);
	}
}

/* ---- entering and leaving ---- */

static struct waiter *find_waiter(const struct key *key, uint32_t peer, struct id128 lock_id) {
	for (struct list *n = key->more ? list_first(&key->more->queue) : NULL; n; n = list_after(&key->more->queue, n)) {
		struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (w->peer == peer && id128_equal(w->lock_id, lock_id)) {
			return w;
		}
	}
	return NULL;
}

const struct waiter *queue_named(const struct core *core, const struct key *key, struct slice owner, struct id128 but) {
	for (struct list *n = key->more ? list_first(&key->more->queue) : NULL; n; n = list_after(&key->more->queue, n)) {
		const struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (!id128_equal(w->lock_id, but) && slice_equal(slice_of(w->bytes, w->owner_size), owner) && peer_reachable(core, w->peer)) {
			return w;
		}
	}
	return NULL;
}

bool queue_turn_of(struct core *core, struct key *key, uint32_t peer, struct id128 lock_id) {
	struct waiter *w = find_waiter(key, peer, lock_id);
	if (w == NULL || w->turn) {
		return false;
	}
	turn_to(core, w);
	return true;
}

static void insert_sorted(struct core *core, struct key *key, struct waiter *w) {
	const struct place place = queue_place(w);
	struct list *at = key->more->queue.prev; /* mostly it belongs at the end */
	for (; at != &key->more->queue; at = at->prev) {
		const struct place other = queue_place(CONTAINER_OF(at, struct waiter, link));
		if (!queue_before(core, &place, &other)) {
			break;
		}
	}
	list_insert_before(at->next, &w->link);
	list_append(&core->peers[w->peer].waiters, &w->by_peer);
	key->more->waiters++;
	core->waiter_count++;
}

/* A try-lock is refused when somebody with a wait time is ahead, or a record that excludes it is held here. */
static enum status rule_enqueue(struct core *core, const struct key *key, const struct message *m) {
	if (!core_votes(core)) {
		return STATUS_RECOVERING;
	}
	if (!(m->flags & FLAG_WAIT) && key) {
		if (key->more && waits_ahead(key->more, m->lock_id)) {
			return STATUS_QUEUED;
		}
		if (key_other(key, m->lock_id, &m->terms)) {
			return STATUS_HELD;
		}
	}
	if (core->waiter_count >= core->limits.waiters || (key && key->more && key->more->waiters >= core->limits.waiters_per_key)) {
		COUNT(core, queue_refused_full);
		return STATUS_FULL;
	}
	return STATUS_OK;
}

static struct waiter *waiter_new(struct core *core, struct key *key, uint32_t from, const struct message *m) {
	if (table_more(core, key) == NULL) {
		return NULL;
	}
	struct waiter *w = alloc_new(&core->alloc, sizeof *w + m->owner.size + m->identity.size + m->label.size);
	if (w == NULL) {
		COUNT(core, no_memory);
		return NULL;
	}
	w->key = key;
	w->lock_id = m->lock_id;
	w->attempt = m->attempt;
	w->round = m->round;
	w->ticket = m->ticket;
	w->since = instant_add(core->now, -span_from_us(m->left_us));
	w->peer = from;
	w->terms = m->terms;
	w->waits = (m->flags & FLAG_WAIT) != 0;
	w->terms = m->terms;
	w->label_size = (uint16_t)m->label.size;
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
	struct waiter *old = key ? find_waiter(key, from, m->lock_id) : NULL;
	if (old) {
		waiter_free(core, old);
	}
	answer.status = rule_enqueue(core, key, m);
	struct waiter *w = NULL;
	if (answer.status == STATUS_OK) {
		key = key ? key : table_make(core, m->key);
		w = key ? waiter_new(core, key, from, m) : NULL;
		answer.status = w ? STATUS_OK : STATUS_FULL;
	} else {
		master_blocker(core, key, m->lock_id, &m->terms, &answer);
	}
	if (w) {
		stamp(core, w);
		answer.ticket = w->ticket;
		insert_sorted(core, key, w);
	}
	out_send(core, from, &answer);
	if (w && key_record(key, w->lock_id)) {
		turn_to(core, w); /* its own lock_id is held: it has its turn at once */
	}
	if (key) {
		queue_give_turn(core, key);
		table_settle(core, key);
	}
}

/* Withdraw drops the promise, the kept request or the queue entry that this attempt made, nothing else: never a held record. */
void queue_withdraw(struct core *core, uint32_t from, const struct message *m) {
	struct key *key = table_find(core, m->key);
	if (key == NULL) {
		return;
	}
	bool gone = false;
	struct promise *p = key->promise;
	if (m->attempt && p && id128_equal(p->lock_id, m->lock_id)) {
		if (p->peer == from && p->attempt == m->attempt) {
			COUNT(core, withdraw_found);
			key_drop_promise(core, key);
			timer_stop(core, &key->timer);
			gone = true;
		} else {
			COUNT(core, withdraw_replaced);
		}
	}
	for (struct list *n = key->more && m->attempt ? list_first(&key->more->kept) : NULL; n; n = list_after(&key->more->kept, n)) {
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		if (k->peer == from && k->attempt == m->attempt) {
			queue_kept_free(core, k);
			gone = true;
			break;
		}
	}
	if (gone) {
		queue_kept_again(core, key);
	}
	if (m->ticket.seq) {
		queue_drop_ticket(core, key, from, m->ticket.seq);
	}
	table_settle(core, key);
}

void queue_drop_ticket(struct core *core, struct key *key, uint32_t from, uint64_t seq) {
	for (struct list *n = key->more ? list_first(&key->more->queue) : NULL; n; n = list_after(&key->more->queue, n)) {
		struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (w->peer == from && w->ticket.seq == seq) {
			waiter_free(core, w);
			queue_give_turn(core, key);
			return;
		}
	}
}

/* A release drops everything of the lock_id, and ends its wait, whichever node it came through (section 2, Release). */
void queue_drop_lock(struct core *core, struct key *key, struct id128 lock_id) {
	if (key->more == NULL) {
		return;
	}
	for (struct list *n = list_first(&key->more->kept), *next; n; n = next) {
		next = list_after(&key->more->kept, n);
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		if (id128_equal(k->lock_id, lock_id)) {
			queue_kept_free(core, k);
		}
	}
	for (struct list *n = list_first(&key->more->queue), *next; n; n = next) {
		next = list_after(&key->more->queue, n);
		struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (id128_equal(w->lock_id, lock_id)) {
			out_send(core, w->peer, &(struct message){ .kind = MESSAGE_ENQUEUE_ANSWER, .round = w->round, .status = STATUS_RELEASED });
			waiter_free(core, w);
		}
	}
	queue_kept_again(core, key);
	queue_give_turn(core, key);
}

/* A record has become held: try-locks in the queue that it excludes are refused; an entry whose own lock_id it is has its turn at once. */
void queue_record_held(struct core *core, struct key *key, struct id128 lock_id, uint32_t by) {
	if (key->more == NULL) {
		return;
	}
	for (struct list *n = list_first(&key->more->queue), *next; n; n = next) {
		next = list_after(&key->more->queue, n);
		struct waiter *w = CONTAINER_OF(n, struct waiter, link);
		if (id128_equal(w->lock_id, lock_id)) {
			if (w->peer != by) { /* its own commit drops the entry anyway */
				turn_to(core, w);
			}
		} else if (!w->waits && key_other(key, w->lock_id, &w->terms)) {
			struct message refused = { .kind = MESSAGE_ENQUEUE_ANSWER, .round = w->round, .status = STATUS_HELD };
			master_blocker(core, key, w->lock_id, &w->terms, &refused);
			out_send(core, w->peer, &refused);
			waiter_free(core, w);
		}
	}
	queue_give_turn(core, key);
}

/* ---- links ---- */

/* Promises, kept requests and queue entries end with the link to their coordinator. */
static void drop_claims(struct core *core, struct peer *p) {
	struct list *n;
	while ((n = list_first(&p->kept)) != NULL) {
		struct key *key = CONTAINER_OF(n, struct kept, by_peer)->key;
		queue_kept_free(core, CONTAINER_OF(n, struct kept, by_peer));
		queue_kept_again(core, key);
		table_settle(core, key);
	}
	while ((n = list_first(&p->promises)) != NULL) {
		struct key *key = CONTAINER_OF(n, struct promise, by_peer)->key;
		key_drop_promise(core, key);
		timer_stop(core, &key->timer);
		queue_kept_again(core, key);
		table_settle(core, key);
	}
}

void queue_peer_lost(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	struct list *n;
	drop_claims(core, p);
	while ((n = list_first(&p->waiters)) != NULL) {
		struct waiter *w = CONTAINER_OF(n, struct waiter, by_peer);
		struct key *key = w->key;
		COUNT(core, waiter_dropped);
		waiter_free(core, w);
		queue_give_turn(core, key);
		table_settle(core, key);
	}
	drop_claims(core, p); /* a turn went to its next waiter meanwhile: promised, or kept */
}

/* The node stops voting: its promises and queues are gone. */
void queue_forget_all(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		queue_peer_lost(core, i);
	}
}

void queue_free_all(struct core *core, struct key *key) {
	struct list *n;
	while ((n = list_first(&key->more->kept)) != NULL) {
		queue_kept_free(core, CONTAINER_OF(n, struct kept, link));
	}
	while ((n = list_first(&key->more->queue)) != NULL) {
		waiter_free(core, CONTAINER_OF(n, struct waiter, link));
	}
}
