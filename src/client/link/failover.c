/* failover.c: which node the client talks to: endpoints in turn, pauses between rounds of failures, silence. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "hub.h"

#define PAUSE_FIRST (50 * SPAN_MS)
#define PAUSE_LAST (1000 * SPAN_MS)
#define SILENCE_LEAST (100 * SPAN_MS)

static struct endpoint *endpoint_now(struct pawl *hub) {
	return &hub->endpoints.items[hub->endpoint_at];
}

static void note_failure(struct pawl *hub, int error, const char *why) {
	hub->last_error = error == PAWL_ECLOSED ? PAWL_EUNREACHABLE : error;
	(void)snprintf(hub->last_problem, sizeof(hub->last_problem), "%.*s: %.*s", ENDPOINT_TEXT_MAX - 1,
		endpoint_now(hub)->text, CONNECTION_PROBLEM_MAX - 1, why);
}

/* Locks must not be lost because some nodes hang: while there are any, nothing takes longer than a sixth of the shortest lease,
 * so that two that hang can be left between a third of the lease and the warning. */
static span_ns lease_share(struct pawl *hub, span_ns limit) {
	span_ns shortest = hub->handlers->lease_shortest(hub);
	return shortest && shortest / 6 < limit ? shortest / 6 : limit;
}

static void pause_begin(struct pawl *hub) {
	span_ns pause = lease_share(hub, PAUSE_LAST), doubled = PAUSE_FIRST << (hub->rounds_failed < 5 ? hub->rounds_failed : 5);
	pause = doubled < pause ? doubled : pause;
	pause = prng_between(&hub->prng, pause / 2, pause + pause / 2); /* so that clients of a dead node do not march in step */
	hub->rounds_failed++;
	hub->state = HUB_PAUSING;
	agenda_set(&hub->agenda, &hub->dial_alarm, hub_now(hub).boot + pause);
}

/* Certificates and access rules do not get better by waiting. */
static bool hopeless(int error) {
	return error == PAWL_ETLS || error == PAWL_EDENIED;
}

/* The present address is of no use: the next address, the next endpoint, or, when all have failed, a pause. */
static void move_on(struct pawl *hub, int error) {
	hub->state = HUB_IDLE;
	if (endpoint_next_address(endpoint_now(hub))) {
		hub_kick(hub);
		return;
	}
	hub->failed_in_round++;
	hub->failed_for_good += hopeless(error);
	hub->endpoint_at = (hub->endpoint_at + 1) % hub->endpoints.count;
	if (hub->failed_in_round < hub->endpoints.count) {
		hub_kick(hub);
		return;
	}
	bool give_up = hub->failed_for_good == hub->endpoints.count;
	hub->failed_in_round = hub->failed_for_good = 0;
	pause_begin(hub);
	if (give_up) {
		hub->handlers->unreachable(hub, error);
	}
}

static void connection_lost(struct pawl *hub, int error, const char *why) {
	note_failure(hub, error, why);
	if (hub->state == HUB_READY) {
		endpoint_forget(endpoint_now(hub)); /* its other addresses lead to the same node */
		hub->handlers->connection_lost(hub);
	}
	failover_stop(hub);
	hub->handlers->connection_closed(hub);
	if (!hub->dying) {
		move_on(hub, error);
	}
}

void failover_stop(struct pawl *hub) {
	connection_close(&hub->connection);
	hub->scanner = (struct client_scanner){ 0 };
	hub->state = HUB_IDLE;
	agenda_clear(&hub->agenda, &hub->dial_alarm);
	agenda_clear(&hub->agenda, &hub->silence_alarm);
}

void failover_connect(struct pawl *hub) {
	CHECK(hub->state == HUB_IDLE);
	struct endpoint *e = endpoint_now(hub);
	const struct endpoint_address *address = endpoint_address(e);
	int error = PAWL_EUNREACHABLE;
	if (!address) {
		note_failure(hub, error, "the name has no address");
	} else {
		const char *host = hub->server_name[0] ? hub->server_name : e->host;
		error = connection_open(&hub->connection, address, e->tls ? hub->tls : NULL, host);
		if (error) {
			note_failure(hub, error, hub->connection.problem);
		}
	}
	if (error) {
		move_on(hub, error);
		return;
	}
	hub->state = HUB_DIALING;
	agenda_set(&hub->agenda, &hub->dial_alarm, hub_now(hub).boot + lease_share(hub, hub->connect_timeout));
}

static void on_dial_alarm(struct alarm *alarm) {
	struct pawl *hub = CONTAINER_OF(alarm, struct pawl, dial_alarm);
	if (hub->state == HUB_PAUSING) {
		hub->state = HUB_IDLE;
		hub_kick(hub);
	} else if (hub->state == HUB_DIALING) {
		connection_lost(hub, PAWL_EUNREACHABLE, "connecting took too long");
	}
}

/* ---- the connection's side ---- */

static void on_up(void *ctx) {
	struct pawl *hub = ctx;
	hub->state = HUB_READY;
	hub->connection_number++;
	hub->handlers->connection_up(hub);
	agenda_clear(&hub->agenda, &hub->dial_alarm);
	hub_kick(hub);
}

static void on_room(void *ctx) {
	hub_kick(ctx); /* calls may wait for it */
}

static void on_down(void *ctx, int error) {
	struct pawl *hub = ctx;
	connection_lost(hub, error, hub->connection.problem);
}

static void on_enter(void *ctx) {
	hub_enter(ctx);
}

static void on_leave(void *ctx) {
	hub_leave(ctx);
}

/* An error that answers no request is the node's last word about the connection: that it may not speak here, for example. Not that it is
 * busy: it says so of a ping. */
static bool is_last_word(struct pawl *hub, enum client_kind kind, uint32_t msgid, struct slice message) {
	struct client_response r;
	if (kind != CLIENT_RESPONSE || msgid != 0 || client_response_decode(&hub->decoder, CLIENT_PING, message, &r) != 0
		|| r.error == 0 || r.error == PAWL_EBUSY) {
		return false;
	}
	char why[CONNECTION_PROBLEM_MAX];
	(void)snprintf(why, sizeof(why), "%.*s", (int)(r.message.size < sizeof(why) ? r.message.size : sizeof(why) - 1),
		r.message.size ? (const char *)r.message.data : "");
	connection_lost(hub, r.error, why);
	return true;
}

/* One message is at the front, found whole. False: what follows cannot be read any more. */
static bool take_message(struct pawl *hub, struct slice message) {
	enum client_kind kind;
	uint32_t msgid;
	if (client_response_peek(message, &kind, &msgid) != 0) {
		return false;
	}
	if (is_last_word(hub, kind, msgid, message)) {
		return true;
	}
	hub->failed_in_round = hub->failed_for_good = 0; /* it talks: a node that only accepts connections does not */
	hub->rounds_failed = 0;
	if (kind == CLIENT_RESPONSE) {
		hub->handlers->on_answer(hub, msgid, message);
		return true;
	}
	return hub->handlers->on_event(hub, message);
}

/* An answer; or that what is watched changes: a node that is gone would never tell. */
static bool awaits_anything(const struct pawl *hub) {
	return !list_empty(&hub->flight) || !list_empty(&hub->watches);
}

/* Messages one after the other; a callback may end the connection or the client in between. */
static void on_data(void *ctx) {
	struct pawl *hub = ctx;
	struct connection *l = &hub->connection;
	size_t used = 0;
	hub->heard = hub_now(hub);
	hub->pinged = false;
	enum client_scan found = CLIENT_SCAN_COMPLETE;
	while (l->state == CONNECTION_UP && !hub->dying && found == CLIENT_SCAN_COMPLETE) {
		struct slice rest = slice_of(l->in.data + used, l->in.size - used);
		size_t size;
		found = rest.size ? client_scan(&hub->scanner, &client_response_limits, rest, &size) : CLIENT_SCAN_MORE;
		if (found == CLIENT_SCAN_COMPLETE) {
			used += size;
			found = take_message(hub, slice_of(rest.data, size)) ? found : CLIENT_SCAN_GARBAGE;
		}
	}
	if (!awaits_anything(hub)) {
		agenda_clear(&hub->agenda, &hub->silence_alarm); /* it may be silent */
	}
	if (l->state == CONNECTION_UP) {
		buffer_consume(&l->in, used);
		if (found == CLIENT_SCAN_GARBAGE || found == CLIENT_SCAN_TOO_LARGE) {
			connection_lost(hub, PAWL_EPROTOCOL, "what it answers is not Pawl's protocol");
		}
	}
}

/* ---- silence ---- */

/* Where only events are awaited there is more time: a thousand idle watchers must not be a thousand pings a second. */
static span_ns silence_limit(struct pawl *hub) {
	if (list_empty(&hub->flight)) {
		return hub->silence * 4;
	}
	span_ns limit = lease_share(hub, hub->silence);
	return limit > SILENCE_LEAST ? limit : SILENCE_LEAST;
}

void failover_watch_silence(struct pawl *hub) {
	if (!wheel_armed(&hub->silence_alarm.timer) || hub->only_watching) {
		hub->heard = hub_now(hub);
		hub->pinged = false;
		failover_silence_anew(hub);
	}
}

void failover_silence_anew(struct pawl *hub) {
	if (awaits_anything(hub)) {
		hub->only_watching = list_empty(&hub->flight);
		struct instant since = hub->pinged ? hub->ping_at : hub->heard;
		agenda_set(&hub->agenda, &hub->silence_alarm, since.boot + silence_limit(hub) / 2);
	}
}

static void ping(struct pawl *hub, struct instant now) {
	struct client_request request = { .msgid = 0, .method = CLIENT_PING }; /* no call has this msgid: any answer will do */
	if (client_request_encode(&request, &hub->connection.out) == 0) {
		hub->pinged = true;
		hub->ping_at = now;
		hub_kick(hub);
	}
}

static void on_silence_alarm(struct alarm *alarm) {
	struct pawl *hub = CONTAINER_OF(alarm, struct pawl, silence_alarm);
	if (!awaits_anything(hub) || hub->state != HUB_READY) {
		return;
	}
	connection_read_now(&hub->connection); /* this process may have been stopped: what came meanwhile counts */
	if (hub->dying || !awaits_anything(hub) || hub->state != HUB_READY) {
		return;
	}
	struct instant now = hub_now(hub);
	span_ns half = silence_limit(hub) / 2;
	if (hub->pinged && instant_elapsed_short(now, hub->ping_at) >= half) {
		connection_lost(hub, PAWL_ETIMEOUT, "the node is silent");
		return;
	}
	if (!hub->pinged && instant_elapsed_short(now, hub->heard) >= half) {
		ping(hub, now);
	}
	failover_silence_anew(hub);
}

void failover_move_on(struct pawl *hub, int error) {
	if (hub->endpoints.count > 1 && hub->state == HUB_READY && !hub->handlers->connection_needed(hub)) {
		connection_lost(hub, error, error == PAWL_ERECOVERING ? "the node does not vote" : "the node does not reach a quorum");
	}
}

void failover_init(struct pawl *hub) {
	hub->dial_alarm.ring = on_dial_alarm;
	hub->silence_alarm.ring = on_silence_alarm;
	hub->state = HUB_IDLE;
	connection_init(&hub->connection, hub->env.alloc, hub->base, (struct connection_owner){ on_enter, on_leave, on_up, on_data, on_room, on_down, hub });
	client_decoder_init(&hub->decoder, hub->env.alloc);
}

const char *pawl_endpoint(const struct pawl *client) {
	return client->state == HUB_READY ? client->endpoints.items[client->endpoint_at].text : "";
}
