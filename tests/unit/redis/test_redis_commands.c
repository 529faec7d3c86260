/* test_redis_commands.c: which requests a command makes, and how their answers look to a client of
 * Redis. */
#include "redis_rig.h"

/* ---- taking ---- */

static void test_set_nx_acquires_with_slack(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	const struct core_request *core = &c->request->core;
	assert_int_equal(core->op, CORE_ACQUIRE);
	assert_true(slice_equal(core->key, slice_str("k")));
	assert_true(slice_equal(core->value, slice_str("v")));
	assert_true(slice_equal(core->owner, slice_str("10.0.0.1:5")));
	assert_int_equal(core->lock_id.b[0], 1);
	assert_int_equal(core->lease, RIG_LEASE(5100 * SPAN_MS));
	assert_int_equal(core->wait, 0);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "+OK\r\n");
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
		assert_int_equal(rig_command(*state, "SET k v NX EX 5"), DIALECT_ASK);
		assert_int_equal(rig_refused(*state, errors[i].error), DIALECT_DONE);
		rig_assert_said(*state, errors[i].said);
	}
}

static void test_an_error_names_the_parameter_or_the_limit(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	rig_reply(c, &(struct core_reply){ .op = CORE_ACQUIRE, .error = PAWL_ETOOLARGE,
		.field = "value" });
	assert_true(rig_starts_with(c, "-OOM value is larger than [limits] value_bytes"));
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	rig_reply(c, &(struct core_reply){ .op = CORE_ACQUIRE, .error = PAWL_EFULL,
		.field = "keys" });
	assert_true(rig_starts_with(c, "-OOM "));
	assert_int_equal(buffer_append(&c->out, "", 1), 0);
	assert_non_null(strstr((const char *)c->out.data, " (keys)\r\n"));
}

static void test_a_length_is_never_shortened(void **state) {
	assert_int_equal(rig_command(*state, "SET k v NX PX 59301"), DIALECT_DONE);
	rig_assert_said(*state, "-NOPERM a lock of 59301 ms is longer than this cluster allows, "
		"which is 59300 ms (max_lease, less the drift and the slack): take it "
		"for less, and renew it, or raise max_lease\r\n");
	assert_int_equal(rig_command(*state, "SET k v NX PX 59300"), DIALECT_ASK);
}

/* The sentence names the remedy, and not a length below zero. */
static void test_a_slack_of_a_whole_lease_is_said(void **state) {
	struct connection *c = *state;
	rig_server.settings.slack = 300 * SPAN_S;
	assert_int_equal(rig_command(c, "SET k v NX PX 1"), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM [redis] slack of this node is as long as the longest lease of "
		"this cluster, so it grants nothing: lower it\r\n");
}

static void test_a_moment_is_a_length(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k v NX PXAT 1000250"), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, RIG_LEASE(350 * SPAN_MS));
	rig_refused(c, PAWL_EHELD);
	assert_int_equal(rig_command(c, "SET k v NX EXAT 1000"), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM the moment at which the key is to end is over\r\n");
}

/* With GET, the answer is what the key had before. */
static void test_a_plain_set_with_get_shows_that_the_key_was_free(void **state) {
	assert_int_equal(rig_command(*state, "SET k v GET PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, NULL, 0), DIALECT_ASK);
	assert_int_equal(rig_taken(*state), DIALECT_TOLD);
	rig_assert_said(*state, "$-1\r\n");
}

static void test_wrong_commands_change_nothing(void **state) {
	static const char *const wrong[] = { "SET k v", "SET k v NX", "SETNX k v",
		"SET k v NX XX PX 5", "SET k v NX PX", "SET k v NX PX x", "SET k v NX PX 0",
		"SET k v NX PX 5 EX 5", "SET k v WHAT", "GET", "GET a b", "NONE", "PEXPIRE k x",
		"EVAL", "EVAL x 1", "EVALSHA a -1", "SELECT 16", "DELEX k IFNE v",
		"PAWL.WAIT k v 5 -1" };
	struct connection *c = *state;
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(rig_command(c, wrong[i]), DIALECT_DONE);
		assert_null(c->request);
		assert_true(c->out.size > 0 && c->out.data[0] == '-');
	}
}

/* phpredis answers false to ERR, as to nil: a lock that Redis would have granted would look held by
 * somebody else. */
static void test_only_what_redis_refuses_as_well_is_err(void **state) {
	static const char *const unable[] = { "HSETNX k f v", "RPUSH k v", "SET k v XX",
		"SET k v XX KEEPTTL", "SET k v NX PXAT 1", "PEXPIRE k 0", "EXPIRE k -1",
		"EXPIRE k 5 NX", "EVAL x 0", "SET k v", "KEYS *", "FLUSHALL" };
	static const char *const wrong[] = { "GET", "SET k v NX XX PX 5", "SET k v NX PX x",
		"SELECT 16" };
	struct connection *c = *state;
	for (size_t i = 0; i < sizeof unable / sizeof unable[0]; i++) {
		assert_int_equal(rig_command(c, unable[i]), DIALECT_DONE);
		assert_true(rig_starts_with(c, "-NOPERM "));
	}
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(rig_command(c, wrong[i]), DIALECT_DONE);
		assert_true(rig_starts_with(c, "-ERR "));
	}
}

/* The client counts all of its commands as failed, so none may have taken anything. */
static void test_no_command_of_a_transaction_has_an_effect(void **state) {
	static const char *const ends[] = { "EXEC", "DISCARD", "RESET" };
	static const char *const says[] = { "-EXECABORT ", "+OK", "+RESET" };
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "EXEC"), DIALECT_DONE);
	rig_assert_said(c, "-ERR EXEC without MULTI\r\n");
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
		assert_int_equal(rig_command(c, "MULTI"), DIALECT_DONE);
		assert_true(rig_starts_with(c, "-NOPERM Pawl has no transactions"));
		assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_DONE);
		assert_true(rig_starts_with(c, "-NOPERM Pawl has no transactions"));
		assert_int_equal(rig_command(c, ends[i]), DIALECT_DONE);
		assert_true(rig_starts_with(c, says[i]));
		assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
		rig_refused(c, PAWL_EHELD);
	}
}

static void test_a_plain_set_takes_a_free_key_only(void **state) {
	assert_int_equal(rig_command(*state, "SET k v PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, "w", 1000), DIALECT_DONE);
	rig_assert_said(*state, "-NOPERM the key is held: Pawl does not overwrite a lock ([redis] "
		"overwrite of this node). Take it with NX; renew it with the value that it has, or "
		"change that by IFEQ\r\n");
	assert_int_equal(rig_command(*state, "SET k v PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, NULL, 0), DIALECT_ASK);
	assert_int_equal(rig_taken(*state), DIALECT_TOLD);
	rig_assert_said(*state, "+OK\r\n");
}

static void test_waiting_for_a_turn(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "PAWL.WAIT k v 5000 2500"), DIALECT_ASK);
	assert_int_equal(c->request->core.wait, 2500 * SPAN_MS);
	assert_int_equal(rig_refused(c, PAWL_ETIMEOUT), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
	rig_server.settings.patience = 50 * SPAN_MS;
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	assert_int_equal(c->request->core.wait, 50 * SPAN_MS);
}

/* The lease began 111 ms ago, and is only 100 ms longer than what the client counts on. */
static void test_what_is_taken_too_late_is_released(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k v NX PX 900"), DIALECT_ASK);
	const struct id128 lock_id = c->request->core.lock_id;
	c->node.now += 121 * SPAN_MS;
	/* Which says that it was in the queue for 10 ms. */
	assert_int_equal(rig_taken(c), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_true(slice_equal(c->request->core.key, slice_str("k")));
	assert_int_equal(c->request->core.lock_id.b[0], lock_id.b[0]);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_DONE);
	assert_true(rig_starts_with(c, "-TRYAGAIN the masters answered too late"));
}

static void test_waiting_for_a_turn_is_not_late(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "PAWL.WAIT k v 900 5000"), DIALECT_ASK);
	c->node.now += 3050 * SPAN_MS;
	/* 3000 ms in the queue and a lease of 1000 ms, less 1 %. */
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_ACQUIRE,
		.lock_id = c->request->core.lock_id, .token = 42, .valid = 3960 * SPAN_MS }),
		DIALECT_TOLD);
	rig_assert_said(c, "+OK\r\n");
}

static void test_a_renewal_that_comes_too_late_is_an_error(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k w IFEQ v PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 1100), DIALECT_ASK);
	assert_int_equal(rig_updated(c), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_EXTEND);
	c->node.now += 101 * SPAN_MS;
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
		.valid = 5049 * SPAN_MS }), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-TRYAGAIN the masters answered too late"));
}

/* ---- compare and act ---- */

static void test_a_release_names_the_lock_id_that_was_read(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "DELIFEQ k v"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 1000), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_RELEASE);
	assert_int_equal(c->request->core.lock_id.b[0], 9);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_RELEASE, .released = true }),
		DIALECT_DONE);
	rig_assert_said(c, ":1\r\n");
}

static void test_a_set_with_xx_renews_the_same_value_and_overwrites_none(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SET k v XX PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 1000), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_EXTEND);
	assert_int_equal(rig_extended(c), DIALECT_DONE);
	rig_assert_said(c, "+OK\r\n");
	assert_int_equal(rig_command(c, "SET k v XX PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
	/* A late holder: another one of its identity has the key by now. */
	assert_int_equal(rig_command(c, "SET k v XX GET PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "w", 1000), DIALECT_DONE);
	assert_true(rig_starts_with(c, "-NOPERM the key is held: Pawl does not overwrite a lock"));
	rig_server.settings.overwrites = true;
	assert_int_equal(rig_command(c, "SET k v XX PX 5000"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "w", 1000), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_UPDATE);
	assert_int_equal(rig_updated(c), DIALECT_ASK);
	assert_int_equal(rig_extended(c), DIALECT_DONE);
	rig_assert_said(c, "+OK\r\n");
}

static void test_another_value_is_left_alone(void **state) {
	assert_int_equal(rig_command(*state, "DELEX k IFEQ v"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, "w", 1000), DIALECT_DONE);
	rig_assert_said(*state, ":0\r\n");
}

static void test_the_last_moment_of_a_lease_does_not_count(void **state) {
	assert_int_equal(rig_command(*state, "GET k"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, "v", 101), DIALECT_DONE);
	rig_assert_said(*state, "$1\r\nv\r\n");
	assert_int_equal(rig_command(*state, "GET k"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, "v", 100), DIALECT_DONE);
	rig_assert_said(*state, "$-1\r\n");
	assert_int_equal(rig_command(*state, "PTTL k"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, "v", 1100), DIALECT_DONE);
	rig_assert_said(*state, ":1000\r\n");
}

/* It is read as GET reads it: from a quorum (rig_read), and not in the last moment. */
static void test_the_length_of_a_value_is_in_bytes(void **state) {
	static const struct {
		const char *value;
		int64_t left_ms;
		const char *said;
	} cases[] = { { "old", 101, ":3\r\n" }, { "\xc3\xa4", 101, ":2\r\n" },
		{ "", 101, ":0\r\n" }, { "old", 100, ":0\r\n" }, { NULL, 0, ":0\r\n" } };
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		assert_int_equal(rig_command(*state, "STRLEN k"), DIALECT_ASK);
		assert_int_equal(rig_read_as(*state, cases[i].value, cases[i].left_ms),
			DIALECT_DONE);
		rig_assert_said(*state, cases[i].said);
	}
}

static void test_a_holder_that_has_changed_is_not_released(void **state) {
	assert_int_equal(rig_command(*state, "DELIFEQ k v"), DIALECT_ASK);
	assert_int_equal(rig_read_as(*state, "v", 1000), DIALECT_ASK);
	assert_int_equal(rig_refused(*state, PAWL_ELOST), DIALECT_DONE);
	rig_assert_said(*state, ":0\r\n");
}

static void test_extending_sets_or_adds(void **state) {
	static const char script[] = "EVALSHA 0000000000000000000000000000000000000000 1 k v 500 ";
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	char line[128];
	assert_true(script_sha1_parse(slice_str("a170a02924d436223050f919c99fd01f544a0933"), form));
	scripts_learn(&rig_server.scripts, sha1, script_find_form(form));
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof line, "%s%d", script, i);
		assert_int_equal(rig_command(c, line), DIALECT_ASK);
		assert_int_equal(rig_read_as(c, "v", 1100), DIALECT_ASK);
		assert_int_equal(c->request->method, CLIENT_EXTEND);
		assert_int_equal(c->request->core.lease,
			RIG_LEASE((i == 0 ? 1600 : 600) * SPAN_MS));
		assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
			.valid = SPAN_S }), DIALECT_DONE);
		rig_assert_said(c, ":1\r\n");
	}
}

static void test_an_added_length_has_the_same_limit(void **state) {
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	assert_true(script_sha1_parse(slice_str("a170a02924d436223050f919c99fd01f544a0933"), form));
	scripts_learn(&rig_server.scripts, sha1, script_find_form(form));
	assert_int_equal(rig_command(c,
		"EVALSHA 0000000000000000000000000000000000000000 1 k v 50000 0"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 20000), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ETOOLONG), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM so it is\r\n");
}

static void test_all_keys_or_none(void **state) {
	struct connection *c = *state;
	uint8_t sha1[SCRIPT_SHA1_BYTES] = { 0 }, form[SCRIPT_SHA1_BYTES];
	assert_true(script_sha1_parse(slice_str("7aee5c20c8573227df2105d36dc94a1aeddc887e"), form));
	scripts_learn(&rig_server.scripts, sha1, script_find_form(form));
	assert_int_equal(rig_command(c,
		"EVALSHA 0000000000000000000000000000000000000000 2 a b v 500"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 1100), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str("b")));
	assert_int_equal(rig_read_as(c, "w", 1100), DIALECT_DONE);
	rig_assert_said(c, ":0\r\n");
}

/* Lets this digest stand for the script whose normal form has that one. */
static void know_script(const char *sha1_text, const char *form_text) {
	uint8_t sha1[SCRIPT_SHA1_BYTES], form[SCRIPT_SHA1_BYTES];
	assert_true(script_sha1_parse(slice_str(sha1_text), sha1));
	assert_true(script_sha1_parse(slice_str(form_text), form));
	assert_non_null(script_find_form(form));
	scripts_learn(&rig_server.scripts, sha1, script_find_form(form));
}

/* redislock names value, the length of its token, and the time. */
static void test_redislock_obtains_and_obtains_again(void **state) {
	static const char obtain[] =
		"EVALSHA 80a1b5f2cfccec3b7119ba7721d2127682b691a7 1 k token 5 500";
	struct connection *c = *state;
	know_script("80a1b5f2cfccec3b7119ba7721d2127682b691a7",
		"a9aaf1f25844d427a6dd28e883fdb25bc4eaeca9");
	assert_int_equal(rig_command(c, obtain), DIALECT_ASK);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_GET }), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_ACQUIRE);
	assert_true(slice_equal(c->request->core.value, slice_str("token")));
	assert_int_equal(c->request->core.lease, RIG_LEASE(600 * SPAN_MS));
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
	assert_int_equal(rig_command(c, obtain), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "token", 400), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_EXTEND);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_EXTEND, .token = 42,
		.valid = SPAN_S }), DIALECT_DONE);
	rig_assert_said(c, "+OK\r\n");
	assert_int_equal(rig_command(c, obtain), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "another", 400), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
}

static void test_redislock_obtains_several_keys_and_releases_all_or_none(void **state) {
	struct connection *c = *state;
	know_script("eb0c00d98f6f33b4262419a509002884540f30be",
		"6781eaab2f0597bd0b0808d5d34bc292fda9e5ca");
	know_script("9470c810040e272ee6c579d8d4331aaf6332a7b1",
		"297465e2f1b290e75479bb3b743f1357eef69eb4");
	assert_int_equal(rig_command(c,
		"EVALSHA eb0c00d98f6f33b4262419a509002884540f30be 2 a b v 1 500"), DIALECT_ASK);
	assert_int_equal(c->request->core.lock_count, 2);
	assert_int_equal(rig_refused(c, PAWL_EHELD), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
	assert_int_equal(rig_command(c,
		"EVALSHA 9470c810040e272ee6c579d8d4331aaf6332a7b1 2 a b v"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, "v", 1100), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_GET);
	assert_int_equal(rig_read_as(c, "w", 1100), DIALECT_DONE);
	rig_assert_said(c, "$-1\r\n");
}

static void test_the_identity_of_another_is_told(void **state) {
	struct connection *c = *state;
	const struct core_entry entry = { .owner = slice_str("o"), .value = slice_str("v"),
		.token = 42, .weighed = true, .at_least = SPAN_S };
	assert_int_equal(rig_command(c, "DEL k"), DIALECT_ASK);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_GET, .held = true,
		.entry = entry }), DIALECT_DONE);
	rig_assert_said(c, "-NOPERM this lock belongs to another identity\r\n");
}

/* ---- the connection ---- */

static void test_databases_have_keys_of_their_own(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "SELECT 3"), DIALECT_DONE);
	assert_int_equal(rig_command(c, "GET k"), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.key, slice_str("db3:k")));
}

static void test_names_are_shown_to_others(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "CLIENT SETNAME web1"), DIALECT_DONE);
	assert_int_equal(rig_command(c, "CLIENT SETINFO LIB-NAME redis-py"), DIALECT_DONE);
	assert_int_equal(rig_command(c, "SET k v NX PX 5"), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.owner, slice_str("web1")));
	assert_true(slice_equal(client_label_unpack(c->request->core.label).text,
		slice_str("redis-py")));
}

static void test_hello_changes_the_version(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "HELLO 4"), DIALECT_DONE);
	rig_assert_said(c, "-NOPROTO unsupported protocol version\r\n");
	assert_int_equal(rig_command(c, "HELLO 3 SETNAME me"), DIALECT_DONE);
	assert_int_equal(c->out.data[0], '%');
	assert_int_equal(rig_command(c, "GET k"), DIALECT_ASK);
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	rig_assert_said(c, "_\r\n");
}

static void test_garbage_closes(void **state) {
	struct connection *c = *state;
	size_t size;
	assert_int_equal(redis_dialect.serve(c->state, slice_str("*x\r\n"), &size, &c->out,
		&c->request), DIALECT_CLOSE);
	rig_assert_said(c, "-ERR Protocol error: invalid multibulk length: Pawl takes at most "
		"256 arguments\r\n");
	assert_int_equal(rig_command(c, "QUIT"), DIALECT_CLOSE);
}

static void test_who_leaves_gives_back_what_it_may_have_taken(void **state) {
	struct connection *c = *state;
	assert_null(redis_dialect.leave(c->state));
	assert_int_equal(rig_command(c, "GET k"), DIALECT_ASK);
	assert_null(redis_dialect.leave(c->state));
	assert_int_equal(rig_read_as(c, NULL, 0), DIALECT_DONE);
	assert_int_equal(rig_command(c, "SET k v NX PX 5000"), DIALECT_ASK);
	const struct client_request *request = redis_dialect.leave(c->state);
	assert_non_null(request);
	assert_int_equal(request->method, CLIENT_RELEASE);
	assert_int_equal(request->core.lock_id.b[0], c->node.drawn);
	assert_null(redis_dialect.leave(c->state));
}

UNIT(redis_commands) {
	const struct CMUnitTest tests[] = {
		TEST(test_set_nx_acquires_with_slack),
		TEST(test_held_is_nil_and_an_outage_is_not),
		TEST(test_an_error_names_the_parameter_or_the_limit),
		TEST(test_a_length_is_never_shortened),
		TEST(test_a_slack_of_a_whole_lease_is_said),
		TEST(test_a_moment_is_a_length),
		TEST(test_a_plain_set_with_get_shows_that_the_key_was_free),
		TEST(test_wrong_commands_change_nothing),
		TEST(test_only_what_redis_refuses_as_well_is_err),
		TEST(test_no_command_of_a_transaction_has_an_effect),
		TEST(test_a_plain_set_takes_a_free_key_only),
		TEST(test_waiting_for_a_turn),
		TEST(test_what_is_taken_too_late_is_released),
		TEST(test_waiting_for_a_turn_is_not_late),
		TEST(test_a_renewal_that_comes_too_late_is_an_error),
		TEST(test_a_release_names_the_lock_id_that_was_read),
		TEST(test_a_set_with_xx_renews_the_same_value_and_overwrites_none),
		TEST(test_another_value_is_left_alone),
		TEST(test_the_last_moment_of_a_lease_does_not_count),
		TEST(test_the_length_of_a_value_is_in_bytes),
		TEST(test_a_holder_that_has_changed_is_not_released),
		TEST(test_extending_sets_or_adds),
		TEST(test_an_added_length_has_the_same_limit),
		TEST(test_all_keys_or_none),
		TEST(test_redislock_obtains_and_obtains_again),
		TEST(test_redislock_obtains_several_keys_and_releases_all_or_none),
		TEST(test_the_identity_of_another_is_told),
		TEST(test_databases_have_keys_of_their_own),
		TEST(test_names_are_shown_to_others),
		TEST(test_hello_changes_the_version),
		TEST(test_garbage_closes),
		TEST(test_who_leaves_gives_back_what_it_may_have_taken),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
