/* These tests are about what `pawl audit check` takes for a breach in the audit files of all nodes,
 * and what it does not. Times are in ms. Each node has a clock of its own; the wall clocks are
 * right unless a test says otherwise. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "audit_check.h"

#define LINES 64
#define A 0
#define B 1
#define KEY 7
#define OTHER_KEY 8
/* The clocks since boot of the two nodes differ by this much. */
#define APART_US (int64_t)500000000

struct made {
	struct audit_line lines[LINES];
	size_t count;
	uint64_t seq[2], boot[2];
	struct audit_rules rules;
	struct audit_result result;
};

static struct audit_line *add(struct made *m, uint32_t node, int64_t at, enum audit_action action) {
	struct audit_line *line = &m->lines[m->count++];
	*line = (struct audit_line){ .action = action, .node = node, .key = KEY, .lock = AUDIT_NONE,
		.owner = AUDIT_NONE, .boot = m->boot[node], .seq = ++m->seq[node], .ts = at * 1000,
		.mono = at * 1000 + node * APART_US, .took = 10000, .ok = true };
	return line;
}

static void setup(struct made *m) {
	*m = (struct made){ .rules = { .clocks_us = 1000000 },
		.boot = { 1, 1 } };
	for (uint32_t node = A; node <= B; node++) {
		struct audit_line *line = add(m, node, -60000, AUDIT_OPEN);
		line->holders = true;
		line->drift_ppm = 10000;
	}
}

static struct audit_line *acquire(struct made *m, uint32_t node, int64_t at, uint32_t lock,
	uint64_t token) {
	struct audit_line *line = add(m, node, at, AUDIT_ACQUIRE);
	line->lock = lock;
	line->token = token;
	line->valid_ms = 10000;
	line->mode.exclusive = true;
	return line;
}

static struct audit_line *share(struct audit_line *line) {
	line->mode = (struct audit_mode){ .shared = true };
	return line;
}

static struct audit_line *permits(struct audit_line *line, uint64_t numbers) {
	line->mode = (struct audit_mode){ .of = 3, .slots = { numbers } };
	return line;
}

static struct audit_line *ends(struct made *m, uint32_t node, int64_t at, uint32_t lock,
	enum audit_action action) {
	struct audit_line *line = add(m, node, at, action);
	line->lock = lock;
	return line;
}

/* The lines are judged long after the last one was written. */
static void judge(struct made *m) {
	add(m, A, 1000000, AUDIT_OTHER);
	add(m, B, 1000000, AUDIT_OTHER);
	struct audit_lines lines = { .lines = m->lines, .count = m->count };
	m->result = audit_check(&lines, &m->rules);
}

static void good(struct made *m) {
	judge(m);
	assert_int_equal(m->result.count, 0);
	free(m->result.findings);
}

static void bad(struct made *m, enum audit_finding_kind kind) {
	judge(m);
	assert_int_equal(m->result.count, 1);
	assert_int_equal(m->result.findings[0].kind, kind);
	assert_false(m->result.findings[0].possible);
	free(m->result.findings);
}

static void possible(struct made *m) {
	judge(m);
	assert_int_equal(m->result.count, 1);
	assert_int_equal(m->result.findings[0].kind, AUDIT_OVERLAP);
	assert_true(m->result.findings[0].possible);
	free(m->result.findings);
}

/* ---- two holders ---- */

static void two_holders_are_found(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 6000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 12100, 2, 7);
	good(&m);
}

static void a_lease_that_was_shortened_ends_early(void **state) {
	(void)state;
	struct made m;
	for (int longer = 0; longer < 2; longer++) {
		setup(&m);
		acquire(&m, A, 1000, 1, 5);
		struct audit_line *line = acquire(&m, A, 3000, 1, 5);
		line->action = AUDIT_EXTEND;
		line->shorten = true;
		line->valid_ms = 1000;
		if (longer) {
			acquire(&m, A, 3500, 1, 5)->action = AUDIT_EXTEND;
		}
		acquire(&m, A, 4500, 2, 7);
		if (longer) {
			bad(&m, AUDIT_OVERLAP);
		} else {
			good(&m);
		}
	}
}

/* The masters may have heard of it, whatever was answered. */
static void a_lease_that_was_perhaps_shortened_may_end_early(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	struct audit_line *line = ends(&m, A, 3000, 1, AUDIT_EXTEND);
	line->shorten = true;
	acquire(&m, A, 3500, 2, 7);
	good(&m);
}

static void a_pair_is_told_once(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 3000, 2, 7);
	acquire(&m, A, 5000, 1, 5)->action = AUDIT_EXTEND;
	acquire(&m, B, 7000, 2, 7)->action = AUDIT_EXTEND;
	bad(&m, AUDIT_OVERLAP);
}

static void readers_share_and_writers_do_not(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	share(acquire(&m, A, 1000, 1, 5));
	share(acquire(&m, A, 2000, 2, 6));
	good(&m);
	setup(&m);
	share(acquire(&m, A, 1000, 1, 5));
	acquire(&m, A, 2000, 2, 6);
	bad(&m, AUDIT_OVERLAP);
}

static void permits_are_judged_by_their_numbers(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	permits(acquire(&m, A, 1000, 1, 5), 3);
	permits(acquire(&m, A, 2000, 2, 6), 4);
	good(&m);
	setup(&m);
	permits(acquire(&m, A, 1000, 1, 5), 3);
	permits(acquire(&m, A, 2000, 2, 6), 2);
	bad(&m, AUDIT_OVERLAP);
}

static void an_extension_has_the_mode_of_its_lock(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, A, 8000, 1, 5)->mode = (struct audit_mode){ 0 };
	m.lines[m.count - 1].action = AUDIT_EXTEND;
	acquire(&m, A, 13000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
}

static void a_lease_counts_from_the_arrival_of_the_request(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 8000, 1, 5)->took = 7000000;
	acquire(&m, A, 11500, 2, 7);
	good(&m);
}

/* ---- the ends of locks ---- */

static void a_release_ends_a_lock_when_it_has_arrived(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, A, 4000, 2, 7);
	ends(&m, A, 5000, 1, AUDIT_RELEASE)->took = 2000000;
	good(&m);
}

static void what_was_refused_ends_nothing(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	ends(&m, A, 2000, 1, AUDIT_RELEASE)->denied = true;
	acquire(&m, A, 4000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	ends(&m, A, 2000, 1, AUDIT_TRANSFER)->not_found = true;
	acquire(&m, A, 4000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
}

static void only_a_lease_that_was_taken_away_may_end_early(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	ends(&m, A, 2000, 1, AUDIT_LOST)->taken = true;
	acquire(&m, A, 4000, 2, 7);
	good(&m);
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	ends(&m, A, 2000, 1, AUDIT_LOST);
	acquire(&m, A, 4000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
}

static void a_break_ends_what_was_held_of_its_key(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	add(&m, A, 2000, AUDIT_BREAK)->now = true;
	acquire(&m, A, 4000, 2, 7);
	good(&m);
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	add(&m, A, 2000, AUDIT_BREAK)->now = true;
	m.lines[m.count - 1].key = OTHER_KEY;
	acquire(&m, A, 4000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
	setup(&m);
	add(&m, A, 1000, AUDIT_BREAK)->now = true;
	acquire(&m, A, 2000, 1, 5);
	acquire(&m, A, 4000, 2, 7);
	bad(&m, AUDIT_OVERLAP);
}

/* ---- clocks ---- */

static void the_wall_clocks_of_two_nodes_may_differ(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 10200, 2, 7);
	good(&m);
}

static void the_lease_of_another_node_may_drift(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	m.rules.clocks_us = 0;
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 10950, 2, 7);
	good(&m);
}

static void one_node_is_judged_by_its_own_clock(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, A, 10500, 2, 7)->ts += 60000000;
	bad(&m, AUDIT_OVERLAP);
}

/* ---- tokens ---- */

static void a_token_is_used_once(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, A, 30000, 2, 5);
	bad(&m, AUDIT_TOKENS);
}

static void a_token_is_compared_with_the_highest_before(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	/* The tokens of readers are in no order. */
	share(acquire(&m, A, 1000, 1, 9));
	share(acquire(&m, A, 30000, 2, 6));
	acquire(&m, A, 60000, 3, 7);
	bad(&m, AUDIT_TOKENS);
}

static void requests_that_were_under_way_at_once_have_no_order(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 20000, 1, 9);
	ends(&m, A, 20500, 1, AUDIT_RELEASE);
	acquire(&m, A, 22500, 2, 7)->took = 20000000;
	good(&m);
}

/* ---- lines ---- */

static void a_line_that_is_missing_is_found(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	m.seq[A]++;
	bad(&m, AUDIT_MISSING);
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	m.seq[A]++;
	add(&m, A, 2000, AUDIT_OTHER)->dropped = 1;
	good(&m);
}

static void a_line_that_is_missing_may_explain_it(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	m.seq[A]++;
	add(&m, A, 3000, AUDIT_OTHER)->dropped = 1;
	acquire(&m, B, 6000, 2, 7);
	possible(&m);
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 6000, 2, 7);
	add(&m, A, 20000, AUDIT_OTHER);
	m.seq[A]++;
	add(&m, A, 30000, AUDIT_OTHER)->dropped = 1;
	bad(&m, AUDIT_OVERLAP);
}

static void a_crash_may_have_lost_lines(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 6000, 2, 7);
	m.seq[A] = 0;
	m.boot[A] = 2;
	add(&m, A, 20000, AUDIT_OPEN);
	possible(&m);
	/* After a planned stop none is missing. */
	setup(&m);
	acquire(&m, A, 1000, 1, 5);
	acquire(&m, B, 6000, 2, 7);
	add(&m, A, 3000, AUDIT_CLOSE);
	m.seq[A] = 0;
	m.boot[A] = 2;
	add(&m, A, 20000, AUDIT_OPEN);
	bad(&m, AUDIT_OVERLAP);
}

static void a_line_that_was_altered_is_found(void **state) {
	(void)state;
	struct made m;
	setup(&m);
	acquire(&m, A, 1000, 1, 5)->mono += 50000000;
	add(&m, A, 2000, AUDIT_OTHER);
	bad(&m, AUDIT_ALTERED);
	/* The same file was named twice; another line has the same number. */
	setup(&m);
	struct audit_line *line = acquire(&m, A, 1000, 1, 5);
	m.lines[m.count++] = *line;
	good(&m);
	setup(&m);
	line = acquire(&m, A, 1000, 1, 5);
	m.lines[m.count] = *line;
	m.lines[m.count++].token = 6;
	bad(&m, AUDIT_ALTERED);
}

UNIT(cli_audit_check) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_holders_are_found),
		cmocka_unit_test(a_lease_that_was_shortened_ends_early),
		cmocka_unit_test(a_lease_that_was_perhaps_shortened_may_end_early),
		cmocka_unit_test(a_pair_is_told_once),
		cmocka_unit_test(readers_share_and_writers_do_not),
		cmocka_unit_test(permits_are_judged_by_their_numbers),
		cmocka_unit_test(an_extension_has_the_mode_of_its_lock),
		cmocka_unit_test(a_lease_counts_from_the_arrival_of_the_request),
		cmocka_unit_test(a_release_ends_a_lock_when_it_has_arrived),
		cmocka_unit_test(what_was_refused_ends_nothing),
		cmocka_unit_test(only_a_lease_that_was_taken_away_may_end_early),
		cmocka_unit_test(a_break_ends_what_was_held_of_its_key),
		cmocka_unit_test(the_wall_clocks_of_two_nodes_may_differ),
		cmocka_unit_test(the_lease_of_another_node_may_drift),
		cmocka_unit_test(one_node_is_judged_by_its_own_clock),
		cmocka_unit_test(a_token_is_used_once),
		cmocka_unit_test(a_token_is_compared_with_the_highest_before),
		cmocka_unit_test(requests_that_were_under_way_at_once_have_no_order),
		cmocka_unit_test(a_line_that_is_missing_is_found),
		cmocka_unit_test(a_line_that_is_missing_may_explain_it),
		cmocka_unit_test(a_crash_may_have_lost_lines),
		cmocka_unit_test(a_line_that_was_altered_is_found),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
