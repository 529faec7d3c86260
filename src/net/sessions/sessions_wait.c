/* sessions_wait.c: which connections wait for their turn, and what they have to wait for: that the
 * socket is read, and that values which are under way for them are answered.
 */
#include "sessions_impl.h"

#include "check.h"

/* How many records of TLS cost as much as a simple request. */
#define RECORDS_A_COST 4u
/* How many connections are read in one turn although it is not theirs. */
#define READS_AT_ONCE 32
/* The cost of these reads after which the other connections have to wait for their turn, and the
 * same while turns are short. */
#define READS_COST_MAX 32
#define READS_COST_SHORT 8
/* How many bytes of values may be under way for all connections together. That is less than what
 * waits for a peer when its link is given up. */
#define VALUES_MAX (16u << 20)
/* A connection may begin another value while its own values take at most 1 / VALUES_PART of what is
 * left of VALUES_MAX. So a connection that is alone gets about a fifth of VALUES_MAX, many
 * connections get equal parts, and one that has no value under way may always begin. */
#define VALUES_PART 4
/* To send or to copy VALUE_PIECE bytes later takes VALUE_PIECE_TIME. */
#define VALUE_PIECE 4096u
#define VALUE_PIECE_TIME (8 * SPAN_US)

/* ---- the queue ---- */

bool session_has_enough(const struct session *session) {
	const uint64_t all = session->all->values;
	return session->values > (all < VALUES_MAX ? VALUES_MAX - all : 0) / VALUES_PART;
}

bool session_has_work(const struct session *session) {
	return stream_is_held(session->stream) || session->next;
}

void session_wait(struct session *session) {
	struct sessions *s = session->all;
	struct share *share = session->share.identity;
	if (!share || session->closing || !(session->unread || session_has_work(session))
		|| stream_is_paused(session->stream) || session_has_enough(session)) {
		return;
	}
	if (fair_wait(&share->ready, &session->flow, s->turn)) {
		fair_wait(&s->ready, &share->flow, s->turn);
		s->handlers->ready(s->ctx);
	}
}

void session_stop_waiting(struct session *session) {
	struct share *share = session->share.identity;
	uint64_t turn = session->all->turn;
	if (share) {
		fair_leave(&session->flow, turn);
		if (list_empty(&share->ready.fresh) && list_empty(&share->ready.rest)) {
			fair_leave(&share->flow, turn);
		}
	}
}

/* ---- values under way ---- */

void sessions_value_begun(struct sessions *s, uint64_t client, uint64_t bytes) {
	struct session *session = sessions_find(s, client);
	if (session) {
		session->values += bytes;
		s->values += bytes;
		s->expected += (span_ns)(bytes / VALUE_PIECE) * VALUE_PIECE_TIME;
	}
}

void sessions_value_done(struct sessions *s, uint64_t client, uint64_t bytes) {
	struct session *session = sessions_find(s, client);
	if (session && bytes > 0) {
		CHECK(bytes <= session->values);
		session->values -= bytes;
		s->values -= bytes;
		session_wait(session);
	}
}

void session_values_gone(struct session *session) {
	session->all->values -= session->values;
	session->values = 0;
}

/* ---- reading ---- */

void session_on_received(void *take_session, struct instant now) {
	struct session *session = take_session;
	if (stream_is_held(session->stream)) {
		session->heard = now;
		if (session->tls) {
			session_claim_tls(session);
		}
		session_wait(session);
	}
	/* Reading takes time, even if the bytes never become a request, so it is charged for
	 * itself. */
	const struct stream_counts all = stream_counts(session->stream);
	uint64_t by_bytes = (all.received - session->charged_bytes) / SESSIONS_BYTES_A_COST;
	uint64_t by_records = (all.records - session->charged_records) / RECORDS_A_COST;
	session->charged_bytes += by_bytes * SESSIONS_BYTES_A_COST;
	session->charged_records += by_records * RECORDS_A_COST;
	session->all->read_cost += (int64_t)(by_bytes + by_records);
	session_charge(session, (int64_t)(by_bytes + by_records));
}

bool session_reads_now(void *take_session) {
	struct session *session = take_session;
	struct sessions *s = session->all;
	struct share *share = session->share.identity;
	if (!share || session->closing) {
		return true;
	}
	bool nobody_waits = list_empty(&s->ready.fresh) && list_empty(&s->ready.rest);
	session->unread = s->read_cost >= (s->short_turns ? READS_COST_SHORT : READS_COST_MAX)
		|| (!nobody_waits && (s->read_at_once >= READS_AT_ONCE
			|| fair_owes(&share->ready, &session->flow, s->turn)
			|| fair_owes(&s->ready, &share->flow, s->turn)));
	s->read_at_once += !session->unread;
	session_wait(session);
	return !session->unread;
}
