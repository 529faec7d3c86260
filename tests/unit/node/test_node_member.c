/* A node inside a program is added to a cluster, follows, is promoted, and leaves, like any other
 * node. */
#include "embed_change.h"

#include <string.h>

static void a_replica_shows_what_is_taken_elsewhere_and_coordinates_itself(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	add_d(&r);
	struct embed_rig_answer lock = embed_rig_ask(&r, B,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(lock.error, 0);
	assert_true(net_fixture_until(&r.f, d_shows_it, &r));
	assert_true(net_fixture_until(&r.f, d_knows_its_age, &r));
	assert_int_equal(embed_rig_ask(&r, D,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }).error, PAWL_EHELD);
	assert_true(embed_rig_ask(&r, D, &(struct pawl_request){ .method = PAWL_RELEASE, .key = key,
		.lock_id = lock.lock_id }).released);
	assert_int_equal(embed_rig_ask(&r, D, &(struct pawl_request){ .method = PAWL_ACQUIRE,
		.key = key, .wait_ms = 5000 }).error, 0);
	embed_rig_close(&r);
}

static void a_promoted_replica_votes_and_nothing_is_lost(void **state) {
	struct embed_rig r;
	struct pawl_node_status status;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	add_d(&r);
	struct embed_rig_answer lock = embed_rig_ask(&r, D,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(lock.error, 0);
	assert_int_equal(change(&r, A,
		(struct pawl_change){ .kind = PAWL_PROMOTE, .name = "d" }).error, 0);
	embed_rig_await_state(&r, D, PAWL_NODE_VOTING);
	pawl_node_status(r.nodes[D].node, &status);
	assert_true(status.master);
	assert_int_equal(status.epoch, 3);
	assert_int_equal(embed_rig_ask(&r, B,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }).error, PAWL_EHELD);
	assert_int_equal(embed_rig_ask(&r, D, &(struct pawl_request){ .method = PAWL_EXTEND,
		.key = key, .lock_id = lock.lock_id, .deadline_kept = true }).error, 0);
	embed_rig_close(&r);
}

static void a_replica_comes_back_by_itself_and_a_removed_one_does_not(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	/* The others know its address from now on. */
	r.nodes[D].fixed = true;
	add_d(&r);
	pawl_node_free(r.nodes[D].node);
	embed_rig_start(&r, D);
	embed_rig_await_state(&r, D, PAWL_NODE_FOLLOWING);
	assert_true(net_fixture_until(&r.f, d_knows_its_age, &r));
	assert_int_equal(change(&r, B,
		(struct pawl_change){ .kind = PAWL_REMOVE, .name = "d" }).error, 0);
	embed_rig_await_state(&r, D, PAWL_NODE_OUTSIDE);
	embed_rig_close(&r);
}

static bool a_shows_nothing(void *ctx) {
	struct pawl_entry entry;
	return !pawl_node_get(((struct embed_rig *)ctx)->nodes[A].node, key, &entry);
}

/* The lock ends long before its lease of half a minute is over, for which the test would not
 * wait. */
static void a_lock_that_shall_end_with_its_node_does(void **state) {
	struct embed_rig r;
	struct embed_rig_answer ended = { .calls = 0 };
	struct pawl_node_call *binding;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	add_d(&r);
	struct embed_rig_answer lock = embed_rig_ask(&r, D,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(lock.error, 0);
	assert_int_equal(pawl_node_release_on_disconnect(r.nodes[D].node, key, &lock.lock_id, 100,
		embed_rig_done, &ended, &binding), 0);
	assert_int_equal(embed_rig_ask(&r, D, &(struct pawl_request){ .method = PAWL_EXTEND,
		.key = key, .lock_id = lock.lock_id, .deadline_kept = true }).error, 0);
	assert_true(pawl_node_bond_left_ms(binding) == INT64_MAX);
	assert_int_equal(ended.calls, 0);
	pawl_node_free(r.nodes[D].node);
	r.nodes[D].node = NULL;
	assert_int_equal(ended.error, PAWL_ECANCELED);
	assert_true(net_fixture_until(&r.f, a_shows_nothing, &r));
	assert_int_equal(embed_rig_ask(&r, B, &(struct pawl_request){ .method = PAWL_ACQUIRE,
		.key = key, .wait_ms = 5000 }).error, 0);
	embed_rig_close(&r);
}

static void a_release_ends_what_would_have_ended_the_lock(void **state) {
	struct embed_rig r;
	struct embed_rig_answer ended = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct embed_rig_answer lock = embed_rig_ask(&r, A,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(pawl_node_release_on_disconnect(r.nodes[A].node, key, &lock.lock_id, 100,
		embed_rig_done, &ended, NULL), 0);
	assert_true(embed_rig_ask(&r, A, &(struct pawl_request){ .method = PAWL_RELEASE, .key = key,
		.lock_id = lock.lock_id }).released);
	assert_true(net_fixture_until(&r.f, embed_rig_answered, &ended));
	assert_int_equal(ended.error, 0);
	embed_rig_close(&r);
}

static void nodes_of_one_process_speak_tls(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	r.tls = true;
	embed_rig_start_all(&r);
	add_d(&r);
	assert_int_equal(embed_rig_ask(&r, D,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }).error, 0);
	assert_true(net_fixture_until(&r.f, d_shows_it, &r));
	embed_rig_close(&r);
}

/* A bound lock outlives the death of a master, and its replacement by the holder itself. It ends
 * with the holder nevertheless. */
static void a_bound_lock_goes_on_over_a_change_of_the_masters(void **state) {
	struct embed_rig r;
	struct embed_rig_answer ended = { .calls = 0 };
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	add_d(&r);
	struct embed_rig_answer lock = embed_rig_ask(&r, D,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(pawl_node_release_on_disconnect(r.nodes[D].node, key, &lock.lock_id, 2000,
		embed_rig_done, &ended, NULL), 0);
	pawl_node_free(r.nodes[C].node);
	r.nodes[C].node = NULL;
	struct pawl_change replace = { .kind = PAWL_REPLACE, .name = "c", .other = "d" };
	assert_int_equal(change(&r, B, replace).error, 0);
	embed_rig_await_state(&r, D, PAWL_NODE_VOTING);
	assert_int_equal(embed_rig_ask(&r, D, &(struct pawl_request){ .method = PAWL_EXTEND,
		.key = key, .lock_id = lock.lock_id, .deadline_kept = true }).error, 0);
	assert_int_equal(embed_rig_ask(&r, A,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key }).error, PAWL_EHELD);
	assert_int_equal(ended.calls, 0);
	pawl_node_free(r.nodes[D].node);
	r.nodes[D].node = NULL;
	assert_true(net_fixture_until(&r.f, a_shows_nothing, &r));
	assert_int_equal(embed_rig_ask(&r, A, &(struct pawl_request){ .method = PAWL_ACQUIRE,
		.key = key, .wait_ms = 5000 }).error, 0);
	embed_rig_close(&r);
}

static void a_change_that_cannot_be_is_refused_with_its_reason(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 1);
	embed_rig_start_all(&r);
	struct embed_rig_answer a = change(&r, A,
		(struct pawl_change){ .kind = PAWL_PROMOTE, .name = "nobody" });
	assert_int_equal(a.error, PAWL_ENOTFOUND);
	assert_non_null(strstr(a.message, "nobody"));
	assert_int_equal(pawl_node_ask(r.nodes[A].node,
		&(struct pawl_request){ .method = PAWL_CHANGE }, NULL, NULL, NULL), PAWL_EINVAL);
	embed_rig_close(&r);
}

static void a_lease_that_is_left_open_is_what_the_cluster_allows(void **state) {
	struct embed_rig r;
	(void)state;
	embed_rig_open(&r, 3);
	embed_rig_start_all(&r);
	const struct pawl_change shorter = { .kind = PAWL_SET_TIMING, .max_lease_ms = 5000 };
	assert_int_equal(change(&r, A, shorter).error, 0);
	struct embed_rig_answer lock = embed_rig_ask(&r, A,
		&(struct pawl_request){ .method = PAWL_ACQUIRE, .key = key });
	assert_int_equal(lock.error, 0);
	assert_in_range(pawl_node_left_ms(lock.deadline), 3000, 5000);
	assert_int_equal(embed_rig_ask(&r, A, &(struct pawl_request){ .method = PAWL_ACQUIRE,
		.key = key, .lease_ms = 30000 }).error, PAWL_ETOOLONG);
	embed_rig_close(&r);
}

UNIT(node_member) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replica_shows_what_is_taken_elsewhere_and_coordinates_itself),
		cmocka_unit_test(a_promoted_replica_votes_and_nothing_is_lost),
		cmocka_unit_test(a_replica_comes_back_by_itself_and_a_removed_one_does_not),
		cmocka_unit_test(a_lock_that_shall_end_with_its_node_does),
		cmocka_unit_test(a_release_ends_what_would_have_ended_the_lock),
		cmocka_unit_test(nodes_of_one_process_speak_tls),
		cmocka_unit_test(a_lease_that_is_left_open_is_what_the_cluster_allows),
		cmocka_unit_test(a_bound_lock_goes_on_over_a_change_of_the_masters),
		cmocka_unit_test(a_change_that_cannot_be_is_refused_with_its_reason),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
