/* These tests are about the permit numbers of a semaphore's holder, where masters know different
 * ones (docs/protocol.md, section 10). */
#include "modes.h"

/* Lets a commit arrive at `node`, whoever sent it. */
static void commit_at(struct stage *s, uint32_t node, struct id128 lock, uint64_t numbers,
	uint64_t token) {
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = lock, .token = token,
		.lease_us = (uint64_t)(LEASE / SPAN_US), .ballot = { token, 1, 1 },
		.terms = { .of = 2, .count = 1, .set = { { numbers, 0 } } } };
	stage_inject(s, 1, node, &m);
	stage_settle(s);
}

/* X has number 0 at n1 alone, where an attempt whose coordinator died came to nothing, and number 1
 * at n2 and n3. So it holds number 1. */
static struct id128 split(struct stage *s) {
	struct id128 x = stage_lock(1), y = stage_lock(2);
	commit_at(s, 0, x, 1, stage_status(s, 0).clock + 1);
	stage_isolate(s, 0, true);
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(take_permits(s, 1, "k", y, 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
	assert_int_equal(take_permits(s, 1, "k", x, 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 2);
	assert_int_equal(release(s, 1, "k", y), PAWL_OK);
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, i, 0, MESSAGE_LEARN, true);
		stage_lose(s, 0, i, MESSAGE_SYNC_FETCH, true);
	}
	stage_isolate(s, 0, false);
	stage_wait(s, 10 * SPAN_MS);
	return x;
}

static int extend_await(struct stage *s, uint32_t node, const char *key, struct id128 lock,
	span_ns lease) {
	struct core_request r = stage_request(CORE_EXTEND, key, lock);
	r.lease = lease;
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 300 * SPAN_MS);
	return stage_answer(s, id)->r.error;
}

static void an_extension_counts_only_masters_that_have_all_the_numbers(void **state) {
	struct stage *s = *state;
	struct id128 x = split(s);
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	stage_lose(s, 1, 2, MESSAGE_EXTEND_PERMITS, true);
	/* n1 has lengthened number 0. */
	assert_int_equal(extend_await(s, 1, "k", x, 2 * LEASE), PAWL_ENOQUORUM);
	assert_true(stage_count(s, COUNT_extend_permits_missing) > 0);
}

static void a_master_that_lacks_numbers_learns_them_with_an_extension(void **state) {
	struct stage *s = *state;
	struct id128 x = split(s);
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	stage_lose(s, 1, 2, MESSAGE_EXTEND_PERMITS, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, false);
	/* n1 could see that it alone has number 0. */
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, 0, MESSAGE_SYNC_KEYS, true);
	}
	assert_int_equal(extend_await(s, 1, "k", x, 2 * LEASE), PAWL_OK);
	assert_true(stage_count(s, COUNT_permits_widened) > 0);
	/* The lease is over at n3. */
	stage_wait(s, LEASE + SPAN_S / 2);
	assert_int_equal(take_permits(s, 2, "k", stage_lock(3), 1, 2), PAWL_OK);
	/* n1 and n2 have number 1. Number 0, which nobody extended, has run out. */
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
	assert_int_equal(stage_count(s, COUNT_permits_run_out), 1);
}

/* The numbers that a caller names are those that it trusts. That is so even where its record has
 * more, and whether it keeps its deadline or not. */
static void a_holder_that_names_some_of_its_numbers_is_answered_for_these(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 4, 5), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 15);
	r.terms.set.w[0] = 3;
	r.lease = LEASE;
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 3);
	r.terms.set.w[0] = 1;
	r.deadline_kept = true;
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
	r.deadline_kept = false;
	/* For a number that it does not have the caller is not answered with success. */
	r.terms.set.w[0] = 16;
	assert_int_not_equal(stage_do(s, 1, r), PAWL_OK);
}

static void commit_numbers(struct stage *s, struct id128 lock, uint64_t numbers, uint64_t token) {
	commit_at(s, 0, lock, numbers, token);
}

/* Otherwise somebody would have number 1 with token 3 after somebody else had it with token 5. */
static void numbers_that_a_record_gains_are_new_to_it(void **state) {
	struct stage *s = *state;
	struct message gone = { .kind = MESSAGE_RELEASE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(2) };
	uint64_t clock = stage_status(s, 0).clock;
	commit_numbers(s, stage_lock(1), 1, clock + 1);
	commit_numbers(s, stage_lock(2), 2, clock + 5);
	stage_inject(s, 1, 0, &gone);
	stage_settle(s);
	commit_numbers(s, stage_lock(1), 2, clock + 3);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 1);
	/* For the number that it has had all along, its noted number speaks. */
	commit_numbers(s, stage_lock(1), 1, clock + 3);
	assert_int_equal(stage_count(s, COUNT_commit_ok), 3);
	commit_numbers(s, stage_lock(1), 2, clock + 6);
	assert_int_equal(stage_count(s, COUNT_commit_ok), 4);
	/* The record has noted what came between. */
	commit_numbers(s, stage_lock(1), 2, clock + 5);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 2);
}

static void numbers_that_are_learned_note_the_clock(void **state) {
	struct stage *s = *state;
	uint64_t clock = stage_status(s, 0).clock;
	commit_numbers(s, stage_lock(1), 1, clock + 1);
	commit_numbers(s, stage_lock(2), 2, clock + 5);
	struct message gone = { .kind = MESSAGE_RELEASE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(2) };
	stage_inject(s, 1, 0, &gone);
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .token = clock + 1,
		.lease_us = (uint64_t)(LEASE / SPAN_US), .ballot = { clock + 1, 1, 1 },
		.terms = { .of = 2, .count = 1, .set = { { 3, 0 } } } };
	stage_inject(s, 1, 0, &m);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_permits_widened), 1);
	commit_numbers(s, stage_lock(1), 2, clock + 3);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 1);
}

/* A master that merges from one that has number 0 and one that has number 1 notes the clocks of
 * both. */
static void sources_that_lack_numbers_count_with_their_clocks(void **state) {
	struct stage *s = *state;
	struct id128 x = split(s);
	/* What X noted is far below these clocks. */
	for (uint8_t i = 20; i < 25; i++) {
		take(s, 1, "another", stage_lock(i));
		release(s, 1, "another", stage_lock(i));
	}
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	struct core_request look = stage_request(CORE_GET, "k", x);
	look.admin = true;
	assert_int_equal(stage_do(s, 2, look), PAWL_OK);
	assert_int_equal(stage_last(s)->r.entry.terms.set.w[0], 3);
	assert_true(stage_count(s, COUNT_permits_uneven) > 0);
	commit_at(s, 2, x, 2, stage_status(s, 1).clock - 1);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 1);
}

/* X goes on at a node that did not answer it. Its extensions name no numbers, and n1 is the first
 * that answers each, so that it lengthens what is left over there. They come so often that n1 may
 * not drop this by what the others list; and here they list nothing. */
static void extensions_without_numbers_do_not_keep_a_leftover(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_EXTEND, "k", split(s));
	r.lease = LEASE;
	r.deadline_kept = true;
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, i, 0, MESSAGE_LEARN, false);
		stage_lose(s, i, 0, MESSAGE_SYNC_KEYS, true);
	}
	for (int64_t end = s->now + LEASE + SPAN_S / 2; s->now < end;) {
		stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, true);
		uint64_t id = stage_ask(s, 2, r);
		stage_settle(s);
		stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, false);
		stage_wait(s, 20 * SPAN_MS);
		assert_int_equal(numbers_of(s, id).w[0], 2);
	}
	/* It has learned number 1 meanwhile, and number 0 has run out. */
	assert_int_equal(stage_count(s, COUNT_permits_run_out), 1);
	assert_int_equal(stage_count(s, COUNT_sync_dropped), 0);
	assert_int_equal(take_permits(s, 2, "k", stage_lock(3), 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

static int setup_with_a_replica(void **state) {
	return named_setup_replicas(state, 1);
}

/* X asks through a node of its own. X's commit has reached n1 alone when Y's reaches all. */
static uint64_t overtaken(struct stage *s, struct core_request request) {
	stage_lose(s, 3, 2, MESSAGE_PROMISE, true);
	stage_stop(s, 3, 1, MESSAGE_COMMIT, true);
	stage_stop(s, 3, 2, MESSAGE_COMMIT, true);
	uint64_t x = stage_ask(s, 3, request);
	stage_settle(s);
	assert_int_equal(take_permits(s, 2, "k", stage_lock(2), 1, 3), PAWL_OK);
	assert_false(answered(s, x));
	return x;
}

static void let_through(struct stage *s) {
	stage_lose(s, 3, 2, MESSAGE_PROMISE, false);
	stage_stop(s, 3, 1, MESSAGE_COMMIT, false);
	stage_stop(s, 3, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
}

static void permits_whose_commit_is_overtaken_are_asked_for_again(void **state) {
	struct stage *s = *state;
	uint64_t x = overtaken(s, permits_request("k", stage_lock(1), 1, 3, 0));
	uint64_t others = stage_last(s)->r.token;
	struct permits y = stage_last(s)->r.terms.set;
	let_through(s);
	assert_true(token_of(s, x) > others);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	/* The commit is rolled back at n1 before X asks again. */
	assert_int_equal(stage_count(s, COUNT_commit_rolled_back), 1);
	assert_false(permits_meet(numbers_of(s, x), y));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 2);
	}
}

static void permits_among_other_keys_whose_commit_is_overtaken_are_asked_for_again(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { { .key = slice_str("z"), .lock_id = stage_lock(5) },
		{ .key = slice_str("k"), .lock_id = stage_lock(1), .of = 3, .count = 1 } };
	uint64_t x = overtaken(s, (struct core_request){ .op = CORE_ACQUIRE_ALL, .locks = locks,
		.lock_count = 2, .lease = LEASE });
	let_through(s);
	assert_int_equal(stage_answer(s, x)->r.error, PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	assert_int_equal(stage_count(s, COUNT_commit_rolled_back), 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 3);
	}
	stage_wait(s, 2 * LEASE);
	assert_int_equal(stage_status(s, 0).held, 0);
}

static void permits_of_a_failed_attempt_are_rolled_back(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	uint64_t x = stage_ask(s, 0, permits_request("k", stage_lock(1), 1, 2, 0));
	stage_settle(s);
	assert_int_equal(stage_status(s, 0).held, 1);
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(stage_answer(s, x)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(stage_status(s, 0).held, 0);
}

/* X's client repeated the request through another node, which found the record and made it its own.
 * So the record is in use. */
static void permits_that_were_granted_elsewhere_are_not_rolled_back(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	uint64_t x = stage_ask(s, 0, permits_request("k", stage_lock(1), 1, 2, 0));
	stage_settle(s);
	uint64_t again = stage_ask(s, 1, permits_request("k", stage_lock(1), 1, 2, WAIT));
	stage_wait(s, 600 * SPAN_MS);
	assert_int_equal(stage_answer(s, x)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(permits_count(numbers_of(s, again)), 1);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 1);
	}
}

static void commits_numbers(struct stage *s, uint32_t to, uint64_t token, uint64_t numbers,
	uint64_t lease_us) {
	stage_inject(s, to == 0 ? 1 : 0, to, &(struct message){ .kind = MESSAGE_COMMIT,
		.round = 1 << 16, .name = 7, .key = slice_str("k"), .lock_id = stage_lock(1),
		.token = token, .lease_us = lease_us, .ballot = { token, 1, 1 },
		.terms = { .of = 4, .count = 1, .set = { { numbers, 0 } } } });
}

/* All masters have X with number 1; n3 also has number 0, which a failed attempt has left. n3 drops
 * 0, which few masters have; then 1 runs out. */
static void a_record_that_has_no_number_any_more_is_dropped(void **state) {
	struct stage *s = *state;
	const uint64_t x = stage_status(s, 2).clock + 5;
	commits_numbers(s, 2, x, 3, 2000000);
	commits_numbers(s, 0, x, 2, 1950000);
	commits_numbers(s, 1, x, 2, 1950000);
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_EXTEND_PERMITS, .round = 2 << 16,
		.attempt = 7, .key = slice_str("k"), .lock_id = stage_lock(1), .token = x,
		.lease_us = 9000000, .terms = { .of = 4, .count = 1, .set = { { 1, 0 } } } });
	stage_settle(s);
	stage_wait(s, 5 * SPAN_S);
	uint64_t token, noted;
	assert_false(core_peek(s->nodes[0].core, slice_str("k"), stage_lock(1), &token, &noted));
	assert_false(core_peek(s->nodes[2].core, slice_str("k"), stage_lock(1), &token, &noted));
}

UNIT(cluster_numbers) {
	const struct CMUnitTest tests[] = {
		NAMED(an_extension_counts_only_masters_that_have_all_the_numbers),
		NAMED(a_master_that_lacks_numbers_learns_them_with_an_extension),
		NAMED(a_holder_that_names_some_of_its_numbers_is_answered_for_these),
		NAMED(numbers_that_a_record_gains_are_new_to_it),
		NAMED(extensions_without_numbers_do_not_keep_a_leftover),
		NAMED(numbers_that_are_learned_note_the_clock),
		NAMED(sources_that_lack_numbers_count_with_their_clocks),
		cmocka_unit_test_setup_teardown(
			permits_whose_commit_is_overtaken_are_asked_for_again, setup_with_a_replica,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			permits_among_other_keys_whose_commit_is_overtaken_are_asked_for_again,
			setup_with_a_replica, named_teardown),
		NAMED(permits_of_a_failed_attempt_are_rolled_back),
		NAMED(permits_that_were_granted_elsewhere_are_not_rolled_back),
		NAMED(a_record_that_has_no_number_any_more_is_dropped),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
