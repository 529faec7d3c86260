/* Those who have a turn wait at the masters, behind promises as well, and only behind those who do
 * not wait for them (docs/protocol.md, section 5). */
#include "named.h"

/* Returns a key of which n1 is the home: n1 needs no message to enter its own queue. */
static const char *key_of_n1(struct stage *s) {
	static char key[2];
	for (key[0] = 'a'; key[0] <= 'z'; key[0]++) {
		take(s, 1, key, stage_lock(100));
		uint64_t before = stage_sent(s, MESSAGE_ENQUEUE);
		(void)wait_for(s, 0, key, stage_lock(101));
		bool own = stage_sent(s, MESSAGE_ENQUEUE) == before;
		stage_client_gone(s, 0, 1);
		stage_settle(s);
		assert_int_equal(release(s, 1, key, stage_lock(100)), PAWL_OK);
		if (own) {
			return key;
		}
	}
	fail_msg("n1 is the home of no key");
	return NULL;
}

static void hold_answers(struct stage *s, bool hold) {
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, hold);
	stage_stop(s, 1, 2, MESSAGE_PROMISE_ANSWER, hold);
}

/* All masters have promised to a newcomer at n3. n3 does not know that yet, and hears nothing. */
static uint64_t newcomer(struct stage *s, const char *key, uint16_t of) {
	hold_answers(s, true);
	struct core_request r = stage_acquire(key, stage_lock(1), LEASE, WAIT);
	r.terms.of = of;
	r.terms.count = terms_of_numbers(of);
	uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	return id;
}

/* Asks at n2. The request is parked there and at its home, with the turn. */
static uint64_t parked_for(struct stage *s, const char *key, uint16_t of, span_ns wait) {
	uint64_t parked = stage_count(s, COUNT_promise_parked),
		rivals = stage_count(s, COUNT_turn_rival);
	struct core_request r = stage_acquire(key, stage_lock(2), LEASE, wait);
	r.terms.of = of;
	r.terms.count = terms_of_numbers(of);
	uint64_t id = stage_ask(s, 1, r);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_promise_parked), parked + 1);
	assert_int_equal(stage_count(s, COUNT_turn_rival), rivals);
	assert_false(answered(s, id));
	return id;
}

/* No time passes, so nobody paused. */
static void a_request_with_a_turn_waits_behind_a_newcomers_promise(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	(void)newcomer(s, key, MODE_EXCLUSIVE);
	uint64_t first = parked_for(s, key, MODE_EXCLUSIVE, WAIT),
		second = wait_for(s, 0, key, stage_lock(3));
	stage_client_gone(s, 2, 3);
	stage_settle(s);
	token_of(s, first);
	assert_false(answered(s, second));
}

/* The newcomer has the key for a moment. Those who ask then are no earlier than the one who
 * waits. */
static void newcomers_do_not_take_turns_before_the_one_who_has_a_turn(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	uint64_t lucky = newcomer(s, key, MODE_EXCLUSIVE),
		first = parked_for(s, key, MODE_EXCLUSIVE, WAIT);
	hold_answers(s, false);
	stage_settle(s);
	token_of(s, lucky);
	assert_int_equal(stage_do(s, 2, stage_acquire(key, stage_lock(3), LEASE, 0)), PAWL_EHELD);
	uint64_t later = wait_for(s, 2, key, stage_lock(4));
	assert_int_equal(release(s, 2, key, stage_lock(1)), PAWL_OK);
	token_of(s, first);
	assert_false(answered(s, later));
}

/* There are permits for both. */
static void a_permit_is_not_waited_for_behind_the_promise_of_another(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	uint64_t lucky = newcomer(s, key, 8);
	struct core_request r = stage_acquire(key, stage_lock(2), LEASE, WAIT);
	r.terms.of = 8;
	r.terms.count = 1;
	uint64_t second = stage_ask(s, 1, r);
	stage_settle(s);
	token_of(s, second);
	hold_answers(s, false);
	stage_settle(s);
	token_of(s, lucky);
	assert_int_equal(stage_count(s, COUNT_commit_refused_held), 0);
}

static void a_promise_that_ends_with_its_link_makes_room(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	(void)newcomer(s, key, MODE_EXCLUSIVE);
	uint64_t first = parked_for(s, key, MODE_EXCLUSIVE, WAIT);
	stage_kill(s, 2);
	stage_settle(s);
	token_of(s, first);
}

/* Nobody holds the key, so that it is a tie. When somebody does, the home tells it. */
static void a_try_lock_is_not_refused_for_a_promise_that_it_is_parked_behind(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	(void)newcomer(s, key, MODE_EXCLUSIVE);
	uint64_t tries = parked_for(s, key, MODE_EXCLUSIVE, 0);
	stage_client_gone(s, 2, 3);
	stage_settle(s);
	token_of(s, tries);
	assert_int_equal(release(s, 1, key, stage_lock(2)), PAWL_OK);
	hold_answers(s, false);
	stage_settle(s);
}

static void a_try_lock_that_is_parked_behind_a_promise_is_refused_for_the_lock_that_follows(
	void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	uint64_t lucky = newcomer(s, key, MODE_EXCLUSIVE),
		tries = parked_for(s, key, MODE_EXCLUSIVE, 0);
	hold_answers(s, false);
	stage_settle(s);
	token_of(s, lucky);
	assert_int_equal(stage_answer(s, tries)->r.error, PAWL_EHELD);
}

/* The first one's commit has not reached n2 when the home gives the second one the turn. */
static void the_next_request_waits_behind_the_promise_of_the_previous_one(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	take(s, 1, key, stage_lock(9));
	uint64_t first = wait_for(s, 2, key, stage_lock(1)),
		second = wait_for(s, 1, key, stage_lock(2));
	uint64_t parked = stage_count(s, COUNT_promise_parked);
	stage_stop(s, 2, 1, MESSAGE_COMMIT, true);
	assert_int_equal(release(s, 1, key, stage_lock(9)), PAWL_OK);
	token_of(s, first);
	/* n3 keeps it behind the lock, and n2 behind the promise. */
	assert_int_equal(stage_count(s, COUNT_promise_parked), parked + 2);
	stage_stop(s, 2, 1, MESSAGE_COMMIT, false);
	stage_settle(s);
	assert_int_equal(release(s, 2, key, stage_lock(1)), PAWL_OK);
	token_of(s, second);
}

/* Asks n3 for a promise, for a request of n1 or n2 that has a turn with this stamp (0: none). */
static void asks_n3(struct stage *s, uint32_t from, uint8_t lock, uint64_t stamp, bool turn) {
	stage_inject(s, from, 2, &(struct message){ .kind = MESSAGE_PROMISE,
		.round = (uint64_t)lock << 16, .attempt = lock, .key = slice_str("k"),
		.lock_id = stage_lock(lock), .ticket = { stamp, lock },
		.flags = turn ? FLAG_TURN : 0 });
}

static void refuses(struct stage *s, uint32_t from, uint8_t lock, uint64_t stamp) {
	uint64_t refused = stage_count(s, COUNT_promise_refused_promised);
	asks_n3(s, from, lock, stamp, true);
	assert_int_equal(stage_count(s, COUNT_promise_refused_promised), refused + 1);
}

static void keeps(struct stage *s, uint32_t from, uint8_t lock, uint64_t stamp) {
	uint64_t parked = stage_count(s, COUNT_promise_parked);
	asks_n3(s, from, lock, stamp, true);
	assert_int_equal(stage_count(s, COUNT_promise_parked), parked + 1);
}

/* Each of the two has a promise where the other one waits. The earlier one lets go of its own. */
static void nobody_waits_behind_a_later_ones_promise(void **state) {
	struct stage *s = *state;
	asks_n3(s, 0, 1, 20, true);
	refuses(s, 1, 2, 10);
	keeps(s, 1, 3, 30);
	/* The request has another stamp now, and is not parked any more. */
	refuses(s, 1, 3, 15);
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_WITHDRAW, .key = slice_str("k"),
		.lock_id = stage_lock(1), .attempt = 1 });
	assert_int_equal(stage_count(s, COUNT_parked_promised), 0);
}

/* The turn of a hand-over has no stamp: its place is not known. */
static void nobody_waits_behind_a_turn_without_a_stamp(void **state) {
	struct stage *s = *state;
	asks_n3(s, 0, 1, 0, true);
	refuses(s, 1, 2, 10);
	refuses(s, 1, 3, 0);
}

/* The promise goes over to a repeat of its request, which has a turn. */
static void a_waiter_behind_a_promise_is_told_when_it_has_a_turn(void **state) {
	struct stage *s = *state;
	asks_n3(s, 0, 1, 0, false);
	keeps(s, 1, 2, 10);
	keeps(s, 1, 3, 30);
	uint64_t told = stage_sent(s, MESSAGE_PROMISE_ANSWER);
	asks_n3(s, 0, 1, 20, true);
	/* These are the answer, and the word to the request with stamp 10. */
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE_ANSWER), told + 2);
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_WITHDRAW, .key = slice_str("k"),
		.lock_id = stage_lock(1), .attempt = 1 });
	assert_int_equal(stage_count(s, COUNT_parked_promised), 1);
}

/* The lock ends at n3 a little later than at n1, which extended it earlier. At n2 it has ended, and
 * a later request has the promise. */
static void ahead_of_a_lock_that_ends_soon(struct stage *s, span_ns lease) {
	const char *key = key_of_n1(s);
	assert_int_equal(stage_do(s, 1, stage_acquire(key, stage_lock(9), lease, 0)), PAWL_OK);
	stage_stop(s, 1, 2, MESSAGE_EXTEND, true);
	assert_int_equal(extend(s, 1, key, stage_lock(9), lease, true), PAWL_OK);
	stage_wait(s, 10 * SPAN_MS);
	stage_stop(s, 1, 2, MESSAGE_EXTEND, false);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	const uint64_t first = wait_for(s, 0, key, stage_lock(1)),
		rivals = stage_count(s, COUNT_turn_rival);
	stage_wait(s, lease - 40 * SPAN_MS);
	stage_inject(s, 2, 1, &(struct message){ .kind = MESSAGE_RELEASE, .key = slice_str(key),
		.lock_id = stage_lock(9) });
	stage_inject(s, 2, 1, &(struct message){ .kind = MESSAGE_PROMISE, .round = 1, .attempt = 1,
		.key = slice_str(key), .lock_id = stage_lock(2), .ticket = { UINT32_MAX, 1 },
		.flags = FLAG_TURN });
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	/* The lock has ended at n1 by then. */
	stage_wait(s, 35 * SPAN_MS);
	assert_false(answered(s, first));
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, first);
	assert_int_equal(stage_count(s, COUNT_turn_rival), rivals);
}

static void a_request_ahead_waits_for_a_lock_that_ends_soon(void **state) {
	ahead_of_a_lock_that_ends_soon(*state, 150 * SPAN_MS); }

static int setup_of_odd_clocks(void **state) {
	struct stage_options options = named_options();
	options.drift_ppm = 100000;
	*state = stage_born(&options);
	return 0;
}

/* By n1's clock the time that n3 has said is over before n3's. */
static void a_request_ahead_with_a_fast_clock_waits_for_a_lock_that_ends_soon(void **state) {
	struct stage *s = *state;
	s->nodes[0].rate_ppb = 90000000;
	stage_wait(s, SPAN_S);
	ahead_of_a_lock_that_ends_soon(s, 150 * SPAN_MS);
}

/* ---- the place of a request whose commit the home has refused (section 2, Acquire) ---- */

/* A reader at n3 has the lock, a writer at n2 waits for it, and then a reader at n3 does. The first
 * reader has released the lock at n2 and n3, but not at n1. */
struct refused_at_home {
	const char *key;
	uint64_t writer, reader, turns;
};

static uint64_t read_at_n3(struct stage *s, const char *key, uint8_t lock) {
	struct core_request r = stage_acquire(key, stage_lock(lock), LEASE, WAIT);
	r.terms.of = MODE_SHARED;
	const uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	return id;
}

static struct refused_at_home refused_at_home(struct stage *s) {
	struct refused_at_home at = { .key = key_of_n1(s) };
	token_of(s, read_at_n3(s, at.key, 9));
	at.writer = wait_for(s, 1, at.key, stage_lock(1));
	at.reader = read_at_n3(s, at.key, 2);
	assert_false(answered(s, at.writer) || answered(s, at.reader));
	stage_stop(s, 2, 0, MESSAGE_RELEASE, true);
	at.turns = stage_count(s, COUNT_turn_given);
	return at;
}

/* At n3 somebody else's lock comes before the writer's commit, and ends after it. n2 is the only
 * master to have accepted that commit. */
static void a_request_refused_at_its_home_as_well_keeps_its_place_there(void **state) {
	struct stage *s = *state;
	const struct refused_at_home at = refused_at_home(s);
	stage_stop(s, 1, 2, MESSAGE_COMMIT, true);
	/* The answer to the release is behind the commit. */
	(void)release(s, 2, at.key, stage_lock(9));
	const uint64_t far = stage_status(s, 1).clock + 1000;
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 1, .key = slice_str(at.key), .lock_id = stage_lock(8), .token = far,
		.lease_us = (uint64_t)LEASE / 1000, .ballot = { far, 1, 1 } });
	stage_stop(s, 1, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_RELEASE, .round = 2 << 16,
		.key = slice_str(at.key), .lock_id = stage_lock(8) });
	stage_settle(s);
	stage_stop(s, 2, 0, MESSAGE_RELEASE, false);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, at.writer);
	assert_false(answered(s, at.reader));
}

/* n2 and n3 accept. The answer of `last` is the last to be known. */
static void granted_without_its_home(struct stage *s, uint32_t last) {
	const struct refused_at_home at = refused_at_home(s);
	stage_stop(s, last, 1, MESSAGE_COMMIT_ANSWER, true);
	assert_int_equal(release(s, 2, at.key, stage_lock(9)), PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_turn_given), at.turns);
	stage_stop(s, last, 1, MESSAGE_COMMIT_ANSWER, false);
	stage_settle(s);
	token_of(s, at.writer);
	assert_int_equal(stage_count(s, COUNT_turn_given), at.turns + 1);
}

static void a_request_that_is_granted_elsewhere_leaves_its_place(void **state) {
	granted_without_its_home(*state, 2); }

static void a_request_refused_at_its_home_after_the_grant_leaves_its_place(void **state) {
	granted_without_its_home(*state, 0); }

static void a_request_not_told_of_its_homes_refusal_leaves_its_place_after_its_lease(void **state) {
	struct stage *s = *state;
	const struct refused_at_home at = refused_at_home(s);
	stage_lose(s, 0, 1, MESSAGE_COMMIT_ANSWER, true);
	assert_int_equal(release(s, 2, at.key, stage_lock(9)), PAWL_OK);
	token_of(s, at.writer);
	stage_lose(s, 0, 1, MESSAGE_COMMIT_ANSWER, false);
	stage_stop(s, 2, 0, MESSAGE_RELEASE, false);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_turn_given), at.turns);
	stage_wait(s, LEASE + 100 * SPAN_MS);
	token_of(s, at.reader);
}

/* Asks for the key at n2, with this wait time. Returns how many promises masters were asked for. */
static uint64_t asked_for(struct stage *s, const char *key, uint8_t lock, span_ns wait,
	uint64_t *id) {
	const uint64_t before = stage_sent(s, MESSAGE_PROMISE);
	*id = stage_ask(s, 1, stage_acquire(key, stage_lock(lock), LEASE, wait));
	stage_settle(s);
	return stage_sent(s, MESSAGE_PROMISE) - before;
}

static void whoever_comes_after_one_of_its_own_node_enters_the_queue_without_asking(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	uint64_t ids[4], tried;
	take(s, 0, key, stage_lock(99));
	assert_true(asked_for(s, key, 1, WAIT, &ids[0]) > 0);
	/* The first one has its turn already, which says nothing of the queue. */
	assert_true(asked_for(s, key, 2, WAIT, &ids[1]) > 0);
	assert_int_equal(asked_for(s, key, 3, WAIT, &ids[2]), 0);
	assert_int_equal(asked_for(s, key, 4, WAIT, &ids[3]), 0);
	/* Neither a request without a wait time does so, nor one for another key. */
	assert_true(asked_for(s, key, 5, 0, &tried) > 0);
	assert_int_equal(stage_answer(s, tried)->r.error, PAWL_EHELD);
	assert_true(asked_for(s, "another", 6, WAIT, &tried) > 0);
	token_of(s, tried);
	assert_int_equal(release(s, 0, key, stage_lock(99)), PAWL_OK);
	for (uint8_t i = 0; i < 4; i++) {
		stage_wait(s, 20 * SPAN_MS);
		token_of(s, ids[i]);
		assert_int_equal(release(s, 1, key, stage_lock((uint8_t)(1 + i))), PAWL_OK);
	}
}

/* Its home, which is n1, does not know that the lock is held. */
static void a_repeat_of_a_lock_that_is_held_does_not_wait_behind_those_of_its_node(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	uint64_t id;
	stage_lose(s, 1, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	const uint64_t token = take(s, 1, key, stage_lock(99));
	for (uint8_t lock = 1; lock <= 3; lock++) {
		(void)asked_for(s, key, lock, WAIT, &id);
		assert_false(answered(s, id));
	}
	assert_int_equal(asked_for(s, key, 4, WAIT, &id), 0);
	(void)asked_for(s, key, 99, WAIT, &id);
	assert_true(token_of(s, id) >= token);
}

/* The home's refusal names the holder, and not how it holds the key. */
static void a_try_lock_that_its_home_refuses_is_told_how_the_key_is_held(void **state) {
	struct stage *s = *state;
	const char *key = key_of_n1(s);
	(void)newcomer(s, key, 1);
	stage_stop(s, 1, 0, MESSAGE_ENQUEUE, true);
	struct core_request r = stage_acquire(key, stage_lock(2), LEASE, 0);
	r.terms.of = r.terms.count = 1;
	uint64_t id = stage_ask(s, 1, r);
	stage_settle(s);
	assert_false(answered(s, id));
	hold_answers(s, false);
	stage_settle(s);
	assert_false(answered(s, id));
	stage_stop(s, 1, 0, MESSAGE_ENQUEUE, false);
	stage_settle(s);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_EHELD);
	assert_true(reply->r.held);
	assert_int_equal(reply->r.entry.terms.of, 1);
}

UNIT(cluster_turns) {
	const struct CMUnitTest tests[] = {
		NAMED(a_request_with_a_turn_waits_behind_a_newcomers_promise),
		NAMED(newcomers_do_not_take_turns_before_the_one_who_has_a_turn),
		NAMED(a_permit_is_not_waited_for_behind_the_promise_of_another),
		NAMED(a_promise_that_ends_with_its_link_makes_room),
		NAMED(a_try_lock_is_not_refused_for_a_promise_that_it_is_parked_behind),
		NAMED(
		a_try_lock_that_is_parked_behind_a_promise_is_refused_for_the_lock_that_follows),
		NAMED(the_next_request_waits_behind_the_promise_of_the_previous_one),
		NAMED(a_try_lock_that_its_home_refuses_is_told_how_the_key_is_held),
		NAMED(nobody_waits_behind_a_later_ones_promise),
		NAMED(a_request_ahead_waits_for_a_lock_that_ends_soon),
		cmocka_unit_test_setup_teardown(
			a_request_ahead_with_a_fast_clock_waits_for_a_lock_that_ends_soon,
			setup_of_odd_clocks, named_teardown),
		NAMED(nobody_waits_behind_a_turn_without_a_stamp),
		NAMED(a_waiter_behind_a_promise_is_told_when_it_has_a_turn),
		NAMED(a_request_refused_at_its_home_as_well_keeps_its_place_there),
		NAMED(a_request_that_is_granted_elsewhere_leaves_its_place),
		NAMED(a_request_refused_at_its_home_after_the_grant_leaves_its_place),
		NAMED(a_request_not_told_of_its_homes_refusal_leaves_its_place_after_its_lease),
		NAMED(whoever_comes_after_one_of_its_own_node_enters_the_queue_without_asking),
		NAMED(a_repeat_of_a_lock_that_is_held_does_not_wait_behind_those_of_its_node),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
