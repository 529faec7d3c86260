/* These tests compare the map by linear hashing with a naive model. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "map.h"
#include "prng.h"

#define NODES 6000

struct fixture {
	struct alloc_counter counter;
	struct allocator alloc;
	struct map map;
	struct prng prng;
	struct map_node nodes[NODES];
	bool in[NODES];
	uint64_t hash[NODES];
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	f->alloc = alloc_libc(&f->counter);
	prng_init(&f->prng, 1);
	assert_int_equal(map_init(&f->map, &f->alloc), 0);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	map_done(&f->map);
	assert_int_equal(f->counter.used, 0);
	free(f);
	return 0;
}

static bool found(const struct fixture *f, size_t i) {
	for (struct map_node *n = map_first(&f->map, f->hash[i]); n; n = map_next(n)) {
		assert_true(n->hash == (uint32_t)f->hash[i]);
		if (n == &f->nodes[i]) {
			return true;
		}
	}
	return false;
}

static void insert(struct fixture *f, size_t i, uint64_t hash) {
	f->hash[i] = hash;
	f->in[i] = true;
	map_insert(&f->map, &f->nodes[i], hash);
}

static void check_all(const struct fixture *f) {
	size_t count = 0;
	for (size_t i = 0; i < NODES; i++) {
		count += f->in[i];
		assert_int_equal(found(f, i), f->in[i]);
	}
	assert_int_equal(f->map.count, count);
	size_t walked = 0;
	for (size_t b = 0; b < f->map.bucket_count; b++) {
		for (struct map_node *n = map_bucket(&f->map, b); n; n = map_next_in_bucket(n)) {
			assert_true(f->in[n - f->nodes]);
			walked++;
		}
	}
	assert_int_equal(walked, count);
}

static void a_map_holds_what_a_naive_model_holds_while_it_grows_and_shrinks(void **state) {
	struct fixture *f = *state;
	for (int phase = 0; phase < 8; phase++) {
		/* This is the number of insertions in 100 moves. */
		uint32_t insertions = phase % 2 ? 15 : 85;
		for (int move = 0; move < 5000; move++) {
			size_t i = (size_t)prng_below(&f->prng, NODES);
			if (f->in[i] && !prng_chance(&f->prng, insertions, 100)) {
				map_remove(&f->map, &f->nodes[i]);
				f->in[i] = false;
			} else if (!f->in[i] && prng_chance(&f->prng, insertions, 100)) {
				insert(f, i,
					prng_chance(&f->prng, 1, 10) ? 42 : prng_next(&f->prng));
			}
		}
		check_all(f);
	}
}

static void nodes_with_equal_hashes_are_all_found(void **state) {
	struct fixture *f = *state;
	for (size_t i = 0; i < 1000; i++) {
		insert(f, i, i % 2 ? 7 : UINT64_MAX);
	}
	size_t odd = 0;
	for (struct map_node *n = map_first(&f->map, 7); n; n = map_next(n)) {
		odd++;
	}
	assert_int_equal(odd, 500);
	assert_null(map_first(&f->map, 8));
	for (size_t i = 0; i < 1000; i++) {
		map_remove(&f->map, &f->nodes[i]);
	}
}

static void all_64_bits_of_a_number_count(void **state) {
	struct fixture *f = *state;
	for (size_t i = 0; i < 1000; i++) {
		/* Each number twice, and always one of ten lower halves. */
		map_insert_number(&f->map, &f->nodes[i], (uint64_t)(i / 20) << 32 | i % 10);
	}
	for (size_t i = 0; i < 1000; i++) {
		const uint64_t number = (uint64_t)(i / 20) << 32 | i % 10;
		const struct map_node *one = map_first_number(&f->map, number),
			*other = map_next_number(one);
		assert_true(one == &f->nodes[i] || other == &f->nodes[i]);
		assert_null(map_next_number(other));
		assert_null(map_first_number(&f->map, number | UINT64_C(1) << 63));
	}
	for (size_t i = 0; i < 1000; i++) {
		map_remove(&f->map, &f->nodes[i]);
	}
}

static void a_map_gives_memory_back_when_it_empties(void **state) {
	struct fixture *f = *state;
	size_t empty = f->counter.used, buckets = f->map.bucket_count;
	for (size_t i = 0; i < NODES; i++) {
		insert(f, i, prng_next(&f->prng));
	}
	assert_true(f->map.bucket_count >= NODES);
	for (size_t i = 0; i < NODES; i++) {
		map_remove(&f->map, &f->nodes[i]);
		f->in[i] = false;
	}
	assert_int_equal(f->map.bucket_count, buckets);
	/* The directory stays. */
	assert_true(f->counter.used <= empty + 256);
}

static void no_operation_moves_more_than_four_buckets(void **state) {
	struct fixture *f = *state;
	for (size_t i = 0; i < NODES; i++) {
		size_t before = f->map.bucket_count;
		insert(f, i, prng_next(&f->prng));
		assert_true(f->map.bucket_count - before <= 2);
	}
	for (size_t i = 0; i < NODES; i++) {
		size_t before = f->map.bucket_count;
		map_remove(&f->map, &f->nodes[i]);
		assert_true(before - f->map.bucket_count <= 4);
	}
}

static void without_memory_chains_get_longer_and_nothing_is_lost(void **state) {
	struct fixture *f = *state;
	f->counter.max = f->counter.used;
	size_t buckets = f->map.bucket_count;
	for (size_t i = 0; i < NODES / 2; i++) {
		insert(f, i, prng_next(&f->prng));
	}
	assert_int_equal(f->map.bucket_count, buckets);
	/* There is memory again, and the map catches up. */
	f->counter.max = 0;
	for (size_t i = NODES / 2; i < NODES; i++) {
		insert(f, i, prng_next(&f->prng));
	}
	assert_true(f->map.bucket_count > NODES - buckets);
	check_all(f);
}

static void map_init_without_memory_says_so(void **state) {
	struct fixture *f = *state;
	for (size_t max = 1; max <= f->counter.used; max += 64) {
		struct alloc_counter counter = { 0, max };
		struct allocator alloc = alloc_libc(&counter);
		struct map m;
		int error = map_init(&m, &alloc);
		assert_true(error == 0 || counter.used == 0);
		map_done(&m);
		assert_int_equal(counter.used, 0);
	}
	struct map zeroed;
	memset(&zeroed, 0, sizeof(zeroed));
	map_done(&zeroed);
}

/* A walk in pieces, with changes in between, sees every element that was there from the beginning
 * to the end. */
static void a_walk_sees_what_stays_while_the_map_changes(void **state) {
	struct fixture *f = *state;
	bool seen[NODES] = { false }, stays[NODES] = { false };
	for (size_t i = 0; i < NODES / 2; i++) {
		insert(f, i, prng_next(&f->prng));
		stays[i] = i % 3 == 0;
	}
	map_walk_begin(&f->map);
	size_t next = NODES / 2, gone = 0;
	for (size_t b = 0; b < f->map.bucket_count; b++) {
		for (struct map_node *n = map_bucket(&f->map, b); n; n = map_next_in_bucket(n)) {
			seen[n - f->nodes] = true;
		}
		/* First the map grows, and then it would shrink. */
		for (int i = 0; i < 3; i++, gone++) {
			if (next < NODES) {
				insert(f, next++, prng_next(&f->prng));
			} else if (gone < NODES && f->in[gone] && !stays[gone]) {
				map_remove(&f->map, &f->nodes[gone]);
				f->in[gone] = false;
			}
		}
	}
	for (size_t i = 0; i < NODES; i++) {
		assert_true(seen[i] || !stays[i]);
	}
	size_t buckets = f->map.bucket_count;
	for (size_t i = 0; i < NODES; i++) {
		if (f->in[i]) {
			map_remove(&f->map, &f->nodes[i]);
		}
	}
	assert_int_equal(f->map.bucket_count, buckets);
	map_walk_end(&f->map);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT(base_map) {
	const struct CMUnitTest tests[] = {
		TEST(a_map_holds_what_a_naive_model_holds_while_it_grows_and_shrinks),
		TEST(nodes_with_equal_hashes_are_all_found),
		TEST(all_64_bits_of_a_number_count),
		TEST(a_map_gives_memory_back_when_it_empties),
		TEST(no_operation_moves_more_than_four_buckets),
		TEST(without_memory_chains_get_longer_and_nothing_is_lost),
		TEST(map_init_without_memory_says_so),
		TEST(a_walk_sees_what_stays_while_the_map_changes),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
