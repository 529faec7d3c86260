/* service_binding.c: locks that are released when the other side of their holder's connection
 * closes it (docs/protocol.md section 2, Release on disconnect).
 */
#include "check.h"
#include "pawl/error.h"
#include "service_impl.h"

/* How much is done in one turn of the loop for clients that are gone, and what releasing and
 * dropping one lock count for that. */
#define TURN_COST 256
#define RELEASE_COST 16
#define DROP_COST 1
/* How long a binding is kept after the lease, because an extension may be under way. */
#define BINDING_REST (60 * SPAN_S)

/* Returns until when a binding is kept for a lease that begins now. */
static struct instant binding_until(struct instant now, span_ns lease) {
	return instant_add(instant_add(now, lease), BINDING_REST);
}

/* The same for a lock that is only asked for, and may be granted after the longest wait. */
static struct instant binding_asked_until(const struct service_call *call,
	const struct core_request *request) {
	return binding_until(instant_add(call->now, request->wait), request->lease);
}

static int binding_put(const struct service_call *call, uint64_t request, struct slice key,
	struct id128 lock_id, uint32_t binding, struct instant until) {
	struct service *s = call->service;
	return session_bindings_put(&s->session_bindings, sessions_alloc(s->sessions, call->client),
		call->client, request, key, lock_id, binding, call->now, until);
}

static int binding_ask_all(const struct service_call *call, const struct core_request *request) {
	int error = 0;
	for (uint32_t i = 0; !error && i < request->lock_count; i++) {
		error = binding_put(call, request->id, request->locks[i].key,
			request->locks[i].lock_id, request->terms.binding,
			binding_asked_until(call, request));
	}
	if (error) {
		session_bindings_refused(&call->service->session_bindings, call->client,
			request->id, NULL);
	}
	return error;
}

int service_binding_ask(const struct service_call *call, const struct core_request *request) {
	const struct instant until = binding_asked_until(call, request);
	if (request->op == CORE_ACQUIRE_ALL && request->terms.binding) {
		return binding_ask_all(call, request);
	}
	if (request->op == CORE_ACQUIRE && request->terms.binding) {
		return binding_put(call, request->id, request->key, request->lock_id,
			request->terms.binding, until);
	}
	if (request->op == CORE_EXTEND && request->binding) {
		/* The lock moves to this connection, whatever the answer is. */
		return binding_put(call, 0, request->key, request->lock_id,
			request->binding, until);
	}
	return 0;
}

static void binding_acquired_all(struct service *s, uint64_t client,
	const struct core_reply *reply) {
	if (reply->error) {
		session_bindings_refused(&s->session_bindings, client, reply->id, NULL);
		return;
	}
	for (size_t i = 0; i < reply->count; i++) {
		session_bindings_got(&s->session_bindings, client, reply->got[i].lock_id,
			binding_until(s->driver->last, reply->valid));
	}
}

void service_binding_answered(struct service *s, uint64_t client, const struct core_reply *reply) {
	if (reply->op == CORE_ACQUIRE_ALL) {
		binding_acquired_all(s, client, reply);
	} else if (reply->op == CORE_ACQUIRE && reply->error) {
		session_bindings_refused(&s->session_bindings, client, reply->id, &reply->lock_id);
	} else if ((reply->op == CORE_ACQUIRE || reply->op == CORE_EXTEND) && !reply->error) {
		session_bindings_got(&s->session_bindings, client, reply->lock_id,
			binding_until(s->driver->last, reply->valid));
	} else if (((reply->op == CORE_RELEASE || reply->op == CORE_TRANSFER) && !reply->error)
		|| reply->error == PAWL_ELOST) {
		session_bindings_drop(&s->session_bindings, client, reply->lock_id);
	}
}

/* Releases the lock under its session binding, so that a holder that has moved to another
 * connection meanwhile keeps its lock. */
static void binding_release(struct service *s, const struct session_binding *bound) {
	const struct core_request release = { .id = DRIVER_OWN | ++s->last_own,
		.client = DRIVER_OWN | s->last_own, .op = CORE_RELEASE,
		.key = slice_of(bound->key, bound->size), .lock_id = bound->lock_id,
		.binding = bound->binding, .admin = true };
	const struct core_event event = { .kind = CORE_REQUEST, .request = &release,
		.client = release.client };
	service_audit_unbound(s, bound);
	driver_step_now(s->driver, &event);
}

static int64_t binding_end(struct service *s, uint64_t client, bool release) {
	const struct session_binding *bound = session_bindings_first(&s->session_bindings, client);
	/* If the lock has moved to another client, the masters would keep it, but what that client
	 * now asks for it here would fail. */
	release = release && !session_bindings_moved(&s->session_bindings, bound);
	if (release) {
		binding_release(s, bound);
	}
	session_bindings_drop(&s->session_bindings, client, bound->lock_id);
	return release ? RELEASE_COST : DROP_COST;
}

bool service_binding_serve(struct service *s) {
	uint64_t client;
	bool release, more;
	int64_t left = TURN_COST;
	while ((more = session_bindings_gone(&s->session_bindings, &client, &release))
		&& left > 0) {
		left -= binding_end(s, client, release);
	}
	return more;
}

/* Ends the client's locks in the turns to come, because ending many of them at once would make
 * others wait. */
void service_binding_gone(struct service *s, uint64_t client, bool closed_there) {
	session_bindings_go(&s->session_bindings, client, closed_there);
	driver_flush_later(s->driver);
}
