/* The side file of a planned stop is used once and whole, or not at all. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pawl/error.h"
#include "side_file.h"
/* These come behind the codec's F_LOCK_ID, which they leave alone. */
#include <fcntl.h>
#include <sys/mount.h>
#include <unistd.h>

static char dir[64], path[128];
static const struct id128 me = { { 1, 2, 3 } }, other = { { 9 } };

static int make_dir(void **state) {
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/pawl-side.XXXXXX");
	if (!mkdtemp(dir)) {
		return -1;
	}
	snprintf(path, sizeof path, "%s/drained", dir);
	return 0;
}

static int remove_dir(void **state) {
	(void)state;
	/* This fails when a test left a file behind. */
	return rmdir(dir);
}

static void write_frames(size_t count) {
	struct side_writer *w = NULL;
	char frame[32];
	assert_int_equal(side_writer_open(dir, me, 5, &w), 0);
	for (size_t i = 0; i < count; i++) {
		snprintf(frame, sizeof frame, "frame %zu", i);
		assert_int_equal(side_writer_add(w, slice_str(frame)), 0);
	}
	assert_int_equal(side_writer_finish(w), 0);
}

static bool exists(const char *name) {
	char full[128];
	snprintf(full, sizeof full, "%s/%s", dir, name);
	return access(full, F_OK) == 0;
}

static void frames_come_back_in_order_once(void **state) {
	(void)state;
	struct side_file *f = NULL;
	struct problem problem;
	struct slice frame;
	write_frames(100);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_OPEN);
	for (size_t i = 0; i < 100; i++) {
		char wanted[32];
		snprintf(wanted, sizeof wanted, "frame %zu", i);
		assert_int_equal(side_file_next(f, &frame), 1);
		assert_true(slice_equal(frame, slice_str(wanted)));
	}
	assert_int_equal(side_file_next(f, &frame), 0);
	assert_int_equal(side_file_next(f, &frame), 0);
	assert_int_equal(side_file_use(f), 0);
	assert_false(exists("drained"));
	side_file_free(f);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_NONE);
}

/* side_file_use decides what happens to the file: a file that is only read is there for the next
 * start. */
static void one_that_was_not_used_stays(void **state) {
	(void)state;
	struct side_file *f = NULL;
	struct problem problem;
	struct slice frame;
	write_frames(2);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_OPEN);
	assert_int_equal(side_file_next(f, &frame), 1);
	side_file_free(f);
	assert_true(exists("drained"));
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_OPEN);
	assert_int_equal(side_file_use(f), 0);
	assert_false(exists("drained"));
	/* The start failed after all. */
	side_file_put_back(f);
	side_file_free(f);
	assert_true(exists("drained"));
	assert_false(exists("drained.used"));
	assert_int_equal(unlink(path), 0);
}

static void one_that_cannot_be_read_stays(void **state) {
	(void)state;
	struct side_file *f = NULL;
	struct problem problem;
	/* A folder opens, and does not read; root may read everything else. */
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_FAILED);
	assert_null(f);
	assert_non_null(strstr(problem.text, "cannot be read"));
	assert_int_equal(rmdir(path), 0);
}

static void a_node_that_knew_nothing_leaves_an_empty_one(void **state) {
	(void)state;
	struct side_file *f = NULL;
	struct problem problem;
	struct slice frame;
	write_frames(0);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_OPEN);
	assert_int_equal(side_file_next(f, &frame), 0);
	assert_int_equal(side_file_use(f), 0);
	side_file_free(f);
}

static void assert_ignored(struct id128 id, uint64_t boot, const char *why) {
	struct side_file *f = NULL;
	struct problem problem = { "" };
	assert_int_equal(side_file_open(dir, id, boot, &f, &problem), SIDE_BAD);
	assert_null(f);
	assert_non_null(strstr(problem.text, why));
	assert_false(exists("drained"));
}

static void one_of_another_node_or_boot_is_ignored(void **state) {
	(void)state;
	write_frames(3);
	assert_ignored(me, 6, "not written by this node's last run");
	write_frames(3);
	assert_ignored(other, 5, "not written by this node's last run");
}

static void one_cut_at_any_byte_is_ignored(void **state) {
	(void)state;
	struct stat st;
	write_frames(3);
	assert_int_equal(stat(path, &st), 0);
	for (off_t size = 0; size < st.st_size; size++) {
		write_frames(3);
		assert_int_equal(truncate(path, size), 0);
		assert_ignored(me, 5, " not ");
	}
}

static void a_changed_byte_anywhere_is_noticed(void **state) {
	(void)state;
	struct stat st;
	write_frames(3);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		uint8_t byte;
		write_frames(3);
		int fd = open(path, O_RDWR);
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte ^= 0x04;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		assert_ignored(me, 5, " not ");
	}
}

static void bytes_behind_the_end_are_damage(void **state) {
	(void)state;
	write_frames(3);
	int fd = open(path, O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	assert_ignored(me, 5, "incomplete or damaged");
}

static void one_that_was_given_up_leaves_nothing(void **state) {
	(void)state;
	struct side_writer *w = NULL;
	struct side_file *f = NULL;
	struct problem problem;
	assert_int_equal(side_writer_open(dir, me, 5, &w), 0);
	assert_int_equal(side_writer_add(w, slice_str("x")), 0);
	side_writer_abort(w);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_NONE);
}

static void a_disk_that_fails_is_an_error(void **state) {
	(void)state;
	struct side_writer *w = NULL;
	char missing[128];
	snprintf(missing, sizeof missing, "%s/missing", dir);
	assert_int_equal(side_writer_open(missing, me, 5, &w), PAWL_EIO);
	assert_null(w);
}

static void a_full_disk_leaves_no_side_file(void **state) {
	(void)state;
	static uint8_t frame[65536];
	struct side_writer *w = NULL;
	struct side_file *f = NULL;
	struct problem problem;
	if (mount("none", dir, "tmpfs", 0, "size=32k") != 0) {
		skip();
	}
	assert_int_equal(side_writer_open(dir, me, 5, &w), 0);
	assert_int_equal(side_writer_add(w, slice_of(frame, sizeof frame)), PAWL_EIO);
	side_writer_abort(w);
	assert_int_equal(side_writer_open(dir, me, 5, &w), 0);
	/* The last of them fails, at the latest when the file is finished. */
	for (int i = 0; i < 40; i++) {
		if (side_writer_add(w, slice_of(frame, 1000)) != 0) {
			break;
		}
	}
	assert_int_equal(side_writer_finish(w), PAWL_EIO);
	assert_int_equal(side_file_open(dir, me, 5, &f, &problem), SIDE_NONE);
	assert_int_equal(umount(dir), 0);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, make_dir, remove_dir)

UNIT(side_file) {
	const struct CMUnitTest tests[] = {
		WITH_DIR(frames_come_back_in_order_once),
		WITH_DIR(a_node_that_knew_nothing_leaves_an_empty_one),
		WITH_DIR(one_that_was_not_used_stays),
		WITH_DIR(one_that_cannot_be_read_stays),
		WITH_DIR(one_of_another_node_or_boot_is_ignored),
		WITH_DIR(one_cut_at_any_byte_is_ignored),
		WITH_DIR(a_changed_byte_anywhere_is_noticed),
		WITH_DIR(bytes_behind_the_end_are_damage),
		WITH_DIR(one_that_was_given_up_leaves_nothing),
		WITH_DIR(a_full_disk_leaves_no_side_file),
		WITH_DIR(a_disk_that_fails_is_an_error),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
