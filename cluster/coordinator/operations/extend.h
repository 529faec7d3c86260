/* extend.h: what extend.c and extend_repair.c share. */
#ifndef PAWL_CLUSTER_EXTEND_H
#define PAWL_CLUSTER_EXTEND_H

#include "operations.h"

#define EXTEND_ACCEPTED (VOTE_BIT(VOTE_HAD) | VOTE_BIT(VOTE_OK))

bool extend_any_has(const struct core *core, const struct op *op); /* a master that may give the record to others */
void extend_raise_behind(struct core *core, struct op *op);        /* after a vote: those below the highest token count no more, until they are taught */
void extend_feed(struct core *core, struct op *op);
void extend_fetched(struct core *core, struct op *op, const struct message *m);

#endif
