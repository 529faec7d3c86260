/* What rules allow. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client.h"
#include "rights.h"

static bool user_of(const char *name, uint32_t *out) {
	*out = 1000;
	return strcmp(name, "ann") == 0;
}

static bool group_of(const char *name, uint32_t *out) {
	*out = 27;
	return strcmp(name, "wheel") == 0;
}

static const struct rights_accounts accounts = { user_of, group_of };

static struct rights *rules(const char *text) {
	struct rights *r = NULL;
	struct problem problem = { "" };
	if (rights_parse(slice_str(text), "f", &accounts, &r, &problem)) {
		fail_msg("refused: %s", problem.text);
	}
	return r;
}

static struct rights_verdict evaluate(const struct rights *r, const char *who, enum right right,
	const char *key, bool prefix) {
	const struct rights_caller caller = { .identity = slice_str(who) };
	const struct rights_question question = { .right = right, .key = slice_str(key),
		.prefix = prefix };
	return rights_judge(r, &caller, &question);
}

static bool may(const struct rights *r, const char *who, enum right right, const char *key) {
	return evaluate(r, who, right, key, false).allowed;
}

static bool may_all(const struct rights *r, const char *who, enum right right, const char *prefix) {
	return evaluate(r, who, right, prefix, true).allowed;
}

static bool may_with(const struct rights *r, const char *who, const char *key, int64_t priority) {
	const struct rights_caller caller = { .identity = slice_str(who) };
	const struct rights_question question = { .right = RIGHT_PRIORITY, .key = slice_str(key),
		.priority = priority };
	return rights_judge(r, &caller, &question).allowed;
}

static void what_no_rule_gives_nobody_has(void **state) {
	(void)state;
	struct rights *r = rules("[x]\nallow = read on r/\n");
	for (enum right right = 0; right < RIGHT_NONE; right++) {
		assert_int_equal(may(r, "x", right, "r/1"),
			right == RIGHT_READ || right == RIGHT_PRIORITY);
		/* That is a priority of at most 0, which everybody may have. */
		assert_int_equal(may(r, "y", right, "r/1"), right == RIGHT_PRIORITY);
		assert_int_equal(may(r, "", right, ""), right == RIGHT_PRIORITY);
	}
	assert_false(may(r, "x", RIGHT_READ, "r"));
	assert_false(may(r, "xx", RIGHT_READ, "r/1"));
	assert_true(may(r, "nobody at all", RIGHT_NONE, ""));
	rights_free(r);
	r = rules("# nothing\n");
	assert_false(may(r, "x", RIGHT_READ, "k"));
	rights_free(r);
}

static void the_longest_prefix_counts(void **state) {
	(void)state;
	struct rights *r = rules("[x]\nallow = read on a/b/c/\ndeny = read on a/b/\nallow "
		"= read on a/\ndeny = read on *\n");
	assert_int_equal(evaluate(r, "x", RIGHT_READ, "k", false).line, 5);
	assert_false(may(r, "x", RIGHT_READ, "k"));
	assert_true(may(r, "x", RIGHT_READ, "a/1"));
	assert_false(may(r, "x", RIGHT_READ, "a/b/1"));
	assert_true(may(r, "x", RIGHT_READ, "a/b/c/1"));
	assert_int_equal(evaluate(r, "x", RIGHT_READ, "a/b/c/1", false).line, 2);
	rights_free(r);
	r = rules("[x]\ndeny = read on *\nallow = read on a/\n[everybody]\n"
		"deny = read on a/b/\nallow = read on a/b/c/\n");
	assert_true(may(r, "x", RIGHT_READ, "a/1") && may(r, "x", RIGHT_READ, "a/b/c/1"));
	assert_false(may(r, "x", RIGHT_READ, "k") || may(r, "x", RIGHT_READ, "a/b/1"));
	rights_free(r);
}

static void of_rules_with_one_prefix_a_deny_counts(void **state) {
	(void)state;
	static const char *const texts[] = {
		"[x]\nallow = read on a/\n[everybody]\ndeny = read on a/\n",
		"[everybody]\ndeny = read on a/\n[x]\nallow = read on a/\n",
		"[x]\ndeny = read on a/\nallow = all on a/\n",
		"[group:g]\nmembers = x\ndeny = all on a/\n[x]\nallow = read on a/\n" };
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		struct rights *r = rules(texts[i]);
		assert_false(may(r, "x", RIGHT_READ, "a/1"));
		rights_free(r);
	}
	/* A deny that is about all keys stays behind a longer allow. */
	struct rights *r = rules("[everybody]\ndeny = read on *\n[x]\nallow = read on a/\n");
	assert_true(may(r, "x", RIGHT_READ, "a/1"));
	assert_false(may(r, "y", RIGHT_READ, "a/1"));
	rights_free(r);
}

static void rights_are_apart_from_each_other(void **state) {
	(void)state;
	struct rights *r = rules("[x]\nallow = acquire, wait on a/\ndeny = break on a/\n[all]\n"
		"allow = all on a/\n[root]\nallow = all on *\n");
	assert_true(may(r, "x", RIGHT_ACQUIRE, "a/1") && may(r, "x", RIGHT_WAIT, "a/1"));
	assert_false(may(r, "x", RIGHT_READ, "a/1") || may(r, "x", RIGHT_WATCH, "a/1") ||
		may(r, "x", RIGHT_BREAK, "a/1"));
	assert_true(may(r, "all", RIGHT_BREAK, "a/1") && may(r, "all", RIGHT_WATCH, "a/1"));
	/* `all` on some keys gives no rights that are not about keys. */
	assert_false(may(r, "all", RIGHT_CLUSTER, "") || may(r, "all", RIGHT_STATUS, ""));
	assert_true(may(r, "root", RIGHT_CLUSTER, "") && may(r, "root", RIGHT_STATUS, ""));
	rights_free(r);
}

static void a_request_for_a_prefix_needs_a_right_to_all_of_it(void **state) {
	(void)state;
	struct rights *r = rules("[x]\nallow = read, watch on a/\ndeny = read on a/secret/\n"
		"allow = read on a/secret/open/\n");
	assert_true(may_all(r, "x", RIGHT_WATCH, "a/"));
	assert_false(may_all(r, "x", RIGHT_READ, "a/"));
	assert_false(may_all(r, "x", RIGHT_READ, "a"));
	assert_false(may_all(r, "x", RIGHT_READ, "a/se"));
	assert_true(may_all(r, "x", RIGHT_READ, "a/b"));
	assert_true(may_all(r, "x", RIGHT_READ, "a/secret/open/"));
	assert_false(may_all(r, "x", RIGHT_READ, ""));
	const struct rights_verdict v = evaluate(r, "x", RIGHT_READ, "a/", true);
	assert_true(v.part && v.line == 3);
	rights_free(r);
}

static void priorities_have_a_limit(void **state) {
	(void)state;
	struct rights *r = rules("[x]\nallow = acquire on *\nallow = priority 10 on a/\n"
		"allow = priority 3 on a/b/\ndeny = priority on a/c/\nallow = priority "
		"on d/\n[group:g]\nmembers = x\nallow = priority 20 on a/b/\n[z]\n"
		"allow = all on *\n[y]\nallow = all, priority 7 on *\n");
	assert_true(may_with(r, "x", "k", 0) && may_with(r, "x", "k", -5) &&
		may_with(r, "x", "a/c/1", 0));
	assert_false(may_with(r, "x", "k", 1));
	assert_true(may_with(r, "x", "a/1", 10));
	assert_false(may_with(r, "x", "a/1", 11));
	/* Of several rules that are equally long, the greatest number counts. */
	assert_true(may_with(r, "x", "a/b/1", 20));
	assert_false(may_with(r, "x", "a/b/1", 21));
	assert_false(may_with(r, "x", "a/c/1", 1));
	assert_true(may_with(r, "x", "d/1", INT32_MAX) && may_with(r, "z", "k", INT32_MAX) &&
		may_with(r, "y", "k", 7));
	assert_false(may_with(r, "y", "k", 8));
	rights_free(r);
}

static bool local_may(const struct rights *r, const char *who, uint32_t gid, bool more,
	const char *key) {
	const struct rights_caller caller = { .identity = slice_str(who), .gids = &gid,
		.gid_count = 1, .more_gids = more };
	const struct rights_question question = { .right = RIGHT_READ, .key = slice_str(key) };
	return rights_judge(r, &caller, &question).allowed;
}

static void callers_without_a_certificate_have_names(void **state) {
	(void)state;
	struct rights *r = rules("[unix:user:ann]\nallow = read on user/\n[unix:uid:1001]\n"
		"allow = read on uid/\n[unix:group:wheel]\nallow = read on group/\n[unix:gid:5]\n"
		"allow = read on gid/\n[plain]\nallow = read on plain/\n[anonymous]\n"
		"allow = read on anon/\n[unix:user:gone]\nallow = read on gone/\n[group:g]\n"
		"members = unix:user:ann, unix:gid:5\nallow = read on members/\n");
	assert_true(local_may(r, "unix:uid:1000", 1, false, "user/1") &&
		local_may(r, "unix:uid:1000", 1, false, "members/1"));
	assert_true(local_may(r, "unix:uid:1001", 1, false, "uid/1"));
	assert_false(local_may(r, "unix:uid:1001", 1, false, "user/1") ||
		local_may(r, "unix:uid:1001", 1, false, "members/1"));
	assert_true(local_may(r, "unix:uid:7", 27, false, "group/1") &&
		local_may(r, "unix:uid:7", 5, false, "gid/1"));
	assert_true(local_may(r, "unix:uid:7", 5, false, "members/1"));
	assert_false(local_may(r, "unix:uid:7", 28, false, "group/1"));
	/* There is no rule for root, either. */
	assert_false(local_may(r, "unix:uid:0", 0, false, "user/1"));
	assert_true(may(r, "plain", RIGHT_READ, "plain/1") && may(r, "", RIGHT_READ, "anon/1"));
	assert_false(may(r, "", RIGHT_READ, "plain/1") || may(r, "plain", RIGHT_READ, "anon/1") ||
		may(r, "unix:user:gone", RIGHT_READ, "gone/1"));
	rights_free(r);
}

static void of_groups_that_are_not_known_only_denies_count(void **state) {
	(void)state;
	struct rights *r = rules("[everybody]\nallow = read on *\n[unix:gid:5]\n"
		"deny = read on a/\nallow = read on b/\n[unix:gid:6]\nallow = read on a/1/\n");
	assert_true(local_may(r, "unix:uid:7", 1, false, "a/1"));
	assert_false(local_may(r, "unix:uid:7", 1, true, "a/1"));
	assert_false(local_may(r, "unix:uid:7", 1, true, "a/1/2"));
	assert_true(local_may(r, "unix:uid:7", 1, true, "b/1"));
	rights_free(r);
}

static uint64_t limit_of(const struct rights *r, const char *who, uint32_t gid,
	enum share_kind kind) {
	const struct rights_caller caller = { .identity = slice_str(who), .gids = &gid,
		.gid_count = 1 };
	struct share_limits limits = { { [SHARE_WAITS] = 5, [SHARE_LOCKS] = 5,
		[SHARE_VALUES] = 5 } };
	rights_limits(r, &caller, &limits);
	return limits.max[kind];
}

static void limits_of_ones_own_count_before_those_of_groups_and_of_everybody(void **state) {
	(void)state;
	struct rights *r = rules("[everybody]\nlocks = 10\nwaits = 10\n"
		"[one]\nlocks = 3\nvalue_bytes = 2m\nclient_memory = 64m\n[group:g]\n"
		"members = one, two\nlocks = 20\nwaits = 20\n[group:h]\nmembers = two\nlocks "
		"= 0\nwaits = 15\n[unix:gid:7]\nlocks = 8\n[anonymous]\nlocks = 1\n");
	assert_int_equal(limit_of(r, "one", 1, SHARE_LOCKS), 3);
	assert_int_equal(limit_of(r, "one", 1, SHARE_WAITS), 20);
	assert_int_equal(limit_of(r, "one", 1, SHARE_VALUES), 2 << 20);
	assert_int_equal(limit_of(r, "one", 1, SHARE_MEMORY), 64 << 20);
	/* No limit counts as the greatest. */
	assert_int_equal(limit_of(r, "two", 1, SHARE_LOCKS), 0);
	assert_int_equal(limit_of(r, "two", 1, SHARE_WAITS), 20);
	/* Nobody says anything about it. */
	assert_int_equal(limit_of(r, "two", 1, SHARE_VALUES), 5);
	assert_int_equal(limit_of(r, "unix:uid:9", 7, SHARE_LOCKS), 8);
	assert_int_equal(limit_of(r, "unix:uid:9", 8, SHARE_LOCKS), 10);
	assert_int_equal(limit_of(r, "", 8, SHARE_LOCKS), 1);
	rights_free(r);
}

/* Each method needs one right, and this is the list that docs/security.md has. */
static void every_method_needs_one_right(void **state) {
	(void)state;
	static const struct {
		enum right right;
		const char *methods[12];
	} rows[] = {
		{ RIGHT_READ, { "get", "list", "waiters", "explain", "top" } },
		{ RIGHT_ACQUIRE, { "acquire", "extend", "update", "release", "downgrade",
			"transfer", "ask_release" } },
		{ RIGHT_WAIT, { "wait" } },
		{ RIGHT_WATCH, { "watch" } },
		{ RIGHT_BREAK, { "break" } },
		{ RIGHT_STATUS, { "status", "clients" } },
		{ RIGHT_CLUSTER, { "drain", "kick", "cluster_add_replica", "cluster_promote",
			"cluster_demote", "cluster_remove", "cluster_replace", "cluster_set_nodes",
			"cluster_set_timing", "cluster_force" } },
		{ RIGHT_NONE, { "ping", "unwatch", "can" } },
	};
	size_t seen = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		for (const char *const *method = rows[i].methods; *method; method++, seen++) {
			enum right right;
			bool prefix;
			assert_true(rights_of_method(slice_str(*method), &right, &prefix));
			assert_int_equal(right, rows[i].right);
			assert_int_equal(prefix, strcmp(*method, "list") == 0
				|| strcmp(*method, "top") == 0);
		}
	}
	assert_int_equal(seen, CLIENT_METHODS);
	enum right right;
	bool prefix;
	assert_false(rights_of_method(slice_str("no_such_method"), &right, &prefix));
}

static void a_verdict_names_the_rule(void **state) {
	(void)state;
	struct rights *r = rules("[x]\n  allow = read on a/ \n[group:g]\n"
		"members = x\nallow = priority 5 on *\ndeny = watch on a/b/\nallow = watch on *\n");
	const struct {
		struct rights_question question;
		const char *says;
	} rows[] = {
		{ { .right = RIGHT_READ, .key = slice_str("a/1") },
			"f:2, in [x]: allow = read on a/" },
		{ { .right = RIGHT_READ, .key = slice_str("b") },
			"no rule of f gives x the right read to this key" },
		{ { .right = RIGHT_CLUSTER }, "no rule of f gives x the right cluster" },
		{ { .right = RIGHT_PRIORITY, .key = slice_str("k"), .priority = 6 },
			"f:5, in [group:g]: "
			"allow = priority 5 on *: it allows priorities up to 5, and 6 is greater" },
		{ { .right = RIGHT_WATCH, .key = slice_str("a/"), .prefix = true },
			"f:6, in [group:g]: deny = watch on a/b/: this denies some of these keys; "
			"ask for a narrower prefix" },
		{ { .right = RIGHT_NONE },
			"this requires no right: every client that is connected may do it" },
	};
	const struct rights_caller x = { .identity = slice_str("x") };
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		char why[RIGHTS_WHY_BYTES];
		const struct rights_verdict v = rights_judge(r, &x, &rows[i].question);
		rights_explain(r, &x, &rows[i].question, &v, why);
		assert_string_equal(why, rows[i].says);
	}
	rights_free(r);
}

/* ---- many rules ---- */

#define MANY 600u

static uint32_t next(uint32_t *seed) {
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 16;
}

/* Writes a prefix of up to five letters, of which there are two. */
static size_t some_prefix(uint32_t *seed, char *out) {
	size_t size = next(seed) % 6;
	for (size_t i = 0; i < size; i++) {
		out[i] = next(seed) % 2 ? 'a' : 'b';
	}
	out[size] = '\0';
	return size;
}

struct some_rule {
	char prefix[8];
	size_t size;
	bool deny;
};

/* As rights.h says it, rule by rule. Returns the line of the rule that decides; 0: none. */
static unsigned judge_plainly(const struct some_rule *rules, const char *key, bool *allowed) {
	unsigned line = 0;
	for (unsigned i = 0; i < MANY; i++) {
		const struct some_rule *r = &rules[i], *best = line ? &rules[line - 2] : NULL;
		if (strncmp(key, r->prefix, r->size) == 0 && (!best || r->size > best->size ||
			(r->size == best->size && r->deny && !best->deny))) {
			line = i + 2;
		}
	}
	*allowed = line && !rules[line - 2].deny;
	return line;
}

static void of_many_rules_the_right_ones_are_found(void **state) {
	(void)state;
	static char text[MANY * 40];
	static struct some_rule all[MANY];
	uint32_t seed = 1;
	size_t used = (size_t)snprintf(text, sizeof text, "[x]\n");
	for (unsigned i = 0; i < MANY; i++) {
		char prefix[8];
		all[i].size = some_prefix(&seed, prefix);
		all[i].deny = next(&seed) % 3 == 0;
		memcpy(all[i].prefix, prefix, sizeof prefix);
		used += (size_t)snprintf(text + used, sizeof text - used, "%s = read on %s\n",
			all[i].deny ? "deny" : "allow", all[i].size ? prefix : "*");
	}
	struct rights *r = rules(text);
	for (unsigned i = 0; i < 2000; i++) {
		char key[8];
		bool allowed;
		some_prefix(&seed, key);
		const unsigned line = judge_plainly(all, key, &allowed);
		const struct rights_verdict v = evaluate(r, "x", RIGHT_READ, key, false);
		assert_int_equal(v.allowed, allowed);
		assert_int_equal(v.line, line);
	}
	rights_free(r);
}

/* A client may ask for thousands of keys in one request. */
static void many_rules_take_little_time(void **state) {
	(void)state;
	static char text[4000 * 40];
	size_t used = (size_t)snprintf(text, sizeof text, "[x]\n");
	for (unsigned i = 0; i < 4000; i++) {
		used += (size_t)snprintf(text + used, sizeof text - used,
			"allow = read on app/%u/\n", i);
	}
	struct rights *r = rules(text);
	const clock_t begun = clock();
	for (unsigned i = 0; i < 100000; i++) {
		assert_true(may(r, "x", RIGHT_READ, "app/2000/key"));
	}
	/* Rule by rule it would be 800 ms and more. */
	assert_true(clock() - begun < CLOCKS_PER_SEC / 4);
	rights_free(r);
}

UNIT(rights) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_rule_gives_nobody_has),
		cmocka_unit_test(the_longest_prefix_counts),
		cmocka_unit_test(of_many_rules_the_right_ones_are_found),
		cmocka_unit_test(many_rules_take_little_time),
		cmocka_unit_test(of_rules_with_one_prefix_a_deny_counts),
		cmocka_unit_test(rights_are_apart_from_each_other),
		cmocka_unit_test(a_request_for_a_prefix_needs_a_right_to_all_of_it),
		cmocka_unit_test(priorities_have_a_limit),
		cmocka_unit_test(callers_without_a_certificate_have_names),
		cmocka_unit_test(of_groups_that_are_not_known_only_denies_count),
		cmocka_unit_test(limits_of_ones_own_count_before_those_of_groups_and_of_everybody),
		cmocka_unit_test(every_method_needs_one_right),
		cmocka_unit_test(a_verdict_names_the_rule),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
