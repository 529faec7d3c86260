/* kept.c: requests that have a turn, kept behind a held record (section 5): a release wakes the one who is next within one
 * message, and nobody polls. */
#include "state.h"

void queue_kept_free(struct core *core, struct kept *k) {
	list_remove(&k->link);
	list_remove(&k->by_peer);
	k->key->more->kept_count--;
	alloc_free(&core->alloc, k, sizeof *k);
}

bool queue_keep(struct core *core, struct key *key, uint32_t from, const struct message *m) {
	struct key_more *more = table_more(core, key);
	if (more == NULL) {
		return false;
	}
	for (struct list *n = list_first(&more->kept); n; n = list_after(&more->kept, n)) {
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		if (k->peer == from && id128_equal(k->lock_id, m->lock_id)) {
			k->attempt = m->attempt;
			k->round = m->round;
			return true;
		}
	}
	if (more->kept_count >= core->limits.waiters_per_key) {
		return false;
	}
	struct kept *k = alloc_new(&core->alloc, sizeof *k);
	if (k == NULL) {
		COUNT(core, no_memory);
		return false;
	}
	k->key = key;
	k->lock_id = m->lock_id;
	k->attempt = m->attempt;
	k->round = m->round;
	k->peer = from;
	k->terms = m->terms;
	struct list *at = more->kept.prev; /* section 10, Order: the more important one first, and else in the order of arrival */
	while (at != &more->kept && CONTAINER_OF(at, struct kept, link)->terms.priority < k->terms.priority) {
		at = at->prev;
	}
	list_insert_before(at->next, &k->link);
	list_append(&core->peers[from].kept, &k->by_peer);
	more->kept_count++;
	return true;
}

void queue_drop_kept(struct core *core, struct key *key, uint32_t from, struct id128 lock_id) {
	for (struct list *n = key->more ? list_first(&key->more->kept) : NULL; n; n = list_after(&key->more->kept, n)) {
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		if (k->peer == from && id128_equal(k->lock_id, lock_id)) {
			queue_kept_free(core, k);
			return;
		}
	}
}

/* A record has ended: the first kept request is promised to; the others learn who is in their way. */
void queue_record_ended(struct core *core, struct key *key) {
	while (key->more && key->held == NULL && core_votes(core)) {
		struct list *n = list_first(&key->more->kept);
		if (n == NULL) {
			return;
		}
		struct kept *k = CONTAINER_OF(n, struct kept, link);
		struct message ask = { .kind = MESSAGE_PROMISE, .lock_id = k->lock_id, .attempt = k->attempt, .flags = FLAG_TURN, .terms = k->terms };
		struct message answer = { .kind = MESSAGE_PROMISE_ANSWER, .round = k->round, .status = rule_promise(core, key, &ask, k->peer) };
		uint32_t peer = k->peer;
		queue_kept_free(core, k);
		if (answer.status == STATUS_OK) {
			COUNT(core, kept_promised);
			master_grant(core, key, &ask, peer, &answer);
		} else {
			master_blocker(core, key, ask.lock_id, &answer);
		}
		out_send(core, peer, &answer);
	}
}
