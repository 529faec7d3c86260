/* parked.c: requests that have a turn and are parked behind a held record or a promise (section 5).
 * A release lets the next of them go on within one message, and nobody polls. */
#include "master.h"

static struct parked *parked_of(struct queued *q) {
	return q ? CONTAINER_OF(q, struct parked, q) : NULL;
}

/* Section 10, Order: parked requests stand in the same order as the home's queue. */
static void enter(struct core *core, struct parked *k) {
	struct key_more *more = key_more(k->q.key);
	if (more->parked_count++ == 0) {
		more->parked_peer = k->q.peer;
	}
	more->parked_others += k->q.peer != more->parked_peer;
	queued_enter(core, &core->master.queues.parked, &key_more(k->q.key)->parked, &k->q);
}

static void leave(struct core *core, struct parked *k) {
	key_more(k->q.key)->parked_count--;
	key_more(k->q.key)->parked_others -= k->q.peer != key_more(k->q.key)->parked_peer;
	queued_leave(core, &core->master.queues.parked, &key_more(k->q.key)->parked, &k->q);
}

void queue_parked_free(struct core *core, struct parked *k) {
	leave(core, k);
	list_remove(&k->q.by_peer);
	alloc_free(&core->alloc, k, sizeof *k);
}

struct parked *queue_parked_next(const struct core *core, const struct key *key,
	const struct parked *behind) {
	if (key_more(key) == NULL) {
		return NULL;
	}
	return parked_of(behind ? queued_after(core, key_more(key)->parked, &behind->q)
		: queued_first(key_more(key)->parked));
}

bool queue_parked_alone(const struct key *key, uint32_t peer) {
	const struct key_more *more = key_more(key);
	return more == NULL || more->parked_count == 0 ||
		(more->parked_peer == peer && more->parked_others == 0);
}

static struct parked *find_parked(const struct core *core, const struct key *key, uint32_t peer,
	struct id128 lock_id) {
	return key_more(key)
		? parked_of(queued_find(core, &core->master.queues.parked, key, peer, lock_id))
		: NULL;
}

bool queue_parked(const struct core *core, const struct key *key, const struct queued *entry) {
	return find_parked(core, key, entry->peer, entry->lock_id) != NULL;
}

bool queue_parked_withdrawn(struct core *core, struct key *key, uint32_t from,
	const struct message *m) {
	struct parked *k = find_parked(core, key, from, m->lock_id);
	if (k == NULL || k->q.attempt != m->attempt) {
		return false;
	}
	queue_parked_free(core, k);
	return true;
}

bool queue_parked_ahead(const struct key *key, struct id128 lock_id) {
	const struct queued *first = key_more(key) ? queued_first(key_more(key)->parked) : NULL;
	return first && !id128_equal(first->lock_id, lock_id);
}

bool queue_ahead(const struct core *core, const struct key *key, const struct message *m) {
	const struct key_more *more = key_more(key);
	if (more == NULL || queue_first_other(core, more, m->lock_id, PARTS_NO_TURN)) {
		return more != NULL;
	}
	const struct waiter *w = queue_first_other(core, more, m->lock_id, PARTS_TURN);
	/* Section 5, Together: a shared lock takes nothing from those that have their turns, and a
	 * permit nothing from those that have numbers. Few entries have a turn. */
	while (w && m->terms.of != MODE_EXCLUSIVE && !terms_exclude(&w->q.terms, &m->terms) &&
		(m->terms.of == MODE_SHARED || key_promise(key, w->q.lock_id))) {
		w = queue_next(core, more, &w->q, PARTS_TURN);
	}
	return w != NULL;
}

bool queue_parked_before(const struct core *core, const struct key *key, struct id128 lock_id,
	const struct place *place) {
	if (!queue_parked_ahead(key, lock_id)) {
		return false;
	}
	const struct place ahead = queued_place(queued_first(key_more(key)->parked));
	return queue_before(core, &ahead, place);
}

/* Section 5: a request may wait behind a held record, behind a parked request that comes before it
 * in the order, and behind the promise of a request that comes before it, or has no turn. A request
 * without a turn does not wait while it has promises, and all that wait for one another do so in
 * one order; so they never wait in a circle. */
bool queue_may_wait(const struct core *core, const struct key *key, const struct place *place,
	enum status refused) {
	if (refused != STATUS_PROMISED) {
		return refused == STATUS_HELD || refused == STATUS_CONTESTED ||
			refused == STATUS_QUEUED;
	}
	bool may = true;
	for (const struct promise *p = key_promises(key); p && may; p = p->next) {
		const struct place ahead = { p->terms.priority, p->ticket, p->peer };
		/* The order is not known where there is no stamp, as after a hand-over. */
		may = !p->turn || (p->ticket.clock && queue_before(core, &ahead, place));
	}
	return may;
}

bool queue_park(struct core *core, struct key *key, uint32_t from, const struct message *m,
	enum status refused) {
	const struct place place = { m->terms.priority, m->ticket, from };
	if (key_record(key, m->lock_id) || !queue_may_wait(core, key, &place, refused)) {
		queue_drop_parked(core, key, from, m->lock_id);
		return false;
	}
	struct key_more *more = table_more(core, key);
	if (more == NULL) {
		return false;
	}
	struct parked *k = find_parked(core, key, from, m->lock_id);
	if (k) {
		/* The request was stamped in the meantime, or its node has returned the turn. */
		const bool moves = k->q.ticket.clock != m->ticket.clock ||
			k->q.ticket.seq != m->ticket.seq;
		leave(core, k);
		k->q.attempt = m->attempt;
		k->q.round = m->round;
		k->q.terms = m->terms;
		k->q.ticket = m->ticket;
		k->q.first = m->ballot;
		enter(core, k);
		if (moves) {
			queue_parked_again(core, key);
		}
		return true;
	}
	if (more->parked_count >= core->limits.waiters_per_key) {
		return false;
	}
	k = alloc_new(&core->alloc, sizeof *k);
	if (k == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	k->q = (struct queued){ .key = key, .lock_id = m->lock_id, .attempt = m->attempt,
		.round = m->round, .ticket = m->ticket, .peer = from,
		.lost = core->peers[from].lost, .terms = m->terms, .first = m->ballot };
	enter(core, k);
	list_append(&core->peers[from].parked, &k->q.by_peer);
	return true;
}

void queue_drop_parked(struct core *core, struct key *key, uint32_t from, struct id128 lock_id) {
	struct parked *k = find_parked(core, key, from, lock_id);
	if (k) {
		queue_parked_free(core, k);
	}
	queue_promise_changed(core, key);
}

/* A record has ended, or excludes less than before. */
void queue_record_ended(struct core *core, struct key *key) {
	if (key_promises(key)) {
		master_promise_again(core, key);
	}
	if (key_more(key)) {
		queue_parked_again(core, key);
		queue_give_turn(core, key);
	}
}

/* Promises to the first parked request as soon as nothing excludes it, which may be because it has
 * become the first. A request that may not wait any longer is told what is in its way. */
void queue_parked_again(struct core *core, struct key *key) {
	while (key_more(key) && core_votes(core)) {
		struct queued *first = queued_first(key_more(key)->parked);
		if (first == NULL) {
			return;
		}
		struct message ask = { .kind = MESSAGE_PROMISE, .lock_id = first->lock_id,
			.attempt = first->attempt, .flags = FLAG_TURN, .terms = first->terms,
			.ticket = first->ticket, .ballot = first->first };
		const struct place place = queued_place(first);
		/* Another attempt for the lock_id may have been faster, so that its record has been
		 * learned since. */
		const struct record *own = key_record(key, ask.lock_id);
		ask.identity = own ? record_identity(own) : ask.identity;
		struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = first->round,
			.status = rule_promise(core, key, first->peer, &ask) };
		uint32_t peer = first->peer;
		if (!own && queue_may_wait(core, key, &place, answer.status)) {
			/* No other request may pass this one (section 10, Order). */
			return;
		}
		queue_parked_free(core, parked_of(first));
		if (answer.status == STATUS_HELD_SELF) {
			master_held_self(core, key, own, &answer);
		} else if (answer.status == STATUS_OK) {
			COUNT(core, parked_promised);
			master_grant(core, key, &ask, peer, &answer);
		} else {
			master_blocker(core, key, ask.lock_id, &ask.terms, &answer);
		}
		out_send(core, peer, &answer);
	}
}

static uint32_t peer_of(const struct core *core, struct id128 node) {
	uint32_t i = 0;
	while (i < core->peer_count &&
		!(id128_equal(core->peers[i].node.id, node) && peer_reachable(core, i))) {
		i++;
	}
	return i;
}

/* Section 10, Hand-over: promises to the request that the holder named, before any other request
 * is considered. The promise carries the name of the attempt that asked last, as far as this master
 * knows it. Where something else stands in the way, this was a release like any other. */
void queue_hand_over(struct core *core, struct key *key, const struct successor *successor) {
	uint32_t peer = peer_of(core, successor->node);
	if (peer == core->peer_count || !core_votes(core)) {
		return;
	}
	struct parked *k = find_parked(core, key, peer, successor->lock_id);
	if (k == NULL && queue_turn_of(core, key, peer, successor->lock_id)) {
		core->counts[COUNT_hand_over_promised] +=
			key_promise(key, successor->lock_id) != NULL;
		return;
	}
	struct message ask = { .kind = MESSAGE_PROMISE, .lock_id = successor->lock_id,
		.attempt = k ? k->q.attempt : successor->attempt, .flags = FLAG_TURN,
		.ballot = k ? k->q.first : successor->first };
	if (k) {
		ask.terms = k->q.terms;
		ask.ticket = k->q.ticket;
	}
	struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = ask.attempt,
		.status = rule_promise(core, key, peer, &ask) };
	if (answer.status != STATUS_OK) {
		return;
	}
	if (k) {
		answer.round = k->q.round;
		queue_parked_free(core, k);
	}
	COUNT(core, hand_over_promised);
	master_grant(core, key, &ask, peer, &answer);
	out_send(core, peer, &answer);
}
