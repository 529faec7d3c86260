#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "peers.h" /* before unistd.h */

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "listener.h"
#include "net_fixture.h"
#include "pawl/error.h"

/* A node of the test: what its links told it. */
struct party {
	const char *name;
	struct peers *peers;
	struct listener *listener;
	unsigned ups, downs, frames, troubles;
	size_t bytes;
	int refuse; /* what frame() says */
	int guests; /* how many nodes that are not in its table it welcomes */
	const struct peers_node *guest_table; /* its table of three nodes when it does */
	uint32_t last_up; /* index */
	bool dials_all;
	char why[256], who[256];
};

static void party_up(void *ctx, uint32_t peer, const struct peer_hello *theirs) {
	struct party *p = ctx;
	p->last_up = peer;
	p->ups++;
	snprintf(p->who, sizeof p->who, "%s", theirs->node);
}

static void party_down(void *ctx, uint32_t peer, const char *why) {
	struct party *p = ctx;
	(void)peer;
	p->downs++;
	snprintf(p->why, sizeof p->why, "%s", why);
}

static int party_frame(void *ctx, uint32_t peer, struct slice body, struct instant now) {
	struct party *p = ctx;
	(void)peer;
	(void)now;
	p->frames++;
	p->bytes += body.size;
	return p->refuse;
}

static void party_trouble(void *ctx, const char *who, const char *why) {
	struct party *p = ctx;
	(void)who;
	p->troubles++;
	snprintf(p->why, sizeof p->why, "%s", why);
}

static int party_welcome(void *ctx, const struct peer_hello *theirs) {
	struct party *p = ctx;
	if (p->guests-- <= 0) {
		return PAWL_EFULL;
	}
	assert_string_equal(theirs->node, p->guest_table[2].name);
	peers_set_nodes(p->peers, p->guest_table, 3);
	return 2;
}

static const struct peers_handlers party_handlers = { party_up, party_down, party_frame, party_trouble, party_welcome };

static void party_accepted(void *ctx, int take_fd, bool local, const char *from) {
	struct party *p = ctx;
	assert_true(local);
	peers_accept(p->peers, take_fd, from);
}

static void party_listen(struct net_fixture *f, struct party *p) {
	char why[LISTENER_WHY_BYTES];
	assert_int_equal(listener_new(&f->loop, "127.0.0.1:0", party_accepted, p, &p->listener, why), 0);
}

/* `claim` is the name the party says it has. */
static void party_make_with(struct net_fixture *f, struct party *p, const char *claim, const struct peers_node nodes[2]) {
	struct peers_options o = { .loop = &f->loop, .seed = 1, .handlers = &party_handlers, .ctx = p };
	o.hello = (struct peer_hello){ .version_min = PEER_VERSION_MIN, .version_max = PEER_VERSION_MAX, .boot = 7 };
	memset(o.hello.id.b, *claim, sizeof o.hello.id.b);
	snprintf(o.hello.cluster, sizeof o.hello.cluster, "test");
	snprintf(o.hello.node, sizeof o.hello.node, "%s", claim);
	assert_int_equal(peers_new(&o, &p->peers), 0);
	peers_set_nodes(p->peers, nodes, 2);
}

/* Nodes "a" and "b" of the cluster "test". */
static void party_make(struct net_fixture *f, struct party *p, const char *claim, const struct party *a, const struct party *b) {
	const struct peers_node nodes[2] = { { "a", listener_address(a->listener), p->dials_all },
		{ "b", listener_address(b->listener), p->dials_all || *claim < 'b' } };
	party_make_with(f, p, claim, nodes);
}

struct pair {
	struct net_fixture f;
	struct party a, b;
};

static void pair_open_with(struct pair *p, bool both_dial) {
	memset(p, 0, sizeof *p);
	p->a.dials_all = p->b.dials_all = both_dial;
	net_fixture_init(&p->f);
	party_listen(&p->f, &p->a);
	party_listen(&p->f, &p->b);
	party_make(&p->f, &p->a, "a", &p->a, &p->b);
	party_make(&p->f, &p->b, "b", &p->a, &p->b);
}

static void pair_open(struct pair *p) {
	pair_open_with(p, false);
}

static void pair_close(struct pair *p) {
	peers_free(p->a.peers);
	peers_free(p->b.peers);
	listener_free(p->a.listener);
	listener_free(p->b.listener);
	net_fixture_done(&p->f);
}

static void pair_start(struct pair *p) {
	peers_start(p->a.peers);
	peers_start(p->b.peers);
}

static bool both_up(void *ctx) {
	struct pair *p = ctx;
	return p->a.ups == 1 && p->b.ups == 1;
}

static bool both_up_twice(void *ctx) {
	struct pair *p = ctx;
	return p->a.ups == 2 && p->b.ups == 2;
}

static bool b_troubled(void *ctx) {
	return ((struct pair *)ctx)->b.troubles > 0;
}

static bool a_troubled(void *ctx) {
	return ((struct pair *)ctx)->a.troubles > 0;
}

static bool b_got_frames(void *ctx) {
	return ((struct pair *)ctx)->b.frames == 2;
}

static void send_frames(struct party *from, uint32_t to, int count) {
	const struct message ping = { .kind = MESSAGE_PING, .round = 1 };
	struct frame frame = { .epoch = 1, .config_hash = 1, .boot = 1, .messages = &ping, .count = 1 };
	memset(frame.sender.b, 1, sizeof frame.sender.b);
	for (int i = 0; i < count; i++) {
		assert_int_equal(peer_frame_encode(&frame, peers_out(from->peers, to)), 0);
	}
	assert_int_equal(peers_flush(from->peers, to), 0);
}

/* Looked up in a thread; whichever of its addresses the listener does not have is passed over by the next try. */
static void a_name_is_looked_up_and_dialled(void **state) {
	struct pair p;
	char address[64];
	(void)state;
	pair_open(&p);
	peers_free(p.a.peers);
	snprintf(address, sizeof address, "localhost:%s", strrchr(listener_address(p.b.listener), ':') + 1);
	const struct peers_node nodes[2] = { { "a", listener_address(p.a.listener), false }, { "b", address, true } };
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
	const struct peers_node nodes[2] = { { "a", "localhost:1", false }, { "b", "localhost:1", true } };
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
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
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
	peers_reset(p.b.peers, 0); /* b does not dial: a sees the end and does */
	assert_true(net_fixture_until(&p.f, both_up_twice, &p));
	assert_int_equal(p.a.downs, 1);
	assert_int_equal(p.b.downs, 0); /* who resets is not told */
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

/* b is the victim, whoever dials it shows this certificate (NULL: none). */
static void refused_by_b(const char *uri, const char *expected) {
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
		assert_string_equal(p.b.why, expected);
	}
	pair_close(&p);
}

static void a_peer_under_anothers_name_is_refused(void **state) {
	(void)state;
	refused_by_b("pawl:node:c", "its certificate is not the one of the node that it says it is");
}

static void a_clients_certificate_cannot_speak_as_a_peer(void **state) {
	(void)state;
	refused_by_b("pawl:client:a", "its certificate is not the one of the node that it says it is");
}

static void a_peer_without_a_certificate_is_refused(void **state) {
	(void)state;
	refused_by_b(NULL, NULL);
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

static int call(const struct party *p) {
	struct address a;
	struct address_socket at;
	assert_int_equal(address_parse(listener_address(p->listener), &a), 0);
	assert_int_equal(address_resolve(&a, true, &at, 1), 1);
	int fd = socket(at.addr.ss_family, SOCK_STREAM, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.addr, at.size), 0);
	return fd;
}

static void garbage_and_half_packets_of_strangers_harm_no_link(void **state) {
	static const uint8_t garbage[] = { 0xff, 0xff, 0xff, 0xff, 1, 2, 3 }, half[] = { 0, 0, 0, 90, 0x86 };
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
	assert_int_equal(listener_new(&p.f.loop, address, party_accepted, &p.b, &p.b.listener, why), 0);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_int_equal(p.a.troubles, 1); /* the same trouble is told once */
	pair_close(&p);
}

/* ---- the table changes ---- */

static void a_link_goes_with_its_name_to_another_index(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	const struct peers_node turned[3] = { { "b", listener_address(p.b.listener), true }, { "c", "", true }, { "a", "", false } };
	peers_set_nodes(p.a.peers, turned, 3);
	assert_non_null(peers_out(p.a.peers, 0));
	assert_null(peers_out(p.a.peers, 1));
	send_frames(&p.a, 0, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.a.ups + p.a.downs + p.b.downs, 1);
	pair_close(&p);
}

static bool b_lost_it(void *ctx) {
	return ((struct pair *)ctx)->b.downs > 0;
}

static void a_node_that_left_the_table_loses_its_link_silently(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	const struct peers_node alone[1] = { { "a", "", false } };
	peers_set_nodes(p.a.peers, alone, 1);
	assert_true(net_fixture_until(&p.f, b_lost_it, &p));
	assert_int_equal(p.a.downs, 0);
	const struct peers_node again[2] = { { "b", listener_address(p.b.listener), true }, { "a", "", false } };
	peers_set_nodes(p.a.peers, again, 2); /* dialled at once */
	assert_true(net_fixture_until(&p.f, both_up_twice, &p));
	assert_int_equal(p.a.last_up, 0);
	pair_close(&p);
}

static void a_node_is_dialled_at_its_new_address(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	const struct peers_node wrong[2] = { { "a", "", false }, { "b", "127.0.0.1:1", true } };
	peers_set_nodes(p.a.peers, wrong, 2);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, a_troubled, &p));
	const struct peers_node right[2] = { { "a", "", false }, { "b", listener_address(p.b.listener), true } };
	peers_set_nodes(p.a.peers, right, 2);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	pair_close(&p);
}

static void a_guest_is_welcomed_by_the_owner(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	const struct peers_node guests[3] = { { "a", "", false }, { "b", "", false }, { "x", "", false } };
	p.b.guests = 1;
	p.b.guest_table = guests;
	peers_free(p.a.peers);
	const struct peers_node nodes[2] = { { "x", "", false }, { "b", listener_address(p.b.listener), true } };
	party_make_with(&p.f, &p.a, "x", nodes); /* a larger name than b's dials as well */
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_int_equal(p.b.last_up, 2);
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	pair_close(&p);
}

static void a_guest_for_whom_there_is_no_room_is_refused(void **state) {
	struct pair p;
	(void)state;
	pair_open(&p);
	peers_free(p.a.peers);
	const struct peers_node nodes[2] = { { "x", "", false }, { "b", listener_address(p.b.listener), true } };
	party_make_with(&p.f, &p.a, "x", nodes);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, b_troubled, &p));
	assert_string_equal(p.b.why, "no room for another node");
	assert_int_equal(p.b.ups, 0);
	pair_close(&p);
}

static bool linked_and_quiet(void *ctx) {
	struct pair *p = ctx;
	return p->a.ups > 0 && p->b.ups > 0 && p->a.ups == p->a.downs + 1 && p->b.ups == p->b.downs + 1;
}

/* Whichever of the two connections is heard of first, where. */
static void of_two_that_dial_each_other_one_link_stays(void **state) {
	struct pair p;
	(void)state;
	pair_open_with(&p, true);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, linked_and_quiet, &p));
	for (int i = 0; i < 20; i++) { /* far longer than the backoff would be, if somebody dialled again */
		net_fixture_settle(&p.f);
	}
	assert_true(net_fixture_until(&p.f, linked_and_quiet, &p));
	unsigned ups = p.a.ups + p.b.ups;
	assert_true(ups <= 4);
	send_frames(&p.a, 1, 2);
	assert_true(net_fixture_until(&p.f, b_got_frames, &p));
	assert_int_equal(p.a.ups + p.b.ups, ups);
	assert_int_equal(p.a.troubles, 0);
	pair_close(&p);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_link_joins_two_nodes_and_carries_frames),
		cmocka_unit_test(a_name_is_looked_up_and_dialled),
		cmocka_unit_test(a_look_up_under_way_may_be_given_up),
		cmocka_unit_test(a_link_that_was_reset_is_dialled_again),
		cmocka_unit_test(what_is_not_a_frame_costs_the_link),
		cmocka_unit_test(nodes_with_their_own_certificates_are_linked),
		cmocka_unit_test(a_peer_under_anothers_name_is_refused),
		cmocka_unit_test(a_clients_certificate_cannot_speak_as_a_peer),
		cmocka_unit_test(a_peer_without_a_certificate_is_refused),
		cmocka_unit_test(the_dialler_checks_whom_it_reached),
		cmocka_unit_test(garbage_and_half_packets_of_strangers_harm_no_link),
		cmocka_unit_test(a_node_whose_address_cannot_be_reached_is_tried_again),
		cmocka_unit_test(a_link_goes_with_its_name_to_another_index),
		cmocka_unit_test(a_node_that_left_the_table_loses_its_link_silently),
		cmocka_unit_test(a_node_is_dialled_at_its_new_address),
		cmocka_unit_test(a_guest_is_welcomed_by_the_owner),
		cmocka_unit_test(a_guest_for_whom_there_is_no_room_is_refused),
		cmocka_unit_test(of_two_that_dial_each_other_one_link_stays),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
