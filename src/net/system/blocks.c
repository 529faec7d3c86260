/* blocks.c: maps large blocks, keeps some of them, and unmaps the others. */
#include "blocks.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "pawl/error.h"

#define PAGE_BYTES ((size_t)4096)
/* What the timer gives back at a time, and how often. To unmap a megabyte takes up to half a
 * millisecond. */
#define TIDY_BYTES ((size_t)256 << 10)
#define TIDY_MS 12

/* A block that is kept. This is written into its first bytes. */
struct block_kept {
	struct block_kept *next;
};

static size_t block_bytes(size_t size) {
	return (size + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
}

/* Returns the class of a size in bytes, or BLOCK_CLASSES if blocks of that size are not kept. */
static unsigned block_class(size_t bytes) {
	unsigned class = 0;
	while (class < BLOCK_CLASSES && bytes != BLOCK_LEAST << class) {
		class++;
	}
	return class;
}

/* ---- taking and giving back ---- */

static void *block_take(struct blocks *b, size_t size) {
	size_t bytes = block_bytes(size);
	unsigned class = block_class(bytes);
	struct block_kept *kept = class < BLOCK_CLASSES ? b->free[class] : NULL;
	if (kept) {
		b->free[class] = kept->next;
		b->kept -= bytes;
		return kept;
	}
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

static void block_unmap(void *p, size_t bytes) {
	CHECK(munmap(p, bytes) == 0);
}

static void block_keep(struct blocks *b, void *p, unsigned class) {
	struct block_kept *kept = p;
	kept->next = b->free[class];
	b->free[class] = kept;
}

static void block_give(struct blocks *b, void *p, size_t size) {
	static const struct timeval when = { 0, TIDY_MS * 1000 };
	size_t bytes = block_bytes(size);
	unsigned class = block_class(bytes);
	if (class == BLOCK_CLASSES || b->kept + bytes > BLOCKS_KEPT_MOST) {
		block_unmap(p, bytes);
		return;
	}
	block_keep(b, p, class);
	if (b->kept == 0) {
		event_add(b->tidy, &when);
	}
	b->kept += bytes;
}

/* Returns the class of the largest block that is kept, or BLOCK_CLASSES if none is. */
static unsigned blocks_largest(const struct blocks *b) {
	unsigned class = BLOCK_CLASSES;
	while (class > 0 && !b->free[class - 1]) {
		class--;
	}
	return class > 0 ? class - 1 : BLOCK_CLASSES;
}

/* Gives kept blocks back, until that many bytes have gone or none is left. Of a block that is
 * larger, the rest is kept. */
static void blocks_give_back(struct blocks *b, size_t most) {
	size_t gone = 0;
	unsigned class;
	while (gone < most && (class = blocks_largest(b)) < BLOCK_CLASSES) {
		struct block_kept *kept = b->free[class];
		b->free[class] = kept->next;
		while (class > 0 && BLOCK_LEAST << class > most - gone) {
			class--;
			block_keep(b, (uint8_t *)kept + (BLOCK_LEAST << class), class);
		}
		gone += BLOCK_LEAST << class;
		block_unmap(kept, BLOCK_LEAST << class);
	}
	b->kept -= gone;
}

static void blocks_on_tidy(evutil_socket_t fd, short what, void *ctx) {
	static const struct timeval when = { 0, TIDY_MS * 1000 };
	struct blocks *b = ctx;
	(void)fd;
	(void)what;
	blocks_give_back(b, TIDY_BYTES);
	if (b->kept > 0) {
		event_add(b->tidy, &when);
	}
}

/* ---- the allocator ---- */

/* Returns whether `bytes` more may be taken. */
static bool blocks_allow(const struct blocks *b, size_t bytes) {
	const struct alloc_counter *counter = b->counter;
	return counter->max == 0
		|| (counter->used <= counter->max && bytes <= counter->max - counter->used);
}

static void *piece_take(struct blocks *b, size_t size) {
	if (size < BLOCK_LEAST) {
		return b->heap.resize(b->heap.ctx, NULL, 0, size);
	}
	void *p = blocks_allow(b, size) ? block_take(b, size) : NULL;
	b->counter->used += p ? size : 0;
	return p;
}

static void piece_give(struct blocks *b, void *p, size_t size) {
	if (size < BLOCK_LEAST) {
		b->heap.resize(b->heap.ctx, p, size, 0);
		return;
	}
	b->counter->used -= size;
	block_give(b, p, size);
}

static void *piece_remap(struct blocks *b, void *p, size_t old_size, size_t new_size) {
	if (new_size > old_size && !blocks_allow(b, new_size - old_size)) {
		return NULL;
	}
	void *out = mremap(p, block_bytes(old_size), block_bytes(new_size), MREMAP_MAYMOVE);
	if (out == MAP_FAILED) {
		return NULL;
	}
	b->counter->used = b->counter->used - old_size + new_size;
	return out;
}

static void *piece_copy(struct blocks *b, void *p, size_t old_size, size_t new_size) {
	void *out = piece_take(b, new_size);
	if (out) {
		memcpy(out, p, old_size < new_size ? old_size : new_size);
		piece_give(b, p, old_size);
	}
	return out;
}

static void *blocks_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct blocks *b = ctx;
	if (old_size < BLOCK_LEAST && new_size < BLOCK_LEAST) {
		return b->heap.resize(b->heap.ctx, p, old_size, new_size);
	}
	if (new_size == 0) {
		piece_give(b, p, old_size);
		return NULL;
	}
	/* Rounding up would be zero. */
	if (new_size > SIZE_MAX - PAGE_BYTES) {
		return NULL;
	}
	if (!p) {
		return piece_take(b, new_size);
	}
	return old_size < BLOCK_LEAST || new_size < BLOCK_LEAST
		? piece_copy(b, p, old_size, new_size) : piece_remap(b, p, old_size, new_size);
}

struct allocator blocks_alloc(struct blocks *b) {
	return (struct allocator){ .resize = blocks_resize, .ctx = b };
}

/* ---- life ---- */

int blocks_init(struct blocks *b, struct event_base *base, struct alloc_counter *counter) {
	*b = (struct blocks){ .heap = alloc_libc(counter), .counter = counter };
	b->tidy = evtimer_new(base, blocks_on_tidy, b);
	return b->tidy ? 0 : PAWL_ENOMEM;
}

void blocks_done(struct blocks *b) {
	if (b->tidy) {
		blocks_give_back(b, SIZE_MAX);
		event_free(b->tidy);
	}
	*b = (struct blocks){ 0 };
}
