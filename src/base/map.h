/* map.h: intrusive hash map by linear hashing (Litwin, 1980): it grows and shrinks by one bucket at a time, so no insertion
 * ever pays for the whole table. Hashes are computed by the caller with a keyed hash. Equal hashes are told apart by the
 * caller: iterate map_first/map_next over the nodes of one hash.
 *
 * Bucket numbers are stable enough for a walk: an element only ever moves to a bucket with a higher number while the
 * table grows. (While it shrinks it moves to a lower one: map_walk_begin/end hold back shrinking.)
 */
#ifndef PAWL_BASE_MAP_H
#define PAWL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc.h"
#include "check.h"

struct map_node {
	struct map_node *next;
	uint64_t hash;
};

struct map {
	const struct allocator *alloc;
	struct map_node ***segments; /* directory of fixed-size segments of buckets */
	size_t directory_size;
	size_t bucket_count; /* in use, >= the initial count */
	size_t count;        /* elements */
	unsigned walks;      /* walks under way: no shrinking */
	uint64_t shrinks;    /* buckets given back so far: unchanged, a walk that was broken off may go on */
};

#define MAP_SEGMENT_BITS 8
#define MAP_SEGMENT_BUCKETS ((size_t)1 << MAP_SEGMENT_BITS)

static inline struct map_node **map_slot(const struct map *m, size_t bucket) {
	return &m->segments[bucket >> MAP_SEGMENT_BITS][bucket & (MAP_SEGMENT_BUCKETS - 1)];
}

int map_init(struct map *m, const struct allocator *alloc); /* 0 or PAWL_ENOMEM; the allocator is borrowed */
void map_done(struct map *m);                               /* elements are the caller's; accepts zeroed memory */

/* Cannot fail: when memory for another bucket is refused the chains just get longer. */
void map_insert(struct map *m, struct map_node *node, uint64_t hash);
void map_remove(struct map *m, struct map_node *node); /* must be in the map */

struct map_node *map_first(const struct map *m, uint64_t hash);       /* first node with this hash, or NULL */
struct map_node *map_next(const struct map_node *node);               /* next node with the same hash, or NULL */

/* All elements of one bucket, by next_in_bucket; bucket < bucket_count. Inline, since a walk meets many empty ones. */
static inline struct map_node *map_bucket(const struct map *m, size_t bucket) {
	CHECK(bucket < m->bucket_count);
	return *map_slot(m, bucket);
}
static inline struct map_node *map_next_in_bucket(const struct map_node *node) {
	return node->next;
}
void map_walk_begin(struct map *m);
void map_walk_end(struct map *m);
/* Empties the map: `remove` is called for each element, and takes it out with map_remove. Accepts zeroed memory. */
void map_drain(struct map *m, void (*remove)(void *ctx, struct map_node *node), void *ctx);

#endif
