/* polled.c: a program with a loop of its own, around poll(2), that does its work under a lock.
 *
 *     cc polled.c $(pkg-config --cflags --libs pawl) -o polled
 *     ./polled 127.0.0.1:7117 spool <jobs
 *
 * It waits for the key, then prints what comes on its standard input, with the fencing token. It
 * lets go at the end of the input, on SIGINT or SIGTERM, or when the lock is lost. The client is
 * one more descriptor in its loop. */
#include <inttypes.h>
#include <pawl/pawl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* pawl_wake needs it in the signal handler. */
static struct pawl *client;
static volatile sig_atomic_t told_to_stop;

static void on_signal(int number) {
	(void)number;
	told_to_stop = 1;
	/* This interrupts a blocking call, and makes the client's descriptor readable. It cannot
	 * come too early: what does not block yet is interrupted when it does. */
	pawl_wake(client);
}

static bool heed_signals(void (*handler)(int number)) {
	struct sigaction action = { .sa_handler = handler };
	return sigaction(SIGINT, &action, NULL) == 0 && sigaction(SIGTERM, &action, NULL) == 0;
}

/* Copies what has come to the output. Returns false at the end of the input. */
static bool work(const struct pawl_lock *lock) {
	char text[4096];
	ssize_t size = read(STDIN_FILENO, text, sizeof(text));
	if (size > 0) {
		printf("%" PRIu64 ": %.*s", pawl_lock_token(lock), (int)size, text);
		fflush(stdout);
	}
	return size > 0;
}

/* Returns 0, or why the lock is lost. */
static int work_while_held(const struct pawl_lock *lock) {
	struct pollfd fds[] = { { .fd = pawl_fd(client), .events = POLLIN },
		{ .fd = STDIN_FILENO, .events = POLLIN } };
	bool more = true;
	while (more && !told_to_stop && pawl_lock_error(lock) == 0) {
		int ready = poll(fds, 2, pawl_timeout_ms(client));
		/* This renews the lock when that is due. */
		(void)pawl_poll(client, 0);
		if (ready > 0 && fds[1].revents && pawl_lock_valid_ms(lock) > 0) {
			more = work(lock);
		}
	}
	return pawl_lock_error(lock);
}

static int run(const char *key) {
	struct pawl_lock_options wanted = { .key = pawl_str(key), .lease_ms = 3000,
		.wait_ms = PAWL_FOREVER };
	struct pawl_lock *lock = NULL;
	int error = pawl_lock_acquire(client, &wanted, &lock, NULL);
	if (error) {
		fprintf(stderr, "not acquired: %s\n", pawl_error_message(error));
		return 1;
	}
	error = work_while_held(lock);
	if (error) {
		fprintf(stderr, "stopped: %s\n", pawl_error_message(error));
	}
	/* The signal has done its work. Another one interrupts the release, which is sent all the
	 * same. */
	(void)pawl_poll(client, 0);
	int not_released = pawl_lock_release(lock);
	return error || not_released ? 1 : 0;
}

int main(int argc, char **argv) {
	if (argc != 3) {
		fprintf(stderr, "usage: polled ENDPOINTS KEY\n");
		return 2;
	}
	struct pawl_options options = { .endpoints = argv[1] };
	const char *problem = "";
	if (pawl_new(&options, &client, &problem) != 0) {
		fprintf(stderr, "%s: %s\n", argv[1], problem);
		return 2;
	}
	int status = heed_signals(on_signal) ? run(argv[2]) : 1;
	/* From here on nothing may wake the client. */
	(void)heed_signals(SIG_IGN);
	pawl_free(client);
	return status;
}
