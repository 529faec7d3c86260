/* These tests are about the packets in which nodes ask and tell each other who waits and who
 * holds. */
#include "unit.h"

#include "pawl/error.h"
#include "peer.h"
#include "peer_waits.h"
#include "wire_random.h"

struct heard {
	struct wait_fact waits[4];
	struct hold_fact holds[4];
	uint32_t wait_count, hold_count;
};

static void hear_wait(void *ctx, const struct wait_fact *fact) {
	struct heard *h = ctx;
	h->waits[h->wait_count++ % 4] = *fact;
}

static void hear_hold(void *ctx, const struct hold_fact *fact) {
	struct heard *h = ctx;
	h->holds[h->hold_count++ % 4] = *fact;
}

static int set_up(void **state) {
	static struct allocator alloc;
	static struct buffer b;
	alloc = alloc_libc(NULL);
	buffer_init(&b, &alloc, 1 << 20);
	*state = &b;
	return 0;
}

static int tear_down(void **state) {
	buffer_done(*state);
	return 0;
}

static struct slice body_of(const struct buffer *b) {
	struct slice body;
	assert_int_equal(peer_scan(buffer_slice(b), PEER_BODY_BYTES_MAX, &body, NULL),
		PEER_SCAN_COMPLETE);
	assert_int_equal(body.size + PEER_PREFIX_BYTES, b->size);
	assert_true(waits_is_packet(body));
	assert_true(peer_is_note(body));
	return body;
}

/* Every packet that is cut off, or longer, is refused. */
static void assert_strict(struct slice body) {
	struct waits_packet got;
	for (size_t size = 0; size < body.size; size++) {
		uint8_t *cut = wire_exact(body.data, size);
		assert_int_equal(waits_decode(slice_of(cut, size), &got), PAWL_EPROTOCOL);
		free(cut);
	}
	uint8_t *longer = wire_exact(body.data, body.size + 1);
	assert_int_equal(waits_decode(slice_of(longer, body.size + 1), &got), PAWL_EPROTOCOL);
	free(longer);
}

static struct waits_ask ask_of(uint32_t keys, uint32_t parties) {
	struct waits_ask ask = { .key_count = keys, .party_count = parties };
	for (uint32_t i = 0; i < WAITS_ASKED_MAX; i++) {
		ask.keys[i] = slice_str("key");
		ask.parties[i] = (struct id128){ { (uint8_t)(i + 1) } };
	}
	return ask;
}

static void a_question_comes_back_as_it_was(void **state) {
	struct waits_ask ask = ask_of(2, WAITS_ASKED_MAX);
	struct waits_packet got;
	assert_int_equal(waits_ask_encode(77, &ask, *state), 0);
	struct slice body = body_of(*state);
	assert_int_equal(waits_decode(body, &got), 0);
	assert_true(got.kind == WAITS_ASK && got.round == 77);
	assert_int_equal(got.ask.key_count, 2);
	assert_int_equal(got.ask.party_count, WAITS_ASKED_MAX);
	assert_true(slice_equal(got.ask.keys[1], slice_str("key")));
	assert_true(id128_equal(got.ask.parties[63], ask.parties[63]));
	assert_strict(body);
}

static void facts_come_back_as_they_were(void **state) {
	struct waits_answer answer;
	struct waits_packet got;
	struct heard h = { .wait_count = 0 };
	const struct waits_reader reader = { &h, hear_wait, hear_hold };
	const struct wait_fact wait = { .party = { { 1 } }, .lock_id = { { 2 } },
		.key = slice_str("k"), .owner = slice_str("o"), .of = 5, .count = 3,
		.request = UINT64_MAX, .since_ms = 1234567890123, .free = true };
	const struct hold_fact hold = { .party = { { 3 } }, .lock_id = { { 4 } },
		.key = slice_str("l"), .of = MODE_SHARED };
	struct allocator alloc = alloc_libc(NULL);
	waits_answer_init(&answer, &alloc);
	waits_answer_wait(&answer, &wait);
	waits_answer_hold(&answer, &hold);
	waits_answer_hold(&answer, &hold);
	assert_int_equal(waits_answer_encode(9, &answer, *state), 0);
	waits_answer_done(&answer);
	struct slice body = body_of(*state);
	assert_int_equal(waits_decode(body, &got), 0);
	assert_true(got.kind == WAITS_FACTS && got.round == 9 && !got.cut);
	waits_read(&got, &reader);
	assert_int_equal(h.wait_count, 1);
	assert_int_equal(h.hold_count, 2);
	assert_true(id128_equal(h.waits[0].party, wait.party));
	assert_true(id128_equal(h.waits[0].lock_id, wait.lock_id));
	assert_true(slice_equal(h.waits[0].key, wait.key));
	assert_true(slice_equal(h.waits[0].owner, wait.owner));
	assert_true(h.waits[0].of == 5 && h.waits[0].count == 3 && h.waits[0].free);
	assert_true(h.waits[0].request == wait.request && h.waits[0].since_ms == wait.since_ms);
	assert_true(id128_equal(h.holds[1].party, hold.party));
	assert_true(h.holds[1].of == MODE_SHARED && h.holds[1].count == 0);
	assert_strict(body);
}

static void what_has_no_room_is_cut(void **state) {
	struct waits_answer answer;
	struct waits_packet got;
	uint8_t key[KEY_MAX] = { 0 };
	const struct hold_fact hold = { .key = slice_of(key, sizeof key) };
	struct allocator alloc = alloc_libc(NULL);
	waits_answer_init(&answer, &alloc);
	for (int i = 0; i < 1000; i++) {
		waits_answer_hold(&answer, &hold);
	}
	assert_true(answer.cut);
	assert_int_equal(waits_answer_encode(9, &answer, *state), 0);
	waits_answer_done(&answer);
	struct slice body = body_of(*state);
	assert_in_range(body.size, WAITS_BYTES_MAX / 3, WAITS_BYTES_MAX);
	assert_int_equal(waits_decode(body, &got), 0);
	assert_true(got.cut);
}

static struct waits_ring ring_of(const char *node) {
	struct waits_ring ring = { .count = 2, .refused = true };
	ring.members[0] = (struct ring_member){ slice_str("a"), slice_str("k1"),
		slice_str("n1") };
	ring.members[1] = (struct ring_member){ slice_str(""), slice_str("k2"),
		slice_str(node) };
	return ring;
}

static void a_ring_comes_back_as_it_was(void **state) {
	struct waits_ring ring = ring_of("n2");
	struct waits_packet got;
	assert_int_equal(waits_ring_encode(5, &ring, *state), 0);
	struct slice body = body_of(*state);
	assert_int_equal(waits_decode(body, &got), 0);
	assert_true(got.kind == WAITS_RING && got.round == 5);
	assert_true(got.ring.refused && got.ring.count == 2);
	assert_true(slice_equal(got.ring.members[0].owner, slice_str("a")));
	assert_true(slice_equal(got.ring.members[1].key, slice_str("k2")));
	assert_true(slice_equal(got.ring.members[1].node, slice_str("n2")));
	assert_strict(body);
}

static void a_name_with_control_characters_is_refused(void **state) {
	struct waits_ring ring = ring_of("n\n2");
	struct waits_packet got;
	assert_int_equal(waits_ring_encode(5, &ring, *state), 0);
	assert_int_equal(waits_decode(body_of(*state), &got), PAWL_EPROTOCOL);
}

static void an_empty_key_is_refused(void **state) {
	struct waits_ask ask = ask_of(1, 0);
	struct waits_packet got;
	ask.keys[0] = slice_of(NULL, 0);
	assert_int_equal(waits_ask_encode(5, &ask, *state), 0);
	assert_int_equal(waits_decode(body_of(*state), &got), PAWL_EPROTOCOL);
}

static void a_note_is_no_such_packet(void **state) {
	struct peer_note note = { .rights = "none" };
	struct slice body;
	assert_int_equal(peer_note_encode(&note, *state), 0);
	assert_int_equal(peer_scan(buffer_slice(*state), PEER_BODY_BYTES_MAX, &body, NULL),
		PEER_SCAN_COMPLETE);
	assert_false(waits_is_packet(body));
}

#define ON_BUFFER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

UNIT(wire_waits) {
	const struct CMUnitTest tests[] = {
		ON_BUFFER(a_question_comes_back_as_it_was),
		ON_BUFFER(facts_come_back_as_they_were),
		ON_BUFFER(what_has_no_room_is_cut),
		ON_BUFFER(a_ring_comes_back_as_it_was),
		ON_BUFFER(a_name_with_control_characters_is_refused),
		ON_BUFFER(an_empty_key_is_refused),
		ON_BUFFER(a_note_is_no_such_packet),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
