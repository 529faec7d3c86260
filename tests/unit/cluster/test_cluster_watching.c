/* Whoever watches at a master is told of every lock that came and went, even of those that this
 * master refused, in order for each key (docs/protocol.md, section 3, Watching). n3 is watched,
 * unless a test says otherwise. */
#include "watched.h"

static void missed_events_of_key(struct stage *s, const char *key) {
	const struct stage_event *missed = watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock);
	assert_true(text_is(&missed->key, key));
}

static void came_and_went(struct stage *s, uint8_t lock) {
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(lock));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(lock));
}

/* n3 does not hear of releases by this node. */
static void hold_releases(struct stage *s, uint32_t from, bool hold) {
	stage_stop(s, from, N3, MESSAGE_RELEASE, hold);
	stage_settle(s);
}

static void take_shared(struct stage *s, uint32_t node, uint8_t lock) {
	struct core_request r = stage_acquire("k", stage_lock(lock), LEASE, 0);
	r.terms.of = MODE_SHARED;
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
}

static void what_came_and_went_behind_the_record_of_another_is_told_after_it(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	hold_releases(s, 0, true);
	release(s, 0, "k", stage_lock(1));
	for (uint8_t lock = 2; lock < 5; lock++) {
		take(s, 1, "k", stage_lock(lock));
		release(s, 1, "k", stage_lock(lock));
	}
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	nothing_more(s);
	hold_releases(s, 0, false);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	for (uint8_t lock = 2; lock < 5; lock++) {
		came_and_went(s, lock);
	}
	nothing_more(s);
}

static void one_whose_release_is_still_on_its_way_is_told_before_the_next(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	hold_releases(s, 0, true);
	hold_releases(s, 1, true);
	release(s, 0, "k", stage_lock(1));
	take(s, 1, "k", stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	uint64_t next = wait_for(s, N3, "k", stage_lock(3));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	hold_releases(s, 0, false);
	assert_true(answered(s, next));
	assert_int_equal(extend(s, N3, "k", stage_lock(3), LEASE, false), PAWL_OK);
	stage_settle(s);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	came_and_went(s, 2);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(3));
	hold_releases(s, 1, false);
	nothing_more(s);
}

/* n3 took the next lock before it was sent the record that it had refused. */
static void what_was_told_before_the_next_lock_is_not_reported_when_it_is_repaired(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	hold_releases(s, 0, true);
	hold_releases(s, 1, true);
	release(s, 0, "k", stage_lock(1));
	const struct message repaired = { .kind = MESSAGE_LEARN, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(2),
		.token = take(s, 1, "k", stage_lock(2)), .lease_us = 500000 };
	release(s, 1, "k", stage_lock(2));
	uint64_t next = wait_for(s, N3, "k", stage_lock(3));
	hold_releases(s, 0, false);
	assert_true(answered(s, next));
	came_and_went(s, 1);
	came_and_went(s, 2);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(3));
	stage_inject(s, 0, N3, &repaired);
	stage_settle(s);
	hold_releases(s, 1, false);
	nothing_more(s);
}

/* The commit of L2 has drawn the token that L1 has, and fails. */
static void a_refused_commit_with_the_token_of_another_lock_is_missed_events(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "k", stage_lock(1));
	const struct message commit = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(2), .token = token,
		.lease_us = 500000 },
		withdrawn = { .kind = MESSAGE_RELEASE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(2) };
	stage_inject(s, 1, N3, &commit);
	stage_inject(s, 1, N3, &withdrawn);
	release(s, 0, "k", stage_lock(1));
	stage_settle(s);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	missed_events_of_key(s, "k");
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	nothing_more(s);
}

static void those_that_share_do_not_end_each_other(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	hold_releases(s, 0, true);
	release(s, 0, "k", stage_lock(1));
	take_shared(s, 1, 2);
	take_shared(s, 1, 3);
	release(s, 1, "k", stage_lock(3));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	hold_releases(s, 0, false);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	came_and_went(s, 3);
	nothing_more(s);
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LEASE, false), PAWL_OK);
	stage_settle(s);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(2));
	nothing_more(s);
}

/* L1 shares the key and stays at n3 for long, while it has ended elsewhere. L2 is exclusive, and L3
 * shares again. */
static void one_that_shares_with_what_stands_here_does_not_end_what_that_excludes(void **state) {
	struct stage *s = *state;
	take_shared(s, 0, 1);
	hold_releases(s, 0, true);
	release(s, 0, "k", stage_lock(1));
	take(s, 1, "k", stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	take_shared(s, 1, 3);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	missed_events_of_key(s, "k");
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(3));
	hold_releases(s, 0, false);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	nothing_more(s);
}

static void missed_events_of_all(struct stage *s) {
	missed_events_of_key(s, "");
	nothing_more(s);
}

/* L2 is refused, and held elsewhere. */
static void refuse(struct stage *s) {
	take(s, 0, "k", stage_lock(1));
	hold_releases(s, 0, true);
	release(s, 0, "k", stage_lock(1));
	take(s, 1, "k", stage_lock(2));
}

/* L2 ends before n3 has learned it. */
static void end_while_watched(struct stage *s) {
	stage_want_events(s, N3);
	release(s, 1, "k", stage_lock(2));
	hold_releases(s, 0, false);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	nothing_more(s);
	stage_wait(s, 700 * SPAN_MS);
	missed_events_of_all(s);
}

/* The watch begins after the commit was refused, and when its round is over. */
static void what_was_refused_before_somebody_watched_is_missed_events(void **state) {
	struct stage *s = *state;
	core_want_watch_events(s->nodes[N3].core, false);
	/* n3 does not see that L1 has ended. */
	stage_lose(s, 0, N3, MESSAGE_SYNC_KEYS, true);
	stage_lose(s, 1, N3, MESSAGE_SYNC_KEYS, true);
	refuse(s);
	stage_wait(s, 150 * SPAN_MS);
	end_while_watched(s);
}

static void what_is_kept_when_the_last_watch_ends_is_missed_events_for_the_next(void **state) {
	struct stage *s = *state;
	refuse(s);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	core_want_watch_events(s->nodes[N3].core, false);
	end_while_watched(s);
}

static void fill(struct stage *s) {
	for (uint32_t i = 0; i < 3; i++) {
		char name[16];
		const struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
			.key = slice_str(numbered(name, i)),
			.lock_id = stage_lock((uint8_t)(100 + i)),
			.token = stage_status(s, N3).clock + 1, .lease_us = 5000000 };
		stage_inject(s, 0, N3, &m);
	}
	stage_settle(s);
	while (stage_next_event(s, N3)) {
	}
}

static struct stage *small(void) {
	struct stage_options o = named_options();
	o.limits.keys = 3;
	struct stage *s = stage_born(&o);
	stage_want_events(s, N3);
	/* n3 does not see that it alone has this record. */
	stage_lose(s, 0, N3, MESSAGE_SYNC_KEYS, true);
	stage_lose(s, 1, N3, MESSAGE_SYNC_KEYS, true);
	fill(s);
	return s;
}

static void done(struct stage *s) {
	void *state = s;
	assert_int_equal(named_teardown(&state), 0);
}

static void what_came_and_went_where_there_is_no_room_is_told(void **state) {
	(void)state;
	struct stage *s = small();
	take(s, 0, "k", stage_lock(1));
	assert_true(stage_count(s, COUNT_commit_refused_full) > 0);
	nothing_more(s);
	release(s, 0, "k", stage_lock(1));
	came_and_went(s, 1);
	nothing_more(s);
	done(s);
}

/* Nobody can be shown what there is no room for. */
static void what_there_is_no_room_for_is_missed_events_of_the_key_soon(void **state) {
	(void)state;
	struct stage *s = small();
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, 700 * SPAN_MS);
	missed_events_of_key(s, "k");
	nothing_more(s);
	release(s, 0, "k", stage_lock(1));
	nothing_more(s);
	done(s);
}

/* n2 is watched. It has merged the locks of two holders that never knew of each other. */
static void what_came_and_went_while_the_key_was_contested_is_told(void **state) {
	struct stage *s = *state;
	const struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1),
		.token = stage_status(s, 0).clock + 1, .lease_us = 9000000 };
	stage_inject(s, 1, 0, &m);
	stage_isolate(s, 0, true);
	stage_wait(s, 10 * SPAN_MS);
	take(s, 1, "k", stage_lock(2));
	stage_isolate(s, 0, false);
	stage_wait(s, 10 * SPAN_MS);
	stage_kill(s, 1);
	assert_true(stage_start(s, 1) && stage_until_voting(s, 1, SPAN_S));
	stage_want_events(s, 1);
	stage_wait(s, SHORT);
	assert_true(stage_noted(s, 1, NOTE_CONTESTED));
	stage_stop(s, 0, 1, MESSAGE_RELEASE, true);
	release(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(2));
	take(s, N3, "k", stage_lock(3));
	release(s, N3, "k", stage_lock(3));
	stage_stop(s, 0, 1, MESSAGE_RELEASE, false);
	stage_settle(s);
	uint64_t seen = s->events_read;
	watch_event_is(s, 1, WATCH_EVENT_RELEASED, stage_lock(1));
	watch_event_is(s, 1, WATCH_EVENT_RELEASED, stage_lock(2));
	watch_event_is(s, 1, WATCH_EVENT_ACQUIRED, stage_lock(3));
	watch_event_is(s, 1, WATCH_EVENT_RELEASED, stage_lock(3));
	assert_true(s->events_read > seen);
	assert_null(stage_next_event(s, 1));
}

/* If the lock were told as acquired now, it would come after a newer one. */
static void a_commit_that_comes_after_a_newer_lock_is_missed_events_of_the_key(void **state) {
	struct stage *s = *state;
	stage_stop(s, 1, N3, MESSAGE_COMMIT, true);
	take(s, 1, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	take(s, 0, "k", stage_lock(2));
	release(s, 0, "k", stage_lock(2));
	came_and_went(s, 2);
	nothing_more(s);
	stage_stop(s, 1, N3, MESSAGE_COMMIT, false);
	stage_settle(s);
	missed_events_of_key(s, "k");
	nothing_more(s);
}

/* As far as n3 knows, the holder of the older lock lives: its release is on its way by another
 * node. */
static struct message came_and_went_before_it_is_learned(struct stage *s) {
	stage_lose(s, 1, N3, MESSAGE_COMMIT, true);
	stage_stop(s, 1, N3, MESSAGE_RELEASE, true);
	take(s, 1, "k", stage_lock(1));
	stage_lose(s, 1, N3, MESSAGE_COMMIT, false);
	const struct message learned = { .kind = MESSAGE_LEARN, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = stage_last(s)->r.token,
		.lease_us = 500000 };
	release(s, 1, "k", stage_lock(1));
	take(s, 0, "k", stage_lock(2));
	release(s, 0, "k", stage_lock(2));
	return learned;
}

static void is_learned_after_missed_events(struct stage *s, const struct message *learned) {
	stage_inject(s, 1, N3, learned);
	stage_settle(s);
	missed_events_of_key(s, "k");
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	stage_stop(s, 1, N3, MESSAGE_RELEASE, false);
	stage_settle(s);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	nothing_more(s);
}

static void an_older_lock_learned_after_a_newer_one_follows_missed_events(void **state) {
	struct stage *s = *state;
	const struct message learned = came_and_went_before_it_is_learned(s);
	came_and_went(s, 2);
	is_learned_after_missed_events(s, &learned);
}

/* The newer one has come and gone before the watch begins. */
static void what_is_learned_after_what_came_before_the_watch_follows_missed_events(void **state) {
	struct stage *s = *state;
	core_want_watch_events(s->nodes[N3].core, false);
	const struct message learned = came_and_went_before_it_is_learned(s);
	stage_want_events(s, N3);
	is_learned_after_missed_events(s, &learned);
}

/* What a coordinator that died left at n3 stands in the way for seconds. */
static void a_lock_that_waits_for_an_end_too_long_is_missed_events_of_the_key(void **state) {
	struct stage *s = *state;
	const struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1),
		.token = stage_status(s, N3).clock + 1, .lease_us = 5000000 };
	/* n3 does not see that it alone has this record. */
	stage_lose(s, 0, N3, MESSAGE_SYNC_KEYS, true);
	stage_lose(s, 1, N3, MESSAGE_SYNC_KEYS, true);
	stage_inject(s, 0, N3, &m);
	stage_settle(s);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	take(s, 1, "k", stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	nothing_more(s);
	stage_wait(s, 700 * SPAN_MS);
	missed_events_of_key(s, "k");
	nothing_more(s);
}

static void more_than_is_kept_of_a_key_is_missed_events_of_the_key(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	hold_releases(s, 0, true);
	release(s, 0, "k", stage_lock(1));
	for (uint8_t lock = 2; lock < 19; lock++) {
		take(s, 1, "k", stage_lock(lock));
		release(s, 1, "k", stage_lock(lock));
	}
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(1));
	missed_events_of_key(s, "k");
}

/* n3 has not heard of the next epoch yet, and drops what is said under it. */
static void a_commit_of_another_epoch_is_told_or_missed_events_of_the_key(void **state) {
	struct stage *s = *state;
	lose_to(s, N3, MESSAGE_CONFIG, true);
	lose_to(s, N3, MESSAGE_DECREE_ACCEPT, true);
	(void)ask_change(s, 0, max_lease_of(9 * SPAN_S));
	assert_true(wait_until_epoch(s, 0, 2, SPAN_S) && wait_until_epoch(s, 1, 2, SPAN_S));
	assert_int_equal(epoch_of(s, N3), 1);
	take(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, 700 * SPAN_MS);
	missed_events_of_key(s, "k");
	lose_to(s, N3, MESSAGE_CONFIG, false);
	lose_to(s, N3, MESSAGE_DECREE_ACCEPT, false);
}

/* n3 alone has adopted the next epoch, and votes in it. It drops what the others grant under the
 * previous one. */
static void what_is_granted_under_the_previous_epoch_and_released_is_told(void **state) {
	struct stage *s = *state;
	lose_choices(s, 0, true);
	lose_choices(s, 1, true);
	(void)ask_change(s, N3, max_lease_of(9 * SPAN_S));
	assert_true(wait_until_epoch(s, N3, 2, SPAN_S));
	assert_int_equal(state_of(s, N3), CORE_VOTING);
	drain_events(s);
	take(s, 0, "k", stage_lock(1));
	assert_true(count_of(s, N3, COUNT_wrong_epoch) > 0);
	release(s, 0, "k", stage_lock(1));
	assert_true(epoch_of(s, 0) == 1 && epoch_of(s, 1) == 1);
	nothing_more(s);
	lose_choices(s, 0, false);
	lose_choices(s, 1, false);
	assert_true(wait_until_epoch(s, 0, 2, SPAN_S) && wait_until_epoch(s, 1, 2, SPAN_S));
	stage_wait(s, SHORT);
	came_and_went(s, 1);
	nothing_more(s);
}

UNIT(cluster_watching) {
	const struct CMUnitTest tests[] = {
		WATCHED(what_came_and_went_behind_the_record_of_another_is_told_after_it),
		WATCHED(one_whose_release_is_still_on_its_way_is_told_before_the_next),
		WATCHED(what_was_told_before_the_next_lock_is_not_reported_when_it_is_repaired),
		WATCHED(a_refused_commit_with_the_token_of_another_lock_is_missed_events),
		WATCHED(those_that_share_do_not_end_each_other),
		WATCHED(one_that_shares_with_what_stands_here_does_not_end_what_that_excludes),
		WATCHED(what_was_refused_before_somebody_watched_is_missed_events),
		WATCHED(what_is_kept_when_the_last_watch_ends_is_missed_events_for_the_next),
		cmocka_unit_test(what_came_and_went_where_there_is_no_room_is_told),
		cmocka_unit_test(what_there_is_no_room_for_is_missed_events_of_the_key_soon),
		WATCHED(what_came_and_went_while_the_key_was_contested_is_told),
		WATCHED(a_commit_that_comes_after_a_newer_lock_is_missed_events_of_the_key),
		WATCHED(an_older_lock_learned_after_a_newer_one_follows_missed_events),
		WATCHED(what_is_learned_after_what_came_before_the_watch_follows_missed_events),
		WATCHED(a_lock_that_waits_for_an_end_too_long_is_missed_events_of_the_key),
		WATCHED(more_than_is_kept_of_a_key_is_missed_events_of_the_key),
		WATCHED(a_commit_of_another_epoch_is_told_or_missed_events_of_the_key),
		WATCHED(what_is_granted_under_the_previous_epoch_and_released_is_told),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
