/* sessions_leave.c: ends connections, over some turns if they have much. */
#include "sessions_impl.h"

#include <stdio.h>

#include "time_source.h"

/* How many requests under way or watches cost as much to forget as a simple request. */
#define FORGOTTEN_A_COST 8
/* The weight of closing the socket. */
#define END_WEIGHT 8
/* How many bytes that are given back weigh as much as a request or a watch that is forgotten. */
#define MEMORY_AS_ONE (2u << 10)
/* A connection that is closed ends at once if its weight is at most this, and all that have ended
 * in this turn weigh no more than LEAVES_A_TURN. Otherwise it has to wait for a turn. */
#define LEAVES_AT_ONCE 33
/* What the connections that end in one turn may weigh together. */
#define LEAVES_A_TURN 128
/* The weight of the waiting connections that end in each turn in any case, even if others have used
 * up LEAVES_A_TURN by ending at once. */
#define LEAVES_LATE (LEAVES_A_TURN / 4)

/* The weight of a connection that ends is how much is to be forgotten with it: itself, the requests
 * under way, and the watches. Returns the part of it that is for itself. */
static uint64_t session_end_weight(const struct session *session) {
	return END_WEIGHT + session->memory->used / MEMORY_AS_ONE;
}

static uint64_t session_weight(const struct session *session) {
	return session_end_weight(session) + session->open + session->watches;
}

/* Counts the session among those of its shares that are leaving, or with -1 no longer. */
static void session_count_leaving(const struct session *session, int count) {
	if (session->share.identity) {
		session->share.identity->leaving += (uint32_t)count;
	}
	if (session->share.address) {
		session->share.address->leaving += (uint32_t)count;
	}
}

void session_batch_free(struct session *session) {
	if (session->batch) {
		client_decoder_done(&session->batch->decoder);
		memory_claim(session->memory, MEMORY_BATCH, 0);
		alloc_free(&session->memory->alloc, session->batch, sizeof *session->batch);
		session->batch = NULL;
	}
}

/* Takes what the session counts for out of its shares. */
static void session_give_back(struct session *session) {
	session_stop_waiting(session);
	session_values_gone(session);
	if (session->share.identity) {
		/* The owner hears that the session is gone, and answers none of its requests. */
		shares_give(&session->share, SHARE_REQUESTS, session->open);
		shares_give(&session->share, SHARE_WATCHES, session->watches);
		shares_give(&session->share, SHARE_CLIENTS, 1);
	}
}

/* Notes what it costs to end the session, for the log. */
static void session_note_end(struct session *session) {
	struct sessions *s = session->all;
	session_note_cost(session, (int64_t)(session_weight(session) / FORGOTTEN_A_COST));
	if (s->costliest == session->id) {
		snprintf(s->gone.identity, sizeof s->gone.identity, "%s", session->identity);
		s->gone.from = session->from;
		s->gone.method = session->method;
		s->gone.local = session->local;
		s->gone.inside = session->inside;
	}
}

void session_free(struct session *session) {
	struct sessions *s = session->all;
	session_note_end(session);
	if (list_linked(&session->leaving)) {
		session_count_leaving(session, -1);
	}
	list_remove(&session->among);
	list_remove(&session->dirty);
	list_remove(&session->starved);
	list_remove(&session->leaving);
	strangers_remove(&s->strangers, &session->stranger);
	map_remove(&s->by_id, &session->node);
	s->latest = s->latest == session ? NULL : s->latest;
	s->by_listener[session->from.listener]--;
	session_give_back(session);
	session_batch_free(session);
	session_dialect_close(session);
	stream_free(session->stream);
	struct memory_account *memory = session->memory;
	alloc_free(&memory->alloc, session, sizeof *session);
	memory_close(memory);
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
	session_stop_waiting(session);
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
