/* numbers.h: what a semaphore's record keeps of single permit numbers, because each number is a
 * lock of its own (section 10). Part of store.h. */
#ifndef PAWL_CLUSTER_NUMBERS_H
#define PAWL_CLUSTER_NUMBERS_H

#include "state.h"

/* Permit numbers of a record that run out: what was accepted last did not name them (section 10).
 * It follows the record's terms. */
struct lapsing {
	/* The numbers. */
	struct permits set;
	/* When they end: at the end of the record at the latest. */
	struct instant end;
	/* For these numbers, the same as `accepted` and `rests_on` of struct record. */
	uint16_t accepted;
	uint64_t rests_on;
};

static inline struct lapsing record_lapsing(const struct record *r) {
	struct lapsing l = { .set = { { 0, 0 } } };
	if (record_terms_size(r) > sizeof(struct terms)) {
		memcpy(&l, r->bytes + sizeof(struct terms), sizeof l);
	}
	return l;
}

/* Tells whether some numbers of the record end by themselves. */
static inline bool record_has_lapsing(const struct record *r) {
	return terms_of_numbers(r->of) && !permits_none(record_lapsing(r).set);
}

/* Permit numbers of a record that were here before it gained others; and the clock that was noted
 * for these numbers then (section 10). It follows struct lapsing. */
struct older {
	/* The numbers. */
	struct permits set;
	/* The clock that was noted for them. */
	uint64_t noted;
};

#endif
