/* blocks.h: memory in large blocks, which goes back to the system when it is given back.
 *
 * The heap of the C library keeps large pieces of what was freed, or gives hundreds of megabytes
 * back within one call, which takes a tenth of a second. Here each large block is a mapping of its
 * own. A few of those that were given back are kept for whoever needs one of that size next,
 * because the system takes longer to make a page than this program takes to use it; a timer gives
 * these back, too. Small pieces come from the heap.
 */
#ifndef PAWL_NET_BLOCKS_H
#define PAWL_NET_BLOCKS_H

#include <event2/event.h>
#include <stddef.h>

#include "alloc.h"

/* Pieces of at least this many bytes are blocks. */
#define BLOCK_LEAST ((size_t)32 << 10)
/* Blocks whose size is BLOCK_LEAST times one of the first powers of two are kept. */
#define BLOCK_CLASSES 6
/* How many bytes are kept at most. */
#define BLOCKS_KEPT_MOST ((size_t)16 << 20)

struct block_kept;

struct blocks {
	/* For small pieces. It counts them. */
	struct allocator heap;
	/* Borrowed. It counts what is taken, not what is kept, and its `max` bounds that. */
	struct alloc_counter *counter;
	/* The blocks that are kept, by their size. */
	struct block_kept *free[BLOCK_CLASSES];
	/* How many bytes they have. */
	size_t kept;
	/* Is pending while blocks are kept. */
	struct event *tidy;
};

/* The counter is borrowed. Returns 0 or PAWL_ENOMEM. */
int blocks_init(struct blocks *b, struct event_base *base, struct alloc_counter *counter);
/* What was taken must have been given back. Accepts zeroed memory. */
void blocks_done(struct blocks *b);
/* Returns an allocator that takes from here. */
struct allocator blocks_alloc(struct blocks *b);

#endif
