/* recovery.h: how a master that lacks its memory, or begins in a new epoch, comes to vote (sections
 * 4 and 6): snapshots, merging, copying ahead, rejoining. A master votes only once it knows, or has
 * outlived, every lease that may be trusted.
 *
 * `from` and `peer` are peer indexes. A function that takes `from` and a message handles that
 * message. Bytes in a message are borrowed for the call. */
#ifndef PAWL_CLUSTER_RECOVERY_H
#define PAWL_CLUSTER_RECOVERY_H

#include "recovery_state.h"
#include "repair.h"

/* To be called when a snapshot that is sent, or a transfer of state to this node, has begun or
 * ended. */
static inline void recovery_copies_changed(struct core *core) {
	core->copied = core->snapshots > 0 ||
		core->recovery->transfer.kind != STATE_TRANSFER_NONE;
}

/* ---- announced.c ---- */

/* Returns until when a change that is announced now counts as announced. */
struct instant announced_until(const struct core *core);

/* Notes that a change to this configuration is announced. False: another change goes first, and
 * nothing is noted. */
bool announced_goes_first(struct core *core, const struct config *c);

/* Another epoch is in force, so nothing is announced any more. */
static inline void announced_forget(struct core *core) {
	core->recovery->announced = (struct announced){ .count = 0 };
}

/* Tells whether this peer is to be a master of the next epoch, by an announced change or by the
 * value that was accepted here. */
bool announced_next_master(const struct core *core, uint32_t peer);

/* Tells whether a decree of this epoch may choose this configuration. */
bool announced_may_follow(const struct core *core, const struct config *c);

/* ---- state_transfer.c ---- */

/* Begins to collect what the other masters of this epoch know, to rejoin. */
void state_transfer_rejoin(struct core *core);

/* The node is a master of the epoch that was adopted: goes on with what was copied ahead for it, or
 * begins a handover. */
void state_transfer_handover(struct core *core);

/* Begins to copy ahead for this configuration, or goes on if that is under way. False: the staging
 * table is needed for another state transfer. */
bool state_transfer_ahead(struct core *core, const struct config *c);

/* Tells whether enough sources of the previous epoch have sent all that they had. */
bool state_transfer_ready(const struct core *core);

/* Gives up the state transfer, if there is one, and what it has merged into the staging table. */
void state_transfer_stop(struct core *core);

/* Begins the handover or rejoining anew. What was copied ahead is given up. */
void state_transfer_again(struct core *core);

/* Returns for how long a handover has at most to wait for masters that have forgotten; 0: that wait
 * alone does not make the sources enough. */
span_ns state_transfer_left(const struct core *core, struct instant now);

/* The link to this peer is lost. */
void state_transfer_peer_lost(struct core *core, uint32_t peer);

/* Something is on disk; it may be the mark `voted`. */
void state_transfer_persisted(struct core *core);

/* ---- state_transfer_ask.c ---- */

/* Called with each beat of the node: asks sources, gives up silent ones, and votes when enough is
 * known. */
void state_transfer_beat(struct core *core);

/* Tells whether a source waits to be asked for its next piece. */
bool state_transfer_paused(const struct core *core);

/* Asks those sources for their next piece whose pause is over. */
void state_transfer_pause_over(struct core *core);

/* Handles what a source sends: SNAPSHOT_RECORD, SNAPSHOT_RELEASED, SNAPSHOT_LOST, SNAPSHOT_CHUNK,
 * SNAPSHOT_READY and SNAPSHOT_END. */
void state_transfer_message(struct core *core, uint32_t from, const struct message *m);

/* ---- state_transfer_own.c ---- */

/* Tells whether this node's own table is being copied. Then state_transfer_go_on is to be called
 * once a step. */
bool state_transfer_busy(const struct core *core);

/* Copies a piece of this node's own table. */
void state_transfer_go_on(struct core *core);

/* A record of the live table has changed, a lock_id has ended, or a record is here no more: if this
 * node is a source of its own, that goes into the staging table, too. */
void state_transfer_changed(struct core *core, const struct key *key, const struct record *r);
void state_transfer_released(struct core *core, const struct message *m);
void state_transfer_lost(struct core *core, const struct message *m);

/* ---- merge.c ---- */

/* Merges a record of a snapshot into the table. `source`: the bit of this try to copy from the
 * source. False: there is no memory, and the snapshot is not whole then. */
bool merge_record(struct core *core, struct table *t, uint32_t source, const struct message *m);

/* Merges what a source remembers of a lock_id that has ended. */
void merge_released(struct core *core, struct table *t, const struct message *m);

/* The source with this bit has lost the record. */
void merge_lost(struct core *core, struct table *t, uint32_t source, const struct message *m);

/* The table that was merged is the live one from now on: its records are to be finished. */
void merge_finish_begin(struct core *core);

/* ---- copy_ahead.c ---- */

/* Handles COPY_AHEAD: a master that coordinates a change asks this node to copy ahead for it. */
void copy_ahead_asked(struct core *core, uint32_t from, const struct message *m);

/* The master that asked has given its change up. */
void copy_ahead_ended(struct core *core, uint32_t from, const struct message *m);

/* Tells the master that asked how far copying ahead is. */
void copy_ahead_tell(struct core *core);

/* ---- recovery.c ---- */

/* The node starts as a master. `restored`: it has read a side file. */
void recovery_start(struct core *core, bool restored);

/* Stops voting and rejoins. */
void recovery_again(struct core *core);

/* The same for a master of a new epoch. If it was recovering before, the wait goes on that it began
 * then, whatever is decided meanwhile. */
void recovery_again_in_epoch(struct core *core);

/* Called with each beat of the node: votes when the wait is over. */
void recovery_beat(struct core *core);

/* Votes from now on. `how`: a constant string for the log that says by which way. */
void recovery_vote(struct core *core, const char *how);

/* ---- snapshot.c ---- */

/* Handles SNAPSHOT: begins to send this peer a snapshot, or refuses. */
void snapshot_asked(struct core *core, uint32_t from, const struct message *m);

/* Tells whether a peer is to be sent a piece. */
bool snapshot_due(const struct core *core);

/* Sends the pieces that are due, to each peer one in a turn of the loop. */
void snapshot_send_due(struct core *core);

/* Handles SNAPSHOT_GO_ON: sends the next piece, or stops. */
void snapshot_go_on(struct core *core, uint32_t from, const struct message *m);

/* A record of the live table has changed while somebody copies it. */
void snapshot_changed(struct core *core, const struct key *key, const struct record *r);

/* A lock_id has ended: what the tombstones remember of it is sent. */
void snapshot_released(struct core *core, struct slice key, struct id128 lock_id);

/* A record is here no more, for whatever reason. `closed`: for how long the key stays closed all
 * the same (section 10, lock delay). */
void snapshot_lost(struct core *core, const struct key *key, const struct record *r,
	span_ns closed);

/* Stops sending to this peer, without telling it. */
void snapshot_stop(struct core *core, uint32_t peer);

/* Another table is the live one; `old` was before. Those that are being sent a snapshot ask
 * anew. */
void snapshot_tables_swapped(struct core *core, struct table *old);

/* Another epoch is in force: snapshots for it get their end, and all others are refused. */
void snapshot_epoch(struct core *core);

#endif
