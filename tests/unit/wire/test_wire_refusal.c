/* These tests have requests in bytes written by hand: what may be said in several ways, and every
 * refusal by its name. */
#include "unit.h"

#include "client.h"

struct refusal_test {
	struct allocator alloc;
	struct client_decoder decoder;
	struct client_request got;
	struct client_refusal refusal;
};

static int setup(void **state) {
	static struct refusal_test t;
	t.alloc = alloc_libc(NULL);
	client_decoder_init(&t.decoder, &t.alloc);
	*state = &t;
	return 0;
}

static int teardown(void **state) {
	struct refusal_test *t = *state;
	client_decoder_done(&t->decoder);
	return 0;
}

static int decode(struct refusal_test *t, const void *data, size_t size) {
	struct client_scanner s = { 0 };
	size_t end = 0;
	assert_int_equal(client_scan(&s, &client_request_limits, slice_of(data, size), &end),
		CLIENT_SCAN_COMPLETE);
	assert_int_equal(end, size);
	const size_t at_once = client_request_decode_short(&t->decoder, slice_of(data, size),
		&t->got);
	const int error = client_request_decode(&t->decoder, slice_of(data, size), &t->got,
		&t->refusal);
	assert_true(at_once == (error || size > 1024 ? 0 : size));
	return error;
}

#define REQUEST(method, pairs) "\x94\x00\x07" method "\x91" pairs
#define DECODE(t, text) decode((t), (text), sizeof(text) - 1)
#define KEY "\xa3key\xa1k"
#define LEASE "\xa8lease_ms\xcd\x03\xe8"
#define ID "\xa7lock_id\xd9\x20" "00112233445566778899aabbccddeeff"

static void assert_refused(struct refusal_test *t, int error, int expected, const char *field,
	const char *part) {
	assert_int_equal(error, expected);
	assert_int_equal(t->got.msgid, 7);
	assert_int_equal(t->refusal.error,
		expected == PAWL_EPROTOCOL ? PAWL_EBADREQUEST : expected);
	assert_true(slice_equal(t->refusal.field, slice_str(field)));
	assert_non_null(strstr(t->refusal.message, part));
}

#define ASSERT_BAD(t, text, field, part) \
	assert_refused((t), DECODE((t), text), PAWL_EBADREQUEST, field, part)

static void strings_and_binaries_are_both_byte_strings(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa7" "acquire", "\x83" KEY LEASE ID)), 0);
	assert_true(slice_equal(t->got.core.key, slice_str("k")) && t->got.core.lease == SPAN_S);
	assert_int_equal(t->got.core.lock_id.b[1], 0x11);
	assert_int_equal(DECODE(t, REQUEST("\xa7" "acquire", "\x82\xa3key\xc4\x01k" LEASE)), 0);
	assert_true(slice_equal(t->got.core.key, slice_str("k")) &&
		id128_zero(t->got.core.lock_id));
	assert_false(t->got.present & CLIENT_HAS_LOCK_ID);
	assert_int_equal(t->got.core.wait, 0);
}

static void numbers_may_come_in_any_width(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t,
		REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xd3\0\0\0\0\0\0\x03\xe8")), 0);
	assert_true(t->got.core.lease == SPAN_S);
	assert_int_equal(DECODE(t,
		REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xce\0\0\x03\xe8")), 0);
	assert_true(t->got.core.lease == SPAN_S);
}

static void methods_without_parameters_need_no_map(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t, "\x94\x00\x07\xa4ping\x90"), 0);
	assert_int_equal(t->got.method, CLIENT_PING);
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x90", "key", "missing");
}

static void unknown_methods_and_parameters_are_named(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa5" "cease", "\x80"), "cease", "unknown method");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x83" KEY LEASE "\xa7waitms_\x05"), "waitms_",
		"acquire takes key");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x82" KEY LEASE), "lease_ms",
		"get takes key, consistency");
	ASSERT_BAD(t, REQUEST("\xa4ping", "\x81" KEY), "key", "takes none");
}

static void missing_and_repeated_parameters_are_named(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x81" KEY), "lease_ms", "missing");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x81" LEASE), "key", "missing");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x81" KEY), "lock_id", "missing");
	ASSERT_BAD(t, REQUEST("\xa4wait", "\x81" KEY), "for", "missing");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x82" KEY KEY), "key", "twice");
}

static void wrong_types_and_ranges_name_field_and_remedy(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa3get", "\x81\xa3key\x05"), "key", "byte string");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x81\xa3key\xa0"), "key", "empty");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\x00"), "lease_ms",
		"milliseconds");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xff"), "lease_ms",
		"milliseconds");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xa2" "1s"), "lease_ms",
		"milliseconds");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY "\xa8lease_ms\xcb\0\0\0\0\0\0\0\0"),
		"lease_ms", "whole number");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x82" KEY
		"\xa8lease_ms\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "lease_ms", "at most");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xa3" "abc"), "lock_id",
		"32 hex digits");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xd9\x20"
		"00000000000000000000000000000000"), "lock_id", "zero");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xd9\x20"
		"0011223344556677 899aabbccddeeff"), "lock_id", "hex");
	ASSERT_BAD(t, REQUEST("\xa7release", "\x82" KEY "\xa7lock_id\xc4\x02xx"), "lock_id",
		"16 random bytes");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x82" KEY "\xab" "consistency\xa6strong"), "consistency",
		"quorum");
	ASSERT_BAD(t, REQUEST("\xa4wait", "\x82" KEY "\xa3" "for\xa4gone"), "for", "free");
	ASSERT_BAD(t, REQUEST("\xa4list", "\x81\xa5limit\x00"), "limit", "1 to 1000");
	ASSERT_BAD(t, REQUEST("\xa4list", "\x81\xa5limit\xcd\x03\xe9"), "limit", "1 to 1000");
	ASSERT_BAD(t, REQUEST("\xa5" "break", "\x82" KEY "\xa3now\x01"), "now", "true or false");
	ASSERT_BAD(t, REQUEST("\xa5" "break", "\x82" KEY "\xa5token\x00"), "token", "above 0");
	ASSERT_BAD(t, REQUEST("\xa5" "break", "\x82" KEY "\xa5token\xcf\x40\0\0\0\0\0\0\1"),
		"token", "token");
	ASSERT_BAD(t, REQUEST("\xa3get", "\x81\x05\x05"), "params", "strings");
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x91\x05", "params", "map");
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x92\x80\x80", "params", "one map");
	ASSERT_BAD(t, "\x94\x00\x07\xa3get\x80", "params", "array");
	ASSERT_BAD(t, "\x94\x00\x07\x05\x91\x80", "method", "string");
}

static void an_expectation_is_the_value_or_its_value_seq(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa6update",
		"\x84" KEY ID "\xa5value\xa1v\xa6" "expect\xc4\x14" "01234567890123456789")), 0);
	assert_true(t->got.core.expect_value && t->got.core.expect_seq);
	assert_true(t->got.core.expected_seq.boot == 0x36373839);
	assert_int_equal(DECODE(t,
		REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa6" "expect\xa1w")), 0);
	assert_true(t->got.core.expect_value && !t->got.core.expect_seq);
}

static void only_one_expectation_may_be_given(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa6update", "\x85" KEY ID "\xa5value\xa1v\xa6"
		"expect\xa1w\xa9value_seq\xc4\x14" "01234567890123456789"), "value_seq",
		"choose one");
	ASSERT_BAD(t, REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa9value_seq\x05"),
		"value_seq", "as it was answered");
	ASSERT_BAD(t, REQUEST("\xa6update", "\x84" KEY ID "\xa5value\xa1v\xa9value_seq\xc4\x01x"),
		"value_seq", "as it was answered");
}

static void batches_are_checked_lock_by_lock(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t,
		REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x83" KEY ID LEASE)), 0);
	assert_int_equal(t->got.lock_count, 1);
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x90"), "locks", "1 to 4096");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x05"), "locks", "list of maps");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x05"), "params", "map");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x82" KEY ID), "lease_ms",
		"missing");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x84" KEY ID LEASE
		"\xa5owner\xa1x"), "owner", "each of locks takes");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x81\xa5locks\x90"), "locks",
		"each of locks takes");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x82\xa5locks\x91\x83" KEY ID LEASE KEY), "locks",
		"only deadline_kept, party and trace");
}

#define ACQUIRE(pairs, more) REQUEST("\xa7" "acquire", pairs KEY LEASE more)
#define MODE(text) "\xa4mode" text
#define PERMITS(text) "\xa7permits" text
#define OF(text) "\xa2of" text

static void what_a_lock_excludes_is_said_in_one_way(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t, ACQUIRE("\x83", MODE("\xa6shared"))), 0);
	assert_int_equal(t->got.core.terms.of, MODE_SHARED);
	assert_int_equal(DECODE(t, ACQUIRE("\x83", MODE("\xa9" "exclusive"))), 0);
	assert_int_equal(t->got.core.terms.of, MODE_EXCLUSIVE);
	assert_int_equal(DECODE(t, ACQUIRE("\x84", PERMITS("\xcc\x80") OF("\xcc\x80"))), 0);
	assert_true(t->got.core.terms.of == 128 && t->got.core.terms.count == 128 &&
		terms_valid(&t->got.core.terms));
	ASSERT_BAD(t, ACQUIRE("\x83", MODE("\xa6" "reader")), "mode", "exclusive");
	ASSERT_BAD(t, ACQUIRE("\x83", MODE("\xa7permits")), "mode", "permits and of");
	ASSERT_BAD(t, ACQUIRE("\x83", PERMITS("\x02")), "of", "is missing: with permits");
	ASSERT_BAD(t, ACQUIRE("\x83", OF("\x02")), "permits", "is missing: with of");
	ASSERT_BAD(t, ACQUIRE("\x84", PERMITS("\x03") OF("\x02")), "permits",
		"not be more than of");
	ASSERT_BAD(t, ACQUIRE("\x84", PERMITS("\x00") OF("\x02")), "permits", "1 to 128");
	ASSERT_BAD(t, ACQUIRE("\x84", PERMITS("\x01") OF("\xcc\x81")), "of", "1 to 128");
	ASSERT_BAD(t, ACQUIRE("\x84", PERMITS("\xff") OF("\x02")), "permits", "1 to 128");
	ASSERT_BAD(t, ACQUIRE("\x85", MODE("\xa6shared") PERMITS("\x01") OF("\x02")), "mode",
		"together");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x84" KEY ID LEASE MODE("\xa6shared")), "mode",
		"extend takes");
}

static void priorities_are_numbers_of_32_bits_with_a_sign(void **state) {
	struct refusal_test *t = *state;
	static const struct { const char *text; size_t size; int32_t priority; } good[] = {
		{ "\x05", 1, 5 }, { "\xff", 1, -1 }, { "\xe0", 1, -32 },
			{ "\xd0\x80", 2, -128 }, { "\xd1\xff\x00", 3, -256 },
		{ "\xd2\x80\x00\x00\x00", 5, INT32_MIN },
			{ "\xd3\xff\xff\xff\xff\x80\x00\x00\x00", 9, INT32_MIN },
		{ "\xce\x7f\xff\xff\xff", 5, INT32_MAX },
	};
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		char text[128] = ACQUIRE("\x83", "\xa8priority");
		size_t size = sizeof(ACQUIRE("\x83", "\xa8priority")) - 1;
		memcpy(text + size, good[i].text, good[i].size);
		assert_int_equal(decode(t, text, size + good[i].size), 0);
		assert_int_equal(t->got.core.terms.priority, good[i].priority);
	}
#define PRIORITY(text) ACQUIRE("\x83", "\xa8priority" text)
	ASSERT_BAD(t, PRIORITY("\xce\x80\x00\x00\x00"), "priority", "2147483647");
	ASSERT_BAD(t, PRIORITY("\xd3\xff\xff\xff\xff\x7f\xff\xff\xff"), "priority", "-2147483648");
	ASSERT_BAD(t, PRIORITY("\xcf\xff\xff\xff\xff\xff\xff\xff\xff"), "priority", "whole number");
	ASSERT_BAD(t, PRIORITY("\xa1x"), "priority", "whole number");
}

static void what_holders_say_about_themselves_is_short(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, ACQUIRE("\x83", "\xa3pid\x00"), "pid", "from 1");
	ASSERT_BAD(t, ACQUIRE("\x83", "\xa3pid\xcf\x00\x00\x00\x01\x00\x00\x00\x00"), "pid",
		"4294967295");
	ASSERT_BAD(t, ACQUIRE("\x83", "\xb5release_on_disconnect\x01"), "release_on_disconnect",
		"true or false");
	ASSERT_BAD(t, ACQUIRE("\x83", "\xadlock_delay_ms\xff"), "lock_delay_ms", "0 to");
	char text[300] = ACQUIRE("\x83", "\xa5label\xc4\x81");
	size_t size = sizeof(ACQUIRE("\x83", "\xa5label\xc4\x81")) - 1;
	assert_refused(t, decode(t, text, size + 129), PAWL_ETOOLARGE, "label", "128 bytes");
	memcpy(text, ACQUIRE("\x83", "\xa4host\xc4\x41"), size);
	assert_refused(t, decode(t, text, size - 1 + 65), PAWL_ETOOLARGE, "host", "64 bytes");
}

#define GROUP(pairs, more) REQUEST("\xa7" "acquire", pairs LEASE "\xa5locks" more)

static void several_keys_are_checked_key_by_key(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t,
		GROUP("\x82", "\x92\x81" KEY "\x83" KEY ID MODE("\xa6shared"))), 0);
	assert_true(t->got.core.op == CORE_ACQUIRE_ALL && t->got.core.lock_count == 2 &&
		t->got.core.locks == t->got.group);
	assert_true(id128_zero(t->got.group[0].lock_id) && t->got.group[1].lock_id.b[1] == 0x11 &&
		t->got.group[1].of == MODE_SHARED);
	ASSERT_BAD(t, GROUP("\x82", "\x90"), "locks", "1 to 64");
	ASSERT_BAD(t, GROUP("\x82", "\x05"), "locks", "list of maps");
	ASSERT_BAD(t, GROUP("\x82", "\x91\x81" ID), "key", "missing");
	ASSERT_BAD(t, GROUP("\x82", "\x91\x82" KEY LEASE), "lease_ms",
		"each of locks takes key, lock_id, mode");
	ASSERT_BAD(t, GROUP("\x82", "\x91\x82" KEY OF("\x02")), "permits", "is missing");
	ASSERT_BAD(t, GROUP("\x82", "\x91\x84" KEY OF("\x02") PERMITS("\x01") MODE("\xa6shared")),
		"mode", "together");
	ASSERT_BAD(t, GROUP("\x82", "\x91\x82" KEY "\xa3pid\x05"), "pid", "each of locks takes");
	ASSERT_BAD(t, GROUP("\x83" KEY, "\x91\x81" KEY), "locks", "do not go together with it");
	ASSERT_BAD(t, GROUP("\x83" MODE("\xa6shared"), "\x91\x81" KEY), "locks",
		"do not go together with it");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x81\xa5locks\x91\x81" KEY), "lease_ms",
		"missing");
	/* There are 65 of them. */
	char text[512] = GROUP("\x82", "\xdc\x00\x41");
	size_t size = sizeof(GROUP("\x82", "\xdc\x00\x41")) - 1;
	for (size_t i = 0; i < 65; i++, size += sizeof("\x81" KEY) - 1) {
		memcpy(text + size, "\x81" KEY, sizeof("\x81" KEY) - 1);
	}
	assert_refused(t, decode(t, text, size), PAWL_EBADREQUEST, "locks", "1 to 64");
}

static void one_key_or_all_with_a_prefix(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST("\xa5watch", "\x81\xa6prefix\xa0")), 0);
	assert_true(t->got.core.prefix && t->got.core.key.size == 0);
	assert_int_equal(DECODE(t, REQUEST("\xa7waiters", "\x81\xa6prefix\xa1k")), 0);
	assert_true(t->got.core.prefix && t->got.core.limit == 100);
	assert_int_equal(DECODE(t, REQUEST("\xa7waiters", "\x81" KEY)), 0);
	assert_true(!t->got.core.prefix && t->got.core.key.size == 1);
	ASSERT_BAD(t, REQUEST("\xa5watch", "\x80"), "key", "or prefix instead");
	ASSERT_BAD(t, REQUEST("\xa5watch", "\x82" KEY "\xa6prefix\xa0"), "prefix", "choose one");
	ASSERT_BAD(t, REQUEST("\xa7waiters", "\x82" KEY "\xa5limit\x05"), "limit",
		"goes with prefix");
	ASSERT_BAD(t, REQUEST("\xa5watch", "\x82" KEY "\xa4" "from\xc4\x01x"), "from", "16 bytes");
	ASSERT_BAD(t, REQUEST("\xa5watch", "\x82" KEY "\xa4" "from\x05"), "from",
		"as it was answered");
	ASSERT_BAD(t, REQUEST("\xa7unwatch", "\x80"), "watch", "missing");
	ASSERT_BAD(t, REQUEST("\xa7unwatch", "\x81\xa5watch\x00"), "watch", "watch answered");
	ASSERT_BAD(t, REQUEST("\xa8transfer", "\x82" KEY ID), "to", "missing");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x84" KEY ID LEASE "\xa4" "bond\x00"), "bond",
		"from 1");
}

static void a_shortening_names_one_number(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x84" KEY ID LEASE "\xa5order\x00"), "order",
		"from 1");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x84" KEY ID LEASE "\xa7shorten\xc3"), "shorten",
		"needs order, or bond");
	ASSERT_BAD(t, REQUEST("\xa6" "extend", "\x85" KEY ID LEASE "\xa5order\x02\xa4"
		"bond\x02"), "order", "numbered by bond");
	ASSERT_BAD(t, REQUEST("\xa7" "acquire", "\x84" KEY LEASE "\xa5order\x02"
		"\xb5release_on_disconnect\xc3"), "order", "numbered by bond");
	ASSERT_BAD(t, REQUEST("\xa6" "extend",
		"\x81\xa5locks\x91\x84" KEY ID LEASE "\xa7shorten\xc3"), "shorten",
		"needs order, or bond");
}

#define PROMOTE "\xaf" "cluster_promote"
#define SET_NODES "\xb1" "cluster_set_nodes"
#define SET_TIMING "\xb2" "cluster_set_timing"

static void nodes_are_named_and_reached_as_they_may_be(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST(PROMOTE, "\x80"), "name", "missing");
	ASSERT_BAD(t, REQUEST(PROMOTE, "\x81\xa4name\xa0"), "name", "1 to 63 letters");
	ASSERT_BAD(t, REQUEST(PROMOTE, "\x81\xa4name\xa3" "a b"), "name", "1 to 63 letters");
	ASSERT_BAD(t, REQUEST(PROMOTE, "\x81\xa4name\x05"), "name", "1 to 63 letters");
	ASSERT_BAD(t, REQUEST(PROMOTE, "\x82\xa4name\xa1" "a\xa7" "address\xa3" "h:1"), "address",
		"cluster_promote takes name, anyway");
#define ADD(address) \
	REQUEST("\xb3" "cluster_add_replica", "\x82\xa4name\xa2n4\xa7" "address" address)
	assert_int_equal(DECODE(t, ADD("\xa6h:7117")), 0);
	assert_true(slice_equal(t->got.core.change->address, slice_str("h:7117")) &&
		t->got.core.change == &t->got.change);
	ASSERT_BAD(t, ADD("\xa1h"), "address", "host:port");
	ASSERT_BAD(t, ADD("\xa2h:"), "address", "host:port");
	ASSERT_BAD(t, ADD("\xa2:1"), "address", "host:port");
	ASSERT_BAD(t, ADD("\xa3h:0"), "address", "host:port");
	ASSERT_BAD(t, ADD("\xa7h:65536"), "address", "host:port");
	ASSERT_BAD(t, ADD("\xa4h:1x"), "address", "host:port");
	ASSERT_BAD(t, ADD("\xa5h x:1"), "address", "host:port");
}

static void a_whole_set_names_masters_first_in_either_order(void **state) {
	struct refusal_test *t = *state;
	assert_int_equal(DECODE(t, REQUEST(SET_NODES,
		"\x82\xa8replicas\x92\xa1" "d\xa5" "e=h:1\xa7masters\x92\xa1" "a\xa1" "b")), 0);
	const struct core_change *c = t->got.core.change;
	assert_int_equal(c->node_count, 4);
	assert_true(slice_equal(c->nodes[0].name, slice_str("a")) && c->nodes[0].master &&
		c->nodes[1].master);
	assert_true(slice_equal(c->nodes[2].name, slice_str("d")) && !c->nodes[2].master &&
		c->nodes[2].address.size == 0);
	assert_true(slice_equal(c->nodes[3].name, slice_str("e")) &&
		slice_equal(c->nodes[3].address, slice_str("h:1")));
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x81\xa8replicas\x91\xa1" "d"), "masters", "missing");
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x81\xa7masters\x90"), "masters", "1 to 9");
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x81\xa7masters\x9a" "0123456789"), "masters", "1 to 9");
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x81\xa7masters\xa1" "a"), "masters", "list of names");
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x81\xa7masters\x91\xa2" "a="), "masters",
		"name=host:port");
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x81\xa7masters\x91\x05"), "masters", "list of names");
	ASSERT_BAD(t, REQUEST(SET_NODES, "\x82\xa7masters\x91\xa1" "a\xa8replicas\x91\xa1" "a"),
		"masters", "twice");
}

static void timing_names_something_and_force_means_yes(void **state) {
	struct refusal_test *t = *state;
	ASSERT_BAD(t, REQUEST(SET_TIMING, "\x80"), "params", "at least one of max_lease_ms");
	ASSERT_BAD(t, REQUEST(SET_TIMING, "\x81\xac" "max_lease_ms\x00"), "max_lease_ms",
		"at least 1");
	ASSERT_BAD(t, REQUEST(SET_TIMING, "\x81\xaf" "clock_drift_ppm\xce\x00\x01\x86\xa1"),
		"clock_drift_ppm", "millionths");
	assert_int_equal(DECODE(t, REQUEST(SET_TIMING, "\x81\xaf" "clock_drift_ppm\x00")), 0);
	assert_true(t->got.core.change->has_drift && t->got.core.change->max_lease == 0);
	ASSERT_BAD(t, REQUEST("\xad" "cluster_force", "\x80"), "yes", "missing");
	ASSERT_BAD(t, REQUEST("\xad" "cluster_force", "\x81\xa3yes\xc2"), "yes", "must be true");
	assert_int_equal(DECODE(t, REQUEST("\xad" "cluster_force", "\x81\xa3yes\xc3")), 0);
	assert_true(t->got.core.change->anyway && t->got.core.change->kind == CHANGE_FORCE);
}

static void values_that_are_too_long_are_too_large(void **state) {
	struct refusal_test *t = *state;
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
		memcpy(bytes + head - 5, (uint8_t[]){ 0xc6, (uint8_t)(size >> 24),
			(uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size }, 5);
		assert_refused(t, decode(t, bytes, head + size), PAWL_ETOOLARGE, cases[i].field,
			"must be at most");
	}
}

static void what_is_no_request_ends_the_connection(void **state) {
	struct refusal_test *t = *state;
	/* This is a response. */
	assert_int_equal(DECODE(t, "\x94\x01\x07\xc0\x80"), PAWL_EPROTOCOL);
	/* This is a notification. */
	assert_int_equal(DECODE(t, "\x93\x02\xa4ping\x90"), PAWL_EPROTOCOL);
	/* The msgid is -1. */
	assert_int_equal(DECODE(t, "\x94\x00\xff\xa4ping\x90"), PAWL_EPROTOCOL);
	/* The msgid is 2^32. */
	assert_int_equal(DECODE(t, "\x94\x00\xcf\0\0\0\1\0\0\0\0\xa4ping\x90"), PAWL_EPROTOCOL);
	assert_int_equal(t->refusal.error, PAWL_EBADREQUEST);
	assert_non_null(t->refusal.message);
}

static void memory_running_out_is_no_refusal(void **state) {
	struct refusal_test *t = *state;
	struct alloc_counter counter = { .max = 1 };
	struct allocator alloc = alloc_libc(&counter);
	struct client_decoder d;
	client_decoder_init(&d, &alloc);
	static const char text[] = REQUEST("\xa6" "extend", "\x81\xa5locks\x91\x83" KEY ID LEASE);
	assert_int_equal(client_request_decode(&d, slice_of(text, sizeof text - 1), &t->got,
		&t->refusal), PAWL_ENOMEM);
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

UNIT(wire_refusal) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(strings_and_binaries_are_both_byte_strings, setup,
			teardown),
		cmocka_unit_test_setup_teardown(numbers_may_come_in_any_width, setup, teardown),
		cmocka_unit_test_setup_teardown(methods_without_parameters_need_no_map, setup,
			teardown),
		cmocka_unit_test_setup_teardown(unknown_methods_and_parameters_are_named, setup,
			teardown),
		cmocka_unit_test_setup_teardown(missing_and_repeated_parameters_are_named, setup,
			teardown),
		cmocka_unit_test_setup_teardown(wrong_types_and_ranges_name_field_and_remedy, setup,
			teardown),
		cmocka_unit_test_setup_teardown(an_expectation_is_the_value_or_its_value_seq, setup,
			teardown),
		cmocka_unit_test_setup_teardown(only_one_expectation_may_be_given, setup, teardown),
		cmocka_unit_test_setup_teardown(batches_are_checked_lock_by_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(what_a_lock_excludes_is_said_in_one_way, setup,
			teardown),
		cmocka_unit_test_setup_teardown(priorities_are_numbers_of_32_bits_with_a_sign,
			setup, teardown),
		cmocka_unit_test_setup_teardown(what_holders_say_about_themselves_is_short, setup,
			teardown),
		cmocka_unit_test_setup_teardown(several_keys_are_checked_key_by_key, setup,
			teardown),
		cmocka_unit_test_setup_teardown(one_key_or_all_with_a_prefix, setup, teardown),
		cmocka_unit_test_setup_teardown(a_shortening_names_one_number, setup, teardown),
		cmocka_unit_test_setup_teardown(nodes_are_named_and_reached_as_they_may_be, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_whole_set_names_masters_first_in_either_order,
			setup, teardown),
		cmocka_unit_test_setup_teardown(timing_names_something_and_force_means_yes, setup,
			teardown),
		cmocka_unit_test_setup_teardown(values_that_are_too_long_are_too_large, setup,
			teardown),
		cmocka_unit_test_setup_teardown(what_is_no_request_ends_the_connection, setup,
			teardown),
		cmocka_unit_test_setup_teardown(memory_running_out_is_no_refusal, setup, teardown),
		cmocka_unit_test(lock_ids_are_read_and_written_as_text),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
