/* These tests run nodes inside a program: libpawl-node. */
#include "embed_rig.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "embed.h"
#include "time_source.h"

#define BYTES(s) ((struct pawl_bytes){ (s), sizeof(s) - 1 })

static const struct pawl_bytes key = { "k", 1 };

struct look {
	struct pawl_node *node;
	bool held;
};

static bool looks_so(void *ctx) {
	const struct look *look = ctx;
	struct pawl_entry entry;
	return pawl_node_get(look->node, key, &entry) == look->held;
}

static void await_look(struct embed_rig *r, size_t n, bool held) {
	struct look look = { r->nodes[n].node, held };
	assert_true(net_fixture_until(&r->f, looks_so, &look));
}

static struct embed_rig_answer acquire(struct embed_rig *r, size_t n, uint32_t wait_ms) {
	return embed_rig_ask(r, n, &(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key,
		.lease_ms = 10000, .wait_ms = wait_ms, .value = BYTES("v"), .owner = BYTES("me") });
}

static struct embed_rig_answer release(struct embed_rig *r, size_t n,
	const struct embed_rig_answer *lock) {
	return embed_rig_ask(r, n, &(struct pawl_request){ .method = PAWL_RELEASE, .key = key,
		.lock_id = lock->lock_id });
}

static void a_lock_taken_through_one_node_is_read_on_the_others(void **state) {
	struct embed_rig r;
	struct pawl_entry entry;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	struct embed_rig_answer lock = acquire(&r, 0, 0);
	assert_int_equal(lock.error, 0);
	assert_true(pawl_node_left_ms(lock.deadline) > 8000 &&
		pawl_node_left_ms(lock.deadline) <= 10000);
	for (size_t i = 0; i < 3; i++) {
		await_look(&r, i, true);
		assert_true(pawl_node_get(r.nodes[i].node, key, &entry));
		assert_int_equal(entry.token, lock.token);
		assert_string_equal(entry.value.data, "v");
		assert_string_equal(entry.owner.data, "me");
		assert_memory_equal(entry.lock_id.bytes, lock.lock_id.bytes,
			sizeof entry.lock_id.bytes);
		assert_true(entry.remaining_ms > 8000);
	}
	assert_int_equal(acquire(&r, 1, 0).error, PAWL_EHELD);
	/* Whoever knows the lock_id may release it. */
	struct embed_rig_answer gone = release(&r, 2, &lock);
	assert_int_equal(gone.error, 0);
	assert_true(gone.released);
	await_look(&r, 1, false);
	embed_rig_close(&r);
}

static void a_waiter_on_another_node_gets_what_is_released(void **state) {
	struct embed_rig r;
	struct embed_rig_answer waiter = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	struct embed_rig_answer lock = acquire(&r, 0, 0);
	assert_int_equal(pawl_node_ask(r.nodes[1].node,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key, .wait_ms = 60000 },
		embed_rig_done, &waiter, NULL), 0);
	struct embed_rig_answer queue;
	do {
		queue = embed_rig_ask(&r, 2,
			&(struct pawl_request){ .method = PAWL_WAITERS, .key = key });
	} while (queue.error == 0 && queue.count == 0);
	assert_int_equal(queue.count, 1);
	assert_int_equal(waiter.calls, 0);
	release(&r, 0, &lock);
	assert_true(net_fixture_until(&r.f, embed_rig_answered, &waiter));
	assert_int_equal(waiter.error, 0);
	assert_true(waiter.token > lock.token);
	embed_rig_close(&r);
}

static bool count_entry(const struct pawl_entry *entry, void *arg) {
	assert_true(entry->held);
	return ++*(unsigned *)arg < 3;
}

static void a_held_lock_is_extended_updated_and_listed(void **state) {
	struct embed_rig r;
	unsigned seen = 0;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct embed_rig_answer lock = acquire(&r, 0, 0);
	struct embed_rig_answer longer = embed_rig_ask(&r, 0,
		&(struct pawl_request){ .method = PAWL_EXTEND, .key = key, .lock_id = lock.lock_id,
		.lease_ms = 20000, .deadline_kept = true });
	assert_int_equal(longer.error, 0);
	assert_true(pawl_node_left_ms(longer.deadline) > 15000);
	struct pawl_request update = { .method = PAWL_UPDATE, .key = key, .lock_id = lock.lock_id,
		.value = BYTES("w"), .expect = BYTES("x") };
	struct embed_rig_answer mismatch = embed_rig_ask(&r, 0, &update);
	assert_int_equal(mismatch.error, PAWL_EMISMATCH);
	assert_string_equal(mismatch.value, "v");
	update.expect = BYTES("v");
	assert_int_equal(embed_rig_ask(&r, 0, &update).error, 0);
	struct embed_rig_answer read = embed_rig_ask(&r, 0,
		&(struct pawl_request){ .method = PAWL_GET, .key = key, .quorum = true });
	assert_true(read.held);
	assert_string_equal(read.value, "w");
	for (char c = '0'; c < '4'; c++) {
		char name[] = { 'k', '/', c };
		const struct pawl_request more = { .method = PAWL_ACQUIRE,
			.key = { name, sizeof name } };
		assert_int_equal(embed_rig_ask(&r, 0, &more).error, 0);
	}
	assert_int_equal(embed_rig_ask(&r, 0,
		&(struct pawl_request){ .method = PAWL_LIST, .key = BYTES("k/") }).count, 4);
	assert_int_equal(pawl_node_each(r.nodes[0].node, BYTES("k/"), count_entry, &seen), 0);
	/* The callback said stop. */
	assert_int_equal(seen, 3);
	embed_rig_close(&r);
}

static void a_wait_ends_when_the_key_is_free(void **state) {
	struct embed_rig r;
	struct embed_rig_answer wait = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct embed_rig_answer lock = acquire(&r, 0, 0);
	assert_int_equal(pawl_node_ask(r.nodes[0].node, &(struct pawl_request){ .method = PAWL_WAIT,
		.key = key, .for_free = true, .wait_ms = 60000 }, embed_rig_done, &wait, NULL), 0);
	release(&r, 0, &lock);
	assert_true(net_fixture_until(&r.f, embed_rig_answered, &wait));
	assert_int_equal(wait.error, 0);
	assert_false(wait.held);
	embed_rig_close(&r);
}

static void a_canceled_acquire_is_rolled_back(void **state) {
	struct embed_rig r;
	struct embed_rig_answer never = { .calls = 0 };
	struct pawl_node_call *call;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	assert_int_equal(pawl_node_ask(r.nodes[0].node,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }, embed_rig_done,
		&never, &call), 0);
	pawl_node_cancel(call);
	assert_int_equal(acquire(&r, 1, 5000).error, 0);
	assert_int_equal(never.calls, 0);
	embed_rig_close(&r);
}

static void what_is_under_way_ends_with_the_node(void **state) {
	struct embed_rig r;
	struct embed_rig_answer waiter = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	acquire(&r, 0, 0);
	assert_int_equal(pawl_node_ask(r.nodes[1].node,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key, .wait_ms = 60000 },
		embed_rig_done, &waiter, NULL), 0);
	pawl_node_free(r.nodes[1].node);
	r.nodes[1].node = NULL;
	assert_int_equal(waiter.calls, 1);
	assert_int_equal(waiter.error, PAWL_ECANCELED);
	embed_rig_close(&r);
}

static void free_within(struct pawl_node *node, const struct pawl_node_result *result, void *arg) {
	struct embed_rig_node *n = arg;
	assert_ptr_equal(node, n->node);
	assert_int_equal(result->error, 0);
	pawl_node_free(node);
	n->node = NULL;
}

static bool is_gone(void *ctx) {
	return ((struct embed_rig_node *)ctx)->node == NULL;
}

static void a_node_may_be_freed_in_a_callback(void **state) {
	struct embed_rig r;
	struct embed_rig_answer left = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	assert_int_equal(pawl_node_ask(r.nodes[0].node,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }, free_within,
		&r.nodes[0], NULL), 0);
	assert_int_equal(pawl_node_ask(r.nodes[0].node, &(struct pawl_request){ .method = PAWL_WAIT,
		.key = BYTES("other"), .wait_ms = 60000 }, embed_rig_done, &left, NULL), 0);
	assert_true(net_fixture_until(&r.f, is_gone, &r.nodes[0]));
	net_fixture_settle(&r.f);
	assert_int_equal(left.error, PAWL_ECANCELED);
	embed_rig_close(&r);
}

static void was_drained(struct pawl_node *node, int error, void *arg) {
	struct embed_rig_answer *a = arg;
	(void)node;
	a->calls++;
	a->error = error;
}

static void a_drained_node_comes_back_with_what_it_knew(void **state) {
	struct embed_rig r;
	struct embed_rig_answer drained = { .calls = 0 };
	struct pawl_entry entry;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct embed_rig_answer lock = acquire(&r, 0, 0);
	assert_int_equal(pawl_node_drain(r.nodes[0].node, was_drained, &drained), 0);
	assert_int_equal(pawl_node_drain(r.nodes[0].node, was_drained, &drained), PAWL_EBUSY);
	assert_true(net_fixture_until(&r.f, embed_rig_answered, &drained));
	assert_int_equal(drained.error, 0);
	embed_rig_await_state(&r, 0, PAWL_NODE_DRAINED);
	pawl_node_free(r.nodes[0].node);
	embed_rig_start(&r, 0);
	embed_rig_await_state(&r, 0, PAWL_NODE_VOTING);
	assert_true(pawl_node_get(r.nodes[0].node, key, &entry));
	assert_int_equal(entry.token, lock.token);
	embed_rig_close(&r);
}

/* Frames are read, and get the time at which they were read, before the connections are handled in
 * turn; the stop may come between. */
static void what_was_read_before_a_drain_is_handled_after_it(void **state) {
	struct embed_rig r;
	struct embed_rig_answer drained = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	acquire(&r, 0, 0);
	const struct instant read = time_source_now();
	assert_int_equal(pawl_node_drain(r.nodes[0].node, was_drained, &drained), 0);
	const struct core_event later = { .kind = CORE_TICK };
	driver_step(node_driver(r.nodes[0].node->node), &later, read);
	assert_true(net_fixture_until(&r.f, embed_rig_answered, &drained));
	assert_int_equal(drained.error, 0);
	embed_rig_close(&r);
}

static void each_node_has_its_own_log_and_says_when_it_changed(void **state) {
	struct embed_rig r;
	struct pawl_node_status status;
	struct pawl_node_peer peer;
	(void)state;
	embed_rig_open(&r, 2);
	embed_rig_start_all(&r);
	net_fixture_settle(&r.f);
	assert_true(r.nodes[0].lines > 0 && r.nodes[1].lines > 0);
	assert_true(r.nodes[0].changes > 0 && r.nodes[1].changes > 0);
	pawl_node_status(r.nodes[1].node, &status);
	assert_int_equal(status.epoch, 1);
	assert_int_equal(status.quorum, 2);
	assert_int_equal(status.peers, 2);
	assert_int_equal(status.age_ms, 0);
	assert_true(pawl_node_peer(r.nodes[1].node, 0, &peer));
	assert_string_equal(peer.name, "a");
	assert_string_equal(peer.address, r.nodes[0].address);
	assert_true(peer.linked && !peer.self);
	assert_false(pawl_node_peer(r.nodes[1].node, 2, &peer));
	assert_string_equal(pawl_node_address(r.nodes[1].node), r.nodes[1].address);
	embed_rig_close(&r);
}

static void refused(struct embed_rig *r, struct pawl_node_options o, int error, const char *says) {
	struct pawl_node *node = NULL;
	char why[PAWL_NODE_WHY] = "";
	o.base = r->f.base;
	assert_int_equal(pawl_node_new(&o, &node, why), error);
	assert_null(node);
	if (!strstr(why, says)) {
		fail_msg("%s: says nothing of: %s", why, says);
	}
}

static void options_that_do_not_fit_are_refused_with_a_sentence(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 1);
	char missing[sizeof r.nodes[0].dir + sizeof "/x/y"];
	snprintf(missing, sizeof missing, "%s/x/y", r.nodes[0].dir);
	struct pawl_node_options o = { .name = "a", .cluster = "t", .state_dir = missing,
		.masters = r.masters, .master_count = 1 };
	refused(&r, o, PAWL_EIO, missing);
	o.state_dir = "relative";
	refused(&r, o, PAWL_EINVAL, "absolute path");
	o.state_dir = NULL;
	refused(&r, o, PAWL_EINVAL, "state_dir is missing");
	o.state_dir = r.nodes[0].dir;
	o.name = "a b";
	refused(&r, o, PAWL_EINVAL, "letters");
	o.name = "x";
	refused(&r, o, PAWL_EINVAL, "listen_peer");
	o.listen_peer = "0.0.0.0:0";
	refused(&r, o, PAWL_EINVAL, "insecure");
	o.listen_peer = "127.0.0.1:0";
	o.cert_file = "/c";
	refused(&r, o, PAWL_EINVAL, "are needed together");
	o.cert_file = NULL;
	o.request_timeout_ms = 5000;
	refused(&r, o, PAWL_EINVAL, "promise_timeout");
	o.master_count = 0;
	refused(&r, o, PAWL_EINVAL, "is empty");
	embed_rig_close(&r);
}

static void requests_that_are_not_for_a_node_are_refused(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct pawl_node *node = r.nodes[0].node;
	assert_int_equal(pawl_node_ask(node, &(struct pawl_request){ .method = PAWL_PING }, NULL,
		NULL, NULL), PAWL_EINVAL);
	assert_int_equal(pawl_node_ask(node, &(struct pawl_request){ .method = PAWL_GET, .key = key,
		.timeout_ms = 1 }, NULL, NULL, NULL), PAWL_EINVAL);
	assert_int_equal(pawl_node_ask(node, &(struct pawl_request){ .method = PAWL_UPDATE,
		.key = key, .expect_seq = key }, NULL, NULL, NULL), PAWL_EINVAL);
	assert_int_equal(embed_rig_ask(&r, 0, &(struct pawl_request){ .method = PAWL_ACQUIRE,
		.key = key, .lease_ms = 1 }).error, PAWL_EBADREQUEST);
	embed_rig_close(&r);
}

UNIT(node_embed) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_taken_through_one_node_is_read_on_the_others),
		cmocka_unit_test(a_waiter_on_another_node_gets_what_is_released),
		cmocka_unit_test(a_held_lock_is_extended_updated_and_listed),
		cmocka_unit_test(a_wait_ends_when_the_key_is_free),
		cmocka_unit_test(a_canceled_acquire_is_rolled_back),
		cmocka_unit_test(what_is_under_way_ends_with_the_node),
		cmocka_unit_test(a_node_may_be_freed_in_a_callback),
		cmocka_unit_test(a_drained_node_comes_back_with_what_it_knew),
		cmocka_unit_test(what_was_read_before_a_drain_is_handled_after_it),
		cmocka_unit_test(each_node_has_its_own_log_and_says_when_it_changed),
		cmocka_unit_test(options_that_do_not_fit_are_refused_with_a_sentence),
		cmocka_unit_test(requests_that_are_not_for_a_node_are_refused),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
