/* Nobody reads the lines of a log. Whoever says them never waits, and what is lost is counted. */
#include "unit.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log_queue.h"
#include "log_writer.h"

static void put(struct log_queue *q, const char *line) {
	log_queue_put(q, line, strlen(line));
}

static void takes(struct log_queue *q, uint64_t lost, const char *line) {
	struct log_queue_item item;
	assert_true(log_queue_take(q, &item));
	assert_int_equal(item.lost, lost);
	assert_int_equal(item.bytes, strlen(line));
	assert_memory_equal(item.line, line, item.bytes);
}

static void lines_come_out_in_order_also_around_the_end_of_the_room(void **state) {
	(void)state;
	char room[100];
	struct log_queue q;
	struct log_queue_item item;
	log_queue_init(&q, room, sizeof room);
	for (int i = 0; i < 200; i++) {
		char first[16], second[16];
		snprintf(first, sizeof first, "line %d\n", i);
		snprintf(second, sizeof second, "%*d\n", i % 10 + 1, i);
		put(&q, first);
		put(&q, second);
		takes(&q, 0, first);
		takes(&q, 0, second);
	}
	assert_false(log_queue_take(&q, &item));
}

static void what_does_not_fit_is_counted_at_its_place(void **state) {
	(void)state;
	char room[64];
	struct log_queue q;
	struct log_queue_item item;
	log_queue_init(&q, room, sizeof room);
	put(&q, "0123456789\n");
	put(&q, "0123456789\n");
	for (int i = 0; i < 5; i++) {
		put(&q, "lost, as there is no room\n");
	}
	takes(&q, 0, "0123456789\n");
	put(&q, "later\n");
	takes(&q, 0, "0123456789\n");
	takes(&q, 5, "later\n");
	assert_false(log_queue_take(&q, &item));
}

static void a_count_is_told_also_when_no_line_follows(void **state) {
	(void)state;
	char room[40];
	struct log_queue q;
	struct log_queue_item item;
	log_queue_init(&q, room, sizeof room);
	put(&q, "0123456789\n");
	put(&q, "lost, as there is no room\n");
	takes(&q, 0, "0123456789\n");
	takes(&q, 1, "");
	assert_false(log_queue_take(&q, &item));
}

/* ---- the thread ---- */

static size_t lost_line(uint64_t lost, char out[LOG_LINE_MAX]) {
	return (size_t)snprintf(out, LOG_LINE_MAX, "%d lost\n", (int)lost);
}

static size_t read_all(int fd, char *out, size_t size) {
	size_t used = 0;
	ssize_t n;
	while (used < size && (n = read(fd, out + used, size - used)) > 0) {
		used += (size_t)n;
	}
	out[used < size ? used : size - 1] = '\0';
	return used;
}

#define LINES 500

/* There is more than the pipe and the queue hold together. Nobody waits (the alarm ends a test that
 * does), and the lines that come out and the count make up all of them. */
static void a_full_pipe_stops_nobody(void **state) {
	(void)state;
	static char text[LINES * 1024 + 4096];
	char line[1024];
	int ends[2], counted = 0, lost = 0;
	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
	memset(line, 'x', sizeof line);
	line[sizeof line - 1] = '\n';
	alarm(20);
	assert_int_equal(log_writer_start(ends[1], lost_line), 0);
	for (int i = 0; i < LINES; i++) {
		log_writer_put(line, sizeof line);
	}
	pid_t reader = fork();
	/* The reader is a process, because the thread has to get on while this process waits for
	 * it. */
	if (reader == 0) {
		close(ends[1]);
		size_t used = read_all(ends[0], text, sizeof text);
		for (const char *at = text; at < text + used; at = strchr(at, '\n') + 1) {
			counted += at[0] == 'x';
			lost += at[0] == 'x' ? 0 : (int)strtol(at, NULL, 10);
		}
		_exit(used > 0 && lost > 0 && counted + lost == LINES ? 0 : 1);
	}
	log_writer_stop();
	close(ends[1]);
	int status;
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_int_equal(status, 0);
	close(ends[0]);
	alarm(0);
}

static void a_reader_that_is_gone_costs_its_lines_and_the_end_does_not_wait(void **state) {
	(void)state;
	int ends[2];
	char text[64];
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	assert_int_equal(sigaction(SIGPIPE, &ignore, NULL), 0);
	assert_int_equal(pipe(ends), 0);
	close(ends[0]);
	assert_int_equal(log_writer_start(ends[1], lost_line), 0);
	log_writer_put("a\n", 2);
	log_writer_put("b\n", 2);
	log_writer_stop();
	close(ends[1]);
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(log_writer_start(ends[1], lost_line), 0);
	log_writer_put("c\n", 2);
	log_writer_stop();
	close(ends[1]);
	read_all(ends[0], text, sizeof text);
	assert_string_equal(text, "c\n");
	close(ends[0]);
}

/* This test is the last one, because its thread stays in the write. */
static void the_end_waits_a_second_at_most(void **state) {
	(void)state;
	static char line[LOG_LINE_MAX];
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, 4096) >= 4096);
	memset(line, 'x', sizeof line);
	alarm(20);
	assert_int_equal(log_writer_start(ends[1], lost_line), 0);
	for (int i = 0; i < 10; i++) {
		log_writer_put(line, sizeof line);
	}
	log_writer_stop();
	/* What is said later does not wait, either. */
	log_writer_put(line, sizeof line);
	alarm(0);
}

UNIT(log_writer) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_come_out_in_order_also_around_the_end_of_the_room),
		cmocka_unit_test(what_does_not_fit_is_counted_at_its_place),
		cmocka_unit_test(a_count_is_told_also_when_no_line_follows),
		cmocka_unit_test(a_full_pipe_stops_nobody),
		cmocka_unit_test(a_reader_that_is_gone_costs_its_lines_and_the_end_does_not_wait),
		cmocka_unit_test(the_end_waits_a_second_at_most),
	};
	return cmocka_run_group_tests_name(group_name, tests, NULL, NULL);
}
