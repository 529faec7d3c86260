/* test_memcached_text.c: where a command of memcached ends, what its words are, and which bytes are
 * no command. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "mctext.h"

static enum mctext_read read_text(const char *text, size_t size, struct mctext_command *out,
	size_t *out_size) {
	static char bytes[4096];
	const char *why = NULL;
	assert_true(size <= sizeof bytes);
	memcpy(bytes, text, size);
	enum mctext_read read = mctext_read(slice_of(bytes, size), out, out_size, &why);
	assert_int_equal(read == MCTEXT_WRONG, why != NULL);
	return read;
}

static void test_a_command_is_read_once_it_is_whole(void **state) {
	static const char *const whole[] = { "get a b\r\n", "get a b\n", "add k 0 5 2\r\nv\n\r\n",
		"ms k 3 T5\r\n\0x\r\r\n" };
	static const size_t sizes[] = { 9, 8, 17, 16 };
	(void)state;
	for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
		struct mctext_command c;
		size_t size = 0;
		for (size_t part = 0; part < sizes[i]; part++) {
			assert_int_equal(read_text(whole[i], part, &c, &size), MCTEXT_MORE);
		}
		assert_int_equal(read_text(whole[i], sizes[i], &c, &size), MCTEXT_COMPLETE);
		assert_int_equal(size, sizes[i]);
	}
}

static void test_words_and_data(void **state) {
	struct mctext_command c;
	size_t size;
	(void)state;
	assert_int_equal(read_text("cas  k 1 2 4 77 \r\na\r\nb\r\nget", 26, &c, &size),
		MCTEXT_COMPLETE);
	assert_int_equal(size, 24);
	assert_int_equal(c.count, 6);
	assert_true(mctext_is(c.words[1], "k"));
	assert_true(mctext_is(c.words[5], "77"));
	assert_true(slice_equal(c.data, slice_str("a\r\nb")));
	assert_int_equal(read_text("\r\n", 2, &c, &size), MCTEXT_COMPLETE);
	assert_int_equal(c.count, 0);
	assert_int_equal(read_text("get a HTTP/1.1\r\n", 16, &c, &size), MCTEXT_COMPLETE);
}

static void test_no_length_of_data_is_guessed(void **state) {
	static const char *const wrong[] = { "add k 0 5\r\n", "set k 0 5 x\r\n", "set k 0 5 -1\r\n",
		"ms k\r\n", "ms k S1\r\n", "set k 0 5 1\r\nab\r\n", "set k 0 5 1048577\r\n",
		"set k 0 5 18446744073709551615\r\n", "set k 0 5 18446744073709551616\r\n",
		"\x80?", "\x16\x03", "POST / HTTP/1.1\r\n" };
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct mctext_command c;
		size_t size;
		assert_int_equal(read_text(wrong[i], strlen(wrong[i]), &c, &size), MCTEXT_WRONG);
	}
}

static void test_lines_and_words_have_a_limit(void **state) {
	char *line = malloc(MCTEXT_LINE_BYTES_MAX + 1);
	struct mctext_command c;
	size_t size;
	const char *why = NULL;
	(void)state;
	assert_non_null(line);
	memset(line, 'x', MCTEXT_LINE_BYTES_MAX + 1);
	assert_int_equal(mctext_read(slice_of(line, MCTEXT_LINE_BYTES_MAX - 1), &c, &size, &why),
		MCTEXT_MORE);
	assert_int_equal(mctext_read(slice_of(line, MCTEXT_LINE_BYTES_MAX), &c, &size, &why),
		MCTEXT_WRONG);
	line[MCTEXT_LINE_BYTES_MAX - 1] = '\n';
	assert_int_equal(mctext_read(slice_of(line, MCTEXT_LINE_BYTES_MAX), &c, &size, &why),
		MCTEXT_COMPLETE);
	for (size_t i = 0; i < MCTEXT_WORDS_MAX + 1; i++) {
		memcpy(line + 2 * i, "x ", 2);
	}
	line[2 * MCTEXT_WORDS_MAX - 1] = '\n';
	assert_int_equal(mctext_read(slice_of(line, MCTEXT_LINE_BYTES_MAX), &c, &size, &why),
		MCTEXT_COMPLETE);
	assert_int_equal(c.count, MCTEXT_WORDS_MAX);
	assert_false(c.more);
	line[2 * MCTEXT_WORDS_MAX - 1] = ' ';
	assert_int_equal(mctext_read(slice_of(line, MCTEXT_LINE_BYTES_MAX), &c, &size, &why),
		MCTEXT_COMPLETE);
	assert_true(c.more);
	free(line);
}

static void test_numbers(void **state) {
	int64_t number;
	uint64_t large;
	(void)state;
	assert_true(mctext_number(slice_str("-12"), &number));
	assert_int_equal(number, -12);
	assert_false(mctext_number(slice_str("-"), &number));
	assert_false(mctext_number(slice_str("1000000000000000000"), &number));
	assert_true(mctext_unsigned(slice_str("18446744073709551615"), &large));
	assert_true(large == UINT64_MAX);
	assert_false(mctext_unsigned(slice_str("18446744073709551616"), &large));
	assert_false(mctext_unsigned(slice_str(""), &large));
	assert_false(mctext_unsigned(slice_str("+1"), &large));
}

static void test_an_error_is_one_line(void **state) {
	const struct allocator alloc = alloc_libc(NULL);
	struct buffer out;
	struct mctext_writer w = { .out = &out };
	(void)state;
	buffer_init(&out, &alloc, 64);
	mctext_error(&w, "SERVER_ERROR", slice_str("a\r\nSTORED"));
	assert_true(slice_equal(buffer_slice(&out), slice_str("SERVER_ERROR a  STORED\r\n")));
	for (int i = 0; i < 8; i++) {
		mctext_line(&w, "STORED");
	}
	assert_int_not_equal(w.error, 0);
	buffer_done(&out);
}

UNIT(memcached_text) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_command_is_read_once_it_is_whole),
		cmocka_unit_test(test_words_and_data),
		cmocka_unit_test(test_no_length_of_data_is_guessed),
		cmocka_unit_test(test_lines_and_words_have_a_limit),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_an_error_is_one_line),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
