/* TLS handshakes take turns, and are bounded. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_fixture.h"
#include "pawl/error.h"
#include "stream.h"
#include "time_source.h"

struct stepper {
	struct handshake handshake;
	/* `at` is the number of the step that this handshake had. */
	unsigned *count, at;
};

static void stepper_step(void *ctx) {
	struct stepper *s = ctx;
	s->at = ++*s->count;
}

static void turn(struct net_fixture *f) {
	assert_true(event_base_loop(f->base, EVLOOP_ONCE) >= 0);
}

static void one_handshake_goes_on_in_a_turn_and_members_are_first(void **state) {
	struct net_fixture f;
	struct stepper s[4];
	unsigned count = 0;
	(void)state;
	net_fixture_init(&f);
	for (int i = 0; i < 4; i++) {
		s[i] = (struct stepper){ .handshake = { .step = stepper_step, .ctx = &s[i] },
			.count = &count };
		handshakes_wait(&f.loop.handshakes, &s[i].handshake, i == 3);
	}
	/* This handshake waits already. */
	handshakes_wait(&f.loop.handshakes, &s[0].handshake, false);
	handshakes_leave(&f.loop.handshakes, &s[1].handshake);
	assert_int_equal(f.loop.handshakes.waiting, 3);
	for (unsigned i = 1; i <= 3; i++) {
		turn(&f);
		assert_int_equal(count, i);
	}
	assert_int_equal(s[3].at, 1);
	assert_int_equal(s[0].at, 2);
	assert_int_equal(s[2].at, 3);
	assert_int_equal(s[1].at + f.loop.handshakes.waiting, 0);
	net_fixture_done(&f);
}

#define STEP (2 * SPAN_MS)

static void step_for_long(void *ctx) {
	struct instant begun = time_source_now();
	(void)ctx;
	while (instant_elapsed_short(time_source_now(), begun) < STEP) {
	}
}

static void what_a_step_took_is_owed_to_others(void **state) {
	struct handshake handshake = { .step = step_for_long };
	struct net_fixture f;
	(void)state;
	net_fixture_init(&f);
	handshakes_wait(&f.loop.handshakes, &handshake, false);
	turn(&f);
	assert_true(handshakes_take_owed(&f.loop.handshakes) >= STEP);
	assert_int_equal(handshakes_take_owed(&f.loop.handshakes), 0);
	net_fixture_done(&f);
}

struct server {
	struct stream *stream;
	bool closed;
	char why[128];
};

static void server_ready(void *ctx) {
	(void)ctx;
}

static ssize_t server_data(void *ctx, struct slice bytes, struct instant now) {
	(void)ctx;
	(void)now;
	return (ssize_t)bytes.size;
}

static void server_closed(void *ctx, int error, const char *why) {
	struct server *s = ctx;
	assert_int_equal(error, PAWL_ETLS);
	snprintf(s->why, sizeof s->why, "%s", why);
	s->closed = true;
	stream_free(s->stream);
}

static const struct stream_handlers server_handlers = { .ready = server_ready, .data = server_data,
	.closed = server_closed };

static bool server_is_closed(void *ctx) {
	return ((struct server *)ctx)->closed;
}

#define SERVERS 3

/* Returns how many of the servers have answered. */
static unsigned answered(const int *fds) {
	unsigned count = 0;
	char byte;
	for (int i = 0; i < SERVERS; i++) {
		count += recv(fds[i], &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
	}
	return count;
}

static void connections_whose_hello_came_at_once_are_answered_one_in_a_turn(void **state) {
	struct net_fixture f;
	struct server servers[SERVERS] = { 0 };
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	int fds[2], clients[SERVERS];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &c, why), 0);
	struct tls_engine *client = tls_engine_new(c.peer, TLS_CLIENT);
	assert_int_equal(tls_engine_feed(client, slice_of(NULL, 0)), 0);
	struct slice hello = tls_engine_outgoing(client);
	for (int i = 0; i < SERVERS; i++) {
		net_fixture_pair(fds);
		clients[i] = fds[1];
		const struct stream_options o = { .loop = &f.loop, .take_fd = fds[0],
			.tls = c.client, .role = TLS_SERVER, .in_max = 100, .out_max = 100,
			.handlers = &server_handlers, .ctx = &servers[i] };
		assert_int_equal(stream_new(&o, &servers[i].stream), 0);
		assert_int_equal(send(fds[1], hello.data, hello.size, MSG_NOSIGNAL), hello.size);
	}
	/* All have arrived before the first one is answered. */
	while (f.loop.handshakes.waiting < SERVERS) {
		assert_int_equal(answered(clients), 0);
		turn(&f);
	}
	for (unsigned i = 0; i <= SERVERS; i++) {
		assert_int_equal(answered(clients), i);
		if (i < SERVERS) {
			turn(&f);
		}
	}
	for (int i = 0; i < SERVERS; i++) {
		stream_free(servers[i].stream);
		close(clients[i]);
	}
	tls_engine_free(client);
	tls_contexts_free(&c);
	net_fixture_done(&f);
}

/* The ClientHello says that it has 100,000 bytes, in records of 16,000. */
static void a_handshake_may_not_bring_more_than_certificates_need(void **state) {
	static uint8_t hello[48015] = { 0x16, 3, 1, 0x3e, 0x80, 1, 1, 0x86, 0xa0, 3, 3 };
	struct net_fixture f;
	struct server server = { 0 };
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	int fds[2];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &c, why), 0);
	net_fixture_pair(fds);
	const struct stream_options o = { .loop = &f.loop, .take_fd = fds[0], .tls = c.client,
		.role = TLS_SERVER, .in_max = 100, .out_max = 100, .handlers = &server_handlers,
		.ctx = &server };
	assert_int_equal(stream_new(&o, &server.stream), 0);
	for (size_t record = 1; record < 3; record++) {
		memcpy(hello + record * 16005, hello, 5);
	}
	assert_int_equal(send(fds[1], hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
	assert_true(net_fixture_until(&f, server_is_closed, &server));
	assert_string_equal(server.why, "the TLS handshake is too large");
	assert_int_equal(f.loop.handshakes.waiting, 0);
	close(fds[1]);
	tls_contexts_free(&c);
	net_fixture_done(&f);
}

UNIT(net_handshakes) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_handshake_goes_on_in_a_turn_and_members_are_first),
		cmocka_unit_test(what_a_step_took_is_owed_to_others),
		cmocka_unit_test(connections_whose_hello_came_at_once_are_answered_one_in_a_turn),
		cmocka_unit_test(a_handshake_may_not_bring_more_than_certificates_need),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
