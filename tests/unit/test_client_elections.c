/* Elections of the client: campaigning, leading, and every way out of it; and what an observer is told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "client_rig.h"
#include "pawl/election.h"

struct part {
	struct pawl_election *election;
	unsigned led, stepped_down, failed, asked;
	int cause, error, result;
	unsigned results;
	bool released;
	int64_t left;
	enum pawl_asked_answer answer;
	bool free_when_leading, observing;
	char leaders[256];
};

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	struct part *p = arg;
	assert_int_equal(token, pawl_election_token(election));
	assert_true(pawl_election_leads(election));
	p->led++;
	if (p->free_when_leading) {
		pawl_election_free(election);
		p->election = NULL;
	}
}

static void on_stepped_down(struct pawl_election *election, int cause, void *arg) {
	struct part *p = arg;
	p->stepped_down++;
	p->cause = cause;
	p->left = pawl_election_valid_ms(election);
	assert_false(pawl_election_leads(election));
}

static void on_leader(struct pawl_election *election, const struct pawl_leader *leader, void *arg) {
	struct part *p = arg;
	size_t used = strlen(p->leaders);
	struct pawl_leader same;
	assert_true(pawl_election_leader(election, &same) == (leader != NULL));
	if (leader) {
		(void)snprintf(p->leaders + used, sizeof(p->leaders) - used, "%s=%s@%u%s ", (const char *)leader->owner.data,
			(const char *)leader->value.data, (unsigned)leader->token, leader->self ? "!" : "");
	} else {
		(void)snprintf(p->leaders + used, sizeof(p->leaders) - used, "nobody ");
	}
}

static enum pawl_asked_answer on_asked(struct pawl_election *election, const struct pawl_asked *asked, void *arg) {
	struct part *p = arg;
	(void)election;
	(void)asked;
	p->asked++;
	return p->answer;
}

static void on_failed(struct pawl_election *election, int error, const char *message, bool observing, void *arg) {
	struct part *p = arg;
	(void)election;
	(void)message;
	p->failed++;
	p->error = error;
	p->observing = observing;
}

static void on_result(struct pawl_result *take_result, void *arg) {
	struct part *p = arg;
	p->results++;
	p->result = take_result->error;
	p->released = take_result->released;
	pawl_result_free(take_result);
}

static struct pawl_election_options options_of(struct part *p) {
	return (struct pawl_election_options){ .name = { "k", 1 }, .owner = { "me", 2 }, .value = { "v", 1 }, .lease_ms = 9000,
		.on_leading = on_leading, .on_stepped_down = on_stepped_down, .on_leader = on_leader, .on_asked = on_asked,
		.on_failed = on_failed, .arg = p };
}

static void begin(struct rig *r, struct part *p, const struct pawl_election_options *options) {
	rig_open(r, NULL);
	r->nodes[0].held = r->nodes[1].held = false;
	assert_int_equal(pawl_election_new(r->client, options, &p->election), 0);
	rig_settle(r);
}

static void lead(struct rig *r, struct part *p, const struct pawl_election_options *options) {
	begin(r, p, options);
	assert_int_equal(pawl_election_campaign(p->election), 0);
	rig_settle(r);
	assert_int_equal(p->led, 1);
	assert_true(pawl_election_leads(p->election));
}

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
	fake_event(&r.nodes[0], NEWS_ACQUIRED, "me", "v", pawl_election_token(p.election));
	rig_settle(&r);
	assert_string_equal(p.leaders, "nobody me=v@1! ");
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
	struct pawl_election_options o = options_of(&p);
	begin(&r, &p, &o);
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
	rig_pass(&r, 5000 * SPAN_MS);
	assert_int_equal(p.led, 2);
	assert_true(pawl_election_valid_ms(p.election) > 3000);
	rig_close(&r);
}

static void a_transfer_to_somebody_who_does_not_wait_changes_nothing(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	lead(&r, &p, &o);
	r.nodes[0].waiter = "other";
	assert_int_equal(pawl_election_transfer(p.election, pawl_str("b"), on_result, &p), 0);
	assert_true(pawl_election_leads(p.election));
	assert_int_equal(pawl_election_transfer(p.election, pawl_str("b"), NULL, NULL), PAWL_EINVAL);
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
	assert_false(pawl_election_campaigns(p.election)); /* the program wanted to go */
	assert_int_equal(pawl_election_valid_ms(p.election), 0);
	rig_close(&r);
}

static void who_is_asked_yields_to_a_higher_priority_or_a_name_and_is_a_candidate_again(void **state) {
	(void)state;
	const struct {
		const char *by, *to;
		int32_t priority;
		enum pawl_asked_answer answer;
		bool yields;
	} rows[] = {
		{ "b", "", 6, PAWL_ASKED_USUAL, true },   { "b", "", 5, PAWL_ASKED_USUAL, false },  { "b", "", 6, PAWL_ASKED_STAY, false },
		{ "x", "b", 0, PAWL_ASKED_USUAL, true },  { "x", "", 9, PAWL_ASKED_USUAL, false },  { "x", "me", 9, PAWL_ASKED_USUAL, false },
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
	fake_event(&r.nodes[0], NEWS_ACQUIRED, "other", "", 40);
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
	fake_event(&r.nodes[0], NEWS_RELEASED, "other", "", 40);
	rig_pass(&r, 20 * SPAN_S);
	assert_int_equal(r.nodes[0].asked[CLIENT_ASK_RELEASE], asked);
	rig_close(&r);
}

static void a_refusal_that_may_pass_is_tried_again_and_one_for_good_is_told(void **state) {
	(void)state;
	struct rig r;
	struct part p = { 0 };
	struct pawl_election_options o = options_of(&p);
	begin(&r, &p, &o);
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
	struct pawl_election_options o = options_of(&p);
	lead(&r, &p, &o);
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
	fake_event(n, NEWS_UPDATED, "somebody", "w", 41);
	fake_event(n, NEWS_RELEASED, "somebody", "", 41);
	fake_event(n, NEWS_ACQUIRED, "b", "x", 42);
	fake_event(n, NEWS_ACQUIRED, "somebody", "w", 41);
	fake_event(n, NEWS_EXPIRED, "somebody", "", 41);
	fake_event(n, NEWS_ACQUIRED, "b", "x", 42);
	rig_settle(&r);
	assert_string_equal(p.leaders, "somebody=something@41 somebody=w@41 nobody b=x@42 ");
	p.leaders[0] = '\0';
	r.nodes[1].holder.owner = slice_str("b");
	r.nodes[1].holder.value = slice_str("x");
	r.nodes[1].holder.token = 42;
	fake_hang_up(n);
	rig_settle(&r);
	assert_true(pawl_election_current(p.election));
	assert_string_equal(p.leaders, ""); /* the same one still */
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
	struct pawl_election_options o = options_of(&p);
	begin(&r, &p, &o);
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
	struct pawl_election_options o = options_of(&p);
	lead(&r, &p, &o);
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
			fake_event(n, NEWS_ACQUIRED, "b", "x", 99);
			fake_ask(n, "b", "b", 0);
			rig_pass(&r, 8 * SPAN_S);
			assert_true(pawl_election_current(p.election));
		}
		rig_close(&r);
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_candidate_that_is_granted_the_lock_leads),
		cmocka_unit_test(a_leader_that_resigns_releases_and_is_not_told),
		cmocka_unit_test(a_candidate_that_resigns_leaves_the_queue),
		cmocka_unit_test(a_leader_that_cannot_extend_steps_down_before_its_time_is_over),
		cmocka_unit_test(a_transfer_to_somebody_who_does_not_wait_changes_nothing),
		cmocka_unit_test(a_transfer_stops_the_program_first_and_then_lets_go),
		cmocka_unit_test(who_is_asked_yields_to_a_higher_priority_or_a_name_and_is_a_candidate_again),
		cmocka_unit_test(a_candidate_that_takes_over_asks_each_leader_until_it_leads),
		cmocka_unit_test(a_refusal_that_may_pass_is_tried_again_and_one_for_good_is_told),
		cmocka_unit_test(what_is_proclaimed_is_in_the_next_election_or_written_at_once),
		cmocka_unit_test(an_observer_is_told_of_every_change_in_order_and_of_nothing_old),
		cmocka_unit_test(an_election_may_be_freed_in_its_callback),
		cmocka_unit_test(a_client_that_is_freed_gives_up_leadership_as_its_last_word),
		cmocka_unit_test(whatever_memory_is_missing_it_leads_in_the_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
