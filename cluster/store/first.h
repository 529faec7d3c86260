/* first.h: the ballots of first values (lacked.c). Part of store.h. */
#ifndef PAWL_CLUSTER_FIRST_H
#define PAWL_CLUSTER_FIRST_H

#include "state.h"

/* ---- of a master ---- */

/* Returns the highest ballot of the lock_id that this master may have noted and lost. */
struct ballot first_floor(const struct core *core, struct id128 lock_id);
/* This master loses what it has noted. */
void first_lost(struct core *core, struct id128 lock_id, struct ballot noted);
/* The record ends here, and the lock may live on elsewhere. */
void first_ended(struct core *core, const struct record *r);
/* The promise notes the ballot that the message names, and the answer says for how long the lock_id
 * was lacking. */
void first_promised(struct core *core, struct promise *p, const struct message *m,
	struct message *answer);
/* A new record takes the place of the promise, and has noted what the promise did. It belongs to no
 * key yet, and may move; *at is the pointer to it. False: there is no memory. */
bool first_noted(struct core *core, const struct key *key, struct record **at);
/* Tells whether the commit brings a first value whose ballot is below one that the lock_id has
 * noted here. `key` may be NULL. */
bool first_overtaken(const struct core *core, const struct key *key, const struct message *commit);
/* Returns for how long this master has lacked the lock_id, in microseconds, not counting an end by
 * release. */
uint64_t first_lacked_us(const struct core *core, struct id128 lock_id);

/* Returns the ballot of the waiter's first value. Its home draws the ballot when the waiter is to
 * be next. */
struct ballot first_of_waiter(struct core *core, struct waiter *w);

/* ---- of the coordinator of an acquire ---- */

/* Draws a ballot. None is drawn twice. */
struct ballot first_draw(struct core *core);

#endif
