/* These tests compare the flat table with a naive model. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "flat.h"
#include "prng.h"

#define NUMBERS 6000

struct number {
	struct flat_entry entry;
	uint32_t number, twice;
};

struct fixture {
	struct alloc_counter counter;
	struct allocator alloc;
	struct flat flat;
	struct prng prng;
	bool in[NUMBERS];
	uint64_t hash[NUMBERS];
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof *f);
	assert_non_null(f);
	f->alloc = alloc_libc(&f->counter);
	prng_init(&f->prng, 1);
	flat_init(&f->flat, &f->alloc, sizeof(struct number));
	assert_int_equal(f->counter.used, 0);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	struct fixture *f = *state;
	flat_done(&f->flat);
	assert_int_equal(f->counter.used, 0);
	free(f);
	return 0;
}

static struct number *find(const struct fixture *f, uint32_t i) {
	for (struct flat_entry *e = flat_first(&f->flat, f->hash[i]); e;
		e = flat_next(&f->flat, e)) {
		struct number *n = (struct number *)e;
		assert_true(e->hash == f->hash[i]);
		if (n->number == i) {
			assert_int_equal(n->twice, 2 * i);
			return n;
		}
	}
	return NULL;
}

static void add(struct fixture *f, uint32_t i, uint64_t hash) {
	f->hash[i] = hash;
	f->in[i] = true;
	struct number *n = (struct number *)flat_add(&f->flat, hash);
	assert_non_null(n);
	assert_int_equal(n->number + n->twice, 0);
	n->number = i;
	n->twice = 2 * i;
}

static void remove_number(struct fixture *f, uint32_t i) {
	struct number *n = find(f, i);
	assert_non_null(n);
	flat_remove(&f->flat, &n->entry);
	f->in[i] = false;
}

static void check_all(const struct fixture *f) {
	uint32_t count = 0;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		count += f->in[i];
		assert_int_equal(find(f, i) != NULL, f->in[i]);
	}
	assert_int_equal(f->flat.count, count);
	for (uint32_t at = 0; at < count; at++) {
		assert_true(f->in[((struct number *)flat_at(&f->flat, at))->number]);
	}
}

static void a_flat_table_holds_what_a_naive_model_holds(void **state) {
	struct fixture *f = *state;
	for (int phase = 0; phase < 8; phase++) {
		/* This is the number of additions in 100 moves. */
		uint32_t additions = phase % 2 ? 15 : 85;
		for (int move = 0; move < 5000; move++) {
			uint32_t i = (uint32_t)prng_below(&f->prng, NUMBERS);
			if (f->in[i] && !prng_chance(&f->prng, additions, 100)) {
				remove_number(f, i);
			} else if (!f->in[i] && prng_chance(&f->prng, additions, 100)) {
				add(f, i,
					prng_chance(&f->prng, 1, 10) ? 42 : prng_next(&f->prng));
			}
		}
		check_all(f);
	}
}

static void entries_with_equal_hashes_are_all_found(void **state) {
	struct fixture *f = *state;
	for (uint32_t i = 0; i < 1000; i++) {
		add(f, i, i % 2 ? 7 : UINT64_MAX);
	}
	uint32_t odd = 0;
	for (struct flat_entry *e = flat_first(&f->flat, 7); e; e = flat_next(&f->flat, e)) {
		odd++;
	}
	assert_int_equal(odd, 500);
	assert_null(flat_first(&f->flat, 8));
	check_all(f);
}

static void an_entry_takes_four_bytes_more_than_its_own(void **state) {
	struct fixture *f = *state;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		add(f, i, prng_next(&f->prng));
	}
	assert_true(f->counter.used < NUMBERS * (sizeof(struct number) + 4) * 11 / 10);
}

static void a_flat_table_gives_memory_back_when_it_empties(void **state) {
	struct fixture *f = *state;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		add(f, i, prng_next(&f->prng));
	}
	for (uint32_t i = 0; i < NUMBERS; i++) {
		remove_number(f, i);
	}
	/* The directories, and two segments of each array, stay. */
	assert_true(f->counter.used <= 2 * FLAT_SEGMENT * (sizeof(struct number) + 4) + 1024);
	const size_t used = f->counter.used;
	for (int i = 0; i < 1000; i++) {
		add(f, 1, prng_next(&f->prng));
		remove_number(f, 1);
	}
	assert_int_equal(f->counter.used, used);
}

static void no_operation_moves_more_than_four_buckets(void **state) {
	struct fixture *f = *state;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		const uint32_t before = f->flat.bucket_count;
		add(f, i, prng_next(&f->prng));
		assert_true(f->flat.bucket_count - before <= 2);
	}
	for (uint32_t i = 0; i < NUMBERS; i++) {
		const uint32_t before = f->flat.bucket_count;
		remove_number(f, i);
		assert_true(before - f->flat.bucket_count <= 4);
	}
}

static void without_memory_nothing_is_added_and_nothing_is_lost(void **state) {
	struct fixture *f = *state;
	f->counter.max = 1;
	assert_null(flat_add(&f->flat, 1));
	f->counter.max = 0;
	for (uint32_t i = 0; i < 1000; i++) {
		add(f, i, prng_next(&f->prng));
	}
	f->counter.max = f->counter.used;
	uint32_t more = 1000;
	while (more < NUMBERS) {
		f->hash[more] = prng_next(&f->prng);
		struct number *n = (struct number *)flat_add(&f->flat, f->hash[more]);
		if (n == NULL) {
			break;
		}
		n->number = more;
		n->twice = 2 * more;
		f->in[more++] = true;
	}
	/* What is left of the last segment was used. */
	assert_in_range(more, 1000, 1000 + 2 * FLAT_SEGMENT);
	check_all(f);
	f->counter.max = 0;
	for (uint32_t i = more; i < NUMBERS; i++) {
		add(f, i, prng_next(&f->prng));
	}
	check_all(f);
}

/* ---- the list of segments ---- */

static void check_segments(const struct directory *d, const uint32_t *numbers) {
	for (uint32_t i = 0; i < d->count; i++) {
		assert_int_equal(*(uint32_t *)d->segments[i], numbers[i]);
	}
}

static void a_list_of_segments_is_copied_a_few_places_at_a_time(void **state) {
	struct fixture *f = *state;
	static uint32_t numbers[NUMBERS];
	struct directory d = { 0 };
	uint32_t next = 0, copies = 0;
	for (uint32_t i = 0; i < NUMBERS; i++) {
		/* It mostly grows, and now and then loses up to half of its segments. */
		for (int64_t n = i % 500 == 499 ? prng_between(&f->prng, 0, d.count / 2) : 0;
			n > 0; n--) {
			directory_drop(&f->alloc, &d, sizeof *numbers);
		}
		const uint32_t copied = d.copied, size = d.size;
		assert_true(directory_add(&f->alloc, &d, sizeof *numbers));
		numbers[d.count - 1] = next;
		*(uint32_t *)d.segments[d.count - 1] = next++;
		/* One that is full is replaced by one that is ready. */
		assert_true(d.size == size || size == 0 || copied == size);
		assert_true(d.size != size || d.copied <= copied + 2);
		copies += d.copied > copied;
		check_segments(&d, numbers);
	}
	assert_true(copies > 0);
	directory_done(&f->alloc, &d, sizeof *numbers);
}

static void a_list_of_segments_without_memory_stays_as_it_is(void **state) {
	struct fixture *f = *state;
	static uint32_t numbers[NUMBERS];
	struct directory d = { 0 };
	uint32_t refused = 0;
	for (uint32_t i = 0; d.count < 300; i++) {
		f->counter.max = i % 3 ? 0 : f->counter.used + (size_t)prng_between(&f->prng, 0, 4);
		const uint32_t before = d.count;
		if (directory_add(&f->alloc, &d, sizeof *numbers)) {
			numbers[before] = i;
			*(uint32_t *)d.segments[before] = i;
		} else {
			refused++;
			assert_int_equal(d.count, before);
		}
		check_segments(&d, numbers);
	}
	assert_true(refused > 0);
	f->counter.max = 0;
	directory_done(&f->alloc, &d, sizeof *numbers);
}

UNIT(base_flat) {
	const struct CMUnitTest tests[] = {
#define FLAT(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
		FLAT(a_flat_table_holds_what_a_naive_model_holds),
		FLAT(entries_with_equal_hashes_are_all_found),
		FLAT(an_entry_takes_four_bytes_more_than_its_own),
		FLAT(a_flat_table_gives_memory_back_when_it_empties),
		FLAT(no_operation_moves_more_than_four_buckets),
		FLAT(without_memory_nothing_is_added_and_nothing_is_lost),
		FLAT(a_list_of_segments_is_copied_a_few_places_at_a_time),
		FLAT(a_list_of_segments_without_memory_stays_as_it_is),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
