/* peers.c: links to the other nodes: frames in, pings, the voting flag, and links that are reset (section 9). */
#include "peers.h"

bool peer_reachable(const struct core *core, uint32_t index) {
	return index == core->self ? !core->engine.self_lost : core->peers[index].linked;
}

bool peer_votes(const struct core *core, uint32_t index) {
	return index == core->self ? core_votes(core) && !core->engine.self_lost : core->peers[index].linked && core->peers[index].voting;
}

bool peers_listen(const struct core *core) {
	bool listen = core->peers[core->self].standing == PEER_MEMBER;
	for (uint32_t i = 0; i < core->config.before_count; i++) {
		listen = listen || id128_equal(core->config.before[i].id, core->durable.node_id);
	}
	return listen;
}

/* The longest round trip among the masters that answer: what a pause between rivals is measured by. */
static span_ns peers_round_trip(const struct core *core) {
	span_ns longest = SPAN_MS;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct peer *p = &core->peers[i];
		longest = p->linked && p->round_trip > longest ? p->round_trip : longest;
	}
	return longest;
}

/* The longest pause of one who was refused by a rival: two round trips, doubled so many times, at most promise_timeout / 4. */
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
}

void peers_tell(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up) {
			peer_ping_send(core, i);
		}
	}
}

/* Whether the node at the other end is the one of the configuration. Before birth identities are only being heard. */
static void identify(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (p->standing == PEER_NON_MEMBER || !core_born(core)) {
		p->node.id = p->link_id;
	} else if (id128_equal(p->node.id, p->link_id)) {
		p->linked = true;
	} else {
		out_note(core, NOTE_BIRTH_STRANGER, peer, 0, "its identity is not the one of the configuration", slice_of(NULL, 0));
	}
}

void peer_up(struct core *core, uint32_t peer, const struct core_event *e) {
	struct peer *p = &core->peers[peer];
	peer_down(core, peer, false);
	if (peer == core->self) {
		return;
	}
	out_peer_gone(core, peer); /* what was to be reset is the link before this one */
	p->up = true;
	p->no_master = e->peer_no_master;
	p->no_master_told = false;
	p->boot = e->peer_boot;
	p->clock = 0;
	core->observers->link_comes(core, peer, e->peer_id, e->peer_boot);
	p->link_id = e->peer_id;
	p->up_since = core->now;
	p->told = 0;
	identify(core, peer);
	core->observers->link_up(core, peer);
}

void peer_down(struct core *core, uint32_t peer, bool closed) {
	struct peer *p = &core->peers[peer];
	if (!p->up) {
		return;
	}
	core->observers->link_ends(core, peer);
	p->up = p->linked = p->voting = p->present = p->same = p->heard = p->ping_out = p->far_ahead = p->wrong_noted = p->complete = false;
	p->round_trip = 0;
	p->stopped++;
	p->decree.kind = (enum message_kind)0;
	out_drop_peer(core, peer);
	core->observers->link_lost(core, peer, closed);
	peer_table_non_member_lost(core, peer);
}

static void reset(struct core *core, uint32_t peer) {
	COUNT(core, link_reset);
	out_note(core, NOTE_LINK_RESET, peer, 0, NULL, slice_of(NULL, 0));
	peer_down(core, peer, false);
	out_reset(core, peer);
}

/* A message to itself could not be queued: as if there were a link to itself and it were lost. Promises, kept requests and entries of queues
 * that it made here are dropped, and what it had asked itself has no answer. The link is back with the next beat: not at once,
 * because what is entered again needs memory, too. */
static void lose_self(struct core *core) {
	COUNT(core, self_lost);
	core->engine.self_lost = true;
	core->observers->self_lost(core);
}

void peers_self_again(struct core *core) {
	if (core->engine.self_lost) {
		core->engine.self_lost = false;
		core->observers->self_again(core);
	}
}

void peers_lose_failed(struct core *core) {
	const uint32_t peer = (uint32_t)__builtin_ctzll(core->engine.failed);
	core->engine.failed &= core->engine.failed - 1;
	if (peer == core->self) {
		lose_self(core);
	} else if (core->peers[peer].up) {
		reset(core, peer);
	}
}

void peer_ping(struct core *core, uint32_t peer, const struct message *m) {
	struct message pong = { .kind = MESSAGE_PONG, .round = m->round, .lease_us = (uint64_t)(pace_own(core) / SPAN_US) };
	out_send(core, peer, &pong);
}

void peer_pong(struct core *core, uint32_t peer, const struct message *m) {
	struct peer *p = &core->peers[peer];
	if (p->ping_out && m->round == p->ping_round) {
		p->ping_out = false;
		p->round_trip = instant_elapsed_long(core->now, p->ping_sent);
		pace_measured(core, peer, p->round_trip);
		pace_told(core, peer, m->lease_us);
	}
}

/* A link without an answer for request_timeout is reset. */
void peers_beat(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		struct peer *p = &core->peers[i];
		if (!p->up) {
			continue;
		}
		if (p->ping_out && instant_elapsed_long(core->now, p->ping_sent) > core->config.request_timeout) {
			reset(core, i);
		} else if (!p->ping_out) {
			peer_ping_send(core, i);
		}
	}
}

/* The loop stood still: what waits unread in the links is old and must not come to life. */
void peers_reset_all(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (core->peers[i].up) {
			reset(core, i);
		}
	}
}
