/* The file with the rules. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pawl/error.h"
#include "rights.h"

static bool nobody(const char *name, uint32_t *out) {
	(void)name;
	(void)out;
	return false;
}

static const struct rights_accounts no_accounts = { nobody, nobody };

static int parse(const char *text, struct rights **out, struct problem *problem) {
	return rights_parse(slice_str(text), "f", &no_accounts, out, problem);
}

static void every_problem_names_line_culprit_and_remedy(void **state) {
	(void)state;
	static const struct {
		const char *text, *where, *what, *remedy;
	} rows[] = {
		{ "allow = read on *\n", "f:1:", "before the first section", "[billing]" },
		{ "[x]\nread = *\n", "f:2:", "unknown setting read",
			"the settings are allow, deny" },
		{ "[x]\nallow = read\n", "f:2:", "on which keys?", "on *" },
		{ "[x]\nallow = read on\n", "f:2:", "a prefix is missing", "* for every key" },
		{ "[x]\nallow = reed on a/\n", "f:2:", "'reed' is not a right",
			"the rights are read" },
		{ "[x]\ndeny = read a/\n", "f:2:", "'read a/' is not a right",
			"deny = read, acquire on PREFIX" },
		{ "[x]\nallow = read, on a/\n", "f:2:", "'' is not a right",
			"the rights are read" },
		{ "[x]\nallow = read on a*\n", "f:2:", "has no *", "begins with it" },
		{ "[x]\nallow = read, cluster on a/\n", "f:2:", "do not concern keys",
			"a line of their own" },
		{ "[x]\nallow = priority ten on a/\n", "f:2:", "priority ten",
			"such as priority 10" },
		{ "[x]\nallow = priority -1 on a/\n", "f:2:", "priority -1", "0 to 2147483647" },
		{ "[x]\nallow = priority 2147483648 on a/\n", "f:2:", "priority 2147483648",
			"0 to 2147483647" },
		{ "[x]\ndeny = priority 3 on a/\n", "f:2:", "takes no number",
			"allow = priority 3" },
		{ "[x]\nmembers = y\n", "f:2:", "members belong to a group", "[group:NAME]" },
		{ "[group:g]\nallow = read on *\n", "f:1:", "[group:g] has no members",
			"members = NAME" },
		{ "[group:]\nmembers = x\n", "f:1:", "a group without a name", "[group:NAME]" },
		{ "[group:g]\nmembers = x y\n", "f:2:", "members", "commas" },
		{ "[group:g]\nmembers = x,\n", "f:2:", "members", "commas" },
		{ "[group:g]\nmembers = group:h\n", "f:2:", "group:h cannot be a member",
			"the names themselves" },
		{ "[group:g]\nmembers = everybody\n", "f:2:", "everybody cannot be a member",
			"the names themselves" },
		{ "[unix:root]\nallow = all on *\n", "f:1:", "unix:root", "unix:uid:NUMBER" },
		{ "[unix:uid:-1]\nallow = all on *\n", "f:1:", "unix:uid:-1", "unix:uid:NUMBER" },
		{ "[unix:gid:4294967296]\nallow = all on *\n", "f:1:", "unix:gid:4294967296",
			"unix:gid:NUMBER" },
		{ "[unix:user:]\nallow = all on *\n", "f:1:", "unix:user:", "unix:user:NAME" },
		{ "[x]\nlocks = many\n", "f:2:", "locks = many", "a number from 1" },
		{ "[x]\nlocks = 1000000001\n", "f:2:", "locks = 1000000001", "0 for no limit" },
		{ "[x]\nlocks = 1k\n", "f:2:", "locks = 1k", "a number from 1" },
		{ "[x]\nvalue_bytes = 16385g\n", "f:2:", "value_bytes = 16385g", "16384g" },
		{ "[x]\nvalue_bytes = 1kb\n", "f:2:", "value_bytes = 1kb", "such as 64m" },
		{ "[x]\nvalue_bytes = k\n", "f:2:", "value_bytes = k", "such as 64m" },
		{ "[x]\nwaits = 1\nwaits = 2\n", "f:3:",
			"waits is given twice in this section", "remove one of them" },
		{ "waits = 1\n", "f:1:", "before the first section", "[billing]" },
		{ "[x]\nallow = read on *\n\n[x]\n", "f:4:",
			"section [x] is given twice", "to the first one, on line 1" },
		{ "[x]\nallow = read on * # all\n", "f:2:", "a comment after a value",
			"line of its own" },
		{ "[x\n", "f:1:", "a section without its closing ]", "[section]" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct rights *r = NULL;
		struct problem problem = { "" };
		assert_int_equal(parse(rows[i].text, &r, &problem), PAWL_EINVAL);
		assert_null(r);
		if (strncmp(problem.text, rows[i].where, strlen(rows[i].where)) != 0 ||
			!strstr(problem.text, rows[i].what) ||
			!strstr(problem.text, rows[i].remedy)) {
			fail_msg("%s gives: %s", rows[i].text, problem.text);
		}
	}
}

static void a_file_has_room_for_many_rules_and_an_end(void **state) {
	(void)state;
	char *text = malloc(1 << 20);
	struct rights *r = NULL;
	struct problem problem = { "" };
	size_t size = (size_t)snprintf(text, 8, "[x]\n");
	for (int i = 0; i < RIGHTS_RULES_MAX; i++) {
		size += (size_t)snprintf(text + size, 64, "allow = read on k%d/\n", i);
	}
	assert_int_equal(rights_parse(slice_of(text, size), "f", &no_accounts, &r, &problem), 0);
	const struct rights_caller x = { .identity = slice_str("x") };
	const struct rights_question last = { .right = RIGHT_READ, .key = slice_str("k4095/1") };
	assert_int_equal(rights_judge(r, &x, &last).line, RIGHTS_RULES_MAX + 1);
	rights_free(r);
	size += (size_t)snprintf(text + size, 64, "allow = read on z\n");
	assert_int_equal(rights_parse(slice_of(text, size), "f", &no_accounts, &r, &problem),
		PAWL_EINVAL);
	assert_non_null(strstr(problem.text, "more than 4096 rules"));
	free(text);
}

static void the_digest_is_that_of_the_bytes(void **state) {
	(void)state;
	static const uint8_t of_nothing[] = { 0xe3, 0xb0, 0xc4, 0x42 };
	uint8_t one[RIGHTS_DIGEST_BYTES], other[RIGHTS_DIGEST_BYTES];
	struct rights *r = NULL;
	struct problem problem = { "" };
	assert_int_equal(parse("", &r, &problem), 0);
	rights_digest(r, one);
	assert_memory_equal(one, of_nothing, sizeof of_nothing);
	rights_free(r);
	assert_int_equal(parse("# x\n", &r, &problem), 0);
	rights_digest(r, other);
	assert_memory_not_equal(one, other, sizeof one);
	rights_free(r);
}

static void what_is_probably_not_meant_is_told(void **state) {
	(void)state;
	struct rights *r = NULL;
	struct problem problem = { "" }, warning = { "" };
	assert_int_equal(parse("[unix:user:gone]\nallow = all on *\n[x]\nallow = all on a/\n", &r,
		&problem), 0);
	assert_true(rights_warning(r, 0, &warning));
	assert_non_null(strstr(warning.text, "nobody has the right 'cluster'"));
	assert_true(rights_warning(r, 1, &warning));
	assert_non_null(strstr(warning.text, "f:1: this machine has no unix:user:gone"));
	assert_false(rights_warning(r, 2, &warning));
	rights_free(r);
	assert_int_equal(parse("[group:ops]\nmembers = x\nallow = cluster\n", &r, &problem), 0);
	assert_false(rights_warning(r, 0, &warning));
	rights_free(r);
}

static void a_file_that_everybody_may_change_is_refused(void **state) {
	(void)state;
	char path[] = "/tmp/pawl-rights-XXXXXX";
	struct rights *r = NULL;
	struct problem problem = { "" };
	int fd = mkstemp(path);
	assert_true(fd >= 0 && write(fd, "[x]\n", 4) == 4);
	assert_int_equal(fchmod(fd, 0646), 0);
	assert_int_equal(rights_read(path, &r, &problem), PAWL_EINVAL);
	assert_non_null(strstr(problem.text, "chmod o-w /tmp/pawl-rights-"));
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(rights_read(path, &r, &problem), 0);
	assert_string_equal(rights_file(r), path);
	rights_free(r);
	close(fd);
	unlink(path);
	assert_int_equal(rights_read(path, &r, &problem), PAWL_EIO);
	assert_non_null(strstr(problem.text, "cannot be opened"));
}

static void some_names_no_certificate_may_have(void **state) {
	(void)state;
	static const char *const reserved[] = { "plain", "anonymous", "everybody", "group:x",
		"unix:uid:0", "unix:" };
	static const char *const good[] = { "alice", "plainer", "group", "unix", "node:a", "" };
	for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++) {
		assert_true(rights_name_reserved(slice_str(reserved[i])));
		assert_false(rights_name_reserved(slice_str(good[i])));
	}
}

UNIT(rights_file) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_problem_names_line_culprit_and_remedy),
		cmocka_unit_test(a_file_has_room_for_many_rules_and_an_end),
		cmocka_unit_test(the_digest_is_that_of_the_bytes),
		cmocka_unit_test(what_is_probably_not_meant_is_told),
		cmocka_unit_test(a_file_that_everybody_may_change_is_refused),
		cmocka_unit_test(some_names_no_certificate_may_have),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
