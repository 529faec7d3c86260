/* fuzz_client_response.c: a response from a server; the first byte says to which method. */
#include "fuzz.h"

#include "check.h"
#include "client.h"

/* An event that is understood is one that a server of ours could have written. */
static void response_event(struct slice message, const struct allocator *alloc) {
	struct client_event event, same;
	struct buffer b;
	if (client_event_decode(message, &event) != 0 || event.type == CLIENT_EVENT_OTHER) {
		return;
	}
	buffer_init(&b, alloc, 2 * message.size + 4096);
	CHECK(client_event_encode(&event, &b) == 0);
	CHECK(client_event_decode(buffer_slice(&b), &same) == 0);
	CHECK(event.type == same.type && event.watch == same.watch &&
		slice_equal(event.entry.key, same.entry.key));
	buffer_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct client_response response;
	struct allocator alloc = alloc_libc(NULL);
	struct client_scanner s = { 0 };
	struct client_decoder d;
	enum client_kind kind = CLIENT_NOTIFICATION;
	uint32_t msgid;
	size_t end;
	if (size == 0) {
		return 0;
	}
	enum client_method method = (enum client_method)(data[0] % CLIENT_METHODS);
	struct slice message = slice_of(data + 1, size - 1);
	client_decoder_init(&d, &alloc);
	client_scan(&s, &client_response_limits, message, &end);
	int peeked = client_response_peek(message, &kind, &msgid);
	int error = client_response_decode(&d, method, message, &response);
	CHECK(error == 0 || error == PAWL_EPROTOCOL);
	if (!error) {
		CHECK(peeked == 0 && kind == CLIENT_RESPONSE && msgid == response.msgid);
		CHECK(response.count == 0 || response.entries || response.waiters ||
			response.extended || response.acquired);
		CHECK(response.holder_count == 0 || response.holders);
		CHECK(response.master_count <= MASTERS_MAX);
	}
	response_event(message, &alloc);
	client_decoder_done(&d);
	return 0;
}
