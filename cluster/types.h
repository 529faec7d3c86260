/* types.h: the identities, orderings and limits that every part of the protocol shares. */
#ifndef PAWL_CLUSTER_TYPES_H
#define PAWL_CLUSTER_TYPES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "clock.h"
#include "load.h"
#include "slice.h"

/* 128 random bits: the identity of a node, which is made with its state file, or of one
 * acquisition, which is a lock_id. */
struct id128 {
	uint8_t b[16];
};

/* Compares as memcmp does. */
static inline int id128_compare(struct id128 a, struct id128 b) {
	const uint64_t x = load_be64(a.b), y = load_be64(b.b),
		x_low = load_be64(a.b + sizeof x), y_low = load_be64(b.b + sizeof y);
	return x != y ? (x > y) - (x < y) : (x_low > y_low) - (x_low < y_low);
}

static inline bool id128_equal(struct id128 a, struct id128 b) {
	return memcmp(a.b, b.b, sizeof a.b) == 0;
}

static inline bool id128_zero(struct id128 a) {
	static const struct id128 zero;
	return id128_equal(a, zero);
}

/* Returns the first 8 bytes as a number, which serves for hashing and for breaking ties. It is the
 * same on all machines, because ballots name nodes by it. */
static inline uint64_t id128_word(struct id128 a) {
	return load_le64(a.b);
}

/* Names one write of a value (docs/protocol.md, Update). Ballots are ordered by clock, then by
 * node, then by boot; {0, 0, 0} is below all others. Each record has two ballots, so the struct is
 * packed. */
struct ballot {
	/* The Lamport clock of the node that drew the ballot. */
	uint64_t clock;
	/* id128_word of the node that drew the ballot. */
	uint64_t node;
	/* The boot of that node. The bit BALLOT_FIRST is set in the ballot of a first value, which
	 * the commit of an acquire brings. */
	uint32_t boot;
} __attribute__((packed, aligned(4)));
#define BALLOT_FIRST (UINT32_C(1) << 31)
/* The bit of `boot` that marks a last value: the write ends the lock (section 2, Compare and
 * release). */
#define BALLOT_LAST (UINT32_C(1) << 30)

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

/* A place in a queue (section 5). Tickets are ordered by clock, then by node, then by seq. The node
 * is the one that drew the ticket; on the wire it is the sender. */
struct ticket {
	/* The stamp that the first home of the request gave it: that home's Lamport clock. 0 means
	 * that no home has stamped the ticket, or that the stamp is not known; such a ticket stands
	 * behind all stamped ones. */
	uint64_t clock;
	/* The sequence number at the node that drew the ticket; 0 means that there is no ticket. */
	uint64_t seq;
};

/* ---- what a lock excludes (section 10) ---- */
/* The most permits that one semaphore may have. */
#define PERMITS_MAX 128
/* The longest label in bytes. A label is what a holder says about itself; the protocol does not
 * read it. */
#define LABEL_MAX 256
/* Values of terms.of. A value between them is the number of permits of a semaphore. */
enum { MODE_EXCLUSIVE = 0, MODE_SHARED = UINT16_MAX };

/* The permit numbers that somebody has of a semaphore: a set of numbers 0 .. PERMITS_MAX - 1. */
struct permits {
	/* Bit i of w[n] stands for the number 64 * n + i. */
	uint64_t w[2];
};

/* The lock terms, which a holder chooses when it acquires. They stay as they are, except that an
 * exclusive lock may become a shared one (section 10, Downgrade). */
struct terms {
	/* The mode: MODE_EXCLUSIVE, MODE_SHARED, or the number of permits that the semaphore has
	 * in all (1 .. PERMITS_MAX). */
	uint16_t of;
	/* How many permits of a semaphore the request wanted; 0 in the other modes. */
	uint16_t count;
	/* The priority in queues: a request with a greater one is served earlier (section 10,
	 * Order). */
	int32_t priority;
	/* The lock delay in nanoseconds: the key stays closed for this time after a lease that
	 * ended without a release. */
	span_ns delay;
	/* The permit numbers that the holder of a semaphore has; the set is empty in a request. */
	struct permits set;
	/* The connection of the holder that ends the lock when it is closed. A holder's connections
	 * are counted from 1; 0 means that no connection ends the lock. Where two copies of a
	 * record meet, the greater number counts (section 2, Release on disconnect). */
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

/* Returns the lowest number of a set that has some. */
static inline uint32_t permits_first(struct permits p) {
	return (uint32_t)(p.w[0] ? __builtin_ctzll(p.w[0]) : 64 + __builtin_ctzll(p.w[1]));
}

static inline struct permits permits_one(uint32_t n) {
	return (struct permits){ { n < 64 ? (uint64_t)1 << n : 0,
		n < 64 ? 0 : (uint64_t)1 << (n - 64) } };
}

/* Takes the lowest number out of a set that has some, and returns it. */
static inline uint32_t permits_take_first(struct permits *p) {
	const uint32_t n = permits_first(*p);
	*p = permits_but(*p, permits_one(n));
	return n;
}

/* Returns all permit numbers of a semaphore of `of` permits: 0 .. of - 1. */
static inline struct permits permits_all(uint32_t of) {
	const uint64_t all = UINT64_MAX;
	return (struct permits){ { of >= 64 ? all : all >> 1 >> (63 - of),
		of >= 128 ? all : of > 64 ? all >> (128 - of) : 0 } };
}

static inline bool terms_of_numbers(uint16_t of) {
	return of != MODE_EXCLUSIVE && of != MODE_SHARED;
}

static inline bool terms_semaphore(const struct terms *t) {
	return terms_of_numbers(t->of);
}

/* Tells whether all fields are in the ranges that struct terms gives. */
static inline bool terms_valid(const struct terms *t) {
	if (t->delay < 0) {
		return false;
	}
	if (!terms_semaphore(t)) {
		return t->count == 0 && t->set.w[0] == 0 && t->set.w[1] == 0;
	}
	struct permits all = permits_all(t->of);
	return t->of <= PERMITS_MAX && t->count <= t->of && (t->set.w[0] & ~all.w[0]) == 0 &&
		(t->set.w[1] & ~all.w[1]) == 0;
}

/* R1 in full (section 10): tells whether two records of different lock_ids exclude each other.
 * Shared locks do not exclude each other, nor do different permits of the same semaphore. */
static inline bool terms_exclude(const struct terms *a, const struct terms *b) {
	if (a->of == MODE_SHARED && b->of == MODE_SHARED) {
		return false;
	}
	return !(terms_semaphore(a) && a->of == b->of && !permits_meet(a->set, b->set));
}

/* ---- bounds that are part of the protocol (section 9) ---- */
#define MASTERS_MAX 9
/* The most nodes with which a node may have links (see core_peer_count). tests/model, which copies
 * whole clusters by the million, sets a smaller number. */
#ifndef NODES_MAX
#define NODES_MAX 64
#endif
/* The most nodes that one configuration may have. The other links are for masters of the previous
 * epoch, and for nodes that are not members yet. */
#define CONFIG_NODES_MAX (NODES_MAX > 32 ? NODES_MAX - 16 : NODES_MAX)
/* The longest name of a node, and the longest address, in bytes without the 0 at the end. */
#define NODE_NAME_MAX 63
#define ADDRESS_MAX 255
/* The longest key, owner, identity and value, in bytes. VALUE_MAX_HARD is the most that [limits]
 * may allow for a value. */
#define KEY_MAX 512
#define OWNER_MAX 256
#define IDENTITY_MAX 255
#define VALUE_MAX_DEFAULT 65536
#define VALUE_MAX_HARD (1 << 20)
/* The greatest token, and the greatest clock. */
#define TOKEN_MAX ((uint64_t)1 << 62)
/* The most by which others may raise the clock of a node at once: as many tokens as there are
 * nanoseconds in about four seconds. */
#define CLOCK_JUMP_MAX ((uint64_t)1 << 32)
/* The time in nanoseconds between two rejoins of a node that found its clock behind. It is so long
 * that the margins which these rejoins add to the clock come to less than one token for each
 * nanosecond. */
#define BEHIND_AGAIN (8 * (span_ns)CLOCK_JUMP_MAX)
/* The number by which a forced start raises the clock. */
#define CLOCK_FORCE_JUMP ((uint64_t)1 << 40)
/* The upper half of an epoch counts the forced starts of the cluster, and may be at most this: the
 * clocks below TOKEN_MAX are enough for this number of starts (force.c). */
#define EPOCH_STARTS_MAX (1u << 20)
/* The number of tokens by which the clock reservation on the disk is raised at a time. */
#define CEILING_BLOCK ((uint64_t)1 << 20)
/* The longest frame between peers in bytes. What is longer is cut into several frames. */
#define FRAME_BYTES_MAX (4u << 20)
#define LEASE_MIN_DEFAULT (100 * SPAN_MS)
#define REPLICATION_INTERVAL_DEFAULT (5 * SPAN_MS)

#endif
