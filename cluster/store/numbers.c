/* numbers.c: each number of a semaphore is a lock of its own (section 10). This file says which
 * numbers of a record are in doubt on a contested key, which ones run out while the record goes on,
 * and which ones this master had. */
#include "store.h"

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
