/* node.h: the whole node: steps, who gets a message, who hears of what. */
#ifndef PAWL_CLUSTER_NODE_H
#define PAWL_CLUSTER_NODE_H

#include "membership.h"

/* ---- background.c ---- */
void background(struct core *core);
void background_turn(struct core *core); /* perhaps another turn of the loop has begun */
int64_t background_deadline(const struct core *core); /* INT64_MAX: there is nothing to do */

/* ---- core.c ---- */
void step_message(struct core *core, uint32_t from, const struct message *m);

/* ---- drain.c ---- */
void drain_start(struct core *core);
void drain_restore(struct core *core, const struct frame *frame);
void drain_done(struct core *core);

/* ---- frames.c ---- */
void peer_frame(struct core *core, uint32_t peer, const struct frame *frame);

/* ---- request.c ---- */
void request_handle(struct core *core, const struct core_request *r);

#endif
