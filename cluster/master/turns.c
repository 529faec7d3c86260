/* turns.c: the home gives turns to the first requests in the queue of a key (section 5, The turn
 * and Together; section 10, Order). */
#include "master.h"

/* Keys that are given their turn in one piece. */
#define MOVED_PIECE 256

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
		/* A turn has no age. Its home lacked the lock_id when it promised. */
		turn.age_us = 0;
		queue_parked_again(core, key);
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
		!list_linked(&key_more(key)->refusing) && queue_drop_lost(core, key_more(key))) {
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

/* Gives the turn to this coordinator's entry, which the holder has named. False: there is none, or
 * it has the turn already. */
static bool turn_of(struct core *core, struct key *key, uint32_t peer, struct id128 lock_id) {
	struct waiter *w = queue_find(core, key, peer, lock_id);
	if (w == NULL || w->turn || waiter_lost(core, w)) {
		return false;
	}
	(void)turns_to(core, w, true, false);
	return true;
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
	struct parked *k = queue_parked_find(core, key, peer, successor->lock_id);
	if (k == NULL && turn_of(core, key, peer, successor->lock_id)) {
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

void queue_moved_timer(struct core *core) {
	struct queues *queues = &core->master.queues;
	struct list *n;
	for (uint32_t i = 0; (n = list_first(&queues->moved)) != NULL; i++) {
		struct key_more *more = CONTAINER_OF(n, struct key_more, moved);
		if (i == MOVED_PIECE || !instant_expired(core->now, more->turn_at)) {
			/* A timer whose time has passed would fire again in this step. */
			timer_at(core, &queues->moved_timer, TIMER_MOVED,
				i == MOVED_PIECE ? instant_add(core->now, 1) : more->turn_at);
			return;
		}
		struct key *key = more->key;
		list_remove(n);
		queue_give_turn(core, key);
		table_settle(core, key);
	}
}
