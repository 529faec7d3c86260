/* These tests are about shared locks: who may hold together, who waits for whom, and the tokens of
 * those that hold together (docs/protocol.md, section 10). */
#include "modes.h"

static void readers_hold_together_at_any_nodes(void **state) {
	struct stage *s = *state;
	uint64_t last = 0;
	for (uint8_t i = 0; i < 6; i++) {
		assert_int_equal(share(s, i % 3, "k", stage_lock((uint8_t)(i + 1))), PAWL_OK);
		assert_int_equal(stage_last(s)->r.terms.of, MODE_SHARED);
		assert_true(stage_last(s)->r.token > last);
		last = stage_last(s)->r.token;
	}
	assert_int_equal(stage_status(s, 0).held, 6);
	assert_false(stage_noted(s, 0, NOTE_CONTESTED));
}

static void a_writer_is_refused_while_a_reader_holds(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_OK);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(3), LEASE, 0)), PAWL_EHELD);
	release(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(4), LEASE, 0)), PAWL_EHELD);
	release(s, 1, "k", stage_lock(2));
	take(s, 2, "k", stage_lock(5));
}

static void a_reader_is_refused_while_a_writer_holds(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_EHELD);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(3), 1, 4), PAWL_EHELD);
}

static void a_writer_gets_the_key_when_the_last_reader_is_gone(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_OK);
	uint64_t writer = wait_for(s, 2, "k", stage_lock(3));
	release(s, 0, "k", stage_lock(1));
	assert_false(answered(s, writer));
	release(s, 1, "k", stage_lock(2));
	token_of(s, writer);
}

static void readers_that_wait_for_a_writer_all_get_the_key_at_once(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t readers[6];
	for (uint8_t i = 0; i < 6; i++) {
		readers[i] = wait_shared(s, i % 3, "k", stage_lock((uint8_t)(i + 2)));
	}
	assert_false(answered(s, readers[0]));
	release(s, 0, "k", stage_lock(1));
	for (uint8_t i = 0; i < 6; i++) {
		token_of(s, readers[i]);
		for (uint8_t j = 0; j < i; j++) {
			assert_int_not_equal(token_of(s, readers[i]), token_of(s, readers[j]));
		}
	}
}

static void a_reader_that_comes_after_a_waiting_writer_waits_behind_it(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	uint64_t writer = wait_for(s, 1, "k", stage_lock(2));
	uint64_t reader = wait_shared(s, 2, "k", stage_lock(3));
	assert_false(answered(s, reader));
	assert_int_equal(share(s, 0, "k", stage_lock(4)), PAWL_EHELD);
	release(s, 0, "k", stage_lock(1));
	token_of(s, writer);
	assert_false(answered(s, reader));
	release(s, 1, "k", stage_lock(2));
	token_of(s, reader);
}

static void a_reader_whose_lease_ends_lets_the_writer_in(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_OK);
	uint64_t writer = wait_for(s, 2, "k", stage_lock(3));
	stage_wait(s, SPAN_S);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
	stage_wait(s, 3 * SPAN_S / 2);
	/* The second one's lease is over, but the first one's is not. */
	assert_false(answered(s, writer));
	stage_wait(s, SPAN_S);
	token_of(s, writer);
}

/* A promise is exclusive whatever it is for. The request that was displaced asks again, and gets
 * the next token. */
static void readers_that_ask_at_the_same_moment_have_different_tokens(void **state) {
	struct stage *s = *state;
	uint64_t ids[3];
	for (uint32_t i = 0; i < 3; i++) {
		ids[i] = stage_ask(s, i, shared_request("k", stage_lock((uint8_t)(i + 1)), 0));
	}
	stage_settle(s);
	stage_wait(s, 500 * SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		token_of(s, ids[i]);
		for (uint32_t j = 0; j < i; j++) {
			assert_int_not_equal(token_of(s, ids[i]), token_of(s, ids[j]));
		}
	}
}

static void a_reader_displaced_by_another_reader_is_not_told_that_it_is_held(void **state) {
	struct stage *s = *state;
	/* n1 has promises everywhere, and its commit is on its way. */
	stage_stop(s, 0, 1, MESSAGE_COMMIT, true);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	uint64_t first = stage_ask(s, 0, shared_request("k", stage_lock(1), 0));
	stage_settle(s);
	uint64_t second = stage_ask(s, 1, shared_request("k", stage_lock(2), 0));
	stage_settle(s);
	assert_false(answered(s, first));
	stage_stop(s, 0, 1, MESSAGE_COMMIT, false);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	stage_wait(s, 300 * SPAN_MS);
	token_of(s, first);
	assert_true(token_of(s, second) > token_of(s, first));
}

static void a_lock_keeps_its_kind(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(1), LEASE, 0)),
		PAWL_EMISMATCH);
	assert_string_equal(stage_last(s)->r.field, "mode");
	assert_int_equal(share(s, 1, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(share(s, 0, "j", stage_lock(2)), PAWL_OK);
	assert_int_equal(take_permits(s, 1, "j", stage_lock(2), 1, 2), PAWL_EMISMATCH);
	assert_true(stage_count(s, COUNT_terms_refused) > 0);
}

/* The repeat draws a new token because one master lacks X. It may fail where the newcomer was
 * faster; the tokens differ. */
static void a_repeat_and_a_newcomer_never_have_the_same_token(void **state) {
	struct stage *s = *state;
	for (uint32_t round = 0; round < 3; round++) {
		char key[8] = { 'k', (char)('0' + round), 0 };
		stage_isolate(s, round, true);
		uint32_t other = (round + 1) % 3;
		assert_int_equal(share(s, other, key, stage_lock(1)), PAWL_OK);
		/* That node would have sent the record to the others. */
		stage_kill(s, other);
		assert_true(stage_start(s, other));
		stage_isolate(s, round, false);
		assert_true(stage_until_voting(s, other, SPAN_S));
		uint64_t repeat = stage_ask(s, round, shared_request(key, stage_lock(1), 0));
		uint64_t fresh = stage_ask(s, (round + 2) % 3,
			shared_request(key, stage_lock(2), 0));
		stage_settle(s);
		stage_wait(s, 500 * SPAN_MS);
		if (stage_answer(s, repeat)->r.error == PAWL_OK) {
			assert_int_not_equal(token_of(s, repeat), token_of(s, fresh));
		} else {
			assert_int_equal(stage_answer(s, repeat)->r.error, PAWL_ENOQUORUM);
		}
	}
}

static void a_reader_that_was_missed_is_learned_by_its_extension_among_others(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_OK);
	stage_isolate(s, 2, true);
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	stage_isolate(s, 2, false);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, true), PAWL_OK);
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[2].core, slice_str("k"), stage_lock(1), &token, &noted));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(3), LEASE, 0)), PAWL_EHELD);
	assert_false(stage_noted(s, 2, NOTE_CONTESTED));
}

static void only_so_many_may_share_a_key(void **state) {
	stage_free(*state);
	struct stage_options o = named_options();
	o.limits.holders_per_key = 3;
	struct stage *s = *state = stage_born(&o);
	for (uint8_t i = 1; i <= 3; i++) {
		assert_int_equal(share(s, 0, "k", stage_lock(i)), PAWL_OK);
	}
	assert_int_equal(share(s, 1, "k", stage_lock(4)), PAWL_EFULL);
	assert_string_equal(stage_last(s)->r.field, "holders_per_key");
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_OK);
	release(s, 0, "k", stage_lock(1));
	assert_int_equal(share(s, 1, "k", stage_lock(5)), PAWL_OK);
}

static int setup_with_a_replica(void **state) {
	return named_setup_replicas(state, 1);
}

/* X asks through a node of its own. X's commit has reached one master when Y's reaches all. */
static void a_reader_whose_commit_is_overtaken_by_another_one_asks_again(void **state) {
	struct stage *s = *state;
	stage_lose(s, 3, 2, MESSAGE_PROMISE, true);
	stage_stop(s, 3, 1, MESSAGE_COMMIT, true);
	stage_stop(s, 3, 2, MESSAGE_COMMIT, true);
	uint64_t x = stage_ask(s, 3, shared_request("k", stage_lock(1), 0));
	stage_settle(s);
	assert_int_equal(share(s, 2, "k", stage_lock(2)), PAWL_OK);
	uint64_t others = stage_last(s)->r.token;
	assert_false(answered(s, x));
	stage_lose(s, 3, 2, MESSAGE_PROMISE, false);
	stage_stop(s, 3, 1, MESSAGE_COMMIT, false);
	stage_stop(s, 3, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	assert_true(token_of(s, x) > others);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 2);
	}
}

UNIT(cluster_shared) {
	const struct CMUnitTest tests[] = {
		NAMED(readers_hold_together_at_any_nodes),
		NAMED(a_writer_is_refused_while_a_reader_holds),
		NAMED(a_reader_is_refused_while_a_writer_holds),
		NAMED(a_writer_gets_the_key_when_the_last_reader_is_gone),
		NAMED(readers_that_wait_for_a_writer_all_get_the_key_at_once),
		NAMED(a_reader_that_comes_after_a_waiting_writer_waits_behind_it),
		NAMED(a_reader_whose_lease_ends_lets_the_writer_in),
		NAMED(readers_that_ask_at_the_same_moment_have_different_tokens),
		NAMED(a_reader_displaced_by_another_reader_is_not_told_that_it_is_held),
		NAMED(a_lock_keeps_its_kind),
		NAMED(a_repeat_and_a_newcomer_never_have_the_same_token),
		NAMED(a_reader_that_was_missed_is_learned_by_its_extension_among_others),
		NAMED(only_so_many_may_share_a_key),
		cmocka_unit_test_setup_teardown(
			a_reader_whose_commit_is_overtaken_by_another_one_asks_again,
			setup_with_a_replica, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
