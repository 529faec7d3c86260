/* Every allocation of a replica's life fails in turn, once and for a while. Nothing crashes,
 * nothing leaks, every invariant holds after every step (the stage checks it), and once there is
 * memory again the replica has what its master has. */
#include "failing.h"

#include "stage.h"

#define LEASE (500 * SPAN_MS)
#define LONGEST (600 * SPAN_MS)
#define REPLICA 3u

static void try_start(struct stage *s) {
	for (uint32_t i = 0; i < s->count; i++) {
		if (s->nodes[i].core == NULL) {
			stage_start(s, i);
		}
	}
}

static void ask(struct stage *s, uint32_t node, struct core_request r) {
	if (s->nodes[node].core) {
		stage_ask(s, node, r);
		stage_settle(s);
	}
}

static void take(struct stage *s, uint8_t number) {
	char key[] = { 'k', (char)('a' + number), 0 };
	struct core_request r = stage_acquire(key, stage_lock(number), LEASE, 0);
	r.value = slice_str("value");
	ask(s, number % 4, r);
}

static void ask_wait(struct stage *s, const char *key, bool for_free) {
	struct core_request r = stage_request(CORE_WAIT, key, stage_lock(0));
	r.for_free = for_free;
	r.wait = LONGEST;
	ask(s, REPLICA, r);
}

static void cut(struct stage *s, bool on) {
	for (uint32_t i = 0; i < 3; i++) {
		if (!on ||
			(s->nodes[REPLICA].core && stage_status(s, REPLICA).following == (int)i)) {
			stage_cut(s, REPLICA, i, on);
		}
	}
}

static void scenario(struct stage *s) {
	for (uint8_t i = 0; i < 8; i++) {
		take(s, i);
	}
	stage_wait(s, 20 * SPAN_MS);
	if (s->nodes[REPLICA].core) {
		stage_want_events(s, REPLICA);
	}
	stage_wait(s, 20 * SPAN_MS);
	ask_wait(s, "ka", true);
	ask_wait(s, "none", false);
	cut(s, true);
	ask(s, 1, stage_request(CORE_RELEASE, "ka", stage_lock(0)));
	for (uint8_t i = 8; i < 12; i++) {
		take(s, i);
	}
	/* The replica moves: it takes a snapshot, and its tables are swapped while requests
	 * wait. */
	stage_wait(s, 250 * SPAN_MS);
	ask(s, REPLICA, stage_request(CORE_LIST, "", stage_lock(0)));
	struct core_request update = stage_request(CORE_UPDATE, "kb", stage_lock(1));
	update.value = slice_str("a longer value than before");
	ask(s, 1, update);
	stage_wait(s, 20 * SPAN_MS);
	cut(s, false);
	if (s->nodes[REPLICA].core) {
		stage_kill(s, REPLICA);
	}
	try_start(s);
	stage_wait(s, 100 * SPAN_MS);
}

/* Without a failure all parts of the scenario happen. */
static void assert_whole(const struct stage *s) {
	static const enum core_count parts[] = { COUNT_feed_snapshot, COUNT_feed_whole,
		COUNT_table_swapped, COUNT_feed_batch, COUNT_feed_watch_events_missed };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (stage_count(s, parts[i]) == 0) {
			fail_msg("%s did not happen", core_count_name(parts[i]));
		}
	}
}

/* Returns how many allocations the scenario made. */
static uint64_t run(uint64_t fail_first, uint64_t fail_count) {
	struct failing f = { .fail_first = 0 };
	struct allocator failing = { failing_resize, &f };
	struct stage_options o = stage_options_plain();
	o.core = &failing;
	o.replicas = 1;
	o.max_lease = LONGEST;
	o.limits.released = 8;
	o.limits.log_bytes = 2048;
	struct stage *s = stage_born(&o);
	uint64_t before = f.calls;
	f.fail_first = fail_first ? before + fail_first : 0;
	f.fail_count = fail_count;
	scenario(s);
	uint64_t calls = f.calls - before;
	if (fail_first == 0) {
		assert_whole(s);
	}
	f.fail_first = 0;
	try_start(s);
	/* The replica rests after it had no memory. */
	stage_wait(s, 2 * LONGEST);
	for (uint8_t i = 20; i < 24; i++) {
		assert_int_equal(stage_do(s, i % 4, stage_acquire((char[]){ 'n', (char)i, 0 },
			stage_lock(i), LEASE, 0)), PAWL_OK);
	}
	stage_wait(s, 50 * SPAN_MS);
	struct core_status status = stage_status(s, REPLICA);
	assert_true(status.following >= 0 && !status.catching_up && status.held == 4);
	stage_free(s);
	assert_int_equal(f.used, 0);
	return calls;
}

static void any_one_allocation_may_fail(void **state) {
	(void)state;
	uint64_t calls = run(0, 0);
	assert_true(calls > 100);
	for (uint64_t i = 1; i <= calls; i += UNIT_STRIDE) {
		run(i, 1);
	}
}

static void memory_may_be_gone_for_a_while_from_any_allocation_on(void **state) {
	(void)state;
	static const uint64_t lengths[] = { 3, 25, 400 };
	uint64_t calls = run(0, 0);
	for (uint64_t i = 1; i <= calls; i += 4 * UNIT_STRIDE) {
		run(i, lengths[i / (4 * UNIT_STRIDE) % 3]);
	}
}

UNIT(alloc_replicas) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_one_allocation_may_fail),
		cmocka_unit_test(memory_may_be_gone_for_a_while_from_any_allocation_on),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
