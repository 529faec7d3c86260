/* test_redis_resp.c: commands of Redis as bytes, and replies. */
#include "unit.h"

#include "resp.h"

static struct resp_command command;
static const char *why;

static enum resp_read resp(const char *text, size_t *size) {
	why = NULL;
	return resp_read(slice_str(text), &command, size, &why);
}

static void assert_argument(size_t n, const char *text) {
	assert_true(n < command.count);
	assert_true(slice_equal(command.arguments[n], slice_str(text)));
}

static void test_a_command_is_an_array_of_bulk_strings(void **state) {
	static const char text[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n";
	size_t size;
	(void)state;
	assert_int_equal(resp(text, &size), RESP_COMPLETE);
	assert_int_equal(size, sizeof text - 1);
	assert_int_equal(command.count, 3);
	assert_argument(0, "SET");
	assert_argument(1, "k");
	assert_argument(2, "");
}

static void test_a_part_of_a_command_is_not_read(void **state) {
	static const char text[] = "*2\r\n$3\r\nGET\r\n$4\r\na\r\nb\r\n";
	struct resp_command part;
	size_t size;
	(void)state;
	for (size_t n = 0; n < sizeof text - 1; n++) {
		assert_int_equal(resp_read(slice_of(text, n), &part, &size, &why), RESP_MORE);
	}
	assert_int_equal(resp(text, &size), RESP_COMPLETE);
	assert_argument(1, "a\r\nb");
}

static void test_the_next_command_stays(void **state) {
	size_t size;
	(void)state;
	assert_int_equal(resp("*1\r\n$4\r\nPING\r\n*1\r\n", &size), RESP_COMPLETE);
	assert_int_equal(size, 14);
}

static void test_a_line_is_a_command_too(void **state) {
	size_t size;
	(void)state;
	assert_int_equal(resp("  get \t key\r\nPING\r\n", &size), RESP_COMPLETE);
	assert_int_equal(size, 13);
	assert_int_equal(command.count, 2);
	assert_argument(0, "get");
	assert_argument(1, "key");
	assert_int_equal(resp("\r\n", &size), RESP_COMPLETE);
	assert_int_equal(command.count, 0);
}

static void test_what_is_no_command_is_refused(void **state) {
	static const char *const wrong[] = { "*x\r\n", "*-1\r\n", "*257\r\n", "*1\r\n:1\r\n",
		"*1\r\n$-1\r\n", "*1\r\n$1048577\r\n", "*1\r\n$1\r\nabc", "*\r\n",
		"*99999999999999999999999\r\n", "*1\r\n$1\r\na\rb" };
	size_t size;
	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(resp(wrong[i], &size), RESP_WRONG);
		assert_non_null(why);
	}
}

/* Otherwise a page could take and delete locks through the browser of whoever reads it. */
static void test_a_browser_is_refused_at_its_first_line(void **state) {
	size_t size;
	(void)state;
	assert_int_equal(resp("POST /x HTTP/1.1\r\nHost: a\r\n\r\nDEL k\r\n", &size), RESP_WRONG);
	assert_non_null(strstr(why, "HTTP"));
	assert_int_equal(resp("MGET a b HTTP/1.1\r\n", &size), RESP_COMPLETE);
	assert_int_equal(resp("*3\r\n$3\r\nDEL\r\n$1\r\na\r\n$6\r\nHTTP/1\r\n", &size),
		RESP_COMPLETE);
}

/* They are answered at once, although no line ends there. */
static void test_a_client_of_another_protocol_is_refused_at_its_first_byte(void **state) {
	size_t size;
	(void)state;
	assert_int_equal(resp("\x94", &size), RESP_WRONG);
	assert_non_null(strstr(why, "Pawl"));
	assert_int_equal(resp("\x16\x03\x01", &size), RESP_WRONG);
	assert_non_null(strstr(why, "TLS"));
}

static void test_a_line_without_an_end_is_refused(void **state) {
	static char text[RESP_INLINE_BYTES_MAX + 2];
	size_t size;
	(void)state;
	memset(text, 'a', sizeof text - 1);
	assert_int_equal(resp_read(slice_of(text, RESP_INLINE_BYTES_MAX), &command, &size, &why),
		RESP_MORE);
	assert_int_equal(resp_read(slice_of(text, sizeof text - 1), &command, &size, &why),
		RESP_WRONG);
	memset(text, '1', sizeof text - 1);
	text[0] = '*';
	assert_int_equal(resp_read(slice_of(text, 64), &command, &size, &why), RESP_WRONG);
}

/* ---- replies ---- */

static void assert_reply(int version, const char *expected, void (*write)(struct resp_writer *)) {
	const struct allocator alloc = alloc_libc(NULL);
	struct buffer out;
	buffer_init(&out, &alloc, 4096);
	struct resp_writer w = { .out = &out, .version = version };
	write(&w);
	assert_int_equal(w.error, 0);
	assert_true(slice_equal(buffer_slice(&out), slice_str(expected)));
	buffer_done(&out);
}

static void write_all(struct resp_writer *w) {
	resp_status(w, "OK");
	resp_number(w, -7);
	resp_text(w, "abc");
	resp_nil(w);
	resp_array(w, 2);
	resp_map(w, 3);
	resp_push(w, 1);
	resp_error(w, "ERR", slice_str("two\r\nlines"));
}

static void test_replies_in_both_versions(void **state) {
	(void)state;
	assert_reply(2, "+OK\r\n:-7\r\n$3\r\nabc\r\n$-1\r\n*2\r\n*6\r\n*1\r\n-ERR two  lines\r\n",
		write_all);
	assert_reply(3, "+OK\r\n:-7\r\n$3\r\nabc\r\n_\r\n*2\r\n%3\r\n>1\r\n-ERR two  lines\r\n",
		write_all);
}

UNIT(redis_resp) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_command_is_an_array_of_bulk_strings),
		cmocka_unit_test(test_a_part_of_a_command_is_not_read),
		cmocka_unit_test(test_the_next_command_stays),
		cmocka_unit_test(test_a_line_is_a_command_too),
		cmocka_unit_test(test_what_is_no_command_is_refused),
		cmocka_unit_test(test_a_browser_is_refused_at_its_first_line),
		cmocka_unit_test(test_a_client_of_another_protocol_is_refused_at_its_first_byte),
		cmocka_unit_test(test_a_line_without_an_end_is_refused),
		cmocka_unit_test(test_replies_in_both_versions),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
