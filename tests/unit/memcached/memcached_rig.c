/* memcached_rig.c: a connection of a client of memcached without a node. */
#include "unit.h"

#include <stdio.h>

#include "memcached_rig.h"

static int64_t unix_ms(void *ctx) {
	(void)ctx;
	return RIG_SECONDS * INT64_C(1000);
}

static struct id128 draw(void *ctx) {
	struct connection *c = ctx;
	return (struct id128){ { ++c->drawn } };
}

static span_ns max_lease(void *ctx) {
	(void)ctx;
	return 60 * SPAN_S;
}

static uint32_t masters(void *ctx) {
	(void)ctx;
	return 3;
}

static struct instant now(void *ctx) {
	const struct connection *c = ctx;
	return (struct instant){ c->now, c->now };
}

static uint32_t drift_ppm(void *ctx) {
	(void)ctx;
	return 10000;
}

static struct slice identity(void *ctx, uint64_t number) {
	(void)ctx;
	assert_int_equal(number, 7);
	return slice_of(NULL, 0);
}

static int keep(void *ctx, uint64_t number, struct slice key, struct id128 lock_id) {
	struct connection *c = ctx;
	assert_int_equal(number, 7);
	assert_true(slice_equal(key, slice_str("k")));
	c->kept = lock_id;
	return c->keep_error;
}

int rig_connect(void **state) {
	static struct connection c;
	c = (struct connection){ .alloc = alloc_libc(NULL),
		.node = { .unix_ms = unix_ms, .draw = draw, .max_lease = max_lease,
			.masters = masters, .now = now, .drift_ppm = drift_ppm,
			.identity = identity, .keep = keep, .ctx = &c },
		.now = SPAN_S, .identity = "",
		.server = { .settings = { .slack = 100 * SPAN_MS } } };
	buffer_init(&c.out, &c.alloc, 1 << 20);
	buffer_init(&c.answer, &c.alloc, 1 << 20);
	c.memcached = memcached_dialect.open(&c.alloc, &c.node, &c.server, 7, "10.0.0.1:5");
	assert_non_null(c.memcached);
	*state = &c;
	return 0;
}

int rig_disconnect(void **state) {
	struct connection *c = *state;
	memcached_dialect.close(c->memcached);
	buffer_done(&c->out);
	buffer_done(&c->answer);
	return 0;
}

enum dialect_step rig_command(struct connection *c, const char *text) {
	char bytes[2048];
	size_t taken;
	const int size = snprintf(bytes, sizeof bytes, "%s\r\n", text);
	buffer_clear(&c->out);
	const enum dialect_step step = memcached_dialect.serve(c->memcached,
		slice_of(bytes, (size_t)size), &taken, &c->out, &c->request);
	assert_int_equal(taken, step == DIALECT_MORE || step == DIALECT_CLOSE ? taken
		: (size_t)size);
	/* What the task has is its own. */
	memset(bytes, 'X', sizeof bytes);
	return step;
}

/* Hands over the answer in c->answer. */
static enum dialect_step rig_answered(struct connection *c) {
	const enum dialect_step step = memcached_dialect.answer(c->memcached,
		buffer_slice(&c->answer), &c->out, &c->request);
	buffer_clear(&c->answer);
	if (step == DIALECT_TOLD && !c->unsent) {
		memcached_dialect.sent(c->memcached);
		return DIALECT_DONE;
	}
	return step;
}

enum dialect_step rig_reply(struct connection *c, const struct core_reply *core) {
	static const struct client_context context = { .node = "n1", .role = "master" };
	assert_int_equal(client_reply_encode(DIALECT_MSGID, core, &context, &c->answer), 0);
	return rig_answered(c);
}

enum dialect_step rig_refused(struct connection *c, int error) {
	const struct client_refusal refusal = { .error = error, .message = "so it is" };
	assert_int_equal(client_refusal_encode(DIALECT_MSGID, &refusal, &c->answer), 0);
	return rig_answered(c);
}

enum dialect_step rig_read(struct connection *c, const char *value, const char *label,
	int64_t left_ms) {
	uint8_t packed[LABEL_MAX];
	const struct client_label says = { .text = slice_str(label), .without_end = c->endless };
	struct core_entry entry = { .owner = slice_str("o"), .token = 42, .show_lock_id = true,
		.lock_id = { { 9 } }, .remaining = left_ms * SPAN_MS,
		.value_seq = { .clock = c->written ? c->written : 40,
			.boot = c->written ? 1 : BALLOT_FIRST },
		.identity = slice_str(c->identity),
		.label = slice_of(packed, client_label_pack(&says, packed)) };
	assert_int_equal(c->request->method, CLIENT_GET);
	assert_true(c->request->core.quorum);
	entry.value = value ? slice_str(value) : slice_of(NULL, 0);
	return rig_reply(c, &(struct core_reply){ .op = CORE_GET, .held = value != NULL,
		.entry = entry });
}

enum dialect_step rig_taken(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	return rig_reply(c, &(struct core_reply){ .op = CORE_ACQUIRE,
		.lock_id = c->request->core.lock_id, .token = 42, .valid = SPAN_S });
}

enum dialect_step rig_extended(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_EXTEND);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	return rig_reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
		.valid = SPAN_S });
}

enum dialect_step rig_updated(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_UPDATE);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	return rig_reply(c, &(struct core_reply){ .op = CORE_UPDATE, .token = 42,
		.value_seq = { .clock = 50 } });
}

enum dialect_step rig_released(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	return rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true });
}

enum dialect_step rig_broken(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_BREAK);
	assert_int_equal(c->request->core.token, 42);
	return rig_reply(c, &(struct core_reply){ .op = CORE_BREAK, .released = true });
}

void rig_assert_said(struct connection *c, const char *expected) {
	assert_int_equal(buffer_append(&c->out, "", 1), 0);
	assert_string_equal((const char *)c->out.data, expected);
}
