/* These tests are about a master that hangs while its link stays up: those who wait do not wait for
 * it (docs/protocol.md, section 5, Suspicion). */
#include "modes.h"

/* Shorter than the time after which the link is given up, and longer than twice a silence that
 * counts. */
#define MOMENT (30 * SPAN_MS)

/* Returns a key of which this node is the home. */
static const char *key_of(struct stage *s, uint32_t home) {
	static char key[16];
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%u", i);
		(void)stage_do(s, 0, stage_request(CORE_EXPLAIN, key, stage_lock(1)));
		if (stage_last(s)->witnesses[home].home) {
			return key;
		}
	}
	fail_msg("there is no key of that home");
	return NULL;
}

/* n1 holds the key, whose home hangs. Who comes to n2 now enters the queue of another one. */
static void who_comes_enters_elsewhere_when_the_home_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 2);
	take(s, 0, key, stage_lock(1));
	stage_pause(s, 2);
	uint64_t id = wait_for(s, 1, key, stage_lock(2));
	stage_wait(s, MOMENT);
	assert_int_equal(stage_count(s, COUNT_suspected), 1);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	token_of(s, id);
}

/* Two wait, and the second one has no turn when the home hangs. The first one has the key without
 * the home; then the home owes the second one its turn. */
static void the_next_turn_does_not_wait_for_a_home_that_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 2);
	take(s, 0, key, stage_lock(1));
	uint64_t first = wait_for(s, 1, key, stage_lock(2)),
		second = wait_for(s, 0, key, stage_lock(3));
	stage_wait(s, 50 * SPAN_MS);
	stage_pause(s, 2);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	token_of(s, first);
	stage_wait(s, MOMENT);
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
}

/* They were entered at the home in this order, and at the one that follows it in the other. */
static void those_who_wait_keep_their_order_at_the_next_home(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 2);
	uint64_t ids[4];
	take(s, 0, key, stage_lock(1));
	for (uint8_t i = 0; i < 4; i++) {
		ids[i] = wait_for(s, 1 - i % 2, key, stage_lock((uint8_t)(i + 2)));
	}
	stage_pause(s, 2);
	assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
	for (uint8_t i = 0; i < 4; i++) {
		stage_wait(s, MOMENT);
		token_of(s, ids[i]);
		assert_true(i == 3 || !answered(s, ids[3]));
		assert_int_equal(release(s, 1 - i % 2, key, stage_lock((uint8_t)(i + 2))), PAWL_OK);
	}
}

/* n3 hangs, and n2 has promised a rival. */
static void a_turn_does_not_wait_for_the_vote_of_a_master_that_hangs(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0);
	stage_pause(s, 2);
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_PROMISE, .round = 7 << 16,
		.attempt = 7, .key = slice_str(key), .lock_id = stage_lock(7), .flags = FLAG_TURN });
	uint64_t id = wait_for(s, 0, key, stage_lock(1)), rivals = stage_count(s, COUNT_turn_rival);
	stage_wait(s, MOMENT);
	assert_true(stage_count(s, COUNT_turn_rival) > rivals);
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_WITHDRAW, .key = slice_str(key),
		.lock_id = stage_lock(7), .attempt = 7 });
	stage_wait(s, MOMENT);
	token_of(s, id);
}

static void nobody_is_pinged_while_all_is_well(void **state) {
	struct stage *s = *state;
	for (uint32_t home = 0; home < 3; home++) {
		const char *key = key_of(s, home);
		const uint8_t lock = (uint8_t)(10 * home);
		take(s, 0, key, stage_lock((uint8_t)(lock + 1)));
		uint64_t first = wait_for(s, 1, key, stage_lock((uint8_t)(lock + 2))),
			second = wait_for(s, 1, key, stage_lock((uint8_t)(lock + 3)));
		stage_wait(s, SPAN_S);
		assert_int_equal(release(s, 0, key, stage_lock((uint8_t)(lock + 1))), PAWL_OK);
		token_of(s, first);
		stage_wait(s, SPAN_S);
		assert_int_equal(release(s, 1, key, stage_lock((uint8_t)(lock + 2))), PAWL_OK);
		token_of(s, second);
		assert_int_equal(release(s, 1, key, stage_lock((uint8_t)(lock + 3))), PAWL_OK);
	}
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
	assert_int_equal(stage_count(s, COUNT_silence_probed), 0);
}

/* The first home of the key is back. Requests go back to it, and it gives the turns again. */
static void requests_go_back_to_a_home_that_goes_on(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 2);
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
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	token_of(s, second);
}

/* The home was slow, and not hung. It may be silent for longer the next time. */
static void a_suspicion_that_was_wrong_makes_the_next_one_slower(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 2);
	take(s, 0, key, stage_lock(1));
	for (uint8_t i = 0; i < 2; i++) {
		stage_pause(s, 2);
		(void)wait_for(s, 1, key, stage_lock((uint8_t)(2 + i)));
		stage_wait(s, 14 * SPAN_MS);
		assert_int_equal(stage_count(s, COUNT_suspected), 1);
		stage_continue(s, 2);
		stage_settle(s);
		assert_int_equal(stage_count(s, COUNT_suspected_wrongly), 1);
	}
	/* After a while it is as quick as before. */
	stage_wait(s, 20 * SPAN_S);
	take(s, 0, key_of(s, 2), stage_lock(21));
	stage_pause(s, 2);
	(void)wait_for(s, 1, key_of(s, 2), stage_lock(22));
	stage_wait(s, 14 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_suspected), 2);
}

/* What the others have said is unread. */
static void who_stood_still_itself_suspects_nobody(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 2);
	take(s, 0, key, stage_lock(1));
	(void)stage_ask(s, 1, stage_acquire(key, stage_lock(2), LEASE, WAIT));
	stage_jump(s, 50 * SPAN_MS);
	stage_tick(s);
	assert_int_equal(stage_count(s, COUNT_silence_probed), 0);
	stage_settle(s);
	stage_wait(s, SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_suspected), 0);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		NAMED(who_comes_enters_elsewhere_when_the_home_hangs),
		NAMED(the_next_turn_does_not_wait_for_a_home_that_hangs),
		NAMED(those_who_wait_keep_their_order_at_the_next_home),
		NAMED(a_turn_does_not_wait_for_the_vote_of_a_master_that_hangs),
		NAMED(nobody_is_pinged_while_all_is_well),
		NAMED(requests_go_back_to_a_home_that_goes_on),
		NAMED(a_suspicion_that_was_wrong_makes_the_next_one_slower),
		NAMED(who_stood_still_itself_suspects_nobody),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
