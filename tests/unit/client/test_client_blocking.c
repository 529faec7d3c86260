/* These tests use the blocking style, with a loop of the client's own and real clocks. */
#include "blocking_pair.h"

static void a_call_returns_with_its_answer(void **state) {
	(void)state;
	struct pair p;
	struct pawl_result *result;
	pair_open(&p);
	assert_int_equal(pawl_call(p.client, &(struct pawl_request){ .method = PAWL_PING },
		&result), 0);
	assert_string_equal(result->version, "9.9");
	assert_string_equal(result->node, "fake");
	pawl_result_free(result);
	p.node.error = PAWL_EHELD;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str("k") };
	assert_int_equal(pawl_call(p.client, &request, NULL), PAWL_EHELD);
	pair_close(&p);
}

static void a_lock_is_taken_updated_and_released(void **state) {
	(void)state;
	struct pair p;
	struct pawl_lock *lock = NULL;
	pair_open(&p);
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 5000 };
	assert_int_equal(pawl_lock_acquire(p.client, &o, &lock, NULL), 0);
	assert_non_null(lock);
	assert_in_range(pawl_lock_valid_ms(lock), 4000, 4950);
	struct pawl_result *result;
	assert_int_equal(pawl_lock_update(lock, pawl_str("v"), &(struct pawl_bytes){ "", 0 },
		&result), 0);
	assert_int_equal(result->value_seq.size, 20);
	assert_true(p.node.last.core.expect_value);
	pawl_result_free(result);
	assert_int_equal(pawl_lock_release(lock), 0);
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 1);
	assert_int_equal(pawl_lock_release(NULL), 0);
	pair_close(&p);
}

static void locks_are_renewed_inside_poll(void **state) {
	(void)state;
	struct pair p;
	struct pawl_lock *lock;
	pair_open(&p);
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 300 };
	assert_int_equal(pawl_lock_acquire(p.client, &o, &lock, NULL), 0);
	while (p.node.asked[CLIENT_EXTEND] < 5 && pawl_lock_error(lock) == 0) {
		assert_int_equal(pawl_poll(p.client, 1000), 0);
		assert_int_equal(pawl_poll(p.client, 0), 0);
	}
	assert_int_equal(pawl_lock_error(lock), 0);
	pawl_lock_free(lock);
	pair_close(&p);
}

struct inside {
	struct pawl *client;
	int call, poll, lock;
};

static void try_to_block(struct pawl_result *take_result, void *arg) {
	struct inside *in = arg;
	pawl_result_free(take_result);
	struct pawl_lock *lock;
	in->call = pawl_call(in->client, &(struct pawl_request){ .method = PAWL_PING }, NULL);
	in->poll = pawl_poll(in->client, 10);
	in->lock = pawl_lock_acquire(in->client,
		&(struct pawl_lock_options){ .key = pawl_str("k") }, &lock, NULL);
}

static void callbacks_cannot_block(void **state) {
	(void)state;
	struct pair p;
	pair_open(&p);
	struct inside in = { .client = p.client };
	assert_int_equal(pawl_start(p.client, &(struct pawl_request){ .method = PAWL_PING },
		try_to_block, &in, NULL), 0);
	assert_int_equal(pawl_poll(p.client, 5000), 0);
	assert_int_equal(in.call, PAWL_EINVAL);
	assert_int_equal(in.poll, PAWL_EINVAL);
	assert_int_equal(in.lock, PAWL_EINVAL);
	pair_close(&p);
}

static void free_all(struct pawl_result *take_result, void *arg) {
	struct pair *p = arg;
	pawl_result_free(take_result);
	fake_close(&p->node);
	pawl_free(p->client);
}

static void a_client_freed_in_a_callback_ends_the_call_that_blocks(void **state) {
	(void)state;
	struct pair p;
	struct pawl_result *result;
	pair_open(&p);
	assert_int_equal(pawl_call(p.client, &(struct pawl_request){ .method = PAWL_PING },
		NULL), 0);
	p.node.mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_start(p.client, &(struct pawl_request){ .method = PAWL_PING },
		free_all, &p, NULL), 0);
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str("k"),
		.wait_ms = 5000 };
	assert_int_equal(pawl_call(p.client, &request, &result), PAWL_ECANCELED);
	assert_int_equal(result->error, PAWL_ECANCELED);
	pawl_result_free(result);
}

UNIT(client_blocking) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_returns_with_its_answer),
		cmocka_unit_test(a_lock_is_taken_updated_and_released),
		cmocka_unit_test(locks_are_renewed_inside_poll),
		cmocka_unit_test(callbacks_cannot_block),
		cmocka_unit_test(a_client_freed_in_a_callback_ends_the_call_that_blocks),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
