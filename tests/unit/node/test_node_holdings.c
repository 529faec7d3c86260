/* What locks count for: shares, until when, and as many as there are leases. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "holdings.h"

#define MANY 200000

struct fixture {
	struct alloc_counter counter;
	struct allocator alloc;
	struct shares shares;
	struct parties parties;
	struct holdings holdings;
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->alloc = alloc_libc(&f->counter);
	assert_int_equal(shares_init(&f->shares, &f->alloc, (struct siphash_key){ 1, 2 }), 0);
	assert_int_equal(holdings_init(&f->holdings, &f->alloc,
		(struct siphash_key){
			UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9) },
		&f->parties), 0);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	holdings_done(&f->holdings);
	shares_done(&f->shares);
	assert_int_equal(f->counter.used, 0);
	free(f);
	return 0;
}

static struct share_pair pair_of(struct fixture *f, const char *identity, const char *address) {
	return (struct share_pair){ shares_find(&f->shares, '=', slice_str(identity), 1),
		shares_find(&f->shares, '#', slice_str(address), 1) };
}

static uint64_t hash_of(const struct fixture *f, uint32_t number) {
	struct id128 lock_id = { { 1 } };
	memcpy(lock_id.b + 4, &number, sizeof number);
	return holdings_hash(&f->holdings, slice_str("key"), lock_id);
}

static void adopt(struct fixture *f, uint32_t number, const struct share_pair *share,
	uint32_t bytes, span_ns end) {
	shares_take(share, SHARE_LOCKS, 1);
	shares_take(share, SHARE_VALUES, bytes);
	struct holding *held = holdings_adopt(&f->holdings, hash_of(f, number), share, NULL,
		bytes);
	assert_non_null(held);
	holdings_until(held, (struct instant){ end, end });
}

static struct instant at(span_ns now) {
	return (struct instant){ now, now };
}

static void sweep(struct fixture *f, span_ns now) {
	while (holdings_sweep(&f->holdings, at(now), 100)) {
	}
}

static void a_lock_counts_for_its_own_shares_until_it_is_dropped(void **state) {
	struct fixture *f = *state;
	const struct share_pair ann = pair_of(f, "ann", "::1"), bob = pair_of(f, "bob", "::1");
	adopt(f, 1, &ann, 10, SPAN_S);
	adopt(f, 2, &bob, 20, SPAN_S);
	adopt(f, 3, &ann, 30, SPAN_S);
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 2);
	assert_int_equal(bob.identity->used[SHARE_VALUES], 20);
	assert_int_equal(ann.address->used[SHARE_LOCKS], 3);
	holdings_value(&f->holdings, holdings_find(&f->holdings, hash_of(f, 3)), 5);
	assert_int_equal(ann.identity->used[SHARE_VALUES], 15);
	/* A lock loses its value, and gets another one. */
	holdings_value(&f->holdings, holdings_find(&f->holdings, hash_of(f, 3)), 0);
	assert_int_equal(ann.identity->used[SHARE_VALUES], 10);
	assert_int_equal(f->holdings.values.count, 2);
	holdings_value(&f->holdings, holdings_find(&f->holdings, hash_of(f, 3)), 5);
	assert_int_equal(ann.identity->used[SHARE_VALUES], 15);
	holdings_drop(&f->holdings, holdings_find(&f->holdings, hash_of(f, 1)));
	assert_null(holdings_find(&f->holdings, hash_of(f, 1)));
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 1);
	assert_int_equal(ann.identity->used[SHARE_VALUES], 5);
	holdings_drop(&f->holdings, holdings_find(&f->holdings, hash_of(f, 2)));
	assert_int_equal(bob.identity->used[SHARE_LOCKS], 0);
	/* The number of the one who has gone serves the next one. */
	const struct share_pair cid = pair_of(f, "cid", "::2");
	adopt(f, 4, &cid, 0, SPAN_S);
	assert_int_equal(holdings_find(&f->holdings, hash_of(f, 4))->holder, 1);
	holdings_drop(&f->holdings, holdings_find(&f->holdings, hash_of(f, 4)));
	holdings_drop(&f->holdings, holdings_find(&f->holdings, hash_of(f, 3)));
	assert_int_equal(ann.address->total + ann.identity->total + cid.identity->total, 0);
	assert_int_equal(f->holdings.values.count, 0);
}

static void without_memory_a_value_does_not_count(void **state) {
	struct fixture *f = *state;
	const struct share_pair ann = pair_of(f, "ann", "::1");
	adopt(f, 1, &ann, 0, SPAN_S);
	f->counter.max = f->counter.used;
	struct holding *held = holdings_find(&f->holdings, hash_of(f, 1));
	holdings_value(&f->holdings, held, 7);
	assert_int_equal(ann.identity->used[SHARE_VALUES], 0);
	assert_null(holdings_adopt(&f->holdings, hash_of(f, 2), &ann, NULL, 7));
	assert_null(holdings_find(&f->holdings, hash_of(f, 2)));
	f->counter.max = 0;
	holdings_value(&f->holdings, held, 7);
	assert_int_equal(ann.identity->used[SHARE_VALUES], 7);
	holdings_drop(&f->holdings, held);
	assert_int_equal(ann.identity->total, 0);
}

static void a_lock_counts_until_its_end_and_hardly_longer(void **state) {
	struct fixture *f = *state;
	const struct share_pair ann = pair_of(f, "ann", "::1");
	adopt(f, 1, &ann, 0, 10 * SPAN_S);
	adopt(f, 2, &ann, 0, 20 * SPAN_S);
	sweep(f, 10 * SPAN_S);
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 2);
	sweep(f, 10 * SPAN_S + 200 * SPAN_MS);
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 1);
	holdings_until(holdings_find(&f->holdings, hash_of(f, 2)), at(30 * SPAN_S));
	sweep(f, 25 * SPAN_S);
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 1);
	sweep(f, 31 * SPAN_S);
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 0);
}

static void many_that_are_over_are_dropped_a_few_in_a_call(void **state) {
	struct fixture *f = *state;
	const struct share_pair ann = pair_of(f, "ann", "::1");
	for (uint32_t i = 0; i < MANY; i++) {
		adopt(f, i, &ann, 0, i % 2 ? SPAN_S : 100 * SPAN_S);
	}
	assert_true(f->counter.used < MANY * 25);
	bool more = true;
	for (uint64_t left = MANY; more; left = ann.identity->used[SHARE_LOCKS]) {
		more = holdings_sweep(&f->holdings, at(2 * SPAN_S), 100);
		assert_true(left - ann.identity->used[SHARE_LOCKS] <= 100);
	}
	/* A sweep is over a part of the table, and the next ones go on. */
	assert_in_range(ann.identity->used[SHARE_LOCKS], MANY / 2 + 1, MANY - 1);
	for (int i = 0; i < 10; i++) {
		sweep(f, 2 * SPAN_S);
	}
	assert_int_equal(ann.identity->used[SHARE_LOCKS], MANY / 2);
	for (int i = 0; i < 10; i++) {
		sweep(f, 101 * SPAN_S);
	}
	assert_int_equal(ann.identity->used[SHARE_LOCKS], 0);
}

UNIT(node_holdings) {
	const struct CMUnitTest tests[] = {
#define HOLDINGS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		HOLDINGS(a_lock_counts_for_its_own_shares_until_it_is_dropped),
		HOLDINGS(without_memory_a_value_does_not_count),
		HOLDINGS(a_lock_counts_until_its_end_and_hardly_longer),
		HOLDINGS(many_that_are_over_are_dropped_a_few_in_a_call),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
