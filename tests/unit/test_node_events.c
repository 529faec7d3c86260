#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "events.h"
#include "pawl/error.h"

/* Clients whose connections are lists of what they were told. */
#define CLIENTS 4
#define TOLD_MAX 4096

struct told {
	uint64_t watch, number;
	enum core_news_kind kind;
	uint64_t token;
	bool overflow, lock_id;
};

struct world {
	struct alloc_counter memory;
	struct allocator alloc;
	struct events events;
	struct told told[CLIENTS][TOLD_MAX];
	size_t count[CLIENTS];
	size_t room[CLIENTS]; /* how many more the connection takes */
	bool refuses;         /* no memory for what is to be told */
};

static bool world_full(void *ctx, uint64_t client) {
	const struct world *w = ctx;
	return w->room[client] == 0;
}

static int world_tell(void *ctx, uint64_t client, const struct events_item *item) {
	struct world *w = ctx;
	if (w->refuses) {
		return PAWL_ENOMEM;
	}
	struct told *t = &w->told[client][w->count[client]++];
	assert_true(w->count[client] < TOLD_MAX && w->room[client] > 0);
	w->room[client]--;
	*t = (struct told){ .watch = item->watch, .number = item->position.number, .overflow = item->news == NULL,
		.lock_id = item->show_lock_id };
	if (item->news) {
		t->kind = item->news->kind;
		t->token = item->news->token;
	}
	return 0;
}

static const struct events_port world_port = { world_full, world_tell };

static struct world *world_new(void) {
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->alloc = alloc_libc(&w->memory);
	assert_int_equal(events_init(&w->events, &w->alloc, (struct siphash_key){ 1, 2 }, 77, &world_port, w), 0);
	w->events.ring_bytes = NEWS_RING_LEAST;
	for (size_t i = 0; i < CLIENTS; i++) {
		w->room[i] = SIZE_MAX;
	}
	assert_int_equal(events_open(&w->events), 0);
	return w;
}

static void world_free(struct world *w) {
	events_done(&w->events);
	assert_int_equal(w->memory.used, 0);
	free(w);
}

static uint64_t watch_as(struct world *w, uint64_t client, const char *identity, bool admin, const char *subject, bool prefix,
	const struct events_position *from) {
	const struct events_watcher who = { client, slice_str(identity), admin };
	uint64_t watch = 0;
	assert_int_equal(events_watch(&w->events, &who, slice_str(subject), prefix, from, 1000, &watch), 0);
	return watch;
}

static uint64_t watch_key(struct world *w, uint64_t client, const char *key) {
	return watch_as(w, client, "", false, key, false, NULL);
}

static uint64_t watch_prefix(struct world *w, uint64_t client, const char *prefix) {
	return watch_as(w, client, "", false, prefix, true, NULL);
}

static void happen(struct world *w, enum core_news_kind kind, const char *key, uint64_t token) {
	const struct core_news news = { .kind = kind, .key = slice_str(key), .identity = slice_str("client:a"), .token = token };
	events_add(&w->events, &news);
}

static void happen_large(struct world *w, const char *key, uint64_t token, size_t bytes) {
	uint8_t *value = calloc(1, bytes);
	assert_non_null(value);
	const struct core_news news = { .kind = NEWS_UPDATED, .key = slice_str(key), .token = token, .value = slice_of(value, bytes) };
	events_add(&w->events, &news);
	free(value);
}

static void serve(struct world *w) {
	while (events_serve(&w->events)) {
	}
}

static void assert_tokens(const struct world *w, uint64_t client, const uint64_t *tokens, size_t count) {
	assert_int_equal(w->count[client], count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(w->told[client][i].token, tokens[i]);
	}
}
#define ASSERT_TOKENS(w, client, ...) \
	assert_tokens(w, client, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/* ---- who is told ---- */

static void whoever_watches_a_key_or_a_prefix_of_it_is_told_and_nobody_else(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "jobs/1");
	watch_prefix(w, 1, "jobs/");
	watch_prefix(w, 2, "");
	watch_key(w, 3, "jobs/");
	happen(w, NEWS_ACQUIRED, "jobs/1", 1);
	happen(w, NEWS_ACQUIRED, "jobs/2", 2);
	happen(w, NEWS_ACQUIRED, "job", 3);
	happen(w, NEWS_ACQUIRED, "jobs/", 4);
	ASSERT_TOKENS(w, 0, 1);
	ASSERT_TOKENS(w, 1, 1, 2, 4);
	ASSERT_TOKENS(w, 2, 1, 2, 3, 4);
	ASSERT_TOKENS(w, 3, 4);
	world_free(w);
}

static void each_of_a_clients_watches_is_told_under_its_own_number(void **state) {
	struct world *w = world_new();
	(void)state;
	uint64_t key = watch_key(w, 0, "a"), prefix = watch_prefix(w, 0, "a"), same = watch_key(w, 0, "a");
	assert_true(key != prefix && prefix != same && key != same);
	happen(w, NEWS_ACQUIRED, "a", 1);
	assert_int_equal(w->count[0], 3);
	assert_true(events_unwatch(&w->events, 0, key));
	assert_false(events_unwatch(&w->events, 0, key));
	assert_false(events_unwatch(&w->events, 1, prefix)); /* somebody else's */
	happen(w, NEWS_RELEASED, "a", 1);
	assert_int_equal(w->count[0], 5);
	events_forget(&w->events, 0);
	happen(w, NEWS_ACQUIRED, "a", 2);
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
	happen(w, NEWS_ACQUIRED, "k", 1);
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
	events_forget(&w->events, 0);
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
	assert_int_equal(events_watch(&w->events, &who, slice_str("c"), false, NULL, 2, &watch), PAWL_EFULL);
	assert_true(events_unwatch(&w->events, 0, first));
	assert_int_equal(events_watch(&w->events, &who, slice_str("c"), false, NULL, 2, &watch), 0);
	assert_int_equal(events_watches(&w->events, 0), 2);
	world_free(w);
}

/* ---- behind ---- */

static void who_is_behind_is_told_the_rest_in_order_when_there_is_room_again(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_prefix(w, 0, "");
	watch_key(w, 1, "k");
	w->room[0] = 2;
	for (uint64_t token = 1; token <= 5; token++) {
		happen(w, NEWS_ACQUIRED, token % 2 ? "k" : "l", token);
	}
	ASSERT_TOKENS(w, 0, 1, 2);
	ASSERT_TOKENS(w, 1, 1, 3, 5); /* the slow one holds up nobody */
	assert_false(events_serve(&w->events));
	w->room[0] = 1;
	serve(w);
	happen(w, NEWS_ACQUIRED, "k", 6);
	w->room[0] = SIZE_MAX;
	ASSERT_TOKENS(w, 0, 1, 2, 3);
	serve(w);
	happen(w, NEWS_ACQUIRED, "k", 7);
	ASSERT_TOKENS(w, 0, 1, 2, 3, 4, 5, 6, 7);
	world_free(w);
}

static void what_one_watch_was_told_is_not_told_again_because_another_was_not(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_prefix(w, 0, "k");
	w->room[0] = 1;
	happen(w, NEWS_ACQUIRED, "k", 1);
	happen(w, NEWS_RELEASED, "k", 2);
	w->room[0] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 4);
	assert_int_not_equal(w->told[0][0].watch, w->told[0][1].watch);
	ASSERT_TOKENS(w, 0, 1, 1, 2, 2);
	world_free(w);
}

static void who_stays_behind_for_too_long_is_told_of_one_overflow_and_then_of_what_is_new(void **state) {
	struct world *w = world_new();
	(void)state;
	uint64_t slow = watch_key(w, 0, "k");
	happen(w, NEWS_ACQUIRED, "k", 1);
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
	happen(w, NEWS_RELEASED, "k", 1000);
	assert_int_equal(w->count[0], 3);
	assert_int_equal(w->told[0][2].token, 1000);
	world_free(w);
}

static void a_watch_that_began_later_loses_nothing_when_an_older_one_overflows(void **state) {
	struct world *w = world_new();
	(void)state;
	uint64_t older = watch_key(w, 0, "old");
	w->room[0] = 0;
	happen(w, NEWS_ACQUIRED, "old", 1);
	for (int i = 0; i < 30; i++) {
		happen_large(w, "noise", 2, 100000);
	}
	uint64_t younger = watch_key(w, 0, "young");
	happen(w, NEWS_ACQUIRED, "young", 3);
	w->room[0] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 2);
	assert_true(w->told[0][0].overflow && w->told[0][0].watch == older);
	assert_true(w->told[0][1].token == 3 && w->told[0][1].watch == younger);
	world_free(w);
}

static void a_gap_is_an_overflow_for_everybody_in_its_place(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	watch_prefix(w, 1, "other");
	w->room[1] = 0;
	happen(w, NEWS_ACQUIRED, "k", 1);
	happen(w, NEWS_ACQUIRED, "other", 2);
	happen(w, NEWS_GAP, "", 0);
	happen(w, NEWS_ACQUIRED, "k", 3);
	w->room[1] = SIZE_MAX;
	serve(w);
	assert_int_equal(w->count[0], 3);
	assert_true(w->told[0][1].overflow && w->told[0][2].token == 3);
	assert_int_equal(w->count[1], 2);
	assert_true(w->told[1][0].token == 2 && w->told[1][1].overflow);
	world_free(w);
}

static void what_could_not_be_told_for_lack_of_memory_is_told_later(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	w->refuses = true;
	happen(w, NEWS_ACQUIRED, "k", 1);
	assert_false(events_serve(&w->events));
	happen(w, NEWS_RELEASED, "k", 2);
	w->refuses = false;
	serve(w);
	ASSERT_TOKENS(w, 0, 1, 2);
	world_free(w);
}

/* ---- resuming ---- */

static void who_resumes_is_told_what_came_behind_its_position_once(void **state) {
	struct world *w = world_new();
	(void)state;
	watch_key(w, 0, "k");
	happen(w, NEWS_ACQUIRED, "k", 1);
	const struct events_position seen = events_position(&w->events);
	events_forget(&w->events, 0);
	happen(w, NEWS_RELEASED, "k", 2);
	happen(w, NEWS_ACQUIRED, "other", 3);
	uint64_t other = watch_key(w, 1, "k"); /* another watch of the same connection, up to date */
	assert_true(other > 0);
	watch_as(w, 1, "", false, "k", false, &seen);
	happen(w, NEWS_ACQUIRED, "k", 4);
	assert_int_equal(w->count[1], 0); /* nothing overtakes what comes before it */
	serve(w);
	ASSERT_TOKENS(w, 1, 2, 4, 4);
	assert_int_not_equal(w->told[1][0].watch, other);
	world_free(w);
}

static void a_watch_that_is_behind_is_not_moved_on_by_another_that_resumes(void **state) {
	struct world *w = world_new();
	(void)state;
	const struct events_position start = events_position(&w->events);
	happen(w, NEWS_ACQUIRED, "k", 1);
	watch_key(w, 0, "k");
	w->room[0] = 0;
	happen(w, NEWS_RELEASED, "k", 2);
	watch_as(w, 0, "", false, "k", false, &start);
	watch_as(w, 0, "", false, "k", false, NULL);
	happen(w, NEWS_ACQUIRED, "k", 3);
	w->room[0] = SIZE_MAX;
	serve(w);
	ASSERT_TOKENS(w, 0, 1, 2, 2, 3, 3, 3);
	world_free(w);
}

static void a_position_of_another_log_or_of_the_future_is_an_overflow(void **state) {
	struct world *w = world_new();
	const struct events_position foreign = { 78, 0 }, future = { 77, 1000 };
	(void)state;
	happen(w, NEWS_ACQUIRED, "k", 1);
	watch_as(w, 0, "", false, "k", false, &foreign);
	watch_as(w, 1, "", false, "k", false, &future);
	serve(w);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(w->count[i], 1);
		assert_true(w->told[i][0].overflow);
	}
	happen(w, NEWS_RELEASED, "k", 2);
	assert_int_equal(w->told[0][1].token, 2);
	world_free(w);
}

static void a_position_from_before_nobody_watched_is_an_overflow(void **state) {
	struct world *w = world_new();
	(void)state;
	happen(w, NEWS_ACQUIRED, "k", 1);
	const struct events_position seen = events_position(&w->events);
	events_close(&w->events);
	happen(w, NEWS_RELEASED, "k", 2); /* of which nobody knows */
	assert_int_equal(events_open(&w->events), 0);
	watch_as(w, 0, "", false, "k", false, &seen);
	serve(w);
	assert_int_equal(w->count[0], 1);
	assert_true(w->told[0][0].overflow);
	world_free(w);
}

/* ---- the ring ---- */

static void the_ring_gives_back_what_is_in_it_whatever_the_sizes(void **state) {
	struct alloc_counter memory = { 0 };
	struct allocator alloc = alloc_libc(&memory);
	struct news_ring ring;
	uint8_t *bytes = malloc(VALUE_MAX_HARD);
	(void)state;
	assert_non_null(bytes);
	news_ring_init(&ring, &alloc);
	assert_int_equal(news_ring_open(&ring, NEWS_RING_LEAST), 0);
	uint32_t random = 1;
	for (uint64_t n = 1; n <= 20000; n++) {
		random = random * 1664525 + 1013904223;
		size_t size = random >> 12 & 0xff ? random >> 20 : random % VALUE_MAX_HARD; /* small ones, now and then a large one */
		memset(bytes, (int)(n & 0xff), size);
		const struct core_news news = { .token = n, .value = slice_of(bytes, size), .key = slice_of(bytes, size % 100) };
		news_ring_push(&ring, &news);
		assert_int_equal(ring.next, n + 1);
		for (uint64_t at = ring.oldest; n % 97 == 0 && at < ring.next; at++) {
			const struct core_news *found = news_ring_at(&ring, at);
			assert_int_equal(found->token, at);
			assert_true(found->value.size == 0 || (found->value.data[0] == (at & 0xff) && found->value.data[found->value.size - 1] == (at & 0xff)));
		}
	}
	news_ring_done(&ring);
	assert_int_equal(memory.used, 0);
	free(bytes);
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
		happen(w, NEWS_ACQUIRED, "k", 1);
		assert_int_equal(w->count[1], 1);
		assert_int_equal(w->count[0], error == 0);
		world_free(w);
		if (!error) {
			break;
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_watches_a_key_or_a_prefix_of_it_is_told_and_nobody_else),
		cmocka_unit_test(each_of_a_clients_watches_is_told_under_its_own_number),
		cmocka_unit_test(the_lock_id_is_shown_to_its_identity_and_to_administrators),
		cmocka_unit_test(a_client_counts_once_however_many_of_its_watches_meet_the_key),
		cmocka_unit_test(a_client_may_watch_so_many_keys_and_no_more),
		cmocka_unit_test(who_is_behind_is_told_the_rest_in_order_when_there_is_room_again),
		cmocka_unit_test(what_one_watch_was_told_is_not_told_again_because_another_was_not),
		cmocka_unit_test(who_stays_behind_for_too_long_is_told_of_one_overflow_and_then_of_what_is_new),
		cmocka_unit_test(a_watch_that_began_later_loses_nothing_when_an_older_one_overflows),
		cmocka_unit_test(a_gap_is_an_overflow_for_everybody_in_its_place),
		cmocka_unit_test(what_could_not_be_told_for_lack_of_memory_is_told_later),
		cmocka_unit_test(who_resumes_is_told_what_came_behind_its_position_once),
		cmocka_unit_test(a_watch_that_is_behind_is_not_moved_on_by_another_that_resumes),
		cmocka_unit_test(a_position_of_another_log_or_of_the_future_is_an_overflow),
		cmocka_unit_test(a_position_from_before_nobody_watched_is_an_overflow),
		cmocka_unit_test(the_ring_gives_back_what_is_in_it_whatever_the_sizes),
		cmocka_unit_test(without_memory_a_watch_is_refused_and_nothing_else_suffers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
