/* These tests have nodes that must not be masters (docs/security.md, Certificates and roles). The
 * core is told so with the link, and makes none of them a master. */
#include "members.h"

static int setup_auto(void **state) {
	struct stage_options o = named_options();
	o.auto_replace = true;
	*state = stage_born(&o);
	return 0;
}

static uint64_t noted(const struct stage *s, uint32_t node, enum core_note_kind kind) {
	uint64_t n = 0;
	for (uint64_t i = 0; i < s->note_count && i < STAGE_NOTES; i++) {
		n += s->notes[i].node == node && s->notes[i].note.kind == kind;
	}
	return n;
}

/* n2 lost its disk, and was given another certificate. If it had its place it would have no links,
 * and the two others bear no further loss. */
static void a_lost_master_that_must_not_be_one_does_not_get_its_place_back_by_itself(void **state) {
	struct stage *s = *state;
	stage_wipe(s, 1);
	s->nodes[1].no_master = true;
	s->note_count = 0;
	assert_true(stage_start(s, 1));
	stage_wait(s, 5 * SPAN_S);
	assert_int_equal(epoch_of(s, 0), 1);
	assert_int_equal(count_of(s, 0, COUNT_auto_replaced), 0);
	/* This is told once, not with every beat. */
	assert_int_equal(count_of(s, 0, COUNT_role_refused), 1);
	assert_int_equal(noted(s, 0, NOTE_ROLE_REFUSED), 1);
	/* The node comes back with a certificate that allows it. */
	s->nodes[1].no_master = false;
	stage_break(s, 0, 1);
	stage_break(s, 2, 1);
	assert_true(stage_until_voting(s, 1, 5 * SPAN_S));
	assert_int_equal(epoch_of(s, 0), 2);
}

/* The node that is asked is not linked with n4 then. What the certificate says is known when the
 * link is there for which the change waits. */
static void a_change_that_waited_for_a_node_makes_it_no_master_when_it_must_not_be_one(
	void **state) {
	struct stage *s = *state;
	s->nodes[3].no_master = true;
	stage_isolate(s, 3, true);
	const uint64_t id = ask_change(s, 0, set_of("124"));
	stage_wait(s, 500 * SPAN_MS);
	assert_false(answered(s, id));
	stage_isolate(s, 3, false);
	assert_int_equal(await(s, id)->r.error, PAWL_EDENIED);
	assert_memory_equal(await(s, id)->why.bytes, "n4: its certificate", 19);
	assert_int_equal(count_of(s, 0, COUNT_role_refused), 1);
	assert_int_equal(epoch_of(s, 0), 1);
	/* The node may be a replica. */
	add_replica(s, 0, "n4", "n4:7118");
	assert_int_equal(do_change(s, 0, change_of(CHANGE_PROMOTE, "n4")), PAWL_EDENIED);
	assert_int_equal(do_change(s, 0, replacing("n3", "n4")), PAWL_EDENIED);
	/* The node does not stand in the way of anything else, either. */
	must(s, 0, max_lease_of(9 * SPAN_S));
}

UNIT(cluster_roles) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_lost_master_that_must_not_be_one_does_not_get_its_place_back_by_itself,
			setup_auto, named_teardown),
		MEMBERS(a_change_that_waited_for_a_node_makes_it_no_master_when_it_must_not_be_one),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
