/* sync_evaluate.c: what follows from the records that other masters listed (section 7,
 * anti-entropy).
 *
 * A record is learned only when a quorum reports it, with this master counted if it has the record,
 * so that the record of a commit that failed is not spread. What a quorum once accepted is found at
 * one, at least, of those masters that would have to accept another lock. The record stands there
 * by the same rules as one that was sent for repair, so a wrong report could cost time and no more.
 * A release is learned from whoever remembers it, because it was the holder's own. */
#include "repair.h"
#include "sync.h"

static int compare_lock(const struct sync_seen *a, const struct sync_seen *b) {
	int c = id128_compare(a->lock_id, b->lock_id);
	if (c == 0) {
		c = (a->key.size > b->key.size) - (a->key.size < b->key.size);
	}
	return c != 0 ? c : memcmp(a->key.data, b->key.data, a->key.size);
}

/* Orders reports so that those of one lock stand together, in the order of the masters. */
static bool before(const struct sync_seen *a, const struct sync_seen *b) {
	int c = compare_lock(a, b);
	return c != 0 ? c < 0 : a->from < b->from;
}

/* sift and sort are a heapsort, which needs no memory and no recursion; the core does without
 * qsort. */
static void sift(struct sync_seen *seen, uint32_t root, uint32_t count) {
	for (uint32_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && before(&seen[child], &seen[child + 1])) {
			child++;
		}
		if (!before(&seen[root], &seen[child])) {
			return;
		}
		struct sync_seen swap = seen[root];
		seen[root] = seen[child];
		seen[child] = swap;
	}
}

static void sort(struct sync_seen *seen, uint32_t count) {
	for (uint32_t i = count / 2; i-- > 0;) {
		sift(seen, i, count);
	}
	for (uint32_t last = count; last-- > 1;) {
		struct sync_seen swap = seen[0];
		seen[0] = seen[last];
		seen[last] = swap;
		sift(seen, 0, last);
	}
}

static void fetch(struct core *core, uint32_t from, struct slice key, struct id128 lock_id,
	bool had) {
	struct sync_pull *p = &core->repair.sync->pulls[from];
	/* A list that was cut leaves out many records that are not released at all. To ask about
	 * them leaves room for what is to be learned. */
	const uint32_t most = had && p->cut ? SYNC_FETCHES_MAX / 2 : SYNC_FETCHES_MAX;
	if (p->fetches < most && peer_votes(core, from)) {
		p->fetches++;
		struct message m = { .kind = MESSAGE_SYNC_FETCH, .round = core->repair.sync_round,
			.key = key, .lock_id = lock_id, .flags = had ? FLAG_HAD : 0 };
		out_send(core, from, &m);
	}
}

/* Tells whether `a` is at least what `b` is, so that a master with `a` has no less. A shared lock
 * is more than the exclusive lock that it was before its downgrade (section 10). */
static bool reaches(const struct sync_seen *a, const struct sync_seen *b) {
	return a->token >= b->token && ballot_compare(a->wrote, b->wrote) >= 0 &&
		(a->of == b->of || a->of == MODE_SHARED) && permits_within(b->set, a->set);
}

/* Evaluates all reports of one lock_id, and fetches the best record that a quorum has, if this
 * master has less. */
static void evaluate_lock(struct core *core, const struct sync_seen *reports, uint32_t count) {
	struct key *key = table_find(core, reports->key);
	const struct record *own = key ? key_record(key, reports->lock_id) : NULL;
	const struct sync_seen here = own
		? (struct sync_seen){ .token = own->token, .wrote = record_wrote(core, own),
			.of = own->of, .set = record_set(own) }
		: (struct sync_seen){ .token = 0 };
	const struct sync_seen *best = NULL;
	bool lacking = own == NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct sync_seen *r = &reports[i];
		uint32_t having = own && reaches(&here, r);
		for (uint32_t j = 0; j < count; j++) {
			having += reaches(&reports[j], r);
		}
		if (own && r->barred && !own->barred) {
			fetch(core, r->from, r->key, r->lock_id, true);
		}
		bool more = own == NULL || !reaches(&here, r);
		lacking = lacking || more;
		bool ended = tombstone_connection_ended(core, r->lock_id, r->binding) ||
			rolled_back_has(core, r->lock_id, r->token, 0);
		if (more && !ended && having >= core->quorum &&
			(best == NULL || reaches(r, best))) {
			best = r;
		}
	}
	if (best && !tombstone_released(core, best->lock_id)) {
		fetch(core, best->from, best->key, best->lock_id, false);
	} else if (best == NULL && lacking) {
		COUNT(core, sync_not_enough);
	}
}

static const struct sync_seen *listed_by(const struct sync *s, struct slice key,
	struct id128 lock_id, uint32_t from) {
	struct sync_seen wanted = { .key = key, .lock_id = lock_id, .from = (uint8_t)from };
	uint32_t low = 0, high = s->seen_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (before(&s->seen[middle], &wanted)) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low < s->seen_count && !before(&wanted, &s->seen[low]) ? &s->seen[low] : NULL;
}

/* ---- what fewer than q masters have (section 7) ---- */

/* Tells whether the record is so old that no round which began before it was accepted can still
 * count this acceptance when the other masters list what they have. */
static bool old(const struct core *core, uint16_t accepted) {
	const uint16_t age = (uint16_t)(core->repair.sync_tick - accepted);
	return age >= 2 && age <= INT16_MAX;
}

/* Returns a bit set of the masters that have listed all that they have in this leaf. */
static uint32_t listing(const struct core *core, uint16_t leaf) {
	uint32_t masters = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct sync_pull *p = &core->repair.sync->pulls[i];
		for (uint32_t at = 0; at < p->listed && !p->cut; at++) {
			masters |= (uint32_t)(p->leaves[at] == leaf) << i;
		}
	}
	return masters;
}

/* Tells whether more than n - q masters lack the record. For a semaphore, *few has the permit
 * numbers that more than n - q masters lack, and the answer is whether there are any. */
static bool few_have(const struct core *core, const struct key *key, const struct record *r,
	uint32_t listing, struct permits *few) {
	const struct permits set = record_set(r);
	uint32_t without = 0, lack[PERMITS_MAX] = { 0 };
	for (; listing; listing &= listing - 1) {
		const struct sync_seen *seen = listed_by(core->repair.sync, key_name(key),
			r->lock_id, (uint32_t)__builtin_ctz(listing));
		without += seen == NULL;
		for (uint32_t n = 0; n < PERMITS_MAX && terms_of_numbers(r->of); n++) {
			lack[n] += permits_has(set, n) && !(seen && permits_has(seen->set, n));
		}
	}
	*few = (struct permits){ { 0, 0 } };
	for (uint32_t n = 0; n < PERMITS_MAX && terms_of_numbers(r->of); n++) {
		few->w[n / 64] |= (uint64_t)(lack[n] > core->masters - core->quorum) << (n % 64);
	}
	return terms_of_numbers(r->of) ? !permits_none(*few)
		: without > core->masters - core->quorum;
}

/* Drops the record, or permit numbers of it, if it is old enough. True: the record is gone, and so
 * is the key if that was its last one. */
static bool drop_few(struct core *core, struct key *key, struct record *r, struct permits few) {
	const struct lapsing l = record_lapsing(r);
	if (terms_of_numbers(r->of)) {
		few = old(core, r->accepted) ? few
			: permits_none(l.set) || !old(core, l.accepted)
			? (struct permits){ { 0, 0 } } : permits_and(few, l.set);
	}
	if (terms_of_numbers(r->of) ? permits_none(few) : !old(core, r->accepted)) {
		return false;
	}
	COUNT(core, sync_dropped);
	if (terms_of_numbers(r->of) && !permits_within(record_set(r), few)) {
		record_drop_numbers(core, key, r, few);
		return false;
	}
	record_drop(core, key, r, RECORD_RELEASED);
	return true;
}

/* ---- the judgement, in pieces ---- */

/* Drops what fewer than q have, by the lists of these masters. Asks the master `from` whether it
 * remembers the release of what this master still has and `from` did not list. */
static void judge_key(struct core *core, uint32_t from, struct key *key, uint32_t listing) {
	for (struct record *r = key->held, *next; r; r = next) {
		struct permits few;
		next = r->next;
		pieces_take(&turn_pieces(core)->judged, 1);
		const bool dropped = listing && r->sources == 0 &&
			few_have(core, key, r, listing, &few) && drop_few(core, key, r, few);
		if (!dropped && !listed_by(core->repair.sync, key_name(key), r->lock_id, from)) {
			fetch(core, from, key_name(key), r->lock_id, true);
		}
	}
}

/* A key that goes is replaced by the last one of its leaf, which was judged before, is new, or is
 * still to be judged where it is now. So no key is passed over, whatever comes and goes between two
 * turns. */
static void judge_leaf(struct core *core, struct sync_judging *j) {
	const uint16_t leaf = core->repair.sync->pulls[j->from].leaves[j->leaf];
	const uint32_t keys = digest_keys(table_live(core), leaf),
		masters = listing(core, leaf);
	/* What few have is dropped once: in the turn of the first master that listed the leaf. */
	const bool first = masters >> j->from & 1 && (masters & ((1u << j->from) - 1)) == 0;
	j->keys = j->keys < keys ? j->keys : keys;
	while (j->keys > 0 && turn_pieces(core)->judged > 0) {
		j->keys--;
		judge_key(core, j->from, digest_key(table_live(core), leaf, j->keys),
			first ? masters : 0);
	}
}

/* Judges the own keys of all leaves that were listed. False: the turn is over before. */
static bool judge_leaves(struct core *core, struct sync_judging *j) {
	for (; j->from < core->masters; j->from++, j->leaf = 0) {
		while (j->leaf < core->repair.sync->pulls[j->from].listed) {
			if (turn_pieces(core)->judged == 0) {
				return false;
			}
			judge_leaf(core, j);
			if (j->keys == 0) {
				pieces_take(&turn_pieces(core)->judged, 1);
				j->leaf++;
				j->keys = UINT32_MAX;
			}
		}
	}
	return true;
}

void sync_evaluate_more(struct core *core) {
	struct sync *s = core->repair.sync;
	uint32_t *first = &s->judging.reports;
	if (!judge_leaves(core, &s->judging)) {
		return;
	}
	while (*first < s->seen_count && turn_pieces(core)->judged > 0) {
		uint32_t end = *first + 1;
		while (end < s->seen_count &&
			compare_lock(&s->seen[end], &s->seen[*first]) == 0) {
			end++;
		}
		evaluate_lock(core, &s->seen[*first], end - *first);
		pieces_take(&turn_pieces(core)->judged, end - *first);
		*first = end;
	}
	s->judging.active = *first < s->seen_count;
}

void sync_evaluate(struct core *core) {
	struct sync *s = core->repair.sync;
	sort(s->seen, s->seen_count);
	s->judging = (struct sync_judging){ .active = true, .keys = UINT32_MAX };
	pending_add(core, PENDING_JUDGING);
	sync_evaluate_more(core);
}
