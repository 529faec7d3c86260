/* These tests are about a contested key (docs/protocol.md, section 4). The one whose lock it is
 * loses nothing by that, and of a semaphore only the numbers are closed that two holders have. */
#include "modes.h"

#define LONG (10 * SPAN_S)

static void hold(struct stage *s, uint32_t node, struct id128 lock) {
	assert_int_equal(stage_do(s, node, stage_acquire("k", lock, LONG, 0)), PAWL_OK);
}

static void commit_at(struct stage *s, uint32_t node, struct id128 lock, struct terms terms) {
	uint64_t token = stage_status(s, node).clock + 1;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = lock, .token = token,
		.lease_us = (uint64_t)(LONG / SPAN_US), .ballot = { token, 1, 1 }, .terms = terms };
	stage_inject(s, 1, node, &m);
	stage_settle(s);
}

static void rejoin(struct stage *s, uint32_t node) {
	stage_kill(s, node);
	assert_true(stage_start(s, node));
	assert_true(stage_until_voting(s, node, SPAN_S));
}

/* n2 and n3 hold the key for L2; n1 has what is left of L1, whose coordinator died; and n2 has
 * merged both. */
static void contest(struct stage *s) {
	commit_at(s, 0, stage_lock(1), (struct terms){ .of = MODE_EXCLUSIVE });
	stage_isolate(s, 0, true);
	stage_wait(s, 10 * SPAN_MS);
	hold(s, 1, stage_lock(2));
	stage_isolate(s, 0, false);
	stage_wait(s, 10 * SPAN_MS);
	rejoin(s, 1);
	assert_true(stage_noted(s, 1, NOTE_CONTESTED));
}

static struct core_request extension(struct id128 lock, bool deadline_kept) {
	struct core_request r = stage_request(CORE_EXTEND, "k", lock);
	r.lease = LONG;
	r.deadline_kept = deadline_kept;
	return r;
}

static void a_renewal_waits_for_a_master_that_has_begun_to_vote(void **state) {
	struct stage *s = *state;
	contest(s);
	uint64_t id = stage_ask(s, 2, extension(stage_lock(2), true));
	stage_settle(s);
	/* The lock is not lost: n1 lacks it, and n2 may not lengthen it yet. */
	assert_false(answered(s, id));
	stage_wait(s, 120 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	assert_true(stage_count(s, COUNT_extend_asked_again) > 0);
}

static void a_renewal_says_that_there_is_no_quorum_while_the_others_are_silent(void **state) {
	struct stage *s = *state;
	contest(s);
	stage_isolate(s, 1, true);
	uint64_t id = stage_ask(s, 2, extension(stage_lock(2), true));
	stage_wait(s, 250 * SPAN_MS);
	/* n2 may have the lock. */
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
}

static void a_renewal_that_asks_again_keeps_to_the_deadline(void **state) {
	struct stage *s = *state;
	contest(s);
	assert_int_equal(stage_do(s, 2, stage_acquire("other", stage_lock(3), LONG, 0)), PAWL_OK);
	stage_wait(s, 110 * SPAN_MS);
	assert_int_equal(stage_do(s, 2, extension(stage_lock(2), true)), PAWL_OK);
	/* The rest of the granted lease is shorter than another start takes. */
	stage_wait(s, LONG - LONG / 100 - 60 * SPAN_MS);
	rejoin(s, 1);
	struct core_request r = extension(stage_lock(2), false);
	uint64_t id = stage_ask(s, 2, r);
	stage_wait(s, 150 * SPAN_MS);
	/* A deadline that has passed is final. */
	assert_int_not_equal(stage_answer(s, id)->r.error, PAWL_OK);
}

static void an_extension_that_is_overtaken_by_another_is_not_lost(void **state) {
	struct stage *s = *state;
	hold(s, 0, stage_lock(1));
	stage_wait(s, LONG - LONG / 100 - 50 * SPAN_MS);
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, 0, i, MESSAGE_EXTEND, true);
	}
	uint64_t first = stage_ask(s, 0, extension(stage_lock(1), false));
	stage_settle(s);
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, 0, i, MESSAGE_EXTEND, false);
	}
	assert_int_equal(stage_do(s, 0, extension(stage_lock(1), false)), PAWL_OK);
	stage_wait(s, 150 * SPAN_MS);
	/* The lock is held for ten seconds more. */
	assert_int_equal(stage_answer(s, first)->r.error, PAWL_ENOQUORUM);
}

static void what_masters_do_not_have_is_lost_on_a_contested_key_too(void **state) {
	struct stage *s = *state;
	contest(s);
	assert_int_equal(stage_do(s, 2, extension(stage_lock(9), true)), PAWL_ELOST);
}

static void an_update_of_a_contested_lock_is_written(void **state) {
	struct stage *s = *state;
	contest(s);
	struct core_request r = stage_request(CORE_UPDATE, "k", stage_lock(2));
	r.value = slice_str("new");
	int error = stage_do(s, 2, r);
	/* The merged record may not vouch for its value. */
	assert_true(error == PAWL_OK || error == PAWL_EUNSURE);
	assert_int_not_equal(error, PAWL_ELOST);
}

/* What a master that has two records says of them proves nothing. Nobody was told that L1 is held,
 * and L2 is. */
static void a_contested_lock_is_not_extended_for_who_keeps_no_deadline(void **state) {
	struct stage *s = *state;
	contest(s);
	stage_wait(s, 120 * SPAN_MS);
	uint64_t id = stage_ask(s, 0, extension(stage_lock(1), false));
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
}

/* L1's commit, which failed, has reached n1 alone, with a token above every clock that the others
 * know. n2 merges it, and has noted less. */
static void contest_high(struct stage *s, struct terms terms) {
	uint64_t token = stage_status(s, 0).clock + 4 * CEILING_BLOCK;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = token,
		.lease_us = (uint64_t)(LONG / SPAN_US), .ballot = { token, 1, 1 }, .terms = terms };
	stage_inject(s, 1, 0, &m);
	/* This happens before anybody hears n1's clock. */
	stage_isolate(s, 0, true);
	stage_wait(s, 10 * SPAN_MS);
	struct core_request r = terms.of == MODE_EXCLUSIVE ? stage_acquire("k", stage_lock(2),
		LONG, 0) : permits_request("k", stage_lock(2), 1, terms.of, 0);
	r.lease = LONG;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	stage_kill(s, 1);
	assert_true(stage_start(s, 1));
	/* n2 has n3's snapshot by now. */
	stage_wait(s, 150 * SPAN_MS);
	stage_cut(s, 0, 1, false);
	assert_true(stage_until_voting(s, 1, SPAN_S));
	assert_true(stage_noted(s, 1, NOTE_CONTESTED));
	stage_wait(s, 150 * SPAN_MS);
}

static void a_master_that_has_two_locks_had_neither_of_them(void **state) {
	struct stage *s = *state;
	contest_high(s, (struct terms){ .of = MODE_EXCLUSIVE });
	uint64_t id = stage_ask(s, 0, extension(stage_lock(1), false));
	stage_wait(s, 250 * SPAN_MS);
	/* Somebody may trust L2. */
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
}

static void a_master_where_two_have_a_number_had_it_for_neither(void **state) {
	struct stage *s = *state;
	contest_high(s, (struct terms){ .of = 10, .count = 1, .set = { { 1, 0 } } });
	uint64_t id = stage_ask(s, 0, extension(stage_lock(1), false));
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
}

/* ---- a semaphore: X holds number 1 of 10, Y number 0; a coordinator that died left X number 0 at
 * n1 ---- */

static const struct id128 x = { { 1 } }, y = { { 2 } };

static uint64_t renew(struct stage *s, uint32_t node, struct id128 lock, uint64_t number,
	bool deadline_kept) {
	struct core_request r = extension(lock, deadline_kept);
	r.terms.set.w[0] = number;
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 5 * SPAN_MS);
	return id;
}

static void surplus(struct stage *s, span_ns lease) {
	struct terms terms = { .of = 10, .count = 1, .set = { { 1, 0 } } };
	commit_at(s, 0, x, terms);
	stage_isolate(s, 0, true);
	stage_wait(s, 300 * SPAN_MS);
	/* Y takes the lowest number, and X the next one. */
	for (int i = 0; i < 2; i++) {
		struct core_request r = permits_request("k", i == 0 ? y : x, 1, 10, 0);
		r.lease = lease;
		assert_int_equal(stage_do(s, 1, r), PAWL_OK);
		assert_int_equal(stage_last(s)->r.terms.set.w[0], 1 << i);
	}
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, i, 0, MESSAGE_LEARN, true);
		stage_lose(s, 0, i, MESSAGE_SYNC_FETCH, true);
	}
	stage_isolate(s, 0, false);
	stage_wait(s, 10 * SPAN_MS);
	for (uint32_t i = 1; i < 3; i++) {
		stage_lose(s, i, 0, MESSAGE_LEARN, false);
		stage_lose(s, 0, i, MESSAGE_SYNC_FETCH, false);
	}
}

static void a_renewal_that_a_quorum_lengthened_is_not_lost_for_numbers_that_were_left_behind(
	void **state) {
	struct stage *s = *state;
	surplus(s, LONG);
	uint64_t id = renew(s, 2, x, 2, true);
	assert_int_equal(numbers_of(s, id).w[0], 2);
	/* The extension names no numbers, and comes to the node that has answered with them. */
	id = stage_ask(s, 1, extension(x, false));
	stage_settle(s);
	assert_int_equal(numbers_of(s, id).w[0], 2);
	id = renew(s, 2, y, 1, true);
	assert_int_equal(numbers_of(s, id).w[0], 1);
}

static void a_clash_closes_only_the_numbers_that_clash(void **state) {
	struct stage *s = *state;
	surplus(s, LONG);
	rejoin(s, 1);
	rejoin(s, 2);
	assert_true(stage_count(s, COUNT_contested) > 0);
	for (uint8_t i = 0; i < 8; i++) {
		assert_int_equal(take_permits(s, i % 3, "k", stage_lock((uint8_t)(10 + i)), 1, 10),
			PAWL_OK);
		assert_int_equal(stage_last(s)->r.terms.set.w[0], 4 << i);
	}
	assert_int_equal(take_permits(s, 0, "k", stage_lock(30), 1, 10), PAWL_EHELD);
}

static void numbers_that_nobody_extends_run_out_while_their_lock_is_renewed(void **state) {
	struct stage *s = *state;
	surplus(s, LONG);
	rejoin(s, 1);
	rejoin(s, 2);
	for (int i = 0; i < 12; i++) {
		stage_wait(s, SPAN_S);
		uint64_t at_x = renew(s, 2, x, 2, true), at_y = renew(s, 1, y, 1, true);
		assert_int_equal(numbers_of(s, at_x).w[0], 2);
		assert_int_equal(numbers_of(s, at_y).w[0], 1);
	}
	assert_true(stage_count(s, COUNT_permits_run_out) > 0);
	assert_true(stage_noted(s, 1, NOTE_CONTESTED_ENDED));
	assert_int_equal(release(s, 1, "k", y), PAWL_OK);
	assert_int_equal(take_permits(s, 2, "k", stage_lock(30), 1, 10), PAWL_OK);
	/* The number is free as soon as its holder releases it. */
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

/* Otherwise both of them would be told that they have number 0. */
static void numbers_in_doubt_are_told_to_nobody_who_does_not_name_them(void **state) {
	struct stage *s = *state;
	surplus(s, LONG);
	rejoin(s, 1);
	rejoin(s, 2);
	stage_wait(s, 120 * SPAN_MS);
	for (int deadline_kept = 0; deadline_kept < 2; deadline_kept++) {
		uint64_t id = stage_ask(s, 0, extension(x, deadline_kept));
		stage_wait(s, 250 * SPAN_MS);
		const struct stage_reply *r = stage_answer(s, id);
		assert_true(r->r.error == PAWL_EUNSURE ||
			(r->r.error == PAWL_OK && r->r.terms.set.w[0] == 2));
	}
}

static void a_repeat_during_a_clash_gets_a_number_that_is_not_in_doubt(void **state) {
	struct stage *s = *state;
	surplus(s, LONG);
	rejoin(s, 1);
	rejoin(s, 2);
	assert_int_equal(take_permits(s, 2, "k", x, 1, 10), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 2);
}

/* ---- permits that nobody believes in (section 10) ---- */

/* X held number 0 until its lease ended at all masters. A late repeat is granted another number,
 * and nobody hears the answer. */
static void an_extension_says_which_numbers_it_is_for(void **state) {
	struct stage *s = *state;
	assert_int_equal(take_permits(s, 0, "k", x, 1, 10), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
	stage_wait(s, LEASE + 100 * SPAN_MS);
	assert_int_equal(take_permits(s, 1, "k", y, 1, 10), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
	assert_int_equal(take_permits(s, 1, "k", x, 1, 10), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 2);
	uint64_t id = stage_ask(s, 2, extension(x, false));
	stage_settle(s);
	assert_int_equal(numbers_of(s, id).w[0], 2);
	/* Nothing of the number that it had before is revived. */
	id = renew(s, 2, x, 1, false);
	assert_int_not_equal(stage_answer(s, id)->r.error, PAWL_OK);
}

static void commit_everywhere(struct stage *s, struct id128 lock, uint16_t of, uint64_t number) {
	for (uint32_t i = 0; i < 3; i++) {
		commit_at(s, i, lock,
			(struct terms){ .of = of, .count = 1, .set = { { number, 0 } } });
	}
}

/* Number 0 was learned anew at all masters, so that another holder's lease of it may have come
 * between. Number 1 was granted after that. */
static void what_a_record_was_not_accepted_for_last_was_not_had(void **state) {
	struct stage *s = *state;
	uint64_t clock = stage_status(s, 0).clock;
	for (uint32_t i = 0; i < 3; i++) {
		struct message m = { .kind = MESSAGE_LEARN, .round = 1 << 16, .key = slice_str("k"),
			.lock_id = x, .token = clock, .lease_us = (uint64_t)(LONG / SPAN_US),
			.ballot = { clock, 1, 1 },
			.terms = { .of = 10, .count = 1, .set = { { 1, 0 } } } };
		stage_inject(s, (i + 1) % 3, i, &m);
	}
	commit_everywhere(s, x, 10, 2);
	uint64_t id = stage_ask(s, 2, extension(x, false));
	stage_settle(s);
	assert_int_equal(numbers_of(s, id).w[0], 2);
}

static void numbers_that_are_not_named_last_until_their_end(void **state) {
	struct stage *s = *state;
	commit_everywhere(s, x, 2, 1);
	stage_wait(s, LONG / 2);
	commit_everywhere(s, x, 2, 2);
	assert_int_equal(take_permits(s, 0, "k", y, 1, 2), PAWL_EHELD);
	stage_wait(s, LONG / 2 - 10 * SPAN_MS);
	assert_int_equal(take_permits(s, 0, "k", y, 1, 2), PAWL_EHELD);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(take_permits(s, 0, "k", y, 1, 2), PAWL_OK);
	assert_int_equal(stage_last(s)->r.terms.set.w[0], 1);
}

static void an_extension_that_cannot_know_the_numbers_is_unsure(void **state) {
	struct stage *s = *state;
	surplus(s, LONG);
	/* n1 has number 0 of the lock, and n2 has number 1. */
	stage_isolate(s, 2, true);
	struct core_request r = extension(x, false);
	stage_kill(s, 1);
	assert_true(stage_start(s, 1));
	stage_isolate(s, 2, false);
	assert_true(stage_until_voting(s, 1, SPAN_S));
	stage_wait(s, 120 * SPAN_MS);
	stage_isolate(s, 2, true);
	uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, 250 * SPAN_MS);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_EUNSURE);
}

UNIT(cluster_contested) {
	const struct CMUnitTest tests[] = {
		NAMED(a_renewal_waits_for_a_master_that_has_begun_to_vote),
		NAMED(a_renewal_says_that_there_is_no_quorum_while_the_others_are_silent),
		NAMED(a_renewal_that_asks_again_keeps_to_the_deadline),
		NAMED(an_extension_that_is_overtaken_by_another_is_not_lost),
		NAMED(what_masters_do_not_have_is_lost_on_a_contested_key_too),
		NAMED(an_update_of_a_contested_lock_is_written),
		NAMED(a_contested_lock_is_not_extended_for_who_keeps_no_deadline),
		NAMED(a_master_that_has_two_locks_had_neither_of_them),
		NAMED(a_master_where_two_have_a_number_had_it_for_neither),
		NAMED(what_a_record_was_not_accepted_for_last_was_not_had),
		NAMED(numbers_that_are_not_named_last_until_their_end),
		NAMED(
		a_renewal_that_a_quorum_lengthened_is_not_lost_for_numbers_that_were_left_behind),
		NAMED(a_clash_closes_only_the_numbers_that_clash),
		NAMED(numbers_that_nobody_extends_run_out_while_their_lock_is_renewed),
		NAMED(numbers_in_doubt_are_told_to_nobody_who_does_not_name_them),
		NAMED(a_repeat_during_a_clash_gets_a_number_that_is_not_in_doubt),
		NAMED(an_extension_says_which_numbers_it_is_for),
		NAMED(an_extension_that_cannot_know_the_numbers_is_unsure),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
