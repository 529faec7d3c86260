/* These tests are about the value of a held lock, next to repeats of its acquire and other updates
 * (docs/protocol.md, section 2, Acquire and Update). */
#include <stdio.h>

#include "prng.h"
#include "values.h"

/* ---- repeats ---- */

/* n1 hangs with its first messages unsent, and the client asks n2. When n1 goes on, only n3 has the
 * record and what its holder wrote. */
static void a_repeat_that_another_node_worked_on_leaves_the_update_alone(void **state) {
	struct stage *s = *state;
	s->held[0][1] = s->held[0][2] = true;
	uint64_t first = stage_ask(s, 0, acquire_with("first"));
	stage_settle(s);
	stage_lose(s, 1, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	assert_int_equal(stage_do(s, 1, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	assert_false(answered(s, first));
	s->held[0][2] = false;
	stage_settle(s);
	s->held[0][1] = false;
	stage_settle(s);
	(void)token_of(s, first);
	assert_true(value_is(s, 2, "second"));
	assert_int_equal(stage_do(s, 0, update_to("third", "second")), PAWL_OK);
}

/* The repeat's commit was on its way. Where the record is and has been updated, the commit is
 * refused; the repeat asks anew, and is told the value. */
static void a_commit_that_was_on_its_way_leaves_the_update_alone(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, 0, i, MESSAGE_COMMIT, true);
	}
	stage_lose(s, 1, 0, MESSAGE_PROMISE, true);
	stage_lose(s, 1, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	uint64_t first = stage_ask(s, 0, acquire_with("first"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, 0, i, MESSAGE_COMMIT, false);
	}
	stage_settle(s);
	(void)token_of(s, first);
	assert_true(stage_count(s, COUNT_commit_met_itself) > 0);
	assert_true(value_is(s, 0, "second"));
}

/* n3 has promised n1's attempt. Then n2 is granted the lock_id, and updates it. n1 hears of the
 * promise afterwards, so that its token is above the update's ballot. n3 refuses its commit, and n2
 * is slow. Meanwhile nobody is to read the first value that the commit has left at n1. */
static void a_commit_that_met_an_update_is_rolled_back_before_all_have_answered(void **state) {
	static const enum message_kind of_n2[] = { MESSAGE_PROMISE, MESSAGE_COMMIT, MESSAGE_LEARN,
		MESSAGE_PREPARE, MESSAGE_WRITE };
	struct stage *s = *state;
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	stage_stop(s, 2, 0, MESSAGE_PROMISE_ANSWER, true);
	for (size_t i = 0; i < sizeof of_n2 / sizeof of_n2[0]; i++) {
		stage_lose(s, 1, 0, of_n2[i], true);
	}
	uint64_t first = stage_ask(s, 0, acquire_with("first"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_lose(s, 1, 0, MESSAGE_PROMISE, false);
	/* n1 hears n2's clock. */
	take(s, 1, "x", stage_lock(2));
	stage_stop(s, 2, 0, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	/* The attempt has begun again, and does not wait for n2. */
	(void)token_of(s, first);
	assert_int_not_equal(stage_do(s, 0, update_to("third", "first")), PAWL_OK);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
}

/* n3 is asked for something after the update, when n1 lacks only n3's promise. So n3's question is
 * at n1 after the commit, which has left the first value there with a token above the update's
 * ballot, and before its refusal. n2 is slow to answer n3. */
static const struct stage_reply *asked_while_the_first_value_is_left(struct stage *s,
	struct core_request r) {
	static const enum message_kind of_n2[] = { MESSAGE_PROMISE, MESSAGE_COMMIT, MESSAGE_LEARN,
		MESSAGE_PREPARE, MESSAGE_WRITE };
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	stage_stop(s, 2, 0, MESSAGE_PROMISE_ANSWER, true);
	for (size_t i = 0; i < sizeof of_n2 / sizeof of_n2[0]; i++) {
		stage_lose(s, 1, 0, of_n2[i], true);
	}
	(void)stage_ask(s, 0, acquire_with("first"));
	stage_settle(s);
	assert_int_equal(stage_do(s, 1, acquire_with("first")), PAWL_OK);
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	stage_lose(s, 1, 0, MESSAGE_PROMISE, false);
	/* n1 and n3 hear n2's clock. */
	take(s, 1, "x", stage_lock(2));
	for (uint32_t i = 0; i < 4; i++) {
		/* n1 does not hear n3's clock. */
		take(s, 2, "y", stage_lock(3));
	}
	stage_stop(s, 1, 2, MESSAGE_PREPARE_ANSWER, true);
	stage_stop(s, 1, 2, MESSAGE_READ_ANSWER, true);
	uint64_t id = stage_ask(s, 2, r);
	stage_stop(s, 2, 0, MESSAGE_PROMISE_ANSWER, false);
	stage_settle(s);
	return stage_answer(s, id);
}

static void a_first_value_that_a_commit_has_left_is_not_read_after_an_update(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_GET, "k", (struct id128){ { 0 } });
	r.quorum = r.admin = true;
	const struct stage_reply *reply = asked_while_the_first_value_is_left(s, r);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	assert_true(slice_equal(slice_of(reply->value.bytes, reply->value.size),
		slice_str("second")));
}

static void a_first_value_that_a_commit_has_left_meets_no_expectation_after_an_update(
	void **state) {
	struct stage *s = *state;
	const struct stage_reply *reply = asked_while_the_first_value_is_left(s,
		update_to("third", "first"));
	stage_settle(s);
	assert_true(reply == NULL || reply->r.error != PAWL_OK);
	stage_stop(s, 1, 2, MESSAGE_PREPARE_ANSWER, false);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
}

/* What proves an expectation wrong is written. */
static void a_first_value_that_a_commit_has_left_is_not_written_over_an_update(void **state) {
	struct stage *s = *state;
	(void)asked_while_the_first_value_is_left(s, update_to("third", "other"));
	stage_stop(s, 1, 2, MESSAGE_PREPARE_ANSWER, false);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(value_is(s, 1, "second"));
}

static void inject_commit(struct stage *s, uint32_t to, const char *value) {
	uint64_t clock = stage_status(s, to).clock + 50;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .name = 7, .token = clock, .lease_us = 1000000,
		.value = slice_str(value), .ballot = { clock, 7, 7 } };
	stage_inject(s, 0, to, &m);
	stage_settle(s);
}

/* The first value does not count there, however high its token, and whatever it is. */
static void a_first_value_is_for_masters_that_lack_the_record(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	inject_commit(s, 1, "first");
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
	inject_commit(s, 1, "first");
	inject_commit(s, 2, "other");
	assert_true(value_is(s, 1, "second"));
	assert_int_equal(stage_do(s, 2, update_to("third", "second")), PAWL_OK);
}

/* The first attempt has reached n3 alone. The masters that get the record from the repeat have the
 * value that is there, and count. */
static void masters_that_a_repeat_brings_the_record_to_count(void **state) {
	struct stage *s = *state;
	stage_lose(s, 2, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	(void)stage_ask(s, 2, acquire_with("first"));
	stage_settle(s);
	/* n3 is the other one that n1 hears. */
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	assert_int_equal(stage_do(s, 0, acquire_with("other")), PAWL_OK);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_settle(s);
	stage_kill(s, 2);
	assert_true(value_is(s, 1, "first"));
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
	assert_true(value_is(s, 0, "second"));
}

/* They count even when one of them has started anew since. */
static void masters_that_merged_what_counted_count(void **state) {
	struct stage *s = *state;
	stage_lose(s, 2, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	(void)stage_ask(s, 2, acquire_with("first"));
	stage_settle(s);
	stage_lose(s, 2, 0, MESSAGE_COMMIT, false);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, false);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_settle(s);
	for (uint32_t i = 0; i < 2; i++) {
		stage_kill(s, i);
		assert_true(stage_start(s, i));
		assert_true(stage_until_voting(s, i, SPAN_S));
	}
	stage_kill(s, 2);
	assert_true(value_is(s, 1, "first"));
	assert_int_equal(stage_do(s, 1, update_to("second", "first")), PAWL_OK);
}

/* The update reaches n1 and n2, the next extension n2 and n3, and the earlier lease ends at n1. The
 * repeat asks n3 and n1. */
static void a_repeat_at_masters_of_which_one_has_lost_the_update_leaves_it_alone(void **state) {
	struct stage *s = *state;
	struct core_request r = acquire_with("first");
	r.lease = 500 * SPAN_MS;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_cut(s, 0, 2, true);
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
	repeat_without_the_last(s, "third", "first");
	assert_true(value_is(s, 2, "second"));
	assert_int_equal(stage_do(s, 0, update_to("third", "second")), PAWL_OK);
}

/* n2 alone has an extension. When the lock_id is acquired anew, the lease still lasts there, with
 * the value of that time, and n2's promise is late. */
static void a_lock_id_that_is_acquired_anew_has_its_first_value_again(void **state) {
	struct stage *s = *state;
	n2_keeps_an_earlier_holding(s);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, true);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	stage_stop(s, 0, 1, MESSAGE_PROMISE, false);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_repair_accepted), 1);
	for (uint32_t i = 0; i < 3; i++) {
		/* The other two are asked. */
		stage_isolate(s, (i + 1) % 3, true);
		assert_true(value_is(s, i, "first"));
		stage_isolate(s, (i + 1) % 3, false);
		stage_wait(s, 10 * SPAN_MS);
	}
	assert_int_equal(stage_do(s, 1, update_to("third", "first")), PAWL_OK);
	assert_true(value_is(s, 0, "third"));
}

/* ---- updates at once ---- */

/* Three nodes write at once, and their messages cross in many ways. In the end all is calm, and
 * everybody is told the outcome. */
static void updates_that_come_at_once_are_not_unsure(void **state) {
	struct stage *s = *state;
	struct prng order;
	unsigned done = 0;
	prng_init(&order, 20);
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	for (int round = 0; round < 60; round++) {
		char values[3][8];
		uint64_t ids[3];
		assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
		for (uint32_t n = 0; n < 3; n++) {
			(void)snprintf(values[n], sizeof values[n], "%d.%u", round, (unsigned)n);
			ids[n] = stage_ask(s, (n + (uint32_t)round) % 3,
				update_to(values[n], NULL));
			for (uint64_t frames = prng_below(&order, 8); frames > 0; frames--) {
				stage_deliver(s, (uint32_t)prng_below(&order, 3),
					(uint32_t)prng_below(&order, 3));
			}
		}
		for (int frames = 0; frames < 40; frames++) {
			stage_deliver(s, (uint32_t)prng_below(&order, 3),
				(uint32_t)prng_below(&order, 3));
		}
		stage_wait(s, 450 * SPAN_MS);
		for (uint32_t n = 0; n < 3; n++) {
			(void)token_of(s, ids[n]);
			done++;
		}
	}
	assert_int_equal(done, 180);
	assert_int_equal(stage_count(s, COUNT_update_unsure), 0);
}

/* `a` has written at itself alone when `b`, which prepared at itself before that, prepares at `a`
 * as well. n1 awaits a's write. */
static void overtaken(struct stage *s, uint32_t a, uint32_t b) {
	stage_stop(s, b, 0, MESSAGE_PREPARE, true);
	stage_stop(s, b, a, MESSAGE_PREPARE, true);
	uint64_t late = stage_ask(s, b, update_to("late", NULL));
	stage_stop(s, a, 0, MESSAGE_WRITE, true);
	uint64_t early = stage_ask(s, a, update_to("early", NULL));
	stage_settle(s);
	stage_stop(s, b, a, MESSAGE_PREPARE, false);
	stage_stop(s, b, 0, MESSAGE_PREPARE, false);
	stage_settle(s);
	stage_stop(s, a, 0, MESSAGE_WRITE, false);
	stage_wait(s, 250 * SPAN_MS);
	(void)token_of(s, early);
	(void)token_of(s, late);
	assert_true(value_is(s, 0, "late"));
}

static void a_write_that_a_master_awaits_is_not_overtaken_by_another(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	stage_settle(s);
	/* Between ballots with the same clock the nodes decide: in one of the two cases the late
	 * one is above. */
	overtaken(s, 1, 2);
	take(s, 0, "x", stage_lock(2));
	/* Every clock is the same again after that. */
	stage_settle(s);
	overtaken(s, 2, 1);
	assert_int_equal(stage_count(s, COUNT_update_unsure), 0);
}

/* A coordinator that dies between its two phases is waited for only a moment. */
static void an_update_whose_coordinator_dies_holds_up_nobody_for_long(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, acquire_with("first")), PAWL_OK);
	for (uint32_t i = 0; i < 2; i++) {
		stage_stop(s, i, 2, MESSAGE_PREPARE_ANSWER, true);
	}
	(void)stage_ask(s, 2, update_to("second", "first"));
	stage_settle(s);
	stage_kill(s, 2);
	uint64_t id = stage_ask(s, 0, update_to("third", "first"));
	stage_settle(s);
	assert_false(answered(s, id));
	stage_wait(s, 100 * SPAN_MS);
	(void)token_of(s, id);
}

UNIT(cluster_values) {
	const struct CMUnitTest tests[] = {
		NAMED(a_repeat_that_another_node_worked_on_leaves_the_update_alone),
		NAMED(a_commit_that_was_on_its_way_leaves_the_update_alone),
		NAMED(a_commit_that_met_an_update_is_rolled_back_before_all_have_answered),
		NAMED(a_first_value_that_a_commit_has_left_is_not_read_after_an_update),
		NAMED(a_first_value_that_a_commit_has_left_meets_no_expectation_after_an_update),
		NAMED(a_first_value_that_a_commit_has_left_is_not_written_over_an_update),
		NAMED(a_first_value_is_for_masters_that_lack_the_record),
		NAMED(masters_that_a_repeat_brings_the_record_to_count),
		NAMED(masters_that_merged_what_counted_count),
		NAMED(a_repeat_at_masters_of_which_one_has_lost_the_update_leaves_it_alone),
		NAMED(a_lock_id_that_is_acquired_anew_has_its_first_value_again),
		NAMED(updates_that_come_at_once_are_not_unsure),
		NAMED(a_write_that_a_master_awaits_is_not_overtaken_by_another),
		NAMED(an_update_whose_coordinator_dies_holds_up_nobody_for_long),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
