/* failover.c: chooses the node that the client talks to. It takes the endpoints in turn, pauses
 * after each round of failures, and leaves nodes that are silent. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "client_core.h"

#define PAUSE_FIRST (50 * SPAN_MS)
#define PAUSE_LAST (1000 * SPAN_MS)
#define SILENCE_LEAST (100 * SPAN_MS)

static struct endpoint *endpoint_now(struct pawl *client) {
	return &client->endpoints.items[client->endpoint_at];
}

static void note_failure(struct pawl *client, int error, const char *why) {
	client->last_error = error == PAWL_ECLOSED ? PAWL_EUNREACHABLE : error;
	(void)snprintf(client->last_problem, sizeof(client->last_problem), "%.*s: %.*s",
		ENDPOINT_TEXT_MAX - 1, endpoint_now(client)->text, CONNECTION_PROBLEM_MAX - 1, why);
}

/* No lock may be lost because some nodes hang. So while there are locks, nothing takes longer than
 * a sixth of the shortest lease: then the client can leave two hanging nodes in the time between a
 * third of the lease, when renewal begins, and the warning. */
static span_ns lease_share(struct pawl *client, span_ns limit) {
	span_ns shortest = client->handlers->lease_shortest(client);
	return shortest && shortest / 6 < limit ? shortest / 6 : limit;
}

static void pause_begin(struct pawl *client) {
	span_ns pause = lease_share(client, PAUSE_LAST),
		doubled = PAUSE_FIRST << (client->rounds_failed < 5 ? client->rounds_failed : 5);
	pause = doubled < pause ? doubled : pause;
	/* The pause is random, so that the clients of a dead node do not all come back at the same
	 * moment. */
	pause = prng_between(&client->prng, pause / 2, pause + pause / 2);
	client->rounds_failed++;
	client->state = CLIENT_CORE_PAUSING;
	agenda_set(&client->agenda, &client->dial_alarm, client_core_now(client).boot + pause);
}

/* Waiting does not cure a wrong certificate or an access rule. */
static bool hopeless(int error) {
	return error == PAWL_ETLS || error == PAWL_EDENIED;
}

/* The present address is of no use. Goes on to the next address, then to the next endpoint; when
 * all have failed, the client pauses. */
static void move_on(struct pawl *client, int error) {
	client->state = CLIENT_CORE_IDLE;
	if (endpoint_next_address(endpoint_now(client))) {
		client_core_kick(client);
		return;
	}
	client->failed_in_round++;
	client->failed_for_good += hopeless(error);
	client->endpoint_at = (client->endpoint_at + 1) % client->endpoints.count;
	if (client->failed_in_round < client->endpoints.count) {
		client_core_kick(client);
		return;
	}
	bool give_up = client->failed_for_good == client->endpoints.count;
	client->failed_in_round = client->failed_for_good = 0;
	pause_begin(client);
	if (give_up) {
		client->handlers->unreachable(client, error);
	}
}

static void connection_lost(struct pawl *client, int error, const char *why) {
	note_failure(client, error, why);
	if (client->state == CLIENT_CORE_READY) {
		/* The other addresses lead to the same node. */
		endpoint_forget(endpoint_now(client));
		client->handlers->connection_lost(client);
	}
	failover_stop(client);
	client->handlers->connection_closed(client);
	if (!client->dying) {
		move_on(client, error);
	}
}

void failover_stop(struct pawl *client) {
	connection_close(&client->connection);
	client->scanner = (struct client_scanner){ 0 };
	client->owed = false;
	client->state = CLIENT_CORE_IDLE;
	agenda_clear(&client->agenda, &client->dial_alarm);
	agenda_clear(&client->agenda, &client->silence_alarm);
}

void failover_connect(struct pawl *client) {
	CHECK(client->state == CLIENT_CORE_IDLE);
	struct endpoint *e = endpoint_now(client);
	const struct endpoint_address *address = endpoint_address(e);
	int error = PAWL_EUNREACHABLE;
	if (!address) {
		note_failure(client, error, "the host name cannot be resolved");
	} else {
		const char *host = client->server_name[0] ? client->server_name : e->host;
		error = connection_open(&client->connection, address, e->tls ? client->tls : NULL,
			host);
		if (error) {
			note_failure(client, error, client->connection.problem);
		}
	}
	if (error) {
		move_on(client, error);
		return;
	}
	client->state = CLIENT_CORE_DIALING;
	agenda_set(&client->agenda, &client->dial_alarm,
		client_core_now(client).boot + lease_share(client, client->connect_timeout));
}

static void on_dial_alarm(struct alarm *alarm) {
	struct pawl *client = CONTAINER_OF(alarm, struct pawl, dial_alarm);
	if (client->state == CLIENT_CORE_PAUSING) {
		client->state = CLIENT_CORE_IDLE;
		client_core_kick(client);
	} else if (client->state == CLIENT_CORE_DIALING) {
		connection_lost(client, PAWL_EUNREACHABLE, "connecting took too long");
	}
}

/* ---- the connection's side ---- */

static void on_up(void *ctx) {
	struct pawl *client = ctx;
	client->state = CLIENT_CORE_READY;
	client->connection_number++;
	client->handlers->connection_up(client);
	agenda_clear(&client->agenda, &client->dial_alarm);
	client_core_kick(client);
}

static void on_room(void *ctx) {
	/* Calls may wait for this room. */
	client_core_kick(ctx);
}

static void on_down(void *ctx, int error) {
	struct pawl *client = ctx;
	connection_lost(client, error, client->connection.problem);
}

static void on_enter(void *ctx) {
	client_core_enter(ctx);
}

static void on_leave(void *ctx) {
	client_core_leave(ctx);
}

/* An error that answers no request is what the node says last before it closes the connection; for
 * example that this client may not speak here. PAWL_EBUSY is not such an error: a busy node answers
 * a ping with it. */
static bool is_last_word(struct pawl *client, enum client_kind kind, uint32_t msgid,
	struct slice message) {
	struct client_response r;
	if (kind != CLIENT_RESPONSE || msgid != 0
		|| client_response_decode(&client->decoder, CLIENT_PING, message, &r) != 0
		|| r.error == 0 || r.error == PAWL_EBUSY) {
		return false;
	}
	char why[CONNECTION_PROBLEM_MAX];
	(void)snprintf(why, sizeof(why), "%.*s",
		(int)(r.message.size < sizeof(why) ? r.message.size : sizeof(why) - 1),
		r.message.size ? (const char *)r.message.data : "");
	connection_lost(client, r.error, why);
	return true;
}

/* Handles the message at the front, which has arrived whole. Returns false if what follows cannot
 * be read any more. */
static bool take_message(struct pawl *client, struct slice message) {
	enum client_kind kind;
	uint32_t msgid;
	if (client_response_peek(message, &kind, &msgid) != 0) {
		return false;
	}
	if (is_last_word(client, kind, msgid, message)) {
		return true;
	}
	/* The node has said something, which a node that only accepts connections never does. */
	client->failed_in_round = client->failed_for_good = 0;
	client->rounds_failed = 0;
	if (kind == CLIENT_RESPONSE) {
		client->handlers->on_answer(client, msgid, message);
		return true;
	}
	return client->handlers->on_event(client, message);
}

/* Returns whether the node has something to say: an answer, also to a call that has given up, or
 * events of a watch. A node that is gone would never send any of these. */
static bool awaits_anything(const struct pawl *client) {
	return client->owed || !list_empty(&client->watches);
}

/* Handles the messages one after the other. A callback may end the connection or the client in
 * between. */
static void on_data(void *ctx) {
	struct pawl *client = ctx;
	struct connection *c = &client->connection;
	size_t used = 0;
	client->heard = client_core_now(client);
	client->pinged = false;
	enum client_scan found = CLIENT_SCAN_COMPLETE;
	while (c->state == CONNECTION_UP && !client->dying && found == CLIENT_SCAN_COMPLETE) {
		struct slice rest = slice_of(c->in.data + used, c->in.size - used);
		size_t size;
		found = rest.size
			? client_scan(&client->scanner, &client_response_limits, rest, &size)
			: CLIENT_SCAN_MORE;
		if (found == CLIENT_SCAN_COMPLETE) {
			used += size;
			found = take_message(client, slice_of(rest.data, size))
				? found
				: CLIENT_SCAN_GARBAGE;
		}
	}
	client->owed = !list_empty(&client->flight);
	if (!awaits_anything(client)) {
		/* Nothing is awaited, so the node may be silent. */
		agenda_clear(&client->agenda, &client->silence_alarm);
	}
	if (c->state == CONNECTION_UP) {
		buffer_consume(&c->in, used);
		if (found == CLIENT_SCAN_GARBAGE || found == CLIENT_SCAN_TOO_LARGE) {
			connection_lost(client, PAWL_EPROTOCOL,
				"the answer does not follow Pawl's protocol: is this the client "
				"port of a Pawl node?");
		}
	}
}

/* ---- silence ---- */

/* Where only events are awaited the limit is longer, so that a thousand idle watchers do not send a
 * thousand pings a second. */
static span_ns silence_limit(struct pawl *client) {
	if (!client->owed) {
		return client->silence * 4;
	}
	span_ns limit = lease_share(client, client->silence);
	return limit > SILENCE_LEAST ? limit : SILENCE_LEAST;
}

void failover_watch_silence(struct pawl *client) {
	if (!client->owed) {
		client->owed = true;
		client->heard = client_core_now(client);
		client->pinged = false;
		failover_reset_silence_alarm(client);
	}
}

void failover_reset_silence_alarm(struct pawl *client) {
	if (awaits_anything(client)) {
		struct instant since = client->pinged ? client->ping_at : client->heard;
		agenda_set(&client->agenda, &client->silence_alarm,
			since.boot + silence_limit(client) / 2);
	}
}

static void ping(struct pawl *client, struct instant now) {
	/* No call has this msgid, because any answer will do. */
	struct client_request request = { .msgid = 0, .method = CLIENT_PING };
	if (client_request_encode(&request, &client->connection.out) == 0) {
		client->pinged = true;
		client->ping_at = now;
		client_core_kick(client);
	}
}

static void on_silence_alarm(struct alarm *alarm) {
	struct pawl *client = CONTAINER_OF(alarm, struct pawl, silence_alarm);
	if (!awaits_anything(client) || client->state != CLIENT_CORE_READY) {
		return;
	}
	/* This process may have been stopped. What has arrived meanwhile counts. */
	connection_read_now(&client->connection);
	if (client->dying || !awaits_anything(client) || client->state != CLIENT_CORE_READY) {
		return;
	}
	struct instant now = client_core_now(client);
	span_ns half = silence_limit(client) / 2;
	if (client->pinged && instant_elapsed_short(now, client->ping_at) >= half) {
		connection_lost(client, PAWL_ETIMEOUT, "the node does not answer");
		return;
	}
	if (!client->pinged && instant_elapsed_short(now, client->heard) >= half) {
		ping(client, now);
	}
	failover_reset_silence_alarm(client);
}

void failover_move_on(struct pawl *client, int error) {
	if (client->endpoints.count > 1 && client->state == CLIENT_CORE_READY
		&& !client->handlers->connection_needed(client)) {
		connection_lost(client, error,
			error == PAWL_ERECOVERING ? "the node does not vote"
				: "the node does not reach a quorum");
	}
}

void failover_init(struct pawl *client) {
	client->dial_alarm.ring = on_dial_alarm;
	client->silence_alarm.ring = on_silence_alarm;
	client->state = CLIENT_CORE_IDLE;
	connection_init(&client->connection, client->env.alloc, client->base,
		(struct connection_owner){ on_enter, on_leave, on_up, on_data, on_room, on_down,
			client });
	client_decoder_init(&client->decoder, client->env.alloc);
}

const char *pawl_endpoint(const struct pawl *client) {
	return client->state == CLIENT_CORE_READY
		? client->endpoints.items[client->endpoint_at].text
		: "";
}
