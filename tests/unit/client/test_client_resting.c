/* A node refuses calls because their identity has had enough. They come again when the node says,
 * within their time. */
#include "unit.h"

#include "client_rig.h"

static const struct pawl_request acquire = { .method = PAWL_ACQUIRE, .key = { "k", 1 },
	.lease_ms = 10000, .timeout_ms = 5000 };

static void open_refusing(struct rig *r, span_ns retry_after) {
	rig_open(r, NULL);
	for (int i = 0; i < RIG_ENDPOINTS; i++) {
		r->nodes[i].error = PAWL_EQUOTA;
		r->nodes[i].retry_after = retry_after;
	}
}

static void a_request_is_sent_again_when_the_node_says_and_not_before(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	open_refusing(&r, 2 * SPAN_S);
	assert_int_equal(pawl_start(r.client, &acquire, rig_done, &result, NULL), 0);
	rig_pass(&r, 1990 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	assert_null(result);
	r.nodes[0].error = 0;
	/* A call rests for up to half as long again. */
	rig_pass(&r, 1100 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void calls_that_were_refused_together_come_back_one_by_one(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *results[20] = { NULL };
	open_refusing(&r, 2 * SPAN_S);
	for (size_t i = 0; i < 20; i++) {
		assert_int_equal(pawl_start(r.client, &acquire, rig_done, &results[i], NULL), 0);
	}
	rig_pass(&r, 1990 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 20);
	r.nodes[0].error = 0;
	rig_pass(&r, 500 * SPAN_MS);
	assert_in_range(r.nodes[0].asked[CLIENT_ACQUIRE], 21, 39);
	rig_pass(&r, 600 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 40);
	for (size_t i = 0; i < 20; i++) {
		assert_non_null(results[i]);
		pawl_result_free(results[i]);
	}
	rig_close(&r);
}

static void the_refusal_is_the_answer_where_that_would_be_too_late_or_is_not_said(void **state) {
	(void)state;
	const span_ns waits[] = { 5 * SPAN_S, 0 };
	for (size_t i = 0; i < 2; i++) {
		struct rig r;
		open_refusing(&r, waits[i]);
		struct pawl_result *result = rig_ask(&r, &acquire);
		assert_non_null(result);
		assert_int_equal(result->error, PAWL_EQUOTA);
		rig_settle(&r);
		assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
		/* The acquire has taken nothing. */
		assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
		pawl_result_free(result);
		rig_close(&r);
	}
}

static void an_update_comes_again_too(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	const struct pawl_request update = { .method = PAWL_UPDATE, .key = { "k", 1 },
		.lock_id = { { 1 } }, .value = { "v", 1 }, .timeout_ms = 5000 };
	open_refusing(&r, SPAN_S);
	assert_int_equal(pawl_start(r.client, &update, rig_done, &result, NULL), 0);
	rig_pass(&r, 500 * SPAN_MS);
	r.nodes[0].error = 0;
	rig_pass(&r, 1100 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_UPDATE], 2);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_call_that_rests_can_be_canceled_and_ends_with_its_client(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *canceled = NULL, *ended = NULL;
	struct pawl_call *call;
	open_refusing(&r, SPAN_S);
	assert_int_equal(pawl_start(r.client, &acquire, rig_done, &canceled, &call), 0);
	assert_int_equal(pawl_start(r.client, &acquire, rig_done, &ended, NULL), 0);
	rig_settle(&r);
	pawl_cancel(call);
	/* The one that is left has come again, has been refused again, and rests. */
	rig_pass(&r, 1600 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 3);
	assert_null(ended);
	pawl_free(r.client);
	r.client = NULL;
	assert_null(canceled);
	pawl_result_free(ended);
	rig_close(&r);
}

static const struct pawl_request waiting = { .method = PAWL_ACQUIRE, .key = { "k", 1 },
	.lease_ms = 10000, .wait_ms = 60000, .timeout_ms = 5000 };

static unsigned asked_in_all(const struct rig *r) {
	unsigned count = 0;
	for (size_t i = 0; i < RIG_ENDPOINTS; i++) {
		count += (unsigned)r->nodes[i].asked[CLIENT_ACQUIRE];
	}
	return count;
}

/* Planned stops, or nodes that are cut off, do not end a wait, however many there are. */
static void a_request_that_may_wait_asks_in_rounds_until_a_node_serves_it(void **state) {
	(void)state;
	const int errors[] = { PAWL_ERECOVERING, PAWL_ENOQUORUM };
	for (size_t i = 0; i < 2; i++) {
		struct rig r;
		struct pawl_result *result = NULL;
		rig_open(&r, NULL);
		for (size_t node = 0; node < RIG_ENDPOINTS; node++) {
			r.nodes[node].error = errors[i];
		}
		assert_int_equal(pawl_start(r.client, &waiting, rig_done, &result, NULL), 0);
		rig_pass(&r, 20 * SPAN_S);
		assert_null(result);
		/* It pauses for 250 to 750 ms after each round. */
		assert_in_range(asked_in_all(&r), 20 * RIG_ENDPOINTS, 90 * RIG_ENDPOINTS);
		for (size_t node = 0; node < RIG_ENDPOINTS; node++) {
			r.nodes[node].error = 0;
		}
		rig_pass(&r, SPAN_S);
		assert_non_null(result);
		assert_int_equal(result->error, 0);
		pawl_result_free(result);
		rig_close(&r);
	}
}

static void the_last_refusal_is_the_answer_when_the_wait_is_over(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	struct pawl_request request = waiting;
	request.wait_ms = 3000;
	rig_open(&r, NULL);
	for (size_t node = 0; node < RIG_ENDPOINTS; node++) {
		r.nodes[node].error = PAWL_ENOQUORUM;
	}
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 2500 * SPAN_MS);
	assert_null(result);
	rig_pass(&r, 1500 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ENOQUORUM);
	pawl_result_free(result);
	rig_close(&r);
}

UNIT(client_resting) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_sent_again_when_the_node_says_and_not_before),
		cmocka_unit_test(calls_that_were_refused_together_come_back_one_by_one),
		cmocka_unit_test(
			the_refusal_is_the_answer_where_that_would_be_too_late_or_is_not_said),
		cmocka_unit_test(an_update_comes_again_too),
		cmocka_unit_test(a_call_that_rests_can_be_canceled_and_ends_with_its_client),
		cmocka_unit_test(a_request_that_may_wait_asks_in_rounds_until_a_node_serves_it),
		cmocka_unit_test(the_last_refusal_is_the_answer_when_the_wait_is_over),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
