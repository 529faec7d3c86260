/* These tests are about what a node tells those who watch: everything that happens to a key in its
 * own table, in order (docs/protocol.md, sections 2, 7 and 9). */
#include "members.h"
#include "replicas.h"

#define WATCHED_EVERYWHERE(test) \
	cmocka_unit_test_setup_teardown(test, setup_watched, named_teardown)
#define BORDER(n) assert_null(stage_next_event(s, n))

static int setup_watched(void **state) {
	assert_int_equal(setup_with(state, 1, 0), 0);
	for (uint32_t i = 0; i < 4; i++) {
		stage_want_events(*state, i);
	}
	stage_wait(*state, SHORT);
	return 0;
}

static void forget_events(struct stage *s) {
	while (stage_next_event(s, STAGE_NOBODY)) {
	}
}

static uint64_t take_as(struct stage *s, const char *key, uint8_t lock, const char *owner,
	const char *value) {
	struct core_request r = stage_acquire(key, stage_lock(lock), LEASE, 0);
	r.owner = slice_str(owner);
	r.value = slice_str(value);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	return stage_last(s)->r.token;
}

static int update(struct stage *s, const char *key, uint8_t lock, const char *value) {
	struct core_request r = stage_request(CORE_UPDATE, key, stage_lock(lock));
	r.value = slice_str(value);
	return stage_do(s, 0, r);
}

static void nothing_is_told_before_somebody_wants_it(void **state) {
	struct stage *s = *state;
	core_want_watch_events(s->nodes[0].core, false);
	take_as(s, "k", 1, "me", "v");
	BORDER(0);
}

static void an_acquisition_is_told_with_owner_value_and_token(void **state) {
	struct stage *s = *state;
	uint64_t token = take_as(s, "k", 1, "me", "v");
	const struct stage_event *n = watch_event_is(s, 1, WATCH_EVENT_ACQUIRED, stage_lock(1));
	assert_true(text_is(&n->key, "k") && text_is(&n->owner, "me") && text_is(&n->value, "v"));
	assert_int_equal(n->event.token, token);
	assert_true(n->event.value_seq.clock > 0 && n->event.value_seq.clock < token);
	BORDER(1);
}

static void an_extension_is_no_event(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	forget_events(s);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
	BORDER(0);
}

static void a_record_that_an_extension_brings_is_an_event(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	take_as(s, "k", 1, "me", "v");
	forget_events(s);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
	stage_wait(s, SHORT);
	const struct stage_event *n = watch_event_is(s, 2, WATCH_EVENT_ACQUIRED, stage_lock(1));
	assert_true(text_is(&n->value, "v"));
	BORDER(2);
}

/* The lock's release has overtaken the commit everywhere but here. */
static void an_acquisition_that_came_before_the_release_is_not_missed(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	forget_events(s);
	stage_stop(s, 0, 2, MESSAGE_RELEASE, true);
	stage_stop(s, 2, 1, MESSAGE_COMMIT_ANSWER, true);
	release(s, 0, "k", stage_lock(1));
	assert_true(answered(s, waiter));
	stage_stop(s, 0, 2, MESSAGE_RELEASE, false);
	stage_settle(s);
	stage_stop(s, 2, 1, MESSAGE_COMMIT_ANSWER, false);
	stage_settle(s);
	watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(1));
	watch_event_is(s, 2, WATCH_EVENT_ACQUIRED, stage_lock(2));
	BORDER(2);
}

static void every_write_of_the_value_is_told_of_in_order(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	forget_events(s);
	assert_int_equal(update(s, "k", 1, "w"), PAWL_OK);
	assert_int_equal(update(s, "k", 1, "w"), PAWL_OK);
	assert_int_equal(update(s, "k", 1, "x"), PAWL_OK);
	const struct stage_event *n = watch_event_is(s, 0, WATCH_EVENT_UPDATED, stage_lock(1));
	struct ballot first = n->event.value_seq;
	assert_true(text_is(&n->value, "w"));
	n = watch_event_is(s, 0, WATCH_EVENT_UPDATED, stage_lock(1));
	assert_true(text_is(&n->value, "w") && ballot_compare(n->event.value_seq, first) > 0);
	n = watch_event_is(s, 0, WATCH_EVENT_UPDATED, stage_lock(1));
	assert_true(text_is(&n->value, "x"));
	BORDER(0);
}

static void a_release_is_told_of_once(void **state) {
	struct stage *s = *state;
	uint64_t token = take_as(s, "k", 1, "me", "v");
	forget_events(s);
	release(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	const struct stage_event *n = watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(1));
	assert_true(text_is(&n->owner, "me") && n->value.size == 0);
	assert_int_equal(n->event.token, token);
	BORDER(2);
}

static void a_lease_that_is_over_is_told_of_as_expired(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	forget_events(s);
	stage_wait(s, LEASE + 100 * SPAN_MS);
	watch_event_is(s, 1, WATCH_EVENT_EXPIRED, stage_lock(1));
	BORDER(1);
}

static void the_next_holder_is_told_after_the_previous_one(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	uint64_t waiter = wait_for(s, 1, "k", stage_lock(2));
	forget_events(s);
	release(s, 0, "k", stage_lock(1));
	assert_true(answered(s, waiter));
	watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(1));
	watch_event_is(s, 2, WATCH_EVENT_ACQUIRED, stage_lock(2));
	BORDER(2);
}

static void a_break_by_force_is_told_of_as_lost(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	stage_wait(s, SHORT);
	forget_events(s);
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.now = r.admin = true;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_wait(s, SHORT);
	uint64_t seen = s->events_read;
	watch_event_is(s, 1, WATCH_EVENT_LOST, stage_lock(1));
	s->events_read = seen;
	watch_event_is(s, REPLICA, WATCH_EVENT_LOST, stage_lock(1));
}

static void what_ends_with_its_node_is_told_of_as_lost(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	struct core_request r = stage_request(CORE_BINDING, "k", stage_lock(1));
	r.wait = 10 * SPAN_MS;
	(void)stage_ask(s, 0, r);
	stage_wait(s, SHORT);
	forget_events(s);
	stage_kill(s, 0);
	stage_wait(s, 200 * SPAN_MS);
	uint64_t seen = s->events_read;
	watch_event_is(s, 1, WATCH_EVENT_LOST, stage_lock(1));
	s->events_read = seen;
	const struct stage_event *n = stage_next_event(s, REPLICA);
	/* The replica may have followed the node that died. */
	n = n && n->event.kind == WATCH_EVENT_MISSED ? stage_next_event(s, REPLICA) : n;
	assert_true(n == NULL || n->event.kind == WATCH_EVENT_LOST ||
		n->event.kind == WATCH_EVENT_MISSED);
}

/* The holder's connection was closed, and only the lock delay runs. The holder goes on over its
 * next connection. */
static void a_lock_that_is_held_again_within_its_lock_delay_is_told_of_again(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.binding = 1;
	r.terms.delay = SPAN_S;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	forget_events(s);
	r = stage_request(CORE_RELEASE, "k", stage_lock(1));
	r.binding = 1;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	watch_event_is(s, 1, WATCH_EVENT_LOST, stage_lock(1));
	r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.binding = 2;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	watch_event_is(s, 1, WATCH_EVENT_ACQUIRED, stage_lock(1));
	BORDER(1);
}

/* ---- replicas ---- */

static void a_replica_tells_the_same_as_its_master(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	stage_wait(s, SHORT);
	assert_int_equal(update(s, "k", 1, "w"), PAWL_OK);
	stage_wait(s, SHORT);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
	stage_wait(s, SHORT);
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	const struct stage_event *n = watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED,
		stage_lock(1));
	assert_true(text_is(&n->owner, "me") && text_is(&n->value, "v"));
	n = watch_event_is(s, REPLICA, WATCH_EVENT_UPDATED, stage_lock(1));
	assert_true(text_is(&n->value, "w"));
	n = watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(1));
	assert_true(text_is(&n->owner, "me"));
	BORDER(REPLICA);
}

static void a_replica_that_follows_again_reports_missed_events(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	forget_events(s);
	stage_break(s, REPLICA, master);
	stage_wait(s, 200 * SPAN_MS);
	/* From now on the replica hears nothing. */
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	/* It has heard nothing until now. */
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
}

/* The links stay, and the feed goes on where it was. */
static void a_replica_that_left_for_another_epoch_reports_missed_events(void **state) {
	struct stage *s = *state;
	uint64_t before = snapshots(s);
	must(s, 0, max_lease_of(9 * SPAN_S));
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(snapshots(s), before);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
}

/* ---- missed events ---- */

static void a_link_that_was_lost_means_missed_events_once_it_is_back(void **state) {
	struct stage *s = *state;
	stage_cut(s, 0, 2, true);
	take_as(s, "k", 1, "me", "v");
	release(s, 0, "k", stage_lock(1));
	/* n3 tells nothing, because it has missed both. */
	assert_null(stage_next_event(s, 2));
	stage_cut(s, 0, 2, false);
	stage_wait(s, SHORT);
	watch_event_is(s, 2, WATCH_EVENT_MISSED, no_lock);
	BORDER(2);
}

/* Watchers are told that the lock is gone, and of another one that has come and gone meanwhile. */
static void a_master_that_hears_of_an_end_late_tells_what_came_meanwhile(void **state) {
	struct stage *s = *state;
	take_as(s, "k", 1, "me", "v");
	take_as(s, "other", 9, "me", "v");
	forget_events(s);
	stage_stop(s, 0, 2, MESSAGE_RELEASE, true);
	release(s, 0, "k", stage_lock(1));
	struct core_request r = stage_acquire("k", stage_lock(2), LEASE, 0);
	r.owner = slice_str("you");
	r.value = slice_str("w");
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	release(s, 1, "k", stage_lock(2));
	BORDER(2);
	stage_stop(s, 0, 2, MESSAGE_RELEASE, false);
	release(s, 0, "other", stage_lock(9));
	watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(1));
	const struct stage_event *n = watch_event_is(s, 2, WATCH_EVENT_ACQUIRED, stage_lock(2));
	assert_true(text_is(&n->owner, "you") && text_is(&n->value, "w"));
	watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(2));
	watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(9));
	BORDER(2);
}

static void a_commit_that_comes_after_its_release_is_told_of(void **state) {
	struct stage *s = *state;
	stage_stop(s, 1, 2, MESSAGE_COMMIT, true);
	take(s, 1, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	BORDER(2);
	stage_stop(s, 1, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	watch_event_is(s, 2, WATCH_EVENT_ACQUIRED, stage_lock(1));
	watch_event_is(s, 2, WATCH_EVENT_RELEASED, stage_lock(1));
	BORDER(2);
}

static void a_node_that_restarted_means_no_missed_events_for_the_others(void **state) {
	struct stage *s = *state;
	stage_kill(s, 0);
	stage_wait(s, SHORT);
	forget_events(s);
	assert_true(stage_start(s, 0));
	stage_wait(s, 200 * SPAN_MS);
	BORDER(2);
}

static void a_master_that_has_caught_up_reports_missed_events(void **state) {
	struct stage *s = *state;
	stage_kill(s, 1);
	assert_true(stage_start(s, 1));
	stage_want_events(s, 1);
	assert_true(stage_until_voting(s, 1, 20 * SPAN_S));
	watch_event_is(s, 1, WATCH_EVENT_MISSED, no_lock);
}

static void an_event_is_held_back_as_long_as_an_answer(void **state) {
	struct stage *s = *state;
	/* The clock of n2 is going to be above its clock reservation on disk. */
	s->nodes[1].disk_held = true;
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1),
		.token = stage_status(s, 1).clock + 2 * CEILING_BLOCK,
		.ballot = { stage_status(s, 1).clock + 1, 1, 1 | BALLOT_FIRST },
		.lease_us = 1000000 });
	BORDER(1);
	s->nodes[1].disk_held = false;
	stage_flush(s, 1);
	stage_settle(s);
	watch_event_is(s, 1, WATCH_EVENT_ACQUIRED, stage_lock(1));
}

static void what_cannot_be_kept_until_it_may_leave_is_reported_missed(void **state) {
	struct stage *s = *state;
	static uint8_t value[VALUE_MAX_DEFAULT];
	char name[16];
	uint64_t clock = stage_status(s, 1).clock;
	s->nodes[1].disk_held = true;
	s->options.unchecked = true;
	/* These are more than a node keeps. */
	for (uint32_t i = 0; i < 300; i++) {
		const struct message m = { .kind = MESSAGE_COMMIT, .round = 1,
			.key = slice_str(numbered(name, i)), .lock_id = numbered_lock(i),
			.token = clock + 2 * CEILING_BLOCK + i,
			.ballot = { clock + 2 * CEILING_BLOCK + i, 1, 1 | BALLOT_FIRST },
			.lease_us = 5000000, .value = slice_of(value, sizeof value) };
		stage_inject(s, 0, 1, &m);
	}
	s->nodes[1].disk_held = false;
	stage_flush(s, 1);
	stage_settle(s);
	const struct stage_event *n, *last = NULL;
	uint32_t missed = 0;
	while ((n = stage_next_event(s, 1)) != NULL) {
		missed += n->event.kind == WATCH_EVENT_MISSED;
		last = n;
	}
	assert_non_null(last);
	/* The missed events are told after what was kept, and once. */
	assert_int_equal(last->event.kind, WATCH_EVENT_MISSED);
	assert_int_equal(missed, 1);
	take_as(s, "k", 1, "me", "v");
	watch_event_is(s, 1, WATCH_EVENT_ACQUIRED, stage_lock(1));
}

UNIT(cluster_events) {
	const struct CMUnitTest tests[] = {
		WATCHED_EVERYWHERE(nothing_is_told_before_somebody_wants_it),
		WATCHED_EVERYWHERE(an_acquisition_is_told_with_owner_value_and_token),
		WATCHED_EVERYWHERE(an_extension_is_no_event),
		WATCHED_EVERYWHERE(a_record_that_an_extension_brings_is_an_event),
		WATCHED_EVERYWHERE(an_acquisition_that_came_before_the_release_is_not_missed),
		WATCHED_EVERYWHERE(every_write_of_the_value_is_told_of_in_order),
		WATCHED_EVERYWHERE(a_release_is_told_of_once),
		WATCHED_EVERYWHERE(a_lease_that_is_over_is_told_of_as_expired),
		WATCHED_EVERYWHERE(the_next_holder_is_told_after_the_previous_one),
		WATCHED_EVERYWHERE(a_break_by_force_is_told_of_as_lost),
		WATCHED_EVERYWHERE(what_ends_with_its_node_is_told_of_as_lost),
		WATCHED_EVERYWHERE(
			a_lock_that_is_held_again_within_its_lock_delay_is_told_of_again),
		WATCHED_EVERYWHERE(a_replica_tells_the_same_as_its_master),
		WATCHED_EVERYWHERE(a_replica_that_follows_again_reports_missed_events),
		WATCHED_EVERYWHERE(a_replica_that_left_for_another_epoch_reports_missed_events),
		WATCHED_EVERYWHERE(a_link_that_was_lost_means_missed_events_once_it_is_back),
		WATCHED_EVERYWHERE(a_master_that_hears_of_an_end_late_tells_what_came_meanwhile),
		WATCHED_EVERYWHERE(a_commit_that_comes_after_its_release_is_told_of),
		WATCHED_EVERYWHERE(a_node_that_restarted_means_no_missed_events_for_the_others),
		WATCHED_EVERYWHERE(a_master_that_has_caught_up_reports_missed_events),
		WATCHED_EVERYWHERE(an_event_is_held_back_as_long_as_an_answer),
		WATCHED_EVERYWHERE(what_cannot_be_kept_until_it_may_leave_is_reported_missed),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
