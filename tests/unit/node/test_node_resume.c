/* These tests are about positions, and the ring behind them. */
#include "events_world.h"

static void a_watcher_that_resumes_is_told_once_what_came_behind_its_position(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	const struct events_position seen = events_position(&w->events);
	events_forget(&w->events, 0, UINT32_MAX);
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	happen(w, WATCH_EVENT_ACQUIRED, "other", 3);
	/* This is another watch of the same connection, and up to date. */
	uint64_t other = watch_key(w, 1, "k");
	assert_true(other > 0);
	watch_as(w, 1, "", false, "k", false, &seen);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 4);
	/* Nothing overtakes what comes before it. */
	assert_int_equal(w->count[1], 0);
	serve(w);
	ASSERT_TOKENS(w, 1, 2, 4, 4);
	assert_int_not_equal(w->told[1][0].watch, other);
	world_free(w);
}

static void a_watch_that_is_behind_is_not_moved_on_by_another_that_resumes(void **state) {
	struct world *w = world_new();
	(void)state;
	const struct events_position start = events_position(&w->events);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	watch_key(w, 0, "k");
	w->room[0] = 0;
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	watch_as(w, 0, "", false, "k", false, &start);
	watch_as(w, 0, "", false, "k", false, NULL);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 3);
	w->room[0] = SIZE_MAX;
	serve(w);
	ASSERT_TOKENS(w, 0, 1, 2, 2, 3, 3, 3);
	world_free(w);
}

static void a_position_of_another_log_or_of_the_future_is_an_overflow(void **state) {
	struct world *w = world_new();
	const struct events_position foreign = { 78, 0 }, future = { 77, 1000 };
	(void)state;
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	watch_as(w, 0, "", false, "k", false, &foreign);
	watch_as(w, 1, "", false, "k", false, &future);
	serve(w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->count[i], 1);
		assert_true(w->told[i][0].overflow);
	}
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	assert_int_equal(w->told[0][1].token, 2);
	world_free(w);
}

static void a_position_older_than_the_first_watch_is_an_overflow(void **state) {
	struct world *w = world_new();
	(void)state;
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	const struct events_position seen = events_position(&w->events);
	events_close(&w->events);
	/* Nobody knows of this event. */
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	assert_int_equal(events_open(&w->events), 0);
	watch_as(w, 0, "", false, "k", false, &seen);
	serve(w);
	assert_int_equal(w->count[0], 1);
	assert_true(w->told[0][0].overflow);
	world_free(w);
}

/* ---- the ring ---- */

static void the_ring_returns_what_is_in_it_whatever_the_sizes(void **state) {
	struct alloc_counter memory = { 0 };
	struct allocator alloc = alloc_libc(&memory);
	struct watch_event_ring ring;
	uint8_t *bytes = malloc(VALUE_MAX_HARD);
	(void)state;
	assert_non_null(bytes);
	watch_event_ring_init(&ring, &alloc);
	assert_int_equal(watch_event_ring_open(&ring, WATCH_EVENT_RING_LEAST), 0);
	uint32_t random = 1;
	for (uint64_t n = 1; n <= 20000; n++) {
		random = random * 1664525 + 1013904223;
		/* Most are small, and now and then there is a large one. */
		size_t size = random >> 12 & 0xff ? random >> 20 : random % VALUE_MAX_HARD;
		memset(bytes, (int)(n & 0xff), size);
		const struct core_watch_event watch_event = { .token = n,
			.value = slice_of(bytes, size), .key = slice_of(bytes, size % 100) };
		watch_event_ring_push(&ring, &watch_event);
		assert_int_equal(ring.next, n + 1);
		for (uint64_t at = ring.oldest; n % 97 == 0 && at < ring.next; at++) {
			const struct core_watch_event *found = watch_event_ring_at(&ring, at);
			assert_int_equal(found->token, at);
			assert_true(found->value.size == 0 ||
				(found->value.data[0] == (at & 0xff) &&
				found->value.data[found->value.size - 1] == (at & 0xff)));
		}
	}
	watch_event_ring_done(&ring);
	assert_int_equal(memory.used, 0);
	free(bytes);
}

UNIT(node_resume) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watcher_that_resumes_is_told_once_what_came_behind_its_position),
		cmocka_unit_test(a_watch_that_is_behind_is_not_moved_on_by_another_that_resumes),
		cmocka_unit_test(a_position_of_another_log_or_of_the_future_is_an_overflow),
		cmocka_unit_test(a_position_older_than_the_first_watch_is_an_overflow),
		cmocka_unit_test(the_ring_returns_what_is_in_it_whatever_the_sizes),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
