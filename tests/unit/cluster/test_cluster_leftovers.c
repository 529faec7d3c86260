/* What nobody holds, because its request failed or its coordinator died, is free soon. That is so
 * even where the message that rolls it back was lost, reached few masters, or was never sent
 * (docs/protocol.md, sections 7, 10 and 11). */
#include "copies.h"

/* The request_timeout of the stage. */
#define ROUND (100 * SPAN_MS)

static int setup(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	*state = stage_born(&o);
	return 0;
}

/* While this is off, masters do not compare what they have, so that only the coordinator's word
 * counts. */
static void compare(struct stage *s, bool on) {
	for (uint32_t to = 0; to < 3; to++) {
		lose_to(s, to, MESSAGE_SYNC_KEYS, !on);
	}
}

/* A request for a and b waits for b. n1, which coordinates it, and n3 have a. */
static uint64_t half_a_request(struct stage *s) {
	take(s, 1, "b", stage_lock(9));
	stage_lose(s, 0, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 1, MESSAGE_LEARN, true);
	uint64_t id = ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)) && !knows(s, 1, "a", stage_lock(1)) &&
		knows(s, 2, "a", stage_lock(1)));
	return id;
}

/* n2, which never had the record, hears that it is rolled back; n3, which has it, does not; and n1
 * starts anew. */
static void what_was_rolled_back_at_a_master_that_lacks_it_does_not_come_back(void **state) {
	struct stage *s = *state;
	half_a_request(s);
	stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	assert_true(knows(s, 2, "a", stage_lock(1)));
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	stage_wait(s, 4 * ROUND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(knows(s, i, "a", stage_lock(1)));
	}
	take(s, 0, "a", stage_lock(3));
}

/* The same happens with a name that another attempt has; the record of that attempt stays. */
static void what_another_attempt_has_got_stays_whoever_rolls_back(void **state) {
	struct stage *s = *state;
	half_a_request(s);
	stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
	/* This request has the same lock_id, alone. */
	take(s, 3, "a", stage_lock(1));
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	stage_wait(s, 4 * ROUND);
	assert_true(holds(s, 3, "a", stage_lock(1)));
	assert_int_equal(extend(s, 3, "a", stage_lock(1), LEASE, true), PAWL_OK);
}

/* Only n1 hears of it, and rolls it back. The others have got it for another attempt as well, and
 * what n1 tells them is about the name. */
static void what_is_told_to_be_rolled_back_is_the_name(void **state) {
	struct stage *s = *state;
	half_a_request(s);
	stage_lose(s, 0, 1, MESSAGE_RELEASE, true);
	stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
	stage_lose(s, 1, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	take(s, 1, "a", stage_lock(1));
	stage_client_gone(s, 0, 1);
	stage_wait(s, 8 * ROUND);
	assert_true(holds(s, 1, "a", stage_lock(1)));
}

/* The commit for a permit reaches n1 alone. */
static uint64_t permit_at_one(struct stage *s) {
	compare(s, false);
	stage_lose(s, HOLDER, 1, MESSAGE_COMMIT, true);
	stage_lose(s, HOLDER, 2, MESSAGE_COMMIT, true);
	const uint64_t id = stage_ask(s, HOLDER, permits_request("s", stage_lock(1), 1, 10, 0));
	stage_settle(s);
	assert_true(knows(s, 0, "s", stage_lock(1)));
	return id;
}

/* The link breaks before the permit is rolled back. */
static void what_a_failed_commit_took_is_rolled_back_when_the_link_is_back(void **state) {
	struct stage *s = *state;
	uint64_t id = permit_at_one(s);
	stage_cut(s, HOLDER, 0, true);
	stage_wait(s, 2 * ROUND);
	assert_true(answered(s, id) && stage_answer(s, id)->r.error != PAWL_OK);
	stage_cut(s, HOLDER, 0, false);
	stage_mend(s);
	stage_wait(s, ROUND / 4);
	assert_false(knows(s, 0, "s", stage_lock(1)));
}

/* The same happens, and the configuration changes while the commit is on its way. */
static void what_a_commit_took_before_a_change_is_rolled_back_after_it(void **state) {
	struct stage *s = *state;
	uint64_t id = permit_at_one(s);
	stage_client_gone(s, HOLDER, HOLDER + 1);
	stage_cut(s, HOLDER, 0, true);
	struct core_change c = { .kind = CHANGE_SET_TIMING, .max_lease = 9 * SPAN_S };
	uint64_t change = ask_change(s, 1, c);
	assert_int_equal(await(s, change)->r.error, PAWL_OK);
	stage_cut(s, HOLDER, 0, false);
	stage_mend(s);
	stage_wait(s, 2 * ROUND);
	assert_int_equal(epoch_of(s, HOLDER), 2);
	assert_false(answered(s, id));
	assert_false(knows(s, 0, "s", stage_lock(1)));
}

/* n3 has not adopted the next configuration when X is released. It drops the message with its
 * frame, and no link is lost. */
static void what_is_released_at_a_change_is_told_to_who_was_not_in_it_yet(void **state) {
	struct stage *s = *state;
	compare(s, false);
	take(s, HOLDER, "k", stage_lock(1));
	uint64_t change = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	s->nodes[2].disk_held = true;
	stage_settle(s);
	stage_wait(s, 20 * SPAN_MS);
	assert_true(epoch_of(s, 0) == 2 && epoch_of(s, 1) == 2 && epoch_of(s, 2) == 1);
	assert_int_equal(release(s, HOLDER, "k", stage_lock(1)), PAWL_OK);
	s->nodes[2].disk_held = false;
	stage_flush(s, 2);
	assert_int_equal(await(s, change)->r.error, PAWL_OK);
	stage_wait(s, ROUND);
	assert_int_equal(epoch_of(s, 2), 2);
	assert_false(knows(s, 2, "k", stage_lock(1)));
}

/* A request for several keys goes on after the change. What is accepted then has another name than
 * what was rolled back. */
static void a_name_that_was_rolled_back_is_not_used_again(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { { .key = slice_str("s"), .lock_id = stage_lock(1),
		.of = 10, .count = 1 } };
	for (uint32_t to = 0; to < 3; to++) {
		stage_lose(s, HOLDER, to, MESSAGE_COMMIT, true);
		stage_lose(s, HOLDER, to, MESSAGE_LEARN, true);
	}
	uint64_t id = stage_ask(s, HOLDER, (struct core_request){ .op = CORE_ACQUIRE_ALL,
		.locks = locks, .lock_count = 1, .lease = LEASE, .wait = WAIT });
	stage_settle(s);
	stage_lose(s, HOLDER, 1, MESSAGE_COMMIT, false);
	stage_lose(s, HOLDER, 2, MESSAGE_COMMIT, false);
	uint64_t change = ask_change(s, 1,
		(struct core_change){ .kind = CHANGE_SET_TIMING, .max_lease = 9 * SPAN_S });
	assert_int_equal(await(s, change)->r.error, PAWL_OK);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	stage_wait(s, 8 * ROUND);
	assert_true(knows(s, 1, "s", stage_lock(1)) && knows(s, 2, "s", stage_lock(1)));
}

/* The same lock_ids are granted through n2, which then dies. The client asks n1, to which it came
 * first, for one of them again. What n1 rolls back is about its own request: whoever asks for the
 * lock meanwhile is told the truth. */
static void what_is_rolled_back_is_not_what_another_request_asks_for(void **state) {
	struct stage *s = *state;
	take(s, 2, "b", stage_lock(9));
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	take(s, 1, "a", stage_lock(1));
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, i, 0, MESSAGE_PROMISE_ANSWER, true);
	}
	struct core_request r = stage_acquire("a", stage_lock(1), LEASE, 0);
	r.client = 50;
	uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, i, 0, MESSAGE_PROMISE_ANSWER, false);
	}
	stage_settle(s);
	assert_true(holds(s, 1, "a", stage_lock(1)));
	(void)token_of(s, id);
}

/* a is at n1 alone so far, and n1's answer to the extension is late; the others lack it. */
static void an_extension_that_was_answered_lost_repairs_nobody(void **state) {
	struct stage *s = *state;
	compare(s, false);
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, 0, to, MESSAGE_COMMIT, true);
	}
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	stage_stop(s, 0, HOLDER, MESSAGE_EXTEND_ANSWER, true);
	assert_int_equal(extend(s, HOLDER, "a", stage_lock(1), LEASE, false), PAWL_ELOST);
	stage_stop(s, 0, HOLDER, MESSAGE_EXTEND_ANSWER, false);
	stage_wait(s, 3 * ROUND);
	assert_false(knows(s, 1, "a", stage_lock(1)) || knows(s, 2, "a", stage_lock(1)));
}

static int setup_two(void **state) {
	struct stage_options o = named_options();
	o.masters = 2;
	o.replicas = 1;
	*state = stage_born(&o);
	return 0;
}

/* n1's answer to the extension, which is the last one, makes it certain that the lock is lost.
 * Nothing would take back what n1 is sent for a caller that keeps its deadline. */
static void the_answer_that_shows_a_lock_to_be_lost_is_not_repaired(void **state) {
	struct stage *s = *state;
	compare(s, false);
	known_to_the_replica_alone(s);
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, true);
	struct core_request r = stage_request(CORE_EXTEND, "a", stage_lock(1));
	r.lease = LEASE;
	r.deadline_kept = true;
	const uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, false);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	assert_false(knows(s, 0, "a", stage_lock(1)));
}

static int setup_four(void **state) {
	return named_setup_of(state, 4, 0);
}

/* Two of four masters lack the lock. The two that have it have accepted the extension, so that no
 * name rolls it back any more. If its client were told that it is lost, it would leave the lock
 * there, and a third master that starts anew would merge it. */
static void what_half_of_the_masters_have_lengthened_is_not_lost(void **state) {
	struct stage *s = *state;
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, 0, to, MESSAGE_COMMIT, true);
	}
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, true);
	stage_stop(s, 3, 2, MESSAGE_EXTEND_ANSWER, true);
	struct core_request r = stage_request(CORE_EXTEND, "a", stage_lock(1));
	r.lease = LEASE;
	const uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)) && knows(s, 3, "a", stage_lock(1)));
	assert_false(answered(s, id));
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, false);
	stage_stop(s, 3, 2, MESSAGE_EXTEND_ANSWER, false);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
}

/* The coordinator dies between two commit messages, and nobody is told anything. */
static void what_reached_few_masters_goes(void **state) {
	struct stage *s = *state;
	stage_lose(s, HOLDER, 1, MESSAGE_COMMIT, true);
	stage_lose(s, HOLDER, 2, MESSAGE_COMMIT, true);
	stage_ask(s, HOLDER, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_kill(s, HOLDER);
	assert_true(knows(s, 0, "k", stage_lock(1)));
	stage_wait(s, 7 * ROUND);
	assert_false(knows(s, 0, "k", stage_lock(1)));
	/* Without n3 a quorum needs n1. */
	stage_kill(s, 2);
	take(s, 1, "k", stage_lock(2));
}

/* The same happens with many who share a key. A writer does not wait for one after the other. */
static void what_many_left_at_few_masters_goes_at_once(void **state) {
	struct stage *s = *state;
	for (uint8_t i = 1; i <= 12; i++) {
		const uint64_t token = stage_status(s, 0).clock + 1;
		struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = i,
			.key = slice_str("k"), .lock_id = stage_lock(i), .token = token,
			.lease_us = (uint64_t)(LEASE / SPAN_US), .ballot = { token, 1, 1 },
			.terms = { .of = MODE_SHARED } };
		stage_inject(s, 1, 0, &m);
		stage_settle(s);
		assert_true(knows(s, 0, "k", stage_lock(i)));
	}
	stage_wait(s, 7 * ROUND);
	uint32_t left = 0;
	for (uint8_t i = 1; i <= 12; i++) {
		left += knows(s, 0, "k", stage_lock(i));
	}
	assert_int_equal(left, 0);
}

/* The other masters have X with permit 0. A repeat that was to take permit 1 dies with its
 * coordinator, and X goes on renewing. */
static void a_number_that_a_dead_coordinator_left_goes_while_its_holder_renews(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "s", stage_lock(1), 1, 2), PAWL_OK);
	const struct permits zero = stage_last(s)->r.terms.set;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("s"), .lock_id = stage_lock(1), .token = stage_status(s,
		0).clock + 1, .lease_us = (uint64_t)(LEASE / SPAN_US),
		.ballot = { stage_status(s, 0).clock + 1, 1, 1 },
		.terms = { .of = 2, .count = 1, .set = { { 2, 0 } } } };
	stage_inject(s, 1, 0, &m);
	stage_settle(s);
	for (int i = 0; i < 4; i++) {
		struct core_request r = stage_request(CORE_EXTEND, "s", stage_lock(1));
		r.lease = LEASE;
		r.deadline_kept = true;
		r.terms.set = zero;
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
		stage_wait(s, 2 * ROUND);
	}
	assert_true(stage_count(s, COUNT_sync_dropped) > 0);
	stage_kill(s, 2);
	assert_int_equal(take_permits(s, 1, "s", stage_lock(2), 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 2);
}

/* What a holder may trust stays. Here n1 and n3 have it, which have accepted the last extension,
 * while n2 has lost it. */
static void what_moves_from_quorum_to_quorum_stays(void **state) {
	struct stage *s = *state;
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	stage_lose(s, 0, 2, MESSAGE_LEARN, true);
	take(s, 0, "k", stage_lock(1));
	compare(s, false);
	stage_lose(s, 0, 2, MESSAGE_LEARN, false);
	for (int i = 0; i < 20; i++) {
		stage_lose(s, 0, 1 + (uint32_t)i % 2, MESSAGE_EXTEND, true);
		stage_lose(s, 0, 2 - (uint32_t)i % 2, MESSAGE_EXTEND, false);
		assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_OK);
		compare(s, i % 4 != 0);
		stage_wait(s, 2 * ROUND);
	}
	assert_true(holds(s, 0, "k", stage_lock(1)));
	assert_int_equal(stage_count(s, COUNT_sync_dropped), 0);
}

/* An extension reaches n1, the only one that has the record, and n2, after the others have listed
 * what they have. */
static void what_was_lengthened_since_the_others_were_asked_stays(void **state) {
	struct stage *s = *state;
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .token = 5, .lease_us = (uint64_t)(LEASE / SPAN_US),
		.ballot = { 5, 1, 1 } };
	compare(s, false);
	stage_inject(s, 1, 0, &m);
	stage_wait(s, 6 * ROUND);
	compare(s, true);
	stage_stop(s, 1, 0, MESSAGE_SYNC_KEYS, true);
	stage_stop(s, 2, 0, MESSAGE_SYNC_KEYS, true);
	while (!stage_head_is(s, 1, 0, MESSAGE_SYNC_KEYS) ||
		!stage_head_is(s, 2, 0, MESSAGE_SYNC_KEYS)) {
		stage_wait(s, SPAN_MS);
	}
	stage_lose(s, HOLDER, 2, MESSAGE_LEARN, true);
	assert_int_equal(extend(s, HOLDER, "k", stage_lock(1), LEASE, true), PAWL_OK);
	stage_stop(s, 1, 0, MESSAGE_SYNC_KEYS, false);
	stage_stop(s, 2, 0, MESSAGE_SYNC_KEYS, false);
	stage_wait(s, ROUND / 2);
	assert_true(knows(s, 0, "k", stage_lock(1)) && knows(s, 1, "k", stage_lock(1)) &&
		!knows(s, 2, "k", stage_lock(1)));
}

#define LEFT(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

static void rolls_back(struct stage *s, uint32_t from, uint32_t to, uint64_t name) {
	stage_inject(s, from, to, &(struct message){ .kind = MESSAGE_RELEASE, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1), .name = name });
}

/* n1 has tried for X twice, under two names, and has rolled both back, when it dies. n2 has heard
 * that; n3 has not, and the first commit came to it. */
static void what_was_rolled_back_under_the_first_of_two_names_does_not_come_back(void **state) {
	struct stage *s = *state;
	const uint64_t x = stage_status(s, 2).clock + 5;
	rolls_back(s, 0, 1, 11);
	/* Without this commit nobody would have the lock in the end. */
	rolls_back(s, 0, 1, 12);
	stage_inject(s, 0, 2, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 11, .key = slice_str("k"), .lock_id = stage_lock(1), .token = x,
		.lease_us = 10000000, .ballot = { x, 1, 1 } });
	stage_kill(s, 0);
	assert_true(stage_start(s, 0) && stage_until_voting(s, 0, SPAN_S));
	stage_wait(s, 2 * SPAN_S);
	uint64_t token, noted;
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(core_peek(s->nodes[i].core, slice_str("k"), stage_lock(1), &token,
			&noted));
	}
}

UNIT(cluster_leftovers) {
	const struct CMUnitTest tests[] = {
		LEFT(what_was_rolled_back_at_a_master_that_lacks_it_does_not_come_back),
		LEFT(what_another_attempt_has_got_stays_whoever_rolls_back),
		LEFT(what_is_told_to_be_rolled_back_is_the_name),
		LEFT(what_a_failed_commit_took_is_rolled_back_when_the_link_is_back),
		LEFT(what_a_commit_took_before_a_change_is_rolled_back_after_it),
		LEFT(what_is_released_at_a_change_is_told_to_who_was_not_in_it_yet),
		LEFT(a_name_that_was_rolled_back_is_not_used_again),
		LEFT(what_is_rolled_back_is_not_what_another_request_asks_for),
		LEFT(an_extension_that_was_answered_lost_repairs_nobody),
		cmocka_unit_test_setup_teardown(
			the_answer_that_shows_a_lock_to_be_lost_is_not_repaired, setup_two,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			what_half_of_the_masters_have_lengthened_is_not_lost, setup_four,
			named_teardown),
		LEFT(what_reached_few_masters_goes),
		LEFT(what_many_left_at_few_masters_goes_at_once),
		LEFT(a_number_that_a_dead_coordinator_left_goes_while_its_holder_renews),
		LEFT(what_moves_from_quorum_to_quorum_stays),
		LEFT(what_was_lengthened_since_the_others_were_asked_stays),
		cmocka_unit_test_setup_teardown(
			what_was_rolled_back_under_the_first_of_two_names_does_not_come_back,
			named_setup, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
