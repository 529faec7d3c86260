/* These tests are about anti-entropy among masters in the background: a master that missed writes
 * gets back to the state of the others without extensions. */
#include "named.h"

#include <stdio.h>

#include "store.h"

/* The request_timeout of the stage. */
#define ROUND (100 * SPAN_MS)
#define LONG (8 * SPAN_S)

static const struct id128 no_lock = { { 0 } };

static struct id128 lock_of(uint32_t number) {
	struct id128 id = { { 1 } };
	memcpy(id.b + 4, &number, sizeof number);
	return id;
}

static const char *key_of(uint32_t number) {
	static char name[16];
	snprintf(name, sizeof name, "key%u", number);
	return name;
}

/* Puts a record on one master and on no other. */
static void put(struct stage *s, uint32_t node, const char *key, struct id128 lock,
	uint64_t token) {
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str(key),
		.lock_id = lock, .token = token, .lease_us = (uint64_t)LONG / 1000,
		.ballot = { token, 1, 1 }, .value = slice_str("v"), .owner = slice_str("o") };
	stage_inject(s, node == 0 ? 1 : 0, node, &m);
}

static bool has(const struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

static uint64_t token_at(const struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token = 0, noted;
	core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
	return token;
}

static uint64_t sync_messages(const struct stage *s) {
	uint64_t sum = 0;
	for (int kind = MESSAGE_SYNC_GROUPS; kind <= MESSAGE_SYNC_RECORD; kind++) {
		sum += stage_sent(s, (enum message_kind)kind);
	}
	return sum;
}

/* The lists of repairs and of releases to be sent again keep one entry each, so that all but the
 * last one is left to what is tested. */
static int setup_forgetful(void **state) {
	struct stage_options o = named_options();
	o.limits.catching_up = 1;
	o.limits.released = 256;
	o.limits.judged_a_turn = 1;
	*state = stage_born(&o);
	return 0;
}

static void acquire(struct stage *s, uint32_t from, uint32_t to) {
	for (uint32_t i = from; i < to; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire(key_of(i), lock_of(i), LONG, 0)),
			PAWL_OK);
	}
}

static void a_master_that_was_cut_off_gets_back_to_the_others_state(void **state) {
	struct stage *s = *state;
	acquire(s, 0, 30);
	stage_isolate(s, 2, true);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(release(s, 0, key_of(i), lock_of(i)), PAWL_OK);
	}
	acquire(s, 30, 60);
	stage_isolate(s, 2, false);
	stage_wait(s, 10 * ROUND);
	for (uint32_t i = 0; i < 60; i++) {
		assert_int_equal(has(s, 0, key_of(i), lock_of(i)), i >= 20);
		assert_int_equal(has(s, 2, key_of(i), lock_of(i)), i >= 20);
		assert_int_equal(token_at(s, 2, key_of(i), lock_of(i)),
			token_at(s, 0, key_of(i), lock_of(i)));
	}
	assert_true(stage_count(s, COUNT_sync_learned) >= 29);
	assert_true(stage_count(s, COUNT_sync_released) + stage_count(s, COUNT_sync_dropped) >= 19);
	assert_int_equal(stage_count(s, COUNT_extend_ok), 0);
}

static void masters_that_agree_exchange_one_small_message_a_round(void **state) {
	struct stage *s = *state;
	acquire(s, 0, 10);
	stage_wait(s, 2 * ROUND);
	uint64_t roots = stage_sent(s, MESSAGE_SYNC_ROOT), others = sync_messages(s);
	stage_wait(s, 10 * ROUND);
	roots = stage_sent(s, MESSAGE_SYNC_ROOT) - roots;
	assert_true(roots >= 6 * 8 && roots <= 6 * 11);
	assert_int_equal(sync_messages(s), others);
}

static int setup_large(void **state) {
	struct stage_options o = named_options();
	o.unchecked = true;
	o.limits.catching_up = 1;
	*state = stage_born(&o);
	return 0;
}

static void the_cost_follows_the_difference_and_not_the_table(void **state) {
	struct stage *s = *state;
	acquire(s, 0, 2000);
	stage_wait(s, 4 * ROUND);
	uint64_t before = sync_messages(s), pulled = stage_count(s, COUNT_sync_leaf_pulled),
		records = stage_sent(s, MESSAGE_SYNC_RECORD);
	for (uint32_t i = 0; i < 3; i++) {
		put(s, 0, key_of(5000 + i), lock_of(5000 + i), 3000 + i);
		put(s, 1, key_of(5000 + i), lock_of(5000 + i), 3000 + i);
	}
	stage_wait(s, 6 * ROUND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(has(s, 2, key_of(5000 + i), lock_of(5000 + i)));
	}
	assert_true(stage_sent(s, MESSAGE_SYNC_RECORD) - records <= 3);
	/* There are three leaves and four links, and each is pulled twice at most. */
	assert_true(stage_count(s, COUNT_sync_leaf_pulled) - pulled <= 24);
	assert_true(sync_messages(s) - before <= 100);
	for (uint32_t i = 0; i < 3; i++) {
		core_check(s->nodes[i].core);
	}
}

static void what_is_merely_on_its_way_is_not_pulled(void **state) {
	struct stage *s = *state;
	put(s, 0, "k", stage_lock(1), 5);
	put(s, 1, "k", stage_lock(1), 5);
	/* Nobody compares twice. */
	stage_wait(s, ROUND - 10 * SPAN_MS);
	assert_true(stage_sent(s, MESSAGE_SYNC_LEAVES) > 0);
	put(s, 2, "k", stage_lock(1), 5);
	stage_wait(s, 4 * ROUND);
	assert_int_equal(stage_count(s, COUNT_sync_leaf_pulled), 0);
	assert_int_equal(stage_sent(s, MESSAGE_SYNC_KEYS), 0);
}

/* There are more records that no quorum has than an exchange looks at, and everywhere. What can be
 * repaired gets its turn nevertheless. */
static void what_cannot_be_mended_keeps_nothing_else_from_it(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 6000; i++) {
		put(s, i % 3, key_of(i), lock_of(i), 100 + i);
	}
	for (uint32_t i = 6000; i < 6100; i++) {
		put(s, 0, key_of(i), lock_of(i), 100 + i);
		put(s, 1, key_of(i), lock_of(i), 100 + i);
	}
	stage_wait(s, 70 * ROUND);
	uint32_t missing = 0;
	for (uint32_t i = 6000; i < 6100; i++) {
		missing += !has(s, 2, key_of(i), lock_of(i));
	}
	assert_int_equal(missing, 0);
	assert_int_equal(stage_count(s, COUNT_sync_learned), 100);
	for (uint32_t i = 0; i < 3; i++) {
		core_check(s->nodes[i].core);
	}
}

static void what_a_failed_commit_left_on_one_master_is_not_spread_and_goes(void **state) {
	struct stage *s = *state;
	put(s, 1, "k", stage_lock(1), 5);
	stage_wait(s, 2 * ROUND);
	/* The commit of this record may still be counting. */
	assert_true(has(s, 1, "k", stage_lock(1)));
	stage_wait(s, 8 * ROUND);
	assert_int_equal(stage_count(s, COUNT_sync_dropped), 1);
	assert_false(has(s, 1, "k", stage_lock(1)));
	assert_false(has(s, 0, "k", stage_lock(1)));
	assert_false(has(s, 2, "k", stage_lock(1)));
	assert_true(stage_count(s, COUNT_sync_not_enough) > 0);
	assert_int_equal(stage_count(s, COUNT_sync_learned), 0);
}

/* Each question is answered with 2,048 records at most, and there are 2,100. */
static void what_was_not_listed_for_want_of_room_is_not_taken_for_absent(void **state) {
	struct stage *s = *state;
	struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .token = 5,
		.lease_us = (uint64_t)LONG / 1000, .ballot = { 5, 1, 1 },
		.terms = { .of = MODE_SHARED } };
	for (uint32_t i = 0; i < 2103; i++) {
		m.key = slice_str(key_of(i % 3));
		m.lock_id = lock_of(i);
		/* Only n1 has the last ones, so that there is something to compare. */
		for (uint32_t to = 0; to < (i < 2100 ? 3 : 1); to++) {
			stage_inject(s, to == 0 ? 1 : 0, to, &m);
		}
	}
	stage_wait(s, 12 * ROUND);
	assert_true(stage_count(s, COUNT_sync_leaf_pulled) > 0);
	assert_int_equal(stage_status(s, 0).held, 2103);
}

static void a_released_record_does_not_come_back(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 3; i++) {
		put(s, i, "k", stage_lock(1), 5);
	}
	struct message m = { .kind = MESSAGE_RELEASE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1) };
	stage_inject(s, 1, 0, &m);
	stage_wait(s, 6 * ROUND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(has(s, i, "k", stage_lock(1)));
	}
	assert_int_equal(stage_count(s, COUNT_sync_learned), 0);
	assert_int_equal(stage_count(s, COUNT_sync_released), 2);
}

static void a_record_that_was_released_and_forgotten_is_not_spread_by_the_one_who_missed_it(
	void **state) {
	struct stage *s = *state;
	/* Nodes 0 and 1 know nothing of it any more. */
	put(s, 2, "k", stage_lock(1), 5);
	stage_wait(s, 6 * ROUND);
	assert_int_equal(stage_status(s, 0).held + stage_status(s, 1).held, 0);
}

static void a_record_is_learned_as_a_quorum_has_it_and_not_as_one_master_alone(void **state) {
	struct stage *s = *state;
	put(s, 0, "k", stage_lock(1), 5);
	/* This is a repeat whose commit reached only this master. */
	put(s, 1, "k", stage_lock(1), 9);
	stage_wait(s, 6 * ROUND);
	assert_int_equal(token_at(s, 0, "k", stage_lock(1)), 5);
	assert_int_equal(token_at(s, 1, "k", stage_lock(1)), 9);
	assert_int_equal(token_at(s, 2, "k", stage_lock(1)), 5);
}

static void another_lock_in_the_way_is_not_displaced(void **state) {
	struct stage *s = *state;
	put(s, 0, "k", stage_lock(1), 5);
	put(s, 1, "k", stage_lock(1), 5);
	put(s, 2, "k", stage_lock(2), 7);
	stage_wait(s, 2 * ROUND);
	assert_false(has(s, 2, "k", stage_lock(1)));
	assert_true(has(s, 2, "k", stage_lock(2)));
	assert_true(holds(s, 0, "k", stage_lock(1)));
	/* Nobody can have been answered with the other token. */
	stage_wait(s, 8 * ROUND);
	assert_true(has(s, 2, "k", stage_lock(1)));
	assert_false(has(s, 2, "k", stage_lock(2)));
}

/* The record has run out here, and is about to run out at the others, which still report it.
 * Whoever was waiting for that has been promised the key. */
static void a_promise_is_not_displaced(void **state) {
	struct stage *s = *state;
	struct message m = { .kind = MESSAGE_PROMISE, .round = 1 << 16, .attempt = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(2) };
	put(s, 0, "k", stage_lock(1), 5);
	put(s, 1, "k", stage_lock(1), 5);
	for (int i = 0; i < 24; i++) {
		stage_inject(s, 0, 2, &m);
		stage_wait(s, ROUND / 4);
	}
	assert_int_equal(stage_count(s, COUNT_promise_displaced), 0);
	assert_false(has(s, 2, "k", stage_lock(1)));
	stage_wait(s, 6 * ROUND);
	assert_true(has(s, 2, "k", stage_lock(1)));
}

static void a_learned_record_does_not_outlive_its_source(void **state) {
	struct stage *s = *state;
	put(s, 0, "k", stage_lock(1), 5);
	put(s, 1, "k", stage_lock(1), 5);
	stage_wait(s, 6 * ROUND);
	assert_true(has(s, 2, "k", stage_lock(1)));
	stage_wait(s, LONG - 6 * ROUND);
	stage_wait(s, 20 * SPAN_MS);
	assert_false(has(s, 0, "k", stage_lock(1)));
	assert_false(has(s, 2, "k", stage_lock(1)));
}

static void a_value_that_one_master_missed_reaches_it(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	stage_isolate(s, 2, true);
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str("new");
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	stage_isolate(s, 2, false);
	stage_wait(s, 6 * ROUND);
	r = stage_request(CORE_GET, "k", no_lock);
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_int_equal(stage_last(s)->value.size, 3);
	assert_memory_equal(stage_last(s)->value.bytes, "new", 3);
}

static void a_bar_that_one_master_missed_reaches_it(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	struct message m = { .kind = MESSAGE_BREAK, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1) };
	stage_inject(s, 1, 0, &m);
	stage_wait(s, 6 * ROUND);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_EDENIED);
	assert_true(stage_count(s, COUNT_extend_refused_barred) >= 2);
}

/* ---- many keys in one leaf ---- */

enum { LEAF = 77, IN_LEAF = 300, A_TURN = 16 };

static int setup_pieces(void **state) {
	struct stage_options o = named_options();
	o.unchecked = true;
	o.limits.catching_up = 1;
	o.limits.judged_a_turn = A_TURN;
	*state = stage_born(&o);
	return 0;
}

/* Finds the next name behind number *at that falls into the leaf. */
static const char *key_in_leaf(uint32_t *at) {
	do {
		++*at;
	} while (digest_leaf_of(slice_str(key_of(*at))) != LEAF);
	return key_of(*at);
}

/* Returns how many records have been judged that are not as they should be. */
static uint64_t judged(const struct stage *s) {
	return stage_count(s, COUNT_sync_dropped) + stage_sent(s, MESSAGE_SYNC_FETCH);
}

/* Lets time pass, and returns the most records that one step has judged. */
static uint64_t most_judged_at_once(struct stage *s, span_ns span) {
	uint64_t most = 0, before = judged(s);
	for (span_ns t = 0; t < span; t += SPAN_MS) {
		stage_jump(s, SPAN_MS);
		stage_tick(s);
		most = judged(s) - before > most ? judged(s) - before : most;
		stage_settle(s);
		before = judged(s);
	}
	return most;
}

/* Whoever chooses names that fall into one leaf makes no step long. */
static void a_leaf_with_many_keys_is_judged_in_pieces(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0, at = 0; i < IN_LEAF; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire(key_in_leaf(&at), lock_of(i), LONG,
			0)), PAWL_OK);
	}
	stage_isolate(s, 2, true);
	for (uint32_t i = 0, at = 0; i < IN_LEAF; i++) {
		assert_int_equal(release(s, 0, key_in_leaf(&at), lock_of(i)), PAWL_OK);
	}
	stage_wait(s, 3 * ROUND);
	stage_isolate(s, 2, false);
	stage_mend(s);
	assert_in_range(most_judged_at_once(s, 20 * ROUND), 1, A_TURN);
	assert_int_equal(stage_status(s, 2).held, 0);
}

/* A list holds 2,048 records. */
static void a_leaf_with_more_than_a_list_holds_is_learned_whole(void **state) {
	struct stage *s = *state;
	stage_isolate(s, 2, true);
	for (uint32_t i = 0, at = 0; i < 300; i++) {
		const char *key = key_in_leaf(&at);
		for (uint32_t j = 0; j < 10; j++) {
			struct core_request r = stage_acquire(key, lock_of(10 * i + j), LONG, 0);
			r.terms.of = MODE_SHARED;
			assert_int_equal(stage_do(s, 0, r), PAWL_OK);
		}
	}
	stage_isolate(s, 2, false);
	stage_wait(s, LONG / 2);
	assert_int_equal(stage_status(s, 2).held, 3000);
}

static void nonsense_in_an_exchange_changes_nothing(void **state) {
	struct stage *s = *state;
	acquire(s, 0, 5);
	static const uint8_t bytes[2000] = { 255 };
	for (int kind = MESSAGE_SYNC_ROOT; kind <= MESSAGE_SYNC_RECORD; kind++) {
		for (uint64_t round = 0; round < 40; round++) {
			struct message m = { .kind = (enum message_kind)kind, .round = round,
				.key = slice_str("key1"), .lock_id = lock_of(77),
				.number = round % 3, .blob = slice_of(bytes, (size_t)round * 50) };
			stage_inject(s, 1, 0, &m);
		}
	}
	stage_wait(s, 4 * ROUND);
	assert_int_equal(stage_status(s, 0).held, 5);
	assert_int_equal(stage_status(s, 0).keys, 5);
}

UNIT(cluster_sync) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_master_that_was_cut_off_gets_back_to_the_others_state, setup_forgetful,
			named_teardown),
		NAMED(masters_that_agree_exchange_one_small_message_a_round),
		cmocka_unit_test_setup_teardown(the_cost_follows_the_difference_and_not_the_table,
			setup_large, named_teardown),
		cmocka_unit_test_setup_teardown(a_leaf_with_many_keys_is_judged_in_pieces,
			setup_pieces, named_teardown),
		cmocka_unit_test_setup_teardown(a_leaf_with_more_than_a_list_holds_is_learned_whole,
			setup_pieces, named_teardown),
		NAMED(what_is_merely_on_its_way_is_not_pulled),
		cmocka_unit_test_setup_teardown(what_cannot_be_mended_keeps_nothing_else_from_it,
			setup_large, named_teardown),
		NAMED(what_a_failed_commit_left_on_one_master_is_not_spread_and_goes),
		cmocka_unit_test_setup_teardown(
			what_was_not_listed_for_want_of_room_is_not_taken_for_absent, setup_large,
			named_teardown),
		NAMED(a_released_record_does_not_come_back),
		NAMED(
		a_record_that_was_released_and_forgotten_is_not_spread_by_the_one_who_missed_it),
		NAMED(a_record_is_learned_as_a_quorum_has_it_and_not_as_one_master_alone),
		NAMED(another_lock_in_the_way_is_not_displaced),
		NAMED(a_promise_is_not_displaced),
		NAMED(a_learned_record_does_not_outlive_its_source),
		NAMED(a_value_that_one_master_missed_reaches_it),
		NAMED(a_bar_that_one_master_missed_reaches_it),
		NAMED(nonsense_in_an_exchange_changes_nothing),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
