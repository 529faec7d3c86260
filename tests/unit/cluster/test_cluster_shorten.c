/* These tests make a lease end earlier than its holder had asked for before (docs/protocol.md,
 * section 2, Shorten). */
#include "modes.h"

#define SHORT (300 * SPAN_MS)
#define SOON (50 * SPAN_MS)
/* The replica, to which locks are bound, and their grace time. */
#define P 3
#define GRACE SOON

static struct core_request extension(struct id128 lock, span_ns lease, uint32_t order) {
	struct core_request r = stage_request(CORE_EXTEND, "k", lock);
	r.lease = lease;
	r.deadline_kept = true;
	r.binding = order;
	r.ordered = order > 0;
	return r;
}

static struct core_request shortening(struct id128 lock, span_ns lease, uint32_t order) {
	struct core_request r = extension(lock, lease, order);
	r.shorten = true;
	return r;
}

/* Says for how long the lock still stands at one node; 0: it does not. */
static span_ns left_at(struct stage *s, uint32_t node) {
	struct core_inspect look;
	return core_inspect(s->nodes[node].core, slice_str("k"), stage_clock(s, node), &look)
		? look.entry.remaining : 0;
}

static void a_lease_becomes_shorter(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 1, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.token, token);
	assert_true(stage_last(s)->r.valid <= SHORT);
	stage_wait(s, SHORT + SOON);
	take(s, 2, "k", stage_lock(2));
}

static void without_a_shortening_the_later_end_stays(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 1, extension(stage_lock(1), SHORT, 1)), PAWL_OK);
	assert_true(left_at(s, 2) > LEASE - SOON);
}

static void a_shortened_lease_becomes_longer_again(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 1, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	assert_int_equal(stage_do(s, 1, extension(stage_lock(1), LEASE, 1)), PAWL_OK);
	stage_wait(s, LEASE - SOON);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(stage_do(s, 1, shortening(stage_lock(1), SHORT / 2, 2)), PAWL_OK);
}

static void those_who_wait_get_the_key_at_the_earlier_end(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t next = wait_for(s, 2, "k", stage_lock(2));
	assert_int_equal(stage_do(s, 1, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	stage_wait(s, SHORT - SOON);
	assert_false(answered(s, next));
	stage_wait(s, 2 * SOON);
	token_of(s, next);
}

/* The shortening lies in a link, and its holder has gone on at another node. */
static void a_late_shortening_does_not_cut_a_later_extension(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	for (uint32_t to = 1; to < 3; to++) {
		s->held[0][to] = true;
	}
	uint64_t late = stage_ask(s, 0, shortening(stage_lock(1), SHORT, 1));
	stage_settle(s);
	assert_false(answered(s, late));
	assert_int_equal(stage_do(s, 1, extension(stage_lock(1), 4 * SPAN_S, 1)), PAWL_OK);
	for (uint32_t to = 1; to < 3; to++) {
		s->held[0][to] = false;
	}
	stage_settle(s);
	for (uint32_t node = 1; node < 3; node++) {
		assert_true(left_at(s, node) > 4 * SPAN_S - SOON);
	}
}

static void an_earlier_extension_that_comes_late_only_costs_time(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	s->held[0][2] = true;
	assert_int_equal(stage_do(s, 0, extension(stage_lock(1), 4 * SPAN_S, 0)), PAWL_OK);
	assert_int_equal(stage_do(s, 1, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	assert_true(left_at(s, 0) <= SHORT && left_at(s, 1) <= SHORT);
	s->held[0][2] = false;
	stage_settle(s);
	assert_true(left_at(s, 2) > SHORT);
	stage_wait(s, 4 * SPAN_S + SOON);
	take(s, 1, "k", stage_lock(2));
}

static void a_master_that_missed_it_keeps_the_later_end(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	assert_int_equal(stage_do(s, 0, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	assert_true(left_at(s, 2) > LEASE - SOON);
	stage_isolate(s, 2, false);
	stage_mend(s);
	stage_wait(s, SHORT + SOON);
	take(s, 1, "k", stage_lock(2));
}

/* What it knows of the order comes with the copies of the record. */
static void a_master_that_starts_again_heeds_no_late_shortening(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 1, extension(stage_lock(1), 6 * SPAN_S, 1)), PAWL_OK);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	assert_true(stage_until_voting(s, 2, SPAN_S));
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_EXTEND, .round = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .lease_us = 1000,
		.number = NUMBER_SHORTENS | 1 });
	assert_true(left_at(s, 2) > 4 * SPAN_S);
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_EXTEND, .round = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .lease_us = 1000,
		.number = NUMBER_SHORTENS | 2 });
	assert_true(left_at(s, 2) <= SPAN_MS);
}

static void a_node_that_answered_before_does_not_vouch_for_what_was_shortened(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	/* n3 misses the shortening. */
	stage_lose(s, 1, 2, MESSAGE_EXTEND, true);
	assert_int_equal(stage_do(s, 1, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	stage_wait(s, SHORT + SOON);
	take(s, 1, "k", stage_lock(2));
	release(s, 1, "k", stage_lock(2));
	/* n1 has answered for a longer lease. Its client keeps no deadline. */
	struct core_request r = extension(stage_lock(1), LEASE, 1);
	r.deadline_kept = false;
	assert_int_not_equal(stage_do(s, 0, r), PAWL_OK);
}

static void a_lock_delay_follows_the_earlier_end(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.delay = SPAN_S;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_int_equal(stage_do(s, 0, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	stage_wait(s, SHORT + SPAN_S - SOON);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	stage_wait(s, 2 * SOON);
	take(s, 1, "k", stage_lock(3));
}

static void permits_that_are_named_become_shorter(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 2, 2), PAWL_OK);
	struct core_request r = shortening(stage_lock(1), SHORT, 1);
	r.terms.set = permits_all(2);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_wait(s, SHORT + SOON);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 2, 2), PAWL_OK);
}

static void permits_that_are_not_named_last_as_long_as_before(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 2, 2), PAWL_OK);
	struct core_request r = shortening(stage_lock(1), SHORT, 1);
	r.terms.set = permits_all(1);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_wait(s, SHORT + SOON);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 2, 2), PAWL_EHELD);
}

/* A node may have answered for permit numbers, and for longer, before the lease was shortened
 * elsewhere: its holder may have lost them since, and have got others. */
static void a_node_that_answered_before_does_not_know_the_permits(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", stage_lock(1), 1, 2), PAWL_OK);
	const struct permits first = stage_last(s)->r.terms.set;
	struct core_request r = shortening(stage_lock(1), SHORT, 1);
	r.terms.set = first;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	stage_wait(s, SHORT + SOON);
	assert_int_equal(take_permits(s, 1, "k", stage_lock(2), 1, 2), PAWL_OK);
	/* The answer to the shortening was lost, so its holder repeats the acquire. */
	r = permits_request("k", stage_lock(1), 1, 2, 0);
	r.terms.binding = 1;
	r.ordered = true;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	const struct permits second = stage_last(s)->r.terms.set;
	assert_false(permits_meet(first, second));
	const uint64_t token = stage_last(s)->r.token;
	release(s, 1, "k", stage_lock(2));
	assert_int_equal(take_permits(s, 1, "k", stage_lock(3), 1, 2), PAWL_OK);
	assert_true(stage_last(s)->r.token > token);
	release(s, 1, "k", stage_lock(3));
	assert_int_equal(stage_do(s, 0, extension(stage_lock(1), LEASE, 1)), PAWL_OK);
	assert_true(permits_within(stage_last(s)->r.terms.set, second));
}

/* A lock that ends with a connection: the next number is a connection, and the present one may name
 * it. */
static void a_bound_lock_still_ends_with_its_connection(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.binding = 1;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	r = shortening(stage_lock(1), 2 * SPAN_S, 2);
	r.ordered = false;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_true(left_at(s, 1) > 0 && left_at(s, 1) <= 2 * SPAN_S);
	/* What the connection had named before does not end it any more. */
	r = stage_request(CORE_RELEASE, "k", stage_lock(1));
	r.binding = 1;
	(void)stage_do(s, 0, r);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	r.binding = 2;
	(void)stage_do(s, 0, r);
	take(s, 1, "k", stage_lock(3));
}

static void an_order_frees_a_lock_from_its_connection(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.binding = 1;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_int_equal(stage_do(s, 0, shortening(stage_lock(1), 2 * SPAN_S, 2)), PAWL_OK);
	r = stage_request(CORE_RELEASE, "k", stage_lock(1));
	r.binding = 1;
	(void)stage_do(s, 0, r);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	stage_wait(s, 2 * SPAN_S + SOON);
	take(s, 1, "k", stage_lock(3));
}

/* Its node may have answered for the lock over this connection, and would vouch for it. */
static void whoever_shortens_a_bound_lock_keeps_the_deadline(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.binding = 1;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	r = shortening(stage_lock(1), SHORT, 2);
	r.ordered = r.deadline_kept = false;
	assert_int_equal(stage_do(s, 0, r), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "shorten");
}

static void a_shortening_names_an_order(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 0, shortening(stage_lock(1), SHORT, 0)), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "shorten");
}

static void a_replica_shows_the_earlier_end(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SOON);
	assert_int_equal(stage_do(s, 3, shortening(stage_lock(1), SHORT, 1)), PAWL_OK);
	stage_wait(s, SOON);
	assert_true(left_at(s, 3) > 0 && left_at(s, 3) <= SHORT);
}

/* ---- a lock that is bound to its node ---- */

/* The holder has shortened its lease to SHORT and lengthened it again, which node 0 misses. It has
 * heard of the shortening, but its answer is lost. Node 2, which has all, lets go. */
static void shortened_and_missed(struct stage *s, struct permits numbers, bool answers) {
	struct core_request bind = stage_request(CORE_BINDING, "k", stage_lock(1));
	bind.wait = GRACE;
	const uint64_t id = stage_ask(s, P, bind);
	stage_settle(s);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	r.deadline_kept = true;
	r.terms.set = numbers;
	/* From an extension on a master is known to keep permits. */
	assert_int_equal(stage_do(s, P, r), PAWL_OK);
	stage_lose(s, P, 0, MESSAGE_LEARN, true);
	stage_lose(s, 0, P, MESSAGE_EXTEND_ANSWER, !answers);
	r.lease = SHORT;
	r.ordered = r.shorten = true;
	r.binding = 1;
	assert_int_equal(stage_do(s, P, r), PAWL_OK);
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, P, 0, i ? MESSAGE_EXTEND : MESSAGE_EXTEND_PERMITS, true);
		stage_lose(s, 1 + i, 0, MESSAGE_SYNC_KEYS, true);
	}
	stage_lose(s, P, 0, MESSAGE_BINDING, true);
	r.lease = 4 * LEASE;
	r.shorten = false;
	assert_int_equal(stage_do(s, P, r), PAWL_OK);
	stage_wait(s, SHORT + GRACE);
	assert_int_equal(left_at(s, 0), 0);
	stage_close(s, P, 2);
	stage_cut(s, P, 2, true);
	struct core_request next = stage_acquire("k", stage_lock(2), LEASE, WAIT);
	next.terms.of = permits_none(numbers) ? MODE_EXCLUSIVE : 2;
	next.terms.count = permits_none(numbers) ? 0 : 2;
	const uint64_t other = stage_ask(s, 0, next);
	stage_settle(s);
	/* The lock is given up by the time at which another one gets the key. */
	for (int64_t end = s->now + LEASE; !answered(s, other) && s->now < end;
		stage_wait(s, SPAN_MS / 10)) {
	}
	token_of(s, other);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	assert_true(instant_distrusted(stage_clock(s, P),
		core_binding_end(s->nodes[P].core, slice_str("k"), stage_lock(1))));
}

static void a_master_keeps_a_shortened_lock_for_no_longer(void **state) {
	take(*state, P, "k", stage_lock(1));
	shortened_and_missed(*state, (struct permits){ { 0, 0 } }, false);
}

static void a_master_keeps_shortened_permits_for_no_longer(void **state) {
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.terms.of = r.terms.count = 2;
	assert_int_equal(stage_do(*state, P, r), PAWL_OK);
	shortened_and_missed(*state, permits_all(2), true);
}

static int setup_with_a_replica(void **state) {
	return named_setup_replicas(state, 1);
}

UNIT(cluster_shorten) {
	const struct CMUnitTest tests[] = {
		NAMED(a_lease_becomes_shorter),
		NAMED(without_a_shortening_the_later_end_stays),
		NAMED(a_shortened_lease_becomes_longer_again),
		NAMED(those_who_wait_get_the_key_at_the_earlier_end),
		NAMED(a_late_shortening_does_not_cut_a_later_extension),
		NAMED(an_earlier_extension_that_comes_late_only_costs_time),
		NAMED(a_master_that_missed_it_keeps_the_later_end),
		NAMED(a_master_that_starts_again_heeds_no_late_shortening),
		NAMED(a_node_that_answered_before_does_not_vouch_for_what_was_shortened),
		NAMED(a_lock_delay_follows_the_earlier_end),
		NAMED(permits_that_are_named_become_shorter),
		NAMED(permits_that_are_not_named_last_as_long_as_before),
		NAMED(a_node_that_answered_before_does_not_know_the_permits),
		NAMED(a_bound_lock_still_ends_with_its_connection),
		NAMED(an_order_frees_a_lock_from_its_connection),
		NAMED(whoever_shortens_a_bound_lock_keeps_the_deadline),
		NAMED(a_shortening_names_an_order),
		cmocka_unit_test_setup_teardown(a_replica_shows_the_earlier_end,
			setup_with_a_replica, named_teardown),
		cmocka_unit_test_setup_teardown(a_master_keeps_a_shortened_lock_for_no_longer,
			setup_with_a_replica, named_teardown),
		cmocka_unit_test_setup_teardown(a_master_keeps_shortened_permits_for_no_longer,
			setup_with_a_replica, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
