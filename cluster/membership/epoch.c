/* epoch.c: adopting a configuration that was chosen, and what follows from it (section 6). It takes
 * effect when it is on disk. From then on nothing is accepted under an earlier epoch, promises and
 * queues are gone, and all linked peers are told.
 *
 *   told --checked--> being synced --on disk--> in effect: VOTING on (the same masters), HANDOVER,
 *                                                          FOLLOWING or OUTSIDE
 */
#include "membership.h"

/* ---- telling ---- */

static void tell(struct core *core, uint32_t peer) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct peer *p = &core->peers[peer];
	struct message m = { .kind = MESSAGE_CONFIG };
	m.blob = slice_of(bytes, config_encode(&core->config, bytes));
	p->config_told = core->config.epoch;
	p->told_at = core->now;
	COUNT(core, config_told);
	out_send(core, peer, &m);
}

void epoch_tell(struct core *core, const struct config *chosen) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct message m = { .kind = MESSAGE_CONFIG };
	m.blob = slice_of(bytes, config_encode(chosen, bytes));
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up) {
			out_send(core, i, &m);
		}
	}
}

/* A peer that is behind is told once in a request_timeout. */
void epoch_heard(struct core *core, uint32_t peer, bool first) {
	const struct peer *p = &core->peers[peer];
	if (!core_born(core) || core->config.epoch == 0) {
		return;
	}
	if (p->epoch == core->config.epoch && p->linked && !p->in_epoch) {
		proof_contradicted(core, peer);
	} else if (p->epoch < core->config.epoch &&
		(first || p->config_told != core->config.epoch || instant_expired(core->now,
			instant_add(p->told_at, core->config.request_timeout)))) {
		tell(core, peer);
	}
}

/* ---- adopting ---- */

/* Returns this node's place in the configuration, by its identity and name, or -1. */
static int place(const struct core *core, const struct config *c) {
	int at = config_find_id(c, core->durable.node_id);
	return at >= 0 && strcmp(c->nodes[at].name, core->name) == 0 ? at : -1;
}

/* Consecutive epochs with the same masters are one epoch as far as memory goes, because every
 * quorum of the one shares a master with every quorum of the other. So `voted` carries over, and a
 * master that votes goes on voting; one that had voted and recovers comes back by section 4. That
 * holds only for the direct successor: a node that skips an epoch does not know whether the masters
 * were the same in between. */
static bool same_run(const struct core *core, const struct config *c) {
	const struct durable *d = &core->durable;
	return !d->pledged && c->epoch == d->config.epoch + 1 && config_same_masters(&d->config, c);
}

/* Puts the configuration into what is to be on disk. */
static void write_down(struct core *core, const struct config *c) {
	struct durable *d = &core->durable;
	d->voted = d->voted && same_run(core, c);
	/* What counts is whether the node has ever voted, because it may have voted in a run that
	 * goes up to the previous epoch. */
	d->voted_before = d->max_lease_seen > 0;
	d->pledged = d->complete = false;
	d->config = *c;
	d->decree_promised = d->decree_accepted = (struct ballot){ 0, 0, 0 };
	d->decree_config.epoch = 0;
	if (d->voted) {
		d->max_lease_seen = span_longer(d->max_lease_seen, c->max_lease);
		d->request_timeout_seen = span_longer(d->request_timeout_seen, c->request_timeout);
	}
	core->adopting = true;
	persist_changed(core);
	core->membership->adopt_seq = persist_wanted(core);
}

void epoch_adopt(struct core *core, const struct config *c) {
	CHECK(!core_born(core) || c->epoch > core->config.epoch);
	if (core->adopting) {
		/* One configuration is adopted at a time. This one will be told again. */
		return;
	}
	bool nobody = core->durable.config.epoch == 0 || core->durable.pledged;
	/* What a node outside knows of the cluster is not worth a place on the disk. */
	if (place(core, c) < 0 && nobody) {
		/* The birth to which this node pledged itself cannot happen any more, because the
		 * others were born without it. */
		if (core->durable.pledged) {
			core->durable.pledged = false;
			core->durable.config.epoch = 0;
			persist_changed(core);
		}
		core->config = *c;
		epoch_take(core);
		return;
	}
	COUNT(core, config_adopted);
	core->counts[COUNT_config_skipped] += c->epoch > core->config.epoch + 1;
	write_down(core, c);
}

void epoch_persisted(struct core *core) {
	if (core->adopting && persist_reached(core, core->membership->adopt_seq)) {
		bool next = core->config.epoch + 1 == core->durable.config.epoch;
		core->adopting = false;
		core->remembers = next && core_votes(core);
		binding_master_epoch(core, next && core->self < core->masters);
		core->config = core->durable.config;
		epoch_take(core);
	}
}

/* ---- taking effect ---- */

/* Becomes what the configuration says that this node is, and returns that as text for the log.
 * `voted`: the node voted before. */
static const char *enter_role(struct core *core, bool voted) {
	int at = place(core, &core->config);
	bool replica = at >= 0 && !core->config.nodes[at].master;
	if (core->state == CORE_DRAINED) {
		return "a node that stops";
	}
	if (!replica) {
		follow_stop(core);
	}
	if (at < 0 || replica) {
		persist_votes_end(core);
	}
	if (at < 0) {
		core->state = CORE_OUTSIDE;
		state_transfer_stop(core);
		COUNT(core, config_removed);
		out_note(core, NOTE_OUTSIDE, core->self, core->durable.config.epoch, NULL,
			slice_of(NULL, 0));
		return "not in it";
	}
	if (replica) {
		if (core->state != CORE_FOLLOWING) {
			/* From now on this node tells events as it hears them from its master
			 * (watch_event.c). */
			watch_events_missed(core);
		}
		core->state = CORE_FOLLOWING;
		state_transfer_stop(core);
		return "replica";
	}
	if (core->membership->forced) {
		force_effect(core);
		return "the only master, of a cluster that starts over";
	}
	if (core->durable.voted && voted) {
		COUNT(core, epoch_kept_voting);
		state_transfer_stop(core);
		ceiling_raise(core);
		return "master, still voting";
	}
	/* The master recovers, or it stopped voting while the configuration was being written. */
	if (core->durable.voted) {
		recovery_again_in_epoch(core);
		return "master, recovering";
	}
	core->state = CORE_HANDOVER;
	state_transfer_handover(core);
	return "master, to take over";
}

static void set_masters(struct core *core) {
	core->config_hash = config_hash(&core->config);
	core->masters = config_masters(&core->config);
	core->masters_most = core->masters > core->masters_most
		? core->masters : core->masters_most;
	core->quorum = config_quorum(&core->config);
	core->complete = core->durable.config.epoch == core->config.epoch && core->durable.complete;
	core->conflict = false;
	core->lease_allowed = span_longer(core->lease_allowed, core->config.max_lease);
	core->adopted_at = core->now;
	core->forget_at = instant_add(core->now,
		span_grow(span_longer(core->durable.max_lease_seen, core->config.max_lease),
			2 * core->config.drift_ppm));
}

void epoch_take(struct core *core) {
	bool voted = core_votes(core);
	/* The promises and queues belong to the previous epoch. */
	queue_forget_all(core);
	snapshot_epoch(core);
	feed_stop_all(core);
	follow_leave(core);
	out_drop_epoch(core);
	counted_epoch(core);
	set_masters(core);
	peer_table_rebuild(core);
	proof_epoch(core);
	const char *as = enter_role(core, voted);
	if (core->state == CORE_FOLLOWING) {
		follow_start(core);
	}
	out_note(core, NOTE_ADOPTED, core->self, core->config.epoch, as, slice_of(NULL, 0));
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up && core->peers[i].epoch < core->config.epoch) {
			tell(core, i);
		}
	}
	counted_epoch_begins(core);
	peers_tell(core);
	restart_all(core);
	change_adopted(core);
	attempt_rehome_all(core);
	epoch_peer_changed(core);
}

/* ---- told ---- */

/* Tells whether this node's pledge is void. The pledge was made with an identity that came too
 * late: one of those whom it names belongs to a cluster that was born otherwise. All of them would
 * have to pledge the same, and each does so only once, so this birth will never be. */
static bool pledge_void(const struct core *core, uint32_t from) {
	const struct durable *d = &core->durable;
	return core->state == CORE_UNBORN && d->pledged && !d->voted &&
		config_find_id(&d->config, core->peers[from].link_id) >= 0;
}

static bool file_names(const struct core *core, const char *name) {
	bool found = false;
	for (uint32_t i = 0; i < MASTERS_MAX && core->named[i][0]; i++) {
		found = found || strcmp(core->named[i], name) == 0;
	}
	return found;
}

/* A node that belongs to no cluster believes the masters that its own file names, and those of the
 * configuration that it was told last. */
static void told_outside(struct core *core, uint32_t from, const struct config *c) {
	bool named = file_names(core, core->peers[from].node.name) ||
		(from < core->masters && core->peers[from].linked);
	if (!named) {
		COUNT(core, config_unproven);
		proof_wanted(core);
	} else if (!core_born(core) || c->epoch > core->config.epoch) {
		epoch_adopt(core, c);
	}
}

void epoch_told(struct core *core, uint32_t from, const struct message *m) {
	struct config c;
	if (config_decode(m->blob, &c) != 0 || config_problem(&c) != NULL ||
		strcmp(c.cluster, core->config.cluster) != 0) {
		return;
	}
	bool member = core->durable.config.epoch != 0 && !pledge_void(core, from);
	if (member && id128_equal(c.cluster_id, core->durable.config.cluster_id) &&
		c.epoch >> 32 != core->durable.config.epoch >> 32) {
		/* Only a forced start gives out a new upper half of the number, and a new cluster
		 * identity with it. */
		COUNT(core, config_unproven);
		return;
	}
	if (member && !id128_equal(c.cluster_id, core->durable.config.cluster_id)) {
		if (!core->peers[from].wrong_noted) {
			core->peers[from].wrong_noted = true;
			out_note(core, NOTE_CONFLICT, from, c.epoch, "of another cluster",
				slice_of(NULL, 0));
		}
		return;
	}
	if (core->state == CORE_UNBORN && c.epoch == 1 && place(core, &c) >= 0) {
		/* This is the node's own birth, which birth.c handles. */
		return;
	}
	if (c.epoch == core->config.epoch && core_born(core)) {
		if (config_hash(&c) != core->config_hash) {
			proof_contradicted(core, from);
		}
	} else if (member && core_born(core) && c.epoch > core->config.epoch) {
		proof_told(core, from, m, &c);
	} else if (!member || !core_born(core)) {
		told_outside(core, from, &c);
	}
}

/* ---- settled and complete ---- */

/* All masters have voted in this epoch, so what their sources kept for them may go. */
static void epoch_complete(struct core *core) {
	if (core->complete || !core_born(core)) {
		return;
	}
	core->complete = true;
	COUNT(core, complete);
	out_note(core, NOTE_COMPLETE, core->self, core->config.epoch, NULL, slice_of(NULL, 0));
	if (core->durable.config.epoch == core->config.epoch) {
		core->durable.complete = true;
		persist_changed(core);
	}
	peers_tell(core);
}

/* The epoch counts as complete when q masters say so, because the sources drop for it what they
 * have kept. */
void epoch_said_complete(struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		n += core->peers[i].complete;
	}
	if (n >= core->quorum) {
		epoch_complete(core);
	}
}

void epoch_peer_changed(struct core *core) {
	if (core_born(core) && core->masters > 0 && epoch_missing(core) == 0) {
		epoch_complete(core);
	}
	if (restart_has_suspended(core) && epoch_voters(core) >= core->quorum) {
		restart_suspended(core);
	}
	state_transfer_beat(core);
	change_peer_changed(core);
}
