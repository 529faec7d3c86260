/* move_on.c: a call that its node refuses for itself, and not for the cluster, is sent to the next
 * node. */
#include "call.h"

/* A call that may wait pauses for about this time after every node has refused it. */
#define ROUND_PAUSE (500 * SPAN_MS)

/* Tells whether the caller lets this call wait for longer. */
static bool may_still_wait(const struct pawl_call *call) {
	const enum pawl_method method = call->request->method;
	return (method == PAWL_ACQUIRE || method == PAWL_WAIT)
		&& instant_left_short(client_core_now(call->client), call->wait_end) > 0;
}

/* A node that has lost its memory, or its links to the others, refuses for itself and not for the
 * cluster, so another node may do better. A call that must go over this connection, because it is
 * about this connection, stays here. Any other asks each node once, or for as long as it may
 * wait. */
static bool can_move_on(const struct pawl_call *call, int error) {
	const struct pawl *client = call->client;
	if (client->guest_of) {
		/* A guest asks each endpoint once, in order (docs/client-protocol.md, Moved). */
		return error == PAWL_ERECOVERING
			&& client->endpoint_at + 1 < client->endpoints.count;
	}
	return (error == PAWL_ERECOVERING || error == PAWL_ENOQUORUM) && !call->internal
		&& !call->tied && request_copy_repeatable(call->request)
		&& (call->moves + 1 < client->endpoints.count || may_still_wait(call));
}

/* Prepares another attempt with new lock_ids. Those of the previous attempt are spent: their
 * release may be on its way, or is sent now. Returns false if the caller has chosen the lock_ids,
 * because then only the caller may change them. */
static bool redraw_lock_ids(struct pawl_call *call) {
	if (!call->request->drawn) {
		return false;
	}
	/* An answer on the session that was left would be about the previous lock_ids. */
	flight_end(&call->before);
	calls_release_quietly(call->client, call->request);
	return request_copy_draw(call->request) == 0;
}

/* Asks the next node, and keeps the answer in case no other node does better. */
static bool move_on(struct pawl_call *call, struct session *session,
	const struct client_response *r, struct slice message) {
	struct pawl *client = call->client;
	struct result_box *next = result_new(&client->env, call->request->method);
	if (!next) {
		return false;
	}
	if (r->error == PAWL_ENOQUORUM && call->request->method == PAWL_ACQUIRE
		&& !redraw_lock_ids(call)) {
		pawl_result_free(&next->result);
		return false;
	}
	result_answer(call->box, r, message, session_endpoint_text(session), call->sent_at);
	if (call->previous) {
		pawl_result_free(&call->previous->result);
	}
	call->previous = call->box;
	call->box = next;
	call->moves++;
	const bool leaves = session == client->session;
	if (call->moves % client->endpoints.count == 0
		|| (leaves && client->handlers->connection_needed(client))) {
		/* Every node has refused, or the client has to stay at this one. */
		call_rest(call, prng_between(&client->prng, ROUND_PAUSE / 2, ROUND_PAUSE * 3 / 2));
	} else if (!leaves || client->guest_of) {
		/* The client has left that node already; or the refusal is an answer even to a
		 * request that must not be repeated. */
		flight_again(call);
	}
	if (leaves) {
		failover_move_on(client, r->error);
	}
	return true;
}

bool call_move_on(struct pawl_call *call, struct session *session,
	const struct client_response *r, struct slice message) {
	return can_move_on(call, r->error) && move_on(call, session, r, message);
}
