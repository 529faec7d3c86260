/* lock_call.c: the requests that a program makes for a lock that it holds, update and release, in
 * both styles; and the blocking acquire. Also what the options of a lock may be. */
#include "check.h"
#include "kept_bytes.h"
#include "lock.h"

struct locked {
	bool over;
	struct pawl_lock *lock;
	struct pawl_result *result;
};

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	*(struct locked *)arg = (struct locked){ .over = true, .lock = take_lock,
		.result = take_result };
}

int pawl_lock_acquire(struct pawl *client, const struct pawl_lock_options *options,
	struct pawl_lock **out_lock, struct pawl_result **out_result) {
	struct locked outcome = { 0 };
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	struct pawl_call *call;
	int error = pawl_lock_start(client, options, on_locked, &outcome, &call);
	if (error) {
		return error;
	}
	error = client_core_wait(client, &outcome.over, call);
	if (error && !outcome.over) {
		pawl_cancel(call);
		return error;
	}
	/* If the client is gone, the lock is gone as well. */
	error = error ? error : outcome.result->error;
	if (!error) {
		*out_lock = outcome.lock;
	}
	if (out_result) {
		*out_result = outcome.result;
	} else {
		pawl_result_free(outcome.result);
	}
	return error;
}

static struct pawl_request update_request(const struct pawl_lock *lock, struct pawl_bytes value,
	const struct pawl_bytes *expect) {
	struct pawl_request r = { .method = PAWL_UPDATE, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id, .value = value };
	if (expect) {
		r.expect = expect->data ? *expect : (struct pawl_bytes){ "", 0 };
	}
	return r;
}

int pawl_lock_update(struct pawl_lock *lock, struct pawl_bytes value,
	const struct pawl_bytes *expect, struct pawl_result **out_result) {
	struct pawl_request request = update_request(lock, value, expect);
	return pawl_call(lock->client, &request, out_result);
}

int pawl_lock_update_start(struct pawl_lock *lock, struct pawl_bytes value,
	const struct pawl_bytes *expect, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call) {
	struct pawl_request request = update_request(lock, value, expect);
	return pawl_start(lock->client, &request, done, arg, out_call);
}

static struct pawl_request release_request(const struct pawl_lock *lock) {
	return (struct pawl_request){ .method = PAWL_RELEASE, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id };
}

struct outcome {
	bool over;
	int error;
};

static void on_released(struct pawl_result *take_result, void *arg) {
	*(struct outcome *)arg = (struct outcome){ .over = true, .error = take_result->error };
	pawl_result_free(take_result);
}

int pawl_lock_release_closing(struct pawl_lock *take_lock, uint32_t close_ms) {
	if (!take_lock) {
		return 0;
	}
	struct pawl *client = take_lock->client;
	struct outcome outcome = { 0 };
	struct pawl_call *call = NULL;
	if (take_lock->entered > 1) {
		take_lock->entered--;
		return 0;
	}
	bool allowed = client_core_may_block(client);
	struct pawl_request request = release_request(take_lock);
	int error = allowed ? pawl_start_with(client, &request,
		&(struct pawl_with){ .close_ms = close_ms }, on_released, &outcome, &call)
		: PAWL_EINVAL;
	/* docs/protocol.md, Release: the client stops trusting the lock, then asks. */
	pawl_lock_free(take_lock);
	if (error) {
		return error;
	}
	error = client_core_wait(client, &outcome.over, call);
	if (error && !outcome.over) {
		pawl_cancel(call);
		return error;
	}
	return outcome.error;
}

int pawl_lock_release(struct pawl_lock *take_lock) {
	return pawl_lock_release_closing(take_lock, 0);
}

int pawl_lock_release_closing_start(struct pawl_lock *take_lock, uint32_t close_ms,
	pawl_done_fn *done, void *arg) {
	if (take_lock->entered > 1) {
		take_lock->entered--;
		return 0;
	}
	struct pawl_request request = release_request(take_lock);
	int error = pawl_start_with(take_lock->client, &request,
		&(struct pawl_with){ .close_ms = close_ms }, done, arg, NULL);
	pawl_lock_free(take_lock);
	return error;
}

int pawl_lock_release_start(struct pawl_lock *take_lock, pawl_done_fn *done, void *arg) {
	return pawl_lock_release_closing_start(take_lock, 0, done, arg);
}
