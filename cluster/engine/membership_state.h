/* membership_state.h: what a node keeps for changes of the configuration, state transfers and
 * recovery (sections 4 and 6). Part of state.h. */
#ifndef PAWL_CLUSTER_MEMBERSHIP_STATE_H
#define PAWL_CLUSTER_MEMBERSHIP_STATE_H

#include "core.h"

/* A snapshot that this node sends to a peer (section 4). */
struct snapshot_out {
	bool active;
	/* The walk over the table is over. What changes from then on is still sent. */
	bool walked;
	/* A piece was asked for and is to be sent. */
	bool due;
	/* The snapshot is for a handover to `epoch`; else for a master that rejoins it. */
	bool handover;
	uint64_t epoch;
	/* The asker's number of the snapshot. */
	uint64_t round;
	/* The bucket at which the walk goes on. */
	size_t bucket;
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
	struct ballot ballot;
	/* The configuration whose claim by another master it has passed on. */
	uint64_t passed_on;
	/* Since when it has claimed a later epoch over this link; and when it last passed on a
	 * claim. */
	struct instant ahead_since, passed_on_at;
	/* It has another configuration under this epoch's number. */
	bool contradicts;
};

/* The masters of an epoch that is being prepared, as a master has announced it. */
struct announced {
	/* The hash of that configuration. */
	uint64_t hash;
	/* When the announcement is forgotten, unless it is made again. */
	struct instant until;
	uint32_t count;
	struct id128 masters[MASTERS_MAX];
};

/* An answer in a decree. It is sent once what it says is on disk (section 6). */
struct decree_answer {
	/* The kind of the answer; 0 stands for no answer. */
	enum message_kind kind;
	/* The round of the question; and the number of the state that has to be on disk. */
	uint64_t round, seq;
	/* DECREE_ACCEPTED: the hash of what was accepted. */
	uint64_t value;
	struct ballot ballot;
};

/* ---- a state transfer: what a node takes from others, to vote with it (sections 4 and 6) ---- */
enum state_transfer_kind {
	STATE_TRANSFER_NONE,
	/* Copying ahead, before the decree: for the epoch that may follow, into the staging
	 * table. */
	STATE_TRANSFER_AHEAD,
	/* For the present epoch, into the staging table: as a handover or by rejoining, whichever
	 * is done first. */
	STATE_TRANSFER_HANDOVER,
	/* For the present epoch, into the live table: the node has voted in it before. */
	STATE_TRANSFER_REJOIN
};

/* A node that a state transfer copies from. */
struct source {
	struct id128 id;
	/* The number of the present try's bit in record.sources. */
	uint8_t bit;
	/* It is a master of the epoch before the one that the transfer is for. */
	bool previous_master;
	/* It is a master of the epoch that the transfer is for. */
	bool master;
	/* It was asked for a snapshot; its walk over its table is over; and its snapshot has come
	 * to its end. */
	bool asked, walked, done;
	/* It was seen under the epoch that the transfer is for, so the end of its snapshot is
	 * due. */
	bool adopted;
	/* What it said at the end: it has forgotten, or it never voted. If neither is set, it
	 * remembers or votes. */
	bool forgot, never;
	/* It votes in the epoch and did so when it was asked, which was late enough for
	 * rejoining. */
	bool votes;
	/* The number of the present try. */
	uint64_t round;
	/* Its clock at the end of its snapshot. */
	uint64_t clock_end;
	/* The longest lease that it may have accepted, as it said last, in nanoseconds. */
	span_ns lease;
	/* The longest lease that it brought in this try and that was not taken, in nanoseconds; 0
	 * for none. */
	span_ns refused;
	/* It was known to vote in the epoch when it was asked. */
	bool asked_voter;
	/* A piece has come, and the next one is asked for at go_at. */
	bool paused;
	/* The number of the piece that came last. */
	uint32_t part;
	/* When the present piece was asked for; and when the next one will be. */
	struct instant chunk_at, go_at;
	/* When it was asked; when it last sent anything; and when it told that it has adopted the
	 * epoch, as far as this node knows. */
	struct instant asked_at, progress, told_at;
};
#define SOURCES_MAX (2 * MASTERS_MAX)

struct state_transfer {
	enum state_transfer_kind kind;
	/* The epoch and hash of the configuration that the transfer is for. */
	uint64_t epoch, hash;
	/* How many masters the previous epoch has, and that epoch itself. */
	uint32_t previous_master_count, master_count;
	/* How many sources there are. */
	uint32_t count;
	struct source sources[SOURCES_MAX];
	/* How many records have been merged so far. */
	uint64_t merged;
	/* The longest time that is left of any of them, in nanoseconds. */
	span_ns longest;
	/* The number of the last try. */
	uint64_t rounds;
	/* When the transfer began. */
	struct instant began;
	/* The bits for tries of the table that is merged into are used up. */
	bool bits_used_up;
	/* The staging table belongs to this transfer. */
	bool owns_staging;
	/* This node's own table is being copied, in pieces; and the bucket at which that goes
	 * on. */
	bool own_walking;
	size_t self_bucket;

	/* STATE_TRANSFER_AHEAD: the node that asked for it; and that node's number of the
	 * change. */
	struct id128 asker;
	uint64_t asker_round;
	/* It was told that the copy is ready. */
	bool ready_reported;
	/* There was no room for what was copied. */
	bool full;
	/* When the copy is given up, unless somebody asks for it again. */
	struct instant keep_until;
};

/* record.sources has a bit for each try to copy from a source, and the bit MERGE_STAYS, which
 * stands for no source: such a record stays, whatever the sources say. */
enum { MERGE_TRIES = 30 };
#define MERGE_STAYS (UINT32_C(1) << MERGE_TRIES)

/* Records of the live table whose `sources` are not 0 are finished when somebody looks them up, or
 * by a sweep (store/finish.c). */
struct finishing {
	bool active;
	/* What came between is not known. So `floor` counts as noted for each of these records, and
	 * none is dropped because a source lacks it. */
	bool unknown;
	/* The Lamport clock that counts as noted; it is used only with `unknown`. */
	uint64_t floor;
	/* The bucket at which the sweep goes on. */
	size_t bucket;
	/* A bit set of the tries whose sources were heard to their end. */
	uint32_t brought;
	/* Those of them that count for what was noted: all but sources that have never voted,
	 * neither before nor now. */
	uint32_t done;
	/* The clock of each of these sources at the end of its snapshot. */
	uint64_t clock_end[32];
};

/* ---- a change of the configuration that this node coordinates (section 6) ---- */
enum change_state {
	CHANGE_IDLE,
	/* The change waits for nodes whose links or votes it needs. They may be a moment from being
	 * back. */
	CHANGE_WAIT,
	/* The masters of the next epoch copy ahead. */
	CHANGE_PREPARE,
	/* The first phase of the decree is under way. */
	CHANGE_PROMISE,
	/* The second phase of the decree is under way. */
	CHANGE_ACCEPT,
	/* A rival's ballot was higher, and the change pauses. */
	CHANGE_PAUSE,
	/* The configuration is chosen, and the change waits until the new masters vote. */
	CHANGE_ADOPT
};

/* The answer waits so long for masters that do not vote yet. */
#define ADOPT_WAIT (10 * SPAN_S)
/* How long a change waits for nodes before it is refused, in request_timeouts; and the shortest
 * such time, in which a link that was reset can be back. */
#define CHANGE_WAIT_TIMEOUTS 4
#define CHANGE_WAIT_LEAST (2 * SPAN_S)
/* A round of the decree lasts at least this long. What is chosen does not depend on time, so a
 * round may take longer than request_timeout, as with slow disks. */
#define DECREE_ROUND_LEAST SPAN_S
/* A master that finishes a decree in its proposer's place waits for two to four request_timeouts
 * first, each of which counts as at least this long. */
#define DECREE_FINISH_LEAST (SPAN_S / 4)
/* The longest pause for a rival grows with each pause by at least this, up to eight times. */
#define DECREE_PAUSE_LEAST (50 * SPAN_MS)
/* Bounds of the time after which a decree is given up. */
#define DECREE_LEAST (5 * SPAN_S)
#define DECREE_MOST (60 * SPAN_S)
#define CHANGE_STEP_BYTES 160
/* The most bytes of a text about pledges that differ. */
#define BIRTH_DIFFERS_BYTES 640

/* How far a master of the next epoch has copied ahead. */
struct ahead {
	/* It was asked to copy; and it is ready. */
	bool asked, ready;
	/* It copies for another change. */
	bool other;
	/* How many records it has copied, as it says. */
	uint64_t number;
};

struct change {
	enum change_state state;
	bool
		/* Somebody waits for the answer. */
		has_caller,
		/* The value of another proposer had been accepted. It is finished instead of what
		 * was asked for here. */
		foreign;
	/* The change is a forced start. */
	bool forcing;
	bool
		/* The caller wants it even without a quorum (core_change.anyway). */
		anyway,
		/* Nobody has asked here: this node finishes a decree whose proposer may have
		 * died. */
		finishing;
	/* The driver's numbers of the request and of the connection. */
	uint64_t id, client;
	/* What was asked for. The slices point into `text`. */
	struct core_change wanted;
	struct core_change_node wanted_nodes[CONFIG_NODES_MAX];
	uint8_t *text;
	size_t text_size;
	/* CHANGE_WAIT: a text like "waiting for n1, n3 to answer". */
	char waits_for[CHANGE_STEP_BYTES];
	/* The number of the present round. */
	uint64_t round;
	struct instant
		/* When the change is given up, or its answer waits no longer. */
		until,
		/* When a node that copies ahead last made progress. */
		progress,
		/* When the next step of the present state is due. */
		at,
		/* When those who are silent in a round of the decree are asked again. */
		again;
	/* The configuration that was asked for, and the one that is proposed. */
	struct config target, value;
	/* The ballot under which it is proposed, and the highest ballot that this node has heard
	 * of. */
	struct ballot ballot, highest;
	/* How often the change has paused for a rival. */
	uint32_t pauses;
	/* Bit sets of masters, by peer index: those that have answered in this round, and those
	 * that have agreed. */
	uint32_t answered, agreed;
	/* The highest ballot of an accepted value that a master has reported. */
	struct ballot best;
	/* By peer index. */
	struct ahead ahead[NODES_MAX];
};

/* A state that the driver has taken to write: its number, and what it says of these fields of
 * struct durable. */
struct persisting {
	uint64_t seq, ceiling, boot;
	bool pledged, voted;
};

#endif
