/* A node gives up a lock that was to end with it, and not every master hears; or the lock has ended
 * (docs/protocol.md, section 2, Release on disconnect). There are three masters; the node is a
 * replica. */
#include <stdio.h>
#include <string.h>

#include "members.h"
#include "modes.h"

#define REPLICA 3u
#define GRACE (50 * SPAN_MS)
#define CLIENT 77

static int setup(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	o.outside = 2;
	*state = stage_born(&o);
	return 0;
}

#define UNBOUND(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

static uint64_t binding(struct stage *s, const char *key, struct id128 lock) {
	struct core_request r = stage_request(CORE_BINDING, key, lock);
	r.wait = GRACE;
	r.client = CLIENT;
	uint64_t id = stage_ask(s, REPLICA, r);
	stage_settle(s);
	return id;
}

static bool has_k(const struct stage *s, uint32_t node) {
	return knows(s, node, "k", stage_lock(1));
}

static struct core_change three_and_a_replica(const char *numbers) {
	static struct core_change_node nodes[4];
	struct core_change c = set_of(numbers);
	memcpy(nodes, c.nodes, sizeof nodes);
	nodes[3].master = false;
	c.nodes = nodes;
	return c;
}

/* n3 misses the lock, and learns it from nobody. */
static void take_without_n3(struct stage *s) {
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, i, 2, MESSAGE_SYNC_LEAVES, true);
	}
	stage_lose(s, REPLICA, 2, MESSAGE_COMMIT, true);
	lose_to(s, 2, MESSAGE_LEARN, true);
	take(s, REPLICA, "k", stage_lock(1));
}

/* n1 does not hear that the session binding is over, because the link is down just then. */
static void given_up_unheard_by_n1(struct stage *s) {
	take_without_n3(s);
	(void)binding(s, "k", stage_lock(1));
	stage_cut(s, REPLICA, 0, true);
	stage_client_gone(s, REPLICA, CLIENT);
	stage_settle(s);
}

static void linked_again(struct stage *s) {
	stage_cut(s, REPLICA, 0, false);
	stage_mend(s);
	stage_settle(s);
}

static void must_stay_after_the_node(struct stage *s) {
	stage_kill(s, REPLICA);
	stage_wait(s, 4 * GRACE);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_true(has_k(s, 0) && has_k(s, 1));
}

static void a_lock_that_goes_on_elsewhere_does_not_end_with_the_node_that_gave_it_up(void **state) {
	struct stage *s = *state;
	given_up_unheard_by_n1(s);
	linked_again(s);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	must_stay_after_the_node(s);
}

static void a_lock_that_goes_on_at_the_node_that_gave_it_up_does_not_end_with_it(void **state) {
	struct stage *s = *state;
	given_up_unheard_by_n1(s);
	linked_again(s);
	assert_int_equal(extend(s, REPLICA, "k", stage_lock(1), LEASE, true), PAWL_OK);
	must_stay_after_the_node(s);
}

/* The node says so under the previous epoch, and n1 is in the next one already. */
static void what_is_given_up_while_the_epoch_changes_does_not_end_with_the_node(void **state) {
	struct stage *s = *state;
	take_without_n3(s);
	(void)binding(s, "k", stage_lock(1));
	stage_lose(s, REPLICA, 0, MESSAGE_BINDING, true);
	must(s, 0, max_lease_of(9 * SPAN_S));
	stage_client_gone(s, REPLICA, CLIENT);
	stage_settle(s);
	assert_int_equal(extend(s, REPLICA, "k", stage_lock(1), LEASE, true), PAWL_OK);
	must_stay_after_the_node(s);
}

/* The node says again, over the new link, which session bindings it still keeps, and they go on. */
static void what_was_not_given_up_stays_bound_over_a_new_link(void **state) {
	struct stage *s = *state;
	take(s, REPLICA, "k", stage_lock(1));
	uint64_t id = binding(s, "k", stage_lock(1));
	stage_cut(s, REPLICA, 0, true);
	linked_again(s);
	must(s, 0, max_lease_of(9 * SPAN_S));
	assert_int_equal(extend(s, REPLICA, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_false(answered(s, id));
	stage_kill(s, REPLICA);
	stage_wait(s, 2 * GRACE);
	assert_int_equal(stage_count(s, COUNT_binding_ended), 3);
}

/* n2 and n3 still have the lock, and hand it over. n1 goes on as a master, and has it bound from
 * before. */
static void what_is_handed_over_unbound_does_not_end_with_the_node(void **state) {
	struct stage *s = *state;
	given_up_unheard_by_n1(s);
	lose_to(s, 2, MESSAGE_LEARN, false);
	assert_int_equal(extend(s, REPLICA, "k", stage_lock(1), 3 * LEASE, true), PAWL_OK);
	assert_true(has_k(s, 2));
	stage_cut(s, REPLICA, 0, false);
	must(s, 1, three_and_a_replica("1564"));
	stage_settle(s);
	assert_true(has_k(s, 0) && has_k(s, 4) && has_k(s, 5));
	stage_kill(s, REPLICA);
	stage_wait(s, 4 * GRACE);
	assert_int_equal(stage_count(s, COUNT_binding_ended), 0);
	assert_true(has_k(s, 0));
}

/* n1 is none of the masters for an epoch, so that the node does not count on it. Then n1 is a
 * master again, and is not told. */
static void a_master_that_was_none_in_between_ends_nothing_before_it_is_told(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), 8 * SPAN_S, 0);
	assert_int_equal(stage_do(s, REPLICA, r), PAWL_OK);
	uint64_t id = binding(s, "k", stage_lock(1));
	must(s, 1, three_and_a_replica("2354"));
	stage_wait(s, 10 * SPAN_MS);
	stage_lose(s, REPLICA, 0, MESSAGE_BINDING, true);
	must(s, 1, three_and_a_replica("2314"));
	stage_wait(s, 10 * SPAN_MS);
	assert_true(has_k(s, 0));
	stage_close(s, REPLICA, 0);
	stage_cut(s, REPLICA, 0, true);
	stage_wait(s, 4 * GRACE);
	assert_int_equal(stage_count(s, COUNT_binding_ended), 0);
	assert_false(answered(s, id));
}

/* ---- the lock has ended ---- */

/* The node is cut off until it has lost k, which it has bound. */
static uint64_t lose_k(struct stage *s, bool goes_on) {
	uint64_t id = binding(s, "k", stage_lock(1));
	stage_isolate(s, REPLICA, true);
	stage_wait(s, GRACE / 2);
	if (goes_on) {
		assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
	}
	stage_wait(s, GRACE);
	stage_isolate(s, REPLICA, false);
	stage_mend(s);
	stage_wait(s, GRACE);
	return id;
}

/* The holder goes on through n1, with all masters; the node knows nothing of that. */
static void what_goes_on_elsewhere_does_not_end_when_its_node_has_lost_it(void **state) {
	struct stage *s = *state;
	take(s, REPLICA, "k", stage_lock(1));
	uint64_t id = lose_k(s, true);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	assert_true(has_k(s, 0) && has_k(s, 1) && has_k(s, 2));
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
}

/* A loss is no release (section 10). */
static void what_its_node_has_lost_stays_closed_for_the_lock_delay(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.delay = SPAN_S;
	assert_int_equal(stage_do(s, REPLICA, r), PAWL_OK);
	uint64_t waiter = wait_for(s, 0, "k", stage_lock(2)), id = lose_k(s, false);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	stage_wait(s, SPAN_S - 2 * GRACE);
	assert_false(answered(s, waiter));
	/* This is well before the lease would have ended. */
	stage_wait(s, 3 * GRACE);
	(void)token_of(s, waiter);
}

/* The masters' answers take a moment. */
static void a_binding_of_a_lock_that_nobody_holds_is_lost(void **state) {
	struct stage *s = *state;
	stage_wait(s, 10 * SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		s->held[i][REPLICA] = true;
	}
	uint64_t id = binding(s, "k", stage_lock(1));
	stage_wait(s, SPAN_MS);
	for (uint32_t i = 0; i < 3; i++) {
		s->held[i][REPLICA] = false;
	}
	stage_settle(s);
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

/* One master that has missed the lock is not enough to say so. */
static void a_binding_is_not_lost_because_one_master_has_missed_the_lock(void **state) {
	struct stage *s = *state;
	take_without_n3(s);
	uint64_t id = binding(s, "k", stage_lock(1));
	stage_wait(s, LEASE / 2);
	assert_false(answered(s, id));
}

/* n1's last word is late. n3 has said that it lacks the lock, and learns it, before the lease ends
 * at n1, which has missed the extension. q masters have the lock all the time. `by` is the node
 * through which it is extended. */
static void extended_between_two_answers(struct stage *s, uint32_t by) {
	take_without_n3(s);
	stage_wait(s, LEASE - 40 * SPAN_MS);
	lose_to(s, 2, MESSAGE_LEARN, false);
	s->held[REPLICA][0] = s->held[1][0] = true;
	uint64_t id = binding(s, "k", stage_lock(1));
	assert_int_equal(extend(s, by, "k", stage_lock(1), 2 * LEASE, true), PAWL_OK);
	assert_true(has_k(s, 0) && has_k(s, 1) && has_k(s, 2));
	stage_wait(s, 45 * SPAN_MS);
	assert_true(!has_k(s, 0) && has_k(s, 1) && has_k(s, 2));
	while (stage_sent(s, MESSAGE_BINDING_ANSWER) < 3) {
		assert_true(stage_deliver(s, REPLICA, 0));
	}
	stage_settle(s);
	assert_false(answered(s, id));
	s->held[REPLICA][0] = s->held[1][0] = false;
	stage_wait(s, LEASE / 2);
	assert_false(answered(s, id));
	assert_int_equal(extend(s, by, "k", stage_lock(1), LEASE, true), PAWL_OK);
}

static void a_binding_is_lost_only_where_the_masters_lack_the_lock_at_once(void **state) {
	extended_between_two_answers(*state, REPLICA);
}

static void what_another_node_has_lengthened_between_two_answers_is_not_lost(void **state) {
	extended_between_two_answers(*state, 1);
}

/* The holder has released nothing. */
static void a_bound_lock_that_is_broken_through_its_node_is_lost(void **state) {
	struct stage *s = *state;
	take(s, REPLICA, "k", stage_lock(1));
	uint64_t id = binding(s, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_BREAK, "k", nobody);
	r.admin = r.now = true;
	assert_int_equal(stage_do(s, REPLICA, r), PAWL_OK);
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

/* There is room for four. More locks than that are bound one after the other, given up unheard, and
 * over when their leases end. */
static void what_was_bound_takes_no_room_when_it_has_ended(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	o.limits.keys = 4;
	o.max_lease = LEASE;
	struct stage *s = stage_born(&o);
	*state = s;
	for (uint8_t i = 1; i <= 8; i++) {
		char key[8];
		snprintf(key, sizeof key, "k%u", i);
		take(s, REPLICA, key, stage_lock(i));
		(void)binding(s, key, stage_lock(i));
		lose_to(s, 0, MESSAGE_BINDING, true);
		stage_client_gone(s, REPLICA, CLIENT);
		stage_settle(s);
		lose_to(s, 0, MESSAGE_BINDING, false);
		stage_wait(s, 2 * LEASE);
	}
	assert_int_equal(stage_count(s, COUNT_full), 0);
	assert_int_equal(stage_count(s, COUNT_binding_made), 24);
}

static int setup_two_masters(void **state) {
	struct stage_options o = named_options();
	o.masters = 2;
	o.replicas = 1;
	*state = stage_born(&o);
	return 0;
}

/* n1 and the replica n3 have not heard of epoch 2, in which n2 is the only master. That n1 lacks
 * the lock says nothing about what n2 has granted. */
static void what_the_next_epoch_granted_and_is_bound_is_not_lost(void **state) {
	struct stage *s = *state;
	const uint32_t replica = 2;
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = GRACE;
	for (uint32_t i = 0; i < 3; i += 2) {
		lose_choices(s, i, true);
	}
	(void)ask_change(s, 1, change_of(CHANGE_DEMOTE, "n1"));
	assert_true(wait_until_epoch(s, 1, 2, SPAN_S));
	assert_true(stage_until_voting(s, 1, SPAN_S));
	take(s, 1, "k", stage_lock(1));
	assert_int_equal(epoch_of(s, 0), 1);
	assert_int_equal(epoch_of(s, replica), 1);
	uint64_t bound = stage_ask(s, replica, r);
	stage_settle(s);
	assert_false(answered(s, bound));
	for (uint32_t i = 0; i < 3; i += 2) {
		lose_choices(s, i, false);
	}
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(epoch_of(s, replica), 2);
	assert_false(answered(s, bound));
	assert_int_equal(extend(s, replica, "k", stage_lock(1), LEASE, true), PAWL_OK);
	/* What is not there is lost when all have answered. */
	r.lock_id = stage_lock(2);
	assert_int_equal(stage_do(s, replica, r), PAWL_ELOST);
}

/* ---- a name that is rolled back ---- */

#define OTHER (REPLICA + 1)

static int setup_other(void **state) {
	struct stage_options o = named_options();
	o.replicas = 2;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t to = 0; to < 3; to++) {
		lose_to(s, to, MESSAGE_SYNC_KEYS, true);
	}
	return 0;
}

/* n2 alone has k, by a request for several keys at n5, which has failed. n2 does not hear yet that
 * it is rolled back. */
static void left_at_n2(struct stage *s) {
	const struct core_lock locks[] = { { .key = slice_str("k"), .lock_id = stage_lock(1) },
		{ .key = slice_str("l"), .lock_id = stage_lock(8) } };
	for (uint32_t to = 0; to < 3; to += 2) {
		stage_lose(s, OTHER, to, MESSAGE_COMMIT, true);
		stage_lose(s, OTHER, to, MESSAGE_LEARN, true);
	}
	stage_lose(s, OTHER, 1, MESSAGE_RELEASE, true);
	const uint64_t id = stage_ask(s, OTHER, (struct core_request){ .op = CORE_ACQUIRE_ALL,
		.locks = locks, .lock_count = 2, .lease = LEASE, .wait = WAIT });
	stage_wait(s, 200 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	stage_lose(s, OTHER, 1, MESSAGE_RELEASE, false);
	assert_true(!has_k(s, 0) && has_k(s, 1) && !has_k(s, 2));
}

/* The same lock_id is granted through n4 by n1 and n3, and bound to n4: by n1 and n2, when n3 has
 * dropped it. */
static void what_a_node_counts_on_is_not_rolled_back(void **state) {
	struct stage *s = *state;
	left_at_n2(s);
	stage_lose(s, REPLICA, 1, MESSAGE_COMMIT, true);
	stage_lose(s, REPLICA, 1, MESSAGE_LEARN, true);
	take(s, REPLICA, "k", stage_lock(1));
	const uint64_t id = binding(s, "k", stage_lock(1));
	stage_close(s, REPLICA, 2);
	stage_cut(s, REPLICA, 2, true);
	stage_wait(s, 2 * GRACE);
	assert_true(has_k(s, 0) && has_k(s, 1) && !has_k(s, 2));
	assert_false(answered(s, id));
	stage_break(s, OTHER, 1);
	stage_mend(s);
	stage_settle(s);
	/* n4 goes on trusting the lock. */
	assert_false(answered(s, id));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_true(has_k(s, 1));
}

/* n4 holds number 1 of k by n1 and n3, and n2 has what an earlier try has left of the same lock_id:
 * number 0. When n3 has dropped the lock, number 1 is kept by n1 alone. */
static void what_has_other_numbers_does_not_keep_a_permit(void **state) {
	struct stage *s = *state;
	for (uint32_t to = 0; to < 3; to += 2) {
		stage_lose(s, OTHER, to, MESSAGE_COMMIT, true);
		stage_lose(s, OTHER, to, MESSAGE_LEARN, true);
	}
	stage_lose(s, OTHER, 1, MESSAGE_RELEASE, true);
	assert_int_not_equal(stage_do(s, OTHER, permits_request("k", stage_lock(1), 1, 2, 0)),
		PAWL_OK);
	stage_wait(s, 200 * SPAN_MS);
	assert_true(!has_k(s, 0) && has_k(s, 1) && !has_k(s, 2));
	stage_lose(s, 0, 1, MESSAGE_PROMISE, true);
	assert_int_equal(take_permits(s, 0, "k", stage_lock(9), 1, 2), PAWL_OK);
	stage_lose(s, REPLICA, 1, MESSAGE_COMMIT, true);
	stage_lose(s, REPLICA, 1, MESSAGE_LEARN, true);
	assert_int_equal(take_permits(s, REPLICA, "k", stage_lock(1), 1, 2), PAWL_OK);
	assert_true(permits_has(stage_last(s)->r.terms.set, 1));
	const uint64_t id = binding(s, "k", stage_lock(1));
	stage_close(s, REPLICA, 2);
	stage_cut(s, REPLICA, 2, true);
	stage_wait(s, GRACE - SPAN_MS);
	assert_true(has_k(s, 2));
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

/* `node` holds a permit of k, which all masters have lengthened. n3 alone drops it. */
static void permits_stay_without_n3(struct stage *s, uint32_t node) {
	assert_int_equal(take_permits(s, node, "k", stage_lock(1), 1, 2), PAWL_OK);
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = GRACE;
	r.client = CLIENT;
	const uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	assert_int_equal(extend(s, node, "k", stage_lock(1), LEASE, true), PAWL_OK);
	stage_close(s, node, 2);
	stage_cut(s, node, 2, true);
	stage_wait(s, 2 * GRACE);
	assert_true(has_k(s, 0) && has_k(s, 1) && !has_k(s, 2));
	assert_false(answered(s, id));
	stage_wait(s, LEASE);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

static void permits_that_masters_have_lengthened_are_kept(void **state) {
	permits_stay_without_n3(*state, REPLICA);
}

static void a_master_keeps_the_permits_that_it_has_itself(void **state) {
	permits_stay_without_n3(*state, 0);
}

/* n1 has k by a request that failed, and k is granted through n2 by n2 and n3. n1's own program
 * asks that the lock ends with n1. */
static void what_a_master_counts_on_itself_is_not_rolled_back(void **state) {
	struct stage *s = *state;
	const uint64_t name = 0x101, token = take(s, 0, "c", stage_lock(7));
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .token = token + 1, .name = name,
		.lease_us = LEASE / SPAN_US, .ballot = { token + 1, 1, 1 } };
	stage_inject(s, REPLICA, 0, &m);
	stage_settle(s);
	stage_lose(s, 1, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	take(s, 1, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = GRACE;
	r.client = CLIENT;
	stage_ask(s, 0, r);
	stage_settle(s);
	m.kind = MESSAGE_RELEASE;
	stage_inject(s, REPLICA, 0, &m);
	stage_settle(s);
	assert_true(has_k(s, 0));
}

UNIT(cluster_unbound) {
	const struct CMUnitTest tests[] = {
		UNBOUND(a_lock_that_goes_on_elsewhere_does_not_end_with_the_node_that_gave_it_up),
		UNBOUND(a_lock_that_goes_on_at_the_node_that_gave_it_up_does_not_end_with_it),
		UNBOUND(what_is_given_up_while_the_epoch_changes_does_not_end_with_the_node),
		UNBOUND(what_was_not_given_up_stays_bound_over_a_new_link),
		UNBOUND(what_is_handed_over_unbound_does_not_end_with_the_node),
		UNBOUND(a_master_that_was_none_in_between_ends_nothing_before_it_is_told),
		UNBOUND(what_goes_on_elsewhere_does_not_end_when_its_node_has_lost_it),
		UNBOUND(what_its_node_has_lost_stays_closed_for_the_lock_delay),
		UNBOUND(a_binding_of_a_lock_that_nobody_holds_is_lost),
		UNBOUND(a_binding_is_not_lost_because_one_master_has_missed_the_lock),
		UNBOUND(a_binding_is_lost_only_where_the_masters_lack_the_lock_at_once),
		UNBOUND(what_another_node_has_lengthened_between_two_answers_is_not_lost),
		UNBOUND(a_bound_lock_that_is_broken_through_its_node_is_lost),
		cmocka_unit_test_setup_teardown(
			what_the_next_epoch_granted_and_is_bound_is_not_lost, setup_two_masters,
			named_teardown),
		cmocka_unit_test_teardown(what_was_bound_takes_no_room_when_it_has_ended,
			named_teardown),
		cmocka_unit_test_setup_teardown(what_a_node_counts_on_is_not_rolled_back,
			setup_other, named_teardown),
		cmocka_unit_test_setup_teardown(what_a_master_counts_on_itself_is_not_rolled_back,
			setup_other, named_teardown),
		cmocka_unit_test_setup_teardown(what_has_other_numbers_does_not_keep_a_permit,
			setup_other, named_teardown),
		cmocka_unit_test_setup_teardown(permits_that_masters_have_lengthened_are_kept,
			setup_other, named_teardown),
		cmocka_unit_test_setup_teardown(a_master_keeps_the_permits_that_it_has_itself,
			setup_other, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
