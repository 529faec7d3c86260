/* These tests are about messages that go to several peers: the frames of the others have copies of
 * their bytes. */
#include "unit.h"

#include "pawl/error.h"
#include "peer.h"
#include "wire_random.h"

#define MESSAGES 1000

struct copies_test {
	struct allocator alloc;
	struct prng prng;
	struct buffer first, second, alone;
	struct peer_copies copies;
};

static int setup(void **state) {
	static struct copies_test t;
	t.alloc = alloc_libc(NULL);
	prng_init(&t.prng, 7);
	wire_pool_fill(&t.prng);
	buffer_init(&t.first, &t.alloc, 8u << 20);
	buffer_init(&t.second, &t.alloc, 8u << 20);
	buffer_init(&t.alone, &t.alloc, 8u << 20);
	peer_copies_clear(&t.copies);
	*state = &t;
	return 0;
}

static int teardown(void **state) {
	struct copies_test *t = *state;
	buffer_done(&t->first);
	buffer_done(&t->second);
	buffer_done(&t->alone);
	return 0;
}

static struct message some_message(struct prng *p) {
	static const enum message_kind kinds[] = { MESSAGE_PROMISE, MESSAGE_COMMIT, MESSAGE_RELEASE,
		MESSAGE_PING };
	return (struct message){ .kind = kinds[prng_below(p, 4)], .key = wire_bytes(p, 1, KEY_MAX),
		.lock_id = wire_id(p), .round = wire_number(p, UINT64_MAX),
		.ballot = wire_ballot(p), .token = wire_number(p, TOKEN_MAX),
		.terms = wire_terms(p), .owner = wire_bytes(p, 0, OWNER_MAX) };
}

/* Asserts that the second frame was encoded as it is alone. */
static void assert_second(struct copies_test *t, const struct frame *alone) {
	buffer_clear(&t->alone);
	assert_int_equal(peer_frame_encode(alone, &t->alone), 0);
	assert_true(slice_equal(buffer_slice(&t->second), buffer_slice(&t->alone)));
}

/* Either frame lacks messages that the other one has, and has some that go to one peer only. There
 * are more of them than are remembered. */
static void frames_with_copies_are_as_without(void **state) {
	struct copies_test *t = *state;
	static struct message first[MESSAGES], second[MESSAGES];
	for (int round = 0; round < 100; round++) {
		size_t in_first = 0, in_second = 0;
		const size_t count = prng_below(&t->prng, MESSAGES + 1);
		for (size_t i = 0; i < count; i++) {
			struct message m = some_message(&t->prng);
			m.same = prng_chance(&t->prng, 3, 4) ? i + 1 : 0;
			if (prng_chance(&t->prng, 15, 16)) {
				first[in_first++] = m;
			}
			if (prng_chance(&t->prng, 15, 16)) {
				second[in_second++] = m;
			}
		}
		const struct frame a = { .messages = first, .count = in_first },
			b = { .epoch = 1, .messages = second, .count = in_second };
		buffer_clear(&t->first);
		buffer_clear(&t->second);
		peer_copies_clear(&t->copies);
		/* Something is left from the turn before. */
		assert_int_equal(buffer_append(&t->first, "left", 4), 0);
		assert_int_equal(peer_frame_encode_copies(&a, &t->copies, &t->first), 0);
		assert_int_equal(peer_frame_encode_copies(&b, &t->copies, &t->second), 0);
		assert_second(t, &b);
	}
}

/* Two different messages under one number show whose bytes are in the second frame. */
static const struct message one = { .kind = MESSAGE_PING, .round = 1, .same = 1 },
	other = { .kind = MESSAGE_PING, .round = 2, .same = 1 };

static void a_message_is_encoded_once(void **state) {
	struct copies_test *t = *state;
	const struct frame a = { .messages = &one, .count = 1 },
		b = { .messages = &other, .count = 1 };
	assert_int_equal(peer_frame_encode_copies(&a, &t->copies, &t->first), 0);
	assert_int_equal(peer_frame_encode_copies(&b, &t->copies, &t->second), 0);
	assert_second(t, &a);
	/* The next turn knows nothing of this one. */
	peer_copies_clear(&t->copies);
	buffer_clear(&t->second);
	assert_int_equal(peer_frame_encode_copies(&b, &t->copies, &t->second), 0);
	assert_second(t, &b);
}

static void what_did_not_fit_is_not_copied(void **state) {
	struct copies_test *t = *state;
	static const uint8_t key[KEY_MAX];
	const struct message both[] = { one, { .kind = MESSAGE_PROMISE,
		.key = slice_of(key, sizeof key), .same = 2 } };
	const struct frame a = { .messages = both, .count = 2 },
		b = { .messages = &other, .count = 1 };
	buffer_done(&t->first);
	buffer_init(&t->first, &t->alloc, 700);
	assert_int_equal(peer_frame_encode_copies(&a, &t->copies, &t->first), PAWL_ETOOLARGE);
	assert_int_equal(t->first.size, 0);
	assert_int_equal(peer_frame_encode_copies(&b, &t->copies, &t->second), 0);
	assert_second(t, &b);
}

UNIT(wire_copies) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_with_copies_are_as_without, setup, teardown),
		cmocka_unit_test_setup_teardown(a_message_is_encoded_once, setup, teardown),
		cmocka_unit_test_setup_teardown(what_did_not_fit_is_not_copied, setup, teardown),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
