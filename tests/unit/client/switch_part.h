/* switch_part.h: what the tests of clients that leave a silent node have in common. */
#ifndef PAWL_TESTS_SWITCH_PART_H
#define PAWL_TESTS_SWITCH_PART_H

#include <stdio.h>

#include "holder.h"

static const struct pawl_request get = { .method = PAWL_GET, .key = { "k", 1 } };

static inline unsigned open_sessions(const struct fake_node *n) {
	unsigned open = 0;
	for (size_t i = 0; i < FAKE_CONNS; i++) {
		open += n->conns[i].fd >= 0;
	}
	return open;
}

/* Opens a client that knows how fast the first node answers. */
static inline void begin(struct rig *r) {
	rig_open(r, NULL);
	for (int i = 0; i < 4; i++) {
		pawl_result_free(rig_ask(r, &get));
	}
}

/* What came of a request. */
struct outcome {
	bool over;
	int error;
	char endpoint[64];
	struct pawl_id lock_id;
	int64_t valid_ms;
};

static inline void on_outcome(struct pawl_result *take_result, void *arg) {
	struct outcome *o = arg;
	*o = (struct outcome){ .over = true, .error = take_result->error,
		.lock_id = take_result->lock_id, .valid_ms = pawl_result_valid_ms(take_result) };
	(void)snprintf(o->endpoint, sizeof(o->endpoint), "%s",
		take_result->endpoint ? take_result->endpoint : "");
	pawl_result_free(take_result);
}

static inline void start(struct rig *r, const struct pawl_request *request, struct outcome *o) {
	*o = (struct outcome){ 0 };
	assert_int_equal(pawl_start(r->client, request, on_outcome, o, NULL), 0);
	rig_settle(r);
}

#endif
