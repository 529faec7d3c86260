/* These tests make changes of the cluster through the client: what is sent, who is asked next, and
 * what comes back. */
#include "unit.h"

#include <string.h>

#include "client_rig.h"

static const struct pawl_change promote = { .kind = PAWL_PROMOTE, .name = "d" };
static const struct pawl_change force = { .kind = PAWL_FORCE, .anyway = true };

static struct pawl_result *ask(struct rig *r, const struct pawl_change *change) {
	struct pawl_result *result = NULL;
	const struct pawl_request request = { .method = PAWL_CHANGE, .change = change };
	assert_int_equal(pawl_start(r->client, &request, rig_done, &result, NULL), 0);
	rig_settle(r);
	return result;
}

static void a_change_tells_epoch_and_who_is_missing(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	struct pawl_result *result = ask(&r, &promote);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(result->epoch, 5);
	assert_true(result->settled && !result->complete);
	assert_int_equal(result->missing_count, 1);
	assert_string_equal(result->missing[0], "gone");
	assert_string_equal(result->warning, "look out");
	assert_int_equal(r.nodes[0].asked[CLIENT_CLUSTER_PROMOTE], 1);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_refused_change_gives_the_sentence_of_the_node(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].error = PAWL_EUNSETTLED;
	struct pawl_result *result = ask(&r, &promote);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EUNSETTLED);
	assert_true(*result->message);
	assert_int_equal(result->missing_count, 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void every_kind_has_its_method(void **state) {
	(void)state;
	const struct pawl_change_node nodes[] = { { "a", NULL, true },
		{ "b", "b.example:7118", false } };
	const struct {
		struct pawl_change change;
		enum client_method method;
	} rows[] = {
		{ { .kind = PAWL_ADD_REPLICA, .name = "d", .address = "d.example:7118" },
			CLIENT_CLUSTER_ADD_REPLICA },
		{ { .kind = PAWL_ADD_REPLICA, .name = "d" }, CLIENT_CLUSTER_ADD_REPLICA },
		{ { .kind = PAWL_DEMOTE, .name = "d", .anyway = true }, CLIENT_CLUSTER_DEMOTE },
		{ { .kind = PAWL_REMOVE, .name = "d" }, CLIENT_CLUSTER_REMOVE },
		{ { .kind = PAWL_REPLACE, .name = "b", .other = "d" }, CLIENT_CLUSTER_REPLACE },
		{ { .kind = PAWL_SET_NODES, .nodes = nodes, .node_count = 2 },
			CLIENT_CLUSTER_SET_NODES },
		{ { .kind = PAWL_SET_TIMING, .max_lease_ms = 1000, .has_clock_drift = true },
			CLIENT_CLUSTER_SET_TIMING },
		{ { .kind = PAWL_FORCE, .anyway = true }, CLIENT_CLUSTER_FORCE },
	};
	struct rig r;
	rig_open(&r, NULL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned before = r.nodes[0].asked[rows[i].method];
		struct pawl_result *result = ask(&r, &rows[i].change);
		assert_non_null(result);
		assert_int_equal(result->error, 0);
		assert_int_equal(r.nodes[0].asked[rows[i].method], before + 1);
		pawl_result_free(result);
	}
	rig_close(&r);
}

static void what_cannot_be_is_refused_without_a_node(void **state) {
	(void)state;
	static char long_name[5000];
	memset(long_name, 'x', sizeof(long_name) - 1);
	const struct pawl_change_node nameless[] = { { NULL, NULL, true } };
	const struct pawl_change bad[] = {
		{ .kind = 0, .name = "d" },
		{ .kind = PAWL_FORCE + 1, .name = "d" },
		{ .kind = PAWL_PROMOTE },
		{ .kind = PAWL_PROMOTE, .name = long_name },
		{ .kind = PAWL_REPLACE, .name = "b" },
		{ .kind = PAWL_SET_NODES },
		{ .kind = PAWL_SET_NODES, .nodes = nameless, .node_count = 1 },
		{ .kind = PAWL_SET_NODES, .nodes = nameless,
			.node_count = PAWL_CHANGE_NODES_MAX + 1 },
	};
	struct rig r;
	rig_open(&r, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct pawl_request request = { .method = PAWL_CHANGE, .change = &bad[i] };
		assert_int_equal(pawl_start(r.client, &request, NULL, NULL, NULL), PAWL_EINVAL);
	}
	assert_int_equal(pawl_start(r.client, &(struct pawl_request){ .method = PAWL_CHANGE }, NULL,
		NULL, NULL), PAWL_EINVAL);
	rig_close(&r);
}

static void the_next_node_goes_on_when_the_coordinator_dies(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_result *result = ask(&r, &promote);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_string_equal(result->endpoint, r.nodes[1].endpoint);
	assert_int_equal(r.nodes[1].asked[CLIENT_CLUSTER_PROMOTE], 1);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_forced_start_is_never_asked_of_another_node(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_result *result = ask(&r, &force);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ECLOSED);
	pawl_result_free(result);
	r.nodes[0].mood = FAKE_ANSWERS;
	r.nodes[0].error = PAWL_ENOQUORUM;
	r.nodes[1].error = PAWL_ENOQUORUM;
	result = ask(&r, &force);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ENOQUORUM);
	pawl_result_free(result);
	assert_int_equal(r.nodes[0].asked[CLIENT_CLUSTER_FORCE] +
		r.nodes[1].asked[CLIENT_CLUSTER_FORCE], 2);
	rig_close(&r);
}

static void a_change_may_take_ten_minutes_while_the_node_answers_pings(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	const struct pawl_request request = { .method = PAWL_CHANGE, .change = &promote };
	rig_open(&r, &(struct pawl_options){ .silence_ms = 60000 });
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 599 * SPAN_S);
	assert_null(result);
	assert_int_equal(r.nodes[0].asked[CLIENT_CLUSTER_PROMOTE], 1);
	rig_pass(&r, 10 * SPAN_S);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ETIMEOUT);
	pawl_result_free(result);
	rig_close(&r);
}

static void what_took_too_long_is_a_timeout(void **state) {
	(void)state;
	struct rig r;
	struct pawl_result *result = NULL;
	const struct pawl_request request = { .method = PAWL_CHANGE, .change = &promote,
		.wait_ms = 2000, .timeout_ms = 1000 };
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
	rig_pass(&r, 2500 * SPAN_MS);
	assert_null(result);
	rig_pass(&r, SPAN_S);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ETIMEOUT);
	assert_null(result->tree);
	pawl_result_free(result);
	rig_close(&r);
}

UNIT(client_change) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_tells_epoch_and_who_is_missing),
		cmocka_unit_test(a_refused_change_gives_the_sentence_of_the_node),
		cmocka_unit_test(every_kind_has_its_method),
		cmocka_unit_test(what_cannot_be_is_refused_without_a_node),
		cmocka_unit_test(the_next_node_goes_on_when_the_coordinator_dies),
		cmocka_unit_test(a_forced_start_is_never_asked_of_another_node),
		cmocka_unit_test(a_change_may_take_ten_minutes_while_the_node_answers_pings),
		cmocka_unit_test(what_took_too_long_is_a_timeout),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
