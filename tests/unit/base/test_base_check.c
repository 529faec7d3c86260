/* Assertions that stay on. */
#include "unit.h"

#include <string.h>

#include "alloc.h"
#include "check.h"
#include "map.h"

static jmp_buf escape;
static char seen_expr[64];
static int seen_line;

static void hook(const char *file, int line, const char *expr) {
	assert_non_null(strstr(file, ".c"));
	seen_line = line;
	memcpy(seen_expr, expr, strlen(expr) < sizeof(seen_expr) ? strlen(expr) + 1 : 0);
	longjmp(escape, 1);
}

static int setup(void **state) {
	(void)state;
	seen_expr[0] = '\0';
	seen_line = 0;
	check_hook_set(hook);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	check_hook_set(NULL);
	return 0;
}

static void a_check_that_holds_does_nothing(void **state) {
	(void)state;
	int evaluated = 0;
	if (setjmp(escape) == 0) {
		CHECK(++evaluated == 1);
		assert_int_equal(evaluated, 1);
		return;
	}
	fail();
}

static void a_failed_check_tells_the_hook_where_and_what(void **state) {
	(void)state;
	if (setjmp(escape) == 0) {
		CHECK(1 + 1 == 3);
		fail();
	}
	assert_string_equal(seen_expr, "1 + 1 == 3");
	assert_true(seen_line > 0);
}

static void removing_from_a_map_what_is_not_in_it_is_a_bug(void **state) {
	(void)state;
	struct allocator alloc = alloc_libc(NULL);
	struct map map;
	assert_int_equal(map_init(&map, &alloc), 0);
	static struct map_node stranger;
	if (setjmp(escape) == 0) {
		map_remove(&map, &stranger);
		fail();
	}
	map_done(&map);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT(base_check) {
	const struct CMUnitTest tests[] = {
		TEST(a_check_that_holds_does_nothing),
		TEST(a_failed_check_tells_the_hook_where_and_what),
		TEST(removing_from_a_map_what_is_not_in_it_is_a_bug),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
