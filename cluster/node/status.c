/* status.c: what a node tells about itself: its status, counts, and what tests look up. It changes
 * nothing. */
#include "node.h"

/* Returns what a node outside waits for. */
static const char *outside_for(const struct core *core) {
	if (core->durable.config.epoch != 0 && !core->durable.pledged) {
		return "an administrator: it was removed from the cluster. Stop it, or add it "
			"again (pawl cluster add-replica)";
	}
	for (uint32_t i = 0; i < core->config.node_count; i++) {
		if (strcmp(core->config.nodes[i].name, core->name) == 0) {
			return "an administrator: it has the name of a member, but not its state "
				"directory. pawl cluster replace NAME NAME gives it that place";
		}
	}
	return "an administrator: it was never added to the cluster. pawl cluster add-replica adds "
		"it";
}

/* Returns what a node waits for that does not vote, for its operator, as constant text. */
static const char *waits_for(const struct core *core) {
	if (proof_lacking(core) && core->durable.config.epoch == 0) {
		return "a master that its own file names: name present masters in "
			"[cluster.masters]";
	}
	if (proof_lacking(core)) {
		return "proof of a later configuration, from a majority of the masters of its own: "
			"start those again, or, if they are gone, empty its state directory, name "
			"present masters in its file and give it its place back (pawl cluster "
			"replace NAME NAME)";
	}
	switch (core->state) {
	case CORE_UNBORN:
		if (core->membership->birth_differs[0]) {
			return core->membership->birth_differs;
		}
		if (core->membership->birth_stopped) {
			return "the birth was stopped: this node's own configuration is not valid, "
				"see the log";
		}
		return core->durable.pledged
			? "the other initial masters to pledge the same configuration"
			: "the other initial masters to be heard";
	case CORE_RECOVERING:
		if (core->recovery->transfer.full) {
			return "room for what the others know (see [limits] memory and keys), or "
				"the longest lease to be over";
		}
		return core->masters > 1
			? "enough voting masters to rejoin from, or the longest lease to be over"
			: "the longest lease to be over";
	case CORE_OUTSIDE:
		return outside_for(core);
	case CORE_HANDOVER:
		if (core->recovery->transfer.full) {
			return "room for what the others know: see [limits] memory and keys";
		}
		if (state_transfer_left(core, core->now) > 0) {
			return "the longest lease to be over: masters of the previous epoch have "
				"restarted";
		}
		return "enough masters of the previous epoch to hand over what they know";
	case CORE_FOLLOWING: case CORE_VOTING: case CORE_DRAINED:
		return "";
	}
	return "";
}

static void status_replication(const struct core *core, struct instant now, struct core_status *s) {
	const struct follow *f = &core->follow;
	s->log_next = core->changes.log.next;
	s->log_oldest = core->changes.log.oldest;
	s->log_bytes = log_bytes(core);
	s->following = f->state == FOLLOW_ON ? (int)f->peer : -1;
	s->catching_up = f->building;
	s->snapshot_done = f->building ? f->records : 0;
	s->position = f->building ? f->staging_place.number : f->live.number;
	s->age = core->state == CORE_FOLLOWING ? follow_age(core, now) : SPAN_MAX;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		s->peers[i].follows = core->peers[i].feed.active;
		s->peers[i].position = core->peers[i].feed.acked;
	}
}

void core_status(const struct core *core, struct instant now, struct core_status *s) {
	*s = (struct core_status){ .state = core->state, .waits_for = waits_for(core),
		.epoch = core_born(core) ? core->config.epoch : 0, .config_hash = core->config_hash,
		.clock = core->clock, .ceiling = core->engine.ceiling_on_disk,
		.boot = core->durable.boot, .quorum = core->quorum,
		.keys = core->store.live->keys.count, .held = core->store.live->held_count,
		.promises = core->store.promise_count, .waiters = core->coordinator.waiting_count,
		.rounds = core->coordinator.op_count,
		.catch_up_count = core->coordinator.catch_up_count,
		.granted_leases = core->coordinator.granted_leases.count,
		.memory_bytes = core->memory_used, .config_nodes = core->config.node_count };
	s->master = core->self < core->masters && core->state != CORE_OUTSIDE;
	s->settled = core_born(core) && epoch_voters(core) >= core->quorum;
	s->complete = core->complete;
	s->missing = epoch_missing(core);
	s->change = (struct core_change_status){ .step = change_step_name(core),
		.epoch = core->membership->change.value.epoch };
	change_progress(core, &s->change.done, &s->change.total);
	s->left = core->state == CORE_RECOVERING ? instant_left_long(now, core->recovery->vote_at) :
		core->state == CORE_HANDOVER ? state_transfer_left(core, now) : 0;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		const struct peer *p = &core->peers[i];
		s->peers[i] = (struct core_peer_status){
			.linked = peer_reachable(core, i) || (p->up &&
				(p->standing == PEER_NON_MEMBER || !core_born(core))),
			.voting = peer_votes(core, i), .round_trip = p->round_trip,
			.boot = p->boot };
		s->peers[i].master = i < core->masters;
		s->peers[i].member = p->standing == PEER_MEMBER;
		s->peers[i].stranger = core_born(core) && p->up && p->standing == PEER_MEMBER &&
			!p->linked;
		s->peers[i].other_epoch = p->up && p->frame_came && !p->in_epoch;
		s->peers[i].epoch = p->up && p->frame_came ? p->epoch : 0;
		s->voting_linked += i < core->masters && peer_votes(core, i);
	}
	status_replication(core, now, s);
}

bool core_peek(const struct core *core, struct slice name, struct id128 lock_id, uint64_t *token,
	uint64_t *noted) {
	uint64_t hash = table_hash(core, name);
	for (struct map_node *n = map_first(&core->store.live->keys, hash); n; n = map_next(n)) {
		const struct key *key = CONTAINER_OF(n, struct key, node);
		const struct record *r = slice_equal(key_name(key), name) ? key_record(key, lock_id)
			: NULL;
		if (r && !instant_expired(core->now, r->end)) {
			*token = r->token;
			*noted = r->noted;
			return true;
		}
	}
	return false;
}

const struct core_limits *core_limits_of(const struct core *core) {
	return &core->limits;
}

const uint64_t *core_counts(const struct core *core) {
	return core->counts;
}

const char *core_count_name(enum core_count count) {
	static const char *const names[] = {
#define CORE_COUNT_NAME(name) #name,
		CORE_COUNT_TABLE(CORE_COUNT_NAME)
#undef CORE_COUNT_NAME
	};
	return (unsigned)count < COUNT_TOTAL ? names[count] : "?";
}
