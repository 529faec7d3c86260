/* parked.c: requests that have a turn and are parked behind a held record or a promise (section 5).
 * A release lets the next of them go on within one message, and nobody polls. */
#include "master.h"

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
	struct parked *k = queue_parked_find(core, key, from, m->lock_id);
	if (k) {
		/* The request was stamped in the meantime, or its node has returned the turn. */
		const bool moves = k->q.ticket.clock != m->ticket.clock ||
			k->q.ticket.seq != m->ticket.seq;
		queue_parked_leave(core, k);
		list_remove(&k->q.by_peer);
		k->q.lost = core->peers[from].lost;
		k->q.attempt = m->attempt;
		k->q.round = m->round;
		k->q.terms = m->terms;
		k->q.ticket = m->ticket;
		k->q.first = m->ballot;
		queue_parked_enter(core, k);
		list_append(&core->peers[from].parked, &k->q.by_peer);
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
	queue_parked_enter(core, k);
	list_append(&core->peers[from].parked, &k->q.by_peer);
	return true;
}

void queue_drop_parked(struct core *core, struct key *key, uint32_t from, struct id128 lock_id) {
	struct parked *k = queue_parked_find(core, key, from, lock_id);
	if (k) {
		queue_parked_free(core, k);
	}
	queue_parked_again(core, key);
}

/* Frees a lost request that stands first. False: it has to wait for the next turn of the loop, and
 * so do those behind it. */
static bool drop_lost(struct core *core, struct parked *first) {
	if (turn_pieces(core)->lost == 0) {
		return false;
	}
	turn_pieces(core)->lost--;
	COUNT(core, claim_dropped);
	queue_parked_free(core, first);
	return true;
}

/* Promises to the first parked request as soon as nothing excludes it, which may be because it has
 * become the first. A request that may not wait any longer is told what is in its way. */
void queue_parked_again(struct core *core, struct key *key) {
	while (key_more(key) && core_votes(core)) {
		struct queued *first = queued_first(key_more(key)->parked);
		if (first == NULL) {
			return;
		}
		if (queued_lost(core, first)) {
			if (!drop_lost(core, parked_of(first))) {
				return;
			}
			continue;
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

