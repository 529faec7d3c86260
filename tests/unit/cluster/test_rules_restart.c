/* These tests show rule by rule what holds for restarts, snapshots, contested keys and records that
 * were learned anew (docs/protocol.md, sections 2 and 4). */
#include <stdio.h>

#include "named.h"

#define LONG (10 * SPAN_S)

static void restart(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	assert_true(stage_start(s, node));
}

static void rejoin(struct stage *s, uint32_t node) {
	restart(s, node);
	assert_true(stage_until_voting(s, node, SPAN_S));
}

static bool has(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

static void take_long(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	assert_int_equal(stage_do(s, node, stage_acquire(key, lock, LONG, 0)), PAWL_OK);
}

static struct message message_of(enum message_kind kind, const char *key, struct id128 lock,
	uint64_t token) {
	return (struct message){ .kind = kind, .round = 1 << 16, .attempt = 1,
		.key = slice_str(key), .lock_id = lock, .token = token,
		.lease_us = (uint64_t)LONG / 1000, .ballot = { token, 1, 1 } };
}

/* ---- when a master votes again ---- */

static void snapshots_are_asked_for_when_every_earlier_round_is_over(void **state) {
	struct stage *s = *state;
	restart(s, 1);
	stage_wait(s, 95 * SPAN_MS);
	assert_int_equal(stage_sent(s, MESSAGE_SNAPSHOT), 0);
	assert_int_equal(stage_status(s, 1).state, CORE_RECOVERING);
	assert_true(stage_until_voting(s, 1, SPAN_S));
}

static void waiting_ends_when_both_clocks_say_so(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i++) {
		restart(s, i);
	}
	stage_wait(s, 10 * SPAN_MS);
	s->nodes[0].raw_offset += 20 * SPAN_S;
	s->nodes[1].boot_offset += 20 * SPAN_S;
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(stage_status(s, 0).state, CORE_RECOVERING);
	assert_int_equal(stage_status(s, 1).state, CORE_RECOVERING);
}

static void waiting_takes_the_longest_lease_and_twice_the_drift(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i++) {
		restart(s, i);
	}
	stage_wait(s, LONG + LONG / 100 * 19 / 10);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).state, CORE_RECOVERING);
	}
	stage_wait(s, LONG / 100);
	assert_int_equal(stage_status(s, 0).state, CORE_VOTING);
}

/* ---- what a snapshot brings ---- */

static void a_merge_keeps_the_later_end(void **state) {
	struct stage *s = *state;
	take(s, 0, "a", stage_lock(1));
	take(s, 0, "b", stage_lock(2));
	struct message m = message_of(MESSAGE_EXTEND, "a", stage_lock(1), 0);
	/* One lease is longer at the first source, and one at the other. */
	stage_inject(s, 1, 0, &m);
	m = message_of(MESSAGE_EXTEND, "b", stage_lock(2), 0);
	stage_inject(s, 1, 2, &m);
	rejoin(s, 1);
	stage_wait(s, 2 * LEASE);
	assert_true(has(s, 1, "a", stage_lock(1)));
	assert_true(has(s, 1, "b", stage_lock(2)));
}

static void a_snapshot_has_what_was_accepted_while_it_was_sent(void **state) {
	struct stage *s = *state;
	char key[16];
	for (uint32_t i = 0; i < 1500; i++) {
		struct id128 lock = { { 1, (uint8_t)(i >> 8), (uint8_t)i } };
		snprintf(key, sizeof key, "k%u", i);
		take_long(s, 0, key, lock);
	}
	restart(s, 1);
	stage_stop(s, 1, 0, MESSAGE_SNAPSHOT_GO_ON, true);
	stage_stop(s, 1, 2, MESSAGE_SNAPSHOT_GO_ON, true);
	for (int i = 0; i < 300 && !(stage_head_is(s, 1, 0, MESSAGE_SNAPSHOT_GO_ON) &&
		stage_head_is(s, 1, 2, MESSAGE_SNAPSHOT_GO_ON)); i++) {
		stage_wait(s, SPAN_MS);
	}
	for (uint8_t i = 0; i < 32; i++) {
		snprintf(key, sizeof key, "new%u", i);
		take_long(s, 0, key, stage_lock(i));
	}
	assert_true(stage_count(s, COUNT_snapshot_forwarded) >= 32);
	/* Nor is the record sent to it as a repair. */
	stage_stop(s, 0, 1, MESSAGE_LEARN, true);
	stage_stop(s, 1, 0, MESSAGE_SNAPSHOT_GO_ON, false);
	stage_stop(s, 1, 2, MESSAGE_SNAPSHOT_GO_ON, false);
	assert_true(stage_until_voting(s, 1, SPAN_S));
	for (uint8_t i = 0; i < 32; i++) {
		snprintf(key, sizeof key, "new%u", i);
		assert_true(has(s, 1, key, stage_lock(i)));
	}
}

static void promises_stay_out_of_snapshots(void **state) {
	struct stage *s = *state;
	restart(s, 1);
	stage_wait(s, 95 * SPAN_MS);
	struct message m = message_of(MESSAGE_PROMISE, "k", stage_lock(1), 0);
	stage_inject(s, 2, 0, &m);
	stage_inject(s, 0, 2, &m);
	assert_true(stage_until_voting(s, 1, SPAN_S));
	assert_int_equal(stage_status(s, 0).promises, 1);
	assert_int_equal(stage_status(s, 1).promises, 0);
}

static void a_merge_keeps_the_highest_ballot_noted(void **state) {
	struct stage *s = *state;
	take_long(s, 0, "k", stage_lock(1));
	uint64_t clock = stage_status(s, 0).clock;
	struct message m = message_of(MESSAGE_PREPARE, "k", stage_lock(1), clock + 10);
	stage_inject(s, 1, 2, &m);
	rejoin(s, 1);
	uint64_t refused = stage_count(s, COUNT_update_refused_ballot);
	m = message_of(MESSAGE_WRITE, "k", stage_lock(1), clock + 5);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_update_refused_ballot), refused + 1);
}

/* ---- learned anew: two masters hold L1; one restarts and merges it, and the third lacks it. So
 * only one is left that had it ---- */

static void hold_at_one_alone(struct stage *s) {
	stage_isolate(s, 2, true);
	take_long(s, 0, "k", stage_lock(1));
	stage_kill(s, 0);
	stage_isolate(s, 2, false);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_true(has(s, 0, "k", stage_lock(1)) && has(s, 1, "k", stage_lock(1)) &&
		!has(s, 2, "k", stage_lock(1)));
}

static void masters_that_learned_a_lock_did_not_have_it(void **state) {
	struct stage *s = *state;
	hold_at_one_alone(s);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, false), PAWL_EUNSURE);
	/* What the extension has brought to n3 is taken back. */
	assert_false(has(s, 2, "k", stage_lock(1)));
	/* A holder that keeps the deadline itself knows. */
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
}

/* The lock is extended, which sends n3 the record. The update expects that there is no value. */
static struct core_request extend_and_expect_no_value(struct stage *s) {
	extend(s, 1, "k", stage_lock(1), LEASE, true);
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str("new");
	r.expect_value = true;
	return r;
}

static void a_master_that_never_had_a_lock_vouches_for_the_value_that_it_is_sent(void **state) {
	struct stage *s = *state;
	hold_at_one_alone(s);
	assert_int_equal(stage_do(s, 1, extend_and_expect_no_value(s)), PAWL_OK);
}

/* n3 has had L1 with a value of a higher ballot, and has lost it. */
static void masters_that_learned_a_lock_do_not_vouch_for_its_value(void **state) {
	struct stage *s = *state;
	struct message m = message_of(MESSAGE_COMMIT, "k", stage_lock(1),
		stage_status(s, 2).clock + 100);
	m.lease_us = SPAN_MS / SPAN_US;
	stage_inject(s, 1, 2, &m);
	assert_true(has(s, 2, "k", stage_lock(1)));
	stage_isolate(s, 2, true);
	stage_wait(s, 10 * SPAN_MS);
	hold_at_one_alone(s);
	struct core_request r = extend_and_expect_no_value(s);
	assert_int_equal(stage_do(s, 1, r), PAWL_EUNSURE);
	/* A caller that expects nothing does not ask them for the value. */
	r.expect_value = false;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	r.expect_value = true;
	r.expected = slice_str("new");
	r.value = slice_str("newer");
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
}

static void the_token_of_a_repeat_is_new_where_anothers_may_have_come_between(void **state) {
	struct stage *s = *state;
	hold_at_one_alone(s);
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[1].core, slice_str("k"), stage_lock(1), &token, &noted));
	/* The two masters that have it report the same token. */
	s->held[2][1] = true;
	uint64_t id = stage_ask(s, 1, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_true(token_of(s, id) > token);
}

/* ---- contested: a commit reached n1 alone, with a token higher than that of L2, which n2 and n3
 * hold; then n2 merges both ---- */

static void contest(struct stage *s) {
	struct message m = message_of(MESSAGE_COMMIT, "k", stage_lock(1),
		stage_status(s, 0).clock + 1000);
	stage_inject(s, 2, 0, &m);
	stage_isolate(s, 0, true);
	take_long(s, 1, "k", stage_lock(2));
	stage_isolate(s, 0, false);
	stage_wait(s, 10 * SPAN_MS);
	rejoin(s, 1);
}

static void a_contested_key_is_not_decided_by_the_token(void **state) {
	struct stage *s = *state;
	contest(s);
	assert_true(has(s, 1, "k", stage_lock(1)));
	assert_true(has(s, 1, "k", stage_lock(2)));
	stage_wait(s, 150 * SPAN_MS);
	assert_int_equal(extend(s, 2, "k", stage_lock(2), LONG, true), PAWL_OK);
}

static void a_contested_key_grants_nothing(void **state) {
	struct stage *s = *state;
	contest(s);
	stage_wait(s, 150 * SPAN_MS);
	uint64_t high = stage_status(s, 1).clock + 100;
	for (uint8_t i = 1; i <= 3; i++) {
		struct message m = message_of(MESSAGE_COMMIT, "k", stage_lock(i), high);
		stage_inject(s, 0, 1, &m);
		m = message_of(MESSAGE_PROMISE, "k", stage_lock(i), 0);
		stage_inject(s, 0, 1, &m);
	}
	assert_int_equal(stage_count(s, COUNT_commit_refused_contested), 3);
	assert_int_equal(stage_count(s, COUNT_promise_refused_contested), 3);
}

static void a_contested_key_is_extended_only_when_every_earlier_round_is_over(void **state) {
	struct stage *s = *state;
	contest(s);
	struct message m = message_of(MESSAGE_EXTEND, "k", stage_lock(1), 0);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_extend_contested_ok), 0);
	assert_int_equal(stage_count(s, COUNT_extend_refused_contested), 1);
	stage_wait(s, 120 * SPAN_MS);
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_extend_contested_ok), 1);
}

UNIT(rules_restart) {
	const struct CMUnitTest tests[] = {
		NAMED(snapshots_are_asked_for_when_every_earlier_round_is_over),
		NAMED(waiting_ends_when_both_clocks_say_so),
		NAMED(waiting_takes_the_longest_lease_and_twice_the_drift),
		NAMED(a_merge_keeps_the_later_end),
		NAMED(a_snapshot_has_what_was_accepted_while_it_was_sent),
		NAMED(promises_stay_out_of_snapshots),
		NAMED(a_merge_keeps_the_highest_ballot_noted),
		NAMED(masters_that_learned_a_lock_did_not_have_it),
		NAMED(a_master_that_never_had_a_lock_vouches_for_the_value_that_it_is_sent),
		NAMED(masters_that_learned_a_lock_do_not_vouch_for_its_value),
		NAMED(the_token_of_a_repeat_is_new_where_anothers_may_have_come_between),
		NAMED(a_contested_key_is_not_decided_by_the_token),
		NAMED(a_contested_key_grants_nothing),
		NAMED(a_contested_key_is_extended_only_when_every_earlier_round_is_over),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
