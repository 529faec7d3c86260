/* named.h: what the tests of a whole cluster's behaviour share: a stage with a cluster of three
 * masters. At the end of a test every byte must have been freed. */
#ifndef PAWL_TESTS_NAMED_H
#define PAWL_TESTS_NAMED_H

#include "unit.h"

#include "stage.h"

#define LEASE (2 * SPAN_S)
#define WAIT (60 * SPAN_S)

static struct alloc_counter named_memory;
static struct allocator named_allocator;

static inline struct stage_options named_options(void) {
	struct stage_options o = stage_options_plain();
	named_memory = (struct alloc_counter){ 0, 0 };
	named_allocator = alloc_libc(&named_memory);
	o.own = o.core = &named_allocator;
	return o;
}

static inline int named_setup_of(void **state, uint32_t masters, uint32_t outside) {
	struct stage_options o = named_options();
	o.masters = masters;
	o.outside = outside;
	*state = stage_born(&o);
	return 0;
}

static inline int named_setup(void **state) {
	return named_setup_of(state, 3, 0);
}

/* Three masters, and replicas that have found out whom they follow. */
static inline int named_setup_replicas(void **state, uint32_t replicas) {
	struct stage_options o = named_options();
	o.replicas = replicas;
	*state = stage_born(&o);
	stage_wait(*state, 30 * SPAN_MS);
	return 0;
}

static inline int named_teardown(void **state) {
	stage_free(*state);
	return named_memory.used == 0 ? 0 : -1;
}

#define NAMED(test) cmocka_unit_test_setup_teardown(test, named_setup, named_teardown)

static inline uint64_t token_of(const struct stage *s, uint64_t id) {
	const struct stage_reply *r = stage_answer(s, id);
	assert_non_null(r);
	assert_int_equal(r->r.error, PAWL_OK);
	return r->r.token;
}

/* Tries once; the attempt must succeed. */
static inline uint64_t take(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	assert_int_equal(stage_do(s, node, stage_acquire(key, lock, LEASE, 0)), PAWL_OK);
	return stage_last(s)->r.token;
}

static inline uint64_t wait_for(struct stage *s, uint32_t node, const char *key,
	struct id128 lock) {
	uint64_t id = stage_ask(s, node, stage_acquire(key, lock, LEASE, WAIT));
	stage_settle(s);
	return id;
}

static inline int release(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	return stage_do(s, node, stage_request(CORE_RELEASE, key, lock));
}

static inline int extend(struct stage *s, uint32_t node, const char *key, struct id128 lock,
	span_ns lease, bool deadline_kept) {
	struct core_request r = stage_request(CORE_EXTEND, key, lock);
	r.lease = lease;
	r.deadline_kept = deadline_kept;
	return stage_do(s, node, r);
}

/* Says whether, as a quorum sees it, this lock_id holds the key. */
static inline bool holds(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	struct core_request r = stage_request(CORE_GET, key, (struct id128){ { 0 } });
	r.quorum = r.admin = true;
	uint64_t id = stage_ask(s, node, r);
	/* The node may have to ask twice. */
	stage_wait(s, 250 * SPAN_MS);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	return reply->r.error == PAWL_OK && reply->r.held &&
		id128_equal(reply->r.entry.lock_id, lock);
}

static inline bool answered(const struct stage *s, uint64_t id) {
	return stage_answer(s, id) != NULL;
}

#endif
