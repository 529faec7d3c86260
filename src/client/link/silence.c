/* silence.c: finds out whether a silent node is gone. A node answers pings at once, also while
 * requests wait in its queues or its quorum is slow. So a node that leaves a ping unanswered is
 * stopped, cut off, or its process is (docs/decisions/0026). */
#include "client_core.h"

#define SILENCE_LEAST (100 * SPAN_MS)
/* An alarm that rings later than this, and later than a quarter of its time, says that this process
 * stood still, and not the node. */
#define LATE_LEAST (2500 * SPAN_US)

/* Returns whether the node has something to say: an answer, also to a call that has given up, or
 * events of a watch. A node that is gone would never send any of these. */
static bool awaits_anything(const struct line *line) {
	return line->owed || line->flights > 0
		|| (line == line->client->line && !list_empty(&line->client->watches));
}

/* Returns how long the node may be silent altogether. Where only events are awaited the limit is
 * longer, so that a thousand idle watchers do not send a thousand pings a second. */
static span_ns silence_limit(const struct line *line) {
	struct pawl *client = line->client;
	if (!line->owed && line->flights == 0) {
		return client->silence * 4;
	}
	span_ns limit = failover_lease_share(client, client->silence);
	return limit > SILENCE_LEAST ? limit : SILENCE_LEAST;
}

/* Returns whether the client may leave this line for another node before the whole silence is
 * over. */
static bool may_leave(const struct line *line) {
	return line == line->client->line && line->client->endpoints.count > 1;
}

/* Returns how long the node may take to answer a ping before the client leaves it. */
static span_ns ping_limit(const struct line *line) {
	return patience_time(&line->client->patience, silence_limit(line) / 2);
}

/* Returns how long the node may be silent before it is pinged. A request that waits at the node is
 * treated like any other until the node has shown, by its answer to a ping, that it has read the
 * request. */
static span_ns quiet_limit(const struct line *line) {
	if (may_leave(line) && line->owed) {
		return ping_limit(line);
	}
	return silence_limit(line) / (may_leave(line) && line->flights ? 8 : 2);
}

static int64_t lost_at(const struct line *line) {
	span_ns limit = silence_limit(line);
	int64_t whole = line->silent_since.boot + limit, half = line->ping_at.boot + limit / 2;
	return whole > half ? whole : half;
}

static int64_t next_at(const struct line *line) {
	if (!line->pinged) {
		return line->quiet_since.boot + quiet_limit(line);
	}
	int64_t lost = lost_at(line), overdue = line->ping_at.boot + ping_limit(line);
	return may_leave(line) && !line->overdue && overdue < lost ? overdue : lost;
}

void silence_reset(struct line *line) {
	if (line->state == LINE_UP && awaits_anything(line)) {
		line->alarm_at = next_at(line);
		line->alarm_set_at = client_core_now(line->client).boot;
		agenda_set(&line->client->agenda, &line->silence_alarm, line->alarm_at);
	}
}

void silence_clear(struct line *line) {
	agenda_clear(&line->client->agenda, &line->silence_alarm);
	line->owed = line->pinged = line->pong_due = line->overdue = false;
	line->wait_sent_at = line->read_until = (struct instant){ 0 };
}

void silence_sent(struct line *line, struct instant now, bool waits) {
	bool first = !line->owed;
	line->flights++;
	if (waits) {
		line->waits++;
		line->wait_sent_at = now;
	}
	if (first) {
		line->owed = true;
		line->silent_since = line->quiet_since = now;
		line->pinged = false;
		silence_reset(line);
	}
}

void silence_pinged(struct line *line) {
	line->ping_at = client_core_now(line->client);
	line->owed = line->pinged = line->pong_due = true;
}

void silence_ponged(struct line *line) {
	line->pong_due = false;
	line->read_until = line->ping_at;
}

void silence_heard(struct line *line) {
	line->silent_since = line->quiet_since = client_core_now(line->client);
	line->pinged = line->overdue = false;
}

/* The alarm stays where it is: it goes off early, and is set again then. */
void silence_settle(struct line *line) {
	bool unread = line->waits && line->wait_sent_at.boot > line->read_until.boot;
	line->owed = line->flights > line->waits || unread || line->pinged;
	if (!awaits_anything(line)) {
		agenda_clear(&line->client->agenda, &line->silence_alarm);
	} else if (!wheel_armed(&line->silence_alarm.timer)) {
		silence_reset(line);
	}
}

/* The node has not answered the ping so far. */
static void ping_unanswered(struct line *line, struct instant now) {
	if (now.boot >= lost_at(line)) {
		line_failed(line, PAWL_ETIMEOUT, "the node does not answer");
	} else if (may_leave(line) && !line->overdue
		&& instant_elapsed_short(now, line->ping_at) >= ping_limit(line)) {
		line->overdue = true;
		failover_overdue(line->client);
	}
}

void silence_ring(struct alarm *alarm) {
	struct line *line = CONTAINER_OF(alarm, struct line, silence_alarm);
	struct pawl *client = line->client;
	span_ns late = client_core_now(client).boot - line->alarm_at;
	bool stood_still = late > LATE_LEAST
		&& late > (line->alarm_at - line->alarm_set_at) / 4;
	/* What has arrived while this process did not look counts. */
	connection_read_now(&line->connection);
	if (client->dying || line->state != LINE_UP || !awaits_anything(line)) {
		return;
	}
	struct instant now = client_core_now(client);
	if (stood_still) {
		patience_late(&client->patience, late);
		line->quiet_since = now;
		line->ping_at = line->pinged ? now : line->ping_at;
	} else if (line->pinged) {
		ping_unanswered(line, now);
	} else if (instant_elapsed_short(now, line->quiet_since) >= quiet_limit(line)) {
		bool answers_due = line->flights > line->waits;
		line_ping(line);
		if (may_leave(line) && answers_due) {
			failover_probe(client);
		}
	}
	silence_reset(line);
}
