/* These tests are about the file of the audit and the thread that writes it: order, rotation, lines
 * that are lost, and that nobody ever waits for the disk. */
#include "unit.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_file.h"
#include "pawl/error.h"

struct world {
	struct event_base *base;
	struct audit_file *file;
	char folder[32], path[64];
	int told;
};

static void on_told(void *ctx) {
	struct world *w = ctx;
	w->told++;
}

static int open_at(struct world *w, const char *path) {
	char why[AUDIT_WHY_BYTES];
	return audit_file_open(path, w->base, on_told, w, &w->file, why);
}

static int set_up(void **state) {
	struct world *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->base = event_base_new();
	assert_non_null(w->base);
	snprintf(w->folder, sizeof w->folder, "/tmp/pawl-audit-XXXXXX");
	assert_non_null(mkdtemp(w->folder));
	snprintf(w->path, sizeof w->path, "%s/audit", w->folder);
	*state = w;
	return 0;
}

static int tear_down(void **state) {
	static const char *const ends[] = { "", ".1", ".2", ".3" };
	struct world *w = *state;
	char path[80];
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		snprintf(path, sizeof path, "%s%s", w->path, ends[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(w->folder), 0);
	event_base_free(w->base);
	free(w);
	return 0;
}

static bool put(struct world *w, const char *line, enum audit_before before) {
	return audit_file_put(w->file, slice_str(line), before, 2, NULL);
}

/* Returns the bytes of the file, with a NUL behind them. */
static const char *text_of(const struct world *w, const char *end) {
	static char text[256];
	char path[80];
	snprintf(path, sizeof path, "%s%s", w->path, end);
	const int fd = open(path, O_RDONLY);
	const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	if (fd >= 0) {
		close(fd);
	}
	return text;
}

static void lines_stand_in_their_order_and_files_move_on(void **state) {
	struct world *w = *state;
	struct stat st;
	assert_int_equal(open_at(w, w->path), 0);
	assert_true(put(w, "a\n", AUDIT_GO_ON));
	assert_true(put(w, "b\n", AUDIT_ROTATE));
	assert_int_equal(audit_file_size(w->file), 2);
	audit_file_close(w->file);
	assert_int_equal(open_at(w, w->path), 0);
	assert_int_equal(audit_file_size(w->file), 2);
	assert_true(put(w, "c\n", AUDIT_GO_ON));
	assert_true(put(w, "d\n", AUDIT_ROTATE));
	audit_file_close(w->file);
	assert_int_equal(open_at(w, w->path), 0);
	assert_true(put(w, "e\n", AUDIT_ROTATE));
	audit_file_close(w->file);
	assert_string_equal(text_of(w, ""), "e\n");
	assert_string_equal(text_of(w, ".1"), "d\n");
	/* The oldest one, with a, is gone. */
	assert_string_equal(text_of(w, ".2"), "b\nc\n");
	assert_int_equal(stat(w->path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
}

static void a_file_that_was_moved_is_opened_anew(void **state) {
	struct world *w = *state;
	char moved[80];
	snprintf(moved, sizeof moved, "%s.3", w->path);
	assert_int_equal(open_at(w, w->path), 0);
	assert_true(put(w, "a\n", AUDIT_GO_ON));
	assert_int_equal(rename(w->path, moved), 0);
	assert_true(put(w, "b\n", AUDIT_GO_ON));
	assert_true(put(w, "c\n", AUDIT_REOPEN));
	audit_file_close(w->file);
	assert_string_equal(text_of(w, ".3"), "a\nb\n");
	assert_string_equal(text_of(w, ""), "c\n");
}

static void a_torn_line_gets_its_end(void **state) {
	struct world *w = *state;
	const int fd = open(w->path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "tor", 3), 3);
	close(fd);
	assert_int_equal(open_at(w, w->path), 0);
	assert_true(put(w, "a\n", AUDIT_GO_ON));
	audit_file_close(w->file);
	assert_string_equal(text_of(w, ""), "tor\na\n");
}

static void run_until_told(struct world *w, int times) {
	while (w->told < times) {
		assert_int_equal(event_base_loop(w->base, EVLOOP_ONCE), 0);
	}
}

static void a_torn_line_keeps_its_end_when_the_next_one_does_not_fit(void **state) {
	struct world *w = *state;
	struct audit_receipt receipt = { .number = 0 };
	struct rlimit whole, small;
	const int fd = open(w->path, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(fd, "tor", 3), 3);
	close(fd);
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	assert_int_equal(sigaction(SIGXFSZ, &ignore, NULL), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &whole), 0);
	small = whole;
	small.rlim_cur = 6;
	assert_int_equal(open_at(w, w->path), 0);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	assert_true(audit_file_put(w->file, slice_str("long\n"), AUDIT_GO_ON, 2, &receipt));
	run_until_told(w, 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &whole), 0);
	assert_int_equal(audit_file_fate(w->file, &receipt), AUDIT_LOST);
	audit_file_forget(w->file, &receipt);
	assert_true(put(w, "a\n", AUDIT_GO_ON));
	audit_file_close(w->file);
	assert_string_equal(text_of(w, ""), "tor\na\n");
}

static void a_receipt_says_what_has_become_of_the_line(void **state) {
	struct world *w = *state;
	struct audit_receipt receipt = { .number = 0 };
	assert_int_equal(open_at(w, w->path), 0);
	assert_true(audit_file_put(w->file, slice_str("a\n"), AUDIT_GO_ON, 2, &receipt));
	run_until_told(w, 1);
	assert_int_equal(audit_file_fate(w->file, &receipt), AUDIT_WRITTEN);
	assert_string_equal(text_of(w, ""), "a\n");
	audit_file_forget(w->file, &receipt);
	audit_file_close(w->file);
}

static void a_full_disk_is_told_and_counted(void **state) {
	struct world *w = *state;
	const char *what = NULL;
	struct audit_receipt receipt = { .number = 0 };
	assert_int_equal(open_at(w, "/dev/full"), 0);
	assert_true(audit_file_put(w->file, slice_str("a\n"), AUDIT_GO_ON, 2, &receipt));
	run_until_told(w, 1);
	assert_int_equal(audit_file_fate(w->file, &receipt), AUDIT_LOST);
	assert_int_equal(audit_file_trouble(w->file, &what), ENOSPC);
	assert_string_equal(what, "write");
	const struct audit_counts counts = audit_file_counts(w->file);
	assert_int_equal(counts.lines, 0);
	assert_int_equal(counts.dropped, 1);
	assert_int_equal(counts.failures, 1);
	audit_file_forget(w->file, &receipt);
	audit_file_close(w->file);
}

/* Opens the file at a terminal that nobody reads, so that a write of more than it has room for
 * hangs. The alarm ends a test that waits. */
static int open_at_terminal(struct world *w) {
	const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
	assert_true(terminal >= 0);
	assert_int_equal(grantpt(terminal), 0);
	assert_int_equal(unlockpt(terminal), 0);
	assert_int_equal(open_at(w, ptsname(terminal)), 0);
	alarm(20);
	return terminal;
}

static void a_disk_that_hangs_stops_nobody(void **state) {
	struct world *w = *state;
	static char line[4096];
	struct audit_receipt receipt = { .number = 0 };
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	const int terminal = open_at_terminal(w);
	uint64_t refused = 0;
	for (int i = 0; i < 1000; i++) {
		refused += !audit_file_put(w->file, slice_of(line, sizeof line), AUDIT_GO_ON, 2,
			NULL);
	}
	/* The thread has some lines, as many wait, and the terminal has the others. */
	assert_true(refused > 400);
	assert_int_equal(audit_file_counts(w->file).dropped, refused);
	assert_false(audit_file_put(w->file, slice_of(line, sizeof line), AUDIT_GO_ON, 2,
		&receipt));
	assert_int_equal(audit_file_fate(w->file, &receipt), AUDIT_LOST);
	audit_file_forget(w->file, &receipt);
	close(terminal);
	audit_file_close(w->file);
	alarm(0);
}

static void lines_about_denied_requests_never_take_the_room_of_others(void **state) {
	struct world *w = *state;
	static char line[4096];
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	const struct slice full = slice_of(line, sizeof line);
	const int terminal = open_at_terminal(w);
	/* The thread takes what waits, and then it hangs. Nothing tells of that but the time in
	 * which there is no room again. */
	for (int refused = 0; refused < 200; refused++) {
		if (audit_file_put_denied(w->file, full)) {
			refused = 0;
		}
		(void)poll(NULL, 0, 1);
	}
	size_t others = 0;
	while (audit_file_put(w->file, full, AUDIT_GO_ON, 2, NULL)) {
		others++;
		assert_false(audit_file_put_denied(w->file, full));
	}
	assert_int_equal(others, ((size_t)512 << 10) / sizeof line);
	assert_int_equal(audit_file_counts(w->file).dropped, 1);
	close(terminal);
	audit_file_close(w->file);
	alarm(0);
}

static void what_is_no_file_is_refused(void **state) {
	struct world *w = *state;
	char why[AUDIT_WHY_BYTES];
	assert_int_equal(mkdir(w->path, 0700), 0);
	assert_int_equal(open_at(w, w->path), PAWL_EIO);
	assert_int_equal(audit_file_check(w->path, why), PAWL_EIO);
	assert_non_null(strstr(why, "name another path"));
	assert_int_equal(rmdir(w->path), 0);
	assert_int_equal(mkfifo(w->path, 0600), 0);
	assert_int_equal(open_at(w, w->path), PAWL_EIO);
	assert_int_equal(audit_file_check(w->path, why), PAWL_EIO);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(audit_file_check(w->path, why), 0);
	/* A check makes nothing. */
	assert_int_equal(access(w->path, F_OK), -1);
}

/* Whoever has made the link would choose which file the node appends to. */
static void a_symbolic_link_is_not_followed(void **state) {
	struct world *w = *state;
	char why[AUDIT_WHY_BYTES], other[80];
	const char *what = NULL;
	struct audit_receipt receipt = { .number = 0 };
	snprintf(other, sizeof other, "%s.3", w->path);
	assert_int_equal(symlink(other, w->path), 0);
	/* It leads nowhere, and then to a file. */
	for (int there = 0; there < 2; there++) {
		assert_int_equal(audit_file_check(w->path, why), PAWL_EIO);
		assert_non_null(strstr(why, "symbolic link"));
		assert_int_equal(audit_file_open(w->path, w->base, on_told, w, &w->file, why),
			PAWL_EIO);
		assert_non_null(strstr(why, "remove the link"));
		close(open(other, O_WRONLY | O_CREAT, 0600));
	}
	assert_int_equal(unlink(w->path), 0);
	/* The same when the path is opened anew. The file that is open goes on. */
	assert_int_equal(open_at(w, w->path), 0);
	assert_int_equal(unlink(w->path), 0);
	assert_int_equal(symlink(other, w->path), 0);
	assert_true(audit_file_put(w->file, slice_str("a\n"), AUDIT_REOPEN, 2, &receipt));
	run_until_told(w, 1);
	assert_int_equal(audit_file_trouble(w->file, &what), ELOOP);
	audit_file_forget(w->file, &receipt);
	audit_file_close(w->file);
	assert_string_equal(text_of(w, ".3"), "");
}

static void a_directory_that_others_may_write_to_is_refused(void **state) {
	struct world *w = *state;
	char why[AUDIT_WHY_BYTES];
	assert_int_equal(chmod(w->folder, 0777), 0);
	assert_int_equal(audit_file_check(w->path, why), PAWL_EIO);
	assert_int_equal(audit_file_open(w->path, w->base, on_told, w, &w->file, why), PAWL_EIO);
	assert_non_null(strstr(why, "(mode 0777)"));
	assert_non_null(strstr(why, "run chmod go-w /tmp/pawl-audit-"));
	assert_int_equal(chmod(w->folder, 0755), 0);
	assert_int_equal(open_at(w, w->path), 0);
	audit_file_close(w->file);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

UNIT(audit_file) {
	const struct CMUnitTest tests[] = {
		TEST(lines_stand_in_their_order_and_files_move_on),
		TEST(a_file_that_was_moved_is_opened_anew),
		TEST(a_torn_line_gets_its_end),
		TEST(a_torn_line_keeps_its_end_when_the_next_one_does_not_fit),
		TEST(a_receipt_says_what_has_become_of_the_line),
		TEST(a_full_disk_is_told_and_counted),
		TEST(a_disk_that_hangs_stops_nobody),
		TEST(lines_about_denied_requests_never_take_the_room_of_others),
		TEST(what_is_no_file_is_refused),
		TEST(a_symbolic_link_is_not_followed),
		TEST(a_directory_that_others_may_write_to_is_refused),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
