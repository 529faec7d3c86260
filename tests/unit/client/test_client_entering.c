/* One program makes several requests under one lock_id: it enters a lock again by acquiring it, and
 * other requests cross that. */
#include "holder.h"

static struct pawl_lock_options again_of(const struct holder *h) {
	return (struct pawl_lock_options){ .key = { "k", 1 }, .lease_ms = 9000,
		.lock_id = pawl_lock_id(h->lock) };
}

static void start(struct rig *r, const struct pawl_lock_options *o, struct holder *again) {
	assert_int_equal(pawl_lock_start(r->client, o, on_locked, again, NULL), 0);
	rig_settle(r);
}

/* Takes a lock, and starts an acquire of it. The node has answered that, and the answer is on its
 * way. */
static void hold_and_start(struct rig *r, struct holder *h, struct holder *again) {
	hold(r, h, false);
	r->nodes[0].mood = FAKE_HOLDS_BACK;
	const struct pawl_lock_options o = again_of(h);
	start(r, &o, again);
}

static void let_go(struct rig *r) {
	r->nodes[0].mood = FAKE_ANSWERS;
	fake_let_go(&r->nodes[0]);
	rig_settle(r);
}

/* If it were asked for as a shared lock the masters would make it one (docs/protocol.md, section
 * 10), and readers would come in next to whoever writes. */
static void a_lock_that_is_wanted_as_a_shared_one_as_well_is_asked_for_as_it_is_held(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = hold(&r, &h, false);
	struct pawl_lock *first = h.lock;
	o.lock_id = pawl_lock_id(first);
	o.terms.mode = PAWL_SHARED;
	take(&r, &h, &o);
	assert_ptr_equal(h.lock, first);
	assert_int_equal(r.nodes[0].last.core.terms.of, MODE_EXCLUSIVE);
	assert_int_equal(pawl_lock_mode(first), PAWL_EXCLUSIVE);
	rig_close(&r);
}

static void a_request_that_makes_it_a_shared_one_counts_from_the_asking_on(void **state) {
	(void)state;
	const enum pawl_method methods[] = { PAWL_ACQUIRE, PAWL_DOWNGRADE };
	for (size_t i = 0; i < 2; i++) {
		struct rig r;
		struct holder h = { 0 };
		hold(&r, &h, false);
		r.nodes[0].error = r.nodes[1].error = PAWL_ENOQUORUM;
		struct pawl_request request = { .method = methods[i], .key = { "k", 1 },
			.lock_id = pawl_lock_id(h.lock), .terms.mode = PAWL_SHARED };
		assert_int_equal(pawl_start(r.client, &request, on_done, &h, NULL), 0);
		assert_int_equal(pawl_lock_mode(h.lock), PAWL_SHARED);
		rig_settle(&r);
		assert_int_equal(h.error, PAWL_ENOQUORUM);
		assert_int_equal(pawl_lock_mode(h.lock), PAWL_SHARED);
		rig_close(&r);
	}
}

/* A caller that wants to write is not given a lock that somebody else shares by now. */
static void what_was_asked_for_as_an_exclusive_one_is_not_handed_out_as_a_shared_one(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, again = { 0 };
	hold_and_start(&r, &h, &again);
	assert_int_equal(pawl_lock_downgrade_start(h.lock, on_done, &h, NULL), 0);
	let_go(&r);
	assert_null(again.lock);
	assert_int_equal(again.error, PAWL_ELOST);
	assert_int_equal(pawl_lock_mode(h.lock), PAWL_SHARED);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	rig_close(&r);
}

/* A downgrade is not forgotten when its handle, which knew of it, is gone. */
static void a_downgrade_is_not_forgotten_with_its_handle(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, again = { 0 };
	hold_and_start(&r, &h, &again);
	assert_int_equal(pawl_lock_downgrade_start(h.lock, on_done, &h, NULL), 0);
	pawl_lock_free(h.lock);
	let_go(&r);
	assert_null(again.lock);
	assert_int_equal(again.error, PAWL_ELOST);
	rig_close(&r);
}

/* The acquire is under way when the part that had entered first lets go. The node works on both,
 * and answers the acquire first. */
static void a_lock_that_is_released_while_it_is_entered_again_is_not_held(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, again = { 0 };
	hold_and_start(&r, &h, &again);
	assert_int_equal(pawl_lock_release_start(h.lock, on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	/* The release is on its way: the key is free, or will be. */
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	let_go(&r);
	assert_null(again.lock);
	assert_int_equal(again.error, PAWL_ELOST);
	rig_close(&r);
}

static void a_lock_id_that_is_being_released_gives_no_new_handle(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, again = { 0 };
	struct pawl_lock_options o = hold(&r, &h, false);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	o = again_of(&h);
	assert_int_equal(pawl_lock_release_start(h.lock, on_done, &h), 0);
	start(&r, &o, &again);
	let_go(&r);
	assert_null(again.lock);
	assert_int_equal(again.error, PAWL_ELOST);
	rig_close(&r);
}

static void several_keys_of_which_one_is_released_meanwhile_are_not_held(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, other = { 0 }, again = { 0 };
	struct pawl_lock_options o = hold(&r, &h, false);
	o.key = pawl_str("l");
	take(&r, &other, &o);
	const struct pawl_key_item keys[] = { { .key = { "k", 1 },
		.lock_id = pawl_lock_id(h.lock) },
		{ .key = { "l", 1 }, .lock_id = pawl_lock_id(other.lock) } };
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	again.error = 1;
	assert_int_equal(pawl_locks_start(r.client, &o, keys, 2, on_several, &again, NULL), 0);
	rig_settle(&r);
	assert_int_equal(pawl_lock_release_start(h.lock, NULL, NULL), 0);
	let_go(&r);
	assert_int_equal(again.count, 0);
	assert_int_equal(again.error, PAWL_ELOST);
	/* The lock is entered once, as before. */
	assert_int_equal(pawl_lock_leave(other.lock), PAWL_EINVAL);
	assert_true(pawl_lock_valid_ms(other.lock) > 8000);
	rig_close(&r);
}

/* If the library released the lock, it would take from the holder what the transfer leaves with
 * it. */
static void a_lock_that_is_handed_over_to_nobody_is_not_released_for_a_repeat(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 }, again = { 0 };
	hold_and_start(&r, &h, &again);
	r.nodes[0].error = PAWL_ENOTFOUND;
	assert_int_equal(pawl_lock_transfer_start(h.lock, pawl_str("b"), on_done, &h), 0);
	let_go(&r);
	assert_int_equal(h.error, PAWL_ENOTFOUND);
	assert_null(again.lock);
	assert_int_equal(again.error, PAWL_ELOST);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	rig_close(&r);
}

/* Neither request knows the outcome of the other. One of the two would be trusted to be exclusive,
 * or to outlive its connection. */
static void two_acquires_that_differ_under_one_lock_id_give_no_handle(void **state) {
	(void)state;
	for (int shared = 0; shared < 2; shared++) {
		struct rig r;
		struct holder one = { .error = 1 }, two = { .error = 1 };
		struct pawl_lock_options o = { .key = { "k", 1 }, .lease_ms = 9000,
			.lock_id = { { 7 } } };
		rig_open(&r, NULL);
		r.nodes[0].mood = FAKE_HOLDS_BACK;
		start(&r, &o, &one);
		o.terms.mode = shared ? PAWL_SHARED : PAWL_EXCLUSIVE;
		o.terms.release_on_disconnect = !shared;
		start(&r, &o, &two);
		let_go(&r);
		assert_null(one.lock);
		assert_null(two.lock);
		assert_int_equal(one.error, PAWL_ELOST);
		assert_int_equal(two.error, PAWL_ELOST);
		assert_true(r.nodes[0].asked[CLIENT_RELEASE] > 0);
		rig_close(&r);
	}
}

static void two_acquires_that_ask_for_the_same_are_one_lock_that_was_entered_twice(void **state) {
	(void)state;
	struct rig r;
	struct holder one = { 0 }, two = { 0 };
	const struct pawl_lock_options o = { .key = { "k", 1 }, .lease_ms = 9000,
		.lock_id = { { 7 } } };
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	start(&r, &o, &one);
	start(&r, &o, &two);
	let_go(&r);
	assert_non_null(one.lock);
	assert_ptr_equal(one.lock, two.lock);
	assert_int_equal(pawl_lock_leave(one.lock), 1);
	rig_close(&r);
}

/* The fake node always gives number 1; the first time it was number 0. */
static void numbers_are_not_believed_in_for_longer_than_they_were_granted(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	uint32_t slot = 9;
	o.terms = (struct pawl_terms){ .permits = 1, .of = 10 };
	o.no_renewal = true;
	rig_open(&r, NULL);
	take(&r, &h, &o);
	struct pawl_lock *first = h.lock;
	first->slots = (struct permits){ { 1, 0 } };
	o.lock_id = pawl_lock_id(first);
	o.lease_ms = 3000;
	take(&r, &h, &o);
	assert_ptr_equal(h.lock, first);
	assert_int_equal(pawl_lock_slots(first, &slot, 1), 1);
	/* The part that entered first works with number 0, and its nine seconds are not those of
	 * number 1. */
	assert_int_equal(slot, 0);
	rig_pass(&r, 2 * SPAN_S);
	o.lease_ms = 30000;
	take(&r, &h, &o);
	assert_int_equal(pawl_lock_slots(first, &slot, 1), 1);
	assert_int_equal(slot, 0);
	assert_true(pawl_lock_valid_ms(first) <= 7000);
	rig_close(&r);
}

static void an_extension_for_other_numbers_has_the_deadline_of_these(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = options_of(&h, false);
	uint32_t slot = 9;
	o.terms = (struct pawl_terms){ .permits = 1, .of = 10 };
	rig_open(&r, NULL);
	take(&r, &h, &o);
	r.nodes[0].valid_permille = 500;
	r.nodes[0].numbers_of_item = 1 << 2;
	rig_pass(&r, 3100 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	assert_int_equal(pawl_lock_slots(h.lock, &slot, 1), 1);
	assert_int_equal(slot, 2);
	assert_true(pawl_lock_valid_ms(h.lock) <= 4500);
	rig_close(&r);
}

static void several_keys_are_wanted_as_they_are_held(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_lock_options o = hold(&r, &h, false);
	struct pawl_key_item item = { .key = { "k", 1 }, .lock_id = pawl_lock_id(h.lock),
		.mode = PAWL_SHARED };
	assert_int_equal(pawl_locks_start(r.client, &o, &item, 1, on_several, &h, NULL),
		PAWL_EINVAL);
	item.mode = PAWL_EXCLUSIVE;
	o.terms.release_on_disconnect = true;
	assert_int_equal(pawl_locks_start(r.client, &o, &item, 1, on_several, &h, NULL),
		PAWL_EINVAL);
	o.terms.release_on_disconnect = false;
	assert_int_equal(pawl_locks_start(r.client, &o, &item, 1, on_several, &h, NULL), 0);
	rig_settle(&r);
	assert_int_equal(h.count, 1);
	assert_ptr_equal(h.locks[0], h.lock);
	assert_int_equal(pawl_lock_leave(h.lock), 1);
	rig_close(&r);
}

UNIT(client_entering) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_lock_that_is_wanted_as_a_shared_one_as_well_is_asked_for_as_it_is_held),
		cmocka_unit_test(a_request_that_makes_it_a_shared_one_counts_from_the_asking_on),
		cmocka_unit_test(
			what_was_asked_for_as_an_exclusive_one_is_not_handed_out_as_a_shared_one),
		cmocka_unit_test(a_downgrade_is_not_forgotten_with_its_handle),
		cmocka_unit_test(a_lock_that_is_released_while_it_is_entered_again_is_not_held),
		cmocka_unit_test(a_lock_id_that_is_being_released_gives_no_new_handle),
		cmocka_unit_test(several_keys_of_which_one_is_released_meanwhile_are_not_held),
		cmocka_unit_test(a_lock_that_is_handed_over_to_nobody_is_not_released_for_a_repeat),
		cmocka_unit_test(two_acquires_that_differ_under_one_lock_id_give_no_handle),
		cmocka_unit_test(
			two_acquires_that_ask_for_the_same_are_one_lock_that_was_entered_twice),
		cmocka_unit_test(numbers_are_not_believed_in_for_longer_than_they_were_granted),
		cmocka_unit_test(an_extension_for_other_numbers_has_the_deadline_of_these),
		cmocka_unit_test(several_keys_are_wanted_as_they_are_held),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
