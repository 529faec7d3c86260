/* These tests ask which timings a change may set, that each change can be taken back, and what is
 * left when a change was wrong (docs/protocol.md, sections 6 and 9). */
#include <string.h>

#include "members.h"

static struct core_change request_of(span_ns request, span_ns promise) {
	return (struct core_change){ .kind = CHANGE_SET_TIMING, .request_timeout = request,
		.promise_timeout = promise };
}

static bool says(const struct stage_reply *r, const char *text) {
	return r->why.size >= strlen(text) &&
		memmem(r->why.bytes, r->why.size, text, strlen(text)) != NULL;
}

static span_ns request_timeout_at(const struct stage *s, uint32_t node) {
	return core_config(s->nodes[node].core)->request_timeout;
}

/* ---- bounds ---- */

static void a_request_timeout_that_no_machine_keeps_is_refused(void **state) {
	struct stage *s = *state;
	const struct stage_reply *r = await(s, ask_change(s, 0, request_of(SPAN_MS, 0)));
	assert_int_equal(r->r.error, PAWL_EBADREQUEST);
	assert_true(says(r, "request_timeout must be at least 10ms"));
	/* The leases are of 10 s. */
	assert_int_equal(do_change(s, 0, request_of(6 * SPAN_S, 12 * SPAN_S)), PAWL_EBADREQUEST);
	assert_int_equal(epoch_of(s, 0), 1);
	must(s, 0, max_lease_of(600 * SPAN_S));
	assert_int_equal(do_change(s, 0, request_of(61 * SPAN_S, 150 * SPAN_S)), PAWL_EBADREQUEST);
	must(s, 0, request_of(60 * SPAN_S, 150 * SPAN_S));
	must(s, 0, request_of(100 * SPAN_MS, 200 * SPAN_MS));
}

static void the_least_request_timeout_is_set_and_taken_back(void **state) {
	struct stage *s = *state;
	must(s, 0, request_of(10 * SPAN_MS, 20 * SPAN_MS));
	assert_int_equal(request_timeout_at(s, 1), 10 * SPAN_MS);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(do_change(s, 0, request_of(9 * SPAN_MS, 0)), PAWL_EBADREQUEST);
	must(s, 1, request_of(100 * SPAN_MS, 200 * SPAN_MS));
	assert_int_equal(request_timeout_at(s, 2), 100 * SPAN_MS);
}

static void leases_shorter_than_the_shortest_are_not_set(void **state) {
	struct stage *s = *state;
	must(s, 0, request_of(10 * SPAN_MS, 20 * SPAN_MS));
	assert_int_equal(do_change(s, 0, max_lease_of(50 * SPAN_MS)), PAWL_EBADREQUEST);
	must(s, 0, max_lease_of(SPAN_S));
}

/* ---- round trips ---- */

/* Answers on this link are late once. */
static void be_slow(struct stage *s, uint32_t from, uint32_t to) {
	s->held[from][to] = true;
	/* There is a ping every 25 ms. */
	stage_wait(s, 70 * SPAN_MS);
	s->held[from][to] = false;
	stage_settle(s);
}

static void a_request_timeout_below_eight_round_trips_is_refused(void **state) {
	struct stage *s = *state;
	be_slow(s, 2, 0);
	stage_wait(s, 20 * SPAN_S);
	const struct stage_reply *r = await(s, ask_change(s, 0, request_of(80 * SPAN_MS, 0)));
	assert_int_equal(r->r.error, PAWL_EBADREQUEST);
	assert_true(says(r, "n3: a round trip with it took"));
	assert_true(says(r, ": request_timeout must be"));
	/* Raising it needs no measured round trip. */
	must(s, 0, request_of(300 * SPAN_MS, SPAN_S));
	stage_wait(s, 125 * SPAN_S);
	/* The late answer was too long ago by now to count. */
	must(s, 0, request_of(80 * SPAN_MS, 0));
}

static void round_trips_to_a_node_that_is_gone_are_forgotten(void **state) {
	struct stage *s = *state;
	be_slow(s, 2, 0);
	stage_kill(s, 2);
	stage_wait(s, SPAN_S);
	assert_int_equal(do_change(s, 0, request_of(80 * SPAN_MS, 0)), PAWL_EBADREQUEST);
	stage_wait(s, 125 * SPAN_S);
	assert_int_equal(do_change(s, 0, request_of(80 * SPAN_MS, 0)), PAWL_OK);
}

static void a_node_near_all_others_knows_that_they_are_far_from_each_other(void **state) {
	struct stage *s = *state;
	be_slow(s, 1, 2);
	/* The round trip is told with the next answer to a ping. */
	stage_wait(s, 100 * SPAN_MS);
	const struct stage_reply *r = await(s, ask_change(s, 0, request_of(80 * SPAN_MS, 0)));
	assert_int_equal(r->r.error, PAWL_EBADREQUEST);
	assert_true(says(r, "a round trip with it took"));
}

/* n3 lies: it has measured a round trip of 584,942 years. */
static void a_round_trip_that_no_link_lives_for_is_not_taken_for_true(void **state) {
	struct stage *s = *state;
	s->held[2][0] = true;
	/* A ping is on its way by then. */
	stage_wait(s, 30 * SPAN_MS);
	for (uint64_t round = 1; round < 1000; round++) {
		stage_inject(s, 2, 0, &(struct message){ .kind = MESSAGE_PONG, .round = round,
			.lease_us = UINT64_MAX });
	}
	s->held[2][0] = false;
	stage_settle(s);
	const struct stage_reply *r = await(s, ask_change(s, 0, request_of(80 * SPAN_MS, 0)));
	assert_int_equal(r->r.error, PAWL_EBADREQUEST);
	assert_true(says(r,
		"n3: a round trip with it took 60000ms lately, and 8 times that is 480000ms"));
}

/* ---- taking back ---- */

static void a_disk_that_is_slower_than_request_timeout_does_not_keep_a_change_from_being_taken_back(
	void **state) {
	struct stage *s = *state;
	must(s, 0, request_of(10 * SPAN_MS, 20 * SPAN_MS));
	uint64_t id = ask_change(s, 0, request_of(100 * SPAN_MS, 200 * SPAN_MS));
	/* Promise and acceptance take 150 ms each. */
	for (int i = 0; i < 4 && !answered(s, id); i++) {
		s->nodes[1].disk_held = s->nodes[2].disk_held = true;
		stage_wait(s, 150 * SPAN_MS);
		for (uint32_t node = 1; node < 3; node++) {
			s->nodes[node].disk_held = false;
			stage_flush(s, node);
		}
		stage_settle(s);
	}
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_decree_rival), 0);
	/* A master that is asked again while its disk is busy syncs nothing more. */
	assert_int_equal(stage_count(s, COUNT_decree_promise), 6);
	assert_int_equal(stage_count(s, COUNT_decree_accept), 6);
	assert_int_equal(epoch_of(s, 0), 3);
}

static void a_refusal_for_want_of_a_majority_advises_nothing_that_would_not_help(void **state) {
	struct stage *s = *state;
	stage_kill(s, 1);
	stage_kill(s, 2);
	stage_wait(s, 200 * SPAN_MS);
	const struct stage_reply *r = await(s, ask_change(s, 0, request_of(300 * SPAN_MS, SPAN_S)));
	assert_int_equal(r->r.error, PAWL_ENOQUORUM);
	assert_true(says(r, "n2, n3: a majority of the present masters has to agree"));
	assert_false(says(r, "anyway"));
	assert_int_equal(r->r.silent, 6);
	struct core_change c = change_of(CHANGE_REMOVE, "n3");
	c.anyway = true;
	r = await(s, ask_change(s, 0, c));
	assert_int_equal(r->r.error, PAWL_ENOQUORUM);
	assert_true(says(r, "n2, n3: a majority of the present masters has to agree"));
}

static void masters_that_are_lost_in_the_midst_of_a_decree_are_not_waited_for(void **state) {
	struct stage *s = *state;
	s->nodes[1].disk_held = s->nodes[2].disk_held = true;
	uint64_t id = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_isolate(s, 0, true);
	stage_wait(s, 50 * SPAN_MS);
	/* That round is over by then. */
	assert_true(count_of(s, 0, COUNT_decree_rival) > 0);
	s->nodes[1].disk_held = s->nodes[2].disk_held = false;
	stage_isolate(s, 0, false);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
}

static void an_answer_of_the_decree_that_was_lost_is_asked_for_again(void **state) {
	struct stage *s = *state;
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, true);
	uint64_t id = ask_change(s, 0, max_lease_of(9 * SPAN_S));
	stage_wait(s, 50 * SPAN_MS);
	lose_to(s, 0, MESSAGE_DECREE_PROMISE, false);
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
	/* The change was made in the same round. */
	assert_int_equal(stage_count(s, COUNT_decree_rival), 0);
}

/* ---- after a wrong change ---- */

static const struct core_change force = { .kind = CHANGE_FORCE, .anyway = true };

/* n4 to n6 are the only masters, and are gone for good. */
static uint64_t hand_over_to_the_dead(struct stage *s) {
	must(s, 0, set_of("456"));
	stage_mend(s);
	stage_settle(s);
	uint64_t token = take(s, 4, "k", stage_lock(1));
	for (uint32_t i = 3; i < 6; i++) {
		stage_wipe(s, i);
	}
	stage_wait(s, 200 * SPAN_MS);
	assert_int_equal(state_of(s, 0), CORE_OUTSIDE);
	return token;
}

static void must_start_over(struct stage *s, uint32_t node, uint64_t token) {
	assert_int_equal(do_change(s, node, force), PAWL_OK);
	assert_int_equal(state_of(s, node), CORE_RECOVERING);
	stage_wait(s, 10 * SPAN_S);
	assert_int_equal(state_of(s, node), CORE_RECOVERING);
	/* This is max_lease, 10 s (1 + 2 %). */
	stage_wait(s, 300 * SPAN_MS);
	assert_int_equal(state_of(s, node), CORE_VOTING);
	assert_string_equal(core_config(s->nodes[node].core)->nodes[0].address,
		s->nodes[node].address);
	assert_true(take(s, node, "k", stage_lock(9)) > token);
	/* The configuration is already so. */
	assert_int_equal(do_change(s, node, force), PAWL_OK);
	assert_int_equal(stage_count(s, COUNT_forced), 1);
}

static void a_node_that_was_left_out_by_mistake_starts_over_from_its_disk(void **state) {
	struct stage *s = *state;
	uint64_t token = hand_over_to_the_dead(s);
	/* Starting over is all that can be done. */
	assert_int_equal(do_change(s, 0, max_lease_of(SPAN_S)), PAWL_ERECOVERING);
	must_start_over(s, 0, token);
	struct core_change add = change_of(CHANGE_ADD_REPLICA, "n6");
	add.address = slice_str("n6:7118");
	assert_true(stage_start(s, 5));
	must(s, 0, add);
	must(s, 0, change_of(CHANGE_PROMOTE, "n6"));
	stage_wait(s, SPAN_S);
	assert_int_equal(state_of(s, 5), CORE_VOTING);
}

static void so_does_one_that_was_started_again(void **state) {
	struct stage *s = *state;
	uint64_t token = hand_over_to_the_dead(s);
	stage_kill(s, 0);
	assert_true(stage_start(s, 0));
	stage_settle(s);
	assert_int_equal(state_of(s, 0), CORE_OUTSIDE);
	must_start_over(s, 0, token);
}

static void a_node_that_never_was_a_member_has_nothing_to_start_over_from(void **state) {
	struct stage *s = *state;
	stage_mend(s);
	stage_settle(s);
	assert_int_equal(state_of(s, 3), CORE_OUTSIDE);
	assert_int_equal(do_change(s, 3, force), PAWL_ERECOVERING);
	assert_int_equal(stage_count(s, COUNT_forced), 0);
}

/* n1 starts over, and its tokens are above 2^40. n4, a replica, has no clock on disk. */
static void a_replica_without_a_clock_starts_over_above_an_earlier_start(void **state) {
	struct stage *s = *state;
	stage_kill(s, 1);
	stage_kill(s, 2);
	assert_int_equal(do_change(s, 0, force), PAWL_OK);
	assert_true(stage_until_voting(s, 0, 12 * SPAN_S));
	add_replica(s, 0, "n4", "n4:7118");
	uint64_t token = take(s, 0, "k", stage_lock(1));
	assert_true(token > CLOCK_JUMP_MAX);
	stage_kill(s, 0);
	stage_kill(s, 3);
	assert_true(stage_start(s, 3));
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(do_change(s, 3, force), PAWL_OK);
	assert_true(stage_until_voting(s, 3, 12 * SPAN_S));
	assert_true(take(s, 3, "k", stage_lock(2)) > token);
}

UNIT(cluster_timing) {
	const struct CMUnitTest tests[] = {
		NAMED(a_request_timeout_that_no_machine_keeps_is_refused),
		NAMED(the_least_request_timeout_is_set_and_taken_back),
		NAMED(leases_shorter_than_the_shortest_are_not_set),
		NAMED(a_request_timeout_below_eight_round_trips_is_refused),
		NAMED(round_trips_to_a_node_that_is_gone_are_forgotten),
		NAMED(a_node_near_all_others_knows_that_they_are_far_from_each_other),
		NAMED(a_round_trip_that_no_link_lives_for_is_not_taken_for_true),
		NAMED(
	a_disk_that_is_slower_than_request_timeout_does_not_keep_a_change_from_being_taken_back),
		NAMED(a_refusal_for_want_of_a_majority_advises_nothing_that_would_not_help),
		NAMED(masters_that_are_lost_in_the_midst_of_a_decree_are_not_waited_for),
		NAMED(an_answer_of_the_decree_that_was_lost_is_asked_for_again),
		MEMBERS_3(a_node_that_was_left_out_by_mistake_starts_over_from_its_disk),
		MEMBERS_3(so_does_one_that_was_started_again),
		MEMBERS(a_node_that_never_was_a_member_has_nothing_to_start_over_from),
		MEMBERS(a_replica_without_a_clock_starts_over_above_an_earlier_start),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
