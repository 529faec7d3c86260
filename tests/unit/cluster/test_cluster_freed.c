/* What ends around a change of the masters is free after it, long before the longest lease is over
 * (docs/protocol.md, sections 2, 6 and 11). */
#include "copies.h"

#define DELAY (SPAN_S / 2)

/* ---- the key is free ---- */

/* X has ended before its sources are linked again, and the new masters do not know it. */
static void what_only_a_try_that_broke_off_has_brought_is_dropped(void **state) {
	struct stage *s = *state;
	take_bound(s, "k", 1, 1, 0);
	uint64_t id = window(s, "567", 3);
	for (uint32_t from = 0; from < 3; from++) {
		for (uint32_t to = 4; to < 7; to++) {
			stage_break(s, from, to);
		}
	}
	close_connection(s, "k", 1, 1);
	stage_mend(s);
	stage_wait(s, 100 * SPAN_MS);
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, false);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_true(stage_count(s, COUNT_copy_ahead_broken) > 0);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_used), 3);
	take(s, 4, "k", stage_lock(2));
	assert_int_equal(stage_count(s, COUNT_merge_dropped), 3);
}

static void what_was_rolled_back_before_the_decree_is_free_after_it(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(9));
	uint64_t id = window(s, "567", 3);
	uint64_t request = ask_both(s, 0, 1, 2, 20 * SPAN_MS);
	stage_wait(s, 30 * SPAN_MS);
	assert_int_equal(stage_answer(s, request)->r.error, PAWL_ETIMEOUT);
	decide(s, id, 3);
	nobody_has(s, "a", stage_lock(1));
	take(s, 4, "a", stage_lock(3));
}

static void what_ended_with_a_connection_before_the_decree_is_free_after_it(void **state) {
	struct stage *s = *state;
	uint64_t id = window(s, "567", 3);
	take_bound(s, "k", 1, 1, 0);
	close_connection(s, "k", 1, 1);
	decide(s, id, 3);
	take(s, 4, "k", stage_lock(2));
}

/* The grace time ends while the masters, who stay masters, vote in no epoch. */
static void what_was_bound_ends_when_its_masters_vote_again(void **state) {
	struct stage *s = *state;
	take_with_node(s);
	uint64_t id = window(s, "125", 3);
	for (uint32_t i = 0; i < 5; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, true);
	}
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, false);
	assert_true(wait_until_epoch(s, 0, 2, SPAN_S) && wait_until_epoch(s, 1, 2, SPAN_S));
	stage_kill(s, HOLDER);
	stage_wait(s, GRACE + 20 * SPAN_MS);
	for (uint32_t i = 0; i < 5; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, false);
	}
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	stage_wait(s, 100 * SPAN_MS);
	assert_false(knows(s, 0, "k", stage_lock(1)) || knows(s, 1, "k", stage_lock(1)));
	stage_wait(s, SPAN_S - SPAN_S / 4);
	/* The node has told n5 nothing, and has the lock alone. */
	assert_false(knows(s, 4, "k", stage_lock(1)));
	take(s, 0, "k", stage_lock(2));
}

/* X's commit for a permit reaches n1 alone and is rolled back. Y is given the number, and X another
 * one. The copies know the same. */
static void permits_that_were_rolled_back_before_the_decree_are_no_clash_after_it(void **state) {
	struct stage *s = *state;
	uint64_t id = window(s, "567", 3);
	stage_lose(s, 0, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 1, MESSAGE_LEARN, true);
	stage_lose(s, 0, 2, MESSAGE_LEARN, true);
	uint64_t failed = stage_ask(s, 0, permits_request("s", stage_lock(1), 1, 10, 0));
	/* This is longer than request_timeout. */
	stage_wait(s, 150 * SPAN_MS);
	stage_lose(s, 0, 1, MESSAGE_COMMIT, false);
	stage_lose(s, 0, 2, MESSAGE_COMMIT, false);
	assert_true(answered(s, failed));
	assert_int_equal(take_permits(s, 1, "s", stage_lock(2), 1, 10), PAWL_OK);
	assert_int_equal(take_permits(s, 0, "s", stage_lock(1), 1, 10), PAWL_OK);
	decide(s, id, 3);
	assert_int_equal(extend(s, 4, "s", stage_lock(1), LEASE, true), PAWL_OK);
	assert_int_equal(extend(s, 5, "s", stage_lock(2), LEASE, true), PAWL_OK);
	assert_int_equal(take_permits(s, 6, "s", stage_lock(3), 1, 10), PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_contested), 0);
}

static void what_ended_with_a_connection_keeps_its_delay_and_no_more(void **state) {
	struct stage *s = *state;
	uint64_t id = window(s, "567", 3);
	take_bound(s, "k", 1, 1, DELAY);
	close_connection(s, "k", 1, 1);
	decide(s, id, 3);
	assert_int_equal(stage_do(s, 4, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	stage_wait(s, DELAY);
	take(s, 4, "k", stage_lock(3));
}

/* n1 goes on as a master, and is the node that asks. */
static void a_group_that_began_before_the_change_rolls_back_after_it(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(9));
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_true(knows(s, 1, "a", stage_lock(1)));
	uint64_t id = window(s, "156", 3);
	decide(s, id, 3);
	assert_true(knows(s, 4, "a", stage_lock(1)) && knows(s, 5, "a", stage_lock(1)));
	stage_client_gone(s, 0, 1);
	stage_wait(s, 20 * SPAN_MS);
	assert_false(knows(s, 0, "a", stage_lock(1)) || knows(s, 4, "a", stage_lock(1)) ||
		knows(s, 5, "a", stage_lock(1)));
	take(s, 4, "a", stage_lock(3));
}

/* The same request was granted through another node meanwhile, and the copies know that it rests on
 * both. */
static void what_a_repeat_was_granted_is_not_rolled_back_after_the_change(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(9));
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	uint64_t id = window(s, "156", 3);
	/* The request is repeated for one key alone. */
	take(s, 2, "a", stage_lock(1));
	decide(s, id, 3);
	stage_client_gone(s, 0, 1);
	stage_wait(s, 20 * SPAN_MS);
	assert_true(holds(s, 4, "a", stage_lock(1)));
}

UNIT(cluster_freed) {
	const struct CMUnitTest tests[] = {
		COPIES(what_only_a_try_that_broke_off_has_brought_is_dropped),
		COPIES(what_was_rolled_back_before_the_decree_is_free_after_it),
		COPIES(what_ended_with_a_connection_before_the_decree_is_free_after_it),
		COPIES(what_was_bound_ends_when_its_masters_vote_again),
		COPIES(permits_that_were_rolled_back_before_the_decree_are_no_clash_after_it),
		COPIES(what_ended_with_a_connection_keeps_its_delay_and_no_more),
		COPIES(a_group_that_began_before_the_change_rolls_back_after_it),
		COPIES(what_a_repeat_was_granted_is_not_rolled_back_after_the_change),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
