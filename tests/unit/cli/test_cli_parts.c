/* These tests are about durations, numbers, lists of nodes, histograms, progress and advice of the
 * command. */
#include <string.h>

#include "cluster.h"
#include "histogram.h"
#include "output.h"
#include "progress.h"
#include "unit.h"

static void durations_have_units_and_fit(void **state) {
	(void)state;
	static const struct {
		const char *text;
		uint32_t ms;
	} good[] = { { "300ms", 300 }, { "5s", 5000 }, { "2m", 120000 }, { "1h", 3600000 },
		{ "2d", 172800000 }, { "49d", 4233600000 }, { "0", 0 }, { "0s", 0 },
		{ "1m00s", 60000 }, { "1m30s", 90000 }, { "1h05m", 3900000 },
		{ "1d2h3m4s5ms", 93784005 }, { "1.5s", 1500 },
		{ "0.001s", 1 }, { "1h0.5m", 3630000 } };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		uint32_t ms = 7;
		assert_true(cli_duration_parse(good[i].text, &ms));
		assert_int_equal(ms, good[i].ms);
	}
	static const char *const bad[] = { "", "5", "s", "5 s", "-5s", "+5s", "5S", "5sm", "50d",
		"forever", "9999h", "12345678901s", "999999999d", "1.s", ".5s", "1.5ms", "1.0005s",
		"5m10m", "5s1m", "1m30", "1m 30s", "49d999h" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t ms = 7;
		assert_false(cli_duration_parse(bad[i], &ms));
		assert_int_equal(ms, 7);
	}
}

/* What one command prints, another one takes. */
static void durations_that_are_printed_are_accepted(void **state) {
	(void)state;
	static const int64_t printed[] = { 0, 1, 999, 1000, 12345, 59999, 60000, 90500, 3599999,
		3600000, 86400000, 49 * (int64_t)86400000 };
	for (size_t i = 0; i < sizeof printed / sizeof *printed; i++) {
		uint32_t ms;
		const char *text = output_duration(printed[i]);
		assert_true(cli_duration_parse(text, &ms));
		/* It is rounded down to what is shown. */
		assert_string_equal(output_duration(ms), text);
	}
}

/* Returns what people are shown. */
static const char *shown(const char *text) {
	return output_name(text);
}

static void no_name_does_anything_to_a_terminal(void **state) {
	(void)state;
	assert_string_equal(shown("\x1b[2J"), "\\x1b[2J");
	assert_string_equal(shown("a\nb\rc\td\x7f"), "a\\x0ab\\x0dc\\x09d\\x7f");
	static const char *const hidden[][2] = { { "\u202ea", "\\xe2\\x80\\xaea" },
		{ "a\u2028b", "a\\xe2\\x80\\xa8b" }, { "\xc2\x9b" "2J", "\\xc2\\x9b2J" },
		{ "\ufeff", "\\xef\\xbb\\xbf" }, { "\u2066", "\\xe2\\x81\\xa6" },
		{ "\U000e0041", "\\xf3\\xa0\\x81\\x81" }, { "\xff", "\\xff" } };
	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
		assert_string_equal(shown(hidden[i][0]), hidden[i][1]);
	}
	static const char *const plain[] = { "", "a b",
		"\u00e9", "\u00a0", "\u65e5\u672c", "\U0001f512",
		"a\\x1bb" };
	for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
		assert_string_equal(shown(plain[i]), plain[i]);
	}
}

static void a_wait_may_have_no_end(void **state) {
	(void)state;
	uint32_t ms = 7;
	assert_true(cli_wait_parse("forever", &ms));
	assert_true(ms == PAWL_FOREVER);
	assert_true(cli_wait_parse("3d", &ms));
	assert_int_equal(ms, 259200000);
	assert_false(cli_wait_parse("for ever", &ms));
	assert_int_equal(ms, 259200000);
}

static void numbers_are_decimal_without_sign(void **state) {
	(void)state;
	uint64_t n = 7;
	assert_true(cli_number_parse("18446744073709551615", &n));
	assert_true(n == UINT64_MAX);
	static const char *const bad[] = { "", "-1", "+1", " 1", "1 ", "0x10",
		"18446744073709551616", "1e3" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(cli_number_parse(bad[i], &n));
	}
}

static void quantiles_are_right_to_about_one_percent(void **state) {
	(void)state;
	static struct histogram h;
	assert_int_equal(histogram_quantile(&h, 0.5), 0);
	for (int64_t i = 1; i <= 100000; i++) {
		histogram_add(&h, i * 1000);
	}
	static const struct {
		double part;
		uint64_t ns;
	} rows[] = { { 0.01, 1000000 }, { 0.5, 50000000 }, { 0.9, 90000000 }, { 0.99, 99000000 },
		{ 1.0, 100000000 } };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t got = histogram_quantile(&h, rows[i].part);
		assert_in_range(got, rows[i].ns - rows[i].ns / 50, rows[i].ns + rows[i].ns / 50);
	}
	assert_true(h.max_ns == 100000000);
}

static void extreme_durations_have_a_bucket(void **state) {
	(void)state;
	static struct histogram h;
	histogram_add(&h, INT64_MAX);
	histogram_add(&h, -1);
	histogram_add(&h, 0);
	assert_true(histogram_quantile(&h, 0.1) == 0);
	assert_true(histogram_quantile(&h, 1.0) == INT64_MAX);
}

/* ---- pawl cluster ---- */

static void lists_of_nodes_have_names_and_perhaps_addresses(void **state) {
	(void)state;
	char masters[] = "a,b=b.example:7118,c=[::1]:7118", replicas[] = "d";
	struct pawl_change_node nodes[PAWL_CHANGE_NODES_MAX];
	size_t count = 0;
	assert_null(cluster_nodes_parse(masters, true, nodes, &count));
	assert_null(cluster_nodes_parse(replicas, false, nodes, &count));
	assert_int_equal(count, 4);
	assert_string_equal(nodes[0].name, "a");
	assert_null(nodes[0].address);
	assert_string_equal(nodes[1].address, "b.example:7118");
	assert_string_equal(nodes[2].address, "[::1]:7118");
	assert_true(nodes[2].master && !nodes[3].master);
}

static void lists_of_nodes_with_mistakes_are_refused(void **state) {
	(void)state;
	static const char *const bad[] = { "", "a,", ",a", "a,a", "a=b", "=b:1", "a,b=x:1,a=y:1" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		char text[32];
		snprintf(text, sizeof text, "%s", bad[i]);
		struct pawl_change_node nodes[PAWL_CHANGE_NODES_MAX];
		size_t count = 0;
		assert_non_null(cluster_nodes_parse(text, true, nodes, &count));
	}
	char many[4 * (PAWL_CHANGE_NODES_MAX + 1)] = "n0";
	for (int i = 1; i <= PAWL_CHANGE_NODES_MAX; i++) {
		size_t used = strlen(many);
		snprintf(many + used, sizeof many - used, ",%d", i);
	}
	struct pawl_change_node nodes[PAWL_CHANGE_NODES_MAX];
	size_t count = 0;
	assert_non_null(cluster_nodes_parse(many, true, nodes, &count));
	assert_int_equal(count, PAWL_CHANGE_NODES_MAX);
}

static void drifts_are_percent_or_parts_in_a_million(void **state) {
	(void)state;
	static const struct {
		const char *text;
		uint32_t ppm;
	} good[] = { { "1%", 10000 }, { "0.5%", 5000 }, { "0.05%", 500 }, { "200ppm", 200 },
		{ "0%", 0 }, { "100%", 1000000 } };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		uint32_t ppm = 7;
		assert_true(cluster_drift_parse(good[i].text, &ppm));
		assert_int_equal(ppm, good[i].ppm);
	}
	static const char *const bad[] = { "", "1", "%", "1 %", "-1%", "1.%", ".5%", "0.00001%",
		"101%", "100.1%", "1.5ppm", "1000001ppm", "99999999ppm", "1%%" };
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint32_t ppm = 7;
		assert_false(cluster_drift_parse(bad[i], &ppm));
		assert_int_equal(ppm, 7);
	}
}

static void without_a_terminal_each_step_is_a_line_said_once(void **state) {
	(void)state;
	char text[256] = "";
	FILE *to = fmemopen(text, sizeof text, "w");
	assert_non_null(to);
	struct progress p;
	progress_init(&p, to);
	progress_step(&p, "copies the table", 0, 100);
	progress_step(&p, "copies the table", 50, 100);
	progress_step(&p, "decides", 0, 0);
	progress_say(&p, "done: epoch %d", 5);
	progress_end(&p);
	assert_int_equal(fclose(to), 0);
	assert_string_equal(text, "copies the table\ndecides\ndone: epoch 5\n");
}

/* ---- advice ---- */

static struct view_node healthy(const char *name, bool master) {
	return (struct view_node){ .name = name, .address = "",
		.role = master ? "master" : "replica", .master = master, .replica = !master,
		.linked = true, .voting = master, .lag = master ? VIEW_UNKNOWN : 3, .state = "",
		.waits_for = "", .trouble = "", .audit_trouble = "", .following = "", .version = "",
		.age_ms = VIEW_UNKNOWN, .uptime_ms = VIEW_UNKNOWN, .rights = "", .serial = "",
		.certificate_days = VIEW_UNKNOWN };
}

/* Returns a view of three masters a (which is asked), b and c, and a replica d. */
static struct view healthy_cluster(void) {
	struct view v = { .node = "a", .role = "master", .cluster = "prod", .state = "voting",
		.epoch = 4, .quorum = 2, .voting = 3, .settled = true, .complete = true,
		.change.step = "", .count = 4,
		.nodes = { healthy("a", true), healthy("b", true), healthy("c", true),
			healthy("d", false) } };
	v.nodes[0].self = true;
	v.nodes[0].linked = false;
	return v;
}

struct advised {
	char text[2048];
	size_t count;
};

static void keep_sentence(void *ctx, const char *sentence) {
	struct advised *a = ctx;
	size_t used = strlen(a->text);
	snprintf(a->text + used, sizeof a->text - used, "%s\n", sentence);
	a->count++;
}

static struct advised advised(const struct view *v) {
	struct advised a = { .count = 0 };
	advice_give(v, keep_sentence, &a);
	return a;
}

static void a_healthy_cluster_needs_no_advice(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	assert_int_equal(advised(&v).count, 0);
}

static void a_limit_that_is_full_is_named_with_whose_it_is_and_what_to_do(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[1].limits[0] = (struct view_limit){ "clients", 10, 10, true, 7, "billing" };
	v.nodes[1].limits[1] = (struct view_limit){ "keys", 9, 10, false, 0, "" };
	v.nodes[1].limit_count = 2;
	struct advised a = advised(&v);
	assert_int_equal(a.count, 2);
	assert_non_null(strstr(a.text, "b has reached a limit"));
	assert_non_null(strstr(a.text, "clients, 10 of 10, at least 7 of them of billing"));
	assert_non_null(strstr(a.text, "b has used more than 80 % of a limit (keys, 9 of 10)"));
	assert_non_null(strstr(a.text, "raise [limits] keys"));
}

static void masters_that_run_and_are_cut_off_are_not_said_to_be_down(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.voting = 1;
	for (size_t i = 1; i < 3; i++) {
		v.nodes[i].linked = v.nodes[i].voting = false;
		v.nodes[i].state = "voting";
	}
	struct advised a = advised(&v);
	assert_int_equal(a.count, 3);
	assert_null(strstr(a.text, "Start the masters that are down"));
	assert_non_null(strstr(a.text, "c runs and answers, but has no link with a"));
	v.nodes[2].uptime_ms = 500;
	assert_non_null(strstr(advised(&v).text,
		"c has just started, and has no link with a yet: wait"));
}

static void an_audit_file_that_fails_is_named(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[2].audit_trouble = "cannot write /x: No space left on device: make room";
	assert_string_equal(advised(&v).text, "the audit file of c lacks lines: cannot write /x: "
		"No space left on device: make room\n");
}

static void a_certificate_that_has_ended_is_told_from_one_that_is_about_to(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[1].certificate_days = 0;
	assert_non_null(strstr(advised(&v).text, "expires within a day"));
	v.nodes[1].certificate_ended = true;
	struct advised a = advised(&v);
	assert_int_equal(a.count, 1);
	assert_non_null(strstr(a.text, "the certificate of b (serial ) has ended"));
}

static void a_dead_master_is_to_be_restarted_or_replaced_by_a_replica_that_is_there(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[1].linked = v.nodes[1].voting = false;
	v.voting = 2;
	struct advised a = advised(&v);
	assert_int_equal(a.count, 1);
	assert_string_equal(a.text,
		"b does not answer: restart it, or replace it: pawl cluster replace b d\n");
	v.nodes[3].catching_up = true;
	a = advised(&v);
	assert_non_null(strstr(a.text,
		"pawl cluster add-replica NEW HOST:PORT, then pawl cluster replace b NEW"));
	assert_non_null(strstr(a.text, "d is fetching a snapshot"));
}

static void a_lost_majority_comes_first_and_names_force(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[1].linked = v.nodes[1].voting = v.nodes[2].linked = v.nodes[2].voting = false;
	v.voting = 1;
	struct advised a = advised(&v);
	assert_int_equal(a.count, 3);
	const char *begin = strstr(a.text, "nothing can be granted: a sees 1 of the 2 votes");
	assert_ptr_equal(begin, a.text);
	assert_non_null(strstr(a.text, "pawl cluster force --help"));
	/* There is nobody to agree on a replacement. */
	assert_non_null(strstr(a.text, "\nb does not answer: restart it\n"));
}

static void a_master_that_lost_its_state_gets_its_own_place_again(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[2].stranger = true;
	v.nodes[2].voting = false;
	assert_non_null(strstr(advised(&v).text, "pawl cluster replace c c"));
}

static void a_node_with_other_access_rules_than_the_rest_is_named(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	for (size_t i = 0; i < 3; i++) {
		v.nodes[i].rights = "0123456789";
	}
	/* Node d has not told its rules. */
	assert_int_equal(advised(&v).count, 0);
	v.nodes[0].rights = "none";
	struct advised a = advised(&v);
	assert_int_equal(a.count, 1);
	assert_string_equal(a.text, "a has other access rules (none) than the rest (01234567): "
		"put the same rules file ([acl] file) on all nodes, "
		"and reload them: systemctl reload pawld\n");
	/* Where as many nodes have each set of rules, those of the node that was asked count. */
	v.nodes[1].rights = "none";
	a = advised(&v);
	assert_int_equal(a.count, 1);
	assert_non_null(strstr(a.text, "c has other access rules (01234567) than the rest (none)"));
	v.nodes[3].rights = v.nodes[2].rights;
	assert_int_equal(advised(&v).count, 2);
}

static void a_certificate_near_its_end_is_to_be_renewed(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[3].serial = "4A3F";
	v.nodes[3].certificate_days = 30;
	assert_int_equal(advised(&v).count, 0);
	v.nodes[3].certificate_days = 29;
	struct advised a = advised(&v);
	assert_int_equal(a.count, 1);
	assert_string_equal(a.text,
		"the certificate of d (serial 4A3F) expires in 29 days: issue a new one (pawl "
		"cert node d --host ...), install it, and reload: systemctl reload pawld\n");
}

static void a_recovering_master_is_waited_for_with_the_time_that_it_says(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[0].voting = false;
	v.nodes[0].state = "recovering";
	v.nodes[0].left_ms = 12300;
	v.voting = 2;
	assert_string_equal(advised(&v).text,
		"a does not vote yet (recovering): wait up to 13 s\n");
}

static void an_outsider_is_told_how_it_gets_in(void **state) {
	(void)state;
	struct view v = { .node = "e", .role = "", .cluster = "", .state = "unconfigured",
		.change.step = "" };
	assert_non_null(strstr(advised(&v).text, "pawl cluster add-replica e HOST:PORT"));
}

static void before_the_birth_each_node_says_what_it_waits_for(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.epoch = 0;
	v.nodes[0].waits_for = "the other initial masters to be heard";
	v.nodes[1].linked = v.nodes[2].linked = false;
	v.nodes[1].trouble = "it speaks another language";
	struct advised a = advised(&v);
	assert_non_null(strstr(a.text,
		"the cluster is not born yet: a waits for the other initial masters to be heard"));
	assert_non_null(strstr(a.text, "a has no link with b: it speaks another language\n"));
	assert_non_null(strstr(a.text, "c does not answer: start it\n"));
	assert_int_equal(a.count, 4);
}

static void why_there_is_no_link_is_said(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[1].linked = v.nodes[1].voting = v.nodes[3].linked = false;
	v.voting = 2;
	v.nodes[1].trouble = v.nodes[3].trouble = "it cannot be reached";
	struct advised a = advised(&v);
	assert_non_null(strstr(a.text, "b does not answer (it cannot be reached): restart it"));
	assert_non_null(strstr(a.text, "replica d does not answer (it cannot be reached)"));
	/* Whoever answers the command is not down, so a restart would only cost its memory. */
	v.nodes[1].state = "voting";
	a = advised(&v);
	assert_non_null(strstr(a.text, "b runs and answers, but has no link with a (it cannot be "
		"reached): repair what is between them, in both directions; do not restart b\n"));
	assert_null(strstr(a.text, "b does not answer"));
}

static void a_node_whose_name_is_taken_asks_for_its_place_and_not_to_be_added(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.node = "b";
	/* The node is shown like that when its identity was lost. */
	v.nodes[1] = healthy("", true);
	v.nodes[1].linked = false;
	struct advised a = advised(&v);
	assert_int_equal(a.count, 1);
	assert_non_null(strstr(a.text, "pawl cluster replace b b"));
	assert_null(strstr(a.text, "add-replica"));
}

static void an_even_number_of_masters_is_remarked_once_the_change_is_complete(void **state) {
	(void)state;
	struct view v = healthy_cluster();
	v.nodes[3] = healthy("d", true);
	assert_non_null(strstr(advised(&v).text, "4 masters tolerate no more failures than 3"));
	v.complete = false;
	assert_int_equal(advised(&v).count, 0);
}

UNIT(cli_parts) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_have_units_and_fit),
		cmocka_unit_test(durations_that_are_printed_are_accepted),
		cmocka_unit_test(no_name_does_anything_to_a_terminal),
		cmocka_unit_test(a_wait_may_have_no_end),
		cmocka_unit_test(numbers_are_decimal_without_sign),
		cmocka_unit_test(quantiles_are_right_to_about_one_percent),
		cmocka_unit_test(extreme_durations_have_a_bucket),
		cmocka_unit_test(lists_of_nodes_have_names_and_perhaps_addresses),
		cmocka_unit_test(lists_of_nodes_with_mistakes_are_refused),
		cmocka_unit_test(drifts_are_percent_or_parts_in_a_million),
		cmocka_unit_test(without_a_terminal_each_step_is_a_line_said_once),
		cmocka_unit_test(a_healthy_cluster_needs_no_advice),
		cmocka_unit_test(a_limit_that_is_full_is_named_with_whose_it_is_and_what_to_do),
		cmocka_unit_test(an_audit_file_that_fails_is_named),
		cmocka_unit_test(masters_that_run_and_are_cut_off_are_not_said_to_be_down),
		cmocka_unit_test(a_certificate_that_has_ended_is_told_from_one_that_is_about_to),
		cmocka_unit_test(
			a_dead_master_is_to_be_restarted_or_replaced_by_a_replica_that_is_there),
		cmocka_unit_test(a_lost_majority_comes_first_and_names_force),
		cmocka_unit_test(a_master_that_lost_its_state_gets_its_own_place_again),
		cmocka_unit_test(a_node_with_other_access_rules_than_the_rest_is_named),
		cmocka_unit_test(a_certificate_near_its_end_is_to_be_renewed),
		cmocka_unit_test(a_recovering_master_is_waited_for_with_the_time_that_it_says),
		cmocka_unit_test(an_outsider_is_told_how_it_gets_in),
		cmocka_unit_test(before_the_birth_each_node_says_what_it_waits_for),
		cmocka_unit_test(why_there_is_no_link_is_said),
		cmocka_unit_test(a_node_whose_name_is_taken_asks_for_its_place_and_not_to_be_added),
		cmocka_unit_test(an_even_number_of_masters_is_remarked_once_the_change_is_complete),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
