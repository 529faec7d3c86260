/* These tests are about what masters report of a key (docs/protocol.md, section 3, Reports). A
 * report is exact however many hold the key, and is never more at once than a link and a
 * coordinator can bear. */
#include <stdio.h>
#include <stdlib.h>

#include "modes.h"

#define LARGE 60000
#define MANY 200

static const struct id128 no_lock;

static struct id128 reader(uint32_t i) {
	struct id128 id = stage_lock((uint8_t)(i % 251));
	id.b[3] = (uint8_t)(i / 251 + 1);
	return id;
}

static void share_among(struct stage *s, uint32_t readers, size_t value_size) {
	static uint8_t value[LARGE];
	for (uint32_t i = 0; i < readers; i++) {
		struct core_request r = shared_request("k", reader(i), 0);
		snprintf((char *)value, sizeof value, "of %u", i);
		r.value = slice_of(value, value_size);
		/* This one ends last, so that it is shown first. */
		r.lease = i == 7 ? 2 * LEASE : LEASE;
		assert_int_equal(stage_do(s, i % 3, r), PAWL_OK);
	}
}

static const struct stage_reply *read_by_quorum(struct stage *s, uint32_t node) {
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = r.admin = true;
	uint64_t id = stage_ask(s, node, r);
	/* The reports of many holders are weighed a little later, if others were just before. */
	stage_wait(s, 5 * SPAN_MS);
	token_of(s, id);
	return stage_answer(s, id);
}

static void a_quorum_read_names_every_one_of_many_holders(void **state) {
	struct stage *s = *state;
	share_among(s, MANY, 6);
	for (uint32_t node = 0; node < 3; node++) {
		const struct stage_reply *r = read_by_quorum(s, node);
		assert_true(r->r.held);
		assert_false(r->r.contested || r->r.more);
		assert_int_equal(r->r.holder_count, MANY);
		assert_memory_equal(r->value.bytes, "of 7", 5);
	}
	release(s, 1, "k", reader(100));
	assert_int_equal(read_by_quorum(s, 0)->r.holder_count, MANY - 1);
}

static void values_that_were_left_out_are_asked_for_where_they_are_shown(void **state) {
	struct stage *s = *state;
	share_among(s, 40, LARGE);
	const struct stage_reply *r = read_by_quorum(s, 0);
	/* The answer has a MiB of values and no more. */
	assert_true(r->r.held && r->r.more);
	assert_in_range(r->r.holder_count, 10, 20);
	assert_memory_equal(r->value.bytes, "of 7", 5);
	struct core_request update = stage_request(CORE_UPDATE, "k", reader(7));
	update.value = slice_str("newer");
	stage_lose(s, 1, 2, MESSAGE_WRITE, true);
	assert_int_equal(stage_do(s, 1, update), PAWL_OK);
	r = read_by_quorum(s, 2);
	assert_memory_equal(r->value.bytes, "newer", 5);
}

/* Whoever reads has the value itself, so that no value is under way. */
static void one_large_value_needs_no_second_question(void **state) {
	struct stage *s = *state;
	share_among(s, 1, LARGE);
	uint64_t reads = stage_sent(s, MESSAGE_READ);
	struct core_request r = stage_request(CORE_GET, "k", no_lock);
	r.quorum = true;
	s->held[0][1] = s->held[2][1] = true;
	uint64_t id = stage_ask(s, 1, r);
	stage_settle(s);
	assert_true(stage_head_is(s, 0, 1, MESSAGE_READ_ANSWER));
	assert_in_range(s->links[0][1].head->size, 1, 1000);
	s->held[0][1] = s->held[2][1] = false;
	stage_settle(s);
	assert_memory_equal(stage_answer(s, id)->value.bytes, "of 0", 5);
	assert_int_equal(stage_sent(s, MESSAGE_READ) - reads, 2);
	assert_int_equal(stage_sent(s, MESSAGE_FETCH), 0);
}

static void update_past(struct stage *s, uint32_t node, const char *begins) {
	static uint8_t value[LARGE];
	struct core_request update = stage_request(CORE_UPDATE, "k", reader(0));
	snprintf((char *)value, sizeof value, "%s", begins);
	update.value = slice_of(value, sizeof value);
	stage_lose(s, 1, node, MESSAGE_WRITE, true);
	assert_int_equal(stage_do(s, 1, update), PAWL_OK);
	stage_lose(s, 1, node, MESSAGE_WRITE, false);
}

static void an_older_copy_of_a_value_is_not_shown(void **state) {
	struct stage *s = *state;
	share_among(s, 1, LARGE);
	update_past(s, 0, "newer");
	assert_memory_equal(read_by_quorum(s, 0)->value.bytes, "newer", 5);
	assert_int_equal(stage_sent(s, MESSAGE_FETCH), 1);
	assert_memory_equal(read_by_quorum(s, 2)->value.bytes, "newer", 5);
	assert_int_equal(stage_sent(s, MESSAGE_FETCH), 1);
}

#define READS 40

static uint32_t count_answered(const struct stage *s, const uint64_t ids[READS]) {
	uint32_t n = 0;
	for (uint32_t i = 0; i < READS; i++) {
		n += stage_answer(s, ids[i]) != NULL;
	}
	return n;
}

static void ask_reads(struct stage *s, uint64_t ids[READS]) {
	s->held[1][0] = s->held[2][0] = true;
	for (uint32_t i = 0; i < READS; i++) {
		struct core_request r = stage_request(CORE_GET, "k", no_lock);
		r.quorum = true;
		ids[i] = stage_ask(s, 0, r);
	}
	stage_settle(s);
}

static void check_reads(const struct stage *s, const uint64_t ids[READS], const char *begins) {
	for (uint32_t i = 0; i < READS; i++) {
		assert_non_null(stage_answer(s, ids[i]));
		assert_int_equal(stage_answer(s, ids[i])->r.error, PAWL_OK);
		assert_memory_equal(stage_answer(s, ids[i])->value.bytes, begins, strlen(begins));
	}
}

static void only_a_few_large_values_are_fetched_at_one_time(void **state) {
	struct stage *s = *state;
	uint64_t ids[READS];
	share_among(s, 1, LARGE);
	update_past(s, 0, "newer");
	ask_reads(s, ids);
	s->held[0][1] = true;
	s->held[1][0] = s->held[2][0] = false;
	stage_settle(s);
	assert_in_range(stage_sent(s, MESSAGE_FETCH), 1, 8);
	s->held[0][1] = false;
	for (int i = 0; i < 100; i++) {
		stage_settle(s);
		stage_tick(s);
	}
	check_reads(s, ids, "newer");
}

/* Makes one frame of all frames that wait on a link, and delivers it. */
static void deliver_as_one(struct stage *s, uint32_t from, uint32_t to) {
	struct message messages[READS];
	struct frame frame;
	uint32_t count = 0;
	for (struct stage_frame *f = s->links[from][to].head; f; f = f->next) {
		struct slice body;
		assert_int_equal(peer_scan(slice_of(f->bytes, f->size), PEER_BODY_BYTES_MAX,
			&body, NULL), PEER_SCAN_COMPLETE);
		assert_int_equal(peer_frame_decode(&s->decoder, body, &frame), 0);
		assert_true(frame.count == 1 && count < READS);
		messages[count++] = frame.messages[0];
	}
	frame.messages = messages;
	frame.count = count;
	stage_step(s, to, &(struct core_event){ .kind = CORE_FRAME,
		.peer = stage_peer(s, to, from), .frame = &frame });
	while (s->links[from][to].head) {
		stage_drop(s, from, to);
	}
}

/* The answers of a master to many reads come at once. A node that showed all values in one step
 * would serve nobody else meanwhile. */
static void a_turn_shows_only_a_few_large_values(void **state) {
	struct stage *s = *state;
	uint64_t ids[READS];
	share_among(s, 1, LARGE);
	ask_reads(s, ids);
	assert_int_equal(count_answered(s, ids), 0);
	deliver_as_one(s, 1, 0);
	assert_in_range(count_answered(s, ids), 1, 5);
	stage_tick(s);
	assert_in_range(count_answered(s, ids), 2, 10);
	for (int i = 0; i < READS; i++) {
		stage_tick(s);
	}
	check_reads(s, ids, "of 0");
}

static void reads_of_a_client_that_has_gone_are_not_shown(void **state) {
	struct stage *s = *state;
	uint64_t ids[READS];
	share_among(s, 1, LARGE);
	ask_reads(s, ids);
	deliver_as_one(s, 1, 0);
	const uint32_t shown = count_answered(s, ids);
	stage_client_gone(s, 0, 1);
	stage_tick(s);
	assert_int_equal(count_answered(s, ids), shown);
	assert_int_equal(stage_status(s, 0).rounds, 0);
}

/* Asks `count` questions in one frame, from a node whose client asks without waiting for
 * answers. */
static void ask_at_once(struct stage *s, enum message_kind kind, uint32_t count) {
	struct message *asked = calloc(count, sizeof *asked);
	assert_non_null(asked);
	for (uint32_t i = 0; i < count; i++) {
		asked[i] = (struct message){ .kind = kind, .round = i, .key = slice_str("k") };
	}
	const struct core_status status = stage_status(s, 1), sender = stage_status(s, 0);
	const struct frame frame = { .epoch = status.epoch, .config_hash = status.config_hash,
		.sender = s->nodes[0].disk.node_id, .boot = sender.boot, .clock = sender.clock,
		.flags = FRAME_VOTING, .messages = asked, .count = count };
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = stage_peer(s, 1, 0),
		.frame = &frame });
	free(asked);
}

static void any_number_of_reads_of_a_key_with_many_holders_is_borne_by_a_link(void **state) {
	struct stage *s = *state;
	share_among(s, MANY, 6);
	uint64_t before = stage_sent(s, MESSAGE_READ_ANSWER);
	ask_at_once(s, MESSAGE_READ, 20000);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
	assert_in_range(stage_sent(s, MESSAGE_READ_ANSWER) - before, 20000, 30000);
}

static void any_number_of_reads_of_a_large_value_is_borne_by_a_link(void **state) {
	struct stage *s = *state;
	share_among(s, 1, LARGE);
	ask_at_once(s, MESSAGE_READ, 5000);
	assert_int_equal(stage_count(s, COUNT_link_reset), 0);
	assert_true(s->up[0][1]);
}

/* All of the reads are answered, exactly. */
static void many_reads_at_once_are_all_answered(void **state) {
	struct stage *s = *state;
	uint64_t ids[140];
	share_among(s, 60, 300);
	size_t used = named_memory.used;
	/* All questions are under way at once. */
	s->held[1][0] = s->held[2][0] = true;
	for (uint32_t i = 0; i < 140; i++) {
		struct core_request r = stage_request(i % 7 == 3 ? CORE_EXPLAIN
			: i % 7 == 5 ? CORE_WAITERS : CORE_GET, "k", no_lock);
		r.quorum = true;
		ids[i] = stage_ask(s, 0, r);
	}
	s->held[1][0] = s->held[2][0] = false;
	stage_settle(s);
	for (int i = 0; i < 200; i++) {
		/* A few begin in each step, and one is weighed after the other. */
		stage_wait(s, SPAN_MS);
	}
	assert_in_range(named_memory.used, used, used + ((size_t)8 << 20));
	for (uint32_t i = 0; i < 140; i++) {
		const struct stage_reply *r = stage_answer(s, ids[i]);
		assert_non_null(r);
		assert_int_equal(r->r.error, PAWL_OK);
		if (i % 7 != 5) {
			assert_int_equal(r->r.holder_count, 60);
		}
	}
	assert_true(stage_count(s, COUNT_report_waited) > 100);
}

static void one_of_many_holders_is_broken_by_its_token(void **state) {
	struct stage *s = *state;
	share_among(s, MANY, 6);
	uint64_t token, noted;
	assert_true(core_peek(s->nodes[0].core, slice_str("k"), reader(150), &token, &noted));
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.now = true;
	r.token = token;
	assert_int_equal(stage_do(s, 2, r), PAWL_OK);
	assert_false(core_peek(s->nodes[0].core, slice_str("k"), reader(150), &token, &noted));
	assert_int_equal(read_by_quorum(s, 0)->r.holder_count, MANY - 1);
}

/* The holder lets go between the report and the question for its value, so that the explanation
 * begins again. */
static void an_explanation_does_not_wait_for_a_value_that_is_gone(void **state) {
	struct stage *s = *state;
	share_among(s, 3, LARGE);
	s->held[2][0] = true;
	uint64_t id = stage_ask(s, 0, stage_request(CORE_EXPLAIN, "k", no_lock));
	stage_settle(s);
	for (uint32_t i = 0; i < 2; i++) {
		release(s, 1, "k", reader(i));
	}
	s->held[2][0] = false;
	stage_settle(s);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	assert_true(stage_answer(s, id)->r.held);
	assert_true(core_counts(s->nodes[0].core)[COUNT_explained] == 2);
	assert_true(stage_sent(s, MESSAGE_READ) <= 4);
}

UNIT(cluster_reports) {
	const struct CMUnitTest tests[] = {
		NAMED(a_quorum_read_names_every_one_of_many_holders),
		NAMED(values_that_were_left_out_are_asked_for_where_they_are_shown),
		NAMED(one_large_value_needs_no_second_question),
		NAMED(an_older_copy_of_a_value_is_not_shown),
		NAMED(only_a_few_large_values_are_fetched_at_one_time),
		NAMED(a_turn_shows_only_a_few_large_values),
		NAMED(reads_of_a_client_that_has_gone_are_not_shown),
		NAMED(any_number_of_reads_of_a_key_with_many_holders_is_borne_by_a_link),
		NAMED(any_number_of_reads_of_a_large_value_is_borne_by_a_link),
		NAMED(many_reads_at_once_are_all_answered),
		NAMED(one_of_many_holders_is_broken_by_its_token),
		NAMED(an_explanation_does_not_wait_for_a_value_that_is_gone),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
