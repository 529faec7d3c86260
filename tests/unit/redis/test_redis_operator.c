/* test_redis_operator.c: what the operator allows to clients of Redis: locks without an end,
 * overwriting, Redlock; Sentinel, all keys, and scripts. */
#include "redis_rig.h"

/* ---- locks without an end ---- */

static enum dialect_step read_endless(struct connection *c, const char *value, int64_t left_ms) {
	uint8_t label[LABEL_MAX];
	const struct client_label said = { .without_end = true };
	const struct core_entry entry = { .owner = slice_str("o"), .value = slice_str(value),
		.token = 42, .show_lock_id = true, .lock_id = { { 9 } },
		.weighed = true, .at_least = left_ms * SPAN_MS,
		.label = slice_of(label, client_label_pack(&said, label)) };
	assert_int_equal(c->request->method, CLIENT_GET);
	return rig_reply(c, &(struct core_reply){ .op = CORE_GET, .held = true, .entry = entry });
}

static void test_a_lock_without_an_end_is_kept_by_the_node(void **state) {
	static const char *const commands[] = { "SET k v NX", "SETNX k v", "SET k v" };
	struct connection *c = *state;
	rig_server.settings.keeps = true;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		assert_int_equal(rig_command(c, commands[i]), DIALECT_ASK);
		if (i == 2) {
			assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_ASK);
		}
		assert_int_equal(c->request->core.lease, 60 * SPAN_S);
		assert_true(client_label_unpack(c->request->core.label).without_end);
		const struct id128 lock_id = c->request->core.lock_id;
		const int64_t asked = c->node.now;
		c->node.now += 3 * SPAN_S;
		assert_int_equal(rig_taken(c), DIALECT_TOLD);
		rig_assert_said(c, i == 1 ? ":1\r\n" : "+OK\r\n");
		/* The rig says that it is valid for a second, which counts from the request. */
		assert_int_equal(c->node.kept_until.boot, asked + SPAN_S);
		assert_true(id128_equal(c->node.kept, lock_id));
		assert_string_equal(c->node.kept_key, "k");
	}
}

static void test_what_the_node_cannot_keep_is_released(void **state) {
	struct connection *c = *state;
	rig_server.settings.keeps = true;
	c->node.keep_error = PAWL_EFULL;
	assert_int_equal(rig_command(c, "SETNX k v"), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_true(c->request->gives_back);
	assert_true(id128_equal(c->request->core.lock_id, c->node.kept));
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_DONE);
	assert_true(rig_starts_with(c, "-OOM this node keeps as many locks"));
}

static void test_a_lock_without_an_end_shows_none_while_its_node_lives(void **state) {
	static const char *const commands[] = { "TTL k", "PTTL k", "EXPIRETIME k",
		"PEXPIRETIME k" };
	struct connection *c = *state;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		assert_int_equal(rig_command(c, commands[i]), DIALECT_ASK);
		assert_int_equal(read_endless(c, "v", 50000), DIALECT_DONE);
		rig_assert_said(c, ":-1\r\n");
	}
	assert_int_equal(rig_command(c, "TTL k"), DIALECT_ASK);
	assert_int_equal(read_endless(c, "v", 20100), DIALECT_DONE);
	rig_assert_said(c, ":20\r\n");
}

static void test_a_lock_without_an_end_is_given_none(void **state) {
	static const char *const commands[] = { "EXPIRE k 5", "SET k v XX PX 5", "PSETEX k 5 v" };
	struct connection *c = *state;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		assert_int_equal(rig_command(c, commands[i]), DIALECT_ASK);
		assert_int_equal(read_endless(c, "v", 50000), DIALECT_DONE);
		assert_true(rig_starts_with(c, "-NOPERM this lock was taken without an end"));
	}
	assert_int_equal(rig_command(c, "PERSIST k"), DIALECT_ASK);
	assert_int_equal(read_endless(c, "v", 50000), DIALECT_DONE);
	rig_assert_said(c, ":0\r\n");
	assert_int_equal(rig_command(c, "PERSIST k"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 5000), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-NOPERM a lock that was taken with an end keeps it"));
}

/* ---- what takes a lock from its holder ---- */

static enum dialect_step read_of(struct connection *c, const char *identity, bool show_lock_id) {
	const struct core_entry entry = { .owner = slice_str("o"), .value = slice_str("v"),
		.identity = slice_str(identity), .token = 42, .show_lock_id = show_lock_id,
		.lock_id = { { 9 } }, .weighed = true, .at_least = 5 * SPAN_S };
	return rig_reply(c, &(struct core_reply){ .op = CORE_GET, .held = true, .entry = entry });
}

static void test_deleting_the_lock_of_another_is_a_break(void **state) {
	struct connection *c = *state;
	c->node.identity = "me";
	assert_int_equal(rig_command(c, "DEL k"), DIALECT_ASK);
	assert_int_equal(read_of(c, "me", true), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_DONE);
	rig_assert_said(c, ":1\r\n");
	assert_int_equal(rig_command(c, "UNLINK k"), DIALECT_ASK);
	assert_int_equal(read_of(c, "other", true), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_BREAK);
	assert_int_equal(c->request->core.token, 42);
	assert_true(c->request->core.now);
	assert_int_equal(rig_refused(c, PAWL_EDENIED), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM so it is\r\n");
}

static void test_a_plain_set_breaks_and_takes_if_the_operator_wants_it(void **state) {
	struct connection *c = *state;
	rig_server.settings.overwrites = true;
	assert_int_equal(rig_command(c, "SET k w PX 5000"), DIALECT_ASK);
	assert_int_equal(read_of(c, "other", false), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_BREAK);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_BREAK, .released = true }),
		DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "+OK\r\n");
	assert_int_equal(rig_command(c, "SET k w PX 5000 GET"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 5000), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_int_equal(rig_refused(c, PAWL_ELOST), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_DONE);
	rig_assert_said(c, "-TRYAGAIN the key is not free yet, or another client has just taken "
		"it\r\n");
}

/* ---- Redlock ---- */

static void test_redlock_finds_what_was_taken_through_another_node(void **state) {
	struct connection *c = *state;
	rig_server.settings.redlock = true;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_ASK);
	/* It was only asked for; now it is free. */
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 4000), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_EXTEND);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
		.valid = SPAN_S }), DIALECT_DONE);
	rig_assert_said(c, "+OK\r\n");
	assert_int_equal(rig_command(c, "SET k w NX PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 4000), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
}

static void test_redlock_tries_no_more_than_eight_times(void **state) {
	struct connection *c = *state;
	rig_server.settings.redlock = true;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	for (int i = 0; i < 7; i++) {
		assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_ASK);
		assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_ASK);
	}
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
}

/* It is extended, but was released meanwhile; and then another node is the first to take it. */
static void test_redlock_reads_anew_after_each_try(void **state) {
	struct connection *c = *state;
	rig_server.settings.redlock = true;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_ASK);
		assert_int_equal(rig_read_as(c, "v", 4000), DIALECT_ASK);
		assert_int_equal(c->request->method, CLIENT_EXTEND);
		assert_int_equal(rig_refused(c, PAWL_ELOST), DIALECT_ASK);
		assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	}
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "+OK\r\n");
}

/* Another node may have found the lock meanwhile, and told the client that it has it. */
static void test_redlock_gives_nothing_back(void **state) {
	struct connection *c = *state;
	rig_server.settings.redlock = true;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	assert_null(redis_dialect.leave(c->state));
	c->node.now += 200 * SPAN_MS;
	assert_int_equal(rig_taken(c), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-TRYAGAIN the masters answered too late"));
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	assert_null(redis_dialect.leave(c->state));
}

/* ---- Sentinel ---- */

static void test_a_node_is_the_master_while_it_reaches_a_quorum(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SELECT 3"), DIALECT_DONE);
	assert_int_equal(rig_command(c, "SENTINEL get-master-addr-by-name mymaster"), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str(CLIENT_PROBE_KEY)));
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	rig_assert_said(c, "*2\r\n$8\r\n10.0.0.9\r\n$4\r\n6379\r\n");
	c->node.reached_at = "[::ffff:10.0.0.9]:6379";
	assert_int_equal(rig_command(c, "SENTINEL get-master-addr-by-name mymaster"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	rig_assert_said(c, "*2\r\n$8\r\n10.0.0.9\r\n$4\r\n6379\r\n");
	snprintf(rig_server.settings.advertise, sizeof rig_server.settings.advertise, "[::1]:7");
	assert_int_equal(rig_command(c, "SENTINEL get-master-addr-by-name mymaster"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	rig_assert_said(c, "*2\r\n$3\r\n::1\r\n$1\r\n7\r\n");
	assert_int_equal(rig_command(c, "SENTINEL get-master-addr-by-name mymaster"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ENOQUORUM), DIALECT_DONE);
	rig_assert_said(c, "*-1\r\n");
}

static void test_a_node_without_a_quorum_says_that_the_master_is_down(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SENTINEL MASTERS"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ENOQUORUM), DIALECT_DONE);
	assert_true(rig_starts_with(c, "*1\r\n*18\r\n$4\r\nname\r\n$8\r\nmymaster\r\n"));
	assert_int_equal(buffer_append(&c->out, "", 1), 0);
	assert_non_null(strstr((const char *)c->out.data, "s_down,o_down,master"));
	assert_int_equal(rig_command(c, "SENTINEL CKQUORUM mymaster"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ENOQUORUM), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-NOQUORUM "));
}

static void test_other_questions_to_a_sentinel(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SENTINEL replicas mymaster"), DIALECT_DONE);
	rig_assert_said(c, "*0\r\n");
	assert_int_equal(rig_command(c, "SENTINEL master other"), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-ERR No such master with that name: it is mymaster here"));
	assert_int_equal(rig_command(c, "SENTINEL failover mymaster"), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-ERR Pawl knows SENTINEL"));
	c->node.reached_at = "";
	assert_int_equal(rig_command(c, "SENTINEL get-master-addr-by-name mymaster"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-NOPERM this node has no address"));
}

/* ---- all keys ---- */

static enum dialect_step listed(struct connection *c, const char *const *keys, bool more) {
	struct core_entry list[8] = { { .owner = slice_of(NULL, 0) } };
	size_t count = 0;
	assert_int_equal(c->request->method, CLIENT_LIST);
	for (; keys[count]; count++) {
		list[count] = (struct core_entry){ .key = slice_str(keys[count]), .holders = 1 };
	}
	return rig_reply(c, &(struct core_reply){ .op = CORE_LIST, .entries = list, .count = count,
		.more = more });
}

static void test_keys_and_deleting_them_all_are_for_tests(void **state) {
	static const char *const commands[] = { "KEYS *", "FLUSHDB", "FLUSHALL" };
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		assert_int_equal(rig_command(*state, commands[i]), DIALECT_DONE);
		assert_true(rig_starts_with(*state, "-NOPERM only pawld --dev"));
	}
}

static void test_keys_that_fit_a_pattern(void **state) {
	struct connection *c = *state;
	char line[5 + 513 + 1] = "KEYS ";
	rig_server.settings.dev = true;
	memset(line + 5, '*', 513);
	assert_int_equal(rig_command(c, line), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM a pattern has at most 512 bytes, as a key\r\n");
	assert_int_equal(rig_command(c, "KEYS a*"), DIALECT_ASK);
	assert_int_equal(listed(c, (const char *const[]){ "a", "b", "db3:a", NULL }, true),
		DIALECT_ASK);
	assert_true(slice_equal(c->request->core.after, slice_str("db3:a")));
	assert_int_equal(listed(c, (const char *const[]){ "ab", NULL }, false), DIALECT_DONE);
	rig_assert_said(c, "*2\r\n$1\r\na\r\n$2\r\nab\r\n");
	assert_int_equal(rig_command(c, "SELECT 3"), DIALECT_DONE);
	assert_int_equal(rig_command(c, "DBSIZE"), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str("db3:")));
	assert_int_equal(listed(c, (const char *const[]){ "db3:a", NULL }, false), DIALECT_DONE);
	rig_assert_said(c, ":1\r\n");
}

static void test_all_keys_are_deleted_list_by_list(void **state) {
	struct connection *c = *state;
	rig_server.settings.dev = true;
	assert_int_equal(rig_command(c, "FLUSHALL"), DIALECT_ASK);
	assert_int_equal(listed(c, (const char *const[]){ "db3:a", NULL }, false), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 5000), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str("db3:a")));
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_ASK);
	assert_int_equal(listed(c, (const char *const[]){ NULL }, false), DIALECT_DONE);
	rig_assert_said(c, "+OK\r\n");
}

/* ---- scripts ---- */

static void test_a_script_has_the_keys_that_it_uses(void **state) {
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	assert_true(script_sha1_parse(slice_str("8f4d42e76cbb4fad0f45e575441b8a269ebc173c"), form));
	scripts_learn(&rig_server.scripts, sha1, script_find_form(form));
	assert_int_equal(rig_command(c,
		"EVALSHA 0000000000000000000000000000000000000000 2 a b v"), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM this script has 1 key\r\n");
	assert_int_equal(rig_command(c,
		"EVALSHA 0000000000000000000000000000000000000000 1 a v"), DIALECT_ASK);
	assert_true(c->request->urgent);
}

static void test_an_unknown_script_is_told_to_the_operator(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "EVAL return 1 k"), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-NOPERM Pawl does not run scripts"));
	assert_string_equal(c->node.unknown, "63143b6f8007b98c53ca2149822777b3566f9241");
}

static void test_an_answer_that_did_not_leave_is_taken_back(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k v PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_ASK);
	const struct id128 lock_id = c->request->core.lock_id;
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	const struct client_request *request = redis_dialect.leave(c->state);
	assert_non_null(request);
	assert_int_equal(request->method, CLIENT_RELEASE);
	assert_true(request->gives_back);
	assert_true(id128_equal(request->core.lock_id, lock_id));
	assert_null(redis_dialect.leave(c->state));
}

UNIT(redis_operator) {
	const struct CMUnitTest tests[] = {
		TEST(test_a_lock_without_an_end_is_kept_by_the_node),
		TEST(test_what_the_node_cannot_keep_is_released),
		TEST(test_a_lock_without_an_end_shows_none_while_its_node_lives),
		TEST(test_a_lock_without_an_end_is_given_none),
		TEST(test_deleting_the_lock_of_another_is_a_break),
		TEST(test_a_plain_set_breaks_and_takes_if_the_operator_wants_it),
		TEST(test_redlock_finds_what_was_taken_through_another_node),
		TEST(test_redlock_tries_no_more_than_eight_times),
		TEST(test_redlock_reads_anew_after_each_try),
		TEST(test_redlock_gives_nothing_back),
		TEST(test_a_node_is_the_master_while_it_reaches_a_quorum),
		TEST(test_a_node_without_a_quorum_says_that_the_master_is_down),
		TEST(test_other_questions_to_a_sentinel),
		TEST(test_keys_and_deleting_them_all_are_for_tests),
		TEST(test_keys_that_fit_a_pattern),
		TEST(test_all_keys_are_deleted_list_by_list),
		TEST(test_a_script_has_the_keys_that_it_uses),
		TEST(test_an_unknown_script_is_told_to_the_operator),
		TEST(test_an_answer_that_did_not_leave_is_taken_back),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
