/* These tests find who has most of something, among very many, in little memory. */
#include "unit.h"

#include "tally.h"

static void add(struct tally *t, uint64_t name, uint64_t count) {
	tally_add(t, name, count, name * 10, slice_of(NULL, 0));
}

static void nobody_stands_out_where_there_is_nothing(void **state) {
	(void)state;
	struct tally t = { 0 };
	assert_null(tally_most(&t));
	add(&t, 1, 0);
	assert_null(tally_most(&t));
}

static void of_a_few_the_greatest_is_found_exactly(void **state) {
	(void)state;
	struct tally t = { 0 };
	for (uint64_t i = 1; i < TALLY_ROWS; i++) {
		add(&t, i, 1);
		add(&t, i % 3, 2);
	}
	add(&t, 1, 1);
	const struct tally_row *most = tally_most(&t);
	assert_int_equal(most->name, 1);
	assert_int_equal(most->count, 12);
	assert_int_equal(most->part, 10);
}

/* Ten thousand others come and go through the same rows. */
static void a_client_with_a_tenth_of_all_is_found_among_very_many(void **state) {
	(void)state;
	struct tally t = { 0 };
	for (uint64_t i = 0; i < 10000; i++) {
		add(&t, 1000 + i, 1);
		if (i % 9 == 0) {
			add(&t, 7, 1);
		}
	}
	const struct tally_row *most = tally_most(&t);
	assert_int_equal(most->name, 7);
	assert_true(most->count <= 1112 && most->count >= 1112 - t.total / (TALLY_ROWS + 1));
}

static void one_that_counts_much_takes_the_rows_of_many(void **state) {
	(void)state;
	struct tally t = { 0 };
	for (uint64_t i = 1; i <= 100; i++) {
		add(&t, i, i == 50 ? 1000 : 3);
	}
	assert_int_equal(tally_most(&t)->name, 50);
	assert_int_equal(t.total, 1297);
}

UNIT(node_tally) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_stands_out_where_there_is_nothing),
		cmocka_unit_test(of_a_few_the_greatest_is_found_exactly),
		cmocka_unit_test(a_client_with_a_tenth_of_all_is_found_among_very_many),
		cmocka_unit_test(one_that_counts_much_takes_the_rows_of_many),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
