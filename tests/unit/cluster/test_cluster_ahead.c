/* These tests ask for whom a change waits while the masters of the next epoch copy ahead
 * (docs/protocol.md, section 6), and what happens where there is no room for all of it. */
#include "members.h"
const char *change_step_name(const struct core *core);

/* n4 is a replica. */
static int setup_replica(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	*state = stage_born(&o);
	return 0;
}

/* n4 is to be a master, and does not say how far it is. */
static uint64_t change_that_waits_for_n4(struct stage *s) {
	take(s, 0, "k", stage_lock(1));
	stage_lose(s, 3, 0, MESSAGE_COPY_AHEAD_ANSWER, true);
	uint64_t id = ask_change(s, 0, set_of("124"));
	stage_wait(s, 50 * SPAN_MS);
	assert_false(answered(s, id));
	return id;
}

static void a_master_that_comes_back_as_another_node_is_not_waited_for(void **state) {
	struct stage *s = *state;
	uint64_t id = change_that_waits_for_n4(s);
	stage_wipe(s, 3);
	assert_true(stage_start(s, 3));
	assert_int_equal(await(s, id)->r.error, PAWL_OK);
}

static void a_change_waits_no_longer_for_one_master_because_another_one_goes_on_copying(
	void **state) {
	struct stage *s = *state;
	uint64_t id = change_that_waits_for_n4(s);
	for (int i = 0; i < 300 && !answered(s, id); i++) {
		assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
		stage_wait(s, 10 * SPAN_MS);
	}
	assert_true(answered(s, id));
	assert_int_equal(stage_answer(s, id)->r.error, PAWL_ETIMEOUT);
}

/* n1 and n2 propose a change each, and both are to be masters of both. */
static void ask_two(struct stage *s, const char *one, const char *other, uint64_t ids[2]) {
	stage_mend(s);
	stage_settle(s);
	for (uint32_t i = 0; i < 2; i++) {
		const struct core_change change = set_of(i == 0 ? one : other);
		ids[i] = stage_ask(s, i, (struct core_request){ .op = CORE_CHANGE,
			.change = &change, .admin = true, .client = 100 + i });
	}
	stage_settle(s);
}

static void of_two_changes_at_once_one_goes_first_at_all_nodes(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t ids[2];
	ask_two(s, "124", "12", ids);
	const int first = await(s, ids[0])->r.error, second = await(s, ids[1])->r.error;
	assert_true((first == PAWL_OK) != (second == PAWL_OK));
	assert_int_equal(first == PAWL_OK ? second : first, PAWL_EMISMATCH);
	assert_true(stage_count(s, COUNT_copy_ahead_goes_first) > 0);
}

/* The proposer of one of the changes dies, perhaps the one that goes first. */
static void a_change_goes_on_without_the_proposer_of_the_other_one(struct stage *s, uint32_t dies) {
	take(s, 0, "k", stage_lock(1));
	stage_lose(s, 3, 0, MESSAGE_COPY_AHEAD_ANSWER, true);
	stage_lose(s, 3, 1, MESSAGE_COPY_AHEAD_ANSWER, true);
	uint64_t ids[2];
	ask_two(s, "124", "24", ids);
	/* Both proposers have asked n4 again by then. */
	stage_wait(s, 250 * SPAN_MS);
	assert_false(answered(s, ids[0]) || answered(s, ids[1]));
	assert_true(stage_count(s, COUNT_copy_ahead_goes_first) > 0);
	stage_kill(s, dies);
	stage_lose(s, 3, 1 - dies, MESSAGE_COPY_AHEAD_ANSWER, false);
	assert_int_equal(await(s, ids[1 - dies])->r.error, PAWL_OK);
}

static void a_change_goes_on_when_the_proposer_of_the_other_one_dies(void **state) {
	a_change_goes_on_without_the_proposer_of_the_other_one(*state, 0);
}

static void the_other_change_goes_on_when_the_proposer_of_the_one_dies(void **state) {
	a_change_goes_on_without_the_proposer_of_the_other_one(*state, 1);
}

/* ---- sources that together have more keys than there is room for ---- */

#define LONG (9 * SPAN_S)
#define ROOM 3u

static void take_without(struct stage *s, uint32_t without, const char *key, uint8_t lock,
	span_ns lease) {
	stage_isolate(s, without, true);
	uint64_t id = stage_ask(s, without == 0 ? 1 : 0,
		stage_acquire(key, stage_lock(lock), lease, WAIT));
	stage_wait(s, 200 * SPAN_MS);
	assert_true(answered(s, id) && stage_answer(s, id)->r.error == PAWL_OK);
	stage_isolate(s, without, false);
	stage_settle(s);
}

/* n1 has a, b and x, n2 has a, b and y, and n3 has x and y; the leases of x and y end first. Nobody
 * is told what it has missed. n4 is a replica. */
static int setup_unlike(void **state, uint64_t room) {
	struct stage_options o = named_options();
	o.limits.keys = room;
	o.replicas = 1;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t i = 0; i < s->count; i++) {
		lose_to(s, i, MESSAGE_LEARN, true);
		lose_to(s, i, MESSAGE_SYNC_KEYS, true);
	}
	take_without(s, 2, "a", 1, LONG);
	take_without(s, 2, "b", 2, LONG);
	take_without(s, 1, "x", 3, LEASE);
	take_without(s, 0, "y", 4, LEASE);
	return 0;
}

static int setup_room(void **state) {
	return setup_unlike(state, ROOM);
}

static int setup_much_room(void **state) {
	return setup_unlike(state, 10 * ROOM);
}

static void votes_once_they_fit(struct stage *s, uint32_t node) {
	assert_false(stage_until_voting(s, node, SPAN_S));
	assert_true(count_of(s, node, COUNT_full) > 0);
	assert_true(stage_until_voting(s, node, LEASE));
	assert_true(knows(s, node, "a", stage_lock(1)) && knows(s, node, "b", stage_lock(2)));
}

static void a_master_rejoins_once_what_its_sources_have_fits(void **state) {
	struct stage *s = *state;
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	votes_once_they_fit(s, 2);
}

/* n4 starts with less room, and after the change. */
static void a_new_master_votes_once_what_its_sources_have_fits(void **state) {
	struct stage *s = *state;
	stage_kill(s, 3);
	assert_int_equal(await(s, ask_change(s, 0, set_of("124")))->r.error, PAWL_OK);
	s->options.limits.keys = ROOM;
	assert_true(stage_start(s, 3));
	votes_once_they_fit(s, 3);
	assert_int_equal(count_of(s, 3, COUNT_handover), 1);
}

static void a_change_is_refused_until_what_the_masters_have_fits(void **state) {
	struct stage *s = *state;
	assert_int_equal(do_change(s, 0, set_of("124")), PAWL_EFULL);
	stage_wait(s, LEASE);
	assert_int_equal(do_change(s, 0, set_of("124")), PAWL_OK);
	assert_true(stage_until_voting(s, 3, SPAN_S));
}

UNIT(cluster_ahead) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_master_that_comes_back_as_another_node_is_not_waited_for, setup_replica,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			a_change_waits_no_longer_for_one_master_because_another_one_goes_on_copying,
			setup_replica, named_teardown),
		cmocka_unit_test_setup_teardown(of_two_changes_at_once_one_goes_first_at_all_nodes,
			setup_replica, named_teardown),
		cmocka_unit_test_setup_teardown(
			a_change_goes_on_when_the_proposer_of_the_other_one_dies, setup_replica,
			named_teardown),
		cmocka_unit_test_setup_teardown(
			the_other_change_goes_on_when_the_proposer_of_the_one_dies, setup_replica,
			named_teardown),
		cmocka_unit_test_setup_teardown(a_master_rejoins_once_what_its_sources_have_fits,
			setup_room, named_teardown),
		cmocka_unit_test_setup_teardown(a_new_master_votes_once_what_its_sources_have_fits,
			setup_much_room, named_teardown),
		cmocka_unit_test_setup_teardown(
			a_change_is_refused_until_what_the_masters_have_fits, setup_room,
			named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
