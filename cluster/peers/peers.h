/* peers.h: the table of peers, their links, round trips, and what is known of the masters. */
#ifndef PAWL_CLUSTER_PEERS_H
#define PAWL_CLUSTER_PEERS_H

#include "engine.h"

/* ---- pace.c ---- */
void pace_measured(struct core *core, uint32_t peer, span_ns round_trip);
void pace_told(struct core *core, uint32_t peer, uint64_t us);
span_ns pace_own(const struct core *core); /* to any member; 0: none was measured */
span_ns pace_longest(const struct core *core, uint32_t *peer); /* the same, also as members have told; *peer: to whom, or who told */

/* ---- peers.c ---- */
void peer_up(struct core *core, uint32_t peer, const struct core_event *e);
void peer_down(struct core *core, uint32_t peer, bool closed); /* by the other side */
void peer_ping(struct core *core, uint32_t peer, const struct message *m);
void peer_pong(struct core *core, uint32_t peer, const struct message *m);
void peers_beat(struct core *core);
void peer_ping_send(struct core *core, uint32_t peer);
void peers_reset_all(struct core *core);
void peers_lose_failed(struct core *core); /* handles the loss of one of core->engine.failed, which has one */
void peers_self_again(struct core *core);
void peers_tell(struct core *core); /* a ping to everybody at once: the voting flag has changed */
bool peer_reachable(const struct core *core, uint32_t index); /* linked, or this node itself */
bool peer_votes(const struct core *core, uint32_t index);
bool peers_listen(const struct core *core); /* to what this node coordinates: it is in the configuration, or was a master before it */
span_ns peers_pause_most(const struct core *core, uint32_t doubled);

/* ---- peer_table.c ---- */
int peer_table_init(struct core *core); /* 0 or PAWL_ENOMEM */
void peer_table_done(struct core *core);
void peer_table_rebuild(struct core *core);
int peer_table_non_member(struct core *core, const char *name, const char *address); /* PAWL_EFULL: no room */
void peer_table_non_member_lost(struct core *core, uint32_t peer);
void peer_table_beat(struct core *core);
int peer_table_find_name(const struct core *core, const char *name);  /* -1: nobody */
int peer_table_find_id(const struct core *core, struct id128 id);     /* itself, or who is at the other end of a link; -1: nobody */

/* ---- voters.c ---- */
uint64_t peers_quorum_says(const struct core *core); /* a clock far above this node's that is right; 0: none */
uint32_t epoch_voters(const struct core *core);
bool epoch_fresh(const struct core *core); /* adopted just now: its masters may not vote yet */
bool epoch_passes(const struct core *core); /* one follows the other: that fewer than q vote is no want of a quorum */
uint64_t epoch_missing(const struct core *core);
bool epoch_source_needed(const struct core *core); /* its table must stay for masters that have not taken over yet */
bool proof_master(const struct core *core, uint32_t from); /* the link is to a master of this epoch, or to nobody: itself */
bool proof_identity(const struct core *core, uint32_t from); /* the other end names no identity that belongs to another name */

#endif
