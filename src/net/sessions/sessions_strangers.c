/* sessions_strangers.c: connections of clients that have shown no certificate and made no request.
 */
#include "sessions_impl.h"

#include "pawl/error.h"

/* Ends a stranger. One that was refused has already been told, and so has the log. */
static void sessions_evict(struct stranger *take_stranger) {
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

/* Returns whether the session has a place. A full node ends its oldest stranger rather than refuse
 * a newcomer, and administrators have places of their own. */
static bool session_has_place(struct session *session) {
	struct sessions *s = session->all;
	struct stranger *oldest;
	bool stranger = strangers_remove(&s->strangers, &session->stranger);
	while (s->by_id.count > s->limits.clients && !session->admin
		&& (oldest = strangers_oldest(&s->strangers)) != NULL) {
		sessions_evict(oldest);
	}
	if (stranger) {
		strangers_add(&s->strangers, &session->stranger);
	}
	return s->by_id.count <= s->limits.clients || session->admin;
}

bool session_join(struct session *session) {
	static const struct client_refusal full = { .error = PAWL_EFULL,
		.field = { (const uint8_t *)"clients", 7 }, .retry_after = SPAN_S,
		.message = "this node has reached its limit of connections (clients); the "
			"remaining places are for administrators" };
	struct sessions *s = session->all;
	struct share_quota quota;
	if (!session_find_share(session)) {
		session->share = (struct share_pair){ NULL, NULL };
		session_end(session, "out of memory");
		return false;
	}
	const struct share_pair share = session->share;
	session_look_up(session);
	session->share = (struct share_pair){ NULL, NULL };
	if (!session_has_place(session)) {
		session_refuse_and_close(session, 0, &full);
		return false;
	}
	if (!session->inside
		&& shares_full(&share, SHARE_CLIENTS, 1,
		session->admin ? SESSIONS_ADMIN_SPARE : 0, &quota)) {
		s->shares.refused++;
		session_refuse_and_close(session, 0, &quota.refusal);
		return false;
	}
	session->share = share;
	shares_take(&share, SHARE_CLIENTS, 1);
	memory_join(session->memory, &share);
	return true;
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
