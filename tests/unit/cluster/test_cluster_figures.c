/* What a core counts for those who watch over it (core_figures.h), on a whole cluster. core_check,
 * which runs after every step, compares the gauges with the table. */
#include <stdio.h>

#include "modes.h"

static struct core_figures figures(struct stage *s, uint32_t node) {
	struct core_figures f;
	core_figures(s->nodes[node].core, stage_clock(s, node), &f);
	return f;
}

static void leases_are_counted_by_mode(void **state) {
	struct stage *s = *state;
	take(s, 0, "a", stage_lock(1));
	assert_int_equal(share(s, 1, "b", stage_lock(2)), PAWL_OK);
	assert_int_equal(share(s, 2, "b", stage_lock(3)), PAWL_OK);
	assert_int_equal(take_permits(s, 0, "c", stage_lock(4), 2, 5), PAWL_OK);
	stage_settle(s);
	for (uint32_t node = 0; node < 3; node++) {
		struct core_figures f = figures(s, node);
		assert_int_equal(f.leases[FIGURE_EXCLUSIVE], 1);
		assert_int_equal(f.leases[FIGURE_SHARED], 2);
		assert_int_equal(f.leases[FIGURE_SEMAPHORE], 1);
	}
	assert_int_equal(stage_do(s, 1, stage_request(CORE_DOWNGRADE, "a", stage_lock(1))),
		PAWL_OK);
	stage_settle(s);
	assert_int_equal(figures(s, 0).leases[FIGURE_EXCLUSIVE], 0);
	assert_int_equal(figures(s, 0).leases[FIGURE_SHARED], 3);
}

static void an_end_is_counted_once_with_its_cause(void **state) {
	struct stage *s = *state;
	take(s, 0, "released", stage_lock(1));
	take(s, 0, "expired", stage_lock(2));
	uint64_t token = take(s, 0, "broken", stage_lock(3));
	stage_wait(s, SPAN_S / 2);
	assert_int_equal(release(s, 1, "released", stage_lock(1)), PAWL_OK);
	struct core_request r = stage_request(CORE_BREAK, "broken", stage_lock(3));
	r.token = token;
	r.now = r.admin = true;
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	stage_settle(s);
	assert_int_equal(figures(s, 0).releases + figures(s, 0).lost[FIGURE_TAKEN], 2);
	stage_wait(s, 2 * LEASE);
	for (uint32_t node = 0; node < 3; node++) {
		struct core_figures f = figures(s, node);
		uint64_t ends = 0;
		assert_int_equal(f.releases + f.lost[FIGURE_TAKEN], 2);
		assert_int_equal(f.lost[FIGURE_EXPIRED], 1);
		for (unsigned i = 0; i <= BUCKETS_BOUNDS; i++) {
			ends += f.holds.counts[i];
		}
		assert_int_equal(ends, 3);
		assert_true(f.holds.sum >= (uint64_t)(SPAN_S + LEASE));
		assert_int_equal(f.leases[FIGURE_EXCLUSIVE], 0);
	}
}

static void the_longest_queue_grows_and_shrinks(void **state) {
	struct stage *s = *state;
	uint64_t longest = 0;
	take(s, 0, "k", stage_lock(1));
	uint64_t a = wait_for(s, 1, "k", stage_lock(2));
	wait_for(s, 2, "k", stage_lock(3));
	for (uint32_t node = 0; node < 3; node++) {
		uint64_t here = figures(s, node).longest_queue;
		longest = here > longest ? here : longest;
	}
	assert_int_equal(longest, 2);
	assert_int_equal(release(s, 0, "k", stage_lock(1)), PAWL_OK);
	token_of(s, a);
	stage_settle(s);
	longest = 0;
	for (uint32_t node = 0; node < 3; node++) {
		uint64_t here = figures(s, node).longest_queue;
		longest = here > longest ? here : longest;
	}
	assert_int_equal(longest, 1);
}

static void the_oldest_holder_is_found_for_who_wants_it(void **state) {
	struct stage *s = *state;
	take(s, 0, "old", stage_lock(1));
	stage_wait(s, SPAN_S / 2);
	take(s, 0, "new", stage_lock(2));
	assert_int_equal(figures(s, 1).oldest_holder, 0);
	core_want_figures(s->nodes[1].core);
	stage_wait(s, SPAN_S / 2);
	assert_in_range(figures(s, 1).oldest_holder, SPAN_S, SPAN_S + SPAN_S / 4);
	assert_int_equal(release(s, 0, "old", stage_lock(1)), PAWL_OK);
	stage_wait(s, SPAN_S / 2);
	assert_in_range(figures(s, 1).oldest_holder, SPAN_S, SPAN_S + SPAN_S / 4);
}

/* Returns the place of the key in a list of what stands out, and its number; -1 if it is not
 * there. */
static int place_of(struct stage *s, uint32_t node, enum hot_kind kind, const char *key,
	uint64_t *out_number) {
	struct hot_key keys[HOT_KEYS_MAX];
	const uint32_t count = core_hot(s->nodes[node].core, stage_clock(s, node), kind,
		slice_of(NULL, 0), keys);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(i == 0 || keys[i - 1].number >= keys[i].number);
		if (slice_equal(keys[i].key, slice_str(key))) {
			*out_number = keys[i].number;
			return (int)i;
		}
	}
	return -1;
}

static void the_oldest_holders_are_listed(void **state) {
	struct stage *s = *state;
	uint64_t number;
	char key[16];
	take(s, 0, "old", stage_lock(1));
	stage_wait(s, SPAN_S / 8);
	assert_int_equal(place_of(s, 1, HOT_HELD, "old", &number), -1);
	core_want_figures(s->nodes[1].core);
	for (uint8_t i = 0; i < HOT_KEYS_MAX + 5; i++) {
		snprintf(key, sizeof key, "k%u", i);
		take(s, 0, key, stage_lock((uint8_t)(2 + i)));
		stage_wait(s, SPAN_MS);
	}
	stage_wait(s, SPAN_S / 2);
	assert_int_equal(place_of(s, 1, HOT_HELD, "old", &number), 0);
	assert_in_range(number, SPAN_S / 2, SPAN_S);
	assert_int_equal(place_of(s, 1, HOT_HELD, "k0", &number), 1);
	assert_int_equal(place_of(s, 1, HOT_HELD, "k18", &number), HOT_KEYS_MAX - 1);
	assert_int_equal(place_of(s, 1, HOT_HELD, "k19", &number), -1);
	assert_int_equal(release(s, 0, "old", stage_lock(1)), PAWL_OK);
	stage_wait(s, SPAN_S / 2);
	assert_int_equal(place_of(s, 1, HOT_HELD, "old", &number), -1);
	assert_int_equal(place_of(s, 1, HOT_HELD, "k0", &number), 0);
	struct hot_key keys[HOT_KEYS_MAX];
	assert_int_equal(core_hot(s->nodes[1].core, stage_clock(s, 1), HOT_HELD, slice_str("k0"),
		keys), 1);
}

static void the_longest_queues_are_listed_at_the_home(void **state) {
	struct stage *s = *state;
	uint64_t number, longest = 0;
	for (uint32_t node = 0; node < 3; node++) {
		core_want_figures(s->nodes[node].core);
	}
	take(s, 0, "k", stage_lock(1));
	wait_for(s, 1, "k", stage_lock(2));
	wait_for(s, 2, "k", stage_lock(3));
	stage_wait(s, SPAN_S / 2);
	for (uint32_t node = 0; node < 3; node++) {
		if (place_of(s, node, HOT_QUEUES, "k", &number) == 0) {
			assert_int_equal(longest, 0);
			longest = number;
		}
	}
	assert_int_equal(longest, 2);
}

static void the_last_losses_are_remembered(void **state) {
	struct stage *s = *state;
	struct lost_lease lost;
	char key[16];
	take(s, 0, "before", stage_lock(1));
	core_want_figures(s->nodes[1].core);
	assert_false(core_lost(s->nodes[1].core, 0, &lost));
	uint64_t token = take(s, 0, "expired", stage_lock(2));
	take(s, 0, "released", stage_lock(3));
	assert_int_equal(release(s, 0, "released", stage_lock(3)), PAWL_OK);
	stage_wait(s, 2 * LEASE);
	/* Both ended with their leases, and of those that end in one instant either is first. */
	bool found = false;
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(core_lost(s->nodes[1].core, i, &lost));
		assert_int_equal(lost.cause, FIGURE_EXPIRED);
		found = found || (lost.token == token
			&& slice_equal(lost.key, slice_str("expired")));
	}
	assert_true(found);
	assert_false(core_lost(s->nodes[1].core, 2, &lost));
	for (unsigned i = 0; i < LOST_LEASES_MAX; i++) {
		snprintf(key, sizeof key, "k%u", i);
		take(s, 0, key, stage_lock(4));
		stage_wait(s, SPAN_MS);
	}
	stage_wait(s, 2 * LEASE);
	assert_true(core_lost(s->nodes[1].core, 0, &lost));
	assert_true(slice_equal(lost.key, slice_str(key)));
	assert_true(core_lost(s->nodes[1].core, LOST_LEASES_MAX - 1, &lost));
	assert_true(slice_equal(lost.key, slice_str("k0")));
	assert_false(core_lost(s->nodes[1].core, LOST_LEASES_MAX, &lost));
}

static void grants_are_counted_for_a_minute(void **state) {
	struct stage *s = *state;
	uint64_t number;
	core_want_figures(s->nodes[2].core);
	take(s, 0, "once", stage_lock(1));
	for (uint8_t i = 0; i < 3; i++) {
		take(s, 1, "often", stage_lock((uint8_t)(2 + i)));
		assert_int_equal(release(s, 1, "often", stage_lock((uint8_t)(2 + i))), PAWL_OK);
	}
	stage_settle(s);
	assert_int_equal(place_of(s, 2, HOT_GRANTED, "often", &number), 0);
	assert_int_equal(number, 3);
	assert_int_equal(place_of(s, 2, HOT_GRANTED, "once", &number), 1);
	stage_wait(s, 45 * SPAN_S);
	assert_int_equal(place_of(s, 2, HOT_GRANTED, "often", &number), 0);
	stage_wait(s, 20 * SPAN_S);
	assert_int_equal(place_of(s, 2, HOT_GRANTED, "often", &number), -1);
	/* Nobody has asked this node to look. */
	assert_int_equal(place_of(s, 1, HOT_GRANTED, "often", &number), -1);
}

static void a_key_is_in_the_first_group_that_it_begins_with(void **state) {
	(void)state;
	const struct key_groups groups = { .count = 3, .prefixes = { "b/", "b/c/", "d" } };
	assert_int_equal(key_groups_find(&groups, slice_str("b/c/x")), 0);
	assert_int_equal(key_groups_find(&groups, slice_str("d")), 2);
	assert_int_equal(key_groups_find(&groups, slice_str("b")), KEY_GROUPS_MAX);
	assert_int_equal(key_groups_find(&groups, slice_of(NULL, 0)), KEY_GROUPS_MAX);
}

UNIT(cluster_figures) {
	const struct CMUnitTest tests[] = {
		NAMED(leases_are_counted_by_mode),
		NAMED(an_end_is_counted_once_with_its_cause),
		NAMED(the_longest_queue_grows_and_shrinks),
		NAMED(the_oldest_holder_is_found_for_who_wants_it),
		NAMED(the_oldest_holders_are_listed),
		NAMED(the_longest_queues_are_listed_at_the_home),
		NAMED(grants_are_counted_for_a_minute),
		NAMED(the_last_losses_are_remembered),
		cmocka_unit_test(a_key_is_in_the_first_group_that_it_begins_with),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
