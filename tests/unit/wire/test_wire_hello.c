/* These tests are about the first packet of a link. */
#include "unit.h"

#include <stdio.h>

#include "pawl/error.h"
#include "peer.h"
#include "wire_random.h"

static struct peer_hello hello_of(const char *cluster, const char *node, uint8_t id) {
	struct peer_hello h = { .version_min = 1, .version_max = 1, .boot = 3, .features = 6,
		.id = { { id } } };
	memcpy(h.cluster, cluster, strlen(cluster) + 1);
	memcpy(h.node, node, strlen(node) + 1);
	return h;
}

static struct slice encode(const struct peer_hello *h, struct buffer *out) {
	struct slice body;
	assert_int_equal(peer_hello_encode(h, out), 0);
	assert_int_equal(peer_scan(buffer_slice(out), PEER_HELLO_BYTES_MAX, &body, NULL),
		PEER_SCAN_COMPLETE);
	return body;
}

static void a_hello_comes_back_as_it_was(void **state) {
	(void)state;
	struct allocator alloc = alloc_libc(NULL);
	struct buffer b;
	struct peer_hello sent = hello_of("prod", "n1", 9), got;
	buffer_init(&b, &alloc, 4096);
	assert_int_equal(peer_hello_decode(encode(&sent, &b), &got), 0);
	assert_string_equal(got.cluster, "prod");
	assert_string_equal(got.node, "n1");
	assert_true(id128_equal(got.id, sent.id) && got.boot == 3 && got.features == 6);
	assert_true(got.version_min == 1 && got.version_max == 1);
	buffer_done(&b);
}

/* Decodes the hello with its map head replaced and bytes added behind. */
static int decode_more(uint8_t head, const void *more, size_t size, struct peer_hello *got) {
	struct allocator alloc = alloc_libc(NULL);
	struct buffer b;
	struct peer_hello sent = hello_of("prod", "n1", 9);
	buffer_init(&b, &alloc, 8192);
	encode(&sent, &b);
	b.data[PEER_PREFIX_BYTES] = head;
	assert_int_equal(buffer_append(&b, more, size), 0);
	int error = peer_hello_decode(slice_of(b.data + PEER_PREFIX_BYTES,
		b.size - PEER_PREFIX_BYTES), got);
	buffer_done(&b);
	return error;
}

static int decode_with(uint8_t head, const void *more, size_t size) {
	struct peer_hello got;
	return decode_more(head, more, size, &got);
}

static void a_release_comes_back_and_may_be_missing(void **state) {
	(void)state;
	struct allocator alloc = alloc_libc(NULL);
	struct buffer b;
	struct peer_hello sent = hello_of("prod", "n1", 9), got;
	buffer_init(&b, &alloc, 4096);
	assert_int_equal(peer_hello_decode(encode(&sent, &b), &got), 0);
	assert_string_equal(got.release, "");
	buffer_clear(&b);
	snprintf(sent.release, sizeof sent.release, "0.2.0~rc1");
	assert_int_equal(peer_hello_decode(encode(&sent, &b), &got), 0);
	assert_string_equal(got.release, "0.2.0~rc1");
	assert_int_equal(got.boot, 3);
	buffer_done(&b);
}

static void a_longer_release_is_cut(void **state) {
	(void)state;
	struct peer_hello got;
	char more[9 + 1 + 200] = "\xa7release\xd9\xc8";
	memset(more + 10, '7', 200);
	assert_int_equal(decode_more(0x87, more, sizeof more, &got), 0);
	assert_int_equal(strlen(got.release), PEER_RELEASE_MAX);
	assert_int_equal(strspn(got.release, "7"), PEER_RELEASE_MAX);
	/* What is cut off has to be printable, too. */
	more[sizeof more - 1] = '\x1b';
	assert_int_equal(decode_more(0x87, more, sizeof more, &got), PAWL_EPROTOCOL);
}

static void a_release_that_cannot_be_shown_is_refused(void **state) {
	(void)state;
	static const char bytes[] = { '\0', '\n', '\x1b', '\x1f', '\x7f', '\x80', '\xff' };
	char more[] = "\xa7release\xa3" "0 2";
	assert_int_equal(decode_with(0x87, more, sizeof more - 1), 0);
	for (size_t i = 0; i < sizeof bytes; i++) {
		more[10] = bytes[i];
		assert_int_equal(decode_with(0x87, more, sizeof more - 1), PAWL_EPROTOCOL);
	}
	assert_int_equal(decode_with(0x87, "\xa7release\x02", 9), PAWL_EPROTOCOL);
	assert_int_equal(decode_with(0x88, "\xa7release\xa1" "1\xa7release\xa1" "2", 20),
		PAWL_EPROTOCOL);
}

static void every_truncation_and_trailing_byte_is_refused(void **state) {
	(void)state;
	struct allocator alloc = alloc_libc(NULL);
	struct buffer b;
	struct peer_hello sent = hello_of("prod", "n1", 9), got;
	snprintf(sent.release, sizeof sent.release, "0.2.0");
	buffer_init(&b, &alloc, 4096);
	struct slice body = encode(&sent, &b);
	for (size_t size = 0; size < body.size; size++) {
		uint8_t *cut = wire_exact(body.data, size);
		assert_int_equal(peer_hello_decode(slice_of(cut, size), &got), PAWL_EPROTOCOL);
		free(cut);
	}
	uint8_t *longer = wire_exact(body.data, body.size + 1);
	assert_int_equal(peer_hello_decode(slice_of(longer, body.size + 1), &got), PAWL_EPROTOCOL);
	free(longer);
	buffer_done(&b);
}

static void keys_of_later_versions_are_skipped(void **state) {
	(void)state;
	assert_int_equal(decode_with(0x86, "", 0), 0);
	assert_int_equal(decode_with(0x87, "\xa4zone\x92\x01\x81\xa1x\xc0", 11), 0);
	assert_int_equal(decode_with(0x87, "\xa4zone\xca\0\0\0\0", 10), 0);
}

static void nonsense_in_unknown_keys_is_refused(void **state) {
	(void)state;
	char deep[64];
	assert_int_equal(decode_with(0x87, "\xa4zone\xc1", 6), PAWL_EPROTOCOL);
	assert_int_equal(decode_with(0x87, "\xa4zone\xdd\x00\xff\xff\xff", 10), PAWL_EPROTOCOL);
	assert_int_equal(decode_with(0x87, "\xa4zone\xdf\x10\x00\x00\x00", 10), PAWL_EPROTOCOL);
	assert_int_equal(decode_with(0x87, "\x05\x05", 2), PAWL_EPROTOCOL);
	memset(deep, 0x91, sizeof deep);
	memcpy(deep, "\xa4zone", 5);
	deep[63] = 0;
	assert_int_equal(decode_with(0x87, deep, sizeof deep), PAWL_EPROTOCOL);
}

static void a_key_given_twice_is_refused(void **state) {
	(void)state;
	assert_int_equal(decode_with(0x87, "\xa4" "boot\x04", 6), PAWL_EPROTOCOL);
}

static void names_that_are_none_are_refused(void **state) {
	(void)state;
	struct allocator alloc = alloc_libc(NULL);
	struct buffer b;
	struct peer_hello sent = hello_of("prod", "n1", 9), got;
	buffer_init(&b, &alloc, 4096);
	encode(&sent, &b);
	uint8_t *name = memmem(b.data, b.size, "n1", 2);
	assert_non_null(name);
	name[1] = '\0';
	assert_int_equal(peer_hello_decode(slice_of(b.data + 4, b.size - 4), &got), PAWL_EPROTOCOL);
	name[1] = '\n';
	assert_int_equal(peer_hello_decode(slice_of(b.data + 4, b.size - 4), &got), PAWL_EPROTOCOL);
	name[1] = '2';
	assert_int_equal(peer_hello_decode(slice_of(b.data + 4, b.size - 4), &got), 0);
	buffer_done(&b);
}

static void two_nodes_agree_on_the_highest_version_and_common_features(void **state) {
	(void)state;
	struct peer_agreement agreement;
	struct peer_hello a = hello_of("prod", "n1", 1), b = hello_of("prod", "n2", 2);
	a.version_max = 3;
	b.version_max = 2;
	b.features = 3;
	assert_null(peer_hello_problem(&a, &b, &agreement));
	assert_true(agreement.version == 2 && agreement.features == 2);
	assert_null(peer_hello_problem(&b, &a, &agreement));
	assert_true(agreement.version == 2 && agreement.features == 2);
}

static void what_keeps_two_nodes_apart_is_named(void **state) {
	(void)state;
	struct peer_agreement agreement;
	struct peer_hello a = hello_of("prod", "n1", 1), b = hello_of("prod", "n2", 2);
	b.version_min = b.version_max = 2;
	assert_non_null(strstr(peer_hello_problem(&a, &b, &agreement), "version"));
	b = hello_of("test", "n2", 2);
	assert_non_null(strstr(peer_hello_problem(&a, &b, &agreement), "different clusters"));
	b = hello_of("prod", "n1", 2);
	assert_non_null(strstr(peer_hello_problem(&a, &b, &agreement), "same name"));
	b = hello_of("prod", "n2", 1);
	assert_non_null(strstr(peer_hello_problem(&a, &b, &agreement), "same identity"));
}

static void a_note_comes_back_as_it_was_and_is_no_frame(void **state) {
	(void)state;
	struct allocator alloc = alloc_libc(NULL);
	struct peer_note note = { .rights = "none", .serial = "-4A3F", .ends = 1900000000 }, got;
	struct buffer b;
	struct slice body;
	buffer_init(&b, &alloc, PEER_HELLO_BYTES_MAX);
	assert_int_equal(peer_note_encode(&note, &b), 0);
	assert_int_equal(peer_scan(buffer_slice(&b), PEER_HELLO_BYTES_MAX, &body, NULL),
		PEER_SCAN_COMPLETE);
	assert_true(peer_is_note(body));
	assert_int_equal(peer_note_decode(body, &got), 0);
	assert_string_equal(got.rights, "none");
	assert_string_equal(got.serial, "-4A3F");
	assert_int_equal(got.ends, 1900000000);
	for (size_t size = 0; size < body.size; size++) {
		assert_int_equal(peer_note_decode(slice_of(body.data, size), &got), PAWL_EPROTOCOL);
	}
	buffer_done(&b);
	/* What the decoder does not know is skipped. */
	assert_int_equal(peer_note_decode(slice_str("\x82\xa6later!\x93\x01\x02\x03\xa6rights\xa2"
		"4a"), &got), 0);
	assert_string_equal(got.rights, "4a");
	assert_true(got.serial[0] == '\0' && got.ends == 0);
	assert_int_equal(peer_note_decode(slice_str("\x81\xa6serial\xa2" "4a"), &got),
		PAWL_EPROTOCOL);
	assert_int_equal(peer_note_decode(slice_str("\x81\xa4" "ends\xa1" "1"), &got),
		PAWL_EPROTOCOL);
	assert_int_equal(peer_note_decode(slice_str("\x81\xa6rights\xa2\n!"), &got),
		PAWL_EPROTOCOL);
	assert_int_equal(peer_note_decode(slice_str("\x81\xa6rights\xa0"), &got), PAWL_EPROTOCOL);
	assert_false(peer_is_note(slice_str("\x97")));
	assert_false(peer_is_note(slice_str("")));
}

UNIT(wire_hello) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_comes_back_as_it_was),
		cmocka_unit_test(a_release_comes_back_and_may_be_missing),
		cmocka_unit_test(a_longer_release_is_cut),
		cmocka_unit_test(a_release_that_cannot_be_shown_is_refused),
		cmocka_unit_test(every_truncation_and_trailing_byte_is_refused),
		cmocka_unit_test(keys_of_later_versions_are_skipped),
		cmocka_unit_test(nonsense_in_unknown_keys_is_refused),
		cmocka_unit_test(a_key_given_twice_is_refused),
		cmocka_unit_test(names_that_are_none_are_refused),
		cmocka_unit_test(two_nodes_agree_on_the_highest_version_and_common_features),
		cmocka_unit_test(what_keeps_two_nodes_apart_is_named),
		cmocka_unit_test(a_note_comes_back_as_it_was_and_is_no_frame),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
