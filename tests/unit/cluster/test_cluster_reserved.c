/* Permits that several nodes ask for at the same time: the key's home reserves permit numbers, and
 * the others do without them (docs/protocol.md, section 5, Together). */
#include "modes.h"

#define CROWD 8

static uint64_t ask(struct stage *s, uint32_t node, const char *key, uint8_t lock, uint16_t of) {
	return stage_ask(s, node, permits_request(key, stage_lock(lock), 1, of, WAIT));
}

/* Nobody hears what n1 promises. */
static void hold_n1(struct stage *s, bool hold) {
	stage_stop(s, 0, 1, MESSAGE_PROMISE_ANSWER, hold);
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, hold);
}

/* No commit met another one. */
static void no_two_met(const struct stage *s) {
	assert_int_equal(stage_count(s, COUNT_commit_refused_held), 0);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 0);
}

/* No time passes, and nobody enters a queue. */
static void permits_of_all_nodes_are_promised_together_and_all_have_their_own_numbers(
	void **state) {
	struct stage *s = *state;
	uint64_t ids[3 * CROWD];
	struct permits met = { { 0, 0 } };
	for (uint32_t i = 0; i < 3 * CROWD; i++) {
		ids[i] = ask(s, i % 3, "k", (uint8_t)(1 + i), 3 * CROWD);
	}
	stage_settle(s);
	for (uint32_t i = 0; i < 3 * CROWD; i++) {
		assert_false(permits_meet(met, numbers_of(s, ids[i])));
		met = permits_or(met, numbers_of(s, ids[i]));
		for (uint32_t j = 0; j < i; j++) {
			assert_true(token_of(s, ids[i]) != token_of(s, ids[j]));
		}
	}
	assert_int_equal(stage_count(s, COUNT_turn_given), 0);
	no_two_met(s);
}

/* What the others have promised may be what the home has reserved for somebody else. */
static void the_home_is_waited_for(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	hold_n1(s, true);
	uint64_t second = ask(s, 1, key, 2, 8), third = ask(s, 2, key, 3, 8);
	stage_settle(s);
	assert_false(answered(s, second) && answered(s, third));
	hold_n1(s, false);
	stage_settle(s);
	assert_false(permits_meet(numbers_of(s, second), numbers_of(s, third)));
	no_two_met(s);
}

static void a_node_that_is_alone_does_not_wait_for_the_home(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	uint64_t ids[CROWD];
	hold_n1(s, true);
	for (uint8_t i = 0; i < CROWD; i++) {
		ids[i] = ask(s, 2, key, (uint8_t)(1 + i), CROWD);
	}
	stage_settle(s);
	for (uint8_t i = 0; i < CROWD; i++) {
		token_of(s, ids[i]);
	}
	hold_n1(s, false);
	stage_settle(s);
	no_two_met(s);
}

static void a_home_that_hangs_is_not_waited_for(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	stage_pause(s, 0);
	uint64_t second = ask(s, 1, key, 2, 8), third = ask(s, 2, key, 3, 8);
	stage_wait(s, s->options.request_timeout * 3 / 4);
	assert_false(permits_meet(numbers_of(s, second), numbers_of(s, third)));
	no_two_met(s);
	stage_continue(s, 0);
	stage_settle(s);
}

/* Two permits, 0 and 1, are held through the replicas R4 and R5. n3 waits first, and then n2. */
static uint64_t waiters(struct stage *s, const char *key, uint64_t *second) {
	assert_int_equal(take_permits(s, 3, key, stage_lock(1), 1, 2), PAWL_OK);
	assert_int_equal(take_permits(s, 4, key, stage_lock(2), 1, 2), PAWL_OK);
	uint64_t first = wait_permits(s, 2, key, stage_lock(3), 1, 2);
	*second = wait_permits(s, 1, key, stage_lock(4), 1, 2);
	assert_false(answered(s, first) || answered(s, *second));
	return first;
}

/* The release of number 0 reaches n1 alone, and that of number 1 all others. */
static void release_both(struct stage *s, const char *key) {
	stage_stop(s, 3, 1, MESSAGE_RELEASE, true);
	stage_stop(s, 3, 2, MESSAGE_RELEASE, true);
	stage_stop(s, 4, 0, MESSAGE_RELEASE, true);
	(void)stage_ask(s, 3, stage_request(CORE_RELEASE, key, stage_lock(1)));
	(void)stage_ask(s, 4, stage_request(CORE_RELEASE, key, stage_lock(2)));
	stage_settle(s);
}

static void let_releases_through(struct stage *s) {
	stage_stop(s, 3, 1, MESSAGE_RELEASE, false);
	stage_stop(s, 3, 2, MESSAGE_RELEASE, false);
	stage_stop(s, 4, 0, MESSAGE_RELEASE, false);
	stage_settle(s);
}

/* Number 0, which the home has reserved for the first one, is not free elsewhere yet. */
static void what_the_home_has_reserved_is_waited_for(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	uint64_t second, first = waiters(s, key, &second);
	release_both(s, key);
	assert_false(answered(s, first) || answered(s, second));
	const uint64_t asked = stage_sent(s, MESSAGE_PROMISE);
	let_releases_through(s);
	assert_int_equal(numbers_of(s, first).w[0], 1);
	assert_int_equal(numbers_of(s, second).w[0], 2);
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), asked);
	assert_true(stage_count(s, COUNT_promise_again) > 0);
	no_two_met(s);
}

/* For the first one nothing is free both at the home and elsewhere. It takes what is free at q
 * masters, or what the home has reserved as soon as that is. */
static void what_the_home_has_reserved_is_not_waited_for_too_long(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	uint64_t second, first = waiters(s, key, &second);
	release_both(s, key);
	assert_false(answered(s, first));
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(numbers_of(s, first).w[0], 2);
	let_releases_through(s);
	assert_int_equal(numbers_of(s, second).w[0], 1);
}

/* The home hears of no release, and all others do. */
static uint64_t released_elsewhere(struct stage *s, const char *key, uint64_t *second) {
	const uint64_t first = waiters(s, key, second);
	stage_stop(s, 4, 0, MESSAGE_RELEASE, true);
	(void)stage_ask(s, 4, stage_request(CORE_RELEASE, key, stage_lock(2)));
	stage_settle(s);
	assert_false(answered(s, first));
	return first;
}

static void a_home_that_has_parked_the_request_is_waited_for(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	uint64_t second, first = released_elsewhere(s, key, &second);
	let_releases_through(s);
	assert_int_equal(numbers_of(s, first).w[0], 2);
	assert_false(answered(s, second));
	no_two_met(s);
}

static void a_home_that_has_parked_the_request_is_not_waited_for_too_long(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	uint64_t second, first = released_elsewhere(s, key, &second);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(numbers_of(s, first).w[0], 2);
	let_releases_through(s);
}

static int setup_replicas(void **state) {
	return named_setup_replicas(state, 2);
}

#define WITH_REPLICAS(test) \
	cmocka_unit_test_setup_teardown(test, setup_replicas, named_teardown)

/* A waiter has its turn, and the home has reserved a number for it. */
static void a_newcomer_passes_turns_that_have_their_numbers(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 0, key, stage_lock(1), 8, 8), PAWL_OK);
	uint64_t first = wait_permits(s, 1, key, stage_lock(2), 1, 8);
	hold_n1(s, true);
	stage_stop(s, 2, 1, MESSAGE_PROMISE_ANSWER, true);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	assert_false(answered(s, first));
	const uint64_t queued = stage_count(s, COUNT_promise_refused_queued);
	assert_int_equal(stage_do(s, 0, permits_request(key, stage_lock(3), 1, 8, 0)), PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_promise_refused_queued), queued);
	hold_n1(s, false);
	stage_stop(s, 2, 1, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	token_of(s, first);
	no_two_met(s);
}

/* The waiter's number is taken by a record that n1 hears of late, and is free again. The waiter's
 * node does not know yet that n1 has displaced its promise. */
static void a_newcomer_does_not_pass_turns_without_numbers(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	assert_int_equal(take_permits(s, 0, key, stage_lock(1), 8, 8), PAWL_OK);
	(void)wait_permits(s, 1, key, stage_lock(2), 1, 8);
	hold_n1(s, true);
	stage_stop(s, 2, 1, MESSAGE_PROMISE_ANSWER, true);
	stage_stop(s, 0, 1, MESSAGE_DISPLACED, true);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	const uint64_t token = stage_status(s, 0).clock + 1;
	stage_inject(s, 2, 0, &(struct message){ .kind = MESSAGE_COMMIT, .round = 7,
		.key = slice_str(key), .lock_id = stage_lock(9), .token = token,
		.ballot = { .clock = token }, .lease_us = 1000000,
		.terms = { .of = 8, .count = 8, .set = { { 255, 0 } } } });
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 1);
	(void)stage_do(s, 2, stage_request(CORE_RELEASE, key, stage_lock(9)));
	const uint64_t queued = stage_count(s, COUNT_promise_refused_queued);
	(void)stage_do(s, 0, permits_request(key, stage_lock(3), 1, 8, 0));
	assert_int_equal(stage_count(s, COUNT_promise_refused_queued), queued + 1);
	hold_n1(s, false);
	stage_stop(s, 2, 1, MESSAGE_PROMISE_ANSWER, false);
	stage_stop(s, 0, 1, MESSAGE_DISPLACED, false);
	stage_settle(s);
}

/* n3 is down. Number 0 is a leftover at n2, and the home has it reserved for the one who waits
 * first. When number 1 comes free, the home has it reserved for the other. */
static void the_first_one_may_take_what_is_reserved_for_others(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	const uint64_t token = stage_status(s, 1).clock + 1;
	stage_kill(s, 2);
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_COMMIT, .round = 7,
		.key = slice_str(key), .lock_id = stage_lock(9), .token = token,
		.ballot = { .clock = token }, .lease_us = 1000000,
		.terms = { .of = 2, .count = 1, .set = { { 1, 0 } } } });
	assert_int_equal(take_permits(s, 0, key, stage_lock(1), 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 2);
	uint64_t first = wait_permits(s, 0, key, stage_lock(2), 1, 2);
	uint64_t second = wait_permits(s, 1, key, stage_lock(3), 1, 2);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	assert_false(answered(s, first) || answered(s, second));
	stage_wait(s, 150 * SPAN_MS);
	assert_int_equal(numbers_of(s, first).w[0], 2);
}

/* n3 is asked by this node for one of 8 permits. */
static struct message asks(const char *key, uint8_t lock, uint32_t flags) {
	return (struct message){ .kind = MESSAGE_PROMISE, .round = (uint64_t)lock << 16,
		.attempt = (uint64_t)lock << 16, .key = slice_str(key), .lock_id = stage_lock(lock),
		.flags = flags, .terms = { .of = 8, .count = 1 } };
}

static bool commits(struct stage *s, uint32_t from, uint8_t lock, uint64_t token,
	uint64_t numbers) {
	const uint64_t ok = stage_count(s, COUNT_commit_ok);
	stage_inject(s, from, 2, &(struct message){ .kind = MESSAGE_COMMIT,
		.round = (uint64_t)lock << 16, .key = slice_str("k"), .lock_id = stage_lock(lock),
		.token = token, .ballot = { .clock = token }, .lease_us = 1000000,
		.terms = { .of = 8, .count = 1, .set = { { numbers, 0 } } } });
	return stage_count(s, COUNT_commit_ok) > ok;
}

/* The record of another takes the number that is reserved. */
static void whoever_loses_a_reserved_number_is_told_of_the_next(void **state) {
	struct stage *s = *state;
	const struct message m = asks("k", 1, FLAG_HOME);
	const uint64_t clock = stage_status(s, 2).clock;
	stage_inject(s, 1, 2, &m);
	assert_true(commits(s, 0, 2, clock + 1, 2));
	assert_int_equal(stage_count(s, COUNT_promise_again), 0);
	assert_true(commits(s, 0, 3, clock + 2, 1));
	assert_int_equal(stage_count(s, COUNT_promise_again), 1);
	assert_int_equal(stage_status(s, 2).promises, 1);
}

/* Of 8 permits 7 are taken, and the last one is promised, to n2. */
static void promises_for_which_nothing_is_left_are_displaced(void **state) {
	struct stage *s = *state;
	const struct message m = asks("k", 1, 0);
	const uint64_t clock = stage_status(s, 2).clock;
	stage_inject(s, 1, 2, &m);
	for (uint8_t i = 0; i < 8; i++) {
		assert_int_equal(stage_count(s, COUNT_promise_displaced), 0);
		assert_true(commits(s, 0, (uint8_t)(2 + i), clock + 1 + i, UINT64_C(1) << i));
	}
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 1);
	assert_int_equal(stage_status(s, 2).promises, 0);
}

/* Number 0 was another's since n3 promised. When n2 asks again, n3 notes its clock for number 0.
 * What n2 commits is above that, however far the clock has gone on since. */
static void numbers_that_others_had_are_noted_anew(void **state) {
	struct stage *s = *state;
	const struct message m = asks("k", 1, 0);
	const uint64_t clock = stage_status(s, 2).clock;
	stage_inject(s, 1, 2, &m);
	assert_true(commits(s, 0, 2, clock + 5, 1));
	assert_int_equal(release(s, 0, "k", stage_lock(2)), PAWL_OK);
	assert_false(commits(s, 1, 1, clock + 5, 1));
	stage_inject(s, 1, 2, &m);
	assert_true(commits(s, 0, 3, clock + 20, 4));
	assert_false(commits(s, 1, 1, clock + 5, 1));
	assert_true(commits(s, 1, 1, clock + 6, 1));
}

/* For the other numbers what was noted first counts. */
static void numbers_that_nobody_had_keep_what_was_noted(void **state) {
	struct stage *s = *state;
	const struct message m = asks("k", 1, 0);
	const uint64_t clock = stage_status(s, 2).clock;
	stage_inject(s, 1, 2, &m);
	assert_true(commits(s, 0, 2, clock + 5, 1));
	stage_inject(s, 1, 2, &m);
	assert_true(commits(s, 1, 1, clock + 2, 2));
}

UNIT(cluster_reserved) {
	const struct CMUnitTest tests[] = {
		NAMED(permits_of_all_nodes_are_promised_together_and_all_have_their_own_numbers),
		NAMED(the_home_is_waited_for),
		NAMED(a_node_that_is_alone_does_not_wait_for_the_home),
		NAMED(a_home_that_hangs_is_not_waited_for),
		WITH_REPLICAS(what_the_home_has_reserved_is_waited_for),
		WITH_REPLICAS(what_the_home_has_reserved_is_not_waited_for_too_long),
		WITH_REPLICAS(a_home_that_has_parked_the_request_is_waited_for),
		WITH_REPLICAS(a_home_that_has_parked_the_request_is_not_waited_for_too_long),
		NAMED(a_newcomer_passes_turns_that_have_their_numbers),
		NAMED(a_newcomer_does_not_pass_turns_without_numbers),
		NAMED(the_first_one_may_take_what_is_reserved_for_others),
		NAMED(whoever_loses_a_reserved_number_is_told_of_the_next),
		NAMED(promises_for_which_nothing_is_left_are_displaced),
		NAMED(numbers_that_others_had_are_noted_anew),
		NAMED(numbers_that_nobody_had_keep_what_was_noted),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
