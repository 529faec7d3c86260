/* arena.c: memory that is given back all at once. */
#include "buffer.h"

#include "check.h"
#include "pawl/error.h"

#define BLOCK_BYTES_MIN ((size_t)4096)
/* Blocks double in size up to this one. */
#define BLOCK_BYTES_DOUBLED_MAX ((size_t)256 * 1024)
/* A larger block does not outlive a reset. */
#define BLOCK_BYTES_KEPT_MAX ((size_t)1024 * 1024)

struct arena_block {
	struct arena_block *next;
	/* How many bytes stand behind this header, and how many of them are taken. */
	size_t capacity, used;
	_Alignas(max_align_t) uint8_t bytes[];
};

void arena_init(struct arena *a, const struct allocator *alloc, size_t max) {
	CHECK(max > 0);
	*a = (struct arena){ .alloc = alloc, .max = max };
}

static void arena_free_blocks(struct arena *a, struct arena_block *block) {
	while (block) {
		struct arena_block *next = block->next;
		alloc_free(a->alloc, block, sizeof(*block) + block->capacity);
		block = next;
	}
}

void arena_done(struct arena *a) {
	arena_free_blocks(a, a->blocks);
	*a = (struct arena){ 0 };
}

/* Adds a block with room for `size` bytes in front of the others. NULL: there is no memory. */
static struct arena_block *arena_add_block(struct arena *a, size_t size, size_t align) {
	if (size > SIZE_MAX - sizeof(struct arena_block) - align) {
		return NULL;
	}
	size_t capacity = a->blocks ? a->blocks->capacity * 2 : BLOCK_BYTES_MIN;
	if (capacity > BLOCK_BYTES_DOUBLED_MAX) {
		capacity = BLOCK_BYTES_DOUBLED_MAX;
	}
	if (size > capacity - align) {
		capacity = size + align;
	}
	struct arena_block *block =
		a->alloc->resize(a->alloc->ctx, NULL, 0, sizeof(*block) + capacity);
	if (block) {
		block->capacity = capacity;
		block->used = 0;
		block->next = a->blocks;
		a->blocks = block;
	}
	return block;
}

void *arena_take(struct arena *a, size_t size, size_t align) {
	CHECK(align > 0 && (align & (align - 1)) == 0 && align < BLOCK_BYTES_MIN);
	if (size == 0) {
		/* Every call gives a pointer of its own. */
		size = 1;
	}
	if (size > a->max - a->used) {
		return NULL;
	}
	struct arena_block *b = a->blocks;
	size_t pad = b ? (size_t)(-(uintptr_t)(b->bytes + b->used)) & (align - 1) : 0;
	if (!b || pad > b->capacity - b->used || size > b->capacity - b->used - pad) {
		b = arena_add_block(a, size, align);
		if (!b) {
			return NULL;
		}
		pad = (size_t)(-(uintptr_t)b->bytes) & (align - 1);
	}
	void *p = b->bytes + b->used + pad;
	b->used += pad + size;
	a->used += size;
	return p;
}

int arena_copy(struct arena *a, struct slice from, struct slice *out) {
	uint8_t *p = arena_take(a, from.size, 1);
	if (!p) {
		return PAWL_ENOMEM;
	}
	if (from.size) {
		memcpy(p, from.data, from.size);
	}
	*out = slice_of(p, from.size);
	return 0;
}

void arena_reset(struct arena *a) {
	a->used = 0;
	struct arena_block *kept = a->blocks;
	if (!kept) {
		return;
	}
	if (kept->capacity > BLOCK_BYTES_KEPT_MAX) {
		arena_free_blocks(a, kept);
		a->blocks = NULL;
		return;
	}
	if (kept->next) {
		arena_free_blocks(a, kept->next);
		kept->next = NULL;
	}
	kept->used = 0;
}
