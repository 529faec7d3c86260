/* peers.c: links to the other nodes: coming up and going down, pings, and links that are reset
 * (section 9). */
#include "peers.h"

bool peer_reachable(const struct core *core, uint32_t index) {
	return index == core->self ? out_hears_self(core) : core->peers[index].linked;
}

bool peer_votes(const struct core *core, uint32_t index) {
	return index == core->self ? core_votes(core) && out_hears_self(core)
		: core->peers[index].linked && core->peers[index].voting;
}

bool peers_listen(const struct core *core) {
	bool listen = core->peers[core->self].standing == PEER_MEMBER;
	for (uint32_t i = 0; i < core->config.previous_master_count; i++) {
		listen = listen ||
			id128_equal(core->config.previous_masters[i].id, core->durable.node_id);
	}
	return listen;
}

/* Returns the longest round trip of a linked master, in nanoseconds and at least a millisecond.
 * Pauses between rivals are measured by it. */
static span_ns peers_round_trip(const struct core *core) {
	span_ns longest = SPAN_MS;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct peer *p = &core->peers[i];
		longest = p->linked && p->round_trip > longest ? p->round_trip : longest;
	}
	return longest;
}

span_ns peers_pause_most(const struct core *core, uint32_t doubled) {
	span_ns cap = core->config.promise_timeout / 4, most = 2 * peers_round_trip(core);
	for (uint32_t i = 0; i < doubled && most < cap; i++) {
		most *= 2;
	}
	return most < cap ? most : cap;
}

void peer_ping_send(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (!p->ping_out) {
		p->ping_out = true;
		p->ping_sent = core->now;
		p->ping_round++;
	}
	struct message m = { .kind = MESSAGE_PING, .round = p->ping_round };
	out_send(core, peer, &m);
	peer_expect(core, peer, ~p->ping_round);
}

void peers_tell(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up) {
			peer_ping_send(core, i);
		}
	}
}

/* Tells whether the node at the other end is the one of the configuration. Before birth identities
 * are only being heard. */
static void identify(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (p->standing == PEER_NON_MEMBER || !core_born(core)) {
		p->node.id = p->link_id;
	} else if (id128_equal(p->node.id, p->link_id)) {
		p->linked = true;
	} else {
		out_note(core, NOTE_BIRTH_STRANGER, peer, 0,
			"its identity is not the one of the configuration", slice_of(NULL, 0));
	}
}

void peer_up(struct core *core, uint32_t peer, const struct core_event *e) {
	struct peer *p = &core->peers[peer];
	peer_down(core, peer, false);
	if (peer == core->self) {
		return;
	}
	/* What was to be reset is the link before this one. */
	out_peer_gone(core, peer);
	p->up = true;
	p->no_master = e->peer_no_master;
	p->no_master_told = false;
	p->boot = e->peer_boot;
	p->clock = 0;
	core->observers->link_comes(core, peer, e->peer_id, e->peer_boot);
	p->link_id = e->peer_id;
	p->up_since = core->now;
	p->config_told = 0;
	identify(core, peer);
	core->observers->link_up(core, peer);
}

void peer_down(struct core *core, uint32_t peer, bool closed) {
	struct peer *p = &core->peers[peer];
	if (!p->up) {
		return;
	}
	core->observers->link_ends(core, peer);
	p->up = p->linked = p->voting = p->epoch_frame = p->in_epoch = p->frame_came = p->ping_out =
		p->far_ahead = p->wrong_noted = p->complete = false;
	peer_suspect_end(core, peer);
	p->slow_ping = false;
	p->round_trip = 0;
	p->stopped++;
	p->decree.kind = (enum message_kind)0;
	out_drop_peer(core, peer);
	core->observers->link_lost(core, peer, closed);
	peer_table_non_member_lost(core);
}

static void reset(struct core *core, uint32_t peer) {
	COUNT(core, link_reset);
	out_note(core, NOTE_LINK_RESET, peer, 0, NULL, slice_of(NULL, 0));
	peer_down(core, peer, false);
	out_reset(core, peer);
}

/* A message of this node to itself could not be queued. It is as if there were a link to itself and
 * that were lost: promises, parked requests and queue entries that the node made here are dropped,
 * and what it had asked itself has no answer. The link is back with the next beat, and not at once,
 * because what is entered again needs memory, too. */
static void lose_self(struct core *core) {
	COUNT(core, self_lost);
	out_lose_self(core);
	core->observers->self_lost(core);
}

void peers_lose_failed(struct core *core) {
	const uint32_t peer = out_take_failed(core);
	if (peer == core->self) {
		lose_self(core);
	} else if (core->peers[peer].up) {
		reset(core, peer);
	}
}

void peer_ping(struct core *core, uint32_t peer, const struct message *m) {
	struct message pong = { .kind = MESSAGE_PONG, .round = m->round,
		.lease_us = (uint64_t)(pace_own(core) / SPAN_US) };
	out_send(core, peer, &pong);
	if (m->round == PING_TELLS_SILENCE) {
		peers_silence_told(core, peer);
	}
}

void peer_pong(struct core *core, uint32_t peer, const struct message *m) {
	struct peer *p = &core->peers[peer];
	peer_answered(core, peer, ~m->round);
	if (p->ping_out && m->round == p->ping_round) {
		p->ping_out = false;
		const span_ns took = instant_elapsed_long(core->now, p->ping_sent);
		p->round_trip = p->slow_ping ? p->round_trip : took;
		pace_measured(core, peer, took, m->lease_us);
		peer_silence_measured(core, peer);
	}
}

void peers_beat(struct core *core) {
	if (!out_hears_self(core)) {
		out_find_self(core);
		core->observers->self_again(core);
	}
	for (uint32_t i = 0; i < core->peer_count; i++) {
		struct peer *p = &core->peers[i];
		p->changes -= p->changes > 0;
		if (!p->up) {
			continue;
		}
		if (p->ping_out && instant_elapsed_long(core->now, p->ping_sent) >
			core->config.request_timeout) {
			reset(core, i);
		} else if (!p->ping_out) {
			peer_ping_send(core, i);
		}
	}
}

void peers_reset_all(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up) {
			reset(core, i);
		}
	}
}

/* ---- who votes, and who may say what ---- */

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
