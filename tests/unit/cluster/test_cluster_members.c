/* These tests are about what an operator asks for, and what follows from that (docs/protocol.md,
 * section 6, Membership). */
#include "members.h"

/* ---- one node ---- */

static void a_node_outside_waits_until_it_is_added(void **state) {
	struct stage *s = *state;
	stage_wait(s, SPAN_S);
	assert_int_equal(state_of(s, 3), CORE_OUTSIDE);
	add_replica(s, 0, "n4", "n4:7118");
	assert_int_equal(state_of(s, 3), CORE_FOLLOWING);
	for (uint32_t i = 0; i < 4; i++) {
		assert_int_equal(epoch_of(s, i), 2);
	}
}

static void a_node_that_came_before_the_birth_keeps_its_link(void **state) {
	struct stage *s = *state;
	assert_string_equal(core_peer(s->nodes[0].core, stage_peer(s, 0, 3))->name, "n4");
	uint64_t resets = stage_count(s, COUNT_link_reset);
	add_replica(s, 0, "n4", "n4:7118");
	assert_int_equal(stage_count(s, COUNT_link_reset), resets);
}

static void a_replica_that_is_promoted_votes_and_knows_what_is_held(void **state) {
	struct stage *s = *state;
	add_replica(s, 1, "n4", "n4:7118");
	take(s, 0, "k", stage_lock(1));
	must(s, 1, change_of(CHANGE_PROMOTE, "n4"));
	assert_int_equal(state_of(s, 3), CORE_VOTING);
	assert_int_equal(stage_status(s, 3).quorum, 3);
	assert_true(knows(s, 3, "k", stage_lock(1)));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, false), PAWL_OK);
	assert_int_equal(stage_do(s, 3, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
}

static void the_masters_copied_ahead_what_is_held(void **state) {
	struct stage *s = *state;
	add_replica(s, 1, "n4", "n4:7118");
	take(s, 0, "k", stage_lock(1));
	must(s, 1, change_of(CHANGE_PROMOTE, "n4"));
	assert_int_equal(stage_count(s, COUNT_copy_ahead_used), 4);
	assert_int_equal(stage_count(s, COUNT_handover), 4);
}

static void a_master_that_is_demoted_follows(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	must(s, 2, change_of(CHANGE_DEMOTE, "n3"));
	assert_int_equal(state_of(s, 2), CORE_FOLLOWING);
	assert_int_equal(stage_status(s, 0).quorum, 2);
	assert_true(holds(s, 0, "k", stage_lock(1)));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
}

static void a_master_that_is_removed_is_outside(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	must(s, 0, change_of(CHANGE_REMOVE, "n3"));
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(state_of(s, 2), CORE_OUTSIDE);
	assert_true(stage_noted(s, 2, NOTE_OUTSIDE));
	assert_true(holds(s, 0, "k", stage_lock(1)));
}

static void a_dead_master_is_replaced_by_a_replica(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	take(s, 0, "k", stage_lock(1));
	stage_kill(s, 1);
	must(s, 0, replacing("n2", "n4"));
	assert_int_equal(state_of(s, 3), CORE_VOTING);
	assert_int_equal(stage_status(s, 0).quorum, 2);
	/* The masters that are left know it. */
	stage_kill(s, 0);
	assert_true(holds(s, 3, "k", stage_lock(1)));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
}

static void a_master_whose_disk_was_lost_gets_its_place_back_under_its_name(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wipe(s, 2);
	assert_true(stage_start(s, 2));
	stage_wait(s, 500 * SPAN_MS);
	/* A node with a new identity is no master. */
	assert_int_not_equal(state_of(s, 2), CORE_VOTING);
	assert_true(stage_status(s, 0).peers[2].stranger);
	must(s, 0, replacing("n3", "n3"));
	assert_int_equal(state_of(s, 2), CORE_VOTING);
	assert_true(knows(s, 2, "k", stage_lock(1)));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

/* ---- many at once ---- */

static void a_whole_new_set_takes_over_with_all_leases(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	must(s, 0, set_of("456"));
	stage_wait(s, 100 * SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(state_of(s, i), CORE_OUTSIDE);
		assert_int_equal(state_of(s, 3 + i), CORE_VOTING);
	}
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	assert_true(holds(s, 4, "k", stage_lock(1)));
	assert_int_equal(stage_do(s, 3, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(release(s, 5, "k", stage_lock(1)), PAWL_OK);
	assert_true(take(s, 4, "k", stage_lock(3)) > token);
}

static void a_change_that_leaves_the_masters_the_same_needs_no_handover(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	must(s, 1, max_lease_of(20 * SPAN_S));
	assert_int_equal(stage_count(s, COUNT_epoch_kept_voting), 3);
	assert_int_equal(stage_count(s, COUNT_handover), 0);
	assert_int_equal(stage_do(s, 2, stage_acquire("long", stage_lock(2), 20 * SPAN_S, 0)),
		PAWL_OK);
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

static void a_node_is_found_at_its_new_address(void **state) {
	struct stage *s = *state;
	struct core_change c = set_of("123");
	struct core_change_node nodes[3];
	memcpy(nodes, c.nodes, sizeof nodes);
	nodes[1].address = slice_str("new2:7118");
	c.nodes = nodes;
	must(s, 0, c);
	memcpy(s->nodes[1].address, "new2:7118", 10);
	stage_break(s, 0, 1);
	stage_wait(s, 50 * SPAN_MS);
	assert_true(stage_status(s, 0).peers[1].linked);
}

/* ---- what is refused, and what need not be done ---- */

static void a_node_that_nobody_finds_is_not_added(void **state) {
	struct stage *s = *state;
	struct core_change c = change_of(CHANGE_ADD_REPLICA, "n9");
	c.address = slice_str("n9:7118");
	assert_int_equal(do_change(s, 0, c), PAWL_ENOTFOUND);
	assert_int_equal(do_change(s, 0, change_of(CHANGE_PROMOTE, "n9")), PAWL_ENOTFOUND);
	assert_int_equal(epoch_of(s, 0), 1);
}

static void two_nodes_cannot_have_one_address(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	struct core_change c = change_of(CHANGE_ADD_REPLICA, "n4");
	c.address = slice_str("n2:7118");
	assert_int_equal(do_change(s, 0, c), PAWL_EBADREQUEST);
	assert_int_equal(epoch_of(s, 0), 2);
}

static void adding_a_master_as_a_replica_elsewhere_does_not_move_it(void **state) {
	struct stage *s = *state;
	struct core_change c = change_of(CHANGE_ADD_REPLICA, "n2");
	c.address = slice_str("new2:7118");
	assert_int_equal(do_change(s, 0, c), PAWL_EBADREQUEST);
	c.address = slice_str("n2:7118");
	/* The node may have been promoted since. */
	assert_int_equal(do_change(s, 0, c), PAWL_OK);
	assert_int_equal(epoch_of(s, 0), 1);
}

static void what_is_so_already_is_answered_without_a_new_epoch(void **state) {
	struct stage *s = *state;
	for (int twice = 0; twice < 2; twice++) {
		add_replica(s, 0, "n4", "n4:7118");
	}
	assert_int_equal(epoch_of(s, 0), 2);
	for (int twice = 0; twice < 2; twice++) {
		must(s, 1, replacing("n3", "n4"));
	}
	assert_int_equal(epoch_of(s, 0), 3);
	for (int twice = 0; twice < 2; twice++) {
		must(s, 1, change_of(CHANGE_REMOVE, "n3"));
		must(s, 1, max_lease_of(9 * SPAN_S));
	}
	assert_int_equal(epoch_of(s, 0), 4);
	assert_int_equal(stage_count(s, COUNT_change_nothing), 5);
}

static void a_change_that_would_lose_the_quorum_is_refused_unless_told_to(void **state) {
	struct stage *s = *state;
	struct core_change c = change_of(CHANGE_DEMOTE, "n1");
	stage_kill(s, 1);
	assert_int_equal(do_change(s, 2, c), PAWL_ENOQUORUM);
	assert_int_equal(epoch_of(s, 2), 1);
	c.anyway = true;
	const struct stage_reply *r = await(s, ask_change(s, 2, c));
	assert_int_equal(r->r.error, PAWL_OK);
	assert_false(r->r.settled);
	/* n2, which is the first one now, is missing. */
	assert_int_equal(r->r.missing, 1);
	assert_int_equal(epoch_of(s, 2), 2);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(1), LEASE, 0)),
		PAWL_ENOQUORUM);
	assert_true(stage_start(s, 1));
	/* n2 was away. It takes over from n3, which took over from n1 and itself. */
	assert_true(stage_until_voting(s, 1, 2 * SPAN_S));
	take(s, 2, "k", stage_lock(2));
}

static bool waits_for(struct stage *s, uint32_t node, const char *text) {
	struct core_status status = stage_status(s, node);
	return status.change.step && strcmp(status.change.step, text) == 0;
}

/* This is the state right after a partition has healed: the links are a moment from being back. */
static void a_change_waits_for_masters_that_are_about_to_answer(void **state) {
	struct stage *s = *state;
	stage_kill(s, 1);
	uint64_t id = ask_change(s, 2, change_of(CHANGE_DEMOTE, "n1"));
	stage_wait(s, 300 * SPAN_MS);
	assert_false(answered(s, id));
	assert_true(waits_for(s, 2, "waiting for n2 to answer"));
	assert_true(stage_start(s, 1));
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_int_equal(epoch_of(s, 2), 2);
}

/* n4 is the fourth master of epoch 3, and dies before it votes. */
static void lose_the_fourth(struct stage *s) {
	add_replica(s, 0, "n4", "n4:7118");
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, true);
	uint64_t id = ask_change(s, 0, change_of(CHANGE_PROMOTE, "n4"));
	assert_true(wait_until_epoch(s, 3, 3, SPAN_S));
	stage_kill(s, 3);
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, false);
	const struct stage_reply *r = await(s, id);
	assert_int_equal(r->r.error, PAWL_OK);
	assert_true(r->r.settled && !r->r.complete);
	assert_int_equal(r->r.missing, 1 << 3);
}

static void a_change_before_which_one_is_not_complete_is_unsettled(void **state) {
	struct stage *s = *state;
	lose_the_fourth(s);
	assert_int_equal(do_change(s, 1, max_lease_of(9 * SPAN_S)), PAWL_EUNSETTLED);
	assert_int_equal(stage_last(s)->r.missing, 1 << 3);
	assert_int_equal(epoch_of(s, 1), 3);
	assert_true(stage_start(s, 3));
	assert_true(stage_until_voting(s, 3, 2 * SPAN_S));
	must(s, 1, max_lease_of(9 * SPAN_S));
}

static void a_change_waits_for_the_previous_one_to_be_complete(void **state) {
	struct stage *s = *state;
	lose_the_fourth(s);
	uint64_t id = ask_change(s, 1, max_lease_of(9 * SPAN_S));
	stage_wait(s, 300 * SPAN_MS);
	assert_false(answered(s, id));
	assert_true(waits_for(s, 1, "waiting for n4 to vote in the present configuration"));
	assert_true(stage_start(s, 3));
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_int_equal(epoch_of(s, 1), 4);
}

static void a_missing_master_may_be_replaced_before_the_change_is_complete(void **state) {
	struct stage *s = *state;
	lose_the_fourth(s);
	must(s, 1, change_of(CHANGE_REMOVE, "n4"));
	assert_int_equal(epoch_of(s, 1), 4);
	assert_int_equal(stage_status(s, 1).quorum, 2);
}

static void a_node_coordinates_one_change_at_a_time(void **state) {
	struct stage *s = *state;
	stage_stop(s, 1, 0, MESSAGE_DECREE_PROMISE, true);
	stage_stop(s, 2, 0, MESSAGE_DECREE_PROMISE, true);
	uint64_t first = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	assert_int_equal(do_change(s, 0, max_lease_of(8 * SPAN_S)), PAWL_EBUSY);
	stage_stop(s, 1, 0, MESSAGE_DECREE_PROMISE, false);
	assert_int_equal(await(s, first)->r.error, PAWL_OK);
}

static void a_node_outside_coordinates_none(void **state) {
	struct stage *s = *state;
	assert_int_equal(do_change(s, 3, max_lease_of(9 * SPAN_S)), PAWL_ERECOVERING);
}

/* ---- without an operator ---- */

static int setup_auto(void **state) {
	struct stage_options o = named_options();
	o.auto_replace = true;
	*state = stage_born(&o);
	return 0;
}

static void a_lost_disk_costs_no_operator_where_the_masters_are_told_so(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wipe(s, 1);
	assert_true(stage_start(s, 1));
	assert_true(stage_until_voting(s, 1, SPAN_S));
	assert_true(knows(s, 1, "k", stage_lock(1)));
	assert_int_equal(epoch_of(s, 0), 2);
}

/* ---- the majority is lost for good ---- */

static struct core_change forcing(bool confirmed) {
	struct core_change c = change_of(CHANGE_FORCE, "");
	c.anyway = confirmed;
	return c;
}

static void force_starts_over_after_the_longest_lease_with_a_clock_beyond_all(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1)), ceiling = s->nodes[2].disk.ceiling;
	struct id128 before = s->nodes[2].disk.config.cluster_id;
	stage_kill(s, 0);
	stage_kill(s, 1);
	assert_int_equal(do_change(s, 2, forcing(false)), PAWL_EBADREQUEST);
	assert_int_equal(do_change(s, 2, forcing(true)), PAWL_OK);
	assert_int_not_equal(memcmp(&before, &s->nodes[2].disk.config.cluster_id,
		sizeof before), 0);
	assert_int_equal(state_of(s, 2), CORE_RECOVERING);
	stage_wait(s, 10 * SPAN_S);
	assert_int_equal(state_of(s, 2), CORE_RECOVERING);
	/* This is max_lease, 10 s (1 + 2 %). */
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(state_of(s, 2), CORE_VOTING);
	assert_true(take(s, 2, "k", stage_lock(2)) > token);
	assert_true(stage_last(s)->r.token > ceiling + CLOCK_JUMP_MAX);
}

static void a_replica_that_is_added_after_force_coordinates(void **state) {
	struct stage *s = *state;
	stage_kill(s, 1);
	stage_kill(s, 2);
	struct core_change c = { .kind = CHANGE_FORCE, .anyway = true };
	assert_int_equal(do_change(s, 0, c), PAWL_OK);
	stage_wait(s, 12 * SPAN_S);
	assert_int_equal(state_of(s, 0), CORE_VOTING);
	add_replica(s, 0, "n4", "n4:7118");
	stage_wait(s, 3 * SPAN_S);
	assert_int_equal(stage_do(s, 3, stage_acquire("k", stage_lock(1), LEASE, 0)), PAWL_OK);
}

static void the_masters_of_the_time_before_force_are_not_listened_to(void **state) {
	struct stage *s = *state;
	stage_kill(s, 0);
	stage_kill(s, 1);
	assert_int_equal(do_change(s, 2, forcing(true)), PAWL_OK);
	uint64_t hash = stage_status(s, 2).config_hash;
	assert_true(stage_start(s, 0));
	assert_true(stage_start(s, 1));
	stage_wait(s, 30 * SPAN_S);
	assert_int_equal(stage_status(s, 2).config_hash, hash);
	assert_int_equal(state_of(s, 2), CORE_VOTING);
	assert_int_equal(epoch_of(s, 0), 1);
}

UNIT(cluster_members) {
	const struct CMUnitTest tests[] = {
		MEMBERS(a_node_outside_waits_until_it_is_added),
		MEMBERS(a_node_that_came_before_the_birth_keeps_its_link),
		MEMBERS(a_replica_that_is_promoted_votes_and_knows_what_is_held),
		MEMBERS(the_masters_copied_ahead_what_is_held),
		MEMBERS(a_master_that_is_demoted_follows),
		MEMBERS(a_master_that_is_removed_is_outside),
		MEMBERS(a_dead_master_is_replaced_by_a_replica),
		MEMBERS(a_master_whose_disk_was_lost_gets_its_place_back_under_its_name),
		MEMBERS_3(a_whole_new_set_takes_over_with_all_leases),
		MEMBERS(a_change_that_leaves_the_masters_the_same_needs_no_handover),
		MEMBERS(a_node_is_found_at_its_new_address),
		MEMBERS(a_node_that_nobody_finds_is_not_added),
		MEMBERS(two_nodes_cannot_have_one_address),
		MEMBERS(adding_a_master_as_a_replica_elsewhere_does_not_move_it),
		MEMBERS(what_is_so_already_is_answered_without_a_new_epoch),
		MEMBERS(a_change_that_would_lose_the_quorum_is_refused_unless_told_to),
		MEMBERS(a_change_waits_for_masters_that_are_about_to_answer),
		MEMBERS(a_change_waits_for_the_previous_one_to_be_complete),
		MEMBERS(a_change_before_which_one_is_not_complete_is_unsettled),
		MEMBERS(a_missing_master_may_be_replaced_before_the_change_is_complete),
		MEMBERS(a_node_coordinates_one_change_at_a_time),
		MEMBERS(a_node_outside_coordinates_none),
		cmocka_unit_test_setup_teardown(
			a_lost_disk_costs_no_operator_where_the_masters_are_told_so, setup_auto,
			named_teardown),
		NAMED(force_starts_over_after_the_longest_lease_with_a_clock_beyond_all),
		MEMBERS(a_replica_that_is_added_after_force_coordinates),
		NAMED(the_masters_of_the_time_before_force_are_not_listened_to),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
