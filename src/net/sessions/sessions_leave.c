/* sessions_leave.c: ends connections, over some turns if they have much. */
#include "sessions_impl.h"

#include "time_source.h"

/* A connection that is closed ends at once if its weight is at most this, and all that have ended
 * in this turn weigh no more than LEAVES_A_TURN. Otherwise it has to wait for a turn. */
#define LEAVES_AT_ONCE 33
/* The weight of closing the socket. */
#define END_WEIGHT 8
/* What the connections that end in one turn may weigh together. */
#define LEAVES_A_TURN 128
/* The weight of the waiting connections that end in each turn in any case, even if others have used
 * up LEAVES_A_TURN by ending at once. */
#define LEAVES_LATE (LEAVES_A_TURN / 4)
/* How many bytes that are given back weigh as much as a request or a watch that is forgotten. */
#define MEMORY_AS_ONE (2u << 10)

void session_count_leaving(const struct session *session, int count) {
	if (session->share.identity) {
		session->share.identity->leaving += (uint32_t)count;
	}
	if (session->share.address) {
		session->share.address->leaving += (uint32_t)count;
	}
}

void session_end(struct session *session, const char *why) {
	struct sessions *s = session->all;
	uint64_t id = session->id;
	bool closed_there = session->left
		|| (!session->closing && stream_closed_there(session->stream));
	if (why) {
		session_trouble(session, why);
	}
	session_free(session);
	s->handlers->gone(s->ctx, id, closed_there);
}

/* Returns the part of the weight that is not for requests and watches. */
static uint64_t session_end_weight(const struct session *session) {
	return END_WEIGHT + session->memory->used / MEMORY_AS_ONE;
}

uint64_t session_weight(const struct session *session) {
	return session_end_weight(session) + session->open + session->watches;
}

/* Thousands of requests or watches that end at once would keep the others waiting. So connections
 * that have many of them end one by one, and only a few of the others end in each turn. */
void session_leave(struct session *session, const char *why) {
	struct sessions *s = session->all;
	uint64_t weight = session_weight(session);
	if (list_linked(&session->leaving)) {
		/* The connection broke while writing, and now its end is read as well. */
		return;
	}
	if (session->use && !session_dialect_leave(session)) {
		return;
	}
	if (weight <= LEAVES_AT_ONCE && s->ended + weight <= LEAVES_A_TURN) {
		s->ended += weight;
		session_end(session, why);
		return;
	}
	if (why) {
		session_trouble(session, why);
	}
	session->left = !session->closing && stream_closed_there(session->stream);
	session->closing = true;
	list_remove(&session->dirty);
	if (fair_waits(&session->flow)) {
		session_stop_waiting(session);
	}
	list_append(&s->leaving, &session->leaving);
	session_count_leaving(session, 1);
	s->handlers->ready(s->ctx);
}

/* Forgets some of the requests and watches of a connection that waits for its end, or gives back
 * some of its memory, or ends it if little is left of these. Returns how much that weighs, at most
 * `most`. */
static uint64_t session_leave_some(struct session *session, uint64_t most) {
	struct sessions *s = session->all;
	uint64_t weight = s->handlers->forget(s->ctx, session->id, (uint32_t)most);
	if (weight < most) {
		weight += stream_shed(session->stream, (most - weight) * MEMORY_AS_ONE)
			/ MEMORY_AS_ONE;
	}
	if (weight < most) {
		weight += session_end_weight(session);
		session_end(session, NULL);
	}
	return weight < most ? weight : most;
}

void sessions_end_leaving(struct sessions *s) {
	uint64_t left = LEAVES_A_TURN - s->ended;
	struct list *first = list_first(&s->leaving);
	s->ended = 0;
	if (!first) {
		return;
	}
	const struct instant begun = time_source_now();
	left = left < LEAVES_LATE ? LEAVES_LATE : left;
	while (left > 0 && (first = list_first(&s->leaving)) != NULL) {
		left -= session_leave_some(CONTAINER_OF(first, struct session, leaving), left);
	}
	s->spent += instant_elapsed_short(time_source_now(), begun);
}
