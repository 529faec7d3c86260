/* call.c: the life of a call: it is queued, sent, repeated where that is safe, and ended once. */
#include "call.h"

#include <string.h>

#define CHANGE_WAIT_MS_DEFAULT 600000
/* When this many bytes wait to be written, no more are added, and calls wait in the queue
 * instead. */
#define OUT_BYTES_FULL ((size_t)8 << 20)

static void call_free(struct pawl_call *call) {
	struct pawl *client = call->client;
	list_remove(&call->link);
	list_remove(&call->named);
	flight_end(&call->last);
	flight_end(&call->before);
	agenda_clear(&client->agenda, &call->alarm);
	agenda_clear(&client->agenda, &call->rest);
	call_follow_no_more(call);
	if (!call->borrows) {
		request_copy_free(call->request);
	}
	if (call->box) {
		pawl_result_free(&call->box->result);
	}
	if (call->previous) {
		pawl_result_free(&call->previous->result);
	}
	client->call_count--;
	alloc_free(client->env.alloc, call, sizeof(*call));
}

/* Returns whether the key could be held although the caller was not given it. It could not if only
 * one node was asked and refused for a reason that comes before any commit. It also does not count
 * if the key is held in another mode under this very lock_id: a release would take it from its
 * holder. (docs/protocol.md, Release: after a failed commit the client library releases.) A guest
 * leaves that to its host. */
static bool acquire_in_doubt(const struct pawl_call *call, int error, bool answered) {
	if (call->borrows || call->request->method != PAWL_ACQUIRE || call->sends == 0 || error == 0
		|| (answered && error == PAWL_EMISMATCH)) {
		return false;
	}
	bool refused = error == PAWL_EHELD || error == PAWL_ETIMEOUT || error == PAWL_EBADREQUEST
		|| error == PAWL_EDENIED || error == PAWL_ETOOLONG || error == PAWL_ETOOLARGE
		|| error == PAWL_EQUOTA || error == PAWL_EDEADLOCK || error == PAWL_EMOVED;
	return !(answered && refused && call->sends == 1);
}

void call_end(struct pawl_call *call, bool answered) {
	struct pawl *client = call->client;
	struct pawl_result *result = &call->box->result;
	if (!client->dying && acquire_in_doubt(call, result->error, answered)) {
		calls_release_quietly(client, call->request);
	}
	result->repeated = call->sends > 1;
	call->box = NULL;
	/* A function that ends all calls must not meet this one again. */
	list_remove(&call->link);
	call->end(call, result, call->ctx);
	call_free(call);
}

void call_fail(struct pawl_call *call, int error, const char *why) {
	result_fail(call->box, error, why);
	call_end(call, false);
}

void call_interrupt(struct pawl_call *call) {
	if (call->request->method == PAWL_RELEASE) {
		/* A release may be repeated, and this one must not be forgotten. */
		calls_release_quietly(call->client, call->request);
	}
	call_fail(call, PAWL_EINTERRUPTED, NULL);
}

static void on_deadline(struct alarm *alarm) {
	struct pawl_call *call = CONTAINER_OF(alarm, struct pawl_call, alarm);
	struct pawl *client = call->client;
	if (request_copy_unsure(call->request) && call->sends > 0) {
		call_fail(call, PAWL_EUNSURE,
			"no answer came in time; the request may still take effect");
	} else if (call->previous) {
		/* This outcome says more than the silence of the other nodes. */
		pawl_result_free(&call->box->result);
		call->box = call->previous;
		call->previous = NULL;
		call_end(call, false);
	} else if (client->state == CLIENT_CORE_READY || client->last_error == 0) {
		char text[CONNECTION_PROBLEM_MAX + ENDPOINT_TEXT_MAX];
		const char *hint = client->state == CLIENT_CORE_READY
			? session_hint(client->session)
			: "";
		(void)snprintf(text, sizeof(text), "no answer came in time%s%s%s",
			*hint ? " from " : "", *hint ? session_endpoint_text(client->session) : "",
			hint);
		call_fail(call, PAWL_ETIMEOUT, text);
	} else {
		call_fail(call, client->last_error, client->last_problem);
	}
}

/* Returns how long the node itself may take before it answers. */
static span_ns wait_of(const struct pawl_request *r) {
	switch (r->method) {
	case PAWL_ACQUIRE:
	case PAWL_WAIT:
		return request_wait(r->wait_ms);
	case PAWL_CHANGE:
		return (span_ns)(r->wait_ms ? r->wait_ms : CHANGE_WAIT_MS_DEFAULT) * SPAN_MS;
	case PAWL_EXTEND:
	case PAWL_UPDATE:
	case PAWL_RELEASE:
	case PAWL_GET:
	case PAWL_LIST:
	case PAWL_WAITERS:
	case PAWL_BREAK:
	case PAWL_STATUS:
	case PAWL_PING:
	case PAWL_DRAIN:
	case PAWL_DOWNGRADE:
	case PAWL_TRANSFER:
	case PAWL_ASK_RELEASE:
	case PAWL_EXPLAIN:
	case PAWL_WATCH:
	case PAWL_UNWATCH:
	case PAWL_CLIENTS:
	case PAWL_KICK:
	case PAWL_CAN:
	case PAWL_TOP:
		return 0;
	}
	return 0;
}

static void call_schedule(struct pawl_call *call, const struct call_start *start) {
	struct pawl *client = call->client;
	const struct pawl_request *r = start->request;
	struct instant now = client_core_now(client);
	span_ns timeout = start->timeout;
	if (timeout == 0) {
		timeout = r->timeout_ms ? (span_ns)r->timeout_ms * SPAN_MS : client->timeout;
	}
	call->wait_end = instant_add(now, wait_of(r));
	call->waits = r->method == PAWL_WAIT || r->method == PAWL_DRAIN || wait_of(r) > 0;
	call->deadline = instant_add(call->wait_end, timeout).boot;
	agenda_set(&client->agenda, &call->alarm, call->deadline);
}

int call_start(struct pawl *client, const struct call_start *start, struct pawl_call **out_call) {
	if (client->dying) {
		return PAWL_EINVAL;
	}
	if (client->call_count >= (start->internal ? 2 : 1) * (size_t)CALLS_MAX) {
		return PAWL_EBUSY;
	}
	struct request_copy *request;
	int error = request_copy_new(client->env.alloc, start->request, &client->self, &request);
	if (error) {
		return error;
	}
	struct pawl_call *call = alloc_new(client->env.alloc, sizeof(*call));
	struct result_box *box = result_new(&client->env, start->request->method);
	if (!call || !box) {
		pawl_result_free(box ? &box->result : NULL);
		alloc_free(client->env.alloc, call, sizeof(*call));
		request_copy_free(request);
		return PAWL_ENOMEM;
	}
	*call = (struct pawl_call){ .client = client, .request = request, .box = box,
		.alarm.ring = on_deadline, .internal = start->internal, .tied = start->tied,
		.connection = client->connection_number, .end = start->end, .drop = start->drop,
		.ctx = start->ctx };
	list_init(&call->errands);
	if (start->with) {
		request_copy_with(request, start->with);
	}
	if (start->orders) {
		request_copy_orders(request);
	}
	client->call_count++;
	client->handlers->call_asked(call);
	list_insert_before(start->internal ? client->queue.next : &client->queue, &call->link);
	call_schedule(call, start);
	client_core_kick(client);
	if (out_call) {
		*out_call = call;
	}
	return 0;
}

void call_cancel(struct pawl_call *take_call) {
	struct pawl *client = take_call->client;
	if (!client->dying && acquire_in_doubt(take_call, PAWL_ECANCELED, false)) {
		calls_release_quietly(client, take_call->request);
	}
	if (take_call->drop) {
		take_call->drop(take_call->ctx);
	}
	call_free(take_call);
}

/* ---- sending ---- */

/* Returns the lease of a request that leaves it open: the default, or what the cluster allows if
 * that is less. What it allows covers the lock delay, too. */
static span_ns default_lease(const struct pawl_call *call) {
	const span_ns delay = call->request->wire.core.terms.delay, most = call->client->lease_most,
		room = most > delay ? most - delay : most,
		usual = (span_ns)LEASE_MS_DEFAULT * SPAN_MS;
	return room < usual ? room : usual;
}

static int call_send(struct pawl_call *call, struct instant now) {
	struct pawl *client = call->client;
	struct client_request *wire = &call->request->wire;
	wire->msgid = flight_draw_msgid(client);
	if (call->request->default_lease) {
		request_copy_set_lease(call->request, default_lease(call));
	}
	if (wire->present & CLIENT_HAS_WAIT) {
		wire->core.wait = instant_left_short(now, call->wait_end);
	}
	if (wire->present & CLIENT_HAS_RELEASE_ON_DISCONNECT) {
		/* When the call is repeated, the end of an earlier connection must not end the lock
		 * any more. */
		wire->present |= CLIENT_HAS_BINDING;
		wire->core.binding = client->connection_number;
	}
	wire->present &= ~client->session->unknown;
	int error = client_request_encode(wire, &client->session->connection.out);
	if (error) {
		return error;
	}
	call->sent_at = now;
	call->sends++;
	flight_begin(call, wire->msgid, now);
	return 0;
}

void calls_send(struct pawl *client) {
	struct instant now = client_core_now(client);
	struct list *at;
	while ((at = list_first(&client->queue)) != NULL
		&& connection_backlog(&client->session->connection) < OUT_BYTES_FULL) {
		struct pawl_call *call = CONTAINER_OF(at, struct pawl_call, link);
		int error = call->tied && call->connection != client->connection_number
			? PAWL_ECLOSED
			: call_send(call, now);
		if (error) {
			call_fail(call, error, NULL);
		}
	}
}

/* ---- answers ---- */

/* An acquire that has waited for a hundred leases is granted with no time left, because the drift
 * that clocks are allowed over the wait is longer than the lease. The lock is there nevertheless.
 * So the call asks again for its lock_ids, and the node, which does not let it wait this time,
 * grants them with the time that is left (docs/protocol.md, What the holder may count on). Returns
 * false where this is no such answer; the call asks again once, whatever the node says then. */
static bool ask_again_after_wait(struct pawl_call *call, const struct session *session,
	const struct client_response *r) {
	struct pawl *client = call->client;
	if (call->request->method != PAWL_ACQUIRE || call->asked_again || r->error
		|| call->borrows || session != client->session
		|| r->waited <= call->request->wire.core.lease
		|| !instant_distrusted(client_core_now(client),
			instant_add(call->sent_at, r->valid))) {
		return false;
	}
	call->asked_again = true;
	flight_again(call);
	return true;
}

/* A node of release 0.1 refuses the parameters `party` and `trace`. Sends the request again without
 * it, and the next ones over this connection, too. Returns whether it did. */
static bool leave_out(struct pawl_call *call, struct session *session,
	const struct client_response *r) {
	struct client_request *wire = &call->request->wire;
	const uint64_t param = slice_equal(r->field, slice_str("party")) ? CLIENT_HAS_PARTY
		: slice_equal(r->field, slice_str("trace")) ? CLIENT_HAS_TRACE : 0;
	if (r->error != PAWL_EBADREQUEST || !(wire->present & param)) {
		return false;
	}
	session->unknown |= param;
	wire->present &= ~param;
	/* The refusal had no effect, so this send does not count. */
	call->sends--;
	flight_again(call);
	return true;
}

/* Returns the longest lease that the cluster allows, as the answer says it to a request, or to one
 * of the locks that are extended together, whose lease was left open; 0 if it does not. */
static span_ns lease_refused(const struct pawl_call *call, const struct client_response *r) {
	if (r->error) {
		return r->error == PAWL_ETOOLONG && (r->present & CLIENT_RESULT_LIMIT) ? r->limit
			: 0;
	}
	for (size_t i = 0; r->extended && i < r->count && i < call->request->wire.lock_count; i++) {
		if (r->extended[i].error == PAWL_ETOOLONG && call->request->lease_open[i]) {
			return r->extended[i].limit;
		}
	}
	return 0;
}

/* Sends the request again if its lease was left open, and the default is longer than the cluster
 * allows. Returns whether it did. Locks that were extended together with such a one are extended
 * twice, which does no harm. */
static bool lower_lease(struct pawl_call *call, const struct client_response *r) {
	struct pawl *client = call->client;
	const span_ns most = call->request->default_lease && !call->lease_lowered
		? lease_refused(call, r)
		: 0;
	if (most <= 0) {
		return false;
	}
	client->lease_most = most;
	if (default_lease(call) >= call->request->lease) {
		return false;
	}
	call->lease_lowered = true;
	flight_end(&call->before);
	/* The refusal had no effect, so this send does not count. */
	call->sends--;
	flight_again(call);
	return true;
}

/* Ends the call with the outcome that the node has answered over that session. */
static void finish_with_answer(struct pawl_call *call, struct session *session,
	const struct client_response *r, struct slice message) {
	struct pawl *client = call->client;
	call->connection = session->number;
	result_answer(call->box, r, message, session_endpoint_text(session), call->sent_at);
	if (call->box->result.error != r->error && request_copy_unsure(call->request)) {
		result_fail(call->box, PAWL_EUNSURE,
			"the answer could not be stored; the request may have taken effect");
	}
	if (call->request->method == PAWL_ACQUIRE && !r->error) {
		call->box->result.lock_id = request_copy_lock_id(call->request, 0);
	}
	if (call->request->method == PAWL_UPDATE && !r->error) {
		client->handlers->call_updated(client, call->request);
	}
	call_end(call, true);
}

void calls_answer(struct session *session, uint32_t msgid, struct slice message) {
	struct pawl *client = session->client;
	struct flight *flight = flight_find(client, msgid);
	if (!flight || flight->session != session) {
		/* This answers a call that is over. */
		return;
	}
	struct pawl_call *call = flight->call;
	bool before = flight == &call->before;
	struct client_response r;
	int error = client_response_decode(&client->decoder, call->request->wire.method, message,
		&r);
	if (before && (error || r.error || call_binds(call))) {
		/* The node that the client has left refuses, and the next one may do better; or it
		 * has granted a lock that is to end with the present connection, and not with the
		 * one that was left. */
		flight_end(flight);
		return;
	}
	call->sent_at = flight->sent_at;
	if (error) {
		call_fail(call, request_copy_unsure(call->request) ? PAWL_EUNSURE : error, NULL);
		return;
	}
	if (session == client->session && !call->waits) {
		/* The answer came when the node was last heard. */
		struct instant came = session->silent_since;
		patience_answered(&client->patience, instant_elapsed_short(came, call->sent_at),
			came.boot);
	}
	if (call_back_off(call, &r) || lower_lease(call, &r) || leave_out(call, session, &r)
		|| ask_again_after_wait(call, session, &r)
		|| call_follow(call, session, &r, message)
		|| call_move_on(call, session, &r, message)) {
		return;
	}
	finish_with_answer(call, session, &r, message);
}

void calls_fail_all(struct pawl *client, int error) {
	struct list all;
	list_init(&all);
	struct list *at;
	while ((at = list_first(&client->flight)) != NULL
		|| (at = list_first(&client->queue)) != NULL
		|| (at = list_first(&client->resting)) != NULL) {
		list_remove(at);
		list_append(&all, at);
	}
	/* Calls that callbacks start go to the queue and stay there. */
	while ((at = list_first(&all)) != NULL) {
		call_fail(CONTAINER_OF(at, struct pawl_call, link), error,
			error == PAWL_ECANCELED ? NULL : client->last_problem);
	}
}

/* ---- what nobody waits for ---- */

static void release_on_close(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id,
	span_ns closes) {
	struct client_request release = { .msgid = flight_draw_msgid(client),
		.method = CLIENT_RELEASE,
		.present = CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | (closes ? CLIENT_HAS_CLOSE : 0),
		.core = { .op = CORE_RELEASE, .key = slice_of(key.data, key.size),
			.closes = closes } };
	memcpy(release.core.lock_id.b, lock_id.bytes, sizeof(release.core.lock_id.b));
	/* If this does not fit, the lease runs out by itself. */
	(void)client_request_encode(&release, &client->session->connection.out);
}

void call_release_on_close(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id) {
	release_on_close(client, key, lock_id, 0);
}

static void release_all_on_close(struct pawl *client, const struct pawl_call *call) {
	const struct pawl *holder = client->guest_of ? client->guest_of : client;
	for (size_t i = 0; i < request_copy_locks(call->request); i++) {
		struct pawl_id lock_id = request_copy_lock_id(call->request, i);
		if (call->request->method == PAWL_RELEASE
			|| !client->handlers->lock_trusted(holder, lock_id)) {
			release_on_close(client, request_copy_key(call->request, i), lock_id,
				call->request->wire.core.closes);
		}
	}
}

void calls_release_on_close(struct pawl *client) {
	for (struct list *at = list_first(&client->flight); at;
		at = list_after(&client->flight, at)) {
		struct pawl_call *call = CONTAINER_OF(at, struct pawl_call, link);
		if (call->request->method == PAWL_ACQUIRE) {
			release_all_on_close(client, call);
		}
	}
	for (struct list *at = list_first(&client->queue); at;
		at = list_after(&client->queue, at)) {
		struct pawl_call *call = CONTAINER_OF(at, struct pawl_call, link);
		if (call->request->method == PAWL_RELEASE) {
			release_all_on_close(client, call);
		}
	}
}

static void forget(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	(void)call;
	(void)ctx;
	pawl_result_free(take_result);
}

static void release_quietly(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id,
	span_ns closes) {
	if (client->handlers->lock_trusted(client, lock_id)) {
		/* The program has repeated the lock_id of a lock that it holds. That lock must not
		 * be taken away. */
		return;
	}
	struct pawl_request request = { .method = PAWL_RELEASE, .key = key, .lock_id = lock_id };
	const struct pawl_with with = { .close_ms = (uint32_t)(closes / SPAN_MS) };
	/* If this fails as well, the lease runs out by itself. */
	(void)call_start(client,
		&(struct call_start){ .request = &request, .with = &with, .internal = true,
			.end = forget }, NULL);
}

void call_release_quietly(struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id) {
	release_quietly(client, key, lock_id, 0);
}

void calls_release_quietly(struct pawl *client, const struct request_copy *request) {
	for (size_t i = 0; i < request_copy_locks(request); i++) {
		release_quietly(client, request_copy_key(request, i),
			request_copy_lock_id(request, i), request->wire.core.closes);
	}
}
