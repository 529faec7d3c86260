/* These tests are about what a replica takes for a double grant, and what it does not
 * (cluster/grants). They play the streams of three masters, of which two are a quorum. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "grants.h"
#include "slice.h"

#define X 1
#define Y 2

/* What was reported last, and how often something was; `order`: of the records that come. */
struct seen {
	struct grants *grants;
	struct alloc_counter memory;
	struct allocator alloc;
	unsigned count;
	enum grants_why why;
	uint32_t master, order;
	uint64_t earlier, later;
	char owner[16], key[16];
	/* The time of this node, and the number of the next entry of each master. */
	struct instant now;
	uint64_t next[3];
};

static void breach(void *ctx, const struct grants_breach *b) {
	struct seen *seen = ctx;
	seen->count++;
	seen->why = b->why;
	seen->master = b->master;
	seen->earlier = b->holders[0].token;
	seen->later = b->holders[1].token;
	memset(seen->owner, 0, sizeof seen->owner);
	memset(seen->key, 0, sizeof seen->key);
	memcpy(seen->owner, b->holders[0].owner.data, b->holders[0].owner.size);
	memcpy(seen->key, b->key.data, b->key.size);
}

static void pass(struct seen *s, span_ns span) {
	s->now = instant_add(s->now, span);
}

static struct id128 lock_named(uint8_t number) {
	return (struct id128){ { number } };
}

static void begin(struct seen *s, uint32_t master, uint64_t boot) {
	s->next[master] = 1;
	grants_begins(s->grants, master, boot << 32 | 1, 1, true);
	grants_batch(s->grants, master, true, NULL);
}

static int setup(void **state) {
	static struct seen seen;
	seen = (struct seen){ .now = { 1000 * SPAN_S, 1000 * SPAN_S } };
	seen.alloc = alloc_libc(&seen.memory);
	seen.grants = grants_new(&(struct grants_options){ .alloc = &seen.alloc,
		.breach = breach, .ctx = &seen });
	assert_non_null(seen.grants);
	grants_epoch(seen.grants, 3, 2, 10000);
	for (uint32_t i = 0; i < 3; i++) {
		begin(&seen, i, 1);
	}
	*state = &seen;
	return 0;
}

static int teardown(void **state) {
	struct seen *s = *state;
	grants_free(s->grants);
	assert_int_equal(s->memory.used, 0);
	return 0;
}

static void entry(struct seen *s, uint32_t master, struct message m) {
	m.key = slice_str("k");
	m.number = s->next[master]++;
	m.terms.binding = s->order;
	grants_entry(s->grants, master, &m, s->now, s->now);
}

/* The master has the lock, which has ten seconds left there. */
static struct message record_of(uint8_t lock, uint64_t token) {
	return (struct message){ .kind = MESSAGE_FEED_RECORD, .lock_id = lock_named(lock),
		.token = token, .left_us = 10000000, .owner = slice_str(lock == X ? "ann" : "bob"),
		.flags = FLAG_BY_RULES | FLAG_BY_COMMIT };
}

static void has(struct seen *s, uint32_t master, uint8_t lock, uint64_t token) {
	entry(s, master, record_of(lock, token));
}

static void ends(struct seen *s, uint32_t master, uint8_t lock, uint64_t token,
	enum core_watch_event_kind how) {
	entry(s, master,
		(struct message){ .kind = MESSAGE_FEED_GONE, .lock_id = lock_named(lock) });
	entry(s, master, (struct message){ .kind = MESSAGE_FEED_WATCH_EVENT,
		.lock_id = lock_named(lock), .token = token, .part = (uint32_t)how,
		.parts = (uint32_t)WATCH_EVENT_MISSED + 1 });
}

/* Everything has come that happened at the master until now. */
static void caught_up(struct seen *s, uint32_t master) {
	pass(s, SPAN_MS);
	grants_batch(s->grants, master, false, &s->now);
}

/* X is granted by the masters 0 and 1. */
static void grant_x(struct seen *s) {
	has(s, 0, X, 5);
	has(s, 1, X, 5);
}

/* A master that lies may say any number of microseconds. */
static void a_lease_of_any_length_is_remembered(void **state) {
	struct seen *s = *state;
	static const uint64_t lefts[] = { UINT64_MAX, UINT64_MAX / 1000, INT64_MAX,
		INT64_MAX / 1000 + 1, 0 };
	for (size_t i = 0; i < sizeof lefts / sizeof *lefts; i++) {
		struct message record = record_of(X, 5 + i);
		record.left_us = lefts[i];
		entry(s, 0, record);
		entry(s, 1, record);
	}
	assert_int_equal(grants_keys(s->grants), 1);
	assert_int_equal(s->count, 0);
}

/* ---- what is found ---- */

static void a_master_that_has_both_is_found(void **state) {
	struct seen *s = *state;
	grant_x(s);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	assert_int_equal(s->count, 0);
	caught_up(s, 1);
	assert_int_equal(s->count, 1);
	assert_int_equal(s->why, GRANTS_OVERLAP);
	assert_int_equal(s->master, 1);
	assert_int_equal(s->earlier, 5);
	assert_int_equal(s->later, 7);
	assert_string_equal(s->owner, "ann");
	assert_string_equal(s->key, "k");
}

static void it_is_told_once(void **state) {
	struct seen *s = *state;
	grant_x(s);
	has(s, 1, Y, 7);
	has(s, 0, Y, 7);
	for (int i = 0; i < 3; i++) {
		caught_up(s, 1);
		caught_up(s, 0);
		has(s, 1, X, 5);
		has(s, 1, Y, 7);
	}
	assert_int_equal(s->count, 1);
}

static void a_lease_that_ends_too_early_is_found(void **state) {
	struct seen *s = *state;
	grant_x(s);
	pass(s, 9 * SPAN_S);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	assert_int_equal(s->count, 1);
	assert_int_equal(s->why, GRANTS_EARLY);
}

/* The holder has shortened X to five seconds. Master 1 does not tell of it before the end. */
static void a_lease_that_its_holder_shortened_may_end_early(void **state) {
	struct seen *s = *state;
	struct message shortened = record_of(X, 5);
	grant_x(s);
	s->order = 1;
	shortened.left_us = 5000000;
	entry(s, 0, shortened);
	pass(s, 6 * SPAN_S);
	ends(s, 0, X, 5, WATCH_EVENT_EXPIRED);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 0, Y, 7);
	has(s, 1, Y, 7);
	assert_int_equal(s->count, 0);
}

/* The record may be told of in front of the end, of which it is told as it was. */
static void it_is_found_in_either_order(void **state) {
	struct seen *s = *state;
	grant_x(s);
	pass(s, 9 * SPAN_S);
	has(s, 1, Y, 7);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 2, Y, 7);
	assert_int_equal(s->count, 1);
	assert_int_equal(s->why, GRANTS_EARLY);
}

static void a_token_that_is_not_greater_is_found(void **state) {
	struct seen *s = *state;
	grant_x(s);
	ends(s, 1, X, 5, WATCH_EVENT_RELEASED);
	has(s, 1, Y, 5);
	has(s, 2, Y, 5);
	assert_int_equal(s->count, 1);
	assert_int_equal(s->why, GRANTS_TOKEN);
}

static void a_token_below_what_the_master_accepted_before_its_start_is_found(void **state) {
	struct seen *s = *state;
	grant_x(s);
	pass(s, 60 * SPAN_S);
	begin(s, 1, 2);
	has(s, 1, Y, 4);
	has(s, 2, Y, 4);
	assert_int_equal(s->count, 1);
	assert_int_equal(s->why, GRANTS_TOKEN);
}

/* ---- what is right ---- */

static void one_after_the_other_is_right(void **state) {
	struct seen *s = *state;
	grant_x(s);
	ends(s, 0, X, 5, WATCH_EVENT_RELEASED);
	ends(s, 1, X, 5, WATCH_EVENT_RELEASED);
	has(s, 0, Y, 7);
	has(s, 1, Y, 7);
	caught_up(s, 0);
	pass(s, 10 * SPAN_S);
	ends(s, 0, Y, 7, WATCH_EVENT_EXPIRED);
	ends(s, 1, Y, 7, WATCH_EVENT_EXPIRED);
	has(s, 0, X, 9);
	has(s, 1, X, 9);
	caught_up(s, 0);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* Nobody was granted the key within the time that the lease should still have lasted. */
static void a_lock_after_the_time_of_a_lease_that_ended_early_is_right(void **state) {
	struct seen *s = *state;
	grant_x(s);
	pass(s, 9 * SPAN_S);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	pass(s, 2 * SPAN_S);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

static void a_lease_that_was_taken_away_may_end_early(void **state) {
	struct seen *s = *state;
	grant_x(s);
	ends(s, 1, X, 5, WATCH_EVENT_LOST);
	/* Its lock delay is over. */
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* The master does not tell an event. */
static void is_silent(struct seen *s, uint32_t master) {
	entry(s, master, (struct message){ .kind = MESSAGE_FEED_WATCH_EVENT });
}

/* The master did not know yet that its events are wanted when the lease was lost. It tells the end
 * of the lock delay. */
static void a_lease_that_was_taken_away_unseen_may_end_early(void **state) {
	struct seen *s = *state;
	grant_x(s);
	is_silent(s, 1);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* What the master says of the lease after the silence counts, and it alone. */
static void after_a_silence_the_lease_counts_as_it_is_then(void **state) {
	struct seen *s = *state;
	struct message closing = record_of(X, 5);
	closing.left_us = 2000000;
	grant_x(s);
	is_silent(s, 1);
	entry(s, 1, closing);
	pass(s, 3 * SPAN_S);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	assert_int_equal(s->count, 0);
	pass(s, SPAN_S);
	ends(s, 1, Y, 7, WATCH_EVENT_EXPIRED);
	has(s, 1, X, 9);
	has(s, 2, X, 9);
	assert_int_equal(s->count, 1);
	assert_int_equal(s->why, GRANTS_EARLY);
}

static void one_master_alone_is_no_quorum(void **state) {
	struct seen *s = *state;
	grant_x(s);
	has(s, 1, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
	has(s, 2, Y, 7);
	assert_int_equal(s->count, 1);
}

/* A restarted master has what a failed commit has left, next to what is held. */
static void what_came_by_a_merge_is_no_grant(void **state) {
	struct seen *s = *state;
	grant_x(s);
	has(s, 2, Y, 7);
	begin(s, 1, 2);
	struct message x = record_of(X, 5), y = record_of(Y, 7);
	x.flags = y.flags = 0;
	entry(s, 1, x);
	entry(s, 1, y);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* X ended and Y began, and of Y an earlier entry is sent first. */
static void the_end_may_come_behind_a_record_that_was_sent_late(void **state) {
	struct seen *s = *state;
	grant_x(s);
	has(s, 1, Y, 7);
	has(s, 0, Y, 7);
	ends(s, 1, X, 5, WATCH_EVENT_RELEASED);
	ends(s, 0, X, 5, WATCH_EVENT_RELEASED);
	caught_up(s, 1);
	caught_up(s, 0);
	assert_int_equal(s->count, 0);
}

static void an_echo_of_before_says_nothing(void **state) {
	struct seen *s = *state;
	const struct instant before = instant_add(s->now, -SPAN_MS);
	grant_x(s);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	grants_batch(s->grants, 1, false, &before);
	grants_batch(s->grants, 1, false, NULL);
	assert_int_equal(s->count, 0);
}

static void streams_are_not_compared_with_each_other(void **state) {
	struct seen *s = *state;
	grant_x(s);
	/* The stream of the master 1 has not come as far as the end of X. */
	ends(s, 0, X, 5, WATCH_EVENT_RELEASED);
	has(s, 0, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 0);
	caught_up(s, 2);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

static void a_stream_that_broke_off_excuses(void **state) {
	struct seen *s = *state;
	grant_x(s);
	begin(s, 1, 1);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
	/* If it goes on where it was, nothing is missing. */
	has(s, 1, X, 5);
	grants_begins(s->grants, 1, (uint64_t)1 << 32 | 1, s->next[1], false);
	caught_up(s, 1);
	assert_int_equal(s->count, 1);
}

static void a_master_that_does_not_tell_events_excuses(void **state) {
	struct seen *s = *state;
	grant_x(s);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	entry(s, 1, (struct message){ .kind = MESSAGE_FEED_WATCH_EVENT });
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

static void shared_locks_are_left_alone(void **state) {
	struct seen *s = *state;
	grant_x(s);
	struct message x = record_of(X, 5), y = record_of(Y, 7);
	x.terms.of = y.terms.of = MODE_SHARED;
	entry(s, 1, x);
	entry(s, 1, y);
	entry(s, 0, y);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

static void a_lease_ends_within_the_drift(void **state) {
	struct seen *s = *state;
	grant_x(s);
	pass(s, 10 * SPAN_S - 150 * SPAN_MS);
	ends(s, 1, X, 5, WATCH_EVENT_EXPIRED);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* A repair brings a lock of before to a master that has had a later one. */
static void a_repair_may_come_late(void **state) {
	struct seen *s = *state;
	grant_x(s);
	ends(s, 1, X, 5, WATCH_EVENT_RELEASED);
	struct message y = record_of(Y, 4);
	y.flags = FLAG_BY_RULES;
	entry(s, 1, y);
	entry(s, 2, record_of(Y, 4));
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* X has one master of each epoch, and so never a quorum. */
static void a_new_epoch_forgets(void **state) {
	struct seen *s = *state;
	has(s, 0, X, 5);
	grants_epoch(s->grants, 3, 2, 10000);
	assert_int_equal(grants_keys(s->grants), 0);
	begin(s, 1, 1);
	has(s, 1, X, 5);
	has(s, 1, Y, 7);
	has(s, 2, Y, 7);
	caught_up(s, 1);
	assert_int_equal(s->count, 0);
}

/* ---- memory ---- */

static void it_remembers_so_many_keys_and_locks(void **state) {
	struct seen *s = *state;
	char name[16];
	for (uint32_t i = 0; i < GRANTS_KEYS_MAX + 100; i++) {
		struct message m = record_of(X, 5);
		snprintf(name, sizeof name, "key %u", i);
		m.key = slice_str(name);
		m.number = s->next[0]++;
		grants_entry(s->grants, 0, &m, s->now, s->now);
	}
	assert_int_equal(grants_keys(s->grants), GRANTS_KEYS_MAX);
	const size_t used = s->memory.used;
	for (uint8_t i = 3; i < 200; i++) {
		has(s, 0, i, 100 + i);
		ends(s, 0, i, 100 + i, WATCH_EVENT_RELEASED);
	}
	assert_true(s->memory.used < used + 4096);
	assert_true(s->memory.used < GRANTS_KEYS_MAX * 1024u);
	assert_int_equal(s->count, 0);
}

#define GRANTS(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT(cluster_grants) {
	const struct CMUnitTest tests[] = {
		GRANTS(a_lease_of_any_length_is_remembered),
		GRANTS(a_master_that_has_both_is_found),
		GRANTS(it_is_told_once),
		GRANTS(a_lease_that_ends_too_early_is_found),
		GRANTS(a_lease_that_its_holder_shortened_may_end_early),
		GRANTS(it_is_found_in_either_order),
		GRANTS(a_token_that_is_not_greater_is_found),
		GRANTS(a_token_below_what_the_master_accepted_before_its_start_is_found),
		GRANTS(one_after_the_other_is_right),
		GRANTS(a_lock_after_the_time_of_a_lease_that_ended_early_is_right),
		GRANTS(a_lease_that_was_taken_away_may_end_early),
		GRANTS(a_lease_that_was_taken_away_unseen_may_end_early),
		GRANTS(after_a_silence_the_lease_counts_as_it_is_then),
		GRANTS(one_master_alone_is_no_quorum),
		GRANTS(what_came_by_a_merge_is_no_grant),
		GRANTS(the_end_may_come_behind_a_record_that_was_sent_late),
		GRANTS(an_echo_of_before_says_nothing),
		GRANTS(streams_are_not_compared_with_each_other),
		GRANTS(a_stream_that_broke_off_excuses),
		GRANTS(a_master_that_does_not_tell_events_excuses),
		GRANTS(shared_locks_are_left_alone),
		GRANTS(a_lease_ends_within_the_drift),
		GRANTS(a_repair_may_come_late),
		GRANTS(a_new_epoch_forgets),
		GRANTS(it_remembers_so_many_keys_and_locks),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
