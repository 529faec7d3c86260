/* These tests are about the answer `moved`: the client asks the cluster that it names, once, and
 * stays where it is. The third node of the rig is that cluster; the client does not know it. */
#include "unit.h"

#include <string.h>

#include "client_rig.h"
#include "lock.h"
#include "watch.h"

static const struct pawl_bytes key = { "k", 1 };

/* Opens a client whose nodes say that everything has moved to the third one. */
static void open_moved(struct rig *r) {
	rig_open(r, NULL);
	for (size_t i = 0; i < RIG_ENDPOINTS; i++) {
		r->nodes[i].error = PAWL_EMOVED;
		r->nodes[i].moved_to[0] = r->nodes[2].endpoint;
	}
}

static struct pawl_result *acquire(struct rig *r, struct pawl_id lock_id) {
	struct pawl_result *result = rig_ask(r, &(struct pawl_request){ .method = PAWL_ACQUIRE,
		.key = key, .lease_ms = 10000, .lock_id = lock_id });
	assert_non_null(result);
	return result;
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	*(struct pawl_lock **)arg = take_lock;
	pawl_result_free(take_result);
}

static void the_other_cluster_is_asked_the_same(void **state) {
	(void)state;
	struct rig r;
	open_moved(&r);
	r.nodes[2].token = 6;
	const struct pawl_id named = { { 7 } };
	struct pawl_result *result = acquire(&r, named);
	assert_int_equal(result->error, 0);
	assert_int_equal(result->token, 7);
	assert_string_equal(result->endpoint, r.nodes[2].endpoint);
	assert_memory_equal(r.nodes[2].last_lock_id.b, named.bytes, sizeof(named.bytes));
	assert_memory_equal(result->lock_id.bytes, named.bytes, sizeof(named.bytes));
	assert_false(result->repeated);
	pawl_result_free(result);
	rig_settle(&r);
	assert_int_equal(r.nodes[2].asked[CLIENT_RELEASE], 0);
	rig_close(&r);
}

static void nothing_is_remembered_for_the_next_request(void **state) {
	(void)state;
	struct rig r;
	open_moved(&r);
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_GET, .key = key });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[0].endpoint);
	r.nodes[0].error = 0;
	result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_GET, .key = key });
	assert_non_null(result);
	assert_string_equal(result->endpoint, r.nodes[0].endpoint);
	assert_int_equal(r.nodes[0].accepted, 1);
	assert_int_equal(r.nodes[2].asked[CLIENT_GET], 1);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_second_moved_is_the_answer(void **state) {
	(void)state;
	struct rig r;
	open_moved(&r);
	r.nodes[2].error = PAWL_EMOVED;
	r.nodes[2].moved_to[0] = r.nodes[1].endpoint;
	struct pawl_result *result = acquire(&r, (struct pawl_id){ { 0 } });
	assert_int_equal(result->error, PAWL_EMOVED);
	const struct pawl_value *cell = pawl_value_get(result->tree, "cell");
	assert_non_null(cell);
	assert_string_equal(cell->bytes.data, "west");
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	assert_int_equal(r.nodes[1].asked[CLIENT_ACQUIRE], 0);
	assert_int_equal(r.nodes[2].asked[CLIENT_ACQUIRE], 1);
	/* Nothing was taken. */
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	assert_int_equal(r.nodes[2].asked[CLIENT_RELEASE], 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void endpoints_that_must_not_be_used_are_not(void **state) {
	(void)state;
	struct rig r;
	static const char *const wrong[] = { "", "unix:/run/pawl", "file:/etc/nodes", "srv:pawl",
		"tls://127.0.0.1:1", "127.0.0.1", "127.0.0.1:1,127.0.0.1:2", NULL };
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		open_moved(&r);
		/* One that is wrong spoils the others. */
		r.nodes[0].moved_to[wrong[i] ? 1 : 0] = wrong[i];
		struct pawl_result *result = acquire(&r, (struct pawl_id){ { 0 } });
		assert_int_equal(result->error, PAWL_EMOVED);
		assert_int_equal(r.nodes[2].accepted, 0);
		pawl_result_free(result);
		rig_close(&r);
	}
}

static void what_is_about_a_node_or_a_connection_stays(void **state) {
	(void)state;
	struct rig r;
	open_moved(&r);
	struct pawl_result *result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_TOP });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EMOVED);
	pawl_result_free(result);
	struct pawl_lock *lock = NULL;
	assert_int_equal(pawl_lock_start(r.client, &(struct pawl_lock_options){ .key = key,
		.terms.release_on_disconnect = true }, on_locked, &lock, NULL), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	assert_null(lock);
	assert_int_equal(r.nodes[2].accepted, 0);
	rig_close(&r);
}

/* The endpoints are tried in order, each once: the first cannot be reached, the second takes no
 * part in its cluster, and the third answers. */
static void each_endpoint_is_tried_once_in_order(void **state) {
	(void)state;
	struct rig r;
	struct fake_node gone;
	rig_open(&r, &(struct pawl_options){ .endpoints = "one" });
	fake_open(&gone);
	gone.event = NULL;
	client_decoder_init(&gone.decoder, &gone.alloc);
	fake_close(&gone);
	r.nodes[0].error = PAWL_EMOVED;
	r.nodes[0].moved_to[0] = gone.endpoint;
	r.nodes[0].moved_to[1] = r.nodes[1].endpoint;
	r.nodes[0].moved_to[2] = r.nodes[2].endpoint;
	r.nodes[1].error = PAWL_ERECOVERING;
	const struct pawl_request update = { .method = PAWL_UPDATE, .key = key,
		.lock_id = { { 1 } }, .value = key };
	struct pawl_result *result = rig_ask(&r, &update);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_string_equal(result->endpoint, r.nodes[2].endpoint);
	assert_int_equal(r.nodes[1].asked[CLIENT_UPDATE], 1);
	pawl_result_free(result);
	r.nodes[2].error = PAWL_ERECOVERING;
	result = rig_ask(&r, &update);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ERECOVERING);
	assert_int_equal(r.nodes[1].asked[CLIENT_UPDATE], 2);
	assert_int_equal(r.nodes[2].asked[CLIENT_UPDATE], 2);
	pawl_result_free(result);
	rig_close(&r);
}

static void an_update_that_was_sent_goes_no_further(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, &(struct pawl_options){ .endpoints = "one" });
	r.nodes[0].error = PAWL_EMOVED;
	r.nodes[0].moved_to[0] = r.nodes[1].endpoint;
	r.nodes[0].moved_to[1] = r.nodes[2].endpoint;
	r.nodes[1].mood = FAKE_HANGS_UP;
	struct pawl_result *result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_UPDATE,
		.key = key, .lock_id = { { 1 } }, .value = key });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EUNSURE);
	assert_int_equal(r.nodes[2].accepted, 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void nobody_there_is_unreachable(void **state) {
	(void)state;
	struct rig r;
	open_moved(&r);
	r.nodes[2].mood = FAKE_HANGS_UP;
	struct pawl_result *result = acquire(&r, (struct pawl_id){ { 0 } });
	assert_int_equal(result->error, PAWL_EUNREACHABLE);
	assert_int_equal(r.nodes[2].asked[CLIENT_ACQUIRE], 1);
	pawl_result_free(result);
	/* It may have been taken there: the release goes by way of the client's own endpoints. */
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	rig_close(&r);
}

static void a_refusal_of_the_other_cluster_is_the_answer(void **state) {
	(void)state;
	static const int errors[] = { PAWL_ENOQUORUM, PAWL_EQUOTA, PAWL_EHELD };
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		struct rig r;
		open_moved(&r);
		r.nodes[2].error = errors[i];
		r.nodes[2].retry_after = SPAN_MS;
		struct pawl_result *result = acquire(&r, (struct pawl_id){ { 0 } });
		assert_int_equal(result->error, errors[i]);
		assert_int_equal(r.nodes[2].asked[CLIENT_ACQUIRE], 1);
		assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
		pawl_result_free(result);
		rig_close(&r);
	}
}

static void a_call_under_way_there_can_be_canceled_and_ends_with_its_client(void **state) {
	(void)state;
	struct rig r;
	struct pawl_call *call;
	struct pawl_result *result = NULL;
	open_moved(&r);
	r.nodes[2].mood = FAKE_SILENT;
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = key };
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, &call), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[2].asked[CLIENT_ACQUIRE], 1);
	pawl_cancel(call);
	rig_settle(&r);
	assert_int_equal(r.nodes[2].asked[CLIENT_RELEASE], 0);
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[2].asked[CLIENT_ACQUIRE], 2);
	pawl_free(r.client);
	r.client = NULL;
	rig_settle(&r);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ECANCELED);
	/* Nobody else can release it any more. */
	assert_int_equal(r.nodes[2].asked[CLIENT_RELEASE], 1);
	pawl_result_free(result);
	rig_close(&r);
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	(void)watch, (void)event, (void)arg;
}

static void on_ended(struct pawl_watch *watch, int error, const char *message, void *arg) {
	(void)watch, (void)message;
	*(int *)arg = error;
}

static void a_watch_ends(void **state) {
	(void)state;
	struct rig r;
	struct pawl_watch *watch;
	int error = 0;
	open_moved(&r);
	assert_int_equal(pawl_watch_start(r.client, &(struct pawl_watch_options){ .key = key,
		.on_event = on_event, .on_ended = on_ended, .arg = &error }, &watch), 0);
	rig_pass(&r, SPAN_S);
	assert_int_equal(error, PAWL_EMOVED);
	assert_int_equal(r.nodes[2].accepted, 0);
	pawl_watch_free(watch);
	rig_close(&r);
}

/* ---- locks ---- */

static void a_lock_of_the_other_cluster_is_kept(void **state) {
	(void)state;
	struct rig r;
	struct pawl_lock *lock = NULL;
	open_moved(&r);
	assert_int_equal(pawl_lock_start(r.client,
		&(struct pawl_lock_options){ .key = key, .lease_ms = 9000 }, on_locked, &lock,
		NULL), 0);
	rig_settle(&r);
	assert_non_null(lock);
	rig_pass(&r, 3100 * SPAN_MS);
	rig_settle(&r);
	/* The first batch has one lock, which the fake node extends; so it is asked by itself. */
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	assert_int_equal(pawl_lock_error(lock), 0);
	assert_int_equal(pawl_lock_release_start(lock, NULL, NULL), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(r.nodes[2].asked[CLIENT_RELEASE], 1);
	rig_close(&r);
}

static void some_locks_of_an_extension_are_extended_there(void **state) {
	(void)state;
	struct rig r;
	open_moved(&r);
	r.nodes[2].token = 90;
	struct pawl_extend_item locks[5];
	for (size_t i = 0; i < 5; i++) {
		locks[i] = (struct pawl_extend_item){ .key = key,
			.lock_id = { { (uint8_t)(i + 1) } }, .lease_ms = 8000 };
	}
	struct pawl_result *result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_EXTEND,
		.locks = locks, .lock_count = 5 });
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(result->extended_count, 5);
	for (size_t i = 0; i < 5; i++) {
		assert_int_equal(result->extended[i].error, 0);
		assert_int_equal(result->extended[i].token, i % 2 ? 90 : 70 + i);
		assert_int_equal(result->extended[i].valid_ms, i % 2 ? 7920 : 5000);
	}
	/* Both of them in one request. */
	assert_int_equal(r.nodes[2].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[2].locks_last, 2);
	pawl_result_free(result);
	/* A second `moved` of these is their answer. */
	r.nodes[2].error = PAWL_EMOVED;
	r.nodes[2].moved_to[0] = r.nodes[1].endpoint;
	result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_EXTEND, .locks = locks,
		.lock_count = 5 });
	assert_non_null(result);
	assert_int_equal(result->extended[1].error, 0);
	assert_int_equal(result->extended[3].error, PAWL_EMOVED);
	assert_int_equal(r.nodes[1].accepted, 0);
	pawl_result_free(result);
	rig_close(&r);
}

/* Asks for a lock and extends several, some of which have moved. Returns how many allocations were
 * refused. */
static uint64_t try_short_of_memory(uint64_t fail_from) {
	struct rig r;
	const struct pawl_extend_item locks[2] = { { .key = key, .lock_id = { { 1 } } },
		{ .key = key, .lock_id = { { 2 } } } };
	const struct pawl_request requests[] = { { .method = PAWL_ACQUIRE, .key = key },
		{ .method = PAWL_EXTEND, .locks = locks, .lock_count = 2 } };
	if (rig_open_short(&r, fail_from, 1) != 0) {
		rig_close(&r);
		return 1;
	}
	r.nodes[0].error = r.nodes[1].error = PAWL_EMOVED;
	r.nodes[0].moved_to[0] = r.nodes[1].moved_to[0] = r.nodes[2].endpoint;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		struct pawl_result *result = NULL;
		const int error = pawl_start(r.client, &requests[i], rig_done, &result, NULL);
		rig_pass(&r, 200 * SPAN_MS);
		assert_true(error == PAWL_ENOMEM || result);
		pawl_result_free(result);
	}
	const uint64_t failed = r.failed;
	rig_close(&r);
	return failed;
}

static void any_allocation_may_fail(void **state) {
	(void)state;
	uint64_t from = 1;
	while (try_short_of_memory(from)) {
		from += UNIT_STRIDE;
	}
	assert_true(from > 20);
}

UNIT(client_moved) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_other_cluster_is_asked_the_same),
		cmocka_unit_test(nothing_is_remembered_for_the_next_request),
		cmocka_unit_test(a_second_moved_is_the_answer),
		cmocka_unit_test(endpoints_that_must_not_be_used_are_not),
		cmocka_unit_test(what_is_about_a_node_or_a_connection_stays),
		cmocka_unit_test(each_endpoint_is_tried_once_in_order),
		cmocka_unit_test(an_update_that_was_sent_goes_no_further),
		cmocka_unit_test(nobody_there_is_unreachable),
		cmocka_unit_test(a_refusal_of_the_other_cluster_is_the_answer),
		cmocka_unit_test(a_call_under_way_there_can_be_canceled_and_ends_with_its_client),
		cmocka_unit_test(a_watch_ends),
		cmocka_unit_test(a_lock_of_the_other_cluster_is_kept),
		cmocka_unit_test(some_locks_of_an_extension_are_extended_there),
		cmocka_unit_test(any_allocation_may_fail),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
