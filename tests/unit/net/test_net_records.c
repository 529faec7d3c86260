/* What TLS does in addition to carrying bytes takes time, too: records and key updates are counted,
 * charged and bounded. */
#include "unit.h"

#include "sessions_host.h"
#include "stream.h"
#include "tls_engine.h"

/* One end of a connection. */
struct end {
	struct stream *stream;
	bool ready, closed;
	int error;
	char why[128];
	/* The bytes that have come, and the records, also those before the end. */
	size_t got;
	uint64_t records;
};

static void end_ready(void *ctx) {
	((struct end *)ctx)->ready = true;
}

static ssize_t end_data(void *ctx, struct slice bytes, struct instant now) {
	(void)now;
	((struct end *)ctx)->got += bytes.size;
	return (ssize_t)bytes.size;
}

static void end_closed(void *ctx, int error, const char *why) {
	struct end *e = ctx;
	e->closed = true;
	e->error = error;
	e->records = stream_counts(e->stream).records;
	snprintf(e->why, sizeof e->why, "%s", why ? why : "");
	stream_free(e->stream);
	e->stream = NULL;
}

static const struct stream_handlers end_handlers = { .ready = end_ready, .data = end_data,
	.closed = end_closed };

static void end_open(struct net_fixture *f, struct end *e, int fd, SSL_CTX *tls,
	enum tls_role role) {
	const struct stream_options o = { .loop = &f->loop, .take_fd = fd, .tls = tls, .role = role,
		.in_max = 1 << 20, .out_max = 1 << 20, .handlers = &end_handlers, .ctx = e };
	*e = (struct end){ 0 };
	assert_int_equal(stream_new(&o, &e->stream), 0);
}

static bool both_ready(void *ctx) {
	struct end *e = ctx;
	return e[0].ready && e[1].ready;
}

/* Two nodes that are connected. */
struct pair {
	struct net_fixture f;
	struct tls_contexts a, b;
	/* The first one receives what the second one sends. */
	struct end e[2];
};

static void pair_open(struct pair *p) {
	char why[TLS_WHY_BYTES];
	int fds[2];
	net_fixture_init(&p->f);
	net_fixture_certificate(&p->f, "a", "pawl:node:a");
	net_fixture_certificate(&p->f, "b", "pawl:node:b");
	assert_int_equal(net_fixture_contexts(&p->f, "a", "a", TLS_CLIENT_REQUIRED, &p->a, why), 0);
	assert_int_equal(net_fixture_contexts(&p->f, "b", "b", TLS_CLIENT_REQUIRED, &p->b, why), 0);
	net_fixture_pair(fds);
	end_open(&p->f, &p->e[0], fds[0], p->a.peer, TLS_SERVER);
	end_open(&p->f, &p->e[1], fds[1], p->b.peer, TLS_CLIENT);
	assert_true(net_fixture_until(&p->f, both_ready, p->e));
}

static void pair_close(struct pair *p) {
	stream_free(p->e[0].stream);
	stream_free(p->e[1].stream);
	tls_contexts_free(&p->a);
	tls_contexts_free(&p->b);
	net_fixture_done(&p->f);
}

/* All of them leave at once. */
static void update_keys(struct stream *from, unsigned count) {
	SSL *ssl = stream_ssl(from);
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED), 1);
		assert_int_equal(SSL_do_handshake(ssl), 1);
	}
	assert_int_equal(stream_flush(from), 0);
}

static void send_small_records(struct stream *from, unsigned count) {
	for (unsigned i = 0; i < count; i++) {
		assert_int_equal(SSL_write(stream_ssl(from), "x", 1), 1);
	}
	assert_int_equal(stream_flush(from), 0);
}

static void records_are_counted_one_by_one(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	uint64_t before = stream_counts(p.e[0].stream).records;
	send_small_records(p.e[1].stream, 100);
	net_fixture_settle(&p.f);
	assert_int_equal(p.e[0].got, 100);
	assert_int_equal(stream_counts(p.e[0].stream).records, before + 100);
	update_keys(p.e[1].stream, 10);
	net_fixture_settle(&p.f);
	assert_int_equal(stream_counts(p.e[0].stream).records, before + 100 + 10 * 17);
	pair_close(&p);
}

/* Key updates arrive by the hundred in one read. The connection ends, and most of them cost
 * nothing. */
static void many_key_updates_end_the_connection(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	uint64_t before = stream_counts(p.e[0].stream).records;
	update_keys(p.e[1].stream, TLS_LATE_MAX);
	send_small_records(p.e[1].stream, 1);
	net_fixture_settle(&p.f);
	assert_int_equal(p.e[0].got, 1);
	assert_false(p.e[0].closed);
	update_keys(p.e[1].stream, 400);
	net_fixture_settle(&p.f);
	assert_true(p.e[0].closed);
	assert_int_equal(p.e[0].error, PAWL_ETLS);
	assert_non_null(strstr(p.e[0].why, "KeyUpdate"));
	/* On a slow machine, some were forgiven meanwhile. */
	assert_in_range(p.e[0].records, before + 1 + (TLS_LATE_MAX + 1) * 17,
		before + 1 + 2 * TLS_LATE_MAX * 17);
	pair_close(&p);
}

static bool long_ago(void *ctx) {
	return instant_elapsed_short(time_source_now(), *(struct instant *)ctx) >= SPAN_S;
}

static void a_key_update_is_forgiven_after_a_second(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	update_keys(p.e[1].stream, TLS_LATE_MAX);
	net_fixture_settle(&p.f);
	struct instant then = time_source_now();
	assert_true(net_fixture_until(&p.f, long_ago, &then));
	update_keys(p.e[1].stream, 1);
	net_fixture_settle(&p.f);
	assert_false(p.e[0].closed);
	update_keys(p.e[1].stream, TLS_LATE_MAX);
	net_fixture_settle(&p.f);
	assert_true(p.e[0].closed);
	pair_close(&p);
}

#define CALLERS 16

/* Nothing that these connections send is a request, and nobody waits. Still only some of them are
 * read before the turn of the others comes. */
static void of_connections_that_update_keys_few_are_read_at_once(void **state) {
	struct host h;
	struct tls_contexts node;
	struct end callers[CALLERS];
	char why[TLS_WHY_BYTES];
	struct origin from;
	int fds[2];
	(void)state;
	host_start(&h, &open_limits);
	net_fixture_certificate(&h.f, "node", "pawl:node:node");
	net_fixture_certificate(&h.f, "client", "pawl:client:one");
	assert_int_equal(net_fixture_contexts(&h.f, "node", "node", TLS_CLIENT_REQUIRED, &node,
		why), 0);
	SSL_CTX *client = net_fixture_bare_context(&h.f, "client");
	origin_named("somewhere", &from);
	for (int i = 0; i < CALLERS; i++) {
		net_fixture_pair(fds);
		end_open(&h.f, &callers[i], fds[1], client, TLS_CLIENT);
		sessions_accept(h.sessions, fds[0], node.client, TLS_CLIENT_REQUIRED, false, &from,
			NULL);
		net_fixture_settle(&h.f);
		assert_true(callers[i].ready);
	}
	host_run(&h);
	uint64_t before = received(&h);
	/* A record of a key update has 27 bytes: 5 of the message, its type, and 21 of TLS. */
	for (int i = 0; i < CALLERS; i++) {
		update_keys(callers[i].stream, TLS_LATE_MAX);
	}
	net_fixture_settle(&h.f);
	assert_in_range(received(&h) - before, 1, CALLERS / 2 * TLS_LATE_MAX * 27);
	assert_true(h.ready);
	host_run(&h);
	assert_int_equal(received(&h) - before, CALLERS * TLS_LATE_MAX * 27);
	assert_int_equal(h.troubles, 0);
	update_keys(callers[0].stream, TLS_LATE_MAX);
	host_run(&h);
	assert_int_equal(h.troubles, 1);
	for (int i = 0; i < CALLERS; i++) {
		stream_free(callers[i].stream);
	}
	SSL_CTX_free(client);
	tls_contexts_free(&node);
	host_done(&h);
}

UNIT(net_records) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_counted_one_by_one),
		cmocka_unit_test(many_key_updates_end_the_connection),
		cmocka_unit_test(a_key_update_is_forgiven_after_a_second),
		cmocka_unit_test(of_connections_that_update_keys_few_are_read_at_once),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
