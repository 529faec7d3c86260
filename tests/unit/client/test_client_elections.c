/* These tests are about elections of the client: campaigning, leading, and every way out of it. */
#include "election_part.h"

static void a_candidate_that_is_granted_the_lock_leads(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.priority = 7;
	o.lock_delay_ms = 500;
	lead(&r, &p, &o);
	assert_int_equal(r.nodes[0].last.core.terms.priority, 7);
	assert_true(r.nodes[0].last.core.wait > 24 * 3600 * SPAN_S);
	assert_true(pawl_election_valid_ms(p.election) > 8000);
	assert_int_equal(pawl_election_campaign(p.election), 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], 1);
	assert_string_equal(p.leaders, "nobody ");
	fake_event(&r.nodes[0], WATCH_EVENT_ACQUIRED, "me", "v", pawl_election_token(p.election));
	rig_settle(&r);
	assert_string_equal(p.leaders, "nobody me=v@1! ");
	rig_close(&r);
}

static void an_election_is_marked_for_nodes_that_know_the_mark(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	assert_true(r.nodes[0].last_label_election);
	assert_int_equal(pawl_election_resign(p.election, NULL, NULL), 0);
	rig_settle(&r);
	r.nodes[0].knows_no_elections = r.nodes[1].knows_no_elections = true;
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_int_equal(p.led, 2);
	assert_int_equal(p.failed, 0);
	assert_false(r.nodes[0].last_label_election);
	rig_close(&r);
}

static void a_leader_that_resigns_releases_and_is_not_told(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.again = true;
	lead(&r, &p, &o);
	assert_int_equal(pawl_election_resign(p.election, on_result, &p), 0);
	assert_false(pawl_election_leads(p.election));
	rig_settle(&r);
	assert_int_equal(p.results, 1);
	assert_int_equal(p.result, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(p.stepped_down, 0);
	assert_false(pawl_election_campaigns(p.election));
	rig_close(&r);
}

static void a_candidate_that_resigns_leaves_the_queue(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	begin(&r, &p, NULL);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_true(pawl_election_campaigns(p.election));
	assert_int_equal(pawl_election_resign(p.election, on_result, &p), 0);
	assert_false(pawl_election_campaigns(p.election));
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(p.results, 0);
	rig_close(&r);
}

static void a_leader_that_cannot_extend_steps_down_before_its_time_is_over(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.again = true;
	lead(&r, &p, &o);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
	rig_pass(&r, 7200 * SPAN_MS);
	assert_int_equal(p.stepped_down, 0);
	rig_pass(&r, 300 * SPAN_MS);
	assert_int_equal(p.stepped_down, 1);
	assert_int_not_equal(p.cause, 0);
	assert_true(p.left > 1300 && p.left <= 1500);
	assert_true(pawl_election_campaigns(p.election));
	rig_pass(&r, 3000 * SPAN_MS);
	assert_int_equal(pawl_election_valid_ms(p.election), 0);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_ANSWERS;
	/* A fake node never answers what it was silent about. */
	fake_hang_up(&r.nodes[0]);
	fake_hang_up(&r.nodes[1]);
	rig_pass(&r, 5000 * SPAN_MS);
	assert_int_equal(p.led, 2);
	assert_true(pawl_election_valid_ms(p.election) > 3000);
	rig_close(&r);
}

static void want_tls(struct rig *r, enum fake_mood mood) {
	for (size_t i = 0; i < RIG_ENDPOINTS; i++) {
		r->nodes[i].mood = mood;
		fake_hang_up(&r->nodes[i]);
	}
}

/* The certificates have ended, and are renewed before the lease is over. */
static void a_leader_uses_up_its_lease_while_no_handshake_succeeds(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	want_tls(&r, FAKE_WANTS_TLS);
	rig_pass(&r, 6 * SPAN_S);
	assert_true(r.nodes[0].accepted > 2 && r.nodes[1].accepted > 2);
	assert_int_equal(p.failed + p.stepped_down, 0);
	assert_true(pawl_election_leads(p.election));
	want_tls(&r, FAKE_ANSWERS);
	rig_pass(&r, 2 * SPAN_S);
	assert_true(pawl_election_valid_ms(p.election) > 5000);
	assert_int_equal(p.failed + p.stepped_down, 0);
	assert_int_equal(p.led, 1);
	rig_close(&r);
}

static void certificates_with_which_no_node_ever_answered_are_told_at_once(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	rig_open(&r, NULL);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_WANTS_TLS;
	assert_int_equal(pawl_election_new(r.client, &o, &p.election), 0);
	rig_pass(&r, SPAN_S);
	assert_int_equal(p.failed, 1);
	rig_close(&r);
}

static void a_leadership_that_is_lost_has_neither_token_nor_lock(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	assert_int_not_equal(pawl_election_token(p.election), 0);
	r.nodes[0].error = r.nodes[1].error = PAWL_ELOST;
	rig_pass(&r, 4 * SPAN_S);
	assert_int_equal(p.stepped_down, 1);
	assert_int_equal(p.cause, PAWL_ELOST);
	assert_int_equal(pawl_election_token(p.election), 0);
	assert_null(pawl_election_lock(p.election));
	rig_close(&r);
}

static void a_transfer_to_somebody_who_does_not_wait_changes_nothing(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	r.nodes[0].waiter = "other";
	assert_int_equal(pawl_election_transfer(p.election, pawl_str("b"), on_result, &p), 0);
	assert_true(pawl_election_leads(p.election));
	assert_int_equal(pawl_election_transfer(p.election, pawl_str("b"), NULL, NULL),
		PAWL_EINVAL);
	rig_settle(&r);
	assert_int_equal(p.result, PAWL_ENOTFOUND);
	assert_int_equal(p.stepped_down, 0);
	assert_true(pawl_election_leads(p.election));
	assert_int_equal(r.nodes[0].asked[CLIENT_TRANSFER], 0);
	rig_close(&r);
}

static void a_transfer_stops_the_program_first_and_then_lets_go(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.again = true;
	lead(&r, &p, &o);
	r.nodes[0].waiter = "b";
	assert_int_equal(pawl_election_transfer(p.election, pawl_str("b"), on_result, &p), 0);
	rig_settle(&r);
	assert_int_equal(p.results, 1);
	assert_int_equal(p.result, 0);
	assert_int_equal(p.stepped_down, 1);
	assert_int_equal(p.cause, 0);
	assert_int_equal(r.nodes[0].asked[CLIENT_TRANSFER], 1);
	assert_false(pawl_election_leads(p.election));
	/* The program wanted to go. */
	assert_false(pawl_election_campaigns(p.election));
	assert_int_equal(pawl_election_valid_ms(p.election), 0);
	rig_close(&r);
}

static void a_leader_that_is_asked_yields_by_priority_or_name_and_is_a_candidate_again(
	void **state) {
	(void)state;
	const struct {
		const char *by, *to;
		int32_t priority;
		enum pawl_asked_answer answer;
		bool yields;
	} rows[] = {
		{ "b", "", 6, PAWL_ASKED_USUAL, true }, { "b", "", 5, PAWL_ASKED_USUAL,
			false }, { "b", "", 6, PAWL_ASKED_STAY, false },
		{ "x", "b", 0, PAWL_ASKED_USUAL, true }, { "x", "", 9, PAWL_ASKED_USUAL,
			false }, { "x", "me", 9, PAWL_ASKED_USUAL, false },
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rig r;
		struct part p = { .answer = rows[i].answer };
		struct pawl_election_options o = options_of(&p);
		o.priority = 5;
		o.again = true;
		lead(&r, &p, &o);
		r.nodes[0].waiter = "b";
		fake_ask(&r.nodes[0], rows[i].by, rows[i].to, rows[i].priority);
		rig_settle(&r);
		assert_int_equal(p.asked, 1);
		assert_int_equal(p.stepped_down, rows[i].yields);
		assert_int_equal(r.nodes[0].asked[CLIENT_TRANSFER], rows[i].yields);
		assert_int_equal(r.nodes[0].asked[CLIENT_ACQUIRE], rows[i].yields ? 2 : 1);
		rig_close(&r);
	}
}

static void a_candidate_that_takes_over_asks_each_leader_until_it_leads(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.takeover = true;
	o.priority = 3;
	begin(&r, &p, &o);
	fake_event(&r.nodes[0], WATCH_EVENT_ACQUIRED, "other", "", 40);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ASK_RELEASE], 0);
	r.nodes[0].mood = FAKE_KEEPS_ONE_IN;
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_ASK_RELEASE], 1);
	rig_pass(&r, 1000 * SPAN_MS);
	assert_true(r.nodes[0].asked[CLIENT_ASK_RELEASE] >= 3);
	rig_pass(&r, 20 * SPAN_S);
	unsigned asked = r.nodes[0].asked[CLIENT_ASK_RELEASE];
	assert_true(asked < 30);
	fake_event(&r.nodes[0], WATCH_EVENT_RELEASED, "other", "", 40);
	/* This is heard before the next request is due. */
	rig_settle(&r);
	rig_pass(&r, 20 * SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_ASK_RELEASE], asked);
	rig_close(&r);
}

static void a_refusal_that_may_pass_is_tried_again_and_one_for_good_is_told(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	begin(&r, &p, NULL);
	r.nodes[0].error = r.nodes[1].error = PAWL_ENOQUORUM;
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_pass(&r, 2000 * SPAN_MS);
	assert_int_equal(p.led + p.failed, 0);
	assert_true(pawl_election_campaigns(p.election));
	r.nodes[0].error = r.nodes[1].error = 0;
	rig_pass(&r, 10 * SPAN_S);
	assert_int_equal(p.led, 1);
	assert_int_equal(pawl_election_resign(p.election, NULL, NULL), 0);
	rig_settle(&r);
	r.nodes[0].error = r.nodes[1].error = PAWL_ETOOLONG;
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_int_equal(p.failed, 1);
	assert_int_equal(p.error, PAWL_ETOOLONG);
	assert_true(p.observing);
	assert_false(pawl_election_campaigns(p.election));
	rig_close(&r);
}

static void what_is_proclaimed_is_in_the_next_election_or_written_at_once(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("new"), on_result, &p), 0);
	rig_settle(&r);
	assert_int_equal(r.nodes[0].asked[CLIENT_UPDATE], 1);
	assert_int_equal(p.results, 1);
	assert_int_equal(pawl_election_resign(p.election, NULL, NULL), 0);
	rig_settle(&r);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("newer"), on_result, &p), 0);
	r.nodes[0].mood = FAKE_ANSWERS;
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(p.led, 2);
	assert_int_equal(r.nodes[0].asked[CLIENT_UPDATE], 2);
	assert_int_equal(p.results, 1);
	rig_close(&r);
}

static void a_value_that_was_refused_is_not_in_the_next_election(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.again = true;
	lead(&r, &p, &o);
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("good"), on_result, &p), 0);
	rig_settle(&r);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	r.nodes[0].error = PAWL_ETOOLARGE;
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("too large"), on_result,
		&p), 0);
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("larger"), NULL, NULL), 0);
	rig_settle(&r);
	fake_let_go(&r.nodes[0]);
	rig_settle(&r);
	assert_int_equal(p.results, 2);
	assert_int_equal(p.result, PAWL_ETOOLARGE);
	r.nodes[0].error = 0;
	r.nodes[0].mood = FAKE_ANSWERS;
	assert_int_equal(pawl_election_resign(p.election, NULL, NULL), 0);
	rig_settle(&r);
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_int_equal(p.led, 2);
	assert_int_equal(p.failed, 0);
	assert_string_equal(r.nodes[0].last_value, "good");
	rig_close(&r);
}

static void what_is_proclaimed_while_the_leader_is_lost_is_in_the_next_election(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	o.again = true;
	lead(&r, &p, &o);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_SILENT;
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("late"), on_result, &p), 0);
	rig_pass(&r, 10 * SPAN_S);
	assert_int_equal(p.stepped_down, 1);
	assert_int_equal(p.results, 1);
	assert_int_not_equal(p.result, 0);
	r.nodes[0].mood = r.nodes[1].mood = FAKE_ANSWERS;
	/* What the nodes have not answered comes again. */
	fake_hang_up(&r.nodes[0]);
	fake_hang_up(&r.nodes[1]);
	rig_pass(&r, 10 * SPAN_S);
	assert_int_equal(p.led, 2);
	assert_int_equal(pawl_election_resign(p.election, NULL, NULL), 0);
	rig_settle(&r);
	assert_int_equal(pawl_election_campaign(p.election), 0);
	rig_settle(&r);
	assert_true(strcmp(r.nodes[0].last_value, "late") == 0 ||
		strcmp(r.nodes[1].last_value, "late") == 0);
	rig_close(&r);
}

static void an_election_that_ends_before_its_proclamation_is_answered_leaves_the_answer_to_be_told(
	void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	lead(&r, &p, NULL);
	r.nodes[0].mood = FAKE_HOLDS_BACK;
	assert_int_equal(pawl_election_proclaim(p.election, pawl_str("last"), on_result, &p), 0);
	rig_settle(&r);
	pawl_election_free(p.election);
	fake_let_go(&r.nodes[0]);
	r.nodes[0].mood = FAKE_ANSWERS;
	rig_settle(&r);
	assert_int_equal(p.results, 1);
	rig_close(&r);
}

UNIT(client_elections) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_candidate_that_is_granted_the_lock_leads),
		cmocka_unit_test(an_election_is_marked_for_nodes_that_know_the_mark),
		cmocka_unit_test(a_leader_that_resigns_releases_and_is_not_told),
		cmocka_unit_test(a_candidate_that_resigns_leaves_the_queue),
		cmocka_unit_test(a_leader_that_cannot_extend_steps_down_before_its_time_is_over),
		cmocka_unit_test(a_leader_uses_up_its_lease_while_no_handshake_succeeds),
		cmocka_unit_test(certificates_with_which_no_node_ever_answered_are_told_at_once),
		cmocka_unit_test(a_leadership_that_is_lost_has_neither_token_nor_lock),
		cmocka_unit_test(a_transfer_to_somebody_who_does_not_wait_changes_nothing),
		cmocka_unit_test(a_transfer_stops_the_program_first_and_then_lets_go),
		cmocka_unit_test(
		a_leader_that_is_asked_yields_by_priority_or_name_and_is_a_candidate_again),
		cmocka_unit_test(a_candidate_that_takes_over_asks_each_leader_until_it_leads),
		cmocka_unit_test(a_refusal_that_may_pass_is_tried_again_and_one_for_good_is_told),
		cmocka_unit_test(what_is_proclaimed_is_in_the_next_election_or_written_at_once),
		cmocka_unit_test(a_value_that_was_refused_is_not_in_the_next_election),
		cmocka_unit_test(
			what_is_proclaimed_while_the_leader_is_lost_is_in_the_next_election),
		cmocka_unit_test(
	an_election_that_ends_before_its_proclamation_is_answered_leaves_the_answer_to_be_told),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
