/* repair.h: anti-entropy among masters (section 7): a master that missed writes learns in the
 * background what a quorum has. It grants nothing, and nothing that it does is needed for
 * safety. */
#ifndef PAWL_CLUSTER_REPAIR_H
#define PAWL_CLUSTER_REPAIR_H

#include "replication.h"

/* Called four times in each request_timeout: begins an exchange, or evaluates the present one. */
void sync_beat(struct core *core);

/* Tells whether the judgement of an exchange is to go on in the next turn, and goes on with it. */
bool sync_left(const struct core *core);
void sync_go_on(struct core *core);

/* Handles all SYNC_... messages of another master. */
void sync_message(struct core *core, uint32_t from, const struct message *m);

/* Frees what the exchange remembers. It is made again when a difference is met. */
void sync_free(struct core *core);

#endif
