/* These tests are about a holder that extends its lock at once, although the library does that by
 * itself. */
#include "unit.h"

#include "client_rig.h"
#include "lock.h"

static const struct pawl_bytes key = { "k", 1 };

struct held {
	struct pawl_lock *lock;
	int cause;
	unsigned renewed;
};

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	((struct held *)arg)->lock = take_lock;
	pawl_result_free(take_result);
}

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct held *held = arg;
	(void)lock;
	assert_int_equal(held->cause, 0);
	held->cause = cause;
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	(void)lock;
	((struct held *)arg)->renewed++;
}

static void hold(struct rig *r, struct held *held) {
	*held = (struct held){ 0 };
	rig_open(r, NULL);
	assert_int_equal(pawl_lock_start(r->client, &(struct pawl_lock_options){ .key = key,
		.lease_ms = 9000, .on_lost = on_lost, .on_renewed = on_renewed, .arg = held },
		on_locked, held, NULL), 0);
	rig_settle(r);
	assert_non_null(held->lock);
}

static struct pawl_result *extend(struct rig *r, struct pawl_lock *lock, uint32_t lease_ms) {
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_lock_extend_start(lock, lease_ms, rig_done, &result, NULL), 0);
	rig_settle(r);
	return result;
}

static void the_deadline_is_later_at_once(void **state) {
	(void)state;
	struct rig r;
	struct held held;
	hold(&r, &held);
	rig_pass(&r, 2 * SPAN_S);
	assert_int_equal(pawl_lock_valid_ms(held.lock), 6910);
	r.nodes[0].token = 12;
	struct pawl_result *result = extend(&r, held.lock, 0);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(result->token, 12);
	assert_int_equal(pawl_result_valid_ms(result), 8910);
	assert_int_equal(pawl_lock_valid_ms(held.lock), 8910);
	assert_int_equal(pawl_lock_token(held.lock), 12);
	assert_int_equal(held.renewed, 1);
	pawl_result_free(result);
	/* The library goes on from there. */
	rig_pass(&r, 2500 * SPAN_MS);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	rig_pass(&r, SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 2);
	rig_close(&r);
}

static void with_a_lease_it_is_renewed_for_that_long_from_now_on(void **state) {
	(void)state;
	struct rig r;
	struct held held;
	hold(&r, &held);
	pawl_result_free(extend(&r, held.lock, 60000));
	assert_int_equal(pawl_lock_valid_ms(held.lock), 59400);
	rig_pass(&r, 19 * SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 1);
	rig_pass(&r, 2 * SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 2);
	assert_int_equal(r.nodes[0].last_lease, 60 * SPAN_S);
	/* What it has is not shortened by a shorter lease. */
	const int64_t valid = pawl_lock_valid_ms(held.lock);
	pawl_result_free(extend(&r, held.lock, 3000));
	assert_int_equal(pawl_lock_valid_ms(held.lock), valid);
	assert_int_equal(held.cause, 0);
	rig_close(&r);
}

static void a_refusal_leaves_the_lock_as_it_was(void **state) {
	(void)state;
	struct rig r;
	struct held held;
	hold(&r, &held);
	r.nodes[0].error = r.nodes[1].error = PAWL_ETOOLONG;
	struct pawl_result *result = extend(&r, held.lock, 90000);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ETOOLONG);
	assert_int_equal(pawl_lock_error(held.lock), 0);
	assert_int_equal(pawl_lock_valid_ms(held.lock), 8910);
	pawl_result_free(result);
	r.nodes[0].error = 0;
	rig_pass(&r, 3100 * SPAN_MS);
	assert_int_equal(r.nodes[0].last_lease, 9 * SPAN_S);
	rig_close(&r);
}

static void a_lock_that_is_lost_is_told_to_be(void **state) {
	(void)state;
	struct rig r;
	struct held held;
	hold(&r, &held);
	r.nodes[0].error = PAWL_ELOST;
	struct pawl_result *result = extend(&r, held.lock, 0);
	assert_non_null(result);
	assert_int_equal(result->error, PAWL_ELOST);
	assert_int_equal(held.cause, PAWL_ELOST);
	assert_int_equal(pawl_lock_valid_ms(held.lock), 0);
	pawl_result_free(result);
	assert_int_equal(pawl_lock_extend_start(held.lock, 0, NULL, NULL, NULL), PAWL_EINVAL);
	rig_close(&r);
}

static void the_handle_may_be_gone_and_the_call_canceled(void **state) {
	(void)state;
	struct rig r;
	struct held held;
	struct pawl_result *result = NULL;
	struct pawl_call *call;
	hold(&r, &held);
	assert_int_equal(pawl_lock_extend_start(held.lock, 0, rig_done, &result, &call), 0);
	pawl_cancel(call);
	assert_int_equal(pawl_lock_extend_start(held.lock, 0, rig_done, &result, NULL), 0);
	pawl_lock_free(held.lock);
	rig_settle(&r);
	assert_non_null(result);
	assert_int_equal(result->error, 0);
	assert_int_equal(held.renewed, 0);
	pawl_result_free(result);
	rig_close(&r);
}

UNIT(client_extending) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_deadline_is_later_at_once),
		cmocka_unit_test(with_a_lease_it_is_renewed_for_that_long_from_now_on),
		cmocka_unit_test(a_refusal_leaves_the_lock_as_it_was),
		cmocka_unit_test(a_lock_that_is_lost_is_told_to_be),
		cmocka_unit_test(the_handle_may_be_gone_and_the_call_canceled),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
