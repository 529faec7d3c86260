/* peers.h: the table of peers, their links and round trips, and what is known of the masters. */
#ifndef PAWL_CLUSTER_PEERS_H
#define PAWL_CLUSTER_PEERS_H

#include "engine.h"

/* ---- pace.c ---- */

/* Notes a round trip to the peer, in nanoseconds, that this node has measured, and the longest one,
 * in microseconds, that the peer says it has measured lately. */
void pace_measured(struct core *core, uint32_t peer, span_ns round_trip, uint64_t told_us);
/* Returns the longest round trip that this node has measured to any member lately; 0: none. */
span_ns pace_own(const struct core *core);
/* Returns the longest round trip that this node has measured or that members have told. *peer is
 * the node that it leads to, or that told it. */
span_ns pace_longest(const struct core *core, uint32_t *peer);

/* ---- peers.c ---- */

/* A link to the peer is up, as the event CORE_PEER_UP says. */
void peer_up(struct core *core, uint32_t peer, const struct core_event *e);
/* The link of the peer is gone. closed: the other side has closed it. */
void peer_down(struct core *core, uint32_t peer, bool closed);
void peer_ping(struct core *core, uint32_t peer, const struct message *m);
void peer_pong(struct core *core, uint32_t peer, const struct message *m);
/* With each beat: this node hears itself again, if it had lost itself; sends pings, and resets
 * links without an answer for request_timeout. Each peer may change its vote once more
 * (frames.c). */
void peers_beat(struct core *core);
void peer_ping_send(struct core *core, uint32_t peer);
/* Resets all links. The loop stood still, and what waits unread in the links is old and must not
 * come to life. */
void peers_reset_all(struct core *core);
/* Handles the loss of one of the peers for which a message could not be queued. There must be
 * one. */
void peers_lose_failed(struct core *core);
/* Pings everybody at once, because the voting flag in this node's frames has changed. */
void peers_tell(struct core *core);
/* Tells whether the peer is linked, or is this node itself. */
bool peer_reachable(const struct core *core, uint32_t index);
/* Tells whether the peer is reachable and votes in this epoch. */
bool peer_votes(const struct core *core, uint32_t index);
/* Tells whether masters listen to what this node coordinates: it is in the configuration, or was a
 * master of the previous epoch. */
bool peers_listen(const struct core *core);
/* Returns the longest pause, in nanoseconds, of an operation that a rival refused: two round trips,
 * doubled `doubled` times, and at most promise_timeout / 4. */
span_ns peers_pause_most(const struct core *core, uint32_t doubled);

/* ---- silence.c ---- */

/* The round of a ping that says that its sender pings a silent master, too. It has no other use. */
#define PING_TELLS_SILENCE (UINT64_C(1) << 63)

/* Something is expected of the peer from now on, if it is a linked master: if it is silent for a
 * while it is pinged, and if it is silent after that, it is suspect. */
void peer_expect_begins(struct core *core, uint32_t peer);
/* The master owes somebody the next turn of a key with this place. */
void peer_expect_turn(struct core *core, uint32_t peer, uint32_t place);
/* A key with this place has a holder, so that the turn was given. */
void peers_turn_given(struct core *core, uint32_t place);
/* Something has come from a master that is suspect. */
void peer_suspect_heard(struct core *core, uint32_t peer);
/* Forgets what is expected of the peer, and that it is suspect. */
void peer_suspect_end(struct core *core, uint32_t peer);
/* Notes peer.round_trip for how long the peer may be silent. */
void peer_silence_measured(struct core *core, uint32_t peer);
/* Another node says that it pings a silent master. */
void peers_silence_told(struct core *core, uint32_t from);
/* The alarm for silent masters rings. */
void peers_silence_rings(struct core *core);

/* Another node was asked something, and is expected to answer this round. */
static inline void peer_expect(struct core *core, uint32_t peer, uint64_t answer) {
	struct peer *p = &core->peers[peer];
	p->awaited = answer;
	p->owes_at = 0;
	if (!p->expected) {
		peer_expect_begins(core, peer);
	}
}

/* Something has come from the peer. */
static inline void peer_heard(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	p->silent_since = core->now;
	p->pinged = false;
	if (p->suspect) {
		peer_suspect_heard(core, peer);
	}
}

/* The peer has answered this round, and so all that it was asked before. */
static inline void peer_answered(struct core *core, uint32_t peer, uint64_t answer) {
	struct peer *p = &core->peers[peer];
	p->expected = p->expected && p->awaited != answer;
}

/* Returns how many masters are suspect. */
static inline uint32_t peers_suspect(const struct core *core) {
	return core->peering.suspects;
}

/* Tells whether the master is suspect: it is linked, and silent. */
static inline bool peer_suspect(const struct core *core, uint32_t peer) {
	return core->peers[peer].suspect;
}

/* ---- peer_table.c ---- */

/* Makes the table of peers. Returns 0 or PAWL_ENOMEM. */
int peer_table_init(struct core *core);
void peer_table_done(struct core *core);
/* Builds the table anew from the configuration. */
void peer_table_rebuild(struct core *core);
/* Returns the index of the node with this name, which becomes a non-member if the table does not
 * have it. PAWL_EFULL: there is no room. */
int peer_table_non_member(struct core *core, const char *name, const char *address);
/* The link of a non-member may be gone. Those that have none leave the table, if they are its last
 * ones. */
void peer_table_non_member_lost(struct core *core);
/* Has the driver dial this peer, whether the configuration has it or not. A non-member is dialled
 * at `address`, unless that is empty. */
void peer_table_dial(struct core *core, uint32_t peer, const char *address);
/* No peer is dialled any more that the configuration does not have. */
void peer_table_dial_no_more(struct core *core);
/* Finds out whether this node is isolated. */
void peer_table_beat(struct core *core);
/* Returns when this node was last linked with a quorum. */
static inline struct instant peer_table_near_at(const struct core *core) {
	return core->peering.near_at;
}
/* Returns the index of the node with this name, or -1. */
int peer_table_find_name(const struct core *core, const char *name);
/* Returns the index of this node, or of the node with this identity at the other end of a link, or
 * -1. */
int peer_table_find_id(const struct core *core, struct id128 id);

/* ---- peers.c: who votes, and who may say what ---- */

/* Returns a clock far above this node's that is right because a quorum of masters says so; 0: there
 * is none. */
uint64_t peers_quorum_says(const struct core *core);
/* Returns how many masters vote in this epoch, as far as this node sees. */
uint32_t epoch_voters(const struct core *core);
/* Tells whether this epoch was adopted so lately that its masters may not vote yet. */
bool epoch_fresh(const struct core *core);
/* Tells whether one epoch is following the other, so that fewer than q votes do not mean that there
 * is no quorum. */
bool epoch_passes(const struct core *core);
/* Returns a bit set of the masters that do not vote in this epoch. */
uint64_t epoch_missing(const struct core *core);
/* Tells whether this node's table must stay for masters that have not taken over yet. The table is
 * needed until all masters of this epoch vote, or until nothing in it could be believed any
 * more. */
bool epoch_source_needed(const struct core *core);
/* Tells whether `from` is this node, or is linked, and is a master of this epoch by name and
 * identity. */
bool proof_master(const struct core *core, uint32_t from);
/* Tells whether the identity that the other end has said is its own to say: it belongs to no other
 * name. */
bool proof_identity(const struct core *core, uint32_t from);

#endif
