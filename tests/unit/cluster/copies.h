/* copies.h: what the tests of copying ahead of a change share. There are three masters, n1 to n3;
 * n4, the node of a holder; and three nodes that copy ahead, n5 to n7. */
#ifndef PAWL_TESTS_COPIES_H
#define PAWL_TESTS_COPIES_H

#include "members.h"
#include "modes.h"

#define HOLDER 3
#define GRACE (20 * SPAN_MS)
#define SHORT (100 * SPAN_MS)

static inline int copies_setup(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	o.outside = 3;
	*state = stage_born(&o);
	return 0;
}

#define COPIES(test) cmocka_unit_test_setup_teardown(test, copies_setup, named_teardown)

/* Asks for the change, and returns when the copies are there and the decree waits. */
static inline uint64_t window(struct stage *s, const char *set, uint32_t copies) {
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, true);
	uint64_t id = ask_change(s, 0, set_of(set));
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_ready), copies);
	assert_int_equal(epoch_of(s, 0), 1);
	return id;
}

/* The change is made with what was copied ahead, and time passes until the commit rounds of the
 * previous epoch are over (section 4, contested keys). */
static inline void decide(struct stage *s, uint64_t id, uint32_t copies) {
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, false);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_used), copies);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_broken), 0);
	stage_wait(s, 250 * SPAN_MS);
}

static inline void nobody_has(const struct stage *s, const char *key, struct id128 lock) {
	for (uint32_t i = 4; i < 7; i++) {
		assert_false(knows(s, i, key, lock));
	}
}

static inline void take_bound(struct stage *s, const char *key, uint8_t lock, uint32_t binding,
	span_ns delay) {
	struct core_request r = stage_acquire(key, stage_lock(lock), LEASE, 0);
	r.terms.binding = binding;
	r.terms.delay = delay;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

/* HOLDER's node holds the key as lock 1, which is to end with that node. */
static inline void take_with_node(struct stage *s) {
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = GRACE;
	take(s, HOLDER, "k", stage_lock(1));
	stage_ask(s, HOLDER, r);
	stage_settle(s);
}

/* Does what a node does when the other side has closed the connection. */
static inline void close_connection(struct stage *s, const char *key, uint8_t lock,
	uint32_t binding) {
	struct core_request r = stage_request(CORE_RELEASE, key, stage_lock(lock));
	r.binding = binding;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

static inline struct core_lock of(const char *key, uint8_t lock) {
	return (struct core_lock){ .key = slice_str(key), .lock_id = stage_lock(lock) };
}

static inline uint64_t ask_both(struct stage *s, uint32_t node, uint8_t a, uint8_t b,
	span_ns wait) {
	const struct core_lock locks[] = { of("a", a), of("b", b) };
	struct core_request r = { .op = CORE_ACQUIRE_ALL, .locks = locks, .lock_count = 2,
		.lease = LEASE, .wait = wait };
	return stage_ask(s, node, r);
}

/* There are two masters, and n3 is a replica. A request for a and b, for which b is held, was
 * rolled back: n1 lacks a, n2 has another lock there, and n3, which has not heard, has it. */
static inline void known_to_the_replica_alone(struct stage *s) {
	take(s, 1, "b", stage_lock(9));
	ask_both(s, 0, 1, 2, WAIT);
	stage_wait(s, SHORT);
	assert_true(knows(s, 2, "a", stage_lock(1)));
	for (uint32_t from = 0; from < 2; from++) {
		stage_lose(s, from, 2, MESSAGE_FEED_BATCH, true);
		stage_lose(s, from, 2, MESSAGE_FEED_GONE, true);
		stage_lose(s, from, 2, MESSAGE_FEED_RECORD, true);
	}
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	take(s, 0, "a", stage_lock(5));
	stage_lose(s, 0, 1, MESSAGE_RELEASE, true);
	stage_ask(s, 0, stage_request(CORE_RELEASE, "a", stage_lock(5)));
	stage_settle(s);
	assert_true(knows(s, 2, "a", stage_lock(1)) && knows(s, 1, "a", stage_lock(5)) &&
		!knows(s, 0, "a", stage_lock(5)));
}

#endif
