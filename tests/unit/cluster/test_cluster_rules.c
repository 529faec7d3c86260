/* These tests ask what a cluster does when its masters do not agree: repairs, records that are
 * learned, contested keys, clocks far apart (docs/protocol.md, sections 2 to 4 and 9). */
#include "named.h"

#define LONG (10 * SPAN_S)

static const struct id128 no_lock;

static uint64_t take_long(struct stage *s, uint32_t node, struct id128 lock) {
	assert_int_equal(stage_do(s, node, stage_acquire("k", lock, LONG, 0)), PAWL_OK);
	return stage_last(s)->r.token;
}

/* Only the masters `coordinator` and `other` have `lock`. */
static void take_without(struct stage *s, uint32_t coordinator, uint32_t missing,
	struct id128 lock) {
	stage_stop(s, coordinator, missing, MESSAGE_COMMIT, true);
	take_long(s, coordinator, lock);
	stage_cut(s, coordinator, missing, true);
	stage_stop(s, coordinator, missing, MESSAGE_COMMIT, false);
}

/* Leaves a commit that reached its coordinator alone. */
static void leave_behind(struct stage *s, uint32_t node, struct id128 lock) {
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, node, i, MESSAGE_COMMIT, true);
	}
	uint64_t id = stage_ask(s, node, stage_acquire("k", lock, LONG, 0));
	stage_wait(s, 150 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, id)->r.error, PAWL_OK);
	memset(s->stops, 0, sizeof s->stops);
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(stage_status(s, node).held, 1);
}

static void a_master_that_missed_the_commit_is_repaired_when_its_link_is_up(void **state) {
	struct stage *s = *state;
	take_without(s, 0, 2, stage_lock(1));
	assert_false(core_peek(s->nodes[2].core, slice_str("k"), stage_lock(1), NULL, NULL));
	stage_cut(s, 0, 2, false);
	stage_wait(s, 10 * SPAN_MS);
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[2].core, slice_str("k"), stage_lock(1), &token, &noted));
	assert_true(stage_count(s, COUNT_repair_accepted) > 0);
}

static void no_master_is_sent_a_released_record_for_repair(void **state) {
	struct stage *s = *state;
	take_without(s, 0, 2, stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	stage_cut(s, 0, 2, false);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_status(s, 2).held, 0);
	assert_int_equal(stage_count(s, COUNT_repair_accepted), 0);
}

static void an_extension_repairs_masters_that_lack_the_record_with_its_value_too(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.value = slice_str("value");
	r.owner = slice_str("owner");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	/* That node would have sent the record to the others. */
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	stage_isolate(s, 2, false);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_true(stage_count(s, COUNT_extend_learned) > 0);
	assert_int_equal(stage_do(s, 2, stage_request(CORE_GET, "k", no_lock)), PAWL_OK);
	assert_memory_equal(stage_last(s)->value.bytes, "value", 5);
	assert_memory_equal(stage_last(s)->owner.bytes, "owner", 5);
}

static void a_lock_that_only_one_master_still_has_is_unsure_to_who_keeps_no_deadline(void **state) {
	struct stage *s = *state;
	/* n1 and n2 have it, and n1 answered it. */
	take_without(s, 0, 2, stage_lock(1));
	stage_kill(s, 0);
	stage_wait(s, 10 * SPAN_MS);
	/* n2 had it, but n3 only learns it. */
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, false), PAWL_EUNSURE);
	stage_wait(s, 10 * SPAN_MS);
	/* The way out is to acquire again. */
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(1), LEASE, 0)), PAWL_OK);
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

static void a_release_is_sent_again_to_a_master_that_missed_it(void **state) {
	struct stage *s = *state;
	take_long(s, 0, stage_lock(1));
	stage_isolate(s, 2, true);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(stage_status(s, 2).held, 1);
	/* Two others are enough meanwhile. */
	take(s, 1, "k", stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	stage_isolate(s, 2, false);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_status(s, 2).held, 0);
	assert_true(stage_count(s, COUNT_release_resent) > 0);
}

static void a_release_is_sent_again_long_after_the_time_of_its_round(void **state) {
	struct stage *s = *state;
	take_long(s, 0, stage_lock(1));
	stage_isolate(s, 2, true);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	stage_wait(s, 4 * SPAN_S);
	assert_int_equal(stage_count(s, COUNT_release_resent), 0);
	stage_isolate(s, 2, false);
	stage_wait(s, 10 * SPAN_MS);
	assert_true(stage_count(s, COUNT_release_resent) > 0);
}

static void a_record_left_behind_by_a_failed_commit_goes_with_a_release(void **state) {
	struct stage *s = *state;
	leave_behind(s, 0, stage_lock(1));
	/* The client library does this. */
	assert_int_equal(release(s, 1, "k", stage_lock(1)), PAWL_OK);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_status(s, i).held, 0);
	}
}

/* n2 and n3 have the lock. n3 starts anew, and nobody but n1 tells it what it has. So n2 alone,
 * which n1 does not reach, knows of the lock. */
static void a_quorum_read_counts_a_master_that_does_not_vote_as_silent(void **state) {
	struct stage *s = *state;
	take_without(s, 1, 0, stage_lock(1));
	stage_cut(s, 1, 2, true);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	stage_mend(s);
	stage_settle(s);
	assert_int_equal(stage_status(s, 2).state, CORE_RECOVERING);
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = true;
	uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
}

/* ---- contested keys ---- */

/* On n3 two records are live: the one that was left behind at n1, and the lock that n2 and n3
 * granted. */
static void contest(struct stage *s) {
	leave_behind(s, 0, stage_lock(1));
	take_long(s, 1, stage_lock(2));
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_true(stage_noted(s, 2, NOTE_CONTESTED));
	assert_int_equal(stage_status(s, 2).held, 2);
}

static void a_contested_key_is_granted_to_nobody(void **state) {
	struct stage *s = *state;
	contest(s);
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(3), LEASE, 0)), PAWL_EHELD);
	/* It is not granted to one of the two, either. */
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(1), LEASE, 0)), PAWL_EHELD);
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = true;
	uint64_t id = stage_ask(s, 1, r);
	stage_wait(s, 250 * SPAN_MS);
	/* q masters report both of them as live. */
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EINDETERMINATE);
}

static void a_contested_key_is_extended_only_after_every_earlier_round_is_over(void **state) {
	struct stage *s = *state;
	contest(s);
	assert_int_not_equal(extend(s, 1, "k", stage_lock(2), LONG, true), PAWL_OK);
	assert_true(stage_count(s, COUNT_extend_refused_contested) > 0);
	stage_wait(s, 110 * SPAN_MS);
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LONG, true), PAWL_OK);
	assert_true(stage_count(s, COUNT_extend_contested_ok) > 0);
	/* n3 did not have the lock all the time. */
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LONG, false), PAWL_EUNSURE);
}

static void a_contested_key_ends_with_a_release_or_the_end_of_a_lease(void **state) {
	struct stage *s = *state;
	contest(s);
	release(s, 0, "k", stage_lock(1));
	assert_true(stage_noted(s, 2, NOTE_CONTESTED_ENDED));
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LEASE, true), PAWL_OK);
	stage_wait(s, LONG);
	take(s, 2, "k", stage_lock(3));
}

/* ---- clocks ---- */

static void a_master_far_behind_the_others_clocks_stops_voting_and_rejoins(void **state) {
	struct stage *s = *state;
	uint64_t far = stage_status(s, 0).clock + CLOCK_JUMP_MAX / 2;
	/* Each step is allowed; all of them together are not. */
	for (int i = 0; i < 3; i++, far += CLOCK_JUMP_MAX / 2) {
		struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
			.key = slice_str("far"), .lock_id = stage_lock((uint8_t)(90 + i)),
			.token = far, .lease_us = 100, .ballot = { far, 1, 1 } };
		stage_isolate(s, 2, true);
		stage_cut(s, 0, 1, false);
		stage_inject(s, 1, 0, &m);
		stage_settle(s);
		stage_wait(s, CLOCK_JUMP_MAX / 2 + SPAN_S);
	}
	stage_isolate(s, 2, false);
	stage_wait(s, 60 * SPAN_MS);
	assert_true(stage_noted(s, 2, NOTE_CLOCK_BEHIND));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_true(stage_status(s, 2).clock > CLOCK_JUMP_MAX);
	take(s, 2, "k", stage_lock(1));
}

UNIT(cluster_rules) {
	const struct CMUnitTest tests[] = {
		NAMED(a_master_that_missed_the_commit_is_repaired_when_its_link_is_up),
		NAMED(no_master_is_sent_a_released_record_for_repair),
		NAMED(an_extension_repairs_masters_that_lack_the_record_with_its_value_too),
		NAMED(a_lock_that_only_one_master_still_has_is_unsure_to_who_keeps_no_deadline),
		NAMED(a_release_is_sent_again_to_a_master_that_missed_it),
		NAMED(a_release_is_sent_again_long_after_the_time_of_its_round),
		NAMED(a_record_left_behind_by_a_failed_commit_goes_with_a_release),
		NAMED(a_quorum_read_counts_a_master_that_does_not_vote_as_silent),
		NAMED(a_contested_key_is_granted_to_nobody),
		NAMED(a_contested_key_is_extended_only_after_every_earlier_round_is_over),
		NAMED(a_contested_key_ends_with_a_release_or_the_end_of_a_lease),
		NAMED(a_master_far_behind_the_others_clocks_stops_voting_and_rejoins),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
