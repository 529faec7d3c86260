/* modes.h: requests for locks with more than one holder (docs/protocol.md, section 10), for the
 * tests of a whole cluster. */
#ifndef PAWL_TESTS_MODES_H
#define PAWL_TESTS_MODES_H

#include <stdio.h>

#include "named.h"

static inline struct core_request shared_request(const char *key, struct id128 lock, span_ns wait) {
	struct core_request r = stage_acquire(key, lock, LEASE, wait);
	r.terms.of = MODE_SHARED;
	return r;
}

static inline struct core_request permits_request(const char *key, struct id128 lock,
	uint16_t count, uint16_t of, span_ns wait) {
	struct core_request r = stage_acquire(key, lock, LEASE, wait);
	r.terms.of = of;
	r.terms.count = count;
	return r;
}

static inline int share(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	return stage_do(s, node, shared_request(key, lock, 0));
}

static inline uint64_t wait_shared(struct stage *s, uint32_t node, const char *key,
	struct id128 lock) {
	uint64_t id = stage_ask(s, node, shared_request(key, lock, WAIT));
	stage_settle(s);
	return id;
}

static inline int take_permits(struct stage *s, uint32_t node, const char *key, struct id128 lock,
	uint16_t count, uint16_t of) {
	return stage_do(s, node, permits_request(key, lock, count, of, 0));
}

static inline uint64_t wait_permits(struct stage *s, uint32_t node, const char *key,
	struct id128 lock, uint16_t count, uint16_t of) {
	uint64_t id = stage_ask(s, node, permits_request(key, lock, count, of, WAIT));
	stage_settle(s);
	return id;
}

/* Returns the permit numbers in an answer that succeeded. */
static inline struct permits numbers_of(const struct stage *s, uint64_t id) {
	token_of(s, id);
	return stage_answer(s, id)->r.terms.set;
}

/* Returns a key of which this master is the home. */
static inline const char *key_of_home(struct stage *s, uint32_t home) {
	static char key[16];
	for (uint32_t i = 0; i < 1000; i++) {
		snprintf(key, sizeof key, "k%u", i);
		(void)stage_do(s, 0, stage_request(CORE_EXPLAIN, key, stage_lock(1)));
		if (stage_last(s)->reports[stage_peer(s, 0, home)].home) {
			return key;
		}
	}
	fail_msg("there is no key of that home");
	return NULL;
}

#endif
