/* These tests have several keys in one request, and one lock_id for several keys, and ask what may
 * not come together (docs/protocol.md, sections 2 and 11). */
#include "members.h"

static struct core_request group(const struct core_lock *locks, uint32_t count, span_ns wait) {
	return (struct core_request){ .op = CORE_ACQUIRE_ALL, .locks = locks, .lock_count = count,
		.lease = LEASE, .wait = wait };
}

static struct core_lock of(const char *key, uint8_t lock) {
	return (struct core_lock){ .key = slice_str(key), .lock_id = stage_lock(lock) };
}

static bool has(const struct stage *s, uint32_t node, const char *key, uint8_t lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), stage_lock(lock), &token, &noted);
}

static void a_lock_id_for_two_keys_of_a_request_is_refused(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2), of("c", 1) };
	assert_int_equal(stage_do(s, 0, group(locks, 3, 0)), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "lock_id");
	assert_memory_equal(stage_last(s)->failed_key.bytes, "c", 1);
}

/* X has "b" and "c" with one lock_id. X's lease of "b" is over, and another lock of it has come and
 * gone. What this node knows of "c" says nothing about "b". */
static void a_lock_id_of_two_keys_is_vouched_for_each_by_itself(void **state) {
	struct stage *s = *state;
	take(s, 0, "b", stage_lock(1));
	stage_wait(s, LEASE + 100 * SPAN_MS);
	take(s, 0, "c", stage_lock(1));
	take(s, 1, "b", stage_lock(2));
	assert_int_equal(release(s, 1, "b", stage_lock(2)), PAWL_OK);
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str("b"),
		.lock_id = stage_lock(1), .token = 1, .lease_us = 1000000, .ballot = { 1, 1, 1 } };
	/* One master has missed the end. */
	stage_inject(s, 0, 1, &m);
	/* Two of three masters lack it. */
	assert_int_equal(extend(s, 0, "b", stage_lock(1), LEASE, false), PAWL_ELOST);
	assert_int_equal(extend(s, 0, "c", stage_lock(1), LEASE, false), PAWL_OK);
}

/* The first client is gone, and everything is being rolled back. The same request over another
 * connection is not told so, but served. */
static void a_repeat_while_everything_is_rolled_back_begins_anew(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	struct core_request r = group(locks, 2, 20 * SPAN_S);
	r.client = 50;
	(void)stage_ask(s, 0, r);
	stage_wait(s, 100 * SPAN_MS);
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, i, 0, MESSAGE_RELEASE_ANSWER, true);
	}
	stage_client_gone(s, 0, 50);
	stage_settle(s);
	r.client = 51;
	uint64_t again = stage_ask(s, 0, r);
	stage_settle(s);
	assert_false(answered(s, again));
	for (uint32_t i = 1; i < 3; i++) {
		stage_stop(s, i, 0, MESSAGE_RELEASE_ANSWER, false);
	}
	stage_wait(s, 100 * SPAN_MS);
	assert_false(answered(s, again));
	assert_true(holds(s, 2, "a", stage_lock(1)));
	assert_int_equal(release(s, 1, "b", stage_lock(9)), PAWL_OK);
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_answer(s, again)->r.error, PAWL_OK);
	assert_true(holds(s, 2, "a", stage_lock(1)) && holds(s, 2, "b", stage_lock(2)));
}

/* n3 has missed "a". Its answer to an extension, that it wants the record, comes when that is
 * rolled back already; but the replica that coordinates all this still has it. */
static void an_extension_brings_back_nothing_that_was_rolled_back(void **state) {
	struct stage *s = *state;
	const uint32_t replica = 3;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	stage_lose(s, replica, 2, MESSAGE_COMMIT, true);
	stage_lose(s, replica, 2, MESSAGE_LEARN, true);
	stage_lose(s, 2, 0, MESSAGE_SYNC_FETCH, true);
	stage_lose(s, 2, 1, MESSAGE_SYNC_FETCH, true);
	struct core_request r = group(locks, 2, 20 * SPAN_S);
	r.client = 50;
	(void)stage_ask(s, replica, r);
	stage_wait(s, 100 * SPAN_MS);
	stage_stop(s, 2, replica, MESSAGE_EXTEND_ANSWER, true);
	stage_wait(s, LEASE / 3);
	assert_true(stage_count(s, COUNT_group_extended) > 0);
	assert_true(has(s, 0, "a", 1) && !has(s, 2, "a", 1) && has(s, replica, "a", 1));
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, i, replica, MESSAGE_FEED_GONE, true);
	}
	stage_client_gone(s, replica, 50);
	stage_settle(s);
	assert_true(!has(s, 0, "a", 1) && !has(s, 1, "a", 1) && has(s, replica, "a", 1));
	stage_lose(s, replica, 2, MESSAGE_LEARN, false);
	stage_stop(s, 2, replica, MESSAGE_EXTEND_ANSWER, false);
	stage_settle(s);
	assert_false(has(s, 0, "a", 1) || has(s, 1, "a", 1) || has(s, 2, "a", 1));
}

static int setup_replica(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	*state = stage_born(&o);
	return 0;
}

/* The limit (R5) is the one of the epoch in which the lease was asked for. */
static void a_lease_that_a_new_epoch_does_not_allow_is_too_long(void **state) {
	struct stage *s = *state;
	take(s, 1, "k", stage_lock(9));
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), 9 * SPAN_S, WAIT));
	const struct core_lock locks[] = { of("k", 2) };
	struct core_request r = group(locks, 1, WAIT);
	r.lease = 9 * SPAN_S;
	uint64_t several = stage_ask(s, 2, r);
	stage_settle(s);
	assert_int_equal(await(s, ask_change(s, 0, max_lease_of(5 * SPAN_S)))->r.error, PAWL_OK);
	stage_wait(s, 10 * SPAN_MS);
	const uint64_t asked[] = { id, several };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(stage_answer(s, asked[i])->r.error, PAWL_ETOOLONG);
		assert_int_equal(stage_answer(s, asked[i])->r.limit, 5 * SPAN_S);
		assert_string_equal(stage_answer(s, asked[i])->r.field, "lease_ms");
	}
}

/* n4 adopts epoch 2 first, and its commit is on its way. When the wait is over no master votes in
 * that epoch yet. */
static void a_wait_that_is_over_while_the_epoch_changes_is_a_timeout(void **state) {
	struct stage *s = *state;
	const uint32_t replica = 3;
	const struct core_lock locks[] = { of("k", 1) };
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, replica, i, MESSAGE_COMMIT, true);
	}
	uint64_t id = stage_ask(s, replica, group(locks, 1, 20 * SPAN_MS));
	stage_settle(s);
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct config c = *core_config(s->nodes[0].core);
	c.epoch++;
	c.max_lease = 9 * SPAN_S;
	struct message m = { .kind = MESSAGE_CONFIG };
	m.blob = slice_of(bytes, config_encode(&c, bytes));
	stage_inject(s, 0, replica, &m);
	stage_inject(s, 1, replica, &m);
	stage_wait(s, 30 * SPAN_MS);
	assert_int_equal(epoch_of(s, replica), 2);
	assert_int_equal(stage_count(s, COUNT_suspended), 1);
	assert_false(answered(s, id));
	for (uint32_t i = 0; i < 3; i++) {
		stage_stop(s, replica, i, MESSAGE_COMMIT, false);
		stage_inject(s, (i + 1) % 3, i, &m);
		stage_inject(s, (i + 2) % 3, i, &m);
	}
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_suspended_resumed), 1);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ETIMEOUT);
	/* What the commit has left was rolled back before that. */
	take(s, 1, "k", stage_lock(2));
}

static void the_deadline_of_all_is_that_of_the_one_that_ends_first(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, 20 * SPAN_S));
	/* The time is too short for the older one to be extended. */
	stage_wait(s, LEASE / 20);
	assert_int_equal(release(s, 1, "b", stage_lock(9)), PAWL_OK);
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_group_extended), 0);
	/* The lock is valid from the moment at which it was asked for. */
	assert_true(stage_answer(s, id)->r.valid <= span_shrink(LEASE, 10000));
}

UNIT(cluster_together) {
	const struct CMUnitTest tests[] = {
		NAMED(the_deadline_of_all_is_that_of_the_one_that_ends_first),
		NAMED(a_lock_id_for_two_keys_of_a_request_is_refused),
		NAMED(a_lock_id_of_two_keys_is_vouched_for_each_by_itself),
		NAMED(a_repeat_while_everything_is_rolled_back_begins_anew),
		cmocka_unit_test_setup_teardown(
			an_extension_brings_back_nothing_that_was_rolled_back, setup_replica,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			a_wait_that_is_over_while_the_epoch_changes_is_a_timeout, setup_replica,
			named_teardown),
		NAMED(a_lease_that_a_new_epoch_does_not_allow_is_too_long),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
