/* Several keys in one request: it gets all or none (docs/protocol.md, section 11). */
#include "named.h"

static struct core_request group(const struct core_lock *locks, uint32_t count, span_ns wait) {
	return (struct core_request){ .op = CORE_ACQUIRE_ALL, .locks = locks, .lock_count = count,
		.lease = LEASE, .wait = wait };
}

static struct core_lock of(const char *key, uint8_t lock) {
	return (struct core_lock){ .key = slice_str(key), .lock_id = stage_lock(lock) };
}

static void all_keys_are_had_with_one_deadline(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("c", 3), of("a", 1), of("b", 2) };
	assert_int_equal(stage_do(s, 0, group(locks, 3, 0)), PAWL_OK);
	const struct stage_reply *r = stage_last(s);
	assert_int_equal(r->r.count, 3);
	/* The answer is in the order of the request. */
	for (uint32_t i = 0; i < 3; i++) {
		assert_memory_equal(r->rows[i].key.bytes, locks[i].key.data, 1);
		assert_true(id128_equal(r->rows[i].lock_id, locks[i].lock_id));
		assert_true(r->rows[i].token > 0);
	}
	assert_int_equal(r->r.valid, span_shrink(LEASE, 10000));
	assert_true(holds(s, 1, "a", stage_lock(1)) && holds(s, 1, "b", stage_lock(2)) &&
		holds(s, 1, "c", stage_lock(3)));
	assert_int_equal(stage_count(s, COUNT_group_held), 1);
	/* The request took no time. */
	assert_int_equal(stage_count(s, COUNT_group_extended), 0);
}

static void one_that_is_held_refuses_them_all(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2), of("c", 3) };
	struct core_request other = stage_acquire("b", stage_lock(9), LEASE, 0);
	other.owner = slice_str("somebody");
	assert_int_equal(stage_do(s, 1, other), PAWL_OK);
	assert_int_equal(stage_do(s, 0, group(locks, 3, 0)), PAWL_EHELD);
	const struct stage_reply *r = stage_last(s);
	assert_memory_equal(r->failed_key.bytes, "b", 1);
	assert_true(r->r.held);
	assert_memory_equal(r->owner.bytes, "somebody", 8);
	/* The lock was rolled back before the request was answered. */
	take(s, 2, "a", stage_lock(11));
	take(s, 2, "c", stage_lock(12));
}

static void a_wait_that_is_over_rolls_back_what_was_had(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, 500 * SPAN_MS));
	stage_wait(s, 400 * SPAN_MS);
	assert_false(answered(s, id));
	assert_true(holds(s, 2, "a", stage_lock(1)));
	stage_wait(s, 200 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ETIMEOUT);
	assert_memory_equal(stage_answer(s, id)->failed_key.bytes, "b", 1);
	take(s, 2, "a", stage_lock(11));
}

static void the_earlier_ones_are_kept_while_it_waits_for_the_later(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("b", 2), of("a", 1) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, WAIT));
	for (int i = 0; i < 10; i++) {
		stage_wait(s, SPAN_S);
		assert_int_equal(extend(s, 1, "b", stage_lock(9), LEASE, true), PAWL_OK);
	}
	assert_true(holds(s, 2, "a", stage_lock(1)));
	assert_true(stage_count(s, COUNT_group_extended) >= 10);
	stage_wait(s, 500 * SPAN_MS);
	uint64_t before = stage_count(s, COUNT_group_extended);
	assert_int_equal(release(s, 1, "b", stage_lock(9)), PAWL_OK);
	stage_settle(s);
	const struct stage_reply *r = stage_answer(s, id);
	assert_int_equal(r->r.error, PAWL_OK);
	/* Both have one deadline, so the older one is extended once more. */
	assert_int_equal(stage_count(s, COUNT_group_extended), before + 1);
	assert_true(r->r.valid >= r->r.waited * 99 / 100 +
		span_shrink(LEASE, 10000) - 200 * SPAN_MS);
}

static void two_that_name_the_same_keys_in_other_orders_do_not_wait_for_each_other(void **state) {
	struct stage *s = *state;
	const struct core_lock one[] = { of("a", 1), of("b", 2) },
		two[] = { of("b", 4), of("a", 3) };
	uint64_t first = stage_ask(s, 0, group(one, 2, WAIT)),
		second = stage_ask(s, 1, group(two, 2, WAIT));
	stage_wait(s, SPAN_S);
	bool early = answered(s, first);
	uint64_t won = early ? first : second, lost = early ? second : first;
	assert_int_equal(stage_answer(s, won)->r.error, PAWL_OK);
	assert_false(answered(s, lost));
	release(s, 0, "a", early ? stage_lock(1) : stage_lock(3));
	release(s, 0, "b", early ? stage_lock(2) : stage_lock(4));
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_answer(s, lost)->r.error, PAWL_OK);
}

static void a_client_that_is_gone_leaves_nothing_behind(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	assert_true(holds(s, 2, "a", stage_lock(1)));
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	take(s, 2, "a", stage_lock(11));
	release(s, 1, "b", stage_lock(9));
	take(s, 2, "b", stage_lock(12));
}

static void a_client_that_is_gone_during_a_commit_leaves_nothing_behind(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	s->held[1][0] = s->held[2][0] = true;
	stage_ask(s, 0, group(locks, 2, WAIT));
	stage_settle(s);
	/* A promise is delivered, and the commit is sent. */
	stage_deliver(s, 1, 0);
	stage_settle(s);
	assert_true(stage_sent(s, MESSAGE_COMMIT) > 0);
	stage_client_gone(s, 0, 1);
	memset(s->held, 0, sizeof s->held);
	stage_wait(s, 10 * SPAN_MS);
	take(s, 2, "a", stage_lock(11));
}

/* The first node learns late that its client is gone. The same request has been granted
 * elsewhere. */
static void what_a_repeat_was_granted_elsewhere_is_not_rolled_back(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	uint64_t repeated = stage_ask(s, 2, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	/* The second node gets b first. */
	stage_cut(s, 0, 1, true);
	stage_cut(s, 0, 2, true);
	release(s, 1, "b", stage_lock(9));
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(stage_answer(s, repeated)->r.error, PAWL_OK);
	stage_cut(s, 0, 1, false);
	stage_cut(s, 0, 2, false);
	stage_mend(s);
	stage_client_gone(s, 0, 1);
	stage_wait(s, 100 * SPAN_MS);
	assert_true(holds(s, 1, "a", stage_lock(1)));
	assert_true(holds(s, 1, "b", stage_lock(2)));
	assert_int_equal(extend(s, 2, "a", stage_lock(1), LEASE, true), PAWL_OK);
}

/* The other masters have not heard of the rollback yet, and report that a quorum has what is rolled
 * back here. */
static void what_was_rolled_back_is_not_learned_again(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	uint64_t token, noted;
	take(s, 1, "b", stage_lock(9));
	stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	stage_lose(s, 0, 1, MESSAGE_RELEASE, true);
	stage_lose(s, 0, 2, MESSAGE_RELEASE, true);
	stage_client_gone(s, 0, 1);
	for (int i = 0; i < 20; i++) {
		stage_wait(s, 50 * SPAN_MS);
		assert_false(core_peek(s->nodes[0].core, slice_str("a"), stage_lock(1), &token,
			&noted));
	}
	/* They hear of it, too. */
	assert_true(stage_count(s, COUNT_sync_rolled_back) > 0);
	take(s, 1, "a", stage_lock(3));
}

/* The same holds where only an extension has reached the master that rolls back. */
static void what_was_extended_for_a_repeat_is_not_rolled_back(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	uint64_t token, noted;
	take(s, 1, "b", stage_lock(9));
	stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	stage_lose(s, 2, 1, MESSAGE_COMMIT, true);
	stage_lose(s, 2, 1, MESSAGE_LEARN, true);
	/* The key is asked for again, alone. */
	take(s, 2, "a", stage_lock(1));
	assert_int_equal(extend(s, 2, "a", stage_lock(1), LEASE, true), PAWL_OK);
	stage_client_gone(s, 0, 1);
	stage_settle(s);
	assert_true(core_peek(s->nodes[1].core, slice_str("a"), stage_lock(1), &token, &noted));
	assert_true(holds(s, 1, "a", stage_lock(1)));
}

static void a_repeat_at_the_same_node_joins(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("b", 2), of("a", 1) },
		others[] = { of("b", 2), of("c", 1) };
	take(s, 1, "b", stage_lock(9));
	uint64_t first = stage_ask(s, 0, group(locks, 2, WAIT)),
		second = stage_ask(s, 0, group(locks, 2, WAIT));
	stage_settle(s);
	assert_int_equal(stage_do(s, 0, group(others, 2, WAIT)), PAWL_EBADREQUEST);
	/* The lock_id is part of another request. */
	assert_int_equal(stage_do(s, 0, stage_acquire("b", stage_lock(2), LEASE, 0)),
		PAWL_EBADREQUEST);
	release(s, 1, "b", stage_lock(9));
	stage_settle(s);
	assert_int_equal(stage_answer(s, first)->r.error, PAWL_OK);
	assert_int_equal(stage_answer(s, second)->r.error, PAWL_OK);
	assert_int_equal(stage_answer(s, first)->rows[0].token,
		stage_answer(s, second)->rows[0].token);
	assert_int_equal(stage_count(s, COUNT_group_begun), 1);
}

static void a_repeat_elsewhere_after_a_lost_answer_has_them_again(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	assert_int_equal(stage_do(s, 0, group(locks, 2, 0)), PAWL_OK);
	stage_client_gone(s, 0, 1);
	assert_int_equal(stage_do(s, 1, group(locks, 2, 0)), PAWL_OK);
	assert_true(holds(s, 2, "a", stage_lock(1)) && holds(s, 2, "b", stage_lock(2)));
}

static void release_binding(struct stage *s, uint32_t node, const char *key, struct id128 lock,
	uint32_t binding) {
	struct core_request r = stage_request(CORE_RELEASE, key, lock);
	r.binding = binding;
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
}

/* The same client asks again over another connection; then the first one is closed. */
static void all_end_with_the_newest_connection_that_asked(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	struct core_request r = group(locks, 2, WAIT);
	take(s, 1, "b", stage_lock(9));
	r.terms.binding = 1;
	uint64_t first = stage_ask(s, 0, r);
	/* The request has the first key, under the first session binding. */
	stage_wait(s, 100 * SPAN_MS);
	r.terms.binding = 2;
	uint64_t second = stage_ask(s, 0, r);
	release(s, 1, "b", stage_lock(9));
	stage_wait(s, 10 * SPAN_MS);
	assert_int_equal(stage_answer(s, first)->r.error, PAWL_OK);
	assert_int_equal(stage_answer(s, second)->r.error, PAWL_OK);
	release_binding(s, 0, "a", stage_lock(1), 1);
	release_binding(s, 0, "b", stage_lock(2), 1);
	assert_true(holds(s, 2, "a", stage_lock(1)) && holds(s, 2, "b", stage_lock(2)));
	release_binding(s, 0, "a", stage_lock(1), 2);
	assert_false(holds(s, 2, "a", stage_lock(1)));
}

static void one_ends_with_the_newest_connection_that_asked(void **state) {
	struct stage *s = *state;
	/* The second request comes before the commit, or after it was sent. */
	for (uint8_t i = 0; i < 2; i++) {
		const char *key = i ? "a" : "b";
		struct core_request r = stage_acquire(key, stage_lock(i), LEASE, WAIT);
		s->held[1][0] = s->held[2][0] = true;
		r.terms.binding = 1;
		uint64_t first = stage_ask(s, 0, r);
		stage_settle(s);
		if (i) {
			/* A promise is delivered. */
			stage_deliver(s, 1, 0);
		}
		r.terms.binding = 2;
		uint64_t second = stage_ask(s, 0, r);
		memset(s->held, 0, sizeof s->held);
		stage_wait(s, 10 * SPAN_MS);
		assert_int_equal(stage_answer(s, first)->r.error, PAWL_OK);
		assert_int_equal(stage_answer(s, second)->r.error, PAWL_OK);
		release_binding(s, 0, key, stage_lock(i), 1);
		assert_true(holds(s, 2, key, stage_lock(i)));
	}
}

static void without_a_quorum_nothing_is_had(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	stage_isolate(s, 0, true);
	stage_wait(s, 3 * SPAN_S);
	/* The first lease could not be kept. */
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	release(s, 1, "b", stage_lock(9));
	take(s, 1, "a", stage_lock(11));
}

static void a_break_of_one_refuses_them_all(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	struct core_request b = stage_request(CORE_BREAK, "a", stage_lock(0));
	b.now = true;
	assert_int_equal(stage_do(s, 1, b), PAWL_OK);
	stage_wait(s, SPAN_S);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ELOST);
	assert_memory_equal(stage_answer(s, id)->failed_key.bytes, "a", 1);
}

static void requests_that_make_no_sense_are_refused(void **state) {
	struct stage *s = *state;
	const struct core_lock twice[] = { of("a", 1), of("b", 2), of("a", 3) },
		unnamed[] = { of("a", 1), { .key = slice_str("b") } };
	assert_int_equal(stage_do(s, 0, group(NULL, 0, 0)), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "locks");
	assert_int_equal(stage_do(s, 0, group(twice, 3, 0)), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "locks");
	assert_int_equal(stage_do(s, 0, group(unnamed, 2, 0)), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "lock_id");
	assert_memory_equal(stage_last(s)->failed_key.bytes, "b", 1);
	assert_int_equal(stage_count(s, COUNT_group_begun), 0);
}

static void readers_share_one_of_the_keys(void **state) {
	struct stage *s = *state;
	struct core_lock one[] = { of("a", 1), of("b", 2) }, two[] = { of("a", 3), of("c", 4) };
	one[0].of = two[0].of = MODE_SHARED;
	assert_int_equal(stage_do(s, 0, group(one, 2, 0)), PAWL_OK);
	assert_int_equal(stage_do(s, 1, group(two, 2, 0)), PAWL_OK);
	assert_int_equal(stage_do(s, 2, stage_acquire("a", stage_lock(9), LEASE, 0)), PAWL_EHELD);
}

static void permits_and_whole_keys_are_had_together(void **state) {
	struct stage *s = *state;
	struct core_lock one[] = { of("a", 1), of("b", 2) }, two[] = { of("a", 3), of("c", 4) },
		three[] = { of("a", 5), of("d", 6) };
	one[0].of = two[0].of = three[0].of = 3;
	one[0].count = 2;
	two[0].count = three[0].count = 1;
	assert_int_equal(stage_do(s, 0, group(one, 2, 0)), PAWL_OK);
	struct permits first = stage_last(s)->rows[0].terms.set;
	assert_int_equal(permits_count(first), 2);
	assert_int_equal(stage_do(s, 1, group(two, 2, 0)), PAWL_OK);
	assert_false(permits_meet(first, stage_last(s)->rows[0].terms.set));
	assert_int_equal(stage_do(s, 2, group(three, 2, 0)), PAWL_EHELD);
	take(s, 2, "d", stage_lock(9));
}

static void a_drain_answers_and_rolls_back(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, WAIT));
	stage_wait(s, 100 * SPAN_MS);
	stage_step(s, 0, &(struct core_event){ .kind = CORE_DRAIN });
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ERECOVERING);
	take(s, 2, "a", stage_lock(11));
}

static void lock_delay_is_asked_for_all(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) };
	struct core_request r = group(locks, 2, 0);
	r.terms.delay = SPAN_S;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_wait(s, LEASE + 500 * SPAN_MS);
	assert_int_equal(stage_do(s, 1, stage_acquire("a", stage_lock(8), LEASE, 0)), PAWL_EHELD);
	assert_int_equal(stage_do(s, 1, stage_acquire("b", stage_lock(9), LEASE, 0)), PAWL_EHELD);
	stage_wait(s, 600 * SPAN_MS);
	take(s, 1, "a", stage_lock(18));
	take(s, 1, "b", stage_lock(19));
}

static int small_setup(void **state) {
	struct stage_options o = named_options();
	o.limits.waiters_per_client = 1;
	*state = stage_born(&o);
	return 0;
}

static void a_request_for_several_keys_is_one_that_waits(void **state) {
	struct stage *s = *state;
	const struct core_lock locks[] = { of("a", 1), of("b", 2) },
		others[] = { of("c", 3), of("b", 4) };
	take(s, 1, "b", stage_lock(9));
	uint64_t id = stage_ask(s, 0, group(locks, 2, WAIT));
	stage_settle(s);
	assert_int_equal(stage_do(s, 0, group(others, 2, WAIT)), PAWL_EFULL);
	assert_string_equal(stage_last(s)->r.field, "waiters_per_client");
	release(s, 1, "b", stage_lock(9));
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	release(s, 1, "b", stage_lock(2));
	assert_int_equal(stage_do(s, 0, group(others, 2, WAIT)), PAWL_OK);
}

UNIT(cluster_group) {
	const struct CMUnitTest tests[] = {
		NAMED(all_keys_are_had_with_one_deadline),
		NAMED(one_that_is_held_refuses_them_all),
		NAMED(a_wait_that_is_over_rolls_back_what_was_had),
		NAMED(the_earlier_ones_are_kept_while_it_waits_for_the_later),
		NAMED(two_that_name_the_same_keys_in_other_orders_do_not_wait_for_each_other),
		NAMED(a_client_that_is_gone_leaves_nothing_behind),
		NAMED(a_client_that_is_gone_during_a_commit_leaves_nothing_behind),
		NAMED(what_a_repeat_was_granted_elsewhere_is_not_rolled_back),
		NAMED(what_was_rolled_back_is_not_learned_again),
		NAMED(what_was_extended_for_a_repeat_is_not_rolled_back),
		NAMED(a_repeat_at_the_same_node_joins),
		NAMED(a_repeat_elsewhere_after_a_lost_answer_has_them_again),
		NAMED(all_end_with_the_newest_connection_that_asked),
		NAMED(one_ends_with_the_newest_connection_that_asked),
		NAMED(without_a_quorum_nothing_is_had),
		NAMED(a_break_of_one_refuses_them_all),
		NAMED(requests_that_make_no_sense_are_refused),
		NAMED(readers_share_one_of_the_keys),
		NAMED(permits_and_whole_keys_are_had_together),
		NAMED(a_drain_answers_and_rolls_back),
		NAMED(lock_delay_is_asked_for_all),
		cmocka_unit_test_setup_teardown(a_request_for_several_keys_is_one_that_waits,
			small_setup, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
