/* These tests release a lock and keep its key closed for a while (docs/protocol.md, section 10,
 * Closing). */
#include "modes.h"

#define CLOSE (4 * SPAN_S)
/* All clocks of the stage run at one rate, and messages take no time. */
#define SOON (50 * SPAN_MS)

static struct core_request closing_request(struct id128 lock, span_ns closes) {
	struct core_request r = stage_request(CORE_RELEASE, "k", lock);
	r.closes = closes;
	return r;
}

/* Returns `released`. */
static bool close_after(struct stage *s, uint32_t node, struct id128 lock, span_ns closes) {
	assert_int_equal(stage_do(s, node, closing_request(lock, closes)), PAWL_OK);
	return stage_last(s)->r.released;
}

static int try(struct stage *s, uint32_t node, struct id128 lock) {
	return stage_do(s, node, stage_acquire("k", lock, LEASE, 0));
}

/* Says for how long the key is still closed, as a quorum sees it; 0: it is not. */
static span_ns closed_for(struct stage *s, uint32_t node) {
	struct core_request r = stage_request(CORE_GET, "k", (struct id128){ { 0 } });
	r.quorum = true;
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
	assert_false(stage_last(s)->r.held);
	return stage_last(s)->r.entry.closing ? stage_last(s)->r.entry.closed_for : 0;
}

/* Says the same of one node. */
static span_ns closed_at(struct stage *s, uint32_t node) {
	struct core_inspect look;
	return core_inspect(s->nodes[node].core, slice_str("k"), stage_clock(s, node), &look) &&
		look.entry.closing ? look.entry.closed_for : 0;
}

static void a_key_stays_closed_after_a_release_for_as_long_as_was_asked(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(close_after(s, 1, stage_lock(1), CLOSE));
	assert_true(closed_for(s, 2) > CLOSE - SOON && closed_for(s, 2) <= CLOSE);
	stage_wait(s, CLOSE - SOON);
	assert_int_equal(try(s, 0, stage_lock(2)), PAWL_EHELD);
	assert_true(stage_last(s)->r.entry.closing);
	stage_wait(s, 2 * SOON);
	take(s, 0, "k", stage_lock(3));
}

static void a_release_without_a_time_opens_the_key(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(close_after(s, 1, stage_lock(1), 0));
	take(s, 2, "k", stage_lock(2));
}

static void those_who_wait_go_on_when_the_key_opens(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t next = wait_for(s, 2, "k", stage_lock(2)),
		later = wait_for(s, 1, "k", stage_lock(3));
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	stage_wait(s, CLOSE - SOON);
	assert_false(answered(s, next));
	stage_wait(s, 2 * SOON);
	token_of(s, next);
	assert_false(answered(s, later));
}

static void a_wait_for_a_free_key_ends_when_the_key_opens(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_WAIT, "k", (struct id128){ { 0 } });
	r.for_free = true;
	r.wait = WAIT;
	uint64_t free = stage_ask(s, 1, r);
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	stage_wait(s, CLOSE - SOON);
	assert_false(answered(s, free));
	stage_wait(s, 2 * SOON);
	assert_true(answered(s, free));
}

static void a_repeated_release_does_not_keep_the_key_closed_for_longer(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	stage_wait(s, CLOSE / 2);
	assert_false(close_after(s, 1, stage_lock(1), CLOSE));
	assert_true(closed_for(s, 2) <= CLOSE / 2);
	stage_wait(s, CLOSE / 2 + SOON);
	take(s, 0, "k", stage_lock(2));
}

static void a_lock_that_was_lost_closes_nothing(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, LEASE + SOON);
	assert_false(close_after(s, 1, stage_lock(1), CLOSE));
	take(s, 1, "k", stage_lock(2));
	assert_false(close_after(s, 0, stage_lock(1), CLOSE));
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LEASE, true), PAWL_OK);
}

static void a_lock_that_was_released_so_does_not_come_back(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_ELOST);
	/* Nor does what keeps the key closed become a lock. */
	struct id128 other = stage_lock(1);
	for (size_t i = 0; i < sizeof other.b; i++) {
		other.b[i] = (uint8_t)~other.b[i];
	}
	assert_int_equal(extend(s, 0, "k", other, LEASE, true), PAWL_EDENIED);
	stage_wait(s, CLOSE + SOON);
	take(s, 1, "k", stage_lock(2));
}

/* Reads show the lock_id of what keeps the key closed to whoever released the lock. */
static void what_keeps_the_key_closed_is_not_acquired(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	struct id128 other = stage_lock(1);
	for (size_t i = 0; i < sizeof other.b; i++) {
		other.b[i] = (uint8_t)~other.b[i];
	}
	assert_int_equal(try(s, 0, other), PAWL_ELOST);
	struct core_request r = stage_acquire("k", other, LEASE, 0);
	r.wait = CLOSE / 2;
	assert_int_not_equal(stage_do(s, 1, r), PAWL_OK);
	assert_true(closed_for(s, 2) > 0 && closed_for(s, 2) <= CLOSE);
	stage_wait(s, CLOSE + SOON);
	take(s, 1, "k", stage_lock(2));
}

static void a_master_that_lacked_the_lock_closes_the_key_too(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	take(s, 0, "k", stage_lock(1));
	/* So only one master that had the lock is left. */
	stage_lose(s, 0, 2, MESSAGE_LEARN, true);
	stage_isolate(s, 2, false);
	stage_mend(s);
	stage_settle(s);
	assert_int_equal(closed_at(s, 2), 0);
	stage_lose(s, 0, 2, MESSAGE_LEARN, false);
	stage_isolate(s, 0, true);
	assert_true(close_after(s, 2, stage_lock(1), CLOSE));
	assert_true(closed_at(s, 1) > 0 && closed_at(s, 2) > 0);
	assert_true(stage_count(s, COUNT_release_closed_later) > 0);
	/* The third one hears of it, for what is left of the time. */
	stage_wait(s, CLOSE / 2);
	stage_isolate(s, 0, false);
	stage_wait(s, SOON);
	assert_true(closed_at(s, 0) > 0 && closed_at(s, 0) <= CLOSE / 2);
}

static void a_master_that_hears_late_closes_the_key_for_what_is_left(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(extend(s, 0, "k", stage_lock(1), 9 * SPAN_S, true), PAWL_OK);
	stage_isolate(s, 2, true);
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	stage_wait(s, CLOSE / 2);
	stage_isolate(s, 2, false);
	stage_mend(s);
	stage_settle(s);
	assert_true(closed_at(s, 2) > 0 && closed_at(s, 2) <= CLOSE / 2);
}

static void fewer_than_a_quorum_that_close_the_key_are_an_error(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	/* n2 has released the lock before, and is sent nothing that closes the key. */
	stage_inject(s, 0, 1, &(struct message){ .kind = MESSAGE_RELEASE, .round = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1) });
	stage_lose(s, 0, 1, MESSAGE_LEARN, true);
	uint64_t asked = stage_ask(s, 0, closing_request(stage_lock(1), CLOSE));
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_answer(s, asked)->r.error, PAWL_ENOQUORUM);
}

static void a_master_that_starts_again_keeps_the_key_closed(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	stage_isolate(s, 2, false);
	stage_kill(s, 0);
	stage_mend(s);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_true(closed_at(s, 0) > 0);
	stage_isolate(s, 1, true);
	assert_int_not_equal(try(s, 0, stage_lock(2)), PAWL_OK);
}

static void a_master_that_missed_the_release_learns_it_from_the_others(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(extend(s, 0, "k", stage_lock(1), 9 * SPAN_S, true), PAWL_OK);
	stage_isolate(s, 2, true);
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	/* Nobody sends the release again. */
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	stage_isolate(s, 2, false);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	for (int i = 0; i < 20 && closed_at(s, 2) == 0; i++) {
		stage_wait(s, 100 * SPAN_MS);
	}
	assert_true(closed_at(s, 2) > 0);
	stage_wait(s, CLOSE);
	take(s, 2, "k", stage_lock(2));
}

static void permits_that_were_released_so_stay_closed(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 2, 3), PAWL_OK);
	assert_true(close_after(s, 1, stage_lock(1), CLOSE));
	assert_int_equal(take_permits(s, 0, "k", stage_lock(2), 1, 3), PAWL_OK);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(3), 1, 3), PAWL_EHELD);
	stage_wait(s, CLOSE + SOON);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(4), 2, 3), PAWL_OK);
}

static void a_shared_lock_that_was_released_so_keeps_writers_out(void **state) {
	struct stage *s = *state;
	assert_int_equal(share(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_true(close_after(s, 1, stage_lock(1), CLOSE));
	assert_int_equal(share(s, 2, "k", stage_lock(2)), PAWL_OK);
	release(s, 2, "k", stage_lock(2));
	assert_int_equal(try(s, 0, stage_lock(3)), PAWL_EHELD);
	stage_wait(s, CLOSE + SOON);
	take(s, 0, "k", stage_lock(4));
}

static void the_time_is_bounded_and_goes_with_no_comparison(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 0, closing_request(stage_lock(1), 11 * SPAN_S)),
		PAWL_ETOOLONG);
	assert_string_equal(stage_last(s)->r.field, "close_ms");
	assert_int_equal(stage_last(s)->r.limit, 10 * SPAN_S);
	struct core_request r = closing_request(stage_lock(1), CLOSE);
	r.expect_value = true;
	assert_int_equal(stage_do(s, 0, r), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "close_ms");
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
}

static void who_watches_is_told_of_the_release_and_of_the_opening(void **state) {
	struct stage *s = *state;
	stage_want_events(s, 1);
	take(s, 0, "k", stage_lock(1));
	assert_true(close_after(s, 0, stage_lock(1), CLOSE));
	stage_wait(s, CLOSE + SOON);
	static const enum core_watch_event_kind kinds[] = { WATCH_EVENT_ACQUIRED,
		WATCH_EVENT_RELEASED, WATCH_EVENT_EXPIRED };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct stage_event *e = stage_next_event(s, 1);
		assert_non_null(e);
		assert_int_equal(e->event.kind, kinds[i]);
	}
	assert_null(stage_next_event(s, 1));
}

static void a_replica_shows_that_the_key_is_closed(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SOON);
	assert_true(close_after(s, 3, stage_lock(1), CLOSE));
	stage_wait(s, SOON);
	assert_true(closed_at(s, 3) > CLOSE - 3 * SOON);
	stage_wait(s, CLOSE);
	assert_int_equal(closed_at(s, 3), 0);
}

static int setup_with_a_replica(void **state) {
	return named_setup_replicas(state, 1);
}

UNIT(cluster_closing) {
	const struct CMUnitTest tests[] = {
		NAMED(a_key_stays_closed_after_a_release_for_as_long_as_was_asked),
		NAMED(a_release_without_a_time_opens_the_key),
		NAMED(those_who_wait_go_on_when_the_key_opens),
		NAMED(a_wait_for_a_free_key_ends_when_the_key_opens),
		NAMED(a_repeated_release_does_not_keep_the_key_closed_for_longer),
		NAMED(a_lock_that_was_lost_closes_nothing),
		NAMED(a_lock_that_was_released_so_does_not_come_back),
		NAMED(what_keeps_the_key_closed_is_not_acquired),
		NAMED(a_master_that_lacked_the_lock_closes_the_key_too),
		NAMED(a_master_that_hears_late_closes_the_key_for_what_is_left),
		NAMED(fewer_than_a_quorum_that_close_the_key_are_an_error),
		NAMED(a_master_that_starts_again_keeps_the_key_closed),
		NAMED(a_master_that_missed_the_release_learns_it_from_the_others),
		NAMED(permits_that_were_released_so_stay_closed),
		NAMED(a_shared_lock_that_was_released_so_keeps_writers_out),
		NAMED(the_time_is_bounded_and_goes_with_no_comparison),
		NAMED(who_watches_is_told_of_the_release_and_of_the_opening),
		cmocka_unit_test_setup_teardown(a_replica_shows_that_the_key_is_closed,
			setup_with_a_replica, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
