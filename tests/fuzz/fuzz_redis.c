/* fuzz_redis.c: any bytes are commands of a client of Redis, or end its connection. The first byte
 * chooses the answers to the requests that the commands make. */
#include "fuzz.h"

#include "check.h"
#include "client.h"
#include "pawl/error.h"
#include "redis.h"

#define OUT_MAX ((size_t)1 << 20)

static int64_t unix_ms(void *ctx) {
	(void)ctx;
	return 1000000;
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

static struct slice identity(void *ctx, uint64_t number) {
	(void)ctx;
	(void)number;
	return slice_of(NULL, 0);
}

/* Every second lock is one too many. */
static int keep(void *ctx, uint64_t number, struct slice key, struct id128 lock_id) {
	static bool full;
	(void)ctx;
	(void)number;
	(void)lock_id;
	CHECK(key.size > 0 && key.size <= KEY_MAX);
	full = !full;
	return full ? PAWL_EFULL : 0;
}

static void reached_at(void *ctx, uint64_t number, char out[ADDRESS_MAX + 1]) {
	(void)ctx;
	(void)number;
	memcpy(out, "[::1]:7", sizeof "[::1]:7");
}

static void unknown_script(void *ctx, uint64_t number, const char *sha1) {
	(void)ctx;
	(void)number;
	CHECK(strlen(sha1) == (size_t)2 * SCRIPT_SHA1_BYTES);
}

/* Answers as a node might. */
static void answer(const struct client_request *request, unsigned choice, struct buffer *out) {
	static const int errors[] = { PAWL_EHELD, PAWL_ENOQUORUM, PAWL_ELOST, PAWL_EUNSURE,
		PAWL_EDENIED, PAWL_ETIMEOUT, PAWL_ETOOLONG, PAWL_ENOTFOUND };
	const struct client_context context = { .node = "n1", .role = "master" };
	const struct client_refusal refusal = { .error = errors[choice / 4 % 8] };
	struct core_lock_got got[CORE_LOCKS_MAX];
	struct core_reply reply = { .op = request->core.op, .lock_id = { { 1 } }, .token = 7,
		.valid = SPAN_S,
		.released = true, .got = got, .count = request->core.lock_count,
		.held = choice & 1, .entry = { .owner = slice_str("o"), .value = slice_str("v"),
			.token = 7, .lock_id = { { 9 } }, .show_lock_id = choice & 4,
			.remaining = choice & 8 ? SPAN_S : SPAN_MS } };
	const struct core_entry listed[] = { { .key = slice_str("k") },
		{ .key = slice_str("db3:k") } };
	if (request->core.op == CORE_LIST) {
		reply.entries = listed;
		reply.count = 2 * (choice & 1);
		reply.more = choice & 4;
	}
	CHECK(request->core.lease <= 2 * 60 * SPAN_S && request->core.key.size <= KEY_MAX);
	for (uint32_t i = 0; i < request->core.lock_count; i++) {
		got[i] = (struct core_lock_got){ request->core.locks[i].key,
			request->core.locks[i].lock_id, 7, { 0 } };
	}
	buffer_clear(out);
	CHECK((choice & 2 ? client_refusal_encode(DIALECT_MSGID, &refusal, out)
		: client_reply_encode(DIALECT_MSGID, &reply, &context, out)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static struct redis_server server;
	const struct allocator alloc = alloc_libc(NULL);
	const struct dialect_node node = { .unix_ms = unix_ms, .draw = draw,
		.max_lease = max_lease, .masters = masters, .now = now, .drift_ppm = drift_ppm,
		.identity = identity, .keep = keep, .reached_at = reached_at,
		.unknown_script = unknown_script };
	struct slice in = slice_of(data + (size > 0), size - (size > 0));
	const struct client_request *request = NULL;
	unsigned choice = size > 0 ? data[0] : 0;
	struct buffer out, said;
	const bool allowed = choice & 32;
	server = (struct redis_server){ .settings = { .slack = 100 * SPAN_MS, .keeps = allowed,
		.overwrites = allowed, .dev = allowed, .redlock = choice & 64,
		.master_name = "mymaster" } };
	buffer_init(&out, &alloc, OUT_MAX);
	buffer_init(&said, &alloc, OUT_MAX);
	void *redis = redis_dialect.open(&alloc, &node, &server, 1, "127.0.0.1:1");
	CHECK(redis);
	enum dialect_step step = DIALECT_DONE;
	while (step == DIALECT_DONE || step == DIALECT_ASK || step == DIALECT_TOLD) {
		size_t taken = 0;
		if (step == DIALECT_TOLD && choice & 16) {
			break;
		}
		if (step == DIALECT_TOLD) {
			redis_dialect.sent(redis);
		}
		CHECK((step == DIALECT_ASK) == (request != NULL));
		if (step == DIALECT_ASK) {
			answer(request, choice++, &said);
			step = redis_dialect.answer(redis, buffer_slice(&said), &out, &request);
		} else {
			step = redis_dialect.serve(redis, in, &taken, &out, &request);
		}
		CHECK(taken <= in.size);
		in = slice_of(in.data + taken, in.size - taken);
		buffer_clear(&out);
	}
	for (int i = 0; redis_dialect.leave(redis) != NULL; i++) {
		CHECK(step == DIALECT_TOLD && i < CORE_LOCKS_MAX);
	}
	redis_dialect.close(redis);
	buffer_done(&out);
	buffer_done(&said);
	return 0;
}
