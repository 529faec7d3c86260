/* These tests are about configurations: their one encoding, their name, and what makes one
 * unusable. */
#include <stdio.h>

#include "unit.h"

#include "config.h"
#include "pawl/error.h"

static struct config_node node_of(const char *name, uint8_t id, bool master) {
	struct config_node n = { .id = { { id } }, .master = master };
	snprintf(n.name, sizeof n.name, "%s", name);
	snprintf(n.address, sizeof n.address, "%s.example:7100", name);
	return n;
}

/* Returns the configuration of epoch 2, in which c took b's place as a master and b is a
 * replica. */
static struct config sample(void) {
	struct config c = { .epoch = 2, .cluster = "prod", .cluster_id = { { 7 } },
		.max_lease = 60 * SPAN_S, .request_timeout = SPAN_S, .promise_timeout = 2 * SPAN_S,
		.drift_ppm = 10000, .node_count = 3, .previous_master_count = 2 };
	c.nodes[0] = node_of("a", 1, true);
	c.nodes[1] = node_of("c", 3, true);
	c.nodes[2] = node_of("b", 2, false);
	c.previous_masters[0] = node_of("a", 1, true);
	c.previous_masters[1] = node_of("b", 2, true);
	return c;
}

static void a_configuration_comes_back_with_the_masters_before_it(void **state) {
	(void)state;
	static uint8_t bytes[CONFIG_BYTES_MAX], again[CONFIG_BYTES_MAX];
	struct config c = sample(), got;
	size_t size = config_encode(&c, bytes);
	assert_int_equal(config_decode(slice_of(bytes, size), &got), 0);
	assert_int_equal(got.previous_master_count, 2);
	assert_string_equal(got.previous_masters[1].name, "b");
	assert_string_equal(got.previous_masters[1].address, "b.example:7100");
	assert_true(got.previous_masters[1].master && !got.nodes[2].master);
	assert_int_equal(config_encode(&got, again), size);
	assert_memory_equal(bytes, again, size);
}

static void what_is_cut_short_or_too_long_is_refused(void **state) {
	(void)state;
	static uint8_t bytes[CONFIG_BYTES_MAX + 1];
	struct config c = sample(), got;
	size_t size = config_encode(&c, bytes);
	for (size_t i = 0; i < size; i++) {
		assert_int_equal(config_decode(slice_of(bytes, i), &got), PAWL_EPROTOCOL);
	}
	assert_int_equal(config_decode(slice_of(bytes, size + 1), &got), PAWL_EPROTOCOL);
}

static void too_many_nodes_or_masters_before_are_refused(void **state) {
	(void)state;
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct config c = sample(), got;
	c.node_count = CONFIG_NODES_MAX;
	c.previous_master_count = MASTERS_MAX;
	size_t size = config_encode(&c, bytes);
	assert_int_equal(config_decode(slice_of(bytes, size), &got), 0);
	/* The count of the previous masters stands in front of them: nine of the shortest entries,
	 * of which two have a name and an address. */
	size_t before = 2 * (1 + 1 + 1 + 14 + 16 + 1) + 7 * (1 + 1 + 16 + 1);
	bytes[size - before - 8]++;
	assert_int_equal(config_decode(slice_of(bytes, size), &got), PAWL_EPROTOCOL);
}

static void every_difference_has_another_hash(void **state) {
	(void)state;
	struct config c = sample(), d = sample();
	assert_true(config_hash(&c) == config_hash(&d));
	d.previous_masters[1].id.b[15] = 1;
	assert_true(config_hash(&c) != config_hash(&d));
	d = sample();
	d.previous_master_count = 1;
	assert_true(config_hash(&c) != config_hash(&d));
	d = sample();
	d.nodes[2].address[0] = 'x';
	assert_true(config_hash(&c) != config_hash(&d));
}

static void the_same_masters_are_the_same_in_any_order(void **state) {
	(void)state;
	struct config c = sample(), d = sample();
	d.nodes[0] = c.nodes[1];
	d.nodes[1] = c.nodes[0];
	d.nodes[1].address[0] = 'x';
	assert_true(config_same_masters(&c, &d));
	d.nodes[1] = node_of("b", 2, true);
	d.nodes[2] = node_of("a", 1, false);
	assert_false(config_same_masters(&c, &d));
}

static void a_quorum_and_the_sources_meet_in_every_size(void **state) {
	(void)state;
	struct config c = { .node_count = 0 };
	for (uint32_t n = 1; n <= MASTERS_MAX; n++) {
		c.nodes[c.node_count++] = node_of("m", (uint8_t)n, true);
		assert_int_equal(config_masters(&c), n);
		assert_int_equal(config_quorum(&c) + config_sources(n), n + 1);
		assert_true(2 * config_quorum(&c) > n);
	}
}

static void what_cannot_be_used_is_named(void **state) {
	(void)state;
	struct config c = sample();
	assert_null(config_problem(&c));
	c.nodes[2].master = true;
	c.nodes[1].master = false;
	assert_non_null(strstr(config_problem(&c), "masters must stand before replicas"));
	c = sample();
	c.epoch = ((uint64_t)EPOCH_STARTS_MAX << 32) + UINT32_MAX;
	assert_null(config_problem(&c));
	c.epoch++;
	assert_non_null(strstr(config_problem(&c), "started over so often"));
	c = sample();
	c.nodes[2].id = c.nodes[0].id;
	assert_non_null(strstr(config_problem(&c), "same identity"));
	c = sample();
	c.promise_timeout--;
	assert_non_null(strstr(config_problem(&c),
		"promise_timeout must be at least twice request_timeout"));
}

UNIT(config) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_configuration_comes_back_with_the_masters_before_it),
		cmocka_unit_test(what_is_cut_short_or_too_long_is_refused),
		cmocka_unit_test(too_many_nodes_or_masters_before_are_refused),
		cmocka_unit_test(every_difference_has_another_hash),
		cmocka_unit_test(the_same_masters_are_the_same_in_any_order),
		cmocka_unit_test(a_quorum_and_the_sources_meet_in_every_size),
		cmocka_unit_test(what_cannot_be_used_is_named),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
