/* types.h: the identities, orders and limits that every part of the protocol shares. */
#ifndef PAWL_CLUSTER_TYPES_H
#define PAWL_CLUSTER_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "slice.h"

/* 128 random bits: the identity of a node (made with its state file) or of one acquisition (a lock_id). */
struct id128 {
	uint8_t b[16];
};

static inline bool id128_equal(struct id128 a, struct id128 b) {
	return memcmp(a.b, b.b, sizeof a.b) == 0;
}

static inline bool id128_zero(struct id128 a) {
	static const struct id128 zero;
	return id128_equal(a, zero);
}

/* The first 8 bytes as a number: for hashing and for breaking ties. */
static inline uint64_t id128_word(struct id128 a) {
	uint64_t w;
	memcpy(&w, a.b, sizeof w);
	return w;
}

/* Names one write of a value (docs/protocol.md, Update): ordered by clock, then node, then boot. {0,0,0} is below all. */
struct ballot {
	uint64_t clock;
	uint64_t node; /* id128_word of the node that drew it */
	uint32_t boot;
};

static inline int ballot_compare(struct ballot a, struct ballot b) {
	if (a.clock != b.clock) {
		return a.clock < b.clock ? -1 : 1;
	}
	if (a.node != b.node) {
		return a.node < b.node ? -1 : 1;
	}
	return (a.boot > b.boot) - (a.boot < b.boot);
}

/* A place in a queue (section 5): ordered by clock, then node, then seq. On the wire the node is the sender. */
struct ticket {
	uint64_t clock;
	uint64_t seq; /* 0: no ticket */
};

/* Bounds that are part of the protocol (section 9). */
#define MASTERS_MAX 9
#ifndef NODES_MAX    /* smaller where whole clusters are copied by the million: tests/model */
#define NODES_MAX 64 /* whom a node may have links with: see core_peer_count */
#endif
/* Of one configuration; the other links are for masters of the epoch before and for nodes that are not in yet. */
#define CONFIG_NODES_MAX (NODES_MAX > 32 ? NODES_MAX - 16 : NODES_MAX)
#define NODE_NAME_MAX 63
#define ADDRESS_MAX 255
#define KEY_MAX 512
#define OWNER_MAX 256
#define IDENTITY_MAX 255
#define VALUE_MAX_DEFAULT 65536
#define VALUE_MAX_HARD (1 << 20)
#define TOKEN_MAX ((uint64_t)1 << 62)
#define CLOCK_JUMP_MAX ((uint64_t)1 << 40)
#define CEILING_BLOCK ((uint64_t)1 << 20)
#define FRAME_BYTES_MAX (4u << 20) /* one frame between peers, before which it is cut into several */
#define LEASE_MIN_DEFAULT (100 * SPAN_MS)
#define REPLICATION_INTERVAL_DEFAULT (5 * SPAN_MS)

#endif
