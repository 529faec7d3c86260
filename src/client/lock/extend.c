/* extend.c: extends a lock at once, because its holder has asked for it. The library extends it by
 * itself as well (renew.c). */
#include "lock.h"
#include "session_binding.h"

/* An extension that the program has asked for. */
struct extension {
	/* In lock->extensions. */
	struct list link;
	struct pawl *client;
	/* NULL: the handle is gone. */
	struct pawl_lock *lock;
	/* The new lease of the lock; 0: the one that it has. */
	span_ns lease;
	pawl_done_fn *done;
	void *arg;
};

static void extension_free(void *ctx) {
	struct extension *extension = ctx;
	list_remove(&extension->link);
	alloc_free(extension->client->env.alloc, extension, sizeof(*extension));
}

void extend_orphans(struct pawl_lock *lock) {
	struct list *at;
	while ((at = list_first(&lock->extensions)) != NULL) {
		CONTAINER_OF(at, struct extension, link)->lock = NULL;
		list_remove(at);
	}
}

/* Only what is final changes the lock if the extension has failed: it is renewed as before. */
static void take_outcome(struct pawl_lock *lock, span_ns lease, const struct pawl_call *call,
	const struct pawl_result *result) {
	const struct permits slots = lock_slots_of(result->slots, result->slot_count);
	const struct pawl_extended outcome = { .error = result->error, .token = result->token,
		.slots = { slots.w[0], slots.w[1] }, .valid_ms = result->valid_ms };
	const bool final = result->error == PAWL_ELOST || result->error == PAWL_ENOTFOUND
		|| result->error == PAWL_EDENIED;
	if (lock->cause || lock->leaving || (result->error && !final)) {
		return;
	}
	if (lease && !result->error) {
		lock_set_lease(lock, lease);
	}
	/* This may call the program, which may free the lock. */
	lock_extended(lock, call->sent_at, lock->bound_connection, &outcome);
}

static void on_extended(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct extension *extension = ctx;
	struct pawl *client = extension->client;
	struct pawl_lock *lock = extension->lock;
	const span_ns lease = extension->lease;
	pawl_done_fn *done = extension->done;
	void *arg = extension->arg;
	extension_free(extension);
	if (lock && !client->dying) {
		take_outcome(lock, lease, call, take_result);
	}
	if (done) {
		client->callbacks++;
		done(take_result, arg);
	} else {
		pawl_result_free(take_result);
	}
}

int pawl_lock_extend_start(struct pawl_lock *lock, uint32_t lease_ms, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call) {
	struct pawl *client = lock->client;
	if (lock->leaving || pawl_lock_error(lock) != 0) {
		return PAWL_EINVAL;
	}
	if (lock->binding && session_binding_wanted(lock)) {
		/* That comes first, and extends the lock, too. */
		return PAWL_EBUSY;
	}
	struct extension *extension = alloc_new(client->env.alloc, sizeof(*extension));
	if (!extension) {
		return PAWL_ENOMEM;
	}
	*extension = (struct extension){ .client = client, .lock = lock,
		.lease = (span_ns)lease_ms * SPAN_MS, .done = done, .arg = arg };
	struct pawl_request request = { .method = PAWL_EXTEND, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id, .token = lock->token,
		.lease_ms = lease_ms ? lease_ms : (uint32_t)(lock->lease / SPAN_MS),
		.slots = { lock->slots.w[0], lock->slots.w[1] }, .deadline_kept = true,
		.party = pawl_id_none(&lock->party) ? client->self.party : lock->party };
	struct call_start start = { .request = &request, .tied = lock->binding, .end = on_extended,
		.drop = extension_free, .ctx = extension };
	int error = call_start(client, &start, out_call);
	if (error) {
		alloc_free(client->env.alloc, extension, sizeof(*extension));
		return error;
	}
	list_append(&lock->extensions, &extension->link);
	return 0;
}

struct extended {
	bool over;
	struct pawl_result *result;
};

static void on_over(struct pawl_result *take_result, void *arg) {
	*(struct extended *)arg = (struct extended){ .over = true, .result = take_result };
}

int pawl_lock_extend(struct pawl_lock *lock, uint32_t lease_ms, struct pawl_result **out_result) {
	struct pawl *client = lock->client;
	struct extended outcome = { 0 };
	struct pawl_call *call = NULL;
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	int error = pawl_lock_extend_start(lock, lease_ms, on_over, &outcome, &call);
	if (error) {
		return error;
	}
	error = client_core_wait(client, &outcome.over, call);
	if (!outcome.over) {
		/* The loop has failed. */
		pawl_cancel(call);
		return error;
	}
	error = error ? error : outcome.result->error;
	if (out_result) {
		*out_result = outcome.result;
	} else {
		pawl_result_free(outcome.result);
	}
	return error;
}
