/* flat.h: a hash table of small entries of one size, for tables with an entry for each lease. The
 * entries stand one behind the other, in the order of their indexes, and are chained by them: an
 * entry takes its own bytes and four for its bucket, and nothing for an allocation.
 *
 * It grows and shrinks by one bucket, and by FLAT_SEGMENT entries, at a time, as map.h does. When
 * an entry is removed, the last one moves into its place. So a pointer to an entry is good until
 * the next removal, and a walk is one over the indexes. */
#ifndef PAWL_BASE_FLAT_H
#define PAWL_BASE_FLAT_H

#include <stddef.h>
#include <stdint.h>

#include "alloc.h"
#include "directory.h"

#define FLAT_SEGMENT_BITS 8
#define FLAT_SEGMENT ((uint32_t)1 << FLAT_SEGMENT_BITS)
#define FLAT_MAX (UINT32_MAX / 2)

/* A number of 64 bits that is aligned to 32. */
typedef uint64_t flat_u64 __attribute__((aligned(4)));

/* Each entry begins with this. */
struct flat_entry {
	flat_u64 hash;
	/* The next entry of the same bucket: its index, and one more; 0: there is none. */
	uint32_t next;
};

/* An array that grows by segments, which do not move. */
struct flat_array {
	struct directory segments;
	/* Bytes of an element. */
	uint32_t size;
};

struct flat {
	const struct allocator *alloc;
	struct flat_array entries, buckets;
	/* How many entries there are; and how many buckets are in use. */
	uint32_t count, bucket_count;
	/* 2p - 1, where p is the power of two with p <= bucket_count < 2p; 0 without buckets. */
	uint32_t mask;
};

/* Takes no memory yet. `size` is that of an entry in bytes, and a multiple of 4. The allocator is
 * borrowed. */
void flat_init(struct flat *f, const struct allocator *alloc, uint32_t size);

/* Frees all entries. Accepts zeroed memory. */
void flat_done(struct flat *f);

/* Returns the first entry with this hash, and the next one with the same; NULL: there is none. */
struct flat_entry *flat_first(const struct flat *f, uint64_t hash);
struct flat_entry *flat_next(const struct flat *f, const struct flat_entry *e);

/* Returns a new entry, which is zero but for its head; NULL: there is no memory, or no index. */
struct flat_entry *flat_add(struct flat *f, uint64_t hash);

/* Removes an entry. The last one moves into its place. */
void flat_remove(struct flat *f, struct flat_entry *e);

/* Returns an element of an array. */
static inline void *flat_element(const struct flat_array *a, uint32_t index) {
	return (uint8_t *)a->segments.segments[index >> FLAT_SEGMENT_BITS] +
		(size_t)(index & (FLAT_SEGMENT - 1)) * a->size;
}

/* Returns the entry with this index, which is below `count`. */
static inline struct flat_entry *flat_at(const struct flat *f, uint32_t index) {
	return flat_element(&f->entries, index);
}

#endif
