/* These tests are about what masters keep for a request whose commit they have refused: its place,
 * and what its promise has noted. It ends with the request, whichever way that ends
 * (docs/protocol.md, section 2, Acquire, and section 5, Ending). */
#include "modes.h"

#define SHORT (500 * SPAN_MS)

static void commit_at(struct stage *s, uint32_t from, uint32_t node, const char *key,
	uint8_t lock) {
	const uint64_t token = stage_status(s, node).clock + 1;
	stage_inject(s, from, node, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 1 + 16 * (uint64_t)lock, .key = slice_str(key), .lock_id = stage_lock(lock),
		.token = token, .lease_us = (uint64_t)LEASE / SPAN_US,
		.ballot = { token, 1, 1 } });
	stage_settle(s);
}

static void release_at(struct stage *s, uint32_t from, uint32_t node, const char *key,
	uint8_t lock) {
	stage_inject(s, from, node, &(struct message){ .kind = MESSAGE_RELEASE, .round = 2 << 16,
		.key = slice_str(key), .lock_id = stage_lock(lock) });
	stage_settle(s);
}

/* n2 and n3 have what two coordinators have left when they died, and n1 has merged both. Lock 3
 * waits at n2, and lock 4 at n3. */
struct contested {
	const char *key;
	uint64_t first, second;
};

static struct contested contested(struct stage *s, uint32_t home) {
	struct contested at = { .key = key_of_home(s, home) };
	commit_at(s, 0, 1, at.key, 1);
	commit_at(s, 0, 2, at.key, 2);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_true(stage_noted(s, 0, NOTE_CONTESTED));
	at.first = stage_ask(s, 1, stage_acquire(at.key, stage_lock(3), SHORT, WAIT));
	stage_settle(s);
	at.second = wait_for(s, 2, at.key, stage_lock(4));
	assert_false(answered(s, at.first) || answered(s, at.second));
	return at;
}

/* What was left ends at n2 and n3, and stays at n1. `late` is the last master whose answer to the
 * commit is known. */
static void granted_without_n1(struct stage *s, const struct contested *at, uint32_t late) {
	stage_stop(s, late, 1, MESSAGE_COMMIT_ANSWER, true);
	release_at(s, 0, 1, at->key, 1);
	release_at(s, 0, 2, at->key, 2);
	stage_wait(s, 10 * SPAN_MS);
	stage_stop(s, late, 1, MESSAGE_COMMIT_ANSWER, false);
	stage_settle(s);
	token_of(s, at->first);
	assert_true(stage_count(s, COUNT_commit_refused_contested) > 0);
}

static void the_next_has_its_turn(struct stage *s, uint32_t home, uint32_t late) {
	const struct contested at = contested(s, home);
	granted_without_n1(s, &at, late);
	stage_wait(s, SHORT + 20 * SPAN_MS);
	token_of(s, at.second);
}

static void the_next_has_its_turn_when_a_contested_home_refuses_late(void **state) {
	the_next_has_its_turn(*state, 0, 0); }

static void the_next_has_its_turn_when_a_contested_home_refuses_early(void **state) {
	the_next_has_its_turn(*state, 0, 2); }

/* When what stood in the way of the first request ends at n1, n1 promises it nothing more. */
static void nothing_is_parked(struct stage *s, const struct contested *at) {
	const uint64_t told = s->sent[0][1][MESSAGE_PROMISE_ANSWER];
	release_at(s, 1, 0, at->key, 1);
	release_at(s, 2, 0, at->key, 2);
	assert_int_equal(s->sent[0][1][MESSAGE_PROMISE_ANSWER], told);
}

static void nothing_stays_parked(struct stage *s, uint32_t home, uint32_t late) {
	const struct contested at = contested(s, home);
	granted_without_n1(s, &at, late);
	nothing_is_parked(s, &at);
}

static void a_home_that_refuses_late_keeps_nothing_parked(void **state) {
	nothing_stays_parked(*state, 0, 0); }

static void a_home_that_refuses_early_keeps_nothing_parked(void **state) {
	nothing_stays_parked(*state, 0, 2); }

static void another_master_that_refuses_late_keeps_nothing_parked(void **state) {
	nothing_stays_parked(*state, 2, 0); }

static void another_master_that_refuses_early_keeps_nothing_parked(void **state) {
	nothing_stays_parked(*state, 2, 2); }

/* n1 has refused the commit, and n2 does not know that when it gives the request up. */
static void a_request_that_fails_at_its_commit_leaves_nothing_parked(void **state) {
	struct stage *s = *state;
	const struct contested at = contested(s, 0);
	stage_lose(s, 0, 1, MESSAGE_COMMIT_ANSWER, true);
	stage_lose(s, 1, 2, MESSAGE_COMMIT, true);
	release_at(s, 0, 1, at.key, 1);
	release_at(s, 0, 2, at.key, 2);
	stage_wait(s, 110 * SPAN_MS);
	assert_int_equal(stage_answer(s, at.first)->r.error, PAWL_ENOQUORUM);
	nothing_is_parked(s, &at);
}

/* ---- single messages of a coordinator at n2 to n1 ---- */

static struct ballot ballot_of_n2(const struct stage *s) {
	return (struct ballot){ 1000, id128_word(s->nodes[1].disk.node_id), 1 };
}

static void promised_to_n2(struct stage *s) {
	stage_inject(s, 1, 0, &(struct message){ .kind = MESSAGE_PROMISE, .round = 1 << 16,
		.attempt = 1 << 16, .key = slice_str("k"), .lock_id = stage_lock(1),
		.ballot = ballot_of_n2(s) });
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_promise_ok), 1);
}

static void commit_of_n2(struct stage *s, uint64_t token, span_ns lease) {
	stage_inject(s, 1, 0, &(struct message){ .kind = MESSAGE_COMMIT, .round = 2 << 16,
		.name = 1, .key = slice_str("k"), .lock_id = stage_lock(1), .token = token,
		.lease_us = (uint64_t)(lease / SPAN_US), .ballot = ballot_of_n2(s) });
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_commit_ok), 0);
}

static void a_commit_that_is_refused_for_good_ends_its_promise(void **state) {
	struct stage *s = *state;
	promised_to_n2(s);
	commit_of_n2(s, 1001, 60 * SPAN_S);
	assert_int_equal(stage_count(s, COUNT_commit_refused_too_long), 1);
	take(s, 2, "k", stage_lock(2));
	assert_int_equal(stage_count(s, COUNT_promise_refused_promised), 0);
}

/* Another master may have accepted the commit, whose ballot is above that of a later one. */
static void what_a_commit_has_named_is_remembered_when_it_is_withdrawn(void **state) {
	struct stage *s = *state;
	promised_to_n2(s);
	commit_of_n2(s, 0, LEASE);
	assert_int_equal(stage_count(s, COUNT_commit_refused_stale_noted), 1);
	stage_inject(s, 1, 0, &(struct message){ .kind = MESSAGE_WITHDRAW, .attempt = 1 << 16,
		.key = slice_str("k"), .lock_id = stage_lock(1) });
	stage_inject(s, 2, 0, &(struct message){ .kind = MESSAGE_COMMIT, .round = 1 << 16,
		.name = 2, .key = slice_str("k"), .lock_id = stage_lock(1), .token = 2000,
		.lease_us = (uint64_t)LEASE / SPAN_US, .ballot = { 999, 3, 1 } });
	stage_settle(s);
	assert_int_equal(stage_count(s, COUNT_withdraw_found), 1);
	assert_int_equal(stage_count(s, COUNT_commit_overtaken_first), 1);
}

UNIT(cluster_places) {
	const struct CMUnitTest tests[] = {
		NAMED(the_next_has_its_turn_when_a_contested_home_refuses_late),
		NAMED(the_next_has_its_turn_when_a_contested_home_refuses_early),
		NAMED(a_home_that_refuses_late_keeps_nothing_parked),
		NAMED(a_home_that_refuses_early_keeps_nothing_parked),
		NAMED(another_master_that_refuses_late_keeps_nothing_parked),
		NAMED(another_master_that_refuses_early_keeps_nothing_parked),
		NAMED(a_request_that_fails_at_its_commit_leaves_nothing_parked),
		NAMED(a_commit_that_is_refused_for_good_ends_its_promise),
		NAMED(what_a_commit_has_named_is_remembered_when_it_is_withdrawn),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
