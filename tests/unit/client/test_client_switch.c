/* These tests are about a client that leaves a silent node within milliseconds, and about what
 * becomes of the requests under way. */
#include "switch_part.h"

static const struct pawl_bytes key = { "k", 1 };
static const struct pawl_request acquire = { .method = PAWL_ACQUIRE, .key = { "k", 1 } };
static const struct pawl_request update = { .method = PAWL_UPDATE, .key = { "k", 1 },
	.lock_id = { { 1 } }, .value = { "v", 1 } };

/* ---- leaving ---- */

static void a_node_that_stops_is_left_within_milliseconds(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	r.nodes[0].mood = FAKE_SILENT;
	struct outcome o;
	start(&r, &acquire, &o);
	rig_creep(&r, 5 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 0);
	rig_creep(&r, 3 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 1);
	assert_int_equal(open_sessions(&r.nodes[1]), 1);
	assert_false(o.over);
	rig_creep(&r, 8 * SPAN_MS);
	assert_true(o.over);
	assert_int_equal(o.error, 0);
	assert_string_equal(o.endpoint, r.nodes[1].endpoint);
	assert_memory_equal(o.lock_id.bytes, r.nodes[1].last_lock_id.b, 16);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	/* The client reads the session that it has left until the whole silence is over. */
	assert_int_equal(open_sessions(&r.nodes[0]), 1);
	rig_pass(&r, 2100 * SPAN_MS);
	assert_int_equal(open_sessions(&r.nodes[0]), 0);
	rig_close(&r);
}

/* What has come of a message says nothing new each time that it is looked at. */
static void a_node_that_stops_within_an_answer_is_left_as_well(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	r.nodes[0].mood = FAKE_STOPS_SHORT;
	struct outcome o;
	start(&r, &acquire, &o);
	rig_creep(&r, 40 * SPAN_MS);
	assert_true(o.over);
	assert_int_equal(o.error, 0);
	assert_string_equal(o.endpoint, r.nodes[1].endpoint);
	rig_close(&r);
}

static void the_calm_case_has_one_connection_and_no_ping(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	for (int i = 0; i < 500; i++) {
		pawl_result_free(rig_ask(&r, &get));
		rig_creep(&r, (i % 20) * SPAN_MS);
	}
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 0);
	assert_int_equal(r.nodes[0].accepted, 1);
	assert_int_equal(r.nodes[1].accepted, 0);
	rig_close(&r);
}

static void a_node_that_answers_pings_is_not_left_however_slow_its_quorum_is(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	struct outcome o;
	start(&r, &get, &o);
	rig_creep(&r, SPAN_S);
	assert_false(o.over);
	assert_true(r.nodes[0].asked[CLIENT_PING] > 10);
	assert_int_equal(open_sessions(&r.nodes[1]), 0);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[0].endpoint);
	rig_close(&r);
}

static void the_next_node_must_answer_a_ping_before_the_client_relies_on_it(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
	struct outcome o;
	start(&r, &get, &o);
	rig_creep(&r, 300 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[0].endpoint);
	assert_int_equal(r.nodes[1].asked[CLIENT_GET], 0);
	assert_int_equal(open_sessions(&r.nodes[1]), 0);
	r.nodes[0].mood = FAKE_ANSWERS;
	pawl_result_free(rig_ask(&r, &get));
	rig_close(&r);
}

/* The second node says so and closes the connection, and the client reads both at once. */
static void if_the_next_node_refuses_the_client_the_one_after_it_is_asked(void **state) {
	(void)state;
	struct rig r;
	rig_open_all(&r);
	pawl_result_free(rig_ask(&r, &get));
	r.nodes[0].mood = FAKE_SILENT;
	r.nodes[1].mood = FAKE_REFUSES;
	struct outcome o;
	start(&r, &get, &o);
	rig_creep(&r, 20 * SPAN_MS);
	assert_true(o.over);
	assert_int_equal(o.error, 0);
	assert_string_equal(o.endpoint, r.nodes[2].endpoint);
	rig_close(&r);
}

static void an_alarm_that_rings_late_begins_anew(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	r.nodes[0].mood = FAKE_SILENT;
	struct outcome o;
	start(&r, &get, &o);
	for (int i = 0; i < 2; i++) {
		rig_jump(&r, 80 * SPAN_MS, 80 * SPAN_MS);
		client_core_tick(r.client);
		rig_settle(&r);
		assert_int_equal(r.nodes[0].asked[CLIENT_PING], 0);
	}
	/* It has stood still for a while: such a pause is no sign of a silent node any more. */
	rig_creep(&r, 200 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 0);
	rig_creep(&r, 1200 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 1);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	rig_close(&r);
}

static void without_budget_only_the_whole_silence_leaves_a_node(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	struct outcome results[7];
	/* Six requests that are sent again leave too little. */
	r.nodes[0].mood = FAKE_SILENT;
	for (size_t i = 0; i < 6; i++) {
		start(&r, &get, &results[i]);
	}
	rig_creep(&r, 20 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	r.nodes[1].mood = FAKE_SILENT;
	r.nodes[0].mood = FAKE_ANSWERS;
	start(&r, &get, &results[6]);
	rig_creep(&r, SPAN_S);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	rig_creep(&r, 1100 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[0].endpoint);
	rig_close(&r);
	for (size_t i = 0; i < 7; i++) {
		assert_true(results[i].over);
		assert_int_equal(results[i].error, 0);
	}
}

/* Leaves the first node, which holds its answers back, with one request under way. */
static void leave_with(struct rig *r, const struct pawl_request *request,
	struct outcome *o, enum fake_mood next) {
	begin(r);
	r->nodes[0].mood = FAKE_HOLDS_BACK;
	r->nodes[1].mood = next;
	start(r, request, o);
	rig_creep(r, 16 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r->client), r->nodes[1].endpoint);
}

static void an_answer_soon_after_the_switch_doubles_the_time_again(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	leave_with(&r, &get, &o, FAKE_ANSWERS);
	assert_int_equal(r.client->patience.doublings, 1);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.client->patience.doublings, 2);
	/* It has answered all that it owed. */
	assert_int_equal(open_sessions(&r.nodes[0]), 0);
	rig_close(&r);
}

/* ---- answers ---- */

static void the_first_answer_counts_wherever_it_comes_from(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	leave_with(&r, &acquire, &o, FAKE_KEEPS_ONE_IN);
	assert_false(o.over);
	assert_int_equal(r.nodes[1].asked[CLIENT_ACQUIRE], 1);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_true(o.over);
	assert_int_equal(o.error, 0);
	assert_string_equal(o.endpoint, r.nodes[0].endpoint);
	/* Its time counts from when that node was asked. */
	assert_true(o.valid_ms <= 29700 - 16);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE] + r.nodes[1].asked[CLIENT_RELEASE], 0);
	rig_close(&r);
}

static void a_refusal_of_the_node_that_was_left_does_not_count(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	r = (struct rig){ 0 };
	begin(&r);
	r.nodes[0].acquire_error = PAWL_EHELD;
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[1].mood = FAKE_KEEPS_ONE_IN;
	start(&r, &acquire, &o);
	rig_creep(&r, 16 * SPAN_MS);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_false(o.over);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	rig_close(&r);
}

/* The next node has no quorum, so the library draws another lock_id. The first node's grant is for
 * the previous one. */
static void an_answer_about_a_lock_id_that_is_spent_does_not_count(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	begin(&r);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[1].acquire_error = PAWL_ENOQUORUM;
	start(&r, &acquire, &o);
	for (int i = 0; i < 20 && !r.nodes[1].asked[CLIENT_ACQUIRE]; i++) {
		rig_creep(&r, SPAN_MS);
	}
	rig_creep(&r, 4 * SPAN_MS);
	assert_false(o.over);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_true(o.over);
	assert_int_equal(o.error, 0);
	/* The time of the grant counts from when the new lock_id was asked for. */
	assert_in_range(o.valid_ms, 29700 - 5, 29700 - 3);
	rig_close(&r);
}

static void what_the_next_node_refuses_is_released_as_the_first_may_have_granted_it(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	begin(&r);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[1].acquire_error = PAWL_EHELD;
	start(&r, &acquire, &o);
	rig_creep(&r, 16 * SPAN_MS);
	assert_true(o.over);
	assert_int_equal(o.error, PAWL_EHELD);
	assert_int_equal(r.nodes[1].asked[CLIENT_RELEASE], 1);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	rig_close(&r);
}

static void an_update_is_not_repeated_and_unsure_only_after_the_whole_silence(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	leave_with(&r, &update, &o, FAKE_ANSWERS);
	rig_creep(&r, 1900 * SPAN_MS);
	assert_false(o.over);
	rig_creep(&r, 200 * SPAN_MS);
	assert_true(o.over);
	assert_int_equal(o.error, PAWL_EUNSURE);
	assert_int_equal(r.nodes[1].asked[CLIENT_UPDATE], 0);
	rig_close(&r);
}

static void an_update_that_is_answered_late_is_not_unsure(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	leave_with(&r, &update, &o, FAKE_ANSWERS);
	rig_creep(&r, 500 * SPAN_MS);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_true(o.over);
	assert_int_equal(o.error, 0);
	rig_close(&r);
}

/* ---- waits ---- */

static void a_request_that_waits_is_pinged_for_now_and_then(void **state) {
	(void)state;
	struct rig r;
	begin(&r);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	struct pawl_request wait = acquire;
	wait.wait_ms = 60000;
	struct outcome o;
	start(&r, &wait, &o);
	/* At first the client makes sure that the node has read the request. */
	rig_creep(&r, 10 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_PING], 1);
	rig_creep(&r, 1000 * SPAN_MS);
	assert_in_range(r.nodes[0].asked[CLIENT_PING], 4, 5);
	assert_int_equal(r.nodes[1].accepted, 0);
	/* The node stops. */
	r.nodes[0].mood = FAKE_SILENT;
	r.nodes[1].mood = FAKE_KEEPS_ONE_IN;
	rig_creep(&r, 280 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	assert_int_equal(r.nodes[1].asked[CLIENT_ACQUIRE], 1);
	assert_true(r.nodes[1].last.core.wait < 59000 * SPAN_MS);
	rig_close(&r);
}

/* ---- the endpoint to begin with ---- */

static void the_client_returns_to_the_first_endpoint_if_it_prefers_it(void **state) {
	(void)state;
	struct rig r;
	struct outcome o;
	leave_with(&r, &get, &o, FAKE_ANSWERS);
	rig_pass(&r, 11 * SPAN_S);
	/* The first node still hangs. */
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	r.nodes[0].mood = FAKE_ANSWERS;
	r.nodes[1].mood = FAKE_KEEPS_ONE_IN;
	start(&r, &(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key, .wait_ms = 60000 },
		&o);
	rig_pass(&r, 10 * SPAN_S);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[0].endpoint);
	/* What was under way goes on where it was. */
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 0);
	assert_int_equal(open_sessions(&r.nodes[1]), 1);
	rig_close(&r);
}

static void clients_begin_with_an_endpoint_by_chance(void **state) {
	(void)state;
	unsigned first = 0;
	const char *problem;
	for (int i = 0; i < 64; i++) {
		struct pawl *client;
		assert_int_equal(pawl_new(&(struct pawl_options){
			.endpoints = "127.0.0.1:1,127.0.0.1:2" }, &client, &problem), 0);
		first += client->endpoint_at == 0;
		pawl_free(client);
	}
	assert_in_range(first, 8, 56);
}

UNIT(client_switch) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_node_that_stops_is_left_within_milliseconds),
		cmocka_unit_test(a_node_that_stops_within_an_answer_is_left_as_well),
		cmocka_unit_test(the_calm_case_has_one_connection_and_no_ping),
		cmocka_unit_test(a_node_that_answers_pings_is_not_left_however_slow_its_quorum_is),
		cmocka_unit_test(the_next_node_must_answer_a_ping_before_the_client_relies_on_it),
		cmocka_unit_test(if_the_next_node_refuses_the_client_the_one_after_it_is_asked),
		cmocka_unit_test(an_alarm_that_rings_late_begins_anew),
		cmocka_unit_test(without_budget_only_the_whole_silence_leaves_a_node),
		cmocka_unit_test(an_answer_soon_after_the_switch_doubles_the_time_again),
		cmocka_unit_test(the_first_answer_counts_wherever_it_comes_from),
		cmocka_unit_test(a_refusal_of_the_node_that_was_left_does_not_count),
		cmocka_unit_test(an_answer_about_a_lock_id_that_is_spent_does_not_count),
		cmocka_unit_test(
			what_the_next_node_refuses_is_released_as_the_first_may_have_granted_it),
		cmocka_unit_test(an_update_is_not_repeated_and_unsure_only_after_the_whole_silence),
		cmocka_unit_test(an_update_that_is_answered_late_is_not_unsure),
		cmocka_unit_test(a_request_that_waits_is_pinged_for_now_and_then),
		cmocka_unit_test(the_client_returns_to_the_first_endpoint_if_it_prefers_it),
		cmocka_unit_test(clients_begin_with_an_endpoint_by_chance),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
