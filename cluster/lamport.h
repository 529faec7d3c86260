/* lamport.h: the Lamport clock from which tokens are taken (docs/protocol.md, section 9). Private to cluster/. */
#ifndef PAWL_CLUSTER_LAMPORT_H
#define PAWL_CLUSTER_LAMPORT_H

#include "types.h"

struct core;

uint64_t clock_later(uint64_t clock, uint64_t by); /* at most TOKEN_MAX */
uint64_t clock_most(const struct core *core); /* the greatest clock that is taken from others now */
uint64_t clock_most_since(const struct core *core, struct instant since); /* from a master that has been above it since then */
void clock_limit_raise(struct core *core, uint64_t limit);
void master_raise_clock(struct core *core, uint64_t clock);
/* Counts and reports what is above the limit; key: of the message, or empty. */
void master_clock_refused(struct core *core, uint32_t from, uint64_t clock, struct slice key);

#endif
