/* suspicion.c: masters that are silent while this node expects something of them (section 5,
 * Suspicion). A link is given up only after request_timeout, because that ends promises and session
 * bindings. A request that waits looks for another home long before. */
#include "peers.h"

/* The shortest silence that counts, in nanoseconds. */
#define SILENCE_LEAST (6 * SPAN_MS)
/* A silence is so many times as long as the longest round trip of late. */
#define SILENCE_TRIPS 4
/* A silence is doubled at most so often; it is halved again when so much time has passed. */
#define DOUBLED_MOST 5
#define HALVED_AFTER (10 * SPAN_S)

/* Returns how long a master may be silent, in nanoseconds. */
static span_ns silence(const struct core *core, const struct peer *p) {
	const span_ns trips = SILENCE_TRIPS * pace_own(core),
		most = core->config.request_timeout / 4,
		span = trips < most ? trips : most;
	return (span > SILENCE_LEAST ? span : SILENCE_LEAST) << p->silence_doubled;
}

static void look_again(struct core *core, struct instant at) {
	struct peering_state *s = &core->peering;
	if (!wheel_armed(&s->silence_timer.wheel) || at.boot < s->silence_due.boot) {
		s->silence_due = at;
		timer_at(core, &s->silence_timer, TIMER_SILENCE, at);
	}
}

void peer_expect(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (peer == core->self || !p->linked || p->expected || p->suspect) {
		return;
	}
	p->expected = true;
	p->probed = false;
	p->silent_since = core->now;
	look_again(core, instant_add(core->now, silence(core, p)));
}

/* The silence of this master has lasted long enough for what comes next. */
static void silent(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	if (!p->probed) {
		COUNT(core, silence_probed);
		p->probed = true;
		p->silent_since = core->now;
		peer_ping_send(core, peer);
		look_again(core, instant_add(core->now, silence(core, p)));
		return;
	}
	COUNT(core, suspected);
	p->expected = false;
	p->suspect = true;
	p->suspect_since = core->now;
	core->observers->suspicion_changed(core, peer);
}

void peers_silence_timer(struct core *core) {
	/* If this node stood still itself, what the masters have said meanwhile is unread. */
	const span_ns late = instant_elapsed_long(core->now, core->peering.silence_due);
	for (uint32_t i = 0; i < core->masters; i++) {
		struct peer *p = &core->peers[i];
		if (!p->expected) {
			continue;
		}
		const span_ns span = silence(core, p);
		p->silent_since = late > span / 2 ? core->now : p->silent_since;
		const struct instant at = instant_add(p->silent_since, span);
		if (instant_expired(core->now, at)) {
			silent(core, i);
		} else {
			look_again(core, at);
		}
	}
}

void peer_heard(struct core *core, uint32_t peer) {
	struct peer *p = &core->peers[peer];
	p->expected = false;
	if (!p->suspect) {
		return;
	}
	const span_ns since = instant_elapsed_short(core->now, p->suspect_since);
	if (since < silence(core, p) && p->silence_doubled < DOUBLED_MOST) {
		COUNT(core, suspected_wrongly);
		p->silence_doubled++;
		p->halve_at = instant_add(core->now, HALVED_AFTER);
	}
	p->suspect = false;
	core->observers->suspicion_changed(core, peer);
}

void peers_silence_beat(struct core *core) {
	for (uint32_t i = 0; i < core->masters; i++) {
		struct peer *p = &core->peers[i];
		if (p->silence_doubled > 0 && instant_expired(core->now, p->halve_at)) {
			p->silence_doubled--;
			p->halve_at = instant_add(core->now, HALVED_AFTER);
		}
	}
}
