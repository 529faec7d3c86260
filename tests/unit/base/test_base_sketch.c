/* These tests are about the sketch that knows which keys something happens to most often. */
#include "unit.h"

#include <stdio.h>

#include "prng.h"
#include "siphash.h"
#include "sketch.h"

static struct sketch sketch;

static void add(const char *key) {
	const struct slice s = slice_str(key);
	sketch_add(&sketch, siphash_short((struct siphash_key){ 1, 2 }, s.data, s.size), s);
}

static void add_number(uint32_t i) {
	char key[16];
	snprintf(key, sizeof key, "key-%u", i);
	add(key);
}

/* Returns how often it has happened to the key; 0 if it is not known. */
static uint64_t count_of(const char *key) {
	uint64_t found = 0;
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		struct slice name;
		const uint64_t count = sketch_count(&sketch, i, &name);
		if (count > 0 && slice_equal(name, slice_str(key))) {
			assert_int_equal(found, 0);
			found = count;
		}
	}
	return found;
}

static int empty(void **state) {
	(void)state;
	sketch = (struct sketch){ .slot = 0 };
	return 0;
}

static void few_keys_are_counted_exactly(void **state) {
	(void)state;
	assert_int_equal(count_of("key-1"), 0);
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		for (uint32_t n = 0; n <= i; n++) {
			add_number(i);
		}
	}
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		char key[16];
		snprintf(key, sizeof key, "key-%u", i);
		assert_int_equal(count_of(key), i + 1);
	}
}

static void a_hot_key_is_found_among_very_many(void **state) {
	struct prng p;
	uint64_t hot = 0;
	(void)state;
	prng_init(&p, 7);
	for (uint32_t i = 0; i < 100000; i++) {
		if (prng_next(&p) % 20 == 0) {
			add("hot");
			hot++;
		} else {
			add_number(i);
		}
	}
	/* No count is above the truth, and a key with a twentieth of all is never displaced once it
	 * is ahead. */
	assert_in_range(count_of("hot"), hot * 9 / 10, hot);
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		struct slice name;
		const uint64_t count = sketch_count(&sketch, i, &name);
		assert_true(slice_equal(name, slice_str("hot")) || count <= 1);
	}
}

static void what_is_long_ago_is_forgotten(void **state) {
	(void)state;
	add("a");
	sketch_turn(&sketch);
	add("a");
	add("b");
	for (uint32_t i = 2; i < SKETCH_SLOTS; i++) {
		sketch_turn(&sketch);
		assert_int_equal(count_of("a"), 2);
	}
	sketch_turn(&sketch);
	assert_int_equal(count_of("a"), 1);
	assert_int_equal(count_of("b"), 1);
	sketch_turn(&sketch);
	assert_int_equal(count_of("a"), 0);
	assert_int_equal(count_of("b"), 0);
	/* A place whose key is forgotten serves for any other. */
	for (uint32_t i = 0; i < SKETCH_KEYS; i++) {
		add_number(i);
	}
	assert_int_equal(count_of("key-0"), 1);
	assert_int_equal(count_of("key-63"), 1);
}

UNIT(base_sketch) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(few_keys_are_counted_exactly, empty),
		cmocka_unit_test_setup(a_hot_key_is_found_among_very_many, empty),
		cmocka_unit_test_setup(what_is_long_ago_is_forgotten, empty),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
