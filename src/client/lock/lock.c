/* lock.c: how a lock begins and how its handle ends. lock_keep.c keeps it meanwhile. */
#include "lock.h"

#include <string.h>

#include "session_binding.h"
#include "check.h"
#include "watch.h"

void lock_destroy(struct pawl_lock *lock) {
	struct pawl *client = lock->client;
	pawl_watch_free(lock->watch);
	if (lock->leave) {
		leave_orphan(lock->leave);
	}
	extend_orphans(lock);
	list_remove(&lock->link);
	lock_note_gone(lock);
	reclaim_done(lock);
	renew_forget(lock);
	agenda_clear(&client->agenda, &lock->warn_alarm);
	if (client->retained_count) {
		/* A retained connection may be closed now. */
		client_core_kick(client);
	}
	alloc_free(client->env.alloc, lock->key, lock->key_size + 1);
	alloc_free(client->env.alloc, lock, sizeof(*lock));
}

void locks_free_all(struct pawl *client) {
	struct list *at;
	while ((at = list_first(&client->locks)) != NULL) {
		lock_destroy(CONTAINER_OF(at, struct pawl_lock, link));
	}
}

/* ---- getting it ---- */

static void lock_abandon(void *ctx) {
	lock_destroy(ctx);
}

bool lock_begin(struct pawl_lock *lock, const struct lock_grant *grant, struct pawl_lock **out) {
	struct pawl *client = lock->client;
	struct pawl_lock *held = entering_held(lock, grant);
	if (instant_distrusted(client_core_now(client), grant->deadline)
		|| !entering_allowed(held, grant)) {
		call_release_quietly(client, pawl_lock_key(lock), grant->lock_id);
		lock_destroy(lock);
		return false;
	}
	if (held) {
		lock_destroy(lock);
		entering_again(held, grant);
		*out = held;
		return true;
	}
	lock->lock_id = grant->lock_id;
	lock->token = grant->token;
	lock->mode = grant->mode;
	lock->order = grant->order;
	lock->slots = lock_slots_of(grant->slots, grant->slot_count);
	lock->deadline = grant->deadline;
	list_append(&client->locks, &lock->link);
	if (lock->binding) {
		session_binding_begin(lock, grant->connection);
	}
	span_ns shortest = locks_shortest(client);
	if (shortest == 0 || lock->lease < shortest) {
		client->lease_shortest = lock->lease;
		failover_reset_silence_alarm(client);
	}
	/* docs/protocol.md, What the holder may count on: a client that has waited long extends at
	 * once. */
	lock_schedule(lock, grant->waited_long || session_binding_wanted(lock));
	*out = lock;
	return true;
}

const char *lock_lost_why(const struct lock_grant *grant) {
	return grant->crossed || grant->outdated
		? "meanwhile the lock_id was released, requested with another mode, or shortened"
		: "the answer arrived after the lease had expired";
}

static void on_acquired(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct pawl_lock *lock = ctx, *got = NULL;
	lock_take_lease(lock, call);
	struct pawl *client = lock->client;
	pawl_locked_fn *locked = lock->locked;
	void *arg = lock->locked_arg;
	struct lock_grant grant = { .lock_id = take_result->lock_id, .token = take_result->token,
		.mode = take_result->mode, .slots = take_result->slots,
		.slot_count = take_result->slot_count,
		.deadline = result_box(take_result)->valid_until,
		.connection = call->connection,
		.order = request_copy_order(call->request),
		.waited_long = take_result->waited_ms * SPAN_MS > lock->lease,
		.crossed = call->crossed, .outdated = call->outdated };
	if (take_result->error) {
		lock_destroy(lock);
	} else if (!lock_begin(lock, &grant, &got)) {
		result_fail(result_box(take_result), PAWL_ELOST, lock_lost_why(&grant));
	}
	client->callbacks++;
	locked(got, take_result, arg);
}

/* Handles the events of the key. Only one kind of event matters here. */
static void on_key_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	struct pawl_lock *lock = arg;
	(void)watch;
	if (event->type == PAWL_EVENT_ASKED && list_linked(&lock->link) && !lock->leaving
		&& pawl_lock_error(lock) == 0) {
		lock->client->callbacks++;
		struct pawl_asked asked = { .by = event->entry.owner, .to = event->to,
			.priority = event->priority };
		lock->on_asked(lock, &asked, lock->arg);
	}
}

static struct pawl_lock *lock_make(struct pawl *client, const struct pawl_lock_options *o,
	struct pawl_bytes key_bytes) {
	struct pawl_lock *lock = alloc_new(client->env.alloc, sizeof(*lock));
	/* A NUL follows. */
	const size_t size = key_bytes.size + 1;
	uint8_t *key = alloc_new(client->env.alloc, size);
	if (!lock || !key) {
		alloc_free(client->env.alloc, lock, sizeof(*lock));
		alloc_free(client->env.alloc, key, size);
		return NULL;
	}
	if (key_bytes.size) {
		memcpy(key, key_bytes.data, key_bytes.size);
	}
	span_ns lease = (span_ns)(o->lease_ms ? o->lease_ms : LEASE_MS_DEFAULT) * SPAN_MS;
	*lock = (struct pawl_lock){ .client = client, .key = key, .key_size = key_bytes.size,
		.lease = lease, .entered = 1, .party = o->party,
		.warn = o->warn_ms ? (span_ns)o->warn_ms * SPAN_MS : lease / 6,
		.no_renewal = o->no_renewal, .binding = o->terms.release_on_disconnect,
		.renew_alarm.ring = lock_on_renew_alarm, .warn_alarm.ring = lock_on_warn_alarm,
		.on_lost = o->on_lost, .on_renewed = o->on_renewed, .on_asked = o->on_asked,
		.arg = o->arg };
	list_init(&lock->extensions);
	return lock;
}

int lock_new(struct pawl *client, const struct pawl_lock_options *options, struct pawl_bytes key,
	struct pawl_lock **out) {
	struct pawl_lock *lock = lock_make(client, options, key);
	if (!lock) {
		return PAWL_ENOMEM;
	}
	int error = reclaim_prepare(lock, options);
	if (error) {
		lock_destroy(lock);
		return error;
	}
	if (lock->on_asked) {
		struct pawl_watch_options watch = { .key = key, .on_event = on_key_event,
			.arg = lock };
		error = pawl_watch_start(client, &watch, &lock->watch);
		if (error) {
			lock_destroy(lock);
			return error;
		}
		lock->watch->quiet = lock->watch->lasts = true;
	}
	*out = lock;
	return 0;
}

int lock_options_check(const struct pawl *client, const struct pawl_lock_options *options) {
	uint32_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS_DEFAULT;
	const bool valid = options->warn_ms <= lease_ms / 2 && kept_bytes_valid(options->key)
		&& kept_bytes_valid(options->owner) && kept_bytes_valid(options->label)
		&& kept_bytes_valid(options->value);
	return client->dying || !valid ? PAWL_EINVAL : 0;
}

struct pawl_request lock_request(const struct pawl_lock_options *o) {
	return (struct pawl_request){ .method = PAWL_ACQUIRE, .lease_ms = o->lease_ms,
		.wait_ms = o->wait_ms, .timeout_ms = o->timeout_ms, .owner = o->owner,
		.value = o->value, .terms = o->terms, .label = o->label,
		.election = o->election, .party = o->party };
}

int pawl_lock_start(struct pawl *client, const struct pawl_lock_options *options,
	pawl_locked_fn *done, void *arg, struct pawl_call **out_call) {
	if (!done || lock_options_check(client, options) != 0) {
		return PAWL_EINVAL;
	}
	struct pawl_lock *lock;
	struct pawl_lock_options asked = *options;
	entering_terms(client, options->key, options->lock_id, &asked.terms);
	int error = lock_new(client, &asked, options->key, &lock);
	if (error) {
		return error;
	}
	lock->locked = done;
	lock->locked_arg = arg;
	struct pawl_request request = lock_request(&asked);
	request.key = options->key;
	request.lock_id = options->lock_id;
	struct call_start start = { .request = &request, .end = on_acquired, .drop = lock_abandon,
		.ctx = lock };
	error = call_start(client, &start, out_call);
	if (error) {
		lock_destroy(lock);
	}
	return error;
}

void pawl_lock_free(struct pawl_lock *take_lock) {
	if (take_lock) {
		lock_destroy(take_lock);
	}
}
