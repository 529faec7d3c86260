/* These tests are about the connections of clients: requests, answers, refusals, and their ends. */
#include "unit.h"

#include "sessions_host.h"

#include <sys/ioctl.h>

static void pipelined_requests_are_answered_with_one_flush(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	int fd = host_connect(&h);
	for (int i = 0; i < 5; i++) {
		send_ping(fd);
	}
	host_serve(&h);
	assert_int_equal(h.requests, 5);
	/* Nothing leaves before the flush. */
	assert_int_equal(answers(fd), 0);
	sessions_flush(h.sessions);
	assert_int_equal(answers(fd), 5);
	assert_true(h.local);
	close(fd);
	net_fixture_settle(&h.f);
	assert_int_equal(h.gone, 1);
	assert_int_equal(sessions_count(h.sessions), 0);
	host_done(&h);
}

static void a_request_too_many_is_refused_until_another_is_answered_but_no_ping(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 2);
	int fd = host_connect(&h);
	h.hold = true;
	send_status(fd);
	send_status(fd);
	send_status(fd);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	/* The host was told to flush. */
	assert_int_equal(h.refused, 1);
	assert_int_equal(answers(fd), 1);
	h.hold = false;
	/* A client finds out by a ping whether the node is alive. */
	send_ping(fd);
	host_run(&h);
	assert_int_equal(h.requests, 3);
	assert_int_equal(answers(fd), 1);
	h.hold = true;
	host_answer(&h);
	send_status(fd);
	host_run(&h);
	assert_int_equal(h.requests, 4);
	close(fd);
	host_done(&h);
}

/* Without any answer the client would go on waiting. */
static void a_refusal_that_there_is_no_memory_for_ends_the_connection(void **state) {
	(void)state;
	struct host h;
	host_begin(&h, 10, 1);
	h.hold = true;
	int fd = host_connect(&h);
	send_status(fd);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	h.fussy.refuse_at = h.fussy.calls;
	send_status(fd);
	host_run(&h);
	assert_true(h.fussy.refused);
	assert_int_equal(h.requests, 1);
	assert_int_equal(h.gone, 1);
	assert_int_equal(sessions_count(h.sessions), 0);
	close(fd);
	host_done(&h);
}

static void an_answer_to_a_client_that_hung_up_goes_nowhere(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	int fd = host_connect(&h);
	h.hold = true;
	send_ping(fd);
	host_serve(&h);
	uint64_t client = h.client;
	close(fd);
	net_fixture_settle(&h.f);
	assert_int_equal(h.gone, 1);
	assert_int_equal(h.client, client);
	assert_null(sessions_answer(h.sessions, client));
	host_done(&h);
}

static void a_client_that_closed_its_end_is_told_apart_from_one_that_the_node_closed(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	int fd = host_connect(&h);
	close(fd);
	net_fixture_settle(&h.f);
	assert_true(h.gone == 1 && h.closed_there);
	fd = host_connect(&h);
	/* The node refuses that, and closes the connection; the client follows. */
	send_bytes(fd, "\xc1", 1);
	host_run(&h);
	close(fd);
	net_fixture_settle(&h.f);
	assert_true(h.gone == 2 && !h.closed_there);
	host_done(&h);
}

static void a_notification_answers_no_request_and_the_host_hears_when_what_stayed_has_left(
	void **state) {
	static uint8_t large[1 << 20];
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	int fd = host_connect(&h);
	send_ping(fd);
	host_run(&h);
	assert_int_equal(answers(fd), 1);
	struct buffer *to = sessions_notify(h.sessions, h.client);
	assert_non_null(to);
	assert_int_equal(buffer_append(to, large, sizeof large), 0);
	assert_true(sessions_crowded(h.sessions, h.client, sizeof large - 1));
	assert_false(sessions_crowded(h.sessions, h.client, sizeof large));
	sessions_flush(h.sessions);
	/* There is more to send than the kernel takes. */
	assert_true(sessions_crowded(h.sessions, h.client, 0));
	for (size_t got = 0; got < sizeof large;) {
		ssize_t n = recv(fd, large, sizeof large, 0);
		got += n > 0 ? (size_t)n : 0;
		net_fixture_settle(&h.f);
		sessions_flush(h.sessions);
	}
	assert_false(sessions_crowded(h.sessions, h.client, 0));
	assert_int_equal(h.drained, 1);
	close(fd);
	/* Such a large answer put it into debt, so that its end is read in its turn. */
	host_serve(&h);
	assert_null(sessions_notify(h.sessions, h.client));
	host_done(&h);
}

#define SENDERS 100

static bool count_read(void *ctx, const struct session_view *view) {
	*(unsigned *)ctx += view->received > 0;
	return true;
}

static unsigned read_so_far(const struct host *h) {
	unsigned count = 0;
	sessions_each(h->sessions, 0, count_read, &count);
	return count;
}

/* Reading takes time, so of many connections that send, most are read in the time of the turns. */
static void of_many_connections_that_send_few_are_read_outside_of_the_turns(void **state) {
	struct host h;
	int fds[SENDERS];
	(void)state;
	host_start(&h, &open_limits);
	for (unsigned i = 0; i < SENDERS; i++) {
		fds[i] = host_connect(&h);
		send_ping(fds[i]);
		host_run(&h); /* a connection that has made a request is no stranger */
		assert_int_equal(answers(fds[i]), 1);
		send_bytes(fds[i], "\x94", 1);
	}
	host_run(&h);
	assert_int_equal(read_so_far(&h), SENDERS);
	for (unsigned i = 0; i < SENDERS; i++) {
		send_bytes(fds[i], "\x00\x01\xa4ping\x91\x80", 9);
	}
	net_fixture_settle(&h.f);
	sessions_flush(h.sessions);
	unsigned waiting = 0;
	for (unsigned i = 0; i < SENDERS; i++) {
		int unread = 0;
		assert_int_equal(ioctl(fds[i], TIOCOUTQ, &unread), 0);
		waiting += unread > 0;
	}
	assert_in_range(waiting, SENDERS / 2, SENDERS - 1);
	/* Where writing takes long, the answers of one turn leave in several. */
	for (unsigned i = 0; i < SENDERS; i++) {
		host_run(&h);
	}
	for (unsigned i = 0; i < SENDERS; i++) {
		assert_int_equal(answers(fds[i]), 1);
		close(fds[i]);
	}
	host_done(&h);
}

/* What a connection sends is charged for at once, although it is no whole request yet: of two that
 * send, one is read, because nobody waits then, and the other one waits for its turn. */
static void a_connection_that_has_sent_much_is_read_in_its_turn(void **state) {
	static uint8_t half[160 * KIB] = { 0x94, 0x00, 0x01, 0xa3, 'g', 'e', 't', 0x91, 0x81, 0xa3,
		'k', 'e', 'y', 0xc6, 0x00, 0x30 };
	struct host h;
	int fds[2];
	(void)state;
	host_start(&h, &open_limits);
	for (int i = 0; i < 2; i++) {
		fds[i] = host_connect(&h);
		send_bytes(fds[i], half, sizeof half);
	}
	net_fixture_settle(&h.f);
	assert_int_equal(received(&h), 64 * KIB);
	assert_false(sessions_serve(h.sessions));
	assert_int_equal(received(&h), 2 * 64 * KIB);
	host_run(&h);
	assert_int_equal(received(&h), 2 * sizeof half);
	close(fds[0]);
	close(fds[1]);
	host_serve(&h);
	host_done(&h);
}

/* Of two clients, the one that has asked for more is named, also when it has left. */
static void the_client_that_cost_most_in_a_turn_is_named(void **state) {
	struct host h;
	struct session_cost most;
	int fds[2];
	(void)state;
	host_start(&h, &open_limits);
	fds[0] = host_connect_from(&h, "little");
	fds[1] = host_connect_from(&h, "much");
	(void)sessions_costliest(h.sessions, NULL);
	assert_false(sessions_costliest(h.sessions, &most));
	send_ping(fds[0]);
	send_ping(fds[0]);
	send_status(fds[1]);
	host_run(&h);
	assert_true(sessions_costliest(h.sessions, &most));
	assert_string_equal(most.who.from->address, "much");
	assert_string_equal(most.method, "status");
	assert_int_equal(most.cost, 8);
	send_ping(fds[0]);
	host_run(&h);
	assert_true(sessions_costliest(h.sessions, &most));
	assert_string_equal(most.who.from->address, "little");
	sessions_watches(h.sessions, 2, 1000, 0);
	close(fds[1]);
	send_ping(fds[0]);
	host_run(&h);
	assert_true(sessions_costliest(h.sessions, &most));
	assert_string_equal(most.who.from->address, "much");
	assert_null(most.method);
	assert_int_equal(most.cost, 1008 / 8);
	close(fds[0]);
	host_run(&h);
	host_done(&h);
}

static void connections_above_the_limit_are_closed(void **state) {
	struct host h;
	char byte;
	(void)state;
	host_begin(&h, 1, 10);
	int one = host_connect(&h);
	send_ping(one);
	host_run(&h);
	assert_int_equal(answers(one), 1);
	int two = host_connect(&h);
	assert_int_equal(recv(two, &byte, 1, 0), 0);
	assert_int_equal(h.troubles, 1);
	/* It never was a client, and so none is gone. */
	assert_int_equal(h.gone, 0);
	close(one);
	close(two);
	host_done(&h);
}

static void garbage_behind_good_requests_spares_their_answers(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10);
	int fd = host_connect(&h);
	send_ping(fd);
	send_bytes(fd, "\xc1", 1);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	/* These are the ping's answer, and one bad_request. */
	assert_int_equal(answers(fd), 2);
	close(fd);
	net_fixture_settle(&h.f);
	assert_int_equal(h.gone, 1);
	host_done(&h);
}

/* One scenario: memory is needed to decode a batch, and, since it is served in pieces, to keep
 * it. */
static void scenario(struct host *h) {
	struct client_lock locks[40];
	struct allocator libc = alloc_libc(NULL);
	struct buffer out;
	for (size_t i = 0; i < 40; i++) {
		locks[i] = (struct client_lock){ .key = slice_str("some key"), .lease = SPAN_S };
		memset(locks[i].lock_id.b, (int)i + 1, sizeof locks[i].lock_id.b);
	}
	const struct client_request batch = { .msgid = 1, .method = CLIENT_EXTEND,
		.present = CLIENT_HAS_LOCKS, .locks = locks, .lock_count = 40 };
	buffer_init(&out, &libc, 1 << 20);
	assert_int_equal(client_request_encode(&batch, &out), 0);
	if (host_open(h, 10, 10) == 0) {
		int fd = host_connect(h);
		send(fd, out.data, 1000, MSG_NOSIGNAL);
		host_run(h);
		send(fd, out.data + 1000, out.size - 1000, MSG_NOSIGNAL);
		host_run(h);
		size_t answered = answers(fd);
		assert_true(h->fussy.refused || (answered == 1 && h->locks == 40));
		close(fd);
		host_run(h);
		assert_int_equal(sessions_count(h->sessions), 0);
	}
	buffer_done(&out);
}

static void without_memory_a_session_ends_and_nothing_else_does(void **state) {
	bool refused = true;
	(void)state;
	for (int at = 0; refused; at++) {
		struct host h;
		host_init(&h, at);
		scenario(&h);
		refused = h.fussy.refused;
		host_done(&h);
		assert_true(at < 1000);
	}
}

struct listing {
	uint64_t clients[8], received[8];
	unsigned strangers;
	size_t count, max;
};

static bool list_one(void *ctx, const struct session_view *view) {
	struct listing *l = ctx;
	assert_string_equal(view->who.from->address, "test");
	l->clients[l->count] = view->client;
	l->received[l->count] = view->received;
	l->strangers += view->stranger;
	return ++l->count < l->max;
}

static void connections_are_listed_in_their_order_from_any_of_them_on(void **state) {
	struct host h;
	int fds[4];
	(void)state;
	host_init(&h, INT_MAX);
	assert_int_equal(host_open(&h, 10, 10), 0);
	for (int i = 0; i < 4; i++) {
		fds[i] = host_connect(&h);
	}
	static const uint8_t ping[] = "\x94\x00\x01\xa4ping\x90";
	assert_int_equal(write(fds[1], ping, sizeof ping - 1), sizeof ping - 1);
	host_run(&h);
	struct listing all = { .max = 8 }, two = { .max = 2 }, behind = { .max = 8 };
	sessions_each(h.sessions, 0, list_one, &all);
	assert_int_equal(all.count, 4);
	assert_int_equal(all.received[1], sizeof ping - 1);
	/* All but the one that has made a request are strangers. */
	assert_int_equal(all.strangers, 3);
	sessions_each(h.sessions, all.clients[0], list_one, &two);
	assert_true(two.count == 2 && two.clients[0] == all.clients[1]);
	sessions_drop(h.sessions, all.clients[1]);
	/* That one is gone; those behind it are not. */
	sessions_each(h.sessions, all.clients[1], list_one, &behind);
	assert_true(behind.count == 2 && behind.clients[0] == all.clients[2]);
	for (int i = 0; i < 4; i++) {
		close(fds[i]);
	}
	host_done(&h);
}

UNIT(net_sessions) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_are_listed_in_their_order_from_any_of_them_on),
		cmocka_unit_test(pipelined_requests_are_answered_with_one_flush),
		cmocka_unit_test(
			a_request_too_many_is_refused_until_another_is_answered_but_no_ping),
		cmocka_unit_test(a_refusal_that_there_is_no_memory_for_ends_the_connection),
		cmocka_unit_test(an_answer_to_a_client_that_hung_up_goes_nowhere),
		cmocka_unit_test(
			a_client_that_closed_its_end_is_told_apart_from_one_that_the_node_closed),
		cmocka_unit_test(
		a_notification_answers_no_request_and_the_host_hears_when_what_stayed_has_left),
		cmocka_unit_test(of_many_connections_that_send_few_are_read_outside_of_the_turns),
		cmocka_unit_test(a_connection_that_has_sent_much_is_read_in_its_turn),
		cmocka_unit_test(the_client_that_cost_most_in_a_turn_is_named),
		cmocka_unit_test(connections_above_the_limit_are_closed),
		cmocka_unit_test(garbage_behind_good_requests_spares_their_answers),
		cmocka_unit_test(without_memory_a_session_ends_and_nothing_else_does),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
