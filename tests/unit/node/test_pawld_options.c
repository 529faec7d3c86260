/* The command line of pawld. */
#include "unit.h"

#include <string.h>

#include "pawl/error.h"
#include "pawld_options.h"

static int parse(const char *words, struct pawld_options *out, struct problem *problem) {
	static char text[256], *argv[16];
	int argc = 0;
	char *rest = NULL;
	argv[argc++] = text;
	memcpy(text, "pawld", 6);
	memcpy(text + 6, words, strlen(words) + 1);
	for (char *word = strtok_r(text + 6, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		argv[argc++] = word;
	}
	argv[argc] = NULL;
	return pawld_options_parse(argc, argv, out, problem);
}

static void each_way_to_start_is_understood(void **state) {
	(void)state;
	struct pawld_options o;
	struct problem problem;
	assert_int_equal(parse("--config f", &o, &problem), 0);
	assert_int_equal(o.mode, PAWLD_RUN);
	assert_string_equal(o.config, "f");
	assert_int_equal(parse("--dev --listen 127.0.0.1:0", &o, &problem), 0);
	assert_int_equal(o.mode, PAWLD_DEV);
	assert_string_equal(o.listen, "127.0.0.1:0");
	assert_false(o.insecure);
	assert_int_equal(parse("--dev --listen 0.0.0.0:0 --insecure", &o, &problem), 0);
	assert_true(o.insecure);
	assert_int_equal(parse("--check-config", &o, &problem), 0);
	assert_string_equal(o.config, PAWLD_CONFIG_DEFAULT);
	assert_int_equal(parse("--check-config f", &o, &problem), 0);
	assert_int_equal(o.mode, PAWLD_CHECK);
	assert_string_equal(o.config, "f");
	assert_int_equal(parse("--config f --check-config", &o, &problem), 0);
	assert_int_equal(o.mode, PAWLD_CHECK);
	assert_int_equal(parse("--version", &o, &problem), 0);
	assert_int_equal(o.mode, PAWLD_VERSION);
	assert_int_equal(parse("-h", &o, &problem), 0);
	assert_int_equal(o.mode, PAWLD_HELP);
}

static void what_does_not_fit_is_named(void **state) {
	(void)state;
	static const struct {
		const char *words, *says;
	} rows[] = {
		{ "", "give --config FILE, or --dev" },
		{ "--config", "--config needs a value" },
		{ "--frobnicate", "unknown option --frobnicate" },
		{ "--dev --config f", "cannot be combined with" },
		{ "--config f --listen x", "--listen needs --dev" },
		{ "--config f --insecure", "--insecure needs --dev" },
		{ "--config f g", "unexpected argument g" },
		{ "--config f -c g", "--config is given twice" },
		{ "--dev --listen x --listen y", "--listen is given twice" },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct pawld_options o;
		struct problem problem = { "" };
		assert_int_equal(parse(rows[i].words, &o, &problem), PAWL_EINVAL);
		if (!strstr(problem.text, rows[i].says) || !strstr(problem.text, "--help")) {
			fail_msg("%s: %s", rows[i].words, problem.text);
		}
	}
}

UNIT(pawld_options) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_to_start_is_understood),
		cmocka_unit_test(what_does_not_fit_is_named),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
