/* home.c: an attempt and its home, the master that keeps its place in the order (section 5): which
 * master that is, entering its queue, and moving to another home. */
#include "acquire.h"

/* So many requests are looked at for one that waits for a turn. */
#define QUEUES_LOOKED 4

/* Returns the first voting master that this node is linked with, in the order of hash(key, master);
 * one that is suspect only if there is no other. -1: there is none. */
int attempt_home(const struct core *core, struct slice key) {
	/* The order is the same on every node. */
	static const struct siphash_key order = { 0x7061776c20686f6du, 0x65206f662061206bu };
	uint64_t h = siphash(order, key.data, key.size), best = 0;
	int home = -1;
	for (uint32_t i = 0; i < core->masters; i++) {
		uint64_t rank = (h ^ id128_word(core->peers[i].node.id)) * 0x9e3779b97f4a7c15u;
		rank ^= rank >> 31;
		/* The highest bit stands for a master that is not suspect. */
		rank = rank >> 1 | (uint64_t)!peer_suspect(core, i) << 63;
		if (peer_votes(core, i) && (home < 0 || rank > best)) {
			home = (int)i;
			best = rank;
		}
	}
	return home;
}

/* Section 5, Ending: the entry ends where no commit was accepted. The attempt asks that master
 * again, so that it goes on with whatever else is kept there. */
static void leave_home(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	if (acquire->ticket.seq && acquire->home >= 0) {
		COUNT(core, place_left);
		attempt_withdraw_at(core, op, (uint32_t)acquire->home, false, true);
	}
}

/* The attempt begins again. If the home that refused its commit is still its home, the place there
 * is kept; otherwise the attempt is entered at the new one. */
void attempt_home_is(struct core *core, struct op *op, int home) {
	struct acquire_state *acquire = op_acquire(op);
	if (home != acquire->home) {
		leave_home(core, op);
	}
	acquire->home = home;
}

void attempt_queued_begins(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	if (core->coordinator.slow_after && acquire->queued_after == 0) {
		slow_queued(core, op);
	}
	if (!list_linked(&acquire->queued)) {
		/* Those that have waited for the shortest time come first. */
		list_prepend(&core->coordinator.queued_at[op->key_hash % QUEUED_PLACES],
			&acquire->queued);
		core->coordinator.queued_count++;
	}
}

/* It asks all the same if the lock is held already, as far as this node knows: its home may not
 * know that. */
bool attempt_queues(struct core *core, const struct op *op) {
	const struct list *place = &core->coordinator.queued_at[op->key_hash % QUEUED_PLACES];
	uint32_t looked = 0;
	for (const struct list *n = list_first(place); n && looked < QUEUES_LOOKED;
		n = list_after(place, n), looked++) {
		const struct op *other = CONTAINER_OF(n, const struct op, as.acquire.queued);
		if (other->state == OP_QUEUED && other->key_hash == op->key_hash
			&& slice_equal(other->key, op->key)) {
			const struct key *key = table_find_hashed(core, op->key, op->key_hash);
			return key == NULL || key_record(key, op->lock_id) == NULL;
		}
	}
	return false;
}

/* Section 5, Silence. Where the key only shares its place with one that requests of this node wait
 * for, a silent master may be pinged, and nothing else. */
void attempt_key_changed(struct core *core, const struct key *key, bool held) {
	const uint32_t place = key->node.hash % QUEUED_PLACES;
	if (list_empty(&core->coordinator.queued_at[place]) || !key_is_live(core, key)) {
		return;
	}
	const int home = held ? -1 : attempt_home(core, key_name(key));
	if (held) {
		peers_turn_given(core, place);
	} else if (home >= 0) {
		peer_expect_turn(core, (uint32_t)home, place);
	}
}

/* `moved`: the request comes from another home. */
static void enqueue_at(struct core *core, struct op *op, bool moved) {
	struct acquire_state *acquire = op_acquire(op);
	acquire->home_stopped = core->peers[acquire->home].stopped;
	struct message m = op_message(op, MESSAGE_ENQUEUE);
	m.round = acquire->queue_round;
	m.attempt = acquire->attempt;
	m.ticket = acquire->ticket;
	m.ballot = acquire->ballot;
	m.left_us = (uint64_t)instant_elapsed_long(core->now, op->arrived) / 1000;
	m.flags = (acquire->try_lock ? 0 : FLAG_WAIT) | (moved ? FLAG_MOVED : 0);
	out_send(core, (uint32_t)acquire->home, &m);
	if (acquire->home != (int)core->self) {
		peer_expect(core, (uint32_t)acquire->home, m.round);
	}
}

static void enqueue(struct core *core, struct op *op, bool moved) {
	struct acquire_state *acquire = op_acquire(op);
	attempt_queued_begins(core, op);
	if (acquire->ticket.seq == 0) {
		/* The home gives the stamp. */
		acquire->ticket = (struct ticket){ 0, ++core->coordinator.ticket_next };
	}
	acquire->attempt = acquire->queue_round = op_next_round(core, op);
	acquire->since = core->now;
	/* The home draws a ballot when the request has its turn. */
	acquire->ballot = acquire->resumes ? acquire->ballot : (struct ballot){ 0, 0, 0 };
	op->state = OP_QUEUED;
	acquire->rival_waiting = false;
	acquire->home = attempt_home(core, op->key);
	if (acquire->home >= 0) {
		enqueue_at(core, op, moved);
	} else {
		core->coordinator.home_missing = true;
	}
	timer_at(core, &op->timer, TIMER_OP, op->until);
}

void attempt_enqueue(struct core *core, struct op *op) {
	enqueue(core, op, false);
}

/* Whenever its home changes, a request is entered again with the same ticket. The stamp is its
 * place among all requests that wait anywhere. */
static void rehome(struct core *core, struct op *op) {
	struct acquire_state *acquire = op_acquire(op);
	int home = attempt_home(core, op->key);
	bool waits = op->state == OP_QUEUED || op->state == OP_TURN || op->state == OP_PAUSED;
	/* The entry is gone, whether the home is back or not. */
	const bool stopped = acquire->home >= 0 &&
		core->peers[acquire->home].stopped != acquire->home_stopped;
	if (!waits || (home == acquire->home && !stopped)) {
		core->coordinator.home_missing = core->coordinator.home_missing ||
			(waits && home < 0);
		return;
	}
	/* The former home is still there, and silent, or not the first one any more. */
	const bool moves = acquire->home >= 0 && !stopped &&
		peer_reachable(core, (uint32_t)acquire->home);
	if (moves) {
		COUNT(core, home_changed);
		/* With a second turn comes a promise that the attempt has not heard of. */
		const uint32_t counts = VOTE_BIT(VOTE_OK) | VOTE_BIT(VOTE_SELF) |
			VOTE_BIT(VOTE_PARKED) | VOTE_BIT(VOTE_ASKED);
		const bool vote = op->state == OP_TURN &&
			(counts >> op->votes[acquire->home].state & 1);
		attempt_withdraw_at(core, op, (uint32_t)acquire->home, !vote, true);
	} else if (acquire->home >= 0) {
		COUNT(core, home_lost);
	}
	acquire->home = home;
	if (op->state == OP_QUEUED) {
		enqueue(core, op, moves);
	} else if (home >= 0) {
		/* The request goes on with the turn it has, and will have it when the new home
		 * gives its own. */
		acquire->queue_round = op->round;
		enqueue_at(core, op, moves);
	}
}

/* Puts a waiting request at the end of the list. Requests that have not looked for their home since
 * it may have changed stand at the beginning. */
void attempt_waits(struct core *core, struct op *op) {
	op_acquire(op)->home_changes = core->coordinator.home_changes;
	list_append(&core->coordinator.waiting, &op->waiting);
}

void attempt_rehome_go_on(struct core *core) {
	while (turn_pieces(core)->homes > 0 && attempt_rehome_left(core)) {
		struct op *op = CONTAINER_OF(list_first(&core->coordinator.waiting), struct op,
			waiting);
		turn_pieces(core)->homes--;
		list_remove(&op->waiting);
		attempt_waits(core, op);
		rehome(core, op);
		if (peers_suspect(core) > 0 &&
			(op->state == OP_ASKING || op->state == OP_TURN)) {
			/* It does not wait for the votes of masters that are suspect by now. */
			attempt_evaluate(core, op);
		}
	}
	pending_left(core, PENDING_HOMES, attempt_rehome_left(core));
}

/* Requests look for their homes in pieces, because many may wait. */
void attempt_rehome_all(struct core *core) {
	core->coordinator.home_missing = false;
	core->coordinator.home_changes++;
	attempt_rehome_go_on(core);
}

/* Returns the lock terms under which the key is held. A home that refuses an entry does not say
 * them, but mostly this node has the record, too. */
static struct terms terms_in_the_way(const struct core *core, const struct op *op,
	const struct message *m) {
	const struct key *key = m->kind == MESSAGE_ENQUEUE_ANSWER ? table_peek(core, op->key)
		: NULL;
	const struct record *r = key ? key_record(key, m->by) : NULL;
	return r ? record_terms(r) : m->terms;
}

/* Notes for the answer "held" who holds the key, as far as a master told. */
void attempt_note_holder(struct core *core, struct op *op, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	acquire->contested_seen = acquire->contested_seen || m->status == STATUS_CONTESTED;
	if ((m->status != STATUS_HELD && m->status != STATUS_CONTESTED) ||
		(acquire->holder && acquire->holder->token >= m->token)) {
		return;
	}
	struct message who = { .owner = m->owner, .token = m->token,
		.terms = terms_in_the_way(core, op, m) };
	struct record *r = record_new(core, &who);
	if (r) {
		r->end = instant_add(core->now, span_from_us(m->left_us));
		record_free(core, acquire->holder);
		acquire->holder = r;
	}
}

void attempt_queue_answer(struct core *core, struct op *op, const struct message *m) {
	struct acquire_state *acquire = op_acquire(op);
	attempt_note_holder(core, op, m);
	if (m->ticket.clock && m->ticket.seq == acquire->ticket.seq) {
		acquire->ticket.clock = m->ticket.clock;
	}
	switch (m->status) {
	/* The request is withdrawn all the same: this may be the answer to an earlier entry, from
	 * before the home changed and changed back. */
	case STATUS_QUEUED: case STATUS_HELD: case STATUS_CONTESTED:
		attempt_fail(core, op, PAWL_EHELD);
		break;
	case STATUS_FULL:
		if (acquire->ticket.clock == 0) {
			attempt_fail(core, op, PAWL_EFULL);
			break;
		}
		/* It had a place elsewhere, and does not lose its wait because it had to move: it
		 * looks for a home again with each beat. */
		acquire->home = op->state == OP_QUEUED ? -1 : acquire->home;
		core->coordinator.home_missing = true;
		break;
	case STATUS_RELEASED:
		/* The lock was released through another node. */
		attempt_fail(core, op, PAWL_ELOST);
		break;
	case STATUS_RECOVERING:
		/* The master does not vote, or no longer votes. The request looks for a home
		 * again. */
		acquire->home = op->state == OP_QUEUED ? -1 : acquire->home;
		core->coordinator.home_missing = true;
		break;
	case STATUS_OK: case STATUS_HELD_SELF: case STATUS_PARKED: case STATUS_NEED:
	case STATUS_PROMISED: case STATUS_STALE: case STATUS_TOO_LONG: case STATUS_CLOCK:
	case STATUS_EPOCH: case STATUS_DENIED: case STATUS_BARRED: case STATUS_BALLOT:
	case STATUS_ABSENT: case STATUS_TERMS: case STATUS_LATER:
		break;
	}
}

/* ---- no quorum ---- */

/* A node without a quorum answers the requests that wait there, so that their clients go on at
 * another node (section 5, No quorum). */

/* ---- answering ---- */

/* An attempt in one of these states waits for others: nothing ends it but a turn or its time. */
static bool waits_for_others(const struct op *op) {
	return op->state == OP_QUEUED || op->state == OP_TURN || op->state == OP_PAUSED;
}

void attempt_unserved_beat(struct core *core, bool quorum_lost) {
	core->coordinator.no_quorum = quorum_lost && !epoch_passes(core);
	core->coordinator.unserved = core->coordinator.no_quorum
		? core->coordinator.waiting_count : 0;
	if (core->coordinator.no_quorum) {
		pending_add(core, PENDING_UNSERVED);
		pending_add(core, PENDING_UNSERVED_WAITS);
	}
}

void attempt_unserved_go_on(struct core *core) {
	while (attempt_unserved_left(core) && turn_pieces(core)->homes > 0) {
		struct op *op = CONTAINER_OF(list_first(&core->coordinator.waiting), struct op,
			waiting);
		turn_pieces(core)->homes--;
		core->coordinator.unserved--;
		list_remove(&op->waiting);
		list_append(&core->coordinator.waiting, &op->waiting);
		if (waits_for_others(op)) {
			COUNT(core, wait_unserved);
			attempt_fail(core, op, PAWL_ENOQUORUM);
		}
	}
	if (list_empty(&core->coordinator.waiting)) {
		/* Who begins to wait from now on waits until the next beat. */
		core->coordinator.unserved = 0;
	}
	pending_left(core, PENDING_UNSERVED, core->coordinator.unserved > 0);
}
