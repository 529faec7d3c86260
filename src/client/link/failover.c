/* failover.c: chooses the node that the client talks to. It takes the endpoints in turn, pauses
 * after each round of failures, and leaves nodes that are silent (switch.c: before the whole
 * silence is over). */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "client_core.h"

#define PAUSE_FIRST (50 * SPAN_MS)
#define PAUSE_LAST (1000 * SPAN_MS)

const char *session_endpoint_text(const struct session *session) {
	return session->endpoint.text;
}

static void note_failure(struct session *session, int error, const char *why) {
	struct pawl *client = session->client;
	client->last_error = error == PAWL_ECLOSED ? PAWL_EUNREACHABLE : error;
	(void)snprintf(client->last_problem, sizeof(client->last_problem), "%.*s: %.*s",
		ENDPOINT_TEXT_MAX - 1, session_endpoint_text(session), CONNECTION_PROBLEM_MAX - 1,
		why);
}

/* No lock may be lost because some nodes hang. So while there are locks, nothing takes longer than
 * a sixth of the shortest lease: then the client can leave two hanging nodes in the time between a
 * third of the lease, when renewal begins, and the warning. */
span_ns failover_lease_share(struct pawl *client, span_ns limit) {
	struct pawl *holder = client->guest_of ? client->guest_of : client;
	span_ns shortest = client->handlers->lease_shortest(holder);
	return shortest && shortest / 6 < limit ? shortest / 6 : limit;
}

static void pause_begin(struct pawl *client) {
	span_ns pause = failover_lease_share(client, PAUSE_LAST),
		doubled = PAUSE_FIRST << (client->rounds_failed < 5 ? client->rounds_failed : 5);
	pause = doubled < pause ? doubled : pause;
	/* The pause is random, so that the clients of a dead node do not all come back at the same
	 * moment. */
	pause = prng_between(&client->prng, pause / 2, pause + pause / 2);
	client->rounds_failed++;
	client->state = CLIENT_CORE_PAUSING;
	agenda_set(&client->agenda, &client->pause_alarm, client_core_now(client).boot + pause);
}

static void on_pause_over(struct alarm *alarm) {
	struct pawl *client = CONTAINER_OF(alarm, struct pawl, pause_alarm);
	client->state = CLIENT_CORE_IDLE;
	client_core_kick(client);
}

/* Waiting does not cure an access rule, or certificates with which no node has ever answered. Those
 * that have served are renewed by somebody, and until then a holder uses up the lease that it
 * has. */
static bool hopeless(const struct pawl *client, int error) {
	return error == PAWL_EDENIED || (error == PAWL_ETLS && !client->served);
}

/* The present endpoint is of no use. Goes on to the next one; when all have failed, the client
 * pauses. */
static void move_on(struct pawl *client, int error) {
	if (client->guest_of && client->endpoint_at + 1 >= client->endpoints.count) {
		/* A guest asks each endpoint once. */
		client->handlers->unreachable(client, client->last_error);
		return;
	}
	client->failed_in_round++;
	client->failed_for_good += hopeless(client, error);
	client->endpoint_at = (client->endpoint_at + 1) % client->endpoints.count;
	if (client->failed_in_round < client->endpoints.count) {
		client_core_kick(client);
		return;
	}
	bool give_up = client->failed_for_good >= client->endpoints.count;
	client->failed_in_round = client->failed_for_good = 0;
	pause_begin(client);
	if (give_up) {
		client->handlers->unreachable(client, error);
	}
}

void failover_connect(struct pawl *client) {
	CHECK(client->state == CLIENT_CORE_IDLE);
	client->state = CLIENT_CORE_DIALING;
	locate_read_again(client);
	session_dial(client->session, &client->endpoints.items[client->endpoint_at],
		failover_lease_share(client, client->connect_timeout));
}

/* ---- what becomes of a session ---- */

void session_up(struct session *session) {
	struct pawl *client = session->client;
	if (session == client->spare) {
		/* The client does not rely on a node that has not said anything. */
		session_ping(session);
		return;
	}
	client->state = CLIENT_CORE_READY;
	session->number = ++client->connection_number;
	agenda_clear(&client->agenda, &session->dial_alarm);
	switch_arrived(client);
	client->handlers->connection_up(client);
	client_core_kick(client);
}

void session_failed(struct session *session, int error, const char *why) {
	struct pawl *client = session->client;
	if (session == client->spare) {
		session_close(session);
		switch_spare_failed(client);
		return;
	}
	note_failure(session, error, why);
	bool present = session == client->session;
	if (session->state == SESSION_UP) {
		client->handlers->connection_lost(session);
	}
	session_close(session);
	if (present) {
		session_close(client->spare);
		client->returning = false;
		client->state = CLIENT_CORE_IDLE;
	}
	client->handlers->connection_closed(session);
	if (present && !client->dying) {
		move_on(client, error);
	}
}

void session_spoke(struct session *session) {
	struct pawl *client = session->client;
	client->served = true;
	if (session == client->session) {
		client->failed_in_round = client->failed_for_good = 0;
		client->rounds_failed = 0;
	}
}

void session_ponged(struct session *session) {
	struct pawl *client = session->client;
	if (session == client->spare && !client->spare_ready) {
		switch_spare_ready(client);
	}
}

void session_heard(struct session *session) {
	struct pawl *client = session->client;
	if (session == client->session) {
		switch_spare_unneeded(client);
	} else if (session == client->old) {
		switch_old_heard(client);
	}
}

void failover_reset_silence_alarm(struct pawl *client) {
	silence_reset(client->session);
}

void failover_move_on(struct pawl *client, int error) {
	if (client->endpoints.count > 1 && client->state == CLIENT_CORE_READY
		&& !client->handlers->connection_needed(client)) {
		session_failed(client->session, error,
			error == PAWL_ERECOVERING ? "the node does not vote"
				: "the node does not reach a quorum");
	}
}

static int flush(struct session *session) {
	return session->state == SESSION_UP ? connection_flush(&session->connection) : 0;
}

int failover_flush(struct pawl *client) {
	struct session *others[] = { client->spare, client->old };
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]) && !client->dying; i++) {
		int error = flush(others[i]);
		if (error) {
			session_failed(others[i], error, others[i]->connection.problem);
		}
	}
	int error = client->dying ? 0 : flush(client->session);
	if (error) {
		session_failed(client->session, error, client->session->connection.problem);
	}
	return error;
}

void failover_init(struct pawl *client) {
	client->pause_alarm.ring = on_pause_over;
	client->state = CLIENT_CORE_IDLE;
	for (size_t i = 0; i < SESSIONS; i++) {
		session_init(&client->sessions[i], client);
	}
	switch_init(client);
	client_decoder_init(&client->decoder, client->env.alloc);
}

void failover_done(struct pawl *client) {
	for (size_t i = 0; i < SESSIONS; i++) {
		session_done(&client->sessions[i]);
	}
	client_decoder_done(&client->decoder);
}

const char *pawl_endpoint(const struct pawl *client) {
	return client->state == CLIENT_CORE_READY ? session_endpoint_text(client->session) : "";
}
