/* These tests compare the timing wheel with a naive model. */
#include "unit.h"

#include <stdlib.h>

#include "prng.h"
#include "wheel.h"

#define TICK ((int64_t)1 << WHEEL_TICK_BITS)
#define TIMERS 300

struct fixture {
	struct wheel wheel;
	struct wheel_timer timers[TIMERS];
	bool armed[TIMERS];
	int64_t at[TIMERS], armed_at[TIMERS];
	struct prng prng;
	int64_t now;
	size_t fired;
};

static int setup(void **state) {
	struct fixture *f = calloc(1, sizeof(*f));
	assert_non_null(f);
	wheel_init(&f->wheel, 0);
	prng_init(&f->prng, 3);
	*state = f;
	return 0;
}

static int teardown(void **state) {
	free(*state);
	return 0;
}

/* No timer fires before its time, and none that is due is left behind for longer than a tick. */
static void advance(struct fixture *f, int64_t to) {
	int64_t last = f->now;
	f->now = to;
	uint64_t last_tick = 0;
	for (struct wheel_timer *t = wheel_expire(&f->wheel, to); t;
		t = wheel_expire(&f->wheel, to)) {
		size_t i = (size_t)(t - f->timers);
		assert_true(f->armed[i] && !wheel_armed(t));
		assert_true(f->at[i] <= to);
		assert_true(f->at[i] > last - TICK || f->armed_at[i] == last);
		assert_true(t->tick >= last_tick);
		last_tick = t->tick;
		f->armed[i] = false;
		f->fired++;
	}
	for (size_t i = 0; i < TIMERS; i++) {
		assert_int_equal(wheel_armed(&f->timers[i]), f->armed[i]);
		assert_true(!f->armed[i] || f->at[i] > to - TICK);
	}
}

/* The deadline is not later than the first timer needs, which is a tick after its time at most. */
static void check_deadline(const struct fixture *f) {
	int64_t first = INT64_MAX, deadline = wheel_deadline(&f->wheel);
	size_t count = 0;
	for (size_t i = 0; i < TIMERS; i++) {
		if (f->armed[i]) {
			count++;
			first = f->at[i] < first ? f->at[i] : first;
		}
	}
	assert_int_equal(f->wheel.count, count);
	assert_int_equal(deadline == INT64_MAX, count == 0 || first > INT64_MAX - TICK);
	if (deadline != INT64_MAX) {
		assert_true(first <= f->now ? deadline <= f->now + TICK : deadline < first + TICK);
	}
}

static void arm(struct fixture *f, size_t i, int64_t at) {
	f->armed[i] = true;
	f->at[i] = at;
	f->armed_at[i] = f->now;
	wheel_arm(&f->wheel, &f->timers[i], at);
}

/* Returns spans of every size, 2^0 .. 2^bits ns. */
static int64_t some_span(struct fixture *f, uint32_t bits) {
	return (int64_t)(prng_next(&f->prng) >> (63 - prng_below(&f->prng, bits)));
}

static void run_against_model(struct fixture *f, uint32_t bits, int moves) {
	for (int move = 0; move < moves; move++) {
		size_t i = (size_t)prng_below(&f->prng, TIMERS);
		switch (prng_below(&f->prng, 4)) {
		case 0:
		case 1:
			arm(f, i, f->now + some_span(f, bits));
			break;
		case 2:
			wheel_disarm(&f->wheel, &f->timers[i]);
			f->armed[i] = false;
			break;
		case 3:
			if (f->now < INT64_MAX / 2) {
				bool jump = prng_chance(&f->prng, 1, 2) &&
					wheel_deadline(&f->wheel) < INT64_MAX / 2;
				int64_t to = jump ? wheel_deadline(&f->wheel)
					: f->now + some_span(f, bits);
				advance(f, to > f->now ? to : f->now);
			}
			break;
		}
		check_deadline(f);
	}
	assert_true(f->fired > 50);
}

static void a_wheel_fires_what_a_naive_model_fires_within_seconds(void **state) {
	run_against_model(*state, 33, 20000);
}

static void a_wheel_fires_what_a_naive_model_fires_within_years(void **state) {
	run_against_model(*state, 58, 20000);
}

static void a_wheel_fires_what_a_naive_model_fires_beyond_the_last_level(void **state) {
	struct fixture *f = *state;
	for (int64_t start = (int64_t)1 << 60; start < INT64_MAX / 2; start += (int64_t)1 << 60) {
		/* These are times around the ends of what the levels span. */
		f->now = start - 3 * TICK;
		wheel_init(&f->wheel, f->now);
		for (size_t i = 0; i < TIMERS; i++) {
			f->timers[i] = (struct wheel_timer){ 0 };
			f->armed[i] = false;
		}
		run_against_model(f, 61, 2000);
	}
}

static void a_timer_that_never_ends_never_fires(void **state) {
	struct fixture *f = *state;
	arm(f, 0, INT64_MAX);
	assert_true(wheel_deadline(&f->wheel) < INT64_MAX || f->wheel.count == 1);
	for (int64_t now = TICK; now < INT64_MAX / 2; now *= 2) {
		assert_null(wheel_expire(&f->wheel, now));
	}
	assert_null(wheel_expire(&f->wheel, INT64_MAX));
	assert_true(wheel_armed(&f->timers[0]));
}

static void a_time_that_has_passed_fires_at_once(void **state) {
	struct fixture *f = *state;
	advance(f, 10 * TICK + 17);
	arm(f, 0, 10 * TICK + 17);
	arm(f, 1, 5);
	arm(f, 2, -5);
	assert_true(wheel_deadline(&f->wheel) <= f->now);
	advance(f, f->now);
	assert_int_equal(f->fired, 3);
}

static void a_timer_armed_while_others_fire_is_returned_too(void **state) {
	struct fixture *f = *state;
	arm(f, 0, 3 * TICK);
	arm(f, 1, 4 * TICK);
	assert_ptr_equal(wheel_expire(&f->wheel, 10 * TICK), &f->timers[0]);
	wheel_arm(&f->wheel, &f->timers[0], 2 * TICK);
	assert_ptr_equal(wheel_expire(&f->wheel, 10 * TICK), &f->timers[0]);
	wheel_arm(&f->wheel, &f->timers[0], 11 * TICK);
	assert_ptr_equal(wheel_expire(&f->wheel, 10 * TICK), &f->timers[1]);
	assert_null(wheel_expire(&f->wheel, 10 * TICK));
	assert_ptr_equal(wheel_expire(&f->wheel, 11 * TICK), &f->timers[0]);
}

static void arming_again_moves_and_disarming_twice_is_harmless(void **state) {
	struct fixture *f = *state;
	wheel_arm(&f->wheel, &f->timers[0], 5 * TICK);
	wheel_arm(&f->wheel, &f->timers[0], 500 * TICK);
	assert_int_equal(f->wheel.count, 1);
	assert_null(wheel_expire(&f->wheel, 499 * TICK));
	wheel_disarm(&f->wheel, &f->timers[0]);
	wheel_disarm(&f->wheel, &f->timers[0]);
	assert_int_equal(f->wheel.count, 0);
	assert_true(wheel_deadline(&f->wheel) == INT64_MAX);
	assert_null(wheel_expire(&f->wheel, 600 * TICK));
}

static void time_that_goes_backward_changes_nothing(void **state) {
	struct fixture *f = *state;
	advance(f, 100 * TICK);
	arm(f, 0, 101 * TICK);
	assert_null(wheel_expire(&f->wheel, 5 * TICK));
	assert_ptr_equal(wheel_expire(&f->wheel, 101 * TICK), &f->timers[0]);
}

/* No call does more than its budget, whatever a slot holds. What is armed, moved and disarmed
 * meanwhile is where it belongs. */
static void a_slot_with_many_timers_is_emptied_in_pieces(void **state) {
	struct fixture *f = *state;
	for (size_t i = 0; i < TIMERS; i++) {
		arm(f, i, 300 * TICK + (int64_t)i * TICK / 64);
	}
	uint32_t calls = 0, budget;
	do {
		budget = 16;
		assert_null(wheel_expire_some(&f->wheel, 256 * TICK, &budget));
		check_deadline(f);
		assert_true(budget > 0 || wheel_deadline(&f->wheel) <= 256 * TICK);
		/* The timers at the end of the slot have not been placed yet. */
		if (calls == 3) {
			wheel_disarm(&f->wheel, &f->timers[TIMERS - 1]);
			f->armed[TIMERS - 1] = false;
			arm(f, TIMERS - 2, 290 * TICK);
			arm(f, TIMERS - 3, 400000 * TICK);
		}
		calls++;
	} while (budget == 0);
	assert_true(calls >= TIMERS / 16);
	advance(f, 298 * TICK);
	assert_int_equal(f->fired, 1);
	advance(f, 310 * TICK);
	assert_int_equal(f->fired, TIMERS - 2);
	assert_int_equal(f->wheel.count, 1);
}

/* The last one of the timers that are to be placed anew is taken out. */
static void a_timer_that_is_alone_among_those_to_be_placed_is_disarmed(void **state) {
	struct fixture *f = *state;
	arm(f, 0, 300 * TICK);
	arm(f, 1, 300 * TICK);
	uint32_t budget = 1;
	assert_null(wheel_expire_some(&f->wheel, 256 * TICK, &budget));
	wheel_disarm(&f->wheel, &f->timers[1]);
	f->armed[1] = false;
	advance(f, 400 * TICK);
	assert_int_equal(f->fired, 1);
}

static void an_armed_timer_fires_by_any_time_that_is_not_before_its_own(void **state) {
	struct fixture *f = *state;
	assert_false(wheel_fires_by(&f->timers[0], INT64_MAX));
	arm(f, 0, 300 * TICK);
	assert_false(wheel_fires_by(&f->timers[0], 299 * TICK));
	assert_true(wheel_fires_by(&f->timers[0], 300 * TICK));
	assert_true(wheel_fires_by(&f->timers[0], INT64_MAX));
	advance(f, 300 * TICK);
	assert_false(wheel_fires_by(&f->timers[0], 300 * TICK));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

UNIT(base_wheel) {
	const struct CMUnitTest tests[] = {
		TEST(a_wheel_fires_what_a_naive_model_fires_within_seconds),
		TEST(a_wheel_fires_what_a_naive_model_fires_within_years),
		TEST(a_wheel_fires_what_a_naive_model_fires_beyond_the_last_level),
		TEST(a_timer_that_never_ends_never_fires),
		TEST(a_time_that_has_passed_fires_at_once),
		TEST(a_timer_armed_while_others_fire_is_returned_too),
		TEST(arming_again_moves_and_disarming_twice_is_harmless),
		TEST(time_that_goes_backward_changes_nothing),
		TEST(a_slot_with_many_timers_is_emptied_in_pieces),
		TEST(a_timer_that_is_alone_among_those_to_be_placed_is_disarmed),
		TEST(an_armed_timer_fires_by_any_time_that_is_not_before_its_own),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
