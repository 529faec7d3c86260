/* A client of a node in the same process. */
#include "embed_rig.h"

#include "pawl/election.h"
#include "pawl/error.h"

#define KEY ((struct pawl_bytes){ "the key", 7 })

struct taken {
	struct pawl_lock *lock;
	struct pawl_result *result;
	unsigned calls, renewed, lost;
};

static void on_taken(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct taken *t = arg;
	t->lock = take_lock;
	t->result = take_result;
	t->calls++;
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	(void)lock;
	((struct taken *)arg)->renewed++;
}

static bool is_taken(void *arg) {
	return ((struct taken *)arg)->calls > 0;
}

static bool is_renewed_twice(void *arg) {
	return ((struct taken *)arg)->renewed >= 2;
}

static void take(struct embed_rig *r, struct pawl *client, struct taken *t, uint32_t lease_ms) {
	const struct pawl_lock_options options = { .key = KEY, .lease_ms = lease_ms,
		.on_renewed = on_renewed, .arg = t };
	assert_int_equal(pawl_lock_start(client, &options, on_taken, t, NULL), 0);
	assert_true(net_fixture_until(&r->f, is_taken, t));
	assert_int_equal(t->result->error, 0);
	assert_non_null(t->lock);
}

static void its_locks_renew_themselves_and_are_in_the_nodes_name(void **state) {
	struct embed_rig r;
	struct pawl *client;
	struct pawl_entry entry;
	struct taken t = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	assert_int_equal(pawl_node_client(r.nodes[0].node, NULL, &client), 0);
	take(&r, client, &t, 2000);
	assert_true(net_fixture_until(&r.f, is_renewed_twice, &t));
	assert_true(pawl_lock_valid_ms(t.lock) > 0);
	assert_true(pawl_node_get(r.nodes[0].node, KEY, &entry));
	assert_int_equal(entry.token, pawl_lock_token(t.lock));
	assert_int_equal(entry.owner.size, 1);
	assert_memory_equal(entry.owner.data, "a", 1);
	pawl_result_free(t.result);
	pawl_free(client);
	embed_rig_close(&r);
}

static void a_client_that_is_freed_before_its_node_leaves_nothing_behind(void **state) {
	struct embed_rig r;
	struct pawl *client;
	struct taken t = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	assert_int_equal(pawl_node_client(r.nodes[0].node, NULL, &client), 0);
	take(&r, client, &t, 10000);
	pawl_result_free(t.result);
	pawl_free(client);
	net_fixture_settle(&r.f);
	struct embed_rig_answer still = embed_rig_ask(&r, 0,
		&(struct pawl_request){ .method = PAWL_GET, .key = KEY });
	/* A lock is not released by freeing its client. */
	assert_true(still.held);
	embed_rig_close(&r);
}

struct reads {
	unsigned given, busy, other;
};

static void on_read(struct pawl_result *take_result, void *arg) {
	struct reads *r = arg;
	r->given += !take_result->error && take_result->entry.value.size == 60000;
	r->busy += take_result->error == PAWL_EBUSY;
	r->other += take_result->error && take_result->error != PAWL_EBUSY;
	pawl_result_free(take_result);
}

static bool are_read(void *arg) {
	const struct reads *r = arg;
	return r->given + r->busy + r->other == 600;
}

/* A reader asks in one go for more than a connection may hold back, and reads every answer. */
static void many_large_values_at_once_are_given_or_refused_and_the_connection_stays(void **state) {
	static char value[60000];
	struct embed_rig r;
	struct pawl *client;
	struct taken t = { .calls = 0 };
	struct reads reads = { 0, 0, 0 };
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	assert_int_equal(pawl_node_client(r.nodes[0].node, NULL, &client), 0);
	const struct pawl_lock_options options = { .key = KEY, .lease_ms = 10000,
		.value = { value, sizeof value }, .terms.release_on_disconnect = true };
	assert_int_equal(pawl_lock_start(client, &options, on_taken, &t, NULL), 0);
	assert_true(net_fixture_until(&r.f, is_taken, &t));
	assert_int_equal(t.result->error, 0);
	for (unsigned i = 0; i < 600; i++) {
		assert_int_equal(pawl_start(client, &(struct pawl_request){ .method = PAWL_GET,
			.key = KEY }, on_read, &reads, NULL), 0);
	}
	assert_true(net_fixture_until(&r.f, are_read, &reads));
	/* Those that wait for their turn are given later, and not refused. */
	assert_true(reads.given >= 200);
	assert_int_equal(reads.other, 0);
	assert_int_equal(pawl_lock_error(t.lock), 0);
	pawl_result_free(t.result);
	pawl_free(client);
	embed_rig_close(&r);
}

struct candidate {
	struct pawl *client;
	struct pawl_election *election;
	unsigned led;
	/* The number of leaders that it has heard of. */
	size_t leaders;
	/* The token of the present leader. */
	uint64_t token;
};

static void on_leading(struct pawl_election *election, uint64_t token, void *arg) {
	(void)election;
	(void)token;
	((struct candidate *)arg)->led++;
}

static void on_leader(struct pawl_election *election, const struct pawl_leader *leader, void *arg) {
	struct candidate *c = arg;
	(void)election;
	c->leaders += leader != NULL;
	c->token = leader ? leader->token : 0;
}

static bool leads(void *arg) {
	return ((struct candidate *)arg)->led > 0;
}

static bool has_heard(void *arg) {
	return ((struct candidate *)arg)->leaders > 0;
}

static void campaign(struct embed_rig *r, size_t node, struct candidate *c) {
	const struct pawl_election_options options = { .name = KEY, .release_on_disconnect = true,
		.on_leading = on_leading, .on_leader = on_leader, .arg = c };
	*c = (struct candidate){ .led = 0 };
	assert_int_equal(pawl_node_client(r->nodes[node].node, NULL, &c->client), 0);
	assert_int_equal(pawl_election_new(c->client, &options, &c->election), 0);
	assert_int_equal(pawl_election_campaign(c->election), 0);
}

static void a_leader_that_is_gone_is_followed_at_once_by_a_candidate_at_another_node(void **state) {
	struct embed_rig r;
	struct candidate first, second;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	campaign(&r, 0, &first);
	assert_true(net_fixture_until(&r.f, leads, &first));
	campaign(&r, 1, &second);
	assert_true(net_fixture_until(&r.f, has_heard, &second));
	assert_int_equal(second.token, pawl_election_token(first.election));
	assert_int_equal(second.led, 0);
	/* The lease would be 30 seconds, for which this test does not wait. */
	pawl_free(first.client);
	assert_true(net_fixture_until(&r.f, leads, &second));
	assert_true(pawl_election_valid_ms(second.election) > 0);
	pawl_free(second.client);
	embed_rig_close(&r);
}

static void options_that_lead_elsewhere_are_refused(void **state) {
	struct embed_rig r;
	struct pawl *client;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	assert_int_equal(pawl_node_client(r.nodes[0].node,
		&(struct pawl_options){ .endpoints = "127.0.0.1:1" }, &client), PAWL_EINVAL);
	assert_int_equal(pawl_node_client(r.nodes[0].node,
		&(struct pawl_options){ .base = r.f.base }, &client), PAWL_EINVAL);
	assert_int_equal(pawl_node_client(r.nodes[0].node,
		&(struct pawl_options){ .ca_file = "/ca" }, &client), PAWL_EINVAL);
	embed_rig_close(&r);
}

UNIT(node_client) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(its_locks_renew_themselves_and_are_in_the_nodes_name),
		cmocka_unit_test(a_client_that_is_freed_before_its_node_leaves_nothing_behind),
		cmocka_unit_test(
			many_large_values_at_once_are_given_or_refused_and_the_connection_stays),
		cmocka_unit_test(
			a_leader_that_is_gone_is_followed_at_once_by_a_candidate_at_another_node),
		cmocka_unit_test(options_that_lead_elsewhere_are_refused),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
