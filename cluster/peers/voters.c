/* voters.c: what this node knows of the masters of its epoch: who votes, and who may say what. */
#include "peers.h"

bool proof_master(const struct core *core, uint32_t from) {
	return from < core->masters && (from == core->self || core->peers[from].linked);
}

/* The name of a link is what its certificate says. An identity that a configuration gives to
 * another name is not believed. */
bool proof_identity(const struct core *core, uint32_t from) {
	const struct peer *p = &core->peers[from];
	if (p->linked || from == core->self || !core_born(core)) {
		return true;
	}
	bool taken = config_find_id(&core->config, p->link_id) >= 0;
	for (uint32_t i = 0; i < core->config.previous_master_count; i++) {
		taken = taken || id128_equal(core->config.previous_masters[i].id, p->link_id);
	}
	return !taken;
}

uint32_t epoch_voters(const struct core *core) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		n += peer_votes(core, i);
	}
	return n;
}

bool epoch_fresh(const struct core *core) {
	return core->config.epoch > 1 && !instant_expired(core->now,
		instant_add(core->adopted_at, core->config.request_timeout));
}

bool epoch_passes(const struct core *core) {
	bool ahead = false;
	for (uint32_t i = 0; i < core->masters; i++) {
		ahead = ahead || (core->peers[i].linked &&
			core->peers[i].epoch > core->config.epoch);
	}
	return ahead || epoch_fresh(core);
}

uint64_t epoch_missing(const struct core *core) {
	uint64_t missing = 0;
	for (uint32_t i = 0; i < core->masters; i++) {
		missing |= (uint64_t)!peer_votes(core, i) << i;
	}
	return missing;
}

bool epoch_source_needed(const struct core *core) {
	return core->remembers && !core->complete && !instant_expired(core->now, core->forget_at);
}

/* Of a quorum of masters, at least one says a right clock (section 9). So the least of their clocks
 * is no higher than a right one. */
uint64_t peers_quorum_says(const struct core *core) {
	uint32_t ahead = 0;
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct peer *p = &core->peers[i];
		ahead += p->far_ahead;
		least = p->far_ahead && p->said_clock < least ? p->said_clock : least;
	}
	return ahead >= core->quorum ? least : 0;
}
