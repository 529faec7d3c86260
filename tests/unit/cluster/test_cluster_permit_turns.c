/* Those who wait for permits at several nodes have their turns together, and none of them passes
 * another (docs/protocol.md, section 5, Together). */
#include "modes.h"

static uint64_t wait_as(struct stage *s, uint32_t node, const char *key, uint8_t lock,
	uint16_t count, uint16_t of, int32_t priority) {
	struct core_request r = permits_request(key, stage_lock(lock), count, of, WAIT);
	r.terms.priority = priority;
	uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	return id;
}

/* n2 has permits of `key` with lock_id 1. Somebody with a higher priority waits for one permit, so
 * that nobody else has a turn. Then n2 waits for `count` permits, and after it n1, the home, for
 * one. The permits are released. Nobody hears of the turn of n2. */
static void two_after_another(struct stage *s, const char *key, uint16_t of, uint16_t count,
	uint64_t *first, uint64_t *second) {
	const uint64_t turns = stage_count(s, COUNT_turn_given);
	uint64_t urgent = wait_as(s, 1, key, 2, 1, of, 5);
	*first = wait_permits(s, 1, key, stage_lock(3), count, of);
	*second = wait_permits(s, 0, key, stage_lock(4), 1, of);
	assert_int_equal(stage_count(s, COUNT_turn_given), turns + 1);
	stage_stop(s, 0, 1, MESSAGE_TURN, true);
	assert_int_equal(release(s, 1, key, stage_lock(1)), PAWL_OK);
	token_of(s, urgent);
}

/* The first one is parked at the home. */
static void one_who_waits_for_many_is_not_passed(void **state) {
	struct stage *s = *state;
	uint64_t first, second;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 2, 2), PAWL_OK);
	two_after_another(s, key, 2, 2, &first, &second);
	assert_false(answered(s, first) || answered(s, second));
	stage_stop(s, 0, 1, MESSAGE_TURN, false);
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(release(s, 1, key, stage_lock(3)), PAWL_OK);
	token_of(s, second);
}

/* The masters might hear of the second turn first. */
static void while_one_waits_for_many_nobody_has_a_turn_for_few(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 1, 2), PAWL_OK);
	uint64_t first = wait_permits(s, 1, key, stage_lock(2), 2, 2),
		second = wait_permits(s, 0, key, stage_lock(3), 1, 2);
	assert_int_equal(stage_count(s, COUNT_turn_given), 1);
	assert_int_equal(release(s, 1, key, stage_lock(1)), PAWL_OK);
	token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
}

/* The home has promised the last permit to the first one. */
static void one_who_has_the_last_promise_is_not_passed(void **state) {
	struct stage *s = *state;
	uint64_t first, second;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 2, 2), PAWL_OK);
	two_after_another(s, key, 2, 1, &first, &second);
	assert_false(answered(s, first) || answered(s, second));
	stage_stop(s, 0, 1, MESSAGE_TURN, false);
	stage_settle(s);
	token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
}

/* One with a lower priority is parked, and waits for both permits. */
static void one_who_has_the_last_promise_is_not_passed_before_one_who_is_parked(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 2, 2), PAWL_OK);
	uint64_t low = wait_as(s, 2, key, 5, 2, 2, -1), first, second;
	two_after_another(s, key, 2, 1, &first, &second);
	assert_false(answered(s, low) || answered(s, first) || answered(s, second));
	stage_stop(s, 0, 1, MESSAGE_TURN, false);
	stage_settle(s);
	token_of(s, first);
	assert_false(answered(s, low) || answered(s, second));
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
}

/* Neither could be promised anything. A permit comes free at n2 and n3, and then at the home. */
static void one_who_is_parked_in_the_same_step_is_not_passed(void **state) {
	struct stage *s = *state;
	uint64_t first, second;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 1, 2), PAWL_OK);
	assert_int_equal(take_permits(s, 2, key, stage_lock(9), 1, 2), PAWL_OK);
	two_after_another(s, key, 2, 1, &first, &second);
	stage_stop(s, 2, 0, MESSAGE_RELEASE, true);
	(void)stage_ask(s, 2, stage_request(CORE_RELEASE, key, stage_lock(9)));
	stage_settle(s);
	assert_false(answered(s, first) || answered(s, second));
	stage_stop(s, 0, 1, MESSAGE_TURN, false);
	stage_stop(s, 2, 0, MESSAGE_RELEASE, false);
	stage_settle(s);
	token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
}

/* n2 stands still, and has the promise of the last permit. Another one comes free because a lease
 * ends. */
static void what_comes_free_goes_to_the_next_one(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 2, key, stage_lock(1), 2, 3), PAWL_OK);
	struct core_request r = permits_request(key, stage_lock(9), 1, 3, 0);
	r.lease = 100 * SPAN_MS;
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	stage_wait(s, 50 * SPAN_MS);
	uint64_t urgent = wait_as(s, 2, key, 2, 1, 3, 5);
	(void)wait_permits(s, 1, key, stage_lock(3), 1, 3);
	uint64_t second = wait_permits(s, 0, key, stage_lock(4), 1, 3);
	stage_pause(s, 1);
	assert_int_equal(release(s, 2, key, stage_lock(1)), PAWL_OK);
	token_of(s, urgent);
	assert_int_equal(stage_count(s, COUNT_turn_given), 2);
	assert_false(answered(s, second));
	stage_wait(s, 70 * SPAN_MS);
	token_of(s, second);
}

static int setup_replicas(void **state) {
	return named_setup_replicas(state, 1);
}

/* A replica waits for a permit with a high and with a low priority, and has turns for both. When it
 * gets the first, the second one's promise is still in the way of n2, which comes before it. */
static void one_who_is_refused_is_not_passed(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 4, 4), PAWL_OK);
	uint64_t low = wait_as(s, 3, key, 5, 1, 4, -1), high = wait_as(s, 3, key, 2, 1, 4, 5);
	uint64_t first = wait_permits(s, 1, key, stage_lock(3), 2, 4),
		second = wait_permits(s, 0, key, stage_lock(4), 2, 4);
	assert_int_equal(stage_count(s, COUNT_turn_given), 2);
	stage_stop(s, 0, 1, MESSAGE_TURN, true);
	assert_int_equal(release(s, 1, key, stage_lock(1)), PAWL_OK);
	token_of(s, low);
	token_of(s, high);
	assert_false(answered(s, first) || answered(s, second));
	stage_stop(s, 0, 1, MESSAGE_TURN, false);
	stage_settle(s);
	token_of(s, first);
}

static void as_many_have_turns_as_there_are_permits_for(void **state) {
	struct stage *s = *state;
	uint64_t first, second;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 1, key, stage_lock(1), 4, 4), PAWL_OK);
	two_after_another(s, key, 4, 2, &first, &second);
	assert_int_equal(stage_count(s, COUNT_turn_given), 3);
	token_of(s, second);
}

/* Those who are parked need no message to begin. The one who comes last is parked behind another,
 * while the permit that is free is promised to the first one. */
static void turns_are_given_while_others_are_parked(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	uint64_t ids[3];
	for (uint8_t i = 0; i < 2; i++) {
		assert_int_equal(take_permits(s, 2, key, stage_lock((uint8_t)(1 + i)), 1, 2),
			PAWL_OK);
	}
	ids[0] = wait_permits(s, 1, key, stage_lock(3), 1, 2);
	ids[1] = wait_permits(s, 1, key, stage_lock(4), 1, 2);
	stage_stop(s, 1, 0, MESSAGE_COMMIT, true);
	assert_int_equal(release(s, 2, key, stage_lock(1)), PAWL_OK);
	ids[2] = wait_permits(s, 2, key, stage_lock(5), 1, 2);
	assert_int_equal(stage_count(s, COUNT_turn_given), 3);
	stage_stop(s, 1, 0, MESSAGE_COMMIT, false);
	assert_int_equal(release(s, 2, key, stage_lock(2)), PAWL_OK);
	assert_int_equal(release(s, 1, key, stage_lock(3)), PAWL_OK);
	for (uint8_t i = 0; i < 3; i++) {
		token_of(s, ids[i]);
	}
}

UNIT(cluster_permit_turns) {
	const struct CMUnitTest tests[] = {
		NAMED(one_who_waits_for_many_is_not_passed),
		NAMED(while_one_waits_for_many_nobody_has_a_turn_for_few),
		NAMED(one_who_has_the_last_promise_is_not_passed),
		NAMED(one_who_has_the_last_promise_is_not_passed_before_one_who_is_parked),
		NAMED(one_who_is_parked_in_the_same_step_is_not_passed),
		NAMED(what_comes_free_goes_to_the_next_one),
		cmocka_unit_test_setup_teardown(one_who_is_refused_is_not_passed, setup_replicas,
			named_teardown),
		NAMED(as_many_have_turns_as_there_are_permits_for),
		NAMED(turns_are_given_while_others_are_parked),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
