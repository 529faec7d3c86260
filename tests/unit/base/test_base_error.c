/* The table of errors. */
#include "unit.h"

#include "pawl/error.h"

static void every_code_leads_back_to_its_number(void **state) {
	(void)state;
#define ROUND_TRIP(name, number, code, message) \
	assert_int_equal(pawl_error_from_code(code), name); \
	assert_string_equal(pawl_error_code(name), code); \
	assert_string_equal(pawl_error_message(name), message);
	PAWL_ERROR_TABLE(ROUND_TRIP)
#undef ROUND_TRIP
}

static void zero_is_ok(void **state) {
	(void)state;
	assert_string_equal(pawl_error_code(0), "ok");
	assert_int_equal(pawl_error_from_code("ok"), 0);
}

static void numbers_and_codes_that_are_none_have_an_answer(void **state) {
	(void)state;
	assert_string_equal(pawl_error_code(-9999), "unknown");
	assert_string_equal(pawl_error_code(1), "unknown");
	assert_non_null(pawl_error_message(-9999));
	assert_int_equal(pawl_error_from_code("no such code"), PAWL_EPROTOCOL);
	assert_int_equal(pawl_error_from_code(""), PAWL_EPROTOCOL);
}

UNIT(base_error) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_leads_back_to_its_number),
		cmocka_unit_test(zero_is_ok),
		cmocka_unit_test(numbers_and_codes_that_are_none_have_an_answer),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
