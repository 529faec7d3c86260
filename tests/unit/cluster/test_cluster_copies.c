/* What ends at a source while it is being copied has ended for those who copy (docs/protocol.md,
 * sections 4 and 6). */
#include <stdio.h>

#include "copies.h"

/* ---- while masters copy ahead ---- */

static void a_lock_that_ended_with_its_connection_is_not_extended_after_the_change(void **state) {
	struct stage *s = *state;
	uint64_t id = window(s, "567", 3);
	take_bound(s, "k", 1, 1, 0);
	close_connection(s, "k", 1, 1);
	take(s, 1, "k", stage_lock(2));
	decide(s, id, 3);
	/* The process has been started again. */
	assert_int_not_equal(extend(s, 5, "k", stage_lock(1), LEASE, false), PAWL_OK);
	assert_int_equal(extend(s, 6, "k", stage_lock(2), LEASE, false), PAWL_OK);
	assert_true(holds(s, 4, "k", stage_lock(2)));
}

static void a_lock_that_ended_with_its_node_is_not_extended_after_the_change(void **state) {
	struct stage *s = *state;
	take_with_node(s);
	uint64_t id = window(s, "567", 3);
	stage_kill(s, HOLDER);
	stage_wait(s, GRACE + 5 * SPAN_MS);
	take(s, 1, "k", stage_lock(2));
	decide(s, id, 3);
	assert_int_not_equal(extend(s, 5, "k", stage_lock(1), LEASE, false), PAWL_OK);
	assert_true(holds(s, 4, "k", stage_lock(2)));
}

static void what_was_rolled_back_has_no_earlier_token_after_the_change(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(9));
	uint64_t id = window(s, "567", 3);
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_true(knows(s, 1, "a", stage_lock(1)));
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	uint64_t token = take(s, 2, "a", stage_lock(3));
	assert_int_equal(release(s, 2, "a", stage_lock(3)), PAWL_OK);
	decide(s, id, 3);
	/* The request is repeated. */
	assert_true(take(s, 4, "a", stage_lock(1)) > token);
}

/* n4's copy of X's lease still has the travel time left when the lease is over at the sources. */
static void expire_under_way(struct stage *s, uint64_t *id, uint64_t *token) {
	*id = window(s, "567", 3);
	for (uint32_t from = 0; from < 3; from++) {
		for (uint32_t to = 4; to < 7; to++) {
			s->held[from][to] = true;
		}
	}
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), SHORT, 0)), PAWL_OK);
	stage_wait(s, SHORT - 5 * SPAN_MS);
	memset(s->held, 0, sizeof s->held);
	stage_settle(s);
	/* The lease is over at the sources, but not at n4. */
	stage_wait(s, 10 * SPAN_MS);
	*token = take(s, 1, "k", stage_lock(2));
	assert_int_equal(release(s, 1, "k", stage_lock(2)), PAWL_OK);
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, false);
	int64_t end = s->now + SHORT - 15 * SPAN_MS;
	while (stage_count(s, COUNT_handover) < 3 && s->now < end) {
		stage_wait(s, SPAN_MS);
	}
	assert_int_equal(stage_count(s, COUNT_handover), 3);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_used), 3);
}

static void a_lease_that_is_over_at_the_sources_is_not_extended_after_the_change(void **state) {
	struct stage *s = *state;
	uint64_t id, token;
	expire_under_way(s, &id, &token);
	assert_int_not_equal(extend(s, 5, "k", stage_lock(1), LEASE, false), PAWL_OK);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
}

static void a_lease_that_is_over_at_the_sources_has_no_earlier_token_after_the_change(
	void **state) {
	struct stage *s = *state;
	uint64_t id, token;
	expire_under_way(s, &id, &token);
	assert_true(take(s, 4, "k", stage_lock(1)) > token);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
}

/* X's extension reaches n2 alone. Like n1 it is a source, and X's lease is over there. X is copied,
 * and counts as one that n1 lacks. */
static void a_source_that_lost_a_lock_counts_as_one_that_lacks_it(void **state) {
	struct stage *s = *state;
	uint64_t id = window(s, "567", 3), token, noted;
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(1), SHORT, 0)), PAWL_OK);
	lose_to(s, 0, MESSAGE_EXTEND, true);
	lose_to(s, 2, MESSAGE_EXTEND, true);
	assert_int_not_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	stage_wait(s, SHORT + 5 * SPAN_MS);
	lose_to(s, 0, MESSAGE_EXTEND, false);
	lose_to(s, 2, MESSAGE_EXTEND, false);
	uint64_t next = take(s, 0, "k", stage_lock(2));
	assert_int_equal(release(s, 2, "k", stage_lock(2)), PAWL_OK);
	decide(s, id, 3);
	assert_true(core_peek(s->nodes[4].core, slice_str("k"), stage_lock(1), &token, &noted));
	assert_true(noted >= next);
	assert_int_not_equal(extend(s, 5, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

/* X is released at n1 and n3. n2, which like n1 is a source, has not heard of the release and still
 * has X. */
static void a_release_that_another_source_missed_reaches_the_copy(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t id = window(s, "567", 3);
	lose_to(s, 1, MESSAGE_RELEASE, true);
	assert_int_equal(release(s, HOLDER, "k", stage_lock(1)), PAWL_OK);
	/* The holder's node would say so again. */
	stage_kill(s, HOLDER);
	assert_true(knows(s, 1, "k", stage_lock(1)));
	decide(s, id, 3);
	assert_false(knows(s, 4, "k", stage_lock(1)));
	take(s, 5, "k", stage_lock(2));
}

/* X has given permit 1 up. It has run out at the sources, and Y has had it since. */
static uint64_t run_out_under_way(struct stage *s) {
	uint64_t id = window(s, "567", 3);
	struct core_request r = permits_request("s", stage_lock(1), 2, 2, 0);
	r.lease = SHORT;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	r = stage_request(CORE_EXTEND, "s", stage_lock(1));
	r.lease = LEASE;
	r.deadline_kept = true;
	r.terms.set.w[0] = 1;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_wait(s, SHORT + 5 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_permits_run_out), 3);
	assert_int_equal(take_permits(s, 1, "s", stage_lock(2), 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 2);
	const uint64_t token = stage_last(s)->r.token;
	assert_int_equal(release(s, 1, "s", stage_lock(2)), PAWL_OK);
	decide(s, id, 3);
	return token;
}

static void a_number_that_ran_out_at_the_sources_is_not_extended_after_the_change(void **state) {
	struct stage *s = *state;
	run_out_under_way(s);
	/* The holder's process has been started again. */
	struct core_request r = stage_request(CORE_EXTEND, "s", stage_lock(1));
	r.lease = LEASE;
	assert_true(stage_do(s, 5, r) == PAWL_EUNSURE || stage_last(s)->r.terms.set.w[0] == 1);
}

static void a_number_that_ran_out_at_the_sources_has_no_earlier_token_after_the_change(
	void **state) {
	struct stage *s = *state;
	const uint64_t token = run_out_under_way(s);
	assert_int_equal(take_permits(s, 4, "s", stage_lock(1), 2, 2), PAWL_OK);
	assert_true(stage_last(s)->r.token > token);
}

/* ---- while a master rejoins ---- */

/* More records than one piece of a snapshot has. */
#define MANY 300

static void what_ends_while_a_master_rejoins_has_ended_there(void **state) {
	struct stage *s = *state;
	char name[16];
	s->options.unchecked = true;
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "k%u", i);
		struct core_request r = stage_acquire(name, stage_lock((uint8_t)i), LEASE, 0);
		r.lock_id.b[15] = (uint8_t)(i >> 8);
		r.terms.binding = 1;
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	stage_stop(s, 2, 0, MESSAGE_SNAPSHOT_GO_ON, true);
	stage_stop(s, 2, 1, MESSAGE_SNAPSHOT_GO_ON, true);
	stage_mend(s);
	/* The first pieces have arrived by then. */
	stage_wait(s, 140 * SPAN_MS);
	assert_int_not_equal(state_of(s, 2), CORE_VOTING);
	uint32_t there = 0;
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "k%u", i);
		struct core_request r = stage_request(CORE_RELEASE, name, stage_lock((uint8_t)i));
		r.lock_id.b[15] = (uint8_t)(i >> 8);
		r.binding = 1;
		there += knows(s, 2, name, r.lock_id);
		stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	assert_true(there > 200);
	stage_stop(s, 2, 0, MESSAGE_SNAPSHOT_GO_ON, false);
	stage_stop(s, 2, 1, MESSAGE_SNAPSHOT_GO_ON, false);
	stage_settle(s);
	assert_true(stage_until_voting(s, 2, SPAN_S));
	stage_wait(s, 5 * SPAN_MS);
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "k%u", i);
		struct id128 lock = stage_lock((uint8_t)i);
		lock.b[15] = (uint8_t)(i >> 8);
		assert_false(knows(s, 2, name, lock));
	}
}

/* n3 never has the whole of n1's snapshot, and n2 is away. n3 asks so often that all bits of tries
 * are used up, and votes by waiting. It may have had anything that it has by then from anybody,
 * whatever came between. */
static void what_was_merged_before_a_vote_by_waiting_counts_as_noted_then(void **state) {
	struct stage *s = *state;
	char name[16], known[16] = "";
	s->options.unchecked = true;
	for (uint32_t i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "k%u", i);
		struct core_request r = stage_acquire(name, stage_lock((uint8_t)i), 10 * SPAN_S, 0);
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	stage_kill(s, 1);
	stage_kill(s, 2);
	stage_lose(s, 2, 0, MESSAGE_SNAPSHOT_GO_ON, true);
	assert_true(stage_start(s, 2));
	stage_mend(s);
	stage_wait(s, 200 * SPAN_MS);
	uint8_t lock = 0;
	for (uint32_t i = 0; i < 100; i++) {
		snprintf(name, sizeof name, "k%u", i);
		if (knows(s, 2, name, stage_lock((uint8_t)i))) {
			memcpy(known, name, sizeof known);
			lock = (uint8_t)i;
		}
	}
	assert_true(known[0]);
	/* n1 alone lengthens the lease. */
	for (int i = 0; i < 25; i++) {
		(void)extend(s, 0, known, stage_lock(lock), 10 * SPAN_S, true);
		stage_wait(s, 400 * SPAN_MS);
	}
	assert_int_not_equal(state_of(s, 2), CORE_VOTING);
	/* The bits of the tries were used up. */
	assert_true(stage_count(s, COUNT_merge_swept) > 0);
	stage_wait(s, SPAN_S);
	assert_int_equal(state_of(s, 2), CORE_VOTING);
	assert_int_equal(count_of(s, 2, COUNT_waited), 1);
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[2].core, slice_str(known), stage_lock(lock), &token,
		&noted));
	/* n3 noted its own clock, which began at the clock reservation. */
	assert_true(noted >= token && noted >= CEILING_BLOCK);
	core_check(s->nodes[2].core);
}

UNIT(cluster_copies) {
	const struct CMUnitTest tests[] = {
		COPIES(a_lock_that_ended_with_its_connection_is_not_extended_after_the_change),
		COPIES(a_lock_that_ended_with_its_node_is_not_extended_after_the_change),
		COPIES(what_was_rolled_back_has_no_earlier_token_after_the_change),
		COPIES(a_lease_that_is_over_at_the_sources_is_not_extended_after_the_change),
		COPIES(a_lease_that_is_over_at_the_sources_has_no_earlier_token_after_the_change),
		COPIES(a_source_that_lost_a_lock_counts_as_one_that_lacks_it),
		COPIES(a_release_that_another_source_missed_reaches_the_copy),
		COPIES(a_number_that_ran_out_at_the_sources_is_not_extended_after_the_change),
		COPIES(a_number_that_ran_out_at_the_sources_has_no_earlier_token_after_the_change),
		COPIES(what_ends_while_a_master_rejoins_has_ended_there),
		COPIES(what_was_merged_before_a_vote_by_waiting_counts_as_noted_then),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
