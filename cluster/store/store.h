/* store.h: keys and records: finding, making and dropping them, what excludes what, what has ended. */
#ifndef PAWL_CLUSTER_STORE_H
#define PAWL_CLUSTER_STORE_H

#include "peers.h"

/* ---- digest.c ---- */
bool digest_add_key(struct core *core, struct table *t, struct key *key); /* false: no memory */
void digest_drop_key(struct key *key);
/* To be called whenever a record's token, ballot of the value, or bar has changed, and after it was added and filled in. */
void digest_record(struct core *core, const struct key *key, struct record *r);
void digest_drop_record(struct core *core, const struct key *key, struct record *r);
uint64_t digest_root(const struct table *t);
uint64_t digest_leaf(const struct table *t, uint32_t leaf);
struct key *digest_first(const struct table *t, uint32_t leaf); /* of the leaf's keys; then key->leaf_next */
void digest_done(struct core *core, struct table *t);
void digest_check_key(const struct table *t, const struct key *key, uint64_t sums[DIGEST_GROUPS]);

/* ---- finish.c ---- */
void merge_forget_sources(struct core *core); /* no source that was asked so far counts */
void merge_note_clock(struct core *core); /* in every record that was merged: voting by waiting */
void merge_end_record(struct core *core, struct key *key, struct record *r, span_ns closed); /* nobody believes it */
void finish_begin(struct core *core);
void merge_finish_key(struct core *core, struct key *key);       /* before anybody looks at it */
bool merge_finish_walked(struct core *core, struct key *key);    /* the same, for a walk over the live table; false: the key is freed */
void merge_finish_end(struct core *core, struct table *t);       /* the table is live no more */
void merge_sweep(struct core *core);

/* ---- lacked.c ---- */
void lacked_since(struct core *core, struct id128 lock_id, struct instant at);
uint64_t lacked_us(const struct core *core, struct id128 lock_id); /* what is not here has not been here for so long, at least (lacked.c) */
uint32_t lacked_place(const struct core *core, struct id128 lock_id); /* of its entries in `lacked` and `lost` */
/* How long ago that was, in microseconds, rounded down. What was before this master voted it does not know. */
uint64_t lacked_us_since(const struct core *core, struct instant last);

/* ---- numbers.c ---- */
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
void record_lose_numbers(struct core *core, struct key *key, struct record *r, struct permits numbers); /* some are left */
struct permits record_lasting(const struct key *key, const struct record *r); /* the numbers that are neither in doubt nor left to run out */

/* ---- preparing.c ---- */
bool preparing_busy(const struct core *core, const struct record *r, uint32_t from, uint64_t round);
void preparing_note(struct core *core, const struct record *r, uint32_t from, uint64_t round);
void preparing_drop(struct core *core, uint32_t from, const struct message *m);

/* ---- record.c ---- */
uint8_t terms_rest(const struct terms *terms); /* bytes that a record has for them */
void record_put_terms(struct record *r, const struct terms *terms); /* what it has no room for is left out */
struct slice record_owner(const struct record *r);
struct slice record_identity(const struct record *r);
struct slice record_label(const struct record *r);
struct slice record_value(const struct record *r);
size_t record_size(const struct record *r);
/* Everything that the message says about it but when it ends. NULL: no memory. */
struct record *record_new(struct core *core, const struct message *m);
struct record *record_with_value(struct core *core, struct slice value); /* to keep a value in */
void record_free(struct core *core, struct record *r);
/* A new value in place of the old one; false: no memory. The record may move: *at is the pointer to it. */
bool record_set_value(struct core *core, struct record **at, struct slice value);
void record_describe(const struct core *core, const struct record *r, struct message *m); /* token, left, bytes, ballots */

/* ---- tombstones.c ---- */
int tombstone_init(struct core *core);
void tombstone_done(struct core *core);
void tombstone_add(struct core *core, struct id128 lock_id, bool barred_only);
bool tombstone_has(const struct core *core, struct id128 lock_id);
void tombstone_end_binding(struct core *core, struct id128 lock_id, uint32_t binding);
bool tombstone_ended(const struct core *core, struct id128 lock_id, uint32_t binding); /* what has this bond, and so ended with a connection */
uint64_t name_draw(struct core *core);
uint64_t name_next(struct core *core, uint64_t name); /* "given back" of this one says it of `name` as well */
uint64_t name_draw_extension(struct core *core);
bool name_of_extension(uint64_t name);
uint64_t name_extended(struct core *core, uint64_t name, uint64_t by);    /* the new name of a record that had `name` */
uint64_t name_before(const struct core *core, uint64_t by);               /* what it had before that extension; 0: not known */
void rolled_back_add(struct core *core, struct id128 lock_id, uint64_t token, uint64_t name);
/* A copy of the record with this token, or one that rests on this name alone (0: it has none), was given back. */
bool rolled_back_has(const struct core *core, struct id128 lock_id, uint64_t token, uint64_t name);
bool rolled_back_named(const struct core *core, struct id128 lock_id, uint64_t name); /* only the latter */
struct tombstone *tombstone_find(const struct core *core, struct id128 lock_id); /* NULL: nothing is remembered of it */
void tombstone_describe(const struct tombstone *r, struct slice key, struct message *m); /* as a SNAPSHOT_RELEASED */
/* The one that stood i places after the oldest when the ring's next place was `next`: who is told of all is told of the oldest first. */
const struct tombstone *tombstone_at(const struct core *core, uint32_t next, uint32_t i);
void tombstone_take(struct core *core, const struct message *m); /* what such a message says */

/* ---- table.c ---- */
struct slice key_name(const struct key *key);
/* The key of the live table with what is past its end removed; NULL when nothing of it is left. */
struct key *table_find(struct core *core, struct slice name);
struct key *table_make(struct core *core, struct slice name); /* NULL: limit or memory */
struct key *table_find_in(struct core *core, struct table *t, struct slice name);
struct key *table_make_in(struct core *core, struct table *t, struct slice name);
/* The same in two steps, for whoever looks in between: the name is hashed once (table_hash). */
struct key *table_find_hashed(struct core *core, struct slice name, uint64_t hash);
struct key *table_add(struct core *core, struct table *t, struct slice name, uint64_t hash); /* that was not found; NULL: limit or memory */
void table_free_key(struct core *core, struct key *key); /* with all that stands on it */
void table_clear(struct core *core, struct table *t);
/* The table beside the live one belongs to one builder at a time. False: it is another's, or still being emptied. */
bool table_staging_take(struct core *core);
bool table_staging_free(const struct core *core); /* it could be taken */
void table_staging_drop(struct core *core);       /* what was built is of no use: it is emptied in pieces */
/* What was built beside is live from now on, and the old table is emptied in pieces. Promises and queues must be gone before;
 * waits, lists and snapshots that are under way go on with the new table. */
void table_swap(struct core *core);
void table_empty_go_on(struct core *core);
void table_wake(struct core *core, struct key *key);            /* re-arms the timer */
bool table_settle(struct core *core, struct key *key);         /* the same; frees the key if nothing is left: false */
struct key_more *table_more(struct core *core, struct key *key); /* NULL: no memory */
/* Ends what is past; returns false when the key was freed. */
bool table_expire(struct core *core, struct key *key);
struct record *key_record(const struct key *key, struct id128 lock_id);
struct record **key_link(struct key *key, struct id128 lock_id); /* what points at the record, or at nothing */
/* Adds to the key, drops a promise of the same lock_id; the caller settles. */
void key_add_record(struct core *core, struct key *key, struct record *r);
void key_drop_record(struct core *core, struct key *key, struct record *r);
void record_shorten(struct core *core, struct key *key, struct record *r, span_ns left); /* it ends by then; the caller settles */
void key_note_contested(struct core *core, const struct key *key, bool before); /* its records have changed */
void key_drop_promise(struct core *core, struct key *key);

/* ---- terms.c ---- */
struct record *key_other(const struct key *key, struct id128 lock_id, const struct terms *terms);
struct record *key_other_exclusive(const struct key *key, struct id128 lock_id);
bool key_contested(const struct key *key);
struct permits key_taken(const struct key *key, struct id128 lock_id, uint32_t of, bool *room);
struct terms terms_both(const struct terms *a, const struct terms *b); /* of two copies of one record, alike */
bool terms_again(uint16_t own, uint16_t asked); /* terms.of */
bool terms_alike(const struct terms *a, const struct terms *b);        /* they may be those of one lock_id */
bool record_excludes(const struct record *r, const struct terms *terms);
void record_set_terms(struct core *core, struct key *key, struct record *r, const struct terms *terms);
bool permits_choose(const struct core *core, const struct op *op, struct permits *set);

#endif
