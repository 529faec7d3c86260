/* client_status.c: encodes and decodes the answer to `status` by the same tables. */
#include "client_status.h"

#include "pawl/error.h"

#define FIELD(member, type) { #member, type, offsetof(struct client_status, member), 0 }
#define FIELD_NAMED(name, member, type) { name, type, offsetof(struct client_status, member), 0 }
static const struct client_field status_fields[] = {
	FIELD(node, FIELD_TEXT),
	FIELD(role, FIELD_TEXT),
	FIELD(version, FIELD_TEXT),
	FIELD(rights, FIELD_TEXT),
	FIELD(cluster, FIELD_TEXT),
	FIELD(state, FIELD_TEXT),
	FIELD(waits_for, FIELD_TEXT),
	FIELD(ready, FIELD_BOOL),
	FIELD(not_ready, FIELD_TEXT),
	FIELD(audit_trouble, FIELD_TEXT),
	FIELD_NAMED("left_ms", left, FIELD_MS_UP),
	FIELD(epoch, FIELD_U64),
	FIELD(config_hash, FIELD_U64),
	FIELD(settled, FIELD_BOOL),
	FIELD(complete, FIELD_BOOL),
	FIELD(quorum, FIELD_U32),
	FIELD_NAMED("voting", voting_linked, FIELD_U32),
	FIELD(boot, FIELD_U64),
	FIELD(clock, FIELD_U64),
	FIELD(ceiling, FIELD_U64),
	FIELD(keys, FIELD_U64),
	FIELD(held, FIELD_U64),
	FIELD(promises, FIELD_U64),
	FIELD(waiters, FIELD_U64),
	FIELD(rounds, FIELD_U64),
	FIELD(memory_bytes, FIELD_U64),
	FIELD(clients, FIELD_U64),
	FIELD(handshakes, FIELD_U64),
	FIELD(handshakes_evicted, FIELD_U64),
	FIELD(handshakes_refused, FIELD_U64),
	FIELD(quota_refused, FIELD_U64),
	FIELD(watches, FIELD_U64),
	FIELD(events, FIELD_U64),
	FIELD_NAMED("uptime_ms", uptime, FIELD_MS),
	FIELD_NAMED("max_lease_ms", max_lease, FIELD_MS),
	FIELD_NAMED("request_timeout_ms", request_timeout, FIELD_MS),
	FIELD_NAMED("promise_timeout_ms", promise_timeout, FIELD_MS),
	FIELD_NAMED("clock_drift_ppm", drift_ppm, FIELD_U32),
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The fields of the maps inside the result. */
static const struct client_field replication_fields[] = {
	FIELD(log_next, FIELD_U64),
	FIELD(log_oldest, FIELD_U64),
	FIELD(log_bytes, FIELD_U64),
};
static const struct client_field following_fields[] = {
	FIELD_NAMED("node", following.node, FIELD_TEXT),
	FIELD_NAMED("catching_up", following.catching_up, FIELD_BOOL),
	FIELD_NAMED("snapshot_done", following.snapshot_done, FIELD_U64),
	FIELD_NAMED("position", following.position, FIELD_U64),
};
static const struct client_field age_field = FIELD_NAMED("age_ms", following.age, FIELD_MS_UP);
static const struct client_field change_fields[] = {
	FIELD_NAMED("step", change.step, FIELD_TEXT),
	FIELD_NAMED("done", change.done, FIELD_U64),
	FIELD_NAMED("total", change.total, FIELD_U64),
	FIELD_NAMED("epoch", change.epoch, FIELD_U64),
};

#define PEER_FIELD(member, type) { #member, type, offsetof(struct client_status_peer, member), 0 }
static const struct client_field peer_fields[] = {
	PEER_FIELD(node, FIELD_TEXT),
	PEER_FIELD(address, FIELD_TEXT),
	PEER_FIELD(role, FIELD_TEXT),
	PEER_FIELD(self, FIELD_BOOL),
	PEER_FIELD(linked, FIELD_BOOL),
	PEER_FIELD(voting, FIELD_BOOL),
	PEER_FIELD(stranger, FIELD_BOOL),
	PEER_FIELD(other_epoch, FIELD_BOOL),
	PEER_FIELD(epoch, FIELD_U64),
	{ "round_trip_us", FIELD_US, offsetof(struct client_status_peer, round_trip), 0 },
	PEER_FIELD(follows, FIELD_BOOL),
};
/* The fields of a peer that follows the node. */
static const struct client_field follower_fields[] = {
	PEER_FIELD(position, FIELD_U64),
	PEER_FIELD(lag, FIELD_U64),
};
/* The fields of a peer whose certificate is known. */
static const struct client_field certificate_fields[] = {
	PEER_FIELD(serial, FIELD_TEXT),
	PEER_FIELD(certificate_ends, FIELD_U64),
	PEER_FIELD(certificate_role, FIELD_TEXT),
};

/* The field of a peer whose access rules are known. */
static const struct client_field rights_fields[] = {
	PEER_FIELD(rights, FIELD_TEXT),
};

/* The field of a peer whose release is known. */
static const struct client_field version_fields[] = {
	PEER_FIELD(version, FIELD_TEXT),
};

/* The field of a peer with which there is no link. */
static const struct client_field trouble_fields[] = {
	PEER_FIELD(trouble, FIELD_TEXT),
};

#define LIMIT_FIELD(member, type) { #member, type, offsetof(struct client_status_limit, member), 0 }
static const struct client_field limit_fields[] = {
	LIMIT_FIELD(name, FIELD_TEXT),
	LIMIT_FIELD(used, FIELD_U64),
	LIMIT_FIELD(limit, FIELD_U64),
	LIMIT_FIELD(reached, FIELD_BOOL),
};
/* The fields of a limit of which somebody is known to have most. */
static const struct client_field whose_fields[] = {
	LIMIT_FIELD(most, FIELD_U64),
	LIMIT_FIELD(whose, FIELD_TEXT),
};

static const char *status_state_name(enum core_state state) {
	switch (state) {
	case CORE_UNBORN: case CORE_OUTSIDE:
		/* Programs read this name, which stays. `waits_for` says which of the two it is. */
		return "unconfigured";
	case CORE_FOLLOWING:
		return "following";
	case CORE_HANDOVER:
		return "handover";
	case CORE_RECOVERING:
		return "recovering";
	case CORE_VOTING:
		return "voting";
	case CORE_DRAINED:
		return "drained";
	}
	return "unknown";
}

static void status_of_peer(struct client_status_peer *out, const struct core_status *core,
	uint32_t at, const struct client_context *context) {
	const struct config_node *node = context->peers[at];
	const struct core_peer_status *peer = &core->peers[at];
	*out = (struct client_status_peer){
		.node = slice_str(node->name),
		.address = slice_str(node->address),
		.linked = peer->linked,
		.voting = peer->voting,
		.stranger = peer->stranger,
		.other_epoch = peer->other_epoch,
		.epoch = peer->epoch,
		.round_trip = peer->round_trip
	};
	out->role = slice_str(!peer->member ? "outside" : peer->master ? "master" : "replica");
	out->self = strcmp(node->name, context->node) == 0;
	if (peer->follows) {
		out->follows = true;
		out->position = peer->position;
		out->lag = core->log_next > peer->position ? core->log_next - peer->position : 0;
	}
}

static void status_of_peers(struct client_status *out, const struct core_status *core,
	const struct client_context *context) {
	out->role = slice_str(context->role);
	out->peer_count = context->peer_count < NODES_MAX ? context->peer_count : NODES_MAX;
	for (uint32_t i = 0; i < out->peer_count; i++) {
		status_of_peer(&out->peers[i], core, i, context);
		if (out->peers[i].self) {
			out->role = out->peers[i].role;
		}
		if (core->missing >> i & 1 && out->missing_count < MASTERS_MAX) {
			out->missing[out->missing_count++] = out->peers[i].node;
		}
	}
}

static void status_of_replication(struct client_status *out, const struct core_status *core) {
	out->log_next = core->log_next;
	out->log_oldest = core->log_oldest;
	out->log_bytes = core->log_bytes;
	out->replica = core->state == CORE_FOLLOWING;
	if (out->replica) {
		bool follows = core->following >= 0 && (uint32_t)core->following < out->peer_count;
		out->following = (struct client_status_following){ follows
				? out->peers[core->following].node
				: slice_str(""),
			core->catching_up, core->snapshot_done, core->position, core->age };
	}
}

void client_status_of_core(struct client_status *out, const struct core_status *core,
	const struct config *config, const struct client_context *context) {
	out->node = slice_str(context->node);
	out->cluster = slice_str(config->cluster);
	out->state = slice_str(status_state_name(core->state));
	out->waits_for = slice_str(core->waits_for ? core->waits_for : "");
	out->left = core->left;
	out->epoch = core->epoch;
	out->config_hash = core->config_hash;
	out->settled = core->settled;
	out->complete = core->complete;
	out->quorum = core->quorum;
	out->voting_linked = core->voting_linked;
	out->boot = core->boot;
	out->clock = core->clock;
	out->ceiling = core->ceiling;
	out->keys = core->keys;
	out->held = core->held;
	out->promises = core->promises;
	out->waiters = core->waiters;
	out->rounds = core->rounds;
	out->memory_bytes = core->memory_bytes;
	out->max_lease = config->max_lease;
	out->request_timeout = config->request_timeout;
	out->promise_timeout = config->promise_timeout;
	out->drift_ppm = config->drift_ppm;
	out->missing_count = 0;
	out->change = (struct client_status_change){
		slice_str(core->change.step ? core->change.step : ""),
		core->change.done, core->change.total, core->change.epoch
	};
	status_of_peers(out, core, context);
	status_of_replication(out, core);
}

/* ---- writing ---- */

/* Writes a list of the names of the peers that have that role. */
static void status_put_names(struct pack *k, struct pack_open *map, const char *key,
	const char *role, const struct client_status *status) {
	pack_key(k, map, key);
	struct pack_open names = pack_array_open(k);
	for (uint32_t i = 0; i < status->peer_count; i++) {
		if (slice_equal(status->peers[i].role, slice_str(role))) {
			pack_item(&names);
			pack_str(k, status->peers[i].node);
		}
	}
	pack_array_close(k, &names);
}

static void status_put_missing(struct pack *k, struct pack_open *map,
	const struct client_status *status) {
	pack_key(k, map, "missing");
	pack_array(k, status->missing_count);
	for (uint32_t i = 0; i < status->missing_count; i++) {
		pack_str(k, status->missing[i]);
	}
}

static void status_put_peer(struct pack *k, const struct client_status_peer *peer) {
	struct pack_open map = pack_map_open(k);
	client_field_put_all(k, &map, peer_fields, COUNT(peer_fields), peer, 0);
	if (peer->follows) {
		client_field_put_all(k, &map, follower_fields, COUNT(follower_fields), peer, 0);
	}
	if (peer->serial.size > 0) {
		client_field_put_all(k, &map, certificate_fields, COUNT(certificate_fields), peer,
			0);
	}
	if (peer->rights.size > 0) {
		client_field_put_all(k, &map, rights_fields, COUNT(rights_fields), peer, 0);
	}
	if (peer->version.size > 0) {
		client_field_put_all(k, &map, version_fields, COUNT(version_fields), peer, 0);
	}
	if (peer->trouble.size > 0) {
		client_field_put_all(k, &map, trouble_fields, COUNT(trouble_fields), peer, 0);
	}
	pack_map_close(k, &map);
}

static void status_put_following(struct pack *k, struct pack_open *map,
	const struct client_status *status) {
	pack_key(k, map, "following");
	if (!status->replica) {
		pack_nil(k);
		return;
	}
	struct pack_open inner = pack_map_open(k);
	client_field_put_all(k, &inner, following_fields, COUNT(following_fields), status, 0);
	if (status->following.age < SPAN_MAX) {
		client_field_put(k, &inner, &age_field, status);
	} else {
		pack_key(k, &inner, "age_ms");
		pack_nil(k);
	}
	pack_map_close(k, &inner);
}

static void status_put_change(struct pack *k, struct pack_open *map,
	const struct client_status *status) {
	pack_key(k, map, "change");
	if (status->change.step.size == 0) {
		pack_nil(k);
		return;
	}
	struct pack_open inner = pack_map_open(k);
	client_field_put_all(k, &inner, change_fields, COUNT(change_fields), status, 0);
	pack_map_close(k, &inner);
}

static void status_put_limits(struct pack *k, struct pack_open *map,
	const struct client_status *status) {
	pack_key(k, map, "limits");
	pack_array(k, status->limit_count);
	for (uint32_t i = 0; i < status->limit_count; i++) {
		const struct client_status_limit *limit = &status->limits[i];
		struct pack_open inner = pack_map_open(k);
		client_field_put_all(k, &inner, limit_fields, COUNT(limit_fields), limit, 0);
		if (limit->most > 0) {
			client_field_put_all(k, &inner, whose_fields, COUNT(whose_fields), limit,
				0);
		}
		pack_map_close(k, &inner);
	}
}

int client_status_encode(uint32_t msgid, const struct client_status *status, struct buffer *out) {
	struct pack k;
	pack_begin(&k, out);
	pack_array(&k, 4);
	pack_uint(&k, 1);
	pack_uint(&k, msgid);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k), inner;
	client_field_put_all(&k, &map, status_fields, COUNT(status_fields), status, 0);
	status_put_names(&k, &map, "masters", "master", status);
	status_put_names(&k, &map, "replicas", "replica", status);
	status_put_missing(&k, &map, status);
	pack_key(&k, &map, "peers");
	pack_array(&k, status->peer_count);
	for (uint32_t i = 0; i < status->peer_count; i++) {
		status_put_peer(&k, &status->peers[i]);
	}
	pack_key(&k, &map, "replication");
	inner = pack_map_open(&k);
	client_field_put_all(&k, &inner, replication_fields, COUNT(replication_fields), status, 0);
	pack_map_close(&k, &inner);
	status_put_following(&k, &map, status);
	status_put_limits(&k, &map, status);
	status_put_change(&k, &map, status);
	pack_map_close(&k, &map);
	return pack_end(&k);
}

/* ---- reading ---- */

/* Reads a map. Each pair goes to the first set that has a field of its name. */
static void status_take_map(struct unpack *u, const struct client_field_set *sets, size_t count) {
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		bool taken = false;
		for (size_t k = 0; k < count && !taken; k++) {
			taken = client_field_take(&sets[k], name, u);
		}
		if (!taken) {
			unpack_skip(u);
		}
	}
}

static void status_take_peer(struct unpack *u, struct client_status_peer *peer) {
	const struct client_field_set sets[] = { { peer_fields, COUNT(peer_fields), peer, NULL },
		{ follower_fields, COUNT(follower_fields), peer, NULL },
		{ certificate_fields, COUNT(certificate_fields), peer, NULL },
		{ rights_fields, COUNT(rights_fields), peer, NULL },
		{ version_fields, COUNT(version_fields), peer, NULL },
		{ trouble_fields, COUNT(trouble_fields), peer, NULL } };
	*peer = (struct client_status_peer){ 0 };
	status_take_map(u, sets, COUNT(sets));
}

/* Peers beyond NODES_MAX are left out; a newer server may allow more. */
static void status_take_peers(struct unpack *u, struct client_status *out) {
	uint32_t count = unpack_array(u);
	out->peer_count = 0;
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		if (i < NODES_MAX) {
			status_take_peer(u, &out->peers[i]);
			out->peer_count++;
		} else {
			unpack_skip(u);
		}
	}
}

static void status_take_missing(struct unpack *u, struct client_status *out) {
	uint32_t count = unpack_array(u);
	out->missing_count = 0;
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		struct slice name = unpack_bytes(u, SIZE_MAX);
		if (out->missing_count < MASTERS_MAX) {
			out->missing[out->missing_count++] = name;
		}
	}
}

/* Limits beyond CLIENT_STATUS_LIMITS_MAX are left out; a newer server may have more. */
static void status_take_limits(struct unpack *u, struct client_status *out) {
	uint32_t count = unpack_array(u);
	out->limit_count = 0;
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		if (i >= CLIENT_STATUS_LIMITS_MAX) {
			unpack_skip(u);
			continue;
		}
		struct client_status_limit *limit = &out->limits[out->limit_count++];
		const struct client_field_set sets[] = {
			{ limit_fields, COUNT(limit_fields), limit, NULL },
			{ whose_fields, COUNT(whose_fields), limit, NULL } };
		*limit = (struct client_status_limit){ 0 };
		status_take_map(u, sets, COUNT(sets));
	}
}

/* Reads a map inside the result. Returns false if it is nil. */
static bool status_take_inner(struct unpack *u, const struct client_field *fields, size_t count,
	struct client_status *out) {
	const struct client_field_set sets[] = { { fields, count, out, NULL },
		{ &age_field, fields == following_fields, out, NULL } };
	if (unpack_nil(u)) {
		return false;
	}
	status_take_map(u, sets, COUNT(sets));
	return true;
}

void client_status_take(struct unpack *u, struct slice name, struct client_status *out) {
	struct client_field_set set = { status_fields, COUNT(status_fields), out, NULL };
	if (client_field_take(&set, name, u)) {
		return;
	}
	if (slice_equal(name, slice_str("peers"))) {
		status_take_peers(u, out);
	} else if (slice_equal(name, slice_str("limits"))) {
		status_take_limits(u, out);
	} else if (slice_equal(name, slice_str("missing"))) {
		status_take_missing(u, out);
	} else if (slice_equal(name, slice_str("replication"))) {
		status_take_inner(u, replication_fields, COUNT(replication_fields), out);
	} else if (slice_equal(name, slice_str("following"))) {
		out->following.age = SPAN_MAX;
		out->replica = status_take_inner(u, following_fields, COUNT(following_fields), out);
	} else if (slice_equal(name, slice_str("change"))) {
		status_take_inner(u, change_fields, COUNT(change_fields), out);
	} else {
		unpack_skip(u);
	}
}
