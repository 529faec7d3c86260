/* What a member that lies cannot do to the others (docs/guarantees.md, A node that lies): found by tests/fuzz/fuzz_member.c. */
#include "named.h"

/* It would exclude all locks but permits, and none of those; and no release names it. */
static void a_record_of_a_semaphore_without_numbers_is_nobodys_and_not_taken(void **state) {
	struct stage *s = *state;
	static const enum message_kind kinds[] = { MESSAGE_COMMIT, MESSAGE_LEARN, MESSAGE_FETCH_ANSWER, MESSAGE_SNAPSHOT_RECORD, MESSAGE_FEED_RECORD,
		MESSAGE_SYNC_RECORD };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		const struct message m = { .kind = kinds[i], .round = 1 << 16, .attempt = 1, .key = slice_str("k"), .lock_id = stage_lock(1),
			.token = stage_status(s, 0).clock + 1, .lease_us = 1000000, .left_us = 1000000, .terms = { .of = 3, .count = 1 } };
		stage_inject(s, 2, 0, &m);
		assert_int_equal(core_counts(s->nodes[0].core)[COUNT_unsound], i + 1);
		assert_int_equal(stage_status(s, 0).keys, 0);
	}
	take(s, 0, "k", stage_lock(2));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		NAMED(a_record_of_a_semaphore_without_numbers_is_nobodys_and_not_taken),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
