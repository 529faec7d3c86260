/* These tests are about bounds, bad input, identities and breaking (docs/protocol.md, section
 * 9). */
#include <stdio.h>

#include "named.h"

static const struct id128 no_lock;

/* ---- durations ---- */

static void leases_below_the_least_and_above_the_longest_are_refused(void **state) {
	struct stage *s = *state;
	static const span_ns shorter[] = { 0, -SPAN_S, 1, 99 * SPAN_MS, 100 * SPAN_MS - 1 };
	for (size_t i = 0; i < sizeof shorter / sizeof *shorter; i++) {
		assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), shorter[i], 0)),
			PAWL_EBADREQUEST);
		assert_string_equal(stage_last(s)->r.field, "lease_ms");
	}
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 10 * SPAN_S + 1, 0)),
		PAWL_ETOOLONG);
	assert_int_equal(stage_last(s)->r.limit, 10 * SPAN_S);
	/* The request is refused before anybody is asked. */
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), 0);
}

/* This is rule R5. Whoever coordinates a request may know another max_lease. */
static void a_master_accepts_no_commit_and_no_extension_above_max_lease(void **state) {
	struct stage *s = *state;
	const uint64_t longest = (uint64_t)(s->options.max_lease / SPAN_US),
		token = stage_status(s, 1).clock + 1;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1), .token = token,
		.lease_us = longest + 1, .ballot = { token, 1, 1 } };
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_status(s, 1).held, 0);
	m.lease_us = longest;
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_status(s, 1).held, 1);
	m.kind = MESSAGE_EXTEND;
	m.lease_us = longest + 1;
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_count(s, COUNT_extend_refused_too_long), 1);
}

static void leases_last_as_long_as_they_say_to_the_millisecond(void **state) {
	struct stage *s = *state;
	static const span_ns leases[] = { 100 * SPAN_MS, 999 * SPAN_MS, SPAN_S, 1001 * SPAN_MS,
		1999 * SPAN_MS, 10 * SPAN_S };
	for (uint8_t i = 0; i < sizeof leases / sizeof *leases; i++) {
		struct id128 lock = stage_lock(i), next = stage_lock((uint8_t)(100 + i));
		/* The time is off the clock's round numbers. */
		stage_jump(s, 7 * SPAN_MS);
		assert_int_equal(stage_do(s, 0, stage_acquire("k", lock, leases[i], 0)), PAWL_OK);
		assert_int_equal(stage_last(s)->r.valid, span_shrink(leases[i], 10000));
		stage_wait(s, leases[i] - 3 * SPAN_MS);
		assert_int_equal(stage_do(s, 1, stage_acquire("k", next, LEASE, 0)), PAWL_EHELD);
		stage_wait(s, 6 * SPAN_MS);
		assert_int_equal(stage_do(s, 1, stage_acquire("k", next, LEASE, 0)), PAWL_OK);
		release(s, 1, "k", next);
	}
}

static void a_lease_across_a_bound_of_a_second_is_extended_in_steps(void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(1), 999 * SPAN_MS, 0)),
		PAWL_OK);
	for (int i = 0; i < 12; i++) {
		stage_wait(s, 333 * SPAN_MS);
		assert_int_equal(extend(s, 0, "k", stage_lock(1), 999 * SPAN_MS, false), PAWL_OK);
		assert_int_equal(stage_last(s)->r.valid, span_shrink(999 * SPAN_MS, 10000));
	}
}

/* ---- bad requests change nothing ---- */

static void a_bad_request_names_its_field_and_changes_nothing(void **state) {
	struct stage *s = *state;
	static uint8_t big[VALUE_MAX_HARD + 1];
	struct { struct core_request r; int error; const char *field; } rows[9];
	for (int i = 0; i < 9; i++) {
		rows[i].r = stage_acquire("k", stage_lock(1), LEASE, 0);
		rows[i].error = PAWL_ETOOLARGE;
	}
	memset(big, 'x', sizeof big);
	rows[0].r.key = slice_of(big, KEY_MAX + 1), rows[0].field = "key";
	rows[1].r.key = slice_of(NULL, 0), rows[1].field = "key", rows[1].error = PAWL_EBADREQUEST;
	rows[2].r.owner = slice_of(big, OWNER_MAX + 1), rows[2].field = "owner";
	rows[3].r.value = slice_of(big, VALUE_MAX_DEFAULT + 1), rows[3].field = "value";
	rows[4].r.lock_id = no_lock, rows[4].field = "lock_id", rows[4].error = PAWL_EBADREQUEST;
	rows[5].r.wait = -1, rows[5].field = "wait_ms", rows[5].error = PAWL_EBADREQUEST;
	rows[6].r.token = TOKEN_MAX + 1, rows[6].field = "token", rows[6].error = PAWL_EBADREQUEST;
	rows[7].r.op = CORE_LIST, rows[7].r.limit = 1001, rows[7].field = "limit",
		rows[7].error = PAWL_EBADREQUEST;
	rows[8].r.op = CORE_NONE, rows[8].field = "method", rows[8].error = PAWL_EBADREQUEST;
	for (int i = 0; i < 9; i++) {
		assert_int_equal(stage_do(s, 0, rows[i].r), rows[i].error);
		assert_string_equal(stage_last(s)->r.field, rows[i].field);
	}
	assert_int_equal(stage_status(s, 0).keys, 0);
	assert_int_equal(stage_sent(s, MESSAGE_PROMISE), 0);
	/* The largest request has the most of everything. */
	struct core_request r = stage_acquire("k", stage_lock(1), LEASE, 0);
	r.key = slice_of(big, KEY_MAX);
	r.owner = slice_of(big, OWNER_MAX);
	r.value = slice_of(big, VALUE_MAX_DEFAULT);
	r.identity = slice_of(big, IDENTITY_MAX);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
}

/* ---- limits ---- */

static struct stage *limited(struct core_limits limits) {
	struct stage_options o = named_options();
	o.limits = limits;
	o.limits.released = 64;
	return stage_born(&o);
}

static void at_the_limit_of_keys_the_answer_is_full_and_nothing_granted_suffers(void **state) {
	(void)state;
	struct stage *s = limited((struct core_limits){ .keys = 2 });
	take(s, 0, "a", stage_lock(1));
	take(s, 1, "b", stage_lock(2));
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_do(s, i,
			stage_acquire("c", stage_lock(3), LEASE, i ? WAIT : 0)), PAWL_EFULL);
		assert_string_equal(stage_last(s)->r.field, "keys");
	}
	assert_int_equal(extend(s, 0, "a", stage_lock(1), LEASE, false), PAWL_OK);
	assert_int_equal(extend(s, 2, "b", stage_lock(2), LEASE, true), PAWL_OK);
	release(s, 0, "a", stage_lock(1));
	take(s, 2, "c", stage_lock(4));
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void at_the_limit_of_rounds_the_answer_is_busy_and_nothing_granted_suffers(void **state) {
	(void)state;
	struct stage *s = limited((struct core_limits){ .rounds = 2 });
	take(s, 0, "a", stage_lock(1));
	uint64_t first = wait_for(s, 0, "a", stage_lock(2));
	wait_for(s, 0, "a", stage_lock(3));
	assert_int_equal(stage_do(s, 0, stage_acquire("b", stage_lock(4), LEASE, 0)), PAWL_EBUSY);
	/* Another node has room. */
	take(s, 1, "b", stage_lock(4));
	release(s, 1, "a", stage_lock(1));
	token_of(s, first);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void at_the_limits_of_waiters_the_answer_is_full(void **state) {
	(void)state;
	struct stage *s = limited((struct core_limits){ .waiters_per_client = 2,
		.waiters_per_key = 4 });
	take(s, 0, "k", stage_lock(1));
	uint64_t first = wait_for(s, 0, "k", stage_lock(2));
	uint64_t second = wait_for(s, 0, "k", stage_lock(3));
	assert_int_equal(stage_do(s, 0, stage_acquire("k", stage_lock(4), LEASE, WAIT)),
		PAWL_EFULL);
	assert_string_equal(stage_last(s)->r.field, "waiters_per_client");
	wait_for(s, 1, "k", stage_lock(5));
	wait_for(s, 1, "k", stage_lock(6));
	assert_int_equal(stage_do(s, 2, stage_acquire("k", stage_lock(7), LEASE, WAIT)),
		PAWL_EFULL);
	/* Only the home knows which of its limits was reached. */
	assert_null(stage_last(s)->r.field);
	release(s, 0, "k", stage_lock(1));
	token_of(s, first);
	release(s, 0, "k", stage_lock(2));
	token_of(s, second);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

static void the_ring_of_released_lock_ids_may_lose_its_oldest(void **state) {
	struct stage *s = *state;
	/* The ring of the tombstones has 64 places. */
	for (uint32_t i = 0; i < 200; i++) {
		struct id128 lock = stage_lock((uint8_t)i);
		lock.b[1] = (uint8_t)(i >> 4);
		take(s, i % 3, "k", lock);
		release(s, i % 3, "k", lock);
	}
	assert_true(stage_status(s, 0).memory_bytes < 1000000);
	take(s, 0, "k", stage_lock(7));
}

static void memory_that_runs_out_is_a_refusal_and_nothing_granted_suffers(void **state) {
	(void)state;
	struct stage *s = limited((struct core_limits){ .memory_bytes = 600000 });
	static uint8_t value[VALUE_MAX_DEFAULT];
	uint32_t got = 0, refused = 0;
	for (uint8_t i = 0; i < 20; i++) {
		char key[8];
		snprintf(key, sizeof key, "k%u", i);
		struct core_request r = stage_acquire(key, stage_lock(i), 10 * SPAN_S, 0);
		r.value = slice_of(value, sizeof value);
		uint64_t id = stage_ask(s, i % 3, r);
		stage_wait(s, 400 * SPAN_MS);
		bool had = stage_answer(s, id) && stage_answer(s, id)->r.error == PAWL_OK;
		got += had;
		refused += !had;
	}
	assert_true(got > 0 && refused > 0);
	struct core_request r = stage_request(CORE_EXTEND, "k0", stage_lock(0));
	r.lease = 10 * SPAN_S;
	stage_wait(s, 100 * SPAN_MS);
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	assert_true(stage_status(s, 0).memory_bytes <= 600000);
	stage_free(s);
	assert_int_equal(named_memory.used, 0);
}

/* ---- peers that are wrong ---- */

static void a_clock_beyond_what_can_be_right_is_refused_not_adopted(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t before = stage_status(s, 1).clock, far = before + CLOCK_JUMP_MAX + 1000;
	struct message m = { .kind = MESSAGE_COMMIT, .round = 1 << 16, .name = 1,
		.key = slice_str("x"), .lock_id = stage_lock(5), .token = far, .lease_us = 100000,
		.ballot = { far, 1, 1 } };
	stage_inject(s, 0, 1, &m);
	assert_int_equal(stage_status(s, 1).clock, before);
	assert_true(stage_noted(s, 1, NOTE_CLOCK_REFUSED));
	struct message learn = m;
	learn.kind = MESSAGE_LEARN;
	stage_inject(s, 0, 1, &learn);
	struct message prepare = { .kind = MESSAGE_PREPARE, .round = 1 << 16, .key = slice_str("k"),
		.lock_id = stage_lock(1), .ballot = { far, 1, 1 } };
	stage_inject(s, 0, 1, &prepare);
	assert_int_equal(stage_status(s, 1).clock, before);
	assert_int_equal(stage_status(s, 1).held, 1);
}

static void a_frame_of_another_epoch_changes_nothing(void **state) {
	struct stage *s = *state;
	struct core_status status = stage_status(s, 0);
	struct message m = { .kind = MESSAGE_PROMISE, .round = 1 << 16, .attempt = 1,
		.key = slice_str("k"), .lock_id = stage_lock(1) };
	struct frame frame = { .epoch = status.epoch + 1, .config_hash = status.config_hash,
		.sender = s->nodes[0].disk.node_id, .boot = status.boot, .clock = status.clock + 50,
		.flags = FRAME_VOTING, .messages = &m, .count = 1 };
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = 0, .frame = &frame });
	frame.epoch--;
	frame.config_hash++;
	stage_step(s, 1, &(struct core_event){ .kind = CORE_FRAME, .peer = 0, .frame = &frame });
	assert_int_equal(stage_status(s, 1).promises, 0);
	assert_int_equal(stage_count(s, COUNT_wrong_epoch), 2);
}

/* ---- identities ---- */

static struct core_request as(struct core_request r, const char *identity) {
	r.identity = slice_str(identity);
	return r;
}

static void a_lock_id_is_shown_only_to_the_identity_that_acquired_it_and_to_administrators(
	void **state) {
	struct stage *s = *state;
	assert_int_equal(stage_do(s, 0, as(stage_acquire("k", stage_lock(1), LEASE, 0), "alice")),
		PAWL_OK);
	for (uint32_t quorum = 0; quorum < 2; quorum++) {
		struct core_request r = stage_request(CORE_GET, "k", no_lock);
		r.quorum = quorum;
		assert_int_equal(stage_do(s, 1, as(r, "alice")), PAWL_OK);
		assert_true(stage_last(s)->r.entry.show_lock_id);
		assert_int_equal(stage_do(s, 1, as(r, "bob")), PAWL_OK);
		assert_false(stage_last(s)->r.entry.show_lock_id);
		assert_true(stage_last(s)->r.entry.token > 0);
		r.admin = true;
		assert_int_equal(stage_do(s, 1, as(r, "bob")), PAWL_OK);
		assert_true(stage_last(s)->r.entry.show_lock_id);
	}
}

static void a_repeat_under_another_identity_is_denied(void **state) {
	struct stage *s = *state;
	uint64_t first = stage_ask(s, 0, as(stage_acquire("k", stage_lock(1), LEASE, 0), "alice"));
	uint64_t second = stage_ask(s, 0, as(stage_acquire("k", stage_lock(1), LEASE, 0), "bob"));
	stage_settle(s);
	token_of(s, first);
	assert_int_equal(stage_answer(s, second)->r.error, PAWL_EDENIED);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(stage_do(s, i,
			as(stage_acquire("k", stage_lock(1), LEASE, i ? WAIT : 0), "bob")),
			PAWL_EDENIED);
	}
	assert_int_equal(stage_do(s, 1, as(stage_acquire("k", stage_lock(1), LEASE, 0), "alice")),
		PAWL_OK);
}

/* ---- break ---- */

static void a_break_bars_the_holder_from_extending_and_leaves_it_its_lease(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 2, "k", stage_lock(2));
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.admin = true;
	r.token = token;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	assert_true(stage_last(s)->r.released);
	assert_true(stage_noted(s, 1, NOTE_BROKEN));
	/* The lock is not lost: the rest of its lease is still the holder's. */
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, true), PAWL_EDENIED);
	assert_false(answered(s, waiter));
	stage_wait(s, LEASE + 10 * SPAN_MS);
	token_of(s, waiter);
}

static void a_break_now_frees_the_key_at_once(void **state) {
	struct stage *s = *state;
	take(s, 0, "k", stage_lock(1));
	uint64_t waiter = wait_for(s, 2, "k", stage_lock(2));
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.admin = r.now = true;
	assert_int_equal(stage_do(s, 1, r), PAWL_OK);
	token_of(s, waiter);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_ELOST);
}

static void a_break_of_another_token_finds_nothing(void **state) {
	struct stage *s = *state;
	uint64_t token = take(s, 0, "k", stage_lock(1));
	struct core_request r = stage_request(CORE_BREAK, "k", no_lock);
	r.admin = r.now = true;
	r.token = token + 1;
	assert_int_equal(stage_do(s, 1, r), PAWL_ENOTFOUND);
	assert_int_equal(extend(s, 0, "k", stage_lock(1), LEASE, false), PAWL_OK);
}

/* ---- a step is bounded ---- */

static void one_turn_ends_a_thousand_leases_and_no_more(void **state) {
	struct stage *s = *state;
	char name[16];
	s->options.unchecked = true;
	for (uint32_t i = 0; i < 10000; i++) {
		snprintf(name, sizeof name, "k%u", i);
		struct message m = { .kind = MESSAGE_LEARN, .round = 1, .key = slice_str(name),
			.lock_id = stage_lock(1), .token = i + 1,
			.lease_us = (uint64_t)(LEASE / SPAN_US), .ballot = { i + 1, 1, 1 } };
		memcpy(m.lock_id.b + 8, &i, sizeof i);
		stage_inject(s, 1, 0, &m);
	}
	stage_settle(s);
	assert_int_equal(stage_status(s, 0).held, 10000);
	stage_jump(s, LEASE + SPAN_S / 2);
	uint64_t before = 10000, steps = 0;
	for (; before > 0; steps++) {
		/* A turn has as many steps as there are events. */
		for (int i = 0; i < 3; i++) {
			core_step(s->nodes[0].core, &(struct core_event){ .kind = CORE_TICK },
				stage_clock(s, 0), s->nodes[0].out);
		}
		assert_true(before - stage_status(s, 0).held <= 1024);
		stage_flush(s, 0);
		before = stage_status(s, 0).held;
		assert_true(steps < 100);
	}
	assert_true(steps >= 3);
}

UNIT(cluster_limits) {
	const struct CMUnitTest tests[] = {
		NAMED(leases_below_the_least_and_above_the_longest_are_refused),
		NAMED(a_master_accepts_no_commit_and_no_extension_above_max_lease),
		NAMED(leases_last_as_long_as_they_say_to_the_millisecond),
		NAMED(a_lease_across_a_bound_of_a_second_is_extended_in_steps),
		NAMED(a_bad_request_names_its_field_and_changes_nothing),
		cmocka_unit_test(
			at_the_limit_of_keys_the_answer_is_full_and_nothing_granted_suffers),
		cmocka_unit_test(
			at_the_limit_of_rounds_the_answer_is_busy_and_nothing_granted_suffers),
		cmocka_unit_test(at_the_limits_of_waiters_the_answer_is_full),
		NAMED(the_ring_of_released_lock_ids_may_lose_its_oldest),
		cmocka_unit_test(memory_that_runs_out_is_a_refusal_and_nothing_granted_suffers),
		NAMED(a_clock_beyond_what_can_be_right_is_refused_not_adopted),
		NAMED(a_frame_of_another_epoch_changes_nothing),
		NAMED(
		a_lock_id_is_shown_only_to_the_identity_that_acquired_it_and_to_administrators),
		NAMED(a_repeat_under_another_identity_is_denied),
		NAMED(a_break_bars_the_holder_from_extending_and_leaves_it_its_lease),
		NAMED(a_break_now_frees_the_key_at_once),
		NAMED(a_break_of_another_token_finds_nothing),
		NAMED(one_turn_ends_a_thousand_leases_and_no_more),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
