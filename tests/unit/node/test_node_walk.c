/* These tests take an event past its watchers in several turns, while some of them come and go. */
#include "events_world.h"

/* The step that finds the key among the subjects, and the two that tell one watcher. */
#define FIND 1
#define TELL 2

/* Tells of an event in a turn that visits at most `steps` entries and watches. */
static void happen_within(struct world *w, int32_t steps, const char *key, uint64_t token) {
	const struct core_watch_event watch_event = { .kind = WATCH_EVENT_ACQUIRED,
		.key = slice_str(key), .identity = slice_str("client:a"), .token = token };
	events_turn(&w->events, false);
	w->events.walk.steps = steps;
	events_add(&w->events, &watch_event);
}

/* Goes on with a turn of that many steps. Returns whether there is more. */
static bool serve_within(struct world *w, int32_t steps) {
	events_turn(&w->events, false);
	w->events.walk.steps = steps;
	return events_serve(&w->events);
}

static void a_walk_goes_on_where_the_turn_before_has_stopped(void **state) {
	struct world *w = world_new();
	(void)state;
	for (uint64_t client = 0; client < CLIENTS; client++) {
		watch_key(w, client, "k");
	}
	happen_within(w, FIND + TELL, "k", 1);
	happen_within(w, TELL, "k", 2);
	ASSERT_TOKENS(w, 0, 1);
	ASSERT_TOKENS(w, 1, 1);
	assert_int_equal(w->count[2], 0);
	assert_true(serve_within(w, 2 * TELL));
	ASSERT_TOKENS(w, 3, 1);
	assert_int_equal(w->count[0], 1);
	serve(w);
	for (uint64_t client = 0; client < CLIENTS; client++) {
		ASSERT_TOKENS(w, client, 1, 2);
	}
	assert_true(events_is_idle(&w->events));
	world_free(w);
}

static void a_walk_goes_past_the_key_and_each_of_its_prefixes(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_prefix(w, 0, "");
	watch_prefix(w, 1, "k");
	watch_prefix(w, 2, "kk");
	watch_key(w, 3, "k");
	happen_within(w, 0, "k", 1);
	for (int32_t turn = 0; turn < 20; turn++) {
		serve_within(w, 1);
	}
	ASSERT_TOKENS(w, 0, 1);
	ASSERT_TOKENS(w, 1, 1);
	assert_int_equal(w->count[2], 0);
	ASSERT_TOKENS(w, 3, 1);
	world_free(w);
}

static void a_watcher_that_comes_or_goes_during_a_walk_is_told_what_concerns_it(void **state) {
	struct world *w = world_new();
	(void)state;
	const struct events_position start = events_position(&w->events);
	watch_key(w, 0, "k");
	watch_key(w, 1, "k");
	uint64_t other = watch_key(w, 2, "k");
	happen_within(w, FIND + TELL, "k", 1);
	/* The next one leaves, and so does the watch after it, whose client has begun another. */
	events_forget(&w->events, 1, UINT32_MAX);
	watch_as(w, 2, "", false, "k", false, &start);
	assert_true(events_unwatch(&w->events, 2, other));
	watch_key(w, 3, "k");
	/* The walk has passed this client. */
	watch_as(w, 0, "", false, "k", false, &start);
	serve(w);
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	serve(w);
	ASSERT_TOKENS(w, 0, 1, 1, 2, 2);
	assert_int_equal(w->count[1], 0);
	ASSERT_TOKENS(w, 2, 1, 2);
	ASSERT_TOKENS(w, 3, 2);
	world_free(w);
}

static void a_subject_that_nobody_watches_any_more_ends_its_part_of_the_walk(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_key(w, 1, "k");
	watch_prefix(w, 2, "");
	happen_within(w, FIND + TELL, "k", 1);
	events_forget(&w->events, 1, UINT32_MAX);
	events_forget(&w->events, 0, UINT32_MAX);
	serve(w);
	ASSERT_TOKENS(w, 2, 1);
	world_free(w);
}

/* A watcher that was behind when the walk reached it, and has caught up before the walk ended, is
 * told at once again. */
static void a_watcher_that_catches_up_during_a_walk_is_not_taken_for_behind(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_key(w, 1, "k");
	w->room[0] = 0;
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	w->room[1] = 0;
	happen_within(w, FIND + 1, "k", 2);
	w->room[0] = SIZE_MAX;
	events_room(&w->events, 0);
	serve_within(w, 0);
	ASSERT_TOKENS(w, 0, 1, 2);
	serve_within(w, 10);
	happen(w, WATCH_EVENT_RELEASED, "k", 3);
	ASSERT_TOKENS(w, 0, 1, 2, 3);
	w->room[1] = SIZE_MAX;
	serve(w);
	ASSERT_TOKENS(w, 1, 1, 2, 3);
	world_free(w);
}

static void what_the_ring_loses_before_the_walk_is_an_overflow(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_key(w, 1, "k");
	watch_prefix(w, 2, "other");
	happen_within(w, FIND + TELL, "k", 1);
	for (int i = 0; i < 30; i++) {
		happen_large_within(w, 0, "k", 2, 100000);
	}
	serve(w);
	assert_true(w->count[0] == 2 && w->told[0][0].token == 1 && w->told[0][1].overflow);
	assert_true(w->count[1] == 1 && w->told[1][0].overflow);
	assert_true(w->count[2] == 1 && w->told[2][0].overflow);
	happen(w, WATCH_EVENT_RELEASED, "k", 3);
	assert_int_equal(w->count[0], 3);
	assert_int_equal(w->told[0][2].token, 3);
	world_free(w);
}

static void missed_events_reach_all_watchers_over_several_turns(void **state) {
	struct world *w = world_new();
	(void)state;
	for (uint64_t client = 0; client < CLIENTS; client++) {
		watch_key(w, client, client == 1 ? "l" : "k");
	}
	const struct core_watch_event missed = { .kind = WATCH_EVENT_MISSED };
	w->events.walk.steps = TELL;
	events_add(&w->events, &missed);
	assert_int_equal(w->count[0], 1);
	assert_int_equal(w->count[1], 0);
	/* The next one leaves. */
	events_forget(&w->events, 1, UINT32_MAX);
	serve(w);
	for (uint64_t client = 0; client < CLIENTS; client++) {
		assert_int_equal(w->count[client], client != 1);
	}
	world_free(w);
}

/* One event for a thousand watches of one client is more than the client's part of a turn. */
static void a_thousand_watches_of_a_client_are_told_over_several_turns_each_once(void **state) {
	struct world *w = world_new();
	uint64_t last = 0;
	(void)state;
	for (int i = 0; i < 1000; i++) {
		last = watch_key(w, 0, "k");
	}
	assert_int_equal(events_watchers(&w->events, slice_str("k")), 1);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	assert_in_range(w->count[0], 1, 500);
	while (w->count[0] < 500) {
		serve_within(w, 0);
	}
	assert_in_range(w->count[0], 500, 800);
	/* One that was told leaves, and one that was not, and a new one begins. */
	assert_true(events_unwatch(&w->events, 0, w->told[0][w->count[0] - 1].watch));
	assert_true(events_unwatch(&w->events, 0, w->told[0][w->count[0] - 1].watch + 1));
	assert_true(events_unwatch(&w->events, 0, last));
	watch_key(w, 0, "k");
	serve(w);
	assert_int_equal(w->count[0], 998);
	for (size_t i = 0; i < w->count[0]; i++) {
		for (size_t before = 0; before < i; before++) {
			assert_int_not_equal(w->told[0][i].watch, w->told[0][before].watch);
		}
	}
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	serve(w);
	assert_int_equal(w->count[0], 998 + 998);
	world_free(w);
}

/* Of each event in which the key is looked for among 500 prefixes, the client is told once. */
static void a_client_with_many_watches_that_is_behind_does_not_get_more_than_a_turn(void **state) {
	struct world *w = world_new();
	char prefix[501] = "";
	(void)state;
	for (size_t size = 0; size < 500; size++) {
		watch_prefix(w, 0, prefix);
		prefix[size] = 'p';
	}
	w->room[0] = 0;
	for (uint64_t token = 1; token <= 100; token++) {
		happen(w, WATCH_EVENT_ACQUIRED, "k", token);
		serve(w);
	}
	w->room[0] = SIZE_MAX;
	events_room(&w->events, 0);
	for (size_t before = 0; w->count[0] < 100; before = w->count[0]) {
		events_turn(&w->events, false);
		events_serve(&w->events);
		assert_in_range(w->count[0] - before, 1, 3);
	}
	world_free(w);
}

/* Returns how many watchers are told at once of an event that costs 10 KiB for each of them. */
static size_t told_at_once(bool is_short) {
	static const uint8_t value[6 << 10];
	struct world *w = world_new();
	const struct core_watch_event watch_event = { .kind = WATCH_EVENT_UPDATED,
		.key = slice_str("k"), .token = 1, .value = slice_of(value, sizeof value) };
	size_t told = 0;
	for (uint64_t client = 0; client < CLIENTS; client++) {
		watch_key(w, client, "k");
	}
	events_turn(&w->events, is_short);
	events_add(&w->events, &watch_event);
	for (uint64_t client = 0; client < CLIENTS; client++) {
		told += w->count[client];
	}
	serve(w);
	for (uint64_t client = 0; client < CLIENTS; client++) {
		ASSERT_TOKENS(w, client, 1);
	}
	world_free(w);
	return told;
}

static void in_a_short_turn_half_as_much_is_told(void **state) {
	(void)state;
	assert_int_equal(told_at_once(false), 3);
	assert_int_equal(told_at_once(true), 1);
}

static bool walk_ends(struct world *w, bool is_short) {
	events_turn(&w->events, is_short);
	events_serve(&w->events);
	return events_is_idle(&w->events);
}

/* The key is looked for among prefixes of 500 lengths. */
static void in_a_short_turn_half_as_many_watches_are_visited(void **state) {
	struct world *w = world_new();
	char prefix[501] = "", key[501] = "";
	(void)state;
	memset(key, 'k', 500);
	for (size_t size = 0; size < 500; size++) {
		watch_prefix(w, 0, prefix);
		prefix[size] = 'p';
	}
	happen_within(w, 0, key, 1);
	assert_true(walk_ends(w, false));
	happen_within(w, 0, key, 2);
	assert_false(walk_ends(w, true));
	assert_true(walk_ends(w, true));
	ASSERT_TOKENS(w, 0, 1, 2);
	world_free(w);
}

UNIT(node_walk) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_walk_goes_on_where_the_turn_before_has_stopped),
		cmocka_unit_test(a_walk_goes_past_the_key_and_each_of_its_prefixes),
		cmocka_unit_test(
			a_watcher_that_comes_or_goes_during_a_walk_is_told_what_concerns_it),
		cmocka_unit_test(a_subject_that_nobody_watches_any_more_ends_its_part_of_the_walk),
		cmocka_unit_test(a_watcher_that_catches_up_during_a_walk_is_not_taken_for_behind),
		cmocka_unit_test(what_the_ring_loses_before_the_walk_is_an_overflow),
		cmocka_unit_test(missed_events_reach_all_watchers_over_several_turns),
		cmocka_unit_test(
			a_thousand_watches_of_a_client_are_told_over_several_turns_each_once),
		cmocka_unit_test(
			a_client_with_many_watches_that_is_behind_does_not_get_more_than_a_turn),
		cmocka_unit_test(in_a_short_turn_half_as_much_is_told),
		cmocka_unit_test(in_a_short_turn_half_as_many_watches_are_visited),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
