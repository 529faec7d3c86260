/* These tests are about replicas: what they show, what their clients may do, whom they follow, and
 * how old they say their view is (docs/protocol.md, section 7). */
#include "replicas.h"

static int setup_two(void **state) {
	return setup_with(state, 2, 0);
}

static void a_write_is_shown_within_an_interval_and_a_message(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	stage_wait(s, 6 * SPAN_MS);
	const struct core_reply *r = look(s, REPLICA, "k");
	assert_true(r->held && r->replica);
	assert_int_equal(r->entry.token, token);
	release(s, 1, "k", stage_lock(1));
	stage_wait(s, 6 * SPAN_MS);
	assert_false(look(s, REPLICA, "k")->held);
}

static void the_value_is_the_one_that_was_written_last(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str("a longer one than before");
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	stage_wait(s, SHORT);
	look(s, REPLICA, "k");
	assert_memory_equal(stage_last(s)->value.bytes, "a longer one than before", 24);
}

static void what_remains_of_a_lease_is_shipped_and_not_the_whole(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_cut(s, REPLICA, master_of(s, REPLICA), true);
	stage_isolate(s, REPLICA, true);
	stage_wait(s, SPAN_S);
	stage_isolate(s, REPLICA, false);
	stage_wait(s, SHORT);
	const struct core_reply *r = look(s, REPLICA, "k");
	assert_true(r->held);
	assert_true(r->entry.remaining <= LEASE - SPAN_S + SPAN_MS);
}

static void a_lease_that_runs_out_is_gone_from_the_replica_too(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_true(look(s, REPLICA, "k")->held);
	stage_wait(s, LEASE);
	assert_false(look(s, REPLICA, "k")->held);
	assert_int_equal(stage_status(s, REPLICA).keys, 0);
}

static void an_extension_reaches_the_replica(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SPAN_S);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), 2 * LEASE, true), PAWL_OK);
	stage_wait(s, LEASE);
	assert_true(look(s, REPLICA, "k")->held);
}

static void clients_of_a_replica_acquire_extend_and_release(void **state) {
	struct stage *s = *state;
	uint64_t first = take(s, REPLICA, "k", stage_lock(1));
	assert_int_equal(extend(s, REPLICA, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_true(holds(s, REPLICA, "k", stage_lock(1)));
	assert_int_equal(stage_do(s, REPLICA, stage_acquire("k", stage_lock(2), LEASE, 0)),
		PAWL_EHELD);
	assert_int_equal(release(s, REPLICA, "k", stage_lock(1)), PAWL_OK);
	assert_true(take(s, REPLICA, "k", stage_lock(2)) > first);
}

static void a_waiter_at_a_replica_has_its_turn(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t waits = wait_for(s, REPLICA, "k", stage_lock(2));
	assert_false(answered(s, waits));
	release(s, 0, "k", stage_lock(1));
	stage_settle(s);
	assert_true(token_of(s, waits) > 0);
}

static uint64_t ask_wait(struct stage *s, uint32_t node, const char *key, bool for_free) {
	struct core_request r = stage_request(CORE_WAIT, key, no_lock);
	r.for_free = for_free;
	r.wait = WAIT;
	uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	return id;
}

static void a_wait_on_a_replica_ends_with_the_change(void **state) {
	struct stage *s = *state;
	uint64_t held = ask_wait(s, REPLICA, "k", false);
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_true(stage_answer(s, held)->r.held);
	uint64_t freed = ask_wait(s, REPLICA, "k", true);
	assert_false(answered(s, freed));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_int_equal(stage_answer(s, freed)->r.error, PAWL_OK);
}

static void a_wait_outlives_the_table_that_it_began_in(void **state) {
	struct stage *s = *state;
	take(s, 0, "a", stage_lock(1));
	stage_wait(s, SHORT);
	uint64_t freed = ask_wait(s, REPLICA, "a", true), held = ask_wait(s, REPLICA, "b", false),
		later = ask_wait(s, REPLICA, "c", false);
	stage_cut(s, REPLICA, master_of(s, REPLICA), true);
	release(s, 0, "a", stage_lock(1));
	take(s, 0, "b", stage_lock(2));
	/* The replica moves to another master, whose snapshot replaces the table. */
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_answer(s, freed)->r.error, PAWL_OK);
	assert_true(stage_answer(s, held)->r.held);
	assert_false(answered(s, later));
	take(s, 0, "c", stage_lock(3));
	stage_wait(s, SHORT);
	assert_true(stage_answer(s, later)->r.held);
}

static void a_replica_moves_when_its_master_dies(void **state) {
	struct stage *s = *state;
	uint32_t old = master_of(s, REPLICA);
	stage_kill(s, old);
	stage_wait(s, 400 * SPAN_MS);
	assert_int_not_equal(master_of(s, REPLICA), old);
	uint32_t other = master_of(s, REPLICA);
	take(s, other, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_true(has(s, REPLICA, "k", stage_lock(1)));
}

static void a_replica_moves_when_its_master_is_cut_off_from_the_quorum(void **state) {
	struct stage *s = *state;
	uint32_t old = master_of(s, REPLICA);
	for (uint32_t i = 0; i < 3; i++) {
		if (i != old) {
			stage_cut(s, old, i, true);
		}
	}
	take(s, (old + 1) % 3, "k", stage_lock(1));
	stage_wait(s, 500 * SPAN_MS);
	assert_int_not_equal(master_of(s, REPLICA), old);
	assert_true(has(s, REPLICA, "k", stage_lock(1)));
	assert_true(stage_status(s, REPLICA).age < 50 * SPAN_MS);
}

static void without_any_quorum_its_view_only_grows_old(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	uint32_t master = master_of(s, REPLICA);
	uint64_t before = snapshots(s);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t j = i + 1; j < 3; j++) {
			stage_cut(s, i, j, true);
		}
	}
	stage_wait(s, SPAN_S);
	const struct core_reply *r = look(s, REPLICA, "k");
	assert_true(r->held && r->age >= 900 * SPAN_MS);
	/* Nobody is better than the master that it knows. */
	assert_int_equal(snapshots(s), before);
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t j = i + 1; j < 3; j++) {
			stage_cut(s, i, j, false);
		}
	}
	stage_wait(s, 300 * SPAN_MS);
	assert_true(stage_status(s, REPLICA).age < 50 * SPAN_MS);
	(void)master;
}

static void its_age_is_small_while_nothing_happens(void **state) {
	struct stage *s = *state;
	stage_wait(s, 2 * SPAN_S);
	assert_true(look(s, REPLICA, "k")->age < 20 * SPAN_MS);
}

static void a_replica_that_has_heard_nobody_says_so(void **state) {
	struct stage *s = *state;
	stage_isolate(s, REPLICA, true);
	stage_kill(s, REPLICA);
	assert_true(stage_start(s, REPLICA));
	stage_wait(s, SHORT);
	const struct core_reply *r = look(s, REPLICA, "k");
	assert_true(r->replica && r->age == SPAN_MAX);
}

static void replicas_spread_over_the_masters(void **state) {
	struct stage *s = *state;
	for (uint32_t node = 3; node < 5; node++) {
		stage_kill(s, node);
		assert_true(stage_start(s, node));
	}
	stage_wait(s, SHORT);
	assert_int_not_equal(master_of(s, 3), master_of(s, 4));
	take(s, 4, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_true(has(s, 3, "k", stage_lock(1)) && has(s, 4, "k", stage_lock(1)));
}

UNIT(cluster_replicas) {
	const struct CMUnitTest tests[] = {
		REPLICAS(a_write_is_shown_within_an_interval_and_a_message),
		REPLICAS(the_value_is_the_one_that_was_written_last),
		REPLICAS(what_remains_of_a_lease_is_shipped_and_not_the_whole),
		REPLICAS(a_lease_that_runs_out_is_gone_from_the_replica_too),
		REPLICAS(an_extension_reaches_the_replica),
		REPLICAS(clients_of_a_replica_acquire_extend_and_release),
		REPLICAS(a_waiter_at_a_replica_has_its_turn),
		REPLICAS(a_wait_on_a_replica_ends_with_the_change),
		REPLICAS(a_wait_outlives_the_table_that_it_began_in),
		REPLICAS(a_replica_moves_when_its_master_dies),
		REPLICAS(a_replica_moves_when_its_master_is_cut_off_from_the_quorum),
		REPLICAS(without_any_quorum_its_view_only_grows_old),
		REPLICAS(its_age_is_small_while_nothing_happens),
		REPLICAS(a_replica_that_has_heard_nobody_says_so),
		cmocka_unit_test_setup_teardown(replicas_spread_over_the_masters, setup_two,
			named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
