/* A replica tells those who watch there all that its master tells, in the same order, or that
 * events were missed (docs/protocol.md, section 7). */
#include "failing.h"
#include "replicas.h"

#define REPEATED(test) cmocka_unit_test_setup_teardown(test, setup_watched, named_teardown)
#define BORDER(n) assert_null(stage_next_event(s, n))

static void watch_at(struct stage *s, uint32_t node) {
	stage_want_events(s, node);
	stage_wait(s, SHORT);
}

static int setup_watched(void **state) {
	assert_int_equal(setup_with(state, 1, 0), 0);
	watch_at(*state, REPLICA);
	return 0;
}

static uint64_t watch_event_sent(const struct stage *s, uint32_t node) {
	return s->sent[master_of(s, node)][node][MESSAGE_FEED_WATCH_EVENT];
}

static void forget_events(struct stage *s) {
	while (stage_next_event(s, STAGE_NOBODY)) {
	}
}

static void update(struct stage *s, const char *key, uint8_t lock, const char *value) {
	struct core_request r = stage_request(CORE_UPDATE, key, stage_lock(lock));
	r.value = slice_str(value);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

static void take_value(struct stage *s, const char *key, uint8_t lock, struct slice value) {
	struct core_request r = stage_acquire(key, stage_lock(lock), LEASE, 0);
	r.owner = slice_str("me");
	r.value = value;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

/* ---- everything, as it was ---- */

static void what_comes_and_goes_within_a_batch_is_told(void **state) {
	struct stage *s = *state;
	take_value(s, "k", 1, slice_str("v"));
	release(s, 0, "k", stage_lock(1));
	take_value(s, "k", 2, slice_str("w"));
	release(s, 0, "k", stage_lock(2));
	stage_wait(s, SHORT);
	for (uint8_t lock = 1; lock <= 2; lock++) {
		const struct stage_event *n = watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED,
			stage_lock(lock));
		assert_true(text_is(&n->key, "k") && text_is(&n->owner, "me") &&
			text_is(&n->value, lock == 1 ? "v" : "w"));
		assert_true(n->event.value_seq.clock > 0 &&
			n->event.value_seq.clock < n->event.token);
		watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(lock));
	}
	BORDER(REPLICA);
}

static void every_write_within_a_batch_is_told_in_order(void **state) {
	struct stage *s = *state;
	static const char *const values[] = { "v", "w", "w", "x" };
	struct ballot before = { 0, 0, 0 };
	take_value(s, "k", 1, slice_str("v"));
	for (int i = 1; i < 4; i++) {
		update(s, "k", 1, values[i]);
	}
	stage_wait(s, SHORT);
	for (int i = 0; i < 4; i++) {
		const struct stage_event *n = watch_event_is(s, REPLICA,
			i ? WATCH_EVENT_UPDATED : WATCH_EVENT_ACQUIRED, stage_lock(1));
		assert_true(text_is(&n->value, values[i]));
		assert_true(ballot_compare(n->event.value_seq, before) > 0);
		before = n->event.value_seq;
	}
	BORDER(REPLICA);
}

static void a_downgrade_and_who_shares_it_then_are_told_in_order(void **state) {
	struct stage *s = *state;
	take_value(s, "k", 1, slice_str("v"));
	assert_int_equal(stage_do(s, 0, stage_request(CORE_DOWNGRADE, "k", stage_lock(1))),
		PAWL_OK);
	struct core_request r = stage_acquire("k", stage_lock(2), LEASE, 0);
	r.terms.of = MODE_SHARED;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_int_equal(watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED,
		stage_lock(1))->event.terms.of, MODE_EXCLUSIVE);
	assert_int_equal(watch_event_is(s, REPLICA, WATCH_EVENT_DOWNGRADED,
		stage_lock(1))->event.terms.of, MODE_SHARED);
	watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED, stage_lock(2));
	watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(1));
	BORDER(REPLICA);
}

static void a_lease_that_is_over_is_told_of_once(void **state) {
	struct stage *s = *state;
	take_value(s, "k", 1, slice_str("v"));
	stage_wait(s, LEASE + 100 * SPAN_MS);
	watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED, stage_lock(1));
	watch_event_is(s, REPLICA, WATCH_EVENT_EXPIRED, stage_lock(1));
	BORDER(REPLICA);
}

/* ---- or missed events ---- */

static void a_watch_that_begins_during_changes_begins_with_missed_events(void **state) {
	struct stage *s = *state;
	take_value(s, "k", 1, slice_str("v"));
	/* The entry has not been sent. */
	watch_at(s, REPLICA);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	BORDER(REPLICA);
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(1));
}

/* Nothing has changed since, and so nothing was missed. */
static void a_watch_that_begins_while_all_is_quiet_begins_without_missed_events(void **state) {
	struct stage *s = *state;
	take_value(s, "k", 1, slice_str("v"));
	stage_wait(s, SHORT);
	watch_at(s, REPLICA);
	BORDER(REPLICA);
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(1));
	BORDER(REPLICA);
}

/* The replica has heard of both changes by the time at which its master hears that somebody
 * watches. */
static void what_came_before_the_master_heard_of_the_watch_is_missed(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	s->held[REPLICA][master] = true;
	watch_at(s, REPLICA);
	take_value(s, "k", 1, slice_str("v"));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	s->held[REPLICA][master] = false;
	stage_wait(s, SHORT);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	BORDER(REPLICA);
}

/* The replica applies both changes, and then says that somebody watches. */
static void what_came_before_the_replica_said_that_somebody_watches_is_missed(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	s->held[master][REPLICA] = true;
	take_value(s, "k", 1, slice_str("v"));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	stage_want_events(s, REPLICA);
	while (stage_deliver(s, master, REPLICA)) {
	}
	s->held[master][REPLICA] = false;
	stage_wait(s, SHORT);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	BORDER(REPLICA);
}

static void a_replica_says_again_and_again_that_somebody_watches(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	stage_stop(s, REPLICA, master, MESSAGE_FEED_ECHO, true);
	watch_at(s, REPLICA);
	take_value(s, "k", 1, slice_str("v"));
	stage_wait(s, SHORT);
	BORDER(REPLICA);
	/* What has been said so far is lost. */
	stage_lose(s, REPLICA, master, MESSAGE_FEED_ECHO, true);
	stage_stop(s, REPLICA, master, MESSAGE_FEED_ECHO, false);
	stage_settle(s);
	stage_lose(s, REPLICA, master, MESSAGE_FEED_ECHO, false);
	stage_wait(s, 200 * SPAN_MS);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	BORDER(REPLICA);
}

static void a_lost_report_of_missed_events_is_noticed(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA);
	take_value(s, "k", 1, slice_str("v"));
	stage_lose(s, master, REPLICA, MESSAGE_FEED_WATCH_EVENT, true);
	watch_at(s, REPLICA);
	stage_lose(s, master, REPLICA, MESSAGE_FEED_WATCH_EVENT, false);
	stage_wait(s, SHORT);
	assert_true(stage_count(s, COUNT_feed_missed) > 0);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
}

static void events_that_the_master_missed_are_missed_at_its_replica(void **state) {
	struct stage *s = *state;
	uint32_t master = master_of(s, REPLICA), other = (master + 1) % 3;
	stage_cut(s, master, other, true);
	stage_wait(s, SHORT);
	BORDER(REPLICA);
	/* The replica's master misses the beginning of the lock, and anything else that there may
	 * have been. */
	take(s, other, "k", stage_lock(1));
	release(s, other, "k", stage_lock(1));
	forget_events(s);
	stage_cut(s, master, other, false);
	stage_wait(s, 200 * SPAN_MS);
	const struct stage_event *n;
	do {
		n = stage_next_event(s, REPLICA);
		assert_non_null(n);
	} while (n->event.kind != WATCH_EVENT_MISSED);
}

static int setup_small_log(void **state) {
	assert_int_equal(setup_with(state, 1, 16384), 0);
	watch_at(*state, REPLICA);
	return 0;
}

static void an_event_too_large_for_the_log_is_missed_events_of_the_key(void **state) {
	struct stage *s = *state;
	static uint8_t large[2000];
	take_value(s, "k", 1, slice_of(large, sizeof large));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_true(text_is(&watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock)->key, "k"));
	watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(1));
	BORDER(REPLICA);
}

static struct failing memory;

static int setup_failing(void **state) {
	static struct allocator failing = { failing_resize, &memory };
	struct stage_options o = named_options();
	o.replicas = 1;
	o.core = &failing;
	memory = (struct failing){ .fail_first = 0 };
	*state = stage_born(&o);
	stage_wait(*state, SHORT);
	return 0;
}

static int teardown_failing(void **state) {
	return named_teardown(state) || memory.used ? -1 : 0;
}

static void release_at(struct stage *s, uint32_t node, const char *key, uint8_t lock) {
	const struct message m = { .kind = MESSAGE_RELEASE, .round = 1, .key = slice_str(key),
		.lock_id = stage_lock(lock) };
	stage_inject(s, (node + 1) % 3, node, &m);
}

/* The master is short of memory for a moment, and so those who watch there read anew. Those who
 * watch at the replica have missed nothing. */
static void what_its_master_has_no_room_for_a_replica_tells_all_the_same(void **state) {
	struct stage *s = *state;
	const uint32_t master = master_of(s, REPLICA);
	take_value(s, "k", 1, slice_str("v"));
	take_value(s, "j", 2, slice_str("w"));
	watch_at(s, REPLICA);
	watch_at(s, master);
	forget_events(s);
	memory.fail_first = memory.calls + 1;
	memory.fail_count = UINT64_MAX;
	release_at(s, master, "k", 1);
	release_at(s, master, "j", 2);
	memory.fail_first = 0;
	stage_wait(s, SHORT);
	uint64_t seen = s->events_read;
	watch_event_is(s, master, WATCH_EVENT_MISSED, no_lock);
	s->events_read = seen;
	watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(1));
	watch_event_is(s, REPLICA, WATCH_EVENT_RELEASED, stage_lock(2));
	BORDER(REPLICA);
	assert_int_equal(stage_count(s, COUNT_watch_event_lost), 2);
}

/* The replica tells of missed events before it tells what ends meanwhile: the beginning of that may
 * have been lost with the master. */
static void a_replica_left_alone_reports_missed_events_and_then_what_ends(void **state) {
	struct stage *s = *state;
	take_value(s, "k", 1, slice_str("v"));
	stage_wait(s, SHORT);
	forget_events(s);
	for (uint32_t i = 0; i < 3; i++) {
		stage_cut(s, REPLICA, i, true);
	}
	stage_wait(s, LEASE + 100 * SPAN_MS);
	watch_event_is(s, REPLICA, WATCH_EVENT_MISSED, no_lock);
	watch_event_is(s, REPLICA, WATCH_EVENT_EXPIRED, stage_lock(1));
	BORDER(REPLICA);
}

/* ---- what it costs ---- */

static int setup_two(void **state) {
	return setup_with(state, 2, 0);
}

static void nothing_is_kept_for_those_who_do_not_watch(void **state) {
	struct stage *s = *state;
	uint64_t before = stage_status(s, master_of(s, REPLICA)).log_next;
	take_value(s, "k", 1, slice_str("v"));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	assert_int_equal(stage_status(s, master_of(s, REPLICA)).log_next, before + 2);
	assert_int_equal(watch_event_sent(s, REPLICA), 0);
	watch_at(s, REPLICA);
	core_want_watch_events(s->nodes[REPLICA].core, false);
	stage_wait(s, SHORT);
	before = stage_status(s, master_of(s, REPLICA)).log_next;
	take_value(s, "k", 2, slice_str("v"));
	assert_int_equal(stage_status(s, master_of(s, REPLICA)).log_next, before + 1);
}

static void a_replica_without_watchers_is_sent_no_events_and_misses_nothing(void **state) {
	struct stage *s = *state;
	uint32_t second = REPLICA + 1;
	watch_at(s, REPLICA);
	take_value(s, "k", 1, slice_str("v"));
	update(s, "k", 1, "w");
	stage_wait(s, SHORT);
	watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED, stage_lock(1));
	assert_int_equal(stage_count(s, COUNT_feed_missed), 0);
	assert_true(has(s, second, "k", stage_lock(1)));
	watch_at(s, second);
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SHORT);
	forget_events(s);
	take_value(s, "j", 2, slice_str("v"));
	stage_wait(s, SHORT);
	uint64_t seen = s->events_read;
	watch_event_is(s, REPLICA, WATCH_EVENT_ACQUIRED, stage_lock(2));
	s->events_read = seen;
	watch_event_is(s, second, WATCH_EVENT_ACQUIRED, stage_lock(2));
}

#define WITH(test, with) cmocka_unit_test_setup_teardown(test, with, named_teardown)

UNIT(cluster_repeated) {
	const struct CMUnitTest tests[] = {
		REPEATED(what_comes_and_goes_within_a_batch_is_told),
		REPEATED(every_write_within_a_batch_is_told_in_order),
		REPEATED(a_downgrade_and_who_shares_it_then_are_told_in_order),
		WITH(what_came_before_the_replica_said_that_somebody_watches_is_missed, setup),
		REPEATED(a_lease_that_is_over_is_told_of_once),
		WITH(a_watch_that_begins_during_changes_begins_with_missed_events, setup),
		WITH(a_watch_that_begins_while_all_is_quiet_begins_without_missed_events, setup),
		WITH(what_came_before_the_master_heard_of_the_watch_is_missed, setup),
		WITH(a_replica_says_again_and_again_that_somebody_watches, setup),
		WITH(a_lost_report_of_missed_events_is_noticed, setup),
		REPEATED(events_that_the_master_missed_are_missed_at_its_replica),
		WITH(an_event_too_large_for_the_log_is_missed_events_of_the_key, setup_small_log),
		cmocka_unit_test_setup_teardown(
			what_its_master_has_no_room_for_a_replica_tells_all_the_same, setup_failing,
			teardown_failing),
		REPEATED(a_replica_left_alone_reports_missed_events_and_then_what_ends),
		WITH(nothing_is_kept_for_those_who_do_not_watch, setup),
		WITH(a_replica_without_watchers_is_sent_no_events_and_misses_nothing, setup_two),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
