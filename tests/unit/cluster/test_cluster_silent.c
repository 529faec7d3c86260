/* These tests are about a master that hangs while its links stay up: those who wait for a key whose
 * home it is find another home within a moment (docs/protocol.md, section 5, Silence). */
#include <stdio.h>

#include "modes.h"

/* Shorter than the time after which the link is given up, and longer than it takes until a master
 * is suspect. */
#define MOMENT (20 * SPAN_MS)

static bool granted(const struct stage *s, uint64_t id) {
	const struct stage_reply *r = stage_answer(s, id);
	return r && r->r.error == PAWL_OK;
}

/* The masters have answered pings, so that it is known how slow they are, and the next beat, which
 * pings them all, is 24 ms away. */
static void warm(struct stage *s) {
	stage_wait(s, 200 * SPAN_MS);
	const uint64_t *pings = &s->sent[0][2][MESSAGE_PING], before = *pings;
	while (*pings == before) {
		stage_wait(s, SPAN_MS);
	}
}

/* n3 hangs. This node does not miss what n3 is silent about: it is told something all the time. */
static void suspect_later(struct stage *s, uint32_t node) {
	for (uint32_t i = 0; i < 10; i++) {
		stage_inject(s, 2, node, &(struct message){ .kind = MESSAGE_PONG });
		stage_wait(s, 4 * SPAN_MS);
	}
}

/* n1 holds the key, whose home hangs. A request that comes to n2 then enters another queue. */
static void who_comes_enters_elsewhere_when_the_home_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	take(s, 0, key, stage_lock(1));
	stage_pause(s, 2);
	uint64_t id = wait_for(s, 1, key, stage_lock(2));
	stage_wait(s, MOMENT);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	token_of(s, id);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
}

/* Two come to a free key at the same time, and each has one promise. */
static void a_tie_does_not_wait_for_the_vote_of_a_master_that_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	stage_pause(s, 2);
	uint64_t one = stage_ask(s, 0, stage_acquire(key, stage_lock(1), LEASE, WAIT)),
		other = stage_ask(s, 1, stage_acquire(key, stage_lock(2), LEASE, WAIT));
	stage_wait(s, MOMENT);
	assert_true(granted(s, one) != granted(s, other));
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
}

/* The same with try-locks. One of them has the key, and the other is refused for that alone. */
static void a_tie_of_try_locks_does_not_wait_either(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	stage_pause(s, 2);
	uint64_t ids[2];
	for (uint32_t i = 0; i < 2; i++) {
		struct id128 lock = stage_lock((uint8_t)(1 + i));
		ids[i] = stage_ask(s, i, stage_acquire(key, lock, LEASE, 0));
	}
	stage_wait(s, MOMENT);
	assert_true(granted(s, ids[0]) != granted(s, ids[1]));
	const struct stage_reply *r = stage_answer(s, ids[granted(s, ids[0])]);
	assert_non_null(r);
	assert_int_equal(r->r.error, PAWL_EHELD);
}

/* n2 is down and n3 hangs for a moment. A try-lock at n1 needs both of n1 and n3. */
static void a_try_lock_does_not_fail_because_a_master_is_suspect(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	warm(s);
	stage_kill(s, 1);
	stage_pause(s, 2);
	uint64_t id = stage_ask(s, 0, stage_acquire(key, stage_lock(1), LEASE, 0));
	stage_wait(s, MOMENT);
	assert_int_equal(stage_count(s, COUNT_suspected), 1);
	assert_null(stage_answer(s, id));
	stage_continue(s, 2);
	stage_settle(s);
	token_of(s, id);
}

/* Two wait, and the second one has no turn when the home hangs. The first one has the key without
 * the home, which then owes the second one its turn. The node of that one has asked the home
 * nothing, and nobody tells it anything. */
static void the_next_turn_does_not_wait_for_a_home_that_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	take(s, 1, key, stage_lock(1));
	uint64_t first = wait_for(s, 1, key, stage_lock(2)),
		second = wait_for(s, 0, key, stage_lock(3));
	warm(s);
	stage_pause(s, 2);
	stage_lose(s, 1, 0, MESSAGE_PING, true);
	assert_int_equal(release(s, 1, key, stage_lock(1)), PAWL_OK);
	token_of(s, first);
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	stage_wait(s, MOMENT);
	token_of(s, second);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
}

/* Nothing at all happens here when the home hangs. Its nodes find out with the next beat. */
static void a_home_that_hangs_while_nothing_happens_is_suspect_too(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	take(s, 0, key, stage_lock(1));
	uint64_t id = wait_for(s, 1, key, stage_lock(2));
	warm(s);
	stage_pause(s, 2);
	stage_wait(s, 25 * SPAN_MS + MOMENT);
	assert_int_equal(stage_count(s, COUNT_suspected), 2);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	token_of(s, id);
}

/* Four wait in the order of their locks, at two nodes by turns. The next home is one of these
 * nodes, and has the requests of its own first. */
static void those_who_wait_keep_their_order(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	uint64_t ids[4];
	take(s, 0, key, stage_lock(1));
	for (uint8_t i = 0; i < 4; i++) {
		ids[i] = wait_for(s, i % 2, key, stage_lock((uint8_t)(i + 2)));
	}
	warm(s);
	stage_pause(s, 2);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	for (uint8_t i = 0; i < 4; i++) {
		stage_wait(s, MOMENT);
		token_of(s, ids[i]);
		assert_int_equal(release(s, i % 2, key, stage_lock((uint8_t)(i + 2))), PAWL_OK);
	}
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
}

/* They keep it also where the next home is the other one of the two. */
static void those_who_wait_keep_their_order_at_another_home(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	uint64_t ids[4];
	take(s, 0, key, stage_lock(1));
	for (uint8_t i = 0; i < 4; i++) {
		ids[i] = wait_for(s, 1 - i % 2, key, stage_lock((uint8_t)(i + 2)));
	}
	warm(s);
	stage_pause(s, 2);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	for (uint8_t i = 0; i < 4; i++) {
		stage_wait(s, MOMENT);
		token_of(s, ids[i]);
		assert_int_equal(release(s, 1 - i % 2, key, stage_lock((uint8_t)(i + 2))), PAWL_OK);
	}
}

/* The node of the later request suspects the home 2 ms before that of the earlier one. The next
 * home is the one or the other node, and the key is free. */
static void the_next_home_waits_a_moment_for_an_earlier_request(void **state) {
	struct stage *s = *state;
	for (uint32_t late = 0; late < 2; late++) {
		const char *key = key_of_home(s, 2);
		const uint8_t lock = (uint8_t)(10 * late);
		take(s, late, key, stage_lock((uint8_t)(lock + 1)));
		uint64_t first = wait_for(s, late, key, stage_lock((uint8_t)(lock + 2))),
			second = wait_for(s, late, key, stage_lock((uint8_t)(lock + 3))),
			third = wait_for(s, 1 - late, key, stage_lock((uint8_t)(lock + 4)));
		warm(s);
		stage_pause(s, 2);
		assert_int_equal(release(s, late, key, stage_lock((uint8_t)(lock + 1))), PAWL_OK);
		token_of(s, first);
		assert_int_equal(release(s, late, key, stage_lock((uint8_t)(lock + 2))), PAWL_OK);
		stage_wait(s, 2 * SPAN_MS);
		stage_inject(s, 2, late, &(struct message){ .kind = MESSAGE_PONG });
		stage_wait(s, MOMENT);
		token_of(s, second);
		assert_null(stage_answer(s, third));
		assert_int_equal(release(s, late, key, stage_lock((uint8_t)(lock + 3))), PAWL_OK);
		stage_wait(s, MOMENT);
		token_of(s, third);
		assert_int_equal(release(s, 1 - late, key, stage_lock((uint8_t)(lock + 4))),
			PAWL_OK);
		stage_continue(s, 2);
		stage_wait(s, 10 * SPAN_S);
	}
}

/* n1 finds out that the home hangs before n2 does. So the later request has the turn of the next
 * home when the earlier one comes there, and is parked at both. */
static void an_earlier_request_that_comes_later_is_served_first(void **state) {
	struct stage *s = *state;
	for (uint32_t late = 0; late < 2; late++) {
		const char *key = key_of_home(s, 2);
		const uint8_t lock = (uint8_t)(10 * late);
		take(s, 0, key, stage_lock((uint8_t)(lock + 1)));
		uint64_t first = wait_for(s, late, key, stage_lock((uint8_t)(lock + 2))),
			second = wait_for(s, late, key, stage_lock((uint8_t)(lock + 3))),
			third = wait_for(s, 1 - late, key, stage_lock((uint8_t)(lock + 4)));
		warm(s);
		stage_pause(s, 2);
		/* The first one has the key, and nobody has a turn any more. */
		assert_int_equal(release(s, 0, key, stage_lock((uint8_t)(lock + 1))), PAWL_OK);
		token_of(s, first);
		suspect_later(s, late);
		assert_true(stage_count(s, COUNT_suspected) >= 1);
		stage_wait(s, MOMENT);
		assert_int_equal(release(s, late, key, stage_lock((uint8_t)(lock + 2))), PAWL_OK);
		token_of(s, second);
		assert_null(stage_answer(s, third));
		assert_int_equal(release(s, late, key, stage_lock((uint8_t)(lock + 3))), PAWL_OK);
		token_of(s, third);
		assert_int_equal(release(s, 1 - late, key, stage_lock((uint8_t)(lock + 4))),
			PAWL_OK);
		stage_continue(s, 2);
		stage_wait(s, 10 * SPAN_S);
	}
}

/* n3 hangs, and n2 has promised a rival. n1's request, which has the turn, pauses. */
static void a_turn_does_not_wait_for_the_vote_of_a_master_that_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 0);
	warm(s);
	stage_pause(s, 2);
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_PROMISE,
		.round = 7 << 16, .attempt = 7, .key = slice_str(key), .lock_id = stage_lock(7),
		.flags = FLAG_TURN });
	uint64_t id = wait_for(s, 0, key, stage_lock(1)),
		rivals = stage_count(s, COUNT_turn_rival);
	stage_wait(s, MOMENT);
	assert_true(stage_count(s, COUNT_turn_rival) > rivals);
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_WITHDRAW, .key = slice_str(key),
		.lock_id = stage_lock(7), .attempt = 7 });
	stage_wait(s, MOMENT);
	token_of(s, id);
}

static void nobody_is_pinged_for_silence_while_all_is_well(void **state) {
	struct stage *s = *state;
	for (uint32_t home = 0; home < 3; home++) {
		const char *key = key_of_home(s, home);
		const uint8_t lock = (uint8_t)(10 * home);
		take(s, 0, key, stage_lock((uint8_t)(lock + 1)));
		uint64_t first = wait_for(s, 1, key, stage_lock((uint8_t)(lock + 2))),
			second = wait_for(s, 2, key, stage_lock((uint8_t)(lock + 3)));
		stage_wait(s, SPAN_S);
		assert_int_equal(release(s, 0, key, stage_lock((uint8_t)(lock + 1))), PAWL_OK);
		token_of(s, first);
		stage_wait(s, SPAN_S);
		assert_int_equal(extend(s, 1, key, stage_lock((uint8_t)(lock + 2)), LEASE, true),
			PAWL_OK);
		stage_wait(s, SPAN_S);
		assert_int_equal(release(s, 1, key, stage_lock((uint8_t)(lock + 2))), PAWL_OK);
		token_of(s, second);
		assert_int_equal(release(s, 2, key, stage_lock((uint8_t)(lock + 3))), PAWL_OK);
	}
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
	assert_int_equal(stage_count(s, COUNT_silence_pinged), 0);
}

/* The first home of the key is back. Requests go back to it, and it gives the turns again. */
static void requests_go_back_to_a_home_that_goes_on(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	take(s, 0, key, stage_lock(1));
	stage_pause(s, 2);
	uint64_t first = wait_for(s, 1, key, stage_lock(2)),
		second = wait_for(s, 1, key, stage_lock(3));
	stage_wait(s, MOMENT);
	uint64_t changed = stage_count(s, COUNT_home_changed);
	stage_continue(s, 2);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_home_changed), changed + 2);
	assert_int_equal(stage_status(s, 2).voting_linked, 3);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	token_of(s, first);
	stage_wait(s, MOMENT);
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
}

/* n2 is not told that its requests are in the queue. The answer to a ping says that the home is
 * there, and that no other answer is coming. */
static void a_master_that_answers_a_ping_is_not_suspect(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	take(s, 0, key, stage_lock(1));
	(void)wait_for(s, 0, key, stage_lock(2));
	stage_lose(s, 2, 1, MESSAGE_ENQUEUE_ANSWER, true);
	for (uint8_t i = 0; i < 3; i++) {
		(void)wait_for(s, 1, key, stage_lock((uint8_t)(3 + i)));
		stage_wait(s, 8 * SPAN_MS);
	}
	const uint64_t pinged = stage_count(s, COUNT_silence_pinged);
	assert_in_range(pinged, 1, 9);
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_count(s, COUNT_silence_pinged), pinged);
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
}

/* The home hung, and may be silent for twice as long the next time, but for no longer; and after a
 * while for no longer than before. */
static void a_suspicion_that_was_wrong_makes_the_next_one_slower(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	take(s, 0, key, stage_lock(1));
	for (uint8_t i = 0; i < 2; i++) {
		stage_pause(s, 2);
		(void)wait_for(s, 1, key, stage_lock((uint8_t)(2 + i)));
		stage_wait(s, 14 * SPAN_MS);
		/* By n1 and n2. */
		assert_int_equal(stage_count(s, COUNT_suspected), 2);
		stage_wait(s, i == 0 ? 0 : 12 * SPAN_MS);
		assert_int_equal(stage_count(s, COUNT_suspected), 2 + 2 * i);
		stage_continue(s, 2);
		stage_settle(s);
		assert_int_equal(stage_count(s, COUNT_suspected_wrongly), 2 + 2 * i);
	}
	stage_wait(s, 10 * SPAN_S);
	const uint64_t before = stage_count(s, COUNT_suspected);
	key = key_of_home(s, 2);
	take(s, 0, key, stage_lock(11));
	stage_pause(s, 2);
	(void)wait_for(s, 1, key, stage_lock(12));
	stage_wait(s, 14 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_suspected), before + 2);
}

/* n3 has answered a ping late, and may be silent for longer than another master. */
static void a_slow_master_may_be_silent_for_longer(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	take(s, 0, key, stage_lock(1));
	stage_pause(s, 2);
	(void)wait_for(s, 1, key, stage_lock(2));
	stage_wait(s, 10 * SPAN_MS);
	stage_continue(s, 2);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
	stage_pause(s, 2);
	(void)wait_for(s, 1, key, stage_lock(3));
	stage_wait(s, 14 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
}

/* What the others have said meanwhile is unread. */
/* How long it hung is no round trip. */
static void a_second_hang_takes_those_who_wait_no_longer_than_the_first(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	take(s, 0, key, stage_lock(1));
	const uint64_t first = wait_for(s, 1, key, stage_lock(2)),
		second = wait_for(s, 0, key, stage_lock(3));
	warm(s);
	stage_pause(s, 2);
	stage_wait(s, 40 * SPAN_MS);
	stage_continue(s, 2);
	stage_settle(s);
	stage_wait(s, 5 * SPAN_MS);
	stage_pause(s, 2);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	stage_wait(s, MOMENT);
	token_of(s, first);
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	stage_wait(s, MOMENT);
	token_of(s, second);
}

/* Four may wait at a home. The two that leave n3 find three at each of the others. */
static void nobody_loses_a_wait_because_the_other_homes_are_full(void **state) {
	static const uint32_t homes[] = { 0, 0, 0, 1, 1, 1, 2, 2 };
	enum { COUNT = sizeof homes / sizeof *homes };
	struct stage_options o = named_options();
	o.limits.waiters = 4;
	struct stage *s = stage_born(&o);
	*state = s;
	char keys[3][16];
	uint64_t ids[COUNT];
	for (uint32_t home = 0; home < 3; home++) {
		snprintf(keys[home], sizeof keys[home], "%s", key_of_home(s, home));
		take(s, 2, keys[home], stage_lock((uint8_t)(100 + home)));
	}
	for (uint32_t i = 0; i < COUNT; i++) {
		ids[i] = wait_for(s, i % 2, keys[homes[i]], stage_lock((uint8_t)(1 + i)));
	}
	warm(s);
	stage_pause(s, 2);
	stage_wait(s, 2 * MOMENT);
	assert_true(stage_count(s, COUNT_suspected) > 0);
	stage_continue(s, 2);
	stage_wait(s, 200 * SPAN_MS);
	for (uint32_t i = 0; i < COUNT; i++) {
		assert_false(answered(s, ids[i]));
	}
	for (uint32_t home = 0; home < 3; home++) {
		(void)release(s, 2, keys[home], stage_lock((uint8_t)(100 + home)));
	}
	stage_wait(s, MOMENT);
	token_of(s, ids[0]);
	token_of(s, ids[3]);
	token_of(s, ids[6]);
}

/* The try-lock waits in a tie. At the next home the request is already that came after it. */
static void a_try_lock_that_moves_is_not_refused_because_of_later_requests(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	for (uint32_t to = 1; to < 3; to++) {
		stage_inject(s, 0, to, &(struct message){ .kind = MESSAGE_PROMISE,
			.round = 7 << 16, .attempt = 7, .key = slice_str(key),
			.lock_id = stage_lock(7), .flags = FLAG_TURN });
	}
	stage_settle(s);
	const uint64_t try = stage_ask(s, 0, stage_acquire(key, stage_lock(1), LEASE, 0));
	stage_settle(s);
	(void)wait_for(s, 1, key, stage_lock(2));
	assert_int_equal(stage_count(s, COUNT_try_tie), 1);
	stage_pause(s, 2);
	/* n1 moves its request later than n2 does. */
	suspect_later(s, 0);
	stage_wait(s, MOMENT);
	assert_true(stage_count(s, COUNT_home_changed) >= 2);
	assert_false(answered(s, try));
}

static void a_node_that_stood_still_itself_suspects_nobody(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	warm(s);
	take(s, 0, key, stage_lock(1));
	(void)stage_ask(s, 1, stage_acquire(key, stage_lock(2), LEASE, WAIT));
	stage_jump(s, 20 * SPAN_MS);
	stage_tick(s);
	assert_int_equal(stage_count(s, COUNT_silence_pinged), 0);
	stage_settle(s);
	stage_wait(s, MOMENT);
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
}

UNIT(cluster_silent) {
	const struct CMUnitTest tests[] = {
		NAMED(who_comes_enters_elsewhere_when_the_home_hangs),
		NAMED(a_tie_does_not_wait_for_the_vote_of_a_master_that_hangs),
		NAMED(a_tie_of_try_locks_does_not_wait_either),
		NAMED(a_try_lock_does_not_fail_because_a_master_is_suspect),
		NAMED(the_next_turn_does_not_wait_for_a_home_that_hangs),
		NAMED(a_home_that_hangs_while_nothing_happens_is_suspect_too),
		NAMED(those_who_wait_keep_their_order),
		NAMED(those_who_wait_keep_their_order_at_another_home),
		NAMED(the_next_home_waits_a_moment_for_an_earlier_request),
		NAMED(an_earlier_request_that_comes_later_is_served_first),
		NAMED(a_turn_does_not_wait_for_the_vote_of_a_master_that_hangs),
		NAMED(nobody_is_pinged_for_silence_while_all_is_well),
		NAMED(requests_go_back_to_a_home_that_goes_on),
		NAMED(a_master_that_answers_a_ping_is_not_suspect),
		NAMED(a_slow_master_may_be_silent_for_longer),
		NAMED(a_suspicion_that_was_wrong_makes_the_next_one_slower),
		NAMED(a_node_that_stood_still_itself_suspects_nobody),
		NAMED(a_second_hang_takes_those_who_wait_no_longer_than_the_first),
		cmocka_unit_test_setup_teardown(
			nobody_loses_a_wait_because_the_other_homes_are_full, NULL,
			named_teardown),
		NAMED(a_try_lock_that_moves_is_not_refused_because_of_later_requests),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
