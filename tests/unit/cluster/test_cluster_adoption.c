/* These tests are about operations, promises and nodes at the moment when a configuration is
 * adopted (docs/protocol.md, section 6). */
#include "members.h"

/* n3 does not hear of epoch 2, in which n1 and n2 vote. */
static void leave_the_third_behind(struct stage *s) {
	lose_choices(s, 2, true);
	uint64_t id = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	assert_int_equal(epoch_of(s, 1), 2);
	assert_int_equal(epoch_of(s, 2), 1);
	(void)id;
}

static void nothing_is_accepted_under_the_previous_epoch(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	leave_the_third_behind(s);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	uint64_t change = ask_change(s, 2, max_lease_of(8 * SPAN_S)), extended = stage_ask(s, 2, r);
	uint64_t got = stage_ask(s, 2, stage_acquire("free", stage_lock(2), LEASE, 0));
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(stage_answer(s, got)->r.error, PAWL_ENOQUORUM);
	assert_int_not_equal(stage_answer(s, extended)->r.error, PAWL_OK);
	assert_false(knows(s, 0, "free", stage_lock(2)));
	assert_false(knows(s, 1, "free", stage_lock(2)));
	assert_int_equal(stage_status(s, 0).promises, 0);
	assert_true(stage_count(s, COUNT_wrong_epoch) > 0);
	lose_choices(s, 2, false);
	assert_int_equal(await(s, change)->r.error, PAWL_EMISMATCH);
	assert_int_equal(epoch_of(s, 2), 2);
}

static void an_epoch_takes_effect_when_it_is_on_disk(void **state) {
	struct stage *s = *state;
	uint64_t id = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_stop(s, 0, 2, MESSAGE_CONFIG, true);
	stage_stop(s, 1, 2, MESSAGE_CONFIG, true);
	stage_lose(s, 0, 2, MESSAGE_DECREE_ACCEPTED, true);
	stage_lose(s, 1, 2, MESSAGE_DECREE_ACCEPTED, true);
	stage_settle(s);
	s->nodes[2].disk_held = true;
	stage_stop(s, 0, 2, MESSAGE_CONFIG, false);
	stage_stop(s, 1, 2, MESSAGE_CONFIG, false);
	stage_settle(s);
	assert_int_equal(epoch_of(s, 2), 1);
	assert_int_equal(s->nodes[2].disk.config.epoch, 1);
	s->nodes[2].disk_held = false;
	stage_flush(s, 2);
	assert_int_equal(epoch_of(s, 2), 2);
	assert_int_equal(s->nodes[2].disk.config.epoch, 2);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
}

/* One source is lost again and again, until the state transfer has to begin anew. The mark that was
 * made before that is still on its way. */
static void a_node_that_begins_its_state_transfer_anew_votes_when_its_mark_is_on_disk(
	void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, i, 3, MESSAGE_SNAPSHOT_END, true);
	}
	(void)ask_change(s, 0, set_of("124"));
	assert_true(wait_until_epoch(s, 3, 2, 2 * SPAN_S));
	assert_int_equal(state_of(s, 3), CORE_HANDOVER);
	s->nodes[3].disk_held = true;
	stage_stop(s, 0, 3, MESSAGE_SNAPSHOT_END, false);
	stage_stop(s, 1, 3, MESSAGE_SNAPSHOT_END, false);
	stage_settle(s);
	for (uint32_t i = 0; i < 40; i++) {
		stage_cut(s, 2, 3, true);
		stage_wait(s, 60 * SPAN_MS);
		stage_cut(s, 2, 3, false);
		stage_mend(s);
		stage_wait(s, 60 * SPAN_MS);
		assert_int_equal(state_of(s, 3), CORE_HANDOVER);
	}
	s->nodes[3].disk_held = false;
	stage_flush(s, 3);
	stage_settle(s);
	assert_int_equal(state_of(s, 3), CORE_VOTING);
}

static void promises_end_with_the_epoch(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, true);
	stage_stop(s, 1, 2, MESSAGE_PROMISE_ANSWER, true);
	(void)stage_ask(s, 2, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_int_equal(stage_status(s, 1).promises, 1);
	/* n3 does not hear of it, and does not begin anew. */
	stage_stop(s, 0, 2, MESSAGE_CONFIG, true);
	stage_stop(s, 1, 2, MESSAGE_CONFIG, true);
	struct core_change c = max_lease_of(9 * SPAN_S);
	struct core_request r = { .op = CORE_CHANGE, .change = &c, .admin = true, .client = 100 };
	(void)stage_ask(s, 0, r);
	stage_settle(s);
	assert_int_equal(epoch_of(s, 1), 2);
	assert_int_equal(stage_status(s, 0).promises, 0);
	assert_int_equal(stage_status(s, 1).promises, 0);
	/* Nothing is in the way of this acquire. */
	take(s, 0, "k", stage_lock(2));
}

static void a_waiter_goes_on_waiting_with_its_place(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t first = wait_for(s, 1, "k", stage_lock(2));
	stage_wait(s, 20 * SPAN_MS);
	uint64_t second = wait_for(s, 2, "k", stage_lock(3));
	must(s, 0, set_of("124"));
	stage_wait(s, 50 * SPAN_MS);
	assert_false(answered(s, first) || answered(s, second));
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	stage_wait(s, 50 * SPAN_MS);
	(void)token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(release(s, 1, "k", stage_lock(2)), PAWL_OK);
	stage_wait(s, 50 * SPAN_MS);
	/* Its node is in the cluster no more, and asks the masters nevertheless. */
	(void)token_of(s, second);
}

static void an_acquire_whose_commit_was_on_its_way_is_tried_again(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 2; i++) {
		stage_stop(s, 2, i, MESSAGE_COMMIT, true);
	}
	uint64_t id = stage_ask(s, 2, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_false(answered(s, id));
	struct core_change c = max_lease_of(9 * SPAN_S);
	struct core_request r = { .op = CORE_CHANGE, .change = &c, .admin = true, .client = 100 };
	uint64_t change = stage_ask(s, 0, r);
	/* The decree goes on without the links that stand. */
	stage_deliver(s, 0, 1);
	for (uint32_t i = 0; i < 2; i++) {
		stage_settle(s);
		stage_stop(s, 2, i, MESSAGE_COMMIT, false);
	}
	stage_settle(s);
	assert_int_equal(await(s, change)->r.error, PAWL_OK);
	assert_true(stage_count(s, COUNT_restarted_by_epoch) + answered(s, id) > 0);
	stage_wait(s, 50 * SPAN_MS);
	(void)token_of(s, id);
	assert_true(holds(s, 1, "k", stage_lock(1)));
}

static void an_update_that_may_have_been_written_is_unsure(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, 0, i, MESSAGE_WRITE, true);
	}
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str("v");
	uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	assert_false(answered(s, id));
	struct core_change c = max_lease_of(9 * SPAN_S);
	struct core_request change = { .op = CORE_CHANGE, .change = &c, .admin = true,
		.client = 100 };
	(void)stage_ask(s, 1, change);
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 2);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
}

/* n4 to n6 have adopted the epoch in which they are the masters, and lack what they need to
 * vote. */
static uint64_t stop_at_the_handover(struct stage *s) {
	for (uint32_t i = 3; i < 6; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, true);
	}
	uint64_t id = ask_change(s, 0, set_of("456"));
	for (uint32_t i = 3; i < 6; i++) {
		assert_true(wait_until_epoch(s, i, 2, SPAN_S));
		assert_int_equal(state_of(s, i), CORE_HANDOVER);
	}
	return id;
}

static void operations_are_parked_until_the_new_masters_vote(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	(void)stop_at_the_handover(s);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	uint64_t extended = stage_ask(s, 3, r),
		got = stage_ask(s, 4, stage_acquire("other", stage_lock(2), LEASE, 0));
	stage_settle(s);
	assert_false(answered(s, extended) || answered(s, got));
	assert_int_equal(stage_count(s, COUNT_suspended), 2);
	for (uint32_t i = 3; i < 6; i++) {
		lose_to(s, i, MESSAGE_SNAPSHOT_END, false);
		/* The snapshot is asked for again at once, on a new link. */
		for (uint32_t j = 0; j < 3; j++) {
			stage_break(s, i, j);
		}
	}
	stage_wait(s, 60 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_suspended_resumed), 2);
	(void)token_of(s, extended);
	(void)token_of(s, got);
}

static int setup_two_masters(void **state) {
	struct stage_options o = named_options();
	o.masters = 2;
	*state = stage_born(&o);
	return 0;
}

/* n1 has not heard of epoch 2, in which n2 is the only master. That n1 lacks a lock says nothing
 * about what n2 has granted since. */
static void what_the_next_epoch_granted_is_not_lost(void **state) {
	struct stage *s = *state;
	/* While both vote, a loss is certain when both have answered. */
	take(s, 0, "other", stage_lock(2));
	assert_int_equal(extend(s, 0, "other", stage_lock(3), LEASE, true), PAWL_ELOST);
	assert_int_equal(extend(s, 0, "free", stage_lock(3), LEASE, true), PAWL_ELOST);
	assert_int_equal(extend(s, 0, "free", stage_lock(3), LEASE, false), PAWL_ELOST);
	uint64_t both = stage_ask(s, 0, stage_request(CORE_UPDATE, "free", stage_lock(3)));
	stage_settle(s);
	assert_int_equal(stage_answer(s, both)->r.error, PAWL_ELOST);
	lose_choices(s, 0, true);
	(void)ask_change(s, 1, change_of(CHANGE_DEMOTE, "n1"));
	assert_true(wait_until_epoch(s, 1, 2, SPAN_S));
	assert_true(stage_until_voting(s, 1, SPAN_S));
	assert_int_equal(epoch_of(s, 0), 1);
	take(s, 1, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	uint64_t blind = stage_ask(s, 0, r);
	r.deadline_kept = true;
	uint64_t kept = stage_ask(s, 0, r);
	uint64_t updated = stage_ask(s, 0, stage_request(CORE_UPDATE, "k", stage_lock(1)));
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(epoch_of(s, 0), 1);
	assert_int_equal(stage_answer(s, blind)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(stage_answer(s, kept)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(stage_answer(s, updated)->r.error, PAWL_ENOQUORUM);
	assert_true(knows(s, 1, "k", stage_lock(1)));
}

static void what_was_parked_for_too_long_is_answered(void **state) {
	struct stage *s = *state;
	(void)stop_at_the_handover(s);
	uint64_t id = stage_ask(s, 3, stage_acquire("k", stage_lock(2), LEASE, 0));
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	assert_int_equal(stage_count(s, COUNT_suspended_expired), 1);
}

/* ---- who was away ---- */

static void a_removed_node_that_was_away_is_told(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	must(s, 0, change_of(CHANGE_REMOVE, "n3"));
	assert_int_equal(epoch_of(s, 2), 1);
	stage_isolate(s, 2, false);
	stage_wait(s, SPAN_S);
	assert_int_equal(state_of(s, 2), CORE_OUTSIDE);
}

static void a_master_that_was_away_for_two_epochs_takes_over_from_those_of_the_last(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	must(s, 0, change_of(CHANGE_DEMOTE, "n3"));
	const struct stage_reply *r = await(s, ask_change(s, 0, change_of(CHANGE_PROMOTE, "n3")));
	assert_int_equal(r->r.error, PAWL_OK);
	take(s, 0, "later", stage_lock(2));
	stage_isolate(s, 2, false);
	assert_true(wait_until_epoch(s, 2, 3, SPAN_S));
	assert_int_equal(count_of(s, 2, COUNT_config_skipped), 1);
	assert_true(stage_until_voting(s, 2, SPAN_S));
	assert_int_equal(count_of(s, 2, COUNT_handover) +
		count_of(s, 2, COUNT_handover_rejoined), 1);
	assert_true(knows(s, 2, "k", stage_lock(1)));
	assert_true(knows(s, 2, "later", stage_lock(2)));
}

static void another_configuration_under_the_same_number_ends_the_vote(void **state) {
	struct stage *s = *state;
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct config c = *core_config(s->nodes[0].core);
	c.max_lease = 9 * SPAN_S;
	struct message m = { .kind = MESSAGE_CONFIG };
	m.blob = slice_of(bytes, config_encode(&c, bytes));
	stage_inject(s, 1, 0, &m);
	stage_inject(s, 2, 0, &m);
	assert_int_equal(state_of(s, 0), CORE_RECOVERING);
	assert_true(stage_noted(s, 0, NOTE_CONFLICT));
	assert_int_equal(core_config(s->nodes[0].core)->max_lease, 10 * SPAN_S);
	/* It neither rejoins nor waits. */
	stage_wait(s, 30 * SPAN_S);
	assert_int_equal(state_of(s, 0), CORE_RECOVERING);
}

static void a_configuration_of_another_cluster_is_not_adopted(void **state) {
	struct stage *s = *state;
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct config c = *core_config(s->nodes[0].core);
	c.cluster_id.b[0] ^= 1;
	c.epoch = 7;
	struct message m = { .kind = MESSAGE_CONFIG };
	m.blob = slice_of(bytes, config_encode(&c, bytes));
	stage_inject(s, 1, 0, &m);
	stage_settle(s);
	assert_int_equal(epoch_of(s, 0), 1);
	assert_int_equal(state_of(s, 0), CORE_VOTING);
}

static void a_master_that_restarts_after_adopting_goes_on_in_the_new_epoch(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	must(s, 0, max_lease_of(9 * SPAN_S));
	stage_kill(s, 1);
	assert_true(stage_start(s, 1));
	assert_int_equal(epoch_of(s, 1), 2);
	assert_true(stage_until_voting(s, 1, SPAN_S));
	assert_int_equal(count_of(s, 1, COUNT_handover), 0);
	assert_true(knows(s, 1, "k", stage_lock(1)));
}

static void a_break_goes_on_with_the_lock_that_it_has_found(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	lose_to(s, 2, MESSAGE_BREAK_ANSWER, true);
	struct core_request r = stage_request(CORE_BREAK, "k", nobody);
	r.now = r.admin = true;
	uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	/* The change is done, and n3 does not know that yet. */
	assert_false(answered(s, id));
	uint64_t token = take(s, 0, "k", stage_lock(2));
	lose_to(s, 2, MESSAGE_BREAK_ANSWER, false);
	must(s, 0, max_lease_of(9 * SPAN_S));
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	assert_true(stage_answer(s, id)->r.token < token);
	assert_true(holds(s, 0, "k", stage_lock(2)));
}

static void a_recovery_by_waiting_does_not_begin_anew_with_an_epoch(void **state) {
	struct stage *s = *state;
	/* One voting master is not enough to rejoin from. */
	for (uint32_t i = 1; i < 3; i++) {
		stage_kill(s, i);
	}
	for (uint32_t i = 1; i < 3; i++) {
		assert_true(stage_start(s, i));
	}
	stage_mend(s);
	stage_wait(s, 6 * SPAN_S);
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	assert_true(wait_until_epoch(s, 1, 2, SPAN_S));
	assert_int_equal(state_of(s, 1), CORE_RECOVERING);
	assert_true(stage_until_voting(s, 1, 5 * SPAN_S));
	assert_true(stage_until_voting(s, 2, SPAN_S));
}

/* n6 hears the end of no snapshot of the previous epoch's masters. It comes in by rejoining from n4
 * and n5, which vote for the first time. */
static void what_those_bring_who_vote_for_the_first_time_stays(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, 5, MESSAGE_SNAPSHOT_END, true);
	}
	(void)ask_change(s, 0, set_of("456"));
	for (uint32_t i = 3; i < 6; i++) {
		assert_true(stage_until_voting(s, i, SPAN_S));
	}
	assert_int_equal(count_of(s, 5, COUNT_handover_rejoined), 1);
	/* What it has merged is finished piece by piece. */
	for (int64_t end = s->now + SPAN_S; s->now < end && !count_of(s, 5, COUNT_merge_swept);) {
		stage_wait(s, SPAN_MS);
	}
	assert_int_equal(count_of(s, 5, COUNT_merge_swept), 1);
	assert_true(knows(s, 5, "k", stage_lock(1)));
	assert_int_equal(stage_count(s, COUNT_merge_dropped), 0);
}

UNIT(cluster_adoption) {
	const struct CMUnitTest tests[] = {
		NAMED(nothing_is_accepted_under_the_previous_epoch),
		NAMED(an_epoch_takes_effect_when_it_is_on_disk),
		MEMBERS(a_node_that_begins_its_state_transfer_anew_votes_when_its_mark_is_on_disk),
		NAMED(promises_end_with_the_epoch),
		MEMBERS(a_waiter_goes_on_waiting_with_its_place),
		NAMED(an_acquire_whose_commit_was_on_its_way_is_tried_again),
		NAMED(an_update_that_may_have_been_written_is_unsure),
		MEMBERS_3(operations_are_parked_until_the_new_masters_vote),
		cmocka_unit_test_setup_teardown(what_the_next_epoch_granted_is_not_lost,
			setup_two_masters, named_teardown),
		MEMBERS_3(what_was_parked_for_too_long_is_answered),
		NAMED(a_removed_node_that_was_away_is_told),
		NAMED(a_master_that_was_away_for_two_epochs_takes_over_from_those_of_the_last),
		NAMED(another_configuration_under_the_same_number_ends_the_vote),
		NAMED(a_configuration_of_another_cluster_is_not_adopted),
		NAMED(a_master_that_restarts_after_adopting_goes_on_in_the_new_epoch),
		NAMED(a_break_goes_on_with_the_lock_that_it_has_found),
		NAMED(a_recovery_by_waiting_does_not_begin_anew_with_an_epoch),
		MEMBERS_3(what_those_bring_who_vote_for_the_first_time_stays),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
