/* map.c: linear hashing. Buckets stand in segments, so that growing never moves the buckets
 * that exist. */
#include "map.h"

#include <string.h>

#include "pawl/error.h"

#define SEGMENT_BYTES (MAP_SEGMENT_BUCKETS * sizeof(struct map_node *))

/* An insertion needs one more bucket, and may catch up by another one if growing was refused
 * before. A table at a quarter of its load loses four buckets with each element. */
#define BUCKETS_AN_INSERTION 2
#define BUCKETS_A_REMOVAL 4

/* Returns the power of two p with p <= bucket_count < 2p. Buckets below bucket_count - p have been
 * split already. */
static inline size_t map_power(const struct map *m) {
	return (m->mask + 1) / 2;
}

/* Returns the bucket of the elements with this hash. */
static inline struct map_node **map_bucket_of(const struct map *m, uint32_t hash) {
	size_t i = (size_t)hash & m->mask;
	return map_slot(m, i < m->bucket_count ? i : i & (m->mask >> 1));
}

/* Adds a segment of empty buckets. */
static bool segment_add(struct map *m) {
	if (!directory_add(m->alloc, &m->segments, SEGMENT_BYTES)) {
		return false;
	}
	memset(m->segments.segments[m->segments.count - 1], 0, SEGMENT_BYTES);
	return true;
}

int map_init(struct map *m, const struct allocator *alloc) {
	*m = (struct map){ .alloc = alloc, .bucket_count = MAP_SEGMENT_BUCKETS,
		.mask = 2 * MAP_SEGMENT_BUCKETS - 1 };
	if (!segment_add(m)) {
		directory_done(alloc, &m->segments, SEGMENT_BYTES);
		*m = (struct map){ 0 };
		return PAWL_ENOMEM;
	}
	return 0;
}

void map_done(struct map *m) {
	if (m->alloc) {
		directory_done(m->alloc, &m->segments, SEGMENT_BYTES);
		*m = (struct map){ 0 };
	}
}

/* Splits the next bucket that is due: those of its elements that belong there move to the new last
 * bucket. False: there is no memory. */
static bool map_grow(struct map *m) {
	const bool room = m->bucket_count >> MAP_SEGMENT_BITS < m->segments.count;
	if (m->bucket_count > UINT32_MAX || !(room || segment_add(m))) {
		return false;
	}
	size_t power = map_power(m);
	struct map_node **from = map_slot(m, m->bucket_count - power);
	struct map_node **to = map_slot(m, m->bucket_count);
	while (*from) {
		struct map_node *node = *from;
		if (node->hash & power) {
			*from = node->next;
			node->next = NULL;
			*to = node;
			to = &node->next;
		} else {
			from = &node->next;
		}
	}
	m->bucket_count++;
	m->mask = m->bucket_count > m->mask ? 2 * m->mask + 1 : m->mask;
	return true;
}

/* Appends the last bucket's elements to those of the bucket from which it was split. */
static void map_shrink(struct map *m) {
	size_t last = m->bucket_count - 1;
	m->mask = last <= m->mask / 2 ? m->mask / 2 : m->mask;
	struct map_node **from = map_slot(m, last);
	struct map_node **to = map_slot(m, last - map_power(m));
	/* While a table is emptied, the last bucket is mostly empty, and the elements of the other
	 * one need not be fetched into the cache. */
	while (*from && *to) {
		to = &(*to)->next;
	}
	if (*from) {
		*to = *from;
		*from = NULL;
	}
	m->bucket_count = last;
	m->shrinks++;
	if ((last & (MAP_SEGMENT_BUCKETS - 1)) == 0) {
		directory_drop(m->alloc, &m->segments, SEGMENT_BYTES);
	}
}

void map_insert(struct map *m, struct map_node *node, uint64_t hash) {
	for (int i = 0; i < BUCKETS_AN_INSERTION && m->count >= m->bucket_count; i++) {
		if (!map_grow(m)) {
			break;
		}
	}
	struct map_node **slot = map_bucket_of(m, (uint32_t)hash);
	node->hash = (uint32_t)hash;
	node->next = *slot;
	*slot = node;
	m->count++;
}

void map_remove(struct map *m, struct map_node *node) {
	struct map_node **slot = map_bucket_of(m, node->hash);
	while (*slot != node) {
		CHECK(*slot);
		slot = &(*slot)->next;
	}
	*slot = node->next;
	node->next = NULL;
	m->count--;
	/* The limit is a quarter and not a half, so that insertions and removals in turn do not
	 * move the same bucket for ever. */
	for (int i = 0; i < BUCKETS_A_REMOVAL && !m->walks; i++) {
		if (m->bucket_count <= MAP_SEGMENT_BUCKETS || m->count > m->bucket_count / 4) {
			break;
		}
		map_shrink(m);
	}
}

struct map_node *map_first(const struct map *m, uint64_t hash) {
	struct map_node *node = *map_bucket_of(m, (uint32_t)hash);
	while (node && node->hash != (uint32_t)hash) {
		node = node->next;
	}
	return node;
}

struct map_node *map_next(const struct map_node *node) {
	struct map_node *next = node->next;
	while (next && next->hash != node->hash) {
		next = next->next;
	}
	return next;
}

void map_insert_number(struct map *m, struct map_node *node, uint64_t number) {
	node->own = (uint32_t)(number >> 32);
	map_insert(m, node, number);
}

struct map_node *map_first_number(const struct map *m, uint64_t number) {
	struct map_node *node = map_first(m, number);
	while (node && node->own != (uint32_t)(number >> 32)) {
		node = map_next(node);
	}
	return node;
}

struct map_node *map_next_number(const struct map_node *node) {
	struct map_node *next = map_next(node);
	while (next && next->own != node->own) {
		next = map_next(next);
	}
	return next;
}

void map_walk_begin(struct map *m) {
	m->walks++;
}

void map_walk_end(struct map *m) {
	CHECK(m->walks > 0);
	m->walks--;
}

void map_drain(struct map *m, void (*remove)(void *ctx, struct map_node *node), void *ctx) {
	/* Removing must not move elements that are still to come. */
	map_walk_begin(m);
	for (size_t bucket = 0; bucket < m->bucket_count; bucket++) {
		struct map_node *node;
		while ((node = map_bucket(m, bucket)) != NULL) {
			remove(ctx, node);
		}
	}
	map_walk_end(m);
}
