/* These tests ask what each master reports of a key, and who waits for the keys of a prefix. */
#include "named.h"

static const struct id128 no_lock;

static const struct stage_reply *explain(struct stage *s, uint32_t node, const char *key,
	bool admin) {
	struct core_request r = stage_request(CORE_EXPLAIN, key, no_lock);
	r.admin = admin;
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 150 * SPAN_MS);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	assert_int_equal(reply->r.count, s->options.masters);
	return reply;
}

static void every_master_says_what_it_has(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	const struct stage_reply *r = explain(s, 1, "k", true);
	assert_true(r->r.held);
	assert_int_equal(r->r.entry.token, token);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(r->reports[i].status, STATUS_OK);
		assert_int_equal(r->reports[i].count, 1);
		assert_int_equal(r->reports[i].items[0].kind, REPORTED_RECORD);
		assert_true(id128_equal(r->reports[i].items[0].lock_id, stage_lock(1)));
		assert_true(r->reports[i].items[0].remaining > LEASE / 2);
		assert_false(r->reports[i].items[0].barred);
	}
}

static void requests_that_wait_are_parked_behind_the_holder_and_counted_at_home(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	wait_for(s, 1, "k", stage_lock(2));
	wait_for(s, 2, "k", stage_lock(3));
	const struct stage_reply *r = explain(s, 0, "k", true);
	uint32_t homes = 0;
	for (uint32_t i = 0; i < 3; i++) {
		const struct stage_report *w = &r->reports[i];
		homes += w->home;
		assert_int_equal(w->waiting, w->home ? 2 : 0);
		assert_int_equal(w->count, 2);
		/* This is the one that has the turn. */
		assert_int_equal(w->items[1].kind, REPORTED_PARKED);
		assert_true(id128_equal(w->items[1].lock_id, stage_lock(2)));
	}
	assert_int_equal(homes, 1);
}

static void a_promise_is_told(void **state) {
	struct stage *s = *state;
	s->held[1][0] = s->held[2][0] = true;
	/* The attempt has its promises, and does not know that yet. */
	stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, WAIT));
	stage_settle(s);
	const struct stage_reply *r = explain(s, 1, "k", false);
	assert_false(r->r.held);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(r->reports[i].count, r->reports[i].status == STATUS_OK);
		if (r->reports[i].count) {
			assert_int_equal(r->reports[i].items[0].kind, REPORTED_PROMISE);
			assert_false(r->reports[i].items[0].show_lock_id);
		}
	}
}

static void a_silent_master_is_shown_as_silent(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	const struct stage_reply *r = explain(s, 0, "k", false);
	assert_true(r->r.held);
	assert_int_equal(r->reports[2].status, STATUS_ABSENT);
	assert_int_equal(r->reports[2].count, 0);
	assert_int_equal(r->reports[1].status, STATUS_OK);
	/* Alone, the node still says what it knows. */
	r = explain(s, 2, "k", false);
	assert_false(r->r.held);
	assert_int_equal(r->reports[2].count, 1);
}

static void a_barred_record_is_told(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_int_equal(stage_do(s, 1, stage_request(CORE_BREAK, "k", no_lock)), PAWL_OK);
	assert_true(explain(s, 0, "k", false)->reports[1].items[0].barred);
}

static void a_free_key_is_explained_too(void **state) {
	const struct stage_reply *r = explain(*state, 0, "k", false);
	assert_false(r->r.held);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(r->reports[i].status, STATUS_OK);
		assert_int_equal(r->reports[i].count, 0);
	}
}

static void readers_are_all_named(void **state) {
	struct stage *s = *state;
	for (uint8_t i = 0; i < 3; i++) {
		struct core_request r = stage_acquire("k", stage_lock(i), LEASE, 0);
		r.terms.of = MODE_SHARED;
		assert_int_equal(stage_do(s, i, r), PAWL_OK);
	}
	struct core_request writer = stage_acquire("k", stage_lock(9), LEASE, WAIT);
	stage_ask(s, 0, writer);
	stage_settle(s);
	const struct stage_reply *r = explain(s, 1, "k", true);
	assert_true(r->r.held);
	assert_int_equal(r->r.holder_count, 3);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(r->reports[i].count, 4);
		assert_int_equal(r->reports[i].items[3].kind, REPORTED_PARKED);
	}
}

/* An explanation waits for a silent master while leases end. Those whose lease is over by then hold
 * nothing. */
static void readers_that_end_while_a_master_is_silent_are_not_named(void **state) {
	struct stage *s = *state;
	for (uint8_t i = 0; i < 60; i++) {
		struct core_request r = stage_acquire("k", stage_lock(i),
			i % 6 ? 300 * SPAN_MS : LEASE, 0);
		r.terms.of = MODE_SHARED;
		assert_int_equal(stage_do(s, i % 3, r), PAWL_OK);
	}
	stage_wait(s, 250 * SPAN_MS);
	s->held[2][0] = true;
	const struct stage_reply *r = explain(s, 0, "k", true);
	assert_true(r->r.held);
	assert_false(r->r.contested);
	assert_int_equal(r->r.holder_count, 10);
	/* The count is as it was when the master said it. */
	assert_int_equal(r->reports[0].count, 60);
}

/* ---- who waits, for many keys ---- */

static struct core_request waiting(const char *prefix, uint32_t limit) {
	struct core_request r = stage_request(CORE_WAITERS, prefix, no_lock);
	r.prefix = true;
	r.limit = limit;
	return r;
}

static void assert_waiter(const struct stage_reply *r, size_t i, const char *key, uint8_t lock) {
	assert_true(i < r->r.count);
	assert_int_equal(r->rows[i].key.size, strlen(key));
	assert_memory_equal(r->rows[i].key.bytes, key, strlen(key));
	assert_true(id128_equal(r->rows[i].lock_id, stage_lock(lock)));
}

static void those_who_wait_are_listed_in_the_order_of_keys_and_queues(void **state) {
	struct stage *s = *state;
	static const char *const keys[] = { "job/c", "job/a", "job/d", "job/b", "else" };
	for (uint8_t i = 0; i < 5; i++) {
		take(s, i % 3, keys[i], stage_lock(i));
		for (uint8_t j = 0; j < 2; j++) {
			struct core_request r = stage_acquire(keys[i],
				stage_lock((uint8_t)(10 + 10 * j + i)), LEASE, WAIT);
			r.owner = slice_str("me");
			stage_ask(s, (i + j) % 3u, r);
			stage_settle(s);
		}
	}
	assert_int_equal(stage_do(s, 1, waiting("job/", 0)), PAWL_OK);
	const struct stage_reply *r = stage_last(s);
	assert_int_equal(r->r.count, 8);
	assert_false(r->r.more);
	static const uint8_t order[] = { 1, 3, 0, 2 };
	for (size_t i = 0; i < 4; i++) {
		assert_waiter(r, 2 * i, keys[order[i]], (uint8_t)(10 + order[i]));
		assert_waiter(r, 2 * i + 1, keys[order[i]], (uint8_t)(20 + order[i]));
	}
	assert_memory_equal(r->rows[0].owner.bytes, "me", 2);
	assert_int_equal(stage_do(s, 1, waiting("", 0)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.count, 10);
}

static void a_long_list_is_cut_and_says_so(void **state) {
	struct stage *s = *state;
	static const char *const keys[] = { "c", "a", "b" };
	for (uint8_t i = 0; i < 3; i++) {
		take(s, 0, keys[i], stage_lock(i));
		wait_for(s, 1, keys[i], stage_lock((uint8_t)(10 + i)));
	}
	assert_int_equal(stage_do(s, 2, waiting("", 2)), PAWL_OK);
	const struct stage_reply *r = stage_last(s);
	assert_int_equal(r->r.count, 2);
	assert_true(r->r.more);
	assert_waiter(r, 0, "a", 11);
	assert_waiter(r, 1, "b", 12);
	assert_int_equal(stage_do(s, 2, waiting("", 3)), PAWL_OK);
	assert_false(stage_last(s)->r.more);
	assert_int_equal(stage_do(s, 2, waiting("", 1001)), PAWL_EBADREQUEST);
}

static void a_list_needs_a_quorum(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, waiting("", 0)), PAWL_OK);
	assert_int_equal(stage_last(s)->r.count, 0);
	stage_isolate(s, 0, true);
	assert_int_equal(stage_do(s, 0, waiting("", 0)), PAWL_ENOQUORUM);
}

/* A master names 128 records at most. n1 has them in another order since it has started anew. */
static void a_key_with_many_readers_is_not_explained_as_free(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 260; i++) {
		/* The check of the core compares each record with each other one. It follows every
		 * step up to 64 readers, and the steps of every tenth further one. */
		s->options.unchecked = i >= 64 && i % 10 != 9;
		struct id128 lock = { { 1, (uint8_t)i, (uint8_t)(i >> 8), 7 } };
		struct core_request r = stage_acquire("k", lock, 10 * SPAN_S, 0);
		r.terms.of = MODE_SHARED;
		assert_int_equal(stage_do(s, i % 3, r), PAWL_OK);
	}
	wait_for(s, 1, "k", stage_lock(2));
	/* Those who wait are told, too. */
	assert_int_equal(explain(s, 1, "k", true)->r.holder_count, 127);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0) && stage_until_voting(s, 0, SPAN_S));
	stage_isolate(s, 2, true);
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = true;
	uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, 250 * SPAN_MS);
	assert_true(stage_answer(s, id)->r.held);
	const struct stage_reply *x = explain(s, 0, "k", true);
	assert_true(x->r.held && x->r.more && x->r.holder_count >= 127);
	assert_true(x->reports[0].more && x->reports[1].more && x->reports[1].count == 128);
}

/* Sends commits of readers that this master alone hears of. */
static void leave_over(struct stage *s, uint32_t at, uint8_t first, uint8_t count) {
	for (uint8_t i = 0; i < count; i++) {
		const uint64_t token = 100000u + 1000u * first + i;
		stage_inject(s, 1 - at, at, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 <<
			16, .name = 1, .key = slice_str("k"), .lock_id = { { first, i } },
			.token = token, .lease_us = (uint64_t)LEASE / 1000,
			.terms = { .of = MODE_SHARED }, .ballot = { token, 1, 1 } });
	}
	stage_settle(s);
}

static int explain_error(struct stage *s) {
	uint64_t id = stage_ask(s, 0, stage_request(CORE_EXPLAIN, "k", no_lock));
	/* All that can be asked answer at once. Many reports are weighed a little later, if others
	 * were just before. */
	stage_wait(s, 5 * SPAN_MS);
	assert_non_null(stage_answer(s, id));
	return stage_answer(s, id)->r.error;
}

/* What only one master has comes before the reader, which no master has room to name. */
static void what_no_master_had_room_for_is_not_explained_as_free(void **state) {
	struct stage *s = *state;
	struct core_request reader = stage_acquire("k", stage_lock(0xf0), LEASE, 0);
	reader.terms.of = MODE_SHARED;
	assert_int_equal(stage_do(s, 0, reader), PAWL_OK);
	stage_isolate(s, 2, true);
	leave_over(s, 0, 1, 127);
	leave_over(s, 1, 2, 127);
	/* The reader is the last one that there is room for. */
	assert_true(explain(s, 0, "k", true)->r.held);
	assert_false(stage_last(s)->r.more || stage_last(s)->reports[0].more);
	leave_over(s, 0, 3, 1);
	/* n2 names it, and n1 may have it. */
	assert_int_equal(explain_error(s), PAWL_EINDETERMINATE);
	leave_over(s, 1, 3, 1);
	assert_int_equal(explain_error(s), PAWL_EINDETERMINATE);
}

static void what_one_master_leaves_out_is_no_holder(void **state) {
	struct stage *s = *state;
	leave_over(s, 0, 1, 130);
	const struct stage_reply *r = explain(s, 1, "k", true);
	assert_false(r->r.held || r->r.more || r->reports[1].more);
	assert_true(r->reports[0].more && r->reports[0].count == 128);
}

UNIT(cluster_explain) {
	const struct CMUnitTest tests[] = {
		NAMED(every_master_says_what_it_has),
		NAMED(requests_that_wait_are_parked_behind_the_holder_and_counted_at_home),
		NAMED(a_promise_is_told),
		NAMED(a_silent_master_is_shown_as_silent),
		NAMED(a_barred_record_is_told),
		NAMED(a_free_key_is_explained_too),
		NAMED(readers_are_all_named),
		NAMED(readers_that_end_while_a_master_is_silent_are_not_named),
		NAMED(those_who_wait_are_listed_in_the_order_of_keys_and_queues),
		NAMED(a_long_list_is_cut_and_says_so),
		NAMED(a_list_needs_a_quorum),
		NAMED(a_key_with_many_readers_is_not_explained_as_free),
		NAMED(what_no_master_had_room_for_is_not_explained_as_free),
		NAMED(what_one_master_leaves_out_is_no_holder),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
