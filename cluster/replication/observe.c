/* observe.c: a replica that checks for double grants hears all masters (section 7, Hearing all
 * masters). The master that it follows feeds it anyway. Of each other master it asks for a feed of
 * its own, which goes to the audit alone and changes no table. It is one more follower for that
 * master, and nothing else. */
#include "replication.h"

/* The numbers of these feeds have the highest bit, those of a replica's own feed have not. */
#define OBSERVE_ROUND ((uint64_t)1 << 63)

static struct observe *observing(struct core *core) {
	return &core->replication.observe;
}

static bool wanted(const struct core *core) {
	return core->replication.observe.grants != NULL && core->state == CORE_FOLLOWING;
}

static void breach(void *ctx, const struct grants_breach *b) {
	struct core *core = ctx;
	COUNT(core, audit_violations);
	out_note_double_grant(core, b->master, grants_why_text(b->why), b->key, b->holders);
}

int observe_init(struct core *core) {
	observing(core)->grants = grants_new(&(struct grants_options){ .alloc = &core->alloc,
		.hash_key = core->hash_key, .breach = breach, .ctx = core });
	return observing(core)->grants ? 0 : PAWL_ENOMEM;
}

void observe_done(struct core *core) {
	grants_free(observing(core)->grants);
}

bool observe_is(const struct message *m) {
	return (m->round & OBSERVE_ROUND) != 0;
}

/* ---- echoes ---- */

static uint64_t new_echo(struct core *core) {
	struct observe *o = observing(core);
	o->echo++;
	o->echoes[o->echo % OBSERVE_ECHOES] = core->now;
	return o->echo;
}

/* Takes an echo that came back. False: it names no moment that is still known. */
static bool take_echo(struct core *core, struct observed *s, uint64_t echo) {
	struct observe *o = observing(core);
	if (echo == 0 || echo > o->echo || o->echo - echo >= OBSERVE_ECHOES) {
		return false;
	}
	s->sent_after = o->echoes[echo % OBSERVE_ECHOES];
	s->progress = core->now;
	return true;
}

/* ---- asking ---- */

static void arm(struct core *core) {
	const span_ns often = core->config.request_timeout / 20;
	timer_at(core, &core->replication.observe_timer, TIMER_OBSERVE,
		instant_add(core->now, span_longer(often,
			core->replication.replication_interval)));
}

/* Tells whether this replica's own feed has, or may soon have, the one feed of the master. */
static bool fed_anyway(const struct core *core, uint32_t peer) {
	return core->follow.state != FOLLOW_NONE && core->follow.peer == peer;
}

static void ask(struct core *core, uint32_t peer) {
	struct observed *s = &observing(core)->streams[peer];
	*s = (struct observed){ .state = FOLLOW_ASKED, .log = s->log, .number = s->number,
		.round = OBSERVE_ROUND | ++observing(core)->rounds, .sent_after = core->now,
		.progress = core->now };
	struct message m = { .kind = MESSAGE_FOLLOW, .round = s->round,
		.flags = FLAG_STAGING | FLAG_ACCEPT_ISOLATED, .log = s->log, .number = s->number,
		.echo = new_echo(core) };
	out_send(core, peer, &m);
}

static void say(struct core *core, uint32_t peer) {
	struct message m = { .kind = MESSAGE_FEED_ECHO,
		.round = observing(core)->streams[peer].round, .flags = FLAG_WATCH_EVENT,
		.echo = new_echo(core) };
	out_send(core, peer, &m);
}

/* Leaves the feed. It is asked for again after a while. */
static void leave(struct core *core, uint32_t peer) {
	struct observed *s = &observing(core)->streams[peer];
	if (s->state != FOLLOW_NONE) {
		struct message m = { .kind = MESSAGE_FEED_END, .round = s->round };
		out_send(core, peer, &m);
		s->state = FOLLOW_NONE;
		s->progress = core->now;
	}
}

static void go_on(struct core *core, uint32_t peer) {
	struct observed *s = &observing(core)->streams[peer];
	const span_ns since = instant_elapsed_long(core->now, s->progress),
		patience = core->config.request_timeout;
	if (s->state == FOLLOW_NONE) {
		if (peer_votes(core, peer) && !fed_anyway(core, peer) && since > patience / 4) {
			ask(core, peer);
		}
	} else if (since > 2 * patience) {
		leave(core, peer);
	} else if (s->state == FOLLOW_ON) {
		say(core, peer);
	}
}

void observe_timer(struct core *core) {
	if (!wanted(core)) {
		return;
	}
	for (uint32_t i = 0; i < core->masters; i++) {
		go_on(core, i);
	}
	arm(core);
}

void observe_start(struct core *core) {
	if (wanted(core)) {
		memset(observing(core)->streams, 0, sizeof observing(core)->streams);
		grants_epoch(observing(core)->grants, core->masters, core->quorum,
			core->config.drift_ppm);
		arm(core);
	}
}

void observe_stop(struct core *core) {
	for (uint32_t i = 0; observing(core)->grants && i < core->masters; i++) {
		leave(core, i);
	}
	timer_stop(core, &core->replication.observe_timer);
}

void observe_lost(struct core *core, uint32_t peer) {
	if (peer < core->masters) {
		observing(core)->streams[peer].state = FOLLOW_NONE;
		observing(core)->streams[peer].progress = core->now;
	}
}

/* ---- what the masters say ---- */

static void begun(struct core *core, uint32_t from, const struct message *m) {
	struct observed *s = &observing(core)->streams[from];
	if (m->status != STATUS_OK) {
		s->state = FOLLOW_NONE;
		return;
	}
	s->state = FOLLOW_ON;
	s->log = m->log;
	s->number = m->number;
	grants_begins(observing(core)->grants, from, m->log, m->number,
		(m->flags & FLAG_STAGING) != 0);
	say(core, from);
}

/* The entries in between are not known: only a snapshot helps. */
static void missed(struct core *core, uint32_t from) {
	COUNT(core, feed_missed);
	observing(core)->streams[from].log = 0;
	leave(core, from);
}

static void batch_ended(struct core *core, uint32_t from, const struct message *m) {
	struct observed *s = &observing(core)->streams[from];
	if (m->number != s->number) {
		missed(core, from);
		return;
	}
	const bool heard = take_echo(core, s, m->echo);
	grants_batch(observing(core)->grants, from, (m->flags & FLAG_WHOLE) != 0,
		heard ? &s->sent_after : NULL);
	/* A snapshot gives no echo back before its end. */
	s->progress = core->now;
	if (s->entries > 0 || m->parts > 0 || (m->flags & FLAG_WHOLE)) {
		struct message ack = { .kind = MESSAGE_FEED_ACK, .round = s->round,
			.number = m->number, .echo = new_echo(core) };
		out_send(core, from, &ack);
	}
	s->entries = 0;
}

static void entry_came(struct core *core, uint32_t from, const struct message *m) {
	struct observed *s = &observing(core)->streams[from];
	if (m->number && m->number != s->number) {
		missed(core, from);
		return;
	}
	grants_entry(observing(core)->grants, from, m, s->sent_after, core->now);
	s->entries++;
	s->number += m->number != 0;
}

void observe_message(struct core *core, uint32_t from, const struct message *m) {
	struct observed *s = &observing(core)->streams[from < core->masters ? from : 0];
	if (!wanted(core) || from >= core->masters || s->round != m->round ||
		s->state != (m->kind == MESSAGE_FEED_BEGIN ? FOLLOW_ASKED : FOLLOW_ON)) {
		COUNT(core, feed_stray);
	} else if (m->kind == MESSAGE_FEED_BEGIN) {
		begun(core, from, m);
	} else if (m->kind == MESSAGE_FEED_BATCH) {
		batch_ended(core, from, m);
	} else if (m->kind == MESSAGE_FEED_END) {
		observe_lost(core, from);
	} else {
		entry_came(core, from, m);
	}
}

/* ---- the feed of the master that the replica follows ---- */

void observe_follows(struct core *core, uint32_t peer) {
	if (peer < core->masters) {
		/* The master has one feed for each peer. */
		observing(core)->streams[peer].state = FOLLOW_NONE;
	}
}

void observe_begun(struct core *core, const struct message *m, bool snapshot) {
	if (wanted(core)) {
		struct observed *s = &observing(core)->streams[core->follow.peer];
		s->log = m->log;
		s->number = m->number;
		/* The master was asked then. */
		s->sent_after = core->follow.progress;
		grants_begins(observing(core)->grants, core->follow.peer, m->log, m->number,
			snapshot);
	}
}

void observe_entry(struct core *core, const struct message *m) {
	if (wanted(core)) {
		struct observed *s = &observing(core)->streams[core->follow.peer];
		s->number = m->number ? m->number + 1 : s->number;
		grants_entry(observing(core)->grants, core->follow.peer, m, s->sent_after,
			core->now);
	}
}

void observe_batch(struct core *core, const struct message *m) {
	if (wanted(core)) {
		struct observed *s = &observing(core)->streams[core->follow.peer];
		const struct follow *f = &core->follow;
		const bool heard = m->echo != 0 && m->echo <= f->echo &&
			f->echo - m->echo < FOLLOW_ECHOES;
		s->sent_after = heard ? f->echoes[m->echo % FOLLOW_ECHOES] : s->sent_after;
		grants_batch(observing(core)->grants, f->peer, (m->flags & FLAG_WHOLE) != 0,
			heard ? &s->sent_after : NULL);
	}
}
