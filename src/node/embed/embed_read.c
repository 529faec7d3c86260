/* embed_read.c: reads from the memory of this process. */
#include "embed.h"

#include "pawl/error.h"
#include "time_source.h"

#define SEQ_BYTES 20

/* Writes a sequence in network byte order, as the client protocol does. */
static void embed_seq(struct ballot from, uint8_t out[SEQ_BYTES]) {
	for (unsigned i = 0; i < 8; i++) {
		out[i] = (uint8_t)(from.clock >> (56 - 8 * i));
		out[8 + i] = (uint8_t)(from.node >> (56 - 8 * i));
	}
	for (unsigned i = 0; i < 4; i++) {
		out[16 + i] = (uint8_t)(from.boot >> (24 - 8 * i));
	}
}

int embed_seq_copy(struct arena *arena, struct ballot from, struct pawl_bytes *out) {
	uint8_t bytes[SEQ_BYTES];
	embed_seq(from, bytes);
	return embed_bytes(arena, slice_of(bytes, sizeof bytes), out);
}

bool embed_seq_parse(struct pawl_bytes from, struct ballot *out) {
	const uint8_t *b = from.data;
	struct ballot seq = { 0 };
	if (from.size != SEQ_BYTES) {
		return false;
	}
	for (unsigned i = 0; i < 8; i++) {
		seq.clock = seq.clock << 8 | b[i];
		seq.node = seq.node << 8 | b[8 + i];
	}
	for (unsigned i = 0; i < 4; i++) {
		seq.boot = seq.boot << 8 | b[16 + i];
	}
	*out = seq;
	return true;
}

bool pawl_node_get(struct pawl_node *node, struct pawl_bytes key, struct pawl_entry *out_entry) {
	struct core_inspect look;
	arena_reset(&node->read);
	return core_inspect(node_driver(node->node)->core, slice_of(key.data, key.size),
		time_source_now(), &look) && !look.entry.closing
		&& embed_entry(&node->read, &look.entry, look.contested, out_entry) == 0;
}

struct embed_each {
	struct pawl_node *node;
	pawl_node_visit_fn *visit;
	void *arg;
	int error;
};

static bool embed_visit(void *ctx, const struct core_inspect *look) {
	struct embed_each *each = ctx;
	struct pawl_entry entry;
	if (look->entry.closing) {
		return true;
	}
	arena_reset(&each->node->read);
	each->error = embed_entry(&each->node->read, &look->entry, look->contested, &entry);
	return !each->error && each->visit(&entry, each->arg);
}

int pawl_node_each(struct pawl_node *node, struct pawl_bytes prefix,
	pawl_node_visit_fn *visit, void *arg) {
	struct embed_each each = { .node = node, .visit = visit, .arg = arg };
	core_inspect_each(node_driver(node->node)->core, slice_of(prefix.data, prefix.size),
		time_source_now(), embed_visit, &each);
	return each.error;
}

/* ---- the status ---- */

static enum pawl_node_state embed_state(enum core_state state) {
	switch (state) {
	case CORE_UNBORN:
		return PAWL_NODE_UNBORN;
	case CORE_OUTSIDE:
		return PAWL_NODE_OUTSIDE;
	case CORE_FOLLOWING:
		return PAWL_NODE_FOLLOWING;
	case CORE_HANDOVER:
		return PAWL_NODE_HANDOVER;
	case CORE_RECOVERING:
		return PAWL_NODE_RECOVERING;
	case CORE_VOTING:
		return PAWL_NODE_VOTING;
	case CORE_DRAINED:
		return PAWL_NODE_DRAINED;
	}
	return PAWL_NODE_UNBORN;
}

int64_t embed_age_ms(const struct core_status *status) {
	if (status->state == CORE_VOTING) {
		return 0;
	}
	return status->state == CORE_FOLLOWING && status->age != SPAN_MAX
		? status->age / SPAN_MS : -1;
}

void pawl_node_status(const struct pawl_node *node, struct pawl_node_status *out_status) {
	const struct core *core = node_driver(node->node)->core;
	struct core_status s;
	core_status(core, time_source_now(), &s);
	*out_status = (struct pawl_node_status){ .state = embed_state(s.state), .master = s.master,
		.epoch = s.epoch, .settled = s.settled, .complete = s.complete, .quorum = s.quorum,
		.voting = s.voting_linked, .waits_for = s.waits_for ? s.waits_for : "",
		.left_ms = s.left / SPAN_MS, .age_ms = embed_age_ms(&s), .follows = "",
		.keys = s.held, .waiters = s.waiters, .memory_bytes = s.memory_bytes,
		.peers = core_peer_count(core) };
	if (s.state == CORE_FOLLOWING && s.following >= 0) {
		out_status->follows = core_peer(core, (uint32_t)s.following)->name;
	}
}

bool pawl_node_peer(const struct pawl_node *node, uint32_t index, struct pawl_node_peer *out_peer) {
	const struct core *core = node_driver(node->node)->core;
	struct core_status s;
	if (index >= core_peer_count(core)) {
		return false;
	}
	core_status(core, time_source_now(), &s);
	const struct core_peer_status *p = &s.peers[index];
	*out_peer = (struct pawl_node_peer){ .name = core_peer(core, index)->name,
		.address = core_peer(core, index)->address, .self = index == core_self(core),
		.master = p->master, .member = p->member, .linked = p->linked, .voting = p->voting,
		.round_trip_us = p->round_trip ? p->round_trip / SPAN_US : -1 };
	return true;
}

int64_t pawl_node_left_ms(struct pawl_node_deadline deadline) {
	return instant_left_short(time_source_now(),
		(struct instant){ deadline.boottime_ns, deadline.monotonic_raw_ns }) / SPAN_MS;
}
