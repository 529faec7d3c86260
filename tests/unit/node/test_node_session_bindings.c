/* These tests are about the table of locks that end with the connection of their client. */
#include "unit.h"

#include <time.h>

#include "session_bindings.h"
#include "pawl/error.h"

static const struct instant start = { 1000 * SPAN_S, 1000 * SPAN_S };

struct table {
	struct alloc_counter memory;
	struct allocator alloc;
	struct session_bindings session_bindings;
};

static void table_open(struct table *t) {
	t->memory = (struct alloc_counter){ 0 };
	t->alloc = alloc_libc(&t->memory);
	assert_int_equal(session_bindings_init(&t->session_bindings, &t->alloc,
		(struct siphash_key){ 1, 2 }), 0);
}

static void table_close(struct table *t) {
	session_bindings_done(&t->session_bindings);
	assert_int_equal(t->memory.used, 0);
}

static struct id128 lock(unsigned n) {
	struct id128 id = { .b = { (uint8_t)n, (uint8_t)(n >> 8), 7 } };
	return id;
}

static struct instant after(span_ns d) {
	return instant_add(start, d);
}

static void put(struct table *t, uint64_t client, uint64_t request, unsigned n, uint32_t binding) {
	assert_int_equal(session_bindings_put(&t->session_bindings, &t->alloc, client, request,
		slice_str("key"), lock(n), binding, start, after(SPAN_S)), 0);
}

static void a_lock_that_was_got_stays_until_it_is_released_or_its_client_is_gone(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 10, 1, 1);
	session_bindings_got(&t.session_bindings, 1, lock(1), after(SPAN_S));
	/* A repeat that failed takes nothing away. */
	session_bindings_refused(&t.session_bindings, 1, 10, &(struct id128){ .b = { 1, 0, 7 } });
	const struct session_binding *bound = session_bindings_first(&t.session_bindings, 1);
	assert_non_null(bound);
	assert_true(id128_equal(bound->lock_id, lock(1)) && bound->binding == 1 &&
		bound->size == 3);
	assert_null(session_bindings_first(&t.session_bindings, 2));
	/* That is another client's lock. */
	session_bindings_drop(&t.session_bindings, 2, lock(1));
	assert_non_null(session_bindings_first(&t.session_bindings, 1));
	session_bindings_drop(&t.session_bindings, 1, lock(1));
	assert_null(session_bindings_first(&t.session_bindings, 1));
	table_close(&t);
}

static void a_lock_that_is_still_asked_for_is_bound_and_unbound_when_it_is_refused(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 10, 1, 1);
	assert_non_null(session_bindings_first(&t.session_bindings, 1));
	const struct id128 id = lock(1);
	session_bindings_refused(&t.session_bindings, 1, 10, &id);
	assert_null(session_bindings_first(&t.session_bindings, 1));
	table_close(&t);
}

/* The client has given up the first request, whose time is over at the node a little later, and has
 * repeated it. */
static void a_lock_that_two_requests_ask_for_stays_when_one_of_them_is_refused(void **state) {
	struct table t;
	(void)state;
	for (uint64_t refused = 10; refused <= 11; refused++) {
		table_open(&t);
		put(&t, 1, 10, 1, 1);
		put(&t, 1, 11, 1, 1);
		const struct id128 id = lock(1);
		session_bindings_refused(&t.session_bindings, 1, refused, &id);
		/* The other request got it. */
		session_bindings_got(&t.session_bindings, 1, id, after(SPAN_S));
		assert_non_null(session_bindings_first(&t.session_bindings, 1));
		table_close(&t);
	}
}

/* One of several keys is asked for by itself as well. */
static void what_is_asked_for_alone_as_well_stays_when_the_group_is_refused(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 10, 1, 1);
	put(&t, 1, 10, 2, 1);
	put(&t, 1, 10, 3, 1);
	put(&t, 1, 11, 2, 1);
	session_bindings_refused(&t.session_bindings, 1, 10, NULL);
	assert_int_equal(t.session_bindings.by_lock.count, 1);
	assert_true(id128_equal(session_bindings_first(&t.session_bindings, 1)->lock_id, lock(2)));
	table_close(&t);
}

static void what_several_keys_were_asked_for_goes_together(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 9, 1, 1);
	put(&t, 1, 10, 2, 1);
	put(&t, 1, 10, 3, 1);
	put(&t, 1, 11, 4, 1);
	session_bindings_refused(&t.session_bindings, 1, 10, NULL);
	assert_int_equal(t.session_bindings.by_lock.count, 2);
	table_close(&t);
}

#define GROUPS 5000

/* Requests for several locks that wait while their client gets many others must not make the node
 * look at all of these when they are refused: 5,000 times 50,000 would take seconds. */
static void refusing_a_group_costs_only_what_it_asked_for(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	for (unsigned i = 0; i < GROUPS; i++) {
		put(&t, 1, i + 1, i, 1);
	}
	for (unsigned i = GROUPS; i < 60000; i++) {
		put(&t, 1, 0, i, 1);
	}
	clock_t begun = clock();
	for (unsigned i = 0; i < GROUPS; i++) {
		session_bindings_refused(&t.session_bindings, 1, i + 1, NULL);
	}
	assert_true(clock() - begun < CLOCKS_PER_SEC / 2);
	assert_int_equal(t.session_bindings.by_lock.count, 60000 - GROUPS);
	table_close(&t);
}

static void a_later_binding_counts(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 0, 1, 3);
	put(&t, 1, 0, 1, 2);
	assert_int_equal(session_bindings_first(&t.session_bindings, 1)->binding, 3);
	put(&t, 1, 0, 1, 4);
	assert_int_equal(session_bindings_first(&t.session_bindings, 1)->binding, 4);
	table_close(&t);
}

static void a_lock_that_moved_to_another_client_does_not_end_with_the_first(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 0, 1, 1);
	put(&t, 1, 0, 2, 1);
	put(&t, 2, 0, 1, 2);
	session_bindings_drop(&t.session_bindings, 1, lock(2));
	assert_true(session_bindings_moved(&t.session_bindings,
		session_bindings_first(&t.session_bindings, 1)));
	assert_false(session_bindings_moved(&t.session_bindings,
		session_bindings_first(&t.session_bindings, 2)));
	session_bindings_drop(&t.session_bindings, 2, lock(1));
	assert_false(session_bindings_moved(&t.session_bindings,
		session_bindings_first(&t.session_bindings, 1)));
	table_close(&t);
}

static void locks_that_nobody_releases_are_forgotten_after_their_leases(void **state) {
	struct table t;
	(void)state;
	table_open(&t);
	for (unsigned i = 0; i < 10000; i++) {
		struct instant now = after(i * SPAN_S);
		assert_int_equal(session_bindings_put(&t.session_bindings, &t.alloc, 1, i + 1,
			slice_str("key"), lock(i), 1, now, INSTANT_FOREVER), 0);
		session_bindings_got(&t.session_bindings, 1, lock(i),
			instant_add(now, 10 * SPAN_S));
		assert_true(t.session_bindings.by_lock.count < 200);
	}
	assert_true(id128_equal(session_bindings_first(&t.session_bindings, 1)->lock_id,
		lock(9999)));
	table_close(&t);
}

static void clients_and_requests_with_numbers_alike_are_told_apart(void **state) {
	const uint64_t turn = UINT64_C(1) << 32;
	struct table t;
	(void)state;
	table_open(&t);
	put(&t, 1, 10, 1, 1);
	put(&t, 1 + turn, 10 + turn, 2, 1);
	assert_true(id128_equal(session_bindings_first(&t.session_bindings, 1)->lock_id, lock(1)));
	session_bindings_refused(&t.session_bindings, 1 + turn, 10 + turn, NULL);
	assert_null(session_bindings_first(&t.session_bindings, 1 + turn));
	assert_non_null(session_bindings_first(&t.session_bindings, 1));
	table_close(&t);
}

static void clients_that_are_gone_are_done_with_one_after_the_other(void **state) {
	struct table t;
	uint64_t client;
	bool release;
	(void)state;
	table_open(&t);
	put(&t, 1, 0, 1, 1);
	put(&t, 2, 0, 2, 1);
	put(&t, 2, 0, 3, 1);
	put(&t, 3, 0, 4, 1);
	/* This client had no lock. */
	session_bindings_go(&t.session_bindings, 9, true);
	assert_false(session_bindings_gone(&t.session_bindings, &client, &release));
	session_bindings_go(&t.session_bindings, 2, true);
	session_bindings_go(&t.session_bindings, 1, false);
	for (unsigned n = 2; n <= 3; n++) {
		assert_true(session_bindings_gone(&t.session_bindings, &client, &release) &&
			client == 2 && release);
		session_bindings_drop(&t.session_bindings, 2,
			session_bindings_first(&t.session_bindings, 2)->lock_id);
	}
	assert_true(session_bindings_gone(&t.session_bindings, &client, &release) && client == 1 &&
		!release);
	session_bindings_drop(&t.session_bindings, 1, lock(1));
	assert_false(session_bindings_gone(&t.session_bindings, &client, &release));
	assert_int_equal(t.session_bindings.by_lock.count, 1);
	table_close(&t);
}

UNIT(node_session_bindings) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_lock_that_was_got_stays_until_it_is_released_or_its_client_is_gone),
		cmocka_unit_test(
			a_lock_that_is_still_asked_for_is_bound_and_unbound_when_it_is_refused),
		cmocka_unit_test(
			a_lock_that_two_requests_ask_for_stays_when_one_of_them_is_refused),
		cmocka_unit_test(what_is_asked_for_alone_as_well_stays_when_the_group_is_refused),
		cmocka_unit_test(what_several_keys_were_asked_for_goes_together),
		cmocka_unit_test(refusing_a_group_costs_only_what_it_asked_for),
		cmocka_unit_test(a_later_binding_counts),
		cmocka_unit_test(a_lock_that_moved_to_another_client_does_not_end_with_the_first),
		cmocka_unit_test(locks_that_nobody_releases_are_forgotten_after_their_leases),
		cmocka_unit_test(clients_and_requests_with_numbers_alike_are_told_apart),
		cmocka_unit_test(clients_that_are_gone_are_done_with_one_after_the_other),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
