/* config.h: a configuration of the cluster: who its nodes are and the timing constants that belong to it (section 1).
 * It is permanent, has a canonical encoding, and is named by its epoch and the hash of that encoding. */
#ifndef PAWL_CLUSTER_CONFIG_H
#define PAWL_CLUSTER_CONFIG_H

#include "types.h"

struct config_node {
	char name[NODE_NAME_MAX + 1];
	char address[ADDRESS_MAX + 1]; /* host:port for peers */
	struct id128 id;               /* zero until it is known (before birth) */
	bool master;
};

struct config {
	uint64_t epoch; /* 0: none yet (unborn) */
	char cluster[NODE_NAME_MAX + 1];
	struct id128 cluster_id; /* given at birth */
	span_ns max_lease, request_timeout, promise_timeout;
	uint32_t drift_ppm;
	uint32_t node_count;
	struct config_node nodes[CONFIG_NODES_MAX]; /* masters first, in the order of the operator's list */
	uint32_t before_count;
	struct config_node before[MASTERS_MAX]; /* the masters of epoch - 1: the handover asks them (section 6) */
};

uint32_t config_masters(const struct config *c); /* n */
uint32_t config_quorum(const struct config *c);  /* n/2 + 1 */
/* How many masters every quorum has at least one of: n - q + 1. */
uint32_t config_sources(uint32_t masters);
/* The same masters by identity, whatever their order, names and addresses. */
bool config_same_masters(const struct config *a, const struct config *b);
/* Index of the node, or -1. */
int config_find_name(const struct config *c, const char *name);
int config_find_id(const struct config *c, struct id128 id);

/* NULL when it may be used, else a sentence that names the culprit (section 9: bounds of the timing constants, 1 to 9
 * masters, names unique and not empty, ...). Static storage. */
const char *config_problem(const struct config *c);

/* The same for what a birth or a change may set: stricter, because what was chosen once stays usable. `present`: what is changed, of
 * which nothing is refused that stays as it is; NULL: a birth. */
#define REQUEST_TIMEOUT_LEAST (10 * SPAN_MS)
#define REQUEST_TIMEOUT_MOST (60 * SPAN_S)
const char *config_timing_problem(const struct config *c, const struct config *present);

/* Canonical encoding, at most CONFIG_BYTES_MAX. Returns the size. */
#define CONFIG_BYTES_MAX (256 + (CONFIG_NODES_MAX + MASTERS_MAX) * (NODE_NAME_MAX + ADDRESS_MAX + 24))
size_t config_encode(const struct config *c, uint8_t out[CONFIG_BYTES_MAX]);
/* 0 or PAWL_EPROTOCOL; *out only on success. Exactly what config_encode wrote is accepted. */
int config_decode(struct slice bytes, struct config *out);
/* 64-bit hash of the canonical encoding under a fixed key; never 0. */
uint64_t config_hash(const struct config *c);

#endif
