/* These tests let many wait for a change of one key at a node (docs/protocol.md, section 3, Waits).
 * No step answers more of them than it may, and none of them is forgotten. */
#include "modes.h"

#define MANY 1500u
#define FEW 40u
#define SHARED 60u
#define LARGE 60000u
/* core_limits.waits_a_turn as a node has it. */
#define A_TURN 512u
#define AN_ANSWER 256u

static const struct id128 no_lock;

static int setup_of(void **state, uint32_t waits_a_turn) {
	struct stage_options o = named_options();
	o.replies = 4096;
	o.limits.waits_a_turn = waits_a_turn;
	*state = stage_born(&o);
	return 0;
}

static int setup(void **state) {
	return setup_of(state, 0);
}

static int setup_one_a_turn(void **state) {
	return setup_of(state, 1);
}

#define MANY_A_TURN(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)
#define ONE_A_TURN(test) cmocka_unit_test_setup_teardown(test, setup_one_a_turn, named_teardown)

/* Returns the number of the wait at node 0, which is at once over or begins. */
static uint64_t wait_one(struct stage *s, const char *key, bool for_free) {
	struct core_request r = stage_request(CORE_WAIT, key, no_lock);
	r.for_free = for_free;
	r.wait = WAIT;
	return stage_ask(s, 0, r);
}

/* Returns the number of the first of the waits; those of the others follow. */
static uint64_t wait_all(struct stage *s, uint32_t count, bool for_free) {
	const uint64_t first = wait_one(s, "k", for_free);
	for (uint32_t i = 1; i < count; i++) {
		assert_int_equal(wait_one(s, "k", for_free), first + i);
	}
	return first;
}

static uint32_t count_answered(const struct stage *s, uint64_t first, uint32_t count) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < count; i++) {
		n += answered(s, first + i);
	}
	return n;
}

/* Each of them was told this. */
static void assert_told(const struct stage *s, uint64_t first, uint32_t count, bool held) {
	for (uint32_t i = 0; i < count; i++) {
		const struct stage_reply *r = stage_answer(s, first + i);
		assert_non_null(r);
		assert_int_equal(r->r.error, PAWL_OK);
		assert_int_equal(r->r.held, held);
	}
}

/* Does what is to be done without the passing of time, and returns the most answers of one step. */
static uint32_t most_at_once(struct stage *s, uint32_t turns) {
	uint64_t most = 0;
	for (uint32_t i = 0; i < turns; i++) {
		for (uint32_t from = 0; from < 3; from++) {
			for (uint32_t to = 0; to < 3; to++) {
				const uint64_t before = s->reply_count;
				(void)stage_deliver(s, from, to);
				most = s->reply_count - before > most ? s->reply_count - before
					: most;
			}
		}
		const uint64_t before = s->reply_count;
		stage_tick(s);
		most = s->reply_count - before > most ? s->reply_count - before : most;
	}
	return (uint32_t)most;
}

static void many_who_wait_for_a_free_key_are_answered_in_pieces(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	const uint64_t first = wait_all(s, MANY, true);
	stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	/* The answer to the release comes in one of these steps, too. */
	assert_in_range(most_at_once(s, 20), 1, A_TURN + 1);
	assert_told(s, first, MANY, false);
	assert_int_equal(stage_status(s, 0).rounds, 0);
}

static struct core_request with_value(size_t size) {
	static uint8_t value[LARGE];
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.value = slice_of(value, size);
	return r;
}

/* A copy of the value for each of them would be 90 MB. */
static void large_values_are_shown_to_few_in_one_turn(void **state) {
	struct stage *s = *state;
	const uint64_t first = wait_all(s, MANY, false);
	stage_ask(s, 0, with_value(LARGE));
	assert_in_range(most_at_once(s, 10), 2, A_TURN / (LARGE / AN_ANSWER) + 2);
	assert_true(most_at_once(s, MANY / 3) <= A_TURN / (LARGE / AN_ANSWER) + 2);
	assert_told(s, first, MANY, true);
	assert_int_equal(stage_answer(s, first + MANY - 1)->r.entry.value.size, LARGE);
}

/* One of them comes back and has the key again. Each answer has to look for its record. */
static void a_key_of_many_records_is_shown_to_few_in_one_turn(void **state) {
	struct stage *s = *state;
	struct core_request r = shared_request("k", stage_lock(0), 0);
	r.terms.delay = 7 * SPAN_S;
	for (uint8_t i = 1; i <= SHARED; i++) {
		r.lock_id = stage_lock(i);
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	stage_wait(s, LEASE + SPAN_S);
	const uint64_t first = wait_all(s, MANY, false);
	assert_int_equal(count_answered(s, first, MANY), 0);
	stage_ask(s, 0, r);
	assert_in_range(most_at_once(s, 10), 2, A_TURN / (SHARED / 4) + 2);
	assert_true(most_at_once(s, MANY / 8) <= A_TURN / (SHARED / 4) + 2);
	assert_told(s, first, MANY, true);
}

static void a_key_was_free_for_those_who_hear_of_it_when_it_is_taken_again(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	const uint64_t first = wait_all(s, FEW, true);
	stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_settle(s);
	take(s, 0, "k", stage_lock(2));
	assert_in_range(count_answered(s, first, FEW), 1, FEW - 1);
	const uint64_t late = wait_one(s, "k", true);
	assert_int_equal(most_at_once(s, FEW), 1);
	assert_told(s, first, FEW, false);
	/* This one came when the key was held again. */
	assert_false(answered(s, late));
	release(s, 0, "k", stage_lock(2));
	(void)most_at_once(s, 1);
	assert_told(s, late, 1, false);
}

static void a_wait_not_answered_while_the_key_is_held_waits_for_the_next_holder(void **state) {
	struct stage *s = *state;
	const uint64_t first = wait_all(s, FEW, false);
	take(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	const uint32_t told = count_answered(s, first, FEW);
	assert_in_range(told, 1, FEW - 1);
	assert_int_equal(most_at_once(s, FEW), 0);
	assert_told(s, first, told, true);
	assert_int_equal(count_answered(s, first, FEW), told);
	take(s, 0, "k", stage_lock(2));
	(void)most_at_once(s, FEW);
	assert_told(s, first, FEW, true);
}

/* The change that they waited for came in time. */
static void waits_whose_time_is_over_before_their_turn_hear_that_the_key_was_free(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0)), PAWL_OK);
	const uint64_t first = wait_all(s, FEW, true);
	stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_settle(s);
	assert_in_range(count_answered(s, first, FEW), 1, FEW - 1);
	stage_jump(s, WAIT + SPAN_S);
	stage_tick(s);
	assert_told(s, first, FEW, false);
}

static void one_who_waits_for_another_key_is_not_behind_all_of_the_first(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	take(s, 0, "other", stage_lock(2));
	const uint64_t first = wait_all(s, FEW, true), other = wait_one(s, "other", true);
	stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_ask(s, 0, stage_request(CORE_RELEASE, "other", stage_lock(2)));
	stage_settle(s);
	(void)most_at_once(s, 3);
	assert_told(s, other, 1, false);
	assert_true(count_answered(s, first, FEW) < FEW);
}

static void a_client_that_goes_while_its_waits_are_due_takes_them_along(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	const uint64_t first = wait_all(s, FEW, true);
	stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_settle(s);
	const uint32_t told = count_answered(s, first, FEW);
	assert_true(told < FEW);
	stage_client_gone(s, 0, 1);
	(void)most_at_once(s, FEW);
	assert_int_equal(count_answered(s, first, FEW), told);
	assert_int_equal(stage_status(s, 0).rounds, 0);
}

/* Only its lock delay runs. Then its own client comes back and has it again. */
static void a_key_that_its_last_holder_has_again_is_held(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.delay = 5 * SPAN_S;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_wait(s, LEASE + SPAN_S);
	const uint64_t held = wait_one(s, "k", false);
	assert_false(answered(s, held));
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	(void)most_at_once(s, 1);
	assert_told(s, held, 1, true);
}

UNIT(cluster_waits) {
	const struct CMUnitTest tests[] = {
		MANY_A_TURN(many_who_wait_for_a_free_key_are_answered_in_pieces),
		MANY_A_TURN(large_values_are_shown_to_few_in_one_turn),
		MANY_A_TURN(a_key_of_many_records_is_shown_to_few_in_one_turn),
		ONE_A_TURN(a_key_was_free_for_those_who_hear_of_it_when_it_is_taken_again),
		ONE_A_TURN(a_wait_not_answered_while_the_key_is_held_waits_for_the_next_holder),
		ONE_A_TURN(waits_whose_time_is_over_before_their_turn_hear_that_the_key_was_free),
		ONE_A_TURN(one_who_waits_for_another_key_is_not_behind_all_of_the_first),
		ONE_A_TURN(a_client_that_goes_while_its_waits_are_due_takes_them_along),
		MANY_A_TURN(a_key_that_its_last_holder_has_again_is_held),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
