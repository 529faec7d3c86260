/* replicas.h: what the tests of replicas share. Nodes 0 to 2 are masters, the others follow. */
#ifndef PAWL_TESTS_REPLICAS_H
#define PAWL_TESTS_REPLICAS_H

#include <stdio.h>
#include <string.h>

#include "named.h"

#define REPLICA 3u
/* The time that a few batches take. */
#define SHORT (30 * SPAN_MS)

static const struct id128 no_lock;

static inline int setup_with(void **state, uint32_t replicas, uint64_t log_bytes) {
	struct stage_options o = named_options();
	o.replicas = replicas;
	o.limits.log_bytes = log_bytes;
	struct stage *s = stage_born(&o);
	*state = s;
	stage_wait(s, SHORT);
	return 0;
}

static inline int setup(void **state) {
	return setup_with(state, 1, 0);
}

#define REPLICAS(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

static inline bool has(const struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

static inline uint32_t master_of(const struct stage *s, uint32_t node) {
	int following = stage_status(s, node).following;
	assert_true(following >= 0 && following < 3);
	return (uint32_t)following;
}

static inline const struct core_reply *look(struct stage *s, uint32_t node, const char *key) {
	assert_int_equal(stage_do(s, node, stage_request(CORE_GET, key, no_lock)), PAWL_OK);
	return &stage_last(s)->r;
}

static inline uint64_t snapshots(const struct stage *s) {
	return stage_count(s, COUNT_feed_snapshot);
}

static inline const char *numbered(char name[16], uint32_t i) {
	snprintf(name, 16, "key%u", i);
	return name;
}

static inline struct id128 numbered_lock(uint32_t i) {
	struct id128 lock = stage_lock((uint8_t)i);
	lock.b[1] = (uint8_t)(i >> 8);
	return lock;
}

static inline void take_many(struct stage *s, uint32_t from, uint32_t to) {
	char name[16];
	/* Checking would take time that grows with the number of keys. */
	s->options.unchecked = true;
	for (uint32_t i = from; i < to; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire(numbered(name, i), numbered_lock(i),
			5 * SPAN_S, 0)), PAWL_OK);
	}
	s->options.unchecked = false;
}

/* Says whether the replica has as many records as the master that it follows. */
static inline bool equals_master(const struct stage *s, uint32_t node) {
	struct core_status replica = stage_status(s, node);
	return replica.following >= 0 && !replica.catching_up &&
		replica.held == stage_status(s, (uint32_t)replica.following).held;
}

/* The next watch event that this node tells has to be this one; it is returned. */
static inline const struct stage_event *watch_event_is(struct stage *s, uint32_t node,
	enum core_watch_event_kind kind, struct id128 lock) {
	const struct stage_event *n = stage_next_event(s, node);
	assert_non_null(n);
	assert_int_equal(n->event.kind, kind);
	assert_true(id128_equal(n->event.lock_id, lock));
	return n;
}

static inline bool text_is(const struct stage_text *t, const char *text) {
	return t->size == strlen(text) && memcmp(t->bytes, text, t->size) == 0;
}

#endif
