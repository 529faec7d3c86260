/* Something passes a master by although it was counted, or passes a master by whose own count does
 * not say all. Whoever watches is told of missed events (docs/protocol.md, section 3, Watching). n3
 * is watched. */
#include "watched.h"

static void missed_events_of_all(struct stage *s) {
	const struct stage_event *missed = watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock);
	assert_int_equal(missed->key.size, 0);
}

/* n4 heard of nothing that n1 granted while n4 was a replica. Of those that granted X, n4 is the
 * only one left. */
static void a_promoted_master_remembers_as_much_as_the_others(void **state) {
	struct stage *s = *state;
	for (uint8_t lock = 1; lock < 4; lock++) {
		take(s, 0, "k", stage_lock(lock));
		release(s, 0, "k", stage_lock(lock));
	}
	must(s, 0, change_of(CHANGE_PROMOTE, "n4"));
	stage_wait(s, SPAN_S);
	drain_events(s);
	stage_cut(s, 0, N3, true);
	take(s, 0, "k", stage_lock(9));
	release(s, 0, "k", stage_lock(9));
	stage_kill(s, 0);
	stage_kill(s, 1);
	nothing_more(s);
	stage_wait(s, 500 * SPAN_MS);
	missed_events_of_all(s);
}

static void stop_snapshots(struct stage *s, bool stop) {
	for (uint32_t other = 0; other < 2; other++) {
		stage_stop(s, other, N3, MESSAGE_SNAPSHOT_END, stop);
	}
	stage_settle(s);
}

static void stop_commits_of_n4(struct stage *s, bool stop) {
	for (uint32_t other = 0; other < 2; other++) {
		stage_stop(s, 3, other, MESSAGE_COMMIT, stop);
	}
	stage_settle(s);
}

static void restart_slowly(struct stage *s) {
	stage_kill(s, N3);
	stop_snapshots(s, true);
	assert_true(stage_start(s, N3));
	stage_want_events(s, N3);
	/* n3 asks for snapshots after request_timeout. */
	stage_wait(s, 120 * SPAN_MS);
	stop_commits_of_n4(s, true);
}

/* n3 begins to vote before X is granted, and its link with n4 breaks. */
static void is_granted_once_it_votes(struct stage *s, uint64_t id) {
	stage_settle(s);
	assert_int_equal(state_of(s, N3), CORE_RECOVERING);
	stop_snapshots(s, false);
	assert_true(stage_until_voting(s, N3, 50 * SPAN_MS));
	drain_events(s);
	stage_cut(s, 3, N3, true);
	stop_commits_of_n4(s, false);
	token_of(s, id);
	release(s, 3, "k", stage_lock(1));
	stage_wait(s, 300 * SPAN_MS);
	missed_events_of_all(s);
	nothing_more(s);
}

static uint64_t ask_n4(struct stage *s) {
	uint64_t id = stage_ask(s, 3, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	return id;
}

static void what_came_before_it_voted_is_reported_once_it_is_granted(void **state) {
	struct stage *s = *state;
	restart_slowly(s);
	is_granted_once_it_votes(s, ask_n4(s));
}

/* n3 was not linked with n4 when n4 began X, and is linked when it votes. */
static void what_a_master_heard_of_before_it_voted_is_reported_once_granted(void **state) {
	struct stage *s = *state;
	restart_slowly(s);
	stage_cut(s, 3, N3, true);
	uint64_t id = ask_n4(s);
	stage_cut(s, 3, N3, false);
	stage_mend(s);
	is_granted_once_it_votes(s, id);
}

static void hold_releases(struct stage *s, bool hold) {
	stage_stop(s, 1, N3, MESSAGE_RELEASE, hold);
	stage_settle(s);
}

/* The release of this lock is slow to reach n3. */
static uint64_t stand_in_the_way(struct stage *s, uint8_t lock) {
	uint64_t token = take(s, 1, "k", stage_lock(lock));
	hold_releases(s, true);
	release(s, 1, "k", stage_lock(lock));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(lock));
	return token;
}

static void came_and_went(struct stage *s, uint8_t lock) {
	hold_releases(s, false);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(lock));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(2));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(2));
	nothing_more(s);
}

/* L2's first commit was rolled back, and that was told. n3 refuses the second commit, too. */
static void a_lock_that_is_had_at_a_second_try_is_told_again(void **state) {
	struct stage *s = *state;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1 << 8 | 1,
		.key = slice_str("k"), .lock_id = stage_lock(2), .lease_us = 500000 };
	m.token = stand_in_the_way(s, 1) + 1;
	stage_inject(s, 0, N3, &m);
	m.kind = MESSAGE_RELEASE;
	stage_inject(s, 0, N3, &m);
	came_and_went(s, 1);
	stand_in_the_way(s, 3);
	take(s, 0, "k", stage_lock(2));
	release(s, 0, "k", stage_lock(2));
	came_and_went(s, 3);
}

/* ---- not before the others can no longer accept it ---- */

static void missed_events_of_k(struct stage *s) {
	assert_true(text_is(&watch_event_is(s, N3, WATCH_EVENT_MISSED, no_lock)->key, "k"));
}

/* n3 refuses the lock's commit before n2 has taken it, and is not sent the record. */
static uint64_t under_way_at_the_others(struct stage *s, uint8_t lock) {
	stage_lose(s, 0, N3, MESSAGE_LEARN, true);
	stage_lose(s, 1, N3, MESSAGE_LEARN, true);
	stage_stop(s, 0, 1, MESSAGE_COMMIT, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(lock), LEASE, 0));
	stage_settle(s);
	return id;
}

static void goes_on_at_the_others(struct stage *s, uint64_t id, uint8_t lock) {
	stage_stop(s, 0, 1, MESSAGE_COMMIT, false);
	stage_settle(s);
	token_of(s, id);
	release(s, 0, "k", stage_lock(lock));
}

static void what_is_not_kept_is_reported_again_once_its_round_is_over(void **state) {
	struct stage *s = *state;
	stand_in_the_way(s, 1);
	for (uint8_t lock = 2; lock < 18; lock++) {
		take(s, 0, "k", stage_lock(lock));
		release(s, 0, "k", stage_lock(lock));
	}
	nothing_more(s);
	uint64_t id = under_way_at_the_others(s, 18);
	missed_events_of_k(s);
	goes_on_at_the_others(s, id, 18);
	nothing_more(s);
	stage_wait(s, 150 * SPAN_MS);
	missed_events_of_all(s);
}

/* Returns a commit of a coordinator that died. */
static struct message left_at_n3(struct stage *s, uint8_t lock, uint64_t above) {
	const struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(lock),
		.token = stage_status(s, N3).clock + above, .lease_us = 5000000 };
	/* n3 does not see that it alone has this record. */
	stage_lose(s, 0, N3, MESSAGE_SYNC_KEYS, true);
	stage_lose(s, 1, N3, MESSAGE_SYNC_KEYS, true);
	stage_inject(s, 0, N3, &m);
	stage_settle(s);
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(lock));
	return m;
}

static void what_is_too_late_to_tell_is_reported_when_it_has_ended(void **state) {
	struct stage *s = *state;
	stage_stop(s, 0, N3, MESSAGE_COMMIT, true);
	uint64_t id = under_way_at_the_others(s, 2);
	left_at_n3(s, 1, 100);
	stage_stop(s, 0, N3, MESSAGE_COMMIT, false);
	stage_settle(s);
	nothing_more(s);
	goes_on_at_the_others(s, id, 2);
	missed_events_of_k(s);
	nothing_more(s);
}

static void what_waited_too_long_does_not_stand_for_what_was_just_refused(void **state) {
	struct stage *s = *state;
	struct message m = left_at_n3(s, 1, 1);
	take(s, 1, "k", stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	stage_wait(s, 570 * SPAN_MS);
	nothing_more(s);
	uint64_t id = under_way_at_the_others(s, 3);
	stage_wait(s, 60 * SPAN_MS);
	missed_events_of_k(s);
	goes_on_at_the_others(s, id, 3);
	nothing_more(s);
	m.kind = MESSAGE_RELEASE;
	stage_inject(s, 0, N3, &m);
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(1));
	watch_event_is(s, N3, WATCH_EVENT_ACQUIRED, stage_lock(3));
	watch_event_is(s, N3, WATCH_EVENT_RELEASED, stage_lock(3));
	nothing_more(s);
}

static void missed_events_of_all_do_not_cover_what_was_just_refused(void **state) {
	struct stage *s = *state;
	stand_in_the_way(s, 1);
	stage_cut(s, 0, N3, true);
	take(s, 0, "other", stage_lock(9));
	stage_cut(s, 0, N3, false);
	stage_mend(s);
	stage_settle(s);
	missed_events_of_all(s);
	stage_wait(s, 60 * SPAN_MS);
	uint64_t id = under_way_at_the_others(s, 2);
	stage_wait(s, 60 * SPAN_MS);
	drain_events(s);
	goes_on_at_the_others(s, id, 2);
	nothing_more(s);
	came_and_went(s, 1);
}

/* ---- what comparisons bring ---- */

/* L2 is held by the others, who send n3 its record again and again. There the key is promised to
 * somebody else all the time. */
static void lacks_it(struct stage *s) {
	stage_lose(s, 0, N3, MESSAGE_PROMISE, true);
	stage_lose(s, 0, N3, MESSAGE_COMMIT, true);
	stage_lose(s, 0, N3, MESSAGE_LEARN, true);
	take(s, 0, "k", stage_lock(2));
}

static void promised_to_another(struct stage *s, span_ns how_long) {
	for (span_ns gone = 0; gone < how_long; gone += 50 * SPAN_MS) {
		struct message m = { .kind = MESSAGE_PROMISE, .round = 1 << 16, .attempt = 1 << 16,
			.key = slice_str("k"), .lock_id = stage_lock(9), .ballot = { 1, 1, 1 } };
		stage_inject(s, 1, N3, &m);
		stage_wait(s, 50 * SPAN_MS);
	}
}

static void what_a_comparison_could_not_bring_ends_while_it_is_watched(void **state) {
	struct stage *s = *state;
	core_want_watch_events(s->nodes[N3].core, false);
	lacks_it(s);
	promised_to_another(s, SPAN_S);
	stage_want_events(s, N3);
	release(s, 0, "k", stage_lock(2));
	nothing_more(s);
	stage_wait(s, 700 * SPAN_MS);
	missed_events_of_all(s);
}

UNIT(cluster_missed) {
	const struct CMUnitTest tests[] = {
		WITH_A_REPLICA(a_promoted_master_remembers_as_much_as_the_others),
		WITH_A_REPLICA(what_came_before_it_voted_is_reported_once_it_is_granted),
		WITH_A_REPLICA(what_a_master_heard_of_before_it_voted_is_reported_once_granted),
		WATCHED(a_lock_that_is_had_at_a_second_try_is_told_again),
		WATCHED(what_is_not_kept_is_reported_again_once_its_round_is_over),
		WATCHED(what_is_too_late_to_tell_is_reported_when_it_has_ended),
		WATCHED(what_waited_too_long_does_not_stand_for_what_was_just_refused),
		WATCHED(missed_events_of_all_do_not_cover_what_was_just_refused),
		WATCHED(what_a_comparison_could_not_bring_ends_while_it_is_watched),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
