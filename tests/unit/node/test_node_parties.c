/* These tests are about parties: which requests and locks are whose, and for how long. */
#include "unit.h"

#include "holdings.h"
#include "pawl/error.h"
#include "requests.h"

static const struct siphash_key hash_key = { 1, 2 };
static const struct id128 none = { { 0 } };

struct world {
	struct alloc_counter counter;
	struct allocator alloc;
	struct requests requests;
	struct holdings holdings;
	struct shares shares;
	struct share_pair share;
};

static int set_up(void **state) {
	static struct world w;
	w = (struct world){ .counter = { 0 } };
	w.alloc = alloc_libc(&w.counter);
	assert_int_equal(shares_init(&w.shares, &w.alloc, hash_key), 0);
	w.share.identity = shares_find(&w.shares, '=', slice_str("me"), 1);
	assert_non_null(w.share.identity);
	assert_int_equal(requests_init(&w.requests, &w.alloc, &w.alloc, hash_key), 0);
	assert_int_equal(holdings_init(&w.holdings, &w.alloc, hash_key, &w.requests.parties), 0);
	*state = &w;
	return 0;
}

static int tear_down(void **state) {
	struct world *w = *state;
	holdings_done(&w->holdings);
	requests_done(&w->requests);
	shares_done(&w->shares);
	assert_int_equal(w->counter.used, 0);
	return 0;
}

static struct request *open_of(struct world *w, uint64_t client, struct id128 party) {
	struct request *request;
	assert_int_equal(requests_open(&w->requests, client, 1, &request), 0);
	requests_of_party(&w->requests, request, party);
	assert_non_null(request->party);
	return request;
}

static void wait_for(struct world *w, struct request *request, const struct core_lock *locks,
	uint32_t count) {
	const struct core_request asked = { .op = CORE_ACQUIRE_ALL, .locks = locks,
		.lock_count = count, .owner = slice_str("me") };
	assert_int_equal(requests_keep_wait(&w->requests, request, &asked, NULL), 0);
}

static void a_request_without_a_party_is_its_connections(void **state) {
	struct world *w = *state;
	const struct request *one = open_of(w, 7, none), *two = open_of(w, 7, none),
			     *other = open_of(w, 8, none);
	assert_ptr_equal(one->party, two->party);
	assert_ptr_not_equal(one->party, other->party);
	assert_false(id128_equal(one->party->id, other->party->id));
	/* Nobody can guess it. */
	uint64_t salt;
	memcpy(&salt, one->party->id.b, sizeof salt);
	assert_true(salt != hash_key.k0 && salt != hash_key.k1 && salt != 0);
}

static void a_party_may_have_several_connections_and_a_connection_several_parties(void **state) {
	struct world *w = *state;
	const struct id128 p = { { 1 } }, q = { { 2 } };
	const struct request *one = open_of(w, 7, p), *two = open_of(w, 8, p),
			     *three = open_of(w, 7, q);
	assert_ptr_equal(one->party, two->party);
	assert_ptr_not_equal(one->party, three->party);
	assert_ptr_equal(parties_find(&w->requests.parties, q), three->party);
}

static void a_party_is_gone_with_the_last_that_is_its(void **state) {
	struct world *w = *state;
	const struct id128 p = { { 1 } };
	struct request *request = open_of(w, 7, p);
	struct holding *held = holdings_adopt(&w->holdings, 5, &w->share, NULL, 0);
	shares_take(&w->share, SHARE_LOCKS, 1);
	holdings_belongs(&w->holdings, held, request->party);
	assert_int_equal(parties_find(&w->requests.parties, p)->holders, 1);
	requests_close(&w->requests, request);
	requests_forget(&w->requests, 7, 10);
	assert_non_null(parties_find(&w->requests.parties, p));
	assert_ptr_equal(parties_at(&w->requests.parties,
			holdings_party(&w->holdings, held)),
		parties_find(&w->requests.parties, p));
	holdings_drop(&w->holdings, held);
	assert_null(parties_find(&w->requests.parties, p));
}

static void a_lock_goes_to_the_party_that_extends_it(void **state) {
	struct world *w = *state;
	const struct request *one = open_of(w, 7, (struct id128){ { 1 } }),
			     *two = open_of(w, 8, (struct id128){ { 2 } });
	struct holding *held = holdings_adopt(&w->holdings, 5, &w->share, NULL, 0);
	assert_int_equal(holdings_party(&w->holdings, held), PARTY_NONE);
	holdings_belongs(&w->holdings, held, one->party);
	holdings_belongs(&w->holdings, held, NULL);
	assert_int_equal(holdings_party(&w->holdings, held), one->party->number);
	holdings_belongs(&w->holdings, held, two->party);
	holdings_belongs(&w->holdings, held, two->party);
	assert_int_equal(one->party->holders, 0);
	assert_int_equal(two->party->holders, 1);
}

static void numbers_are_used_again(void **state) {
	struct world *w = *state;
	uint32_t highest = 0;
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 1; i <= 200; i++) {
			const struct id128 id = { { (uint8_t)i, (uint8_t)(i >> 8), 9 } };
			const struct request *request = open_of(w, i, id);
			assert_ptr_equal(parties_at(&w->requests.parties, request->party->number),
				request->party);
			highest = request->party->number > highest ? request->party->number
				: highest;
		}
		for (uint32_t i = 1; i <= 200; i++) {
			requests_forget(&w->requests, i, 10);
		}
	}
	assert_in_range(highest, 200, 256);
}

static void a_wait_says_all_its_locks_and_its_owner(void **state) {
	struct world *w = *state;
	const struct core_lock locks[] = { { slice_str("a"), { { 1 } }, 5, 2 },
		{ slice_str("bc"), { { 2 } }, MODE_SHARED, 0 } };
	struct request *request = open_of(w, 7, none);
	struct core_lock got;
	size_t at = 0;
	wait_for(w, request, locks, 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(requests_wait_lock(request->wait, &at, &got));
		assert_true(slice_equal(got.key, locks[i].key));
		assert_true(id128_equal(got.lock_id, locks[i].lock_id));
		assert_true(got.of == locks[i].of && got.count == locks[i].count);
	}
	assert_false(requests_wait_lock(request->wait, &at, &got));
	assert_true(slice_equal(requests_wait_owner(request->wait), slice_str("me")));
	requests_enter_waits(&w->requests);
	assert_false(list_empty(&request->party->waits));
	assert_false(list_empty(&w->requests.due));
	assert_false(list_empty(&w->requests.several));
	requests_wait_end(request->wait, "why");
	assert_string_equal(request->wait->why, "why");
	requests_close(&w->requests, request);
	assert_true(list_empty(&w->requests.due));
	assert_true(list_empty(&w->requests.several));
}

/* A request that is granted at once is in no list but one. */
static void a_wait_is_entered_when_somebody_asks(void **state) {
	struct world *w = *state;
	const struct core_lock lock = { slice_str("a"), { { 1 } }, MODE_EXCLUSIVE, 0 };
	struct request *first = open_of(w, 7, none), *then = open_of(w, 7, none);
	wait_for(w, first, &lock, 1);
	assert_true(list_empty(&first->party->waits));
	assert_true(list_empty(&w->requests.due));
	requests_enter_waits(&w->requests);
	wait_for(w, then, &lock, 1);
	requests_close(&w->requests, then);
	requests_enter_waits(&w->requests);
	assert_ptr_equal(list_first(&w->requests.due), &first->wait->due);
	assert_null(list_after(&w->requests.due, &first->wait->due));
	requests_close(&w->requests, first);
	assert_true(list_empty(&w->requests.due));
}

static void new_rules_judge_every_wait_again(void **state) {
	struct world *w = *state;
	const struct core_lock lock = { slice_str("a"), { { 1 } }, MODE_EXCLUSIVE, 0 };
	struct request *first = open_of(w, 7, none), *then = open_of(w, 8, none);
	wait_for(w, first, &lock, 1);
	requests_enter_waits(&w->requests);
	wait_for(w, then, &lock, 1);
	requests_doubt(&w->requests);
	assert_ptr_equal(requests_doubted(&w->requests), first->wait);
	requests_trust(&w->requests, first->wait);
	assert_ptr_equal(requests_doubted(&w->requests), then->wait);
	requests_trust(&w->requests, then->wait);
	assert_null(requests_doubted(&w->requests));
	requests_close(&w->requests, first);
	requests_close(&w->requests, then);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

UNIT(node_parties) {
	const struct CMUnitTest tests[] = {
		IN_WORLD(a_request_without_a_party_is_its_connections),
		IN_WORLD(a_party_may_have_several_connections_and_a_connection_several_parties),
		IN_WORLD(a_party_is_gone_with_the_last_that_is_its),
		IN_WORLD(a_lock_goes_to_the_party_that_extends_it),
		IN_WORLD(numbers_are_used_again),
		IN_WORLD(a_wait_says_all_its_locks_and_its_owner),
		IN_WORLD(a_wait_is_entered_when_somebody_asks),
		IN_WORLD(new_rules_judge_every_wait_again),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
