/* What is left of a merge is finished key by key: by whoever looks at a key first, or by a sweep
 * (docs/protocol.md, section 6, Before the decree). Whoever finishes a key leaves it as every other
 * step does: it is woken at its end, or it is gone. */
#include "named.h"

#include <stdio.h>

/* More keys than the sweep looks at in one step. */
#define FILL 3000
#define PAIRS 24
#define ALONE 8

static void acquire_as(struct stage *s, const char *key, uint8_t lock, uint16_t of,
	uint32_t binding) {
	struct core_request r = stage_acquire(key, stage_lock(lock), LEASE, 0);
	r.terms.of = of;
	r.terms.binding = binding;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

static void end_binding(struct stage *s, const char *key, uint8_t lock) {
	struct core_request r = stage_request(CORE_RELEASE, key, stage_lock(lock));
	r.binding = 1;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

static bool has(struct stage *s, uint32_t node, const char *key, struct id128 lock) {
	uint64_t token, noted;
	return core_peek(s->nodes[node].core, slice_str(key), lock, &token, &noted);
}

static const char *name(char kind, uint32_t number) {
	static char text[16];
	snprintf(text, sizeof text, "%c%u", kind, (unsigned)number);
	return text;
}

/* n1 begins to vote after a restart. n2 told it of locks that have ended with their connection, as
 * n3 knows. They stand next to another lock of the same key, or alone. */
static int setup_unfinished(void **state) {
	struct stage_options o = named_options();
	/* Checking all these keys after each step would take too long. */
	o.unchecked = true;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t i = 0; i < FILL; i++) {
		struct core_request r = stage_acquire(name('f', i), stage_lock(0), LEASE, 0);
		memcpy(r.lock_id.b, &i, sizeof i);
		r.lock_id.b[15] = 1;
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	stage_lose(s, 1, 2, MESSAGE_SYNC_ROOT, true);
	stage_lose(s, 2, 1, MESSAGE_SYNC_ROOT, true);
	stage_lose(s, 0, 1, MESSAGE_RELEASE, true);
	for (uint8_t i = 0; i < PAIRS; i++) {
		acquire_as(s, name('p', i), (uint8_t)(100 + i), MODE_SHARED, 1);
		acquire_as(s, name('p', i), (uint8_t)(150 + i), MODE_SHARED, 0);
		end_binding(s, name('p', i), (uint8_t)(100 + i));
	}
	for (uint8_t i = 0; i < ALONE; i++) {
		acquire_as(s, name('a', i), (uint8_t)(200 + i), MODE_EXCLUSIVE, 1);
		end_binding(s, name('a', i), (uint8_t)(200 + i));
	}
	stage_kill(s, 0);
	stage_settle(s);
	assert_true(stage_start(s, 0));
	stage_mend(s);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	assert_int_equal(core_counts(s->nodes[0].core)[COUNT_merge_swept], 0);
	core_check(s->nodes[0].core);
	return 0;
}

static void a_read_leaves_a_key_to_be_woken_at_its_end(void **state) {
	struct stage *s = *state;
	for (uint8_t i = 0; i < PAIRS; i++) {
		assert_int_equal(stage_do(s, 0,
			stage_request(CORE_GET, name('p', i), (struct id128){ { 0 } })), PAWL_OK);
		core_check(s->nodes[0].core);
	}
	assert_int_equal(core_counts(s->nodes[0].core)[COUNT_merge_swept], 0);
	for (uint8_t i = 0; i < PAIRS; i++) {
		assert_false(has(s, 0, name('p', i), stage_lock((uint8_t)(100 + i))));
		assert_true(has(s, 0, name('p', i), stage_lock((uint8_t)(150 + i))));
	}
	stage_wait(s, 3 * SPAN_S);
	assert_int_equal(stage_status(s, 0).keys, 0);
}

static void a_snapshot_leaves_every_key_of_its_source_whole(void **state) {
	struct stage *s = *state;
	const struct message ask = { .kind = MESSAGE_SNAPSHOT, .round = 77, .epoch = 1 };
	stage_inject(s, 1, 0, &ask);
	for (uint32_t part = 0; part < 64 && s->nodes[0].core; part++) {
		core_check(s->nodes[0].core);
		const struct message go_on = { .kind = MESSAGE_SNAPSHOT_GO_ON, .round = 77,
			.part = part, .parts = part + 1 };
		stage_inject(s, 1, 0, &go_on);
	}
	core_check(s->nodes[0].core);
	assert_true(core_counts(s->nodes[0].core)[COUNT_snapshot_sent] > 0);
	assert_int_equal(core_counts(s->nodes[0].core)[COUNT_merge_swept], 0);
	stage_wait(s, 3 * SPAN_S);
	assert_int_equal(stage_status(s, 0).keys, 0);
}

#define SHARED_KEYS 10u
#define HOLDERS 500u
/* A piece has this many records, and those of one more key at the most. */
#define A_PIECE 1024u

static int setup_shared(void **state) {
	struct stage_options o = named_options();
	o.unchecked = true;
	o.replies = 64;
	struct stage *s = *state = stage_born(&o);
	for (uint32_t i = 0; i < SHARED_KEYS * HOLDERS; i++) {
		struct id128 lock = { { 7 } };
		memcpy(lock.b + 8, &i, sizeof i);
		struct core_request r = stage_acquire(name('s', (uint8_t)(i / HOLDERS)), lock,
			9 * SPAN_S, 0);
		r.terms.of = MODE_SHARED;
		assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	}
	return 0;
}

/* All of them fit into the buckets of one piece. */
static void keys_with_many_holders_are_finished_in_pieces(void **state) {
	struct stage *s = *state;
	uint32_t pieces = 0;
	stage_kill(s, 0);
	stage_settle(s);
	assert_true(stage_start(s, 0));
	stage_mend(s);
	assert_true(stage_until_voting(s, 0, SPAN_S));
	for (; core_counts(s->nodes[0].core)[COUNT_merge_swept] == 0 && pieces < 100; pieces++) {
		stage_wait(s, SPAN_MS);
	}
	assert_in_range(pieces, SHARED_KEYS * HOLDERS / (A_PIECE + HOLDERS), 20);
	assert_int_equal(stage_status(s, 0).held, SHARED_KEYS * HOLDERS);
}

#define UNFINISHED(test) cmocka_unit_test_setup_teardown(test, setup_unfinished, named_teardown)

UNIT(cluster_finish) {
	const struct CMUnitTest tests[] = {
		UNFINISHED(a_read_leaves_a_key_to_be_woken_at_its_end),
		UNFINISHED(a_snapshot_leaves_every_key_of_its_source_whole),
		cmocka_unit_test_setup_teardown(keys_with_many_holders_are_finished_in_pieces,
			setup_shared, named_teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
