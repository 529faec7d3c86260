/* These tests are about the clock reservation (`ceiling`) where a node stops voting
 * (docs/protocol.md, section 1). */
#include "named.h"

/* The longest lease as others measure it, max_lease (1 + 2 drift), and a beat. */
#define ALL_OVER (10 * SPAN_S + 300 * SPAN_MS)

/* Five masters, of which n4 and n5 are away. n1's disk hangs, and it takes X's commit with a token
 * beyond the reservation on that disk. n1 promised while its clock was low. n3 had a high clock, of
 * which n2 heard with n3's promise. */
static uint64_t accept_above_the_reservation(struct stage *s) {
	stage_isolate(s, 3, true);
	stage_isolate(s, 4, true);
	stage_cut(s, 0, 2, true);
	s->nodes[0].disk_held = true;
	const uint64_t far = stage_status(s, 2).clock + CEILING_BLOCK * 2;
	const struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("far"), .lock_id = stage_lock(9), .token = far, .lease_us = 100000,
		.ballot = { far, 1, 1 } };
	s->held[2][1] = true;
	stage_inject(s, 1, 2, &m);
	s->held[0][1] = true;
	const uint64_t x = stage_ask(s, 1, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	s->held[0][1] = false;
	stage_settle(s);
	s->held[2][1] = false;
	stage_settle(s);
	/* n1 has taken the commit, and says nothing. */
	assert_null(stage_answer(s, x));
	assert_true(stage_status(s, 0).clock > stage_status(s, 0).ceiling);
	return x;
}

/* n1 is killed while its disk hangs. When n1, n4 and n5 grant Y, nobody of those who know X's token
 * is there. */
static uint64_t take_after_a_crash(struct stage *s) {
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	s->nodes[0].disk_held = false;
	assert_true(stage_start(s, 0));
	stage_isolate(s, 3, false);
	stage_isolate(s, 4, false);
	stage_wait(s, ALL_OVER);
	return take(s, 3, "k", stage_lock(2));
}

static void stop_voting_with(struct stage *s, uint64_t x, const struct core_event *events,
	size_t count, enum core_state state) {
	for (size_t i = 0; i < count; i++) {
		stage_step(s, 0, &events[i]);
	}
	stage_settle(s);
	assert_int_equal(stage_status(s, 0).state, state);
	const struct stage_reply *r = stage_answer(s, x);
	const uint64_t token = r && r->r.error == PAWL_OK ? r->r.token : 0;
	assert_true(take_after_a_crash(s) > token);
	assert_int_equal(token, 0);
}

static void a_vote_that_was_held_back_does_not_leave_because_its_master_is_told_to_stop(
	void **state) {
	stop_voting_with(*state, accept_above_the_reservation(*state),
		&(struct core_event){ .kind = CORE_DRAIN }, 1, CORE_DRAINED);
}

/* The node hears from more than n - q others that they have another configuration of the same
 * number, and stops voting. */
static void a_vote_that_was_held_back_does_not_leave_because_its_master_recovers_again(
	void **state) {
	struct stage *s = *state;
	static const uint32_t others[3] = { 1, 3, 4 };
	struct frame frames[3];
	struct core_event events[3];
	const uint64_t x = accept_above_the_reservation(s);
	stage_cut(s, 0, 3, false);
	stage_cut(s, 0, 4, false);
	stage_mend(s);
	for (uint32_t i = 0; i < 3; i++) {
		const struct core_status status = stage_status(s, others[i]);
		frames[i] = (struct frame){ .epoch = status.epoch,
			.config_hash = status.config_hash + 1,
			.sender = s->nodes[others[i]].disk.node_id, .boot = status.boot,
			.clock = status.clock, .flags = FRAME_VOTING };
		events[i] = (struct core_event){ .kind = CORE_FRAME,
			.peer = stage_peer(s, 0, others[i]), .frame = &frames[i] };
	}
	stop_voting_with(s, x, events, 3, CORE_RECOVERING);
}

/* The vote is only held back. It leaves when the clock reservation is on disk, as it would from a
 * node that votes. */
static void a_vote_that_was_held_back_leaves_a_stopping_master_once_its_reservation_is_on_disk(
	void **state) {
	struct stage *s = *state;
	const uint64_t x = accept_above_the_reservation(s);
	stage_step(s, 0, &(struct core_event){ .kind = CORE_DRAIN });
	stage_settle(s);
	assert_null(stage_answer(s, x));
	s->nodes[0].disk_held = false;
	stage_flush(s, 0);
	stage_settle(s);
	const uint64_t token = token_of(s, x);
	assert_true(take_after_a_crash(s) > token);
}

static int five(void **state) {
	struct stage_options o = named_options();
	o.masters = 5;
	*state = stage_born(&o);
	return 0;
}

#define FIVE(test) cmocka_unit_test_setup_teardown(test, five, named_teardown)

UNIT(cluster_reservation) {
	const struct CMUnitTest tests[] = {
		FIVE(a_vote_that_was_held_back_does_not_leave_because_its_master_is_told_to_stop),
		FIVE(a_vote_that_was_held_back_does_not_leave_because_its_master_recovers_again),
		FIVE(
		a_vote_that_was_held_back_leaves_a_stopping_master_once_its_reservation_is_on_disk),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
