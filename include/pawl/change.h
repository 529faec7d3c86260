/* change.h: what PAWL_CHANGE (pawl.h) asks of a cluster: other nodes, or other timing constants. For administrators.
 *
 * A master coordinates it; a replica refuses (PAWL_ERECOVERING) and names one. The present masters choose the next
 * configuration by a majority, and every change is safe to repeat: one whose aim is reached already succeeds and changes
 * nothing. One change at a time; it has succeeded when a majority of the masters votes in the new configuration (settled), and
 * the node waits a while for the rest of them (complete).
 */
#ifndef PAWL_CHANGE_H
#define PAWL_CHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum pawl_change_kind {
	PAWL_ADD_REPLICA = 1, /* `name` at `address` (host:port, for its peers), which runs and is in no cluster yet */
	PAWL_PROMOTE,         /* `name`, a replica, becomes a master */
	PAWL_DEMOTE,          /* `name`, a master, becomes a replica */
	PAWL_REMOVE,          /* `name` leaves */
	PAWL_REPLACE,         /* `name` leaves and `other` takes its place; the same name twice: a node that lost its state file */
	PAWL_SET_NODES,       /* `nodes` is the whole set from now on */
	PAWL_SET_TIMING,      /* those constants that are named */
	PAWL_FORCE            /* after the loss of a majority for good: the asked node starts over as the only master. The old masters
	                       * must be dead; what is held may be lost. Needs `anyway`; never repeated at another node */
};

struct pawl_change_node {
	const char *name;
	const char *address; /* host:port; NULL: as it is known */
	bool master;
};

#define PAWL_CHANGE_NODES_MAX 48

struct pawl_change { /* zero: not named; what a kind does not know is ignored */
	enum pawl_change_kind kind;
	const char *name, *other, *address;
	const struct pawl_change_node *nodes;
	size_t node_count; /* at most PAWL_CHANGE_NODES_MAX */
	uint32_t max_lease_ms, request_timeout_ms, promise_timeout_ms;
	uint32_t clock_drift_ppm;
	bool has_clock_drift; /* clock_drift_ppm is named */
	bool anyway;          /* also if the new masters have no majority that answers; a majority of the present ones has to agree all the same.
	                       * PAWL_FORCE: confirmed */
};

#ifdef __cplusplus
}
#endif
#endif
