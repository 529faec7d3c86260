/* peer_state.h: what a node knows of another one (peer_table.c, peers.c). Private to cluster/, and
 * a part of state.h. */
#ifndef PAWL_CLUSTER_PEER_STATE_H
#define PAWL_CLUSTER_PEER_STATE_H

#include "core.h"
#include "table_walk.h"

/* A snapshot that this node sends to a peer (section 4). */
struct snapshot_out {
	/* A snapshot is being sent. */
	bool active;
	/* The walk over the table is over. What changes from then on is still sent. */
	bool walked;
	/* A piece was asked for and is to be sent. */
	bool due;
	/* The snapshot is for a handover to `epoch`; else for a master that rejoins it. */
	bool handover;
	/* The epoch that the asker is to vote in. */
	uint64_t epoch;
	/* The asker's number of the snapshot. */
	uint64_t round;
	/* The place at which the walk goes on. */
	struct table_walk walk;
	/* The next place of the ring of tombstones when the walk began; and how many of its places
	 * have been sent (tombstones.c). */
	uint32_t tombstones_next;
	uint32_t tombstones_at;
	/* The number of the present piece. */
	uint32_t part;
};

enum standing {
	/* A node of the configuration. */
	PEER_MEMBER,
	/* A master of the previous epoch that is not in the configuration. */
	PEER_FORMER,
	/* Neither of the two. */
	PEER_NON_MEMBER
};

/* What a node says about configurations that may follow this epoch (proof.c). Configurations are
 * named by their hashes; 0 stands for none. */
struct word {
	/* The configuration that it claims as its own; and its epoch, which is kept only while the
	 * link is up. */
	uint64_t claimed, claimed_epoch;
	/* The configuration that it has accepted in the decree, under `ballot`. */
	uint64_t accepted;
	/* The ballot under which it has accepted `accepted`. */
	struct ballot ballot;
	/* The configuration whose claim by another master it has passed on. */
	uint64_t passed_on;
	/* Since when it has claimed a later epoch over this link; and when it last passed on a
	 * claim. */
	struct instant ahead_since, passed_on_at;
	/* It has another configuration under this epoch's number. */
	bool contradicts;
};

/* An answer in a decree. It is sent once what it says is on disk (section 6). */
struct decree_answer {
	/* The kind of the answer; 0 stands for no answer. */
	enum message_kind kind;
	/* The round of the question; and the number of the state that has to be on disk. */
	uint64_t round, seq;
	/* DECREE_ACCEPTED: the hash of what was accepted. */
	uint64_t value;
	/* The ballot that the answer is about. */
	struct ballot ballot;
};

/* Commits of one start of a node that came here (counted.c). */
struct counted {
	/* The number of the start; 0 stands for none. */
	uint64_t boot;
	/* How many commits of it came. */
	uint64_t commits;
};

/* The longest of the spans of time that were measured lately, in two windows (pace.c). */
struct longest_span {
	/* The longest span of the present window, and of the one before it, in nanoseconds. */
	span_ns present, before;
	/* When the present window began. */
	struct instant since;
};

/* Another node. What stands under the name of a room is touched in that room and in node/ only
 * (scripts/style checks that); all rooms see the rest. */
struct peer {
	/* The node as the configuration has it; a non-member as it was heard of, with its identity
	 * once it is linked. */
	struct config_node node;
	/* What it is in the configuration. */
	enum standing standing;

	/* A link is up. */
	bool up;
	/* The link leads to the identity that the configuration has for the name. */
	bool linked;
	/* The node says in its frames that it votes, under this epoch and hash. */
	bool voting;
	/* Its last frame was under this epoch and hash, whatever its identity is. */
	bool epoch_frame;
	/* `epoch_frame` and `linked` are both true. */
	bool in_epoch;
	/* A frame has come over this link. */
	bool frame_came;
	/* What the node has proven on this link does not let it be a master. */
	bool no_master;
	/* The operator was told that this node's place is not given to it for that reason. */
	bool no_master_told;
	/* The clock of its last frame was too far ahead. */
	bool far_ahead;
	/* The operator was told that it shows a configuration of another cluster. */
	bool wrong_noted;
	/* Its last frame said that this epoch is complete. */
	bool complete;

	/* The identity of the node at the other end of the link, or of the last link. */
	struct id128 link_id;
	/* The epoch of its last frame. */
	uint64_t epoch;
	/* The boot that it said with its hello; and its Lamport clock, as this node has heard
	 * it. */
	uint64_t boot, clock;
	/* The clock that its last frame said, however far ahead it is. */
	uint64_t said_clock;
	/* The epoch of the configuration that it was last told. */
	uint64_t config_told;
	/* When the link came up. */
	struct instant up_since;
	/* The round trip of the last ping, in nanoseconds; 0 if there was none on this link. */
	span_ns round_trip;
	/* What it coordinates here: struct promise; and struct queued of parked requests and of
	 * queue entries. */
	struct list promises, parked, waiters;
	/* How often the queue entries at that node were lost, as far as this node sees (home.c). */
	uint32_t stopped;
	/* The answer in a decree that this node sends to it. */
	struct decree_answer decree;

	/* ---- peers ---- */

	/* How often its frames have changed their epoch or its vote lately (frames.c). */
	uint32_t changes;
	/* A change waits for this non-member, so it is dialled and keeps its place in the table. */
	bool wanted;
	/* A ping has no answer yet. */
	bool ping_out;
	/* The number of the last ping to it. */
	uint64_t ping_round;
	/* When the last ping was sent. */
	struct instant ping_sent;
	/* The round trips to it lately; and those that it says it has measured itself. */
	struct longest_span trips, trips_told;
	/* Something is expected of this master, which has been silent since `silent_since`; and it
	 * was pinged at that time. */
	bool expected, pinged;
	/* It has been silent for so long that it is the home of requests only if no other master
	 * is there (silence.c). */
	bool suspect;
	/* The answer to the ping that is out is late because the node hung. */
	bool slow_ping;
	/* How often the silence that counts was doubled. */
	uint32_t doublings;
	/* When the silence began; and when it was last doubled, or halved. */
	struct instant silent_since, doubled_at;
	/* The round of the last question to it. An answer to that one answers all of them. */
	uint64_t awaited;
	/* 1 + the place of the only key whose next turn it owes; 0: more is expected of it. */
	uint32_t owes_at;
	/* How long the slowest of its recent answers to pings took, in nanoseconds; 0: none has
	 * come yet. */
	span_ns slowest;

	/* ---- changes ---- */

	/* The commits that came from its latest start, and from the previous one (counted.c). */
	struct counted counted, counted_previous;
	/* The writes that came from it; and those that this node has begun and that are for it. */
	uint64_t writes_come, writes_begun;
	/* How many times this node still says counted_previous to the masters. */
	uint32_t previous_tells;
	/* It has started anew, and perhaps nobody knows any more what it knew of commits before
	 * that. */
	bool restarted;

	/* ---- master ---- */

	/* How often its queue entries were lost here (queue.c). */
	uint32_t lost;

	/* ---- replication ---- */

	/* The feed that this node sends to it. */
	struct feed feed;

	/* ---- recovery ---- */

	/* The snapshot that this node sends to it. */
	struct snapshot_out send;

	/* ---- membership ---- */

	/* Its pledge equals this node's own. */
	bool pledge_equal;
	/* What it says about configurations that may follow. */
	struct word word;
	/* When it was told of `config_told`. */
	struct instant told_at;

	/* ---- node ---- */

	/* With `far_ahead`: since when every frame has been too far ahead. */
	struct instant far_since;
	/* The lowest clock of these frames. */
	uint64_t far_clock;
	/* Its last frame was refused for its clock, even if the link has been lost since. */
	bool refused;
	/* Since when all its frames have been refused so. */
	struct instant refused_since;
};

#endif
