/* events.c: who hears of what happens on the connection and to calls, and in which order; and what a turn of the loop does. */
#include "session_binding.h"
#include "election.h"
#include "top.h"

/* ---- a turn ---- */

static bool wants_connection(struct pawl *hub) {
	return !list_empty(&hub->queue) || !list_empty(&hub->due) || watches_want_connection(hub);
}

static void hub_turn(struct pawl *hub) {
	session_binding_turn(hub);
	renew_turn(hub);
	if (hub->state == HUB_READY) {
		watches_turn(hub);
		calls_send(hub);
	}
	if (hub->state == HUB_READY && !hub->dying) {
		int error = connection_flush(&hub->connection);
		if (error) {
			hub->connection.owner.down(hub, error);
		} else if (!list_empty(&hub->queue) && connection_backlog(&hub->connection) == 0) {
			hub_kick(hub); /* there was no room for them, now there is; else the connection tells when */
		}
	}
	if (hub->state == HUB_IDLE && !hub->dying && wants_connection(hub)) {
		failover_connect(hub);
	}
}

/* ---- the connection ---- */

static void connection_closed(struct pawl *hub) {
	watches_connection_lost(hub);
	calls_connection_lost(hub);
	session_binding_anew(hub);
}

static void unreachable(struct pawl *hub, int error) {
	calls_fail_all(hub, error);
	watches_fail_all(hub, error);
}

static void cancel(struct pawl *hub) {
	calls_fail_all(hub, PAWL_ECANCELED);
}

const struct hub_handlers client_handlers = {
	.turn = hub_turn,
	.cancel = cancel,
	.destroy = hub_destroy,
	.connection_up = session_binding_connection_up,
	.connection_lost = session_binding_connection_lost,
	.connection_closed = connection_closed,
	.connection_needed = session_binding_full,
	.unreachable = unreachable,
	.on_answer = calls_answer,
	.on_event = watches_event,
	.lease_shortest = locks_shortest,
	.call_asked = entering_asked,
	.call_updated = reclaim_note_update,
	.lock_believed = lock_believed,
};
