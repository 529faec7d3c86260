/* These tests have nodes that are in no configuration and are linked nevertheless. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "core.h"
#include "pawl/error.h"

/* The host is a single master, which has been born. */
struct host {
	struct alloc_counter memory;
	struct allocator alloc;
	struct config birth;
	struct durable durable;
	struct core *core;
	struct core_out *out;
	struct instant now;
};

static void step(struct host *h, const struct core_event *event) {
	struct durable state;
	uint64_t seq;
	core_step(h->core, event, h->now, h->out);
	core_check(h->core);
	if (core_out_persist(h->out, &state, &seq)) {
		struct core_event done = { .kind = CORE_PERSISTED, .persist_seq = seq,
			.persist_ok = true };
		step(h, &done);
	}
}

static int set_up(void **state) {
	static struct host h;
	h = (struct host){ .now = { SPAN_S, SPAN_S } };
	h.alloc = alloc_libc(&h.memory);
	h.birth = (struct config){ .node_count = 1, .max_lease = 3 * SPAN_S,
		.request_timeout = SPAN_S / 2, .promise_timeout = SPAN_S, .drift_ppm = 10000 };
	h.birth.nodes[0].master = true;
	h.birth.nodes[0].name[0] = 'n', h.birth.nodes[0].name[1] = '1';
	h.durable.node_id.b[0] = 1;
	struct core_options options = { .alloc = &h.alloc, .seed = 1, .name = "n1",
		.birth = &h.birth, .durable = &h.durable };
	assert_int_equal(core_new(&options, &h.core), 0);
	h.out = core_out_new(h.core);
	assert_non_null(h.out);
	step(&h, &(struct core_event){ .kind = CORE_START });
	*state = &h;
	return 0;
}

static int tear_down(void **state) {
	struct host *h = *state;
	core_out_free(h->out);
	core_free(h->core);
	assert_int_equal(h->memory.used, 0);
	return 0;
}

static void come(struct host *h, const char *name) {
	int peer = core_welcome(h->core, name);
	assert_true(peer > 0);
	struct core_event up = { .kind = CORE_PEER_UP, .peer = (uint32_t)peer, .peer_boot = 1 };
	up.peer_id.b[0] = (uint8_t)name[1];
	step(h, &up);
}

static void non_members_whose_links_are_reset_together_leave_no_reset_behind(void **state) {
	struct host *h = *state;
	come(h, "n2");
	come(h, "n3");
	assert_int_equal(core_peer_count(h->core), 3);
	/* The host stood still, so that what waits in the links is old. */
	h->now = instant_add(h->now, 10 * SPAN_S);
	step(h, &(struct core_event){ .kind = CORE_TICK });
	assert_int_equal(core_peer_count(h->core), 1);
	assert_int_equal(core_out_resets(h->out) >> core_peer_count(h->core), 0);
}

static void go(struct host *h, uint32_t peer) {
	step(h, &(struct core_event){ .kind = CORE_PEER_DOWN, .peer = peer });
}

static void non_members_that_come_and_go_do_not_fill_the_table(void **state) {
	struct host *h = *state;
	char name[8];
	come(h, "n2");
	/* This non-member stays. */
	come(h, "n3");
	go(h, 1);
	for (int i = 0; i < 2 * NODES_MAX; i++) {
		assert_true(snprintf(name, sizeof name, "g%d", i) > 0);
		come(h, name);
		assert_int_equal(core_peer_count(h->core), 3);
		assert_string_equal(core_peer(h->core, 1)->name, name);
		assert_string_equal(core_peer(h->core, 2)->name, "n3");
		go(h, 1);
	}
	go(h, 2);
	assert_int_equal(core_peer_count(h->core), 1);
}

UNIT(non_members) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			non_members_whose_links_are_reset_together_leave_no_reset_behind, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(non_members_that_come_and_go_do_not_fill_the_table,
			set_up, tear_down),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
