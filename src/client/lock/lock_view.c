/* lock_view.c: what can be said of a lock: to the program, and to the other files, all of which may
 * call this one. It calls none of them.
 */
#include "check.h"
#include "lock.h"
#include "session_binding.h"
#include "watch.h"

bool lock_is_over(const struct pawl_lock *lock) {
	return instant_distrusted(client_core_now(lock->client), lock->deadline);
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

/* ---- what the program sees ---- */

int64_t pawl_lock_valid_ms(const struct pawl_lock *lock) {
	return lock->cause == PAWL_ELOST || lock->leaving
		? 0
		: instant_left_short(client_core_now(lock->client), lock->deadline) / SPAN_MS;
}

void pawl_lock_deadline(const struct pawl_lock *lock, int64_t *out_boottime_ns,
	int64_t *out_monotonic_raw_ns) {
	*out_boottime_ns = lock->leaving ? 0 : lock->deadline.boot;
	*out_monotonic_raw_ns = lock->leaving ? 0 : lock->deadline.raw;
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
	return lock->cause ? lock->cause : lock_is_over(lock) ? PAWL_ELOST : 0;
}

int pawl_lock_asked_error(const struct pawl_lock *lock) {
	return lock->watch ? pawl_watch_error(lock->watch) : 0;
}

/* ---- one lock ---- */

void session_binding_begin(struct pawl_lock *lock, unsigned connection_number) {
	lock->client->bound_ever = true;
	lock->first_connection = lock->bound_connection = connection_number;
}

bool session_binding_wanted(const struct pawl_lock *lock) {
	return lock->binding && lock->bound_connection != lock->client->connection_number;
}

bool session_binding_made(struct pawl_lock *lock, unsigned connection_number) {
	const bool moved = lock->binding && connection_number > lock->bound_connection;
	if (moved) {
		lock->bound_connection = connection_number;
		/* A retained connection may be closed now. */
		client_core_kick(lock->client);
	}
	return moved;
}
