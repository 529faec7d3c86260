/* These tests are about the memory that connections of clients take, and who has to go where that
 * is too much. */
#include "unit.h"

#include <stdio.h>

#include "memory.h"
#include "sessions_host.h"

/* ---- the account of one connection ---- */

struct accounts {
	struct allocator libc;
	struct alloc_counter counter;
	struct shares all;
	struct memory_pool pool;
	unsigned high;
};

static void accounts_on_high(void *ctx) {
	struct accounts *a = ctx;
	a->high++;
}

static void accounts_init(struct accounts *a, uint64_t most) {
	memset(a, 0, sizeof *a);
	a->libc = alloc_libc(&a->counter);
	assert_int_equal(shares_init(&a->all, &a->libc, (struct siphash_key){ 1, 2 }), 0);
	a->pool = (struct memory_pool){ .alloc = &a->libc, .counter = &a->counter, .limit = most,
		.on_high = accounts_on_high, .ctx = a };
}

static void accounts_done(struct accounts *a) {
	assert_int_equal(a->pool.accounts, 0);
	shares_done(&a->all);
	assert_int_equal(a->counter.used, 0);
}

static struct share_pair accounts_pair(struct accounts *a, const char *identity,
	const char *address, uint64_t most) {
	const struct share_pair p = { shares_find(&a->all, '=', slice_str(identity), 8),
		shares_find(&a->all, '#', slice_str(address), 8) };
	p.identity->limits.max[SHARE_MEMORY] = most;
	return p;
}

static void bytes_count_for_identity_and_address_from_the_first_to_the_last(void **state) {
	struct accounts a;
	(void)state;
	accounts_init(&a, 0);
	const struct share_pair p = accounts_pair(&a, "one", "here", 0);
	struct memory_account *account = memory_open(&a.pool);
	void *before = alloc_new(&account->alloc, 100);
	memory_claim(account, MEMORY_WATCHES, 30);
	/* Nobody knows yet whose connection it is. */
	assert_int_equal(p.identity->used[SHARE_MEMORY], 0);
	memory_join(account, &p);
	assert_int_equal(p.identity->used[SHARE_MEMORY], 130);
	assert_int_equal(p.address->used[SHARE_MEMORY], 130);
	before = alloc_resize(&account->alloc, before, 100, 300);
	memory_claim(account, MEMORY_WATCHES, 10);
	assert_int_equal(p.identity->used[SHARE_MEMORY], 310);
	assert_int_equal(account->used, 310);
	/* What the memory was allocated for is still there. */
	memory_close(account);
	assert_int_equal(p.address->used[SHARE_MEMORY], 300);
	assert_int_equal(a.pool.accounts, 1);
	alloc_free(&account->alloc, before, 300);
	assert_int_equal(p.address->used[SHARE_MEMORY], 0);
	accounts_done(&a);
}

static void what_tls_takes_counts_in_the_pool_too(void **state) {
	struct accounts a;
	(void)state;
	accounts_init(&a, 0);
	struct memory_account *account = memory_open(&a.pool);
	size_t used = a.counter.used;
	memory_claim(account, MEMORY_TLS, 50);
	memory_claim(account, MEMORY_TLS, 70);
	memory_claim(account, MEMORY_WATCHES, 70);
	assert_int_equal(a.counter.used, used + 70);
	memory_close(account);
	accounts_done(&a);
}

static void a_limit_has_a_reserve_and_administrators_have_another_one(void **state) {
	struct accounts a;
	(void)state;
	accounts_init(&a, 0);
	const struct share_pair p = accounts_pair(&a, "one", "here", 320 * KIB);
	struct memory_account *account = memory_open(&a.pool);
	memory_join(account, &p);
	assert_int_equal(memory_above(320 * KIB, MEMORY_HIGH), 352 * KIB);
	assert_int_equal(memory_above(64 << 20, MEMORY_HIGH), 66 << 20);
	assert_int_equal(memory_room(account), 320 * KIB);
	void *p1 = alloc_new(&account->alloc, 320 * KIB);
	assert_int_equal(memory_room(account), 0);
	assert_true(memory_share_full(account, MEMORY_LIMIT));
	assert_false(memory_share_full(account, MEMORY_END));
	assert_int_equal(a.high, 0);
	void *p2 = alloc_new(&account->alloc, 32 * KIB);
	assert_int_equal(a.high, 1);
	assert_true(a.pool.high);
	void *p3 = alloc_new(&account->alloc, 32 * KIB);
	assert_non_null(p3);
	assert_int_equal(a.high, 1);
	assert_true(memory_share_full(account, MEMORY_END));
	assert_null(account->alloc.resize(account->alloc.ctx, NULL, 0, 1));
	account->admin = true;
	void *p4 = alloc_new(&account->alloc, 64 * KIB);
	assert_non_null(p4);
	assert_null(account->alloc.resize(account->alloc.ctx, NULL, 0, 1));
	alloc_free(&account->alloc, p1, 320 * KIB);
	alloc_free(&account->alloc, p2, 32 * KIB);
	alloc_free(&account->alloc, p3, 32 * KIB);
	alloc_free(&account->alloc, p4, 64 * KIB);
	memory_close(account);
	accounts_done(&a);
}

static void an_address_has_a_limit_too_and_the_pool(void **state) {
	struct accounts a;
	(void)state;
	accounts_init(&a, 1 << 20);
	const struct share_pair p = accounts_pair(&a, "one", "here", 0);
	struct memory_account *account = memory_open(&a.pool);
	memory_join(account, &p);
	p.address->limits.max[SHARE_MEMORY] = 64 * KIB;
	assert_int_equal(memory_room(account), 64 * KIB);
	p.address->limits.max[SHARE_MEMORY] = 0;
	assert_int_equal(memory_room(account), memory_above(1 << 20, MEMORY_HIGH) - a.counter.used);
	assert_false(memory_pool_full(&a.pool, 1, MEMORY_LIMIT));
	void *most = alloc_new(&account->alloc, 1 << 20);
	assert_true(memory_pool_full(&a.pool, 1, MEMORY_LIMIT));
	assert_null(account->alloc.resize(account->alloc.ctx, NULL, 0, 64 * KIB));
	assert_ptr_equal(shares_heaviest(&a.all), p.identity);
	alloc_free(&account->alloc, most, 1 << 20);
	assert_null(shares_heaviest(&a.all));
	memory_close(account);
	accounts_done(&a);
}

/* ---- connections ---- */

static void send_release(int fd) {
	const struct client_request release = { .msgid = 1, .method = CLIENT_RELEASE,
		.present = CLIENT_HAS_KEY | CLIENT_HAS_LOCK_ID,
		.core = { .op = CORE_RELEASE, .key = slice_str("k"), .lock_id = { { 1 } } } };
	send_request(fd, &release);
}

static void a_client_at_its_limit_of_memory_is_refused_more_and_may_release_what_it_has(
	void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_MEMORY] = 128 * KIB;
	host_start(&h, &limits);
	int one = host_connect(&h), two = host_connect(&h), other = host_connect_from(&h, "other");
	/* It has a buffer of 128 KiB. */
	send_half(&h, one, 66 * KIB);
	send_status(two);
	host_run(&h);
	assert_int_equal(h.requests, 0);
	assert_int_equal(h.over, 1);
	assert_string_equal(h.limit, "client_memory_per_identity");
	assert_true(h.retry_after > 0);
	send_release(two);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	send_status(other);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	assert_int_equal(h.over, 1);
	close(one);
	host_run(&h);
	send_status(two);
	host_run(&h);
	assert_int_equal(h.requests, 3);
	close(two);
	close(other);
	host_done(&h);
}

static void the_connection_that_has_most_of_a_share_ends(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.address.max[SHARE_MEMORY] = 256 * KIB;
	limits.identity.max[SHARE_MEMORY] = 300 * KIB;
	host_start(&h, &limits);
	int other = host_connect_from(&h, "other"), one = host_connect(&h), two = host_connect(&h);
	send_half(&h, other, 140 * KIB);
	send_half(&h, one, 20 * KIB);
	send_half(&h, two, 400 * KIB);
	assert_true(gone(&h, 3));
	assert_false(gone(&h, 1));
	assert_false(gone(&h, 2));
	assert_int_equal(h.gone, 1);
	assert_int_equal(h.troubles, 1);
	assert_false(h.closed_there);
	assert_in_range(sessions_room(h.sessions, 2), 1, 256 * KIB);
	send_status(other);
	close(other);
	close(one);
	close(two);
	host_done(&h);
}

static void a_small_connection_that_needs_a_larger_buffer_is_not_the_one_to_go(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	/* The loop has 56 KiB to read in, and 56 more. */
	limits.identity.max[SHARE_MEMORY] = 900 * KIB;
	host_start(&h, &limits);
	int large = host_connect(&h), small = host_connect(&h);
	/* It has a buffer of 512 KiB. */
	send_half(&h, large, 300 * KIB);
	/* It has a buffer of 256 KiB. */
	send_half(&h, small, 250 * KIB);
	assert_int_equal(h.gone, 0);
	/* It would need a buffer of 512 KiB, for which there is no room next to the other one. */
	send_half(&h, small, 60 * KIB);
	assert_true(gone(&h, 1));
	assert_false(gone(&h, 2));
	assert_int_equal(h.gone, 1);
	close(large);
	close(small);
	host_done(&h);
}

static void a_node_without_memory_turns_to_the_identity_that_has_most_of_it(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	/* The loop has half of this. */
	limits.memory = 1 << 20;
	host_start(&h, &limits);
	int small = host_connect_from(&h, "small"), large = host_connect_from(&h, "large"),
		more = host_connect_from(&h, "large");
	send_half(&h, small, 100 * KIB);
	send_half(&h, large, 250 * KIB);
	send_half(&h, more, 120 * KIB);
	assert_int_equal(h.gone, 0);
	assert_true(sessions_memory(h.sessions) > limits.memory);
	int two = host_connect_from(&h, "small"), three = host_connect_from(&h, "large");
	send_status(two);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	send_status(three);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	assert_string_equal(h.limit, "client_memory");
	/* This one may grow, and then the largest of them goes. */
	send_half(&h, two, 100 * KIB);
	assert_true(gone(&h, 2));
	assert_int_equal(h.gone, 1);
	assert_true(sessions_memory(h.sessions) < limits.memory);
	assert_true(sessions_memory_most(h.sessions) > limits.memory);
	assert_true(sessions_memory_most(h.sessions) < limits.memory);
	send_status(three);
	host_run(&h);
	assert_int_equal(h.requests, 2);
	close(small);
	close(large);
	close(more);
	close(two);
	close(three);
	host_done(&h);
}

static void what_the_owner_keeps_for_a_client_counts_until_it_is_returned(void **state) {
	struct host h;
	struct share_quota quota;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_MEMORY] = 64 * KIB;
	host_start(&h, &limits);
	int one = host_connect(&h), two = host_connect(&h);
	const struct allocator *alloc = sessions_alloc(h.sessions, 1);
	uint64_t room = sessions_room(h.sessions, 2);
	void *kept = alloc_new(alloc, 1000);
	assert_int_equal(sessions_room(h.sessions, 2), room - 1000);
	sessions_watches(h.sessions, 2, 1, 500);
	assert_int_equal(sessions_room(h.sessions, 2), room - 1500);
	sessions_say_full(h.sessions, 2, &quota);
	assert_int_equal(quota.refusal.error, PAWL_EQUOTA);
	close(one);
	host_run(&h);
	assert_null(sessions_alloc(h.sessions, 1));
	alloc_free(alloc, kept, 1000);
	assert_true(sessions_room(h.sessions, 2) > room - 500);
	close(two);
	host_done(&h);
}

static void an_administrator_looks_where_its_own_identity_has_too_much(void **state) {
	struct host h;
	struct sessions_limits limits = open_limits;
	(void)state;
	limits.identity.max[SHARE_MEMORY] = 128 * KIB;
	host_start(&h, &limits);
	int one = host_connect(&h);
	send_half(&h, one, 66 * KIB);
	h.admin = true;
	int two = host_connect(&h);
	send_status(two);
	const struct client_request get = { .msgid = 1, .method = CLIENT_GET,
		.present = CLIENT_HAS_KEY, .core = { .op = CORE_GET, .key = slice_str("k") } };
	send_request(two, &get);
	host_run(&h);
	assert_int_equal(h.requests, 1);
	assert_int_equal(h.method, CLIENT_STATUS);
	assert_int_equal(h.over, 1);
	close(one);
	close(two);
	host_done(&h);
}

UNIT(net_memory) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_count_for_identity_and_address_from_the_first_to_the_last),
		cmocka_unit_test(what_tls_takes_counts_in_the_pool_too),
		cmocka_unit_test(a_limit_has_a_reserve_and_administrators_have_another_one),
		cmocka_unit_test(an_address_has_a_limit_too_and_the_pool),
		cmocka_unit_test(
		a_client_at_its_limit_of_memory_is_refused_more_and_may_release_what_it_has),
		cmocka_unit_test(the_connection_that_has_most_of_a_share_ends),
		cmocka_unit_test(
			a_small_connection_that_needs_a_larger_buffer_is_not_the_one_to_go),
		cmocka_unit_test(a_node_without_memory_turns_to_the_identity_that_has_most_of_it),
		cmocka_unit_test(what_the_owner_keeps_for_a_client_counts_until_it_is_returned),
		cmocka_unit_test(an_administrator_looks_where_its_own_identity_has_too_much),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
