/* sessions_strangers.c: connections of clients that have shown no certificate and made no request.
 */
#include "sessions_impl.h"

void session_trouble(const struct session *session, const char *why) {
	struct sessions *s = session->all;
	s->evicted += why == strangers_evicted;
	s->refused += why != strangers_evicted && list_linked(&session->stranger.in);
	const struct session_who who = session_who(session);
	s->handlers->trouble(s->ctx, &who, why);
}

void sessions_trouble(struct sessions *s, const struct origin *from, const char *why) {
	const struct session_who who = { .from = from };
	s->refused++;
	s->handlers->trouble(s->ctx, &who, why);
}

/* Ends a stranger. One that was refused has already been told, and so has the log. */
void sessions_evict(struct stranger *take_stranger) {
	struct session *session = CONTAINER_OF(take_stranger, struct session, stranger);
	session_end(session, session->closing ? NULL : strangers_evicted);
}

static bool session_busy(const struct stranger *stranger) {
	const struct session *session = CONTAINER_OF(stranger, struct session, stranger);
	return stream_waits_for_turn(session->stream) || fair_waits(&session->flow);
}

bool sessions_make_room(struct sessions *s, const struct stranger *newcomer) {
	struct stranger *victim;
	while ((victim = strangers_victim(&s->strangers, &s->limits.strangers, newcomer,
		session_busy)) != NULL) {
		sessions_evict(victim);
	}
	uint64_t most = (uint64_t)s->limits.clients + s->limits.admin_clients;
	if (s->by_id.count >= most && (victim = strangers_oldest(&s->strangers)) != NULL) {
		sessions_evict(victim);
	}
	return s->by_id.count < most;
}

uint64_t sessions_full(const struct sessions *s) {
	return s->full;
}

uint32_t sessions_count_at(const struct sessions *s, unsigned listener) {
	return listener < ORIGIN_LISTENERS ? s->by_listener[listener] : 0;
}

struct strangers_counts sessions_strangers(const struct sessions *s) {
	return (struct strangers_counts){ s->strangers.count, s->evicted, s->refused };
}
