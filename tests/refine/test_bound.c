/* test_bound.c: the abstract machine refuses that a node trusts a lock that ends with it for too
 * long, says too early that it is lost, or that a master forgets or keeps what is bound. */
#include "voter.h"

#include "bound.h"
#include "pawl/error.h"

#define GRACE (100 * SPAN_MS)

static const uint64_t ids[MASTERS_MAX] = { 11, 12, 13 };

static struct b_node bound;

/* Three masters have said that they have the record for 10 s. The node is none of them. */
static struct b_lock *begin(const struct m_node *node) {
	bound.count = 0;
	bound_begins(&bound, slice_str("k"), lock(1), GRACE);
	struct b_lock *l = bound_find(&bound, lock(1));
	assert_non_null(l);
	bound_masters(l, node, ids);
	for (uint32_t i = 0; i < 3; i++) {
		bound_link(l, i, true, node->now, false);
		bound_asks(l, i, node->now);
		bound_hears(l, i, &(struct message){ .status = STATUS_OK, .left_us = 10000000 },
			node);
	}
	return l;
}

static struct m_node after(const struct m_node *node, span_ns time) {
	struct m_node later = *node;
	later.now = instant_add(node->now, time);
	return later;
}

/* Once a master may have dropped the record, q others have to keep it. */
static void test_trust(void **state) {
	(void)state;
	const struct m_node node = some_node();
	struct b_lock *l = begin(&node);
	assert_null(bound_trusted(l, &node, INSTANT_FOREVER));
	assert_non_null(bound_lost(l, &node));
	bound_link(l, 0, false, node.now, false);
	assert_null(bound_trusted(l, &node, instant_add(node.now, 9 * SPAN_S)));
	bound_link(l, 1, false, node.now, false);
	const struct instant gone = instant_add(node.now,
		span_shrink(GRACE, 2 * node.drift_ppm));
	assert_null(bound_trusted(l, &node, gone));
	assert_non_null(bound_trusted(l, &node, instant_add(gone, 1)));
	assert_non_null(bound_lost(l, &node));
	const struct m_node later = after(&node, GRACE);
	assert_null(bound_lost(l, &later));
	assert_non_null(bound_trusted(l, &later, instant_add(later.now, 1)));
}

/* A master whose side has closed the link drops nothing because of that, and keeps nothing for
 * certain. */
static void test_closed_by_a_master(void **state) {
	(void)state;
	const struct m_node node = some_node();
	struct b_lock *l = begin(&node);
	const struct m_node later = after(&node, GRACE);
	bound_link(l, 0, false, node.now, true);
	bound_link(l, 1, false, node.now, true);
	assert_null(bound_trusted(l, &later, INSTANT_FOREVER));
	assert_non_null(bound_lost(l, &later));
	bound_link(l, 2, false, node.now, false);
	assert_null(bound_lost(l, &later));
}

/* The masters may end the record with its lease. An extension that they accept makes it longer. */
static void test_lease(void **state) {
	(void)state;
	const struct m_node node = some_node();
	struct b_lock *l = begin(&node);
	bound_link(l, 0, false, node.now, false);
	const struct instant end = l->master[1].until;
	assert_non_null(bound_trusted(l, &node, instant_add(end, 1)));
	bound_extended(l, 1, node.now, 20000000, &node);
	assert_non_null(bound_trusted(l, &node, instant_add(end, 1)));
	bound_extended(l, 2, node.now, 20000000, &node);
	assert_null(bound_trusted(l, &node, instant_add(end, 1)));
	/* A lock with permit numbers is left out. */
	l->left_out = true;
	assert_null(bound_trusted(l, &node, INSTANT_FOREVER));
}

/* More than n - q masters had no record at one moment, and q have answered. */
static void test_nobody_holds(void **state) {
	(void)state;
	struct m_node node = some_node();
	struct b_lock *l = begin(&node);
	struct message absent = { .status = STATUS_ABSENT, .left_us = 5000000 };
	bound_asks(l, 0, node.now);
	bound_hears(l, 0, &absent, &node);
	assert_non_null(bound_lost(l, &node));
	absent.left_us = 0;
	struct m_node later = after(&node, SPAN_S);
	bound_asks(l, 1, later.now);
	bound_hears(l, 1, &absent, &later);
	/* One lacked it after the other. */
	l->master[0].dropped = l->master[1].dropped = false;
	assert_non_null(bound_lost(l, &later));
	absent.left_us = 5000000;
	bound_asks(l, 1, later.now);
	bound_hears(l, 1, &absent, &later);
	l->master[1].dropped = false;
	assert_null(bound_lost(l, &later));
	l->master[0].heard = l->master[2].heard = false;
	assert_non_null(bound_lost(l, &later));
}

/* Other masters have to say that they have the record before those of the previous epoch may have
 * dropped it. */
static void test_other_masters(void **state) {
	(void)state;
	const uint64_t others[MASTERS_MAX] = { 21, 22, 23 };
	struct m_node node = some_node();
	struct b_lock *l = begin(&node);
	node.epoch++;
	bound_epoch(l, &node, others);
	const struct instant before = instant_add(node.now,
		span_shrink(GRACE, 2 * node.drift_ppm));
	assert_null(bound_trusted(l, &node, before));
	assert_non_null(bound_trusted(l, &node, instant_add(before, 1)));
	for (uint32_t i = 0; i < 2; i++) {
		bound_link(l, i, true, node.now, false);
		bound_asks(l, i, node.now);
		bound_hears(l, i, &(struct message){ .status = STATUS_OK, .left_us = 10000000 },
			&node);
	}
	bound_settles(l, &node);
	assert_null(bound_trusted(l, &node, INSTANT_FOREVER));
	/* With the same masters the binding goes on. */
	l = begin(&node);
	bound_epoch(l, &node, ids);
	assert_null(bound_trusted(l, &node, INSTANT_FOREVER));
}

/* ---- the master ---- */

static void test_binding_is_forgotten(void **state) {
	(void)state;
	static struct b_table t;
	const struct instant now = { 50 * SPAN_S, 50 * SPAN_S };
	bound_makes(&t, lock(1), 7, 1, GRACE);
	assert_true(bound_is(&t, lock(1), 7, 1));
	assert_false(bound_is(&t, lock(1), 7, 2));
	bound_accepts(&t, lock(1), 7, 1);
	assert_true(bound_is(&t, lock(1), 0, 0));
	/* Another node goes on with it. */
	bound_accepts(&t, lock(1), 8, 1);
	assert_false(bound_is(&t, lock(1), 0, 0));
	/* It is not told again over a new link, or in a new epoch. */
	bound_makes(&t, lock(1), 7, 1, GRACE);
	bound_up(&t, 7, 1, now);
	bound_accepts(&t, lock(1), 7, 1);
	assert_false(bound_is(&t, lock(1), 0, 0));
	bound_makes(&t, lock(1), 7, 1, GRACE);
	bound_next(&t, true);
	bound_accepts(&t, lock(1), 7, 1);
	assert_false(bound_is(&t, lock(1), 0, 0));
	bound_makes(&t, lock(1), 7, 1, GRACE);
	bound_next(&t, false);
	assert_false(bound_is(&t, lock(1), 0, 0));
}

static void test_record_ends_with_its_node(void **state) {
	(void)state;
	static struct b_table t;
	const struct instant now = { 50 * SPAN_S, 50 * SPAN_S }, late = instant_add(now, GRACE);
	bound_makes(&t, lock(1), 7, 1, GRACE);
	assert_non_null(bound_may_end(&t, 1, late));
	bound_closed(&t, 7, 1, now);
	assert_non_null(bound_may_end(&t, 1, instant_add(now, GRACE - 1)));
	assert_null(bound_may_end(&t, 1, late));
	assert_non_null(bound_may_end(&t, 2, late));
	/* It is back, and starts anew. */
	bound_up(&t, 7, 1, now);
	assert_non_null(bound_may_end(&t, 1, late));
	bound_up(&t, 7, 2, now);
	assert_null(bound_may_end(&t, 1, late));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trust),
		cmocka_unit_test(test_closed_by_a_master),
		cmocka_unit_test(test_lease),
		cmocka_unit_test(test_nobody_holds),
		cmocka_unit_test(test_other_masters),
		cmocka_unit_test(test_binding_is_forgotten),
		cmocka_unit_test(test_record_ends_with_its_node),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
