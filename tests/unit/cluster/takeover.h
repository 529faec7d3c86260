/* takeover.h: what the tests of proof and of takeovers share (docs/protocol.md, section 6,
 * Proof). */
#ifndef PAWL_TESTS_TAKEOVER_H
#define PAWL_TESTS_TAKEOVER_H

#include "members.h"

/* The request_timeout on the stage. */
#define REQUEST (100 * SPAN_MS)

/* Returns the configuration of `like`, with an epoch that is `later` epochs on, and with `node` as
 * its only master. */
static inline struct config taken_over(const struct stage *s, uint32_t like, uint32_t node,
	uint64_t later) {
	struct config c = *core_config(s->nodes[like].core);
	c.previous_master_count = config_masters(&c);
	for (uint32_t i = 0; i < c.previous_master_count; i++) {
		c.previous_masters[i] = c.nodes[i];
	}
	c.epoch += later;
	c.node_count = 1;
	c.nodes[0] = (struct config_node){ .id = s->nodes[node].disk.node_id, .master = true };
	memcpy(c.nodes[0].name, "n?", 3);
	c.nodes[0].name[1] = (char)('1' + node);
	memcpy(c.nodes[0].address, "n?:7118", 8);
	c.nodes[0].address[1] = c.nodes[0].name[1];
	return c;
}

static inline void say(struct stage *s, uint32_t from, uint32_t to, enum message_kind kind,
	const struct config *c) {
	static uint8_t bytes[CONFIG_BYTES_MAX];
	struct message m = { .kind = kind, .round = 7, .ballot = { 1000, 1, 1 } };
	m.blob = slice_of(bytes, config_encode(c, bytes));
	stage_inject(s, from, to, &m);
	stage_settle(s);
}

#endif
