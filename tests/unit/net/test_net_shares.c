/* These tests are about what one identity, and one address, may take of a node. */
#include "unit.h"

#include <stdio.h>

#include "sessions_host.h"

/* ---- the counts ---- */

struct counted {
	struct allocator libc;
	struct alloc_counter counter;
	struct shares all;
};

static void counted_init(struct counted *c) {
	memset(c, 0, sizeof *c);
	c->libc = alloc_libc(&c->counter);
	assert_int_equal(shares_init(&c->all, &c->libc, (struct siphash_key){ 1, 2 }), 0);
}

static void counted_done(struct counted *c) {
	shares_done(&c->all);
	assert_int_equal(c->counter.used, 0);
}

static struct share_pair pair_of(struct counted *c, const char *identity, const char *address) {
	struct share_pair p = { shares_find(&c->all, '=', slice_str(identity), 8),
		address ? shares_find(&c->all, '#', slice_str(address), 8) : NULL };
	assert_non_null(p.identity);
	return p;
}

static void each_kind_is_counted_for_the_identity_and_for_its_address(void **state) {
	struct counted c;
	struct share_quota quota;
	(void)state;
	counted_init(&c);
	for (unsigned kind = 0; kind < SHARE_RATE; kind++) {
		struct share_pair one = pair_of(&c, "one", "here"),
			two = pair_of(&c, "two", "here"), three = pair_of(&c, "one", "there");
		one.identity->limits.max[kind] = 3;
		one.address->limits.max[kind] = 4;
		shares_take(&one, (enum share_kind)kind, 2);
		assert_false(shares_full(&one, (enum share_kind)kind, 1, 0, &quota));
		assert_true(shares_full(&one, (enum share_kind)kind, 2, 0, &quota));
		assert_false(shares_full(&one, (enum share_kind)kind, 2, 1, &quota));
		assert_true(shares_full(&three, (enum share_kind)kind, 2, 0, &quota));
		shares_take(&two, (enum share_kind)kind, 2);
		/* The limit of the address is reached. */
		assert_true(shares_full(&one, (enum share_kind)kind, 1, 0, &quota));
		assert_false(shares_full(&three, (enum share_kind)kind, 1, 0, &quota));
		char field[64];
		snprintf(field, sizeof field, "%s_per_identity", share_kind_name[kind]);
		assert_true(shares_full(&three, (enum share_kind)kind, 2, 0, &quota));
		assert_true(slice_equal(quota.refusal.field, slice_str(field)));
		assert_int_equal(quota.refusal.error, PAWL_EQUOTA);
		assert_true(quota.refusal.retry_after > 0);
		shares_give(&one, (enum share_kind)kind, 2);
		shares_give(&two, (enum share_kind)kind, 2);
		assert_false(shares_full(&one, (enum share_kind)kind, 3, 0, &quota));
	}
	counted_done(&c);
}

static void a_share_of_which_nothing_is_used_is_forgotten_when_its_debt_has_melted(void **state) {
	struct counted c;
	(void)state;
	counted_init(&c);
	struct share_pair p = pair_of(&c, "one", NULL);
	p.identity->limits.max[SHARE_RATE] = 10;
	shares_take(&p, SHARE_LOCKS, 1);
	shares_charge(&p, 5, (struct instant){ SPAN_S, SPAN_S });
	shares_sweep(&c.all, (struct instant){ 9 * SPAN_S, 9 * SPAN_S });
	assert_int_equal(c.all.by_name.count, 1);
	shares_give(&p, SHARE_LOCKS, 1);
	shares_sweep(&c.all, (struct instant){ SPAN_S + 499 * SPAN_MS, SPAN_S });
	assert_int_equal(c.all.by_name.count, 1);
	shares_sweep(&c.all, (struct instant){ SPAN_S + 500 * SPAN_MS, SPAN_S });
	assert_int_equal(c.all.by_name.count, 0);
	counted_done(&c);
}

/* ---- requests a second ---- */

static void a_seconds_worth_of_requests_may_come_at_once_and_then_as_many_as_time_allows(
	void **state) {
	struct counted c;
	struct share_quota quota;
	struct instant now = { 100 * SPAN_S, 100 * SPAN_S };
	(void)state;
	counted_init(&c);
	struct share_pair p = pair_of(&c, "one", "here");
	p.identity->limits.max[SHARE_RATE] = 10;
	for (int i = 0; i < 10; i++) {
		assert_false(shares_hurried(&p, false, now, &quota));
		shares_charge(&p, 1, now);
	}
	assert_true(shares_hurried(&p, false, now, &quota));
	assert_int_equal(quota.refusal.retry_after, 100 * SPAN_MS);
	assert_true(slice_equal(quota.refusal.field, slice_str("rate_per_identity")));
	now.boot += 100 * SPAN_MS;
	assert_false(shares_hurried(&p, false, now, &quota));
	shares_charge(&p, 1, now);
	assert_true(shares_hurried(&p, false, now, &quota));
	counted_done(&c);
}

static void half_of_what_may_come_at_once_is_for_urgent_requests(void **state) {
	struct counted c;
	struct share_quota quota;
	struct instant now = { 100 * SPAN_S, 100 * SPAN_S };
	(void)state;
	counted_init(&c);
	struct share_pair p = pair_of(&c, "one", "here");
	p.address->limits.max[SHARE_RATE] = 10;
	shares_charge(&p, 10, now);
	assert_true(shares_hurried(&p, false, now, &quota));
	assert_true(slice_equal(quota.refusal.field, slice_str("rate_per_address")));
	assert_false(shares_hurried(&p, true, now, &quota));
	/* One large batch is not held against the identity for minutes. */
	shares_charge(&p, 4096, now);
	assert_true(shares_hurried(&p, true, now, &quota));
	assert_int_equal(quota.refusal.retry_after, 100 * SPAN_MS);
	counted_done(&c);
}

/* ---- connections ---- */

static void requests_above_the_rate_are_told_when_to_come_again(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_RATE] = 1;
	host_start(&h, &limits);
	int fd = host_connect(&h);
	send_status(fd);
	send_status(fd);
	send_ping(fd);
	const struct client_request release = { .msgid = 1, .method = CLIENT_RELEASE,
		.present = CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID,
		.core = { .op = CORE_RELEASE, .key = slice_str("k"), .lock_id = { { 1 } } } };
	send_request(fd, &release);
	host_run(&h);
	assert_int_equal(h.requests, 3);
	assert_int_equal(h.over, 1);
	assert_string_equal(h.limit, "rate_per_identity");
	assert_in_range(h.retry_after, SPAN_MS, SPAN_S);
	assert_int_equal(sessions_refused(h.sessions), 1);
	close(fd);
	/* The debt is not forgotten by leaving. */
	fd = host_connect(&h);
	send_status(fd);
	host_run(&h);
	assert_int_equal(h.over, 2);
	close(fd);
	host_done(&h);
}

static void limits_of_an_address_hold_for_all_that_come_from_it(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.address.max[SHARE_CLIENTS] = 1;
	host_start(&h, &limits);
	int one = host_connect(&h), two = host_connect(&h);
	host_run(&h);
	/* This is the refusal. */
	assert_int_equal(answers(one) + answers(two), 1);
	assert_int_equal(h.troubles, 1);
	close(one);
	close(two);
	host_done(&h);
}

/* Returns how many of two connections from these addresses get in where one address may have
 * one. */
static unsigned count_of_two(const char *one, const char *two) {
	struct host h;
	struct sessions_limits limits = open_limits;
	limits.address.max[SHARE_CLIENTS] = 1;
	host_start(&h, &limits);
	int fds[] = { host_connect_from(&h, one), host_connect_from(&h, two) };
	send_status(fds[0]);
	send_status(fds[1]);
	host_run(&h);
	unsigned in = h.requests;
	close(fds[0]);
	close(fds[1]);
	host_done(&h);
	return in;
}

static void an_ipv4_address_is_one_of_its_own_also_behind_a_listener_for_ipv6(void **state) {
	(void)state;
	assert_int_equal(count_of_two("[::ffff:10.0.0.1]", "[::ffff:10.0.0.2]"), 2);
	assert_int_equal(count_of_two("[::ffff:10.0.0.1]", "[::ffff:10.0.0.1]"), 1);
	/* The second one comes to another listener. */
	assert_int_equal(count_of_two("[::ffff:10.0.0.1]", "10.0.0.1"), 1);
}

static void an_ipv6_address_is_its_network_of_64_bits(void **state) {
	(void)state;
	assert_int_equal(count_of_two("[2001:db8::1]", "[2001:db8::a:0:0:2]"), 1);
	assert_int_equal(count_of_two("[2001:db8::1]", "[2001:db8:0:1::1]"), 2);
	assert_int_equal(count_of_two("[fe80::1%eth0]", "[fe80::2%eth0]"), 1);
	assert_int_equal(count_of_two("[fe80::1%eth0]", "[fe80::1%eth1]"), 2);
}

static void an_identity_may_have_limits_of_its_own(void **state) {
	static const struct share_limits own = { { [SHARE_REQUESTS] = 1 } };
	struct host h;
	(void)state;
	host_start(&h, &open_limits);
	h.hold = true;
	int fd = host_connect(&h);
	send_status(fd);
	send_status(fd);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	h.own = &own;
	/* After a reload the limits hold for connections that are there already. */
	sessions_set_limits(h.sessions, &open_limits);
	send_status(fd);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	assert_int_equal(h.over, 1);
	close(fd);
	host_done(&h);
}

static void what_is_watched_counts_until_the_connection_is_gone(void **state) {
	struct host h;
	struct share_quota quota;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_WATCHES] = 3;
	host_start(&h, &limits);
	int one = host_connect(&h), two = host_connect(&h);
	sessions_watches(h.sessions, 1, 2, 0);
	sessions_watches(h.sessions, 1, 3, 0);
	assert_true(shares_full(sessions_share(h.sessions, 2), SHARE_WATCHES, 1, 0, &quota));
	close(one);
	host_run(&h);
	assert_false(shares_full(sessions_share(h.sessions, 2), SHARE_WATCHES, 3, 0, &quota));
	close(two);
	host_done(&h);
}

/* ---- administrators ---- */

static int busy_connection(struct host *h) {
	int fd = host_connect(h);
	send_status(fd);
	host_run(h);
	return fd;
}

static void an_administrator_has_a_place_at_a_full_node(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	int fds[4];
	(void)state;
	limits.clients = 2;
	limits.admin_clients = 1;
	host_start(&h, &limits);
	fds[0] = busy_connection(&h);
	fds[1] = busy_connection(&h);
	assert_int_equal(answers(fds[0]) + answers(fds[1]), 2);
	fds[2] = busy_connection(&h);
	/* The answer says that the node is full. */
	assert_int_equal(answers(fds[2]), 1);
	assert_int_equal(h.requests, 2);
	close(fds[2]);
	host_run(&h);
	h.admin = true;
	fds[2] = busy_connection(&h);
	assert_int_equal(h.requests, 3);
	h.admin = false;
	fds[3] = host_connect(&h);
	host_run(&h);
	assert_int_equal(sessions_count(h.sessions), 3);
	for (int i = 0; i < 4; i++) {
		close(fds[i]);
	}
	host_done(&h);
}

static void an_administrator_looks_and_mends_above_the_limits_of_its_share(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_REQUESTS] = limits.identity.max[SHARE_CLIENTS] =
		limits.identity.max[SHARE_RATE] = 1;
	host_start(&h, &limits);
	h.hold = true;
	int one = host_connect(&h);
	send_status(one);
	host_run(&h);
	h.admin = true;
	int two = host_connect(&h);
	send_status(two);
	const struct client_request get = { .msgid = 1, .method = CLIENT_GET,
		.present = CLIENT_HAS_KEY, .core = { .op = CORE_GET, .key = slice_str("k") } };
	send_request(two, &get);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	assert_int_equal(h.method, CLIENT_STATUS);
	/* Reading keys does not help to mend anything. */
	assert_int_equal(h.over, 1);
	close(one);
	close(two);
	host_done(&h);
}

static void what_an_administrator_needs_to_look_is_not_held_against_its_rate(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_RATE] = 1;
	host_start(&h, &limits);
	h.admin = true;
	int fd = host_connect(&h);
	for (int i = 0; i < 3; i++) {
		send_status(fd);
	}
	const struct client_request get = { .msgid = 1, .method = CLIENT_GET,
		.present = CLIENT_HAS_KEY, .core = { .op = CORE_GET, .key = slice_str("k") } };
	send_request(fd, &get);
	host_run(&h);
	assert_int_equal(h.requests, 4);
	send_request(fd, &get);
	host_run(&h);
	assert_int_equal(h.requests, 4);
	assert_int_equal(h.over, 1);
	close(fd);
	host_done(&h);
}

UNIT(net_shares) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_counted_for_the_identity_and_for_its_address),
		cmocka_unit_test(
			a_share_of_which_nothing_is_used_is_forgotten_when_its_debt_has_melted),
		cmocka_unit_test(
		a_seconds_worth_of_requests_may_come_at_once_and_then_as_many_as_time_allows),
		cmocka_unit_test(half_of_what_may_come_at_once_is_for_urgent_requests),
		cmocka_unit_test(requests_above_the_rate_are_told_when_to_come_again),
		cmocka_unit_test(limits_of_an_address_hold_for_all_that_come_from_it),
		cmocka_unit_test(an_ipv4_address_is_one_of_its_own_also_behind_a_listener_for_ipv6),
		cmocka_unit_test(an_ipv6_address_is_its_network_of_64_bits),
		cmocka_unit_test(an_identity_may_have_limits_of_its_own),
		cmocka_unit_test(what_is_watched_counts_until_the_connection_is_gone),
		cmocka_unit_test(an_administrator_has_a_place_at_a_full_node),
		cmocka_unit_test(an_administrator_looks_and_mends_above_the_limits_of_its_share),
		cmocka_unit_test(what_an_administrator_needs_to_look_is_not_held_against_its_rate),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
