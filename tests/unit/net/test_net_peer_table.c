/* The table of peers changes while links are up. */
#include "peers_pair.h"

static void a_link_goes_with_its_name_to_another_index(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	const struct peers_node turned[3] = { { "b", listener_address(p.b.listener), true,
		{ { 0 } }, false, false }, { "c", "", true, { { 0 } }, false, false },
		{ "a", "", false, { { 0 } }, false, false } };
	peers_set_nodes(p.a.peers, turned, 3);
	assert_non_null(peers_out(p.a.peers, 0));
	assert_null(peers_out(p.a.peers, 1));
	send_frames(&p.a, 0, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.a.ups + p.a.downs + p.b.downs, 1);
	pair_close(&p);
}

static bool b_lost_it(void *ctx) {
	return ((struct pair *)ctx)->b.downs > 0;
}

static void a_node_that_left_the_table_loses_its_link_silently(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	const struct peers_node alone[1] = { { "a", "", false, { { 0 } }, false, false } };
	peers_set_nodes(p.a.peers, alone, 1);
	assert_true(net_fixture_until(&p.f, b_lost_it, &p));
	assert_int_equal(p.a.downs, 0);
	const struct peers_node again[2] = { { "b", listener_address(p.b.listener), true, { { 0 } },
		false, false }, { "a", "", false, { { 0 } }, false, false } };
	/* The nodes are dialled at once. */
	peers_set_nodes(p.a.peers, again, 2);
	assert_true(net_fixture_until(&p.f, both_up_twice, &p));
	assert_int_equal(p.a.last_up, 0);
	pair_close(&p);
}

static void a_node_is_dialled_at_its_new_address(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	const struct peers_node wrong[2] = { { "a", "", false, { { 0 } }, false, false },
		{ "b", "127.0.0.1:1", true, { { 0 } }, false, false } };
	peers_set_nodes(p.a.peers, wrong, 2);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, a_troubled, &p));
	const struct peers_node right[2] = { { "a", "", false, { { 0 } }, false, false },
		{ "b", listener_address(p.b.listener), true, { { 0 } }, false, false } };
	peers_set_nodes(p.a.peers, right, 2);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	pair_close(&p);
}

static void a_non_member_is_let_in_by_the_owner(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	const struct peers_node non_members[3] = { { "a", "", false, { { 0 } }, false, false },
		{ "b", "", false, { { 0 } }, false, false }, { "x", "", false,
			{ { 0 } }, false, false } };
	p.b.non_members = 1;
	p.b.non_member_table = non_members;
	peers_free(p.a.peers);
	const struct peers_node nodes[2] = { { "x", "", false, { { 0 } }, false, false },
		{ "b", listener_address(p.b.listener), true, { { 0 } }, false, false } };
	/* x, whose name is larger than b's, dials as well. */
	party_make_with(&p.f, &p.a, "x", nodes);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_int_equal(p.b.last_up, 2);
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	pair_close(&p);
}

static unsigned frames_of_a_turn(bool outside) {
	struct pair p;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	const struct peers_node nodes[2] = { { "a", listener_address(p.a.listener), false,
		{ { 0 } }, false, outside }, { "b", "", false, { { 0 } }, false, false } };
	peers_set_nodes(p.b.peers, nodes, 2);
	send_frames(&p.a, 1, 1000);
	while (p.b.frames == 0) {
		assert_true(event_base_loop(p.f.base, EVLOOP_ONCE) >= 0);
	}
	unsigned first = p.b.frames;
	/* The others are read in the turns to come, in each of which the owner goes on with those
	 * for which there was no time. */
	while (p.b.frames < 1000) {
		const int how = peers_go_on(p.b.peers) ? EVLOOP_NONBLOCK : EVLOOP_ONCE;
		assert_true(event_base_loop(p.f.base, how) >= 0);
	}
	pair_close(&p);
	return first;
}

static void little_of_what_a_node_in_no_configuration_sends_is_read_in_one_turn(void **state) {
	(void)state;
	assert_in_range(frames_of_a_turn(true), 1, 40);
	assert_in_range(frames_of_a_turn(false), 41, 1000);
}

static void a_non_member_for_which_there_is_no_room_is_refused(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	peers_free(p.a.peers);
	const struct peers_node nodes[2] = { { "x", "", false, { { 0 } }, false, false },
		{ "b", listener_address(p.b.listener), true, { { 0 } }, false, false } };
	party_make_with(&p.f, &p.a, "x", nodes);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_string_equal(p.b.why, "no room for another node");
	assert_int_equal(p.b.ups, 0);
	pair_close(&p);
}

static bool linked_and_quiet(void *ctx) {
	struct pair *p = ctx;
	return p->a.ups > 0 && p->b.ups > 0 && p->a.ups == p->a.downs + 1 &&
		p->b.ups == p->b.downs + 1;
}

/* One link stays, whichever of the two connections is heard of first, on either side. */
static void of_two_that_dial_each_other_one_link_stays(void **state) {
	struct pair p;
	(void)state;
	pair_open_with(&p, true);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, linked_and_quiet, &p));
	/* This is far longer than the backoff would be, if somebody dialled again. */
	for (int i = 0; i < 20; i++) {
		net_fixture_settle(&p.f);
	}
	assert_true(net_fixture_until(&p.f, linked_and_quiet, &p));
	unsigned ups = p.a.ups + p.b.ups;
	assert_true(ups <= 4);
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.a.ups + p.b.ups, ups);
	assert_int_equal(p.a.troubles, 0);
	pair_close(&p);
}

UNIT(net_peer_table) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_goes_with_its_name_to_another_index),
		cmocka_unit_test(a_node_that_left_the_table_loses_its_link_silently),
		cmocka_unit_test(a_node_is_dialled_at_its_new_address),
		cmocka_unit_test(a_non_member_is_let_in_by_the_owner),
		cmocka_unit_test(
			little_of_what_a_node_in_no_configuration_sends_is_read_in_one_turn),
		cmocka_unit_test(a_non_member_for_which_there_is_no_room_is_refused),
		cmocka_unit_test(of_two_that_dial_each_other_one_link_stays),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
