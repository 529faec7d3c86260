/* session.c: dials an endpoint, and takes the messages that come apart; see session.h. */
#include "session.h"

#include <stdio.h>

#include "check.h"
#include "client_core.h"

/* The first byte that a port with TLS sends to a client that does not speak TLS. */
#define TLS_ALERT 0x15

/* ---- dialing ---- */

static void dial_failed(struct session *session, int error, const char *why) {
	const struct pawl *client = session->client;
	char text[2 * CONNECTION_PROBLEM_MAX];
	(void)snprintf(text, sizeof(text), "%s%s%s", why,
		error == PAWL_ETLS ? client->tls.problem : "", client->endpoints.problem);
	session_failed(session, error, text);
}

bool session_waits(const struct session *session) {
	return session->state == SESSION_DIALING && !endpoint_located(&session->endpoint);
}

static void dial(struct session *session) {
	struct pawl *client = session->client;
	const struct endpoint *e = &session->endpoint;
	const char *problem = locate_look_up(client, e);
	if (!endpoint_located(e)) {
		if (problem) {
			dial_failed(session, PAWL_EUNREACHABLE, problem);
		}
		return;
	}
	SSL_CTX *tls = e->tls ? tls_files_context(&client->tls) : NULL;
	if (e->tls && !tls) {
		/* The file did not name it when the client was made. */
		dial_failed(session, PAWL_ETLS, "a tls:// endpoint needs a ca_file");
		return;
	}
	const char *host = client->server_name[0] ? client->server_name : e->host;
	int error = connection_open(&session->connection, &e->address, tls, host);
	if (error) {
		dial_failed(session, error, session->connection.problem);
	}
}

void session_dial(struct session *session, const struct endpoint *endpoint, span_ns limit) {
	CHECK(session->state == SESSION_CLOSED && session->flights == 0);
	session->state = SESSION_DIALING;
	session->endpoint = *endpoint;
	session->spoke = false;
	session->unknown = 0;
	agenda_set(&session->client->agenda, &session->dial_alarm,
		client_core_now(session->client).boot + limit);
	dial(session);
}

void session_located(struct session *session, const struct endpoint *endpoint) {
	session->endpoint = *endpoint;
	dial(session);
}

const char *session_hint(const struct session *session) {
	static _Thread_local char text[ENDPOINT_TEXT_MAX + 80];
	const struct endpoint *e = &session->endpoint;
	if (session->spoke || e->tls || e->kind == ENDPOINT_UNIX || e->address.by.dial) {
		return "";
	}
	(void)snprintf(text, sizeof(text),
		", which has said nothing at all; write tls://%s for a port with TLS", e->text);
	return text;
}

/* Ends the session with the endpoint that is up. */
static void session_ended(struct session *session, int error, const char *why) {
	char text[CONNECTION_PROBLEM_MAX];
	(void)snprintf(text, sizeof(text), "%s%s", why, session_hint(session));
	session_failed(session, error, text);
}

static void on_dial_alarm(struct alarm *alarm) {
	struct session *session = CONTAINER_OF(alarm, struct session, dial_alarm);
	if (session->state == SESSION_UP) {
		session_ended(session, PAWL_ETIMEOUT, "the node does not answer");
	} else if (session_waits(session)) {
		dial_failed(session, PAWL_EUNREACHABLE, "looking up the name took too long");
	} else {
		dial_failed(session, PAWL_EUNREACHABLE, "connecting took too long");
	}
}

void session_close(struct session *session) {
	struct pawl *client = session->client;
	connection_close(&session->connection);
	session->scanner = (struct client_scanner){ 0 };
	session->state = SESSION_CLOSED;
	agenda_clear(&client->agenda, &session->dial_alarm);
	silence_clear(session);
}

void session_ping(struct session *session) {
	/* No call has this msgid, because any answer will do. */
	struct client_request request = { .msgid = 0, .method = CLIENT_PING };
	if (client_request_encode(&request, &session->connection.out) == 0) {
		silence_pinged(session);
		client_core_kick(session->client);
	}
}

/* ---- the connection's side ---- */

static void on_up(void *ctx) {
	struct session *session = ctx;
	session->state = SESSION_UP;
	session_up(session);
}

static void on_room(void *ctx) {
	/* Calls may wait for this room. */
	client_core_kick(((struct session *)ctx)->client);
}

static void on_down(void *ctx, int error) {
	struct session *session = ctx;
	if (session->state == SESSION_DIALING) {
		dial_failed(session, error, session->connection.problem);
	} else {
		session_ended(session, error, session->connection.problem);
	}
}

static void on_enter(void *ctx) {
	client_core_enter(((struct session *)ctx)->client);
}

static void on_leave(void *ctx) {
	client_core_leave(((struct session *)ctx)->client);
}

/* An error that answers no request is what the node says last before it closes the connection; for
 * example that this client may not speak here. PAWL_EBUSY is not such an error: a busy node answers
 * a ping with it. */
static bool is_last_word(struct session *session, struct slice message) {
	struct client_response r;
	if (client_response_decode(&session->client->decoder, CLIENT_PING, message, &r) != 0
		|| r.error == 0 || r.error == PAWL_EBUSY) {
		return false;
	}
	char why[CONNECTION_PROBLEM_MAX];
	(void)snprintf(why, sizeof(why), "%.*s",
		(int)(r.message.size < sizeof(why) ? r.message.size : sizeof(why) - 1),
		r.message.size ? (const char *)r.message.data : "");
	session_failed(session, r.error, why);
	return true;
}

/* Handles the message at the front, which has arrived whole. Returns false if what follows cannot
 * be read any more. */
static bool take_message(struct session *session, struct slice message) {
	struct pawl *client = session->client;
	enum client_kind kind;
	uint32_t msgid;
	if (client_response_peek(message, &kind, &msgid) != 0) {
		return false;
	}
	session->spoke = true;
	if (kind == CLIENT_RESPONSE && msgid == 0) {
		if (!is_last_word(session, message)) {
			silence_ponged(session);
			session_spoke(session);
			session_ponged(session);
		}
		return true;
	}
	session_spoke(session);
	if (kind == CLIENT_RESPONSE) {
		client->handlers->on_answer(session, msgid, message);
		return true;
	}
	/* The numbers of watches are those of the present node. */
	return session != client->session || client->handlers->on_event(client, message);
}

/* Handles the messages one after the other. A callback may end the connection or the client in
 * between. */
static void on_data(void *ctx) {
	struct session *session = ctx;
	struct connection *c = &session->connection;
	size_t used = 0;
	enum client_scan found = CLIENT_SCAN_COMPLETE;
	silence_heard(session);
	while (session->state == SESSION_UP && !session->client->dying
		&& found == CLIENT_SCAN_COMPLETE) {
		struct slice rest = slice_of(c->in.data + used, c->in.size - used);
		size_t size;
		found = rest.size
			? client_scan(&session->scanner, &client_response_limits, rest, &size)
			: CLIENT_SCAN_MORE;
		if (found == CLIENT_SCAN_COMPLETE) {
			used += size;
			found = take_message(session, slice_of(rest.data, size)) ? found
				: CLIENT_SCAN_GARBAGE;
		}
	}
	if (session->state != SESSION_UP) {
		return;
	}
	silence_settle(session);
	buffer_consume(&c->in, used);
	bool garbage = found == CLIENT_SCAN_GARBAGE || found == CLIENT_SCAN_TOO_LARGE;
	if (garbage && !session->spoke && c->in.size && c->in.data[0] == TLS_ALERT) {
		session_failed(session, PAWL_ETLS,
			"this is a port with TLS: write tls:// before the host");
	} else if (garbage) {
		session_failed(session, PAWL_EPROTOCOL,
			"the answer does not follow Pawl's protocol: is this the client port of a "
			"Pawl node?");
	} else if (!session->client->dying) {
		session_heard(session);
	}
}

void session_init(struct session *session, struct pawl *client) {
	session->client = client;
	session->dial_alarm.ring = on_dial_alarm;
	session->silence_alarm.ring = silence_ring;
	connection_init(&session->connection, client->env.alloc, client->base,
		(struct connection_owner){ on_enter, on_leave, on_up, on_data, on_room, on_down,
			session });
}

void session_done(struct session *session) {
	connection_done(&session->connection);
}
