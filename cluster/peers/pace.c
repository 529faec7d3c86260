/* pace.c: the longest round trips between the nodes of the cluster lately, which bound
 * request_timeout (section 9). Each node measures its own links, and tells the longest round trip
 * with every answer to a ping, so that a node which is near all others knows of those that are far
 * from each other. */
#include "peers.h"

/* "Lately" is this window and the one before it. */
#define WINDOW (30 * SPAN_S)

static void add(struct core *core, struct longest_span *l, span_ns span) {
	span_ns age = instant_elapsed_long(core->now, l->since);
	if (age > WINDOW) {
		l->before = age > 2 * WINDOW ? 0 : l->present;
		l->present = 0;
		l->since = core->now;
	}
	l->present = span > l->present ? span : l->present;
}

/* Returns the longest of the spans of this peer lately; 0 if it is no other member. */
static span_ns longest(const struct core *core, uint32_t peer, const struct longest_span *l) {
	if (peer == core->self || core->peers[peer].standing != PEER_MEMBER) {
		return 0;
	}
	span_ns age = instant_elapsed_long(core->now, l->since);
	if (age > 2 * WINDOW) {
		return 0;
	}
	return age <= WINDOW && l->before > l->present ? l->before : l->present;
}

/* A link that is silent for request_timeout is reset. So a node that tells of longer round trips
 * than the longest request_timeout lies. */
void pace_measured(struct core *core, uint32_t peer, span_ns round_trip, uint64_t told_us) {
	const span_ns told = span_from_us(told_us);
	add(core, &core->peers[peer].trips, round_trip);
	add(core, &core->peers[peer].trips_told,
		told < REQUEST_TIMEOUT_MOST ? told : REQUEST_TIMEOUT_MOST);
}

span_ns pace_own(const struct core *core) {
	span_ns most = 0;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		span_ns span = longest(core, i, &core->peers[i].trips);
		most = span > most ? span : most;
	}
	return most;
}

span_ns pace_longest(const struct core *core, uint32_t *peer) {
	span_ns most = 0;
	*peer = core->self;
	for (uint32_t i = 0; i < core->peer_count; i++) {
		span_ns measured = longest(core, i, &core->peers[i].trips);
		span_ns told = longest(core, i, &core->peers[i].trips_told);
		span_ns span = measured > told ? measured : told;
		if (span > most) {
			most = span;
			*peer = i;
		}
	}
	return most;
}
