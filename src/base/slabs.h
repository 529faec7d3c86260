/* slabs.h: small blocks without heads. A page holds blocks of one size, and its head, which stands
 * at its beginning, is found by the address of any of them. So a block takes no more than its size,
 * rounded up to 8 bytes; malloc takes 8 bytes more, and rounds up to 16.
 *
 * A page all of whose blocks have been given back serves any size. No page goes back to the
 * allocator behind before the end. When the pages have far more than the blocks in use, because a
 * few of these are in many pages, blocks of any size come from pages of greater ones. */
#ifndef PAWL_BASE_SLABS_H
#define PAWL_BASE_SLABS_H

#include "alloc.h"
#include "list.h"

/* Blocks have 8, 16, 24 bytes and so on, up to the segments of buckets of a map. */
#define SLAB_SIZES 256
#define SLAB_BYTES_MAX ((size_t)8 * SLAB_SIZES)
#define SLAB_PAGE ((size_t)64 << 10)

struct slab_chunk;

struct slabs {
	/* The allocator behind it, from which pages come in chunks. */
	struct allocator behind;
	/* All chunks; the newest one, which may have pages that were never used, is the first. */
	struct slab_chunk *chunks;
	/* The bytes of the pages that have been cut, and of the blocks in use. */
	size_t cut, used;
	/* Pages without a block in use. */
	struct list empty;
	/* Pages that have both blocks in use and blocks to give, by their size. */
	struct list partial[SLAB_SIZES];
};

/* Takes no memory yet. */
void slabs_init(struct slabs *s, struct allocator behind);

/* Gives all pages back, and with them the blocks that are still in use. */
void slabs_done(struct slabs *s);

/* Returns the place of the smallest size that has room for so many bytes, and the size at a place;
 * 0 < bytes <= SLAB_BYTES_MAX. */
static inline size_t slab_place(size_t bytes) {
	return (bytes - 1) / 8;
}
static inline size_t slab_size(size_t place) {
	return 8 * (place + 1);
}

/* Returns a block of the size at this place, aligned to 8 bytes; NULL: there is no memory. */
void *slabs_take(struct slabs *s, size_t place);

/* Gives a block back. */
void slabs_give(struct slabs *s, void *block);

#endif
