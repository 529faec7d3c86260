/* These tests are about the writes of states to the disk, with a thread and without one. */
#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "disk.h"
#include "net_fixture.h"
#include "state_file.h"

struct seen {
	uint64_t seqs[16];
	int problems[16];
	size_t count;
	uint64_t last_wanted;
};

static void on_done(void *ctx, uint64_t seq, int problem) {
	struct seen *s = ctx;
	assert_true(s->count < 16);
	s->seqs[s->count] = seq;
	s->problems[s->count++] = problem;
}

static bool last_is_done(void *ctx) {
	struct seen *s = ctx;
	return s->count > 0 && s->seqs[s->count - 1] == s->last_wanted;
}

struct store {
	struct net_fixture f;
	struct state_file *file;
	struct durable state;
	struct disk *disk;
	struct seen seen;
};

static void store_open(struct store *s) {
	struct problem problem = { "" };
	memset(s, 0, sizeof *s);
	net_fixture_init(&s->f);
	assert_int_equal(state_file_open(s->f.dir, "test", "a", &s->file, &s->state, &problem), 0);
	assert_int_equal(disk_new(s->f.base, s->file, on_done, &s->seen, &s->disk), 0);
}

static void store_close(struct store *s) {
	disk_free(s->disk);
	state_file_close(s->file);
	net_fixture_done(&s->f);
}

static void of_the_states_that_wait_only_the_newest_is_written(void **state) {
	struct store s;
	struct problem problem;
	(void)state;
	store_open(&s);
	for (uint64_t seq = 1; seq <= 5; seq++) {
		s.state.boot = seq;
		disk_write(s.disk, &s.state, seq);
	}
	s.seen.last_wanted = 5;
	assert_true(net_fixture_until(&s.f, last_is_done, &s.seen));
	/* The first one, which was under way, and the last one were written. */
	assert_int_equal(s.seen.count, 2);
	assert_int_equal(s.seen.seqs[0], 1);
	assert_true(s.seen.problems[0] == 0 && s.seen.problems[1] == 0);
	state_file_close(s.file);
	assert_int_equal(state_file_open(s.f.dir, "test", "a", &s.file, &s.state, &problem), 0);
	assert_int_equal(s.state.boot, 5);
	store_close(&s);
}

static void a_write_that_fails_is_reported_and_the_next_may_succeed(void **state) {
	struct store s;
	(void)state;
	store_open(&s);
	state_file_fail_after(s.file, 10);
	disk_write(s.disk, &s.state, 1);
	s.seen.last_wanted = 1;
	assert_true(net_fixture_until(&s.f, last_is_done, &s.seen));
	assert_int_equal(s.seen.problems[0], ENOSPC);
	state_file_fail_after(s.file, -1);
	disk_write(s.disk, &s.state, 2);
	s.seen.last_wanted = 2;
	assert_true(net_fixture_until(&s.f, last_is_done, &s.seen));
	assert_int_equal(s.seen.problems[1], 0);
	store_close(&s);
}

static void a_write_under_way_is_waited_for_at_the_end(void **state) {
	struct store s;
	struct problem problem;
	(void)state;
	store_open(&s);
	s.state.boot = 9;
	disk_write(s.disk, &s.state, 1);
	disk_free(s.disk);
	s.disk = NULL;
	assert_int_equal(s.seen.count, 0);
	state_file_close(s.file);
	assert_int_equal(state_file_open(s.f.dir, "test", "a", &s.file, &s.state, &problem), 0);
	assert_int_equal(s.state.boot, 9);
	store_close(&s);
}

/* Without a file descriptor there is no thread: a job reports its end through one. Returns the
 * limit to restore. */
static struct rlimit no_more_threads(void) {
	struct rlimit before, none;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

static void without_a_thread_a_write_is_reported_later_and_in_order(void **state) {
	struct store s;
	(void)state;
	store_open(&s);
	/* The first write has a thread; those that follow it do not. */
	disk_write(s.disk, &s.state, 1);
	disk_write(s.disk, &s.state, 2);
	struct rlimit before = no_more_threads();
	s.seen.last_wanted = 2;
	bool done = net_fixture_until(&s.f, last_is_done, &s.seen);
	size_t first_count = s.seen.count;
	disk_write(s.disk, &s.state, 3);
	disk_write(s.disk, &s.state, 4);
	size_t told_within = s.seen.count - first_count;
	s.seen.last_wanted = 4;
	bool all_done = done && net_fixture_until(&s.f, last_is_done, &s.seen);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(all_done);
	assert_int_equal(told_within, 0);
	assert_int_equal(s.seen.count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(s.seen.seqs[i], i + 1);
		assert_int_equal(s.seen.problems[i], 0);
	}
	store_close(&s);
}

UNIT(node_disk) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_the_states_that_wait_only_the_newest_is_written),
		cmocka_unit_test(a_write_that_fails_is_reported_and_the_next_may_succeed),
		cmocka_unit_test(a_write_under_way_is_waited_for_at_the_end),
		cmocka_unit_test(without_a_thread_a_write_is_reported_later_and_in_order),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
