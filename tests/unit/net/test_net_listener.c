/* These tests are about listeners: a Unix socket that somebody else has, and a node with enough
 * handshakes. */
#include "unit.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "address.h"
#include "listener.h"
#include "net_fixture.h"
#include "pawl/error.h"

static void take_none(void *ctx, int take_fd, const struct origin *from) {
	(void)from;
	close(take_fd);
	++*(unsigned *)ctx;
}

/* Whoever listens there accepts nothing, and its backlog is full: a call that blocks would never
 * come back. */
static void a_foreign_listener_that_does_not_accept_holds_up_no_start(void **state) {
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	struct net_fixture f;
	struct listener *l;
	char text[160], why[LISTENER_WHY_BYTES];
	unsigned accepted = 0;
	int calls[64], count = 0;
	(void)state;
	net_fixture_init(&f);
	snprintf(un.sun_path, sizeof un.sun_path, "%s/socket", f.dir);
	snprintf(text, sizeof text, "unix:%s", un.sun_path);
	int foreign = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(foreign, (struct sockaddr *)&un, sizeof un) + listen(foreign, 1), 0);
	do {
		calls[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
	} while (connect(calls[count++], (struct sockaddr *)&un, sizeof un) == 0 && count < 64);
	alarm(10);
	assert_int_equal(listener_new(&f.loop, text, take_none, &accepted, &l, why),
		PAWL_EUNREACHABLE);
	alarm(0);
	while (count > 0) {
		close(calls[--count]);
	}
	/* The file stays, but nobody listens there any more. */
	close(foreign);
	assert_int_equal(listener_new(&f.loop, text, take_none, &accepted, &l, why), 0);
	listener_free(l);
	net_fixture_done(&f);
}

static int call(const struct listener *l) {
	struct address a;
	struct address_socket at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(address_parse(listener_address(l), &a), 0);
	assert_int_equal(address_resolve(&a, true, &at, 1), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&at.addr, at.size), 0);
	return fd;
}

static bool accepted_one(void *ctx) {
	return *(unsigned *)ctx == 1;
}

static void nothing_is_accepted_while_enough_handshakes_wait(void **state) {
	struct net_fixture f;
	struct listener *l;
	struct handshakes full = { .waiting = HANDSHAKES_WAITING_MAX };
	char why[LISTENER_WHY_BYTES];
	unsigned accepted = 0;
	(void)state;
	net_fixture_init(&f);
	assert_int_equal(listener_new(&f.loop, "127.0.0.1:0", take_none, &accepted, &l, why), 0);
	listener_pace(l, &full);
	int fd = call(l);
	net_fixture_settle(&f);
	poll(NULL, 0, 20);
	net_fixture_settle(&f);
	assert_int_equal(accepted, 0);
	full.waiting--;
	assert_true(net_fixture_until(&f, accepted_one, &accepted));
	close(fd);
	listener_free(l);
	net_fixture_done(&f);
}

UNIT(net_listener) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_foreign_listener_that_does_not_accept_holds_up_no_start),
		cmocka_unit_test(nothing_is_accepted_while_enough_handshakes_wait),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
