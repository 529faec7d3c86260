/* These tests are about the ballots of first values (docs/protocol.md, section 2, Acquire): what is
 * known of an earlier or a present holding of the same lock_id. */
#include "store.h"
#include "values.h"

static void read_from_any_two(struct stage *s, const char *value) {
	for (uint32_t i = 0; i < 3; i++) {
		stage_isolate(s, (i + 1) % 3, true);
		assert_true(value_is(s, i, value));
		stage_isolate(s, (i + 1) % 3, false);
		stage_wait(s, 10 * SPAN_MS);
	}
}

/* n1 and n3 have the new holding, and n2 has the update of the previous one. n3 starts anew, and
 * merges what n1 and n2 have. */
static void of_two_holdings_that_are_merged_the_later_ones_first_value_stays(void **state) {
	struct stage *s = *state;
	n2_keeps_an_earlier_holding(s);
	stage_cut(s, 0, 1, true);
	struct core_request r = acquire_with("first");
	r.lease = 4 * LEASE;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, 2 * SPAN_S));
	assert_true(value_is(s, 2, "first"));
	stage_cut(s, 0, 1, false);
	stage_mend(s);
	stage_wait(s, SPAN_S);
	read_from_any_two(s, "first");
}

/* Nobody takes the update back, however many lock_ids are released at n1 before n3's commit
 * comes. */
static void releases_do_not_make_a_late_first_value_count(void **state) {
	struct stage *s = *state;
	struct core_request r = acquire_with("first");
	r.lease = 100 * SPAN_MS;
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, true);
	stage_stop(s, 2, 0, MESSAGE_COMMIT, true);
	static const enum message_kind between[] = { MESSAGE_PROMISE, MESSAGE_COMMIT, MESSAGE_LEARN,
		MESSAGE_PREPARE, MESSAGE_WRITE };
	for (size_t i = 0; i < sizeof between / sizeof between[0]; i++) {
		stage_lose(s, 1, 2, between[i], true);
		stage_lose(s, 2, 1, between[i], i < 2);
	}
	stage_lose(s, 0, 2, MESSAGE_COMMIT_ANSWER, true);
	(void)stage_ask(s, 2, acquire_with("first"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_wait(s, 40 * SPAN_MS);
	/* n1 hears of no higher clock. */
	stage_cut(s, 0, 1, true);
	stage_lose(s, 1, 2, MESSAGE_PROMISE, false);
	/* n3 hears n2's clock. */
	(void)stage_ask(s, 1, stage_acquire("x", stage_lock(2), LEASE, WAIT));
	stage_settle(s);
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	stage_lose(s, 1, 2, MESSAGE_LEARN, false);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), 5 * LEASE, true), PAWL_OK);
	stage_wait(s, 61 * SPAN_MS);
	for (uint32_t i = 0; i <= 16384; i++) {
		struct id128 lock = stage_lock(9);
		memcpy(lock.b + 8, &i, sizeof i);
		stage_inject(s, 2, 0, &(struct message){ .kind = MESSAGE_RELEASE, .round = 1,
			.key = slice_str("y"), .lock_id = lock });
	}
	stage_stop(s, 2, 0, MESSAGE_COMMIT, false);
	stage_settle(s);
	stage_isolate(s, 1, true);
	uint64_t third = stage_ask(s, 2, update_to("third", "first"));
	stage_wait(s, 250 * SPAN_MS);
	assert_non_null(stage_answer(s, third));
	assert_int_not_equal(stage_answer(s, third)->r.error, PAWL_OK);
}

/* n3 asks while n1 and n2 hold the lock, with an update. n1 hears that late: when it promises, n3
 * has learned the record, and n1 has lost it. */
static void masters_that_lack_the_lock_one_after_the_other_are_asked_again(void **state) {
	struct stage *s = *state;
	struct core_request r = acquire_with("first");
	r.lease = 100 * SPAN_MS;
	stage_lose(s, 1, 2, MESSAGE_PROMISE, true);
	stage_lose(s, 1, 2, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 2, MESSAGE_PREPARE, true);
	stage_lose(s, 1, 2, MESSAGE_WRITE, true);
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_wait(s, 40 * SPAN_MS);
	/* n3 hears the clock. */
	take(s, 1, "x", stage_lock(2));
	stage_stop(s, 2, 0, MESSAGE_PROMISE, true);
	stage_lose(s, 2, 1, MESSAGE_PROMISE, true);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	(void)stage_ask(s, 2, acquire_with("first"));
	stage_settle(s);
	stage_cut(s, 0, 1, true);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), 5 * LEASE, true), PAWL_OK);
	stage_wait(s, 61 * SPAN_MS);
	stage_stop(s, 2, 0, MESSAGE_PROMISE, false);
	stage_settle(s);
	assert_true(stage_count(s, COUNT_promise_unlapsed) > 0);
	stage_isolate(s, 1, true);
	uint64_t third = stage_ask(s, 2, update_to("third", "first"));
	stage_wait(s, 250 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, third)->r.error, PAWL_OK);
	stage_lose(s, 2, 1, MESSAGE_PROMISE, false);
	stage_isolate(s, 1, false);
	stage_mend(s);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
}

/* n2's attempt has overtaken n3's at n1, and n3's commit has come to n3 alone. */
static void the_first_value_of_an_attempt_that_was_overtaken_is_not_read(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, true);
	stage_lose(s, 2, 1, MESSAGE_PROMISE, true);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 2, MESSAGE_PROMISE, true);
	stage_lose(s, 1, 2, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 2, MESSAGE_LEARN, true);
	(void)stage_ask(s, 2, acquire_with("late"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, acquire_with("first")), PAWL_OK);
	stage_lose(s, 2, 0, MESSAGE_COMMIT, true);
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	stage_isolate(s, 1, true);
	assert_true(value_is(s, 2, "first"));
}

/* n1 was killed when n2 and it had the update, and votes after it has waited. Then an earlier
 * commit comes, with a token above its clock. */
static void a_master_that_votes_by_waiting_does_not_count_for_an_earlier_first_value(void **state) {
	struct stage *s = *state;
	struct core_request r = acquire_with("first");
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	stage_lose(s, 0, 2, MESSAGE_PREPARE, true);
	stage_lose(s, 0, 2, MESSAGE_WRITE, true);
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
	stage_kill(s, 0);
	stage_isolate(s, 0, true);
	assert_true(stage_start(s, 0));
	while (!stage_until_voting(s, 0, SPAN_S)) {
		assert_int_equal(extend(s, 1, "k", stage_lock(1), 2 * LEASE, true), PAWL_OK);
	}
	stage_isolate(s, 1, true);
	stage_isolate(s, 0, false);
	stage_cut(s, 0, 1, true);
	stage_mend(s);
	stage_wait(s, 10 * SPAN_MS);
	const uint64_t clock = stage_status(s, 0).clock;
	stage_inject(s, 2, 0,
		&(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .name = 7, .token = clock + 50, .lease_us = 4000000,
		.value = slice_str("first"), .ballot = { 1, 1, 1 | BALLOT_FIRST } });
	assert_int_equal(stage_count(s, COUNT_commit_overtaken_first), 1);
	uint64_t third = stage_ask(s, 2, update_to("third", "first"));
	stage_wait(s, 250 * SPAN_MS);
	assert_non_null(stage_answer(s, third));
	assert_int_not_equal(stage_answer(s, third)->r.error, PAWL_OK);
}

/* A request that a lock is handed to takes the ballot of its turn from this answer, and another
 * attempt for the same lock_id may bring another value. */
static void a_promise_is_answered_with_the_ballot_of_its_own_attempt(void **state) {
	struct stage *s = *state;
	const struct ballot other = { 9, 77, 1 | BALLOT_FIRST }, own = { 5, 78, 1 | BALLOT_FIRST };
	struct promise p = { .lock_id = stage_lock(1), .first = other };
	struct message answer = { .kind = MESSAGE_PROMISE_ANSWER };
	first_promised(s->nodes[0].core, &p,
		&(struct message){ .kind = MESSAGE_PROMISE, .ballot = own }, &answer);
	assert_int_equal(ballot_compare(p.first, other), 0);
	assert_int_equal(ballot_compare(answer.ballot, own), 0);
}

static void bring(struct stage *s, enum message_kind kind, uint64_t token, uint64_t ballot) {
	stage_inject(s, 2, 0, &(struct message){ .kind = kind, .round = 1 << 16, .attempt = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = token,
		.lease_us = 1000000, .value = slice_str("first"),
		.ballot = { ballot, 1, 1 | BALLOT_FIRST } });
}

static void what_a_promise_has_noted_is_remembered_when_it_has_run_out(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 0).clock;
	bring(s, MESSAGE_PROMISE, 0, clock + 50);
	stage_wait(s, SPAN_S);
	bring(s, MESSAGE_COMMIT, clock + 200, clock + 40);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken_first), 1);
	bring(s, MESSAGE_COMMIT, clock + 200, clock + 50);
	assert_int_equal(stage_count(s, COUNT_commit_ok), 1);
}

static void a_record_has_noted_what_the_promise_had_whose_place_it_takes(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 0).clock;
	bring(s, MESSAGE_PROMISE, 0, clock + 50);
	bring(s, MESSAGE_LEARN, clock + 100, clock + 30);
	bring(s, MESSAGE_COMMIT, clock + 200, clock + 40);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken_first), 1);
}

/* Wherever the home is, the turn that the request has got is not above the ballot that it goes on
 * with. */
static void a_request_that_goes_on_with_its_turn_is_not_refused_for_its_ballot(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(10));
	for (uint32_t i = 0; i < 3; i++) {
		const struct id128 holder = stage_lock((uint8_t)(10 + i)),
			lock = stage_lock((uint8_t)(11 + i));
		uint64_t waits = wait_for(s, i, "k", lock);
		for (uint32_t j = 0; j < 3; j++) {
			stage_stop(s, i, j, MESSAGE_COMMIT, true);
		}
		release(s, 0, "k", holder);
		for (uint32_t j = 0; j < 3; j++) {
			if (j != i) {
				stage_inject(s, i, j, &(struct message){ .kind = MESSAGE_PROMISE,
					.round = 1 << 16, .attempt = 1 << 16, .key = slice_str("k"),
					.lock_id = lock, .ballot = { stage_status(s, j).clock + 50,
					1, 1 | BALLOT_FIRST } });
			}
		}
		for (uint32_t j = 0; j < 3; j++) {
			stage_stop(s, i, j, MESSAGE_COMMIT, false);
		}
		stage_wait(s, SPAN_S);
		token_of(s, waits);
		/* Each of the two masters has refused the commit because of the ballot that was
		 * named there. */
		assert_int_equal(stage_count(s, COUNT_commit_overtaken_first), 2 * (i + 1));
	}
}

/* Two attempts for one lock_id may have different values. */
static void no_ballot_is_drawn_twice(void **state) {
	struct stage *s = *state;
	const struct ballot one = first_draw(s->nodes[0].core),
		other = first_draw(s->nodes[0].core);
	assert_int_not_equal(ballot_compare(one, other), 0);
}

UNIT(cluster_first) {
	const struct CMUnitTest tests[] = {
		NAMED(of_two_holdings_that_are_merged_the_later_ones_first_value_stays),
		NAMED(releases_do_not_make_a_late_first_value_count),
		NAMED(masters_that_lack_the_lock_one_after_the_other_are_asked_again),
		NAMED(the_first_value_of_an_attempt_that_was_overtaken_is_not_read),
		NAMED(a_master_that_votes_by_waiting_does_not_count_for_an_earlier_first_value),
		NAMED(a_promise_is_answered_with_the_ballot_of_its_own_attempt),
		NAMED(what_a_promise_has_noted_is_remembered_when_it_has_run_out),
		NAMED(a_record_has_noted_what_the_promise_had_whose_place_it_takes),
		NAMED(a_request_that_goes_on_with_its_turn_is_not_refused_for_its_ballot),
		NAMED(no_ballot_is_drawn_twice),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
