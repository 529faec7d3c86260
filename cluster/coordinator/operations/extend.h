/* extend.h: what extend.c and extend_repair.c share. */
#ifndef PAWL_CLUSTER_EXTEND_H
#define PAWL_CLUSTER_EXTEND_H

#include "operations.h"

#define EXTEND_ACCEPTED (VOTE_BIT(VOTE_HAD) | VOTE_BIT(VOTE_OK))

/* Returns the name under which masters accept the extension, and what it sends for repair
 * (section 11); 0: it has none. */
uint64_t extend_name(const struct op *op);

/* Tells whether some master that answered may give the record to others. */
bool extend_any_has(const struct core *core, const struct op *op);

/* After a vote: masters below the highest token no longer count, until they have been sent the
 * record with that token. */
void extend_raise_behind(struct core *core, struct op *op);

/* Sends the record to the masters that want it, or asks a master for it. */
void extend_send_record(struct core *core, struct op *op);

/* Takes the answer of the master that was asked for the record. */
void extend_fetched(struct core *core, struct op *op, const struct message *m);

#endif
