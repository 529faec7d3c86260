/* These tests are about semaphores: numbered permits, weights, and the choice of numbers that are
 * free at a quorum (docs/protocol.md, section 10). */
#include "modes.h"

static void permits_are_given_out_as_different_numbers_until_none_is_left(void **state) {
	struct stage *s = *state;
	struct permits all = { { 0, 0 } };
	for (uint8_t i = 0; i < 4; i++) {
		assert_int_equal(take_permits(s, i % 3, "k", stage_lock((uint8_t)(i + 1)), 1, 4),
			PAWL_OK);
		struct permits set = stage_last(s)->r.terms.set;
		assert_int_equal(permits_count(set), 1);
		assert_false(permits_meet(all, set));
		all = permits_or(all, set);
	}
	assert_int_equal(all.w[0], 15);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(9), 1, 4), PAWL_EHELD);
	release(s, 0, "k", stage_lock(3));
	assert_int_equal(take_permits(s, 1, "k", stage_lock(10), 1, 4), PAWL_OK);
	/* This is the number that came back. */
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 4);
}

static void a_holder_of_weight_has_so_many_numbers(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 3, 5), PAWL_OK);
	assert_int_equal(permits_count(stage_last(s)->r.terms.set), 3);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 3, 5), PAWL_EHELD);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(3), 2, 5), PAWL_OK);
	assert_int_equal(permits_count(stage_last(s)->r.terms.set), 2);
}

static void the_largest_semaphore_has_128_permits(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 127, 128), PAWL_OK);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 1, 128), PAWL_OK);
	assert_true(permits_has(stage_last(s)->r.terms.set, 127));
	assert_int_equal(take_permits(s, 2, "k", stage_lock(3), 1, 128), PAWL_EHELD);
}

static void permits_of_another_size_exclude_each_other(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 1, 4), PAWL_OK);
	assert_int_equal(take_permits(s, 0, "k", stage_lock(2), 1, 5), PAWL_EHELD);
	assert_int_equal(stage_last(s)->r.other_of, 4);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(5), 1, 3), PAWL_EHELD);
	assert_int_equal(stage_last(s)->r.other_of, 4);
	assert_int_equal(take_permits(s, 0, "k", stage_lock(6), 4, 4), PAWL_EHELD);
	assert_int_equal(stage_last(s)->r.other_of, 0);
	assert_int_equal(share(s, 0, "k", stage_lock(3)), PAWL_EHELD);
	assert_int_equal(stage_last(s)->r.other_of, 0);
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(4), LEASE, 0)), PAWL_EHELD);
}

static void what_is_asked_for_must_make_sense(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 0, 4), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "permits");
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 5, 4), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "permits");
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 1, 129), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "of");
	/* The request is for an exclusive lock, and for a number of permits. */
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 1, 0), PAWL_EBADREQUEST);
}

static void a_waiter_for_many_permits_is_not_passed_by_one_for_few(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 2, 3), PAWL_OK);
	uint64_t many = wait_permits(s, 1, "k", stage_lock(2), 3, 3),
		few = wait_permits(s, 2, "k", stage_lock(3), 1, 3);
	assert_false(answered(s, many));
	assert_false(answered(s, few));
	/* Each master parks the request, because no promise would do. */
	assert_true(stage_count(s, COUNT_promise_parked) > 0);
	assert_int_equal(stage_count(s, COUNT_promise_permits), 3);
	release(s, 0, "k", stage_lock(1));
	assert_int_equal(numbers_of(s, many).w[0], 7);
	assert_false(answered(s, few));
	release(s, 1, "k", stage_lock(2));
	assert_int_equal(permits_count(numbers_of(s, few)), 1);
}

static void those_that_fit_get_their_permits_one_after_the_other(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 3, 3), PAWL_OK);
	uint64_t a = wait_permits(s, 1, "k", stage_lock(2), 1, 3),
		b = wait_permits(s, 2, "k", stage_lock(3), 2, 3);
	release(s, 0, "k", stage_lock(1));
	assert_false(permits_meet(numbers_of(s, a), numbers_of(s, b)));
}

static void a_repeat_has_the_same_numbers(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 1, 4), PAWL_OK);
	assert_int_equal(take_permits(s, 0, "k", stage_lock(2), 2, 4), PAWL_OK);
	struct permits had = stage_last(s)->r.terms.set;
	release(s, 0, "k", stage_lock(1));
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 2, 4), PAWL_OK);
	assert_memory_equal(&stage_last(s)->r.terms.set, &had, sizeof had);
}

/* R1 is judged for the numbers that a commit names, whatever was promised to its coordinator. */
static void a_commit_for_a_number_that_another_has_is_refused(void **state) {
	struct stage *s = *state;
	/* It gets the numbers 0 and 1. */
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 2, 4), PAWL_OK);
	uint64_t token = stage_last(s)->r.token, noted;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 7, .key = slice_str("k"),
		.lock_id = stage_lock(2), .token = token + 1, .lease_us = 1000000,
		.terms = { .of = 4, .count = 1, .set = { { 2, 0 } } } };
	stage_inject(s, 0, 2, &m);
	assert_false(core_peek(s->nodes[2].core, slice_str("k"), stage_lock(2), &token, &noted));
	m.terms.set.w[0] = 4;
	stage_inject(s, 0, 2, &m);
	assert_true(core_peek(s->nodes[2].core, slice_str("k"), stage_lock(2), &token, &noted));
}

/* Only two masters have `lock`: the coordinator and the one that is not `missing`. */
static struct permits take_without(struct stage *s, uint32_t coordinator, uint32_t missing,
	uint8_t lock, uint16_t of) {
	stage_stop(s, coordinator, missing, MESSAGE_COMMIT, true);
	assert_int_equal(take_permits(s, coordinator, "k", stage_lock(lock), 1, of), PAWL_OK);
	struct permits set = stage_last(s)->r.terms.set;
	stage_cut(s, coordinator, missing, true);
	stage_stop(s, coordinator, missing, MESSAGE_COMMIT, false);
	/* Nobody else sends the record. */
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, missing, MESSAGE_LEARN, true);
	}
	stage_cut(s, coordinator, missing, false);
	stage_wait(s, 10 * SPAN_MS);
	return set;
}

/* If masters only counted, each one would have room for one more, and there would be three holders
 * of two permits. */
static void each_pair_of_holders_has_different_numbers_though_no_master_knows_all(void **state) {
	struct stage *s = *state;
	struct permits x = take_without(s, 0, 2, 1, 2), y = take_without(s, 1, 0, 2, 2);
	assert_false(permits_meet(x, y));
	assert_int_equal(take_permits(s, 2, "k", stage_lock(3), 1, 2), PAWL_EHELD);
	assert_int_equal(stage_status(s, 0).held, 1);
	/* There is room at two masters, and for different numbers. */
	assert_int_equal(stage_status(s, 2).held, 1);
}

static void a_waiter_for_numbers_in_common_gets_them_as_soon_as_they_are_free(void **state) {
	struct stage *s = *state;
	/* n1 and n2 have number 0. */
	take_without(s, 0, 2, 1, 3);
	/* n2 and n3 have number 1. */
	take_without(s, 1, 0, 2, 3);
	/* n3 and n1 have number 2. So each master has one number left, and no two have the same. */
	take_without(s, 2, 1, 3, 3);
	uint64_t id = wait_permits(s, 0, "k", stage_lock(4), 1, 3);
	if (!answered(s, id)) {
		assert_true(stage_count(s, COUNT_permits_none_common) > 0);
		release(s, 1, "k", stage_lock(2));
		/* The waiter is told at once, and not when the promises are renewed. */
		stage_wait(s, 5 * SPAN_MS);
	}
	assert_int_equal(permits_count(numbers_of(s, id)), 1);
}

/* n1 coordinates the commit. n2 accepts it, too, and its answer is lost; n3 does not get it. */
static void the_permits_of_a_commit_that_failed_are_rolled_back(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), 10 * SPAN_S, 0);
	r.terms.of = 2;
	r.terms.count = 1;
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_COMMIT_ANSWER, true);
	const uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	assert_int_equal(stage_status(s, 0).held, 1);
	assert_int_equal(stage_status(s, 1).held, 1);
	stage_wait(s, s->options.request_timeout + SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(stage_status(s, 0).held, 0);
	assert_int_equal(stage_status(s, 1).held, 0);
	assert_int_equal(take_permits(s, 2, "k", stage_lock(2), 2, 2), PAWL_OK);
}

/* n2 has accepted the commit, and its answer is on its way, when n1 is told to stop. Nobody holds
 * what the commit took. */
static void permits_of_a_commit_under_way_are_rolled_back_by_a_planned_stop(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), 10 * SPAN_S, 0);
	r.terms.of = 2;
	r.terms.count = 1;
	stage_stop(s, 1, 0, MESSAGE_COMMIT_ANSWER, true);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	assert_false(answered(s, id));
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[1].core, slice_str("k"), stage_lock(1), &token, &noted));
	stage_step(s, 0, &(struct core_event){ .kind = CORE_DRAIN });
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ERECOVERING);
	assert_false(core_peek(s->nodes[1].core, slice_str("k"), stage_lock(1), &token, &noted));
}

UNIT(cluster_permits) {
	const struct CMUnitTest tests[] = {
		NAMED(permits_are_given_out_as_different_numbers_until_none_is_left),
		NAMED(a_holder_of_weight_has_so_many_numbers),
		NAMED(the_largest_semaphore_has_128_permits),
		NAMED(permits_of_another_size_exclude_each_other),
		NAMED(what_is_asked_for_must_make_sense),
		NAMED(a_waiter_for_many_permits_is_not_passed_by_one_for_few),
		NAMED(those_that_fit_get_their_permits_one_after_the_other),
		NAMED(a_repeat_has_the_same_numbers),
		NAMED(a_commit_for_a_number_that_another_has_is_refused),
		NAMED(each_pair_of_holders_has_different_numbers_though_no_master_knows_all),
		NAMED(a_waiter_for_numbers_in_common_gets_them_as_soon_as_they_are_free),
		NAMED(the_permits_of_a_commit_that_failed_are_rolled_back),
		NAMED(permits_of_a_commit_under_way_are_rolled_back_by_a_planned_stop),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
