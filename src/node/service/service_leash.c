/* service_leash.c: locks that are released when the other side of their holder's connection closes it (docs/protocol.md section 2,
 * Release on disconnect). */
#include "check.h"
#include "pawl/error.h"
#include "service_impl.h"

#define LEASH_REST (60 * SPAN_S) /* kept for so long after a lease: an extension may be under way */

static struct instant leash_until(struct instant now, span_ns lease) {
	return instant_add(instant_add(now, lease), LEASH_REST);
}

/* Got as late as it may be. */
static struct instant leash_asked_until(const struct service_call *call, const struct core_request *request) {
	return leash_until(instant_add(call->now, request->wait), request->lease);
}

static int leash_ask_all(const struct service_call *call, const struct core_request *request) {
	struct leashes *l = &call->service->leashes;
	int error = 0;
	for (uint32_t i = 0; !error && i < request->lock_count; i++) {
		error = leashes_put(l, call->client, request->id, request->locks[i].key, request->locks[i].lock_id, request->terms.bond, call->now,
			leash_asked_until(call, request));
	}
	if (error) {
		leashes_refused(l, call->client, request->id, NULL);
	}
	return error;
}

int service_leash_ask(const struct service_call *call, const struct core_request *request) {
	struct leashes *l = &call->service->leashes;
	const struct instant until = leash_asked_until(call, request);
	if (request->op == CORE_ACQUIRE_ALL && request->terms.bond) {
		return leash_ask_all(call, request);
	}
	if (request->op == CORE_ACQUIRE && request->terms.bond) {
		return leashes_put(l, call->client, request->id, request->key, request->lock_id, request->terms.bond, call->now, until);
	}
	if (request->op == CORE_EXTEND && request->bond) { /* it moves to this connection, whatever the answer will be */
		return leashes_put(l, call->client, 0, request->key, request->lock_id, request->bond, call->now, until);
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
		.key = slice_of(leash->key, leash->size), .lock_id = leash->lock_id, .bond = leash->bond, .admin = true };
	const struct core_event event = { .kind = CORE_REQUEST, .request = &release, .client = release.client };
	driver_step_now(s->driver, &event);
}

void service_leash_gone(struct service *s, uint64_t client, bool closed_there) {
	const struct leash *leash;
	while (closed_there && (leash = leashes_first(&s->leashes, client)) != NULL) {
		if (!leashes_moved(&s->leashes, leash)) { /* the masters would keep it, but what is asked for it here now would fail */
			leash_release(s, leash);
		}
		leashes_drop(&s->leashes, client, leash->lock_id);
	}
	leashes_forget(&s->leashes, client);
}
