/* voter.h: a node and its lock_ids, for the tests of what is said, asked and answered. */
#ifndef PAWL_REFINE_VOTER_H
#define PAWL_REFINE_VOTER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "machine.h"

static inline struct id128 lock(uint8_t n) {
	return (struct id128){ { n } };
}

/* One of three masters, whose clock is 100. */
static inline struct m_node some_node(void) {
	return (struct m_node){ .now = { 50 * SPAN_S, 50 * SPAN_S }, .clock = 100, .votes = true,
		.epoch = 1, .hash = 1, .masters = 3, .quorum = 2, .max_lease = 10 * SPAN_S,
		.request_timeout = 100 * SPAN_MS, .promise_timeout = 200 * SPAN_MS,
		.drift_ppm = 10000 };
}

#endif
