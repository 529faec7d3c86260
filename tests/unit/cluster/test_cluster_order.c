/* These tests ask who is next among those who wait: the more important one, and then the one who
 * came first (docs/protocol.md, section 10, Order). */
#include "named.h"

static int setup_five(void **state) {
	return named_setup_of(state, 5, 0);
}

static uint64_t wait_as(struct stage *s, uint32_t node, uint8_t lock, int32_t priority) {
	struct core_request r = stage_acquire("k", stage_lock(lock), LEASE, WAIT);
	r.terms.priority = priority;
	uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	stage_wait(s, SPAN_MS);
	return id;
}

/* Checks that they get the key in this order; each one releases it at once, at this node. */
static void served_at(struct stage *s, uint32_t node, const char *key, uint8_t holder,
	const uint64_t *ids, const uint8_t *locks, uint32_t count) {
	for (uint32_t i = 0; i < count; i++) {
		for (uint32_t j = i; j < count; j++) {
			assert_false(answered(s, ids[j]));
		}
		assert_int_equal(release(s, node, key, stage_lock(holder)), PAWL_OK);
		stage_wait(s, 20 * SPAN_MS);
		token_of(s, ids[i]);
		holder = locks[i];
	}
}

static void served(struct stage *s, const char *key, uint8_t holder, const uint64_t *ids,
	const uint8_t *locks, uint32_t count) {
	served_at(s, 1, key, holder, ids, locks, count);
}

static void a_more_important_one_goes_before_those_who_came_earlier(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t low = wait_as(s, 1, 1, 0), high = wait_as(s, 2, 2, 5);
	served(s, "k", 100, (uint64_t[]){ high, low }, (uint8_t[]){ 2, 1 }, 2);
}

static void among_equals_who_came_first_goes_first(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t a = wait_as(s, 1, 1, 0), b = wait_as(s, 2, 2, 5), c = wait_as(s, 0, 3, -5),
		d = wait_as(s, 1, 4, 5), e = wait_as(s, 0, 5, 0);
	served(s, "k", 100, (uint64_t[]){ b, d, a, e, c }, (uint8_t[]){ 2, 4, 1, 5, 3 }, 5);
}

static void a_turn_is_given_to_a_more_important_one_as_well_and_to_no_other(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, 1, 0);
	(void)wait_as(s, 1, 2, 0);
	assert_int_equal(stage_count(s, COUNT_turn_given), 1);
	(void)wait_as(s, 2, 3, 1);
	assert_int_equal(stage_count(s, COUNT_turn_given), 2);
	assert_int_equal(stage_count(s, COUNT_turn_overtaken), 1);
	(void)wait_as(s, 2, 4, 1);
	(void)wait_as(s, 0, 5, -1);
	assert_int_equal(stage_count(s, COUNT_turn_given), 2);
}

/* Says whether the node's requests for the key, which is held, are in its own queue. */
static bool is_home(struct stage *s, uint32_t node, const char *key) {
	uint64_t before = stage_sent(s, MESSAGE_ENQUEUE);
	(void)wait_for(s, node, key, stage_lock(1));
	/* A node needs no message to enter its own queue. */
	bool own = stage_sent(s, MESSAGE_ENQUEUE) == before;
	stage_client_gone(s, node, node + 1);
	stage_settle(s);
	return own;
}

/* Returns a key of which `first` is the home, and `second` the home for those for whom the first is
 * not there. A holder at n2 has it, whose lock_id is the key's letter. */
static const char *key_of(struct stage *s, uint32_t first, uint32_t second) {
	static char key[2];
	for (key[0] = 'a'; key[0] <= 'z'; key[0]++) {
		take(s, 1, key, stage_lock((uint8_t)key[0]));
		bool found = is_home(s, first, key);
		stage_cut(s, first, second, true);
		found = found && is_home(s, second, key);
		stage_cut(s, first, second, false);
		stage_mend(s);
		stage_settle(s);
		if (found) {
			return key;
		}
	}
	fail_msg("no key of such homes");
	return NULL;
}

/* n2 refuses n3 before n3's home has answered. So n3 withdraws nothing at n2, and n2 does not hear
 * its clock. */
static void the_first_waiter_at_the_home_goes_first_wherever_it_asked(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t ids[7] = { wait_for(s, 0, key, stage_lock(1)) };
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, true);
	for (uint8_t i = 1; i < 7; i++) {
		ids[i] = wait_for(s, i % 2 ? 2 : 1, key, stage_lock((uint8_t)(1 + i)));
	}
	stage_stop(s, 0, 2, MESSAGE_PROMISE_ANSWER, false);
	served(s, key, (uint8_t)key[0], ids, (uint8_t[]){ 1, 2, 3, 4, 5, 6, 7 }, 7);
}

static void a_new_home_keeps_the_order_of_the_previous_one(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t ids[5];
	for (uint32_t i = 0; i < 4; i++) {
		ids[i] = wait_for(s, 1 + i % 2, key, stage_lock((uint8_t)(1 + i)));
	}
	stage_kill(s, 0);
	stage_settle(s);
	ids[4] = wait_for(s, 1, key, stage_lock(5));
	served(s, key, (uint8_t)key[0], ids, (uint8_t[]){ 1, 2, 3, 4, 5 }, 5);
}

/* n3 takes itself for the home. The masters know its turn before the turn of the request that came
 * first. */
static void masters_keep_in_the_order_of_tickets_and_not_of_turns(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	stage_cut(s, 0, 2, true);
	stage_stop(s, 0, 1, MESSAGE_TURN, true);
	uint64_t first = wait_for(s, 1, key, stage_lock(1));
	stage_wait(s, 50 * SPAN_MS);
	uint64_t second = wait_for(s, 2, key, stage_lock(2));
	stage_stop(s, 0, 1, MESSAGE_TURN, false);
	stage_settle(s);
	served(s, key, (uint8_t)key[0], (uint64_t[]){ first, second }, (uint8_t[]){ 1, 2 }, 2);
}

/* Section 5, Sent again: n2 stands still. Its client asks at n3 with the same lock_ids, 1 and 2,
 * after 3 has asked there. Returns the requests at n3 in the order in which they are to be
 * served. */
static void send_again(struct stage *s, const char *key, uint64_t ids[3]) {
	(void)wait_for(s, 1, key, stage_lock(1));
	(void)wait_for(s, 1, key, stage_lock(2));
	ids[2] = wait_for(s, 2, key, stage_lock(3));
	stage_pause(s, 1);
	ids[1] = wait_for(s, 2, key, stage_lock(2));
	ids[0] = wait_for(s, 2, key, stage_lock(1));
}

static void a_request_that_is_sent_again_elsewhere_keeps_its_place(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t ids[3];
	send_again(s, key, ids);
	served_at(s, 2, key, (uint8_t)key[0], ids, (uint8_t[]){ 1, 2, 3 }, 3);
	assert_int_equal(stage_count(s, COUNT_turn_again), 2);
}

static void a_request_that_was_sent_again_keeps_its_place_when_the_first_node_dies(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t ids[3];
	send_again(s, key, ids);
	stage_kill(s, 1);
	stage_settle(s);
	served_at(s, 2, key, (uint8_t)key[0], ids, (uint8_t[]){ 1, 2, 3 }, 3);
}

/* Lock_ids are no secret: whoever waits is told who is ahead. */
static void another_ones_lock_id_is_no_place_in_the_queue(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	struct core_request other = stage_acquire(key, stage_lock(2), LEASE, WAIT);
	(void)wait_for(s, 1, key, stage_lock(1));
	(void)wait_for(s, 1, key, stage_lock(2));
	uint64_t first = wait_for(s, 2, key, stage_lock(3));
	stage_pause(s, 1);
	other.identity = slice_str("another");
	uint64_t second = stage_ask(s, 2, other);
	stage_settle(s);
	/* n2 is given up. */
	stage_wait(s, 3 * SPAN_S);
	token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(stage_count(s, COUNT_turn_again), 0);
}

/* Who came first with a low priority has not come first with a high one. */
static void a_request_with_another_priority_keeps_no_place(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, 1, 0);
	uint64_t first = wait_as(s, 2, 2, 5), second = wait_as(s, 2, 1, 5);
	assert_int_equal(release(s, 0, "k", stage_lock(100)), PAWL_OK);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, first);
	assert_false(answered(s, second));
	assert_int_equal(stage_count(s, COUNT_turn_again), 0);
}

/* Neither n2 nor n3 reaches more than its home and itself, two of five masters. So each of them
 * returns the turn of the request that was sent to both. */
static void a_request_that_is_sent_again_goes_behind_when_its_turn_is_returned(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t ids[3];
	for (uint32_t from = 1; from <= 2; from++) {
		for (uint32_t to = 1; to < 5; to++) {
			if (to != from) {
				stage_lose(s, from, to, MESSAGE_PROMISE, true);
			}
		}
	}
	ids[0] = wait_for(s, 1, key, stage_lock(1));
	ids[1] = wait_for(s, 2, key, stage_lock(1));
	ids[2] = wait_for(s, 3, key, stage_lock(2));
	assert_int_equal(stage_count(s, COUNT_turn_again), 1);
	stage_wait(s, 350 * SPAN_MS);
	assert_true(stage_count(s, COUNT_turn_given_back) >= 2);
	assert_int_equal(release(s, 3, key, stage_lock((uint8_t)key[0])), PAWL_OK);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, ids[2]);
	assert_false(answered(s, ids[0]) || answered(s, ids[1]));
}

/* The first request has a turn that nobody but its home answers. */
static void a_turn_that_is_returned_goes_behind_the_others(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	stage_lose(s, 0, 1, MESSAGE_PROMISE, true);
	stage_lose(s, 0, 2, MESSAGE_PROMISE, true);
	uint64_t first = wait_for(s, 0, key, stage_lock(1)), second = wait_for(s, 1, key,
		stage_lock(2)), third = wait_for(s, 2, key, stage_lock(3));
	stage_wait(s, 150 * SPAN_MS);
	stage_lose(s, 0, 1, MESSAGE_PROMISE, false);
	stage_lose(s, 0, 2, MESSAGE_PROMISE, false);
	served(s, key, (uint8_t)key[0], (uint64_t[]){ second, third, first },
		(uint8_t[]){ 2, 3, 1 }, 3);
}

/* The request was entered at n1. It comes to the new home when that has given its turn to a request
 * that came later. */
static void an_earlier_ticket_that_comes_late_takes_its_place_but_no_second_turn(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t first = wait_for(s, 1, key, stage_lock(1)),
		early = wait_for(s, 1, key, stage_lock(2));
	uint64_t late = wait_for(s, 2, key, stage_lock(3)),
		later = wait_for(s, 2, key, stage_lock(4));
	uint64_t turns = core_counts(s->nodes[2].core)[COUNT_turn_given];
	stage_stop(s, 1, 2, MESSAGE_ENQUEUE, true);
	stage_kill(s, 0);
	stage_settle(s);
	assert_int_equal(core_counts(s->nodes[2].core)[COUNT_turn_given], turns + 1);
	stage_stop(s, 1, 2, MESSAGE_ENQUEUE, false);
	stage_settle(s);
	assert_int_equal(core_counts(s->nodes[2].core)[COUNT_turn_given], turns + 1);
	served(s, key, (uint8_t)key[0], (uint64_t[]){ first, late, early, later },
		(uint8_t[]){ 1, 3, 2, 4 }, 4);
}

/* The masters that are not the home know no queue. They promise to the most important one of the
 * requests that they keep. */
static void masters_promise_to_the_most_important_that_they_keep(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, 1, 0);
	uint64_t high = wait_as(s, 2, 2, 5);
	uint64_t promises = stage_sent(s, MESSAGE_PROMISE),
		rivals = stage_count(s, COUNT_turn_rival);
	assert_int_equal(release(s, 0, "k", stage_lock(100)), PAWL_OK);
	/* This happens at once: nobody asked for a promise again before it had its own. */
	token_of(s, high);
	/* The other request waits behind it. */
	assert_int_equal(stage_count(s, COUNT_turn_rival), rivals);
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), promises);
}

static void a_waiter_that_was_overtaken_is_parked_again_and_woken_by_the_next_release(
	void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t low = wait_as(s, 1, 1, 0);
	uint8_t holder = 100;
	for (uint8_t i = 0; i < 10; i++) {
		uint64_t high = wait_as(s, 2, (uint8_t)(10 + i), 5);
		assert_int_equal(release(s, 0, "k", stage_lock(holder)), PAWL_OK);
		token_of(s, high);
		/* The earlier pauses are forgotten: the request does not sleep longer each time. */
		stage_wait(s, 10 * SPAN_MS);
		holder = (uint8_t)(10 + i);
	}
	assert_int_equal(release(s, 0, "k", stage_lock(holder)), PAWL_OK);
	token_of(s, low);
}

static void a_newcomer_is_not_let_in_ahead_of_those_who_wait_however_important(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, 1, 0);
	struct core_request r = stage_acquire("k", stage_lock(2), LEASE, 0);
	r.terms.priority = 9;
	assert_int_equal(stage_do(s, 2, r), PAWL_EHELD);
}

static void the_list_of_those_who_wait_is_in_their_order_with_what_they_said(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, WAIT);
	r.owner = slice_str("first");
	r.label = slice_str("host a");
	(void)stage_ask(s, 1, r);
	stage_settle(s);
	r = stage_acquire("k", stage_lock(2), LEASE, WAIT);
	r.owner = slice_str("second");
	r.label = slice_str("host b");
	r.terms.priority = 7;
	(void)stage_ask(s, 2, r);
	stage_settle(s);
	assert_int_equal(stage_do(s, 0, stage_request(CORE_WAITERS, "k", (struct id128){ { 0 } })),
		PAWL_OK);
	const struct stage_reply *list = stage_last(s);
	assert_int_equal(list->r.count, 2);
	assert_memory_equal(list->rows[0].owner.bytes, "second", 6);
	assert_memory_equal(list->rows[1].owner.bytes, "first", 5);
}

/* Another lock's commit is handled while the first one's is on its way. The home has accepted it,
 * and given the turn to the second request. */
static void a_waiter_that_is_overtaken_goes_before_those_that_came_later(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t first = wait_for(s, 0, key, stage_lock(1)),
		second = wait_for(s, 0, key, stage_lock(2));
	stage_stop(s, 0, 1, MESSAGE_COMMIT, true);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, true);
	assert_int_equal(release(s, 1, key, stage_lock((uint8_t)key[0])), PAWL_OK);
	uint64_t far = stage_status(s, 2).clock + 1000;
	for (uint32_t to = 1; to < 3; to++) {
		stage_inject(s, 3 - to, to,
			&(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
			.key = slice_str(key), .lock_id = stage_lock(9), .token = far,
			.lease_us = (uint64_t)LEASE / 1000, .ballot = { far, 1, 1 } });
	}
	stage_stop(s, 0, 1, MESSAGE_COMMIT, false);
	stage_stop(s, 0, 2, MESSAGE_COMMIT, false);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	assert_false(answered(s, first) || answered(s, second));
	assert_int_equal(release(s, 1, key, stage_lock(9)), PAWL_OK);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, first);
	assert_false(answered(s, second));
}

/* Another lock's commit and its release are handled while the first one's commit is on its way,
 * which is stale where they were. Before the first one's node knows that, the second one, to which
 * the home has given the turn, asks again. */
static void a_waiter_that_was_refused_as_stale_has_kept_its_place_there(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	uint64_t first = wait_for(s, 0, key, stage_lock(1)),
		second = wait_for(s, 0, key, stage_lock(2));
	for (uint32_t at = 1; at < 3; at++) {
		stage_stop(s, 0, at, MESSAGE_COMMIT, true);
		stage_stop(s, at, 0, MESSAGE_COMMIT_ANSWER, true);
	}
	assert_int_equal(release(s, 1, key, stage_lock((uint8_t)key[0])), PAWL_OK);
	uint64_t far = stage_status(s, 2).clock + 1000;
	for (uint32_t to = 1; to < 3; to++) {
		stage_inject(s, 3 - to, to,
			&(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
			.key = slice_str(key), .lock_id = stage_lock(9), .token = far,
			.lease_us = (uint64_t)LEASE / 1000, .ballot = { far, 1, 1 } });
		stage_inject(s, 3 - to, to, &(struct message){ .kind = MESSAGE_RELEASE,
			.round = 2 << 16, .key = slice_str(key), .lock_id = stage_lock(9) });
		stage_stop(s, 0, to, MESSAGE_COMMIT, false);
	}
	stage_wait(s, 20 * SPAN_MS);
	assert_false(answered(s, first) || answered(s, second));
	stage_stop(s, 1, 0, MESSAGE_COMMIT_ANSWER, false);
	stage_stop(s, 2, 0, MESSAGE_COMMIT_ANSWER, false);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	token_of(s, first);
	assert_false(answered(s, second));
}

/* n2 does not reach n1 when its request enters a queue, and does when its commit is refused at n3.
 * Somebody else has the key at n3 by then. */
static void a_waiter_that_begins_again_at_another_home_leaves_the_previous_one(void **state) {
	struct stage *s = *state;
	const char *key = key_of(s, 0, 2);
	stage_cut(s, 0, 1, true);
	const uint64_t first = wait_for(s, 1, key, stage_lock(1));
	stage_stop(s, 1, 2, MESSAGE_COMMIT, true);
	(void)release(s, 1, key, stage_lock((uint8_t)key[0]));
	const uint64_t far = stage_status(s, 1).clock + 1000;
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 1, .key = slice_str(key), .lock_id = stage_lock(9), .token = far,
		.lease_us = (uint64_t)LEASE / 1000, .ballot = { far, 1, 1 } });
	stage_cut(s, 0, 1, false);
	stage_mend(s);
	stage_stop(s, 1, 2, MESSAGE_COMMIT, false);
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken), 1);
	token_of(s, first);
	/* A client that asks n3 for the waiters is told n3's own queue. */
	stage_cut(s, 0, 2, true);
	assert_int_equal(stage_do(s, 2, stage_request(CORE_WAITERS, key, (struct id128){ { 0 } })),
		PAWL_OK);
	assert_int_equal(stage_last(s)->r.count, 0);
}

/* The home is the waiter's own node, and then another one. The waiter's coordinator is told of the
 * release, whichever node it went through. */
static void a_waiter_for_a_lock_id_that_is_released_through_another_node_is_told(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(9));
	for (uint32_t node = 0; node < 3; node++) {
		uint64_t waits = wait_for(s, node, "k", stage_lock((uint8_t)(node + 1)));
		assert_false(answered(s, waits));
		assert_int_equal(release(s, (node + 1) % 3, "k", stage_lock((uint8_t)(node + 1))),
			PAWL_OK);
		stage_settle(s);
		assert_true(answered(s, waits));
		assert_int_equal(stage_answer(s, waits)->r.error, PAWL_ELOST);
	}
	assert_true(holds(s, 0, "k", stage_lock(9)));
}

UNIT(cluster_order) {
	const struct CMUnitTest tests[] = {
		NAMED(a_more_important_one_goes_before_those_who_came_earlier),
		NAMED(a_waiter_that_is_overtaken_goes_before_those_that_came_later),
		NAMED(a_waiter_that_was_refused_as_stale_has_kept_its_place_there),
		NAMED(a_waiter_that_begins_again_at_another_home_leaves_the_previous_one),
		NAMED(among_equals_who_came_first_goes_first),
		NAMED(a_turn_is_given_to_a_more_important_one_as_well_and_to_no_other),
		NAMED(the_first_waiter_at_the_home_goes_first_wherever_it_asked),
		NAMED(a_new_home_keeps_the_order_of_the_previous_one),
		NAMED(masters_keep_in_the_order_of_tickets_and_not_of_turns),
		NAMED(a_request_that_is_sent_again_elsewhere_keeps_its_place),
		NAMED(a_request_that_was_sent_again_keeps_its_place_when_the_first_node_dies),
		NAMED(another_ones_lock_id_is_no_place_in_the_queue),
		NAMED(a_request_with_another_priority_keeps_no_place),
		cmocka_unit_test_setup_teardown(
			a_request_that_is_sent_again_goes_behind_when_its_turn_is_returned,
			setup_five, named_teardown),
		NAMED(a_turn_that_is_returned_goes_behind_the_others),
		NAMED(an_earlier_ticket_that_comes_late_takes_its_place_but_no_second_turn),
		NAMED(masters_promise_to_the_most_important_that_they_keep),
		NAMED(a_waiter_that_was_overtaken_is_parked_again_and_woken_by_the_next_release),
		NAMED(a_newcomer_is_not_let_in_ahead_of_those_who_wait_however_important),
		NAMED(the_list_of_those_who_wait_is_in_their_order_with_what_they_said),
		NAMED(a_waiter_for_a_lock_id_that_is_released_through_another_node_is_told),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
