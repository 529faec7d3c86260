/* These tests are about the name of a request where an extension through another node, which nobody
 * trusts, has lengthened its record (docs/protocol.md, section 11). */
#include "copies.h"

/* The request_timeout of the stage. */
#define ROUND (100 * SPAN_MS)

/* Masters do not compare what they have, so that only the coordinators' word counts. */
static int setup(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t to = 0; to < 3; to++) {
		lose_to(s, to, MESSAGE_SYNC_KEYS, true);
	}
	return 0;
}

/* a is at n1 alone so far. n1 lengthens it for an extension that is answered `lost`, because the
 * others lack it. The request rolls it back after that, or before. */
static void lengthened_in_vain(struct stage *s, bool rolled_back_first) {
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, 0, to, MESSAGE_COMMIT, true);
	}
	ask_both(s, 0, 1, 2, WAIT);
	stage_wait(s, ROUND / 2);
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, true);
	stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, rolled_back_first);
	struct core_request r = stage_request(CORE_EXTEND, "a", stage_lock(1));
	r.lease = LEASE;
	const uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	assert_int_equal(answered(s, id), !rolled_back_first);
	stage_client_gone(s, 0, 1);
	stage_wait(s, 3 * ROUND / 4);
	assert_true(!rolled_back_first || knows(s, 0, "a", stage_lock(1)));
	stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, false);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

static void what_was_lengthened_in_vain_goes_with_its_request(void **state) {
	lengthened_in_vain(*state, false);
	assert_false(knows(*state, 0, "a", stage_lock(1)));
}

static void what_was_lengthened_in_vain_goes_after_its_request(void **state) {
	lengthened_in_vain(*state, true);
	assert_false(knows(*state, 0, "a", stage_lock(1)));
}

/* Whoever has the lock by an extension keeps it. */
static void what_was_lengthened_stays_when_its_request_is_rolled_back(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(9));
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_int_equal(extend(s, HOLDER, "a", stage_lock(1), LEASE, false), PAWL_OK);
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)) && knows(s, 1, "a", stage_lock(1)) &&
		knows(s, 2, "a", stage_lock(1)));
}

/* The request comes again while n2 is down. n2 starts anew, and merges a from n1 and n3. Then the
 * request is rolled back. */
static void what_was_lengthened_in_vain_is_not_merged(void **state) {
	struct stage *s = *state;
	lengthened_in_vain(s, false);
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, 0, to, MESSAGE_COMMIT, false);
	}
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, false);
	take(s, 2, "b", stage_lock(9));
	stage_kill(s, 1);
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)) && knows(s, 2, "a", stage_lock(1)));
	assert_true(stage_start(s, 1) && stage_until_voting(s, 1, SPAN_S));
	assert_true(knows(s, 1, "a", stage_lock(1)));
	stage_client_gone(s, 0, 1);
	stage_wait(s, 4 * ROUND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(knows(s, i, "a", stage_lock(1)));
	}
	take(s, 2, "a", stage_lock(3));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_lengthened_in_vain_goes_with_its_request,
			setup, named_teardown),
		cmocka_unit_test_setup_teardown(what_was_lengthened_in_vain_goes_after_its_request,
			setup, named_teardown),
		cmocka_unit_test_setup_teardown(what_was_lengthened_in_vain_is_not_merged, setup,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			what_was_lengthened_stays_when_its_request_is_rolled_back, setup,
			named_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
