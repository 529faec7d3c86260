/* A program with a node inside makes requests: shared locks, permits, handing over, asking. */
#include "embed_rig.h"

#include <stdio.h>
#include <string.h>

#include "pawl/error.h"

#define KEY ((struct pawl_bytes){ "k", 1 })
#define BYTES(text) ((struct pawl_bytes){ text, sizeof text - 1 })

struct answer {
	unsigned calls;
	int error;
	struct pawl_id lock_id;
	enum pawl_mode mode;
	size_t slot_count;
	uint32_t slots[8];
	uint32_t reached;
	bool released;
	char owner[32];
	char label[32];
};

static void on_done(struct pawl_node *node, const struct pawl_node_result *r, void *arg) {
	struct answer *a = arg;
	(void)node;
	*a = (struct answer){ .calls = 1, .error = r->error, .lock_id = r->lock_id,
		.mode = r->mode, .slot_count = r->slot_count, .reached = r->reached,
		.released = r->released };
	assert_true(r->slot_count <= 8);
	memcpy(a->slots, r->slots ? r->slots : a->slots, r->slot_count * sizeof *a->slots);
	snprintf(a->owner, sizeof a->owner, "%s", (const char *)r->entry.owner.data);
	snprintf(a->label, sizeof a->label, "%s", r->waiter_count ? r->waiters[0].label : "");
}

static bool is_answered(void *arg) {
	return ((struct answer *)arg)->calls > 0;
}

static struct answer ask(struct embed_rig *r, size_t n, const struct pawl_request *request) {
	struct answer a = { .calls = 0 };
	assert_int_equal(pawl_node_ask(r->nodes[n].node, request, on_done, &a, NULL), 0);
	assert_true(net_fixture_until(&r->f, is_answered, &a));
	return a;
}

static struct answer ask_terms(struct embed_rig *r, size_t n, struct pawl_terms terms) {
	return ask(r, n, &(struct pawl_request){ .method = PAWL_ACQUIRE, .key = KEY,
		.lease_ms = 20000, .terms = terms });
}

static void readers_hold_together_and_a_writer_alone_becomes_a_reader(void **state) {
	const struct pawl_terms shared = { .mode = PAWL_SHARED },
		exclusive = { .mode = PAWL_EXCLUSIVE };
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	struct answer writer = ask_terms(&r, 0, exclusive);
	assert_int_equal(writer.error, 0);
	assert_int_equal(ask_terms(&r, 1, shared).error, PAWL_EHELD);
	struct answer down = ask(&r, 0, &(struct pawl_request){ .method = PAWL_DOWNGRADE,
		.key = KEY, .lock_id = writer.lock_id });
	assert_int_equal(down.error, 0);
	assert_int_equal(down.mode, PAWL_SHARED);
	struct answer reader = ask_terms(&r, 1, shared);
	assert_int_equal(reader.error, 0);
	assert_int_equal(reader.mode, PAWL_SHARED);
	assert_int_equal(ask_terms(&r, 2, exclusive).error, PAWL_EHELD);
	embed_rig_close(&r);
}

static void permits_have_numbers(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	struct answer two = ask_terms(&r, 0, (struct pawl_terms){ .permits = 2, .of = 3 });
	assert_int_equal(two.error, 0);
	assert_int_equal(two.mode, PAWL_PERMITS);
	assert_int_equal(two.slot_count, 2);
	assert_true(two.slots[0] == 0 && two.slots[1] == 1);
	assert_int_equal(ask_terms(&r, 1, (struct pawl_terms){ .permits = 2, .of = 3 }).error,
		PAWL_EHELD);
	struct answer one = ask_terms(&r, 2, (struct pawl_terms){ .permits = 1, .of = 3 });
	assert_true(one.error == 0 && one.slot_count == 1 && one.slots[0] == 2);
	embed_rig_close(&r);
}

static void a_lock_is_handed_to_the_waiter_that_is_named(void **state) {
	struct embed_rig r;
	struct answer first = { .calls = 0 }, second = { .calls = 0 }, queue;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	struct answer holder = ask_terms(&r, 0, (struct pawl_terms){ .mode = PAWL_EXCLUSIVE });
	struct pawl_request wait = { .method = PAWL_ACQUIRE, .key = KEY, .wait_ms = 60000,
		.owner = BYTES("one"), .label = BYTES("the first") };
	assert_int_equal(pawl_node_ask(r.nodes[1].node, &wait, on_done, &first, NULL), 0);
	do {
		queue = ask(&r, 0, &(struct pawl_request){ .method = PAWL_WAITERS, .key = KEY });
	} while (strcmp(queue.label, "the first") != 0);
	wait.owner = BYTES("two");
	assert_int_equal(pawl_node_ask(r.nodes[2].node, &wait, on_done, &second, NULL), 0);
	struct pawl_request hand_over = { .method = PAWL_TRANSFER, .key = KEY,
		.lock_id = holder.lock_id, .to = BYTES("nobody") };
	assert_int_equal(ask(&r, 0, &hand_over).error, PAWL_ENOTFOUND);
	hand_over.to = BYTES("two");
	struct answer handed;
	/* The loop runs until the second request waits. */
	do {
		handed = ask(&r, 0, &hand_over);
	} while (handed.error == PAWL_ENOTFOUND);
	assert_int_equal(handed.error, 0);
	assert_true(net_fixture_until(&r.f, is_answered, &second));
	assert_int_equal(second.error, 0);
	assert_int_equal(first.calls, 0);
	embed_rig_close(&r);
}

static void asking_reaches_nobody_where_nobody_watches(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct answer a = ask(&r, 0,
		&(struct pawl_request){ .method = PAWL_ASK_RELEASE, .key = KEY });
	assert_int_equal(a.error, 0);
	assert_int_equal(a.reached, 0);
	embed_rig_close(&r);
}

static void terms_that_mean_nothing_are_refused(void **state) {
	static const struct pawl_terms wrong[] = { { .permits = 2, .of = 1 }, { .permits = 1 },
		{ .of = 3 }, { .permits = 1, .of = 129 },
		{ .mode = PAWL_PERMITS }, { .release_on_disconnect = true } };
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = KEY,
			.terms = wrong[i] };
		assert_int_equal(pawl_node_ask(r.nodes[0].node, &request, on_done, NULL, NULL),
			PAWL_EINVAL);
	}
	embed_rig_close(&r);
}

UNIT(node_terms) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readers_hold_together_and_a_writer_alone_becomes_a_reader),
		cmocka_unit_test(permits_have_numbers),
		cmocka_unit_test(a_lock_is_handed_to_the_waiter_that_is_named),
		cmocka_unit_test(asking_reaches_nobody_where_nobody_watches),
		cmocka_unit_test(terms_that_mean_nothing_are_refused),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
