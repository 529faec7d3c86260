/* These tests ask in which order and how much at a time a node serves its connections. */
#include "unit.h"

#include "sessions_host.h"

#include "fair.h"

/* ---- whose turn it is ---- */

struct flows {
	struct fair_queue queue;
	struct fair_flow flow[4];
	int64_t served[4];
};

static void flows_init(struct flows *f) {
	memset(f, 0, sizeof *f);
	fair_init(&f->queue, 8);
}

static void flows_serve(struct flows *f, unsigned pieces, const int64_t cost[4]) {
	for (unsigned i = 0; i < pieces; i++) {
		struct fair_flow *next = fair_next(&f->queue);
		assert_non_null(next);
		size_t at = (size_t)(next - f->flow);
		f->served[at] += cost[at];
		fair_charge(next, cost[at]);
	}
}

static void those_who_wait_get_the_same_whatever_their_pieces_cost(void **state) {
	const int64_t cost[4] = { 1, 16, 3, 8 };
	struct flows f;
	(void)state;
	flows_init(&f);
	for (int i = 0; i < 4; i++) {
		fair_wait(&f.queue, &f.flow[i], 1);
	}
	flows_serve(&f, 10000, cost);
	for (int i = 1; i < 4; i++) {
		assert_in_range(f.served[i], f.served[0] - 32, f.served[0] + 32);
	}
}

static void a_connection_that_asked_for_little_is_served_before_those_with_much(void **state) {
	const int64_t cost[4] = { 1, 1, 1, 1 };
	struct flows f;
	(void)state;
	flows_init(&f);
	fair_wait(&f.queue, &f.flow[0], 1);
	fair_wait(&f.queue, &f.flow[1], 1);
	flows_serve(&f, 100, cost);
	fair_wait(&f.queue, &f.flow[2], 2);
	flows_serve(&f, 8 + 8, cost);
	/* The third is served at once, after what was left to the one whose turn it was; and it is
	 * served no more than the others. */
	assert_int_equal(f.served[2], 8);
}

static void a_debt_is_forgiven_by_turns_and_not_by_leaving(void **state) {
	struct flows f;
	(void)state;
	flows_init(&f);
	fair_wait(&f.queue, &f.flow[0], 1);
	fair_charge(&f.flow[0], 8 + 80);
	fair_leave(&f.flow[0], 1);
	fair_wait(&f.queue, &f.flow[1], 2);
	fair_charge(&f.flow[1], 1000);
	fair_wait(&f.queue, &f.flow[0], 2);
	assert_int_equal(f.flow[0].credit, -72);
	fair_leave(&f.flow[0], 2);
	fair_wait(&f.queue, &f.flow[0], 100);
	assert_int_equal(f.flow[0].credit, 8);
	assert_ptr_equal(fair_next(&f.queue), &f.flow[0]);
	fair_leave(&f.flow[0], 100);
	fair_leave(&f.flow[1], 100);
	assert_null(fair_next(&f.queue));
}

/* ---- connections ---- */

#define MANY 100

static void one_turn_does_not_serve_one_connection_alone(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10000);
	int greedy = host_connect(&h), other = host_connect(&h);
	h.hold = true;
	for (int i = 0; i < MANY; i++) {
		send_status(greedy);
	}
	net_fixture_settle(&h.f);
	send_ping(other);
	net_fixture_settle(&h.f);
	assert_true(h.ready);
	/* Requests are read, but not served. */
	assert_int_equal(h.requests, 0);
	while (!h.pinged) {
		sessions_serve(h.sessions);
	}
	/* At most eight statuses were served before the ping. */
	assert_in_range(h.before_ping, 0, 8);
	host_run(&h);
	assert_int_equal(h.requests, MANY + 1);
	close(greedy);
	close(other);
	host_done(&h);
}

static unsigned served_in_a_turn(struct host *h) {
	unsigned before = h->requests;
	assert_true(sessions_serve(h->sessions));
	return h->requests - before;
}

static void turns_are_short_while_one_with_little_shares_the_node_with_one_with_much(void **state) {
	struct host h;
	unsigned most = 0;
	(void)state;
	host_begin(&h, 10, 10000);
	h.hold = true;
	h.takes = SPAN_MS / 10;
	int greedy = host_connect(&h), other = host_connect(&h);
	for (int i = 0; i < 2 * MANY; i++) {
		send_status(greedy);
	}
	net_fixture_settle(&h.f);
	for (int i = 0; i < 10; i++) {
		unsigned served = served_in_a_turn(&h);
		/* In the first turn it is still alone. */
		most = i > 0 && served > most ? served : most;
	}
	assert_in_range(most, 2, 3);
	send_ping(other);
	net_fixture_settle(&h.f);
	served_in_a_turn(&h);
	assert_true(h.pinged);
	assert_int_equal(served_in_a_turn(&h), 1);
	close(greedy);
	close(other);
	host_done(&h);
}

/* What a value costs comes later, when it is sent to the masters. */
static void a_turn_takes_few_requests_with_large_values(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10000);
	h.hold = true;
	h.value = 64 * KIB;
	int greedy = host_connect(&h), other = host_connect(&h);
	send_ping(other);
	send_status(greedy);
	host_run(&h);
	for (int i = 0; i < MANY; i++) {
		send_status(greedy);
	}
	net_fixture_settle(&h.f);
	for (int i = 0; i < 5; i++) {
		assert_in_range(served_in_a_turn(&h), 1, 4);
	}
	close(greedy);
	close(other);
	host_done(&h);
}

/* Returns the number of requests that were served. */
static unsigned serve_all(struct host *h) {
	unsigned before = h->requests;
	host_run(h);
	return h->requests - before;
}

static void a_connection_waits_while_many_of_its_values_are_under_way(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10000);
	h.hold = true;
	h.value = 1024 * KIB;
	int greedy = host_connect(&h), other = host_connect(&h);
	for (int i = 0; i < MANY; i++) {
		send_status(greedy);
	}
	/* After 4 of 16 MiB it has more than a quarter of what is left. */
	assert_int_equal(serve_all(&h), 4);
	const uint64_t client = h.client;
	sessions_value_done(h.sessions, client, h.value);
	assert_int_equal(serve_all(&h), 1);
	for (int i = 0; i < MANY; i++) {
		send_status(other);
	}
	/* The rest of what is left is for others. */
	assert_int_equal(serve_all(&h), 3);
	const uint64_t second = h.client;
	sessions_value_done(h.sessions, second, 3 * h.value);
	assert_int_equal(serve_all(&h), 3);
	/* What a connection has under way no longer counts when the connection ends. */
	sessions_drop(h.sessions, client);
	sessions_value_done(h.sessions, client, h.value);
	sessions_value_done(h.sessions, second, 3 * h.value);
	assert_int_equal(serve_all(&h), 4);
	close(greedy);
	close(other);
	host_done(&h);
}

/* Requests may take as much of the thread as a handshake took. */
static void requests_have_as_long_as_the_handshake_before_them_took(void **state) {
	static const char ping[] = "\x94\x00\x01\xa4ping\x91\x80";
	char pings[(sizeof ping - 1) * 10 * MANY];
	struct host h;
	(void)state;
	for (size_t i = 0; i < sizeof pings; i++) {
		pings[i] = ping[i % (sizeof ping - 1)];
	}
	host_begin(&h, 10, 10000);
	int fds[8];
	for (int i = 0; i < 8; i++) {
		fds[i] = host_connect(&h);
		send_bytes(fds[i], pings, sizeof pings);
	}
	net_fixture_settle(&h.f);
	h.f.loop.handshakes.owed = SPAN_S;
	assert_false(sessions_serve(h.sessions));
	assert_int_equal(h.requests, 80 * MANY);
	assert_int_equal(handshakes_take_owed(&h.f.loop.handshakes), 0);
	for (int i = 0; i < 8; i++) {
		close(fds[i]);
	}
	host_done(&h);
}

static void a_large_batch_comes_in_pieces_and_is_answered_once(void **state) {
	static struct client_lock locks[1000];
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	for (size_t i = 0; i < 1000; i++) {
		locks[i] = (struct client_lock){ .key = slice_str("k"), .lease = SPAN_S };
		locks[i].lock_id.b[0] = 1;
	}
	const struct client_request batch = { .msgid = 1, .method = CLIENT_EXTEND,
		.present = CLIENT_HAS_LOCKS, .locks = locks, .lock_count = 1000 };
	int fd = host_connect(&h);
	send_request(fd, &batch);
	send_ping(fd);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	assert_in_range(h.pieces, 10, 100);
	assert_in_range(h.most, 1, 100);
	assert_int_equal(answers(fd), 2);
	close(fd);
	host_run(&h);
	assert_int_equal(sessions_count(h.sessions), 0);
	host_done(&h);
}

/* The client is gone while its batch is half done, or the owner drops it. */
static void a_batch_ends_with_its_connection(void **state) {
	static struct client_lock locks[1000];
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	memset(locks, 1, sizeof locks);
	for (size_t i = 0; i < 1000; i++) {
		locks[i] = (struct client_lock){ .key = slice_str("k"), .lease = SPAN_S,
			.lock_id.b[0] = 1 };
	}
	const struct client_request batch = { .msgid = 1, .method = CLIENT_EXTEND,
		.present = CLIENT_HAS_LOCKS, .locks = locks, .lock_count = 1000 };
	int fd = host_connect(&h);
	send_request(fd, &batch);
	net_fixture_settle(&h.f);
	h.drop_after = 3;
	host_run(&h);
	assert_int_equal(h.pieces, 3);
	assert_int_equal(sessions_count(h.sessions), 0);
	close(fd);
	host_done(&h);
}

/* A program that has as many waits as it may have must be able to keep and to release what it
 * holds. */
static void at_the_limit_of_requests_locks_are_still_extended_and_released(void **state) {
	const struct client_request release = { .msgid = 1, .method = CLIENT_RELEASE,
		.present = CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID,
		.core = { .key = slice_str("k"), .lock_id.b[0] = 1 } };
	struct host h;
	(void)state;
	host_begin(&h, 10, 2);
	int fd = host_connect(&h);
	h.hold = true;
	for (int i = 0; i < 3; i++) {
		send_status(fd);
	}
	host_run(&h);
	assert_int_equal(h.refused, 1);
	for (int i = 0; i < 3; i++) {
		send_request(fd, &release);
	}
	host_run(&h);
	assert_int_equal(h.requests, 4);
	/* These, too, are not accepted without end. */
	assert_int_equal(h.refused, 2);
	close(fd);
	host_done(&h);
}

/* Two connections from one address share what one of them could have alone. A third one is told why
 * it is closed. */
static void an_identity_has_so_many_connections_and_requests_under_way(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	const struct sessions_limits limits = { .clients = 10, .requests_per_client = 10,
		.identity = { { [SHARE_CLIENTS] = 2, [SHARE_REQUESTS] = 3 } },
		.strangers = { 64, 64, 64 << 20 } };
	sessions_set_limits(h.sessions, &limits);
	int one = host_connect(&h), two = host_connect(&h), three = host_connect(&h);
	host_run(&h);
	assert_int_equal(answers(three), 1);
	assert_int_equal(h.refused, 1);
	h.hold = true;
	for (int i = 0; i < 2; i++) {
		send_status(one);
		send_status(two);
	}
	host_run(&h);
	assert_int_equal(h.requests, 3);
	assert_int_equal(h.refused, 2);
	close(one);
	/* What the connection had under way no longer counts. */
	host_run(&h);
	send_status(two);
	host_run(&h);
	assert_int_equal(h.requests, 4);
	close(two);
	close(three);
	host_done(&h);
}

static void what_was_sent_before_the_end_of_the_connection_is_served(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 1000);
	int fd = host_connect(&h);
	for (int i = 0; i < 100; i++) {
		send_ping(fd);
	}
	shutdown(fd, SHUT_WR);
	net_fixture_settle(&h.f);
	assert_int_equal(h.gone, 0);
	host_run(&h);
	assert_int_equal(h.requests, 100);
	assert_int_equal(h.gone, 1);
	close(fd);
	host_done(&h);
}

UNIT(net_fair) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(those_who_wait_get_the_same_whatever_their_pieces_cost),
		cmocka_unit_test(
			a_connection_that_asked_for_little_is_served_before_those_with_much),
		cmocka_unit_test(a_debt_is_forgiven_by_turns_and_not_by_leaving),
		cmocka_unit_test(one_turn_does_not_serve_one_connection_alone),
		cmocka_unit_test(
			turns_are_short_while_one_with_little_shares_the_node_with_one_with_much),
		cmocka_unit_test(a_turn_takes_few_requests_with_large_values),
		cmocka_unit_test(a_connection_waits_while_many_of_its_values_are_under_way),
		cmocka_unit_test(requests_have_as_long_as_the_handshake_before_them_took),
		cmocka_unit_test(a_large_batch_comes_in_pieces_and_is_answered_once),
		cmocka_unit_test(a_batch_ends_with_its_connection),
		cmocka_unit_test(at_the_limit_of_requests_locks_are_still_extended_and_released),
		cmocka_unit_test(an_identity_has_so_many_connections_and_requests_under_way),
		cmocka_unit_test(what_was_sent_before_the_end_of_the_connection_is_served),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
