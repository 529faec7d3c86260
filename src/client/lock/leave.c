/* leave.c: what a holder does with a lock besides keeping it: it lets others share the lock, or
 * hands the lock over. */
#include "check.h"
#include "lock.h"

struct outcome {
	bool over;
	struct pawl_result *result;
};

static void on_outcome(struct pawl_result *take_result, void *arg) {
	*(struct outcome *)arg = (struct outcome){ .over = true, .result = take_result };
}

static int await(struct pawl *client, struct outcome *outcome, struct pawl_call *call,
	struct pawl_result **out_result) {
	int error = client_core_wait(client, &outcome->over, call);
	if (!outcome->over) {
		return error;
	}
	error = error ? error : outcome->result->error;
	if (out_result) {
		*out_result = outcome->result;
	} else {
		pawl_result_free(outcome->result);
	}
	return error;
}

/* ---- downgrade ---- */

int pawl_lock_downgrade_start(struct pawl_lock *lock, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call) {
	if (lock->mode == PAWL_PERMITS || lock->leaving) {
		return PAWL_EINVAL;
	}
	struct pawl_request request = { .method = PAWL_DOWNGRADE, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id };
	/* entering.c: the lock is a shared one from now on. */
	return pawl_start(lock->client, &request, done, arg, out_call);
}

int pawl_lock_downgrade(struct pawl_lock *lock, struct pawl_result **out_result) {
	struct pawl *client = lock->client;
	struct outcome outcome = { 0 };
	struct pawl_call *call;
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	int error = pawl_lock_downgrade_start(lock, on_outcome, &outcome, &call);
	if (error) {
		return error;
	}
	error = await(client, &outcome, call, out_result);
	if (!outcome.over) {
		pawl_cancel(call);
	}
	return error;
}

/* ---- transfer ---- */

struct leave {
	/* NULL if the lock was freed meanwhile. */
	struct pawl_lock *lock;
	struct pawl *client;
	pawl_done_fn *done;
	void *arg;
};

void leave_orphan(struct leave *leave) {
	leave->lock = NULL;
}

void leave_silently(struct leave *leave) {
	leave->done = NULL;
}

/* Returns whether the only node that was asked has refused for a reason that comes before any
 * release, so that nothing was released. */
static bool nothing_released(const struct pawl_call *call, const struct pawl_result *result) {
	int error = result->error;
	return call->sends == 0
		|| (call->sends == 1
			&& (error == PAWL_ENOTFOUND || error == PAWL_EBADREQUEST
				|| error == PAWL_ETOOLARGE));
}

static void lock_trust_again(struct pawl_lock *lock) {
	lock->leaving = false;
	if (lock->cause || instant_distrusted(client_core_now(lock->client), lock->deadline)) {
		lock_lose(lock, lock->cause ? lock->cause : PAWL_ELOST);
	} else {
		lock_schedule(lock, true);
	}
}

static void on_transferred(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct leave *leave = ctx;
	struct pawl *client = leave->client;
	struct pawl_lock *lock = leave->lock;
	pawl_done_fn *done = leave->done;
	void *arg = leave->arg;
	alloc_free(client->env.alloc, leave, sizeof(*leave));
	bool kept = nothing_released(call, take_result);
	if (lock) {
		lock->leave = NULL;
	}
	if (!kept && lock) {
		/* The lock is still `leaving`, so the program is not told of what it has done
		 * itself. */
		lock_lose(lock, PAWL_ELOST);
	}
	if (take_result->error && (!kept || !lock) && !client->dying) {
		call_release_quietly(client, request_copy_key(call->request, 0),
			request_copy_lock_id(call->request, 0));
	}
	if (kept && lock && !client->dying) {
		/* This may call the program, which may free the lock. */
		lock_trust_again(lock);
	}
	if (done) {
		client->callbacks++;
		done(take_result, arg);
	} else {
		pawl_result_free(take_result);
	}
}

static int transfer_start(struct pawl_lock *lock, struct pawl_bytes to, pawl_done_fn *done,
	void *arg, struct pawl_call **out_call) {
	struct pawl *client = lock->client;
	if (lock->leaving || pawl_lock_error(lock) != 0 || to.size == 0) {
		return PAWL_EINVAL;
	}
	if (lock->reclaim) {
		/* The lock is being acquired again, and a transfer must not overtake that. */
		return PAWL_EBUSY;
	}
	struct leave *leave = alloc_new(client->env.alloc, sizeof(*leave));
	if (!leave) {
		return PAWL_ENOMEM;
	}
	*leave = (struct leave){ .lock = lock, .client = client, .done = done, .arg = arg };
	struct pawl_request request = { .method = PAWL_TRANSFER, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id, .to = to };
	struct call_start start = { .request = &request, .internal = true, .end = on_transferred,
		.ctx = leave };
	lock->leaving = true;
	int error = call_start(client, &start, out_call);
	if (error) {
		lock->leaving = false;
		alloc_free(client->env.alloc, leave, sizeof(*leave));
		return error;
	}
	lock->leave = leave;
	/* docs/protocol.md, Release: the client stops trusting the lock, then asks. It also stops
	 * extending the lock. */
	renew_forget(lock);
	return 0;
}

int pawl_lock_transfer_start(struct pawl_lock *lock, struct pawl_bytes to, pawl_done_fn *done,
	void *arg) {
	return transfer_start(lock, to, done, arg, NULL);
}

int pawl_lock_transfer(struct pawl_lock *lock, struct pawl_bytes to,
	struct pawl_result **out_result) {
	struct pawl *client = lock->client;
	struct outcome outcome = { 0 };
	struct pawl_call *call;
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	int error = transfer_start(lock, to, on_outcome, &outcome, &call);
	if (error) {
		return error;
	}
	error = await(client, &outcome, call, out_result);
	if (!outcome.over && lock->leave) {
		/* The loop has failed, and nobody waits for the outcome any more. */
		leave_silently(lock->leave);
	}
	return error;
}
