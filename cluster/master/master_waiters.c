/* master_waiters.c: which requests wait here, told in pieces. The reader asks for each piece by the
 * last entry of the previous one (section 3, Lists of who waits). */
#include "master.h"

static void fill(const struct core *core, const struct waiter *w, struct message *answer) {
	answer->key = key_name(w->q.key);
	answer->lock_id = w->q.lock_id;
	answer->owner = slice_of(w->bytes, w->owner_size);
	answer->identity = slice_of(w->bytes + w->owner_size, w->identity_size);
	answer->left_us = (uint64_t)instant_elapsed_long(core->now, w->since) / 1000;
	answer->label = slice_of(w->bytes + w->owner_size + w->identity_size, w->label_size);
	answer->terms = w->q.terms;
	answer->ticket = w->q.ticket;
	answer->by = core->peers[w->q.peer].node.id;
}

/* Returns the place of the entry that was told last, even if that entry is gone. */
static struct queued place_told(const struct core *core, const struct message *m) {
	struct queued q = { .lock_id = m->lock_id, .ticket = m->ticket, .terms = m->terms };
	while (q.peer + 1 < core->peer_count && !id128_equal(core->peers[q.peer].node.id, m->by)) {
		q.peer++;
	}
	return q;
}

/* Returns the entry after `w`; in a list of several keys it may be the first entry of the next
 * key. */
static struct waiter *next_of(const struct core *core, const struct waiter *w,
	const struct message *m) {
	const struct key *key = w->q.key;
	struct waiter *next = queue_next(core, key_more(key), &w->q, PARTS_ALL);
	while (next == NULL && (m->flags & FLAG_PREFIX) &&
		(key = queue_next_key(core, key_name(key), false)) != NULL) {
		next = queue_next(core, key_more(key), NULL, PARTS_ALL);
	}
	return next;
}

/* Returns the first entry that is to be told. */
static struct waiter *begin_at(struct core *core, const struct message *m) {
	const bool prefix = (m->flags & FLAG_PREFIX) != 0, rest = m->number > 0;
	const struct slice name = prefix && rest ? m->value : m->key;
	struct key *key = prefix ? queue_next_key(core, name, true) : table_find(core, m->key);
	const struct queued told = place_told(core, m);
	/* Otherwise nobody waits any more for the key that was told last. */
	const bool within = rest && key && slice_equal(key_name(key), name);
	struct waiter *w = key && key_more(key)
		? queue_next(core, key_more(key), within ? &told : NULL, PARTS_ALL)
		: NULL;
	while (w == NULL && prefix && key &&
		(key = queue_next_key(core, key_name(key), false)) != NULL) {
		w = queue_next(core, key_more(key), NULL, PARTS_ALL);
	}
	return w;
}

void master_waiters(struct core *core, uint32_t from, const struct message *m) {
	struct message answer = { .kind = MESSAGE_WAITERS_ANSWER, .round = m->round,
		.status = rule_votes(core), .key = m->key };
	const struct waiter *piece[REPORT_PIECE_MAX],
		*next = answer.status == STATUS_OK ? begin_at(core, m) : NULL;
	uint32_t count = 0;
	while (next && count < core->limits.report_piece &&
		slice_has_prefix(key_name(next->q.key), m->key)) {
		piece[count++] = next;
		next = next_of(core, next, m);
	}
	if (count == 0) {
		out_send(core, from, &answer);
		return;
	}
	const bool more = next && slice_has_prefix(key_name(next->q.key), m->key);
	const uint32_t before = m->number < UINT32_MAX / 2 ? (uint32_t)m->number : 0;
	answer.parts = before + count;
	for (uint32_t i = 0; i < count; i++) {
		answer.part = before + i;
		answer.flags = more && i + 1 == count ? FLAG_REST : 0;
		fill(core, piece[i], &answer);
		out_send(core, from, &answer);
	}
}
