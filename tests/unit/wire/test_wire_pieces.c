/* Extensions of many locks are decoded in pieces. The result is the same as that of decoding all at
 * once. */
#include "unit.h"

#include "client.h"
#include "pawl/error.h"
#include "wire_random.h"

#define LOCKS 300

struct pieces_test {
	struct allocator alloc;
	struct prng prng;
	struct client_decoder whole, pieces;
	struct client_lock locks[LOCKS];
	struct buffer bytes;
	struct client_request at_once, in_pieces;
	struct client_refusal refused_at_once, refused_in_pieces;
};

static int setup(void **state) {
	static struct pieces_test t;
	t = (struct pieces_test){ .alloc = alloc_libc(NULL) };
	prng_init(&t.prng, 11);
	wire_pool_fill(&t.prng);
	buffer_init(&t.bytes, &t.alloc, 1u << 20);
	client_decoder_init(&t.whole, &t.alloc);
	client_decoder_init(&t.pieces, &t.alloc);
	t.pieces.piece = 64;
	struct client_request r = { .method = CLIENT_EXTEND, .msgid = 5,
		.present = CLIENT_HAS_LOCKS, .locks = t.locks, .lock_count = LOCKS };
	for (int i = 0; i < LOCKS; i++) {
		t.locks[i] = (struct client_lock){ .key = wire_bytes(&t.prng, 1, 50),
			.lock_id = wire_id(&t.prng), .lease = SPAN_S };
	}
	assert_int_equal(client_request_encode(&r, &t.bytes), 0);
	*state = &t;
	return 0;
}

static int teardown(void **state) {
	struct pieces_test *t = *state;
	buffer_done(&t->bytes);
	client_decoder_done(&t->whole);
	client_decoder_done(&t->pieces);
	return 0;
}

/* Decodes the message in both ways, checks that they agree, and returns their result. */
static int decode(struct pieces_test *t, struct slice message) {
	int expected = client_request_decode(&t->whole, message, &t->at_once, &t->refused_at_once);
	int error = client_request_decode(&t->pieces, message, &t->in_pieces,
		&t->refused_in_pieces);
	while (!error && t->pieces.rest.left > 0) {
		error = client_request_go_on(&t->pieces, message, &t->in_pieces,
			&t->refused_in_pieces);
	}
	assert_int_equal(error, expected);
	assert_int_equal(t->in_pieces.msgid, t->at_once.msgid);
	return error;
}

static void a_request_in_pieces_is_the_same(void **state) {
	struct pieces_test *t = *state;
	assert_int_equal(decode(t, buffer_slice(&t->bytes)), 0);
	assert_int_equal(t->in_pieces.lock_count, LOCKS);
	assert_true(t->in_pieces.present == t->at_once.present);
	for (int i = 0; i < LOCKS; i++) {
		assert_true(slice_equal(t->in_pieces.locks[i].key, t->locks[i].key) &&
			id128_equal(t->in_pieces.locks[i].lock_id, t->locks[i].lock_id));
	}
}

/* One byte is changed somewhere, perhaps in a piece that is decoded later. */
static void what_is_wrong_in_a_later_piece_is_refused_in_the_same_words(void **state) {
	struct pieces_test *t = *state;
	unsigned refused = 0;
	for (int n = 0; n < 3000; n++) {
		uint8_t *at = &t->bytes.data[prng_below(&t->prng, t->bytes.size)];
		const uint8_t before = *at;
		*at = (uint8_t)prng_below(&t->prng, 256);
		if (decode(t, buffer_slice(&t->bytes)) != 0) {
			refused++;
			assert_int_equal(t->refused_in_pieces.error, t->refused_at_once.error);
			assert_ptr_equal(t->refused_in_pieces.message, t->refused_at_once.message);
			assert_true(slice_equal(t->refused_in_pieces.field,
				t->refused_at_once.field));
		}
		*at = before;
	}
	assert_true(refused > 500);
}

static void a_request_that_ends_too_soon_is_none(void **state) {
	struct pieces_test *t = *state;
	for (size_t size = 0; size < t->bytes.size; size += 1 + prng_below(&t->prng, 50)) {
		assert_int_equal(decode(t, slice_of(t->bytes.data, size)), PAWL_EPROTOCOL);
	}
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT(wire_pieces) {
	const struct CMUnitTest tests[] = {
		TEST(a_request_in_pieces_is_the_same),
		TEST(what_is_wrong_in_a_later_piece_is_refused_in_the_same_words),
		TEST(a_request_that_ends_too_soon_is_none),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
