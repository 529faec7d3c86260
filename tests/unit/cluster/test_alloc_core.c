/* Every allocation of a whole cluster's scenario fails in turn, once and for a while. Nothing
 * crashes, nothing leaks, every invariant holds after every step (the stage checks it), and once
 * there is memory again the cluster makes progress. */
#include "unit.h"

#include "failing.h"
#include "stage.h"

#define LEASE (500 * SPAN_MS)
#define LONGEST SPAN_S

static uint32_t one_watcher(void *ctx, struct slice key) {
	(void)ctx;
	(void)key;
	return 1;
}

static void try_start(struct stage *s) {
	for (uint32_t i = 0; i < s->options.masters; i++) {
		if (s->nodes[i].core == NULL && stage_start(s, i)) {
			stage_want_events(s, i);
			core_count_watchers(s->nodes[i].core, one_watcher, NULL);
		}
	}
}

static void ask(struct stage *s, uint32_t node, struct core_request r) {
	if (s->nodes[node].core) {
		stage_ask(s, node, r);
		stage_settle(s);
	}
}

static void contend(struct stage *s) {
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.owner = slice_str("owner");
	r.value = slice_str("value");
	r.identity = slice_str("alice");
	ask(s, 0, r);
	ask(s, 1, stage_acquire("k", stage_lock(2), LEASE, LONGEST));
	ask(s, 2, stage_acquire("k", stage_lock(3), LEASE, LONGEST));
	/* This request joins the attempt of the previous one. */
	ask(s, 2, stage_acquire("k", stage_lock(3), LEASE, LONGEST));
	ask(s, 1, stage_acquire("k", stage_lock(4), LEASE, 0));
	ask(s, 0, stage_acquire("other", stage_lock(5), LEASE, 0));
	ask(s, 1, stage_request(CORE_WAITERS, "k", stage_lock(0)));
}

static void hold(struct stage *s) {
	struct core_request extend = stage_request(CORE_EXTEND, "k", stage_lock(1)),
		update = stage_request(CORE_UPDATE, "k", stage_lock(1));
	struct core_request get = stage_request(CORE_GET, "k", stage_lock(0)),
		wait = stage_request(CORE_WAIT, "k", stage_lock(0));
	struct core_request list = stage_request(CORE_LIST, "", stage_lock(0));
	extend.lease = LEASE;
	ask(s, 0, extend);
	ask(s, 1, extend);
	update.value = slice_str("a longer value than before");
	ask(s, 0, update);
	update.expect_value = true;
	update.expected = slice_str("not this");
	ask(s, 2, update);
	get.quorum = true;
	ask(s, 1, get);
	ask(s, 1, stage_request(CORE_GET, "k", stage_lock(0)));
	ask(s, 2, list);
	wait.for_free = true;
	wait.wait = LONGEST;
	ask(s, 2, wait);
}

/* Several holders share one key and a writer waits for them; a semaphore has a waiter; and an
 * exclusive holder downgrades to let a reader in. */
static void share(struct stage *s) {
	struct core_request reader = stage_acquire("r", stage_lock(30), LEASE, 0),
		get = stage_request(CORE_GET, "r", stage_lock(0));
	reader.terms.of = MODE_SHARED;
	reader.label = slice_str("a label");
	ask(s, 0, reader);
	reader.lock_id = stage_lock(31);
	ask(s, 1, reader);
	ask(s, 2, stage_acquire("r", stage_lock(32), LEASE, LONGEST));
	get.quorum = true;
	ask(s, 2, get);
	get.quorum = false;
	ask(s, 0, get);
	struct core_request permits = stage_acquire("s", stage_lock(33), LEASE, 0);
	permits.terms.of = 3;
	permits.terms.count = 2;
	ask(s, 0, permits);
	permits.lock_id = stage_lock(34);
	permits.wait = LONGEST;
	ask(s, 1, permits);
	ask(s, 1, stage_request(CORE_RELEASE, "s", stage_lock(33)));
	struct core_request alone = stage_acquire("d", stage_lock(35), LEASE, 0);
	alone.terms.delay = LEASE / 2;
	ask(s, 0, alone);
	reader.key = slice_str("d");
	reader.lock_id = stage_lock(36);
	reader.wait = LONGEST;
	ask(s, 1, reader);
	ask(s, 2, stage_request(CORE_DOWNGRADE, "d", stage_lock(35)));
}

/* Two requests want the same keys together, and the client of the second one goes. */
static void together(struct stage *s) {
	const struct core_lock one[] = { { slice_str("p"), stage_lock(20), 0, 0 },
		{ slice_str("q"), stage_lock(21), 0, 0 } };
	const struct core_lock two[] = { { slice_str("q"), stage_lock(23), 0, 0 },
		{ slice_str("o"), stage_lock(22), 0, 0 } };
	struct core_request r = { .op = CORE_ACQUIRE_ALL, .locks = one, .lock_count = 2,
		.lease = LEASE, .wait = LONGEST, .client = 77 };
	struct core_request all = stage_request(CORE_WAITERS, "", stage_lock(0));
	all.prefix = true;
	ask(s, 0, r);
	r.locks = two;
	r.client = 78;
	ask(s, 0, r);
	/* This request joins the previous one. */
	ask(s, 0, r);
	ask(s, 0, stage_request(CORE_EXPLAIN, "q", stage_lock(0)));
	ask(s, 2, all);
	if (s->nodes[0].core) {
		stage_client_gone(s, 0, 78);
		stage_settle(s);
	}
}

static void scenario(struct stage *s) {
	try_start(s);
	stage_wait(s, 150 * SPAN_MS);
	try_start(s);
	stage_wait(s, 150 * SPAN_MS);
	contend(s);
	hold(s);
	together(s);
	share(s);
	/* n3 rejoins meanwhile, and has records to merge. */
	stage_kill(s, 2);
	try_start(s);
	struct core_request more = stage_acquire("k", stage_lock(6), LEASE, LONGEST);
	more.terms.priority = 1;
	more.owner = slice_str("important");
	more.label = slice_str("a host, a process");
	ask(s, 2, more);
	stage_wait(s, 200 * SPAN_MS);
	struct core_request given = stage_request(CORE_TRANSFER, "k", stage_lock(1)),
		asked = stage_request(CORE_ASK, "k", stage_lock(0));
	asked.to = given.to = slice_str("important");
	ask(s, 1, asked);
	ask(s, 0, given);
	ask(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(1)));
	stage_wait(s, 20 * SPAN_MS);
	struct core_request broken = stage_request(CORE_BREAK, "k", stage_lock(0));
	broken.now = true;
	ask(s, 1, broken);
	stage_wait(s, 20 * SPAN_MS);
	if (s->nodes[1].core) {
		stage_drain(s, 1);
	}
	try_start(s);
	stage_wait(s, 50 * SPAN_MS);
	stage_cut(s, 0, 1, true);
	ask(s, 0, stage_acquire("third", stage_lock(7), LEASE, 0));
	stage_wait(s, 50 * SPAN_MS);
	/* The record is sent to the master that missed it. */
	stage_cut(s, 0, 1, false);
	stage_wait(s, 50 * SPAN_MS);
}

static void progress(struct stage *s) {
	try_start(s);
	stage_wait(s, LONGEST + LONGEST / 2);
	for (uint8_t i = 0; i < 3; i++) {
		assert_int_equal(stage_do(s, i,
			stage_acquire("after", stage_lock((uint8_t)(50 + i)), LEASE, 0)), PAWL_OK);
		assert_int_equal(stage_do(s, i, stage_request(CORE_RELEASE, "after",
			stage_lock((uint8_t)(50 + i)))), PAWL_OK);
		struct core_status status = stage_status(s, i);
		assert_int_equal(status.state, CORE_VOTING);
		assert_int_equal(status.waiters + status.promises, 0);
	}
}

/* Without a failure all parts of the scenario happen. */
static void assert_whole(const struct stage *s) {
	static const enum core_count parts[] = { COUNT_rejoin, COUNT_snapshot_sent,
		COUNT_drain_consumed, COUNT_repair_sent, COUNT_repair_accepted, COUNT_turn_given,
		COUNT_promise_parked, COUNT_parked_promised, COUNT_extend_ok, COUNT_update_ok,
		COUNT_release_ok, COUNT_broken, COUNT_handed_over, COUNT_hand_over_promised,
		COUNT_asked, COUNT_group_held, COUNT_group_failed, COUNT_explained,
		COUNT_commit_shared, COUNT_commit_permits, COUNT_key_several, COUNT_downgraded };
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		if (stage_count(s, parts[i]) == 0) {
			fail_msg("%s did not happen", core_count_name(parts[i]));
		}
	}
}

/* Returns how many allocations the scenario made. */
static uint64_t run(uint64_t fail_first, uint64_t fail_count) {
	struct failing f = { .fail_first = fail_first, .fail_count = fail_count };
	struct allocator failing = { failing_resize, &f };
	struct stage_options o = stage_options_plain();
	o.core = &failing;
	o.max_lease = LONGEST;
	o.limits.released = 8;
	struct stage *s = stage_new(&o);
	scenario(s);
	uint64_t calls = f.calls;
	if (fail_first == 0) {
		assert_whole(s);
	}
	f.fail_first = 0;
	progress(s);
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
	for (uint64_t i = 0; 1 + 2 * i <= calls; i += UNIT_STRIDE) {
		run(1 + 2 * i, lengths[i / UNIT_STRIDE % 3]);
	}
}

UNIT(alloc_core) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_one_allocation_may_fail),
		cmocka_unit_test(memory_may_be_gone_for_a_while_from_any_allocation_on),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
