/* These tests ask who has to go where there is too much, and who has not. */
#include "unit.h"

#include <stdio.h>

#include "sessions_host.h"
#include "stream.h"

/* ---- memory ---- */

/* The small one would be somewhat above its own limit, for which there is a reserve. It is the node
 * that has no room. */
static void a_client_below_its_limit_does_not_go_for_those_that_fill_the_node(void **state) {
	static const struct share_limits own = { { [SHARE_MEMORY] = 128 * KIB } };
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	host_start(&h, &limits);
	int large = host_connect_from(&h, "large");
	/* It has a buffer of 256 KiB. */
	send_half(&h, large, 250 * KIB);
	h.own = &own;
	int small = host_connect_from(&h, "small");
	/* It has a buffer of 64 KiB. */
	send_half(&h, small, 60 * KIB);
	limits.memory = sessions_memory(h.sessions) - 8 * KIB;
	sessions_set_limits(h.sessions, &limits);
	/* It would need a buffer of 128 KiB. */
	send_half(&h, small, 8 * KIB);
	assert_false(gone(&h, 2));
	assert_true(gone(&h, 1));
	close(large);
	close(small);
	host_done(&h);
}

static void a_program_with_the_node_inside_does_not_shield_those_who_fill_the_node(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	int fds[2];
	(void)state;
	host_start(&h, &limits);
	net_fixture_pair(fds);
	sessions_accept_inside(h.sessions, fds[0], "plain");
	host_run(&h);
	send_half(&h, fds[1], 250 * KIB);
	int large = host_connect_from(&h, "large"), two = host_connect_from(&h, "large"),
		small = host_connect_from(&h, "small");
	send_half(&h, large, 100 * KIB);
	limits.memory = sessions_memory(h.sessions);
	sessions_set_limits(h.sessions, &limits);
	send_status(small);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	send_status(two);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	assert_string_equal(h.limit, "client_memory");
	send_half(&h, small, 100 * KIB);
	assert_true(gone(&h, 2));
	assert_false(gone(&h, 1) || gone(&h, 4));
	close(fds[1]);
	close(large);
	close(two);
	close(small);
	host_done(&h);
}

/* ---- clients with a certificate ---- */

struct caller {
	struct stream *stream;
	bool ready, closed;
};

static void caller_ready(void *ctx) {
	((struct caller *)ctx)->ready = true;
}

static ssize_t caller_data(void *ctx, struct slice bytes, struct instant now) {
	(void)ctx;
	(void)now;
	return (ssize_t)bytes.size;
}

/* The caller does not hang up. */
static void caller_closed(void *ctx, int error, const char *why) {
	(void)error;
	(void)why;
	((struct caller *)ctx)->closed = true;
}

static bool caller_is_ready(void *ctx) {
	return ((struct caller *)ctx)->ready;
}

static bool caller_is_closed(void *ctx) {
	return ((struct caller *)ctx)->closed;
}

static void call_over_tls(struct host *h, const struct tls_contexts *node, SSL_CTX *client,
	struct caller *out) {
	static const struct stream_handlers handlers = { .ready = caller_ready, .data = caller_data,
		.closed = caller_closed };
	int fds[2];
	struct origin from;
	*out = (struct caller){ 0 };
	net_fixture_pair(fds);
	origin_named("somewhere", &from);
	const struct stream_options o = { .loop = &h->f.loop, .take_fd = fds[1], .tls = client,
		.role = TLS_CLIENT, .in_max = 4096, .out_max = 4096, .handlers = &handlers,
		.ctx = out };
	assert_int_equal(stream_new(&o, &out->stream), 0);
	sessions_accept(h->sessions, fds[0], node->client, TLS_CLIENT_REQUIRED, false, &from, NULL);
	assert_true(net_fixture_until(&h->f, caller_is_ready, out));
}

/* A connection that is refused counts for nobody's share, so that the next one gets its place. */
static void connections_that_were_refused_with_their_certificate_take_few_places(void **state) {
	struct host h;
	struct tls_contexts node;
	struct caller callers[6];
	char why[TLS_WHY_BYTES];
	(void)state;
	struct sessions_limits limits = open_limits;
	limits.identity.max[SHARE_CLIENTS] = 1;
	limits.strangers = (struct strangers_limits){ .count = 2, .per_address = 2,
		.bytes = 1 << 20 };
	host_start(&h, &limits);
	net_fixture_certificate(&h.f, "node", "pawl:node:node");
	net_fixture_certificate(&h.f, "client", "pawl:client:one");
	assert_int_equal(net_fixture_contexts(&h.f, "node", "node", TLS_CLIENT_REQUIRED, &node,
		why), 0);
	SSL_CTX *client = net_fixture_bare_context(&h.f, "client");
	for (int i = 0; i < 6; i++) {
		call_over_tls(&h, &node, client, &callers[i]);
		assert_true(i == 0 || net_fixture_until(&h.f, caller_is_closed, &callers[i]));
	}
	assert_false(callers[0].closed);
	assert_int_equal(sessions_strangers(h.sessions).now, 2);
	assert_int_equal(sessions_count(h.sessions), 3);
	for (int i = 0; i < 6; i++) {
		stream_free(callers[i].stream);
	}
	SSL_CTX_free(client);
	tls_contexts_free(&node);
	host_done(&h);
}

UNIT(net_culprits) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_below_its_limit_does_not_go_for_those_that_fill_the_node),
		cmocka_unit_test(
			a_program_with_the_node_inside_does_not_shield_those_who_fill_the_node),
		cmocka_unit_test(
			connections_that_were_refused_with_their_certificate_take_few_places),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
