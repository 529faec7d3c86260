/* test_memcached_commands.c: which requests the classic commands make, and how their answers look
 * to a client of memcached. */
#include "unit.h"

#include <stdio.h>

#include "memcached_rig.h"

#define HELD "SERVER_ERROR the key is held: Pawl does not overwrite a lock"

/* ---- taking ---- */

static void test_add_acquires_with_slack(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "add k 0 5 1\r\nv"), DIALECT_ASK);
	const struct core_request *core = &c->request->core;
	assert_int_equal(core->op, CORE_ACQUIRE);
	assert_true(slice_equal(core->key, slice_str("k")));
	assert_true(slice_equal(core->value, slice_str("v")));
	assert_true(slice_equal(core->owner, slice_str("10.0.0.1:5")));
	assert_int_equal(core->lock_id.b[0], 1);
	assert_int_equal(core->lease, RIG_LEASE(5100 * SPAN_MS));
	assert_int_equal(core->wait, 0);
	assert_true(slice_equal(client_label_unpack(core->label).text, slice_str("memcached")));
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "STORED\r\n");
}

static void test_held_is_not_stored_and_an_outage_is_an_error(void **state) {
	static const struct {
		int error;
		const char *said;
	} errors[] = {
		{ PAWL_EHELD, "NOT_STORED\r\n" },
		{ PAWL_ENOQUORUM, "SERVER_ERROR no_quorum: so it is\r\n" },
		{ PAWL_ERECOVERING, "SERVER_ERROR recovering: so it is\r\n" },
		{ PAWL_EDENIED, "SERVER_ERROR denied: so it is\r\n" },
		{ PAWL_EFULL, "SERVER_ERROR full: so it is\r\n" },
		{ PAWL_EUNSURE, "SERVER_ERROR unsure: so it is\r\n" },
		{ PAWL_EBUSY, "SERVER_ERROR busy: so it is\r\n" },
		{ PAWL_EQUOTA, "SERVER_ERROR quota: so it is\r\n" },
		{ PAWL_ETOOLARGE, "SERVER_ERROR too_large: so it is\r\n" },
	};
	for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
		assert_int_equal(rig_command(*state, "add k 0 5 1\r\nv"), DIALECT_ASK);
		assert_int_equal(rig_refused(*state, errors[i].error), DIALECT_DONE);
		rig_assert_said(*state, errors[i].said);
	}
}

static void test_patience_is_for_add(void **state) {
	struct connection *c = *state;
	rig_server.settings.patience = 50 * SPAN_MS;
	assert_int_equal(rig_command(c, "add k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(c->request->core.wait, 50 * SPAN_MS);
	assert_int_equal(rig_refused(c, PAWL_ETIMEOUT), DIALECT_DONE);
	rig_assert_said(c, "NOT_STORED\r\n");
}

static void test_what_is_taken_too_late_is_released(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "add k 0 1 1\r\nv"), DIALECT_ASK);
	c->node.now += 201 * SPAN_MS;
	assert_int_equal(rig_taken(c), DIALECT_ASK);
	assert_int_equal(rig_released(c), DIALECT_DONE);
	rig_assert_said(c, "SERVER_ERROR the masters answered too late for the whole time: "
		"[memcached] slack of this node is shorter than that took\r\n");
}

static void test_set_takes_a_free_key(void **state) {
	assert_int_equal(rig_command(*state, "set k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_ASK);
	assert_int_equal(rig_taken(*state), DIALECT_TOLD);
	rig_assert_said(*state, "STORED\r\n");
	assert_int_equal(rig_command(*state, "set k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_ASK);
	assert_int_equal(rig_refused(*state, PAWL_EHELD), DIALECT_DONE);
	rig_assert_said(*state, "SERVER_ERROR the key is not free yet, or another client has "
		"just taken it\r\n");
}

static void test_set_renews_the_same_value_and_overwrites_none(void **state) {
	assert_int_equal(rig_command(*state, "set k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_extended(*state), DIALECT_DONE);
	rig_assert_said(*state, "STORED\r\n");
	assert_int_equal(rig_command(*state, "set k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "w", "memcached", 1000), DIALECT_DONE);
	assert_true(rig_starts_with(*state, HELD));
}

static void test_replace_renews_the_same_value_and_overwrites_none(void **state) {
	static const char *const texts[] = { "replace k 0 5 1\r\nv", "ms k 1 T5 MR\r\nv" };
	struct connection *c = *state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		rig_server.settings.overwrites = false;
		assert_int_equal(rig_command(c, texts[i]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "v", "memcached", 1000), DIALECT_ASK);
		assert_int_equal(c->request->method, CLIENT_EXTEND);
		assert_int_equal(rig_extended(c), DIALECT_DONE);
		assert_true(rig_starts_with(c, i ? "HD" : "STORED"));
		assert_int_equal(rig_command(c, texts[i]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_DONE);
		assert_true(rig_starts_with(c, HELD));
		rig_server.settings.overwrites = true;
		assert_int_equal(rig_command(c, texts[i]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_ASK);
		assert_int_equal(c->request->method, CLIENT_UPDATE);
		assert_int_equal(rig_refused(c, PAWL_ELOST), DIALECT_DONE);
		assert_true(rig_starts_with(c, i ? "NS" : "NOT_STORED"));
	}
}

/* ---- reading ---- */

static void test_get_shows_what_is_held(void **state) {
	assert_int_equal(rig_command(*state, "get a b c"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "x", "memcached flags=16", 1000), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "", "redis-py", 1000), DIALECT_DONE);
	rig_assert_said(*state, "VALUE a 16 1\r\nx\r\nVALUE c 0 0\r\n\r\nEND\r\n");
}

static void test_the_unique_is_the_fencing_token(void **state) {
	assert_int_equal(rig_command(*state, "gets a"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "x", "memcached", 1000), DIALECT_DONE);
	rig_assert_said(*state, "VALUE a 0 1 42\r\nx\r\nEND\r\n");
}

static void test_the_last_moment_of_a_lease_does_not_count(void **state) {
	assert_int_equal(rig_command(*state, "get k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 100), DIALECT_DONE);
	rig_assert_said(*state, "END\r\n");
}

static void test_gat_renews_what_it_shows(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "gats 5 a b c"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "x", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, RIG_LEASE(5100 * SPAN_MS));
	assert_int_equal(rig_extended(c), DIALECT_ASK);
	/* The second one is lost between the two steps. */
	assert_int_equal(rig_read(c, "y", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ELOST), DIALECT_ASK);
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(c, "VALUE a 0 1 42\r\nx\r\nEND\r\n");
	assert_int_equal(rig_command(c, "gat 5 a"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "x", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ELOST), DIALECT_DONE);
	rig_assert_said(c, "END\r\n");
}

/* ---- client flags ---- */

static void test_client_flags_are_kept(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "add k 4294967295 5 1\r\nv"), DIALECT_ASK);
	assert_true(slice_equal(client_label_unpack(c->request->core.label).text,
		slice_str("memcached flags=4294967295")));
	rig_refused(c, PAWL_EHELD);
	assert_int_equal(rig_command(c, "get k"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached flags=4294967295", 1000), DIALECT_DONE);
	rig_assert_said(c, "VALUE k 4294967295 1\r\nv\r\nEND\r\n");
	assert_int_equal(rig_command(c, "get k"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached flags=4294967296", 1000), DIALECT_DONE);
	rig_assert_said(c, "VALUE k 0 1\r\nv\r\nEND\r\n");
}

static void test_client_flags_are_not_changed_in_silence(void **state) {
	static const char *const other[] = { "set k 1 5 1\r\nv", "replace k 1 5 1\r\nv",
		"cas k 1 5 1 42\r\nw", "ms k 1 T5 F1 MR\r\nv" };
	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++) {
		assert_int_equal(rig_command(*state, other[i]), DIALECT_ASK);
		assert_int_equal(rig_read(*state, "v", "memcached flags=2", 1000), DIALECT_DONE);
		rig_assert_said(*state, "SERVER_ERROR the client flags of a key that is held "
			"cannot be changed\r\n");
	}
}

/* ---- compare and act ---- */

static void test_cas_replaces_what_has_the_token(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "cas k 0 5 1 42\r\nw"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached", 1000), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.value, slice_str("w")));
	assert_int_equal(rig_updated(c), DIALECT_ASK);
	assert_int_equal(rig_extended(c), DIALECT_DONE);
	rig_assert_said(c, "STORED\r\n");
	assert_int_equal(rig_command(c, "cas k 0 5 1 41\r\nw"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached", 1000), DIALECT_DONE);
	rig_assert_said(c, "EXISTS\r\n");
	assert_int_equal(rig_command(c, "cas k 0 5 1 42\r\nw"), DIALECT_ASK);
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(c, "NOT_FOUND\r\n");
}

/* As with memcached, a cas fails after another change of the same holder, too. */
static void test_the_unique_changes_with_the_value(void **state) {
	struct connection *c = *state;
	c->written = 50;
	assert_int_equal(rig_command(c, "gets k"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_DONE);
	rig_assert_said(c, "VALUE k 0 1 50\r\nw\r\nEND\r\n");
	assert_int_equal(rig_command(c, "cas k 0 5 1 42\r\nx"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_DONE);
	rig_assert_said(c, "EXISTS\r\n");
	assert_int_equal(rig_command(c, "cas k 0 5 1 50\r\nx"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_ASK);
	assert_true(c->request->core.expect_seq);
	assert_int_equal(c->request->core.expected_seq.clock, 50);
	assert_int_equal(rig_refused(c, PAWL_EMISMATCH), DIALECT_ASK);
	c->written = 60;
	assert_int_equal(rig_read(c, "x", "memcached", 1000), DIALECT_DONE);
	rig_assert_said(c, "EXISTS\r\n");
}

static void test_replace_touch_and_delete_need_a_holder(void **state) {
	static const char *const texts[][2] = { { "replace k 0 5 1\r\nv", "NOT_STORED\r\n" },
		{ "touch k 5", "NOT_FOUND\r\n" }, { "delete k", "NOT_FOUND\r\n" },
		{ "delete k 0", "NOT_FOUND\r\n" } };
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		assert_int_equal(rig_command(*state, texts[i][0]), DIALECT_ASK);
		assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
		rig_assert_said(*state, texts[i][1]);
		/* Another one has it by now. */
		assert_int_equal(rig_command(*state, texts[i][0]), DIALECT_ASK);
		assert_int_equal(rig_read(*state, "v", "memcached", 1000), DIALECT_ASK);
		assert_int_equal(rig_refused(*state, PAWL_ELOST), DIALECT_DONE);
		rig_assert_said(*state, texts[i][1]);
	}
	assert_int_equal(rig_command(*state, "delete k"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_released(*state), DIALECT_DONE);
	rig_assert_said(*state, "DELETED\r\n");
}

static void test_set_may_break_the_lock_of_another_value(void **state) {
	struct connection *c = *state;
	rig_server.settings.overwrites = true;
	assert_int_equal(rig_command(c, "set k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_released(c), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "STORED\r\n");
	c->holder = "another";
	assert_int_equal(rig_command(c, "ms k 1 T5\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_broken(c), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "HD\r\n");
}

static void test_delete_breaks_the_lock_of_another_identity(void **state) {
	struct connection *c = *state;
	c->holder = "another";
	assert_int_equal(rig_command(c, "delete k"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_broken(c), DIALECT_DONE);
	rig_assert_said(c, "DELETED\r\n");
	assert_int_equal(rig_command(c, "delete k"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_EDENIED), DIALECT_DONE);
	rig_assert_said(c, "SERVER_ERROR denied: so it is\r\n");
}

static void test_the_identity_of_another_is_told(void **state) {
	const struct core_entry entry = { .owner = slice_str("o"), .value = slice_str("v"),
		.token = 42, .weighed = true, .at_least = SPAN_S };
	assert_int_equal(rig_command(*state, "touch k 5"), DIALECT_ASK);
	assert_int_equal(rig_reply(*state, &(struct core_reply){ .op = CORE_GET, .held = true,
		.entry = entry }), DIALECT_DONE);
	rig_assert_said(*state, "SERVER_ERROR this lock belongs to another identity\r\n");
}

/* ---- the rest ---- */

static void test_without_a_reply(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "add k 0 5 1 noreply\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_DONE);
	rig_assert_said(c, "");
	assert_int_equal(rig_command(c, "delete k noreply"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_ENOQUORUM), DIALECT_DONE);
	rig_assert_said(c, "");
	assert_int_equal(rig_command(c, "incr k 1 noreply"), DIALECT_DONE);
	rig_assert_said(c, "");
	assert_int_equal(rig_command(c, "get noreply"), DIALECT_ASK);
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(c, "END\r\n");
}

static void test_wrong_commands_change_nothing(void **state) {
	static const char *const wrong[] = { "", "get", "touch k", "touch k x", "gat 5", "gat x k",
		"delete k 5", "add k x 5 1\r\nv", "add k 4294967296 5 1\r\nv", "add k 0 5.5 1\r\nv",
		"add k 0 5 1 noreply x\r\nv", "cas k 0 5 1\r\nv", "cas k 0 5 1 x\r\nv", "GET k",
		"none", "version 1", "incr k 1", "decr k 1", "append k 0 5 1\r\nv",
		"prepend k 0 5 1\r\nv", "flush_all", "get \x01", "mg", "mg k Z", "mg k O",
		"mg k b", "mg k T", "mg k N30", "ms k 1 T5 MA\r\nv", "ms k 1 T5 MRR\r\nv",
		"ms k 1 T5 Cx\r\nv", "ms k 1 T5 C1 ME\r\nv", "ms k 1 T5 Fx\r\nv", "md k Cx",
		"md k I", "ma k", "me", "me k v", "mg k s s s s s s s s s s s s s s s s s",
		"mg k O123456789012345678901234567890123" };
	struct connection *c = *state;
	char text[600];
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		assert_int_equal(rig_command(c, wrong[i]), DIALECT_DONE);
		assert_null(c->request);
		assert_non_null(memchr(c->out.data, 'E', c->out.size));
	}
	snprintf(text, sizeof text, "get %0251d", 1);
	assert_int_equal(rig_command(c, text), DIALECT_DONE);
	rig_assert_said(c, "CLIENT_ERROR a key has 1 to 250 bytes, and neither blanks nor control "
		"characters\r\n");
	snprintf(text, sizeof text, "get %0250d", 1);
	assert_int_equal(rig_command(c, text), DIALECT_ASK);
	rig_read(c, NULL, "", 0);
	size_t size = (size_t)snprintf(text, sizeof text, "get");
	for (int i = 0; i < 65; i++) {
		size += (size_t)snprintf(text + size, sizeof text - size, " k%d", i);
	}
	assert_int_equal(rig_command(c, text), DIALECT_DONE);
	rig_assert_said(c, "CLIENT_ERROR Pawl takes 1 to 64 keys at once\r\n");
}

static void test_the_server(void **state) {
	assert_int_equal(rig_command(*state, "version"), DIALECT_DONE);
	rig_assert_said(*state, "VERSION 1.6.18\r\n");
	assert_int_equal(rig_command(*state, "verbosity 1"), DIALECT_DONE);
	rig_assert_said(*state, "OK\r\n");
	assert_int_equal(rig_command(*state, "stats"), DIALECT_DONE);
	rig_assert_said(*state, "STAT version 1.6.18\r\nSTAT pawl_version " PAWL_VERSION "\r\n"
		"STAT time 1700000000\r\nSTAT pointer_size 64\r\nEND\r\n");
	assert_int_equal(rig_command(*state, "stats items"), DIALECT_DONE);
	rig_assert_said(*state, "END\r\n");
	assert_int_equal(rig_command(*state, "quit"), DIALECT_CLOSE);
	rig_assert_said(*state, "");
}

/* Lists and deletes follow each other until a list is empty. */
static void test_flush_all_ends_all_locks_of_dev(void **state) {
	const struct core_entry entries[] = { { .key = slice_str("a"), .token = 1 },
		{ .key = slice_str("b"), .token = 2 } };
	struct connection *c = *state;
	rig_server.settings.dev = true;
	assert_int_equal(rig_command(c, "flush_all"), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_LIST);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_LIST, .entries = entries,
		.count = 2 }), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached", 5000), DIALECT_ASK);
	assert_int_equal(rig_released(c), DIALECT_ASK);
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_LIST);
	assert_int_equal(rig_reply(c, &(struct core_reply){ .op = CORE_LIST }), DIALECT_DONE);
	rig_assert_said(c, "OK\r\n");
	assert_int_equal(rig_command(c, "flush_all 0 noreply"), DIALECT_ASK);
	assert_int_equal(rig_refused(c, PAWL_EDENIED), DIALECT_DONE);
	rig_assert_said(c, "");
	assert_int_equal(rig_command(c, "flush_all 10"), DIALECT_DONE);
	rig_assert_said(c, "CLIENT_ERROR Pawl knows no flush_all that waits\r\n");
	assert_int_equal(rig_command(c, "get k"), DIALECT_ASK);
	assert_int_equal(c->request->method, CLIENT_GET);
}

static void test_the_binary_protocol_is_refused_by_name(void **state) {
	struct connection *c = *state;
	size_t size;
	assert_int_equal(memcached_dialect.serve(c->state, slice_str("\x80"), &size, &c->out,
		&c->request), DIALECT_CLOSE);
	rig_assert_said(c, "CLIENT_ERROR Pawl speaks the text protocol of memcached, and not the "
		"binary one\r\n");
}

static void test_who_leaves_gives_back_what_it_may_have_taken(void **state) {
	struct connection *c = *state;
	assert_null(memcached_dialect.leave(c->state));
	assert_int_equal(rig_command(c, "get k"), DIALECT_ASK);
	assert_null(memcached_dialect.leave(c->state));
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_DONE);
	assert_int_equal(rig_command(c, "add k 0 5 1\r\nv"), DIALECT_ASK);
	const struct client_request *request = memcached_dialect.leave(c->state);
	assert_non_null(request);
	assert_int_equal(request->method, CLIENT_RELEASE);
	assert_int_equal(request->core.lock_id.b[0], c->node.drawn);
	assert_null(memcached_dialect.leave(c->state));
}

static void test_an_answer_that_could_not_be_sent_gives_back(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "add k 0 5 1 noreply\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_DONE);
	assert_int_equal(rig_command(c, "add k 0 5 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	const struct client_request *request = memcached_dialect.leave(c->state);
	assert_non_null(request);
	assert_int_equal(request->method, CLIENT_RELEASE);
	assert_int_equal(request->core.lock_id.b[0], c->node.drawn);
	assert_null(memcached_dialect.leave(c->state));
}

UNIT(memcached_commands) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_connect, rig_disconnect)
		TEST(test_add_acquires_with_slack),
		TEST(test_held_is_not_stored_and_an_outage_is_an_error),
		TEST(test_patience_is_for_add),
		TEST(test_what_is_taken_too_late_is_released),
		TEST(test_set_takes_a_free_key),
		TEST(test_set_renews_the_same_value_and_overwrites_none),
		TEST(test_replace_renews_the_same_value_and_overwrites_none),
		TEST(test_get_shows_what_is_held),
		TEST(test_the_unique_is_the_fencing_token),
		TEST(test_the_last_moment_of_a_lease_does_not_count),
		TEST(test_gat_renews_what_it_shows),
		TEST(test_client_flags_are_kept),
		TEST(test_client_flags_are_not_changed_in_silence),
		TEST(test_cas_replaces_what_has_the_token),
		TEST(test_the_unique_changes_with_the_value),
		TEST(test_replace_touch_and_delete_need_a_holder),
		TEST(test_set_may_break_the_lock_of_another_value),
		TEST(test_delete_breaks_the_lock_of_another_identity),
		TEST(test_the_identity_of_another_is_told),
		TEST(test_without_a_reply),
		TEST(test_wrong_commands_change_nothing),
		TEST(test_the_server),
		TEST(test_flush_all_ends_all_locks_of_dev),
		TEST(test_the_binary_protocol_is_refused_by_name),
		TEST(test_who_leaves_gives_back_what_it_may_have_taken),
		TEST(test_an_answer_that_could_not_be_sent_gives_back),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
