/* A semaphore's record that gains numbers still counts as having had the earlier ones all along
 * (docs/protocol.md, section 10). */
#include "modes.h"

static void send(struct stage *s, uint32_t node, enum message_kind kind, struct id128 lock,
	uint64_t numbers, uint64_t token, uint64_t name) {
	struct message m = { .kind = kind, .round = 1 << 16, .attempt = name, .key = slice_str("k"),
		.lock_id = lock, .token = token, .lease_us = (uint64_t)(LEASE / SPAN_US),
		.ballot = { token, 1, 1 },
		.terms = { .of = 4, .count = 1, .set = { { numbers, 0 } } } };
	stage_inject(s, node == 1 ? 0 : 1, node, &m);
	stage_settle(s);
}

static void clocks_go_on(struct stage *s) {
	for (uint8_t i = 20; i < 25; i++) {
		take(s, 1, "another", stage_lock(i));
		release(s, 1, "another", stage_lock(i));
	}
	stage_wait(s, 20 * SPAN_MS);
}

/* Extends for a caller that keeps no deadline, at a node that has not answered it before. */
static int extend_blindly(struct stage *s, struct id128 lock) {
	struct core_request r = stage_request(CORE_EXTEND, "k", lock);
	r.lease = LEASE;
	return stage_do(s, 1, r);
}

static uint64_t numbers_at(struct stage *s, uint32_t node, struct id128 lock) {
	struct core_request look = stage_request(CORE_GET, "k", lock);
	look.admin = true;
	assert_int_equal(stage_do(s, node, look), PAWL_OK);
	return stage_last(s)->r.entry.terms.set.w[0];
}

/* X holds number 0. Number 1, which a coordinator that died left somewhere, comes to these
 * masters. */
static struct id128 spread(struct stage *s, uint32_t masters) {
	struct id128 x = stage_lock(1);
	assert_int_equal(take_permits(s, 0, "k", x, 1, 4), PAWL_OK);
	const uint64_t token = stage_last(s)->r.token;
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
	clocks_go_on(s);
	for (uint32_t i = 0; i < masters; i++) {
		send(s, i, MESSAGE_LEARN, x, 3, token, 0);
	}
	return x;
}

static void what_a_record_gains_takes_away_nothing_that_it_had(void **state) {
	struct stage *s = *state;
	struct id128 x = spread(s, 3);
	assert_int_equal(stage_count(s, COUNT_permits_widened), 3);
	assert_int_equal(extend_blindly(s, x), PAWL_OK);
	/* Number 1 may have been somebody else's. */
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

static void a_master_that_merges_had_the_numbers_that_all_sources_had(void **state) {
	struct stage *s = *state;
	struct id128 x = spread(s, 1);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_int_equal(numbers_at(s, 2, x), 3);
	assert_true(stage_count(s, COUNT_permits_uneven) > 0);
	stage_isolate(s, 0, true);
	assert_int_equal(extend_blindly(s, x), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

/* What the sources have noted for number 0 comes along, even where all of them have both
 * numbers. */
static void what_was_noted_for_older_numbers_goes_with_a_copy(void **state) {
	struct stage *s = *state;
	struct id128 x = spread(s, 3);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	stage_isolate(s, 0, true);
	assert_int_equal(extend_blindly(s, x), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

/* Number 1 came to n1 with a later token, so that it was had there. n2 lacks it, and both of them
 * are merged. */
static void a_number_that_a_source_lacks_was_not_had(void **state) {
	struct stage *s = *state;
	struct id128 x = stage_lock(1);
	assert_int_equal(take_permits(s, 0, "k", x, 1, 4), PAWL_OK);
	send(s, 0, MESSAGE_COMMIT, x, 2, stage_status(s, 0).clock + 1, 0);
	clocks_go_on(s);
	for (uint32_t node = 2; node > 0; node--) {
		stage_kill(s, node);
		assert_true(stage_start(s, node));
		assert_true(stage_until_voting(s, node, SPAN_S));
		assert_int_equal(numbers_at(s, node, x), 3);
	}
	stage_isolate(s, 0, true);
	assert_int_equal(extend_blindly(s, x), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

/* The source that never had X counts with its clock, for number 0 as well. */
static void older_numbers_were_not_had_where_a_source_lacks_the_record(void **state) {
	struct stage *s = *state;
	struct id128 x = stage_lock(1);
	const uint64_t token = stage_status(s, 0).clock + 1;
	send(s, 0, MESSAGE_COMMIT, x, 1, token, 0);
	clocks_go_on(s);
	send(s, 0, MESSAGE_LEARN, x, 3, token, 0);
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, 1, MESSAGE_SYNC_KEYS, true);
		stage_lose(s, i, 0, MESSAGE_SYNC_KEYS, true);
	}
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_int_equal(numbers_at(s, 2, x), 3);
	assert_int_equal(extend_blindly(s, x), PAWL_EUNSURE);
}

static void numbers_that_were_lost_and_gained_again_are_new(void **state) {
	struct stage *s = *state;
	struct id128 x = stage_lock(1);
	assert_int_equal(take_permits(s, 0, "k", x, 2, 4), PAWL_OK);
	const uint64_t token = stage_last(s)->r.token;
	clocks_go_on(s);
	/* These are numbers 1 and 2. Number 0 is left to run out. */
	for (uint32_t i = 0; i < 3; i++) {
		send(s, i, MESSAGE_LEARN, x, 6, token, 0);
	}
	stage_wait(s, LEASE / 2);
	for (uint32_t i = 0; i < 3; i++) {
		send(s, i, MESSAGE_LEARN, x, 6, token, 0);
	}
	stage_wait(s, LEASE / 2 + SPAN_S / 2);
	assert_int_equal(stage_count(s, COUNT_permits_run_out), 3);
	for (uint32_t i = 0; i < 3; i++) {
		send(s, i, MESSAGE_LEARN, x, 7, token, 0);
	}
	assert_int_equal(numbers_at(s, 1, x), 7);
	struct core_request r = stage_request(CORE_EXTEND, "k", x);
	r.lease = LEASE;
	r.terms.set = (struct permits){ { 2, 0 } };
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	r.terms.set = (struct permits){ { 1, 0 } };
	assert_int_equal(stage_do(s, 2, r), PAWL_EUNSURE);
}

static void numbers_that_rest_on_a_name_are_rolled_back_from_a_record_that_goes_on(void **state) {
	struct stage *s = *state;
	struct id128 x = stage_lock(1);
	const uint64_t clock = stage_status(s, 0).clock;
	struct message back = { .kind = MESSAGE_RELEASE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = x, .name = 77 };
	send(s, 0, MESSAGE_COMMIT, x, 1, clock + 1, 77);
	send(s, 0, MESSAGE_COMMIT, x, 2, clock + 2, 78);
	stage_inject(s, 1, 0, &back);
	stage_settle(s);
	assert_int_equal(numbers_at(s, 0, x), 2);
	/* Attempt 78 had number 1. */
	send(s, 0, MESSAGE_COMMIT, x, 4, clock + 3, 79);
	/* Number 1 is in use by attempt 80 from here on. */
	send(s, 0, MESSAGE_COMMIT, x, 2, clock + 4, 80);
	back.attempt = 78;
	stage_inject(s, 1, 0, &back);
	stage_settle(s);
	assert_int_equal(numbers_at(s, 0, x), 6);
}

UNIT(cluster_older) {
	const struct CMUnitTest tests[] = {
		NAMED(what_a_record_gains_takes_away_nothing_that_it_had),
		NAMED(a_master_that_merges_had_the_numbers_that_all_sources_had),
		NAMED(what_was_noted_for_older_numbers_goes_with_a_copy),
		NAMED(a_number_that_a_source_lacks_was_not_had),
		NAMED(older_numbers_were_not_had_where_a_source_lacks_the_record),
		NAMED(numbers_that_were_lost_and_gained_again_are_new),
		NAMED(numbers_that_rest_on_a_name_are_rolled_back_from_a_record_that_goes_on),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
