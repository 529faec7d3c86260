/* membership_state.h: what a node keeps for changes of the configuration, handovers and recovery (sections 4 and 6). Part of state.h. */
#ifndef PAWL_CLUSTER_MEMBERSHIP_STATE_H
#define PAWL_CLUSTER_MEMBERSHIP_STATE_H

#include "core.h"

struct snapshot_out { /* a snapshot being sent to a peer (section 4) */
	bool active;
	bool walked;      /* the walk is over; what changes goes on being sent */
	bool handover;    /* for the masters of `epoch`; else for a master that rejoins */
	uint64_t epoch;
	uint64_t round;
	size_t bucket;
	uint32_t tombstones_next; /* of the ring of what has ended, when the walk began (tombstones.c) */
	uint32_t ring_at;
	uint32_t part;
};

enum standing {
	PEER_MEMBER, /* of the configuration */
	PEER_FORMER, /* a master of the epoch before, not in the configuration */
	PEER_NON_MEMBER   /* neither */
};

struct word { /* what a node says about a configuration that may follow this epoch (proof.c); hashes, 0: nothing */
	uint64_t claimed, claimed_epoch; /* that it is its own; claimed_epoch only while its link is there */
	uint64_t accepted; /* in the decree, under this ballot */
	struct ballot ballot;
	uint64_t passed_on; /* another one's claim, and when it said so last */
	struct instant ahead_since, passed_on_at; /* ahead_since: it claims a later epoch over this link */
	bool contradicts; /* it has another configuration under this epoch's number */
};

struct announced { /* masters of an epoch that is being prepared for, as a master has announced it */
	uint64_t hash; /* of that configuration */
	struct instant until; /* when it is forgotten, unless it is announced again */
	uint32_t count;
	struct id128 masters[MASTERS_MAX];
};

struct decree_answer { /* to be sent once it is on disk (section 6) */
	enum message_kind kind; /* 0: none */
	uint64_t round, seq;
	uint64_t value; /* ACCEPTED: the hash of what was accepted */
	struct ballot ballot;
};

/* ---- what is gathered from others, to vote with it (sections 4 and 6) ---- */
enum state_transfer_kind {
	STATE_TRANSFER_NONE,
	STATE_TRANSFER_AHEAD,    /* before the decree: for the epoch that may follow, beside the table */
	STATE_TRANSFER_HANDOVER, /* for the present epoch, beside the table: as a handover, or by rejoining, whichever is first */
	STATE_TRANSFER_REJOIN    /* into the table: it has voted in this epoch before */
};

struct source {
	struct id128 id;
	uint8_t bit;   /* in the records' `sources` */
	bool before;   /* a master of the epoch before the one that is gathered for */
	bool after;    /* a master of that epoch */
	bool asked, walked, done;
	bool adopted;  /* seen under the epoch: its end is due */
	bool forgot, never; /* what it said at the end; neither: it remembers, or votes */
	bool votes;    /* ... and it voted in the epoch when it was asked, late enough for rejoining */
	uint64_t round;
	uint64_t clock_end;
	span_ns lease;  /* the longest that it may have accepted, as it said last */
	span_ns refused; /* the longest that it brought and that was not taken, in this try */
	bool asked_voter; /* it was known to vote in the epoch when it was asked */
	bool paused;     /* a piece has come, and the next one is asked for later */
	uint32_t part;
	struct instant chunk_at, go_at; /* when the piece was asked for; when the next one is */
	struct instant asked_at, progress, told_at;
};
#define SOURCES_MAX (2 * MASTERS_MAX)

struct state_transfer {
	enum state_transfer_kind kind;
	uint64_t epoch, hash; /* of the configuration that it is for */
	uint32_t before, after; /* masters of the epoch before, and of that epoch */
	uint32_t count;
	struct source sources[SOURCES_MAX];
	uint64_t merged;      /* records, so far */
	span_ns longest;      /* what is left of any of them */
	uint64_t rounds;
	struct instant began;
	bool worn;            /* the bits of the table that is merged into are used up */
	bool taken;           /* the table beside is this one's */
	bool own_walking;     /* the node's own table is being copied, in pieces */
	size_t self_bucket;
	/* GATHER_AHEAD: who asked for it */
	struct id128 asker;
	uint64_t asker_round;
	bool told_ready;
	bool full;            /* there was no room for what was copied */
	struct instant keep_until; /* when it is given up unless somebody asks again */
};

/* In the records' `sources`: a bit for each try to copy from a source, and one that stands for none: whatever the sources say, it stays. */
enum { MERGE_TRIES = 31 };
#define MERGE_STAYS (UINT32_C(1) << MERGE_TRIES)

/* Records of the live table whose `sources` are not 0 are finished when they are met, or by a sweep: see merge.c. */
struct finishing {
	bool active;
	bool unknown;   /* what came between is not known: every one of them counts as noted at `floor`, and none is dropped */
	uint64_t floor;
	size_t bucket;
	uint32_t brought; /* bit set of the sources that were heard to their end */
	uint32_t done;    /* those of them that count for what was noted: not who has never voted, neither before nor now */
	uint64_t clock_end[32];
};

/* ---- a change of the configuration that this node coordinates (section 6) ---- */
enum change_state {
	CHANGE_IDLE,
	CHANGE_WAIT,     /* for nodes whose links or votes it needs: they may be a moment from being back */
	CHANGE_PREPARE,  /* the masters of the next epoch copy what the present ones know */
	CHANGE_PROMISE,  /* the decree: first phase */
	CHANGE_ACCEPT,   /* the decree: second phase */
	CHANGE_PAUSE,    /* a rival's ballot was higher */
	CHANGE_ADOPT     /* chosen: waits until the new masters vote */
};

#define ADOPT_WAIT (10 * SPAN_S) /* how long the answer waits for masters that do not vote yet */
#define CHANGE_WAIT_TIMEOUTS 4   /* how many request_timeouts a change waits for nodes before it is refused */
#define CHANGE_WAIT_LEAST (2 * SPAN_S) /* ... and at least, so that a link which was reset can be back */
#define DECREE_ROUND_LEAST SPAN_S      /* what is chosen does not depend on time: a round may take longer than request_timeout, as with slow disks */
#define DECREE_FINISH_LEAST (SPAN_S / 4)
#define DECREE_PAUSE_LEAST (50 * SPAN_MS)
#define DECREE_LEAST (5 * SPAN_S)
#define DECREE_MOST (60 * SPAN_S)
#define CHANGE_STEP_BYTES 160

struct ahead { /* how far a master of the next epoch is */
	bool asked, ready;
	bool other; /* it copies for another change */
	uint64_t number;
};

struct change {
	enum change_state state;
	bool has_caller, foreign; /* foreign: another one's value had been accepted: it is finished instead */
	bool forcing;
	bool anyway, finishing;   /* finishing: nobody asked here; its proposer may have died */
	uint64_t id, client;
	struct core_change wanted; /* slices point into `text` */
	struct core_change_node wanted_nodes[CONFIG_NODES_MAX];
	uint8_t *text;
	size_t text_size;
	/* CHANGE_WAIT: "waiting for n1, n3 to answer". */
	char waits_for[CHANGE_STEP_BYTES];
	uint64_t round;
	struct instant until, progress, at, again; /* again: when those who are silent in a round of the decree are asked again */
	struct config target, value; /* what was asked for; what is being proposed */
	struct ballot ballot, highest;
	uint32_t pauses;
	uint32_t answered, agreed; /* bit sets of slots of masters */
	struct ballot best;        /* of an accepted value that was reported */
	struct ahead ahead[NODES_MAX];
};

struct persisting { /* a state that the driver took to write */
	uint64_t seq, ceiling, boot;
	bool pledged, voted;
};

#endif
