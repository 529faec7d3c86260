/* These tests ask what a master accepts (docs/protocol.md, section 2). Each rule is shown by a
 * message that only this rule refuses. */
#include "named.h"

static struct message message_of(enum message_kind kind, struct id128 lock, uint64_t token) {
	return (struct message){ .kind = kind, .round = 1 << 16, .attempt = 1,
		.key = slice_str("k"), .lock_id = lock, .token = token,
		.lease_us = (uint64_t)LEASE / 1000, .ballot = { token, 1, 1 } };
}

static void a_higher_token_does_not_override_a_held_record(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 1, "k", stage_lock(2));
	struct message m = message_of(MESSAGE_COMMIT, stage_lock(3), token + 100);
	for (uint32_t i = 1; i < 3; i++) {
		stage_inject(s, 0, i, &m);
	}
	assert_int_equal(stage_count(s, COUNT_commit_refused_held), 2);
	assert_int_equal(stage_count(s, COUNT_contested), 0);
	assert_true(holds(s, 0, "k", stage_lock(2)));
}

static void a_commit_not_above_what_was_noted_is_stale(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 1, "other", stage_lock(2));
	stage_settle(s);
	struct message m = message_of(MESSAGE_PROMISE, stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	m = message_of(MESSAGE_COMMIT, stage_lock(1), token);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 1);
	assert_int_equal(stage_status(s, 1).promises, 1);
}

static void a_promise_asked_for_again_keeps_what_it_noted(void **state) {
	struct stage *s = *state;
	struct message m = message_of(MESSAGE_PROMISE, stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	uint64_t noted = stage_status(s, 1).clock;
	take(s, 2, "other", stage_lock(2));
	take(s, 2, "another", stage_lock(3));
	m.attempt = 2;
	stage_inject(s, 0, 1, &m);
	m = message_of(MESSAGE_COMMIT, stage_lock(1), noted + 1);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 0);
	assert_true(core_peek(s->nodes[1].core, slice_str("k"), stage_lock(1), &noted, &noted));
}

static void a_withdraw_leaves_the_promise_of_a_later_attempt_alone(void **state) {
	struct stage *s = *state;
	struct message m = message_of(MESSAGE_PROMISE, stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	m.attempt = 2;
	stage_inject(s, 0, 1, &m);
	m = message_of(MESSAGE_WITHDRAW, stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_status(s, 1).promises, 1);
	m.attempt = 2;
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_status(s, 1).promises, 0);
}

static void a_withdraw_leaves_what_is_held_alone(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	struct message m = message_of(MESSAGE_WITHDRAW, stage_lock(1), 0);
	for (uint32_t i = 1; i < 3; i++) {
		stage_inject(s, 0, i, &m);
	}
	assert_true(holds(s, 2, "k", stage_lock(1)));
}

static void a_release_reaches_a_master_that_was_away(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_cut(s, 0, 2, true);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(stage_status(s, 2).held, 1);
	stage_cut(s, 0, 2, false);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(stage_status(s, 2).held, 0);
}

/* The request whose turn it is has withdrawn its promise for a moment, because of a rival
 * elsewhere. */
static void at_the_home_nobody_slips_in_before_those_who_wait(void **state) {
	struct stage *s = *state;
	struct message m = message_of(MESSAGE_ENQUEUE, stage_lock(1), 0);
	m.ticket = (struct ticket){ 1, 1 };
	m.flags = FLAG_WAIT;
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_status(s, 1).promises, 1);
	m = message_of(MESSAGE_WITHDRAW, stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	m = message_of(MESSAGE_PROMISE, stage_lock(2), 0);
	m.flags = FLAG_HOME;
	stage_inject(s, 2, 1, &m);
	assert_int_equal(stage_count(s, COUNT_promise_refused_queued), 1);
	/* A turn counts whoever gave it. */
	m.flags = FLAG_TURN;
	stage_inject(s, 2, 1, &m);
	assert_int_equal(stage_status(s, 1).promises, 1);
}

/* ---- clocks ---- */

static void a_lease_is_over_when_both_clocks_say_so(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 10 * SPAN_S, 0)),
		PAWL_OK);
	s->nodes[1].raw_offset += 20 * SPAN_S;
	s->nodes[2].boot_offset += 20 * SPAN_S;
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(stage_status(s, 1).held + stage_status(s, 2).held, 2);
}

static void a_clock_from_too_far_is_not_adopted(void **state) {
	struct stage *s = *state;
	uint64_t clock = stage_status(s, 1).clock;
	struct frame frame = { .epoch = stage_status(s, 1).epoch,
		.config_hash = stage_status(s, 1).config_hash, .sender = s->nodes[0].disk.node_id,
		.boot = stage_status(s, 0).boot, .clock = clock + 2 * CLOCK_JUMP_MAX,
		.flags = FRAME_VOTING };
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = 0, .frame = &frame });
	assert_int_equal(stage_status(s, 1).clock, clock);
	frame.clock = clock + CLOCK_JUMP_MAX;
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = 0, .frame = &frame });
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX);
}

/* The clock reservation covers the clock, from whatever source; so it also covers a clock that was
 * only heard (section 1). */
static void nothing_leaves_while_a_heard_clock_is_above_the_reservation_on_disk(void **state) {
	struct stage *s = *state;
	s->nodes[1].disk_held = true;
	struct frame frame = { .epoch = stage_status(s, 1).epoch,
		.config_hash = stage_status(s, 1).config_hash, .sender = s->nodes[0].disk.node_id,
		.boot = stage_status(s, 0).boot,
		.clock = stage_status(s, 1).clock + 4 * CEILING_BLOCK, .flags = FRAME_VOTING };
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = 0, .frame = &frame });
	struct message m = message_of(MESSAGE_PROMISE, stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	assert_false(stage_head_is(s, 1, 0, MESSAGE_PROMISE_ANSWER));
	s->nodes[1].disk_held = false;
	stage_flush(s, 1);
	assert_true(stage_head_is(s, 1, 0, MESSAGE_PROMISE_ANSWER));
	assert_true(s->nodes[1].disk.ceiling >= frame.clock);
}

UNIT(rules_masters) {
	const struct CMUnitTest tests[] = {
		NAMED(a_higher_token_does_not_override_a_held_record),
		NAMED(a_commit_not_above_what_was_noted_is_stale),
		NAMED(a_promise_asked_for_again_keeps_what_it_noted),
		NAMED(a_withdraw_leaves_the_promise_of_a_later_attempt_alone),
		NAMED(a_withdraw_leaves_what_is_held_alone),
		NAMED(a_release_reaches_a_master_that_was_away),
		NAMED(at_the_home_nobody_slips_in_before_those_who_wait),
		NAMED(a_lease_is_over_when_both_clocks_say_so),
		NAMED(a_clock_from_too_far_is_not_adopted),
		NAMED(nothing_leaves_while_a_heard_clock_is_above_the_reservation_on_disk),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
