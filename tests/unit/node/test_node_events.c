/* These tests ask which watchers are told of which events, and when. */
#include "events_world.h"

/* ---- who is told ---- */

static void the_watchers_of_a_key_or_a_prefix_of_it_are_told_and_nobody_else(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "jobs/1");
	watch_prefix(w, 1, "jobs/");
	watch_prefix(w, 2, "");
	watch_key(w, 3, "jobs/");
	happen(w, WATCH_EVENT_ACQUIRED, "jobs/1", 1);
	happen(w, WATCH_EVENT_ACQUIRED, "jobs/2", 2);
	happen(w, WATCH_EVENT_ACQUIRED, "job", 3);
	happen(w, WATCH_EVENT_ACQUIRED, "jobs/", 4);
	ASSERT_TOKENS(w, 0, 1);
	ASSERT_TOKENS(w, 1, 1, 2, 4);
	ASSERT_TOKENS(w, 2, 1, 2, 3, 4);
	ASSERT_TOKENS(w, 3, 4);
	world_free(w);
}

static void each_of_a_clients_watches_is_told_under_its_own_number(void **state) {
	struct world *w = world_new();
	(void)state;
	uint64_t key = watch_key(w, 0, "a"), prefix = watch_prefix(w, 0, "a"),
		same = watch_key(w, 0, "a");
	assert_true(key != prefix && prefix != same && key != same);
	happen(w, WATCH_EVENT_ACQUIRED, "a", 1);
	assert_int_equal(w->count[0], 3);
	assert_true(events_unwatch(&w->events, 0, key));
	assert_false(events_unwatch(&w->events, 0, key));
	/* That is somebody else's watch. */
	assert_false(events_unwatch(&w->events, 1, prefix));
	happen(w, WATCH_EVENT_RELEASED, "a", 1);
	assert_int_equal(w->count[0], 5);
	events_forget(&w->events, 0, UINT32_MAX);
	happen(w, WATCH_EVENT_ACQUIRED, "a", 2);
	assert_int_equal(w->count[0], 5);
	assert_int_equal(events_count(&w->events), 0);
	world_free(w);
}

static void the_lock_id_is_shown_to_its_identity_and_to_administrators(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_as(w, 0, "client:a", false, "k", false, NULL);
	watch_as(w, 1, "client:b", false, "k", false, NULL);
	watch_as(w, 2, "client:c", true, "k", false, NULL);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	assert_true(w->told[0][0].lock_id);
	assert_false(w->told[1][0].lock_id);
	assert_true(w->told[2][0].lock_id);
	world_free(w);
}

static void a_client_counts_once_however_many_of_its_watches_meet_the_key(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_prefix(w, 0, "");
	watch_prefix(w, 1, "k");
	watch_key(w, 2, "other");
	assert_int_equal(events_watchers(&w->events, slice_str("k")), 2);
	assert_int_equal(events_watchers(&w->events, slice_str("x")), 1);
	events_forget(&w->events, 0, UINT32_MAX);
	assert_int_equal(events_watchers(&w->events, slice_str("x")), 0);
	world_free(w);
}

static void a_client_may_watch_so_many_keys_and_no_more(void **state) {
	struct world *w = world_new();
	const struct events_watcher who = { 0, slice_str(""), false };
	uint64_t first, watch;
	(void)state;
	assert_int_equal(events_watch(&w->events, &who, slice_str("a"), false, NULL, 2, &first), 0);
	assert_int_equal(events_watch(&w->events, &who, slice_str("b"), false, NULL, 2, &watch), 0);
	assert_int_equal(events_watch(&w->events, &who, slice_str("c"), false, NULL, 2, &watch),
		PAWL_EFULL);
	assert_true(events_unwatch(&w->events, 0, first));
	assert_int_equal(events_watch(&w->events, &who, slice_str("c"), false, NULL, 2, &watch), 0);
	assert_int_equal(events_watches(&w->events, 0), 2);
	world_free(w);
}

/* ---- behind ---- */

static void a_watcher_behind_is_told_the_rest_in_order_when_there_is_room_again(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_prefix(w, 0, "");
	watch_key(w, 1, "k");
	w->room[0] = 2;
	for (uint64_t token = 1; token <= 5; token++) {
		happen(w, WATCH_EVENT_ACQUIRED, token % 2 ? "k" : "l", token);
	}
	ASSERT_TOKENS(w, 0, 1, 2);
	/* The slow one holds up nobody. */
	ASSERT_TOKENS(w, 1, 1, 3, 5);
	assert_false(events_serve(&w->events));
	w->room[0] = 1;
	serve(w);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 6);
	w->room[0] = SIZE_MAX;
	ASSERT_TOKENS(w, 0, 1, 2, 3);
	serve(w);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 7);
	ASSERT_TOKENS(w, 0, 1, 2, 3, 4, 5, 6, 7);
	world_free(w);
}

/* However much happens in one turn, and however many watch it, what is told in that turn is
 * bounded. The rest is told later, in order. */
static void one_turn_tells_so_much_and_the_next_ones_the_rest(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_key(w, 1, "k");
	events_turn(&w->events, false);
	for (uint64_t token = 1; token <= 3000; token++) {
		const struct core_watch_event watch_event = { .kind = WATCH_EVENT_ACQUIRED,
			.key = slice_str("k"), .identity = slice_str("client:a"), .token = token };
		events_add(&w->events, &watch_event);
	}
	size_t at_once = w->count[0] + w->count[1];
	assert_in_range(at_once, 100, 3000);
	/* A part of each turn is for those that are behind. */
	assert_true(events_serve(&w->events));
	assert_true(w->count[0] + w->count[1] > at_once);
	serve(w);
	for (size_t client = 0; client < 2; client++) {
		assert_int_equal(w->count[client], 3000);
		for (size_t i = 0; i < 3000; i++) {
			assert_int_equal(w->told[client][i].token, i + 1);
		}
	}
	/* They have caught up, and are told at once again. */
	happen(w, WATCH_EVENT_ACQUIRED, "k", 3001);
	assert_int_equal(w->count[0] + w->count[1], 6002);
	world_free(w);
}

static void what_one_watch_was_told_is_not_told_again_because_another_was_not(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_prefix(w, 0, "k");
	w->room[0] = 1;
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	w->room[0] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 4);
	assert_int_not_equal(w->told[0][0].watch, w->told[0][1].watch);
	ASSERT_TOKENS(w, 0, 1, 1, 2, 2);
	world_free(w);
}

static void a_watcher_behind_for_too_long_is_told_of_one_overflow_and_then_of_news(void **state) {
	struct world *w = world_new();
	(void)state;
	uint64_t slow = watch_key(w, 0, "k");
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	w->room[0] = 0;
	for (uint64_t token = 2; token < 100; token++) {
		happen_large(w, "k", token, 100000);
	}
	size_t memory = w->memory.used;
	for (uint64_t token = 100; token < 1000; token++) {
		happen_large(w, "k", token, 100000);
	}
	assert_int_equal(w->memory.used, memory);
	w->room[0] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 2);
	assert_true(w->told[0][1].overflow);
	assert_int_equal(w->told[0][1].watch, slow);
	assert_int_equal(w->told[0][1].number, events_position(&w->events).number);
	happen(w, WATCH_EVENT_RELEASED, "k", 1000);
	assert_int_equal(w->count[0], 3);
	assert_int_equal(w->told[0][2].token, 1000);
	world_free(w);
}

static void a_watch_that_began_later_loses_nothing_when_an_older_one_overflows(void **state) {
	struct world *w = world_new();
	(void)state;
	uint64_t older = watch_key(w, 0, "old");
	w->room[0] = 0;
	happen(w, WATCH_EVENT_ACQUIRED, "old", 1);
	for (int i = 0; i < 30; i++) {
		happen_large(w, "noise", 2, 100000);
	}
	uint64_t younger = watch_key(w, 0, "young");
	happen(w, WATCH_EVENT_ACQUIRED, "young", 3);
	w->room[0] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 2);
	assert_true(w->told[0][0].overflow && w->told[0][0].watch == older);
	assert_true(w->told[0][1].token == 3 && w->told[0][1].watch == younger);
	world_free(w);
}

static void missed_events_are_an_overflow_for_all_watchers_in_their_place(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_prefix(w, 1, "other");
	w->room[1] = 0;
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	happen(w, WATCH_EVENT_ACQUIRED, "other", 2);
	happen(w, WATCH_EVENT_MISSED, "", 0);
	happen(w, WATCH_EVENT_ACQUIRED, "k", 3);
	w->room[1] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 3);
	assert_true(w->told[0][1].overflow && w->told[0][2].token == 3);
	assert_int_equal(w->count[1], 2);
	assert_true(w->told[1][0].token == 2 && w->told[1][1].overflow);
	world_free(w);
}

static void missed_events_of_a_key_are_an_overflow_for_its_watchers(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "key");
	watch_prefix(w, 1, "k");
	watch_key(w, 2, "other");
	w->room[1] = 0;
	happen(w, WATCH_EVENT_MISSED, "key", 0);
	w->room[1] = SIZE_MAX;
	serve(w);
	assert_true(w->count[0] == 1 && w->told[0][0].overflow);
	assert_true(w->count[1] == 1 && w->told[1][0].overflow && w->told[1][0].key);
	assert_int_equal(w->count[2], 0);
	world_free(w);
}

static void what_could_not_be_told_for_lack_of_memory_is_told_later(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	w->refuses = true;
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	assert_false(events_serve(&w->events));
	happen(w, WATCH_EVENT_RELEASED, "k", 2);
	w->refuses = false;
	serve(w);
	ASSERT_TOKENS(w, 0, 1, 2);
	world_free(w);
}

static void without_memory_a_watch_is_refused_and_nothing_else_suffers(void **state) {
	(void)state;
	for (size_t limit = 0;; limit += 64) {
		struct world *w = world_new();
		const struct events_watcher who = { 0, slice_str("client:a"), false };
		uint64_t watch;
		watch_key(w, 1, "k");
		w->memory.max = w->memory.used + limit;
		int error = events_watch(&w->events, &who, slice_str("k"), false, NULL, 10, &watch);
		assert_true(error == 0 || error == PAWL_ENOMEM);
		happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
		assert_int_equal(w->count[1], 1);
		assert_int_equal(w->count[0], error == 0);
		world_free(w);
		if (!error) {
			break;
		}
	}
}

/* ---- other rules ---- */

static bool begins_with_f(void *ctx, const struct events_watcher *who, struct slice subject,
	bool prefix) {
	(void)prefix;
	(void)ctx, (void)who;
	return subject.size > 0 && subject.data[0] == 'f';
}

static void watches_are_judged_by_new_rules_a_few_at_a_time(void **state) {
	(void)state;
	struct world *w = world_new();
	uint64_t client = 99;
	for (char i = 0; i < 10; i++) {
		const char key[] = { i == 7 ? 'f' : 'a', (char)('0' + i), '\0' };
		watch_key(w, 0, key + 1);
		watch_key(w, 1, key);
	}
	assert_int_equal(events_review(&w->events, 1, begins_with_f, &client), EVENTS_REVIEW_DONE);
	events_doubt(&w->events);
	assert_int_equal(events_review(&w->events, 4, begins_with_f, &client), EVENTS_REVIEW_MORE);
	/* This watch was judged when it was asked for. */
	uint64_t later = watch_key(w, 0, "f");
	/* The rules change again, before all watches were judged. */
	events_doubt(&w->events);
	assert_true(events_unwatch(&w->events, 0, later));
	for (int i = 0; i < 4; i++) {
		assert_int_equal(events_review(&w->events, 4, begins_with_f, &client),
			EVENTS_REVIEW_MORE);
	}
	assert_int_equal(client, 99);
	assert_int_equal(events_review(&w->events, 4, begins_with_f, &client),
		EVENTS_REVIEW_FORBIDDEN);
	assert_int_equal(client, 1);
	events_forget(&w->events, 1, UINT32_MAX);
	assert_int_equal(events_review(&w->events, 4, begins_with_f, &client), EVENTS_REVIEW_DONE);
	world_free(w);
}

static void a_watcher_in_doubt_is_told_nothing_and_misses_nothing(void **state) {
	(void)state;
	struct world *w = world_new();
	uint64_t client;
	watch_key(w, 0, "k");
	watch_key(w, 1, "f");
	watch_prefix(w, 1, "");
	happen(w, WATCH_EVENT_ACQUIRED, "k", 1);
	events_doubt(&w->events);
	happen(w, WATCH_EVENT_UPDATED, "k", 2);
	serve(w);
	ASSERT_TOKENS(w, 0, 1);
	assert_int_equal(events_review(&w->events, 4, begins_with_f, &client),
		EVENTS_REVIEW_FORBIDDEN);
	events_forget(&w->events, client, UINT32_MAX);
	assert_int_equal(events_review(&w->events, 4, begins_with_f, &client), EVENTS_REVIEW_DONE);
	serve(w);
	happen(w, WATCH_EVENT_RELEASED, "k", 3);
	ASSERT_TOKENS(w, 0, 1, 2, 3);
	ASSERT_TOKENS(w, 1, 1);
	world_free(w);
}

UNIT(node_events) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_watchers_of_a_key_or_a_prefix_of_it_are_told_and_nobody_else),
		cmocka_unit_test(each_of_a_clients_watches_is_told_under_its_own_number),
		cmocka_unit_test(the_lock_id_is_shown_to_its_identity_and_to_administrators),
		cmocka_unit_test(a_client_counts_once_however_many_of_its_watches_meet_the_key),
		cmocka_unit_test(a_client_may_watch_so_many_keys_and_no_more),
		cmocka_unit_test(
			a_watcher_behind_is_told_the_rest_in_order_when_there_is_room_again),
		cmocka_unit_test(one_turn_tells_so_much_and_the_next_ones_the_rest),
		cmocka_unit_test(what_one_watch_was_told_is_not_told_again_because_another_was_not),
		cmocka_unit_test(
		a_watcher_behind_for_too_long_is_told_of_one_overflow_and_then_of_news),
		cmocka_unit_test(
			a_watch_that_began_later_loses_nothing_when_an_older_one_overflows),
		cmocka_unit_test(missed_events_are_an_overflow_for_all_watchers_in_their_place),
		cmocka_unit_test(missed_events_of_a_key_are_an_overflow_for_its_watchers),
		cmocka_unit_test(what_could_not_be_told_for_lack_of_memory_is_told_later),
		cmocka_unit_test(watches_are_judged_by_new_rules_a_few_at_a_time),
		cmocka_unit_test(a_watcher_in_doubt_is_told_nothing_and_misses_nothing),
		cmocka_unit_test(without_memory_a_watch_is_refused_and_nothing_else_suffers),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
