/* service_leash.c: locks that are released when the other side of their holder's connection closes it (docs/protocol.md section 2,
 * Release on disconnect). */
#include "check.h"
#include "pawl/error.h"
#include "service_impl.h"

#define TURN_COST 256 /* of those that are gone, in one turn of the loop: */
#define RELEASE_COST 16
#define DROP_COST 1
#define LEASH_REST (60 * SPAN_S) /* kept for so long after a lease: an extension may be under way */

static struct instant leash_until(struct instant now, span_ns lease) {
	return instant_add(instant_add(now, lease), LEASH_REST);
}

/* Got as late as it may be. */
static struct instant leash_asked_until(const struct service_call *call, const struct core_request *request) {
	return leash_until(instant_add(call->now, request->wait), request->lease);
}

static int leash_put(const struct service_call *call, uint64_t request, struct slice key, struct id128 lock_id, uint32_t binding, struct instant until) {
	struct service *s = call->service;
	return leashes_put(&s->leashes, sessions_alloc(s->sessions, call->client), call->client, request, key, lock_id, binding, call->now, until);
}

static int leash_ask_all(const struct service_call *call, const struct core_request *request) {
	int error = 0;
	for (uint32_t i = 0; !error && i < request->lock_count; i++) {
		error = leash_put(call, request->id, request->locks[i].key, request->locks[i].lock_id, request->terms.binding, leash_asked_until(call, request));
	}
	if (error) {
		leashes_refused(&call->service->leashes, call->client, request->id, NULL);
	}
	return error;
}

int service_leash_ask(const struct service_call *call, const struct core_request *request) {
	const struct instant until = leash_asked_until(call, request);
	if (request->op == CORE_ACQUIRE_ALL && request->terms.binding) {
		return leash_ask_all(call, request);
	}
	if (request->op == CORE_ACQUIRE && request->terms.binding) {
		return leash_put(call, request->id, request->key, request->lock_id, request->terms.binding, until);
	}
	if (request->op == CORE_EXTEND && request->binding) { /* it moves to this connection, whatever the answer will be */
		return leash_put(call, 0, request->key, request->lock_id, request->binding, until);
	}
	return 0;
}

static void leash_acquired_all(struct service *s, uint64_t client, const struct core_reply *reply) {
	if (reply->error) {
		leashes_refused(&s->leashes, client, reply->id, NULL);
		return;
	}
	for (size_t i = 0; i < reply->count; i++) {
		leashes_got(&s->leashes, client, reply->got[i].lock_id, leash_until(s->driver->last, reply->valid));
	}
}

void service_leash_answered(struct service *s, uint64_t client, const struct core_reply *reply) {
	if (s->leashes.by_lock.count == 0) {
		return;
	}
	if (reply->op == CORE_ACQUIRE_ALL) {
		leash_acquired_all(s, client, reply);
	} else if (reply->op == CORE_ACQUIRE && reply->error) {
		leashes_refused(&s->leashes, client, reply->id, &reply->lock_id);
	} else if ((reply->op == CORE_ACQUIRE || reply->op == CORE_EXTEND) && !reply->error) {
		leashes_got(&s->leashes, client, reply->lock_id, leash_until(s->driver->last, reply->valid));
	} else if (((reply->op == CORE_RELEASE || reply->op == CORE_TRANSFER) && !reply->error) || reply->error == PAWL_ELOST) {
		leashes_drop(&s->leashes, client, reply->lock_id);
	}
}

/* Under the bond, so that a holder that has moved to another connection meanwhile keeps its lock. */
static void leash_release(struct service *s, const struct leash *leash) {
	const struct core_request release = { .id = DRIVER_OWN | ++s->last_own, .client = DRIVER_OWN | s->last_own, .op = CORE_RELEASE,
		.key = slice_of(leash->key, leash->size), .lock_id = leash->lock_id, .binding = leash->binding, .admin = true };
	const struct core_event event = { .kind = CORE_REQUEST, .request = &release, .client = release.client };
	driver_step_now(s->driver, &event);
}

static int64_t leash_end(struct service *s, uint64_t client, bool release) {
	const struct leash *leash = leashes_first(&s->leashes, client);
	release = release && !leashes_moved(&s->leashes, leash); /* the masters would keep it, but what is asked for it here now would fail */
	if (release) {
		leash_release(s, leash);
	}
	leashes_drop(&s->leashes, client, leash->lock_id);
	return release ? RELEASE_COST : DROP_COST;
}

bool service_leash_serve(struct service *s) {
	uint64_t client;
	bool release, more;
	int64_t left = TURN_COST;
	while ((more = leashes_gone(&s->leashes, &client, &release)) && left > 0) {
		left -= leash_end(s, client, release);
	}
	return more;
}

/* In the turns to come: there may be so many that others would have to wait. */
void service_leash_gone(struct service *s, uint64_t client, bool closed_there) {
	leashes_go(&s->leashes, client, closed_there);
	driver_flush_later(s->driver);
}
