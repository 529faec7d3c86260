/* region.c: a region of memory with its own allocator inside. Blocks have a few sizes, and freed
 * blocks are in one list for each size. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "explore.h"

#define CLASSES 256
/* 32 bytes. */
#define SMALLEST 5

struct block {
	struct block *next;
};

struct region {
	/* `used` includes this head. */
	size_t size, used;
	struct block *free[CLASSES];
	max_align_t bytes[];
};

struct region *region_new(size_t size) {
	struct region *r = calloc(1, size);
	CHECK(r != NULL);
	r->size = size;
	r->used = sizeof *r;
	return r;
}

void region_free(struct region *r) {
	free(r);
}

size_t region_used(const struct region *r) {
	return r->used;
}

void region_save(const struct region *r, void *to) {
	memcpy(to, r, r->used);
}

void region_restore(struct region *r, const void *from) {
	const struct region *saved = from;
	memcpy(r, from, saved->used);
}

/* There are eight sizes from one power of two to the next, so that a copy of the region is not half
 * empty. */
static size_t class_of(size_t size, size_t *whole) {
	size_t power = SMALLEST;
	while (((size_t)1 << power) < size) {
		power++;
	}
	size_t step = power > SMALLEST + 3 ? (size_t)1 << (power - 4) : (size_t)1 << SMALLEST;
	*whole = (size + step - 1) / step * step;
	return (power - SMALLEST) * 8 + (power > SMALLEST + 3 ? *whole / step - 9
		: *whole / step - 1);
}

static void *region_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct region *r = ctx;
	size_t old_whole = 0, whole = 0, old_class = p ? class_of(old_size, &old_whole) : 0,
		class = new_size ? class_of(new_size, &whole) : 0;
	if (p && new_size && old_whole == whole) {
		return p;
	}
	void *moved = NULL;
	if (new_size && r->free[class]) {
		moved = r->free[class];
		r->free[class] = r->free[class]->next;
	} else if (new_size) {
		CHECK(r->used + whole <= r->size);
		moved = (uint8_t *)r + r->used;
		r->used += whole;
	}
	if (p && moved) {
		memcpy(moved, p, old_size < new_size ? old_size : new_size);
	}
	if (p) {
		struct block *b = p;
		b->next = r->free[old_class];
		r->free[old_class] = b;
	}
	return moved;
}

struct allocator region_allocator(struct region *r) {
	return (struct allocator){ region_resize, r };
}
