/* These tests are about the ring of tombstones and its index: what is forgotten and what is not. */
#include "named.h"

#include "store.h"

static struct id128 lock_of(uint32_t n) {
	struct id128 id = { { 1 } };
	memcpy(id.b + 4, &n, sizeof n);
	return id;
}

/* A core whose ring has so many places. */
static struct stage *with_places(uint32_t places) {
	struct stage_options o = named_options();
	o.limits.released = places;
	return stage_born(&o);
}

/* Checks that the tombstones of the lock_ids from `first` to `last` are there, and no others. */
static void remembered(const struct core *core, uint32_t first, uint32_t last) {
	for (uint32_t n = 1; n <= last + 3; n++) {
		const struct tombstone *r = tombstone_find(core, lock_of(n));
		assert_int_equal(r != NULL, n >= first && n <= last);
		assert_true(r == NULL || id128_equal(r->lock_id, lock_of(n)));
	}
}

static void a_ring_remembers_the_latest_of_as_many_as_it_has_places(void **state) {
	static const uint32_t sizes[] = { 1, 2, 3, 7, 8, 64, 100 };
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		const uint32_t places = sizes[i];
		struct stage *s = with_places(places);
		struct core *core = s->nodes[0].core;
		for (uint32_t n = 1; n <= 4 * places + 20; n++) {
			tombstone_add(core, lock_of(n), false);
			remembered(core, n > places ? n - places + 1 : 1, n);
		}
		stage_free(s);
		assert_int_equal(named_memory.used, 0);
	}
}

static void a_lock_id_that_ends_again_keeps_its_place(void **state) {
	(void)state;
	struct stage *s = with_places(4);
	struct core *core = s->nodes[0].core;
	tombstone_add(core, lock_of(1), true);
	tombstone_add(core, lock_of(2), false);
	assert_false(tombstone_released(core, lock_of(1)));
	tombstone_add(core, lock_of(1), false);
	assert_true(tombstone_released(core, lock_of(1)));
	for (uint32_t n = 3; n <= 5; n++) {
		tombstone_add(core, lock_of(n), false);
	}
	/* It is the oldest, although it ended last before these. */
	remembered(core, 2, 5);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

UNIT(cluster_tombstones) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_remembers_the_latest_of_as_many_as_it_has_places),
		cmocka_unit_test(a_lock_id_that_ends_again_keeps_its_place),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
