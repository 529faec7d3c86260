/* redis_rig.c: see redis_rig.h. */
#include "redis_rig.h"

static int64_t unix_ms(void *ctx) {
	(void)ctx;
	return 1000000;
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
	const struct connection *c = ctx;
	assert_int_equal(number, 7);
	return slice_str(c->identity);
}

static int keep(void *ctx, uint64_t number, struct slice key, struct id128 lock_id) {
	struct connection *c = ctx;
	assert_int_equal(number, 7);
	assert_true(slice_equal(key, slice_str("k")));
	c->kept = lock_id;
	return c->keep_error;
}

static void reached_at(void *ctx, uint64_t number, char out[ADDRESS_MAX + 1]) {
	const struct connection *c = ctx;
	assert_int_equal(number, 7);
	snprintf(out, ADDRESS_MAX + 1, "%s", c->reached_at);
}

static void unknown_script(void *ctx, uint64_t number, const char *sha1) {
	struct connection *c = ctx;
	assert_int_equal(number, 7);
	snprintf(c->unknown, sizeof c->unknown, "%s", sha1);
}

int rig_connect(void **state) {
	static struct connection c;
	c = (struct connection){ .alloc = alloc_libc(NULL),
		.node = { .unix_ms = unix_ms, .draw = draw, .max_lease = max_lease,
			.masters = masters, .now = now, .drift_ppm = drift_ppm,
			.identity = identity, .keep = keep, .reached_at = reached_at,
			.unknown_script = unknown_script, .ctx = &c },
		.now = SPAN_S, .identity = "", .reached_at = "10.0.0.9:6379",
		.server = { .settings = { .slack = 100 * SPAN_MS, .master_name = "mymaster" } } };
	buffer_init(&c.out, &c.alloc, 1 << 20);
	buffer_init(&c.answer, &c.alloc, 1 << 20);
	c.redis = redis_dialect.open(&c.alloc, &c.node, &c.server, 7, "10.0.0.1:5");
	assert_non_null(c.redis);
	*state = &c;
	return 0;
}

int rig_disconnect(void **state) {
	struct connection *c = *state;
	redis_dialect.close(c->redis);
	buffer_done(&c->out);
	buffer_done(&c->answer);
	return 0;
}

/* What was written has left. */
static void rig_sent(struct connection *c) {
	if (c->step == DIALECT_TOLD) {
		redis_dialect.sent(c->redis);
	}
	c->step = DIALECT_DONE;
}

enum dialect_step rig_command(struct connection *c, const char *line) {
	char text[1024];
	size_t taken;
	const int size = snprintf(text, sizeof text, "%s\r\n", line);
	buffer_clear(&c->out);
	rig_sent(c);
	const enum dialect_step step = redis_dialect.serve(c->redis, slice_of(text, (size_t)size),
		&taken, &c->out, &c->request);
	assert_int_equal(taken, step == DIALECT_MORE ? 0 : size);
	return step;
}

/* Hands over the answer in c->answer. */
static enum dialect_step answered(struct connection *c) {
	c->step = redis_dialect.answer(c->redis, buffer_slice(&c->answer), &c->out, &c->request);
	buffer_clear(&c->answer);
	return c->step;
}

enum dialect_step rig_reply(struct connection *c, const struct core_reply *core) {
	static const struct client_context context = { .node = "n1", .role = "master" };
	assert_int_equal(client_reply_encode(DIALECT_MSGID, core, &context, &c->answer), 0);
	return answered(c);
}

/* The key that was read is held with this value, or free with NULL. */
enum dialect_step rig_read_as(struct connection *c, const char *value, int64_t left_ms) {
	struct core_entry entry = { .owner = slice_str("o"), .token = 42, .show_lock_id = true,
		.lock_id = { { 9 } }, .remaining = left_ms * SPAN_MS };
	assert_int_equal(c->request->method, CLIENT_GET);
	assert_true(c->request->core.quorum);
	entry.value = value ? slice_str(value) : slice_of(NULL, 0);
	return rig_reply(c, &(struct core_reply){ .op = CORE_GET, .held = value != NULL,
		.entry = entry });
}

enum dialect_step rig_refused(struct connection *c, int error) {
	const struct client_refusal refusal = { .error = error, .message = "so it is" };
	assert_int_equal(client_refusal_encode(DIALECT_MSGID, &refusal, &c->answer), 0);
	return answered(c);
}

void rig_assert_said(struct connection *c, const char *expected) {
	assert_int_equal(buffer_append(&c->out, "", 1), 0);
	assert_string_equal((const char *)c->out.data, expected);
}

bool rig_starts_with(const struct connection *c, const char *text) {
	return c->out.size >= strlen(text) && memcmp(c->out.data, text, strlen(text)) == 0;
}

enum dialect_step rig_taken(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	return rig_reply(c, &(struct core_reply){ .op = CORE_ACQUIRE,
		.lock_id = c->request->core.lock_id, .token = 42, .valid = SPAN_S });
}
