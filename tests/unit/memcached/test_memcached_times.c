/* test_memcached_times.c: how long a client of memcached has a lock: lengths, moments, times that
 * are over, and locks without an end. */
#include "unit.h"

#include "memcached_rig.h"

/* ---- times ---- */

static void test_a_time_is_never_shortened(void **state) {
	assert_int_equal(rig_command(*state, "add k 0 60 1\r\nv"), DIALECT_DONE);
	rig_assert_said(*state, "SERVER_ERROR a lock of 60000 ms is longer than this cluster "
		"allows, which is 59300 ms (max_lease, less the drift and the slack): take it "
		"for less, and renew it, or raise "
		"max_lease\r\n");
	assert_int_equal(rig_command(*state, "add k 0 59 1\r\nv"), DIALECT_ASK);
	rig_refused(*state, PAWL_EHELD);
	assert_int_equal(rig_command(*state, "touch k 999999999999999999"), DIALECT_DONE);
	rig_assert_said(*state, "CLIENT_ERROR invalid exptime argument\r\n");
	assert_int_equal(rig_command(*state, "touch k 2592000"), DIALECT_DONE);
	rig_assert_said(*state, "SERVER_ERROR a lock of 2592000000 ms is longer than this cluster "
		"allows, which is 59300 ms (max_lease, less the drift and the slack): take it "
		"for less, and renew it, or raise "
		"max_lease\r\n");
}

/* The order of a shortening is above all that were named before, and not above any that is named
 * later: so a quorum has to know of the one that was read. */
static void test_a_time_below_what_is_left_shortens_the_lease(void **state) {
	struct connection *c = *state;
	static const struct {
		int64_t left;
		uint32_t order, named;
		bool settled, shortens;
	} cases[] = { { 6000, 6, 7, true, true }, { 6000, 0, 1, true, true },
		{ 6000, 6, 7, false, false }, { 5100, 6, 7, true, false },
		{ 6000, UINT32_MAX, UINT32_MAX, true, true } };
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		c->order = cases[i].order;
		c->settled = cases[i].settled;
		assert_int_equal(rig_command(c, "touch k 5"), DIALECT_ASK);
		assert_int_equal(rig_read(c, "v", "memcached", cases[i].left), DIALECT_ASK);
		assert_int_equal(c->request->core.lease, RIG_LEASE(5100 * SPAN_MS));
		assert_true(c->request->core.ordered);
		assert_int_equal(c->request->core.shorten, cases[i].shortens);
		assert_int_equal(c->request->core.binding, cases[i].named);
		assert_int_equal(rig_extended(c), DIALECT_DONE);
		rig_assert_said(c, "TOUCHED\r\n");
	}
}

/* The sentence names the remedy, and not a length below zero. */
static void test_a_slack_of_a_whole_lease_is_said(void **state) {
	struct connection *c = *state;
	rig_server.settings.slack = 300 * SPAN_S;
	assert_int_equal(rig_command(c, "add k 0 1 1\r\nv"), DIALECT_DONE);
	rig_assert_said(c, "SERVER_ERROR [memcached] slack of this node is as long as the longest "
		"lease of this cluster, so it grants nothing: lower it\r\n");
}

static void test_a_lock_has_an_end(void **state) {
	static const char *const endless[] = { "add k 0 0 1\r\nv", "set k 0 0 1\r\nv", "touch k 0",
		"gat 0 k", "ms k 1\r\nv", "ms k 1 T0\r\nv", "mg k T0" };
	for (size_t i = 0; i < sizeof endless / sizeof endless[0]; i++) {
		assert_int_equal(rig_command(*state, endless[i]), DIALECT_DONE);
		rig_assert_said(*state, "SERVER_ERROR a lock without an end is not possible here: "
			"give it an exptime other than 0 ([memcached] without_end of this "
			"node)\r\n");
	}
}

/* ---- without an end ---- */

static void test_the_node_keeps_a_lock_without_an_end(void **state) {
	struct connection *c = *state;
	rig_server.settings.keeps = true;
	assert_int_equal(rig_command(c, "add k 0 0 1\r\nv"), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, 60 * SPAN_S);
	assert_true(client_label_unpack(c->request->core.label).without_end);
	assert_int_equal(rig_taken(c), DIALECT_TOLD);
	rig_assert_said(c, "STORED\r\n");
	assert_int_equal(c->node.kept.b[0], c->node.drawn);
	assert_string_equal(c->node.kept_key, "k");
	c->node.keep_error = PAWL_EFULL;
	assert_int_equal(rig_command(c, "set k 0 0 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(c, NULL, "", 0), DIALECT_ASK);
	assert_int_equal(rig_taken(c), DIALECT_ASK);
	assert_int_equal(rig_released(c), DIALECT_DONE);
	rig_assert_said(c, "SERVER_ERROR this node keeps as many locks without an end as it can: "
		"give the lock an exptime, or use another node\r\n");
}

static void test_a_lock_without_an_end_stays_as_it_is(void **state) {
	static const char *const texts[][2] = { { "set k 0 0 1\r\nv", "STORED\r\n" },
		{ "touch k 0", "TOUCHED\r\n" }, { "gat 0 k", "VALUE k 0 1\r\nv\r\nEND\r\n" },
		{ "mg k t", "HD t-1\r\n" }, { "mg k T0 t", "HD t-1\r\n" },
		{ "me k", "ME k exp=-1 cas=42 size=1\r\n" },
		{ "touch k 20", "SERVER_ERROR a lock without an end stays as it is: delete it, and "
			"take it again\r\n" },
		{ "replace k 0 5 1\r\nv", "SERVER_ERROR a lock without an end stays as it is: "
			"delete it, and take it again\r\n" } };
	struct connection *c = *state;
	rig_server.settings.keeps = c->endless = true;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		assert_int_equal(rig_command(c, texts[i][0]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "v", "memcached", 50000), DIALECT_DONE);
		rig_assert_said(c, texts[i][1]);
	}
	rig_server.settings.overwrites = true;
	assert_int_equal(rig_command(c, "replace k 0 0 1\r\nw"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "v", "memcached", 50000), DIALECT_ASK);
	assert_true(slice_equal(c->request->core.value, slice_str("w")));
	assert_int_equal(rig_updated(c), DIALECT_DONE);
	rig_assert_said(c, "STORED\r\n");
}

/* Nothing is done with the lock, but it is the caller's. */
static void test_only_its_holder_hears_that_a_lock_has_no_end(void **state) {
	static const char *const texts[] = { "set k 0 0 1\r\nv", "touch k 0", "gat 0 k", "mg k T0",
		"ms k 1\r\nv", "replace k 0 0 1\r\nv" };
	struct connection *c = *state;
	rig_server.settings.keeps = c->endless = true;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		c->holder = "another";
		assert_int_equal(rig_command(c, texts[i]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "v", "memcached", 50000), DIALECT_DONE);
		rig_assert_said(c, "SERVER_ERROR this lock belongs to another identity\r\n");
		c->holder = "";
		assert_int_equal(rig_command(c, texts[i]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "v", "memcached", 20000), DIALECT_DONE);
		rig_assert_said(c, "SERVER_ERROR the node that kept this lock without an end is "
			"gone, and the lock ends: take it again then\r\n");
	}
}

static void test_no_lock_loses_its_end(void **state) {
	static const char *const texts[] = { "set k 0 0 1\r\nv", "touch k 0", "gat 0 k",
		"replace k 0 0 1\r\nv", "cas k 0 0 1 42\r\nw", "mg k T0", "ms k 1\r\nv" };
	struct connection *c = *state;
	rig_server.settings.keeps = true;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		assert_int_equal(rig_command(c, texts[i]), DIALECT_ASK);
		assert_int_equal(rig_read(c, "v", "memcached", 50000), DIALECT_DONE);
		rig_assert_said(c, "SERVER_ERROR a lock that was taken with an end keeps it\r\n");
	}
}

static void test_a_large_time_is_a_moment(void **state) {
	struct connection *c = *state;
	assert_int_equal(rig_command(c, "add k 0 1700000020 1\r\nv"), DIALECT_ASK);
	assert_int_equal(c->request->core.lease, RIG_LEASE(20100 * SPAN_MS));
}

/* As with memcached, the key is as good as taken and ended again. */
static void test_a_time_that_is_over(void **state) {
	static const char *const over[] = { "add k 0 -1 1\r\nv", "add k 0 1700000000 1\r\nv",
		"add k 0 -999999999999999999 1\r\nv" };
	for (size_t i = 0; i < sizeof over / sizeof over[0]; i++) {
		assert_int_equal(rig_command(*state, over[i]), DIALECT_ASK);
		assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
		rig_assert_said(*state, "STORED\r\n");
		assert_int_equal(rig_command(*state, over[i]), DIALECT_ASK);
		assert_int_equal(rig_read(*state, "v", "memcached", 1000), DIALECT_DONE);
		rig_assert_said(*state, "NOT_STORED\r\n");
	}
	assert_int_equal(rig_command(*state, "touch k -1"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, "v", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_released(*state), DIALECT_DONE);
	rig_assert_said(*state, "TOUCHED\r\n");
	assert_int_equal(rig_command(*state, "set k 0 -1 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(*state, NULL, "", 0), DIALECT_DONE);
	rig_assert_said(*state, "STORED\r\n");
}

static void test_what_is_overwritten_by_a_time_that_is_over_is_not_taken(void **state) {
	struct connection *c = *state;
	rig_server.settings.overwrites = true;
	c->holder = "another";
	assert_int_equal(rig_command(c, "set k 0 -1 1\r\nv"), DIALECT_ASK);
	assert_int_equal(rig_read(c, "w", "memcached", 1000), DIALECT_ASK);
	assert_int_equal(rig_broken(c), DIALECT_DONE);
	rig_assert_said(c, "STORED\r\n");
}

UNIT(memcached_times) {
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_connect, rig_disconnect)
		TEST(test_a_time_is_never_shortened),
		TEST(test_a_time_below_what_is_left_shortens_the_lease),
		TEST(test_a_slack_of_a_whole_lease_is_said),
		TEST(test_a_lock_has_an_end),
		TEST(test_the_node_keeps_a_lock_without_an_end),
		TEST(test_a_lock_without_an_end_stays_as_it_is),
		TEST(test_only_its_holder_hears_that_a_lock_has_no_end),
		TEST(test_no_lock_loses_its_end),
		TEST(test_a_large_time_is_a_moment),
		TEST(test_a_time_that_is_over),
		TEST(test_what_is_overwritten_by_a_time_that_is_over_is_not_taken),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
