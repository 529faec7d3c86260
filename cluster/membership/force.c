/* force.c: starting over after a majority of the masters is lost for good (section 6). It makes a
 * cluster with a new identity, with this node as its only master, a wait of the longest lease, and
 * a clock beyond anything that the lost masters may have reached. */
#include "membership.h"

static struct id128 new_identity(struct core *core, const struct config *c) {
	uint64_t words[2] = { config_hash(c) ^ prng_next(&core->prng),
		core->clock ^ prng_next(&core->prng) };
	struct id128 id;
	memcpy(id.b, words, sizeof id.b);
	return id;
}

/* The node is or was a member: the last configuration that it adopted is on its disk, even when the
 * node is not in it, and what it knows of clocks and leases is what it has heard or granted as a
 * member. A node that never was a member knows nothing that a new cluster could begin with. */
bool force_possible(const struct core *core) {
	return core_born(core) && core->durable.config.epoch != 0 && !core->durable.pledged &&
		core->state != CORE_DRAINED;
}

/* If this node is all that there is, a repeated request needs nothing more. */
bool force_done(const struct core *core) {
	return core->config.node_count == 1 && core->self < core->masters && !core->adopting;
}

/* Returns the longest lease that may still be trusted. What others told this node may have been
 * granted when longer leases were allowed; what it accepted itself is in `max_lease_seen`. A
 * million records are not examined for that, so what has ended since may count as well. */
static span_ns longest_left(const struct core *core) {
	const span_ns allowed = span_longer(core->lease_allowed, core->durable.max_lease_seen);
	span_ns left = instant_left_long(core->now, table_live(core)->latest);
	if (core->self >= core->masters && left > allowed) {
		/* The master that a replica follows may have told it of any lease. */
		left = allowed;
	}
	return left > core->config.max_lease ? left : core->config.max_lease;
}

/* Each forced start has raised the clock by 2^40 and a little. So a node that has no clock of its
 * own on disk (a replica that was started again) knows from the epoch how far the clocks of the
 * lost masters may be. */
int force_begin(struct core *core, const struct core_change *w, const char **why) {
	struct durable *d = &core->durable;
	uint64_t highest = d->ceiling > core->clock ? d->ceiling : core->clock,
		starts = d->config.epoch >> 32;
	highest = highest > 2 * CLOCK_FORCE_JUMP * starts ? highest : 2 * CLOCK_FORCE_JUMP * starts;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		highest = core->peers[i].clock > highest ? core->peers[i].clock : highest;
	}
	if (!w->anyway) {
		*why = "it needs to be confirmed: locks that only the lost masters knew are "
			"forgotten, and the old masters must be dead for good";
		return PAWL_EBADREQUEST;
	}
	if (core->adopting || highest > TOKEN_MAX - 2 * CLOCK_FORCE_JUMP) {
		*why = "not now: a configuration is being adopted, or the clock is at its end";
		return PAWL_EBUSY;
	}
	struct config *c = &d->config;
	struct config_node self = core->peers[core->self].node;
	self.master = true;
	/* The epoch is beyond every number that the old masters may still give out. */
	c->epoch = ((c->epoch >> 32) + 1) << 32;
	c->cluster_id = new_identity(core, c);
	c->nodes[0] = self;
	c->node_count = 1;
	c->previous_master_count = 0;
	d->voted = d->complete = true;
	d->voted_before = false;
	span_ns longest = longest_left(core);
	d->max_lease_seen = longest > d->max_lease_seen ? longest : d->max_lease_seen;
	d->request_timeout_seen = c->request_timeout > d->request_timeout_seen ? c->request_timeout
		: d->request_timeout_seen;
	d->decree_promised = d->decree_accepted = (struct ballot){ 0, 0, 0 };
	d->decree_config.epoch = 0;
	d->ceiling = highest + CLOCK_FORCE_JUMP + CEILING_BLOCK;
	core->membership->forced = true;
	core->adopting = true;
	persist_changed(core);
	core->membership->adopt_seq = persist_wanted(core);
	COUNT(core, forced);
	return PAWL_OK;
}

/* The new cluster is on disk, and only the wait is left. */
void force_effect(struct core *core) {
	core->membership->forced = false;
	core->clock = core->durable.ceiling - CEILING_BLOCK;
	out_note(core, NOTE_FORCED, core->self, core->config.epoch, NULL, slice_of(NULL, 0));
	recovery_again(core);
}
