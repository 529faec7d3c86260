/* These tests are about commits that come after an update, and those of repeats (docs/protocol.md,
 * section 2, Acquire and Update). */
#include "copies.h"
#include "members.h"
#include "values.h"

static int setup_five(void **state) {
	struct stage_options o = named_options();
	o.masters = 5;
	*state = stage_born(&o);
	return 0;
}

static void n3_hears_nothing_of_n2(struct stage *s) {
	static const enum message_kind of_n2[] = { MESSAGE_PROMISE, MESSAGE_COMMIT, MESSAGE_LEARN,
		MESSAGE_PREPARE, MESSAGE_WRITE };
	for (size_t i = 0; i < sizeof of_n2 / sizeof of_n2[0]; i++) {
		stage_lose(s, 1, 2, of_n2[i], true);
	}
}

/* n1 has promised n3's attempt. Then n2 is granted the lock_id and updates it, both at n1 as well.
 * n3 hears of the promise: its token is above the update's ballot, and it has the record by its own
 * commit. n1 misses an extension, and its record ends; then n3's commit comes. */
static void commit_that_comes_when_the_update_is_lost(struct stage *s) {
	struct core_request r = acquire_with("first");
	/* The lease is as short as it may be while the commit still counts for n3. */
	r.lease = 100 * SPAN_MS;
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, true);
	stage_stop(s, 2, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 2, 1, MESSAGE_PROMISE, true);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	n3_hears_nothing_of_n2(s);
	(void)stage_ask(s, 2, acquire_with("first"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_wait(s, 40 * SPAN_MS);
	stage_lose(s, 1, 2, MESSAGE_PROMISE, false);
	/* n1 hears of no higher clock. */
	stage_cut(s, 0, 1, true);
	/* n3 hears n2's clock. */
	(void)stage_ask(s, 1, stage_acquire("x", stage_lock(2), LEASE, WAIT));
	stage_settle(s);
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	stage_lose(s, 1, 2, MESSAGE_LEARN, false);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), 5 * LEASE, true), PAWL_OK);
	stage_wait(s, 61 * SPAN_MS);
	stage_stop(s, 2, 0, MESSAGE_COMMIT, false);
	stage_settle(s);
}

static void an_update_is_not_overwritten_by_the_first_value_of_a_late_commit(void **state) {
	struct stage *s = *state;
	commit_that_comes_when_the_update_is_lost(s);
	stage_cut(s, 0, 1, false);
	stage_lose(s, 2, 1, MESSAGE_PROMISE, false);
	stage_mend(s);
	stage_wait(s, 500 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
	assert_true(value_is(s, 2, "second"));
}

/* n2 is not there, and n1 and n3 alone do not know the value. */
static void the_first_value_of_a_late_commit_meets_no_expectation(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 2, MESSAGE_COMMIT_ANSWER, true);
	commit_that_comes_when_the_update_is_lost(s);
	stage_isolate(s, 1, true);
	uint64_t third = stage_ask(s, 2, update_to("third", "first"));
	stage_wait(s, 250 * SPAN_MS);
	assert_non_null(stage_answer(s, third));
	assert_int_not_equal(stage_answer(s, third)->r.error, PAWL_OK);
	stage_isolate(s, 1, false);
	stage_lose(s, 2, 1, MESSAGE_PROMISE, false);
	stage_mend(s);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
}

/* What n1 remembers of the update goes with its table. */
static void the_first_value_of_a_late_commit_is_in_doubt_after_a_planned_stop(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 2, MESSAGE_COMMIT_ANSWER, true);
	commit_that_comes_when_the_update_is_lost(s);
	stage_isolate(s, 1, true);
	stage_drain(s, 0);
	assert_true(stage_start(s, 0));
	stage_mend(s);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	uint64_t third = stage_ask(s, 2, update_to("third", "first"));
	stage_wait(s, 250 * SPAN_MS);
	assert_non_null(stage_answer(s, third));
	assert_int_not_equal(stage_answer(s, third)->r.error, PAWL_OK);
}

/* n5 to n7 copy ahead what n1 and n3 have. n1's record ends after it was copied, before they have
 * the record from n3. */
static void the_first_value_of_a_late_commit_is_in_doubt_where_the_update_was_copied(void **state) {
	struct stage *s = *state;
	stage_isolate(s, HOLDER, true);
	for (uint32_t i = 4; i < 7; i++) {
		stage_cut(s, 1, i, true);
		/* Its copy lasts a moment longer. */
		s->nodes[i].rate_ppb = -9000000;
		s->nodes[i].boot_offset = s->nodes[i].raw_offset = s->now / 1000 * 9 + 1000;
	}
	uint64_t id = window(s, "567", 3);
	for (uint32_t i = 4; i < 7; i++) {
		s->held[2][i] = true;
	}
	stage_lose(s, 0, 2, MESSAGE_COMMIT_ANSWER, true);
	commit_that_comes_when_the_update_is_lost(s);
	memset(s->held, 0, sizeof s->held);
	stage_isolate(s, 1, true);
	stage_settle(s);
	decide(s, id, 3);
	uint64_t third = stage_ask(s, 4, update_to("third", "first"));
	stage_wait(s, 250 * SPAN_MS);
	assert_non_null(stage_answer(s, third));
	assert_int_equal(stage_answer(s, third)->r.error, PAWL_EUNSURE);
}

/* n4 to n6, whose clocks are slower, copy from n1, and from n3 later. They have been sent what n1
 * remembers of what has ended, and then lose the update. */
static void the_first_value_of_a_late_commit_is_in_doubt_at_the_masters_that_come_next(
	void **state) {
	struct stage *s = *state;
	for (uint32_t i = 3; i < 6; i++) {
		stage_cut(s, 1, i, true);
		stage_cut(s, 2, i, true);
		s->nodes[i].rate_ppb = -9000000;
		s->nodes[i].boot_offset = s->nodes[i].raw_offset = s->now / 100;
	}
	stage_lose(s, 0, 2, MESSAGE_COMMIT_ANSWER, true);
	uint64_t change = ask_change(s, 0, set_of("456"));
	stage_wait(s, 250 * SPAN_MS);
	commit_that_comes_when_the_update_is_lost(s);
	stage_isolate(s, 1, true);
	for (uint32_t i = 3; i < 6; i++) {
		stage_cut(s, 2, i, false);
	}
	assert_int_equal(await(s, change)->r.error, PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_used), 3);
	uint64_t third = stage_ask(s, 3, update_to("third", "first"));
	stage_wait(s, 300 * SPAN_MS);
	assert_non_null(stage_answer(s, third));
	assert_int_equal(stage_answer(s, third)->r.error, PAWL_EUNSURE);
}

/* The same happens, but n1 is asked for its promise only when the commit is on its way: n2 promises
 * early, and n1 when its record has ended. */
static void commit_that_comes_with_its_promise(struct stage *s) {
	struct core_request r = acquire_with("first");
	r.lease = 100 * SPAN_MS;
	stage_stop(s, 1, 2, MESSAGE_PROMISE_ANSWER, true);
	stage_stop(s, 2, 0, MESSAGE_PROMISE, true);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	n3_hears_nothing_of_n2(s);
	(void)stage_ask(s, 2, acquire_with("first"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_wait(s, 40 * SPAN_MS);
	/* n3 hears n1's clock. */
	take(s, 0, "x", stage_lock(2));
	/* n1 hears of no higher clock. */
	stage_cut(s, 0, 1, true);
	stage_stop(s, 1, 2, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	stage_lose(s, 1, 2, MESSAGE_LEARN, false);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), 5 * LEASE, true), PAWL_OK);
	stage_wait(s, 61 * SPAN_MS);
	const uint64_t before = stage_count(s, COUNT_commit_ok),
		overtaken = stage_count(s, COUNT_commit_overtaken_first);
	stage_stop(s, 2, 0, MESSAGE_PROMISE, false);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_commit_ok), before);
	assert_true(stage_count(s, COUNT_commit_overtaken_first) > overtaken);
}

static void a_promise_that_is_made_behind_the_commit_says_nothing_of_what_was_before(void **state) {
	struct stage *s = *state;
	commit_that_comes_with_its_promise(s);
	stage_cut(s, 0, 1, false);
	stage_mend(s);
	stage_wait(s, 500 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
	assert_true(value_is(s, 2, "second"));
}

/* The last update reaches n1 and n2, the next extension n2 and n3, and the earlier lease ends at
 * n1. A repeat brings the update before the last one. */
static void a_repeat_brings_an_update_that_does_not_count_where_a_later_one_was_lost(void **state) {
	struct stage *s = *state;
	struct core_request r = acquire_with("first");
	r.lease = 500 * SPAN_MS;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
	stage_cut(s, 0, 2, true);
	assert_int_equal(stage_do(s, 0, update_to("third", "second")), PAWL_OK);
	repeat_without_the_last(s, "fourth", "second");
	assert_true(value_is(s, 2, "third"));
}

/* n1 has missed the record, and has heard of later tokens since. */
static void a_master_that_gets_the_record_from_a_repeat_counts_for_its_value(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 0, true);
	assert_int_equal(stage_do(s, 1, acquire_with("first")), PAWL_OK);
	stage_kill(s, 1);
	stage_isolate(s, 0, false);
	stage_mend(s);
	for (uint8_t i = 2; i < 6; i++) {
		take(s, 0, i % 2 ? "x" : "y", stage_lock(i));
		assert_int_equal(release(s, 0, i % 2 ? "x" : "y", stage_lock(i)), PAWL_OK);
	}
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
}

/* n2 alone has an extension, and the update of that time, when the lock_id is acquired anew. Its
 * refusal comes when q masters have accepted. One of those, n5, had not promised before; n4, which
 * had, is slow to answer. */
static void a_master_is_told_that_the_first_value_stands_when_that_is_known_late(void **state) {
	struct stage *s = *state;
	n2_keeps_an_earlier_holding(s);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	stage_stop(s, 0, 4, MESSAGE_PROMISE, true);
	stage_stop(s, 3, 0, MESSAGE_COMMIT_ANSWER, true);
	uint64_t again = stage_ask(s, 0, acquire_with("first"));
	stage_settle(s);
	stage_stop(s, 0, 4, MESSAGE_PROMISE, false);
	stage_settle(s);
	(void)token_of(s, again);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_settle(s);
	stage_stop(s, 3, 0, MESSAGE_COMMIT_ANSWER, false);
	stage_settle(s);
	assert_true(value_is(s, 1, "first"));
	assert_int_equal(stage_do(s, 1, update_to("third", "first")), PAWL_OK);
}

static int setup_two_replicas(void **state) {
	struct stage_options o = named_options();
	o.replicas = 2;
	*state = stage_born(&o);
	return 0;
}

/* n3 alone has an extension, and the update of that time, when the lock_id is acquired anew. The
 * link between n3 and n1, which coordinated that, is cut. */
static void that_a_first_value_stands_is_known_after_a_change_of_masters(void **state) {
	struct stage *s = *state;
	struct core_request r = acquire_with("first");
	r.lease = 500 * SPAN_MS;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
	stage_isolate(s, 2, true);
	(void)extend(s, 2, "k", stage_lock(1), 5 * LEASE, true);
	stage_wait(s, 600 * SPAN_MS);
	stage_isolate(s, 2, false);
	stage_cut(s, 0, 2, true);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	must(s, 1, set_of("12345"));
	stage_cut(s, 0, 2, false);
	stage_mend(s);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(value_is(s, 2, "first"));
	assert_int_equal(stage_do(s, 2, update_to("third", "first")), PAWL_OK);
}

UNIT(cluster_late) {
	const struct CMUnitTest tests[] = {
		NAMED(an_update_is_not_overwritten_by_the_first_value_of_a_late_commit),
		NAMED(the_first_value_of_a_late_commit_meets_no_expectation),
		NAMED(the_first_value_of_a_late_commit_is_in_doubt_after_a_planned_stop),
		COPIES(the_first_value_of_a_late_commit_is_in_doubt_where_the_update_was_copied),
		MEMBERS_3(
			the_first_value_of_a_late_commit_is_in_doubt_at_the_masters_that_come_next),
		NAMED(a_promise_that_is_made_behind_the_commit_says_nothing_of_what_was_before),
		NAMED(a_repeat_brings_an_update_that_does_not_count_where_a_later_one_was_lost),
		NAMED(a_master_that_gets_the_record_from_a_repeat_counts_for_its_value),
		cmocka_unit_test_setup_teardown(
			a_master_is_told_that_the_first_value_stands_when_that_is_known_late,
			setup_five, named_teardown),
		cmocka_unit_test_setup_teardown(
			that_a_first_value_stands_is_known_after_a_change_of_masters,
			setup_two_replicas, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
