/* reclaim.c: acquires again a lock that must be bound to another connection when too few masters
 * *had* it. Some masters have learned the lock again after a restart or a pause, so somebody else's
 * lock may have come in between (docs/protocol.md, Extend). The lock is acquired again under its
 * lock_id, with the value that was last written over this client, and the acquire binds it. It may
 * have a higher token then. */
#include <string.h>

#include "session_binding.h"
#include "check.h"
#include "lock.h"

/* ---- what it was acquired with ---- */

static void inputs_free(const struct allocator *alloc, struct lock_inputs *inputs) {
	if (inputs->bytes) {
		alloc_free(alloc, inputs->bytes, inputs->size);
	}
	*inputs = (struct lock_inputs){ 0 };
}

static uint8_t *inputs_put(uint8_t *at, struct pawl_bytes from) {
	if (from.size) {
		memcpy(at, from.data, from.size);
	}
	return at + from.size;
}

static struct pawl_bytes inputs_owner(const struct lock_inputs *inputs) {
	return (struct pawl_bytes){ inputs->bytes, inputs->owner };
}

static struct pawl_bytes inputs_label(const struct lock_inputs *inputs) {
	return (struct pawl_bytes){ inputs->bytes + inputs->owner, inputs->label };
}

static struct pawl_bytes inputs_value(const struct lock_inputs *inputs) {
	return (struct pawl_bytes){ inputs->bytes + inputs->owner + inputs->label, inputs->value };
}

static int inputs_make(const struct allocator *alloc, struct pawl_bytes owner,
	struct pawl_bytes label, struct pawl_bytes value, struct lock_inputs *out) {
	struct lock_inputs inputs =
		{ .owner = owner.size, .label = label.size, .value = value.size };
	inputs.size = inputs.owner + inputs.label + inputs.value + 1;
	inputs.bytes = alloc_new(alloc, inputs.size);
	if (!inputs.bytes) {
		return PAWL_ENOMEM;
	}
	(void)inputs_put(inputs_put(inputs_put(inputs.bytes, owner), label), value);
	*out = inputs;
	return 0;
}

int reclaim_prepare(struct pawl_lock *lock, const struct pawl_lock_options *options) {
	lock->terms = options->terms;
	if (!options->terms.release_on_disconnect) {
		return 0;
	}
	return inputs_make(lock->client->env.alloc, options->owner, options->label, options->value,
		&lock->inputs);
}

void reclaim_done(struct pawl_lock *lock) {
	reclaim_forget(lock);
	inputs_free(lock->client->env.alloc, &lock->inputs);
}

static void note_value(struct pawl_lock *lock, struct pawl_bytes value) {
	const struct allocator *alloc = lock->client->env.alloc;
	struct lock_inputs before = lock->inputs, now = { 0 };
	/* If there is no memory for the value, the lock cannot be acquired again, and it runs
	 * out. */
	(void)inputs_make(alloc, inputs_owner(&before), inputs_label(&before), value, &now);
	inputs_free(alloc, &before);
	lock->inputs = now;
}

void reclaim_note_update(struct pawl *client, const struct request_copy *request) {
	struct pawl_id lock_id = request_copy_lock_id(request, 0);
	for (struct list *at = client->bound_ever ? list_first(&client->locks) : NULL; at;
		at = list_after(&client->locks, at)) {
		struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (lock->inputs.bytes && memcmp(&lock->lock_id, &lock_id, sizeof(lock_id)) == 0) {
			note_value(lock,
				(struct pawl_bytes){ request->wire.core.value.data,
					request->wire.core.value.size });
		}
	}
}

/* ---- acquiring it again ---- */

/* Turns the error of an acquire into that of an extension. Some errors make clear whether the lock
 * is held. After any other error this is open, as after an extension for which nobody can vouch. */
static int as_extension(int error) {
	bool clear = error == 0 || error == PAWL_ENOQUORUM || error == PAWL_ECLOSED
		|| error == PAWL_EDENIED || error == PAWL_ERECOVERING;
	return clear ? error : PAWL_EUNSURE;
}

static void on_acquired(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct pawl_lock *lock = ctx;
	if (lock) {
		/* The call is gone after this, also when the client is being freed. */
		lock->reclaim = NULL;
	}
	if (lock && !lock->client->dying) {
		struct permits slots = lock_slots_of(take_result->slots, take_result->slot_count);
		struct pawl_extended got = { .error = as_extension(take_result->error),
			.token = take_result->token, .valid_ms = take_result->valid_ms,
			.slots = { slots.w[0], slots.w[1] } };
		lock->reclaim_failed = got.error != 0;
		/* An acquire binds the lock as well. */
		lock_extended(lock, call->sent_at, call->connection, &got);
	}
	pawl_result_free(take_result);
}

/* Between two such acquires there must be a pause, and an extension that has said once more that an
 * acquire is needed. */
bool reclaim_start(struct pawl_lock *lock) {
	unsigned connection = lock->client->connection_number;
	bool again = lock->reclaim_connection == connection;
	if (!session_binding_wanted(lock) || !lock->inputs.bytes || lock->reclaim_failed
		|| (again && lock->failures == 0)) {
		lock->reclaim_failed = false;
		return false;
	}
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_lock_key(lock),
		.lock_id = lock->lock_id, .lease_ms = (uint32_t)(lock->lease / SPAN_MS),
		.owner = inputs_owner(&lock->inputs), .label = inputs_label(&lock->inputs),
		.value = inputs_value(&lock->inputs),
		.terms = lock->terms, .party = lock->party };
	request.terms.mode = lock->mode;
	struct call_start start = { .request = &request, .internal = true, .tied = true,
		.end = on_acquired, .ctx = lock };
	lock->reclaim_connection = connection;
	return call_start(lock->client, &start, &lock->reclaim) == 0;
}

void reclaim_forget(struct pawl_lock *lock) {
	if (lock->reclaim) {
		/* The call goes on, but its outcome is for nobody. */
		lock->reclaim->ctx = NULL;
		lock->reclaim = NULL;
	}
}
