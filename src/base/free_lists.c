/* free_lists.c: keeps freed small blocks by their size. */
#include "free_lists.h"

#include <string.h>


/* Returns the place of the smallest size that has room for so many bytes. */
static inline size_t place_of(size_t bytes) {
	return (bytes + 7) / 16;
}

static inline size_t size_at(size_t place) {
	return 16 * place + 8;
}

/* The way through malloc, which is rare. It is apart, so that the frequent way saves no
 * registers. */
static __attribute__((noinline)) void *block_take_behind(struct free_lists *f, size_t bytes) {
	return f->behind.resize(f->behind.ctx, NULL, 0,
		bytes > FREE_LISTS_BYTES_MAX ? bytes : size_at(place_of(bytes)));
}

static inline void *block_take(struct free_lists *f, size_t bytes) {
	const size_t place = place_of(bytes);
	if (bytes > FREE_LISTS_BYTES_MAX || !f->sizes[place].first) {
		return block_take_behind(f, bytes);
	}
	struct free_block *block = f->sizes[place].first;
	f->sizes[place].first = block->next;
	f->sizes[place].count--;
	return block;
}

static __attribute__((noinline)) void *block_give_behind(struct free_lists *f, void *p,
	size_t bytes) {
	return f->behind.resize(f->behind.ctx, p,
		bytes > FREE_LISTS_BYTES_MAX ? bytes : size_at(place_of(bytes)), 0);
}

/* Returns NULL. */
static inline void *block_give(struct free_lists *f, void *p, size_t bytes) {
	const size_t place = place_of(bytes);
	if (bytes > FREE_LISTS_BYTES_MAX || f->sizes[place].count >= f->kept) {
		return block_give_behind(f, p, bytes);
	}
	struct free_block *block = p;
	block->next = f->sizes[place].first;
	f->sizes[place].first = block;
	f->sizes[place].count++;
	return NULL;
}

/* Takes a block of another size for one that is there. */
static __attribute__((noinline)) void *block_move(struct free_lists *f, void *p, size_t old_size,
	size_t new_size) {
	if (old_size > FREE_LISTS_BYTES_MAX && new_size > FREE_LISTS_BYTES_MAX) {
		return f->behind.resize(f->behind.ctx, p, old_size, new_size);
	}
	if (old_size <= FREE_LISTS_BYTES_MAX && place_of(old_size) == place_of(new_size)) {
		return p;
	}
	void *moved = block_take(f, new_size);
	if (moved) {
		memcpy(moved, p, old_size < new_size ? old_size : new_size);
		block_give(f, p, old_size);
	}
	return moved;
}

static void *lists_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	struct free_lists *f = ctx;
	if (!p) {
		return block_take(f, new_size);
	}
	return new_size == 0 ? block_give(f, p, old_size) : block_move(f, p, old_size, new_size);
}

void free_lists_init(struct free_lists *f, struct allocator behind, uint32_t kept) {
	*f = (struct free_lists){ .behind = behind, .kept = kept };
}

void free_lists_done(struct free_lists *f) {
	for (size_t place = 0; place < FREE_LISTS_SIZES; place++) {
		struct free_block *block;
		while ((block = f->sizes[place].first) != NULL) {
			f->sizes[place].first = block->next;
			f->behind.resize(f->behind.ctx, block, size_at(place), 0);
		}
	}
	*f = (struct free_lists){ 0 };
}

struct allocator free_lists_alloc(struct free_lists *f) {
	_Static_assert(sizeof(struct free_block) <= 8, "it fits into the smallest size");
	return (struct allocator){ .resize = lists_resize, .ctx = f };
}
