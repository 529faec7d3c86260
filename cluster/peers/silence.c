/* silence.c: masters that are silent while something is expected of them (section 5, Silence). A
 * link is given up only after request_timeout, because promises and session bindings end with it.
 * Those who wait for a turn, or for a vote in a tie, do without such a master much sooner. */
#include "peers.h"

/* The shortest silence that counts. */
#define SILENCE_LEAST (6 * SPAN_MS)
/* A silence counts when it is this many times as long as the slowest recent answer took. */
#define SLOWEST_TIMES 4
/* With each answer the time of the slowest one decreases by one part in this many. */
#define SLOWEST_FADES 8
/* Answers halve again what wrong suspicions have doubled, but no more often than this. */
#define HALVED_AFTER SPAN_S
#define DOUBLINGS_MAX 20
/* An alarm that rings later than this, and later than a quarter of its time, says that this node
 * stood still. */
#define LATE_LEAST (2500 * SPAN_US)
/* Before the first answer over its first link nothing is known of a master's round trips. */
#define SLOWEST_FIRST (25 * SPAN_MS)

/* Returns how long the master may be silent, in nanoseconds. */
static span_ns silence_of(const struct core *core, const struct peer *p) {
	const span_ns most = core->config.request_timeout / 2,
		slowest = p->slowest ? p->slowest : SLOWEST_FIRST;
	span_ns span = slowest < most ? slowest * SLOWEST_TIMES : most;
	span = span > SILENCE_LEAST ? span : SILENCE_LEAST;
	for (uint32_t i = 0; i < p->doublings && span < most; i++) {
		span *= 2;
	}
	return span < most ? span : most;
}

/* Sets the alarm for when the first master may have been silent for as long as counts. An alarm
 * that is set stays there, because it is early enough for what is expected from now on: it rings
 * with nothing to do, and is set again. So a busy link sets it once in a while, and not for each
 * message. */
static void set_alarm(struct core *core) {
	struct peering_state *s = &core->peering;
	span_ns least = SPAN_MAX;
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct peer *p = &core->peers[i];
		span_ns span = i == core->self || !p->linked ? SPAN_MAX : silence_of(core, p);
		if (p->expected) {
			span -= instant_elapsed_long(core->now, p->silent_since);
		}
		least = span < least ? span : least;
	}
	s->silence_set = core->now;
	s->silence_due = instant_add(core->now, least);
	timer_at(core, &s->silence_alarm, TIMER_SILENCE, s->silence_due);
}

void peer_expect_begins(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (peer >= core->masters || !p->linked || p->suspect) {
		return;
	}
	p->expected = true;
	p->silent_since = core->now;
	p->pinged = false;
	if (!wheel_armed(&core->peering.silence_alarm.wheel)) {
		set_alarm(core);
	}
}

void peer_expect_turn(struct core *core, uint32_t peer, uint32_t place) {
	struct peer *p = &core->peers[peer];
	if (peer == core->self) {
		return;
	}
	if (!p->expected) {
		peer_expect_begins(core, peer);
		p->awaited = 0;
		p->owes_at = place + 1;
	} else if (p->owes_at != place + 1) {
		p->owes_at = 0;
	}
}

void peers_turn_given(struct core *core, uint32_t place) {
	for (uint32_t i = 0; i < core->masters; i++) {
		struct peer *p = &core->peers[i];
		p->expected = p->expected && p->owes_at != place + 1;
	}
}

static void suspect(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	COUNT(core, suspected);
	p->expected = false;
	p->suspect = true;
	core->peering.suspects++;
	core->observers->suspicion_changed(core, peer);
}

void peer_suspect_end(struct core *core, uint32_t peer) {
	core->peering.suspects -= core->peers[peer].suspect;
	core->peers[peer].suspect = core->peers[peer].expected = false;
}

void peer_suspect_heard(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	COUNT(core, suspected_wrongly);
	p->doublings += p->doublings < DOUBLINGS_MAX;
	p->doubled_at = core->now;
	p->slow_ping = p->ping_out;
	peer_suspect_end(core, peer);
	core->observers->suspicion_changed(core, peer);
}

/* A ping has been answered. An answer that comes after a suspicion says that the master hung, and
 * not that it is slow. */
void peer_silence_measured(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (!p->slow_ping) {
		const span_ns faded = p->slowest - p->slowest / SLOWEST_FADES;
		p->slowest = p->round_trip > faded ? p->round_trip : faded;
		p->slowest = p->slowest > 0 ? p->slowest : 1;
	}
	p->slow_ping = false;
	if (p->doublings && instant_elapsed_short(core->now, p->doubled_at) >= HALVED_AFTER) {
		p->doublings--;
		p->doubled_at = core->now;
	}
}

/* The master is pinged, and is suspect if nothing comes after that. */
static void probe(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	COUNT(core, silence_pinged);
	peer_ping_send(core, peer);
	p->pinged = true;
	p->silent_since = core->now;
}

/* Another node pings a silent master, and says so, so that all nodes suspect it at about the same
 * time. A node that says so without a reason causes one ping to each master at a time. */
void peers_silence_told(struct core *core, uint32_t from) {
	for (uint32_t i = 0; i < core->masters; i++) {
		const struct peer *p = &core->peers[i];
		if (i != from && i != core->self && p->linked && !p->suspect &&
			!(p->expected && p->pinged)) {
			probe(core, i);
		}
	}
}

static void tell(struct core *core, uint32_t silent) {
	const struct message m = { .kind = MESSAGE_PING, .round = PING_TELLS_SILENCE };
	for (uint32_t i = 0; i < core->peer_count; i++) {
		if (i != silent && i != core->self && core->peers[i].linked) {
			out_send(core, i, &m);
		}
	}
}

/* The master has been silent for as long as counts. */
static void silent(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (p->pinged) {
		suspect(core, peer);
		return;
	}
	probe(core, peer);
	tell(core, peer);
}

void peers_silence_rings(struct core *core) {
	const struct peering_state *s = &core->peering;
	const span_ns late = core->now.boot - s->silence_due.boot;
	/* What the masters have said meanwhile may be unread. */
	const bool stood_still = late > LATE_LEAST &&
		late > (s->silence_due.boot - s->silence_set.boot) / 4;
	bool expected = false;
	for (uint32_t i = 0; i < core->masters; i++) {
		struct peer *p = &core->peers[i];
		if (p->expected && stood_still) {
			p->silent_since = core->now;
		}
		if (p->expected && instant_elapsed_short(core->now, p->silent_since) >=
			silence_of(core, p)) {
			silent(core, i);
		}
		expected = expected || p->expected;
	}
	if (expected) {
		set_alarm(core);
	}
}
