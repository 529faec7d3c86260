/* Connections that end, of which only a part is forgotten in one turn. */
#include "unit.h"

#include "sessions_host.h"

/* That many requests are more than end at once. */
#define MANY 100

static void connections_with_much_under_way_end_over_some_turns(void **state) {
	struct host h;
	int fds[3];
	(void)state;
	host_begin(&h, 10, 10000);
	h.hold = true;
	for (int i = 0; i < 3; i++) {
		fds[i] = host_connect(&h);
		for (int j = 0; j < (i == 2 ? 1 : MANY); j++) {
			send_status(fds[i]);
		}
	}
	host_run(&h);
	for (int i = 0; i < 3; i++) {
		close(fds[i]);
	}
	net_fixture_settle(&h.f);
	/* The one with a single request is gone. */
	assert_int_equal(h.gone, 1);
	assert_true(h.ready);
	assert_null(sessions_answer(h.sessions, h.client - 1));
	h.kept[1] = 200;
	h.kept[2] = 100;
	assert_true(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 1);
	assert_true(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 2);
	assert_true(h.closed_there);
	assert_false(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 3);
	host_done(&h);
}

/* Closes the connections of clients that have that many watches each, the ids of which count from
 * 1. */
static void leave_with_watches(struct host *h, int clients, uint32_t watches) {
	int fds[64];
	host_begin(h, 64, 100);
	for (int i = 0; i < clients; i++) {
		fds[i] = host_connect(h);
		sessions_watches(h->sessions, (uint64_t)i + 1, watches, 0);
		h->kept[i + 1] = watches;
	}
	for (int i = 0; i < clients; i++) {
		close(fds[i]);
	}
	net_fixture_settle(&h->f);
}

/* In each turn 128 are forgotten, and the end of a connection weighs 8. */
static void many_watches_of_a_connection_are_forgotten_over_some_turns(void **state) {
	struct host h;
	unsigned turns = 0;
	(void)state;
	leave_with_watches(&h, 3, 1000);
	assert_true(h.ready);
	for (uint32_t before = 0; h.gone < 3; before = h.forgotten) {
		sessions_serve(h.sessions);
		assert_in_range(h.forgotten - before, 1, 128);
		turns++;
	}
	assert_int_equal(h.forgotten, 3000);
	assert_int_equal(turns, 3024 / 128 + 1);
	host_done(&h);
}

/* It is as if the client had left, but that the node has ended it. */
static void what_a_client_has_that_the_node_drops_is_forgotten_over_some_turns(void **state) {
	struct host h;
	struct session_who who;
	(void)state;
	host_begin(&h, 10, 10);
	int fds[2] = { host_connect(&h), host_connect(&h) };
	sessions_watches(h.sessions, 1, 1000, 0);
	h.kept[1] = 1000;
	assert_true(sessions_who(h.sessions, 1, &who));
	sessions_drop(h.sessions, 1);
	assert_false(sessions_who(h.sessions, 1, &who));
	assert_int_equal(h.gone, 0);
	assert_null(sessions_notify(h.sessions, 1));
	for (unsigned turns = 0; turns < 1000 / 128; turns++) {
		assert_true(sessions_serve(h.sessions));
	}
	assert_int_equal(h.gone, 0);
	assert_false(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 1);
	assert_false(h.closed_there);
	/* With little, it ends at once. */
	sessions_drop(h.sessions, 2);
	assert_int_equal(h.gone, 2);
	close(fds[0]);
	close(fds[1]);
	host_done(&h);
}

static void large_buffers_of_connections_that_end_are_given_back_over_some_turns(void **state) {
	static char part[2 << 20];
	struct host h;
	int fds[4];
	(void)state;
	host_begin(&h, 10, 10000);
	/* A value of 3 MiB, of which the first 2 MiB come. */
	static const char begun[] = "\x94\x00\x01\xa7" "acquire" "\x91\x81\xa5" "value"
		"\xc6\x00\x30\x00\x00";
	for (int i = 0; i < 4; i++) {
		fds[i] = host_connect(&h);
		send_bytes(fds[i], begun, sizeof begun - 1);
		for (size_t at = 0; at < sizeof part; at += 1 << 14) {
			send_bytes(fds[i], part + at, 1 << 14);
			host_serve(&h);
		}
	}
	for (int i = 0; i < 4; i++) {
		close(fds[i]);
	}
	net_fixture_settle(&h.f);
	assert_int_equal(h.gone, 0);
	uint64_t before = sessions_memory(h.sessions);
	for (bool more = true; more; before = sessions_memory(h.sessions)) {
		more = sessions_serve(h.sessions);
		/* What a turn gives back, and the rest of a connection that ends with it. */
		assert_in_range(before - sessions_memory(h.sessions), 1, (1024 + 512) * KIB);
	}
	assert_int_equal(h.gone, 4);
	host_done(&h);
}

/* Each of them has few watches, but all together have many: 8 and 24 watches weigh 32 of 128. */
static void of_connections_with_a_few_watches_only_some_end_in_a_turn(void **state) {
	struct host h;
	(void)state;
	leave_with_watches(&h, 12, 24);
	assert_int_equal(h.gone, 4);
	assert_true(sessions_serve(h.sessions));
	/* All that this turn had was used up, but for a part that is kept for them. */
	assert_int_equal(h.gone, 5);
	assert_true(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 9);
	assert_false(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 12);
	host_done(&h);
}

/* First the node cannot write to the connection; then it reads the end. */
static void a_connection_that_breaks_in_writing_ends_once(void **state) {
	struct host h;
	(void)state;
	host_begin(&h, 10, 10000);
	h.hold = true;
	int fd = host_connect(&h);
	for (int i = 0; i < MANY; i++) {
		send_status(fd);
	}
	host_run(&h);
	host_answer(&h);
	close(fd);
	sessions_flush(h.sessions);
	net_fixture_settle(&h.f);
	assert_int_equal(h.gone, 0);
	assert_false(sessions_serve(h.sessions));
	assert_int_equal(h.gone, 1);
	assert_true(h.closed_there);
	assert_int_equal(sessions_count(h.sessions), 0);
	host_done(&h);
}

/* More than are written to, or served, in one turn. */
#define CROWD 400

/* That many connections have sent a ping each. */
static void crowd_asks(struct host *h, int fds[CROWD]) {
	host_begin(h, CROWD, 10);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = host_connect(h);
		send_ping(fds[i]);
		host_run(h);
		assert_int_equal(answers(fds[i]), 1);
	}
	for (int i = 0; i < CROWD; i++) {
		send_ping(fds[i]);
	}
	h->requests = 0;
}

static void crowd_leaves(struct host *h, const int fds[CROWD]) {
	for (int i = 0; i < CROWD; i++) {
		close(fds[i]);
	}
	host_serve(h);
	host_done(h);
}

/* To write to a connection takes longer than to serve its ping, and comes later. A turn has a
 * quarter of a millisecond, and each connection counts as four microseconds of it. */
static void a_turn_serves_no_more_connections_than_it_can_write_to(void **state) {
	struct host h;
	int fds[CROWD];
	(void)state;
	crowd_asks(&h, fds);
	net_fixture_settle(&h.f);
	assert_true(sessions_serve(h.sessions));
	assert_in_range(h.requests, 1, 250 / 4 + 1);
	host_run(&h);
	assert_int_equal(h.requests, CROWD);
	crowd_leaves(&h, fds);
}

static void what_cannot_be_written_in_a_turn_is_written_in_the_next_ones(void **state) {
	struct host h;
	int fds[CROWD];
	unsigned got = 0;
	(void)state;
	crowd_asks(&h, fds);
	host_serve(&h);
	assert_int_equal(h.requests, CROWD);
	for (unsigned flushes = 0; got < CROWD; flushes++) {
		h.ready = false;
		sessions_flush(h.sessions);
		got = 0;
		for (int i = 0; i < CROWD; i++) {
			char byte;
			got += recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
		}
		/* The node is told that there is more. */
		assert_int_equal(h.ready, got < CROWD);
		/* As a system takes at least a microsecond to write, one turn is not enough. */
		assert_true(flushes > 0 || got < CROWD);
	}
	crowd_leaves(&h, fds);
}

/* Events, or answers that come by themselves, are written in each turn, while one client asks for
 * much and another one for little. */
static void who_asks_for_much_is_served_though_writing_never_ends(void **state) {
	struct host h;
	int fds[CROWD];
	(void)state;
	crowd_asks(&h, fds);
	host_serve(&h);
	sessions_flush(h.sessions);
	for (int i = 0; i < 100; i++) {
		send_status(fds[0]);
	}
	send_ping(fds[1]);
	h.takes = 20 * SPAN_US;
	net_fixture_settle(&h.f);
	assert_true(sessions_serve(h.sessions));
	for (int turn = 0; turn < 20; turn++) {
		const unsigned before = h.requests;
		for (uint64_t client = 1; client <= CROWD; client++) {
			assert_int_equal(buffer_append(sessions_notify(h.sessions, client), "x", 1),
				0);
		}
		sessions_flush(h.sessions);
		assert_true(sessions_serve(h.sessions));
		assert_true(h.requests > before);
	}
	h.takes = 0;
	crowd_leaves(&h, fds);
}

static void answers_that_were_not_written_yet_leave_when_the_node_ends(void **state) {
	struct host h;
	int fds[CROWD];
	(void)state;
	crowd_asks(&h, fds);
	host_serve(&h);
	sessions_flush(h.sessions);
	host_done(&h);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(answers(fds[i]), 1);
		close(fds[i]);
	}
}

/* ---- a dialect ---- */

#define POOR_TAKES 5
/* A dialect that has taken so many keys by its first request, and has no memory to say so. */
struct poor {
	struct client_request request;
	int given_back;
	bool closed;
};

static void poor_close(void *state) {
	struct poor *p = state;
	p->closed = true;
}

static const struct client_request *poor_ask(struct poor *p, enum client_method method) {
	p->request = (struct client_request){ .msgid = DIALECT_MSGID, .method = method,
		.gives_back = method == CLIENT_RELEASE };
	return &p->request;
}

static enum dialect_step poor_serve(void *state, struct slice in, size_t *out_taken,
	struct buffer *out, const struct client_request **out_request) {
	(void)out;
	*out_taken = in.size;
	*out_request = poor_ask(state, CLIENT_PING);
	return DIALECT_ASK;
}

static enum dialect_step poor_answer(void *state, struct slice message, struct buffer *out,
	const struct client_request **out_request) {
	(void)state;
	(void)message;
	(void)out;
	*out_request = NULL;
	return DIALECT_BROKEN;
}

static const struct client_request *poor_leave(void *state) {
	struct poor *p = state;
	return ++p->given_back > POOR_TAKES ? NULL : poor_ask(p, CLIENT_RELEASE);
}

/* Its rate allows two requests to release something. */
static void what_a_dialect_cannot_tell_is_given_back(void **state) {
	static const struct share_limits slow = { .max = { [SHARE_RATE] = 1 } };
	static const struct dialect poor_dialect = { .open = host_dialect_open, .close = poor_close,
		.serve = poor_serve, .answer = poor_answer, .leave = poor_leave };
	struct poor poor = { .closed = false };
	const struct dialect_use use = { .dialect = &poor_dialect, .server = &poor };
	struct host h;
	(void)state;
	host_begin(&h, 10, 100);
	h.own = &slow;
	const int fd = host_connect_by(&h, "test", &use);
	send_bytes(fd, "take", 4);
	host_run(&h);
	assert_int_equal(h.method, CLIENT_RELEASE);
	assert_int_equal(h.requests, 1 + POOR_TAKES);
	assert_int_equal(h.over, 0);
	assert_int_equal(h.gone, 1);
	assert_true(poor.closed);
	close(fd);
	host_done(&h);
}

UNIT(net_leaving) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_with_much_under_way_end_over_some_turns),
		cmocka_unit_test(many_watches_of_a_connection_are_forgotten_over_some_turns),
		cmocka_unit_test(
			what_a_client_has_that_the_node_drops_is_forgotten_over_some_turns),
		cmocka_unit_test(
			large_buffers_of_connections_that_end_are_given_back_over_some_turns),
		cmocka_unit_test(of_connections_with_a_few_watches_only_some_end_in_a_turn),
		cmocka_unit_test(a_connection_that_breaks_in_writing_ends_once),
		cmocka_unit_test(a_turn_serves_no_more_connections_than_it_can_write_to),
		cmocka_unit_test(what_cannot_be_written_in_a_turn_is_written_in_the_next_ones),
		cmocka_unit_test(who_asks_for_much_is_served_though_writing_never_ends),
		cmocka_unit_test(answers_that_were_not_written_yet_leave_when_the_node_ends),
		cmocka_unit_test(what_a_dialect_cannot_tell_is_given_back),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
