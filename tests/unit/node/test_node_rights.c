/* Nodes judge each request of a client by their rules, as a whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embed_rig.h"

#include "pawl/error.h"
#include "pawl/pawl.h"

struct asked {
	struct pawl_result *result;
};

static void on_done(struct pawl_result *take_result, void *arg) {
	((struct asked *)arg)->result = take_result;
}

static bool is_done(void *arg) {
	return ((struct asked *)arg)->result != NULL;
}

static struct pawl_result *ask(struct embed_rig *r, struct pawl *client,
	const struct pawl_request *request) {
	struct asked a = { NULL };
	assert_int_equal(pawl_start(client, request, on_done, &a, NULL), 0);
	assert_true(net_fixture_until(&r->f, is_done, &a));
	return a.result;
}

static int outcome(struct embed_rig *r, struct pawl *client, const struct pawl_request *request) {
	struct pawl_result *result = ask(r, client, request);
	int error = result->error;
	pawl_result_free(result);
	return error;
}

/* Starts nodes with these rules for the account that runs this test, and returns a client. */
static struct pawl *open_ruled(struct embed_rig *r, size_t masters, const char *rules) {
	char endpoint[160], text[1024];
	embed_rig_open(r, masters);
	r->ruled = true;
	snprintf(text, sizeof text, "[unix:uid:%u]\n%s", getuid(), rules);
	for (size_t i = 0; i < masters; i++) {
		embed_rig_rules(r, i, text);
	}
	embed_rig_start_all(r);
	embed_rig_endpoint(r, 0, endpoint);
	const struct pawl_options options = { .endpoints = endpoint, .base = r->f.base };
	struct pawl *client;
	const char *message = NULL;
	assert_int_equal(pawl_new(&options, &client, &message), 0);
	return client;
}

static void close_ruled(struct embed_rig *r, struct pawl *client) {
	pawl_free(client);
	embed_rig_close(r);
}

static int try_acquire(struct embed_rig *r, struct pawl *client, const char *key,
	int32_t priority) {
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str(key),
		.terms.priority = priority };
	return outcome(r, client, &request);
}

static void each_of_several_keys_is_judged(void **state) {
	(void)state;
	struct embed_rig r;
	struct pawl *client = open_ruled(&r, 1,
		"allow = acquire on a/\nallow = priority 5 on a/1\n");
	const struct pawl_key_item good[] = { { .key = pawl_str("a/1") },
		{ .key = pawl_str("a/2") } };
	const struct pawl_key_item bad[] = { { .key = pawl_str("a/3") },
		{ .key = pawl_str("b/1") } };
	struct pawl_request request = { .method = PAWL_ACQUIRE, .keys = bad, .key_count = 2 };
	assert_int_equal(outcome(&r, client, &request), PAWL_EDENIED);
	request.keys = good;
	request.terms.priority = 5;
	assert_int_equal(outcome(&r, client, &request), PAWL_EDENIED);
	request.terms.priority = 0;
	assert_int_equal(outcome(&r, client, &request), 0);
	const struct pawl_extend_item locks[] = { { .key = pawl_str("a/1"), .lock_id = { { 1 } } },
		{ .key = pawl_str("b/1"), .lock_id = { { 2 } } } };
	const struct pawl_request extend = { .method = PAWL_EXTEND, .locks = locks,
		.lock_count = 2 };
	assert_int_equal(outcome(&r, client, &extend), PAWL_EDENIED);
	close_ruled(&r, client);
}

/* The log takes its time for the line that the request causes, and so does the turn. */
static void a_long_turn_is_logged_with_who_asked_for_it(void **state) {
	(void)state;
	struct embed_rig r;
	char identity[64];
	struct pawl *client = open_ruled(&r, 1, "allow = acquire on a/\n");
	r.nodes[0].wanted = "long_turn";
	assert_int_equal(try_acquire(&r, client, "a/1", 0), 0);
	assert_string_equal(r.nodes[0].found, "");
	r.nodes[0].slow = "denied";
	assert_int_equal(try_acquire(&r, client, "b/1", 0), PAWL_EDENIED);
	snprintf(identity, sizeof identity, " identity=unix:uid:%u ", getuid());
	assert_non_null(strstr(r.nodes[0].found, identity));
	assert_non_null(strstr(r.nodes[0].found, " method=acquire "));
	close_ruled(&r, client);
}

static void a_priority_is_judged(void **state) {
	(void)state;
	struct embed_rig r;
	struct pawl *client = open_ruled(&r, 1,
		"allow = acquire, priority 5 on a/\nallow = acquire on b/\n");
	assert_int_equal(try_acquire(&r, client, "a/1", 5), 0);
	assert_int_equal(try_acquire(&r, client, "a/2", 6), PAWL_EDENIED);
	assert_int_equal(try_acquire(&r, client, "b/1", 1), PAWL_EDENIED);
	assert_int_equal(try_acquire(&r, client, "b/1", -1), 0);
	struct pawl_request request = { .method = PAWL_ASK_RELEASE, .key = pawl_str("a/1"),
		.terms.priority = 6 };
	assert_int_equal(outcome(&r, client, &request), PAWL_EDENIED);
	request.terms.priority = 5;
	assert_int_equal(outcome(&r, client, &request), 0);
	close_ruled(&r, client);
}

static void all_keys_with_a_prefix_are_judged(void **state) {
	(void)state;
	struct embed_rig r;
	struct pawl *client = open_ruled(&r, 1, "allow = read on *\ndeny = read on a/secret/\n");
	struct pawl_request request = { .method = PAWL_LIST, .key = pawl_str("a/") };
	assert_int_equal(outcome(&r, client, &request), PAWL_EDENIED);
	request.key = pawl_str("a/open/");
	assert_int_equal(outcome(&r, client, &request), 0);
	request = (struct pawl_request){ .method = PAWL_WAITERS, .prefix = true,
		.key = pawl_str("") };
	assert_int_equal(outcome(&r, client, &request), PAWL_EDENIED);
	request.key = pawl_str("b/");
	assert_int_equal(outcome(&r, client, &request), 0);
	close_ruled(&r, client);
}

/* Says whether the client is shown the lock_id of what the program itself holds. */
static bool sees_lock_id(struct embed_rig *r, struct pawl *client) {
	const struct pawl_request get = { .method = PAWL_GET, .key = pawl_str("k") };
	struct pawl_result *result = ask(r, client, &get);
	assert_int_equal(result->error, 0);
	bool sees = pawl_value_get(result->tree, "lock_id") != NULL;
	pawl_result_free(result);
	return sees;
}

static void reload(struct embed_rig *r, const char *rules) {
	char text[1024], why[PAWL_NODE_WHY] = "";
	snprintf(text, sizeof text, "[unix:uid:%u]\n%s", getuid(), rules);
	embed_rig_rules(r, 0, text);
	assert_int_equal(pawl_node_reload(r->nodes[0].node, why), 0);
}

static void lock_ids_are_for_those_who_may_break_every_key(void **state) {
	(void)state;
	struct embed_rig r;
	struct pawl *client = open_ruled(&r, 1, "allow = read, break on *\n");
	const struct pawl_request acquire = { .method = PAWL_ACQUIRE, .key = pawl_str("k") };
	assert_int_equal(embed_rig_ask(&r, 0, &acquire).error, 0);
	assert_true(sees_lock_id(&r, client));
	reload(&r, "allow = read, break on *\ndeny = break on x/\n");
	assert_false(sees_lock_id(&r, client));
	reload(&r, "allow = read on *\n");
	assert_false(sees_lock_id(&r, client));
	close_ruled(&r, client);
}

static void a_reload_counts_for_the_next_request_and_a_wrong_file_not_at_all(void **state) {
	(void)state;
	struct embed_rig r;
	char why[PAWL_NODE_WHY] = "";
	struct pawl *client = open_ruled(&r, 1, "allow = acquire on a/\n");
	assert_int_equal(try_acquire(&r, client, "a/1", 0), 0);
	embed_rig_rules(&r, 0, "[x]\nallow = nothing\n");
	assert_int_equal(pawl_node_reload(r.nodes[0].node, why), PAWL_EINVAL);
	assert_non_null(strstr(why, ":2: 'nothing' is not a right"));
	assert_int_equal(try_acquire(&r, client, "a/2", 0), 0);
	reload(&r, "allow = acquire on b/\n");
	assert_int_equal(try_acquire(&r, client, "a/3", 0), PAWL_EDENIED);
	assert_int_equal(try_acquire(&r, client, "b/1", 0), 0);
	close_ruled(&r, client);
}

/* Starts the request of another client, which comes by the same socket. */
static struct pawl *wait_for(struct embed_rig *r, const char *key, struct asked *asked) {
	char endpoint[160];
	struct pawl *client;
	const char *message = NULL;
	embed_rig_endpoint(r, 0, endpoint);
	const struct pawl_options options = { .endpoints = endpoint, .base = r->f.base };
	const struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str(key),
		.terms.priority = 5, .wait_ms = 60000 };
	assert_int_equal(pawl_new(&options, &client, &message), 0);
	asked->result = NULL;
	assert_int_equal(pawl_start(client, &request, on_done, asked, NULL), 0);
	return client;
}

static bool wait_both(struct embed_rig *r, struct pawl *client) {
	const struct pawl_request waiters = { .method = PAWL_WAITERS, .prefix = true,
		.key = pawl_str("") };
	struct pawl_result *result = ask(r, client, &waiters);
	bool both = result->error == 0 && result->waiter_count == 2;
	pawl_result_free(result);
	return both;
}

static void a_waiter_that_lost_its_right_is_told_so(void **state) {
	(void)state;
	struct embed_rig r;
	struct asked a, b;
	static const char *const rules[] = { "allow = read on *\nallow = acquire, "
		"priority 5 on b\n", "allow = read, "
		"acquire on *\nallow = acquire, priority 5 on b\nallow = priority 4 on a\n" };
	for (size_t i = 0; i < 2; i++) {
		struct pawl *client = open_ruled(&r, 1, "allow = all on *\n");
		const struct pawl_key_item keys[] = { { .key = pawl_str("a"),
			.lock_id = { { 1 } } }, { .key = pawl_str("b"), .lock_id = { { 2 } } } };
		assert_int_equal(outcome(&r, client, &(struct pawl_request){ .method = PAWL_ACQUIRE,
			.keys = keys, .key_count = 2 }), 0);
		struct pawl *for_a = wait_for(&r, "a", &a), *for_b = wait_for(&r, "b", &b);
		while (!wait_both(&r, client)) {
		}
		reload(&r, rules[i]);
		assert_true(net_fixture_until(&r.f, is_done, &a));
		assert_int_equal(a.result->error, PAWL_EDENIED);
		assert_null(b.result);
		assert_int_equal(outcome(&r, client, &(struct pawl_request){ .method = PAWL_RELEASE,
			.key = pawl_str("b"), .lock_id = { { 2 } } }), 0);
		assert_true(net_fixture_until(&r.f, is_done, &b));
		assert_int_equal(b.result->error, 0);
		pawl_result_free(a.result);
		pawl_result_free(b.result);
		pawl_free(for_a);
		pawl_free(for_b);
		close_ruled(&r, client);
	}
}

static void about_others_only_those_may_ask_who_may_change_the_cluster(void **state) {
	(void)state;
	struct embed_rig r;
	struct pawl *client = open_ruled(&r, 1, "allow = read on *\n[x]\nallow = acquire on *\n");
	struct pawl_request request = { .method = PAWL_CAN, .to = pawl_str("acquire"),
		.key = pawl_str("k"), .owner = pawl_str("x") };
	assert_int_equal(outcome(&r, client, &request), PAWL_EDENIED);
	request.owner = (struct pawl_bytes){ NULL, 0 };
	assert_int_equal(outcome(&r, client, &request), 0);
	reload(&r, "allow = cluster\n[x]\nallow = acquire on *\n");
	request.owner = pawl_str("x");
	struct pawl_result *result = ask(&r, client, &request);
	assert_true(result->error == 0 && pawl_value_get(result->tree, "allowed")->boolean);
	assert_int_equal(pawl_value_get(result->tree, "line")->integer, 4);
	pawl_result_free(result);
	close_ruled(&r, client);
}

/* Says whether the first node knows the rules of all three, and how many other digests than its own
 * it sees. */
static bool rights_known(struct embed_rig *r, struct pawl *client, size_t *out_others) {
	const struct pawl_request status = { .method = PAWL_STATUS };
	struct pawl_result *result = ask(r, client, &status);
	assert_int_equal(result->error, 0);
	const struct pawl_value *peers = pawl_value_get(result->tree, "peers"),
		*own = pawl_value_get(result->tree, "rights");
	size_t known = 0;
	*out_others = 0;
	for (size_t i = 0; i < peers->count; i++) {
		const struct pawl_value *rights = pawl_value_get(&peers->items[i], "rights");
		known += rights != NULL;
		*out_others += rights && (rights->bytes.size != own->bytes.size ||
			memcmp(rights->bytes.data, own->bytes.data, own->bytes.size) != 0);
	}
	pawl_result_free(result);
	return known == 3;
}

static void await_others(struct embed_rig *r, struct pawl *client, size_t others) {
	size_t seen = 0;
	for (int i = 0; i < 100000 && (!rights_known(r, client, &seen) || seen != others); i++) {
	}
	assert_int_equal(seen, others);
}

static void nodes_tell_each_other_which_rules_they_have(void **state) {
	(void)state;
	struct embed_rig r;
	char why[PAWL_NODE_WHY] = "";
	struct pawl *client = open_ruled(&r, 3, "allow = status\n");
	await_others(&r, client, 0);
	embed_rig_rules(&r, 1, "# nothing\n");
	assert_int_equal(pawl_node_reload(r.nodes[1].node, why), 0);
	await_others(&r, client, 1);
	reload(&r, "allow = status\n# other\n");
	await_others(&r, client, 2);
	reload(&r, "allow = status\n");
	await_others(&r, client, 1);
	close_ruled(&r, client);
}

UNIT(node_rights) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_several_keys_is_judged),
		cmocka_unit_test(a_long_turn_is_logged_with_who_asked_for_it),
		cmocka_unit_test(a_priority_is_judged),
		cmocka_unit_test(all_keys_with_a_prefix_are_judged),
		cmocka_unit_test(lock_ids_are_for_those_who_may_break_every_key),
		cmocka_unit_test(a_reload_counts_for_the_next_request_and_a_wrong_file_not_at_all),
		cmocka_unit_test(a_waiter_that_lost_its_right_is_told_so),
		cmocka_unit_test(about_others_only_those_may_ask_who_may_change_the_cluster),
		cmocka_unit_test(nodes_tell_each_other_which_rules_they_have),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
