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

struct record *key_excluding(const struct key *key, struct id128 lock_id,
	const struct terms *terms) {
	const struct record_index *x = key_index(key);
	for (struct record *r = x && !index_excludes(x, lock_id, terms) ? NULL : key->held; r;
		r = r->next) {
		if (record_excludes(r, terms) && !id128_equal(r->lock_id, lock_id)) {
			return r;
		}
	}
	return NULL;
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
	return key_excluding(key, lock_id, terms);
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

/* ---- permit numbers ---- */

/* Each number of a semaphore is a lock of its own (section 10): which numbers of a record are in
 * doubt on a contested key, which ones run out while the record goes on, and which ones this master
 * had. */

/* ---- in doubt ---- */

bool key_numbered(const struct key *key, uint16_t of) {
	if (key_index(key)) {
		return terms_of_numbers(of) && index_all_of(key_index(key), of);
	}
	for (const struct record *r = key->held; r; r = r->next) {
		if (r->of != of) {
			return false;
		}
	}
	return terms_of_numbers(of);
}

struct permits record_doubtful(const struct key *key, const struct record *r) {
	bool room;
	return terms_of_numbers(r->of)
		? permits_and(record_set(r), key_taken(key, r->lock_id, r->of, &room))
		: (struct permits){ { 0, 0 } };
}

bool record_doubted(const struct key *key, const struct record *r, struct permits numbers) {
	if (key->held->next == NULL || !key_contested(key)) {
		return false;
	}
	if (key_numbered(key, r->of)) {
		const struct permits doubtful = record_doubtful(key, r);
		return permits_none(numbers) ? !permits_none(doubtful)
			: permits_meet(numbers, doubtful);
	}
	return true;
}

/* If no number is named, or none that the record has, all numbers are meant. */
void record_name(struct record *r, struct permits named) {
	if (record_terms_size(r) <= sizeof(struct terms)) {
		return;
	}
	const struct permits set = record_set(r);
	struct lapsing l = record_lapsing(r);
	struct permits rest = permits_meet(named, set) ? permits_but(set, named)
		: (struct permits){ { 0, 0 } };
	if (!permits_within(rest, l.set)) {
		/* All numbers that run out have one end, which is never too early. */
		l.end = permits_none(l.set) ? r->end : instant_later(l.end, r->end);
		l.accepted = r->accepted;
		l.rests_on = permits_meet(rest, l.set) && l.rests_on != r->rests_on
			? 0 : r->rests_on;
	}
	l.set = rest;
	memcpy(r->bytes + sizeof(struct terms), &l, sizeof l);
}

/* ---- what was noted for numbers before the record gained others (section 10) ---- */

struct older record_older(const struct record *r) {
	struct older o = { .set = { { 0, 0 } } };
	if (record_terms_size(r) > sizeof(struct terms)) {
		memcpy(&o, r->bytes + sizeof(struct terms) + sizeof(struct lapsing), sizeof o);
	}
	return o;
}

void record_put_older(struct record *r, struct older o) {
	if (record_terms_size(r) > sizeof(struct terms)) {
		memcpy(r->bytes + sizeof(struct terms) + sizeof(struct lapsing), &o, sizeof o);
	}
}

/* Both are true of the record. Returns the one that says more: that of the whole record, if the
 * token is above what it noted. */
static struct older more_of(uint64_t token, struct older all, struct older o) {
	return token > all.noted || permits_none(o.set) ? all : o;
}

void record_keep_older(struct record *r) {
	record_put_older(r, more_of(r->token, (struct older){ record_set(r), r->noted },
		record_older(r)));
}

struct older older_of(const struct message *m) {
	const struct older o = { permits_and(m->had, m->terms.set), m->clock };
	return more_of(m->token, (struct older){ m->terms.set, m->noted }, o);
}

void older_merge(struct record *r, struct older other) {
	struct older o = record_older(r);
	o.set = permits_and(o.set, other.set);
	o.noted = other.noted > o.noted ? other.noted : o.noted;
	record_put_older(r, o);
}

struct permits record_had(const struct record *r, uint64_t token) {
	const struct older o = record_older(r);
	return token > r->noted ? record_set(r)
		: token > o.noted ? o.set
		: (struct permits){ { 0, 0 } };
}

void record_lose_numbers(struct core *core, struct key *key, struct record *r,
	struct permits numbers) {
	struct terms left = record_terms(r);
	struct lapsing l = record_lapsing(r);
	lacked_since(core, r->lock_id, core->now);
	digest_leave(core, key, r);
	left.set = permits_but(left.set, numbers);
	l.set = permits_but(l.set, numbers);
	struct older o = record_older(r);
	/* When the record gains these numbers again, they are new. */
	o.set = permits_but(o.set, numbers);
	record_put_older(r, o);
	record_set_terms(core, key, r, &left);
	memcpy(r->bytes + sizeof(struct terms), &l, sizeof l);
	/* Those who copy the table still have these numbers. Sources that differ count with their
	 * clocks (finish.c). */
	core->observers->record_changed(core, key, r, RECORD_NARROWED);
}

bool record_run_out(struct core *core, struct key *key, struct record *r) {
	const struct lapsing l = record_lapsing(r);
	if (permits_none(l.set) || !instant_expired(core->now, l.end)) {
		return false;
	}
	COUNT(core, permits_run_out);
	record_lose_numbers(core, key, r, l.set);
	return true;
}

struct permits record_lasting(const struct key *key, const struct record *r) {
	return permits_but(permits_but(record_set(r), record_lapsing(r).set),
		record_doubtful(key, r));
}
