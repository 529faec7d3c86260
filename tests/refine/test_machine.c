/* test_machine.c: the abstract machine refuses steps that break a rule. Each test makes an allowed
 * step by hand, and then breaks one thing of it. Here: promises, commits and extensions. */
#include "scene.h"

/* ---- promises ---- */

static void begin_promise(struct scene *s) {
	scene_begin(s, MESSAGE_PROMISE, MESSAGE_PROMISE_ANSWER);
	s->m.attempt = 5;
	s->answer.noted = 100;
	put_promise(&s->after, 1, 100);
}

static void test_promise(void **state) {
	(void)state;
	struct scene s;
	begin_promise(&s);
	allowed(&s);
	s.node.votes = false;
	refused(&s, "R4");
	begin_promise(&s);
	s.step.in_epoch = false;
	refused(&s, "R4");
	begin_promise(&s);
	put_record(&s.before, 2, 50);
	put_record(&s.after, 2, 50);
	refused(&s, "R1");
	begin_promise(&s);
	put_promise(&s.before, 2, 50);
	refused(&s, "R1");
	begin_promise(&s);
	s.step.ended.released = true;
	refused(&s, "R3");
	begin_promise(&s);
	s.after.promises[0].end.boot += SPAN_MS;
	refused(&s, "promise_timeout");
	begin_promise(&s);
	put_promise(&s.before, 1, 80);
	refused(&s, "keeps what it noted");
	begin_promise(&s);
	s.answer.noted = 99;
	refused(&s, "reports what it noted");
	begin_promise(&s);
	s.m.ballot.clock = 9;
	refused(&s, "highest ballot");
	s.after.promises[0].first = s.m.ballot;
	refused(&s, "the ballot that was named for it");
	s.answer.ballot = s.m.ballot;
	allowed(&s);
}

/* The ballot of a promise to another request has raised the clock in this step. */
static void test_promise_after_another(void **state) {
	(void)state;
	struct scene s;
	begin_promise(&s);
	s.after.promises[0].noted = s.answer.noted = s.step.clock_after = 101;
	refused(&s, "notes the clock");
	s.step.clock_between = 101;
	allowed(&s);
	s.after.promises[0].noted = s.answer.noted = s.step.clock_after = 102;
	refused(&s, "notes the clock");
	/* A request for the same lock_id was parked, and has its promise now. */
	begin_promise(&s);
	s.after.promises[0].attempt = 6;
	refused(&s, "asked last");
	s.step.promised_between = true;
	allowed(&s);
}

static void test_held_never_becomes_promise(void **state) {
	(void)state;
	struct scene s;
	begin_promise(&s);
	put_record(&s.before, 1, 50);
	refused(&s, "never becomes a promise");
	begin_promise(&s);
	s.after.promise_count = 0;
	put_record(&s.before, 1, 50);
	put_record(&s.after, 1, 50);
	s.answer = (struct message){ .status = STATUS_HELD_SELF, .token = 50, .noted = 49,
		.ballot = { 50, 7, 1 }, .value = slice_of("a", 1) };
	allowed(&s);
	s.answer.noted = 48;
	refused(&s, "held by yourself");
}

static void test_withdraw(void **state) {
	(void)state;
	struct scene s;
	scene_begin(&s, MESSAGE_WITHDRAW, MESSAGE_WITHDRAW);
	s.step.answer = NULL;
	s.m.attempt = 5;
	put_promise(&s.before, 1, 50);
	allowed(&s);
	s.m.attempt = 6;
	refused(&s, "another attempt");
	s.m.attempt = 5;
	put_record(&s.before, 1, 50);
	refused(&s, "no held record");
}

/* ---- commits and learning ---- */

static void begin_commit(struct scene *s) {
	scene_begin(s, MESSAGE_COMMIT, MESSAGE_COMMIT_ANSWER);
	s->m.token = 101;
	s->m.lease_us = 1000000;
	s->m.ballot = (struct ballot){ 101, 7, 1 };
	s->m.value = slice_of("a", 1);
	s->step.clock_after = 101;
	put_promise(&s->before, 1, 90);
	put_record(&s->after, 1, 101)->noted = 90;
}

static void test_commit(void **state) {
	(void)state;
	struct scene s;
	begin_commit(&s);
	allowed(&s);
	s.node.votes = false;
	refused(&s, "R4");
	begin_commit(&s);
	put_record(&s.before, 2, 50);
	put_record(&s.after, 2, 50);
	refused(&s, "R1");
	begin_commit(&s);
	s.before.promises[0].noted = 101;
	refused(&s, "R2");
	begin_commit(&s);
	s.before.promise_count = 0;
	s.node.clock = 101;
	refused(&s, "R2");
	begin_commit(&s);
	s.step.ended.released = true;
	refused(&s, "R3");
	begin_commit(&s);
	s.m.lease_us = 10000001;
	refused(&s, "R5");
	begin_commit(&s);
	s.after.records[0].end.raw -= 1;
	refused(&s, "later end");
	begin_commit(&s);
	s.after.records[0].token = 100;
	refused(&s, "raises the record's token");
	begin_commit(&s);
	s.step.clock_after = 100;
	refused(&s, "raises the clock");
	begin_commit(&s);
	s.after.records[0].noted = 100;
	refused(&s, "keeps what was noted");
	begin_commit(&s);
	s.step.lost = (struct ballot){ 102, 7, 1 };
	refused(&s, "stale");
	begin_commit(&s);
	put_promise(&s.before, 2, 50);
	put_promise(&s.after, 2, 50);
	refused(&s, "displaces");
	/* Its request may have got a promise anew, but not against R1. */
	s.after.promises[0].noted = 101;
	refused(&s, "R1");
	begin_commit(&s);
	put_promise(&s.after, 1, 90);
	refused(&s, "takes the place of the promise");
	begin_commit(&s);
	s.answer.status = STATUS_HELD;
	refused(&s, "although the message was refused");
}

static void test_contested(void **state) {
	(void)state;
	struct scene s;
	begin_commit(&s);
	for (uint8_t id = 2; id < 4; id++) {
		put_record(&s.before, id, 50);
		put_record(&s.after, id, 50);
	}
	refused(&s, "section 4");
}

static void test_repeated_commit(void **state) {
	(void)state;
	struct scene s;
	begin_commit(&s);
	s.before.promise_count = 0;
	struct m_record *own = put_record(&s.before, 1, 95);
	own->value = m_hash(slice_of("b", 1));
	refused(&s, "never changes the value");
	own->value = m_hash(slice_of("a", 1));
	s.m.prepared = own->wrote;
	s.after.records[0].noted = own->noted;
	allowed(&s);
	s.after.records[0].end = own->end = (struct instant){ 60 * SPAN_S, 60 * SPAN_S };
	allowed(&s);
	s.after.records[0].end.boot = s.after.records[0].end.raw = 51 * SPAN_S;
	refused(&s, "later end");
}

static void test_learn(void **state) {
	(void)state;
	struct scene s;
	begin_commit(&s);
	s.m.kind = MESSAGE_LEARN;
	s.answer.kind = MESSAGE_LEARN_ANSWER;
	allowed(&s);
	put_record(&s.before, 2, 50);
	put_record(&s.after, 2, 50);
	refused(&s, "R1");
	begin_commit(&s);
	s.m.kind = MESSAGE_LEARN;
	s.before.promise_count = 0;
	struct m_record *own = put_record(&s.before, 1, 95);
	own->wrote.clock = own->prepared.clock = 200;
	own->value = m_hash(slice_of("b", 1));
	s.after.records[0].noted = own->noted;
	s.after.records[0].prepared = own->prepared;
	refused(&s, "newer one");
	begin_commit(&s);
	s.m.kind = MESSAGE_LEARN;
	s.m.token = s.after.records[0].token = s.step.clock_after = 103;
	s.before.promise_count = 0;
	s.after.records[0].noted = 101;
	refused(&s, "notes the clock");
	s.step.clock_between = 101;
	allowed(&s);
}

/* The other master's copy says that the lock ended with a connection: it lasts for its delay. */
static void test_sync_with_lock_delay(void **state) {
	(void)state;
	struct scene s;
	scene_begin(&s, MESSAGE_SYNC_RECORD, MESSAGE_SYNC_RECORD);
	s.step.answer = NULL;
	s.m.left_us = 2000000;
	s.step.ended_after.binding = 3;
	for (uint32_t i = 0; i < 2; i++) {
		struct m_record *r = put_record(i ? &s.after : &s.before, 1, 90);
		r->terms.binding = 3;
		r->terms.delay = SPAN_MS;
	}
	struct m_record *now = &s.after.records[0];
	now->end = instant_add(s.node.now, SPAN_MS);
	allowed(&s);
	now->end.boot++;
	now->end.raw++;
	refused(&s, "later end");
	now->end = instant_add(s.node.now, SPAN_MS);
	s.step.ended_after.binding = 2;
	refused(&s, "later end");
}

/* A copy of a lease that is longer than the present max_lease is cut to that. */
static void test_sync_of_a_longer_lease(void **state) {
	(void)state;
	struct scene s;
	scene_begin(&s, MESSAGE_SYNC_RECORD, MESSAGE_SYNC_RECORD);
	s.step.answer = NULL;
	s.m.left_us = (uint64_t)(2 * s.node.max_lease / SPAN_US);
	s.m.token = 90;
	struct m_record *now = put_record(&s.after, 1, 90);
	now->wrote = now->prepared = s.m.ballot = (struct ballot){ 80, 7, 1 };
	now->value = m_hash(s.m.value);
	now->noted = s.step.clock_after;
	now->end = instant_add(s.node.now, s.node.max_lease);
	allowed(&s);
	now->end.boot++;
	now->end.raw++;
	refused(&s, "later end");
}

/* ---- extensions ---- */

static void begin_extend(struct scene *s) {
	scene_begin(s, MESSAGE_EXTEND, MESSAGE_EXTEND_ANSWER);
	s->m.lease_us = 2000000;
	s->answer.flags = FLAG_HAD;
	put_record(&s->before, 1, 90);
	put_record(&s->after, 1, 90)->end = (struct instant){ 52 * SPAN_S, 52 * SPAN_S };
}

static void test_extend(void **state) {
	(void)state;
	struct scene s;
	begin_extend(&s);
	allowed(&s);
	s.after.records[0].end.boot = 53 * SPAN_S;
	refused(&s, "later end");
	begin_extend(&s);
	s.m.token = s.before.records[0].noted;
	refused(&s, "above what it noted");
	begin_extend(&s);
	s.before.records[0].barred = s.after.records[0].barred = true;
	refused(&s, "barred");
	begin_extend(&s);
	s.m.lease_us = 20000000;
	refused(&s, "R5");
	begin_extend(&s);
	s.after.records[0].value++;
	refused(&s, "changes nothing but");
	begin_extend(&s);
	s.m.number = 3;
	refused(&s, "greatest binding");
	begin_extend(&s);
	s.before.record_count = 0;
	refused(&s, "without the record");
	begin_extend(&s);
	s.before.records[0].name = s.after.records[0].name = 17;
	refused(&s, "rests on a name");
	begin_extend(&s);
	s.before.record_count = s.after.record_count = 0;
	s.answer = (struct message){ .status = STATUS_NEED, .age_us = 40000000 };
	s.step.lacked_since = s.node.vote_began;
	allowed(&s);
	s.answer.age_us++;
	refused(&s, "for which it has voted");
	s.answer.age_us = 5000000;
	s.step.lacked_since = (struct instant){ 46 * SPAN_S, 46 * SPAN_S };
	refused(&s, "for longer than it has");
}

static void test_extend_contested(void **state) {
	(void)state;
	struct scene s;
	begin_extend(&s);
	put_record(&s.before, 2, 50);
	put_record(&s.after, 2, 50);
	refused(&s, "no master had");
	s.answer.flags = 0;
	allowed(&s);
	s.node.vote_began = (struct instant){ 50 * SPAN_S - SPAN_MS, 50 * SPAN_S - SPAN_MS };
	refused(&s, "not lengthened yet");
}

static void test_shorten(void **state) {
	(void)state;
	struct scene s;
	begin_extend(&s);
	s.m.number = NUMBER_SHORTENS | 2;
	s.m.lease_us = 500000;
	s.after.records[0].terms.binding = 2;
	s.after.records[0].end = (struct instant){ 50 * SPAN_S + 500 * SPAN_MS,
		50 * SPAN_S + 500 * SPAN_MS };
	allowed(&s);
	s.before.records[0].terms.binding = 2;
	refused(&s, "unless it shortens");
	s.before.records[0].terms.binding = 1;
	s.after.records[0].end = s.before.records[0].end;
	refused(&s, "unless it shortens");
}

/* ---- without a message ---- */

static void test_idle(void **state) {
	(void)state;
	struct scene s;
	scene_begin(&s, MESSAGE_READ, MESSAGE_READ_ANSWER);
	assert_null(machine_idle(&s.node, &s.before, &s.after));
	put_record(&s.after, 1, 90);
	assert_non_null(machine_idle(&s.node, &s.before, &s.after));
	put_record(&s.before, 1, 90);
	assert_null(machine_idle(&s.node, &s.before, &s.after));
	s.after.records[0].end.boot++;
	assert_non_null(machine_idle(&s.node, &s.before, &s.after));
	s.after.record_count = 0;
	put_promise(&s.after, 2, 100);
	assert_null(machine_idle(&s.node, &s.before, &s.after));
	put_record(&s.after, 3, 90);
	put_record(&s.before, 3, 90);
	assert_non_null(machine_idle(&s.node, &s.before, &s.after));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_promise),
		cmocka_unit_test(test_promise_after_another),
		cmocka_unit_test(test_held_never_becomes_promise),
		cmocka_unit_test(test_withdraw),
		cmocka_unit_test(test_commit),
		cmocka_unit_test(test_contested),
		cmocka_unit_test(test_repeated_commit),
		cmocka_unit_test(test_learn),
		cmocka_unit_test(test_sync_with_lock_delay),
		cmocka_unit_test(test_sync_of_a_longer_lease),
		cmocka_unit_test(test_extend),
		cmocka_unit_test(test_extend_contested),
		cmocka_unit_test(test_shorten),
		cmocka_unit_test(test_idle),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
