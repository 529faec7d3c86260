/* These tests are about streams: bytes with and without TLS, their time, and how a connection
 * ends. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net_fixture.h"
#include "pawl/error.h"
#include "stream.h"
#include "time_source.h"

/* One end of a stream. It keeps what it gets in units of `unit` bytes, so that incomplete input is
 * seen to stay. */
struct end {
	struct stream *stream;
	size_t unit, got, calls;
	uint8_t last;
	struct instant stamp;
	bool ready, closed, closed_there, free_on_data, hold;
	/* The stream has no data(), and so it holds what arrives. */
	bool told_only;
	/* What comes is compared with what send_five_million sends. */
	bool compares;
	int error;
};

static uint8_t byte_at(size_t place) {
	return (uint8_t)(place * 7 % 251);
}

static void end_ready(void *ctx) {
	((struct end *)ctx)->ready = true;
}

static ssize_t end_data(void *ctx, struct slice bytes, struct instant now) {
	struct end *e = ctx;
	size_t taken = bytes.size / e->unit * e->unit;
	e->calls++;
	e->stamp = now;
	if (e->hold) {
		stream_hold(e->stream);
		return 0;
	}
	for (size_t i = 0; e->compares && i < taken; i++) {
		assert_int_equal(bytes.data[i], byte_at(e->got + i));
	}
	if (taken) {
		e->got += taken;
		e->last = bytes.data[taken - 1];
	}
	if (e->free_on_data) {
		stream_free(e->stream);
		e->stream = NULL;
	}
	return (ssize_t)taken;
}

static void end_closed(void *ctx, int error, const char *why) {
	struct end *e = ctx;
	(void)why;
	e->closed = true;
	e->closed_there = stream_closed_there(e->stream);
	e->error = error;
	stream_free(e->stream);
	e->stream = NULL;
}

static void end_received(void *ctx, struct instant now) {
	struct end *e = ctx;
	e->calls += stream_is_held(e->stream);
	e->stamp = now;
}

static const struct stream_handlers end_handlers = { .ready = end_ready, .data = end_data,
	.closed = end_closed };
static const struct stream_handlers end_handlers_told = { .ready = end_ready,
	.closed = end_closed, .received = end_received };

static void end_open(struct net_fixture *f, struct end *e, int fd, SSL_CTX *tls,
	enum tls_role role) {
	const struct stream_options o = { .loop = &f->loop, .take_fd = fd, .tls = tls, .role = role,
		.in_max = 1 << 20, .out_max = 8 << 20,
		.handlers = e->told_only ? &end_handlers_told : &end_handlers, .ctx = e };
	e->unit = e->unit ? e->unit : 1;
	assert_int_equal(stream_new(&o, &e->stream), 0);
}

static bool ends_ready(void *ctx) {
	struct end *e = ctx;
	return e[0].ready && e[1].ready;
}

static bool end_got_all(void *ctx) {
	struct end *e = ctx;
	return e->got == 5000000;
}

static bool end_is_closed(void *ctx) {
	struct end *e = ctx;
	return e->closed;
}

static void open_both(struct net_fixture *f, struct end e[2], SSL_CTX *server, SSL_CTX *client) {
	int fds[2];
	net_fixture_pair(fds);
	end_open(f, &e[0], fds[0], server, TLS_SERVER);
	end_open(f, &e[1], fds[1], client, TLS_CLIENT);
}

static void send_five_million(struct net_fixture *f, struct end e[2]) {
	static uint8_t bytes[5000000];
	for (size_t i = 0; i < sizeof bytes; i++) {
		bytes[i] = byte_at(i);
	}
	assert_int_equal(buffer_append(stream_out(e[0].stream), bytes, sizeof bytes), 0);
	assert_int_equal(stream_flush(e[0].stream), 0);
	assert_true(net_fixture_until(f, end_got_all, &e[1]));
	assert_int_equal(e[1].last, bytes[sizeof bytes - 1]);
}

/* Sends them over a pair of streams to the second of these ends. */
static void five_million_arrive(struct end e[2]) {
	struct net_fixture f;
	net_fixture_init(&f);
	open_both(&f, e, NULL, NULL);
	assert_true(net_fixture_until(&f, ends_ready, e));
	send_five_million(&f, e);
	stream_free(e[0].stream);
	stream_free(e[1].stream);
	net_fixture_done(&f);
}

static void bytes_arrive_whole_when_the_kernel_takes_them_in_pieces(void **state) {
	struct end e[2] = { { .unit = 1 }, { .unit = 1000 } };
	(void)state;
	five_million_arrive(e);
}

/* What is read goes behind what was kept, if there is room. */
static void input_that_is_kept_for_long_arrives_in_order(void **state) {
	struct end e[2] = { { .unit = 1 }, { .unit = 5000000 / 8, .compares = true } };
	(void)state;
	five_million_arrive(e);
}

static void a_stream_writes_a_part_of_much_in_a_turn(void **state) {
	static uint8_t bytes[150000];
	struct net_fixture f;
	struct end e[2] = { { .unit = 1 }, { .unit = 1 } };
	(void)state;
	net_fixture_init(&f);
	open_both(&f, e, NULL, NULL);
	assert_true(net_fixture_until(&f, ends_ready, e));
	assert_int_equal(buffer_append(stream_out(e[0].stream), bytes, sizeof bytes), 0);
	assert_int_equal(stream_flush(e[0].stream), 0);
	assert_int_equal(stream_counts(e[0].stream).sent, 128 * 1024);
	net_fixture_settle(&f);
	assert_int_equal(stream_counts(e[0].stream).sent, sizeof bytes);
	stream_free(e[0].stream);
	stream_free(e[1].stream);
	net_fixture_done(&f);
}

static void tls_carries_the_same_bytes_and_names_the_other_side(void **state) {
	struct net_fixture f;
	struct end e[2] = { { .unit = 1 }, { .unit = 1000 } };
	struct tls_contexts a, b;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	net_fixture_certificate(&f, "b", "pawl:node:b");
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &a, why), 0);
	assert_int_equal(net_fixture_contexts(&f, "b", "b", TLS_CLIENT_REQUIRED, &b, why), 0);
	open_both(&f, e, a.peer, b.peer);
	assert_true(net_fixture_until(&f, ends_ready, e));
	struct tls_identity identity;
	char name[TLS_NAME_MAX + 1];
	assert_true(tls_peer_identity(stream_ssl(e[0].stream), "b", &identity));
	assert_true(identity.role == NODE_ROLE_MASTER && identity.serial[0] && identity.ends > 0);
	assert_false(tls_peer_identity(stream_ssl(e[0].stream), "a", &identity));
	assert_false(tls_peer_name(stream_ssl(e[0].stream), TLS_NAME_CLIENT, name));
	assert_string_equal(SSL_get_version(stream_ssl(e[0].stream)), "TLSv1.3");
	send_five_million(&f, e);
	stream_free(e[0].stream);
	stream_free(e[1].stream);
	tls_contexts_free(&a);
	tls_contexts_free(&b);
	net_fixture_done(&f);
}

static void the_side_that_ends_a_connection_is_told_apart_also_under_tls(void **state) {
	struct net_fixture f;
	struct tls_contexts a, b;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	net_fixture_certificate(&f, "b", "pawl:node:b");
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &a, why), 0);
	assert_int_equal(net_fixture_contexts(&f, "b", "b", TLS_CLIENT_REQUIRED, &b, why), 0);
	for (int in_order = 0; in_order < 2; in_order++) {
		struct end e[2] = { { .unit = 1 }, { .unit = 1 } };
		open_both(&f, e, a.peer, b.peer);
		assert_true(net_fixture_until(&f, ends_ready, e));
		if (in_order) {
			/* This end says that it closes, and closes when the other one has. */
			stream_close(e[1].stream);
		} else {
			/* This is how the kernel closes it when a process dies. */
			stream_free(e[1].stream);
		}
		assert_true(net_fixture_until(&f, end_is_closed, &e[0]));
		assert_true(e[0].closed_there);
		assert_true(!in_order || net_fixture_until(&f, end_is_closed, &e[1]));
	}
	tls_contexts_free(&a);
	tls_contexts_free(&b);
	net_fixture_done(&f);
}

static void a_certificate_of_another_authority_is_refused(void **state) {
	struct net_fixture f, stranger;
	struct end e[2] = { { .unit = 1 }, { .unit = 1 } };
	struct tls_contexts a;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_init(&stranger);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	net_fixture_certificate(&stranger, "b", "pawl:node:b");
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &a, why), 0);
	SSL_CTX *bare = net_fixture_bare_context(&stranger, "b");
	open_both(&f, e, a.peer, bare);
	assert_true(net_fixture_until(&f, end_is_closed, &e[0]));
	assert_int_equal(e[0].error, PAWL_ETLS);
	assert_false(e[0].ready);
	stream_free(e[1].stream);
	SSL_CTX_free(bare);
	tls_contexts_free(&a);
	net_fixture_done(&stranger);
	net_fixture_done(&f);
}

static void a_nodes_certificate_must_carry_its_name_and_fit_its_key(void **state) {
	struct net_fixture f;
	struct tls_contexts c;
	char why[TLS_WHY_BYTES], from[100], to[100];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	net_fixture_certificate(&f, "b", "pawl:node:b");
	assert_int_equal(net_fixture_contexts(&f, "a", "b", TLS_CLIENT_REQUIRED, &c, why),
		PAWL_ETLS);
	assert_non_null(strstr(why, "pawl:node:b"));
	snprintf(from, sizeof from, "%s/b.key", f.dir);
	snprintf(to, sizeof to, "%s/a.key", f.dir);
	assert_int_equal(rename(from, to), 0);
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &c, why),
		PAWL_ETLS);
	assert_non_null(strstr(why, "a.key"));
	net_fixture_done(&f);
}

/* The time of a message is read after its last byte was received, however long it waited in the
 * socket. */
static void bytes_are_stamped_when_they_are_received_not_when_they_were_sent(void **state) {
	struct net_fixture f;
	struct end e = { .unit = 1 };
	int fds[2];
	(void)state;
	net_fixture_init(&f);
	net_fixture_pair(fds);
	end_open(&f, &e, fds[0], NULL, TLS_SERVER);
	net_fixture_settle(&f);
	assert_int_equal(send(fds[1], "x", 1, 0), 1);
	struct instant before = time_source_now();
	while (instant_elapsed_short(time_source_now(), before) < 30 * SPAN_MS) {
	}
	struct instant late = time_source_now();
	net_fixture_settle(&f);
	assert_int_equal(e.got, 1);
	assert_true(e.stamp.boot >= late.boot && e.stamp.raw >= late.raw);
	stream_free(e.stream);
	close(fds[1]);
	net_fixture_done(&f);
}

static void a_stream_may_be_freed_by_the_handler_of_its_own_data(void **state) {
	struct net_fixture f;
	struct end e = { .unit = 4, .free_on_data = true };
	int fds[2];
	(void)state;
	net_fixture_init(&f);
	net_fixture_pair(fds);
	end_open(&f, &e, fds[0], NULL, TLS_SERVER);
	net_fixture_settle(&f);
	assert_int_equal(send(fds[1], "abcdefg", 7, 0), 7);
	net_fixture_settle(&f);
	assert_int_equal(e.calls, 1);
	char byte;
	/* The other end has closed it. */
	assert_int_equal(recv(fds[1], &byte, 1, 0), 0);
	close(fds[1]);
	net_fixture_done(&f);
}

static void last_words_leave_before_the_connection_closes(void **state) {
	struct net_fixture f;
	struct end e[2] = { { .unit = 1 }, { .unit = 1 } };
	(void)state;
	net_fixture_init(&f);
	open_both(&f, e, NULL, NULL);
	assert_true(net_fixture_until(&f, ends_ready, e));
	assert_int_equal(buffer_append(stream_out(e[0].stream), "farewell", 8), 0);
	stream_close(e[0].stream);
	assert_true(net_fixture_until(&f, end_is_closed, &e[1]));
	assert_int_equal(e[1].got, 8);
	assert_true(net_fixture_until(&f, end_is_closed, &e[0]));
	net_fixture_done(&f);
}

struct talker {
	struct end *end;
	int fd;
	struct instant said;
};

static bool end_is_closed_while_it_is_talked_to(void *ctx) {
	struct talker *t = ctx;
	if (instant_elapsed_short(time_source_now(), t->said) > 200 * SPAN_MS) {
		t->said = time_source_now();
		send(t->fd, "?", 1, MSG_NOSIGNAL);
	}
	return t->end->closed;
}

static void a_client_that_talks_on_after_the_last_words_keeps_no_connection(void **state) {
	struct net_fixture f;
	struct end e = { .unit = 1 };
	int fds[2];
	(void)state;
	net_fixture_init(&f);
	net_fixture_pair(fds);
	end_open(&f, &e, fds[0], NULL, TLS_SERVER);
	net_fixture_settle(&f);
	struct talker t = { &e, fds[1], time_source_now() };
	const struct instant begun = t.said;
	stream_close(e.stream);
	assert_true(net_fixture_until(&f, end_is_closed_while_it_is_talked_to, &t));
	assert_in_range(instant_elapsed_short(time_source_now(), begun), 900 * SPAN_MS, 3 * SPAN_S);
	close(fds[1]);
	net_fixture_done(&f);
}

static void input_that_never_becomes_complete_is_bounded(void **state) {
	struct net_fixture f;
	struct end e[2] = { { .unit = 1 }, { .unit = (size_t)1 << 30 } };
	static uint8_t bytes[3 << 20];
	(void)state;
	net_fixture_init(&f);
	open_both(&f, e, NULL, NULL);
	assert_true(net_fixture_until(&f, ends_ready, e));
	assert_int_equal(buffer_append(stream_out(e[0].stream), bytes, sizeof bytes), 0);
	assert_int_equal(stream_flush(e[0].stream), 0);
	assert_true(net_fixture_until(&f, end_is_closed, &e[1]));
	assert_int_equal(e[1].error, PAWL_ETOOLARGE);
	stream_free(e[0].stream);
	net_fixture_done(&f);
}

static bool end_is_held(void *ctx) {
	struct end *e = ctx;
	return stream_is_held(e->stream) && stream_input(e->stream).size == 1000;
}

/* `contexts`: NULL for plain. */
static void hold_and_release(struct net_fixture *f, SSL_CTX *server, SSL_CTX *client,
	bool told_only) {
	static const uint8_t bytes[1000];
	struct end e[2] = { { .unit = 1 }, { .unit = 1, .hold = true, .told_only = told_only } };
	const struct instant begun = time_source_now();
	open_both(f, e, server, client);
	assert_true(net_fixture_until(f, ends_ready, e));
	assert_int_equal(buffer_append(stream_out(e[0].stream), bytes, sizeof bytes), 0);
	/* The end comes right behind the bytes. */
	stream_close(e[0].stream);
	assert_true(net_fixture_until(f, end_is_held, &e[1]));
	net_fixture_settle(f);
	assert_true(e[1].calls == 1 && !e[1].closed);
	assert_true(e[1].stamp.boot >= begun.boot && e[1].stamp.raw >= begun.raw);
	stream_take(e[1].stream, 400);
	assert_int_equal(stream_input(e[1].stream).size, 600);
	stream_take(e[1].stream, 600);
	stream_release(e[1].stream);
	assert_true(net_fixture_until(f, end_is_closed, &e[1]));
	assert_true(e[1].closed_there);
	net_fixture_until(f, end_is_closed, &e[0]);
}

static void input_that_is_held_stays_and_so_does_the_end_behind_it(void **state) {
	struct net_fixture f;
	struct tls_contexts a, b;
	char why[TLS_WHY_BYTES];
	(void)state;
	net_fixture_init(&f);
	net_fixture_certificate(&f, "a", "pawl:node:a");
	net_fixture_certificate(&f, "b", "pawl:node:b");
	assert_int_equal(net_fixture_contexts(&f, "a", "a", TLS_CLIENT_REQUIRED, &a, why), 0);
	assert_int_equal(net_fixture_contexts(&f, "b", "b", TLS_CLIENT_REQUIRED, &b, why), 0);
	for (int told_only = 0; told_only < 2; told_only++) {
		hold_and_release(&f, NULL, NULL, told_only);
		hold_and_release(&f, a.peer, b.peer, told_only);
	}
	tls_contexts_free(&a);
	tls_contexts_free(&b);
	net_fixture_done(&f);
}

UNIT(net_stream) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_arrive_whole_when_the_kernel_takes_them_in_pieces),
		cmocka_unit_test(input_that_is_kept_for_long_arrives_in_order),
		cmocka_unit_test(a_stream_writes_a_part_of_much_in_a_turn),
		cmocka_unit_test(tls_carries_the_same_bytes_and_names_the_other_side),
		cmocka_unit_test(the_side_that_ends_a_connection_is_told_apart_also_under_tls),
		cmocka_unit_test(a_certificate_of_another_authority_is_refused),
		cmocka_unit_test(a_nodes_certificate_must_carry_its_name_and_fit_its_key),
		cmocka_unit_test(bytes_are_stamped_when_they_are_received_not_when_they_were_sent),
		cmocka_unit_test(a_stream_may_be_freed_by_the_handler_of_its_own_data),
		cmocka_unit_test(last_words_leave_before_the_connection_closes),
		cmocka_unit_test(a_client_that_talks_on_after_the_last_words_keeps_no_connection),
		cmocka_unit_test(input_that_never_becomes_complete_is_bounded),
		cmocka_unit_test(input_that_is_held_stays_and_so_does_the_end_behind_it),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
