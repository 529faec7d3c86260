/* These tests wait for the client with poll, as a program with a loop of its own does. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client_rig.h"

/* The client, and the node with a loop of its own. */
struct program {
	struct event_base *base;
	struct fake_node node;
	struct pawl *client;
	/* How many rounds the loop of the program has had. */
	unsigned rounds;
	/* What came of the last pawl_poll. */
	int error;
	unsigned results;
	struct pawl_lock *lock;
	/* Copies of the descriptors of connections. */
	int copies[4];
	unsigned connections;
};

static void program_open(struct program *p) {
	*p = (struct program){ .base = event_base_new() };
	fake_open(&p->node);
	fake_attach(&p->node, p->base);
	struct pawl_options o = { .endpoints = p->node.endpoint };
	assert_int_equal(pawl_new(&o, &p->client, NULL), 0);
}

static void program_close(struct program *p) {
	pawl_free(p->client);
	fake_close(&p->node);
	event_base_free(p->base);
	for (unsigned i = 0; i < p->connections; i++) {
		close(p->copies[i]);
	}
}

/* One round of the program's loop. Loopback delivers within the call that sends, so the node has
 * answered before the program waits. */
static void program_round(struct program *p) {
	assert_int_equal(event_base_loop(p->base, EVLOOP_NONBLOCK) >= 0, true);
	struct pollfd fd = { .fd = pawl_fd(p->client), .events = POLLIN };
	const int limit_ms = pawl_timeout_ms(p->client);
	const int ready = poll(&fd, 1, limit_ms < 0 ? 10000 : limit_ms);
	assert_true(ready == 1 || limit_ms >= 0);
	p->error = pawl_poll(p->client, 0);
	p->rounds++;
}

static void on_done(struct pawl_result *take_result, void *arg) {
	struct program *p = arg;
	assert_int_equal(take_result->error, 0);
	pawl_result_free(take_result);
	p->results++;
}

static void ping(struct program *p) {
	const unsigned results = p->results;
	assert_int_equal(pawl_start(p->client, &(struct pawl_request){ .method = PAWL_PING },
		on_done, p, NULL), 0);
	while (p->results == results) {
		program_round(p);
		assert_int_equal(p->error, 0);
	}
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct program *p = arg;
	p->lock = take_lock;
	pawl_result_free(take_result);
}

static void a_lock_is_acquired_renewed_and_released(void **state) {
	(void)state;
	struct program p;
	program_open(&p);
	assert_int_equal(pawl_fd(p.client), pawl_fd(p.client));
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 300 };
	assert_int_equal(pawl_lock_start(p.client, &o, on_locked, &p, NULL), 0);
	assert_int_equal(pawl_timeout_ms(p.client), 0);
	while (p.node.asked[CLIENT_EXTEND] < 5) {
		program_round(&p);
	}
	assert_int_equal(pawl_lock_error(p.lock), 0);
	/* It has waited, and has not asked again and again. */
	assert_true(p.rounds < 60);
	assert_int_equal(pawl_lock_release_start(p.lock, on_done, &p), 0);
	while (p.results == 0) {
		program_round(&p);
	}
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 1);
	program_close(&p);
}

static void on_connected(int fd, void *arg) {
	struct program *p = arg;
	assert_in_range(p->connections, 0, 3);
	p->copies[p->connections++] = fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/* The copy of a descriptor keeps a connection alive that the client has closed. */
static void a_connection_that_is_over_does_not_wake_the_program_for_ever(void **state) {
	(void)state;
	struct program p;
	program_open(&p);
	pawl_on_connected(p.client, on_connected, &p);
	for (int i = 0; i < 4; i++) {
		ping(&p);
		fake_hang_up(&p.node);
		program_round(&p);
	}
	assert_int_equal(p.connections, 4);
	p.rounds = 0;
	struct pollfd fd = { .fd = pawl_fd(p.client), .events = POLLIN };
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pawl_timeout_ms(p.client), -1);
		(void)poll(&fd, 1, 0);
		assert_int_equal(pawl_poll(p.client, 0), 0);
	}
	assert_int_equal(pawl_timeout_ms(p.client), -1);
	assert_int_equal(poll(&fd, 1, 0), 0);
	program_close(&p);
}

static void a_wake_is_something_to_do(void **state) {
	(void)state;
	struct program p;
	program_open(&p);
	ping(&p);
	pawl_wake(p.client);
	program_round(&p);
	assert_int_equal(p.error, PAWL_EINTERRUPTED);
	ping(&p);
	program_close(&p);
}

/* More than the socket takes, so that the client waits until it may write again. */
static void the_program_is_told_when_there_is_room_to_write(void **state) {
	(void)state;
	static const char value[60000];
	const unsigned many = 300;
	struct program p;
	program_open(&p);
	ping(&p);
	p.results = 0;
	for (unsigned i = 0; i < many; i++) {
		struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str("k"),
			.value = { value, sizeof(value) } };
		assert_int_equal(pawl_start(p.client, &request, on_done, &p, NULL), 0);
	}
	while (p.results < many) {
		program_round(&p);
	}
	program_close(&p);
}

static void without_descriptors_the_program_asks_again_and_again(void **state) {
	(void)state;
	struct program p;
	program_open(&p);
	ping(&p);
	struct rlimit before, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	const int limit_ms = pawl_timeout_ms(p.client);
	ping(&p);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_in_range(limit_ms, 1, 100);
	assert_int_equal(pawl_timeout_ms(p.client), -1);
	program_close(&p);
}

static void a_client_in_the_loop_of_the_program_has_no_descriptor(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	assert_int_equal(pawl_fd(r.client), PAWL_EINVAL);
	assert_int_equal(pawl_timeout_ms(r.client), -1);
	rig_close(&r);
}

UNIT(client_polled) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_is_acquired_renewed_and_released),
		cmocka_unit_test(a_connection_that_is_over_does_not_wake_the_program_for_ever),
		cmocka_unit_test(a_wake_is_something_to_do),
		cmocka_unit_test(the_program_is_told_when_there_is_room_to_write),
		cmocka_unit_test(without_descriptors_the_program_asks_again_and_again),
		cmocka_unit_test(a_client_in_the_loop_of_the_program_has_no_descriptor),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
