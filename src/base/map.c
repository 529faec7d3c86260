/* map.c: linear hashing. Buckets stand in segments, so that growing never moves the buckets
 * that exist. */
#include "map.h"

#include "pawl/error.h"

#define SEGMENT_BYTES (MAP_SEGMENT_BUCKETS * sizeof(struct map_node *))
#define DIRECTORY_SIZE_MIN 4

/* An insertion needs one more bucket, and may catch up by another one if growing was refused
 * before. A table at a quarter of its load loses four buckets with each element. */
#define BUCKETS_AN_INSERTION 2
#define BUCKETS_A_REMOVAL 4

/* Returns p for a table of n buckets, with p <= n < 2p and p a power of two. Buckets below n - p
 * have been split already. */
static inline size_t map_power(size_t n) {
	return (size_t)1 << (63 - __builtin_clzll(n));
}

static inline size_t map_index(const struct map *m, uint32_t hash) {
	size_t power = map_power(m->bucket_count);
	size_t i = (size_t)hash & (2 * power - 1);
	return i < m->bucket_count ? i : i - power;
}

int map_init(struct map *m, const struct allocator *alloc) {
	*m = (struct map){ .alloc = alloc };
	struct map_node ***directory = alloc_new(alloc, DIRECTORY_SIZE_MIN * sizeof(*directory));
	if (!directory) {
		return PAWL_ENOMEM;
	}
	directory[0] = alloc_new(alloc, SEGMENT_BYTES);
	if (!directory[0]) {
		alloc_free(alloc, directory, DIRECTORY_SIZE_MIN * sizeof(*directory));
		return PAWL_ENOMEM;
	}
	m->segments = directory;
	m->directory_size = DIRECTORY_SIZE_MIN;
	m->bucket_count = MAP_SEGMENT_BUCKETS;
	return 0;
}

void map_done(struct map *m) {
	if (!m->segments) {
		return;
	}
	for (size_t i = 0; i < m->directory_size; i++) {
		alloc_free(m->alloc, m->segments[i], SEGMENT_BYTES);
	}
	alloc_free(m->alloc, m->segments, m->directory_size * sizeof(*m->segments));
	*m = (struct map){ 0 };
}

/* Makes sure that the bucket after the last one has its segment. */
static bool map_room(struct map *m) {
	size_t segment = m->bucket_count >> MAP_SEGMENT_BITS;
	if (segment == m->directory_size) {
		size_t size = m->directory_size * sizeof(*m->segments);
		struct map_node ***bigger = alloc_resize(m->alloc, m->segments, size, 2 * size);
		if (!bigger) {
			return false;
		}
		for (size_t i = m->directory_size; i < 2 * m->directory_size; i++) {
			bigger[i] = NULL;
		}
		m->segments = bigger;
		m->directory_size *= 2;
	}
	if (!m->segments[segment]) {
		m->segments[segment] = alloc_new(m->alloc, SEGMENT_BYTES);
	}
	return m->segments[segment] != NULL;
}

/* Splits the next bucket that is due: those of its elements that belong there move to the new last
 * bucket. False: there is no memory. */
static bool map_grow(struct map *m) {
	if (m->bucket_count > UINT32_MAX || !map_room(m)) {
		return false;
	}
	size_t power = map_power(m->bucket_count);
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
	return true;
}

/* Appends the last bucket's elements to those of the bucket from which it was split. */
static void map_shrink(struct map *m) {
	size_t last = m->bucket_count - 1;
	struct map_node **from = map_slot(m, last);
	struct map_node **to = map_slot(m, last - map_power(last));
	while (*to) {
		to = &(*to)->next;
	}
	*to = *from;
	*from = NULL;
	m->bucket_count = last;
	m->shrinks++;
	if ((last & (MAP_SEGMENT_BUCKETS - 1)) == 0) {
		alloc_free(m->alloc, m->segments[last >> MAP_SEGMENT_BITS], SEGMENT_BYTES);
		m->segments[last >> MAP_SEGMENT_BITS] = NULL;
	}
}

void map_insert(struct map *m, struct map_node *node, uint64_t hash) {
	for (int i = 0; i < BUCKETS_AN_INSERTION && m->count >= m->bucket_count; i++) {
		if (!map_grow(m)) {
			break;
		}
	}
	struct map_node **slot = map_slot(m, map_index(m, (uint32_t)hash));
	node->hash = (uint32_t)hash;
	node->next = *slot;
	*slot = node;
	m->count++;
}

void map_remove(struct map *m, struct map_node *node) {
	struct map_node **slot = map_slot(m, map_index(m, node->hash));
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
	struct map_node *node = *map_slot(m, map_index(m, (uint32_t)hash));
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

/* Returns the first node from this one on, all of whose hashes are equal, with these upper bits. */
static struct map_node *map_with_upper(struct map_node *node, uint32_t upper) {
	while (node && node->own != upper) {
		node = map_next(node);
	}
	return node;
}

struct map_node *map_first_number(const struct map *m, uint64_t number) {
	return map_with_upper(map_first(m, number), (uint32_t)(number >> 32));
}

struct map_node *map_next_number(const struct map_node *node) {
	return map_with_upper(map_next(node), node->own);
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
