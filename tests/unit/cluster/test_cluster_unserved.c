/* These tests let requests wait at a node that is cut off from a quorum: they are answered, so that
 * their clients go on at another node (docs/protocol.md, section 5, No quorum). */
#include "modes.h"

#define TIMEOUT (100 * SPAN_MS)
#define MANY 600u

static const struct id128 no_lock;

static void assert_no_quorum(const struct stage *s, uint64_t id) {
	const struct stage_reply *r = stage_answer(s, id);
	assert_non_null(r);
	assert_int_equal(r->r.error, PAWL_ENOQUORUM);
}

static uint64_t wait_locally(struct stage *s, uint32_t node, const char *key) {
	struct core_request r = stage_request(CORE_WAIT, key, no_lock);
	r.for_free = true;
	r.wait = WAIT;
	return stage_ask(s, node, r);
}

/* n1 holds the key. A lock, a permit, two keys at once, and a wait for the key to be free wait at
 * n3 when its links break. */
static void who_waits_at_a_node_that_is_cut_off_is_told_so(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(take_permits(s, 0, "p", stage_lock(2), 1, 1), PAWL_OK);
	const uint64_t ids[] = { wait_for(s, 2, "k", stage_lock(3)),
		wait_permits(s, 2, "p", stage_lock(4), 1, 1), wait_locally(s, 2, "k") };
	stage_isolate(s, 2, true);
	stage_wait(s, 3 * TIMEOUT);
	for (uint32_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
		assert_no_quorum(s, ids[i]);
	}
	/* One who comes later does not stay either. */
	const uint64_t later = wait_for(s, 2, "k", stage_lock(5)),
		local = wait_locally(s, 2, "k");
	stage_wait(s, 2 * TIMEOUT);
	assert_no_quorum(s, later);
	assert_no_quorum(s, local);
}

/* The client of one that was told so asks again elsewhere, and nothing of the first request stands
 * in its way when the holder goes. */
static void who_was_told_so_waits_elsewhere(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	const uint64_t first = wait_for(s, 2, "k", stage_lock(2));
	stage_isolate(s, 2, true);
	stage_wait(s, 3 * TIMEOUT);
	assert_no_quorum(s, first);
	const uint64_t second = wait_for(s, 1, "k", stage_lock(3));
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	token_of(s, second);
}

/* The links are back before request_timeout is over. */
static void a_short_cut_ends_no_wait(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	const uint64_t id = wait_for(s, 2, "k", stage_lock(2)), local = wait_locally(s, 2, "k");
	stage_isolate(s, 2, true);
	stage_wait(s, TIMEOUT / 2);
	stage_isolate(s, 2, false);
	stage_mend(s);
	stage_wait(s, 3 * TIMEOUT);
	assert_null(stage_answer(s, id));
	assert_null(stage_answer(s, local));
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	token_of(s, id);
}

/* The node serves those who wait again, once its links are back. */
static void a_node_whose_quorum_is_back_lets_wait_again(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	stage_wait(s, 3 * TIMEOUT);
	stage_isolate(s, 2, false);
	stage_mend(s);
	stage_wait(s, TIMEOUT);
	const uint64_t id = wait_for(s, 2, "k", stage_lock(2));
	stage_wait(s, 3 * TIMEOUT);
	assert_null(stage_answer(s, id));
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	token_of(s, id);
}

/* Each is told, although no turn of the loop answers more than 256 of them. */
static void many_are_told_in_pieces(void **state) {
	struct stage *s = *state;
	static uint64_t ids[MANY];
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 10 * SPAN_S, 0)),
		PAWL_OK);
	for (uint32_t i = 0; i < MANY; i++) {
		struct id128 lock = stage_lock(2);
		lock.b[0] = 0xff;
		lock.b[1] = (uint8_t)(i >> 8);
		lock.b[2] = (uint8_t)i;
		ids[i] = wait_for(s, 2, "k", lock);
	}
	stage_isolate(s, 2, true);
	stage_wait(s, 3 * TIMEOUT);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_no_quorum(s, ids[i]);
	}
}

/* A replica is linked with n1 alone. It fails requests at once, before n1 can have answered. */
static void a_master_that_votes_and_had_no_time_to_answer_is_not_called_silent(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 1, true);
	stage_isolate(s, 2, true);
	assert_int_equal(stage_do(s, 3, stage_acquire("k", stage_lock(1), LEASE, 0)),
		PAWL_ENOQUORUM);
	assert_int_equal(stage_last(s)->r.silent, 0x6);
	/* It counts as silent once an answer is due. */
	stage_stop(s, 0, 3, MESSAGE_PROMISE_ANSWER, true);
	stage_isolate(s, 1, false);
	stage_mend(s);
	const uint64_t late = stage_ask(s, 3, stage_acquire("k", stage_lock(2), LEASE, 0));
	stage_wait(s, 3 * TIMEOUT);
	assert_no_quorum(s, late);
	assert_int_equal(stage_answer(s, late)->r.silent, 0x5);
}

static int setup_replica(void **state) {
	return named_setup_replicas(state, 1);
}

static int setup_many(void **state) {
	struct stage_options o = named_options();
	o.replies = 4096;
	*state = stage_born(&o);
	return 0;
}

UNIT(cluster_unserved) {
	const struct CMUnitTest tests[] = {
		NAMED(who_waits_at_a_node_that_is_cut_off_is_told_so),
		NAMED(who_was_told_so_waits_elsewhere),
		NAMED(a_short_cut_ends_no_wait),
		NAMED(a_node_whose_quorum_is_back_lets_wait_again),
		cmocka_unit_test_setup_teardown(
			a_master_that_votes_and_had_no_time_to_answer_is_not_called_silent,
			setup_replica, named_teardown),
		cmocka_unit_test_setup_teardown(many_are_told_in_pieces, setup_many,
			named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
