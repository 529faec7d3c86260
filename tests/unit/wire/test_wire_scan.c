/* These tests ask where a message of the client protocol ends. */
#include "unit.h"

#include "client.h"
#include "wire_random.h"

static enum client_scan scan(const void *data, size_t size, size_t *out_size) {
	struct client_scanner s = { 0 };
	uint8_t *exact = wire_exact(data, size);
	enum client_scan result = client_scan(&s, &client_request_limits, slice_of(exact, size),
		out_size);
	free(exact);
	return result;
}

#define PING "\x94\x00\x07\xa4ping\x91\x80"
#define PING_BYTES 10

static void a_message_ends_where_it_ends(void **state) {
	(void)state;
	size_t size = 0;
	assert_int_equal(scan(PING, PING_BYTES, &size), CLIENT_SCAN_COMPLETE);
	assert_int_equal(size, PING_BYTES);
	assert_int_equal(scan(PING PING, 2 * PING_BYTES, &size), CLIENT_SCAN_COMPLETE);
	assert_int_equal(size, PING_BYTES);
	for (size_t n = 0; n < PING_BYTES; n++) {
		assert_int_equal(scan(PING, n, &size), CLIENT_SCAN_MORE);
	}
}

static void a_message_that_comes_byte_by_byte_is_found_too(void **state) {
	(void)state;
	struct client_scanner s = { 0 };
	size_t size = 0;
	/* The scanner is ready for the next message. */
	for (int again = 0; again < 2; again++) {
		for (size_t n = 1; n < PING_BYTES; n++) {
			assert_int_equal(client_scan(&s, &client_request_limits, slice_of(PING, n),
				&size), CLIENT_SCAN_MORE);
		}
		assert_int_equal(client_scan(&s, &client_request_limits, slice_of(PING, PING_BYTES),
			&size), CLIENT_SCAN_COMPLETE);
		assert_int_equal(size, PING_BYTES);
	}
}

static void what_is_no_rpc_is_garbage_at_once(void **state) {
	(void)state;
	size_t size;
	assert_int_equal(scan("GET / HTTP/1.1\r\n", 16, &size), CLIENT_SCAN_GARBAGE);
	/* This is TLS. */
	assert_int_equal(scan("\x16\x03\x01", 3, &size), CLIENT_SCAN_GARBAGE);
	assert_int_equal(scan("\xc1", 1, &size), CLIENT_SCAN_GARBAGE);
	assert_int_equal(scan("\x80", 1, &size), CLIENT_SCAN_GARBAGE);
	assert_int_equal(scan("\x92\x00\x00", 3, &size), CLIENT_SCAN_GARBAGE);
	assert_int_equal(scan("\x94\x00\x00\xc1", 4, &size), CLIENT_SCAN_GARBAGE);
	/* This has 16 million objects. */
	assert_int_equal(scan("\xdd\x00\xff\xff\xff", 5, &size), CLIENT_SCAN_GARBAGE);
	assert_int_equal(scan("\xdf\x10\x00\x00\x00", 5, &size), CLIENT_SCAN_GARBAGE);
}

static void huge_announced_sizes_are_refused_before_their_bytes_come(void **state) {
	(void)state;
	size_t size;
	assert_int_equal(scan("\x94\x00\x00\xdd\x00\xff\xff\xff", 8, &size), CLIENT_SCAN_TOO_LARGE);
	assert_int_equal(scan("\x94\x00\x00\xdf\x10\x00\x00\x00", 8, &size), CLIENT_SCAN_TOO_LARGE);
	assert_int_equal(scan("\x94\x00\x00\xdf\xff\xff\xff\xff", 8, &size), CLIENT_SCAN_TOO_LARGE);
	assert_int_equal(scan("\x94\x00\x00\xc6\x10\x00\x00\x00", 8, &size), CLIENT_SCAN_TOO_LARGE);
	assert_int_equal(scan("\x94\x00\x00\xdb\xff\xff\xff\xff", 8, &size), CLIENT_SCAN_TOO_LARGE);
	assert_int_equal(scan("\x94\x00\x00\xc9\xff\xff\xff\xff\x01", 9, &size),
		CLIENT_SCAN_TOO_LARGE);
}

static void deep_nesting_is_garbage(void **state) {
	(void)state;
	uint8_t deep[100];
	size_t size;
	memset(deep, 0x91, sizeof deep);
	deep[0] = 0x94;
	assert_int_equal(scan(deep, sizeof deep, &size), CLIENT_SCAN_GARBAGE);
}

static void many_small_objects_are_too_large(void **state) {
	(void)state;
	static uint8_t many[300000];
	size_t size;
	/* These are arrays of three arrays of three, as deep as they may be. */
	memset(many, 0x93, sizeof many);
	memcpy(many, "\x94\x00\x00", 3);
	for (size_t i = 3; i + 5 < sizeof many; i += 5) {
		memcpy(many + i, "\x92\x92\x00\x00\x92", 5);
	}
	enum client_scan result = scan(many, sizeof many, &size);
	assert_true(result == CLIENT_SCAN_TOO_LARGE || result == CLIENT_SCAN_GARBAGE);
	memcpy(many + 3, "\xdd\x00\x00\xff\x00", 5);
	for (size_t i = 8; i + 1 < sizeof many; i += 2) {
		memcpy(many + i, "\x91\x00", 2);
	}
	assert_int_equal(scan(many, sizeof many, &size), CLIENT_SCAN_TOO_LARGE);
}

static void every_form_of_object_has_its_length(void **state) {
	(void)state;
	static const struct { const char *bytes; size_t size; } forms[] = {
		{ "\x00", 1 }, { "\xff", 1 }, { "\xc0", 1 }, { "\xc2", 1 }, { "\xcc\x00", 2 },
			{ "\xcd\0\0", 3 }, { "\xce\0\0\0\0", 5 },
		{ "\xcf\0\0\0\0\0\0\0\0", 9 }, { "\xd0\x80", 2 }, { "\xd1\0\0", 3 },
			{ "\xd2\0\0\0\0", 5 }, { "\xd3\0\0\0\0\0\0\0\0", 9 },
		{ "\xca\0\0\0\0", 5 }, { "\xcb\0\0\0\0\0\0\0\0", 9 }, { "\xa1x", 2 },
			{ "\xd9\x01x", 3 }, { "\xda\0\x01x", 4 },
		{ "\xdb\0\0\0\x01x", 6 }, { "\xc4\x01x", 3 }, { "\xc5\0\x01x", 4 },
			{ "\xc6\0\0\0\x01x", 6 }, { "\xd4\x05x", 3 },
		{ "\xd5\x05xx", 4 }, { "\xd6\x05xxxx", 6 }, { "\xd7\x05xxxxxxxx", 10 },
			{ "\xd8\x05xxxxxxxxxxxxxxxx", 18 },
		{ "\xc7\x01\x05x", 4 }, { "\xc8\0\x01\x05x", 5 },
			{ "\xc9\0\0\0\x01\x05x", 7 }, { "\x90", 1 }, { "\x80", 1 },
		{ "\xdc\0\x01\x00", 4 }, { "\xdd\0\0\0\x01\x00", 6 },
			{ "\xde\0\x01\x00\x00", 5 }, { "\xdf\0\0\0\x01\x00\x00", 7 },
	};
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		uint8_t message[64] = { 0x94, 0, 7 };
		size_t size = 0, end = 3 + forms[i].size;
		memcpy(message + 3, forms[i].bytes, forms[i].size);
		message[end] = 0xc0;
		assert_int_equal(scan(message, end + 1, &size), CLIENT_SCAN_COMPLETE);
		assert_int_equal(size, end + 1);
		assert_int_equal(scan(message, end, &size), CLIENT_SCAN_MORE);
	}
}

UNIT(wire_scan) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_ends_where_it_ends),
		cmocka_unit_test(a_message_that_comes_byte_by_byte_is_found_too),
		cmocka_unit_test(what_is_no_rpc_is_garbage_at_once),
		cmocka_unit_test(huge_announced_sizes_are_refused_before_their_bytes_come),
		cmocka_unit_test(deep_nesting_is_garbage),
		cmocka_unit_test(many_small_objects_are_too_large),
		cmocka_unit_test(every_form_of_object_has_its_length),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
