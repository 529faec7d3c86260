/* engine.h: time, disk and messages of a node: the clock, what is to be on disk, the outbox, timers. */
#ifndef PAWL_CLUSTER_ENGINE_H
#define PAWL_CLUSTER_ENGINE_H

#include "state.h"

enum out_backlog { BACKLOG_SMALL, BACKLOG_SOME, BACKLOG_LARGE };

static inline bool follow_tells(const struct core *core) { /* the master's news are this node's */
	return core->follow.state == FOLLOW_ON && !core->follow.building;
}

static inline span_ns follow_age(const struct core *core, struct instant now) { /* SPAN_MAX: unknown */
	return core->follow.fresh_known ? instant_elapsed_long(now, core->follow.fresh) : SPAN_MAX;
}

/* ---- lamport.c ---- */
uint64_t clock_later(uint64_t clock, uint64_t by); /* at most TOKEN_MAX */
uint64_t clock_most(const struct core *core); /* the greatest clock that is taken from others now */
uint64_t clock_most_since(const struct core *core, struct instant since); /* from a master that has been above it since then */
void clock_limit_raise(struct core *core, uint64_t limit);
void master_raise_clock(struct core *core, uint64_t clock);
/* Counts and reports what is above the limit; key: of the message, or empty. */
void master_clock_refused(struct core *core, uint32_t from, uint64_t clock, struct slice key);

/* ---- outbox.c ---- */
void out_send(struct core *core, uint32_t peer, const struct message *m); /* copies the bytes; to itself: later in the step */
bool out_take_local(struct core *core, struct message *m);
bool out_reserve_reply(struct core *core);
void out_begin(struct core *core); /* a step */
void out_unheard(struct core *core); /* not even an answer could be stored */
struct core_reply *out_reply(struct core *core); /* zeroed; space was reserved */
bool out_copy(struct core *core, struct slice from, struct slice *to);
void *out_room(struct core *core, size_t size);
struct event_box *out_event_box(struct core *core); /* NULL: not within a step */
struct event_box *out_box(struct core_out *out);
void out_note(struct core *core, enum core_note_kind kind, uint32_t peer, uint64_t value, const char *text, struct slice key);
void out_reset(struct core *core, uint32_t peer);
void out_peer_gone(struct core *core, uint32_t peer); /* its index names nobody any more, or a link that is new */
void out_persist(struct core *core);
void out_drop_peer(struct core *core, uint32_t peer);
void out_permute(struct core *core, const int from[NODES_MAX]);
void out_drop_epoch(struct core *core); /* what was queued under the epoch before, but for what is of any epoch */
struct core *out_core(const struct core_out *out);
enum out_backlog out_backlog(const struct core *core, uint32_t peer); /* outbox.c */

/* ---- persist.c ---- */
void persist_start(struct core *core);
void persist_changed(struct core *core);
void persist_done(struct core *core, uint64_t seq, bool ok);
void persist_beat(struct core *core);
void ceiling_raise(struct core *core);
void persist_votes_end(struct core *core);
bool persist_may_leave(const struct core *core);
void persist_take(struct core *core, struct durable *state, uint64_t *seq);
void epoch_seen(struct core *core); /* notes the largest timings it votes under */

/* ---- timer.c ---- */
void timer_at(struct core *core, struct timer *t, enum timer_kind kind, struct instant at);
void timer_stop(struct core *core, struct timer *t);

#endif
