/* Where thousands wait, no step is long. What concerns all of them is done in pieces, and counts at
 * once nevertheless (docs/protocol.md, section 5, Many who wait, and section 3, Lists of who
 * waits). */
#include "named.h"

/* Enough requests that several pieces are needed. */
#define CROWD 3000

static struct id128 one_of(uint32_t i) {
	struct id128 id = stage_lock((uint8_t)(i % 251));
	id.b[3] = (uint8_t)(i / 251 + 1);
	return id;
}

static int crowd_setup(void **state) {
	struct stage_options o = named_options();
	/* core_check would look at every one of them after every step. */
	o.unchecked = true;
	*state = stage_born(&o);
	return 0;
}

static int few_setup(void **state) {
	struct stage_options o = named_options();
	o.limits.report_piece = 4;
	*state = stage_born(&o);
	return 0;
}

#define CROWDED(test) cmocka_unit_test_setup_teardown(test, crowd_setup, named_teardown)
#define PIECES(test) cmocka_unit_test_setup_teardown(test, few_setup, named_teardown)

static void check(const struct stage *s) {
	for (uint32_t i = 0; i < 3; i++) {
		core_check(s->nodes[i].core);
	}
}

/* Returns how many requests for the key are in the queue of its home, as this node sees its
 * home. */
static uint32_t entries(struct stage *s, uint32_t node, const char *key) {
	struct core_request r = stage_request(CORE_EXPLAIN, key, stage_lock(0));
	r.admin = true;
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 5 * SPAN_MS);
	token_of(s, id);
	const struct stage_report *w = stage_answer(s, id)->reports;
	return w[0].waiting + w[1].waiting + w[2].waiting;
}

/* Returns how many have been dropped: entries of links that are gone, and what is given up for
 * connections that are gone. */
static uint64_t dropped(const struct stage *s) {
	return stage_count(s, COUNT_waiter_dropped);
}

/* Returns a key whose home is this node. The lock with its letter as the number holds it. */
static const char *key_at(struct stage *s, uint32_t home) {
	static char key[2];
	for (key[0] = 'a'; key[0] <= 'z'; key[0]++) {
		take(s, 0, key, stage_lock((uint8_t)key[0]));
		(void)wait_for(s, 1, key, stage_lock(201));
		const bool found = entries(s, home, key) == 1 &&
			stage_last(s)->reports[home].waiting == 1;
		stage_client_gone(s, 1, 2);
		stage_settle(s);
		if (found) {
			return key;
		}
		release(s, 0, key, stage_lock((uint8_t)key[0]));
	}
	fail_msg("no key of this home");
	return NULL;
}

/* The crowd waits at n2, over connection 2, with this number of different priorities. */
static void crowd_of(struct stage *s, const char *key, uint32_t priorities) {
	for (uint32_t i = 0; i < CROWD; i++) {
		struct core_request r = stage_acquire(key, one_of(i), LEASE, WAIT);
		r.terms.priority = (int32_t)(i % priorities);
		(void)stage_ask(s, 1, r);
	}
	stage_settle(s);
	assert_int_equal(entries(s, 0, key), CROWD);
	check(s);
}

static void crowd_in(struct stage *s, const char *key) {
	crowd_of(s, key, 5);
}

static void the_entries_of_a_lost_node_are_freed_in_pieces_and_none_of_them_has_a_turn(
	void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	crowd_in(s, key);
	uint64_t other = wait_for(s, 2, key, stage_lock(202));
	uint64_t before = dropped(s);
	stage_isolate(s, 1, true);
	/* One piece is done in one turn of the loop. */
	assert_in_range(dropped(s) - before, 1, CROWD - 1000);
	check(s);
	stage_wait(s, 20 * SPAN_MS);
	assert_int_equal(dropped(s) - before, CROWD);
	assert_int_equal(entries(s, 0, key), 1);
	check(s);
	assert_int_equal(release(s, 0, key, stage_lock((uint8_t)key[0])), PAWL_OK);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, other);
}

static void a_release_while_they_are_freed_goes_to_who_is_there_still(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	crowd_in(s, key);
	uint64_t other = wait_for(s, 2, key, stage_lock(202));
	stage_isolate(s, 1, true);
	uint64_t id = stage_ask(s, 0,
		stage_request(CORE_RELEASE, key, stage_lock((uint8_t)key[0])));
	stage_wait(s, 50 * SPAN_MS);
	token_of(s, id);
	token_of(s, other);
	check(s);
}

static void a_try_is_not_refused_for_those_that_are_lost(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	for (uint32_t i = 0; i < 5; i++) {
		(void)wait_for(s, 1, key, one_of(i));
	}
	stage_isolate(s, 1, true);
	assert_int_equal(release(s, 0, key, stage_lock((uint8_t)key[0])), PAWL_OK);
	assert_int_equal(stage_do(s, 2, stage_acquire(key, stage_lock(202), LEASE, 0)), PAWL_OK);
}

static void what_a_connection_waited_for_is_given_up_in_pieces_and_granted_to_nobody(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	/* The last request is the most important one, and is given up last. */
	crowd_of(s, key, CROWD);
	uint64_t other = wait_for(s, 2, key, stage_lock(202)), replies = s->reply_count,
		before = dropped(s);
	stage_client_gone(s, 1, 2);
	/* One piece is done in one turn of the loop. */
	assert_in_range(dropped(s) - before, 1, CROWD / 2);
	/* Whoever gets the turn is told, but has left. */
	(void)stage_ask(s, 0, stage_request(CORE_RELEASE, key, stage_lock((uint8_t)key[0])));
	check(s);
	stage_wait(s, 50 * SPAN_MS);
	token_of(s, other);
	assert_int_equal(s->reply_count, replies + 2);
	assert_int_equal(stage_status(s, 1).waiters, 0);
	assert_int_equal(entries(s, 0, key), 0);
	check(s);
}

/* The home is the node of the connection. Each request that is given up brings the next one its
 * turn, and that one has left, too. */
static void turns_of_those_that_have_left_pass_on_in_pieces(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 1);
	for (uint32_t i = 0; i < CROWD; i++) {
		(void)stage_ask(s, 1, stage_acquire(key, one_of(i), LEASE, WAIT));
	}
	stage_settle(s);
	uint64_t other = wait_for(s, 2, key, stage_lock(202)), before = dropped(s);
	stage_client_gone(s, 1, 2);
	assert_in_range(dropped(s) - before, 1, CROWD / 10);
	check(s);
	(void)stage_ask(s, 0, stage_request(CORE_RELEASE, key, stage_lock((uint8_t)key[0])));
	stage_wait(s, 50 * SPAN_MS);
	token_of(s, other);
	assert_int_equal(dropped(s) - before, CROWD);
	assert_true(stage_count(s, COUNT_leaves_later) > 0);
	check(s);
}

/* The turn comes to a request whose connection has left, when no more may be given up in this step,
 * so it has no effect. Before the request is given up, it is asked for again. */
static void a_repeat_does_not_join_what_has_missed_its_turn(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 1);
	for (uint32_t i = 0; i < CROWD; i++) {
		(void)stage_ask(s, 1, stage_acquire(key, one_of(i), LEASE, WAIT));
	}
	stage_settle(s);
	const uint64_t other = wait_for(s, 2, key, stage_lock(202)), before = dropped(s);
	stage_client_gone(s, 1, 2);
	const uint64_t later = stage_count(s, COUNT_leaves_later);
	(void)stage_ask(s, 0, stage_request(CORE_RELEASE, key, stage_lock((uint8_t)key[0])));
	while (stage_count(s, COUNT_leaves_later) == later) {
		stage_wait(s, 20 * SPAN_US);
	}
	/* The one after those that were given up. */
	const uint32_t missed = (uint32_t)(dropped(s) - before);
	struct core_request r = stage_acquire(key, one_of(missed), LEASE, WAIT);
	r.client = 77;
	const uint64_t id = stage_ask(s, 1, r);
	stage_wait(s, 3 * SPAN_S);
	token_of(s, id);
	assert_int_equal(release(s, 1, key, one_of(missed)), PAWL_OK);
	stage_wait(s, 50 * SPAN_MS);
	token_of(s, other);
	check(s);
}

static void a_repeat_over_another_connection_goes_on_when_the_first_has_left(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	crowd_in(s, key);
	struct core_request r = stage_acquire(key, one_of(CROWD - 1), LEASE, WAIT);
	r.terms.priority = (CROWD - 1) % 5;
	r.client = 77;
	uint64_t id = stage_ask(s, 1, r);
	stage_settle(s);
	stage_client_gone(s, 1, 2);
	stage_wait(s, 50 * SPAN_MS);
	assert_int_equal(entries(s, 0, key), 1);
	assert_int_equal(release(s, 0, key, stage_lock((uint8_t)key[0])), PAWL_OK);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, id);
}

static void all_are_entered_again_though_their_home_is_back_before_they_have_looked(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	crowd_in(s, key);
	stage_break(s, 1, 0);
	/* This happens in the same moment: for most of them the home was never another one. */
	stage_mend(s);
	stage_settle(s);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(entries(s, 0, key), CROWD);
	check(s);
}

static void waiters_move_to_another_home_in_pieces(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	crowd_in(s, key);
	stage_cut(s, 1, 0, true);
	assert_in_range(stage_count(s, COUNT_home_lost), 1, CROWD / 2);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_home_lost), CROWD);
	assert_int_equal(entries(s, 1, key), CROWD);
	check(s);
}

/* ---- lists ---- */

static struct core_request list_of(const char *key, bool prefix, uint32_t limit) {
	struct core_request r = stage_request(CORE_WAITERS, key, stage_lock(0));
	r.prefix = prefix;
	r.limit = limit;
	r.admin = true;
	return r;
}

static const struct stage_reply *listed(struct stage *s, uint32_t node, struct core_request r) {
	uint64_t id = stage_ask(s, node, r);
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, id);
	return stage_answer(s, id);
}

static void a_list_is_told_in_pieces_and_in_order_at_every_node(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	for (uint32_t i = 0; i < 10; i++) {
		struct core_request r = stage_acquire(key, stage_lock((uint8_t)(i + 1)),
			LEASE, WAIT);
		r.terms.priority = i % 2 ? 1 : 0;
		(void)stage_ask(s, i % 3, r);
		stage_settle(s);
	}
	for (uint32_t node = 0; node < 3; node++) {
		const uint64_t asked = stage_sent(s, MESSAGE_WAITERS);
		const struct stage_reply *r = listed(s, node, list_of(key, false, 0));
		assert_int_equal(r->r.count, 10);
		for (uint32_t i = 0; i < 8; i++) {
			/* The more important ones come first. */
			assert_true(id128_equal(r->rows[i].lock_id,
				stage_lock((uint8_t)(i < 5 ? 2 * i + 2 : 2 * i - 9))));
		}
		/* The pieces have 4, 4 and 2 entries. */
		assert_int_equal(stage_sent(s, MESSAGE_WAITERS) - asked, node == 0 ? 0 : 3);
	}
}

static void a_list_of_this_node_takes_a_turn_of_the_loop_a_piece(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	for (uint32_t i = 0; i < 10; i++) {
		(void)wait_for(s, 0, key, stage_lock((uint8_t)(i + 1)));
	}
	uint64_t id = stage_ask(s, 0, list_of(key, false, 0));
	assert_false(answered(s, id));
	stage_settle(s);
	assert_false(answered(s, id));
	stage_wait(s, 5 * SPAN_MS);
	token_of(s, id);
	assert_int_equal(stage_answer(s, id)->r.count, 10);
}

static void a_waiter_that_leaves_between_two_pieces_takes_nobody_along(void **state) {
	struct stage *s = *state;
	const char *key = key_at(s, 0);
	for (uint32_t i = 0; i < 10; i++) {
		struct core_request r = stage_acquire(key, stage_lock((uint8_t)(i + 1)),
			LEASE, WAIT);
		r.client = 50 + i;
		(void)stage_ask(s, 1, r);
		stage_settle(s);
	}
	uint64_t id = stage_ask(s, 2, list_of(key, false, 0));
	/* The first piece is told, which has the first four. */
	assert_true(stage_deliver(s, 2, 0));
	/* This is the last one of them, from which on the list goes on. */
	stage_client_gone(s, 1, 53);
	stage_client_gone(s, 1, 50);
	while (stage_deliver(s, 1, 0)) {
	}
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, id);
	const struct stage_reply *r = stage_answer(s, id);
	assert_int_equal(r->r.count, 10);
	for (uint8_t i = 0; i < 8; i++) {
		assert_true(id128_equal(r->rows[i].lock_id, stage_lock((uint8_t)(i + 1))));
	}
}

static void a_list_of_several_keys_is_cut_at_its_limit_and_names_each_once(void **state) {
	struct stage *s = *state;
	char key[4] = "p.0";
	for (uint32_t i = 0; i < 5; i++) {
		key[2] = (char)('0' + (i + 3) % 5);
		take(s, 0, key, stage_lock((uint8_t)(100 + i)));
		for (uint32_t n = 0; n < 3; n++) {
			(void)wait_for(s, n, key, stage_lock((uint8_t)(n + 1)));
		}
	}
	take(s, 0, "p", stage_lock(150));
	(void)wait_for(s, 1, "p", stage_lock(1));
	take(s, 0, "q", stage_lock(151));
	(void)wait_for(s, 1, "q", stage_lock(1));
	for (uint32_t node = 0; node < 3; node++) {
		const struct stage_reply *r = listed(s, node, list_of("p.", true, 100));
		assert_int_equal(r->r.count, 15);
		assert_false(r->r.more);
		for (uint32_t i = 0; i < 8; i++) {
			assert_int_equal(r->rows[i].key.bytes[2], '0' + i / 3);
			assert_true(id128_equal(r->rows[i].lock_id,
				stage_lock((uint8_t)(i % 3 + 1))));
		}
		r = listed(s, node, list_of("p.", true, 14));
		assert_true(r->r.more && r->r.count == 14);
		r = listed(s, node, list_of("p.", true, 15));
		assert_true(!r->r.more && r->r.count == 15);
		assert_int_equal(listed(s, node, list_of("p", true, 100))->r.count, 16);
		assert_int_equal(listed(s, node, list_of("", true, 100))->r.count, 17);
		assert_int_equal(listed(s, node, list_of("r", true, 100))->r.count, 0);
	}
}

UNIT(cluster_crowd) {
	const struct CMUnitTest tests[] = {
		CROWDED(the_entries_of_a_lost_node_are_freed_in_pieces_and_none_of_them_has_a_turn),
		CROWDED(a_release_while_they_are_freed_goes_to_who_is_there_still),
		CROWDED(a_try_is_not_refused_for_those_that_are_lost),
		CROWDED(what_a_connection_waited_for_is_given_up_in_pieces_and_granted_to_nobody),
		CROWDED(turns_of_those_that_have_left_pass_on_in_pieces),
		CROWDED(a_repeat_does_not_join_what_has_missed_its_turn),
		CROWDED(a_repeat_over_another_connection_goes_on_when_the_first_has_left),
		CROWDED(all_are_entered_again_though_their_home_is_back_before_they_have_looked),
		CROWDED(waiters_move_to_another_home_in_pieces),
		PIECES(a_list_is_told_in_pieces_and_in_order_at_every_node),
		PIECES(a_list_of_this_node_takes_a_turn_of_the_loop_a_piece),
		PIECES(a_waiter_that_leaves_between_two_pieces_takes_nobody_along),
		PIECES(a_list_of_several_keys_is_cut_at_its_limit_and_names_each_once),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
