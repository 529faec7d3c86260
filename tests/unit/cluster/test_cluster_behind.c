/* A change gives no part to a node that has not adopted the present configuration
 * (docs/protocol.md, section 6, The decree). */
#include "takeover.h"

static int setup_five_and_three(void **state) {
	return named_setup_of(state, 5, 3);
}

/* n5 has missed that all others were replaced by n6, n7 and n8. Of the masters that it knows n1
 * alone is left, which is a master no more. */
static void leave_one_behind(struct stage *s) {
	stage_isolate(s, 4, true);
	must(s, 0, set_of("678"));
	for (uint32_t i = 1; i < 4; i++) {
		stage_kill(s, i);
	}
	stage_isolate(s, 4, false);
	stage_mend(s);
	stage_wait(s, SPAN_S);
	assert_int_equal(epoch_of(s, 4), 1);
}

static void is_refused_for(struct stage *s, uint64_t id, const char *name) {
	const char *why = ": has not adopted the present configuration";
	const struct stage_reply *r = await(s, id);
	assert_int_equal(r->r.error, PAWL_EUNSETTLED);
	assert_true(r->why.size > strlen(name) + strlen(why));
	assert_memory_equal(r->why.bytes, name, strlen(name));
	assert_memory_equal(r->why.bytes + strlen(name), why, strlen(why));
}

static uint64_t ask_to_add(struct stage *s, uint32_t node, const char *name, const char *address) {
	struct core_change add = change_of(CHANGE_ADD_REPLICA, name);
	add.address = slice_str(address);
	return ask_change(s, node, add);
}

static void a_node_that_cannot_know_the_present_configuration_is_not_let_in(void **state) {
	struct stage *s = *state;
	leave_one_behind(s);
	is_refused_for(s, ask_to_add(s, 5, "n5", "n5:7118"), "n5");
	assert_int_equal(epoch_of(s, 5), 2);
}

static void a_change_waits_for_who_has_not_adopted_the_present_configuration_yet(void **state) {
	struct stage *s = *state;
	leave_one_behind(s);
	const uint64_t id = ask_to_add(s, 5, "n5", "n5:7118");
	stage_wait(s, 300 * SPAN_MS);
	assert_false(answered(s, id));
	assert_string_equal(stage_status(s, 5).change.step,
		"waiting for n5 to adopt the present configuration");
	/* Now one more node says so. */
	assert_true(stage_start(s, 1));
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	stage_wait(s, SPAN_S);
	assert_int_equal(epoch_of(s, 4), 3);
	assert_int_equal(state_of(s, 4), CORE_FOLLOWING);
}

/* With two masters both have to vote. */
static void a_node_that_cannot_know_the_present_configuration_does_not_become_a_master(
	void **state) {
	struct stage *s = *state;
	leave_one_behind(s);
	struct core_change c = set_of("65");
	is_refused_for(s, ask_change(s, 5, c), "n5");
	c.anyway = true;
	is_refused_for(s, ask_change(s, 5, c), "n5");
	take(s, 5, "k", stage_lock(1));
}

/* n4 is in the configuration, and was away while all masters that it knew were replaced. */
static void a_replica_that_cannot_know_the_present_configuration_is_not_promoted(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	add_replica(s, 0, "n5", "n5:7118");
	add_replica(s, 0, "n6", "n6:7118");
	stage_isolate(s, 3, true);
	must(s, 0, replacing("n1", "n5"));
	must(s, 4, replacing("n2", "n6"));
	must(s, 4, change_of(CHANGE_REMOVE, "n3"));
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	stage_isolate(s, 3, false);
	stage_mend(s);
	stage_wait(s, SPAN_S);
	is_refused_for(s, ask_change(s, 4, change_of(CHANGE_PROMOTE, "n4")), "n4");
	assert_int_equal(epoch_of(s, 4), 7);
	/* A removal gives n4 no part, and so is not refused. */
	must(s, 4, change_of(CHANGE_REMOVE, "n4"));
}

static int setup_auto(void **state) {
	struct stage_options o = named_options();
	o.outside = 3;
	o.auto_replace = true;
	*state = stage_born(&o);
	return 0;
}

/* n6 has lost its files, and none of the nodes that its own file names is there. It takes its place
 * as soon as one of them is, and until then it keeps no operator from making a change. */
static void a_place_is_offered_to_no_node_that_cannot_take_it(void **state) {
	struct stage *s = *state;
	must(s, 0, set_of("456"));
	stage_wait(s, SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	stage_wipe(s, 5);
	assert_true(stage_start(s, 5));
	stage_mend(s);
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(stage_count(s, COUNT_auto_replaced), 0);
	assert_int_equal(do_change(s, 4, max_lease_of(9 * SPAN_S)), PAWL_OK);
	assert_true(stage_start(s, 0));
	stage_mend(s);
	assert_true(stage_until_voting(s, 5, 5 * SPAN_S));
	assert_true(stage_count(s, COUNT_auto_replaced) > 0);
}

UNIT(cluster_behind) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_node_that_cannot_know_the_present_configuration_is_not_let_in,
			setup_five_and_three, named_teardown),
		cmocka_unit_test_setup_teardown(
			a_change_waits_for_who_has_not_adopted_the_present_configuration_yet,
			setup_five_and_three, named_teardown),
		cmocka_unit_test_setup_teardown(
			a_node_that_cannot_know_the_present_configuration_does_not_become_a_master,
			setup_five_and_three, named_teardown),
		MEMBERS_3(a_replica_that_cannot_know_the_present_configuration_is_not_promoted),
		cmocka_unit_test_setup_teardown(a_place_is_offered_to_no_node_that_cannot_take_it,
			setup_auto, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
