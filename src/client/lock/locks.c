/* locks.c: several keys at once, with one request for all and one handle for each. */
#include <string.h>

#include "check.h"
#include "kept_bytes.h"
#include "lock.h"

struct locks {
	struct pawl *client;
	span_ns lease;
	pawl_locks_done_fn *done;
	void *arg;
	size_t count;
	struct pawl_lock *items[];
};

static size_t locks_bytes(size_t count) {
	return sizeof(struct locks) + count * sizeof(struct pawl_lock *);
}

static void locks_free(struct locks *locks) {
	alloc_free(locks->client->env.alloc, locks, locks_bytes(locks->count));
}

static void locks_drop(void *ctx) {
	struct locks *locks = ctx;
	for (size_t i = 0; i < locks->count; i++) {
		if (locks->items[i]) {
			lock_destroy(locks->items[i]);
		}
	}
	locks_free(locks);
}

static bool answers_all(const struct locks *locks, const struct pawl_call *call,
	const struct pawl_result *result) {
	bool all = result->got_count == locks->count;
	for (size_t i = 0; all && i < locks->count; i++) {
		struct pawl_id asked = request_copy_lock_id(call->request, i);
		all = memcmp(&result->got[i].lock_id, &asked, sizeof(asked)) == 0;
	}
	return all;
}

/* One of the locks could not be had any more, so none may be held. */
static void locks_give_up(struct locks *locks) {
	for (size_t i = 0; i < locks->count; i++) {
		if (locks->items[i]) {
			(void)pawl_lock_release_start(locks->items[i], NULL, NULL);
			locks->items[i] = NULL;
		}
	}
}

/* All locks have one deadline in common, so they begin together, or are over together. */
static void locks_begin(struct locks *locks, const struct pawl_call *call,
	struct pawl_result *result) {
	const bool crossed = call->crossed, outdated = call->outdated;
	const char *why = NULL;
	locks->lease = call->request->wire.core.lease;
	for (size_t i = 0; i < locks->count; i++) {
		const struct pawl_got *got = &result->got[i];
		struct lock_grant grant = { .lock_id = got->lock_id, .token = got->token,
			.mode = got->mode, .slots = got->slots, .slot_count = got->slot_count,
			.deadline = result_box(result)->valid_until,
			.connection = call->connection,
			.order = request_copy_order(call->request),
			.waited_long = result->waited_ms * SPAN_MS > locks->lease,
			.crossed = crossed, .outdated = outdated };
		struct pawl_lock *lock = locks->items[i];
		locks->items[i] = NULL;
		lock_take_lease(lock, call);
		if (!lock_begin(lock, &grant, &locks->items[i])) {
			why = lock_lost_why(&grant);
		}
	}
	if (why) {
		locks_give_up(locks);
		result_fail(result_box(result), PAWL_ELOST, why);
	}
}

static void on_locks(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct locks *locks = ctx;
	struct pawl *client = locks->client;
	if (!take_result->error && !answers_all(locks, call, take_result)) {
		calls_release_quietly(client, call->request);
		result_fail(result_box(take_result), PAWL_EPROTOCOL,
			"the node answered for locks that were not requested");
	}
	if (!take_result->error) {
		locks_begin(locks, call, take_result);
	}
	if (take_result->error) {
		for (size_t i = 0; i < locks->count; i++) {
			if (locks->items[i]) {
				lock_destroy(locks->items[i]);
			}
		}
	}
	client->callbacks++;
	locks->done(take_result->error ? NULL : locks->items, take_result->error ? 0 : locks->count,
		take_result, locks->arg);
	locks_free(locks);
}

static int locks_new(struct pawl *client, const struct pawl_lock_options *options,
	const struct pawl_key_item *keys, size_t count, struct locks **out) {
	struct locks *locks = alloc_new(client->env.alloc, locks_bytes(count));
	if (!locks) {
		return PAWL_ENOMEM;
	}
	locks->client = client;
	locks->lease = (span_ns)(options->lease_ms ? options->lease_ms : LEASE_MS_DEFAULT)
		* SPAN_MS;
	locks->count = count;
	int error = 0;
	for (size_t i = 0; !error && i < count; i++) {
		struct pawl_lock_options each = *options;
		each.terms.mode = keys[i].mode;
		each.terms.permits = keys[i].permits;
		each.terms.of = keys[i].of;
		error = lock_new(client, &each, keys[i].key, &locks->items[i]);
	}
	if (error) {
		locks_drop(locks);
		return error;
	}
	*out = locks;
	return 0;
}

static bool keys_valid(const struct pawl_key_item *keys, size_t count) {
	bool valid = keys && count > 0 && count <= PAWL_KEYS_MAX;
	for (size_t i = 0; valid && i < count; i++) {
		valid = kept_bytes_valid(keys[i].key);
	}
	return valid;
}

/* The one request says the same for all of its locks. So a lock that is already held under its
 * lock_id must be wanted in the way in which it is held. */
static bool wanted_as_held(const struct pawl *client, const struct pawl_lock_options *options,
	const struct pawl_key_item *keys, size_t count) {
	bool same = true;
	for (size_t i = 0; same && i < count; i++) {
		struct pawl_terms terms = options->terms;
		terms.mode = keys[i].mode;
		terms.permits = keys[i].permits;
		terms.of = keys[i].of;
		entering_terms(client, keys[i].key, keys[i].lock_id, &terms);
		same = terms.mode == keys[i].mode
			&& terms.release_on_disconnect == options->terms.release_on_disconnect;
	}
	return same;
}

int pawl_locks_start(struct pawl *client, const struct pawl_lock_options *options,
	const struct pawl_key_item *keys, size_t key_count, pawl_locks_done_fn *done, void *arg,
	struct pawl_call **out_call) {
	struct pawl_lock_options common = *options;
	common.key = (struct pawl_bytes){ NULL, 0 };
	if (!done || lock_options_check(client, &common) != 0 || !keys_valid(keys, key_count)
		|| !wanted_as_held(client, &common, keys, key_count)) {
		return PAWL_EINVAL;
	}
	struct locks *locks;
	int error = locks_new(client, &common, keys, key_count, &locks);
	if (error) {
		return error;
	}
	locks->done = done;
	locks->arg = arg;
	struct pawl_request request = lock_request(&common);
	request.keys = keys;
	request.key_count = key_count;
	struct call_start start = { .request = &request, .end = on_locks, .drop = locks_drop,
		.ctx = locks };
	error = call_start(client, &start, out_call);
	if (error) {
		locks_drop(locks);
	}
	return error;
}

/* ---- blocking ---- */

struct locked {
	bool over;
	struct pawl_lock **out;
	struct pawl_result *result;
};

static void on_locked(struct pawl_lock *const *locks, size_t count, struct pawl_result *take_result,
	void *arg) {
	struct locked *locked = arg;
	for (size_t i = 0; i < count; i++) {
		locked->out[i] = locks[i];
	}
	locked->over = true;
	locked->result = take_result;
}

int pawl_locks_acquire(struct pawl *client, const struct pawl_lock_options *options,
	const struct pawl_key_item *keys, size_t key_count, struct pawl_lock **out_locks,
	struct pawl_result **out_result) {
	struct locked locked = { .out = out_locks };
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	struct pawl_call *call;
	int error = pawl_locks_start(client, options, keys, key_count, on_locked, &locked, &call);
	if (error) {
		return error;
	}
	error = client_core_wait(client, &locked.over, call);
	if (error && !locked.over) {
		pawl_cancel(call);
		return error;
	}
	error = error ? error : locked.result->error;
	if (out_result) {
		*out_result = locked.result;
	} else {
		pawl_result_free(locked.result);
	}
	return error;
}

struct released {
	struct pawl *client;
	size_t left;

	/* Nobody waits any more, and the last answer frees this structure. */
	bool over, abandoned;
	int error;
};

static void on_released(struct pawl_result *take_result, void *arg) {
	struct released *released = arg;
	released->error = released->error ? released->error : take_result->error;
	released->over = --released->left == 0;
	pawl_result_free(take_result);
	if (released->over && released->abandoned) {
		alloc_free(released->client->env.alloc, released, sizeof(*released));
	}
}

static int release_all(struct pawl_lock *const *locks, size_t count, struct released *released) {
	int first = 0;
	for (size_t i = 0; i < count; i++) {
		bool last = locks[i]->entered == 1;
		int error = pawl_lock_release_start(locks[i], released ? on_released : NULL,
			released);
		if (released && last && !error) {
			released->left++;
		}
		first = first ? first : error;
	}
	return first;
}

int pawl_locks_release(struct pawl_lock *const *take_locks, size_t count) {
	if (count == 0) {
		return 0;
	}
	struct pawl *client = take_locks[0]->client;
	/* The client may be gone when the releases are over. */
	struct allocator alloc = *client->env.alloc;
	bool allowed = client_core_may_block(client);
	struct released *released = allowed ? alloc_new(&alloc, sizeof(*released)) : NULL;
	int error = release_all(take_locks, count, released);
	if (!released) {
		return allowed ? PAWL_ENOMEM : PAWL_EINVAL;
	}
	released->client = client;
	int waited = released->left ? client_core_wait(client, &released->over, NULL) : 0;
	if (released->left) {
		released->abandoned = true;
		return waited;
	}
	error = error ? error : waited ? waited : released->error;
	alloc_free(&alloc, released, sizeof(*released));
	return error;
}
