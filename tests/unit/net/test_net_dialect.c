/* These tests are about commands of a dialect that make several requests, one after the other. */
#include "unit.h"

#include "sessions_host.h"

#define KEYS 20
/* More than a connection may have unread before the node stops to serve it. */
#define SHOWN ((size_t)300 << 10)

/* A dialect whose every byte is a command that asks KEYS times. */
struct many {
	struct client_request request;
	int asked, done;
	/* The requests let others go on; and how many bytes are written after each answer. */
	bool urgent;
	size_t shows;
};

static void many_close(void *state) {
	(void)state;
}

static enum dialect_step many_ask(struct many *m, const struct client_request **out_request) {
	m->request = (struct client_request){ .msgid = DIALECT_MSGID, .method = CLIENT_STATUS,
		.urgent = m->urgent };
	m->asked++;
	*out_request = &m->request;
	return DIALECT_ASK;
}

static enum dialect_step many_serve(void *state, struct slice in, size_t *out_taken,
	struct buffer *out, const struct client_request **out_request) {
	(void)out;
	*out_taken = in.size > 0;
	return in.size > 0 ? many_ask(state, out_request) : DIALECT_MORE;
}

static enum dialect_step many_answer(void *state, struct slice message, struct buffer *out,
	const struct client_request **out_request) {
	static const uint8_t shown[SHOWN];
	struct many *m = state;
	(void)message;
	assert_int_equal(buffer_append(out, shown, m->shows), 0);
	if (m->asked % KEYS == 0) {
		m->done++;
		return DIALECT_DONE;
	}
	return many_ask(m, out_request);
}

static const struct client_request *many_leave(void *state) {
	(void)state;
	return NULL;
}

static const struct dialect many_dialect = { .open = host_dialect_open, .close = many_close,
	.serve = many_serve, .answer = many_answer, .leave = many_leave };

/* Opens a host, to which one client connects by the dialect. Returns the client's end. */
static int open_many(struct host *h, struct many *many) {
	static struct dialect_use use;
	use = (struct dialect_use){ .dialect = &many_dialect, .server = many };
	host_begin(h, 10, 100);
	return host_connect_by(h, "test", &use);
}

static void each_request_of_a_command_waits_for_its_turn(void **state) {
	struct many many = { .urgent = false };
	struct host h;
	(void)state;
	const int fd = open_many(&h, &many), other = host_connect(&h);
	send_bytes(fd, "xx", 2);
	for (unsigned turn = 1; turn < KEYS; turn++) {
		/* Somebody else asks meanwhile, and is answered in the same turn. */
		send_ping(other);
		host_run(&h);
		assert_int_equal(answers(other), 1);
		assert_int_equal(many.asked, turn + 1);
		assert_int_equal(h.requests, 2 * turn);
	}
	while (many.done < 2) {
		host_run(&h);
	}
	assert_int_equal(many.asked, 2 * KEYS);
	close(fd);
	close(other);
	net_fixture_settle(&h.f);
	host_done(&h);
}

static void a_request_that_lets_others_go_on_is_made_at_once(void **state) {
	struct many many = { .urgent = true };
	struct host h;
	(void)state;
	const int fd = open_many(&h, &many);
	send_bytes(fd, "x", 1);
	host_run(&h);
	assert_int_equal(h.requests, KEYS);
	assert_int_equal(many.done, 1);
	close(fd);
	host_done(&h);
}

static void nothing_more_is_asked_while_the_client_does_not_read(void **state) {
	struct many many = { .shows = SHOWN };
	static uint8_t bytes[65536];
	struct host h;
	(void)state;
	const int fd = open_many(&h, &many);
	send_bytes(fd, "x", 1);
	for (int i = 0; i < 2 * KEYS; i++) {
		host_run(&h);
	}
	/* The socket has taken some. */
	assert_in_range(h.requests, 1, KEYS / 2);
	while (!many.done) {
		while (recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
		}
		host_run(&h);
	}
	assert_int_equal(h.requests, KEYS);
	close(fd);
	host_done(&h);
}

static void a_client_that_leaves_asks_for_nothing_more(void **state) {
	struct many many = { .urgent = false };
	struct host h;
	(void)state;
	const int fd = open_many(&h, &many);
	send_bytes(fd, "x", 1);
	host_run(&h);
	assert_int_equal(many.asked, 2);
	close(fd);
	h.hold = true;
	host_run(&h);
	host_run(&h);
	assert_int_equal(h.gone, 1);
	assert_in_range(h.requests, 1, 2);
	host_done(&h);
}

UNIT(net_dialect) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_request_of_a_command_waits_for_its_turn),
		cmocka_unit_test(a_request_that_lets_others_go_on_is_made_at_once),
		cmocka_unit_test(nothing_more_is_asked_while_the_client_does_not_read),
		cmocka_unit_test(a_client_that_leaves_asks_for_nothing_more),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
