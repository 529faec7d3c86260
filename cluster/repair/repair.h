/* repair.h: anti-entropy among masters. */
#ifndef PAWL_CLUSTER_REPAIR_H
#define PAWL_CLUSTER_REPAIR_H

#include "replication.h"

/* ---- sync.c ---- */
void sync_beat(struct core *core);
void sync_message(struct core *core, uint32_t from, const struct message *m);
void sync_free(struct core *core);

#endif
