/* These tests are about a release that expects a value, next to updates of that value
 * (docs/protocol.md, section 2, Compare and release). */
#include "values.h"

static struct core_request release_if(const char *expected) {
	struct core_request r = stage_request(CORE_RELEASE, "k", stage_lock(1));
	r.expect_value = true;
	r.expected = slice_str(expected);
	return r;
}

static bool is_free(struct stage *s, uint32_t node) {
	struct core_request r = stage_request(CORE_GET, "k", (struct id128){ { 0 } });
	r.quorum = r.admin = true;
	return stage_do(s, node, r) == PAWL_OK && !stage_last(s)->r.held;
}

static int error_of(const struct stage *s, uint64_t id) {
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	return reply->r.error;
}

/* What `from` sends of this kind to the other masters waits. */
static void hold_back(struct stage *s, uint32_t from, enum message_kind kind, bool stop) {
	for (uint32_t i = 0; i < 3; i++) {
		if (i != from) {
			stage_stop(s, from, i, kind, stop);
		}
	}
}

static void a_release_that_expects_the_value_releases(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, release_if("other")), PAWL_EMISMATCH);
	assert_int_equal(stage_last(s)->r.op, CORE_RELEASE);
	assert_true(value_is(s, 2, "first"));
	assert_int_equal(stage_do(s, 1, release_if("first")), PAWL_OK);
	assert_true(stage_last(s)->r.released);
	assert_true(is_free(s, 2));
	assert_int_equal(stage_do(s, 2, release_if("first")), PAWL_OK);
	assert_false(stage_last(s)->r.released);
	assert_true(take(s, 2, "k", stage_lock(2)) > 0);
}

/* The update was there first: the release had read the earlier value. */
static void a_release_that_comes_after_an_update_leaves_the_lock(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	hold_back(s, 1, MESSAGE_PREPARE, true);
	uint64_t id = stage_ask(s, 1, release_if("first"));
	assert_int_equal(stage_do(s, 0, update_to("second", NULL)), PAWL_OK);
	hold_back(s, 1, MESSAGE_PREPARE, false);
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(error_of(s, id), PAWL_EMISMATCH);
	assert_true(value_is(s, 2, "second"));
}

/* The release is decided, and the masters have not heard of it yet. No update succeeds, whatever it
 * expects, and none of them is told that it holds. */
static void no_update_succeeds_between_the_last_value_and_the_release(void **state) {
	static const char *const expected[] = { NULL, "first" };
	for (size_t i = 0; i < 2; i++) {
		struct stage *s = *state;
		struct core_request take_it = acquire_with("first");
		take_it.lock_id = stage_lock((uint8_t)(10 + i));
		assert_int_equal(stage_do(s, 0, take_it), PAWL_OK);
		hold_back(s, 0, MESSAGE_RELEASE, true);
		struct core_request ends = release_if("first"), sets = update_to("second",
			expected[i]);
		ends.lock_id = sets.lock_id = take_it.lock_id;
		uint64_t id = stage_ask(s, 0, ends);
		stage_settle(s);
		assert_null(stage_answer(s, id));
		assert_int_equal(stage_do(s, 1, sets), PAWL_ELOST);
		hold_back(s, 0, MESSAGE_RELEASE, false);
		stage_settle(s);
		assert_int_equal(error_of(s, id), PAWL_OK);
		assert_true(is_free(s, 2));
	}
}

/* The coordinator dies between the two. Whoever asks next completes the release. */
static void a_release_whose_coordinator_dies_is_completed(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	hold_back(s, 0, MESSAGE_RELEASE, true);
	(void)stage_ask(s, 0, release_if("first"));
	stage_settle(s);
	stage_kill(s, 0);
	assert_true(value_is(s, 1, "first"));
	uint64_t id = stage_ask(s, 1, update_to("second", NULL));
	stage_wait(s, SPAN_S);
	assert_int_equal(error_of(s, id), PAWL_ELOST);
	assert_true(is_free(s, 2));
}

/* The last value has reached one master alone. An update that does not hear of it wins, and the
 * release is not told that it released. */
static void an_update_that_overtakes_a_half_done_release_keeps_the_lock(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	hold_back(s, 0, MESSAGE_WRITE, true);
	uint64_t id = stage_ask(s, 0, release_if("first"));
	stage_settle(s);
	stage_lose(s, 1, 0, MESSAGE_PREPARE, true);
	uint64_t other = stage_ask(s, 1, update_to("second", NULL));
	stage_wait(s, 600 * SPAN_MS);
	assert_int_equal(error_of(s, other), PAWL_OK);
	hold_back(s, 0, MESSAGE_WRITE, false);
	stage_wait(s, SPAN_S);
	assert_int_equal(error_of(s, id), PAWL_EUNSURE);
	assert_true(value_is(s, 2, "second"));
}

/* An update that hears of a half-done release completes it, though it expects nothing. */
static void an_update_that_hears_of_a_half_done_release_completes_it(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	stage_lose(s, 0, 2, MESSAGE_WRITE, true);
	stage_lose(s, 0, 1, MESSAGE_WRITE, true);
	uint64_t id = stage_ask(s, 0, release_if("first"));
	stage_wait(s, 1100 * SPAN_MS);
	assert_int_equal(error_of(s, id), PAWL_EUNSURE);
	stage_cut(s, 1, 2, true);
	uint64_t other = stage_ask(s, 1, update_to("second", NULL));
	stage_wait(s, 600 * SPAN_MS);
	assert_int_equal(error_of(s, other), PAWL_ELOST);
	stage_cut(s, 1, 2, false);
	stage_wait(s, 100 * SPAN_MS);
	assert_true(is_free(s, 2));
}

UNIT(cluster_compare) {
	const struct CMUnitTest tests[] = {
		NAMED(a_release_that_expects_the_value_releases),
		NAMED(a_release_that_comes_after_an_update_leaves_the_lock),
		NAMED(no_update_succeeds_between_the_last_value_and_the_release),
		NAMED(a_release_whose_coordinator_dies_is_completed),
		NAMED(an_update_that_overtakes_a_half_done_release_keeps_the_lock),
		NAMED(an_update_that_hears_of_a_half_done_release_completes_it),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
