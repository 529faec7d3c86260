/* The power fails. What was only in the kernel's memory is gone, except what it happened to write
 * back. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pawl/error.h"
#include "state_file.h"
/* These come behind the codec's F_LOCK_ID, which they leave alone. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64], file_path[128];
/* What has been synced. */
static uint8_t disk[2 * STATE_SLOT_BYTES];
/* While this is set no sync comes to its end. */
static bool hangs;
/* While this is set no sync of the state directory does. */
static bool directory_hangs;
/* How many syncs of the state directory, and of the one above, have come to their end. */
static unsigned directories, parents;

/* These stand in the place of the C library's functions. */
int fsync(int fd) {
	struct stat st;
	if (fstat(fd, &st) != 0 || !S_ISDIR(st.st_mode)) {
		return hangs ? -1 : 0;
	}
	struct stat own;
	if (stat(dir, &own) != 0 || own.st_ino != st.st_ino) {
		parents++;
		return 0;
	}
	if (directory_hangs) {
		errno = EIO;
		return -1;
	}
	directories++;
	return 0;
}

int fdatasync(int fd) {
	if (hangs) {
		errno = EIO;
		return -1;
	}
	return pread(fd, disk, sizeof disk, 0) == (ssize_t)sizeof disk ? 0 : -1;
}

static int make_dir(void **state) {
	(void)state;
	snprintf(dir, sizeof dir, "/tmp/pawl-power.XXXXXX");
	return mkdtemp(dir) ? snprintf(file_path, sizeof file_path, "%s/state", dir) < 0 : -1;
}

static int remove_dir(void **state) {
	(void)state;
	char lock[128];
	snprintf(lock, sizeof lock, "%s/lock", dir);
	unlink(lock);
	unlink(file_path);
	return rmdir(dir);
}

static struct state_file *open_good(struct durable *state) {
	struct state_file *f = NULL;
	struct problem problem = { "" };
	if (state_file_open(dir, "c", "a", &f, state, &problem)) {
		fail_msg("refused: %s", problem.text);
	}
	return f;
}

/* The power fails. Of what was not synced the kernel had written back only that one slot. */
static void power_fails(unsigned slot) {
	static uint8_t bytes[STATE_SLOT_BYTES];
	const off_t at = (off_t)slot * STATE_SLOT_BYTES;
	int fd = open(file_path, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, bytes, sizeof bytes, at), sizeof bytes);
	assert_int_equal(pwrite(fd, disk, sizeof disk, 0), sizeof disk);
	assert_int_equal(pwrite(fd, bytes, sizeof bytes, at), sizeof bytes);
	close(fd);
}

static void write_good(struct state_file *f, struct durable *d, uint64_t boot) {
	d->boot = boot;
	assert_int_equal(state_file_write(f, d), 0);
}

/* pawld is killed while the disk takes its time over state 3. The next start reads state 3 from the
 * kernel's memory, and the power fails while it writes state 4 over state 2. State 2 was promised,
 * so that what is on disk afterwards is not older. */
static void a_start_believes_nothing_that_is_not_on_the_disk(void **state) {
	(void)state;
	for (long cut = 1; cut < 64; cut++) {
		struct durable d, found;
		/* This goes to slot 0. */
		struct state_file *f = open_good(&d);
		/* This goes to slot 1. */
		write_good(f, &d, 1);
		/* This goes to slot 0. */
		write_good(f, &d, 2);
		hangs = true;
		d.boot = 3;
		/* This goes to slot 1. */
		assert_int_equal(state_file_write(f, &d), PAWL_EIO);
		state_file_close(f);
		hangs = false;
		f = open_good(&found);
		assert_int_equal(found.boot, 3);
		found.boot = 4;
		state_file_fail_after(f, cut);
		/* This goes to slot 0. */
		assert_int_equal(state_file_write(f, &found), PAWL_EIO);
		state_file_close(f);
		power_fails(0);
		state_file_close(open_good(&found));
		assert_true(found.boot >= 2);
		unlink(file_path);
	}
}

/* A start must not go on with a disk that does not confirm what was read. */
static void a_start_that_cannot_make_sure_fails(void **state) {
	(void)state;
	struct durable d;
	struct state_file *f = open_good(&d);
	struct problem problem = { "" };
	state_file_close(f);
	hangs = true;
	assert_int_equal(state_file_open(dir, "c", "a", &f, &d, &problem), PAWL_EIO);
	hangs = false;
	assert_non_null(strstr(problem.text, "the state file cannot be written"));
	state_file_close(open_good(&d));
}

/* pawld is killed after it has renamed its new state file, and before it has synced the directory.
 * The next start finds the file, whose name may be in the kernel's memory only. */
static void a_start_puts_the_name_of_the_file_on_the_disk(void **state) {
	(void)state;
	struct durable d;
	struct state_file *f;
	struct problem problem = { "" };
	directory_hangs = true;
	assert_int_equal(state_file_open(dir, "c", "a", &f, &d, &problem), PAWL_EIO);
	assert_int_equal(access(file_path, F_OK), 0);
	assert_int_equal(state_file_open(dir, "c", "a", &f, &d, &problem), PAWL_EIO);
	assert_non_null(strstr(problem.text, "the state file cannot be written"));
	directory_hangs = false;
	directories = 0;
	state_file_close(open_good(&d));
	assert_int_equal(directories, 1);
}

/* pawld is killed after it has made its state directory, and before it has synced the one above. */
static void a_first_start_puts_the_name_of_the_directory_on_the_disk(void **state) {
	(void)state;
	struct durable d;
	parents = 0;
	state_file_close(open_good(&d));
	assert_int_equal(parents, 1);
	state_file_close(open_good(&d));
	assert_int_equal(parents, 1);
}

UNIT(state_power) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_start_believes_nothing_that_is_not_on_the_disk,
			make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(a_start_that_cannot_make_sure_fails, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(a_start_puts_the_name_of_the_file_on_the_disk,
			make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_first_start_puts_the_name_of_the_directory_on_the_disk, make_dir,
			remove_dir),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
