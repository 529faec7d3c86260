/* decree.c: the masters' part in choosing the configuration that follows (section 6). There is one
 * Paxos decree for each epoch. Ballots and the accepted value are on disk before they are answered,
 * and a master that has not voted in this epoch does not answer. */
#include "membership.h"

/* Tells whether this node is a master of this epoch that has voted in it. It may be recovering,
 * because what it answers from is on its disk. */
static bool may_answer(const struct core *core) {
	return core_born(core) && !core->adopting && !core->conflict &&
		core->self < core->masters && core->durable.voted && core->state != CORE_DRAINED &&
		core->durable.config.epoch == core->config.epoch;
}

/* Keeps the answer until what it says is on disk. */
static void answer_later(struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *m) {
	persist_changed(core);
	core->peers[peer].decree = (struct decree_answer){ .kind = kind, .round = m->round,
		.seq = persist_wanted(core), .ballot = m->ballot };
	if (kind == MESSAGE_DECREE_ACCEPTED) {
		core->peers[peer].decree.value = config_hash(&core->durable.decree_config);
	}
}

static void refuse(struct core *core, uint32_t peer, enum message_kind kind, uint64_t round) {
	struct message answer = { .kind = kind, .round = round, .status = STATUS_BALLOT,
		.ballot = core->durable.decree_promised };
	COUNT(core, decree_promise_refused);
	out_send(core, peer, &answer);
}

/* Tells whether this very answer already waits for the disk. Another sync would only delay it. */
static bool being_answered(const struct core *core, uint32_t peer, enum message_kind kind,
	const struct message *m) {
	const struct decree_answer *a = &core->peers[peer].decree;
	return a->kind == kind && a->round == m->round && ballot_compare(a->ballot, m->ballot) == 0;
}

void decree_prepare(struct core *core, uint32_t from, const struct message *m) {
	if (!may_answer(core) || !proof_master(core, from)) {
		COUNT(core, decree_not_voted);
		return;
	}
	if (being_answered(core, from, MESSAGE_DECREE_PROMISE, m)) {
		return;
	}
	if (ballot_compare(m->ballot, core->durable.decree_promised) < 0) {
		refuse(core, from, MESSAGE_DECREE_PROMISE, m->round);
		return;
	}
	COUNT(core, decree_promise);
	core->durable.decree_promised = m->ballot;
	answer_later(core, from, MESSAGE_DECREE_PROMISE, m);
}

/* Tells whether another value was accepted under this ballot. A proposer has one value for each of
 * its ballots, so this one lies. */
static bool two_under_one(const struct core *core, struct ballot ballot,
	const struct config *value) {
	const struct config *accepted = &core->durable.decree_config;
	return accepted->epoch == value->epoch &&
		ballot_compare(ballot, core->durable.decree_accepted) == 0 &&
		config_hash(accepted) != config_hash(value);
}

void decree_accept(struct core *core, uint32_t from, const struct message *m) {
	struct config value;
	if (!may_answer(core) || !proof_master(core, from)) {
		COUNT(core, decree_not_voted);
		return;
	}
	if (config_decode(m->blob, &value) != 0 || !announced_may_follow(core, &value)) {
		return;
	}
	if (ballot_compare(m->ballot, core->durable.decree_promised) < 0) {
		COUNT(core, decree_accept_refused);
		refuse(core, from, MESSAGE_DECREE_ACCEPTED, m->round);
		return;
	}
	if (two_under_one(core, m->ballot, &value)) {
		COUNT(core, decree_two_under_one);
		return;
	}
	if (being_answered(core, from, MESSAGE_DECREE_ACCEPTED, m)) {
		return;
	}
	COUNT(core, decree_accept);
	core->durable.decree_promised = core->durable.decree_accepted = m->ballot;
	core->durable.decree_config = value;
	change_accepted(core);
	answer_later(core, from, MESSAGE_DECREE_ACCEPTED, m);
}

static void answer(struct core *core, uint32_t peer) {
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct decree_answer *a = &core->peers[peer].decree;
	struct message m = { .kind = a->kind, .round = a->round, .status = STATUS_OK,
		.ballot = a->ballot, .number = a->value };
	if (a->kind == MESSAGE_DECREE_PROMISE) {
		m.prepared = core->durable.decree_accepted;
		if (core->durable.decree_config.epoch) {
			m.blob = slice_of(bytes,
				config_encode(&core->durable.decree_config, bytes));
		}
	}
	a->kind = (enum message_kind)0;
	out_send(core, peer, &m);
	/* No round of the other masters has this number. */
	m.round = 0;
	for (uint32_t i = 0; m.kind == MESSAGE_DECREE_ACCEPTED && i < core->masters; i++) {
		if (i != peer && peer_reachable(core, i)) {
			/* Whoever has accepted the same value learns from q of these messages that
			 * it is chosen (proof.c). */
			out_send(core, i, &m);
		}
	}
}

void decree_persisted(struct core *core) {
	for (uint32_t i = 0; i < core->peer_count; i++) {
		struct decree_answer *a = &core->peers[i].decree;
		if (a->kind == 0 || !persist_reached(core, a->seq)) {
			continue;
		}
		if (may_answer(core)) {
			answer(core, i);
		} else {
			a->kind = (enum message_kind)0;
		}
	}
}
