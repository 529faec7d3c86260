/* These tests compare what we write and read with the MessagePack specification, format by format,
 * and with a reader of their own. msgpack-c packs and parses for us, so it cannot be the judge
 * here. */
#include "unit.h"

#include "client.h"
#include "pack.h"
#include "unpack.h"
#include "wire_random.h"

/* One format of the specification. */
struct format {
	const char *bytes;
	uint32_t head_bytes;
	enum unpack_type type;

	/* The number, or the size. */
	uint64_t value;
};

static const struct format formats[] = {
	{ "\x00", 1, UNPACK_UINT, 0 },
	{ "\x7f", 1, UNPACK_UINT, 127 },
	{ "\x80", 1, UNPACK_MAP, 0 },
	{ "\x8f", 1, UNPACK_MAP, 15 },
	{ "\x90", 1, UNPACK_ARRAY, 0 },
	{ "\x9f", 1, UNPACK_ARRAY, 15 },
	{ "\xa0", 1, UNPACK_STR, 0 },
	{ "\xbf", 1, UNPACK_STR, 31 },
	{ "\xc0", 1, UNPACK_NIL, 0 },
	{ "\xc2", 1, UNPACK_BOOL, 0 },
	{ "\xc3", 1, UNPACK_BOOL, 1 },
	{ "\xc4\xff", 2, UNPACK_BIN, 255 },
	{ "\xc5\x01\x02", 3, UNPACK_BIN, 0x0102 },
	{ "\xc6\x01\x02\x03\x04", 5, UNPACK_BIN, 0x01020304 },
	{ "\xc7\x05\x2a", 3, UNPACK_EXT, 5 },
	{ "\xc7\x00\x2a", 3, UNPACK_EXT, 0 },
	{ "\xc8\x01\x02\x2a", 4, UNPACK_EXT, 0x0102 },
	{ "\xc9\x01\x02\x03\x04\x2a", 6, UNPACK_EXT, 0x01020304 },
	{ "\xca\x3f\x80\x00\x00", 5, UNPACK_FLOAT, 0 },
	{ "\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00", 9, UNPACK_FLOAT, 0 },
	{ "\xcc\xfe", 2, UNPACK_UINT, 0xfe },
	{ "\xcd\xfe\x01", 3, UNPACK_UINT, 0xfe01 },
	{ "\xce\xfe\x01\x02\x03", 5, UNPACK_UINT, 0xfe010203 },
	{ "\xcf\xfe\x01\x02\x03\x04\x05\x06\x07", 9, UNPACK_UINT, UINT64_C(0xfe01020304050607) },
	{ "\xd0\x80", 2, UNPACK_NEGATIVE, (uint64_t)-128 },
	{ "\xd0\x7f", 2, UNPACK_UINT, 127 },
	{ "\xd1\x80\x01", 3, UNPACK_NEGATIVE, (uint64_t)-32767 },
	{ "\xd1\x01\x00", 3, UNPACK_UINT, 256 },
	{ "\xd2\x80\x00\x00\x01", 5, UNPACK_NEGATIVE, (uint64_t)-2147483647 },
	{ "\xd2\x01\x00\x00\x00", 5, UNPACK_UINT, 0x01000000 },
	{ "\xd3\x80\x00\x00\x00\x00\x00\x00\x01", 9, UNPACK_NEGATIVE,
		UINT64_C(0x8000000000000001) },
	{ "\xd3\x01\x00\x00\x00\x00\x00\x00\x00", 9, UNPACK_UINT, UINT64_C(0x0100000000000000) },
	{ "\xd4\x2a", 2, UNPACK_EXT, 1 },
	{ "\xd5\x2a", 2, UNPACK_EXT, 2 },
	{ "\xd6\x2a", 2, UNPACK_EXT, 4 },
	{ "\xd7\x2a", 2, UNPACK_EXT, 8 },
	{ "\xd8\x2a", 2, UNPACK_EXT, 16 },
	{ "\xd9\xff", 2, UNPACK_STR, 255 },
	{ "\xda\x01\x02", 3, UNPACK_STR, 0x0102 },
	{ "\xdb\x01\x02\x03\x04", 5, UNPACK_STR, 0x01020304 },
	{ "\xdc\x01\x02", 3, UNPACK_ARRAY, 0x0102 },
	{ "\xdd\x01\x02\x03\x04", 5, UNPACK_ARRAY, 0x01020304 },
	{ "\xde\x01\x02", 3, UNPACK_MAP, 0x0102 },
	{ "\xdf\x01\x02\x03\x04", 5, UNPACK_MAP, 0x01020304 },
	{ "\xe0", 1, UNPACK_NEGATIVE, (uint64_t)-32 },
	{ "\xff", 1, UNPACK_NEGATIVE, (uint64_t)-1 },
};

static struct alloc_counter memory;
static struct allocator alloc;

static enum unpack_found head_of(const void *data, size_t size, struct unpack_head *out) {
	uint8_t *exact = wire_exact(data, size);
	const enum unpack_found found = unpack_head(slice_of(exact, size), out);
	free(exact);
	return found;
}

static bool has_size(enum unpack_type type) {
	return type >= UNPACK_STR;
}

static void each_format_is_read_as_the_specification_says(void **state) {
	(void)state;
	uint8_t body[600] = { 0 };
	for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
		const struct format *f = &formats[i];
		struct unpack_head h;
		for (uint32_t cut = 0; cut < f->head_bytes; cut++) {
			assert_int_equal(head_of(f->bytes, cut, &h), UNPACK_SHORT);
		}
		/* Whether what follows is there makes no difference to the head. */
		memcpy(body, f->bytes, f->head_bytes);
		for (size_t size = f->head_bytes; size <= sizeof body; size += 7) {
			assert_int_equal(head_of(body, size, &h), UNPACK_FOUND);
			assert_int_equal(h.type, f->type);
			assert_int_equal(h.head_bytes, f->head_bytes);
			assert_int_equal(has_size(f->type) ? h.size : h.number, f->value);
		}
	}
}

static void what_begins_nothing_is_invalid(void **state) {
	(void)state;
	struct unpack_head h;
	assert_int_equal(head_of("\xc1", 1, &h), UNPACK_INVALID);
	assert_int_equal(head_of("\xc1\x01\x02\x03", 4, &h), UNPACK_INVALID);
}

static void the_largest_ext_is_no_empty_one(void **state) {
	(void)state;
	struct unpack u = unpack_of(slice_of("\xc9\xff\xff\xff\xff\x2a\x00\x00", 8));
	unpack_skip(&u);
	assert_true(u.bad);
	struct client_scanner s = { 0 };
	size_t size;
	const char message[] = "\x94\x00\x07\xa4ping\x91\xc9\xff\xff\xff\xff\x2a";
	assert_int_equal(client_scan(&s, &client_request_limits,
		slice_of(message, sizeof message - 1), &size), CLIENT_SCAN_TOO_LARGE);
}

/* ---- packing ---- */

static void packed(const char *bytes, size_t size, void (*put)(struct pack *k, uint64_t value),
	uint64_t value) {
	struct buffer out;
	buffer_init(&out, &alloc, 4096);
	struct pack k;
	pack_begin(&k, &out);
	put(&k, value);
	assert_int_equal(pack_end(&k), 0);
	assert_int_equal(out.size, size);
	assert_memory_equal(out.data, bytes, size);
	buffer_done(&out);
}

static void put_int(struct pack *k, uint64_t value) {
	pack_int(k, (int64_t)value);
}

static void put_array(struct pack *k, uint64_t value) {
	pack_array(k, (uint32_t)value);
}

static void put_map(struct pack *k, uint64_t value) {
	pack_map(k, (uint32_t)value);
}

static void put_bool(struct pack *k, uint64_t value) {
	pack_bool(k, value != 0);
}

static void each_number_and_head_is_packed_in_its_shortest_form(void **state) {
	(void)state;
	packed("\x00", 1, pack_uint, 0);
	packed("\x7f", 1, pack_uint, 127);
	packed("\xcc\x80", 2, pack_uint, 128);
	packed("\xcc\xff", 2, pack_uint, 255);
	packed("\xcd\x01\x00", 3, pack_uint, 256);
	packed("\xcd\xff\xff", 3, pack_uint, 65535);
	packed("\xce\x00\x01\x00\x00", 5, pack_uint, 65536);
	packed("\xcf\x00\x00\x00\x01\x00\x00\x00\x00", 9, pack_uint, UINT64_C(1) << 32);
	packed("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9, pack_uint, UINT64_MAX);
	packed("\xff", 1, put_int, (uint64_t)-1);
	packed("\xe0", 1, put_int, (uint64_t)-32);
	packed("\xd0\xdf", 2, put_int, (uint64_t)-33);
	packed("\xd1\xff\x7f", 3, put_int, (uint64_t)-129);
	packed("\xd2\xff\xff\x7f\xff", 5, put_int, (uint64_t)-32769);
	packed("\xd3\x80\x00\x00\x00\x00\x00\x00\x00", 9, put_int, UINT64_C(1) << 63);
	packed("\x7f", 1, put_int, 127);
	packed("\x9f", 1, put_array, 15);
	packed("\xdc\x00\x10", 3, put_array, 16);
	packed("\xdd\x00\x01\x00\x00", 5, put_array, 65536);
	packed("\x8f", 1, put_map, 15);
	packed("\xde\x00\x10", 3, put_map, 16);
	packed("\xc2", 1, put_bool, 0);
	packed("\xc3", 1, put_bool, 1);
}

static void a_number_in_room_that_is_there_is_the_same(void **state) {
	(void)state;
	const uint64_t values[] = { 0, 127, 128, 255, 256, 65535, 65536, UINT32_MAX,
		(uint64_t)UINT32_MAX + 1, UINT64_MAX };
	for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
		uint8_t room[PACK_HEAD_MAX];
		const uint8_t *end = pack_put_uint(room, values[i]);
		packed((const char *)room, (size_t)(end - room), pack_uint, values[i]);
	}
}

static void strings_have_the_head_for_their_size(void **state) {
	(void)state;
	static const size_t sizes[] = { 0, 1, 31, 32, 255, 256, 65535, 65536 };
	static const uint8_t str_heads[] = { 1, 1, 1, 2, 2, 3, 3, 5 };
	static const uint8_t bin_heads[] = { 2, 2, 2, 2, 2, 3, 3, 5 };
	uint8_t *bytes = calloc(1, 65536);
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct buffer out;
		buffer_init(&out, &alloc, 1 << 20);
		struct pack k;
		pack_begin(&k, &out);
		pack_str(&k, slice_of(bytes, sizes[i]));
		assert_int_equal(out.size, str_heads[i] + sizes[i]);
		pack_bin(&k, slice_of(bytes, sizes[i]));
		assert_int_equal(out.size, str_heads[i] + bin_heads[i] + 2 * sizes[i]);
		assert_int_equal(pack_end(&k), 0);
		struct unpack u = unpack_of(buffer_slice(&out));
		assert_int_equal(unpack_str(&u, SIZE_MAX).size, sizes[i]);
		assert_int_equal(unpack_bin(&u, SIZE_MAX).size, sizes[i]);
		assert_true(!u.bad && unpack_left(&u) == 0);
		buffer_done(&out);
	}
	free(bytes);
}

/* ---- a walk of one's own ---- */

/* Returns the bytes of the object at p, or 0 when it is not one that ends before `end`. */
static size_t object_bytes(const uint8_t *p, const uint8_t *end, unsigned depth) {
	struct unpack_head h;
	if (depth > CLIENT_DEPTH_MAX ||
		unpack_head(slice_of(p, (size_t)(end - p)), &h) != UNPACK_FOUND) {
		return 0;
	}
	size_t bytes = h.head_bytes;
	if (h.type == UNPACK_ARRAY || h.type == UNPACK_MAP) {
		const uint64_t objects = h.type == UNPACK_MAP ? 2 * (uint64_t)h.size : h.size;
		if (depth == CLIENT_DEPTH_MAX) {
			return 0;
		}
		for (uint64_t i = 0; i < objects; i++) {
			const size_t inner = bytes < (size_t)(end - p)
				? object_bytes(p + bytes, end, depth + 1) : 0;
			if (inner == 0) {
				return 0;
			}
			bytes += inner;
		}
		return bytes;
	}
	bytes += h.size;
	return bytes <= (size_t)(end - p) ? bytes : 0;
}

/* Appends an object at random. */
static void random_object(struct pack *k, struct prng *prng, unsigned depth) {
	uint8_t bytes[40] = { 0 };
	switch (prng_below(prng, depth < 5 ? 8 : 6)) {
	case 0:
		pack_nil(k);
		break;
	case 1:
		pack_uint(k, prng_next(prng) >> prng_below(prng, 64));
		break;
	case 2:
		pack_int(k, -(int64_t)(prng_next(prng) >> (1 + prng_below(prng, 63))));
		break;
	case 3:
		pack_bin(k, slice_of(bytes, prng_below(prng, sizeof bytes)));
		break;
	case 4:
		pack_str(k, slice_of(bytes, prng_below(prng, sizeof bytes)));
		break;
	case 5:
		pack_raw(k, slice_of("\xc7\x02\x2a\x01\x01", 5));
		break;
	case 6: {
		const uint32_t count = (uint32_t)prng_below(prng, 5);
		pack_array(k, count);
		for (uint32_t i = 0; i < count; i++) {
			random_object(k, prng, depth + 1);
		}
		break;
	}
	case 7: {
		const uint32_t pairs = (uint32_t)prng_below(prng, 4);
		pack_map(k, pairs);
		for (uint32_t i = 0; i < 2 * pairs; i++) {
			random_object(k, prng, depth + 1);
		}
		break;
	}
	default:
		break;
	}
}

static void a_message_in_pieces_ends_where_it_ends_in_one(void **state) {
	(void)state;
	struct prng prng;
	prng_init(&prng, 25);
	for (unsigned round = 0; round < 3000; round++) {
		struct buffer out;
		buffer_init(&out, &alloc, 1 << 20);
		struct pack k;
		pack_begin(&k, &out);
		pack_array(&k, 4);
		for (int i = 0; i < 4; i++) {
			random_object(&k, &prng, 1);
		}
		assert_int_equal(pack_end(&k), 0);
		const size_t whole = out.size;
		assert_int_equal(object_bytes(out.data, out.data + whole, 0), whole);
		pack_begin(&k, &out);
		pack_raw(&k, slice_of("\x93\x02", 2));
		struct client_scanner s = { 0 };
		size_t size = 0, at = 0;
		enum client_scan found = CLIENT_SCAN_MORE;
		while (found == CLIENT_SCAN_MORE && at < whole) {
			at += 1 + prng_below(&prng, 9);
			at = at > whole ? whole : at;
			uint8_t *exact = wire_exact(out.data, at);
			found = client_scan(&s, &client_response_limits, slice_of(exact, at),
				&size);
			free(exact);
		}
		assert_int_equal(found, CLIENT_SCAN_COMPLETE);
		assert_int_equal(size, whole);
		assert_int_equal(
			client_scan(&s, &client_response_limits, buffer_slice(&out), &size),
			CLIENT_SCAN_COMPLETE);
		assert_int_equal(size, whole);
		buffer_done(&out);
	}
}

UNIT(wire_msgpack) {
	alloc = alloc_libc(&memory);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_format_is_read_as_the_specification_says),
		cmocka_unit_test(what_begins_nothing_is_invalid),
		cmocka_unit_test(the_largest_ext_is_no_empty_one),
		cmocka_unit_test(each_number_and_head_is_packed_in_its_shortest_form),
		cmocka_unit_test(a_number_in_room_that_is_there_is_the_same),
		cmocka_unit_test(strings_have_the_head_for_their_size),
		cmocka_unit_test(a_message_in_pieces_ends_where_it_ends_in_one),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
