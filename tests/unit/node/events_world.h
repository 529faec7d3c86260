/* events_world.h: what tests of watches share: clients whose connections are lists of what they
 * were told. */
#ifndef PAWL_TESTS_EVENTS_WORLD_H
#define PAWL_TESTS_EVENTS_WORLD_H

#include "unit.h"

#include <stdlib.h>

#include "events.h"
#include "pawl/error.h"

#define CLIENTS 4
#define TOLD_MAX 4096

struct told {
	uint64_t watch, number;
	enum core_watch_event_kind kind;
	uint64_t token;
	/* `key`: the overflow is of one key. */
	bool overflow, lock_id, key;
};

struct world {
	struct alloc_counter memory;
	struct allocator alloc;
	struct events events;
	struct told told[CLIENTS][TOLD_MAX];
	size_t count[CLIENTS];
	/* How many more events the connection takes. */
	size_t room[CLIENTS];
	/* There is no memory for what is to be told. */
	bool refuses;
};

static inline bool world_full(void *ctx, uint64_t client) {
	const struct world *w = ctx;
	return w->room[client] == 0;
}

static inline int world_tell(void *ctx, uint64_t client, const struct events_item *item) {
	struct world *w = ctx;
	if (w->refuses) {
		return PAWL_ENOMEM;
	}
	struct told *t = &w->told[client][w->count[client]++];
	assert_true(w->count[client] < TOLD_MAX && w->room[client] > 0);
	w->room[client]--;
	*t = (struct told){ .watch = item->watch, .number = item->position.number,
		.overflow = item->watch_event == NULL ||
		item->watch_event->kind == WATCH_EVENT_MISSED, .lock_id = item->show_lock_id };
	t->key = item->watch_event && item->watch_event->kind == WATCH_EVENT_MISSED &&
		item->watch_event->key.size > 0;
	if (item->watch_event) {
		t->kind = item->watch_event->kind;
		t->token = item->watch_event->token;
	}
	return 0;
}

static const struct events_port world_port = { world_full, world_tell };

static inline struct world *world_new(void) {
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->alloc = alloc_libc(&w->memory);
	assert_int_equal(events_init(&w->events, &w->alloc, (struct siphash_key){ 1, 2 }, 77,
		&world_port, w), 0);
	w->events.ring_bytes = WATCH_EVENT_RING_LEAST;
	for (size_t i = 0; i < CLIENTS; i++) {
		w->room[i] = SIZE_MAX;
	}
	assert_int_equal(events_open(&w->events), 0);
	return w;
}

static inline void world_free(struct world *w) {
	events_done(&w->events);
	assert_int_equal(w->memory.used, 0);
	free(w);
}

static inline uint64_t watch_as(struct world *w, uint64_t client, const char *identity, bool admin,
	const char *subject, bool prefix, const struct events_position *from) {
	const struct events_watcher who = { client, slice_str(identity), admin };
	uint64_t watch = 0;
	assert_int_equal(events_watch(&w->events, &who, slice_str(subject), prefix, from, 1000,
		&watch), 0);
	return watch;
}

static inline uint64_t watch_key(struct world *w, uint64_t client, const char *key) {
	return watch_as(w, client, "", false, key, false, NULL);
}

static inline uint64_t watch_prefix(struct world *w, uint64_t client, const char *prefix) {
	return watch_as(w, client, "", false, prefix, true, NULL);
}

static inline void happen(struct world *w, enum core_watch_event_kind kind, const char *key,
	uint64_t token) {
	const struct core_watch_event watch_event = { .kind = kind, .key = slice_str(key),
		.identity = slice_str("client:a"), .token = token };
	events_turn(&w->events, false);
	events_add(&w->events, &watch_event);
}

/* Tells of an event in a turn that visits at most `steps` entries and watches. */
static inline void happen_large_within(struct world *w, int32_t steps, const char *key,
	uint64_t token, size_t bytes) {
	uint8_t *value = calloc(1, bytes);
	assert_non_null(value);
	const struct core_watch_event watch_event = { .kind = WATCH_EVENT_UPDATED,
		.key = slice_str(key), .token = token, .value = slice_of(value, bytes) };
	events_turn(&w->events, false);
	w->events.walk.steps = steps;
	events_add(&w->events, &watch_event);
	free(value);
}

static inline void happen_large(struct world *w, const char *key, uint64_t token, size_t bytes) {
	happen_large_within(w, 1000, key, token, bytes);
}

/* Serves as many turns as it takes. */
static inline void serve(struct world *w) {
	for (uint64_t client = 0; client < CLIENTS; client++) {
		events_room(&w->events, client);
	}
	do {
		events_turn(&w->events, false);
	} while (events_serve(&w->events));
}

static inline void assert_tokens(const struct world *w, uint64_t client, const uint64_t *tokens,
	size_t count) {
	assert_int_equal(w->count[client], count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(w->told[client][i].token, tokens[i]);
	}
}
#define ASSERT_TOKENS(w, client, ...) \
	assert_tokens(w, client, (const uint64_t[]){ __VA_ARGS__ }, \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#endif
