/* These tests copy keys with more records, and more bytes, than one piece or one link holds
 * (docs/protocol.md, section 4, A copy in pieces). */
#include "modes.h"
#include "replicas.h"

#define LONG (9 * SPAN_S)
#define MANY 300u
#define LARGE ((size_t)1 << 20)
/* More large values than a link may have to send. */
#define TOO_LARGE 80u

static int setup_catching_up(void **state, uint32_t catching_up) {
	struct stage_options o = named_options();
	o.replicas = 1;
	o.unchecked = true;
	o.replies = 64;
	o.limits.value_bytes = LARGE;
	o.limits.catching_up = catching_up;
	*state = stage_born(&o);
	stage_wait(*state, SHORT);
	return 0;
}

static int setup_pieces(void **state) {
	return setup_catching_up(state, 0);
}

/* A coordinator sends nothing again, so that masters have to pull what they lack. */
static int setup_pulls(void **state) {
	return setup_catching_up(state, 1);
}

#define PIECES(test) cmocka_unit_test_setup_teardown(test, setup_pieces, named_teardown)

static void share_one(struct stage *s, uint32_t i, struct slice value) {
	struct core_request r = shared_request("k", numbered_lock(i), 0);
	r.lease = LONG;
	r.value = value;
	r.client = 1000 + i;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

static void share_many(struct stage *s, uint32_t from, uint32_t to, size_t size) {
	static uint8_t bytes[LARGE];
	for (uint32_t i = from; i < to; i++) {
		share_one(s, i, slice_of(bytes, size));
	}
}

static uint32_t held_at(const struct stage *s, uint32_t node, uint32_t to) {
	uint32_t held = 0;
	for (uint32_t i = 0; i < to; i++) {
		held += has(s, node, "k", numbered_lock(i));
	}
	return held;
}

static void one_key_with_more_than_a_link_holds_is_copied(void **state) {
	struct stage *s = *state;
	stage_isolate(s, REPLICA, true);
	share_many(s, 0, TOO_LARGE, LARGE);
	stage_isolate(s, REPLICA, false);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	const uint64_t resets = stage_count(s, COUNT_link_reset);
	assert_true(stage_until_voting(s, 2, 2 * SPAN_S));
	stage_wait(s, SHORT);
	assert_int_equal(held_at(s, 2, TOO_LARGE), TOO_LARGE);
	assert_int_equal(held_at(s, REPLICA, TOO_LARGE), TOO_LARGE);
	assert_int_equal(stage_count(s, COUNT_link_reset), resets);
}

/* n3 misses all of it, and has it soon after it is back, without a link that is lost. */
static void missed_values_are_repaired(struct stage *s) {
	stage_isolate(s, 2, true);
	share_many(s, 0, TOO_LARGE, LARGE);
	stage_isolate(s, 2, false);
	const uint64_t resets = stage_count(s, COUNT_link_reset);
	stage_wait(s, 2 * SPAN_S);
	assert_int_equal(held_at(s, 2, TOO_LARGE), TOO_LARGE);
	assert_int_equal(stage_count(s, COUNT_link_reset), resets);
}

static void a_coordinator_repairs_no_more_than_a_link_holds(void **state) {
	struct stage *s = *state;
	missed_values_are_repaired(s);
	const uint64_t sent = stage_count(s, COUNT_repair_sent);
	assert_in_range(sent, 1, TOO_LARGE - 1);
}

static void masters_pull_no_more_than_a_link_holds(void **state) {
	struct stage *s = *state;
	missed_values_are_repaired(s);
	assert_in_range(stage_count(s, COUNT_repair_sent), 0, 1);
}

static void stop_pieces(struct stage *s, bool stop) {
	for (uint32_t source = 0; source < 2; source++) {
		stage_stop(s, 2, source, MESSAGE_SNAPSHOT_GO_ON, stop);
	}
}

/* n3 starts again, and the sources send their first pieces and no more. Returns how many records
 * those have. */
static uint64_t first_pieces(struct stage *s) {
	stop_pieces(s, true);
	const uint64_t before = stage_sent(s, MESSAGE_SNAPSHOT_RECORD);
	stage_kill(s, 2);
	assert_true(stage_start(s, 2));
	stage_mend(s);
	for (int i = 0; i < 100 && stage_sent(s, MESSAGE_SNAPSHOT_RECORD) == before; i++) {
		stage_wait(s, 5 * SPAN_MS);
	}
	return stage_sent(s, MESSAGE_SNAPSHOT_RECORD) - before;
}

/* The table grows meanwhile, so that keys move to other buckets. */
static void what_changes_between_two_pieces_of_a_key_is_copied_as_it_is_then(void **state) {
	struct stage *s = *state;
	share_many(s, 0, MANY, 8);
	assert_in_range(first_pieces(s), 1, 256);
	assert_int_not_equal(stage_status(s, 2).state, CORE_VOTING);
	for (uint32_t i = 0; i < MANY; i += 3) {
		assert_int_equal(release(s, 0, "k", numbered_lock(i)), PAWL_OK);
	}
	share_many(s, MANY, MANY + 50, 8);
	take_many(s, 1000, 1600);
	s->options.unchecked = true;
	stop_pieces(s, false);
	assert_true(stage_until_voting(s, 2, 2 * SPAN_S));
	for (uint32_t i = 0; i < MANY + 50; i++) {
		assert_int_equal(has(s, 2, "k", numbered_lock(i)), i >= MANY || i % 3 != 0);
	}
	char name[16];
	for (uint32_t i = 1000; i < 1600; i++) {
		assert_true(has(s, 2, numbered(name, i), numbered_lock(i)));
	}
	core_check(s->nodes[2].core);
}

/* A piece has at most 128 records, whatever keys they belong to. */
static void a_piece_ends_within_a_key(void **state) {
	struct stage *s = *state;
	share_many(s, 0, MANY, 8);
	/* Each of two sources has sent one piece. */
	assert_in_range(first_pieces(s), 1, 256);
	stop_pieces(s, false);
	assert_true(stage_until_voting(s, 2, 2 * SPAN_S));
	assert_int_equal(held_at(s, 2, MANY), MANY);
}

UNIT(cluster_pieces) {
	const struct CMUnitTest tests[] = {
		PIECES(one_key_with_more_than_a_link_holds_is_copied),
		PIECES(a_coordinator_repairs_no_more_than_a_link_holds),
		cmocka_unit_test_setup_teardown(masters_pull_no_more_than_a_link_holds,
			setup_pulls, named_teardown),
		PIECES(what_changes_between_two_pieces_of_a_key_is_copied_as_it_is_then),
		PIECES(a_piece_ends_within_a_key),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
