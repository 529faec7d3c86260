/* Requests: round trips, and every refusal by its name. */
#include "unit.h"

#include <msgpack.h>

#include "client.h"
#include "wire_random.h"

struct request_test {
	struct allocator alloc;
	struct prng prng;
	struct buffer bytes;
	struct client_decoder decoder;
	struct client_request got;
	struct client_refusal refusal;
};

static int setup(void **state) {
	static struct request_test t;
	t.alloc = alloc_libc(NULL);
	prng_init(&t.prng, 11);
	wire_pool_fill(&t.prng);
	buffer_init(&t.bytes, &t.alloc, client_request_limits.bytes);
	client_decoder_init(&t.decoder, &t.alloc);
	*state = &t;
	return 0;
}

static int teardown(void **state) {
	struct request_test *t = *state;
	buffer_done(&t->bytes);
	client_decoder_done(&t->decoder);
	return 0;
}

static int decode(struct request_test *t, const void *data, size_t size) {
	struct client_scanner s = { 0 };
	size_t end = 0;
	assert_int_equal(client_scan(&s, &client_request_limits, slice_of(data, size), &end), CLIENT_SCAN_COMPLETE);
	assert_int_equal(end, size);
	return client_request_decode(&t->decoder, slice_of(data, size), &t->got, &t->refusal);
}

/* What a method may have, beside what it needs. */
static const struct { enum client_method method; uint32_t needs, may; } methods[] = {
	{ CLIENT_ACQUIRE, CLIENT_HAS_KEY | CLIENT_HAS_LEASE, CLIENT_HAS_WAIT | CLIENT_HAS_OWNER | CLIENT_HAS_VALUE | CLIENT_HAS_LOCK_ID },
	{ CLIENT_EXTEND, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_LEASE, CLIENT_HAS_TOKEN | CLIENT_HAS_DEADLINE_KEPT },
	{ CLIENT_EXTEND, CLIENT_HAS_LOCKS, CLIENT_HAS_DEADLINE_KEPT },
	{ CLIENT_UPDATE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE, CLIENT_HAS_EXPECT },
	{ CLIENT_UPDATE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID | CLIENT_HAS_VALUE | CLIENT_HAS_VALUE_SEQ, 0 },
	{ CLIENT_RELEASE, CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID, 0 },
	{ CLIENT_GET, CLIENT_HAS_KEY, CLIENT_HAS_CONSISTENCY },
	{ CLIENT_LIST, 0, CLIENT_HAS_PREFIX | CLIENT_HAS_LIMIT | CLIENT_HAS_AFTER },
	{ CLIENT_WAIT, CLIENT_HAS_KEY | CLIENT_HAS_FOR, CLIENT_HAS_WAIT },
	{ CLIENT_WAITERS, CLIENT_HAS_KEY, 0 },
	{ CLIENT_BREAK, CLIENT_HAS_KEY, CLIENT_HAS_TOKEN | CLIENT_HAS_NOW },
	{ CLIENT_STATUS, 0, 0 },
	{ CLIENT_PING, 0, 0 },
	{ CLIENT_DRAIN, 0, 0 },
};
#define METHODS (sizeof methods / sizeof methods[0])

static span_ns random_ms(struct prng *p) {
	return prng_between(p, 1, 100000) * SPAN_MS;
}

static struct client_request random_request(struct request_test *t, size_t row, struct client_lock *locks) {
	struct prng *p = &t->prng;
	uint32_t has = methods[row].needs | (methods[row].may & (uint32_t)prng_next(p));
	struct client_request r = { .msgid = (uint32_t)wire_number(p, UINT32_MAX), .method = methods[row].method, .present = has };
	struct core_request *c = &r.core;
	c->op = r.method <= CLIENT_BREAK ? (enum core_op)r.method : CORE_ACQUIRE;
	c->key = has & (CLIENT_HAS_KEY | CLIENT_HAS_PREFIX) ? wire_bytes(p, 1, KEY_MAX) : c->key;
	c->lease = has & CLIENT_HAS_LEASE ? random_ms(p) : 0;
	c->wait = r.method == CLIENT_WAIT ? (span_ns)CLIENT_MS_MAX * SPAN_MS : 0;
	c->wait = has & CLIENT_HAS_WAIT ? random_ms(p) : c->wait;
	c->owner = has & CLIENT_HAS_OWNER ? wire_bytes(p, 0, OWNER_MAX) : c->owner;
	c->value = has & CLIENT_HAS_VALUE ? wire_bytes(p, 0, 40000) : c->value;
	c->lock_id = has & CLIENT_HAS_LOCK_ID ? wire_id(p) : c->lock_id;
	c->token = has & CLIENT_HAS_TOKEN ? 1 + wire_number(p, TOKEN_MAX - 1) : 0;
	c->deadline_kept = has & CLIENT_HAS_DEADLINE_KEPT && prng_chance(p, 1, 2);
	c->expect_value = (has & CLIENT_HAS_EXPECT) != 0;
	c->expected = c->expect_value ? wire_bytes(p, 0, 300) : c->expected;
	c->expected.size -= c->expected.size == CLIENT_VALUE_SEQ_BYTES; /* that many may be a value_seq, too */
	c->expect_seq = (has & CLIENT_HAS_VALUE_SEQ) != 0;
	c->expected_seq = c->expect_seq ? wire_ballot(p) : c->expected_seq;
	c->quorum = has & CLIENT_HAS_CONSISTENCY && prng_chance(p, 1, 2);
	c->limit = has & CLIENT_HAS_LIMIT ? 1 + (uint32_t)prng_below(p, 1000) : r.method == CLIENT_LIST ? 100 : 0;
	c->after = has & CLIENT_HAS_AFTER ? wire_bytes(p, 0, KEY_MAX) : c->after;
	c->for_free = has & CLIENT_HAS_FOR && prng_chance(p, 1, 2);
	c->now = has & CLIENT_HAS_NOW && prng_chance(p, 1, 2);
	if (has & CLIENT_HAS_LOCKS) {
		r.locks = locks;
		r.lock_count = 1 + prng_below(p, 50);
		for (size_t i = 0; i < r.lock_count; i++) {
			locks[i] = (struct client_lock){ wire_bytes(p, 1, KEY_MAX), wire_id(p), random_ms(p), wire_number(p, TOKEN_MAX) };
		}
	}
	return r;
}

static void assert_requests_equal(const struct client_request *a, const struct client_request *b) {
	const struct core_request *x = &a->core, *y = &b->core;
	assert_true(a->msgid == b->msgid && a->method == b->method && a->present == b->present);
	assert_true(x->op == y->op && slice_equal(x->key, y->key) && slice_equal(x->owner, y->owner));
	assert_true(slice_equal(x->value, y->value) && id128_equal(x->lock_id, y->lock_id));
	assert_true(x->lease == y->lease && x->wait == y->wait && x->token == y->token);
	assert_true(x->deadline_kept == y->deadline_kept && x->quorum == y->quorum && x->now == y->now);
	assert_true(x->for_free == y->for_free && x->expect_value == y->expect_value && x->expect_seq == y->expect_seq);
	assert_true(slice_equal(x->expected, y->expected) && ballot_compare(x->expected_seq, y->expected_seq) == 0);
	assert_true(slice_equal(x->after, y->after) && x->limit == y->limit);
	assert_int_equal(a->lock_count, b->lock_count);
	for (size_t i = 0; i < a->lock_count; i++) {
		assert_true(slice_equal(a->locks[i].key, b->locks[i].key) && id128_equal(a->locks[i].lock_id, b->locks[i].lock_id));
		assert_true(a->locks[i].lease == b->locks[i].lease && a->locks[i].token == b->locks[i].token);
	}
}

static void every_method_comes_back_as_it_was(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (int n = 0; n < 300; n++) {
		for (size_t row = 0; row < METHODS; row++) {
			struct client_request sent = random_request(t, row, locks);
			buffer_clear(&t->bytes);
			assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
			assert_int_equal(decode(t, t->bytes.data, t->bytes.size), 0);
			assert_requests_equal(&sent, &t->got);
		}
	}
}

static void what_is_written_is_messagepack_rpc(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (size_t row = 0; row < METHODS; row++) {
		struct client_request sent = random_request(t, row, locks);
		msgpack_unpacked result;
		size_t offset = 0;
		buffer_clear(&t->bytes);
		assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
		msgpack_unpacked_init(&result);
		assert_int_equal(msgpack_unpack_next(&result, (const char *)t->bytes.data, t->bytes.size, &offset), MSGPACK_UNPACK_SUCCESS);
		assert_int_equal(offset, t->bytes.size);
		assert_int_equal(result.data.via.array.size, 4);
		const msgpack_object *parts = result.data.via.array.ptr;
		assert_int_equal(parts[0].via.u64, 0);
		assert_int_equal(parts[1].via.u64, sent.msgid);
		assert_int_equal(parts[3].via.array.size, 1);
		assert_int_equal(parts[3].via.array.ptr[0].type, MSGPACK_OBJECT_MAP);
		msgpack_unpacked_destroy(&result);
	}
}

static void every_truncation_is_refused(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (size_t row = 0; row < METHODS; row++) {
		struct client_request sent = random_request(t, row, locks);
		sent.core.value.size = sent.core.value.size > 40 ? 40 : sent.core.value.size;
		sent.lock_count = sent.lock_count > 2 ? 2 : sent.lock_count;
		buffer_clear(&t->bytes);
		assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
		for (size_t size = 0; size < t->bytes.size; size++) {
			uint8_t *cut = wire_exact(t->bytes.data, size);
			struct client_scanner s = { 0 };
			size_t end;
			assert_int_equal(client_scan(&s, &client_request_limits, slice_of(cut, size), &end), CLIENT_SCAN_MORE);
			assert_int_not_equal(client_request_decode(&t->decoder, slice_of(cut, size), &t->got, &t->refusal), 0);
			free(cut);
		}
	}
}

static void flipped_bytes_never_crash(void **state) {
	struct request_test *t = *state;
	struct client_lock locks[64];
	for (int n = 0; n < 20000; n++) {
		struct client_request sent = random_request(t, prng_below(&t->prng, METHODS), locks);
		buffer_clear(&t->bytes);
		assert_int_equal(client_request_encode(&sent, &t->bytes), 0);
		uint8_t *copy = wire_exact(t->bytes.data, t->bytes.size);
		for (int i = 0; i < 10; i++) {
			copy[prng_below(&t->prng, t->bytes.size)] ^= (uint8_t)(1u << prng_below(&t->prng, 8));
		}
		struct slice bytes = slice_of(copy, t->bytes.size);
		struct client_scanner s = { 0 };
		size_t end;
		client_scan(&s, &client_request_limits, bytes, &end);
		int error = client_request_decode(&t->decoder, bytes, &t->got, &t->refusal);
		assert_true(error == 0 || t->refusal.error != 0);
		free(copy);
	}
}

/* ---- refusals, in bytes written by hand ---- */

#define REQUEST(method, pairs) "\x94\x00\x07" method "\x91" pairs
#define DECODE(t, text) decode((t), (text), sizeof(text) - 1)
#define KEY "\xa3key\xa1k"
#define LEASE "\xa8lease_ms\xcd\x03\xe8"
#define ID "\xa7lock_id\xd9\x20" "00112233445566778899aabbccddeeff"

static void assert_refused(struct request_test *t, int error, int expected, const char *field, const char *part) {
	assert_int_equal(error, expected);
	assert_int_equal(t->got.msgid, 7);
	assert_int_equal(t->refusal.error, expected == PAWL_EPROTOCOL ? PAWL_EBADREQUEST : expected);
	assert_true(slice_equal(t->refusal.field, slice_str(field)));
	assert_non_null(strstr(t->refusal.message, part));
}

#define ASSERT_BAD(t, text, field, part) assert_refused((t), DECODE((t), text), PAWL_EBADREQUEST, field, part)

static void strings_and_binaries_are_both_byte_strings(void **state) {
	struct request_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa7" "acquire", "\x83" KEY LEASE ID)), 0);
	assert_true(slice_equal(t->got.core.key, slice_str("k")) && t->got.core.lease == SPAN_S);
	assert_int_equal(t->got.core.lock_id.b[1], 0x11);
	assert_int_equal(DECODE(t, REQUEST("\xa7" "acquire", "\x82\xa3key\xc4\x01k" LEASE)), 0);
	assert_true(slice_equal(t->got.core.key, slice_str("k")) && id128_zero(t->got.core.lock_id));
	assert_false(t->got.present & CLIENT_HAS_LOCK_ID);
	assert_int_equal(t->got.core.wait, 0);
}

static void numbers_may_come_in_any_width(void **state) {
	struct request_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xd3\0\0\0\0\0\0\x03\xe8")), 0);
	assert_true(t->got.core.lease == SPAN_S);
	assert_int_equal(DECODE(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xce\0\0\x03\xe8")), 0);
	assert_true(t->got.core.lease == SPAN_S);
}

static void methods_without_parameters_need_no_map(void **state) {
	struct request_test *t = *state;
	assert_int_equal(DECODE(t, "\x94\x00\x07\xa4ping\x90"), 0);
	assert_int_equal(t->got.method, CLIENT_PING);
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x90", "key", "missing");
}

static void unknown_methods_and_parameters_are_named(void **state) {
	struct request_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa5watch", "\x80"), "watch", "unknown method");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x83" KEY LEASE "\xa7waitms_\x05"), "waitms_", "acquire takes key");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x82" KEY LEASE), "lease_ms", "get takes key, consistency");
	ASSERT_BAD(t, REQUEST("\xa4ping", "\x81" KEY), "key", "takes none");
}

static void missing_and_repeated_parameters_are_named(void **state) {
	struct request_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x81" KEY), "lease_ms", "missing");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x81" LEASE), "key", "missing");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x81" KEY), "lock_id", "missing");
	ASSERT_BAD(t, REQUEST("\xa4wait", "\x81" KEY), "for", "missing");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x82" KEY KEY), "key", "twice");
}

static void wrong_types_and_ranges_name_field_and_remedy(void **state) {
	struct request_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa3get", "\x81\xa3key\x05"), "key", "byte string");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x81\xa3key\xa0"), "key", "empty");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\x00"), "lease_ms", "milliseconds");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xff"), "lease_ms", "milliseconds");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xa2" "1s"), "lease_ms", "milliseconds");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xcb\0\0\0\0\0\0\0\0"), "lease_ms", "whole number");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "lease_ms", "at most");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xa3" "abc"), "lock_id", "32 hex digits");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xd9\x20" "00000000000000000000000000000000"), "lock_id", "zero");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xd9\x20" "0011223344556677 899aabbccddeeff"), "lock_id", "hex");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xc4\x02xx"), "lock_id", "16 random bytes");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x82" KEY "\xab" "consistency\xa6strong"), "consistency", "quorum");
	ASSERT_BAD(t, REQUEST("\xa4wait", "\x82" KEY "\xa3" "for\xa4gone"), "for", "free");
	ASSERT_BAD(t, REQUEST("\xa4list", "\x81\xa5limit\x00"), "limit", "1 to 1000");
	ASSERT_BAD(t, REQUEST("\xa4list", "\x81\xa5limit\xcd\x03\xe9"), "limit", "1 to 1000");
	ASSERT_BAD(t, REQUEST("\xa5" "break", "\x82" KEY "\xa3now\x01"), "now", "true or false");
	ASSERT_BAD(t, REQUEST("\xa5" "break", "\x82" KEY "\xa5token\x00"), "token", "above 0");
	ASSERT_BAD(t, REQUEST("\xa5" "break", "\x82" KEY "\xa5token\xcf\x40\0\0\0\0\0\0\1"), "token", "token");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x81\x05\x05"), "params", "strings");
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x91\x05", "params", "map");
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x92\x80\x80", "params", "one map");
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x80", "params", "array");
	ASSERT_BAD(t, "\x94\x00\x07\x05\x91\x80", "method", "string");
}

static void an_expectation_is_the_value_or_its_value_seq(void **state) {
	struct request_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa6" "expect\xc4\x14" "01234567890123456789")), 0);
	assert_true(t->got.core.expect_value && t->got.core.expect_seq);
	assert_true(t->got.core.expected_seq.boot == 0x36373839);
	assert_int_equal(DECODE(t, REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa6" "expect\xa1w")), 0);
	assert_true(t->got.core.expect_value && !t->got.core.expect_seq);
}

static void only_one_expectation_may_be_given(void **state) {
	struct request_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa6update", "\x85" KEY ID "\xa5value\xa1v\xa6" "expect\xa1w\xa9value_seq\xc4\x14" "01234567890123456789"),
		"value_seq", "choose one");
	ASSERT_BAD(t, REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa9value_seq\x05"), "value_seq", "as it was answered");
	ASSERT_BAD(t, REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa9value_seq\xc4\x01x"), "value_seq", "as it was answered");
}

static void batches_are_checked_lock_by_lock(void **state) {
	struct request_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x83" KEY ID LEASE)), 0);
	assert_int_equal(t->got.lock_count, 1);
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x90"), "locks", "1 to 4096");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x05"), "locks", "list of maps");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x05"), "params", "map");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x82" KEY ID), "lease_ms", "missing");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x84" KEY ID LEASE "\xa5owner\xa1x"), "owner", "each of locks takes");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x81\xa5locks\x90"), "locks", "each of locks takes");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x82\xa5locks\x91\x83" KEY ID LEASE KEY), "locks", "only deadline_kept");
}

static void values_that_are_too_long_are_too_large(void **state) {
	struct request_test *t = *state;
	static uint8_t bytes[VALUE_MAX_HARD + 100];
	static const struct { const char *head; size_t size; const char *field; } cases[] = {
		{ "\x94\x00\x07\xa3get\x91\x81\xa3key", KEY_MAX + 1, "key" },
		{ "\x94\x00\x07\xa4list\x91\x81\xa6prefix", KEY_MAX + 1, "prefix" },
		{ "\x94\x00\x07\xa7" "acquire\x91\x81\xa5owner", OWNER_MAX + 1, "owner" },
		{ "\x94\x00\x07\xa7" "acquire\x91\x81\xa5value", VALUE_MAX_HARD + 1, "value" },
	};
	for (size_t i = 0; i < 4; i++) {
		size_t head = 3 + strlen(cases[i].head + 3) + 5, size = cases[i].size;
		memcpy(bytes, cases[i].head, head - 5);
		memcpy(bytes + head - 5, (uint8_t[]){ 0xc6, (uint8_t)(size >> 24), (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size }, 5);
		assert_refused(t, decode(t, bytes, head + size), PAWL_ETOOLARGE, cases[i].field, "must be at most");
	}
}

static void what_is_no_request_ends_the_connection(void **state) {
	struct request_test *t = *state;
	assert_int_equal(DECODE(t, "\x94\x01\x07\xc0\x80"), PAWL_EPROTOCOL); /* a response */
	assert_int_equal(DECODE(t, "\x93\x02\xa4ping\x90"), PAWL_EPROTOCOL); /* a notification */
	assert_int_equal(DECODE(t, "\x94\x00\xff\xa4ping\x90"), PAWL_EPROTOCOL); /* msgid -1 */
	assert_int_equal(DECODE(t, "\x94\x00\xcf\0\0\0\1\0\0\0\0\xa4ping\x90"), PAWL_EPROTOCOL); /* msgid 2^32 */
	assert_int_equal(t->refusal.error, PAWL_EBADREQUEST);
	assert_non_null(t->refusal.message);
}

static void memory_running_out_is_no_refusal(void **state) {
	struct request_test *t = *state;
	struct alloc_counter counter = { .max = 1 };
	struct allocator alloc = alloc_libc(&counter);
	struct client_decoder d;
	client_decoder_init(&d, &alloc);
	static const char text[] = REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x83" KEY ID LEASE);
	assert_int_equal(client_request_decode(&d, slice_of(text, sizeof text - 1), &t->got, &t->refusal), PAWL_ENOMEM);
	assert_int_equal(t->got.msgid, 7);
	client_decoder_done(&d);
}

static void lock_ids_are_read_and_written_as_text(void **state) {
	(void)state;
	struct id128 id;
	char digits[CLIENT_LOCK_ID_DIGITS];
	assert_true(client_lock_id_parse(slice_str("00112233445566778899AABBccddeeff"), &id));
	client_lock_id_format(id, digits);
	assert_memory_equal(digits, "00112233445566778899aabbccddeeff", sizeof digits);
	assert_false(client_lock_id_parse(slice_str("00112233445566778899aabbccddeef"), &id));
	assert_false(client_lock_id_parse(slice_str("0011223344556677889gaabbccddeeff"), &id));
	assert_false(client_lock_id_parse(slice_str("00000000000000000000000000000000"), &id));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_method_comes_back_as_it_was, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_written_is_messagepack_rpc, setup, teardown),
		cmocka_unit_test_setup_teardown(every_truncation_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(flipped_bytes_never_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(strings_and_binaries_are_both_byte_strings, setup, teardown),
		cmocka_unit_test_setup_teardown(numbers_may_come_in_any_width, setup, teardown),
		cmocka_unit_test_setup_teardown(methods_without_parameters_need_no_map, setup, teardown),
		cmocka_unit_test_setup_teardown(unknown_methods_and_parameters_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(missing_and_repeated_parameters_are_named, setup, teardown),
		cmocka_unit_test_setup_teardown(wrong_types_and_ranges_name_field_and_remedy, setup, teardown),
		cmocka_unit_test_setup_teardown(an_expectation_is_the_value_or_its_value_seq, setup, teardown),
		cmocka_unit_test_setup_teardown(only_one_expectation_may_be_given, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_are_checked_lock_by_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(values_that_are_too_long_are_too_large, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_request_ends_the_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_running_out_is_no_refusal, setup, teardown),
		cmocka_unit_test(lock_ids_are_read_and_written_as_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
