/* holder.h: a lock as its program sees it, and what it was told; for the tests of locks. */
#ifndef PAWL_TESTS_HOLDER_H
#define PAWL_TESTS_HOLDER_H

#include "client_rig.h"
#include "lock.h"
#include "unit.h"

struct holder {
	struct pawl_lock *lock;
	int error, cause, results;
	unsigned lost, asked;
	struct pawl_lock *locks[4];
	size_t count;
};

static inline void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result,
	void *arg) {
	struct holder *h = arg;
	h->lock = take_lock;
	h->error = take_result->error;
	pawl_result_free(take_result);
}

static inline void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct holder *h = arg;
	(void)lock;
	h->lost++;
	h->cause = cause;
}

static inline void on_asked(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg) {
	(void)lock;
	((struct holder *)arg)->asked += (unsigned)asked->priority;
}

static inline void on_done(struct pawl_result *take_result, void *arg) {
	struct holder *h = arg;
	h->results++;
	h->error = take_result->error;
	pawl_result_free(take_result);
}

static inline void on_several(struct pawl_lock *const *locks, size_t count,
	struct pawl_result *take_result, void *arg) {
	struct holder *h = arg;
	h->error = take_result->error;
	h->results++;
	h->count = count;
	for (size_t i = 0; i < count; i++) {
		h->locks[i] = locks[i];
	}
	pawl_result_free(take_result);
}

static inline struct pawl_lock_options options_of(struct holder *h, bool bound) {
	return (struct pawl_lock_options){ .key = { "k", 1 }, .lease_ms = 9000, .on_lost = on_lost,
		.arg = h, .terms.release_on_disconnect = bound };
}

static inline void take(struct rig *r, struct holder *h, const struct pawl_lock_options *o) {
	assert_int_equal(pawl_lock_start(r->client, o, on_locked, h, NULL), 0);
	rig_settle(r);
	assert_int_equal(h->error, 0);
	assert_non_null(h->lock);
}

/* Opens a client that has the lock. Returns the options with which it was asked for. */
static inline struct pawl_lock_options hold(struct rig *r, struct holder *h, bool bound) {
	struct pawl_lock_options o = options_of(h, bound);
	*h = (struct holder){ 0 };
	rig_open(r, NULL);
	take(r, h, &o);
	return o;
}

/* Opens a client that has acquired two keys at once. */
static inline void hold_two(struct rig *r, struct holder *h) {
	const struct pawl_key_item keys[] = { { .key = { "a", 1 } }, { .key = { "b", 1 } } };
	struct pawl_lock_options o = options_of(h, false);
	*h = (struct holder){ 0 };
	rig_open(r, NULL);
	assert_int_equal(pawl_locks_start(r->client, &o, keys, 2, on_several, h, NULL), 0);
	rig_settle(r);
	assert_int_equal(h->count, 2);
}

#endif
