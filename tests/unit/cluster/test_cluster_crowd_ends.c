/* Where thousands of requests end at one moment, because a link is lost or a record has become
 * held, no step is long (docs/protocol.md, section 5, Many who wait). */
#include "modes.h"
#include "replicas.h"

/* Enough requests that several pieces are needed; and the most that one turn of the loop ends. */
#define CROWD 1000u
#define PIECE 256u
#define LONG (9 * SPAN_S)

static int crowd_setup(void **state) {
	struct stage_options o = named_options();
	/* core_check would look at every one of them after every step. */
	o.unchecked = true;
	o.replicas = 1;
	o.replies = 4 * CROWD;
	*state = stage_born(&o);
	stage_wait(*state, 30 * SPAN_MS);
	return 0;
}

#define CROWDED(test) cmocka_unit_test_setup_teardown(test, crowd_setup, named_teardown)

static void check(const struct stage *s) {
	for (uint32_t i = 0; i < 3; i++) {
		core_check(s->nodes[i].core);
	}
}

static struct id128 one_of(uint32_t i) {
	struct id128 id = stage_lock((uint8_t)(i % 251));
	id.b[3] = (uint8_t)(i / 251 + 1);
	return id;
}

/* ---- a link is lost ---- */

static char *name_of(char name[16], uint32_t i) {
	snprintf(name, 16, "o%u", i);
	return name;
}

/* Each waits at the replica for a key of its own, which n1 holds. They have their turns, and are
 * parked at each master. */
static void all_wait(struct stage *s) {
	char key[16];
	for (uint32_t i = 0; i < CROWD; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire(name_of(key, i), stage_lock(1), LONG,
			0)), PAWL_OK);
		(void)wait_for(s, 3, key, one_of(i));
	}
	assert_int_equal(stage_status(s, 3).waiters, CROWD);
	check(s);
}

static uint64_t dropped(const struct stage *s) {
	return stage_count(s, COUNT_claim_dropped);
}

/* n1 alone hears that the link is lost. */
static void lose_at_n1(struct stage *s) {
	const struct core_event down = { .kind = CORE_PEER_DOWN, .peer = stage_peer(s, 0, 3) };
	stage_step(s, 0, &down);
	s->up[0][3] = s->up[3][0] = false;
}

static void parked_requests_of_a_lost_link_are_freed_in_pieces(void **state) {
	struct stage *s = *state;
	all_wait(s);
	const uint64_t before = dropped(s);
	lose_at_n1(s);
	assert_in_range(dropped(s) - before, 1, PIECE);
	check(s);
	while (dropped(s) - before < CROWD) {
		const uint64_t by_now = dropped(s);
		stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
		assert_in_range(dropped(s) - by_now, 1, PIECE);
		check(s);
	}
}

/* The keys become free while requests of the lost link are still parked there: the last ones first,
 * because each step also frees some hundred requests, in the order in which they came. */
static void no_key_is_promised_to_a_lost_link(void **state) {
	struct stage *s = *state;
	all_wait(s);
	lose_at_n1(s);
	const uint64_t promised = stage_count(s, COUNT_parked_promised);
	char key[16];
	for (uint32_t i = CROWD; i > 0; i -= 50) {
		struct message m = { .kind = MESSAGE_RELEASE, .round = 1 << 16,
			.key = slice_str(name_of(key, i - 1)), .lock_id = stage_lock(1) };
		stage_inject(s, 1, 0, &m);
	}
	stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
	assert_int_equal(stage_count(s, COUNT_parked_promised), promised);
	check(s);
}

/* The link is up again before most of them are freed. */
static void what_is_asked_for_over_the_next_link_stays(void **state) {
	struct stage *s = *state;
	all_wait(s);
	const uint64_t before = dropped(s);
	lose_at_n1(s);
	const struct core_event down = { .kind = CORE_PEER_DOWN, .peer = stage_peer(s, 3, 0) };
	stage_step(s, 3, &down);
	stage_mend(s);
	stage_settle(s);
	check(s);
	stage_wait(s, 100 * SPAN_MS);
	char key[16];
	for (uint32_t i = 0; i < CROWD; i++) {
		assert_int_equal(release(s, 1, name_of(key, i), stage_lock(1)), PAWL_OK);
	}
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_status(s, 3).waiters, 0);
	assert_in_range(dropped(s) - before, 1, CROWD - 1);
	for (uint32_t i = 0; i < CROWD; i++) {
		assert_true(has(s, 0, name_of(key, i), one_of(i)));
	}
	check(s);
}

/* ---- promises ---- */

static void promise_at_n1(struct stage *s, uint32_t i, uint64_t attempt) {
	char key[16];
	struct message m = { .kind = MESSAGE_PROMISE, .round = attempt, .attempt = attempt,
		.key = slice_str(name_of(key, i)), .lock_id = one_of(i), .ballot = { 1, 1, 1 } };
	stage_inject(s, 3, 0, &m);
}

static uint32_t promised_at_n1(const struct stage *s) {
	return (uint32_t)stage_status(s, 0).promises;
}

/* Until it is freed, a promise stands in the way of others. One that is asked for again belongs to
 * the next link. */
static void promises_of_a_lost_link_are_freed_in_pieces(void **state) {
	struct stage *s = *state;
	const uint32_t all = 4 * CROWD;
	for (uint32_t i = 0; i < all; i++) {
		promise_at_n1(s, i, 1 << 16);
	}
	assert_int_equal(promised_at_n1(s), all);
	lose_at_n1(s);
	assert_in_range(promised_at_n1(s), all - PIECE, all - 1);
	check(s);
	const struct core_event down = { .kind = CORE_PEER_DOWN, .peer = stage_peer(s, 3, 0) };
	stage_step(s, 3, &down);
	stage_mend(s);
	assert_in_range(promised_at_n1(s), 2, all);
	promise_at_n1(s, all - 1, 2 << 16);
	for (uint32_t left = promised_at_n1(s); left > 1; left = promised_at_n1(s)) {
		stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
		assert_in_range(left - promised_at_n1(s), 1, PIECE);
		check(s);
	}
	stage_step(s, 0, &(struct core_event){ .kind = CORE_TICK });
	assert_int_equal(promised_at_n1(s), 1);
}

/* ---- try-locks in a tie ---- */

/* A coordinator that has died since has promises of n1 to n3. */
static void tie(struct stage *s, const char *key) {
	for (uint32_t i = 0; i < 3; i++) {
		struct message m = { .kind = MESSAGE_PROMISE, .round = 1 << 16, .attempt = 1 << 16,
			.key = slice_str(key), .lock_id = stage_lock(1), .ballot = { 1, 1, 1 },
			.flags = i == 0 ? FLAG_HOME : 0 };
		stage_inject(s, (i + 1) % 3, i, &m);
	}
	stage_settle(s);
}

/* Every second one may share the key with others. */
static void try_all(struct stage *s, const char *key, uint64_t ids[CROWD]) {
	for (uint32_t i = 0; i < CROWD; i++) {
		struct core_request r = stage_acquire(key, one_of(i), LONG, 0);
		r.client = 1000 + i;
		r.terms.of = i % 2 ? MODE_SHARED : MODE_EXCLUSIVE;
		ids[i] = stage_ask(s, 1, r);
		stage_settle(s);
	}
	assert_int_equal(stage_count(s, COUNT_try_tie), CROWD);
}

/* Its commit comes after all. */
static void commit(struct stage *s, uint32_t node, const char *key, uint16_t of, uint64_t token) {
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 17,
		.key = slice_str(key), .lock_id = stage_lock(1), .token = token,
		.lease_us = 5000000, .ballot = { token, 1, 1 }, .terms.of = of };
	stage_inject(s, (node + 1) % 3, node, &m);
}

static void error_is(const struct stage *s, uint64_t id, int error) {
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, error);
}

/* n1 is the home. */
static void tried_locks_are_refused_in_pieces(void **state) {
	struct stage *s = *state;
	static uint64_t ids[CROWD];
	const char *key = key_of_home(s, 0);
	tie(s, key);
	try_all(s, key, ids);
	const uint64_t refused = stage_sent(s, MESSAGE_ENQUEUE_ANSWER),
		turns = stage_count(s, COUNT_turn_given);
	commit(s, 0, key, MODE_EXCLUSIVE, stage_status(s, 0).clock + 1);
	assert_in_range(stage_sent(s, MESSAGE_ENQUEUE_ANSWER) - refused, 1, PIECE);
	check(s);
	/* Whoever comes meanwhile brings none of them its turn. */
	struct message m = { .kind = MESSAGE_ENQUEUE, .round = 1 << 16, .attempt = 1 << 16,
		.key = slice_str(key), .lock_id = stage_lock(2), .ticket = { 0, 1 },
		.flags = FLAG_WAIT };
	stage_inject(s, 2, 0, &m);
	check(s);
	stage_wait(s, 50 * SPAN_MS);
	for (uint32_t i = 0; i < CROWD; i++) {
		error_is(s, ids[i], PAWL_EHELD);
	}
	assert_int_equal(stage_count(s, COUNT_turn_given), turns + 1);
	check(s);
}

static void tried_locks_that_may_share_the_key_are_passed_over(void **state) {
	struct stage *s = *state;
	static uint64_t ids[CROWD];
	const char *key = key_of_home(s, 0);
	tie(s, key);
	try_all(s, key, ids);
	const uint64_t token = stage_status(s, 0).clock + 1,
		turns = stage_count(s, COUNT_turn_given);
	for (uint32_t node = 0; node < 3; node++) {
		commit(s, node, key, MODE_SHARED, token);
	}
	check(s);
	stage_wait(s, 50 * SPAN_MS);
	for (uint32_t i = 0; i < CROWD; i += 2) {
		error_is(s, ids[i], PAWL_EHELD);
	}
	stage_wait(s, SPAN_S);
	for (uint32_t i = 1; i < CROWD; i += 2) {
		error_is(s, ids[i], PAWL_OK);
	}
	/* None of those that were refused has had a turn. */
	assert_in_range(stage_count(s, COUNT_turn_given) - turns, 1, CROWD / 2);
	check(s);
}

UNIT(cluster_crowd_ends) {
	const struct CMUnitTest tests[] = {
		CROWDED(parked_requests_of_a_lost_link_are_freed_in_pieces),
		CROWDED(no_key_is_promised_to_a_lost_link),
		CROWDED(what_is_asked_for_over_the_next_link_stays),
		CROWDED(promises_of_a_lost_link_are_freed_in_pieces),
		CROWDED(tried_locks_are_refused_in_pieces),
		CROWDED(tried_locks_that_may_share_the_key_are_passed_over),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
