/* These tests are about what a client and its handles owe to each other: one truth for each lock,
 * requests that a node can read, and an end in the right order. */
#include "unit.h"

#include <stdio.h>

#include "client_rig.h"
#include "lock.h"

struct holder {
	struct pawl_lock *lock;
	int error, cause;
	unsigned lost, renewed;
};

static void on_lost(struct pawl_lock *lock, int cause, void *arg) {
	struct holder *h = arg;
	(void)lock;
	h->cause = cause;
	h->lost++;
}

static void on_renewed(struct pawl_lock *lock, void *arg) {
	struct holder *h = arg;
	(void)lock;
	h->renewed++;
}

static void on_asked(struct pawl_lock *lock, const struct pawl_asked *asked, void *arg) {
	(void)lock;
	(void)asked;
	(void)arg;
}

static void on_locked(struct pawl_lock *take_lock, struct pawl_result *take_result, void *arg) {
	struct holder *h = arg;
	h->lock = take_lock;
	h->error = take_result->error;
	pawl_result_free(take_result);
}

static void take(struct rig *r, struct holder *h, struct pawl_lock_options o) {
	*h = (struct holder){ 0 };
	o.on_lost = on_lost;
	o.on_renewed = on_renewed;
	o.arg = h;
	assert_int_equal(pawl_lock_start(r->client, &o, on_locked, h, NULL), 0);
	rig_settle(r);
	assert_int_equal(h->error, 0);
	assert_non_null(h->lock);
}

static void a_client_may_be_freed_with_a_lock_that_may_be_asked_for(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	take(&r, &h, (struct pawl_lock_options){ .key = pawl_str("k"), .on_asked = on_asked });
	assert_int_equal(r.nodes[0].asked[CLIENT_WATCH], 1);
	rig_close(&r);
}

static void a_request_that_lets_go_ends_the_belief_of_the_handle(void **state) {
	(void)state;
	const enum pawl_method methods[] = { PAWL_RELEASE, PAWL_TRANSFER };
	for (size_t i = 0; i < 2; i++) {
		struct rig r;
		struct holder h;
		struct pawl_result *result = NULL;
		rig_open(&r, NULL);
		take(&r, &h, (struct pawl_lock_options){ .key = pawl_str("k"), .lease_ms = 9000 });
		const struct pawl_request request = { .method = methods[i], .key = pawl_str("k"),
			.lock_id = pawl_lock_id(h.lock), .to = pawl_str("next") };
		assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), 0);
		/* It counts from the moment at which the request is made; the program is told in
		 * the loop. */
		assert_int_equal(pawl_lock_valid_ms(h.lock), 0);
		assert_int_equal(pawl_lock_error(h.lock), PAWL_ELOST);
		assert_int_equal(h.lost, 0);
		rig_pass(&r, 10 * SPAN_S);
		assert_int_equal(h.lost, 1);
		assert_int_equal(h.cause, PAWL_ELOST);
		assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 0);
		pawl_result_free(result);
		pawl_lock_free(h.lock);
		rig_close(&r);
	}
}

static void who_lets_go_twice_is_told_once(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	struct pawl_result *results[2] = { NULL, NULL };
	rig_open(&r, NULL);
	take(&r, &h, (struct pawl_lock_options){ .key = pawl_str("k"), .lease_ms = 9000 });
	const struct pawl_request request = { .method = PAWL_RELEASE, .key = pawl_str("k"),
		.lock_id = pawl_lock_id(h.lock) };
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(pawl_start(r.client, &request, rig_done, &results[i], NULL), 0);
	}
	assert_int_equal(h.lost, 0);
	rig_pass(&r, 10 * SPAN_S);
	assert_int_equal(h.lost, 1);
	assert_int_equal(h.cause, PAWL_ELOST);
	pawl_result_free(results[0]);
	pawl_result_free(results[1]);
	pawl_lock_free(h.lock);
	rig_close(&r);
}

static void a_release_of_one_key_leaves_the_same_lock_id_of_another_alone(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	rig_open(&r, NULL);
	take(&r, &h, (struct pawl_lock_options){ .key = pawl_str("k"), .lease_ms = 9000 });
	pawl_result_free(rig_ask(&r, &(struct pawl_request){ .method = PAWL_RELEASE,
		.key = pawl_str("l"), .lock_id = pawl_lock_id(h.lock) }));
	rig_pass(&r, 100 * SPAN_MS);
	assert_int_equal(h.lost, 0);
	assert_true(pawl_lock_valid_ms(h.lock) > 8000);
	pawl_lock_free(h.lock);
	rig_close(&r);
}

static void the_release_of_a_lost_handle_ends_a_newer_one_of_the_lock(void **state) {
	(void)state;
	struct rig r;
	struct holder first, second;
	rig_open(&r, NULL);
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 9000, .warn_ms = 4500,
		.no_renewal = true };
	take(&r, &first, o);
	rig_pass(&r, 4600 * SPAN_MS);
	assert_int_equal(first.lost, 1);
	assert_true(pawl_lock_valid_ms(first.lock) > 4000);
	o.lock_id = pawl_lock_id(first.lock);
	o.warn_ms = 0;
	take(&r, &second, o);
	assert_ptr_not_equal(first.lock, second.lock);
	assert_int_equal(pawl_lock_release_start(first.lock, NULL, NULL), 0);
	assert_int_equal(pawl_lock_valid_ms(second.lock), 0);
	rig_pass(&r, 10 * SPAN_MS);
	assert_int_equal(second.lost, 1);
	assert_int_equal(second.cause, PAWL_ELOST);
	assert_int_equal(first.lost, 1);
	pawl_lock_free(second.lock);
	rig_close(&r);
}

#define SEMAPHORES 500

/* 500 locks of 128 permits would be 72,000 objects in one request; a node reads 65,536. (The fake
 * node grants numbers of one word, so the numbers are set here.) */
static void a_request_to_extend_is_no_larger_than_a_node_reads(void **state) {
	(void)state;
	struct rig r;
	static struct holder h[SEMAPHORES];
	char key[16];
	rig_open(&r, NULL);
	for (size_t i = 0; i < SEMAPHORES; i++) {
		(void)snprintf(key, sizeof(key), "k%zu", i);
		take(&r, &h[i], (struct pawl_lock_options){ .key = pawl_str(key),
			.lease_ms = 9000 });
		h[i].lock->slots = (struct permits){ { UINT64_MAX, UINT64_MAX } };
	}
	rig_pass(&r, 4 * SPAN_S);
	assert_in_range(r.nodes[0].locks_max, 2, SEMAPHORES - 1);
	/* As many as fit go together, and none comes late. */
	assert_int_equal(r.nodes[0].asked[CLIENT_EXTEND], 2);
	for (size_t i = 0; i < SEMAPHORES; i++) {
		assert_int_equal(h[i].lost, 0);
		assert_true(h[i].renewed >= 1);
		pawl_lock_free(h[i].lock);
	}
	rig_close(&r);
}

static void locks_stay_held_while_the_cluster_allows_shorter_leases(void **state) {
	(void)state;
	struct rig r;
	struct holder a, b;
	rig_open(&r, NULL);
	take(&r, &a, (struct pawl_lock_options){ .key = pawl_str("a"), .lease_ms = 30000 });
	take(&r, &b, (struct pawl_lock_options){ .key = pawl_str("b"), .lease_ms = 4000 });
	r.nodes[0].lease_most = r.nodes[1].lease_most = 6 * SPAN_S;
	rig_pass(&r, 60 * SPAN_S);
	assert_int_equal(a.lost + b.lost, 0);
	assert_true(a.renewed > 15);
	assert_true(pawl_lock_valid_ms(a.lock) > 3000);
	pawl_lock_free(a.lock);
	pawl_lock_free(b.lock);
	rig_close(&r);
}

/* A node refuses the request of all locks if one of its keys is denied. */
static void a_lock_that_is_denied_ends_no_other_one(void **state) {
	(void)state;
	struct rig r;
	static struct holder h[20];
	char key[16];
	rig_open(&r, NULL);
	for (int i = 0; i < 20; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		struct pawl_lock_options o = { .key = pawl_str(key), .lease_ms = 6000 };
		take(&r, &h[i], o);
	}
	r.nodes[0].denied_key = r.nodes[1].denied_key = "k7";
	rig_pass(&r, 60 * SPAN_S);
	for (int i = 0; i < 20; i++) {
		assert_int_equal(h[i].lost, i == 7);
		assert_true(i == 7 || h[i].renewed > 15);
	}
	assert_int_equal(h[7].cause, PAWL_EDENIED);
	/* They are extended together again. */
	assert_int_equal(r.nodes[0].locks_last + r.nodes[1].locks_last, 19);
	for (int i = 0; i < 20; i++) {
		pawl_lock_free(h[i].lock);
	}
	rig_close(&r);
}

static void a_list_that_no_node_reads_is_refused_at_once(void **state) {
	(void)state;
	struct rig r;
	static struct pawl_extend_item items[1000];
	rig_open(&r, NULL);
	for (size_t i = 0; i < 1000; i++) {
		items[i] = (struct pawl_extend_item){ .key = pawl_str("k"), .lease_ms = 9000,
			.lock_id.bytes = { 1 }, .slots = { UINT64_MAX, UINT64_MAX } };
	}
	struct pawl_request request = { .method = PAWL_EXTEND, .locks = items, .lock_count = 1000 };
	struct pawl_result *result = NULL;
	assert_int_equal(pawl_start(r.client, &request, rig_done, &result, NULL), PAWL_ETOOLARGE);
	request.lock_count = 400;
	result = rig_ask(&r, &request);
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	rig_close(&r);
}

#define ROOM 20

/* The locks of each client may be watched on one connection only up to a limit. The others are
 * held as well, their program can see it, and they are heard as soon as there is room. */
static void a_lock_that_no_node_has_room_to_watch_is_held_and_is_heard_later(void **state) {
	(void)state;
	struct rig r;
	static struct holder h[2 * ROOM];
	char key[16];
	rig_open(&r, NULL);
	r.nodes[0].watches_most = ROOM;
	for (size_t i = 0; i < 2 * ROOM; i++) {
		(void)snprintf(key, sizeof(key), "k%zu", i);
		take(&r, &h[i], (struct pawl_lock_options){ .key = pawl_str(key),
			.lease_ms = 30000, .on_asked = on_asked });
		assert_int_equal(pawl_lock_asked_error(h[i].lock), i < ROOM ? 0 : PAWL_EFULL);
	}
	const unsigned asked = r.nodes[0].asked[CLIENT_WATCH];
	rig_pass(&r, 60 * SPAN_S);
	/* One of them asks for all, at last every 2.5 to 5 s. */
	assert_in_range(r.nodes[0].asked[CLIENT_WATCH] - asked, 10, 35);
	for (size_t i = 0; i < ROOM; i++) {
		assert_int_equal(h[i].lost, 0);
		pawl_lock_free(h[i].lock);
	}
	rig_pass(&r, 6 * SPAN_S);
	for (size_t i = ROOM; i < 2 * ROOM; i++) {
		assert_int_equal(pawl_lock_asked_error(h[i].lock), 0);
		assert_int_equal(h[i].lost, 0);
	}
	assert_int_equal(r.nodes[0].watches, 2 * ROOM);
	rig_close(&r);
}

/* The one that asks for all is freed, and the connection is lost: others ask in its place. */
static void locks_that_wait_to_be_heard_do_not_depend_on_one_of_them(void **state) {
	(void)state;
	struct rig r;
	struct holder h[4];
	const char *const keys[] = { "a", "b", "c", "d" };
	rig_open(&r, NULL);
	r.nodes[0].watches_most = 1;
	for (size_t i = 0; i < 4; i++) {
		take(&r, &h[i], (struct pawl_lock_options){ .key = pawl_str(keys[i]),
			.lease_ms = 30000, .on_asked = on_asked });
	}
	pawl_lock_free(h[1].lock);
	rig_settle(&r);
	r.nodes[0].watches_most = 2;
	rig_pass(&r, 6 * SPAN_S);
	assert_int_equal(pawl_lock_asked_error(h[2].lock), 0);
	assert_int_equal(pawl_lock_asked_error(h[3].lock), PAWL_EFULL);
	/* The second node has room. */
	fake_hang_up(&r.nodes[0]);
	rig_pass(&r, SPAN_S);
	assert_int_equal(pawl_lock_asked_error(h[3].lock), 0);
	assert_int_equal(r.nodes[1].watches - r.nodes[1].unwatched, 3);
	assert_int_equal(h[0].lost + h[2].lost + h[3].lost, 0);
	rig_close(&r);
}

UNIT(client_handles) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_client_may_be_freed_with_a_lock_that_may_be_asked_for),
		cmocka_unit_test(a_request_that_lets_go_ends_the_belief_of_the_handle),
		cmocka_unit_test(who_lets_go_twice_is_told_once),
		cmocka_unit_test(a_release_of_one_key_leaves_the_same_lock_id_of_another_alone),
		cmocka_unit_test(the_release_of_a_lost_handle_ends_a_newer_one_of_the_lock),
		cmocka_unit_test(a_request_to_extend_is_no_larger_than_a_node_reads),
		cmocka_unit_test(a_list_that_no_node_reads_is_refused_at_once),
		cmocka_unit_test(
			a_lock_that_no_node_has_room_to_watch_is_held_and_is_heard_later),
		cmocka_unit_test(locks_that_wait_to_be_heard_do_not_depend_on_one_of_them),
		cmocka_unit_test(locks_stay_held_while_the_cluster_allows_shorter_leases),
		cmocka_unit_test(a_lock_that_is_denied_ends_no_other_one),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
