/* free_lists.h: an allocator in front of another one. It keeps small blocks that were freed, by
 * their size, for the next allocations of that size. A node allocates and frees a dozen of them for
 * each request; through malloc, without its fast bins, each pair costs ten times as much. What is
 * kept is bounded; the rest is in the pages of slabs.h. */
#ifndef PAWL_BASE_FREE_LISTS_H
#define PAWL_BASE_FREE_LISTS_H

#include <stdint.h>

#include "alloc.h"
#include "slabs.h"

/* Greater blocks pass through. */
#define FREE_LISTS_BYTES_MAX SLAB_BYTES_MAX

/* How many blocks of each size are kept at most, and a sixteenth of that of those that have more
 * than 640 bytes; all together they have less than 13 MiB. With 0 all blocks pass through, because
 * the sanitizer of addresses sees the use of a freed block only if that is really freed. */
#if defined(__SANITIZE_ADDRESS__)
#define FREE_LISTS_KEPT 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FREE_LISTS_KEPT 0
#endif
#endif
#ifndef FREE_LISTS_KEPT
#define FREE_LISTS_KEPT 300
#endif

struct free_block {
	struct free_block *next;
};

struct free_lists {
	/* Where blocks come from; and the allocator behind that. */
	struct slabs slabs;
	/* How many blocks of a small size are kept at most. */
	uint32_t kept;
	/* The blocks of each size that are kept: how many there are, and how many there may be. */
	struct {
		struct free_block *first;
		uint32_t count, most;
	} sizes[SLAB_SIZES];
};

/* Takes no memory yet. `kept` is FREE_LISTS_KEPT, but for tests. */
void free_lists_init(struct free_lists *f, struct allocator behind, uint32_t kept);

/* Gives back what is kept. Blocks that are still in use must be freed before. A zeroed struct is
 * allowed. */
void free_lists_done(struct free_lists *f);

/* Returns an allocator that borrows the lists, or the one behind them if they keep nothing. Only
 * one thread may use it. */
struct allocator free_lists_alloc(struct free_lists *f);

#endif
