/* These tests are about locks that end with the node that coordinates them (docs/protocol.md,
 * section 2, Release on disconnect). There are three masters; the holder is a replica. */
#include <stdio.h>

#include "members.h"

#define P 3
/* A node that is outside. */
#define FRESH 4
#define GRACE (50 * SPAN_MS)

static int setup(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	o.outside = 1;
	*state = stage_born(&o);
	return 0;
}

#define BONDED(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

static bool has(const struct stage *s, uint32_t node) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str("k"), stage_lock(1), &token, &noted);
}

static uint64_t binding(struct stage *s) {
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = GRACE;
	uint64_t id = stage_ask(s, P, r);
	stage_settle(s);
	assert_false(answered(s, id));
	return id;
}

/* The holder has "k", bound to its node, and somebody waits for it at node 0. */
static uint64_t bound_with_waiter(struct stage *s, uint64_t *waiter) {
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	*waiter = wait_for(s, 0, "k", stage_lock(2));
	assert_false(answered(s, *waiter));
	return id;
}

static void a_bound_lock_ends_with_its_node_after_the_grace_time(void **state) {
	struct stage *s = *state;
	uint64_t waiter;
	bound_with_waiter(s, &waiter);
	stage_kill(s, P);
	stage_wait(s, GRACE - SPAN_MS);
	assert_false(answered(s, waiter));
	assert_true(has(s, 0) && has(s, 1) && has(s, 2));
	stage_wait(s, 5 * SPAN_MS);
	token_of(s, waiter);
	assert_int_equal(stage_count(s, COUNT_binding_ended), 3);
}

/* When the node is gone the lock delay begins (section 10), and does not wait for the end of the
 * lease. */
static void a_bound_lock_with_a_delay_stays_closed_for_it_after_its_node(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.delay = SPAN_S;
	assert_int_equal(stage_do(s, P, r), PAWL_OK);
	binding(s);
	uint64_t waiter = wait_for(s, 0, "k", stage_lock(2));
	stage_kill(s, P);
	stage_wait(s, GRACE + 5 * SPAN_MS);
	struct core_inspect look;
	assert_true(core_inspect(s->nodes[0].core, slice_str("k"), stage_clock(s, 0), &look));
	assert_true(look.entry.closing);
	stage_wait(s, SPAN_S - 50 * SPAN_MS);
	assert_false(answered(s, waiter));
	/* This is well before the lease would have ended. */
	stage_wait(s, 100 * SPAN_MS);
	token_of(s, waiter);
}

static void a_lock_that_is_not_bound_lasts_as_long_as_its_lease(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 0, "k", stage_lock(2));
	stage_kill(s, P);
	stage_wait(s, LEASE / 2);
	assert_false(answered(s, waiter));
	stage_wait(s, LEASE);
	token_of(s, waiter);
}

/* The lock is granted at n1 and then bound to another node, which dies while n1 has no link with
 * it. Y comes and goes, and then X's holder asks n1. */
static void a_node_does_not_vouch_for_a_lock_that_was_bound_to_another(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	binding(s);
	stage_isolate(s, 0, true);
	stage_cut(s, 0, 2, false);
	stage_mend(s);
	stage_lose(s, 2, 0, MESSAGE_SYNC_ROOT, true);
	stage_kill(s, P);
	stage_wait(s, GRACE + 5 * SPAN_MS);
	take(s, 2, "k", stage_lock(2));
	assert_int_equal(release(s, 2, "k", stage_lock(2)), PAWL_OK);
	assert_true(has(s, 0));
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.client = 99;
	assert_int_equal(stage_do(s, 0, r), PAWL_EUNSURE);
}

static void a_binding_that_was_given_up_is_as_if_it_had_not_been(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	binding(s);
	stage_client_gone(s, P, P + 1);
	stage_settle(s);
	stage_kill(s, P);
	stage_wait(s, 4 * GRACE);
	assert_true(has(s, 0) && has(s, 1) && has(s, 2));
}

static void a_release_ends_the_binding(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	release(s, P, "k", stage_lock(1));
	token_of(s, id);
	take(s, 0, "k", stage_lock(2));
	stage_kill(s, P);
	stage_wait(s, 4 * GRACE);
	assert_true(holds(s, 0, "k", stage_lock(2)));
}

static void a_node_that_is_back_within_the_grace_time_has_lost_nothing(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	for (uint32_t i = 0; i < 3; i++) {
		stage_close(s, P, i);
	}
	stage_wait(s, GRACE / 2);
	stage_mend(s);
	stage_wait(s, 8 * GRACE);
	assert_false(answered(s, id));
	assert_true(has(s, 0) && has(s, 1) && has(s, 2));
	/* The lock is still bound. */
	stage_kill(s, P);
	stage_wait(s, 2 * GRACE);
	assert_false(has(s, 0) || has(s, 1) || has(s, 2));
}

static void a_node_that_has_started_anew_is_not_the_one_that_held(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	binding(s);
	stage_kill(s, P);
	assert_true(stage_start(s, P));
	stage_mend(s);
	stage_wait(s, 2 * GRACE);
	assert_false(has(s, 0) || has(s, 1) || has(s, 2));
}

static void enough_links_keep_a_bound_lock(void **state) {
	struct stage *s = *state;
	uint64_t waiter, id = bound_with_waiter(s, &waiter);
	stage_close(s, P, 0);
	stage_cut(s, P, 0, true);
	stage_wait(s, 4 * GRACE);
	assert_false(answered(s, id));
	assert_false(answered(s, waiter));
	assert_true(has(s, 1) && has(s, 2));
	stage_cut(s, P, 0, false);
	stage_mend(s);
	stage_wait(s, 4 * GRACE);
	assert_int_equal(extend(s, P, "k", stage_lock(1), LEASE, true), PAWL_OK);
	/* The record is back where it was dropped. */
	assert_true(has(s, 0));
	assert_false(answered(s, id));
}

static void a_node_that_loses_too_many_links_gives_up_before_any_master_does(void **state) {
	struct stage *s = *state;
	uint64_t waiter, id = bound_with_waiter(s, &waiter);
	for (uint32_t i = 0; i < 2; i++) {
		stage_close(s, P, i);
		stage_cut(s, P, i, true);
	}
	struct instant end = core_binding_end(s->nodes[P].core, slice_str("k"), stage_lock(1));
	assert_true(instant_left_short(stage_clock(s, P), end) < GRACE);
	while (!answered(s, id)) {
		assert_true(has(s, 0) && has(s, 1));
		stage_wait(s, SPAN_MS / 10);
	}
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	/* A master that can still be reached need not wait for the lease to end. */
	assert_false(has(s, 2));
	assert_false(answered(s, waiter));
	stage_wait(s, GRACE / 5);
	token_of(s, waiter);
}

/* The other side may well be alive, so that its lease alone counts. */
static void a_link_that_the_master_gave_up_ends_nothing_there(void **state) {
	struct stage *s = *state;
	uint64_t waiter, id = bound_with_waiter(s, &waiter);
	for (uint32_t i = 0; i < 3; i++) {
		stage_close(s, i, P);
		stage_cut(s, P, i, true);
	}
	stage_wait(s, LEASE / 2);
	assert_true(has(s, 0) && has(s, 1) && has(s, 2));
	assert_false(answered(s, waiter));
	/* The node knows who closed the links, so that its lease alone counts. */
	assert_false(answered(s, id));
}

/* Nobody could be granted the key, so there is no reason to give it up before its lease is over. */
static void a_lock_outlives_the_death_of_a_majority_until_its_lease_is_over(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	stage_kill(s, 0);
	stage_kill(s, 1);
	stage_wait(s, LEASE / 2);
	assert_false(answered(s, id));
	assert_true(has(s, 2));
	assert_int_equal(core_binding_end(s->nodes[P].core, slice_str("k"), stage_lock(1)).boot,
		INSTANT_FOREVER.boot);
	/* That master, too, may drop the record. */
	stage_close(s, P, 2);
	stage_cut(s, P, 2, true);
	stage_wait(s, 2 * GRACE);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

static void a_network_that_fails_ends_nothing_at_the_masters(void **state) {
	struct stage *s = *state;
	uint64_t waiter, id = bound_with_waiter(s, &waiter);
	stage_isolate(s, P, true);
	stage_wait(s, LEASE / 2);
	assert_true(has(s, 0) && has(s, 1) && has(s, 2));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

static void a_master_that_starts_anew_is_asked_again(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	stage_drain(s, 0);
	assert_true(stage_start(s, 0));
	stage_mend(s);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	stage_wait(s, 200 * SPAN_MS);
	assert_false(answered(s, id));
	stage_kill(s, P);
	stage_wait(s, 2 * GRACE);
	assert_false(has(s, 0) || has(s, 1) || has(s, 2));
}

static void a_lock_that_is_not_there_is_bound_to_nothing(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(2));
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = GRACE;
	uint64_t id = stage_ask(s, P, r);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	stage_kill(s, P);
	stage_wait(s, 2 * GRACE);
	assert_true(holds(s, 0, "k", stage_lock(2)));
	assert_int_equal(stage_count(s, COUNT_binding_made), 0);
	assert_int_equal(stage_count(s, COUNT_binding_ended), 0);
}

static bool trusts(const struct stage *s) {
	return !instant_distrusted(stage_clock(s, P),
		core_binding_end(s->nodes[P].core, slice_str("k"), stage_lock(1)));
}

/* The lock must have been given up by the time at which another one gets the key. */
static void must_end_first(struct stage *s, uint64_t binding, uint64_t other) {
	assert_false(answered(s, other));
	for (int64_t end = s->now + LEASE; !answered(s, other) && s->now < end;
		stage_wait(s, SPAN_MS / 10)) {
	}
	token_of(s, other);
	assert_false(trusts(s));
	assert_true(answered(s, binding));
	assert_int_equal(stage_answer(s, binding)->r.error, PAWL_ELOST);
}

/* Node 1 has bound the lock, and the holder never hears of that, because the link is closed first.
 * Node 2 has missed the lock. */
static void a_master_whose_answer_was_lost_may_let_go_as_well(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	take(s, P, "k", stage_lock(1));
	stage_lose(s, 1, P, MESSAGE_BINDING_ANSWER, true);
	uint64_t id = binding(s);
	stage_close(s, P, 1);
	stage_cut(s, P, 1, true);
	stage_cut(s, 2, 0, false);
	stage_cut(s, 2, 1, false);
	stage_mend(s);
	uint64_t other = wait_for(s, 2, "k", stage_lock(2));
	must_end_first(s, id, other);
}

/* Node 0 has missed the last extension; node 2, which has it, lets go. */
static void a_master_that_missed_an_extension_keeps_the_lock_for_what_it_had(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	stage_wait(s, LEASE - 100 * SPAN_MS);
	stage_lose(s, P, 0, MESSAGE_EXTEND, true);
	stage_lose(s, P, 0, MESSAGE_LEARN, true);
	stage_lose(s, 1, 0, MESSAGE_SYNC_KEYS, true);
	stage_lose(s, P, 0, MESSAGE_BINDING, true);
	assert_int_equal(extend(s, P, "k", stage_lock(1), 4 * LEASE, true), PAWL_OK);
	stage_close(s, P, 2);
	stage_cut(s, P, 2, true);
	uint64_t other = wait_for(s, 0, "k", stage_lock(2));
	must_end_first(s, id, other);
}

/* The masters gave the node's links up, and it hears of that only after it has stood still. */
static void a_node_that_stood_still_counts_from_its_last_step(void **state) {
	struct stage *s = *state;
	uint64_t waiter, id = bound_with_waiter(s, &waiter);
	for (uint32_t i = 0; i < 2; i++) {
		s->cut[i][P] = s->cut[P][i] = true;
		stage_link_down(s, i, P, true);
	}
	stage_jump(s, GRACE - SPAN_MS);
	for (uint32_t i = 0; i < 2; i++) {
		stage_link_down(s, P, i, false);
	}
	assert_false(trusts(s));
	must_end_first(s, id, waiter);
}

/* The masters gave the node's links up. The node goes on, but it did not read those links since
 * then, because there was much to read. */
static void a_link_that_was_not_read_counts_as_lost_from_before(void **state) {
	struct stage *s = *state;
	uint64_t waiter, id = bound_with_waiter(s, &waiter);
	const struct instant since = stage_clock(s, P);
	for (uint32_t i = 0; i < 2; i++) {
		s->cut[i][P] = s->cut[P][i] = true;
		stage_link_down(s, i, P, true);
		s->up[P][i] = false;
	}
	for (span_ns passed = 0; passed < GRACE - SPAN_MS; passed += SPAN_MS) {
		stage_jump(s, SPAN_MS);
		stage_step(s, P, &(struct core_event){ .kind = CORE_TICK });
	}
	for (uint32_t i = 0; i < 2; i++) {
		stage_step(s, P, &(struct core_event){ .kind = CORE_PEER_DOWN,
			.peer = stage_peer(s, P, i), .since = since });
	}
	assert_false(trusts(s));
	must_end_first(s, id, waiter);
}

/* core_limits does not say how many end in one turn of the loop; background.c does. */
#define MANY 1500u
#define A_TURN 512u

static uint32_t most_ends_at_once(struct stage *s, uint32_t node, uint32_t turns) {
	uint64_t most = 0;
	for (uint32_t i = 0; i < turns; i++) {
		const uint64_t before = count_of(s, node, COUNT_binding_ended);
		stage_tick(s);
		const uint64_t ended = count_of(s, node, COUNT_binding_ended) - before;
		most = ended > most ? ended : most;
	}
	return (uint32_t)most;
}

/* The node of a program that has taken very many locks dies. */
static void many_bound_locks_end_in_pieces(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < MANY; i++) {
		char key[8];
		struct id128 lock = stage_lock(7);
		snprintf(key, sizeof key, "b%u", i);
		memcpy(lock.b, &i, sizeof i);
		const struct message learn = { .kind = MESSAGE_LEARN, .round = 1 << 16,
			.key = slice_str(key), .lock_id = lock, .token = i + 1,
			.lease_us = (uint64_t)(LEASE / SPAN_US), .ballot = { i + 1, 1, 1 } };
		const struct message bind = { .kind = MESSAGE_BINDING, .round = 1,
			.key = slice_str(key), .lock_id = lock,
			.left_us = (uint64_t)(GRACE / SPAN_US) };
		stage_inject(s, 1, 0, &learn);
		stage_inject(s, P, 0, &bind);
		if (i % 100 == 0) {
			stage_settle(s);
		}
	}
	stage_settle(s);
	assert_int_equal(count_of(s, 0, COUNT_binding_made), MANY);
	stage_kill(s, P);
	stage_jump(s, GRACE + 5 * SPAN_MS);
	assert_in_range(most_ends_at_once(s, 0, 10), 1, A_TURN);
	assert_int_equal(count_of(s, 0, COUNT_binding_ended), MANY);
}

/* n5 becomes a master in the place of n1; n4 goes on being a replica. */
static struct core_change n5_for_n1(void) {
	static struct core_change_node nodes[4];
	struct core_change c = set_of("2354");
	memcpy(nodes, c.nodes, sizeof nodes);
	nodes[3].master = false;
	c.nodes = nodes;
	return c;
}

static void a_binding_goes_over_to_other_masters(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	must(s, 0, n5_for_n1());
	stage_wait(s, 4 * GRACE);
	assert_false(answered(s, id));
	assert_true(has(s, 1) && has(s, 2) && has(s, FRESH));
	stage_kill(s, P);
	stage_wait(s, 2 * GRACE);
	assert_false(has(s, 1) || has(s, 2) || has(s, FRESH));
}

/* The previous epoch's masters may have dropped the lock by then, and a handover may have been
 * without it. */
static void new_masters_are_to_confirm_within_the_grace_time(void **state) {
	struct stage *s = *state;
	take(s, P, "k", stage_lock(1));
	uint64_t id = binding(s);
	lose_to(s, P, MESSAGE_BINDING_ANSWER, true);
	must(s, 1, n5_for_n1());
	stage_wait(s, 2 * GRACE);
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

UNIT(cluster_bindings) {
	const struct CMUnitTest tests[] = {
		BONDED(a_lock_outlives_the_death_of_a_majority_until_its_lease_is_over),
		BONDED(a_node_does_not_vouch_for_a_lock_that_was_bound_to_another),
		BONDED(a_bound_lock_ends_with_its_node_after_the_grace_time),
		BONDED(a_bound_lock_with_a_delay_stays_closed_for_it_after_its_node),
		BONDED(a_lock_that_is_not_bound_lasts_as_long_as_its_lease),
		BONDED(a_binding_that_was_given_up_is_as_if_it_had_not_been),
		BONDED(a_release_ends_the_binding),
		BONDED(a_node_that_is_back_within_the_grace_time_has_lost_nothing),
		BONDED(a_node_that_has_started_anew_is_not_the_one_that_held),
		BONDED(enough_links_keep_a_bound_lock),
		BONDED(a_node_that_loses_too_many_links_gives_up_before_any_master_does),
		BONDED(a_link_that_the_master_gave_up_ends_nothing_there),
		BONDED(a_network_that_fails_ends_nothing_at_the_masters),
		BONDED(a_master_that_starts_anew_is_asked_again),
		BONDED(a_lock_that_is_not_there_is_bound_to_nothing),
		BONDED(a_master_whose_answer_was_lost_may_let_go_as_well),
		BONDED(a_master_that_missed_an_extension_keeps_the_lock_for_what_it_had),
		BONDED(a_node_that_stood_still_counts_from_its_last_step),
		BONDED(many_bound_locks_end_in_pieces),
		BONDED(a_link_that_was_not_read_counts_as_lost_from_before),
		BONDED(a_binding_goes_over_to_other_masters),
		BONDED(new_masters_are_to_confirm_within_the_grace_time),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
