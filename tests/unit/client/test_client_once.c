/* These tests make requests that a client does not repeat at another node. */
#include "unit.h"

#include "client_rig.h"

#include <unistd.h>

static const struct pawl_bytes key = { "k", 1 };

static void an_update_whose_answer_is_lost_is_unsure_and_not_repeated(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_request request = { .method = PAWL_UPDATE, .key = key, .value = pawl_str("v"),
		.lock_id = { { 1 } } };
	struct pawl_result *result = rig_ask(&r, &request);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_EUNSURE);
	assert_int_equal(r.nodes[1].asked[CLIENT_UPDATE], 0);
	pawl_result_free(result);
	rig_close(&r);
}

static void a_drain_is_never_repeated_at_another_node(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_result *result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_DRAIN });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ECLOSED);
	assert_int_equal(r.nodes[1].asked[CLIENT_DRAIN], 0);
	pawl_result_free(result);
	rig_close(&r);
}

/* At another node the number is that of another connection. */
static void a_kick_is_never_repeated_at_another_node(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_result *result = rig_ask(&r,
		&(struct pawl_request){ .method = PAWL_KICK, .client = 7 });
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ECLOSED);
	assert_int_equal(r.nodes[1].asked[CLIENT_KICK], 0);
	pawl_result_free(result);
	rig_close(&r);
}

UNIT(client_once) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_update_whose_answer_is_lost_is_unsure_and_not_repeated),
		cmocka_unit_test(a_drain_is_never_repeated_at_another_node),
		cmocka_unit_test(a_kick_is_never_repeated_at_another_node),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
