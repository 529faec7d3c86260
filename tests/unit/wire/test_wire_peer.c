/* These tests are about frames between peers: what goes in comes out, and nothing else comes
 * out. */
#include "unit.h"

#include <msgpack.h>

#include "pawl/error.h"
#include "peer.h"
#include "wire_random.h"

static const struct { enum message_kind kind; uint32_t fields; } kinds[] = {
#define KIND(name, number, room, handler, epochs, fields) { MESSAGE_##name, (fields) },
	MESSAGE_TABLE(KIND)
#undef KIND
};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct peer_test {
	struct allocator alloc;
	struct prng prng;
	struct buffer bytes;
	struct peer_decoder decoder;
};

static int setup(void **state) {
	static struct peer_test t;
	t.alloc = alloc_libc(NULL);
	prng_init(&t.prng, 7);
	wire_pool_fill(&t.prng);
	buffer_init(&t.bytes, &t.alloc, 8u << 20);
	peer_decoder_init(&t.decoder, &t.alloc);
	*state = &t;
	return 0;
}

static int teardown(void **state) {
	struct peer_test *t = *state;
	buffer_done(&t->bytes);
	peer_decoder_done(&t->decoder);
	return 0;
}

static struct message random_message(struct prng *p, size_t row) {
	uint32_t fields = kinds[row].fields;
	struct message m = { .kind = kinds[row].kind };
	m.round = fields & F_ROUND ? wire_number(p, UINT64_MAX) : 0;
	m.key = fields & F_KEY ? wire_bytes(p, 1, KEY_MAX) : m.key;
	m.lock_id = fields & F_LOCK_ID ? wire_id(p) : m.lock_id;
	m.attempt = fields & F_ATTEMPT ? wire_number(p, UINT64_MAX) : 0;
	m.ticket = fields & F_TICKET ? (struct ticket){ wire_number(p, UINT64_MAX),
		wire_number(p, UINT64_MAX) } : m.ticket;
	m.token = fields & F_TOKEN ? wire_number(p, TOKEN_MAX) : 0;
	m.noted = fields & F_NOTED ? wire_number(p, TOKEN_MAX) : 0;
	m.lease_us = fields & F_LEASE ? wire_number(p, UINT64_MAX) : 0;
	m.left_us = fields & F_LEFT ? wire_number(p, UINT64_MAX) : 0;
	m.owner = fields & F_OWNER ? wire_bytes(p, 0, OWNER_MAX) : m.owner;
	m.identity = fields & F_IDENTITY ? wire_bytes(p, 0, IDENTITY_MAX) : m.identity;
	m.value = fields & F_VALUE ? wire_bytes(p, 0, prng_chance(p, 1, 8) ? 60000 : 40) : m.value;
	m.ballot = fields & F_BALLOT ? wire_ballot(p) : m.ballot;
	m.prepared = fields & F_PREPARED ? wire_ballot(p) : m.prepared;
	m.flags = fields & F_FLAGS ? (uint32_t)prng_below(p, MESSAGE_FLAGS + 1) : 0;
	m.status = fields & F_STATUS ? (enum status)prng_below(p, STATUS_MAX + 1) : STATUS_OK;
	m.by = fields & F_BY ? wire_id(p) : m.by;
	if ((fields & F_PART) && prng_chance(p, 3, 4)) {
		m.parts = 1 + (uint32_t)wire_number(p, UINT32_MAX - 1);
		m.part = (uint32_t)prng_below(p, m.parts);
	}
	m.blob = fields & F_BLOB ? wire_bytes(p, 0, 60000) : m.blob;
	m.clock = fields & F_CLOCK ? wire_number(p, TOKEN_MAX) : 0;
	m.epoch = fields & F_EPOCH ? wire_number(p, UINT64_MAX) : 0;
	m.number = fields & F_NUMBER ? wire_number(p, UINT64_MAX) : 0;
	m.log = fields & F_LOG ? wire_number(p, UINT64_MAX) : 0;
	m.echo = fields & F_ECHO ? wire_number(p, UINT64_MAX) : 0;
	m.terms = fields & F_TERMS ? wire_terms(p) : m.terms;
	m.label = fields & F_LABEL ? wire_bytes(p, 0, LABEL_MAX) : m.label;
	m.age_us = fields & F_AGE ? wire_number(p, UINT64_MAX) : 0;
	if (fields & F_HAD) {
		m.had = (struct permits){ { wire_number(p, UINT64_MAX),
			wire_number(p, UINT64_MAX) } };
	}
	return m;
}

static void assert_terms_equal(const struct terms *a, const struct terms *b) {
	assert_int_equal(a->of, b->of);
	assert_int_equal(a->count, b->count);
	assert_int_equal(a->priority, b->priority);
	assert_int_equal(a->delay, b->delay);
	assert_int_equal(a->binding, b->binding);
	assert_memory_equal(&a->set, &b->set, sizeof a->set);
}

static void assert_slices_equal(struct slice a, struct slice b) {
	assert_true(slice_equal(a, b));
}

static void assert_messages_equal(const struct message *a, const struct message *b) {
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->status, b->status);
	assert_int_equal(a->flags, b->flags);
	assert_true(a->part == b->part && a->parts == b->parts);
	assert_true(a->round == b->round && a->attempt == b->attempt && a->token == b->token &&
		a->noted == b->noted);
	assert_true(a->clock == b->clock && a->lease_us == b->lease_us && a->left_us == b->left_us);
	assert_true(id128_equal(a->lock_id, b->lock_id) && id128_equal(a->by, b->by));
	assert_true(a->ticket.clock == b->ticket.clock && a->ticket.seq == b->ticket.seq);
	assert_int_equal(ballot_compare(a->ballot, b->ballot), 0);
	assert_int_equal(ballot_compare(a->prepared, b->prepared), 0);
	assert_slices_equal(a->key, b->key);
	assert_slices_equal(a->owner, b->owner);
	assert_slices_equal(a->identity, b->identity);
	assert_slices_equal(a->value, b->value);
	assert_slices_equal(a->blob, b->blob);
	assert_true(a->epoch == b->epoch && a->number == b->number && a->log == b->log &&
		a->echo == b->echo);
	assert_terms_equal(&a->terms, &b->terms);
	assert_slices_equal(a->label, b->label);
	assert_int_equal(a->age_us, b->age_us);
	assert_memory_equal(&a->had, &b->had, sizeof a->had);
}

static struct frame random_frame(struct peer_test *t, const struct message *messages,
	size_t count) {
	struct prng *p = &t->prng;
	return (struct frame){ .epoch = wire_number(p, UINT64_MAX), .config_hash = prng_next(p),
		.sender = wire_id(p), .boot = wire_number(p, UINT64_MAX),
		.clock = wire_number(p, UINT64_MAX), .flags = (uint32_t)prng_below(p, 4),
		.messages = messages, .count = count };
}

/* Returns the body of the packet that the frame makes. */
static struct slice encode(struct peer_test *t, const struct frame *frame) {
	struct slice body;
	buffer_clear(&t->bytes);
	assert_int_equal(peer_frame_encode(frame, &t->bytes), 0);
	assert_int_equal(peer_scan(buffer_slice(&t->bytes), PEER_BODY_BYTES_MAX, &body, NULL),
		PEER_SCAN_COMPLETE);
	assert_int_equal(body.size + PEER_PREFIX_BYTES, t->bytes.size);
	return body;
}

static void assert_round_trip(struct peer_test *t, const struct message *messages, size_t count) {
	struct frame sent = random_frame(t, messages, count), got;
	struct slice body = encode(t, &sent);
	assert_int_equal(peer_frame_decode(&t->decoder, body, &got), 0);
	assert_true(sent.epoch == got.epoch && sent.config_hash == got.config_hash &&
		sent.boot == got.boot);
	assert_true(sent.clock == got.clock && sent.flags == got.flags &&
		id128_equal(sent.sender, got.sender));
	assert_int_equal(got.count, count);
	for (size_t i = 0; i < count; i++) {
		assert_messages_equal(&messages[i], &got.messages[i]);
	}
}

static void every_kind_comes_back_as_it_was(void **state) {
	struct peer_test *t = *state;
	for (int n = 0; n < 200; n++) {
		for (size_t row = 0; row < KINDS; row++) {
			struct message m = random_message(&t->prng, row);
			assert_round_trip(t, &m, 1);
		}
	}
}

static void frames_hold_any_number_of_messages(void **state) {
	struct peer_test *t = *state;
	static struct message messages[1000];
	for (size_t count = 0; count <= 1000; count = count * 3 + 1) {
		for (size_t i = 0; i < count; i++) {
			messages[i] = random_message(&t->prng, prng_below(&t->prng, KINDS - 1));
			messages[i].value = slice_of(NULL, 0);
		}
		assert_round_trip(t, messages, count);
	}
}

/* A message of a long kind ends its piece. */
static void a_frame_may_be_decoded_in_pieces(void **state) {
	struct peer_test *t = *state;
	static struct message messages[1000];
	struct frame whole, piece;
	size_t n = 0, long_ones = 0, pieces = 0;
	for (size_t i = 0; i < 1000; i++) {
		messages[i] = random_message(&t->prng, i % 50 == 7 ? 0 : 33);
		messages[i].kind = i % 50 == 7 ? MESSAGE_SNAPSHOT : messages[i].kind;
	}
	const struct frame frame = random_frame(t, messages, 1000);
	const struct slice body = encode(t, &frame);
	struct peer_progress progress = { .begun = false };
	do {
		assert_int_equal(peer_frame_decode_some(&t->decoder, body, 20, &progress, &piece),
			0);
		assert_in_range(piece.count, 1, 20);
		assert_true(piece.epoch == frame.epoch && piece.flags == frame.flags);
		for (size_t i = 0; i < piece.count; i++, n++) {
			assert_int_equal(piece.messages[i].kind, messages[n].kind);
			assert_true(piece.messages[i].round == messages[n].round);
			const bool last = messages[n].kind == MESSAGE_SNAPSHOT;
			long_ones += last;
			assert_true(!last || i + 1 == piece.count);
		}
		pieces++;
		assert_int_equal(progress.left, 1000 - n);
	} while (progress.left > 0);
	assert_int_equal(n, 1000);
	assert_int_equal(long_ones, 20);
	assert_int_equal(pieces, 20 * 3 + 1);
	assert_int_equal(peer_frame_decode(&t->decoder, body, &whole), 0);
	/* What follows the frame is found with the last piece. */
	assert_int_equal(peer_frame_decode_some(&t->decoder, slice_of(body.data, body.size - 1),
		1000, &(struct peer_progress){ .begun = true, .left = 1, .at = 30 }, &piece),
		PAWL_EPROTOCOL);
}

static void what_is_written_is_messagepack(void **state) {
	struct peer_test *t = *state;
	for (size_t row = 0; row < KINDS; row++) {
		struct message m = random_message(&t->prng, row);
		struct frame frame = random_frame(t, &m, 1);
		struct slice body = encode(t, &frame);
		msgpack_unpacked result;
		size_t offset = 0;
		msgpack_unpacked_init(&result);
		assert_int_equal(msgpack_unpack_next(&result, (const char *)body.data, body.size,
			&offset), MSGPACK_UNPACK_SUCCESS);
		assert_int_equal(offset, body.size);
		assert_int_equal(result.data.type, MSGPACK_OBJECT_ARRAY);
		assert_int_equal(result.data.via.array.size, 7);
		msgpack_object list = result.data.via.array.ptr[6];
		assert_int_equal(list.type, MSGPACK_OBJECT_ARRAY);
		assert_int_equal(list.via.array.size, 1);
		assert_int_equal(list.via.array.ptr[0].via.array.ptr[0].via.u64, m.kind);
		msgpack_unpacked_destroy(&result);
	}
}

static void every_truncation_is_refused(void **state) {
	struct peer_test *t = *state;
	struct frame got;
	for (size_t row = 0; row < KINDS; row++) {
		struct message m = random_message(&t->prng, row);
		m.value.size = m.value.size > 50 ? 50 : m.value.size;
		m.blob.size = m.blob.size > 50 ? 50 : m.blob.size;
		struct frame frame = random_frame(t, &m, 1);
		struct slice body = encode(t, &frame);
		for (size_t size = 0; size < body.size; size++) {
			uint8_t *cut = wire_exact(body.data, size);
			assert_int_equal(peer_frame_decode(&t->decoder, slice_of(cut, size), &got),
				PAWL_EPROTOCOL);
			free(cut);
		}
	}
}

static void trailing_bytes_are_refused(void **state) {
	struct peer_test *t = *state;
	struct message m = random_message(&t->prng, 0);
	struct frame frame = random_frame(t, &m, 1), got;
	encode(t, &frame);
	assert_int_equal(buffer_append(&t->bytes, "", 1), 0);
	struct slice body = slice_of(t->bytes.data + PEER_PREFIX_BYTES,
		t->bytes.size - PEER_PREFIX_BYTES);
	assert_int_equal(peer_frame_decode(&t->decoder, body, &got), PAWL_EPROTOCOL);
}

static void flipped_bytes_never_crash_and_what_is_accepted_is_valid(void **state) {
	struct peer_test *t = *state;
	struct peer_decoder again;
	struct buffer bytes;
	peer_decoder_init(&again, &t->alloc);
	buffer_init(&bytes, &t->alloc, 8u << 20);
	for (int n = 0; n < 20000; n++) {
		struct message m = random_message(&t->prng, prng_below(&t->prng, KINDS));
		struct frame frame = random_frame(t, &m, 1), got, same;
		struct slice body = encode(t, &frame), rewritten;
		uint8_t *copy = wire_exact(body.data, body.size);
		for (int i = 0; i < 10; i++) {
			copy[prng_below(&t->prng, body.size)] ^=
				(uint8_t)(1u << prng_below(&t->prng, 8));
		}
		int error = peer_frame_decode(&t->decoder, slice_of(copy, body.size), &got);
		assert_true(error == 0 || error == PAWL_EPROTOCOL);
		/* Encoding CHECKs every range. */
		if (!error) {
			buffer_clear(&bytes);
			assert_int_equal(peer_frame_encode(&got, &bytes), 0);
			assert_int_equal(peer_scan(buffer_slice(&bytes), PEER_BODY_BYTES_MAX,
				&rewritten, NULL), PEER_SCAN_COMPLETE);
			assert_int_equal(peer_frame_decode(&again, rewritten, &same), 0);
		}
		free(copy);
	}
	buffer_done(&bytes);
	peer_decoder_done(&again);
}

/* Decodes a body with one message that is written by hand. */
static int decode_message(struct peer_test *t, const void *message, size_t size) {
	uint8_t body[256] = { 0x97, 1, 2, 0xc4, 16 };
	struct frame got;
	memcpy(body + 21, "\x03\x04\x01\x91", 4);
	memcpy(body + 25, message, size);
	return peer_frame_decode(&t->decoder, slice_of(body, 25 + size), &got);
}

static void fields_out_of_range_are_refused(void **state) {
	struct peer_test *t = *state;
	/* This is PING. */
	assert_int_equal(decode_message(t, "\x92\x22\x05", 3), 0);
	/* There is no kind 127. */
	assert_int_equal(decode_message(t, "\x92\x7f\x05", 3), PAWL_EPROTOCOL);
	/* Nor is there a kind 0. */
	assert_int_equal(decode_message(t, "\x92\x00\x05", 3), PAWL_EPROTOCOL);
	/* This has one element too many. */
	assert_int_equal(decode_message(t, "\x93\x22\x05\x05", 4), PAWL_EPROTOCOL);
	/* This has one element too few. */
	assert_int_equal(decode_message(t, "\x91\x22", 2), PAWL_EPROTOCOL);
	/* This number is negative. */
	assert_int_equal(decode_message(t, "\x92\x22\xff", 3), PAWL_EPROTOCOL);
	/* This has text in the place of a number. */
	assert_int_equal(decode_message(t, "\x92\x22\xa1y", 4), PAWL_EPROTOCOL);
#define LOCK_ID "\xc4\x10" "0123456789abcdef"
	/* This is READ with an empty key. */
	assert_int_equal(decode_message(t, "\x96\x14\x05\xc4\x00" LOCK_ID "\x00\x00", 25),
		PAWL_EPROTOCOL);
	assert_int_equal(decode_message(t, "\x96\x14\x05\xc4\x01k" LOCK_ID "\x00\x00", 26), 0);
	/* This is RELEASE_ANSWER with status 20. */
	assert_int_equal(decode_message(t, "\x95\x0d\x05\x00\x14\x00", 6), 0);
	/* This is status 21. */
	assert_int_equal(decode_message(t, "\x95\x0d\x05\x00\x15\x00", 6), PAWL_EPROTOCOL);
	/* This is flag 2^31. */
	assert_int_equal(decode_message(t, "\x95\x0d\x05\xce\x80\x00\x00\x00\x00\x00", 10),
		PAWL_EPROTOCOL);
	/* This is SNAPSHOT_CHUNK, part 2 of 3. */
	assert_int_equal(decode_message(t, "\x94\x1f\x05\x02\x03", 5), 0);
	assert_int_equal(decode_message(t, "\x94\x1f\x05\x03\x03", 5), PAWL_EPROTOCOL);
	/* This is SNAPSHOT_END with the greatest clock, and then with one above it. */
	assert_int_equal(decode_message(t, "\x96\x21\x05\x00\x00\x00\xcf\x40\0\0\0\0\0\0\0",
		15), 0);
	assert_int_equal(decode_message(t, "\x96\x21\x05\x00\x00\x00\xcf\x40\0\0\0\0\0\0\1", 15),
		PAWL_EPROTOCOL);
}

static void an_announced_count_takes_no_memory(void **state) {
	(void)state;
	static const char *const traps[] = { "\xdd\x00\xff\xff\xff", "\xdf\x10\x00\x00\x00",
		"\xc6\xff\xff\xff\xff", "\xdb\xff\xff\xff\xff" };
	struct alloc_counter counter = { 0 };
	struct allocator alloc = alloc_libc(&counter);
	struct peer_decoder d;
	struct frame got;
	peer_decoder_init(&d, &alloc);
	for (size_t i = 0; i < 4; i++) {
		uint8_t body[64] = { 0x97, 1, 2, 0xc4, 16 };
		assert_int_equal(peer_frame_decode(&d, slice_of(traps[i], 5), &got),
			PAWL_EPROTOCOL);
		memcpy(body + 21, "\x03\x04\x01", 3);
		/* This comes in the place of the messages. */
		memcpy(body + 24, traps[i], 5);
		assert_int_equal(peer_frame_decode(&d, slice_of(body, 29), &got), PAWL_EPROTOCOL);
	}
	assert_int_equal(counter.used, 0);
	peer_decoder_done(&d);
}

static void memory_running_out_is_an_error_and_the_decoder_goes_on(void **state) {
	struct peer_test *t = *state;
	static struct message messages[500];
	struct alloc_counter counter = { .max = 64 * sizeof(struct message) };
	struct allocator alloc = alloc_libc(&counter);
	struct peer_decoder d;
	struct frame got;
	for (size_t i = 0; i < 500; i++) {
		/* Every one of them is a PING. */
		messages[i] = random_message(&t->prng, 33);
	}
	peer_decoder_init(&d, &alloc);
	struct frame frame = random_frame(t, messages, 500);
	assert_int_equal(peer_frame_decode(&d, encode(t, &frame), &got), PAWL_ENOMEM);
	frame.count = 64;
	assert_int_equal(peer_frame_decode(&d, encode(t, &frame), &got), 0);
	peer_decoder_done(&d);
	assert_int_equal(counter.used, 0);
}

static void an_encoder_at_its_limit_leaves_the_buffer_as_it_was(void **state) {
	struct peer_test *t = *state;
	struct buffer small;
	struct message m = random_message(&t->prng, 2);
	struct frame frame = random_frame(t, &m, 1);
	m.value = wire_bytes(&t->prng, 5000, 5000);
	buffer_init(&small, &t->alloc, 4096);
	assert_int_equal(buffer_append(&small, "before", 6), 0);
	assert_int_equal(peer_frame_encode(&frame, &small), PAWL_ETOOLARGE);
	assert_int_equal(small.size, 6);
	assert_memory_equal(small.data, "before", 6);
	buffer_done(&small);
}

static void packets_are_found_one_after_the_other(void **state) {
	(void)state;
	struct slice body = { 0 };
	size_t need = 0;
	const uint8_t in[] = { 0, 0, 0, 2, 'a', 'b', 0, 0, 0, 1, 'c' };
	for (size_t size = 0; size < 6; size++) {
		assert_int_equal(peer_scan(slice_of(in, size), 100, &body, &need), PEER_SCAN_MORE);
		assert_int_equal(need, size < 4 ? 4 : 6);
	}
	assert_int_equal(peer_scan(slice_of(in, sizeof in), 100, &body, &need), PEER_SCAN_COMPLETE);
	assert_true(slice_equal(body, slice_str("ab")));
	assert_int_equal(peer_scan(slice_of(in + 6, 5), 100, &body, &need), PEER_SCAN_COMPLETE);
	assert_true(slice_equal(body, slice_str("c")));
	assert_int_equal(peer_scan(slice_of("\0\0\0\0", 4), 100, &body, &need), PEER_SCAN_GARBAGE);
	assert_int_equal(peer_scan(slice_of("\0\0\0e", 4), 100, &body, &need), PEER_SCAN_GARBAGE);
	assert_int_equal(peer_scan(slice_of("\xff\xff\xff\xff", 4), PEER_BODY_BYTES_MAX, &body,
		&need), PEER_SCAN_GARBAGE);
}

/* STATUS_MAX is the greatest one: a status behind it would be refused on arrival. */
static void every_status_has_a_name(void **state) {
	(void)state;
	for (unsigned s = 0; s <= STATUS_MAX; s++) {
		assert_string_not_equal(status_name((enum status)s), "?");
	}
	assert_string_equal(status_name((enum status)(STATUS_MAX + 1)), "?");
}

UNIT(wire_peer) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_status_has_a_name),
		cmocka_unit_test_setup_teardown(every_kind_comes_back_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(frames_hold_any_number_of_messages, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_frame_may_be_decoded_in_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_written_is_messagepack, setup, teardown),
		cmocka_unit_test_setup_teardown(every_truncation_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(trailing_bytes_are_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(
			flipped_bytes_never_crash_and_what_is_accepted_is_valid, setup, teardown),
		cmocka_unit_test_setup_teardown(fields_out_of_range_are_refused, setup, teardown),
		cmocka_unit_test(an_announced_count_takes_no_memory),
		cmocka_unit_test_setup_teardown(
			memory_running_out_is_an_error_and_the_decoder_goes_on, setup, teardown),
		cmocka_unit_test_setup_teardown(an_encoder_at_its_limit_leaves_the_buffer_as_it_was,
			setup, teardown),
		cmocka_unit_test(packets_are_found_one_after_the_other),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
