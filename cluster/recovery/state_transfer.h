/* state_transfer.h: what the files of a state transfer share. Private to recovery/. */
#ifndef PAWL_CLUSTER_STATE_TRANSFER_H
#define PAWL_CLUSTER_STATE_TRANSFER_H

#include "recovery.h"

/* Tells whether the state transfer merges into the staging table. */
bool state_transfer_staging(const struct core *core);

/* Returns the table that the state transfer merges into. */
struct table *state_transfer_into(struct core *core);

/* Returns the source with this identity; NULL: there is none. */
struct source *state_transfer_source(struct state_transfer *transfer, struct id128 id);

/* Makes a new state transfer, with its sources, for this configuration. */
void state_transfer_begin(struct core *core, enum state_transfer_kind kind, const struct config *c);

/* Gives up a try to copy from this source, which may be asked again. */
void state_transfer_break_off(struct core *core, struct source *s);

/* Gives the source the bit for a new try. False: all bits are used up. */
bool state_transfer_take_bit(struct core *core, struct source *s);

/* Tells the source to send nothing more, if it is sending. */
void state_transfer_tell_stop(struct core *core, const struct source *s);

/* Asks the source, whose peer index this is, for a snapshot. */
void state_transfer_ask(struct core *core, struct source *s, uint32_t index);

/* Tells whether the source counts by now as a source of the previous epoch. */
bool state_transfer_counts_before(const struct core *core, const struct source *s);
/* Tells whether the sources that have been copied are enough to vote. */
bool state_transfer_enough(const struct core *core);

/* Tells whether a source that has forgotten has done so for long enough to count. */
bool state_transfer_forgotten_long_enough(const struct core *core, const struct source *s);

/* Begins to vote once enough has been merged. */
void state_transfer_evaluate(struct core *core);

/* ---- state_transfer_own.c ---- */

/* Returns this node as a source of its own; NULL: it is none. */
struct source *state_transfer_own(struct core *core);

/* Begins to copy this node's own table, or says that it has nothing to tell. */
void state_transfer_ask_own(struct core *core, struct source *s);

/* This node's own copy is whole. */
void state_transfer_own_done(struct core *core, struct source *s);

/* Ends the walk over this node's own table, if one is under way. */
void state_transfer_end_own_walk(struct core *core);

#endif
