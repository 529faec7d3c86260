/* lock.c: how a lock is acquired, kept and lost. No answer that arrives after the deadline makes a
 * lock valid again. */
#include "lock.h"

#include <string.h>

#include "session_binding.h"
#include "check.h"
#include "watch.h"

#define RETRY_LEAST (10 * SPAN_MS)

/* Notes that the lock no longer counts for the shortest lease. The new shortest lease is computed
 * only when somebody asks for it, so that a thousand locks that end at once cost one walk over the
 * locks. */
static void note_gone(const struct pawl_lock *lock) {
	struct pawl *client = lock->client;
	client->lease_stale = client->lease_stale || lock->lease <= client->lease_shortest;
}

span_ns locks_shortest(struct pawl *client) {
	if (!client->lease_stale) {
		return client->lease_shortest;
	}
	client->lease_stale = false;
	client->lease_shortest = 0;
	for (struct list *at = list_first(&client->locks); at;
		at = list_after(&client->locks, at)) {
		const struct pawl_lock *lock = CONTAINER_OF(at, struct pawl_lock, link);
		if (!lock->cause
			&& (client->lease_shortest == 0 || lock->lease < client->lease_shortest)) {
			client->lease_shortest = lock->lease;
		}
	}
	return client->lease_shortest;
}

void lock_destroy(struct pawl_lock *lock) {
	struct pawl *client = lock->client;
	pawl_watch_free(lock->watch);
	if (lock->leave) {
		leave_orphan(lock->leave);
	}
	list_remove(&lock->link);
	note_gone(lock);
	reclaim_done(lock);
	renew_forget(lock);
	agenda_clear(&client->agenda, &lock->warn_alarm);
	if (client->retained_count) {
		/* A retained connection may be closed now. */
		client_core_kick(client);
	}
	alloc_free(client->env.alloc, lock->key, lock->key_size ? lock->key_size : 1);
	alloc_free(client->env.alloc, lock, sizeof(*lock));
}

void locks_free_all(struct pawl *client) {
	struct list *at;
	while ((at = list_first(&client->locks)) != NULL) {
		lock_destroy(CONTAINER_OF(at, struct pawl_lock, link));
	}
}

/* ---- keeping it ---- */

void lock_lose(struct pawl_lock *lock, int cause) {
	struct pawl *client = lock->client;
	lock->cause = cause;
	note_gone(lock);
	reclaim_forget(lock);
	renew_forget(lock);
	agenda_clear(&client->agenda, &lock->warn_alarm);
	if (lock->leaving) {
		/* The program has given the lock away itself. */
		return;
	}
	/* A retained connection may be closed now. */
	client_core_kick(client);
	if (lock->on_lost) {
		client->callbacks++;
		lock->on_lost(lock, cause, lock->arg);
	}
}

static int lock_cause(const struct pawl_lock *lock) {
	if (lock->last_error) {
		return lock->last_error;
	}
	return lock->binding && lock->client->state != CLIENT_CORE_READY && lock->client->last_error
		? lock->client->last_error
		: PAWL_ETIMEOUT;
}

static void on_renew_alarm(struct alarm *alarm) {
	struct pawl_lock *lock = CONTAINER_OF(alarm, struct pawl_lock, renew_alarm);
	if (!lock->batch && !list_linked(&lock->due)) {
		list_append(&lock->client->due, &lock->due);
		client_core_kick(lock->client);
	}
}

/* Sets the alarm for the warning. It goes off by one clock, but both clocks decide. */
static void lock_watch(struct pawl_lock *lock) {
	struct pawl *client = lock->client;
	struct instant now = client_core_now(client);
	span_ns left = instant_left_short(now, lock->deadline);
	agenda_set(&client->agenda, &lock->warn_alarm,
		now.boot + (left > lock->warn ? left - lock->warn : 0));
}

static void on_warn_alarm(struct alarm *alarm) {
	struct pawl_lock *lock = CONTAINER_OF(alarm, struct pawl_lock, warn_alarm);
	struct instant now = client_core_now(lock->client);
	if (instant_left_short(now, lock->deadline) > lock->warn) {
		lock_watch(lock);
	} else {
		lock_lose(lock, lock_cause(lock));
	}
}

static void lock_renew_at(struct pawl_lock *lock, int64_t boot_ns) {
	lock->renew_at = boot_ns;
	agenda_set(&lock->client->agenda, &lock->renew_alarm, boot_ns);
}

void lock_schedule(struct pawl_lock *lock, bool at_once) {
	struct pawl *client = lock->client;
	lock_watch(lock);
	if (lock->no_renewal || lock->leaving) {
		return;
	}
	struct instant now = client_core_now(client);
	span_ns wait = instant_left_short(now, lock->deadline) - lock->lease / 3 * 2;
	if (at_once) {
		wait = 0;
	} else if (wait < lock->lease / 16) {
		/* A node that grants less time than was asked for must not be asked without a
		 * pause. */
		wait = lock->lease / 16;
	}
	lock_renew_at(lock, now.boot + wait);
}

/* Sets the next try: soon at first, later each time, at random, and always several times before the
 * deadline. */
static void lock_retry(struct pawl_lock *lock, int error) {
	struct pawl *client = lock->client;
	struct instant now = client_core_now(client);
	lock->last_error = error == PAWL_ECLOSED ? PAWL_EUNREACHABLE : error;
	span_ns wait = lock->lease / 64 << (lock->failures < 3 ? lock->failures : 3);
	span_ns quarter = instant_left_short(now, lock->deadline) / 4;
	lock->failures++;
	wait = wait < quarter ? wait : quarter;
	wait = prng_between(&client->prng, wait / 2, wait + wait / 2);
	lock_renew_at(lock, now.boot + (wait > RETRY_LEAST ? wait : RETRY_LEAST));
}

/* Takes over the whole deadline, never one clock of each, because a node has promised both clocks
 * together. If the numbers change, takes over the deadline for which they were granted, even if it
 * is earlier, because nobody has promised the new numbers for as long as the old ones. If the lock
 * has moved to another connection, too: masters that have not heard of that drop it when the
 * earlier connection is closed (docs/protocol.md, Release on disconnect). */
void lock_take_grant(struct pawl_lock *lock, struct instant deadline, struct permits slots,
	bool moved) {
	struct instant now = client_core_now(lock->client);
	bool others = !permits_none(slots) && !permits_equal(slots, lock->slots);
	if (others || moved ||
		instant_left_short(now, deadline) > instant_left_short(now, lock->deadline)) {
		lock->deadline = deadline;
		lock_watch(lock);
	}
	lock->slots = others ? slots : lock->slots;
}

static void lock_prolong(struct pawl_lock *lock, struct instant sent_at, unsigned connection_number,
	const struct pawl_extended *outcome) {
	const struct permits slots = { { outcome->slots[0], outcome->slots[1] } };
	const bool moved = session_binding_made(lock, connection_number);
	/* From now on the lock has these numbers and no others (docs/protocol.md, section 10). */
	lock_take_grant(lock, instant_add(sent_at, outcome->valid_ms * SPAN_MS), slots, moved);
	if (outcome->token > lock->token) {
		lock->token = outcome->token;
	}
	lock->last_error = 0;
	lock->failures = 0;
	lock_schedule(lock, session_binding_wanted(lock));
	if (lock->on_renewed) {
		lock->client->callbacks++;
		lock->on_renewed(lock, lock->arg);
	}
}

void lock_extended(struct pawl_lock *lock, struct instant sent_at, unsigned connection_number,
	const struct pawl_extended *outcome) {
	CHECK(lock->cause == 0);
	if (instant_distrusted(client_core_now(lock->client), lock->deadline)) {
		/* docs/protocol.md, Extend: a deadline that has passed is final, whatever arrives
		 * later. */
		lock_lose(lock,
			outcome->error == PAWL_ELOST || !outcome->error ? PAWL_ELOST
				: outcome->error);
	} else if (outcome->error == 0) {
		lock_prolong(lock, sent_at, connection_number, outcome);
	} else if (outcome->error == PAWL_ELOST || outcome->error == PAWL_ENOTFOUND) {
		lock_lose(lock, PAWL_ELOST);
	} else if (outcome->error == PAWL_EDENIED) {
		lock_lose(lock, PAWL_EDENIED);
	} else if (outcome->error != PAWL_EUNSURE || !reclaim_start(lock)) {
		lock_retry(lock, outcome->error);
	}
}

/* ---- getting it ---- */

static void lock_abandon(void *ctx) {
	lock_destroy(ctx);
}

struct permits lock_slots_of(const uint32_t *slots, size_t count) {
	struct permits set = { { 0, 0 } };
	for (size_t i = 0; i < count; i++) {
		if (slots[i] < PERMITS_MAX) {
			set.w[slots[i] / 64] |= UINT64_C(1) << (slots[i] % 64);
		}
	}
	return set;
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
	return grant->crossed
		? "meanwhile the lock_id was released, or was requested with another mode"
		: "the answer arrived after the lease had expired";
}

void lock_take_lease(struct pawl_lock *lock, const struct pawl_call *call) {
	const span_ns lease = call->request->wire.core.lease;
	if (lease < lock->lease) {
		const bool usual = lock->warn == lock->lease / 6;
		lock->lease = lease;
		lock->warn = usual ? lease / 6 : lock->warn < lease / 2 ? lock->warn : lease / 2;
	}
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
		.waited_long = take_result->waited_ms * SPAN_MS > lock->lease,
		.crossed = call->crossed };
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
	size_t size = key_bytes.size ? key_bytes.size : 1;
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
		.renew_alarm.ring = on_renew_alarm, .warn_alarm.ring = on_warn_alarm,
		.on_lost = o->on_lost, .on_renewed = o->on_renewed, .on_asked = o->on_asked,
		.arg = o->arg };
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
		lock->watch->quiet = true;
	}
	*out = lock;
	return 0;
}

int lock_options_check(const struct pawl *client, const struct pawl_lock_options *options) {
	uint32_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_MS_DEFAULT;
	return client->dying || options->warn_ms > lease_ms / 2
			|| (!options->key.data && options->key.size)
		? PAWL_EINVAL
		: 0;
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

/* ---- what the program sees ---- */

int64_t pawl_lock_valid_ms(const struct pawl_lock *lock) {
	return lock->cause == PAWL_ELOST || lock->leaving
		? 0
		: instant_left_short(client_core_now(lock->client), lock->deadline) / SPAN_MS;
}

void pawl_lock_deadline(const struct pawl_lock *lock, int64_t *out_boottime_ns,
	int64_t *out_monotonic_raw_ns) {
	bool lost = lock->cause == PAWL_ELOST || lock->leaving;
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

enum pawl_mode pawl_lock_mode(const struct pawl_lock *lock) {
	return lock->mode;
}

size_t pawl_lock_slots(const struct pawl_lock *lock, uint32_t *out_slots, size_t room) {
	size_t count = 0;
	for (uint32_t n = 0; n < PERMITS_MAX; n++) {
		if (permits_has(lock->slots, n) && count++ < room) {
			out_slots[count - 1] = n;
		}
	}
	return count;
}

int pawl_lock_error(const struct pawl_lock *lock) {
	if (lock->cause) {
		return lock->cause;
	}
	return instant_distrusted(client_core_now(lock->client), lock->deadline) ? lock_cause(lock)
		: 0;
}

void pawl_lock_free(struct pawl_lock *take_lock) {
	if (take_lock) {
		lock_destroy(take_lock);
	}
}
