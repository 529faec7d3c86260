/* These tests ask what a holder may do with a lock besides keeping it; some have several keys at
 * once. */
#include "holder.h"

static void a_lock_that_is_handed_over_is_not_trusted_from_the_call_on(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), PAWL_EINVAL);
	rig_settle(&r);
	assert_int_equal(h.results, 1);
	assert_int_equal(h.error, 0);
	assert_int_equal(pawl_lock_error(h.lock), PAWL_ELOST);
	rig_pass(&r, 20 * SPAN_S);
	assert_int_equal(h.lost, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 0);
	pawl_lock_free(h.lock);
	rig_close(&r);
}

static void a_hand_over_to_nobody_leaves_the_lock_as_it_was(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].error = PAWL_ENOTFOUND;
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_ENOTFOUND);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	r.nodes[0].error = 0;
	rig_pass(&r, 20 * SPAN_S);
	assert_int_equal(h.lost, 0);
	assert_true(pawl_lock_valid_ms(h.lock) > 4000);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	rig_close(&r);
}

static void a_hand_over_whose_answer_is_lost_ends_as_a_release(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].mood = FAKE_HANGS_UP;
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_EUNSURE);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
	assert_int_equal(r.nodes[1].asked[CLIENT_TRANSFER], 0);
	assert_int_equal(r.nodes[1].asked[CLIENT_RELEASE], 1);
	rig_close(&r);
}

static void a_downgraded_lock_is_shared_from_the_call_on(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	assert_int_equal(pawl_lock_mode(h.lock), PAWL_EXCLUSIVE);
	r.nodes[0].error = PAWL_ENOQUORUM;
	r.nodes[1].error = PAWL_ENOQUORUM;
	assert_int_equal(pawl_lock_downgrade_start(h.lock, on_done, &h, NULL), 0);
	assert_int_equal(pawl_lock_mode(h.lock), PAWL_SHARED);
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_ENOQUORUM);
	assert_int_equal(pawl_lock_mode(h.lock), PAWL_SHARED);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	rig_close(&r);
}

static void permits_are_numbered(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	o.terms = (struct pawl_terms){ .permits = 3, .of = 10 };
	rig_open(&r, NULL);
	take(&r, &h, &o);
	uint32_t slots[2] = { 0 };
	assert_int_equal(pawl_lock_mode(h.lock), PAWL_PERMITS);
	assert_int_equal(pawl_lock_slots(h.lock, slots, 2), 3);
	assert_int_equal(slots[0], 1);
	assert_int_equal(slots[1], 3);
	o.terms.permits = 1000;
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), PAWL_EINVAL);
	rig_close(&r);
}

static void a_lock_that_was_entered_twice_is_released_by_the_second_release(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_lock_options o = hold(&r, &h, false);
	struct pawl_lock *first = h.lock;
	assert_int_equal(pawl_lock_enter(first), 2);
	assert_int_equal(pawl_lock_leave(first), 1);
	assert_int_equal(pawl_lock_leave(first), PAWL_EINVAL);
	/* Acquiring the same lock again means entering it. */
	o.lock_id = pawl_lock_id(first);
	take(&r, &h, &o);
	assert_ptr_equal(h.lock, first);
	assert_int_equal(pawl_lock_release_start(first, on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	assert_true(pawl_lock_valid_ms(first) > 8000);
	assert_int_equal(pawl_lock_release_start(first, on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(h.results, 1);
	rig_close(&r);
}

static void a_holder_is_told_who_asks_it_to_let_go(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	o.on_asked = on_asked;
	rig_open(&r, NULL);
	take(&r, &h, &o);
	fake_ask(&r.nodes[0], "b", "", 4);
	rig_settle(&r);
	assert_int_equal(h.asked, 4);
	pawl_lock_free(h.lock);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_UNWATCH], 1);
	rig_close(&r);
}

static void several_keys_are_one_request_and_renewed_in_one(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	const struct pawl_key_item keys[] = { { .key = { "b", 1 } },
		{ .key = { "a", 1 }, .mode = PAWL_SHARED }, { .key = { "c", 1 } } };
	rig_open(&r, NULL);
	assert_int_equal(pawl_locks_start(r.client, &o, keys, 3, on_several, &h, NULL), 0);
	rig_settle(&r);
	assert_int_equal(h.error, 0);
	assert_int_equal(h.count, 3);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	assert_memory_equal(pawl_lock_key(h.locks[0]).data, "b", 1);
	assert_int_equal(pawl_lock_mode(h.locks[1]), PAWL_SHARED);
	assert_int_equal(pawl_lock_token(h.locks[2]), 3);
	rig_pass(&r, 3200 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[0].locks_last, 3);
	rig_close(&r);
}

static void several_keys_that_were_refused_are_released_one_by_one_where_that_is_in_doubt(
	void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	const struct pawl_key_item keys[] = { { .key = { "b", 1 } }, { .key = { "a", 1 } } };
	rig_open(&r, NULL);
	r.nodes[0].error = r.nodes[1].error = PAWL_ETIMEOUT;
	assert_int_equal(pawl_locks_start(r.client, &o, keys, 2, on_several, &h, NULL), 0);
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_ETIMEOUT);
	assert_int_equal(h.count, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	r.nodes[0].error = r.nodes[1].error = PAWL_EUNSURE;
	assert_int_equal(pawl_locks_start(r.client, &o, keys, 2, on_several, &h, NULL), 0);
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_EUNSURE);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 2);
	assert_int_equal(pawl_locks_start(r.client, &o, keys, 0, on_several, &h, NULL),
		PAWL_EINVAL);
	rig_close(&r);
}

/* While only this lock is held, a node may be silent for a sixth of nine seconds. */
static void a_short_lock_that_is_gone_does_not_make_the_client_impatient(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, brief = { 0 };
	struct pawl_lock_options o = options_of(&h, false), b = options_of(&brief, false);
	b.key = pawl_str("b");
	b.lease_ms = 120;
	rig_open(&r, &(struct pawl_options){ .endpoints = "one" });
	take(&r, &brief, &b);
	assert_int_equal(pawl_lock_release_start(brief.lock, NULL, NULL), 0);
	rig_settle(&r);
	take(&r, &h, &o);
	r.nodes[0].mood = FAKE_SILENT;
	/* The node is asked to extend it after 3 s. */
	rig_pass(&r, 3400 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[0].accepted, 1);
	rig_close(&r);
}

/* The node has done the update, and its answer cannot be kept. */
static void an_update_that_was_done_is_not_said_to_have_failed_for_want_of_memory(void **state) {
	(void)state;
	for (uint64_t at = 1; at < 20; at++) {
		struct rig r;
		struct holder h;
		hold(&r, &h, false);
		r.nodes[0].mood = FAKE_HOLDS_BACK;
		assert_int_equal(pawl_lock_update_start(h.lock, pawl_str("v"), NULL, on_done, &h,
			NULL), 0);
		rig_settle(&r);
		assert_int_equal(r.nodes[0].asked[CLIENT_UPDATE], 1);
		r.nodes[0].mood = FAKE_ANSWERS;
		r.fail_from = r.allocations + at;
		r.fail_count = 1;
		fake_let_go(&r.nodes[0]);
		rig_settle(&r);
		assert_int_equal(h.results, 1);
		assert_true(h.error == 0 || h.error == PAWL_EUNSURE);
		r.fail_from = 0;
		rig_close(&r);
	}
}

UNIT(client_leaving) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_that_is_handed_over_is_not_trusted_from_the_call_on),
		cmocka_unit_test(a_hand_over_to_nobody_leaves_the_lock_as_it_was),
		cmocka_unit_test(a_hand_over_whose_answer_is_lost_ends_as_a_release),
		cmocka_unit_test(a_downgraded_lock_is_shared_from_the_call_on),
		cmocka_unit_test(permits_are_numbered),
		cmocka_unit_test(a_lock_that_was_entered_twice_is_released_by_the_second_release),
		cmocka_unit_test(a_holder_is_told_who_asks_it_to_let_go),
		cmocka_unit_test(several_keys_are_one_request_and_renewed_in_one),
		cmocka_unit_test(
		several_keys_that_were_refused_are_released_one_by_one_where_that_is_in_doubt),
		cmocka_unit_test(a_short_lock_that_is_gone_does_not_make_the_client_impatient),
		cmocka_unit_test(
			an_update_that_was_done_is_not_said_to_have_failed_for_want_of_memory),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
