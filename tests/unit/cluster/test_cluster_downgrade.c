/* These tests go from exclusive to shared without letting go, and look at the time for which a key
 * stays closed after a loss (docs/protocol.md, section 10). */
#include "modes.h"

static int downgrade(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	return stage_do(s, node, stage_request(CORE_DOWNGRADE, key, lock));
}

static uint16_t kind_at(struct stage *s, uint32_t node, const char *key) {
	struct core_inspect look;
	assert_true(core_inspect(s->nodes[node].core, slice_str(key), stage_clock(s, node), &look));
	return look.entry.terms.of;
}

static void readers_join_a_holder_that_lets_them(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_EHELD);
	assert_int_equal(downgrade(s, 2, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.token, token);
	assert_int_equal(stage_last(s)->r.terms.of, MODE_SHARED);
	assert_int_equal(share(s, 1, "k", stage_lock(3)), PAWL_OK);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(4), LEASE, 0)), PAWL_EHELD);
	/* A second downgrade changes nothing. */
	assert_int_equal(downgrade(s, 1, "k", stage_lock(1)), PAWL_OK);
}

static void readers_that_wait_go_on_when_the_writer_lets_them(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t a = wait_shared(s, 1, "k", stage_lock(2)), b = wait_shared(s, 2, "k",
		stage_lock(3)), writer = wait_for(s, 0, "k", stage_lock(4));
	assert_false(answered(s, a));
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	token_of(s, a);
	token_of(s, b);
	assert_false(answered(s, writer));
}

/* Both wait for the writer with a turn. When the writer lets readers in, the more important request
 * is still in the way of the reader, until it gives up. */
static void a_reader_goes_on_when_who_was_ahead_of_it_gives_up(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t reader = wait_shared(s, 1, "k", stage_lock(2));
	struct core_request r = stage_acquire("k", stage_lock(3), LEASE, 20 * SPAN_MS);
	r.terms.priority = 5;
	uint64_t writer = stage_ask(s, 2, r);
	stage_settle(s);
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_false(answered(s, reader));
	/* This is before the reader would ask again by itself. */
	stage_wait(s, 25 * SPAN_MS);
	assert_int_equal(stage_answer(s, writer)->r.error, PAWL_ETIMEOUT);
	token_of(s, reader);
}

static void a_reader_goes_on_when_the_node_of_who_was_ahead_is_gone(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t reader = wait_shared(s, 1, "k", stage_lock(2));
	struct core_request r = stage_acquire("k", stage_lock(3), LEASE, WAIT);
	r.terms.priority = 5;
	stage_ask(s, 2, r);
	stage_settle(s);
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_false(answered(s, reader));
	stage_isolate(s, 2, true);
	stage_wait(s, 10 * SPAN_MS);
	token_of(s, reader);
}

static void a_downgrade_needs_a_lock_that_was_exclusive(void **state) {
	struct stage *s = *state;
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_ELOST);
	assert_int_equal(take_permits(s, 0, "k", stage_lock(2), 1, 2), PAWL_OK);
	assert_int_equal(downgrade(s, 0, "k", stage_lock(2)), PAWL_EMISMATCH);
	assert_string_equal(stage_last(s)->r.field, "mode");
}

static void a_master_that_missed_it_is_told_again(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(kind_at(s, 2, "k"), MODE_EXCLUSIVE);
	stage_isolate(s, 2, false);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(kind_at(s, 2, "k"), MODE_SHARED);
}

static void a_master_that_missed_it_learns_it_from_the_others(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	/* That node would have sent the downgrade again. */
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	stage_isolate(s, 2, false);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	for (int i = 0; i < 20 && kind_at(s, 2, "k") != MODE_SHARED; i++) {
		assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
		stage_wait(s, SPAN_S);
	}
	assert_int_equal(kind_at(s, 2, "k"), MODE_SHARED);
	assert_true(stage_count(s, COUNT_downgrade_learned) > 0);
}

static void a_repeat_for_a_shared_one_is_not_refused_where_it_was_missed(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_lose(s, 0, 2, MESSAGE_DOWNGRADE, true);
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(kind_at(s, 2, "k"), MODE_EXCLUSIVE);
	assert_int_equal(share(s, 2, "k", stage_lock(1)), PAWL_OK);
	assert_int_equal(kind_at(s, 2, "k"), MODE_SHARED);
	assert_int_equal(share(s, 1, "k", stage_lock(2)), PAWL_OK);
	/* The lock never goes back to exclusive. */
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0)),
		PAWL_EMISMATCH);
}

static void a_master_that_is_repaired_afterwards_learns_a_shared_lock(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(downgrade(s, 0, "k", stage_lock(1)), PAWL_OK);
	stage_isolate(s, 2, false);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(kind_at(s, 2, "k"), MODE_SHARED);
}

/* ---- lock delay ---- */

static int take_delayed(struct stage *s, uint32_t node, struct id128 lock, span_ns lease,
	span_ns delay) {
	struct core_request r = stage_acquire("k", lock, lease, 0);
	r.terms.delay = delay;
	return stage_do(s, node, r);
}

static void a_key_stays_closed_for_its_lock_delay_after_a_loss(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_delayed(s, 0, stage_lock(1), LEASE, 3 * SPAN_S), PAWL_OK);
	/* The holder may count on the lease alone. */
	assert_true(stage_last(s)->r.valid <= LEASE);
	stage_wait(s, LEASE + SPAN_S);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_false(stage_last(s)->r.held);
	assert_true(stage_last(s)->r.entry.closing);
	assert_int_equal(stage_do(s, 1, stage_request(CORE_GET, "k", (struct id128){ { 0 } })),
		PAWL_OK);
	assert_false(stage_last(s)->r.held);
	assert_true(stage_last(s)->r.entry.closing);
	assert_true(stage_last(s)->r.entry.closed_for > SPAN_S &&
		stage_last(s)->r.entry.closed_for <= 2 * SPAN_S + 100 * SPAN_MS);
	assert_int_equal(stage_last(s)->r.entry.remaining, 0);
	stage_wait(s, 2 * SPAN_S + 200 * SPAN_MS);
	take(s, 1, "k", stage_lock(3));
}

static void a_wait_for_a_free_key_lasts_until_the_end_of_the_delay(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_delayed(s, 0, stage_lock(1), LEASE, 3 * SPAN_S), PAWL_OK);
	stage_wait(s, LEASE + SPAN_S);
	struct core_request r = stage_request(CORE_WAIT, "k", (struct id128){ { 0 } });
	r.for_free = true;
	r.wait = WAIT;
	uint64_t free = stage_ask(s, 1, r);
	r.for_free = false;
	uint64_t held = stage_ask(s, 1, r);
	stage_settle(s);
	assert_false(answered(s, free));
	assert_false(answered(s, held));
	stage_wait(s, 2 * SPAN_S + 200 * SPAN_MS);
	assert_true(answered(s, free));
	assert_false(answered(s, held));
	take(s, 0, "k", stage_lock(2));
	assert_true(answered(s, held));
}

static void a_release_opens_the_key_at_once(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_delayed(s, 0, stage_lock(1), LEASE, 5 * SPAN_S), PAWL_OK);
	uint64_t next = wait_for(s, 1, "k", stage_lock(2));
	release(s, 0, "k", stage_lock(1));
	token_of(s, next);
}

static void an_extension_carries_the_delay_with_it(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_delayed(s, 0, stage_lock(1), LEASE, 3 * SPAN_S), PAWL_OK);
	stage_wait(s, SPAN_S);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), 4 * SPAN_S, true), PAWL_OK);
	assert_true(stage_last(s)->r.valid <= 4 * SPAN_S);
	stage_wait(s, 6 * SPAN_S);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	stage_wait(s, SPAN_S + 200 * SPAN_MS);
	take(s, 1, "k", stage_lock(3));
}

static void lease_and_delay_together_are_not_longer_than_allowed(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_delayed(s, 0, stage_lock(1), LEASE, 9 * SPAN_S), PAWL_ETOOLONG);
	assert_string_equal(stage_last(s)->r.field, "lock_delay_ms");
	assert_int_equal(take_delayed(s, 0, stage_lock(2), LEASE, 8 * SPAN_S), PAWL_OK);
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LEASE + SPAN_S, true), PAWL_ETOOLONG);
	assert_int_equal(extend(s, 1, "k", stage_lock(2), LEASE, true), PAWL_OK);
}

UNIT(cluster_downgrade) {
	const struct CMUnitTest tests[] = {
		NAMED(readers_join_a_holder_that_lets_them),
		NAMED(readers_that_wait_go_on_when_the_writer_lets_them),
		NAMED(a_reader_goes_on_when_who_was_ahead_of_it_gives_up),
		NAMED(a_reader_goes_on_when_the_node_of_who_was_ahead_is_gone),
		NAMED(a_downgrade_needs_a_lock_that_was_exclusive),
		NAMED(a_master_that_missed_it_is_told_again),
		NAMED(a_master_that_missed_it_learns_it_from_the_others),
		NAMED(a_repeat_for_a_shared_one_is_not_refused_where_it_was_missed),
		NAMED(a_master_that_is_repaired_afterwards_learns_a_shared_lock),
		NAMED(a_key_stays_closed_for_its_lock_delay_after_a_loss),
		NAMED(a_wait_for_a_free_key_lasts_until_the_end_of_the_delay),
		NAMED(a_release_opens_the_key_at_once),
		NAMED(an_extension_carries_the_delay_with_it),
		NAMED(lease_and_delay_together_are_not_longer_than_allowed),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
