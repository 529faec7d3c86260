/* slabs.c: blocks of one size in pages. Pages are cut from larger chunks. A fresh page is cut into
 * blocks as they are taken, so that nobody pays for a whole page at once. */
#include "slabs.h"

#include <stdint.h>

#include "check.h"

/* How many pages are cut from a chunk; and its bytes, which leave room for its head and to align
 * the pages, wherever the chunk stands. */
#define CHUNK_PAGES 63
#define CHUNK_BYTES (sizeof(struct slab_chunk) + (CHUNK_PAGES + 1) * SLAB_PAGE)

struct slab_chunk {
	struct slab_chunk *next;
	/* The first page that was never used, and how many there are. */
	uint8_t *fresh;
	uint32_t fresh_count;
};

struct slab_block {
	struct slab_block *next;
};

struct slab_page {
	/* In slabs.partial or slabs.empty; not linked if all blocks are in use. */
	struct list link;
	/* Blocks that were given back. */
	struct slab_block *given;
	/* How many blocks are in use; the place of their size; and where the part begins that was
	 * never used. */
	uint32_t used, place, fresh;
};

static inline struct slab_page *page_of(void *block) {
	return (struct slab_page *)((uintptr_t)block & ~(uintptr_t)(SLAB_PAGE - 1));
}

void slabs_init(struct slabs *s, struct allocator behind) {
	*s = (struct slabs){ .behind = behind };
	list_init(&s->empty);
	for (size_t place = 0; place < SLAB_SIZES; place++) {
		list_init(&s->partial[place]);
	}
}

void slabs_done(struct slabs *s) {
	struct slab_chunk *chunk;
	while ((chunk = s->chunks) != NULL) {
		s->chunks = chunk->next;
		s->behind.resize(s->behind.ctx, chunk, CHUNK_BYTES, 0);
	}
	slabs_init(s, s->behind);
}

/* Makes sure that the first chunk has a fresh page. */
static bool chunk_room(struct slabs *s) {
	if (s->chunks && s->chunks->fresh_count > 0) {
		return true;
	}
	struct slab_chunk *chunk = s->behind.resize(s->behind.ctx, NULL, 0, CHUNK_BYTES);
	if (!chunk) {
		return false;
	}
	const uintptr_t first = ((uintptr_t)(chunk + 1) + SLAB_PAGE - 1) & ~(SLAB_PAGE - 1);
	*chunk = (struct slab_chunk){ .next = s->chunks, .fresh = (uint8_t *)first,
		.fresh_count = CHUNK_PAGES };
	s->chunks = chunk;
	return true;
}

static struct slab_page *page_new(struct slabs *s, size_t place) {
	struct list *empty = list_first(&s->empty);
	struct slab_page *page;
	if (empty) {
		page = CONTAINER_OF(empty, struct slab_page, link);
		list_remove(empty);
	} else if (chunk_room(s)) {
		page = (struct slab_page *)s->chunks->fresh;
		s->chunks->fresh += SLAB_PAGE;
		s->chunks->fresh_count--;
		s->cut += SLAB_PAGE;
	} else {
		return NULL;
	}
	*page = (struct slab_page){ .place = (uint32_t)place, .fresh = sizeof *page };
	list_prepend(&s->partial[place], &page->link);
	return page;
}

/* Pages may have twice the bytes of the blocks in use, and this many more. */
#define SPREAD_BYTES ((size_t)64 << 20)

static bool is_spread(const struct slabs *s) {
	return s->cut > SPREAD_BYTES && (s->cut - SPREAD_BYTES) / 2 > s->used;
}

/* Returns the next size that has a page with room. If there is none, it is one of a few: a multiple
 * of 128 up to 640, or of 512. */
static size_t fitting(const struct slabs *s, size_t place) {
	for (size_t at = place; at < SLAB_SIZES; at++) {
		if (!list_empty(&s->partial[at])) {
			return at;
		}
	}
	return place < 80 ? place | 15 : place | 63;
}
_Static_assert(SLAB_SIZES % 64 == 0, "the greatest size is a multiple of 512");

void *slabs_take(struct slabs *s, size_t place) {
	if (list_empty(&s->partial[place]) && list_empty(&s->empty) && is_spread(s)) {
		place = fitting(s, place);
	}
	struct list *first = list_first(&s->partial[place]);
	struct slab_page *page = first ? CONTAINER_OF(first, struct slab_page, link)
		: page_new(s, place);
	if (!page) {
		return NULL;
	}
	const size_t size = slab_size(place);
	struct slab_block *block = page->given;
	if (block) {
		page->given = block->next;
	} else {
		block = (struct slab_block *)((uint8_t *)page + page->fresh);
		page->fresh += (uint32_t)size;
	}
	page->used++;
	s->used += size;
	if (!page->given && page->fresh + size > SLAB_PAGE) {
		list_remove(&page->link);
	}
	return block;
}

void slabs_give(struct slabs *s, void *p) {
	struct slab_page *page = page_of(p);
	struct slab_block *block = p;
	CHECK(page->used > 0);
	block->next = page->given;
	page->given = block;
	page->used--;
	s->used -= slab_size(page->place);
	if (!list_linked(&page->link)) {
		list_prepend(&s->partial[page->place], &page->link);
	}
	if (page->used == 0) {
		list_remove(&page->link);
		list_prepend(&s->empty, &page->link);
	}
}
