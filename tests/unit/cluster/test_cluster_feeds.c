/* These tests are about what a replica is sent: where it goes on, when it takes a snapshot, and
 * what it costs the masters (docs/protocol.md, section 7). */
#include "replicas.h"

static int setup_two(void **state) {
	return setup_with(state, 2, 0);
}

static int setup_small_log(void **state) {
	return setup_with(state, 1, 2048);
}

static void after_a_short_break_it_goes_on_without_a_snapshot(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	uint64_t before = snapshots(s);
	take(s, 0, "a", stage_lock(1));
	stage_wait(s, SHORT);
	stage_break(s, REPLICA, master);
	take(s, 0, "b", stage_lock(2));
	release(s, 0, "a", stage_lock(1));
	stage_wait(s, 200 * SPAN_MS);
	assert_int_equal(master_of(s, REPLICA), master);
	assert_int_equal(snapshots(s), before);
	assert_true(has(s, REPLICA, "b", stage_lock(2)) && !has(s, REPLICA, "a", stage_lock(1)));
}

static void when_the_log_does_not_reach_back_it_takes_a_snapshot(void **state) {
	struct stage *s = *state;
	uint64_t before = snapshots(s);
	stage_isolate(s, REPLICA, true);
	take_many(s, 0, 200);
	assert_true(stage_status(s, 0).log_oldest > 1);
	assert_true(stage_status(s, 0).log_bytes <= 2048);
	stage_isolate(s, REPLICA, false);
	stage_wait(s, 300 * SPAN_MS);
	assert_true(snapshots(s) > before);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 200);
}

static void a_master_that_started_anew_has_another_log(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	take_many(s, 0, 10);
	stage_wait(s, SHORT);
	stage_isolate(s, REPLICA, true);
	stage_kill(s, master);
	assert_true(stage_start(s, master));
	assert_true(stage_until_voting(s, master, SPAN_S));
	/* The numbers of its new log have passed those of the old one. */
	take_many(s, 10, 60);
	stage_cut(s, REPLICA, master, false);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(master_of(s, REPLICA), master);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 60);
}

static void a_snapshot_replaces_so_that_what_was_released_meanwhile_is_gone(void **state) {
	struct stage *s = *state;
	take_many(s, 0, 60);
	stage_wait(s, SHORT);
	uint32_t old = master_of(s, REPLICA);
	stage_cut(s, REPLICA, old, true);
	char name[16];
	for (uint32_t i = 0; i < 60; i += 2) {
		release(s, 0, numbered(name, i), numbered_lock(i));
	}
	stage_wait(s, SPAN_S);
	assert_int_not_equal(master_of(s, REPLICA), old);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 30);
}

static void a_missing_entry_is_noticed_and_ends_in_a_snapshot(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	uint64_t before = snapshots(s), position = stage_status(s, REPLICA).position;
	take(s, 0, "k", stage_lock(1));
	/* This is the entry after the next one. */
	const struct message stray = { .kind = MESSAGE_FEED_GONE, .round = 1, .key = slice_str("j"),
		.lock_id = stage_lock(9), .number = position + 1 };
	stage_inject(s, master, REPLICA, &stray);
	assert_int_equal(stage_count(s, COUNT_feed_missed), 1);
	stage_wait(s, SHORT);
	assert_int_equal(snapshots(s), before + 1);
	assert_true(has(s, REPLICA, "k", stage_lock(1)));
}

/* The replica has been restarted, and a part of a snapshot of 3000 records has arrived. Returns its
 * master. */
static uint32_t part_of_a_snapshot(struct stage *s) {
	take_many(s, 0, 3000);
	stage_kill(s, REPLICA);
	assert_true(stage_start(s, REPLICA));
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, REPLICA, i, MESSAGE_FEED_ACK, true);
	}
	stage_wait(s, 20 * SPAN_MS);
	struct core_status part = stage_status(s, REPLICA);
	assert_true(part.catching_up && part.snapshot_done >= 1000 && part.snapshot_done < 3000);
	return master_of(s, REPLICA);
}

static void go_on(struct stage *s) {
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, REPLICA, i, MESSAGE_FEED_ACK, false);
	}
}

static void a_long_snapshot_lets_the_log_pass_between_its_pieces(void **state) {
	struct stage *s = *state;
	char name[16];
	uint32_t master = part_of_a_snapshot(s);
	take_many(s, 3000, 3020);
	for (uint32_t i = 0; i < 3000; i += 100) {
		release(s, master, numbered(name, i), numbered_lock(i));
	}
	go_on(s);
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_feed_missed), 0);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 2990);
}

static void what_arrives_from_a_feed_that_was_left_is_dropped(void **state) {
	struct stage *s = *state;
	uint32_t old = master_of(s, REPLICA);
	for (uint32_t i = 0; i < 3; i++) {
		if (i != old) {
			stage_cut(s, old, i, true);
		}
	}
	stage_wait(s, 500 * SPAN_MS);
	assert_int_not_equal(master_of(s, REPLICA), old);
	uint64_t strays = stage_count(s, COUNT_feed_stray);
	const struct message stray = { .kind = MESSAGE_FEED_RECORD, .round = 1,
		.key = slice_str("j"), .lock_id = stage_lock(9), .token = 7, .left_us = 1000000,
		.number = stage_status(s, REPLICA).position };
	stage_inject(s, old, REPLICA, &stray);
	assert_true(stage_count(s, COUNT_feed_stray) > strays);
	assert_false(has(s, REPLICA, "j", stage_lock(9)));
}

/* Everything that the replica has said so far reaches its master. */
static void deliver_all(struct stage *s, uint32_t master) {
	while (stage_deliver(s, REPLICA, master)) {
	}
}

static void its_age_is_that_of_the_first_entry_left_out(void **state) {
	struct stage *s = *state;
	static uint8_t large[60000];
	char name[16];
	uint32_t master = master_of(s, REPLICA);
	/* What the replica says waits. */
	s->held[REPLICA][master] = true;
	for (uint32_t i = 0; i < 4; i++) {
		take(s, 0, numbered(name, i), stage_lock((uint8_t)i));
		/* The window is full now. */
		stage_wait(s, 6 * SPAN_MS);
	}
	/* These are more than the batches of a window take. */
	for (uint32_t i = 10; i < 40; i++) {
		struct core_request r = stage_acquire(numbered(name, i), stage_lock((uint8_t)i),
			5 * SPAN_S, 0);
		r.value = slice_of(large, sizeof large);
		assert_int_equal(stage_do(s, (master + 1) % 3, r), PAWL_OK);
	}
	stage_wait(s, 50 * SPAN_MS);
	deliver_all(s, master);
	stage_wait(s, 6 * SPAN_MS);
	assert_false(equals_master(s, REPLICA));
	assert_true(stage_status(s, REPLICA).age >= 50 * SPAN_MS);
	s->held[REPLICA][master] = false;
	stage_wait(s, SHORT);
	assert_true(equals_master(s, REPLICA));
	assert_true(stage_status(s, REPLICA).age < 20 * SPAN_MS);
}

static void a_restarted_replica_has_its_table_again(void **state) {
	struct stage *s = *state;
	take_many(s, 0, 50);
	stage_kill(s, REPLICA);
	assert_true(stage_start(s, REPLICA));
	stage_wait(s, SHORT);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 50);
}

static void a_replica_that_acknowledges_nothing_is_sent_a_bounded_number_of_batches(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	stage_stop(s, REPLICA, master, MESSAGE_FEED_ACK, true);
	uint64_t before = s->sent[master][REPLICA][MESSAGE_FEED_BATCH];
	for (int i = 0; i < 12; i++) {
		take(s, 0, "k", stage_lock((uint8_t)(i + 1)));
		release(s, 0, "k", stage_lock((uint8_t)(i + 1)));
		stage_wait(s, 6 * SPAN_MS);
	}
	uint64_t sent = s->sent[master][REPLICA][MESSAGE_FEED_BATCH] - before;
	assert_true(sent >= 4 && sent <= 5);
	stage_stop(s, REPLICA, master, MESSAGE_FEED_ACK, false);
	stage_wait(s, SHORT);
	assert_true(equals_master(s, REPLICA));
}

static void the_masters_say_who_follows_and_how_far(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	struct core_status status = stage_status(s, master_of(s, REPLICA));
	assert_true(status.peers[REPLICA].follows);
	assert_int_equal(status.peers[REPLICA].position, status.log_next);
	assert_int_equal(stage_status(s, REPLICA).position, status.log_next);
}

static void a_snapshot_that_broke_off_goes_on_where_it_was(void **state) {
	struct stage *s = *state;
	char name[16];
	uint32_t master = part_of_a_snapshot(s);
	stage_break(s, REPLICA, master);
	go_on(s);
	release(s, (master + 1) % 3, numbered(name, 0), numbered_lock(0));
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_feed_snapshot_resumed), 1);
	assert_int_equal(master_of(s, REPLICA), master);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 2999);
}

static void a_snapshot_whose_master_dies_is_dropped_for_that_of_another(void **state) {
	struct stage *s = *state;
	uint32_t master = part_of_a_snapshot(s);
	go_on(s);
	stage_kill(s, master);
	stage_wait(s, 500 * SPAN_MS);
	assert_int_not_equal(master_of(s, REPLICA), master);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 3000);
}

/* ---- changes of the set: in these the peer indexes stay the numbers of the nodes ---- */

static void change(struct stage *s, uint32_t node, const struct core_change *c) {
	struct core_request r = { .op = CORE_CHANGE, .admin = true, .change = c };
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
}

static void a_change_that_leaves_the_masters_voting_costs_no_snapshot(void **state) {
	struct stage *s = *state;
	take_many(s, 0, 50);
	stage_wait(s, SHORT);
	uint64_t before = snapshots(s);
	uint32_t master = master_of(s, REPLICA);
	change(s, 0, &(struct core_change){ .kind = CHANGE_SET_TIMING, .max_lease = 20 * SPAN_S });
	assert_int_equal(stage_status(s, REPLICA).epoch, 2);
	take_many(s, 50, 60);
	stage_wait(s, SHORT);
	assert_int_equal(master_of(s, REPLICA), master);
	assert_int_equal(snapshots(s), before);
	assert_int_equal(stage_status(s, REPLICA).held, 60);
	assert_true(equals_master(s, REPLICA));
}

static void a_replica_whose_master_is_an_epoch_ahead_waits_for_its_own_disk(void **state) {
	struct stage *s = *state;
	take_many(s, 0, 50);
	stage_wait(s, SHORT);
	uint64_t before = snapshots(s);
	uint32_t master = master_of(s, REPLICA), late = (master + 1) % 3;
	s->nodes[REPLICA].disk_held = s->nodes[late].disk_held = true;
	struct core_change timing = { .kind = CHANGE_SET_TIMING, .max_lease = 20 * SPAN_S };
	stage_ask(s, master,
		(struct core_request){ .op = CORE_CHANGE, .admin = true, .change = &timing });
	stage_wait(s, 60 * SPAN_MS);
	assert_int_equal(stage_status(s, master).epoch, 2);
	assert_int_equal(stage_status(s, REPLICA).epoch, 1);
	/* The late master is still in epoch 1, and votes in it. */
	assert_int_equal(stage_status(s, late).epoch, 1);
	s->nodes[REPLICA].disk_held = s->nodes[late].disk_held = false;
	stage_flush(s, REPLICA);
	stage_flush(s, late);
	stage_wait(s, 200 * SPAN_MS);
	assert_int_equal(stage_status(s, REPLICA).epoch, 2);
	assert_int_equal(master_of(s, REPLICA), master);
	assert_int_equal(snapshots(s), before);
}

static void a_promoted_replica_votes_and_the_other_one_goes_on_following(void **state) {
	struct stage *s = *state;
	take_many(s, 0, 50);
	stage_wait(s, SHORT);
	change(s, 0, &(struct core_change){ .kind = CHANGE_PROMOTE, .name = slice_str("n4") });
	assert_int_equal(stage_status(s, 3).state, CORE_VOTING);
	assert_int_equal(stage_status(s, 3).held, 50);
	take_many(s, 50, 60);
	stage_wait(s, SHORT);
	assert_true(equals_master(s, 4));
	assert_int_equal(stage_status(s, 4).held, 60);
}

static void a_demoted_master_follows(void **state) {
	struct stage *s = *state;
	take_many(s, 0, 50);
	change(s, 0, &(struct core_change){ .kind = CHANGE_DEMOTE, .name = slice_str("n3"),
		.anyway = true });
	assert_int_equal(stage_status(s, 2).state, CORE_FOLLOWING);
	take_many(s, 50, 60);
	stage_wait(s, SHORT);
	assert_true(equals_master(s, 2) && equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, 2).held, 60);
	assert_true(stage_status(s, 2).age < 50 * SPAN_MS);
}

UNIT(cluster_feeds) {
	const struct CMUnitTest tests[] = {
		REPLICAS(after_a_short_break_it_goes_on_without_a_snapshot),
		cmocka_unit_test_setup_teardown(
			when_the_log_does_not_reach_back_it_takes_a_snapshot, setup_small_log,
			named_teardown),
		REPLICAS(a_master_that_started_anew_has_another_log),
		REPLICAS(a_snapshot_replaces_so_that_what_was_released_meanwhile_is_gone),
		REPLICAS(a_missing_entry_is_noticed_and_ends_in_a_snapshot),
		REPLICAS(a_long_snapshot_lets_the_log_pass_between_its_pieces),
		REPLICAS(what_arrives_from_a_feed_that_was_left_is_dropped),
		REPLICAS(its_age_is_that_of_the_first_entry_left_out),
		REPLICAS(a_restarted_replica_has_its_table_again),
		REPLICAS(a_replica_that_acknowledges_nothing_is_sent_a_bounded_number_of_batches),
		REPLICAS(the_masters_say_who_follows_and_how_far),
		REPLICAS(a_snapshot_that_broke_off_goes_on_where_it_was),
		REPLICAS(a_snapshot_whose_master_dies_is_dropped_for_that_of_another),
		REPLICAS(a_change_that_leaves_the_masters_voting_costs_no_snapshot),
		REPLICAS(a_replica_whose_master_is_an_epoch_ahead_waits_for_its_own_disk),
		cmocka_unit_test_setup_teardown(
			a_promoted_replica_votes_and_the_other_one_goes_on_following, setup_two,
			named_teardown),
		REPLICAS(a_demoted_master_follows),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
