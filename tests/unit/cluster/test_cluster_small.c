/* These tests are about what is packed so that a lease takes little memory: the keys of a leaf, who
 * drew a ballot, and what few keys have, such as an index of the records. */
#include "named.h"

#include <stdio.h>

#include "failing.h"
#include "store.h"

/* More than three pieces of a leaf. */
#define KEYS (3 * LEAF_PIECE + 5)
#define ORIGINS 200
#define ORIGINS_AT_ONCE 65535

static struct slice name_of(uint32_t n, char text[16]) {
	const int size = snprintf(text, 16, "key-%u", (unsigned)n);
	return slice_of((const uint8_t *)text, (size_t)size);
}

/* Makes keys of one leaf in the staging table, where no step looks at them. */
static void make_keys(struct core *core, uint16_t leaf, struct key *keys[KEYS]) {
	uint32_t made = 0;
	for (uint32_t n = 0; made < KEYS; n++) {
		char text[16];
		const struct slice name = name_of(n, text);
		if (digest_leaf_of(name) == leaf) {
			keys[made] = table_make_in(core, table_staging(core), name);
			assert_non_null(keys[made++]);
		}
	}
}

/* Checks that the leaf has exactly the keys that are not NULL. */
static void assert_keys(const struct table *t, uint16_t leaf, struct key *const keys[KEYS]) {
	uint32_t count = 0;
	for (uint32_t i = 0; i < KEYS; i++) {
		count += keys[i] != NULL;
	}
	assert_int_equal(digest_keys(t, leaf), count);
	for (uint32_t i = 0; i < KEYS; i++) {
		uint32_t found = 0;
		for (uint32_t at = 0; keys[i] && at < count; at++) {
			found += digest_key(t, leaf, at) == keys[i];
		}
		assert_int_equal(found, keys[i] != NULL);
	}
}

static void a_leaf_has_its_keys_in_whatever_order_they_go(void **state) {
	(void)state;
	const struct stage_options o = named_options();
	struct stage *s = stage_born(&o);
	struct core *core = s->nodes[0].core;
	struct key *keys[KEYS];
	const uint16_t leaf = digest_leaf_of(slice_str("key-0"));
	for (uint32_t stride = 1; stride < 8; stride += 2) {
		make_keys(core, leaf, keys);
		assert_keys(table_staging(core), leaf, keys);
		/* KEYS is odd, and no multiple of 3, 5 or 7. */
		for (uint32_t i = 0, at = 0; i < KEYS; i++, at = (at + stride) % KEYS) {
			table_free_key(core, keys[at]);
			keys[at] = NULL;
			assert_keys(table_staging(core), leaf, keys);
		}
	}
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static struct ballot ballot_of(uint32_t n) {
	return (struct ballot){ 100 + n, n / 2 + 1, n % 2 ? n | BALLOT_FIRST : n };
}

static void take_number(struct core *core, uint32_t n, uint16_t *number) {
	assert_true(record_origin_take(core, ballot_of(n), number));
	const struct ballot named = origin_ballot(core, ballot_of(n).clock, *number);
	assert_int_equal(ballot_compare(named, ballot_of(n)), 0);
}

static void an_origin_has_one_number_as_long_as_a_record_names_it(void **state) {
	(void)state;
	const struct stage_options o = named_options();
	struct stage *s = stage_born(&o);
	struct core *core = s->nodes[0].core;
	uint16_t numbers[ORIGINS], again;
	uint32_t size = 0;
	for (uint32_t first = 0; first < 10 * ORIGINS; first += ORIGINS) {
		for (uint32_t n = 0; n < ORIGINS; n++) {
			take_number(core, first + n, &numbers[n]);
			take_number(core, first + n, &again);
			assert_int_equal(again, numbers[n]);
		}
		/* Numbers that nobody names are given again. */
		size = size ? size : core->store.origins.size;
		assert_int_equal(core->store.origins.size, size);
		for (uint32_t n = 0; n < ORIGINS; n++) {
			record_origin_give(core, numbers[n]);
			const struct ballot named = origin_ballot(core, 1, numbers[n]);
			assert_int_equal(named.node, ballot_of(first + n).node);
			record_origin_give(core, numbers[n]);
		}
	}
	assert_true(record_origin_take(core, (struct ballot){ 7, 0, 0 }, &again));
	assert_int_equal(again, 0);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void more_origins_than_numbers_are_refused(void **state) {
	(void)state;
	const struct stage_options o = named_options();
	struct stage *s = stage_born(&o);
	struct core *core = s->nodes[0].core;
	uint16_t number;
	for (uint32_t n = 0; n < ORIGINS_AT_ONCE; n++) {
		take_number(core, n, &number);
	}
	struct message m = { .ballot = ballot_of(ORIGINS_AT_ONCE) };
	assert_null(record_new(core, &m));
	m.ballot = ballot_of(3);
	struct record *r = record_new(core, &m);
	assert_non_null(r);
	assert_false(record_write(core, &r, NULL, ballot_of(ORIGINS_AT_ONCE),
		ballot_of(ORIGINS_AT_ONCE)));
	assert_int_equal(ballot_compare(record_wrote(core, r), ballot_of(3)), 0);
	record_free(core, r);
	for (uint32_t n = 1; n <= ORIGINS_AT_ONCE; n++) {
		record_origin_give(core, (uint16_t)n);
	}
	assert_non_null(r = record_new(core, &m));
	record_free(core, r);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void a_value_and_its_ballots_are_set_together_or_not_at_all(void **state) {
	(void)state;
	struct failing memory = { .calls = 0 };
	struct allocator allocator = { failing_resize, &memory };
	struct stage_options o = named_options();
	o.core = &allocator;
	struct stage *s = stage_born(&o);
	struct core *core = s->nodes[0].core;
	const struct slice value = slice_str("longer than the value before");
	const struct message m = { .value = slice_str("before"), .ballot = ballot_of(1) };
	struct record *r = record_new(core, &m);
	assert_non_null(r);
	for (uint32_t failing = 1; failing <= 3; failing++) {
		memory.fail_first = memory.calls + failing;
		memory.fail_count = 1;
		const bool written = record_write(core, &r, &value, ballot_of(5), ballot_of(9));
		memory.fail_first = 0;
		const struct ballot wrote = written ? ballot_of(5) : ballot_of(1),
			prepared = written ? ballot_of(9) : ballot_of(1);
		assert_int_equal(ballot_compare(record_wrote(core, r), wrote), 0);
		assert_int_equal(ballot_compare(record_prepared(core, r), prepared), 0);
		assert_true(slice_equal(record_value(r), written ? value : m.value));
		/* A new origin, and room for the value and the second ballot. */
		assert_int_equal(written, failing > 1);
	}
	record_free(core, r);
	stage_free(s);
	assert_int_equal(memory.used, 0);
}

static void a_key_has_its_promises_with_and_without_what_few_keys_have(void **state) {
	(void)state;
	const struct stage_options o = named_options();
	struct stage *s = stage_born(&o);
	struct core *core = s->nodes[0].core;
	struct key *key = table_make(core, slice_str("k"));
	struct promise *first = key_make_promise(core, key, stage_lock(1));
	first->end = instant_add(core->now, SPAN_S);
	assert_null(key_more(key));
	struct key_more *more = table_more(core, key);
	assert_ptr_equal(key_more(key), more);
	assert_ptr_equal(key_promise(key, stage_lock(1)), first);
	struct promise *second = key_make_promise(core, key, stage_lock(2));
	second->end = first->end;
	assert_ptr_equal(key_promise(key, stage_lock(2)), second);
	/* Nobody waits, so the key gives it back, and keeps its promises. */
	assert_true(table_settle(core, key));
	assert_null(key_more(key));
	assert_ptr_equal(key_promise(key, stage_lock(1)), first);
	assert_ptr_equal(key_promise(key, stage_lock(2)), second);
	key_drop_promise(core, key, second);
	key_drop_promise(core, key, first);
	assert_false(table_settle(core, key));
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static struct record *add_reader(struct core *core, struct key *key, uint8_t lock) {
	const struct message m = { .lock_id = stage_lock(lock), .terms.of = MODE_SHARED,
		.ballot = ballot_of(lock) };
	struct record *r = record_new(core, &m);
	assert_non_null(r);
	key_add_record(core, key, r);
	return r;
}

/* A step may drop all records of a key and add one. The index is freed when the key is settled. */
static void a_record_joins_an_index_that_has_no_other(void **state) {
	(void)state;
	const struct stage_options o = named_options();
	struct stage *s = stage_born(&o);
	struct core *core = s->nodes[0].core;
	struct key *key = table_make_in(core, table_staging(core), slice_str("k"));
	uint8_t lock = 0;
	while (key_index(key) == NULL) {
		add_reader(core, key, ++lock);
	}
	assert_int_equal(key_index(key)->count, lock);
	while (key->held) {
		key_drop_record(core, key, key->held);
	}
	const struct record *first = add_reader(core, key, ++lock);
	const struct record *second = add_reader(core, key, ++lock);
	assert_int_equal(key_index(key)->count, 2);
	assert_ptr_equal(key_record(key, stage_lock((uint8_t)(lock - 1))), first);
	assert_ptr_equal(key_record(key, stage_lock(lock)), second);
	index_check(key);
	table_free_key(core, key);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

UNIT(cluster_small) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaf_has_its_keys_in_whatever_order_they_go),
		cmocka_unit_test(an_origin_has_one_number_as_long_as_a_record_names_it),
		cmocka_unit_test(more_origins_than_numbers_are_refused),
		cmocka_unit_test(a_value_and_its_ballots_are_set_together_or_not_at_all),
		cmocka_unit_test(a_key_has_its_promises_with_and_without_what_few_keys_have),
		cmocka_unit_test(a_record_joins_an_index_that_has_no_other),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
