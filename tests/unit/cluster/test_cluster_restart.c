/* These tests are about restarts, planned stops, births and lost state (docs/protocol.md, sections
 * 4 and 6). */
#include <stdio.h>

#include "named.h"

/* The longest lease as others measure it, max_lease (1 + 2 drift), and a beat. */
#define ALL_OVER (10 * SPAN_S + 300 * SPAN_MS)

static void restart(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	assert_true(stage_start(s, node));
}

static void take_long(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	assert_int_equal(stage_do(s, node, stage_acquire(key, lock, 10 * SPAN_S, 0)), PAWL_OK);
}

static void a_lock_survives_a_rolling_restart_of_two_of_three(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	for (uint32_t i = 1; i < 3; i++) {
		restart(s, i);
		assert_true(stage_until_voting(s, i, SPAN_S));
	}
	assert_int_equal(stage_count(s, COUNT_rejoin), 2);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

static void a_lock_survives_a_rolling_restart_of_all_three(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	for (uint32_t i = 0; i < 3; i++) {
		restart(s, i);
		assert_true(stage_until_voting(s, i, SPAN_S));
	}
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_true(holds(s, 0, "k", stage_lock(1)));
}

static void after_a_restart_of_all_at_once_nobody_grants_until_every_lease_is_over(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 10 * SPAN_S, 0)),
		PAWL_OK);
	uint64_t token = stage_last(s)->r.token;
	int64_t end = s->now + 10 * SPAN_S;
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_start(s, i));
	}
	while (s->now < end) {
		stage_wait(s, 500 * SPAN_MS);
		assert_int_not_equal(stage_status(s, 0).state,
			s->now < end ? CORE_VOTING : CORE_UNBORN);
	}
	stage_wait(s, ALL_OVER - 10 * SPAN_S);
	assert_int_equal(stage_count(s, COUNT_waited), 3);
	assert_true(take(s, 1, "k", stage_lock(2)) > token);
}

static void after_a_restart_of_two_at_once_the_third_alone_vouches_for_nobody(void **state) {
	struct stage *s = *state;
	take_long(s, 1, "k", stage_lock(1));
	stage_kill(s, 1);
	stage_kill(s, 2);
	assert_true(stage_start(s, 1) && stage_start(s, 2));
	stage_wait(s, 5 * SPAN_S);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(2), LEASE, 0));
	stage_wait(s, 200 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, id)->r.error, PAWL_OK);
	/* Two sources are needed (n - q + 1). */
	assert_int_equal(stage_count(s, COUNT_rejoin), 0);
	stage_wait(s, 6 * SPAN_S);
	take(s, 2, "k", stage_lock(3));
}

static void a_recovering_master_counts_as_silent_and_serves_local_reads(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	restart(s, 2);
	stage_mend(s);
	stage_settle(s);
	struct core_request r = stage_request(CORE_GET, "k", stage_lock(0));
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_true(stage_last(s)->r.recovering);
	/* The two others are a quorum. */
	assert_int_equal(stage_do(s, 2, stage_acquire("other", stage_lock(2), LEASE, 0)), PAWL_OK);
	assert_int_equal(stage_status(s, 2).held, 0);
}

static void tokens_grow_over_restarts_of_everything(void **state) {
	struct stage *s = *state;
	uint64_t before = 0;
	for (uint8_t round = 0; round < 4; round++) {
		uint64_t token = take(s, round % 3, "k", stage_lock(round));
		assert_true(token > before);
		before = token;
		for (uint32_t i = 0; i < 3; i++) {
			restart(s, i);
		}
		stage_wait(s, ALL_OVER);
	}
}

static void a_drain_is_only_a_pause(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	release(s, 1, "k", stage_lock(1));
	struct core_request r = stage_acquire("k", stage_lock(2), 10 * SPAN_S, 0);
	r.value = slice_str("kept");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	for (uint32_t i = 0; i < 3; i++) {
		stage_drain(s, i);
	}
	stage_jump(s, 3600 * SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_start(s, i));
		assert_int_equal(stage_status(s, i).state, CORE_VOTING);
	}
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_drain_consumed), 3);
	/* The remaining times start again. */
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(3), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(stage_do(s, 1, stage_request(CORE_GET, "k", stage_lock(0))), PAWL_OK);
	assert_memory_equal(stage_last(s)->value.bytes, "kept", 4);
	/* R3 was kept, too. */
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(1), LEASE, 0)), PAWL_ELOST);
}

static void a_drained_side_file_serves_one_start_only(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	stage_drain(s, 2);
	assert_true(stage_start(s, 2));
	assert_int_equal(stage_status(s, 2).state, CORE_VOTING);
	restart(s, 2);
	assert_int_equal(stage_status(s, 2).state, CORE_RECOVERING);
	assert_true(stage_until_voting(s, 2, SPAN_S));
}

/* Each of the three masters remembers four releases, and has had more. */
static struct stage *four_remembered(void) {
	struct stage_options o = named_options();
	o.limits.released = 4;
	struct stage *s = stage_born(&o);
	for (uint8_t lock = 1; lock <= 6; lock++) {
		take(s, 0, "k", stage_lock(lock));
		release(s, 0, "k", stage_lock(lock));
		stage_settle(s);
	}
	return s;
}

/* One more release makes all of them forget one; they remember the fifth. */
static void all_remember_the_fifth(struct stage *s) {
	assert_true(stage_until_voting(s, 2, SPAN_S));
	take(s, 0, "k", stage_lock(7));
	release(s, 0, "k", stage_lock(7));
	stage_settle(s);
	uint64_t before = stage_count(s, COUNT_promise_refused_released);
	assert_int_not_equal(stage_do(s, 0, stage_acquire("k", stage_lock(5), LEASE, 0)), PAWL_OK);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_promise_refused_released) - before, 3);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void a_master_that_is_told_what_was_released_forgets_the_oldest_first(void **state) {
	(void)state;
	struct stage *s = four_remembered();
	restart(s, 2);
	all_remember_the_fifth(s);
}

static void after_a_planned_stop_the_oldest_release_is_forgotten_first(void **state) {
	(void)state;
	struct stage *s = four_remembered();
	stage_drain(s, 2);
	assert_true(stage_start(s, 2));
	all_remember_the_fifth(s);
}

static void a_drain_answers_those_who_wait(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 2, "k", stage_lock(2));
	stage_drain(s, 2);
	assert_int_equal(stage_answer(s, waiter)->r.error, PAWL_ERECOVERING);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

static void clocks_years_apart_change_nothing(void **state) {
	struct stage *s = *state;
	static const int64_t years[] = { 10, 0, 80 };
	/* Every one starts again on a clock that has nothing to do with the clocks of the
	 * others. */
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
		s->nodes[i].boot_offset = years[i] * 365 * 86400 * SPAN_S;
		s->nodes[i].raw_offset = s->nodes[i].boot_offset / 2;
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_start(s, i));
	}
	stage_wait(s, ALL_OVER);
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	/* Its clock goes back to the machine's first second. */
	stage_kill(s, 2);
	s->nodes[2].boot_offset = s->nodes[2].raw_offset = -s->now + SPAN_S;
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	stage_wait(s, LEASE);
	take(s, 2, "k", stage_lock(3));
}

static void a_master_that_slept_drops_its_links_unread(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	s->held[0][2] = true;
	stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_settle(s);
	stage_jump(s, 90 * SPAN_MS);
	stage_pause(s, 2);
	stage_wait(s, 5 * SPAN_S);
	stage_continue(s, 2);
	assert_true(stage_noted(s, 2, NOTE_STOOD_STILL));
	memset(s->held, 0, sizeof s->held);
	stage_wait(s, 50 * SPAN_MS);
	take(s, 2, "k", stage_lock(2));
}

/* ---- birth ---- */

static void a_birth_with_different_timings_stops_and_says_so(void **state) {
	(void)state;
	struct stage_options o = named_options();
	struct stage *s = stage_new(&o);
	assert_true(stage_start(s, 0) && stage_start(s, 1));
	s->birth.max_lease = 20 * SPAN_S;
	assert_true(stage_start(s, 2));
	stage_wait(s, 5 * SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).state, CORE_UNBORN);
		assert_true(stage_noted(s, i, NOTE_BIRTH_DIFFERS));
		assert_false(stage_status(s, i).peers[0].stranger);
	}
	assert_non_null(strstr(stage_status(s, 0).waits_for, "max_lease is 20000ms at n3, and "));
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0)),
		PAWL_ERECOVERING);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

/* n3, which has not heard n2 yet, tells what its file says. It knows no identities. */
static void a_birth_that_stops_blames_no_state_directory(void **state) {
	(void)state;
	struct stage_options o = named_options();
	struct stage *s = stage_new(&o);
	stage_cut(s, 1, 2, true);
	assert_true(stage_start(s, 0) && stage_start(s, 1));
	s->birth.max_lease = 20 * SPAN_S;
	assert_true(stage_start(s, 2));
	stage_wait(s, 5 * SPAN_S);
	const char *said = stage_status(s, 0).waits_for;
	assert_non_null(strstr(said, "max_lease is 20000ms at n3"));
	assert_null(strstr(said, "identity"));
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

/* n3 waits for n4, which nobody else knows, so it never pledges. It tells the others what its file
 * says, which they have pledged otherwise. */
static void masters_with_different_lists_say_so_on_both_sides(void **state) {
	(void)state;
	struct stage_options o = named_options();
	struct stage *s = stage_new(&o);
	assert_true(stage_start(s, 0) && stage_start(s, 1));
	struct config_node *fourth = &s->birth.nodes[s->birth.node_count++];
	*fourth = (struct config_node){ .name = "n4", .address = "n4:1", .master = true };
	assert_true(stage_start(s, 2));
	stage_wait(s, 5 * SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).state, CORE_UNBORN);
		assert_true(stage_noted(s, i, NOTE_BIRTH_DIFFERS));
	}
	assert_non_null(strstr(stage_status(s, 0).waits_for,
		"the list of masters is n1 n2 n3 n4 at n3, and n1 n2 n3 here"));
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void a_birth_waits_for_the_last_master(void **state) {
	(void)state;
	struct stage_options o = named_options();
	struct stage *s = stage_new(&o);
	assert_true(stage_start(s, 0) && stage_start(s, 1));
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(stage_status(s, 0).state, CORE_UNBORN);
	assert_true(stage_start(s, 2));
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_until_voting(s, i, SPAN_S));
	}
	take(s, 0, "k", stage_lock(1));
	stage_free(s);
}

/* n2 alone is born, and n3 loses its disk. */
static void a_birth_that_one_master_has_finished_is_joined_although_another_pledges_otherwise(
	void **state) {
	(void)state;
	struct stage_options o = named_options();
	struct stage *s = stage_new(&o);
	stage_lose(s, 1, 0, MESSAGE_PLEDGE, true);
	stage_lose(s, 1, 2, MESSAGE_PLEDGE, true);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_start(s, i));
	}
	assert_true(stage_until_voting(s, 1, SPAN_S));
	stage_kill(s, 1);
	stage_wipe(s, 2);
	stage_lose(s, 1, 2, MESSAGE_CONFIG, true);
	assert_true(stage_start(s, 1) && stage_start(s, 2));
	stage_wait(s, SPAN_S / 2);
	assert_true(stage_noted(s, 0, NOTE_BIRTH_DIFFERS));
	assert_int_equal(stage_status(s, 0).state, CORE_UNBORN);
	stage_lose(s, 1, 0, MESSAGE_PLEDGE, false);
	assert_true(stage_until_voting(s, 0, 5 * SPAN_S));
	stage_wait(s, ALL_OVER);
	take(s, 0, "k", stage_lock(1));
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void a_master_that_is_stopped_before_its_birth_does_not_claim_it(void **state) {
	(void)state;
	struct stage_options o = named_options();
	struct stage *s = stage_new(&o);
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, i, (i + 1) % 3, MESSAGE_PLEDGE, true);
		stage_stop(s, i, (i + 2) % 3, MESSAGE_PLEDGE, true);
		assert_true(stage_start(s, i));
	}
	stage_mend(s);
	stage_settle(s);
	assert_true(s->nodes[0].disk.pledged && s->nodes[1].disk.pledged);
	stage_step(s, 0, &(struct core_event){ .kind = CORE_DRAIN });
	stage_stop(s, 0, 1, MESSAGE_PLEDGE, false);
	stage_stop(s, 1, 0, MESSAGE_PLEDGE, false);
	stage_wait(s, SPAN_S);
	/* Node 2 has not been heard. */
	assert_int_equal(stage_status(s, 1).state, CORE_UNBORN);
	stage_free(s);
}

static void a_birth_survives_a_crash_of_each_master_at_each_write(void **state) {
	(void)state;
	for (uint32_t crash = 0; crash < 12; crash++) {
		struct stage_options o = named_options();
		struct stage *s = stage_new(&o);
		for (uint32_t i = 0; i < 3; i++) {
			assert_true(stage_start(s, i));
		}
		stage_mend(s);
		for (uint32_t delivered = 0, i = 0; delivered < crash && i < 100; i++) {
			delivered += stage_deliver(s, i % 3, (i + 1 + i / 3 % 2) % 3);
		}
		stage_kill(s, crash % 3);
		assert_true(stage_start(s, crash % 3));
		stage_wait(s, ALL_OVER);
		for (uint32_t i = 0; i < 3; i++) {
			assert_int_equal(stage_status(s, i).state, CORE_VOTING);
		}
		take(s, 0, "k", stage_lock(1));
		stage_free(s);
	}
}

static void a_master_that_lost_its_state_is_a_stranger(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	stage_kill(s, 2);
	s->nodes[2].disk = (struct durable){ .node_id = { { 99, 99, 99 } } };
	assert_true(stage_start(s, 2));
	stage_wait(s, 12 * SPAN_S);
	assert_int_not_equal(stage_status(s, 2).state, CORE_VOTING);
	assert_true(stage_noted(s, 0, NOTE_BIRTH_STRANGER));
	assert_int_equal(stage_status(s, 0).voting_linked, 2);
	/* The two others go on. */
	take(s, 1, "k", stage_lock(2));
}

/* ---- the disk ---- */

static void nothing_leaves_a_start_before_its_boot_is_on_disk(void **state) {
	struct stage *s = *state;
	stage_kill(s, 2);
	s->nodes[2].disk_held = true;
	assert_true(stage_start(s, 2));
	stage_mend(s);
	uint64_t before = s->links[2][0].count + s->links[2][1].count;
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(s->links[2][0].count + s->links[2][1].count, before);
	assert_int_equal(before, 0);
	s->nodes[2].disk_held = false;
	stage_flush(s, 2);
	assert_true(stage_until_voting(s, 2, SPAN_S));
}

static void no_vote_leaves_while_the_clock_is_above_the_reservation_on_disk(void **state) {
	struct stage *s = *state;
	s->nodes[1].disk_held = s->nodes[2].disk_held = true;
	uint64_t far = stage_status(s, 0).clock + CEILING_BLOCK * 2;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("far"), .lock_id = stage_lock(1), .token = far, .lease_us = 100000,
		.ballot = { far, 1, 1 } };
	stage_inject(s, 0, 1, &m);
	stage_inject(s, 0, 2, &m);
	stage_settle(s);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(2), LEASE, 0));
	stage_settle(s);
	assert_false(answered(s, id));
	assert_true(stage_count(s, COUNT_vote_held_back) > 0);
	s->nodes[1].disk_held = false;
	stage_flush(s, 1);
	stage_settle(s);
	assert_true(token_of(s, id) > far);
	assert_true(stage_status(s, 1).ceiling > far);
}

static void a_disk_that_fails_is_tried_again(void **state) {
	struct stage *s = *state;
	s->nodes[0].disk_fails = true;
	uint64_t far = stage_status(s, 0).clock + CEILING_BLOCK * 2;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("far"), .lock_id = stage_lock(1), .token = far, .lease_us = 100000,
		.ballot = { far, 1, 1 } };
	stage_inject(s, 1, 0, &m);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(2), LEASE, WAIT));
	stage_wait(s, 500 * SPAN_MS);
	assert_false(answered(s, id));
	s->nodes[0].disk_fails = false;
	stage_wait(s, SPAN_S);
	token_of(s, id);
}

UNIT(cluster_restart) {
	const struct CMUnitTest tests[] = {
		NAMED(a_lock_survives_a_rolling_restart_of_two_of_three),
		NAMED(a_lock_survives_a_rolling_restart_of_all_three),
		NAMED(after_a_restart_of_all_at_once_nobody_grants_until_every_lease_is_over),
		NAMED(after_a_restart_of_two_at_once_the_third_alone_vouches_for_nobody),
		NAMED(a_recovering_master_counts_as_silent_and_serves_local_reads),
		NAMED(tokens_grow_over_restarts_of_everything),
		NAMED(a_drain_is_only_a_pause),
		NAMED(a_drained_side_file_serves_one_start_only),
		cmocka_unit_test(a_master_that_is_told_what_was_released_forgets_the_oldest_first),
		cmocka_unit_test(after_a_planned_stop_the_oldest_release_is_forgotten_first),
		NAMED(a_drain_answers_those_who_wait),
		NAMED(clocks_years_apart_change_nothing),
		NAMED(a_master_that_slept_drops_its_links_unread),
		cmocka_unit_test(a_master_that_is_stopped_before_its_birth_does_not_claim_it),
		cmocka_unit_test(a_birth_with_different_timings_stops_and_says_so),
		cmocka_unit_test(a_birth_that_stops_blames_no_state_directory),
		cmocka_unit_test(masters_with_different_lists_say_so_on_both_sides),
		cmocka_unit_test(a_birth_waits_for_the_last_master),
		cmocka_unit_test(
		a_birth_that_one_master_has_finished_is_joined_although_another_pledges_otherwise),
		cmocka_unit_test(a_birth_survives_a_crash_of_each_master_at_each_write),
		NAMED(a_master_that_lost_its_state_is_a_stranger),
		NAMED(nothing_leaves_a_start_before_its_boot_is_on_disk),
		NAMED(no_vote_leaves_while_the_clock_is_above_the_reservation_on_disk),
		NAMED(a_disk_that_fails_is_tried_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
