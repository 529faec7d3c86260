/* entering.c: several requests under one lock_id (docs/client-guide.md, Entering again). The handle
 * that exists decides what the library asks of the node. A request that asks for something else
 * counts from the moment at which it is made, and not from its answer. An acquire makes no handle
 * of its own if another request, above all a release, was made under the same lock_id meanwhile. */
#include <string.h>

#include "session_binding.h"
#include "lock.h"

static bool same_bytes(struct pawl_bytes a, struct pawl_bytes b) {
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool is_under(const struct pawl_lock *lock, struct pawl_bytes key, struct pawl_id lock_id) {
	return memcmp(&lock->lock_id, &lock_id, sizeof(lock_id)) == 0
		&& same_bytes(pawl_lock_key(lock), key);
}

/* Returns whether somebody trusts the lock, or may trust it again: a transfer that finds no
 * successor leaves the lock as it was. */
static bool trusted(const struct pawl_lock *lock) {
	return pawl_lock_valid_ms(lock) > 0 || (lock->leave && lock->cause == 0);
}

bool lock_trusted(const struct pawl *client, struct pawl_id lock_id) {
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		const struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (memcmp(&lock->lock_id, &lock_id, sizeof(lock_id)) == 0 && trusted(lock)) {
			return true;
		}
	}
	return false;
}

/* ---- before it is asked ---- */

static const struct pawl_lock *find_trusted(const struct pawl *client, struct pawl_bytes key,
	struct pawl_id lock_id) {
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		const struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (is_under(lock, key, lock_id) && trusted(lock)) {
			return lock;
		}
	}
	return NULL;
}

void entering_terms(const struct pawl *client, struct pawl_bytes key, struct pawl_id lock_id,
	struct pawl_terms *terms) {
	const struct pawl_lock *held = pawl_id_none(&lock_id) ? NULL
		: find_trusted(client, key, lock_id);
	if (held) {
		terms->release_on_disconnect = held->binding;
		terms->priority = held->terms.priority;
		terms->lock_delay_ms = held->terms.lock_delay_ms;
	}
	if (held && held->mode == PAWL_EXCLUSIVE && terms->mode == PAWL_SHARED && !terms->permits
		&& !terms->of) {
		/* If it were acquired as a shared lock, it would become one, also for the part of
		 * the program that writes. */
		terms->mode = PAWL_EXCLUSIVE;
	}
}

/* ---- when it is asked ---- */

/* Returns whether the request names a lock_id that others may know. */
static bool concerns_others(const struct request_copy *request) {
	return (request->method == PAWL_ACQUIRE && !request->drawn)
		|| request->method == PAWL_RELEASE || request->method == PAWL_TRANSFER
		|| request->method == PAWL_DOWNGRADE;
}

/* Returns whether both are acquires that ask for the same. Two such acquires are like one acquire
 * that is repeated. */
static bool same_asked(const struct request_copy *a, size_t i, const struct request_copy *b,
	size_t j) {
	const struct terms first = request_copy_terms(a, i), second = request_copy_terms(b, j);
	return a->method == PAWL_ACQUIRE && b->method == PAWL_ACQUIRE && first.of == second.of
		&& first.count == second.count
		&& a->wire.release_on_disconnect == b->wire.release_on_disconnect;
}

static bool cross(const struct request_copy *a, const struct request_copy *b) {
	for (size_t i = 0; i < request_copy_locks(a); i++) {
		struct pawl_id lock_id = request_copy_lock_id(a, i);
		for (size_t j = 0; j < request_copy_locks(b); j++) {
			struct pawl_id other = request_copy_lock_id(b, j);
			if (memcmp(&lock_id, &other, sizeof(other)) == 0
				&& same_bytes(request_copy_key(a, i), request_copy_key(b, j))
				&& !same_asked(a, i, b, j)) {
				return true;
			}
		}
	}
	return false;
}

static void meet(struct pawl_call *call, struct pawl_call *other) {
	if (concerns_others(other->request) && cross(call->request, other->request)) {
		call->crossed = other->crossed = true;
	}
}

static void meet_all(struct pawl_call *call, const struct list *calls) {
	for (struct list *at = list_first(calls); at; at = list_after(calls, at)) {
		meet(call, CONTAINER_OF(at, struct pawl_call, link));
	}
}

static enum pawl_mode mode_asked(const struct request_copy *request, size_t n) {
	uint16_t of = request_copy_terms(request, n).of;
	if (request->method == PAWL_DOWNGRADE || of == MODE_SHARED) {
		return PAWL_SHARED;
	}
	return of == MODE_EXCLUSIVE ? PAWL_EXCLUSIVE : PAWL_PERMITS;
}

/* docs/protocol.md, Downgrade: the client first stops trusting the lock to be exclusive, for good,
 * and then asks. To ask for the lock as a shared one makes it a shared one, too. */
static void tell_handles(struct pawl_call *call, size_t n) {
	struct pawl *client = call->client;
	enum pawl_mode asked = mode_asked(call->request, n);
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (!is_under(lock, request_copy_key(call->request, n),
			request_copy_lock_id(call->request, n))) {
			continue;
		}
		/* An acquire names one order for all of its locks. */
		const uint32_t order = request_copy_order(call->request);
		lock->order = order > lock->order ? order : lock->order;
		if (asked == PAWL_SHARED && lock->mode == PAWL_EXCLUSIVE) {
			lock->mode = PAWL_SHARED;
		}
		call->crossed = call->crossed || asked != lock->mode;
	}
}

/* docs/protocol.md, Release: the client stops trusting the lock, then asks. That is true for every
 * handle of the lock, whichever handle or request lets go of it. A transfer that a handle itself
 * makes may leave it the lock (leave.c), so that handle waits for the outcome. */
static void end_handles(struct pawl_call *call) {
	struct pawl *client = call->client;
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		const bool own = call->internal && call->request->method == PAWL_TRANSFER;
		if (is_under(lock, request_copy_key(call->request, 0),
			request_copy_lock_id(call->request, 0)) && !(own && lock->leaving)) {
			lock_released(lock);
		}
	}
}

/* The lock is one of those that the request is about: the request names its order. */
static void name_order(struct request_copy *request, const struct pawl_lock *lock) {
	const struct slice key = slice_of(lock->key, lock->key_size);
	for (size_t i = 0; i < request->wire.lock_count; i++) {
		const struct client_lock *item = &request->wire.locks[i];
		if (memcmp(item->lock_id.b, &lock->lock_id, sizeof(lock->lock_id)) == 0
			&& slice_equal(item->key, key)) {
			request_copy_set_order_of(request, i, lock->order);
		}
	}
	for (size_t i = 0; !request->wire.lock_count && i < request_copy_locks(request); i++) {
		if (is_under(lock, request_copy_key(request, i),
			request_copy_lock_id(request, i))) {
			request_copy_set_order(request, lock->order);
		}
	}
}

/* docs/protocol.md, Shorten: whatever is asked for a lock names the greatest order that was named
 * for it. What the library extends by itself does so already (renew.c). */
static void name_orders(struct pawl_call *call) {
	struct pawl *client = call->client;
	struct request_copy *request = call->request;
	const bool names = (request->method == PAWL_EXTEND && !call->internal)
		|| (request->method == PAWL_ACQUIRE && !call_binds(call));
	for (struct list *at = names && client->shortened_ever ? list_first(&client->locks) : NULL;
		at; at = list_after(&client->locks, at)) {
		const struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (lock->order) {
			name_order(request, lock);
		}
	}
}

void entering_shortened(struct pawl_lock *lock, uint32_t order) {
	struct pawl *client = lock->client;
	lock->order = order;
	client->shortened_ever = true;
	for (struct list *at = list_first(&client->named); at;
		at = list_after(&client->named, at)) {
		struct pawl_call *call = CONTAINER_OF(at, struct pawl_call, named);
		for (size_t i = 0; i < request_copy_locks(call->request); i++) {
			call->outdated |= is_under(lock, request_copy_key(call->request, i),
				request_copy_lock_id(call->request, i));
		}
	}
}

void entering_asked(struct pawl_call *call) {
	struct pawl *client = call->client;
	name_orders(call);
	if (!concerns_others(call->request)) {
		return;
	}
	if (call->request->method == PAWL_RELEASE || call->request->method == PAWL_TRANSFER) {
		end_handles(call);
	}
	bool acquire = call->request->method == PAWL_ACQUIRE;
	for (struct list *at = acquire ? NULL : list_first(&client->named); at;
		at = list_after(&client->named, at)) {
		meet(call, CONTAINER_OF(at, struct pawl_call, named));
	}
	if (acquire) {
		meet_all(call, &client->flight);
		meet_all(call, &client->queue);
		meet_all(call, &client->resting);
		list_append(&client->named, &call->named);
	}
	for (size_t i = 0; (acquire || call->request->method == PAWL_DOWNGRADE)
		&& i < request_copy_locks(call->request);
		i++) {
		tell_handles(call, i);
	}
}

/* ---- when it is granted ---- */

struct pawl_lock *entering_held(const struct pawl_lock *like, const struct lock_grant *grant) {
	struct pawl *client = like->client;
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (is_under(lock, pawl_lock_key(like), grant->lock_id) && !lock->leaving
			&& pawl_lock_error(lock) == 0) {
			return lock;
		}
	}
	return NULL;
}

bool entering_allowed(const struct pawl_lock *held, const struct lock_grant *grant) {
	return held ? held->mode == grant->mode : !grant->crossed && !grant->outdated;
}

void entering_again(struct pawl_lock *held, const struct lock_grant *grant) {
	struct permits slots = lock_slots_of(grant->slots, grant->slot_count);
	held->entered++;
	if (grant->outdated) {
		return;
	}
	const bool moved = session_binding_made(held, grant->connection);
	/* The node has granted other numbers than those that a part of the program already works
	 * with. The handle keeps its own numbers, with the deadline for which they were granted
	 * (docs/protocol.md, section 10: a record gives up none of its numbers while it lives). */
	if (!grant->crossed && permits_equal(slots, held->slots)) {
		held->token = grant->token > held->token ? grant->token : held->token;
		lock_take_grant(held, grant->deadline, slots, moved);
	} else if (moved && instant_distrusted(held->deadline, grant->deadline)) {
		lock_take_grant(held, grant->deadline, held->slots, true);
	}
}

int pawl_lock_enter(struct pawl_lock *lock) {
	if (lock->leaving || pawl_lock_error(lock) != 0) {
		return PAWL_ELOST;
	}
	return ++lock->entered;
}

int pawl_lock_leave(struct pawl_lock *lock) {
	return lock->entered > 1 ? --lock->entered : PAWL_EINVAL;
}
