/* These tests end waits from outside (CORE_END_WAIT), and list who holds a key. */
#include "named.h"

#define CLIENT 1u

static void end_wait(struct stage *s, uint32_t node, uint64_t client, uint64_t id) {
	stage_step(s, node, &(struct core_event){ .kind = CORE_END_WAIT, .client = client,
		.request_id = id });
	stage_settle(s);
	stage_wait(s, SPAN_MS);
}

static uint64_t ask(struct stage *s, uint32_t node, uint8_t lock, span_ns wait) {
	return stage_ask(s, node, stage_acquire("k", stage_lock(lock), LEASE, wait));
}

/* Tells whether the wait was ended, and has not run out. */
static bool cut(const struct stage *s, uint64_t id) {
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ETIMEOUT);
	return stage_answer(s, id)->r.wait_cut;
}

static void a_wait_that_is_ended_is_over_and_leaves_the_queue(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(9));
	uint64_t first = ask(s, 0, 1, WAIT), second = ask(s, 2, 2, WAIT);
	stage_wait(s, 100 * SPAN_MS);
	end_wait(s, 0, CLIENT, first);
	assert_true(cut(s, first));
	assert_false(answered(s, second));
	assert_int_equal(release(s, 1, "k", stage_lock(9)), PAWL_OK);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_answer(s, second)->r.error, PAWL_OK);
}

static void another_request_of_the_client_goes_on(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(9));
	uint64_t first = ask(s, 0, 1, WAIT), second = ask(s, 0, 2, WAIT);
	stage_wait(s, 100 * SPAN_MS);
	end_wait(s, 0, CLIENT + 1, first);
	end_wait(s, 0, CLIENT, second + 1);
	assert_false(answered(s, first));
	end_wait(s, 0, CLIENT, second);
	assert_true(cut(s, second));
	assert_false(answered(s, first));
}

/* There is one attempt, and each of its requests has time left. */
static void a_repeat_hears_that_its_wait_was_ended(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, WAIT);
	take(s, 1, "k", stage_lock(9));
	uint64_t first = stage_ask(s, 0, r);
	stage_wait(s, 100 * SPAN_MS);
	r.client = CLIENT + 1;
	uint64_t again = stage_ask(s, 0, r);
	assert_int_equal(stage_count(s, COUNT_repeat_joined), 1);
	end_wait(s, 0, CLIENT, first);
	assert_true(cut(s, first) && cut(s, again));
}

/* The commit decides, and not the end of the wait. */
static void who_is_about_to_get_the_lock_gets_it(void **state) {
	struct stage *s = *state;
	s->held[1][0] = s->held[2][0] = true;
	uint64_t id = ask(s, 0, 1, WAIT);
	stage_settle(s);
	stage_deliver(s, 1, 0);
	assert_true(stage_sent(s, MESSAGE_COMMIT) > 0);
	stage_step(s, 0, &(struct core_event){ .kind = CORE_END_WAIT, .client = CLIENT,
		.request_id = id });
	stage_wait(s, 5 * SPAN_MS);
	assert_false(answered(s, id));
	memset(s->held, 0, sizeof s->held);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	/* It is held for as long as it was asked for. */
	end_wait(s, 0, CLIENT, id);
	assert_true(holds(s, 2, "k", stage_lock(1)));
}

static struct core_request both_keys(void) {
	static struct core_lock locks[2];
	locks[0] = (struct core_lock){ slice_str("a"), stage_lock(1), 0, 0 };
	locks[1] = (struct core_lock){ slice_str("k"), stage_lock(2), 0, 0 };
	return (struct core_request){ .op = CORE_ACQUIRE_ALL, .locks = locks, .lock_count = 2,
		.lease = LEASE, .wait = WAIT };
}

static void several_keys_are_rolled_back(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(9));
	uint64_t id = stage_ask(s, 0, both_keys());
	stage_wait(s, 100 * SPAN_MS);
	assert_true(holds(s, 2, "a", stage_lock(1)));
	end_wait(s, 0, CLIENT, id);
	stage_wait(s, 10 * SPAN_MS);
	assert_true(cut(s, id));
	take(s, 2, "a", stage_lock(11));
}

/* The end of the wait for a comes too late, because a is about to be got. What runs out later is
 * the wait for k. */
static void a_wait_that_was_not_ended_in_time_runs_out_as_any_other(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(9));
	s->held[1][0] = s->held[2][0] = true;
	uint64_t id = stage_ask(s, 0, both_keys());
	stage_settle(s);
	stage_deliver(s, 1, 0);
	assert_true(stage_sent(s, MESSAGE_COMMIT) > 0);
	stage_step(s, 0, &(struct core_event){ .kind = CORE_END_WAIT, .client = CLIENT,
		.request_id = id });
	memset(s->held, 0, sizeof s->held);
	while (!answered(s, id)) {
		assert_int_equal(extend(s, 1, "k", stage_lock(9), LEASE, false), PAWL_OK);
		stage_wait(s, SPAN_S);
	}
	assert_false(cut(s, id));
}

struct seen {
	uint32_t count;
	struct id128 last;
};

static bool see(void *ctx, const struct core_entry *entry) {
	struct seen *seen = ctx;
	seen->count++;
	seen->last = entry->lock_id;
	return seen->count < 4;
}

static bool look(struct stage *s, const char *key, uint32_t most, struct seen *seen) {
	*seen = (struct seen){ .count = 0 };
	return core_inspect_holders(s->nodes[2].core, slice_str(key), stage_clock(s, 2), most, see,
		seen);
}

static void the_holders_of_a_key_are_shown(void **state) {
	struct stage *s = *state;
	struct seen seen;
	assert_true(look(s, "k", 10, &seen));
	assert_int_equal(seen.count, 0);
	for (uint8_t i = 1; i <= 5; i++) {
		struct core_request r = stage_acquire("k", stage_lock(i), LEASE, 0);
		r.terms.of = MODE_SHARED;
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	assert_false(look(s, "k", 3, &seen));
	assert_int_equal(seen.count, 3);
	/* The visitor wants no more. */
	assert_true(look(s, "k", 10, &seen));
	assert_int_equal(seen.count, 4);
	for (uint8_t i = 2; i <= 5; i++) {
		assert_int_equal(release(s, 0, "k", stage_lock(i)), PAWL_OK);
	}
	stage_wait(s, 10 * SPAN_MS);
	assert_true(look(s, "k", 10, &seen));
	assert_int_equal(seen.count, 1);
	assert_true(id128_equal(seen.last, stage_lock(1)));
	stage_wait(s, LEASE + SPAN_S);
	assert_true(look(s, "k", 10, &seen));
	assert_int_equal(seen.count, 0);
}

UNIT(cluster_end_wait) {
	const struct CMUnitTest tests[] = {
		NAMED(a_wait_that_is_ended_is_over_and_leaves_the_queue),
		NAMED(another_request_of_the_client_goes_on),
		NAMED(who_is_about_to_get_the_lock_gets_it),
		NAMED(several_keys_are_rolled_back),
		NAMED(a_repeat_hears_that_its_wait_was_ended),
		NAMED(a_wait_that_was_not_ended_in_time_runs_out_as_any_other),
		NAMED(the_holders_of_a_key_are_shown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
