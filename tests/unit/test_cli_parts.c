/* Durations, numbers and histograms of the command. */
#include "cli.h"
#include "histogram.h"
#include "unit.h"

static void durations_have_units_and_fit(void **state) {
	(void)state;
	static const struct {
		const char *text;
		uint32_t ms;
	} good[] = { { "300ms", 300 }, { "5s", 5000 }, { "2m", 120000 }, { "1h", 3600000 }, { "0", 0 }, { "0s", 0 } };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		uint32_t ms = 7;
		assert_true(cli_duration_parse(good[i].text, &ms));
		assert_int_equal(ms, good[i].ms);
	}
	static const char *const bad[] = { "", "5", "s", "5 s", "-5s", "+5s", "5S", "1.5s", "5sm", "9999h", "12345678901s" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t ms = 7;
		assert_false(cli_duration_parse(bad[i], &ms));
		assert_int_equal(ms, 7);
	}
}

static void numbers_are_decimal_without_sign(void **state) {
	(void)state;
	uint64_t n = 7;
	assert_true(cli_number_parse("18446744073709551615", &n));
	assert_true(n == UINT64_MAX);
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "0x10", "18446744073709551616", "1e3" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(cli_number_parse(bad[i], &n));
	}
}

static void quantiles_are_right_to_about_one_percent(void **state) {
	(void)state;
	static struct histogram h;
	assert_int_equal(histogram_quantile(&h, 0.5), 0);
	for (int64_t i = 1; i <= 100000; i++) {
		histogram_add(&h, i * 1000);
	}
	static const struct {
		double part;
		uint64_t ns;
	} rows[] = { { 0.01, 1000000 }, { 0.5, 50000000 }, { 0.9, 90000000 }, { 0.99, 99000000 }, { 1.0, 100000000 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t got = histogram_quantile(&h, rows[i].part);
		assert_in_range(got, rows[i].ns - rows[i].ns / 50, rows[i].ns + rows[i].ns / 50);
	}
	assert_true(h.max_ns == 100000000);
}

static void extreme_durations_have_a_bucket(void **state) {
	(void)state;
	static struct histogram h;
	histogram_add(&h, INT64_MAX);
	histogram_add(&h, -1);
	histogram_add(&h, 0);
	assert_true(histogram_quantile(&h, 0.1) == 0);
	assert_true(histogram_quantile(&h, 1.0) == INT64_MAX);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_units_and_fit),
		cmocka_unit_test(numbers_are_decimal_without_sign),
		cmocka_unit_test(quantiles_are_right_to_about_one_percent),
		cmocka_unit_test(extreme_durations_have_a_bucket),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
