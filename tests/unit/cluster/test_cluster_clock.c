/* These tests ask how fast others may raise the clock from which tokens are taken
 * (docs/protocol.md, section 9). One member that says wrong clocks neither uses the tokens up nor
 * holds the others back. */
#include "members.h"

/* `from` says a clock in a frame without a message. */
static void say(struct stage *s, uint32_t from, uint32_t to, uint64_t clock) {
	struct core_status status = stage_status(s, from);
	struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[from].disk.node_id, .boot = status.boot, .clock = clock,
		.flags = FRAME_VOTING };
	stage_step(s, to, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, to, from),
		.frame = &frame });
}

/* A commit with that token comes from `from`, which gives its clock to nobody else. */
static void raise(struct stage *s, uint32_t from, uint32_t to, uint64_t token) {
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("far"), .lock_id = stage_lock((uint8_t)(token >> 38)),
		.token = token, .lease_us = 100, .ballot = { token, 1, 1 } };
	stage_inject(s, from, to, &m);
	stage_settle(s);
}

static void one_member_raises_the_clock_by_one_a_nanosecond_at_most(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 1).clock;
	say(s, 0, 1, clock + CLOCK_JUMP_MAX);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX);
	say(s, 0, 1, clock + CLOCK_JUMP_MAX + SPAN_S);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX);
	assert_true(stage_noted(s, 1, NOTE_CLOCK_REFUSED));
	raise(s, 0, 1, clock + CLOCK_JUMP_MAX + SPAN_S);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX);
	stage_wait(s, SPAN_S);
	say(s, 0, 1, clock + CLOCK_JUMP_MAX + SPAN_S);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX + SPAN_S);
	say(s, 0, 1, clock + CLOCK_JUMP_MAX + SPAN_S + 1);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX + SPAN_S);
}

static void the_margin_comes_back_with_time_and_grows_no_further(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 1).clock;
	say(s, 0, 1, clock + CLOCK_JUMP_MAX);
	stage_wait(s, 2 * (span_ns)CLOCK_JUMP_MAX);
	say(s, 0, 1, clock + 2 * CLOCK_JUMP_MAX + 1);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX);
	say(s, 0, 1, clock + 2 * CLOCK_JUMP_MAX);
	assert_int_equal(stage_status(s, 1).clock, clock + 2 * CLOCK_JUMP_MAX);
}

static void a_clock_that_a_quorum_of_others_says_is_followed(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 1).clock, high = clock + CLOCK_JUMP_MAX + SPAN_S;
	say(s, 0, 1, clock + CLOCK_JUMP_MAX);
	say(s, 0, 1, 2 * high);
	assert_int_equal(stage_status(s, 1).clock, clock + CLOCK_JUMP_MAX);
	say(s, 2, 1, high);
	assert_int_equal(stage_status(s, 1).clock, high);
	assert_int_equal(stage_count(s, COUNT_clock_followed), 1);
	assert_int_equal(stage_count(s, COUNT_clock_behind), 0);
	assert_int_equal(stage_status(s, 1).state, CORE_VOTING);
	/* n1 does not take a clock for what one member says alone. */
	say(s, 0, 1, 2 * high);
	assert_int_equal(stage_status(s, 1).clock, high);
}

/* n2 raises n0's clock as far as it may, n0 starts again above that, and n2 is gone: n0 and n1 are
 * a quorum. */
static void a_clock_that_one_member_says_for_long_is_followed_at_the_pace_of_time(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 1).clock;
	stage_isolate(s, 1, true);
	say(s, 2, 0, clock + CLOCK_JUMP_MAX);
	stage_wait(s, SPAN_S);
	say(s, 2, 0, clock + CLOCK_JUMP_MAX + SPAN_S);
	assert_int_equal(stage_status(s, 0).clock, clock + CLOCK_JUMP_MAX + SPAN_S);
	stage_kill(s, 2);
	stage_cut(s, 0, 1, false);
	stage_wait(s, SPAN_S / 2);
	assert_true(stage_status(s, 1).clock < clock + CLOCK_JUMP_MAX);
	stage_wait(s, SPAN_S);
	const uint64_t followed = stage_status(s, 1).clock;
	assert_true(followed >= clock + CLOCK_JUMP_MAX + SPAN_S);
	/* No margin has come with the time that passed. */
	say(s, 0, 1, followed + CLOCK_JUMP_MAX);
	assert_int_equal(stage_status(s, 1).clock, followed);
	take(s, 1, "k", stage_lock(1));
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, 3 * s->options.max_lease));
	stage_wait(s, SPAN_S / 10);
	take(s, 1, "l", stage_lock(2));
}

/* n0's clock is raised by n4 while both are cut off; then n4 dies. */
static void a_node_that_does_not_vote_takes_no_clock_that_one_source_says_alone(void **state) {
	(void)state;
	struct stage_options options = stage_options_plain();
	options.masters = 5;
	struct stage *s = stage_born(&options);
	const uint64_t clock = stage_status(s, 0).clock;
	stage_kill(s, 1);
	for (uint32_t near = 2; near < 4; near++) {
		stage_cut(s, 0, near, true);
		stage_cut(s, 4, near, true);
	}
	raise(s, 4, 0, clock + CLOCK_JUMP_MAX);
	stage_wait(s, CLOCK_JUMP_MAX);
	raise(s, 4, 0, clock + 2 * CLOCK_JUMP_MAX);
	assert_true(stage_status(s, 0).clock >= clock + 2 * CLOCK_JUMP_MAX);
	stage_kill(s, 4);
	stage_cut(s, 0, 2, false);
	stage_cut(s, 0, 3, false);
	assert_true(stage_start(s, 1));
	assert_false(stage_until_voting(s, 1, 3 * SPAN_S));
	assert_true(stage_status(s, 1).clock < CLOCK_JUMP_MAX &&
		stage_status(s, 2).clock < CLOCK_JUMP_MAX);
	assert_true(stage_noted(s, 1, NOTE_CLOCK_REFUSED));
	stage_free(s);
}

/* n2 has used up what n0 and n1 allow at once. n0 starts again, and n2 is gone for good. */
static void a_master_that_starts_again_is_not_driven_away_from_the_others(void **state) {
	struct stage *s = *state;
	const uint64_t high = stage_status(s, 1).clock + CLOCK_JUMP_MAX;
	say(s, 2, 0, high);
	say(s, 2, 1, high);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, 3 * SPAN_S));
	say(s, 2, 0, high + CLOCK_JUMP_MAX);
	say(s, 2, 0, high + CLOCK_JUMP_MAX);
	stage_kill(s, 2);
	assert_true(stage_status(s, 0).clock <= stage_status(s, 1).clock + CLOCK_JUMP_MAX);
	stage_wait(s, 5 * SPAN_S);
	take(s, 0, "k", stage_lock(1));
	take(s, 1, "l", stage_lock(2));
}

static bool wait_until_noted(struct stage *s, uint32_t node, enum core_note_kind kind,
	span_ns limit) {
	const int64_t end = s->now + limit;
	while (!stage_noted(s, node, kind) && s->now < end) {
		stage_wait(s, SPAN_MS);
	}
	return stage_noted(s, node, kind);
}

static void start_at(struct stage *s, uint32_t node, uint64_t clock) {
	stage_kill(s, node);
	s->nodes[node].disk.ceiling = clock;
	assert_true(stage_start(s, node));
}

/* n3 has come into the set, and has not taken over yet: it needs n1 for that, as n2 is gone for
 * good. n1 finds itself far behind n0 and n3. Then n1 can only come back by waiting, as n3 does not
 * vote; and it must not find itself behind again at the moment at which it does come back. */
static void a_master_that_waits_because_its_clock_is_behind_is_behind_no_more(void **state) {
	struct stage *s = *state;
	const uint64_t high = stage_status(s, 0).clock + 3 * CLOCK_JUMP_MAX;
	add_replica(s, 0, "n4", "n4:7118");
	stage_isolate(s, 3, true);
	assert_int_equal(do_change(s, 0, set_of("124")), PAWL_OK);
	stage_kill(s, 2);
	stage_cut(s, 0, 1, true);
	start_at(s, 3, high);
	start_at(s, 0, high);
	stage_cut(s, 0, 3, false);
	assert_true(stage_until_voting(s, 0, 3 * s->options.max_lease));
	stage_cut(s, 1, 3, false);
	stage_cut(s, 0, 1, false);
	assert_true(wait_until_noted(s, 1, NOTE_CLOCK_BEHIND, SPAN_S));
	assert_true(stage_until_voting(s, 1, 3 * s->options.max_lease));
	assert_true(stage_status(s, 1).clock >= high);
	assert_true(stage_until_voting(s, 3, SPAN_S));
	assert_int_equal(count_of(s, 1, COUNT_clock_behind), 1);
	assert_true(stage_status(s, 1).clock < high + CLOCK_JUMP_MAX);
	take(s, 1, "k", stage_lock(1));
}

/* n1 has missed a release. It keeps its own table while it rejoins, and the others tell it what
 * they remember of the lock: its lock_id, and not its key. */
static void a_master_that_rejoins_with_its_memory_drops_what_was_released_meanwhile(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(knows(s, 1, "k", stage_lock(1)));
	stage_lose(s, 0, 1, MESSAGE_RELEASE, true);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	const uint64_t high = stage_status(s, 1).clock + 2 * CLOCK_JUMP_MAX;
	say(s, 0, 1, high);
	say(s, 2, 1, high);
	assert_int_equal(stage_count(s, COUNT_clock_behind), 1);
	assert_true(knows(s, 1, "k", stage_lock(1)));
	assert_true(stage_until_voting(s, 1, SPAN_S));
	assert_false(knows(s, 1, "k", stage_lock(1)));
}

/* n2 drives n0 away from n1, so that n1 rejoins with the whole margin, and then n1 away from n0,
 * and so on. */
static void a_master_that_rejoined_because_it_was_behind_does_not_do_so_again_at_once(
	void **state) {
	struct stage *s = *state;
	for (uint64_t times = 1; times < 3; times++) {
		const uint64_t high = stage_status(s, 1).clock + 2 * CLOCK_JUMP_MAX;
		say(s, 0, 1, high);
		say(s, 2, 1, high);
		assert_int_equal(stage_count(s, COUNT_clock_behind), times);
		assert_true(stage_until_voting(s, 1, SPAN_S));
		say(s, 0, 1, high);
		say(s, 2, 1, high);
		assert_int_equal(stage_status(s, 1).state, CORE_VOTING);
		assert_int_equal(stage_count(s, COUNT_clock_behind), times);
		stage_wait(s, 8 * (span_ns)CLOCK_JUMP_MAX);
	}
}

/* n2 drives n0 far above n1, and is gone. n3 and n4 are to take over from n0 and n1, and need both.
 * One of the two alone says the higher clock; it is believed once its clock could have come so far
 * with time. */
static void a_node_that_copies_waits_for_a_clock_no_longer_than_that_is_ahead(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	add_replica(s, 0, "n5", "n5:7118");
	stage_isolate(s, 3, true);
	stage_isolate(s, 4, true);
	struct core_change both = set_of("45");
	both.anyway = true;
	(void)ask_change(s, 0, both);
	assert_true(wait_until_epoch(s, 0, 4, 5 * SPAN_S) &&
		wait_until_epoch(s, 1, 4, 5 * SPAN_S) && wait_until_epoch(s, 2, 4, 5 * SPAN_S));
	stage_cut(s, 0, 1, true);
	stage_cut(s, 1, 2, true);
	const uint64_t low = stage_status(s, 1).clock;
	say(s, 2, 0, low + CLOCK_JUMP_MAX);
	stage_wait(s, (span_ns)CLOCK_JUMP_MAX + SPAN_MS);
	say(s, 2, 0, low + 2 * CLOCK_JUMP_MAX);
	assert_true(stage_status(s, 0).clock >= low + 2 * CLOCK_JUMP_MAX);
	stage_kill(s, 2);
	stage_isolate(s, 3, false);
	stage_isolate(s, 4, false);
	stage_wait(s, (span_ns)CLOCK_JUMP_MAX - SPAN_S / 2);
	assert_true(stage_noted(s, 3, NOTE_CLOCK_REFUSED));
	assert_int_equal(state_of(s, 3), CORE_HANDOVER);
	assert_true(stage_until_voting(s, 3, SPAN_S));
	assert_true(stage_until_voting(s, 4, SPAN_S));
	assert_true(take(s, 3, "k", stage_lock(1)) > low + 2 * CLOCK_JUMP_MAX);
}

/* n3, a replica, is linked with n2 alone. */
static void a_replica_does_not_take_a_clock_that_the_master_which_it_follows_says_alone(
	void **state) {
	(void)state;
	struct stage_options options = stage_options_plain();
	options.replicas = 1;
	struct stage *s = stage_born(&options);
	stage_kill(s, 2);
	s->nodes[2].disk.ceiling = TOKEN_MAX / 2;
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, 3 * s->options.max_lease));
	stage_cut(s, 0, 3, true);
	stage_cut(s, 1, 3, true);
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(s->nodes[3].node_of[stage_status(s, 3).following], 2);
	assert_true(stage_status(s, 3).clock < CLOCK_JUMP_MAX);
	stage_free(s);
}

UNIT(cluster_clock) {
	const struct CMUnitTest tests[] = {
		NAMED(one_member_raises_the_clock_by_one_a_nanosecond_at_most),
		NAMED(the_margin_comes_back_with_time_and_grows_no_further),
		NAMED(a_clock_that_a_quorum_of_others_says_is_followed),
		NAMED(a_clock_that_one_member_says_for_long_is_followed_at_the_pace_of_time),
		NAMED(a_master_that_starts_again_is_not_driven_away_from_the_others),
		MEMBERS(a_master_that_waits_because_its_clock_is_behind_is_behind_no_more),
		NAMED(a_master_that_rejoins_with_its_memory_drops_what_was_released_meanwhile),
		NAMED(a_master_that_rejoined_because_it_was_behind_does_not_do_so_again_at_once),
		MEMBERS_3(a_node_that_copies_waits_for_a_clock_no_longer_than_that_is_ahead),
		cmocka_unit_test(
		a_replica_does_not_take_a_clock_that_the_master_which_it_follows_says_alone),
		cmocka_unit_test(
			a_node_that_does_not_vote_takes_no_clock_that_one_source_says_alone),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
