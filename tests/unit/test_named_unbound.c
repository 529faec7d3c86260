/* A node gives a lock up that was to end with it, and not every master hears (docs/protocol.md, section 2, Release on disconnect). Three
 * masters; the node is a replica. */
#include "replicas.h"

#define GRACE (50 * SPAN_MS)

/* n1 does not hear that the bond is over: the link is down just then. The lock is had by n1 and n2, as n3 has missed it, and its holder goes on
 * with it at n2. */
static void a_lock_that_goes_on_elsewhere_does_not_end_with_the_node_that_gave_it_up(void **state) {
	struct stage *s = *state;
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, i, 2, MESSAGE_SYNC_LEAVES, true);
	}
	stage_lose(s, REPLICA, 2, MESSAGE_COMMIT, true);
	stage_lose(s, 1, 2, MESSAGE_LEARN, true);
	take(s, REPLICA, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_BOND, "k", stage_lock(1));
	r.wait = GRACE;
	r.client = 77;
	(void)stage_ask(s, REPLICA, r);
	stage_settle(s);
	stage_cut(s, REPLICA, 0, true);
	stage_client_gone(s, REPLICA, 77);
	stage_settle(s);
	stage_cut(s, REPLICA, 0, false);
	stage_mend(s);
	stage_settle(s);
	assert_int_equal(extend(s, 1, "k", stage_lock(1), LEASE, true), PAWL_OK);
	stage_kill(s, REPLICA);
	stage_wait(s, 4 * GRACE);
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(2), LEASE, 0)), PAWL_EHELD);
	assert_true(has(s, 0, "k", stage_lock(1)) && has(s, 1, "k", stage_lock(1)));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		REPLICAS(a_lock_that_goes_on_elsewhere_does_not_end_with_the_node_that_gave_it_up),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
