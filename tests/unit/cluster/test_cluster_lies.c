/* These tests show what a member that lies cannot do to the others (docs/guarantees.md, A node that
 * lies). The cases were found by tests/fuzz/fuzz_member.c. */
#include <stdio.h>

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

/* ---- floods ---- */

/* n1 hears a frame of n3 that says whether it votes. */
static void say(struct stage *s, bool votes, const struct message *messages, size_t count) {
	const struct core_status status = stage_status(s, 0), liar = stage_status(s, 2);
	const struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[2].disk.node_id, .boot = liar.boot, .clock = liar.clock,
		.flags = votes ? FRAME_VOTING : 0, .messages = messages, .count = count };
	stage_step(s, 0, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, 0, 2),
		.frame = &frame });
}

/* n3 puts a record on n1, if n1 accepts it. */
static bool teaches(struct stage *s, uint8_t lock) {
	const uint8_t key[] = { 't', lock };
	const struct message learn = { .kind = MESSAGE_LEARN, .round = 1 << 16,
		.key = slice_of(key, sizeof key), .lock_id = stage_lock(lock), .token = lock,
		.lease_us = 1000000, .terms = { .of = 0 }, .ballot = { lock, 1, 1 } };
	say(s, true, &learn, 1);
	uint64_t token, noted;
	return core_peek(s->nodes[0].core, slice_of(key, sizeof key), stage_lock(lock), &token,
		&noted);
}

/* With each change, n1 goes through all operations that are under way. */
static void a_master_that_changes_its_vote_again_and_again_loses_its_link(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	assert_true(teaches(s, 50));
	for (int i = 0; i < 15; i++) {
		say(s, i % 2, NULL, 0);
	}
	/* It may do so a few times. */
	assert_true(teaches(s, 51));
	assert_false(stage_noted(s, 0, NOTE_UNSTEADY));
	say(s, false, NULL, 0);
	assert_true(stage_noted(s, 0, NOTE_UNSTEADY));
	assert_false(teaches(s, 52));
	assert_int_equal(count_of(s, 0, COUNT_unsteady), 1);
	take(s, 0, "other", stage_lock(2));
	stage_mend(s);
	stage_settle(s);
	assert_true(teaches(s, 53));
	/* With its new link it may not do more. */
	say(s, false, NULL, 0);
	assert_int_equal(count_of(s, 0, COUNT_unsteady), 2);
	stage_wait(s, REQUEST / 4 + 5 * SPAN_MS);
	stage_mend(s);
	stage_settle(s);
	say(s, false, NULL, 0);
	assert_int_equal(count_of(s, 0, COUNT_unsteady), 2);
}

/* n3 asks for the records of these leaves. Returns how many bytes n1 answers. */
static size_t ask_leaves(struct stage *s, const uint8_t *leaves, size_t size) {
	const struct message ask = { .kind = MESSAGE_SYNC_ASK, .round = 1, .number = 1,
		.blob = slice_of(leaves, size) };
	size_t bytes = 0;
	say(s, true, &ask, 1);
	for (; s->links[0][2].count > 0; stage_drop(s, 0, 2)) {
		bytes += s->links[0][2].head->size;
	}
	return bytes;
}

/* Each time n1 would go through all keys of the leaf. */
static void a_leaf_that_is_asked_for_again_and_again_is_listed_a_few_times(void **state) {
	struct stage *s = *state;
	static uint8_t leaves[60000];
	uint32_t leaf = 0;
	take(s, 0, "k", stage_lock(1));
	const size_t empty = ask_leaves(s, leaves, 0);
	do {
		leaves[0] = (uint8_t)leaf;
		leaves[1] = (uint8_t)(leaf >> 8);
	} while (ask_leaves(s, leaves, 2) == empty && ++leaf < 16384);
	const size_t one = ask_leaves(s, leaves, 2) - empty;
	assert_true(one > 60);
	for (size_t i = 2; i < sizeof leaves; i++) {
		leaves[i] = leaves[i - 2];
	}
	assert_in_range(ask_leaves(s, leaves, sizeof leaves), 200 * one, 300 * one);
}

/* What n1 cannot answer any more it does not do, either. */
static void a_frame_is_handled_until_its_answers_have_broken_the_link(void **state) {
	struct stage *s = *state;
	static struct message asks[2000];
	static const uint8_t value[60000];
	struct core_request r = stage_acquire("value", stage_lock(1), LEASE, 0);
	r.value = slice_of(value, sizeof value);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	for (size_t i = 0; i < 1999; i++) {
		asks[i] = (struct message){ .kind = MESSAGE_FETCH, .round = i + 1,
			.key = slice_str("value"), .lock_id = stage_lock(1) };
	}
	asks[1999] = (struct message){ .kind = MESSAGE_FOLLOW, .round = 1, .log = 1,
		.flags = FLAG_STAGING };
	say(s, true, asks, 2000);
	assert_int_equal(count_of(s, 0, COUNT_feed_snapshot), 0);
	assert_true(stage_noted(s, 0, NOTE_LINK_RESET));
	take(s, 0, "k", stage_lock(1));
}

/* Counts what n1 has sent to n3, and drops it. */
static size_t drop_all(struct stage *s) {
	size_t count = 0;
	for (; s->links[0][2].count > 0; stage_drop(s, 0, 2)) {
		count++;
	}
	return count;
}

/* n1 has more records than a batch and a piece of a snapshot have. */
static void with_many_records(struct stage *s) {
	for (uint32_t i = 0; i < 800; i++) {
		char key[8];
		snprintf(key, sizeof key, "k%u", i);
		take(s, 0, key, stage_lock((uint8_t)(i % 250)));
	}
	stage_settle(s);
	(void)drop_all(s);
}

/* n1 hears many of these messages, whose answers would be many records each. */
static uint64_t sent_upon(struct stage *s, const struct message *one, enum message_kind kind) {
	static struct message many[200];
	const uint64_t before = stage_sent(s, kind);
	for (size_t i = 0; i < 200; i++) {
		many[i] = *one;
		many[i].round = i + 1;
	}
	say(s, true, many, 200);
	return stage_sent(s, kind) - before;
}

static void a_master_that_asks_for_snapshots_is_sent_one_piece_a_turn(void **state) {
	struct stage *s = *state;
	with_many_records(s);
	const struct message ask = { .kind = MESSAGE_SNAPSHOT, .epoch = stage_status(s, 0).epoch };
	assert_in_range(sent_upon(s, &ask, MESSAGE_SNAPSHOT_RECORD), 128, 160);
	/* It cannot have the pieces before they were sent, and yet it says so. */
	static struct message acks[3];
	for (uint32_t i = 0; i < 3; i++) {
		acks[i] = (struct message){ .kind = MESSAGE_SNAPSHOT_GO_ON, .round = 200, .part = i,
			.parts = i + 1 };
	}
	const uint64_t before = stage_sent(s, MESSAGE_SNAPSHOT_RECORD);
	say(s, true, acks, 3);
	assert_in_range(stage_sent(s, MESSAGE_SNAPSHOT_RECORD) - before, 128, 160);
}

static void a_follower_is_sent_one_batch_a_turn_however_often_it_asks(void **state) {
	struct stage *s = *state;
	with_many_records(s);
	const struct message follow = { .kind = MESSAGE_FOLLOW, .log = 1, .flags = FLAG_STAGING };
	assert_in_range(sent_upon(s, &follow, MESSAGE_FEED_RECORD), 256, 300);
	/* The rest of the window follows in the next turns. */
	stage_settle(s);
	stage_wait(s, 5 * SPAN_MS);
	assert_in_range(stage_sent(s, MESSAGE_FEED_RECORD), 800, 1000);
}

/* A frame may be handled in pieces. The clock in its head is above the tokens of its commits. */
static void the_clock_of_a_frame_is_heard_after_its_last_piece(void **state) {
	struct stage *s = *state;
	const struct core_status status = stage_status(s, 0), from = stage_status(s, 2);
	const uint64_t clock = status.clock > from.clock ? status.clock : from.clock;
	for (uint8_t i = 0; i < 2; i++) {
		const uint8_t key[] = { 'c', i };
		const struct message commit = { .kind = MESSAGE_COMMIT, .round = 1 << 16,
			.name = 1u + i, .key = slice_of(key, sizeof key),
			.lock_id = stage_lock(60 + i), .token = clock + 10 + i,
			.lease_us = 1000000, .ballot = { clock + 10, 1, 1 } };
		const struct frame piece = { .epoch = status.epoch,
			.config_hash = status.config_hash, .sender = s->nodes[2].disk.node_id,
			.boot = from.boot, .clock = clock + 1000, .flags = FRAME_VOTING,
			.messages = &commit, .count = 1, .more = i == 0 };
		uint64_t token, noted;
		stage_step(s, 0, &(struct core_event){ .kind = CORE_FRAME,
			.peer = stage_peer(s, 0, 2), .frame = &piece });
		assert_true(core_peek(s->nodes[0].core, slice_of(key, sizeof key),
			stage_lock(60 + i), &token, &noted));
	}
	assert_true(stage_status(s, 0).clock >= clock + 1000);
}

UNIT(cluster_lies) {
	const struct CMUnitTest tests[] = {
		NAMED(a_record_of_a_semaphore_without_numbers_is_nobodys_and_not_taken),
		NAMED(a_master_that_rejoins_takes_no_lease_that_one_source_alone_has_for_so_long),
		MEMBERS(a_new_master_notes_no_lease_that_one_source_alone_has_for_so_long),
		MEMBERS(a_new_master_takes_a_lease_that_was_allowed_before),
		NAMED(a_master_that_changes_its_vote_again_and_again_loses_its_link),
		NAMED(a_leaf_that_is_asked_for_again_and_again_is_listed_a_few_times),
		NAMED(a_frame_is_handled_until_its_answers_have_broken_the_link),
		NAMED(a_master_that_asks_for_snapshots_is_sent_one_piece_a_turn),
		NAMED(a_follower_is_sent_one_batch_a_turn_however_often_it_asks),
		NAMED(the_clock_of_a_frame_is_heard_after_its_last_piece),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
