/* test_redis_script.c: scripts are recognized by what they mean, and not by how they look. The
 * scripts here are written for this test. */
#include "unit.h"

#include "pawl/error.h"
#include "script.h"

static const struct allocator *alloc(void) {
	static struct allocator one;
	one = alloc_libc(NULL);
	return &one;
}

static void assert_form(const char *script, const char *expected) {
	struct buffer out;
	buffer_init(&out, alloc(), 1 << 16);
	assert_int_equal(script_form(slice_str(script), alloc(), &out), 0);
	assert_int_equal(buffer_append(&out, "", 1), 0);
	assert_string_equal((const char *)out.data, expected);
	buffer_done(&out);
}

static void test_the_look_does_not_matter(void **state) {
	static const char form[] = "return redis . call ( \"get\" , KEYS [ 1 ] )";
	(void)state;
	assert_form("return redis.call('GET',KEYS[1])", form);
	assert_form("\xef\xbb\xbfreturn\r\n redis.call( \"Get\", KEYS[1] );", form);
	assert_form("-- a comment\nreturn (redis.call([[get]], (KEYS[1])))--[[ more\n ]]", form);
}

static void test_only_words_in_calls_are_in_lower_case(void **state) {
	(void)state;
	assert_form("if ARGV[1] == 'YES' then redis.pcall('DEL', 'A-1') end",
		"if ARGV [ 1 ] == \"YES\" then redis . pcall ( \"del\" , \"A-1\" ) end");
}

static void test_local_names_are_numbered(void **state) {
	(void)state;
	assert_form("local a, b = 1, 2 for i, k in ipairs(KEYS) do x(a, b, k, t.a) end",
		"local v1 , v2 = 1 , 2 for v3 , v4 in ipairs ( KEYS ) do "
		"x ( v1 , v2 , v4 , t . a ) end");
	assert_form("local function f(q) return q end return f(1)",
		"local function v1 ( v2 ) return v2 end return v1 ( 1 )");
}

static void test_parentheses_that_matter_stay(void **state) {
	(void)state;
	assert_form("if (a or b) and c then return (1 + 2) * 3 end",
		"if ( a or b ) and c then return ( 1 + 2 ) * 3 end");
	assert_form("if ((a == b)) then return (((1))) end f((a or b), (c))",
		"if a == b then return 1 end f ( a or b , c )");
	assert_form("f()", "f ( )");
}

static void test_a_last_return_is_an_else(void **state) {
	static const char form[] = "if a then return 1 else return 0 end";
	(void)state;
	assert_form("if a then return 1 end return 0", form);
	assert_form(form, form);
	assert_form("if a then b() end return 0", "if a then b ( ) end return 0");
	assert_form("if a then return 1 elseif b then return 2 end return 0",
		"if a then return 1 elseif b then return 2 end return 0");
	assert_form("for i in x do return 1 end return 0", "for v1 in x do return 1 end return 0");
}

static void test_what_is_no_script_is_refused(void **state) {
	static char text[SCRIPT_BYTES_MAX + 1];
	struct buffer out;
	(void)state;
	buffer_init(&out, alloc(), 1 << 16);
	assert_int_equal(script_form(slice_str(""), alloc(), &out), PAWL_EINVAL);
	assert_int_equal(script_form(slice_str("return 'a"), alloc(), &out), PAWL_EINVAL);
	assert_int_equal(script_form(slice_str("return \"a\\\""), alloc(), &out), PAWL_EINVAL);
	assert_int_equal(script_form(slice_str("--[[ without an end"), alloc(), &out), PAWL_EINVAL);
	memset(text, '+', sizeof text);
	assert_int_equal(script_form(slice_of(text, sizeof text), alloc(), &out), PAWL_ETOOLARGE);
	assert_int_equal(script_form(slice_of(text, 4096), alloc(), &out), PAWL_ETOOLARGE);
	memset(text, '(', sizeof text);
	assert_int_equal(script_form(slice_of(text, 64), alloc(), &out), 0);
	assert_int_equal(script_form(slice_of(text, 65), alloc(), &out), PAWL_ETOOLARGE);
	assert_int_equal(script_form(slice_str("((((a"), alloc(), &out), 0);
	buffer_done(&out);
}

static void test_known_scripts(void **state) {
	static const struct {
		const char *script;
		enum script_kind kind;
	} known[] = {
		{ "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) "
			"end return 0", SCRIPT_RELEASE },
		{ "if (redis.call(\"get\", KEYS[1]) == ARGV[1]) then\n"
			"return redis.call(\"pexpire\", KEYS[1], ARGV[2])\nelse return 0 end",
			SCRIPT_RENEW },
		{ "return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]) }",
			SCRIPT_READ },
	};
	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		const struct script_meaning *found = script_find(slice_str(known[i].script),
			alloc());
		assert_non_null(found);
		assert_int_equal(found->kind, known[i].kind);
	}
	assert_null(script_find(slice_str("return redis.call('get', KEYS[2])"), alloc()));
}

static void test_a_learned_script_is_found_until_others_take_its_place(void **state) {
	static struct scripts scripts;
	const struct script_meaning *meaning = script_find(
		slice_str("return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]) }"),
		alloc());
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 };
	(void)state;
	assert_null(scripts_find(&scripts, sha1));
	for (unsigned i = 0; i < SCRIPTS_LEARNED_MAX; i++) {
		sha1[0] = (uint8_t)i;
		scripts_learn(&scripts, sha1, meaning);
		scripts_learn(&scripts, sha1, meaning);
	}
	sha1[0] = 0;
	assert_ptr_equal(scripts_find(&scripts, sha1), meaning);
	sha1[1] = 1;
	scripts_learn(&scripts, sha1, meaning);
	assert_ptr_equal(scripts_find(&scripts, sha1), meaning);
	sha1[1] = 0;
	assert_null(scripts_find(&scripts, sha1));
}

static void test_digests(void **state) {
	uint8_t sha1[SCRIPT_SHA1_BYTES], again[SCRIPT_SHA1_BYTES];
	char text[2 * SCRIPT_SHA1_BYTES + 1];
	(void)state;
	script_sha1(slice_str("abc"), sha1);
	script_sha1_print(sha1, text);
	assert_string_equal(text, "a9993e364706816aba3e25717850c26c9cd0d89d");
	assert_true(script_sha1_parse(slice_str("A9993E364706816ABA3E25717850C26C9CD0D89D"),
		again));
	assert_memory_equal(sha1, again, sizeof sha1);
	assert_false(script_sha1_parse(slice_str("a9993e"), again));
	assert_false(script_sha1_parse(slice_str("g9993e364706816aba3e25717850c26c9cd0d89d"),
		again));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_look_does_not_matter),
		cmocka_unit_test(test_only_words_in_calls_are_in_lower_case),
		cmocka_unit_test(test_local_names_are_numbered),
		cmocka_unit_test(test_parentheses_that_matter_stay),
		cmocka_unit_test(test_a_last_return_is_an_else),
		cmocka_unit_test(test_what_is_no_script_is_refused),
		cmocka_unit_test(test_known_scripts),
		cmocka_unit_test(test_a_learned_script_is_found_until_others_take_its_place),
		cmocka_unit_test(test_digests),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
