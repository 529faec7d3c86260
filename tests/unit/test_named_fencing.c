/* An extension is answered with a token that q masters accepted (docs/protocol.md, sections 2 and 8.2). Three masters; the coordinators are
 * replicas. */
#include "replicas.h"

#define P 3u
#define Q 4u

static int setup_two(void **state) {
	return setup_with(state, 2, 0);
}

static void cut_masters(struct stage *s, uint32_t node) {
	for (uint32_t i = 0; i < 3; i++) {
		if (i != node) {
			stage_cut(s, node, i, true);
		}
	}
}

/* L1 is held with the token that n4 answered. A repeat of it at n5 reaches n1 alone, and fails; n1 is cut off from n2 and n3, and nobody there
 * hears of its token. */
static void a_token_of_a_failed_repeat_is_not_what_an_extension_answers(void **state) {
	struct stage *s = *state;
	stage_cut(s, P, 2, true);
	const uint64_t granted = take(s, P, "k", stage_lock(1));
	for (uint32_t i = 0; i < 2; i++) {
		stage_lose(s, i, 2, MESSAGE_SYNC_LEAVES, true); /* n3 has missed it */
	}
	stage_cut(s, Q, 1, true);
	cut_masters(s, 0);
	s->held[0][P] = true; /* slow */
	stage_stop(s, Q, 2, MESSAGE_COMMIT, true);
	const uint64_t repeat = stage_ask(s, Q, stage_acquire("k", stage_lock(1), LEASE, 0));
	stage_settle(s);
	stage_kill(s, Q);
	assert_false(answered(s, repeat));

	struct core_request r = stage_request(CORE_EXTEND, "k", stage_lock(1));
	r.lease = LEASE;
	const uint64_t extension = stage_ask(s, P, r);
	while (stage_deliver(s, P, 0) || stage_deliver(s, 0, P) || stage_deliver(s, P, 1) || stage_deliver(s, 1, P)) {
	}
	const uint64_t said = token_of(s, extension);
	stage_isolate(s, P, true);
	stage_settle(s);
	stage_wait(s, 3 * SPAN_S); /* L1 is over */

	assert_true(said >= granted);
	assert_true(take(s, 2, "k", stage_lock(2)) > said);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_token_of_a_failed_repeat_is_not_what_an_extension_answers, setup_two, named_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
