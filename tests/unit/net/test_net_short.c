/* These tests ask what a turn does besides handing over requests: what it reads at once, and what
 * it forgets of those who have left. */
#include "unit.h"

#include "sessions_host.h"

/* More than is served in the turns of a test. */
#define MANY 200
/* What is read from one connection in a short turn. */
#define SHORT_READ (16 * KIB)

/* The beginning of a request that is larger than this. */
static const uint8_t half[64 * KIB] = { 0x94, 0x00, 0x01, 0xa3, 'g', 'e', 't', 0x91, 0x81, 0xa3,
	'k', 'e', 'y', 0xc6, 0x00, 0x30 };

/* A client of another identity than the others. It has asked for nothing yet. */
static int connect_elsewhere(struct host *h) {
	int fds[2];
	struct origin from;
	net_fixture_pair(fds);
	origin_named("elsewhere", &from);
	sessions_accept(h->sessions, fds[0], NULL, TLS_CLIENT_OFF, false, &from, NULL);
	net_fixture_settle(&h->f);
	return fds[1];
}

static unsigned served_in_a_turn(struct host *h) {
	const unsigned before = h->requests;
	assert_true(sessions_serve(h->sessions));
	return h->requests - before;
}

/* Returns a connection with more requests than the next turns serve. It was not alone in the turn
 * before. */
static int begin(struct host *h) {
	host_begin(h, 10, 10000);
	h->hold = true;
	h->takes = 20 * SPAN_US;
	const int greedy = host_connect(h);
	for (int i = 0; i < MANY; i++) {
		send_status(greedy);
	}
	net_fixture_settle(&h->f);
	served_in_a_turn(h);
	return greedy;
}

/* As above, but another connection asks for little, so turns are short from now on. */
static void begin_short(struct host *h, int fds[2]) {
	fds[0] = begin(h);
	fds[1] = host_connect(h);
	send_ping(fds[1]);
	net_fixture_settle(&h->f);
	served_in_a_turn(h);
	assert_true(h->pinged);
	served_in_a_turn(h);
	assert_true(sessions_turns_are_short(h->sessions));
}

static void close_all(struct host *h, const int *fds, int count) {
	for (int i = 0; i < count; i++) {
		close(fds[i]);
	}
	host_done(h);
}

static void little_is_read_at_a_time_while_turns_are_short(void **state) {
	struct host h;
	int fds[3];
	(void)state;
	begin_short(&h, fds);
	fds[2] = connect_elsewhere(&h);
	const uint64_t before = received(&h);
	send_bytes(fds[2], half, sizeof half);
	net_fixture_settle(&h.f);
	assert_int_equal(received(&h) - before, SHORT_READ);
	host_run(&h);
	assert_int_equal(received(&h) - before, sizeof half);
	close_all(&h, fds, 3);
}

static void few_connections_are_read_at_once_while_turns_are_short(void **state) {
	struct host h;
	int fds[6];
	(void)state;
	begin_short(&h, fds);
	for (int i = 2; i < 6; i++) {
		fds[i] = connect_elsewhere(&h);
	}
	const uint64_t before = received(&h);
	for (int i = 2; i < 6; i++) {
		send_bytes(fds[i], half, SHORT_READ);
	}
	net_fixture_settle(&h.f);
	assert_int_equal(received(&h) - before, 2 * SHORT_READ);
	/* The others are fresh, so they are read before anything else is served, also if a busy
	 * processor makes that two turns. */
	unsigned served = 0;
	while (received(&h) - before < 4 * SHORT_READ) {
		assert_int_equal(served, 0);
		served = served_in_a_turn(&h);
	}
	close_all(&h, fds, 6);
}

/* A turn has a quarter of a millisecond, in which it would serve 13 requests. */
static void what_was_read_at_once_is_taken_off_the_turn(void **state) {
	struct host h;
	int fds[3];
	(void)state;
	/* A busy processor would make some turns short in any case. */
	for (int i = 0; i < 8; i++) {
		fds[0] = begin(&h);
		fds[1] = connect_elsewhere(&h);
		fds[2] = connect_elsewhere(&h);
		send_bytes(fds[1], half, sizeof half);
		send_bytes(fds[2], half, sizeof half);
		net_fixture_settle(&h.f);
		assert_in_range(served_in_a_turn(&h), 0, 8);
		close_all(&h, fds, 3);
	}
}

static void what_has_left_is_taken_off_the_turns_but_does_not_stop_them(void **state) {
	struct host h;
	int fds[2];
	unsigned served = 0;
	(void)state;
	fds[0] = begin(&h);
	fds[1] = host_connect(&h);
	sessions_watches(h.sessions, 2, 1280, 0);
	h.kept[2] = 1280;
	h.forgetting = SPAN_MS;
	shutdown(fds[1], SHUT_WR);
	net_fixture_settle(&h.f);
	for (int turn = 0; turn < 10; turn++) {
		const unsigned now = served_in_a_turn(&h);
		assert_in_range(now, 0, 5);
		served += now;
	}
	assert_int_equal(h.forgotten, 1280);
	assert_true(served >= 10);
	close_all(&h, fds, 2);
}

UNIT(net_short) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(little_is_read_at_a_time_while_turns_are_short),
		cmocka_unit_test(few_connections_are_read_at_once_while_turns_are_short),
		cmocka_unit_test(what_was_read_at_once_is_taken_off_the_turn),
		cmocka_unit_test(what_has_left_is_taken_off_the_turns_but_does_not_stop_them),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
