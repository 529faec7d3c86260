/* These tests are about what one identity may have of a node: what its requests take, what its
 * locks keep, and until when. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "embed_rig.h"

#include "pawl/error.h"
#include "pawl/pawl.h"
#include "pawl/watch.h"

#define LEASE_MS 600

struct asked {
	struct pawl_result *result;
};

static void on_done(struct pawl_result *take_result, void *arg) {
	((struct asked *)arg)->result = take_result;
}

static bool is_done(void *arg) {
	return ((struct asked *)arg)->result != NULL;
}

/* Returns the outcome of a request. The node says at once that a share is full, because nobody
 * comes again within so little time. */
static int outcome(struct embed_rig *r, struct pawl *client, struct pawl_request request) {
	struct asked a = { NULL };
	request.timeout_ms = request.timeout_ms ? request.timeout_ms : 500;
	assert_int_equal(pawl_start(client, &request, on_done, &a, NULL), 0);
	assert_true(net_fixture_until(&r->f, is_done, &a));
	int error = a.result->error;
	if (error == PAWL_EQUOTA) {
		assert_non_null(pawl_value_get(a.result->tree, "retry_after_ms"));
	}
	pawl_result_free(a.result);
	return error;
}

static struct pawl *connect_to(struct embed_rig *r, size_t n) {
	char endpoint[160];
	embed_rig_endpoint(r, n, endpoint);
	const struct pawl_options options = { .endpoints = endpoint, .base = r->f.base };
	struct pawl *client;
	const char *message = NULL;
	assert_int_equal(pawl_new(&options, &client, &message), 0);
	return client;
}

/* Starts a node where the account that runs this test may do everything, within these limits. */
static struct pawl *open_limited(struct embed_rig *r, const char *limits) {
	char text[256];
	embed_rig_open(r, 1);
	r->ruled = true;
	snprintf(text, sizeof text, "[unix:uid:%u]\nallow = all on *\n%s", getuid(), limits);
	embed_rig_rules(r, 0, text);
	embed_rig_start_all(r);
	return connect_to(r, 0);
}

static void close_limited(struct embed_rig *r, struct pawl *client) {
	pawl_free(client);
	embed_rig_close(r);
}

static struct pawl_request acquire(const char *key, uint8_t id, uint32_t lease_ms,
	struct pawl_bytes value) {
	return (struct pawl_request){ .method = PAWL_ACQUIRE, .key = pawl_str(key),
		.lock_id = { { id } }, .lease_ms = lease_ms, .value = value };
}

static struct pawl_request release(const char *key, uint8_t id) {
	return (struct pawl_request){ .method = PAWL_RELEASE, .key = pawl_str(key),
		.lock_id = { { id } } };
}

static const struct pawl_bytes none = { "", 0 };

static void locks_count_until_they_are_released(void **state) {
	struct embed_rig r;
	(void)state;
	struct pawl *client = open_limited(&r, "locks = 2\n");
	assert_int_equal(outcome(&r, client, acquire("a", 1, 20000, none)), 0);
	/* The same lock_id is no way round the limit. */
	assert_int_equal(outcome(&r, client, acquire("b", 1, 20000, none)), 0);
	assert_int_equal(outcome(&r, client, acquire("c", 3, 20000, none)), PAWL_EQUOTA);
	struct pawl *other = connect_to(&r, 0);
	/* Another connection is no way round it, either. */
	assert_int_equal(outcome(&r, other, acquire("c", 3, 20000, none)), PAWL_EQUOTA);
	pawl_free(client);
	/* Locks do not end with their connection. */
	assert_int_equal(outcome(&r, other, acquire("c", 3, 20000, none)), PAWL_EQUOTA);
	const struct pawl_extend_item locks[] = { { .key = pawl_str("a"), .lock_id = { { 1 } },
		.lease_ms = 20000 },
		{ .key = pawl_str("b"), .lock_id = { { 1 } }, .lease_ms = 20000 } };
	assert_int_equal(outcome(&r, other, (struct pawl_request){ .method = PAWL_EXTEND,
		.locks = locks, .lock_count = 2 }), 0);
	assert_int_equal(outcome(&r, other, release("a", 1)), 0);
	assert_int_equal(outcome(&r, other, acquire("c", 3, 20000, none)), 0);
	assert_int_equal(outcome(&r, other, acquire("d", 4, 20000, none)), PAWL_EQUOTA);
	close_limited(&r, other);
}

static void several_keys_count_as_so_many_locks(void **state) {
	struct embed_rig r;
	(void)state;
	struct pawl *client = open_limited(&r, "locks = 2\n");
	const struct pawl_key_item keys[] = { { .key = pawl_str("a") }, { .key = pawl_str("b") },
		{ .key = pawl_str("c") } };
	struct pawl_request request = { .method = PAWL_ACQUIRE, .keys = keys, .key_count = 3,
		.lease_ms = 20000 };
	assert_int_equal(outcome(&r, client, request), PAWL_EQUOTA);
	request.key_count = 2;
	assert_int_equal(outcome(&r, client, request), 0);
	assert_int_equal(outcome(&r, client, acquire("d", 4, 20000, none)), PAWL_EQUOTA);
	close_limited(&r, client);
}

/* The client comes again until the lease of the lock that nobody released is over, and the node has
 * forgotten it. */
static void locks_count_until_their_leases_are_over(void **state) {
	struct embed_rig r;
	(void)state;
	struct pawl *client = open_limited(&r, "locks = 1\n");
	assert_int_equal(outcome(&r, client, acquire("a", 1, LEASE_MS, none)), 0);
	struct pawl_request later = acquire("b", 2, LEASE_MS, none);
	later.timeout_ms = 8000;
	assert_int_equal(outcome(&r, client, later), 0);
	close_limited(&r, client);
}

static void bytes_of_values_count_and_an_update_changes_them(void **state) {
	struct embed_rig r;
	(void)state;
	struct pawl *client = open_limited(&r, "value_bytes = 10\n");
	assert_int_equal(outcome(&r, client, acquire("a", 1, 20000, pawl_str("12345678"))), 0);
	assert_int_equal(outcome(&r, client, acquire("b", 2, 20000, pawl_str("123"))), PAWL_EQUOTA);
	assert_int_equal(outcome(&r, client, acquire("b", 2, 20000, none)), 0);
	struct pawl_request update = { .method = PAWL_UPDATE, .key = pawl_str("a"),
		.lock_id = { { 1 } }, .value = pawl_str("1") };
	assert_int_equal(outcome(&r, client, update), 0);
	assert_int_equal(outcome(&r, client, acquire("c", 3, 20000, pawl_str("123456789"))), 0);
	update.value = pawl_str("12");
	assert_int_equal(outcome(&r, client, update), PAWL_EQUOTA);
	assert_int_equal(outcome(&r, client, release("c", 3)), 0);
	assert_int_equal(outcome(&r, client, update), 0);
	close_limited(&r, client);
}

static bool is_current(void *arg) {
	return pawl_watch_current(arg);
}

static bool is_refused(void *arg) {
	return strstr(((struct embed_rig *)arg)->nodes[0].line, "watches_per_identity") != NULL;
}

static void on_event(struct pawl_watch *watch, const struct pawl_event *event, void *arg) {
	(void)watch;
	(void)event;
	(void)arg;
}

/* The client asks again for a watch that is refused, until there is room for it. */
static void watches_count_until_they_end(void **state) {
	struct embed_rig r;
	struct pawl_watch *one, *two, *three;
	const struct pawl_watch_options options = { .key = pawl_str("a"), .prefix = true,
		.on_event = on_event };
	(void)state;
	struct pawl *client = open_limited(&r, "watches = 1\n"), *other = connect_to(&r, 0);
	assert_int_equal(pawl_watch_start(client, &options, &one), 0);
	assert_true(net_fixture_until(&r.f, is_current, one));
	assert_int_equal(pawl_watch_start(other, &options, &two), 0);
	assert_true(net_fixture_until(&r.f, is_refused, &r));
	assert_false(pawl_watch_current(two));
	pawl_watch_free(one);
	assert_true(net_fixture_until(&r.f, is_current, two));
	assert_int_equal(pawl_watch_start(client, &options, &three), 0);
	/* Its watch goes with the client. */
	pawl_free(other);
	assert_true(net_fixture_until(&r.f, is_current, three));
	close_limited(&r, client);
}

static void requests_that_wait_count_as_long_as_they_wait(void **state) {
	struct embed_rig r;
	struct asked waits = { NULL };
	(void)state;
	struct pawl *client = open_limited(&r, "waits = 1\n");
	assert_int_equal(outcome(&r, client, acquire("a", 1, 20000, none)), 0);
	const struct pawl_request wait = { .method = PAWL_WAIT, .key = pawl_str("a"),
		.for_free = true, .wait_ms = 60000 };
	assert_int_equal(pawl_start(client, &wait, on_done, &waits, NULL), 0);
	struct pawl_request more = acquire("a", 2, 20000, none);
	more.wait_ms = 100;
	assert_int_equal(outcome(&r, client, more), PAWL_EQUOTA);
	assert_int_equal(outcome(&r, client, release("a", 1)), 0);
	assert_true(net_fixture_until(&r.f, is_done, &waits));
	pawl_result_free(waits.result);
	assert_int_equal(outcome(&r, client, more), 0);
	close_limited(&r, client);
}

UNIT(node_shares) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locks_count_until_they_are_released),
		cmocka_unit_test(several_keys_count_as_so_many_locks),
		cmocka_unit_test(locks_count_until_their_leases_are_over),
		cmocka_unit_test(bytes_of_values_count_and_an_update_changes_them),
		cmocka_unit_test(watches_count_until_they_end),
		cmocka_unit_test(requests_that_wait_count_as_long_as_they_wait),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
