/* change.c: copies a change of the cluster into a request. */
#include "change.h"

#include <string.h>

/* This is longer than any name or address that a node accepts. */
#define TEXT_MAX 4096

static const struct {
	enum client_method method;
	enum change_kind kind;
	/* The parameters that are always present. */
	uint64_t present;
} rows[] = {
	[PAWL_ADD_REPLICA] = { CLIENT_CLUSTER_ADD_REPLICA, CHANGE_ADD_REPLICA, CLIENT_HAS_NAME },
	[PAWL_PROMOTE] = { CLIENT_CLUSTER_PROMOTE, CHANGE_PROMOTE, CLIENT_HAS_NAME },
	[PAWL_DEMOTE] = { CLIENT_CLUSTER_DEMOTE, CHANGE_DEMOTE, CLIENT_HAS_NAME },
	[PAWL_REMOVE] = { CLIENT_CLUSTER_REMOVE, CHANGE_REMOVE, CLIENT_HAS_NAME },
	[PAWL_REPLACE] = { CLIENT_CLUSTER_REPLACE, CHANGE_REPLACE,
		CLIENT_HAS_OLD | CLIENT_HAS_NEW },
	[PAWL_SET_NODES] = { CLIENT_CLUSTER_SET_NODES, CHANGE_SET_NODES,
		CLIENT_HAS_MASTERS | CLIENT_HAS_REPLICAS },
	[PAWL_SET_TIMING] = { CLIENT_CLUSTER_SET_TIMING, CHANGE_SET_TIMING, 0 },
	[PAWL_FORCE] = { CLIENT_CLUSTER_FORCE, CHANGE_FORCE, 0 },
};

static bool may_anyway(enum pawl_change_kind kind) {
	return kind == PAWL_PROMOTE || kind == PAWL_DEMOTE || kind == PAWL_REMOVE
		|| kind == PAWL_REPLACE || kind == PAWL_SET_NODES;
}

static uint64_t present(const struct pawl_change *c) {
	uint64_t bits = rows[c->kind].present;
	if (c->kind == PAWL_ADD_REPLICA && c->address) {
		bits |= CLIENT_HAS_ADDRESS;
	}
	if (c->kind == PAWL_SET_TIMING) {
		bits |= (c->max_lease_ms ? CLIENT_HAS_MAX_LEASE : 0u)
			| (c->request_timeout_ms ? CLIENT_HAS_REQUEST_TIMEOUT : 0u)
			| (c->promise_timeout_ms ? CLIENT_HAS_PROMISE_TIMEOUT : 0u)
			| (c->has_clock_drift ? CLIENT_HAS_DRIFT : 0u);
	}
	if (c->anyway && may_anyway(c->kind)) {
		bits |= CLIENT_HAS_ANYWAY;
	}
	return bits | (c->anyway && c->kind == PAWL_FORCE ? CLIENT_HAS_YES : 0u);
}

/* ---- how much is copied ---- */

static bool count_text(const char *text, size_t *size) {
	size_t length = text ? strnlen(text, TEXT_MAX) : 0;
	*size += length;
	return length < TEXT_MAX;
}

static bool names_valid(const struct pawl_change *c) {
	if (c->kind == PAWL_SET_NODES) {
		return c->nodes && c->node_count > 0 && c->node_count <= PAWL_CHANGE_NODES_MAX;
	}
	bool named = c->kind == PAWL_SET_TIMING || c->kind == PAWL_FORCE || c->name;
	return named && (c->kind != PAWL_REPLACE || c->other);
}

int change_size(const struct pawl_change *c, size_t *out_size) {
	if (!c || (unsigned)c->kind < PAWL_ADD_REPLICA || (unsigned)c->kind > PAWL_FORCE
		|| !names_valid(c)) {
		return PAWL_EINVAL;
	}
	size_t nodes = c->kind == PAWL_SET_NODES ? c->node_count : 0;
	size_t size = sizeof(struct core_change) + nodes * sizeof(struct core_change_node);
	bool good = count_text(c->name, &size) && count_text(c->other, &size)
		&& count_text(c->address, &size);
	for (size_t i = 0; i < nodes && good; i++) {
		good = c->nodes[i].name && count_text(c->nodes[i].name, &size)
			&& count_text(c->nodes[i].address, &size);
	}
	*out_size = size;
	return good ? 0 : PAWL_EINVAL;
}

/* ---- the copy ---- */

static struct slice keep(uint8_t **at, const char *text) {
	size_t size = text ? strlen(text) : 0;
	struct slice kept = slice_of(*at, size);
	if (size) {
		memcpy(*at, text, size);
		*at += size;
	}
	return kept;
}

void change_fill(struct client_request *wire, const struct pawl_change *from, void *room) {
	struct core_change *to = room;
	struct core_change_node *nodes = (struct core_change_node *)(to + 1);
	size_t count = from->kind == PAWL_SET_NODES ? from->node_count : 0;
	uint8_t *at = (uint8_t *)(nodes + count);
	*to = (struct core_change){
		.kind = rows[from->kind].kind,
		.name = keep(&at, from->name),
		.other = keep(&at, from->other),
		.address = keep(&at, from->address),
		.nodes = nodes,
		.node_count = (uint32_t)count,
		.max_lease = (span_ns)from->max_lease_ms * SPAN_MS,
		.request_timeout = (span_ns)from->request_timeout_ms * SPAN_MS,
		.promise_timeout = (span_ns)from->promise_timeout_ms * SPAN_MS,
		.drift_ppm = from->clock_drift_ppm,
		.has_drift = from->has_clock_drift,
		.anyway = from->anyway,
	};
	for (size_t i = 0; i < count; i++) {
		nodes[i] = (struct core_change_node){ keep(&at, from->nodes[i].name),
			keep(&at, from->nodes[i].address), from->nodes[i].master };
	}
	wire->method = rows[from->kind].method;
	wire->present = present(from);
	wire->core.op = CORE_CHANGE;
	wire->core.change = to;
}
