/* core_status.h: what a node says about itself and its peers. Part of core.h. */
#ifndef PAWL_CLUSTER_CORE_STATUS_H
#define PAWL_CLUSTER_CORE_STATUS_H

#include "types.h"

struct core;

enum core_state {
	/* An initial master before birth. */
	CORE_UNBORN,
	/* A node that is in no configuration: it was never added, or was removed. */
	CORE_OUTSIDE,
	/* A replica. */
	CORE_FOLLOWING,
	/* A master of an epoch in which it has never voted. It takes over from the masters of the
	 * previous epoch. */
	CORE_HANDOVER,
	/* A master that has voted in this epoch and has lost its memory. */
	CORE_RECOVERING,
	/* A master that votes. */
	CORE_VOTING,
	/* A node that has stopped voting for a planned stop. */
	CORE_DRAINED
};

struct core_peer_status {
	/* There is a link to the node; and it votes in this epoch. */
	bool linked, voting;
	/* The round trip of the last ping, in nanoseconds; 0 if there was none yet. */
	span_ns round_trip;
	/* Its boot; 0 if it was never linked. */
	uint64_t boot;
	/* It is a master, and a member of the configuration. */
	bool master, member;
	/* It has the name of a member and another identity. */
	bool stranger;
	/* It is in another epoch, or has not adopted this one yet. */
	bool other_epoch;
	/* The epoch that it is in, as it said last over this link; 0 for unknown, or for none. */
	uint64_t epoch;
	/* It follows this node. */
	bool follows;
	/* The place in this node's log up to which a follower has acknowledged (section 7). It is
	 * valid when `follows` is set. */
	uint64_t position;
};

/* The change that this node coordinates. */
struct core_change_status {
	/* A text like "waiting for n4 to answer", valid until the core's next step; NULL if there
	 * is no change. */
	const char *step;
	/* How many records have been copied ahead, and how many there are in all; 0 for unknown. */
	uint64_t done, total;
	/* The epoch that the change is to have. */
	uint64_t epoch;
};

struct core_status {
	/* What this node is at the moment. */
	enum core_state state;
	/* What this node waits for before it takes part; static text. */
	const char *waits_for;
	/* RECOVERING, HANDOVER: the time in nanoseconds after which the node has waited long
	 * enough; 0 for unknown. */
	span_ns left;
	/* The configuration: its epoch and its hash; the Lamport clock; the clock reservation on
	 * disk; and the boot. */
	uint64_t epoch, config_hash, clock, ceiling, boot;
	/* The quorum; and the masters that vote in this epoch and are linked, this node
	 * included. */
	uint32_t quorum, voting_linked;
	/* This node is a master; its epoch is settled; its epoch is complete (section 6). */
	bool master, settled, complete;
	/* A bit set of peers: the masters that do not vote in this epoch, as far as this node
	 * sees. */
	uint64_t missing;
	/* The peers below this index are of the configuration. */
	uint32_t config_nodes;

	/* This node's log (section 7): the next number, the oldest number that is still there, and
	 * its size in bytes. */
	uint64_t log_next, log_oldest, log_bytes;
	/* The peer index of the master that a replica follows, or -1. */
	int following;
	/* A snapshot of that master is still arriving. */
	bool catching_up;
	/* How many records of that snapshot have come; and the replica's place in that master's
	 * log. */
	uint64_t snapshot_done, position;
	/* How old a replica's view is, in nanoseconds; SPAN_MAX for unknown. */
	span_ns age;

	/* The change that this node coordinates. */
	struct core_change_status change;
	/* How many there are of each, and how many bytes of memory the core uses. */
	uint64_t keys, held, promises, waiters, rounds, catch_up_count, granted_leases,
		memory_bytes;
	/* The peers, by peer index. */
	struct core_peer_status peers[NODES_MAX];
};

/* Fills in *status as it is at `now`. */
void core_status(const struct core *core, struct instant now, struct core_status *status);
/* Tells whether the peer is in the configuration, or was a master of the previous epoch. */
bool core_peer_is_member(const struct core *core, uint32_t peer);

#endif
