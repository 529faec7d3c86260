/* terms.c: what excludes what among the records of one key at one master (section 10). It is always
 * a question about two records: the permits of a semaphore are numbered, so that nothing is ever
 * counted up. */
#include "store.h"

struct permits key_taken(const struct key *key, struct id128 lock_id, uint32_t of, bool *room) {
	struct permits taken = { { 0, 0 } };
	if (key && key_index(key)) {
		return index_taken(key_index(key), lock_id, of, room);
	}
	*room = true;
	for (const struct record *r = key ? key->held : NULL; r; r = r->next) {
		if (!id128_equal(r->lock_id, lock_id)) {
			*room = *room && r->of == of;
			taken = permits_or(taken, record_set(r));
		}
	}
	return taken;
}

/* Returns the record of another lock_id that ends first. The permits that are asked for may be free
 * then. */
static struct record *first_end(const struct key *key, struct id128 lock_id) {
	struct record *first = NULL;
	for (struct record *r = key->held; r; r = r->next) {
		if (!id128_equal(r->lock_id, lock_id) &&
			(first == NULL || r->end.boot < first->end.boot)) {
			first = r;
		}
	}
	return first;
}

bool record_excludes(const struct record *r, const struct terms *terms) {
	/* Of the record's terms, these alone decide. */
	const struct terms own = { .of = r->of, .set = record_set(r) };
	return terms_exclude(&own, terms);
}

struct record *key_other(const struct key *key, struct id128 lock_id, const struct terms *terms) {
	/* A request names no numbers yet, only how many it wants. */
	if (key->held && terms_semaphore(terms) && permits_none(terms->set)) {
		bool room;
		const struct permits taken = key_taken(key, lock_id, terms->of, &room);
		if (room) {
			return terms->of - permits_count(taken) < terms->count
				? first_end(key, lock_id) : NULL;
		}
	}
	const struct record_index *x = key_index(key);
	for (struct record *r = x && !index_excludes(x, lock_id, terms) ? NULL : key->held; r;
		r = r->next) {
		if (record_excludes(r, terms) && !id128_equal(r->lock_id, lock_id)) {
			return r;
		}
	}
	return NULL;
}

struct record *key_other_exclusive(const struct key *key, struct id128 lock_id) {
	const struct record_index *x = key_index(key);
	for (struct record *r = x && !index_other_exclusive(x, lock_id) ? NULL : key->held; r;
		r = r->next) {
		if (r->of == MODE_EXCLUSIVE && !id128_equal(r->lock_id, lock_id)) {
			return r;
		}
	}
	return NULL;
}

uint64_t key_highest_token(const struct key *key, const struct record *but) {
	uint64_t highest = key_index(key) ? index_highest_token(key_index(key), but) : 0;
	for (const struct record *r = key_index(key) ? NULL : key->held; r; r = r->next) {
		highest = r != but && r->token > highest ? r->token : highest;
	}
	return highest;
}

bool key_has_token(const struct key *key, uint64_t token) {
	if (key_index(key)) {
		return index_has_token(key_index(key), token);
	}
	const struct record *r = key->held;
	while (r && r->token != token) {
		r = r->next;
	}
	return r != NULL;
}

/* Looks at each record once. The key is not contested if all records are shared, or if all have
 * permits of one semaphore and no number twice. */
bool key_contested(const struct key *key) {
	if (key->held == NULL || key->held->next == NULL) {
		return false;
	}
	const uint16_t first = key->held->of;
	struct permits met = { { 0, 0 } };
	if (key_index(key)) {
		return index_contested(key_index(key), first);
	}
	if (first == MODE_EXCLUSIVE) {
		return true;
	}
	for (const struct record *r = key->held; r; r = r->next) {
		if (r->of != first || permits_meet(met, record_set(r))) {
			return true;
		}
		met = permits_or(met, record_set(r));
	}
	return false;
}

struct terms terms_both(const struct terms *a, const struct terms *b) {
	struct terms both = *a;
	/* The greater number counts (section 2, Release on disconnect). */
	both.binding = a->binding > b->binding ? a->binding : b->binding;
	if (a->of == MODE_EXCLUSIVE && b->of == MODE_SHARED) {
		both.of = MODE_SHARED;
	} else if (a->of == b->of) {
		both.set = permits_or(a->set, b->set);
	}
	return both;
}

bool terms_alike(const struct terms *a, const struct terms *b) {
	return a->of == b->of || (!terms_semaphore(a) && !terms_semaphore(b));
}

bool terms_again(uint16_t own, uint16_t asked) {
	return own == asked || (own == MODE_EXCLUSIVE && asked == MODE_SHARED);
}

void record_set_terms(struct core *core, struct key *key, struct record *r,
	const struct terms *terms) {
	CHECK(record_terms_size(r) >= terms_rest(terms) && (r->bindable || !terms->binding));
	const struct permits set = record_set(r);
	const bool other = r->of != terms->of || memcmp(&set, &terms->set, sizeof set) != 0,
		contested = other && key_contested(key);
	if (other && key_index(key)) {
		index_count(key_index(key), r, false);
	}
	table_count(core, key, r->of, (uint64_t)-1);
	record_put_terms(r, terms);
	table_count(core, key, r->of, 1);
	if (other && key_index(key)) {
		index_count(key_index(key), r, true);
	}
	if (other) {
		key_note_contested(core, key, contested);
	}
}

uint32_t permits_lowest(struct permits from, uint32_t wanted, struct permits *set) {
	uint32_t taken = 0;
	for (; taken < wanted && !permits_none(from); taken++) {
		*set = permits_or(*set, permits_one(permits_take_first(&from)));
	}
	return taken;
}
