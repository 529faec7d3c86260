/* proof.c: the proof that a node needs before it adopts a later configuration (section 6, Proof). A
 * node that belongs to a cluster adopts one when q masters of its own configuration say so, each
 * over a link of its own: by a claim ("this is my configuration"), by an acceptance of the same
 * value under one ballot, or by passing on another master's claim while they are in doubt. A node
 * that belongs to no cluster believes one master that its file names, and then one master of the
 * configuration that it was told. What anybody else says counts for nothing.
 *
 * q claims are enough because the masters that have adopted an epoch hold the proof that the
 * masters of the previous one accepted it, and so on down to the configuration that this node is
 * in. No history travels, and nothing is signed. */
#include "membership.h"

/* How long a master has to be ahead before its claim is passed on, in request_timeouts. */
#define DOUBT_TIMEOUTS 4
/* How long a claim that was passed on counts, in request_timeouts. It is said again with every
 * claim. */
#define PASSED_ON_TIMEOUTS 2
/* The lack of proof is reported after so long. */
#define UNPROVEN_LONG (10 * SPAN_S)

/* ---- counting ---- */

/* Tells whether the peer says that the configuration with this hash was chosen. */
static bool says(const struct core *core, uint32_t peer, uint64_t hash, struct ballot ballot) {
	const struct word *w = &core->peers[peer].word;
	const span_ns counts = PASSED_ON_TIMEOUTS * core->config.request_timeout;
	return w->claimed == hash ||
		(w->accepted == hash && ballot_compare(w->ballot, ballot) == 0) ||
		(w->passed_on == hash &&
			instant_elapsed_long(core->now, w->passed_on_at) <= counts);
}

/* Adopts the configuration if q masters say that it was chosen. */
static void evaluate(struct core *core, const struct config *c, struct ballot ballot) {
	const uint64_t hash = config_hash(c);
	/* A node that is no master counts itself as well when it is in doubt. */
	uint32_t count = core->self >= core->masters && says(core, core->self, hash, ballot);
	for (uint32_t i = 0; i < core->masters; i++) {
		count += says(core, i, hash, ballot);
	}
	if (count >= core->quorum) {
		epoch_adopt(core, c);
	}
}

/* ---- doubt ---- */

/* Tells whether nothing can be chosen in this epoch any more, as far as this node sees. Either it
 * has not been linked for a while with q masters that are in the epoch. Or fewer than q vote, and
 * have done so for so long that all who had to wait have waited. */
static bool in_doubt(const struct core *core) {
	const span_ns request = DOUBT_TIMEOUTS * core->config.request_timeout;
	const span_ns longest = core->durable.max_lease_seen > core->config.max_lease
		? core->durable.max_lease_seen : core->config.max_lease;
	const span_ns waited = request + span_grow(longest, 2 * core->config.drift_ppm);
	const bool alone = instant_elapsed_short(core->now, peer_table_near_at(core)) > request &&
		instant_elapsed_short(core->now, core->adopted_at) > request;
	return alone || instant_elapsed_short(core->now, core->membership->voters_at) > waited;
}

/* Tells whether a claim is to be passed on: this node is in doubt, the master that claims it has
 * been ahead for long enough, and no linked master claims a later epoch. */
static bool to_be_passed_on(const struct core *core, uint32_t from, const struct config *c) {
	const struct word *w = &core->peers[from].word;
	if (!in_doubt(core) || instant_elapsed_short(core->now, w->ahead_since) <=
		DOUBT_TIMEOUTS * core->config.request_timeout) {
		return false;
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		if (core->peers[i].up && core->peers[i].word.claimed_epoch > c->epoch) {
			return false;
		}
	}
	return true;
}

static void pass_on(struct core *core, const struct message *claim, uint64_t hash) {
	struct message m = { .kind = MESSAGE_CONFIG, .flags = FLAG_PASSED_ON, .blob = claim->blob };
	core->peers[core->self].word.passed_on = hash;
	core->peers[core->self].word.passed_on_at = core->now;
	COUNT(core, config_passed_on);
	for (uint32_t i = 0; i < core->peer_count; i++) {
		const struct peer *p = &core->peers[i];
		const bool master = core->self < core->masters && i < core->masters && p->linked;
		/* This node may be one of the peer's masters. */
		const bool behind = p->frame_came && p->epoch > 0 && p->epoch < core->config.epoch;
		if (p->up && (master || behind)) {
			out_send(core, i, &m);
		}
	}
}

/* ---- what arrives ---- */

void proof_wanted(struct core *core) {
	core->membership->unproven_at = core->now;
	core->membership->unproven_since = core->membership->unproven
		? core->membership->unproven_since : core->now;
	core->membership->unproven = true;
}

/* If this node has accepted what is claimed, it says so again. Masters of its epoch that have
 * accepted it, too, may have missed that, and a master that has started anew since then has
 * forgotten what it heard. */
static void say_accepted_again(struct core *core, uint64_t hash) {
	const struct durable *d = &core->durable;
	if (d->decree_config.epoch != core->config.epoch + 1 ||
		config_hash(&d->decree_config) != hash ||
		!persist_reached(core, persist_wanted(core))) {
		return;
	}
	const struct message m = { .kind = MESSAGE_DECREE_ACCEPTED, .status = STATUS_OK,
		.ballot = d->decree_accepted, .number = hash };
	COUNT(core, accepted_again);
	for (uint32_t i = 0; i < core->masters; i++) {
		if (peer_reachable(core, i)) {
			out_send(core, i, &m);
		}
	}
}

void proof_told(struct core *core, uint32_t from, const struct message *m, const struct config *c) {
	struct word *w = &core->peers[from].word;
	const uint64_t hash = config_hash(c);
	proof_wanted(core);
	if (!proof_master(core, from)) {
		COUNT(core, config_unproven);
	} else if (m->flags & FLAG_PASSED_ON) {
		w->passed_on = hash;
		w->passed_on_at = core->now;
	} else {
		w->ahead_since = w->claimed_epoch > core->config.epoch ? w->ahead_since : core->now;
		w->claimed = hash;
		w->claimed_epoch = c->epoch;
		say_accepted_again(core, hash);
		if (to_be_passed_on(core, from, c)) {
			pass_on(core, m, hash);
		}
	}
	evaluate(core, c, core->durable.decree_accepted);
}

/* One of the masters, perhaps this node itself, has accepted a value. A node that has accepted the
 * same, under this ballot or another, knows which value that is. */
void proof_accepted(struct core *core, uint32_t from, const struct message *m) {
	struct word *w = &core->peers[from].word;
	if (m->status != STATUS_OK || !proof_master(core, from) || !core_born(core)) {
		return;
	}
	w->accepted = m->number;
	w->ballot = m->ballot;
	const struct config c = core->durable.decree_config;
	if (c.epoch == core->config.epoch + 1 && config_hash(&c) == m->number && !core->adopting) {
		evaluate(core, &c, m->ballot);
	}
}

/* Another configuration under this epoch's number is never adopted. If too few
 * masters are left for a quorum of this node's configuration, this node stops voting. Otherwise the
 * other configuration is only reported. */
void proof_contradicted(struct core *core, uint32_t from) {
	struct peer *p = &core->peers[from];
	uint32_t count = 0;
	if (!proof_master(core, from)) {
		COUNT(core, config_unproven);
		return;
	}
	if (!p->word.contradicts) {
		out_note(core, NOTE_CONFLICT, from, core->config.epoch, NULL, slice_of(NULL, 0));
	}
	p->word.contradicts = true;
	for (uint32_t i = 0; i < core->masters; i++) {
		count += core->peers[i].word.contradicts;
	}
	if (!core->conflict && count >= config_sources(core->masters)) {
		core->conflict = true;
		COUNT(core, config_conflict);
		if (core_votes(core)) {
			recovery_again(core);
		}
	}
}

/* ---- time ---- */

/* What the node has said of itself stays said, but not what it has passed on. */
void proof_peer_lost(struct core *core, uint32_t peer) {
	struct word *w = &core->peers[peer].word;
	w->passed_on = w->claimed_epoch = 0;
	w->contradicts = false;
}

/* All words were about the previous epoch. */
void proof_epoch(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		core->peers[i].word = (struct word){ .claimed = 0 };
	}
	core->membership->unproven = core->membership->unproven_noted = false;
	core->membership->voters_at = core->now;
	announced_forget(core);
}

/* The operator is told once the quorum has been away for a request_timeout. A node that is in no
 * configuration does not know who votes. */
void proof_beat(struct core *core) {
	const uint32_t voters = epoch_voters(core);
	core->membership->voters_at = voters >= core->quorum ? core->now
		: core->membership->voters_at;
	const bool away = voters < core->quorum && core_born(core) &&
		core_peer_is_member(core, core->self);
	const bool lost = away && (core->membership->quorum_lost ||
		instant_elapsed_short(core->now, core->membership->voters_at) >
			core->config.request_timeout);
	if (lost != core->membership->quorum_lost) {
		core->membership->quorum_lost = lost;
		out_note(core, lost ? NOTE_QUORUM_LOST : NOTE_QUORUM_BACK, core->self, voters, NULL,
			slice_of(NULL, 0));
	}
	if (core->membership->unproven &&
		instant_elapsed_short(core->now, core->membership->unproven_at) >
			PASSED_ON_TIMEOUTS * core->config.request_timeout) {
		/* Whoever said so no longer says it. */
		core->membership->unproven = core->membership->unproven_noted = false;
	}
	if (core->membership->unproven && !core->membership->unproven_noted &&
		proof_lacking(core)) {
		core->membership->unproven_noted = true;
		out_note(core, NOTE_UNPROVEN, core->self, core->config.epoch, NULL,
			slice_of(NULL, 0));
	}
}

/* The node has been told of a later configuration for long, and too few of those whom it believes
 * say so. */
bool proof_lacking(const struct core *core) {
	return core->membership->unproven &&
		(core->durable.config.epoch == 0 || in_doubt(core)) &&
		instant_elapsed_short(core->membership->unproven_at,
			core->membership->unproven_since) > UNPROVEN_LONG;
}
