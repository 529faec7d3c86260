/* These tests are about changes of the set as those see them who ask for them: repeats, rivals,
 * interruptions (docs/protocol.md, section 6). The changes here keep the masters, so that each
 * core's peer indexes stay what they are on the stage. */
#include "members.h"

static struct core_request change_timing(const struct core_change *change, uint64_t client) {
	return (struct core_request){ .op = CORE_CHANGE, .change = change, .admin = true,
		.client = client };
}

static const struct core_change longer = { .kind = CHANGE_SET_TIMING, .max_lease = 20 * SPAN_S };
static const struct core_change shorter = { .kind = CHANGE_SET_TIMING, .max_lease = 5 * SPAN_S };

static void a_change_that_is_repeated_changes_nothing(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 0, change_timing(&longer, 1)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.epoch, 2);
	assert_true(stage_last(s)->r.complete);
	assert_int_equal(stage_do(s, 1, change_timing(&longer, 1)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.epoch, 2);
	assert_int_equal(stage_count(s, COUNT_change_nothing), 1);
	assert_true(holds(s, 2, "k", stage_lock(1)));
	assert_int_equal(extend(s, 2, "k", stage_lock(1), LEASE, true), PAWL_OK);
	assert_int_equal(stage_last(s)->r.token, token);
}

/* The change is asked of node 0, which cannot reach the others. It is under way until they are
 * back. */
static uint64_t begin_alone(struct stage *s, const struct core_change *change, uint64_t client) {
	stage_stop(s, 0, 1, MESSAGE_DECREE_PREPARE, true);
	stage_stop(s, 0, 2, MESSAGE_DECREE_PREPARE, true);
	uint64_t id = stage_ask(s, 0, change_timing(change, client));
	stage_settle(s);
	assert_false(answered(s, id));
	return id;
}

static void go_on(struct stage *s) {
	stage_stop(s, 0, 1, MESSAGE_DECREE_PREPARE, false);
	stage_stop(s, 0, 2, MESSAGE_DECREE_PREPARE, false);
	stage_settle(s);
}

static void a_second_change_at_the_same_node_is_told_that_it_is_busy(void **state) {
	struct stage *s = *state;
	uint64_t first = begin_alone(s, &longer, 1);
	assert_int_equal(stage_do(s, 0, change_timing(&shorter, 2)), PAWL_EBUSY);
	/* The first caller is still there. */
	assert_int_equal(stage_do(s, 0, change_timing(&longer, 2)), PAWL_EBUSY);
	go_on(s);
	assert_int_equal(stage_answer(s, first)->r.error, PAWL_OK);
}

static void a_change_repeated_after_a_lost_connection_gets_its_answer(void **state) {
	struct stage *s = *state;
	uint64_t first = begin_alone(s, &longer, 1);
	stage_client_gone(s, 0, 1);
	assert_int_equal(stage_do(s, 0, change_timing(&shorter, 2)), PAWL_EBUSY);
	uint64_t again = stage_ask(s, 0, change_timing(&longer, 3));
	stage_settle(s);
	assert_false(answered(s, again));
	go_on(s);
	assert_false(answered(s, first));
	assert_true(answered(s, again));
	assert_int_equal(stage_answer(s, again)->r.error, PAWL_OK);
	assert_int_equal(stage_answer(s, again)->r.epoch, 2);
}

static void a_new_start_is_made_once_however_often_it_is_asked_for(void **state) {
	struct stage *s = *state;
	const struct core_change force = { .kind = CHANGE_FORCE, .anyway = true };
	uint64_t token = take(s, 0, "k", stage_lock(1));
	stage_kill(s, 1);
	stage_kill(s, 2);
	assert_int_equal(stage_do(s, 0, change_timing(&force, 1)), PAWL_OK);
	uint64_t epoch = stage_last(s)->r.epoch;
	assert_true(epoch >= UINT64_C(1) << 32);
	assert_int_equal(stage_status(s, 0).state, CORE_RECOVERING);
	assert_int_equal(stage_do(s, 0, change_timing(&force, 1)), PAWL_OK);
	assert_true(stage_until_voting(s, 0, 60 * SPAN_S));
	assert_int_equal(stage_do(s, 0, change_timing(&force, 1)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.epoch, epoch);
	assert_int_equal(stage_count(s, COUNT_forced), 1);
	assert_true(take(s, 0, "k", stage_lock(2)) > token);
}

static void a_new_start_does_not_wait_for_a_change_that_never_ends(void **state) {
	struct stage *s = *state;
	const struct core_change force = { .kind = CHANGE_FORCE, .anyway = true };
	uint64_t first = begin_alone(s, &longer, 1);
	stage_kill(s, 1);
	stage_kill(s, 2);
	assert_int_equal(stage_do(s, 0, change_timing(&force, 2)), PAWL_OK);
	assert_int_equal(stage_answer(s, first)->r.error, PAWL_EMISMATCH);
	assert_true(stage_until_voting(s, 0, 60 * SPAN_S));
}

/* The wait ends while one epoch follows the other. */
static void a_wait_that_ends_between_two_epochs_is_over_and_no_more(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(1));
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(2), LEASE, 30 * SPAN_MS));
	stage_settle(s);
	/* Node 0 goes on in the previous epoch, alone. */
	s->nodes[0].disk_held = true;
	stage_ask(s, 1, change_timing(&longer, 1));
	stage_wait(s, 40 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ETIMEOUT);
	s->nodes[0].disk_held = false;
	stage_flush(s, 0);
	stage_settle(s);
	/* There is no change, because a quorum is gone. */
	stage_cut(s, 0, 1, true);
	stage_cut(s, 0, 2, true);
	stage_wait(s, SPAN_S);
	id = stage_ask(s, 0, stage_acquire("k", stage_lock(3), LEASE, 30 * SPAN_MS));
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
}

/* n1 and n2 hear of the end of a lock that n3 has missed. Their answers are lost, and an epoch
 * follows before they are asked again. */
static const struct stage_reply *ended_over_a_change(struct stage *s, struct core_request r,
	enum message_kind answer) {
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, i, 2, answer, true);
	}
	uint64_t id = stage_ask(s, 2, r);
	stage_settle(s);
	assert_false(knows(s, 0, "k", stage_lock(1)));
	assert_false(knows(s, 1, "k", stage_lock(1)));
	assert_false(answered(s, id));
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, i, 2, answer, false);
	}
	assert_int_equal(stage_do(s, 0, change_timing(&longer, 1)), PAWL_OK);
	stage_settle(s);
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	return stage_answer(s, id);
}

static void take_without_n3(struct stage *s) {
	stage_lose(s, 0, 2, MESSAGE_COMMIT, true);
	take(s, 0, "k", stage_lock(1));
	stage_lose(s, 0, 2, MESSAGE_COMMIT, false);
	assert_false(knows(s, 2, "k", stage_lock(1)));
}

static void a_release_that_an_epoch_interrupts_says_that_the_lock_was_there(void **state) {
	struct stage *s = *state;
	take_without_n3(s);
	assert_true(ended_over_a_change(s, stage_request(CORE_RELEASE, "k", stage_lock(1)),
		MESSAGE_RELEASE_ANSWER)->r.released);
}

static void a_transfer_that_an_epoch_interrupts_says_that_the_lock_was_there(void **state) {
	struct stage *s = *state;
	take_without_n3(s);
	struct core_request next = stage_acquire("k", stage_lock(2), LEASE, WAIT);
	next.owner = slice_str("next");
	uint64_t waits = stage_ask(s, 1, next);
	stage_wait(s, 20 * SPAN_MS);
	struct core_request r = stage_request(CORE_TRANSFER, "k", stage_lock(1));
	r.to = slice_str("next");
	assert_true(ended_over_a_change(s, r, MESSAGE_RELEASE_ANSWER)->r.released);
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_answer(s, waits)->r.error, PAWL_OK);
}

static void a_break_that_an_epoch_interrupts_says_that_the_lock_was_there(void **state) {
	struct stage *s = *state;
	take_without_n3(s);
	struct core_request r = stage_request(CORE_BREAK, "k", stage_lock(9));
	r.admin = r.now = true;
	assert_true(ended_over_a_change(s, r, MESSAGE_BREAK_ANSWER)->r.released);
}

static int setup_alone(void **state) {
	return named_setup_of(state, 1, 1);
}

/* n2 has the lock in what it copies, and is asked for its release before it votes. */
static void a_release_asked_for_while_copying_finds_the_lock(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_stop(s, 0, 1, MESSAGE_SNAPSHOT_END, true);
	(void)ask_change(s, 0, set_of("2"));
	assert_true(wait_until_epoch(s, 1, 2, SPAN_S));
	uint64_t id = stage_ask(s, 1, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_settle(s);
	assert_false(answered(s, id));
	stage_stop(s, 0, 1, MESSAGE_SNAPSHOT_END, false);
	const struct stage_reply *r = await(s, id);
	assert_int_equal(r->r.error, PAWL_OK);
	assert_true(r->r.released);
}

/* n3 asks for the end of a lock that it lacks. n1, which has the lock, ends it, and its answer is
 * slow. n2 hears of that from n1 before it hears from n3. */
static void a_release_that_others_hear_of_first_says_that_the_lock_was_there(void **state) {
	struct stage *s = *state;
	take_without_n3(s);
	stage_stop(s, 0, 2, MESSAGE_RELEASE_ANSWER, true);
	stage_stop(s, 2, 1, MESSAGE_RELEASE, true);
	uint64_t id = stage_ask(s, 2, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_settle(s);
	assert_false(knows(s, 0, "k", stage_lock(1)));
	const struct message told = { .kind = MESSAGE_RELEASE, .round = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1) };
	stage_inject(s, 0, 1, &told);
	stage_settle(s);
	assert_false(knows(s, 1, "k", stage_lock(1)));
	assert_false(answered(s, id));
	stage_wait(s, 2 * SPAN_MS);
	stage_stop(s, 2, 1, MESSAGE_RELEASE, false);
	const struct stage_reply *r = await(s, id);
	assert_int_equal(r->r.error, PAWL_OK);
	assert_true(r->r.released);
}

/* What had ended before was not there. */
static void a_second_release_says_that_the_lock_was_not_there(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	release(s, 0, "k", stage_lock(1));
	stage_wait(s, SPAN_S);
	const struct stage_reply *r = await(s,
		stage_ask(s, 2, stage_request(CORE_RELEASE, "k", stage_lock(1))));
	assert_int_equal(r->r.error, PAWL_OK);
	assert_false(r->r.released);
}

UNIT(cluster_changes) {
	const struct CMUnitTest tests[] = {
		NAMED(a_change_that_is_repeated_changes_nothing),
		NAMED(a_second_change_at_the_same_node_is_told_that_it_is_busy),
		NAMED(a_change_repeated_after_a_lost_connection_gets_its_answer),
		NAMED(a_new_start_is_made_once_however_often_it_is_asked_for),
		NAMED(a_new_start_does_not_wait_for_a_change_that_never_ends),
		NAMED(a_wait_that_ends_between_two_epochs_is_over_and_no_more),
		NAMED(a_release_that_others_hear_of_first_says_that_the_lock_was_there),
		NAMED(a_second_release_says_that_the_lock_was_not_there),
		NAMED(a_release_that_an_epoch_interrupts_says_that_the_lock_was_there),
		NAMED(a_transfer_that_an_epoch_interrupts_says_that_the_lock_was_there),
		cmocka_unit_test_setup_teardown(a_release_asked_for_while_copying_finds_the_lock,
			setup_alone, named_teardown),
		NAMED(a_break_that_an_epoch_interrupts_says_that_the_lock_was_there),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
