/* These tests are about watches of the client: what is told first, what after a lost connection,
 * and when it is all told anew. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "client_rig.h"
#include "pawl/watch.h"

struct seen {
	/* What was told: "present:somebody=something@41 current ..." */
	char text[512];
	struct pawl_watch *watch;
	struct pawl_bytes resume;
	uint8_t resume_bytes[64];
	int ended;
	bool free_on_event;
};

static void note(struct seen *s, const char *what, const struct pawl_event *e) {
	size_t used = strlen(s->text);
	const struct pawl_entry *n = &e->entry;
	if (n->key.size == 0) {
		(void)snprintf(s->text + used, sizeof(s->text) - used, "%s ", what);
	} else {
		(void)snprintf(s->text + used, sizeof(s->text) - used, "%s:%s=%s@%u ", what,
			(const char *)n->owner.data, (const char *)n->value.data,
			(unsigned)n->token);
	}
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *e, void *arg) {
	struct seen *s = arg;
	note(s, pawl_event_name(e->type), e);
	/* A NUL follows all bytes that are handed out. */
	assert_int_equal(((const char *)e->entry.key.data)[e->entry.key.size], 0);
	assert_int_equal(((const char *)e->resume.data)[e->resume.size], 0);
	if (e->resume.size && e->resume.size <= sizeof(s->resume_bytes)) {
		memcpy(s->resume_bytes, e->resume.data, e->resume.size);
		s->resume = (struct pawl_bytes){ s->resume_bytes, e->resume.size };
	}
	if (s->free_on_event) {
		pawl_watch_free(watch);
		s->watch = NULL;
	}
}

static void on_ended(struct pawl_watch *watch, int error, const char *message, void *arg) {
	(void)watch;
	(void)message;
	((struct seen *)arg)->ended = error;
}

static void begin(struct rig *r, struct seen *s, bool prefix) {
	*s = (struct seen){ 0 };
	struct pawl_watch_options o = { .key = pawl_str(prefix ? "p" : "k"), .prefix = prefix,
		.on_event = on_event, .on_ended = on_ended, .arg = s };
	assert_int_equal(pawl_watch_start(r->client, &o, &s->watch), 0);
	rig_settle(r);
}

/* Checks what was told since the last time. */
static void expect(struct seen *s, const char *text) {
	assert_string_equal(s->text, text);
	s->text[0] = '\0';
}

static void the_present_state_comes_first_and_then_every_change(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	begin(&r, &s, false);
	expect(&s, "present:somebody=something@41 current ");
	assert_true(pawl_watch_current(s.watch));
	fake_event(&r.nodes[0], WATCH_EVENT_UPDATED, "somebody", "else", 41);
	fake_event(&r.nodes[0], WATCH_EVENT_RELEASED, "somebody", "", 41);
	fake_event(&r.nodes[0], WATCH_EVENT_ACQUIRED, "b", "v", 42);
	fake_event(&r.nodes[0], WATCH_EVENT_EXPIRED, "b", "", 42);
	rig_settle(&r);
	expect(&s, "updated:somebody=else@41 released:somebody=@41 acquired:b=v@42 expired:b=@42 ");
	pawl_watch_free(s.watch);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_UNWATCH], 1);
	rig_close(&r);
}

static void a_prefix_is_read_page_by_page(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	begin(&r, &s, true);
	expect(&s, "present:somebody=something@41 present:somebody=something@41 current ");
	assert_int_equal(r.nodes[0].asked[CLIENT_LIST], 2);
	rig_close(&r);
}

static void a_list_that_is_older_than_a_change_does_not_bring_back_what_has_ended(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	r.nodes[0].ends = "p1";
	begin(&r, &s, true);
	/* What is present is p2. */
	expect(&s, "released:=@41 present:somebody=something@41 current ");
	rig_close(&r);
}

static void a_watch_goes_on_where_it_was_after_its_connection_was_lost(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	begin(&r, &s, false);
	fake_event(&r.nodes[0], WATCH_EVENT_UPDATED, "somebody", "else", 41);
	rig_settle(&r);
	s.text[0] = '\0';
	/* The next node follows the same log, and has heard of all that. */
	r.nodes[1].log = r.nodes[0].log;
	r.nodes[1].sequence = r.nodes[0].sequence;
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.nodes[1].asked[CLIENT_WATCH], 1);
	assert_int_equal(r.nodes[1].last.from.sequence, 101);
	fake_event(&r.nodes[1], WATCH_EVENT_RELEASED, "somebody", "", 41);
	rig_settle(&r);
	expect(&s, "released:somebody=@41 ");
	rig_close(&r);
}

static void at_another_node_one_overflow_comes_before_the_present_state(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	begin(&r, &s, false);
	s.text[0] = '\0';
	r.nodes[1].held = false;
	fake_hang_up(&r.nodes[0]);
	rig_settle(&r);
	expect(&s, "overflow current ");
	assert_true(pawl_watch_current(s.watch));
	rig_close(&r);
}

static void an_overflow_at_the_node_is_told_once_and_then_the_present_state(void **state) {
	(void)state;
	for (int prefix = 0; prefix < 2; prefix++) {
		struct rig r;
		struct seen s;
		rig_open(&r, NULL);
		begin(&r, &s, prefix);
		s.text[0] = '\0';
		fake_overflow(&r.nodes[0]);
		rig_settle(&r);
		expect(&s, prefix ? "overflow present:somebody=something@41 "
			"present:somebody=something@41 current "
			: "overflow present:somebody=something@41 current ");
		fake_event(&r.nodes[0], WATCH_EVENT_LOST, "somebody", "", 41);
		rig_settle(&r);
		expect(&s, "lost:somebody=@41 ");
		rig_close(&r);
	}
}

static void a_later_watch_goes_on_after_an_event_of_an_earlier_one(void **state) {
	(void)state;
	struct rig r;
	struct seen s, t = { 0 };
	rig_open(&r, NULL);
	begin(&r, &s, false);
	fake_event(&r.nodes[0], WATCH_EVENT_UPDATED, "somebody", "else", 41);
	rig_settle(&r);
	assert_int_equal(s.resume.size, 16);
	struct pawl_watch_options o = { .key = pawl_str("k"), .from = s.resume,
		.on_event = on_event, .arg = &t };
	assert_int_equal(pawl_watch_start(r.client, &o, &t.watch), 0);
	rig_settle(&r);
	expect(&t, "");
	fake_event(&r.nodes[0], WATCH_EVENT_RELEASED, "somebody", "", 41);
	rig_settle(&r);
	expect(&t, "released:somebody=@41 ");
	pawl_watch_free(t.watch);
	t = (struct seen){ 0 };
	uint8_t strange[16] = { 1, 2, 3 };
	o.from = (struct pawl_bytes){ strange, sizeof(strange) };
	assert_int_equal(pawl_watch_start(r.client, &o, &t.watch), 0);
	rig_settle(&r);
	expect(&t, "overflow present:somebody=something@41 current ");
	rig_close(&r);
}

static void a_watch_may_be_freed_in_its_callback(void **state) {
	(void)state;
	struct rig r;
	struct seen s = { .free_on_event = true };
	rig_open(&r, NULL);
	struct pawl_watch_options o = { .key = pawl_str("k"), .on_event = on_event, .arg = &s };
	assert_int_equal(pawl_watch_start(r.client, &o, &s.watch), 0);
	rig_settle(&r);
	expect(&s, "present:somebody=something@41 ");
	rig_close(&r);
}

static void a_watch_that_is_freed_before_its_answer_ends_at_the_node_too(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	begin(&r, &s, false);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	struct pawl_watch *second;
	struct pawl_watch_options o = { .key = pawl_str("l"), .on_event = on_event, .arg = &s };
	assert_int_equal(pawl_watch_start(r.client, &o, &second), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_WATCH], 2);
	pawl_watch_free(second);
	r.nodes[0].mood = FAKE_ANSWERS;
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].unwatched, 1);
	assert_true(pawl_watch_current(s.watch));
	rig_close(&r);
}

static void a_refusal_for_good_ends_the_watch_and_one_that_may_pass_does_not(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	r.nodes[0].error = r.nodes[1].error = PAWL_EDENIED;
	begin(&r, &s, false);
	assert_int_equal(s.ended, PAWL_EDENIED);
	assert_int_equal(pawl_watch_error(s.watch), PAWL_EDENIED);
	pawl_watch_free(s.watch);
	r.nodes[0].error = r.nodes[1].error = PAWL_EBUSY;
	begin(&r, &s, false);
	assert_int_equal(s.ended, 0);
	r.nodes[0].error = r.nodes[1].error = 0;
	rig_pass(&r, 500 * SPAN_MS);
	expect(&s, "present:somebody=something@41 current ");
	rig_close(&r);
}

static void a_node_that_falls_silent_is_left_although_nothing_was_asked(void **state) {
	(void)state;
	struct rig r;
	struct seen s;
	rig_open(&r, NULL);
	begin(&r, &s, false);
	s.text[0] = '\0';
	r.nodes[0].mood = FAKE_SILENT;
	rig_pass(&r, 20 * SPAN_S);
	assert_true(r.nodes[1].asked[CLIENT_WATCH] > 0);
	expect(&s, "overflow present:somebody=something@41 current ");
	rig_close(&r);
}

static void programs_cannot_send_the_requests_of_watches_themselves(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	assert_int_equal(pawl_start(r.client, &(struct pawl_request){ .method = PAWL_WATCH,
		.key = { "k", 1 } }, NULL, NULL, NULL), PAWL_EINVAL);
	assert_int_equal(pawl_start(r.client, &(struct pawl_request){ .method = PAWL_UNWATCH },
		NULL, NULL, NULL), PAWL_EINVAL);
	rig_close(&r);
}

static void whatever_memory_is_missing_the_watch_is_right_in_the_end(void **state) {
	(void)state;
	for (uint64_t fail_at = 1; fail_at < 120; fail_at++) {
		struct rig r;
		struct seen s = { 0 };
		rig_open(&r, NULL);
		r.fail_from = r.allocations + fail_at;
		r.fail_count = 2;
		struct pawl_watch_options o = { .key = pawl_str("k"), .on_event = on_event,
			.on_ended = on_ended, .arg = &s };
		if (pawl_watch_start(r.client, &o, &s.watch) == 0) {
			rig_pass(&r, 3 * SPAN_S);
			if (r.nodes[0].watcher && r.nodes[0].watch) {
				fake_event(&r.nodes[0], WATCH_EVENT_RELEASED, "somebody", "", 41);
				r.nodes[0].held = r.nodes[1].held = false;
			}
			rig_pass(&r, 12 * SPAN_S);
			assert_int_equal(s.ended, 0);
			assert_true(pawl_watch_current(s.watch));
			size_t size = strlen(s.text);
			const char *released = "released:somebody=@41 ",
				*anew = "overflow current ";
			bool told = size >= strlen(released) &&
				strcmp(s.text + size - strlen(released), released) == 0;
			assert_true(told || strstr(s.text, anew) || strstr(s.text, "present"));
		}
		rig_close(&r);
	}
}

UNIT(client_watches) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_present_state_comes_first_and_then_every_change),
		cmocka_unit_test(a_prefix_is_read_page_by_page),
		cmocka_unit_test(
			a_list_that_is_older_than_a_change_does_not_bring_back_what_has_ended),
		cmocka_unit_test(a_watch_goes_on_where_it_was_after_its_connection_was_lost),
		cmocka_unit_test(at_another_node_one_overflow_comes_before_the_present_state),
		cmocka_unit_test(an_overflow_at_the_node_is_told_once_and_then_the_present_state),
		cmocka_unit_test(a_later_watch_goes_on_after_an_event_of_an_earlier_one),
		cmocka_unit_test(a_watch_may_be_freed_in_its_callback),
		cmocka_unit_test(a_watch_that_is_freed_before_its_answer_ends_at_the_node_too),
		cmocka_unit_test(a_refusal_for_good_ends_the_watch_and_one_that_may_pass_does_not),
		cmocka_unit_test(a_node_that_falls_silent_is_left_although_nothing_was_asked),
		cmocka_unit_test(programs_cannot_send_the_requests_of_watches_themselves),
		cmocka_unit_test(whatever_memory_is_missing_the_watch_is_right_in_the_end),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
