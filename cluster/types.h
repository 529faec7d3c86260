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
	uint32_t boot; /* BALLOT_FIRST with it: of an acquire's first value, which its commit brings */
} __attribute__((packed, aligned(4))); /* no padding: each record has two */
#define BALLOT_FIRST (UINT32_C(1) << 31)

static inline int ballot_compare(struct ballot a, struct ballot b) {
	if (a.clock != b.clock) {
		return a.clock < b.clock ? -1 : 1;
	}
	if (a.node != b.node) {
		return a.node < b.node ? -1 : 1;
	}
	return (a.boot > b.boot) - (a.boot < b.boot);
}

static inline struct ballot ballot_later(struct ballot a, struct ballot b) {
	return ballot_compare(a, b) > 0 ? a : b;
}

/* A place in a queue (section 5): ordered by clock, then node, then seq. On the wire the node is the sender. */
struct ticket {
	uint64_t clock; /* the stamp of the home where it arrived first; 0: not stamped yet, or not known: behind all that are */
	uint64_t seq; /* 0: no ticket */
};

/* ---- what a lock excludes (section 10) ---- */
#define PERMITS_MAX 128 /* of one semaphore */
#define LABEL_MAX 256   /* bytes of what a holder says about itself; opaque to the protocol */
enum { SHARE_EXCLUSIVE = 0, SHARE_SHARED = UINT16_MAX }; /* terms.of; between them a semaphore of so many permits */

struct permits { /* which permits of a semaphore: a set of numbers 0 .. PERMITS_MAX-1 */
	uint64_t w[2];
};

/* What a holder chose when it acquired, and keeps: only an exclusive lock may become a shared one (Downgrade). */
struct terms {
	uint16_t of;      /* SHARE_EXCLUSIVE, SHARE_SHARED, or the permits that the semaphore has in all: 1 .. PERMITS_MAX */
	uint16_t count;   /* of a semaphore: how many permits are wanted, or were; 0 for the others */
	int32_t priority; /* in queues, greater is earlier (section 5) */
	span_ns delay;    /* lock_delay: the key stays closed for so long after a lease that ended without a release */
	struct permits set; /* of a semaphore: the permits that are held; empty in a request */
	/* Which of its holder's connections ends the lock when it is closed: they are counted, from 1; 0: none does. Where two copies
	 * of a record meet the greater one counts (section 2, Release on disconnect). */
	uint32_t binding;
};

static inline struct permits permits_or(struct permits a, struct permits b) {
	return (struct permits){ { a.w[0] | b.w[0], a.w[1] | b.w[1] } };
}

static inline struct permits permits_and(struct permits a, struct permits b) {
	return (struct permits){ { a.w[0] & b.w[0], a.w[1] & b.w[1] } };
}

static inline struct permits permits_but(struct permits a, struct permits b) {
	return (struct permits){ { a.w[0] & ~b.w[0], a.w[1] & ~b.w[1] } };
}

static inline bool permits_meet(struct permits a, struct permits b) {
	return (a.w[0] & b.w[0]) || (a.w[1] & b.w[1]);
}

static inline bool permits_within(struct permits a, struct permits all) {
	return (a.w[0] & ~all.w[0]) == 0 && (a.w[1] & ~all.w[1]) == 0;
}

static inline uint32_t permits_count(struct permits p) {
	return (uint32_t)(__builtin_popcountll(p.w[0]) + __builtin_popcountll(p.w[1]));
}

static inline bool permits_none(struct permits p) {
	return (p.w[0] | p.w[1]) == 0;
}

static inline bool permits_has(struct permits p, uint32_t n) {
	return p.w[n / 64] >> (n % 64) & 1;
}

/* All of a semaphore's: 0 .. of-1. */
static inline struct permits permits_all(uint32_t of) {
	const uint64_t all = UINT64_MAX;
	return (struct permits){ { of >= 64 ? all : all >> 1 >> (63 - of), of >= 128 ? all : of > 64 ? all >> (128 - of) : 0 } };
}

static inline bool terms_of_numbers(uint16_t of) {
	return of != SHARE_EXCLUSIVE && of != SHARE_SHARED;
}

static inline bool terms_semaphore(const struct terms *t) {
	return terms_of_numbers(t->of);
}

/* In the ranges given above. */
static inline bool terms_valid(const struct terms *t) {
	if (t->delay < 0) {
		return false;
	}
	if (!terms_semaphore(t)) {
		return t->count == 0 && t->set.w[0] == 0 && t->set.w[1] == 0;
	}
	struct permits all = permits_all(t->of);
	return t->of <= PERMITS_MAX && t->count <= t->of && (t->set.w[0] & ~all.w[0]) == 0 && (t->set.w[1] & ~all.w[1]) == 0;
}

/* R1, extended (section 10): whether two records of different lock_ids exclude each other. Shared locks do not, and permits of
 * the same semaphore do not when they are different permits. */
static inline bool terms_exclude(const struct terms *a, const struct terms *b) {
	if (a->of == SHARE_SHARED && b->of == SHARE_SHARED) {
		return false;
	}
	return !(terms_semaphore(a) && a->of == b->of && !permits_meet(a->set, b->set));
}

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
#define CLOCK_JUMP_MAX ((uint64_t)1 << 32) /* by which others may raise a clock at once: as far as nanoseconds do in four seconds */
#define BEHIND_AGAIN (8 * (span_ns)CLOCK_JUMP_MAX) /* between two rejoins of a node because of its clock: so the margins of these come to less than time does */
#define CLOCK_FORCE_JUMP ((uint64_t)1 << 40)
#define EPOCH_STARTS_MAX (1u << 20) /* forced starts, the upper half of an epoch: of clocks there are enough for so many (force.c) */
#define CEILING_BLOCK ((uint64_t)1 << 20)
#define FRAME_BYTES_MAX (4u << 20) /* one frame between peers, before which it is cut into several */
#define LEASE_MIN_DEFAULT (100 * SPAN_MS)
#define REPLICATION_INTERVAL_DEFAULT (5 * SPAN_MS)

#endif
