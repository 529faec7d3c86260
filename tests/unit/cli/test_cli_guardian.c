/* These tests run the guardian of pawl run with real processes; the test stands in for pawl run.
 *
 * Everything that is started holds the writing end of one pipe. When the test reads the end of the
 * pipe, all of them are gone. All tests are run twice: with the command in a process group of its
 * own, and in that of the test, as in the job of a shell. */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "guardian.h"

#define MS 1000000
#define PATIENCE_MS 20000
#define LONG_NS ((int64_t)60000 * MS)

struct scene {
	struct guardian guardian;
	/* The reading end of the pipe. */
	int life;
	/* The path by which a command names the writing end. */
	char path[32];
};

static struct scene scene;
static bool in_job;

static int64_t raw_now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Makes a guardian for `sh -c script`, in which $0 is the pipe. The arguments are how far the
 * deadline is away by each clock, the grace time and the margin, in ns. */
static void prepare(const char *script, int64_t boot_ns, int64_t raw_ns, int64_t grace_ns,
	int64_t margin_ns) {
	static char shell[] = "/bin/sh", c[] = "-c", text[1024];
	static char *command[] = { shell, c, text, scene.path, NULL };
	int pair[2];
	assert_int_equal(pipe(pair), 0);
	fcntl(pair[0], F_SETFD, FD_CLOEXEC);
	scene.life = pair[0];
	snprintf(scene.path, sizeof scene.path, "/dev/fd/%d", pair[1]);
	snprintf(text, sizeof text, "%s", script);
	const struct guardian_options options = { .key = "the key", .command = command,
		.in_job = in_job };
	assert_int_equal(guardian_start(&scene.guardian, &options), 0);
	close(pair[1]);
	scene.guardian.shared->grace_ns = grace_ns;
	scene.guardian.shared->margin_ns = margin_ns;
	snprintf(scene.guardian.shared->token, sizeof scene.guardian.shared->token, "17");
	snprintf(scene.guardian.shared->lock_id, sizeof scene.guardian.shared->lock_id, "%032d", 5);
	trust_extend(&scene.guardian.shared->trust, trust_boot_now() + boot_ns, raw_now() + raw_ns);
}

/* Does the same, and starts the script. */
static void play_by(const char *script, int64_t boot_ns, int64_t raw_ns, int64_t grace_ns,
	int64_t margin_ns) {
	prepare(script, boot_ns, raw_ns, grace_ns, margin_ns);
	guardian_send(&scene.guardian, GUARDIAN_START, 0);
}

static void play(const char *script, int64_t trust_ns, int64_t grace_ns, int64_t margin_ns) {
	play_by(script, trust_ns, trust_ns, grace_ns, margin_ns);
}

static void readable(int fd) {
	struct pollfd p = { .fd = fd, .events = POLLIN };
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

/* Reads a line that the command wrote. */
static const char *read_line(void) {
	static char text[256];
	size_t n = 0;
	while (n < sizeof text - 1 && (n == 0 || text[n - 1] != '\n')) {
		readable(scene.life);
		ssize_t got = read(scene.life, text + n, 1);
		assert_int_equal(got, 1);
		n++;
	}
	text[n - 1] = '\0';
	return text;
}

static void expect_line(const char *line) {
	assert_string_equal(read_line(), line);
}

/* Reads the end of the pipe: nobody who could have written is left. */
static void expect_all_gone(void) {
	char c;
	readable(scene.life);
	assert_int_equal(read(scene.life, &c, 1), 0);
}

static int await_word(enum guardian_word word) {
	struct guardian_message m = { GUARDIAN_START, 0 };
	while (m.word != word) {
		readable(scene.guardian.fd);
		assert_int_equal(guardian_receive(&scene.guardian, &m), 1);
	}
	return m.value;
}

static int tear_down(void **state) {
	(void)state;
	guardian_done(&scene.guardian);
	close(scene.life);
	while (waitpid(-1, NULL, 0) > 0) {
	}
	return 0;
}

static void exit_status_and_environment_pass_through(void **state) {
	(void)state;
	play("echo \"$PAWL_KEY $PAWL_TOKEN $PAWL_LOCK_ID\" > $0; exit 42", LONG_NS, MS, MS);
	expect_line("the key 17 00000000000000000000000000000005");
	assert_int_equal(WEXITSTATUS(await_word(GUARDIAN_GONE)), 42);
	expect_all_gone();
}

static void the_command_has_a_group_of_its_own_or_is_in_the_job(void **state) {
	(void)state;
	play("cut -d ' ' -f 5,6 /proc/$$/stat > $0; "
		"while :; do sleep 0.01; done", LONG_NS, MS, MS);
	char *rest;
	const long group = strtol(read_line(), &rest, 10), session = strtol(rest, NULL, 10);
	const int command = await_word(GUARDIAN_STARTED);
	assert_int_equal(group, in_job ? getpgrp() : command);
	assert_int_equal(session, getsid(0));
	/* What stops or ends the job leaves the guardian alone. */
	assert_int_not_equal(getpgid(scene.guardian.pid), getpgrp());
}

static void signals_reach_the_command(void **state) {
	(void)state;
	play("trap 'echo heard > $0; exit 3' USR1; "
		"echo ready > $0; while :; do sleep 0.01; done", LONG_NS, MS, MS);
	expect_line("ready");
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGUSR1);
	expect_line("heard");
	assert_int_equal(WEXITSTATUS(await_word(GUARDIAN_GONE)), 3);
}

static void a_command_that_ignores_sigterm_is_gone_before_the_deadline(void **state) {
	(void)state;
	play("trap '' TERM; echo ready > $0; while :; do sleep 0.01; done", LONG_NS / 20,
		1000 * (int64_t)MS, 1300 * (int64_t)MS);
	expect_line("ready");
	await_word(GUARDIAN_LATE);
	assert_int_equal(WTERMSIG(await_word(GUARDIAN_GONE)), SIGKILL);
	expect_all_gone();
	assert_true(trust_left(&scene.guardian.shared->trust) > 0);
}

static void a_command_that_obeys_has_its_grace(void **state) {
	(void)state;
	play("trap 'echo tidy > $0; exit 7' TERM; echo ready > $0; while :; do sleep 0.01; done",
		LONG_NS, LONG_NS / 10, MS);
	expect_line("ready");
	guardian_send(&scene.guardian, GUARDIAN_END, 0);
	expect_line("tidy");
	assert_int_equal(WEXITSTATUS(await_word(GUARDIAN_GONE)), 7);
}

static void one_clock_is_enough_to_end_trust(void **state) {
	for (int i = 0; i < 2; i++) {
		play_by("exec 9> $0; trap '' TERM; while :; do sleep 0.01; done",
			i ? LONG_NS : 800 * (int64_t)MS, i ? 800 * (int64_t)MS : LONG_NS,
			50 * (int64_t)MS, 400 * (int64_t)MS);
		await_word(GUARDIAN_LATE);
		await_word(GUARDIAN_GONE);
		expect_all_gone();
		assert_true(trust_left(&scene.guardian.shared->trust) > 0);
		tear_down(state);
	}
}

static void lost_at_once_leaves_no_grace(void **state) {
	(void)state;
	play("trap '' TERM; echo ready > $0; while :; do sleep 0.01; done", 2 * LONG_NS,
		LONG_NS, MS);
	expect_line("ready");
	guardian_send(&scene.guardian, GUARDIAN_END, 1);
	await_word(GUARDIAN_GONE);
	expect_all_gone();
}

/* ---- each word in each state ---- */

/* It says when it has got SIGTERM, and goes on. */
static const char stubborn[] = "exec 2>/dev/null; trap 'echo told > $0' TERM; "
	"trap 'echo heard > $0' USR1; echo ready > $0; while :; do sleep 0.01; done";

/* Plays the stubborn script, until its grace has begun. */
static void play_into_the_grace(int64_t grace_ns) {
	play(stubborn, 2 * LONG_NS, grace_ns, MS);
	expect_line("ready");
	guardian_send(&scene.guardian, GUARDIAN_END, 0);
	expect_line("told");
}

static void what_ends_at_once_does_not_wait_for_a_grace_that_runs(void **state) {
	(void)state;
	play_into_the_grace(LONG_NS);
	guardian_send(&scene.guardian, GUARDIAN_END, 1);
	assert_int_equal(WTERMSIG(await_word(GUARDIAN_GONE)), SIGKILL);
	expect_all_gone();
}

static void a_grace_that_runs_is_not_made_longer(void **state) {
	(void)state;
	play_into_the_grace(100 * (int64_t)MS);
	scene.guardian.shared->grace_ns = LONG_NS;
	guardian_send(&scene.guardian, GUARDIAN_END, 0);
	await_word(GUARDIAN_GONE);
	expect_all_gone();
}

static void when_pawl_run_is_gone_a_grace_that_runs_is_cut_short(void **state) {
	(void)state;
	play_into_the_grace(LONG_NS);
	close(scene.guardian.fd);
	scene.guardian.fd = -1;
	expect_all_gone();
}

static void signals_reach_the_command_in_its_grace(void **state) {
	(void)state;
	play_into_the_grace(LONG_NS);
	guardian_send(&scene.guardian, GUARDIAN_START, 0);
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGUSR1);
	expect_line("heard");
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGSTOP);
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGCONT);
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGUSR1);
	expect_line("heard");
	guardian_send(&scene.guardian, GUARDIAN_END, 1);
	await_word(GUARDIAN_GONE);
	expect_all_gone();
}

static void a_command_runs_once(void **state) {
	(void)state;
	play(stubborn, LONG_NS, MS, MS);
	expect_line("ready");
	guardian_send(&scene.guardian, GUARDIAN_START, 0);
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGUSR1);
	expect_line("heard");
}

static void what_ends_before_its_start_never_runs(void **state) {
	(void)state;
	for (int at_once = 0; at_once <= 1; at_once++) {
		prepare("echo ready > $0", LONG_NS, LONG_NS, MS, MS);
		guardian_send(&scene.guardian, GUARDIAN_END, at_once);
		guardian_send(&scene.guardian, GUARDIAN_START, 0);
		assert_int_equal(WTERMSIG(await_word(GUARDIAN_GONE)), SIGTERM);
		expect_all_gone();
		tear_down(state);
	}
}

static void what_is_for_a_command_is_ignored_before_its_start(void **state) {
	(void)state;
	prepare("echo ready > $0; exit 4", LONG_NS, LONG_NS, MS, MS);
	guardian_send(&scene.guardian, GUARDIAN_SIGNAL, SIGKILL);
	guardian_send(&scene.guardian, GUARDIAN_START, 0);
	expect_line("ready");
	assert_int_equal(WEXITSTATUS(await_word(GUARDIAN_GONE)), 4);
}

static void what_the_command_leaves_behind_is_ended(void **state) {
	(void)state;
	play("trap '' TERM; trap 'exit 0' USR1; (while :; do sleep 0.01; done) & "
		"setsid sh -c 'echo away > $0; kill -USR1 $1; while :; do sleep 0.01; "
		"done' $0 $$ & while :; do sleep 0.01; done", LONG_NS, 50 * (int64_t)MS, MS);
	expect_line("away");
	assert_int_equal(WEXITSTATUS(await_word(GUARDIAN_GONE)), 0);
	expect_all_gone();
}

static void a_stopped_command_is_ended(void **state) {
	(void)state;
	play("trap '' TERM; echo ready > $0; kill -STOP $$", 1000 * (int64_t)MS,
		100 * (int64_t)MS, 400 * (int64_t)MS);
	expect_line("ready");
	await_word(GUARDIAN_GONE);
	expect_all_gone();
	assert_true(trust_left(&scene.guardian.shared->trust) > 0);
}

static void all_die_with_pawl_run(void **state) {
	(void)state;
	play("trap '' TERM; setsid sh -c 'echo away > $0; while :; do sleep 0.01; done' "
		"$0 & while :; do sleep 0.01; done", LONG_NS, 100 * (int64_t)MS, MS);
	expect_line("away");
	/* The kernel closes it like that when a process dies. */
	close(scene.guardian.fd);
	scene.guardian.fd = -1;
	expect_all_gone();
}

static void the_command_dies_with_the_guardian(void **state) {
	(void)state;
	play("trap '' TERM; echo ready > $0; exec sleep 1000", LONG_NS, MS, MS);
	expect_line("ready");
	kill(scene.guardian.pid, SIGKILL);
	expect_all_gone();
}

static void a_guardian_that_is_stopped_is_replaced(void **state) {
	(void)state;
	play("trap '' TERM; setsid sh -c 'echo away > $0; while :; do sleep 0.01; done' "
		"$0 & while :; do sleep 0.01; done", LONG_NS, MS, MS);
	expect_line("away");
	await_word(GUARDIAN_STARTED);
	kill(scene.guardian.pid, SIGSTOP);
	guardian_replace(&scene.guardian);
	expect_all_gone();
}

static void a_command_that_does_not_exist_is_127(void **state) {
	(void)state;
	play("exec /does/not/exist 2>/dev/null", LONG_NS, MS, MS);
	assert_int_equal(WEXITSTATUS(await_word(GUARDIAN_GONE)), 127);
}

UNIT(cli_guardian) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(exit_status_and_environment_pass_through, tear_down),
		cmocka_unit_test_teardown(the_command_has_a_group_of_its_own_or_is_in_the_job,
			tear_down),
		cmocka_unit_test_teardown(signals_reach_the_command, tear_down),
		cmocka_unit_test_teardown(
			a_command_that_ignores_sigterm_is_gone_before_the_deadline, tear_down),
		cmocka_unit_test_teardown(a_command_that_obeys_has_its_grace, tear_down),
		cmocka_unit_test(one_clock_is_enough_to_end_trust),
		cmocka_unit_test_teardown(lost_at_once_leaves_no_grace, tear_down),
		cmocka_unit_test_teardown(what_ends_at_once_does_not_wait_for_a_grace_that_runs,
			tear_down),
		cmocka_unit_test_teardown(a_grace_that_runs_is_not_made_longer, tear_down),
		cmocka_unit_test_teardown(when_pawl_run_is_gone_a_grace_that_runs_is_cut_short,
			tear_down),
		cmocka_unit_test_teardown(signals_reach_the_command_in_its_grace, tear_down),
		cmocka_unit_test_teardown(a_command_runs_once, tear_down),
		cmocka_unit_test(what_ends_before_its_start_never_runs),
		cmocka_unit_test_teardown(what_is_for_a_command_is_ignored_before_its_start,
			tear_down),
		cmocka_unit_test_teardown(what_the_command_leaves_behind_is_ended, tear_down),
		cmocka_unit_test_teardown(a_stopped_command_is_ended, tear_down),
		cmocka_unit_test_teardown(all_die_with_pawl_run, tear_down),
		cmocka_unit_test_teardown(the_command_dies_with_the_guardian, tear_down),
		cmocka_unit_test_teardown(a_guardian_that_is_stopped_is_replaced, tear_down),
		cmocka_unit_test_teardown(a_command_that_does_not_exist_is_127, tear_down),
	};
	int failed = cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
	in_job = true;
	return failed + cmocka_run_group_tests_name("in the job", tests, NULL, NULL);
}
