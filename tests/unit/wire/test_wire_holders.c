/* These tests are about what answers say of holders, waiters and masters. */
#include "unit.h"

#include "wire_answer.h"

static const struct terms shared = { .of = MODE_SHARED };
static const struct terms three_of_ten = { .of = 10, .count = 3,
	.set = { { 1 << 2 | 1 << 3 | 1 << 9 } } };

static struct core_entry labelled_entry(struct response_test *t, uint8_t bytes[LABEL_MAX]) {
	const struct client_label label = { slice_str("db-1"), slice_str("nightly backup"), 4711,
		true, false };
	struct core_entry e = random_entry(t);
	e.label = slice_of(bytes, client_label_pack(&label, bytes));
	return e;
}

static void an_acquisition_tells_its_mode_and_the_numbers_of_its_permits(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_ACQUIRE, .lock_id = wire_id(&t->prng), .token = 1,
		.valid = SPAN_S };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_int_equal(t->got.mode.mode, CLIENT_EXCLUSIVE);
	assert_false(t->got.present & CLIENT_RESULT_NUMBERS);
	r.terms = shared;
	answer(t, CLIENT_ACQUIRE, &r);
	assert_int_equal(t->got.mode.mode, CLIENT_SHARED);
	assert_false(t->got.present & CLIENT_RESULT_NUMBERS);
	r.terms = three_of_ten;
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(t->got.mode.mode == CLIENT_PERMITS && t->got.mode.permits == 3 &&
		t->got.mode.of == 10);
	assert_int_equal(t->got.mode.numbers.w[0], three_of_ten.set.w[0]);
}

static void an_extension_tells_the_numbers_that_it_is_for(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_EXTEND, .lock_id = wire_id(&t->prng), .token = 1,
		.valid = SPAN_S };
	answer(t, CLIENT_EXTEND, &r);
	assert_false(t->got.present & (CLIENT_RESULT_NUMBERS | CLIENT_RESULT_MODE));
	r.terms = three_of_ten;
	answer(t, CLIENT_EXTEND, &r);
	assert_true(t->got.mode.mode == CLIENT_PERMITS && t->got.mode.permits == 3 &&
		t->got.mode.of == 10);
	assert_int_equal(t->got.mode.numbers.w[0], three_of_ten.set.w[0]);
	struct client_extended item = client_extended_of(&r);
	assert_true(item.mode.mode == CLIENT_PERMITS &&
		item.mode.numbers.w[0] == three_of_ten.set.w[0]);
}

static void several_keys_come_back_each_with_its_own(void **state) {
	struct response_test *t = *state;
	const struct core_lock_got got[2] = {
		{ .key = slice_str("a"), .lock_id = wire_id(&t->prng), .token = 7 },
		{ .key = slice_str("b"), .lock_id = wire_id(&t->prng), .token = 9,
			.terms = three_of_ten },
	};
	struct core_reply r = { .op = CORE_ACQUIRE_ALL, .got = got, .count = 2, .valid = 3 * SPAN_S,
		.waited = 5 * SPAN_MS };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true((t->got.present & CLIENT_RESULT_LIST) && t->got.count == 2);
	assert_true(t->got.valid == 3 * SPAN_S && t->got.waited == 5 * SPAN_MS);
	for (size_t i = 0; i < 2; i++) {
		const struct client_acquired *g = &t->got.acquired[i];
		assert_true(slice_equal(g->key, got[i].key) &&
			id128_equal(g->lock_id, got[i].lock_id) && g->token == got[i].token);
	}
	assert_true(t->got.acquired[0].mode.mode == CLIENT_EXCLUSIVE &&
		t->got.acquired[1].mode.numbers.w[0] == three_of_ten.set.w[0]);
}

static void an_error_of_several_keys_names_the_key(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_ACQUIRE_ALL, .error = PAWL_EHELD,
		.failed_key = slice_str("b"), .held = true, .entry = random_entry(t) };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(t->got.present & CLIENT_RESULT_KEY);
	assert_true(slice_equal(t->got.key, slice_str("b")));
	assert_true(t->got.entry.token == r.entry.token);
}

static void a_holder_says_who_it_is_and_what_it_excludes(void **state) {
	struct response_test *t = *state;
	uint8_t bytes[LABEL_MAX];
	struct core_reply r = { .op = CORE_GET, .held = true, .entry = labelled_entry(t, bytes) };
	answer(t, CLIENT_GET, &r);
	assert_entry(&r.entry, &t->got.entry);
	assert_true(slice_equal(t->got.entry.label.host, slice_str("db-1")) &&
		t->got.entry.label.pid == 4711);
	assert_true(slice_equal(t->got.entry.label.text, slice_str("nightly backup")) &&
		t->got.entry.label.election);
	r.op = CORE_ACQUIRE;
	r.error = PAWL_EHELD;
	answer(t, CLIENT_ACQUIRE, &r);
	assert_int_equal(t->got.entry.label.pid, 4711);
}

/* While only the lock delay runs, nobody holds the key, and it is not free either. */
static void a_key_that_is_closing_is_neither_held_nor_free(void **state) {
	struct response_test *t = *state;
	for (int held = 0; held < 2; held++) {
		struct core_reply r = { .op = CORE_GET, .held = held, .entry = random_entry(t) };
		r.entry.closing = true;
		r.entry.closed_for = 1500 * SPAN_US;
		answer(t, CLIENT_GET, &r);
		assert_true(!t->got.held && t->got.entry.closing &&
			t->got.entry.closing_for == 2 * SPAN_MS);
		assert_false(t->got.entry.present & CLIENT_ENTRY_REMAINING);
		r.op = CORE_ACQUIRE;
		r.error = PAWL_EHELD;
		answer(t, CLIENT_ACQUIRE, &r);
		assert_true(t->got.entry.closing && t->got.entry.closing_for == 2 * SPAN_MS);
	}
}

static void all_holders_are_told_where_there_are_several(void **state) {
	struct response_test *t = *state;
	struct core_entry holders[40];
	for (size_t i = 0; i < 40; i++) {
		holders[i] = random_entry(t);
		holders[i].terms = shared;
	}
	struct core_reply r = { .op = CORE_GET, .held = true, .entry = holders[0],
		.holders = holders, .holder_count = 40 };
	answer(t, CLIENT_GET, &r);
	assert_true(t->got.holder_count == 40 && !t->got.more);
	for (size_t i = 0; i < 40; i++) {
		assert_entry(&holders[i], &t->got.holders[i]);
	}
	r.holder_count = 1;
	answer(t, CLIENT_GET, &r);
	assert_true(t->got.holder_count == 0 && t->got.held);
}

static void an_error_tells_some_of_many_holders(void **state) {
	struct response_test *t = *state;
	struct core_entry holders[40] = { random_entry(t), random_entry(t) };
	struct core_reply r = { .op = CORE_ACQUIRE, .error = PAWL_EHELD, .held = true,
		.entry = holders[0], .holders = holders, .holder_count = 40 };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(t->got.holder_count == 16 && t->got.more &&
		t->got.holders[1].token == holders[1].token);
	r.holder_count = 2;
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(t->got.holder_count == 2 && !t->got.more && t->got.holders[1].value.size == 0);
}

static void a_list_counts_holders(void **state) {
	struct response_test *t = *state;
	struct core_entry entries[2] = { random_entry(t), random_entry(t) };
	entries[0].holders = 3;
	entries[1].closing = true;
	struct core_reply r = { .op = CORE_LIST, .entries = entries, .count = 2 };
	answer(t, CLIENT_LIST, &r);
	assert_true(t->got.entries[0].holders == 3 && !t->got.entries[0].closing &&
		t->got.entries[1].closing);
}

static void waiters_of_many_keys_tell_key_and_terms(void **state) {
	struct response_test *t = *state;
	uint8_t bytes[LABEL_MAX];
	struct core_entry labelled = labelled_entry(t, bytes);
	struct core_waiter waiters[2] = {
		{ .key = slice_str("k"), .owner = slice_str("a"), .terms = { .of = 10,
			.count = 3, .priority = -5 }, .label = labelled.label },
		{ .key = slice_str("l"), .owner = slice_str("b"), .terms = {
			.of = MODE_SHARED, .priority = INT32_MAX }, .identity = slice_str("me") },
	};
	struct core_reply r = { .op = CORE_WAITERS, .waiters = waiters, .count = 2, .more = true };
	answer(t, CLIENT_WAITERS, &r);
	const struct client_waiter *w = t->got.waiters;
	assert_true(t->got.count == 2 && t->got.more);
	assert_true(slice_equal(w[0].key, slice_str("k")) && w[0].priority == -5 &&
		w[0].label.pid == 4711 && w[0].label.election && !w[1].label.election);
	assert_true(w[0].mode.mode == CLIENT_PERMITS && w[0].mode.permits == 3 &&
		permits_count(w[0].mode.numbers) == 0);
	assert_true(w[1].mode.mode == CLIENT_SHARED && w[1].priority == INT32_MAX &&
		slice_equal(w[1].identity, slice_str("me")));
}

static void downgrade_transfer_and_ask_tell_their_part(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_DOWNGRADE };
	answer(t, CLIENT_DOWNGRADE, &r);
	assert_int_equal(t->got.mode.mode, CLIENT_SHARED);
	r = (struct core_reply){ .op = CORE_TRANSFER, .released = true };
	answer(t, CLIENT_TRANSFER, &r);
	assert_true(t->got.released);
	r.error = PAWL_ENOTFOUND;
	answer(t, CLIENT_TRANSFER, &r);
	assert_non_null(memmem(t->got.message.data, t->got.message.size,
		"nothing was released", 20));
	r = (struct core_reply){ .op = CORE_ASK, .reached = 3 };
	answer(t, CLIENT_ASK_RELEASE, &r);
	assert_int_equal(t->got.reached, 3);
}

static void another_mode_is_a_mismatch_without_a_value(void **state) {
	struct response_test *t = *state;
	struct core_reply r = { .op = CORE_ACQUIRE, .error = PAWL_EMISMATCH, .field = "mode" };
	answer(t, CLIENT_ACQUIRE, &r);
	assert_true(slice_equal(t->got.field, slice_str("mode")) &&
		!(t->got.present & CLIENT_RESULT_ENTRY));
}

static void every_master_says_what_it_knows(void **state) {
	struct response_test *t = *state;
	const struct core_reported said[4] = {
		{ .kind = REPORTED_RECORD, .entry = random_entry(t), .barred = true },
		{ .kind = REPORTED_RECORD, .entry = random_entry(t) },
		{ .kind = REPORTED_PROMISE, .entry = { .remaining = 30 * SPAN_MS,
			.lock_id = wire_id(&t->prng), .show_lock_id = true } },
		{ .kind = REPORTED_PARKED },
	};
	const struct core_report masters[3] = {
		{ .peer = 0, .status = STATUS_OK, .home = true, .waiting = 4, .items = said,
			.count = 4 },
		{ .peer = 1, .status = STATUS_OK, .items = said, .count = 1, .more = true },
		{ .peer = 2, .status = STATUS_ABSENT },
	};
	struct core_reply r = { .op = CORE_EXPLAIN, .held = true, .entry = said[1].entry,
		.more = true, .reports = masters, .count = 3 };
	answer(t, CLIENT_EXPLAIN, &r);
	const struct client_report *w = t->got.masters;
	assert_true(t->got.master_count == 3 && t->got.count == 3 && t->got.held &&
		t->got.entry.token == said[1].entry.token);
	assert_true(slice_equal(w[0].node, slice_str("n1")) &&
		slice_equal(w[0].state, slice_str("voting")) && w[0].home);
	assert_true(w[0].waiting == 4 && w[0].parked == 1 && w[0].promised &&
		w[0].promise_left == 30 * SPAN_MS);
	assert_true(id128_equal(w[0].promise_lock_id, said[2].entry.lock_id) && w[0].first == 0 &&
		w[0].count == 2);
	assert_true(t->got.entries[0].barred && !t->got.entries[1].barred &&
		t->got.entries[1].token == said[1].entry.token);
	assert_true(!w[1].home && !w[1].promised && w[1].first == 2 && w[1].count == 1 &&
		w[1].parked == 0);
	assert_true(t->got.more && w[1].more && !w[0].more && !w[2].more);
	assert_true(slice_equal(w[2].state, slice_str("silent")) && w[2].count == 0 &&
		slice_equal(w[2].node, slice_str("n3")));
}

static void a_watch_begins_with_what_is_there(void **state) {
	struct response_test *t = *state;
	const struct client_position position = { UINT64_MAX, 77 };
	const struct core_reply view = { .op = CORE_GET, .held = true, .entry = random_entry(t) };
	assert_int_equal(client_watch_encode(5, 12, position, &view, &t->context, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_WATCH), 0);
	assert_true(t->got.watch == 12 && t->got.position.log == UINT64_MAX &&
		t->got.position.sequence == 77 && t->got.held);
	assert_entry(&view.entry, &t->got.entry);
	buffer_clear(&t->bytes);
	assert_int_equal(client_watch_encode(5, 13, position, NULL, &t->context, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_WATCH), 0);
	assert_true(t->got.watch == 13 &&
		!(t->got.present & (CLIENT_RESULT_HELD | CLIENT_RESULT_ENTRY)));
}

static void what_a_holder_says_about_itself_fits_and_comes_back(void **state) {
	struct response_test *t = *state;
	uint8_t bytes[LABEL_MAX];
	for (int n = 0; n < 1000; n++) {
		const struct client_label said = { wire_bytes(&t->prng, 0, CLIENT_HOST_MAX),
			wire_bytes(&t->prng, 0, CLIENT_LABEL_MAX),
			(uint32_t)wire_number(&t->prng, UINT32_MAX),
			prng_chance(&t->prng, 1, 2), prng_chance(&t->prng, 1, 2) };
		struct client_label got = client_label_unpack(
			slice_of(bytes, client_label_pack(&said, bytes)));
		assert_true(slice_equal(said.host, got.host) && slice_equal(said.text, got.text) &&
			said.pid == got.pid && said.election == got.election &&
			said.without_end == got.without_end);
		/* Any bytes may come. */
		got = client_label_unpack(wire_bytes(&t->prng, 0, LABEL_MAX));
		(void)got;
	}
	const struct client_label nothing = { 0 };
	assert_int_equal(client_label_pack(&nothing, bytes), 0);
	const struct client_label much = { wire_bytes(&t->prng, 200, 200),
		wire_bytes(&t->prng, 300, 300), UINT32_MAX, true, true };
	struct client_label got = client_label_unpack(
		slice_of(bytes, client_label_pack(&much, bytes)));
	assert_true(got.host.size == CLIENT_HOST_MAX && got.text.size == CLIENT_LABEL_MAX &&
		got.pid == UINT32_MAX && got.election && got.without_end);
}

UNIT(wire_holders) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(an_acquisition_tells_its_mode_and_the_numbers_of_its_permits),
		TEST(an_extension_tells_the_numbers_that_it_is_for),
		TEST(several_keys_come_back_each_with_its_own),
		TEST(an_error_of_several_keys_names_the_key),
		TEST(a_holder_says_who_it_is_and_what_it_excludes),
		TEST(a_key_that_is_closing_is_neither_held_nor_free),
		TEST(all_holders_are_told_where_there_are_several),
		TEST(an_error_tells_some_of_many_holders),
		TEST(a_list_counts_holders),
		TEST(waiters_of_many_keys_tell_key_and_terms),
		TEST(downgrade_transfer_and_ask_tell_their_part),
		TEST(another_mode_is_a_mismatch_without_a_value),
		TEST(every_master_says_what_it_knows),
		TEST(a_watch_begins_with_what_is_there),
		TEST(what_a_holder_says_about_itself_fits_and_comes_back),
	};
#undef TEST
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
