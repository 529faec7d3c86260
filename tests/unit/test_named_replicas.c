/* Replicas: what they follow, when they take a snapshot, whom they move to, and how old they say their view is (docs/protocol.md,
 * section 7). Nodes 0 to 2 are masters, 3 and 4 replicas. */
#include <stdio.h>

#include "named.h"

#define REPLICA 3u
#define SHORT (30 * SPAN_MS) /* a few batches */

static const struct id128 no_lock;

static int setup_with(void **state, uint32_t replicas, uint64_t log_bytes) {
	struct stage_options o = named_options();
	o.replicas = replicas;
	o.limits.log_bytes = log_bytes;
	struct stage *s = stage_born(&o);
	*state = s;
	stage_wait(s, SHORT);
	return 0;
}

static int setup(void **state) {
	return setup_with(state, 1, 0);
}

static int setup_two(void **state) {
	return setup_with(state, 2, 0);
}

static int setup_small_log(void **state) {
	return setup_with(state, 1, 2048);
}

#define REPLICAS(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

static bool has(const struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

static uint32_t master_of(const struct stage *s, uint32_t node) {
	int following = stage_status(s, node).following;
	assert_true(following >= 0 && following < 3);
	return (uint32_t)following;
}

static const struct core_reply *look(struct stage *s, uint32_t node, const char *key) {
	assert_int_equal(stage_do(s, node, stage_request(CORE_GET, key, no_lock)), PAWL_OK);
	return &stage_last(s)->r;
}

static uint64_t snapshots(const struct stage *s) {
	return stage_count(s, COUNT_feed_snapshot);
}

static const char *numbered(char name[16], uint32_t i) {
	snprintf(name, 16, "key%u", i);
	return name;
}

static struct id128 numbered_lock(uint32_t i) {
	struct id128 lock = stage_lock((uint8_t)i);
	lock.b[1] = (uint8_t)(i >> 8);
	return lock;
}

static void take_many(struct stage *s, uint32_t from, uint32_t to) {
	char name[16];
	s->options.unchecked = true; /* costs time in the number of keys */
	for (uint32_t i = from; i < to; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire(numbered(name, i), numbered_lock(i), 5 * SPAN_S, 0)), PAWL_OK);
	}
	s->options.unchecked = false;
}

/* Every record of the master that it follows, and no other. */
static bool equals_master(const struct stage *s, uint32_t node) {
	struct core_status replica = stage_status(s, node);
	return replica.following >= 0 && !replica.catching_up && replica.held == stage_status(s, (uint32_t)replica.following).held;
}

/* ---- what is shown ---- */

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

/* ---- a replica is a node like any other for its clients ---- */

static void clients_of_a_replica_acquire_extend_and_release(void **state) {
	struct stage *s = *state;
	uint64_t first = take(s, REPLICA, "k", stage_lock(1));
	assert_int_equal(extend(s, REPLICA, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_true(holds(s, REPLICA, "k", stage_lock(1)));
	assert_int_equal(stage_do(s, REPLICA, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(release(s, REPLICA, "k", stage_lock(1)), PAWL_OK);
	assert_true(take(s, REPLICA, "k", stage_lock(2)) > first);
}

static void who_waits_at_a_replica_has_its_turn(void **state) {
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
	uint64_t freed = ask_wait(s, REPLICA, "a", true), held = ask_wait(s, REPLICA, "b", false), later = ask_wait(s, REPLICA, "c", false);
	stage_cut(s, REPLICA, master_of(s, REPLICA), true);
	release(s, 0, "a", stage_lock(1));
	take(s, 0, "b", stage_lock(2));
	stage_wait(s, SPAN_S); /* it moves to another master, whose snapshot replaces the table */
	assert_int_equal(stage_answer(s, freed)->r.error, PAWL_OK);
	assert_true(stage_answer(s, held)->r.held);
	assert_false(answered(s, later));
	take(s, 0, "c", stage_lock(3));
	stage_wait(s, SHORT);
	assert_true(stage_answer(s, later)->r.held);
}

/* ---- where it goes on ---- */

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
	take_many(s, 10, 60); /* its numbers have passed those of before */
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

static void a_gap_is_noticed_and_ends_in_a_snapshot(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	uint64_t before = snapshots(s), position = stage_status(s, REPLICA).position;
	take(s, 0, "k", stage_lock(1));
	/* the entry after the next one */
	const struct message stray = { .kind = MESSAGE_FEED_GONE, .round = 1, .key = slice_str("j"), .lock_id = stage_lock(9), .number = position + 1 };
	stage_inject(s, master, REPLICA, &stray);
	assert_int_equal(stage_count(s, COUNT_feed_gap), 1);
	stage_wait(s, SHORT);
	assert_int_equal(snapshots(s), before + 1);
	assert_true(has(s, REPLICA, "k", stage_lock(1)));
}

/* Restarted, and with a snapshot of 3000 records of which more than half has arrived. */
static uint32_t half_a_snapshot(struct stage *s) {
	take_many(s, 0, 3000);
	stage_kill(s, REPLICA);
	assert_true(stage_start(s, REPLICA));
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, REPLICA, i, MESSAGE_FEED_ACK, true);
	}
	stage_wait(s, 20 * SPAN_MS);
	struct core_status half = stage_status(s, REPLICA);
	assert_true(half.catching_up && half.snapshot_done >= 1500 && half.snapshot_done < 3000);
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
	uint32_t master = half_a_snapshot(s);
	take_many(s, 3000, 3020);
	for (uint32_t i = 0; i < 3000; i += 100) {
		release(s, master, numbered(name, i), numbered_lock(i));
	}
	go_on(s);
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_feed_gap), 0);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 2990);
}

/* ---- whom it follows ---- */

static void it_moves_when_its_master_dies(void **state) {
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

static void it_moves_when_its_master_is_cut_off_from_the_quorum(void **state) {
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
	assert_int_equal(snapshots(s), before); /* nobody is better than the one it knows */
	for (uint32_t i = 0; i < 3; i++) {
		for (uint32_t j = i + 1; j < 3; j++) {
			stage_cut(s, i, j, false);
		}
	}
	stage_wait(s, 300 * SPAN_MS);
	assert_true(stage_status(s, REPLICA).age < 50 * SPAN_MS);
	(void)master;
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
	const struct message stray = { .kind = MESSAGE_FEED_RECORD, .round = 1, .key = slice_str("j"), .lock_id = stage_lock(9), .token = 7,
		.left_us = 1000000, .number = stage_status(s, REPLICA).position };
	stage_inject(s, old, REPLICA, &stray);
	assert_true(stage_count(s, COUNT_feed_stray) > strays);
	assert_false(has(s, REPLICA, "j", stage_lock(9)));
}

static void its_age_is_small_while_nothing_happens(void **state) {
	struct stage *s = *state;
	stage_wait(s, 2 * SPAN_S);
	assert_true(look(s, REPLICA, "k")->age < 20 * SPAN_MS);
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
	s->held[REPLICA][master] = true; /* what the replica says waits */
	for (uint32_t i = 0; i < 4; i++) {
		take(s, 0, numbered(name, i), stage_lock((uint8_t)i));
		stage_wait(s, 6 * SPAN_MS); /* the window is full now */
	}
	for (uint32_t i = 10; i < 40; i++) { /* more than the batches of a window take */
		struct core_request r = stage_acquire(numbered(name, i), stage_lock((uint8_t)i), 5 * SPAN_S, 0);
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

static void a_replica_that_has_heard_nobody_says_so(void **state) {
	struct stage *s = *state;
	stage_isolate(s, REPLICA, true);
	stage_kill(s, REPLICA);
	assert_true(stage_start(s, REPLICA));
	stage_wait(s, SHORT);
	const struct core_reply *r = look(s, REPLICA, "k");
	assert_true(r->replica && r->age == SPAN_MAX);
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

/* ---- what it costs the others ---- */

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

static void the_masters_say_who_follows_and_how_far(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	struct core_status status = stage_status(s, master_of(s, REPLICA));
	assert_true(status.peers[REPLICA].follows);
	assert_int_equal(status.peers[REPLICA].position, status.log_next);
	assert_int_equal(stage_status(s, REPLICA).position, status.log_next);
}

/* ---- snapshots that break off ---- */

static void a_snapshot_that_broke_off_goes_on_where_it_was(void **state) {
	struct stage *s = *state;
	char name[16];
	uint32_t master = half_a_snapshot(s);
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
	uint32_t master = half_a_snapshot(s);
	go_on(s);
	stage_kill(s, master);
	stage_wait(s, 500 * SPAN_MS);
	assert_int_not_equal(master_of(s, REPLICA), master);
	assert_true(equals_master(s, REPLICA));
	assert_int_equal(stage_status(s, REPLICA).held, 3000);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		REPLICAS(a_write_is_shown_within_an_interval_and_a_message),
		REPLICAS(the_value_is_the_one_that_was_written_last),
		REPLICAS(what_remains_of_a_lease_is_shipped_and_not_the_whole),
		REPLICAS(a_lease_that_runs_out_is_gone_from_the_replica_too),
		REPLICAS(an_extension_reaches_the_replica),
		REPLICAS(clients_of_a_replica_acquire_extend_and_release),
		REPLICAS(who_waits_at_a_replica_has_its_turn),
		REPLICAS(a_wait_on_a_replica_ends_with_the_change),
		REPLICAS(a_wait_outlives_the_table_that_it_began_in),
		REPLICAS(after_a_short_break_it_goes_on_without_a_snapshot),
		cmocka_unit_test_setup_teardown(when_the_log_does_not_reach_back_it_takes_a_snapshot, setup_small_log, named_teardown),
		REPLICAS(a_snapshot_replaces_so_that_what_was_released_meanwhile_is_gone),
		REPLICAS(a_master_that_started_anew_has_another_log),
		REPLICAS(its_age_is_that_of_the_first_entry_left_out),
		REPLICAS(a_gap_is_noticed_and_ends_in_a_snapshot),
		REPLICAS(a_long_snapshot_lets_the_log_pass_between_its_pieces),
		REPLICAS(it_moves_when_its_master_dies),
		REPLICAS(it_moves_when_its_master_is_cut_off_from_the_quorum),
		REPLICAS(without_any_quorum_its_view_only_grows_old),
		REPLICAS(what_arrives_from_a_feed_that_was_left_is_dropped),
		REPLICAS(its_age_is_small_while_nothing_happens),
		REPLICAS(a_replica_that_has_heard_nobody_says_so),
		REPLICAS(a_restarted_replica_has_its_table_again),
		REPLICAS(a_replica_that_acknowledges_nothing_is_sent_a_bounded_number_of_batches),
		cmocka_unit_test_setup_teardown(replicas_spread_over_the_masters, setup_two, named_teardown),
		REPLICAS(the_masters_say_who_follows_and_how_far),
		REPLICAS(a_snapshot_that_broke_off_goes_on_where_it_was),
		REPLICAS(a_snapshot_whose_master_dies_is_dropped_for_that_of_another),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
