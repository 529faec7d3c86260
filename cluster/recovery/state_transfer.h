/* state_transfer.h: what the files of gathering share. Private to cluster/. */
#ifndef PAWL_CLUSTER_STATE_TRANSFER_H
#define PAWL_CLUSTER_STATE_TRANSFER_H

#include "recovery.h"

bool state_transfer_staging(const struct core *core);  /* it is built beside the table */
struct table *state_transfer_into(struct core *core);
struct source *state_transfer_source(struct state_transfer *g, struct id128 id); /* NULL: none */
void state_transfer_begin(struct core *core, enum state_transfer_kind kind, const struct config *c);
void state_transfer_break_off(struct core *core, struct source *s);
bool state_transfer_take_bit(struct core *core, struct source *s); /* false: used up */
void state_transfer_tell_stop(struct core *core, const struct source *s);
void state_transfer_ask(struct core *core, struct source *s, uint32_t index);
bool state_transfer_counts_before(const struct core *core, const struct source *s); /* as a source of the epoch before, by now */
bool state_transfer_forgotten_long_enough(const struct core *core, const struct source *s);
void state_transfer_evaluate(struct core *core); /* votes, if what is here is enough */

/* state_transfer_own.c */
struct source *state_transfer_own(struct core *core); /* this node, as a source; NULL: it is none */
void state_transfer_ask_own(struct core *core, struct source *s);
void state_transfer_own_done(struct core *core, struct source *s);
void state_transfer_end_own_walk(struct core *core);

#endif
