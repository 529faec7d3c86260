/* birth.c: the beginning of a cluster (section 6, Birth). Each initial master pledges the whole
 * configuration of epoch 1, with the identities that it heard, once and for ever. It writes epoch
 * 1, already marked `voted`, once all have pledged the same, or once one of them tells that it has
 * written an epoch 1 that equals this node's own pledge. Pledges that differ stop the birth, except
 * for a node that joins a birth which is done. Nothing is granted before epoch 1 is written.
 *
 *   not pledged --identities of all heard--> pledged --on disk, all equal--> writing
 *   writing --on disk--> VOTING
 */
#include "membership.h"

static bool same_config(const struct config *a, const struct config *b) {
	uint8_t x[CONFIG_BYTES_MAX], y[CONFIG_BYTES_MAX];
	size_t n = config_encode(a, x);
	return n == config_encode(b, y) && memcmp(x, y, n) == 0;
}

/* Tells this peer the pledge, or the configuration of epoch 1 when this node is born. */
static void tell(struct core *core, uint32_t peer) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	bool born = core_born(core);
	if (!born && !(core->durable.pledged && persist_has_pledged(core))) {
		return;
	}
	struct message m = { .kind = MESSAGE_PLEDGE, .flags = born ? FLAG_BORN : 0 };
	m.blob = slice_of(bytes, config_encode(born ? &core->config : &core->durable.config,
		bytes));
	out_send(core, peer, &m);
}

/* Pledges if all identities have been heard. */
static void pledge(struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (id128_zero(core->peers[i].link_id)) {
			/* An identity has not been heard yet. */
			return;
		}
	}
	struct config *c = &core->durable.config;
	*c = core->config;
	c->epoch = 1;
	for (uint32_t i = 0; i < c->node_count; i++) {
		c->nodes[i].id = core->peers[i].link_id;
	}
	if (config_problem(c) != NULL) {
		core->membership.birth_stopped = true;
		COUNT(core, birth_refused);
		out_note(core, NOTE_BIRTH_DIFFERS, core->self, 0, config_problem(c),
			slice_of(NULL, 0));
		c->epoch = 0;
		return;
	}
	uint64_t name[2] = { config_hash(c), 0 };
	c->cluster_id = (struct id128){ { 1 } };
	name[1] = config_hash(c);
	memcpy(c->cluster_id.b, name, sizeof name);
	core->config = *c;
	core->durable.pledged = true;
	persist_changed(core);
}

/* Writes epoch 1, marked `voted`. A birth that had stopped at another's pledge goes on with it. */
static void write_epoch(struct core *core) {
	core->membership.birth_stopped = false;
	core->durable.pledged = false;
	core->durable.voted = true;
	core->durable.max_lease_seen = core->config.max_lease;
	core->durable.request_timeout_seen = core->config.request_timeout;
	core->durable.ceiling = core->clock + CEILING_BLOCK;
	persist_changed(core);
}

/* Tells whether all other initial masters have pledged the same. */
static bool all_equal(const struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		if (i != core->self && !core->peers[i].pledge_equal) {
			return false;
		}
	}
	return true;
}

void birth_go_on(struct core *core) {
	if (core->state != CORE_UNBORN || core->adopting) {
		return;
	}
	if (core->durable.voted) {
		/* Epoch 1 is being written. */
		return;
	}
	if (!core->durable.pledged) {
		if (!core->membership.birth_stopped) {
			pledge(core);
		}
	} else if (persist_has_pledged(core) && all_equal(core)) {
		write_epoch(core);
	} else {
		for (uint32_t i = 0; i < core->peer_count; i++) {
			if (core->peers[i].up) {
				tell(core, i);
			}
		}
	}
}

void birth_persisted(struct core *core) {
	if (core->state == CORE_UNBORN && persist_has_voted(core)) {
		COUNT(core, birth);
		core->state = CORE_RECOVERING;
		core->config_hash = config_hash(&core->config);
		core->adopted_at = core->now;
		for (uint32_t i = 0; i < core->peer_count; i++) {
			struct peer *p = &core->peers[i];
			/* Non-members that came before stay what they are. */
			if (i < core->config.node_count) {
				p->node = core->config.nodes[i];
				p->linked = p->up && id128_equal(p->link_id, p->node.id);
			}
			if (p->up) {
				tell(core, i);
			}
		}
		out_note(core, NOTE_BORN, core->self, 1, NULL, slice_of(NULL, 0));
		recovery_vote(core, "birth");
	} else {
		birth_go_on(core);
	}
}

void birth_peer_up(struct core *core, uint32_t peer) {
	if (core->state == CORE_UNBORN) {
		birth_go_on(core);
	}
	tell(core, peer);
}

/* Returns which part of two pledges differs, for the operator. */
static const char *difference(const struct config *a, const struct config *b) {
	if (strcmp(a->cluster, b->cluster) != 0) {
		return "cluster name";
	}
	if (a->max_lease != b->max_lease || a->request_timeout != b->request_timeout ||
		a->promise_timeout != b->promise_timeout || a->drift_ppm != b->drift_ppm) {
		return "max_lease, request_timeout, promise_timeout or clock_drift";
	}
	for (uint32_t i = 0; i < CONFIG_NODES_MAX; i++) {
		if (i < a->node_count && i < b->node_count &&
			strcmp(a->nodes[i].name, b->nodes[i].name) == 0) {
			if (strcmp(a->nodes[i].address, b->nodes[i].address) != 0) {
				return "address of a master";
			}
			if (!id128_equal(a->nodes[i].id, b->nodes[i].id)) {
				return "identity of a master: its state directory is not the one "
					"it had when the others heard of it";
			}
		}
	}
	return "names or order of the masters";
}

void birth_pledge(struct core *core, uint32_t from, const struct message *m) {
	struct config theirs;
	bool born = (m->flags & FLAG_BORN) != 0;
	if (core_born(core) && !born) {
		tell(core, from);
	}
	if (core->state != CORE_UNBORN || core->durable.voted || (born && !core->durable.pledged)) {
		/* Either this node is born, or its birth is being written, or the other one belongs
		 * to a cluster that was born without this node's identity (epoch.c). */
		return;
	}
	if (from >= core->masters || config_decode(m->blob, &theirs) != 0) {
		return;
	}
	if (!core->durable.pledged || (born && !same_config(&theirs, &core->durable.config))) {
		/* Either this node has not pledged yet, and will be told the other pledge again. Or
		 * the others were born without this node's identity, and will tell their
		 * configuration (epoch.c). */
		return;
	}
	if (!same_config(&theirs, &core->durable.config)) {
		if (core->membership.birth_stopped) {
			/* The difference has been reported already. */
			return;
		}
		core->membership.birth_stopped = true;
		COUNT(core, birth_refused);
		out_note(core, NOTE_BIRTH_DIFFERS, from, born,
			difference(&theirs, &core->durable.config), slice_of(NULL, 0));
		return;
	}
	core->peers[from].pledge_equal = true;
	if (persist_has_pledged(core) && !core->durable.voted && (born || all_equal(core))) {
		write_epoch(core);
	}
}
