#include "lock.h"

#include <string.h>

#include "check.h"

#define RETRY_LEAST (10 * SPAN_MS)

static void lock_destroy(struct pawl_lock *lock) {
	struct pawl *hub = lock->hub;
	list_remove(&lock->link);
	renew_forget(lock);
	agenda_clear(&hub->agenda, &lock->warn_alarm);
	alloc_free(hub->env.alloc, lock->key, lock->key_size ? lock->key_size : 1);
	alloc_free(hub->env.alloc, lock, sizeof(*lock));
}

void locks_free_all(struct pawl *hub) {
	struct list *at;
	while ((at = list_first(&hub->locks)) != NULL) {
		lock_destroy(CONTAINER_OF(at, struct pawl_lock, link));
	}
}

bool lock_believed(const struct pawl *hub, struct pawl_id lock_id) {
	for (struct list *at = list_first(&hub->locks); at; at = list_after(&hub->locks, at)) {
		const struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (memcmp(&lock->lock_id, &lock_id, sizeof(lock_id)) == 0 && pawl_lock_valid_ms(lock) > 0) {
			return true;
		}
	}
	return false;
}

/* ---- keeping it ---- */

/* Final: no answer brings it back. */
static void lock_lose(struct pawl_lock *lock, int cause) {
	struct pawl *hub = lock->hub;
	lock->cause = cause;
	renew_forget(lock);
	agenda_clear(&hub->agenda, &lock->warn_alarm);
	if (lock->on_lost) {
		hub->callbacks++;
		lock->on_lost(lock, cause, lock->arg);
	}
}

static int lock_cause(const struct pawl_lock *lock) {
	return lock->last_error ? lock->last_error : PAWL_ETIMEOUT;
}

static void on_renew_alarm(struct alarm *alarm) {
	struct pawl_lock *lock = CONTAINER_OF(alarm, struct pawl_lock, renew_alarm);
	if (!lock->batch && !list_linked(&lock->due)) {
		list_append(&lock->hub->due, &lock->due);
		hub_kick(lock->hub);
	}
}

/* Told by the clock of the system's timer, decided by both clocks. */
static void lock_watch(struct pawl_lock *lock) {
	struct pawl *hub = lock->hub;
	struct instant now = hub_now(hub);
	span_ns left = instant_left_short(now, lock->deadline);
	agenda_set(&hub->agenda, &lock->warn_alarm, now.boot + (left > lock->warn ? left - lock->warn : 0));
}

static void on_warn_alarm(struct alarm *alarm) {
	struct pawl_lock *lock = CONTAINER_OF(alarm, struct pawl_lock, warn_alarm);
	struct instant now = hub_now(lock->hub);
	if (instant_left_short(now, lock->deadline) > lock->warn) {
		lock_watch(lock);
	} else {
		lock_lose(lock, lock_cause(lock));
	}
}

static void lock_renew_at(struct pawl_lock *lock, int64_t boot_ns) {
	lock->renew_at = boot_ns;
	agenda_set(&lock->hub->agenda, &lock->renew_alarm, boot_ns);
}

void lock_schedule(struct pawl_lock *lock, bool at_once) {
	struct pawl *hub = lock->hub;
	lock_watch(lock);
	if (lock->no_renewal) {
		return;
	}
	struct instant now = hub_now(hub);
	span_ns wait = instant_left_short(now, lock->deadline) - lock->lease / 3 * 2;
	if (at_once) {
		wait = 0;
	} else if (wait < lock->lease / 16) {
		wait = lock->lease / 16; /* a node that grants less than was asked for is not asked without end */
	}
	lock_renew_at(lock, now.boot + wait);
}

/* Soon again, later each time, at random, and still several times before the deadline. */
static void lock_retry(struct pawl_lock *lock, int error) {
	struct pawl *hub = lock->hub;
	struct instant now = hub_now(hub);
	lock->last_error = error;
	span_ns wait = lock->lease / 64 << (lock->failures < 3 ? lock->failures : 3);
	span_ns quarter = instant_left_short(now, lock->deadline) / 4;
	lock->failures++;
	wait = wait < quarter ? wait : quarter;
	wait = prng_between(&hub->prng, wait / 2, wait + wait / 2);
	lock_renew_at(lock, now.boot + (wait > RETRY_LEAST ? wait : RETRY_LEAST));
}

static void lock_prolong(struct pawl_lock *lock, struct instant sent_at, const struct pawl_extended *outcome) {
	struct instant now = hub_now(lock->hub);
	struct instant deadline = instant_add(sent_at, outcome->valid_ms * SPAN_MS);
	if (instant_left_short(now, deadline) > instant_left_short(now, lock->deadline)) {
		lock->deadline = deadline; /* whole, never one clock of each: both must have been promised together */
	}
	if (outcome->token > lock->token) {
		lock->token = outcome->token;
	}
	lock->last_error = 0;
	lock->failures = 0;
	lock_schedule(lock, false);
	if (lock->on_renewed) {
		lock->hub->callbacks++;
		lock->on_renewed(lock, lock->arg);
	}
}

void lock_extended(struct pawl_lock *lock, struct instant sent_at, const struct pawl_extended *outcome) {
	CHECK(lock->cause == 0);
	if (instant_distrusted(hub_now(lock->hub), lock->deadline)) {
		/* docs/protocol.md, Extend: a deadline that has passed is final, whatever arrives later. */
		lock_lose(lock, outcome->error == PAWL_ELOST || !outcome->error ? PAWL_ELOST : outcome->error);
	} else if (outcome->error == 0) {
		lock_prolong(lock, sent_at, outcome);
	} else if (outcome->error == PAWL_ELOST || outcome->error == PAWL_ENOTFOUND) {
		lock_lose(lock, PAWL_ELOST);
	} else if (outcome->error == PAWL_EDENIED) {
		lock_lose(lock, PAWL_EDENIED);
	} else {
		lock_retry(lock, outcome->error);
	}
}

/* ---- getting it ---- */

static void lock_abandon(void *ctx) {
	lock_destroy(ctx);
}

static void lock_begin(struct pawl_lock *lock, const struct pawl_result *result, struct instant deadline) {
	struct pawl *hub = lock->hub;
	lock->lock_id = result->lock_id;
	lock->token = result->token;
	lock->deadline = deadline;
	list_append(&hub->locks, &lock->link);
	if (hub->lease_shortest == 0 || lock->lease < hub->lease_shortest) {
		hub->lease_shortest = lock->lease;
		reach_watch_anew(hub);
	}
	/* docs/protocol.md, What the holder may count on: a client that waited long extends at once. */
	lock_schedule(lock, result->waited_ms * SPAN_MS > lock->lease);
}

static void on_acquired(struct pawl_call *call, struct pawl_result *take_result, void *ctx) {
	struct pawl_lock *lock = ctx;
	struct pawl *hub = lock->hub;
	pawl_locked_fn *locked = lock->locked;
	void *arg = lock->locked_arg;
	struct instant deadline = result_box(take_result)->valid_until;
	if (!take_result->error && instant_distrusted(hub_now(hub), deadline)) {
		call_release_quietly(hub, order_key(call->order), take_result->lock_id);
		result_fail(result_box(take_result), PAWL_ELOST, "the answer came when the lease was over");
	}
	if (take_result->error) {
		lock_destroy(lock);
		lock = NULL;
	} else {
		lock_begin(lock, take_result, deadline);
	}
	hub->callbacks++;
	locked(lock, take_result, arg);
}

static struct pawl_lock *lock_new(struct pawl *hub, const struct pawl_lock_options *o) {
	struct pawl_lock *lock = alloc_new(hub->env.alloc, sizeof(*lock));
	uint8_t *key = alloc_new(hub->env.alloc, o->key.size ? o->key.size : 1);
	if (!lock || !key) {
		alloc_free(hub->env.alloc, lock, sizeof(*lock));
		alloc_free(hub->env.alloc, key, o->key.size ? o->key.size : 1);
		return NULL;
	}
	if (o->key.size) {
		memcpy(key, o->key.data, o->key.size);
	}
	span_ns lease = (span_ns)(o->lease_ms ? o->lease_ms : LEASE_MS_DEFAULT) * SPAN_MS;
	*lock = (struct pawl_lock){ .hub = hub, .key = key, .key_size = o->key.size, .lease = lease,
		.warn = o->warn_ms ? (span_ns)o->warn_ms * SPAN_MS : lease / 6, .no_renewal = o->no_renewal,
		.renew_alarm.ring = on_renew_alarm, .warn_alarm.ring = on_warn_alarm,
		.on_lost = o->on_lost, .on_renewed = o->on_renewed, .arg = o->arg };
	return lock;
}

int pawl_lock_start(struct pawl *client, const struct pawl_lock_options *options, pawl_locked_fn *done, void *arg,
	struct pawl_call **out_call) {
	uint32_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS_DEFAULT;
	if (!done || client->dying || options->warn_ms > lease_ms / 2 || (!options->key.data && options->key.size)) {
		return PAWL_EINVAL;
	}
	struct pawl_lock *lock = lock_new(client, options);
	if (!lock) {
		return PAWL_ENOMEM;
	}
	lock->locked = done;
	lock->locked_arg = arg;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = options->key, .lock_id = options->lock_id,
		.lease_ms = lease_ms, .wait_ms = options->wait_ms, .timeout_ms = options->timeout_ms, .owner = options->owner,
		.value = options->value };
	struct call_start start = { .request = &request, .end = on_acquired, .drop = lock_abandon, .ctx = lock };
	int error = call_start(client, &start, out_call);
	if (error) {
		lock_destroy(lock);
	}
	return error;
}

/* ---- what the program sees ---- */

int64_t pawl_lock_valid_ms(const struct pawl_lock *lock) {
	return lock->cause == PAWL_ELOST ? 0 : instant_left_short(hub_now(lock->hub), lock->deadline) / SPAN_MS;
}

void pawl_lock_deadline(const struct pawl_lock *lock, int64_t *out_boottime_ns, int64_t *out_monotonic_raw_ns) {
	bool lost = lock->cause == PAWL_ELOST;
	*out_boottime_ns = lost ? 0 : lock->deadline.boot;
	*out_monotonic_raw_ns = lost ? 0 : lock->deadline.raw;
}

uint64_t pawl_lock_token(const struct pawl_lock *lock) {
	return lock->token;
}

struct pawl_id pawl_lock_id(const struct pawl_lock *lock) {
	return lock->lock_id;
}

struct pawl_bytes pawl_lock_key(const struct pawl_lock *lock) {
	return (struct pawl_bytes){ lock->key, lock->key_size };
}

int pawl_lock_error(const struct pawl_lock *lock) {
	if (lock->cause) {
		return lock->cause;
	}
	return instant_distrusted(hub_now(lock->hub), lock->deadline) ? lock_cause(lock) : 0;
}

void pawl_lock_free(struct pawl_lock *take_lock) {
	if (take_lock) {
		lock_destroy(take_lock);
	}
}
