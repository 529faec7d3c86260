/* Answers to lists that come in several pieces. */
#include "unit.h"

#include "client_pieces.h"
#include "wire_answer.h"

/* A list that comes in several pieces is the same, byte by byte, as in one. */
static void a_list_may_be_put_together_from_pieces(void **state) {
	struct response_test *t = *state;
	static struct core_entry entries[300];
	for (size_t i = 0; i < 300; i++) {
		entries[i] = random_entry(t);
	}
	struct core_reply r = { .op = CORE_LIST, .entries = entries, .count = 300, .more = true };
	struct client_list list = { 0 };
	struct buffer whole, pieces;
	buffer_init(&whole, &t->alloc, client_response_limits.bytes);
	buffer_init(&pieces, &t->alloc, client_response_limits.bytes);
	buffer_init(&list.items, &t->alloc, client_response_limits.bytes);
	assert_int_equal(client_reply_encode(7, &r, &t->context, &whole), 0);
	for (size_t done = 0; done < 300; done += r.count) {
		r.entries = entries + done;
		r.count = 1 + prng_below(&t->prng, 300 - done);
		assert_int_equal(client_list_add(&list, &r), 0);
	}
	assert_int_equal(client_list_encode(7, &list, &r, &t->context, &pieces), 0);
	assert_true(slice_equal(buffer_slice(&whole), buffer_slice(&pieces)));
	buffer_done(&whole);
	buffer_done(&pieces);
	buffer_done(&list.items);
}

static void a_list_that_is_too_large_is_cut_short_whatever_its_pieces(void **state) {
	struct response_test *t = *state;
	struct core_entry entry = random_entry(t);
	struct core_reply r = { .op = CORE_LIST, .entries = &entry, .count = 1, .goes_on = true };
	struct client_list list = { 0 };
	buffer_init(&list.items, &t->alloc, client_response_limits.bytes);
	entry.value = wire_bytes(&t->prng, 60000, 60000);
	for (int i = 0; i < 500; i++) {
		assert_int_equal(client_list_add(&list, &r), 0);
	}
	assert_int_equal(client_list_encode(5, &list, &r, &t->context, &t->bytes), 0);
	assert_int_equal(receive(t, CLIENT_LIST), 0);
	assert_true(t->got.more && t->got.count == list.count && t->got.count > 200 &&
		t->got.count < 500);
	assert_true(t->bytes.size <= client_response_limits.bytes);
	buffer_done(&list.items);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

UNIT(wire_list) {
	const struct CMUnitTest tests[] = {
		TEST(a_list_may_be_put_together_from_pieces),
		TEST(a_list_that_is_too_large_is_cut_short_whatever_its_pieces),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
