/* sync_judge.c: what follows from the records that other masters listed (section 7, anti-entropy).
 *
 * A record is learned only when a quorum reports it, this master counted if it has it: that of a commit which failed is not
 * spread. What a quorum once accepted is found at one, at least, of those who would have to accept another, and stands there
 * by the same rules as a record that is taught; so a wrong report could cost time, and no more.
 * A release is learned from whoever remembers it: it was the holder's own.
 */
#include "sync.h"

static int compare_lock(const struct sync_seen *a, const struct sync_seen *b) {
	int c = memcmp(a->lock_id.b, b->lock_id.b, sizeof a->lock_id.b);
	if (c == 0) {
		c = (a->key.size > b->key.size) - (a->key.size < b->key.size);
	}
	return c != 0 ? c : memcmp(a->key.data, b->key.data, a->key.size);
}

/* Reports of one lock together, and in the order of the masters. */
static bool before(const struct sync_seen *a, const struct sync_seen *b) {
	int c = compare_lock(a, b);
	return c != 0 ? c < 0 : a->from < b->from;
}

/* Heapsort: no memory, no recursion; the core does without qsort. */

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

static void fetch(struct core *core, uint32_t from, struct slice key, struct id128 lock_id, bool had) {
	struct sync_pull *p = &core->sync->pulls[from];
	if (p->fetches < SYNC_FETCHES_MAX && peer_votes(core, from)) {
		p->fetches++;
		struct message m = { .kind = MESSAGE_SYNC_FETCH, .round = core->sync_round, .key = key, .lock_id = lock_id, .flags = had ? FLAG_HAD : 0 };
		out_send(core, from, &m);
	}
}

/* `a` is at least what `b` is: whoever has it has no less. A shared lock is more than the exclusive one that it was (section 10). */
static bool reaches(const struct sync_seen *a, const struct sync_seen *b) {
	return a->token >= b->token && ballot_compare(a->wrote, b->wrote) >= 0 && (a->of == b->of || a->of == SHARE_SHARED) &&
		permits_within(b->set, a->set);
}

/* All reports of one lock_id. The best that a quorum has, if this master has less. */
static void judge_lock(struct core *core, const struct sync_seen *reports, uint32_t count) {
	struct key *key = table_find(core, reports->key);
	const struct record *own = key ? key_record(key, reports->lock_id) : NULL;
	const struct sync_seen here = own ? (struct sync_seen){ .token = own->token, .wrote = own->wrote, .of = own->of, .set = record_set(own) }
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
		bool ended = released_ended(core, r->lock_id, r->bond) || given_back_has(core, r->lock_id, r->token);
		if (more && !ended && having >= core->quorum && (best == NULL || reaches(r, best))) {
			best = r;
		}
	}
	if (best && !released_has(core, best->lock_id)) {
		fetch(core, best->from, best->key, best->lock_id, false);
	} else if (best == NULL && lacking) {
		COUNT(core, sync_not_enough);
	}
}

static bool listed_by(const struct sync *s, struct slice key, struct id128 lock_id, uint32_t from) {
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
	return low < s->seen_count && !before(&wanted, &s->seen[low]);
}

/* What this master has and the other did not list: does it remember the release? */
static void ask_releases(struct core *core, uint32_t from) {
	const struct sync_pull *p = &core->sync->pulls[from];
	for (uint32_t i = 0; i < p->listed; i++) {
		for (const struct key *key = digest_first(core->live, p->leaves[i]); key; key = key->leaf_next) {
			for (const struct record *r = key->held; r; r = r->next) {
				if (!listed_by(core->sync, key_name(key), r->lock_id, from)) {
					fetch(core, from, key_name(key), r->lock_id, true);
				}
			}
		}
	}
}

void sync_judge(struct core *core) {
	struct sync *s = core->sync;
	sort(s->seen, s->seen_count);
	for (uint32_t i = 0; i < core->masters; i++) {
		ask_releases(core, i);
	}
	for (uint32_t first = 0, end; first < s->seen_count; first = end) {
		end = first + 1;
		while (end < s->seen_count && compare_lock(&s->seen[end], &s->seen[first]) == 0) {
			end++;
		}
		judge_lock(core, &s->seen[first], end - first);
	}
}
