/* walk.c: a walk over all records of the live table in pieces, as a copy needs it (section 4, A
 * copy in pieces). A piece may end anywhere, also between two records of one key, because a key
 * may have more than a link holds.
 *
 * The place is a key's number and a lock_id, and no pointer, so whatever changes between two pieces
 * leaves it right: of a bucket, the records are visited in that order, and a record that was there
 * before the walk began and is still there has its turn. Meanwhile the table does not shrink
 * (map_walk_begin). If it grows, keys move to buckets that are visited later, and some are visited
 * again. Whoever copies hears of new records in another way. */
#include "store.h"

/* Returns the first record behind this lock_id, in the order of the lock_ids; NULL: there is
 * none. */
static const struct record *record_after(const struct key *key, struct id128 lock_id) {
	if (key_index(key)) {
		return index_after(key_index(key), lock_id);
	}
	const struct record *first = NULL;
	for (const struct record *r = key->held; r; r = r->next) {
		if (id128_compare(r->lock_id, lock_id) > 0 &&
			(first == NULL || id128_compare(r->lock_id, first->lock_id) < 0)) {
			first = r;
		}
	}
	return first;
}

/* Finishing a key may drop records, and the key. Nobody has seen those records, so nobody is told
 * of their end. */
static void finish_bucket(struct core *core, size_t bucket) {
	for (struct map_node *n = map_bucket(&table_live(core)->keys, bucket), *next;
		n && finish_active(core); n = next) {
		next = map_next_in_bucket(n);
		finish_walked(core, CONTAINER_OF(n, struct key, node));
	}
}

/* Moves to the next lock_id of the bucket. False: there is none. */
static bool move_on(const struct core *core, struct table_walk *w) {
	const struct record *next = NULL;
	uint64_t lowest = 0;
	for (const struct map_node *n = map_bucket(&table_live(core)->keys, w->bucket); n;
		n = map_next_in_bucket(n)) {
		const struct key *key = CONTAINER_OF(n, struct key, node);
		const uint64_t number = key_number(key);
		if (number < w->number || (next && number > lowest)) {
			continue;
		}
		const struct record *r = record_after(key,
			number == w->number ? w->lock_id : (struct id128){ { 0 } });
		if (r && (next == NULL || number < lowest ||
			id128_compare(r->lock_id, next->lock_id) < 0)) {
			next = r;
			lowest = number;
		}
	}
	if (next) {
		w->number = lowest;
		w->lock_id = next->lock_id;
	}
	return next != NULL;
}

/* Visits the records at the place. There is one, unless two keys have the same number. */
static bool visit(struct core *core, const struct table_walk *w, struct walk_piece *piece) {
	for (const struct map_node *n = map_bucket(&table_live(core)->keys, w->bucket); n;
		n = map_next_in_bucket(n)) {
		const struct key *key = CONTAINER_OF(n, struct key, node);
		const struct record *r =
			key_number(key) == w->number ? key_record(key, w->lock_id) : NULL;
		if (r) {
			piece->records++;
			piece->bytes += record_size(r) + key->size;
			if (!piece->visit(core, piece->ctx, key, r)) {
				piece->failed = true;
				return false;
			}
		}
	}
	return true;
}

bool table_walk(struct core *core, struct table_walk *w, struct walk_piece *piece) {
	for (; w->bucket < table_live(core)->keys.bucket_count;
		*w = (struct table_walk){ .bucket = w->bucket + 1 }, piece->buckets++) {
		if (piece->buckets >= piece->buckets_max) {
			return false;
		}
		finish_bucket(core, w->bucket);
		do {
			if (piece->records >= piece->records_max ||
				piece->bytes >= piece->bytes_max) {
				return false;
			}
		} while (move_on(core, w) && visit(core, w, piece));
		if (piece->failed) {
			return false;
		}
	}
	return true;
}
