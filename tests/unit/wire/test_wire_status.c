/* These tests are about responses to `status` and to changes of the set. */
#include "wire_answer.h"

static void changes_tell_the_epoch_and_who_is_missing(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_CHANGE, .epoch = 3, .settled = true, .missing = 4,
		.why = slice_str("two of three is no majority of five") };
	answer(t, CLIENT_CLUSTER_PROMOTE, &r);
	assert_true(t->got.epoch == 3 && t->got.settled && !t->got.complete &&
		(t->got.present & CLIENT_RESULT_EPOCH));
	assert_true(t->got.missing_count == 1 && slice_equal(t->got.missing[0], slice_str("n3")));
	assert_true(slice_equal(t->got.warning, r.why));
	r.complete = true;
	r.missing = 0;
	r.why.size = 0;
	answer(t, CLIENT_CLUSTER_SET_NODES, &r);
	assert_true(t->got.complete && t->got.missing_count == 0 &&
		!(t->got.present & CLIENT_RESULT_WARNING));
}

static void a_change_that_is_refused_says_why_in_the_cores_words(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_CHANGE, .error = PAWL_EUNSETTLED, .epoch = 2,
		.missing = 2, .why = slice_str("n2 does not vote yet") };
	answer(t, CLIENT_CLUSTER_REMOVE, &r);
	assert_true(slice_equal(t->got.message, r.why) && t->got.epoch == 2);
	assert_true(t->got.missing_count == 1 && slice_equal(t->got.missing[0], slice_str("n2")));
	r = (struct core_reply){ .op = CORE_CHANGE, .error = PAWL_EBUSY };
	answer(t, CLIENT_CLUSTER_REMOVE, &r);
	assert_true(t->got.message.size > 0 && !(t->got.present & CLIENT_RESULT_EPOCH));
}

static void status_comes_back_as_it_was(void **state) {
	struct response_test *t = *state;
	struct core_status core = { .state = CORE_RECOVERING, .waits_for = "a majority",
		.left = 3 * SPAN_S, .epoch = 1, .config_hash = UINT64_MAX, .clock = 77,
		.ceiling = 1 << 20, .boot = 3, .quorum = 2, .voting_linked = 2, .keys = 5,
		.held = 4, .promises = 1,
		.waiters = 9, .rounds = 2, .memory_bytes = 12345, .settled = true, .complete = true,
		.following = -1, .peers = { { .master = true, .member = true },
			{ .linked = true, .voting = true, .round_trip = 250 * SPAN_US,
				.boot = 8, .master = true, .member = true }, { .member = true } } };
	struct config config = { .cluster = "prod", .max_lease = 60 * SPAN_S };
	struct client_status status = { .version = slice_str("0.1.0"), .clients = 6, .watches = 7,
		.audit_trouble = slice_str("no room"),
		.events = 8, .uptime = 90 * SPAN_S };
	client_status_of_core(&status, &core, &config, &t->context);
	status.peers[1].serial = slice_str("4A3F");
	status.peers[1].certificate_ends = 1900000000;
	status.peers[1].certificate_role = slice_str("replica");
	status.peers[1].version = slice_str("0.1.9");
	status.limits[status.limit_count++] = (struct client_status_limit){ slice_str("clients"),
		10, 10, true, 7, slice_str("billing") };
	status.limits[status.limit_count++] = (struct client_status_limit){ slice_str("keys"),
		9, 10, false, 0, slice_str("") };
	assert_int_equal(client_status_encode(5, &status, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_STATUS), 0);
	const struct client_status *s = &t->got.status;
	assert_true(slice_equal(s->node, slice_str("n1")) &&
		slice_equal(s->state, slice_str("recovering")));
	assert_true(slice_equal(s->waits_for, slice_str("a majority")) && s->left == 3 * SPAN_S &&
		s->epoch == 1);
	assert_true(s->config_hash == UINT64_MAX && s->settled && s->complete && s->quorum == 2 &&
		s->voting_linked == 2);
	assert_true(s->keys == 5 && s->held == 4 && s->promises == 1 && s->waiters == 9 &&
		s->rounds == 2 && s->clients == 6);
	assert_true(s->watches == 7 && s->events == 8 &&
		slice_equal(s->audit_trouble, slice_str("no room")));
	assert_true(s->uptime == 90 * SPAN_S && s->max_lease == 60 * SPAN_S &&
		slice_equal(s->cluster, slice_str("prod")));
	assert_true(s->limit_count == 2 && slice_equal(s->limits[0].name, slice_str("clients")) &&
		s->limits[0].used == 10 && s->limits[0].limit == 10 && s->limits[0].reached);
	assert_true(s->limits[0].most == 7 &&
		slice_equal(s->limits[0].whose, slice_str("billing")));
	assert_true(slice_equal(s->limits[1].name, slice_str("keys")) && s->limits[1].used == 9 &&
		!s->limits[1].reached && s->limits[1].most == 0 && s->limits[1].whose.size == 0);
	assert_int_equal(s->peer_count, 3);
	assert_true(s->peers[0].self && !s->peers[1].self && s->peers[1].linked &&
		s->peers[1].voting);
	assert_true(slice_equal(s->peers[1].serial, slice_str("4A3F")) &&
		s->peers[1].certificate_ends == 1900000000);
	assert_true(slice_equal(s->peers[1].certificate_role, slice_str("replica")) &&
		s->peers[0].serial.size == 0);
	assert_true(slice_equal(s->peers[1].version, slice_str("0.1.9")) &&
		s->peers[2].version.size == 0);
	assert_true(s->peers[1].round_trip == 250 * SPAN_US &&
		slice_equal(s->peers[2].role, slice_str("replica")));
	assert_true(slice_equal(s->role, slice_str("master")) && !s->replica &&
		s->missing_count == 0 && s->change.step.size == 0);
}

static void status_of_a_replica_tells_whom_it_follows_and_how_far_it_is(void **state) {
	struct response_test *t = *state;
	struct core_status core = { .state = CORE_FOLLOWING, .following = 1, .catching_up = true,
		.snapshot_done = 1000, .position = 77, .age = SPAN_MS + 1, .log_next = 100,
		.log_oldest = 50, .log_bytes = 4096, .missing = 2, .settled = true,
		.peers = { { .member = true },
		{ .linked = true, .master = true, .member = true, .other_epoch = true },
			{ .linked = true, .stranger = true, .follows = true, .position = 90 } } };
	struct client_status status = { .peer_count = 0 };
	client_status_of_core(&status, &core, &(struct config){ .epoch = 2 }, &t->context);
	assert_int_equal(client_status_encode(5, &status, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_STATUS), 0);
	const struct client_status *s = &t->got.status;
	assert_true(slice_equal(s->role, slice_str("replica")) &&
		slice_equal(s->state, slice_str("following")) && s->replica);
	assert_true(slice_equal(s->following.node, slice_str("n2")) && s->following.catching_up &&
		s->following.snapshot_done == 1000);
	assert_true(s->following.position == 77 && s->following.age == 2 * SPAN_MS);
	assert_true(s->log_next == 100 && s->log_oldest == 50 && s->log_bytes == 4096);
	assert_true(s->missing_count == 1 && slice_equal(s->missing[0], slice_str("n2")) &&
		s->settled && !s->complete);
	assert_true(s->peers[1].other_epoch && !s->peers[1].follows && s->peers[2].stranger);
	assert_true(slice_equal(s->peers[2].role, slice_str("outside")));
	assert_true(s->peers[2].follows && s->peers[2].position == 90 && s->peers[2].lag == 10);
	buffer_clear(&t->bytes);
	core.following = -1;
	core.age = SPAN_MAX;
	client_status_of_core(&status, &core, &(struct config){ .epoch = 2 }, &t->context);
	assert_int_equal(client_status_encode(5, &status, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_STATUS), 0);
	assert_true(s->replica && s->following.node.size == 0 && s->following.age == SPAN_MAX);
}

static void status_tells_the_progress_of_a_change(void **state) {
	struct response_test *t = *state;
	struct core_status core = { .state = CORE_VOTING, .following = -1,
		.change = { "copying to the new masters", 5, 10, 3 } };
	struct client_status status = { .peer_count = 0 };
	client_status_of_core(&status, &core, &(struct config){ .epoch = 2 }, &t->context);
	assert_int_equal(client_status_encode(5, &status, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_STATUS), 0);
	const struct client_status_change *c = &t->got.status.change;
	assert_true(slice_equal(c->step, slice_str("copying to the new masters")) && c->done == 5 &&
		c->total == 10 && c->epoch == 3);
}

static void a_node_in_no_configuration_says_what_it_waits_for(void **state) {
	struct response_test *t = *state;
	static const enum core_state states[] = { CORE_UNBORN, CORE_OUTSIDE };
	for (size_t i = 0; i < 2; i++) {
		struct core_status core = { .state = states[i], .following = -1,
			.waits_for = i ? "an administrator" : "the others" };
		struct client_status status = { .peer_count = 0 };
		client_status_of_core(&status, &core, &(struct config){ .epoch = 0 }, &t->context);
		assert_true(slice_equal(status.state, slice_str("unconfigured")));
		assert_true(slice_equal(status.waits_for, slice_str(core.waits_for)));
	}
}

UNIT(wire_status) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(changes_tell_the_epoch_and_who_is_missing),
		TEST(a_change_that_is_refused_says_why_in_the_cores_words),
		TEST(status_comes_back_as_it_was),
		TEST(status_of_a_replica_tells_whom_it_follows_and_how_far_it_is),
		TEST(status_tells_the_progress_of_a_change),
		TEST(a_node_in_no_configuration_says_what_it_waits_for),
	};
#undef TEST
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
