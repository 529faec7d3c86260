/* These tests hand a lock over to the one that its holder names, and ask a holder to let go
 * (docs/protocol.md, section 10, Hand-over). */
#include "members.h"
#include "modes.h"
#include "replicas.h"

#define CLUSTER(test) cmocka_unit_test_setup_teardown(test, setup, named_teardown)

static uint64_t wait_as(struct stage *s, uint32_t node, const char *owner, uint8_t lock) {
	struct core_request r = stage_acquire("k", stage_lock(lock), LEASE, WAIT);
	r.owner = slice_str(owner);
	uint64_t id = stage_ask(s, node, r);
	stage_settle(s);
	stage_wait(s, SPAN_MS);
	return id;
}

static int transfer(struct stage *s, uint32_t node, uint8_t lock, const char *to) {
	struct core_request r = stage_request(CORE_TRANSFER, "k", stage_lock(lock));
	r.to = slice_str(to);
	return stage_do(s, node, r);
}

static bool held_anywhere(const struct stage *s, uint8_t lock) {
	return has(s, 0, "k", stage_lock(lock)) || has(s, 1, "k", stage_lock(lock)) ||
		has(s, 2, "k", stage_lock(lock));
}

static void the_named_one_gets_it_although_others_came_first(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t first = wait_as(s, 1, "first", 1), second = wait_as(s, 2, "second", 2),
		third = wait_as(s, 1, "third", 3);
	assert_int_equal(transfer(s, 0, 100, "third"), PAWL_OK);
	assert_true(stage_last(s)->r.op == CORE_ACQUIRE || stage_last(s)->r.released);
	/* No time has passed. */
	token_of(s, third);
	assert_false(answered(s, first) || answered(s, second));
	assert_true(holds(s, 2, "k", stage_lock(3)));
}

static void those_who_were_passed_over_keep_their_order(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t first = wait_as(s, 1, "first", 1), second = wait_as(s, 2, "second", 2),
		third = wait_as(s, 0, "third", 3);
	assert_int_equal(transfer(s, 0, 100, "third"), PAWL_OK);
	token_of(s, third);
	stage_wait(s, 20 * SPAN_MS);
	release(s, 0, "k", stage_lock(3));
	stage_wait(s, 20 * SPAN_MS);
	token_of(s, first);
	assert_false(answered(s, second));
}

static void every_master_promises_to_the_named_one_at_once(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, "first", 1);
	uint64_t next = wait_as(s, 2, "next", 2);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	token_of(s, next);
	assert_int_equal(stage_count(s, COUNT_hand_over_promised), 3);
}

static void a_successor_that_only_waited_takes_the_promises_for_its_turn(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, "first", 1);
	uint64_t next = wait_as(s, REPLICA, "next", 2);
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, i, REPLICA, MESSAGE_TURN, true);
	}
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	token_of(s, next);
}

static void a_successor_that_has_the_turn_is_promised_from_where_it_is_parked(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t next = wait_as(s, 2, "next", 2), promises = stage_sent(s, MESSAGE_PROMISE);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	token_of(s, next);
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), promises);
	assert_int_equal(stage_count(s, COUNT_hand_over_promised), 3);
}

static void if_nobody_of_that_name_waits_nothing_is_released(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t first = wait_as(s, 1, "first", 1);
	assert_int_equal(transfer(s, 0, 100, "somebody"), PAWL_ENOTFOUND);
	assert_false(answered(s, first));
	assert_int_equal(extend(s, 0, "k", stage_lock(100), LEASE, false), PAWL_OK);
	assert_true(holds(s, 1, "k", stage_lock(100)));
}

/* The home alone knows who waits, and says nothing. The transfer does not wait for it for longer
 * than a request may take. */
static void while_the_home_hangs_nobody_is_told_that_no_one_waits(void **state) {
	struct stage *s = *state;
	const char *key = key_of_home(s, 2);
	take(s, 0, key, stage_lock(100));
	struct core_request r = stage_acquire(key, stage_lock(1), LEASE, WAIT);
	r.owner = slice_str("next");
	(void)stage_ask(s, 1, r);
	stage_wait(s, SPAN_MS);
	stage_pause(s, 2);
	r = stage_request(CORE_TRANSFER, key, stage_lock(100));
	r.to = slice_str("next");
	const uint64_t id = stage_ask(s, 0, r);
	stage_wait(s, 105 * SPAN_MS);
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ENOQUORUM);
	assert_true(has(s, 0, key, stage_lock(100)));
}

static void without_a_quorum_nothing_is_released(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	stage_isolate(s, 0, true);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_ENOQUORUM);
	assert_true(has(s, 0, "k", stage_lock(100)));
}

static void of_several_with_the_name_the_first_one_is_next(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, "other", 1);
	uint64_t a = wait_as(s, 1, "next", 2), b = wait_as(s, 2, "next", 3);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	token_of(s, a);
	assert_false(answered(s, b));
}

static void a_transfer_may_be_asked_for_at_any_node(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 0, "first", 1);
	uint64_t next = wait_as(s, REPLICA, "next", 2);
	assert_int_equal(transfer(s, REPLICA, 100, "next"), PAWL_OK);
	token_of(s, next);
}

static void a_transfer_is_a_release_in_every_way(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 1, "next", 1);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	assert_int_equal(extend(s, 0, "k", stage_lock(100), LEASE, false), PAWL_ELOST);
	const struct message late = { .kind = MESSAGE_LEARN, .round = 1, .key = slice_str("k"),
		.lock_id = stage_lock(100), .token = 1, .lease_us = 1000000 };
	release(s, 0, "k", stage_lock(1));
	/* R3 refuses it. */
	stage_inject(s, 0, 2, &late);
	assert_false(held_anywhere(s, 100));
}

static void a_master_that_missed_it_is_sent_the_release(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t next = wait_as(s, 1, "next", 1);
	stage_lose(s, 0, 2, MESSAGE_HAND_OVER, true);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	token_of(s, next);
	assert_true(has(s, 2, "k", stage_lock(100)));
	stage_break(s, 0, 2);
	stage_wait(s, 100 * SPAN_MS);
	assert_false(has(s, 2, "k", stage_lock(100)));
}

static void a_named_one_that_is_gone_by_then_costs_no_more_than_a_promise(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t first = wait_as(s, 1, "first", 1);
	(void)wait_as(s, REPLICA, "next", 2);
	for (uint32_t i = 0; i < 3; i++) {
		stage_lose(s, REPLICA, i, MESSAGE_WITHDRAW, true);
	}
	stage_client_gone(s, REPLICA, REPLICA + 1);
	stage_settle(s);
	assert_int_equal(transfer(s, 0, 100, "next"), PAWL_OK);
	assert_false(answered(s, first));
	stage_wait(s, s->options.promise_timeout + 100 * SPAN_MS);
	token_of(s, first);
}

/* The coordinators are linked with different masters, so that each has another home. */
static void any_master_with_the_named_waiter_in_its_queue_may_say_so(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	uint64_t others = 0;
	/* Each of the three is in turn the only master that the replica is linked with, and one of
	 * them is node 0's home. */
	for (uint32_t home = 0; home < 3; home++) {
		for (uint32_t i = 0; i < 3; i++) {
			stage_cut(s, REPLICA, i, i != home);
		}
		stage_wait(s, 50 * SPAN_MS);
		uint64_t next = wait_as(s, REPLICA, "next", (uint8_t)(home + 1));
		uint64_t asked = stage_sent(s, MESSAGE_HAND_OVER);
		assert_int_equal(transfer(s, 0, (uint8_t)(home ? home : 100), "next"), PAWL_OK);
		others += stage_sent(s, MESSAGE_HAND_OVER) - asked;
		stage_isolate(s, REPLICA, false);
		stage_wait(s, SPAN_S);
		token_of(s, next);
	}
	assert_int_equal(others, 6);
}

static void a_hand_over_that_has_begun_goes_on_in_the_next_epoch(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	(void)wait_as(s, 2, "first", 1);
	uint64_t next = wait_as(s, 1, "next", 2);
	lose_to(s, 1, MESSAGE_HAND_OVER, true);
	lose_to(s, 2, MESSAGE_HAND_OVER, true);
	struct core_request r = stage_request(CORE_TRANSFER, "k", stage_lock(100));
	r.to = slice_str("next");
	(void)ask_change(s, 1, max_lease_of(9 * SPAN_S));
	uint64_t id = stage_ask(s, 0, r);
	stage_stop(s, 1, 0, MESSAGE_CONFIG, true);
	stage_stop(s, 2, 0, MESSAGE_CONFIG, true);
	stage_settle(s);
	assert_false(answered(s, id));
	assert_int_equal(stage_count(s, COUNT_handed_over), 1);
	lose_to(s, 1, MESSAGE_HAND_OVER, false);
	lose_to(s, 2, MESSAGE_HAND_OVER, false);
	stage_stop(s, 1, 0, MESSAGE_CONFIG, false);
	stage_stop(s, 2, 0, MESSAGE_CONFIG, false);
	assert_true(wait_until_epoch(s, 0, 2, SPAN_S));
	stage_wait(s, 400 * SPAN_MS);
	assert_int_equal(stage_count(s, COUNT_handed_over), 2);
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_OK);
	token_of(s, next);
}

/* ---- asking ---- */

static uint32_t watchers[4];
static uint32_t count(void *ctx, struct slice key) {
	return key.size == 1 && key.data[0] == 'k' ? *(uint32_t *)ctx : 0;
}

static void watch(struct stage *s, uint32_t node, uint32_t how_many) {
	watchers[node] = how_many;
	core_count_watchers(s->nodes[node].core, count, &watchers[node]);
	stage_want_events(s, node);
}

static struct core_request ask_for(const char *key) {
	struct core_request r = stage_request(CORE_ASK, key, no_lock);
	r.owner = slice_str("asker");
	r.to = slice_str("friend");
	r.terms.priority = 9;
	return r;
}

static void asking_reaches_those_who_watch_the_key_at_any_node(void **state) {
	struct stage *s = *state;
	watch(s, 0, 0);
	watch(s, 1, 2);
	watch(s, REPLICA, 3);
	assert_int_equal(stage_do(s, 2, ask_for("k")), PAWL_OK);
	assert_int_equal(stage_last(s)->r.reached, 5);
	uint64_t seen = s->events_read;
	assert_null(stage_next_event(s, 0));
	s->events_read = seen;
	const struct stage_event *n = stage_next_event(s, REPLICA);
	assert_non_null(n);
	assert_int_equal(n->event.kind, WATCH_EVENT_ASKED);
	assert_memory_equal(n->key.bytes, "k", 1);
	assert_memory_equal(n->owner.bytes, "asker", 5);
	assert_memory_equal(n->value.bytes, "friend", 6);
	assert_int_equal(n->event.terms.priority, 9);
}

static void asking_where_nobody_watches_reaches_nobody(void **state) {
	struct stage *s = *state;
	watch(s, 1, 2);
	assert_int_equal(stage_do(s, 2, ask_for("other")), PAWL_OK);
	assert_int_equal(stage_last(s)->r.reached, 0);
	assert_null(stage_next_event(s, 1));
}

static void asking_waits_for_nobody_longer_than_a_request_may_take(void **state) {
	struct stage *s = *state;
	watch(s, 1, 2);
	stage_lose(s, REPLICA, 2, MESSAGE_ASK_ANSWER, true);
	assert_int_equal(stage_do(s, 2, ask_for("k")), PAWL_ECLOSED);
	stage_wait(s, s->options.request_timeout + SPAN_MS);
	assert_int_equal(stage_last(s)->r.reached, 2);
}

static void a_transfer_names_somebody(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(100));
	assert_int_equal(transfer(s, 0, 100, ""), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "to");
	struct core_request r = stage_request(CORE_TRANSFER, "k", no_lock);
	r.to = slice_str("next");
	assert_int_equal(stage_do(s, 0, r), PAWL_EBADREQUEST);
	assert_string_equal(stage_last(s)->r.field, "lock_id");
}

UNIT(cluster_transfer) {
	const struct CMUnitTest tests[] = {
		CLUSTER(the_named_one_gets_it_although_others_came_first),
		CLUSTER(those_who_were_passed_over_keep_their_order),
		CLUSTER(every_master_promises_to_the_named_one_at_once),
		CLUSTER(a_successor_that_only_waited_takes_the_promises_for_its_turn),
		CLUSTER(a_successor_that_has_the_turn_is_promised_from_where_it_is_parked),
		CLUSTER(if_nobody_of_that_name_waits_nothing_is_released),
		CLUSTER(while_the_home_hangs_nobody_is_told_that_no_one_waits),
		CLUSTER(without_a_quorum_nothing_is_released),
		CLUSTER(of_several_with_the_name_the_first_one_is_next),
		CLUSTER(a_transfer_may_be_asked_for_at_any_node),
		CLUSTER(a_transfer_is_a_release_in_every_way),
		CLUSTER(a_master_that_missed_it_is_sent_the_release),
		CLUSTER(a_named_one_that_is_gone_by_then_costs_no_more_than_a_promise),
		CLUSTER(any_master_with_the_named_waiter_in_its_queue_may_say_so),
		MEMBERS(a_hand_over_that_has_begun_goes_on_in_the_next_epoch),
		CLUSTER(asking_reaches_those_who_watch_the_key_at_any_node),
		CLUSTER(asking_where_nobody_watches_reaches_nobody),
		CLUSTER(asking_waits_for_nobody_longer_than_a_request_may_take),
		CLUSTER(a_transfer_names_somebody),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
