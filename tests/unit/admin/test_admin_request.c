/* Requests of HTTP: what is read, what is refused with which status, and that no two readers can
 * take the same bytes for different requests. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "http_request.h"

#define HOST "Host: x\r\n"

static enum http_read read_text(const char *text, struct http_request *out, size_t *size,
	enum http_status *status) {
	return http_request_read(slice_str(text), out, size, status);
}

/* Reads a request that must be refused, and returns its status. */
static enum http_status refused(const char *text) {
	struct http_request request;
	size_t size;
	enum http_status status;
	assert_int_equal(read_text(text, &request, &size, &status), HTTP_READ_REFUSED);
	return status;
}

static struct http_request taken(const char *text) {
	struct http_request request;
	size_t size = 0;
	enum http_status status;
	assert_int_equal(read_text(text, &request, &size, &status), HTTP_READ_COMPLETE);
	assert_int_equal(status, HTTP_OK);
	return request;
}

static void a_request_is_its_path_and_its_query(void **state) {
	(void)state;
	struct http_request r = taken("GET /readyz?verbose HTTP/1.1\r\n" HOST "\r\n");
	assert_true(slice_equal(r.path, slice_str("/readyz")));
	assert_true(slice_equal(r.query, slice_str("verbose")));
	assert_true(r.keep_alive);
	assert_false(r.head);
	r = taken("HEAD / HTTP/1.1\r\n" HOST "Connection: TE, Close\r\n\r\n");
	assert_true(slice_equal(r.path, slice_str("/")));
	assert_int_equal(r.query.size, 0);
	assert_true(r.head);
	assert_false(r.keep_alive);
}

static void version_1_0_closes_unless_it_asks_not_to(void **state) {
	(void)state;
	assert_false(taken("GET / HTTP/1.0\r\n\r\n").keep_alive);
	assert_true(taken("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").keep_alive);
}

static void a_piece_of_a_request_is_waited_for(void **state) {
	(void)state;
	static const char text[] = "GET /metrics HTTP/1.1\r\n" HOST "Accept: */*\r\n\r\n";
	struct http_request request;
	size_t size = 0;
	enum http_status status;
	for (size_t n = 0; n + 1 < sizeof text - 1; n++) {
		assert_int_equal(http_request_read(slice_of(text, n), &request, &size, &status),
			HTTP_READ_MORE);
	}
	char two[256];
	snprintf(two, sizeof two, "%s%s", text, text);
	assert_int_equal(read_text(two, &request, &size, &status), HTTP_READ_COMPLETE);
	assert_int_equal(size, sizeof text - 1);
}

static void a_post_says_where_it_comes_from(void **state) {
	(void)state;
	struct http_request r = taken("POST /v1/break?key=k HTTP/1.1\r\n" HOST
		"Origin: https://x\r\nsec-fetch-site: same-origin\r\nPawl-Action: abc\r\n"
		"Content-Length: 0\r\n\r\n");
	assert_true(r.post && !r.head);
	assert_true(slice_equal(r.origin, slice_str("https://x")));
	assert_true(slice_equal(r.site, slice_str("same-origin")));
	assert_true(slice_equal(r.action, slice_str("abc")));
	r = taken("GET / HTTP/1.1\r\n" HOST "\r\n");
	assert_true(!r.post && r.origin.size + r.site.size + r.action.size == 0);
	/* Each of these may be there once. */
	static const char *const fields[] = { "Origin", "Sec-Fetch-Site", "Pawl-Action" };
	for (size_t i = 0; i < 3; i++) {
		char text[256];
		snprintf(text, sizeof text, "POST / HTTP/1.1\r\n" HOST "%s: a\r\n%s: a\r\n\r\n",
			fields[i], fields[i]);
		assert_int_equal(refused(text), 400);
	}
	assert_int_equal(refused("POST / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"), 413);
}

static void a_request_comes_from_the_page_of_the_port_if_the_browser_says_so(void **state) {
	(void)state;
	static const struct {
		const char *origin, *site;
		bool own;
	} rows[] = {
		{ "Origin: https://x:1\r\n", "Sec-Fetch-Site: same-origin\r\n", true },
		{ "", "Sec-Fetch-Site: same-origin\r\n", false },
		{ "Origin: https://x:1\r\n", "", false },
		{ "Origin: https://x:1\r\n", "Sec-Fetch-Site: same-site\r\n", false },
		{ "Origin: https://x:1\r\n", "Sec-Fetch-Site: none\r\n", false },
		{ "Origin: https://x\r\n", "Sec-Fetch-Site: same-origin\r\n", false },
		{ "Origin: https://x:11\r\n", "Sec-Fetch-Site: same-origin\r\n", false },
		{ "Origin: http://x:1\r\n", "Sec-Fetch-Site: same-origin\r\n", false },
		{ "Origin: https://\r\n", "Sec-Fetch-Site: same-origin\r\n", false },
		{ "Origin: null\r\n", "Sec-Fetch-Site: same-origin\r\n", false },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char text[256];
		snprintf(text, sizeof text, "POST / HTTP/1.1\r\nHost: x:1\r\n%s%s\r\n",
			rows[i].origin, rows[i].site);
		const struct http_request r = taken(text);
		assert_int_equal(http_from_own_page(&r), rows[i].own);
	}
}

static void other_methods_are_not_served(void **state) {
	(void)state;
	assert_int_equal(refused("PUT / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"), 405);
	assert_int_equal(refused("OPTIONS / HTTP/1.1\r\n" HOST "\r\n"), 405);
	assert_int_equal(refused("get / HTTP/1.1\r\n" HOST "\r\n"), 405);
}

static void a_body_is_refused_however_it_is_announced(void **state) {
	(void)state;
	assert_int_equal(refused("GET / HTTP/1.1\r\n" HOST "Content-Length: 4\r\n\r\nbody"), 413);
	assert_int_equal(refused("GET / HTTP/1.1\r\n" HOST
			"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), 413);
	assert_int_equal(refused("GET / HTTP/1.1\r\n" HOST "transfer-encoding : identity\r\n\r\n"),
		400);
	assert_int_equal(refused("GET / HTTP/1.1\r\n" HOST
			"Content-Length: 0\r\nContent-Length: 4\r\n\r\n"), 400);
	assert_int_equal(refused("GET / HTTP/1.1\r\n" HOST "Content-Length: +4\r\n\r\n"), 400);
	taken("GET / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n");
}

static void what_could_be_read_in_two_ways_is_refused(void **state) {
	(void)state;
	static const char *const texts[] = {
		/* Line feeds alone, and carriage returns elsewhere. */
		"GET / HTTP/1.1\n" HOST "\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: x\rX: y\r\n\r\n",
		/* A field that goes on in the next line, and one without a name. */
		"GET / HTTP/1.1\r\n" HOST "X: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n",
		/* None or two hosts. */
		"GET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\n" HOST HOST "\r\n",
		/* Other forms of the target. */
		"GET http://x/ HTTP/1.1\r\n" HOST "\r\n",
		"GET * HTTP/1.1\r\n" HOST "\r\n",
		"GET /# HTTP/1.1\r\n" HOST "\r\n",
		"GET /\x80 HTTP/1.1\r\n" HOST "\r\n",
		/* Other separators. */
		"GET  / HTTP/1.1\r\n" HOST "\r\n",
		"GET\t/ HTTP/1.1\r\n" HOST "\r\n",
		"GET / HTTP/1.1 \r\n" HOST "\r\n",
		"GET /\r\n" HOST "\r\n",
		"\r\nGET / HTTP/1.1\r\n" HOST "\r\n",
	};
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		assert_int_equal(refused(texts[i]), 400);
	}
	assert_int_equal(refused("GET / HTTP/2.0\r\n" HOST "\r\n"), 505);
}

static void another_protocol_is_refused_at_its_first_byte(void **state) {
	(void)state;
	struct http_request request;
	size_t size;
	enum http_status status;
	assert_int_equal(http_request_read(slice_of("\x16\x03\x01", 3), &request, &size, &status),
		HTTP_READ_REFUSED);
	assert_int_equal(status, 400);
}

static void a_request_is_bounded(void **state) {
	(void)state;
	static char text[3 * HTTP_HEAD_BYTES_MAX], many[HTTP_HEAD_BYTES_MAX + 1];
	memset(many, 'x', sizeof many - 1);
	snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "X: %s", many);
	assert_int_equal(refused(text), 431);
	snprintf(text, sizeof text, "GET /%.*s HTTP/1.1\r\n" HOST "\r\n",
		HTTP_TARGET_BYTES_MAX, many);
	assert_int_equal(refused(text), 414);
	for (size_t i = 0; i < HTTP_FIELDS_MAX; i++) {
		memcpy(many + 6 * i, "X: y\r\n", 6);
	}
	snprintf(text, sizeof text, "GET / HTTP/1.1\r\n" HOST "%.*s\r\n", 6 * HTTP_FIELDS_MAX,
		many);
	assert_int_equal(refused(text), 431);
}

static void a_query_has_names(void **state) {
	(void)state;
	struct slice q = slice_str("a=1&verbose&b=verbose");
	assert_true(http_query_has(q, "verbose"));
	assert_true(http_query_has(q, "a"));
	assert_true(http_query_has(slice_str("verbose="), "verbose"));
	assert_false(http_query_has(q, "verb"));
	assert_false(http_query_has(slice_str("verbosely&x=verbose"), "verbose"));
	assert_false(http_query_has(slice_of(NULL, 0), "verbose"));
}

static void a_query_has_values(void **state) {
	(void)state;
	struct slice q = slice_str("key=a%2Fb%00+&empty=&none&cut=%2&bad=%zz");
	uint8_t value[8];
	assert_int_equal(http_query_value(q, "key", value, sizeof value), 5);
	assert_memory_equal(value, "a/b\0+", 5);
	assert_int_equal(http_query_value(q, "key", value, 5), 5);
	assert_int_equal(http_query_value(q, "key", value, 4), -1);
	assert_int_equal(http_query_value(q, "empty", value, sizeof value), 0);
	assert_int_equal(http_query_value(q, "none", value, sizeof value), 0);
	assert_int_equal(http_query_value(q, "cut", value, sizeof value), -1);
	assert_int_equal(http_query_value(q, "bad", value, sizeof value), -1);
	assert_int_equal(http_query_value(q, "other", value, sizeof value), -1);
}

static void a_host_is_an_address_or_a_name(void **state) {
	(void)state;
	static const char *const addresses[] = { "127.0.0.1", "127.0.0.1:7119", "localhost",
		"LocalHost:7119", "[::1]", "[::1]:7119", "[fe80::1]", "10.0.0.1" };
	static const char *const names[] = { "", "evil.example", "localhost.evil.example",
		"localhostx", "127.0.0.1.evil.example", "a:7119", "[::1].x", "fe80", "127.0.0.1x" };
	for (size_t i = 0; i < sizeof addresses / sizeof *addresses; i++) {
		assert_true(http_host_is_address(slice_str(addresses[i])));
	}
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		assert_false(http_host_is_address(slice_str(names[i])));
	}
	struct http_request r = taken("GET / HTTP/1.1\r\nHost:  a.example:1 \r\n\r\n");
	assert_true(slice_equal(r.host, slice_str("a.example:1")));
	assert_int_equal(taken("GET / HTTP/1.0\r\n\r\n").host.size, 0);
}

UNIT(admin_request) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_its_path_and_its_query),
		cmocka_unit_test(version_1_0_closes_unless_it_asks_not_to),
		cmocka_unit_test(a_piece_of_a_request_is_waited_for),
		cmocka_unit_test(a_post_says_where_it_comes_from),
		cmocka_unit_test(a_request_comes_from_the_page_of_the_port_if_the_browser_says_so),
		cmocka_unit_test(other_methods_are_not_served),
		cmocka_unit_test(a_body_is_refused_however_it_is_announced),
		cmocka_unit_test(what_could_be_read_in_two_ways_is_refused),
		cmocka_unit_test(another_protocol_is_refused_at_its_first_byte),
		cmocka_unit_test(a_request_is_bounded),
		cmocka_unit_test(a_query_has_names),
		cmocka_unit_test(a_query_has_values),
		cmocka_unit_test(a_host_is_an_address_or_a_name),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
