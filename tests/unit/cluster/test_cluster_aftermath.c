/* These tests begin after a member that lies (docs/guarantees.md, A node that lies). A forced start
 * works from what the liar has left on the disks and in the memory of those who do not lie. */
#include "takeover.h"

/* Twelve days, in microseconds. */
#define FOR_EVER (UINT64_C(1) << 40)

static const struct core_change force = { .kind = CHANGE_FORCE, .anyway = true };

/* `from` says this clock in a frame without a message. */
static void say_clock(struct stage *s, uint32_t from, uint32_t to, uint64_t clock) {
	const struct core_status status = stage_status(s, from);
	const struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[from].disk.node_id, .boot = status.boot, .clock = clock,
		.flags = FRAME_VOTING };
	stage_step(s, to, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, to, from),
		.frame = &frame });
}

/* n3 proposes itself as the only master, under a ballot that nobody can outbid. n1 accepts that; n2
 * knows nothing of it. */
static void accept_a_decree(struct stage *s) {
	const struct config c = taken_over(s, 0, 2, 1);
	static uint8_t bytes[CONFIG_BYTES_MAX];
	const uint64_t clock = stage_status(s, 0).clock;
	const struct message m = { .kind = MESSAGE_DECREE_ACCEPT, .round = 7, .ballot = { clock,
		UINT64_MAX, UINT32_MAX }, .blob = slice_of(bytes, config_encode(&c, bytes)) };
	stage_lose(s, 0, 1, MESSAGE_DECREE_ACCEPTED, true);
	stage_inject(s, 2, 0, &m);
	stage_settle(s);
	stage_lose(s, 0, 1, MESSAGE_DECREE_ACCEPTED, false);
	assert_int_equal(s->nodes[0].disk.decree_config.epoch, epoch_of(s, 0) + 1);
	assert_true(id128_equal(s->nodes[0].disk.decree_config.nodes[0].id,
		s->nodes[2].disk.node_id));
}

static void raise_clocks(struct stage *s) {
	for (int i = 0; i < 3; i++) {
		for (uint32_t to = 0; to < 2; to++) {
			say_clock(s, 2, to, stage_status(s, to).clock + CLOCK_JUMP_MAX);
		}
		stage_wait(s, (span_ns)CLOCK_JUMP_MAX / 4);
	}
	assert_true(stage_status(s, 0).clock > CLOCK_JUMP_MAX &&
		stage_status(s, 1).clock > CLOCK_JUMP_MAX);
}

/* n3 says in all that it sends that it is the only master of that epoch. */
static void claim(struct stage *s, uint64_t epoch) {
	const struct config c = taken_over(s, 0, 2, epoch - epoch_of(s, 0));
	stage_kill(s, 2);
	s->nodes[2].disk.config = c;
	s->nodes[2].disk.voted = true;
	assert_true(stage_start(s, 2));
	stage_wait(s, 3 * SPAN_S);
}

/* While n1 has lost n2, the liar claims an epoch later than any that the cluster can ever have come
 * to, and then the latest epoch of all. A node that has lost all others may be misled. */
static void mislead(struct stage *s) {
	const uint64_t epoch = epoch_of(s, 0), starts = epoch >> 32;
	claim(s, (EPOCH_STARTS_MAX - 1ull) << 32);
	assert_int_equal(epoch_of(s, 0), epoch);
	assert_true(count_of(s, 0, COUNT_config_unproven) > 0);
	claim(s, (starts << 32) + UINT32_MAX);
	assert_int_equal(epoch_of(s, 0), (starts << 32) + UINT32_MAX);
	assert_int_equal(state_of(s, 0), CORE_OUTSIDE);
}

/* n1 starts over; n2, which was not misled, is emptied and added. n3 goes on lying to both all the
 * time. */
static void started_over(struct stage *s, uint64_t token, uint64_t clock) {
	const struct config old = *core_config(s->nodes[1].core), taken = taken_over(s, 1, 2, 1);
	assert_int_equal(do_change(s, 0, force), PAWL_OK);
	assert_true(stage_until_voting(s, 0, 2 * s->options.max_lease));
	const uint64_t after = take(s, 0, "k", stage_lock(2));
	assert_true(after > token && after > clock);
	stage_cut(s, 1, 2, true);
	stage_wipe(s, 1);
	assert_true(stage_start(s, 1));
	stage_cut(s, 0, 1, false);
	add_replica(s, 0, "n2", "n2:7118");
	assert_int_equal(do_change(s, 0, change_of(CHANGE_PROMOTE, "n2")), PAWL_OK);
	assert_true(stage_until_voting(s, 1, 2 * s->options.max_lease));
	const uint64_t epoch = epoch_of(s, 0);
	stage_cut(s, 0, 2, false);
	stage_cut(s, 1, 2, false);
	stage_mend(s);
	stage_settle(s);
	for (int i = 0; i < 60; i++) {
		for (uint32_t to = 0; to < 2; to++) {
			if (s->up[2][to]) {
				say(s, 2, to, i & 1 ? MESSAGE_CONFIG : MESSAGE_DECREE_ACCEPT,
					i & 2 ? &taken : &old);
			}
		}
		stage_wait(s, REQUEST);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(epoch_of(s, i), epoch);
		assert_int_equal(state_of(s, i), CORE_VOTING);
		assert_int_equal(s->nodes[i].disk.decree_config.epoch, 0);
	}
	assert_true(take(s, 1, "l", stage_lock(3)) > after);
	/* Decrees are possible, and what is chosen is what was asked for. */
	assert_int_equal(do_change(s, 1, max_lease_of(9 * SPAN_S)), PAWL_OK);
	assert_int_equal(epoch_of(s, 0), epoch + 1);
	assert_int_equal(config_masters(core_config(s->nodes[0].core)), 2);
}

static void a_forced_start_leaves_nothing_of_what_a_liar_has_left_on_the_disk(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "k", stage_lock(1));
	raise_clocks(s);
	accept_a_decree(s);
	const uint64_t clock = stage_status(s, 0).clock;
	stage_cut(s, 0, 1, true);
	stage_cut(s, 0, 2, true);
	stage_kill(s, 0);
	/* The node has what is on its disk, and nothing else. */
	assert_true(stage_start(s, 0));
	started_over(s, token, clock);
}

static void a_forced_start_works_at_a_node_that_a_liar_has_taken_over(void **state) {
	struct stage *s = *state;
	const uint64_t token = take(s, 0, "k", stage_lock(1));
	raise_clocks(s);
	const uint64_t clock = stage_status(s, 0).clock;
	stage_cut(s, 0, 1, true);
	mislead(s);
	stage_cut(s, 0, 2, true);
	started_over(s, token, clock);
}

/* n4, a replica, follows the liar, n1. If it believed n1, it would wait for twelve days when it is
 * started over, and again at each start from then on. */
static void a_replica_that_is_started_over_waits_for_no_lease_that_nobody_was_allowed(
	void **state) {
	(void)state;
	struct stage_options options = stage_options_plain();
	options.replicas = 1;
	struct stage *s = stage_born(&options);
	stage_cut(s, 1, 3, true);
	stage_cut(s, 2, 3, true);
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(s->nodes[3].node_of[stage_status(s, 3).following], 0);
	take(s, 0, "k", stage_lock(1));
	for (uint64_t round = 1; round < 20 && !knows(s, 3, "k", stage_lock(9)); round++) {
		const struct message m = { .kind = MESSAGE_FEED_RECORD, .round = round,
			.key = slice_str("k"), .lock_id = stage_lock(9), .token = 1,
			.left_us = FOR_EVER, .number = stage_status(s, 3).position,
			.terms = { .of = MODE_EXCLUSIVE } };
		stage_inject(s, 0, 3, &m);
	}
	assert_true(knows(s, 3, "k", stage_lock(9)));
	stage_isolate(s, 3, true);
	assert_int_equal(stage_do(s, 3, (struct core_request){ .op = CORE_CHANGE, .change = &force,
		.admin = true, .client = 1 }), PAWL_OK);
	assert_int_equal(s->nodes[3].disk.max_lease_seen, s->options.max_lease);
	assert_true(stage_until_voting(s, 3, 2 * s->options.max_lease));
	stage_free(s);
}

UNIT(cluster_aftermath) {
	const struct CMUnitTest tests[] = {
		NAMED(a_forced_start_leaves_nothing_of_what_a_liar_has_left_on_the_disk),
		NAMED(a_forced_start_works_at_a_node_that_a_liar_has_taken_over),
		cmocka_unit_test(
			a_replica_that_is_started_over_waits_for_no_lease_that_nobody_was_allowed),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
