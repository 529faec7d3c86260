/* extend.c: extends a lock at once, or shortens its lease, because its holder has asked for it. The
 * library extends it by itself as well (renew.c). */
#include "lock.h"
#include "result.h"
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
	/* It shortens the lease under this order, and the library does not extend the lock
	 * meanwhile; 0: it does not. */
	uint32_t order;
	/* The lease was shortened after this was asked. */
	bool outdated;
	pawl_done_fn *done;
	void *arg;
};

static void extension_free(struct extension *extension) {
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

static bool is_final(int error) {
	return error == PAWL_ELOST || error == PAWL_ENOTFOUND || error == PAWL_EDENIED;
}

/* A node of release 0.2.0, the only one that was asked, knows no orders: it has done nothing, and
 * would refuse whatever names the order. */
static void take_back(struct pawl_lock *lock, const struct extension *extension,
	const struct pawl_call *call, int error) {
	if (error == PAWL_EBADREQUEST && call->sends == 1 && extension->order
		&& lock->order == extension->order) {
		lock->order--;
	}
}

/* After an extension that has failed, only what is final changes the lock: it is renewed as before.
 * After a shortening the renewals go on, whatever the outcome. */
static void take_outcome(struct pawl_lock *lock, const struct extension *extension,
	const struct pawl_call *call, const struct pawl_result *result) {
	const struct permits slots = lock_slots_of(result->slots, result->slot_count);
	const struct pawl_extended outcome = { .error = result->error, .token = result->token,
		.slots = { slots.w[0], slots.w[1] }, .valid_ms = result->valid_ms };
	const bool renews = extension->order && !lock->no_renewal;
	const bool passes = result->error && !is_final(result->error) && !renews;
	if (lock->cause || lock->leaving || passes) {
		return;
	}
	if (extension->lease && !extension->order && !result->error) {
		lock_set_lease(lock, extension->lease);
	}
	/* This may call the program, which may free the lock. */
	lock_extended(lock, call->sent_at, lock->bound_connection, &outcome);
}

static void on_extended(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	const struct extension extension = *(struct extension *)ctx;
	struct pawl *client = extension.client;
	struct pawl_lock *lock = client->dying ? NULL : extension.lock;
	extension_free(ctx);
	if (lock && extension.outdated) {
		/* No answer to what was asked before makes the lock valid for longer. */
		result_fail(result_box(take_result), PAWL_EUNSURE,
			"the lease was shortened meanwhile");
	} else if (lock) {
		take_back(lock, &extension, call, take_result->error);
		take_outcome(lock, &extension, call, take_result);
	}
	if (extension.done) {
		client->callbacks++;
		extension.done(take_result, extension.arg);
	} else {
		pawl_result_free(take_result);
	}
}

/* The program has canceled the call. */
static void on_dropped(void *ctx) {
	struct extension *extension = ctx;
	struct pawl_lock *lock = extension->lock;
	if (extension->order && !extension->outdated && lock && !lock->cause) {
		lock_schedule(lock, true);
	}
	extension_free(extension);
}

/* Makes the call. The fields of `like` are those of the extension. */
static int extension_start(const struct extension *like, struct pawl_call **out_call) {
	struct pawl_lock *lock = like->lock;
	struct pawl *client = lock->client;
	struct extension *extension = alloc_new(client->env.alloc, sizeof(*extension));
	if (!extension) {
		return PAWL_ENOMEM;
	}
	*extension = *like;
	extension->client = client;
	const span_ns lease = like->lease ? like->lease : lock->lease;
	struct pawl_request request = { .method = PAWL_EXTEND, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id, .token = lock->token,
		.lease_ms = (uint32_t)(lease / SPAN_MS),
		.slots = { lock->slots.w[0], lock->slots.w[1] }, .deadline_kept = true,
		.party = pawl_id_none(&lock->party) ? client->self.party : lock->party };
	const struct pawl_with with = { .order = like->order, .shorten = like->order };
	struct call_start start = { .request = &request, .with = &with, .tied = lock->binding,
		.end = on_extended, .drop = on_dropped, .ctx = extension };
	int error = call_start(client, &start, out_call);
	if (error) {
		alloc_free(client->env.alloc, extension, sizeof(*extension));
		return error;
	}
	list_append(&lock->extensions, &extension->link);
	return 0;
}

int pawl_lock_extend_start(struct pawl_lock *lock, uint32_t lease_ms, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call) {
	if (lock->leaving || pawl_lock_error(lock) != 0) {
		return PAWL_EINVAL;
	}
	if (lock->binding && session_binding_wanted(lock)) {
		/* That comes first, and extends the lock, too. */
		return PAWL_EBUSY;
	}
	return extension_start(&(struct extension){ .lock = lock,
		.lease = (span_ns)lease_ms * SPAN_MS, .done = done, .arg = arg }, out_call);
}

/* The last of the extensions shortens the lease: what was asked before counts no more. */
static void outdate_others(struct pawl_lock *lock) {
	struct list *at = list_first(&lock->extensions), *next;
	for (; (next = list_after(&lock->extensions, at)) != NULL; at = next) {
		CONTAINER_OF(at, struct extension, link)->outdated = true;
	}
}

int pawl_lock_shorten_start(struct pawl_lock *lock, uint32_t lease_ms, pawl_done_fn *done,
	void *arg, struct pawl_call **out_call) {
	const span_ns lease = (span_ns)lease_ms * SPAN_MS;
	const uint32_t order = lock->order + 1;
	if (lock->binding || lock->leaving || pawl_lock_error(lock) != 0 || lease == 0
		|| lease > lock->lease) {
		return PAWL_EINVAL;
	}
	int error = extension_start(&(struct extension){ .lock = lock, .lease = lease,
		.order = order, .done = done, .arg = arg }, out_call);
	if (error) {
		return error;
	}
	/* Nothing is sent before this turn of the loop ends. */
	outdate_others(lock);
	entering_shortened(lock, order);
	lock_shorten(lock, lease);
	return 0;
}

struct extended {
	bool over;
	struct pawl_result *result;
};

static void on_over(struct pawl_result *take_result, void *arg) {
	*(struct extended *)arg = (struct extended){ .over = true, .result = take_result };
}

typedef int extension_fn(struct pawl_lock *lock, uint32_t lease_ms, pawl_done_fn *done, void *arg,
	struct pawl_call **out_call);

/* Starts one of the two, and waits for its outcome. */
static int await_extension(struct pawl_lock *lock, extension_fn *start, uint32_t lease_ms,
	struct pawl_result **out_result) {
	struct pawl *client = lock->client;
	struct extended outcome = { 0 };
	struct pawl_call *call = NULL;
	if (out_result) {
		*out_result = NULL;
	}
	if (!client_core_may_block(client)) {
		return PAWL_EINVAL;
	}
	int error = start(lock, lease_ms, on_over, &outcome, &call);
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

int pawl_lock_extend(struct pawl_lock *lock, uint32_t lease_ms, struct pawl_result **out_result) {
	return await_extension(lock, pawl_lock_extend_start, lease_ms, out_result);
}

int pawl_lock_shorten(struct pawl_lock *lock, uint32_t lease_ms, struct pawl_result **out_result) {
	return await_extension(lock, pawl_lock_shorten_start, lease_ms, out_result);
}
