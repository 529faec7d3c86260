/* These tests let as many wait for one key as may (docs/protocol.md, section 9: a step is
 * bounded). */
#include <string.h>
#include <time.h>

#include "named.h"

#define MANY 10000u
#define REPLICA 3u
/* In seconds of processor time. A hundredth is enough; it takes a whole second where each request
 * looks at all the others. */
#define LONGEST 0.1

static int setup_many(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	o.unchecked = true;
	/* No link is given up meanwhile. */
	o.request_timeout = 10 * SPAN_S;
	o.promise_timeout = 20 * SPAN_S;
	o.max_lease = 3600 * SPAN_S;
	*state = stage_born(&o);
	return 0;
}

#define OF_MANY(test) cmocka_unit_test_setup_teardown(test, setup_many, named_teardown)

/* All of them ask at the replica. Returns their home. */
static uint32_t wait_in_crowds(struct stage *s) {
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 3000 * SPAN_S, 0)),
		PAWL_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		struct id128 lock = stage_lock(2);
		memcpy(lock.b, &i, sizeof i);
		(void)stage_ask(s, REPLICA, stage_acquire("k", lock, LEASE, 1000 * SPAN_S));
		if (i % 500 == 499) {
			stage_settle(s);
		}
	}
	uint32_t home = 0;
	while (s->sent[REPLICA][home][MESSAGE_ENQUEUE] == 0) {
		home++;
	}
	assert_int_equal(s->sent[REPLICA][home][MESSAGE_ENQUEUE], MANY);
	return home;
}

static double busy_since(clock_t before) {
	return (double)(clock() - before) / CLOCKS_PER_SEC;
}

/* Returns the time of the longest of the steps that take the replica's frames, in seconds. */
static double longest_step(struct stage *s, uint32_t node) {
	double longest = 0;
	clock_t before = clock();
	while (stage_deliver(s, REPLICA, node)) {
		longest = busy_since(before) > longest ? busy_since(before) : longest;
		before = clock();
	}
	return longest;
}

static void a_link_that_many_wait_behind_is_lost_in_a_short_step(void **state) {
	struct stage *s = *state;
	uint32_t home = wait_in_crowds(s);
	s->up[REPLICA][home] = s->up[home][REPLICA] = false;
	clock_t before = clock();
	stage_link_down(s, home, REPLICA, false);
	assert_true(busy_since(before) < LONGEST);
	for (uint32_t i = 0; i < MANY && stage_count(s, COUNT_waiter_dropped) < MANY; i++) {
		/* They are dropped in pieces. */
		stage_tick(s);
	}
	assert_int_equal(stage_count(s, COUNT_waiter_dropped), MANY);
	/* They enter the queue of another home. */
	stage_link_down(s, REPLICA, home, false);
	for (uint32_t i = 0; i < MANY && stage_sent(s, MESSAGE_ENQUEUE) < 2 * MANY; i++) {
		assert_true(longest_step(s, (home + 1) % 3) < LONGEST &&
			longest_step(s, (home + 2) % 3) < LONGEST);
		stage_tick(s);
	}
	assert_int_equal(stage_sent(s, MESSAGE_ENQUEUE), 2 * MANY);
}

static void many_who_go_away_at_once_leave_in_a_short_step(void **state) {
	struct stage *s = *state;
	uint32_t home = wait_in_crowds(s);
	stage_client_gone(s, REPLICA, REPLICA + 1);
	assert_true(longest_step(s, home) < LONGEST);
	stage_settle(s);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	/* Nobody is left. */
	(void)take(s, 1, "k", stage_lock(2));
}

/* An ordinary client may ask for this as often as it likes, whether it holds a lock or not. */
static void many_names_that_nobody_has_are_looked_for_in_a_short_time(void **state) {
	struct stage *s = *state;
	uint32_t home = wait_in_crowds(s);
	uint64_t last = 0;
	for (uint8_t i = 0; i < 200; i++) {
		struct core_request r = stage_request(CORE_TRANSFER, "k", stage_lock(i));
		r.to = slice_str("nobody");
		last = stage_ask(s, REPLICA, r);
	}
	clock_t before = clock();
	while (stage_deliver(s, REPLICA, home)) {
	}
	assert_true(busy_since(before) < LONGEST);
	stage_settle(s);
	assert_int_equal(stage_answer(s, last)->r.error, PAWL_ENOTFOUND);
}

UNIT(cluster_crowds) {
	const struct CMUnitTest tests[] = {
		OF_MANY(a_link_that_many_wait_behind_is_lost_in_a_short_step),
		OF_MANY(many_who_go_away_at_once_leave_in_a_short_step),
		OF_MANY(many_names_that_nobody_has_are_looked_for_in_a_short_time),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
