/* fuzz_memcached.c: any bytes are commands of a client of memcached, or end its connection. The
 * first byte chooses the answers to the requests that the commands make. */
#include "fuzz.h"

#include "check.h"
#include "client.h"
#include "memcached.h"
#include "pawl/error.h"

#define OUT_MAX ((size_t)1 << 20)

static int64_t unix_ms(void *ctx) {
	(void)ctx;
	return INT64_C(1700000000000);
}

static struct id128 draw(void *ctx) {
	(void)ctx;
	return (struct id128){ { 1 } };
}

static span_ns max_lease(void *ctx) {
	(void)ctx;
	return 60 * SPAN_S;
}

static uint32_t masters(void *ctx) {
	(void)ctx;
	return 3;
}

/* Most answers come too late. */
static struct instant now(void *ctx) {
	static int64_t passed = SPAN_S;
	(void)ctx;
	passed += 70 * SPAN_MS;
	return (struct instant){ passed, passed };
}

static uint32_t drift_ppm(void *ctx) {
	(void)ctx;
	return 10000;
}

/* The connection has no identity, as half of the locks that it reads. */
static struct slice identity(void *ctx, uint64_t number) {
	(void)ctx;
	(void)number;
	return slice_of(NULL, 0);
}

static int keep(void *ctx, uint64_t number, struct slice key, struct id128 lock_id) {
	static unsigned kept;
	(void)ctx;
	(void)number;
	(void)key;
	(void)lock_id;
	return kept++ % 4 == 0 ? PAWL_EFULL : 0;
}

/* Answers as a node might. */
static void answer(const struct client_request *request, unsigned choice, struct buffer *out) {
	static const int errors[] = { PAWL_EHELD, PAWL_ENOQUORUM, PAWL_ELOST, PAWL_EUNSURE,
		PAWL_EDENIED, PAWL_ETIMEOUT, PAWL_ETOOLONG, PAWL_ENOTFOUND };
	const struct client_context context = { .node = "n1", .role = "master" };
	const struct client_refusal refusal = { .error = errors[choice / 4 % 8] };
	const struct client_label label = { .text = slice_str(choice & 16
		? "memcached flags=16" : "memcached"), .without_end = choice & 32 };
	uint8_t packed[LABEL_MAX];
	struct core_reply reply = { .op = request->core.op, .lock_id = { { 1 } }, .token = 7,
		.valid = SPAN_S, .released = true,
		.held = choice & 1, .entry = { .owner = slice_str("o"), .value = slice_str("v"),
			.identity = slice_str(choice & 64 ? "another" : ""),
			.label = slice_of(packed, client_label_pack(&label, packed)), .token = 7,
			.lock_id = { { 9 } }, .show_lock_id = choice & 4,
			.remaining = choice & 8 ? SPAN_S : SPAN_MS } };
	CHECK(request->core.lease <= 60 * SPAN_S && request->core.key.size <= 250);
	buffer_clear(out);
	CHECK((choice & 2 ? client_refusal_encode(DIALECT_MSGID, &refusal, out)
		: client_reply_encode(DIALECT_MSGID, &reply, &context, out)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct memcached_server server;
	const struct allocator alloc = alloc_libc(NULL);
	const struct dialect_node node = { .unix_ms = unix_ms, .draw = draw,
		.max_lease = max_lease, .masters = masters, .now = now, .drift_ppm = drift_ppm,
		.identity = identity, .keep = keep };
	struct slice in = slice_of(data + (size > 0), size - (size > 0));
	const struct client_request *request = NULL;
	unsigned choice = size > 0 ? data[0] : 0;
	struct buffer out, said;
	server.settings = (struct memcached_settings){ .slack = 100 * SPAN_MS,
		.keeps = choice & 128, .overwrites = choice & 64, .dev = choice & 32 };
	buffer_init(&out, &alloc, OUT_MAX);
	buffer_init(&said, &alloc, OUT_MAX);
	void *memcached = memcached_dialect.open(&alloc, &node, &server, 1, "127.0.0.1:1");
	CHECK(memcached);
	enum dialect_step step = DIALECT_DONE;
	while (step == DIALECT_DONE || step == DIALECT_ASK) {
		size_t taken = 0;
		CHECK((step == DIALECT_ASK) == (request != NULL));
		if (step == DIALECT_ASK) {
			answer(request, choice++, &said);
			step = memcached_dialect.answer(memcached, buffer_slice(&said), &out,
				&request);
		} else {
			step = memcached_dialect.serve(memcached, in, &taken, &out, &request);
			CHECK(taken > 0 || (step != DIALECT_DONE && step != DIALECT_ASK));
		}
		if (step == DIALECT_TOLD) {
			CHECK(out.size > 0);
			memcached_dialect.sent(memcached);
			step = DIALECT_DONE;
		}
		CHECK(taken <= in.size);
		in = slice_of(in.data + taken, in.size - taken);
		CHECK(out.size < 2 || memcmp(out.data + out.size - 2, "\r\n", 2) == 0);
		buffer_clear(&out);
	}
	if (step == DIALECT_MORE) {
		(void)memcached_dialect.leave(memcached);
	}
	memcached_dialect.close(memcached);
	buffer_done(&out);
	buffer_done(&said);
	return 0;
}
