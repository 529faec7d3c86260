/* These tests ask with which token an extension is answered (docs/protocol.md, section 2,
 * Extend). */
#include "named.h"

static uint64_t token_at(const struct stage *s, uint32_t node) {
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[node].core, slice_str("k"), stage_lock(1), &token, &noted));
	return token;
}

/* Repeats the acquire at node 1. The commit of the repeat has reached node 0 alone so far. */
static uint64_t repeat_under(struct stage *s, uint64_t token, const struct terms *terms) {
	const struct message commit = { .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = token + 8,
		.lease_us = (uint64_t)(LEASE / SPAN_US), .ballot = { token + 8, 1, 1 },
		.terms = *terms };
	stage_inject(s, 1, 0, &commit);
	stage_settle(s);
	assert_true(token_at(s, 0) == token + 8 && token_at(s, 1) == token &&
		token_at(s, 2) == token);
	return token + 8;
}

static uint64_t repeat_at(struct stage *s, uint64_t token) {
	const struct terms plain = { .of = MODE_EXCLUSIVE };
	return repeat_under(s, token, &plain);
}

static void is_had_by_a_quorum(struct stage *s, uint64_t token) {
	uint32_t masters = 0;
	for (uint32_t i = 0; i < 3; i++) {
		masters += token_at(s, i) >= token;
	}
	assert_true(masters >= 2 && stage_last(s)->r.acks >= 2);
}

static void a_token_that_one_master_has_is_brought_to_others_before_it_is_answered(void **state) {
	struct stage *s = *state;
	repeat_at(s, take(s, 2, "k", stage_lock(1)));
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	is_had_by_a_quorum(s, stage_last(s)->r.token);
}

/* For a caller that keeps no deadline only masters count that had the lock. Those that were behind
 * still count. */
static void a_master_that_was_behind_has_had_the_lock_all_the_same(void **state) {
	struct stage *s = *state;
	repeat_at(s, take(s, 2, "k", stage_lock(1)));
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, false), PAWL_OK);
	is_had_by_a_quorum(s, stage_last(s)->r.token);
}

static void so_it_is_with_permits(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms = (struct terms){ .of = 3, .count = 2 };
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	const struct terms had = stage_last(s)->r.terms;
	repeat_under(s, stage_last(s)->r.token, &had);
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	stage_lose(s, 1, 2, MESSAGE_EXTEND_PERMITS, true);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	is_had_by_a_quorum(s, stage_last(s)->r.token);
}

/* A token that was answered is not followed by a lower one. */
static void a_token_that_was_answered_is_answered_again(void **state) {
	struct stage *s = *state;
	uint64_t raised = repeat_at(s, take(s, 2, "k", stage_lock(1)));
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_int_equal(stage_last(s)->r.token, raised);
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_int_equal(stage_last(s)->r.token, raised);
}

UNIT(cluster_tokens) {
	const struct CMUnitTest tests[] = {
		NAMED(a_token_that_one_master_has_is_brought_to_others_before_it_is_answered),
		NAMED(a_master_that_was_behind_has_had_the_lock_all_the_same),
		NAMED(so_it_is_with_permits),
		NAMED(a_token_that_was_answered_is_answered_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
