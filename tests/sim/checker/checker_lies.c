/* checker_lies.c: while a master lies (docs/guarantees.md, A node that lies) locks are not judged,
 * because its vote may give them to two clients. The others may adopt only a configuration that one
 * of them has accepted, or that was passed on by a node that was alone. */
#include <inttypes.h>
#include <stdlib.h>

#include "check.h"
#include "checker_impl.h"

void checker_honest(struct checker *c) {
	c->liar.lies = false;
	c->liar.honest_since = sim_now(c->sim);
}

bool checker_parted(const struct checker *c) {
	return c->liar.parted;
}

void checker_lies_conflict(struct checker *c) {
	c->liar.parted = true;
}

static bool accepted(const struct checker *c, uint64_t hash) {
	for (size_t i = 0; i < c->liar.accepted_count; i++) {
		if (c->liar.accepted[i] == hash) {
			return true;
		}
	}
	return false;
}

void checker_lies_step(struct checker *c, uint32_t node) {
	const struct durable *d = sim_node_durable(c->sim, node);
	struct liar_view *l = &c->liar;
	const uint64_t hash = config_hash(&d->decree_config);
	if (node != c->options.liar && d->decree_config.epoch > 0 && !accepted(c, hash)) {
		l->accepted = realloc(l->accepted, (l->accepted_count + 1) * sizeof *l->accepted);
		CHECK(l->accepted != NULL);
		l->accepted[l->accepted_count++] = hash;
	}
}

/* The liar has proposed a set of itself alone, and the others accepted that. A node in that set
 * believes it alone. */
static bool alone(const struct checker *c) {
	bool found = false;
	for (size_t i = 0; i < c->config_count && !found; i++) {
		const struct config *config = &c->configs[i].config;
		found = config_masters(config) == 1 && id128_equal(config->nodes[0].id,
			sim_node_durable(c->sim, c->options.liar)->node_id);
	}
	return found;
}

/* A node that belongs to no cluster believes what it is told, and it does not matter what the
 * liar's own core adopts. */
bool checker_lies_adopted(struct checker *c, uint32_t node, const struct config *config,
	uint64_t hash) {
	const struct durable *d = sim_node_durable(c->sim, node);
	if (node == c->options.liar || d->config.epoch != config->epoch || d->pledged) {
		return false;
	}
	if (c->liar.lies && config->epoch > 1 && !accepted(c, hash) &&
		sim_counts(c->sim)[COUNT_config_passed_on] == 0 && !alone(c)) {
		checker_violation(c, "a configuration is adopted with proof", TRACE_NONE,
			"n%" PRIu32 " has adopted epoch %" PRIu64
			", which nobody accepted who does not lie", node + 1, config->epoch);
	}
	return true;
}
