/* values.h: what the tests of a held lock's value share. They use the key "k" under one lock_id. */
#ifndef PAWL_UNIT_VALUES_H
#define PAWL_UNIT_VALUES_H

#include "named.h"

static inline struct core_request acquire_with(const char *value) {
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.value = slice_str(value);
	return r;
}

static inline struct core_request update_to(const char *value, const char *expected) {
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str(value);
	r.expect_value = expected != NULL;
	r.expected = expected ? slice_str(expected) : r.expected;
	return r;
}

/* Says whether a quorum knows this value. */
static inline bool value_is(struct stage *s, uint32_t node, const char *value) {
	struct core_request r = stage_request(CORE_GET, "k", (struct id128){ { 0 } });
	r.quorum = r.admin = true;
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 250 * SPAN_MS);
	const struct stage_reply *reply = stage_answer(s, id);
	assert_non_null(reply);
	assert_int_equal(reply->r.error, PAWL_OK);
	return reply->r.held &&
		slice_equal(slice_of(reply->value.bytes, reply->value.size), slice_str(value));
}

/* X and its update end at the other masters; n2 alone has an extension, and the update with it. */
static inline void n2_keeps_an_earlier_holding(struct stage *s) {
	struct core_request r = acquire_with("first");
	r.lease = 500 * SPAN_MS;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_int_equal(stage_do(s, 0, update_to("second", "first")), PAWL_OK);
	stage_isolate(s, 1, true);
	(void)extend(s, 1, "k", stage_lock(1), 5 * LEASE, true);
	stage_wait(s, 600 * SPAN_MS);
	stage_isolate(s, 1, false);
	stage_wait(s, 10 * SPAN_MS);
}

/* n1 is away while the lease, which lasts for half a second there, goes on at n2 and n3. Then n2 is
 * away, and n3 repeats the acquire with n1. An update over this value fails: it is not the last. */
static inline void repeat_without_the_last(struct stage *s, const char *value, const char *over) {
	stage_isolate(s, 0, true);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), 5 * LEASE, true), PAWL_OK);
	stage_wait(s, 600 * SPAN_MS);
	stage_isolate(s, 0, false);
	stage_isolate(s, 1, true);
	stage_wait(s, 10 * SPAN_MS);
	uint64_t id = stage_ask(s, 2, acquire_with("first"));
	stage_wait(s, 300 * SPAN_MS);
	(void)token_of(s, id);
	uint64_t u = stage_ask(s, 2, update_to(value, over));
	stage_wait(s, 300 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, u)->r.error, PAWL_OK);
	stage_isolate(s, 1, false);
	stage_wait(s, 300 * SPAN_MS);
}

#endif
