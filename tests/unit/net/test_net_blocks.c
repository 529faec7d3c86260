/* These tests are about memory in large blocks: what is taken is counted, what was given back is
 * used again, and goes back to the system in the end. */
#include "unit.h"

#include <string.h>

#include "blocks.h"

#define BLOCK BLOCK_LEAST

struct world {
	struct event_base *base;
	struct alloc_counter counter;
	struct blocks blocks;
	struct allocator alloc;
};

static void world_init(struct world *w) {
	*w = (struct world){ .base = event_base_new() };
	assert_non_null(w->base);
	assert_int_equal(blocks_init(&w->blocks, w->base, &w->counter), 0);
	w->alloc = blocks_alloc(&w->blocks);
}

static void world_done(struct world *w) {
	assert_int_equal(w->counter.used, 0);
	blocks_done(&w->blocks);
	event_base_free(w->base);
}

static void what_grows_and_shrinks_keeps_its_bytes(void **state) {
	static const size_t sizes[] = { 100, BLOCK - 1, BLOCK, 5 * BLOCK, 3 * BLOCK + 1, BLOCK,
		80 };
	struct world w;
	uint8_t *p = NULL;
	size_t size = 0;
	(void)state;
	world_init(&w);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		p = alloc_resize(&w.alloc, p, size, sizes[i]);
		assert_non_null(p);
		for (size_t at = 0; i > 0 && at < size && at < sizes[i]; at++) {
			assert_int_equal(p[at], i);
		}
		size = sizes[i];
		memset(p, (int)i + 1, size);
		assert_int_equal(w.counter.used, size);
	}
	alloc_free(&w.alloc, p, size);
	world_done(&w);
}

static void a_block_that_was_given_back_is_used_again(void **state) {
	struct world w;
	(void)state;
	world_init(&w);
	void *p = alloc_new(&w.alloc, 2 * BLOCK);
	assert_non_null(p);
	alloc_free(&w.alloc, p, 2 * BLOCK);
	assert_int_equal(w.blocks.kept, 2 * BLOCK);
	void *q = alloc_new(&w.alloc, 2 * BLOCK);
	assert_ptr_equal(p, q);
	assert_int_equal(w.blocks.kept, 0);
	alloc_free(&w.alloc, q, 2 * BLOCK);
	world_done(&w);
}

static void only_so_much_is_kept_and_not_for_long(void **state) {
	enum { COUNT = BLOCKS_KEPT_MOST / BLOCK_LEAST + 10 };
	static void *blocks[COUNT];
	struct world w;
	(void)state;
	world_init(&w);
	for (int i = 0; i < COUNT; i++) {
		blocks[i] = alloc_new(&w.alloc, BLOCK);
		assert_non_null(blocks[i]);
	}
	for (int i = 0; i < COUNT; i++) {
		alloc_free(&w.alloc, blocks[i], BLOCK);
	}
	assert_int_equal(w.blocks.kept, BLOCKS_KEPT_MOST);
	/* The loop ends when its timer is not pending any more. */
	assert_int_equal(event_base_dispatch(w.base), 1);
	assert_int_equal(w.blocks.kept, 0);
	world_done(&w);
}

/* The system takes long to unmap much. */
static void a_large_block_that_is_kept_goes_back_in_parts(void **state) {
	struct world w;
	(void)state;
	world_init(&w);
	alloc_free(&w.alloc, alloc_new(&w.alloc, 32 * BLOCK), 32 * BLOCK);
	for (size_t kept = 32 * BLOCK; kept > 0; kept -= 8 * BLOCK) {
		assert_int_equal(w.blocks.kept, kept);
		assert_int_equal(event_base_loop(w.base, EVLOOP_ONCE), 0);
	}
	assert_int_equal(w.blocks.kept, 0);
	/* A part serves somebody else. */
	alloc_free(&w.alloc, alloc_new(&w.alloc, 32 * BLOCK), 32 * BLOCK);
	assert_int_equal(event_base_loop(w.base, EVLOOP_ONCE), 0);
	uint8_t *part = alloc_new(&w.alloc, 16 * BLOCK);
	assert_int_equal(w.blocks.kept, 8 * BLOCK);
	memset(part, 1, 16 * BLOCK);
	alloc_free(&w.alloc, part, 16 * BLOCK);
	world_done(&w);
}

static void above_the_limit_a_block_is_refused_and_nothing_changes(void **state) {
	struct world w;
	(void)state;
	world_init(&w);
	w.counter.max = 4 * BLOCK;
	void *p = alloc_new(&w.alloc, 2 * BLOCK);
	assert_non_null(p);
	assert_null(alloc_new(&w.alloc, 3 * BLOCK));
	assert_null(alloc_resize(&w.alloc, p, 2 * BLOCK, 4 * BLOCK + 1));
	assert_null(alloc_new(&w.alloc, SIZE_MAX));
	assert_int_equal(w.counter.used, 2 * BLOCK);
	/* A lowered limit does not keep anything from shrinking. */
	w.counter.max = BLOCK / 2;
	p = alloc_resize(&w.alloc, p, 2 * BLOCK, BLOCK);
	assert_non_null(p);
	assert_int_equal(w.counter.used, BLOCK);
	alloc_free(&w.alloc, p, BLOCK);
	world_done(&w);
}

UNIT(net_blocks) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_grows_and_shrinks_keeps_its_bytes),
		cmocka_unit_test(a_block_that_was_given_back_is_used_again),
		cmocka_unit_test(only_so_much_is_kept_and_not_for_long),
		cmocka_unit_test(a_large_block_that_is_kept_goes_back_in_parts),
		cmocka_unit_test(above_the_limit_a_block_is_refused_and_nothing_changes),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
