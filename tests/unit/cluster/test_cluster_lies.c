/* These tests show what a member that lies cannot do to the others (docs/guarantees.md, A node that
 * lies). The cases were found by tests/fuzz/fuzz_member.c. */
#include "members.h"

/* The request_timeout on the stage. */
#define REQUEST (100 * SPAN_MS)

/* Such a record would exclude all locks but permits, and none of those; and no release would name
 * it. */
static void a_record_of_a_semaphore_without_numbers_is_nobodys_and_not_taken(void **state) {
	struct stage *s = *state;
	static const enum message_kind kinds[] = { MESSAGE_COMMIT, MESSAGE_LEARN,
		MESSAGE_FETCH_ANSWER, MESSAGE_SNAPSHOT_RECORD, MESSAGE_FEED_RECORD,
		MESSAGE_SYNC_RECORD };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct message m = { .kind = kinds[i], .round = 1 << 16, .attempt = 1,
			.key = slice_str("k"), .lock_id = stage_lock(1),
			.token = stage_status(s, 0).clock + 1, .lease_us = 1000000,
			.left_us = 1000000, .terms = { .of = 3, .count = 1 } };
		stage_inject(s, 2, 0, &m);
		assert_int_equal(core_counts(s->nodes[0].core)[COUNT_unsound], i + 1);
		assert_int_equal(stage_status(s, 0).keys, 0);
	}
	take(s, 0, "k", stage_lock(2));
}

/* ---- a lease that is longer than any was ever allowed to be ---- */

/* Twelve days, in microseconds. */
#define FOR_EVER (UINT64_C(1) << 40)

static struct message endless(uint64_t round) {
	return (struct message){ .kind = MESSAGE_SNAPSHOT_RECORD, .round = round, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(9), .token = 1, .left_us = FOR_EVER,
		.terms = { .of = MODE_EXCLUSIVE } };
}

/* n3 brings the lease whenever n1 asks for a copy, and says that it is allowed. */
static void bring(struct stage *s, uint32_t to) {
	for (uint64_t round = 1; round < 40; round++) {
		struct message m = endless(round), end = { .kind = MESSAGE_SNAPSHOT_END,
			.round = round, .lease_us = FOR_EVER, .clock = 1, .flags = FLAG_REMEMBERS };
		stage_inject(s, 2, to, &m);
		stage_inject(s, 2, to, &end);
		stage_settle(s);
	}
}

/* n1 has started again. */
static void a_master_that_rejoins_takes_no_lease_that_one_source_alone_has_for_so_long(
	void **state) {
	struct stage *s = *state;
	stage_kill(s, 0);
	lose_to(s, 0, MESSAGE_SNAPSHOT_END, true);
	assert_true(stage_start(s, 0));
	stage_wait(s, 2 * REQUEST);
	lose_to(s, 0, MESSAGE_SNAPSHOT_END, false);
	stage_lose(s, 2, 0, MESSAGE_SNAPSHOT_END, true);
	bring(s, 0);
	stage_wait(s, 2 * REQUEST);
	/* n1 asks again; n3 has said by now that the lease is allowed. */
	bring(s, 0);
	assert_false(knows(s, 0, "k", stage_lock(9)));
	assert_true(count_of(s, 0, COUNT_lease_refused) > 0);
	stage_kill(s, 2);
	assert_true(stage_until_voting(s, 0, 2 * s->options.max_lease));
	take(s, 0, "k", stage_lock(1));
}

/* n4 takes the place of n2, which dies, so that n3 is one of its sources. If it believed n3, it
 * would wait for twelve days when it starts again. */
static void a_new_master_notes_no_lease_that_one_source_alone_has_for_so_long(void **state) {
	struct stage *s = *state;
	stage_lose(s, 2, 3, MESSAGE_SNAPSHOT_END, true);
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, true);
	(void)ask_change(s, 0, set_of("134"));
	stage_kill(s, 1);
	assert_true(wait_until_epoch(s, 3, 2, 20 * SPAN_S));
	bring(s, 3);
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, false);
	assert_true(stage_until_voting(s, 3, 2 * SPAN_S));
	assert_true(s->nodes[3].disk.max_lease_seen <= s->options.max_lease);
	assert_false(knows(s, 3, "k", stage_lock(9)));
	stage_kill(s, 2);
	take(s, 3, "k", stage_lock(1));
}

/* The lease was allowed until a moment ago, and more than one source says so. */
static void a_new_master_takes_a_lease_that_was_allowed_before(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), s->options.max_lease, 0)),
		PAWL_OK);
	must(s, 0, max_lease_of(2 * SPAN_S));
	must(s, 0, set_of("134"));
	assert_true(knows(s, 3, "k", stage_lock(1)));
	assert_true(s->nodes[3].disk.max_lease_seen > 2 * SPAN_S);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		NAMED(a_record_of_a_semaphore_without_numbers_is_nobodys_and_not_taken),
		NAMED(a_master_that_rejoins_takes_no_lease_that_one_source_alone_has_for_so_long),
		MEMBERS(a_new_master_notes_no_lease_that_one_source_alone_has_for_so_long),
		MEMBERS(a_new_master_takes_a_lease_that_was_allowed_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
