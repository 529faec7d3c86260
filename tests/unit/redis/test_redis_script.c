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

static const struct script_mappings none;

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
			&none, alloc());
		assert_non_null(found);
		assert_int_equal(found->kind, known[i].kind);
	}
	assert_null(script_find(slice_str("return redis.call('get', KEYS[2])"), &none, alloc()));
}

static struct script_mapping mapped(const char *meaning) {
	struct script_mapping mapping;
	const char *wrong = script_mapping_read("00112233445566778899aabbccddeeff00112233", meaning,
		&mapping);
	if (wrong) {
		fail_msg("%s: %s", meaning, wrong);
	}
	return mapping;
}

static void test_the_operator_says_what_a_script_means(void **state) {
	struct script_mapping m = mapped("release value=2 keys=any answer=count held=-2 free=nil");
	(void)state;
	assert_int_equal(m.sha1[1], 0x11);
	assert_int_equal(m.meaning.kind, SCRIPT_RELEASE);
	assert_int_equal(m.meaning.keys, SCRIPT_ANY_KEYS);
	assert_int_equal(m.meaning.value, 2);
	assert_int_equal(m.meaning.answer, SCRIPT_SAYS_COUNT);
	assert_int_equal(m.meaning.other, -2);
	assert_int_equal(m.meaning.gone, SCRIPT_NIL);
	m = mapped("renew\tvalue=1  length=3 unit=s database=2");
	assert_int_equal(m.meaning.kind, SCRIPT_RENEW);
	assert_int_equal(m.meaning.keys, 1);
	assert_int_equal(m.meaning.length, 3);
	assert_int_equal(m.meaning.database, 2);
	assert_true(m.meaning.seconds);
	assert_int_equal(mapped("add value=1 length=2").meaning.kind, SCRIPT_ADD);
	assert_int_equal(mapped("take value=1").meaning.length, 0);
	assert_int_equal(mapped("read").meaning.kind, SCRIPT_READ);
}

static void test_a_wrong_meaning_is_refused_with_a_reason(void **state) {
	static const struct {
		const char *sha1, *meaning, *why;
	} wrong[] = {
		{ "12", "read", "40 hex digits" },
		{ NULL, "", "begin with take" },
		{ NULL, "steal value=1", "begin with take" },
		{ NULL, "release", "value= is missing" },
		{ NULL, "read value=1", "leave out value=" },
		{ NULL, "release value=0", "from 1 on" },
		{ NULL, "release value=1 value=2", "each given once" },
		{ NULL, "release value=1 length=2", "no length" },
		{ NULL, "renew value=1", "length= is missing" },
		{ NULL, "renew value=1 length=2 flag=3", "have a flag" },
		{ NULL, "add-or-renew value=1 length=2", "flag= is missing" },
		{ NULL, "release value=1 keys=65", "from 1 to 64" },
		{ NULL, "release value=1 keys=1x", "from 1 to 64" },
		{ NULL, "release value=1 held=100", "-99 to 99" },
		{ NULL, "release value=1 answer=two", "one, count or ok" },
		{ NULL, "renew value=1 length=2 unit=h", "ms or s" },
		{ NULL, "release value=1 what=1", "after the meaning" },
		{ NULL, "release value", "after the meaning" },
		{ NULL, "read keys=2", "have one key" },
		{ NULL, "left-if-mine value=1 keys=any", "have one key" },
		{ NULL, "renew-or-take value=1 length=2 keys=any", "have one key" },
	};
	struct script_mapping m = { .meaning.kind = SCRIPT_READ };
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		const char *why = script_mapping_read(wrong[i].sha1 ? wrong[i].sha1
			: "00112233445566778899aabbccddeeff00112233", wrong[i].meaning, &m);
		assert_non_null(why);
		assert_non_null(strstr(why, wrong[i].why));
	}
	assert_int_equal(m.meaning.kind, SCRIPT_READ);
}

static void test_a_mapping_names_bytes_or_a_normal_form(void **state) {
	static const char script[] = "return redis.call('get', KEYS[2])";
	static struct script_account account;
	static struct scripts scripts;
	struct script_mappings mappings = { .count = 1 };
	(void)state;
	assert_int_equal(script_describe(script, sizeof script - 1, &account), 0);
	assert_null(script_mapping_read(account.form_sha1, "read", &mappings.list[0]));
	const struct script_meaning *found = script_find(slice_str("return redis.call(\"GET\", "
		"KEYS[2]) -- the same"), &mappings, alloc());
	assert_ptr_equal(found, &mappings.list[0].meaning);
	assert_null(script_mapping_read(account.sha1, "read", &mappings.list[0]));
	scripts_map(&scripts, &mappings);
	assert_non_null(scripts_find(&scripts, mappings.list[0].sha1));
	scripts_map(&scripts, &none);
	assert_null(scripts_find(&scripts, mappings.list[0].sha1));
}

static void test_a_learned_script_is_found_until_others_take_its_place(void **state) {
	static struct scripts scripts;
	const struct script_meaning *meaning = script_find(
		slice_str("return { redis.call('get', KEYS[1]), redis.call('pttl', KEYS[1]) }"),
		&none, alloc());
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

/* These are redis-py's and redlock's releases, and the renewal of redis-semaphore. */
static void test_what_a_library_sends_is_found_by_its_digest(void **state) {
	static const struct {
		const char *sha1;
		enum script_kind kind;
		uint8_t keys;
	} known[] = {
		{ "c3f8721cbb97f72bc19e972846bd7aaf91901658", SCRIPT_RELEASE, 1 },
		{ "0f0f23b9048b36752b5be114f357ba083449f908", SCRIPT_RELEASE, SCRIPT_ANY_KEYS },
		{ "e4612211c9f8f51c257e26e056b0a654b3187242", SCRIPT_RELEASE, SCRIPT_ANY_KEYS },
		{ "594683e49a64ebaf975caf5f8079a1d097c438f1", SCRIPT_RENEW, 1 },
	};
	static struct scripts scripts;
	uint8_t sha1[SCRIPT_SHA1_BYTES];
	(void)state;
	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
		assert_true(script_sha1_parse(slice_str(known[i].sha1), sha1));
		const struct script_meaning *found = scripts_find(&scripts, sha1);
		assert_non_null(found);
		assert_int_equal(found->kind, known[i].kind);
		assert_int_equal(found->keys, known[i].keys);
	}
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

UNIT(redis_script) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_look_does_not_matter),
		cmocka_unit_test(test_only_words_in_calls_are_in_lower_case),
		cmocka_unit_test(test_local_names_are_numbered),
		cmocka_unit_test(test_parentheses_that_matter_stay),
		cmocka_unit_test(test_a_last_return_is_an_else),
		cmocka_unit_test(test_what_is_no_script_is_refused),
		cmocka_unit_test(test_known_scripts),
		cmocka_unit_test(test_the_operator_says_what_a_script_means),
		cmocka_unit_test(test_a_wrong_meaning_is_refused_with_a_reason),
		cmocka_unit_test(test_a_mapping_names_bytes_or_a_normal_form),
		cmocka_unit_test(test_a_learned_script_is_found_until_others_take_its_place),
		cmocka_unit_test(test_what_a_library_sends_is_found_by_its_digest),
		cmocka_unit_test(test_digests),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
