/* These tests are about a key with very many holders: what one message needs of it does not grow
 * with their number (cluster/store/index.c). Every block of memory of the cores has pages of its
 * own, which nobody may touch unnoticed, so that a walk over all records is seen. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "modes.h"

#define HOLDERS 1000u
#define PAGE 4096u
#define PAGES (1u << 18)
/* Many records in each of three masters would be touched by a walk over all of them. */
#define FEW (HOLDERS / 2)

static const struct id128 no_lock;

/* ---- memory that counts who touches it ---- */

static uint8_t *pages;
static uint32_t pages_used, touched;
static struct sigaction before;

static size_t whole(size_t size) {
	return (size + PAGE - 1) / PAGE * PAGE;
}

/* Pages are not used again. */
static void *paged_resize(void *ctx, void *p, size_t old_size, size_t new_size) {
	(void)ctx;
	if (new_size == 0) {
		return NULL;
	}
	void *moved = pages + (size_t)pages_used * PAGE;
	pages_used += (uint32_t)(whole(new_size) / PAGE);
	assert_in_range(pages_used, 1, PAGES);
	if (p) {
		memcpy(moved, p, old_size < new_size ? old_size : new_size);
	}
	return moved;
}

static const struct allocator paged = { .resize = paged_resize };

static void touch(int number, siginfo_t *info, void *context) {
	(void)context;
	uint8_t *at = info->si_addr;
	if (at < pages || at >= pages + (size_t)PAGES * PAGE) {
		/* It happens again, and nobody handles it. */
		sigaction(number, &before, NULL);
		return;
	}
	touched++;
	mprotect(pages + (size_t)(at - pages) / PAGE * PAGE, PAGE, PROT_READ | PROT_WRITE);
}

static void count_begin(void) {
	const struct sigaction action = { .sa_sigaction = touch, .sa_flags = SA_SIGINFO };
	assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
	assert_int_equal(mprotect(pages, (size_t)PAGES * PAGE, PROT_NONE), 0);
	touched = 0;
}

/* Returns how many pages were touched. */
static uint32_t count_end(void) {
	assert_int_equal(mprotect(pages, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
	return touched;
}

/* Asks, which must succeed, and returns how many pages were touched by it. */
static uint32_t pages_of(struct stage *s, uint32_t node, struct core_request r) {
	count_begin();
	const int error = stage_do(s, node, r);
	const uint32_t count = count_end();
	assert_int_equal(error, PAWL_OK);
	return count;
}

/* ---- the crowd ---- */

static struct id128 reader(uint32_t i) {
	struct id128 id = stage_lock((uint8_t)(i % 251));
	id.b[3] = (uint8_t)(i / 251 + 1);
	return id;
}

static int many_setup(void **state) {
	pages = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(pages != MAP_FAILED);
	pages_used = 0;
	struct stage_options o = named_options();
	o.core = &paged;
	/* core_check would look at every one of them after every step. */
	o.unchecked = true;
	o.max_lease = 100 * LEASE;
	o.limits.holders_per_key = HOLDERS + 10;
	*state = stage_born(&o);
	for (uint32_t i = 0; i < HOLDERS; i++) {
		struct core_request r = shared_request("k", reader(i), 0);
		r.lease = 100 * LEASE;
		assert_int_equal(stage_do(*state, i % 3, r), PAWL_OK);
	}
	return 0;
}

static int many_teardown(void **state) {
	stage_free(*state);
	return munmap(pages, (size_t)PAGES * PAGE);
}

#define MANY(test) cmocka_unit_test_setup_teardown(test, many_setup, many_teardown)

static void one_more_comes_and_goes(void **state) {
	struct stage *s = *state;
	assert_in_range(pages_of(s, 0, shared_request("k", stage_lock(252), 0)), 1, FEW);
	assert_in_range(pages_of(s, 0, stage_request(CORE_RELEASE, "k", stage_lock(252))),
		1, FEW);
	for (uint32_t i = 0; i < 3; i++) {
		core_check(s->nodes[i].core);
	}
}

static void one_of_them_is_extended_repeated_and_updated(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_EXTEND, "k", reader(500));
	r.lease = LEASE;
	assert_in_range(pages_of(s, 1, r), 1, FEW);
	r = stage_request(CORE_UPDATE, "k", reader(500));
	r.value = slice_str("a value");
	assert_in_range(pages_of(s, 1, r), 1, FEW);
	r = shared_request("k", reader(500), 0);
	assert_in_range(pages_of(s, 2, r), 1, FEW);
	for (uint32_t i = 0; i < 3; i++) {
		core_check(s->nodes[i].core);
	}
}

static void one_of_them_ends(void **state) {
	struct stage *s = *state;
	struct core_request r = shared_request("k", stage_lock(252), 0);
	r.lease = 5 * LEASE;
	assert_int_equal(stage_do(s, 0, r), PAWL_OK);
	for (uint32_t i = 0; i < 5; i++) {
		/* It is kept for longer than it was granted for at first. */
		r = stage_request(CORE_EXTEND, "k", stage_lock(252));
		r.lease = 5 * LEASE;
		stage_wait(s, LEASE);
		assert_in_range(pages_of(s, 0, r), 1, FEW);
	}
	assert_int_equal(stage_status(s, 1).held, HOLDERS + 1);
	stage_wait(s, 5 * LEASE - 10 * SPAN_MS);
	assert_int_equal(stage_status(s, 1).held, HOLDERS + 1);
	count_begin();
	stage_wait(s, 20 * SPAN_MS);
	/* The nodes look through all leases that they have granted, from time to time. */
	assert_in_range(count_end(), 1, HOLDERS + FEW);
	assert_int_equal(stage_status(s, 1).held, HOLDERS);
}

static void an_explanation_looks_at_those_that_it_tells(void **state) {
	struct stage *s = *state;
	struct core_request r = stage_request(CORE_EXPLAIN, "k", no_lock);
	r.admin = true;
	(void)pages_of(s, 0, r);
	assert_true(stage_last(s)->r.more);
	stage_wait(s, 5 * SPAN_MS);
	/* 128 at each master, which are copied. */
	assert_in_range(pages_of(s, 0, r), 1, 3 * 128 * 4);
}

UNIT(cluster_many) {
	const struct CMUnitTest tests[] = {
		MANY(one_more_comes_and_goes),
		MANY(one_of_them_is_extended_repeated_and_updated),
		MANY(one_of_them_ends),
		MANY(an_explanation_looks_at_those_that_it_tells),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
