/* test_ends.c: the abstract machine refuses steps that break a rule: what ends a record, or changes
 * its value. */
#include "scene.h"

/* ---- ends ---- */

static void begin_release(struct scene *s) {
	scene_begin(s, MESSAGE_RELEASE, MESSAGE_RELEASE_ANSWER);
	put_record(&s->before, 1, 90);
	s->step.ended_after.released = true;
}

static void test_release(void **state) {
	(void)state;
	struct scene s;
	begin_release(&s);
	allowed(&s);
	s.step.ended_after.released = false;
	refused(&s, "R3");
	begin_release(&s);
	put_record(&s.after, 1, 90);
	refused(&s, "drops the record");
	begin_release(&s);
	put_record(&s.before, 2, 50);
	refused(&s, "another lock_id was dropped");
	begin_release(&s);
	s.step.in_epoch = false;
	refused(&s, "nothing was to end it");
}

static void test_roll_back(void **state) {
	(void)state;
	struct scene s;
	begin_release(&s);
	s.m.name = 17;
	s.before.records[0].name = 17;
	s.step.ended_after = (struct m_ended){ .name = 17 };
	allowed(&s);
	s.step.ended_after.released = true;
	refused(&s, "not remembered among the released");
	s.step.ended_after.released = false;
	s.before.records[0].name = 18;
	refused(&s, "nothing but what rests on its name");
	s.before.records[0].name = 17;
	put_record(&s.after, 1, 90)->name = 17;
	refused(&s, "drops what rests on its name");
	s.step.bound = true;
	allowed(&s);
}

/* An extension whose name is 32 is taken back. */
static void test_taken_back(void **state) {
	(void)state;
	struct scene s;
	begin_release(&s);
	s.m.name = s.step.base = 32;
	s.before.records[0].name = 32;
	s.step.ended_after.released = false;
	allowed(&s);
	s.step.base = 17;
	struct m_record *now = put_record(&s.after, 1, 90);
	now->name = 17;
	allowed(&s);
	now->name = 32;
	refused(&s, "the request's name again");
	s.step.base = 0;
	allowed(&s);
	now->name = 17;
	allowed(&s);
	now->token = 91;
	refused(&s, "changes the name alone");
	now->token = 90;
	s.before.records[0].name = 48;
	refused(&s, "nothing was accepted");
}

static void test_connection(void **state) {
	(void)state;
	struct scene s;
	begin_release(&s);
	s.m.number = 4;
	s.step.ended_after = (struct m_ended){ .binding = 4 };
	s.before.records[0].terms.binding = 4;
	allowed(&s);
	s.before.records[0].terms.binding = 5;
	refused(&s, "greater binding");
	s.before.records[0].terms.binding = 4;
	s.step.ended_after.binding = 3;
	refused(&s, "remembered with its binding");
}

static void test_binding(void **state) {
	(void)state;
	struct scene s;
	scene_begin(&s, MESSAGE_BINDING, MESSAGE_BINDING_ANSWER);
	put_record(&s.before, 1, 90)->name = 17;
	put_record(&s.after, 1, 90);
	allowed(&s);
	s.after.records[0].name = 17;
	refused(&s, "no request rolls back");
	s.after.records[0].name = 0;
	s.after.records[0].token = 91;
	refused(&s, "no request rolls back");
	s.after.records[0].token = 90;
	s.answer.status = STATUS_FULL;
	refused(&s, "nothing was accepted");
	s.m.flags = FLAG_NOW;
	s.answer.status = STATUS_OK;
	s.step.bound = true;
	refused(&s, "ends where it is bound");
	s.after.records[0].name = 17;
	s.node.votes = false;
	allowed(&s);
	s.node.votes = true;
	s.before.records[0].freed = s.after.records[0].freed = true;
	allowed(&s);
	s.before.records[0].freed = false;
	s.after.record_count = 0;
	allowed(&s);
}

static void test_closing(void **state) {
	(void)state;
	struct scene s;
	begin_release(&s);
	s.m.kind = MESSAGE_HAND_OVER;
	s.m.closes_us = 3000000;
	refused(&s, "puts another record");
	struct m_record *r = put_record(&s.after, 1, 90);
	for (size_t i = 0; i < sizeof r->lock_id.b; i++) {
		r->lock_id.b[i] = (uint8_t)~r->lock_id.b[i];
	}
	r->barred = r->closing = true;
	r->end = (struct instant){ 53 * SPAN_S, 53 * SPAN_S };
	allowed(&s);
	r->end.boot++;
	refused(&s, "for the time that was asked for");
}

/* ---- values ---- */

static void test_update(void **state) {
	(void)state;
	struct scene s;
	scene_begin(&s, MESSAGE_PREPARE, MESSAGE_PREPARE_ANSWER);
	s.m.ballot = (struct ballot){ 99, 8, 1 };
	put_record(&s.before, 1, 90);
	put_record(&s.after, 1, 90)->prepared = s.m.ballot;
	s.answer.ballot = s.before.records[0].wrote;
	s.answer.value = slice_of("a", 1);
	allowed(&s);
	s.answer.ballot.clock++;
	refused(&s, "reports the value");
	s.answer.ballot.clock--;
	s.before.records[0].prepared.clock = 120;
	refused(&s, "below the one that it noted");
	s.before.records[0].prepared.clock = 90;
	s.before.records[0].noted = s.after.records[0].noted = 99;
	refused(&s, "not above its record's noted");
	s.m.kind = MESSAGE_WRITE;
	s.before.records[0].noted = s.after.records[0].noted = 89;
	s.m.value = slice_of("b", 1);
	refused(&s, "taken with its ballot");
	s.after.records[0].wrote = s.m.ballot;
	s.after.records[0].value = m_hash(s.m.value);
	allowed(&s);
	s.after.records[0].end.boot++;
	refused(&s, "lease untouched");
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_release),
		cmocka_unit_test(test_roll_back),
		cmocka_unit_test(test_taken_back),
		cmocka_unit_test(test_connection),
		cmocka_unit_test(test_binding),
		cmocka_unit_test(test_closing),
		cmocka_unit_test(test_update),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
