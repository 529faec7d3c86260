/* sessions.c: the life of clients' connections, and what their owner asks for. sessions_impl.h says
 * what the other files do.
 */
#include "sessions_impl.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "pawl/error.h"
#include "rights.h"
#include "time_source.h"

/* If more bytes of answers than this are unsent, no further requests are read. */
#define PAUSE_BYTES (256u << 10)
/* How long a handshake may take. */
#define OPENING_MAX (10 * SPAN_S)
/* How long a client may go without reading what was written to it. */
#define STUCK_MAX (30 * SPAN_S)
/* How often all connections are checked, in seconds. */
#define SWEEP_S 1

/* ---- the stream's events ---- */

/* Lets in only clients with a client's certificate. The certificate of a node, which may have been
 * stolen from a disk, is refused. */
static void session_on_ready(void *ctx) {
	static const struct client_refusal denied = { .error = PAWL_EDENIED,
		.message = "this is not a client's certificate: it lacks the alternative name "
			"URI:pawl:client:NAME" };
	static const struct client_refusal reserved = { .error = PAWL_EDENIED,
		.message = "the name in the certificate is reserved for clients without a "
			"certificate: make one with another name" };
	struct session *session = ctx;
	SSL *ssl = stream_ssl(session->stream);
	if (session->closing) {
		/* Its handshake took too long, and then came to its end in the same turn. */
		return;
	}
	session->greeted = true;
	bool shown = ssl && session->auth != TLS_CLIENT_OFF && tls_peer_has_certificate(ssl);
	if (shown) {
		bool named = tls_peer_name(ssl, TLS_NAME_CLIENT, session->identity);
		if (!named || rights_name_reserved(slice_str(session->identity))) {
			session_refuse_and_close(session, 0, named ? &reserved : &denied);
			return;
		}
	}
	/* A session that was refused remains a stranger: it counts for nobody's share. */
	if (session_join(session) && shown) {
		strangers_remove(&session->all->strangers, &session->stranger);
	}
}

static void session_on_closed(void *ctx, int error, const char *why) {
	struct session *session = ctx;
	const char *trouble = error == PAWL_ECLOSED ? NULL : why ? why : pawl_error_message(error);
	session_leave(session, trouble);
}

/* The rest is written when sessions_flush has time for it. */
static void session_on_writable(void *ctx) {
	struct session *session = ctx;
	if (!session->closing) {
		session_mark(session);
		session->all->handlers->ready(session->all->ctx);
	}
}

static const struct stream_handlers session_stream_handlers = { .ready = session_on_ready,
	.closed = session_on_closed, .drained = session_on_drained, .room = session_room,
	.turn = session_reads_now, .received = session_on_received,
	.writable = session_on_writable };

/* Returns whether the client has not read anything for too long. Its answers and events would stay
 * in memory for as long as it likes. */
static bool session_is_stuck(struct session *session, struct instant now) {
	const uint64_t sent = stream_counts(session->stream).sent;
	bool idle = stream_backlog(session->stream) == 0;
	if (idle && sent == session->sent) {
		stream_tidy(session->stream);
		if (session->tls) {
			session_claim_tls(session);
		}
	}
	if (idle || sent != session->sent) {
		session->stuck = now;
	}
	session->sent = sent;
	return instant_elapsed_short(now, session->stuck) > STUCK_MAX;
}

static void sessions_on_sweep(evutil_socket_t fd, short what, void *ctx) {
	struct sessions *s = ctx;
	(void)fd;
	(void)what;
	struct instant now = time_source_now();
	struct list *next;
	shares_sweep(&s->shares, now);
	s->heaviest = NULL;
	for (struct list *at = list_first(&s->among); at; at = next) {
		struct session *session = CONTAINER_OF(at, struct session, among);
		/* session_leave removes no session but its own. */
		next = list_after(&s->among, at);
		span_ns silent = instant_elapsed_short(now, session->heard);
		if (!session->greeted && silent > OPENING_MAX) {
			session_leave(session, "the handshake took too long");
		} else if (session_is_stuck(session, now)) {
			session_leave(session, "the client does not read what this node sends");
		} else if (session->open == 0 && !session->watches && s->limits.idle > 0
			&& silent > s->limits.idle) {
			session_leave(session, NULL);
		}
	}
}

/* ---- the owner's calls ---- */

static struct session *sessions_add(struct sessions *s, int take_fd, SSL_CTX *tls,
	const struct origin *from) {
	const struct stranger newcomer = { .address = stranger_address_of(take_fd),
		.bytes = tls ? STRANGER_TLS_BYTES : STRANGER_PLAIN_BYTES };
	if (!sessions_make_room(s, &newcomer)) {
		close(take_fd);
		s->full++;
		sessions_trouble(s, from, "too many clients");
		return NULL;
	}
	struct memory_account *memory = memory_open(&s->memory);
	struct session *session = memory ? alloc_new(&memory->alloc, sizeof *session) : NULL;
	struct stream_options stream = { .loop = s->loop, .alloc = memory ? &memory->alloc : NULL,
		.take_fd = take_fd, .tls = tls, .role = TLS_SERVER,
		.in_max = client_request_limits.bytes, .out_max = SESSIONS_OUT_BYTES_MAX,
		.read_max = SESSIONS_READ_BYTES, .pause_above = PAUSE_BYTES,
		.handlers = &session_stream_handlers, .ctx = session };
	struct stream *made = NULL;
	/* stream_new takes over the socket, whatever happens. */
	int error = stream_new(&stream, &made);
	if (!session || error) {
		stream_free(made);
		if (session) {
			alloc_free(&memory->alloc, session, sizeof *session);
		}
		memory_close(memory);
		sessions_trouble(s, from, "out of memory");
		return NULL;
	}
	*session = (struct session){ .all = s, .stranger = newcomer, .id = ++s->last_id,
		.stream = made, .out = stream_out(made), .memory = memory, .tls = tls != NULL,
		.from = *from };
	session->since = session->heard = session->stuck = time_source_now();
	list_append(&s->among, &session->among);
	map_insert_number(&s->by_id, &session->node, session->id);
	s->by_listener[from->listener]++;
	return session;
}

void sessions_accept(struct sessions *s, int take_fd, SSL_CTX *tls, enum tls_client_auth auth,
	bool local, const struct origin *from, const struct dialect_use *use) {
	struct session *session = sessions_add(s, take_fd, tls, from);
	if (session && use && !session_dialect_open(session, use)) {
		session_free(session);
		sessions_trouble(s, from, "out of memory");
		return;
	}
	if (session) {
		session->auth = auth;
		session->local = local;
		strangers_add(&s->strangers, &session->stranger);
		if (local) {
			origin_identity(from, session->identity);
		}
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
	shares_give(&session->share, SHARE_REQUESTS, 1);
	if (session->closing) {
		return NULL;
	}
	session_mark(session);
	return session->out;
}

bool sessions_who(const struct sessions *s, uint64_t client, struct session_who *out) {
	const struct session *session = sessions_find(s, client);
	const bool there = session && !list_linked(&session->leaving);
	if (there) {
		*out = session_who(session);
	}
	return there;
}

struct buffer *sessions_notify(struct sessions *s, uint64_t client) {
	struct session *session = sessions_find(s, client);
	if (!session || session->closing) {
		return NULL;
	}
	session_mark(session);
	return session->out;
}

bool sessions_crowded(struct sessions *s, uint64_t client, size_t most) {
	struct session *session = sessions_find(s, client);
	bool crowded = session && stream_backlog(session->stream) > most;
	if (crowded) {
		session->crowded = true;
	}
	return crowded;
}

void sessions_watches(struct sessions *s, uint64_t client, uint32_t watches, size_t bytes) {
	struct session *session = sessions_find(s, client);
	if (session) {
		shares_give(&session->share, SHARE_WATCHES, session->watches);
		session->watches = watches;
		shares_take(&session->share, SHARE_WATCHES, watches);
		memory_claim(session->memory, MEMORY_WATCHES, bytes);
	}
}

void sessions_drop(struct sessions *s, uint64_t client) {
	struct session *session = sessions_find(s, client);
	if (session) {
		/* It was not the other side that ended it. */
		session->closing = true;
		session_leave(session, NULL);
	}
}

void sessions_end_revoked(struct sessions *s, SSL_CTX *now) {
	struct list *next;
	char why[TLS_WHY_BYTES];
	for (struct list *at = list_first(&s->among); at; at = next) {
		struct session *session = CONTAINER_OF(at, struct session, among);
		SSL *ssl = stream_ssl(session->stream);
		/* session_leave removes no session but its own. */
		next = list_after(&s->among, at);
		if (ssl && tls_peer_objection(ssl, now, why)) {
			session_leave(session, why);
		} else if (ssl && !session->greeted) {
			session_leave(session, "the connection began before the "
				"certificates were reloaded");
		}
	}
}

uint32_t sessions_count(const struct sessions *s) {
	return (uint32_t)s->by_id.count;
}

/* ---- life ---- */

void sessions_set_limits(struct sessions *s, const struct sessions_limits *limits) {
	s->limits = *limits;
	s->memory.limit = limits->memory;
	s->rules++;
}

int sessions_new(const struct sessions_options *o, struct sessions **out) {
	static const struct timeval second = { SWEEP_S, 0 };
	struct sessions *s = alloc_new(o->loop->alloc, sizeof *s);
	if (!s) {
		return PAWL_ENOMEM;
	}
	*s = (struct sessions){ .loop = o->loop, .limits = o->limits, .handlers = o->handlers,
		.ctx = o->ctx, .loop_turn = 1 };
	list_init(&s->among);
	list_init(&s->dirty);
	list_init(&s->bulk);
	list_init(&s->leaving);
	list_init(&s->starved);
	fair_init(&s->ready, SESSIONS_SHARE_QUANTUM);
	struct siphash_key hash_key;
	uint64_t seed;
	CHECK(RAND_bytes((unsigned char *)&hash_key, sizeof hash_key) == 1);
	CHECK(RAND_bytes((unsigned char *)&seed, sizeof seed) == 1);
	strangers_init(&s->strangers, seed);
	sessions_init_decoder(s);
	sessions_init_memory(s, o->memory);
	s->sweep = event_new(o->loop->base, -1, EV_PERSIST, sessions_on_sweep, s);
	if (map_init(&s->by_id, o->loop->alloc) != 0
		|| shares_init(&s->shares, o->loop->alloc, hash_key) != 0 || !s->sweep
		|| event_add(s->sweep, &second) != 0) {
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
		struct session *session = CONTAINER_OF(first, struct session, among);
		/* Some answers may have waited for their turn. */
		for (size_t left = SIZE_MAX; stream_backlog(session->stream) < left;) {
			left = stream_backlog(session->stream);
			(void)stream_flush(session->stream);
		}
		session_free(session);
	}
	if (s->sweep) {
		event_free(s->sweep);
	}
	CHECK(s->memory.accounts == 0);
	map_done(&s->by_id);
	shares_done(&s->shares);
	client_decoder_done(&s->decoder);
	alloc_free(s->loop->alloc, s, sizeof *s);
}
