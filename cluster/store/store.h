/* store.h: keys and records: finding, making and dropping them, what excludes what, and what has
 * ended. */
#ifndef PAWL_CLUSTER_STORE_H
#define PAWL_CLUSTER_STORE_H

#include "first.h"
#include "numbers.h"
#include "peers.h"
#include "record_index.h"
#include "tombstones.h"

/* ---- digest.c ---- */

/* Returns the number of the leaf of a key with this name. */
uint16_t digest_leaf_of(struct slice name);
/* Puts a new key, whose name has this hash, into its leaf. False: no memory. The key is in the map
 * of its table before any other key is added or dropped, and digest_drop_key comes before it leaves
 * the map. */
bool digest_add_key(struct core *core, struct table *t, struct key *key, uint64_t hash);
void digest_drop_key(struct core *core, struct key *key);
/* The record joins the digest of its leaf after it was added to its key and filled in
 * (record_changed). It leaves the digest, if it is in it, before it is dropped, and before its
 * token, the ballot of its value, its terms or its bar change; after the change it joins again. So
 * no record has to remember what it adds. */
void digest_join(struct core *core, const struct key *key, struct record *r);
void digest_leave(struct core *core, const struct key *key, struct record *r);
/* Returns one number for the whole table. */
uint64_t digest_root(const struct table *t);
uint64_t digest_leaf(const struct table *t, uint32_t leaf);
/* Returns how many keys the leaf has; and the key with this index, which is below that. When a key
 * is freed, the last one takes its index; a new one becomes the last. */
uint32_t digest_keys(const struct table *t, uint32_t leaf);
struct key *digest_key(const struct table *t, uint32_t leaf, uint32_t index);
/* Frees leaves of a table that has no keys, of at most so many groups. True: nothing is left. */
bool digest_done(struct core *core, struct table *t, uint32_t groups);
/* CHECKs the leaf of a key, and adds it to the sum of its group. */
void digest_check_key(const struct core *core, const struct table *t, const struct key *key,
	uint64_t sums[DIGEST_GROUPS]);

/* ---- finish.c ---- */

/* The bits of all tries are used up. What was merged stays, but stands for no source any more. It
 * is finished before anything else is merged. */
void finish_forget_sources(struct core *core);
/* A master that votes by waiting notes its clock in every record that it has merged. What it
 * accepted itself before it recovered is over. */
void finish_note_clock(struct core *core);
/* Ends a record that nobody believes in. The key stays closed for `closed` nanoseconds, which is
 * the lock delay (section 10). */
void finish_end_record(struct core *core, struct key *key, struct record *r, span_ns closed);
/* Begins to finish the records of the live table, which are not being finished yet. The caller
 * fills in what the sources said at their ends. */
struct finishing *finish_begin(struct core *core);
/* Tells whether there may be records in the live table that are yet to be finished. */
static inline bool finish_active(const struct core *core) {
	return core->store.finish.active;
}
/* Finishes the records of a key before anybody reads them. */
void finish_key(struct core *core, struct key *key);
/* Does the same for a walk over the live table. False: nothing was left of the key, and it is
 * freed. */
bool finish_walked(struct core *core, struct key *key);
/* All records are finished, or the table is live no more. */
void finish_end(struct core *core, struct table *t);
/* Finishes the records of the next buckets. */
void finish_sweep(struct core *core);

/* ---- index.c ---- */

/* Returns the index of the key; NULL: it has none. */
static inline struct record_index *key_index(const struct key *key) {
	const struct key_more *more = key_more(key);
	return more ? more->index : NULL;
}
/* The first record of the key is new. This adds it to the index, or makes the index if there are
 * enough records. */
void index_added(struct core *core, struct key *key);
/* Takes out of the index a record that was taken out of the key, but still leads on to the next. */
void index_drop(struct core *core, struct key *key, const struct record *r);
/* Frees the index, and leaves the records alone. */
void index_free(struct core *core, struct key *key);
/* The record has moved in memory. */
void index_moved(struct record_index *x, struct record *r);
/* The record, or a part of it, may end earlier than before. */
void index_ends_earlier(struct record_index *x, const struct record *r);
/* The token of the record may have changed. */
void index_token(struct record_index *x, const struct record *r);
/* Adds the terms of a record to the sums, or takes them away. */
void index_count(struct record_index *x, const struct record *r, bool more);
/* Returns the record of the lock_id, or NULL; and the pointer that points at a record. */
struct record *index_record(const struct record_index *x, struct id128 lock_id);
struct record **index_link(struct key *key, const struct record *r);
/* Return the first record in the order of the lock_ids, and the first one behind a lock_id. NULL:
 * there is none. */
struct record *index_first(const struct record_index *x);
struct record *index_after(const struct record_index *x, struct id128 lock_id);
/* Returns the first record, or the first one behind `behind`, of which something may have ended.
 * NULL: there is none. */
struct record *index_due(const struct core *core, struct record_index *x,
	const struct record *behind);
/* Returns when the first record or permit number ends. */
struct instant index_first_end(struct record_index *x);
/* Returns the highest token of all records but one, which may be NULL. */
uint64_t index_highest_token(const struct record_index *x, const struct record *but);
/* Tells whether a record has this token. */
bool index_has_token(const struct record_index *x, uint64_t token);
/* Tells whether all records are of this mode (terms.of). */
bool index_all_of(const struct record_index *x, uint16_t of);
/* Tells the same as key_contested; `of` is the mode of any of the records. */
bool index_contested(const struct record_index *x, uint16_t of);
/* Returns the same as key_taken. */
struct permits index_taken(const struct record_index *x, struct id128 lock_id, uint32_t of,
	bool *room);
/* Tells whether a record of another lock_id excludes these terms, and whether one is exclusive. */
bool index_excludes(const struct record_index *x, struct id128 lock_id, const struct terms *terms);
bool index_other_exclusive(const struct record_index *x, struct id128 lock_id);
/* CHECKs the index of a key that has one. */
void index_check(const struct key *key);

/* ---- key.c ---- */

struct slice key_name(const struct key *key);
/* Returns the key's struct key_more, and makes it if need be. NULL: no memory. */
struct key_more *table_more(struct core *core, struct key *key);
/* Returns the record of the lock_id of a key whose first record is another one, or NULL. */
struct record *key_record_behind(const struct key *key, struct id128 lock_id);
/* Returns the key's record of the lock_id, or NULL. Each message asks for it several times, and
 * most keys have one record or none. */
static inline struct record *key_record(const struct key *key, struct id128 lock_id) {
	struct record *r = key->held;
	return r == NULL || id128_equal(r->lock_id, lock_id) ? r : key_record_behind(key, lock_id);
}
/* Returns how many records the key has, or `most` if there are more. */
uint32_t key_count(const struct key *key, uint32_t most);
/* Returns the promise to this lock_id among those behind `p`, or NULL. */
struct promise *key_promise_behind(struct promise *p, struct id128 lock_id);
/* Returns the key's promise to this lock_id, or NULL. Each message asks for it several times, and
 * most keys have one or none. */
static inline struct promise *key_promise(const struct key *key, struct id128 lock_id) {
	struct promise *p = key_promises(key);
	return p == NULL || id128_equal(p->lock_id, lock_id) ? p
		: key_promise_behind(p, lock_id);
}
/* Returns a promise of the key to another lock_id, or NULL. */
struct promise *key_promised_other(const struct key *key, struct id128 lock_id);

/* ---- lacked.c ---- */

/* Returns how many places a node has that may take so much memory. */
uint32_t lacked_places(uint64_t memory_bytes);
int lacked_init(struct core *core);
void lacked_done(struct core *core);
/* Returns what one of the tables says of the lock_id. */
const struct lacking *lacking_find(const struct core *core, const struct lacking_place *places,
	struct id128 lock_id);
/* Remembers the lock_id in one of the tables, and returns where, for the caller to fill in more. */
struct lacking *lacking_note(const struct core *core, struct lacking_place *places,
	struct id128 lock_id);
/* The lock_id, or a permit number of it, has not been here since `at`. */
void lacked_since(struct core *core, struct id128 lock_id, struct instant at);
/* Returns a time in microseconds: if the lock_id is not here, this master has lacked it for at
 * least so long. */
uint64_t lacked_us(const struct core *core, struct id128 lock_id);
/* Returns how long ago `last` was, in microseconds, rounded down. A master does not know what was
 * before it voted, so it is at most the time since then. */
uint64_t lacked_us_since(const struct core *core, struct instant last);

/* This master begins to vote. It knows nothing of what was before that. */
static inline void lacked_vote_begins(struct core *core) {
	core->store.vote_began = core->now;
	core->store.clock_began = core->clock;
}
/* Returns when this master began to vote. */
static inline struct instant lacked_vote_began(const struct core *core) {
	return core->store.vote_began;
}

/* ---- terms.c: permit numbers ---- */

/* Tells whether all records of the key have permits of one semaphore of `of` permits. */
bool key_numbered(const struct key *key, uint16_t of);
/* Returns the numbers of a semaphore's record that others have here, too. */
struct permits record_doubtful(const struct key *key, const struct record *r);
/* Tells whether the key is contested (section 4) and this record is one of those that exclude each
 * other. Of a semaphore's record: in these numbers; if none is named, in any. */
bool record_doubted(const struct key *key, const struct record *r, struct permits numbers);
/* The record is accepted for the numbers that are named; the others last as long as they did
 * before. To be called before its end is lengthened and `accepted` is noted. */
void record_name(struct record *r, struct permits named);
/* Drops the numbers that have run out. False: there are none. */
bool record_run_out(struct core *core, struct key *key, struct record *r);
struct older record_older(const struct record *r);
void record_put_older(struct record *r, struct older o);
/* Keeps what is noted for the numbers that the record has. To be called before it gains numbers,
 * its token is raised, and it notes the clock. */
void record_keep_older(struct record *r);
/* Returns the numbers that this master had since this token, so that nobody else's lease came
 * between. */
struct permits record_had(const struct record *r, uint64_t token);
/* Returns the same of a copy in a snapshot: each of these numbers has been at its source since the
 * clock there was not above `noted`. */
struct older older_of(const struct message *m);
/* Keeps the numbers that both have, and the higher clock that was noted for them. */
void older_merge(struct record *r, struct older other);
/* Drops these numbers of the record. Some must be left. */
void record_lose_numbers(struct core *core, struct key *key, struct record *r,
	struct permits numbers);
/* Returns the numbers that are neither in doubt nor left to run out. */
struct permits record_lasting(const struct key *key, const struct record *r);

/* ---- record.c: who drew the ballots ---- */

/* Counts one more record whose ballot this node and boot have drawn, and writes their number.
 * False: there is no memory, or all numbers are used, and nothing has changed. */
bool record_origin_take(struct core *core, struct ballot ballot, uint16_t *out);
/* A record has this number no longer. */
void record_origin_give(struct core *core, uint16_t number);
/* Returns the ballot with this clock that the node with this number drew. */
static inline struct ballot origin_ballot(const struct core *core, uint64_t clock,
	uint16_t number) {
	const struct origin *o = number ? &core->store.origins.all[number] : NULL;
	return (struct ballot){ clock, o ? o->node : 0, o ? o->boot : 0 };
}
/* Frees the table, which no record needs any more. */
void record_origins_done(struct core *core);

/* ---- preparing.c ---- */

/* Tells whether another update of the value is under way, whose write may be on its way. */
bool preparing_busy(const struct core *core, const struct record *r, uint32_t from, uint64_t round);
/* The record has noted the ballot of this update. */
void preparing_note(struct core *core, const struct record *r, uint32_t from, uint64_t round);
/* The update was refused elsewhere, and will not write under this ballot. */
void preparing_drop(struct core *core, uint32_t from, const struct message *m);

/* ---- record.c ---- */

/* Returns the lock_id of the record that keeps a key closed after the release of this lock
 * (section 10, Closing). */
struct id128 record_closing_id(struct id128 released);
/* Makes that record, which ends when `closes` is over. The caller adds it to the key in the place
 * of `r`. NULL: no memory. */
struct record *record_closing_new(struct core *core, const struct record *r, span_ns closes);
/* Returns how many bytes a record has for the terms beyond `of` and `binding`. */
uint8_t terms_rest(const struct terms *terms);
/* Sets the terms of a record. What it has no room for is left out. */
void record_put_terms(struct record *r, const struct terms *terms);
struct slice record_owner(const struct record *r);
struct slice record_identity(const struct record *r);
struct slice record_label(const struct record *r);
struct slice record_value(const struct record *r);
/* Returns the size of the record's memory in bytes. */
size_t record_size(const struct record *r);
/* Makes a record of everything that the message says but its end. NULL: no memory. The caller frees
 * it with record_free, or adds it to a key. */
struct record *record_new(struct core *core, const struct message *m);
/* Makes a record that only keeps a value, and the ballot of its write. NULL: no memory. */
struct record *record_with_value(struct core *core, struct slice value, struct ballot wrote);
/* Frees a record that belongs to no key. It may be NULL. */
void record_free(struct core *core, struct record *r);
/* Returns the ballot of the write that made the record's value. */
static inline struct ballot record_wrote(const struct core *core, const struct record *r) {
	return origin_ballot(core, r->wrote_clock, r->origin);
}
/* Returns the highest ballot that this master has noted for the record. It is never below
 * record_wrote. */
struct ballot record_prepared(const struct core *core, const struct record *r);
/* Returns terms.binding of the record; and its lock terms with that. */
uint32_t record_binding(const struct record *r);
struct terms record_terms(const struct record *r);
/* Raises the binding to this one, if it is lower. That takes memory if the record has had none.
 * False: there is no memory, and nothing has changed. The record may move, as in record_write. */
bool record_bind(struct core *core, struct record **at, uint32_t binding);
/* Sets the value, unless it is NULL, and both ballots. The one that is prepared takes memory if it
 * is another one. False: there is no memory, and nothing has changed. The record, which belongs to
 * no key, may move; *at is the pointer to it. */
bool record_write(struct core *core, struct record **at, const struct slice *value,
	struct ballot wrote, struct ballot prepared);
/* Describes the record in a message: its token, the time that is left, its bytes, terms, age and
 * ballots. */
void record_describe(const struct core *core, const struct record *r, struct message *m);

/* ---- table.c ---- */

/* Returns the table that is voted and read from. */
static inline struct table *table_live(const struct core *core) {
	return core->store.live;
}
/* Returns the table that is built from snapshots, or is being emptied, or is empty. */
static inline struct table *table_staging(const struct core *core) {
	return core->store.staging;
}
/* Returns the table that has the key. */
static inline struct table *key_table(struct core *core, const struct key *key) {
	return &core->store.tables[key_table_index(key)];
}
/* Tells whether the key is in the live table. */
static inline bool key_is_live(const struct core *core, const struct key *key) {
	return &core->store.tables[key_table_index(key)] == core->store.live;
}
/* Returns a number of 46 bits. Two keys have the same one by a chance of 2^-46. */
static inline uint64_t key_number(const struct key *key) {
	return (uint64_t)key_leaf(key) << 32 | key->node.hash;
}
/* Returns the same number of the key with this name. */
static inline uint64_t key_number_of(const struct core *core, struct slice name) {
	return (uint64_t)digest_leaf_of(name) << 32 | (uint32_t)table_hash(core, name);
}
/* Counts a held record of the key in its table, whose terms.of is `of`. `by` is 1, or (uint64_t)-1
 * for one less. */
void table_count(struct core *core, const struct key *key, uint16_t of, uint64_t by);
/* Returns the key of the live table, without what is past its end. NULL: nothing of it is left. */
struct key *table_find(struct core *core, struct slice name);
/* Returns the same key, and makes it if it is not there. NULL: a limit is reached, or no memory. */
struct key *table_make(struct core *core, struct slice name);
/* Do the same with another table. */
struct key *table_find_in(struct core *core, struct table *t, struct slice name);
struct key *table_make_in(struct core *core, struct table *t, struct slice name);
/* Do the same in two steps, so that the caller can look in between and the name is hashed once
 * (table_hash). table_add is for a name that was not found. NULL: a limit is reached, or no
 * memory. */
struct key *table_find_hashed(struct core *core, struct slice name, uint64_t hash);
struct key *table_add(struct core *core, struct table *t, struct slice name, uint64_t hash);
/* Returns the hash of the message's key. */
static inline uint64_t message_hash(const struct core *core, const struct message *m) {
	return m->key_hash ? m->key_hash : table_hash(core, m->key);
}
/* Returns the same key as table_find, with what is past its end, and changes nothing. NULL: there
 * is none. */
const struct key *table_peek(const struct core *core, struct slice name);
/* Does the same with any table, and a hash of the caller. */
struct key *table_peek_hashed(const struct table *t, struct slice name, uint64_t hash);
/* Frees the key with all that stands on it. */
void table_free_key(struct core *core, struct key *key);
/* Frees all keys of the table. */
void table_clear(struct core *core, struct table *t);
/* Takes the staging table, which belongs to one builder at a time. False: it is another's, or is
 * still being emptied. */
bool table_staging_take(struct core *core);
/* Tells whether it could be taken. */
bool table_staging_free(const struct core *core);
/* What was built is of no use. It is emptied in pieces. */
void table_staging_drop(struct core *core);
/* The staging table becomes the live one, and the old live table is emptied in pieces. Promises and
 * queues must be gone before. Waits, lists and snapshots that are under way go on with the new
 * table. */
void table_swap(struct core *core);
/* Empties the next piece of the staging table. */
void table_empty_go_on(struct core *core);
/* Sets the key's timer, or frees the key if nothing is left of it: false. */
bool table_settle(struct core *core, struct key *key);
/* Ends what is past its end. False: nothing is left, and the key was freed. */
bool table_expire(struct core *core, struct key *key);
/* Does the same as record_write with a record of the key. NULL: no memory, and nothing has changed.
 * The record may move, and is returned. */
struct record *key_write(struct core *core, struct key *key, struct record *r,
	const struct slice *value, struct ballot wrote, struct ballot prepared);
/* Does the same as record_bind. */
struct record *key_bind(struct core *core, struct key *key, struct record *r, uint32_t binding);
/* Adds a record, which has its end, to the key, which owns it from then on. The caller settles the
 * key. */
void key_add_record(struct core *core, struct key *key, struct record *r);
/* Drops a record and frees it. The caller settles the key. */
void key_drop_record(struct core *core, struct key *key, struct record *r);
/* The record ends when `left` nanoseconds have passed, at the latest. The caller settles the
 * key. */
void record_shorten(struct core *core, struct key *key, struct record *r, span_ns left);
/* Something of the key ends at `end`, or later: sees to it that the key's timer does not fire after
 * that. The caller settles the key. */
void key_ends_by(struct core *core, struct key *key, struct instant end);
/* The record may end earlier than before. The caller settles the key. */
void key_ends_earlier(struct core *core, struct key *key, const struct record *r);
/* The records of the key have changed. `before` says whether it was contested before that. */
void key_note_contested(struct core *core, const struct key *key, bool before);

/* ---- promises.c ---- */

/* A key has at most so many promises. */
#define PROMISES_A_KEY 32

/* Makes a promise of the key to this lock_id, which has none yet. The promise notes the clock. The
 * caller fills in the rest, says when it ends (key_ends_by), links it to its coordinator and
 * settles the key. NULL: no memory. */
struct promise *key_make_promise(struct core *core, struct key *key, struct id128 lock_id);
/* Returns what this master has noted for a commit of the lock_id that names these permits. */
uint64_t promise_noted(const struct core *core, const struct promise *p, struct permits set);
/* Returns what the coordinator is told that this master has noted. For the permit numbers that
 * records have got since it was told last, the promise notes the clock anew. */
uint64_t promise_note(const struct core *core, struct promise *p);
/* Drops the promise and frees it. The caller settles the key. */
void key_drop_promise(struct core *core, struct key *key, struct promise *p);
/* Returns the permit numbers that promises to other lock_ids have. */
struct permits key_reserved(const struct key *key, struct id128 lock_id);
/* Returns how many permits of a semaphore of `of` no record of another lock_id has. *out_promised
 * is how many promises to other lock_ids want. */
uint32_t key_permits_free(const struct key *key, struct id128 lock_id, uint32_t of,
	uint32_t *out_promised);
/* Tells whether as many permits as these terms want are free, and promised to no other lock_id. */
bool key_permits_left(const struct key *key, struct id128 lock_id, const struct terms *terms);
/* Reserves the lowest permit numbers that are left for the promise, if this master reserves any for
 * it (promise.reserves); otherwise none. Returns the numbers that records of other lock_ids
 * have. */
struct permits promise_reserve(const struct key *key, struct promise *p);

/* ---- terms.c ---- */

/* Returns a record of another lock_id that excludes these terms, or NULL. */
struct record *key_excluding(const struct key *key, struct id128 lock_id,
	const struct terms *terms);
/* Returns a record of another lock_id that excludes these terms, or NULL. For a request of permits:
 * a record that ends first, if too few numbers are free. */
struct record *key_other(const struct key *key, struct id128 lock_id, const struct terms *terms);
/* Returns an exclusive record of another lock_id, or NULL. */
struct record *key_other_exclusive(const struct key *key, struct id128 lock_id);
/* Returns the highest token of all records of the key but one. */
uint64_t key_highest_token(const struct key *key, const struct record *but);
/* Tells whether a record of the key has this token. */
bool key_has_token(const struct key *key, uint64_t token);
/* Tells whether two records of the key exclude each other. */
bool key_contested(const struct key *key);
/* Tells the same of a key in a table, which counts such keys: mostly there is none. */
static inline bool table_contested(const struct core *core, const struct key *key) {
	return core->store.tables[key_table_index(key)].contested_count > 0 && key_contested(key);
}
/* Returns the permits that records of other lock_ids have. *room is false if one of them excludes
 * every permit of a semaphore of `of`. `key` may be NULL. */
struct permits key_taken(const struct key *key, struct id128 lock_id, uint32_t of, bool *room);
/* Merges the terms of two copies of one record, which must be alike: the shared one wins, and the
 * permits of both are its own (section 10, Downgrade). */
struct terms terms_both(const struct terms *a, const struct terms *b);
/* Tells whether a record of the mode `own` may be asked for again under the mode `asked`: under its
 * own, or as shared where it is exclusive here, because this master has missed the downgrade. Both
 * are terms.of. */
bool terms_again(uint16_t own, uint16_t asked);
/* Tells whether both terms may be those of one lock_id. */
bool terms_alike(const struct terms *a, const struct terms *b);
bool record_excludes(const struct record *r, const struct terms *terms);
/* Sets the terms of a record, which must have room for them. The caller brings the digests up to
 * date. */
void record_set_terms(struct core *core, struct key *key, struct record *r,
	const struct terms *terms);
/* Adds the lowest of these numbers to the set, as many as are wanted. Returns how many. */
uint32_t permits_lowest(struct permits from, uint32_t wanted, struct permits *set);

/* ---- walk.c ---- */

/* Visits the next records of the live table, finished ones. True: all have been visited. The walk
 * begins with map_walk_begin and ends with map_walk_end. */
bool table_walk(struct core *core, struct table_walk *w, struct walk_piece *piece);

#endif
