/* These tests are about requests of the client: answers, refusals, nodes that fail, hang or send
 * garbage, and who may do what when. */
#include "unit.h"

#include "client_rig.h"

#include <unistd.h>

static const struct pawl_bytes key = { "k", 1 };

static void an_acquire_tells_token_and_time(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key, .lease_ms = 10000 };
	struct pawl_result *result = rig_ask(&r, &request);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(result->token, 1);
	assert_int_equal(result->valid_ms, 9900);
	assert_false(pawl_id_none(&result->lock_id));
	assert_string_equal(result->endpoint, r.nodes[0].endpoint);
	assert_string_equal(r.nodes[0].last_key, "k");
	const struct pawl_value *token = pawl_value_get(result->tree, "token");
	assert_non_null(token);
	assert_int_equal(token->integer, 1);
	rig_jump(&r, 9 * SPAN_S, 0);
	assert_int_equal(pawl_result_valid_ms(result), 900);
	rig_jump(&r, 0, 10 * SPAN_S);
	assert_int_equal(pawl_result_valid_ms(result), 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_refusal_names_the_holder(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].error = PAWL_EHELD;
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EHELD);
	assert_true(result->entry.held);
	assert_string_equal(result->entry.owner.data, "somebody");
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void reads_give_the_entry(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_GET, .key = key, .quorum = true });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_true(result->entry.held);
	assert_int_equal(result->entry.token, 41);
	assert_int_equal(result->entry.value_seq.size, 20);
	assert_string_equal(result->entry.value.data, "something");
	assert_string_equal(result->role, "master");
	assert_int_equal(result->age_ms, -1);
	assert_true(r.nodes[0].last.core.quorum);
	pawl_result_free(result);
	rig_close(&r);
}

static void an_acquire_that_failed_in_the_commit_is_released(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].error = PAWL_ENOQUORUM;
	const struct pawl_id named = { { 7 } };
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key, .lock_id = named });
	assert_non_null(result);
	/* The lock_id is the caller's, so that no other one was tried. */
	assert_int_equal(result->error, PAWL_ENOQUORUM);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	pawl_result_free(result);
	rig_close(&r);
}

static void what_is_held_in_another_mode_under_the_lock_id_is_not_released(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	r.nodes[1].error = PAWL_EMISMATCH;
	const struct pawl_id named = { { 7 } };
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key, .lock_id = named });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EMISMATCH);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE] + r.nodes[1].asked[CLIENT_ACQUIRE], 2);
	assert_int_equal(r.nodes[1].asked[CLIENT_RELEASE], 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_node_without_the_others_is_left_with_a_new_lock_id(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].error = PAWL_ENOQUORUM;
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_string_equal(result->endpoint, r.nodes[1].endpoint);
	assert_memory_not_equal(result->lock_id.bytes, r.nodes[0].last_lock_id.b, 16);
	rig_settle(&r);
	/* The release is that of the first lock_id. */
	assert_int_equal(r.nodes[1].asked[CLIENT_RELEASE], 1);
	assert_memory_equal(r.nodes[1].last_lock_id.b, r.nodes[0].last_lock_id.b, 16);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_node_that_recovers_is_left_with_the_same_lock_id(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].error = PAWL_ERECOVERING;
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_memory_equal(result->lock_id.bytes, r.nodes[0].last_lock_id.b, 16);
	pawl_result_free(result);
	rig_close(&r);
}

static void an_answer_says_more_than_the_silence_of_the_others(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	for (size_t i = 1; i < RIG_ENDPOINTS; i++) {
		r.nodes[i].mood = FAKE_SILENT;
	}
	r.nodes[0].error = PAWL_ENOQUORUM;
	struct pawl_result *result = NULL;
	const struct pawl_request request = { .method = PAWL_GET, .key = key, .quorum = true,
		.timeout_ms = 1500 };
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 1600 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ENOQUORUM);
	assert_string_equal(result->endpoint, r.nodes[0].endpoint);
	pawl_result_free(result);
	rig_close(&r);
}

static void when_no_node_does_better_the_last_answer_is_given(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	for (size_t i = 0; i < RIG_ENDPOINTS; i++) {
		r.nodes[i].error = PAWL_ENOQUORUM;
	}
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_GET, .key = key, .quorum = true });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ENOQUORUM);
	for (size_t i = 0; i < RIG_ENDPOINTS; i++) {
		assert_int_equal(r.nodes[i].asked[CLIENT_GET], 1);
	}
	pawl_result_free(result);
	rig_close(&r);
}

static void the_next_endpoint_is_asked_with_the_same_lock_id(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_string_equal(result->endpoint, r.nodes[1].endpoint);
	assert_true(id128_equal(r.nodes[0].last_lock_id, r.nodes[1].last_lock_id));
	pawl_result_free(result);
	rig_close(&r);
}

static void a_refusal_after_a_repeat_is_released_all_the_same(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	/* This node may have committed, too. */
	r.nodes[0].mood = FAKE_HANGS_UP;
	r.nodes[1].error = PAWL_EHELD;
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EHELD);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].asked[CLIENT_RELEASE], 1);
	pawl_result_free(result);
	rig_close(&r);
}

/* The node that hung up may have released the lock, so the second answer does not say that it was
 * lost. */
static void a_release_that_was_repeated_is_told_so(void **state) {
	(void)state;
	for (int hangs_up = 0; hangs_up <= 1; hangs_up++) {
		struct rig r;
		rig_open(&r, NULL);
		r.nodes[0].mood = hangs_up ? FAKE_HANGS_UP : r.nodes[0].mood;
		struct pawl_result *result = rig_ask(&r,
			&(struct pawl_request){ .method = PAWL_RELEASE, .key = key,
				.lock_id = { .bytes = { 1 } } });
		assert_non_null(result);
		assert_int_equal(result->error, 0);
		assert_int_equal(result->repeated, hangs_up);
		pawl_result_free(result);
		rig_close(&r);
	}
}

static void a_node_that_talks_rot_is_left(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_TALKS_ROT;
	struct pawl_result *result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_PING });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_string_equal(result->endpoint, r.nodes[1].endpoint);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_silent_node_is_pinged_then_left(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_SILENT;
	struct pawl_result *result = NULL;
	struct pawl_request request = { .method = PAWL_GET, .key = key };
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	/* Nothing is known of how fast its answers are. */
	rig_pass(&r, 120 * SPAN_MS);
	assert_null(result);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 1);
	rig_pass(&r, 120 * SPAN_MS);
	assert_non_null(result);
	assert_string_equal(result->endpoint, r.nodes[1].endpoint);
	pawl_result_free(result);
	rig_close(&r);
}

static void the_only_node_is_dialed_again_when_the_whole_silence_is_over(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, &(struct pawl_options){ .endpoints = "one" });
	r.nodes[0].mood = FAKE_SILENT;
	struct pawl_result *result = NULL;
	struct pawl_request request = { .method = PAWL_GET, .key = key };
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 1100 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 1);
	assert_int_equal(r.nodes[0].accepted, 1);
	rig_pass(&r, 1100 * SPAN_MS);
	assert_int_equal(r.nodes[0].accepted, 2);
	r.nodes[0].mood = FAKE_ANSWERS;
	rig_pass(&r, 3 * SPAN_S);
	assert_non_null(result);
	pawl_result_free(result);
	rig_close(&r);
}

/* Each request gives up after a second, so at the moment of the alarm nothing may be under way. The
 * node has been silent all the time, whether somebody waited for it or not. */
static void silence_goes_on_while_requests_give_up(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, &(struct pawl_options){ .endpoints = "one", .timeout_ms = 1000 });
	r.nodes[0].mood = FAKE_SILENT;
	struct pawl_request request = { .method = PAWL_GET, .key = key };
	struct pawl_result *result = NULL;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
		rig_pass(&r, 1005 * SPAN_MS);
		assert_non_null(result);
		assert_int_equal(result->error, PAWL_ETIMEOUT);
	}
	r.nodes[0].mood = FAKE_ANSWERS;
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 300 * SPAN_MS);
	assert_int_equal(r.nodes[0].accepted, 2);
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_wait_that_is_pinged_may_last(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	struct pawl_result *result = NULL;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key, .wait_ms = 20000 };
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 15 * SPAN_S);
	assert_null(result);
	assert_int_equal(r.nodes[0].accepted, 1);
	assert_int_equal(r.nodes[1].accepted, 0);
	rig_pass(&r, 11 * SPAN_S);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ETIMEOUT);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	pawl_result_free(result);
	rig_close(&r);
}

/* Its node is alive. */
static void a_ping_that_is_refused_is_no_last_word(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	r.nodes[0].ping_error = PAWL_EBUSY;
	struct pawl_call *call;
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key,
		.wait_ms = 20000 };
	assert_int_equal(pawl_start(r.client, &request, NULL, NULL, &call), 0);
	rig_pass(&r, 15 * SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	assert_int_equal(r.nodes[1].accepted, 0);
	pawl_cancel(call);
	rig_close(&r);
}

static void a_repeated_wait_asks_for_the_time_that_is_left(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	r.nodes[1].mood = FAKE_KEEPS_ONE_IN;
	struct pawl_call *call;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key, .wait_ms = 20000 };
	assert_int_equal(pawl_start(r.client, &request, NULL, NULL, &call), 0);
	rig_pass(&r, 5 * SPAN_S);
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].last.core.wait, 15 * SPAN_S);
	pawl_cancel(call);
	rig_close(&r);
}

static void no_node_means_unreachable_after_the_timeout(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	struct pawl_result *result = NULL;
	struct pawl_request request = { .method = PAWL_PING, .timeout_ms = 3000 };
	for (size_t i = 0; i < RIG_ENDPOINTS; i++) {
		event_free(r.nodes[i].event);
		r.nodes[i].event = NULL;
		close(r.nodes[i].fd);
		r.nodes[i].fd = -1;
	}
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 2900 * SPAN_MS);
	assert_null(result);
	rig_pass(&r, 200 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EUNREACHABLE);
	assert_non_null(strstr(result->message, "refused"));
	pawl_result_free(result);
	rig_close(&r);
}

static void blocking_calls_are_refused_on_the_programs_loop(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	struct pawl_result *result;
	assert_int_equal(pawl_call(r.client, &(struct pawl_request){ .method = PAWL_PING },
		&result), PAWL_EINVAL);
	assert_null(result);
	assert_int_equal(pawl_poll(r.client, 0), PAWL_EINVAL);
	rig_close(&r);
}

static void requests_that_make_no_sense_are_refused_at_once(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	const struct pawl_request bad[] = {
		{ .method = (enum pawl_method)99 },
		{ .method = PAWL_RELEASE, .key = key },
		{ .method = PAWL_UPDATE, .key = key },
		{ .method = PAWL_EXTEND, .key = key },
		{ .method = PAWL_GET, .key = { NULL, 4 } },
		{ .method = PAWL_ACQUIRE, .key = key, .terms = { .mode = PAWL_PERMITS } },
		{ .method = PAWL_ACQUIRE, .key = key, .terms = { .mode = (enum pawl_mode)9 } },
		{ .method = PAWL_UPDATE, .key = key, .lock_id = { { 1 } },
			.expect_seq = { "short", 5 } },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(pawl_start(r.client, &bad[i], NULL, NULL, NULL), PAWL_EINVAL);
	}
	struct pawl_request large = { .method = PAWL_ACQUIRE, .key = key,
		.value = { "", (size_t)4 << 20 } };
	assert_int_equal(pawl_start(r.client, &large, NULL, NULL, NULL), PAWL_ETOOLARGE);
	rig_close(&r);
}

/* Of the locks that are extended together, the second has its lease left open. */
static void leases_left_open_together_are_what_the_cluster_allows(void **state) {
	(void)state;
	struct rig r;
	struct pawl_extend_item items[] = { { .key = pawl_str("a"), .lease_ms = 4000 },
		{ .key = pawl_str("b") }, { .key = pawl_str("c"), .lease_ms = 29000 } };
	struct pawl_request extend = { .method = PAWL_EXTEND, .locks = items, .lock_count = 3 };
	for (size_t i = 0; i < 3; i++) {
		items[i].lock_id.bytes[0] = (unsigned char)(i + 1);
	}
	rig_open(&r, NULL);
	r.nodes[0].lease_most = 6 * SPAN_S;
	struct pawl_result *got = rig_ask(&r, &extend);
	assert_int_equal(got->error, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 2);
	assert_int_equal(got->extended[0].error, 0);
	assert_in_range(got->extended[0].valid_ms, 3900, 4000);
	assert_int_equal(got->extended[1].error, 0);
	assert_in_range(got->extended[1].valid_ms, 5900, 6000);
	/* A lease that is named is not shortened. */
	assert_int_equal(got->extended[2].error, PAWL_ETOOLONG);
	pawl_result_free(got);
	/* Then the client knows it. */
	got = rig_ask(&r, &extend);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 3);
	assert_int_equal(got->extended[1].error, 0);
	pawl_result_free(got);
	rig_close(&r);
}

UNIT(client_calls) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leases_left_open_together_are_what_the_cluster_allows),
		cmocka_unit_test(an_acquire_tells_token_and_time),
		cmocka_unit_test(a_refusal_names_the_holder),
		cmocka_unit_test(reads_give_the_entry),
		cmocka_unit_test(an_acquire_that_failed_in_the_commit_is_released),
		cmocka_unit_test(what_is_held_in_another_mode_under_the_lock_id_is_not_released),
		cmocka_unit_test(a_node_without_the_others_is_left_with_a_new_lock_id),
		cmocka_unit_test(a_node_that_recovers_is_left_with_the_same_lock_id),
		cmocka_unit_test(when_no_node_does_better_the_last_answer_is_given),
		cmocka_unit_test(an_answer_says_more_than_the_silence_of_the_others),
		cmocka_unit_test(the_next_endpoint_is_asked_with_the_same_lock_id),
		cmocka_unit_test(a_refusal_after_a_repeat_is_released_all_the_same),
		cmocka_unit_test(a_release_that_was_repeated_is_told_so),
		cmocka_unit_test(a_node_that_talks_rot_is_left),
		cmocka_unit_test(a_silent_node_is_pinged_then_left),
		cmocka_unit_test(the_only_node_is_dialed_again_when_the_whole_silence_is_over),
		cmocka_unit_test(silence_goes_on_while_requests_give_up),
		cmocka_unit_test(a_wait_that_is_pinged_may_last),
		cmocka_unit_test(a_ping_that_is_refused_is_no_last_word),
		cmocka_unit_test(a_repeated_wait_asks_for_the_time_that_is_left),
		cmocka_unit_test(no_node_means_unreachable_after_the_timeout),
		cmocka_unit_test(blocking_calls_are_refused_on_the_programs_loop),
		cmocka_unit_test(requests_that_make_no_sense_are_refused_at_once),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
