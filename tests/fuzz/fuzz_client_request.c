/* fuzz_client_request.c: bytes from a client, as they come; the first byte says in pieces of what
 * size. A request that is accepted means the same when a client of ours writes it. */
#include "fuzz.h"

#include "check.h"
#include "client.h"

static void request_terms_same(const struct client_request *a, const struct client_request *b) {
	const struct core_request *x = &a->core, *y = &b->core;
	CHECK(terms_valid(&x->terms) && x->terms.of == y->terms.of &&
		x->terms.count == y->terms.count);
	CHECK(x->terms.priority == y->terms.priority && x->terms.delay == y->terms.delay &&
		x->terms.binding == y->terms.binding);
	CHECK(x->op == y->op && x->binding == y->binding && x->prefix == y->prefix &&
		x->lock_count == y->lock_count && x->limit == y->limit);
	CHECK(slice_equal(x->label, y->label) && slice_equal(x->to, y->to) && a->watch == b->watch);
	CHECK(x->lock_count <= CORE_LOCKS_MAX && x->label.size <= LABEL_MAX);
	for (uint32_t i = 0; i < x->lock_count; i++) {
		const struct core_lock *l = &x->locks[i], *m = &y->locks[i];
		CHECK(slice_equal(l->key, m->key) && id128_equal(l->lock_id, m->lock_id) &&
			l->of == m->of && l->count == m->count);
	}
}

static void request_again(const struct client_request *request, const struct allocator *alloc) {
	struct client_decoder d;
	struct client_request same;
	struct client_refusal refusal;
	struct buffer b;
	client_decoder_init(&d, alloc);
	buffer_init(&b, alloc, 4 * client_request_limits.bytes);
	CHECK(client_request_encode(request, &b) == 0);
	CHECK(client_request_decode(&d, buffer_slice(&b), &same, &refusal) == 0);
	CHECK(request->method == same.method && request->msgid == same.msgid &&
		request->present == same.present);
	CHECK(slice_equal(request->core.key, same.core.key) &&
		slice_equal(request->core.value, same.core.value));
	CHECK(request->core.lease == same.core.lease && request->core.wait == same.core.wait);
	CHECK(request->lock_count == same.lock_count);
	request_terms_same(request, &same);
	client_decoder_done(&d);
	buffer_done(&b);
}

/* Handles a complete message. False: the connection is closed. */
static bool request_handle(struct client_decoder *d, struct slice message,
	const struct allocator *alloc) {
	struct client_request request;
	struct client_refusal refusal = { 0 };
	struct buffer b;
	int error = client_request_decode(d, message, &request, &refusal);
	CHECK(error == 0 || error == PAWL_EBADREQUEST || error == PAWL_ETOOLARGE ||
		error == PAWL_EPROTOCOL);
	if (!error) {
		request_again(&request, alloc);
		return true;
	}
	buffer_init(&b, alloc, 4096);
	CHECK(client_refusal_encode(request.msgid, &refusal, &b) == 0);
	buffer_done(&b);
	return error != PAWL_EPROTOCOL;
}

/* What is read without looking for its end before is what is found by looking for it. */
static size_t request_read_short(struct client_decoder *d, struct slice in,
	const struct allocator *alloc) {
	struct client_request request;
	const size_t size = client_request_decode_short(d, in, &request);
	CHECK(size <= in.size);
	if (size > 0) {
		request_again(&request, alloc);
	}
	return size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct allocator alloc = alloc_libc(NULL);
	struct client_scanner s = { 0 };
	struct client_decoder d;
	if (size == 0) {
		return 0;
	}
	size_t step = (size_t)data[0] + 1, start = 1, end = 1;
	client_decoder_init(&d, &alloc);
	while (start < size) {
		const struct slice in = slice_of(data + start, end - start);
		const size_t at_once = s.position == 0 ? request_read_short(&d, in, &alloc) : 0;
		size_t found = 0;
		enum client_scan result = client_scan(&s, &client_request_limits, in, &found);
		CHECK(at_once == 0 || (result == CLIENT_SCAN_COMPLETE && found == at_once));
		if (result == CLIENT_SCAN_COMPLETE) {
			CHECK(found > 0 && found <= end - start);
			if (!request_handle(&d, slice_of(data + start, found), &alloc)) {
				break;
			}
			start += found;
		} else if (result != CLIENT_SCAN_MORE || end == size) {
			break;
		}
		end = end + step < size ? end + step : size;
		end = end < start ? start : end;
	}
	client_decoder_done(&d);
	return 0;
}
