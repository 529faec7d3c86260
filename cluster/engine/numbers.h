/* numbers.h: each number of a semaphore is a lock of its own (section 10). What a record keeps of them. Part of state.h. */
#ifndef PAWL_CLUSTER_NUMBERS_H
#define PAWL_CLUSTER_NUMBERS_H

/* Numbers of a semaphore's record that what was accepted last did not name, and when they are over (section 10): at its own end at the
 * latest. They stand behind its terms. */
struct lapsing {
	struct permits set;
	struct instant end;
	uint16_t accepted; /* as in struct record, for these numbers */
	uint64_t attempt;  /* the same */
};

static inline struct lapsing record_lapsing(const struct record *r) {
	struct lapsing l = { .set = { { 0, 0 } } };
	if (r->terms_size > sizeof(struct terms)) {
		memcpy(&l, r->bytes + sizeof(struct terms), sizeof l);
	}
	return l;
}

/* Numbers of a semaphore's record that it had here before it gained others, and what was noted for these then (section 10); behind what lapses. */
struct older {
	struct permits set;
	uint64_t noted;
};

#endif
