/* These tests are about a release that closes the key (docs/client-protocol.md, release). Each
 * repeat of it says so, too. */
#include "holder.h"

#include "blocking_pair.h"

static void a_release_says_for_how_long_the_key_is_closed(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	const struct client_request *asked;
	hold(&r, &h, false);
	asked = &r.nodes[0].last;
	assert_int_equal(pawl_lock_enter(h.lock), 2);
	assert_int_equal(pawl_lock_release_closing_start(h.lock, 5000, on_done, &h), 0);
	rig_settle(&r);
	/* That has only left it. */
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 0);
	assert_int_equal(pawl_lock_release_closing_start(h.lock, 5000, on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(h.results, 1);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_true(asked->present & CLIENT_HAS_CLOSE);
	assert_int_equal(asked->core.closes, 5 * SPAN_S);
	/* Nodes of release 0.2.0 know nothing of it. */
	struct pawl_lock_options o = options_of(&h, false);
	take(&r, &h, &o);
	assert_int_equal(pawl_lock_release_start(h.lock, on_done, &h), 0);
	rig_settle(&r);
	assert_false(asked->present & CLIENT_HAS_CLOSE);
	rig_close(&r);
}

static void the_next_node_is_told_the_same(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	r.nodes[0].mood = FAKE_HANGS_UP;
	assert_int_equal(pawl_lock_release_closing_start(h.lock, 5000, on_done, &h), 0);
	rig_settle(&r);
	assert_int_equal(h.results, 1);
	assert_int_equal(r.nodes[1].last.core.closes, 5 * SPAN_S);
	rig_close(&r);
}

/* The release is still queued when the client is freed, which sends it before it is gone. */
static void freeing_the_client_sends_the_same(void **state) {
	(void)state;
	struct rig r;
	struct holder h;
	hold(&r, &h, false);
	assert_int_equal(pawl_lock_release_closing_start(h.lock, 5000, on_done, &h), 0);
	pawl_free(r.client);
	r.client = NULL;
	rig_settle(&r);
	assert_int_equal(h.error, PAWL_ECANCELED);
	assert_int_equal(r.nodes[0].asked[CLIENT_RELEASE], 1);
	assert_int_equal(r.nodes[0].last.core.closes, 5 * SPAN_S);
	rig_close(&r);
}

static void an_interrupted_release_goes_on_with_the_same(void **state) {
	(void)state;
	struct pair p;
	struct pawl_lock *lock = NULL;
	pair_open(&p);
	const struct pawl_lock_options o = { .key = pawl_str("k"), .lease_ms = 5000 };
	assert_int_equal(pawl_lock_acquire(p.client, &o, &lock, NULL), 0);
	fake_hang_up(&p.node);
	assert_int_equal(pawl_poll(p.client, 20), 0);
	/* There is no connection now, so the release is not sent before the wake. */
	pawl_wake(p.client);
	assert_int_equal(pawl_lock_release_closing(lock, 3000), PAWL_EINTERRUPTED);
	for (int naps = 0; naps < 100 && !p.node.asked[CLIENT_RELEASE]; naps++) {
		assert_int_equal(pawl_poll(p.client, 50), 0);
	}
	assert_int_equal(p.node.asked[CLIENT_RELEASE], 1);
	assert_int_equal(p.node.last.core.closes, 3 * SPAN_S);
	assert_int_equal(pawl_lock_release_closing(NULL, 3000), 0);
	pair_close(&p);
}

UNIT(client_closing) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_release_says_for_how_long_the_key_is_closed),
		cmocka_unit_test(the_next_node_is_told_the_same),
		cmocka_unit_test(freeing_the_client_sends_the_same),
		cmocka_unit_test(an_interrupted_release_goes_on_with_the_same),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
