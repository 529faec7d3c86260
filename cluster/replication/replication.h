/* replication.h: a master that feeds its followers, and a replica that follows one (section 7). It
 * replicates the table of one master; nothing here votes.
 *
 * `from` and `peer` are peer indexes. A function that takes `from` and a message handles that
 * message. Bytes in a message are borrowed for the call. */
#ifndef PAWL_CLUSTER_REPLICATION_H
#define PAWL_CLUSTER_REPLICATION_H

#include "grants.h"
#include "operations.h"
#include "master.h"

/* ---- feed.c ---- */

/* Handles FOLLOW: begins to feed this follower, or refuses. A feed that it had ends. */
void feed_asked(struct core *core, uint32_t from, const struct message *m);

/* Handles FEED_ACK and FEED_ECHO. */
void feed_message(struct core *core, uint32_t from, const struct message *m);

/* Handles FEED_END, which either side of a feed sends to the other. */
void feed_ended(struct core *core, uint32_t from, const struct message *m);

/* The log has grown, or an echo waits to be returned: a batch leaves after replication_interval
 * at the latest. */
void feed_logged(struct core *core);

/* replication_interval is over: sends what waits. */
void feed_timer(struct core *core);

/* Tells whether a batch is full. */
static inline bool feed_step_due(const struct core *core) {
	return log_followed(core) && log_next(core) >= core->replication.feed_full_at;
}

/* At the end of a step: sends the batches that are full. */
void feed_step(struct core *core);

/* Tells whether a follower has said something upon which batches are to be sent. */
bool feed_due(const struct core *core);

/* Sends these batches, to each follower once in a turn of the loop: one of a snapshot, or as many
 * of the log as the window takes. */
void feed_send_due(struct core *core);

/* Ends the feed of this peer, if it has one, without telling the peer. */
void feed_stop(struct core *core, uint32_t peer);

/* Ends all feeds without telling the followers, because this node does not vote any more, or the
 * epoch has changed. */
void feed_stop_all(struct core *core);

/* ---- follow.c ---- */

/* The node is CORE_FOLLOWING from now on, or its epoch has changed: it looks for a master. */
void follow_start(struct core *core);

/* Leaves the master for now. The replica keeps its place and can go on from there. */
void follow_leave(struct core *core);

/* Leaves the master for good, because this node is no replica any more. Drops a snapshot that is
 * being built, and forgets the place in the master's log. */
void follow_stop(struct core *core);

/* A state transfer needs the staging table: drops a snapshot that is being built in it. */
void follow_yield(struct core *core);

/* The staging table is free. */
void follow_room(struct core *core);

/* Called with each beat of a replica: looks for another master where the present one is silent. */
void follow_beat(struct core *core);

/* Sends the regular echo. */
void follow_timer(struct core *core);

/* Handles what the master sends: FEED_BEGIN, FEED_RECORD, FEED_GONE, FEED_WATCH_EVENT, FEED_BATCH
 * and FEED_END. */
void follow_message(struct core *core, uint32_t from, const struct message *m);

/* The link to this peer is lost. */
void follow_peer_lost(struct core *core, uint32_t peer);

/* What a peer says of itself has changed: it may vote now, or no longer. */
void follow_peer_changed(struct core *core);

/* Sends FEED_ECHO to the master: an echo, and whether somebody watches here. */
void follow_say(struct core *core);

/* ---- observe.c ---- */

/* This node checks for double grants whenever it is a replica. Returns 0 or PAWL_ENOMEM. */
int observe_init(struct core *core);
void observe_done(struct core *core);

/* The node is CORE_FOLLOWING from now on, or its epoch has changed: it forgets what it has heard,
 * and hears all masters. */
void observe_start(struct core *core);

/* Leaves all masters, because this node is no replica any more, or the epoch ends. */
void observe_stop(struct core *core);

/* It is time for echoes, and to ask the masters that do not feed this node. */
void observe_timer(struct core *core);

/* Tells whether the message belongs to a feed for the audit. */
bool observe_is(const struct message *m);

/* Handles such a message. */
void observe_message(struct core *core, uint32_t from, const struct message *m);

/* The link to this peer is lost, or it ends the feed. */
void observe_lost(struct core *core, uint32_t peer);

/* These hear what the replica's own feed brings. The replica has asked this master for it. */
void observe_follows(struct core *core, uint32_t peer);
void observe_begun(struct core *core, const struct message *m, bool snapshot);
void observe_entry(struct core *core, const struct message *m);
void observe_batch(struct core *core, const struct message *m);

/* Tells whether this replica's master is to tell its watch events: for those who watch here, or for
 * the audit. */
static inline bool follow_wants_events(const struct core *core) {
	return watch_event_wanted_here(core) || core->replication.observe.grants != NULL;
}

/* ---- follow_apply.c ---- */

/* Somebody watches at this node from now on. */
void follow_watched(struct core *core);

/* Puts a record into the table as the master has it. False: there is no memory. */
bool follow_record(struct core *core, struct table *t, const struct message *m);

/* Drops a record that the master has no more. */
void follow_gone(struct core *core, struct table *t, const struct message *m);

/* Tells those who watch at this node what the master told those who watch there. */
void follow_watch_event(struct core *core, const struct message *m);

/* Tells whether the master is still to be told that somebody watches here. The next echo tells it
 * that nobody does any more. */
static inline bool follow_step_due(const struct core *core) {
	return core->follow.state == FOLLOW_ON && !core->follow.wants_events &&
		follow_wants_events(core);
}

/* At the end of a step: tells the master so. */
void follow_step(struct core *core);

#endif
