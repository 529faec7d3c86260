/* These tests are about elections of the client: what an observer is told, and how elections end
 * with their program. */
#include "election_part.h"

static void an_observer_is_told_of_every_change_in_order_and_of_nothing_old(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.observe_only = true;
	rig_open(&r, NULL);
	assert_int_equal(pawl_election_new(r.client, &o, &p.election), 0);
	rig_settle(&r);
	assert_int_equal(pawl_election_campaign(p.election), PAWL_EINVAL);
	struct fake_node *n = &r.nodes[0];
	fake_event(n, WATCH_EVENT_UPDATED, "somebody", "w", 41);
	fake_event(n, WATCH_EVENT_RELEASED, "somebody", "", 41);
	fake_event(n, WATCH_EVENT_ACQUIRED, "b", "x", 42);
	fake_event(n, WATCH_EVENT_ACQUIRED, "somebody", "w", 41);
	fake_event(n, WATCH_EVENT_EXPIRED, "somebody", "", 41);
	fake_event(n, WATCH_EVENT_ACQUIRED, "b", "x", 42);
	rig_settle(&r);
	assert_string_equal(p.leaders, "somebody=something@41 somebody=w@41 nobody b=x@42 ");
	p.leaders[0] = '\0';
	r.nodes[1].holder.owner = slice_str("b");
	r.nodes[1].holder.value = slice_str("x");
	r.nodes[1].holder.token = 42;
	fake_hang_up(n);
	rig_settle(&r);
	assert_true(pawl_election_current(p.election));
	/* It is still the same leader. */
	assert_string_equal(p.leaders, "");
	r.nodes[0].held = false;
	fake_hang_up(&r.nodes[1]);
	rig_settle(&r);
	assert_string_equal(p.leaders, "nobody ");
	rig_close(&r);
}

static void an_election_may_be_freed_in_its_callback(void **state) {
	(void)state;
	struct rig r;
	struct part p = { .free_when_leading = true };
	begin(&r, &p, NULL);
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_int_equal(p.led, 1);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	rig_close(&r);
}

static void a_client_that_is_freed_gives_up_leadership_as_its_last_word(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	pawl_free(r.client);
	r.client = NULL;
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	rig_close(&r);
}

static void whatever_memory_is_missing_it_leads_in_the_end(void **state) {
	(void)state;
	for (uint64_t fail_at = 1; fail_at < 100; fail_at++) {
		struct rig r;
		struct part p = { 0 };
		struct pawl_election_options o = options_of(&p);
		rig_open(&r, NULL);
		r.fail_from = r.allocations + fail_at;
		r.fail_count = 1;
		if (pawl_election_new(r.client, &o, &p.election) == 0) {
			int error = pawl_election_campaign(p.election);
			error = error ? pawl_election_campaign(p.election) : 0;
			assert_int_equal(error, 0);
			rig_pass(&r, 8 * SPAN_S);
			assert_int_equal(p.led, 1 + p.stepped_down);
			assert_true(pawl_election_leads(p.election));
			struct fake_node *n = r.nodes[0].watch ? &r.nodes[0] : &r.nodes[1];
			r.fail_from = r.allocations + fail_at;
			n->waiter = "b";
			n->holder.token = 99;
			fake_event(n, WATCH_EVENT_ACQUIRED, "b", "x", 99);
			fake_ask(n, "b", "b", 0);
			rig_pass(&r, 8 * SPAN_S);
			assert_true(pawl_election_current(p.election));
		}
		rig_close(&r);
	}
}

UNIT(client_observers) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_observer_is_told_of_every_change_in_order_and_of_nothing_old),
		cmocka_unit_test(an_election_may_be_freed_in_its_callback),
		cmocka_unit_test(a_client_that_is_freed_gives_up_leadership_as_its_last_word),
		cmocka_unit_test(whatever_memory_is_missing_it_leads_in_the_end),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
