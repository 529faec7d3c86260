/* Connections that end, of which only a part is forgotten in one turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sessions_host.h"

/* That many requests are more than end at once. */
#define MANY 100

static void connections_with_much_under_way_end_over_some_turns(void **state) {
	struct host h;
	int fds[3];
	(void)state;
	host_init(&h, -1);
	assert_int_equal(host_open(&h, 10, 10000), 0);
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
	host_init(h, -1);
	assert_int_equal(host_open(h, 64, 100), 0);
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

/* In each turn 128 are forgotten, and the end of a connection weighs 1. */
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
	assert_int_equal(turns, 3003 / 128 + 1);
	host_done(&h);
}

static void connections_with_large_buffers_end_in_turns_of_their_own(void **state) {
	static char part[2 << 20];
	struct host h;
	int fds[4];
	(void)state;
	host_init(&h, -1);
	assert_int_equal(host_open(&h, 10, 10000), 0);
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
	unsigned turns = 0;
	while (sessions_serve(h.sessions)) {
		turns++;
	}
	assert_int_equal(h.gone, 4);
	assert_in_range(turns, 1, 3);
	host_done(&h);
}

/* Each of them has few watches, but all together have many: 1 and 31 watches weigh 32 of 128. */
static void of_connections_with_a_few_watches_only_some_end_in_a_turn(void **state) {
	struct host h;
	(void)state;
	leave_with_watches(&h, 12, 31);
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
	host_init(&h, -1);
	assert_int_equal(host_open(&h, 10, 10000), 0);
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

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connections_with_much_under_way_end_over_some_turns),
		cmocka_unit_test(many_watches_of_a_connection_are_forgotten_over_some_turns),
		cmocka_unit_test(connections_with_large_buffers_end_in_turns_of_their_own),
		cmocka_unit_test(of_connections_with_a_few_watches_only_some_end_in_a_turn),
		cmocka_unit_test(a_connection_that_breaks_in_writing_ends_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
