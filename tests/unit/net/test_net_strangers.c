/* These tests are about connections that have not said who they are, at the peer port and at the
 * ports of clients. */
#include "peers_pair.h"

#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "address.h"
#include "sessions.h"

/* ---- who goes ---- */

static bool is_busy(const struct stranger *stranger) {
	return stranger->address.ip[15] == 0xbb;
}

static struct stranger from_ipv4(uint8_t last, size_t bytes) {
	return (struct stranger){ .address = { { [10] = 0xff, [11] = 0xff, [12] = 10,
		[15] = last } }, .bytes = bytes };
}

static struct stranger from_ipv6(uint8_t network, uint8_t host) {
	return (struct stranger){ .address = { { [0] = 0x20, [7] = network, [15] = host } },
		.bytes = 1 };
}

static void one_goes_when_they_are_too_many(void **state) {
	const struct strangers_limits limits = { .count = 2, .per_address = 2, .bytes = 1000 };
	struct stranger one = from_ipv4(1, 10), two = from_ipv4(2, 10), three = from_ipv4(3, 10);
	struct strangers s;
	(void)state;
	strangers_init(&s, 1);
	assert_null(strangers_victim(&s, &limits, &one, NULL));
	strangers_add(&s, &one);
	assert_null(strangers_victim(&s, &limits, &two, NULL));
	strangers_add(&s, &two);
	assert_non_null(strangers_victim(&s, &limits, &three, NULL));
	assert_ptr_equal(strangers_oldest(&s), &one);
	assert_true(strangers_remove(&s, &one));
	assert_false(strangers_remove(&s, &one));
	assert_null(strangers_victim(&s, &limits, &three, NULL));
	assert_ptr_equal(strangers_oldest(&s), &two);
}

static void an_address_with_too_many_loses_one_of_its_own(void **state) {
	const struct strangers_limits limits = { .count = 10, .per_address = 1, .bytes = 1000 };
	struct stranger one = from_ipv4(1, 10), two = from_ipv4(2, 10), again = from_ipv4(2, 10);
	struct stranger network = from_ipv6(1, 1), neighbour = from_ipv6(1, 2),
		other = from_ipv6(2, 1);
	struct strangers s;
	(void)state;
	strangers_init(&s, 1);
	strangers_add(&s, &one);
	strangers_add(&s, &two);
	strangers_add(&s, &network);
	assert_ptr_equal(strangers_victim(&s, &limits, &again, NULL), &two);
	/* The addresses that share 64 bits of IPv6 count as one. */
	assert_ptr_equal(strangers_victim(&s, &limits, &neighbour, NULL), &network);
	assert_null(strangers_victim(&s, &limits, &other, NULL));
}

static void one_goes_when_they_take_too_much_memory(void **state) {
	const struct strangers_limits limits = { .count = 10, .per_address = 10, .bytes = 100 };
	struct stranger one = from_ipv4(1, 50), two = from_ipv4(2, 50), three = from_ipv4(3, 1),
		huge = from_ipv4(4, 200);
	struct strangers s;
	(void)state;
	strangers_init(&s, 1);
	/* A single connection may be as large: nobody could make room for it. */
	assert_null(strangers_victim(&s, &limits, &huge, NULL));
	strangers_add(&s, &one);
	strangers_add(&s, &two);
	assert_non_null(strangers_victim(&s, &limits, &three, NULL));
	strangers_remove(&s, &two);
	assert_null(strangers_victim(&s, &limits, &three, NULL));
}

static void a_stranger_that_waits_for_this_node_is_spared_unless_all_do(void **state) {
	const struct strangers_limits limits = { .count = 2, .per_address = 2, .bytes = 1000 };
	struct stranger busy = from_ipv4(0xbb, 10), silent = from_ipv4(2, 10),
		third = from_ipv4(3, 10);
	struct strangers s;
	(void)state;
	strangers_init(&s, 1);
	strangers_add(&s, &busy);
	strangers_add(&s, &silent);
	assert_ptr_equal(strangers_victim(&s, &limits, &third, is_busy), &silent);
	strangers_remove(&s, &silent);
	struct stranger another = from_ipv4(0xbb, 10);
	strangers_add(&s, &another);
	assert_ptr_equal(strangers_victim(&s, &limits, &third, is_busy), &busy);
}

/* ---- who stays ---- */

#define PLACES 128

/* Of COUNT strangers of one address, each of which takes until `later` further ones have come, this
 * many have not had to go. */
static uint32_t stay_of(uint32_t count, uint32_t later) {
	const struct strangers_limits limits = { .count = PLACES, .per_address = PLACES,
		.bytes = 1 << 20 };
	struct stranger *all = calloc(count, sizeof *all), *victim;
	struct strangers s;
	uint32_t stay = 0;
	strangers_init(&s, 1);
	for (uint32_t i = 0; i < count; i++) {
		all[i] = from_ipv4(1, 1);
		while ((victim = strangers_victim(&s, &limits, &all[i], NULL)) != NULL) {
			assert_true(strangers_remove(&s, victim));
		}
		strangers_add(&s, &all[i]);
		if (i >= later) {
			stay += strangers_remove(&s, &all[i - later]);
		}
	}
	free(all);
	return stay;
}

/* Were it always the oldest that goes, none of them would ever be done. */
static void some_are_done_however_many_come_meanwhile(void **state) {
	(void)state;
	assert_in_range(stay_of(20000, 2 * PLACES), 2000, 4000);
	assert_in_range(stay_of(20000, 4 * PLACES), 200, 600);
}

static void most_of_those_who_are_done_soon_stay(void **state) {
	(void)state;
	assert_in_range(stay_of(20000, PLACES / 8), 17000, 20000);
}

/* ---- the peer port ---- */

#define SILENT 200

/* Connects to the listener from that address of this machine. */
static int call_from(const struct listener *listener, const char *from) {
	struct address a, source;
	struct address_socket at, by;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(address_parse(listener_address(listener), &a) +
		address_parse(from, &source), 0);
	assert_int_equal(address_resolve(&a, true, &at, 1) +
		address_resolve(&source, true, &by, 1), 2);
	assert_int_equal(bind(fd, (struct sockaddr *)&by.addr, by.size), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.addr, at.size), 0);
	return fd;
}

static void call_silently(struct pair *p, int fds[SILENT], const char *from) {
	for (int i = 0; i < SILENT; i++) {
		fds[i] = call_from(p->b.listener, from);
		if (i % 16 == 0) {
			net_fixture_settle(&p->f);
		}
	}
	net_fixture_settle(&p->f);
}

static bool is_closed(int fd) {
	char bytes[1024];
	ssize_t n;
	while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0) {
	}
	return n == 0;
}

static void hang_up(const int *fds, int count) {
	for (int i = 0; i < count; i++) {
		close(fds[i]);
	}
}

static void silent_connections_keep_no_node_out(void **state) {
	struct pair p;
	int fds[SILENT];
	(void)state;
	pair_open(&p);
	call_silently(&p, fds, "127.0.0.1:0");
	assert_int_equal(peers_strangers(p.b.peers).now, 64);
	assert_int_equal(peers_strangers(p.b.peers).evicted, SILENT - 64);
	assert_int_equal(p.b.troubles, SILENT - 64);
	assert_string_equal(p.b.why, strangers_evicted);
	int open = 0;
	for (int i = 0; i < SILENT; i++) {
		open += !is_closed(fds[i]);
	}
	assert_int_equal(open, 64);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	assert_int_equal(peers_strangers(p.b.peers).now, 63);
	hang_up(fds, SILENT);
	pair_close(&p);
}

static void strangers_take_no_place_of_one_from_a_members_address(void **state) {
	struct pair p;
	int fds[SILENT];
	(void)state;
	pair_open(&p);
	int member = call_from(p.b.listener, "127.0.0.1:0");
	call_silently(&p, fds, "127.0.0.2:0");
	assert_false(is_closed(member));
	assert_int_equal(peers_strangers(p.b.peers).now, 65);
	hang_up(fds, SILENT);
	close(member);
	pair_close(&p);
}

static bool b_has_no_strangers(void *ctx) {
	return peers_strangers(((struct pair *)ctx)->b.peers).now == 0;
}

/* b knows a by a name, and is not the one that dials. It looks the name up when somebody comes. */
static void a_members_name_is_looked_up_when_a_stranger_comes(void **state) {
	static const struct peers_node nodes[2] = { { "a", "localhost:1", false,
		{ { 0 } }, false, false },
		{ "b", "", false, { { 0 } }, false, false } };
	struct pair p;
	int fds[SILENT];
	(void)state;
	pair_open(&p);
	peers_set_nodes(p.b.peers, nodes, 2);
	close(call_from(p.b.listener, "127.0.0.2:0"));
	net_fixture_settle(&p.f);
	assert_true(net_fixture_until(&p.f, b_has_no_strangers, &p));
	/* The thread that looks the name up needs this time. */
	poll(NULL, 0, 200);
	net_fixture_settle(&p.f);
	int member = call_from(p.b.listener, "127.0.0.1:0");
	call_silently(&p, fds, "127.0.0.2:0");
	assert_false(is_closed(member));
	hang_up(fds, SILENT);
	close(member);
	pair_close(&p);
}

/* The link came from an address that the table does not name: from a node behind another address,
 * as its certificate says. */
static void where_a_link_came_from_is_a_members_address_too(void **state) {
	static const struct peers_node nodes[2] = { { "a", "10.0.0.1:1", false,
		{ { 0 } }, false, false },
		{ "b", "", false, { { 0 } }, false, false } };
	struct pair p;
	int fds[SILENT];
	(void)state;
	pair_open(&p);
	peers_set_nodes(p.b.peers, nodes, 2);
	pair_start(&p);
	assert_true(net_fixture_until(&p.f, both_up, &p));
	int member = call_from(p.b.listener, "127.0.0.1:0");
	call_silently(&p, fds, "127.0.0.2:0");
	assert_false(is_closed(member));
	hang_up(fds, SILENT);
	close(member);
	pair_close(&p);
}

/* ---- the ports of clients ---- */

static void on_ready(void *ctx) {
	(void)ctx;
}

static void on_request(void *ctx, uint64_t client, const struct session_who *who,
	const struct client_request *request, struct session_progress *progress,
	struct instant now) {
	(void)ctx;
	(void)client;
	(void)who;
	(void)request;
	(void)progress;
	(void)now;
}

static uint32_t on_forget(void *ctx, uint64_t client, uint32_t most) {
	(void)ctx;
	(void)client;
	(void)most;
	return 0;
}

static void on_gone(void *ctx, uint64_t client, bool closed_there) {
	(void)ctx;
	(void)client;
	(void)closed_there;
}

static void on_trouble(void *ctx, const struct session_who *who, const char *why) {
	assert_string_equal(who->from->address, "somewhere");
	assert_string_equal(why, strangers_evicted);
	++*(unsigned *)ctx;
}

static void on_refused(void *ctx) {
	(void)ctx;
}

static bool on_own_limits(void *ctx, const struct session_who *who, struct share_limits *limits) {
	(void)ctx;
	(void)who;
	(void)limits;
	return false;
}

static const struct sessions_handlers client_handlers = { on_ready, on_request, on_forget, on_gone,
	on_trouble, on_refused, NULL, on_own_limits, NULL };

static int connect_client(struct net_fixture *f, struct sessions *s, const void *words,
	size_t size) {
	int fds[2];
	struct origin from;
	net_fixture_pair(fds);
	origin_named("somewhere", &from);
	sessions_accept(s, fds[0], NULL, TLS_CLIENT_OFF, true, &from, NULL);
	net_fixture_settle(f);
	assert_int_equal(send(fds[1], words, size, MSG_NOSIGNAL), size);
	net_fixture_settle(f);
	while (sessions_serve(s)) {
	}
	return fds[1];
}

static struct sessions *open_sessions(struct net_fixture *f, uint32_t clients, unsigned *troubles) {
	struct sessions *s;
	const struct sessions_options o = { .loop = &f->loop, .handlers = &client_handlers,
		.ctx = troubles, .limits = { .clients = clients, .requests_per_client = 10,
		.strangers = { .count = 2, .per_address = 2, .bytes = 1 << 20 } } };
	assert_int_equal(sessions_new(&o, &s), 0);
	return s;
}

static const char ping[] = "\x94\x00\x01\xa4ping\x91\x80";

static void plain_connections_that_say_nothing_are_few(void **state) {
	struct net_fixture f;
	unsigned troubles = 0;
	(void)state;
	net_fixture_init(&f);
	struct sessions *s = open_sessions(&f, 100, &troubles);
	int speaks = connect_client(&f, s, ping, sizeof ping - 1),
		half = connect_client(&f, s, ping, 4), two = connect_client(&f, s, "", 0);
	assert_int_equal(sessions_strangers(s).now, 2);
	int three = connect_client(&f, s, "", 0);
	assert_int_not_equal(is_closed(half), is_closed(two));
	assert_false(is_closed(speaks) || is_closed(three));
	assert_int_equal(sessions_strangers(s).evicted, 1);
	assert_int_equal(troubles, 1);
	assert_int_equal(sessions_count(s), 3);
	hang_up((int[]){ speaks, half, two, three }, 4);
	sessions_free(s);
	net_fixture_done(&f);
}

static void silent_one_goes_first(void) {
	struct net_fixture f;
	unsigned troubles = 0;
	net_fixture_init(&f);
	struct sessions *s = open_sessions(&f, 100, &troubles);
	int asks = connect_client(&f, s, "", 0), silent = connect_client(&f, s, "", 0);
	assert_int_equal(send(asks, ping, sizeof ping - 1, MSG_NOSIGNAL), sizeof ping - 1);
	/* The request is read, and not served. */
	net_fixture_settle(&f);
	int newcomer = connect_client(&f, s, "", 0);
	assert_true(is_closed(silent));
	assert_false(is_closed(asks) || is_closed(newcomer));
	hang_up((int[]){ asks, silent, newcomer }, 3);
	sessions_free(s);
	net_fixture_done(&f);
}

/* Chance decides among strangers that are alike, so once is not enough. */
static void a_stranger_that_has_asked_and_waits_for_its_turn_is_closed_last(void **state) {
	(void)state;
	for (uint32_t i = 0; i < 20; i++) {
		silent_one_goes_first();
	}
}

static void strangers_keep_no_client_out_where_all_places_are_taken(void **state) {
	struct net_fixture f;
	unsigned troubles = 0;
	(void)state;
	net_fixture_init(&f);
	struct sessions *s = open_sessions(&f, 2, &troubles);
	int speaks = connect_client(&f, s, ping, sizeof ping - 1),
		silent = connect_client(&f, s, "", 0);
	int newcomer = connect_client(&f, s, ping, sizeof ping - 1);
	assert_true(is_closed(silent));
	assert_false(is_closed(speaks) || is_closed(newcomer));
	assert_int_equal(sessions_count(s), 2);
	hang_up((int[]){ speaks, silent, newcomer }, 3);
	sessions_free(s);
	net_fixture_done(&f);
}

UNIT(net_strangers) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_goes_when_they_are_too_many),
		cmocka_unit_test(some_are_done_however_many_come_meanwhile),
		cmocka_unit_test(most_of_those_who_are_done_soon_stay),
		cmocka_unit_test(an_address_with_too_many_loses_one_of_its_own),
		cmocka_unit_test(one_goes_when_they_take_too_much_memory),
		cmocka_unit_test(a_stranger_that_waits_for_this_node_is_spared_unless_all_do),
		cmocka_unit_test(silent_connections_keep_no_node_out),
		cmocka_unit_test(strangers_take_no_place_of_one_from_a_members_address),
		cmocka_unit_test(a_members_name_is_looked_up_when_a_stranger_comes),
		cmocka_unit_test(where_a_link_came_from_is_a_members_address_too),
		cmocka_unit_test(plain_connections_that_say_nothing_are_few),
		cmocka_unit_test(a_stranger_that_has_asked_and_waits_for_its_turn_is_closed_last),
		cmocka_unit_test(strangers_keep_no_client_out_where_all_places_are_taken),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
