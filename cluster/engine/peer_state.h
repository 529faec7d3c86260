/* peer_state.h: what a node knows of another one (peer_table.c, peers.c). Private to cluster/, and
 * a part of state.h. */
#ifndef PAWL_CLUSTER_PEER_STATE_H
#define PAWL_CLUSTER_PEER_STATE_H

#include "membership_state.h"
#include "types.h"

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

struct peer {
	/* The node as the configuration has it; a non-member as it was heard of, with its identity
	 * once it is linked. */
	struct config_node node;
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
	/* How often its frames have changed their epoch or its vote lately (frames.c). */
	uint32_t changes;
	/* What the node has proven on this link does not let it be a master. */
	bool no_master;
	/* The operator was told that this node's place is not given to it for that reason. */
	bool no_master_told;
	/* A change waits for this non-member, so it is dialled and keeps its place in the table. */
	bool wanted;
	bool
		/* A ping has no answer yet. */
		ping_out,
		/* The clock of its last frame was too far ahead. */
		far_ahead,
		/* Its pledge equals this node's own. */
		pledge_equal,
		/* The operator was told that it shows a configuration of another cluster. */
		wrong_noted;
	/* Its last frame said that this epoch is complete. */
	bool complete;
	/* What it says about configurations that may follow. */
	struct word word;

	/* With `far_ahead`: since when every frame has been too far ahead, and the lowest clock of
	 * these frames. */
	struct instant far_since;
	uint64_t far_clock;
	/* Its last frame was refused for its clock, even if the link has been lost since; and since
	 * when all its frames have been. */
	bool refused;
	struct instant refused_since;

	/* The identity of the node at the other end of the link, or of the last link. */
	struct id128 link_id;
	/* The epoch of its last frame. */
	uint64_t epoch;
	/* The boot that it said with its hello; its Lamport clock, as this node has heard it; and
	 * the number of the last ping to it. */
	uint64_t boot, clock, ping_round;
	/* The clock that its last frame said, however far ahead it is. */
	uint64_t said_clock;
	/* The epoch of the configuration that it was last told. */
	uint64_t config_told;

	/* The commits that came from its latest start, and from the previous one (counted.c). */
	struct counted counted, counted_previous;
	/* The writes that came from it; and those that this node has begun and that are for it. */
	uint64_t writes_come, writes_begun;
	/* How many times this node still says counted_previous to the masters. */
	uint32_t previous_tells;
	/* It has started anew, and perhaps nobody knows any more what it knew of commits before
	 * that. */
	bool restarted;

	/* When it was told of `config_told`; and when the link came up. */
	struct instant told_at, up_since;
	/* When the last ping was sent. */
	struct instant ping_sent;
	/* The round trip of the last ping, in nanoseconds; 0 if there was none on this link. */
	span_ns round_trip;
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
	/* How often the silence that counts was doubled; and when that was, or it was halved. */
	uint32_t doublings;
	struct instant silent_since, doubled_at;
	/* The round of the last question to it. An answer to that one answers all of them. */
	uint64_t awaited;
	/* 1 + the place of the only key whose next turn it owes; 0: more is expected of it. */
	uint32_t owes_at;
	/* How long the slowest of its recent answers to pings took, in nanoseconds; 0: none has
	 * come yet. */
	span_ns slowest;

	/* What it coordinates here: struct promise; and struct queued of parked requests and of
	 * queue entries. */
	struct list promises, parked, waiters;
	/* How often its queue entries were lost here (queue.c). */
	uint32_t lost;
	/* How often the queue entries at that node were lost, as far as this node sees (home.c). */
	uint32_t stopped;
	/* The snapshot, the feed, and the answer in a decree that this node sends to it. */
	struct snapshot_out send;
	struct feed feed;
	struct decree_answer decree;
};

#endif
