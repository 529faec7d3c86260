/* Log lines are readable and never ambiguous, and have no secrets. */
#include "unit.h"

#include <string.h>

#include "log.h"
#include "log_limit.h"
#include "log_text.h"

#define FORMAT(out, event, ...) \
	log_format((out), sizeof(out), (event), \
		(const struct log_field[]){ __VA_ARGS__, { .kind = LOG_KIND_END } })

static void a_line_is_an_event_and_its_fields(void **state) {
	(void)state;
	char line[256];
	FORMAT(line, "peer_up", LOG_TEXT("peer", "b"), LOG_NUMBER("boot", 7),
		LOG_SPAN("after", 1500 * SPAN_MS), LOG_SPAN("rtt", 20 * SPAN_US));
	assert_string_equal(line, "peer_up peer=b boot=7 after=1.5s rtt=20us");
}

static void values_that_could_be_mistaken_are_quoted(void **state) {
	(void)state;
	char line[256];
	FORMAT(line, "e", LOG_TEXT("a", "two words"), LOG_TEXT("b", ""), LOG_TEXT("c", "x=y"),
		LOG_TEXT("d", "\"\\"));
	assert_string_equal(line, "e a=\"two words\" b=\"\" c=\"x=y\" d=\"\\\"\\\\\"");
}

static void a_key_cannot_forge_a_line(void **state) {
	(void)state;
	char line[256];
	FORMAT(line, "e", LOG_BYTES("key", slice_of("a\nb\x00\x1b[", 6)));
	assert_string_equal(line, "e key=\"a\\x0ab\\x00\\x1b[\"");
}

static void long_values_are_cut_and_say_so(void **state) {
	(void)state;
	char line[1024], key[500];
	memset(key, 'k', sizeof key);
	size_t size = FORMAT(line, "e", LOG_BYTES("key", slice_of(key, sizeof key)));
	assert_string_equal(line + size - 4, "...\"");
	assert_true(size < 300);
	char small[16];
	assert_int_equal(FORMAT(small, "e", LOG_BYTES("key", slice_of(key, sizeof key))), 15);
}

static void a_sentence_keeps_its_end(void **state) {
	(void)state;
	char line[1024], why[501];
	memset(why, 'w', sizeof why - 1);
	why[sizeof why - 1] = '\0';
	assert_int_equal(FORMAT(line, "e", LOG_TEXT("why", why)), strlen("e why=") + strlen(why));
}

static void a_lock_id_is_never_shown_whole(void **state) {
	(void)state;
	char line[256];
	const struct id128 id = { { 0xde, 0xad, 0xbe, 0xef, 0x11, 0x22 } };
	FORMAT(line, "e", LOG_LOCK("lock_id", &id), LOG_NODE("node", &id));
	assert_string_equal(line, "e lock_id=deadbeef... node=deadbeef112200000000000000000000");
}

/* Returns a line behind its time. */
static const char *json_of(char *out, size_t size, uint64_t suppressed,
	const struct log_field *fields) {
	static const char time[] = "{\"ts\":\"2026-11-23T12:00:00.000Z\",";
	struct log_text t = { out, size, 0 };
	log_json(&t, LEVEL_WARNING, "e", fields, suppressed);
	out[t.used] = '\0';
	assert_true(t.used > strlen(time) && t.used < size);
	return out + strlen(time);
}

static void a_line_is_an_object_of_json(void **state) {
	(void)state;
	char line[512];
	const struct id128 id = { { 0xde, 0xad, 0xbe, 0xef, 0x11 } };
	const struct log_field fields[] = { LOG_TEXT("why", "a \"b\"\n"), LOG_NUMBER("boot", 7),
		LOG_SPAN("after", 1500 * SPAN_MS), LOG_BYTES("key", slice_of("\xff\x00", 2)),
		LOG_LOCK("lock_id", &id), LOG_KNOWN("uid", -1), { .kind = LOG_KIND_END } };
	assert_string_equal(json_of(line, sizeof line, 3, fields),
		"\"level\":\"warning\",\"event\":\"e\",\"suppressed\":3,"
		"\"why\":\"a \\\"b\\\"\\u000a\",\"boot\":7,\"after\":\"1.5s\","
		"\"key_hex\":\"ff00\",\"lock_id\":\"deadbeef...\"}");
}

static void an_object_that_is_cut_is_still_an_object(void **state) {
	(void)state;
	char line[512], key[600];
	memset(key, 'k', sizeof key);
	/* A character of two bytes stands where the value is cut. */
	memcpy(key + 255, "\xc3\xa9", 2);
	const struct log_field fields[] = { LOG_BYTES("key", slice_of(key, sizeof key)),
		LOG_BYTES("more", slice_of(key, sizeof key)), LOG_NUMBER("n", 1),
		{ .kind = LOG_KIND_END } };
	const char *said = json_of(line, sizeof line, 0, fields);
	assert_non_null(strstr(said, "kk...\",\"n\":1,\"truncated\":true}"));
	assert_null(strstr(said, "more"));
}

static void levels_below_the_wanted_one_are_not_written(void **state) {
	(void)state;
	assert_true(log_wanted(LEVEL_INFO));
	assert_false(log_wanted(LEVEL_DEBUG));
	log_level_set(LEVEL_ERROR);
	assert_false(log_wanted(LEVEL_WARNING));
	log_level_set(LEVEL_INFO);
}

static void a_flood_of_one_event_is_counted_not_written(void **state) {
	(void)state;
	static struct log_limit limit;
	static const char flood[] = "flood", rare[] = "rare";
	uint64_t suppressed;
	for (int i = 0; i < LOG_LIMIT_LINES + 7; i++) {
		assert_int_equal(log_limit_pass(&limit, flood, LOG_LIMIT_LINES, 1, &suppressed),
			i < LOG_LIMIT_LINES);
	}
	assert_true(log_limit_pass(&limit, rare, 1, 1, &suppressed));
	assert_true(log_limit_pass(&limit, flood, LOG_LIMIT_LINES, 2, &suppressed));
	assert_int_equal(suppressed, 7);
	assert_true(log_limit_pass(&limit, flood, LOG_LIMIT_LINES, 2, &suppressed));
	assert_int_equal(suppressed, 0);
}

UNIT(log) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_is_an_event_and_its_fields),
		cmocka_unit_test(values_that_could_be_mistaken_are_quoted),
		cmocka_unit_test(a_key_cannot_forge_a_line),
		cmocka_unit_test(long_values_are_cut_and_say_so),
		cmocka_unit_test(a_sentence_keeps_its_end),
		cmocka_unit_test(a_lock_id_is_never_shown_whole),
		cmocka_unit_test(a_line_is_an_object_of_json),
		cmocka_unit_test(an_object_that_is_cut_is_still_an_object),
		cmocka_unit_test(a_flood_of_one_event_is_counted_not_written),
		cmocka_unit_test(levels_below_the_wanted_one_are_not_written),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
