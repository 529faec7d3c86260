/* These tests are about commits and writes that were never sent to a master, which is watched. It
 * finds out by counting that it has missed something (docs/protocol.md, section 3, Watching). */
#include "watched.h"

static void missed_events_of_all(struct stage *s) {
	const struct stage_event *missed = watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock);
	assert_int_equal(missed->key.size, 0);
}

/* Events were missed at once, and again when what was under way by then has ended. */
static void missed_events_of_all_twice(struct stage *s) {
	missed_events_of_all(s);
	stage_wait(s, 300 * SPAN_MS);
	missed_events_of_all(s);
	nothing_more(s);
}

static void behind_its_back(struct stage *s) {
	stage_cut(s, 0, N3, true);
	take(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	nothing_more(s);
}

static void a_link_that_is_back_reports_nothing_where_nothing_was_missed(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	stage_cut(s, 0, N3, true);
	stage_wait(s, SHORT);
	stage_cut(s, 0, N3, false);
	stage_wait(s, SHORT);
	nothing_more(s);
}

static void a_missed_write_is_reported_once_the_link_is_back(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	stage_cut(s, 0, N3, true);
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str("w");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	nothing_more(s);
	stage_cut(s, 0, N3, false);
	stage_wait(s, SHORT);
	missed_events_of_all(s);
	nothing_more(s);
}

/* The node's new start knows nothing of what the previous one granted. */
static void grants_of_a_node_that_restarted_with_its_link_down_are_missed(void **state) {
	struct stage *s = *state;
	behind_its_back(s);
	stage_kill(s, 0);
	stage_wait(s, SHORT);
	assert_true(stage_start(s, 0));
	stage_cut(s, 0, N3, false);
	stage_wait(s, 500 * SPAN_MS);
	missed_events_of_all_twice(s);
}

static void grants_of_a_node_that_died_with_its_link_down_are_missed(void **state) {
	struct stage *s = *state;
	behind_its_back(s);
	stage_kill(s, 0);
	stage_wait(s, 500 * SPAN_MS);
	missed_events_of_all_twice(s);
	stage_wait(s, SPAN_S);
	nothing_more(s);
}

/* n3 has never had a link with this start of n1. */
static void grants_of_a_node_that_died_before_its_link_was_up_are_missed(void **state) {
	struct stage *s = *state;
	stage_kill(s, 0);
	stage_cut(s, 0, N3, true);
	stage_wait(s, SHORT);
	assert_true(stage_start(s, 0) && stage_until_voting(s, 0, 20 * SPAN_S));
	stage_wait(s, SPAN_S);
	nothing_more(s);
	behind_its_back(s);
	stage_kill(s, 0);
	stage_wait(s, 500 * SPAN_MS);
	missed_events_of_all_twice(s);
}

static void a_node_that_dies_without_an_unseen_grant_means_no_missed_events(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	stage_kill(s, 0);
	stage_wait(s, SPAN_S);
	assert_true(stage_start(s, 0));
	stage_wait(s, SPAN_S);
	nothing_more(s);
}

static void cut_off(struct stage *s, bool cut) {
	stage_cut(s, 0, N3, cut);
	stage_cut(s, 1, N3, cut);
}

static void granted_while_n3_is_cut_off(struct stage *s) {
	cut_off(s, true);
	take(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
}

static void start_anew(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	stage_wait(s, SHORT);
	assert_true(stage_start(s, node));
}

/* Whoever reads anew when the first events were missed does not find the lock yet. */
static void what_was_under_way_when_the_link_was_back_is_reported_once_it_is_granted(void **state) {
	struct stage *s = *state;
	stage_cut(s, 0, N3, true);
	stage_stop(s, 0, 1, MESSAGE_COMMIT, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_cut(s, 0, N3, false);
	stage_wait(s, SHORT);
	missed_events_of_all(s);
	assert_false(answered(s, id));
	stage_cut(s, 0, N3, true);
	stage_stop(s, 0, 1, MESSAGE_COMMIT, false);
	stage_settle(s);
	token_of(s, id);
	release(s, 0, "k", stage_lock(1));
	stage_cut(s, 0, N3, false);
	nothing_more(s);
	stage_wait(s, 300 * SPAN_MS);
	missed_events_of_all(s);
	nothing_more(s);
}

/* n2 remembers what n1's start before the present one granted. Its link with n3 comes back long
 * after n1's. */
static void a_node_that_is_linked_late_is_told_what_an_earlier_start_granted(void **state) {
	struct stage *s = *state;
	granted_while_n3_is_cut_off(s);
	start_anew(s, 0);
	stage_cut(s, 0, N3, false);
	stage_wait(s, 3 * SPAN_S);
	nothing_more(s);
	stage_cut(s, 1, N3, false);
	stage_wait(s, SPAN_S);
	missed_events_of_all_twice(s);
}

/* The node grants nothing between its second start and its third; what is remembered of the first
 * one is kept. */
static void a_start_that_granted_nothing_does_not_hide_the_previous_one(void **state) {
	struct stage *s = *state;
	granted_while_n3_is_cut_off(s);
	start_anew(s, 0);
	stage_wait(s, SHORT);
	start_anew(s, 0);
	stage_wait(s, SPAN_S);
	cut_off(s, false);
	stage_wait(s, SPAN_S);
	missed_events_of_all_twice(s);
}

/* n2 remembers only the later of the two starts, which hid nothing from n3. */
static void a_start_that_hid_nothing_does_not_hide_the_previous_one(void **state) {
	struct stage *s = *state;
	granted_while_n3_is_cut_off(s);
	start_anew(s, 0);
	stage_cut(s, 0, N3, false);
	assert_true(stage_until_voting(s, 0, 20 * SPAN_S));
	take(s, 0, "k", stage_lock(2));
	release(s, 0, "k", stage_lock(2));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(2));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(2));
	start_anew(s, 0);
	stage_wait(s, SPAN_S);
	stage_cut(s, 1, N3, false);
	stage_wait(s, SPAN_S);
	missed_events_of_all_twice(s);
}

static void a_node_that_has_forgotten_its_unseen_grants_means_missed_events(void **state) {
	struct stage *s = *state;
	granted_while_n3_is_cut_off(s);
	start_anew(s, 0);
	start_anew(s, 1);
	stage_wait(s, SPAN_S);
	nothing_more(s);
	cut_off(s, false);
	stage_wait(s, SPAN_S);
	missed_events_of_all_twice(s);
}

/* n3 has no link with n2, and hears from n1 that n2 has started anew. */
static void a_start_that_another_node_tells_of_counts_as_one(void **state) {
	struct stage *s = *state;
	granted_while_n3_is_cut_off(s);
	start_anew(s, 0);
	start_anew(s, 1);
	assert_true(stage_until_voting(s, 0, 20 * SPAN_S) && stage_until_voting(s, 1, 20 * SPAN_S));
	nothing_more(s);
	stage_cut(s, 0, 1, true);
	stage_cut(s, 0, N3, false);
	stage_wait(s, SPAN_S);
	missed_events_of_all_twice(s);
	stage_cut(s, 0, 1, false);
	stage_cut(s, 1, N3, false);
	stage_wait(s, SPAN_S);
	nothing_more(s);
}

static void a_node_that_restarts_after_the_other_means_no_missed_events(void **state) {
	struct stage *s = *state;
	for (uint32_t node = 0; node < 2; node++) {
		start_anew(s, node);
		assert_true(stage_until_voting(s, node, 20 * SPAN_S));
		stage_wait(s, 8 * SPAN_S);
	}
	nothing_more(s);
}

static uint64_t update_held_back(struct stage *s, uint32_t node, const char *value) {
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str(value);
	stage_stop(s, node, N3, MESSAGE_WRITE, true);
	uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	return id;
}

/* n1 and n2 have both writes. n3 is prepared for the second one when the first one comes to it. */
static void a_write_that_came_after_a_later_ballot_is_told_or_reported_missed(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	update_held_back(s, 0, "1");
	/* n3 protects an update for a quarter of request_timeout. */
	stage_wait(s, 30 * SPAN_MS);
	update_held_back(s, 1, "2");
	nothing_more(s);
	stage_stop(s, 0, N3, MESSAGE_WRITE, false);
	stage_settle(s);
	stage_stop(s, 1, N3, MESSAGE_WRITE, false);
	stage_settle(s);
	stage_wait(s, SPAN_S);
	const struct stage_event *n = stage_next_event(s, N3);
	assert_non_null(n);
	assert_true(n->event.kind == WATCH_EVENT_MISSED ||
		(n->event.kind == WATCH_EVENT_UPDATED && n->value.bytes[0] == '1'));
}

/* n3 is prepared for an update that comes to nothing, and gets "1" in another way. */
static void a_refused_write_that_repair_brings_later_is_not_reported_missed(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	update_held_back(s, 0, "1");
	struct message m = { .kind = MESSAGE_PREPARE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .ballot = { token + 9, 1, 1 } };
	stage_wait(s, 30 * SPAN_MS);
	stage_inject(s, 1, N3, &m);
	stage_stop(s, 0, N3, MESSAGE_WRITE, false);
	stage_settle(s);
	stage_wait(s, SPAN_S);
	const struct stage_event *n = watch_event_is(s, N3, WATCH_EVENT_UPDATED, stage_lock(1));
	assert_int_equal(n->value.bytes[0], '1');
	nothing_more(s);
}

/* A repair brings the record with its second value before the commit with the first one comes. */
static void a_lock_learned_with_a_later_value_than_its_first_follows_missed_events(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, N3, MESSAGE_COMMIT, true);
	const uint64_t token = take(s, 0, "k", stage_lock(1));
	const struct message repaired = { .kind = MESSAGE_LEARN, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = token,
		.lease_us = 500000, .value = slice_str("2"), .ballot = { token + 1, 1, 1 } };
	stage_inject(s, 1, N3, &repaired);
	stage_settle(s);
	const struct stage_event *n = watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock);
	assert_true(text_is(&n->key, "k"));
	n = watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	assert_int_equal(n->value.bytes[0], '2');
	stage_stop(s, 0, N3, MESSAGE_COMMIT, false);
	stage_settle(s);
	nothing_more(s);
}

static uint64_t ask_without_n4(struct stage *s, uint32_t node) {
	struct core_change gone = { .kind = CHANGE_REMOVE, .name = slice_str("n4") };
	return stage_ask(s, node, (struct core_request){ .op = CORE_CHANGE, .change = &gone,
		.admin = true, .client = 100 });
}

/* n4, a replica, coordinates X while its link with n3 is cut, and is removed before the others have
 * said what came from it. */
static void what_a_removed_coordinator_granted_is_reported_missed(void **state) {
	struct stage *s = *state;
	drain_events(s);
	stage_cut(s, 3, N3, true);
	take(s, 3, "k", stage_lock(1));
	release(s, 3, "k", stage_lock(1));
	uint64_t id = ask_without_n4(s, 0);
	stage_settle(s);
	stage_kill(s, 3);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	stage_wait(s, SPAN_S);
	missed_events_of_all_twice(s);
}

/* n3 has adopted the epoch without n4 long before the others, who go on with n4 meanwhile. */
static void what_a_removed_node_granted_to_late_adopters_is_reported_missed(void **state) {
	struct stage *s = *state;
	const uint64_t before = epoch_of(s, N3);
	for (uint32_t other = 0; other < 2; other++) {
		lose_choices(s, other, true);
		/* They do not finish the decree themselves, either. */
		lose_to(s, other, MESSAGE_DECREE_PROMISE, true);
	}
	stage_cut(s, 3, N3, true);
	(void)ask_without_n4(s, N3);
	stage_wait(s, 500 * SPAN_MS);
	assert_int_equal(epoch_of(s, N3), before + 1);
	assert_int_equal(epoch_of(s, 0), before);
	drain_events(s);
	take(s, 3, "k", stage_lock(1));
	release(s, 3, "k", stage_lock(1));
	for (uint32_t other = 0; other < 2; other++) {
		lose_choices(s, other, false);
	}
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(epoch_of(s, 0), before + 1);
	missed_events_of_all(s);
}

UNIT(cluster_counted) {
	const struct CMUnitTest tests[] = {
		WATCHED(a_link_that_is_back_reports_nothing_where_nothing_was_missed),
		WATCHED(a_missed_write_is_reported_once_the_link_is_back),
		WATCHED(grants_of_a_node_that_restarted_with_its_link_down_are_missed),
		WATCHED(grants_of_a_node_that_died_with_its_link_down_are_missed),
		WATCHED(grants_of_a_node_that_died_before_its_link_was_up_are_missed),
		WATCHED(a_node_that_dies_without_an_unseen_grant_means_no_missed_events),
		WATCHED(what_was_under_way_when_the_link_was_back_is_reported_once_it_is_granted),
		WATCHED(a_node_that_is_linked_late_is_told_what_an_earlier_start_granted),
		WATCHED(a_start_that_granted_nothing_does_not_hide_the_previous_one),
		WATCHED(a_start_that_hid_nothing_does_not_hide_the_previous_one),
		WATCHED(a_node_that_has_forgotten_its_unseen_grants_means_missed_events),
		WATCHED(a_start_that_another_node_tells_of_counts_as_one),
		WATCHED(a_node_that_restarts_after_the_other_means_no_missed_events),
		WATCHED(a_write_that_came_after_a_later_ballot_is_told_or_reported_missed),
		WATCHED(a_refused_write_that_repair_brings_later_is_not_reported_missed),
		WATCHED(a_lock_learned_with_a_later_value_than_its_first_follows_missed_events),
		WITH_A_REPLICA(what_a_removed_coordinator_granted_is_reported_missed),
		WITH_A_REPLICA(
			what_a_removed_node_granted_to_late_adopters_is_reported_missed),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
