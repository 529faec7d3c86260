/* turns.c: the home gives turns to the first requests in the queue of a key (section 5, The turn
 * and Together; section 10, Order). */
#include "master.h"
#include "first.h"

/* Gives the turn. "Your turn" is at the same time the home's promise, if the key is free here;
 * otherwise the message says what stands in the way, and the request is parked. `next_to`: it is
 * given only if it may stand next to others (section 5, Together). Returns whether it was given. */
static bool turn_to(struct core *core, struct waiter *w, bool named, bool next_to) {
	const struct queued *q = &w->q;
	struct key *key = q->key;
	struct message ask = { .kind = MESSAGE_PROMISE, .round = q->round, .key = key_name(key),
		.lock_id = q->lock_id, .attempt = q->attempt,
		.identity = waiter_identity(w),
		.flags = FLAG_TURN, .terms = q->terms, .ticket = q->ticket };
	struct message turn = { .kind = MESSAGE_TURN, .round = q->round };
	/* A request that the holder has named passes those that are parked (section 10,
	 * Hand-over). */
	turn.status = named ? rule_promise(core, key, q->peer, &ask)
		: rule_promise_in_order(core, key, q->peer, &ask);
	if (next_to && !rule_turn_next(core, key, q, turn.status)) {
		return false;
	}
	ask.ballot = turn.ballot = first_of_waiter(core, w);
	queue_mark_turn(core, w);
	COUNT(core, turn_given);
	if (turn.status == STATUS_OK) {
		master_grant(core, key, &ask, q->peer, &turn);
		queue_promise_changed(core, key);
	} else if (turn.status == STATUS_HELD_SELF) {
		master_held_self(core, key, key_record(key, q->lock_id), &turn);
	} else {
		master_blocker(core, key, q->lock_id, &q->terms, &turn);
		if (queue_park(core, key, q->peer, &ask, turn.status)) {
			turn.status = STATUS_PARKED;
		}
	}
	out_send(core, q->peer, &turn);
	return true;
}

/* Gives the turn to the entry, and to the others for its request (section 5, Sent again). */
static bool turns_to(struct core *core, struct waiter *w, bool named, bool next_to) {
	if (!turn_to(core, w, named, next_to)) {
		return false;
	}
	for (struct waiter *twin = queue_twin(core, w, NULL); twin;
		twin = queue_twin(core, w, twin)) {
		if (!twin->turn) {
			COUNT(core, turn_again);
			(void)turn_to(core, twin, named, false);
		}
	}
	return true;
}

/* Section 5, Together: tells whether the first entry without a turn may have one while this
 * entry has one. Nobody goes next to a request for permits that was refused here. */
static bool may_go_together(const struct core *core, const struct key *key,
	const struct waiter *out, const struct waiter *first) {
	return rule_together(core, out->q.peer, first->q.peer, first->q.terms.of) &&
		!terms_exclude(&out->q.terms, &first->q.terms) &&
		key_more(key)->turns < PROMISES_A_KEY &&
		(!terms_semaphore(&out->q.terms) || key_promise(key, out->q.lock_id) ||
			queue_parked(core, key, &out->q));
}

/* Gives turns to the first entries that have none, whether the key is free or not. While an entry
 * has a turn, another of the same priority has one only next to it (section 10, Order). Who waits
 * for permits and is parked is the last one in this step (section 5, Together). */
void queue_give_turn(struct core *core, struct key *key) {
	const uint32_t parked = key_more(key) ? key_more(key)->parked_count : 0;
	while (key_more(key) && key_more(key)->waiters > 0 && core_votes(core) &&
		queue_drop_lost(core, key_more(key))) {
		struct waiter *first = queue_next(core, key_more(key), NULL, PARTS_NO_TURN);
		/* Of the entries with a turn, this is the one with the highest priority. */
		const struct waiter *out = queue_next(core, key_more(key), NULL, PARTS_TURN);
		const bool same = first && out && out->q.terms.priority == first->q.terms.priority;
		const bool ahead = same && queue_moved_ahead(core, key_more(key), out, first);
		if (first == NULL || queue_moved_waits(core, key_more(key), out) ||
			(same && !ahead && !may_go_together(core, key, out, first)) ||
			(out && out->q.terms.priority > first->q.terms.priority)) {
			return;
		}
		if (terms_semaphore(&first->q.terms) && key_more(key)->parked_count > parked) {
			return;
		}
		if (!turns_to(core, first, false, same && !ahead)) {
			return;
		}
		core->counts[same && !ahead ? COUNT_turn_together : COUNT_turn_overtaken] +=
			out != NULL;
	}
}

void queue_turn_again(struct core *core, struct waiter *w) {
	(void)turn_to(core, w, false, false);
}

bool queue_turn_of(struct core *core, struct key *key, uint32_t peer, struct id128 lock_id) {
	struct waiter *w = queue_find(core, key, peer, lock_id);
	if (w == NULL || w->turn || waiter_lost(core, w)) {
		return false;
	}
	(void)turns_to(core, w, true, false);
	return true;
}
