/* propose.c: the proposer's part in the decree on the next configuration (section 6). It needs
 * promises and then acceptances of a majority of the present masters. The proposer takes over the
 * accepted value with the highest ballot that it is told of, whoever proposed that. */
#include "membership.h"

/* A master whose link is lost does not answer in this round any more. */
static void leave_out_lost(struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		core->membership->change.answered |= peer_reachable(core, i) ? 0 : 1u << i;
	}
}

/* Asks all masters that have not answered in the round, some of them again: a master answers a
 * ballot that it knows already as it did before. */
static void ask_silent(struct core *core) {
	struct change *g = &core->membership->change;
	uint8_t bytes[CONFIG_BYTES_MAX];
	struct message m = { .kind = MESSAGE_DECREE_PREPARE, .round = g->round,
		.ballot = g->ballot };
	if (g->state == CHANGE_ACCEPT) {
		m.kind = MESSAGE_DECREE_ACCEPT;
		m.blob = slice_of(bytes, config_encode(&g->value, bytes));
	}
	g->again = instant_add(core->now, core->config.request_timeout / 2);
	for (uint32_t i = 0; i < core->masters; i++) {
		if (!(g->answered >> i & 1)) {
			out_send(core, i, &m);
		}
	}
}

/* Begins a round of the decree. */
static void ask_masters(struct core *core, enum change_state state) {
	struct change *g = &core->membership->change;
	g->state = state;
	g->round++;
	g->answered = g->agreed = 0;
	g->at = instant_add(core->now,
		span_longer(core->config.request_timeout, DECREE_ROUND_LEAST));
	leave_out_lost(core);
	ask_silent(core);
}

void propose_again(struct core *core) {
	struct change *g = &core->membership->change;
	uint64_t above = g->highest.clock > core->membership->ballot_drawn ? g->highest.clock
		: core->membership->ballot_drawn;
	/* No ballot is drawn twice, whatever became of the change that it was for. */
	core->membership->ballot_drawn = above + 1;
	g->ballot = (struct ballot){ core->membership->ballot_drawn,
		id128_word(core->durable.node_id), (uint32_t)core->durable.boot };
	g->highest = g->ballot;
	g->best = (struct ballot){ 0, 0, 0 };
	ask_masters(core, CHANGE_PROMISE);
}

void propose_start(struct core *core) {
	struct change *g = &core->membership->change;
	change_step(core, CHANGE_PROMISE, "decree");
	span_ns patience = span_longer(4 * core->config.promise_timeout, DECREE_LEAST);
	g->until = instant_add(core->now, patience < DECREE_MOST ? patience : DECREE_MOST);
	g->highest = core->durable.decree_promised;
	propose_again(core);
}

/* Rivals pause at random, for a time that doubles. It grows by a fixed step as well, for disks that
 * take longer than round trips. */
void propose_pause(struct core *core) {
	struct change *g = &core->membership->change;
	span_ns most = 2 * peers_pause_most(core, ++g->pauses) + core->config.request_timeout / 8;
	most = span_longer(most, (g->pauses < 8 ? g->pauses : 8) * DECREE_PAUSE_LEAST);
	COUNT(core, decree_rival);
	if (instant_expired(core->now, g->until)) {
		change_finish(core, PAWL_ENOQUORUM,
			"too few masters of the present configuration answered: it may still take "
			"effect, look at 'pawl cluster show'", slice_of(NULL, 0));
		return;
	}
	g->state = CHANGE_PAUSE;
	g->at = instant_add(core->now, prng_between(&core->prng, 0, most));
}

static void chosen(struct core *core) {
	struct change *g = &core->membership->change;
	COUNT(core, decree_chosen);
	change_step(core, CHANGE_ADOPT, "chosen");
	g->until = instant_add(core->now, ADOPT_WAIT);
	struct config c = g->value;
	/* Whoever knows that a configuration is chosen tells everybody. */
	epoch_tell(core, &c);
	epoch_adopt(core, &c);
}

static void decree_evaluate(struct core *core) {
	struct change *g = &core->membership->change;
	uint32_t agreed = (uint32_t)__builtin_popcount(g->agreed),
		answered = (uint32_t)__builtin_popcount(g->answered);
	if (agreed >= core->quorum) {
		if (g->state == CHANGE_ACCEPT) {
			chosen(core);
			return;
		}
		/* g->value is by now the accepted value with the highest ballot, if any was
		 * told. */
		ask_masters(core, CHANGE_ACCEPT);
	} else if (core->masters - (answered - agreed) < core->quorum) {
		propose_pause(core);
	}
}

void propose_beat(struct core *core) {
	struct change *g = &core->membership->change;
	if (instant_expired(core->now, g->at)) {
		propose_pause(core);
		return;
	}
	leave_out_lost(core);
	if (instant_expired(core->now, g->again)) {
		ask_silent(core);
	}
	decree_evaluate(core);
}

/* Takes over a value that the answering master has accepted, if its ballot is the highest so
 * far. */
static void take_value(struct core *core, const struct message *m) {
	struct change *g = &core->membership->change;
	struct config c;
	if (m->blob.size == 0 || ballot_compare(m->prepared, g->best) <= 0 ||
		config_decode(m->blob, &c) != 0) {
		return;
	}
	if (!announced_may_follow(core, &c)) {
		return;
	}
	g->best = m->prepared;
	g->foreign = config_hash(&c) != config_hash(&g->target);
	g->value = c;
	COUNT(core, decree_value_adopted);
}

void propose_answered(struct core *core, uint32_t from, const struct message *m) {
	struct change *g = &core->membership->change;
	bool fits = (m->kind == MESSAGE_DECREE_PROMISE && g->state == CHANGE_PROMISE) ||
		(m->kind == MESSAGE_DECREE_ACCEPTED && g->state == CHANGE_ACCEPT);
	if (!fits || m->round != g->round || from >= core->masters || (g->answered >> from & 1)) {
		return;
	}
	g->answered |= 1u << from;
	bool same_value = m->kind == MESSAGE_DECREE_PROMISE || m->number == config_hash(&g->value);
	if (m->status == STATUS_OK && same_value && ballot_compare(m->ballot, g->ballot) == 0) {
		g->agreed |= 1u << from;
		if (m->kind == MESSAGE_DECREE_PROMISE) {
			take_value(core, m);
		}
	} else if (ballot_compare(m->ballot, g->highest) > 0) {
		g->highest = m->ballot;
	}
	decree_evaluate(core);
}

void propose_accepted(struct core *core, uint32_t from, const struct message *m) {
	propose_answered(core, from, m);
	proof_accepted(core, from, m);
}
