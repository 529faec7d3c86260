/* embed_change.h: changes of a cluster of nodes inside a program, and the node D, which is added to
 * it. */
#ifndef PAWL_TESTS_EMBED_CHANGE_H
#define PAWL_TESTS_EMBED_CHANGE_H

#include "embed_rig.h"

static const struct pawl_bytes key = { "k", 1 };
enum { A, B, C, D };

/* Tells one node what to do about another one, or about all. */
static inline struct embed_rig_answer change(struct embed_rig *r, size_t asked,
	struct pawl_change wanted) {
	struct embed_rig_answer a = embed_rig_ask(r, asked,
		&(struct pawl_request){ .method = PAWL_CHANGE, .change = &wanted });
	if (a.error) {
		print_message("%s\n", a.message);
	}
	return a;
}

static inline void add_d(struct embed_rig *r) {
	embed_rig_start(r, D);
	embed_rig_await_state(r, D, PAWL_NODE_OUTSIDE);
	const struct pawl_change add = { .kind = PAWL_ADD_REPLICA, .name = "d",
		.address = pawl_node_address(r->nodes[D].node) };
	assert_int_equal(change(r, A, add).error, 0);
	embed_rig_await_state(r, D, PAWL_NODE_FOLLOWING);
}

static inline bool d_shows_it(void *ctx) {
	struct pawl_entry entry;
	return pawl_node_get(((struct embed_rig *)ctx)->nodes[D].node, key, &entry);
}

static inline bool d_knows_its_age(void *ctx) {
	struct pawl_node_status status;
	pawl_node_status(((struct embed_rig *)ctx)->nodes[D].node, &status);
	return status.age_ms >= 0 && status.follows[0] != '\0';
}

#endif
