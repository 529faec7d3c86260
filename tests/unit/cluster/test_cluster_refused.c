/* Something is written, or named as a later connection, while n3, which is watched, has refused the
 * lock, is in another epoch or has no link (docs/protocol.md, section 3, Watching). */
#include "watched.h"

/* n3 does not hear of releases by n1. */
static void hold_releases(struct stage *s, bool hold) {
	stage_stop(s, 0, N3, MESSAGE_RELEASE, hold);
	stage_settle(s);
}

/* L1 is released, and still stands at n3. */
static void stand_in_the_way(struct stage *s, uint16_t of) {
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.of = of;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	hold_releases(s, true);
	release(s, 0, "k", stage_lock(1));
}

static void is_not_lost(struct stage *s, struct id128 lock) {
	assert_true(holds(s, 1, "k", lock));
	for (const struct stage_event *n; (n = stage_next_event(s, N3)) != NULL;) {
		assert_int_not_equal(n->event.kind, WATCH_EVENT_LOST);
	}
}

static void write_w(struct stage *s, uint32_t node, struct id128 lock) {
	struct core_request r = stage_request(CORE_UPDATE, "k", lock);
	r.value = slice_str("w");
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
}

/* One connection has L2, then a second one; then the first one is closed. */
static void change_connections(struct stage *s) {
	struct core_request r = stage_acquire("k", stage_lock(2), LEASE, 0);
	r.terms.binding = 1;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	r = stage_request(CORE_EXTEND, "k", stage_lock(2));
	r.lease = LEASE;
	r.binding = 2;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	r = stage_request(CORE_RELEASE, "k", stage_lock(2));
	r.binding = 1;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
}

/* n3 was sent the record with the second connection, and has refused it. */
static void what_goes_on_under_a_later_connection_is_not_told_as_lost(void **state) {
	struct stage *s = *state;
	stand_in_the_way(s, MODE_SHARED);
	change_connections(s);
	hold_releases(s, false);
	is_not_lost(s, stage_lock(2));
}

/* n3 is not sent the record where something exclusive stands in the way. */
static void a_later_connection_is_known_from_an_extension_that_was_refused(void **state) {
	struct stage *s = *state;
	stand_in_the_way(s, MODE_EXCLUSIVE);
	change_connections(s);
	hold_releases(s, false);
	is_not_lost(s, stage_lock(2));
}

/* n3 hears of the write alone: the record, which follows it, is lost on its way. */
static void what_was_refused_and_written_since_is_missed_events(void **state) {
	struct stage *s = *state;
	stand_in_the_way(s, MODE_EXCLUSIVE);
	stage_lose(s, 1, N3, MESSAGE_LEARN, true);
	take(s, 1, "k", stage_lock(2));
	write_w(s, 1, stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	hold_releases(s, false);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	const struct stage_event *n = watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock);
	assert_true(text_is(&n->key, "k"));
	assert_null(stage_next_event(s, N3));
}

/* The lock's commit and its write, by one node, are slower than its release by another node. The
 * commit tells of the lock; the write is no missed event. */
static void what_was_released_before_its_commit_and_its_write_came_is_told(void **state) {
	struct stage *s = *state;
	stage_stop(s, 1, N3, MESSAGE_COMMIT, true);
	take(s, 1, "k", stage_lock(1));
	write_w(s, 1, stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	assert_null(stage_next_event(s, N3));
	stage_stop(s, 1, N3, MESSAGE_COMMIT, false);
	stage_wait(s, SPAN_S);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	assert_null(stage_next_event(s, N3));
}

/* The lock was told before, so that nobody misses the lock or its end. */
static void a_write_that_comes_after_the_release_is_not_reported_missed(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(1));
	stage_stop(s, 1, N3, MESSAGE_WRITE, true);
	write_w(s, 1, stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	stage_stop(s, 1, N3, MESSAGE_WRITE, false);
	stage_wait(s, SPAN_S);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	assert_null(stage_next_event(s, N3));
}

/* n3 has heard of the next epoch first, and drops what is said under the previous one. */
static void a_write_of_another_epoch_is_missed_events_of_the_key(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	stage_stop(s, 0, N3, MESSAGE_WRITE, true);
	write_w(s, 0, stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	must(s, 1, max_lease_of(9 * SPAN_S));
	assert_int_equal(epoch_of(s, N3), 2);
	stage_stop(s, 0, N3, MESSAGE_WRITE, false);
	stage_wait(s, SPAN_S);
	assert_true(text_is(&watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock)->key, "k"));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	/* Others may have taken the key after the first lock. */
	watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock);
	assert_null(stage_next_event(s, N3));
}

/* n3 refuses L2 and is not sent the record. It gets the record from the others when it begins to
 * vote in the next epoch. */
static void is_brought_by_a_handover(struct stage *s, span_ns lease) {
	stand_in_the_way(s, MODE_EXCLUSIVE);
	stage_lose(s, 1, N3, MESSAGE_LEARN, true);
	(void)ask_change(s, 1, change_of(CHANGE_PROMOTE, "n4"));
	/* n4 has asked for copies by then. */
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(epoch_of(s, N3), 1);
	struct core_request r = stage_acquire("k", stage_lock(2), lease, 0);
	r.terms.of = MODE_SHARED;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	assert_true(wait_until_epoch(s, N3, 2, 50 * SPAN_MS));
	assert_true(stage_until_voting(s, N3, 50 * SPAN_MS));
	assert_true(has(s, N3, "k", stage_lock(2)));
	drain_events(s);
}

static void the_release_of_what_a_handover_brought_is_told_once(void **state) {
	struct stage *s = *state;
	is_brought_by_a_handover(s, LEASE);
	release(s, 1, "k", stage_lock(2));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(2));
	stage_wait(s, SPAN_S);
	assert_null(stage_next_event(s, N3));
}

static void what_a_handover_brought_and_has_run_out_is_not_told_again(void **state) {
	struct stage *s = *state;
	is_brought_by_a_handover(s, 250 * SPAN_MS);
	stage_wait(s, 300 * SPAN_MS);
	watch_event_is(s, N3, WATCH_EVENT_EXPIRED, stage_lock(2));
	take(s, 1, "k", stage_lock(3));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(3));
	assert_null(stage_next_event(s, N3));
}

/* The replica's master does not know yet that somebody watches there. What it refused, or what
 * passed it by, does not change its table. */
static struct stage *watched_replica(uint32_t *master) {
	struct stage_options o = named_options();
	o.replicas = 1;
	struct stage *s = stage_born(&o);
	stage_wait(s, SHORT);
	*master = master_of(s, REPLICA);
	stage_want_events(s, REPLICA);
	stage_stop(s, REPLICA, *master, MESSAGE_FEED_ECHO, true);
	return s;
}

static void is_told_at_the_replica(struct stage *s, uint32_t master) {
	stage_stop(s, REPLICA, master, MESSAGE_FEED_ECHO, false);
	stage_wait(s, SHORT);
	assert_non_null(stage_next_event(s, REPLICA));
	void *state = s;
	assert_int_equal(named_teardown(&state), 0);
}

static void what_a_master_refused_before_it_knew_of_a_watch_is_missed_at_the_replica(void **state) {
	(void)state;
	uint32_t m;
	struct stage *s = watched_replica(&m);
	const uint32_t a = (m + 1) % 3, b = (m + 2) % 3;
	stage_stop(s, a, m, MESSAGE_COMMIT, true);
	take(s, a, "k", stage_lock(1));
	release(s, b, "k", stage_lock(1));
	stage_stop(s, a, m, MESSAGE_COMMIT, false);
	stage_settle(s);
	is_told_at_the_replica(s, m);
}

static void what_passed_a_master_by_before_it_knew_of_a_watch_is_missed_at_the_replica(
	void **state) {
	(void)state;
	uint32_t m;
	struct stage *s = watched_replica(&m);
	const uint32_t a = (m + 1) % 3;
	stage_cut(s, a, m, true);
	take(s, a, "k", stage_lock(1));
	release(s, a, "k", stage_lock(1));
	stage_cut(s, a, m, false);
	stage_mend(s);
	stage_settle(s);
	is_told_at_the_replica(s, m);
}

UNIT(cluster_refused) {
	const struct CMUnitTest tests[] = {
		WATCHED(what_goes_on_under_a_later_connection_is_not_told_as_lost),
		WATCHED(a_later_connection_is_known_from_an_extension_that_was_refused),
		WATCHED(what_was_refused_and_written_since_is_missed_events),
		WATCHED(a_write_of_another_epoch_is_missed_events_of_the_key),
		WATCHED(what_was_released_before_its_commit_and_its_write_came_is_told),
		WATCHED(a_write_that_comes_after_the_release_is_not_reported_missed),
		WITH_A_REPLICA(the_release_of_what_a_handover_brought_is_told_once),
		WITH_A_REPLICA(what_a_handover_brought_and_has_run_out_is_not_told_again),
		cmocka_unit_test(
			what_a_master_refused_before_it_knew_of_a_watch_is_missed_at_the_replica),
		cmocka_unit_test(
			what_passed_a_master_by_before_it_knew_of_a_watch_is_missed_at_the_replica),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
