/* numbers.h: each number of a semaphore is a lock of its own (section 10). Included by functions.h. */
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

bool key_numbered(const struct key *key, uint16_t of); /* all its records have permits of one semaphore, of so many */
struct permits record_doubtful(const struct key *key, const struct record *r); /* a semaphore's: the numbers that others have here, too */
/* The key is contested (section 4), and this record is one of those that exclude each other; a semaphore's: in these numbers (none: in any). */
bool record_doubted(const struct key *key, const struct record *r, struct permits numbers);
void record_name(struct record *r, struct permits named); /* before its end is lengthened, and `accepted` noted: for these numbers; the others last as long as so far */
bool record_run_out(struct core *core, struct key *key, struct record *r); /* what it has no more is dropped; false: nothing */
struct older record_older(const struct record *r);
void record_put_older(struct record *r, struct older o);
void record_keep_older(struct record *r); /* before it gains numbers, its token is raised, and it notes the clock */
struct permits record_had(const struct record *r, uint64_t token); /* nobody else's came between here since this token */
struct older older_of(const struct message *m); /* of a copy in a snapshot: each of these numbers has been at its source since the clock there was not above `noted` */
void older_merge(struct record *r, struct older other); /* those that both have, and the higher noted */
void record_drop_numbers(struct core *core, struct key *key, struct record *r, struct permits numbers); /* some, not all, at once; may free the key */
bool record_give_back(struct core *core, struct key *key, struct record *r, uint64_t attempt); /* numbers that rest on this name alone, and not all of it; may free the key */
struct permits record_lasting(const struct key *key, const struct record *r); /* the numbers that are neither in doubt nor left to run out */
/* The numbers that q masters have lengthened, or may yet: those in the states `perhaps` count for every number; `had`: only where nobody
 * else's came between. */
struct permits extend_numbers(const struct core *core, const struct op *op, bool had, uint32_t perhaps);
void master_say_when(const struct core *core, struct message *answer); /* master_extend.c: a record of a contested key may be extended */

#endif
