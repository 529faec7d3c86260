/* test_redis_commands.c: which requests a command makes, and how their answers look to a client of
 * Redis. */
#include "unit.h"

#include <stdio.h>

#include "client.h"
#include "pawl/error.h"
#include "redis.h"

/* A connection, and what it says. */
struct connection {
	struct allocator alloc;
	struct dialect_node node;
	struct redis_server server;
	void *redis;
	struct buffer out, answer;
	const struct client_request *request;
	uint8_t drawn;
	int64_t now;
	/* The identity of the connection, and the address at which it has reached the node. */
	const char *identity, *reached_at;
	/* The lock that the node keeps, or the error that it says instead. */
	struct id128 kept;
	int keep_error;
	/* The SHA1 of a script that was not known. */
	char unknown[2 * SCRIPT_SHA1_BYTES + 1];
};

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

static int connect(void **state) {
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

static int disconnect(void **state) {
	struct connection *c = *state;
	redis_dialect.close(c->redis);
	buffer_done(&c->out);
	buffer_done(&c->answer);
	return 0;
}

static enum dialect_step command(struct connection *c, const char *line) {
	char text[1024];
	size_t taken;
	const int size = snprintf(text, sizeof text, "%s\r\n", line);
	buffer_clear(&c->out);
	const enum dialect_step step = redis_dialect.serve(c->redis, slice_of(text, (size_t)size),
		&taken, &c->out, &c->request);
	assert_int_equal(taken, step == DIALECT_MORE ? 0 : size);
	return step;
}

/* Hands over the answer in c->answer. */
static enum dialect_step answered(struct connection *c) {
	const enum dialect_step step = redis_dialect.answer(c->redis, buffer_slice(&c->answer),
		&c->out, &c->request);
	buffer_clear(&c->answer);
	return step;
}

static enum dialect_step reply(struct connection *c, const struct core_reply *core) {
	static const struct client_context context = { .node = "n1", .role = "master" };
	assert_int_equal(client_reply_encode(DIALECT_MSGID, core, &context, &c->answer), 0);
	return answered(c);
}

/* The key that was read is held with this value, or free with NULL. */
static enum dialect_step read_as(struct connection *c, const char *value, int64_t left_ms) {
	struct core_entry entry = { .owner = slice_str("o"), .token = 42, .show_lock_id = true,
		.lock_id = { { 9 } }, .remaining = left_ms * SPAN_MS };
	assert_int_equal(c->request->method, CLIENT_GET);
	assert_true(c->request->core.quorum);
	entry.value = value ? slice_str(value) : slice_of(NULL, 0);
	return reply(c, &(struct core_reply){ .op = CORE_GET, .held = value != NULL,
		.entry = entry });
}

static enum dialect_step refused(struct connection *c, int error) {
	const struct client_refusal refusal = { .error = error, .message = "so it is" };
	assert_int_equal(client_refusal_encode(DIALECT_MSGID, &refusal, &c->answer), 0);
	return answered(c);
}

static void assert_said(struct connection *c, const char *expected) {
	assert_int_equal(buffer_append(&c->out, "", 1), 0);
	assert_string_equal((const char *)c->out.data, expected);
}

static bool starts_with(const struct connection *c, const char *text) {
	return c->out.size >= strlen(text) && memcmp(c->out.data, text, strlen(text)) == 0;
}

static enum dialect_step taken(struct connection *c) {
	assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	return reply(c, &(struct core_reply){ .op = CORE_ACQUIRE,
		.lock_id = c->request->core.lock_id, .token = 42, .valid = SPAN_S });
}

/* ---- taking ---- */

static void test_set_nx_acquires_with_slack(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	const struct core_request *core = &c->request->core;
	assert_int_equal(core->op, CORE_ACQUIRE);
	assert_true(slice_equal(core->key, slice_str("k")));
	assert_true(slice_equal(core->value, slice_str("v")));
	assert_true(slice_equal(core->owner, slice_str("10.0.0.1:5")));
	assert_int_equal(core->lock_id.b[0], 1);
	assert_int_equal(core->lease, 5100 * SPAN_MS);
	assert_int_equal(core->wait, 0);
	assert_int_equal(taken(c), DIALECT_DONE);
	assert_said(c, "+OK\r\n");
}

static void test_held_is_nil_and_an_outage_is_not(void **state) {
	static const struct {
		int error;
		const char *said;
	} errors[] = {
		{ PAWL_EHELD, "$-1\r\n" },
		{ PAWL_ENOQUORUM, "-NOREPLICAS so it is\r\n" },
		{ PAWL_ERECOVERING, "-LOADING so it is\r\n" },
		{ PAWL_EDENIED, "-NOPERM so it is\r\n" },
		{ PAWL_EFULL, "-OOM so it is\r\n" },
		{ PAWL_EUNSURE, "-TRYAGAIN so it is\r\n" },
		{ PAWL_EBUSY, "-TRYAGAIN so it is\r\n" },
		{ PAWL_EQUOTA, "-TRYAGAIN so it is\r\n" },
	};
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		assert_int_equal(command(*state, "SET k v NX EX 5"), DIALECT_ASK);
		assert_int_equal(refused(*state, errors[i].error), DIALECT_DONE);
		assert_said(*state, errors[i].said);
	}
}

static void test_a_length_is_never_shortened(void **state) {
	assert_int_equal(command(*state, "SET k v NX PX 59901"), DIALECT_DONE);
	assert_said(*state, "-NOPERM a lock of 59901 ms is longer than this cluster allows, "
		"which is 59900 ms: take it for less, and renew it\r\n");
	assert_int_equal(command(*state, "SET k v NX PX 59900"), DIALECT_ASK);
}

static void test_a_moment_is_a_length(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "SET k v NX PXAT 1000250"), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, 350 * SPAN_MS);
	refused(c, PAWL_EHELD);
	assert_int_equal(command(c, "SET k v NX EXAT 1000"), DIALECT_DONE);
	assert_said(c, "-ERR the moment at which the key is to end is over\r\n");
}

/* With GET, the answer is what the key had before. */
static void test_a_plain_set_with_get_shows_that_the_key_was_free(void **state) {
	assert_int_equal(command(*state, "SET k v GET PX 5000"), DIALECT_ASK);
	assert_int_equal(read_as(*state, NULL, 0), DIALECT_ASK);
	assert_int_equal(taken(*state), DIALECT_DONE);
	assert_said(*state, "$-1\r\n");
}

static void test_wrong_commands_change_nothing(void **state) {
	static const char *const wrong[] = { "SET k v", "SET k v NX", "SETNX k v",
		"SET k v NX XX PX 5", "SET k v NX PX", "SET k v NX PX x", "SET k v NX PX 0",
		"SET k v NX PX 5 EX 5", "SET k v WHAT", "GET", "GET a b", "NONE", "PEXPIRE k x",
		"EVAL", "EVAL x 1", "EVALSHA a -1", "SELECT 16", "DELEX k IFNE v",
		"PAWL.WAIT k v 5 -1" };
	struct connection *c = *state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(command(c, wrong[i]), DIALECT_DONE);
		assert_null(c->request);
		assert_true(c->out.size > 0 && c->out.data[0] == '-');
	}
}

static void test_a_plain_set_takes_a_free_key_only(void **state) {
	assert_int_equal(command(*state, "SET k v PX 5000"), DIALECT_ASK);
	assert_int_equal(read_as(*state, "w", 1000), DIALECT_DONE);
	assert_said(*state, "-NOPERM the key is held: Pawl does not overwrite a lock. Use NX, or "
		"delete it first\r\n");
	assert_int_equal(command(*state, "SET k v PX 5000"), DIALECT_ASK);
	assert_int_equal(read_as(*state, NULL, 0), DIALECT_ASK);
	assert_int_equal(taken(*state), DIALECT_DONE);
	assert_said(*state, "+OK\r\n");
}

static void test_waiting_for_a_turn(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "PAWL.WAIT k v 5000 2500"), DIALECT_ASK);
	assert_int_equal(c->request->core.wait, 2500 * SPAN_MS);
	assert_int_equal(refused(c, PAWL_ETIMEOUT), DIALECT_DONE);
	assert_said(c, "$-1\r\n");
	c->server.settings.patience = 50 * SPAN_MS;
	assert_int_equal(command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	assert_int_equal(c->request->core.wait, 50 * SPAN_MS);
}

/* The lease began 111 ms ago, and is only 100 ms longer than what the client counts on. */
static void test_what_is_taken_too_late_is_released(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "SET k v NX PX 900"), DIALECT_ASK);
	const struct id128 lock_id = c->request->core.lock_id;
	c->now += 121 * SPAN_MS;
	/* Which says that it was in the queue for 10 ms. */
	assert_int_equal(taken(c), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_true(slice_equal(c->request->core.key, slice_str("k")));
	assert_int_equal(c->request->core.lock_id.b[0], lock_id.b[0]);
	assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_DONE);
	assert_true(starts_with(c, "-TRYAGAIN the masters answered too late"));
}

static void test_waiting_for_a_turn_is_not_late(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "PAWL.WAIT k v 900 5000"), DIALECT_ASK);
	c->now += 3050 * SPAN_MS;
	/* 3000 ms in the queue and a lease of 1000 ms, less 1 %. */
	assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_ACQUIRE,
		.lock_id = c->request->core.lock_id, .token = 42, .valid = 3960 * SPAN_MS }),
		DIALECT_DONE);
	assert_said(c, "+OK\r\n");
}

static void test_a_renewal_that_comes_too_late_is_an_error(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "SET k w XX PX 5000"), DIALECT_ASK);
	assert_int_equal(read_as(c, "v", 1100), DIALECT_ASK);
	assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
		.valid = 5049 * SPAN_MS }), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_UPDATE);
	c->now += 101 * SPAN_MS;
	assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_UPDATE, .token = 42 }),
		DIALECT_DONE);
	assert_true(starts_with(c, "-TRYAGAIN the masters answered too late"));
}

/* ---- compare and act ---- */

static void test_a_release_names_the_lock_id_that_was_read(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "DELIFEQ k v"), DIALECT_ASK);
	assert_int_equal(read_as(c, "v", 1000), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_DONE);
	assert_said(c, ":1\r\n");
}

static void test_another_value_is_left_alone(void **state) {
	assert_int_equal(command(*state, "DELEX k IFEQ v"), DIALECT_ASK);
	assert_int_equal(read_as(*state, "w", 1000), DIALECT_DONE);
	assert_said(*state, ":0\r\n");
}

static void test_the_last_moment_of_a_lease_does_not_count(void **state) {
	assert_int_equal(command(*state, "GET k"), DIALECT_ASK);
	assert_int_equal(read_as(*state, "v", 101), DIALECT_DONE);
	assert_said(*state, "$1\r\nv\r\n");
	assert_int_equal(command(*state, "GET k"), DIALECT_ASK);
	assert_int_equal(read_as(*state, "v", 100), DIALECT_DONE);
	assert_said(*state, "$-1\r\n");
	assert_int_equal(command(*state, "PTTL k"), DIALECT_ASK);
	assert_int_equal(read_as(*state, "v", 1100), DIALECT_DONE);
	assert_said(*state, ":1000\r\n");
}

static void test_a_holder_that_has_changed_is_not_released(void **state) {
	assert_int_equal(command(*state, "DELIFEQ k v"), DIALECT_ASK);
	assert_int_equal(read_as(*state, "v", 1000), DIALECT_ASK);
	assert_int_equal(refused(*state, PAWL_ELOST), DIALECT_DONE);
	assert_said(*state, ":0\r\n");
}

static void test_extending_sets_or_adds(void **state) {
	static const char script[] = "EVALSHA 0000000000000000000000000000000000000000 1 k v 500 ";
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	char line[128];
	assert_true(script_sha1_parse(slice_str("a170a02924d436223050f919c99fd01f544a0933"), form));
	scripts_learn(&c->server.scripts, sha1, script_find_form(form));
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof line, "%s%d", script, i);
		assert_int_equal(command(c, line), DIALECT_ASK);
		assert_int_equal(read_as(c, "v", 1100), DIALECT_ASK);
		assert_int_equal(c->request->method, CLIENT_EXTEND);
		assert_int_equal(c->request->core.lease, (i == 0 ? 1600 : 600) * SPAN_MS);
		assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
			.valid = SPAN_S }), DIALECT_DONE);
		assert_said(c, ":1\r\n");
	}
}

static void test_an_added_length_has_the_same_limit(void **state) {
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	assert_true(script_sha1_parse(slice_str("a170a02924d436223050f919c99fd01f544a0933"), form));
	scripts_learn(&c->server.scripts, sha1, script_find_form(form));
	assert_int_equal(command(c,
		"EVALSHA 0000000000000000000000000000000000000000 1 k v 50000 0"), DIALECT_ASK);
	assert_int_equal(read_as(c, "v", 20000), DIALECT_ASK);
	assert_int_equal(refused(c, PAWL_ETOOLONG), DIALECT_DONE);
	assert_said(c, "-NOPERM so it is\r\n");
}

static void test_all_keys_or_none(void **state) {
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	assert_true(script_sha1_parse(slice_str("7aee5c20c8573227df2105d36dc94a1aeddc887e"), form));
	scripts_learn(&c->server.scripts, sha1, script_find_form(form));
	assert_int_equal(command(c,
		"EVALSHA 0000000000000000000000000000000000000000 2 a b v 500"), DIALECT_ASK);
	assert_int_equal(read_as(c, "v", 1100), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str("b")));
	assert_int_equal(read_as(c, "w", 1100), DIALECT_DONE);
	assert_said(c, ":0\r\n");
}

static void test_the_identity_of_another_is_told(void **state) {
	struct connection *c = *state;
	const struct core_entry entry = { .owner = slice_str("o"), .value = slice_str("v"),
		.token = 42, .remaining = SPAN_S };
	assert_int_equal(command(c, "DEL k"), DIALECT_ASK);
	assert_int_equal(reply(c, &(struct core_reply){ .op = CORE_GET, .held = true,
		.entry = entry }), DIALECT_DONE);
	assert_said(c, "-NOPERM this lock belongs to another identity\r\n");
}

/* ---- the connection ---- */

static void test_databases_have_keys_of_their_own(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "SELECT 3"), DIALECT_DONE);
	assert_int_equal(command(c, "GET k"), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str("db3:k")));
}

static void test_names_are_shown_to_others(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "CLIENT SETNAME web1"), DIALECT_DONE);
	assert_int_equal(command(c, "CLIENT SETINFO LIB-NAME redis-py"), DIALECT_DONE);
	assert_int_equal(command(c, "SET k v NX PX 5"), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.owner, slice_str("web1")));
	assert_true(slice_equal(client_label_unpack(c->request->core.label).text,
		slice_str("redis-py")));
}

static void test_hello_changes_the_version(void **state) {
	struct connection *c = *state;
	assert_int_equal(command(c, "HELLO 4"), DIALECT_DONE);
	assert_said(c, "-NOPROTO unsupported protocol version\r\n");
	assert_int_equal(command(c, "HELLO 3 SETNAME me"), DIALECT_DONE);
	assert_int_equal(c->out.data[0], '%');
	assert_int_equal(command(c, "GET k"), DIALECT_ASK);
	assert_int_equal(read_as(c, NULL, 0), DIALECT_DONE);
	assert_said(c, "_\r\n");
}

static void test_garbage_closes(void **state) {
	struct connection *c = *state;
	size_t size;
	assert_int_equal(redis_dialect.serve(c->redis, slice_str("*x\r\n"), &size, &c->out,
		&c->request), DIALECT_CLOSE);
	assert_said(c, "-ERR Protocol error: invalid multibulk length\r\n");
	assert_int_equal(command(c, "QUIT"), DIALECT_CLOSE);
}

static void test_who_leaves_gives_back_what_it_may_have_taken(void **state) {
	struct connection *c = *state;
	assert_null(redis_dialect.leave(c->redis));
	assert_int_equal(command(c, "GET k"), DIALECT_ASK);
	assert_null(redis_dialect.leave(c->redis));
	assert_int_equal(read_as(c, NULL, 0), DIALECT_DONE);
	assert_int_equal(command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	const struct client_request *request = redis_dialect.leave(c->redis);
	assert_non_null(request);
	assert_int_equal(request->method, CLIENT_RELEASE);
	assert_int_equal(request->core.lock_id.b[0], c->drawn);
	assert_null(redis_dialect.leave(c->redis));
}

int main(void) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, connect, disconnect)
		TEST(test_set_nx_acquires_with_slack),
		TEST(test_held_is_nil_and_an_outage_is_not),
		TEST(test_a_length_is_never_shortened),
		TEST(test_a_moment_is_a_length),
		TEST(test_a_plain_set_with_get_shows_that_the_key_was_free),
		TEST(test_wrong_commands_change_nothing),
		TEST(test_a_plain_set_takes_a_free_key_only),
		TEST(test_waiting_for_a_turn),
		TEST(test_what_is_taken_too_late_is_released),
		TEST(test_waiting_for_a_turn_is_not_late),
		TEST(test_a_renewal_that_comes_too_late_is_an_error),
		TEST(test_a_release_names_the_lock_id_that_was_read),
		TEST(test_another_value_is_left_alone),
		TEST(test_the_last_moment_of_a_lease_does_not_count),
		TEST(test_a_holder_that_has_changed_is_not_released),
		TEST(test_extending_sets_or_adds),
		TEST(test_an_added_length_has_the_same_limit),
		TEST(test_all_keys_or_none),
		TEST(test_the_identity_of_another_is_told),
		TEST(test_databases_have_keys_of_their_own),
		TEST(test_names_are_shown_to_others),
		TEST(test_hello_changes_the_version),
		TEST(test_garbage_closes),
		TEST(test_who_leaves_gives_back_what_it_may_have_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
