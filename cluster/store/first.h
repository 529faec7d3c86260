/* first.h: the ballots of first values (first.c). */
#ifndef PAWL_CLUSTER_FIRST_H
#define PAWL_CLUSTER_FIRST_H

#include "store.h"

/* Of a master. */
struct ballot first_floor(const struct core *core, struct id128 lock_id); /* the highest ballot of the lock_id that it may have noted and lost */
void first_lost(struct core *core, struct id128 lock_id, struct ballot noted); /* it loses what it noted */
void first_ended(struct core *core, const struct record *r); /* it ends here, and the lock may live on elsewhere */
void first_promised(struct core *core, struct promise *p, const struct message *m, struct message *answer);
void first_noted(const struct key *key, struct record *r); /* a new record, which takes the place of the promise */
bool first_overtaken(const struct core *core, const struct key *key, const struct message *commit);
uint64_t first_lacked_us(const struct core *core, struct id128 lock_id); /* for how long it has lacked it, but for a release */

struct ballot first_of_waiter(struct core *core, struct waiter *w); /* drawn by its home when it is to be next */

/* Of the coordinator of an acquire. */
struct ballot first_draw(struct core *core);
bool first_lapsed(const struct core *core, const struct op *op, const struct message *m); /* this master has lacked it since `since`, until it promised */

#endif
