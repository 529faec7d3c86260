/* sessions_serve.c: hands over the requests that have arrived, a few of each connection at a time.
 *
 *   socket --(one read a turn, held in the stream)--> waiting
 *          --(share's turn, connection's turn)--> request()
 */
#include "sessions_impl.h"

#include "check.h"
#include "pawl/error.h"
#include "time_source.h"

/* How long the requests of one turn may take while several connections ask; then peers and timers
 * come first again. */
#define TURN_SHARED (SPAN_MS / 4)
/* The same while a connection that asks for little shares the node with one that asks for much, and
 * how long after the last such moment it applies. */
#define TURN_SHORT (SPAN_MS / 16)
#define SHORT_FOR SPAN_S
/* The same for a connection that is alone, and how long no other connection must have made a
 * request for that. The more requests leave in one frame, the cheaper they are, so this connection
 * gets more time. */
#define TURN_ALONE (2 * SPAN_MS)
#define ALONE_AFTER SPAN_S
/* How long it will take to write the answers of a turn to one connection, however few they are. It
 * is taken off the turn for each connection that is served. */
#define WRITE_TIME (4 * SPAN_US)
/* How many simple requests are served before the clock is read again. */
#define LOOK_EVERY 8
/* How many locks of an `extend` are served in one piece. */
#define PIECE 32
/* How many locks of an `extend` are decoded in one piece. */
#define DECODE_PIECE 128
/* The cost of decoding one piece of an `extend`. */
#define DECODE_COST 8
/* How long reading takes that costs as much as a simple request. */
#define READ_TIME (4 * SPAN_US)

/* ---- one request ---- */

void sessions_init_decoder(struct sessions *s) {
	client_decoder_init(&s->decoder, s->loop->alloc);
	s->decoder.piece = DECODE_PIECE;
}

/* Keeps the request as it was decoded, with the memory that the decoder has used for it. */
static int session_begin_batch(struct session *session, size_t size,
	const struct client_request *request) {
	struct sessions *s = session->all;
	struct session_batch *batch = alloc_new(&session->memory->alloc, sizeof *batch);
	if (!batch) {
		return PAWL_ENOMEM;
	}
	session->batch = batch;
	batch->size = size;
	batch->request = *request;
	/* The label was in the request itself; an `extend` has none. */
	batch->request.core.label = slice_of(NULL, 0);
	batch->decoder = s->decoder;
	sessions_init_decoder(s);
	memory_claim(session->memory, MEMORY_BATCH, client_decoder_bytes(&batch->decoder));
	return 0;
}

/* The session may refuse and close. */
static void session_refuse_message(struct session *session, uint32_t msgid, size_t size, int error,
	struct client_refusal *refusal) {
	if (error == PAWL_EPROTOCOL) {
		refusal->error = PAWL_EBADREQUEST;
		session_refuse_and_close(session, msgid, refusal);
		return;
	}
	if (error == PAWL_ENOMEM) {
		*refusal = (struct client_refusal){ .error = PAWL_EBUSY,
			.message = "this node has no memory left for this request" };
	}
	error = session_refuse(session, msgid, refusal);
	/* The bytes are taken only now, because the refusal may have borrowed from them. */
	stream_take(session->stream, size);
	if (error) {
		session_end(session, "out of memory");
	}
}

/* Decodes one more piece. No part of the request is done before all of it is understood. */
static void session_decode_batch(struct session *session) {
	struct session_batch *batch = session->batch;
	struct client_refusal refusal = { 0 };
	session_charge(session, DECODE_COST);
	int error = client_request_go_on(&batch->decoder,
		slice_of(stream_input(session->stream).data, batch->size),
		&batch->request, &refusal);
	memory_claim(session->memory, MEMORY_BATCH, client_decoder_bytes(&batch->decoder));
	if (error) {
		const uint32_t msgid = batch->request.msgid;
		const size_t size = batch->size;
		session_batch_free(session);
		session_refuse_message(session, msgid, size, error, &refusal);
	}
}

/* The session may be gone afterwards. */
static void session_on_batch(struct session *session, struct instant now) {
	struct sessions *s = session->all;
	struct session_batch *batch = session->batch;
	uint64_t id = session->id;
	if (batch->decoder.rest.left > 0) {
		session_decode_batch(session);
		return;
	}
	batch->progress.most = PIECE;
	session_charge(session, PIECE);
	int unsaid = session_dispatch(session, &batch->request, &batch->progress, now);
	session = sessions_find(s, id);
	if (session && unsaid) {
		session_end(session, "out of memory");
	} else if (session && batch->progress.done >= batch->request.lock_count) {
		stream_take(session->stream, batch->size);
		session_batch_free(session);
	}
}

static void session_on_request(struct session *session, struct slice message,
	const struct client_request *request, struct instant now) {
	struct session_progress whole = { .most = SIZE_MAX };
	uint64_t id = session->id;
	struct sessions *s = session->all;
	int error = 0;
	if (request->lock_count > PIECE) {
		error = session_begin_batch(session, message.size, request);
		if (!error) {
			session_on_batch(session, now);
			return;
		}
	}
	session_charge(session,
		session_cost_of(request, message.size) + (int64_t)request->lock_count);
	if (error) {
		const struct client_refusal busy = { .error = PAWL_EBUSY,
			.message = "this node has no memory left for this request" };
		error = session_refuse(session, request->msgid, &busy);
	} else {
		error = session_dispatch(session, request, &whole, now);
	}
	session = sessions_find(s, id);
	if (session) {
		stream_take(session->stream, message.size);
	}
	if (session && error) {
		/* It is better to have no connection than an answer that never comes. */
		session_end(session, "out of memory");
	}
}

/* The session may be gone afterwards, or may have refused and closed. */
static void session_on_message(struct session *session, struct slice message, struct instant now) {
	struct client_request request;
	struct client_refusal refusal = { 0 };
	int error = client_request_decode(&session->all->decoder, message, &request, &refusal);
	if (!error) {
		session_on_request(session, message, &request, now);
		return;
	}
	session_charge(session, session_cost_of(&request, message.size));
	session_refuse_message(session, request.msgid, message.size, error, &refusal);
}

/* Serves any request, or what is none. Returns false if no complete request is there. */
static bool session_serve_any(struct session *session, struct slice input, struct instant now) {
	static const struct client_refusal garbage = { .error = PAWL_EBADREQUEST,
		.message = "this is not MessagePack-RPC (clients of Redis and memcached need an "
			"address of their own: [node] listen_redis, listen_memcached)" };
	static const struct client_refusal too_large = { .error = PAWL_ETOOLARGE,
		.message = "the request is too large" };
	size_t size = 0;
	switch (client_scan(&session->scanner, &client_request_limits, input, &size)) {
	case CLIENT_SCAN_MORE:
		return false;
	case CLIENT_SCAN_COMPLETE:
		session_on_message(session, slice_of(input.data, size), now);
		return true;
	case CLIENT_SCAN_GARBAGE:
		session_refuse_and_close(session, 0, &garbage);
		return true;
	case CLIENT_SCAN_TOO_LARGE:
		session_refuse_and_close(session, 0, &too_large);
		return true;
	}
	CHECK(false);
}

/* Returns false if no complete request is there. */
static bool session_serve_one(struct session *session, struct instant now) {
	struct client_request request;
	if (session->use) {
		return session_dialect_serve(session, now);
	}
	if (session->batch) {
		session_on_batch(session, now);
		return true;
	}
	const struct slice input = stream_input(session->stream);
	if (input.size == 0) {
		return false;
	}
	/* Most requests are short, right, and there with their first bytes. */
	const size_t size = session->scanner.position == 0
		? client_request_decode_short(&session->all->decoder, input, &request) : 0;
	if (size == 0) {
		return session_serve_any(session, input, now);
	}
	session_on_request(session, slice_of(input.data, size), &request, now);
	return true;
}

/* ---- a turn ---- */

static void session_end_turn(struct session *session, bool more) {
	struct sessions *s = session->all;
	session_stop_waiting(session);
	if (!more && !session->closing && !stream_is_paused(session->stream)) {
		s->content = s->content || session->flow.credit > 0;
		if (stream_is_held(session->stream)
			&& !(session->use && session_dialect_is_full(session))) {
			stream_release(session->stream);
		}
	}
}

static void sessions_serve_next(struct sessions *s, struct fair_flow *share, struct instant now) {
	struct fair_flow *flow = fair_next(&CONTAINER_OF(share, struct share, flow)->ready);
	struct session *session = CONTAINER_OF(flow, struct session, flow);
	struct stream *stream = session->stream;
	uint64_t id = session->id;
	s->latest = session;
	if (s->served != id) {
		s->served = id;
		s->shared = now;
	}
	s->served_now += session->served_in != s->turn;
	session->served_in = s->turn;
	/* The bytes of the request belong to the stream. */
	stream_enter(stream);
	/* The answer of a dialect may have held what had arrived before; that comes first. */
	if (session->unread && !stream_is_paused(stream) && !stream_is_held(stream)) {
		session->unread = false;
		stream_read_late(stream);
		session = sessions_find(s, id);
	}
	bool more = session && session_has_work(session) && session_serve_one(session, now);
	session = sessions_find(s, id);
	if (session && (session->closing || stream_is_paused(stream) || !more
		|| session_has_enough(session))) {
		session_end_turn(session, more);
	}
	stream_leave(stream);
}

/* Returns how long this turn may take. A request waits for the turn before its own, and so do the
 * answers of peers to it. Short turns cost more, and serve those that ask for little sooner.
 *
 * *out_spent is how much of the turn has already been used by other work: writing, reading at once,
 * and forgetting what has left. Not all of it: answers may come without end that no request of this
 * turn has asked for, and everybody must be served. */
static span_ns sessions_begin_turn(struct sessions *s, struct instant now, span_ns *out_spent) {
	const bool alone = instant_elapsed_short(now, s->shared) > ALONE_AFTER;
	s->short_turns = !alone && instant_elapsed_short(now, s->mixed) < SHORT_FOR;
	const span_ns most = (alone ? TURN_ALONE : s->short_turns ? TURN_SHORT : TURN_SHARED)
		+ handshakes_take_owed(&s->loop->handshakes);
	const span_ns spent = s->spent + s->read_cost * READ_TIME, some = most / 4 * 3;
	*out_spent = spent < some ? spent : some;
	s->spent = 0;
	s->expected -= s->expected < most ? s->expected : most;
	s->turn++;
	s->read_at_once = s->served_now = 0;
	return most;
}

bool sessions_turns_are_short(const struct sessions *s) {
	/* Since then, there may have been no request that waited for a turn. */
	return s->short_turns && instant_elapsed_short(time_source_now(), s->mixed) < SHORT_FOR;
}

/* Returns whether the next request may be handed over in this turn, of which so much time is left.
 * The later work on values is taken off the turn, and what is over off the next turns; and so is
 * the time `spent`, but not for a connection that has asked for little. */
static bool sessions_has_time(const struct sessions *s, struct fair_flow *share, span_ns left,
	span_ns spent) {
	struct fair_queue *ready = &CONTAINER_OF(share, struct share, flow)->ready;
	return s->expected + spent < left
		|| (left > 0 && fair_next(ready) && !list_empty(&ready->fresh));
}

bool sessions_serve(struct sessions *s) {
	if (s->memory.high) {
		sessions_make_memory(s);
	}
	if (s->ended || !list_empty(&s->leaving)) {
		sessions_end_leaving(s);
	}
	if (list_empty(&s->ready.fresh) && list_empty(&s->ready.rest)) {
		return !list_empty(&s->leaving);
	}
	struct fair_flow *share = fair_next(&s->ready);
	struct instant now = time_source_now(), begun = now;
	span_ns spent;
	const span_ns most = sessions_begin_turn(s, now, &spent);
	while (share && sessions_has_time(s, share, most - instant_elapsed_short(now, begun)
		- s->served_now * WRITE_TIME, spent)) {
		sessions_serve_next(s, share, now);
		if (s->unlooked >= LOOK_EVERY) {
			s->unlooked = 0;
			now = time_source_now();
		}
		share = fair_next(&s->ready);
	}
	s->read_cost = 0;
	/* A flow that got all that it asked for, and has credit left, met one that waits in
	 * debt. */
	if (s->content && share
		&& !list_empty(&CONTAINER_OF(share, struct share, flow)->ready.rest)) {
		s->mixed = now;
	}
	s->content = false;
	return share || !list_empty(&s->leaving);
}
