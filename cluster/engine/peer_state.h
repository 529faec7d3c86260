/* peer_state.h: what a node knows of another one (peer_table.c, peers.c). Private to cluster/, and a part of state.h. */
#ifndef PAWL_CLUSTER_PEER_STATE_H
#define PAWL_CLUSTER_PEER_STATE_H

#include "membership_state.h"
#include "types.h"

struct counted { /* commits of one start of a node that came here */
	uint64_t boot; /* 0: none */
	uint64_t commits;
};

struct longest_span { /* of a time that has just passed, in two windows (pace.c) */
	span_ns present, before;
	struct instant since; /* when the present window began */
};

struct peer {
	struct config_node node; /* as the configuration has it; a guest: as it was heard of, with its identity once linked */
	enum standing standing;
	bool up;       /* a link is up */
	bool linked;   /* ... to the identity of the configuration */
	bool voting;   /* says so in its frames, under this epoch and hash */
	bool present;  /* its last frame was under this epoch and hash, whoever it is */
	bool same;     /* ... and it is linked */
	bool heard;    /* a frame has come over this link */
	bool no_master; /* ... and what it proved does not let it be a master; told: it was noted that its place is not given to it */
	bool no_master_told;
	bool wanted;   /* a guest that a change waits for: to be dialled, and kept */
	bool ping_out, far_ahead, pledge_equal, wrong_noted;
	bool complete; /* its last frame said so of this epoch */
	struct word word;
	struct instant far_since; /* far_ahead, with every frame since; the lowest clock of those */
	uint64_t far_clock;
	bool refused; /* its last frame was, for its clock, also if the link has been lost since; and all were since then */
	struct instant refused_since;
	struct id128 link_id; /* of the other end of the link */
	uint64_t epoch;       /* of its last frame */
	uint64_t boot, clock, ping_round;
	uint64_t said_clock;  /* of its last frame, however far ahead it is */
	uint64_t told;        /* the epoch it was last told of, and when */
	struct counted counted, counted_before; /* of its latest start, and of the one before (counted.c) */
	uint64_t writes_come, writes_begun;     /* from it, and for it */
	uint32_t says_of_before;
	bool forgot; /* it has started anew, and what it knew of commits before that may be known to nobody any more */
	struct instant told_at, up_since;
	struct instant ping_sent;
	span_ns round_trip;
	struct longest_span trips, trips_told; /* round trips to it, and those that it has measured itself */
	struct list promises, parked, waiters; /* what it coordinates here */
	uint32_t lost;    /* how often its entries of queues were lost here (queue_lost.c) */
	uint32_t stopped; /* how often those that were entered there were, as far as this node sees (home.c) */
	struct snapshot_out send;
	struct feed feed;
	struct decree_answer decree;
};

#endif
