/* Every allocation of a client's session fails in turn: once, and from then on. Nothing crashes,
 * nothing leaks, every call has one outcome, and nobody is told to hold what was not granted. */
#include "unit.h"

#include "client_rig.h"

/* This is far above what the story needs, so that the loop ends by itself. */
#define FAILURES_MAX 2000

struct story {
	struct rig rig;
	unsigned outcomes;
	struct pawl_lock *lock;
};

static void count(struct pawl_result *take_result, void *arg) {
	struct story *s = arg;
	s->outcomes++;
	assert_non_null(take_result->message);
	pawl_result_free(take_result);
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct story *s = arg;
	s->outcomes++;
	s->lock = take_lock;
	assert_true((take_lock != NULL) == (take_result->error == 0));
	pawl_result_free(take_result);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct story *s = arg;
	(void)cause;
	assert_ptr_equal(lock, s->lock);
}

/* Asks for everything, and returns how many of the requests were accepted, and owe an outcome. */
static unsigned ask_everything(struct story *s) {
	const struct pawl_bytes key = pawl_str("some key");
	const struct pawl_id id = { { 7 } };
	const struct pawl_extend_item items[] = { { .key = key, .lock_id = id },
		{ .key = key, .lock_id = { { 8 } } } };
	const struct pawl_change_node nodes[] = { { "a", NULL, true },
		{ "b", "b.example:7118", false } };
	const struct pawl_change change = { .kind = PAWL_SET_NODES, .nodes = nodes,
		.node_count = 2 };
	const struct pawl_request requests[] = {
		{ .method = PAWL_ACQUIRE, .key = key, .value = pawl_str("some value"),
			.lock_id = id },
		{ .method = PAWL_EXTEND, .locks = items, .lock_count = 2 },
		{ .method = PAWL_UPDATE, .key = key, .lock_id = id,
			.value = pawl_str("another value"), .expect = pawl_str("x") },
		{ .method = PAWL_GET, .key = key },
		{ .method = PAWL_STATUS },
		{ .method = PAWL_CHANGE, .change = &change },
		{ .method = PAWL_RELEASE, .key = key, .lock_id = id },
	};
	unsigned accepted = 0;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		int error = pawl_start(s->rig.client, &requests[i], count, s, NULL);
		assert_true(error == 0 || error == PAWL_ENOMEM);
		accepted += error == 0;
	}
	return accepted;
}

/* Returns false when memory sufficed, so that this was the last run. */
static bool session_runs_short(uint64_t fail_from, uint64_t fail_count) {
	struct story s = { 0 };
	unsigned owed = 0;
	if (rig_open_short(&s.rig, fail_from, fail_count) == 0) {
		struct pawl_lock_options o = { .key = pawl_str("kept"), .lease_ms = 900,
			.on_lost = on_lost, .arg = &s };
		owed += pawl_lock_start(s.rig.client, &o, on_locked, &s, NULL) == 0;
		rig_settle(&s.rig);
		/* The lock is renewed meanwhile. */
		rig_pass(&s.rig, 600 * SPAN_MS);
		owed += ask_everything(&s);
		rig_settle(&s.rig);
		fake_hang_up(&s.rig.nodes[0]);
		owed += ask_everything(&s);
		rig_pass(&s.rig, 400 * SPAN_MS);
		if (s.lock) {
			owed += pawl_lock_release_start(s.lock, count, &s) == 0;
		}
		rig_settle(&s.rig);
	} else {
		s.rig.client = NULL;
	}
	bool failed = s.rig.failed > 0;
	rig_close(&s.rig);
	assert_int_equal(s.outcomes, owed);
	return failed;
}

static void one_allocation_fails(void **state) {
	(void)state;
	uint64_t n = 1;
	while (session_runs_short(n, 1)) {
		n += UNIT_STRIDE;
		assert_true(n < FAILURES_MAX);
	}
	assert_true(n > 30);
}

static void memory_is_short_from_then_on(void **state) {
	(void)state;
	uint64_t n = 1;
	while (session_runs_short(n, UINT64_MAX)) {
		n += UNIT_STRIDE;
		assert_true(n < FAILURES_MAX);
	}
}

static void memory_is_short_for_a_while(void **state) {
	(void)state;
	uint64_t n = 1;
	while (session_runs_short(n, 5)) {
		n += UNIT_STRIDE;
		assert_true(n < FAILURES_MAX);
	}
}

UNIT(client_alloc) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_allocation_fails),
		cmocka_unit_test(memory_is_short_from_then_on),
		cmocka_unit_test(memory_is_short_for_a_while),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
