/* silence.c: finds out whether a silent node is gone. A node answers pings at once, also while
 * requests wait in its queues or its quorum is slow. So a node that leaves a ping unanswered is
 * stopped, cut off, or its process is (docs/decisions/0027). */
#include "client_core.h"

#define SILENCE_LEAST (100 * SPAN_MS)
/* An alarm that rings later than this, and later than a quarter of its time, says that this process
 * stood still, and not the node. */
#define LATE_LEAST (2500 * SPAN_US)

/* Returns whether the node has something to say: an answer, also to a call that has given up, or
 * events of a watch. A node that is gone would never send any of these. */
static bool awaits_anything(const struct session *session) {
	return session->owed || session->flights > 0
		|| (session == session->client->session && !list_empty(&session->client->watches));
}

/* Returns how long the node may be silent altogether. Where only events are awaited the limit is
 * longer, so that a thousand idle watchers do not send a thousand pings a second. */
static span_ns silence_limit(const struct session *session) {
	struct pawl *client = session->client;
	if (!session->owed && session->flights == 0) {
		return client->silence * 4;
	}
	span_ns limit = failover_lease_share(client, client->silence);
	return limit > SILENCE_LEAST ? limit : SILENCE_LEAST;
}

/* Returns whether the client may leave this session for another node before the whole silence is
 * over. */
static bool may_leave(const struct session *session) {
	return session == session->client->session && session->client->endpoints.count > 1;
}

/* Returns how long the node may take to answer a ping before the client leaves it. */
static span_ns ping_limit(const struct session *session) {
	return patience_time(&session->client->patience, silence_limit(session) / 2);
}

/* Returns how long the node may be silent before it is pinged. A request that waits at the node is
 * treated like any other until the node has shown, by its answer to a ping, that it has read the
 * request. */
static span_ns quiet_limit(const struct session *session) {
	if (may_leave(session) && session->owed) {
		return ping_limit(session);
	}
	return silence_limit(session) / (may_leave(session) && session->flights ? 8 : 2);
}

static int64_t lost_at(const struct session *session) {
	span_ns limit = silence_limit(session);
	int64_t whole = session->silent_since.boot + limit;
	int64_t half = session->ping_at.boot + limit / 2;
	return whole > half ? whole : half;
}

static int64_t next_at(const struct session *session) {
	if (!session->pinged) {
		return session->quiet_since.boot + quiet_limit(session);
	}
	int64_t lost = lost_at(session), overdue = session->ping_at.boot + ping_limit(session);
	return may_leave(session) && !session->overdue && overdue < lost ? overdue : lost;
}

/* An alarm that is set for an earlier time stays there: it goes off with nothing to do, and is set
 * again. So a busy connection sets its alarm once in a while, and not for each request. */
void silence_reset(struct session *session) {
	if (session->state != SESSION_UP || !awaits_anything(session)) {
		return;
	}
	int64_t at = next_at(session);
	if (!wheel_armed(&session->silence_alarm.timer) || at < session->alarm_at) {
		session->alarm_at = at;
		session->alarm_set_at = client_core_now(session->client).boot;
		agenda_set(&session->client->agenda, &session->silence_alarm, at);
	}
}

void silence_clear(struct session *session) {
	agenda_clear(&session->client->agenda, &session->silence_alarm);
	session->owed = session->pinged = session->pong_due = session->overdue = false;
	session->wait_sent_at = session->read_until = (struct instant){ 0 };
}

void silence_sent(struct session *session, struct instant now, bool waits) {
	bool first = !session->owed;
	session->flights++;
	if (waits) {
		session->waits++;
		session->wait_sent_at = now;
	}
	if (first) {
		session->owed = true;
		session->silent_since = session->quiet_since = now;
		session->pinged = false;
		silence_reset(session);
	}
}

void silence_pinged(struct session *session) {
	session->ping_at = client_core_now(session->client);
	session->owed = session->pinged = session->pong_due = true;
}

void silence_ponged(struct session *session) {
	session->pong_due = false;
	session->read_until = session->ping_at;
}

void silence_heard(struct session *session) {
	session->silent_since = session->quiet_since = client_core_now(session->client);
	session->pinged = session->overdue = false;
}

void silence_settle(struct session *session) {
	bool unread = session->waits && session->wait_sent_at.boot > session->read_until.boot;
	session->owed = session->flights > session->waits || unread || session->pinged;
	if (!wheel_armed(&session->silence_alarm.timer)) {
		silence_reset(session);
	}
}

/* The node has not answered the ping so far. */
static void ping_unanswered(struct session *session, struct instant now) {
	if (now.boot >= lost_at(session)) {
		session_failed(session, PAWL_ETIMEOUT, "the node does not answer");
	} else if (may_leave(session) && !session->overdue
		&& instant_elapsed_short(now, session->ping_at) >= ping_limit(session)) {
		session->overdue = true;
		failover_overdue(session->client);
	}
}

void silence_ring(struct alarm *alarm) {
	struct session *session = CONTAINER_OF(alarm, struct session, silence_alarm);
	struct pawl *client = session->client;
	span_ns late = client_core_now(client).boot - session->alarm_at;
	bool stood_still = late > LATE_LEAST
		&& late > (session->alarm_at - session->alarm_set_at) / 4;
	/* What has arrived while this process did not look counts. */
	connection_read_now(&session->connection);
	if (client->dying || session->state != SESSION_UP || !awaits_anything(session)) {
		return;
	}
	struct instant now = client_core_now(client);
	if (stood_still) {
		patience_late(&client->patience, late);
		session->quiet_since = now;
		session->ping_at = session->pinged ? now : session->ping_at;
	} else if (session->pinged) {
		ping_unanswered(session, now);
	} else if (instant_elapsed_short(now, session->quiet_since) >= quiet_limit(session)) {
		bool answers_due = session->flights > session->waits;
		session_ping(session);
		if (may_leave(session) && answers_due) {
			failover_probe(client);
		}
	}
	silence_reset(session);
}
