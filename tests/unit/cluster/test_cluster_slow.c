/* Where the time of a request went, and which masters were late (coordinator/slow.c). */
#include "modes.h"

#define SLOW (40 * SPAN_MS)

static int set_up(void **state) {
	const struct stage_options options = stage_options_plain();
	struct stage *s = *state = stage_born(&options);
	core_time_slow(s->nodes[0].core, SLOW);
	return 0;
}

static int tear_down(void **state) {
	stage_free(*state);
	return 0;
}

static void stop_both(struct stage *s, enum message_kind kind, bool stop) {
	stage_stop(s, 1, 0, kind, stop);
	stage_stop(s, 2, 0, kind, stop);
}

/* Asks at n1 while the others' answers of this kind take so long. */
static struct core_times ask_slowly(struct stage *s, struct core_request r, enum message_kind kind,
	span_ns span) {
	stop_both(s, kind, true);
	const uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, span);
	assert_null(stage_answer(s, id));
	stop_both(s, kind, false);
	stage_settle(s);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	return reply->times;
}

static void a_slow_promise_is_told_apart_from_a_slow_commit(void **state) {
	struct stage *s = *state;
	struct core_times t = ask_slowly(s, stage_acquire("a", stage_lock(1), LEASE, 0),
		MESSAGE_PROMISE_ANSWER, 50 * SPAN_MS);
	assert_true(t.before >= 50 * SPAN_MS && t.round < SPAN_MS && t.queued == 0);
	assert_true(t.late == 2 || t.late == 4 || t.late == 6);
	t = ask_slowly(s, stage_acquire("b", stage_lock(2), LEASE, 0), MESSAGE_COMMIT_ANSWER,
		50 * SPAN_MS);
	assert_true(t.before < SPAN_MS && t.round >= 50 * SPAN_MS && t.queued == 0);
	/* The one that has not answered yet is late, too. */
	assert_int_equal(t.late, 6);
}

static void nobody_is_late_in_half_the_time(void **state) {
	struct stage *s = *state;
	const struct core_times t = ask_slowly(s, stage_acquire("a", stage_lock(1), LEASE, 0),
		MESSAGE_COMMIT_ANSWER, SLOW / 2 - 5 * SPAN_MS);
	assert_int_equal(t.late, 0);
}

static void waiting_for_a_holder_is_not_slow(void **state) {
	struct stage *s = *state;
	take(s, 1, "a", stage_lock(1));
	const uint64_t id = stage_ask(s, 0, stage_acquire("a", stage_lock(2), LEASE, 10 * SPAN_S));
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(release(s, 1, "a", stage_lock(1)), PAWL_OK);
	stage_settle(s);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	assert_true(reply->times.queued >= 300 * SPAN_MS);
	assert_true(reply->times.before + reply->times.round < 5 * SPAN_MS);
	assert_int_equal(reply->times.late, 0);
}

static void a_wait_that_ends_in_vain_is_not_slow_either(void **state) {
	struct stage *s = *state;
	take(s, 1, "a", stage_lock(1));
	const uint64_t id = stage_ask(s, 0, stage_acquire("a", stage_lock(2), LEASE,
			200 * SPAN_MS));
	stage_wait(s, 250 * SPAN_MS);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_ETIMEOUT);
	assert_true(reply->times.queued >= 195 * SPAN_MS);
	assert_true(reply->times.before < 5 * SPAN_MS && reply->times.round == 0);
}

/* A client repeats its request on another connection while the first one waits. Nothing is told of
 * the time before the repeat. */
static void a_repeat_is_told_its_own_time(void **state) {
	struct stage *s = *state;
	take(s, 1, "a", stage_lock(1));
	struct core_request r = stage_acquire("a", stage_lock(2), LEASE, 10 * SPAN_S);
	stage_ask(s, 0, r);
	stage_wait(s, 300 * SPAN_MS);
	r.client++;
	const uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, 50 * SPAN_MS);
	stop_both(s, MESSAGE_COMMIT_ANSWER, true);
	assert_int_equal(release(s, 1, "a", stage_lock(1)), PAWL_OK);
	stage_wait(s, 60 * SPAN_MS);
	stop_both(s, MESSAGE_COMMIT_ANSWER, false);
	stage_settle(s);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	assert_in_range(reply->times.queued, 40 * SPAN_MS, 60 * SPAN_MS);
	assert_in_range(reply->times.before, 0, 5 * SPAN_MS);
	assert_in_range(reply->times.round, 60 * SPAN_MS, 70 * SPAN_MS);
}

static void several_keys_wait_one_after_the_other(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(1));
	const struct core_lock locks[] = { { slice_str("a"), stage_lock(2), 0, 0 },
		{ slice_str("b"), stage_lock(3), 0, 0 } };
	struct core_request r = stage_request(CORE_ACQUIRE_ALL, "", stage_lock(0));
	r.locks = locks;
	r.lock_count = 2;
	r.lease = LEASE;
	r.wait = 10 * SPAN_S;
	const uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(release(s, 1, "b", stage_lock(1)), PAWL_OK);
	stage_settle(s);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	assert_true(reply->times.queued >= 300 * SPAN_MS);
	assert_true(reply->times.before < 5 * SPAN_MS);
}

static void nothing_is_told_unless_somebody_asks(void **state) {
	struct stage *s = *state;
	core_time_slow(s->nodes[0].core, 0);
	const struct core_times t = ask_slowly(s, stage_acquire("a", stage_lock(1), LEASE, 0),
		MESSAGE_COMMIT_ANSWER, 50 * SPAN_MS);
	assert_true(t.before == 0 && t.round == 0 && t.queued == 0 && t.late == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

UNIT(cluster_slow) {
	const struct CMUnitTest tests[] = {
		TEST(a_slow_promise_is_told_apart_from_a_slow_commit),
		TEST(nobody_is_late_in_half_the_time),
		TEST(waiting_for_a_holder_is_not_slow),
		TEST(a_wait_that_ends_in_vain_is_not_slow_either),
		TEST(a_repeat_is_told_its_own_time),
		TEST(several_keys_wait_one_after_the_other),
		TEST(nothing_is_told_unless_somebody_asks),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
