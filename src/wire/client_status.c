/* The answer to `status`, both ways by the same tables. */
#include "client_status.h"

#include "pawl/error.h"

#define FACT(member, type) { #member, type, offsetof(struct client_status, member), 0 }
#define FACT_NAMED(name, member, type) { name, type, offsetof(struct client_status, member), 0 }
static const struct client_fact status_facts[] = {
	FACT(node, FACT_TEXT),
	FACT(role, FACT_TEXT),
	FACT(version, FACT_TEXT),
	FACT(cluster, FACT_TEXT),
	FACT(state, FACT_TEXT),
	FACT(waits_for, FACT_TEXT),
	FACT_NAMED("left_ms", left, FACT_MS_UP),
	FACT(epoch, FACT_U64),
	FACT(config_hash, FACT_U64),
	FACT(settled, FACT_BOOL),
	FACT(complete, FACT_BOOL),
	FACT(quorum, FACT_U32),
	FACT_NAMED("voting", voting_linked, FACT_U32),
	FACT(boot, FACT_U64),
	FACT(clock, FACT_U64),
	FACT(ceiling, FACT_U64),
	FACT(keys, FACT_U64),
	FACT(held, FACT_U64),
	FACT(promises, FACT_U64),
	FACT(waiters, FACT_U64),
	FACT(rounds, FACT_U64),
	FACT(memory_bytes, FACT_U64),
	FACT(clients, FACT_U64),
	FACT_NAMED("uptime_ms", uptime, FACT_MS),
	FACT_NAMED("max_lease_ms", max_lease, FACT_MS),
};
#define STATUS_FACTS (sizeof status_facts / sizeof status_facts[0])

#define PEER_FACT(member, type) { #member, type, offsetof(struct client_status_peer, member), 0 }
static const struct client_fact peer_facts[] = {
	PEER_FACT(node, FACT_TEXT),
	PEER_FACT(address, FACT_TEXT),
	PEER_FACT(role, FACT_TEXT),
	PEER_FACT(self, FACT_BOOL),
	PEER_FACT(linked, FACT_BOOL),
	PEER_FACT(voting, FACT_BOOL),
	{ "round_trip_us", FACT_US, offsetof(struct client_status_peer, round_trip), 0 },
};
#define PEER_FACTS (sizeof peer_facts / sizeof peer_facts[0])

static const char *status_state_name(enum core_state state) {
	switch (state) {
	case CORE_UNBORN:
		return "unconfigured";
	case CORE_OUTSIDE:
		return "outside";
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

void client_status_of_core(struct client_status *out, const struct core_status *core, const struct config *config,
	const struct client_facts *facts) {
	uint32_t masters = 0;
	out->node = slice_str(facts->node);
	out->role = slice_str(facts->role);
	out->cluster = slice_str(config->cluster);
	out->state = slice_str(status_state_name(core->state));
	out->waits_for = slice_str(core->waits_for ? core->waits_for : "");
	out->left = core->left;
	out->epoch = core->epoch;
	out->config_hash = core->config_hash;
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
	out->peer_count = facts->peer_count < NODES_MAX ? facts->peer_count : NODES_MAX;
	for (uint32_t i = 0; i < out->peer_count; i++) {
		const struct config_node *node = facts->peers[i];
		const struct core_peer_status *peer = &core->peers[i];
		masters += node->master;
		out->peers[i] = (struct client_status_peer){ slice_str(node->name), slice_str(node->address),
			slice_str(node->master ? "master" : "replica"), strcmp(node->name, facts->node) == 0, peer->linked,
			peer->voting, peer->round_trip };
	}
	out->settled = core->quorum > 0 && core->voting_linked >= core->quorum;
	out->complete = masters > 0 && core->voting_linked >= masters;
}

/* The names of all masters, resp. all replicas, as a list. */
static void status_put_names(struct pack *k, struct pack_open *map, const char *key, const char *role,
	const struct client_status *status) {
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

int client_status_encode(uint32_t msgid, const struct client_status *status, struct buffer *out) {
	struct pack k;
	pack_begin(&k, out);
	pack_array(&k, 4);
	pack_uint(&k, 1);
	pack_uint(&k, msgid);
	pack_nil(&k);
	struct pack_open map = pack_map_open(&k);
	client_fact_put_all(&k, &map, status_facts, STATUS_FACTS, status, 0);
	status_put_names(&k, &map, "masters", "master", status);
	status_put_names(&k, &map, "replicas", "replica", status);
	pack_key(&k, &map, "peers");
	pack_array(&k, status->peer_count);
	for (uint32_t i = 0; i < status->peer_count; i++) {
		struct pack_open peer = pack_map_open(&k);
		client_fact_put_all(&k, &peer, peer_facts, PEER_FACTS, &status->peers[i], 0);
		pack_map_close(&k, &peer);
	}
	pack_map_close(&k, &map);
	return pack_end(&k);
}

static void status_take_peer(struct unpack *u, struct client_status_peer *peer) {
	struct client_fact_set set = { peer_facts, PEER_FACTS, peer, NULL };
	uint32_t pairs = unpack_map(u);
	for (uint32_t i = 0; i < pairs && !u->bad; i++) {
		if (!client_fact_take(&set, unpack_bytes(u, SIZE_MAX), u)) {
			unpack_skip(u);
		}
	}
}

/* Those beyond NODES_MAX (a newer server may allow more) are left out. */
static void status_take_peers(struct unpack *u, struct client_status *out) {
	uint32_t count = unpack_array(u);
	out->peer_count = 0;
	for (uint32_t i = 0; i < count && !u->bad; i++) {
		if (i < NODES_MAX) {
			out->peers[i] = (struct client_status_peer){ 0 };
			status_take_peer(u, &out->peers[i]);
			out->peer_count++;
		} else {
			unpack_skip(u);
		}
	}
}

void client_status_take(struct unpack *u, struct slice name, struct client_status *out) {
	struct client_fact_set set = { status_facts, STATUS_FACTS, out, NULL };
	if (client_fact_take(&set, name, u)) {
		return;
	}
	if (slice_equal(name, slice_str("peers"))) {
		status_take_peers(u, out);
	} else {
		unpack_skip(u);
	}
}
