/* test_redis_glob.c: the patterns of KEYS. */
#include "unit.h"

#include "redis_impl.h"

static void test_patterns_are_those_of_redis(void **state) {
	static const struct {
		const char *pattern, *text;
		bool fits;
	} cases[] = {
		{ "", "", true }, { "", "a", false }, { "*", "", true }, { "*", "abc", true },
		{ "a", "a", true }, { "a", "b", false }, { "a", "ab", false },
		{ "a*c", "abbbc", true }, { "a*c", "abbb", false }, { "a**c", "ac", true },
		{ "*b*d", "abcbd", true }, { "?", "a", true }, { "?", "", false },
		{ "[abc]", "b", true }, { "[abc]", "d", false }, { "[a-c]x", "bx", true },
		{ "[c-a]", "b", true }, { "[^a-c]", "b", false }, { "[^a-c]", "d", true },
		{ "[a", "a", true }, { "[", "a", false }, { "[a\\-c]", "-", true },
		{ "[a\\]b]", "]", true }, { "\\*", "*", true }, { "\\*", "a", false },
		{ "a\\", "a\\", true }, { "db[0-9]:*", "db1:k", true },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		if (redis_glob(slice_str(cases[i].pattern), slice_str(cases[i].text))
			!= cases[i].fits) {
			fail_msg("%s and %s", cases[i].pattern, cases[i].text);
		}
	}
}

/* A matcher that tries every way would not come to an end. */
static void test_many_stars_take_no_time(void **state) {
	static char pattern[2048], text[512];
	(void)state;
	for (size_t i = 0; i < sizeof pattern; i += 2) {
		memcpy(pattern + i, "*a", 2);
	}
	memset(text, 'a', sizeof text);
	assert_false(redis_glob(slice_of(pattern, sizeof pattern), slice_of(text, sizeof text)));
	assert_false(redis_glob(slice_str("*a*a*a*a*a*a*a*a*a*b"), slice_of(text, sizeof text)));
}

UNIT(redis_glob) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns_are_those_of_redis),
		cmocka_unit_test(test_many_stars_take_no_time),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
