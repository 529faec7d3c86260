/* These tests end blocking calls from outside, with pawl_wake. */
#include "blocking_pair.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static struct pawl *to_wake;

static void on_signal(int number) {
	(void)number;
	pawl_wake(to_wake);
}

/* The node runs on the client's loop, so what is sent arrives while this waits. */
static void settle(struct pair *p) {
	assert_int_equal(pawl_poll(p->client, 20), 0);
}

/* Waits until the node was asked for so many releases, for at most a few seconds. */
static void await_releases(struct pair *p, unsigned count) {
	for (int naps = 0; naps < 100 && p->node.asked[CLIENT_RELEASE] < count; naps++) {
		assert_int_equal(pawl_poll(p->client, 50), 0);
	}
	assert_int_equal(p->node.asked[CLIENT_RELEASE], count);
}

static struct pawl_lock *take(struct pair *p) {
	struct pawl_lock *lock = NULL;
	struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 5000 };
	assert_int_equal(pawl_lock_acquire(p->client, &o, &lock, NULL), 0);
	return lock;
}

static void a_signal_ends_an_acquire_that_waits_without_an_end(void **state) {
	(void)state;
	struct pair p;
	struct pawl_lock *lock = NULL;
	struct pawl_result *result;
	pair_open(&p);
	p.node.mood = FAKE_KEEPS_ONE_IN;
	to_wake = p.client;
	struct sigaction act = { .sa_handler = on_signal }, before;
	assert_int_equal(sigaction(SIGALRM, &act, &before), 0);
	struct itimerval soon = { .it_value = { .tv_usec = 20000 } };
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
	struct pawl_lock_options o = { .key = pawl_str("k"), .wait_ms = PAWL_FOREVER,
		.lock_id = { { 7 } } };
	assert_int_equal(pawl_lock_acquire(p.client, &o, &lock, &result), PAWL_EINTERRUPTED);
	assert_null(lock);
	assert_int_equal(result->error, PAWL_EINTERRUPTED);
	assert_string_equal(result->message, pawl_error_message(PAWL_EINTERRUPTED));
	pawl_result_free(result);
	assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
	/* What the node may have granted is given back. */
	settle(&p);
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 1);
	assert_int_equal(p.node.last_lock_id.b[0], 7);
	pair_close(&p);
}

static void *wake(void *client) {
	pawl_wake(client);
	return NULL;
}

static void another_thread_ends_a_call_whichever_comes_first(void **state) {
	(void)state;
	struct pair p;
	pair_open(&p);
	p.node.mood = FAKE_KEEPS_ONE_IN;
	struct pawl_request request = { .method = PAWL_ACQUIRE, .key = pawl_str("k"),
		.wait_ms = PAWL_FOREVER };
	for (int i = 0; i < 200; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, wake, p.client), 0);
		assert_int_equal(pawl_call(p.client, &request, NULL), PAWL_EINTERRUPTED);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	assert_int_equal(pawl_poll(p.client, 0), 0);
	pair_close(&p);
}

static void a_wake_is_kept_for_the_next_call_and_several_are_one(void **state) {
	(void)state;
	struct pair p;
	pair_open(&p);
	errno = ENOENT;
	pawl_wake(p.client);
	pawl_wake(p.client);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(pawl_poll(p.client, 60000), PAWL_EINTERRUPTED);
	assert_int_equal(pawl_poll(p.client, 0), 0);
	pawl_wake(p.client);
	assert_int_equal(pawl_poll(p.client, 0), PAWL_EINTERRUPTED);
	assert_int_equal(pawl_poll(p.client, 1), 0);
	pair_close(&p);
}

static void wake_in_callback(struct pawl_result *take_result, void *arg) {
	pawl_result_free(take_result);
	pawl_wake(arg);
}

static void a_call_that_has_its_outcome_leaves_the_wake_to_the_next_one(void **state) {
	(void)state;
	struct pair p;
	const struct pawl_request ping = { .method = PAWL_PING };
	pair_open(&p);
	/* Both answers are read at once. */
	assert_int_equal(pawl_start(p.client, &ping, wake_in_callback, p.client, NULL), 0);
	assert_int_equal(pawl_call(p.client, &ping, NULL), 0);
	assert_int_equal(pawl_poll(p.client, 60000), PAWL_EINTERRUPTED);
	assert_int_equal(pawl_poll(p.client, 0), 0);
	pair_close(&p);
}

/* ---- each blocking call ---- */

static void a_release_that_is_interrupted_goes_on(void **state) {
	(void)state;
	struct pair p;
	pair_open(&p);
	struct pawl_lock *lock = take(&p);
	fake_hang_up(&p.node);
	settle(&p);
	/* There is no connection now, so the release is not sent before the wake. */
	pawl_wake(p.client);
	assert_int_equal(pawl_lock_release(lock), PAWL_EINTERRUPTED);
	await_releases(&p, 1);
	settle(&p);
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 1);
	pair_close(&p);
}

static void several_locks_that_are_being_released_are_released(void **state) {
	(void)state;
	struct pair p;
	struct pawl_lock *locks[2];
	pair_open(&p);
	const struct pawl_key_item keys[] = { { .key = pawl_str("a") }, { .key = pawl_str("b") } };
	struct pawl_lock_options o = { .lease_ms = 5000 };
	assert_int_equal(pawl_locks_acquire(p.client, &o, keys, 2, locks, NULL), 0);
	fake_hang_up(&p.node);
	settle(&p);
	pawl_wake(p.client);
	assert_int_equal(pawl_locks_release(locks, 2), PAWL_EINTERRUPTED);
	await_releases(&p, 2);
	pair_close(&p);
}

static void a_transfer_that_is_interrupted_becomes_a_release(void **state) {
	(void)state;
	struct pair p;
	pair_open(&p);
	struct pawl_lock *lock = take(&p);
	struct pawl_result *result;
	p.node.mood = FAKE_KEEPS_ONE_IN;
	pawl_wake(p.client);
	assert_int_equal(pawl_lock_transfer(lock, pawl_str("b"), &result), PAWL_EINTERRUPTED);
	assert_int_equal(result->error, PAWL_EINTERRUPTED);
	pawl_result_free(result);
	assert_int_equal(pawl_lock_error(lock), PAWL_ELOST);
	pawl_lock_free(lock);
	settle(&p);
	assert_int_equal(p.node.asked[CLIENT_TRANSFER], 1);
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 1);
	assert_int_equal(p.node.asked[CLIENT_EXTEND], 0);
	pair_close(&p);
}

static void an_acquire_of_several_keys_is_given_back(void **state) {
	(void)state;
	struct pair p;
	struct pawl_lock *locks[2] = { NULL, NULL };
	struct pawl_result *result;
	pair_open(&p);
	assert_int_equal(pawl_call(p.client, &(struct pawl_request){ .method = PAWL_PING }, NULL),
		0);
	p.node.mood = FAKE_KEEPS_ONE_IN;
	const struct pawl_key_item keys[] = { { .key = pawl_str("a") }, { .key = pawl_str("b") } };
	struct pawl_lock_options o = { .wait_ms = PAWL_FOREVER };
	pawl_wake(p.client);
	assert_int_equal(pawl_locks_acquire(p.client, &o, keys, 2, locks, &result),
		PAWL_EINTERRUPTED);
	pawl_result_free(result);
	assert_null(locks[0]);
	settle(&p);
	assert_int_equal(p.node.asked[CLIENT_ACQUIRE], 1);
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 2);
	pair_close(&p);
}

static void an_update_and_a_downgrade_are_interrupted_and_the_lock_stays_held(void **state) {
	(void)state;
	struct pair p;
	struct pawl_result *result;
	pair_open(&p);
	struct pawl_lock *lock = take(&p);
	p.node.mood = FAKE_KEEPS_ONE_IN;
	pawl_wake(p.client);
	assert_int_equal(pawl_lock_update(lock, pawl_str("v"), NULL, &result), PAWL_EINTERRUPTED);
	assert_int_equal(result->error, PAWL_EINTERRUPTED);
	pawl_result_free(result);
	pawl_wake(p.client);
	assert_int_equal(pawl_lock_downgrade(lock, NULL), PAWL_EINTERRUPTED);
	assert_int_equal(pawl_lock_error(lock), 0);
	assert_int_equal(pawl_lock_mode(lock), PAWL_SHARED);
	p.node.mood = FAKE_ANSWERS;
	assert_int_equal(pawl_lock_release(lock), 0);
	pair_close(&p);
}

static void a_client_in_the_loop_of_the_program_cannot_be_woken(void **state) {
	(void)state;
	struct rig r;
	rig_open(&r, NULL);
	pawl_wake(r.client);
	struct pawl_result *result = rig_ask(&r, &(struct pawl_request){ .method = PAWL_PING });
	assert_int_equal(result->error, 0);
	pawl_result_free(result);
	rig_close(&r);
}

UNIT(client_wake) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signal_ends_an_acquire_that_waits_without_an_end),
		cmocka_unit_test(another_thread_ends_a_call_whichever_comes_first),
		cmocka_unit_test(a_wake_is_kept_for_the_next_call_and_several_are_one),
		cmocka_unit_test(a_call_that_has_its_outcome_leaves_the_wake_to_the_next_one),
		cmocka_unit_test(a_release_that_is_interrupted_goes_on),
		cmocka_unit_test(several_locks_that_are_being_released_are_released),
		cmocka_unit_test(a_transfer_that_is_interrupted_becomes_a_release),
		cmocka_unit_test(an_acquire_of_several_keys_is_given_back),
		cmocka_unit_test(an_update_and_a_downgrade_are_interrupted_and_the_lock_stays_held),
		cmocka_unit_test(a_client_in_the_loop_of_the_program_cannot_be_woken),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
