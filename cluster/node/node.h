/* node.h: the whole node: steps, which room takes a message, who hears of what, a planned stop. It
 * decides nothing of the protocol itself. */
#ifndef PAWL_CLUSTER_NODE_H
#define PAWL_CLUSTER_NODE_H

#include "membership.h"

/* ---- background.c ---- */

/* Does the pieces of long work that this turn of the loop has left. */
void background(struct core *core);

/* Does what is left for the end of a step. */
void background_at_end(struct core *core);

/* Says how many pieces a turn of the loop may do. */
void background_init(struct core *core);

/* Returns when the next piece is due, by the boot clock in nanoseconds; INT64_MAX: there is nothing
 * to do. */
int64_t background_deadline(const struct core *core);

/* ---- core.c ---- */

/* Hands a message to the function that MESSAGE_TABLE names. */
void step_message(struct core *core, uint32_t from, const struct message *m);

/* ---- drain.c ---- */

/* Stops voting, answers what is under way, and prepares the side file (core_drain_frame). */
void drain_start(struct core *core);

/* Takes back a frame of the side file, before the node starts. The frame is borrowed. */
void drain_restore(struct core *core, const struct frame *frame);

/* Frees what a planned stop needs. */
void drain_done(struct core *core);

/* ---- figures.c ---- */

/* Goes on looking for the oldest holder, and for the keys that stand out, which somebody wants to
 * know. */
void figures_beat(struct core *core);

/* ---- hot.c ---- */

/* From now on the keys that stand out are looked for, if there is memory for that. */
void hot_want(struct core *core);
/* A beat: time passes. */
void hot_beat(struct core *core);
/* The walk has met a key. */
void hot_met(struct core *core, const struct key *key);
/* The walk is over, and begins again. */
void hot_walked(struct core *core);
void hot_done(struct core *core);

/* ---- frames.c ---- */

/* Handles a frame of this peer. The frame is borrowed. */
void peer_frame(struct core *core, uint32_t peer, const struct frame *frame);

/* ---- request.c ---- */

/* Handles a client's request: refuses it, joins it to the operation that it repeats, or begins an
 * operation. The request is borrowed. */
void request_handle(struct core *core, const struct core_request *r);

#endif
