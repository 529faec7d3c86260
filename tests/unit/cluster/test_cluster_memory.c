/* These tests are about what a node has to know, and to have waited for, when one epoch follows
 * another before all is at rest (docs/protocol.md, section 6). */
#include <stdio.h>

#include "members.h"

/* The longest lease of the first epoch as others measure it: max_lease (1 + 2 drift). */
#define LONGEST (10 * SPAN_S + 200 * SPAN_MS)

/* n4 is a replica, and n5 is outside. */
static int setup_spare(void **state) {
	struct stage_options o = named_options();
	o.replicas = o.outside = 1;
	*state = stage_born(&o);
	return 0;
}
#define SPARE(test) cmocka_unit_test_setup_teardown(test, setup_spare, named_teardown)

static void restart(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	assert_true(stage_start(s, node));
	stage_mend(s);
}

static uint32_t voters(const struct stage *s, uint32_t first, uint32_t last) {
	uint32_t n = 0;
	for (uint32_t i = first; i <= last; i++) {
		n += state_of(s, i) == CORE_VOTING;
	}
	return n;
}

static struct core_change anyway(struct core_change c) {
	c.anyway = true;
	return c;
}

static void take_for(struct stage *s, uint32_t node, span_ns lease) {
	assert_int_equal(stage_do(s, node, stage_acquire("k", stage_lock(1), lease, 0)), PAWL_OK);
}

/* ---- a snapshot that ends while the next epoch is being written ---- */

static int setup_five(void **state) {
	struct stage_options o = named_options();
	o.masters = 5;
	*state = stage_born(&o);
	return 0;
}

/* n3 rejoins. The ends of n1's and n4's snapshots have come; that of n2's is on its way, and stays
 * the last thing that n2 has said. */
static void a_master_that_adopts_while_it_rejoins_has_not_voted_in_the_new_epoch(void **state) {
	struct stage *s = *state;
	stage_stop(s, 1, 2, MESSAGE_SNAPSHOT_END, true);
	stage_lose(s, 4, 2, MESSAGE_SNAPSHOT_END, true);
	restart(s, 2);
	while (!stage_head_is(s, 1, 2, MESSAGE_SNAPSHOT_END)) {
		stage_wait(s, SPAN_MS);
	}
	assert_int_equal(state_of(s, 2), CORE_RECOVERING);
	s->nodes[2].disk_held = true;
	stage_cut(s, 2, 0, true);
	(void)ask_change(s, 0, anyway(set_of("3")));
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	assert_int_equal(epoch_of(s, 1), 2);
	stage_cut(s, 2, 0, false);
	stage_mend(s);
	stage_settle(s);
	/* Three nodes have told it of the epoch, and it is not on disk yet. */
	assert_int_equal(epoch_of(s, 2), 1);
	stage_stop(s, 1, 2, MESSAGE_SNAPSHOT_END, false);
	stage_settle(s);
	s->nodes[2].disk_held = false;
	stage_flush(s, 2);
	assert_int_equal(s->nodes[2].disk.config.epoch, 2);
	assert_false(s->nodes[2].disk.voted);
	assert_int_equal(state_of(s, 2), CORE_HANDOVER);
}

/* ---- leases longer than what is allowed by now ---- */

static void add_three(struct stage *s) {
	add_replica(s, 0, "n4", "n4:7118");
	add_replica(s, 0, "n5", "n5:7118");
	add_replica(s, 0, "n6", "n6:7118");
}

static void a_source_that_has_forgotten_says_how_long_its_leases_may_have_been(void **state) {
	struct stage *s = *state;
	add_three(s);
	take_for(s, 0, 9 * SPAN_S);
	must(s, 0, max_lease_of(SPAN_S));
	for (uint32_t i = 3; i < 6; i++) {
		/* Nothing is copied before the decree. */
		stage_cut(s, 0, i, true);
	}
	restart(s, 1);
	restart(s, 2);
	(void)ask_change(s, 0, anyway(set_of("456")));
	for (uint32_t i = 3; i < 6; i++) {
		assert_true(wait_until_epoch(s, i, 6, SPAN_S));
	}
	stage_kill(s, 0);
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(voters(s, 3, 5), 0);
	/* An operator can see how long they still wait. */
	span_ns left = stage_status(s, 3).left;
	assert_true(left > 4 * SPAN_S && left < LONGEST - 4 * SPAN_S);
	stage_wait(s, LONGEST);
	assert_int_equal(voters(s, 3, 5), 3);
}

static void a_longer_lease_that_was_taken_over_is_waited_for_after_a_restart(void **state) {
	struct stage *s = *state;
	take_for(s, 0, 9 * SPAN_S);
	must(s, 0, max_lease_of(SPAN_S));
	must(s, 0, set_of("456"));
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	for (uint32_t i = 3; i < 6; i++) {
		stage_kill(s, i);
	}
	for (uint32_t i = 3; i < 6; i++) {
		assert_true(stage_start(s, i));
	}
	stage_mend(s);
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(voters(s, 3, 5), 0);
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(voters(s, 3, 5), 3);
}

/* ---- after a forced start ---- */

static void what_was_granted_after_a_forced_start_is_waited_for(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	assert_int_equal(do_change(s, 3, anyway(change_of(CHANGE_FORCE, ""))), PAWL_OK);
	assert_true(stage_until_voting(s, 3, LONGEST + SPAN_S));
	take_for(s, 3, 9 * SPAN_S);
	must(s, 3, max_lease_of(SPAN_S));
	restart(s, 3);
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(state_of(s, 3), CORE_RECOVERING);
	stage_wait(s, 6 * SPAN_S);
	assert_int_equal(state_of(s, 3), CORE_VOTING);
}

static void a_forced_start_waits_for_the_longest_lease_it_knows_of(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n5", "n5:7118");
	take_for(s, 0, 9 * SPAN_S);
	must(s, 0, max_lease_of(SPAN_S));
	stage_wait(s, 200 * SPAN_MS);
	for (uint32_t i = 0; i < 4; i++) {
		stage_kill(s, i);
	}
	assert_int_equal(do_change(s, 4, anyway(change_of(CHANGE_FORCE, ""))), PAWL_OK);
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(state_of(s, 4), CORE_RECOVERING);
	stage_wait(s, 6 * SPAN_S);
	assert_int_equal(state_of(s, 4), CORE_VOTING);
}

/* ---- no room ---- */

static int setup_narrow(void **state) {
	struct stage_options o = named_options();
	o.outside = 3;
	o.unchecked = true;
	o.limits.memory_bytes = (uint64_t)4 << 20;
	*state = stage_born(&o);
	return 0;
}

static void a_change_that_has_no_room_for_two_tables_is_refused(void **state) {
	struct stage *s = *state;
	static uint8_t value[4000];
	char name[16];
	int error = PAWL_OK;
	for (uint32_t i = 0; error == PAWL_OK; i++) {
		snprintf(name, sizeof name, "key%u", i);
		struct core_request r = stage_acquire(name, stage_lock(1), 10 * SPAN_S, 0);
		memcpy(r.lock_id.b, &i, sizeof i);
		r.value = slice_of(value, sizeof value);
		error = stage_do(s, 0, r);
	}
	assert_string_equal(stage_last(s)->r.field, "memory");
	const struct stage_reply *reply = await(s, ask_change(s, 0, set_of("124")));
	assert_int_equal(reply->r.error, PAWL_EFULL);
	assert_int_equal(epoch_of(s, 0), 1);
	assert_int_equal(voters(s, 0, 2), 3);
}

UNIT(cluster_memory) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_master_that_adopts_while_it_rejoins_has_not_voted_in_the_new_epoch,
			setup_five, named_teardown),
		MEMBERS_3(a_source_that_has_forgotten_says_how_long_its_leases_may_have_been),
		MEMBERS_3(a_longer_lease_that_was_taken_over_is_waited_for_after_a_restart),
		SPARE(what_was_granted_after_a_forced_start_is_waited_for),
		SPARE(a_forced_start_waits_for_the_longest_lease_it_knows_of),
		cmocka_unit_test_setup_teardown(a_change_that_has_no_room_for_two_tables_is_refused,
			setup_narrow, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
