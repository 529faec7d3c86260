/* line.c: dials an endpoint, and takes the messages that come apart; see line.h. */
#include "line.h"

#include <stdio.h>

#include "check.h"
#include "client_core.h"

static struct endpoint *line_endpoint(struct line *line) {
	return &line->client->endpoints.items[line->endpoint];
}

/* ---- dialing ---- */

static void dial(struct line *line);

/* Goes on to the next address of the endpoint, if there is one. */
static void address_failed(struct line *line, int error, const char *why) {
	connection_close(&line->connection);
	line->scanner = (struct client_scanner){ 0 };
	if (endpoint_next_address(line_endpoint(line))) {
		agenda_set(&line->client->agenda, &line->dial_alarm,
			client_core_now(line->client).boot + line->dial_limit);
		dial(line);
	} else {
		line_failed(line, error, why);
	}
}

static void on_looked_up(void *ctx, size_t which, const struct addrinfo *found) {
	struct pawl *client = ctx;
	struct endpoint *e = &client->endpoints.items[which];
	e->look_up = NULL;
	endpoint_found(e, found);
	client_core_enter(client);
	for (size_t i = 0; i < LINES && !client->dying; i++) {
		struct line *line = &client->lines[i];
		bool waits = line->state == LINE_DIALING && line->endpoint == which
			&& line->connection.state == CONNECTION_CLOSED;
		if (waits && e->address_count) {
			dial(line);
		} else if (waits) {
			line_failed(line, PAWL_EUNREACHABLE, "the host name cannot be resolved");
		}
	}
	client_core_leave(client);
}

static void dial(struct line *line) {
	struct pawl *client = line->client;
	struct endpoint *e = line_endpoint(line);
	const struct endpoint_address *address = endpoint_address(e);
	if (!address && !e->look_up && !e->local) {
		e->look_up = look_up_start(client->base, e->host, e->port, on_looked_up, client,
			line->endpoint);
	}
	if (!address && e->look_up) {
		return;
	}
	if (!address) {
		line_failed(line, PAWL_EUNREACHABLE, "the host name cannot be looked up now");
		return;
	}
	const char *host = client->server_name[0] ? client->server_name : e->host;
	int error = connection_open(&line->connection, address, e->tls ? client->tls : NULL, host);
	if (error) {
		address_failed(line, error, line->connection.problem);
	}
}

void line_dial(struct line *line, size_t endpoint, span_ns limit) {
	CHECK(line->state == LINE_CLOSED && line->flights == 0);
	line->state = LINE_DIALING;
	line->endpoint = endpoint;
	line->dial_limit = limit;
	agenda_set(&line->client->agenda, &line->dial_alarm,
		client_core_now(line->client).boot + limit);
	dial(line);
}

static void on_dial_alarm(struct alarm *alarm) {
	struct line *line = CONTAINER_OF(alarm, struct line, dial_alarm);
	if (line->state == LINE_UP) {
		line_failed(line, PAWL_ETIMEOUT, "the node does not answer");
	} else if (line_endpoint(line)->look_up) {
		line_failed(line, PAWL_EUNREACHABLE, "looking up the host name took too long");
	} else {
		address_failed(line, PAWL_EUNREACHABLE, "connecting took too long");
	}
}

void line_close(struct line *line) {
	struct pawl *client = line->client;
	connection_close(&line->connection);
	line->scanner = (struct client_scanner){ 0 };
	line->state = LINE_CLOSED;
	agenda_clear(&client->agenda, &line->dial_alarm);
	silence_clear(line);
}

void line_ping(struct line *line) {
	/* No call has this msgid, because any answer will do. */
	struct client_request request = { .msgid = 0, .method = CLIENT_PING };
	if (client_request_encode(&request, &line->connection.out) == 0) {
		silence_pinged(line);
		client_core_kick(line->client);
	}
}

/* ---- the connection's side ---- */

static void on_up(void *ctx) {
	struct line *line = ctx;
	line->state = LINE_UP;
	line_up(line);
}

static void on_room(void *ctx) {
	/* Calls may wait for this room. */
	client_core_kick(((struct line *)ctx)->client);
}

static void on_down(void *ctx, int error) {
	struct line *line = ctx;
	if (line->state == LINE_DIALING) {
		address_failed(line, error, line->connection.problem);
	} else {
		line_failed(line, error, line->connection.problem);
	}
}

static void on_enter(void *ctx) {
	client_core_enter(((struct line *)ctx)->client);
}

static void on_leave(void *ctx) {
	client_core_leave(((struct line *)ctx)->client);
}

/* An error that answers no request is what the node says last before it closes the connection; for
 * example that this client may not speak here. PAWL_EBUSY is not such an error: a busy node answers
 * a ping with it. */
static bool is_last_word(struct line *line, struct slice message) {
	struct client_response r;
	if (client_response_decode(&line->client->decoder, CLIENT_PING, message, &r) != 0
		|| r.error == 0 || r.error == PAWL_EBUSY) {
		return false;
	}
	char why[CONNECTION_PROBLEM_MAX];
	(void)snprintf(why, sizeof(why), "%.*s",
		(int)(r.message.size < sizeof(why) ? r.message.size : sizeof(why) - 1),
		r.message.size ? (const char *)r.message.data : "");
	line_failed(line, r.error, why);
	return true;
}

/* Handles the message at the front, which has arrived whole. Returns false if what follows cannot
 * be read any more. */
static bool take_message(struct line *line, struct slice message) {
	struct pawl *client = line->client;
	enum client_kind kind;
	uint32_t msgid;
	if (client_response_peek(message, &kind, &msgid) != 0) {
		return false;
	}
	if (kind == CLIENT_RESPONSE && msgid == 0) {
		if (!is_last_word(line, message)) {
			silence_ponged(line);
			line_spoke(line);
			line_ponged(line);
		}
		return true;
	}
	line_spoke(line);
	if (kind == CLIENT_RESPONSE) {
		client->handlers->on_answer(line, msgid, message);
		return true;
	}
	/* The numbers of watches are those of the present node. */
	return line != client->line || client->handlers->on_event(client, message);
}

/* Handles the messages one after the other. A callback may end the connection or the client in
 * between. */
static void on_data(void *ctx) {
	struct line *line = ctx;
	struct connection *c = &line->connection;
	size_t used = 0;
	enum client_scan found = CLIENT_SCAN_COMPLETE;
	silence_heard(line);
	while (line->state == LINE_UP && !line->client->dying && found == CLIENT_SCAN_COMPLETE) {
		struct slice rest = slice_of(c->in.data + used, c->in.size - used);
		size_t size;
		found = rest.size
			? client_scan(&line->scanner, &client_response_limits, rest, &size)
			: CLIENT_SCAN_MORE;
		if (found == CLIENT_SCAN_COMPLETE) {
			used += size;
			found = take_message(line, slice_of(rest.data, size)) ? found
				: CLIENT_SCAN_GARBAGE;
		}
	}
	if (line->state != LINE_UP) {
		return;
	}
	silence_settle(line);
	buffer_consume(&c->in, used);
	if (found == CLIENT_SCAN_GARBAGE || found == CLIENT_SCAN_TOO_LARGE) {
		line_failed(line, PAWL_EPROTOCOL,
			"the answer does not follow Pawl's protocol: is this the client port of a "
			"Pawl node?");
	} else if (!line->client->dying) {
		line_heard(line);
	}
}

void line_init(struct line *line, struct pawl *client) {
	line->client = client;
	line->dial_alarm.ring = on_dial_alarm;
	line->silence_alarm.ring = silence_ring;
	connection_init(&line->connection, client->env.alloc, client->base,
		(struct connection_owner){ on_enter, on_leave, on_up, on_data, on_room, on_down,
			line });
}

void line_done(struct line *line) {
	connection_done(&line->connection);
}
