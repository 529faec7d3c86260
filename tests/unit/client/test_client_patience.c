/* These tests are about how long a client lets a node be silent before it leaves it. */
#include "unit.h"

#include "patience.h"

#define LONGEST SPAN_S

static struct patience fast(void) {
	struct patience p;
	patience_init(&p);
	patience_answered(&p, 100 * SPAN_US, 0);
	return p;
}

static void four_times_the_slowest_answer_and_within_bounds(void **state) {
	(void)state;
	struct patience p = fast();
	assert_int_equal(patience_time(&p, LONGEST), 6 * SPAN_MS);
	patience_answered(&p, 10 * SPAN_MS, 0);
	assert_int_equal(patience_time(&p, LONGEST), 40 * SPAN_MS);
	patience_answered(&p, 800 * SPAN_MS, 0);
	assert_int_equal(patience_time(&p, LONGEST), LONGEST);
	assert_int_equal(patience_time(&p, INT64_MAX), 3200 * SPAN_MS);
}

static void a_slow_answer_is_forgotten_by_and_by(void **state) {
	(void)state;
	struct patience p = fast();
	patience_answered(&p, 20 * SPAN_MS, 0);
	for (int i = 0; i < 10; i++) {
		patience_answered(&p, 100 * SPAN_US, 0);
	}
	assert_true(patience_time(&p, LONGEST) > 40 * SPAN_MS);
	for (int i = 0; i < 100; i++) {
		patience_answered(&p, 100 * SPAN_US, 0);
	}
	assert_int_equal(patience_time(&p, LONGEST), 6 * SPAN_MS);
}

static void each_switch_doubles_the_time_and_answers_halve_it(void **state) {
	(void)state;
	struct patience p = fast();
	patience_switched(&p, 1, SPAN_S);
	patience_too_short(&p, SPAN_S);
	assert_int_equal(patience_time(&p, LONGEST), 24 * SPAN_MS);
	/* A thousand answers in the next moment are no more than one. */
	for (int i = 0; i < 1000; i++) {
		patience_answered(&p, 100 * SPAN_US, SPAN_S + SPAN_MS);
	}
	assert_int_equal(patience_time(&p, LONGEST), 24 * SPAN_MS);
	patience_answered(&p, 100 * SPAN_US, 2 * SPAN_S);
	assert_int_equal(patience_time(&p, LONGEST), 12 * SPAN_MS);
	for (int i = 3; i < 10; i++) {
		patience_answered(&p, 100 * SPAN_US, i * SPAN_S);
	}
	assert_int_equal(patience_time(&p, LONGEST), 6 * SPAN_MS);
	for (int i = 0; i < 100; i++) {
		patience_too_short(&p, 10 * SPAN_S);
	}
	assert_int_equal(patience_time(&p, LONGEST), LONGEST);
}

static void what_is_sent_again_has_a_budget_which_answers_fill(void **state) {
	(void)state;
	struct patience p = fast();
	assert_true(patience_allows(&p));
	patience_switched(&p, 5, 0);
	assert_true(patience_allows(&p));
	patience_switched(&p, 1, 0);
	assert_false(patience_allows(&p));
	for (int i = 0; i < 10; i++) {
		assert_false(patience_allows(&p));
		patience_answered(&p, 100 * SPAN_US, 0);
	}
	assert_true(patience_allows(&p));
	patience_switched(&p, 100000, 0);
	for (int i = 0; i < 49; i++) {
		patience_answered(&p, 100 * SPAN_US, 0);
	}
	assert_false(patience_allows(&p));
	for (int i = 0; i < 1000; i++) {
		patience_answered(&p, 100 * SPAN_US, 0);
	}
	/* It is full with ten. */
	patience_switched(&p, 6, 0);
	assert_false(patience_allows(&p));
}

static void the_own_pauses_count_like_slow_answers_up_to_a_bound(void **state) {
	(void)state;
	struct patience p = fast();
	patience_late(&p, 10 * SPAN_MS);
	assert_int_equal(patience_time(&p, LONGEST), 40 * SPAN_MS);
	patience_late(&p, 3600 * SPAN_S);
	assert_int_equal(patience_time(&p, LONGEST), 400 * SPAN_MS);
}

UNIT(client_patience) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(four_times_the_slowest_answer_and_within_bounds),
		cmocka_unit_test(a_slow_answer_is_forgotten_by_and_by),
		cmocka_unit_test(each_switch_doubles_the_time_and_answers_halve_it),
		cmocka_unit_test(what_is_sent_again_has_a_budget_which_answers_fill),
		cmocka_unit_test(the_own_pauses_count_like_slow_answers_up_to_a_bound),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
