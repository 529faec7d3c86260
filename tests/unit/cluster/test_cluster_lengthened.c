/* These tests are about the name of a request where an extension through another node, which nobody
 * trusts, has lengthened its record (docs/protocol.md, section 11). */
#include "copies.h"

/* The request_timeout of the stage. */
#define ROUND (100 * SPAN_MS)

/* Masters do not compare what they have, so that only the coordinators' word counts. */
static int setup_of(void **state, uint32_t masters, uint32_t replicas) {
	struct stage_options o = named_options();
	o.masters = masters;
	o.replicas = replicas;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t to = 0; to < masters; to++) {
		lose_to(s, to, MESSAGE_SYNC_KEYS, true);
	}
	return 0;
}

static int setup(void **state) {
	return setup_of(state, 3, 1);
}

static int setup_two(void **state) {
	return setup_of(state, 2, 1);
}

static int setup_five(void **state) {
	return setup_of(state, 3, 2);
}

/* a is at n1 alone so far. n1 lengthens it for an extension that is answered `lost`, because the
 * others lack it. The request rolls it back after that, or before. */
static void lengthened_in_vain(struct stage *s, bool rolled_back_first) {
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, 0, to, MESSAGE_COMMIT, true);
	}
	ask_both(s, 0, 1, 2, WAIT);
	stage_wait(s, ROUND / 2);
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, true);
	stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, rolled_back_first);
	struct core_request r = stage_request(CORE_EXTEND, "a", stage_lock(1));
	r.lease = LEASE;
	const uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	assert_int_equal(answered(s, id), !rolled_back_first);
	stage_client_gone(s, 0, 1);
	stage_wait(s, 3 * ROUND / 4);
	assert_true(!rolled_back_first || knows(s, 0, "a", stage_lock(1)));
	stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, false);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
}

static void what_was_lengthened_in_vain_goes_with_its_request(void **state) {
	lengthened_in_vain(*state, false);
	assert_false(knows(*state, 0, "a", stage_lock(1)));
}

static void what_was_lengthened_in_vain_goes_after_its_request(void **state) {
	lengthened_in_vain(*state, true);
	assert_false(knows(*state, 0, "a", stage_lock(1)));
}

/* Whoever has the lock by an extension keeps it. */
static void what_was_lengthened_stays_when_its_request_is_rolled_back(void **state) {
	struct stage *s = *state;
	take(s, 1, "b", stage_lock(9));
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_int_equal(extend(s, HOLDER, "a", stage_lock(1), LEASE, false), PAWL_OK);
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)) && knows(s, 1, "a", stage_lock(1)) &&
		knows(s, 2, "a", stage_lock(1)));
}

/* The request comes again while n2 is down. n2 starts anew, and merges a from n1 and n3. Then the
 * request is rolled back. */
static void what_was_lengthened_in_vain_is_not_merged(void **state) {
	struct stage *s = *state;
	lengthened_in_vain(s, false);
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, 0, to, MESSAGE_COMMIT, false);
	}
	stage_stop(s, 0, 2, MESSAGE_EXTEND_ANSWER, false);
	take(s, 2, "b", stage_lock(9));
	stage_kill(s, 1);
	ask_both(s, 0, 1, 2, WAIT);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)) && knows(s, 2, "a", stage_lock(1)));
	assert_true(stage_start(s, 1) && stage_until_voting(s, 1, SPAN_S));
	assert_true(knows(s, 1, "a", stage_lock(1)));
	stage_client_gone(s, 0, 1);
	stage_wait(s, 4 * ROUND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(knows(s, i, "a", stage_lock(1)));
	}
	take(s, 2, "a", stage_lock(3));
}

/* n4 and n5 are replicas here. n1 alone has a, by a request for several keys at n4, whose message
 * that rolls it back is lost. The same lock_id is granted through n2, by n2 and n3. */
static void granted_next_to_a_leftover(struct stage *s) {
	take(s, 0, "c", stage_lock(7));
	take(s, 1, "b", stage_lock(9));
	for (uint32_t to = 1; to < 3; to++) {
		stage_lose(s, HOLDER, to, MESSAGE_COMMIT, true);
		stage_lose(s, HOLDER, to, MESSAGE_LEARN, true);
	}
	stage_lose(s, HOLDER, 0, MESSAGE_RELEASE, true);
	const uint64_t id = ask_both(s, HOLDER, 1, 2, WAIT);
	stage_wait(s, 2 * ROUND);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	stage_lose(s, HOLDER, 0, MESSAGE_RELEASE, false);
	assert_true(knows(s, 0, "a", stage_lock(1)) && !knows(s, 1, "a", stage_lock(1)));
	stage_lose(s, 1, 0, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	take(s, 1, "a", stage_lock(1));
	assert_true(knows(s, 1, "a", stage_lock(1)) && knows(s, 2, "a", stage_lock(1)));
}

/* Somebody extends through n5, under a token from long ago, and is told that this is unsure. What
 * takes the extension back is lost. */
static void extend_unsure(struct stage *s) {
	struct core_request r = stage_request(CORE_EXTEND, "a", stage_lock(1));
	r.lease = LEASE;
	r.token = 1;
	for (uint32_t to = 0; to < 3; to++) {
		stage_lose(s, HOLDER + 1, to, MESSAGE_RELEASE, true);
	}
	assert_int_equal(stage_do(s, HOLDER + 1, r), PAWL_EUNSURE);
	for (uint32_t to = 0; to < 3; to++) {
		stage_lose(s, HOLDER + 1, to, MESSAGE_RELEASE, false);
	}
}

/* n1 is the only master from now on. */
static int change_to_n1(struct stage *s) {
	const struct core_change_node nodes[] = {
		{ .name = slice_str("n1"), .address = slice_str("n1:7118"), .master = true },
		{ .name = slice_str("n4"), .address = slice_str("n4:7118") },
		{ .name = slice_str("n5"), .address = slice_str("n5:7118") },
	};
	return do_change(s, 0, (struct core_change){ .kind = CHANGE_SET_NODES, .nodes = nodes,
		.node_count = 3 });
}

/* The masters change before n4 and n5 can say again what they take back. By then n1 stands for what
 * n2 and n3 accepted for the holder, too. */
static void what_was_merged_is_not_what_the_extension_lengthened(void **state) {
	struct stage *s = *state;
	granted_next_to_a_leftover(s);
	extend_unsure(s);
	assert_true(knows(s, 0, "a", stage_lock(1)));
	assert_int_equal(change_to_n1(s), PAWL_OK);
	stage_wait(s, 2 * ROUND);
	assert_int_equal(stage_do(s, 0, stage_acquire("a", stage_lock(5), LEASE, 0)), PAWL_EHELD);
	assert_true(knows(s, 0, "a", stage_lock(1)));
}

/* n1 has learned a from the extension when n2's answer makes it certain that the lock is lost. */
static void what_an_extension_has_made_in_vain_goes(void **state) {
	struct stage *s = *state;
	known_to_the_replica_alone(s);
	stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, true);
	struct core_request r = stage_request(CORE_EXTEND, "a", stage_lock(1));
	r.lease = LEASE;
	const uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	assert_true(knows(s, 0, "a", stage_lock(1)));
	stage_stop(s, 1, 2, MESSAGE_EXTEND_ANSWER, false);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	assert_false(knows(s, 0, "a", stage_lock(1)));
	assert_int_equal(stage_do(s, 0, stage_acquire("a", stage_lock(6), LEASE, 0)), PAWL_EHELD);
}

/* What n4 says to n1 as a coordinator: under a name of a request, or of an extension. */
#define REQUEST_1 UINT64_C(0x101)
#define REQUEST_2 UINT64_C(0x201)
#define EXTENSION UINT64_C(0x300)

static void say(struct stage *s, struct message m) {
	m.round = 1 << 16;
	m.key = slice_str("k");
	m.lock_id = stage_lock(1);
	stage_inject(s, HOLDER, 0, &m);
	stage_settle(s);
}

static void say_commit(struct stage *s, uint64_t token, uint64_t name) {
	say(s, (struct message){ .kind = MESSAGE_COMMIT, .token = token, .name = name,
		.lease_us = SHORT / SPAN_US, .ballot = { token, 1, 1 } });
}

static void say_extend(struct stage *s, span_ns lease) {
	say(s, (struct message){ .kind = MESSAGE_EXTEND, .name = EXTENSION,
		.terms = { .of = PERMITS_MAX }, .lease_us = (uint64_t)(lease / SPAN_US) });
}

static void say_taken_back(struct stage *s, uint64_t name) {
	say(s, (struct message){ .kind = MESSAGE_RELEASE, .name = name });
}

static void say_learn(struct stage *s, uint64_t token) {
	say(s, (struct message){ .kind = MESSAGE_LEARN, .token = token, .name = EXTENSION,
		.lease_us = LEASE / SPAN_US, .ballot = { token, 1, 1 } });
}

/* The coordinator asks again under the next epoch. Meanwhile the record of the first request has
 * ended, and there is one of another request. */
static void an_extension_that_is_asked_for_twice_leaves_what_it_found_last(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "c", stage_lock(7));
	say_commit(s, token + 1, REQUEST_1);
	say_extend(s, SHORT);
	assert_true(knows(s, 0, "k", stage_lock(1)));
	stage_wait(s, 2 * SHORT);
	assert_false(knows(s, 0, "k", stage_lock(1)));
	say_commit(s, token + 2, REQUEST_2);
	say_extend(s, LEASE);
	assert_true(knows(s, 0, "k", stage_lock(1)));
	say_taken_back(s, REQUEST_1);
	say_taken_back(s, EXTENSION);
	assert_true(knows(s, 0, "k", stage_lock(1)));
	say_taken_back(s, REQUEST_2);
	assert_false(knows(s, 0, "k", stage_lock(1)));
}

/* The record was made by the extension, and a request has committed it since. */
static void what_was_committed_since_the_extension_made_it_stays(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "c", stage_lock(7));
	say_learn(s, token);
	say_commit(s, token + 1, REQUEST_1);
	say_taken_back(s, EXTENSION);
	assert_true(knows(s, 0, "k", stage_lock(1)));
}

/* The same record, and what the extension had made has ended before. */
static void what_was_committed_after_what_the_extension_made_stays(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "c", stage_lock(7));
	say_learn(s, token);
	stage_wait(s, 2 * LEASE);
	say_commit(s, token + 1, REQUEST_1);
	say_extend(s, LEASE);
	say_taken_back(s, EXTENSION);
	assert_true(knows(s, 0, "k", stage_lock(1)));
}

#define LENGTHENED(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

UNIT(cluster_lengthened) {
	const struct CMUnitTest tests[] = {
		LENGTHENED(what_was_lengthened_in_vain_goes_with_its_request),
		LENGTHENED(what_was_lengthened_in_vain_goes_after_its_request),
		LENGTHENED(what_was_lengthened_in_vain_is_not_merged),
		LENGTHENED(what_was_lengthened_stays_when_its_request_is_rolled_back),
		cmocka_unit_test_setup_teardown(
			what_was_merged_is_not_what_the_extension_lengthened, setup_five,
			named_teardown),
		cmocka_unit_test_setup_teardown(what_an_extension_has_made_in_vain_goes,
			setup_two, named_teardown),
		LENGTHENED(an_extension_that_is_asked_for_twice_leaves_what_it_found_last),
		LENGTHENED(what_was_committed_since_the_extension_made_it_stays),
		LENGTHENED(what_was_committed_after_what_the_extension_made_stays),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
