/* These tests are about links between nodes: dialling, resets, and who is refused. */
#include "peers_pair.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "time_source.h"

/* The name is looked up in a thread. An address of it at which the listener is not is passed over
 * by the next try. */
static void a_name_is_looked_up_and_dialled(void **state) {
	struct pair p;
	char address[64];
	(void)state;
	pair_open(&p);
	peers_free(p.a.peers);
	snprintf(address, sizeof address, "localhost:%s",
		strrchr(listener_address(p.b.listener), ':') + 1);
	const struct peers_node nodes[2] = { { "a", listener_address(p.a.listener), false,
		{ { 0 } }, false, false }, { "b", address, true, { { 0 } }, false, false } };
	party_make_with(&p.f, &p.a, "a", nodes);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	pair_close(&p);
}

static void a_look_up_under_way_may_be_given_up(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	peers_free(p.a.peers);
	const struct peers_node nodes[2] = { { "a", "localhost:1", false, { { 0 } }, false, false },
		{ "b", "localhost:1", true, { { 0 } }, false, false } };
	party_make_with(&p.f, &p.a, "a", nodes);
	pair_start(&p);
	assert_true(event_base_loop(p.f.base, EVLOOP_ONCE) >= 0);
	pair_close(&p);
}

static void one_link_joins_two_nodes_and_carries_frames(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	assert_null(peers_out(p.a.peers, 1));
	assert_string_equal(peers_release(p.a.peers, 1), "");
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_string_equal(peers_release(p.a.peers, 1), "of b");
	assert_string_equal(peers_release(p.b.peers, 0), "of a");
	assert_string_equal(p.a.who, "b");
	assert_string_equal(p.b.who, "a");
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	net_fixture_settle(&p.f);
	assert_int_equal(p.a.ups, 1);
	assert_int_equal(p.a.troubles + p.b.troubles, 0);
	pair_close(&p);
}

static void a_link_that_was_reset_is_dialled_again(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	/* b does not dial; a sees the end, and does. */
	peers_reset(p.b.peers, 0);
	assert_true(net_fixture_until(&p.f, both_up_twice, &p));
	assert_int_equal(p.a.downs, 1);
	/* a did not close it by itself. */
	assert_int_equal(p.a.closed, 1);
	/* The side that resets the link is not told. */
	assert_int_equal(p.b.downs, 0);
	pair_close(&p);
}

static void what_is_not_a_frame_costs_the_link(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	p.b.refuse = PAWL_EPROTOCOL;
	send_frames(&p.a, 1, 1);
	assert_true(net_fixture_until(&p.f, both_up_twice, &p));
	assert_int_equal(p.b.downs, 1);
	assert_int_equal(p.b.closed, 0);
	pair_close(&p);
}

static void use_tls(struct net_fixture *f, struct party *p, const char *certificate) {
	SSL_CTX *bare = net_fixture_bare_context(f, certificate);
	peers_set_tls(p->peers, bare);
	SSL_CTX_free(bare);
}

static void use_real_tls(struct net_fixture *f, struct party *p, const char *name) {
	struct tls_contexts c;
	char why[TLS_WHY_BYTES];
	assert_int_equal(net_fixture_contexts(f, name, name, TLS_CLIENT_REQUIRED, &c, why), 0);
	peers_set_tls(p->peers, c.peer);
	tls_contexts_free(&c);
}

static void nodes_with_their_own_certificates_are_linked(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	net_fixture_certificate(&p.f, "a", "pawl:node:a");
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use_real_tls(&p.f, &p.a, "a");
	use_real_tls(&p.f, &p.b, "b");
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	pair_close(&p);
}

/* b is the victim. Whoever dials it shows this certificate (NULL: none). */
static void refused_by_b(const char *uri, const char *expected, bool stranger) {
	struct pair p;
	pair_open(&p);
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use_real_tls(&p.f, &p.b, "b");
	if (uri) {
		net_fixture_certificate(&p.f, "x", uri);
	}
	use_tls(&p.f, &p.a, uri ? "x" : NULL);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	net_fixture_settle(&p.f);
	assert_int_equal(p.b.ups, 0);
	if (expected) {
		assert_non_null(strstr(p.b.why, expected));
	}
	assert_int_equal(p.b.stranger, stranger);
	assert_true(peers_strangers(p.b.peers).refused > 0);
	pair_close(&p);
}

static void a_peer_under_anothers_name_is_refused(void **state) {
	(void)state;
	refused_by_b("pawl:node:c", "it says it is node a, but it shows the certificate of node c "
		"(serial ", true);
}

static void a_clients_certificate_cannot_speak_as_a_peer(void **state) {
	(void)state;
	refused_by_b("pawl:client:a", "it says it is node a, but it shows the certificate of "
		"client a (serial ", true);
}

static void a_peer_without_a_certificate_is_refused(void **state) {
	(void)state;
	refused_by_b(NULL, NULL, true);
}

/* The certificate says which node of the configuration it is, though it claims to be another one.
 * So that node is in trouble. */
static void a_node_of_the_configuration_is_no_stranger_whatever_it_says(void **state) {
	(void)state;
	refused_by_b("pawl:node:b", "it says it is node a, but it shows the certificate of node b "
		"(serial ", false);
}

/* Where the versions do not meet, the name is not even compared with the certificate. */
static void with_a_certificate_a_node_of_another_version_is_no_stranger(void **state) {
	struct pair p;
	(void)state;
	pair_open_versions(&p, PEER_VERSION_MAX + 1);
	net_fixture_certificate(&p.f, "a", "pawl:node:a");
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use_real_tls(&p.f, &p.a, "a");
	use_real_tls(&p.f, &p.b, "b");
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_false(p.b.stranger);
	assert_non_null(strstr(p.b.why, "upgrade a "));
	pair_close(&p);
}

static int call(const struct party *p) {
	struct address a;
	struct address_socket at;
	assert_int_equal(address_parse(listener_address(p->listener), &a), 0);
	assert_int_equal(address_resolve(&a, true, &at, 1), 1);
	int fd = socket(at.addr.ss_family, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.addr, at.size), 0);
	return fd;
}

/* Plays a client of TLS: what the server has sent goes in, and what is to be sent comes out. */
static size_t say_hands(SSL *ssl, int fd, uint8_t *out, size_t size) {
	uint8_t in[8192];
	ssize_t n = recv(fd, in, sizeof in, MSG_DONTWAIT);
	if (n > 0) {
		assert_int_equal(BIO_write(SSL_get_rbio(ssl), in, (int)n), n);
	}
	(void)SSL_do_handshake(ssl);
	const int said = BIO_read(SSL_get_wbio(ssl), out, (int)size);
	return said > 0 ? (size_t)said : 0;
}

/* The certificate of a is no secret. What proves that a node has its key comes last, and does not
 * come here. */
static void a_peer_that_shows_a_certificate_and_proves_nothing_is_a_stranger(void **state) {
	struct pair p;
	uint8_t out[8192];
	(void)state;
	pair_open(&p);
	net_fixture_certificate(&p.f, "a", "pawl:node:a");
	net_fixture_certificate(&p.f, "b", "pawl:node:b");
	use_real_tls(&p.f, &p.b, "b");
	peers_start(p.b.peers);
	SSL_CTX *context = net_fixture_bare_context(&p.f, "a");
	SSL *ssl = SSL_new(context);
	SSL_set_connect_state(ssl);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	const int fd = call(&p.b);
	for (int i = 0; i < 1000 && !SSL_is_init_finished(ssl); i++) {
		size_t n = say_hands(ssl, fd, out, sizeof out);
		n = SSL_is_init_finished(ssl) ? n - 1 : n;
		assert_int_equal(send(fd, out, n, 0), n);
		net_fixture_settle(&p.f);
	}
	/* This side believes that the handshake is finished. */
	assert_true(SSL_is_init_finished(ssl));
	close(fd);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_true(p.b.stranger);
	SSL_free(ssl);
	SSL_CTX_free(context);
	pair_close(&p);
}

static void the_dialler_checks_whom_it_reached(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	net_fixture_certificate(&p.f, "a", "pawl:node:a");
	net_fixture_certificate(&p.f, "c", "pawl:node:c");
	use_real_tls(&p.f, &p.a, "a");
	use_tls(&p.f, &p.b, "c");
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, a_troubled, &p));
	assert_int_equal(p.a.ups, 0);
	pair_close(&p);
}

static bool b_dialled_thrice(void *ctx) {
	return ((struct pair *)ctx)->b.accepted >= 3;
}

static void nodes_of_versions_that_do_not_meet_say_so_on_both_sides_once(void **state) {
	struct pair p;
	(void)state;
	pair_open_versions(&p, PEER_VERSION_MAX + 1);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, a_troubled, &p));
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_true(net_fixture_until(&p.f, b_dialled_thrice, &p));
	net_fixture_settle(&p.f);
	assert_int_equal(p.a.troubles, 1);
	assert_int_equal(p.b.troubles, 1);
	assert_string_equal(p.a.why, "node b speaks versions 2 to 2 of the protocol between "
		"nodes, and this node 1 to 1: upgrade this node (at most one release at a time)");
	assert_string_equal(p.b.why, "node a speaks versions 1 to 1 of the protocol between "
		"nodes, and this node 2 to 2: upgrade a (at most one release at a time)");
	assert_int_equal(p.a.ups + p.b.ups, 0);
	pair_close(&p);
}

static void garbage_and_half_packets_of_strangers_harm_no_link(void **state) {
	static const uint8_t garbage[] = { 0xff, 0xff, 0xff, 0xff, 1, 2, 3 },
		half[] = { 0, 0, 0, 90, 0x86 };
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	int one = call(&p.b), two = call(&p.b), three = call(&p.b);
	assert_int_equal(send(one, garbage, sizeof garbage, 0), sizeof garbage);
	assert_int_equal(send(two, half, sizeof half, 0), sizeof half);
	close(two);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	net_fixture_settle(&p.f);
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.b.downs, 0);
	close(one);
	close(three);
	pair_close(&p);
}

static void a_second_node_of_one_name_does_not_push_out_who_is_expected(void **state) {
	struct pair p;
	struct party second = { .identity = 'z' };
	(void)state;
	pair_open(&p);
	struct peers_node expecting[2] = { { "a", "", false, { { 0 } }, false, false },
		{ "b", "", false, { { 0 } }, false, false } };
	memset(expecting[0].id.b, 'a', sizeof expecting[0].id.b);
	peers_set_nodes(p.b.peers, expecting, 2);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	const struct peers_node nodes[2] = { { "a", "", false, { { 0 } }, false, false },
		{ "b", listener_address(p.b.listener), true, { { 0 } }, false, false } };
	party_make_with(&p.f, &second, "a", nodes);
	peers_start(second.peers);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_non_null(strstr(p.b.why, "a second node with another identity"));
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.b.downs + p.a.downs, 0);
	/* The place is free, and whoever comes has it. */
	peers_free(p.a.peers);
	p.a.peers = NULL;
	assert_true(net_fixture_until(&p.f, b_up_twice, &p));
	peers_free(second.peers);
	pair_close(&p);
}

static void a_node_whose_address_cannot_be_reached_is_tried_again(void **state) {
	struct pair p;
	char address[ADDRESS_TEXT_BYTES];
	(void)state;
	pair_open(&p);
	snprintf(address, sizeof address, "%s", listener_address(p.b.listener));
	listener_free(p.b.listener);
	p.b.listener = NULL;
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, a_troubled, &p));
	char why[LISTENER_WHY_BYTES];
	assert_int_equal(listener_new(&p.f.loop, address, party_accepted, &p.b, &p.b.listener,
		why), 0);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	/* The same trouble is told once. */
	assert_int_equal(p.a.troubles, 1);
	pair_close(&p);
}

/* ---- frames that take long ---- */

static bool b_got_one_frame(void *ctx) {
	return ((struct pair *)ctx)->b.frames == 1;
}

static bool b_is_down(void *ctx) {
	return ((struct pair *)ctx)->b.downs == 1;
}

static void count_turn(evutil_socket_t fd, short what, void *ctx) {
	(void)fd;
	(void)what;
	++*(unsigned *)ctx;
}

/* b's owner calls peers_go_on in each turn. */
static void go_on(evutil_socket_t fd, short what, void *ctx) {
	struct pair *p = ctx;
	(void)fd;
	(void)what;
	peers_go_on(p->b.peers);
}

struct turns {
	struct event *turn, *count;
	unsigned counted;
};

static void turns_begin(struct turns *t, struct pair *p) {
	static const struct timeval at_once = { 0, 1 };
	t->counted = 0;
	t->turn = event_new(p->f.base, -1, EV_PERSIST, go_on, p);
	t->count = event_new(p->f.base, -1, EV_PERSIST, count_turn, &t->counted);
	assert_int_equal(event_add(t->turn, &at_once) + event_add(t->count, &at_once), 0);
}

static void turns_end(struct turns *t) {
	event_free(t->turn);
	event_free(t->count);
}

/* Each piece takes a fifth of a millisecond, and a turn has time for three. */
static void a_frame_that_takes_long_is_handled_in_several_turns(void **state) {
	struct pair p;
	struct turns t;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	p.b.pieces = 29;
	p.b.takes = SPAN_MS / 5;
	send_frames(&p.a, 1, 2);
	turns_begin(&t, &p);
	assert_true(net_fixture_until(&p.f, b_got_one_frame, &p));
	assert_in_range(p.b.pieces_done, 30, 33);
	assert_in_range(t.counted, 8, 40);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.b.pieces_done, 60);
	/* More comes as ever. */
	p.b.pieces = 0;
	p.b.takes = 0;
	p.b.frames = 0;
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	turns_end(&t);
	pair_close(&p);
}

/* b cannot know when the link ended while it did not read it. */
static void a_link_that_ends_while_frames_wait_may_have_ended_before(void **state) {
	struct pair p;
	struct turns t;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	p.b.pieces = 99;
	p.b.takes = SPAN_MS / 5;
	const struct instant begun = time_source_now();
	send_frames(&p.a, 1, 1);
	/* a ends the link, and does not dial again. */
	const struct peers_node alone = { "a", listener_address(p.a.listener), false, { { 0 } },
		false, false };
	peers_set_nodes(p.a.peers, &alone, 1);
	turns_begin(&t, &p);
	assert_true(net_fixture_until(&p.f, b_is_down, &p));
	assert_int_equal(p.b.frames, 1);
	assert_true(p.b.since.boot >= begun.boot);
	assert_true(instant_elapsed_short(time_source_now(), p.b.since) > 15 * SPAN_MS);
	turns_end(&t);
	pair_close(&p);
}

/* ---- links that come again and again ---- */

/* a gives up each link when it has got a frame, and dials again at once for that reason. */
static bool b_refuses(void *ctx) {
	struct pair *p = ctx;
	if (p->a.accepted < p->b.ups) {
		send_frames(&p->b, 0, 1);
		p->a.accepted = p->b.ups;
	} else if (p->a.frames > 0) {
		p->a.frames = 0;
		peers_reset(p->a.peers, 1);
	}
	return p->b.troubles > 0;
}

static void a_node_may_not_make_links_without_end(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_true(net_fixture_until(&p.f, b_refuses, &p));
	assert_non_null(strstr(p.b.why, "again and again"));
	assert_false(p.b.stranger);
	assert_in_range(p.b.ups, 16, 40);
	const unsigned ups = p.b.ups;
	p.b.why[0] = 0;
	/* After a second there may be one more. */
	while (p.b.ups == ups) {
		assert_true(event_base_loop(p.f.base, EVLOOP_ONCE) >= 0);
	}
	pair_close(&p);
}

UNIT(net_peers) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_link_joins_two_nodes_and_carries_frames),
		cmocka_unit_test(a_frame_that_takes_long_is_handled_in_several_turns),
		cmocka_unit_test(a_link_that_ends_while_frames_wait_may_have_ended_before),
		cmocka_unit_test(a_node_may_not_make_links_without_end),
		cmocka_unit_test(a_name_is_looked_up_and_dialled),
		cmocka_unit_test(a_look_up_under_way_may_be_given_up),
		cmocka_unit_test(a_link_that_was_reset_is_dialled_again),
		cmocka_unit_test(what_is_not_a_frame_costs_the_link),
		cmocka_unit_test(nodes_with_their_own_certificates_are_linked),
		cmocka_unit_test(a_peer_under_anothers_name_is_refused),
		cmocka_unit_test(nodes_of_versions_that_do_not_meet_say_so_on_both_sides_once),
		cmocka_unit_test(a_clients_certificate_cannot_speak_as_a_peer),
		cmocka_unit_test(a_peer_without_a_certificate_is_refused),
		cmocka_unit_test(a_node_of_the_configuration_is_no_stranger_whatever_it_says),
		cmocka_unit_test(with_a_certificate_a_node_of_another_version_is_no_stranger),
		cmocka_unit_test(a_peer_that_shows_a_certificate_and_proves_nothing_is_a_stranger),
		cmocka_unit_test(the_dialler_checks_whom_it_reached),
		cmocka_unit_test(a_second_node_of_one_name_does_not_push_out_who_is_expected),
		cmocka_unit_test(garbage_and_half_packets_of_strangers_harm_no_link),
		cmocka_unit_test(a_node_whose_address_cannot_be_reached_is_tried_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
