/* peers.c: links to the other nodes: frames in, pings, the voting flag, and links that are reset (section 9). */
#include "state.h"

bool peer_reachable(const struct core *core, uint32_t slot) {
	return slot == core->self ? !core->self_lost : core->peers[slot].linked;
}

bool peer_votes(const struct core *core, uint32_t slot) {
	return slot == core->self ? core_votes(core) && !core->self_lost : core->peers[slot].linked && core->peers[slot].voting;
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

static void ping(struct core *core, uint32_t peer) {
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
			ping(core, i);
		}
	}
}

/* Whether the node at the other end is the one of the configuration. Before birth identities are only being heard. */
static void identify(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (p->standing == PEER_GUEST || !core_born(core)) {
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
	counted_peer_up(core, peer, e->peer_id, e->peer_boot);
	p->link_id = e->peer_id;
	p->up_since = core->now;
	p->told = 0;
	identify(core, peer);
	bond_master_peer_up(core, peer);
	birth_peer_up(core, peer);
	ping(core, peer);
	change_peer_up(core);
}

void peer_down(struct core *core, uint32_t peer, bool closed) {
	struct peer *p = &core->peers[peer];
	if (!p->up) {
		return;
	}
	bond_master_peer_lost(core, peer, false);
	p->up = p->linked = p->voting = p->same = p->heard = p->ping_out = p->far_ahead = p->wrong_noted = p->complete = false;
	p->round_trip = 0;
	p->stopped++;
	p->decree.kind = (enum message_kind)0;
	proof_peer_lost(core, peer);
	out_drop_peer(core, peer);
	snapshot_stop(core, peer);
	feed_stop(core, peer);
	follow_peer_lost(core, peer);
	queue_peer_lost(core, peer);
	gather_peer_lost(core, peer);
	op_peer_lost(core, peer, closed);
	attempt_rehome_all(core);
	slots_guest_lost(core, peer);
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
	core->self_lost = true;
	queue_peer_lost(core, core->self);
	op_peer_lost(core, core->self, false);
	attempt_rehome_all(core);
}

void peers_self_again(struct core *core) {
	if (core->self_lost) {
		core->self_lost = false;
		counted_self_again(core);
		op_peer_changed(core, core->self);
		epoch_peer_changed(core);
	}
}

void peers_lose_failed(struct core *core) {
	const uint32_t peer = (uint32_t)__builtin_ctzll(core->failed);
	core->failed &= core->failed - 1;
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
			ping(core, i);
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

/* Section 9: the least of the clocks that masters far ahead say, of all who vote with a quorum of them: at least one of those is right. 0: fewer. */
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

/* A rejoin gives the margin anew, to this node as well as above what its sources say. So one for this reason is not the next one's: else a liar would
 * drive two others away from each other in turn. What is refused meanwhile is followed at the pace of time. */
static bool may_follow_quorum(const struct core *core, uint64_t says) {
	return says > 0 && (says <= core->clock + CLOCK_JUMP_MAX || core->behind_at.boot == 0 ||
		instant_elapsed_short(core->now, core->behind_at) >= BEHIND_AGAIN);
}

/* A quorum of masters is ahead: this node follows them, and begins anew where that is too far to be so by what it missed. */
static void follow_quorum(struct core *core, uint32_t peer, uint64_t says) {
	if (says <= core->clock + CLOCK_JUMP_MAX) {
		COUNT(core, clock_followed);
		clock_limit_raise(core, says);
	} else {
		COUNT(core, clock_behind);
		core->behind_at = core->now;
		out_note(core, NOTE_CLOCK_BEHIND, peer, core->peers[peer].said_clock, NULL, slice_of(NULL, 0));
		recovery_again(core);
	}
}

/* Section 9: true if the frame may be handled. */
static bool clock_bound(struct core *core, uint32_t peer, const struct frame *frame) {
	struct peer *p = &core->peers[peer];
	bool was = p->far_ahead;
	p->far_ahead = frame->clock > clock_most(core);
	if (p->far_ahead) {
		p->far_since = was ? p->far_since : core->now;
		p->far_clock = was && p->far_clock < frame->clock ? p->far_clock : frame->clock;
	}
	if (!p->far_ahead || !core_votes(core)) {
		p->refused = false;
		return true;
	}
	p->refused_since = p->refused ? p->refused_since : core->now; /* links without an answer do not last */
	p->refused = true;
	const uint64_t says = peers_quorum_says(core);
	if (may_follow_quorum(core, says)) {
		follow_quorum(core, peer, says);
		p->far_ahead = frame->clock > clock_most(core);
	} else if (frame->clock <= clock_most_since(core, p->refused_since)) {
		COUNT(core, clock_followed);
		clock_limit_raise(core, frame->clock);
		p->far_ahead = false;
	}
	if (!p->far_ahead) {
		return true;
	}
	COUNT(core, clock_refused);
	if (!was) {
		out_note(core, NOTE_CLOCK_REFUSED, peer, frame->clock, NULL, slice_of(NULL, 0));
	}
	return false;
}

/* A master of the epoch before that is not in this one goes on with what it was asked for; what others hold is told to members only. */
static bool may_say(const struct core *core, uint32_t peer, const struct message *m) {
	static const message_set looks = MESSAGE_BIT(MESSAGE_READ) | MESSAGE_BIT(MESSAGE_WAITERS) | MESSAGE_BIT(MESSAGE_FOLLOW) |
		MESSAGE_BIT(MESSAGE_SYNC_ROOT) | MESSAGE_BIT(MESSAGE_SYNC_GROUPS) | MESSAGE_BIT(MESSAGE_SYNC_ASK) | MESSAGE_BIT(MESSAGE_SYNC_LEAVES) |
		MESSAGE_BIT(MESSAGE_SYNC_KEYS) | MESSAGE_BIT(MESSAGE_SYNC_FETCH);
	const struct peer *p = &core->peers[peer];
	return p->same && (p->standing == PEER_MEMBER || (p->standing == PEER_FORMER && !(looks & MESSAGE_BIT(m->kind))));
}

/* A node that is in the configuration no more gives back under its name what it has asked for (section 6, Nodes that are not in). */
static bool guest_gives_back(const struct core *core, uint32_t peer, const struct frame *frame, const struct message *m) {
	const bool present = core_born(core) && frame->epoch == core->config.epoch && frame->config_hash == core->config_hash;
	return present && core->peers[peer].standing == PEER_GUEST && m->kind == MESSAGE_RELEASE && m->attempt != 0 && m->number == 0;
}

static void handle_messages(struct core *core, uint32_t peer, const struct frame *frame, bool same) {
	struct id128 from = core->peers[peer].link_id;
	for (size_t i = 0; i < frame->count; i++) {
		const struct message *m = &frame->messages[i];
		if (!core->peers[peer].up || !id128_equal(core->peers[peer].link_id, from)) {
			int at = slots_find_id(core, from); /* a message before this one changed the table of peers, or ended the link */
			if (at < 0) {
				return;
			}
			peer = (uint32_t)at;
		}
		counted_came(core, peer, m);
		if (!rule_message_sound(m)) {
			COUNT(core, unsound);
		} else if (!rule_message_bound(core, m)) {
			master_clock_refused(core, peer, m->token > m->noted ? m->token : m->noted, m->key);
		} else if ((same && may_say(core, peer, m)) || message_of_any_epoch(m->kind) || guest_gives_back(core, peer, frame, m)) {
			step_message(core, peer, m);
		} else {
			COUNT(core, wrong_epoch); /* R4 */
			unseen_of_epoch(core, m);
		}
	}
}

static void take_flags(struct core *core, uint32_t peer, const struct frame *frame) {
	struct peer *p = &core->peers[peer];
	bool same = core_born(core) && p->linked && frame->epoch == core->config.epoch && frame->config_hash == core->config_hash;
	bool voting = same && (frame->flags & FRAME_VOTING) && peer < core->masters;
	bool changed = voting != p->voting || same != p->same;
	p->epoch = frame->epoch;
	p->same = same;
	p->heard = true;
	p->stopped += p->voting && !voting;
	p->voting = voting;
	p->complete = same && (frame->flags & FRAME_COMPLETE) && peer < core->masters;
	if (p->complete && !core->complete) {
		epoch_said_complete(core);
	}
	if (changed) {
		op_peer_changed(core, peer);
		follow_peer_changed(core);
		epoch_peer_changed(core);
	}
}

/* Section 9: a replica, which begins at 0, takes the clock of the master that it follows even if it is far ahead, as after a forced
 * start: else it could coordinate nothing. Neither must one damaged frame do that nor one master of several that lies, for nobody would listen to
 * the replica any more. */
static bool says_too(const struct core *core, uint32_t peer, uint64_t clock) {
	bool other = core->masters < 3;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct peer *p = &core->peers[i];
		other = other || (i != peer && p->up && clock - CLOCK_JUMP_MAX <= p->said_clock);
	}
	return other;
}

static void far_clock_heard(struct core *core, uint32_t peer) {
	const struct peer *p = &core->peers[peer];
	bool source = core->state == CORE_FOLLOWING && core->follow.state == FOLLOW_ON && core->follow.peer == peer;
	if (source && p->far_clock <= TOKEN_MAX && says_too(core, peer, p->far_clock) && instant_elapsed_short(core->now, p->far_since) > core->config.request_timeout) {
		master_raise_clock(core, p->far_clock);
	}
}

void peer_frame(struct core *core, uint32_t peer, const struct frame *frame) {
	struct peer *p = &core->peers[peer];
	if (!p->up || !id128_equal(frame->sender, p->link_id) || frame->boot != p->boot) {
		return;
	}
	bool was_heard = p->heard;
	p->said_clock = frame->clock;
	take_flags(core, peer, frame);
	bool same = p->same;
	epoch_heard(core, peer, !was_heard);
	if (same && !clock_bound(core, peer, frame)) {
		gather_peer_lost(core, peer); /* a part of its snapshot is lost */
		return;
	}
	struct id128 from = p->link_id;
	handle_messages(core, peer, frame, same);
	if (!same || !p->up || !id128_equal(p->link_id, from) || !p->same) {
		return;
	}
	if (p->far_ahead) {
		far_clock_heard(core, peer);
	} else {
		p->clock = frame->clock; /* heard after the frame's messages have been handled */
		master_raise_clock(core, frame->clock);
	}
}
