/* These tests are about an update that reaches a master before the commit does: in the end every
 * master has the new value (docs/protocol.md, section 2, Update). */
#include "values.h"

static int setup_a_replica(void **state) {
	return named_setup_replicas(state, 1);
}

#define WITH_REPLICA(test) \
	cmocka_unit_test_setup_teardown(test, setup_a_replica, named_teardown)

/* Says whether this node's own table has the value. */
static bool shows(struct stage *s, uint32_t node, const char *value) {
	struct core_request r = stage_request(CORE_GET, "k", (struct id128){ { 0 } });
	r.admin = true;
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
	const struct stage_reply *reply = stage_last(s);
	return reply->r.held &&
		slice_equal(slice_of(reply->value.bytes, reply->value.size), slice_str(value));
}

/* The commit of `acquirer` comes to n3 after the write of `updater`. No time passes, so that the
 * masters do not compare their tables. */
static void overtake_the_commit(struct stage *s, uint32_t acquirer, uint32_t updater) {
	stage_stop(s, acquirer, 2, MESSAGE_COMMIT, true);
	assert_int_equal(stage_do(s, acquirer, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, updater, update_to("second", "first")), PAWL_OK);
	stage_stop(s, acquirer, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(shows(s, i, "second"));
	}
}

static void an_update_reaches_a_master_before_the_commit_does(void **state) {
	overtake_the_commit(*state, 0, 1);
}

static void an_update_by_a_master_that_lacks_the_record_reaches_it(void **state) {
	overtake_the_commit(*state, 3, 2);
}

static void an_update_by_a_replica_reaches_a_master_before_the_commit_does(void **state) {
	overtake_the_commit(*state, 0, 3);
}

/* n3 has taken the commit by the time at which it is sent the record with the new value. */
static void a_first_value_that_comes_after_the_write_is_replaced(void **state) {
	struct stage *s = *state;
	stage_stop(s, 2, 1, MESSAGE_WRITE_ANSWER, true);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	assert_true(shows(s, 2, "first"));
	stage_stop(s, 2, 1, MESSAGE_WRITE_ANSWER, false);
	stage_settle(s);
	assert_true(shows(s, 2, "second"));
	assert_int_equal(stage_do(s, 2, update_to("third", "second")), PAWL_OK);
}

/* The value that proved an expectation wrong has overtaken the commit. */
static void a_value_that_is_written_back_reaches_a_master_before_the_commit_does(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "other")), PAWL_EMISMATCH);
	assert_true(shows(s, 2, "first"));
}

/* The release of n3's record is on its way there when the lock is acquired and updated. */
static void an_update_reaches_a_master_before_its_predecessors_release_does(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(2));
	stage_stop(s, 3, 2, MESSAGE_RELEASE, true);
	assert_int_equal(release(s, 3, "k", stage_lock(2)), PAWL_OK);
	stage_stop(s, 0, 2, MESSAGE_LEARN, true);
	stage_stop(s, 1, 2, MESSAGE_LEARN, true);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_stop(s, 3, 2, MESSAGE_RELEASE, false);
	stage_settle(s);
	stage_stop(s, 0, 2, MESSAGE_LEARN, false);
	stage_settle(s);
	assert_true(shows(s, 2, "first"));
	stage_stop(s, 1, 2, MESSAGE_LEARN, false);
	stage_settle(s);
	assert_true(shows(s, 2, "second"));
}

/* What is sent after the answer does not bring back a lock that was released meanwhile. */
static void a_lock_that_is_released_is_not_brought_back_by_its_update(void **state) {
	struct stage *s = *state;
	stage_stop(s, 3, 2, MESSAGE_COMMIT, true);
	stage_stop(s, 1, 2, MESSAGE_LEARN, true);
	assert_int_equal(stage_do(s, 3, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	assert_int_equal(release(s, 2, "k", stage_lock(1)), PAWL_OK);
	stage_stop(s, 1, 2, MESSAGE_LEARN, false);
	stage_stop(s, 3, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	assert_false(holds(s, 2, "k", stage_lock(1)));
	take(s, 2, "k", stage_lock(2));
	assert_int_equal(stage_status(s, 1).catch_up_count, 0);
}

/* The replica's own table has the first value when n3 is sent the record from it, and the others
 * have answered the write before n3 takes that. */
static void a_master_that_was_sent_the_record_before_the_answer_is_sent_the_write(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	stage_wait(s, 30 * SPAN_MS);
	assert_true(shows(s, 3, "first"));
	stage_stop(s, 3, 0, MESSAGE_WRITE, true);
	stage_stop(s, 3, 1, MESSAGE_WRITE, true);
	stage_stop(s, 2, 3, MESSAGE_LEARN_ANSWER, true);
	uint64_t id = stage_ask(s, 3, update_to("second", "first"));
	stage_settle(s);
	assert_true(shows(s, 2, "first"));
	stage_stop(s, 3, 0, MESSAGE_WRITE, false);
	stage_stop(s, 3, 1, MESSAGE_WRITE, false);
	stage_settle(s);
	(void)token_of(s, id);
	assert_true(shows(s, 2, "first"));
	stage_stop(s, 2, 3, MESSAGE_LEARN_ANSWER, false);
	stage_settle(s);
	assert_true(shows(s, 2, "second"));
}

UNIT(cluster_overtaken) {
	const struct CMUnitTest tests[] = {
		WITH_REPLICA(an_update_reaches_a_master_before_the_commit_does),
		WITH_REPLICA(an_update_by_a_master_that_lacks_the_record_reaches_it),
		WITH_REPLICA(an_update_by_a_replica_reaches_a_master_before_the_commit_does),
		WITH_REPLICA(a_first_value_that_comes_after_the_write_is_replaced),
		WITH_REPLICA(a_master_that_was_sent_the_record_before_the_answer_is_sent_the_write),
		WITH_REPLICA(a_value_that_is_written_back_reaches_a_master_before_the_commit_does),
		WITH_REPLICA(an_update_reaches_a_master_before_its_predecessors_release_does),
		WITH_REPLICA(a_lock_that_is_released_is_not_brought_back_by_its_update),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
