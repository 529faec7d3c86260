/* sessions_flush.c: writes answers and events to connections, for a part of each turn. */
#include "sessions_impl.h"

#include "time_source.h"

/* How many small writes come before the clock is read, and how many bytes take as long as one. */
#define WRITES_A_LOOK 4
#define BYTES_A_WRITE (8u << 10)
/* For how long answers are written to connections in one turn. */
#define FLUSH_MAX (SPAN_MS / 8)

void session_on_drained(void *ctx) {
	struct session *session = ctx;
	if (session->unsent) {
		session_dialect_sent(session);
	}
	session_wait(session);
	if (session->crowded) {
		session->crowded = false;
		session->all->handlers->drained(session->all->ctx, session->id);
	}
}

static void session_flush(struct session *session) {
	list_remove(&session->dirty);
	if (session->use && !session_dialect_flush(session)) {
		return;
	}
	list_remove(&session->dirty);
	struct stream *stream = session->stream;
	/* Answers cost by their size. */
	const uint64_t before = session->charged,
		all = stream_counts(stream).sent + stream_backlog(stream);
	session->charged = all;
	session_charge(session,
		(int64_t)((all > before ? all - before : 0) / SESSIONS_BYTES_A_COST));
	int broken = stream_flush(stream);
	if (session->tls) {
		session_claim_tls(session);
	}
	if (broken) {
		session_leave(session, NULL);
		return;
	}
	if (stream_backlog(stream) == 0) {
		session_on_drained(session);
	} else {
		/* It may have been behind, but not so far that it is paused. */
		session_wait(session);
	}
}

/* Those with little to write come first, so that their answers do not wait for the many bytes of
 * others. Returns the next one, or NULL. */
static struct list *flush_next(struct sessions *s, bool little) {
	struct list *first;
	while (little && (first = list_first(&s->dirty)) != NULL) {
		const struct session *session = CONTAINER_OF(first, struct session, dirty);
		if (stream_backlog(session->stream) <= BYTES_A_WRITE) {
			return first;
		}
		list_remove(first);
		list_append(&s->bulk, first);
	}
	first = list_first(&s->bulk);
	return first ? first : list_first(&s->dirty);
}

/* Most often there is little to write, and the clock is not read. Otherwise the time that writing
 * takes is taken off the next turn (sessions_serve.c), and the rest is written in the next ones. */
void sessions_flush(struct sessions *s) {
	struct instant begun = { 0, 0 };
	span_ns took = 0;
	uint64_t unlooked = 0;
	struct list *first;
	if (list_empty(&s->dirty) && list_empty(&s->bulk)) {
		return;
	}
	while ((first = flush_next(s, took < FLUSH_MAX / 4 * 3)) != NULL && took < FLUSH_MAX) {
		struct session *session = CONTAINER_OF(first, struct session, dirty);
		unlooked += 1 + stream_backlog(session->stream) / BYTES_A_WRITE;
		if (unlooked >= WRITES_A_LOOK && begun.boot == 0) {
			begun = time_source_now();
		}
		session_flush(session);
		if (unlooked >= WRITES_A_LOOK) {
			took = instant_elapsed_short(time_source_now(), begun);
			unlooked = 0;
		}
	}
	s->spent += took;
	if (first) {
		s->handlers->ready(s->ctx);
	}
}
