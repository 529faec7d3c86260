/* frames.c: frames of other nodes: what their heads say, how far their clocks are believed (section
 * 9), and who may say what. */
#include "node.h"

/* How often a master may change its epoch, and whether it votes, at once. With each beat it may
 * once more. */
#define CHANGES_MOST 16

/* Tells whether this node may follow a quorum that says clocks above its limit. Rejoining gives the
 * whole margin again, to this node and above what its sources say. So it must not be repeated soon:
 * otherwise a member that lies would drive two others away from each other in turn. What is refused
 * meanwhile is followed at the pace of time. */
static bool may_follow_quorum(const struct core *core, uint64_t says) {
	return says > 0 && (says <= core->clock + CLOCK_JUMP_MAX ||
		core->node.behind_at.boot == 0 ||
		instant_elapsed_short(core->now, core->node.behind_at) >= BEHIND_AGAIN);
}

/* A quorum of masters is ahead. This node follows them. If they are farther ahead than they can be
 * by what it missed, it begins anew. */
static void follow_quorum(struct core *core, uint32_t peer, uint64_t says) {
	if (says <= core->clock + CLOCK_JUMP_MAX) {
		COUNT(core, clock_followed);
		clock_limit_raise(core, says);
	} else {
		COUNT(core, clock_behind);
		core->node.behind_at = core->now;
		out_note(core, NOTE_CLOCK_BEHIND, peer, core->peers[peer].said_clock, NULL,
			slice_of(NULL, 0));
		recovery_again(core);
	}
}

/* Tells whether the frame may be handled (section 9). */
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
	/* The time goes on from one link to the next, because links without an answer do not
	 * last. */
	p->refused_since = p->refused ? p->refused_since : core->now;
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

/* A master of the previous epoch that is not in this one goes on with what it was asked for. What
 * others hold is told to members only. */
static bool may_say(const struct core *core, uint32_t peer, const struct message *m) {
	static const message_set for_members =
		MESSAGE_BIT(MESSAGE_READ) | MESSAGE_BIT(MESSAGE_WAITERS) |
		MESSAGE_BIT(MESSAGE_FOLLOW) | MESSAGE_BIT(MESSAGE_SYNC_ROOT) |
		MESSAGE_BIT(MESSAGE_SYNC_GROUPS) | MESSAGE_BIT(MESSAGE_SYNC_ASK) |
		MESSAGE_BIT(MESSAGE_SYNC_LEAVES) | MESSAGE_BIT(MESSAGE_SYNC_KEYS) |
		MESSAGE_BIT(MESSAGE_SYNC_FETCH);
	const struct peer *p = &core->peers[peer];
	return p->in_epoch && (p->standing == PEER_MEMBER ||
		(p->standing == PEER_FORMER && !(for_members & MESSAGE_BIT(m->kind))));
}

/* Tells whether a node that is no longer in the configuration rolls back, under the name of its
 * request, what it asked for before (section 6, Nodes that are not in). */
static bool non_member_rolls_back(const struct core *core, uint32_t peer, const struct frame *frame,
	const struct message *m) {
	const bool present = core_born(core) && frame->epoch == core->config.epoch &&
		frame->config_hash == core->config_hash;
	return present && core->peers[peer].standing == PEER_NON_MEMBER &&
		m->kind == MESSAGE_RELEASE && m->name != 0 && m->number == 0;
}

static void handle_messages(struct core *core, uint32_t peer, const struct frame *frame,
	bool same) {
	struct id128 from = core->peers[peer].link_id;
	for (size_t i = 0; i < frame->count; i++) {
		const struct message *m = &frame->messages[i];
		if (!core->peers[peer].up || !id128_equal(core->peers[peer].link_id, from)) {
			/* An earlier message of the frame has changed the table of peers, or ended
			 * the link. */
			int at = peer_table_find_id(core, from);
			if (at < 0) {
				return;
			}
			peer = (uint32_t)at;
		}
		if (core->engine.failed >> peer & 1) {
			/* The answers to the messages before were too many: the link is lost. */
			return;
		}
		counted_came(core, peer, m);
		if (!rule_message_sound(m)) {
			COUNT(core, unsound);
		} else if (!rule_message_bound(core, m)) {
			clock_refused(core, peer, m->token > m->noted ? m->token : m->noted,
				m->key);
		} else if ((same && may_say(core, peer, m)) || message_of_any_epoch(m->kind) ||
			non_member_rolls_back(core, peer, frame, m)) {
			step_message(core, peer, m);
		} else {
			/* R4: nothing is accepted under another epoch. */
			COUNT(core, wrong_epoch);
			missed_of_epoch(core, m);
		}
	}
}

/* What follows from a change of a master's vote is work for each operation under way. So a master
 * that changes it again and again loses its link. */
static bool changes_too_often(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (peer >= core->masters || !p->frame_came) {
		/* Few operations look at it, or this is the first frame over its link. */
		return false;
	}
	if (p->changes < CHANGES_MOST) {
		p->changes++;
		return false;
	}
	COUNT(core, unsteady);
	out_note(core, NOTE_UNSTEADY, peer, 0, NULL, slice_of(NULL, 0));
	core->engine.failed |= (uint64_t)1 << peer;
	return true;
}

/* Takes what the head of the frame says about the peer. False: the link is to be lost. */
static bool take_flags(struct core *core, uint32_t peer, const struct frame *frame) {
	struct peer *p = &core->peers[peer];
	bool present = core_born(core) && frame->epoch == core->config.epoch &&
		frame->config_hash == core->config_hash;
	bool same = present && p->linked;
	bool voting = same && (frame->flags & FRAME_VOTING) && peer < core->masters;
	bool changed = voting != p->voting || same != p->in_epoch || present != p->epoch_frame;
	if (changed && changes_too_often(core, peer)) {
		return false;
	}
	p->epoch = frame->epoch;
	p->epoch_frame = present;
	p->in_epoch = same;
	p->frame_came = true;
	p->stopped += p->voting && !voting;
	p->voting = voting;
	p->complete = same && (frame->flags & FRAME_COMPLETE) && peer < core->masters;
	if (p->complete && !core->complete) {
		epoch_said_complete(core);
	}
	if (changed) {
		core->observers->link_changed(core, peer);
	}
	return true;
}

/* Tells whether another master says the clock, too (section 9). A replica begins at 0 and takes the
 * clock of the master that it follows even if that is far ahead, as after a forced start, because
 * otherwise it could coordinate nothing. One damaged frame must not do that, nor one master of
 * several that lies, for nobody would listen to the replica any more. */
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
	bool source = core->state == CORE_FOLLOWING && core->follow.state == FOLLOW_ON &&
		core->follow.peer == peer;
	if (source && p->far_clock <= TOKEN_MAX && says_too(core, peer, p->far_clock) &&
		instant_elapsed_short(core->now, p->far_since) > core->config.request_timeout) {
		clock_raise(core, p->far_clock);
	}
}

void peer_frame(struct core *core, uint32_t peer, const struct frame *frame) {
	struct peer *p = &core->peers[peer];
	if (!p->up || !id128_equal(frame->sender, p->link_id) || frame->boot != p->boot) {
		return;
	}
	peer_heard(core, peer);
	bool was_heard = p->frame_came;
	p->said_clock = frame->clock;
	if (!take_flags(core, peer, frame)) {
		return;
	}
	bool same = p->in_epoch;
	if (!same) {
		epoch_heard(core, peer, !was_heard);
	}
	if (same && !clock_bound(core, peer, frame)) {
		/* If this peer sends a snapshot, a part of it is lost with the frame. */
		state_transfer_peer_lost(core, peer);
		return;
	}
	struct id128 from = p->link_id;
	handle_messages(core, peer, frame, same);
	if (!same || !p->up || !id128_equal(p->link_id, from) || !p->in_epoch || frame->more) {
		return;
	}
	if (p->far_ahead) {
		far_clock_heard(core, peer);
	} else {
		/* The clock is heard after all messages of the frame have been handled. */
		p->clock = frame->clock;
		clock_raise(core, frame->clock);
	}
}
