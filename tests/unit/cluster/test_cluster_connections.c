/* These tests are about locks that end with a connection of their holder (docs/protocol.md, section
 * 2, Release on disconnect). */
#include <stdio.h>

#include "named.h"

static void take_bound(struct stage *s, uint32_t node, uint8_t lock, uint32_t binding,
	span_ns delay) {
	struct core_request r = stage_acquire("k", stage_lock(lock), LEASE, 0);
	r.terms.binding = binding;
	r.terms.delay = delay;
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
}

/* Does what a node does when the other side has closed the connection. */
static int closed(struct stage *s, uint32_t node, uint8_t lock, uint32_t binding) {
	struct core_request r = stage_request(CORE_RELEASE, "k", stage_lock(lock));
	r.binding = binding;
	return stage_do(s, node, r);
}

/* The holder goes on through another node, as a holder that does not keep the deadline. */
static int rebind(struct stage *s, uint32_t node, uint8_t lock, uint32_t binding) {
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(lock));
	r.lease = LEASE;
	r.binding = binding;
	return stage_do(s, node, r);
}

static bool has(const struct stage *s, uint32_t node) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str("k"), stage_lock(1), &token, &noted);
}

static void a_closed_connection_frees_the_key_at_once(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	uint64_t next = wait_for(s, 1, "k", stage_lock(2));
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	stage_wait(s, 10 * SPAN_MS);
	token_of(s, next);
}

static void a_holder_that_has_named_a_later_connection_keeps_the_lock(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	assert_int_equal(rebind(s, 1, 1, 2), PAWL_OK);
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	assert_true(holds(s, 2, "k", stage_lock(1)));
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(has(s, i));
	}
	assert_int_equal(closed(s, 1, 1, 2), PAWL_OK);
	assert_false(holds(s, 2, "k", stage_lock(1)));
}

/* One master hears of the closed connection before it hears of the next one. It takes the lock
 * again from the others. */
static void a_closed_connection_is_no_release_that_is_remembered(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	stage_stop(s, 0, 1, MESSAGE_RELEASE, true);
	stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
	struct core_request r = stage_request(CORE_RELEASE, "k", stage_lock(1));
	r.binding = 1;
	/* n1 has dropped the lock by now. */
	(void)stage_ask(s, 0, r);
	stage_settle(s);
	assert_int_equal(rebind(s, 2, 1, 2), PAWL_OK);
	stage_stop(s, 0, 1, MESSAGE_RELEASE, false);
	stage_settle(s);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(has(s, i));
	}
}

/* What ended with its connection at one master is not learned again from masters that have not
 * heard of that yet; nor do those send it to each other as a repair. */
static void a_lock_that_ended_with_its_connection_is_not_learned_again(void **state) {
	struct stage *s = *state;
	const struct message release = { .kind = MESSAGE_RELEASE, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1), .number = 1 };
	take_bound(s, 0, 1, 1, 0);
	stage_wait(s, SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		stage_inject(s, (i + 1) % 3, i, &release);
		stage_wait(s, 500 * SPAN_MS);
		for (uint32_t j = 0; j <= i; j++) {
			assert_false(has(s, j));
		}
	}
}

/* A late copy of what has ended is refused as well, but one with a later connection is not. */
static void what_ended_with_its_connection_comes_back_with_a_later_one_alone(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 2, 0);
	assert_int_equal(closed(s, 0, 1, 2), PAWL_OK);
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .token = 1, .lease_us = 1000000, .ballot = { 1, 1, 1 },
		.terms = { .binding = 1 } };
	struct message commit = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .token = 100, .lease_us = 1000000,
		.ballot = { 100, 1, 1 }, .terms = { .binding = 2 } };
	stage_inject(s, 0, 1, &m);
	stage_inject(s, 0, 1, &commit);
	m.terms.binding = 2;
	stage_inject(s, 0, 1, &m);
	assert_false(has(s, 1));
	m.terms.binding = 3;
	stage_inject(s, 0, 1, &m);
	assert_true(has(s, 1));
	/* This commit is one of the attempts for the lock that is here, which has a later session
	 * binding. */
	stage_inject(s, 0, 1, &commit);
	assert_true(has(s, 1));
}

/* The coordinator dies before all masters have heard; the others tell each other. */
static void the_end_with_a_connection_is_learned_from_those_who_have_heard(void **state) {
	struct stage *s = *state;
	const struct message release = { .kind = MESSAGE_RELEASE, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1), .number = 1 };
	take_bound(s, 0, 1, 1, 0);
	stage_wait(s, SPAN_MS);
	/* The other two are a quorum that has the lock. */
	stage_inject(s, 1, 0, &release);
	stage_wait(s, 800 * SPAN_MS);
	assert_false(has(s, 0) || has(s, 1) || has(s, 2));
}

/* n1 starts anew: n2 has heard of the closed connection, n3 has not. */
static void what_ended_with_its_connection_is_not_merged(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, 1, 2, MESSAGE_RELEASE, true);
	stage_lose(s, 1, 0, MESSAGE_RELEASE, true);
	stage_kill(s, 0);
	(void)closed(s, 1, 1, 1);
	assert_true(has(s, 2));
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_false(has(s, 0));
}

/* What ended is merged where it goes on under a later session binding: n2 has that one, and n3,
 * which has missed it, has heard of the end of the earlier one. */
static void what_goes_on_with_a_later_connection_is_merged(void **state) {
	struct stage *s = *state;
	const struct message release = { .kind = MESSAGE_RELEASE, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1), .number = 1 };
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	assert_int_equal(rebind(s, 1, 1, 2), PAWL_OK);
	stage_kill(s, 0);
	stage_inject(s, 1, 2, &release);
	assert_false(has(s, 2));
	assert_true(stage_start(s, 0));
	/* What n3 remembers comes first. */
	stage_stop(s, 1, 0, MESSAGE_SNAPSHOT_RECORD, true);
	stage_wait(s, 150 * SPAN_MS);
	stage_stop(s, 1, 0, MESSAGE_SNAPSHOT_RECORD, false);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_true(has(s, 0));
}

static int setup_whole_ring(void **state) {
	struct stage_options o = named_options();
	/* There are as many tombstones as without a configuration. */
	o.limits.released = 0;
	*state = stage_born(&o);
	return 0;
}

static void hundreds_of_locks_of_a_closed_connection_are_remembered(void **state) {
	struct stage *s = *state;
	char key[16];
	for (uint32_t i = 1; i <= 200; i++) {
		snprintf(key, sizeof key, "k%u", i);
		struct core_request r = stage_acquire(key, stage_lock((uint8_t)i), LEASE, 0);
		r.terms.binding = 1;
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	/* n1 alone hears of these ends. */
	for (uint32_t i = 1; i <= 200; i++) {
		snprintf(key, sizeof key, "k%u", i);
		const struct message release = { .kind = MESSAGE_RELEASE, .round = 1 << 16,
			.key = slice_str(key), .lock_id = stage_lock((uint8_t)i), .number = 1 };
		stage_inject(s, 1, 0, &release);
	}
	stage_wait(s, 1200 * SPAN_MS);
	assert_int_equal(stage_status(s, 0).held, 0);
}

static void where_too_few_had_the_lock_the_next_connection_learns_that_it_is_lost(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
	struct core_request r = stage_request(CORE_RELEASE, "k", stage_lock(1));
	r.binding = 1;
	/* n1 and n2 have dropped the lock by now. */
	(void)stage_ask(s, 0, r);
	stage_settle(s);
	assert_int_not_equal(rebind(s, 1, 1, 2), PAWL_OK);
}

static void a_lock_without_a_connection_is_not_ended_by_one(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	assert_true(holds(s, 1, "k", stage_lock(1)));
}

/* A master that lacks the record learns it with the connection that was named last. */
static void the_later_connection_goes_with_a_record_that_is_learned(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	take_bound(s, 0, 1, 1, 0);
	assert_int_equal(rebind(s, 1, 1, 2), PAWL_OK);
	stage_wait(s, SPAN_MS);
	assert_true(has(s, 2));
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	assert_true(has(s, 2));
}

/* n1 starts anew and merges. Of the other two, `missed` knows the first connection alone. */
static void merge_connections(struct stage *s, uint32_t other, uint32_t missed) {
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, other, missed, MESSAGE_EXTEND, true);
	assert_int_equal(rebind(s, other, 1, 2), PAWL_OK);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_true(has(s, 0));
	assert_int_equal(closed(s, missed, 1, 1), PAWL_OK);
	assert_false(has(s, missed));
	assert_true(has(s, 0));
}

static void of_two_copies_that_are_merged_the_later_connection_counts(void **state) {
	merge_connections(*state, 1, 2);
}

static void of_two_copies_that_are_merged_the_later_connection_counts_in_whatever_order(
	void **state) {
	merge_connections(*state, 2, 1);
}

static void a_copy_that_is_learned_brings_a_later_connection(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .token = 1, .lease_us = 1000, .ballot = { 1, 1, 1 },
		.terms = { .binding = 2 } };
	stage_inject(s, 0, 1, &m);
	stage_settle(s);
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	assert_true(has(s, 1));
	assert_false(has(s, 2));
}

static void a_downgraded_lock_still_ends_with_its_connection(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	assert_int_equal(stage_do(s, 1, stage_request(CORE_DOWNGRADE, "k", stage_lock(1))),
		PAWL_OK);
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	assert_false(holds(s, 1, "k", stage_lock(1)));
}

static void a_lock_delay_keeps_the_key_closed_after_a_closed_connection(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 100 * SPAN_MS);
	uint64_t next = wait_for(s, 1, "k", stage_lock(2));
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	stage_wait(s, 90 * SPAN_MS);
	assert_false(answered(s, next));
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, next);
}

/* The key's timer was set to the end of the lease. */
static void a_lock_delay_ends_in_time_though_nobody_asks_for_the_key(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 100 * SPAN_MS);
	stage_wait(s, 400 * SPAN_MS);
	assert_int_equal(closed(s, 0, 1, 1), PAWL_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 1);
	}
	stage_wait(s, 110 * SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 0);
	}
}

/* The holder's process has been started anew, with nothing but the key and the lock_id, and
 * extends. */
static int extend_anew(struct stage *s, uint32_t node, uint8_t lock, uint32_t binding) {
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(lock));
	r.lease = LEASE;
	r.client = 99;
	r.binding = binding;
	return stage_do(s, node, r);
}

/* An extension that names no connection, over whatever connection it comes. */
static int extend_plainly(struct stage *s, uint32_t node) {
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.deadline_kept = true;
	return stage_do(s, node, r);
}

/* X moves from n1's connection to one of n2's, which n1 does not hear of. It goes on by n1 and n2.
 * Then it is told at n1 that the first connection is closed. */
static void an_extension_brings_the_later_connection_to_the_masters_that_it_rests_on(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, 1, 0, MESSAGE_EXTEND, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	assert_int_equal(rebind(s, 1, 1, 2), PAWL_OK);
	stage_lose(s, 1, 0, MESSAGE_EXTEND, false);
	stage_lose(s, 1, 0, MESSAGE_LEARN, false);
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	stage_lose(s, 1, 2, MESSAGE_LEARN, true);
	assert_int_equal(extend_plainly(s, 1), PAWL_OK);
	(void)closed(s, 0, 1, 1);
	assert_true(has(s, 0));
}

/* The same where the coordinator has no record to send: it asks the master that has the later
 * connection for it. */
static void nor_where_the_coordinator_does_not_know_of_it(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, 1, 0, MESSAGE_EXTEND, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	stage_lose(s, 1, 2, MESSAGE_RELEASE, true);
	assert_int_equal(rebind(s, 1, 1, 2), PAWL_OK);
	stage_lose(s, 0, 1, MESSAGE_EXTEND, true);
	assert_int_equal(extend_plainly(s, 0), PAWL_OK);
	(void)closed(s, 0, 1, 1);
	assert_true(has(s, 0));
}

/* No record has to be sent where the extension itself names the connection. */
static void an_extension_that_names_its_connection_is_enough(void **state) {
	struct stage *s = *state;
	take_bound(s, 0, 1, 1, 0);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	stage_lose(s, 1, 2, MESSAGE_LEARN, true);
	assert_int_equal(rebind(s, 1, 1, 2), PAWL_OK);
}

/* X moves from n1 to n2, which n1 does not hear of any more; X's process dies, and Y comes and
 * goes. */
static void move_and_die(struct stage *s, uint32_t binding) {
	take_bound(s, 0, 1, binding, 0);
	assert_int_equal(rebind(s, 1, 1, binding + 1), PAWL_OK);
	stage_cut(s, 0, 1, true);
	stage_lose(s, 2, 0, MESSAGE_SYNC_ROOT, true);
	assert_int_equal(closed(s, 1, 1, binding + 1), PAWL_OK);
	take(s, 2, "k", stage_lock(2));
	assert_int_equal(release(s, 2, "k", stage_lock(2)), PAWL_OK);
	assert_true(has(s, 0));
	assert_false(has(s, 1) || has(s, 2));
}

static void a_node_that_the_holder_has_left_does_not_vouch_for_its_lock(void **state) {
	struct stage *s = *state;
	move_and_die(s, 1);
	assert_int_equal(extend_anew(s, 0, 1, 0), PAWL_EUNSURE);
}

static void nor_when_it_is_bound_there_again(void **state) {
	struct stage *s = *state;
	move_and_die(s, 1);
	assert_int_equal(extend_anew(s, 0, 1, 3), PAWL_EUNSURE);
}

/* n1 did not know of any connection, either. */
static void nor_for_a_lock_that_was_bound_later(void **state) {
	struct stage *s = *state;
	move_and_die(s, 0);
	assert_int_equal(extend_anew(s, 0, 1, 0), PAWL_EUNSURE);
}

UNIT(cluster_connections) {
	const struct CMUnitTest tests[] = {
		NAMED(a_closed_connection_frees_the_key_at_once),
		NAMED(a_holder_that_has_named_a_later_connection_keeps_the_lock),
		NAMED(a_closed_connection_is_no_release_that_is_remembered),
		NAMED(a_lock_that_ended_with_its_connection_is_not_learned_again),
		NAMED(what_ended_with_its_connection_comes_back_with_a_later_one_alone),
		NAMED(the_end_with_a_connection_is_learned_from_those_who_have_heard),
		NAMED(what_ended_with_its_connection_is_not_merged),
		NAMED(what_goes_on_with_a_later_connection_is_merged),
		cmocka_unit_test_setup_teardown(
			hundreds_of_locks_of_a_closed_connection_are_remembered, setup_whole_ring,
			named_teardown),
		NAMED(where_too_few_had_the_lock_the_next_connection_learns_that_it_is_lost),
		NAMED(a_lock_without_a_connection_is_not_ended_by_one),
		NAMED(the_later_connection_goes_with_a_record_that_is_learned),
		NAMED(of_two_copies_that_are_merged_the_later_connection_counts),
		NAMED(of_two_copies_that_are_merged_the_later_connection_counts_in_whatever_order),
		NAMED(a_copy_that_is_learned_brings_a_later_connection),
		NAMED(a_downgraded_lock_still_ends_with_its_connection),
		NAMED(an_extension_brings_the_later_connection_to_the_masters_that_it_rests_on),
		NAMED(nor_where_the_coordinator_does_not_know_of_it),
		NAMED(an_extension_that_names_its_connection_is_enough),
		NAMED(a_node_that_the_holder_has_left_does_not_vouch_for_its_lock),
		NAMED(nor_when_it_is_bound_there_again),
		NAMED(nor_for_a_lock_that_was_bound_later),
		NAMED(a_lock_delay_keeps_the_key_closed_after_a_closed_connection),
		NAMED(a_lock_delay_ends_in_time_though_nobody_asks_for_the_key),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
