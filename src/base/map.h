/* map.h: an intrusive hash map by linear hashing (Litwin, 1980). It grows and shrinks by one bucket
 * at a time, so no insertion ever pays for the whole table. The caller computes hashes with a keyed
 * hash, of which the low 32 bits count, and tells equal hashes apart: map_first and map_next go
 * over the nodes of one hash. There are at most 2^32 buckets.
 *
 * Bucket numbers are stable enough for a walk: while the table grows, an element only ever moves to
 * a bucket with a higher number. While it shrinks, an element moves to a lower one, so
 * map_walk_begin and map_walk_end hold back shrinking. */
#ifndef PAWL_BASE_MAP_H
#define PAWL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc.h"
#include "check.h"
#include "directory.h"

struct map_node {
	struct map_node *next;
	/* The low 32 bits of the element's hash. */
	uint32_t hash;
	/* For the owner of the element, which may keep there whatever it likes. */
	uint32_t own;
};

struct map {
	const struct allocator *alloc;
	/* Segments of MAP_SEGMENT_BUCKETS buckets each. */
	struct directory segments;
	/* Buckets in use, which are never fewer than at the beginning. */
	size_t bucket_count;
	/* 2p - 1, where p is the power of two with p <= bucket_count < 2p. */
	size_t mask;
	/* Elements in the map. */
	size_t count;
	/* Walks under way, which hold back shrinking. */
	unsigned walks;
	/* Buckets given back so far. As long as this is unchanged, a walk that was broken off may
	 * go on. */
	uint64_t shrinks;
};

#define MAP_SEGMENT_BITS 8
#define MAP_SEGMENT_BUCKETS ((size_t)1 << MAP_SEGMENT_BITS)

static inline struct map_node **map_slot(const struct map *m, size_t bucket) {
	struct map_node **segment = m->segments.segments[bucket >> MAP_SEGMENT_BITS];
	return &segment[bucket & (MAP_SEGMENT_BUCKETS - 1)];
}

/* Makes an empty map. Returns 0 or PAWL_ENOMEM. The allocator is borrowed. */
int map_init(struct map *m, const struct allocator *alloc);

/* Frees the buckets. The elements are the caller's. Accepts zeroed memory. */
void map_done(struct map *m);

/* Inserts an element. This cannot fail: without memory for another bucket the chains just get
 * longer. */
void map_insert(struct map *m, struct map_node *node, uint64_t hash);

/* Takes out an element, which must be in the map. */
void map_remove(struct map *m, struct map_node *node);

/* Returns the first node with this hash; NULL: there is none. */
struct map_node *map_first(const struct map *m, uint64_t hash);

/* Returns the next node with the same hash; NULL: there is none. */
struct map_node *map_next(const struct map_node *node);

/* The same for elements with a number in the place of a hash. All its 64 bits count: `own` has the
 * upper ones. So whoever gives each element another number need not tell any apart. */
void map_insert_number(struct map *m, struct map_node *node, uint64_t number);
struct map_node *map_first_number(const struct map *m, uint64_t number);
struct map_node *map_next_number(const struct map_node *node);

/* Return the elements of one bucket, one after the other; bucket < bucket_count. They are inline,
 * because a walk meets many empty buckets. */
static inline struct map_node *map_bucket(const struct map *m, size_t bucket) {
	CHECK(bucket < m->bucket_count);
	return *map_slot(m, bucket);
}
static inline struct map_node *map_next_in_bucket(const struct map_node *node) {
	return node->next;
}

/* Begin and end a walk over the buckets, during which the map does not shrink. */
void map_walk_begin(struct map *m);
void map_walk_end(struct map *m);

/* Empties the map. `remove` is called for each element and takes it out with map_remove. Accepts
 * zeroed memory. */
void map_drain(struct map *m, void (*remove)(void *ctx, struct map_node *node), void *ctx);

#endif
