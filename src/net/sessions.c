#include "sessions_impl.h"

#include <event2/event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"
#include "time_source.h"

#define OUT_BYTES_MAX (20u << 20) /* more than the largest answer */
#define PAUSE_BYTES (256u << 10)  /* unsent answers above which no further requests are read */
#define OPENING_MAX (10 * SPAN_S) /* for the handshake */
#define SWEEP_S 1

struct session *sessions_find(const struct sessions *s, uint64_t client) {
	struct map_node *node = map_first(&s->by_id, client);
	return node ? CONTAINER_OF(node, struct session, node) : NULL;
}

struct session_who session_who(const struct session *session) {
	return (struct session_who){ .identity = slice_str(session->identity), .local = session->local, .inside = session->inside,
		.from = &session->from };
}

static void session_free(struct session *session) {
	struct sessions *s = session->all;
	list_remove(&session->among);
	list_remove(&session->dirty);
	strangers_remove(&s->strangers, &session->stranger);
	map_remove(&s->by_id, &session->node);
	stream_free(session->stream);
	alloc_free(s->loop->alloc, session, sizeof *session);
}

void session_end(struct session *session, const char *why) {
	struct sessions *s = session->all;
	uint64_t id = session->id;
	bool closed_there = !session->closing && stream_closed_there(session->stream);
	if (why) {
		session_trouble(session, why);
	}
	session_free(session);
	s->handlers->gone(s->ctx, id, closed_there);
}

static void session_mark(struct session *session) {
	if (!list_linked(&session->dirty)) {
		list_append(&session->all->dirty, &session->dirty);
	}
}

/* ---- requests ---- */

static int session_refuse(struct session *session, uint32_t msgid, const struct client_refusal *refusal) {
	session_mark(session);
	session->all->handlers->refused(session->all->ctx);
	return client_refusal_encode(msgid, refusal, stream_out(session->stream));
}

/* The last words: one refusal, behind what was answered already. */
static void session_refuse_and_close(struct session *session, uint32_t msgid, const struct client_refusal *refusal) {
	session_refuse(session, msgid, refusal); /* without memory it goes without */
	list_remove(&session->dirty);
	session->closing = true;
	stream_close(session->stream);
	session_trouble(session, refusal->message ? refusal->message : pawl_error_message(refusal->error));
}

/* 0, or a refusal that could not be written. The session may be gone. */
static int session_dispatch(struct session *session, const struct client_request *request, struct instant now) {
	struct sessions *s = session->all;
	strangers_remove(&s->strangers, &session->stranger);
	if (request->method != CLIENT_PING && session->open >= s->limits.requests_per_client) {
		const struct client_refusal busy = { .error = PAWL_EBUSY, .message = "too many requests of this connection are under way" };
		return session_refuse(session, request->msgid, &busy);
	}
	const struct session_who who = session_who(session);
	session->open++;
	session->requests++;
	s->handlers->request(s->ctx, session->id, &who, request, now);
	return 0;
}

/* False: nothing more is to be read from this connection. The session may be gone. */
static bool session_on_message(struct session *session, struct slice message, struct instant now) {
	struct sessions *s = session->all;
	uint64_t id = session->id;
	struct client_request request = { 0 };
	struct client_refusal refusal = { 0 };
	int error = client_request_decode(&s->decoder, message, &request, &refusal);
	if (error == PAWL_EPROTOCOL) {
		refusal.error = PAWL_EBADREQUEST;
		session_refuse_and_close(session, request.msgid, &refusal);
		return false;
	}
	if (error == PAWL_ENOMEM) {
		refusal = (struct client_refusal){ .error = PAWL_EBUSY, .message = "the node has no memory left for this request" };
	}
	int unsaid = error ? session_refuse(session, request.msgid, &refusal) : session_dispatch(session, &request, now);
	if (unsaid) {
		session_end(session, "out of memory"); /* better no connection than an answer that never comes */
	}
	return sessions_find(s, id) != NULL;
}

static ssize_t session_on_data(void *ctx, struct slice bytes, struct instant now) {
	static const struct client_refusal garbage = { .error = PAWL_EBADREQUEST, .message = "this is not MessagePack-RPC" };
	static const struct client_refusal too_large = { .error = PAWL_ETOOLARGE, .message = "the request is too large" };
	struct session *session = ctx;
	size_t taken = 0;
	session->heard = now;
	for (;;) {
		size_t size = 0;
		struct slice rest = slice_of(bytes.data + taken, bytes.size - taken);
		switch (client_scan(&session->scanner, &client_request_limits, rest, &size)) {
		case CLIENT_SCAN_MORE:
			return (ssize_t)taken;
		case CLIENT_SCAN_COMPLETE:
			taken += size;
			if (!session_on_message(session, slice_of(rest.data, size), now)) {
				return (ssize_t)bytes.size;
			}
			break;
		case CLIENT_SCAN_GARBAGE:
			session_refuse_and_close(session, 0, &garbage);
			return (ssize_t)bytes.size;
		case CLIENT_SCAN_TOO_LARGE:
			session_refuse_and_close(session, 0, &too_large);
			return (ssize_t)bytes.size;
		}
	}
}

/* ---- the stream's other events ---- */

/* Only a client's certificate speaks for a client: a node's, stolen from a disk, opens no door here. */
static void session_on_ready(void *ctx) {
	static const struct client_refusal denied = { .error = PAWL_EDENIED,
		.message = "the certificate is not a client's: it lacks the alternative name URI:pawl:client:NAME" };
	struct session *session = ctx;
	SSL *ssl = stream_ssl(session->stream);
	session->greeted = true;
	if (!ssl || session->auth == TLS_CLIENT_OFF || !tls_peer_has_certificate(ssl)) {
		return;
	}
	if (!tls_peer_name(ssl, TLS_PERSON, session->identity)) {
		session_refuse_and_close(session, 0, &denied);
		return;
	}
	strangers_remove(&session->all->strangers, &session->stranger);
}

static void session_on_closed(void *ctx, int error, const char *why) {
	struct session *session = ctx;
	session_end(session, error == PAWL_ECLOSED ? NULL : why ? why : pawl_error_message(error));
}

static void session_on_drained(void *ctx) {
	struct session *session = ctx;
	session->all->handlers->drained(session->all->ctx, session->id);
}

static const struct stream_handlers session_stream_handlers = { session_on_ready, session_on_data, session_on_closed,
	session_on_drained };

static void sessions_on_sweep(evutil_socket_t fd, short what, void *ctx) {
	struct sessions *s = ctx;
	(void)fd;
	(void)what;
	struct instant now = time_source_now();
	struct list *next;
	for (struct list *at = list_first(&s->among); at; at = next) {
		struct session *session = CONTAINER_OF(at, struct session, among);
		next = list_after(&s->among, at); /* session_end takes away none but its own */
		span_ns silent = instant_elapsed_short(now, session->heard);
		if (!session->greeted && silent > OPENING_MAX) {
			session_end(session, "the handshake took too long");
		} else if (session->open == 0 && !session->kept && s->limits.idle > 0 && silent > s->limits.idle) {
			session_end(session, NULL);
		}
	}
}

/* ---- the owner's calls ---- */

static struct session *sessions_add(struct sessions *s, int take_fd, SSL_CTX *tls, const struct origin *from) {
	const struct stranger newcomer = { .address = stranger_address_of(take_fd), .bytes = tls ? STRANGER_TLS_BYTES : STRANGER_PLAIN_BYTES };
	if (!sessions_make_room(s, &newcomer)) {
		close(take_fd);
		sessions_trouble(s, from, "too many clients");
		return NULL;
	}
	struct session *session = alloc_new(s->loop->alloc, sizeof *session);
	struct stream_options stream = { .loop = s->loop, .take_fd = take_fd, .tls = tls, .role = TLS_SERVER,
		.in_max = client_request_limits.bytes, .out_max = OUT_BYTES_MAX, .pause_above = PAUSE_BYTES,
		.handlers = &session_stream_handlers, .ctx = session };
	struct stream *made = NULL;
	int error = stream_new(&stream, &made); /* takes the socket, whatever happens */
	if (!session || error) {
		stream_free(made);
		alloc_free(s->loop->alloc, session, sizeof *session);
		sessions_trouble(s, from, "out of memory");
		return NULL;
	}
	*session = (struct session){ .all = s, .stranger = newcomer, .id = ++s->last_id, .stream = made, .heard = time_source_now(), .from = *from };
	session->since = session->heard;
	list_append(&s->among, &session->among);
	map_insert(&s->by_id, &session->node, session->id);
	return session;
}

void sessions_accept(struct sessions *s, int take_fd, SSL_CTX *tls, enum tls_client_auth auth, bool local,
	const struct origin *from) {
	struct session *session = sessions_add(s, take_fd, tls, from);
	if (session) {
		session->auth = auth;
		session->local = local;
		strangers_add(&s->strangers, &session->stranger);
	}
}

void sessions_accept_inside(struct sessions *s, int take_fd, const char *identity) {
	struct origin from;
	origin_named("inside", &from);
	struct session *session = sessions_add(s, take_fd, NULL, &from);
	if (session) {
		session->local = session->inside = true;
		snprintf(session->identity, sizeof session->identity, "%s", identity);
	}
}

struct buffer *sessions_answer(struct sessions *s, uint64_t client) {
	struct session *session = sessions_find(s, client);
	if (!session) {
		return NULL;
	}
	CHECK(session->open > 0);
	session->open--;
	if (session->closing) {
		return NULL;
	}
	session_mark(session);
	return stream_out(session->stream);
}

bool sessions_who(const struct sessions *s, uint64_t client, struct session_who *out) {
	const struct session *session = sessions_find(s, client);
	if (session) {
		*out = session_who(session);
	}
	return session;
}

struct buffer *sessions_notify(struct sessions *s, uint64_t client) {
	struct session *session = sessions_find(s, client);
	if (!session || session->closing) {
		return NULL;
	}
	session_mark(session);
	return stream_out(session->stream);
}

size_t sessions_backlog(const struct sessions *s, uint64_t client) {
	const struct session *session = sessions_find(s, client);
	return session ? stream_backlog(session->stream) : 0;
}

void sessions_keep(struct sessions *s, uint64_t client, bool keep) {
	struct session *session = sessions_find(s, client);
	if (session) {
		session->kept = keep;
	}
}

void sessions_drop(struct sessions *s, uint64_t client) {
	struct session *session = sessions_find(s, client);
	if (session) {
		session_free(session);
	}
}

void sessions_flush(struct sessions *s) {
	struct list *first;
	while ((first = list_first(&s->dirty)) != NULL) {
		struct session *session = CONTAINER_OF(first, struct session, dirty);
		list_remove(&session->dirty);
		if (stream_flush(session->stream) != 0) {
			session_end(session, NULL);
		}
	}
}

void sessions_end_revoked(struct sessions *s, SSL_CTX *now) {
	struct list *next;
	char why[TLS_WHY_BYTES];
	for (struct list *at = list_first(&s->among); at; at = next) {
		struct session *session = CONTAINER_OF(at, struct session, among);
		SSL *ssl = stream_ssl(session->stream);
		next = list_after(&s->among, at); /* session_end takes away none but its own */
		if (ssl && tls_peer_objection(ssl, now, why)) {
			session_end(session, why);
		} else if (ssl && !session->greeted) {
			session_end(session, "it began before the certificates were reloaded");
		}
	}
}

uint32_t sessions_count(const struct sessions *s) {
	return (uint32_t)s->by_id.count;
}

/* ---- life ---- */

void sessions_set_limits(struct sessions *s, const struct sessions_limits *limits) {
	s->limits = *limits;
}

int sessions_new(const struct sessions_options *o, struct sessions **out) {
	static const struct timeval second = { SWEEP_S, 0 };
	struct sessions *s = alloc_new(o->loop->alloc, sizeof *s);
	if (!s) {
		return PAWL_ENOMEM;
	}
	*s = (struct sessions){ .loop = o->loop, .limits = o->limits, .handlers = o->handlers, .ctx = o->ctx };
	list_init(&s->among);
	list_init(&s->dirty);
	strangers_init(&s->strangers);
	client_decoder_init(&s->decoder, o->loop->alloc);
	s->sweep = event_new(o->loop->base, -1, EV_PERSIST, sessions_on_sweep, s);
	if (map_init(&s->by_id, o->loop->alloc) != 0 || !s->sweep || event_add(s->sweep, &second) != 0) {
		sessions_free(s);
		return PAWL_ENOMEM;
	}
	*out = s;
	return 0;
}

void sessions_free(struct sessions *s) {
	if (!s) {
		return;
	}
	struct list *first;
	while ((first = list_first(&s->among)) != NULL) {
		session_free(CONTAINER_OF(first, struct session, among));
	}
	if (s->sweep) {
		event_free(s->sweep);
	}
	map_done(&s->by_id);
	client_decoder_done(&s->decoder);
	alloc_free(s->loop->alloc, s, sizeof *s);
}
