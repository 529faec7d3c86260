/* These tests are about one key that many requests of one node share: they are promised together,
 * and have turns together (docs/protocol.md, section 5, Together). */
#include "modes.h"

#define CROWD 16

/* Asks at one node with the lock_ids from `first` on, before anything is delivered. */
static void ask_from(struct stage *s, uint32_t node, const char *key, uint16_t of, uint8_t first,
	uint64_t *ids, uint32_t count) {
	for (uint32_t i = 0; i < count; i++) {
		const struct id128 lock = stage_lock((uint8_t)(first + i));
		ids[i] = stage_ask(s, node, of == MODE_SHARED ? shared_request(key, lock, WAIT)
			: permits_request(key, lock, 1, of, WAIT));
	}
}

static void ask_all(struct stage *s, uint32_t node, const char *key, uint16_t of, uint64_t *ids,
	uint32_t count) {
	ask_from(s, node, key, of, 1, ids, count);
}

static void all_have_it(struct stage *s, const uint64_t *ids, uint32_t count) {
	for (uint32_t i = 1; i < count; i++) {
		assert_true(token_of(s, ids[i]) > token_of(s, ids[i - 1]));
	}
}

/* No time passes, nobody enters a queue, and each master is asked once for each of them. */
static void readers_of_one_node_are_promised_together(void **state) {
	struct stage *s = *state;
	for (uint32_t node = 0; node < 3; node++) {
		const uint8_t first = (uint8_t)(1 + node * CROWD);
		uint64_t ids[CROWD], asked = stage_sent(s, MESSAGE_PROMISE);
		ask_from(s, node, "k", MODE_SHARED, first, ids, CROWD);
		stage_settle(s);
		all_have_it(s, ids, CROWD);
		assert_int_equal(stage_sent(s, MESSAGE_PROMISE), asked + 2 * CROWD);
		for (uint8_t i = 0; i < CROWD; i++) {
			assert_int_equal(release(s, node, "k", stage_lock((uint8_t)(first + i))),
				PAWL_OK);
		}
	}
	assert_int_equal(stage_sent(s, MESSAGE_ENQUEUE), 0);
	assert_int_equal(stage_count(s, COUNT_turn_given), 0);
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 0);
}

static void permits_of_one_node_are_promised_together_and_all_have_their_own_numbers(
	void **state) {
	struct stage *s = *state;
	uint64_t ids[CROWD];
	struct permits met = { { 0, 0 } };
	ask_all(s, 0, "k", CROWD, ids, CROWD);
	stage_settle(s);
	all_have_it(s, ids, CROWD);
	for (uint32_t i = 0; i < CROWD; i++) {
		assert_false(permits_meet(met, numbers_of(s, ids[i])));
		met = permits_or(met, numbers_of(s, ids[i]));
	}
	assert_int_equal(stage_count(s, COUNT_turn_given), 0);
	assert_int_equal(stage_count(s, COUNT_commit_refused_held), 0);
}

/* Four numbers are promised to four requests, and the fifth has to wait. */
static void no_more_permits_are_promised_than_there_are(void **state) {
	struct stage *s = *state;
	uint64_t ids[5];
	ask_all(s, 0, "k", 4, ids, 5);
	stage_settle(s);
	all_have_it(s, ids, 4);
	assert_false(answered(s, ids[4]));
	assert_int_equal(stage_count(s, COUNT_commit_refused_held), 0);
	assert_int_equal(release(s, 0, "k", stage_lock(2)), PAWL_OK);
	token_of(s, ids[4]);
}

/* n3 is down. Numbers 0 and 1 are free first at n1, and 2 and 3 at n2, so that each request of n1
 * is promised other numbers there than here, and no number is free at both for any of them. */
static void promises_of_different_numbers_do_not_stand_in_the_way_for_ever(void **state) {
	struct stage *s = *state;
	uint64_t ids[4];
	stage_kill(s, 2);
	for (uint8_t i = 0; i < 4; i++) {
		assert_int_equal(take_permits(s, i / 2, "k", stage_lock((uint8_t)(100 + i)), 1, 4),
			PAWL_OK);
	}
	ask_all(s, 0, "k", 4, ids, 4);
	stage_settle(s);
	stage_stop(s, 0, 1, MESSAGE_RELEASE, true);
	stage_stop(s, 1, 0, MESSAGE_RELEASE, true);
	for (uint8_t i = 0; i < 4; i++) {
		(void)stage_ask(s, i / 2, stage_request(CORE_RELEASE, "k",
			stage_lock((uint8_t)(100 + i))));
		stage_settle(s);
	}
	stage_stop(s, 0, 1, MESSAGE_RELEASE, false);
	stage_stop(s, 1, 0, MESSAGE_RELEASE, false);
	stage_settle(s);
	stage_wait(s, 500 * SPAN_MS);
	for (uint32_t i = 0; i < 4; i++) {
		token_of(s, ids[i]);
	}
}

/* Says how many promises are made to this node, which asks n3 under these terms. */
static uint64_t promised_to(struct stage *s, uint32_t from, uint8_t lock, struct terms terms) {
	uint64_t made = stage_count(s, COUNT_promise_ok);
	stage_inject(s, from, 2, &(struct message){ .kind = MESSAGE_PROMISE,
		.round = (uint64_t)lock << 16, .attempt = lock, .key = slice_str("k"),
		.lock_id = stage_lock(lock), .terms = terms });
	return stage_count(s, COUNT_promise_ok) - made;
}

static uint64_t promised(struct stage *s, uint32_t from, uint8_t lock, uint16_t of) {
	return promised_to(s, from, lock,
		(struct terms){ .of = of, .count = terms_of_numbers(of) });
}

static enum status committed(struct stage *s, uint32_t from, uint8_t lock, uint64_t token) {
	const uint64_t ok = stage_count(s, COUNT_commit_ok);
	stage_inject(s, from, 2, &(struct message){ .kind = MESSAGE_COMMIT,
		.round = (uint64_t)lock << 16, .attempt = lock, .key = slice_str("k"),
		.lock_id = stage_lock(lock), .token = token, .ballot = { .clock = token },
		.lease_us = 1000000, .terms = { .of = MODE_SHARED } });
	return stage_count(s, COUNT_commit_ok) > ok ? STATUS_OK : STATUS_STALE;
}

static void nothing_is_promised_together_that_excludes_one_another(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	assert_int_equal(promised(s, 0, 2, MODE_EXCLUSIVE), 0);
	assert_int_equal(promised(s, 0, 3, 8), 0);
	assert_int_equal(promised(s, 0, 4, MODE_SHARED), 1);
	/* The first one may not become a writer meanwhile. */
	assert_int_equal(promised(s, 0, 1, MODE_EXCLUSIVE), 0);
}

static void readers_of_two_nodes_are_promised_together(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	assert_int_equal(promised(s, 1, 2, MODE_SHARED), 1);
	/* The other node repeats a request of the first one. */
	assert_int_equal(promised(s, 1, 1, MODE_SHARED), 1);
}

/* The nodes 3 and 4 are replicas. They might draw the tokens of each other, and of a master. */
static void a_reader_of_a_replica_goes_with_those_of_the_same_node_alone(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 3, 1, MODE_SHARED), 1);
	assert_int_equal(promised(s, 3, 2, MODE_SHARED), 1);
	assert_int_equal(promised(s, 4, 3, MODE_SHARED), 0);
	assert_int_equal(promised(s, 0, 4, MODE_SHARED), 0);
}

/* Both may have the same token. */
static void a_promise_of_a_replica_ends_with_a_record_of_another_node(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 2).clock;
	assert_int_equal(promised(s, 3, 1, MODE_SHARED), 1);
	assert_int_equal(committed(s, 3, 5, clock + 1), STATUS_OK);
	assert_int_equal(stage_status(s, 2).promises, 1);
	assert_int_equal(committed(s, 4, 6, clock + 2), STATUS_OK);
	assert_int_equal(stage_status(s, 2).promises, 0);
}

static int setup_replicas(void **state) {
	return named_setup_replicas(state, 2);
}

static void permits_of_two_nodes_are_promised_together(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, 8), 1);
	assert_int_equal(promised(s, 1, 2, 8), 1);
	assert_int_equal(promised(s, 2, 3, 16), 0);
}

static void permits_of_a_replica_go_with_those_of_the_same_node_alone(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 3, 1, 8), 1);
	assert_int_equal(promised(s, 3, 2, 8), 1);
	assert_int_equal(promised(s, 4, 3, 8), 0);
	assert_int_equal(promised(s, 0, 4, 8), 0);
}

static void a_key_has_so_many_promises_and_no_more(void **state) {
	struct stage *s = *state;
	uint8_t lock = 1;
	while (lock < 40 && promised(s, 0, lock, MODE_SHARED)) {
		lock++;
	}
	assert_int_equal(lock, 33);
	/* What is asked for again has its promise already. */
	assert_int_equal(promised(s, 0, 32, MODE_SHARED), 1);
}

/* Otherwise two that hold the key at one time could have the same token. */
static void a_token_that_a_live_record_has_is_stale(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	assert_int_equal(promised(s, 0, 2, MODE_SHARED), 1);
	assert_int_equal(committed(s, 0, 1, 9), STATUS_OK);
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 0);
	assert_int_equal(committed(s, 0, 2, 9), STATUS_STALE);
	assert_int_equal(committed(s, 0, 2, 10), STATUS_OK);
	assert_int_equal(stage_count(s, COUNT_commit_without_promise), 0);
}

static void a_commit_of_another_node_leaves_what_it_does_not_exclude(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	assert_int_equal(promised(s, 0, 2, MODE_SHARED), 1);
	assert_int_equal(committed(s, 1, 3, 9), STATUS_OK);
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 0);
}

static void a_commit_of_the_same_node_displaces_what_it_excludes(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, 8), 1);
	assert_int_equal(committed(s, 0, 2, 9), STATUS_OK);
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 1);
	assert_int_equal(stage_status(s, 2).promises, 0);
}

/* A node that lies asks for no permits. */
static void a_promise_of_no_permits_is_displaced_by_what_excludes_it(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised_to(s, 0, 1, (struct terms){ .of = 8 }), 1);
	assert_int_equal(committed(s, 0, 2, 9), STATUS_OK);
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 1);
}

/* A node that lies names a number that the semaphore does not have. */
static void numbers_that_a_request_names_do_not_count(void **state) {
	struct stage *s = *state;
	const struct terms terms = { .of = 2, .count = 1, .set = { { 1 << 5, 0 } } };
	assert_int_equal(take_permits(s, 0, "k", stage_lock(100), 2, 2), PAWL_OK);
	assert_int_equal(promised_to(s, 0, 1, terms), 0);
}

/* The turn of the writer is out, and nobody who came later passes it, at whatever master. */
static void a_writer_is_not_passed_by_readers_that_come_after_it(void **state) {
	struct stage *s = *state;
	uint64_t ids[4];
	ask_all(s, 0, "k", MODE_SHARED, ids, 4);
	stage_settle(s);
	uint64_t writer = wait_for(s, 1, "k", stage_lock(50));
	assert_false(answered(s, writer));
	uint64_t later = wait_shared(s, 0, "k", stage_lock(51));
	for (uint8_t i = 1; i <= 4; i++) {
		assert_int_equal(release(s, 0, "k", stage_lock(i)), PAWL_OK);
	}
	token_of(s, writer);
	assert_false(answered(s, later));
	assert_int_equal(release(s, 1, "k", stage_lock(50)), PAWL_OK);
	token_of(s, later);
}

/* n3 has parked a writer behind the promise of a reader. A reader with a later place does not slip
 * in next to that promise. */
static void a_parked_request_is_not_passed_next_to_a_promise(void **state) {
	struct stage *s = *state;
	const struct message ask = { .kind = MESSAGE_PROMISE, .round = 7 << 16, .attempt = 7,
		.key = slice_str("k"), .lock_id = stage_lock(7), .flags = FLAG_TURN,
		.ticket = { 20, 1 } };
	struct message reader = ask;
	reader.terms.of = MODE_SHARED;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	uint64_t parked = stage_count(s, COUNT_promise_parked);
	stage_inject(s, 1, 2, &ask);
	assert_int_equal(stage_count(s, COUNT_promise_parked), parked + 1);
	reader.lock_id = stage_lock(8);
	reader.ticket = (struct ticket){ 21, 2 };
	stage_inject(s, 0, 2, &reader);
	assert_int_equal(stage_count(s, COUNT_promise_parked), parked + 2);
	reader.lock_id = stage_lock(9);
	reader.ticket = (struct ticket){ 19, 3 };
	stage_inject(s, 0, 2, &reader);
	assert_int_equal(stage_count(s, COUNT_promise_parked), parked + 2);
}

/* n3 has promised to a reader, and has parked a writer behind that promise. The reader's commit is
 * overtaken, so that it asks again, and is refused. Its coordinator counts on no promise of n3
 * then, and the writer has the turn. */
static void a_request_that_is_refused_keeps_no_earlier_promise(void **state) {
	struct stage *s = *state;
	const struct message ask = { .kind = MESSAGE_PROMISE, .round = 7 << 16, .attempt = 7,
		.key = slice_str("k"), .lock_id = stage_lock(7), .flags = FLAG_TURN,
		.ticket = { 20, 1 } };
	struct message reader = ask;
	reader.flags = 0;
	reader.ticket = (struct ticket){ 0, 0 };
	reader.terms.of = MODE_SHARED;
	reader.lock_id = stage_lock(1);
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	stage_inject(s, 1, 2, &ask);
	assert_int_equal(stage_count(s, COUNT_promise_parked), 1);
	/* The same request through another node has nothing to do with it. */
	stage_inject(s, 1, 2, &reader);
	assert_int_equal(stage_count(s, COUNT_promise_refused_queued), 1);
	assert_int_equal(stage_count(s, COUNT_parked_promised), 0);
	reader.attempt++;
	stage_inject(s, 0, 2, &reader);
	assert_int_equal(stage_count(s, COUNT_promise_refused_queued), 2);
	assert_int_equal(stage_count(s, COUNT_parked_promised), 1);
	assert_int_equal(stage_status(s, 2).promises, 1);
}

/* A writer holds the key. The readers of n1 have their turns with the first of them, and all of
 * them have the key one message after its release. */
static void readers_of_one_node_have_turns_together(void **state) {
	struct stage *s = *state;
	uint64_t ids[CROWD];
	take(s, 1, "k", stage_lock(100));
	ask_all(s, 0, "k", MODE_SHARED, ids, CROWD);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_turn_given), CROWD);
	assert_int_equal(stage_count(s, COUNT_turn_together), CROWD - 1);
	uint64_t asked = stage_sent(s, MESSAGE_PROMISE);
	assert_int_equal(release(s, 1, "k", stage_lock(100)), PAWL_OK);
	all_have_it(s, ids, CROWD);
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), asked);
}

static void so_many_have_turns_together_and_no_more(void **state) {
	struct stage *s = *state;
	uint64_t ids[40];
	take(s, 1, "k", stage_lock(100));
	ask_all(s, 0, "k", MODE_SHARED, ids, 40);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_turn_given), 32);
	assert_int_equal(release(s, 1, "k", stage_lock(100)), PAWL_OK);
	all_have_it(s, ids, 40);
}

static void turns_are_given_together_to_readers_and_not_to_writers(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(100));
	uint64_t first = wait_shared(s, 0, "k", stage_lock(1)),
		second = wait_shared(s, 2, "k", stage_lock(2)),
		writer = wait_for(s, 2, "k", stage_lock(3));
	assert_int_equal(stage_count(s, COUNT_turn_given), 2);
	assert_int_equal(release(s, 1, "k", stage_lock(100)), PAWL_OK);
	assert_true(token_of(s, second) != token_of(s, first));
	assert_false(answered(s, writer));
	assert_int_equal(stage_count(s, COUNT_turn_together), 1);
}

static void a_more_important_one_is_not_passed_by_turns_given_together(void **state) {
	struct stage *s = *state;
	uint64_t ids[2];
	take(s, 1, "k", stage_lock(100));
	struct core_request r = stage_acquire("k", stage_lock(50), LEASE, WAIT);
	r.terms.priority = 5;
	uint64_t first = stage_ask(s, 1, r);
	stage_settle(s);
	ask_all(s, 0, "k", MODE_SHARED, ids, 2);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_turn_given), 1);
	assert_int_equal(release(s, 1, "k", stage_lock(100)), PAWL_OK);
	token_of(s, first);
	assert_false(answered(s, ids[0]));
	assert_int_equal(release(s, 1, "k", stage_lock(50)), PAWL_OK);
	all_have_it(s, ids, 2);
}

static void all_promises_end_with_the_link(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	assert_int_equal(promised(s, 0, 2, MODE_SHARED), 1);
	assert_int_equal(stage_status(s, 2).promises, 2);
	stage_break(s, 0, 2);
	stage_settle(s);
	assert_int_equal(stage_status(s, 2).promises, 0);
}

static void promises_end_each_by_itself(void **state) {
	struct stage *s = *state;
	assert_int_equal(promised(s, 0, 1, MODE_SHARED), 1);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(promised(s, 0, 2, MODE_SHARED), 1);
	stage_wait(s, 120 * SPAN_MS);
	assert_int_equal(stage_status(s, 2).promises, 1);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_status(s, 2).promises, 0);
}

UNIT(cluster_hot) {
	const struct CMUnitTest tests[] = {
		NAMED(readers_of_one_node_are_promised_together),
		NAMED(permits_of_one_node_are_promised_together_and_all_have_their_own_numbers),
		NAMED(no_more_permits_are_promised_than_there_are),
		NAMED(promises_of_different_numbers_do_not_stand_in_the_way_for_ever),
		NAMED(nothing_is_promised_together_that_excludes_one_another),
		NAMED(readers_of_two_nodes_are_promised_together),
		cmocka_unit_test_setup_teardown(
			a_reader_of_a_replica_goes_with_those_of_the_same_node_alone,
			setup_replicas, named_teardown),
		cmocka_unit_test_setup_teardown(
			a_promise_of_a_replica_ends_with_a_record_of_another_node, setup_replicas,
			named_teardown),
		NAMED(permits_of_two_nodes_are_promised_together),
		cmocka_unit_test_setup_teardown(
			permits_of_a_replica_go_with_those_of_the_same_node_alone, setup_replicas,
			named_teardown),
		NAMED(a_key_has_so_many_promises_and_no_more),
		NAMED(a_token_that_a_live_record_has_is_stale),
		NAMED(a_commit_of_another_node_leaves_what_it_does_not_exclude),
		NAMED(a_commit_of_the_same_node_displaces_what_it_excludes),
		NAMED(a_promise_of_no_permits_is_displaced_by_what_excludes_it),
		NAMED(numbers_that_a_request_names_do_not_count),
		NAMED(a_writer_is_not_passed_by_readers_that_come_after_it),
		NAMED(a_parked_request_is_not_passed_next_to_a_promise),
		NAMED(a_request_that_is_refused_keeps_no_earlier_promise),
		NAMED(readers_of_one_node_have_turns_together),
		NAMED(so_many_have_turns_together_and_no_more),
		NAMED(turns_are_given_together_to_readers_and_not_to_writers),
		NAMED(a_more_important_one_is_not_passed_by_turns_given_together),
		NAMED(all_promises_end_with_the_link),
		NAMED(promises_end_each_by_itself),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
