/* first.h: first values that may be older than an update of the same lock_id (first.c). */
#ifndef PAWL_CLUSTER_FIRST_H
#define PAWL_CLUSTER_FIRST_H

#include "state.h"

/* Of a master. */
void first_outlived(struct core *core, const struct key *key, const struct record *r); /* it ends here with an updated value, and the lock may live on elsewhere */
bool first_in_doubt(const struct core *core, const struct record *r);
bool first_promised(const struct key *key, const struct message *commit, uint32_t from); /* its promise has stood until now */
void first_accepted(const struct core *core, const struct key *key, const struct message *commit, bool promised, struct message *answer);
void first_taught(struct core *core, const struct record *r, const struct message *m);

/* Of the coordinator of an acquire. */
void first_begin(struct op *op);
void first_answered(const struct core *core, struct op *op, uint32_t from, const struct message *m);

#endif
