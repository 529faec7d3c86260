/* Whether a node is ready, and the counts of its requests. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "health.h"
#include "orders.h"
#include "pawl/error.h"
#include "request_counts.h"

static const struct health_facts voting = { .state = CORE_VOTING, .loop = true, .quorum = 2,
	.voting = 3, .probe = PROBE_OK };
static const struct health_facts following = { .state = CORE_FOLLOWING, .loop = true, .quorum = 2,
	.voting = 3, .follows = true, .age = 20 * SPAN_MS };

/* Judges, and returns the check that fails, or NULL if the node is ready. */
static const struct health_check *failing(const struct health_facts *facts) {
	static struct health health;
	const struct health_check *found = NULL;
	health_judge(facts, &health);
	for (uint32_t i = 0; i < health.count; i++) {
		found = !found && !health.checks[i].ok ? &health.checks[i] : found;
	}
	assert_int_equal(health.ready, found == NULL);
	return found;
}

static void assert_fails(const struct health_facts *facts, const char *name, const char *why) {
	const struct health_check *check = failing(facts);
	assert_non_null(check);
	assert_string_equal(check->name, name);
	assert_string_equal(check->why, why);
}

static void a_master_is_ready_when_it_votes_and_a_quorum_answers(void **state) {
	(void)state;
	struct health_facts f = voting;
	assert_null(failing(&f));
	f.probe = PROBE_NONE;
	assert_fails(&f, "quorum", "no answer yet");
	f.probe = PROBE_FAILED;
	f.answered = 1;
	assert_fails(&f, "quorum", "1 of 2");
	f = voting;
	f.voting = 1;
	assert_fails(&f, "quorum", "1 of 2");
	/* Nobody looks, so nothing is asked. */
	f = voting;
	f.probe = PROBE_OFF;
	assert_null(failing(&f));
	f.state = CORE_RECOVERING;
	f.waits_for = "time";
	assert_fails(&f, "vote", "recovering, waits for time");
	f.left = 40 * SPAN_S + 1;
	assert_fails(&f, "vote", "recovering, waits 41 s more at most, waits for time");
}

static void a_drain_comes_before_all_else(void **state) {
	(void)state;
	struct health_facts f = voting;
	f.draining = true;
	assert_fails(&f, "drain", "a planned stop has begun");
	f.loop = false;
	assert_fails(&f, "loop", "it stood still for more than a second");
}

static void a_replica_is_ready_when_it_follows_closely(void **state) {
	(void)state;
	struct health_facts f = following;
	assert_null(failing(&f));
	f.age = HEALTH_AGE_MAX;
	assert_fails(&f, "age", "5000 ms, at most 5000");
	f.age = SPAN_MAX;
	assert_fails(&f, "age", "unknown");
	f.follows = false;
	assert_fails(&f, "follow", "no master is linked with a quorum");
	f = following;
	f.catching_up = true;
	assert_fails(&f, "follow", "a snapshot is still arriving");
}

static struct instant at(span_ns since) {
	return (struct instant){ since, since };
}

static void a_request_is_counted_from_its_beginning_to_its_answer(void **state) {
	(void)state;
	static struct request_counts c;
	struct request_count one = { .open = false }, two = { .open = false };
	const struct core_reply granted = { .op = CORE_ACQUIRE, .waited = 3 * SPAN_MS };
	request_counts_init(&c);
	request_counts_begin(&c, &one, CLIENT_ACQUIRE, 2, SPAN_S, at(0));
	request_counts_begin(&c, &two, CLIENT_ACQUIRE, KEY_GROUPS_MAX, SPAN_S, at(SPAN_MS));
	assert_int_equal(c.groups[2].waiters, 1);
	assert_int_equal(request_counts_oldest(&c, at(5 * SPAN_MS)), 5 * SPAN_MS);
	request_counts_granted(&c, 2, &granted);
	request_counts_answer(&c, &one, 0, at(3 * SPAN_MS));
	/* A request that has been answered is not counted again. */
	request_counts_answer(&c, &one, PAWL_EHELD, at(4 * SPAN_MS));
	assert_int_equal(c.results[CLIENT_ACQUIRE][0], 1);
	assert_int_equal(c.results[CLIENT_ACQUIRE][-PAWL_EHELD], 0);
	assert_int_equal(c.durations[CLIENT_ACQUIRE].counts[buckets_of(3 * SPAN_MS)], 1);
	assert_int_equal(c.grants[FIGURE_EXCLUSIVE], 1);
	assert_int_equal(c.groups[2].grants, 1);
	assert_int_equal(c.groups[2].waiters, 0);
	assert_int_equal(request_counts_oldest(&c, at(5 * SPAN_MS)), 4 * SPAN_MS);
	request_counts_forget(&c, &two);
	assert_int_equal(request_counts_oldest(&c, at(5 * SPAN_MS)), 0);
	assert_int_equal(c.waits.sum, 3 * SPAN_MS);
}

static void a_wait_without_an_end_is_not_the_oldest(void **state) {
	(void)state;
	static struct request_counts c;
	struct request_count candidate = { .open = false }, other = { .open = false };
	request_counts_init(&c);
	request_counts_begin(&c, &candidate, CLIENT_ACQUIRE, 0, REQUEST_ENDLESS, at(0));
	assert_int_equal(c.groups[0].waiters, 1);
	assert_int_equal(request_counts_oldest(&c, at(5 * SPAN_S)), 0);
	request_counts_begin(&c, &other, CLIENT_ACQUIRE, 0, REQUEST_ENDLESS - 1, at(SPAN_S));
	assert_int_equal(request_counts_oldest(&c, at(5 * SPAN_S)), 4 * SPAN_S);
	request_counts_forget(&c, &candidate);
	assert_int_equal(c.groups[0].waiters, 1);
	assert_int_equal(request_counts_oldest(&c, at(5 * SPAN_S)), 4 * SPAN_S);
}

static void the_last_orders_are_remembered(void **state) {
	(void)state;
	static struct orders o;
	char node[16], long_name[KEY_MAX + 9];
	assert_null(orders_last(&o, 0));
	orders_note(&o, "break", slice_str("key"), slice_str("ops"), at(SPAN_S));
	const struct order *one = orders_last(&o, 0);
	assert_int_equal(one->at, SPAN_S);
	assert_true(slice_equal(slice_of(one->subject, one->subject_size), slice_str("key")));
	assert_true(slice_equal(slice_of(one->who, one->who_size), slice_str("ops")));
	assert_null(orders_last(&o, 1));
	for (unsigned i = 0; i < ORDERS_MAX; i++) {
		snprintf(node, sizeof node, "n%u", i);
		orders_note(&o, "cluster_promote", slice_str(node), slice_of(NULL, 0), at(2));
	}
	one = orders_last(&o, ORDERS_MAX - 1);
	assert_true(slice_equal(slice_of(one->subject, one->subject_size), slice_str("n0")));
	assert_null(orders_last(&o, ORDERS_MAX));
	memset(long_name, 'x', sizeof long_name);
	orders_note(&o, "break", slice_of(long_name, sizeof long_name),
		slice_of(long_name, sizeof long_name), at(3));
	assert_int_equal(orders_last(&o, 0)->subject_size, KEY_MAX);
	assert_int_equal(orders_last(&o, 0)->who_size, ORDER_NAME_BYTES);
}

static void of_an_order_is_remembered_how_it_was_answered(void **state) {
	(void)state;
	static struct orders o;
	const uint64_t first = orders_note(&o, "break", slice_str("a"), slice_str("ops"), at(1));
	const uint64_t second = orders_note(&o, "break", slice_str("b"), slice_str("ops"), at(2));
	assert_false(orders_last(&o, 0)->answered);
	orders_answer(&o, first, PAWL_ENOTFOUND);
	assert_false(orders_last(&o, 0)->answered);
	assert_true(orders_last(&o, 1)->answered);
	assert_int_equal(orders_last(&o, 1)->result, PAWL_ENOTFOUND);
	orders_answer(&o, second, 0);
	assert_true(orders_last(&o, 0)->answered);
	/* The number 0 is no order; and an order whose place another one has taken is forgotten. */
	orders_answer(&o, 0, PAWL_EDENIED);
	for (unsigned i = 0; i < ORDERS_MAX; i++) {
		orders_note(&o, "drain", slice_of(NULL, 0), slice_str("ops"), at(3));
	}
	orders_answer(&o, second, PAWL_EDENIED);
	for (unsigned i = 0; i < ORDERS_MAX; i++) {
		assert_false(orders_last(&o, i)->answered);
	}
}

UNIT(node_health) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_master_is_ready_when_it_votes_and_a_quorum_answers),
		cmocka_unit_test(a_drain_comes_before_all_else),
		cmocka_unit_test(a_replica_is_ready_when_it_follows_closely),
		cmocka_unit_test(a_request_is_counted_from_its_beginning_to_its_answer),
		cmocka_unit_test(a_wait_without_an_end_is_not_the_oldest),
		cmocka_unit_test(the_last_orders_are_remembered),
		cmocka_unit_test(of_an_order_is_remembered_how_it_was_answered),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
