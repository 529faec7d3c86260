/* These tests show what went wrong in the protocol's ancestor, and is right here: late, lost and
 * repeated messages, pauses and ties (docs/protocol.md, sections 2, 4 and 5). */
#include "named.h"

static void hold_answers(struct stage *s, uint32_t to, bool hold) {
	for (uint32_t i = 0; i < 3; i++) {
		s->held[i][to] = hold && i != to;
	}
}

static struct message late_commit(struct id128 lock, uint64_t token) {
	return (struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = lock, .token = token, .lease_us = LEASE / 1000,
		.ballot = { token, 1, 1 } };
}

static void a_coordinator_that_pauses_between_its_phases_finds_its_promises_gone(void **state) {
	struct stage *s = *state;
	hold_answers(s, 0, true);
	uint64_t paused = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_pause(s, 0);
	uint64_t other = stage_ask(s, 1, stage_acquire("k", stage_lock(2), LEASE, WAIT));
	/* This is longer than promise_timeout. */
	stage_wait(s, 300 * SPAN_MS);
	uint64_t token = token_of(s, other);
	hold_answers(s, 0, false);
	stage_continue(s, 0);
	stage_wait(s, 600 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, paused)->r.error, PAWL_OK);
	assert_true(holds(s, 2, "k", stage_lock(2)));
	assert_true(token > 0);
}

static void a_commit_that_comes_after_its_promise_lapsed_is_refused(void **state) {
	struct stage *s = *state;
	uint64_t stale = take(s, 0, "k", stage_lock(1)) + 1;
	release(s, 0, "k", stage_lock(1));
	take(s, 1, "k", stage_lock(2));
	struct message m = late_commit(stage_lock(3), stale);
	for (uint32_t i = 1; i < 3; i++) {
		/* R1 refuses it: another lock holds the key. */
		stage_inject(s, 0, i, &m);
	}
	assert_int_equal(stage_count(s, COUNT_commit_refused_held), 2);
	release(s, 1, "k", stage_lock(2));
	for (uint32_t i = 1; i < 3; i++) {
		/* R2 refuses it: nobody holds the key, but somebody has held it since. */
		stage_inject(s, 0, i, &m);
	}
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_clock), 2);
	stage_settle(s);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 0);
	}
}

static void the_last_promise_that_comes_after_the_others_lapsed_is_not_enough(void **state) {
	struct stage *s = *state;
	hold_answers(s, 0, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	/* The node's own promise lapses while the others' answers are still under way. */
	for (int i = 0; i < 30; i++) {
		stage_wait(s, 10 * SPAN_MS);
	}
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	hold_answers(s, 0, false);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_commit_ok), 0);
	take(s, 1, "k", stage_lock(2));
}

static void the_caller_does_not_believe_commits_that_reached_a_minority(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, 1, MESSAGE_COMMIT, true);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_wait(s, 150 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(stage_answer(s, id)->r.acks, 1);
	/* The node's own record stands until its end, and stops nobody. */
	assert_int_equal(stage_status(s, 0).held, 1);
	take(s, 1, "k", stage_lock(2));
	assert_true(holds(s, 2, "k", stage_lock(2)));
}

static void an_extension_that_nobody_else_acknowledges_keeps_the_old_deadline(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 0, true);
	stage_wait(s, LEASE / 2);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_ENOQUORUM);
	stage_wait(s, LEASE / 2);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_OK);
	assert_int_not_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
	stage_isolate(s, 0, false);
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_ELOST);
	assert_true(holds(s, 0, "k", stage_lock(2)));
}

static void an_extension_after_the_end_is_lost_when_somebody_else_holds(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, LEASE + SPAN_MS);
	take(s, 1, "k", stage_lock(2));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(extend(s, i, "k", stage_lock(1), LEASE, true), PAWL_ELOST);
		assert_int_equal(extend(s, i, "k", stage_lock(1), LEASE, false), PAWL_ELOST);
	}
	assert_true(holds(s, 0, "k", stage_lock(2)));
}

static void an_extension_after_the_end_does_not_bring_back_what_nobody_took(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, LEASE + SPAN_MS);
	assert_int_not_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
	take(s, 1, "k", stage_lock(2));
}

static void an_older_shorter_extension_that_comes_late_does_not_shorten_the_lease(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_stop(s, 0, 1, MESSAGE_EXTEND, true);
	stage_stop(s, 0, 2, MESSAGE_EXTEND, true);
	struct core_request shorter = stage_request(CORE_EXTEND, "k", stage_lock(1));
	shorter.lease = LEASE;
	stage_ask(s, 0, shorter);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), 5 * SPAN_S, true), PAWL_OK);
	stage_stop(s, 0, 1, MESSAGE_EXTEND, false);
	stage_stop(s, 0, 2, MESSAGE_EXTEND, false);
	stage_settle(s);
	stage_wait(s, 4 * SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 1);
	}
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
}

static void a_late_release_of_an_earlier_acquisition_leaves_the_same_owners_next_one_alone(
	void **state) {
	struct stage *s = *state;
	struct core_request first = stage_acquire("k", stage_lock(1), LEASE, 0),
		second = stage_acquire("k", stage_lock(2), LEASE, 0);
	first.owner = second.owner = slice_str("the same owner");
	assert_int_equal(stage_do(s, 0, first), PAWL_OK);
	stage_stop(s, 0, 2, MESSAGE_RELEASE, true);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	/* The third master still has the first record. */
	assert_int_equal(stage_do(s, 1, second), PAWL_OK);
	stage_stop(s, 0, 2, MESSAGE_RELEASE, false);
	stage_settle(s);
	struct message m = { .kind = MESSAGE_RELEASE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1) };
	for (uint32_t i = 1; i < 3; i++) {
		stage_inject(s, 0, i, &m);
	}
	stage_settle(s);
	assert_true(holds(s, 2, "k", stage_lock(2)));
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LEASE, false), PAWL_OK);
}

static void a_release_after_the_loss_is_answered_and_leaves_the_new_holder_alone(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, LEASE + SPAN_MS);
	take(s, 1, "k", stage_lock(2));
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_false(stage_last(s)->r.released);
	assert_true(holds(s, 2, "k", stage_lock(2)));
}

static void a_released_lock_id_never_comes_back(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	struct message m = late_commit(stage_lock(1), token + 100);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_commit_refused_released), 1);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(1), LEASE, 0)), PAWL_ELOST);
	take(s, 1, "k", stage_lock(2));
}

static void a_coordinator_killed_between_the_phases_frees_the_key_at_once(void **state) {
	struct stage *s = *state;
	hold_answers(s, 0, true);
	stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_kill(s, 0);
	/* Promises end with the link to their coordinator. */
	take(s, 1, "k", stage_lock(2));
}

static void a_coordinator_that_hangs_between_the_phases_frees_the_key_within_promise_timeout(
	void **state) {
	struct stage *s = *state;
	hold_answers(s, 0, true);
	stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_pause(s, 0);
	uint64_t id = stage_ask(s, 1, stage_acquire("k", stage_lock(2), LEASE, WAIT));
	stage_wait(s, 210 * SPAN_MS);
	token_of(s, id);
	stage_continue(s, 0);
}

/* ---- ties ---- */

static void two_and_two_votes_of_four_masters_end_with_one_holder(void **state) {
	(void)state;
	struct stage_options o = named_options();
	o.masters = 4;
	struct stage *s = stage_born(&o);
	uint64_t ids[2];
	for (uint32_t from = 0; from < 4; from += 3) {
		/* Each of the two reaches its own half first. */
		s->held[from][from ? 0 : 3] = s->held[from][from ? 1 : 2] = true;
	}
	ids[0] = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	ids[1] = stage_ask(s, 3, stage_acquire("k", stage_lock(2), LEASE, 0));
	stage_settle(s);
	assert_int_equal(stage_status(s, 1).promises + stage_status(s, 2).promises, 2);
	memset(s->held, 0, sizeof s->held);
	stage_wait(s, SPAN_S);
	int first = stage_answer(s, ids[0])->r.error, second = stage_answer(s, ids[1])->r.error;
	assert_true(stage_count(s, COUNT_try_tie) > 0);
	assert_true((first == PAWL_OK && second == PAWL_EHELD) ||
		(first == PAWL_EHELD && second == PAWL_OK));
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void one_vote_for_each_of_three_contenders_ends_with_one_holder(void **state) {
	struct stage *s = *state;
	uint64_t ids[3];
	uint32_t got = 0;
	for (uint8_t i = 0; i < 3; i++) {
		/* Each one has its own vote already. */
		ids[i] = stage_ask(s, i,
			stage_acquire("k", stage_lock((uint8_t)(i + 1)), LEASE, 0));
	}
	stage_wait(s, SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		int error = stage_answer(s, ids[i])->r.error;
		got += error == PAWL_OK;
		assert_true(error == PAWL_OK || error == PAWL_EHELD);
	}
	assert_int_equal(got, 1);
}

static void contenders_that_wait_all_get_their_turn_after_a_tie(void **state) {
	struct stage *s = *state;
	uint64_t ids[6];
	for (uint8_t i = 0; i < 6; i++) {
		ids[i] = stage_ask(s, i % 3,
			stage_acquire("k", stage_lock((uint8_t)(i + 1)), LEASE, WAIT));
	}
	uint32_t got = 0;
	for (int turn = 0; turn < 6; turn++) {
		stage_wait(s, 300 * SPAN_MS);
		for (uint8_t i = 0; i < 6; i++) {
			if (ids[i] && answered(s, ids[i])) {
				token_of(s, ids[i]);
				release(s, i % 3, "k", stage_lock((uint8_t)(i + 1)));
				ids[i] = 0;
				got++;
			}
		}
	}
	assert_int_equal(got, 6);
}

UNIT(cluster_pauses) {
	const struct CMUnitTest tests[] = {
		NAMED(a_coordinator_that_pauses_between_its_phases_finds_its_promises_gone),
		NAMED(a_commit_that_comes_after_its_promise_lapsed_is_refused),
		NAMED(the_last_promise_that_comes_after_the_others_lapsed_is_not_enough),
		NAMED(the_caller_does_not_believe_commits_that_reached_a_minority),
		NAMED(an_extension_that_nobody_else_acknowledges_keeps_the_old_deadline),
		NAMED(an_extension_after_the_end_is_lost_when_somebody_else_holds),
		NAMED(an_extension_after_the_end_does_not_bring_back_what_nobody_took),
		NAMED(an_older_shorter_extension_that_comes_late_does_not_shorten_the_lease),
		NAMED(
		a_late_release_of_an_earlier_acquisition_leaves_the_same_owners_next_one_alone),
		NAMED(a_release_after_the_loss_is_answered_and_leaves_the_new_holder_alone),
		NAMED(a_released_lock_id_never_comes_back),
		NAMED(a_coordinator_killed_between_the_phases_frees_the_key_at_once),
		NAMED(
		a_coordinator_that_hangs_between_the_phases_frees_the_key_within_promise_timeout),
		cmocka_unit_test(two_and_two_votes_of_four_masters_end_with_one_holder),
		NAMED(one_vote_for_each_of_three_contenders_ends_with_one_holder),
		NAMED(contenders_that_wait_all_get_their_turn_after_a_tie),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
