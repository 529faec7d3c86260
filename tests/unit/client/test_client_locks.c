/* These tests are about locks of the client: what valid_ms means, renewal in batches, and how a
 * lock ends. */
#include "unit.h"

#include <stdio.h>

#include "client_rig.h"

struct holder {
	struct pawl_lock *lock;
	struct pawl_result *result;
	int cause;
	unsigned lost, renewed;
	int64_t left_when_lost;
};

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct holder *h = arg;
	h->lock = take_lock;
	h->result = take_result;
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct holder *h = arg;
	h->cause = cause;
	h->lost++;
	h->left_when_lost = pawl_lock_valid_ms(lock);
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	struct holder *h = arg;
	(void)lock;
	h->renewed++;
}

static void start(struct rig *r, struct holder *h, const char *key, uint32_t lease_ms) {
	*h = (struct holder){ 0 };
	struct pawl_lock_options o = { .key = pawl_str(key), .lease_ms = lease_ms, .wait_ms = 1000,
		.on_lost = on_lost, .on_renewed = on_renewed, .arg = h };
	assert_int_equal(pawl_lock_start(r->client, &o, on_locked, h, NULL), 0);
}

static void take(struct rig *r, struct holder *h, const char *key, uint32_t lease_ms) {
	start(r, h, key, lease_ms);
	rig_settle(r);
	assert_non_null(h->result);
	assert_int_equal(h->result->error, 0);
	assert_non_null(h->lock);
}

/* Opens a client that has a lock. */
static void hold(struct rig *r, struct holder *h, uint32_t lease_ms) {
	rig_open(r, NULL);
	take(r, h, "k", lease_ms);
}

static void drop(struct holder *h) {
	pawl_lock_free(h->lock);
	pawl_result_free(h->result);
}

static void trust_ends_when_either_clock_says_so(void **state) {
	(void)state;
	for (int which = 0; which < 2; which++) {
		struct rig r;
		struct holder h;
		hold(&r, &h, 10000);
		assert_int_equal(pawl_lock_valid_ms(h.lock), 9900);
		rig_jump(&r, which ? 9000 * SPAN_MS : 0, which ? 0 : 9000 * SPAN_MS);
		assert_int_equal(pawl_lock_valid_ms(h.lock), 900);
		rig_jump(&r, which ? 900 * SPAN_MS : 0, which ? 0 : 900 * SPAN_MS);
		assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
		assert_int_equal(pawl_lock_error(h.lock), PAWL_ELOST);
		drop(&h);
		rig_close(&r);
	}
}

static void the_time_counts_from_the_sending(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	start(&r, &h, "k", 10000);
	rig_settle(&r);
	rig_jump(&r, 2 * SPAN_S, 2 * SPAN_S);
	fake_let_go(&r.nodes[0]);
	r.nodes[0].mood = FAKE_ANSWERS;
	rig_settle(&r);
	assert_non_null(h.lock);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 7900);
	drop(&h);
	rig_close(&r);
}

/* After a wait of more than a hundred leases the drift of the clocks over the wait is longer than
 * the lease, so the answer leaves no time. */
static void a_lock_that_comes_after_a_long_wait_is_asked_for_again_and_held(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	const struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 10000,
		.wait_ms = PAWL_FOREVER, .on_lost = on_lost, .arg = &h };
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[0].waited = 3000 * SPAN_S;
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), 0);
	rig_settle(&r);
	assert_true(r.nodes[0].last.core.wait == (span_ns)CLIENT_MS_MAX * SPAN_MS);
	const struct id128 wanted = r.nodes[0].last_lock_id;
	rig_jump(&r, 20 * SPAN_S, 20 * SPAN_S);
	fake_let_go(&r.nodes[0]);
	r.nodes[0].mood = FAKE_ANSWERS;
	rig_settle(&r);
	assert_non_null(h.lock);
	assert_int_equal(h.result->error, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	assert_memory_equal(&r.nodes[0].last_lock_id, &wanted, sizeof wanted);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 9900);
	drop(&h);
	rig_close(&r);
}

static void a_node_that_never_leaves_any_time_is_asked_twice(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	const struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 10000,
		.wait_ms = 1000 };
	rig_open(&r, NULL);
	r.nodes[0].waited = 3000 * SPAN_S;
	r.nodes[0].valid_permille = 0;
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), 0);
	rig_settle(&r);
	assert_non_null(h.result);
	assert_int_equal(h.result->error, PAWL_ELOST);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	drop(&h);
	rig_close(&r);
}

static void a_lock_is_renewed_at_a_third_of_its_lease(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, 9000);
	rig_pass(&r, 2200 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 0);
	rig_pass(&r, 900 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	assert_true(r.nodes[0].last.core.deadline_kept);
	rig_pass(&r, 60 * SPAN_S);
	assert_int_equal(h.lost, 0);
	assert_true(h.renewed >= 18 && h.renewed <= 26);
	assert_true(pawl_lock_valid_ms(h.lock) > 5000);
	drop(&h);
	rig_close(&r);
}

#define MANY 100

static void locks_that_are_due_together_share_a_request(void **state) {
	(void)state;
	struct rig r;
	struct holder h[MANY];
	char key[16];
	rig_open(&r, NULL);
	for (size_t i = 0; i < MANY; i++) {
		(void)snprintf(key, sizeof(key), "k%zu", i);
		take(&r, &h[i], key, 9000);
		rig_pass(&r, 5 * SPAN_MS);
	}
	r.nodes[0].asked[CLIENT_EXTEND] = 0;
	rig_pass(&r, 9 * SPAN_S);
	assert_true(r.nodes[0].asked[CLIENT_EXTEND] <= 7);
	assert_int_equal(r.nodes[0].locks_max, MANY);
	for (size_t i = 0; i < MANY; i++) {
		assert_int_equal(h[i].lost, 0);
		assert_true(h[i].renewed >= 2);
		drop(&h[i]);
	}
	rig_close(&r);
}

static void a_lease_that_is_left_open_is_what_the_cluster_allows(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	r.nodes[0].lease_most = r.nodes[1].lease_most = 6 * SPAN_S;
	take(&r, &h, "k", 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 2);
	assert_true(r.nodes[0].last_lease == 6 * SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	/* It is renewed at a third of that, for as long again. */
	rig_pass(&r, 2500 * SPAN_MS);
	assert_int_equal(h.renewed, 1);
	assert_true(r.nodes[0].last_lease == 6 * SPAN_S);
	/* Without extensions, the holder is told a sixth before the end. */
	r.nodes[0].error = r.nodes[1].error = PAWL_ENOQUORUM;
	rig_pass(&r, 5 * SPAN_S);
	assert_int_equal(h.lost, 1);
	assert_in_range(h.left_when_lost, 900, 1000);
	drop(&h);
	r.nodes[0].error = r.nodes[1].error = 0;
	/* The client knows it now; and the limit is for the lease and the lock delay together. */
	struct pawl_lock_options o = { .key = pawl_str("l"), .terms.lock_delay_ms = 1000,
		.arg = &h };
	r.nodes[0].asked[CLIENT_ACQUIRE] = r.nodes[1].asked[CLIENT_ACQUIRE] = 0;
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), 0);
	rig_pass(&r, 3 * SPAN_S);
	assert_int_equal(h.result->error, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE] + r.nodes[1].asked[CLIENT_ACQUIRE], 1);
	assert_true(r.nodes[0].asked[CLIENT_ACQUIRE] ? r.nodes[0].last_lease == 5 * SPAN_S
		: r.nodes[1].last_lease == 5 * SPAN_S);
	drop(&h);
	rig_close(&r);
}

static void a_lease_that_is_named_is_not_shortened(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	r.nodes[0].lease_most = 6 * SPAN_S;
	start(&r, &h, "k", 30000);
	rig_settle(&r);
	assert_int_equal(h.result->error, PAWL_ETOOLONG);
	assert_null(h.lock);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	pawl_result_free(h.result);
	rig_close(&r);
}

static void a_refusal_of_one_lock_leaves_the_others_alone(void **state) {
	(void)state;
	struct rig r;
	struct holder a, b;
	rig_open(&r, NULL);
	take(&r, &a, "a", 9000);
	take(&r, &b, "b", 9000);
	r.nodes[0].error_of_item = PAWL_ELOST;
	rig_pass(&r, 3500 * SPAN_MS);
	assert_int_equal(a.lost + b.lost, 1);
	struct holder *lost = a.lost ? &a : &b, *kept = a.lost ? &b : &a;
	assert_int_equal(lost->cause, PAWL_ELOST);
	assert_int_equal(lost->left_when_lost, 0);
	assert_true(pawl_lock_valid_ms(kept->lock) > 5000);
	drop(&a);
	drop(&b);
	rig_close(&r);
}

static void without_extensions_the_holder_is_told_before_the_deadline(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, 9000);
	r.nodes[0].error = r.nodes[1].error = PAWL_ENOQUORUM;
	rig_pass(&r, 7300 * SPAN_MS);
	assert_int_equal(h.lost, 0);
	rig_pass(&r, 200 * SPAN_MS);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.cause, PAWL_ENOQUORUM);
	assert_int_equal(h.left_when_lost / 100, 15 - 1);
	assert_true(r.nodes[0].asked[CLIENT_EXTEND] + r.nodes[1].asked[CLIENT_EXTEND] >= 4);
	assert_true(r.nodes[1].asked[CLIENT_EXTEND] > 0);
	r.nodes[0].error = r.nodes[1].error = 0;
	rig_pass(&r, 30 * SPAN_S);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.renewed, 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
	drop(&h);
	rig_close(&r);
}

static void an_answer_after_the_deadline_brings_nothing_back(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, 9000);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	rig_pass(&r, 3100 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	/* The process has paused, and no alarm has run yet. */
	rig_jump(&r, 6 * SPAN_S, 6 * SPAN_S);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.cause, PAWL_ELOST);
	assert_int_equal(h.renewed, 0);
	assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
	drop(&h);
	rig_close(&r);
}

static void an_acquire_whose_lease_is_over_at_the_answer_is_no_lock(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	start(&r, &h, "k", 1000);
	rig_settle(&r);
	rig_jump(&r, SPAN_S, 0);
	fake_let_go(&r.nodes[0]);
	r.nodes[0].mood = FAKE_ANSWERS;
	rig_settle(&r);
	assert_null(h.lock);
	assert_non_null(h.result);
	assert_int_equal(h.result->error, PAWL_ELOST);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	drop(&h);
	rig_close(&r);
}

static void a_lock_outlives_the_node_that_gave_it(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, 9000);
	r.nodes[0].mood = FAKE_HANGS_UP;
	fake_hang_up(&r.nodes[0]);
	rig_pass(&r, 20 * SPAN_S);
	assert_int_equal(h.lost, 0);
	assert_true(r.nodes[1].asked[CLIENT_EXTEND] >= 4);
	drop(&h);
	rig_close(&r);
}

static void a_node_that_hangs_costs_no_lock(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, 1000);
	r.nodes[0].mood = FAKE_SILENT;
	rig_pass(&r, 5 * SPAN_S);
	assert_int_equal(h.lost, 0);
	assert_true(r.nodes[1].asked[CLIENT_EXTEND] >= 8);
	drop(&h);
	rig_close(&r);
}

static void a_holder_that_waited_long_extends_at_once(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	r.nodes[0].waited = 60 * SPAN_S;
	take(&r, &h, "k", 9000);
	rig_pass(&r, 10 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	drop(&h);
	rig_close(&r);
}

static void a_repeat_that_fails_does_not_take_the_lock_away(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *result = NULL;
	hold(&r, &h, 9000);
	r.nodes[0].error = PAWL_ENOQUORUM;
	struct pawl_request repeat = { .method = PAWL_ACQUIRE, .key = pawl_str("k"),
		.lock_id = pawl_lock_id(h.lock) };
	assert_int_equal(pawl_start(r.client, &repeat, rig_done, &result, NULL), 0);
	rig_settle(&r);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ENOQUORUM);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	pawl_result_free(result);
	drop(&h);
	rig_close(&r);
}

static void two_nodes_that_hang_cost_no_lock(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, 3000);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
	/* Both nodes have been tried by then. */
	rig_pass(&r, 1800 * SPAN_MS);
	assert_true(r.nodes[1].asked[CLIENT_EXTEND] > 0);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_ANSWERS;
	rig_pass(&r, 5 * SPAN_S);
	assert_int_equal(h.lost, 0);
	drop(&h);
	rig_close(&r);
}

static void a_release_ends_trust_and_renewal(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *result = NULL;
	hold(&r, &h, 9000);
	assert_int_equal(pawl_lock_release_start(h.lock, rig_done, &result), 0);
	rig_pass(&r, 20 * SPAN_S);
	assert_non_null(result);
	assert_true(result->released);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 0);
	assert_int_equal(h.lost, 0);
	pawl_result_free(result);
	pawl_result_free(h.result);
	rig_close(&r);
}

static void free_when_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct holder *h = arg;
	h->cause = cause;
	pawl_lock_free(lock);
	h->lock = NULL;
}

static void a_lock_may_be_freed_when_it_is_lost(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	rig_open(&r, NULL);
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 9000,
		.on_lost = free_when_lost, .arg = &h };
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), 0);
	rig_settle(&r);
	r.nodes[0].error = PAWL_ELOST;
	rig_pass(&r, 4 * SPAN_S);
	assert_int_equal(h.cause, PAWL_ELOST);
	pawl_result_free(h.result);
	rig_close(&r);
}

static void a_canceled_acquisition_leaves_nothing(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	struct pawl_call *call;
	rig_open(&r, NULL);
	struct pawl_lock_options o = { .key = pawl_str("k"), .wait_ms = 1000 };
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, &call), 0);
	pawl_cancel(call);
	rig_settle(&r);
	assert_null(h.result);
	rig_close(&r);
}

static void without_renewal_the_lease_runs_out(void **state) {
	(void)state;
	struct rig r;
	struct holder h = { 0 };
	rig_open(&r, NULL);
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 6000, .no_renewal = true,
		.warn_ms = 500, .on_lost = on_lost, .arg = &h };
	assert_int_equal(pawl_lock_start(r.client, &o, on_locked, &h, NULL), 0);
	rig_settle(&r);
	rig_pass(&r, 5400 * SPAN_MS);
	assert_int_equal(h.lost, 0);
	rig_pass(&r, 100 * SPAN_MS);
	assert_int_equal(h.lost, 1);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 0);
	drop(&h);
	rig_close(&r);
}

UNIT(client_locks) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trust_ends_when_either_clock_says_so),
		cmocka_unit_test(the_time_counts_from_the_sending),
		cmocka_unit_test(a_lock_that_comes_after_a_long_wait_is_asked_for_again_and_held),
		cmocka_unit_test(a_node_that_never_leaves_any_time_is_asked_twice),
		cmocka_unit_test(a_lock_is_renewed_at_a_third_of_its_lease),
		cmocka_unit_test(locks_that_are_due_together_share_a_request),
		cmocka_unit_test(a_refusal_of_one_lock_leaves_the_others_alone),
		cmocka_unit_test(without_extensions_the_holder_is_told_before_the_deadline),
		cmocka_unit_test(an_answer_after_the_deadline_brings_nothing_back),
		cmocka_unit_test(an_acquire_whose_lease_is_over_at_the_answer_is_no_lock),
		cmocka_unit_test(a_lock_outlives_the_node_that_gave_it),
		cmocka_unit_test(a_node_that_hangs_costs_no_lock),
		cmocka_unit_test(a_holder_that_waited_long_extends_at_once),
		cmocka_unit_test(a_repeat_that_fails_does_not_take_the_lock_away),
		cmocka_unit_test(two_nodes_that_hang_cost_no_lock),
		cmocka_unit_test(a_release_ends_trust_and_renewal),
		cmocka_unit_test(a_lock_may_be_freed_when_it_is_lost),
		cmocka_unit_test(a_canceled_acquisition_leaves_nothing),
		cmocka_unit_test(without_renewal_the_lease_runs_out),
		cmocka_unit_test(a_lease_that_is_left_open_is_what_the_cluster_allows),
		cmocka_unit_test(a_lease_that_is_named_is_not_shortened),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
