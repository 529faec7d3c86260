/* Hashes, pseudo-random numbers and durations. */
#include "unit.h"

#include "clock.h"
#include "prng.h"
#include "siphash.h"

/* SipHash-2-4 of 00, 00 01, 00 01 02, ... under the key 00 01 .. 0f. These are the vectors of the
 * reference implementation. */
static const uint64_t siphash_vectors[64] = {
	0x726fdb47dd0e0e31, 0x74f839c593dc67fd, 0x0d6c8009d9a94f5a, 0x85676696d7fb7e2d,
	0xcf2794e0277187b7, 0x18765564cd99a68d, 0xcbc9466e58fee3ce, 0xab0200f58b01d137,
	0x93f5f5799a932462, 0x9e0082df0ba9e4b0, 0x7a5dbbc594ddb9f3, 0xf4b32f46226bada7,
	0x751e8fbc860ee5fb, 0x14ea5627c0843d90, 0xf723ca908e7af2ee, 0xa129ca6149be45e5,
	0x3f2acc7f57c29bdb, 0x699ae9f52cbe4794, 0x4bc1b3f0968dd39c, 0xbb6dc91da77961bd,
	0xbed65cf21aa2ee98, 0xd0f2cbb02e3b67c7, 0x93536795e3a33e88, 0xa80c038ccd5ccec8,
	0xb8ad50c6f649af94, 0xbce192de8a85b8ea, 0x17d835b85bbb15f3, 0x2f2e6163076bcfad,
	0xde4daaaca71dc9a5, 0xa6a2506687956571, 0xad87a3535c49ef28, 0x32d892fad841c342,
	0x7127512f72f27cce, 0xa7f32346f95978e3, 0x12e0b01abb051238, 0x15e034d40fa197ae,
	0x314dffbe0815a3b4, 0x027990f029623981, 0xcadcd4e59ef40c4d, 0x9abfd8766a33735c,
	0x0e3ea96b5304a7d0, 0xad0c42d6fc585992, 0x187306c89bc215a9, 0xd4a60abcf3792b95,
	0xf935451de4f21df2, 0xa9538f0419755787, 0xdb9acddff56ca510, 0xd06c98cd5c0975eb,
	0xe612a3cb9ecba951, 0xc766e62cfcadaf96, 0xee64435a9752fe72, 0xa192d576b245165a,
	0x0a8787bf8ecb74b2, 0x81b3e73d20b49b6f, 0x7fa8220ba3b2ecea, 0x245731c13ca42499,
	0xb78dbfaf3a8d83bd, 0xea1ad565322a1a0b, 0x60e61c23a3795013, 0x6606d7e446282b93,
	0x6ca4ecb15c5f91e1, 0x9f626da15c9625f3, 0xe51b38608ef25f57, 0x958a324ceb064572,
};

static void siphash_gives_the_reference_vectors(void **state) {
	(void)state;
	struct siphash_key key = { UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908) };
	uint8_t in[65];
	for (unsigned i = 0; i < sizeof(in); i++) {
		in[i] = (uint8_t)i;
	}
	for (size_t size = 0; size < 64; size++) {
		assert_true(siphash(key, in, size) == siphash_vectors[size]);
	}
	/* The same bytes one further on are not aligned. */
	uint8_t shifted[65];
	for (unsigned i = 0; i < 64; i++) {
		shifted[i + 1] = in[i];
	}
	assert_true(siphash(key, shifted + 1, 63) == siphash_vectors[63]);
}

/* This is Python's hash of these bytes with PYTHONHASHSEED=0: SipHash-1-3 under a key of zeros. */
static void siphash_short_is_siphash_1_3(void **state) {
	(void)state;
	static const struct {
		size_t size;
		uint64_t hash;
	} known[] = { { 1, 0x68a914128e01e473 }, { 7, 0x2f098ab0c751325a },
		{ 8, 0xead411e67ebe2eea }, { 9, 0x75927f9d95124362 },
		{ 15, 0xf30eb725bb91c9ea }, { 16, 0x8972188433a5c5b7 },
			{ 63, 0x385d3e39e5f37359 } };
	uint8_t in[64];
	for (unsigned i = 0; i < sizeof in; i++) {
		in[i] = (uint8_t)i;
	}
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		assert_true(siphash_short((struct siphash_key){ 0, 0 }, in,
			known[i].size) == known[i].hash);
	}
}

static void siphash_of_prefixes_is_that_of_each_prefix_alone(void **state) {
	(void)state;
	struct siphash_key key = { 1, 2 };
	uint8_t in[600];
	for (unsigned i = 0; i < sizeof in; i++) {
		in[i] = (uint8_t)(i * 7);
	}
	for (size_t step = 1; step < 40; step++) {
		struct siphash_prefixes prefixes;
		siphash_prefixes_begin(&prefixes, key);
		for (size_t size = 0; size <= sizeof in; size += step) {
			uint64_t hash = siphash_prefixes_next(&prefixes, in, size);
			assert_true(hash == siphash_short(key, in, size));
			assert_true(hash == siphash_prefixes_next(&prefixes, in, size));
		}
	}
}

static void siphash_depends_on_the_key(void **state) {
	(void)state;
	struct siphash_key a = { 1, 2 }, b = { 1, 3 };
	assert_true(siphash(a, "x", 1) != siphash(b, "x", 1));
	assert_true(siphash_short(a, "x", 1) != siphash_short(b, "x", 1));
}

static void prng_follows_the_published_sequence(void **state) {
	(void)state;
	struct prng p = { { 1, 2, 3, 4 } };
	assert_true(prng_next(&p) == 11520);
	assert_true(prng_next(&p) == 0);
	assert_true(prng_next(&p) == UINT64_C(1509978240));
	assert_true(prng_next(&p) == UINT64_C(1215971899390074240));
	prng_init(&p, 0);
	/* This is splitmix64's first number from 0. */
	assert_true(p.s[0] == UINT64_C(0xe220a8397b1dcdaf));
}

static void prng_keeps_to_its_bounds_and_reaches_them(void **state) {
	(void)state;
	struct prng p;
	prng_init(&p, 7);
	unsigned seen[6] = { 0 };
	for (int i = 0; i < 6000; i++) {
		uint64_t r = prng_below(&p, 6);
		assert_true(r < 6);
		seen[r]++;
	}
	for (int i = 0; i < 6; i++) {
		assert_in_range(seen[i], 800, 1200);
	}
	bool low = false, high = false;
	for (int i = 0; i < 200; i++) {
		int64_t r = prng_between(&p, -2, 2);
		assert_true(r >= -2 && r <= 2);
		low = low || r == -2;
		high = high || r == 2;
	}
	assert_true(low && high);
	assert_true(prng_between(&p, 5, 5) == 5);
	prng_between(&p, INT64_MIN, INT64_MAX);
	assert_true(prng_below(&p, 1) == 0);
	assert_true(prng_chance(&p, 3, 3));
	assert_false(prng_chance(&p, 0, 3));
}

static void instants_saturate_instead_of_wrapping(void **state) {
	(void)state;
	struct instant t = { INT64_MAX - 5, 10 };
	struct instant end = instant_add(t, 10);
	assert_true(end.boot == INT64_MAX && end.raw == 20);
	end = instant_add((struct instant){ INT64_MIN + 5, 10 }, -10);
	assert_true(end.boot == INT64_MIN && end.raw == 0);
	assert_true(instant_left_long((struct instant){ 5, 5 }, INSTANT_FOREVER) == INT64_MAX - 5);
	assert_true(instant_add(INSTANT_FOREVER, SPAN_MAX).boot == INT64_MAX);
}

static void trust_ends_with_the_first_clock_and_expiry_with_the_last(void **state) {
	(void)state;
	struct instant end = { 100, 100 }, boot_only = { 100, 99 }, both = { 100, 100 },
		none = { 99, 99 };
	assert_true(instant_distrusted(boot_only, end) && !instant_expired(boot_only, end));
	assert_true(instant_distrusted(both, end) && instant_expired(both, end));
	assert_false(instant_distrusted(none, end));
	struct instant now = { 90, 70 };
	assert_true(instant_left_long(now, end) == 30 && instant_left_short(now, end) == 10);
	assert_true(instant_left_long((struct instant){ 200, 200 }, end) == 0);
	assert_true(instant_elapsed_long(end, now) == 30 && instant_elapsed_short(end, now) == 10);
	struct instant later = instant_later((struct instant){ 1, 9 }, (struct instant){ 2, 8 });
	assert_true(later.boot == 2 && later.raw == 9);
}

static void drift_rounds_against_the_one_who_trusts(void **state) {
	(void)state;
	assert_true(span_shrink(1000000, 10000) == 990000);
	assert_true(span_grow(1000000, 10000) == 1010000);
	/* The exact value is 98.01. */
	assert_true(span_shrink(99, 10000) == 98);
	/* The exact value is 99.99. */
	assert_true(span_grow(99, 10000) == 100);
	assert_true(span_shrink(1, 1) == 0 && span_grow(1, 1) == 2);
	assert_true(span_shrink(0, 10000) == 0 && span_grow(0, 10000) == 0);
	assert_true(span_shrink(5, 0) == 5 && span_grow(5, 0) == 5);
	assert_true(span_shrink(12345, 1000000) == 0 && span_grow(12345, 1000000) == 24690);
	assert_true(span_grow(SPAN_MAX, 1000000) == SPAN_MAX);
	assert_true(span_shrink(SPAN_MAX, 1000000) == 0);
	assert_true(span_grow(SPAN_MAX - 1, 1) == SPAN_MAX);
	const span_ns spans[] = { 0, 1, 5, 98, 99, 1000, 59300 * SPAN_MS, 366LL * 86400 * SPAN_S };
	for (size_t i = 0; i < sizeof spans / sizeof *spans; i++) {
		const span_ns least = span_cover(spans[i], 10000);
		assert_true(span_shrink(least, 10000) >= spans[i]);
		assert_true(least == 0 || span_shrink(least - 1, 10000) < spans[i]);
	}
	assert_true(span_cover(5, 0) == 5 && span_cover(SPAN_MAX, 100000) == SPAN_MAX);
}

UNIT(base_numbers) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_gives_the_reference_vectors),
		cmocka_unit_test(siphash_short_is_siphash_1_3),
			cmocka_unit_test(siphash_of_prefixes_is_that_of_each_prefix_alone),
		cmocka_unit_test(siphash_depends_on_the_key),
		cmocka_unit_test(prng_follows_the_published_sequence),
		cmocka_unit_test(prng_keeps_to_its_bounds_and_reaches_them),
		cmocka_unit_test(instants_saturate_instead_of_wrapping),
		cmocka_unit_test(trust_ends_with_the_first_clock_and_expiry_with_the_last),
		cmocka_unit_test(drift_rounds_against_the_one_who_trusts),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
