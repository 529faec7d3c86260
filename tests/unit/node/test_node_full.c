/* These tests show how the name of who has filled a limit is shown to people. */
#include "unit.h"

#include <string.h>

#include "full.h"
#include "json_text.h"

static const char *whose(const char *name, const char *from, char out[FULL_WHOSE_BYTES]) {
	full_whose((const uint8_t *)name, strlen(name), from, out);
	return out;
}

static void a_name_is_shown_with_where_it_comes_from(void **state) {
	(void)state;
	char out[FULL_WHOSE_BYTES];
	assert_string_equal(whose("billing", "10.0.0.1:5", out), "billing from 10.0.0.1:5");
	assert_string_equal(whose("", "10.0.0.1:5", out), "10.0.0.1:5");
	assert_string_equal(whose("caf\xc3\xa9", NULL, out), "caf\xc3\xa9");
	full_whose(NULL, 0, NULL, out);
	assert_string_equal(out, "");
}

static void no_name_can_write_on_a_terminal(void **state) {
	(void)state;
	char out[FULL_WHOSE_BYTES];
	assert_string_equal(whose("a\x1b[2J\n\x7f", NULL, out), "a?[2J??");
	assert_string_equal(whose("\xff\xc3", NULL, out), "??");
	full_whose((const uint8_t *)"a\0b", 3, NULL, out);
	assert_string_equal(out, "a?b");
}

static void a_long_name_is_cut_off_between_characters(void **state) {
	(void)state;
	char out[FULL_WHOSE_BYTES], name[513], from[320];
	for (size_t i = 0; i < 256; i++) {
		memcpy(name + 1 + 2 * i, "\xc3\xa9", 2);
	}
	name[0] = 'a';
	memset(from, 'f', sizeof from - 1);
	from[sizeof from - 1] = '\0';
	full_whose((const uint8_t *)name, sizeof name, from, out);
	assert_true(json_text_valid(slice_str(out)) && !strchr(out, '?'));
	/* All of the address is there. */
	assert_non_null(strstr(out, from));
}

UNIT(node_full) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_shown_with_where_it_comes_from),
		cmocka_unit_test(no_name_can_write_on_a_terminal),
		cmocka_unit_test(a_long_name_is_cut_off_between_characters),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
