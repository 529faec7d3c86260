/* The texts of the admin port: metrics, whose golden file promtool accepts, and JSON. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "exposition.h"
#include "json_page.h"
#include "json_text.h"
#include "pack.h"

static struct allocator libc;
static struct buffer text;

static int make(void **state) {
	(void)state;
	libc = alloc_libc(NULL);
	buffer_init(&text, &libc, 1 << 16);
	return 0;
}

static int drop(void **state) {
	(void)state;
	buffer_done(&text);
	return 0;
}

static void assert_text(const struct page *p, const char *wanted) {
	assert_false(p->bad);
	assert_int_equal(text.size, strlen(wanted));
	assert_memory_equal(text.data, wanted, text.size);
}

static void metrics_are_as_in_the_golden_file(void **state) {
	(void)state;
	struct page p = { .to = &text };
	struct buckets b = { .sum = 0 };
	const struct label labels[] = { { "file", slice_str("/a\\b\"c\nd") },
		{ "peer", slice_str("b") }, { 0 } };
	exposition_counter(&p, "pawl_plain_total", "A counter.", UINT64_MAX);
	exposition_family(&p, "pawl_labels", METRIC_GAUGE, "A gauge with labels.");
	exposition_number(&p, "pawl_labels", labels, 1);
	exposition_number(&p, "pawl_labels", LABEL("file", "/\xff"), 2);
	exposition_gauge_seconds(&p, "pawl_age_seconds", "A duration.", 1000500000);
	exposition_family(&p, "pawl_wait_seconds", METRIC_HISTOGRAM, "A histogram.");
	buckets_add(&b, 0);
	buckets_add(&b, 100 * SPAN_US);
	buckets_add(&b, 100 * SPAN_US + 1);
	buckets_add(&b, SPAN_S);
	buckets_add(&b, 200 * SPAN_S);
	exposition_buckets(&p, "pawl_wait_seconds", LABEL("method", "get"), &b);
	char golden[4096];
	FILE *file = fopen(GOLDEN, "r");
	assert_non_null(file);
	golden[fread(golden, 1, sizeof golden - 1, file)] = '\0';
	fclose(file);
	assert_text(&p, golden);
}

static void a_duration_has_a_bucket(void **state) {
	(void)state;
	assert_int_equal(buckets_of(-5), 0);
	for (unsigned i = 0; i < BUCKETS_BOUNDS; i++) {
		assert_int_equal(buckets_of(buckets_bound(i)), i);
		assert_int_equal(buckets_of(buckets_bound(i) + 1), i + 1);
	}
	assert_int_equal(buckets_of(SPAN_MAX), BUCKETS_BOUNDS);
}

static void a_page_is_bad_when_it_does_not_fit(void **state) {
	(void)state;
	struct buffer small;
	buffer_init(&small, &libc, 8);
	struct page p = { .to = &small };
	page_text(&p, "12345678");
	assert_false(p.bad);
	page_text(&p, "9");
	assert_true(p.bad);
	page_json(&p, slice_str("x"));
	assert_true(p.bad);
	buffer_done(&small);
}

static void messagepack_becomes_json(void **state) {
	(void)state;
	struct buffer packed;
	struct pack k;
	struct page p = { .to = &text };
	buffer_init(&packed, &libc, 4096);
	pack_begin(&k, &packed);
	struct pack_open map = pack_map_open(&k);
	pack_key(&k, &map, "a");
	pack_uint(&k, UINT64_MAX);
	pack_key(&k, &map, "b");
	pack_str(&k, slice_str("\"\\\n\x01 é"));
	pack_key(&k, &map, "c");
	pack_bin(&k, slice_of("\x00\xff", 2));
	pack_key(&k, &map, "d");
	pack_str(&k, slice_of("\xff", 1));
	pack_key(&k, &map, "e");
	pack_array(&k, 3);
	pack_nil(&k);
	pack_bool(&k, true);
	pack_int(&k, -7);
	pack_key(&k, &map, "f");
	pack_bin(&k, slice_str("text"));
	pack_key(&k, &map, "value_seq");
	pack_bin(&k, slice_str("ab"));
	pack_key(&k, &map, "config_hash");
	pack_uint(&k, 0xabc);
	pack_map_close(&k, &map);
	assert_int_equal(pack_end(&k), 0);
	struct unpack u = unpack_of(buffer_slice(&packed));
	json_page_object(&p, &u);
	assert_text(&p, "{\"a\":18446744073709551615,\"b\":\"\\\"\\\\\\u000a\\u0001 é\","
		"\"c_hex\":\"00ff\",\"d\":\"ff\",\"e\":[null,true,-7],"
		"\"f\":\"text\",\"value_seq\":\"6162\",\"config_hash\":\"0000000000000abc\"}");
	buffer_done(&packed);
}

static void a_broken_object_makes_the_page_bad(void **state) {
	(void)state;
	struct page p = { .to = &text };
	struct unpack u = unpack_of(slice_of("\x81\xa1", 2));
	json_page_object(&p, &u);
	assert_true(p.bad);
}

static void utf8_is_told_from_other_bytes(void **state) {
	(void)state;
	static const char *const good[] = { "", "a", "é", "€", "\xf0\x9f\x98\x80",
		"\xf4\x8f\xbf\xbf" };
	static const char *const bad[] = { "\x80", "\xc1\x80", "\xc3", "\xe0\x9f\x80",
		"\xed\xa0\x80", "\xf0\x8f\x80\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
		"a\xff" };
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		assert_true(json_text_valid(slice_str(good[i])));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_false(json_text_valid(slice_str(bad[i])));
	}
}

UNIT(admin_text) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(metrics_are_as_in_the_golden_file, make, drop),
		cmocka_unit_test(a_duration_has_a_bucket),
		cmocka_unit_test_setup_teardown(a_page_is_bad_when_it_does_not_fit, make, drop),
		cmocka_unit_test_setup_teardown(messagepack_becomes_json, make, drop),
		cmocka_unit_test_setup_teardown(a_broken_object_makes_the_page_bad, make, drop),
		cmocka_unit_test(utf8_is_told_from_other_bytes),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
