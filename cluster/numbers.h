/* numbers.h: each number of a semaphore is a lock of its own (section 10). Included by functions.h. */
#ifndef PAWL_CLUSTER_NUMBERS_H
#define PAWL_CLUSTER_NUMBERS_H

bool key_numbered(const struct key *key, uint16_t of); /* all its records have permits of one semaphore, of so many */
struct permits record_doubtful(const struct key *key, const struct record *r); /* a semaphore's: the numbers that others have here, too */
/* The key is contested (section 4), and this record is one of those that exclude each other; a semaphore's: in these numbers (none: in any). */
bool record_doubted(const struct key *key, const struct record *r, struct permits numbers);
void record_name(struct record *r, struct permits named); /* before its end is lengthened, and `accepted` noted: for these numbers; the others last as long as so far */
bool record_run_out(struct core *core, struct key *key, struct record *r); /* what it has no more is dropped; false: nothing */
void record_drop_numbers(struct core *core, struct key *key, struct record *r, struct permits numbers); /* some, not all, at once; may free the key */
struct permits record_lasting(const struct key *key, const struct record *r); /* the numbers that are neither in doubt nor left to run out */
/* The numbers that q masters have lengthened, or may yet: those in the states `perhaps` count for every number; `had`: only where nobody
 * else's came between. */
struct permits extend_numbers(const struct core *core, const struct op *op, bool had, uint32_t perhaps);
void master_say_when(const struct core *core, struct message *answer); /* master_extend.c: a record of a contested key may be extended */

#endif
