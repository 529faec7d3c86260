/* events.c: who hears of what happens on the connection and to calls, and in which order; and what
 * a turn of the loop does. */
#include "session_binding.h"
#include "election.h"
#include "top.h"

/* ---- a turn ---- */

static bool wants_connection(struct pawl *client) {
	return !list_empty(&client->queue) || !list_empty(&client->due)
		|| watches_want_connection(client);
}

static void client_core_turn(struct pawl *client) {
	session_binding_turn(client);
	renew_turn(client);
	if (client->state == CLIENT_CORE_READY) {
		watches_turn(client);
		calls_send(client);
	}
	switch_settle(client);
	if (failover_flush(client) == 0 && client->state == CLIENT_CORE_READY
		&& !list_empty(&client->queue)
		&& connection_backlog(&client->session->connection) == 0) {
		/* There was no room for these calls, and now there is. If there is none, the
		 * connection tells when there is. */
		client_core_kick(client);
	}
	if (client->state == CLIENT_CORE_IDLE && !client->dying && wants_connection(client)) {
		failover_connect(client);
	}
}

/* ---- the connection ---- */

static void connection_closed(struct session *session) {
	struct pawl *client = session->client;
	bool present = session == client->session;
	if (present) {
		watches_connection_lost(client);
	}
	calls_connection_lost(session);
	if (present) {
		session_binding_rebind(client);
	}
}

static size_t session_left(struct session *session, bool repeat) {
	watches_connection_lost(session->client);
	size_t repeated = calls_session_left(session, repeat);
	session_binding_rebind(session->client);
	return repeated;
}

static void unreachable(struct pawl *client, int error) {
	calls_fail_all(client, error);
	watches_fail_all(client, error);
}

static void cancel(struct pawl *client) {
	calls_fail_all(client, PAWL_ECANCELED);
}

const struct client_core_handlers client_handlers = {
	.turn = client_core_turn,
	.cancel = cancel,
	.destroy = client_core_destroy,
	.connection_up = session_binding_connection_up,
	.connection_lost = session_binding_connection_lost,
	.connection_closed = connection_closed,
	.session_left = session_left,
	.session_needed = session_binding_needs,
	.may_return = calls_may_return,
	.connection_needed = session_binding_full,
	.unreachable = unreachable,
	.on_answer = calls_answer,
	.on_event = watches_event,
	.lease_shortest = locks_shortest,
	.call_asked = entering_asked,
	.call_updated = reclaim_note_update,
	.call_interrupted = call_interrupt,
	.lock_trusted = lock_trusted,
	.guest_new = client_core_guest,
};
