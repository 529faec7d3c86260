/* These tests have nodes that say what they like (docs/protocol.md, section 6, Proof, and Who is
 * told what). */
#include "takeover.h"

/* Checks that n1 to n3 stay what they are, even after a restart of all. */
static void nothing_is_taken_over(struct stage *s, uint64_t epoch) {
	stage_wait(s, 3 * SPAN_S);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(epoch_of(s, i), epoch);
		assert_int_equal(s->nodes[i].disk.config.epoch, epoch);
		assert_int_equal(state_of(s, i), CORE_VOTING);
	}
	for (uint32_t i = 0; i < 3; i++) {
		stage_kill(s, i);
	}
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_start(s, i));
	}
	stage_mend(s);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(stage_until_voting(s, i, 60 * SPAN_S));
		assert_int_equal(epoch_of(s, i), epoch);
	}
	take(s, 0, "k", stage_lock(9));
}

static void lies(struct stage *s, uint32_t liar) {
	const uint64_t epoch = epoch_of(s, 0);
	for (uint64_t later = 1; later < 9; later += 7) {
		const struct config c = taken_over(s, 0, liar, later);
		for (uint32_t i = 0; i < 3; i++) {
			if (i != liar) {
				say(s, liar, i, MESSAGE_CONFIG, &c);
			}
		}
	}
	nothing_is_taken_over(s, epoch);
}

static void a_stranger_takes_nothing_over_by_one_packet(void **state) {
	struct stage *s = *state;
	stage_mend(s);
	stage_settle(s);
	lies(s, 3);
}

static void a_removed_replica_takes_nothing_over_by_one_packet(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	must(s, 0, change_of(CHANGE_REMOVE, "n4"));
	stage_wait(s, SPAN_S);
	assert_int_equal(state_of(s, 3), CORE_OUTSIDE);
	lies(s, 3);
}

static void a_replica_takes_nothing_over_by_one_packet(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	lies(s, 3);
}

static void a_master_takes_nothing_over_by_one_packet(void **state) {
	lies(*state, 2);
}

/* The master goes on for much longer than anybody waits before it passes a claim on. Two masters
 * that are linked with each other do not pass it on. */
static void a_master_that_insists_takes_nothing_over(void **state) {
	struct stage *s = *state;
	const struct config c = taken_over(s, 0, 2, 1);
	for (uint32_t i = 0; i < 100; i++) {
		say(s, 2, i % 2, MESSAGE_CONFIG, &c);
		stage_wait(s, REQUEST / 2);
	}
	nothing_is_taken_over(s, 1);
}

static struct config other_of_this_epoch(const struct stage *s) {
	struct config c = *core_config(s->nodes[0].core);
	c.max_lease = 9 * SPAN_S;
	return c;
}

static void fewer_than_a_majority_needs_end_no_vote_by_a_conflict(void **state) {
	struct stage *s = *state;
	const struct config c = other_of_this_epoch(s);
	stage_mend(s);
	stage_settle(s);
	say(s, 3, 0, MESSAGE_CONFIG, &c);
	assert_int_equal(state_of(s, 0), CORE_VOTING);
	say(s, 1, 0, MESSAGE_CONFIG, &c);
	say(s, 1, 0, MESSAGE_CONFIG, &c);
	assert_int_equal(state_of(s, 0), CORE_VOTING);
	assert_true(stage_noted(s, 0, NOTE_CONFLICT));
	say(s, 2, 0, MESSAGE_CONFIG, &c);
	assert_int_equal(state_of(s, 0), CORE_RECOVERING);
}

/* ---- records ---- */

static uint64_t told_of_records(const struct stage *s, uint32_t to) {
	uint64_t n = 0;
	for (uint32_t i = 0; i < s->count; i++) {
		n += s->sent[i][to][MESSAGE_SNAPSHOT_RECORD] +
			s->sent[i][to][MESSAGE_FEED_RECORD] + s->sent[i][to][MESSAGE_READ_ANSWER];
	}
	return n;
}

static void ask_for_all(struct stage *s, uint32_t from) {
	const uint64_t epoch = epoch_of(s, 0);
	for (uint32_t i = 0; i < 3; i++) {
		const struct message asks[] = {
			{ .kind = MESSAGE_SNAPSHOT, .round = 1, .epoch = epoch },
			{ .kind = MESSAGE_SNAPSHOT, .round = 2, .epoch = epoch,
				.flags = FLAG_HANDOVER },
			{ .kind = MESSAGE_SNAPSHOT, .round = 3, .epoch = epoch + 1,
				.flags = FLAG_HANDOVER },
			{ .kind = MESSAGE_FOLLOW, .round = 4,
				.flags = FLAG_STAGING | FLAG_ACCEPT_ISOLATED },
			{ .kind = MESSAGE_READ, .round = 5, .key = slice_str("k") },
		};
		for (size_t m = 0; m < sizeof asks / sizeof *asks; m++) {
			stage_inject(s, from, i, &asks[m]);
			stage_settle(s);
		}
	}
}

static void a_stranger_gets_no_record(void **state) {
	struct stage *s = *state;
	stage_mend(s);
	stage_settle(s);
	take(s, 0, "k", stage_lock(1));
	ask_for_all(s, 3);
	assert_int_equal(told_of_records(s, 3), 0);
}

static void a_removed_replica_gets_no_record(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	must(s, 0, change_of(CHANGE_REMOVE, "n4"));
	stage_wait(s, SPAN_S);
	take(s, 0, "k", stage_lock(1));
	const uint64_t before = told_of_records(s, 3);
	ask_for_all(s, 3);
	assert_int_equal(told_of_records(s, 3), before);
}

/* n3 is a master of the previous epoch, and so it is in everybody's table of peers. */
static void a_removed_master_gets_no_record(void **state) {
	struct stage *s = *state;
	must(s, 0, change_of(CHANGE_REMOVE, "n3"));
	stage_wait(s, SPAN_S);
	take(s, 0, "k", stage_lock(1));
	const uint64_t before = told_of_records(s, 2);
	for (uint32_t i = 0; i < 2; i++) {
		stage_inject(s, 2, i, &(struct message){ .kind = MESSAGE_FOLLOW, .round = 4,
			.flags = FLAG_STAGING | FLAG_ACCEPT_ISOLATED });
		stage_inject(s, 2, i, &(struct message){ .kind = MESSAGE_READ, .round = 5,
			.key = slice_str("k") });
		stage_inject(s, 2, i,
			&(struct message){ .kind = MESSAGE_SNAPSHOT, .round = 1, .epoch = 2 });
		stage_inject(s, 2, i, &(struct message){ .kind = MESSAGE_SNAPSHOT, .round = 2,
			.epoch = 2, .flags = FLAG_HANDOVER });
		stage_settle(s);
	}
	assert_int_equal(told_of_records(s, 2), before);
}

/* A replica may read; only those who are to be masters are sent everything. */
static void a_replica_gets_no_snapshot_of_a_master(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	take(s, 0, "k", stage_lock(1));
	stage_wait(s, SPAN_S);
	stage_inject(s, 3, 0,
		&(struct message){ .kind = MESSAGE_SNAPSHOT, .round = 1, .epoch = 2 });
	stage_inject(s, 3, 0, &(struct message){ .kind = MESSAGE_SNAPSHOT, .round = 3, .epoch = 3,
		.flags = FLAG_HANDOVER });
	stage_settle(s);
	assert_int_equal(s->sent[0][3][MESSAGE_SNAPSHOT_RECORD], 0);
}

/* ---- what only a master of the epoch may begin ---- */

static void nobody_but_a_master_makes_another_copy_everything(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	stage_wait(s, SPAN_S);
	say(s, 3, 1, MESSAGE_COPY_AHEAD, &(struct config){ 0 });
	const struct config c = taken_over(s, 0, 1, 1);
	say(s, 3, 1, MESSAGE_COPY_AHEAD, &c);
	say(s, 4, 1, MESSAGE_COPY_AHEAD, &c);
	assert_int_equal(stage_count(s, COUNT_copy_ahead_started), 0);
}

static void nobody_but_a_master_asks_for_a_decree(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	const struct config c = taken_over(s, 0, 3, 1);
	for (uint32_t i = 0; i < 3; i++) {
		say(s, 3, i, MESSAGE_DECREE_PREPARE, &c);
		say(s, 3, i, MESSAGE_DECREE_ACCEPT, &c);
		assert_int_equal(s->sent[i][3][MESSAGE_DECREE_PROMISE] +
			s->sent[i][3][MESSAGE_DECREE_ACCEPTED], 0);
		assert_int_equal(s->nodes[i].disk.decree_config.epoch, 0);
	}
	nothing_is_taken_over(s, 2);
}

static void a_change_asked_of_a_replica_is_refused_and_names_a_master(void **state) {
	struct stage *s = *state;
	add_replica(s, 0, "n4", "n4:7118");
	const struct stage_reply *r = await(s, ask_change(s, 3, max_lease_of(9 * SPAN_S)));
	assert_int_equal(r->r.error, PAWL_ERECOVERING);
	assert_memory_equal(r->why.bytes, "n1", 2);
	assert_int_equal(epoch_of(s, 0), 2);
}

static void says_complete(struct stage *s, uint32_t from, uint32_t to) {
	const struct core_status status = stage_status(s, to), sender = stage_status(s, from);
	const struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[from].disk.node_id, .boot = sender.boot, .clock = sender.clock,
		.flags = FRAME_VOTING | FRAME_COMPLETE };
	stage_step(s, to, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, to, from),
		.frame = &frame });
}

/* n4 has not taken over from anybody yet. */
static void one_node_alone_does_not_say_that_all_have_taken_over(void **state) {
	struct stage *s = *state;
	lose_to(s, 3, MESSAGE_SNAPSHOT_END, true);
	(void)ask_change(s, 0, set_of("124"));
	assert_true(wait_until_epoch(s, 0, 2, SPAN_S));
	assert_true(wait_until_epoch(s, 1, 2, SPAN_S));
	stage_settle(s);
	assert_false(stage_status(s, 0).complete);
	/* This node is in the epoch no more. */
	says_complete(s, 2, 0);
	says_complete(s, 1, 0);
	assert_false(stage_status(s, 0).complete);
	says_complete(s, 3, 0);
	assert_true(stage_status(s, 0).complete);
}

UNIT(cluster_takeover) {
	const struct CMUnitTest tests[] = {
		MEMBERS(a_stranger_takes_nothing_over_by_one_packet),
		MEMBERS(a_removed_replica_takes_nothing_over_by_one_packet),
		MEMBERS(a_replica_takes_nothing_over_by_one_packet),
		MEMBERS(a_master_takes_nothing_over_by_one_packet),
		MEMBERS(a_master_that_insists_takes_nothing_over),
		MEMBERS(fewer_than_a_majority_needs_end_no_vote_by_a_conflict),
		MEMBERS(a_stranger_gets_no_record),
		MEMBERS(a_removed_replica_gets_no_record),
		MEMBERS(a_removed_master_gets_no_record),
		MEMBERS(a_replica_gets_no_snapshot_of_a_master),
		MEMBERS_3(nobody_but_a_master_makes_another_copy_everything),
		MEMBERS(nobody_but_a_master_asks_for_a_decree),
		MEMBERS(a_change_asked_of_a_replica_is_refused_and_names_a_master),
		MEMBERS(one_node_alone_does_not_say_that_all_have_taken_over),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
