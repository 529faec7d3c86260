/* An extension is answered with a token that q masters accepted, and a repeat with what they
 * accepted since it was asked for (docs/protocol.md, sections 2, 5 and 8.2). There are three
 * masters; the coordinators are replicas. */
#include "replicas.h"

#define P 3u
#define Q 4u

static int setup_two(void **state) {
	return setup_with(state, 2, 0);
}

static void cut_masters(struct stage *s, uint32_t node) {
	for (uint32_t i = 0; i < 3; i++) {
		if (i != node) {
			stage_cut(s, node, i, true);
		}
	}
}

/* L1 is held with the token that n4 answered. A repeat of it at n5 reaches n1 alone, and fails. n1
 * is cut off from n2 and n3, and nobody there hears of its token. */
static void a_token_of_a_failed_repeat_is_not_what_an_extension_answers(void **state) {
	struct stage *s = *state;
	stage_cut(s, P, 2, true);
	const uint64_t granted = take(s, P, "k", stage_lock(1));
	for (uint32_t i = 0; i < 2; i++) {
		/* n3 has missed the commit. */
		stage_lose(s, i, 2, MESSAGE_SYNC_LEAVES, true);
	}
	stage_cut(s, Q, 1, true);
	cut_masters(s, 0);
	/* The link is slow. */
	s->held[0][P] = true;
	stage_stop(s, Q, 2, MESSAGE_COMMIT, true);
	const uint64_t repeat = stage_ask(s, Q, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_kill(s, Q);
	assert_false(answered(s, repeat));

	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	const uint64_t extension = stage_ask(s, P, r);
	while (stage_deliver(s, P, 0) || stage_deliver(s, 0, P) || stage_deliver(s, P, 1) ||
		stage_deliver(s, 1, P)) {
	}
	const uint64_t said = token_of(s, extension);
	stage_isolate(s, P, true);
	stage_settle(s);
	/* L1's lease is over by then. */
	stage_wait(s, 3 * SPAN_S);

	assert_true(said >= granted);
	assert_true(take(s, 2, "k", stage_lock(2)) > said);
}

static void masters_slow_to(struct stage *s, uint32_t node, bool slow) {
	for (uint32_t i = 0; i < 3; i++) {
		s->held[i][node] = slow;
	}
}

/* n4 has sent the commit, and its masters have accepted. */
static uint64_t commit_unanswered(struct stage *s, struct id128 lock) {
	const uint64_t id = stage_ask(s, P, stage_acquire("k", lock, LEASE, 0));
	for (uint32_t i = 0; i < 2; i++) {
		while (stage_sent(s, MESSAGE_COMMIT) == 0 &&
			(stage_deliver(s, P, i) || stage_deliver(s, i, P))) {
		}
	}
	assert_int_equal(stage_sent(s, MESSAGE_COMMIT), 3);
	masters_slow_to(s, P, true);
	stage_settle(s);
	assert_false(answered(s, id));
	return id;
}

/* L1 is released through n5, and L2 has the key, before L1 is asked for again at n4, which has
 * heard nothing of that. */
static void what_was_accepted_before_a_repeat_does_not_answer_it(void **state) {
	struct stage *s = *state;
	const uint64_t first = commit_unanswered(s, stage_lock(1));
	assert_int_equal(release(s, Q, "k", stage_lock(1)), PAWL_OK);
	take(s, Q, "k", stage_lock(2));

	const uint64_t repeat = stage_ask(s, P, stage_acquire("k", stage_lock(1), LEASE, 0));
	masters_slow_to(s, P, false);
	stage_settle(s);
	assert_true(answered(s, first));
	assert_non_null(stage_answer(s, repeat));
	assert_int_equal(stage_answer(s, repeat)->r.error, PAWL_ELOST);
	assert_true(holds(s, Q, "k", stage_lock(2)));
}

/* A third request joins the attempt of the second, and both have the lock that the first one
 * got. */
static void a_repeat_after_the_commit_is_an_attempt_that_others_join(void **state) {
	struct stage *s = *state;
	const uint64_t first = commit_unanswered(s, stage_lock(1));
	const uint64_t second = stage_ask(s, P, stage_acquire("k", stage_lock(1), LEASE, 0));
	const uint64_t third = stage_ask(s, P, stage_acquire("k", stage_lock(1), LEASE, 0));
	assert_int_equal(stage_count(s, COUNT_repeat_joined), 1);
	masters_slow_to(s, P, false);
	stage_settle(s);
	assert_int_equal(token_of(s, second), token_of(s, first));
	assert_int_equal(token_of(s, third), token_of(s, first));
}

/* n4 asks for `a` and `b` together, and has `a` while it waits for `b`. */
static uint64_t ask_two(struct stage *s) {
	const struct core_lock locks[] = { { .key = slice_str("a"), .lock_id = stage_lock(1) },
		{ .key = slice_str("b"), .lock_id = stage_lock(2) } };
	const struct core_request r = { .op = CORE_ACQUIRE_ALL, .locks = locks, .lock_count = 2,
		.lease = LEASE, .wait = WAIT };
	const uint64_t id = stage_ask(s, P, r);
	stage_wait(s, SPAN_MS);
	assert_false(answered(s, id));
	return id;
}

/* `a` was released through another node before the repeat, and somebody else has it. */
static void what_several_had_before_a_repeat_is_asked_for_again(void **state) {
	struct stage *s = *state;
	take(s, Q, "b", stage_lock(9));
	ask_two(s);
	assert_int_equal(release(s, Q, "a", stage_lock(1)), PAWL_OK);
	take(s, Q, "a", stage_lock(3));
	const uint64_t repeat = ask_two(s);
	release(s, Q, "b", stage_lock(9));
	stage_settle(s);
	assert_int_equal(stage_answer(s, repeat)->r.error, PAWL_ELOST);
	assert_true(holds(s, Q, "a", stage_lock(3)));
}

/* `a` alone was asked for again through another node, which heard n3 first. n3 had missed the
 * commit. */
static void several_have_the_token_that_a_repeat_was_told(void **state) {
	struct stage *s = *state;
	take(s, Q, "b", stage_lock(9));
	stage_lose(s, P, 2, MESSAGE_COMMIT, true);
	stage_lose(s, P, 2, MESSAGE_LEARN, true);
	ask_two(s);
	s->held[0][Q] = true;
	const uint64_t told = take(s, Q, "a", stage_lock(1));
	s->held[0][Q] = false;
	const uint64_t repeat = ask_two(s);
	release(s, Q, "b", stage_lock(9));
	stage_settle(s);
	assert_int_equal(stage_answer(s, repeat)->r.error, PAWL_OK);
	assert_true(stage_answer(s, repeat)->rows[0].token >= told);
}

UNIT(cluster_fencing) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_token_of_a_failed_repeat_is_not_what_an_extension_answers, setup_two,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			what_was_accepted_before_a_repeat_does_not_answer_it, setup_two,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			a_repeat_after_the_commit_is_an_attempt_that_others_join, setup_two,
			named_teardown),
		cmocka_unit_test_setup_teardown(what_several_had_before_a_repeat_is_asked_for_again,
			setup_two, named_teardown),
		cmocka_unit_test_setup_teardown(several_have_the_token_that_a_repeat_was_told,
			setup_two, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
