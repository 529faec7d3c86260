/* switch.c: leaves a silent node for another one before the whole silence is over, and returns to
 * the first endpoint. The session that was left is read on: the first answer to a request counts,
 * wherever it comes from (docs/client-guide.md, What happens on the network). */
#include "check.h"
#include "client_core.h"

/* A spare session is given up if its node has not answered within this many times the time that the
 * present node has, but not before SPARE_LEAST. */
#define SPARE_TIMES 4
#define SPARE_LEAST (50 * SPAN_MS)
/* How long the client stays at another endpoint before it returns to the first one. If it has to
 * leave the first one again soon, it stays longer. */
#define RETURN_FIRST (10 * SPAN_S)
#define RETURN_LAST (640 * SPAN_S)

static span_ns spare_limit(struct pawl *client) {
	span_ns limit = failover_lease_share(client, client->connect_timeout);
	span_ns time = patience_time(&client->patience, limit) * SPARE_TIMES;
	time = time > SPARE_LEAST ? time : SPARE_LEAST;
	return time < limit ? time : limit;
}

static void return_later(struct pawl *client) {
	client->returning = false;
	if (client->prefer_first && client->endpoint_at != 0) {
		agenda_set(&client->agenda, &client->return_alarm,
			client_core_now(client).boot + client->return_pause);
	}
}

/* ---- the spare session ---- */

/* Dials the endpoint after that of `before` that is neither the present one nor, if there is a
 * third one, that of the old session. */
static void spare_dial(struct pawl *client, const struct session *before) {
	locate_read_again(client);
	const size_t count = client->endpoints.count;
	const struct endpoint *items = client->endpoints.items;
	const struct endpoint *old = count > 2 && client->old->state != SESSION_CLOSED
		? &client->old->endpoint : NULL;
	size_t at = endpoint_list_find(&client->endpoints, &before->endpoint, client->endpoint_at);
	for (size_t i = 1; i <= count; i++) {
		const struct endpoint *next = &items[(at + i) % count];
		if (!endpoint_same(next, &client->session->endpoint)
			&& !(old && endpoint_same(next, old))) {
			client->spare_tries--;
			client->spare_ready = false;
			session_dial(client->spare, next, spare_limit(client));
			return;
		}
	}
}

void failover_probe(struct pawl *client) {
	if (client->guest_of) {
		/* A guest asks one endpoint after the other. */
		return;
	}
	client->returning = false;
	client->spare_tries = client->endpoints.count - 1;
	if (client->spare->state == SESSION_CLOSED && patience_allows(&client->patience)) {
		spare_dial(client, client->session);
	}
}

void switch_spare_failed(struct pawl *client) {
	if (client->returning) {
		return_later(client);
	} else if (client->spare_tries && client->session->pinged) {
		spare_dial(client, client->spare);
	}
}

void switch_spare_unneeded(struct pawl *client) {
	if (client->spare->state != SESSION_CLOSED && !client->returning) {
		session_close(client->spare);
	}
}

/* ---- the switch ---- */

static void old_give_up(struct pawl *client) {
	if (client->old->state != SESSION_CLOSED) {
		session_failed(client->old, PAWL_ETIMEOUT, "the node does not answer");
	}
}

/* Makes the spare session the present one. `repeat`: the node that is left is silent. */
static void switch_sessions(struct pawl *client, bool repeat) {
	old_give_up(client);
	if (client->dying || client->spare->state != SESSION_UP
		|| client->session->state != SESSION_UP) {
		/* The program has ended it all meanwhile. */
		return;
	}
	struct session *left = client->session, *closed = client->old;
	client->old = left;
	client->session = client->spare;
	client->spare = closed;
	client->endpoint_at = endpoint_list_find(&client->endpoints, &client->session->endpoint,
		client->endpoint_at);
	client->session->number = ++client->connection_number;
	agenda_clear(&client->agenda, &client->session->dial_alarm);
	client->failed_in_round = client->failed_for_good = 0;
	client->spare_ready = client->returning = false;
	int64_t now = client_core_now(client).boot;
	client->left_early_until =
		repeat ? now + patience_time(&client->patience, client->silence / 2) : 0;
	size_t repeated = client->handlers->session_left(left, repeat);
	if (repeat) {
		patience_switched(&client->patience, repeated, now);
	}
	if (!client->dying) {
		switch_arrived(client);
		client->handlers->connection_up(client);
		silence_reset(left);
		client_core_kick(client);
	}
}

void failover_overdue(struct pawl *client) {
	if (client->spare_ready) {
		switch_sessions(client, true);
	} else if (client->spare->state == SESSION_CLOSED) {
		failover_probe(client);
	}
}

void switch_spare_ready(struct pawl *client) {
	agenda_clear(&client->agenda, &client->spare->dial_alarm);
	client->spare_ready = true;
	if (client->state == CLIENT_CORE_READY && client->session->overdue) {
		switch_sessions(client, true);
	} else if (client->returning && client->handlers->may_return(client)) {
		client->returned_at = client_core_now(client).boot;
		switch_sessions(client, false);
	} else if (client->returning) {
		session_close(client->spare);
		return_later(client);
	}
}

/* ---- the old session ---- */

void switch_old_heard(struct pawl *client) {
	int64_t now = client_core_now(client).boot;
	if (now < client->left_early_until) {
		patience_too_short(&client->patience, now);
	}
	client->left_early_until = 0;
	switch_settle(client);
}

void switch_settle(struct pawl *client) {
	struct session *old = client->old;
	if (old->state == SESSION_UP && !old->flights && !old->owed && !old->pong_due
		&& !client->handlers->session_needed(old)) {
		session_close(old);
	}
}

/* ---- the return ---- */

void switch_arrived(struct pawl *client) {
	int64_t now = client_core_now(client).boot;
	if (client->endpoint_at == 0) {
		agenda_clear(&client->agenda, &client->return_alarm);
		return;
	}
	bool soon = client->returned_at && now - client->returned_at < 8 * client->return_pause;
	client->return_pause = soon ? client->return_pause * 2 : RETURN_FIRST;
	client->return_pause = client->return_pause < RETURN_LAST ? client->return_pause
		: RETURN_LAST;
	return_later(client);
}

static void on_return_alarm(struct alarm *alarm) {
	struct pawl *client = CONTAINER_OF(alarm, struct pawl, return_alarm);
	if (client->state == CLIENT_CORE_READY && client->endpoint_at != 0
		&& client->spare->state == SESSION_CLOSED && !client->session->pinged) {
		client->returning = true;
		client->spare_tries = 0;
		client->spare_ready = false;
		session_dial(client->spare, &client->endpoints.items[0], spare_limit(client));
	} else {
		return_later(client);
	}
}

void switch_init(struct pawl *client) {
	client->session = &client->sessions[0];
	client->spare = &client->sessions[1];
	client->old = &client->sessions[2];
	client->return_alarm.ring = on_return_alarm;
	client->return_pause = RETURN_FIRST;
	patience_init(&client->patience);
}
