/* For whom a change waits while the masters of the next epoch copy beforehand (docs/protocol.md, section 6). */
#include "members.h"

/* n4 is a replica. */
static int setup_replica(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	*state = stage_born(&o);
	return 0;
}

/* n4 is to be a master, and does not say how far it is. */
static uint64_t change_that_waits_for_n4(struct stage *s) {
	take(s, 0, "k", stage_lock(1));
	stage_lose(s, 3, 0, MESSAGE_PREMERGE_ANSWER, true);
	uint64_t id = ask_change(s, 0, set_of("124"));
	stage_wait(s, 50 * SPAN_MS);
	assert_false(answered(s, id));
	return id;
}

static void who_comes_back_as_another_node_is_not_waited_for(void **state) {
	struct stage *s = *state;
	uint64_t id = change_that_waits_for_n4(s);
	stage_wipe(s, 3);
	assert_true(stage_start(s, 3));
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
}

static void a_change_waits_no_longer_for_one_master_because_another_one_goes_on_copying(void **state) {
	struct stage *s = *state;
	uint64_t id = change_that_waits_for_n4(s);
	for (int i = 0; i < 300 && !answered(s, id); i++) {
		assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
		stage_wait(s, 10 * SPAN_MS);
	}
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ETIMEOUT);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(who_comes_back_as_another_node_is_not_waited_for, setup_replica, named_teardown),
		cmocka_unit_test_setup_teardown(a_change_waits_no_longer_for_one_master_because_another_one_goes_on_copying, setup_replica, named_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
