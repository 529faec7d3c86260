/* These tests ask what a node believes of a later configuration (docs/protocol.md, section 6,
 * Proof). */
#include "takeover.h"

/* n1 and n2 accept, and n1 alone knows that the configuration is chosen; n3 has heard of
 * nothing. */
static void leave_one_who_knows(struct stage *s) {
	stage_lose(s, 0, 2, MESSAGE_DECREE_ACCEPT, true);
	lose_to(s, 1, MESSAGE_DECREE_ACCEPTED, true);
	lose_to(s, 2, MESSAGE_DECREE_ACCEPTED, true);
	lose_to(s, 1, MESSAGE_CONFIG, true);
	lose_to(s, 2, MESSAGE_CONFIG, true);
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	assert_int_equal(epoch_of(s, 1), 1);
	assert_int_equal(epoch_of(s, 2), 1);
}

static void a_master_that_has_accepted_believes_one_that_says_that_it_was_chosen(void **state) {
	struct stage *s = *state;
	leave_one_who_knows(s);
	lose_to(s, 1, MESSAGE_CONFIG, false);
	stage_wait(s, 2 * REQUEST);
	assert_int_equal(epoch_of(s, 1), 2);
	assert_int_equal(epoch_of(s, 2), 1);
	lose_to(s, 2, MESSAGE_CONFIG, false);
	stage_wait(s, 2 * REQUEST);
	assert_int_equal(epoch_of(s, 2), 2);
}

static void one_claim_is_passed_on_when_the_other_master_is_dead(void **state) {
	struct stage *s = *state;
	leave_one_who_knows(s);
	stage_kill(s, 1);
	lose_to(s, 2, MESSAGE_CONFIG, false);
	stage_wait(s, 3 * REQUEST);
	/* n2 may be back in a moment. */
	assert_int_equal(epoch_of(s, 2), 1);
	assert_true(wait_until_epoch(s, 2, 2, 10 * REQUEST));
	stage_wait(s, SPAN_S);
	take(s, 0, "k", stage_lock(1));
}

static int setup_five(void **state) {
	return named_setup_of(state, 5, 0);
}

/* Of five masters n1 alone knows, and n2 and n3, which have accepted with it, are dead. n4
 * and n5 need each other's word as well as n1's. */
static void those_in_doubt_pass_a_claim_on_to_each_other(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 1; i < 5; i++) {
		lose_to(s, i, MESSAGE_DECREE_ACCEPTED, true);
		lose_to(s, i, MESSAGE_CONFIG, true);
	}
	stage_lose(s, 0, 3, MESSAGE_DECREE_ACCEPT, true);
	stage_lose(s, 0, 4, MESSAGE_DECREE_ACCEPT, true);
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	stage_kill(s, 1);
	stage_kill(s, 2);
	lose_to(s, 3, MESSAGE_CONFIG, false);
	lose_to(s, 4, MESSAGE_CONFIG, false);
	assert_true(wait_until_epoch(s, 3, 2, 10 * REQUEST));
	assert_true(wait_until_epoch(s, 4, 2, 10 * REQUEST));
	stage_wait(s, SPAN_S);
	take(s, 4, "k", stage_lock(1));
}

/* Each acceptance goes to all masters, so that nobody need tell those who have accepted. */
static void what_is_chosen_is_known_without_its_proposer(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i++) {
		lose_to(s, i, MESSAGE_CONFIG, true);
	}
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, i, 0, MESSAGE_DECREE_ACCEPTED, true);
	}
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 1);
	stage_kill(s, 0);
	stage_settle(s);
	assert_int_equal(epoch_of(s, 1), 2);
	assert_int_equal(epoch_of(s, 2), 2);
}

static int setup_four(void **state) {
	return named_setup_of(state, 4, 0);
}

/* n1 alone knows that the configuration is chosen. n2 and n3 have accepted, and did not hear that
 * of each other. With n4 they are enough to go on, so that nobody is in doubt. */
static void a_master_that_has_accepted_says_so_again_when_it_hears_the_choice(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 3, MESSAGE_DECREE_ACCEPT, true);
	for (uint32_t i = 1; i < 4; i++) {
		lose_to(s, i, MESSAGE_DECREE_ACCEPTED, true);
		lose_to(s, i, MESSAGE_CONFIG, true);
	}
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	/* n3 knows only from its disk what it has accepted. */
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	stage_settle(s);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(epoch_of(s, i), 1);
		lose_to(s, i, MESSAGE_DECREE_ACCEPTED, false);
		lose_to(s, i, MESSAGE_CONFIG, false);
	}
	stage_mend(s);
	stage_wait(s, 2 * REQUEST);
	for (uint32_t i = 1; i < 4; i++) {
		assert_int_equal(epoch_of(s, i), 2);
	}
}

/* n4, a replica, is away while n2 and then n3 are replaced. Of the masters that it knows n1 alone
 * is left. */
static void a_replica_that_was_away_comes_back_with_one_of_the_masters_it_knew(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	add_replica(s, 0, "n5", "n5:7118");
	add_replica(s, 0, "n6", "n6:7118");
	stage_kill(s, 3);
	must(s, 0, replacing("n2", "n5"));
	stage_kill(s, 1);
	must(s, 0, replacing("n3", "n6"));
	stage_kill(s, 2);
	assert_true(stage_start(s, 3));
	stage_mend(s);
	assert_true(wait_until_epoch(s, 3, 6, 2 * SPAN_S));
	assert_int_equal(state_of(s, 3), CORE_FOLLOWING);
}

static int setup_five_and_three(void **state) {
	return named_setup_of(state, 5, 3);
}

/* Of the masters that n5 knew n1 alone is left, which is a master no more. n5 cannot know the
 * present configuration, and says so. */
static void a_node_that_was_away_for_too_long_says_what_helps(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 4, true);
	must(s, 0, set_of("678"));
	for (uint32_t i = 1; i < 4; i++) {
		stage_kill(s, i);
	}
	stage_isolate(s, 4, false);
	stage_mend(s);
	stage_wait(s, 9 * SPAN_S);
	assert_false(stage_noted(s, 4, NOTE_UNPROVEN));
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(epoch_of(s, 4), 1);
	assert_true(stage_noted(s, 4, NOTE_UNPROVEN));
	assert_non_null(strstr(stage_status(s, 4).waits_for, "state directory"));
	/* Now one more node says so. */
	assert_true(stage_start(s, 1));
	stage_mend(s);
	assert_true(wait_until_epoch(s, 4, 2, 5 * SPAN_S));
}

/* Of the masters that n1 knew n3 and n5 are left. n5 is a master of the newest epoch. n3 has missed
 * that epoch, n1 is no master of the one that n3 is in, and too few of that one's masters are
 * left. */
static void a_master_in_doubt_passes_a_claim_on_to_those_in_earlier_epochs(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 0, true);
	must(s, 4, set_of("23456"));
	stage_isolate(s, 2, true);
	(void)do_change(s, 4, set_of("578"));
	assert_int_equal(epoch_of(s, 4), 3);
	stage_kill(s, 1);
	stage_kill(s, 3);
	stage_kill(s, 5);
	stage_isolate(s, 0, false);
	stage_isolate(s, 2, false);
	stage_mend(s);
	assert_true(wait_until_epoch(s, 0, 3, 5 * SPAN_S));
	assert_int_equal(epoch_of(s, 2), 2);
}

/* A node that belongs to nothing yet believes the masters that its own file names. n5 has lost its
 * files, and n4 is a replica. */
static void a_node_outside_believes_no_replica(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	add_replica(s, 0, "n5", "n5:7118");
	stage_wipe(s, 4);
	stage_isolate(s, 4, true);
	stage_cut(s, 4, 3, false);
	assert_true(stage_start(s, 4));
	stage_mend(s);
	stage_settle(s);
	const struct config c = taken_over(s, 0, 3, 5);
	say(s, 3, 4, MESSAGE_CONFIG, &c);
	stage_wait(s, SPAN_S);
	assert_int_equal(epoch_of(s, 4), 0);
	stage_isolate(s, 4, false);
	stage_mend(s);
	stage_wait(s, SPAN_S);
	assert_int_equal(epoch_of(s, 4), 3);
	/* n5 does not believe it later, either. */
	say(s, 3, 4, MESSAGE_CONFIG, &c);
	assert_int_equal(epoch_of(s, 4), 3);
}

/* n2 has missed that n4 stands in its place, and n3 has lost its files since then. Now n1 has lost
 * its own files, meets n2 first, and believes what n2 says. Of the masters that n2 knows nobody
 * else is left; but n1's file names n3. */
static void a_node_outside_that_was_told_of_an_old_epoch_still_believes_whom_its_file_names(
	void **state) {
	struct stage *s = *state;
	stage_isolate(s, 1, true);
	must(s, 0, set_of("134"));
	stage_wipe(s, 2);
	assert_true(stage_start(s, 2));
	must(s, 0, replacing("n3", "n3"));
	assert_int_equal(epoch_of(s, 0), 3);
	stage_isolate(s, 1, false);
	stage_cut(s, 0, 2, true);
	stage_cut(s, 0, 3, true);
	stage_wipe(s, 0);
	assert_true(stage_start(s, 0));
	stage_mend(s);
	stage_wait(s, REQUEST);
	assert_int_equal(epoch_of(s, 0), 1);
	stage_cut(s, 0, 2, false);
	stage_cut(s, 0, 3, false);
	stage_mend(s);
	assert_true(wait_until_epoch(s, 0, 3, SPAN_S));
	must(s, 2, replacing("n1", "n1"));
}

/* n4 takes over and waits for the ends of two snapshots. n1 has sent its own; n5 says that it is
 * n2, and that it never voted. */
static void a_link_under_another_name_does_not_stand_for_a_member(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_kill(s, 4);
	s->nodes[4].disk.node_id = s->nodes[1].disk.node_id;
	assert_true(stage_start(s, 4));
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, i, 3, MESSAGE_SNAPSHOT_END, true);
	}
	(void)ask_change(s, 0, set_of("124"));
	assert_true(wait_until_epoch(s, 3, 2, SPAN_S));
	stage_mend(s);
	stage_settle(s);
	assert_int_not_equal(stage_peer(s, 3, 4), STAGE_NOBODY);
	for (uint64_t round = 1; round < 20; round++) {
		stage_inject(s, 4, 3, &(struct message){ .kind = MESSAGE_SNAPSHOT_END,
			.round = round, .flags = FLAG_NEVER });
	}
	stage_settle(s);
	assert_int_equal(state_of(s, 3), CORE_HANDOVER);
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, i, 3, MESSAGE_SNAPSHOT_END, false);
		stage_break(s, i, 3);
	}
	stage_mend(s);
	assert_true(stage_until_voting(s, 3, SPAN_S));
	assert_true(knows(s, 3, "k", stage_lock(1)));
}

/* The others are dead. The node starts over, and n2, with nothing on its disk, is to be added. */
static int start_over_with(struct stage *s, uint32_t node) {
	add_replica(s, 0, "n4", "n4:7118");
	for (uint32_t i = 0; i < 4; i++) {
		if (i != node) {
			stage_kill(s, i);
		}
	}
	struct core_change force = change_of(CHANGE_FORCE, "");
	force.anyway = true;
	assert_int_equal(do_change(s, node, force), PAWL_OK);
	assert_true(stage_until_voting(s, node, 20 * SPAN_S));
	stage_wipe(s, 1);
	assert_true(stage_start(s, 1));
	struct core_change add = change_of(CHANGE_ADD_REPLICA, "n2");
	add.address = slice_str("n2:7118");
	const int error = do_change(s, node, add);
	stage_wait(s, 15 * SPAN_S);
	return error;
}

static void after_a_new_start_an_emptied_node_follows_a_master_that_its_file_names(void **state) {
	assert_int_equal(start_over_with(*state, 0), PAWL_OK);
	assert_int_equal(state_of(*state, 1), CORE_FOLLOWING);
}

static void after_a_new_start_an_emptied_node_says_that_its_file_names_no_master(void **state) {
	assert_int_equal(start_over_with(*state, 3), PAWL_EUNSETTLED);
	assert_int_equal(epoch_of(*state, 1), 0);
	assert_non_null(strstr(stage_status(*state, 1).waits_for, "[cluster.masters]"));
}

UNIT(cluster_proof) {
	const struct CMUnitTest tests[] = {
		MEMBERS(a_master_that_has_accepted_believes_one_that_says_that_it_was_chosen),
		MEMBERS(one_claim_is_passed_on_when_the_other_master_is_dead),
		cmocka_unit_test_setup_teardown(those_in_doubt_pass_a_claim_on_to_each_other,
			setup_five, named_teardown),
		MEMBERS(what_is_chosen_is_known_without_its_proposer),
		cmocka_unit_test_setup_teardown(
			a_master_that_has_accepted_says_so_again_when_it_hears_the_choice,
			setup_four, named_teardown),
		MEMBERS_3(a_replica_that_was_away_comes_back_with_one_of_the_masters_it_knew),
		cmocka_unit_test_setup_teardown(a_node_that_was_away_for_too_long_says_what_helps,
			setup_five_and_three, named_teardown),
		cmocka_unit_test_setup_teardown(
			a_master_in_doubt_passes_a_claim_on_to_those_in_earlier_epochs,
			setup_five_and_three, named_teardown),
		MEMBERS_3(a_node_outside_believes_no_replica),
		MEMBERS_3(
		a_node_outside_that_was_told_of_an_old_epoch_still_believes_whom_its_file_names),
		MEMBERS_3(a_link_under_another_name_does_not_stand_for_a_member),
		MEMBERS(after_a_new_start_an_emptied_node_follows_a_master_that_its_file_names),
		MEMBERS(after_a_new_start_an_emptied_node_says_that_its_file_names_no_master),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
