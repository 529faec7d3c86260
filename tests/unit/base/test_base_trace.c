/* These tests are about what is a traceparent. */
#include "unit.h"

#include "trace.h"

#define RIGHT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

static void a_traceparent_is_one(void **state) {
	(void)state;
	assert_true(trace_valid(slice_str(RIGHT)));
	/* Versions to come begin in the same way. */
	assert_true(trace_valid(
		slice_str("fe-ffffffffffffffffffffffffffffffff-000000000000000f-ff")));
}

static void everything_else_is_none(void **state) {
	static const char *const wrong[] = { "", "00", RIGHT "0",
		"ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0AF7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
		"00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331-01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331_01",
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0" };
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(trace_valid(slice_str(wrong[i])));
	}
}

UNIT(base_trace) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_traceparent_is_one),
		cmocka_unit_test(everything_else_is_none),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
