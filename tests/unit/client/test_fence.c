/* These tests are about the store of a fence: which tokens pass, and what is left of it after
 * crashes, damage and other processes. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "failing.h"
#include "fence_store.h"

static char dir[64], path[80];

static bool folders_fail;

/* This stands in the place of the C library's function. When folders fail, the disk does not
 * confirm which file bears a name. */
int fsync(int fd) {
	struct stat st;
	if (folders_fail && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = ENOSPC;
		return -1;
	}
	return fdatasync(fd);
}

static int set_up(void **state) {
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/pawl-fence-XXXXXX");
	if (!mkdtemp(dir)) {
		return -1;
	}
	(void)snprintf(path, sizeof(path), "%s/tokens", dir);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	(void)unlink(path);
	return rmdir(dir);
}

static struct pawl_fence *open_it(void) {
	struct pawl_fence *f = NULL;
	assert_int_equal(pawl_fence_open(path, &f), 0);
	return f;
}

static int show(struct pawl_fence *f, const char *name, uint64_t token, enum pawl_mode mode) {
	return pawl_fence_store_check(f, pawl_str(name), token, mode, NULL);
}

static off_t size_now(void) {
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

static void an_older_token_is_refused_and_the_same_one_passes_again(void **state) {
	(void)state;
	for (int in_file = 0; in_file < 2; in_file++) {
		struct pawl_fence *f;
		uint64_t highest = 0;
		assert_int_equal(pawl_fence_open(in_file ? path : NULL, &f), 0);
		assert_int_equal(show(f, "a", 5, PAWL_EXCLUSIVE), 0);
		assert_int_equal(show(f, "a", 5, PAWL_EXCLUSIVE), 0);
		assert_int_equal(pawl_fence_store_check(f, pawl_str("a"), 4, PAWL_EXCLUSIVE,
			&highest), PAWL_ELOST);
		assert_int_equal(highest, 5);
		assert_int_equal(show(f, "b", 1, PAWL_EXCLUSIVE), 0);
		assert_int_equal(show(f, "a", 6, PAWL_EXCLUSIVE), 0);
		assert_int_equal(show(f, "a", 0, PAWL_EXCLUSIVE), PAWL_EINVAL);
		assert_int_equal(show(f, "a", 1, (enum pawl_mode)3), PAWL_EINVAL);
		assert_int_equal(pawl_fence_highest(f, pawl_str("a"), &highest), 0);
		assert_int_equal(highest, 6);
		pawl_fence_close(f);
	}
}

static void readers_do_not_disturb_each_other_but_both_sides_of_a_writer_are_kept_apart(
	void **state) {
	(void)state;
	struct pawl_fence *f = open_it();
	assert_int_equal(show(f, "k", 5, PAWL_EXCLUSIVE), 0);
	assert_int_equal(show(f, "k", 8, PAWL_SHARED), 0);
	assert_int_equal(show(f, "k", 7, PAWL_SHARED), 0);
	assert_int_equal(show(f, "k", 4, PAWL_SHARED), PAWL_ELOST);
	/* A reader came after that writer. */
	assert_int_equal(show(f, "k", 6, PAWL_EXCLUSIVE), PAWL_ELOST);
	assert_int_equal(show(f, "k", 9, PAWL_EXCLUSIVE), 0);
	assert_int_equal(show(f, "k", 8, PAWL_SHARED), PAWL_ELOST);
	/* The holder has downgraded. */
	assert_int_equal(show(f, "k", 9, PAWL_SHARED), 0);
	pawl_fence_close(f);
}

static void what_was_allowed_is_known_after_a_restart(void **state) {
	(void)state;
	struct pawl_fence *f = open_it();
	assert_int_equal(show(f, "a", 5, PAWL_EXCLUSIVE), 0);
	assert_int_equal(show(f, "b", 7, PAWL_SHARED), 0);
	pawl_fence_close(f);
	f = open_it();
	assert_int_equal(show(f, "a", 4, PAWL_EXCLUSIVE), PAWL_ELOST);
	assert_int_equal(show(f, "b", 6, PAWL_EXCLUSIVE), PAWL_ELOST);
	assert_int_equal(show(f, "b", 6, PAWL_SHARED), 0);
	pawl_fence_close(f);
}

static void two_openers_see_each_other(void **state) {
	(void)state;
	struct pawl_fence *one = open_it(), *two = open_it();
	/* These are enough for the file to be written anew. */
	for (uint64_t token = 1; token < 5000; token += 2) {
		assert_int_equal(show(one, "k", token, PAWL_EXCLUSIVE), 0);
		assert_int_equal(show(two, "k", token + 1, PAWL_EXCLUSIVE), 0);
		assert_int_equal(show(one, "k", token, PAWL_EXCLUSIVE), PAWL_ELOST);
	}
	assert_true(size_now() < 2000 * 29);
	pawl_fence_close(one);
	pawl_fence_close(two);
	struct pawl_fence *f = open_it();
	uint64_t highest;
	assert_int_equal(pawl_fence_highest(f, pawl_str("k"), &highest), 0);
	assert_int_equal(highest, 5000);
	pawl_fence_close(f);
}

/* The file is as any crash of the writer could have left it: the last record is cut off anywhere,
 * or has zeros in its place. */
static void a_record_that_was_cut_off_is_dropped_and_the_ones_before_stay(void **state) {
	(void)state;
	struct pawl_fence *f = open_it();
	assert_int_equal(show(f, "name", 5, PAWL_EXCLUSIVE), 0);
	off_t before = size_now();
	assert_int_equal(show(f, "name", 6, PAWL_EXCLUSIVE), 0);
	off_t after = size_now();
	pawl_fence_close(f);
	for (off_t cut = before; cut < after; cut++) {
		for (int zeros = 0; zeros < 2; zeros++) {
			assert_int_equal(truncate(path, cut), 0);
			assert_int_equal(truncate(path, zeros ? after : cut), 0);
			f = open_it();
			uint64_t highest;
			assert_int_equal(pawl_fence_highest(f, pawl_str("name"), &highest), 0);
			assert_int_equal(highest, 5);
			assert_int_equal(size_now(), before);
			assert_int_equal(show(f, "name", 6, PAWL_EXCLUSIVE), 0);
			pawl_fence_close(f);
			assert_int_equal(size_now(), after);
		}
	}
}

static void damage_before_the_last_record_is_refused(void **state) {
	(void)state;
	struct pawl_fence *f = open_it();
	off_t before = 0;
	for (uint64_t token = 1; token <= 3; token++) {
		before = size_now();
		assert_int_equal(show(f, "n", token, PAWL_EXCLUSIVE), 0);
	}
	pawl_fence_close(f);
	int fd = open(path, O_RDWR);
	assert_true(fd >= 0);
	for (off_t at = 0; at < before; at++) {
		uint8_t byte, turned;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		turned = (uint8_t)(byte ^ 0x10);
		assert_int_equal(pwrite(fd, &turned, 1, at), 1);
		errno = 1;
		assert_int_equal(pawl_fence_open(path, &f), PAWL_EIO);
		assert_int_equal(errno, 0);
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	}
	close(fd);
	f = open_it();
	assert_int_equal(show(f, "n", 2, PAWL_EXCLUSIVE), PAWL_ELOST);
	pawl_fence_close(f);
}

static void what_is_no_such_file_is_left_alone(void **state) {
	(void)state;
	FILE *other = fopen(path, "w");
	assert_non_null(other);
	assert_true(fputs("root", other) >= 0);
	assert_int_equal(fclose(other), 0);
	struct pawl_fence *f;
	assert_int_equal(pawl_fence_open(path, &f), PAWL_EIO);
	assert_int_equal(size_now(), 4);
	assert_int_equal(pawl_fence_open(dir, &f), PAWL_EIO);
	assert_int_equal(pawl_fence_open("/nowhere/at/all", &f), PAWL_EIO);
	assert_int_equal(errno, ENOENT);
}

static void many_processes_allow_each_token_order_only_upwards(void **state) {
	(void)state;
	pid_t pids[4];
	for (int p = 0; p < 4; p++) {
		pids[p] = fork();
		assert_true(pids[p] >= 0);
		if (pids[p] == 0) {
			struct pawl_fence *f;
			bool good = pawl_fence_open(path, &f) == 0;
			for (uint64_t i = 0; good && i < 100; i++) {
				uint64_t highest = 0, token = i * 4 + (uint64_t)p + 1;
				int error = pawl_fence_store_check(f, pawl_str("k"), token,
					PAWL_EXCLUSIVE, &highest);
				good = (error == 0 && highest == token) ||
					(error == PAWL_ELOST && highest > token);
			}
			_exit(good ? 0 : 1);
		}
	}
	for (int p = 0; p < 4; p++) {
		int status;
		assert_int_equal(waitpid(pids[p], &status, 0), pids[p]);
		assert_int_equal(status, 0);
	}
	struct pawl_fence *f = open_it();
	uint64_t highest;
	assert_int_equal(pawl_fence_highest(f, pawl_str("k"), &highest), 0);
	assert_int_equal(highest, 400);
	pawl_fence_close(f);
}

static void a_disk_that_is_full_refuses_and_forgets_nothing(void **state) {
	(void)state;
	pid_t pid = fork();
	assert_true(pid >= 0);
	/* A limit of this process stands in for that of a disk. */
	if (pid == 0) {
		struct pawl_fence *f;
		uint64_t token = 1;
		int error = pawl_fence_open(path, &f);
		struct rlimit limit = { 200, 200 };
		(void)sigaction(SIGXFSZ, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
		error = error ? error : setrlimit(RLIMIT_FSIZE, &limit);
		while (!error && token < 100) {
			error = show(f, "k", token++, PAWL_EXCLUSIVE);
		}
		_exit(error == PAWL_EIO && show(f, "k", token - 2, PAWL_EXCLUSIVE) == 0 &&
			show(f, "k", 1, PAWL_EXCLUSIVE) == PAWL_ELOST ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	struct pawl_fence *f = open_it();
	assert_int_equal(show(f, "k", 1, PAWL_EXCLUSIVE), PAWL_ELOST);
	pawl_fence_close(f);
}

/* The file has a new name, or is new under its name. What is appended to it may be gone after a
 * crash of the machine. */
static void a_folder_that_is_not_on_disk_is_told_and_nothing_passes_from_then_on(void **state) {
	(void)state;
	for (int rewritten = 0; rewritten < 2; rewritten++) {
		struct pawl_fence *f = open_it(), *other;
		uint64_t token = 1;
		folders_fail = rewritten == 0;
		int error = show(f, "k", token, PAWL_EXCLUSIVE);
		folders_fail = true;
		while (rewritten && !error && token < 5000) {
			error = show(f, "k", ++token, PAWL_EXCLUSIVE);
		}
		assert_int_equal(error, PAWL_EIO);
		assert_int_equal(errno, ENOSPC);
		assert_int_equal(show(f, "k", token + 1, PAWL_EXCLUSIVE), PAWL_EIO);
		/* A process that opens the file does not know what another one has confirmed. */
		other = open_it();
		assert_int_equal(show(other, "k", token + 1, PAWL_EXCLUSIVE), PAWL_EIO);
		folders_fail = false;
		/* A later success means nothing. */
		assert_int_equal(show(f, "k", token + 1, PAWL_EXCLUSIVE), PAWL_EIO);
		pawl_fence_close(f);
		pawl_fence_close(other);
		f = open_it();
		assert_int_equal(show(f, "k", token + 1, PAWL_EXCLUSIVE), 0);
		pawl_fence_close(f);
		assert_int_equal(unlink(path), 0);
	}
}

static void without_memory_nothing_passes_and_nothing_is_lost(void **state) {
	(void)state;
	for (uint64_t fail_at = 1;; fail_at++) {
		struct failing failing = { .fail_first = fail_at, .fail_count = 1 };
		struct allocator alloc = { failing_resize, &failing };
		struct pawl_fence *f = NULL;
		int error = fence_store_open(&alloc, path, &f);
		error = error ? error : show(f, "k", 3, PAWL_EXCLUSIVE);
		pawl_fence_close(f);
		assert_int_equal(failing.used, 0);
		if (failing.calls < fail_at) {
			assert_int_equal(error, 0);
			break;
		}
		assert_int_equal(error, PAWL_ENOMEM);
	}
}

/* One opener has no memory for a name that another one wrote, and has memory when it is asked once
 * more. */
static void a_token_that_there_was_no_memory_for_is_read_later(void **state) {
	(void)state;
	struct failing failing = { .fail_first = 0 };
	struct allocator alloc = { failing_resize, &failing };
	struct pawl_fence *f = NULL, *other = open_it();
	assert_int_equal(fence_store_open(&alloc, path, &f), 0);
	assert_int_equal(show(other, "k", 8, PAWL_EXCLUSIVE), 0);
	/* This is the allocation after the one for the room to read into. */
	failing.fail_first = failing.calls + 2;
	failing.fail_count = 1;
	assert_int_equal(show(f, "k", 3, PAWL_EXCLUSIVE), PAWL_ENOMEM);
	assert_int_equal(show(f, "k", 3, PAWL_EXCLUSIVE), PAWL_ELOST);
	pawl_fence_close(f);
	pawl_fence_close(other);
}

UNIT(fence) {
#define IN_DIR(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		IN_DIR(an_older_token_is_refused_and_the_same_one_passes_again),
		IN_DIR(readers_do_not_disturb_each_other_but_both_sides_of_a_writer_are_kept_apart),
		IN_DIR(what_was_allowed_is_known_after_a_restart),
		IN_DIR(two_openers_see_each_other),
		IN_DIR(a_record_that_was_cut_off_is_dropped_and_the_ones_before_stay),
		IN_DIR(damage_before_the_last_record_is_refused),
		IN_DIR(what_is_no_such_file_is_left_alone),
		IN_DIR(many_processes_allow_each_token_order_only_upwards),
		IN_DIR(a_disk_that_is_full_refuses_and_forgets_nothing),
		IN_DIR(a_folder_that_is_not_on_disk_is_told_and_nothing_passes_from_then_on),
		IN_DIR(without_memory_nothing_passes_and_nothing_is_lost),
		IN_DIR(a_token_that_there_was_no_memory_for_is_read_later),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
