/* lock_keep.c: how a lock is kept and lost. No answer that arrives after the deadline makes a lock
 * valid again.
 */
#include "check.h"
#include "lock.h"
#include "session_binding.h"

#define RETRY_LEAST (10 * SPAN_MS)

/* ---- the lease ---- */

void lock_note_gone(const struct pawl_lock *lock) {
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

static void set_lease(struct pawl_lock *lock, span_ns lease) {
	const bool usual = lock->warn == lock->lease / 6;
	lock->lease = lease;
	lock->warn = usual ? lease / 6 : lock->warn < lease / 2 ? lock->warn : lease / 2;
}

void lock_take_lease(struct pawl_lock *lock, const struct pawl_call *call) {
	const span_ns lease = call->request->wire.core.lease;
	if (lease < lock->lease) {
		set_lease(lock, lease);
	}
}

bool lock_lower_lease(struct pawl_lock *lock, span_ns most) {
	struct pawl *client = lock->client;
	if (most < SPAN_MS || most >= lock->lease) {
		return false;
	}
	set_lease(lock, most);
	span_ns shortest = locks_shortest(client);
	if (shortest == 0 || most < shortest) {
		client->lease_shortest = most;
		failover_reset_silence_alarm(client);
	}
	return true;
}

void lock_set_lease(struct pawl_lock *lock, span_ns lease) {
	struct pawl *client = lock->client;
	set_lease(lock, lease);
	client->lease_stale = true;
	failover_reset_silence_alarm(client);
}

/* ---- keeping it ---- */

/* Ends the belief in the lock, before its deadline if need be, without telling the program. */
static void lock_end(struct pawl_lock *lock, int cause) {
	struct pawl *client = lock->client;
	lock->cause = cause;
	if (cause == PAWL_ELOST && !lock_is_over(lock)) {
		lock->deadline = (struct instant){ 0, 0 };
	}
	lock_note_gone(lock);
	reclaim_forget(lock);
	renew_forget(lock);
	agenda_clear(&client->agenda, &lock->warn_alarm);
	/* A retained connection may be closed now. */
	client_core_kick(client);
}

static void lock_tell_lost(struct pawl_lock *lock) {
	if (lock->on_lost) {
		lock->client->callbacks++;
		lock->on_lost(lock, lock->cause, lock->arg);
	}
}

void lock_lose(struct pawl_lock *lock, int cause) {
	lock_end(lock, cause);
	if (!lock->leaving) {
		/* Otherwise the program has given the lock away itself. */
		lock_tell_lost(lock);
	}
}

void lock_released(struct pawl_lock *lock) {
	const int before = lock->cause;
	if (before != PAWL_ELOST) {
		lock_end(lock, PAWL_ELOST);
	}
	if (!before) {
		/* Callbacks never run inside the function that makes the request. */
		agenda_set(&lock->client->agenda, &lock->warn_alarm,
			client_core_now(lock->client).boot);
	}
}

/* Who asks only after the deadline has stood still, whatever may have failed before. */
static int lock_cause(const struct pawl_lock *lock) {
	return lock_is_over(lock) ? PAWL_ELOST
		: lock->last_error ? lock->last_error
		: lock->binding && lock->client->state != CLIENT_CORE_READY
			&& lock->client->last_error ? lock->client->last_error
		: PAWL_ETIMEOUT;
}

void lock_on_renew_alarm(struct alarm *alarm) {
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

void lock_on_warn_alarm(struct alarm *alarm) {
	struct pawl_lock *lock = CONTAINER_OF(alarm, struct pawl_lock, warn_alarm);
	struct instant now = client_core_now(lock->client);
	if (lock->cause) {
		/* lock_released has set the alarm. */
		lock_tell_lost(lock);
	} else if (instant_left_short(now, lock->deadline) > lock->warn) {
		lock_watch(lock);
	} else {
		lock_lose(lock, lock_cause(lock));
	}
}

/* How much shorter than its lease a lock may be trusted before a node has said so: more than the
 * drift that clocks may have, which is at most a tenth (docs/operations/reference.md). */
#define DRIFT_MOST(lease) ((lease) / 8)

void lock_shorten(struct pawl_lock *lock, span_ns lease) {
	struct instant now = client_core_now(lock->client),
		end = instant_add(now, lease - DRIFT_MOST(lease));
	/* An extension that is under way is about the lease that is given up. */
	renew_forget(lock);
	lock_set_lease(lock, lease);
	if (instant_left_short(now, end) < instant_left_short(now, lock->deadline)) {
		lock->deadline = end;
	}
	lock_watch(lock);
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
	if (lock_is_over(lock)) {
		/* docs/protocol.md, Extend: a deadline that has passed is final. */
		lock_lose(lock, PAWL_ELOST);
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
