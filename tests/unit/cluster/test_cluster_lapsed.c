/* What a master remembers of lock_ids that it lacks, in bounded memory (docs/protocol.md,
 * section 2, Acquire). */
#include "modes.h"
#include "replicas.h"

#include "store.h"

#define OTHERS 1000u
#define WAITERS 20u

/* Both halves of a lock_id differ, as if it were random: the keys of the stage's hashes are not. */
static struct id128 any_lock(uint32_t i) {
	struct id128 lock = stage_lock(1);
	memcpy(lock.b + 4, &i, sizeof i);
	memcpy(lock.b + 11, &i, sizeof i);
	lock.b[9] = 1;
	return lock;
}

static int lapsed_setup(void **state) {
	struct stage_options o = named_options();
	o.unchecked = true;
	o.limits.lacked = 2 * OTHERS;
	*state = stage_born(&o);
	return 0;
}

/* All lock_ids share one place. */
static int crowded_setup(void **state) {
	struct stage_options o = named_options();
	o.limits.lacked = 1;
	*state = stage_born(&o);
	return 0;
}

#define LAPSED(test) cmocka_unit_test_setup_teardown(test, lapsed_setup, named_teardown)
#define CROWDED(test) cmocka_unit_test_setup_teardown(test, crowded_setup, named_teardown)

static void a_hand_over_takes_no_other_round_because_leases_of_others_have_ended(void **state) {
	struct stage *s = *state;
	char key[16];
	uint64_t ids[WAITERS];
	for (uint32_t i = 0; i < WAITERS; i++) {
		snprintf(key, sizeof key, "k%u", i);
		assert_int_equal(stage_do(s, 0, stage_acquire(key, stage_lock(1), 9 * SPAN_S, 0)),
			PAWL_OK);
		ids[i] = wait_for(s, 1, key, any_lock(OTHERS + i));
	}
	for (uint32_t i = 0; i < OTHERS; i++) {
		assert_int_equal(stage_do(s, i % 3, stage_acquire(numbered(key, i),
			any_lock(i), 150 * SPAN_MS, 0)), PAWL_OK);
	}
	stage_wait(s, SPAN_S);
	const uint64_t asked = stage_sent(s, MESSAGE_PROMISE);
	for (uint32_t i = 0; i < WAITERS; i++) {
		snprintf(key, sizeof key, "k%u", i);
		assert_int_equal(release(s, 0, key, stage_lock(1)), PAWL_OK);
		token_of(s, ids[i]);
	}
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), asked);
	assert_int_equal(stage_count(s, COUNT_promise_unlapsed), 0);
}

/* ---- what has left its place ---- */

/* Each ends later than the one before. */
static void end_others(struct stage *s, uint32_t from, uint32_t to) {
	char key[16];
	for (uint32_t i = from; i < to; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire(numbered(key, i), any_lock(i),
			150 * SPAN_MS, 0)), PAWL_OK);
		stage_wait(s, 200 * SPAN_MS);
	}
}

static uint64_t lacked_at_n1(const struct stage *s, uint32_t i) {
	return lacked_us(s->nodes[0].core, any_lock(i));
}

static void a_lock_id_that_is_remembered_is_told_from_the_others(void **state) {
	struct stage *s = *state;
	end_others(s, 0, 4);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(lacked_at_n1(s, i) > lacked_at_n1(s, i + 1));
		assert_true(first_lacked_us(s->nodes[0].core, any_lock(i)) >
			first_lacked_us(s->nodes[0].core, any_lock(i + 1)));
	}
	/* Nothing has left the place yet. */
	assert_true(lacked_at_n1(s, 99) > lacked_at_n1(s, 0));
}

/* The third one has left last. */
static void a_lock_id_that_has_left_its_place_has_not_been_lacking_for_long(void **state) {
	struct stage *s = *state;
	end_others(s, 0, 3);
	const uint64_t third = lacked_at_n1(s, 2);
	const int64_t then = s->now;
	end_others(s, 3, 7);
	const uint64_t now = third + (uint64_t)(s->now - then) / SPAN_US;
	/* The clocks of the stage drift. */
	assert_in_range(lacked_at_n1(s, 99), 1, now + now / 50);
	assert_int_equal(lacked_at_n1(s, 0), lacked_at_n1(s, 99));
	assert_int_equal(lacked_at_n1(s, 2), lacked_at_n1(s, 99));
	assert_true(lacked_at_n1(s, 3) < lacked_at_n1(s, 2));
}

/* The lock_id that is ended again has not left in the meantime: the one before it does. */
static void a_lock_id_that_ends_again_stays(void **state) {
	struct stage *s = *state;
	end_others(s, 0, 4);
	end_others(s, 0, 1);
	end_others(s, 4, 5);
	assert_int_equal(lacked_at_n1(s, 1), lacked_at_n1(s, 99));
	assert_true(lacked_at_n1(s, 0) < lacked_at_n1(s, 3));
}

/* A coordinator has named this ballot with its promise, which is dropped. */
static void note_ballot(struct stage *s, uint32_t i, uint64_t clock) {
	char key[16];
	const struct slice name = slice_str(numbered(key, i));
	stage_inject(s, 1, 0, &(struct message){ .kind = MESSAGE_PROMISE, .round = 1 << 16,
		.attempt = 1 << 16, .key = name, .lock_id = any_lock(i),
		.ballot = { clock, 1, 1 } });
	stage_inject(s, 1, 0, &(struct message){ .kind = MESSAGE_WITHDRAW, .attempt = 1 << 16,
		.key = name, .lock_id = any_lock(i) });
}

static bool commits(struct stage *s, uint32_t i, uint64_t clock) {
	char key[16];
	stage_inject(s, 1, 0, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 17, .key = slice_str(numbered(key, i)), .lock_id = any_lock(i),
		.token = stage_status(s, 0).clock + 1, .lease_us = 1000000,
		.ballot = { clock, 1, 1 } });
	return has(s, 0, key, any_lock(i));
}

/* Five others come, so that it is not remembered itself any more. */
static void a_ballot_that_has_left_its_place_is_not_forgotten(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 0).clock;
	note_ballot(s, 0, clock + 100);
	for (uint32_t i = 1; i < 6; i++) {
		note_ballot(s, i, clock + 10);
	}
	assert_false(commits(s, 0, clock + 50));
	assert_int_equal(stage_count(s, COUNT_commit_overtaken_first), 1);
	assert_true(commits(s, 4, clock + 50));
	assert_true(commits(s, 0, clock + 150));
}

/* It comes back with a lower ballot. */
static void a_ballot_that_has_left_its_place_counts_when_its_lock_id_comes_again(void **state) {
	struct stage *s = *state;
	const uint64_t clock = stage_status(s, 0).clock;
	note_ballot(s, 0, clock + 100);
	for (uint32_t i = 1; i < 6; i++) {
		note_ballot(s, i, clock + 10);
	}
	note_ballot(s, 0, clock + 20);
	assert_false(commits(s, 0, clock + 50));
}

UNIT(cluster_lapsed) {
	const struct CMUnitTest tests[] = {
		LAPSED(a_hand_over_takes_no_other_round_because_leases_of_others_have_ended),
		CROWDED(a_lock_id_that_is_remembered_is_told_from_the_others),
		CROWDED(a_lock_id_that_has_left_its_place_has_not_been_lacking_for_long),
		CROWDED(a_lock_id_that_ends_again_stays),
		CROWDED(a_ballot_that_has_left_its_place_is_not_forgotten),
		CROWDED(a_ballot_that_has_left_its_place_counts_when_its_lock_id_comes_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
