/* These tests ask what a node that is in the configuration no more may still do (docs/protocol.md,
 * section 6, Nodes that are not in). */
#include "members.h"

#define LONG (10 * SPAN_S)

static bool has(const struct stage *s, uint32_t node, uint8_t lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str("k"), stage_lock(lock), &token, &noted);
}

/* The commits for a request of n4, a replica, come to all masters, and n4 hears no answer before it
 * is removed. */
static uint64_t ask_and_remove(struct stage *s, struct core_request r) {
	add_replica(s, 0, "n4", "n4:7118");
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, 3, MESSAGE_COMMIT_ANSWER, true);
	}
	const uint64_t id = stage_ask(s, 3, r);
	stage_settle(s);
	assert_true(has(s, 0, 1) && has(s, 1, 1) && has(s, 2, 1));
	must(s, 0, change_of(CHANGE_REMOVE, "n4"));
	stage_wait(s, SPAN_S);
	assert_int_equal(state_of(s, 3), CORE_OUTSIDE);
	return id;
}

static void is_rolled_back(struct stage *s, uint64_t id) {
	assert_true(answered(s, id));
	assert_int_not_equal(stage_answer(s, id)->r.error, PAWL_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(has(s, i, 1));
	}
	assert_int_equal(stage_count(s, COUNT_non_member_rolled_back), 3);
	take(s, 1, "k", stage_lock(2));
	const uint64_t sent = stage_sent(s, MESSAGE_RELEASE);
	stage_wait(s, 3 * SPAN_S);
	/* It has heard the answers. */
	assert_int_equal(stage_sent(s, MESSAGE_RELEASE), sent);
}

static void a_removed_node_rolls_back_what_it_took_for_several_keys(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { { .key = slice_str("k"), .lock_id = stage_lock(1) },
		{ .key = slice_str("l"), .lock_id = stage_lock(3) } };
	is_rolled_back(s, ask_and_remove(s, (struct core_request){ .op = CORE_ACQUIRE_ALL,
		.locks = locks, .lock_count = 2, .lease = LONG }));
}

static void a_removed_node_rolls_back_the_permits_of_a_failed_commit(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LONG, 0);
	r.terms.of = 2;
	r.terms.count = 1;
	is_rolled_back(s, ask_and_remove(s, r));
}

/* n4, a replica, is removed while somebody waits there. */
static void a_wait_at_a_node_that_is_removed_is_answered(struct stage *s, struct core_request r) {
	add_replica(s, 0, "n4", "n4:7118");
	take(s, 0, "k", stage_lock(1));
	/* n4 has heard of the lock. */
	stage_wait(s, 100 * SPAN_MS);
	const uint64_t id = stage_ask(s, 3, r);
	stage_wait(s, 100 * SPAN_MS);
	assert_false(answered(s, id));
	must(s, 0, change_of(CHANGE_REMOVE, "n4"));
	stage_wait(s, SPAN_MS);
	assert_int_equal(state_of(s, 3), CORE_OUTSIDE);
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ERECOVERING);
}

static void a_waiter_at_a_node_that_is_removed_is_told_to_go_elsewhere(void **state) {
	a_wait_at_a_node_that_is_removed_is_answered(*state,
		stage_acquire("k", stage_lock(2), LEASE, LONG));
}

static void a_wait_for_a_change_at_a_node_that_is_removed_is_told_to_go_elsewhere(void **state) {
	a_wait_at_a_node_that_is_removed_is_answered(*state, (struct core_request){ .op = CORE_WAIT,
		.for_free = true, .key = slice_str("k"), .wait = LONG });
}

static void non_member_says(struct stage *s, uint32_t to, uint8_t lock, uint64_t name) {
	stage_inject(s, 3, to, &(struct message){ .kind = MESSAGE_RELEASE, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(lock), .name = name });
}

static void a_non_member_ends_nothing_whose_name_it_does_not_know(void **state) {
	struct stage *s = *state;
	stage_mend(s);
	stage_settle(s);
	take(s, 0, "k", stage_lock(1));
	non_member_says(s, 0, 1, 0);
	non_member_says(s, 0, 1, 5);
	assert_true(has(s, 0, 1));
	assert_int_equal(stage_count(s, COUNT_non_member_rolled_back), 0);
}

/* n4 releases X, asks for two keys, and is removed before any master hears of either end. When its
 * links are back, what it rolls back and the release come in one frame. The release is not heard,
 * and n4 does not say that it was. */
static void a_release_of_a_removed_node_is_not_heard_together_with_its_rollback(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { { .key = slice_str("l"), .lock_id = stage_lock(2) },
		{ .key = slice_str("m"), .lock_id = stage_lock(3) } };
	add_replica(s, 0, "n4", "n4:7118");
	take(s, 0, "k", stage_lock(1));
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, 3, i, MESSAGE_RELEASE, true);
		stage_lose(s, i, 3, MESSAGE_COMMIT_ANSWER, true);
	}
	const uint64_t release = stage_ask(s, 3, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	const uint64_t group = stage_ask(s, 3, (struct core_request){ .op = CORE_ACQUIRE_ALL,
		.locks = locks, .lock_count = 2, .lease = LONG });
	stage_settle(s);
	must(s, 0, change_of(CHANGE_REMOVE, "n4"));
	for (uint32_t i = 0; i < 3; i++) {
		stage_break(s, i, 3);
		stage_lose(s, 3, i, MESSAGE_RELEASE, false);
	}
	const uint64_t unheard = stage_count(s, COUNT_wrong_epoch);
	stage_mend(s);
	stage_wait(s, SPAN_S);
	assert_true(stage_count(s, COUNT_wrong_epoch) > unheard);
	assert_true(answered(s, group) && stage_answer(s, group)->r.error != PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_non_member_rolled_back), 3);
	assert_true(answered(s, release) && stage_answer(s, release)->r.error != PAWL_OK);
	assert_true(has(s, 0, 1) && has(s, 1, 1) && has(s, 2, 1));
}

/* Otherwise a node outside could fill the ring of the tombstones. What n1 does not remember it
 * learns from the others. */
static void what_a_non_member_rolls_back_in_vain_is_not_remembered(void **state) {
	struct stage *s = *state;
	stage_mend(s);
	stage_settle(s);
	const uint64_t x = stage_status(s, 0).clock + 5;
	non_member_says(s, 0, 1, 7);
	for (uint32_t i = 1; i < 3; i++) {
		stage_inject(s, 0, i, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
			.name = 7, .key = slice_str("k"), .lock_id = stage_lock(1), .token = x,
			.lease_us = 9000000, .ballot = { x, 1, 1 } });
	}
	stage_wait(s, 3 * SPAN_S);
	assert_true(has(s, 0, 1) && has(s, 1, 1) && has(s, 2, 1));
}

UNIT(cluster_non_members) {
	const struct CMUnitTest tests[] = {
		MEMBERS(a_removed_node_rolls_back_what_it_took_for_several_keys),
		MEMBERS(a_waiter_at_a_node_that_is_removed_is_told_to_go_elsewhere),
		MEMBERS(a_wait_for_a_change_at_a_node_that_is_removed_is_told_to_go_elsewhere),
		MEMBERS(a_removed_node_rolls_back_the_permits_of_a_failed_commit),
		MEMBERS(a_non_member_ends_nothing_whose_name_it_does_not_know),
		MEMBERS(a_release_of_a_removed_node_is_not_heard_together_with_its_rollback),
		MEMBERS(what_a_non_member_rolls_back_in_vain_is_not_remembered),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
