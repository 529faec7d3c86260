/* engine.h: the time, disk and messages of a node: its Lamport clock, what is to be on disk, the
 * outbox, and timers. */
#ifndef PAWL_CLUSTER_ENGINE_H
#define PAWL_CLUSTER_ENGINE_H

#include "state.h"

/* How much waits for a peer. */
enum out_backlog { BACKLOG_SMALL, BACKLOG_SOME, BACKLOG_LARGE };

/* Tells whether the watch events of the master that this replica follows are its own. */
static inline bool follow_tells(const struct core *core) {
	return core->follow.state == FOLLOW_ON && !core->follow.building;
}

/* Returns how old a replica's view is, in nanoseconds; SPAN_MAX: unknown. */
static inline span_ns follow_age(const struct core *core, struct instant now) {
	return core->follow.fresh_known ? instant_elapsed_long(now, core->follow.fresh) : SPAN_MAX;
}

/* ---- clock.c: the Lamport clock ---- */

/* Returns clock + by, at most TOKEN_MAX. */
uint64_t clock_later(uint64_t clock, uint64_t by);
/* Returns the greatest clock that this node takes from others now: up to CLOCK_JUMP_MAX above its
 * own, and over time one more for each nanosecond. */
uint64_t clock_most(const struct core *core);
/* Tells whether this node takes the clock: it is at most clock_most. */
bool clock_within(const struct core *core, uint64_t clock);
/* Returns the same as clock_most for a master whose clock has been above that since `since`. It is
 * higher by the nanoseconds that have passed since then, but by no more than the limit would have
 * grown. */
uint64_t clock_most_since(const struct core *core, struct instant since);
void clock_limit_raise(struct core *core, uint64_t limit);
/* Raises this node's clock to `clock`, if that is higher. */
void clock_raise(struct core *core, uint64_t clock);
/* Counts and reports a clock that is above the limit. `key` is the key of the message, or empty. */
void clock_refused(struct core *core, uint32_t from, uint64_t clock, struct slice key);

/* ---- outbox.c ---- */

/* Queues a message and copies its bytes. A message to the node itself is handled later in the
 * step. */
void out_send(struct core *core, uint32_t peer, const struct message *m);
/* Queues an answer of this kind to the peer's message `to`, all zero but for its round, and returns
 * it. The caller fills it in before anything else is sent. It carries no bytes: nothing copies
 * them. */
struct message *out_answer(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *to);
/* Copies the bytes of a message that is sent several times in this step, so that out_send need not
 * copy them each time. The message points to the copy then. Without memory its bytes stay where
 * they are. It also gets a number (struct message, `same`). */
void out_keep(struct core *core, struct message *m);
/* Takes the next message to the node itself, which stays where it is until the next call. NULL:
 * there is none. */
const struct message *out_take_local(struct core *core);
/* Makes room for one more reply than there are callers. False: no memory. */
bool out_reserve_reply(struct core *core);
/* There is no memory even for an answer to the request of this step. */
static inline void out_unheard(struct core *core) {
	core->engine.unheard = true;
}
/* Returns a new reply, all zero. Room for it must have been reserved. */
struct core_reply *out_reply(struct core *core);
/* Copies bytes for a reply or a note. False: no memory, and *to is empty. */
bool out_copy(struct core *core, struct slice from, struct slice *to);
/* Returns memory for lists of a reply, which lives until core_out_clear; NULL: no memory. */
void *out_room(struct core *core, size_t size);
/* Returns where watch events of this step go; NULL: no step is under way. */
struct event_box *out_event_box(struct core *core);
/* Adds a note for the operator's log. `text` has static storage. */
void out_note(struct core *core, enum core_note_kind kind, uint32_t peer, uint64_t value,
	const char *text, struct slice key);
/* Adds a note of a double grant, of two holders. */
void out_note_double_grant(struct core *core, uint32_t peer, const char *text, struct slice key,
	const struct core_note_holder holders[2]);
/* Returns why this node takes no part in the cluster, and what helps, as constant text; NULL if it
 * does take part. */
const char *engine_absence(const struct core *core);
/* Has the driver reset the link of the peer. */
void out_reset(struct core *core, uint32_t peer);
/* Forgets everything about an index whose node is gone, or whose link is a new one. */
void out_peer_gone(struct core *core, uint32_t peer);
/* Has the driver write the durable state. */
void out_persist(struct core *core);
/* Drops what is queued for the peer. */
void out_drop_peer(struct core *core, uint32_t peer);
/* The table of peers was built anew: from[i] is the index at which peer i was before, or -1. */
void out_permute(struct core *core, const int from[NODES_MAX]);
/* Drops what was queued under the previous epoch, except for messages of any epoch. */
void out_drop_epoch(struct core *core);
struct core *out_core(const struct core_out *out);
/* Call these when somebody asks for something, and when nobody waits for that answer any more:
 * there is always room for one reply to each caller. */
static inline void out_caller_added(struct core *core) {
	core->engine.caller_count++;
}
static inline void out_caller_removed(struct core *core) {
	core->engine.caller_count--;
}
/* This node counts as not linked with itself from now on: what it says to itself is lost. */
static inline void out_lose_self(struct core *core) {
	core->engine.self_lost = true;
}
/* This node hears itself again. */
static inline void out_find_self(struct core *core) {
	core->engine.self_lost = false;
}
/* Tells whether this node hears what it says to itself. */
static inline bool out_hears_self(const struct core *core) {
	return !core->engine.self_lost;
}
/* Takes one of the peers for which a message could not be queued in this step. There must be
 * one. */
static inline uint32_t out_take_failed(struct core *core) {
	const uint32_t peer = (uint32_t)__builtin_ctzll(core->engine.failed);
	core->engine.failed &= core->engine.failed - 1;
	return peer;
}
/* Tells how much waits for the peer, so that those who fill the queue may say less, or nothing. */
enum out_backlog out_backlog(const struct core *core, uint32_t peer);

/* ---- persist.c ---- */

/* The node starts: it draws its boot and sets its clock to the clock reservation. */
void persist_start(struct core *core);
/* The durable state has changed, and is to be on disk. */
void persist_changed(struct core *core);
/* The driver has written the state with the number `seq`, or (ok false) could not write it. */
void persist_done(struct core *core, uint64_t seq, bool ok);
/* Tries again to write what could not be written, if it is time for that. */
void persist_beat(struct core *core);
/* Raises the clock reservation if half of the last block is used. */
void ceiling_raise(struct core *core);
/* The node is about to stop voting. What it said while it voted may still wait for the disk, and
 * rests on the clock that the node has now. */
void persist_votes_end(struct core *core);
/* Tells whether messages and answers may leave: this start is on disk, and the clock, from whatever
 * source, is not above the clock reservation there. */
bool persist_may_leave(const struct core *core);
/* Gives the driver the state to write, and its number. */
void persist_take(struct core *core, struct durable *state, uint64_t *seq);
/* Returns the number of the state that is wanted on disk. */
static inline uint64_t persist_wanted(const struct core *core) {
	return core->engine.persist_seq;
}
/* Tells whether the state with this number, or a later one, is on disk. */
static inline bool persist_reached(const struct core *core, uint64_t seq) {
	return core->engine.persist_done >= seq;
}
/* Tells whether the state on disk has this node's pledge. */
static inline bool persist_has_pledged(const struct core *core) {
	return core->engine.pledged_on_disk;
}
/* Tells whether the state on disk says that this node has voted in its epoch. */
static inline bool persist_has_voted(const struct core *core) {
	return core->engine.voted_on_disk;
}
/* Notes the largest timing constants under which this node votes. */
void epoch_seen(struct core *core);

/* ---- clock.c: timers ---- */

/* Sets the timer, which may be set already, to `at`. */
void timer_at(struct core *core, struct timer *t, enum timer_kind kind, struct instant at);
/* Sets the timer so that it fires at `at` or before. If it is set for an earlier time it stays as
 * it is, which costs less; whoever is woken then finds that it is too early, and sets it again. */
void timer_by(struct core *core, struct timer *t, enum timer_kind kind, struct instant at);
void timer_stop(struct core *core, struct timer *t);

/* ---- turns of the loop ---- */

/* There is work of this kind. */
static inline void pending_add(struct core *core, enum pending kind) {
	core->engine.pending |= kind;
}
/* Whoever has gone on with the work says whether any is left. */
static inline void pending_left(struct core *core, enum pending kind, bool left) {
	core->engine.pending = left ? core->engine.pending | kind
		: core->engine.pending & ~(uint32_t)kind;
}

/* Returns how much of the work that is done in pieces may still be done in this turn. Whoever does
 * a piece takes it off. */
static inline struct pieces *turn_pieces(struct core *core) {
	return &core->engine.left;
}

/* Takes a piece off what is left of one kind of work, or all of it if the piece is larger. */
static inline void pieces_take(uint32_t *left, uint64_t piece) {
	*left -= piece < *left ? (uint32_t)piece : *left;
}

#endif
