/* These tests acquire, release and wait in a whole cluster: the basic conversations
 * (docs/protocol.md, sections 2 and 5). */
#include "named.h"

static const struct id128 no_lock;

static void an_uncontended_acquire_takes_two_phases(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), 2);
	assert_int_equal(stage_sent(s, MESSAGE_COMMIT), 2);
	assert_int_equal(stage_sent(s, MESSAGE_COMMIT_ANSWER), 2);
	assert_int_equal(stage_sent(s, MESSAGE_ENQUEUE), 0);
	assert_int_equal(stage_last(s)->r.valid, span_shrink(LEASE, 10000));
	assert_true(stage_last(s)->r.acks >= 2);
	assert_true(holds(s, 2, "k", stage_lock(1)));
}

static void every_acquisition_has_a_higher_token_than_the_previous_one(void **state) {
	struct stage *s = *state;
	uint64_t before = 0;
	for (uint8_t i = 0; i < 12; i++) {
		uint64_t token = take(s, i % 3, "k", stage_lock(i));
		assert_true(token > before);
		before = token;
		assert_int_equal(release(s, (i + 1u) % 3, "k", stage_lock(i)), PAWL_OK);
		assert_true(stage_last(s)->r.released);
	}
}

static void a_repeat_while_the_attempt_is_under_way_joins_it(void **state) {
	struct stage *s = *state;
	uint64_t first = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	uint64_t second = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_int_equal(token_of(s, first), token_of(s, second));
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), 2);
	assert_int_equal(stage_count(s, COUNT_repeat_joined), 1);
}

/* All of them are answered at once. */
static void few_repeats_join_an_attempt(void **state) {
	struct stage *s = *state;
	uint64_t ids[34];
	take(s, 0, "k", stage_lock(2));
	for (int i = 0; i < 34; i++) {
		ids[i] = wait_for(s, 0, "k", stage_lock(1));
	}
	for (int i = 0; i < 34; i++) {
		assert_int_equal(answered(s, ids[i]), i >= 32);
	}
	assert_int_equal(stage_answer(s, ids[33])->r.error, PAWL_EBUSY);
	assert_string_equal(stage_answer(s, ids[33])->r.field, "lock_id");
	release(s, 0, "k", stage_lock(2));
	assert_int_equal(token_of(s, ids[0]), token_of(s, ids[31]));
}

static void a_repeat_after_a_lost_answer_gets_the_same_token(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	assert_int_equal(take(s, 0, "k", stage_lock(1)), token);
	assert_int_equal(take(s, 1, "k", stage_lock(1)), token);
	assert_true(stage_count(s, COUNT_token_reused) == 2);
}

static void a_try_lock_is_refused_with_the_holder_while_another_holds(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.owner = slice_str("somebody");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	uint64_t token = stage_last(s)->r.token;
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	const struct stage_reply *reply = stage_last(s);
	assert_true(reply->r.held);
	assert_int_equal(reply->r.entry.token, token);
	assert_memory_equal(reply->owner.bytes, "somebody", 8);
	assert_false(id128_equal(reply->r.entry.lock_id, stage_lock(1)));
}

static void waiters_of_all_nodes_are_served_first_come_first_served(void **state) {
	struct stage *s = *state;
	static const uint32_t nodes[] = { 1, 2, 0, 1, 2, 2, 0 };
	uint64_t ids[7], before = take(s, 0, "k", stage_lock(100));
	for (uint8_t i = 0; i < 7; i++) {
		ids[i] = wait_for(s, nodes[i], "k", stage_lock(i));
		stage_wait(s, SPAN_MS);
	}
	struct id128 holder = stage_lock(100);
	for (uint8_t i = 0; i < 7; i++) {
		assert_false(answered(s, ids[i]));
		assert_int_equal(release(s, i % 3, "k", holder), PAWL_OK);
		assert_true(token_of(s, ids[i]) > before);
		before = token_of(s, ids[i]);
		holder = stage_lock(i);
	}
}

static void a_release_wakes_the_next_within_one_message_and_one_commit(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t next = wait_for(s, 1, "k", stage_lock(2));
	stage_wait(s, 10 * SPAN_MS);
	uint64_t asked = stage_sent(s, MESSAGE_PROMISE), queued = stage_sent(s, MESSAGE_ENQUEUE),
		turns = stage_sent(s, MESSAGE_TURN);
	int64_t before = s->now;
	release(s, 0, "k", stage_lock(1));
	token_of(s, next);
	assert_int_equal(s->now, before);
	/* The request was parked behind the record. */
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), asked);
	assert_int_equal(stage_sent(s, MESSAGE_ENQUEUE), queued);
	assert_int_equal(stage_sent(s, MESSAGE_TURN), turns);
}

static void one_release_wakes_one_waiter(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t second = wait_for(s, 1, "k", stage_lock(2)),
		third = wait_for(s, 2, "k", stage_lock(3));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, 500 * SPAN_MS);
	token_of(s, second);
	assert_false(answered(s, third));
}

static void a_newcomer_does_not_slip_in_before_those_who_wait(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	uint64_t release_id = stage_ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	uint64_t newcomer = stage_ask(s, 2, stage_acquire("k", stage_lock(3), LEASE, 0));
	stage_wait(s, 500 * SPAN_MS);
	assert_true(answered(s, release_id));
	token_of(s, waiter);
	assert_int_equal(stage_answer(s, newcomer)->r.error, PAWL_EHELD);
}

static void a_waiter_gets_the_key_when_the_holders_lease_ends(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	stage_wait(s, LEASE - 10 * SPAN_MS);
	assert_false(answered(s, waiter));
	stage_wait(s, 20 * SPAN_MS);
	assert_true(token_of(s, waiter) > token);
}

static void what_a_waiter_may_count_on_includes_its_wait_but_not_the_drift(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	stage_wait(s, SPAN_S);
	release(s, 0, "k", stage_lock(1));
	const struct core_reply *r = &stage_answer(s, waiter)->r;
	assert_int_equal(r->waited, SPAN_S);
	assert_int_equal(r->valid, span_shrink(SPAN_S + LEASE, 10000));
}

static void a_wait_that_ends_is_a_timeout_and_leaves_nothing_behind(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t waiter = stage_ask(s, 1, stage_acquire("k", stage_lock(2), LEASE, 300 * SPAN_MS));
	stage_wait(s, 310 * SPAN_MS);
	assert_int_equal(stage_answer(s, waiter)->r.error, PAWL_ETIMEOUT);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).waiters, 0);
	}
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).keys, 0);
	}
}

static void a_waiter_whose_connection_breaks_leaves_the_queue(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	wait_for(s, 1, "k", stage_lock(2));
	uint64_t third = wait_for(s, 2, "k", stage_lock(3));
	stage_client_gone(s, 1, 2);
	stage_settle(s);
	release(s, 0, "k", stage_lock(1));
	token_of(s, third);
}

static void waiters_survive_the_death_of_the_keys_home(void **state) {
	struct stage *s = *state;
	/* One of the three is the home of the key. */
	for (uint32_t dead = 0; dead < 3; dead++) {
		struct id128 holder = stage_lock((uint8_t)(dead * 3)),
			second = stage_lock((uint8_t)(dead * 3 + 1));
		uint32_t alive = (dead + 1) % 3, other = (dead + 2) % 3;
		take(s, alive, "k", holder);
		uint64_t waiter = wait_for(s, other, "k", second);
		stage_kill(s, dead);
		stage_wait(s, 50 * SPAN_MS);
		release(s, alive, "k", holder);
		stage_wait(s, 200 * SPAN_MS);
		token_of(s, waiter);
		release(s, other, "k", second);
		assert_true(stage_start(s, dead));
		assert_true(stage_until_voting(s, dead, SPAN_S));
		stage_wait(s, 100 * SPAN_MS);
	}
}

static void those_who_wait_are_listed_in_their_order(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	static const char *const owners[] = { "first", "second", "third" };
	for (uint8_t i = 0; i < 3; i++) {
		struct core_request r = stage_acquire("k", stage_lock((uint8_t)(10 + i)),
			LEASE, WAIT);
		r.owner = slice_str(owners[i]);
		r.identity = slice_str("alice");
		stage_ask(s, i, r);
		stage_settle(s);
		stage_wait(s, SPAN_MS);
	}
	struct core_request r = stage_request(CORE_WAITERS, "k", no_lock);
	r.identity = slice_str("alice");
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	const struct stage_reply *reply = stage_last(s);
	assert_int_equal(reply->r.count, 3);
	for (uint8_t i = 0; i < 3; i++) {
		assert_memory_equal(reply->rows[i].owner.bytes, owners[i], strlen(owners[i]));
		assert_true(reply->rows[i].show_lock_id);
		assert_true(id128_equal(reply->rows[i].lock_id, stage_lock((uint8_t)(10 + i))));
	}
	r.identity = slice_str("bob");
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_false(stage_last(s)->rows[0].show_lock_id);
}

static void traffic_of_one_key_does_not_hold_up_another(void **state) {
	struct stage *s = *state;
	take(s, 0, "busy", stage_lock(1));
	for (uint8_t i = 0; i < 60; i++) {
		wait_for(s, i % 3, "busy", stage_lock((uint8_t)(10 + i)));
	}
	int64_t before = s->now;
	for (uint32_t i = 0; i < 3; i++) {
		take(s, i, "quiet", stage_lock((uint8_t)(200 + i)));
		assert_int_equal(release(s, i, "quiet", stage_lock((uint8_t)(200 + i))), PAWL_OK);
		assert_int_equal(s->now, before);
	}
}

static void a_hung_master_delays_nobody(void **state) {
	struct stage *s = *state;
	stage_pause(s, 2);
	int64_t before = s->now;
	/* The master that hangs is the home of some of these keys. */
	for (uint8_t i = 0; i < 20; i++) {
		char key[8] = { 'k', (char)('a' + i), 0 };
		struct core_request update = stage_request(CORE_UPDATE, key, stage_lock(i));
		update.value = slice_str("v");
		take(s, i % 2, key, stage_lock(i));
		assert_int_equal(extend(s, i % 2, key, stage_lock(i), LEASE, false), PAWL_OK);
		assert_int_equal(stage_do(s, i % 2, update), PAWL_OK);
		assert_int_equal(release(s, i % 2, key, stage_lock(i)), PAWL_OK);
	}
	assert_int_equal(s->now, before);
	stage_continue(s, 2);
}

/* Lets `to` handle a commit of another lock while X's commit is on its way there. */
static void commits(struct stage *s, uint32_t to, const char *key, struct id128 lock,
	uint64_t token) {
	stage_inject(s, 1 + to % 2, to, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 1, .key = slice_str(key), .lock_id = lock, .token = token,
		.lease_us = (uint64_t)LEASE / 1000, .ballot = { token, 1, 1 } });
}

/* X has the promises of n1 and n2. */
static uint64_t commit_on_its_way(struct stage *s) {
	stage_lose(s, 0, 2, MESSAGE_PROMISE, true);
	stage_stop(s, 0, 1, MESSAGE_COMMIT, true);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	uint64_t x = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_false(answered(s, x));
	stage_lose(s, 0, 2, MESSAGE_PROMISE, false);
	return x;
}

static int arrives(struct stage *s, uint64_t x) {
	stage_stop(s, 0, 1, MESSAGE_COMMIT, false);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	return stage_answer(s, x)->r.error;
}

/* At n2 the commit meets Z, whose release is on its way there. At n3, whose promise it did not
 * have, it meets a higher clock. */
static void a_commit_that_two_masters_refuse_is_asked_for_again(void **state) {
	struct stage *s = *state;
	uint64_t x = commit_on_its_way(s), far = stage_status(s, 2).clock + 1000;
	commits(s, 1, "k", stage_lock(2), far);
	commits(s, 2, "another", stage_lock(3), far);
	assert_int_equal(arrives(s, x), PAWL_OK);
	assert_true(token_of(s, x) > far);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	release(s, 2, "k", stage_lock(2));
	assert_true(holds(s, 1, "k", stage_lock(1)));
}

static void a_commit_that_somebody_elses_has_overtaken_is_refused_as_held(void **state) {
	struct stage *s = *state;
	uint64_t x = commit_on_its_way(s), far = stage_status(s, 2).clock + 1000;
	commits(s, 1, "k", stage_lock(2), far);
	commits(s, 2, "k", stage_lock(2), far);
	assert_int_equal(arrives(s, x), PAWL_EHELD);
	/* What n1 had accepted was rolled back. */
	assert_int_equal(stage_status(s, 0).held, 0);
	assert_true(holds(s, 0, "k", stage_lock(2)));
}

/* n2 and n3 have accepted a token of which n1 has not heard. */
static void a_token_is_above_all_numbers_that_were_reported_with_the_promises(void **state) {
	struct stage *s = *state;
	const uint64_t far = stage_status(s, 0).clock + 1000;
	commits(s, 1, "another", stage_lock(2), far);
	stage_settle(s);
	assert_true(stage_status(s, 0).clock < far);
	assert_true(take(s, 0, "k", stage_lock(1)) > far);
	/* The masters have accepted the first commit. */
	assert_int_equal(stage_sent(s, MESSAGE_COMMIT), 2);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 0);
}

UNIT(cluster_acquire) {
	const struct CMUnitTest tests[] = {
		NAMED(a_token_is_above_all_numbers_that_were_reported_with_the_promises),
		NAMED(a_commit_that_two_masters_refuse_is_asked_for_again),
		NAMED(a_commit_that_somebody_elses_has_overtaken_is_refused_as_held),
		NAMED(an_uncontended_acquire_takes_two_phases),
		NAMED(every_acquisition_has_a_higher_token_than_the_previous_one),
		NAMED(a_repeat_while_the_attempt_is_under_way_joins_it),
		NAMED(few_repeats_join_an_attempt),
		NAMED(a_repeat_after_a_lost_answer_gets_the_same_token),
		NAMED(a_try_lock_is_refused_with_the_holder_while_another_holds),
		NAMED(waiters_of_all_nodes_are_served_first_come_first_served),
		NAMED(a_release_wakes_the_next_within_one_message_and_one_commit),
		NAMED(one_release_wakes_one_waiter),
		NAMED(a_newcomer_does_not_slip_in_before_those_who_wait),
		NAMED(a_waiter_gets_the_key_when_the_holders_lease_ends),
		NAMED(what_a_waiter_may_count_on_includes_its_wait_but_not_the_drift),
		NAMED(a_wait_that_ends_is_a_timeout_and_leaves_nothing_behind),
		NAMED(a_waiter_whose_connection_breaks_leaves_the_queue),
		NAMED(waiters_survive_the_death_of_the_keys_home),
		NAMED(those_who_wait_are_listed_in_their_order),
		NAMED(traffic_of_one_key_does_not_hold_up_another),
		NAMED(a_hung_master_delays_nobody),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
