/* A master of a new epoch votes after a handover from enough masters of the previous epoch
 * (docs/protocol.md, section 6). */
#include <stdio.h>

#include "members.h"

/* The longest lease as others measure it: max_lease (1 + 2 drift). */
#define LONGEST (10 * SPAN_S + 200 * SPAN_MS)

/* Begins a change to a whole new set, n4 to n6, which hears the end of no snapshot. */
static void begin(struct stage *s) {
	for (uint32_t i = 3; i < 6; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, true);
	}
	(void)ask_change(s, 0, set_of("456"));
	for (uint32_t i = 3; i < 6; i++) {
		assert_true(wait_until_epoch(s, i, 2, SPAN_S));
		assert_int_equal(state_of(s, i), CORE_HANDOVER);
	}
}

static void hear_again(struct stage *s) {
	for (uint32_t i = 3; i < 6; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, false);
	}
}

static void restart(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	assert_true(stage_start(s, node));
}

static uint32_t voters(const struct stage *s) {
	uint32_t n = 0;
	for (uint32_t i = 3; i < 6; i++) {
		n += state_of(s, i) == CORE_VOTING;
	}
	return n;
}

/* ---- enough sources ---- */

static void one_source_of_three_is_not_enough(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	begin(s);
	stage_kill(s, 1);
	stage_kill(s, 2);
	hear_again(s);
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(voters(s), 0);
	/* n2 has forgotten what it knew. */
	assert_true(stage_start(s, 1));
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(voters(s), 0);
}

static void two_sources_of_three_are_enough(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	begin(s);
	stage_kill(s, 2);
	hear_again(s);
	stage_wait(s, SPAN_S);
	assert_int_equal(voters(s), 3);
	assert_int_equal(stage_count(s, COUNT_source_remembers), 6);
	assert_true(holds(s, 3, "k", stage_lock(1)));
}

/* n1 alone hears that the decree is chosen; the others go on granting in the previous epoch. */
static void a_master_that_has_not_adopted_the_epoch_is_no_source(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 1; i < 3; i++) {
		lose_choices(s, i, true);
		/* They do not finish the decree themselves, either. */
		lose_to(s, i, MESSAGE_DECREE_PROMISE, true);
	}
	(void)ask_change(s, 0, set_of("456"));
	assert_true(wait_until_epoch(s, 3, 2, SPAN_S));
	stage_wait(s, SPAN_S);
	assert_int_equal(epoch_of(s, 1), 1);
	assert_int_equal(epoch_of(s, 2), 1);
	assert_int_equal(voters(s), 0);
	/* n2 and n3 are a quorum of epoch 1. */
	take(s, 1, "k", stage_lock(1));
	lose_choices(s, 1, false);
	lose_choices(s, 2, false);
	stage_wait(s, SPAN_S);
	assert_int_equal(voters(s), 3);
	assert_true(holds(s, 4, "k", stage_lock(1)));
}

/* ---- sources that have forgotten ---- */

static void a_source_restarted_after_adopting_counts_when_the_longest_lease_is_over(void **state) {
	struct stage *s = *state;
	begin(s);
	stage_kill(s, 0);
	restart(s, 1);
	restart(s, 2);
	hear_again(s);
	stage_wait(s, LONGEST - SPAN_S);
	assert_int_equal(voters(s), 0);
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(voters(s), 3);
	assert_int_equal(stage_count(s, COUNT_source_forgot), 6);
	assert_int_equal(stage_count(s, COUNT_source_remembers), 0);
}

static void a_source_that_was_recovering_when_it_adopted_has_forgotten(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	for (uint32_t i = 1; i < 6; i++) {
		stage_lose(s, 0, i, MESSAGE_DECREE_ACCEPT, true);
		/* n3 is no help to them. */
		stage_lose(s, 2, i, MESSAGE_SNAPSHOT_END, true);
		stage_lose(s, i, 1, MESSAGE_SNAPSHOT_END, true);
	}
	stage_lose(s, 0, 1, MESSAGE_SNAPSHOT_END, true);
	(void)ask_change(s, 0, set_of("456"));
	/* The copies are there, and nothing is decided. */
	stage_wait(s, 20 * SPAN_MS);
	restart(s, 1);
	stage_wait(s, 20 * SPAN_MS);
	/* What is on n2's disk is enough for the decree. */
	assert_int_equal(state_of(s, 1), CORE_RECOVERING);
	for (uint32_t i = 1; i < 6; i++) {
		stage_lose(s, 0, i, MESSAGE_DECREE_ACCEPT, false);
	}
	assert_true(wait_until_epoch(s, 3, 2, SPAN_S));
	assert_true(wait_until_epoch(s, 1, 2, SPAN_S));
	stage_kill(s, 2);
	stage_wait(s, LONGEST - SPAN_S);
	assert_int_equal(voters(s), 0);
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(voters(s), 3);
	assert_int_equal(stage_count(s, COUNT_source_forgot), 3);
	assert_int_equal(stage_count(s, COUNT_source_remembers), 3);
}

static void the_clock_of_a_source_that_has_forgotten_is_its_reservation(void **state) {
	struct stage *s = *state;
	begin(s);
	uint64_t ceiling = s->nodes[1].disk.ceiling;
	assert_true(ceiling >= CEILING_BLOCK);
	stage_kill(s, 0);
	restart(s, 1);
	restart(s, 2);
	hear_again(s);
	stage_wait(s, LONGEST + SPAN_S);
	assert_int_equal(voters(s), 3);
	assert_true(take(s, 3, "k", stage_lock(1)) > ceiling);
}

static void noted(const struct stage *s, uint32_t node, uint64_t *token, uint64_t *clock) {
	assert_true(core_peek(s->nodes[node].core, slice_str("k"), stage_lock(1), token, clock));
}

/* n2 adopts the epoch and forgets while n1 and n3 go on granting. What they granted ends later than
 * the wait for n2. */
static void a_source_that_has_forgotten_counts_as_having_noted_its_reservation(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i += 2) {
		lose_choices(s, i, true);
		lose_to(s, i, MESSAGE_DECREE_PROMISE, true);
	}
	for (uint32_t i = 3; i < 6; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, true);
	}
	(void)ask_change(s, 1, set_of("456"));
	assert_true(wait_until_epoch(s, 3, 2, SPAN_S));
	restart(s, 1);
	hear_again(s);
	stage_wait(s, LONGEST - SPAN_S / 2);
	assert_int_equal(epoch_of(s, 0), 1);
	take(s, 0, "k", stage_lock(1));
	stage_kill(s, 2);
	lose_choices(s, 0, false);
	stage_wait(s, SPAN_S);
	assert_int_equal(voters(s), 3);
	uint64_t token, clock;
	noted(s, 3, &token, &clock);
	assert_true(clock >= s->nodes[1].disk.ceiling);
	assert_true(clock >= token);
}

/* ---- a source that never voted ---- */

static void a_source_that_never_voted_in_the_previous_epoch_counts_at_once(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, true);
	(void)ask_change(s, 0, change_of(CHANGE_PROMOTE, "n4"));
	assert_true(wait_until_epoch(s, 3, 3, SPAN_S));
	/* That change is answered; n4 has not voted. */
	stage_wait(s, 11 * SPAN_S);
	assert_int_equal(state_of(s, 3), CORE_HANDOVER);
	take(s, 0, "k", stage_lock(1));
	/* Of the four masters of the previous epoch, each one hears only itself and n4. */
	for (uint32_t i = 0; i < 3; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, true);
		stage_lose(s, 3, i, MESSAGE_SNAPSHOT_END, false);
	}
	uint64_t id = ask_change(s, 1, change_of(CHANGE_REMOVE, "n4"));
	assert_true(wait_until_epoch(s, 0, 4, 2 * SPAN_S));
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_int_equal(state_of(s, 0), CORE_VOTING);
	assert_true(stage_count(s, COUNT_source_never_voted) >= 3);
	assert_true(holds(s, 0, "k", stage_lock(1)));
}

/* ---- the mark ---- */

static void voted_is_on_disk_before_the_first_vote(void **state) {
	struct stage *s = *state;
	begin(s);
	for (uint32_t i = 3; i < 6; i++) {
		s->nodes[i].disk_held = true;
	}
	hear_again(s);
	stage_wait(s, SPAN_S);
	assert_int_equal(voters(s), 0);
	for (uint32_t i = 3; i < 6; i++) {
		assert_false(s->nodes[i].disk.voted);
		s->nodes[i].disk_held = false;
		stage_flush(s, i);
		assert_true(s->nodes[i].disk.voted);
	}
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(voters(s), 3);
}

static void a_master_that_never_voted_in_the_epoch_does_not_come_in_by_waiting(void **state) {
	struct stage *s = *state;
	begin(s);
	stage_wait(s, 3 * LONGEST);
	assert_int_equal(voters(s), 0);
	restart(s, 3);
	stage_wait(s, 3 * LONGEST);
	assert_int_equal(state_of(s, 3), CORE_HANDOVER);
}

static void a_master_that_has_voted_in_the_epoch_comes_back_by_rejoining(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	must(s, 0, set_of("456"));
	restart(s, 4);
	assert_int_equal(state_of(s, 4), CORE_RECOVERING);
	stage_wait(s, 50 * SPAN_MS);
	/* It does not vote before the rounds of the previous epoch are over. */
	assert_int_equal(state_of(s, 4), CORE_RECOVERING);
	assert_true(stage_until_voting(s, 4, SPAN_S));
	assert_int_equal(count_of(s, 4, COUNT_handover), 0);
	assert_int_equal(count_of(s, 4, COUNT_rejoin), 1);
	assert_true(knows(s, 4, "k", stage_lock(1)));
}

static void a_late_master_may_rejoin_from_those_that_vote_already(void **state) {
	struct stage *s = *state;
	lose_to(s, 5, MESSAGE_SNAPSHOT_END, true);
	const struct stage_reply *r = await(s, ask_change(s, 0, set_of("456")));
	assert_int_equal(r->r.error, PAWL_OK);
	take(s, 3, "k", stage_lock(1));
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	lose_to(s, 5, MESSAGE_SNAPSHOT_END, false);
	assert_true(stage_until_voting(s, 5, SPAN_S));
	assert_int_equal(count_of(s, 5, COUNT_handover_rejoined), 1);
	assert_true(knows(s, 5, "k", stage_lock(1)));
}

/* ---- what is merged ---- */

static void a_source_that_lacks_a_record_counts_as_having_noted_its_clock(void **state) {
	struct stage *s = *state;
	static const enum message_kind kinds[] = { MESSAGE_COMMIT, MESSAGE_LEARN,
		MESSAGE_SYNC_RECORD, MESSAGE_PROMISE };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		lose_to(s, 1, kinds[i], true);
	}
	take(s, 0, "k", stage_lock(1));
	assert_false(knows(s, 1, "k", stage_lock(1)));
	/* n4 hears n1 and n2 at last. */
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, true);
	lose_to(s, 4, MESSAGE_SNAPSHOT_END, true);
	stage_lose(s, 0, 3, MESSAGE_SNAPSHOT_END, false);
	stage_lose(s, 1, 3, MESSAGE_SNAPSHOT_END, false);
	/* n5 hears n1 and n3, which have the lock. */
	stage_lose(s, 0, 4, MESSAGE_SNAPSHOT_END, false);
	stage_lose(s, 2, 4, MESSAGE_SNAPSHOT_END, false);
	(void)ask_change(s, 0, set_of("456"));
	assert_true(wait_until_epoch(s, 3, 2, SPAN_S));
	assert_true(stage_until_voting(s, 3, SPAN_S));
	assert_true(stage_until_voting(s, 4, SPAN_S));
	/* The sweep takes this time. */
	stage_wait(s, 10 * SPAN_MS);
	uint64_t token, clock;
	noted(s, 3, &token, &clock);
	assert_true(clock >= token);
	noted(s, 4, &token, &clock);
	assert_true(clock < token);
	assert_true(stage_count(s, COUNT_merge_swept) > 0);
}

static void what_is_released_during_the_change_does_not_come_back(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	/* The copies are there, and the decree waits. */
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, true);
	uint64_t id = ask_change(s, 0, set_of("456"));
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_ready), 3);
	assert_int_equal(epoch_of(s, 0), 1);
	assert_int_equal(release(s, 1, "k", stage_lock(1)), PAWL_OK);
	uint64_t token = take(s, 2, "k", stage_lock(2));
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, false);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_used), 3);
	/* Nothing is copied twice, however long the decree took. */
	assert_int_equal(stage_count(s, COUNT_copy_ahead_broken), 0);
	stage_wait(s, 100 * SPAN_MS);
	for (uint32_t i = 3; i < 6; i++) {
		assert_false(knows(s, i, "k", stage_lock(1)));
		assert_true(knows(s, i, "k", stage_lock(2)));
	}
	assert_true(holds(s, 4, "k", stage_lock(2)));
	assert_true(token > 0);
}

static void a_source_keeps_what_it_knows_until_all_masters_vote(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	/* n6 is late, because it hears nobody. */
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, 5, MESSAGE_SNAPSHOT_END, true);
		stage_lose(s, 3 + i, 5, MESSAGE_SNAPSHOT_END, true);
	}
	(void)ask_change(s, 0, set_of("456"));
	assert_true(wait_until_epoch(s, 5, 2, SPAN_S));
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(voters(s), 2);
	assert_true(knows(s, 0, "k", stage_lock(1)));
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, 5, MESSAGE_SNAPSHOT_END, false);
	}
	assert_true(stage_until_voting(s, 5, SPAN_S));
	assert_int_equal(count_of(s, 5, COUNT_handover), 1);
	assert_true(knows(s, 5, "k", stage_lock(1)));
}

static void many_leases_go_over_while_they_are_extended_and_released(void **state) {
	struct stage *s = *state;
	char name[16];
	s->options.unchecked = true;
	for (uint8_t i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "key%u", i);
		assert_int_equal(stage_do(s, 0, stage_acquire(name, stage_lock(i), 5 * SPAN_S, 0)),
			PAWL_OK);
	}
	uint64_t id = ask_change(s, 0, set_of("456"));
	for (uint8_t i = 0; !answered(s, id); i = (uint8_t)((i + 1) % 200)) {
		snprintf(name, sizeof name, "key%u", i);
		if (i % 10 == 0) {
			(void)stage_ask(s, 1, stage_request(CORE_RELEASE, name, stage_lock(i)));
		} else {
			struct core_request r = stage_request(CORE_EXTEND, name, stage_lock(i));
			r.lease = 5 * SPAN_S;
			(void)stage_ask(s, 2, r);
		}
		stage_wait(s, SPAN_MS / 2);
	}
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	stage_wait(s, 200 * SPAN_MS);
	for (uint8_t i = 0; i < 200; i++) {
		snprintf(name, sizeof name, "key%u", i);
		for (uint32_t node = 4; node < 6; node++) {
			assert_int_equal(knows(s, node, name, stage_lock(i)),
				knows(s, 3, name, stage_lock(i)));
		}
		assert_true(i % 10 == 0 || knows(s, 3, name, stage_lock(i)));
	}
}

UNIT(cluster_handover) {
	const struct CMUnitTest tests[] = {
		MEMBERS_3(a_master_that_never_voted_in_the_epoch_does_not_come_in_by_waiting),
		MEMBERS_3(one_source_of_three_is_not_enough),
		MEMBERS_3(two_sources_of_three_are_enough),
		MEMBERS_3(a_master_that_has_not_adopted_the_epoch_is_no_source),
		MEMBERS_3(a_source_restarted_after_adopting_counts_when_the_longest_lease_is_over),
		MEMBERS_3(a_source_that_was_recovering_when_it_adopted_has_forgotten),
		MEMBERS_3(the_clock_of_a_source_that_has_forgotten_is_its_reservation),
		MEMBERS_3(a_source_that_has_forgotten_counts_as_having_noted_its_reservation),
		MEMBERS(a_source_that_never_voted_in_the_previous_epoch_counts_at_once),
		MEMBERS_3(voted_is_on_disk_before_the_first_vote),
		MEMBERS_3(a_master_that_has_voted_in_the_epoch_comes_back_by_rejoining),
		MEMBERS_3(a_late_master_may_rejoin_from_those_that_vote_already),
		MEMBERS_3(a_source_that_lacks_a_record_counts_as_having_noted_its_clock),
		MEMBERS_3(what_is_released_during_the_change_does_not_come_back),
		MEMBERS_3(a_source_keeps_what_it_knows_until_all_masters_vote),
		MEMBERS_3(many_leases_go_over_while_they_are_extended_and_released),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
