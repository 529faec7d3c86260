/* switch.c: leaves a silent node for another one before the whole silence is over, and returns to
 * the first endpoint. The line that was left is read on: the first answer to a request counts,
 * wherever it comes from (docs/client-guide.md, What happens on the network). */
#include "check.h"
#include "client_core.h"

/* A spare line is given up when its node has not answered in so many times the time that the
 * present node is given, but not before SPARE_LEAST. */
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

/* ---- the spare line ---- */

/* Dials the endpoint after `before` that is neither the present one nor, if there is a third one,
 * that of the old line. */
static void spare_dial(struct pawl *client, size_t before) {
	size_t count = client->endpoints.count, next = before;
	do {
		next = (next + 1) % count;
	} while (next == client->line->endpoint
		|| (count > 2 && client->old->state != LINE_CLOSED
			&& next == client->old->endpoint));
	client->spare_tries--;
	client->spare_ready = false;
	line_dial(client->spare, next, spare_limit(client));
}

void failover_probe(struct pawl *client) {
	client->returning = false;
	client->spare_tries = client->endpoints.count - 1;
	if (client->spare->state == LINE_CLOSED && patience_allows(&client->patience)) {
		spare_dial(client, client->line->endpoint);
	}
}

void switch_spare_failed(struct pawl *client) {
	if (client->returning) {
		return_later(client);
	} else if (client->spare_tries && client->line->pinged) {
		spare_dial(client, client->spare->endpoint);
	}
}

void switch_spare_unneeded(struct pawl *client) {
	if (client->spare->state != LINE_CLOSED && !client->returning) {
		line_close(client->spare);
	}
}

/* ---- the switch ---- */

static void old_give_up(struct pawl *client) {
	if (client->old->state != LINE_CLOSED) {
		line_failed(client->old, PAWL_ETIMEOUT, "the node does not answer");
	}
}

/* Makes the spare line the present one. `repeat`: the node that is left is silent. */
static void switch_lines(struct pawl *client, bool repeat) {
	old_give_up(client);
	if (client->dying || client->spare->state != LINE_UP || client->line->state != LINE_UP) {
		/* The program has ended it all meanwhile. */
		return;
	}
	struct line *left = client->line, *closed = client->old;
	client->old = left;
	client->line = client->spare;
	client->spare = closed;
	client->endpoint_at = client->line->endpoint;
	client->line->number = ++client->connection_number;
	agenda_clear(&client->agenda, &client->line->dial_alarm);
	client->failed_in_round = client->failed_for_good = 0;
	client->spare_ready = client->returning = false;
	int64_t now = client_core_now(client).boot;
	client->left_early_until =
		repeat ? now + patience_time(&client->patience, client->silence / 2) : 0;
	size_t repeated = client->handlers->line_left(left, repeat);
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
		switch_lines(client, true);
	} else if (client->spare->state == LINE_CLOSED) {
		failover_probe(client);
	}
}

void switch_spare_ready(struct pawl *client) {
	agenda_clear(&client->agenda, &client->spare->dial_alarm);
	client->spare_ready = true;
	if (client->state == CLIENT_CORE_READY && client->line->overdue) {
		switch_lines(client, true);
	} else if (client->returning && client->handlers->may_return(client)) {
		client->returned_at = client_core_now(client).boot;
		switch_lines(client, false);
	} else if (client->returning) {
		line_close(client->spare);
		return_later(client);
	}
}

/* ---- the old line ---- */

void switch_old_heard(struct pawl *client) {
	int64_t now = client_core_now(client).boot;
	if (now < client->left_early_until) {
		patience_too_short(&client->patience, now);
	}
	client->left_early_until = 0;
	switch_settle(client);
}

void switch_settle(struct pawl *client) {
	struct line *old = client->old;
	if (old->state == LINE_UP && !old->flights && !old->owed && !old->pong_due
		&& !client->handlers->line_needed(old)) {
		line_close(old);
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
		&& client->spare->state == LINE_CLOSED && !client->line->pinged) {
		client->returning = true;
		client->spare_tries = 0;
		client->spare_ready = false;
		line_dial(client->spare, 0, spare_limit(client));
	} else {
		return_later(client);
	}
}

void switch_init(struct pawl *client) {
	client->line = &client->lines[0];
	client->spare = &client->lines[1];
	client->old = &client->lines[2];
	client->return_alarm.ring = on_return_alarm;
	client->return_pause = RETURN_FIRST;
	patience_init(&client->patience);
}
