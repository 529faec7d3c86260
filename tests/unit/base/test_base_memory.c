/* Allocators, buffers, arenas, lists and slices. */
#include "unit.h"

#include <string.h>

#include "alloc.h"
#include "buffer.h"
#include "free_lists.h"
#include "list.h"
#include "pawl/error.h"
#include "prng.h"

static void the_counter_counts_and_refuses_above_its_limit(void **state) {
	(void)state;
	struct alloc_counter counter = { .max = 100 };
	struct allocator a = alloc_libc(&counter);
	uint8_t *p = alloc_new(&a, 60);
	assert_non_null(p);
	for (int i = 0; i < 60; i++) {
		assert_int_equal(p[i], 0);
	}
	assert_null(alloc_new(&a, 41));
	assert_null(alloc_resize(&a, p, 60, 101));
	assert_null(alloc_new(&a, SIZE_MAX));
	assert_int_equal(counter.used, 60);
	p = alloc_resize(&a, p, 60, 100);
	assert_non_null(p);
	/* A lowered limit does not keep anything from shrinking. */
	counter.max = 50;
	p = alloc_resize(&a, p, 100, 80);
	assert_non_null(p);
	alloc_free(&a, p, 80);
	alloc_free(&a, NULL, 0);
	assert_int_equal(counter.used, 0);
}

static void a_freed_block_serves_the_next_of_its_size(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct free_lists lists;
	free_lists_init(&lists, alloc_libc(&counter), 2);
	struct allocator a = free_lists_alloc(&lists);
	void *first = alloc_new(&a, 25), *second = alloc_new(&a, 32), *third = alloc_new(&a, 31);
	alloc_free(&a, first, 25);
	alloc_free(&a, second, 32);
	/* Two of a size are kept, and no more. */
	alloc_free(&a, third, 31);
	assert_int_equal(lists.sizes[slab_place(32)].count, 2);
	assert_ptr_equal(alloc_new(&a, 32), second);
	/* It is of another size. */
	void *larger = alloc_new(&a, 33);
	assert_ptr_equal(alloc_new(&a, 26), first);
	alloc_free(&a, first, 26);
	alloc_free(&a, second, 32);
	alloc_free(&a, larger, 33);
	free_lists_done(&lists);
	assert_int_equal(counter.used, 0);
}

static void lists_that_keep_nothing_leave_all_blocks_to_the_allocator_behind(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct free_lists lists;
	free_lists_init(&lists, alloc_libc(&counter), 0);
	struct allocator a = free_lists_alloc(&lists);
	void *p = alloc_new(&a, 25);
	assert_int_equal(counter.used, 25);
	p = alloc_resize(&a, p, 25, 31);
	assert_int_equal(counter.used, 31);
	alloc_free(&a, p, 31);
	assert_int_equal(counter.used, 0);
	free_lists_done(&lists);
}

/* ---- slabs ---- */

static void blocks_of_a_size_stand_one_behind_the_other(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct slabs s;
	slabs_init(&s, alloc_libc(&counter));
	assert_int_equal(slab_size(slab_place(1)), 8);
	assert_int_equal(slab_size(slab_place(104)), 104);
	assert_int_equal(slab_size(slab_place(105)), 112);
	uint8_t *a = slabs_take(&s, slab_place(104)), *b = slabs_take(&s, slab_place(104)),
		*other = slabs_take(&s, slab_place(8));
	assert_int_equal(b - a, 104);
	assert_true((uintptr_t)other / SLAB_PAGE != (uintptr_t)a / SLAB_PAGE);
	slabs_give(&s, a);
	assert_ptr_equal(slabs_take(&s, slab_place(104)), a);
	slabs_give(&s, a);
	slabs_give(&s, b);
	slabs_give(&s, other);
	slabs_done(&s);
	assert_int_equal(counter.used, 0);
}

static void a_page_that_is_empty_serves_another_size(void **state) {
	(void)state;
	/* The head of the page takes the place of one. */
	enum { COUNT = SLAB_PAGE / SLAB_BYTES_MAX - 1 };
	struct alloc_counter counter = { 0 };
	struct slabs s;
	slabs_init(&s, alloc_libc(&counter));
	uint8_t *blocks[COUNT];
	for (size_t i = 0; i < COUNT; i++) {
		blocks[i] = slabs_take(&s, SLAB_SIZES - 1);
		assert_int_equal((uintptr_t)blocks[i] / SLAB_PAGE,
			(uintptr_t)blocks[0] / SLAB_PAGE);
	}
	/* The page is full. */
	uint8_t *next = slabs_take(&s, SLAB_SIZES - 1);
	assert_true((uintptr_t)next / SLAB_PAGE != (uintptr_t)blocks[0] / SLAB_PAGE);
	for (size_t i = 0; i < COUNT; i++) {
		slabs_give(&s, blocks[i]);
	}
	uint8_t *small = slabs_take(&s, 0);
	assert_int_equal((uintptr_t)small / SLAB_PAGE, (uintptr_t)blocks[0] / SLAB_PAGE);
	slabs_give(&s, small);
	slabs_give(&s, next);
	slabs_done(&s);
	assert_int_equal(counter.used, 0);
}

/* Hands out one chunk, which begins in the last 16 bytes of a page. */
static _Alignas(SLAB_PAGE) uint8_t awkward[67 * SLAB_PAGE];

static void *awkward_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	size_t *size = ctx;
	(void)old_size;
	if (p || *size) {
		return NULL;
	}
	*size = new_size;
	return awkward + SLAB_PAGE - 16;
}

static void a_chunk_may_begin_anywhere(void **state) {
	(void)state;
	size_t size = 0;
	struct slabs s;
	slabs_init(&s, (struct allocator){ .resize = awkward_resize, .ctx = &size });
	for (const uint8_t *block; (block = slabs_take(&s, slab_place(8))) != NULL;) {
		assert_true(block + 8 <= awkward + SLAB_PAGE - 16 + size);
	}
	assert_in_range(size, 1, sizeof awkward - SLAB_PAGE);
	slabs_done(&s);
}

/* Takes and gives blocks of three sizes as a random walk, and finds in each of them what was
 * written there. */
static void blocks_in_use_never_overlap(void **state) {
	(void)state;
	enum { COUNT = 20000 };
	struct alloc_counter counter = { 0 };
	struct slabs s;
	slabs_init(&s, alloc_libc(&counter));
	struct prng prng;
	prng_init(&prng, 7);
	static uint8_t *blocks[COUNT];
	static size_t places[COUNT];
	size_t most = 0;
	for (int i = 0; i < 10 * COUNT; i++) {
		const size_t at = (size_t)prng_below(&prng, COUNT);
		if (blocks[at]) {
			for (size_t b = 0; b < slab_size(places[at]); b++) {
				assert_int_equal(blocks[at][b], (uint8_t)at);
			}
			slabs_give(&s, blocks[at]);
			blocks[at] = NULL;
		} else {
			places[at] = slab_place(100 + 100 * (size_t)prng_below(&prng, 3));
			blocks[at] = slabs_take(&s, places[at]);
			memset(blocks[at], (int)at, slab_size(places[at]));
		}
		most = counter.used > most ? counter.used : most;
	}
	for (size_t at = 0; at < COUNT; at++) {
		if (blocks[at]) {
			slabs_give(&s, blocks[at]);
		}
	}
	/* All pages are free now, for any size. */
	for (size_t at = 0; at < COUNT / 4; at++) {
		assert_non_null(slabs_take(&s, slab_place(304)));
	}
	assert_int_equal(counter.used, most);
	slabs_done(&s);
	assert_int_equal(counter.used, 0);
}

static void slabs_without_memory_behind_them_refuse(void **state) {
	(void)state;
	struct alloc_counter counter = { .max = 65 * SLAB_PAGE };
	struct slabs s;
	slabs_init(&s, alloc_libc(&counter));
	size_t taken = 0;
	while (slabs_take(&s, SLAB_SIZES - 1)) {
		taken++;
	}
	assert_in_range(taken, 60 * (SLAB_PAGE / SLAB_BYTES_MAX), SLAB_PAGE * 64 / SLAB_BYTES_MAX);
	assert_null(slabs_take(&s, 0));
	slabs_done(&s);
	assert_int_equal(counter.used, 0);
}

static void a_block_moves_between_sizes_with_its_bytes(void **state) {
	static const size_t sizes[] = { 1, 8, 9, 24, 25, FREE_LISTS_BYTES_MAX,
		FREE_LISTS_BYTES_MAX + 1, 5000, 9000, FREE_LISTS_BYTES_MAX + 1,
		FREE_LISTS_BYTES_MAX, 100, 8, 7 };
	(void)state;
	struct alloc_counter counter = { 0 };
	struct free_lists lists;
	free_lists_init(&lists, alloc_libc(&counter), 2);
	struct allocator a = free_lists_alloc(&lists);
	size_t size = 5;
	uint8_t *p = alloc_new(&a, size);
	memcpy(p, "Pawl", size);
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		const size_t kept = size < sizes[i] ? size : sizes[i];
		uint8_t before[5] = { 0 };
		memcpy(before, p, kept < 5 ? kept : 5);
		p = alloc_resize(&a, p, size, sizes[i]);
		assert_non_null(p);
		size = sizes[i];
		assert_memory_equal(p, before, kept < 5 ? kept : 5);
		memset(p + kept, 0x55, size - kept);
	}
	alloc_free(&a, p, size);
	free_lists_done(&lists);
	assert_int_equal(counter.used, 0);
}

/* Of each size 16 MiB are taken, and all but one block of each page are given back. */
static void few_blocks_in_many_pages_do_not_add_up(void **state) {
	(void)state;
	enum { BYTES = 16 << 20, SMALLEST = 12 };
	struct alloc_counter counter = { 0 };
	struct slabs s;
	slabs_init(&s, alloc_libc(&counter));
	static uint8_t *blocks[BYTES / 8 / SMALLEST];
	size_t left = 0;
	for (size_t place = SMALLEST; place < SLAB_SIZES; place++) {
		const size_t size = slab_size(place), count = (BYTES - left) / size,
			a_page = (SLAB_PAGE - 64) / size;
		for (size_t i = 0; i < count; i++) {
			assert_non_null(blocks[i] = slabs_take(&s, place));
			memset(blocks[i], (int)place, size);
		}
		for (size_t i = 0; i < count; i++) {
			assert_int_equal(blocks[i][size - 1], place);
			if (i % a_page) {
				slabs_give(&s, blocks[i]);
			} else {
				left += size;
			}
		}
	}
	assert_in_range(counter.used, 0, 16 * (size_t)BYTES);
	slabs_done(&s);
	assert_int_equal(counter.used, 0);
}

static void lists_without_memory_behind_them_refuse(void **state) {
	(void)state;
	struct alloc_counter counter = { .max = 64 * SLAB_PAGE + 1000 };
	struct free_lists lists;
	free_lists_init(&lists, alloc_libc(&counter), 2);
	struct allocator a = free_lists_alloc(&lists);
	uint8_t *p = alloc_new(&a, 50);
	assert_null(alloc_resize(&a, p, 50, 3000));
	p[49] = 1;
	alloc_free(&a, p, 50);
	free_lists_done(&lists);
	assert_int_equal(counter.used, 0);
}

static void a_buffer_grows_to_its_limit_and_no_further(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct allocator a = alloc_libc(&counter);
	struct buffer b;
	buffer_init(&b, &a, 1000);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(buffer_append(&b, "0123456789", 10), 0);
	}
	assert_int_equal(counter.used, 1000);
	assert_int_equal(buffer_append(&b, "x", 1), PAWL_ETOOLARGE);
	assert_int_equal(buffer_room(&b, SIZE_MAX), PAWL_ETOOLARGE);
	assert_null(buffer_reserve(&b, 1));
	assert_int_equal(b.size, 1000);
	assert_memory_equal(b.data + 990, "0123456789", 10);
	buffer_consume(&b, 995);
	assert_true(slice_equal(buffer_slice(&b), slice_str("56789")));
	uint8_t *room = buffer_reserve(&b, 3);
	assert_non_null(room);
	memcpy(room, "abc", 3);
	buffer_commit(&b, 2);
	assert_true(slice_equal(buffer_slice(&b), slice_str("56789ab")));
	buffer_clear(&b);
	assert_int_equal(b.size, 0);
	buffer_done(&b);
	assert_int_equal(counter.used, 0);
}

/* What little there is room for is still taken, so the size may exceed the new limit. The next
 * bytes are refused. A node once searched for a large enough capacity for ever. */
static void a_buffer_whose_limit_was_lowered_takes_no_more(void **state) {
	(void)state;
	struct allocator a = alloc_libc(NULL);
	struct buffer b;
	uint8_t big[1000] = { 0 };
	buffer_init(&b, &a, 2000);
	assert_int_equal(buffer_append(&b, big, sizeof big), 0);
	b.max = b.size;
	assert_int_equal(buffer_append(&b, "head", 4), 0);
	assert_int_equal(buffer_append(&b, big, sizeof big), PAWL_ETOOLARGE);
	assert_null(buffer_reserve(&b, sizeof big));
	assert_int_equal(b.size, sizeof big + 4);
	buffer_done(&b);
}

static void a_buffer_without_memory_stays_as_it_was(void **state) {
	(void)state;
	struct alloc_counter counter = { .max = 300 };
	struct allocator a = alloc_libc(&counter);
	struct buffer b;
	buffer_init(&b, &a, 10000);
	assert_int_equal(buffer_append(&b, NULL, 0), 0);
	assert_int_equal(buffer_append(&b, "abc", 3), 0);
	uint8_t big[1000] = { 0 };
	assert_int_equal(buffer_append(&b, big, sizeof(big)), PAWL_ENOMEM);
	assert_true(slice_equal(buffer_slice(&b), slice_str("abc")));
	buffer_done(&b);
	struct buffer zeroed = { 0 };
	buffer_done(&zeroed);
}

static void a_buffer_gives_its_memory_back_in_pieces(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct allocator a = alloc_libc(&counter);
	struct buffer b;
	buffer_init(&b, &a, 1000);
	assert_non_null(buffer_reserve(&b, 1000));
	buffer_commit(&b, 1000);
	assert_int_equal(buffer_shed(&b, 300, 256), 300);
	assert_int_equal(counter.used, 700);
	assert_int_equal(b.size, 0);
	assert_int_equal(buffer_shed(&b, 1000, 256), 444);
	assert_int_equal(counter.used, 256);
	assert_int_equal(buffer_shed(&b, 1000, 256), 0);
	assert_int_equal(buffer_append(&b, "0123456789", 10), 0);
	assert_int_equal(counter.used, 256);
	buffer_done(&b);
	assert_int_equal(buffer_shed(&b, 1000, 256), 0);
}

static void an_arena_gives_aligned_bytes_that_do_not_overlap(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct allocator alloc = alloc_libc(&counter);
	struct arena a;
	arena_init(&a, &alloc, 1 << 20);
	uint8_t *taken[200];
	for (size_t i = 0; i < 200; i++) {
		size_t align = (size_t)1 << (i % 7);
		taken[i] = arena_take(&a, i * 7, align);
		assert_non_null(taken[i]);
		assert_int_equal((uintptr_t)taken[i] % align, 0);
		memset(taken[i], (int)i, i * 7);
	}
	for (size_t i = 0; i < 200; i++) {
		for (size_t j = 0; j < i * 7; j++) {
			assert_int_equal(taken[i][j], i);
		}
	}
	/* This is larger than any block. */
	assert_non_null(arena_take(&a, 500000, 64));
	arena_done(&a);
	assert_int_equal(counter.used, 0);
}

static void an_arena_refuses_above_its_limit_until_it_is_reset(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct allocator alloc = alloc_libc(&counter);
	struct arena a;
	arena_init(&a, &alloc, 10000);
	assert_non_null(arena_take(&a, 9000, 8));
	assert_null(arena_take(&a, 1001, 8));
	assert_null(arena_take(&a, SIZE_MAX, 8));
	assert_non_null(arena_take(&a, 1000, 1));
	arena_reset(&a);
	assert_non_null(arena_take(&a, 10000, 1));
	arena_reset(&a);
	arena_reset(&a);
	arena_done(&a);
	assert_int_equal(counter.used, 0);
}

static void an_arena_needs_no_memory_once_it_is_warm(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct allocator alloc = alloc_libc(&counter);
	struct arena a;
	arena_init(&a, &alloc, (size_t)64 << 20);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++) {
			assert_non_null(arena_take(&a, 1000, 8));
		}
		if (round == 10) {
			counter.max = counter.used;
		}
		arena_reset(&a);
	}
	assert_non_null(arena_take(&a, 1, 1));
	counter.max = 0;
	/* A huge block is returned to the system, though. */
	assert_non_null(arena_take(&a, (size_t)32 << 20, 8));
	arena_reset(&a);
	assert_true(counter.used < (size_t)2 << 20);
	arena_done(&a);
	assert_int_equal(counter.used, 0);
}

static void an_arena_copies_slices(void **state) {
	(void)state;
	struct alloc_counter counter = { 0 };
	struct allocator alloc = alloc_libc(&counter);
	struct arena a;
	arena_init(&a, &alloc, 20);
	struct slice out = { 0 };
	assert_int_equal(arena_copy(&a, slice_str("hello"), &out), 0);
	assert_true(slice_equal(out, slice_str("hello")));
	assert_int_equal(arena_copy(&a, (struct slice){ 0 }, &out), 0);
	assert_int_equal(out.size, 0);
	assert_int_equal(arena_copy(&a, slice_str("12345678901234567890"), &out), PAWL_ENOMEM);
	arena_done(&a);
}

static void slices_compare_by_bytes_and_prefixes_come_first(void **state) {
	(void)state;
	assert_true(slice_compare(slice_str("a"), slice_str("ab")) < 0);
	assert_true(slice_compare(slice_str("b"), slice_str("ab")) > 0);
	assert_true(slice_compare(slice_of("\xff", 1), slice_str("a")) > 0);
	assert_int_equal(slice_compare(slice_str(""), (struct slice){ 0 }), 0);
	assert_true(slice_has_prefix(slice_str("abc"), slice_str("ab")));
	assert_false(slice_has_prefix(slice_str("a"), slice_str("ab")));
	assert_false(slice_equal(slice_str("a"), slice_str("b")));
}

static void lists_keep_their_order_and_removing_twice_is_harmless(void **state) {
	(void)state;
	struct list head, a = { 0 }, b = { 0 }, c = { 0 };
	list_init(&head);
	assert_null(list_first(&head));
	list_append(&head, &a);
	list_append(&head, &c);
	list_insert_before(&c, &b);
	assert_ptr_equal(list_first(&head), &a);
	assert_ptr_equal(list_after(&head, &a), &b);
	assert_ptr_equal(list_after(&head, &b), &c);
	assert_null(list_after(&head, &c));
	list_remove(&b);
	list_remove(&b);
	assert_false(list_linked(&b));
	assert_ptr_equal(list_after(&head, &a), &c);
	list_remove(&a);
	list_remove(&c);
	assert_true(list_empty(&head));
}

UNIT(base_memory) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_counter_counts_and_refuses_above_its_limit),
		cmocka_unit_test(a_freed_block_serves_the_next_of_its_size),
		cmocka_unit_test(lists_that_keep_nothing_leave_all_blocks_to_the_allocator_behind),
		cmocka_unit_test(blocks_of_a_size_stand_one_behind_the_other),
		cmocka_unit_test(a_page_that_is_empty_serves_another_size),
		cmocka_unit_test(a_chunk_may_begin_anywhere),
		cmocka_unit_test(blocks_in_use_never_overlap),
		cmocka_unit_test(slabs_without_memory_behind_them_refuse),
		cmocka_unit_test(a_block_moves_between_sizes_with_its_bytes),
		cmocka_unit_test(lists_without_memory_behind_them_refuse),
		cmocka_unit_test(few_blocks_in_many_pages_do_not_add_up),
		cmocka_unit_test(a_buffer_grows_to_its_limit_and_no_further),
		cmocka_unit_test(a_buffer_whose_limit_was_lowered_takes_no_more),
		cmocka_unit_test(a_buffer_without_memory_stays_as_it_was),
		cmocka_unit_test(a_buffer_gives_its_memory_back_in_pieces),
		cmocka_unit_test(an_arena_gives_aligned_bytes_that_do_not_overlap),
		cmocka_unit_test(an_arena_refuses_above_its_limit_until_it_is_reset),
		cmocka_unit_test(an_arena_needs_no_memory_once_it_is_warm),
		cmocka_unit_test(an_arena_copies_slices),
		cmocka_unit_test(slices_compare_by_bytes_and_prefixes_come_first),
		cmocka_unit_test(lists_keep_their_order_and_removing_twice_is_harmless),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
