/* sessions_dialect.c: connections whose clients speak another protocol (dialect.h).
 *
 *   socket --(the stream)--> serve() --(a request)--> the owner
 *   socket <--(the stream)-- answer() <--(session.answers)--
 *
 * One command is served after the other, so that they have the effect that their order promises.
 * Each request of a command waits for the turn of its connection, as those of other clients do.
 */
#include "sessions_impl.h"

#include "check.h"
#include "pawl/error.h"
#include "time_source.h"

/* While a command is under way, this many bytes of the next ones may arrive before nothing more is
 * read. */
#define DIALECT_INPUT_MAX (64u << 10)
/* The same while it may wait for others; more ends the connection. What is not read hides that the
 * client has gone, and it would be granted what it waits for. */
#define DIALECT_WAIT_INPUT_MAX (1u << 20)
/* How much memory the scratch buffer for answers keeps. */
#define DIALECT_KEEP_BYTES 1024u

bool session_dialect_open(struct session *session, const struct dialect_use *use) {
	session->use = use;
	buffer_init(&session->answers, &session->memory->alloc, SESSIONS_OUT_BYTES_MAX);
	session->out = &session->answers;
	session->dialect = use->dialect->open(&session->memory->alloc, use->node, use->server,
		session->id, session->from.address);
	return session->dialect != NULL;
}

void session_dialect_close(struct session *session) {
	if (session->dialect) {
		session->use->dialect->close(session->dialect);
		session->dialect = NULL;
	}
	if (session->use) {
		buffer_done(&session->answers);
	}
}

/* Returns whether the next command has to wait. */
static bool session_dialect_waits(const struct session *session) {
	return session->asked || session->next || session->unsent;
}

bool session_dialect_is_full(const struct session *session) {
	return session_dialect_waits(session)
		&& stream_input(session->stream).size
			> (session->asks_to_wait ? DIALECT_WAIT_INPUT_MAX : DIALECT_INPUT_MAX);
}

static int session_dialect_dispatch(struct session *session, const struct client_request *request,
	struct instant now) {
	struct session_progress whole = { .most = SIZE_MAX };
	/* The bytes of the command were charged when it was served. */
	session_charge(session, session_cost_of(request, 0));
	return session_dispatch(session, request, &whole, now);
}

/* Makes the request. The session may be gone afterwards. */
static void session_dialect_ask(struct session *session, const struct client_request *request,
	struct instant now) {
	struct sessions *s = session->all;
	const uint64_t id = session->id;
	session->asked = true;
	session->asks_to_wait = request->core.wait > 0;
	if (session_dialect_dispatch(session, request, now) != 0 && sessions_find(s, id)) {
		session_leave(session, "out of memory");
	}
}

/* Does what a step demands. The session may be gone afterwards. */
static void session_dialect_act(struct session *session, enum dialect_step step,
	const struct client_request *request, struct instant now) {
	session_mark(session);
	switch (step) {
	case DIALECT_MORE:
		break;
	case DIALECT_TOLD:
	case DIALECT_DONE:
		session->unsent = session->unsent || step == DIALECT_TOLD;
		if (list_linked(&session->stranger.in)) {
			strangers_remove(&session->all->strangers, &session->stranger);
		}
		break;
	case DIALECT_ASK:
		session_dialect_ask(session, request, now);
		break;
	case DIALECT_CLOSE:
		list_remove(&session->dirty);
		session->closing = true;
		stream_close(session->stream);
		break;
	case DIALECT_BROKEN:
		/* The client has not been told of what it may have taken. */
		session->unsent = true;
		session_leave(session, "out of memory");
		break;
	}
}

bool session_dialect_serve(struct session *session, struct instant now) {
	struct sessions *s = session->all;
	const uint64_t id = session->id;
	const struct client_request *request = NULL;
	size_t taken = 0;
	if (session->next) {
		request = session->next;
		session->next = NULL;
		session_dialect_ask(session, request, now);
		return false;
	}
	if (session_dialect_waits(session)) {
		if (session->asks_to_wait && session_dialect_is_full(session)) {
			session_leave(session, "more than 1 MiB sent behind a command that waits");
		}
		return false;
	}
	const enum dialect_step step = session->use->dialect->serve(session->dialect,
		stream_input(session->stream), &taken, stream_out(session->stream), &request);
	session_charge(session, 1 + (int64_t)(taken / SESSIONS_BYTES_A_COST));
	session_dialect_act(session, step, request, now);
	session = sessions_find(s, id);
	/* A connection that is being closed drops what has arrived. */
	if (session && !session->closing) {
		stream_take(session->stream, taken);
	}
	return session && step == DIALECT_DONE;
}

/* Serves what has arrived behind a command that took its time. */
static void session_dialect_go_on(struct session *session) {
	if (!session->closing && !session_dialect_waits(session)
		&& stream_input(session->stream).size > 0) {
		stream_hold(session->stream);
		session_wait(session);
	}
}

void session_dialect_sent(struct session *session) {
	session->unsent = false;
	session->use->dialect->sent(session->dialect);
	session_dialect_go_on(session);
}

bool session_dialect_flush(struct session *session) {
	struct sessions *s = session->all;
	const uint64_t id = session->id;
	while (session && session->answers.size > 0) {
		const struct client_request *request = NULL;
		CHECK(session->asked);
		session->asked = session->asks_to_wait = false;
		const enum dialect_step step = session->use->dialect->answer(session->dialect,
			buffer_slice(&session->answers), stream_out(session->stream), &request);
		buffer_clear(&session->answers);
		buffer_trim(&session->answers, DIALECT_KEEP_BYTES);
		if (step == DIALECT_ASK && !session_is_urgent(request) && !request->gives_back) {
			/* Otherwise a command with many keys would be served in one go, however
			 * large their values are and whoever else asks. */
			session->next = request;
			session_wait(session);
			return true;
		}
		session_dialect_act(session, step, request, time_source_now());
		session = sessions_find(s, id);
		if (session) {
			session_dialect_go_on(session);
		}
	}
	return session && !session->closing;
}

bool session_dialect_leave(struct session *session) {
	struct sessions *s = session->all;
	const uint64_t id = session->id;
	const struct client_request *request;
	while (session && session_dialect_waits(session)
		&& (request = session->use->dialect->leave(session->dialect)) != NULL) {
		/* Nobody reads the answer, so it does not matter if there is none. */
		(void)session_dialect_dispatch(session, request, time_source_now());
		session = sessions_find(s, id);
	}
	if (session) {
		session->asked = session->asks_to_wait = session->unsent = false;
		session->next = NULL;
		buffer_clear(&session->answers);
	}
	return session != NULL;
}
