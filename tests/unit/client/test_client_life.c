/* These tests are about a client's life with many calls: what leaves together, what waits, what is
 * canceled, and how it ends. */
#include "unit.h"

#include "client_rig.h"

static const struct pawl_bytes key = { "k", 1 };

static void what_is_started_in_one_turn_arrives_in_one_read(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	pawl_result_free(rig_ask(&r, &(struct pawl_request){ .method = PAWL_PING }));
	unsigned reads = r.nodes[0].reads;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key };
	struct pawl_result *results[256] = { 0 };
	for (size_t i = 0; i < 256; i++) {
		assert_int_equal(pawl_start(r.client, &request, rig_done, &results[i], NULL), 0);
	}
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 256);
	assert_int_equal(r.nodes[0].reads, reads + 1);
	for (size_t i = 0; i < 256; i++) {
		assert_non_null(results[i]);
		assert_int_equal(results[i]->error, 0);
		pawl_result_free(results[i]);
	}
	rig_close(&r);
}

static void a_canceled_acquire_has_no_callback_and_is_released(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	struct pawl_result *result = NULL;
	struct pawl_call *call;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key, .wait_ms = 1000 };
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, &call), 0);
	rig_settle(&r);
	pawl_cancel(call);
	rig_settle(&r);
	assert_null(result);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	rig_close(&r);
}

static void freeing_the_client_cancels_what_is_under_way(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_SILENT;
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_start(r.client, &(struct pawl_request){ .method = PAWL_PING },
		rig_done, &result, NULL), 0);
	rig_settle(&r);
	pawl_free(r.client);
	r.client = NULL;
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ECANCELED);
	pawl_result_free(result);
	rig_close(&r);
}

static void free_the_client(struct pawl_result *take_result, void *arg) {
	struct rig *r = arg;
	pawl_result_free(take_result);
	pawl_free(r->client);
	r->client = NULL;
}

static void a_callback_may_free_the_client(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	struct pawl_result *other = NULL;
	struct pawl_request request = { .method = PAWL_PING };
	assert_int_equal(pawl_start(r.client, &request, free_the_client, &r, NULL), 0);
	assert_int_equal(pawl_start(r.client, &request, rig_done, &other, NULL), 0);
	rig_settle(&r);
	assert_null(r.client);
	assert_non_null(other);
	assert_int_equal(other->error, PAWL_ECANCELED);
	pawl_result_free(other);
	rig_close(&r);
}

static void a_callback_may_free_the_client_while_the_node_hangs_up(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	assert_int_equal(pawl_start(r.client, &(struct pawl_request){ .method = PAWL_PING },
		free_the_client, &r, NULL), 0);
	rig_settle(&r);
	fake_let_go(&r.nodes[0]);
	/* The answer and the end are read in one turn. */
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_null(r.client);
	rig_close(&r);
}

static void freeing_the_client_releases_what_is_being_acquired(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key, .lock_id = { { 5 } } };
	assert_int_equal(pawl_start(r.client, &request, NULL, NULL, NULL), 0);
	rig_settle(&r);
	pawl_free(r.client);
	r.client = NULL;
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(r.nodes[0].last_lock_id.b[0], 5);
	rig_close(&r);
}

static void an_update_that_nobody_answers_is_unsure(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	struct pawl_request request = { .method = PAWL_UPDATE, .key = key, .lock_id = { { 1 } } };
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 5100 * SPAN_MS);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EUNSURE);
	pawl_result_free(result);
	rig_close(&r);
}

static void count(struct pawl_result *take_result, void *arg) {
	*(unsigned *)arg += take_result->error == 0;
	pawl_result_free(take_result);
}

static void what_a_slow_node_does_not_take_yet_waits(void **state) {
	(void)state;
	static const char value[60000];
	/* That is 36 MB, more than the connection or the socket takes at once. */
	const unsigned many = 600;
	struct rig r;
	unsigned done = 0;
	rig_open(&r, NULL);
	pawl_result_free(rig_ask(&r, &(struct pawl_request){ .method = PAWL_PING }));
	event_del(r.nodes[0].conns[0].event);
	for (unsigned i = 0; i < many; i++) {
		struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key,
			.value = { value, sizeof(value) } };
		assert_int_equal(pawl_start(r.client, &request, count, &done, NULL), 0);
	}
	rig_settle(&r);
	assert_int_equal(done, 0);
	assert_true(connection_backlog(&r.client->session->connection) > 0 &&
		connection_backlog(&r.client->session->connection) < 10u << 20);
	event_add(r.nodes[0].conns[0].event, NULL);
	while (done < many) {
		assert_int_equal(event_base_loop(r.base, EVLOOP_ONCE), 0);
	}
	assert_int_equal(r.nodes[1].accepted, 0);
	rig_close(&r);
}

static void count_outcome(struct pawl_result *take_result, void *arg) {
	*(unsigned *)arg += 1;
	assert_non_null(take_result->message);
	pawl_result_free(take_result);
}

static void garbled_answers_end_every_call_once(void **state) {
	(void)state;
	const struct pawl_extend_item items[] = { { .key = key, .lock_id = { { 1 } } },
		{ .key = key, .lock_id = { { 2 } } } };
	const struct pawl_request requests[] = {
		{ .method = PAWL_ACQUIRE, .key = key },
		{ .method = PAWL_EXTEND, .locks = items, .lock_count = 2 },
		{ .method = PAWL_GET, .key = key },
		{ .method = PAWL_RELEASE, .key = key, .lock_id = { { 1 } } },
		{ .method = PAWL_PING },
	};
	const unsigned many = sizeof(requests) / sizeof(requests[0]);
	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct rig r;
		unsigned outcomes = 0;
		rig_open(&r, NULL);
		r.nodes[0].mood = r.nodes[1].mood = FAKE_GARBLES;
		prng_init(&r.nodes[0].prng, seed);
		prng_init(&r.nodes[1].prng, seed + 1000000);
		for (unsigned i = 0; i < many; i++) {
			assert_int_equal(pawl_start(r.client, &requests[i], count_outcome,
				&outcomes, NULL), 0);
			rig_settle(&r);
		}
		for (int i = 0; i < 60 && outcomes < many; i++) {
			rig_jump(&r, 100 * SPAN_MS, 100 * SPAN_MS);
			client_core_tick(r.client);
			rig_settle(&r);
		}
		assert_int_equal(outcomes, many);
		rig_close(&r);
	}
}

UNIT(client_life) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_started_in_one_turn_arrives_in_one_read),
		cmocka_unit_test(a_canceled_acquire_has_no_callback_and_is_released),
		cmocka_unit_test(freeing_the_client_cancels_what_is_under_way),
		cmocka_unit_test(a_callback_may_free_the_client),
		cmocka_unit_test(a_callback_may_free_the_client_while_the_node_hangs_up),
		cmocka_unit_test(freeing_the_client_releases_what_is_being_acquired),
		cmocka_unit_test(an_update_that_nobody_answers_is_unsure),
		cmocka_unit_test(what_a_slow_node_does_not_take_yet_waits),
		cmocka_unit_test(garbled_answers_end_every_call_once),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
