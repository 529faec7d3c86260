/* pending.h: which work is left. Whoever has work sets the bit of its kind, and whoever goes on
 * with it clears the bit when none is left, so that no step has to ask around. A bit may be set
 * without need, which costs one look. None may be missing: core_check looks for that. Part of
 * state.h. */
#ifndef PAWL_CLUSTER_PENDING_H
#define PAWL_CLUSTER_PENDING_H

#include <stdint.h>

enum pending {
	/* What the step under way does until nothing of it is left (node/core.c): messages of this
	 * node to itself; requests for several keys to which something was answered; and operations
	 * in line for the masters' reports, of which one may begin. */
	PENDING_SAID = 1u << 0, PENDING_GROUPS = 1u << 1, PENDING_LINE = 1u << 2,

	/* What is done in pieces (node/background.c). In master/: what is left of lost links;
	 * try-locks that are to be refused; and bound records that are to be examined. */
	PENDING_LOST = 1u << 3, PENDING_TRIES = 1u << 4, PENDING_BOUND = 1u << 5,
	/* In the coordinator: requests of connections that are gone; requests that have yet to look
	 * for their home; those that wait, and local waits, at a node without a quorum; reads whose
	 * answers are large; local waits whose change has come; lists; reports of which this node
	 * tells itself the next piece; and operations that are to weigh theirs. */
	PENDING_LEAVING = 1u << 6, PENDING_HOMES = 1u << 7, PENDING_UNSERVED = 1u << 8,
	PENDING_UNSERVED_WAITS = 1u << 9, PENDING_SHOWING = 1u << 10, PENDING_WAITS = 1u << 11,
	PENDING_LISTS = 1u << 12, PENDING_ASKING = 1u << 13, PENDING_WEIGHING = 1u << 14,
	/* Leaves that repair/ is to judge; and pieces of snapshots, and batches for followers, that
	 * were asked for. */
	PENDING_JUDGING = 1u << 15, PENDING_SNAPSHOTS = 1u << 16, PENDING_FEEDS = 1u << 17,
	/* Work on whole tables: the staging table is to be emptied; what was merged is to be
	 * finished; sources are to be asked for their next pieces after a pause; and this node's
	 * own table is to be copied. */
	PENDING_EMPTYING = 1u << 18, PENDING_FINISHING = 1u << 19, PENDING_PAUSED = 1u << 20,
	PENDING_COPYING = 1u << 21,

	/* What the end of a step does, in replication/: a batch is full; and the master that is
	 * followed is to be told that somebody watches here. */
	PENDING_BATCH = 1u << 22, PENDING_WATCHED = 1u << 23,

	PENDING_IN_STEP = PENDING_SAID | PENDING_GROUPS | PENDING_LINE,
	PENDING_TABLES = PENDING_EMPTYING | PENDING_FINISHING | PENDING_PAUSED | PENDING_COPYING,
	PENDING_AT_END = PENDING_BATCH | PENDING_WATCHED
};

#endif
