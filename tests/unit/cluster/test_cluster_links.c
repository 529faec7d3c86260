/* These tests are about links that break at the wrong moment, masters that come back, and numbers
 * that cannot be right (docs/protocol.md, sections 2 to 5 and 9). */
#include <stdio.h>

#include "named.h"

static const struct id128 no_lock;

static bool has(const struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

/* Returns a key whose home is node 0. Lock 1 holds it through node 0, and the first waiter is at
 * node 1. */
static const char *key_at_home(struct stage *s, char key[8], uint64_t *waiter) {
	for (int i = 0; i < 64; i++) {
		uint64_t before = s->sent[1][0][MESSAGE_ENQUEUE];
		snprintf(key, 8, "k%d", i);
		take(s, 0, key, stage_lock(1));
		*waiter = wait_for(s, 1, key, stage_lock(2));
		if (s->sent[1][0][MESSAGE_ENQUEUE] > before) {
			return key;
		}
	}
	fail();
	return NULL;
}

/* ---- lists that change while somebody walks over them ---- */

static void a_lost_link_that_decides_a_break_ends_the_attempts_of_its_lock(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_stop(s, 2, 0, MESSAGE_READ_ANSWER, true);
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.admin = r.now = true;
	uint64_t broken = stage_ask(s, 0, r);
	stage_settle(s);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	uint64_t repeat = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_false(answered(s, broken));
	assert_false(answered(s, repeat));
	stage_break(s, 0, 2);
	assert_int_equal(stage_answer(s, repeat)->r.error, PAWL_ELOST);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_settle(s);
	assert_int_equal(stage_answer(s, broken)->r.error, PAWL_OK);
}

static void a_client_that_goes_when_its_key_is_just_free_takes_all_its_waits_along(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	for (int i = 0; i < 3; i++) {
		struct core_request r = stage_request(CORE_WAIT, "k", no_lock);
		r.for_free = true;
		r.wait = WAIT;
		r.client = 77;
		stage_ask(s, 0, r);
	}
	/* The record is over, and no timer has gone off. */
	stage_jump(s, LEASE);
	stage_client_gone(s, 0, 77);
	assert_int_equal(stage_status(s, 0).rounds, 0);
}

/* ---- what ends with a link, and begins again with it ---- */

static void a_coordinator_that_is_lost_with_two_in_the_queue_leaves_nothing_behind(void **state) {
	struct stage *s = *state;
	char key[8];
	uint64_t waiter;
	key_at_home(s, key, &waiter);
	wait_for(s, 1, key, stage_lock(3));
	uint64_t last = wait_for(s, 2, key, stage_lock(4));
	stage_kill(s, 1);
	stage_settle(s);
	int64_t before = s->now;
	release(s, 0, key, stage_lock(1));
	token_of(s, last);
	assert_int_equal(s->now, before);
}

static void a_request_with_a_turn_asks_a_master_that_comes_back_at_once(void **state) {
	struct stage *s = *state;
	char key[8];
	uint64_t waiter;
	key_at_home(s, key, &waiter);
	stage_break(s, 1, 2);
	stage_settle(s);
	uint64_t asked = s->sent[1][2][MESSAGE_PROMISE];
	int64_t before = s->now;
	stage_mend(s);
	stage_settle(s);
	assert_true(s->sent[1][2][MESSAGE_PROMISE] > asked);
	assert_int_equal(s->now, before);
}

static void a_release_reaches_a_master_that_was_stopped_and_started_meanwhile(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_drain(s, 2);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_true(stage_start(s, 2));
	assert_true(has(s, 2, "k", stage_lock(1)));
	stage_mend(s);
	stage_settle(s);
	assert_false(has(s, 2, "k", stage_lock(1)));
}

static void a_release_reaches_a_master_that_comes_back_before_it_is_answered(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_break(s, 0, 2);
	stage_stop(s, 0, 1, MESSAGE_RELEASE, true);
	uint64_t id = stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_mend(s);
	stage_settle(s);
	assert_false(answered(s, id));
	assert_true(has(s, 2, "k", stage_lock(1)));
	stage_stop(s, 0, 1, MESSAGE_RELEASE, false);
	stage_settle(s);
	assert_true(answered(s, id));
	assert_false(has(s, 2, "k", stage_lock(1)));
}

static void waits_are_answered_when_their_node_is_stopped(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t ids[2];
	for (int i = 0; i < 2; i++) {
		struct core_request r = stage_request(CORE_WAIT, "k", no_lock);
		r.for_free = true;
		r.wait = WAIT;
		ids[i] = stage_ask(s, 2, r);
	}
	stage_drain(s, 2);
	assert_int_equal(stage_answer(s, ids[0])->r.error, PAWL_ERECOVERING);
	assert_int_equal(stage_answer(s, ids[1])->r.error, PAWL_ERECOVERING);
}

/* The third master has missed the holder's commit, and has promised to somebody else. */
static void a_request_parked_by_a_quorum_does_not_pause_for_a_rival(void **state) {
	struct stage *s = *state;
	stage_cut(s, 0, 2, true);
	take(s, 0, "k", stage_lock(1));
	stage_stop(s, 0, 2, MESSAGE_LEARN, true);
	stage_cut(s, 0, 2, false);
	stage_mend(s);
	stage_settle(s);
	const struct message rival = { .kind = MESSAGE_PROMISE, .key = slice_str("k"),
		.lock_id = stage_lock(9), .attempt = 77 };
	stage_inject(s, 0, 2, &rival);
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	int64_t before = s->now;
	release(s, 0, "k", stage_lock(1));
	token_of(s, waiter);
	assert_int_equal(s->now, before);
}

/* ---- a record that is fetched from another master ---- */

static int setup_five(void **state) {
	struct stage_options o = named_options();
	o.masters = 5;
	*state = stage_born(&o);
	return 0;
}

static void an_extension_asks_another_master_for_the_record_when_the_first_one_is_lost(
	void **state) {
	struct stage *s = *state;
	stage_isolate(s, 0, true);
	stage_isolate(s, 4, true);
	take(s, 1, "k", stage_lock(1));
	/* That node would send it the record. */
	stage_kill(s, 1);
	stage_isolate(s, 0, false);
	stage_isolate(s, 4, false);
	stage_mend(s);
	stage_settle(s);
	assert_false(has(s, 0, "k", stage_lock(1)));
	stage_stop(s, 0, 2, MESSAGE_FETCH, true);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.deadline_kept = true;
	uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	assert_false(answered(s, id));
	assert_int_equal(s->sent[0][3][MESSAGE_FETCH], 0);
	stage_break(s, 0, 2);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	assert_true(has(s, 0, "k", stage_lock(1)) && has(s, 4, "k", stage_lock(1)));
}

/* ---- reads ---- */

static void a_quorum_read_asks_again_before_it_says_free_of_what_somebody_reported(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_cut(s, 0, 2, true);
	release(s, 0, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = true;
	stage_stop(s, 0, 1, MESSAGE_READ_ANSWER, true);
	uint64_t id = stage_ask(s, 1, r);
	/* The record is missing here, and node 2 has it. */
	stage_settle(s);
	assert_false(answered(s, id));
	stage_stop(s, 0, 1, MESSAGE_READ_ANSWER, false);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_read_again), 1);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	assert_false(stage_answer(s, id)->r.held);
}

/* ---- identities (section 9) ---- */

static void of_two_identities_that_try_for_one_lock_id_at_once_one_has_it(void **state) {
	struct stage *s = *state;
	struct core_request mine = stage_acquire("k", stage_lock(1), LEASE, 0), other = mine;
	mine.identity = slice_str("me");
	other.identity = slice_str("somebody else");
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, 2, i, MESSAGE_COMMIT, true);
	}
	uint64_t theirs = stage_ask(s, 2, other);
	/* Its promises are there, and its commits are under way. */
	stage_settle(s);
	uint64_t ours = stage_ask(s, 0, mine);
	stage_settle(s);
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, 2, i, MESSAGE_COMMIT, false);
	}
	stage_settle(s);
	assert_int_equal(stage_answer(s, ours)->r.error, PAWL_OK);
	assert_int_equal(stage_answer(s, theirs)->r.error, PAWL_EDENIED);
}

/* ---- numbers that cannot be right (section 9) ---- */

static void absurd_clocks_in_any_field_are_counted_and_not_adopted(void **state) {
	struct stage *s = *state;
	const uint64_t absurd = ((uint64_t)1 << 41) + stage_status(s, 0).clock,
		before = stage_status(s, 0).clock;
	const struct slice key = slice_str("k");
	const struct message rows[] = {
		{ .kind = MESSAGE_COMMIT, .key = key, .lock_id = stage_lock(1),
			.token = before + 1, .lease_us = 1000000, .ballot = { absurd, 1, 1 } },
		{ .kind = MESSAGE_COMMIT, .key = key, .lock_id = stage_lock(1),
			.token = absurd, .lease_us = 1000000, .ballot = { before, 1, 1 } },
		{ .kind = MESSAGE_LEARN, .key = key, .lock_id = stage_lock(1), .token = 1,
			.lease_us = 1000000, .ballot = { absurd, 1, 1 } },
		{ .kind = MESSAGE_PREPARE, .key = key, .lock_id = stage_lock(1),
			.ballot = { absurd, 1, 1 } },
		{ .kind = MESSAGE_WRITE, .key = key, .lock_id = stage_lock(1),
			.ballot = { absurd, 1, 1 } },
		{ .kind = MESSAGE_ENQUEUE, .key = key, .lock_id = stage_lock(1),
			.ticket = { absurd, 1 }, .flags = FLAG_WAIT },
		{ .kind = MESSAGE_PROMISE_ANSWER, .status = STATUS_OK, .noted = absurd },
		{ .kind = MESSAGE_PROMISE_ANSWER, .status = STATUS_HELD_SELF, .token = absurd },
		{ .kind = MESSAGE_TURN, .status = STATUS_OK, .noted = absurd },
		{ .kind = MESSAGE_WRITE_ANSWER, .status = STATUS_BALLOT,
			.prepared = { absurd, 1, 1 } },
		{ .kind = MESSAGE_PREPARE_ANSWER, .status = STATUS_BALLOT,
			.prepared = { absurd, 1, 1 } },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t counted = core_counts(s->nodes[0].core)[COUNT_clock_refused];
		stage_inject(s, 2, 0, &rows[i]);
		assert_int_equal(core_counts(s->nodes[0].core)[COUNT_clock_refused], counted + 1);
		assert_int_equal(stage_status(s, 0).clock, before);
		assert_int_equal(stage_status(s, 0).keys, 0);
	}
	stage_settle(s);
	take(s, 0, "k", stage_lock(1));
}

static void durations_without_end_do_not_overflow(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	const struct message m = { .kind = MESSAGE_ENQUEUE, .key = slice_str("k"),
		.lock_id = stage_lock(9), .attempt = 1, .ticket = { 1, 1 }, .left_us = UINT64_MAX,
		.flags = FLAG_WAIT };
	stage_inject(s, 2, 0, &m);
	const struct message endless = { .kind = MESSAGE_LEARN, .key = slice_str("j"),
		.lock_id = stage_lock(8), .token = 1, .lease_us = UINT64_MAX };
	stage_inject(s, 2, 0, &endless);
	stage_settle(s);
	assert_false(has(s, 0, "j", stage_lock(8)));
	struct core_request r = stage_request(CORE_WAITERS, "k", no_lock);
	stage_do(s, 0, r);
}

UNIT(cluster_links) {
	const struct CMUnitTest tests[] = {
		NAMED(a_lost_link_that_decides_a_break_ends_the_attempts_of_its_lock),
		NAMED(a_client_that_goes_when_its_key_is_just_free_takes_all_its_waits_along),
		NAMED(a_coordinator_that_is_lost_with_two_in_the_queue_leaves_nothing_behind),
		NAMED(a_request_with_a_turn_asks_a_master_that_comes_back_at_once),
		NAMED(a_release_reaches_a_master_that_was_stopped_and_started_meanwhile),
		NAMED(a_release_reaches_a_master_that_comes_back_before_it_is_answered),
		NAMED(waits_are_answered_when_their_node_is_stopped),
		NAMED(a_request_parked_by_a_quorum_does_not_pause_for_a_rival),
		cmocka_unit_test_setup_teardown(
			an_extension_asks_another_master_for_the_record_when_the_first_one_is_lost,
			setup_five, named_teardown),
		NAMED(a_quorum_read_asks_again_before_it_says_free_of_what_somebody_reported),
		NAMED(of_two_identities_that_try_for_one_lock_id_at_once_one_has_it),
		NAMED(absurd_clocks_in_any_field_are_counted_and_not_adopted),
		NAMED(durations_without_end_do_not_overflow),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
