/* These tests are about a holder that makes its lease end earlier (docs/client-protocol.md,
 * shorten). The lease of 9 s that it has is valid for 8.91 s, and a new one of 3 s for 2.97 s. */
#include "holder.h"

static const struct pawl_bytes key = { "k", 1 };

/* Less than the shortest that a lease of 3 s may become by the drift, before a node has said. */
#define TRUSTED_MS 2625

static struct pawl_result *shorten(struct rig *r, struct pawl_lock *lock, uint32_t lease_ms) {
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_lock_shorten_start(lock, lease_ms, rig_done, &result, NULL), 0);
	rig_settle(r);
	assert_non_null(result);
	return result;
}

/* The lease is now 3 s. */
static void shorten_well(struct rig *r, struct pawl_lock *lock) {
	struct pawl_result *result = shorten(r, lock, 3000);
	assert_int_equal(result->error, 0);
	assert_int_equal(pawl_lock_valid_ms(lock), 2970);
	pawl_result_free(result);
}

/* The node answers what it was asked, in the order in which it was asked. */
static void let_go(struct rig *r) {
	r->nodes[0].mood = FAKE_ANSWERS;
	fake_let_go(&r->nodes[0]);
	rig_settle(r);
}

static void trust_falls_before_anything_is_sent(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *result = NULL;
	hold(&r, &h, false);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 8910);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, rig_done, &result, NULL), 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), TRUSTED_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 0);
	rig_settle(&r);
	assert_int_equal(result->error, 0);
	assert_int_equal(pawl_result_valid_ms(result), 2970);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 2970);
	const struct core_request *asked = &r.nodes[0].last.core;
	assert_true(asked->shorten);
	assert_true(asked->ordered);
	assert_true(asked->deadline_kept);
	assert_int_equal(asked->binding, 1);
	assert_int_equal(asked->lease, 3 * SPAN_S);
	pawl_result_free(result);
	rig_close(&r);
}

static void trust_falls_whatever_the_outcome_and_the_lock_is_kept(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].error = r.nodes[1].error = PAWL_EUNSURE;
	struct pawl_result *result = shorten(&r, h.lock, 3000);
	assert_int_equal(result->error, PAWL_EUNSURE);
	assert_int_equal(pawl_lock_error(h.lock), 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), TRUSTED_MS);
	pawl_result_free(result);
	r.nodes[0].error = 0;
	/* It is extended again soon. */
	rig_pass(&r, 300 * SPAN_MS);
	assert_int_equal(r.nodes[0].last_lease, 3 * SPAN_S);
	assert_int_equal(r.nodes[0].bindings[0], 1);
	assert_true(pawl_lock_valid_ms(h.lock) > TRUSTED_MS);
	assert_true(pawl_lock_valid_ms(h.lock) <= 2970);
	rig_close(&r);
}

/* What is nearly over does not become longer. */
static void trust_that_ends_earlier_stays(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_lock_options o = options_of(&h, false);
	h = (struct holder){ 0 };
	o.no_renewal = true;
	rig_open(&r, NULL);
	take(&r, &h, &o);
	rig_pass(&r, 7 * SPAN_S);
	const int64_t valid = pawl_lock_valid_ms(h.lock);
	r.nodes[0].error = r.nodes[1].error = PAWL_EUNSURE;
	pawl_result_free(shorten(&r, h.lock, 3000));
	assert_int_equal(pawl_lock_valid_ms(h.lock), valid);
	/* The library does not extend it now, either. */
	rig_pass(&r, 300 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	rig_close(&r);
}

static void it_is_renewed_for_the_new_lease_from_then_on(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	shorten_well(&r, h.lock);
	rig_pass(&r, 900 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	rig_pass(&r, 200 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 2);
	assert_int_equal(r.nodes[0].last_lease, 3 * SPAN_S);
	assert_int_equal(r.nodes[0].bindings[0], 1);
	assert_true(r.nodes[0].ordered[0]);
	/* The warning comes a sixth of the new lease before its end. */
	r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
	rig_pass(&r, 2300 * SPAN_MS);
	assert_int_equal(h.lost, 0);
	rig_pass(&r, 150 * SPAN_MS);
	assert_int_equal(h.lost, 1);
	assert_true(pawl_lock_valid_ms(h.lock) > 300);
	rig_close(&r);
}

static void whatever_is_asked_later_names_the_order(void **state) {
	(void)state;
	struct rig r;
	struct holder h, again = { 0 };
	struct pawl_lock_options o = hold(&r, &h, false);
	const struct core_request *asked = &r.nodes[0].last.core;
	shorten_well(&r, h.lock);
	/* The program extends it. */
	assert_int_equal(pawl_lock_extend_start(h.lock, 9000, on_done, &h, NULL), 0);
	rig_settle(&r);
	assert_int_equal(asked->binding, 1);
	assert_true(asked->ordered);
	assert_false(asked->shorten);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 8910);
	/* The program enters it again. */
	o.lock_id = pawl_lock_id(h.lock);
	take(&r, &again, &o);
	assert_ptr_equal(again.lock, h.lock);
	assert_int_equal(asked->binding, 1);
	assert_true(asked->ordered);
	/* The next shortening takes the next number. */
	shorten_well(&r, h.lock);
	assert_int_equal(asked->binding, 2);
	/* The program extends it by its lock_id, alone and in a list. */
	const struct pawl_extend_item items[] = {
		{ .key = { "other", 5 }, .lock_id = { { 9 } }, .lease_ms = 3000 },
		{ .key = { "k", 1 }, .lock_id = pawl_lock_id(h.lock), .lease_ms = 3000 },
	};
	struct pawl_request request = { .method = PAWL_EXTEND, .key = key, .lease_ms = 3000,
		.lock_id = pawl_lock_id(h.lock), .deadline_kept = true };
	pawl_result_free(rig_ask(&r, &request));
	assert_int_equal(asked->binding, 2);
	assert_true(asked->ordered);
	request.locks = items;
	request.lock_count = 2;
	pawl_result_free(rig_ask(&r, &request));
	assert_int_equal(r.nodes[0].bindings[0], 0);
	assert_int_equal(r.nodes[0].bindings[1], 2);
	assert_true(r.nodes[0].ordered[1]);
	rig_close(&r);
}

/* The names of locks that were never shortened are as before: nodes of release 0.2.0 know no
 * orders. */
static void a_lock_that_was_not_shortened_names_none(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold_two(&r, &h);
	/* One of a set is shortened by itself. */
	shorten_well(&r, h.locks[1]);
	assert_int_equal(pawl_lock_valid_ms(h.locks[0]), 8910);
	assert_int_equal(pawl_lock_extend_start(h.locks[0], 0, on_done, &h, NULL), 0);
	rig_settle(&r);
	assert_false(r.nodes[0].last.present & CLIENT_HAS_ORDER);
	/* The two are extended together. */
	assert_int_equal(pawl_lock_extend_start(h.locks[1], 9000, on_done, &h, NULL), 0);
	rig_settle(&r);
	rig_pass(&r, 3100 * SPAN_MS);
	assert_int_equal(r.nodes[0].locks_last, 2);
	assert_int_equal(r.nodes[0].bindings[0], 0);
	assert_int_equal(r.nodes[0].bindings[1], 1);
	rig_close(&r);
}

/* One number counts for all keys of an acquire, so each of the locks goes on from it. */
static void several_keys_go_on_from_one_number(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	const struct pawl_key_item keys[] = { { .key = { "a", 1 }, .lock_id = { { 1 } } },
		{ .key = { "b", 1 }, .lock_id = { { 2 } } } };
	struct pawl_lock_options o = options_of(&h, false);
	rig_open(&r, NULL);
	for (unsigned times = 0; times < 2; times++) {
		assert_int_equal(pawl_locks_start(r.client, &o, keys, 2, on_several, &h, NULL), 0);
		rig_settle(&r);
		assert_int_equal(h.count, 2);
		assert_int_equal(r.nodes[0].last.core.binding, times ? 2 : 0);
		shorten_well(&r, h.locks[0]);
		shorten_well(&r, h.locks[0]);
	}
	/* The second lock has named 2, and the first one has gone on to 4. */
	shorten_well(&r, h.locks[1]);
	assert_int_equal(r.nodes[0].last.core.binding, 3);
	rig_close(&r);
}

/* The extension of the library is under way, and so is one of the program, when the lease is
 * shortened. */
static void late_answers_to_extensions_do_not_count(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *mine = NULL, *result = NULL;
	hold(&r, &h, false);
	rig_pass(&r, 2900 * SPAN_MS);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	rig_creep(&r, 12 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	assert_int_equal(pawl_lock_extend_start(h.lock, 60000, rig_done, &mine, NULL), 0);
	rig_settle(&r);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, rig_done, &result, NULL), 0);
	rig_settle(&r);
	let_go(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 3);
	assert_int_equal(mine->error, PAWL_EUNSURE);
	assert_int_equal(result->error, 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 2970);
	pawl_result_free(mine);
	pawl_result_free(result);
	/* The lease of the late one does not count, either. */
	rig_pass(&r, 1100 * SPAN_MS);
	assert_int_equal(r.nodes[0].last_lease, 3 * SPAN_S);
	rig_close(&r);
}

static void a_late_answer_to_a_shortening_does_not_count_after_the_next_one(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *first = NULL, *second = NULL;
	hold(&r, &h, false);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	assert_int_equal(pawl_lock_shorten_start(h.lock, 6000, rig_done, &first, NULL), 0);
	rig_settle(&r);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, rig_done, &second, NULL), 0);
	rig_settle(&r);
	let_go(&r);
	assert_int_equal(first->error, PAWL_EUNSURE);
	assert_int_equal(second->error, 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 2970);
	assert_int_equal(r.nodes[0].last.core.binding, 2);
	pawl_result_free(first);
	pawl_result_free(second);
	rig_close(&r);
}

/* Another part of the program enters the lock when its lease is shortened. */
static void late_answers_to_acquires_do_not_count(void **state) {
	(void)state;
	for (unsigned kept = 0; kept < 2; kept++) {
		struct rig r;
		struct holder h, again = { 0 };
		struct pawl_result *result = NULL;
		struct pawl_lock_options o = hold(&r, &h, false);
		o.lock_id = pawl_lock_id(h.lock);
		r.nodes[0].mood = FAKE_HOLDS_BACK;
		assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &again, NULL), 0);
		rig_settle(&r);
		assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, rig_done, &result, NULL), 0);
		if (!kept) {
			pawl_lock_free(h.lock);
		}
		rig_settle(&r);
		let_go(&r);
		if (kept) {
			assert_ptr_equal(again.lock, h.lock);
			assert_int_equal(pawl_lock_valid_ms(h.lock), 2970);
		} else {
			/* Nobody is left who knows what it may be trusted for. */
			assert_null(again.lock);
			assert_int_equal(again.error, PAWL_ELOST);
		}
		pawl_result_free(result);
		rig_close(&r);
	}
}

/* The handle goes while an acquire is under way that has named the order; the next handle goes on
 * from there. */
static void the_order_goes_on_with_the_next_handle(void **state) {
	(void)state;
	struct rig r;
	struct holder h, again = { 0 };
	struct pawl_lock_options o = hold(&r, &h, false);
	shorten_well(&r, h.lock);
	o.lock_id = pawl_lock_id(h.lock);
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &again, NULL), 0);
	pawl_lock_free(h.lock);
	rig_settle(&r);
	assert_non_null(again.lock);
	shorten_well(&r, again.lock);
	assert_int_equal(r.nodes[0].last.core.binding, 2);
	rig_close(&r);
}

static void a_repeat_at_the_next_node_says_the_same(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].mood = FAKE_HANGS_UP;
	shorten_well(&r, h.lock);
	assert_int_equal(r.nodes[1].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[1].last.core.binding, 1);
	assert_true(r.nodes[1].last.core.shorten);
	rig_close(&r);
}

/* The second of two locks is at the third node, which the client does not know. */
static void a_lock_that_has_moved_is_extended_there_under_its_order(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold_two(&r, &h);
	pawl_result_free(shorten(&r, h.locks[1], 9000));
	r.nodes[0].error = PAWL_EMOVED;
	r.nodes[0].moved_to[0] = r.nodes[2].endpoint;
	rig_pass(&r, 3100 * SPAN_MS);
	assert_int_equal(r.nodes[2].asked[CLIENT_EXTEND], 1);
	assert_int_equal(r.nodes[2].bindings[0], 1);
	assert_true(r.nodes[2].ordered[0]);
	assert_true(pawl_lock_valid_ms(h.locks[1]) > 8000);
	rig_close(&r);
}

static void a_node_that_knows_no_orders_keeps_the_lock(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].error = PAWL_EBADREQUEST;
	struct pawl_result *result = shorten(&r, h.lock, 3000);
	assert_int_equal(result->error, PAWL_EBADREQUEST);
	assert_int_equal(pawl_lock_valid_ms(h.lock), TRUSTED_MS);
	pawl_result_free(result);
	r.nodes[0].error = 0;
	rig_pass(&r, 300 * SPAN_MS);
	assert_int_equal(r.nodes[0].binding_count, 1);
	assert_int_equal(r.nodes[0].bindings[0], 0);
	assert_true(pawl_lock_valid_ms(h.lock) > TRUSTED_MS);
	rig_close(&r);
}

/* What else a node refuses says nothing about the order; nor does a refusal if the first node may
 * have done it. */
static void an_order_that_may_be_known_stays(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].error = r.nodes[1].error = PAWL_EBADREQUEST;
	assert_int_equal(pawl_lock_extend_start(h.lock, 0, on_done, &h, NULL), 0);
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_EBADREQUEST);
	r.nodes[0].mood = FAKE_HANGS_UP;
	struct pawl_result *result = shorten(&r, h.lock, 3000);
	assert_int_equal(result->error, PAWL_EBADREQUEST);
	assert_int_equal(r.nodes[1].last.core.binding, 1);
	pawl_result_free(result);
	r.nodes[1].error = 0;
	rig_pass(&r, 300 * SPAN_MS);
	assert_int_equal(r.nodes[1].bindings[0], 1);
	rig_close(&r);
}

static void a_lock_that_is_lost_is_told_to_be(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].error = PAWL_ELOST;
	struct pawl_result *result = shorten(&r, h.lock, 3000);
	assert_int_equal(result->error, PAWL_ELOST);
	assert_int_equal(h.cause, PAWL_ELOST);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
	pawl_result_free(result);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, NULL, NULL, NULL), PAWL_EINVAL);
	rig_close(&r);
}

static void the_handle_may_be_gone_and_the_call_canceled(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *result = NULL;
	struct pawl_call *call;
	hold(&r, &h, false);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, rig_done, &result, &call), 0);
	pawl_cancel(call);
	/* The trust is given up nevertheless, and the lock is extended for the new lease. */
	assert_int_equal(pawl_lock_valid_ms(h.lock), TRUSTED_MS);
	rig_pass(&r, SPAN_MS);
	assert_int_equal(r.nodes[0].last_lease, 3 * SPAN_S);
	assert_int_equal(r.nodes[0].bindings[0], 1);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, rig_done, &result, NULL), 0);
	pawl_lock_free(h.lock);
	rig_settle(&r);
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	rig_close(&r);
}

/* A lock that ends with its connection would be shortened under the number of a connection. */
static void what_cannot_be_shortened_is_refused(void **state) {
	(void)state;
	struct rig r;
	struct holder h, bound = { 0 };
	hold(&r, &h, false);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 0, NULL, NULL, NULL), PAWL_EINVAL);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 9001, NULL, NULL, NULL), PAWL_EINVAL);
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("x"), NULL, NULL), 0);
	assert_int_equal(pawl_lock_shorten_start(h.lock, 3000, NULL, NULL, NULL), PAWL_EINVAL);
	struct pawl_lock_options o = options_of(&bound, true);
	o.key = pawl_str("b");
	take(&r, &bound, &o);
	assert_int_equal(pawl_lock_shorten_start(bound.lock, 3000, NULL, NULL, NULL), PAWL_EINVAL);
	assert_int_equal(pawl_lock_valid_ms(bound.lock), 8910);
	rig_close(&r);
}

/* A program may count by itself, for a lock of which the library has no handle. */
static void a_program_may_count_by_itself(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *result = NULL;
	hold(&r, &h, false);
	struct pawl_request request = { .method = PAWL_EXTEND, .key = key, .lease_ms = 3000,
		.lock_id = { { 7 } } };
	struct pawl_with with = { .order = 4, .shorten = true };
	assert_int_equal(pawl_start_with(r.client, &request, &with, rig_done, &result, NULL), 0);
	rig_settle(&r);
	assert_int_equal(result->error, 0);
	assert_int_equal(r.nodes[0].last.core.binding, 4);
	assert_true(r.nodes[0].last.core.shorten);
	pawl_result_free(result);
	/* The handle counts. */
	request.lock_id = pawl_lock_id(h.lock);
	assert_int_equal(pawl_start_with(r.client, &request, &with, NULL, NULL, NULL),
		PAWL_EINVAL);
	/* What a method does not take is no silent success. */
	request.lock_id.bytes[0] ^= 1;
	const struct pawl_with bad[] = { { .shorten = true }, { .close_ms = 1 } };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pawl_start_with(r.client, &request, &bad[i], NULL, NULL, NULL),
			PAWL_EINVAL);
	}
	request.method = PAWL_UPDATE;
	with.shorten = false;
	assert_int_equal(pawl_start_with(r.client, &request, &with, NULL, NULL, NULL),
		PAWL_EINVAL);
	rig_close(&r);
}

UNIT(client_shortening) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trust_falls_before_anything_is_sent),
		cmocka_unit_test(trust_falls_whatever_the_outcome_and_the_lock_is_kept),
		cmocka_unit_test(trust_that_ends_earlier_stays),
		cmocka_unit_test(it_is_renewed_for_the_new_lease_from_then_on),
		cmocka_unit_test(whatever_is_asked_later_names_the_order),
		cmocka_unit_test(a_lock_that_was_not_shortened_names_none),
		cmocka_unit_test(several_keys_go_on_from_one_number),
		cmocka_unit_test(late_answers_to_extensions_do_not_count),
		cmocka_unit_test(a_late_answer_to_a_shortening_does_not_count_after_the_next_one),
		cmocka_unit_test(late_answers_to_acquires_do_not_count),
		cmocka_unit_test(the_order_goes_on_with_the_next_handle),
		cmocka_unit_test(a_repeat_at_the_next_node_says_the_same),
		cmocka_unit_test(a_lock_that_has_moved_is_extended_there_under_its_order),
		cmocka_unit_test(a_node_that_knows_no_orders_keeps_the_lock),
		cmocka_unit_test(an_order_that_may_be_known_stays),
		cmocka_unit_test(a_lock_that_is_lost_is_told_to_be),
		cmocka_unit_test(the_handle_may_be_gone_and_the_call_canceled),
		cmocka_unit_test(what_cannot_be_shortened_is_refused),
		cmocka_unit_test(a_program_may_count_by_itself),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
