/* free_lists.c: keeps freed small blocks by their size. */
#include "free_lists.h"

#include <string.h>

/* A request takes a dozen blocks of the sizes below this one. */
#define SMALL_SIZES 80

/* The ways through the slabs and malloc, which are rare. They are apart, so that the frequent ways
 * save no registers. */
static __attribute__((noinline)) void *block_take_behind(struct free_lists *f, size_t bytes) {
	return bytes > FREE_LISTS_BYTES_MAX
		? f->slabs.behind.resize(f->slabs.behind.ctx, NULL, 0, bytes)
		: slabs_take(&f->slabs, slab_place(bytes));
}

static __attribute__((noinline)) void *block_give_behind(struct free_lists *f, void *p,
	size_t bytes) {
	if (bytes > FREE_LISTS_BYTES_MAX) {
		return f->slabs.behind.resize(f->slabs.behind.ctx, p, bytes, 0);
	}
	slabs_give(&f->slabs, p);
	return NULL;
}

static void *lists_resize(void *ctx, void *p, size_t old_size, size_t new_size);

/* Takes a block of another size for one that is there. */
static __attribute__((noinline)) void *block_move(struct free_lists *f, void *p, size_t old_size,
	size_t new_size) {
	if (old_size > FREE_LISTS_BYTES_MAX && new_size > FREE_LISTS_BYTES_MAX) {
		return f->slabs.behind.resize(f->slabs.behind.ctx, p, old_size, new_size);
	}
	if (slab_place(old_size) == slab_place(new_size)) {
		return p;
	}
	void *moved = lists_resize(f, NULL, 0, new_size);
	if (moved) {
		memcpy(moved, p, old_size < new_size ? old_size : new_size);
		lists_resize(f, p, old_size, 0);
	}
	return moved;
}

static void *lists_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct free_lists *f = ctx;
	if (p && new_size > 0) {
		return block_move(f, p, old_size, new_size);
	}
	const size_t bytes = p ? old_size : new_size, place = slab_place(bytes);
	if (!p) {
		if (bytes > FREE_LISTS_BYTES_MAX || !f->sizes[place].first) {
			return block_take_behind(f, bytes);
		}
		struct free_block *block = f->sizes[place].first;
		f->sizes[place].first = block->next;
		f->sizes[place].count--;
		return block;
	}
	if (bytes > FREE_LISTS_BYTES_MAX || f->sizes[place].count >= f->sizes[place].most) {
		return block_give_behind(f, p, bytes);
	}
	struct free_block *block = p;
	block->next = f->sizes[place].first;
	f->sizes[place].first = block;
	f->sizes[place].count++;
	return NULL;
}

void free_lists_init(struct free_lists *f, struct allocator behind, uint32_t kept) {
	*f = (struct free_lists){ .kept = kept };
	slabs_init(&f->slabs, behind);
	for (size_t place = 0; place < SLAB_SIZES; place++) {
		f->sizes[place].most = place < SMALL_SIZES ? kept : kept / 16;
	}
}

void free_lists_done(struct free_lists *f) {
	for (size_t place = 0; place < SLAB_SIZES; place++) {
		struct free_block *block;
		while ((block = f->sizes[place].first) != NULL) {
			f->sizes[place].first = block->next;
			slabs_give(&f->slabs, block);
		}
		f->sizes[place].count = 0;
	}
	slabs_done(&f->slabs);
}

struct allocator free_lists_alloc(struct free_lists *f) {
	_Static_assert(sizeof(struct free_block) <= 8, "it fits into the smallest size");
	return f->kept == 0 ? f->slabs.behind
		: (struct allocator){ .resize = lists_resize, .ctx = f };
}
