/* watched.h: what the tests of watches at a master share. There are three masters, of which n3 is
 * watched, and perhaps a replica. */
#ifndef PAWL_TESTS_WATCHED_H
#define PAWL_TESTS_WATCHED_H

#include "members.h"
#include "replicas.h"

#define WATCHED(test) cmocka_unit_test_setup_teardown(test, setup_watched, named_teardown)
#define WITH_A_REPLICA(test) cmocka_unit_test_setup_teardown(test, with_a_replica, named_teardown)
#define N3 2u

static inline int setup_watched(void **state) {
	*state = NULL;
	assert_int_equal(named_setup(state), 0);
	stage_want_events(*state, N3);
	return 0;
}

static inline int with_a_replica(void **state) {
	struct stage_options o = named_options();
	o.replicas = 1;
	struct stage *s = stage_born(&o);
	*state = s;
	stage_want_events(s, N3);
	stage_wait(s, SHORT);
	return 0;
}

static inline void drain_events(struct stage *s) {
	while (stage_next_event(s, N3)) {
	}
}

static inline void nothing_more(struct stage *s) {
	assert_null(stage_next_event(s, N3));
}

#endif
