/* These tests have clients that vanish, repeat themselves, or give up at the wrong moment; and
 * reads and values (docs/protocol.md, sections 2, 3, 5, 9). */
#include "named.h"

static const struct id128 no_lock;

/* ---- a broken connection, and the same request at another node ---- */

static void the_first_node_gives_up_before_the_repeat(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(9));
	wait_for(s, 1, "k", stage_lock(1));
	stage_client_gone(s, 1, 2);
	stage_settle(s);
	uint64_t repeated = wait_for(s, 2, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(9));
	token_of(s, repeated);
	assert_true(holds(s, 0, "k", stage_lock(1)));
}

static void the_first_node_gives_up_after_the_repeat_got_the_lock(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(9));
	wait_for(s, 1, "k", stage_lock(1));
	uint64_t repeated = wait_for(s, 2, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(9));
	stage_wait(s, 300 * SPAN_MS);
	token_of(s, repeated);
	stage_client_gone(s, 1, 2);
	stage_wait(s, 10 * SPAN_MS);
	/* A withdrawal never takes a held record away. */
	assert_true(holds(s, 0, "k", stage_lock(1)));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, true), PAWL_OK);
}

static void the_first_node_gives_up_between_the_phases_of_the_repeat(void **state) {
	struct stage *s = *state;
	s->held[0][1] = s->held[2][1] = true;
	/* The attempt has its promises, and does not know that yet. */
	stage_ask(s, 1, stage_acquire("k", stage_lock(1), LEASE, WAIT));
	stage_settle(s);
	stage_stop(s, 2, 0, MESSAGE_COMMIT, true);
	stage_stop(s, 2, 1, MESSAGE_COMMIT, true);
	uint64_t repeated = wait_for(s, 2, "k", stage_lock(1));
	assert_false(answered(s, repeated));
	/* The withdrawals of the attempt overtake its commits. */
	stage_client_gone(s, 1, 2);
	stage_settle(s);
	memset(s->held, 0, sizeof s->held);
	memset(s->stops, 0, sizeof s->stops);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, repeated);
	assert_true(holds(s, 0, "k", stage_lock(1)));
}

static void a_repeat_at_another_node_gets_a_lock_that_was_had_already_again(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	stage_client_gone(s, 0, 1);
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	uint64_t repeated = wait_for(s, 2, "k", stage_lock(1));
	stage_wait(s, 300 * SPAN_MS);
	assert_true(token_of(s, repeated) >= token);
	assert_false(answered(s, waiter));
	release(s, 2, "k", stage_lock(1));
	stage_wait(s, 300 * SPAN_MS);
	assert_true(token_of(s, waiter) > token_of(s, repeated));
}

static void a_waiter_that_gives_up_before_its_commit_leaves_the_key_to_the_next(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(9));
	wait_for(s, 1, "k", stage_lock(1));
	uint64_t next = wait_for(s, 2, "k", stage_lock(2));
	/* The promises are on their way to the attempt. */
	s->held[0][1] = s->held[2][1] = true;
	release(s, 0, "k", stage_lock(9));
	stage_client_gone(s, 1, 2);
	memset(s->held, 0, sizeof s->held);
	stage_wait(s, 300 * SPAN_MS);
	token_of(s, next);
}

static void a_waiter_that_gives_up_at_its_commit_holds_until_its_lease_ends(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(9));
	wait_for(s, 1, "k", stage_lock(1));
	uint64_t next = wait_for(s, 2, "k", stage_lock(2));
	stage_stop(s, 1, 0, MESSAGE_COMMIT, true);
	stage_stop(s, 1, 2, MESSAGE_COMMIT, true);
	release(s, 0, "k", stage_lock(9));
	stage_client_gone(s, 1, 2);
	memset(s->stops, 0, sizeof s->stops);
	stage_wait(s, 10 * SPAN_MS);
	/* The client may have got the answer and may repeat its request. */
	assert_false(answered(s, next));
	assert_true(holds(s, 0, "k", stage_lock(1)));
	stage_wait(s, LEASE);
	token_of(s, next);
}

/* ---- wait, get, list ---- */

static uint64_t wait_change(struct stage *s, uint32_t node, bool for_free, span_ns timeout) {
	struct core_request r = stage_request(CORE_WAIT, "k", no_lock);
	r.for_free = for_free;
	r.wait = timeout;
	uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	return id;
}

static void a_wait_sees_a_change_however_soon_it_comes_and_goes(void **state) {
	struct stage *s = *state;
	uint64_t held = wait_change(s, 1, false, WAIT);
	/* The key is free. */
	assert_true(answered(s, wait_change(s, 1, true, WAIT)));
	assert_false(answered(s, held));
	stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	uint64_t free = wait_change(s, 1, true, WAIT);
	release(s, 0, "k", stage_lock(1));
	/* The key was held only for a moment. */
	assert_true(stage_answer(s, held)->r.held);
	assert_false(stage_answer(s, free)->r.held);
	assert_int_equal(stage_answer(s, free)->r.error, PAWL_OK);
}

/* This is the default of the client protocol: 10^12 ms. */
static void a_wait_may_be_longer_than_anybody_waits(void **state) {
	struct stage *s = *state;
	uint64_t held = wait_change(s, 1, false, (span_ns)1000000000000 * SPAN_MS);
	assert_false(answered(s, held));
	take(s, 0, "k", stage_lock(1));
	assert_true(stage_answer(s, held)->r.held);
}

static void a_wait_for_what_is_already_so_is_answered_at_once(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t id = wait_change(s, 2, false, WAIT);
	assert_true(stage_answer(s, id)->r.held);
}

static void a_wait_sees_the_end_of_a_lease_and_ends_itself(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t shorter = wait_change(s, 1, true, LEASE / 2),
		longer = wait_change(s, 2, true, WAIT);
	stage_wait(s, LEASE / 2 + SPAN_MS);
	assert_int_equal(stage_answer(s, shorter)->r.error, PAWL_ETIMEOUT);
	stage_wait(s, LEASE / 2 + 5 * SPAN_MS);
	assert_int_equal(stage_answer(s, longer)->r.error, PAWL_OK);
}

static void a_list_comes_in_pages_in_order(void **state) {
	struct stage *s = *state;
	static const char *const keys[] = { "p/c", "p/a", "q/x", "p/e", "p/b", "p/d", "a" };
	for (uint8_t i = 0; i < 7; i++) {
		take(s, i % 3, keys[i], stage_lock(i));
	}
	struct core_request r = stage_request(CORE_LIST, "p/", no_lock);
	char after[4] = "";
	char seen[8] = "";
	for (int page = 0; page < 3; page++) {
		r.limit = 2;
		r.after = slice_str(after);
		uint64_t id = stage_ask(s, 1, r);
		stage_wait(s, SPAN_MS);
		const struct stage_reply *reply = stage_answer(s, id);
		assert_int_equal(reply->r.count, page < 2 ? 2 : 1);
		assert_int_equal(reply->r.more, page < 2);
		for (size_t i = 0; i < reply->r.count; i++) {
			seen[strlen(seen)] = reply->rows[i].key.bytes[2];
			memcpy(after, reply->rows[i].key.bytes, 3);
		}
	}
	assert_string_equal(seen, "abcde");
}

/* ---- lists that are told in several replies ---- */

static int pieces_setup(void **state) {
	struct stage_options o = named_options();
	o.limits.list_piece = 2;
	*state = stage_born(&o);
	return 0;
}

static uint64_t five_keys_listed(struct stage *s, uint64_t client) {
	char key[] = "p/a";
	for (uint8_t i = 0; i < 5; i++, key[2]++) {
		take(s, 0, key, stage_lock(i));
	}
	struct core_request r = stage_request(CORE_LIST, "p/", no_lock);
	r.client = client;
	return stage_ask(s, 0, r);
}

static void assert_list(struct stage *s, uint64_t id, const char *keys) {
	const struct stage_reply *list = stage_answer(s, id);
	assert_non_null(list);
	assert_int_equal(list->r.error, PAWL_OK);
	assert_int_equal(list->r.count, strlen(keys));
	for (size_t i = 0; i < list->r.count; i++) {
		assert_int_equal(list->rows[i].key.bytes[2], keys[i]);
	}
}

static void a_long_list_takes_a_turn_for_each_of_its_pieces(void **state) {
	struct stage *s = *state;
	uint64_t id = five_keys_listed(s, 0);
	assert_false(answered(s, id));
	stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
	assert_false(answered(s, id));
	/* What ends before it is told is not told. */
	release(s, 0, "p/e", stage_lock(4));
	stage_wait(s, SPAN_MS);
	assert_list(s, id, "abcd");
}

static void a_list_ends_with_its_connection_and_the_next_one_goes_on(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_LIST, "p/", no_lock);
	uint64_t gone = five_keys_listed(s, 50);
	r.client = 51;
	uint64_t stays = stage_ask(s, 0, r);
	stage_client_gone(s, 0, 50);
	stage_wait(s, SPAN_MS);
	assert_false(answered(s, gone));
	assert_list(s, stays, "abcde");
}

/* Whoever asks for many lists gets them one after the other, and keeps nobody else waiting for all
 * of them. */
static void connections_have_their_lists_in_turns(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_LIST, "p/", no_lock);
	uint64_t many[4] = { five_keys_listed(s, 50) };
	r.client = 50;
	for (int i = 1; i < 4; i++) {
		many[i] = stage_ask(s, 0, r);
	}
	r.client = 51;
	uint64_t one = stage_ask(s, 0, r);
	while (!answered(s, one)) {
		stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
	}
	assert_true(answered(s, many[0]));
	assert_false(answered(s, many[2]));
	stage_wait(s, SPAN_MS);
	assert_list(s, many[3], "abcde");
	assert_list(s, one, "abcde");
}

static void a_quorum_read_does_not_count_silent_masters_as_free(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = true;
	uint64_t id = stage_ask(s, 2, r);
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
}

/* A renewal that reached one master of three was refused to its holder. Another is granted the key
 * when the other two have forgotten it, whatever that one has. */
static void a_quorum_read_says_for_how_long_a_quorum_has_the_lock(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_lose(s, 0, 1, MESSAGE_EXTEND, true);
	stage_lose(s, 0, 2, MESSAGE_EXTEND, true);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = 5 * LEASE;
	uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, LEASE / 2);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	r = stage_request(CORE_GET, "k", no_lock);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_false(stage_last(s)->r.entry.weighed);
	r.quorum = true;
	stage_lose(s, 1, 2, MESSAGE_READ, true);
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	const struct core_entry *e = &stage_last(s)->r.entry;
	assert_true(e->weighed);
	assert_true(e->remaining > 4 * LEASE);
	assert_true(e->at_most == span_grow(e->remaining, 10000));
	assert_true(e->at_least > LEASE / 4 && e->at_least <= span_shrink(LEASE / 2, 10000));
	/* It is counted from the question on, and not from the answer. */
	stage_stop(s, 0, 1, MESSAGE_READ_ANSWER, true);
	const span_ns before = e->at_least;
	id = stage_ask(s, 1, r);
	stage_settle(s);
	stage_wait(s, 20 * SPAN_MS);
	stage_stop(s, 0, 1, MESSAGE_READ_ANSWER, false);
	stage_settle(s);
	assert_true(stage_answer(s, id)->r.entry.at_least <= before - 20 * SPAN_MS);
}

/* ---- values ---- */

static int update(struct stage *s, uint32_t node, const char *value, const char *expected) {
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str(value);
	r.expect_value = expected != NULL;
	r.expected = expected ? slice_str(expected) : r.expected;
	return stage_do(s, node, r);
}

static void assert_value(struct stage *s, const char *value) {
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_do(s, i, stage_request(CORE_GET, "k", no_lock)), PAWL_OK);
		assert_int_equal(stage_last(s)->value.size, strlen(value));
		assert_memory_equal(stage_last(s)->value.bytes, value, strlen(value));
	}
}

static void an_update_replaces_the_value_that_was_expected(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.value = slice_str("one");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_value(s, "one");
	assert_int_equal(update(s, 1, "longer than one", "one"), PAWL_OK);
	assert_value(s, "longer than one");
	assert_int_equal(update(s, 2, "", NULL), PAWL_OK);
	assert_value(s, "");
}

static void an_update_with_another_expectation_is_a_mismatch_that_shows_the_value(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(update(s, 0, "one", NULL), PAWL_OK);
	struct ballot first = stage_last(s)->r.value_seq;
	assert_int_equal(update(s, 1, "two", "other"), PAWL_EMISMATCH);
	assert_memory_equal(stage_last(s)->value.bytes, "one", 3);
	assert_value(s, "one");
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str("three");
	r.expect_seq = true;
	/* The mismatch wrote the value back under a new ballot. */
	r.expected_seq = first;
	assert_int_equal(stage_do(s, 2, r), PAWL_EMISMATCH);
	r.expected_seq = stage_last(s)->r.entry.value_seq;
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_value(s, "three");
}

static void two_updates_with_the_same_expectation_do_not_both_win(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t ids[3];
	for (uint32_t i = 0; i < 3; i++) {
		struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
		r.value = slice_str("new");
		r.expect_value = true;
		ids[i] = stage_ask(s, i, r);
	}
	stage_wait(s, SPAN_S);
	uint32_t won = 0;
	for (uint32_t i = 0; i < 3; i++) {
		int error = stage_answer(s, ids[i])->r.error;
		won += error == PAWL_OK;
		assert_true(error == PAWL_OK || error == PAWL_EMISMATCH || error == PAWL_EUNSURE ||
			error == PAWL_EBUSY);
	}
	assert_true(won <= 1);
	assert_value(s, "new");
}

static void an_update_after_the_loss_is_lost(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, LEASE + SPAN_MS);
	assert_int_equal(update(s, 0, "x", NULL), PAWL_ELOST);
	take(s, 1, "k", stage_lock(2));
	assert_int_equal(update(s, 0, "x", NULL), PAWL_ELOST);
	assert_value(s, "");
}

#define PIECES(test) cmocka_unit_test_setup_teardown(test, pieces_setup, named_teardown)

UNIT(cluster_clients) {
	const struct CMUnitTest tests[] = {
		NAMED(the_first_node_gives_up_before_the_repeat),
		NAMED(the_first_node_gives_up_after_the_repeat_got_the_lock),
		NAMED(the_first_node_gives_up_between_the_phases_of_the_repeat),
		NAMED(a_repeat_at_another_node_gets_a_lock_that_was_had_already_again),
		NAMED(a_waiter_that_gives_up_before_its_commit_leaves_the_key_to_the_next),
		NAMED(a_waiter_that_gives_up_at_its_commit_holds_until_its_lease_ends),
		NAMED(a_wait_sees_a_change_however_soon_it_comes_and_goes),
		NAMED(a_wait_may_be_longer_than_anybody_waits),
		NAMED(a_wait_for_what_is_already_so_is_answered_at_once),
		NAMED(a_wait_sees_the_end_of_a_lease_and_ends_itself),
		NAMED(a_list_comes_in_pages_in_order),
		PIECES(a_long_list_takes_a_turn_for_each_of_its_pieces),
		PIECES(a_list_ends_with_its_connection_and_the_next_one_goes_on),
		PIECES(connections_have_their_lists_in_turns),
		NAMED(a_quorum_read_does_not_count_silent_masters_as_free),
		NAMED(a_quorum_read_says_for_how_long_a_quorum_has_the_lock),
		NAMED(an_update_replaces_the_value_that_was_expected),
		NAMED(an_update_with_another_expectation_is_a_mismatch_that_shows_the_value),
		NAMED(two_updates_with_the_same_expectation_do_not_both_win),
		NAMED(an_update_after_the_loss_is_lost),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
