/* config.h: a configuration of the cluster, which is the set of its nodes and the timing constants
 * that belong to it (section 1). A configuration is permanent. It has a canonical encoding, and is
 * named by its epoch and the hash of that encoding. */
#ifndef PAWL_CLUSTER_CONFIG_H
#define PAWL_CLUSTER_CONFIG_H

#include "types.h"

struct config_node {
	/* The name, which is unique in the cluster. */
	char name[NODE_NAME_MAX + 1];
	/* The address at which peers reach the node, as host:port. */
	char address[ADDRESS_MAX + 1];
	/* The identity of the node. It is zero before birth, as long as it is not known. */
	struct id128 id;
	/* The node is a master; else it is a replica. */
	bool master;
};

struct config {
	/* The number of the configuration; 0 means that there is none, as the cluster is not born
	 * yet. */
	uint64_t epoch;
	/* The name of the cluster. */
	char cluster[NODE_NAME_MAX + 1];
	/* The identity of the cluster, which it is given at birth and with each forced start. */
	struct id128 cluster_id;

	/* The timing constants, in nanoseconds (section 9 has their bounds). */
	span_ns max_lease, request_timeout, promise_timeout;
	/* The bound on the drift between two clocks, in parts per million. */
	uint32_t drift_ppm;

	/* The nodes, masters first, else in the order of the operator's list. */
	uint32_t node_count;
	struct config_node nodes[CONFIG_NODES_MAX];

	/* The masters of epoch - 1, which the handover asks (section 6). */
	uint32_t previous_master_count;
	struct config_node previous_masters[MASTERS_MAX];
};

/* Returns n, the number of masters. */
uint32_t config_masters(const struct config *c);
/* Returns q = n/2 + 1, the size of a quorum. */
uint32_t config_quorum(const struct config *c);
/* Returns n - q + 1. Every quorum contains at least one master of any set of this size. */
uint32_t config_sources(uint32_t masters);
/* Tells whether both configurations have the same masters by identity, whatever their order, names
 * and addresses. */
bool config_same_masters(const struct config *a, const struct config *b);
/* Return the index of the node, or -1. */
int config_find_name(const struct config *c, const char *name);
int config_find_id(const struct config *c, struct id128 id);

/* Returns NULL when the configuration may be used, else a sentence that names the culprit (section
 * 9: bounds of the timing constants, 1 to 9 masters, names that are unique and not empty, ...). The
 * sentence has static storage. */
const char *config_problem(const struct config *c);

/* Does the same for what a birth or a change may set. It is stricter than config_problem, because
 * what was chosen once stays usable. `present` is the configuration that is changed: what stays as
 * it is there is not refused. At a birth it is NULL. */
#define REQUEST_TIMEOUT_LEAST (10 * SPAN_MS)
#define REQUEST_TIMEOUT_MOST (60 * SPAN_S)
const char *config_timing_problem(const struct config *c, const struct config *present);

/* Writes the canonical encoding, at most CONFIG_BYTES_MAX bytes, and returns its size. */
#define CONFIG_BYTES_MAX \
	(256 + (CONFIG_NODES_MAX + MASTERS_MAX) * (NODE_NAME_MAX + ADDRESS_MAX + 24))
size_t config_encode(const struct config *c, uint8_t out[CONFIG_BYTES_MAX]);
/* Reads exactly what config_encode wrote. Returns 0 or PAWL_EPROTOCOL; *out is set only on
 * success. */
int config_decode(struct slice bytes, struct config *out);
/* Returns a 64-bit hash of the canonical encoding under a fixed key. The hash is never 0. */
uint64_t config_hash(const struct config *c);

#endif
