/* These tests are about deadlocks between clients: which facts contain one, and which ring is
 * told. */
#include "unit.h"

#include "deadlock_facts.h"
#include "prng.h"
#include "reduce.h"

/* So many random systems are tried: fewer with a sanitizer, which makes each of them far slower. */
#ifdef SANITIZED
#define RUNS 10000
#else
#define RUNS 100000
#endif

static struct allocator libc;

static void hold(struct facts *f, uint32_t party, uint32_t key, uint16_t of, uint16_t count) {
	const struct hold_fact fact = holds(party, key, of, count);
	facts_hold(f, &fact);
}

static void wait_as(struct facts *f, uint32_t party, uint32_t key, uint16_t of, uint16_t count,
	uint64_t request) {
	const struct wait_fact fact = waits(party, key, of, count, request);
	facts_wait(f, &fact, 0);
}

static void hold_alone(struct facts *f, uint32_t party, uint32_t key) {
	hold(f, party, key, MODE_EXCLUSIVE, 0);
}

static void wait_alone(struct facts *f, uint32_t party, uint32_t key) {
	wait_as(f, party, key, MODE_EXCLUSIVE, 0, party + 1);
}

static int set_up(void **state) {
	libc = alloc_libc(NULL);
	*state = facts_new(&libc, hash_key);
	return *state == NULL;
}

static int tear_down(void **state) {
	facts_free(*state);
	return 0;
}

/* Party i holds key i and waits for the next one. */
static void make_ring(struct facts *f, uint32_t count) {
	for (uint32_t i = 0; i < count; i++) {
		hold_alone(f, i, i);
		wait_alone(f, i, (i + 1) % count);
	}
}

static void rings_of_2_to_10_are_found_from_the_youngest_on(void **state) {
	(void)state;
	for (uint32_t count = 2; count <= 10; count++) {
		struct facts *f = facts_new(&libc, hash_key);
		struct deadlock d;
		make_ring(f, count);
		assert_true(deadlock_find(f, &d));
		assert_int_equal(d.party_count, count);
		assert_int_equal(d.count, count);
		assert_int_equal(d.told, count);
		for (uint32_t i = 0; i < count; i++) {
			/* The last party waits with the greatest number. */
			assert_int_equal(f->waits[d.ring[i]].request, (count - 1 + i) % count + 1);
		}
		facts_free(f);
	}
}

static void a_long_ring_is_told_in_part(void **state) {
	struct deadlock d;
	make_ring(*state, 40);
	assert_true(deadlock_find(*state, &d));
	assert_int_equal(d.count, 40);
	assert_int_equal(d.told, RING_MEMBERS_MAX);
}

static void who_waits_for_a_ring_is_not_in_it(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	make_ring(f, 2);
	hold_alone(f, 7, 7);
	wait_alone(f, 7, 0);
	wait_alone(f, 8, 7);
	assert_true(deadlock_find(f, &d));
	assert_int_equal(d.party_count, 2);
	assert_int_equal(f->waits[d.ring[0]].request, 2);
}

static void a_convoy_is_no_deadlock(void **state) {
	struct deadlock d;
	hold_alone(*state, 0, 0);
	for (uint32_t i = 1; i < 200; i++) {
		wait_alone(*state, i, 0);
	}
	assert_false(deadlock_find(*state, &d));
}

static void a_holder_who_waits_for_nothing_will_release(void **state) {
	struct deadlock d;
	hold_alone(*state, 0, 0);
	hold_alone(*state, 1, 1);
	wait_alone(*state, 1, 0);
	assert_false(deadlock_find(*state, &d));
}

static void a_party_does_not_wait_for_itself(void **state) {
	struct deadlock d;
	hold_alone(*state, 0, 0);
	wait_alone(*state, 0, 0);
	assert_false(deadlock_find(*state, &d));
}

static void a_party_with_another_request_that_can_be_served_is_free(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	make_ring(f, 2);
	wait_as(f, 0, 5, MODE_EXCLUSIVE, 0, 99);
	assert_false(deadlock_find(f, &d));
}

static void a_request_for_several_keys_needs_all_of_them(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	make_ring(f, 2);
	/* The same request also lacks a key that is free. */
	wait_as(f, 0, 5, MODE_EXCLUSIVE, 0, 1);
	assert_true(deadlock_find(f, &d));
}

static void a_free_request_frees_its_party(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	make_ring(f, 2);
	struct wait_fact more = waits(0, 1, MODE_EXCLUSIVE, 0, 99);
	more.free = true;
	facts_wait(f, &more, 0);
	assert_false(deadlock_find(f, &d));
}

static void readers_do_not_wait_for_readers(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	hold(f, 0, 0, MODE_SHARED, 0);
	hold(f, 1, 1, MODE_SHARED, 0);
	wait_as(f, 0, 1, MODE_SHARED, 0, 1);
	wait_as(f, 1, 0, MODE_SHARED, 0, 2);
	assert_false(deadlock_find(f, &d));
}

static void writers_wait_for_all_readers(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	/* Both read, and both want to write. */
	hold(f, 0, 0, MODE_SHARED, 0);
	hold(f, 1, 0, MODE_SHARED, 0);
	wait_alone(f, 0, 0);
	wait_alone(f, 1, 0);
	assert_true(deadlock_find(f, &d));
	assert_int_equal(d.count, 2);
}

static void permits_that_will_come_free_are_enough(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	/* A cycle of two, but the second permit of k0 is held by one who waits for nothing. */
	hold(f, 0, 0, 2, 1);
	hold(f, 2, 0, 2, 1);
	hold_alone(f, 1, 1);
	wait_alone(f, 0, 1);
	wait_as(f, 1, 0, 2, 1, 2);
	assert_false(deadlock_find(f, &d));
	/* It waits for the ring, too. */
	wait_alone(f, 2, 1);
	assert_true(deadlock_find(f, &d));
	assert_int_equal(d.party_count, 3);
}

static void too_many_permits_wait_for_any_holder(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	hold(f, 0, 0, 3, 1);
	hold_alone(f, 1, 1);
	wait_alone(f, 0, 1);
	wait_as(f, 1, 0, 3, 2, 2);
	assert_false(deadlock_find(f, &d));
	hold(f, 1, 2, MODE_EXCLUSIVE, 0);
	wait_as(f, 0, 2, MODE_EXCLUSIVE, 0, 1);
	hold(f, 2, 0, 3, 1);
	wait_alone(f, 2, 1);
	assert_true(deadlock_find(f, &d));
}

static void a_lock_of_two_parties_has_no_known_holder(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	make_ring(f, 2);
	struct hold_fact again = holds(0, 0, MODE_EXCLUSIVE, 0);
	facts_hold(f, &again);
	assert_int_equal(f->hold_count, 2);
	assert_true(deadlock_find(f, &d));
	again.party = id_of('p', 9);
	facts_hold(f, &again);
	assert_false(deadlock_find(f, &d));
}

static void what_does_not_fit_is_no_deadlock(void **state) {
	struct facts *f = *state;
	struct deadlock d;
	make_ring(f, 2);
	for (uint32_t i = 0; i < FACTS_MAX; i++) {
		wait_as(f, 2, 0, MODE_EXCLUSIVE, 0, 100 + i);
	}
	assert_true(f->cut);
	assert_false(deadlock_find(f, &d));
}

/* ---- random systems ---- */

/* Says the same as deadlock_find, from the definition alone: could this party proceed if all
 * parties of the set are still there? */
static bool could_proceed(const struct facts *f, uint32_t set, uint32_t party) {
	bool waits_at_all = false, served_any = false;
	for (uint32_t i = 0; i < f->wait_count; i++) {
		const struct fact_wait *w = &f->waits[i];
		uint32_t permits = w->count;
		bool served = true;
		if (w->party != party) {
			continue;
		}
		waits_at_all = true;
		for (uint32_t h = 0; h < f->hold_count; h++) {
			const struct fact_hold *o = &f->holds[h];
			if (o->key != w->key || o->party == party || !(set >> o->party & 1)) {
				continue;
			}
			bool same = terms_of_numbers(w->of) && o->of == w->of;
			permits += same ? o->count : 0;
			served = served && (same || (o->of == MODE_SHARED && w->of == MODE_SHARED));
		}
		served = served && (!terms_of_numbers(w->of) || permits <= w->of);
		served_any = served_any || served;
	}
	return !waits_at_all || served_any;
}

/* Tries every order in which the parties can proceed. Returns the set of those that never can. */
static uint32_t never(const struct facts *f, uint32_t set, bool seen[]) {
	uint32_t stuck = set;
	if (seen[set]) {
		return set;
	}
	seen[set] = true;
	for (uint32_t p = 0; p < f->party_count; p++) {
		if ((set >> p & 1) && could_proceed(f, set, p)) {
			stuck &= never(f, set & ~(1u << p), seen);
		}
	}
	return stuck;
}

static uint16_t random_mode(struct prng *prng) {
	static const uint16_t modes[] = { MODE_EXCLUSIVE, MODE_EXCLUSIVE, MODE_SHARED, 2, 3 };
	return modes[prng_below(prng, 5)];
}

/* Each key has one mode in which it is held, so that the locks do not exclude each other. */
static void random_locks(struct facts *f, struct prng *prng, uint32_t keys, uint32_t parties) {
	for (uint32_t k = 0; k < keys; k++) {
		uint16_t of = random_mode(prng);
		uint32_t left = of == MODE_EXCLUSIVE ? 1 : of == MODE_SHARED ? 3 : of;
		for (uint32_t p = 0; p < parties && left > 0; p++) {
			if (prng_chance(prng, 1, 2)) {
				uint16_t count = (uint16_t)(terms_of_numbers(of)
						? 1 + prng_below(prng, left) : 0);
				hold(f, p, k, of, count);
				left -= count ? count : 1;
			}
		}
	}
}

static void random_wait(struct facts *f, struct prng *prng, uint32_t party, uint32_t keys,
	uint64_t request) {
	uint16_t of = random_mode(prng);
	wait_as(f, party, (uint32_t)prng_below(prng, keys), of,
		(uint16_t)(terms_of_numbers(of) ? 1 + prng_below(prng, of) : 0), request);
}

/* Each member waits for a key of the next one. */
static void check_ring(const struct facts *f, const struct deadlock *d, uint32_t stuck) {
	assert_in_range(d->count, 2, d->party_count);
	for (uint32_t i = 0; i < d->told; i++) {
		const struct fact_wait *w = &f->waits[d->ring[i]],
				       *next = &f->waits[d->ring[(i + 1) % d->told]];
		bool held = false;
		for (uint32_t h = 0; h < f->hold_count; h++) {
			held = held || (f->holds[h].key == w->key
				&& f->holds[h].party == next->party);
		}
		assert_true(held);
		assert_true(stuck >> w->party & 1);
		assert_true(w->party != next->party);
	}
}

static void random_systems_are_judged_as_by_the_definition(void **state) {
	(void)state;
	struct prng prng;
	uint32_t found = 0, knots = 0;
	prng_init(&prng, 1);
	for (uint32_t run = 0; run < RUNS; run++) {
		struct facts *f = facts_new(&libc, hash_key);
		uint32_t parties = 2 + (uint32_t)prng_below(&prng, 5),
			 keys = 1 + (uint32_t)prng_below(&prng, 5);
		random_locks(f, &prng, keys, parties);
		for (uint32_t p = 0; p < parties; p++) {
			uint32_t requests = (uint32_t)prng_below(&prng, 4);
			for (uint32_t i = 0; i < (requests == 3 ? 2 : requests > 0); i++) {
				random_wait(f, &prng, p, keys, p * 8 + i);
			}
		}
		struct deadlock d;
		bool seen[256] = { false };
		uint32_t stuck = f->party_count ? never(f, (1u << f->party_count) - 1, seen) : 0;
		assert_int_equal(deadlock_find(f, &d), stuck != 0);
		if (stuck) {
			check_ring(f, &d, stuck);
			found++;
			knots += d.party_count > d.count;
		}
		facts_free(f);
	}
	/* The runs are worth something. */
	assert_in_range(found, RUNS / 100, RUNS / 2);
	assert_in_range(knots, RUNS / 1000, RUNS);
}

static void converging_waits_without_a_ring_are_never_a_deadlock(void **state) {
	(void)state;
	struct prng prng;
	prng_init(&prng, 2);
	for (uint32_t run = 0; run < RUNS; run++) {
		struct facts *f = facts_new(&libc, hash_key);
		uint32_t parties = 2 + (uint32_t)prng_below(&prng, 11);
		for (uint32_t p = 0; p < parties; p++) {
			/* A key for each party, and one that some read together. */
			hold(f, p, p, random_mode(&prng), 1);
			if (p % 3 == 0) {
				hold(f, p, 60, MODE_SHARED, 0);
			}
			/* Every party waits for keys of earlier ones alone. */
			for (uint32_t n = 0; p > 0 && n < 2; n++) {
				wait_as(f, p, (uint32_t)prng_below(&prng, p), MODE_EXCLUSIVE, 0,
					p * 8 + n);
			}
		}
		struct deadlock d;
		assert_false(deadlock_find(f, &d));
		facts_free(f);
	}
}

#define ON_FACTS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

UNIT(node_deadlock) {
	const struct CMUnitTest tests[] = {
		ON_FACTS(rings_of_2_to_10_are_found_from_the_youngest_on),
		ON_FACTS(a_long_ring_is_told_in_part),
		ON_FACTS(who_waits_for_a_ring_is_not_in_it),
		ON_FACTS(a_convoy_is_no_deadlock),
		ON_FACTS(a_holder_who_waits_for_nothing_will_release),
		ON_FACTS(a_party_does_not_wait_for_itself),
		ON_FACTS(a_party_with_another_request_that_can_be_served_is_free),
		ON_FACTS(a_request_for_several_keys_needs_all_of_them),
		ON_FACTS(a_free_request_frees_its_party),
		ON_FACTS(readers_do_not_wait_for_readers),
		ON_FACTS(writers_wait_for_all_readers),
		ON_FACTS(permits_that_will_come_free_are_enough),
		ON_FACTS(too_many_permits_wait_for_any_holder),
		ON_FACTS(a_lock_of_two_parties_has_no_known_holder),
		ON_FACTS(what_does_not_fit_is_no_deadlock),
		ON_FACTS(random_systems_are_judged_as_by_the_definition),
		ON_FACTS(converging_waits_without_a_ring_are_never_a_deadlock),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
