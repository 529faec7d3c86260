/* checker_configs.c: which configurations there were, who votes in them, and whether operators are
 * told the truth (docs/protocol.md, section 6). */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"
#include "pawl/error.h"

const struct config *checker_config(const struct checker *c, struct id128 cluster, uint64_t epoch) {
	for (size_t i = 0; i < c->config_count; i++) {
		if (c->configs[i].config.epoch == epoch &&
			id128_equal(c->configs[i].config.cluster_id, cluster)) {
			return &c->configs[i].config;
		}
	}
	return NULL;
}

/* The newest configuration of the cluster that was begun last: a forced start begins another
 * cluster. */
const struct config *checker_newest(const struct checker *c) {
	const struct config *newest = NULL;
	for (size_t i = c->config_count; i > 0; i--) {
		const struct config *config = &c->configs[i - 1].config;
		if (!newest || (id128_equal(config->cluster_id, newest->cluster_id) &&
			config->epoch > newest->epoch)) {
			newest = config;
		}
	}
	return newest;
}

bool checker_in_config(const struct checker *c, const struct config *config, uint32_t node,
	bool *out_master) {
	int at = config_find_name(config, sim_node_name(c->sim, node));
	if (at < 0 || !id128_equal(config->nodes[at].id, sim_node_durable(c->sim, node)->node_id)) {
		return false;
	}
	*out_master = config->nodes[at].master;
	return true;
}

static void add_config(struct checker *c, uint32_t node, const struct config *config,
	uint64_t hash) {
	if (c->options.liar != TRACE_NONE && !checker_lies_adopted(c, node, config, hash)) {
		return;
	}
	for (uint32_t i = 0; i < config->node_count; i++) {
		if (strcmp(config->nodes[i].address, CHECKER_LIE) == 0) {
			checker_violation(c, "a configuration is adopted with proof", TRACE_NONE,
				"n%" PRIu32 " has adopted epoch %" PRIu64 ", which was made up",
				node + 1, config->epoch);
		}
	}
	for (size_t i = 0; i < c->config_count; i++) {
		const struct seen_config *seen = &c->configs[i];
		if (seen->config.epoch == config->epoch &&
			id128_equal(seen->config.cluster_id, config->cluster_id)) {
			if (seen->hash != hash && c->options.liar != TRACE_NONE) {
				checker_lies_conflict(c);
			} else if (seen->hash != hash) {
				checker_violation(c, "one configuration an epoch", TRACE_NONE,
					"n%" PRIu32 " has adopted another epoch %" PRIu64
					" than n%" PRIu32, node + 1, config->epoch, seen->by + 1);
			}
			return;
		}
	}
	c->configs = realloc(c->configs, (c->config_count + 1) * sizeof *c->configs);
	CHECK(c->configs != NULL);
	c->configs[c->config_count++] = (struct seen_config){ *config, hash, node };
}

static void look_again(struct checker *c, uint32_t node, struct node_view *view) {
	const struct config *config = core_config(sim_node_core(c->sim, node));
	struct core_status status;
	core_status(sim_node_core(c->sim, node), sim_node_clock(c->sim, node), &status);
	struct id128 id = sim_node_durable(c->sim, node)->node_id;
	if (status.config_hash == 0) {
		view->master = false;
		return;
	}
	if (view->born && view->member && id128_equal(view->id, id) &&
		id128_equal(view->cluster, config->cluster_id) && config->epoch < view->epoch) {
		checker_violation(c, "epochs never go back", TRACE_NONE,
			"n%" PRIu32 " was in epoch %" PRIu64 " and is in %" PRIu64 " now", node + 1,
			view->epoch, config->epoch);
	}
	bool stranger = !id128_equal(view->id, id);
	view->born = true;
	view->id = id;
	view->cluster = config->cluster_id;
	view->epoch = config->epoch;
	view->master = false;
	view->member = checker_in_config(c, config, node, &view->master);
	view->tenure += !view->master || stranger;
	add_config(c, node, config, status.config_hash);
}

/* Called after every step. It is cheap as long as nothing has changed. */
void checker_configs_look(struct checker *c, uint32_t node) {
	struct node_view *view = &c->views[node];
	uint64_t incarnation = sim_node_incarnation(c->sim, node);
	if (view->incarnation != incarnation) {
		view->incarnation = incarnation;
		view->tenure++;
		view->looked = false;
	}
	const struct core *core = sim_node_core(c->sim, node);
	if (!view->looked || !view->born || core_config(core)->epoch != view->epoch) {
		look_again(c, node, view);
		view->looked = view->born;
	}
}

/* ---- what an answer says ---- */

/* Section 8.3 for a cluster that changes: there is some epoch that the node was in while it had the
 * request, and a quorum of the masters of that epoch accepted. */
bool checker_quorum_accepted(const struct checker *c, uint32_t node, const struct op_state *op,
	const struct core_reply *reply) {
	const struct lock_state *lock = &c->locks[op->op.lock];
	const struct node_view *view = &c->views[node];
	for (size_t i = 0; i < c->config_count; i++) {
		const struct config *config = &c->configs[i].config;
		if (!id128_equal(config->cluster_id, view->cluster) ||
			config->epoch < op->asked_epoch || config->epoch > view->epoch) {
			continue;
		}
		uint32_t quorum = config_quorum(config), accepted = 0;
		for (uint32_t k = 0; k < config_masters(config); k++) {
			uint32_t master = sim_node_named(c->sim, config->nodes[k].name);
			accepted += master != TRACE_NONE && lock->accepted[master] >= reply->token;
		}
		/* A single master accepts without a message, so nothing can be seen. */
		if (reply->quorum == quorum && reply->acks >= quorum &&
			(accepted >= quorum || quorum == 1)) {
			return true;
		}
	}
	return false;
}

static bool has_node(const struct config *config, struct slice name, bool master) {
	for (uint32_t i = 0; i < config->node_count; i++) {
		if (slice_equal(slice_str(config->nodes[i].name), name)) {
			return config->nodes[i].master == master;
		}
	}
	return false;
}

static bool has_any(const struct config *config, struct slice name) {
	return has_node(config, name, true) || has_node(config, name, false);
}

static bool has_set(const struct config *config, const struct core_change *change) {
	for (uint32_t i = 0; i < change->node_count; i++) {
		if (!has_node(config, change->nodes[i].name, change->nodes[i].master)) {
			return false;
		}
	}
	return config->node_count == change->node_count;
}

static bool has_timing(const struct config *config, const struct core_change *change) {
	return (!change->max_lease || config->max_lease == change->max_lease) &&
		(!change->request_timeout || config->request_timeout == change->request_timeout) &&
		(!change->promise_timeout || config->promise_timeout == change->promise_timeout) &&
		(!change->has_drift || config->drift_ppm == change->drift_ppm);
}

static bool reached(const struct config *config, const struct core_change *change) {
	switch (change->kind) {
	case CHANGE_ADD_REPLICA:
		return has_any(config, change->name);
	case CHANGE_PROMOTE:
		return has_node(config, change->name, true);
	case CHANGE_DEMOTE:
		return has_node(config, change->name, false);
	case CHANGE_REMOVE:
		return !has_any(config, change->name);
	case CHANGE_REPLACE:
		return has_any(config, change->other) &&
			(slice_equal(change->name, change->other) ||
			!has_any(config, change->name));
	case CHANGE_SET_NODES:
		return has_set(config, change);
	case CHANGE_SET_TIMING:
		return has_timing(config, change);
	case CHANGE_FORCE:
		return config_masters(config) == 1;
	}
	return false;
}

/* How many masters of the configuration have marked it as voted, or have gone on to a later one, or
 * have lost their files. */
static uint32_t voted(const struct checker *c, const struct config *config) {
	uint32_t count = 0;
	for (uint32_t i = 0; i < config_masters(config); i++) {
		uint32_t node = sim_node_named(c->sim, config->nodes[i].name);
		const struct durable *disk = sim_node_durable(c->sim, node);
		count += !id128_equal(disk->node_id, config->nodes[i].id) ||
			disk->config.epoch > config->epoch ||
			(disk->config.epoch == config->epoch && disk->voted && !disk->pledged);
	}
	return count;
}

bool checker_config_complete(const struct checker *c, const struct config *config) {
	return voted(c, config) == config_masters(config);
}

bool checker_config_votes(const struct checker *c, const struct config *config) {
	return voted(c, config) > config_masters(config) / 2;
}

void checker_change_answered(struct checker *c, uint32_t node, uint64_t id,
	const struct core_change *change, const struct sim_reply *reply) {
	const struct op_state *op = checker_op_of(c, id);
	const struct core_reply *r = &reply->r;
	if (checker_unjudged(c, op)) {
		return;
	}
	if (r->error) {
		/* There was no memory even for an answer of the core: the error names it. */
		bool no_memory = r->error == PAWL_EBUSY && r->field &&
			strcmp(r->field, "memory") == 0;
		if (reply->why[0] == 0 && !no_memory) {
			checker_violation(c, "changes that fail say why", TRACE_NONE,
				"n%" PRIu32 " answered change %d with error %d and no sentence",
				node + 1, (int)change->kind, r->error);
		}
		return;
	}
	struct id128 cluster = c->views[node].cluster;
	const struct config *now = checker_config(c, cluster, r->epoch);
	bool had = false;
	for (size_t i = 0; i < c->config_count && !had; i++) {
		const struct config *config = &c->configs[i].config;
		bool between = config->epoch >= op->asked_epoch && config->epoch <= r->epoch &&
			id128_equal(config->cluster_id, cluster);
		had = between && reached(config, change);
	}
	if (!now || !had) {
		checker_violation(c, "honest answers (changes)", TRACE_NONE,
			"n%" PRIu32 " says that change %d is done in epoch %" PRIu64
			", but no epoch since %" PRIu64 " has what was asked for", node + 1,
			(int)change->kind, r->epoch, op->asked_epoch);
	}
	uint32_t need = r->complete ? config_masters(now) : r->settled ? config_quorum(now) : 0;
	if (voted(c, now) < need) {
		checker_violation(c, "honest answers (settled, complete)", TRACE_NONE,
			"epoch %" PRIu64 " is said to be %s, but %" PRIu32 " of %" PRIu32
			" masters have voted in it", r->epoch, r->complete ? "complete" : "settled",
			voted(c, now), config_masters(now));
	}
}
