/* fuzz_core.h: what the fuzzer of core_step draws from its bytes: a world around one core, and
 * numbers, names and messages. */
#ifndef PAWL_TESTS_FUZZ_CORE_H
#define PAWL_TESTS_FUZZ_CORE_H

#include "check.h"
#include "core.h"

#define RING 32
#define REQUESTS 512
#define MESSAGES 4
#define STEPS 400
/* n1 to n3 are born together, n4 and n5 may come; n1 is the node that is tested. */
#define NODES 5

struct input {
	const uint8_t *data;
	size_t size;
};

struct world {
	struct input in;
	struct core *core;
	struct core_out *out;
	struct instant now;
	struct config config;
	struct durable durable;
	/* What it said to its peers, without the bytes: an answer may name a round that is under
	 * way. */
	struct message said[RING];
	uint32_t said_to[RING];
	uint32_t said_count;
	uint64_t requests, persist_seq;
	/* 1: it was asked; 2: it was answered. */
	uint8_t state[REQUESTS];
	bool persisting, good_disk;
	uint64_t boots[NODES];
	/* What it pledged at its birth. */
	uint8_t pledge[CONFIG_BYTES_MAX];
	size_t pledge_size;
};

static inline uint8_t next(struct world *w) {
	if (w->in.size == 0) {
		return 0;
	}
	w->in.size--;
	return *w->in.data++;
}

static inline uint64_t next_of(struct world *w, uint64_t bound) {
	return next(w) % bound;
}

static inline struct slice pick_text(struct world *w) {
	static const char *const texts[] = { "", "a", "bb", "value", "another value, a longer one",
		"x" };
	return slice_str(texts[next_of(w, 6)]);
}

static inline struct slice pick_key(struct world *w) {
	static const char *const keys[] = { "k", "l", "other" };
	return slice_str(keys[next_of(w, 3)]);
}

static inline struct id128 pick_id(struct world *w) {
	struct id128 id;
	/* 1 to 3 are also the identities of the nodes. */
	memset(id.b, (int)next_of(w, 5), sizeof id.b);
	return id;
}

/* Draws a number that is mostly near the node's clock, and sometimes absurd. */
static inline uint64_t pick_number(struct world *w) {
	struct core_status status;
	uint8_t b = next(w);
	core_status(w->core, w->now, &status);
	switch (b & 7) {
	case 0: return 0;
	case 1: return TOKEN_MAX;
	case 2: return status.clock > TOKEN_MAX - CLOCK_JUMP_MAX - 1 ? TOKEN_MAX
		: status.clock + CLOCK_JUMP_MAX + 1;
	case 3: return status.clock < TOKEN_MAX - CEILING_BLOCK ? status.clock + CEILING_BLOCK
		: TOKEN_MAX;
	case 4: return status.clock < 8 ? 0 : status.clock - (b >> 5);
	default: return status.clock < TOKEN_MAX - 8 ? status.clock + (b >> 5) : TOKEN_MAX;
	}
}

/* Draws a time in microseconds. */
static uint64_t pick_time(struct world *w) {
	static const uint64_t times[] = { 0, 1, 100000, 250000, 1000000, 1000001, UINT64_MAX / 2,
		UINT64_MAX };
	return times[next_of(w, 8)];
}

static inline struct ballot pick_ballot(struct world *w) {
	return (struct ballot){ pick_number(w), next_of(w, 4), (uint32_t)next_of(w, 3) };
}

/* ---- nodes ---- */

static inline struct id128 node_id(uint32_t node) {
	struct id128 id;
	memset(id.b, (int)node + 1, sizeof id.b);
	return id;
}

/* The node at an index of the core's table of peers. */
static inline uint32_t node_at(const struct world *w, uint32_t peer) {
	return (uint32_t)(core_peer(w->core, peer)->name[1] - '1') % NODES;
}

static inline const struct config *config_now(const struct world *w) {
	const struct config *c = core_config(w->core);
	return c->epoch ? c : &w->config;
}

/* ---- configurations that somebody may have chosen ---- */

static inline void config_node_set(struct config *c, uint32_t node, bool master) {
	struct config_node *n = &c->nodes[c->node_count++];
	*n = (struct config_node){ .name = { 'n', (char)('1' + node) },
		.address = { 'n', (char)('1' + node), ':', '1' }, .id = node_id(node),
		.master = master };
}

/* The configuration after `before`: a master takes another's place, one leaves, one comes, or the
 * timing differs. */
static inline struct config config_after(const struct config *before, uint64_t how) {
	static const uint8_t masters[] = { 0x07, 0x0b, 0x0e, 0x06, 0x1f, 0x03, 0x07, 0x01 };
	struct config c = *before;
	c.epoch++;
	c.node_count = 0;
	for (uint32_t i = 0; i < 2 * NODES; i++) {
		bool master = masters[how & 7] >> i % NODES & 1;
		if (master == (i < NODES) && (master || how & 8)) {
			config_node_set(&c, i % NODES, master);
		}
	}
	c.previous_master_count = config_masters(before);
	memcpy(c.previous_masters, before->nodes,
		c.previous_master_count * sizeof *c.previous_masters);
	c.max_lease += how & 16 ? SPAN_S : 0;
	return c;
}

static inline void fill_config(struct world *w, struct message *m, uint8_t *bytes) {
	uint64_t how = next(w);
	struct config c = config_after(config_now(w), how);
	if ((how & 0xe0) == 0xe0) {
		/* An epoch is skipped. */
		c = config_after(&c, how);
	}
	m->blob = (how & 0xe0) == 0xc0 ? slice_of(NULL, 0)
		: slice_of(bytes, config_encode(&c, bytes));
}

/* ---- what peers say ---- */

static inline void fill_pledge(struct world *w, struct message *m, uint8_t *bytes) {
	struct config c = w->config;
	c.epoch = 1;
	c.max_lease += next_of(w, 4) == 0 ? SPAN_S : 0;
	m->blob = slice_of(bytes, config_encode(&c, bytes));
	uint64_t how = next_of(w, 4);
	if (how == 0) {
		m->blob = pick_text(w);
	} else if (how > 1 && w->pledge_size) {
		m->blob = slice_of(w->pledge, w->pledge_size);
	}
}

static inline struct message pick_message(struct world *w, uint8_t *bytes) {
	const struct message *echo = &w->said[next_of(w, RING)];
	struct message m = { .kind = (enum message_kind)(1 + next_of(w, MESSAGE_KIND_MAX)) };
	bool echoes = next_of(w, 4) != 0;
	uint32_t fields = message_fields(m.kind);
	m.round = echoes ? echo->round : next_of(w, 3) << 16;
	m.key = pick_key(w);
	m.lock_id = echoes && !id128_zero(echo->lock_id) ? echo->lock_id : pick_id(w);
	m.attempt = echoes ? echo->attempt : next_of(w, 3);
	m.ticket = (struct ticket){ pick_number(w), next_of(w, 4) };
	m.token = pick_number(w);
	m.noted = pick_number(w);
	m.clock = pick_number(w);
	m.epoch = next_of(w, 4);
	m.number = pick_number(w);
	m.log = echoes ? echo->log : pick_number(w);
	m.echo = pick_number(w);
	m.lease_us = pick_time(w);
	m.left_us = pick_time(w);
	m.owner = pick_text(w);
	m.identity = pick_text(w);
	m.value = pick_text(w);
	m.ballot = pick_ballot(w);
	m.prepared = pick_ballot(w);
	m.flags = ((m.kind >= MESSAGE_FOLLOW ? (uint32_t)next(w) << 12 : 0) | (uint32_t)next_of(w,
		64) << 8 | (uint32_t)next_of(w, 64) << 2 | (uint32_t)next_of(w, 4)) & MESSAGE_FLAGS;
	m.status = next_of(w, 2) ? (enum status)next_of(w, STATUS_MAX + 1) : STATUS_OK;
	m.by = pick_id(w);
	m.parts = (uint32_t)next_of(w, 4);
	m.part = m.parts ? (uint32_t)next_of(w, m.parts) : 0;
	if (m.kind == MESSAGE_PLEDGE) {
		fill_pledge(w, &m, bytes);
	} else if (fields & F_BLOB) {
		fill_config(w, &m, bytes);
	}
	return m;
}

#endif
