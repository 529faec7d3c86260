/* These tests are about locks of the client that end with its connection. */
#include "holder.h"

static unsigned open_sessions(const struct fake_node *n) {
	unsigned open = 0;
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		open += n->conns[i].fd >= 0;
	}
	return open;
}

static void a_lock_whose_node_is_gone_is_bound_to_the_next_connection_at_once(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	assert_true(r.nodes[0].last.release_on_disconnect);
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(h.lost, 0);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[1].bindings[0], 2);
	assert_false(r.nodes[1].last_deadline_kept);
	rig_pass(&r, 3200 * SPAN_MS);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 2);
	/* The lock is bound already. */
	assert_int_equal(r.nodes[1].bindings[1], 0);
	assert_true(r.nodes[1].last_deadline_kept);
	fake_hang_up(&r.nodes[1]);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].bindings[r.nodes[0].binding_count - 1], 3);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	rig_close(&r);
}

/* Masters that have not heard of the next connection drop the lock when the earlier one is closed,
 * so nothing that was answered under that one counts any more. */
static void what_the_next_connection_is_told_counts_though_it_is_less(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	r.nodes[1].valid_permille = 300;
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].bindings[0], 2);
	assert_int_equal(h.lost, 0);
	assert_true(pawl_lock_valid_ms(h.lock) > 0 && pawl_lock_valid_ms(h.lock) <= 3000);
	rig_close(&r);
}

static void a_connection_that_is_given_up_stays_open_until_the_lock_is_bound_to_another(
	void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	r.nodes[0].mood = FAKE_SILENT;
	r.nodes[1].mood = FAKE_HOLDS_BACK;
	rig_pass(&r, 4800 * SPAN_MS);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 1);
	assert_int_equal(open_sessions(&r.nodes[0]), 1);
	r.nodes[1].mood = FAKE_ANSWERS;
	fake_let_go(&r.nodes[1]);
	rig_settle(&r);
	assert_int_equal(h.lost, 0);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	assert_int_equal(open_sessions(&r.nodes[0]), 0);
	rig_close(&r);
}

static void a_lock_that_cannot_be_bound_is_not_trusted_any_more_when_its_connection_is_closed(
	void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	struct pawl_lock *lock = h.lock;
	r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
	for (int i = 0; i < 2000; i++) {
		rig_pass(&r, 5 * SPAN_MS);
		assert_true(pawl_lock_valid_ms(lock) == 0 || open_sessions(&r.nodes[0]) >= 1);
	}
	assert_int_equal(h.lost, 1);
	assert_int_equal(pawl_lock_valid_ms(lock), 0);
	rig_pass(&r, 20 * SPAN_MS);
	assert_int_equal(r.client->retained_count, 0);
	rig_close(&r);
}

static void an_acquire_that_is_repeated_over_another_connection_is_bound_to_that_one(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, true);
	o.wait_ms = 20000;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_SILENT;
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), 0);
	rig_settle(&r);
	struct id128 lock_id = r.nodes[0].last_lock_id;
	assert_int_equal(r.nodes[0].last_binding, 1);
	rig_pass(&r, 5000 * SPAN_MS);
	assert_non_null(h.lock);
	assert_int_equal(r.nodes[1].last_binding, 2);
	struct pawl_id got = pawl_lock_id(h.lock);
	assert_memory_equal(&got, &lock_id, sizeof(got));
	assert_int_equal(r.nodes[1].asked[CLIENT_RELEASE], 0);
	rig_close(&r);
}

static void a_lock_that_too_few_had_is_acquired_again_and_bound_by_that(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, true);
	o.value = pawl_str("first");
	rig_open(&r, NULL);
	take(&r, &h, &o);
	struct pawl_id lock_id = pawl_lock_id(h.lock);
	assert_int_equal(pawl_lock_update_start(h.lock, pawl_str("second"), NULL, on_done, &h,
		NULL), 0);
	rig_settle(&r);
	r.nodes[1].unsure_binds = 1;
	r.nodes[1].token = 8;
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].asked[CLIENT_ACQUIRE], 1);
	assert_memory_equal(&r.nodes[1].last_lock_id, &lock_id, sizeof(lock_id));
	assert_string_equal(r.nodes[1].last_value, "second");
	rig_pass(&r, 5 * SPAN_MS);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 1);
	/* The acquire has bound the lock. */
	assert_int_equal(r.nodes[1].last_binding, 2);
	assert_int_equal(pawl_lock_token(h.lock), 9);
	assert_int_equal(h.lost, 0);
	rig_close(&r);
}

static void a_lock_that_cannot_be_acquired_again_is_tried_with_pauses_until_it_is_lost(
	void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	r.nodes[1].unsure_binds = r.nodes[0].unsure_binds = 1000;
	/* Somebody else has the key, or a part of it. */
	r.nodes[1].acquire_error = r.nodes[0].acquire_error = PAWL_EHELD;
	fake_hang_up(&r.nodes[0]);
	rig_pass(&r, 1000 * SPAN_MS);
	assert_true(r.nodes[1].asked[CLIENT_ACQUIRE] > 1 && r.nodes[1].asked[CLIENT_ACQUIRE] < 20);
	assert_int_equal(h.lost, 0);
	rig_pass(&r, 9000 * SPAN_MS);
	assert_int_equal(h.lost, 1);
	assert_true(r.nodes[1].asked[CLIENT_ACQUIRE] + r.nodes[1].asked[CLIENT_EXTEND] < 150);
	rig_close(&r);
}

/* The client is freed meanwhile. Its acquire ends first, and the lock does not use it any more. */
static void a_client_may_be_freed_while_a_lock_is_acquired_again(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	r.nodes[1].unsure_binds = 1;
	r.nodes[1].mood = FAKE_HOLDS_BACK;
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	/* The extension is answered; the acquire that follows is not. */
	fake_let_go(&r.nodes[1]);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].asked[CLIENT_ACQUIRE], 1);
	rig_close(&r);
}

/* The lock's node has died, and no other node has a quorum. Nobody else could have the lock, so it
 * is given up only when its time is over, and for that reason. */
static void a_bound_lock_is_trusted_without_a_quorum_until_its_time_is_over(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, true);
	r.nodes[0].error = r.nodes[1].error = PAWL_ENOQUORUM;
	fake_hang_up(&r.nodes[0]);
	rig_pass(&r, 7000 * SPAN_MS);
	assert_int_equal(h.lost, 0);
	/* Both were asked. */
	assert_true(r.nodes[0].asked[CLIENT_EXTEND] > 1 && r.nodes[1].asked[CLIENT_EXTEND] > 1);
	assert_true(pawl_lock_valid_ms(h.lock) > 1500);
	rig_pass(&r, 1500 * SPAN_MS);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.cause, PAWL_ENOQUORUM);
	rig_close(&r);
}

static void a_lock_without_a_binding_is_extended_over_whichever_connection(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, b = { 0 };
	struct pawl_lock_options plain = options_of(&h, false), bound = options_of(&b, true);
	bound.key = pawl_str("b");
	rig_open(&r, NULL);
	take(&r, &h, &plain);
	take(&r, &b, &bound);
	rig_pass(&r, 3200 * SPAN_MS);
	/* The two locks are not in one request: one of them must not be repeated elsewhere. */
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 2);
	assert_int_equal(r.nodes[0].locks_max, 1);
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 1);
	rig_close(&r);
}

static void a_plain_request_gets_no_lock_that_ends_with_the_connection(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = { "k", 1 },
		.terms.release_on_disconnect = true };
	assert_int_equal(pawl_start(r.client, &request, NULL, NULL, NULL), PAWL_EINVAL);
	rig_close(&r);
}

/* What is missing when a connection breaks is made up for in time, or the lock is lost in time.
 * There is no third outcome. */
static void whatever_memory_is_missing_a_bound_lock_is_kept_or_lost(void **state) {
	(void)state;
	for (uint64_t fail_at = 1; fail_at < 60; fail_at++) {
		struct rig r;
		struct holder h;
		hold(&r, &h, true);
		r.nodes[1].unsure_binds = 1;
		r.fail_from = r.allocations + fail_at;
		r.fail_count = 2;
		fake_hang_up(&r.nodes[0]);
		rig_pass(&r, 6000 * SPAN_MS);
		assert_int_equal(h.lost, 0);
		assert_true(pawl_lock_valid_ms(h.lock) > 4000);
		assert_int_equal(r.client->retained_count, 0);
		rig_close(&r);
	}
}

/* The second part of the program asks for the lock as bound, but what the first part has decides
 * (lock.h, Entering again). */
static void a_lock_that_is_entered_again_ends_with_a_connection_only_if_it_did_before(
	void **state) {
	(void)state;
	for (int bound = 0; bound < 2; bound++) {
		struct rig r;
		struct holder h = { 0 };
		struct pawl_lock_options o = options_of(&h, bound);
		rig_open(&r, NULL);
		take(&r, &h, &o);
		struct pawl_lock *lock = h.lock;
		o.lock_id = pawl_lock_id(lock);
		o.terms.release_on_disconnect = !bound;
		take(&r, &h, &o);
		assert_ptr_equal(h.lock, lock);
		/* Otherwise the node would drop a lock that the library does not know to be
		 * bound. */
		assert_int_equal(r.nodes[0].last_binding, bound);
		r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
		for (int i = 0; i < 2000; i++) {
			rig_pass(&r, 5 * SPAN_MS);
			assert_true(!bound || pawl_lock_valid_ms(lock) == 0 ||
				open_sessions(&r.nodes[0]) >= 1);
		}
		rig_close(&r);
	}
}

/* While the lock is handed over it is not trusted, but it may be again. */
static void a_lock_that_is_entered_again_while_it_is_handed_over_is_asked_for_as_it_is_held(
	void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, again = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	rig_open(&r, NULL);
	take(&r, &h, &o);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[0].error = PAWL_ENOTFOUND;
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), 0);
	o.lock_id = pawl_lock_id(h.lock);
	o.terms.release_on_disconnect = true;
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &again, NULL), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	assert_int_equal(r.nodes[0].last_binding, 0);
	r.nodes[0].mood = FAKE_ANSWERS;
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	rig_close(&r);
}

UNIT(client_bindings) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_whose_node_is_gone_is_bound_to_the_next_connection_at_once),
		cmocka_unit_test(what_the_next_connection_is_told_counts_though_it_is_less),
		cmocka_unit_test(
		a_connection_that_is_given_up_stays_open_until_the_lock_is_bound_to_another),
		cmocka_unit_test(
		a_lock_that_cannot_be_bound_is_not_trusted_any_more_when_its_connection_is_closed),
		cmocka_unit_test(
			an_acquire_that_is_repeated_over_another_connection_is_bound_to_that_one),
		cmocka_unit_test(a_lock_that_too_few_had_is_acquired_again_and_bound_by_that),
		cmocka_unit_test(
			a_lock_that_cannot_be_acquired_again_is_tried_with_pauses_until_it_is_lost),
		cmocka_unit_test(a_client_may_be_freed_while_a_lock_is_acquired_again),
		cmocka_unit_test(a_bound_lock_is_trusted_without_a_quorum_until_its_time_is_over),
		cmocka_unit_test(a_lock_without_a_binding_is_extended_over_whichever_connection),
		cmocka_unit_test(a_plain_request_gets_no_lock_that_ends_with_the_connection),
		cmocka_unit_test(whatever_memory_is_missing_a_bound_lock_is_kept_or_lost),
		cmocka_unit_test(
			a_lock_that_is_entered_again_ends_with_a_connection_only_if_it_did_before),
		cmocka_unit_test(
		a_lock_that_is_entered_again_while_it_is_handed_over_is_asked_for_as_it_is_held),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
