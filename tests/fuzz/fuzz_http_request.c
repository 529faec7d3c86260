/* fuzz_http_request.c: any bytes are the beginning of a request, a request, or refused with a
 * status; and what a request says does not depend on what follows it, or on the pieces in which it
 * comes. */
#include "fuzz.h"

#include "check.h"
#include "http_request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct http_request request, again;
	size_t taken = 0, same = 0;
	enum http_status status, other;
	enum http_read read = http_request_read(slice_of(data, size), &request, &taken, &status);
	if (read == HTTP_READ_REFUSED) {
		CHECK(status != HTTP_OK);
		return 0;
	}
	CHECK(status == HTTP_OK || read == HTTP_READ_MORE);
	if (read == HTTP_READ_MORE) {
		CHECK(size < HTTP_HEAD_BYTES_MAX);
		return 0;
	}
	CHECK(taken <= size && taken <= HTTP_HEAD_BYTES_MAX && request.path.data[0] == '/');
	(void)http_query_has(request.query, "verbose");
	uint8_t key[16];
	CHECK(http_query_value(request.query, "key", key, sizeof key) <= (ssize_t)sizeof key);
	CHECK(!http_host_is_address(request.host) || request.host.size > 0);
	for (size_t n = 0; n < taken; n += 1 + taken / 32) {
		CHECK(http_request_read(slice_of(data, n), &again, &same, &other)
			== HTTP_READ_MORE);
	}
	CHECK(http_request_read(slice_of(data, taken), &again, &same, &other)
		== HTTP_READ_COMPLETE && same == taken);
	CHECK(slice_equal(again.path, request.path) && slice_equal(again.query, request.query)
		&& again.head == request.head && again.keep_alive == request.keep_alive);
	return 0;
}
