/* These tests are about the small parts of the client: identities, values, options. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "pawl/pawl.h"
#include "prng.h"
#include "value.h"

static void an_id_survives_being_written(void **state) {
	(void)state;
	struct pawl_id id, back, other;
	char text[PAWL_ID_TEXT];
	assert_int_equal(pawl_id_new(&id), 0);
	assert_int_equal(pawl_id_new(&other), 0);
	assert_memory_not_equal(&id, &other, sizeof(id));
	pawl_id_format(&id, text);
	assert_int_equal(strlen(text), 32);
	assert_int_equal(pawl_id_parse(text, &back), 0);
	assert_memory_equal(&id, &back, sizeof(id));
}

static void text_that_is_no_id_is_refused(void **state) {
	(void)state;
	const char *bad[] = { NULL, "", "00", "0123456789abcdef0123456789abcde",
		"0123456789abcdef0123456789abcdef0", "0123456789abcdef0123456789abcdeg" };
	struct pawl_id id = { { 1 } };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(pawl_id_parse(bad[i], &id), PAWL_EINVAL);
	}
	assert_int_equal(pawl_id_parse("0123456789ABCDEF0123456789abcdef", &id), 0);
	assert_int_equal(id.bytes[7], 0xef);
}

static int value(struct arena *arena, const char *bytes, size_t size, struct pawl_value *out) {
	struct slice in = slice_of(bytes, size);
	int error = value_read(arena, &in, out);
	return error ? error : (in.size == 0 ? 0 : PAWL_EPROTOCOL);
}
#define VALUE(arena, text, out) value(arena, text, sizeof(text) - 1, out)

static void a_value_has_what_was_written(void **state) {
	(void)state;
	struct arena arena;
	struct pawl_value v;
	arena_init(&arena, env_system()->alloc, 1 << 20);
	assert_int_equal(VALUE(&arena, "\x83\xa1" "a\x92\xc0\xc3\xa1" "b\xd1\xff\x00\xc4\x01"
		"c\xcb\x3f\xf8\0\0\0\0\0\0", &v), 0);
	assert_int_equal(v.kind, PAWL_MAP);
	assert_int_equal(v.count, 3);
	const struct pawl_value *a = pawl_value_get(&v, "a"), *b = pawl_value_get(&v, "b"),
		*c = pawl_value_get(&v, "c");
	assert_true(a && a->kind == PAWL_ARRAY && a->count == 2 && a->items[1].boolean);
	assert_true(b && b->kind == PAWL_INT && b->integer == -256);
	assert_true(c && c->kind == PAWL_REAL && c->real > 1.49 && c->real < 1.51);
	assert_null(pawl_value_get(&v, "d"));
	assert_null(pawl_value_get(a, "a"));
	assert_null(pawl_value_get(NULL, "a"));
	assert_int_equal(VALUE(&arena, "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", &v), 0);
	assert_true(v.above);
	assert_int_equal((uint64_t)v.integer, UINT64_MAX);
	assert_int_equal(VALUE(&arena, "\xe0", &v), 0);
	assert_int_equal(v.integer, -32);
	assert_int_equal(VALUE(&arena, "\xd3\x80\0\0\0\0\0\0\0", &v), 0);
	assert_int_equal(v.integer, INT64_MIN);
	assert_int_equal(VALUE(&arena, "\xca\xbf\x80\0\0", &v), 0);
	assert_true(v.real < -0.99 && v.real > -1.01);
	arena_done(&arena);
}

static void announced_sizes_are_not_believed(void **state) {
	(void)state;
	struct arena arena;
	struct pawl_value v;
	arena_init(&arena, env_system()->alloc, 1 << 16);
	assert_int_equal(VALUE(&arena, "\xdd\x00\xff\xff\xff", &v), PAWL_EPROTOCOL);
	assert_int_equal(VALUE(&arena, "\xdf\x10\x00\x00\x00", &v), PAWL_EPROTOCOL);
	assert_int_equal(VALUE(&arena, "\xdb\xff\xff\xff\xff" "abc", &v), PAWL_EPROTOCOL);
	assert_int_equal(VALUE(&arena, "\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\xc0", &v),
		PAWL_EPROTOCOL);
	assert_int_equal(VALUE(&arena, "", &v), PAWL_EPROTOCOL);
	arena_done(&arena);
}

static void random_bytes_are_read_or_refused(void **state) {
	(void)state;
	struct prng p;
	struct arena arena;
	prng_init(&p, 20261121);
	arena_init(&arena, env_system()->alloc, 1 << 20);
	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[64];
		size_t size = (size_t)prng_below(&p, sizeof(bytes));
		for (size_t i = 0; i < size; i++) {
			bytes[i] = (uint8_t)prng_next(&p);
		}
		struct slice in = slice_of(bytes, size);
		struct pawl_value v;
		int error = value_read(&arena, &in, &v);
		assert_true(error == 0 || error == PAWL_EPROTOCOL);
		arena_reset(&arena);
	}
	arena_done(&arena);
}

static void options_that_cannot_be_are_refused_with_a_reason(void **state) {
	(void)state;
	const struct {
		struct pawl_options options;
		int error;
		const char *says;
	} bad[] = {
		{ { .endpoints = NULL }, PAWL_EINVAL, "no endpoint" },
		{ { .endpoints = "nowhere" }, PAWL_EINVAL, "host:port" },
		{ { .endpoints = "tls://a:1" }, PAWL_ETLS, "CA file" },
		{ { .endpoints = "tls://a:1", .ca_file = "/nonexistent" }, PAWL_ETLS,
			"/nonexistent" },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct pawl *client = NULL;
		const char *message = NULL;
		assert_int_equal(pawl_new(&bad[i].options, &client, &message), bad[i].error);
		assert_non_null(message);
		assert_non_null(strstr(message, bad[i].says));
		assert_null(client);
	}
}

static void a_fence_lets_nobody_pass_behind_a_newer_holder(void **state) {
	(void)state;
	uint64_t highest = 0;
	assert_false(pawl_fence_check(&highest, 0));
	assert_true(pawl_fence_check(&highest, 7));
	assert_true(pawl_fence_check(&highest, 7));
	assert_true(pawl_fence_check(&highest, 9));
	assert_false(pawl_fence_check(&highest, 7));
	assert_int_equal(highest, 9);
}

static void the_environment_sets_what_is_not_set(void **state) {
	(void)state;
	struct pawl_options o = { .ca_file = "given" };
	static const char *const names[] = { "PAWL_ENDPOINTS", "PAWL_PREFER_FIRST", "PAWL_CACERT",
		"PAWL_CERT", "PAWL_CERT_KEY", "PAWL_SERVER_NAME" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		unsetenv(names[i]);
	}
	pawl_options_from_env(&o);
	assert_string_equal(o.endpoints, "127.0.0.1:7117");
	assert_string_equal(o.ca_file, "given");
	assert_null(o.cert_file);
	assert_false(o.prefer_first);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		setenv(names[i], names[i], 1);
	}
	o = (struct pawl_options){ .cert_file = "given" };
	pawl_options_from_env(&o);
	assert_string_equal(o.endpoints, "PAWL_ENDPOINTS");
	assert_string_equal(o.ca_file, "PAWL_CACERT");
	assert_string_equal(o.cert_file, "given");
	assert_string_equal(o.key_file, "PAWL_CERT_KEY");
	assert_string_equal(o.server_name, "PAWL_SERVER_NAME");
	assert_true(o.prefer_first);
}

UNIT(client_parts) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_survives_being_written),
		cmocka_unit_test(text_that_is_no_id_is_refused),
		cmocka_unit_test(a_value_has_what_was_written),
		cmocka_unit_test(announced_sizes_are_not_believed),
		cmocka_unit_test(random_bytes_are_read_or_refused),
		cmocka_unit_test(a_fence_lets_nobody_pass_behind_a_newer_holder),
		cmocka_unit_test(options_that_cannot_be_are_refused_with_a_reason),
		cmocka_unit_test(the_environment_sets_what_is_not_set),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
