/* absence.c: says why a node takes no part in the cluster. */
#include "engine.h"

/* Tells whether the configuration has a node of this node's name, which then has another
 * identity. */
static bool name_taken(const struct core *core) {
	for (uint32_t i = 0; i < core->config.node_count; i++) {
		if (strcmp(core->config.nodes[i].name, core->name) == 0) {
			return true;
		}
	}
	return false;
}

const char *engine_absence(const struct core *core) {
	switch (core->state) {
	case CORE_UNBORN:
		return "the cluster is not born yet: start all initial masters; pawl status says "
			"what this node waits for";
	case CORE_OUTSIDE:
		if (core->durable.config.epoch != 0 && !core->durable.pledged) {
			return "this node was removed from the cluster: ask another node. Stop "
				"this one, or add it again (pawl cluster add-replica)";
		}
		if (name_taken(core)) {
			return "this node has the name of a member, but not its state directory: "
				"ask another node. To give it that place again: pawl cluster "
				"replace NAME NAME";
		}
		return "this node was never added to the cluster: ask another node, or add this "
			"one (pawl cluster add-replica)";
	case CORE_DRAINED:
		return "this node was drained for a planned stop: ask another node. It serves "
			"again after it is stopped and started";
	case CORE_FOLLOWING: case CORE_HANDOVER: case CORE_RECOVERING: case CORE_VOTING:
		break;
	}
	return NULL;
}
