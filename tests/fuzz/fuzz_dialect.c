/* fuzz_dialect.c: see fuzz_dialect.h. */
#include "fuzz_dialect.h"

#include "check.h"
#include "pawl/error.h"
#include "stand_in.h"

#define OUT_MAX ((size_t)1 << 20)

/* Answers as a node might. */
static void answer(const struct client_request *request, unsigned choice, struct buffer *out) {
	static const int errors[] = { PAWL_EHELD, PAWL_ENOQUORUM, PAWL_ELOST, PAWL_EUNSURE,
		PAWL_EDENIED, PAWL_ETIMEOUT, PAWL_ETOOLONG, PAWL_ENOTFOUND };
	const struct core_entry listed[] = { { .key = slice_str("k") },
		{ .key = slice_str("db3:k") } };
	const struct client_label label = { .text = slice_str(choice & 16
		? "memcached flags=16" : "memcached"), .without_end = choice & 32 };
	uint8_t packed[LABEL_MAX];
	struct core_lock_got got[CORE_LOCKS_MAX];
	struct core_reply reply = { .op = request->core.op, .lock_id = { { 1 } }, .token = 7,
		.valid = SPAN_S,
		.released = true, .got = got, .count = request->core.lock_count,
		.held = choice & 1, .entry = { .owner = slice_str("o"), .value = slice_str("v"),
			/* The connection has no identity. */
			.identity = slice_str(choice & 64 ? "another" : ""),
			.label = slice_of(packed, client_label_pack(&label, packed)), .token = 7,
			.lock_id = { { 9 } }, .show_lock_id = choice & 4,
			.weighed = true, .at_least = choice & 8 ? SPAN_S : SPAN_MS } };
	if (request->core.op == CORE_LIST) {
		reply.entries = listed;
		reply.count = 2 * (choice & 1);
		reply.more = choice & 4;
	}
	for (uint32_t i = 0; i < request->core.lock_count; i++) {
		got[i] = (struct core_lock_got){ request->core.locks[i].key,
			request->core.locks[i].lock_id, 7, { 0 } };
	}
	buffer_clear(out);
	if (choice & 2) {
		stand_in_refuse(errors[choice / 4 % 8], out);
	} else {
		stand_in_reply(&reply, out);
	}
}

void fuzz_dialect(const struct fuzz_dialect *f, struct slice in, unsigned choice) {
	const struct allocator alloc = alloc_libc(NULL);
	const bool stays = choice & 16;
	const struct client_request *request = NULL;
	struct buffer out, said;
	struct stand_in node;
	stand_in_init(&node);
	node.unix_ms = f->unix_ms;
	node.reached_at = "[::1]:7";
	/* Most answers come too late, and every third lock without an end is one too many. */
	node.passes = 70 * SPAN_MS;
	node.refuses = 3;
	buffer_init(&out, &alloc, OUT_MAX);
	buffer_init(&said, &alloc, OUT_MAX);
	void *state = f->dialect->open(&alloc, &node.node, f->server, STAND_IN_NUMBER,
		"127.0.0.1:1");
	CHECK(state);
	enum dialect_step step = DIALECT_DONE;
	while (step == DIALECT_DONE || step == DIALECT_ASK || (step == DIALECT_TOLD && stays)) {
		size_t taken = 0;
		if (step == DIALECT_TOLD) {
			f->dialect->sent(state);
		}
		CHECK((step == DIALECT_ASK) == (request != NULL));
		if (step == DIALECT_ASK) {
			/* What is added to a lease is at most another one. */
			CHECK(request->core.lease <= 2 * STAND_IN_LEASE
				&& request->core.key.size <= f->key_max);
			answer(request, choice++, &said);
			step = f->dialect->answer(state, buffer_slice(&said), &out, &request);
		} else {
			step = f->dialect->serve(state, in, &taken, &out, &request);
			CHECK(taken > 0 || (step != DIALECT_DONE && step != DIALECT_ASK));
		}
		CHECK(step != DIALECT_TOLD || out.size > 0);
		CHECK(taken <= in.size);
		in = slice_of(in.data + taken, in.size - taken);
		CHECK(out.size < 2 || memcmp(out.data + out.size - 2, "\r\n", 2) == 0);
		buffer_clear(&out);
	}
	for (int i = 0; f->dialect->leave(state) != NULL; i++) {
		CHECK(step == DIALECT_TOLD && i < CORE_LOCKS_MAX);
	}
	f->dialect->close(state);
	buffer_done(&out);
	buffer_done(&said);
}
