/* The table of the locks that the node itself extends. */
#include "unit.h"

#include "kept_locks.h"
#include "pawl/error.h"

#define MOST 5000u

static const uint32_t gids[] = { 7, 1000 };
static const struct kept_holder holder = { .local = true, .uid = 1000, .gids = gids,
	.gid_count = 2 };

struct table {
	struct alloc_counter memory;
	struct allocator alloc;
	struct kept_locks kept;
};

static int open_table(void **state) {
	static struct table t;
	t = (struct table){ 0 };
	t.alloc = alloc_libc(&t.memory);
	assert_int_equal(kept_locks_init(&t.kept, &t.alloc), 0);
	*state = &t;
	return 0;
}

static int close_table(void **state) {
	struct table *t = *state;
	kept_locks_done(&t->kept);
	assert_int_equal(t->memory.used, 0);
	return 0;
}

static struct id128 lock(unsigned n) {
	return (struct id128){ .b = { (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), 5 } };
}

static struct instant at(int64_t seconds) {
	return (struct instant){ seconds * SPAN_S, seconds * SPAN_S };
}

/* Leases are a minute long. */
static int add(struct table *t, unsigned n, int64_t since) {
	const struct kept_lease lease = { at(since + 60), 60 * SPAN_S };
	struct kept_holder named = holder;
	char key[] = "key", identity[] = "web", owner[] = "";
	named.identity = slice_str(identity);
	named.owner = slice_str(owner);
	int error = kept_locks_add(&t->kept, slice_str(key), lock(n), &named, lease, MOST);
	/* The table has copies. */
	memset(key, 0, sizeof key);
	memset(identity, 0, sizeof identity);
	return error;
}

static struct kept_lock *added(struct table *t, unsigned n, int64_t since, int64_t max_lease) {
	assert_int_equal(add(t, n, since), 0);
	struct kept_lock *kept = kept_locks_find(&t->kept, lock(n));
	kept_locks_again(&t->kept, kept, at(since), max_lease * SPAN_S);
	return kept;
}

static void test_a_lock_is_kept_with_its_holder_until_it_is_dropped(void **state) {
	struct table *t = *state;
	assert_int_equal(add(t, 1, 10), 0);
	const struct kept_lock *kept = kept_locks_find(&t->kept, lock(1));
	assert_non_null(kept);
	assert_true(slice_equal(kept->key, slice_str("key")));
	assert_true(slice_equal(kept->holder.identity, slice_str("web")));
	assert_int_equal(kept->holder.owner.size, 0);
	assert_int_equal(kept->holder.gids[1], 1000);
	assert_null(kept_locks_find(&t->kept, lock(2)));
	kept_locks_drop(&t->kept, lock(2));
	kept_locks_drop(&t->kept, lock(1));
	assert_null(kept_locks_find(&t->kept, lock(1)));
	assert_null(kept_locks_next(&t->kept));
}

static void test_the_next_lock_is_the_one_that_is_due_first(void **state) {
	struct table *t = *state;
	(void)added(t, 1, 0, 60);
	(void)added(t, 2, 1, 60);
	/* The leases of the cluster have become shorter. */
	(void)added(t, 3, 2, 18);
	assert_true(id128_equal(kept_locks_next(&t->kept)->lock_id, lock(3)));
	assert_int_equal(kept_locks_next(&t->kept)->due.boot, 5 * SPAN_S);
	kept_locks_again(&t->kept, kept_locks_next(&t->kept), at(5), 60 * SPAN_S);
	assert_true(id128_equal(kept_locks_next(&t->kept)->lock_id, lock(1)));
	kept_locks_drop(&t->kept, lock(1));
	assert_true(id128_equal(kept_locks_next(&t->kept)->lock_id, lock(2)));
	kept_locks_again(&t->kept, kept_locks_next(&t->kept), at(11), 60 * SPAN_S);
	assert_true(id128_equal(kept_locks_next(&t->kept)->lock_id, lock(3)));
	assert_int_equal(kept_locks_next(&t->kept)->due.boot, 15 * SPAN_S);
}

static void test_a_lock_that_nobody_could_extend_is_over_before_its_lease(void **state) {
	struct table *t = *state;
	struct kept_lock *kept = added(t, 1, 0, 60);
	for (int64_t now = 10; now <= 50; now += 10) {
		assert_int_equal(kept->due.boot, now * SPAN_S);
		assert_false(kept_lock_over(kept, at(now)));
		kept_locks_again(&t->kept, kept, at(now), 60 * SPAN_S);
	}
	assert_int_equal(kept->due.boot, 55 * SPAN_S);
	assert_false(kept_lock_over(kept, at(54)));
	assert_true(kept_lock_over(kept, at(55)));
}

static void test_an_extension_counts_from_when_it_was_asked_for(void **state) {
	struct table *t = *state;
	struct kept_lock *kept = added(t, 1, 0, 60);
	kept_lock_asked(kept, 7, at(10));
	kept_lock_asked(kept, 8, at(20));
	/* The first one was sent at 10, and the lock would be taken for valid until 80. */
	kept_lock_extended(kept, 7, 60 * SPAN_S);
	assert_true(kept_lock_over(kept, at(55)));
	kept_lock_extended(kept, 8, 60 * SPAN_S);
	assert_false(kept_lock_over(kept, at(74)));
	assert_true(kept_lock_over(kept, at(75)));
	/* One clock is enough for distrust. */
	assert_true(kept_lock_over(kept, (struct instant){ 75 * SPAN_S, 0 }));
}

static void test_another_longest_lease_ends_no_lock(void **state) {
	struct table *t = *state;
	struct kept_lock *kept = added(t, 1, 0, 60);
	kept_locks_again(&t->kept, kept, at(10), 6000 * SPAN_S);
	assert_int_equal(kept->due.boot, 20 * SPAN_S);
	assert_false(kept_lock_over(kept, at(20)));
	kept_lock_asked(kept, 1, at(20));
	kept_lock_extended(kept, 1, 6 * SPAN_S);
	assert_false(kept_lock_over(kept, at(55)));
	kept_locks_again(&t->kept, kept, at(20), 6 * SPAN_S);
	assert_int_equal(kept->due.boot, 21 * SPAN_S);
}

static void test_a_node_keeps_so_many_locks_and_no_more(void **state) {
	struct table *t = *state;
	for (unsigned i = 0; i < MOST; i++) {
		assert_int_equal(add(t, i, 10), 0);
	}
	assert_int_equal(add(t, MOST, 10), PAWL_EFULL);
	kept_locks_drop(&t->kept, lock(77));
	assert_int_equal(kept_locks_count(&t->kept), MOST - 1);
	assert_int_equal(add(t, MOST, 10), 0);
}

static void test_without_memory_a_lock_is_not_kept(void **state) {
	struct table *t = *state;
	t->memory.max = t->memory.used;
	assert_int_equal(add(t, 1, 10), PAWL_ENOMEM);
	assert_null(kept_locks_next(&t->kept));
	t->memory.max = 0;
}

UNIT(node_kept_locks) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)
	const struct CMUnitTest tests[] = {
		TEST(test_a_lock_is_kept_with_its_holder_until_it_is_dropped),
		TEST(test_the_next_lock_is_the_one_that_is_due_first),
		TEST(test_a_lock_that_nobody_could_extend_is_over_before_its_lease),
		TEST(test_an_extension_counts_from_when_it_was_asked_for),
		TEST(test_another_longest_lease_ends_no_lock),
		TEST(test_a_node_keeps_so_many_locks_and_no_more),
		TEST(test_without_memory_a_lock_is_not_kept),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
