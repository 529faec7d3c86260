/* embed_change.c: translates a change of the cluster that the program asks for to the core's. */
#include "embed.h"

#include "pawl/error.h"

static int change_kind_of(enum pawl_change_kind from, enum change_kind *out) {
	switch (from) {
	case PAWL_ADD_REPLICA:
		*out = CHANGE_ADD_REPLICA;
		return 0;
	case PAWL_PROMOTE:
		*out = CHANGE_PROMOTE;
		return 0;
	case PAWL_DEMOTE:
		*out = CHANGE_DEMOTE;
		return 0;
	case PAWL_REMOVE:
		*out = CHANGE_REMOVE;
		return 0;
	case PAWL_REPLACE:
		*out = CHANGE_REPLACE;
		return 0;
	case PAWL_SET_NODES:
		*out = CHANGE_SET_NODES;
		return 0;
	case PAWL_SET_TIMING:
		*out = CHANGE_SET_TIMING;
		return 0;
	case PAWL_FORCE:
		*out = CHANGE_FORCE;
		return 0;
	}
	return PAWL_EINVAL;
}

static struct slice change_text(const char *text) {
	return text ? slice_str(text) : slice_of(NULL, 0);
}

int embed_change_read(const struct pawl_change *from, struct embed_change *out) {
	enum change_kind kind;
	if (!from || change_kind_of(from->kind, &kind) != 0
		|| from->node_count > PAWL_CHANGE_NODES_MAX || (from->node_count && !from->nodes)) {
		return PAWL_EINVAL;
	}
	for (size_t i = 0; i < from->node_count; i++) {
		const struct pawl_change_node *n = &from->nodes[i];
		out->nodes[i] = (struct core_change_node){ change_text(n->name),
			change_text(n->address), n->master };
	}
	out->change = (struct core_change){ .kind = kind, .name = change_text(from->name),
		.other = change_text(from->other), .address = change_text(from->address),
		.nodes = out->nodes, .node_count = (uint32_t)from->node_count,
		.max_lease = (span_ns)from->max_lease_ms * SPAN_MS,
		.request_timeout = (span_ns)from->request_timeout_ms * SPAN_MS,
		.promise_timeout = (span_ns)from->promise_timeout_ms * SPAN_MS,
		.drift_ppm = from->clock_drift_ppm, .has_drift = from->has_clock_drift,
		.anyway = from->anyway };
	return 0;
}
