/* These tests are about the locks of a client that leaves a silent node. */
#include "switch_part.h"

static void a_lock_is_bound_to_the_new_session_before_the_old_one_is_closed(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options options = options_of(&h, true);
	begin(&r);
	take(&r, &h, &options);
	r.nodes[0].mood = FAKE_SILENT;
	r.nodes[1].mood = FAKE_HOLDS_BACK;
	struct outcome o;
	start(&r, &get, &o);
	rig_creep(&r, 8 * SPAN_MS);
	fake_let_go(&r.nodes[1]);
	rig_creep(&r, 8 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[1].bindings[0], 2);
	/* The silence of the old session is over, and nobody has said that the lock is bound. */
	rig_creep(&r, 1400 * SPAN_MS);
	assert_int_equal(open_sessions(&r.nodes[0]), 1);
	fake_let_go(&r.nodes[1]);
	rig_creep(&r, 600 * SPAN_MS);
	assert_int_equal(h.lost, 0);
	rig_close(&r);
}

static void a_session_that_owes_nothing_stays_open_while_a_lock_ends_with_it(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options options = options_of(&h, true);
	begin(&r);
	take(&r, &h, &options);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_HOLDS_BACK;
	struct outcome o;
	start(&r, &get, &o);
	rig_creep(&r, 8 * SPAN_MS);
	fake_let_go(&r.nodes[1]);
	rig_creep(&r, 8 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_true(o.over);
	assert_int_equal(open_sessions(&r.nodes[0]), 1);
	fake_let_go(&r.nodes[1]);
	rig_settle(&r);
	assert_int_equal(open_sessions(&r.nodes[0]), 0);
	assert_int_equal(h.lost, 0);
	rig_close(&r);
}

static void a_lock_that_ends_with_the_new_session_is_not_taken_from_the_old_one(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options options = options_of(&h, true);
	begin(&r);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[1].mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_lock_start(r.client, &options, on_locked, &h, NULL), 0);
	rig_creep(&r, 16 * SPAN_MS);
	assert_int_equal(r.nodes[1].last_binding, 2);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_null(h.lock);
	assert_int_equal(h.error, 0);
	rig_close(&r);
	assert_null(h.lock);
}

static void a_transfer_is_lost_with_its_own_connection_only(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options options = options_of(&h, true);
	struct outcome o;
	begin(&r);
	r.nodes[0].mood = FAKE_SILENT;
	start(&r, &get, &o);
	rig_creep(&r, 16 * SPAN_MS);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	take(&r, &h, &options);
	r.nodes[1].mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), 0);
	rig_creep(&r, 2100 * SPAN_MS);
	assert_int_equal(open_sessions(&r.nodes[0]), 0);
	assert_int_equal(h.lock->cause, 0);
	fake_hang_up(&r.nodes[1]);
	rig_settle(&r);
	assert_int_equal(h.lock->cause, PAWL_ELOST);
	rig_close(&r);
}

/* As nodes of release 0.1 do. The client learns it once for each connection. */
static void a_lock_lives_on_at_a_node_that_knows_no_parties(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, other = { 0 };
	struct pawl_lock_options options = options_of(&h, false), more = options_of(&other, false);
	begin(&r);
	take(&r, &h, &options);
	assert_true(r.nodes[0].last.present & CLIENT_HAS_PARTY);
	r.nodes[0].knows_no_parties = r.nodes[1].knows_no_parties = true;
	rig_pass(&r, 4 * SPAN_S);
	assert_int_equal(h.lost, 0);
	more.key = pawl_str("o");
	take(&r, &other, &more);
	assert_false(r.nodes[0].last.present & CLIENT_HAS_PARTY);
	rig_pass(&r, 20 * SPAN_S);
	assert_int_equal(h.lost + other.lost, 0);
	assert_int_equal(r.nodes[0].parties_refused, 1);
	r.nodes[0].mood = FAKE_SILENT;
	rig_creep(&r, 20 * SPAN_S);
	assert_string_equal(pawl_endpoint(r.client), r.nodes[1].endpoint);
	assert_int_equal(h.lost + other.lost, 0);
	assert_int_equal(r.nodes[1].parties_refused, 1);
	rig_close(&r);
}

static void requests_are_made_without_a_trace_where_that_is_not_known(void **state) {
	(void)state;
	struct rig r;
	const struct pawl_options options = { .trace =
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
	rig_open(&r, &options);
	r.nodes[0].knows_no_traces = true;
	for (int i = 0; i < 3; i++) {
		struct pawl_result *result = rig_ask(&r, &get);
		assert_int_equal(result->error, 0);
		pawl_result_free(result);
	}
	assert_int_equal(r.nodes[0].traces_refused, 1);
	rig_close(&r);
}

UNIT(client_switch_locks) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_is_bound_to_the_new_session_before_the_old_one_is_closed),
		cmocka_unit_test(a_session_that_owes_nothing_stays_open_while_a_lock_ends_with_it),
		cmocka_unit_test(
			a_lock_that_ends_with_the_new_session_is_not_taken_from_the_old_one),
		cmocka_unit_test(a_transfer_is_lost_with_its_own_connection_only),
		cmocka_unit_test(a_lock_lives_on_at_a_node_that_knows_no_parties),
		cmocka_unit_test(requests_are_made_without_a_trace_where_that_is_not_known),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
