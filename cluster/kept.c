/* kept.c: requests that have a turn, kept behind a held record or a promise (section 5): a release wakes the one who is next within
 * one message, and nobody polls. */
#include "state.h"

void queue_kept_free(struct core *core, struct kept *k) {
	list_remove(&k->link);
	list_remove(&k->by_peer);
	k->key->more->kept_count--;
	alloc_free(&core->alloc, k, sizeof *k);
}

/* Section 10, Order: the one that comes first in the order that the home's queue has as well. */
static void insert_sorted(const struct core *core, struct key_more *more, struct kept *k) {
	const struct place place = queue_kept_place(k);
	struct list *at = more->kept.prev;
	for (; at != &more->kept; at = at->prev) {
		const struct place other = queue_kept_place(CONTAINER_OF(at, struct kept, link));
		if (!queue_before(core, &place, &other)) {
			break;
		}
	}
	list_insert_before(at->next, &k->link);
}

struct place queue_kept_place(const struct kept *k) {
	return (struct place){ k->terms.priority, k->ticket, k->peer };
}

static struct kept *find_kept(const struct key *key, uint32_t peer, struct id128 lock_id) {
	for (struct list *n = key->more ? list_first(&key->more->kept) : NULL; n; n = list_after(&key->more->kept, n)) {
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		if (k->peer == peer && id128_equal(k->lock_id, lock_id)) {
			return k;
		}
	}
	return NULL;
}

bool queue_kept_ahead(const struct key *key, struct id128 lock_id) {
	const struct list *n = key->more ? list_first(&key->more->kept) : NULL;
	return n && !id128_equal(CONTAINER_OF(n, struct kept, link)->lock_id, lock_id);
}

/* Section 5: behind a held record, and behind the promise of a request that comes before it, or has no turn. Whoever has none does not wait
 * with its promises, and all that wait for one another do so in one order: so never in a circle. */
bool queue_may_wait(const struct core *core, const struct key *key, const struct place *place, enum status refused) {
	const struct promise *p = key->promise;
	if (refused != STATUS_PROMISED || !p->turn) {
		return refused == STATUS_PROMISED || refused == STATUS_HELD || refused == STATUS_CONTESTED;
	}
	const struct place ahead = { p->terms.priority, p->ticket, p->peer };
	return p->ticket.clock && queue_before(core, &ahead, place); /* without a stamp (a hand-over's) nobody knows */
}

bool queue_keep(struct core *core, struct key *key, uint32_t from, const struct message *m, enum status refused) {
	const struct place place = { m->terms.priority, m->ticket, from };
	if (key_record(key, m->lock_id) || !queue_may_wait(core, key, &place, refused)) {
		queue_drop_kept(core, key, from, m->lock_id);
		return false;
	}
	struct key_more *more = table_more(core, key);
	if (more == NULL) {
		return false;
	}
	struct kept *k = find_kept(key, from, m->lock_id);
	if (k) {
		k->attempt = m->attempt;
		k->round = m->round;
		k->terms = m->terms;
		if (k->ticket.clock != m->ticket.clock || k->ticket.seq != m->ticket.seq) { /* stamped meanwhile, or its turn was given back */
			k->ticket = m->ticket;
			list_remove(&k->link);
			insert_sorted(core, more, k);
			queue_kept_again(core, key);
		}
		return true;
	}
	if (more->kept_count >= core->limits.waiters_per_key) {
		return false;
	}
	k = alloc_new(&core->alloc, sizeof *k);
	if (k == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	k->key = key;
	k->lock_id = m->lock_id;
	k->attempt = m->attempt;
	k->round = m->round;
	k->terms = m->terms;
	k->ticket = m->ticket;
	k->peer = from;
	insert_sorted(core, more, k);
	list_append(&core->peers[from].kept, &k->by_peer);
	more->kept_count++;
	return true;
}

void queue_drop_kept(struct core *core, struct key *key, uint32_t from, struct id128 lock_id) {
	struct kept *k = find_kept(key, from, lock_id);
	if (k) {
		queue_kept_free(core, k);
	}
	queue_promise_changed(core, key);
}

/* A record has ended, or excludes less than before. */
void queue_record_ended(struct core *core, struct key *key) {
	if (key->promise) {
		master_promise_again(core, key);
	}
	if (key->more) {
		queue_kept_again(core, key);
	}
}

/* The first kept request is promised to as soon as nothing excludes it, which may be because it has become the first; the others learn
 * who is in their way. */
void queue_kept_again(struct core *core, struct key *key) {
	while (key->more && core_votes(core)) {
		struct list *n = list_first(&key->more->kept);
		if (n == NULL) {
			return;
		}
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		struct message ask = { .kind = MESSAGE_PROMISE, .lock_id = k->lock_id, .attempt = k->attempt, .flags = FLAG_TURN, .terms = k->terms, .ticket = k->ticket };
		const struct place place = queue_kept_place(k);
		const struct record *own = key_record(key, k->lock_id); /* learned since: another attempt of it was faster */
		ask.identity = own ? record_identity(own) : ask.identity;
		struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = k->round, .status = rule_promise(core, key, &ask, k->peer) };
		uint32_t peer = k->peer;
		if (!own && queue_may_wait(core, key, &place, answer.status)) {
			return; /* no other passes it (section 10, Order) */
		}
		queue_kept_free(core, k);
		if (answer.status == STATUS_HELD_SELF) {
			master_held_self(key, own, &answer);
		} else if (answer.status == STATUS_OK) {
			COUNT(core, kept_promised);
			master_grant(core, key, &ask, peer, &answer);
		} else {
			master_blocker(core, key, ask.lock_id, &ask.terms, &answer);
		}
		out_send(core, peer, &answer);
	}
}

static uint32_t peer_of(const struct core *core, struct id128 node) {
	uint32_t i = 0;
	while (i < core->peer_count && !(id128_equal(core->peers[i].node.id, node) && peer_reachable(core, i))) {
		i++;
	}
	return i;
}

/* Section 10, Succession: the promise goes to the one that the holder named, before any other is looked at. It is named by the attempt that
 * asked last, as far as that is known here; where something else stands in its way this was a release like any other. */
void queue_hand_over(struct core *core, struct key *key, const struct heir *heir) {
	uint32_t peer = peer_of(core, heir->node);
	if (peer == core->peer_count || !core_votes(core)) {
		return;
	}
	struct kept *k = find_kept(key, peer, heir->lock_id);
	if (k == NULL && queue_turn_of(core, key, peer, heir->lock_id)) {
		core->counts[COUNT_hand_over_promised] += key->promise != NULL;
		return;
	}
	struct message ask = { .kind = MESSAGE_PROMISE, .lock_id = heir->lock_id, .attempt = k ? k->attempt : heir->attempt, .flags = FLAG_TURN };
	if (k) {
		ask.terms = k->terms;
		ask.ticket = k->ticket;
	}
	struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = ask.attempt, .status = rule_promise(core, key, &ask, peer) };
	if (answer.status != STATUS_OK) {
		return;
	}
	if (k) {
		answer.round = k->round;
		queue_kept_free(core, k);
	}
	COUNT(core, hand_over_promised);
	master_grant(core, key, &ask, peer, &answer);
	out_send(core, peer, &answer);
}
