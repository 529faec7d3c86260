/* These tests are about looks for deadlocks between clients: what they ask, and what confirms a
 * deadlock; and about the text that tells a ring. */
#include "unit.h"

#include "deadlock_facts.h"
#include "look.h"
#include "ring_text.h"

static struct allocator libc;

static int set_up(void **state) {
	(void)state;
	libc = alloc_libc(NULL);
	return 0;
}

struct world {
	struct look look;
	struct instant now;
	struct waits_ask ask;
	struct deadlock found;
	/* The second node leaves something out. */
	bool cut;
	/* What two nodes know. */
	struct hold_fact holds[2];
	struct wait_fact waits[2];
};

/* A ring of two over two nodes. */
static struct world world_of(void) {
	struct world w = { .now = { SPAN_S, SPAN_S } };
	look_init(&w.look, &libc, hash_key);
	for (uint32_t i = 0; i < 2; i++) {
		w.holds[i] = holds(i, i, MODE_EXCLUSIVE, 0);
		w.waits[i] = waits(i, 1 - i, MODE_EXCLUSIVE, 0, 1 + i);
	}
	return w;
}

static bool asks_for(const struct waits_ask *ask, struct slice key, struct id128 party) {
	bool any = false;
	for (uint32_t i = 0; i < ask->key_count; i++) {
		any = any || slice_equal(ask->keys[i], key);
	}
	for (uint32_t i = 0; i < ask->party_count; i++) {
		any = any || id128_equal(ask->parties[i], party);
	}
	return any;
}

/* Both nodes answer what was asked. */
static void answer(struct world *w) {
	for (uint32_t node = 0; node < 2; node++) {
		struct facts *f = look_answer(&w->look, node, w->look.round, node == 1 && w->cut);
		const struct id128 nobody = { { 0 } };
		assert_non_null(f);
		if (asks_for(&w->ask, w->holds[node].key, nobody)) {
			facts_hold(f, &w->holds[node]);
			facts_wait(f, &w->waits[node], node);
		} else if (asks_for(&w->ask, slice_of(NULL, 0), w->waits[node].party)) {
			facts_wait(f, &w->waits[node], node);
		}
	}
}

static enum look_step next(struct world *w) {
	return look_next(&w->look, w->now, &w->ask, &w->found);
}

/* Goes on until the look asks nothing more. */
static enum look_step ask_all(struct world *w) {
	enum look_step step;
	while ((step = next(w)) == LOOK_ASKS) {
		look_asked(&w->look, 3 & ~w->look.silent, w->now);
		answer(w);
	}
	return step;
}

static void pass(struct world *w, span_ns time) {
	w->now = instant_add(w->now, time);
}

static void a_look_finds_a_ring_and_confirms_it(void **state) {
	(void)state;
	struct world w = world_of();
	assert_true(look_begin(&w.look, id_of('p', 0)));
	assert_int_equal(ask_all(&w), LOOK_WAITS);
	assert_int_equal(w.look.state, LOOK_RESTING);
	pass(&w, LOOK_RESTS - 1);
	assert_int_equal(next(&w), LOOK_WAITS);
	pass(&w, 1);
	assert_int_equal(ask_all(&w), LOOK_FOUND);
	assert_int_equal(w.found.count, 2);
	look_done(&w.look);
}

/* The same keys are held and waited for, by other locks than before. */
static void what_came_anew_does_not_confirm(void **state) {
	(void)state;
	for (uint32_t what = 0; what < 3; what++) {
		struct world w = world_of();
		assert_true(look_begin(&w.look, id_of('p', 0)));
		assert_int_equal(ask_all(&w), LOOK_WAITS);
		if (what == 0) {
			w.holds[1].lock_id = id_of('x', 0);
		} else if (what == 1) {
			w.waits[1].lock_id = id_of('x', 0);
		} else {
			w.waits[1].request++;
		}
		pass(&w, LOOK_RESTS);
		assert_int_equal(ask_all(&w), LOOK_OVER);
		look_done(&w.look);
	}
}

static void a_node_that_does_not_answer_holds_nothing(void **state) {
	(void)state;
	struct world w = world_of();
	assert_true(look_begin(&w.look, id_of('p', 0)));
	assert_int_equal(next(&w), LOOK_ASKS);
	look_asked(&w.look, 3, w.now);
	facts_wait(look_answer(&w.look, 0, w.look.round, false), &w.waits[0], 0);
	assert_int_equal(next(&w), LOOK_WAITS);
	pass(&w, LOOK_ROUND);
	assert_int_equal(next(&w), LOOK_ASKS);
	assert_int_equal(w.look.silent, 2);
	/* Its answer comes too late. */
	assert_null(look_answer(&w.look, 1, w.look.round, false));
	look_asked(&w.look, 1, w.now);
	assert_null(look_answer(&w.look, 0, w.look.round - 1, false));
	assert_non_null(look_answer(&w.look, 0, w.look.round, false));
	assert_int_equal(next(&w), LOOK_OVER);
	look_done(&w.look);
}

static void an_answer_that_was_cut_ends_the_look(void **state) {
	(void)state;
	struct world w = world_of();
	w.cut = true;
	assert_true(look_begin(&w.look, id_of('p', 0)));
	assert_int_equal(ask_all(&w), LOOK_OVER);
	assert_int_equal(w.look.state, LOOK_ASKING);
	look_done(&w.look);
}

/* ---- the text ---- */

static void a_ring_is_told_in_words(void **state) {
	(void)state;
	char text[RING_TEXT_BYTES];
	struct waits_ring ring = { .count = 2 };
	ring.members[0] = (struct ring_member){ slice_str("a\n"), slice_str("k1"),
		slice_str("n1") };
	ring.members[1] = (struct ring_member){ slice_str(""), slice_str("k2"), slice_str("n2") };
	ring_text(&ring, 2, text);
	assert_string_equal(text, "a? waits for k1, which (no owner) holds; "
		"(no owner) waits for k2, which a? holds");
	ring_text(&ring, 5, text);
	assert_string_equal(text, "a? waits for k1, which (no owner) holds; "
		"(no owner) waits for k2; and 3 more");
}

static void a_text_is_bounded(void **state) {
	(void)state;
	char text[RING_TEXT_BYTES];
	uint8_t name[KEY_MAX];
	struct waits_ring ring = { .count = RING_MEMBERS_MAX };
	memset(name, 'x', sizeof name);
	for (uint32_t i = 0; i < RING_MEMBERS_MAX; i++) {
		ring.members[i] = (struct ring_member){ slice_of(name, OWNER_MAX),
			slice_of(name, KEY_MAX), slice_str("n1") };
	}
	ring_text(&ring, UINT32_MAX, text);
	assert_in_range(strlen(text), 600, RING_TEXT_BYTES - 1);
	assert_non_null(strstr(text, " more"));
}

UNIT(node_look) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_look_finds_a_ring_and_confirms_it),
		cmocka_unit_test(what_came_anew_does_not_confirm),
		cmocka_unit_test(a_node_that_does_not_answer_holds_nothing),
		cmocka_unit_test(an_answer_that_was_cut_ends_the_look),
		cmocka_unit_test(a_ring_is_told_in_words),
		cmocka_unit_test(a_text_is_bounded),
	};
	return cmocka_run_group_tests_name(group_name, tests, set_up, NULL);
}
