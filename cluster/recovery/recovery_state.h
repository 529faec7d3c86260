/* recovery_state.h: what a node keeps of a state transfer and of its return to voting (sections 4
 * and 6). Part of recovery.h. */
#ifndef PAWL_CLUSTER_RECOVERY_STATE_H
#define PAWL_CLUSTER_RECOVERY_STATE_H

#include "state.h"

/* The masters of an epoch that is being prepared, as a master has announced it. */
struct announced {
	/* The hash of that configuration. */
	uint64_t hash;
	/* When the announcement is forgotten, unless it is made again. */
	struct instant until;
	uint32_t count;
	/* Their identities. */
	struct id128 masters[MASTERS_MAX];
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
	/* Its identity. */
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
	/* What is transferred, and into which table. */
	enum state_transfer_kind kind;
	/* The epoch and hash of the configuration that the transfer is for. */
	uint64_t epoch, hash;
	/* How many masters the previous epoch has, and that epoch itself. */
	uint32_t previous_master_count, master_count;
	/* How many sources there are. */
	uint32_t count;
	/* The nodes that are copied from. */
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
	/* This node's own table is being copied, in pieces; and the place at which that goes
	 * on. */
	bool own_walking;
	struct table_walk own_walk;

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

/* recovery/: state transfers, and the return to voting. */
struct recovery_state {
	/* What this node takes from others, to vote with it. */
	struct state_transfer transfer;
	/* When rejoining may begin; and when this master votes by waiting. */
	struct instant rejoin_at, vote_at;
	/* The masters that may take snapshots because their epoch is being prepared. */
	struct announced announced;
	/* The end of a side file has been written or restored; and the Lamport clock that it
	 * says. */
	bool drain_whole;
	uint64_t drain_clock;
};

#endif
