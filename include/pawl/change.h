/* change.h: what PAWL_CHANGE (request.h) asks of a cluster: other nodes, or other timing constants.
 * Only administrators may do this.
 *
 * A master coordinates the change. A replica refuses it (PAWL_ERECOVERING) and names a master. The
 * present masters choose the next configuration by a majority. Every change is safe to repeat: a
 * change whose aim is already reached succeeds and changes nothing. Only one change runs at a time.
 * It has succeeded when a majority of the masters votes in the new configuration (settled); the
 * node then waits a while for the rest of them (complete).
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
	/* Adds `name` as a replica, at `address` (host:port for other nodes). The node must be
	 * running, and must not be in a cluster yet. */
	PAWL_ADD_REPLICA = 1,
	/* Makes the replica `name` a master. */
	PAWL_PROMOTE,
	/* Makes the master `name` a replica. */
	PAWL_DEMOTE,
	/* Removes `name` from the cluster. */
	PAWL_REMOVE,
	/* Removes `name`, and `other` takes its place. The same name twice is for a node that has
	 * lost its state file. */
	PAWL_REPLACE,
	/* Makes `nodes` the whole set of nodes. */
	PAWL_SET_NODES,
	/* Changes the timing constants that are given. */
	PAWL_SET_TIMING,
	/* Starts the cluster over with the node that is asked as its only master, after a majority
	 * has been lost for good. The old masters must be dead. Locks that are held may be lost.
	 * This needs `anyway`, and the library never repeats it at another node. */
	PAWL_FORCE
};

/* One of the nodes that PAWL_SET_NODES lists. */
struct pawl_change_node {
	/* The name of the node. */
	const char *name;
	/* host:port for other nodes; NULL means the address that the cluster already knows. */
	const char *address;
	/* The node is to be a master; otherwise it is to be a replica. */
	bool master;
};

/* The largest number of nodes that PAWL_SET_NODES may list. */
#define PAWL_CHANGE_NODES_MAX 48

/* One change. A zero field is not given. A kind ignores the fields that it does not read.
 * Everything is borrowed for the call only. */
struct pawl_change {
	/* What is to be changed. */
	enum pawl_change_kind kind;
	/* The nodes in question, and the address of a replica to add; see enum pawl_change_kind. */
	const char *name, *other, *address;
	/* PAWL_SET_NODES: at most PAWL_CHANGE_NODES_MAX nodes. */
	const struct pawl_change_node *nodes;
	size_t node_count;
	/* PAWL_SET_TIMING: the constants, in ms. */
	uint32_t max_lease_ms, request_timeout_ms, promise_timeout_ms;
	/* PAWL_SET_TIMING: the clock drift, in millionths. */
	uint32_t clock_drift_ppm;
	/* PAWL_SET_TIMING: clock_drift_ppm is given. */
	bool has_clock_drift;
	/* Makes the change even if no majority of the new masters answers. A majority of the
	 * present masters must agree nevertheless. PAWL_FORCE: confirms it. */
	bool anyway;
};

#ifdef __cplusplus
}
#endif
#endif
