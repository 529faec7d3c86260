/* gather.h: what the files of gathering share. Private to cluster/. */
#ifndef PAWL_CLUSTER_GATHER_H
#define PAWL_CLUSTER_GATHER_H

#include "recovery.h"

bool gather_beside(const struct core *core);  /* it is built beside the table */
struct table *gather_into(struct core *core);
struct source *gather_source(struct gather *g, struct id128 id); /* NULL: none */
void gather_begin(struct core *core, enum gather_kind kind, const struct config *c);
void gather_break_off(struct core *core, struct source *s);
bool gather_take_bit(struct core *core, struct source *s); /* false: used up */
void gather_tell_stop(struct core *core, const struct source *s);
void gather_ask(struct core *core, struct source *s, uint32_t slot);
bool gather_counts_before(const struct core *core, const struct source *s); /* as a source of the epoch before, by now */
bool gather_forgotten_long_enough(const struct core *core, const struct source *s);
void gather_judge(struct core *core); /* votes, if what is here is enough */

/* gather_own.c */
struct source *gather_own(struct core *core); /* this node, as a source; NULL: it is none */
void gather_ask_own(struct core *core, struct source *s);
void gather_own_done(struct core *core, struct source *s);
void gather_end_own_walk(struct core *core);

#endif
