/* These tests ask which answers a coordinator counts, and what it makes of them (docs/protocol.md,
 * sections 1 and 2). The answers come late, twice, or for something else. */
#include "named.h"

static struct stage_frame *head(struct stage *s, uint32_t from, uint32_t to) {
	assert_non_null(s->links[from][to].head);
	return s->links[from][to].head;
}

/* Delivers a message twice, as TCP would not. */
static void deliver_twice(struct stage *s, uint32_t from, uint32_t to) {
	struct stage_frame *f = head(s, from, to);
	struct slice body;
	struct frame frame;
	assert_int_equal(peer_scan(slice_of(f->bytes, f->size), PEER_BODY_BYTES_MAX, &body, NULL),
		PEER_SCAN_COMPLETE);
	assert_int_equal(peer_frame_decode(&s->decoder, body, &frame), 0);
	stage_step(s, to,
		&(struct core_event){ .kind = CORE_FRAME, .peer = from, .frame = &frame });
	assert_true(stage_deliver(s, from, to));
}

static void hold_to(struct stage *s, uint32_t to, bool hold) {
	for (uint32_t i = 0; i < s->options.masters; i++) {
		s->held[i][to] = hold && i != to;
	}
}

static void stop_to(struct stage *s, uint32_t to, enum message_kind kind, bool stop) {
	for (uint32_t i = 0; i < s->options.masters; i++) {
		stage_stop(s, i, to, kind, stop);
	}
}

static void a_master_that_answers_twice_counts_once(void **state) {
	(void)state;
	struct stage_options o = named_options();
	o.masters = 5;
	struct stage *s = stage_born(&o);
	stop_to(s, 0, MESSAGE_COMMIT_ANSWER, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_true(stage_head_is(s, 1, 0, MESSAGE_COMMIT_ANSWER));
	/* With the node's own acceptance that makes two, and three are needed. */
	deliver_twice(s, 1, 0);
	assert_false(answered(s, id));
	assert_true(stage_deliver(s, 2, 0));
	token_of(s, id);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void an_answer_after_request_timeout_does_not_count(void **state) {
	struct stage *s = *state;
	stop_to(s, 0, MESSAGE_COMMIT_ANSWER, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_jump(s, 60 * SPAN_MS);
	/* The node did not stand still. */
	stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
	stage_jump(s, 45 * SPAN_MS);
	assert_true(stage_deliver(s, 1, 0));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
}

/* n1 has answered the acquire, and asks for an extension 45 ms before the lease is over. The
 * answers come when its deadline has passed. */
static uint64_t extend_late(struct stage *s) {
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	uint64_t id = stage_ask(s, 0, r);
	stage_settle(s);
	return id;
}

static void take_and_wait(struct stage *s) {
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 500 * SPAN_MS, 0)),
		PAWL_OK);
	stage_wait(s, 450 * SPAN_MS);
	hold_to(s, 0, true);
}

static int answer_late(struct stage *s, uint64_t id) {
	stage_wait(s, 60 * SPAN_MS);
	hold_to(s, 0, false);
	stage_settle(s);
	return stage_answer(s, id)->r.error;
}

static void an_extension_answered_after_the_deadline_is_unsure(void **state) {
	struct stage *s = *state;
	take_and_wait(s);
	/* Every master has the lock, but somebody else may have had it in between. */
	assert_int_equal(answer_late(s, extend_late(s)), PAWL_EUNSURE);
}

static void a_lock_that_another_node_has_extended_is_not_lost(void **state) {
	struct stage *s = *state;
	take_and_wait(s);
	uint64_t id = extend_late(s);
	/* n2 and n3 had it. */
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, false), PAWL_OK);
	assert_int_equal(answer_late(s, id), PAWL_EUNSURE);
	assert_true(holds(s, 1, "k", stage_lock(1)));
}

/* n1 does not hear of the release; n2's answer says so in time, and n3's is late. */
static void what_masters_lack_is_lost_also_after_the_deadline(void **state) {
	struct stage *s = *state;
	take_and_wait(s);
	s->held[1][0] = false;
	stage_lose(s, 1, 0, MESSAGE_RELEASE, true);
	assert_int_equal(release(s, 1, "k", stage_lock(1)), PAWL_OK);
	uint64_t id = extend_late(s);
	assert_false(answered(s, id));
	assert_int_equal(answer_late(s, id), PAWL_ELOST);
}

#define REPLICA 3

static int setup_moving(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t from = 0; from < 3; from++) {
		stage_lose(s, from, REPLICA, MESSAGE_FEED_RECORD, true);
		stage_lose(s, from, 0, MESSAGE_COMMIT, true);
		stage_lose(s, from, 0, MESSAGE_SYNC_KEYS, true);
	}
	return 0;
}

/* n2 and n3 have the lock, whose lease ends in 50 ms. The replica asks, and n1 lacks the lock. Then
 * n2 lengthens it and sends the record to n1; but n3 hears of nothing before its lease is over, and
 * answers the replica that it lacks it, too. The replica does not hear n2. */
static uint64_t ask_while_it_moves(struct stage *s, struct core_request r) {
	const enum message_kind answers[] = { MESSAGE_EXTEND_ANSWER, MESSAGE_PREPARE_ANSWER,
		MESSAGE_DOWNGRADE_ANSWER };
	stage_lose(s, 1, 0, MESSAGE_LEARN, true);
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(1), 500 * SPAN_MS, 0)),
		PAWL_OK);
	stage_wait(s, 450 * SPAN_MS);
	stage_lose(s, 1, 0, MESSAGE_LEARN, false);
	for (int i = 0; i < 3; i++) {
		stage_lose(s, 1, REPLICA, answers[i], true);
	}
	s->held[REPLICA][2] = s->held[1][2] = true;
	const uint64_t id = stage_ask(s, REPLICA, r);
	stage_settle(s);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	stage_wait(s, 60 * SPAN_MS);
	assert_false(answered(s, id));
	s->held[REPLICA][2] = s->held[1][2] = false;
	assert_true(stage_deliver(s, REPLICA, 2));
	stage_settle(s);
	for (int i = 0; i < 3; i++) {
		stage_lose(s, 1, REPLICA, answers[i], false);
	}
	stage_wait(s, 200 * SPAN_MS);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	return id;
}

static void an_update_of_a_lock_that_moves_is_not_lost(void **state) {
	/* The request has been sent again. */
	token_of(*state,
		ask_while_it_moves(*state, stage_request(CORE_UPDATE, "k", stage_lock(1))));
}

static void an_extension_of_a_lock_that_moves_is_not_lost(void **state) {
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	const uint64_t id = ask_while_it_moves(*state, r);
	assert_int_not_equal(stage_answer(*state, id)->r.error, PAWL_ELOST);
}

static void a_downgrade_of_a_lock_that_moves_is_not_lost(void **state) {
	const uint64_t id = ask_while_it_moves(*state,
		stage_request(CORE_DOWNGRADE, "k", stage_lock(1)));
	assert_int_equal(stage_answer(*state, id)->r.error, PAWL_ENOQUORUM);
}

/* What the masters lacked before they were asked is lost. */
static void what_was_lacking_before_it_was_asked_for_is_lost(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 1, stage_acquire("k", stage_lock(1), 500 * SPAN_MS, 0)),
		PAWL_OK);
	stage_wait(s, 510 * SPAN_MS);
	const uint64_t ids[] = { stage_ask(s, REPLICA,
		stage_request(CORE_UPDATE, "k", stage_lock(1))),
		stage_ask(s, REPLICA, stage_request(CORE_DOWNGRADE, "k", stage_lock(1))),
		stage_ask(s, REPLICA, (struct core_request){ .op = CORE_EXTEND,
			.key = slice_str("k"), .lock_id = stage_lock(1), .lease = LEASE }) };
	for (int i = 0; i < 3; i++) {
		s->held[REPLICA][i] = true;
	}
	stage_wait(s, 5 * SPAN_MS);
	for (int i = 0; i < 3; i++) {
		s->held[REPLICA][i] = false;
	}
	stage_settle(s);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(stage_answer(s, ids[i])->r.error, PAWL_ELOST);
	}
}

#define MOVING(test) cmocka_unit_test_setup_teardown(test, setup_moving, named_teardown)

static void a_lease_counts_from_the_sending_of_its_round(void **state) {
	struct stage *s = *state;
	span_ns least = span_shrink(LEASE, s->options.drift_ppm);
	stop_to(s, 0, MESSAGE_COMMIT_ANSWER, true);
	uint64_t id = stage_ask(s, 0, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_wait(s, 60 * SPAN_MS);
	stop_to(s, 0, MESSAGE_COMMIT_ANSWER, false);
	stage_settle(s);
	token_of(s, id);
	assert_int_equal(stage_answer(s, id)->r.valid, least);
	hold_to(s, 0, true);
	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	id = stage_ask(s, 0, r);
	stage_wait(s, 60 * SPAN_MS);
	hold_to(s, 0, false);
	stage_settle(s);
	token_of(s, id);
	assert_int_equal(stage_answer(s, id)->r.valid, least);
}

/* n1 alone has the lock_id, with a token far above the clock of n2. n2 is asked for the lock again,
 * and hears of that token only by n1's answer. */
static void the_token_of_a_repeat_is_above_what_fewer_than_a_quorum_reported(void **state) {
	struct stage *s = *state;
	uint64_t far = stage_status(s, 1).clock + 1000;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = far,
		.lease_us = (uint64_t)LEASE / 1000, .ballot = { far, 1, 1 } };
	stage_inject(s, 2, 0, &m);
	stage_fifo_clear(s, &s->links[0][1]);
	stage_fifo_clear(s, &s->links[0][2]);
	s->held[2][1] = true;
	uint64_t id = stage_ask(s, 1, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	assert_int_equal(token_of(s, id), far + 1);
}

/* ---- values ---- */

static struct core_request update(const char *value, const char *expected) {
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(1));
	r.value = slice_str(value);
	r.expect_value = expected != NULL;
	r.expected = slice_str(expected ? expected : "");
	return r;
}

static void take_with_value(struct stage *s, uint32_t node, const char *value) {
	struct core_request r = stage_acquire("k", stage_lock(1), 10 * SPAN_S, 0);
	r.value = slice_str(value);
	assert_int_equal(stage_do(s, node, r), PAWL_OK);
}

/* n2 refuses n1's first round, because it has noted the higher ballot of its own update. n3's
 * answer to that round comes when the second round is under way, and n2's update has been written
 * in between. */
static void an_answer_of_an_earlier_round_does_not_count(void **state) {
	struct stage *s = *state;
	take_with_value(s, 0, "a");
	stage_wait(s, 30 * SPAN_MS);
	struct frame ahead = { .epoch = stage_status(s, 1).epoch,
		.config_hash = stage_status(s, 1).config_hash, .sender = s->nodes[2].disk.node_id,
		.boot = stage_status(s, 2).boot, .clock = stage_status(s, 1).clock + 50,
		.flags = FRAME_VOTING };
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = 2, .frame = &ahead });
	s->held[1][0] = s->held[1][2] = s->held[2][0] = true;
	uint64_t second = stage_ask(s, 1, update("n2's", "a"));
	uint64_t first = stage_ask(s, 0, update("n1's", "a"));
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_update_refused_ballot), 1);
	s->held[0][1] = true;
	/* This is longer than a ballot is protected. */
	stage_jump(s, 26 * SPAN_MS);
	while (stage_deliver(s, 1, 0)) {
	}
	s->held[1][2] = false;
	stage_settle(s);
	assert_int_equal(stage_answer(s, second)->r.error, PAWL_OK);
	struct stage_frame *stale = head(s, 2, 0);
	assert_true(stage_head_is(s, 2, 0, MESSAGE_PREPARE_ANSWER));
	/* n1's round ends, and after a pause the next one begins. */
	for (int i = 0; i < 3; i++) {
		stage_jump(s, i == 0 ? 25 * SPAN_MS : i == 1 ? 51 * SPAN_MS : 10 * SPAN_MS);
		stage_tick(s);
	}
	assert_true(head(s, 2, 0) == stale);
	assert_true(stage_deliver(s, 2, 0));
	memset(s->held, 0, sizeof s->held);
	stage_wait(s, 300 * SPAN_MS);
	assert_int_not_equal(stage_answer(s, first)->r.error, PAWL_OK);
}

static void a_value_seq_names_one_write(void **state) {
	struct stage *s = *state;
	take_with_value(s, 0, "a");
	stop_to(s, 1, MESSAGE_WRITE, true);
	stop_to(s, 2, MESSAGE_WRITE, true);
	uint64_t id = stage_ask(s, 0, update("half done", NULL));
	stage_wait(s, 110 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
	assert_int_equal(stage_do(s, 0, stage_request(CORE_GET, "k", stage_lock(0))), PAWL_OK);
	struct ballot seen = stage_last(s)->r.entry.value_seq;
	assert_memory_equal(stage_last(s)->value.bytes, "half done", 9);
	stage_isolate(s, 0, true);
	stop_to(s, 1, MESSAGE_WRITE, false);
	stop_to(s, 2, MESSAGE_WRITE, false);
	assert_int_equal(stage_do(s, 1, update("written", NULL)), PAWL_OK);
	struct core_request r = update("over what was half done", NULL);
	r.expect_seq = true;
	r.expected_seq = seen;
	assert_int_equal(stage_do(s, 1, r), PAWL_EMISMATCH);
}

/* A reader's expectation sees a write that reached n1 alone. Once the write was shown, it stays. */
static void a_mismatch_shows_what_is_written_for_good(void **state) {
	struct stage *s = *state;
	take_with_value(s, 0, "a");
	stop_to(s, 1, MESSAGE_WRITE, true);
	stop_to(s, 2, MESSAGE_WRITE, true);
	uint64_t id = stage_ask(s, 0, update("half done", NULL));
	stage_wait(s, 110 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
	stage_break(s, 0, 1);
	stage_break(s, 0, 2);
	stop_to(s, 1, MESSAGE_WRITE, false);
	stop_to(s, 2, MESSAGE_WRITE, false);
	stage_wait(s, 20 * SPAN_MS);
	stage_cut(s, 0, 2, true);
	assert_int_equal(stage_do(s, 0, update("b", "nonsense")), PAWL_EMISMATCH);
	assert_memory_equal(stage_last(s)->value.bytes, "half done", 9);
	stage_isolate(s, 0, true);
	stage_cut(s, 1, 2, false);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(stage_do(s, 2, update("c", "a")), PAWL_EMISMATCH);
	assert_memory_equal(stage_last(s)->value.bytes, "half done", 9);
}

UNIT(rules_answers) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_master_that_answers_twice_counts_once),
		NAMED(an_answer_after_request_timeout_does_not_count),
		NAMED(an_extension_answered_after_the_deadline_is_unsure),
		NAMED(a_lock_that_another_node_has_extended_is_not_lost),
		NAMED(what_masters_lack_is_lost_also_after_the_deadline),
		MOVING(an_update_of_a_lock_that_moves_is_not_lost),
		MOVING(an_extension_of_a_lock_that_moves_is_not_lost),
		MOVING(a_downgrade_of_a_lock_that_moves_is_not_lost),
		MOVING(what_was_lacking_before_it_was_asked_for_is_lost),
		NAMED(a_lease_counts_from_the_sending_of_its_round),
		NAMED(the_token_of_a_repeat_is_above_what_fewer_than_a_quorum_reported),
		NAMED(an_answer_of_an_earlier_round_does_not_count),
		NAMED(a_value_seq_names_one_write),
		NAMED(a_mismatch_shows_what_is_written_for_good),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
